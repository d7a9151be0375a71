"""Plot the eigenvalues of a kernel PCA, with their error bounds."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core import entry_point
from ._axes import PALETTE, Axes, Style, new_axes, require_attribute, require_matplotlib

__all__ = ["spectrum"]


@entry_point
def spectrum(model: Any, ax: Axes | None = None) -> Axes:
    """Plot the eigenvalues of a kernel PCA, their bounds, and the cumulative explained variance.

        lower_j <= l_j <= upper_j,        (l_1 + ... + l_j) / tr(K_c)

    The left axis, which is logarithmic, shows the eigenvalues l_1 >= l_2 >= ... of the centred
    kernel matrix K_c.  The right axis shows the cumulative fraction of the variance.  The
    intervals between the bounds are often smaller than a marker, so the legend states their largest
    relative width.  A bar that extends beyond the top of the axes has no upper bound; one that
    extends beyond the bottom has no positive lower bound.

    Parameters
    ----------
    model : KernelPCA
        A fitted model.  The bounds are its `eigenvalue_bounds_`, or `eigenvalues_` plus and minus
        `residuals_` if these do not exist.
    ax : matplotlib Axes, default=None
        The axes to draw into; None creates a new figure.

    Returns
    -------
    matplotlib Axes
        The axes of the eigenvalues; the axes of the variance are the last in `ax.figure.axes`.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from mercer import KernelPCA
    >>> from mercer.datasets import three_clusters
    >>> from mercer.plotting import spectrum
    >>> X, _ = three_clusters(90, random_state=0)
    >>> model = KernelPCA(8, kernel="rbf", gamma=10.0).fit(X)
    >>> ax = spectrum(model, ax=Figure().subplots())
    >>> ax.get_yscale()
    'log'
    """
    require_matplotlib()
    values = np.asarray(require_attribute(model, "eigenvalues_"), dtype=float)
    (bounds, kind), ratios = (
        _bounds(model, values),
        require_attribute(model, "explained_variance_ratio_"),
    )
    component = np.arange(1, len(values) + 1)
    shown = values > 0  # a logarithmic scale cannot show 0
    if not shown.any():
        raise ValueError(
            f"none of the {len(values)} eigenvalues is positive - usually because the kernel does "
            f"not distinguish the points - try a smaller length scale, or inspect the data"
        )
    positive, (lower, upper) = values[shown], bounds[shown].T
    has_upper = np.isfinite(upper)  # for a large matrix, some components may have no upper bound
    highest = max(positive[0], upper[has_upper].max(initial=0.0))
    lowest = min(positive[-1], lower[lower > 0].min(initial=positive[-1]))

    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    ax = new_axes(ax)
    has_markers, n_zero = len(values) <= 40, len(values) - len(positive)
    x, label = component[shown], "eigenvalue" + (f" ({n_zero} more are 0)" if n_zero else "")
    left_style: Style = {"color": PALETTE[0], "markersize": 6, "linewidth": 1.0}
    (line,) = ax.plot(x, positive, "o-" if has_markers else "-", label=label, **left_style)
    bar_style: Style = {"color": PALETTE[-1], "zorder": 3}
    # A bar without an upper bound extends beyond the axes.
    tops = np.where(has_upper, upper, 2.0 * highest)
    label = f"{kind}, {_widths((upper - lower) / positive)}"
    bars = ax.vlines(x, lower, tops, linewidth=1.5, label=label, **bar_style)
    ax.plot(np.r_[x, x[has_upper]], np.r_[lower, upper[has_upper]], "_", **bar_style)
    ax.set_yscale("log")
    ax.set_ylim(lowest / 1.8, 1.8 * highest)
    if highest < 300.0 * lowest:  # the axis has few powers of ten, so label other values, too
        ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        ax.yaxis.set_minor_formatter(NullFormatter())
    ax.set_xlabel("component")
    ax.set_ylabel("eigenvalue", color=PALETTE[0])
    ax.tick_params(axis="y", colors=PALETTE[0], which="both")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))

    right_axes = ax.twinx()
    right_style: Style = {"color": PALETTE[1], "markersize": 5, "linewidth": 1.0}
    percent, label = 100.0 * np.cumsum(ratios), "cumulative explained variance"
    (variance_line,) = right_axes.plot(
        component, percent, "^--" if has_markers else "--", label=label, **right_style
    )
    right_axes.set_ylim(0.0, 102.0)
    right_axes.set_ylabel("explained variance (%)", color=PALETTE[1])
    right_axes.tick_params(axis="y", colors=PALETTE[1])
    for axes in (ax, right_axes):
        axes.spines["top"].set_visible(False)
    # The legend is above the axes, because the two curves may occupy any corner.
    legend_style: Style = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "borderaxespad": 0.2}
    ax.legend(handles=[line, bars, variance_line], frameon=False, **legend_style)
    return ax


def _bounds(model: Any, values: np.ndarray) -> tuple[np.ndarray, str]:
    """Return the bounds of the eigenvalues, of shape (k, 2), and their name for the legend."""
    bounds = getattr(model, "eigenvalue_bounds_", None)
    if bounds is not None:
        return np.asarray(bounds, dtype=float), "certified bounds"
    residuals = np.asarray(require_attribute(model, "residuals_"), dtype=float)
    return np.column_stack([values - residuals, values + residuals]), "± residual"


def _widths(widths: np.ndarray) -> str:
    """Describe the largest relative width of the bounds, such as 3.1e-14, 12 % or 140 %."""
    finite = widths[np.isfinite(widths)]
    n_open = len(widths) - len(finite)
    if n_open == len(widths):
        return "no upper bounds"
    largest = float(finite.max())
    text = f"{largest:.2g}" if largest < 1e-3 else f"{float(f'{100.0 * largest:.2g}'):g} %"
    return f"relative width at most {text}" + (f"; {n_open} without upper bound" if n_open else "")
