"""Kernels from basis functions, and the bases."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.preprocessing import PolynomialFeatures

from mercer import NotDifferentiableError
from mercer.kernels import (
    RBF,
    Features,
    GaussianBasis,
    GaussianSeries,
    Polynomial,
    PolynomialBasis,
    QuadraticMap,
    SigmoidBasis,
)
from mercer.testing import check_kernel

rng = np.random.default_rng(0)
X, Z = rng.normal(size=(9, 3)), rng.normal(size=(5, 3))

BASES = [
    (GaussianBasis(rng.normal(size=(5, 3)), 0.8), 3),
    (GaussianBasis([0.0, 1.0, 2.0], width=0.8), 1),
    (SigmoidBasis([0.0, 1.0], width=0.8), 3),
    (SigmoidBasis(np.array([0.0, 1.0]), width=0.8), 1),
    (PolynomialBasis(3), 3),
    (PolynomialBasis(0), 3),
    (QuadraticMap(), 3),
    (QuadraticMap(0.7), 3),
    (GaussianSeries(1.3), 1),
    (GaussianSeries(0.5, n_terms=7), 1),
]
each_basis = pytest.mark.parametrize(("basis", "d"), BASES, ids=lambda b: type(b).__name__)


@each_basis
@pytest.mark.parametrize("points", [np.asarray, sp.csr_array])
def test_laws(basis, d, points):
    A, B = points(X[:, :d]), points(Z[:, :d])
    check_kernel(Features(basis), A, B)
    check_kernel(Features(basis) * RBF() + 2 * Features(basis), A, B)


@each_basis
def test_bases_are_values(basis, d):
    again = eval(repr(basis))
    assert again == basis
    assert hash(again) == hash(basis)
    assert pickle.loads(pickle.dumps(basis)) == basis
    assert basis != "basis"
    with pytest.raises(AttributeError):
        basis.width = 1.0
    assert basis(X[:, :d].astype(np.float32)).dtype == np.float32


def test_bases_with_other_fields_differ():
    assert GaussianBasis([0.0, 1.0]) != GaussianBasis([0.0, 2.0])
    assert GaussianBasis([0.0, 1.0]) == GaussianBasis(np.array([0.0, 1.0]))
    assert GaussianBasis([0.0, 1.0]) != SigmoidBasis([0.0, 1.0])


# ---------------------------------------------------------------------- values


def test_gaussian_basis():
    centres = rng.normal(size=(4, 3))
    want = np.exp(-np.square(X[:, None] - centres).sum(axis=2) / (2 * 0.7**2))
    np.testing.assert_allclose(GaussianBasis(centres, 0.7)(X), want)


def test_sigmoid_basis_goes_column_by_column():
    got = SigmoidBasis([0.0, 2.0], width=0.5)([[1.0, -1.0]])
    np.testing.assert_allclose(got, 1.0 / (1.0 + np.exp([[-2.0, 2.0, 2.0, 6.0]])))


def test_sigmoid_basis_does_not_overflow():
    np.testing.assert_array_equal(SigmoidBasis([0.0], 1e-3)([[-1e3], [1e3]]), [[0.0], [1.0]])


@pytest.mark.parametrize("degree", [0, 1, 2, 4])
def test_polynomial_basis(degree):
    want = PolynomialFeatures(degree).fit_transform(X)
    np.testing.assert_allclose(PolynomialBasis(degree)(X), want, rtol=1e-13)


@pytest.mark.parametrize("coef0", [0.0, 1.0, 0.3])
def test_quadratic_map_is_that_of_the_quadratic_kernel(coef0):
    kernel = Polynomial(degree=2, coef0=coef0)
    np.testing.assert_allclose(Features(QuadraticMap(coef0))(X, Z), kernel(X, Z), atol=1e-13)


@pytest.mark.parametrize("n_terms", [1, 3, 10, 20, 40])
def test_gaussian_series_keeps_its_bound(n_terms):
    A, series = X[:, :1], GaussianSeries(1.3, n_terms)
    error = np.abs(Features(series)(A) - RBF(1.3)(A)).max()
    bound = series.error_bound(A)
    assert error <= bound + 1e-15
    assert error >= 0.999 * bound - 1e-15  # the bound is sharp


def test_gaussian_series_far_from_zero():
    A = np.array([[50.0], [-51.0], [51.0]])
    np.testing.assert_allclose(Features(GaussianSeries(n_terms=3500))(A), RBF()(A), atol=1e-11)


# ---------------------------------------------------------------------- contracts


def cubes(X):
    return sp.csr_array(np.asarray(X) ** 3)


def test_sparse_features():
    np.testing.assert_allclose(Features(cubes)(X, Z), X**3 @ Z.T**3)
    np.testing.assert_allclose(Features(cubes).diag(X), (X**6).sum(axis=1))


@pytest.mark.parametrize(
    ("basis", "text"),
    [
        (lambda X: X[:, 0], r"<lambda> returned shape \(9,\) for 9 points"),
        (lambda X: X.T, r"returned shape \(3, 9\) for 9 points; .*shape \(9, M\)"),
        (lambda X: X / 0.0, "NaN or infinite"),
        (lambda X: np.ones((len(X), len(X))), "returned 9 features for some points and 5"),
    ],
)
def test_wrong_features(basis, text):
    with np.errstate(divide="ignore"), pytest.raises(ValueError, match=text):
        Features(basis)(X, Z)


def test_a_basis_without_derivative():
    with pytest.raises(NotDifferentiableError, match="Features: cubes has no method pullback"):
        Features(cubes).input_gradient(X, Z, np.ones((9, 5)))


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Features(3), "needs a function"),
        (lambda: GaussianBasis([0.0], width=-1.0), "width must be positive"),
        (lambda: GaussianBasis(1.0), r"centres must have shape \(M, d\)"),
        (lambda: SigmoidBasis([[0.0]]), r"centres must have shape \(M,\)"),
        (lambda: PolynomialBasis(1.5), "degree must be a non-negative integer"),
        (lambda: QuadraticMap(-1.0), "coef0 must be non-negative"),
        (lambda: GaussianSeries(n_terms=0), "n_terms must be a positive integer"),
        (lambda: GaussianBasis([0.0])(X), "the centres have 1 columns, but the points have 3"),
        (lambda: GaussianSeries()(X), "one column, got 3"),
    ],
)
def test_bad_bases(make, text):
    with pytest.raises((TypeError, ValueError), match=text):
        make()


def test_features_that_are_integers():
    def positive(X):
        return X > 0

    expected = (X > 0).astype(float) @ (Z > 0).T.astype(float)
    np.testing.assert_array_equal(Features(positive)(X, Z), expected)
