"""The estimators that mercer and scikit-learn share, and reference solutions in NumPy.

`Library("mercer").SVC` and `Library("scikit-learn").SVC` are the two classes of that name.
`MODELS` states for each class how it is constructed, which targets it needs, and which result of
a fit is compared:

    support vector machines   decision values (or predictions) for the queries, against a
                              reference with tol=1e-6
    kernel ridge regression   predictions
    kernel PCA                eigenvalues
    Gaussian processes        log marginal likelihood; a better one is accepted
    feature maps              ‖K − FFᵀ‖ / ‖K‖; a smaller one is accepted
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from ._problems import Problem, default_gamma, load_problem
from ._suite import Call, Case, Contender, Suite, max_relative_error, relative_error

COMPONENTS = 10
ALPHA = 1.0
SKLEARN_CLASSES = {
    "sklearn.decomposition": ("KernelPCA",),
    "sklearn.kernel_ridge": ("KernelRidge",),
    "sklearn.svm": ("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM"),
    "sklearn.gaussian_process": ("GaussianProcessRegressor", "GaussianProcessClassifier"),
    "sklearn.kernel_approximation": (
        *("Nystroem", "RBFSampler", "AdditiveChi2Sampler", "SkewedChi2Sampler"),
        "PolynomialCountSketch",
    ),
}
# The module of scikit-learn in which each class is found.
SKLEARN_MODULE = {name: module for module, names in SKLEARN_CLASSES.items() for name in names}


class Library:
    """Access to the classes of a library as attributes."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, model: str) -> Any:
        module = "mercer" if self.name == "mercer" else SKLEARN_MODULE[model]
        return getattr(import_module(module), model)


class Model(NamedTuple):
    """How to construct a class of both libraries, and how to compare its results."""

    make: Callable[[Any, float], Any]  # construct the estimator from (library, γ)
    targets: str  # what it is fitted to: "labels", "values" or "points" (no targets)
    compared_result: Callable[[Any, np.ndarray], np.ndarray]  # of (fitted estimator, queries)
    error: Callable[[np.ndarray, np.ndarray], float] = relative_error
    tolerance: float = 1e-8
    predict_method: str = "predict"


def _decision_values(model: Any, Q: np.ndarray) -> np.ndarray:
    return np.asarray(model.decision_function(Q))


def _likelihood(model: Any, Q: np.ndarray) -> np.ndarray:
    return np.array([np.mean(model.log_marginal_likelihood_value_)])


def _feature_error(model: Any, Q: np.ndarray) -> np.ndarray:
    K, F = rbf(Q, Q, model.gamma), model.transform(Q)
    return np.array([np.linalg.norm(K - F @ F.T) / np.linalg.norm(K)])


def likelihood_shortfall(result: np.ndarray, reference: np.ndarray) -> float:
    """Return the relative amount by which a log likelihood is worse; 0 if it is better."""
    return max(0.0, float((reference[0] - result[0]) / abs(reference[0])))


def relative_excess(result: np.ndarray, reference: np.ndarray) -> float:
    """Return the relative amount by which the mean exceeds the reference's; 0 if it is below."""
    return max(0.0, float(np.mean(result) / np.mean(reference)) - 1.0)


def _regression_prior() -> Any:
    """Return the kernel c · RBF + White as a scikit-learn kernel, which mercer accepts too."""
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    return ConstantKernel() * RBF() + WhiteKernel()


def _classification_prior() -> Any:
    """Return the kernel c · RBF as a scikit-learn kernel, which mercer accepts too."""
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel

    return ConstantKernel() * RBF()


# Relative difference of errors that the random choice of features causes; the suite
# `features-error` averages over several seeds instead.
FEATURES_TOLERANCE = 0.3
SVM_TOLERANCE = 0.02  # relative error of decision values that a solver with tol=1e-3 may have
MODELS = {
    "SVC": Model(
        lambda k, g: k.SVC(gamma=g, decision_function_shape="ovo"),
        *("labels", _decision_values, relative_error, SVM_TOLERANCE),
    ),
    "NuSVC": Model(
        lambda k, g: k.NuSVC(nu=0.3, gamma=g, decision_function_shape="ovo"),
        *("labels", _decision_values, relative_error, SVM_TOLERANCE),
    ),
    "SVR": Model(
        lambda k, g: k.SVR(gamma=g),
        "values",
        lambda m, Q: m.predict(Q),
        relative_error,
        SVM_TOLERANCE,
    ),
    "NuSVR": Model(
        lambda k, g: k.NuSVR(gamma=g),
        "values",
        lambda m, Q: m.predict(Q),
        relative_error,
        SVM_TOLERANCE,
    ),
    "OneClassSVM": Model(
        lambda k, g: k.OneClassSVM(nu=0.1, gamma=g),
        "points",
        _decision_values,
        relative_error,
        SVM_TOLERANCE,
    ),
    "KernelRidge": Model(
        lambda k, g: k.KernelRidge(ALPHA, kernel="rbf", gamma=g),
        *("values", lambda m, Q: m.predict(Q)),
    ),
    "KernelPCA": Model(
        lambda k, g: k.KernelPCA(COMPONENTS, kernel="rbf", gamma=g),
        *("points", lambda m, Q: m.eigenvalues_, max_relative_error, 1e-6, "transform"),
    ),
    "GaussianProcessRegressor": Model(
        lambda k, g: k.GaussianProcessRegressor(_regression_prior()),
        "values",
        _likelihood,
        likelihood_shortfall,
        1e-5,
    ),
    "GaussianProcessClassifier": Model(
        lambda k, g: k.GaussianProcessClassifier(_classification_prior()),
        "labels",
        _likelihood,
        likelihood_shortfall,
        1e-5,
    ),
    "Nystroem": Model(
        lambda k, g: k.Nystroem(gamma=g, n_components=100, random_state=0),
        *("points", _feature_error, relative_excess, FEATURES_TOLERANCE, "transform"),
    ),
    "RBFSampler": Model(
        lambda k, g: k.RBFSampler(gamma=g, n_components=100, random_state=0),
        *("points", _feature_error, relative_excess, FEATURES_TOLERANCE, "transform"),
    ),
}


def _fit(library: str, model: str, problem: Problem, **options: Any) -> Any:
    estimator = MODELS[model].make(Library(library), default_gamma(problem.X))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # kernel parameters of a Gaussian process at a bound
        return estimator.set_params(**options).fit(problem.X, problem.y)


N_CHECKED_QUERIES = 200  # number of queries for which results are compared


def make_contender(library: str) -> Callable[..., Call]:
    """Return the `make` function of a contender.

    `job` is "fit", or the number of queries to predict with a fitted model.
    """

    def prepare(model: str, job: str | int, **inputs: Any) -> Call:
        problem = load_problem(**inputs)
        estimator = _fit(library, model, problem)  # also compiles, before anything is timed
        compared_result, Q = MODELS[model].compared_result, problem.Q[:N_CHECKED_QUERIES]
        if job != "fit":
            predict_method, queries = (
                getattr(estimator, MODELS[model].predict_method),
                problem.Q[: int(job)],
            )
            result = compared_result(estimator, Q)

            def predict() -> np.ndarray:
                predict_method(queries)
                return result

            return predict
        state: dict[str, Any] = {}

        def fit() -> None:
            state.clear()
            state["model"] = _fit(library, model, problem)

        fit.untimed_result = lambda: compared_result(state["model"], Q)
        return fit

    return prepare


def reference(model: str, job: str | int, **inputs: Any) -> np.ndarray:
    """Return the result of scikit-learn; SVMs are solved with tol=1e-6 instead of the default."""
    problem = load_problem(**inputs)
    options = {"tol": 1e-6} if "SV" in model else {}
    estimator = _fit("scikit-learn", model, problem, **options)
    return MODELS[model].compared_result(estimator, problem.Q[:N_CHECKED_QUERIES])


def make_case(name: str, model: str, job: str | int, inputs: dict, **options: Any) -> Case:
    """Return the case of a fit, or of a number of predictions, of one model on one problem."""
    spec = MODELS[model]
    return Case(name, {"model": model, "job": job, **inputs}, spec.tolerance, spec.error, **options)


CONTENDERS = {
    "mercer": Contender("mercer", make_contender("mercer")),
    "scikit-learn": Contender("sklearn", make_contender("scikit-learn")),
}


def make_suite(title: str, cases: Callable[[bool], list[Case]], **options: Any) -> Suite:
    return Suite(title, cases, CONTENDERS, reference, **options)


# ----------------------------------------------------------------- reference solutions in NumPy


def rbf(X: np.ndarray, Z: np.ndarray, gamma: float) -> np.ndarray:
    """Return exp(−γ‖x − z‖²), computed from the differences x − z."""
    from scipy.spatial.distance import cdist

    K = cdist(X, Z, "sqeuclidean")
    K *= -gamma
    return np.exp(K, out=K)


def ridge_coefficients(
    X: np.ndarray, y: np.ndarray, gamma: float, alpha: float = ALPHA
) -> np.ndarray:
    """Return (K + αI)⁻¹ y."""
    from scipy.linalg import solve

    K = rbf(X, X, gamma)
    K.flat[:: len(K) + 1] += alpha
    return solve(K, y, assume_a="pos", overwrite_a=True)


def centred(K: np.ndarray, means: np.ndarray) -> np.ndarray:
    """Return ⟨φ(x) − μ, φ(xⱼ) − μ⟩ from k(x, xⱼ) and the column means of the training K."""
    return K - K.mean(axis=1, keepdims=True) - means + means.mean()


def leading_eigenpairs(X: np.ndarray, gamma: float):
    """Return leading eigenvalues and eigenvectors of the centred K, and the column means of K."""
    from scipy.sparse.linalg import eigsh

    K = rbf(X, X, gamma)
    means = K.mean(axis=0)
    values, vectors = eigsh(centred(K, means), COMPONENTS, v0=np.ones(len(K)) + X[:, 0])
    return values[::-1], vectors[:, ::-1], means
