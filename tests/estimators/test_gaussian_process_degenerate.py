"""Gaussian processes on degenerate data: collinear columns, repeated points, no noise."""

import warnings

import networkx as nx
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from mercer import GaussianProcessClassifier, GaussianProcessRegressor
from mercer.estimators import ReparametrisedObjective, ThetaMap
from mercer.kernels import RBF, Linear, Matern, Normalized, RandomWalk, White
from mercer.models.gp import (
    InducingBound,
    LaplaceLikelihood,
    LatentBound,
    LatentLikelihood,
    LeaveOneOut,
    MarginalLikelihood,
    RidgeCriterion,
    StochasticLikelihood,
    maximise,
)
from mercer.models.kernel_learning import TargetAlignment

SOLVERS = ["cholesky", "nystroem", "cg"]


def collinear(n, more, seed=0):
    """Return points whose last columns are linear in the first two, and targets without noise."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, 2))
    return np.column_stack([A, A @ rng.normal(size=(2, more))]), np.sin(A[:, 0]) + A[:, 1]


def naval(n):
    """Return a table like UCI naval: a few levels per column, collinear columns, and constants."""
    rng = np.random.default_rng(1)
    level, decay = 3.0 * rng.integers(1, 10, size=n), rng.integers(0, 26, size=n) / 1000 + 0.975
    columns = [level, 100 * level**3, 7 * level, 7 * level, np.full(n, 288.0), 500 + 20 * level]
    X = np.column_stack([*columns, np.full(n, 0.998), level / 10 + decay, decay])
    return X, decay**2 + level / 1000


def degenerate(n):
    rng = np.random.default_rng(2)
    A = rng.normal(size=(n, 2))
    twice = np.repeat(A[: n // 2], 2, axis=0)
    X, y = naval(n)
    return {
        "collinear": collinear(n, 3),
        "noise-free": (A, np.sin(2 * A[:, 0])),
        "repeated": (twice, np.sin(twice[:, 0]) + 0.1 * rng.normal(size=len(twice))),
        "repeated, noise-free": (twice, np.sin(twice[:, 0])),
        "constant columns": (np.column_stack([A, np.full((n, 2), 288.0)]), A[:, 0]),
        "constant targets": (A, np.full(n, 3.0)),
        "zero targets": (A, np.zeros(n)),
        "equal points": (np.ones((n, 3)), A[:, 0]),
        "naval": (X, y),
        "naval, scaled": ((X - X.mean(0)) / np.where(X.std(0) > 0, X.std(0), 1.0), y),
        "large": (1e8 * A, 1e6 * A[:, 0]),
        "small": (1e-8 * A, 1e-6 * A[:, 0]),
    }


def fit_with_convergence_warnings(model, X, y):
    """Fit a model; every warning other than a ConvergenceWarning is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y)


def test_inducing_points_on_collinear_columns_with_a_length_scale_each():
    X, y = collinear(600, 6)
    kernel = 1.0 * RBF([1.0] * 8) + White(0.1)
    model = GaussianProcessRegressor(kernel, solver="nystroem", rank=50)
    fit_with_convergence_warnings(model, X, y)
    assert np.abs(model.predict(X) - y).max() < 0.01
    exact = MarginalLikelihood(kernel, X, y).value(model.kernel_.theta)
    assert model.log_marginal_likelihood_value_ <= exact + 1e-6 * abs(exact)


# One kernel for each data set and solver; `pytest -m long` runs the other one.
COMBINATIONS = [
    pytest.param(name, solver, matern, marks=[pytest.mark.long] * ((i + j + matern) % 2))
    for i, name in enumerate(degenerate(40))
    for j, solver in enumerate(SOLVERS)
    for matern in (False, True)
]


@pytest.mark.parametrize(("name", "solver", "matern"), COMBINATIONS)
def test_degenerate_data(name, solver, matern):
    X, y = degenerate(40)[name]
    scales = [1.0] * X.shape[1]
    kernel = Matern(scales, nu=2.5) if matern else RBF(scales)
    model = GaussianProcessRegressor(
        1.0 * kernel + White(0.1), solver=solver, rank=20, normalize_y=matern
    )
    fit_with_convergence_warnings(model, X, y)
    mean, std = model.predict(X, return_std=True)
    assert np.isfinite(mean).all() and np.isfinite(std).all()
    assert np.isfinite(model.log_marginal_likelihood_value_)


@pytest.mark.parametrize("name", degenerate(40))
def test_all_points_as_inducing_points_give_the_exact_likelihood(name):
    X, y = degenerate(40)[name]
    kernel = 1.0 * RBF([1.0] * X.shape[1]) + White(0.1)
    exact = MarginalLikelihood(kernel, X, y)
    bound = InducingBound(kernel, X, y, rank=40, landmarks=X)
    for theta in (kernel.theta, kernel.theta + 0.5):
        assert bound.value(theta) == pytest.approx(exact.value(theta), rel=1e-6, abs=1e-6)


def test_a_likelihood_without_curvature():
    """Equal points: no parameter changes the likelihood, so the second derivatives vanish."""
    y = np.random.default_rng(0).normal(size=40)
    model = GaussianProcessRegressor(1.0 * RBF("median") + Linear(), normalize_y=True)
    fit_with_convergence_warnings(model, np.ones((40, 3)), y)
    assert np.isfinite(model.predict(np.ones((2, 3)))).all()


@pytest.mark.parametrize("name", degenerate(40))
def test_classifiers_on_degenerate_data(name):
    X, y = degenerate(40)[name]
    labels = y > np.median(y)
    if np.unique(labels).size < 2:
        labels = np.arange(len(y)) % 2
    model = GaussianProcessClassifier(1.0 * RBF([1.0] * X.shape[1]))
    fit_with_convergence_warnings(model, X, labels)
    assert np.isfinite(model.predict_proba(X)).all()


# ---------------------------------------------------------------------- capabilities


def objectives():
    X, y = np.linspace(0, 1, 12)[:, None], np.linspace(-1, 1, 12)
    kernel = 1.0 * RBF() + White(0.1)
    found = [
        *(kind(kernel, X, y) for kind in (MarginalLikelihood, LeaveOneOut, RidgeCriterion)),
        *(kind(kernel, X, y, rank=5) for kind in (InducingBound, StochasticLikelihood)),
        LaplaceLikelihood(1.0 * RBF(), X, (y > 0).astype(float)),
        TargetAlignment(kernel, X, y[:, None]),
    ]
    spelled = [
        ReparametrisedObjective(one, ThetaMap(one.kernel)) for one in (*found[:2], *found[3:6])
    ]
    return [*found, *spelled]


@pytest.mark.parametrize("objective", objectives(), ids=lambda o: type(o).__name__)
def test_an_objective_has_the_methods_that_its_capabilities_list(objective):
    spelled = isinstance(objective, ReparametrisedObjective)
    theta = objective.translation.theta if spelled else objective.start
    known = objective.capabilities
    value, gradient = objective.value_and_gradient(theta)
    assert np.isfinite(value) and gradient.shape == theta.shape
    if known.subset:
        assert len(objective.subset(np.arange(8)).X) == 8
        assert objective.subset(np.arange(8)).capabilities == known
    if known.standard_error:
        assert objective.standard_error(theta) >= 0.0
    if known.information:
        assert objective.noise_mask.shape == theta.shape
        same, _, B = objective.with_information(theta)
        assert same == value and B.shape == 2 * theta.shape
    assert known.information or not known.cheap_information


@pytest.mark.parametrize("kind", [LatentLikelihood, LatentBound])
def test_objectives_in_points_have_no_optional_methods(kind):
    assert not any(vars(kind.capabilities).values())


def test_a_search_calls_no_method_that_the_capabilities_do_not_list():
    class Stalled:
        """A likelihood whose gradient is wrong, so that L-BFGS stops without convergence."""

        X = np.zeros((3, 1))
        capabilities = LatentLikelihood.capabilities

        def value_and_gradient(self, theta):
            return float(theta.sum()), -np.ones(1)

        def with_information(self, theta, above):
            raise AssertionError("not listed in the capabilities")

        standard_error = subset = noise_mask = with_information

    found = maximise(Stalled(), np.zeros(1), np.array([[-5.0, 5.0]]))
    assert not found.converged


@pytest.mark.parametrize("kind", ["exponential", "geometric"])
def test_a_search_avoids_parameters_at_which_the_kernel_has_no_value(kind):
    graphs = [nx.gnp_random_graph(8, 0.5, seed=i) for i in range(12)]
    y = np.array([float(graph.number_of_edges()) for graph in graphs])
    kernel = Normalized(RandomWalk(decay=0.01, kind=kind)) + White(0.1)
    objective = MarginalLikelihood(kernel, graphs, (y - y.mean())[:, None])
    theta = kernel.theta.copy()
    theta[0] = np.log(1e5)  # the upper bound of decay, where the series diverges or overflows
    assert objective.value(theta) == -np.inf
    assert objective.value_and_gradient(theta)[0] == -np.inf
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = GaussianProcessRegressor(kernel, normalize_y=True).fit(graphs, y)
    assert np.isfinite(model.log_marginal_likelihood_value_)
