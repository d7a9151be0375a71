"""Prediction time and accuracy of models that are compressed to a tenth of their points.

Kernel ridge regression and kernel PCA with the Gaussian kernel are fitted to 5 000 rows of UCI sets
with standardised columns, and compressed to 500 points by `mercer.compress` with default
parameters.  The timed call is the prediction of the test fold with the original and with the
compressed model; the compression itself is not timed.  The kernel widths and ridge parameters are
those with the best R² on 1 000 of 3 000 training rows, from a grid of 6 × 4.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._models import COMPONENTS, centred, rbf, ridge_coefficients
from ._problems import is_available, load_problem
from ._suite import Call, Case, Contender, Suite

SETTINGS = {  # 2 l² / d of the kernel exp(−‖x − z‖² / (2 l²)), and the ridge parameter α
    "kin40k": (0.5, 0.01),
    "bike": (8.0, 0.01),
    "keggdirected": (8.0, 0.001),
    "protein": (0.125, 0.1),
    "parkinsons": (0.5, 0.01),
}
REDUCTION_FACTOR = 10


def fit_model(model: str, name: str, n: int) -> tuple[Any, np.ndarray, np.ndarray]:
    """Return the fitted model, and the test rows with their targets."""
    from mercer import KernelPCA, KernelRidge

    X, y, X_test, y_test = load_problem(name, n)
    width, alpha = SETTINGS[name]
    gamma = 1.0 / (width * X.shape[1])
    if model == "ridge":
        return KernelRidge(alpha=alpha, kernel="rbf", gamma=gamma).fit(X, y), X_test, y_test
    # Ten components of a narrow kernel explain little variance, so use the width of the data.
    gamma = 1.0 / (2.0 * X.shape[1])
    return KernelPCA(COMPONENTS, kernel="rbf", gamma=gamma).fit(X), X_test, y_test


def full_model(model: str, name: str, n: int) -> Call:
    """Return the prediction with all points."""
    fitted, Q, _ = fit_model(model, name, n)
    return _timed(fitted, Q)


def compressed_model(model: str, name: str, n: int) -> Call:
    """Return the prediction with a tenth of the points; its note has the loss of accuracy."""
    from mercer import compress

    fitted, Q, y = fit_model(model, name, n)
    reduced = compress(fitted, n // REDUCTION_FACTOR)
    call = _timed(reduced, Q)
    if model == "ridge":
        before, after = fitted.score(Q, y), reduced.score(Q, y)
        accuracy = f"R² {before:.4f} → {after:.4f} ({1 - after / before:.2%} lost)"
    else:
        before, after = (m.explained_variance_ratio_.sum() for m in (fitted, reduced))
        accuracy = f"explained {before:.4f} → {after:.4f} ({1 - after / before:.2%} lost)"
    r = reduced.reduction_
    error = f"RKHS error {r.relative_error.max():.3f} |f|"
    call.note = f"{accuracy}, {error}, method {r.method}"
    return call


def _timed(fitted: Any, Q: np.ndarray) -> Call:
    """Return a call of `predict` or `transform`."""
    method = fitted.predict if hasattr(fitted, "predict") else fitted.transform

    def call() -> np.ndarray:
        return method(Q)

    return call


def reference(model: str, name: str, n: int) -> np.ndarray:
    """Return predictions stacked on the targets, or PCA scores, computed by NumPy and SciPy."""
    from scipy.linalg import eigh

    X, y, Q, y_test = load_problem(name, n)
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
    """Return the relative loss of R² on the test fold; 0 if R² increases."""
    predicted, y = reference
    scores = [1.0 - np.mean((y - f) ** 2) / np.var(y) for f in (result, predicted)]
    return float(max(0.0, 1.0 - scores[0] / scores[1]))


def lost_variance(result: np.ndarray, reference: np.ndarray) -> float:
    """Return the relative loss of the variance of the scores on the test fold."""
    return float(max(0.0, 1.0 - result.var(axis=0).sum() / reference.var(axis=0).sum()))


def cases(quick: bool) -> list[Case]:
    n, names = (1000, ["bike"]) if quick else (5000, list(SETTINGS))
    return [
        Case(
            f"{method} {name} n={n}",
            {"model": model, "name": name, "n": n},
            # Half of the variance of protein is noise.
            tolerance=0.03 if name == "protein" else 0.01,
            error=error,
            family=f"`{method}`, model compressed from {n} to {n // REDUCTION_FACTOR} points",
        )
        for model, method, error in (
            ("ridge", "KernelRidge.predict", lost_score),
            ("pca", "KernelPCA.transform", lost_variance),
        )
        for name in filter(is_available, names)
    ]


SUITE = Suite(
    "models compressed to a tenth of their points",
    cases,
    {
        "mercer": Contender("mercer", compressed_model),
        "mercer, all points": Contender("mercer", full_model),
    },
    reference,
)
