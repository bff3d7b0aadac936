"""What leaves the library as a layer: the same features, and filters that a network trains."""

import pickle
from copy import deepcopy
from io import BytesIO
from math import pi

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.testing import assert_close

from orbitpool import TIOMP, TIRBM, TIAutoencoder, orbit
from orbitpool import transforms as T

TURNS = T.rotations((5, 7), count=3, step=pi / 6)
SHIFTS = T.translations((5, 7), (4, 5))
LEARNERS = [
    TIRBM(7, TURNS, n_iter=1),
    TIRBM(6, SHIFTS, visible="gaussian", sigma=0.7, two_sided=True, n_iter=1),
    TIRBM(5, visible="gaussian", sigma="learned", n_iter=1),
    TIAutoencoder(7, SHIFTS, decoder="linear", two_sided=True, learning_rate=0.01, n_iter=1),
    TIOMP(7, SHIFTS, alpha=0.1, n_iter=2),
    TIOMP(6, TURNS, alpha=0.1, two_sided=False, n_iter=2),
    TIOMP(6, TURNS, alpha=0.1, unit_norm=False, n_iter=2),
]


def fitted(learner, channels):
    X = np.random.default_rng(0).uniform(size=(90, 5, 7, channels)).astype(np.float32)
    return learner.set_params(random_state=0).fit(X), torch.from_numpy(X).flatten(1)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("learner", LEARNERS, ids=str)
def test_a_module_gives_what_transform_gives(learner, channels):
    learner, X = fitted(learner, channels)
    module, expected = learner.to_module(), learner.transform(X)
    assert expected.max() > 0.01
    assert_close(module(X), expected, atol=1e-5, rtol=1e-5)
    assert_close(module(X.view(-1, 5, 7, channels)), expected, atol=1e-5, rtol=1e-5)
    with torch.no_grad():
        assert_close(module(X), expected, atol=1e-5, rtol=1e-5)
    assert_close(module.double()(X.double()), learner.transform(X.double()), atol=1e-5, rtol=1e-5)
    assert module(X[:0].double()).shape == (0, expected.shape[1])


@pytest.mark.parametrize("learner", LEARNERS, ids=str)
def test_gradients_are_those_of_finite_differences(learner):
    learner, X = fitted(learner, 1)
    module = learner.to_module().double()
    v = X[:3].double().requires_grad_()
    names = [name for name, _ in module.named_parameters()]
    assert names == (["weight"] if isinstance(learner, TIOMP) else ["weight", "bias"])

    def features(v, *parameters):
        return torch.func.functional_call(module, dict(zip(names, parameters, strict=True)), (v,))

    assert torch.autograd.gradcheck(features, (v, *module.parameters()))


@pytest.mark.parametrize("learner", LEARNERS[3:5], ids=str)
def test_a_module_is_copied_stored_and_restored(learner):
    learner, X = fitted(learner, 1)
    module = learner.to_module()
    twin = deepcopy(module)
    with torch.no_grad():
        module.weight.mul_(-0.5)
    assert_close(twin(X), learner.transform(X), atol=1e-5, rtol=1e-5)
    buffer = BytesIO()
    torch.save(module.state_dict(), buffer)
    buffer.seek(0)
    twin.load_state_dict(torch.load(buffer))
    assert_close(twin(X), module(X))
    assert_close(pickle.loads(pickle.dumps(module))(X), module(X))
    assert not torch.equal(twin(X), learner.transform(X))
    assert f"{len(module.weight)} filters" in repr(nn.Sequential(module))


def test_what_does_not_fit_is_refused():
    learner, _ = fitted(TIRBM(4, SHIFTS, n_iter=1), 1)
    with pytest.raises(ValueError, match="inputs have 34 numbers each; the filters take 35"):
        learner.to_module()(torch.zeros(2, 34))


def test_a_network_trains_the_filters_and_keeps_their_poses_tied(digits):
    turns = T.rotations(8, count=8, step=pi / 4)
    X, y = torch.from_numpy(digits[:600]).float(), torch.from_numpy(load_digits().target[:600])
    learned = TIRBM(30, turns, batch_size=20, n_iter=5, random_state=0).fit(X).to_module()
    torch.nn.init.zeros_((last := nn.Linear(30, 10)).weight)
    network = nn.Sequential(learned, last)
    before, descent = learned.weight.detach().clone(), torch.optim.Adam(network.parameters(), 0.05)
    losses = []
    for _ in range(30):
        descent.zero_grad()
        loss = nn.functional.cross_entropy(network(X), y)
        loss.backward()
        descent.step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]
    assert (learned.weight - before).norm() > 0.1 * before.norm()
    assert_close(learned.templates(), orbit.templates(learned.weight, turns))
    with torch.no_grad():  # all turns of one filter are among its poses, so a turned digit gives the same features
        learned.bias.copy_(learned.bias.mean(1, keepdim=True).expand(-1, 8))
        turned = X.view(-1, 8, 8).rot90(1, (1, 2))
        assert_close(network(turned), network(X), atol=1e-4, rtol=1e-4)
