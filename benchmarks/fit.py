"""Exact fits and predictions: kernel ridge regression, and ten components of kernel PCA.

`fit`: 5 000 points.  `predict`: 10 000 queries on 10 000 points, also compared with the limit.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from . import _models
from ._limit import Limit
from ._problems import POINTS, VALUES, default_gamma, describe, load_problem, problem_family
from ._suite import Call, Case, Contender, Suite, error_up_to_sign, relative_error

N_CHECKED_QUERIES = 200  # queries for which the reference is computed
METHODS = {"ridge": ("KernelRidge", "predict"), "pca": ("KernelPCA", "transform")}


def _estimator(library: str, model: str, gamma: float) -> Any:
    classes = _models.Library(library)
    if model == "ridge":
        return classes.KernelRidge(alpha=_models.ALPHA, kernel="rbf", gamma=gamma)
    options = {"kernel": "rbf", "gamma": gamma, "eigen_solver": "arpack", "random_state": 0}
    return classes.KernelPCA(_models.COMPONENTS, **options)


def make_fit(library: str, model: str, **inputs: Any) -> Call:
    """Return a call that fits and returns the coefficients or the eigenvalues."""
    X, y, *_ = load_problem(**inputs)
    result = "dual_coef_" if model == "ridge" else "eigenvalues_"
    return lambda: getattr(_estimator(library, model, default_gamma(X)).fit(X, y), result)


def exact_solution(model: str, **inputs: Any) -> np.ndarray:
    """Return the coefficients (K + αI)⁻¹ y, or the leading eigenvalues of the centred K."""
    X, y, *_ = load_problem(**inputs)
    if model == "ridge":
        return _models.ridge_coefficients(X, y, default_gamma(X))
    return _models.leading_eigenpairs(X, default_gamma(X))[0]


def make_prediction(library: str, model: str, **inputs: Any) -> Call:
    """Return a call that predicts (or transforms) the queries with a fitted model."""
    X, y, Q, _ = load_problem(**inputs)
    fitted = _estimator(library, model, default_gamma(X)).fit(X, y)
    method = getattr(fitted, METHODS[model][1])
    return lambda: method(Q)


def limit(model: str, **inputs: Any) -> Call:
    """Return the lower bound on the time of k(Q, X) @ V."""
    X, _, Q, _ = load_problem(**inputs)
    return Limit(Q, X)


def exact_predictions(model: str, **inputs: Any) -> np.ndarray:
    """Return f(q) = Σᵢ αᵢ k(xᵢ, q), or the PCA scores ⟨φ(q) − μ, w_c⟩, for random queries."""
    X, y, Q, _ = load_problem(**inputs)
    checked = np.random.default_rng(2).choice(len(Q), N_CHECKED_QUERIES, replace=False)
    K = _models.rbf(Q[checked], X, default_gamma(X))
    if model == "ridge":
        predicted = K @ _models.ridge_coefficients(X, y, default_gamma(X))
    else:
        values, vectors, means = _models.leading_eigenpairs(X, default_gamma(X))
        predicted = _models.centred(K, means) @ (vectors / np.sqrt(values))
    result = np.full((len(Q), *predicted.shape[1:]), np.nan)
    result[checked] = predicted
    return result


def cases(method: str, n: int, small: int, quick: bool) -> list[Case]:
    """Return the cases of both models; columns of PCA scores are compared up to sign."""
    n = small if quick else n
    result = []
    for model, problems in (("ridge", VALUES), ("pca", POINTS)):
        name = f"{METHODS[model][0]}.{method or METHODS[model][1]}"
        error = error_up_to_sign if model == "pca" and not method else relative_error
        for inputs in problem_family(problems, quick, n=n):
            result.append(
                Case(
                    f"{name} {describe(inputs)}",
                    {"model": model, **inputs},
                    error=error,
                    family=f"`{name}`, {n} points" + ("" if method else ", up to as many queries"),
                )
            )
    return result


SUITES = {
    "fit": Suite(
        "exact fits",
        partial(cases, "fit", 5000, 1500),
        {
            "mercer": Contender("mercer", partial(make_fit, "mercer")),
            "scikit-learn": Contender("sklearn", partial(make_fit, "scikit-learn")),
        },
        exact_solution,
    ),
    "predict": Suite(
        "predictions of exact fits",
        partial(cases, "", 10_000, 2000),
        {
            "mercer": Contender("mercer", partial(make_prediction, "mercer")),
            "scikit-learn": Contender("sklearn", partial(make_prediction, "scikit-learn")),
            "limit": Contender("numpy", limit),
        },
        exact_predictions,
    ),
}
