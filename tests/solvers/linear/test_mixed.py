"""The float32 factor with refinement in float64, against NumPy and the float64 factor."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from mercer import MemoryBudgetError, NotPositiveDefiniteError
from mercer.gram import DenseGram, TiledGram, gram
from mercer.kernels import RBF, Linear, Polynomial, Precomputed, Sigmoid, White
from mercer.solvers import Cholesky, MixedCholesky, Status

rng = np.random.default_rng(2)
X = rng.normal(size=(900, 4))  # three rows of tiles
Y = rng.normal(size=(900, 3))
kernel = RBF(2.0)
K = kernel(X)
each_gram = pytest.mark.parametrize("hold", [DenseGram, TiledGram], ids=lambda h: h.__name__)


@each_gram
@pytest.mark.parametrize("shift", [1.0, 1e-2, 1e-4])
def test_the_residual_is_that_of_a_float64_factor(hold, shift):
    factor = MixedCholesky().factorize(hold(kernel, X), shift)
    a = factor.solve(Y)
    # In float64, the rounding error of K a is as large as the residual if the shift is small.
    long = K.astype(np.longdouble)
    true = np.asarray(Y - long @ a - np.longdouble(shift) * a, dtype=float)
    true = np.linalg.norm(true, axis=0) / np.linalg.norm(Y, axis=0)
    reference = Cholesky().factorize(gram(kernel, X), shift)
    reference.solve(Y)
    assert factor.report.status is Status.CONVERGED
    assert 0 < factor.report.n_iter <= 25
    assert factor.report.residual <= max(2e-14, 2.0 * reference.report.residual)
    assert true.max() <= 1.5 * max(factor.report.residual, 1e-14)
    np.testing.assert_allclose(
        K @ a, K @ reference.solve(Y), atol=1e2 * reference.report.residual * 30
    )


def test_determinant_and_inverse_are_those_of_float64():
    A = K + 0.01 * np.eye(900)
    factor = MixedCholesky().factorize(DenseGram(kernel, X), 0.01)
    assert factor.logdet() == pytest.approx(np.linalg.slogdet(A)[1], rel=1e-12)
    np.testing.assert_allclose(factor.inverse_diagonal(), np.linalg.inv(A).diagonal(), rtol=1e-9)


def test_determinants_have_a_budget():
    factor = MixedCholesky(max_memory="4 MB").factorize(TiledGram(kernel, X), 0.01)
    factor.solve(Y)
    with pytest.raises(MemoryBudgetError, match="log det and inverses need a float64"):
        factor.logdet()
    with pytest.raises(MemoryBudgetError, match=r"a float32 factor of 900 points needs 3\.2 MiB"):
        MixedCholesky(max_memory="3 MB").factorize(TiledGram(kernel, X), 0.01)


def test_shifts_and_entries_of_very_different_size():
    shift = np.logspace(1, 30, 900)
    wide = Polynomial(degree=3)  # the diagonal spans orders of magnitude
    factor = MixedCholesky().factorize(gram(wide, X), shift)
    a = factor.solve(Y)
    A = wide(X) + np.diag(shift)
    np.testing.assert_allclose(a, np.linalg.solve(A, Y), rtol=1e-5, atol=1e-10)
    assert factor.report.status is Status.CONVERGED


def test_noise_in_the_kernel_is_seen_on_the_diagonal_alone():
    noisy = kernel + White(0.5)
    for hold in (DenseGram, TiledGram):
        a = MixedCholesky().factorize(hold(noisy, X), 0.1).solve(Y)
        np.testing.assert_allclose(a, np.linalg.solve(K + 0.6 * np.eye(900), Y), atol=1e-11)


def test_a_breakdown_of_float32_is_repaired_and_said():
    smooth = RBF(3.0)
    factor = MixedCholesky().factorize(gram(smooth, X), 1e-5)
    factor.solve(Y)
    reference = Cholesky().factorize(gram(smooth, X), 1e-5)
    reference.solve(Y)
    assert "float32 rounding made pivots negative" in factor.report.message
    assert "of the diagonal was added in the preconditioner" in factor.report.message
    assert factor.report.residual <= 2.0 * reference.report.residual


def test_rounding_alone_does_not_warn():
    # K 1 = 0, and the largest eigenvalue is 1e6 shifts: no method can reach 1e-14.
    centred = 300.0 * (X - X.mean(axis=0))
    factor = MixedCholesky().factorize(gram(Linear(), centred), 100.0)
    factor.solve(Y)
    assert factor.report.status is Status.CONVERGED
    reference = Cholesky().factorize(gram(Linear(), centred), 100.0)
    reference.solve(Y)
    assert 1e-13 < factor.report.residual <= 2.0 * reference.report.residual


def test_too_few_steps_warn_with_numbers():
    factor = MixedCholesky(max_iter=2).factorize(gram(kernel, X), 1e-5)
    with pytest.warns(
        ConvergenceWarning, match=r"relative residual .* after 2 steps, above tol=1.0e-14"
    ):
        factor.solve(Y)
    assert factor.report.status is Status.NOT_CONVERGED


def test_the_gram_is_kept_and_solving_again_is_cheap():
    held = gram(kernel, X)
    factor = MixedCholesky().factorize(held, 1.0, overwrite=True)
    first, second = factor.solve(Y), factor.solve(Y)
    assert np.array_equal(first, second)
    np.testing.assert_allclose(held @ Y, K @ Y, rtol=1e-9, atol=1e-10)
    one = MixedCholesky().factorize(TiledGram(kernel, X, n_threads=1), 1.0).solve(Y)
    two = MixedCholesky().factorize(TiledGram(kernel, X, n_threads=2), 1.0).solve(Y)
    assert np.array_equal(one, two)


def test_zero_columns_and_points_in_float32():
    factor = MixedCholesky().factorize(gram(kernel, X), 1.0)
    assert not factor.solve(np.zeros((900, 2))).any()
    assert factor.report.residual == 0.0
    single = MixedCholesky().factorize(gram(kernel, X.astype(np.float32)), 1.0)
    np.testing.assert_allclose(single.solve(Y), np.linalg.solve(K + np.eye(900), Y), atol=1e-4)
    assert single.report.status is Status.CONVERGED


def test_what_cannot_be_solved():
    with pytest.raises(NotPositiveDefiniteError, match=r"even with .* of \|K\| added"):
        MixedCholesky().factorize(gram(Sigmoid(), X), 1e-3)
    with pytest.raises(NotPositiveDefiniteError, match="its smallest diagonal entry is 0"):
        MixedCholesky().factorize(gram(Linear(), np.zeros((3, 1))), 0.0)
    with pytest.raises(ValueError, match="K has entries that are not finite"):
        MixedCholesky().factorize(gram(Polynomial(degree=300), 1e3 * X, storage="tiled"), 1.0)
    with pytest.raises(ValueError, match="needs a symmetric Gram"):
        MixedCholesky().factorize(gram(kernel, X, X[:3], storage="dense"), 1.0)
    with pytest.raises(ValueError, match="there are no points"):
        MixedCholesky().factorize(gram(kernel, X[:0]), 1.0)
    with pytest.raises(ValueError, match="right-hand side has entries that are not finite"):
        MixedCholesky().factorize(gram(kernel, X), 1.0).solve(np.full(900, np.nan))
    with pytest.raises(ValueError, match=r"tol must lie in \[0, 1\), got 1.0"):
        MixedCholesky(tol=1.0)
    with pytest.raises(ValueError, match="max_iter must be at least 1, got 0"):
        MixedCholesky(max_iter=0)


def test_an_indefinite_matrix_is_met_by_the_iteration():
    # The eigenvalue -1e-5 is invisible in float32, but not in float64 products.
    Q = np.linalg.qr(rng.normal(size=(60, 60)))[0]
    values = np.append(np.linspace(1.0, 2.0, 59), -1e-5)
    A = gram(Precomputed(), (Q * values) @ Q.T)
    with pytest.raises(NotPositiveDefiniteError, match="direction p with"):
        MixedCholesky().factorize(A, 0.0).solve(Q[:, -1])
