"""Check whether a matrix is a valid Gram matrix, and compute the nearest one if it is not.

The positive semidefinite matrix P that is nearest to A in the Frobenius norm is the symmetric part
of A with its negative eigenvalues set to 0 (Higham 1988).  With the eigenvalues l_i,

    |A - P|_F^2  =  sum over l_i < 0 of l_i^2  +  |(A - A^T) / 2|_F^2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._core import MemoryLimit, check_budget, entry_point
from ..._core.linalg import eigh
from .._parameter_checks import SYMMETRY_TOLERANCE, asymmetry


@dataclass(frozen=True, eq=False)
class GramCheck:
    """The result of `check_gram`.

    Attributes
    ----------
    n : int
        The number of rows of K.
    finite : bool
        Whether all entries are finite.  If not, `symmetric` and `semidefinite` are False.
    symmetric : bool
        Whether K is symmetric, up to rounding.
    semidefinite : bool
        Whether K is symmetric and positive semidefinite, up to rounding.
    asymmetry : float
        The largest |K_ij - K_ji|; nan if K is not finite.
    eigenvalues : ndarray of shape (n,)
        The eigenvalues of the symmetric part of K in increasing order; empty if K is not finite.
    direction : ndarray of shape (n,), or None
        The unit vector c for which c^T K c is smallest; None if K is not finite.
    nearest : ndarray of shape (n, n), or None
        The nearest positive semidefinite matrix: the symmetric part of K if that is positive
        semidefinite; None if K is not finite.
    distance : float
        The Frobenius norm of K - nearest; inf if K is not finite.

    Examples
    --------
    >>> from mercer import check_gram
    >>> check = check_gram([[1.0, 2.0], [2.0, 1.0]])
    >>> check.semidefinite, check.eigenvalues, check.nearest
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
            return f"{self.n} x {self.n}: not a kernel matrix, because some entries are not finite"
        lines = [f"{self.n} x {self.n}: {'' if self.semidefinite else 'not '}positive semidefinite"]
        if not self.symmetric:
            lines[0] = f"{self.n} x {self.n}: not symmetric"
            lines.append(f"  K and its transpose differ by up to {self.asymmetry:.3g}")
        low, high = self.eigenvalues[0], self.eigenvalues[-1]
        negative = int(np.sum(self.eigenvalues < -_ROUNDING_UNIT * self.n * max(high, -low)))
        negative = 0 if self.semidefinite else negative  # ignore rounding errors
        lines.append(f"  eigenvalues from {low:.4g} to {high:.4g}, {negative} of them negative")
        if self.distance > 0:
            lines.append(f"  the nearest kernel matrix is {self.distance:.4g} away (Frobenius)")
        return "\n".join(lines)


# Allowed error of an eigenvalue of an n x n float64 matrix, divided by n times the largest one.
_ROUNDING_UNIT = 4.0 * np.finfo(float).eps


@entry_point
def check_gram(K: Any, *, max_memory: MemoryLimit = None) -> GramCheck:
    """Check whether K is a valid Gram matrix: finite, symmetric and positive semidefinite.

    Parameters
    ----------
    K : array-like of shape (n, n)
        The matrix, dense or sparse.
    max_memory : int, str or None, default=None
        The memory budget; about four n x n matrices of float64 are needed.

    Returns
    -------
    GramCheck
        The result, with the eigenvalues, the most negative direction, and the nearest positive
        semidefinite matrix with its distance.  `print` shows a summary.

    Raises
    ------
    ValueError
        If K is not a square matrix of real numbers.

    Examples
    --------
    >>> from mercer import check_gram
    >>> K = [[1.0, 0.0, 1.0], [0.0, 1.0, 1.0], [1.0, 1.0, 1.0]]  # overlaps of {1}, {2} and {1, 2}
    >>> check = check_gram(K)
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
            f"check_gram takes a square matrix of numbers, got {K.dtype} of shape {K.shape}; to "
            f"check a kernel, use kernel.validity()"
        )
    n = len(K)
    check_budget(4 * 8 * n * n, max_memory, f"check_gram of {n} points")
    if not np.isfinite(K).all():
        empty = np.zeros(0)
        return GramCheck(n, False, False, False, np.nan, empty, None, None, np.inf)
    # Allow for the rounding error of entries in float16 or float32.
    input_eps = float(np.finfo(K.dtype).eps) if K.dtype in (np.float16, np.float32) else 0.0
    A = K.astype(float)
    scale = float(np.abs(A).max()) or 1.0
    A /= scale  # scaling avoids overflow in the norms
    gap, largest = asymmetry(A)
    skew = float(np.linalg.norm(A - A.T)) / 2.0
    symmetric = gap <= max(8.0 * input_eps, SYMMETRY_TOLERANCE) * largest
    A = 0.5 * (A + A.T)
    values, vectors = eigh(A, check_finite=False)
    direction = vectors[:, 0].copy()
    direction *= 1.0 if direction[np.argmax(np.abs(direction))] > 0 else -1.0
    rounding = n * max(2.0 * input_eps, _ROUNDING_UNIT) * float(np.abs(values).max())
    semidefinite = bool(values[0] >= -rounding)
    nearest, distance = A, skew
    if not semidefinite:
        positive = values > 0
        nearest = (vectors[:, positive] * values[positive]) @ vectors[:, positive].T
        distance = float(np.hypot(np.linalg.norm(values[~positive]), skew))
    with np.errstate(over="ignore"):  # the eigenvalues of a matrix of huge entries may overflow
        return GramCheck(
            n,
            True,
            symmetric,
            symmetric and semidefinite,
            gap * scale,
            values * scale,
            direction,
            nearest * scale,
            distance * scale,
        )
