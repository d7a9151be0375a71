"""RidgeCriterion: against leave-one-out fits, and its gradient against finite differences."""

import numpy as np
import pytest

from mercer.kernels import RBF, Linear, Periodic
from mercer.models.gp import RidgeCriterion, maximise
from mercer.solvers import ExactRidge

RNG = np.random.default_rng(0)
X = RNG.normal(size=(24, 2))
Y = np.column_stack([np.sin(2 * X[:, 0]), X[:, 1]]) + 0.3 * RNG.normal(size=(24, 2))
NOISE = {"even": 0.0, "weighted": 1.0 / RNG.integers(1, 4, 24)}


@pytest.mark.parametrize("noise", NOISE)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("criterion", ["loo", "gcv", "likelihood"])
def test_the_gradient_is_that_of_the_value(criterion, intercept, noise):
    kernel = 0.7 * RBF((1.0, 2.0)) + Linear() * Periodic(1.0, 2.0)
    objective = RidgeCriterion(
        kernel, X, Y, NOISE[noise], alpha=0.3, intercept=intercept, criterion=criterion
    )
    theta = objective.start
    value, gradient = objective.value_and_gradient(theta)
    assert value == pytest.approx(objective.value(theta), rel=1e-12)
    steps = 1e-5 * np.eye(theta.size)
    for step, slope in zip(steps, gradient, strict=True):
        difference = (objective.value(theta + step) - objective.value(theta - step)) / 2e-5
        assert slope == pytest.approx(difference, rel=2e-6, abs=1e-6)


@pytest.mark.parametrize("noise", NOISE)
@pytest.mark.parametrize("intercept", [False, True])
def test_leave_one_out_is_what_fits_without_a_point_find(intercept, noise):
    w = 1.0 / NOISE[noise] if np.any(NOISE[noise]) else np.ones(24)
    errors = np.empty_like(Y)
    for i in range(24):
        rest = np.arange(24) != i
        A, b = ExactRidge(
            RBF(), X[rest], Y[rest], w[rest], np.full(2, 0.3), intercept, solver="cholesky"
        ).solve()
        errors[i] = Y[i] - RBF()(X[[i]], X[rest]) @ A - b
    objective = RidgeCriterion(RBF(), X, Y, NOISE[noise], alpha=0.3, intercept=intercept)
    expected = np.average(errors**2, axis=0, weights=w).mean()
    assert objective.error(objective.value()) == pytest.approx(expected, rel=1e-9)


def test_gcv_is_its_formula():
    K = RBF()(X)
    H = K @ np.linalg.inv(K + 0.3 * np.eye(24))
    expected = 24 * np.sum((Y - H @ Y) ** 2) / (24 - np.trace(H)) ** 2 / 2
    objective = RidgeCriterion(RBF(), X, Y, alpha=0.3, criterion="gcv")
    assert objective.error(objective.value()) == pytest.approx(expected, rel=1e-10)


def test_the_likelihood_is_that_of_the_best_factor():
    from mercer.kernels import White
    from mercer.models.gp import MarginalLikelihood

    profile = RidgeCriterion(RBF(), X, Y[:, 0], alpha=0.3, criterion="likelihood").value()
    factors = np.linspace(0.01, 3, 300)
    values = [
        MarginalLikelihood(float(c) * (RBF() + White(0.3)), X, Y[:, 0]).value() for c in factors
    ]
    assert profile >= max(values)
    assert profile == pytest.approx(max(values), abs=1e-2)


def test_no_value_where_rounding_has_it_and_none_where_alpha_is_held():
    objective = RidgeCriterion(RBF(1e3), X, Y, alpha=1e-18)
    assert objective.value() == -np.inf
    assert objective.value_and_gradient()[1].tolist() == [0.0, 0.0]
    held = RidgeCriterion(RBF(), X, Y, alpha=0.3, free=False)
    assert held.value_and_gradient()[1].shape == (1,)
    found = maximise(held, held.start, RBF().bounds)
    assert found.converged
    assert found.value > held.value()
    with pytest.raises(ValueError, match="criterion"):
        RidgeCriterion(RBF(), X, Y, criterion="aic")
