"""The eigenvalues of a kernel PCA, as far as they are known."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._runtime import entry_point
from ._axes import PALETTE, Axes, Style, new_axes, require_matplotlib
from ._model import learned

__all__ = ["spectrum"]


@entry_point
def spectrum(model: Any, ax: Axes | None = None) -> Axes:
    """Draw l_1 >= l_2 >= ..., bounds of each, and the cumulated shares.

        lower_j <= l_j <= upper_j,        (l_1 + ... + l_j) / tr(K_c)

    The eigenvalues of the centred kernel matrix K_c are on a logarithmic scale, on the left; the
    shares of the variance on the right.  Bounds are often closer than a marker is high, so that
    the legend says how wide the widest is, relative to its eigenvalue.  A bar that leaves the
    picture at the top has no upper end, one that leaves it at the bottom no positive lower one.

    Parameters
    ----------
    model : KernelPCA
        Fitted.  The bounds are its `eigenvalue_bounds_`; without them, `eigenvalues_` plus and
        minus `residuals_`.
    ax : matplotlib Axes, by default those of a new figure; they are returned
        They show the eigenvalues; the axes of the shares are the last of `ax.figure.axes`.

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
    values = np.asarray(learned(model, "eigenvalues_"), dtype=float)
    (bounds, kind), ratios = _bounds(model, values), learned(model, "explained_variance_ratio_")
    place = np.arange(1, len(values) + 1)
    shown = values > 0  # 0 has no place on a logarithmic scale
    if not shown.any():
        raise ValueError(
            f"none of the {len(values)} eigenvalues is positive - usually all points are the "
            f"same to the kernel - try a smaller length scale, or look at the data"
        )
    kept, (lower, upper) = values[shown], bounds[shown].T
    known = np.isfinite(upper)  # a large matrix may leave some components without a bound
    highest = max(kept[0], upper[known].max(initial=0.0))
    lowest = min(kept[-1], lower[lower > 0].min(initial=kept[-1]))

    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    ax = new_axes(ax)
    few, hidden = len(values) <= 40, len(values) - len(kept)
    x, name = place[shown], "eigenvalue" + (f" ({hidden} more are 0)" if hidden else "")
    left: Style = {"color": PALETTE[0], "markersize": 6, "linewidth": 1.0}
    (line,) = ax.plot(x, kept, "o-" if few else "-", label=name, **left)
    above: Style = {"color": PALETTE[-1], "zorder": 3}
    tops = np.where(known, upper, 2.0 * highest)  # without a bound, a bar leaves the picture
    name = f"{kind}, {_widths((upper - lower) / kept)}"
    bars = ax.vlines(x, lower, tops, linewidth=1.5, label=name, **above)
    ax.plot(np.r_[x, x[known]], np.r_[lower, upper[known]], "_", **above)
    ax.set_yscale("log")
    ax.set_ylim(lowest / 1.8, 1.8 * highest)
    if highest < 300.0 * lowest:  # few powers of ten: numbers between them, written plainly
        ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        ax.yaxis.set_minor_formatter(NullFormatter())
    ax.set_xlabel("component")
    ax.set_ylabel("eigenvalue", color=PALETTE[0])
    ax.tick_params(axis="y", colors=PALETTE[0], which="both")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))

    share = ax.twinx()
    right: Style = {"color": PALETTE[1], "markersize": 5, "linewidth": 1.0}
    percent, name = 100.0 * np.cumsum(ratios), "cumulated share of the variance"
    (cumulated,) = share.plot(place, percent, "^--" if few else "--", label=name, **right)
    share.set_ylim(0.0, 102.0)
    share.set_ylabel("explained variance (%)", color=PALETTE[1])
    share.tick_params(axis="y", colors=PALETTE[1])
    for each in (ax, share):
        each.spines["top"].set_visible(False)
    # The legend is above the axes: one curve falls, the other rises, and no corner is surely free.
    outside: Style = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "borderaxespad": 0.2}
    ax.legend(handles=[line, bars, cumulated], frameon=False, **outside)
    return ax


def _bounds(model: Any, values: np.ndarray) -> tuple[np.ndarray, str]:
    """Return a lower and an upper bound of each eigenvalue, shape (k, 2), and their name."""
    bounds = getattr(model, "eigenvalue_bounds_", None)
    if bounds is not None:
        return np.asarray(bounds, dtype=float), "certified bounds"
    reach = np.asarray(learned(model, "residuals_"), dtype=float)
    return np.column_stack([values - reach, values + reach]), "± residual"


def _widths(widths: np.ndarray) -> str:
    """Return the largest relative width as people read it: 3.1e-14, 12 %, 140 %."""
    known = widths[np.isfinite(widths)]
    without = len(widths) - len(known)
    if without == len(widths):
        return "none from above"
    widest = float(known.max())
    text = f"{widest:.2g}" if widest < 1e-3 else f"{float(f'{100.0 * widest:.2g}'):g} %"
    return f"relative width at most {text}" + (f"; {without} open above" if without else "")
