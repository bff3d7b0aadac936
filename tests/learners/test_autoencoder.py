import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch.testing import assert_close

from orbitpool import TIAutoencoder, orbit
from orbitpool import transforms as T
from orbitpool.learners.sparsity import DISTANCES

F64 = torch.float64
SHIFTS = T.translations((2, 3), (2, 2))


@pytest.mark.parametrize("decoder", ["sigmoid", "linear"])
@pytest.mark.parametrize("loss", ["squared", "cross-entropy"])
@pytest.mark.parametrize("distance", ["l2", "kl"])
def test_an_update_is_the_gradient_of_eqs_12_and_13(decoder, loss, distance):
    """By autograd of the equations as the paper has them, from dense matrices."""
    if (decoder, loss) == ("linear", "cross-entropy"):
        pytest.skip("refused, below")
    v = torch.rand(7, 6, dtype=F64, generator=torch.Generator().manual_seed(1))
    model = TIAutoencoder(4, SHIFTS, decoder=decoder, loss=loss, sparsity_distance=distance, weight_decay=0.01)
    model.set_params(momentum=0.0, random_state=0)
    state = model._start(model._source(v, reset=True), 0)
    W, b, c = (state.tensors[name].clone().requires_grad_() for name in "Wbc")
    model._update(state, v)

    dense = SHIFTS.to_dense()
    a = torch.einsum("kd,sde,ne->nks", W, dense, v) + b
    f = a.exp() / (1 + a.exp().sum(-1, keepdim=True))  # eq. 12
    x = torch.einsum("kd,sde,nks->ne", W, dense, f) + c  # the argument of eq. 13
    output = x.sigmoid() if decoder == "sigmoid" else x
    losses = {
        "squared": (output - v).square().sum() / 2,
        "cross-entropy": -(v * output.log() + (1 - v) * (1 - output).log()).sum() if loss != "squared" else None,
    }
    penalty = DISTANCES[distance].value(0.1, f.sum(-1).mean(0)).sum()
    objective = losses[loss] / len(v) + 3 * penalty + 0.005 * W.square().sum()
    for name, parameter, gradient in zip("Wbc", (W, b, c), torch.autograd.grad(objective, (W, b, c)), strict=True):
        assert_close(state.tensors[name], (parameter - 0.05 * gradient).detach(), atol=1e-9, rtol=1e-9)


def test_features_are_the_pooled_codes(digits):
    model = TIAutoencoder(12, T.translations(8, 6), n_iter=2, random_state=0).fit(digits)
    W, b = torch.from_numpy(model.components_), torch.from_numpy(model.intercept_hidden_)
    a = orbit.logits(torch.from_numpy(digits), orbit.templates(W, model.transforms), b)
    assert_allclose(model.transform(digits), orbit.pooled(a))
    assert_allclose(model.posterior(digits).sum(-1), model.transform(digits))


def test_it_learns_to_reconstruct(digits):
    model = TIAutoencoder(64, n_iter=30, batch_size=20, learning_rate=0.1, random_state=0).fit(digits)
    assert model.score(digits) > -0.25 * digits.var()
    assert model.history_["reconstruction_error"][-1] < model.history_["reconstruction_error"][0]


def test_a_linear_decoder_has_no_cross_entropy():
    with pytest.raises(ValueError, match="loss='cross-entropy' needs outputs between 0 and 1"):
        TIAutoencoder(decoder="linear", loss="cross-entropy").fit(np.zeros((3, 4)))
