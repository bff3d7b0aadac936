"""Triton kernels against the definition, at odd sizes: on a GPU if there is one, else in Triton's interpreter."""

import pytest
import torch
from torch.testing import assert_close

from orbitpool import kernels, orbit

fused = pytest.importorskip("orbitpool.kernels.fused", reason="needs triton")
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
SIZES = [(63, 37, 1), (63, 37, 7), (63, 37, 16), (130, 5, 33), (1, 3, 2), (300, 2, 7)]


def logits(n, K, S, dtype=torch.float32):
    """Logits with inputs last in memory, (N, K, S), and biases."""
    rng = torch.Generator().manual_seed(n * K * S)
    a = 3 * torch.randn(K, S, n, generator=rng)
    return a.to(DEVICE, dtype).permute(2, 0, 1), torch.randn(K, S, generator=rng).to(DEVICE)


@pytest.mark.parametrize(("N", "K", "S"), SIZES)
@pytest.mark.parametrize("padding", [0, 5])
def test_inference_is_the_posterior_and_a_draw_from_it(N, K, S, padding):
    a, b = logits(N + padding, K, S)
    expected = orbit.posterior((a + b)[:N].double())
    generator = torch.Generator(DEVICE).manual_seed(0)
    p, z, h = fused.infer_(a.clone(memory_format=torch.preserve_format), b, N, generator)
    assert_close(p[:N].double(), expected, atol=1e-6, rtol=0)
    assert_close(z[:N].double(), expected.sum(-1), atol=1e-6, rtol=0)
    assert (p[N:] == 0).all()
    assert (h[N:] == 0).all()
    u = torch.rand(K, N + padding, generator=torch.Generator(DEVICE).manual_seed(0), device=DEVICE).T[:N, :, None]
    below = p[:N].cumsum(-1)
    assert_close(h[:N], ((u < below) & (u >= below - p[:N])).float(), atol=0, rtol=0)
    again = fused.infer_(a.clone(memory_format=torch.preserve_format), b, N, None)
    assert again[2] is None
    assert_close(again[0], p, atol=0, rtol=0)


@pytest.mark.parametrize(("N", "K", "S"), SIZES)
def test_tilting_scales_and_averages(N, K, S):
    a, b = logits(N + 3, K, S)
    p, z, _ = fused.infer_(a, b, N, None)
    pull = torch.linspace(-1, 2, K, device=DEVICE)
    before = p.clone(memory_format=torch.preserve_format)
    assert_close(fused.tilt_(p, z, None, N), before.sum(0) / N)
    assert_close(p, before, atol=0, rtol=0)
    expected = before * (1 - pull * (1 - z))[..., None]
    assert_close(fused.tilt_(p, z, pull, N), expected.sum(0) / N)
    assert_close(p, expected)


@pytest.mark.parametrize("size", [(1,), (37, 11), (50, 101)])
def test_a_step_is_momentum(size):
    rng = torch.Generator().manual_seed(0)
    t, velocity, gradient = (torch.randn(size, generator=rng) for _ in range(3))
    ours = [x.to(DEVICE) for x in (t, velocity, gradient)]
    fused.descend_(*ours, 0.1, 0.9)
    kernels.descend_(t, velocity, gradient, 0.1, 0.9)
    assert_close(ours[0].cpu(), t)
    assert_close(ours[1].cpu(), velocity)


def test_other_layouts_are_refused():
    with pytest.raises(ValueError, match="inputs must be last in memory"):
        fused.infer_(torch.zeros(4, 3, 2, device=DEVICE), torch.zeros(3, 2, device=DEVICE), 4, None)


@pytest.mark.parametrize(("n", "P", "D", "K", "S"), [(2, 20, 75, 37, 1), (1, 130, 27, 5, 7), (2, 9, 64, 70, 3)])
@pytest.mark.parametrize(("how", "two_sided"), [("max", True), ("logsumexp", True), ("logsumexp", False)])
def test_dense_encoding_is_encoding_then_adding_up(n, P, D, K, S, how, two_sided):
    dense = pytest.importorskip("orbitpool.kernels.dense")
    rng = torch.Generator().manual_seed(P)
    x, t = torch.randn(n, P, D, generator=rng), torch.randn(K, S, D, generator=rng) / D**0.5
    bias = None if how == "max" else torch.randn(K, S, generator=rng)
    cell = torch.randint(-1, 3, (P,), generator=rng)
    z = kernels.reduce_templates(x.flatten(0, 1), t, bias, how, two_sided).view(n, P, -1)
    z = z.sub(0.25).clamp(min=0) if how == "max" else z.sigmoid()
    expected = torch.stack([z[:, cell == c].sum(1) for c in range(3)], 1)
    there = [None if a is None else a.to(DEVICE) for a in (x, t, bias, cell)]
    got = dense.encode_cells(*there, 3, how, 0.25, two_sided, torch.float32)  # the interpreter has no bfloat16
    assert_close(got.cpu(), expected, atol=2e-3 * P**0.5, rtol=1e-3)  # a GPU rounds factors to ten bits
