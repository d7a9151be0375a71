"""User-defined functions as kernels: the two contracts, and their detection."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel

from mercer import NotDifferentiableError
from mercer.kernels import RBF, Callable
from mercer.testing import check_kernel

rng = np.random.default_rng(0)
X, Z = rng.normal(size=(7, 3)), rng.normal(size=(4, 3))


def gaussian(x, z, gamma=0.5):
    return np.exp(-gamma * np.sum((x - z) ** 2))


def gaussians(X, Z, gamma=0.5):
    return rbf_kernel(X, Z, gamma=gamma)


def product(x, z):
    return x * z  # a product of two numbers, but elementwise for two columns


def common_letters(s, t):
    return len(set(s) & set(t))


def cross(X, Z):
    return X @ Z.T


@pytest.mark.parametrize("contract", ["auto", "pair"])
def test_pair(contract):
    check_kernel(Callable(gaussian, contract), X, Z, differentiable=False)
    np.testing.assert_allclose(Callable(gaussian, contract)(X, Z), RBF()(X, Z))


@pytest.mark.parametrize("contract", ["auto", "matrix"])
def test_matrix(contract):
    check_kernel(Callable(gaussians, contract), X, Z, differentiable=False)
    np.testing.assert_allclose(Callable(gaussians, contract)(X, Z), RBF()(X, Z))


@pytest.mark.parametrize(
    ("function", "contract"),
    [
        (gaussian, "pair"),
        (np.dot, "pair"),
        (np.vdot, "pair"),
        (product, "pair"),
        (gaussians, "matrix"),
        (laplacian_kernel, "matrix"),
        (cross, "matrix"),
        (np.inner, "matrix"),  # satisfies both contracts
        (RBF(), "matrix"),
    ],
    ids=lambda f: str(getattr(f, "__name__", f)),
)
@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_contracts_are_distinguished(function, contract, n):
    columns = 1 if function is product else 3
    assert Callable(function).prepare(X[:n, :columns]).frame == contract


def test_entrywise_functions_on_the_line():
    np.testing.assert_allclose(Callable(product)(X[:, :1], Z[:, :1]), X[:, :1] @ Z[:, :1].T)


def test_points_of_any_kind():
    words = ["cat", "car", "dog"]
    np.testing.assert_array_equal(
        Callable(common_letters)(words), [[3, 2, 0], [2, 3, 0], [0, 0, 3]]
    )
    numbers = np.arange(4.0)
    np.testing.assert_array_equal(Callable(product)(numbers), np.outer(numbers, numbers))
    np.testing.assert_array_equal(Callable(np.outer, "matrix")(numbers), np.outer(numbers, numbers))


def test_rows_of_sparse_matrices():
    def inner(x, z):
        return (x @ z.T).toarray().item()

    np.testing.assert_allclose(Callable(inner)(sp.csr_array(X), sp.csr_array(Z)), X @ Z.T)
    np.testing.assert_allclose(Callable(cross)(sp.csr_array(X), sp.csr_array(Z)), X @ Z.T)


def test_rows_of_data_frames():
    pandas = pytest.importorskip("pandas")
    got = Callable(np.dot, "pair")(pandas.DataFrame(X), pandas.DataFrame(Z))
    np.testing.assert_allclose(got, X @ Z.T)


def test_symmetry_halves_the_calls():
    calls = []

    def counted(x, z):
        calls.append(1)
        return float(x @ z)

    Callable(counted, "pair")(X)
    assert len(calls) == 7 * 8 / 2


def test_params():
    kernel = Callable(gaussian, params={"gamma": 2.0})
    np.testing.assert_allclose(kernel(X, Z), rbf_kernel(X, Z, gamma=2.0))
    assert kernel == Callable(gaussian, params={"gamma": 2.0}) != Callable(gaussian)
    assert hash(kernel) == hash(Callable(gaussian, params={"gamma": 2.0}))
    assert eval(repr(kernel)) == kernel
    assert pickle.loads(pickle.dumps(kernel)) == kernel


def test_a_probe_does_not_warn():
    def noisy(x, z):
        return float(np.log(np.sum(x * z) ** 2 + 1.0)) if np.ndim(x) == 1 else np.array([1.0]) / 0.0

    assert Callable(noisy)(X).shape == (7, 7)


# ---------------------------------------------------------------------- errors


def test_both_failures_are_shown():
    def broken(x, z):
        raise KeyError("weights")

    with pytest.raises(
        ValueError, match=r"accepts neither.*collections of points: KeyError.*two points: KeyError"
    ):
        Callable(broken)(X)


def test_wrong_shapes():
    with pytest.raises(
        ValueError, match=r"gaussian returned shape \(\) for 7 and 7 points.*'pair'"
    ):
        Callable(gaussian, "matrix")(X)
    with pytest.raises(ValueError, match=r"returned shape \(3, 3\) for two points.*'matrix'"):
        Callable(np.outer, "pair")(X)


@pytest.mark.parametrize("contract", ["pair", "matrix"])
def test_values_that_are_not_finite(contract):
    def function(x, z):
        return np.nan if contract == "pair" else np.full((len(x), len(z)), np.inf)

    with pytest.raises(
        ValueError, match=r"49 NaN or infinite values; the first one is for points 0 and 0"
    ):
        Callable(function, contract)(X)


def test_errors_of_a_forced_contract_pass_through():
    with pytest.raises(AttributeError, match="upper"):
        Callable(lambda x, z: x.upper(), "pair")(X)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Callable("rbf"), "needs a function"),
        (lambda: Callable(np.dot, "rows"), "contract must be one of"),
        (lambda: Callable(np.dot, params=[1]), "params must be a dict"),
    ],
)
def test_bad_fields(make, text):
    with pytest.raises((TypeError, ValueError), match=text):
        make()


def test_no_gradient():
    with pytest.raises(NotDifferentiableError, match="Callable has no derivative"):
        Callable(gaussian).input_gradient(X, Z, np.ones((7, 4)))
