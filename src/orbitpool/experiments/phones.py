"""Tables 4 and 5: phone classification, on the published split of TIMIT or on folds of the speakers at hand."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from orbitpool.classifiers import LinearSVM
from orbitpool.datasets import timit
from orbitpool.experiments.recipes import Recipe
from orbitpool.learners import Learner
from orbitpool.speech import SpeechFeatures

if TYPE_CHECKING:
    from orbitpool.experiments.runner import Stages

INNER = 5  # folds of the training speakers, on which C is chosen


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

    Everything but the judging, the choice of C included, sees the training speakers alone.
    """
    with stages("data"):
        data = timit(data_dir)
    splits = data.splits()[: 2 if quick else None]
    chosen, right = [], []
    for number, (train, test) in enumerate(splits, 1):
        stages.tell(f"{number} of {len(splits)} ({data.provenance} data, {data.protocol})")
        features = SpeechFeatures(learner, device=device, random_state=seed, **(recipe.speech or {}))
        with stages("learn"):
            X = features.fit_transform([data.segments[i] for i in train])
        with stages("classify"):
            classifier, C = classify(recipe, X, data.labels[train], data.speakers[train])
        guessed = classifier.predict(features.transform([data.segments[i] for i in test]))
        right.append(float(np.mean(guessed == data.labels[test])))
        chosen.append({"C": C, "judged on": sorted(set(data.speakers[test].tolist())), "phones": len(test)})
    origin = {"data": data.provenance, "source": data.source, "protocol": data.protocol, "folds": chosen}
    return right, origin


def classify(recipe: Recipe, X: Any, y: Any, speakers: Any) -> tuple[Any, float]:
    """A classifier fitted to segments, with C chosen by cross-validation over their speakers, and C."""
    options = dict(recipe.classifier)
    inner = inner_folds(speakers)
    if options.pop("class") == "LinearSVM":
        linear = LinearSVM(cv=inner, **options).fit(X, y)
        return linear, linear.C_
    grid = {"svc__C": options.pop("C")}
    search = GridSearchCV(make_pipeline(StandardScaler(), SVC(**options)), grid, cv=inner).fit(X, y)
    return search, search.best_params_["svc__C"]


def inner_folds(speakers: Any) -> list[tuple[Any, Any]]:
    """Segments to fit and segments to judge a C on, by the speaker of each: no speaker is on both sides."""
    return list(GroupKFold(min(INNER, len(set(speakers)))).split(speakers, groups=speakers))
