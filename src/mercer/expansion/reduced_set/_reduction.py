"""The approximation error of a reduced set, and bounds on the error of its values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._core import entry_point
from ...kernels import Kernel

__all__ = ["Reduction"]


@entry_point
@dataclass(frozen=True, eq=False, repr=False)
class Reduction:
    """Upper bounds on the errors |f_c - g_c| of a reduced set in the RKHS norm.

    f_c are the original functions, and g_c their approximations.  By the reproducing property,
    |f(x) - g(x)| <= |f - g| sqrt(k(x, x)) for every x.

    Attributes
    ----------
    kernel : Kernel
    method : str
        How the points were found: "select", "kmeans" or "construct".
    error : ndarray of shape (m,)
        Upper bounds on the errors |f_c - g_c| for the returned coefficients.  They include
        `rounding`.
    norm : ndarray of shape (m,)
        Norms |f_c| of the original functions.
    rounding : ndarray of shape (m,)
        The part of `error` that may be due to rounding; it is positive even if the true error is 0.
    n_points, n_points_before : int
        Number of points after and before the reduction.
    curve : ndarray of shape (n_points, m) or None
        The errors with only the first 1, 2, ... points; None unless the method is "select".

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import Expansion
    >>> from mercer.kernels import RBF
    >>> X = np.linspace(0, 1, 100)[:, None]
    >>> Expansion.mean(RBF(), X).compress(3, method="select").reduction
    <Reduction by select: 100 to 3 points, error 0.00163, at most 0.17 % of |f|>
    """

    kernel: Kernel
    method: str
    error: np.ndarray
    norm: np.ndarray
    rounding: np.ndarray
    n_points: int
    n_points_before: int
    curve: np.ndarray | None = None

    @property
    def relative_error(self) -> np.ndarray:
        """Relative errors |f_c - g_c| / |f_c|, shape (m,).

        For f_c = 0 the relative error is 0 if the error is 0, else inf.
        """
        of_zero = np.where(self.error > 0, np.inf, 0.0)
        return np.divide(self.error, self.norm, out=of_zero, where=self.norm > 0)

    def bound(self, X: Any) -> np.ndarray:
        """Return bounds on |f_c(x_i) - g_c(x_i)|, shape (n, m)."""
        return np.sqrt(np.maximum(self.kernel.diag(X), 0.0))[:, None] * self.error

    @property
    def sup_bound(self) -> np.ndarray:
        """Bounds on |f_c(x) - g_c(x)| for all x, shape (m,); inf if k(x, x) has no known bound."""
        bound = np.zeros(len(self.error))
        root = np.sqrt(self.kernel.diagonal_bound)
        return np.multiply(root, self.error, out=bound, where=self.error > 0)

    def __repr__(self) -> str:
        largest = float(self.error.max(initial=0.0))
        relative = float(self.relative_error.max(initial=0.0))
        error = "error" if len(self.error) == 1 else "errors up to"
        return (
            f"<Reduction by {self.method}: {self.n_points_before} to {self.n_points} points, "
            f"{error} {largest:.3g}, at most {100 * relative:.2g} % of |f|>"
        )
