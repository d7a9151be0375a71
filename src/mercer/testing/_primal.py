"""The laws of primal and dual."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._law import Laws

__all__ = ["check_primal"]


def check_primal(expansion: Any, X: Any, *, rtol: float = 1e-9) -> None:
    """Check that an expansion of a kernel with finitely many features is <w, phi(.)>, and back.

        f(x) = <w, phi(x)>,     <f, g> = <w, v>,     Phi^T a = w

    Parameters
    ----------
    expansion : Expansion
        Its kernel has finitely many features.
    X : points
        Where to evaluate.
    rtol : float
        Allowed error, relative to sum |coefficients| |k|; the way back may have 1000 times that.

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
    laws.close("values", p(X), fx, "<w, phi(x)> and f(x)", size)
    laws.close("inner", p.inner(p), f.inner(f), "<w, w> and <f, f>", energy)
    laws.close("norm", p.norm() ** 2, f.norm() ** 2, "|w|^2 and |f|^2", energy)
    laws.close("columns", p[-1](X), fx[:, -1:], "p[-1] and the last function", size)
    g = p.to_dual(f.points)
    laws.close("round trip", g(X), fx, "f(x), from w again, and f(x)", size, rtol=1e3 * rtol)
    root = np.sqrt(energy)
    laws.close("round trip", g.to_primal().weights, p.weights, "Phi^T a and w", root, 1e3 * rtol)
    shorter = np.linalg.norm(f.coefficients, axis=0) - np.linalg.norm(g.coefficients, axis=0)
    detail = f"the a found is longer than that given, by {-shorter.min():.3g}"
    laws.hold("least norm", np.all(shorter >= -1e3 * rtol * A.max(initial=1.0)), detail)
