"""Is a matrix one of a kernel?  If not, by how much, in which direction, and which one is nearest.

Higham (1988): the positive semidefinite matrix nearest to A, in the Frobenius norm, is its
symmetric part with the negative eigenvalues set to 0,

    |A - P|_F^2  =  sum over l_i < 0 of l_i^2  +  |(A - A^T) / 2|_F^2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._runtime import check_budget, entry_point
from ..._runtime.linalg import eigh
from .._fields import SYMMETRIC, asymmetry

__all__ = ["GramCheck", "check_gram"]


@dataclass(frozen=True, eq=False)
class GramCheck:
    """What `check_gram` found.

    Attributes
    ----------
    n : int
    finite, symmetric, semidefinite : bool
        Up to rounding; a matrix that is not finite is neither of the others.
    asymmetry : float
        The largest |K_ij - K_ji|.
    eigenvalues : ndarray
        Of the symmetric part, the smallest first.
    direction : ndarray or None
        The unit vector c for which c^T K c is the smallest.
    nearest : ndarray or None
        The nearest positive semidefinite matrix; K itself if it is one.
    distance : float
        |K - nearest|_F.

    Examples
    --------
    >>> from mercer import check_gram
    >>> found = check_gram([[1.0, 2.0], [2.0, 1.0]])
    >>> found.semidefinite, found.eigenvalues, found.nearest
    (False, array([-1.,  3.]), array([[1.5, 1.5],
           [1.5, 1.5]]))
    """

    n: int
    finite: bool
    symmetric: bool
    semidefinite: bool
    asymmetry: float
    eigenvalues: np.ndarray
    direction: np.ndarray | None
    nearest: np.ndarray | None
    distance: float

    def __str__(self) -> str:
        if not self.finite:
            return f"{self.n} x {self.n}: not a kernel matrix, because entries are not finite"
        lines = [f"{self.n} x {self.n}: {'' if self.semidefinite else 'not '}positive semidefinite"]
        if not self.symmetric:
            lines[0] = f"{self.n} x {self.n}: not symmetric"
            lines.append(f"  K and its transpose differ by up to {self.asymmetry:.3g}")
        low, high = self.eigenvalues[0], self.eigenvalues[-1]
        negative = int(np.sum(self.eigenvalues < -_ROUNDING * self.n * max(high, -low)))
        negative = 0 if self.semidefinite else negative  # due to rounding
        lines.append(f"  eigenvalues from {low:.4g} to {high:.4g}, {negative} of them negative")
        if self.distance > 0:
            lines.append(f"  the nearest kernel matrix is {self.distance:.4g} away (Frobenius)")
        return "\n".join(lines)


_ROUNDING = 4.0 * np.finfo(float).eps


@entry_point
def check_gram(K: Any, *, max_memory: Any = None) -> GramCheck:
    """Check whether K is the matrix of a kernel: finite, symmetric, positive semidefinite.

    Parameters
    ----------
    K : array-like of shape (n, n)
    max_memory : int, str or None
        The budget; about four matrices of n x n are needed.

    Returns
    -------
    check : GramCheck
        With the most negative direction, the nearest kernel matrix and its distance; `print` it.

    Examples
    --------
    >>> from mercer import check_gram
    >>> check = check_gram([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0], [1.0, 1.0, 1.0]])  # overlaps of sets
    >>> print(check)
    3 x 3: not positive semidefinite
      eigenvalues from -0.4142 to 2.414, 1 of them negative
      the nearest kernel matrix is 0.4142 away (Frobenius)
    >>> check.direction.round(3)
    array([-0.5  , -0.5  ,  0.707])
    """
    if hasattr(K, "toarray"):
        K = K.toarray()
    K = np.asarray(K)
    if K.ndim != 2 or K.shape[0] != K.shape[1] or not K.size or K.dtype.kind not in "biuf":
        raise ValueError(
            f"check_gram takes a square matrix of numbers, got {K.dtype} of shape {K.shape}; for a "
            f"kernel use kernel.validity()"
        )
    n = len(K)
    check_budget(4 * 8 * n * n, max_memory, f"check_gram of {n} points")
    if not np.isfinite(K).all():
        none = np.zeros(0)
        return GramCheck(n, False, False, False, np.nan, none, None, None, np.inf)
    # entries in float16 or float32 are rounded to that precision
    coarse = float(np.finfo(K.dtype).eps) if K.dtype in (np.float16, np.float32) else 0.0
    A = K.astype(float)
    unit = float(np.abs(A).max()) or 1.0
    A /= unit  # so that nothing overflows
    gap, largest = asymmetry(A)
    skew = float(np.linalg.norm(A - A.T)) / 2.0
    symmetric = gap <= max(8.0 * coarse, SYMMETRIC) * largest
    A = 0.5 * (A + A.T)
    values, vectors = eigh(A, check_finite=False)
    direction = vectors[:, 0].copy()
    direction *= 1.0 if direction[np.argmax(np.abs(direction))] > 0 else -1.0
    rounding = n * max(2.0 * coarse, _ROUNDING) * float(np.abs(values).max())
    semidefinite = bool(values[0] >= -rounding)
    nearest, distance = A, skew
    if not semidefinite:
        kept = values > 0
        nearest = (vectors[:, kept] * values[kept]) @ vectors[:, kept].T
        distance = float(np.hypot(np.linalg.norm(values[~kept]), skew))
    with np.errstate(over="ignore"):  # eigenvalues may be larger than any number
        return GramCheck(
            n,
            True,
            symmetric,
            symmetric and semidefinite,
            gap * unit,
            values * unit,
            direction,
            nearest * unit,
            distance * unit,
        )
