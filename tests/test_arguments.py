"""Odd arguments for every public name; `make fire` tries many more."""

import sys

import pytest
from fire.arguments import check, targets

NAMES = [name for name in targets() if name not in ("datasets.turned_digits", "datasets.natural_images")]  # they work


@pytest.mark.skipif(sys.platform != "linux", reason="needs an alarm")
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("name", NAMES)
def test_odd_arguments_are_refused(name, monkeypatch, tmp_path):
    monkeypatch.setenv("ORBITPOOL_DATA", str(tmp_path / "nowhere"))
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    monkeypatch.chdir(tmp_path)
    assert check(name, targets()[name], examples=8) is None
