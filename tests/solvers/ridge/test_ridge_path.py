"""Ridge solutions for all alphas, against separate fits and against leave-one-out fits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from mercer import NotPositiveDefiniteError
from mercer.gram import NystroemMap, gram
from mercer.kernels import RBF, Linear, Precomputed
from mercer.solvers import (
    BorderedSystem,
    Cholesky,
    ExactPath,
    LeastSquares,
    NystroemPath,
    Tridiagonal,
)

rng = np.random.default_rng(5)
X = rng.standard_normal((25, 2))
Y = np.c_[np.sin(X[:, 0]) + 4.0, X[:, 1] ** 2]
W = rng.uniform(0.2, 3.0, size=25)
KERNEL = RBF(1.3)
ALPHAS = np.array([1e-3, 0.1, 20.0])


def fitted(F, Y, alpha, w, intercept, penalty):
    """Return w, b of min sum w (y - F v - b)^2 + alpha v^T penalty v, by the normal equations."""
    A = np.c_[F, np.ones(len(F))] if intercept else F
    P = np.zeros((A.shape[1], A.shape[1]))
    P[: F.shape[1], : F.shape[1]] = alpha * penalty
    v = np.linalg.lstsq(A.T @ (w[:, None] * A) + P, A.T @ (w[:, None] * Y), rcond=1e-15)[0]
    return (v[:-1], v[-1]) if intercept else (v, np.zeros(Y.shape[1]))


def without(F, Y, alpha, w, intercept, penalty):
    """Return the errors of n leave-one-out fits."""
    errors = np.empty_like(Y)
    for i in range(len(F)):
        others = np.arange(len(F)) != i
        v, b = fitted(F[others], Y[others], alpha, w[others], intercept, penalty)
        errors[i] = Y[i] - F[i] @ v - b
    return errors


def exact(w, intercept):
    return ExactPath(gram(KERNEL, X), Y, w, intercept=intercept)


def nystroem(w, intercept, **options):
    phi = NystroemMap.on(KERNEL, X[:9])
    return NystroemPath(phi, X, Y, w, intercept=intercept, **options)


def system(path, K=None):
    """Return the design matrix and the penalty of a path."""
    return KERNEL(X, path.points), KERNEL(path.points)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("w", [None, W], ids=["equal", "weights"])
@pytest.mark.parametrize("make", [exact, nystroem])
def test_solutions_and_errors_are_those_of_single_fits(make, w, intercept):
    path = make(w, intercept)
    F, penalty = system(path)
    weights = np.ones(25) if w is None else w
    for alpha, errors in zip(ALPHAS, path.leave_one_out(ALPHAS), strict=True):
        a, b = path.solve(alpha)
        v, c = fitted(F, Y, alpha, weights, intercept, penalty)
        np.testing.assert_allclose(F @ a + b, F @ v + c, rtol=1e-8, atol=1e-8)
        expected = without(F, Y, alpha, weights, intercept, penalty)
        np.testing.assert_allclose(errors, expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("w", [None, W], ids=["equal", "weights"])
@pytest.mark.parametrize("make", [exact, nystroem])
def test_gcv_is_the_error_at_the_mean_leverage(make, w, intercept):
    path = make(w, intercept)
    F, penalty = system(path)
    weights = np.ones(25) if w is None else w
    for alpha, score in zip(ALPHAS, path.gcv(ALPHAS), strict=True):
        # The columns of the hat matrix are the fits of unit vectors.
        v, b = fitted(F, np.eye(25), alpha, weights, intercept, penalty)
        H = F @ v + b
        rss = weights @ np.square(Y - H @ Y)
        np.testing.assert_allclose(score, rss / 25 / (1 - np.trace(H) / 25) ** 2, rtol=1e-7)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("w", [None, W], ids=["equal", "weights"])
def test_a_bordered_system_agrees_with_the_path(w, intercept):
    path = exact(w, intercept)
    K = gram(KERNEL, X)
    ways = [
        BorderedSystem(Cholesky().factorize(K, 0.1 / (1 if w is None else w)), intercept=intercept)
    ]
    if w is not None:
        root = np.sqrt(w)
        scaled = gram(KERNEL, X).scaled(root)
        ways.append(BorderedSystem(Cholesky().factorize(scaled, 0.1), root, intercept=intercept))
        ways.append(
            BorderedSystem(LeastSquares().factorize(scaled, 0.1), root, intercept=intercept)
        )
    a, b = path.solve(0.1)
    (errors,) = path.leave_one_out(np.array([0.1]))
    for way in ways:
        A, B = way.solve(Y)
        np.testing.assert_allclose(A, a, rtol=1e-10, atol=1e-11)
        np.testing.assert_allclose(B, b, rtol=1e-10, atol=1e-11)
        np.testing.assert_allclose(way.leave_one_out(A), errors, rtol=1e-9)
        np.testing.assert_allclose(way.inverse([3, 7]).T @ Y, A[[3, 7]], rtol=1e-9, atol=1e-10)


def test_features_that_are_not_kept_are_read_again():
    kept, read = nystroem(W, True), nystroem(W, True, max_memory=100)
    for one, other in zip(kept.leave_one_out(ALPHAS), read.leave_one_out(ALPHAS), strict=True):
        assert np.array_equal(one, other)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 40), st.integers(0, 10**6), st.floats(1e-6, 1e3))
def test_a_tridiagonal_matrix_serves_every_shift(n, seed, shift):
    A = np.random.default_rng(seed).standard_normal((n, 3))
    K, shifts = RBF(0.7)(A), [shift, 2.0 * shift]
    T = Tridiagonal.of(gram(RBF(0.7), A))
    for j, m in enumerate(shifts):
        inverse = np.linalg.inv(K + m * np.eye(n))
        size = np.abs(inverse).max()
        np.testing.assert_allclose(T.solve(A, shifts)[j], inverse @ A, atol=1e-9 * size)
        np.testing.assert_allclose(T.inverse_diagonal(shifts)[j], inverse.diagonal(), rtol=1e-8)
        np.testing.assert_allclose(T.inverse_trace(shifts)[j], np.trace(inverse), rtol=1e-8)
        logdet = np.linalg.slogdet(K + m * np.eye(n))[1]
        np.testing.assert_allclose(T.logdet(shifts)[j], logdet, rtol=1e-9, atol=1e-9)


def test_the_bits_do_not_depend_on_the_threads():
    T = Tridiagonal.of(gram(RBF(), rng.standard_normal((600, 2))))
    assert np.array_equal(T.inverse_diagonal(ALPHAS, 1), T.inverse_diagonal(ALPHAS, 3))


def test_a_gram_is_worked_in_only_when_allowed():
    K = gram(KERNEL, X)
    before = K.to_array()
    Tridiagonal.of(K)
    assert np.array_equal(K.array, before)
    Tridiagonal.of(K, overwrite=True)
    with pytest.raises(RuntimeError, match="was overwritten by a solver"):
        _ = K.array


def test_shifts_that_are_too_small_are_said():
    with pytest.raises(NotPositiveDefiniteError, match=r"lie in \[-1, 1\].*Use larger alphas"):
        Tridiagonal.of(gram(Precomputed(), np.diag([1.0, -1.0]))).logdet([0.5])
    path = NystroemPath(NystroemMap.on(Linear(), X), X, Y, intercept=False)
    with pytest.warns(ConvergenceWarning, match="below .*, the rounding error of F\\^T F"):
        path.solve(1e-16)
