"""Test Nyström features and the low-rank Gram operator."""

import pickle
from dataclasses import dataclass

import numpy as np
import pytest
import scipy.sparse as sp
import zoo
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer import Expansion, KernelMismatchError, MemoryBudgetError, NotPositiveDefiniteError
from mercer.gram import (
    CentredGram,
    FeatureMap,
    LowRankGram,
    NystroemMap,
    TiledGram,
    _feature_map,
    rpcholesky,
)
from mercer.gram import _nystroem_map as nystroem_module
from mercer.kernels import (
    RBF,
    Callable,
    Distance,
    Exp,
    Laplacian,
    Linear,
    Matern,
    Normalized,
    Polynomial,
    Precomputed,
    Scale,
    Sigmoid,
    White,
)
from mercer.testing import check_gram

rng = np.random.default_rng(0)
X = rng.normal(size=(700, 10))
S = rng.normal(size=(40, 10))
SMALL = "64 KiB"  # too small to store the features of X


def nystroem(kernel, X, S):
    """Return K_nS K_SS^-1 K_Sn by the formula."""
    cross = kernel(X, S)
    return cross @ np.linalg.solve(kernel(S), cross.T)


def check_products(K):
    """Check the laws of a Gram operator except the derivative, which is that of F F^T, not of k."""
    held = K.pullback
    K.pullback = lambda U, V: K.kernel.pullback(K.X, None, U @ V.T)
    try:
        check_gram(K, rtol=1e-8)
    finally:
        K.pullback = held


def assert_below(K, kernel, X):
    """Check that F F^T and K - F F^T are positive semidefinite, and check the residual diagonal."""
    exact, array = kernel(X), K.to_array()
    scale = max(np.abs(exact).max(), 1e-300)
    assert np.linalg.eigvalsh(array)[0] >= -1e-9 * scale * len(array)
    assert np.linalg.eigvalsh(exact - array)[0] >= -1e-9 * scale * len(array)
    np.testing.assert_allclose(K.residual(), np.diag(exact - array), atol=1e-9 * scale)
    assert K.residual().min() >= 0
    assert K.residual_trace == pytest.approx(np.trace(exact - array), abs=1e-8 * scale)


# ---------------------------------------------------------------------- features


@pytest.mark.parametrize("kernel", [RBF(3.0), Matern(2.0), Polynomial(3) + 1], ids=str)
def test_features_multiply_to_the_approximation(kernel):
    phi = NystroemMap.on(kernel, S)
    F = phi.features(X)
    wanted = nystroem(kernel, X, S)
    assert len(phi) == 40
    assert F.shape == (700, 40)
    assert F.flags.c_contiguous
    np.testing.assert_allclose(F @ F.T, wanted, atol=1e-10 * np.abs(wanted).max())
    np.testing.assert_allclose(phi.factor @ phi.factor.T, kernel(S), rtol=1e-12, atol=1e-12)
    assert (phi.dropped, phi.jitter) == (0, 0.0)
    assert np.array_equal(phi.points, S)
    np.testing.assert_allclose(phi.features(S), phi.factor, atol=1e-9 * np.abs(phi.factor).max())


@settings(max_examples=30, deadline=None)
@given(
    n=st.integers(0, 30),
    m=st.integers(1, 30),
    columns=st.integers(1, 11),
    scale=st.floats(0.1, 30.0),
    seed=st.integers(0, 1000),
)
def test_residuals_are_not_negative(n, m, columns, scale, seed):
    source = np.random.default_rng(seed)
    points, landmarks = (source.normal(size=(r, columns)).round(1) for r in (n, m))
    kernel = RBF(scale) + 0.5
    phi = NystroemMap.on(kernel, landmarks)
    assert len(phi) + phi.dropped == m
    F = phi.features(points)
    assert np.all(np.einsum("ij,ij->i", F, F) <= kernel.diag(points) + 1e-9)
    G = phi.features(landmarks)  # dropped landmarks are in the span of the others
    np.testing.assert_allclose(np.einsum("ij,ij->i", G, G), 1.5, rtol=1e-9)


def test_blocks_are_the_features_in_parts(monkeypatch):
    monkeypatch.setattr(_feature_map, "_STRIP_BYTES", 2**15)
    phi = NystroemMap.on(RBF(3.0), S)
    F = phi.features(X)
    for rows in (None, 1000, 193):
        parts = list(phi.blocks(X, rows))
        assert [part.start for part, _ in parts] == [0, *(part.stop for part, _ in parts[:-1])]
        np.testing.assert_allclose(np.concatenate([B for _, B in parts]), F, atol=1e-12)
    assert len(list(phi.blocks(X, 193))) == 4
    assert np.array_equal(np.concatenate([B for _, B in phi.blocks(X)]), F)  # bit-for-bit identical
    assert list(phi.blocks(X[:0])) == []


def test_the_bits_do_not_depend_on_the_threads(monkeypatch):
    monkeypatch.setattr(_feature_map, "_STRIP_BYTES", 2**15)
    V = rng.normal(size=(700, 3))
    for memory in (None, SMALL):
        grams = [
            LowRankGram(RBF(3.0), X, S, n_threads=threads, max_memory=memory) for threads in (1, 2)
        ]
        features = [K.features() for K in grams]
        assert np.array_equal(*features)
        assert np.array_equal(grams[0] @ V, grams[1] @ V)
        assert np.array_equal(grams[0].diagonal(), grams[1].diagonal())
        assert grams[0].residual_trace == grams[1].residual_trace


def test_dependent_landmarks_are_dropped():
    twice = np.concatenate([S[:5], S[:5], S[5:7]])
    phi = NystroemMap.on(RBF(), twice)
    assert (len(phi), phi.dropped, phi.jitter) == (7, 5, 0.0)
    assert np.array_equal(phi.points, twice[phi.kept])
    np.testing.assert_allclose(phi.features(X) @ phi.features(X).T, nystroem(RBF(), X, S[:7]))
    line = np.linspace(0, 1, 300)[:, None]
    smooth = NystroemMap.on(RBF(), line)
    assert len(smooth) < 15
    np.testing.assert_allclose(np.square(smooth.features(line)).sum(axis=1), 1.0, rtol=1e-11)


def test_jitter_is_only_for_noise_and_is_reported():
    W = rng.normal(size=(30, 5))
    noise = 1e-10 * rng.normal(size=(30, 30))
    K = W @ W.T + noise + noise.T
    phi = NystroemMap.on(Precomputed(K), np.arange(30))
    assert phi.dropped == 0
    assert 1e-11 < phi.jitter < 1e-6
    reference = K + phi.jitter * np.eye(30)
    np.testing.assert_allclose(phi.factor @ phi.factor.T, reference, rtol=1e-12, atol=1e-13)
    G = LowRankGram(Precomputed(K), np.arange(30), phi)
    np.testing.assert_allclose(G.to_array(), K, atol=1e-5)
    assert G.residual_trace < 1e-5


def test_coefficients_turn_features_into_an_expansion():
    phi = NystroemMap.on(RBF(3.0), S)
    V = rng.normal(size=(40, 2))
    f = Expansion(RBF(3.0), phi.points, phi.expansion_coefficients(V))
    np.testing.assert_allclose(f(X), phi.features(X) @ V, atol=1e-9)
    assert phi.expansion_coefficients(V[:, 0]).shape == (40,)
    with pytest.raises(ValueError, match=r"V has shape \(39, 2\), but there are 40 features"):
        phi.expansion_coefficients(V[1:])


def test_a_map_is_a_value():
    landmarks = S.copy()
    phi = NystroemMap.on(RBF(3.0), landmarks)
    before = phi.features(X)
    landmarks[:] = 0.0
    assert np.array_equal(phi.features(X), before)
    with pytest.raises(AttributeError):
        phi.jitter = 1.0
    with pytest.raises(ValueError, match="read-only"):
        phi.factor[0, 0] = 2.0
    assert np.array_equal(pickle.loads(pickle.dumps(phi)).features(X), before)
    assert repr(phi) == "<NystroemMap on 40 landmarks, RBF(length_scale=3.0)>"


# ---------------------------------------------------------------------- kinds of points


def test_single_precision_points_get_double_features():
    single, marks = X.astype(np.float32), S.astype(np.float32)
    for kernel in (RBF(3.0), Linear(), Normalized(Polynomial(2)), Laplacian(3.0)):
        phi = NystroemMap.on(kernel, marks)
        assert phi.points.dtype == np.float64
        exact = NystroemMap.on(kernel, marks.astype(float)).features(single.astype(float))
        np.testing.assert_allclose(phi.features(single), exact, rtol=1e-9, atol=1e-9)
    K = LowRankGram(RBF(3.0), single, n_landmarks=60, random_state=0)
    assert K.dtype == np.float64
    assert_below(K, RBF(3.0), single.astype(float))


def test_sparse_points_and_dense_landmarks_and_the_reverse():
    rows, marks = X[:150].copy(), S.copy()
    rows[np.abs(rows) < 1], marks[np.abs(marks) < 1] = 0, 0
    for kernel in (RBF(3.0), Linear() + 1, RBF(2.0) * Polynomial(2)):
        wanted = NystroemMap.on(kernel, marks).features(rows)
        F = wanted @ wanted.T
        for points in (rows, sp.csr_array(rows), sp.csc_array(rows), sp.coo_array(rows)):
            for landmarks in (marks, sp.csr_array(marks), sp.coo_array(marks)):
                phi = NystroemMap.on(kernel, landmarks)
                G = phi.features(points)
                np.testing.assert_allclose(G @ G.T, F, atol=1e-9 * np.abs(F).max())
    K = LowRankGram(RBF(3.0), sp.coo_array(rows), n_landmarks=30, random_state=0)
    check_products(K)
    assert_below(K, RBF(3.0), rows)


def test_points_on_disk_are_read_in_blocks(tmp_path):
    path = tmp_path / "points.npy"
    np.save(path, X)
    disk = np.load(path, mmap_mode="r")
    K = LowRankGram(RBF(3.0), disk, n_landmarks=30, random_state=0, max_memory=SMALL)
    assert K._F is None
    V = rng.normal(size=(700, 2))
    held = LowRankGram(RBF(3.0), X, n_landmarks=30, random_state=0)
    np.testing.assert_allclose(K @ V, held @ V, atol=1e-9)
    assert np.array_equal(K.indices, held.indices)
    assert K.residual_trace == pytest.approx(held.residual_trace)
    assert sum(F.shape[0] for _, F in K.blocks()) == 700


def test_tables():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X[:50].astype(np.float32))
    K = LowRankGram(RBF(3.0), frame, n_landmarks=20, random_state=0)
    assert_below(K, RBF(3.0), X[:50].astype(np.float32).astype(float))


@pytest.mark.parametrize("entry", **zoo.every(psd=True))
@pytest.mark.parametrize("memory", [None, 8])
def test_every_kernel(entry, memory):
    points = entry.points(11)
    K = LowRankGram(entry.kernel, points, n_landmarks=5, random_state=0, max_memory=memory)
    assert K._F is None or memory is None or not len(K.map)
    K._budget = 10**6  # allows to_array
    check_products(K)
    assert_below(K, entry.kernel, points)


def test_noise_makes_landmarks_other_observations():
    kernel, noisy = RBF(3.0), RBF(3.0) + White(0.3)
    points = X[:300]
    K = LowRankGram(noisy, points, np.arange(50))
    cross = kernel(points, X[:50])
    wanted = cross @ np.linalg.solve(kernel(X[:50]) + 0.3 * np.eye(50), cross.T)
    np.testing.assert_allclose(K.to_array(), wanted, atol=1e-12)
    assert_below(K, noisy, points)
    assert K.residual().min() >= 0.3
    same = np.zeros((20, 2))  # equal values: observations differ only in their noise
    assert_below(LowRankGram(noisy, same, np.arange(10)), noisy, same)
    assert_below(LowRankGram(White(2.0), X[:30], np.arange(10)), White(2.0), X[:30])


# ---------------------------------------------------------------------- the Gram


@pytest.mark.parametrize("memory", [None, SMALL])
def test_the_laws_of_a_gram(memory, monkeypatch):
    monkeypatch.setattr(_feature_map, "_STRIP_BYTES", 2**15)  # several strips
    kernel = RBF(3.0) + 0.1 * Linear()
    K = LowRankGram(kernel, X, n_landmarks=80, random_state=0, max_memory=memory)
    assert (K._F is None) == (memory is not None)
    K._budget = 10**9
    check_products(K)
    assert_below(K, kernel, X)
    wanted = nystroem(kernel, X, X[K.indices])
    np.testing.assert_allclose(K.to_array(), wanted, atol=1e-9)
    V, w = rng.normal(size=(700, 2)), rng.uniform(size=700)
    product, squares = K.with_squares(V, w)
    np.testing.assert_allclose(product, wanted @ V, atol=1e-8)
    assert squares == pytest.approx(np.sum(np.outer(w, w) * wanted**2), rel=1e-8)
    complex_columns = V + 1j * V[::-1]
    np.testing.assert_allclose(K @ complex_columns, wanted @ complex_columns, atol=1e-8)
    centred = CentredGram(K)
    assert centred.trace() == pytest.approx(np.trace(wanted) - wanted.sum() / 700)


def test_more_landmarks_leave_less():
    traces = [LowRankGram(RBF(3.0), X, np.arange(m)).residual_trace for m in (1, 10, 50, 200, 700)]
    assert traces == sorted(traces, reverse=True)
    assert traces[-1] < 1e-8 * 700


def test_pivots_as_landmarks_give_the_same_approximation():
    part = rpcholesky(TiledGram(RBF(3.0), X), 60, random_state=0)
    K = LowRankGram(RBF(3.0), X, part.pivots)
    np.testing.assert_allclose(K.to_array(), part.factor.T @ part.factor, atol=1e-10)
    assert K.residual_trace == pytest.approx(part.trace, rel=1e-9)
    chosen = LowRankGram(RBF(3.0), X, n_landmarks=60, random_state=0)
    assert np.array_equal(chosen.indices, part.pivots)


def test_ways_to_give_landmarks():
    phi = NystroemMap.on(RBF(3.0), X[:30])
    mask = np.arange(700) < 30
    ways = (np.arange(30), list(range(30)), range(30), mask, X[:30], phi, np.arange(30) - 700)
    grams = [LowRankGram(RBF(3.0), X, landmarks) for landmarks in ways]
    for K in grams[1:]:
        assert np.array_equal(K.features(), grams[0].features())
    assert [K.indices is None for K in grams] == [False, False, False, False, True, True, False]
    assert np.array_equal(grams[-1].indices, np.arange(30))
    for method in ("uniform", "kmeans++", "leverage"):
        assert len(LowRankGram(RBF(3.0), X, method, n_landmarks=7, random_state=0).map) == 7
    assert len(LowRankGram(RBF(3.0), X).map) == 100
    assert len(LowRankGram(RBF(3.0), X[:20]).map) == 20
    words = ["".join(rng.choice(list("abcd"), size=6)) for _ in range(30)]
    K = LowRankGram(Callable(zoo.letters), words, ["abcd", "aabc", "dddd", "abbb"])
    assert_below(K, Callable(zoo.letters), words)
    assert K.residual_trace < 1e-9
    doubles = LowRankGram(RBF(3.0), X, [4, 4, 9, 4])
    assert sorted(doubles.indices) == [4, 9]


def test_precomputed_values():
    K = RBF(3.0)(X[:60])
    G = LowRankGram(Precomputed(K), np.arange(60), n_landmarks=20, random_state=0)
    same = LowRankGram(RBF(3.0), X[:60], n_landmarks=20, random_state=0)
    np.testing.assert_allclose(G.to_array(), same.to_array(), atol=1e-10)
    single = LowRankGram(Precomputed(K.astype(np.float32)), np.arange(60), n_landmarks=20)
    assert single.residual_trace < 60
    with pytest.raises(ValueError, match=r"use Precomputed\(K\), with indices"):
        LowRankGram(Precomputed(), K, n_landmarks=20)


@pytest.mark.parametrize("memory", [None, SMALL])
def test_the_derivative_is_that_of_the_approximation(memory):
    kernel = Scale(RBF((2.0, *[3.0] * 9)), 1.5) + White(0.2)
    U, V = rng.normal(size=(2, 700, 2))
    K = LowRankGram(kernel, X, S, max_memory=memory)
    gradient, theta = K.pullback(U, V), kernel.theta
    for i in range(len(theta)):
        step = 1e-5 * np.eye(len(theta))[i]
        up, down = (
            np.sum(U * (LowRankGram(kernel.with_theta(t), X, S) @ V))
            for t in (theta + step, theta - step)
        )
        assert gradient[i] == pytest.approx((up - down) / 2e-5, rel=1e-6, abs=1e-4)
    assert K.pullback(U[:, 0], V[:, 0]).shape == theta.shape
    assert LowRankGram(Precomputed(kernel(S)), np.arange(40)).pullback(S, S).shape == (0,)
    with pytest.raises(ValueError, match=r"U and V must have the shape \(700, c\), got"):
        K.pullback(U[:5], V)


def test_no_points_and_no_kernel():
    K = LowRankGram(RBF(3.0), X[:0], S)
    assert (K @ np.ones((0, 2))).shape == (0, 2)
    assert K.residual_trace == 0
    nothing = LowRankGram(0.0 * RBF(3.0), X, S)
    assert len(nothing.map) == 0
    assert not (nothing @ np.ones((700, 2))).any()
    assert nothing.residual_trace == 0


# ---------------------------------------------------------------------- errors


def test_the_budget_of_the_array():
    K = LowRankGram(RBF(3.0), X, S, max_memory="1 MiB")
    assert K._F is not None
    message = r"the 700 x 700 matrix F F\^T needs 3.7 MiB, but the budget is 1.0 MiB; use products"
    with pytest.raises(MemoryBudgetError, match=message):
        K.to_array()
    text = "<LowRankGram 700x700, rank 40, float64, RBF(length_scale=3.0)>"
    assert repr(K) == text


def test_kernels_that_are_not_positive_semidefinite():
    for kernel in (Sigmoid(gamma=0.3, coef0=-0.5), Distance()):
        with pytest.raises(NotPositiveDefiniteError, match=r"others has an eigenvalue of -"):
            NystroemMap.on(kernel, S)
    K = LowRankGram(Sigmoid(gamma=1.0, coef0=-0.2), np.array([[1.0], [9.0]]), [1])
    with pytest.raises(
        NotPositiveDefiniteError, match=r"k\(x, x\) - \|phi\(x\)\|\^2 must not be negative"
    ):
        K.residual()
    with pytest.raises(NotPositiveDefiniteError, match=r"even with 2.22e-07 added to its diagonal"):
        nystroem_module._with_jitter(np.diag([1.001, -1e-3]), RBF())


def test_values_that_overflow():
    kernel = Exp(Linear())
    phi = NystroemMap.on(kernel, S)
    with pytest.raises(ValueError, match="features of the points 0 to 699 are not finite"):
        phi.features(1e4 * X)
    with np.errstate(over="ignore"), pytest.raises(ValueError, match="K_SS has entries that are"):
        NystroemMap.on(kernel, 1e4 * S)


def test_wishes_that_make_no_sense():
    phi = NystroemMap.on(RBF(3.0), S)
    with pytest.raises(TypeError, match="NystroemMap needs a Kernel, got 'rbf'"):
        NystroemMap.on("rbf", S)
    with pytest.raises(ValueError, match="at least one landmark, got none"):
        NystroemMap.on(RBF(), S[:0])
    for bad in (0, -1, True):
        with pytest.raises(ValueError, match="rows must be a positive integer or None, got"):
            list(phi.blocks(X, bad))
    with pytest.raises(ValueError, match="points with 10 columns to points with 3"):
        phi.features(X[:, :3])
    with pytest.raises(TypeError, match="LowRankGram needs a Kernel, got 'rbf'"):
        LowRankGram("rbf", X)
    with pytest.raises(
        ValueError, match=r"n_landmarks=5 applies only if landmarks is the name of a method"
    ):
        LowRankGram(RBF(), X, S, n_landmarks=5)
    with pytest.raises(ValueError, match="more landmarks than points"):
        LowRankGram(RBF(), X[:5], n_landmarks=6)
    with pytest.raises(
        ValueError, match=r"indices from 3 to 700, but there are only 700 points \(0 to"
    ):
        LowRankGram(RBF(), X, [3, 700])
    with pytest.raises(ValueError, match="landmark mask has 5 entries, but there are 700 points"):
        LowRankGram(RBF(), X, np.ones(5, dtype=bool))
    with pytest.raises(ValueError, match="unknown landmark method 'best'"):
        LowRankGram(RBF(), X, "best")
    with pytest.raises(
        KernelMismatchError, match=r"the NystroemMap was made for the kernel RBF.*3\.0\), not"
    ):
        LowRankGram(RBF(2.0), X, phi)


@dataclass(frozen=True, eq=False)
class Powers(FeatureMap):
    """The features 1, x, x^2, ..., which do not evaluate a kernel."""

    degree: int

    def __len__(self):
        return self.degree + 1

    def _fill(self, X, rows, out, whiten=True):
        out[...] = X[rows] ** np.arange(self.degree + 1)


def test_features_without_a_kernel():
    X = np.linspace(-1.0, 1.0, 9)[:, None]
    np.testing.assert_array_equal(Powers(3).features(X), X ** np.arange(4))
