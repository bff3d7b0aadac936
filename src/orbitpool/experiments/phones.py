"""Tables 4 and 5: phone classification, on the published split of TIMIT or on folds of the speakers at hand."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from orbitpool.classifiers import LinearSVM
from orbitpool.datasets import Phones, timit
from orbitpool.experiments.recipes import Recipe
from orbitpool.learners import Learner
from orbitpool.speech import SpeechFeatures

if TYPE_CHECKING:
    from orbitpool.experiments.runner import Stages

INNER = 5  # folds of the training speakers, on which C is chosen
WHOLE = 20_000  # segments whose kernel is computed at once, by one product of matrices


def accuracies(
    recipe: Recipe,
    learner: Learner | None,
    device: str,
    seed: int,
    quick: bool,
    data_dir: Path | None,
    stages: Stages,
) -> tuple[list[float], dict[str, Any]]:
    """Accuracy on the core test set, or on each fold of the speakers; what the data is, and what was chosen.

    Everything but the judging, all choices included, sees the training speakers alone.
    """
    with stages("data"):
        data = timit(data_dir)
    splits = data.splits()[: 2 if quick else None]
    right, chosen = [], []
    for number, (train, test) in enumerate(splits, 1):
        stages.tell(f"{number} of {len(splits)} ({data.provenance} data, {data.protocol})")
        features = SpeechFeatures(learner, device=device, random_state=seed, **recipe.speech or {})
        settings, model = _best(recipe, features, data, train, stages)
        guessed = model.predict([data.segments[i] for i in test])
        right.append(float(np.mean(guessed == data.labels[test])))
        chosen.append({**settings, "judged on": sorted(set(data.speakers[test].tolist())), "phones": len(test)})
    return right, {"data": data.provenance, "source": data.source, "protocol": data.protocol, "folds": chosen}


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
            X = varied.fit_transform([data.segments[i] for i in train])
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
