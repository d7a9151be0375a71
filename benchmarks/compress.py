"""Models on a tenth of their points: what prediction then costs, and what is lost.

Kernel ridge regression and kernel PCA with the Gaussian kernel, fitted on 5 000 rows of UCI sets
with standardised columns, are compressed to 500 points by `mercer.compress`, all defaults.  What is
timed is prediction on the test fold, with the points before and after; compression is not.  Widths
and ridges are those with the best R² on 1 000 of 3 000 training rows, of a grid of 6 × 4.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._models import COMPONENTS, centred, rbf, ridge_coefficients
from ._problems import draw, there
from ._suite import Call, Case, Contender, Suite

SETTINGS = {  # 2 l² / d of the kernel exp(−‖x − z‖² / (2 l²)), and the ridge
    "kin40k": (0.5, 0.01),
    "bike": (8.0, 0.01),
    "keggdirected": (8.0, 0.001),
    "protein": (0.125, 0.1),
    "parkinsons": (0.5, 0.01),
}
TENTH = 10


def fitted(model: str, name: str, n: int) -> tuple[Any, np.ndarray, np.ndarray]:
    """Return the fitted model, and the test rows with their targets."""
    from mercer import KernelPCA, KernelRidge

    X, y, X_test, y_test = draw(name, n)
    width, alpha = SETTINGS[name]
    gamma = 1.0 / (width * X.shape[1])
    if model == "ridge":
        return KernelRidge(alpha=alpha, kernel="rbf", gamma=gamma).fit(X, y), X_test, y_test
    # ten components of a narrow kernel explain little: one as wide as the cloud of points
    gamma = 1.0 / (2.0 * X.shape[1])
    return KernelPCA(COMPONENTS, kernel="rbf", gamma=gamma).fit(X), X_test, y_test


def whole(model: str, name: str, n: int) -> Call:
    machine, Q, _ = fitted(model, name, n)
    return _timed(machine, Q)


def compressed(model: str, name: str, n: int) -> Call:
    from mercer import compress

    machine, Q, y = fitted(model, name, n)
    small = compress(machine, n // TENTH)
    call = _timed(small, Q)
    if model == "ridge":
        before, after = machine.score(Q, y), small.score(Q, y)
        told = f"R² {before:.4f} → {after:.4f} ({1 - after / before:.2%} lost)"
    else:
        before, after = (m.explained_variance_ratio_.sum() for m in (machine, small))
        told = f"explained {before:.4f} → {after:.4f} ({1 - after / before:.2%} lost)"
    r = small.reduction_
    error = f"RKHS error {r.relative_error.max():.3f} of |f|"
    call.note = f"{told}, {error}, by {r.method}"
    return call


def _timed(machine: Any, Q: np.ndarray) -> Call:
    verb = machine.predict if hasattr(machine, "predict") else machine.transform

    def call() -> np.ndarray:
        return verb(Q)

    return call


def reference(model: str, name: str, n: int) -> np.ndarray:
    """Predictions of all points beside the targets, or scores, by NumPy and SciPy alone."""
    from scipy.linalg import eigh

    X, y, Q, y_test = draw(name, n)
    width, alpha = SETTINGS[name]
    if model == "ridge":
        gamma = 1.0 / (width * X.shape[1])
        return np.stack([rbf(Q, X, gamma) @ ridge_coefficients(X, y, gamma, alpha), y_test])
    gamma = 1.0 / (2.0 * X.shape[1])
    K = rbf(X, X, gamma)
    means = K.mean(axis=0)
    values, U = eigh(centred(K, means), subset_by_index=(len(K) - COMPONENTS, len(K) - 1))
    return centred(rbf(Q, X, gamma), means) @ (U / np.sqrt(values))


def lost_score(result: np.ndarray, reference: np.ndarray) -> float:
    """The part of R² on the test fold that is lost; what is won is no error."""
    predicted, y = reference
    scores = [1.0 - np.mean((y - f) ** 2) / np.var(y) for f in (result, predicted)]
    return float(max(0.0, 1.0 - scores[0] / scores[1]))


def lost_variance(result: np.ndarray, reference: np.ndarray) -> float:
    """The part of the variance of all scores on the test fold that is lost."""
    return float(max(0.0, 1.0 - result.var(axis=0).sum() / reference.var(axis=0).sum()))


def cases(quick: bool) -> list[Case]:
    n, names = (1000, ["bike"]) if quick else (5000, list(SETTINGS))
    return [
        Case(
            f"{verb} {name} n={n}",
            {"model": model, "name": name, "n": n},
            tolerance=0.03 if name == "protein" else 0.01,  # half of its variance is noise
            error=error,
            family=f"`{verb}` by {n // TENTH} of {n} points, against all",
        )
        for model, verb, error in (
            ("ridge", "KernelRidge.predict", lost_score),
            ("pca", "KernelPCA.transform", lost_variance),
        )
        for name in filter(there, names)
    ]


SUITE = Suite(
    "models compressed to a tenth of their points",
    cases,
    {
        "mercer": Contender("mercer", compressed),
        "mercer, all points": Contender("mercer", whole),
    },
    reference,
)
