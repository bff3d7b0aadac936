from math import pi

import pytest
import torch
from torch.testing import assert_close

from orbitpool import kernels, orbit
from orbitpool import transforms as T
from orbitpool.kernels.turning import Turned

F64 = torch.float64
TURNS = [T.rotations(5, 8, pi / 4), T.rotations(6, 4, -pi / 2), T.rotations(4, 16, pi / 8, field=6)]
SETS = [T.identity(5), T.translations(7, 5), T.rotations(5, 7, 0.3), *TURNS]


def hidden(drawn, like):
    """The hidden units that were drawn, (N, K, S)."""
    return drawn if drawn.ndim == 3 else torch.zeros_like(like).index_put_(tuple(drawn), torch.ones((), dtype=F64))


@pytest.mark.parametrize("transforms", SETS)
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("n", [1, 63, 130])
def test_products_are_the_three_sums_of_the_model(transforms, channels, n, generator, monkeypatch):
    """sum_njs h_njs w_j' T_s v_n, with each of h, w and v taken out in turn, from dense templates."""
    S, d2, d1 = transforms.to_dense().shape
    K = 37
    v = torch.randn(n, d1 * channels, generator=generator, dtype=F64)
    W = torch.randn(K, d2 * channels, generator=generator, dtype=F64)
    b = torch.randn(K, S, generator=generator, dtype=F64)
    posed, u = orbit.templates(W, transforms), kernels.move(v, transforms, W)
    assert isinstance(u, Turned) == (transforms in TURNS)
    a = kernels.respond(u, W, b)
    assert_close(a, orbit.logits(v, posed, b))
    p = orbit.posterior(a)
    inferred, z, drawn = kernels.infer(u, W, b, n, torch.Generator().manual_seed(0), pooled=True)
    assert_close(inferred, p)
    assert_close(z, orbit.pooled(a))
    assert_close(hidden(drawn, p), orbit.hidden(orbit.sample(p, torch.Generator().manual_seed(0)), S, F64))
    slope = torch.randn(K, generator=generator, dtype=F64)
    tilted = p * (1 - 0.7 * slope * (1 - z))[..., None]
    assert_close(kernels.tilt_(inferred, z, 0.7, slope, n), tilted.mean(0))
    assert_close(inferred, tilted)
    total = torch.einsum("nks,nsd->kd", p, transforms.apply(v))
    spent = p.clone()
    assert_close(kernels.correlate([(spent, u, -0.5)], F64), -0.5 * total)
    assert_close(transforms.adjoint(kernels.generate(p, W)), torch.einsum("nks,ksd->nd", p, posed))
    h = hidden(drawn, p)
    assert 0 < h.sum() <= n * K
    for dense in (0.0, 1.0):
        monkeypatch.setattr(kernels.poses, "DENSE", dense)
        assert_close(kernels.generate_drawn(drawn, W, transforms, v.shape), torch.einsum("nks,ksd->nd", h, posed))


def test_nothing_on_gives_nothing():
    shifts = T.translations(4, 3)
    off = torch.empty(3, 0, dtype=torch.int64)
    assert (kernels.generate_drawn(off, torch.ones(8, 9), shifts, (5, 16)) == 0).all()
