"""Count, mean and co-moment of features, added up exactly in any order of blocks.

    W = sum w_i,   m = sum w_i phi_i / W,   C = sum w_i (phi_i - m) (phi_i - m)^T

Two parts merge without loss (Chan, Golub & LeVeque 1983):

    C = C_1 + C_2 + W_1 W_2 / W (m_1 - m_2) (m_1 - m_2)^T

whereas sum w phi phi^T - W m m^T would cancel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from ..._errors import NotPositiveDefiniteError
from ..._runtime import cut, ordered_sum, run, slices

__all__ = ["Moments"]

_GROUPS = 4  # of rows
_STRIP = 256  # columns of the co-moment that one task computes


@dataclass(frozen=True, eq=False)
class Moments:
    """The moments of some points' features, and what the features leave of k(x, x).

    Attributes
    ----------
    rows : int
        Points seen.
    weight : float
        W; the number of points if they have no weights.
    mean : ndarray of shape (m,)
    comoment : ndarray of shape (m, m)
    residual : float
        sum w_i (k(x_i, x_i) - |phi_i|^2).

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
        """Return the moments of no points."""
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
        """Return the moments of the rows of Phi; `diagonal` holds their k(x, x)."""
        w = np.ones(len(Phi)) if weights is None else weights
        total = float(w.sum())
        if not total:
            return cls.none(Phi.shape[1])
        left = 0.0
        if diagonal is not None:
            left = float(w @ residuals(Phi, diagonal))
        mean = w @ Phi / total
        return cls(int(np.sum(w > 0)), total, mean, _scatter(Phi, w, mean, n_threads), left)

    def times(self, factor: float) -> Moments:
        """Return the moments of points whose weights are all multiplied by the factor."""
        comoment, residual = self.comoment * factor, self.residual * factor
        return Moments(self.rows, self.weight * factor, self.mean, comoment, residual)

    def merge(self, other: Moments) -> Moments:
        """Return the moments of both sets of points together."""
        if self.mean.shape != other.mean.shape:
            raise ValueError(
                f"moments of {len(self.mean)} features cannot be merged with those of "
                f"{len(other.mean)}"
            )
        weight = self.weight + other.weight
        if not weight:
            return self
        apart = other.mean - self.mean
        comoment = self.comoment + other.comoment
        scale = self.weight * other.weight / weight
        for rows in slices(len(apart), _STRIP):  # no second m x m
            comoment[rows] += np.outer(apart[rows], apart) * scale
        return Moments(
            self.rows + other.rows,
            weight,
            self.mean + apart * (other.weight / weight),
            comoment,
            self.residual + other.residual,
        )


def residuals(Phi: np.ndarray, diagonal: np.ndarray) -> np.ndarray:
    """Return k(x, x) - |phi(x)|^2; if it is below 0 by more than rounding, k is no kernel."""
    left = diagonal - np.einsum("ij,ij->i", Phi, Phi)
    lowest, largest = left.min(initial=0.0), np.abs(diagonal).max(initial=0.0)
    if lowest < -1e-3 * largest:  # landmarks that nearly coincide magnify rounding up to here
        raise NotPositiveDefiniteError(
            f"k(x, x) - |phi(x)|^2 goes down to {lowest:.3g}, with k(x, x) up to {largest:.3g}: "
            f"the kernel is not positive semidefinite on points and landmarks, as Nyström needs. "
            f"Choose a Mercer kernel, or an exact solver with indefinite='clip', 'flip' or 'shift'"
        )
    return np.maximum(left, 0.0)


def _scatter(Phi: np.ndarray, w: np.ndarray, mean: np.ndarray, n_threads: int | None) -> np.ndarray:
    """Return sum w_i (phi_i - m)(phi_i - m)^T, in tasks that the number of threads does not change.

    Few features: groups of rows, added up.  Many: strips of columns, so that one matrix of m x m is
    all there is.
    """
    centred, m = Phi - mean, len(mean)
    centred *= np.sqrt(w)[:, None]
    work = 0.5 * len(Phi) * m * m
    if m <= _STRIP:
        parts = cut(len(Phi), _GROUPS)
        return np.asarray(
            ordered_sum(lambda rows: _square(centred[rows]), parts, _GROUPS, n_threads, work)
        )
    C = np.empty((m, m))

    def strip(columns: slice) -> None:
        mine, beyond = centred[:, columns], slice(columns.stop, m)
        C[columns, columns] = _square(mine)
        C[beyond, columns] = centred[:, beyond].T @ mine
        C[columns, beyond] = C[beyond, columns].T

    run(strip, slices(m, _STRIP), n_threads, work)
    return C


def _square(A: np.ndarray) -> np.ndarray:
    return A.T @ A  # of which NumPy computes one half
