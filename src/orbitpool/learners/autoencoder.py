"""The transformation-invariant autoencoder: eqs 12 and 13 of the paper."""

from __future__ import annotations

import os
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from orbitpool import orbit, together
from orbitpool.kernels import generate
from orbitpool.learners import checks
from orbitpool.learners.base import Parameters
from orbitpool.learners.softmax import SoftmaxLearner
from orbitpool.learners.training import Schedule, State
from orbitpool.together import Part
from orbitpool.transforms import TransformSet


class TIAutoencoder(SoftmaxLearner):
    """Transformation-invariant autoencoder with tied weights.

    Descends on the mean over a batch of the loss summed over pixels, plus `sparsity_cost` sum_j D(sparsity_target, mean
    sum_s f_js), plus half of `weight_decay` |W|^2. Without transformations it is the plain sparse autoencoder.

    Parameters
    ----------
    n_components : int
        Number of filters K.
    transforms : TransformSet, "auto" or None
        The poses; found in the inputs, 500 images or more, or None for one pose that covers the whole input.
    decoder : {"sigmoid", "linear"}
        For inputs in [0, 1], or real-valued ones.
    loss : {"squared", "cross-entropy"}
        Half the squared error, or, with a sigmoid decoder, the cross-entropy.
    two_sided : bool
        Also give features of -v, 2 K in all.
    learning_rate, momentum : float or {epoch: float}
        A number, or what holds from which epoch on.
    learning_rate_decay : float
        The rate is divided by 1 + decay * epoch.
    weight_decay : float
    sparsity_target, sparsity_cost : float
        How often a filter should be on, and how much that matters.
    sparsity_distance : {"l2", "kl"}
    n_iter, batch_size, early_stopping, validation_fraction, n_iter_no_change, checkpoint, checkpoint_every, verbose, \
device, random_state
        As in `TIRBM`.

    Attributes
    ----------
    components_ : array (K, D2 C)
    intercept_hidden_ : array (K, S)
    intercept_visible_ : array (D1 C,)
    history_ : dict of lists
        One value an epoch: reconstruction_error, sparsity, validation_error, seconds.
    n_iter_ : int
    transforms_, discovery_
        As in `TIRBM`.
    """

    def __init__(
        self,
        n_components: int = 256,
        transforms: TransformSet | Literal["auto"] | None = None,
        *,
        decoder: Literal["sigmoid", "linear"] = "sigmoid",
        loss: Literal["squared", "cross-entropy"] = "squared",
        two_sided: bool = False,
        learning_rate: Schedule = 0.05,
        learning_rate_decay: float = 0.0,
        momentum: Schedule = 0.9,
        weight_decay: float = 1e-4,
        sparsity_target: float = 0.1,
        sparsity_cost: float = 3.0,
        sparsity_distance: Literal["l2", "kl"] = "l2",
        n_iter: int = 10,
        batch_size: int = 100,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: int = 1000,
        verbose: bool = False,
        device: str = "auto",
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.transforms = transforms
        self.decoder = decoder
        self.loss = loss
        self.two_sided = two_sided
        self.learning_rate = learning_rate
        self.learning_rate_decay = learning_rate_decay
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.sparsity_target = sparsity_target
        self.sparsity_cost = sparsity_cost
        self.sparsity_distance = sparsity_distance
        self.n_iter = n_iter
        self.batch_size = batch_size
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every
        self.verbose = verbose
        self.device = device
        self.random_state = random_state

    def _check(self) -> None:
        super()._check()
        checks.one_of("decoder", self.decoder, ("sigmoid", "linear"))
        checks.one_of("loss", self.loss, ("squared", "cross-entropy"))
        if (self.decoder, self.loss) == ("linear", "cross-entropy"):
            raise ValueError(
                "loss='cross-entropy' needs outputs between 0 and 1; use decoder='sigmoid' or loss='squared'"
            )

    def _visible(self, t: Parameters) -> orbit.Visible:
        return orbit.Binary() if self.decoder == "sigmoid" else orbit.Gaussian()

    def _objective(self, v: Tensor, t: Parameters, part: Part) -> tuple[Tensor, Tensor, Tensor]:
        """What is descended on, the squared error a pixel, and the mean activity of the whole batch."""
        visible = self._visible(t)
        _, f = self._up(v, t, visible)
        x = self._operators.adjoint(generate(f, t["W"]))
        squared = (v - visible.mean(x, t["c"])).square()
        if self.loss == "squared":
            loss = squared.sum() / 2
        else:
            loss = binary_cross_entropy_with_logits(x + t["c"], v, reduction="sum")
        activity = f.permute(2, 1, 0).sum(0).mean(1)
        if not part.alone:  # the value of the whole batch, with the derivatives of this part of it
            activity = activity + (part.mean(activity.detach()) - activity.detach())
        penalty = self._sparsity.value(self.sparsity_target, activity).sum()
        decay = self.weight_decay / 2 * t["W"].square().sum()
        return loss / len(v) + self.sparsity_cost * penalty + decay, squared.mean(), activity.mean()

    @torch.no_grad()
    def _update(self, state: State, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        leaves = {name: state.tensors[name].detach().requires_grad_() for name in self.PARAMETERS}
        part = together.part(len(v))
        v = v[part.own]
        with torch.enable_grad():
            objective, error, activity = self._objective(v, leaves, part)
        gradients = map(part.weigh, torch.autograd.grad(objective, list(leaves.values())))
        error, energy = part.weigh(error.detach()), part.weigh(v.square().mean())
        self._descend(state, dict(zip(leaves, gradients, strict=True)), part, (error, energy))
        return error, activity.detach(), energy
