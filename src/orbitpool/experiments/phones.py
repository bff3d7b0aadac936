"""Tables 4 and 5: phone classification, on the published split of TIMIT or on folds of the speakers at hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from orbitpool.classifiers import LinearSVM
from orbitpool.datasets import Phones, timit
from orbitpool.datasets.timit import FOLDS
from orbitpool.experiments.making import fit, in_words, make_learner
from orbitpool.experiments.recipes import Recipe
from orbitpool.experiments.trial import Stages, Trial
from orbitpool.speech import SpeechFeatures

INNER = 5  # folds of the training speakers, on which choices are made where there are no development speakers
WHOLE = 20_000  # segments whose kernel is computed at once, by one product of matrices


def accuracies(trial: Trial) -> tuple[list[float], dict[str, Any]]:
    """Accuracy on the core test set, or on each fold of the speakers; what the data is, and what was chosen.

    Everything but the judging sees the training speakers alone, and the development speakers where there are any.
    """
    recipe, stages, checkpoint = trial.recipe, trial.stages, trial.checkpoint
    with stages("data"):
        data = timit(trial.data_dir)
    stages.tell_of(data.provenance, data.source)
    splits = data.splits()[: 2 if trial.quick else None]
    right, chosen, kept = [], [], []
    for number, (train, test) in enumerate(splits, 1):
        stages.tell(f"{data.protocol}: {number} of {len(splits)}")
        tried: list[tuple[float, dict[str, Any], Any]] = []
        for choice in recipe.choices or ({},):
            if checkpoint:
                kept.append(checkpoint.with_name(f"{checkpoint.name}-{number}-{len(tried)}"))
            features = make_features(recipe, trial.seed, str(trial.device), kept[-1] if kept else None, **choice)
            score, C, guessed = _judged(recipe, features, data, train, test, stages)
            tried.append((score, {**choice, "C": C}, guessed))
        _, settings, guessed = max(tried, key=lambda each: each[0])
        right.append(float(np.mean(guessed == data.labels[test])))
        chosen.append({**settings, "judged on": sorted(set(data.speakers[test].tolist())), "phones": len(test)})
    for path in kept:
        path.unlink(missing_ok=True)
    return right, {"data": data.provenance, "source": data.source, "protocol": data.protocol, "folds": chosen}


def settings(recipe: Recipe, quick: bool) -> dict[str, Any]:
    """All that a result depends on but the seed and the data's origin."""
    return {
        "dataset": recipe.dataset,
        "splits": 2 if quick else "all",
        "folds": [FOLDS, INNER],
        "features": in_words(make_features(recipe, 0, "cpu")),
        "choices": recipe.choices,
        "classifier": recipe.classifier,
    }


def make_features(
    recipe: Recipe, seed: int, device: str, checkpoint: Path | None = None, **choice: Any
) -> SpeechFeatures:
    """What turns the segments of a row into features."""
    learner = make_learner(recipe, seed, device, checkpoint)
    if learner is not None:
        learner.set_params(**choice)
    return SpeechFeatures(learner, device=device, random_state=seed, **recipe.speech or {})


def _judged(
    recipe: Recipe, features: SpeechFeatures, data: Phones, train: Any, test: Any, stages: Stages
) -> tuple[float, float, Any]:
    """Accuracy where choices are made, the C chosen there, and what is guessed of the segments to judge on.

    The learner, which is told no labels, learns from the training speakers alone, and so does the classifier.
    """
    held = np.flatnonzero(data.parts == "development") if data.published else np.array([], int)
    with stages("learn"):
        fit(features, [data.segments[i] for i in train])
    with stages("encode"):
        X, X_held, X_test = (features.transform([data.segments[i] for i in part]) if len(part) else None
                             for part in (train, held, test))  # fmt: skip
    y = data.labels[train]
    with stages("classify"):
        if X_held is None:
            inner, tuned, labels = inner_folds(data.speakers[train]), X, y
        else:
            inner = [(np.arange(len(train)), len(train) + np.arange(len(held)))]
            tuned, labels = np.concatenate([X, X_held]), np.concatenate([y, data.labels[held]])
        C, score = choose(recipe, tuned, labels, inner, features.device)
        guessed = machine(recipe, C, len(train), features.device).fit(X, y).predict(X_test)
    return score, C, guessed


def choose(recipe: Recipe, X: Any, y: Any, inner: list[Any], device: str) -> tuple[float, float]:
    """The C that is best on given splits, and its accuracy there."""
    grid = recipe.classifier["C"]
    model = machine(recipe, grid, len(X), device)
    if isinstance(model, LinearSVM):
        model.set_params(cv=inner).fit(X, y)
        assert model.cv_results_ is not None
        return model.C_, float(model.cv_results_["mean_test_score"].max())
    search = GridSearchCV(machine(recipe, 1.0, len(X), device), {"svc__C": grid}, cv=inner, refit=False).fit(X, y)
    return search.best_params_["svc__C"], float(search.best_score_)


def machine(recipe: Recipe, C: Any, n: int, device: str) -> Any:
    """The classifier of a row for n segments."""
    options = {name: value for name, value in recipe.classifier.items() if name not in ("class", "C")}
    if recipe.classifier["class"] == "LinearSVM":
        return LinearSVM(C, device=device, **options)
    kernel = rbf_kernel if n <= WHOLE else "rbf"  # the same kernel, of width 1 / features, and either way LIBSVM
    return make_pipeline(StandardScaler(), SVC(C=C if np.isscalar(C) else 1.0, kernel=kernel, gamma="auto", **options))


def inner_folds(speakers: Any) -> list[tuple[Any, Any]]:
    """Segments to fit and segments to judge a choice on, by the speaker of each: no speaker is on both sides."""
    return list(GroupKFold(min(INNER, len(set(speakers)))).split(speakers, groups=speakers))
