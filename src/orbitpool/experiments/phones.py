"""Tables 4 and 5: phone classification, on the published split of TIMIT or on folds of the speakers at hand."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from orbitpool.classifiers import LinearSVM
from orbitpool.datasets import Phones, timit
from orbitpool.experiments.making import fit, in_words, make_learner
from orbitpool.experiments.recipes import Recipe
from orbitpool.speech import SpeechFeatures

if TYPE_CHECKING:
    from orbitpool.experiments.runner import Stages

INNER = 5  # folds of the training speakers, on which C is chosen
WHOLE = 20_000  # segments whose kernel is computed at once, by one product of matrices


def accuracies(
    recipe: Recipe,
    seed: int,
    quick: bool,
    data_dir: Path | None,
    device: torch.device,
    stages: Stages,
    checkpoint: Path | None,
) -> tuple[list[float], dict[str, Any]]:
    """Accuracy on the core test set, or on each fold of the speakers; what the data is, and what was chosen.

    Everything but the judging, all choices included, sees the training speakers alone.
    """
    with stages("data"):
        data = timit(data_dir)
    stages.tell_of(data.provenance, data.source)
    splits = data.splits()[: 2 if quick else None]
    right, chosen = [], []
    for number, (train, test) in enumerate(splits, 1):
        stages.tell(f"{data.protocol}: {number} of {len(splits)}")
        features = make_features(recipe, seed, str(device))
        settings, model = _best(recipe, features, data, train, stages)
        guessed = model.predict([data.segments[i] for i in test])
        right.append(float(np.mean(guessed == data.labels[test])))
        chosen.append({**settings, "judged on": sorted(set(data.speakers[test].tolist())), "phones": len(test)})
    return right, {"data": data.provenance, "source": data.source, "protocol": data.protocol, "folds": chosen}


def settings(recipe: Recipe, quick: bool) -> dict[str, Any]:
    """All that a result depends on but the seed and the data's origin."""
    return {
        "dataset": recipe.dataset,
        "splits": 2 if quick else "all",
        "features": in_words(make_features(recipe, 0, "cpu")),
        "choices": recipe.choices,
        "classifier": recipe.classifier,
    }


def make_features(recipe: Recipe, seed: int, device: str) -> SpeechFeatures:
    """What turns the segments of a row into features."""
    return SpeechFeatures(make_learner(recipe, seed, device), device=device, random_state=seed, **recipe.speech or {})


def _best(
    recipe: Recipe, features: SpeechFeatures, data: Phones, train: Any, stages: Stages
) -> tuple[dict[str, Any], Any]:
    """What was chosen by cross-validation over the training speakers, and features and classifier fitted to them all.

    The learners, which are told no labels, learn from all training speakers once.
    """
    tried = []
    for choice in recipe.choices or ({},):
        varied = clone(features).set_params(**{f"learner__{name}": value for name, value in choice.items()})
        with stages("learn"):
            segments = [data.segments[i] for i in train]
            X = fit(varied, segments).transform(segments)
        with stages("classify"):
            classifier, C, score = classify(recipe, X, data.labels[train], data.speakers[train])
        tried.append((score, {**choice, "C": C}, make_pipeline(varied, classifier)))
    return max(tried, key=lambda each: each[0])[1:]


def classify(recipe: Recipe, X: Any, y: Any, speakers: Any) -> tuple[Any, float, float]:
    """A classifier fitted to segments, the C chosen by cross-validation over their speakers, and its accuracy there."""
    options = dict(recipe.classifier)
    inner = inner_folds(speakers)
    if options.pop("class") == "LinearSVM":
        linear = LinearSVM(cv=inner, **options).fit(X, y)
        assert linear.cv_results_ is not None
        return linear, linear.C_, float(linear.cv_results_["mean_test_score"].max())
    kernel = rbf_kernel if len(X) <= WHOLE else "rbf"  # the same kernel, of width 1 / features, and either way LIBSVM
    grid = {"svc__C": options.pop("C")}
    machine = make_pipeline(StandardScaler(), SVC(kernel=kernel, gamma="auto", **options))
    search = GridSearchCV(machine, grid, cv=inner).fit(X, y)
    return search, search.best_params_["svc__C"], float(search.best_score_)


def inner_folds(speakers: Any) -> list[tuple[Any, Any]]:
    """Segments to fit and segments to judge a C on, by the speaker of each: no speaker is on both sides."""
    return list(GroupKFold(min(INNER, len(set(speakers)))).split(speakers, groups=speakers))
