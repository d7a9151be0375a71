"""Parameters have the same meaning in every estimator: solver, landmarks, random_state, n_jobs."""

import inspect
import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator, is_classifier
from sklearn.utils._param_validation import InvalidParameterError

import mercer.estimators
from mercer import ParzenDensity, ProbabilisticPCA
from mercer.solvers import (
    MAX_EXACT_POINTS,
    BlockSMO,
    BoxInterior,
    Cholesky,
    DenseEigen,
    GradientDescent,
    Lloyd,
    Newton,
    NormPenaltySolver,
    Status,
)

CLASSES = {
    name: model
    for name in mercer.estimators.__all__
    if inspect.isclass(model := getattr(mercer.estimators, name))
    and issubclass(model, BaseEstimator)
}
SOLVERS = {
    name: word
    for name, model in CLASSES.items()
    for word in ("solver", "eigen_solver")
    if word in inspect.signature(model).parameters
    # Both solvers of this classifier look for a local minimum, so that neither is exact.
    and name != "SparseKernelClassifier"
}
LANDMARKED = [n for n, m in CLASSES.items() if "landmarks" in inspect.signature(m).parameters]
ALONE = (ParzenDensity, ProbabilisticPCA)  # these have no n_jobs
OBJECTS = {
    "KernelRidge": [Cholesky()],
    "KernelPCA": [DenseEigen()],
    "KernelKMeans": [Lloyd(8, n_init=10)],
    "KernelLogisticRegression": [Newton(), GradientDescent(1e-8)],
    "KernelLogisticRegressionCV": [Newton()],
    "KernelMachineRegressor": [NormPenaltySolver()],
    "KernelMachineClassifier": [NormPenaltySolver()],
    **{name: [BlockSMO(1e-6), BoxInterior(1e-6)] for name in ("SVC", "SVR", "NuSVR")},
    **{name: [BlockSMO(1e-6)] for name in ("NuSVC", "OneClassSVM")},
}
# Names that are older than "exact".
SYNONYMS = {
    "GaussianProcessRegressor": "cholesky",
    "KernelLogisticRegression": "newton",
    "KernelLogisticRegressionCV": "newton",
    "KernelPCA": "dense",
    "KernelRidge": "cholesky",
    **dict.fromkeys(("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM"), "smo"),
}

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 3))
y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=60)


@pytest.fixture
def many(monkeypatch):
    """Let 60 points count as many."""
    for name in MAX_EXACT_POINTS:
        monkeypatch.setitem(MAX_EXACT_POINTS, name, 10)


def points(model):
    """Return X: nonnegative, or on a curve, if the model requires it."""
    name = type(model).__name__
    if "GPLVM" in name:  # three-dimensional noise has no latent structure
        return np.column_stack([np.sin(X[:, 0]), np.cos(X[:, 0]), X[:, 0]]) + 0.01 * X
    return np.abs(X) if "Chi2" in name else X


def fitted(name, **options):
    model = CLASSES[name](**options)
    if "nu" in model.get_params():
        model.set_params(nu=0.2)
    if name == "Nystroem":
        model.set_params(n_components=20)
    return model.fit(points(model), (y > 0).astype(int) if is_classifier(model) else y)


def values(model):
    for method in ("decision_function", "predict", "transform"):
        if hasattr(model, method):
            return np.asarray(getattr(model, method)(points(model)))
    return model.score_samples(X)


@pytest.mark.parametrize("name", SOLVERS)
def test_exact_is_exact(name, many):
    model = fitted(name, **{SOLVERS[name]: "exact"})  # and without a warning
    assert model.report_.status is not Status.APPROXIMATE
    if name in SYNONYMS:
        same = fitted(name, **{SOLVERS[name]: SYNONYMS[name]})
        np.testing.assert_allclose(values(model), values(same), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", SOLVERS)
def test_auto_is_exact_or_warns(name, many):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", UserWarning)
        model = fitted(name)
    assert (model.report_.status is Status.APPROXIMATE) == bool(said)


@pytest.mark.parametrize(("name", "solver"), [(n, s) for n, all in OBJECTS.items() for s in all])
def test_a_solver_is_taken_as_it_is(name, solver):
    options = {"kernel": "linear"} if isinstance(solver, BoxInterior) else {}
    options |= {"tol": 1e-6} if "SV" in name else {}
    model = fitted(name, **{SOLVERS[name]: solver}, **options)
    exact = fitted(name, **{SOLVERS[name]: "exact"}, **options)
    assert getattr(model, "solver_", solver) is solver
    np.testing.assert_allclose(values(model), values(exact), rtol=1e-3, atol=1e-3)


def test_every_family_of_solvers_has_objects_or_says_why_not():
    # These search over many alphas or theta, so that they have no solver of a single problem.
    searches = {"KernelFisherDiscriminant", "KernelRidgeCV", "GaussianProcessRegressor"}
    searches |= {"RFMClassifier", "RFMRegressor"}
    direct = {"KernelCCA", "KernelPLS"}  # one decomposition, with the parameters of the estimator
    networks = {"Autoencoder"}  # the options of its solvers are parameters of the estimator
    assert SOLVERS.keys() - OBJECTS.keys() == searches | direct | networks


@pytest.mark.parametrize("name", LANDMARKED)
def test_landmarks_are_checked_and_drawn_by_a_seed(name):
    assert "random_state" in inspect.signature(CLASSES[name]).parameters
    with pytest.raises(InvalidParameterError, match="The 'landmarks' parameter"):
        fitted(name, landmarks="nearest")
    options = {"kernel": "rbf", "landmarks": "uniform"}
    if name == "Nystroem":  # its landmarks are its features
        options |= {"n_components": 10}
    else:
        options |= {SOLVERS[name]: "nystroem", "rank": 10}
    if name == "GaussianProcessRegressor":
        options |= {"optimizer": None, "alpha": 1.0}
    first, again, other = (
        values(fitted(name, random_state=seed, **options)) for seed in (1, np.int64(1), 2)
    )
    assert np.array_equal(first, again) and not np.array_equal(first, other)


@pytest.mark.parametrize("name", [n for n, m in CLASSES.items() if m not in ALONE])
def test_threads_change_nothing(name):
    assert np.array_equal(*(values(fitted(name, n_jobs=jobs)) for jobs in (1, -1)))
    with pytest.raises(ValueError, match="n_jobs == 0 is not allowed"):
        fitted(name, n_jobs=0)
    with pytest.raises(InvalidParameterError, match="The 'n_jobs' parameter"):
        fitted(name, n_jobs="all")
