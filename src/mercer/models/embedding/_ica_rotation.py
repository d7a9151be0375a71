"""Independent component analysis by rotations that minimise a kernel measure of dependence.

Whitened data Z with uncorrelated columns of unit variance differ from independent components only
by a rotation.  The rotation is a product of rotations in planes of two columns (Jacobi), and each
angle minimises the dependence of the two columns, a function of one variable.

The dependence is measured with a Gaussian kernel of width s in one dimension, which is a sum over a
grid of frequencies v = h, 2h, ...,

    exp(-d^2 / (2 s^2)) = (h s / sqrt(2 pi)) (1 + 2 sum_v exp(-s^2 v^2 / 2) cos(v d)),

up to an error of exp(-c^2 / 2) if the frequencies go up to c / s, for |d| < 2 pi / h - c s.  The
terms are products of the features cos(v x) and sin(v x).  With the covariance matrices A, B of the
features of two columns and their cross-covariance matrix C,

    HSIC = |C|^2,      normalised HSIC = |M|^2,      generalised variance = -1/2 log det(I - M^T M),

where M = (A + kappa I)^(-1/2) C (B + kappa I)^(-1/2).  Time is linear in the number of points.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from operator import attrgetter
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from ..._core import ProgressCallback, ProgressStep, one_blas_thread, ordered_sum, slices
from ..._core.linalg import solve_triangular


@dataclass(frozen=True)
class _RotationTuning:
    """Numerical constants of the search for the rotation."""

    # Angles in a quarter turn at which the dependence is compared before the local search.
    n_angles: int = 24
    # The largest frequency times the width; the weights of larger frequencies are negligible.
    cutoff: float = 3.5
    # Maximum number of frequencies.  If the points are further apart than these allow, the kernel
    # is periodic, which affects only outliers.
    max_frequencies: int = 64
    # Number of points whose features are computed at a time, and number of partial sums.
    block_rows: int = 4096
    n_partial_sums: int = 8


_TUNING = _RotationTuning()
CONTRASTS = ("normalized", "hsic", "variance")


class IndependentRotation(NamedTuple):
    """A rotation to independent components, and the course of its search."""

    rotation: np.ndarray  # shape (m, m); the components are Z @ rotation.T
    dependence: float  # the sum of the dependences of all pairs
    n_sweeps: int
    largest_angle: float  # of the last sweep
    values: np.ndarray  # the dependence after each start


class PairDependence:
    """The dependence of two variables of unit variance, as a function of their values.

    Parameters
    ----------
    contrast : str
        One of `CONTRASTS`.
    bandwidth : float
        The width of the Gaussian kernel.
    regularization : float
        The constant kappa; not used for the contrast "hsic".
    extent : float
        The largest distance between two values.
    """

    def __init__(
        self, contrast: str, bandwidth: float, regularization: float, extent: float
    ) -> None:
        self.contrast, self.regularization = contrast, regularization
        largest = _TUNING.cutoff / bandwidth
        spacing = 2.0 * np.pi / (extent + _TUNING.cutoff * bandwidth)
        spacing = max(spacing, largest / _TUNING.max_frequencies)
        self.frequencies = spacing * np.arange(1, int(np.ceil(largest / spacing)) + 1)
        mass = 2.0 * spacing * bandwidth / np.sqrt(2.0 * np.pi)
        self.amplitudes = np.sqrt(mass) * np.exp(-0.25 * np.square(bandwidth * self.frequencies))

    def features(self, x: np.ndarray) -> np.ndarray:
        """Return features of each value whose inner products are the kernel, up to a constant."""
        angles = np.outer(x, self.frequencies)
        return np.hstack([np.cos(angles) * self.amplitudes, np.sin(angles) * self.amplitudes])

    def __call__(self, Z: np.ndarray) -> float:
        """Return the dependence of the two columns of Z."""
        n, D = len(Z), 2 * len(self.frequencies)

        def moments(rows: slice) -> np.ndarray:
            F = np.hstack([self.features(Z[rows, 0]), self.features(Z[rows, 1])])
            return np.vstack([F.sum(axis=0), F.T @ F])

        blocks = slices(n, _TUNING.block_rows)
        total = ordered_sum(moments, blocks, _TUNING.n_partial_sums, work=8.0 * n * D * D) / n
        S = total[1:] - np.outer(total[0], total[0])
        A, B, C = S[:D, :D], S[D:, D:], S[:D, D:]
        if self.contrast == "hsic":
            return float(np.sum(np.square(C)))
        A.flat[:: D + 1] += self.regularization
        B.flat[:: D + 1] += self.regularization
        M = solve_triangular(np.linalg.cholesky(A), C, lower=True)
        M = solve_triangular(np.linalg.cholesky(B), M.T, lower=True)
        if self.contrast == "normalized":
            return float(np.sum(np.square(M)))
        return float(-0.5 * np.linalg.slogdet(np.eye(D) - M @ M.T)[1])


@one_blas_thread
def find_independent_rotation(
    Z: np.ndarray,
    dependence: Callable[[np.ndarray], float],
    n_init: int,
    tol: float,
    max_iter: int,
    rng: np.random.Generator,
    log: ProgressCallback | None = None,
) -> IndependentRotation:
    """Return the rotation of whitened columns with the smallest sum of pairwise dependences.

    Parameters
    ----------
    Z : ndarray of shape (n, m)
        Uncorrelated columns of mean 0 and variance 1.
    dependence : function
        The dependence of the two columns of an array, such as a `PairDependence`.
    n_init : int
        Number of starts: the identity, and random rotations.
    tol : float
        A start has converged when all angles of a sweep are at most `tol`.
    max_iter : int
        Maximum number of sweeps over all pairs for each start.
    rng : Generator
    log : callable or None

    Returns
    -------
    IndependentRotation
        The best start.
    """
    results = []
    for start in range(n_init):
        R: np.ndarray = np.eye(Z.shape[1])
        if start:
            R = np.linalg.qr(rng.standard_normal(R.shape))[0]
        found = _rotate(Z, R, dependence, tol, max_iter)
        results.append(found)
        if log is not None:
            text = f"start {start + 1}: dependence {found.dependence:.6g} after "
            log(ProgressStep(f"{text}{found.n_sweeps} sweeps"))
    best = min(results, key=attrgetter("dependence"))
    return best._replace(values=np.array([found.dependence for found in results]))


def _rotate(
    Z: np.ndarray, R: np.ndarray, dependence: Callable[..., float], tol: float, max_iter: int
) -> IndependentRotation:
    """Sweep over all planes until no angle changes by more than `tol`."""
    S, R, largest, sweep = Z @ R.T, R.copy(), 0.0, 0
    spacing = 0.5 * np.pi / _TUNING.n_angles
    pairs = list(combinations(range(S.shape[1]), 2))
    for sweep in range(1, max_iter + 1):
        largest = 0.0
        for pair in pairs:
            plane = np.ascontiguousarray(S[:, pair])

            def value(angle: float, plane: np.ndarray = plane) -> float:
                return dependence(plane @ _rotation(angle).T)

            present = value(0.0)
            # A quarter turn only exchanges the columns and changes a sign.
            n_angles = _TUNING.n_angles if sweep <= 2 else 1
            start = min(spacing * np.arange(n_angles), key=lambda t: value(t) if t else present)
            bounds = (start - spacing, start + spacing)
            found = minimize_scalar(
                value, bounds=bounds, method="bounded", options={"xatol": 0.1 * tol}
            )
            if not found.fun < present:
                continue
            turn = _rotation(float(found.x))
            S[:, pair], R[list(pair)] = plane @ turn.T, turn @ R[list(pair)]
            largest = max(largest, abs((found.x + 0.25 * np.pi) % (0.5 * np.pi) - 0.25 * np.pi))
        if largest <= tol:
            break
    total = sum(dependence(S[:, pair]) for pair in pairs)
    return IndependentRotation(R, float(total), sweep, largest, np.empty(0))


def _rotation(angle: float) -> np.ndarray:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, s], [-s, c]])
