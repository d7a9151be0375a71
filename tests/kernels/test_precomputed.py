"""A kernel on indices of points, and the "precomputed" kernel of estimators."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from mercer import NotDifferentiableError
from mercer.kernels import RBF, Precomputed, White
from mercer.testing import check_kernel

rng = np.random.default_rng(0)
K = RBF()(rng.normal(size=(12, 2)))
V = RBF()(rng.normal(size=(5, 2)), rng.normal(size=(12, 2)))  # 5 test points, 12 training points


# ---------------------------------------------------------------------- with a matrix


@pytest.mark.parametrize("matrix", [K, K.tolist(), K.astype(np.float32)], ids=type)
def test_laws_on_indices(matrix):
    kernel = Precomputed(matrix)
    for composite in (kernel, 2 * kernel**2 + White(0.1)):
        points = rng.permutation(12)[:9], rng.integers(12, size=5)
        check_kernel(composite, *points, differentiable=False)


def test_values_by_index():
    i, j = [3, 1, 3], np.array([0, 3], dtype=np.uint8)
    np.testing.assert_array_equal(Precomputed(K)(i, j), K[np.ix_(i, j)])
    np.testing.assert_array_equal(Precomputed(K).diag(i), np.diag(K)[i])
    assert Precomputed(K.astype(np.float32))(i).dtype == np.float32


@pytest.mark.parametrize(
    ("points", "text"),
    [
        ([0, 12], r"no point 12; the matrix has 12 points \(0 to 11\)"),
        ([-1], "start at 0, got -1"),
        ([0.5], r"array of integers of shape \(n,\); got float64 of shape \(1,\)"),
        ([[0, 1]], r"got int64 of shape \(1, 2\)"),
        (["a"], "points must be indices"),
    ],
)
def test_wrong_indices(points, text):
    for call in (Precomputed(K), Precomputed(K).diag):
        with pytest.raises(ValueError, match=text):
            call(points)


@pytest.mark.parametrize(
    ("matrix", "text"), [(V, r"square, got shape \(5, 12\)"), ([[np.nan]], "NaN or infinite")]
)
def test_wrong_matrices(matrix, text):
    with pytest.raises(ValueError, match=text):
        Precomputed(matrix)


def test_values():
    kernel = Precomputed(K)
    assert kernel == Precomputed(K.copy()) != Precomputed(2 * K)
    assert hash(kernel) == hash(Precomputed(K.tolist()))
    assert eval(repr(kernel)) == kernel
    assert clone(kernel) == kernel
    assert Precomputed() == Precomputed()
    assert Precomputed() != kernel
    assert repr(Precomputed()) == "Precomputed(matrix=None)"


# ---------------------------------------------------------------------- without


@pytest.mark.parametrize("points", [np.asarray, np.ndarray.tolist, sp.csr_array])
def test_a_square_matrix_is_its_own_block(points):
    got = Precomputed()(points(K))
    np.testing.assert_array_equal(got, K)
    got[0, 0] = 7.0
    assert K[0, 0] == 1.0
    np.testing.assert_array_equal(Precomputed().diag(points(K)), np.ones(12))


@pytest.mark.parametrize("points", [np.asarray, np.ndarray.tolist, sp.csr_array])
def test_rows_of_values_against_training_points(points):
    j = [4, 0, 4]
    kernel = Precomputed()
    np.testing.assert_array_equal(kernel(points(V), j), V[:, j])
    np.testing.assert_array_equal(kernel(j, points(V)), V[:, j].T)
    np.testing.assert_array_equal(kernel(points(V), np.arange(12)), V)
    np.testing.assert_array_equal(kernel(points(V), K), V)  # the original training points
    np.testing.assert_array_equal(kernel(K, points(V)), V.T)
    np.testing.assert_array_equal((2 * kernel + 1)(points(V), j), 2 * V[:, j] + 1)


def test_precision_is_that_of_the_values():
    assert Precomputed()(V.astype(np.float32), [0, 1]).dtype == np.float32
    assert Precomputed()([0, 1], V).dtype == np.float64


def test_tiles():
    kernel = Precomputed()
    P = kernel.prepare(K)
    out = np.empty((3, 4))
    kernel.tile(P[2:5], P[6:10], out)
    np.testing.assert_array_equal(out, K[2:5, 6:10])
    i, j = [5, 1], [0, 9, 3]
    np.testing.assert_array_equal(kernel.tile(P[i], P[j], np.empty((2, 3))), K[np.ix_(i, j)])


@pytest.mark.parametrize("call", [Precomputed(), Precomputed().diag])
def test_a_matrix_that_is_not_square(call):
    with pytest.raises(
        ValueError, match=r"shape \(5, 12\) is not square; fit needs \(n, n\).*n_test"
    ):
        call(V)


@pytest.mark.parametrize(
    ("X", "Z", "text"),
    [
        (V, [12], r"shape \(5, 12\) belong to 12 training points.*no training point 12"),
        ([12], V, "no training point 12"),
        (V, [-1], "start at 0"),
        (V, V, r"\(5, 12\) and \(5, 12\) do not match"),
        (V, np.eye(5), r"\(5, 12\) and \(5, 5\) do not match"),
        ([0, 1], [1], r"use Precomputed\(K\), which contains the matrix"),
        ([0, 1], None, r"use Precomputed\(K\), which contains the matrix"),
        (np.where(K > 0.5, np.nan, K), None, "contains NaN"),
    ],
)
def test_what_does_not_fit(X, Z, text):
    with pytest.raises(ValueError, match=text):
        Precomputed()(X, Z)


def test_no_values_for_indices():
    with pytest.raises(ValueError, match="no values k"):
        Precomputed().diag([0, 1])


def test_no_derivatives():
    assert Precomputed(K).pullback([0], [1], [[1.0]]).shape == (0,)
    with pytest.raises(NotDifferentiableError, match="Precomputed has no derivative"):
        Precomputed(K).input_gradient([0], [1], [[1.0]])
