"""Every kernel in every Gram, every solver on every Gram, every kernel's expansions."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import zoo

from mercer import DensifyWarning, Expansion
from mercer.kernels import RBF, Linear, Matern, Polynomial, White
from mercer.testing import check_expansion, check_gram, check_solver

each_kernel = pytest.mark.parametrize("entry", **zoo.every())
each_gram = pytest.mark.parametrize("hold", zoo.GRAMS, ids=lambda hold: hold.__name__)

# ---------------------------------------------------------------------- Grams


@each_gram
@each_kernel
def test_grams(entry, hold):
    X, Z = entry.points(11), entry.points(5, seed=1)
    for second in (None, Z):
        check_gram(hold(entry.kernel, X, second), entry.kernel(X, second))


@each_gram
@pytest.mark.parametrize("rows", [255, 512, 1100], ids="{} rows".format)
def test_grams_of_several_tiles(hold, rows):
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(rows, 3)), rng.normal(size=(700, 3))
    kernel = (RBF() + White(0.1)) * Polynomial(degree=2)
    for second in (None, Z):
        K = hold(kernel, X, second)
        check_gram(K, kernel(X, second))
        V = rng.normal(size=(K.shape[1], 2))
        np.testing.assert_array_equal(K @ V, hold(kernel, X, second, n_threads=1) @ V)


@each_gram
@pytest.mark.parametrize("columns", [3, 12])
def test_grams_in_single_precision_and_of_sparse_points(hold, columns):
    X = np.random.default_rng(0).normal(size=(40, columns))
    X[np.abs(X) < 0.5] = 0.0
    kernel = RBF(3.0) + Linear()
    single = hold(kernel, X.astype(np.float32))
    assert single.dtype == np.float32
    check_gram(single, kernel(X), rtol=1e-5)
    check_gram(hold(kernel, sp.csr_array(X)), kernel(X))
    check_gram(hold(kernel, sp.csr_array(X), X[:7]), kernel(X, X[:7]))
    check_gram(hold(kernel, X, sp.csr_array(X[:7])), kernel(X, X[:7]))


@each_gram
def test_grams_of_one_point(hold):
    check_gram(hold(RBF(), np.ones((1, 2))), np.ones((1, 1)))
    check_gram(hold(RBF(), np.ones((1, 2)), np.ones((3, 2))), np.ones((1, 3)))


# ---------------------------------------------------------------------- solvers


@pytest.mark.parametrize("kernel", [RBF(), Matern(nu=0.5), 2 * RBF() + Linear() + 1], ids=str)
@pytest.mark.parametrize("solver", zoo.LINEAR_SOLVERS, ids=repr)
def test_linear_solvers(solver, kernel):
    rng = np.random.default_rng(0)
    for n in (1, 2, 40):
        K = zoo.DenseGram(kernel, rng.normal(size=(n, 3)))
        check_solver(solver, K)
        check_solver(solver, K, rng.normal(size=n), shift=rng.uniform(0.1, 2.0, size=n))
        check_solver(solver, K, rng.normal(size=(n, 5)), shift=1e3)


@each_gram
@pytest.mark.parametrize("kernel", [RBF(), Matern(nu=0.5), 2 * RBF() + Linear() + 1], ids=str)
@pytest.mark.parametrize("solver", zoo.EIGEN_SOLVERS, ids=repr)
def test_eigen_solvers(solver, kernel, hold):
    K = hold(kernel, np.random.default_rng(0).normal(size=(60, 3)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DensifyWarning)  # LAPACK needs the array, and says so
        for k in (1, 5, 20):
            check_solver(solver, K, k=k, rtol=1e-7)


# ---------------------------------------------------------------------- expansions


@pytest.mark.parametrize("entry", **zoo.every(psd=True))
def test_expansions(entry):
    points, X = entry.points(8), entry.points(6, seed=1)
    for columns in ((), (3,)):
        a = np.random.default_rng(2).normal(size=(8, *columns))
        check_expansion(Expansion(entry.kernel, points, a), X, differentiable=entry.differentiable)
