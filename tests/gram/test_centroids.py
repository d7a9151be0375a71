"""Landmarks as centroids: where they may be used, and what they are worth."""

import numpy as np
import pytest
import scipy.sparse as sp

from mercer.gram import LowRankGram
from mercer.gram._centroids import centroids, has_centroids
from mercer.kernels import RBF, Fixed, Linear, Matern, Select, Stretch

rng = np.random.default_rng(0)
X = rng.normal(size=(600, 4))


def test_where_they_make_sense():
    for kernel in (RBF(), 2 * Matern(), Fixed(RBF((1.0, 2.0, 1.0, 1.0)))):
        assert has_centroids(kernel, X)
    for kernel in (Linear(), RBF() + Linear(), Select(RBF(), [0]), Stretch(RBF(), 2.0)):
        assert not has_centroids(kernel, X)
    assert not has_centroids(RBF(), sp.csr_array(X))
    with pytest.raises(ValueError, match="'kmeans' and 'medoids' need dense vectors and a kernel"):
        centroids(Linear(), X, 5)


@pytest.mark.parametrize("method", ["uniform", "rpcholesky", "kmeans++", "leverage"])
def test_they_leave_less_over_than_points(method):
    kernel = RBF(2.0)
    ours = LowRankGram(kernel, X, centroids(kernel, X, 40, random_state=0)).residual_trace
    theirs = LowRankGram(kernel, X, method, n_landmarks=40, random_state=0).residual_trace
    assert ours < 0.97 * theirs


def test_length_scales_count():
    far = X * [1.0, 1.0, 1.0, 100.0]
    kernel = RBF((2.0, 2.0, 2.0, 200.0))
    plain = centroids(RBF(2.0), X, 20, random_state=0)
    scaled = centroids(kernel, far, 20, random_state=0)
    np.testing.assert_allclose(scaled, plain * [1.0, 1.0, 1.0, 100.0], rtol=1e-9, atol=1e-9)


def test_outliers_duplicates_and_repetition():
    points = np.vstack([np.zeros((500, 2)), [[50.0, 0.0]]])
    found = centroids(RBF(), points, 5, random_state=0)
    assert len(found) == 2  # the rank of K
    assert np.any(found[:, 0] == 50.0)
    again = [centroids(RBF(), X, 30, random_state=3, n_threads=t) for t in (1, 2)]
    assert np.array_equal(again[0], again[1])


def test_float32_and_a_subsample():
    many = rng.normal(size=(30_000, 2)).astype(np.float32)
    found = centroids(RBF(), many, 50, random_state=0)
    assert found.shape == (50, 2)
    assert found.dtype == np.float64
    assert np.abs(found).max() <= np.abs(many).max()
