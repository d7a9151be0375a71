"""Plot inertia and silhouettes in feature space, to choose the number of clusters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.base import clone

from .._core import entry_point
from ..gram import gram
from ..solvers import silhouette
from ._axes import PALETTE, Axes, Style, new_axes, require_attribute, require_matplotlib

__all__ = ["cluster_numbers"]


@entry_point
def cluster_numbers(
    model: Any, X: Any, numbers: Iterable[int] = range(2, 9), ax: Axes | None = None
) -> Axes:
    """Plot the inertia and the mean silhouette against the number of clusters.

        inertia = sum_i w_i min_c |k(x_i, .) - f_c|^2,    s_i = (b_i - a_i) / max(a_i, b_i)

    Here w_i are the sample weights, and f_c the cluster centres in feature space.  The inertia, on
    the left axis, decreases with every additional cluster.  After the "elbow", where it starts to
    decrease slowly, more clusters only split groups of similar points.  The silhouette s_i, on the
    right axis, compares the mean distance a_i of a point to its own cluster with the mean distance
    b_i to the nearest other cluster, both in feature space.  The largest
    mean silhouette is marked.  The cost is quadratic in the number of points for each number of
    clusters.

    Parameters
    ----------
    model : KernelKMeans
        The model, which need not be fitted.  Copies of it are fitted with each number of clusters.
    X : points
        The points.  For a precomputed matrix K, use ``kernel=Precomputed(K)`` and the indices of
        the points.
    numbers : iterable of int, default=range(2, 9)
        The numbers of clusters, each at least 2.
    ax : matplotlib Axes, default=None
        The axes to draw into; None creates a new figure.

    Returns
    -------
    matplotlib Axes
        The axes of the inertia; the axes of the silhouettes are the last in `ax.figure.axes`.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from mercer import KernelKMeans
    >>> from mercer.datasets import three_clusters
    >>> from mercer.plotting import cluster_numbers
    >>> X, _ = three_clusters(90, random_state=0)
    >>> ax = cluster_numbers(KernelKMeans(kernel="linear"), X, range(2, 6), Figure().subplots())
    >>> ax.figure.axes[-1].lines[0].get_label()
    'mean silhouette, largest at 3'
    """
    require_matplotlib()
    counts = sorted(set(numbers))
    if not counts or counts[0] < 2:
        raise ValueError(
            f"silhouettes require at least 2 clusters, but the numbers are {counts} - usually "
            f"because the range begins at 1 - try range(2, 9)"
        )
    inertias, means = [], []
    K: Any = None
    for count in counts:
        fitted = clone(model).set_params(n_clusters=count).fit(X)
        inertias.append(require_attribute(fitted, "inertia_"))
        if K is None:  # the kernel matrix is the same for all numbers of clusters
            K = gram(fitted.kernel_, X, max_memory=fitted.max_memory)
        means.append(float(silhouette(K, fitted.labels_).mean()))

    from matplotlib.ticker import MaxNLocator

    ax = new_axes(ax)
    left: Style = {"color": PALETTE[0], "linewidth": 1.0, "markersize": 6}
    (line,) = ax.plot(counts, inertias, "o-", label="inertia", **left)
    ax.set_ylim(0.0, 1.05 * max(inertias))
    ax.set_xlabel("clusters")
    ax.set_ylabel("inertia in feature space", color=PALETTE[0])
    ax.tick_params(axis="y", colors=PALETTE[0])
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    right = ax.twinx()
    style: Style = {"color": PALETTE[1], "linewidth": 1.0, "markersize": 5}
    best = int(np.argmax(means))
    label = f"mean silhouette, largest at {counts[best]}"
    (silhouette_line,) = right.plot(counts, means, "^--", label=label, **style)
    marker_style: Style = {
        "markersize": 13,
        "markerfacecolor": "none",
        "markeredgecolor": PALETTE[1],
    }
    right.plot(counts[best], means[best], "o", **marker_style)
    right.set_ylim(min(0.0, 1.1 * min(means)), max(1.15 * max(means), 0.05))
    right.set_ylabel("mean silhouette in feature space", color=PALETTE[1])
    right.tick_params(axis="y", colors=PALETTE[1])
    for axes in (ax, right):
        axes.spines["top"].set_visible(False)
    legend_style: Style = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "borderaxespad": 0.2}
    ax.legend(handles=[line, silhouette_line], frameon=False, ncols=2, **legend_style)
    return ax
