"""Checks of the primal form of an expansion, that is, of its weights of explicit features."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._law import Laws

__all__ = ["check_primal"]


def check_primal(expansion: Any, X: Any, *, rtol: float = 1e-9) -> None:
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
