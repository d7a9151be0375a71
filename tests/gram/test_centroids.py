"""Test k-means landmarks: when they are available, and their residual."""

import numpy as np
import pytest
import scipy.sparse as sp

from mercer.gram import LowRankGram, _landmarks
from mercer.gram._landmarks import (
    kmeans_centroids,
    kmeans_medoids,
    supports_kmeans_landmarks,
)
from mercer.kernels import RBF, Fixed, Linear, Matern, Select, Stretch

rng = np.random.default_rng(0)
X = rng.normal(size=(600, 4))


def test_where_they_make_sense():
    for kernel in (RBF(), 2 * Matern(), Fixed(RBF((1.0, 2.0, 1.0, 1.0)))):
        assert supports_kmeans_landmarks(kernel, X)
    for kernel in (Linear(), RBF() + Linear(), Select(RBF(), [0]), Stretch(RBF(), 2.0)):
        assert not supports_kmeans_landmarks(kernel, X)
    assert not supports_kmeans_landmarks(RBF(), sp.csr_array(X))
    with pytest.raises(ValueError, match="'kmeans' and 'medoids' need dense vectors and a radial"):
        kmeans_centroids(Linear(), X, 5)


@pytest.mark.parametrize("method", ["uniform", "rpcholesky", "kmeans++", "leverage"])
def test_they_leave_less_over_than_points(method):
    kernel = RBF(2.0)
    ours = LowRankGram(kernel, X, kmeans_centroids(kernel, X, 40, random_state=0)).residual_trace
    theirs = LowRankGram(kernel, X, method, n_landmarks=40, random_state=0).residual_trace
    assert ours < 0.97 * theirs


def test_length_scales_count():
    far = X * [1.0, 1.0, 1.0, 100.0]
    kernel = RBF((2.0, 2.0, 2.0, 200.0))
    plain = kmeans_centroids(RBF(2.0), X, 20, random_state=0)
    scaled = kmeans_centroids(kernel, far, 20, random_state=0)
    np.testing.assert_allclose(scaled, plain * [1.0, 1.0, 1.0, 100.0], rtol=1e-9, atol=1e-9)


def test_outliers_duplicates_and_repetition():
    points = np.vstack([np.zeros((500, 2)), [[50.0, 0.0]]])
    found = kmeans_centroids(RBF(), points, 5, random_state=0)
    assert len(found) == 2  # the rank of K
    assert np.any(found[:, 0] == 50.0)
    again = [kmeans_centroids(RBF(), X, 30, random_state=3, n_threads=t) for t in (1, 2)]
    assert np.array_equal(again[0], again[1])


def test_float32_and_a_subsample():
    many = rng.normal(size=(30_000, 2)).astype(np.float32)
    found = kmeans_centroids(RBF(), many, 50, random_state=0)
    assert found.shape == (50, 2)
    assert found.dtype == np.float64
    assert np.abs(found).max() <= np.abs(many).max()


# ---------------------------------------------------------------------- medoids


def left_by(kernel, points, landmarks):
    return LowRankGram(kernel, points, landmarks).residual_trace


def test_medoids_leave_less_over_than_points_drawn_with_equal_chances():
    many = np.random.default_rng(1).normal(size=(3000, 3))
    for kernel in (RBF(2.0), Matern(3.0, nu=1.5)):
        seeds = range(3)
        ours = [
            left_by(kernel, many, many[kmeans_medoids(kernel, many, 60, random_state=s)])
            for s in seeds
        ]
        chance = [
            LowRankGram(kernel, many, "uniform", n_landmarks=60, random_state=s).residual_trace
            for s in seeds
        ]
        assert np.mean(ours) < 0.8 * np.mean(chance)


@pytest.mark.parametrize(("width", "most"), [(0.2, 200), (3.0, 2000)])
def test_medoids_look_at_more_points_where_it_matters(width, most, monkeypatch):
    many, seen = np.random.default_rng(1).normal(size=(5000, 4)), []
    choose = _landmarks.choose_with_residual

    def watched(kernel, X, *options):
        seen.append(len(X))
        return choose(kernel, X, *options)

    monkeypatch.setattr(_landmarks, "choose_with_residual", watched)
    found = kmeans_medoids(RBF(width), many, 50, random_state=0)
    assert len(np.unique(found)) == 50
    assert seen[-1] == most
    again = [kmeans_medoids(RBF(width), many, 50, random_state=0, n_threads=t) for t in (1, 2)]
    assert np.array_equal(again[0], again[1]) and np.array_equal(again[0], found)
