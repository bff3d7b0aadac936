"""Features that a compiler has made of `native.c` are those that torch makes of the same numbers."""

import weakref

import pytest
import torch
from torch.testing import assert_close

from compilers import by_torch, needs_compiler, same
from orbitpool.kernels import cells, native

pytestmark = [needs_compiler, pytest.mark.usefixtures("poisoned")]


@pytest.mark.parametrize("how", ["logsumexp", "max"])
@pytest.mark.parametrize("two_sided", [False, True])
@pytest.mark.parametrize("S", [1, 4, 7, 16])
@pytest.mark.parametrize("D", [25, 192, 121])
@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize(("size", "n", "P"), [(0.1, 2, 63), (3.0, 2, 301), (300.0, 2, 63), (3.0, 300, 1), (3.0, 70, 9)])
def test_features_are_what_torch_makes_of_them(how, two_sided, S, D, kind, size, n, P, generator, monkeypatch):
    x, t = torch.randn(n, P, D, generator=generator), size * torch.randn(37, S, D, generator=generator) / D**0.5
    poses, b = cells.by_pose(t.to(kind)), torch.randn(37, S, generator=generator) - 3
    for responses, places in ((4000, 4), (2**20, 20)):
        monkeypatch.setattr(cells, "RESPONSES", responses)
        cell = (torch.arange(P) * places // P - 1) % (places - 1)  # none in the last one
        z = same(
            lambda cell=cell, places=places: cells.encode_cells(x, poses, b, cell, places, how, 0.25, two_sided),
            rtol=1e-4,
            atol=1e-4,
        )
        assert (z[:, -1] == 0).all()


@pytest.mark.parametrize("how", ["logsumexp", "max"])
@pytest.mark.parametrize("places", [4, 20])
def test_what_is_not_a_number_stays_in_its_cell(how, places, generator):
    x, t = torch.randn(2, 70, 25, generator=generator), torch.randn(37, 7, 25, generator=generator)
    x[0, 5, 0], x[0, 6, 0], x[0, 7, 0] = float("inf"), -float("inf"), float("nan")
    b, cell = torch.randn(37, 7, generator=generator) - 3, torch.arange(70) % places

    def encode(x, cell, places):
        return cells.encode_cells(x, cells.by_pose(t), b, cell, places, how, 0.25, two_sided=True)

    each = by_torch(lambda: encode(x.view(140, 1, 25), torch.zeros(1, dtype=torch.long), 1)).view(2, 70, 74)
    z = encode(x, cell, places)
    assert_close(z, torch.zeros(2, places, 74).index_add(1, cell, each), rtol=1e-4, atol=1e-4, equal_nan=True)
    assert z[0, 7 % places].isnan().all()
    assert z[0, 0].isfinite().all()
    assert z[1].isfinite().all()


def test_patches_that_are_in_no_cell_are_left_out(generator):
    x, t = torch.randn(2, 70, 25, generator=generator), torch.randn(37, 7, 25, generator=generator)
    for places in (4, 20):
        cell = torch.arange(70) % (places + 2) - 1
        same(
            lambda cell=cell, n=places: cells.encode_cells(x, cells.by_pose(t), None, cell, n, "max"),
            rtol=1e-4,
            atol=1e-4,
        )


def test_no_more_responses_are_held_than_said():
    alive, most = weakref.WeakSet(), []

    def respond():
        for _ in range(16):
            alive.add(a := torch.zeros(3, 50))
            most.append(len(alive))
            yield a
            del a

    native.encode(respond(), None, 16, 0.25, 1, torch.zeros(50), 1)
    assert max(most) == native.HELD
