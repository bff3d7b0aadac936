"""Products of short numbers: when there are any, and how near they are; full precision, and what is left of it."""

import os
from threading import Barrier, Thread

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch.utils._python_dispatch import TorchDispatchMode

from orbitpool import TIOMP, TIRBM, ConvFeatures, kernels
from orbitpool import transforms as T
from orbitpool.kernels import full_precision, products
from orbitpool.kernels.descent import summed

CPU = torch.device("cpu")
SETS = [T.identity(5), T.translations(7, 5), T.rotations(5, 8, np.pi / 4)]


def state():
    return torch.backends.mkldnn.matmul.fp32_precision


@pytest.fixture
def short(monkeypatch):
    """A processor that multiplies bfloat16 numbers, as far as we know; others do so as well, but slowly."""
    monkeypatch.setattr(products, "SHORT", True)


class Products(TorchDispatchMode):
    """Notes the float types that were multiplied."""

    def __init__(self):
        super().__init__()
        self.seen = set()

    def __torch_dispatch__(self, op, types, given=(), named=None):
        if "mm" in op.__name__:
            self.seen |= {t.dtype for t in given if isinstance(t, torch.Tensor)}
        return op(*given, **named or {})


def test_filters_are_short_if_asked_for_and_if_that_is_fast(short, monkeypatch):
    W = torch.ones(3, 4)
    assert products.shortened(W, "bfloat16").dtype == torch.bfloat16
    assert all(products.shortened(W, asked) is W for asked in ("auto", "full"))
    assert products.shortened(W.double(), "bfloat16").dtype == torch.float64
    monkeypatch.setattr(products, "SHORT", False)
    assert products.shortened(W, "bfloat16") is W


@pytest.mark.parametrize("transforms", SETS, ids=str)
@pytest.mark.parametrize("channels", [1, 3])
def test_products_of_short_numbers_are_near(transforms, channels, generator, short, monkeypatch):
    """Sums, statistics and reconstructions differ from those in float32 by what rounding of factors and sums makes."""
    S, d2, d1 = transforms.to_dense().shape
    n, K = 63, 37
    v = torch.rand(n, d1 * channels, generator=generator)
    W, b = (torch.randn(K, size, generator=generator) for size in (d2 * channels, S))
    few = products.shortened(W, "bfloat16")
    u, u_ = kernels.move(v, transforms, few), kernels.move(v, transforms, W)
    a, a_ = kernels.respond(u, few, b), kernels.respond(u_, W, b)

    def near(x, y):
        assert x.dtype == torch.float32
        assert (x - y).norm() < 0.01 * y.norm()
        assert not torch.equal(x, y)

    near(a, a_)
    p = a_.softmax(-1)
    near(*(kernels.correlate([(p.clone(), x, -0.5)], torch.float32).float() for x in (u, u_)))
    more = v[:40] + 0.5  # a side of another size, as chains that persist have
    sides = [
        [(p.clone(), x, 0.5), (p[:40].clone(), kernels.move(more, transforms, w), 0.3)] for x, w in ((u, few), (u_, W))
    ]
    near(*(summed(both, W) for both in sides))
    *_, drawn = kernels.infer(u_, W, b, n, generator)
    for dense in (0.0, 1.0):
        monkeypatch.setattr(kernels.poses, "DENSE", dict.fromkeys((False, True), dense))
        near(*(kernels.generate_drawn(drawn, w, transforms, v.shape) for w in (few, W)))
    near(*(kernels.reduce_orbit(v, w, transforms, b) for w in (few, W)))


@pytest.mark.parametrize("transforms", SETS, ids=str)
def test_sides_that_nearly_cancel_are_rounded_together(transforms, generator):
    """The gradient is a small difference of two large sums."""
    (S, d2, d1), n, K = transforms.to_dense().shape, 63, 37
    sides = [torch.rand(size, generator=generator) for size in ((n, d1), (n, K, S))]
    others = [side + 0.03 * torch.rand(side.shape, generator=generator) for side in sides]

    def gradient(dtype, add):
        W = torch.zeros(K, d2, dtype=dtype)
        both = [(p.clone(), kernels.move(v, transforms, W), a) for (v, p), a in ((sides, -0.5), (others, 0.5))]
        return add(both)

    def descended(both):
        t, velocity = torch.zeros(K, d2), torch.ones(K, d2)
        kernels.descend_(t, velocity, both, 1.0, 0.5)
        assert torch.equal(t, velocity)
        return velocity - 0.5

    for add in (lambda both: summed(both, torch.zeros(K, d2)), descended):
        short, full = (gradient(dtype, add) for dtype in (torch.bfloat16, torch.float32))
        assert (short - full).norm() < 0.02 * full.norm()


def test_all_is_as_it_was_after_an_error():
    before = state()
    with pytest.raises(RuntimeError, match="shapes"), full_precision(CPU), full_precision(CPU):
        torch.mm(torch.ones(2, 3), torch.ones(2, 3))
    assert state() == before


def test_what_holds_for_all_backends_goes_on_to_hold():
    try:
        torch.backends.fp32_precision = "tf32"
        with full_precision(CPU):
            assert state() == "ieee"
        assert state() == "tf32"
        torch.backends.fp32_precision = "none"
        assert state() == "none"
    finally:
        torch.backends.fp32_precision = "none"


def test_threads_that_leave_in_another_order_leave_nothing_behind():
    assert state() != "ieee"
    before, entered, left, seen = state(), Barrier(2, timeout=60), Barrier(2, timeout=60), []

    def leave_first():
        with full_precision(CPU):
            entered.wait()
            seen.append(state())
        left.wait()

    def leave_last():
        with full_precision(CPU):
            entered.wait()
            left.wait()
            seen.append(state())

    threads = [Thread(target=work) for work in (leave_first, leave_last)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert [*seen, state()] == ["ieee", "ieee", before]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_process_is_outside_of_all_blocks():
    """So is one that a thread of it forks, which must not wait for a lock that nobody gives back."""
    before, right_there = state(), []

    def is_outside(before):
        if (child := os.fork()) == 0:
            os._exit(int(state() != before))
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

    with full_precision(CPU):
        if (child := os.fork()) == 0:
            right = state() == before
            with full_precision(CPU):
                right &= state() == "ieee"
                thread = Thread(target=lambda: right_there.append(is_outside(before)))
                thread.start()
                thread.join(20)
                right &= right_there == [True]
            os._exit(int(not (right and state() == before)))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert state() == "ieee"


@pytest.mark.parametrize("kind", [TIRBM, TIOMP])
@pytest.mark.parametrize("asked", ["auto", "full", "bfloat16"])
def test_a_cpu_rounds_in_learning_alone(kind, asked, digits, short):
    X, shifts = digits[:50].astype(np.float32), T.translations(8, 6, 2)
    model = kind(4, shifts, n_iter=1, precision=asked, device="cpu", random_state=0)
    with Products() as learning:
        model.fit(X)
    assert (torch.bfloat16 in learning.seen) == (asked == "bfloat16")
    with Products() as encoding:
        model.transform(X)
    assert encoding.seen == {torch.float32}
    assert model.components_.dtype == np.float32


@pytest.mark.parametrize("transforms", [None, T.translations(8, 6, 2), T.rotations(8, 8, np.pi / 4)], ids=str)
@pytest.mark.parametrize("more", [{}, {"persistent": True}, {"cd_steps": 2}, {"visible": "gaussian"}], ids=str)
def test_short_numbers_learn_as_well(transforms, more, digits, short):
    X = digits.astype(np.float32)
    given = {"n_iter": 5, "random_state": 0, "device": "cpu", **more}
    full, rounded = (TIRBM(16, transforms, precision=asked, **given).fit(X) for asked in ("full", "bfloat16"))
    assert not np.array_equal(full.components_, rounded.components_)
    assert_allclose(rounded.history_["reconstruction_error"], full.history_["reconstruction_error"], rtol=0.05)
    first, again = (TIRBM(16, transforms, precision="bfloat16", **given).fit(X).components_ for _ in range(2))
    assert np.array_equal(first, again)


@pytest.mark.parametrize("learner", [TIRBM(4, visible="gaussian", n_iter=1), TIOMP(4, n_iter=1)], ids=str)
def test_dense_encoding_is_rounded_if_asked_for(learner, generator, short):
    images = torch.rand(5, 12, 12, 3, generator=generator)
    features = ConvFeatures(learner, patch_size=6, n_patches=200, random_state=0).fit(images)
    full = features.transform(images)
    rounded = features.set_params(precision="bfloat16").transform(images)
    with Products() as encoding:  # which sees this thread alone, as one image is encoded in
        features.transform(images[:1])
    assert torch.bfloat16 in encoding.seen
    assert_allclose(rounded, full, atol=0.02)
