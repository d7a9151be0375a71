"""Kernel PCA with features: landmarks with bounds, random Fourier features without."""

import re

import numpy as np
import pytest
import scipy.sparse as sp
import zoo
from threadpoolctl import threadpool_limits

from mercer import NotPositiveDefiniteError
from mercer.gram import CentredGram, DenseGram, TiledGram, _feature_map, gram
from mercer.kernels import (
    RBF,
    Callable,
    Cosine,
    Distance,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    Precomputed,
    Sigmoid,
    White,
)
from mercer.solvers import DenseEigen, FourierEigen, LowRankEigen, Status

rng = np.random.default_rng(0)
X = rng.normal(size=(200, 3))
METHODS = ["auto", "kmeans", "rpcholesky", "uniform", "kmeans++", "leverage"]
WORDS = zoo.Entry("", Callable(zoo.letters), domain="words").points(60)


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """With many small matrices, BLAS threads would only wait for each other."""
    with threadpool_limits(1):
        yield


def centred(kernel, X, weights=None):
    return CentredGram(DenseGram(kernel, X), weights)


def approximate(kernel, X, S, weights=None):
    """Return the spectrum of the centred S K_nS K_SS^-1 K_Sn S, by NumPy."""
    cross = kernel(X, S)
    K = cross @ np.linalg.solve(kernel(S), cross.T)
    return np.linalg.eigvalsh(CentredGram(gram(Precomputed(), (K + K.T) / 2), weights).to_array())[
        ::-1
    ]


def assert_bounds_hold(certificate, exact, forgiven=0.0):
    k = len(certificate.lower)
    assert np.all(certificate.lower <= exact[:k] + forgiven)
    assert np.all(exact[:k] <= certificate.upper + forgiven)
    assert exact[k] <= certificate.outside + forgiven


# ---------------------------------------------------------------------- landmarks


@pytest.mark.parametrize(
    "kernel", [RBF(), Matern(1.2), Linear() + 1, Polynomial(2), Cosine()], ids=str
)
@pytest.mark.parametrize("weights", [None, rng.exponential(size=90)], ids=["", "weights"])
def test_landmarks_everywhere_are_exact(kernel, weights):
    points = X[:90]
    reference = DenseEigen().eigenpairs(centred(kernel, points, weights), 3)
    solver = LowRankEigen(landmarks="rpcholesky", random_state=0)
    pairs = solver.eigenpairs(CentredGram(TiledGram(kernel, points), weights), 3)
    assert pairs.report.status is Status.APPROXIMATE
    np.testing.assert_allclose(pairs.values, reference.values, rtol=1e-9)
    np.testing.assert_allclose(pairs.vectors, reference.vectors, atol=1e-7)
    assert_bounds_hold(pairs.certificate, np.append(reference.values, 0.0))
    assert pairs.certificate.nothing_missed
    width = pairs.certificate.upper - pairs.certificate.lower
    assert width.max() < 1e-8 * reference.values[0]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kernel", [RBF(), Matern(2.0)], ids=str)
def test_every_way_to_choose_landmarks(kernel, method):
    exact = np.linalg.eigvalsh(centred(kernel, X).to_array())[::-1]
    widths = []
    for rank in (20, 80):
        solver = LowRankEigen(rank=rank, landmarks=method, random_state=0)
        pairs = solver.eigenpairs(CentredGram(TiledGram(kernel, X)), 4)
        c = pairs.certificate
        assert_bounds_hold(c, exact)
        widths.append(c.upper - c.lower)
        again = solver.eigenpairs(CentredGram(TiledGram(kernel, X, n_threads=1)), 4)
        assert np.array_equal(pairs.vectors, again.vectors)
        np.testing.assert_allclose(pairs.vectors.T @ pairs.vectors, np.eye(4), atol=1e-9)
        largest = np.abs(pairs.vectors).argmax(axis=0)
        assert np.all(pairs.vectors[largest, np.arange(4)] > 0)
    assert np.all(widths[1] < 0.5 * widths[0])


def test_centroids_and_pivots_beat_chance():
    residuals = {}
    for method in ("kmeans", "rpcholesky", "uniform"):
        left = [
            LowRankEigen(rank=25, landmarks=method, random_state=seed)
            .eigenpairs(CentredGram(TiledGram(RBF(), X)), 2)
            .basis.moments.residual
            for seed in range(4)
        ]
        residuals[method] = np.mean(left)
    assert residuals["kmeans"] < residuals["uniform"]
    assert residuals["rpcholesky"] < residuals["uniform"]


@pytest.mark.parametrize("weights", [None, rng.exponential(size=200)], ids=["", "weights"])
def test_the_landmarks_of_the_user(weights):
    S = rng.normal(size=(25, 3))
    pairs = LowRankEigen(landmarks=S).eigenpairs(centred(RBF(), X, weights), 5)
    np.testing.assert_allclose(pairs.values, approximate(RBF(), X, S, weights)[:5], rtol=1e-8)
    np.testing.assert_allclose(pairs.vectors.T @ pairs.vectors, np.eye(5), atol=1e-9)
    exact = np.linalg.eigvalsh(centred(RBF(), X, weights).to_array())[::-1]
    assert_bounds_hold(pairs.certificate, exact)
    assert LowRankEigen(landmarks=S).features(10_000, 3) == 25


def test_weights_are_repetitions():
    counts = rng.integers(1, 4, size=200)
    solver = LowRankEigen(landmarks=X[:30])
    weighted = solver.eigenpairs(centred(RBF(), X, counts), 4)
    repeated = solver.eigenpairs(centred(RBF(), np.repeat(X, counts, axis=0)), 4)
    share = 200 / counts.sum()  # both are n times a covariance
    np.testing.assert_allclose(weighted.values, share * repeated.values, rtol=1e-10)
    scaled = repeated.vectors[np.cumsum(counts) - 1] * np.sqrt(counts)[:, None]
    np.testing.assert_allclose(weighted.vectors, scaled, atol=1e-9)
    assert weighted.certificate.upper[0] == pytest.approx(share * repeated.certificate.upper[0])


@pytest.mark.parametrize("method", ["auto", "rpcholesky", "uniform", "kmeans++", "leverage"])
def test_values_that_the_user_computed(method):
    K = RBF()(X)
    exact = np.linalg.eigvalsh(centred(RBF(), X).to_array())[::-1]
    solver = LowRankEigen(rank=60, landmarks=method, random_state=0)
    pairs = solver.eigenpairs(CentredGram(gram(Precomputed(), K)), 3)
    assert_bounds_hold(pairs.certificate, exact)
    assert pairs.certificate.upper[0] < 2.0 * exact[0]
    assert pairs.basis.map.kernel.matrix is not None  # a kernel on indices: landmarks are integers


@pytest.mark.parametrize(
    "landmarks", ["auto", "rpcholesky", "kmeans++", "uniform", WORDS[:20]], ids=str
)
def test_words(landmarks):
    """The kernel counts equal letters out of five: its rank is five, and four after centring."""
    K = Callable(zoo.letters)
    exact = np.linalg.eigvalsh(centred(K, WORDS).to_array())[::-1]
    rank = 20 if isinstance(landmarks, str) else None
    solver = LowRankEigen(rank=rank, landmarks=landmarks, random_state=0)
    pairs = solver.eigenpairs(centred(K, WORDS), 4)
    np.testing.assert_allclose(pairs.values, exact[:4], rtol=1e-9)
    assert_bounds_hold(pairs.certificate, exact)
    assert len(pairs.basis.map) == 5


def test_sparse_rows():
    rows = X * (np.abs(X) > 0.5)
    solver = LowRankEigen(rank=40, landmarks="rpcholesky", random_state=0)
    dense, sparse = (
        solver.eigenpairs(CentredGram(TiledGram(RBF(), points)), 3)
        for points in (rows, sp.csr_array(rows))
    )
    np.testing.assert_allclose(sparse.values, dense.values, rtol=1e-9)


def test_without_centring():
    S = X[:40]
    pairs = LowRankEigen(landmarks=S).eigenpairs(DenseGram(Matern(), X), 4)
    cross = Matern()(X, S)
    want = np.linalg.eigvalsh(cross @ np.linalg.solve(Matern()(S), cross.T))[::-1]
    np.testing.assert_allclose(pairs.values, want[:4], rtol=1e-9)
    assert_bounds_hold(pairs.certificate, np.linalg.eigvalsh(Matern()(X))[::-1])


def test_noise_is_not_in_the_features_but_in_the_residual():
    kernel = RBF() + White(0.2)
    pairs = LowRankEigen(rank=100, landmarks="uniform", random_state=0).eigenpairs(
        centred(kernel, X), 3
    )
    assert pairs.basis.moments.residual >= 0.2 * 200
    assert_bounds_hold(pairs.certificate, np.linalg.eigvalsh(centred(kernel, X).to_array())[::-1])


def test_axes_and_scores():
    """The eigenvectors are the centred features along orthonormal axes."""
    pairs = LowRankEigen(rank=50, random_state=0).eigenpairs(centred(RBF(), X), 4)
    phi, moments, axes = pairs.basis.map, pairs.basis.moments, pairs.basis.axes
    np.testing.assert_allclose(axes.T @ axes, np.eye(4), atol=1e-12)
    F = phi.features(X)
    np.testing.assert_allclose(moments.mean, F.mean(axis=0), atol=1e-12)
    scores = (F - F.mean(axis=0)) @ axes
    np.testing.assert_allclose(pairs.vectors * np.sqrt(pairs.values), scores, atol=1e-9)
    assert pairs.first(2).basis.axes.shape == (50, 2)
    assert pairs.first(2).certificate.outside == pairs.certificate.upper[2]


# ---------------------------------------------------------------------- bounds


def test_the_interval_is_the_residual_trace_at_most():
    for rank in (10, 40, 120):
        solver = LowRankEigen(rank=rank, landmarks="rpcholesky", random_state=0)
        pairs = solver.eigenpairs(CentredGram(TiledGram(Matern(), X)), 5)
        c, left = pairs.certificate, pairs.basis.moments.residual
        S = pairs.basis.map.points
        cross = Matern()(X, S)
        residual = 200.0 - np.sum(cross * np.linalg.solve(Matern()(S), cross.T).T)
        assert left == pytest.approx(residual, rel=1e-8)
        width = c.upper - c.lower
        assert np.all(width <= left + 2.0 * c.slack + 1e-12) and width[0] > 0.9 * left
        # The eigenvalues share the trace, so that the fifth cannot be all of it.
        assert pairs.residuals == pytest.approx(left, rel=1e-9)


def test_landmarks_close_to_each_other_are_bounded_with_their_rounding():
    """For landmarks in a tiny region, K^ extrapolates and amplifies rounding a million times."""
    seen, refused = 0.0, 0
    for seed in range(20):
        r = np.random.default_rng(seed)
        points = r.normal(size=(40, 3))
        S = points[:1] + 10.0 ** r.uniform(-4, -2) * r.normal(size=(12, 3))
        for kernel in (Polynomial(2, gamma=0.5), Linear(), RBF()):
            try:
                pairs = LowRankEigen(landmarks=S).eigenpairs(centred(kernel, points), 1)
            except NotPositiveDefiniteError:  # rounding is amplified to 1e-7 k(x, x)
                refused += 1
                continue
            exact = np.linalg.eigvalsh(centred(kernel, points).to_array())[::-1]
            c = pairs.certificate
            assert_bounds_hold(c, exact, forgiven=1e-14 * np.linalg.norm(kernel(points), 2))
            seen = max(seen, (pairs.values[0] - exact[0]) / exact[0])
    assert refused < 10
    assert seen > 1e-11  # some bounds would be violated without this part of the slack


def test_points_far_from_the_origin_are_bounded_with_their_rounding():
    """Rounding errors are relative to k(x, x), not to the centred values."""
    for far in (1e2, 1e4):
        points = X[:50] + far
        deviations = points - points.mean(axis=0)
        exact = np.append(np.linalg.svd(deviations, compute_uv=False) ** 2, 0.0)
        solver = LowRankEigen(rank=3, landmarks="uniform", random_state=0)
        c = solver.eigenpairs(centred(Linear(), points), 3).certificate
        assert_bounds_hold(c, exact)
        assert c.slack < 1e-12 * far**2 * 50


# ---------------------------------------------------------------------- strings and messages


def test_what_it_says():
    said = []
    solver = LowRankEigen(rank=20, landmarks="rpcholesky", random_state=0)
    pairs = solver.eigenpairs(centred(RBF(), X), 2, log=said.append)
    assert said[0] == f"features by {pairs.basis.map!r}"
    left = pairs.basis.moments.residual
    assert pairs.report.message == f"20 landmarks leave {left:.3e} of the trace unexplained"
    twice = LowRankEigen(landmarks=np.vstack([X[:7], X[:7]])).eigenpairs(centred(RBF(), X), 2)
    assert re.fullmatch(
        r"7 landmarks leave \S+ of the trace unexplained; "
        r"7 more depended on others and were dropped",
        twice.report.message,
    )


def test_progress_through_many_points(monkeypatch):
    many, said = np.random.default_rng(0).normal(size=(3000, 2)), []
    solver = LowRankEigen(rank=30, landmarks="uniform", random_state=0)
    whole = solver.eigenpairs(CentredGram(TiledGram(Laplacian(), many)), 2, log=said.append)
    assert len(said) == 1  # one block
    monkeypatch.setattr(_feature_map, "_STRIP_BYTES", 2**16)
    parts = solver.eigenpairs(CentredGram(TiledGram(Laplacian(), many)), 2, log=said.append)
    told = [re.fullmatch(r"(\d+) of 3000 points", line) for line in said[2:]]
    assert told and all(told) and all(0 < int(t[1]) < 3000 for t in told)
    np.testing.assert_allclose(parts.values, whole.values, rtol=1e-12)
    np.testing.assert_allclose(parts.vectors, whole.vectors, atol=1e-11)


def test_more_components_than_landmarks():
    message = (
        r"5 components are requested, but <NystroemMap on 3 landmarks, .*> has rank 3; "
        r"use more landmarks or fewer components"
    )
    with pytest.raises(ValueError, match=message):
        LowRankEigen(landmarks=X[:3]).eigenpairs(centred(RBF(), X), 5)
    with pytest.raises(ValueError, match="has rank 3"):  # the rank of the kernel
        LowRankEigen(rank=20, random_state=0).eigenpairs(centred(Linear(), X), 4)
    with pytest.raises(ValueError, match="must lie between 1 and n = 200"):
        LowRankEigen(rank=3).eigenpairs(centred(RBF(), X), 0)
    with pytest.raises(ValueError, match="rank=201 landmarks cannot be chosen among 200 points"):
        LowRankEigen(rank=201, landmarks="uniform").eigenpairs(centred(RBF(), X), 2)
    with pytest.raises(ValueError, match="unknown landmark method 'best'"):
        LowRankEigen(rank=20, landmarks="best").eigenpairs(centred(RBF(), X), 2)


@pytest.mark.parametrize("kernel", [Sigmoid(0.4, -0.5), Distance()], ids=str)
@pytest.mark.parametrize("method", ["rpcholesky", "uniform"])
def test_kernels_that_are_not_semidefinite_are_refused(kernel, method):
    with pytest.raises(NotPositiveDefiniteError, match="not positive semidefinite"):
        LowRankEigen(rank=50, landmarks=method, random_state=0).eigenpairs(centred(kernel, X), 2)


def test_the_default_number_of_landmarks():
    assert LowRankEigen().features(100, 2) == 100
    assert LowRankEigen().features(10_000, 2) == 1000
    assert LowRankEigen().features(10_000, 180) == 1800
    assert LowRankEigen(rank=7).features(10_000, 80) == 7
    assert LowRankEigen(rank=100).workspace(10**6, 5) < 8 * 10**8  # a thousandth of K


# ---------------------------------------------------------------------- random Fourier features


@pytest.mark.parametrize("method", ["iid", "orthogonal", "qmc"])
def test_more_waves_are_closer(method):
    reference = DenseEigen().eigenpairs(centred(RBF(), X), 4).values
    errors = []
    for rank in (16, 64, 256):
        values = [
            FourierEigen(rank=rank, method=method, random_state=s)
            .eigenpairs(CentredGram(TiledGram(RBF(), X)), 4)
            .values
            for s in range(6)
        ]
        errors.append(np.mean([np.abs(v - reference).max() for v in values]) / reference[0])
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 0.5 * errors[0]


def test_of_random_waves_nothing_is_certain():
    pairs = FourierEigen(rank=64, random_state=0).eigenpairs(centred(RBF(), X), 3)
    assert pairs.report.message == "random features: an unbiased approximation without error bounds"
    assert str(pairs.certificate) == "no bound is known"
    assert np.all(np.isinf(pairs.residuals))
    np.testing.assert_allclose(pairs.vectors.T @ pairs.vectors, np.eye(3), atol=1e-9)
    F = pairs.basis.map.features(X)
    want = np.linalg.eigvalsh(np.cov(F.T, bias=True) * 200)[::-1][:3]
    np.testing.assert_allclose(pairs.values, want, rtol=1e-9)


def test_waves_with_weights_and_seeds():
    counts = rng.integers(1, 4, size=200)
    solver = FourierEigen(rank=64, random_state=0)
    weighted = solver.eigenpairs(centred(RBF(), X, counts), 3).values / 200
    repeated = solver.eigenpairs(centred(RBF(), np.repeat(X, counts, axis=0)), 3).values
    np.testing.assert_allclose(weighted, repeated / counts.sum(), rtol=1e-10)
    again = solver.eigenpairs(centred(RBF(), X), 3), solver.eigenpairs(centred(RBF(), X), 3)
    assert np.array_equal(again[0].vectors, again[1].vectors)
    for k in (3, 51, 77, 78):
        assert FourierEigen().features(10, k) % 2 == 0  # a cosine and a sine for each frequency


def test_waves_that_do_not_exist():
    with pytest.raises((TypeError, ValueError, NotImplementedError), match="Polynomial"):
        FourierEigen(rank=64).eigenpairs(centred(Polynomial(2), X), 2)
    with pytest.raises(ValueError, match="has rank 2"):
        FourierEigen(rank=2, random_state=0).eigenpairs(centred(RBF(), X), 3)
