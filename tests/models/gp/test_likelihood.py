"""Exact objectives: values from textbook formulas, gradients from finite differences."""

import tracemalloc

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import multivariate_normal
from sklearn.gaussian_process.kernels import ExpSineSquared

from mercer import MemoryBudgetError, NotPositiveDefiniteError
from mercer.kernels import (
    RBF,
    Bounded,
    Constant,
    Distance,
    Fixed,
    Linear,
    Matern,
    Periodic,
    Precomputed,
    RationalQuadratic,
    Select,
    Sigmoid,
    SklearnKernel,
    White,
)
from mercer.models.gp import LeaveOneOut, MarginalLikelihood, RidgeCriterion, maximise
from mercer.models.gp._optimise import QuadraticModel, _ThetaOptimiser
from mercer.testing._finite_differences import directional_derivative

FIRST_STEPS = ("both", "gradient", "unit")

KERNELS = [
    1.3 * RBF(0.8) + White(0.1),
    RBF((0.7, 1.5)) * RationalQuadratic(1.2) + 0.5 * Linear() + White(0.05) + 1,
    Select(Periodic(2.0), 0) * Matern(2.0, nu=2.5) + Fixed(Matern(nu=1.5)),
    Bounded(RBF(), (0.1, 10.0)) * Constant(2.0),
]


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    return X, np.column_stack([np.sin(X[:, 0]), X[:, 1]]) + 0.1 * rng.normal(size=(40, 2))


@pytest.mark.parametrize("noise", [0.05, "vector"])
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_value_is_the_normal_density(kernel, noise, data):
    X, Y = data
    noise = np.linspace(0.01, 0.3, len(X)) if noise == "vector" else noise
    C = kernel(X) + noise * np.eye(len(X))
    want = sum(multivariate_normal(cov=C).logpdf(y) for y in Y.T)
    objective = MarginalLikelihood(kernel, X, Y, noise)
    assert objective.value() == pytest.approx(want, abs=1e-8)
    assert objective.value(kernel.theta + 0.1) == pytest.approx(
        MarginalLikelihood(kernel.with_theta(kernel.theta + 0.1), X, Y, noise).value()
    )


@pytest.mark.parametrize("make", [MarginalLikelihood, LeaveOneOut])
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_gradient_is_that_of_differences(make, kernel, data):
    objective = make(kernel, *data, 0.05)
    theta = kernel.theta + 0.05
    value, gradient = objective.value_and_gradient(theta)
    assert value == objective.value(theta)
    want = [
        directional_derivative(lambda move: objective.value(theta + move), 1e-3 * e) / 1e-3
        for e in np.eye(theta.size)
    ]
    np.testing.assert_allclose(gradient, want, rtol=1e-6, atol=1e-6 * np.abs(want).max())


def test_gradient_of_several_tiles():
    rng = np.random.default_rng(0)
    X, kernel = rng.normal(size=(1100, 2)), 1.3 * RBF(0.5) + White(0.2)
    y = np.sin(3 * X[:, 0]) + rng.normal(size=1100)
    objective = MarginalLikelihood(kernel, X, y)
    _, gradient = objective.value_and_gradient()
    C = kernel(X)
    a, inverse = np.linalg.solve(C, y), np.linalg.inv(C)
    want = kernel.pullback(X, None, 0.5 * (np.outer(a, a) - inverse))
    np.testing.assert_allclose(gradient, want, rtol=1e-8)


def test_kernels_without_tiles_and_without_parameters(data):
    from sklearn.gaussian_process.kernels import ExpSineSquared

    X, Y = data
    kernel = SklearnKernel(ExpSineSquared(1.0, 3.0)) + White(0.1)
    objective = MarginalLikelihood(kernel, X[:, :1], Y)
    _, gradient = objective.value_and_gradient()
    theta = kernel.theta
    want = [
        directional_derivative(lambda move: objective.value(theta + move), 1e-3 * e) / 1e-3
        for e in np.eye(theta.size)
    ]
    np.testing.assert_allclose(gradient, want, rtol=1e-5)
    given = MarginalLikelihood(2 * Precomputed() + White(0.1), RBF()(X), Y)
    same = MarginalLikelihood(2 * RBF() + White(0.1), X, Y)
    np.testing.assert_allclose(
        given.value_and_gradient()[1], same.value_and_gradient()[1][1:], rtol=1e-10
    )
    assert MarginalLikelihood(Fixed(RBF()), X, Y, 0.1).value_and_gradient()[1].shape == (0,)


def test_leave_one_out_is_the_sum_of_what_each_point_was_predicted_to_be(data):
    X, Y = data
    kernel, noise = 1.3 * RBF(0.8) + White(0.1), np.linspace(0.01, 0.1, len(X))
    total = 0.0
    means, variances = MarginalLikelihood(kernel, X, Y, noise).leave_one_out()
    for i in range(len(X)):
        rest = np.arange(len(X)) != i
        posterior = MarginalLikelihood(kernel, X[rest], Y[rest], noise[rest]).posterior()
        mean = posterior.expansion(X[i : i + 1])[0]
        variance = posterior.covariance.diag(X[i : i + 1])[0] + noise[i]
        np.testing.assert_allclose(means[i], mean, atol=1e-9)
        assert variances[i] == pytest.approx(variance, abs=1e-9)
        total += -0.5 * np.sum((Y[i] - mean) ** 2 / variance + np.log(2 * np.pi * variance))
    objective = LeaveOneOut(kernel, X, Y, noise)
    assert objective.value() == pytest.approx(total, abs=1e-8)
    np.testing.assert_array_equal(
        objective.posterior().expansion.coefficients,
        MarginalLikelihood(kernel, X, Y, noise).posterior().expansion.coefficients,
    )


# ---------------------------------------------------------------------- singular systems


def test_without_noise_a_singular_matrix_is_refused(data):
    X = np.repeat(data[0][:5], 2, axis=0)
    Y = np.arange(10.0)
    for make in (MarginalLikelihood, LeaveOneOut):
        objective = make(RBF(), X, Y)
        assert objective.value() == -np.inf
        value, gradient = objective.value_and_gradient()
        assert value == -np.inf and np.array_equal(gradient, [0.0])
    with pytest.raises(NotPositiveDefiniteError, match=r"noise of 0 for 10 points.*add White"):
        MarginalLikelihood(RBF(), X, Y).posterior()


def test_a_kernel_that_is_not_positive_semidefinite_is_refused(data):
    X, Y = data
    for kernel in (Distance(), Sigmoid(coef0=-1.0)):  # the first has a zero diagonal
        with pytest.raises(NotPositiveDefiniteError, match=r"not positive semidefinite"):
            MarginalLikelihood(kernel, X, Y, 1e-10).posterior()


def test_jitter_is_reported(data):
    X = np.repeat(data[0][:5], 2, axis=0)
    Y = np.repeat(np.arange(5.0), 2)
    posterior = MarginalLikelihood(1e6 * RBF(), X, Y, 1e-14).posterior()
    jitter = posterior.report.certificate["jitter"]
    assert 1e-10 < jitter < 1e-6
    assert f"{jitter:.2e} was added to its diagonal" in posterior.report.message
    np.testing.assert_allclose(posterior.expansion(X)[:, 0], Y, atol=1e-4)
    assert "jitter" not in MarginalLikelihood(RBF(), X, Y, 1e-3).posterior().report.certificate


def test_bad_input(data):
    X, Y = data
    with pytest.raises(TypeError, match="needs a Kernel, got 'rbf'"):
        MarginalLikelihood("rbf", X, Y)
    with pytest.raises(ValueError, match=r"shape \(39, 2\) do not fit 40 points"):
        MarginalLikelihood(RBF(), X, Y[1:])
    with pytest.raises(ValueError, match="targets are not finite"):
        MarginalLikelihood(RBF(), X, np.full(40, np.nan))
    with pytest.raises(ValueError, match=r"noise must be a number or have shape \(40,\)"):
        MarginalLikelihood(RBF(), X, Y, np.ones(3))
    with pytest.raises(ValueError, match="noise must be finite and not negative, got -1"):
        MarginalLikelihood(RBF(), X, Y, -1.0)
    for make in (MarginalLikelihood, LeaveOneOut):
        with pytest.raises(MemoryBudgetError, match="a Gaussian process on 40 points needs"):
            make(RBF(), X, Y, max_memory=1000)
        tight = make(RBF(), X, Y, 0.1, max_memory=3 * 8 * 40**2)
        assert np.isfinite(tight.value())
        with pytest.raises(MemoryBudgetError, match="a gradient on 40 points needs"):
            tight.value_and_gradient()
    with pytest.raises(ValueError, match=r"as large as 1.0e\+200 overflow"):
        MarginalLikelihood(RBF(), X, np.full(40, 1e200))


@pytest.mark.parametrize("make", [MarginalLikelihood, LeaveOneOut])
def test_memory_is_what_the_budget_counts(make):
    from sklearn.gaussian_process.kernels import ExpSineSquared, WhiteKernel

    n = 600
    X, y = np.random.default_rng(0).normal(size=(n, 1)), np.zeros(n)
    for kernel in (1.0 * RBF() + White(), SklearnKernel(ExpSineSquared() + WhiteKernel())):
        objective = make(kernel, X, y, 0.1)
        objective.value_and_gradient()  # first-time imports and caches do not count
        tracemalloc.start()
        objective.value_and_gradient()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 1.05 * objective.workspace()


def test_the_residual_is_that_of_the_matrix_itself(data):
    X, Y = data
    kernel = RBF(3.0)
    posterior = MarginalLikelihood(kernel, X, Y, 1e-10).posterior()
    A = posterior.expansion.coefficients
    gap = Y - kernel(X) @ A - 1e-10 * A
    want = (np.linalg.norm(gap, axis=0) / np.linalg.norm(Y, axis=0)).max()
    assert want > 1e-13 and posterior.report.residual == pytest.approx(want, rel=0.9)


# ---------------------------------------------------------------------- the search


@pytest.mark.parametrize(
    "kernel",
    [1.0 * RBF() + White(), 1.0 * RBF() + 1.0 * Matern() + White(), 1.0 * RBF((1.0, 1.0))],
    ids=str,
)
def test_what_has_converged_is_flat(kernel):
    converged = 0
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(30, 2))
        y = 10.0 ** (seed - 1) * (np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=30))
        objective = MarginalLikelihood(kernel, X, y, 1e-10)
        best = maximise(objective, kernel.theta, kernel.bounds)
        _, gradient = objective.value_and_gradient(best.theta)
        left = np.clip(best.theta + gradient, *kernel.bounds.T) - best.theta
        converged += best.converged
        assert not best.converged or np.abs(left).max() <= 0.02 * np.sqrt(30)
        assert best.converged or "no increase" in best.message or "still increasing" in best.message
    assert converged >= 2


def test_a_search_that_stops_on_a_slope_has_not_converged():
    class Ledge(LeaveOneOut):  # so large an offset that steps seem to gain nothing
        def value_and_gradient(self, theta=None):
            value, gradient = super().value_and_gradient(theta)
            return 1e12 + value, gradient

    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 1))
    kernel = 1.0 * RBF() + White()
    best = maximise(Ledge(kernel, X, np.sin(3 * X)), kernel.theta, kernel.bounds)
    assert not best.converged
    assert "the objective is still increasing: its gradient in theta is" in best.message


def test_a_wrapped_kernel_has_its_derivatives_from_one_call():
    X = np.linspace(0, 3, 12)[:, None]
    V = np.random.default_rng(0).normal(size=(12, 2))
    kernel = SklearnKernel(ExpSineSquared(0.8, 1.7))
    block = kernel.linearise(X)
    np.testing.assert_allclose(block.values, kernel(X), atol=1e-14)
    steps = 1e-4 * np.eye(2)
    slopes = [
        directional_derivative(lambda t: kernel.with_theta(kernel.theta + t)(X), step) / 1e-4
        for step in steps
    ]
    np.testing.assert_allclose(block.tangents(V), [S @ V for S in slopes], atol=1e-6)
    expected = [np.sum((V @ V.T) * S) for S in slopes]
    np.testing.assert_allclose(block.pullback(V @ V.T), expected, atol=1e-6)


def test_restarts_look_behind_a_bound_once():
    X = np.array([[0.0], [1.0], [2.5], [4.0]])
    kernel = Bounded(RBF(0.55), (0.5, 0.6))  # the optimal length scale is outside of the bounds
    objective = MarginalLikelihood(kernel, X, np.sin(0.3 * X), 1e-6)
    ends = {
        first_step: maximise(objective, kernel.theta, kernel.bounds, first_step=first_step)
        for first_step in FIRST_STEPS
    }
    assert len({end.value for end in ends.values()}) == 1
    assert ends["both"].evaluations > ends["gradient"].evaluations
    with pytest.raises(ValueError, match="first_step must be"):
        maximise(objective, kernel.theta, kernel.bounds, first_step="other")


def test_a_sharp_period_keeps_no_other_parameter_from_its_optimum():
    # The curvature is 5e9 in the period and 5 in the factor.
    rng = np.random.default_rng(0)
    X = np.sort(rng.uniform(0, 300, 200))[:, None]
    y = np.sin(2 * np.pi * X[:, 0] / 1.7) + 0.05 * rng.standard_normal(200)
    for period in (Periodic(1.7), SklearnKernel(ExpSineSquared(1.0, 1.7))):
        kernel = 1.0 * period + White(0.01)
        objective = MarginalLikelihood(kernel, X, y, 1e-10)
        best = maximise(objective, kernel.theta, kernel.bounds)
        again = maximise(objective, best.theta, kernel.bounds)
        assert best.converged and again.converged
        assert best.value <= again.value < best.value + 2e-3
        _, gradient, B = objective.with_information(best.theta)
        assert QuadraticModel(kernel.bounds).step(best.theta, gradient, B)[1] < 1e-2


@pytest.mark.parametrize("kernel", [1.0 * RBF() + White(), 1.0 * RBF((1.0, 1.0)) + White()])
def test_the_optimum_is_that_of_a_plain_search(kernel):
    from scipy.optimize import minimize

    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2))  # enough points for the search to start on a quarter of them
    y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=600)
    objective = MarginalLikelihood(kernel, X, y, 1e-10)
    lines = []
    best = maximise(objective, kernel.theta, kernel.bounds, log=lines.append)
    assert best.converged and len(lines) == best.evaluations
    assert lines[0].startswith("evaluation 1: ")

    def minus(theta):
        value, gradient = objective.value_and_gradient(theta)
        return -value, -gradient

    plain = minimize(minus, kernel.theta, jac=True, method="L-BFGS-B", bounds=kernel.bounds)
    assert best.value == pytest.approx(-plain.fun, abs=1e-4)
    assert best.evaluations < plain.nfev
    assert objective.value(best.theta) == pytest.approx(best.value, abs=1e-7)


def test_an_optimum_on_a_bound_is_found_in_the_rest():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 1))
    y = 10 * np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=60)
    kernel = Bounded(1.0 * RBF(), ((0.01, 100.0), (0.5, 2.0))) + White(0.1)
    objective = MarginalLikelihood(kernel, X, y)
    best = maximise(objective, kernel.theta, kernel.bounds)
    assert best.theta[1] == kernel.bounds[1, 1]
    _, gradient = objective.value_and_gradient(best.theta)
    assert gradient[1] > 1.0  # the gradient points beyond the bound
    np.testing.assert_allclose(gradient[[0, 2]], 0.0, atol=1e-2)


def test_a_step_of_newtons_that_loses_much_costs_a_value_alone():
    class Counted(MarginalLikelihood):
        def with_information(self, theta=None, above=-np.inf):
            found = super().with_information(theta, above)
            if len(self.Y) == 600:
                seen.append((found[0], found[1].any()))
            return found

    seen = []
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2))
    y = np.sin(3 * X[:, 0]) + 0.01 * rng.normal(size=600)
    kernel = 1.0 * RBF() + 1.0 * Matern(nu=1.5) + White()
    objective = Counted(kernel, X, y, 1e-10)
    _ThetaOptimiser(objective, kernel.bounds, 1000).newton(kernel.theta, 1e-4)
    best = -np.inf
    for value, known in seen:
        assert known or value < best  # the gradient is computed at every accepted step
        best = max(best, value)
    assert not all(known for _, known in seen)


def test_a_start_that_is_singular_is_reported():
    X = np.zeros((4, 1))
    best = maximise(MarginalLikelihood(RBF(), X, np.arange(4.0)), RBF().theta, RBF().bounds)
    assert not best.converged and best.value == -np.inf
    assert best.message == "the objective is not finite at the start"


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_information_is_what_its_formula_says(kernel, data):
    X, Y = data
    objective = MarginalLikelihood(kernel, X, Y, 0.01)
    value, gradient, B = objective.with_information(kernel.theta)
    assert (value, *gradient) == (lambda v, g: (v, *g))(*objective.value_and_gradient(kernel.theta))
    same, *nothing = objective.with_information(kernel.theta, above=value)
    assert same == value and not any(part.any() for part in nothing)
    assert objective.with_information(kernel.theta, above=value - 1e-6)[1].any()
    theta, eye = kernel.theta, 1e-4 * np.eye(kernel.theta.size)
    C = np.linalg.inv(kernel(X) + 0.01 * np.eye(len(X)))
    slopes = [kernel.with_theta(theta + e)(X) - kernel.with_theta(theta - e)(X) for e in eye]
    U = [dK / 2e-4 @ C @ Y.reshape(len(X), -1) for dK in slopes]
    expected = [[0.5 * np.sum(u * (C @ v)) for v in U] for u in U]
    np.testing.assert_allclose(B, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


@pytest.mark.parametrize("width", [1.0, (1.0, 1.0, 1.0)])
def test_newton_ends_where_lbfgs_does_in_fewer_evaluations(width):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(520, 3))
    y = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.2 * rng.normal(size=520)
    kernel = 1.0 * RBF(width) + White()
    objective = MarginalLikelihood(kernel, X, y)
    found = maximise(objective, kernel.theta, kernel.bounds)
    slow = _ThetaOptimiser(objective, kernel.bounds, 1000).lbfgs(kernel.theta)
    assert found.converged and found.value > slow.value - 1e-6 * abs(slow.value)
    assert found.evaluations < 0.6 * slow.evaluations
    np.testing.assert_array_equal(
        found.theta, maximise(objective, kernel.theta, kernel.bounds).theta
    )


def test_a_noise_falls_along_a_straight_line():
    def f(theta):  # quadratic in x and in the noise itself
        x, v = theta[0], np.exp(theta[1])
        return -v - 50.0 * (x - v) ** 2

    theta, v = np.array([0.9, np.log(0.8)]), 0.8
    g = np.array([-100.0 * 0.1, v * (100.0 * 0.1 - 1.0)])
    B = 100.0 * np.array([[1.0, -v], [-v, v**2]])
    model = QuadraticModel(
        np.array([[-5.0, 5.0], [-9.0, 9.0]]), np.array([False, True]), radius=4.0
    )
    d, expected = model.step(theta, g, B)
    assert d[1] == pytest.approx(-4.0) and f(theta + d) - f(theta) == pytest.approx(
        expected, abs=1e-9
    )
    straight, short = model.bfgs_corrected(B), np.array([0.1, -0.3])
    x, w = theta[0] + 0.1, v * np.exp(-0.3)
    slopes = np.array([-100.0 * (x - w), w * (100.0 * (x - w) - 1.0)])
    model.update(short, g, slopes, f(theta + short) - f(theta), 1.0)
    ((e, change),) = model.steps
    np.testing.assert_allclose(change, straight @ e, atol=1e-9)  # as predicted by the model


@pytest.mark.parametrize("seed", range(10))
def test_steps_are_the_best_within_the_box(seed):
    rng = np.random.default_rng(seed)
    R, g = rng.normal(size=(5, 5)), rng.normal(size=5)
    bounds = np.stack([-rng.random(5) * (rng.random(5) < 0.8), rng.random(5)], axis=1)
    H = R @ R.T + 0.1 * np.eye(5)
    d, gain = QuadraticModel(bounds).step(np.zeros(5), g, H)
    best = minimize(lambda d: 0.5 * d @ H @ d - g @ d, np.zeros(5), bounds=bounds, tol=1e-14)
    assert np.all(d >= bounds[:, 0]) and np.all(d <= bounds[:, 1])
    assert gain == pytest.approx(-best.fun, rel=1e-6)


def test_criteria_of_one_point_with_an_intercept():
    data = np.ones((1, 1)), np.ones((1, 1)), 0.0, None
    criterion = RidgeCriterion(RBF(), *data, alpha=1.0, free=False, intercept=True, criterion="loo")
    assert criterion.value() == -np.inf  # the residual of the only point is 0 / 0
