import os
from math import pi
from time import perf_counter, sleep

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from orbitpool import TIOMP, TIRBM, ConvFeatures, LinearSVM, SoftmaxRegression, TIAutoencoder, load, together
from orbitpool import transforms as T
from orbitpool.classifiers import newton, preconditioner
from orbitpool.learners.training import Asked
from spreading import spread

QUARTERS = T.rotations(8, count=4, step=pi / 2)
GAUSSIAN = {"visible": "gaussian", "sigma": "learned", "learning_rate": 0.002, "sample_visible": True}
LEARNERS = {
    "binary": TIRBM(24, QUARTERS),
    "gaussian": TIRBM(24, QUARTERS, **GAUSSIAN),
    "poses": TIRBM(24, T.learned(T.rotations(8, count=3, step=0.5), learning_rate=0.03, every=5)),  # not chaotic
    "chains": TIRBM(24, persistent=True, cd_steps=2, sample_visible=True),
    "omp": TIOMP(24, QUARTERS, gamma=2),
    "autoencoder": TIAutoencoder(24, QUARTERS),
}


def rows(dtype="float64"):
    """907 digits: nine batches of a hundred, and one of seven, which is too few for four processes to share."""
    return (load_digits().data[:907] / 16).astype(dtype)


def fitted(model, n_iter, X=None, **options):
    return model.set_params(batch_size=100, n_iter=n_iter, random_state=0, **options).fit(rows() if X is None else X)


def parameters(model):
    return {name: getattr(model, name) for name in model.PARAMETERS.values()}


def learned(name, n_iter=20):
    model = fitted(LEARNERS[name], n_iter)
    return parameters(model) | {
        "error": model.history_["reconstruction_error"],
        "updates": model._state.at.update,
        "features": model.transform(rows()[:101]),
    }


@pytest.mark.parametrize("name", LEARNERS)
def test_one_two_and_four_processes_learn_the_same(name):
    (alone,) = spread(learned, 1, name)
    assert alone["updates"] == 200
    for processes in (2, 4):
        for result in spread(learned, processes, name):
            for part, expected in alone.items():
                np.testing.assert_allclose(result[part], expected, rtol=0, atol=1e-5, err_msg=part)


def single(n_iter=20):
    return parameters(fitted(LEARNERS["binary"], n_iter, rows("float32")))


def test_three_processes_learn_the_same_in_single_precision():
    (alone,) = spread(single, 1)
    for result in spread(single, 3):
        for part, expected in alone.items():
            np.testing.assert_allclose(result[part], expected, rtol=0, atol=1e-5, err_msg=part)


def stopping():
    model = fitted(TIRBM(24), 30, early_stopping=True, n_iter_no_change=1, learning_rate=1.0)
    return model.n_iter_, model.history_["validation_error"]


def test_processes_stop_early_at_the_same_epoch():
    ((epochs, errors),) = spread(stopping, 1)
    assert epochs < 30
    for theirs, found in spread(stopping, 2):
        assert theirs == epochs
        np.testing.assert_allclose(found, errors, atol=1e-8)


def dense(sizes):
    """Features of images of some sizes, by filters learned from their patches."""
    pixels = np.random.default_rng(0).random((len(sizes), 16, 16), np.float32)
    images = [image[:size] for image, size in zip(pixels, sizes, strict=True)]
    learner = TIOMP(16, T.rotations(4, count=4, step=pi / 2), n_iter=3, batch_size=200)
    model = ConvFeatures(learner, n_patches=2001, random_state=0)
    X = np.stack(images) if len(set(sizes)) == 1 else images
    return model.fit(X).transform(X), model.whitening_


@pytest.mark.parametrize("sizes", [[16] * 15, [16] * 7 + [12] * 4 + [9], [16, 12, 9]])
def test_processes_whiten_and_encode_the_same(sizes):
    ((features, matrix),) = spread(dense, 1, sizes)
    for processes in (2, 4):
        for found, whitening in spread(dense, processes, sizes):
            np.testing.assert_allclose(whitening, matrix, atol=1e-5)
            np.testing.assert_allclose(found, features, atol=1e-5)


def classified(kind, pieces):
    """A classifier of digits, with C chosen by cross-validation, and what it says of some of them."""
    X, y = load_digits(return_X_y=True)
    X = X / 16
    model = (LinearSVM if kind == "svm" else SoftmaxRegression)(C=[0.001, 0.1], tol=1e-8)
    model.fit(np.array_split(X, pieces) if pieces > 1 else X, y)
    return model.coef_, model.C_, model.cv_results_["mean_test_score"], model.n_iter_, model.decision_function(X[:99])


@pytest.mark.parametrize(("kind", "pieces"), [("svm", 1), ("softmax", 1), ("svm", 3)])
def test_processes_classify_the_same(kind, pieces):
    (alone,) = spread(classified, 1, kind, 1)
    for processes in (2, 4):
        for found in spread(classified, processes, kind, pieces):
            for theirs, ours in zip(found, alone, strict=True):
                np.testing.assert_allclose(theirs, ours, atol=1e-5)


def decided(standardize):
    """A classifier on processes of which the second would decide otherwise, whatever there is to decide."""
    X, y = load_digits(return_X_y=True)
    second = together.place() == 1
    cholesky = torch.linalg.cholesky_ex
    failing = iter([second] + 100 * [False])  # one matrix has no root, on one of them
    torch.linalg.cholesky_ex = lambda M: (lambda R, bad: (R, bad + next(failing)))(*cholesky(M))
    if second:
        newton.FLAT, newton.FORCING, preconditioner.DRIFT = 0.5, 0.9, 100.0
    model = LinearSVM([0.001, 0.1, 1.0], tol=1e-2 if second else 1e-6, standardize=standardize)
    model.set_params(random_state=np.random.RandomState(together.place()))
    model.fit(X / 16, y)
    return model.n_iter_, model.coef_, model.cv_results_["mean_test_score"], model.C_


@pytest.mark.parametrize("standardize", [False, True])
def test_processes_do_what_the_first_decides(standardize):
    first, second = spread(decided, 2, standardize, timeout=60)
    for theirs, ours in zip(first, second, strict=True):
        np.testing.assert_array_equal(theirs, ours)


def judged():
    X, y = load_digits(return_X_y=True)
    model = LinearSVM([0.0001, 0.001, 0.1], tol=1e-8).fit(
        X[:1000] / 16, y[:1000], X_valid=X[1000:] / 16, y_valid=y[1000:]
    )
    return model.C_, model.cv_results_["mean_test_score"], model.coef_


def test_processes_share_what_they_choose_by():
    (alone,) = spread(judged, 1)
    for processes in (2, 3):
        for found in spread(judged, processes):
            for theirs, ours in zip(found, alone, strict=True):
                np.testing.assert_allclose(theirs, ours, atol=1e-5)


def kept(path, n_iter):
    return parameters(fitted(LEARNERS["gaussian"], n_iter, checkpoint=path))


def test_another_number_of_processes_goes_on_to_the_same(tmp_path):
    (undisturbed,) = spread(kept, 1, tmp_path / "whole", 6)
    for processes, n_iter in ((2, 2), (1, 3), (3, 6)):
        results = spread(kept, processes, tmp_path / "run", n_iter)
    for result in results:
        for part, expected in undisturbed.items():
            np.testing.assert_allclose(result[part], expected, rtol=0, atol=1e-5, err_msg=part)


def unseeded():
    return TIRBM(8, n_iter=1).fit(rows()).components_


def test_processes_without_a_seed_take_one_that_is_the_same():
    first, second = spread(unseeded, 2)
    assert np.array_equal(first, second)


def written(path):
    fitted(TIRBM(8), 1).save(path)
    return load(path).components_


def test_a_model_is_written_once_and_there_for_all(tmp_path):
    first, second = spread(written, 2, tmp_path / "m.safetensors")
    assert np.array_equal(first, second)
    assert [p.name for p in tmp_path.iterdir()] == ["m.safetensors"]


def refused(path):
    try:
        fitted(TIRBM(8), 1).save(path)
    except OSError as error:
        return str(error)
    return None


def test_all_processes_fail_if_the_first_cannot_write(tmp_path):
    first, second = spread(refused, 2, tmp_path / "nowhere" / "m.safetensors")
    assert "No such file" in first
    assert "first process failed to write" in second


def different():
    X = rows()[together.place() * 100 :][:800]
    try:
        fitted(TIRBM(8), 1, X)
    except ValueError as error:
        return str(error)
    return None


def test_processes_with_data_of_their_own_are_refused():
    assert all("not the same on all 2 processes" in said for said in spread(different, 2))


def said(what, X):
    """What a method says of rows that are longer on one process, or in another order there."""
    try:
        what(X)
    except ValueError as error:
        return str(error)
    return None


def other_rows():
    X, y = rows("float32"), load_digits().target[:907]
    images = X.reshape(-1, 8, 8)
    rbm, svm = fitted(TIRBM(8), 1), LinearSVM().fit(X, y)
    dense = ConvFeatures(TIOMP(4, T.identity(4), n_iter=1), n_patches=200, random_state=0).fit(images)
    odd, methods = together.place(), (rbm.transform, rbm.pose, rbm.score, svm.predict, svm.decision_function)
    longer = [said(method, X[: 800 + odd]) for method in methods]
    longer.append(said(dense.transform, images[: 800 + odd]))
    many = np.tile(X, (12, 1))[: 10_000 + odd]  # one row in ten thousand is a difference, too
    longer.append(said(lambda X: LinearSVM().fit(X, np.arange(len(X)) % 2), many))
    level = np.random.default_rng(odd).standard_normal(X.shape)  # rows whose sums are 0 on both
    level -= level.mean(1, keepdims=True)
    other = [said(rbm.transform, X[:: 1 - 2 * odd]), said(rbm.transform, level)]
    centred = (X - X.mean(1, keepdims=True)) * np.float32(1 + odd * 2e-7)  # the same but for rounding
    return longer, other, [said(rbm.transform, X), said(rbm.transform, centred)]


def test_other_rows_on_another_process_are_said_where_they_are_used():
    for longer, other, same in spread(other_rows, 2):
        assert all("not the same on all 2 processes (" in said for said in longer)
        assert all("rows 800 to 801" in said and "apart()" in said for said in longer[:-1])
        assert "rows 10000 to 10001" in longer[-1]
        assert all("(other values)" in said for said in other)
        assert same == [None, None]


def asked_slowly():
    interrupted = []
    asked, began = Asked(lambda: bool(interrupted)), perf_counter()
    for update in range(100):
        sleep(0.1)
        if update == 5 and together.place():
            interrupted.append("by the second process")
        if asked():
            return update, perf_counter() - began
    return None


def test_processes_stop_together_and_soon_however_slow_their_updates_are():
    (one, seconds), (other, _) = spread(asked_slowly, 2)
    assert one == other
    assert 5 <= one <= 30
    assert seconds < 5


def joined_again():
    os.environ |= {"RANK": str(together.place()), "WORLD_SIZE": "2"}
    with together.joined(), together.joined():
        inside = together.processes()
    found = together.told(lambda: {"place": together.place(), "ü": [0.1, None]})  # still together
    return inside, found


def test_who_works_together_already_may_join_again_and_hear_the_first():
    assert spread(joined_again, 2) == [(2, {"place": 0, "ü": [0.1, None]})] * 2


def failing():
    try:
        together.told(lambda: 1 / 0 if together.first() else None)
    except (ZeroDivisionError, OSError) as error:
        return str(error)
    return None


def test_nobody_waits_for_a_first_process_that_fails():
    first, second = spread(failing, 2)
    assert first == "division by zero"
    assert "the first process failed to read" in second


def apart():
    with together.apart():
        return fitted(TIRBM(8), 1, rows()[together.processes() * 100 :]).components_


def test_a_process_can_work_alone():
    first, second = spread(apart, 2)
    assert np.array_equal(first, second)


def shares():
    found = [together.part(n) for n in (3, 4, 7, 100)]
    gathered = [part.gather(torch.arange(part.n)[part.own]).tolist() for part in found]
    return [(p.n, p.own.start, p.own.stop, p.weight) for p in found], gathered


def test_shares_cover_all_rows_once():
    results = spread(shares, 3)
    assert all(gathered == [list(range(n)) for n in (3, 4, 7, 100)] for _, gathered in results)
    for n, *each in zip((3, 4, 7, 100), *(found for found, _ in results), strict=True):
        assert sum(weight for *_, weight in each) == pytest.approx(1)
        if n >= 6:
            covered = [i for _, start, stop, _ in each for i in range(start, stop)]
            assert covered == list(range(n))
