"""The covariance of a Gaussian process given data is a kernel."""

import numpy as np
import pytest

from mercer.kernels import RBF, Linear, Matern, White
from mercer.models.gp import Conditioned, MarginalLikelihood


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    return rng.normal(size=(12, 2)), rng.normal(size=(7, 2)), rng.normal(size=(3, 2))


def conditioned(kernel, S, noise=0.1):
    return Conditioned(kernel, S, np.linalg.cholesky(kernel(S) + noise * np.eye(len(S))))


@pytest.mark.parametrize("kernel", [RBF(0.8), 2 * Matern(nu=2.5) + Linear() + White(0.3)], ids=str)
def test_block_and_diagonal_are_those_of_the_formula(kernel, data):
    S, X, Z = data
    k = conditioned(kernel, S)
    C = kernel(S) + 0.1 * np.eye(len(S))
    want = kernel(X, Z) - kernel(X, S) @ np.linalg.solve(C, kernel(S, Z))
    np.testing.assert_allclose(k(X, Z), want, atol=1e-12)
    square = kernel(X) - kernel(X, S) @ np.linalg.solve(C, kernel(S, X))
    np.testing.assert_allclose(k(X), square, atol=1e-12)
    np.testing.assert_allclose(k.diag(X), np.diag(square), atol=1e-12)


def test_inducing_points_that_are_all_points_give_the_exact_covariance(data):
    S, X, _ = data
    kernel, noise = RBF(), 0.2
    L = np.linalg.cholesky(kernel(S) + 1e-12 * np.eye(len(S)))
    F = np.linalg.solve(L, kernel(S))
    B = np.linalg.cholesky(np.eye(len(S)) + F @ F.T / noise)
    inducing = Conditioned(kernel, S, L, B)
    np.testing.assert_allclose(inducing(X), conditioned(kernel, S, noise)(X), atol=1e-9)


def test_conditioning_twice_is_conditioning_on_both(data):
    S, X, Z = data
    kernel = RBF()
    once = conditioned(kernel, np.concatenate([S, Z]), 0.1)
    first = conditioned(kernel, S, 0.1)
    np.testing.assert_allclose(conditioned(first, Z, 0.1)(X), once(X), atol=1e-10)


def test_many_points_go_in_blocks(data):
    S, _, _ = data
    X = np.random.default_rng(1).normal(size=(1300, 2))
    k = conditioned(RBF(), S)
    np.testing.assert_allclose(k.diag(X), np.diag(k(X)), atol=1e-12)


@pytest.mark.parametrize("m", [0, 1, 700])
@pytest.mark.parametrize("noisy", [0.0, 0.3])
def test_moments_are_those_of_mean_and_covariance(m, noisy, data):
    S, _, _ = data
    X = np.random.default_rng(1).normal(size=(m, 2))
    Y = np.column_stack([S[:, 0], np.sin(S[:, 1])])
    kernel = 2 * Matern(nu=2.5) + White(noisy) if noisy else RBF(0.8)
    posterior = MarginalLikelihood(kernel, S, Y, noise=0.1).posterior()
    means, variances = posterior.moments(X)
    np.testing.assert_allclose(means, posterior.expansion(X), atol=1e-13)
    np.testing.assert_allclose(variances, posterior.covariance.diag(X), atol=1e-13)


def test_variances_are_not_negative_and_say_so_if_rounding_is_large():
    S = np.linspace(0, 1e-3, 6)[:, None]
    k = Conditioned(RBF(), S, np.linalg.cholesky(RBF()(S) + 1e-14 * np.eye(6)))
    assert np.all(k.diag(S) >= 0.0)
    wrong = Conditioned(RBF(), S, 0.5 * np.eye(6))  # a factor that is far too small
    with pytest.warns(UserWarning, match="smaller than 0.*6 of 6, the lowest -23") as caught:
        assert np.all(wrong.diag(S) == 0.0)
    assert caught[0].filename == __file__


def test_value(data):
    S, _, _ = data
    k = conditioned(RBF(), S)
    assert k.theta.size == 0
    assert k == conditioned(RBF(), S) and k != conditioned(RBF(), S, 0.2) and k != RBF()
    assert hash(k) == hash(conditioned(RBF(), S))
    inner = Conditioned(RBF(), S, k.factor, np.eye(len(S)))
    assert k != inner and inner == Conditioned(RBF(), S, k.factor, np.eye(len(S)))
    assert str(k) == "RBF(length_scale=1.0) given 12 points"
    with pytest.raises(ValueError, match="read-only"):
        k.factor[0, 0] = 1.0
    many = conditioned(RBF(), np.arange(100.0)[:, None])
    assert repr(many) == "<RBF(length_scale=1.0) given 100 points>"


def test_float32_points_are_worked_on_in_float64(data):
    S, X, _ = data
    k = conditioned(RBF(), S)
    assert k(X.astype(np.float32)).dtype == np.float64


def test_words():
    def common(s, t):
        return float(len(set(s) & set(t)))

    from mercer.kernels import Callable

    S, X = ["abc", "bcd"], ["abd", "xyz", "abc"]
    kernel = Callable(common)
    k = conditioned(kernel, S, 0.5)
    C = kernel(S) + 0.5 * np.eye(2)
    want = kernel(X) - kernel(X, S) @ np.linalg.solve(C, kernel(S, X))
    np.testing.assert_allclose(k(X), want, atol=1e-12)


def test_bad_input():
    with pytest.raises(TypeError, match="prior Kernel"):
        Conditioned("rbf", [[0.0]], [[1.0]])
    with pytest.raises(ValueError, match=r"factor has shape \(2, 2\), but there are 1 points"):
        Conditioned(RBF(), [[0.0]], np.eye(2))
    with pytest.raises(ValueError, match=r"inner has shape \(2, 2\)"):
        Conditioned(RBF(), [[0.0]], np.eye(1), np.eye(2))
