from math import pi, prod

import pytest
import torch
from torch.testing import assert_close

from orbitpool import kernels, orbit
from orbitpool import transforms as T
from orbitpool.kernels.turning import Turned

F64 = torch.float64
TURNS = [T.rotations(5, 8, pi / 4), T.rotations(6, 4, -pi / 2), T.rotations(4, 16, pi / 8, field=6)]
SETS = [T.identity(5), T.translations(7, 5), T.rotations(5, 7, 0.3), *TURNS]


def few(transforms, generator):
    """Nine inputs, and five filters."""
    shapes = (9, prod(transforms.field_shape)), (5, prod(transforms.window_shape))
    return (torch.rand(shape, generator=generator) for shape in shapes)


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
    inferred, z, drawn = kernels.infer(u, W, b, n, torch.Generator().manual_seed(0))
    assert_close(inferred, p)
    assert_close(z, orbit.pooled(a))
    h = drawn if S == 1 else orbit.hidden(drawn, S, F64)
    assert torch.equal(h, orbit.hidden(orbit.sample(p, torch.Generator().manual_seed(0)), S, F64))
    slope = torch.randn(K, generator=generator, dtype=F64)
    tilted = -p * (1 - 0.7 * slope * (1 - z))[..., None]
    assert_close(kernels.tilt_(inferred, z, 0.7, slope, n), tilted.mean(0))
    assert_close(inferred, tilted)
    total = torch.einsum("nks,nsd->kd", p, transforms.apply(v))
    spent = p.clone()
    assert_close(kernels.correlate([(spent, u, -0.5)], F64), -0.5 * total)
    for one, other in ((-0.5, 0.5), (0.25, 1.0), (0.0, 2.0)):
        assert_close(kernels.correlate([(p.clone(), u, one), (p.clone(), u, other)], F64), (one + other) * total)
    assert_close(transforms.adjoint(kernels.generate(p, W)), torch.einsum("nks,ksd->nd", p, posed))
    assert 0 < h.sum() <= n * K
    for dense in (0.0, 1.0):
        monkeypatch.setattr(kernels.poses, "DENSE", dict.fromkeys((False, True), dense))
        assert_close(kernels.generate_drawn(drawn, W, transforms, v.shape), torch.einsum("nks,ksd->nd", h, posed))


@pytest.mark.parametrize("transforms", SETS[1:])
def test_filters_that_face_moved_inputs_give_the_same(transforms, generator):
    v, W = (
        torch.rand(9, prod(transforms.field_shape), generator=generator),
        torch.rand(5, prod(transforms.window_shape)),
    )
    u, facing = kernels.move(v, transforms, W), kernels.face(W, transforms)
    assert torch.equal(kernels.respond(u, facing), kernels.respond(u, W))


@pytest.mark.parametrize("transforms", SETS)
@pytest.mark.parametrize("extreme", [1e3, -1e3, float("nan")])
def test_exponentials_that_are_too_large_are_not_taken(transforms, extreme, generator):
    v, W = (
        torch.rand(9, prod(transforms.field_shape), generator=generator),
        torch.rand(5, prod(transforms.window_shape)),
    )
    b = torch.zeros(5, len(transforms))
    b[2, 0] = extreme
    u = kernels.move(v, transforms, W)
    p, z, _ = kernels.infer(u, W, b, 9, generator)
    exact = orbit.posterior(kernels.respond(u, W, b).double())
    assert_close(p.double(), exact, rtol=1e-5, atol=1e-6, equal_nan=True)
    assert_close(z.double(), exact.sum(-1), rtol=1e-5, atol=1e-6, equal_nan=True)


def test_nothing_on_gives_nothing():
    shifts = T.translations(4, 3)
    off = torch.full((5, 8), orbit.OFF)
    assert (kernels.generate_drawn(off, torch.ones(8, 9), shifts, (5, 16)) == 0).all()
