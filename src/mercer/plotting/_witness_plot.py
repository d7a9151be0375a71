"""Plot the witness function of a two-sample test with both samples."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core import as_vectors, concatenate, entry_point
from ._axes import Axes, Style, new_axes, require_matplotlib
from ._class_colours import Labels, diverging_styles, scatter
from ._plot_window import POINT_STYLE, PlotWindow, draw_function, plane_window, window_around

__all__ = ["witness"]


@entry_point
def witness(
    result_or_expansion: Any, X: Any, Y: Any, ax: Axes | None = None, *, n_grid: int | None = None
) -> Axes:
    """Plot the witness function of a two-sample test, with both samples.

    The witness function f = mean of k(x, .) - mean of k(y, .) is positive where X has more mass
    than Y.  In one dimension, f is a curve, and marks below it show the samples.  In two
    dimensions, f is shown in colours (red is positive), with a line at f = 0.

    Parameters
    ----------
    result_or_expansion : TwoSampleResult, Expansion of one function, or callable
        The result of a test, or the witness function itself.
    X, Y : array-like of shape (m, d) and (n, d)
        The samples, with d = 1 or 2 columns.
    ax : matplotlib Axes, default=None
        The axes to draw into; None creates a new figure.
    n_grid : int, default=None
        The number of grid points per axis at which f is evaluated; None means 400 in one dimension
        and 100 in two.

    Returns
    -------
    matplotlib Axes
        The axes.

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
            f"got {result_or_expansion!r}, which has no witness function - usually because the "
            f"samples were passed first - try the result of two_sample_test, or an Expansion"
        )
    X, Y = as_vectors(X, "X"), as_vectors(Y, "Y")
    for sample, name in ((X, "X"), (Y, "Y")):
        if sample.shape[0] == 0:
            raise ValueError(
                f"{name} has no points - usually because a selection is empty - try the samples of "
                f"the test"
            )
    if X.shape[1] != Y.shape[1] or X.shape[1] not in (1, 2):
        raise ValueError(
            f"the samples have shapes {X.shape} and {Y.shape}, but the plot needs "
            f"one or two columns, the same for both samples - try to select one or two columns"
        )
    both, index = concatenate(X, Y), np.repeat([0, 1], [X.shape[0], Y.shape[0]])
    if X.shape[1] == 1:
        return _line(f, window_around(both, n_grid or 400, 0.08), index, ax)
    return _plane(f, plane_window(both, n_grid or 100), index, ax)


def _line(f: Any, window: PlotWindow, index: np.ndarray, ax: Axes | None) -> Axes:
    """Plot the witness function in one dimension."""
    values, x = window.evaluate(f, "witness"), window.sides[0]
    ax = new_axes(ax, (6.0, 4.0))
    ax.axhline(0.0, color="0.7", linewidth=0.8, zorder=1)
    (red, _), (blue, _) = _sample_styles()
    for where, colour in ((values > 0, red), (values < 0, blue)):
        ax.fill_between(x, 0.0, values, where=where, interpolate=True, color=colour, alpha=0.2)
    ax.plot(x, values, color="0.15", linewidth=2.0, label="witness")
    for c, (name, colour, height) in enumerate((("X", red, 0.05), ("Y", blue, 0.02))):
        sample = window.points[index == c, 0]
        # The marks are at a fixed height above the axis, which does not depend on the values.
        above_axis: Style = {"transform": ax.get_xaxis_transform()}
        marks: Style = {"alpha": min(1.0, 0.3 + 40.0 / len(sample)), "markersize": 8} | above_axis
        ax.plot(sample, np.full_like(sample, height), "|", color=colour, label=name, **marks)
    span = float(np.ptp(values)) or 1.0
    ax.set_ylim(values.min() - 0.18 * span, values.max() + 0.08 * span)  # leave space for the marks
    ax.set(xlim=(x[0], x[-1]), xlabel="x", ylabel="witness")
    ax.legend(framealpha=0.85, edgecolor="none")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _plane(f: Any, window: PlotWindow, index: np.ndarray, ax: Axes | None) -> Axes:
    """Plot the witness function in two dimensions."""
    values = window.evaluate(f, "witness")
    ax = draw_function(new_axes(ax, (5.8, 5.0)), window, values, n_levels=8)
    labels = Labels(None, ["X", "Y"], index)
    scatter(ax, window.points, labels, "0.1", _sample_styles(), s=18, **POINT_STYLE)
    ax.legend(loc="upper right", framealpha=0.85, edgecolor="none", markerscale=1.5)
    return ax


def _sample_styles() -> list[tuple[Any, str]]:
    """Return the styles of X (the colour of positive values) and Y (of negative values)."""
    return diverging_styles(0.95, 0.05)
