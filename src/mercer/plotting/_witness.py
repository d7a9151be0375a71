"""Where two samples differ: the witness function, with both of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .._points import as_vectors
from ._axes import DIVERGING, MARKERS, PALETTE, new_axes, require_matplotlib
from ._plane import paint, window_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["witness"]

_COOL, _WARM = PALETTE[:2]  # red is positive, as on the plane


def witness(
    result_or_expansion: Any, X: Any, Y: Any, ax: Axes | None = None, *, n_grid: int | None = None
) -> Axes:
    """Draw the witness f = mean of k(x, .) - mean of k(y, .) of a two-sample test, and the data.

    f is positive where X has more mass than Y.  For points on the line, f with the samples as
    marks below; for points of the plane, f in shades (red is positive) with the line f = 0.

    Parameters
    ----------
    result_or_expansion : TwoSampleResult, Expansion of one function, or callable
    X, Y : array-like of shape (m, d) and (n, d), d = 1 or 2
        The samples.
    ax : matplotlib Axes, optional
        A new figure by default.
    n_grid : int, optional
        Points of the line at which f is evaluated, 400 by default, or per side of the plane, 100.

    Returns
    -------
    ax : matplotlib Axes

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from mercer import two_sample_test
    >>> from mercer.plotting import witness
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.normal(size=(80, 1)), rng.laplace(size=(80, 1))
    >>> ax = witness(two_sample_test(X, Y), X, Y, ax=Figure().subplots())
    >>> ax.get_ylabel()
    'witness'
    """
    require_matplotlib()
    f = getattr(result_or_expansion, "witness", result_or_expansion)
    if not callable(f):
        raise TypeError(
            f"got {result_or_expansion!r}, which has no witness - usually the samples in its "
            f"place - try the result of two_sample_test, or an Expansion"
        )
    X, Y = (_dense(A, name) for A, name in ((X, "X"), (Y, "Y")))
    if X.shape[1] != Y.shape[1] or X.shape[1] not in (1, 2):
        raise ValueError(
            f"the samples have shapes {X.shape} and {Y.shape}, but the picture is one of a line "
            f"or a plane - usually samples of more columns - try one or two columns of both"
        )
    draw = _line if X.shape[1] == 1 else _plane
    return draw(f, X, Y, ax, n_grid)


def _dense(X: Any, name: str) -> np.ndarray:
    X = as_vectors(X, name)
    if X.shape[0] == 0:
        raise ValueError(
            f"{name} has no points - usually an empty selection - try the samples of the test"
        )
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=float)


def _values(f: Callable[[np.ndarray], Any], grid: np.ndarray) -> np.ndarray:
    values = np.asarray(f(grid), dtype=float)
    if values.size != len(grid):
        raise ValueError(
            f"the witness returned shape {values.shape} for {len(grid)} points - usually an "
            f"expansion of several functions - try one of them, f[0]"
        )
    return values.ravel()


def _line(f: Any, X: np.ndarray, Y: np.ndarray, ax: Axes | None, n_grid: int | None) -> Axes:
    both = np.concatenate([X, Y])
    low, high = float(both.min()), float(both.max())
    reach = 0.08 * (high - low) or 1.0
    grid = np.linspace(low - reach, high + reach, n_grid or 400)
    values = _values(f, grid[:, None])
    ax = new_axes(ax, (6.0, 4.0))
    ax.axhline(0.0, color="0.7", linewidth=0.8, zorder=1)
    for sign, colour in ((1.0, _WARM), (-1.0, _COOL)):
        ax.fill_between(
            grid, 0.0, values, where=sign * values > 0, interpolate=True, color=colour, alpha=0.2
        )
    ax.plot(grid, values, color="0.15", linewidth=2.0, label="witness")
    for sample, name, colour, height in ((X, "X", _WARM, 0.05), (Y, "Y", _COOL, 0.02)):
        ax.plot(
            sample[:, 0],
            np.full(len(sample), height),
            "|",
            color=colour,
            markersize=8,
            alpha=min(1.0, 0.3 + 40.0 / len(sample)),
            transform=ax.get_xaxis_transform(),  # just above the axis, wherever the values are
            label=name,
        )
    span = float(np.ptp(values)) or 1.0
    ax.set_ylim(values.min() - 0.18 * span, values.max() + 0.08 * span)  # room for the marks
    ax.set_xlim(grid[0], grid[-1])
    ax.set_xlabel("x")
    ax.set_ylabel("witness")
    ax.legend(framealpha=0.85, edgecolor="none")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _plane(f: Any, X: np.ndarray, Y: np.ndarray, ax: Axes | None, n_grid: int | None) -> Axes:
    window = window_of(np.concatenate([X, Y]), n_grid or 100)
    values = _values(f, window.grid)
    ax = paint(new_axes(ax, (5.8, 5.0)), window, values, n_levels=8, points=False)
    # in the shades of the sign that each sample pulls the witness to
    import matplotlib

    shades = matplotlib.colormaps[DIVERGING]
    for sample, name, shade, marker in ((X, "X", 1.0, MARKERS[0]), (Y, "Y", 0.0, MARKERS[1])):
        style: dict[str, Any] = {
            "s": 18,
            "color": shades(shade),
            "edgecolors": "white",
            "linewidths": 0.5,
        }
        ax.scatter(sample[:, 0], sample[:, 1], marker=marker, label=name, zorder=3, **style)
    ax.legend(loc="upper right", framealpha=0.85, edgecolor="none", markerscale=1.5)
    return ax
