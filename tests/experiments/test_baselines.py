"""The baselines against independent ways to the same."""

import numpy as np
import torch
from numpy.testing import assert_allclose
from sklearn.cluster import KMeans as SklearnKMeans
from sklearn.linear_model import Lasso

from orbitpool.experiments.baselines import KMeans, SparseCoding, sparse_codes
from orbitpool.images import ConvFeatures


def test_kmeans_reaches_what_scikit_learn_reaches_from_the_same_start(digits):
    X = torch.from_numpy(digits).float()
    ours = KMeans(20, n_iter=100, random_state=0).fit(X)
    start = X[torch.randperm(len(X), generator=torch.Generator().manual_seed(0))[:20]].numpy()
    theirs = SklearnKMeans(20, init=start, n_init=1, max_iter=100, tol=0).fit(X.numpy())
    assert_allclose(ours.components_, theirs.cluster_centers_, atol=1e-4)


def test_triangle_features_are_how_much_nearer_than_the_mean_a_centre_is(digits):
    X = torch.from_numpy(digits).float()
    model = KMeans(10, n_iter=2).fit(X)
    distance = np.linalg.norm(digits[:, None] - model.components_.numpy(), axis=2)
    expected = np.maximum(distance.mean(1, keepdims=True) - distance, 0)
    assert_allclose(model.encoder().folded(torch.eye(64))(X), expected, atol=1e-4)


def test_sparse_codes_are_the_lassos(digits):
    v, W = torch.from_numpy(digits[:20]), torch.from_numpy(digits[100:180])
    W = W / W.norm(dim=1, keepdim=True)
    lasso = Lasso(alpha=0.3 / 64, fit_intercept=False, tol=1e-10, max_iter=100_000)
    expected = np.stack([lasso.fit(W.T.numpy(), x).coef_ for x in v.numpy()])
    s = sparse_codes(v, W, 0.3, 3000)

    def objective(s):
        return 0.5 * (v - s @ W).square().sum(1) + 0.3 * s.abs().sum(1)

    assert_allclose(objective(s), objective(torch.from_numpy(expected)), rtol=1e-6)


def test_sparse_coding_lowers_its_objective(digits):
    X = torch.from_numpy(digits)

    def objective(n_iter):
        model = SparseCoding(30, n_iter=n_iter, steps=200, penalty=0.2, random_state=0).fit(X)
        s = sparse_codes(X, model.components_, 0.2, 200)
        return float(0.5 * (X - s @ model.components_).square().sum(1).mean() + 0.2 * s.abs().sum(1).mean())

    assert objective(10) < 0.95 * objective(1)


def test_they_fit_into_conv_features(photographs):
    images = photographs[:, :40, :40]
    for baseline, features in ((KMeans(8, n_iter=2), 8), (SparseCoding(8, n_iter=2), 16)):
        conv = ConvFeatures(baseline, patch_size=6, n_patches=500, random_state=0).fit(images)
        assert conv.transform(images).shape == (2, 4 * features)
        assert len(conv.get_feature_names_out()) == 4 * features
