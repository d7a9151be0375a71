"""Checks of an expansion f = sum_i a_i k(x_i, .), and of its primal form <w, phi(x)>."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from .._core import NotDifferentiableError, Points, length
from ._finite_differences import Laws, extent, is_float, numerical_gradient, to_float64


def check_expansion(
    expansion: Any,
    X: Points,
    *,
    differentiable: bool = True,
    rtol: float = 1e-9,
    random_state: int = 0,
) -> None:
    """Check that an expansion is a vector of functions in the RKHS of its kernel.

        f(x) = <f, k(x, .)>,        |f|^2 = a^T K a,        |f(x)| <= |f| sqrt(k(x, x))

    Here a are the coefficients, and K is the kernel matrix of the points of the expansion.

    Parameters
    ----------
    expansion : Expansion
        One or several functions f_c = sum_i coefficients[i, c] k(points[i], .).
    X : points
        Points at which the functions are evaluated.  The kernel must be positive semidefinite on
        the union of X and the points of the expansion.
    differentiable : bool
        If False, a NotDifferentiableError from `gradient` is accepted.
    rtol : float
        Allowed error, relative to sum_i |coefficients[i]| |k(points[i], x)|.
    random_state : int
        Seed of the random test functions.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import Expansion
    >>> from mercer.kernels import RBF
    >>> from mercer.testing import check_expansion
    >>> X = np.random.default_rng(0).normal(size=(8, 2))
    >>> check_expansion(Expansion.mean(RBF(), X), X) is None  # no error: all laws hold
    True
    """
    f, kernel, points, A = expansion, expansion.kernel, expansion.points, expansion.coefficients
    laws = Laws(f, rtol)
    K, B = kernel(points), kernel(X, points)
    size = _largest(np.abs(B) @ np.abs(A))
    energy = _largest(np.abs(A).T @ np.abs(K) @ np.abs(A))
    root = np.sqrt(energy)  # a rounding error of |f|^2 changes |f| by up to its square root

    fx = f(X)
    laws.require_close("representer", fx, B @ A, "f(X) and k(X, points) @ coefficients", size)
    sections = type(f).sections(kernel, X)
    laws.require_close("sections", sections(points), B.T, "sections(X) and k(., X)")
    inner = f.inner(sections)
    laws.require_close("reproducing property", inner, fx.T, "<f, k(x, .)> and f(x)", size)
    norm, want = f.norm(), np.einsum("ic,ij,jc->c", A, K, A)
    laws.require_close("norm", norm**2, want, "|f|^2 and a^T K a", energy)
    excess = _largest(np.abs(fx) - np.outer(np.sqrt(kernel.diag(X)), norm))
    detail = f"|f(x)| exceeds |f| |k(x, .)| by {excess:.3g}"
    laws.require("Cauchy-Schwarz", excess <= 1e-6 * (size + root), detail)
    got, want = type(f).mean(kernel, points)(X), B.mean(axis=1, keepdims=True)
    laws.require_close(
        "mean",
        got,
        want,
        "the mean expansion at X and the row means of k(X, points)",
        np.abs(B).max(),
    )

    random = np.random.default_rng(random_state).normal(size=(length(X), len(f)))
    g = type(f)(kernel, X, random)
    gx = g(X)
    scale = size + _largest(np.abs(gx))
    for what, left, right in (
        ("f + g", f + g, fx + gx),
        ("f - g", f - g, fx - gx),
        ("2 f", 2.0 * f, 2.0 * fx),
        ("f 2", f * 2.0, 2.0 * fx),
        ("-f", -f, -fx),
    ):
        laws.require_close("linearity", left(X), right, f"{what} as expansion and as values", scale)
    both = energy + _largest(np.abs(random).T @ np.abs(gx))
    inner = f.inner(g)
    laws.require_close("inner", inner, g.inner(f).T, "<f, g> and <g, f>", both)
    laws.require_close(
        "distance", f.distance(f), np.zeros(len(f)), "|f - f| and 0", root, rtol=1e-6
    )
    want = norm**2 - 2.0 * inner.diagonal() + g.norm() ** 2
    laws.require_close("distance", f.distance(g) ** 2, want, "|f - g|^2 and its expansion", both)
    laws.require_close("columns", f[-1](X), fx[:, -1:], "f[-1] and the last function", size)
    _check_gradient(f, to_float64(X), differentiable, size)


def _check_gradient(f: Any, X: Points, differentiable: bool, size: float) -> None:
    laws = Laws(f, 1e-6)
    try:
        got = f.gradient(X)
    except NotDifferentiableError as error:
        return laws.require("differentiable", not differentiable, f"but raises: {error}")
    if is_float(X) and not sp.issparse(X):
        scale = size / extent(X)
        laws.require_close(
            "gradient", got, numerical_gradient(f, X), "gradient and differences", scale
        )


def _largest(A: np.ndarray) -> float:
    """Return the largest entry, or 0 if no entry is positive."""
    return float(np.max(A, initial=0.0))


def check_primal(expansion: Any, X: Points, *, rtol: float = 1e-9) -> None:
    """Check the conversion of an expansion to weights of explicit features, and back.

        f(x) = <w, phi(x)>,     <f, f> = <w, w>,     Phi^T a = w

    Here w are the weights, a the coefficients, and the rows of Phi the features of the points.

    Parameters
    ----------
    expansion : Expansion
        An expansion whose kernel has finitely many features.
    X : points
        Points at which the functions are evaluated.
    rtol : float
        Allowed error, relative to sum_i |coefficients[i]| |k(points[i], x)|.  For the conversion
        back to coefficients, 1000 times this error is allowed.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import Expansion
    >>> from mercer.kernels import Polynomial
    >>> from mercer.testing import check_primal
    >>> X = np.random.default_rng(0).normal(size=(8, 2))
    >>> check_primal(Expansion.mean(Polynomial(2), X), X) is None
    True
    """
    f, A = expansion, np.abs(expansion.coefficients)
    laws, p = Laws(f, rtol), f.to_primal()
    size = float(np.max(np.abs(f.kernel(X, f.points)) @ A, initial=0.0))
    energy = float(np.max(A.T @ np.abs(f.kernel(f.points)) @ A, initial=0.0))
    fx = f(X)
    laws.require_close("values", p(X), fx, "<w, phi(x)> and f(x)", size)
    laws.require_close("inner", p.inner(p), f.inner(f), "<w, w> and <f, f>", energy)
    laws.require_close("norm", p.norm() ** 2, f.norm() ** 2, "|w|^2 and |f|^2", energy)
    laws.require_close("columns", p[-1](X), fx[:, -1:], "p[-1] and the last function", size)
    g = p.to_dual(f.points)
    laws.require_close(
        "round trip", g(X), fx, "f(x) after the round trip and f(x)", size, rtol=1e3 * rtol
    )
    root = np.sqrt(energy)
    laws.require_close(
        "round trip", g.to_primal().weights, p.weights, "Phi^T a and w", root, 1e3 * rtol
    )
    decrease = np.linalg.norm(f.coefficients, axis=0) - np.linalg.norm(g.coefficients, axis=0)
    detail = f"the norm of the coefficients grew by {-decrease.min():.3g}"
    laws.require("least norm", np.all(decrease >= -1e3 * rtol * A.max(initial=1.0)), detail)
