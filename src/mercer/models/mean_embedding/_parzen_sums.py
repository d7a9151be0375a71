"""Kernel density estimation: logarithms of kernel sums, and bandwidth selection."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar
from sklearn.exceptions import ConvergenceWarning

from ..._core import ENTRY_WORK, entry_point, run_in_threads, slices, warn_caller
from ...kernels import Kernel, Prepared, exp_inplace
from ._kde_kernel import DensityKernel

__all__ = ["choose_bandwidth", "log_kernel_sums"]


@dataclass(frozen=True)
class _ParzenTuning:
    """Tile sizes, and limits of the leave-one-out bandwidth search ("loo")."""

    # Rows and columns of a tile of kernel values, the same as in the tiled product K @ V.
    tile_rows: int = 384
    tile_columns: int = 384
    # Range of bandwidths that "loo" searches, relative to Silverman's rule times the spread of X.
    loo_range: tuple[float, float] = (1e-3, 1e2)
    # Number of bandwidths on a logarithmic grid that are evaluated before the best one is refined.
    loo_grid_size: int = 16


_TUNING = _ParzenTuning()


@entry_point
def log_kernel_sums(
    density: DensityKernel, X: np.ndarray, Z: np.ndarray | None, w: np.ndarray
) -> np.ndarray:
    """Return log sum_j w_j k(x_i, z_j) for each row x_i of X.

    The sums run over tiles.  The largest term so far is factored out of each sum, so that no sum
    overflows or underflows.

    Parameters
    ----------
    density : DensityKernel
        The kernel k.
    X : ndarray of shape (n, d)
        The points at which the sums are evaluated.
    Z : ndarray of shape (m, d) or None
        The centres z_j.  None means X itself; the sum at x_i then leaves out the point x_i.
    w : ndarray of shape (m,)
        Positive weights.

    Returns
    -------
    ndarray of shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF
    >>> from mercer.models.mean_embedding import DensityKernel, log_kernel_sums
    >>> density = DensityKernel.of(RBF(), 1.0, d=1)
    >>> log_kernel_sums(density, np.array([[50.0]]), np.zeros((1, 1)), np.ones(1))
    array([-1250.])
    """
    log_w = np.log(w)
    Q = density.kernel.prepare(X if Z is None else Z)
    # X is prepared relative to Z, so that a distant x does not reduce the precision of others.
    P = Q if Z is None else density.kernel.prepare(X, like=Q)
    out = np.empty(len(P))

    def rows(part: slice) -> Iterator[None]:
        Pi = P[part]
        scratch = np.empty(len(Pi) * _TUNING.tile_columns)
        largest, total = np.full(len(Pi), -np.inf), np.zeros(len(Pi))
        for cols, Qj in tiles:
            yield
            T = density.log_tile(Pi, Qj, scratch[: len(Pi) * len(Qj)].reshape(len(Pi), -1))
            T += log_w[cols]
            if Z is None:
                T[Pi.coincidences(Qj)] = -np.inf
            new_largest = np.maximum(largest, T.max(axis=1))
            T -= np.where(np.isfinite(new_largest), new_largest, 0.0)[:, None]
            with np.errstate(invalid="ignore"):  # a sum without terms gives -inf - (-inf)
                total *= np.where(largest == new_largest, 1.0, np.exp(largest - new_largest))
            total += exp_inplace(T, 1.0).sum(axis=1)
            largest = new_largest
        out[part] = largest + np.log(total)

    tiles: list[tuple[slice, Prepared]] = [
        (cols, Q[cols]) for cols in slices(len(Q), _TUNING.tile_columns)
    ]
    run_in_threads(rows, slices(len(P), _TUNING.tile_rows), work=2.0 * ENTRY_WORK * len(P) * len(Q))
    return out


@entry_point
def choose_bandwidth(rule: str, kernel: Kernel, X: np.ndarray, w: np.ndarray) -> float:
    """Return the bandwidth of a kernel density estimate by a rule.

    Parameters
    ----------
    rule : {"scott", "silverman", "loo"}
        Scott's rule, Silverman's rule, or the maximum of the leave-one-out likelihood.  The first
        two depend only on the dimension and the effective number of points, 1 / sum_i w_i^2.
    kernel : Kernel
        The kernel, whose length scale the bandwidth multiplies.
    X : ndarray of shape (n, d)
    w : ndarray of shape (n,)
        Weights of the points, with sum 1.

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF
    >>> from mercer.models.mean_embedding import choose_bandwidth
    >>> X, w = np.zeros((32, 1)), np.full(32, 1 / 32)
    >>> choose_bandwidth("scott", RBF(), X, w)
    0.5
    """
    d = X.shape[1]
    n = 1.0 / float(w @ w)  # effective number of points; len(X) for equal weights
    if rule == "scott":
        return float(n ** (-1.0 / (d + 4)))
    silverman = float((n * (d + 2) / 4.0) ** (-1.0 / (d + 4)))
    return silverman if rule == "silverman" else _leave_one_out(kernel, X, w, silverman)


def _leave_one_out(kernel: Kernel, X: np.ndarray, w: np.ndarray, silverman: float) -> float:
    """Return the bandwidth that maximises the leave-one-out log likelihood.

    It is sum_i w_i log p_i(x_i), where p_i is the density estimated without x_i.
    """
    if len(X) < 2:
        raise ValueError(
            "bandwidth='loo' leaves out one point at a time and needs at least 2 points, got 1 "
            "sample; pass a number as bandwidth"
        )
    scaled = X / DensityKernel.of(kernel, 1.0, X.shape[1]).scale
    spread = float(np.sqrt(np.mean(w @ (scaled - w @ scaled) ** 2)))
    heaviest, other_weights = np.argmax(w), 1.0 - w
    # 1 - w would suffer from cancellation where w is nearly 1.
    other_weights[heaviest] = np.delete(w, heaviest).sum()
    if not spread > 0.0:
        raise ValueError(
            "bandwidth='loo' maximises a likelihood that has no maximum if all points are equal; "
            "pass a number as bandwidth"
        )

    def loss(log_h: float) -> float:
        density = DensityKernel.of(kernel, float(np.exp(log_h)), X.shape[1])
        log_densities = (
            log_kernel_sums(density, X, None, w) - np.log(other_weights) - density.log_constant
        )
        return -float(w @ log_densities)

    low, high = np.log(silverman * spread) + np.log(_TUNING.loo_range)
    grid = np.linspace(low, high, _TUNING.loo_grid_size)
    best = int(np.argmin([loss(g) for g in grid]))
    if best in (0, _TUNING.loo_grid_size - 1):
        end, cause = "upper", "too few points, or outliers, which you can leave out"
        if best == 0:
            end, cause = "lower", "duplicate points, which you can replace by weights"
        warn_caller(
            f"the leave-one-out likelihood has no maximum for bandwidths from {np.exp(low):.3g} "
            f"to {np.exp(high):.3g}, so the {end} end is used; the usual cause is {cause}. You can "
            f"also pass a number as bandwidth",
            ConvergenceWarning,
        )
        return float(np.exp(grid[best]))
    bounds = (grid[best - 1], grid[best + 1])
    result = minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 1e-3})
    return float(np.exp(result.x))
