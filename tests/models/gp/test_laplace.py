"""The Laplace approximation for several classes, against an implementation with full matrices."""

import tracemalloc

import numpy as np
import pytest
from scipy.linalg import block_diag
from scipy.special import log_softmax, ndtri, softmax
from scipy.stats import qmc

from mercer import MemoryBudgetError, NotPositiveDefiniteError
from mercer.kernels import RBF, Bounded, Linear, Sigmoid, White
from mercer.models.gp import (
    ClassCovariance,
    LaplaceLikelihood,
    expected_probability,
    expected_softmax,
    maximise,
)
from mercer.models.gp._optimise import _ThetaOptimiser

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 2))
Z = np.concatenate([rng.normal(size=(8, 2)), X[:2], [[50.0, 50.0]]])
LABELS = np.digitize(X[:, 0] + X[:, 1] + 0.3 * rng.normal(size=40), [-0.9, 0.0, 0.9])
FOUR = np.eye(4)[LABELS]
KERNEL = 3.0 * RBF((1.0, 2.0))


def all_at_once(K, Y):
    """Return log q, K^-1 f and W by Newton's method with (Cn) x (Cn) matrices."""
    n, q = Y.shape
    big, y = np.kron(np.eye(q), K), Y.T.ravel()  # ordered by class
    f = np.zeros(n * q)
    for _ in range(50):
        P = softmax(f.reshape(q, n), axis=0)
        stacked = np.vstack([np.diag(p) for p in P])
        W = block_diag(*map(np.diag, P)) - stacked @ stacked.T
        a = np.linalg.solve(np.eye(n * q) + W @ big, W @ f + y - P.ravel())
        f = big @ a
    fit = np.sum(Y.T * log_softmax(f.reshape(q, n), axis=0)) - 0.5 * a @ f
    return fit - 0.5 * np.linalg.slogdet(np.eye(n * q) + big @ W)[1], a.reshape(q, n).T, W, big


def test_value_mean_and_covariance_are_those_of_all_classes_at_once():
    value, a, W, big = all_at_once(KERNEL(X), FOUR)
    likelihood = LaplaceLikelihood(KERNEL, X, FOUR)
    assert likelihood.value() == pytest.approx(value, rel=1e-12)
    posterior = likelihood.posterior()
    assert posterior.report.certificate["log marginal likelihood"] == likelihood.value()
    assert posterior.report.residual < 1e-6
    np.testing.assert_allclose(posterior.expansion.coefficients, a, atol=1e-8)
    across = KERNEL(X, Z)
    R = np.linalg.solve(np.eye(len(big)) + W @ big, W)
    for i, found in enumerate(posterior.covariance(Z)):
        k = np.kron(np.eye(4), across[:, [i]])
        np.testing.assert_allclose(found, 3.0 * np.eye(4) - k.T @ R @ k, atol=1e-9)
    # The labels determine neither the sum of all functions nor the values at distant points.
    np.testing.assert_allclose(posterior.covariance(Z).sum(axis=2), 3.0)
    np.testing.assert_allclose(posterior.covariance(Z)[-1], 3.0 * np.eye(4), atol=1e-12)


@pytest.mark.parametrize("q", [2, 3, 4])
@pytest.mark.parametrize("kernel", [KERNEL, 0.5 * Linear() + White(0.3), 1e4 * KERNEL], ids=str)
def test_the_gradient_is_that_of_differences(kernel, q):
    objective = LaplaceLikelihood(kernel, X, np.eye(q)[LABELS % q])
    value, gradient = objective.value_and_gradient()
    assert value == objective.value()
    # For a large K, rounding changes single values by about 1e-8, hence the median of differences.
    sizes, theta = np.array([1e-4, 5e-5, 2e-5, 1e-5, 5e-6]), kernel.theta
    slopes = [
        np.median(
            [
                (objective.value(theta + h * e) - objective.value(theta - h * e)) / (2 * h)
                for h in sizes
            ]
        )
        for e in np.eye(theta.size)
    ]
    np.testing.assert_allclose(gradient, slopes, rtol=1e-5, atol=2e-5)


def test_two_functions_are_one_with_twice_the_kernel():
    y = LABELS > 1
    two = LaplaceLikelihood(KERNEL, X, np.column_stack([~y, y]))
    one = LaplaceLikelihood(6.0 * RBF((1.0, 2.0)), X, y)
    assert two.value() == pytest.approx(one.value(), rel=1e-12)
    for mine, theirs in zip(two.value_and_gradient(), one.value_and_gradient(), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9)
    both, single = two.posterior(), one.posterior()
    np.testing.assert_allclose(
        expected_softmax(both.expansion(Z), both.covariance(Z))[:, 1],
        expected_probability(single.expansion(Z)[:, 0], single.covariance.diag(Z)),
        atol=1e-9,
    )


def test_a_class_without_points_has_a_value():
    # A quarter of the points, on which a search starts.
    value, *_ = all_at_once(KERNEL(X), np.column_stack([FOUR, np.zeros(40)]))
    found = LaplaceLikelihood(KERNEL, X, np.column_stack([FOUR, np.zeros(40)]))
    assert found.value() == pytest.approx(value, rel=1e-12)


def test_a_warm_start_takes_fewer_steps():
    warm = LaplaceLikelihood(KERNEL, X, FOUR, warm=True)
    first, second = warm.posterior(), warm.posterior()
    assert second.report.n_iter < first.report.n_iter
    np.testing.assert_allclose(
        first.expansion.coefficients, second.expansion.coefficients, atol=1e-7
    )


def moments(q, deviation):
    draw = np.random.default_rng(q)
    A = draw.normal(size=(20, q, q)) * deviation / np.sqrt(q)
    return deviation * draw.normal(size=(20, q)), A @ A.transpose(0, 2, 1)


@pytest.mark.parametrize("deviation, error", [(1.0, 1e-4), (8.0, 5e-4)])
def test_a_softmax_of_three_is_that_of_quadrature(deviation, error):
    mean, covariance = moments(3, deviation)
    contrast = np.array([[1.0, 0.0, -1.0], [0.0, 1.0, -1.0]])  # f_1 - f_3 and f_2 - f_3
    grid = np.linspace(-9.0, 9.0, 301)
    nodes = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
    weights = np.exp(-0.5 * np.sum(nodes**2, axis=1))
    L = np.linalg.cholesky(contrast @ covariance @ contrast.T)
    expected = [
        weights @ softmax(np.column_stack([contrast @ m + nodes @ r.T, 0 * weights]), axis=1)
        for m, r in zip(mean, L, strict=True)
    ]
    found = expected_softmax(mean, covariance)
    np.testing.assert_allclose(found, expected / weights.sum(), atol=error)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-15)
    assert np.array_equal(found, expected_softmax(mean, covariance))
    np.testing.assert_allclose(found[3:5], expected_softmax(mean[3:5], covariance[3:5]), rtol=1e-12)


@pytest.mark.parametrize("deviation, error", [(1.0, 5e-4), (8.0, 8e-3)])
def test_a_softmax_of_ten_is_that_of_many_points(deviation, error):
    mean, covariance = (part[:4] for part in moments(10, deviation))
    points = qmc.Sobol(10, seed=7).random_base2(16)
    nodes = ndtri(np.clip(points, 1e-12, 1.0 - 1e-12))
    L = np.linalg.cholesky(covariance)
    expected = [softmax(m + nodes @ r.T, axis=1).mean(axis=0) for m, r in zip(mean, L, strict=True)]
    np.testing.assert_allclose(expected_softmax(mean, covariance), expected, atol=error)


def test_certain_functions_have_their_own_softmax():
    mean = rng.normal(size=(5, 4))
    found = expected_softmax(mean, np.zeros((5, 4, 4)))
    np.testing.assert_allclose(found, softmax(mean, axis=1), rtol=1e-12)


def test_what_is_taken_is_what_is_asked_for():
    n, q = 300, 6
    points = np.random.default_rng(1).normal(size=(n, 2))
    likelihood = LaplaceLikelihood(KERNEL, points, np.eye(q)[np.arange(n) % q])
    likelihood.value_and_gradient()
    tracemalloc.start()
    likelihood.value_and_gradient()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 0.6 * likelihood.workspace() < peak < likelihood.workspace()
    assert likelihood.workspace() < 8 * (q * n) ** 2 / 1.5


def test_bad_input():
    with pytest.raises(ValueError, match="several columns of 0 and 1 with a single 1 in each row"):
        LaplaceLikelihood(KERNEL, X, FOUR + np.eye(4)[(LABELS + 1) % 4])
    with pytest.raises(MemoryBudgetError, match="on 40 points of 4 classes needs 100"):
        LaplaceLikelihood(KERNEL, X, FOUR, max_memory="99 KiB")
    tight = LaplaceLikelihood(KERNEL, X, FOUR, max_memory="110 KiB")
    with pytest.raises(MemoryBudgetError, match="a gradient on 40 points of 4 classes"):
        tight.value_and_gradient()
    wrong = LaplaceLikelihood(50.0 * Sigmoid(1.0, 1.0), X, FOUR)
    assert wrong.value() == -np.inf
    with pytest.raises(NotPositiveDefiniteError, match="not positive semidefinite on these points"):
        wrong.posterior()
    assert isinstance(LaplaceLikelihood(KERNEL, X, FOUR).posterior().covariance, ClassCovariance)


def test_a_search_that_steps_on_a_bound_goes_on_along_it():
    X = np.random.default_rng(7).normal(size=(600, 2))
    # without noise, the likelihood increases up to the bound of the scale
    y = np.linalg.norm(X, axis=1) > 1.2
    kernel = 1.0 * RBF()
    objective = LaplaceLikelihood(kernel, X, y)
    best = maximise(objective, kernel.theta, kernel.bounds)
    assert best.converged
    assert best.theta[1] == kernel.bounds[1, 1]
    gradient = objective.value_and_gradient(best.theta)[1]
    # at the bound, and stationary in the other parameter
    assert abs(gradient[0]) < 0.05 < gradient[1]
    assert best.evaluations <= 12  # regression test: 30 before, on both sides of the bound


def test_where_there_is_nothing_to_see_a_search_ends_soon():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(500, 50)), rng.random(500) < 0.5
    kernel = 1.0 * RBF()  # so narrow that all points are far from each other
    best = maximise(LaplaceLikelihood(kernel, X, y), kernel.theta, kernel.bounds)
    assert best.converged
    assert best.value == pytest.approx(-500 * np.log(2.0), abs=1e-3)
    assert best.evaluations <= 6  # regression test: 20 before, with tiny steps


def test_some_observations_lead_all_of_them_nowhere_else():
    class Split(LaplaceLikelihood):
        """The optimum for all observations differs from that for some of them."""

        def value_and_gradient(self, theta=None):
            aim = np.array([2.0, 2.0] if len(self.Y) == 500 else [-3.0, 2.0])
            return -float(np.sum((theta - aim) ** 2)), -2.0 * (theta - aim)

    kernel = Bounded(1.0 * RBF(), ((0.05, 20.0), (0.05, 20.0)))
    objective = Split(kernel, np.zeros((500, 1)), np.arange(500) % 2)
    best = maximise(objective, kernel.theta, kernel.bounds)
    np.testing.assert_allclose(best.theta, [2.0, 2.0], atol=1e-4)
    search = _ThetaOptimiser(objective, kernel.bounds, 100)
    np.testing.assert_array_equal(search.follow_direction(np.zeros(2), np.ones(2)), np.ones(2))
    np.testing.assert_array_equal(
        search.follow_direction(np.zeros(2), np.array([-1.0, 2.0])), np.zeros(2)
    )
    np.testing.assert_array_equal(
        search.follow_direction(np.zeros(2), np.array([5.0, 5.0])), np.zeros(2)
    )
