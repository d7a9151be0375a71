"""Pairs of points that are close relative to their norm, where inner products cancel."""

import numpy as np
import pytest
import scipy.sparse as sp
import zoo

from mercer import KernelPCA
from mercer.gram import NystroemMap
from mercer.kernels import RBF, Radial

RADIAL = [e for e in zoo.LEAVES if isinstance(e.kernel, Radial)]


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("scale", [2.0, np.repeat([0.5, 1.0, 2.0, 4.0], 3)], ids=["one", "many"])
@pytest.mark.parametrize("entry", RADIAL, ids=lambda e: e.id)
def test_many_columns(entry, scale, form):
    """With many columns, distances are matrix products, accurate to 11 digits everywhere."""
    k = entry.kernel.set_params(length_scale=scale)
    rng = np.random.default_rng(1)
    # Multiples of 2^-20: translating them, or scaling by powers of two, is exact.
    X = np.rint(rng.normal(size=(12, 12)) * 2.0**20) / 2.0**20
    X += np.repeat([0.0, 1e2, 1e4, 1e6], 3)[:, None]
    Z = (
        X
        + np.rint(np.tile([1e-4, 1e-2, 1.0], 4)[:, None] * rng.normal(size=X.shape) * 2**20) / 2**20
    )
    X[:, 8:], Z[:, 9:] = 0.0, 0.0
    S, T = form(X), form(Z)
    K, G = k(S, T), k.input_gradient(S, T, np.eye(12))
    for i in range(12):
        x, z = np.zeros((1, 12)), Z[i : i + 1] - X[i : i + 1]
        s = float(np.sum((z / scale) ** 2))
        rtol = 1e-11 * (1.0 + s)
        pairs = [
            (K[i, i], k(x, z)),
            (G[i], k.input_gradient(x, z, np.ones((1, 1)))[0]),
            (
                k.pullback(S, T, np.outer(np.eye(12)[i], np.eye(12)[i])),
                k.pullback(x, z, np.ones((1, 1))),
            ),
        ]
        for got, want in pairs:
            np.testing.assert_allclose(got, want, rtol=0, atol=rtol * np.abs(want).max())


def stretched(entry, scale, columns=zoo.WIDE):
    """Return points with one column of range `scale`; some points repeat."""
    X = entry.points(40, columns)
    X[:, 1] *= scale
    X[30:] = X[:10]
    return X


@pytest.mark.parametrize("scale", [1.0, 1e2, 1e4, 1e6, 1e8])
@pytest.mark.parametrize(("entry", "columns"), **zoo.every_with_columns(RADIAL))
def test_equal_points_are_equal(entry, scale, columns):
    """k(x, copy of x) is k(x, x) to 1e-10, whatever the scale of a column."""
    k, X = entry.kernel, stretched(entry, scale, columns)
    S = sp.csr_array(X)
    for A, B, C in ((X, X, X.copy()), (S, S, S.copy()), (S, X, S), (S, S, X)):
        K = k(A)
        size = max(1.0, np.abs(K).max()) if np.isinf(k.diagonal_bound) else 1.0
        np.testing.assert_allclose(k(B, C), K, rtol=0, atol=1e-10 * size)
        np.testing.assert_allclose(k(B, C).diagonal(), k.diag(X), rtol=0, atol=1e-10)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("scale", [1.0, 1e3, 1e6, 1e8])
@pytest.mark.parametrize("entry", [e for e in RADIAL if e.psd], ids=lambda e: e.id)
def test_scores_of_training_points(entry, scale, form):
    X = form(stretched(entry, scale))
    if entry.columns:
        X = form(stretched(entry, scale, entry.columns))
    pca = KernelPCA(n_components=3, kernel=entry.kernel)
    np.testing.assert_allclose(pca.fit_transform(X), pca.transform(X), rtol=0, atol=1e-10)


def test_landmarks_of_sparse_points_with_a_far_cluster():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 20)) * (rng.random((60, 20)) < 0.5)
    X[30:, 0] += 1e4
    X[45:] = X[30:45] + 1e-4 * (X[30:45] != 0)
    dense, sparse = (NystroemMap.on(RBF(3.0), form(X)) for form in (np.asarray, sp.csr_array))
    assert (sparse.jitter, sparse.dropped) == (dense.jitter, dense.dropped)
    F = sparse.features(sp.csr_array(X))
    np.testing.assert_allclose(F @ F.T, RBF(3.0)(X), atol=1e-10)


@pytest.mark.parametrize("distance", [1e4, 1e6, 1e8])
def test_relevance_of_far_clusters(distance):
    """For distant clusters, the gradients are those of each cluster alone."""
    rng = np.random.default_rng(0)
    for columns in (2, 12):
        # Multiples of 2^-20, so that translating them is exact.
        X = np.rint(rng.normal(size=(10, columns)) * 2.0**20) / 2.0**20
        Z = X.copy()
        Z[5:] += distance
        W = rng.normal(size=(10, 10))
        apart = W * np.kron(np.eye(2), np.ones((5, 5)))
        k = RBF(np.full(columns, 2.0))
        for form in (np.asarray, sp.csr_array):
            A, B = form(X), form(Z)
            np.testing.assert_allclose(
                k.pullback(B, None, W), k.pullback(A, None, apart), rtol=1e-10
            )
            np.testing.assert_allclose(
                k.input_gradient(B, None, W), k.input_gradient(A, None, apart), rtol=1e-10
            )


def test_a_length_scale_below_the_range_of_float32():
    X = np.full((3, 2), 5.0, dtype=np.float32)
    assert np.all(RBF(1e-40)(X) == 1.0)
