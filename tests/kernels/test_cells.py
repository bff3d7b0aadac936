import pytest
import torch
from torch.testing import assert_close

from orbitpool.kernels import cells


@pytest.mark.parametrize("how", ["logsumexp", "max"])
@pytest.mark.parametrize("two_sided", [False, True])
@pytest.mark.parametrize("size", [1.0, 300.0])
@pytest.mark.parametrize("responses", [1, 1000, 2**21])
def test_features_are_summed_over_cells(how, two_sided, size, responses, generator, monkeypatch):
    """Also where exponentials are too large to be added up, and in pieces of any size."""
    monkeypatch.setattr(cells, "RESPONSES", responses)
    n, P, D, K, S = 3, 35, 27, 37, 7
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
