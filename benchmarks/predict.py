"""Prediction by fitted models: ridge regression and PCA; the fit itself is not timed."""

from __future__ import annotations

from functools import partial

import numpy as np

from . import _models
from ._limit import Limit
from ._suite import Call, Case, Contender, Suite, error_up_to_sign

PROBES = 200  # queries that the reference answers


def _queries(n: int, d: int, seed: int) -> np.ndarray:
    return _models.problem(n, d, seed + 1)[0]


def fitted(library: str, model: str, **size) -> Call:
    X, y, gamma = _models.problem(**size)
    Q = _queries(**size)
    machine = _models.estimator(library, model, gamma).fit(X, y)
    verb = machine.predict if model == "ridge" else machine.transform
    return lambda: verb(Q)


def limit(model: str, **size) -> Call:
    return Limit(_queries(**size), _models.problem(**size)[0])


def reference(model: str, **size) -> np.ndarray:
    """f(q) = Σᵢ αᵢ k(xᵢ, q), or the centred ⟨φ(q) − μ, w_c⟩ of PCA, for random queries."""
    X, y, gamma = _models.problem(**size)
    Q = _queries(**size)
    probes = np.random.default_rng(size["seed"] + 2).choice(len(Q), PROBES, replace=False)
    K = _models.rbf(Q[probes], X, gamma)
    if model == "ridge":
        result = np.full(len(Q), np.nan)
        result[probes] = K @ _models.ridge_coefficients(X, y, gamma)
    else:
        values, vectors, means = _models.principal_pairs(X, gamma)
        result = np.full((len(Q), len(values)), np.nan)
        result[probes] = _models.centred(K, means) @ (vectors / np.sqrt(values))
    return result


def cases(quick: bool) -> list[Case]:
    size = {"n": 2000 if quick else 10000, "d": 20, "seed": 0}
    return [
        Case(f"KernelRidge.predict n={size['n']}", {"model": "ridge", **size}),
        Case(
            f"KernelPCA.transform n={size['n']}", {"model": "pca", **size}, error=error_up_to_sign
        ),
    ]


SUITE = Suite(
    "prediction, as many queries as points",
    cases,
    {
        "mercer": Contender("mercer", partial(fitted, "mercer")),
        "scikit-learn": Contender("sklearn", partial(fitted, "scikit-learn")),
        "limit": Contender("numpy", limit),
    },
    reference,
)
