"""The laws of an expansion."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from .._errors import NotDifferentiableError
from .._points import length
from ._differences import (
    STEP,
    difference,
    double,
    is_float,
    spread_of,
)
from ._law import close, hold

__all__ = ["check_expansion"]


def check_expansion(
    expansion: Any,
    X: Any,
    *,
    differentiable: bool = True,
    rtol: float = 1e-9,
    random_state: int = 0,
) -> None:
    """Check that an expansion is a vector of functions in the RKHS of its kernel.

    Parameters
    ----------
    expansion : Expansion
        One or several functions f_c = sum_i coefficients[i, c] k(points[i], .).
    X : points
        Where to evaluate.  The kernel must be positive semidefinite on X and the points together.
    differentiable : bool
        If False, a NotDifferentiableError from `gradient` is accepted.
    rtol : float
        Allowed error, relative to sum |coefficients| |k|.
    random_state : int
        Seed of the test functions.

    Raises
    ------
    AssertionError
        Naming the law.
    """
    f, kernel, points = expansion, expansion.kernel, expansion.points
    A = f.coefficients
    rng = np.random.default_rng(random_state)
    K, B = kernel(points), kernel(X, points)
    size = float(np.max(np.abs(B) @ np.abs(A), initial=0.0))
    energy = float(np.max(np.abs(A).T @ np.abs(K) @ np.abs(A), initial=0.0))
    root = np.sqrt(energy)  # a norm is a root: rounding of its square shows as the root of that

    fx = f(X)
    close("representer", f, fx, B @ A, rtol, "f(X) and k(X, points) @ coefficients", size)
    sections = type(f).sections(kernel, X)
    close("sections", f, sections(points), B.T, rtol, "the sections of X and k(., X)")
    inner = f.inner(sections)
    close("reproducing property", f, inner, fx.T, rtol, "<f, k(x, .)> and f(x)", size)
    norm = f.norm()
    want = np.einsum("ic,ij,jc->c", A, K, A)
    close("norm", f, norm**2, want, rtol, "|f|^2 and a^T K a", energy)
    excess = float(np.max(np.abs(fx) - np.outer(np.sqrt(kernel.diag(X)), norm), initial=0.0))
    detail = f"|f(x)| exceeds |f| |k(x, .)| by {excess:.3g}"
    hold("Cauchy-Schwarz", f, excess <= 1e-6 * (size + root), detail)
    mean = type(f).mean(kernel, points)
    want = B.mean(axis=1, keepdims=True)
    close("mean", f, mean(X), want, rtol, "the mean of the points and that of k", np.abs(B).max())

    g = type(f)(kernel, X, rng.normal(size=(length(X), len(f))))
    gx = g(X)
    scale = size + float(np.max(np.abs(gx), initial=0.0))
    for what, left, right in (
        ("f + g", f + g, fx + gx),
        ("f - g", f - g, fx - gx),
        ("2 f", 2.0 * f, 2.0 * fx),
        ("f 2", f * 2.0, 2.0 * fx),
        ("-f", -f, -fx),
    ):
        close("linearity", f, left(X), right, rtol, f"{what} as expansion and as values", scale)
    both = energy + float(np.max(np.abs(g.coefficients).T @ np.abs(g(X)), initial=0.0))
    close("inner", f, f.inner(g), g.inner(f).T, rtol, "<f, g> and <g, f>", both)
    close("distance", f, f.distance(f), np.zeros(len(f)), 1e-6, "|f - f| and 0", root)
    want = f.norm() ** 2 - 2.0 * f.inner(g).diagonal() + g.norm() ** 2
    close("distance", f, f.distance(g) ** 2, want, rtol, "|f - g|^2 and its expansion", both)
    close("columns", f, f[-1](X), fx[:, -1:], rtol, "f[-1] and the last function", size)
    _check_expansion_gradient(f, X, differentiable, size)


def _check_expansion_gradient(f: Any, X: Any, differentiable: bool, size: float) -> None:
    X = double(X)
    try:
        got = f.gradient(X)
    except NotDifferentiableError as error:
        return hold("differentiable", f, not differentiable, f"but raises: {error}")
    if not is_float(X) or sp.issparse(X):
        return None
    spread = spread_of(X)
    step = 0.1 * STEP * spread
    parts = [difference(lambda move: f(X + move), step * e) / step for e in np.eye(X.shape[1])]
    want = np.stack(parts, axis=-1)
    hold("gradient", f, got.shape == want.shape, f"shape {got.shape}, expected {want.shape}")
    close("gradient", f, got, want, 1e-6, "gradient and differences", size / spread)
