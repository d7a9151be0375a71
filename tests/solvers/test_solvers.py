"""Linear systems and eigenproblems against NumPy, and the reports of the solvers."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from mercer import DensifyWarning, NotPositiveDefiniteError
from mercer.gram import CentredGram, gram
from mercer.kernels import RBF, Linear, Precomputed, Sigmoid
from mercer.solvers import (
    EIGEN,
    LINEAR,
    Arpack,
    BlockKrylov,
    Cholesky,
    Cost,
    DenseEigen,
    LeastSquares,
    LowRankEigen,
    PowerDeflation,
    RandomizedEigen,
    Report,
    Status,
    choose,
)
from mercer.solvers._choose_solver import _cg_trial_options

rng = np.random.default_rng(1)
X = rng.normal(size=(120, 4))
Y = rng.normal(size=(120, 3))
kernel = RBF(2.0)
K = kernel(X)


@pytest.mark.parametrize("solver", [Cholesky(), LeastSquares()], ids=repr)
@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("shift", [0.1, np.linspace(0.1, 3.0, 120)], ids=["scalar", "vector"])
def test_systems(solver, overwrite, shift):
    A = K + np.diag(np.broadcast_to(shift, 120))
    held = gram(kernel, X)
    factor = solver.factorize(held, shift, overwrite=overwrite)
    np.testing.assert_allclose(factor.solve(Y), np.linalg.solve(A, Y), rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(factor.solve(Y[:, 0]), np.linalg.solve(A, Y[:, 0]), atol=1e-10)
    assert factor.logdet() == pytest.approx(np.linalg.slogdet(A)[1], rel=1e-12)
    np.testing.assert_allclose(factor.inverse_diagonal(), np.linalg.inv(A).diagonal(), rtol=1e-10)
    assert factor.report.status is Status.DIRECT
    assert factor.report.residual < 1e-11
    if not overwrite:
        np.testing.assert_allclose(held @ Y, K @ Y, rtol=1e-12)


def test_the_residual_is_the_true_one():
    # The right-hand side has no exact solution in floating point: the residual is small, but not 0.
    factor = Cholesky().factorize(gram(kernel, X), 1e-9)
    factor.solve(Y)
    assert 0 < factor.report.residual < 1e-6
    # A singular system cannot be solved: its residual is large, and accurate to many digits.
    singular = LeastSquares().factorize(gram(Linear(), X), 0.0)
    a = singular.solve(Y)
    true = np.linalg.norm(Y - X @ (X.T @ a), axis=0) / np.linalg.norm(Y, axis=0)
    assert singular.report.residual == pytest.approx(true.max(), rel=1e-10)
    assert singular.report.residual > 0.5


def test_cholesky_in_float32():
    factor = Cholesky().factorize(gram(kernel, X.astype(np.float32)), 1.0, overwrite=True)
    a = factor.solve(Y.astype(np.float32))
    assert a.dtype == np.float32
    np.testing.assert_allclose(a, np.linalg.solve(K + np.eye(120), Y), rtol=2e-3, atol=2e-4)


def test_indefinite_and_singular_systems_are_refused_with_numbers():
    with pytest.raises(NotPositiveDefiniteError, match=r"pivot \d+ of 120 is not positive"):
        Cholesky().factorize(gram(Sigmoid(), X), 0.0)
    twice = np.concatenate([X, X])
    with pytest.raises(NotPositiveDefiniteError, match="Try a larger alpha, or solver='lstsq'"):
        Cholesky().factorize(gram(kernel, twice), 0.0)
    assert issubclass(NotPositiveDefiniteError, np.linalg.LinAlgError)


def test_least_squares_has_the_least_norm():
    held = gram(Linear(), X)  # rank 4 of 120
    factor = LeastSquares().factorize(held, 0.0)
    a = factor.solve(Y)
    np.testing.assert_allclose(a, np.linalg.pinv(Linear()(X), rcond=1e-10) @ Y, atol=1e-10)
    assert factor.report.status is Status.SINGULAR
    assert "116 of 120 eigenvalues are treated as 0" in factor.report.message
    with pytest.raises(NotPositiveDefiniteError, match="log det needs a positive definite matrix"):
        factor.logdet()


def test_turning_tiles_into_an_array_is_reported():
    with pytest.warns(DensifyWarning, match="turns the TiledGram of 120 points into an array"):
        Cholesky().factorize(gram(kernel, X, storage="tiled"), 1.0)
    with pytest.warns(DensifyWarning, match="TiledGram of 120 points"):
        DenseEigen().eigenpairs(CentredGram(gram(kernel, X, storage="tiled")), 2)


def test_systems_that_make_no_sense():
    with pytest.raises(ValueError, match="needs a symmetric Gram"):
        Cholesky().factorize(gram(kernel, X, X[:3], storage="dense"), 1.0)
    with pytest.raises(ValueError, match=r"shift must be a number or have shape \(120,\)"):
        Cholesky().factorize(gram(kernel, X), np.ones(3))
    for bad in (-1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="shift must be finite and non-negative"):
            Cholesky().factorize(gram(kernel, X), bad)


# ---------------------------------------------------------------------- eigenpairs


SOLVERS = [DenseEigen(), Arpack(random_state=0), RandomizedEigen(n_iter=60, random_state=0)]


@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
@pytest.mark.parametrize("storage", ["dense", "tiled"])
@pytest.mark.filterwarnings("ignore::mercer.DensifyWarning")
def test_eigenpairs(solver, storage):
    centred = CentredGram(gram(kernel, X, storage=storage))
    reference = centred.to_array()
    pairs = solver.eigenpairs(centred, 5)
    np.testing.assert_allclose(pairs.values, np.linalg.eigvalsh(reference)[::-1][:5], rtol=1e-9)
    np.testing.assert_allclose(pairs.vectors.T @ pairs.vectors, np.eye(5), atol=1e-10)
    true = np.linalg.norm(reference @ pairs.vectors - pairs.vectors * pairs.values, axis=0)
    np.testing.assert_allclose(pairs.residuals, true, atol=1e-13)
    assert pairs.report.residual == pytest.approx(pairs.residuals.max() / pairs.values[0])
    # The sign convention: the entry of largest modulus is positive.
    largest = np.abs(pairs.vectors).argmax(axis=0)
    assert np.all(pairs.vectors[largest, np.arange(5)] > 0)


def test_residuals_of_pairs_that_are_not_eigenpairs():
    pairs = RandomizedEigen(n_iter=0, random_state=0).eigenpairs(gram(kernel, X), 5)
    true = np.linalg.norm(K @ pairs.vectors - pairs.vectors * pairs.values, axis=0)
    assert true.max() > 1e-3
    np.testing.assert_allclose(pairs.residuals, true, rtol=1e-9)


def test_systems_refuse_what_does_not_fit():
    held = gram(kernel, X)
    with pytest.raises(ValueError, match=r"has shape \(3,\), but the system has 120"):
        Cholesky().factorize(held, 1.0).solve(np.ones(3))
    with pytest.raises(ValueError, match="shift must be finite"):
        Cholesky().factorize(held, -1.0, overwrite=True)
    # the Gram operator is still usable after the error
    assert (held @ np.ones(120)).shape == (120,)
    with pytest.raises(ValueError, match="there are no points"):
        Cholesky().factorize(gram(kernel, X[:0]), 1.0)


def test_all_eigenpairs():
    pairs = DenseEigen().eigenpairs(gram(kernel, X), overwrite=True)
    assert pairs.values.shape == (120,)
    rebuilt = (pairs.vectors * pairs.values) @ pairs.vectors.T
    np.testing.assert_allclose(rebuilt, K, atol=1e-12)


def test_the_same_seed_gives_the_same_bits():
    for solver in (Arpack(random_state=3), RandomizedEigen(random_state=3)):
        first, second = (solver.eigenpairs(gram(kernel, X), 3).vectors for _ in range(2))
        assert np.array_equal(first, second)


def test_arpack_that_stops_early_warns_with_numbers():
    # two separated eigenvalues, and a cluster
    spectrum = np.append(np.linspace(1.0, 1.001, 398), [4.0, 5.0])
    flat = gram(Precomputed(), np.diag(spectrum))
    with pytest.warns(ConvergenceWarning, match=r"found \d+ of 5 eigenpairs after \d+ products"):
        pairs = Arpack(max_iter=2, random_state=0).eigenpairs(flat, 5)
    assert pairs.report.status is Status.NOT_CONVERGED
    assert 0 < len(pairs.values) < 5
    with pytest.raises(RuntimeError, match="No convergence"):
        Arpack(max_iter=1, random_state=0).eigenpairs(
            gram(Precomputed(), np.diag(spectrum[:398])), 5
        )


def test_eigenproblems_that_make_no_sense():
    for k in (0, 121):
        with pytest.raises(ValueError, match="must lie between 1 and n = 120"):
            DenseEigen().eigenpairs(gram(kernel, X), k)
    with pytest.raises(ValueError, match="ARPACK can compute at most n - 1 eigenpairs"):
        Arpack().eigenpairs(gram(kernel, X), 120)


# ---------------------------------------------------------------------- the table, the report


def test_the_table_of_solvers():
    small, large = gram(kernel, X), gram(kernel, np.zeros((1600, 1)))
    assert choose(LINEAR, small) == Cholesky()
    assert choose(LINEAR, small, "lstsq") == LeastSquares()
    assert choose(EIGEN, small, k=3) == DenseEigen()
    assert choose(EIGEN, large, k=3, tol=1e-3) == BlockKrylov(tol=1e-3)
    assert choose(EIGEN, large, k=400) == DenseEigen()
    assert choose(EIGEN, gram(kernel, X, storage="tiled"), k=2) == BlockKrylov()
    assert choose(EIGEN, CentredGram(large), k=3) == BlockKrylov()
    assert choose(EIGEN, small, "arpack", tol=1e-3) == Arpack(tol=1e-3)
    assert choose(EIGEN, small, "power", max_iter=7) == PowerDeflation(max_iter=7)
    assert choose(EIGEN, small, "nystroem", rank=7) == LowRankEigen(rank=7)
    assert choose(EIGEN, small, DenseEigen()) == DenseEigen()
    with pytest.raises(ValueError, match="unknown solver 'qr'"):
        choose(LINEAR, small, "qr")
    with pytest.raises(TypeError, match=r"it has no factorize\(\)"):
        choose(LINEAR, small, DenseEigen())


def test_a_report_can_be_read():
    report = Report("Cholesky()", Status.DIRECT, residual=1e-13, seconds=2.0, message="jitter 0")
    text = str(report)
    assert "direct method" in text and "1.00e-13" in text and "jitter 0" in text
    # no residual is printed if there is none
    assert "residual" not in str(Report("L-BFGS", Status.CONVERGED))


@pytest.mark.parametrize(("storing", "setup"), [(1.0, 1.0), (1e9, 1e6)])
def test_trials_of_conjugate_gradients(storing, setup):
    costs = {"tiled": Cost(calls=10.0), "dense": Cost(calls=1.0)}
    cg = SimpleNamespace(
        cost=lambda n, read, columns: (Cost(calls=setup), read), _rank=lambda n: 100
    )
    direct = SimpleNamespace(cost=lambda n, read, columns: Cost(calls=1e6))
    trial, min_steps = _cg_trial_options(cg, 5000, direct, Cost(calls=storing), costs, 1)
    assert min_steps == pytest.approx(storing / 9.0)
    if setup == 1.0:  # it pays to store K: steps cost 1, after 1 + 1 for storing and setup
        assert trial == {"max_iter": pytest.approx(2.0 * (1e6 - 2.0), rel=1e-5)}
    else:
        assert trial["rank"] < 100 and trial["max_iter"] < 1e4
