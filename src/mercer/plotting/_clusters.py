"""How many clusters there are: inertia and silhouettes in feature space."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.base import clone

from .._runtime import entry_point
from ..gram import gram
from ..solvers import silhouette
from ._axes import PALETTE, Axes, Style, new_axes, require_matplotlib
from ._model import learned

__all__ = ["cluster_numbers"]


@entry_point
def cluster_numbers(
    model: Any, X: Any, numbers: Iterable[int] = range(2, 9), ax: Axes | None = None
) -> Axes:
    """Draw the inertia and the mean silhouette against the number of clusters.

        inertia = sum_i w_i min_c |k(x_i, .) - f_c|^2,    s_i = (b_i - a_i) / max(a_i, b_i)

    The inertia, on the left, falls with every cluster; where it begins to fall slowly, the elbow,
    further clusters divide what belongs together.  The silhouette, on the right, compares the mean
    distance in feature space to the point's own cluster, a_i, with that to the nearest other, b_i;
    its largest mean is marked.  All pairs of points are looked at for each number.

    Parameters
    ----------
    model : KernelKMeans
        Fitted or not; copies of it are fitted, with each number of clusters.
    X : points
        Not a precomputed matrix: then use ``kernel=Precomputed(K)``, and indices as points.
    numbers : iterable of int
        From 2 on.
    ax : matplotlib Axes, by default those of a new figure; they are returned
        They show the inertia; the axes of the silhouettes are the last of `ax.figure.axes`.

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
            f"silhouettes compare clusters, and the numbers of them are {counts} - usually the "
            f"range begins at 1 - try range(2, 9)"
        )
    inertias, means = [], []
    K: Any = None
    for count in counts:
        fitted = clone(model).set_params(n_clusters=count).fit(X)
        inertias.append(learned(fitted, "inertia_"))
        if K is None:  # the kernel is the same for all
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
    name = f"mean silhouette, largest at {counts[best]}"
    (second,) = right.plot(counts, means, "^--", label=name, **style)
    ring: Style = {"markersize": 13, "markerfacecolor": "none", "markeredgecolor": PALETTE[1]}
    right.plot(counts[best], means[best], "o", **ring)
    right.set_ylim(min(0.0, 1.1 * min(means)), max(1.15 * max(means), 0.05))
    right.set_ylabel("mean silhouette in feature space", color=PALETTE[1])
    right.tick_params(axis="y", colors=PALETTE[1])
    for each in (ax, right):
        each.spines["top"].set_visible(False)
    outside: Style = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "borderaxespad": 0.2}
    ax.legend(handles=[line, second], frameon=False, ncols=2, **outside)
    return ax
