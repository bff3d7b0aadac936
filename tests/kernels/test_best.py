"""The fused search against all responses at once: on a GPU if there is one, else in Triton's interpreter."""

import pytest
import torch

from orbitpool import transforms as T

kernel = pytest.importorskip("orbitpool.kernels.best", reason="needs triton")
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
TYPES = [torch.float32] + [torch.bfloat16] * torch.cuda.is_available()  # the interpreter has no bfloat16


def by_definition(u, W, gain, used):
    """Every response, (N, K, S), and then the first of the largest, filter by filter and pose by pose."""
    a = torch.einsum("nsd,kd->nks", u, W).mul(gain).abs()
    a.scatter_(1, used[:, :, None].expand(-1, -1, a.shape[2]), -1.0)
    return a, torch.stack(torch.unravel_index(a.flatten(1).argmax(1), a.shape[1:]), 1)


def found(u, W, gain, used, dtype):
    """What the kernel finds, (N, 2), with numbers around all that it is given that it must not read."""
    n, S, D = u.shape
    around = torch.full((u.numel() + 2000,), float("nan"), dtype=dtype, device=DEVICE)
    moved = around[1000:-1000].view(D, S, n).copy_(u.permute(2, 1, 0)).permute(2, 1, 0)
    filters = torch.full((len(W) + 3, D + 5), float("nan"), dtype=dtype, device=DEVICE)
    filters[: len(W), :D] = W
    gains = torch.full((len(W) + 3, S), float("nan"), device=DEVICE)
    gains[: len(W)] = gain
    return torch.stack(kernel.best(moved, filters[: len(W), :D], gains[: len(W)], used.to(DEVICE)), 1).cpu()


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("r", [5, 8, 11])
@pytest.mark.parametrize(
    "poses",
    [lambda r: T.identity(r), lambda r: T.rotations(r, 7, 0.3), lambda r: T.translations(r, r - 3)],
    ids=["S=1", "S=7", "S=16"],
)
@pytest.mark.parametrize("dtype", TYPES)
def test_the_search_finds_the_largest_response(r, channels, poses, dtype, generator):
    transforms = poses(r)
    v = torch.randn(63, r * r * channels, generator=generator)
    u = transforms.apply(v)
    W = torch.randn(37, u.shape[2], generator=generator)
    if DEVICE == "cuda" and not kernel.room(W.to(dtype)):
        pytest.skip("filters are too long for the kernel")
    gain = 0.5 + torch.rand(37, len(transforms), generator=generator)
    for n_used in (0, 3):
        used = torch.rand(63, 37, generator=generator).argsort(1)[:, :n_used]
        a, expected = by_definition(u, W, gain, used)
        j, s = found(u, W, gain, used, dtype).T
        rounding = {torch.float32: 2e-3, torch.bfloat16: 2e-2}[dtype] * u.norm(dim=2).amax(1) * W.norm(dim=1).max()
        assert (a[torch.arange(63), j, s] >= a.amax((1, 2)) - (rounding if DEVICE == "cuda" else 1e-5)).all()
        assert not (used == j[:, None]).any()
        if DEVICE == "cpu":
            assert torch.equal(torch.stack([j, s], 1), expected)


@pytest.mark.parametrize(("n", "K", "S", "D"), [(63, 37, 7, 75), (1, 1, 1, 1), (130, 300, 3, 16), (65, 129, 2, 150)])
@pytest.mark.parametrize("dtype", TYPES)
def test_of_equals_the_first_wins(n, K, S, D, dtype, generator):
    """Small whole numbers are exact in every type, and often equal."""
    u = torch.randint(-2, 3, (n, S, D), generator=generator).float()
    W = torch.randint(-1, 2, (K, D), generator=generator).float()
    gain = 2.0 ** torch.randint(-1, 1, (K, S), generator=generator)
    u[:2] = 0  # every filter in every pose is equal
    for n_used in (0, 1, 5):
        if n_used < K:
            used = torch.rand(n, K, generator=generator).argsort(1)[:, :n_used]
            used[0] = torch.arange(n_used)
            a, expected = by_definition(u, W, gain, used)
            assert n < 60 or ((a == a.amax((1, 2), keepdim=True)).sum((1, 2)) > 1).any()
            assert torch.equal(found(u, W, gain, used, dtype), expected)
            assert expected[0].tolist() == [n_used, 0]


def test_what_is_not_a_number_gives_an_index_that_exists():
    u, W, gain = torch.full((3, 2, 9), float("nan")), torch.ones(5, 9), torch.ones(5, 2)
    assert (found(u, W, gain, torch.zeros(3, 0, dtype=torch.int64), torch.float32) == 0).all()


def test_other_layouts_are_refused():
    used, gain = torch.zeros(4, 0, dtype=torch.int64, device=DEVICE), torch.ones(3, 2, device=DEVICE)
    u = torch.zeros(9, 2, 4, device=DEVICE).permute(2, 1, 0)
    with pytest.raises(ValueError, match="inputs must be last in memory"):
        kernel.best(torch.zeros(4, 2, 9, device=DEVICE), torch.zeros(3, 9, device=DEVICE), gain, used)
    with pytest.raises(ValueError, match="a filter in one piece"):
        kernel.best(u, torch.zeros(9, 3, device=DEVICE).T, gain, used)
