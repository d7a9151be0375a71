"""Fitting: the dense Cholesky factor of ridge regression, ten eigenpairs of PCA."""

from __future__ import annotations

from functools import partial

import numpy as np

from . import _models
from ._suite import Call, Case, Contender, Suite


def fitting(library: str, model: str, **size) -> Call:
    X, y, gamma = _models.problem(**size)

    def fit() -> np.ndarray:
        machine = _models.estimator(library, model, gamma).fit(X, y)
        return machine.dual_coef_ if model == "ridge" else machine.eigenvalues_

    return fit


def reference(model: str, **size) -> np.ndarray:
    """The coefficients (K + αI)⁻¹ y, or the leading eigenvalues of the centred K."""
    X, y, gamma = _models.problem(**size)
    if model == "ridge":
        return _models.ridge_coefficients(X, y, gamma)
    return _models.principal_pairs(X, gamma)[0]


def cases(quick: bool) -> list[Case]:
    size = {"n": 1500 if quick else 5000, "d": 20, "seed": 0}
    return [
        Case(f"KernelRidge.fit n={size['n']}", {"model": "ridge", **size}),
        Case(f"KernelPCA.fit n={size['n']}", {"model": "pca", **size}),
    ]


SUITE = Suite(
    "fitting",
    cases,
    {
        "mercer": Contender("mercer", partial(fitting, "mercer")),
        "scikit-learn": Contender("sklearn", partial(fitting, "scikit-learn")),
    },
    reference,
)
