from itertools import product
from math import pi

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from sklearn.neural_network import BernoulliRBM
from torch.testing import assert_close

from orbitpool import TIRBM, orbit
from orbitpool import transforms as T
from orbitpool.kernels import descent, native, poses, products
from orbitpool.learners.sparsity import DISTANCES
from orbitpool.learners.training import State

F64 = torch.float64
SHIFTS = T.translations((2, 3), (2, 2))


def started(X, **options):
    """A model and its first state, in float64, with momentum already under way."""
    model = TIRBM(4, random_state=0, **{"transforms": SHIFTS, "batch_size": len(X), **options})
    model._check()
    state = model._start(model._source(X, reset=True), 0)
    for name in "Wbc":
        rng = torch.Generator().manual_seed(ord(name))
        state.tensors[name] += 0.5 * torch.randn(state.tensors[name].shape, generator=rng, dtype=F64)
        state.tensors[f"{name}.velocity"] += 0.1
    return model, state


def free_energy(model, t, v):
    visible = model._visible(t)
    a = orbit.logits(visible.scaled(v), orbit.templates(t["W"], model.transforms), t["b"])
    return orbit.free_energy(v, orbit.total(a), t["c"], visible), orbit.pooled(a)


def walk(model, v, t, units, generator):
    """Up and down once, by the definition."""
    drawn = orbit.sample(model._up(v, t, units)[1], generator)
    h = orbit.hidden(drawn, len(model._operators), v.dtype)
    return orbit.decode(h, orbit.templates(t["W"], model._operators), t["c"], units)


@pytest.mark.parametrize("visible", ["binary", "gaussian"])
@pytest.mark.parametrize("distance", ["l2", "kl"])
@pytest.mark.parametrize("chain", [{"cd_steps": 1}, {"cd_steps": 3, "sample_visible": True}, {"persistent": True}])
def test_an_update_is_the_gradient_of_the_objective(visible, distance, chain):
    """Law 2, for the whole update: contrastive divergence, sparsity, weight decay and momentum."""
    v = torch.rand(7, 6, dtype=F64, generator=torch.Generator().manual_seed(1)) * (1 if visible == "binary" else 3)
    model, state = started(v, visible=visible, sigma=0.8, sparsity_distance=distance, weight_decay=0.01, **chain)
    before, copy = state.copy(), state.copy()
    model._update(state, v)

    t, units = copy.tensors, model._visible(copy.tensors)  # walk the same chain once more, from the same random state
    step = walk(model, v, t, units, copy.generator)
    settle = units.draw if model.sample_visible else lambda mean, _: mean
    negative = t["chains"] if model.persistent else settle(step, copy.generator)
    for _ in range(model.cd_steps - (not model.persistent)):
        step = walk(model, negative, t, units, copy.generator)
        negative = settle(step, copy.generator)

    leaves = {name: t[name].clone().requires_grad_() for name in "Wbc"} | {"sigma": t["sigma"]}
    energy, z = free_energy(model, leaves, v)
    negative_energy, _ = free_energy(model, leaves, negative)
    sparsity = DISTANCES[distance].value(model.sparsity_target, z.mean(0)).sum()
    objective = energy.mean() - negative_energy.mean() + 3.0 * sparsity + 0.005 * leaves["W"].square().sum()
    gradients = torch.autograd.grad(objective, [leaves[name] for name in "Wbc"])
    for name, gradient in zip("Wbc", gradients, strict=True):
        velocity = 0.9 * before.tensors[f"{name}.velocity"] - 0.05 * gradient
        assert_close(state.tensors[name], before.tensors[name] + velocity, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("distance", DISTANCES)
def test_slopes_of_the_distances(distance):
    q = torch.linspace(0.01, 0.99, 99, dtype=F64, requires_grad=True)
    (slope,) = torch.autograd.grad(DISTANCES[distance].value(0.1, q).sum(), q)
    assert_close(DISTANCES[distance].slope(0.1, q), slope)
    assert DISTANCES[distance].slope(0.1, torch.tensor([0.0, 1.0])).isfinite().all()


EVERY_INPUT = torch.tensor(list(product([0.0, 1.0], repeat=6)), dtype=F64)


def log_likelihood(model, t, v):
    """Exact, by enumeration of all 64 inputs."""
    return -free_energy(model, t, v)[0].mean() - torch.logsumexp(-free_energy(model, t, EVERY_INPUT)[0], 0)


def test_long_chains_approach_the_gradient_of_the_likelihood_and_raise_it():
    v = EVERY_INPUT[[3, 3, 7, 12, 48, 48, 60, 33]].repeat(300, 1)
    agreement = {}
    for steps in (1, 60):
        plain = {"weight_decay": 0.0, "sparsity_cost": 0.0, "momentum": 0.0, "learning_rate": 1.0}
        model, state = started(v, cd_steps=steps, sample_visible=True, **plain)
        state.tensors["W"] *= 5  # strong filters, so that one step does not forget the data
        leaves = {name: state.tensors[name].clone().requires_grad_() for name in "Wbc"}
        exact = torch.autograd.grad(log_likelihood(model, leaves, v), list(leaves.values()))
        before = [state.tensors[name].clone() for name in "Wbc"]
        for name in "Wbc":
            state.tensors[f"{name}.velocity"].zero_()
        model._update(state, v)
        step = torch.cat([(state.tensors[n] - b).flatten() for n, b in zip("Wbc", before, strict=True)])
        exact = torch.cat([g.flatten() for g in exact])
        agreement[steps] = float(torch.cosine_similarity(step, exact, dim=0))
        relative = float((step - exact).norm() / exact.norm())
    assert agreement[60] > 0.99
    assert agreement[60] > agreement[1]
    assert relative < 0.1

    model = TIRBM(
        4, SHIFTS, cd_steps=20, sample_visible=True, sparsity_cost=0, n_iter=20, batch_size=100, random_state=0
    )
    start = log_likelihood(model, model._start(model._source(v, reset=True), 0).tensors, v)
    model.fit(v)
    end = log_likelihood(model, model._state.tensors, v)
    assert end > start + 0.3
    assert end < -1.6  # the entropy of the data is 1.667 nats


def test_gibbs_sampling_draws_from_the_model():
    model = TIRBM(3, SHIFTS, n_iter=30, batch_size=50, random_state=0).fit(EVERY_INPUT[[3, 12, 48, 33]].repeat(50, 1))
    energies = free_energy(model, model._state.tensors, EVERY_INPUT)[0]
    expected = torch.softmax(-energies, 0).numpy()
    drawn = model.sample(20_000, steps=60, random_state=0)
    counts = np.bincount((drawn @ 2.0 ** np.arange(5, -1, -1)).astype(int), minlength=64) / len(drawn)
    assert_allclose(counts, expected, atol=0.015)
    assert_allclose(model.sample(5, 3, random_state=1), model.sample(5, 3, random_state=1))
    many = model.sample(2**15, 1, random_state=0)
    assert (many[: 2**14] != many[2**14 :]).any(1).mean() > 0.5
    near = model.sample(steps=1, start=np.ones((7, 6)), random_state=0)
    assert near.shape == (7, 6)


def test_it_reaches_the_pseudo_likelihood_of_scikit_learns_rbm(digits, capsys):
    settings = {"learning_rate": 0.06, "n_iter": 10, "random_state": 0}
    theirs = BernoulliRBM(100, batch_size=10, **settings).fit(digits)
    ours = TIRBM(100, batch_size=10, momentum=0.0, sparsity_cost=0, sparsity_target=0.5, **settings).fit(digits)
    judge = TIRBM(100, n_iter=1).fit(digits)  # the same estimator judges both sets of parameters
    scores = []
    for W, b, c in (
        (theirs.components_, theirs.intercept_hidden_[:, None], theirs.intercept_visible_),
        (ours.components_, ours.intercept_hidden_, ours.intercept_visible_),
    ):
        judge.components_, judge.intercept_hidden_, judge.intercept_visible_ = W, b, c
        scores.append(judge.pseudo_likelihood(np.repeat(digits, 5, 0), random_state=0).mean())
    with capsys.disabled():
        print(f"\npseudo-likelihood on digits: BernoulliRBM {scores[0]:.2f}, TIRBM {scores[1]:.2f}")
    assert scores[1] >= scores[0]


def test_pose_follows_the_turn(turned_digits, capsys):
    """Images turned by known multiples of the step: units that stay on change their pose by as much."""
    turns = T.rotations(16, count=16, step=pi / 8)
    model = TIRBM(60, turns, batch_size=20, n_iter=10, random_state=0).fit(turned_digits.X_train)
    test = turned_digits.X_test.reshape(-1, 256)
    moved = turns.apply(test)
    upright, agree, pairs = model.pose(test), 0, 0
    strong = model.transform(test) > 0.9
    for k in (1, 4, 8, 13):
        poses, z = model.pose(moved[:, k]), model.transform(moved[:, k])
        both = strong & (z > 0.9)
        steps = k - 7  # the set runs from -7 to 8 steps
        agree += ((poses - upright)[both] % 16 == (-steps) % 16).sum()
        pairs += both.sum()
    share = agree / pairs
    with capsys.disabled():
        print(f"\npose follows the turn in {share:.1%} of {pairs} strongly active pairs (chance 6.2%)")
    assert pairs > 200
    assert share > 0.7


def test_the_history_and_the_learned_sigma(digits):
    X = digits - digits.mean(0)
    model = TIRBM(32, visible="gaussian", sigma="learned", n_iter=6, random_state=0).fit(X)
    assert list(model.history_) == ["reconstruction_error", "sparsity", "seconds"]
    assert model.history_["reconstruction_error"][-1] < model.history_["reconstruction_error"][0]
    start = model._begin(torch.from_numpy(X), torch.Generator())["sigma"]
    assert 0.05 < start < X.std()
    rms, sigma = np.sqrt(model.history_["reconstruction_error"]), float(start)
    for error in rms:
        sigma = 0.99 * sigma + 0.01 * error
    assert_allclose(model.sigma_, sigma, rtol=1e-6)
    assert abs(sigma / float(start) - 1) > 1e-3


def test_schedules_say_what_holds_from_which_epoch_on(digits):
    still = TIRBM(8, learning_rate={0: 0.1, 2: 0.0}, momentum={0: 0.5, 2: 0.0}, random_state=0, weight_decay=0)
    two, four = still.set_params(n_iter=2).fit(digits).components_, still.set_params(n_iter=4).fit(digits).components_
    assert_allclose(two, four)
    assert np.abs(two).max() > 0.05
    decayed = TIRBM(8, learning_rate=0.1, learning_rate_decay=0.25)
    assert [round(decayed._rate(epoch), 4) for epoch in (0, 4)] == [0.1, 0.05]


def test_a_fitted_model_says_what_it_sees(digits):
    shifts = T.translations(8, 6)
    model = TIRBM(12, shifts, n_iter=2, random_state=0).fit(digits)
    W, b, c = (torch.from_numpy(a) for a in (model.components_, model.intercept_hidden_, model.intercept_visible_))
    X = torch.from_numpy(digits)
    a = orbit.logits(X, orbit.templates(W, shifts), b)
    assert (W.shape, b.shape, c.shape) == ((12, 36), (12, 9), (64,))
    assert_allclose(model.transform(digits), orbit.pooled(a))
    assert_allclose(model.posterior(digits), orbit.posterior(a))
    expected = a.argmax(-1).where(orbit.pooled(a) >= 0.5, -1)
    assert_allclose(model.pose(digits), expected)
    energy = orbit.free_energy(X, orbit.total(a), c, orbit.Binary())
    assert_allclose(model.free_energy(digits), energy)
    assert_allclose(model.score_samples(digits), -energy)
    decoded = orbit.decode(orbit.posterior(a), orbit.templates(W, shifts), c, orbit.Binary())
    assert_allclose(model.reconstruct(digits), decoded)
    assert_allclose(model.score(digits), -((X - decoded) ** 2).mean())
    both = TIRBM(12, shifts, n_iter=2, random_state=0, two_sided=True).fit(digits)
    assert_allclose(both.transform(digits), np.hstack([model.transform(digits), model.transform(-digits)]))


def test_hidden_units_start_at_their_target(digits):
    model = TIRBM(50, T.rotations(8, 16, pi / 8), sparsity_target=0.03, random_state=0)
    state = model._start(model._source(digits, reset=True), 0)
    model._adopt(State(state.tensors, state.generator, state.at))
    assert_allclose(model.transform(digits).mean(), 0.03, rtol=0.05)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"n_components": 0}, "n_components is 0; it must be a whole number, 1 or more"),
        ({"visible": "real"}, "visible is 'real'; choose one of 'binary', 'gaussian'"),
        ({"sigma": 0.0}, "sigma is 0.0; it must be a finite number greater than 0"),
        ({"learning_rate": -1.0}, "learning_rate is -1.0"),
        ({"learning_rate": {1: 0.1}}, "a schedule names whole epochs and what holds from 0 on"),
        ({"momentum": {0: "x"}}, "momentum\\[0\\] is 'x'"),
        ({"momentum": 1.0}, "momentum is 1.0; it must be less than 1"),
        ({"device": "gpu"}, "device is 'gpu', which is not to be had here"),
        ({"sparsity_target": 1.0}, "sparsity_target is 1.0; it must lie between 0 and 1"),
        ({"sparsity_distance": "l1"}, "choose one of 'l2', 'kl'"),
        ({"cd_steps": 0}, "cd_steps is 0"),
        ({"batch_size": 2.5}, "batch_size is 2.5"),
        ({"transforms": "turns"}, "transforms is 'turns'; give a set made by orbitpool.transforms"),
        (
            {"transforms": T.rotations(5, 4, 1.0)},
            "64 features a row, but the transformations act on fields of 25 pixels",
        ),
    ],
)
def test_bad_parameters_are_refused_before_anything_is_learned(digits, options, says):
    model = TIRBM(**options)
    with pytest.raises(ValueError, match=says):
        model.fit(digits)
    assert not hasattr(model, "components_")


def test_binary_units_warn_of_inputs_that_are_not_probabilities(digits):
    with pytest.warns(UserWarning, match="range from 0 to 16 and binary units take values from 0 to 1; scale"):
        TIRBM(4, n_iter=1).fit(digits * 16)


@pytest.mark.parametrize("transforms", [None, T.rotations(8, 4, pi / 2)])
@pytest.mark.parametrize("visible", ["binary", "gaussian"])
def test_inputs_stay_as_they_are(digits, transforms, visible):
    X = digits[:200].astype(np.float32)
    before = X.copy()
    for writeable in (True, False):
        X.flags.writeable = writeable
        TIRBM(4, transforms, visible=visible, sigma="learned", persistent=True, n_iter=2).fit(X)
        assert np.array_equal(X, before)


@pytest.mark.parametrize("transforms", [None, SHIFTS, T.rotations(2, 4, pi / 2, field=(2, 3))])
def test_short_numbers_learn_what_long_ones_do(transforms, generator):
    X = (torch.rand(60, 6, generator=generator) < 0.3).float().numpy()
    kinds = [
        TIRBM(8, transforms, precision=precision, n_iter=3, batch_size=20, random_state=0).fit(X)
        for precision in ("full", "bfloat16")
    ]
    full, short = (model.components_ for model in kinds)
    assert full.dtype == short.dtype == np.float32
    assert np.corrcoef(full.ravel(), short.ravel())[0, 1] > 0.99


@pytest.mark.parametrize("step", [pi / 4, pi / 2])  # the second ones are quarter turns, which a CPU takes apart
@pytest.mark.parametrize("more", [{}, {"persistent": True}, {"cd_steps": 2}, {"visible": "gaussian"}], ids=str)
def test_learning_with_the_fused_kernels_is_learning(digits, more, step, monkeypatch):
    """On a GPU; here in Triton's interpreter, which has no bfloat16, with the random numbers of a CPU."""
    pytest.importorskip("orbitpool.kernels.fused", reason="needs triton")
    turns, options = T.rotations(8, 4, step), {"n_iter": 1, "batch_size": 37, "random_state": 0, **more}
    X = digits[:100].astype(np.float32)  # the last batch is smaller
    monkeypatch.setattr(native, "_functions", dict)  # what is compiled draws by other numbers
    model = TIRBM(5, turns, device="cpu", **options).fit(X)
    for module in (descent, poses, products):
        monkeypatch.setattr(module, "fused", lambda x: True)
    twin = TIRBM(5, turns, device="cpu", **options).fit(X)
    for learned, expected in zip(twin._state.tensors.values(), model._state.tensors.values(), strict=True):
        assert_close(learned, expected, rtol=1e-4, atol=1e-6)
