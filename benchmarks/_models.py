"""Estimators that mercer and scikit-learn have in common, and their equations for reference.

`Library("mercer").SVC` and `Library("scikit-learn").SVC` are the two classes of this name.
`MODELS` says for each how it is set up, what it learns from, and what of a fit is compared:

    support vectors      decisions for the queries, with those at a tolerance of 1e-6
    ridge regression     predictions
    kernel PCA           eigenvalues
    Gaussian processes   the log marginal likelihood, which may be better
    features             ‖K − FFᵀ‖ / ‖K‖, which may be better
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from ._problems import Problem, draw, width
from ._suite import Call, Case, Contender, Suite, greatest_error, relative_error

COMPONENTS = 10
ALPHA = 1.0
MODULES = {
    "sklearn.decomposition": ("KernelPCA",),
    "sklearn.kernel_ridge": ("KernelRidge",),
    "sklearn.svm": ("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM"),
    "sklearn.gaussian_process": ("GaussianProcessRegressor", "GaussianProcessClassifier"),
    "sklearn.kernel_approximation": (
        *("Nystroem", "RBFSampler", "AdditiveChi2Sampler", "SkewedChi2Sampler"),
        "PolynomialCountSketch",
    ),
}
HOMES = {name: module for module, names in MODULES.items() for name in names}


class Library:
    """The classes of a library, by their names."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, model: str) -> Any:
        home = "mercer" if self.name == "mercer" else HOMES[model]
        return getattr(import_module(home), model)


class Model(NamedTuple):
    """How a class of both libraries is set up, and how what it found is judged."""

    make: Callable[[Any, float], Any]  # from a library and γ
    learns: str  # "labels", "values" or "points"
    found: Callable[[Any, np.ndarray], np.ndarray]  # what is compared, for the queries
    error: Callable[[np.ndarray, np.ndarray], float] = relative_error
    tolerance: float = 1e-8
    verb: str = "predict"


def _decisions(model: Any, Q: np.ndarray) -> np.ndarray:
    return np.asarray(model.decision_function(Q))


def _likelihood(model: Any, Q: np.ndarray) -> np.ndarray:
    return np.array([np.mean(model.log_marginal_likelihood_value_)])


def _distortion(model: Any, Q: np.ndarray) -> np.ndarray:
    K, F = rbf(Q, Q, model.gamma), model.transform(Q)
    return np.array([np.linalg.norm(K - F @ F.T) / np.linalg.norm(K)])


def loss(result: np.ndarray, reference: np.ndarray) -> float:
    """How much worse a log likelihood is, relative to its size; better is no error."""
    return max(0.0, float((reference[0] - result[0]) / abs(reference[0])))


def excess(result: np.ndarray, reference: np.ndarray) -> float:
    """By how much, relatively, the mean is above that of the reference; below is no error."""
    return max(0.0, float(np.mean(result) / np.mean(reference)) - 1.0)


def _process() -> Any:
    """c · Gaussian + noise, as scikit-learn spells it; mercer takes it as it is."""
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    return ConstantKernel() * RBF() + WhiteKernel()


def _latent() -> Any:
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel

    return ConstantKernel() * RBF()


DRAW = 0.3  # by which errors of one draw of features differ; `features-error` averages several
SVM = 0.02  # relative error of decisions that a tolerance of 1e-3 may leave
MODELS = {
    "SVC": Model(
        lambda k, g: k.SVC(gamma=g, decision_function_shape="ovo"),
        *("labels", _decisions, relative_error, SVM),
    ),
    "NuSVC": Model(
        lambda k, g: k.NuSVC(nu=0.3, gamma=g, decision_function_shape="ovo"),
        *("labels", _decisions, relative_error, SVM),
    ),
    "SVR": Model(
        lambda k, g: k.SVR(gamma=g), "values", lambda m, Q: m.predict(Q), relative_error, SVM
    ),
    "NuSVR": Model(
        lambda k, g: k.NuSVR(gamma=g), "values", lambda m, Q: m.predict(Q), relative_error, SVM
    ),
    "OneClassSVM": Model(
        lambda k, g: k.OneClassSVM(nu=0.1, gamma=g), "points", _decisions, relative_error, SVM
    ),
    "KernelRidge": Model(
        lambda k, g: k.KernelRidge(ALPHA, kernel="rbf", gamma=g),
        *("values", lambda m, Q: m.predict(Q)),
    ),
    "KernelPCA": Model(
        lambda k, g: k.KernelPCA(COMPONENTS, kernel="rbf", gamma=g),
        *("points", lambda m, Q: m.eigenvalues_, greatest_error, 1e-6, "transform"),
    ),
    "GaussianProcessRegressor": Model(
        lambda k, g: k.GaussianProcessRegressor(_process()), "values", _likelihood, loss, 1e-5
    ),
    "GaussianProcessClassifier": Model(
        lambda k, g: k.GaussianProcessClassifier(_latent()), "labels", _likelihood, loss, 1e-5
    ),
    "Nystroem": Model(
        lambda k, g: k.Nystroem(gamma=g, n_components=100, random_state=0),
        *("points", _distortion, excess, DRAW, "transform"),
    ),
    "RBFSampler": Model(
        lambda k, g: k.RBFSampler(gamma=g, n_components=100, random_state=0),
        *("points", _distortion, excess, DRAW, "transform"),
    ),
}


def _fitted(library: str, model: str, problem: Problem, **options: Any) -> Any:
    machine = MODELS[model].make(Library(library), width(problem.X))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a parameter of a process is on a bound
        return machine.set_params(**options).fit(problem.X, problem.y)


CHECKED = 200  # queries for which results are compared


def contender(library: str) -> Callable[..., Call]:
    """A contender: `job` is "fit", or the number of queries that a fitted model answers."""

    def ready(model: str, job: str | int, **inputs: Any) -> Call:
        problem = draw(**inputs)
        machine = _fitted(library, model, problem)  # compiles, whatever is measured
        found, Q = MODELS[model].found, problem.Q[:CHECKED]
        if job != "fit":
            verb, some = getattr(machine, MODELS[model].verb), problem.Q[: int(job)]
            judged = found(machine, Q)

            def predict() -> np.ndarray:
                verb(some)
                return judged

            return predict
        held: dict[str, Any] = {}

        def fit() -> None:
            held.clear()
            held["model"] = _fitted(library, model, problem)

        fit.found = lambda: found(held["model"], Q)  # off the clock
        return fit

    return ready


def reference(model: str, job: str | int, **inputs: Any) -> np.ndarray:
    """What scikit-learn finds; support vectors at a tolerance far below the default."""
    problem = draw(**inputs)
    exact = {"tol": 1e-6} if "SV" in model else {}
    machine = _fitted("scikit-learn", model, problem, **exact)
    return MODELS[model].found(machine, problem.Q[:CHECKED])


def case(name: str, model: str, job: str | int, inputs: dict, **options: Any) -> Case:
    """A fit, or a number of predictions, of one model on one problem."""
    rule = MODELS[model]
    return Case(name, {"model": model, "job": job, **inputs}, rule.tolerance, rule.error, **options)


CONTENDERS = {
    "mercer": Contender("mercer", contender("mercer")),
    "scikit-learn": Contender("sklearn", contender("scikit-learn")),
}


def suite(title: str, cases: Callable[[bool], list[Case]], **options: Any) -> Suite:
    return Suite(title, cases, CONTENDERS, reference, **options)


# ------------------------------------------------------------------------- equations in NumPy


def rbf(X: np.ndarray, Z: np.ndarray, gamma: float) -> np.ndarray:
    """exp(−γ‖x − z‖²), from differences."""
    from scipy.spatial.distance import cdist

    K = cdist(X, Z, "sqeuclidean")
    K *= -gamma
    return np.exp(K, out=K)


def ridge_coefficients(
    X: np.ndarray, y: np.ndarray, gamma: float, alpha: float = ALPHA
) -> np.ndarray:
    """(K + αI)⁻¹ y."""
    from scipy.linalg import solve

    K = rbf(X, X, gamma)
    K.flat[:: len(K) + 1] += alpha
    return solve(K, y, assume_a="pos", overwrite_a=True)


def centred(K: np.ndarray, means: np.ndarray) -> np.ndarray:
    """⟨φ(x) − μ, φ(xⱼ) − μ⟩ from k(x, xⱼ) and the column means of the training K."""
    return K - K.mean(axis=1, keepdims=True) - means + means.mean()


def principal_pairs(X: np.ndarray, gamma: float):
    """Leading eigenvalues, eigenvectors of the centred K, and the column means of K."""
    from scipy.sparse.linalg import eigsh

    K = rbf(X, X, gamma)
    means = K.mean(axis=0)
    values, vectors = eigsh(centred(K, means), COMPONENTS, v0=np.ones(len(K)) + X[:, 0])
    return values[::-1], vectors[:, ::-1], means
