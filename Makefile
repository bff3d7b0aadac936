# Every target sets up what it needs: Python 3.11 or newer, pip and make are enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

# A bare `torch` would bring gigabytes of CUDA; every pip call, its build environments included, obeys the constraints.
export PIP_CONSTRAINT := $(CURDIR)/constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1

# Threads that wait in a busy loop make everything several times slower when another program needs a core.
demo test: export GOMP_SPINCOUNT ?= 5000
# Examples are run side by side.
docs: export OMP_NUM_THREADS ?= 1

.PHONY: demo venv test test-gpu lint docs wheel bench fire audit clean
.DEFAULT_GOAL := demo

venv: $(READY)

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@

demo: $(READY)
	$(BIN)/orbitpool demo

test: $(READY)
	$(BIN)/python -m pytest

# The tests of kernels, and those that need a GPU, on one.
test-gpu: $(READY)
	ORBITPOOL_GPU=1 $(BIN)/python -m pytest tests/kernels tests/test_gpu.py

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

docs: $(READY)
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet --jobs auto -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

wheel: $(READY)
	$(BIN)/python .ci/check_wheel.py

# Without a network the peer that is not there is left out. RECORD=1 keeps the ratios that later runs are held to.
bench: $(READY)
	-$(BIN)/python -m pip install --quiet --editable '.[bench]'
	$(BIN)/python -m benchmarks $(if $(RECORD),--record)

# Kills, full disks, races, damaged files, odd arguments: about fifteen minutes, at most twenty or SECONDS. PARTS choose.
fire: export OMP_NUM_THREADS ?= 1
fire: $(READY)
	$(BIN)/python -m fire $(PARTS) $(if $(SECONDS),--seconds $(SECONDS))

# Known vulnerabilities of what is installed; asks a database where there is a network and pip-audit, else a list.
audit: $(READY)
	$(BIN)/python .ci/audit.py

clean:
	rm -rf $(VENV) docs/_build docs/reference docs/run docs/sg_execution_times.rst .mypy_cache .ruff_cache .pytest_cache .hypothesis
