"""The (sparse) transformation-invariant restricted Boltzmann machine: sections 3.1 and 3.2 of the paper."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from torch import Tensor
from torch.nn.functional import logsigmoid

from orbitpool import orbit, together
from orbitpool.kernels import Statistics, compare, reduce_orbit, shortened
from orbitpool.learners import checks, poses
from orbitpool.learners.base import Learner, Parameters, Session
from orbitpool.learners.contrast import Gibbs, contrast
from orbitpool.learners.softmax import SoftmaxLearner
from orbitpool.learners.sources import Source
from orbitpool.learners.training import Schedule, State, seed_of
from orbitpool.transforms import LearnedSet, TransformSet


class TIRBM(SoftmaxLearner):
    """Transformation-invariant restricted Boltzmann machine, sparse or not.

    Contrastive divergence descends on the mean of F(v) - F(v-) over a batch, where F is the free energy and v- comes
    from a few steps of Gibbs sampling, plus `sparsity_cost` sum_j D(sparsity_target, mean E[z_j | v]), plus half of
    `weight_decay` |W|^2. Without transformations it is the plain RBM.

    Parameters
    ----------
    n_components : int
        Number of filters K.
    transforms : TransformSet, "auto" or None
        The poses; found in the inputs, 500 images or more, or None for one pose that covers the whole input.
        `transforms.learned(start)` has them learned, too.
    visible : {"binary", "gaussian"}
        Inputs in [0, 1], or real-valued ones.
    sigma : float or "learned"
        Standard deviation of Gaussian inputs around their reconstruction. Learned, it starts at the distance of inputs
        from their k-means centre and follows the reconstruction error, one hundredth an epoch.
    two_sided : bool
        Also give features of -v, 2 K in all.
    learning_rate, momentum : float or {epoch: float}
        A number, or what holds from which epoch on.
    learning_rate_decay : float
        The rate is divided by 1 + decay * epoch.
    weight_decay : float
    sparsity_target, sparsity_cost : float
        How often a filter should be on, and how much that matters; a cost of 0 gives the plain model.
    sparsity_distance : {"l2", "kl"}
    cd_steps : int
        Steps of Gibbs sampling to the negative example.
    persistent : bool
        Whether chains go on from where the last update left them.
    sample_visible : bool
        Draw visible units in the chain, or take their means.
    n_iter, batch_size : int
        Epochs, and rows to an update.
    early_stopping : bool
        Hold out `validation_fraction` of the rows and stop when their reconstruction has not become better for
        `n_iter_no_change` epochs.
    precision : {"auto", "full", "bfloat16"}
        Of products in learning; parameters keep the precision of the inputs. "auto" is bfloat16 for float32 on a GPU,
        else full. On a CPU "bfloat16" is for those with `avx512_bf16` or AMX, and the same as "full" on others.
        Features are always computed in full.
    checkpoint : path, optional
        Keep the run in this file, every `checkpoint_every` updates and at the end; `fit` goes on from it.
    verbose : bool
        Show progress.
    device : str
        "auto" takes a tensor's own device, else a GPU if there is one.
    random_state : int, RandomState or None

    Attributes
    ----------
    components_ : array (K, D2 C)
        Filters w.
    intercept_hidden_ : array (K, S)
        Biases b of the filters' poses.
    intercept_visible_ : array (D1 C,)
        Biases c of the inputs.
    sigma_ : array ()
    history_ : dict of lists
        One value an epoch: reconstruction_error, sparsity, pseudo_likelihood (binary), validation_error, seconds.
    n_iter_ : int
        Epochs done.
    transforms_ : TransformSet or None
        The poses: those given, what they became, or those found.
    discovery_ : Discovery or None
        How they were found.
    """

    LEARNS_POSES: ClassVar = True
    PARAMETERS: ClassVar = SoftmaxLearner.PARAMETERS | {"sigma": "sigma_"}
    STRUCTURE: ClassVar = (*Learner.STRUCTURE, "visible", "sigma", "persistent", "batch_size")

    def __init__(
        self,
        n_components: int = 256,
        transforms: TransformSet | Literal["auto"] | None = None,
        *,
        visible: Literal["binary", "gaussian"] = "binary",
        sigma: float | Literal["learned"] = 1.0,
        two_sided: bool = False,
        learning_rate: Schedule = 0.05,
        learning_rate_decay: float = 0.0,
        momentum: Schedule = 0.9,
        weight_decay: float = 1e-4,
        sparsity_target: float = 0.1,
        sparsity_cost: float = 3.0,
        sparsity_distance: Literal["l2", "kl"] = "l2",
        cd_steps: int = 1,
        persistent: bool = False,
        sample_visible: bool = False,
        n_iter: int = 10,
        batch_size: int = 100,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        precision: Literal["auto", "full", "bfloat16"] = "auto",
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: int = 1000,
        verbose: bool = False,
        device: str = "auto",
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.transforms = transforms
        self.visible = visible
        self.sigma = sigma
        self.two_sided = two_sided
        self.learning_rate = learning_rate
        self.learning_rate_decay = learning_rate_decay
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.sparsity_target = sparsity_target
        self.sparsity_cost = sparsity_cost
        self.sparsity_distance = sparsity_distance
        self.cd_steps = cd_steps
        self.persistent = persistent
        self.sample_visible = sample_visible
        self.n_iter = n_iter
        self.batch_size = batch_size
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.precision = precision
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every
        self.verbose = verbose
        self.device = device
        self.random_state = random_state

    def _check(self) -> None:
        super()._check()
        checks.one_of("visible", self.visible, ("binary", "gaussian"))
        if self.sigma != "learned":
            checks.above("sigma", self.sigma, 0)
        checks.whole("cd_steps", self.cd_steps)
        checks.one_of("precision", self.precision, ("auto", "full", "bfloat16"))

    def _visible(self, t: Parameters) -> orbit.Visible:
        return orbit.Binary() if self.visible == "binary" else orbit.Gaussian(t.get("sigma", 1.0))

    def _begin(self, look: Tensor, generator: torch.Generator, **given: Tensor) -> Parameters:
        learned = self.sigma == "learned" and self.visible == "gaussian"
        sigma = (
            _kmeans_distance(look, self.n_components)
            if learned
            else 1.0
            if self.sigma == "learned"
            else float(self.sigma)
        )
        given |= {"sigma": look.new_tensor(sigma)}
        if self.persistent:
            given |= {"chains": look[torch.arange(self.batch_size) % len(look)].clone()}
        if isinstance(self.transforms, LearnedSet):
            given |= poses.begin(self.transforms, look)
        return super()._begin(look, generator, **given)

    @torch.no_grad()
    def _update(self, state: State, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        t = {**state.tensors, "W": shortened(state.tensors["W"], self.precision)}
        visible, part = self._visible(t), together.part(len(v))
        data, model, recalled, activity = contrast(self, t, v[part.own], self._operators, state.generator, part)
        gap, error, energy = map(part.weigh, compare(data.v, recalled))
        if model.v is not recalled:
            gap = model.part.weigh(model.v.mean(0)) - part.weigh(data.v.mean(0))
        gradients: dict[str, Tensor | Statistics] = {
            "W": [(side.p, side.u, side.share) for side in (data, model)],
            "b": model.part.weigh(model.on) + part.weigh(data.on),
            "c": visible.scaled(visible.scaled(gap)),
        }
        self._descend(state, gradients, part, (error, energy), self.weight_decay)
        return error, activity.mean(), energy

    def _train(self, state: State, source: Source, session: Session, **options: Any) -> None:
        if isinstance(self.transforms, LearnedSet):
            session.many = source.look(poses.enough(self, self.transforms), state.at.seed)
        super()._train(state, source, session, **options)

    def _beside(self, state: State, v: Tensor) -> None:
        if isinstance(self.transforms, LearnedSet) and state.at.update and not state.at.update % self.transforms.every:
            many = self._session.many
            poses.step_(self, self.transforms, state, v if many is None or len(many) <= len(v) else many)

    def _place(self, state: State) -> None:
        if isinstance(self.transforms, LearnedSet):
            self._operators = self.transforms.at(state.tensors["poses.used"])

    def _pace(self, epoch: int) -> tuple[float, ...]:
        learned = isinstance(self.transforms, LearnedSet)
        return (*super()._pace(epoch), float(epoch)) if learned else super()._pace(epoch)  # poses differ by the epoch

    def _end_epoch(self, state: State) -> None:
        if isinstance(self.transforms, LearnedSet):
            state.tensors["poses.used"].copy_(state.tensors["poses"])
            self._place(state)
        if self.sigma == "learned":
            rms = (state.tensors["sums"][0] / state.at.rows).sqrt()
            state.tensors["sigma"].mul_(0.99).add_(rms, alpha=0.01)

    def _measure(self, state: State) -> dict[str, float]:
        measured = super()._measure(state)
        if self.visible == "binary":
            estimate = self._pseudo_likelihood(state.tensors, np.random.RandomState(0))
            measured["pseudo_likelihood"] = float(estimate(self._session.watched).mean())
        return measured

    def _free_energy(self, t: Parameters) -> Callable[[Tensor], Tensor]:
        visible = self._visible(t)
        W = visible.scaled(t["W"])
        return lambda v: orbit.free_energy(v, reduce_orbit(v, W, self._operators, t["b"]), t["c"], visible)

    def _pseudo_likelihood(self, t: Parameters, random: np.random.RandomState) -> Callable[[Tensor], Tensor]:
        energy = self._free_energy(t)

        def estimate(v: Tensor) -> Tensor:
            bit = torch.as_tensor(random.randint(v.shape[1], size=(len(v), 1)), device=v.device)
            flipped = v.scatter(1, bit, 1 - v.gather(1, bit))
            return v.shape[1] * logsigmoid(energy(flipped) - energy(v))

        return estimate

    def free_energy(self, X: Any) -> Any:
        """Minus the log-probability of each input up to a constant that all inputs share, (N,)."""
        return self._map(self._free_energy, X)

    def score_samples(self, X: Any) -> Any:
        """Log-probability of each input up to a constant that all inputs share, (N,)."""
        return -self.free_energy(X)

    def pseudo_likelihood(self, X: Any, random_state: Any = None) -> Any:
        """Estimate sum_i log p(v_i | the others) of binary inputs from one random bit of each, (N,)."""
        checks.one_of("visible", self.visible, ("binary",))
        random = check_random_state(random_state)
        return self._map(lambda t: self._pseudo_likelihood(t, random), X, shared=False)

    @torch.no_grad()
    def sample(self, n_samples: int = 1, steps: int = 1000, start: Any = None, random_state: Any = None) -> Any:
        """Inputs drawn from the model by block Gibbs sampling, (n_samples, D1).

        Parameters
        ----------
        n_samples : int
            How many, if there is no `start`.
        steps : int
            Times that all hidden and then all visible units are drawn.
        start : array (n_samples, D1), optional
            Where chains start; from the visible biases alone if not given.
        random_state : int, RandomState or None
        """
        check_is_fitted(self)
        checks.whole("steps", steps)
        checks.whole("n_samples", n_samples)
        if start is None:
            start = torch.from_numpy(np.zeros((n_samples, self.n_features_in_), dtype=self.components_.dtype))
            start = self._map(lambda t: lambda v: self._visible(t).mean(v, t["c"]), start)
            return self.sample(n_samples, steps, start, random_state).cpu().numpy()
        seed = seed_of(random_state)

        def walk(t: Parameters) -> Callable[[Tensor], Tensor]:
            generator = torch.Generator(t["W"].device).manual_seed(seed)
            gibbs = Gibbs(t, self._visible(t), self._operators, generator)

            def chain(v: Tensor) -> Tensor:
                for _ in range(steps):
                    *_, drawn = gibbs.up(v)
                    v = gibbs.draw(gibbs.down(drawn, len(v)))
                return v

            return chain

        return self._map(walk, start, few=True, shared=False)


def _kmeans_distance(look: Tensor, n_clusters: int) -> float:
    """Root mean squared difference between inputs and their k-means centres, a pixel."""
    from sklearn.cluster import MiniBatchKMeans

    X = look.cpu().numpy()
    k = max(1, min(n_clusters, len(X) // 20))
    kmeans = MiniBatchKMeans(k, n_init=1, max_iter=10, random_state=0).fit(X)
    return max(float(np.sqrt(kmeans.inertia_ / X.size)), 1e-3)
