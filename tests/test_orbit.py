"""The laws of the model, by enumeration and by autograd, in float64."""

from itertools import product
from math import pi

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from orbitpool import orbit
from orbitpool import transforms as T

F64 = torch.float64


class Tiny:
    """A model small enough to enumerate: a 2x2 window moving over a 2x3 field."""

    def __init__(self, seed=0, K=3, transforms=None, visible=None, n=5):
        self.transforms = transforms or T.translations((2, 3), (2, 2))
        self.visible = visible or orbit.Binary()
        rng = torch.Generator().manual_seed(seed)
        S, d2, d1 = self.transforms.to_dense().shape
        self.W = torch.randn(K, d2, generator=rng, dtype=F64, requires_grad=True)
        self.b = torch.randn(K, S, generator=rng, dtype=F64, requires_grad=True)
        self.c = torch.randn(d1, generator=rng, dtype=F64, requires_grad=True)
        v = torch.rand(n, d1, generator=rng, dtype=F64)
        self.v = v.round() if isinstance(self.visible, orbit.Binary) else v * 4 - 2

    @property
    def templates(self):
        return orbit.templates(self.W, self.transforms)

    def logits(self, v):
        return orbit.logits(self.visible.scaled(v), self.templates, self.b)

    def free_energy(self, v):
        return orbit.free_energy(v, orbit.total(self.logits(v)), self.c, self.visible)

    def every_hidden_state(self):
        """All (S+1)^K matrices H, (M, K, S)."""
        K, S = self.b.shape
        return orbit.hidden(torch.tensor(list(product(range(-1, S), repeat=K))), S, F64)

    def energies(self, v):
        """E(v, H) for every H, (N, M)."""
        H = self.every_hidden_state()
        energies = [orbit.energy(x.expand(len(H), -1), H, self.templates, self.b, self.c, self.visible) for x in v]
        return torch.stack(energies)


tiny_models = st.builds(
    Tiny,
    seed=st.integers(0, 2**31),
    K=st.integers(1, 3),
    transforms=st.sampled_from([T.identity((2, 2)), T.translations((2, 3), (2, 2)), T.rotations(2, 4, 1.0, field=3)]),
    visible=st.sampled_from([orbit.Binary(), orbit.Gaussian(), orbit.Gaussian(0.5)]),
)


@given(tiny_models)
def test_energy_is_eq_5(model):
    H = model.every_hidden_state()
    v = model.v[:1].expand(len(H), -1)
    moved = model.transforms.apply(v / getattr(model.visible, "sigma", 1.0))  # T_s v
    filters = torch.einsum("nks,kd,nsd->n", H, model.W, moved)
    gaussian = isinstance(model.visible, orbit.Gaussian)
    own = ((v - model.c) ** 2).sum(1) / (2 * model.visible.sigma**2) if gaussian else -v @ model.c
    expected = own - filters - (H * model.b).sum((1, 2))
    assert_close(orbit.energy(v, H, model.templates, model.b, model.c, model.visible), expected)


@given(tiny_models)
def test_free_energy_equals_enumeration(model):
    assert_close(model.free_energy(model.v), -torch.logsumexp(-model.energies(model.v), 1))


@given(tiny_models)
def test_posterior_and_pooled_equal_enumeration(model):
    weights = torch.softmax(-model.energies(model.v), 1)
    H = model.every_hidden_state()
    a = model.logits(model.v)
    assert_close(orbit.posterior(a), torch.einsum("nm,mks->nks", weights, H))
    assert_close(orbit.pooled(a), torch.einsum("nm,mk->nk", weights, H.sum(-1)))
    assert_close(orbit.pooled(a), torch.sigmoid(torch.logsumexp(a, -1)))


def test_decoding_is_the_conditional_mean_of_eq_8():
    model = Tiny()
    bits = torch.tensor(list(product([0.0, 1.0], repeat=6)), dtype=F64)
    for h in model.every_hidden_state()[::7]:
        energies = orbit.energy(bits, h.expand(len(bits), -1, -1), model.templates, model.b, model.c, model.visible)
        expected = torch.softmax(-energies, 0) @ bits
        assert_close(orbit.decode(h[None], model.templates, model.c, model.visible)[0], expected)


def test_gaussian_conditional_minimises_the_energy():
    model = Tiny(visible=orbit.Gaussian(0.7))
    h = model.every_hidden_state()[[11]]
    mean = orbit.decode(h, model.templates, model.c, model.visible).detach().requires_grad_()
    energy = orbit.energy(mean, h, model.templates, model.b, model.c, model.visible)
    (slope,) = torch.autograd.grad(energy.sum(), mean, create_graph=True)
    assert_close(slope, torch.zeros_like(slope))
    assert_close(torch.autograd.grad(slope.sum(), mean)[0], torch.full_like(mean, 1 / 0.7**2))


@given(tiny_models, st.floats(0.2, 3.0))
def test_contrastive_statistics_are_the_gradient_of_the_free_energies(model, shift):
    """Law 2: differences of sum_s p_s T_s v, of p and of v are what autograd makes of F(v) - F(v-)."""
    negative = model.visible.mean(torch.sin(model.v * 7 + shift), model.c.detach())

    def statistics(v):
        p, x = orbit.posterior(model.logits(v)), model.visible.scaled(v)
        return torch.einsum("nks,nsd->kd", p, model.transforms.apply(x)), p.sum(0)

    objective = (model.free_energy(model.v) - model.free_energy(negative)).sum()
    W, b, c = torch.autograd.grad(objective, [model.W, model.b, model.c])
    (W_up, b_up), (W_down, b_down) = statistics(model.v), statistics(negative)
    scale = 1.0 if isinstance(model.visible, orbit.Binary) else model.visible.sigma**2
    assert_close(W, W_down - W_up, atol=1e-6, rtol=1e-6)
    assert_close(b, b_down - b_up, atol=1e-6, rtol=1e-6)
    assert_close(c, (negative - model.v).sum(0) / scale, atol=1e-6, rtol=1e-6)


@given(tiny_models)
def test_slope_of_the_pooled_unit_is_exact(model):
    """dE[z_j]/da_js = h_js (1 - z_j), which the sparsity term of eq. 9 needs."""
    a = model.logits(model.v).detach().requires_grad_()
    (slope,) = torch.autograd.grad(orbit.pooled(a).sum(), a)
    assert_close(slope, orbit.posterior(a) * (1 - orbit.pooled(a))[..., None])


def test_an_orbit_of_one_is_the_plain_rbm(generator):
    """Law 3: eqs 1, 3 and 4 term by term."""
    model = Tiny(transforms=T.identity((2, 2)))
    W, b, c, v = model.W, model.b[:, 0], model.c, model.v
    h = torch.bernoulli(torch.full((len(v), 3), 0.5, dtype=F64), generator=generator)
    assert_close(
        orbit.energy(v, h[..., None], model.templates, model.b, c, model.visible),
        -torch.einsum("nd,kd,nk->n", v, W, h) - h @ b - v @ c,
    )
    assert_close(orbit.pooled(model.logits(v)), torch.sigmoid(v @ W.T + b))
    assert_close(orbit.posterior(model.logits(v))[..., 0], torch.sigmoid(v @ W.T + b))
    assert_close(orbit.decode(h[..., None], model.templates, c, model.visible), torch.sigmoid(h @ W + c))


def test_features_do_not_change_along_a_closed_orbit(digits, generator):
    """Law 5: quarter turns of real digits permute the poses and leave the pooled features alone."""
    turns = T.rotations(8, count=4, step=pi / 2)
    W = torch.randn(20, 64, dtype=F64, generator=generator)
    b = torch.randn(20, 1, dtype=F64, generator=generator).expand(20, 4)  # a filter's poses must be equally likely
    X = torch.from_numpy(digits[:100])
    posed = orbit.templates(W, turns)
    features = orbit.pooled(orbit.logits(X, posed, b))
    assert features.std() > 0.1
    for moved in turns.apply(X).unbind(1):
        a = orbit.logits(moved, posed, b)
        assert_close(orbit.pooled(a), features)
    quarter = orbit.posterior(orbit.logits(turns.apply(X)[:, 2], posed, b))  # turned by +90°
    assert_close(quarter, orbit.posterior(orbit.logits(X, posed, b)).roll(-1, -1))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("size", [1e4, -1e4, 88.0, -104.0, 0.0])
def test_huge_logits_stay_finite(dtype, size):
    a = torch.tensor([[[size, 0.0], [size, size], [-size, size]]], dtype=dtype, requires_grad=True)
    v, c = torch.zeros(1, 2, dtype=dtype), torch.zeros(2, dtype=dtype)
    for value in (orbit.posterior(a), orbit.pooled(a), orbit.free_energy(v, orbit.total(a), c, orbit.Binary())):
        assert value.isfinite().all()
        assert torch.autograd.grad(value.sum(), a)[0].isfinite().all()
    exact = -torch.nn.functional.softplus(torch.logsumexp(a.double(), -1)).sum(-1)
    assert_close(orbit.free_energy(v, orbit.total(a), c, orbit.Binary()).double(), exact, rtol=1e-6, atol=0)
    p = orbit.posterior(a)
    assert_close(p.sum(-1), orbit.pooled(a))
    expected = torch.softmax(torch.cat([a, torch.zeros_like(a[..., :1])], -1), -1)[..., :-1]
    assert_close(p, expected)
    assert_close(orbit.posterior(a.detach().clone(), overwrite=True), expected)
    assert_close(orbit.total(a.detach().clone(), overwrite=True), torch.logsumexp(a, -1))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, F64])
@pytest.mark.parametrize("high", [5.0, 20.0, 79.0, 200.0])
def test_overwriting_gives_what_copying_does(dtype, high, generator):
    a = (torch.rand(3, 4, 5, generator=generator) * high).to(dtype)
    assert_close(orbit.posterior(a.clone(), overwrite=True), orbit.posterior(a))
    assert_close(orbit.pooled(a.clone(), overwrite=True), orbit.pooled(a), atol=1e-2, rtol=1e-2)


def test_sampling_follows_the_posterior(generator):
    p = torch.tensor([[[0.2, 0.5, 0.1], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0]]])
    poses = orbit.sample(p.expand(40_000, -1, -1), generator)
    drawn = orbit.hidden(poses, 3).mean(0)
    assert_close(drawn, p[0], atol=0.01, rtol=0)
    assert ((poses >= -1) & (poses < 3)).all()
    assert (poses[:, 1] == -1).all()
    assert (poses[:, 2] == 0).all()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_rare_poses_are_drawn_as_rarely_as_they_should(generator, dtype):
    poses = orbit.sample(torch.full((1000, 1000, 4), 1e-4, dtype=dtype), generator)
    drawn = torch.stack([(poses == s).double().mean() for s in range(4)])
    assert_close(drawn, torch.full((4,), 1e-4, dtype=torch.float64), atol=5e-5, rtol=0)


def test_sampling_is_repeatable_by_seed(generator):
    p = torch.rand(50, 7, 3, generator=generator) / 3
    first, second, other = (orbit.sample(p, torch.Generator().manual_seed(seed)) for seed in (1, 1, 2))
    assert torch.equal(first, second)
    assert not torch.equal(first, other)


def test_visible_units_are_drawn_around_their_mean(generator):
    mean = torch.tensor([0.1, 0.9]).expand(40_000, 2)
    bits = orbit.Binary().draw(mean, generator)
    assert set(bits.unique().tolist()) == {0.0, 1.0}
    assert_close(bits.mean(0), mean[0], atol=0.01, rtol=0)
    reals = orbit.Gaussian(0.5).draw(mean, generator)
    assert_close(reals.mean(0), mean[0], atol=0.01, rtol=0)
    assert_close(reals.std(0), torch.full((2,), 0.5), atol=0.01, rtol=0)


def test_what_does_not_fit_is_refused(generator):
    elsewhere = torch.empty(1, 2, 3, device="meta")
    for draw in (orbit.sample, orbit.Binary().draw, orbit.Gaussian().draw):
        with pytest.raises(ValueError, match="generator is on cpu but the numbers are on meta; make it with"):
            draw(elsewhere, generator)
    with pytest.raises(ValueError, match=r"bias has shape \(2,\); templates of \(2, 3\) poses need one each"):
        orbit.logits(torch.zeros(1, 6), torch.zeros(2, 3, 6), torch.zeros(2))
    with pytest.raises(ValueError, match=r"sigma is 0\.0; a standard deviation must be greater than 0"):
        orbit.Gaussian(0.0)
    with pytest.raises(ValueError, match="inputs have 5 numbers but templates have 6"):
        orbit.logits(torch.zeros(1, 5), torch.zeros(2, 3, 6), torch.zeros(2, 3))
