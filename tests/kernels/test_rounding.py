"""Products whose factors are rounded: when they are, and that they are not afterwards."""

from threading import Barrier, Thread

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch.utils._python_dispatch import TorchDispatchMode

from orbitpool import TIOMP, TIRBM, ConvFeatures
from orbitpool import transforms as T
from orbitpool.kernels import rounding

AMX = bool(torch.cpu.get_capabilities().get("amx_bf16"))


def state():
    return torch.backends.mkldnn.matmul.fp32_precision


class Products(TorchDispatchMode):
    """Notes how products were set when they were done."""

    def __init__(self):
        super().__init__()
        self.seen = set()

    def __torch_dispatch__(self, op, types, given=(), named=None):
        if "mm" in op.__name__:
            self.seen.add(state())
        return op(*given, **named or {})


@pytest.mark.parametrize("precision", ["auto", "full"])
def test_other_precisions_leave_products_alone(precision):
    before = state()
    with rounding(precision):
        assert state() == before


def test_all_is_as_it_was_after_an_error():
    before = state()
    with pytest.raises(RuntimeError, match="shapes"), rounding("bfloat16"), rounding("bfloat16"):
        torch.mm(torch.ones(2, 3), torch.ones(2, 3))
    assert state() == before


def test_threads_that_leave_in_another_order_leave_nothing_behind():
    before, entered, first_left = state(), Barrier(2, timeout=60), Barrier(2, timeout=60)
    inside = []

    def first():
        with rounding("bfloat16"):
            entered.wait()
        first_left.wait()

    def last():
        with rounding("bfloat16"):
            entered.wait()
            first_left.wait()
            inside.append(state())

    threads = [Thread(target=work) for work in (first, last)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert inside == ["bf16"]
    assert state() == before


@pytest.mark.parametrize("kind", [TIRBM, TIOMP])
@pytest.mark.parametrize("precision", ["auto", "full", "bfloat16"])
def test_a_cpu_rounds_in_learning_alone(kind, precision, digits):
    X, shifts = digits[:50].astype(np.float32), T.translations(8, 6, 2)
    model = kind(4, shifts, n_iter=1, precision=precision, device="cpu", random_state=0)
    with Products() as learning:
        model.fit(X)
    assert ("bf16" in learning.seen) == (precision == "bfloat16")
    with Products() as encoding:
        model.transform(X)
    assert encoding.seen == {"none"}


@pytest.mark.parametrize("learner", [TIRBM(4, visible="gaussian", n_iter=1), TIOMP(4, n_iter=1)], ids=str)
def test_dense_encoding_is_rounded_if_asked_for(learner, generator):
    images = torch.rand(5, 12, 12, 3, generator=generator)
    features = ConvFeatures(learner, patch_size=6, n_patches=200, random_state=0).fit(images)
    full = features.transform(images)
    with Products() as encoding:
        short = features.set_params(precision="bfloat16").transform(images)
    assert "bf16" in encoding.seen
    assert_allclose(short, full, atol=0.02 if AMX else 1e-6)
