from math import exp

import pytest
import torch
from torch.testing import assert_close

from orbitpool.kernels import cells, native


@pytest.mark.parametrize("how", ["logsumexp", "max"])
@pytest.mark.parametrize("two_sided", [False, True])
@pytest.mark.parametrize("size", [1.0, 300.0])
@pytest.mark.parametrize("responses", [1, 8000, 2**24])
@pytest.mark.parametrize("S", [1, 7])
@pytest.mark.parametrize("seen", [0.0, 0.5, 1.0])
def test_features_are_summed_over_cells(how, two_sided, size, responses, S, seen, generator, monkeypatch):
    """Also where exponentials are too large to be added up, in pieces of any size, if poses look at some pixels."""
    monkeypatch.setattr(cells, "RESPONSES", responses)
    n, P, D, K = 3, 35, 27, 37
    x = size * torch.randn(n, P, D, generator=generator, dtype=torch.float64)
    t = torch.randn(K, S, D, generator=generator, dtype=torch.float64)
    t *= torch.rand(S, D, generator=generator) < seen
    b = torch.randn(K, S, generator=generator, dtype=torch.float64) if how == "logsumexp" else None
    cell = torch.randint(4, (P,), generator=generator)
    a = torch.einsum("npd,ksd->npks", x, t)
    sides = [a, -a] if two_sided else [a]
    if how == "max":
        z = [(side.amax(-1) - 0.25).clamp_min(0) for side in sides]
    else:
        z = [torch.logsumexp(side + b, -1).sigmoid() for side in sides]
    member = torch.nn.functional.one_hot(cell, 4).double()
    expected = torch.einsum("npk,pc->nck", torch.cat(z, -1), member)
    assert_close(cells.encode_cells(x, cells.by_pose(t), b, cell, 4, how, 0.25, two_sided), expected)


def test_pixels_that_no_template_looks_at_are_left_out(generator):
    t = torch.randn(5, 2, 9, generator=generator)
    t[:, 1, [0, 3, 8]] = 0.0
    t[0, 0, 4] = 0.0  # others look at it
    (all_pixels, first), (pixels, second) = cells.by_pose(t)
    assert all_pixels.tolist() == list(range(9))
    assert pixels.tolist() == [1, 2, 4, 5, 6, 7]
    assert torch.equal(first, t[:, 0])
    assert torch.equal(second, t[:, 1][:, pixels])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("bias", [-79.0, -39.0, -5.0, 0.0, 39.0])
@pytest.mark.parametrize("size", [0.1, 3.0, 30.0])
@pytest.mark.parametrize("S", [1, 4])
@pytest.mark.parametrize("alone", [False, True])
def test_small_probabilities_keep_their_digits(dtype, bias, size, S, alone, generator, monkeypatch):
    """In C, where there is a compiler, and in torch alone; in C, none is below e^-80."""
    if alone:
        monkeypatch.setattr(native, "_functions", dict)
    x, t = torch.randn(2, 9, 20, generator=generator), size / 4 * torch.randn(5, S, 20, generator=generator)
    b = bias + torch.randn(5, S, generator=generator)
    x, t, b = (each.to(dtype) for each in (x, t, b))
    a = torch.einsum("npd,ksd->npks", x, t).double()  # as it is rounded
    expected = torch.cat([torch.logsumexp(side + b.double(), -1).sigmoid() for side in (a, -a)], -1)
    with torch.no_grad():
        z = cells.encode_cells(x, cells.by_pose(t), b, torch.arange(9), 9, "logsumexp", two_sided=True)
    rtol = 1e-3 if dtype == torch.float32 else 1e-9
    assert_close(z, expected.to(dtype), rtol=rtol, atol=1e-37 if alone else S * exp(-80))
    assert (1 - z[expected > 1 - 1e-9] <= 1e-6).all()


def test_what_is_not_a_number_stays_in_its_image(generator):
    x, t = torch.randn(2, 9, 20, generator=generator), torch.randn(5, 4, 20, generator=generator)
    x[0, 0, 0] = float("nan")
    b = torch.full((5, 4), -60.0)
    z = cells.encode_cells(x, cells.by_pose(t), b, torch.arange(9), 9, "logsumexp", two_sided=True)
    assert z[0, 0].isnan().all()
    assert not z[1].isnan().any()
