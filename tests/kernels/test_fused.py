"""Triton kernels against the definition, at odd sizes: on a GPU if there is one, else in Triton's interpreter."""

import pytest
import torch
from torch.testing import assert_close

from orbitpool import kernels, orbit
from orbitpool import transforms as T
from orbitpool.images.patches import dense_patches
from orbitpool.images.whitening import normalize_contrast
from orbitpool.together import Part

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


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_part_of_a_batch_is_drawn_as_in_all_of_it(dtype):
    """63 inputs, which short numbers are filled up to 64 of; a part has 21, filled up to 24."""
    part, short = Part(63, slice(20, 41), 1 / 3, False), dtype == torch.bfloat16
    a, b = logits(64 if short else 63, 37, 7, dtype)
    own = torch.nn.functional.pad(a[part.own].permute(1, 2, 0), (0, 3 if short else 0)).contiguous()
    *_, whole = fused.infer_(a, b, 63, torch.Generator(DEVICE).manual_seed(0))
    *_, drawn = fused.infer_(own.permute(2, 0, 1), b, 21, torch.Generator(DEVICE).manual_seed(0), part)
    assert_close(drawn[:21], whole[part.own], atol=0, rtol=0)


@pytest.mark.parametrize(("N", "K", "S"), SIZES)
def test_tilting_scales_and_averages(N, K, S):
    a, b = logits(N + 3, K, S)
    p, z, _ = fused.infer_(a, b, N, torch.Generator(DEVICE))
    slope = torch.linspace(-1, 2, K, device=DEVICE)
    before = p.clone(memory_format=torch.preserve_format)
    expected = before * (0.7 * slope * (1 - z) - 1)[..., None]
    assert_close(fused.tilt_(p, z, 0.7, slope, N), expected.sum(0) / N)
    assert_close(p, expected)


@pytest.mark.parametrize(("N", "K", "S"), SIZES)
@pytest.mark.parametrize("padding", [0, 5])
def test_expectation_is_the_posterior_and_its_mean(N, K, S, padding):
    a, b = logits(N + padding, K, S)
    expected = orbit.posterior((a + b)[:N].double())
    p, mean = fused.expect_(a, b, N)
    assert_close(p[:N].double(), expected, atol=1e-6, rtol=0)
    assert (p[N:] == 0).all()
    assert_close(mean.double(), expected.mean(0), atol=1e-6, rtol=0)


@pytest.mark.parametrize("size", [(1,), (37, 11), (50, 101)])
@pytest.mark.parametrize("decay", [0.0, 0.3])
def test_a_step_is_momentum(size, decay):
    rng = torch.Generator().manual_seed(0)
    t, velocity, gradient = (torch.randn(size, generator=rng) for _ in range(3))
    ours = [x.to(DEVICE) for x in (t, velocity, torch.nn.functional.pad(gradient, (0, 5)))]  # rows lie further apart
    fused.descend_(*ours[:2], ours[2][..., : size[-1]], 0.1, 0.9, decay)
    kernels.descend_(t, velocity, gradient, 0.1, 0.9, decay)
    assert_close(ours[0].cpu(), t)
    assert_close(ours[1].cpu(), velocity)


@pytest.mark.parametrize(("n", "size"), [(1, 1), (63, 49), (300, 10)])
@pytest.mark.parametrize("turned", [False, True])
def test_comparing_is_a_difference_of_means_and_a_mean_of_squares(n, size, turned):
    rng = torch.Generator().manual_seed(n)
    v, other = (torch.randn(n, size, generator=rng).to(DEVICE) for _ in range(2))
    got = fused.compare(v.T.contiguous().T if turned else v, other)
    for ours, expected in zip(got, kernels.compare(v.cpu(), other.cpu()), strict=True):
        assert_close(ours.cpu(), expected)


@pytest.mark.parametrize(
    ("transforms", "r", "channels", "n"),
    [
        (T.rotations(5, 16, 0.3), 5, 1, 1),
        (T.scalings(8, 6, step=1), 8, 1, 63),
        (T.scalings(8, 6, step=1), 8, 3, 63),
        (T.identity(11), 11, 3, 63),
        (T.rotations(11, 7, 0.3), 11, 1, 130),
    ],
)
def test_moving_there_and_back_are_the_sets_own(transforms, r, channels, n):
    moving = pytest.importorskip("orbitpool.kernels.moving")
    rng = torch.Generator().manual_seed(r)
    v = torch.randn(n, r * r * channels, generator=rng)
    expected = transforms.apply(v)
    size = expected.shape[2]
    for given in (v, v.T.contiguous().T)[: 2 if channels == 3 else 1]:
        u = moving.apply(given.to(DEVICE), transforms, torch.float32, 8).cpu()
        assert u.shape[0] % 8 == u.shape[2] % 8 == 0
        assert_close(u[:n, :, :size], expected)
        assert (u[n:] == 0).all()
        assert (u[:, :, size:] == 0).all()
    windows = torch.randn(size + 3, len(transforms), n + 2, generator=rng)
    back = moving.adjoint(windows.to(DEVICE).permute(2, 1, 0), transforms, v.shape)
    assert_close(back.cpu(), transforms.adjoint(windows.permute(2, 1, 0)[:n, :, :size].contiguous()))


def test_other_layouts_are_refused():
    with pytest.raises(ValueError, match="inputs must be last in memory"):
        fused.expect_(torch.zeros(4, 3, 2, device=DEVICE), torch.zeros(3, 2, device=DEVICE), 4)


@pytest.mark.parametrize(("n", "P", "D", "K", "S"), [(2, 20, 75, 37, 1), (1, 130, 27, 5, 7), (2, 9, 64, 70, 3)])
@pytest.mark.parametrize(("how", "two_sided"), [("max", True), ("logsumexp", True), ("logsumexp", False)])
def test_dense_encoding_is_encoding_then_adding_up(n, P, D, K, S, how, two_sided):
    dense = pytest.importorskip("orbitpool.kernels.dense")
    rng = torch.Generator().manual_seed(P)
    x, t = torch.randn(n, P, D, generator=rng), torch.randn(K, S, D, generator=rng) / D**0.5
    filled = torch.nn.functional.pad(x, (0, 0, 0, -P % dense.ROWS))
    bias = None if how == "max" else torch.randn(K, S, generator=rng)
    cell = torch.randint(-1, 3, (P,), generator=rng)
    z = kernels.reduce_templates(x.flatten(0, 1), t, bias, how, two_sided).view(n, P, -1)
    z = z.sub(0.25).clamp(min=0) if how == "max" else z.sigmoid()
    expected = torch.stack([z[:, cell == c].sum(1) for c in range(3)], 1)
    there = [None if a is None else a.to(DEVICE) for a in (filled, t, bias, cell)]
    got = dense.encode_cells(*there, 3, how, 0.25, two_sided)
    assert_close(got.cpu(), expected, atol=2e-3 * P**0.5, rtol=1e-3)  # a GPU rounds factors to ten bits


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("contrast", [None, 0.01])
def test_patches_are_cut_out_and_normalised(channels, stride, contrast):
    dense = pytest.importorskip("orbitpool.kernels.dense")
    rng = torch.Generator().manual_seed(channels)
    images, mean = torch.rand(2, 12, 11, channels, generator=rng), torch.randn(5 * 4 * channels, generator=rng)
    x = dense_patches(images, (5, 4), stride).flatten(1, 2).flatten(2)
    expected = x if contrast is None else normalize_contrast(x.flatten(0, 1), contrast).view(x.shape)
    got = dense.normalized_patches(images.to(DEVICE), (5, 4), stride, contrast, mean.to(DEVICE), torch.float32).cpu()
    assert_close(got[:, : x.shape[1]], expected - mean)
    assert got.shape[1] % dense.ROWS == 0
    assert (got[:, x.shape[1] :] == 0).all()
