"""Fits and predictions that are exact on both sides: ridge regression, and ten components of PCA.

`fit`: 5 000 points.  `predict`: 10 000 queries on 10 000 points, against the limit too.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from . import _models
from ._limit import Limit
from ._problems import POINTS, VALUES, draw, family, title, width
from ._suite import Call, Case, Contender, Suite, error_up_to_sign, relative_error

PROBES = 200  # queries that the reference answers
WORDS = {"ridge": ("KernelRidge", "predict"), "pca": ("KernelPCA", "transform")}


def _estimator(library: str, model: str, gamma: float) -> Any:
    k = _models.Library(library)
    if model == "ridge":
        return k.KernelRidge(alpha=_models.ALPHA, kernel="rbf", gamma=gamma)
    options = {"kernel": "rbf", "gamma": gamma, "eigen_solver": "arpack", "random_state": 0}
    return k.KernelPCA(_models.COMPONENTS, **options)


def fitting(library: str, model: str, **inputs: Any) -> Call:
    X, y, *_ = draw(**inputs)
    result = "dual_coef_" if model == "ridge" else "eigenvalues_"
    return lambda: getattr(_estimator(library, model, width(X)).fit(X, y), result)


def solution(model: str, **inputs: Any) -> np.ndarray:
    """The coefficients (K + αI)⁻¹ y, or the leading eigenvalues of the centred K."""
    X, y, *_ = draw(**inputs)
    if model == "ridge":
        return _models.ridge_coefficients(X, y, width(X))
    return _models.principal_pairs(X, width(X))[0]


def predicting(library: str, model: str, **inputs: Any) -> Call:
    X, y, Q, _ = draw(**inputs)
    machine = _estimator(library, model, width(X)).fit(X, y)
    verb = getattr(machine, WORDS[model][1])
    return lambda: verb(Q)


def limit(model: str, **inputs: Any) -> Call:
    X, _, Q, _ = draw(**inputs)
    return Limit(Q, X)


def predictions(model: str, **inputs: Any) -> np.ndarray:
    """f(q) = Σᵢ αᵢ k(xᵢ, q), or the centred ⟨φ(q) − μ, w_c⟩ of PCA, for random queries."""
    X, y, Q, _ = draw(**inputs)
    probes = np.random.default_rng(2).choice(len(Q), PROBES, replace=False)
    K = _models.rbf(Q[probes], X, width(X))
    if model == "ridge":
        answers = K @ _models.ridge_coefficients(X, y, width(X))
    else:
        values, vectors, means = _models.principal_pairs(X, width(X))
        answers = _models.centred(K, means) @ (vectors / np.sqrt(values))
    result = np.full((len(Q), *answers.shape[1:]), np.nan)
    result[probes] = answers
    return result


def cases(verb: str, n: int, small: int, quick: bool) -> list[Case]:
    """Both models on their families; eigenvectors are compared up to sign."""
    n = small if quick else n
    found = []
    for model, members in (("ridge", VALUES), ("pca", POINTS)):
        what = f"{WORDS[model][0]}.{verb or WORDS[model][1]}"
        signs = error_up_to_sign if model == "pca" and not verb else relative_error
        for inputs in family(members, quick, n=n):
            found.append(
                Case(
                    f"{what} {title(inputs)}",
                    {"model": model, **inputs},
                    error=signs,
                    family=f"`{what}`, {n} points" + ("" if verb else ", as many queries or less"),
                )
            )
    return found


SUITES = {
    "fit": Suite(
        "exact fits",
        partial(cases, "fit", 5000, 1500),
        {
            "mercer": Contender("mercer", partial(fitting, "mercer")),
            "scikit-learn": Contender("sklearn", partial(fitting, "scikit-learn")),
        },
        solution,
    ),
    "predict": Suite(
        "predictions of exact fits",
        partial(cases, "", 10_000, 2000),
        {
            "mercer": Contender("mercer", partial(predicting, "mercer")),
            "scikit-learn": Contender("sklearn", partial(predicting, "scikit-learn")),
            "limit": Contender("numpy", limit),
        },
        predictions,
    ),
}
