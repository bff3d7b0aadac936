from math import pi, radians

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits
from torch.testing import assert_close

import orbitpool
from orbitpool import TIRBM, TIAutoencoder, orbit, together
from orbitpool import transforms as T
from orbitpool.datasets import move_digits
from orbitpool.learners import poses
from orbitpool.learners.contrast import contrast

F64 = torch.float64
TURNS = T.learned(T.rotations(6, 3, 0.4, field=7), learning_rate=0.02, every=2)


def started(**options):
    """A model in its first state with filters that matter, in float64, and a batch."""
    v = torch.rand(9, 49, dtype=F64, generator=torch.Generator().manual_seed(1))
    model = TIRBM(5, TURNS, batch_size=9, random_state=0, **options)
    model._check()
    state = model._start(model._source(v, reset=True), 0)
    state.at.update = TURNS.every
    for letter in "Wbc":
        rng = torch.Generator().manual_seed(ord(letter))
        state.tensors[letter] += 0.5 * torch.randn(state.tensors[letter].shape, generator=rng, dtype=F64)
    return model, state, v


def objective(model, t, v, negative, turns):
    """The mean of F(v) - F(v-) and the sparsity term, by the definition."""
    units = model._visible(t)

    def met(x):
        a = orbit.logits(units.scaled(x), orbit.templates(t["W"], turns), t["b"])
        return orbit.free_energy(x, orbit.total(a), t["c"], units).mean(), orbit.pooled(a).mean(0)

    (high, active), (low, _) = met(v), met(negative)
    return float(high - low + model.sparsity_cost * (model.sparsity_target - active).square().sum())


@pytest.mark.parametrize("options", [{}, {"visible": "gaussian", "sigma": 0.8, "sparsity_cost": 2.0, "cd_steps": 2}])
def test_the_gradient_is_that_of_finite_differences(options):
    model, state, v = started(**options)
    t, still = state.tensors, T.learned(TURNS, families=("turn", "scale", "stretch", "shear", "shift"))
    gradient = poses._gradient(model, still, state.copy(), v, together.alone(9))
    _, side, *_ = contrast(model, t, v, TURNS, state.copy().generator, together.alone(9))
    for s, column in ((0, 0), (2, 0), (2, 1), (0, 2), (2, 3), (0, 4), (2, 5)):
        step = torch.zeros(3, 6, dtype=F64)
        step[s, column] = 1e-5
        high, low = (objective(model, t, v, side.v, still.at(t["poses"] + way * step)) for way in (1, -1))
        assert gradient[s, column].item() == pytest.approx((high - low) / 2e-5, rel=1e-3, abs=1e-6)


def test_a_step_moves_what_may_change_by_its_pixels():
    model, state, v = started()
    poses.step_(model, TURNS, state, v)
    moved = state.tensors["poses"] - TURNS.start
    assert not moved[:, 1:].any()
    assert_close(moved[:, 0].abs(), torch.full((3,), 0.02 * float(TURNS.free[0]), dtype=F64), rtol=1e-3, atol=0)
    assert_close(state.tensors["poses.used"], TURNS.start)


def test_a_step_goes_down():
    model, state, v = started()
    gradient = poses._gradient(model, TURNS, state.copy(), v, together.alone(9))[:, 0]
    poses.step_(model, TURNS, state, v)
    assert gradient.any()
    assert_close((state.tensors["poses"] - TURNS.start)[:, 0].sign(), -gradient.sign())


def test_single_precision_sees_corners():
    """Quarter turns take every pixel from the middle of another, where interpolation has corners."""
    quarters = T.learned(T.rotations(16, 4, pi / 2))
    v, step = torch.rand(20, 256, dtype=F64, generator=torch.Generator().manual_seed(1)), torch.zeros(4, 6, dtype=F64)
    step[:, 0] = 1e-6
    _, changes = quarters.near(quarters.start)
    high, low = (quarters.at(quarters.start + way * step).apply(v) for way in (1, -1))
    assert_close(changes[0].apply(v.float()).double(), (high - low) / 2e-6, rtol=1e-3, atol=1e-3)


@pytest.fixture(scope="module")
def digits_(turned_digits):
    return turned_digits.X_train[:400]


def model(**options):
    start = T.learned(T.rotations(16, 5, pi / 8), every=2, learning_rate=0.05)
    return TIRBM(20, start, **{"batch_size": 40, "n_iter": 4, "random_state": 0, **options})


def test_poses_are_learned_named_saved_and_go_on(digits_, tmp_path):
    fitted = model().fit(digits_)
    assert len(fitted.transforms_) == 5
    assert (fitted.transforms_.to_dense() - fitted.transforms.to_dense()).abs().max() > 0.01
    assert all(label.startswith("turn by") or label == "identity" for label in fitted.transforms_.labels)
    fitted.save(tmp_path / "model.safetensors")
    again = orbitpool.load(tmp_path / "model.safetensors")
    assert again.transforms == fitted.transforms
    assert again.transforms_ == fitted.transforms_
    assert_array_equal(again.transform(digits_[:9]), fitted.transform(digits_[:9]))
    assert_array_equal(again.partial_fit(digits_).components_, fitted.partial_fit(digits_).components_)
    assert again.transforms_ == fitted.transforms_


def test_a_killed_run_goes_on_to_the_same_bits(digits_, tmp_path):
    whole = model().fit(digits_)
    kept = tmp_path / "run"
    learner = model(checkpoint=kept, checkpoint_every=7)
    updates, update = [], learner._update

    def dying(state, v):
        updates.append(None)
        if len(updates) == 25:  # in the middle of an epoch
            raise MemoryError
        return update(state, v)

    learner._update = dying
    with pytest.raises(MemoryError):
        learner.fit(digits_)
    resumed = model(checkpoint=kept).fit(digits_)
    assert_array_equal(resumed.components_, whole.components_)
    assert resumed.transforms_ == whole.transforms_


@pytest.mark.parametrize("seed", range(3))
def test_turns_that_made_the_data_are_found(turned_digits, seed):
    """Five digits, each turned by -20, 0 or 20 degrees: six filters need these poses, and started from half of them."""
    rng = np.random.default_rng(seed)
    chosen = turned_digits.X_train[[0, 1, 2, 3, 4]][rng.integers(5, size=1000)]
    X = move_digits("rot", chosen, np.radians(rng.choice([-20, 0, 20], 1000)))
    start = T.learned(T.rotations(16, 3, np.radians(10)), learning_rate=0.2)
    fitted = TIRBM(6, start, sparsity_target=0.17, batch_size=20, n_iter=20, random_state=seed).fit(X)
    turns = np.degrees(fitted._state.tensors["poses"][:, 0].numpy())
    assert_allclose(np.diff(turns), [20, 20], atol=4)


def test_turns_that_are_too_large_move_towards_the_data():
    """Digits tilted by up to 20 degrees, and turns by up to 45 to begin with."""
    rng = np.random.default_rng(0)
    upright = load_digits().images[:1000].astype(np.float32) / 16
    digits = np.kron(upright, np.ones((2, 2), np.float32))
    X = move_digits("rot", digits, rng.uniform(-radians(20), radians(20), 1000))
    start = T.learned(T.rotations(16, 5, pi / 8), learning_rate=0.3, every=20)
    fitted = TIRBM(50, start, sparsity_target=0.04, batch_size=20, n_iter=20, random_state=0).fit(X)
    turns = np.degrees(fitted._state.tensors["poses"][:, 0].numpy())
    assert np.abs(turns[[0, 4]]).mean() < 43
    assert np.abs(turns[[1, 3]]).mean() < 21


def test_nothing_moves_before_its_time(digits_):
    start = T.rotations(16, 3, 0.3)
    for every, moves in ((10, False), (9, True)):  # ten updates, and a step comes before one of them
        fitted = TIRBM(10, T.learned(start, every=every), n_iter=1, batch_size=40, random_state=0).fit(digits_)
        assert (fitted.transforms_.labels != T.learned(start).at(T.learned(start).start).labels) == moves


def test_a_rate_of_zero_keeps_the_start(digits_):
    start = T.rotations(16, 3, 0.3)
    still = TIRBM(10, T.learned(start, learning_rate=0), n_iter=2, batch_size=40, random_state=0).fit(digits_)
    assert_allclose(still.transforms_.to_dense(), start.to_dense(), atol=1e-6)


def test_other_learners_say_that_they_learn_none(digits_):
    with pytest.raises(ValueError, match="TIAutoencoder learns no poses; give the set that they start from"):
        TIAutoencoder(5, T.learned(T.rotations(16, 3, 0.3))).fit(digits_)


def test_colour_persistent_chains_and_real_values(digits_):
    colour = np.stack([digits_, digits_, 1 - digits_], -1)[:80]
    learner = TIRBM(
        6, T.learned(T.translations(16, 14), every=1), visible="gaussian", persistent=True, n_iter=1, batch_size=40
    )
    fitted = learner.fit(colour)
    assert fitted.transforms_.window_shape == (14, 14)
    assert np.isfinite(fitted.components_).all()
