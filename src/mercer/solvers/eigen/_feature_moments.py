"""Mergeable moments of features: count, mean and co-moment, accumulated block by block.

    W = sum w_i,   m = sum w_i phi_i / W,   C = sum w_i (phi_i - m) (phi_i - m)^T

Here phi_i are the features of point i and w_i its weight.  The moments of two sets of points are
merged by

    C = C_1 + C_2 + W_1 W_2 / W (m_1 - m_2) (m_1 - m_2)^T

(Chan, Golub & LeVeque 1983), which avoids the cancellation in C = sum w_i phi_i phi_i^T - W m m^T.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from ..._core import NotPositiveDefiniteError, ordered_sum, run_in_threads, slices, split_evenly

# Both values fix the order of summation, so that results do not depend on the number of threads.
_ROW_GROUPS = 4  # with few features, rows are split into this many groups, summed in parallel
_STRIP_COLUMNS = 256  # with more features than this, each task computes this many columns of C


@dataclass(frozen=True, eq=False)
class Moments:
    """Weight, mean and co-moment of the features of a set of points.

    The moments of two sets can be merged, so that they are computed block by block or on several
    computers.  Merging avoids the cancellation in sum w_i phi_i phi_i^T - W m m^T.

    Attributes
    ----------
    rows : int
        Number of points with a positive weight.
    weight : float
        Sum of the weights; the number of points if they have no weights.
    mean : ndarray of shape (m,)
        Weighted mean of the features.
    comoment : ndarray of shape (m, m)
        Weighted sum of the outer products of the centred features.
    residual : float, default=0.0
        Weighted sum of k(x, x) - |phi(x)|^2, the part of the trace of the kernel matrix that the
        features phi(x) do not explain.

    References
    ----------
    Chan, Golub and LeVeque, "Algorithms for computing the sample variance: analysis and
    recommendations", The American Statistician, 1983.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers import Moments
    >>> Phi = np.array([[0.0], [1.0], [5.0]])
    >>> whole = Moments.of(Phi)
    >>> parts = Moments.of(Phi[:1]).merge(Moments.of(Phi[1:]))
    >>> float(whole.comoment[0, 0]), float(parts.comoment[0, 0])
    (14.0, 14.0)
    """

    rows: int
    weight: float
    mean: np.ndarray
    comoment: np.ndarray
    residual: float = 0.0

    @classmethod
    def none(cls, m: int) -> Self:
        """Return the moments of an empty set of points.

        Parameters
        ----------
        m : int
            Number of features.

        Returns
        -------
        Moments
            All moments are 0.
        """
        return cls(0, 0.0, np.zeros(m), np.zeros((m, m)))

    @classmethod
    def of(
        cls,
        Phi: np.ndarray,
        weights: np.ndarray | None = None,
        diagonal: np.ndarray | None = None,
        *,
        n_threads: int | None = None,
    ) -> Self:
        """Return the moments of the rows of an array.

        Parameters
        ----------
        Phi : ndarray of shape (n, m)
            The features, one point per row.
        weights : ndarray of shape (n,) or None, default=None
            Non-negative weights of the points; None means 1.
        diagonal : ndarray of shape (n,) or None, default=None
            k(x, x) for each row; without it, the residual is 0.
        n_threads : int or None, default=None
            Number of threads; None means all processors.  The result does not depend on it.

        Returns
        -------
        Moments
            The mean has shape (m,), the co-moment (m, m).
        """
        w = np.ones(len(Phi)) if weights is None else weights
        total = float(w.sum())
        if not total:
            return cls.none(Phi.shape[1])
        residual = 0.0
        if diagonal is not None:
            residual = float(w @ residuals(Phi, diagonal))
        mean = w @ Phi / total
        return cls(int(np.sum(w > 0)), total, mean, _scatter(Phi, w, mean, n_threads), residual)

    def times(self, factor: float) -> Moments:
        """Return the moments for weights that are all multiplied by a factor.

        Parameters
        ----------
        factor : float
            A non-negative number, such as a forgetting factor below 1.

        Returns
        -------
        Moments
            The same mean, with the other moments scaled.
        """
        comoment, residual = self.comoment * factor, self.residual * factor
        return Moments(self.rows, self.weight * factor, self.mean, comoment, residual)

    def merge(self, other: Moments) -> Moments:
        """Return the moments of the union of both sets of points.

        Parameters
        ----------
        other : Moments
            Moments of other points, for the same m features.

        Returns
        -------
        Moments
            The moments of all points.
        """
        if self.mean.shape != other.mean.shape:
            raise ValueError(
                f"moments of {len(self.mean)} features cannot be merged with moments of "
                f"{len(other.mean)} features"
            )
        weight = self.weight + other.weight
        if not weight:
            return self
        difference = other.mean - self.mean
        comoment = self.comoment + other.comoment
        scale = self.weight * other.weight / weight
        # Add the outer product in strips, to avoid a second m x m array.
        for rows in slices(len(difference), _STRIP_COLUMNS):
            comoment[rows] += np.outer(difference[rows], difference) * scale
        return Moments(
            self.rows + other.rows,
            weight,
            self.mean + difference * (other.weight / weight),
            comoment,
            self.residual + other.residual,
        )


def residuals(Phi: np.ndarray, diagonal: np.ndarray) -> np.ndarray:
    """Return k(x, x) - |phi(x)|^2 for each row, clipped at 0.

    Raises
    ------
    NotPositiveDefiniteError
        If a value is negative by more than rounding, so that k is not positive semidefinite.
    """
    residual = diagonal - np.einsum("ij,ij->i", Phi, Phi)
    lowest, largest = residual.min(initial=0.0), np.abs(diagonal).max(initial=0.0)
    # Rounding alone, magnified by nearly equal landmarks, can make values this negative.
    if lowest < -1e-3 * largest:
        raise NotPositiveDefiniteError(
            f"k(x, x) - |phi(x)|^2 goes down to {lowest:.3g}, with k(x, x) up to {largest:.3g}: "
            f"the kernel is not positive semidefinite on the points and landmarks, but the Nyström "
            f"approximation requires that. Choose a Mercer kernel, or an exact solver with "
            f"indefinite='clip', 'flip' or 'shift'"
        )
    norms: np.ndarray = np.maximum(residual, 0.0)
    return norms


def _scatter(Phi: np.ndarray, w: np.ndarray, mean: np.ndarray, n_threads: int | None) -> np.ndarray:
    """Return the co-moment sum_i w_i (phi_i - mean) (phi_i - mean)^T, computed in parallel.

    The tasks do not depend on the number of threads.  With few features, each task sums a group of
    rows.  With many features, each task computes a strip of columns, so that only one m x m matrix
    is allocated.
    """
    centred, m = Phi - mean, len(mean)
    centred *= np.sqrt(w)[:, None]
    work = 0.5 * len(Phi) * m * m
    if m <= _STRIP_COLUMNS:
        parts = split_evenly(len(Phi), _ROW_GROUPS)
        return np.asarray(
            ordered_sum(
                lambda rows: _gram_of_columns(centred[rows]), parts, _ROW_GROUPS, n_threads, work
            )
        )
    C = np.empty((m, m))

    def strip(columns: slice) -> None:
        own, below = centred[:, columns], slice(columns.stop, m)
        C[columns, columns] = _gram_of_columns(own)
        C[below, columns] = centred[:, below].T @ own
        C[columns, below] = C[below, columns].T

    run_in_threads(strip, slices(m, _STRIP_COLUMNS), n_threads, work)
    return C


def _gram_of_columns(A: np.ndarray) -> np.ndarray:
    C: np.ndarray = A.T @ A  # NumPy detects the symmetry and computes one half
    return C
