"""What a compiler has made of `native.c` is what torch makes of the same numbers."""

from math import pi, prod

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from compilers import by_torch, needs_compiler, same
from orbitpool import TIRBM, ConvFeatures, kernels, orbit, together
from orbitpool import transforms as T
from orbitpool.kernels import native
from orbitpool.kernels.turning import Beside, whole
from orbitpool.together import Part

pytestmark = [needs_compiler, pytest.mark.usefixtures("poisoned")]

TURNS = [T.rotations(5, 8, pi / 4), T.rotations(6, 4, -pi / 2), T.rotations(4, 16, pi / 8, field=6)]
SETS = [T.identity(5), T.translations(7, 5), T.rotations(5, 7, 0.3), *TURNS]
KINDS = [torch.float32, torch.bfloat16]


def inferred(products, b, n, **drawing):
    """Probabilities (N, K, S) and what else `native.infer` gives, of whole products."""
    hidden = Beside([torch.empty_like(part) for part in products], 0, n, (n, *b.shape))
    z, mean, pose = native.infer(products, b, n, hidden, **drawing)
    return whole(hidden), z, mean, pose


@pytest.mark.parametrize("transforms", SETS)
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("n", [1, 63, 64, 300])
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_inputs_are_moved_as_torch_moves_them(transforms, channels, n, kind, generator):
    v = torch.randn(n, prod(transforms.field_shape) * channels, generator=generator)
    W = torch.zeros(1, prod(transforms.window_shape) * channels, dtype=kind)
    u, expected = kernels.move(v, transforms, W), by_torch(lambda: kernels.move(v, transforms, W))
    close = {"rtol": 1e-5, "atol": 1e-6} if kind == torch.float32 else {"rtol": 1e-2, "atol": 1e-6}
    assert_close(getattr(u, "parts", u), getattr(expected, "parts", expected), **close)


@pytest.mark.parametrize("transforms", [T.identity(5), T.translations(7, 5), TURNS[0]])
def test_sides_of_unequal_weight_are_rounded_alike(transforms, generator):
    """Or what both have in common, and cancels, would not."""
    W = 0.1 * torch.randn(37, 25, generator=generator)
    b = torch.randn(37, len(transforms), generator=generator) - 2

    def total(kind):
        seeded = torch.Generator().manual_seed(0)
        v = (torch.rand(500, prod(transforms.field_shape), generator=seeded) < 0.5).float()
        data, model = (kernels.move(some, transforms, W.to(kind)) for some in (v[:200], v[200:]))
        p, z, _ = kernels.infer(data, W.to(kind), b, 200, seeded, room=300)
        p_, _ = kernels.expect(model, W.to(kind), b, 300, beside=p)
        kernels.tilt_(p, z, 0.0, torch.zeros(37), 200)
        return kernels.correlate([(p, data, 1 / 200), (p_, model, 1 / 300)], torch.float32)

    assert abs(total(torch.bfloat16) - total(torch.float32)).mean() < 1e-4
    assert abs((total(torch.bfloat16) - total(torch.float32)).mean()) < 3e-5


def test_sides_meet_their_own_inputs(generator):
    turns, W, b = TURNS[0], torch.randn(37, 25, generator=generator), torch.randn(37, 8, generator=generator)
    v = torch.rand(2, 9, 25, generator=generator)
    u = [kernels.move(some, turns, W) for some in v]
    p, *_ = kernels.infer(u[0], W, b, 9, generator, room=9)
    h = p, kernels.expect(u[1], W, b, 9, beside=p)[0]
    for sides in ((0, 1), (1, 0), (1,), (0,), (0, 0), (1, 1)):
        expected = sum(torch.einsum("nks,nsd->kd", whole(h[side]), turns.apply(v[side])) for side in sides)
        assert_close(kernels.correlate([(h[side], u[side], 1.0) for side in sides], torch.float32), expected)


@pytest.mark.parametrize("transforms", SETS)
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("n", [1, 63, 300])
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_every_part_of_an_update_is_what_torch_makes_of_it(transforms, channels, n, kind, generator, monkeypatch):
    K, S = 37, len(transforms)
    v = torch.randn(n, prod(transforms.field_shape) * channels, generator=generator)
    W = (0.3 * torch.randn(K, prod(transforms.window_shape) * channels, generator=generator)).to(kind)
    b = torch.randn(K, S, generator=generator) - 2
    close = {"rtol": 1e-5, "atol": 1e-6} if kind == torch.float32 else {"rtol": 2e-2, "atol": 2e-2}
    u, faced = kernels.move(v, transforms, W), same(lambda: kernels.face(W, transforms), **close)
    p, on = by_torch(lambda: kernels.expect(u, faced, b, n))
    data, z, pose = kernels.infer(u, faced, b, n, generator, room=n)
    model, mean = kernels.expect(u, faced, b, n, beside=data)
    assert_close((z, on, mean), (p.sum(2), p.mean(0), p.mean(0)), rtol=1e-5, atol=1e-6)
    slope = torch.randn(K, generator=generator)
    tilted = -p * (1 - 0.7 * slope * (1 - z))[..., None]
    assert_close(whole(data), p, **close)
    assert_close(kernels.tilt_(data, z, 0.7, slope, n), tilted.mean(0), **close)
    assert_close(whole(data), tilted, **close)
    assert_close(whole(model), p, **close)
    assert (data.parts is model.parts) == (kind == torch.bfloat16 or S == 1 or transforms in TURNS)
    alone, summed = kernels.expect(u, faced, b, n)[0], {**close, "atol": 2 * close["atol"] * n**0.5}
    for alphas in ((0.5, 0.5), (-0.25, 1.0), (0.0, 2.0), (0.0, 0.0)):

        def total(data, model, alphas=alphas):
            return kernels.correlate([(data, u, alphas[0]), (model, u, alphas[1])], torch.float32)

        expected = by_torch(lambda total=total: total(tilted.clone(), p.clone()))
        assert_close(total(data, model), expected, **summed)
        assert_close(total(whole(data).clone(), alone), expected, **summed)
    for dense in (0.0, 1.0):
        monkeypatch.setattr(kernels.poses, "DENSE", dict.fromkeys((False, True), dense))
        same(lambda: kernels.generate_drawn(pose, W, transforms, v.shape), **close)


def test_all_of_it_is_done_in_c(digits, monkeypatch):
    """Short steps and sums in quarter turns, too."""
    seen, call = set(), native._call

    def noted(name, *given):
        kinds = {x.dtype for x in given if isinstance(x, torch.Tensor)}
        short, apart = (given[2], given[12] is not None) if name == "generate" else (torch.bfloat16 in kinds, False)
        seen.add((name, bool(short), apart))
        call(name, *given)

    monkeypatch.setattr(native, "_call", noted)
    monkeypatch.setattr(kernels.products, "SHORT", True)
    options = {"n_iter": 1, "random_state": 0, "device": "cpu", "precision": "bfloat16"}
    for transforms in (None, T.rotations(8, 8, pi / 4), T.translations(8, 4, 2)):
        TIRBM(200, transforms, batch_size=100, **options).fit(digits[:200].astype(np.float32))
    machine = TIRBM(5, visible="gaussian", **options)
    images = digits[:20].reshape(-1, 8, 8).astype(np.float32)
    ConvFeatures(machine, patch_size=5, n_patches=50, device="cpu").fit(images).transform(images)
    assert {name for name, *_ in seen} == set(native.ARGUMENTS)
    assert ("descend", True, False) in seen
    assert {("generate", True, False), ("generate", True, True)} <= seen


def test_filters_of_many_pixels_are_taken_apart_and_put_together(generator):
    turns, close = T.rotations(20, 4, pi / 2), {"rtol": 1e-5, "atol": 1e-5}
    v, W = torch.rand(5, 1200, generator=generator), torch.randn(2, 1200, generator=generator)
    u, h = kernels.move(v, turns, W), torch.rand(2, 4, 5, generator=generator).permute(2, 0, 1)
    same(lambda: kernels.face(W, turns), **close)
    same(lambda: kernels.correlate([(h.clone(), u, 1.0)], torch.float32), **close)


@pytest.mark.parametrize("usual", [torch.float64, torch.bfloat16])
def test_what_torch_makes_of_plain_numbers_does_not_matter(usual, generator):
    X = (torch.rand(60, 25, generator=generator) < 0.3).float().numpy()

    def learned():
        options = {"batch_size": 20, "n_iter": 1, "random_state": 0, "device": "cpu"}
        return TIRBM(5, T.rotations(5, 4, pi / 2), **options).fit(X).components_

    expected, before = learned(), torch.get_default_dtype()
    torch.set_default_dtype(usual)
    try:
        assert np.array_equal(learned(), expected)
    finally:
        torch.set_default_dtype(before)


def test_numbers_with_gaps_are_refused():
    with pytest.raises(ValueError, match=r"lie \(1, 4\) apart"):
        inferred([torch.zeros(3, 4).T], torch.zeros(4, 1), 3)


def test_what_is_tilted_is_rounded_as_torch_rounds():
    """One, times each number from 1/2 to 2 in turn that is short, half-way to the next one, or just beside that."""
    short = torch.arange(0x3F00, 0x4000, dtype=torch.int32) << 16
    z = torch.cat([short, *(short + 2**15 + aside for aside in (-1, 0, 1))]).view(torch.float32)
    extreme = torch.tensor([1.0, float("inf"), -float("inf"), float("nan")])
    p = extreme.expand(len(z), 4).T.to(torch.bfloat16).contiguous()
    hidden = Beside([p], 0, len(z), (len(z), 4, 1))
    mean = native.tilt_(hidden, z.expand(4, -1).contiguous().T, torch.ones(4))
    assert torch.equal(p[0], -z.to(torch.bfloat16))
    assert_close(p[1:], -extreme[1:, None].expand(3, len(z)).to(torch.bfloat16), equal_nan=True)
    assert_close(mean[:, 0], torch.cat([-z.mean()[None], -extreme[1:]]), equal_nan=True)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_step_is_a_step(kind, generator):
    t, velocity, gradient = torch.randn(3, 37, 53, generator=generator)
    gradient = gradient.to(kind).float()

    def stepped():
        moved = t.clone(), velocity.clone()
        kernels.descend_(*moved, gradient, 0.1, 0.9, 0.01)
        return moved

    after, speed = same(stepped)
    assert_close(speed, 0.9 * velocity - 0.1 * (gradient + 0.01 * t))
    assert_close(after, t + speed)


def chances(seed, places):
    """SplitMix64, the highest 24 bits as a share of one."""
    with np.errstate(over="ignore"):
        x = np.uint64(seed) + (places.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return torch.from_numpy((x ^ (x >> np.uint64(31))) >> np.uint64(40)).double() / 2**24


@pytest.mark.parametrize("S", [1, 7, 16])
def test_poses_are_drawn_by_numbers_that_depend_on_the_seed_and_the_place_alone(S, generator):
    K, n = 37, 300
    b, products = torch.randn(K, S, generator=generator) - 1, torch.randn(K, S * n, generator=generator)
    p, _, _, pose = inferred([products.clone()], b, n, seed=2**63 - 5, batch=n)
    u = chances(2**63 - 5, np.arange(K * n).reshape(K, n)).T
    below = p.double().cumsum(2)
    near = (below - u[..., None]).abs().amin(2) < 1e-6
    expected = (below <= u[..., None]).sum(2)
    assert near.float().mean() < 1e-3
    assert torch.equal(pose[~near], torch.where(expected == S, orbit.OFF, expected).int()[~near])
    own = slice(120, 290)
    some = products.view(K, S, n)[:, :, own].reshape(K, -1).contiguous()
    assert torch.equal(inferred([some], b, 170, seed=2**63 - 5, first=own.start, batch=n)[3], pose[own])


def test_there_may_be_more_poses_than_are_held_at_a_time(generator):
    b, products = torch.randn(2, 9000, generator=generator) - 9, torch.randn(2, 9000 * 3, generator=generator)
    p, z, mean, pose = inferred([products], b, 3, seed=1, batch=3)
    exact = orbit.posterior((products.view(2, 9000, 3) + b[..., None]).permute(2, 0, 1).double())
    assert_close((p.double(), z.double(), mean.double()), (exact, exact.sum(2), exact.mean(0)), rtol=1e-4, atol=1e-8)
    assert ((pose >= orbit.OFF) & (pose < 9000)).all()


def test_a_generator_draws_other_poses_each_time(generator):
    given = torch.zeros(50, 1, 25), torch.ones(6, 25), torch.zeros(6, 1), 50
    first, second = (kernels.infer(*given, generator)[2] for _ in range(2))
    assert not torch.equal(first, second)
    assert torch.equal(first, kernels.infer(*given, torch.Generator().manual_seed(0))[2])
    assert not torch.equal(first, kernels.infer(*given, torch.Generator().manual_seed(1))[2])


def test_a_part_of_a_batch_is_drawn_as_in_all_of_it(generator):
    v, W, b = torch.rand(50, 25, generator=generator), torch.randn(6, 25, generator=generator), torch.zeros(6, 1)
    seeded = lambda: torch.Generator().manual_seed(3)  # noqa: E731
    u, own = v[:, None], slice(20, 35)
    *_, pose = kernels.infer(u, W, b, 50, seeded())
    *_, some = kernels.infer(u[own], W, b, 15, seeded(), Part(50, own, 0.3, False))
    assert torch.equal(some, pose[own])
    *_, alone = kernels.infer(u, W, b, 50, seeded(), together.alone(50))
    assert torch.equal(alone, pose)


@pytest.mark.parametrize("n", [1, 256, 40_000])
def test_poses_are_drawn_as_often_as_they_are_likely(n):
    K, S = 40_000 // n, 3
    b = torch.tensor([-1.0, 0.5, -3.0]).expand(K, S).contiguous()
    p, _, _, pose = inferred([torch.zeros(K, S * n)], b, n, seed=11, batch=n)
    share = torch.bincount(pose.flatten() + 1, minlength=S + 1) / (K * n)
    expected = torch.cat([1 - p[0, 0].sum()[None], p[0, 0]])
    assert_close(share, expected, rtol=0, atol=4 * 0.5 / (K * n) ** 0.5)


def test_exponentials_are_right_to_the_last_digits():
    a = torch.linspace(-400, 90, 100_003)
    p, z, _, _ = inferred([a[None].clone()], torch.zeros(1, 1), len(a))
    exact = a.double().sigmoid()
    off = ((p[:, 0, 0].double() - exact) / exact).abs()
    assert off[a > -79].max() < 4e-7
    assert p[a <= -79].max() < 1e-34
    assert torch.equal(z, p[..., 0])


@pytest.mark.parametrize("extreme", [float("inf"), float("-inf"), float("nan"), 3e38, -3e38])
@pytest.mark.parametrize("S", [1, 4])
def test_what_is_too_large_stays_where_it_is(extreme, S, generator):
    products, b = torch.randn(3, S * 40, generator=generator), torch.zeros(3, S)
    products[1, 5] = extreme
    exact = orbit.posterior(products.view(3, S, 40).permute(2, 0, 1).double())
    exact[5, 1] = exact[5, 1] if abs(extreme) < 1e39 or extreme < 0 else float("nan")
    p, z, _, pose = inferred([products], b, 40, seed=1, batch=40)
    assert_close(p.double(), exact, rtol=1e-5, atol=1e-6, equal_nan=True)
    assert_close(z.double(), exact.sum(2), rtol=1e-5, atol=1e-6, equal_nan=True)
    assert ((pose >= orbit.OFF) & (pose < S)).all()


def test_results_do_not_depend_on_the_number_of_threads(generator):
    v = (torch.rand(300, 64, generator=generator) < 0.3).float()
    turns, before = T.rotations(8, 8, pi / 4), torch.get_num_threads()
    W, b = torch.randn(200, 64, generator=generator), torch.zeros(200, 8)
    products = torch.randn(200, 8 * 300, generator=generator)
    results = []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            moved = kernels.move(v, turns, W).parts
            p, z, on, pose = inferred([products], b, 300, seed=5, batch=300)
            tilted = Beside([p.permute(1, 2, 0).reshape(200, -1).clone()], 0, 300, p.shape)
            mean = native.tilt_(tilted, z, torch.ones(200))
            down = kernels.generate_drawn(pose, W, turns, v.shape)
            results.append([p, z, on, pose, down, mean, *tilted.parts, *moved])
    finally:
        torch.set_num_threads(before)
    for others in results[1:]:
        assert all(map(torch.equal, others, results[0]))


def test_gradients_and_numbers_of_other_types_are_left_to_torch():
    x = torch.ones(4, 6)
    assert native.ready(x)
    assert not native.ready(x.double())
    assert not native.ready(x.T)
    assert not native.ready(x, x[:, ::2])
    assert not native.ready(x.bfloat16())
    assert native.ready(x.bfloat16(), kinds=native.BRIEF)
    assert not native.ready(x.to("meta"))
    for watched in (torch.enable_grad(), torch.autocast("cpu", torch.float16)):
        with watched:
            assert not native.ready(x)


@pytest.mark.parametrize("transforms", [None, T.rotations(8, 8, pi / 4)])
def test_what_is_learned_is_as_good(digits, transforms):
    X = digits[:1000].astype(np.float32)

    def learned():
        model = TIRBM(30, transforms, batch_size=20, n_iter=5, random_state=0, device="cpu").fit(X)
        return model.history_["reconstruction_error"][-1]

    compiled, plain = learned(), by_torch(learned)
    assert compiled != plain
    assert abs(compiled / plain - 1) < 0.03
