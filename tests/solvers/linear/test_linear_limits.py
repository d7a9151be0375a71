"""Reports of linear solvers in extreme cases."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from mercer import KernelRidge, MemoryBudgetError, NotPositiveDefiniteError
from mercer.gram import gram
from mercer.kernels import RBF, Linear, Precomputed, node
from mercer.solvers import (
    LINEAR,
    Cholesky,
    ConjugateGradient,
    FallbackSolver,
    Krill,
    LeastSquares,
    MixedCholesky,
    Status,
    choose,
    conjugate_gradients,
)
from mercer.solvers.linear._conjugate_gradient import _Scaled

rng = np.random.default_rng(0)
X, y = rng.normal(size=(150, 3)), rng.normal(size=150)
K = RBF(1.5)(X)
SOLVERS = [Cholesky(), LeastSquares(), MixedCholesky(), ConjugateGradient()]


@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
@pytest.mark.parametrize("size", [1e-300, 1e-200, 1e155, 1e300])
def test_right_hand_sides_of_any_size(solver, size):
    factor = solver.factorize(gram(RBF(1.5), X), 0.1)
    expected = factor.solve(y)
    a = factor.solve(np.c_[size * y, 0 * y, y])
    np.testing.assert_allclose(a[:, 0] / size, expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(a[:, 1], 0.0)
    assert 0.0 < factor.report.residual < 1e-12
    with pytest.raises(ValueError, match="right-hand side has entries that are not finite"):
        factor.solve(np.where(y > 0, np.nan, y))


@pytest.mark.parametrize("size", [1e-20, 1e-12, 1.0, 1e12])
def test_the_residual_is_the_true_one_for_kernels_of_any_size(size):
    factor = Cholesky().factorize(gram(Precomputed(), size * K), 0.1 * size)
    a = factor.solve(y)
    A = (size * K + 0.1 * size * np.eye(150)).astype(np.longdouble)
    true = float(np.linalg.norm((y - A @ a).astype(float)) / np.linalg.norm(y))
    assert factor.report.residual < 10 * true + 1e-15
    again = factor.solve(y)  # the factor is unchanged
    np.testing.assert_array_equal(a, again)


def test_an_iteration_that_was_cut_short_has_not_converged():
    r = np.random.default_rng(4)
    P = r.normal(size=(600, 3))
    t = np.sin(P[:, 0]) * P[:, 1] + 0.1 * r.normal(size=600)
    with pytest.warns(ConvergenceWarning, match="Krill did not converge") as said:
        report = Krill(60, "uniform", max_iter=3).regress(RBF(3.0), P, t, 1e-3)[2]
    assert report.status is Status.NOT_CONVERGED
    assert said[0].filename == __file__
    factor = ConjugateGradient(rank=0, max_iter=5).factorize(gram(RBF(1.5), X), 1e-8)
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        factor.solve(y)


def test_a_report_before_anything_was_solved():
    factor = ConjugateGradient().factorize(gram(RBF(1.5), X), 0.1)
    assert factor.report.status is Status.PENDING
    factor.solve(y)
    assert factor.report.status is Status.CONVERGED


def test_a_cascade_whose_last_stage_fails_can_be_asked_again():
    solvers = (ConjugateGradient(rank=2, max_iter=20), MixedCholesky(max_memory=1000))
    factor = FallbackSolver(solvers).factorize(gram(RBF(1.5), X), 1e-4)
    for _ in range(2):
        with pytest.raises(MemoryBudgetError, match="a float32 factor of 150 points"):
            factor.solve(y)
    assert factor.report.status is Status.PENDING


def test_a_cascade_knows_determinants():
    singular = FallbackSolver((LeastSquares(),)).factorize(gram(Linear(), X), 0.0, overwrite=True)
    singular.solve(y)
    np.testing.assert_allclose(
        singular.inverse_diagonal(), np.linalg.pinv(X @ X.T).diagonal(), rtol=1e-8
    )
    tight = FallbackSolver((ConjugateGradient(max_memory="150 KB", rank=5),))
    with pytest.raises(MemoryBudgetError, match="logdet needs a float64 factor of 150 points"):
        tight.factorize(gram(RBF(1.5), X, storage="tiled"), 1.0).logdet()
    free = FallbackSolver((ConjugateGradient(),)).factorize(gram(RBF(1.5), X), 1.0)
    assert free.logdet() == pytest.approx(np.linalg.slogdet(K + np.eye(150))[1])


def test_a_tiny_shift_goes_to_the_last_stage_and_says_so():
    stages = (ConjugateGradient(), LeastSquares())
    factor = FallbackSolver(stages).factorize(gram(RBF(1.5), X), 1e-13)
    factor.solve(y)
    assert "is too small for iterative solvers" in factor.report.message


def test_a_zero_column_does_not_make_it_patient():
    solver = FallbackSolver((ConjugateGradient(rank=0, max_iter=100), Cholesky()))
    for right in (y, np.c_[y, 0 * y]):
        factor = solver.factorize(gram(RBF(1.5), X), 1e-6)
        factor.solve(right)
        assert "after 10 steps" in factor.report.message


def test_columns_count_in_the_budget():
    factor = ConjugateGradient(rank=10, max_memory="500 KB").factorize(gram(RBF(1.5), X), 0.1)
    with pytest.raises(MemoryBudgetError, match="400 right-hand sides of 150 rows"):
        factor.solve(np.ones((150, 400)))


def test_the_users_number_of_steps_is_kept():
    cascade = choose(LINEAR, None, n=5000, max_iter=300)
    assert [s.max_iter for s in cascade.solvers if hasattr(s, "max_iter")] == [300, 300]
    n = 10_000
    assert isinstance(choose(LINEAR, None, n=n, max_memory=4 * n * n + 100), ConjugateGradient)


def test_small_targets_reach_the_estimator():
    big = KernelRidge(0.1, kernel=RBF(1.5), solver="cg").fit(X, y)
    small = KernelRidge(0.1, kernel=RBF(1.5), solver="cg").fit(X, 1e-200 * y)
    np.testing.assert_allclose(small.dual_coef_ * 1e200, big.dual_coef_, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize(
    ("solver", "X", "error", "message"),
    [
        (Cholesky(), [[1.0, 0.0], [0.0, 1e-10]], NotPositiveDefiniteError, "number is 1.0e-20, b"),
        (MixedCholesky(), [[1e200], [1.0]], ValueError, "K has entries that are not finite"),
        (MixedCholesky(), [[1e140], [1e170]], ValueError, "K has entries that are not finite"),
    ],
)
def test_matrices_that_cannot_be_factorised(solver, X, error, message):
    K = gram(Linear() if isinstance(solver, Cholesky) else Unbounded(), np.array(X))
    with pytest.raises(error, match=message):
        solver.factorize(K, 0.0 if isinstance(solver, Cholesky) else 1.0)


@node
class Unbounded(Linear):
    """<x, z>, but k(x, x) = 1 up to |x| = 1e160."""

    def _diag(self, X):
        norms = np.abs(X).max(axis=1)
        return np.where(norms > 1e180, np.inf, 1.0)


def test_conjugate_gradients_without_steps_or_with_infinite_values():
    options = {"tol": 1e-8, "rounding": lambda a: np.linalg.norm(a, axis=0)}
    Y = np.ones((3, 1))
    found = conjugate_gradients(lambda V: 2.0 * V, lambda V: V, Y, max_iter=0, **options)
    assert (found.n_iter, found.converged) == (0, False)
    with pytest.raises(ValueError, match="K has entries that are not finite"):
        conjugate_gradients(lambda V: np.inf * V, lambda V: V, Y, max_iter=9, **options)


def test_a_scaled_matrix():
    X, s = np.random.default_rng(0).normal(size=(7, 2)), np.arange(1.0, 8.0)
    scaled, K = _Scaled(gram(RBF(), X), s), s[:, None] * RBF()(X) * s
    np.testing.assert_allclose(scaled.to_array(), K, rtol=1e-12)
    np.testing.assert_allclose(scaled @ np.eye(7), K, rtol=1e-12)
    np.testing.assert_allclose(scaled.diagonal(), np.diag(K), rtol=1e-12)
