"""Parzen windows: sums of kernels in logarithms, and how wide the kernels should be."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.optimize import minimize_scalar
from sklearn.exceptions import ConvergenceWarning

from .._errors import warn_caller
from .._runtime import ENTRY_WORK, entry_point, run, slices
from ..kernels import Kernel, Prepared, exp_inplace
from ._window import Window

__all__ = ["choose_bandwidth", "log_sums"]

_ROWS, _COLS = 384, 384  # rows and columns of a tile, as in K @ V
_SEARCH = (1e-3, 1e2)  # where "loo" looks, in units of Silverman's rule for the spread of the data
_GRID = 16  # bandwidths tried before the best is refined


@entry_point
def log_sums(density: Window, X: np.ndarray, Z: np.ndarray | None, w: np.ndarray) -> np.ndarray:
    """Return log sum_j w_j k(x_i, z_j), w_j > 0; for Z = None over the other points of X.

    Tile by tile, with the largest term so far taken out, so that no sum over- or underflows.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF
    >>> from mercer.means import Window, log_sums
    >>> log_sums(Window.of(RBF(), 1.0, d=1), np.array([[50.0]]), np.zeros((1, 1)), np.ones(1))
    array([-1250.])
    """
    log_w = np.log(w)
    Q = density.kernel.prepare(X if Z is None else Z)
    # X is prepared in the frame of Z, so that an x far away costs the others no digits.
    P = Q if Z is None else density.kernel.prepare(X, like=Q)
    out = np.empty(len(P))

    def rows(part: slice) -> Iterator[None]:
        Pi = P[part]
        scratch = np.empty(len(Pi) * _COLS)
        largest, total = np.full(len(Pi), -np.inf), np.zeros(len(Pi))
        for cols, Qj in tiles:
            yield
            T = density.log_tile(Pi, Qj, scratch[: len(Pi) * len(Qj)].reshape(len(Pi), -1))
            T += log_w[cols]
            if Z is None:
                T[Pi.coincidences(Qj)] = -np.inf
            top = np.maximum(largest, T.max(axis=1))
            T -= np.where(np.isfinite(top), top, 0.0)[:, None]
            with np.errstate(invalid="ignore"):  # -inf minus itself, where there is no term yet
                total *= np.where(largest == top, 1.0, np.exp(largest - top))
            total += exp_inplace(T, 1.0).sum(axis=1)
            largest = top
        out[part] = largest + np.log(total)

    tiles: list[tuple[slice, Prepared]] = [(cols, Q[cols]) for cols in slices(len(Q), _COLS)]
    run(rows, slices(len(P), _ROWS), work=2.0 * ENTRY_WORK * len(P) * len(Q))
    return out


@entry_point
def choose_bandwidth(rule: str, kernel: Kernel, X: np.ndarray, w: np.ndarray) -> float:
    """Return h by a rule, "scott", "silverman" or "loo", for points with weights of sum 1.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF
    >>> from mercer.means import choose_bandwidth
    >>> X, w = np.zeros((32, 1)), np.full(32, 1 / 32)
    >>> choose_bandwidth("scott", RBF(), X, w)
    0.5
    """
    d = X.shape[1]
    n = 1.0 / float(w @ w)  # for equal weights the number of points
    if rule == "scott":
        return float(n ** (-1.0 / (d + 4)))
    silverman = float((n * (d + 2) / 4.0) ** (-1.0 / (d + 4)))
    return silverman if rule == "silverman" else _leave_one_out(kernel, X, w, silverman)


def _leave_one_out(kernel: Kernel, X: np.ndarray, w: np.ndarray, silverman: float) -> float:
    """Return the h that maximises sum_i w_i log p_(-i)(x_i)."""
    if len(X) < 2:
        raise ValueError(
            "bandwidth='loo' leaves out one point, and of 1 sample that leaves none; give a number"
        )
    scaled = X / Window.of(kernel, 1.0, X.shape[1]).scale
    spread = float(np.sqrt(np.mean(w @ (scaled - w @ scaled) ** 2)))
    top, others = np.argmax(w), 1.0 - w
    others[top] = np.delete(w, top).sum()  # 1 - w cancels where w is nearly 1
    if not spread > 0.0:
        raise ValueError("bandwidth='loo' finds no width: all points coincide; give a number")

    def loss(log_h: float) -> float:
        density = Window.of(kernel, float(np.exp(log_h)), X.shape[1])
        left_out = log_sums(density, X, None, w) - np.log(others) - density.log_constant
        return -float(w @ left_out)

    low, high = np.log(silverman * spread) + np.log(_SEARCH)
    grid = np.linspace(low, high, _GRID)
    best = int(np.argmin([loss(g) for g in grid]))
    if best in (0, _GRID - 1):
        end, cause = "upper", "too few points, or points far from all others: leave those out"
        if best == 0:
            end, cause = "lower", "points that occur twice: give them weights"
        warn_caller(
            f"the leave-one-out likelihood has no maximum for bandwidths from {np.exp(low):.3g} "
            f"to {np.exp(high):.3g}, and the {end} end is taken; the usual cause are {cause}, or "
            f"give a number",
            ConvergenceWarning,
        )
        return float(np.exp(grid[best]))
    bounds = (grid[best - 1], grid[best + 1])
    found = minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 1e-3})
    return float(np.exp(found.x))
