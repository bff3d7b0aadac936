import pytest
import torch
from torch.testing import assert_close

from orbitpool.kernels import cells


@pytest.mark.parametrize("how", ["logsumexp", "max"])
@pytest.mark.parametrize("two_sided", [False, True])
@pytest.mark.parametrize("size", [1.0, 300.0])
@pytest.mark.parametrize("responses", [1, 1000, 2**21])
@pytest.mark.parametrize("S", [1, 7])
def test_features_are_summed_over_cells(how, two_sided, size, responses, S, generator, monkeypatch):
    """Also where exponentials are too large to be added up, and in pieces of any size."""
    monkeypatch.setattr(cells, "RESPONSES", responses)
    n, P, D, K = 3, 35, 27, 37
    x = size * torch.randn(n, P, D, generator=generator, dtype=torch.float64)
    t = torch.randn(K, S, D, generator=generator, dtype=torch.float64)
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
    assert_close(cells.encode_cells(x, t, b, cell, 4, how, 0.25, two_sided), expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("bias", [-79.0, -39.0, -5.0, 0.0, 39.0])
@pytest.mark.parametrize("size", [0.1, 3.0, 30.0])
@pytest.mark.parametrize("S", [1, 4])
def test_small_probabilities_keep_their_digits(dtype, bias, size, S, generator):
    x, t = torch.randn(2, 9, 20, generator=generator), size / 4 * torch.randn(5, S, 20, generator=generator)
    b = bias + torch.randn(5, S, generator=generator)
    x, t, b = (each.to(dtype) for each in (x, t, b))
    a = torch.einsum("npd,ksd->npks", x, t).double()  # as it is rounded
    expected = torch.cat([torch.logsumexp(side + b.double(), -1).sigmoid() for side in (a, -a)], -1)
    z = cells.encode_cells(x, t, b, torch.arange(9), 9, "logsumexp", two_sided=True)
    assert_close(z, expected.to(dtype), rtol=1e-3 if dtype == torch.float32 else 1e-9, atol=1e-37)


def test_what_is_not_a_number_stays_in_its_image(generator):
    x, t = torch.randn(2, 9, 20, generator=generator), torch.randn(5, 4, 20, generator=generator)
    x[0, 0, 0] = float("nan")
    z = cells.encode_cells(x, t, torch.full((5, 4), -60.0), torch.arange(9), 9, "logsumexp", two_sided=True)
    assert z[0, 0].isnan().all()
    assert not z[1].isnan().any()
