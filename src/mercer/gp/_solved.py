"""The posterior covariance of a Gaussian process on many points, solved for where it is asked."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._errors import warn_caller
from .._points import doubled, length, take
from .._runtime import budget_in_bytes, check_budget, one_blas_thread
from ..kernels import Prepared, node
from ._iterative import Preconditioned
from ._posterior import GivenData

__all__ = ["Solved"]

_COLUMNS = 64  # points whose systems are solved in lockstep, at most
_COLUMN = 8 * 24  # bytes that the solution takes for each of these and each observation
_TOL = 0.03  # its square is the relative error allowed in a variance
_FINE_TOL = 1e-4  # derivatives have errors of first order, not of second


@node
class Solved(GivenData):
    """k(x, z | data) = k(x, z) - k_X(x)^T C^-1 k_X(z),  C = K + noise, by conjugate gradients.

    With v(x) ~ C^-1 k_X(x) and the residual r(x) = k_X(x) - C v(x),

        k(x, z) - k_X(x)^T v(z) - v(x)^T r(z)

    is the covariance of the errors f(x) - v(x)^T y: a kernel for whatever v, and on its diagonal
    never below the posterior variance.  It exceeds that by less than 0.2%, unless a warning says
    otherwise.  Each new point costs a system of n equations; with the factor of an exact
    solver, or with landmarks (`Conditioned`), it costs one product.

    `theta` is empty.

    Parameters
    ----------
    kernel : Kernel
        The prior k.
    points : points
        X.
    system : Preconditioned
    max_iter : int
    max_memory : int, str or None
    """

    system: Any = None
    max_iter: int = 1000
    max_memory: Any = None

    def _check(self) -> None:
        if not isinstance(self.system, Preconditioned):
            raise TypeError(f"Solved needs the Preconditioned system, got {self.system!r}")

    # ------------------------------------------------------------------ evaluation

    def _tile(self, P: Prepared, Q: Prepared, out: np.ndarray) -> None:
        self.kernel._tile(P.children[0], Q.children[0], out)
        out -= P.arrays[0] @ Q.arrays[1].T
        out -= P.arrays[1] @ Q.arrays[2].T

    def _diag(self, X: Any) -> np.ndarray:
        X = doubled(X)
        out = np.array(self.kernel.diag(X), dtype=float)
        for start in range(0, len(out), self._columns):
            rows = slice(start, start + self._columns)
            b, v, r = self._features(take(X, rows))
            out[rows] -= np.einsum("ij,ij->i", v, b + r)
        return np.maximum(out, 0.0, out=out)  # a variance: below 0 by rounding alone

    @property
    def _columns(self) -> int:
        """Points whose systems are solved in lockstep: as many as the budget has room for."""
        fit = budget_in_bytes(self.max_memory) // (_COLUMN * length(self.points))
        return int(np.clip(fit, 1, _COLUMNS))

    @one_blas_thread
    def _features(self, X: Any, tol: float = _TOL) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the rows S k_X(x), S^-1 v(x) and S r(x), S the scale of the system."""
        n, c, system = length(self.points), length(X), self.system
        check_budget(
            24 * n * c, self.max_memory, f"the posterior covariance of {c} points given {n}"
        )
        B = np.asarray(self.kernel(X, self.points), dtype=float).T * system.scale[:, None]
        prior = np.asarray(self.kernel.diag(X), dtype=float)
        V, R = np.zeros_like(B), B.copy()
        for start in range(0, c, self._columns):
            cols = slice(start, start + self._columns)
            solved = system.solve(B[:, cols], tol, self.max_iter, prior[cols])
            V[:, cols], R[:, cols] = solved.X, solved.R
            left = np.maximum(prior[cols] - solved.forms, 1e-10 * prior[cols])
            excess = float(np.max(solved.gaps / left, initial=0.0))
            if excess > 2.0 * _TOL**2:
                warn_caller(
                    f"posterior variances may be too large by {excess:.1%} after {solved.n_iter} "
                    f"steps of conjugate gradients; the usual cause is a noise that is small "
                    f"beside what the landmarks leave. Try more of them (rank), a larger noise "
                    f"(alpha, or White() in the kernel), or solver='cholesky'",
                    ConvergenceWarning,
                )
        return B.T, V.T, R.T

    # ------------------------------------------------------------------ derivatives

    def _input_gradient(self, X: Any, Z: Any, W: np.ndarray) -> np.ndarray:
        _, v, _ = self._features(doubled(X if Z is None else Z), _FINE_TOL)
        direct = self.kernel.input_gradient(X, Z, W)
        return direct - self.kernel.input_gradient(X, self.points, (W @ v) * self.system.scale)

    # ------------------------------------------------------------------ a value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Solved):
            return NotImplemented
        return self.kernel == other.kernel and self.system is other.system

    def __hash__(self) -> int:
        return hash((Solved, self.kernel, id(self.system)))

    def __repr__(self) -> str:
        return f"<{self}>"
