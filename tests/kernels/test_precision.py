"""Products whose factors are rounded, or are not: when that is so, and that it is not so afterwards."""

import os
from threading import Barrier, Thread

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch.testing import assert_close
from torch.utils._python_dispatch import TorchDispatchMode

from orbitpool import TIOMP, TIRBM, ConvFeatures
from orbitpool import transforms as T
from orbitpool.kernels import full_precision, precision, rounding

CPU = torch.device("cpu")


def state():
    return torch.backends.mkldnn.matmul.fp32_precision


@pytest.fixture
def rounds(monkeypatch):
    """A processor that has AMX, as far as we know."""
    monkeypatch.setattr(precision, "AMX", True)


class Products(TorchDispatchMode):
    """Notes how products were set when they were done."""

    def __init__(self):
        super().__init__()
        self.seen = set()

    def __torch_dispatch__(self, op, types, given=(), named=None):
        if "mm" in op.__name__:
            self.seen.add(state())
        return op(*given, **named or {})


def test_products_are_left_alone_otherwise(rounds, monkeypatch):
    before = state()
    for asked in ("auto", "full"):
        with rounding(asked):
            assert state() == before
    monkeypatch.setattr(precision, "AMX", False)
    with rounding("bfloat16"):
        assert state() == before


@pytest.mark.skipif(not precision.AMX, reason="needs a processor with AMX")
def test_factors_are_rounded_and_sums_are_not(generator):
    a, b = (torch.randn(200, 200, generator=generator) for _ in range(2))
    with rounding("bfloat16"):
        product = a @ b
    assert_close(product, a.bfloat16().float() @ b.bfloat16().float())
    assert not torch.equal(product, a @ b)


def test_all_is_as_it_was_after_an_error(rounds):
    with pytest.raises(RuntimeError, match="shapes"), rounding("bfloat16"), rounding("bfloat16"):
        torch.mm(torch.ones(2, 3), torch.ones(2, 3))


def test_what_holds_for_all_backends_goes_on_to_hold(rounds):
    try:
        torch.backends.fp32_precision = "tf32"
        with rounding("bfloat16"):
            assert state() == "bf16"
        assert state() == "tf32"
        torch.backends.fp32_precision = "ieee"
        assert state() == "ieee"
    finally:
        torch.backends.fp32_precision = "none"


@pytest.mark.parametrize(("first", "last", "both"), [
    ("bf16", "bf16", "bf16"), ("bf16", "ieee", "ieee"), ("ieee", "bf16", "ieee"), ("ieee", "ieee", "ieee"),
])  # fmt: skip
def test_threads_that_leave_in_another_order_leave_nothing_behind(rounds, first, last, both):
    blocks = {"bf16": lambda: rounding("bfloat16"), "ieee": lambda: full_precision(CPU)}
    entered, left, seen = Barrier(2, timeout=60), Barrier(2, timeout=60), []

    def leave_first():
        with blocks[first]():
            entered.wait()
            seen.append(state())
        left.wait()

    def leave_last():
        with blocks[last]():
            entered.wait()
            left.wait()
            seen.append(state())

    threads = [Thread(target=work) for work in (leave_first, leave_last)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert seen == [both, last]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_process_is_outside_of_all_blocks(rounds):
    before = state()
    with rounding("bfloat16"):
        if (child := os.fork()) == 0:
            right = state() == before
            with rounding("bfloat16"):
                right &= state() == "bf16"
            os._exit(int(not (right and state() == before)))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert state() == "bf16"


@pytest.mark.parametrize("kind", [TIRBM, TIOMP])
@pytest.mark.parametrize("asked", ["auto", "full", "bfloat16"])
def test_a_cpu_rounds_in_learning_alone(kind, asked, digits, rounds):
    X, shifts, before = digits[:50].astype(np.float32), T.translations(8, 6, 2), state()
    model = kind(4, shifts, n_iter=1, precision=asked, device="cpu", random_state=0)
    with Products() as learning:
        model.fit(X)
    assert ("bf16" in learning.seen) == (asked == "bfloat16")
    with Products() as encoding:
        model.transform(X)
    assert encoding.seen == {before}


@pytest.mark.parametrize("learner", [TIRBM(4, visible="gaussian", n_iter=1), TIOMP(4, n_iter=1)], ids=str)
def test_dense_encoding_is_rounded_if_asked_for(learner, generator, rounds):
    images = torch.rand(5, 12, 12, 3, generator=generator)
    features = ConvFeatures(learner, patch_size=6, n_patches=200, random_state=0).fit(images)
    full = features.transform(images)
    with Products() as encoding:
        short = features.set_params(precision="bfloat16").transform(images)
    assert "bf16" in encoding.seen
    assert_allclose(short, full, atol=0.02)
