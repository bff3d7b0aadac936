"""Tables 4 and 5: phone classification, on the published split of TIMIT or on folds of the speakers at hand."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from joblib import parallel_config
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from orbitpool.classifiers import LinearSVM
from orbitpool.datasets import Phones, timit
from orbitpool.datasets.timit import FOLDS
from orbitpool.experiments.making import fit, in_words, make_learner
from orbitpool.experiments.recipes import MANY, Recipe
from orbitpool.experiments.trial import Stages, Trial
from orbitpool.speech import SpeechFeatures

INNER = 5  # folds of the training speakers, on which choices are made where there are no development speakers
WHOLE = 10_000  # segments whose kernel is kept, for all values of C


def accuracies(trial: Trial) -> tuple[list[float], dict[str, Any]]:
    """Accuracy on the core test set, or on each fold of the speakers; what the data is, and what was chosen.

    Everything but the judging sees the training speakers alone, and the development speakers where there are any.
    """
    stages, checkpoint = trial.stages, trial.checkpoint
    with stages("data"):
        data = timit(trial.data_dir)
    stages.tell_of(data.provenance, data.source)
    splits = data.splits()[: 2 if trial.quick else None]
    right, chosen = [], []
    for number, (train, test) in enumerate(splits, 1):
        stages.tell(f"{data.protocol}: {number} of {len(splits)}")
        kept = checkpoint and checkpoint.with_name(f"{checkpoint.name}-{number}")
        settings, guessed = guess(trial, data, train, test, kept)
        right.append(float(np.mean(guessed == data.labels[test])))
        chosen.append({**settings, "judged on": sorted(set(data.speakers[test].tolist())), "phones": len(test)})
    return right, {"data": data.provenance, "source": data.source, "protocol": data.protocol, "folds": chosen}


def guess(
    trial: Trial, data: Phones, train: Any, test: Any, checkpoint: Path | None = None
) -> tuple[dict[str, Any], Any]:
    """What was chosen for one split of the speakers, and what is guessed of the segments to judge on.

    Settings of the learner are chosen by a linear classifier, and C, by the row's own one, for those settings.
    """
    recipe, stages, device = trial.recipe, trial.stages, str(trial.device)
    tried: list[tuple[float, Mapping[str, Any], Parts]] = []
    for choice in recipe.choices or ({},):
        words = "-".join(f"{name}-{value:g}" for name, value in choice.items())
        path = checkpoint and checkpoint.with_name(f"{checkpoint.name}-{words}")
        parts = _encoded(make_features(recipe, trial.seed, device, path, **choice), data, train, test, stages)
        with stages("classify"):
            score = choose(MANY, *parts.tuned, device)[1] if recipe.choices else 0.0
        tried.append((score, choice, parts))
    _, choice, parts = max(tried, key=lambda each: each[0])
    with stages("classify"):
        C, _ = choose(recipe.classifier, *parts.tuned, device)
        guessed = machine(recipe.classifier, C, device).fit(parts.X, data.labels[train]).predict(parts.X_test)
    return {**choice, "C": C}, guessed


def settings(recipe: Recipe, quick: bool) -> dict[str, Any]:
    """All that a result depends on but the seed and the data's origin."""
    return {
        "dataset": recipe.dataset,
        "splits": 2 if quick else "all",
        "folds": [FOLDS, INNER],
        "features": in_words(make_features(recipe, 0, "cpu")),
        "choices": recipe.choices,
        "chosen by": MANY if recipe.choices else None,
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


class Parts(NamedTuple):
    """Features of the segments to learn from and of those to judge on, and what choices are made with."""

    X: Any
    X_test: Any
    tuned: tuple[Any, Any, list[Any]]  # features, labels, and splits of them


def _encoded(features: SpeechFeatures, data: Phones, train: Any, test: Any, stages: Stages) -> Parts:
    """The features of a learner that is told no labels and learns from the training speakers alone.

    Choices are made on the development speakers where there are any, else on folds of the training speakers.
    """
    held = np.flatnonzero(data.parts == "development") if data.published else np.array([], int)
    with stages("learn"):
        fit(features, [data.segments[i] for i in train])
    with stages("encode"):
        X, X_held, X_test = (features.transform([data.segments[i] for i in part]) if len(part) else None
                             for part in (train, held, test))  # fmt: skip
    if X_held is None:
        return Parts(X, X_test, (X, data.labels[train], inner_folds(data.speakers[train])))
    split = np.arange(len(train)), len(train) + np.arange(len(held))
    return Parts(X, X_test, (np.concatenate([X, X_held]), data.labels[np.concatenate([train, held])], [split]))


def choose(classifier: Mapping[str, Any], X: Any, y: Any, splits: list[Any], device: str) -> tuple[float, float]:
    """The C that is best on given splits, and its accuracy there."""
    grid = classifier["C"]
    if classifier["class"] == "LinearSVM":
        model = machine(classifier, grid, device).set_params(cv=splits).fit(X, y)
        return model.C_, float(model.cv_results_["mean_test_score"].max())
    model, name = machine(classifier, 1.0, device), "svc__C"
    if len(X) <= WHOLE:  # the kernel is computed once for all, of features standardised by all rows
        X = rbf_kernel(StandardScaler().fit_transform(X))
        model, name = model[-1].set_params(kernel="precomputed"), "C"
    with parallel_config("threading"):
        search = GridSearchCV(model, {name: grid}, cv=splits, refit=False, n_jobs=-1).fit(X, y)
    return search.best_params_[name], float(search.best_score_)


def machine(classifier: Mapping[str, Any], C: Any, device: str) -> Any:
    """The classifier of a row; the kernel's width is LIBSVM's own, 1 / features."""
    options = {name: value for name, value in classifier.items() if name not in ("class", "C")}
    if classifier["class"] == "LinearSVM":
        return LinearSVM(C, device=device, **options)
    return make_pipeline(StandardScaler(), SVC(C=C, gamma="auto", **options))


def inner_folds(speakers: Any) -> list[tuple[Any, Any]]:
    """Segments to fit and segments to judge a choice on, by the speaker of each: no speaker is on both sides."""
    return list(GroupKFold(min(INNER, len(set(speakers)))).split(speakers, groups=speakers))
