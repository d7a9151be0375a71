"""Plot several embeddings of the same points side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .._core import entry_point
from ._axes import PALETTE, SEQUENTIAL, Style, require_matplotlib
from ._class_colours import interpret_labels, scatter

__all__ = ["maps"]

_MAX_WIDE_PANELS = 6  # up to this number of plots, there are three per row; otherwise, four
_MAX_LARGE_MARKERS = 2000  # with more points, the markers are smaller


@entry_point
def maps(
    embeddings: Mapping[str, Any],
    y: Any = None,
    titles: Mapping[str, str] | None = None,
    figure: Any = None,
) -> Any:
    """Plot several two-dimensional embeddings of the same points side by side.

    Parameters
    ----------
    embeddings : dict of arrays of shape (n, q)
        Coordinates of the points, by name of the embedding.  The first two columns are plotted;
        a single column is plotted against the index of the point.
    y : array-like of shape (n,), default=None
        Values that determine the colours of the points: class labels, explained by one legend for
        all plots, or numbers, explained by a colour bar.
    titles : dict of str, default=None
        Titles of the plots, by name of the embedding; the names themselves by default.
    figure : matplotlib Figure, default=None
        The figure to draw into; None creates a new one.

    Returns
    -------
    ndarray of matplotlib Axes
        The axes of each embedding.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from mercer.plotting import maps
    >>> Z = np.random.default_rng(0).normal(size=(20, 2))
    >>> axes = maps({"one": Z, "other": -Z}, figure=Figure(layout="constrained"))
    >>> [ax.get_title(loc="left") for ax in axes]
    ['one', 'other']
    """
    require_matplotlib()
    coordinates = {name: np.asarray(Z, dtype=float) for name, Z in embeddings.items()}
    if not coordinates:
        raise ValueError("there are no embeddings to plot; pass at least one")
    n = len(next(iter(coordinates.values())))
    labels = interpret_labels(y, n)
    panels = _panels(len(coordinates), figure)
    style: Style = {"s": 14 if n <= _MAX_LARGE_MARKERS else 5, "alpha": 0.75, "linewidths": 0}
    points = None
    for ax, (name, Z) in zip(panels, coordinates.items(), strict=True):
        plane = Z[:, :2] if Z.shape[1] > 1 else np.column_stack([Z[:, 0], np.arange(n)])
        if y is not None and labels.names is None:
            points = ax.scatter(*plane.T, c=labels.values, cmap=SEQUENTIAL, **style)
        else:
            scatter(ax, plane, labels, PALETTE[0], **style)
        ax.set_title((titles or {}).get(name, name), loc="left", fontsize="medium")
        ax.set_xticks([])
        ax.set_yticks([])
        if Z.shape[1] > 1:
            ax.set_aspect("equal", adjustable="datalim")
    parent = panels[0].figure
    if points is not None:
        parent.colorbar(points, ax=list(panels), label=str(getattr(y, "name", None) or "y"))
    elif labels.names is not None:
        handles, names = panels[0].get_legend_handles_labels()
        legend_style: Style = {"loc": "outside lower center", "ncols": min(len(names), 8)}
        parent.legend(handles, names, frameon=False, markerscale=2.0, **legend_style)
    return panels


def _panels(count: int, figure: Any) -> Any:
    """Return `count` axes of a figure, in rows of three or four."""
    n_columns = min(count, 3 if count <= _MAX_WIDE_PANELS else 4)
    n_rows = -(-count // n_columns)
    if figure is None:
        import matplotlib.pyplot as plt

        figure = plt.figure(figsize=(4.2 * n_columns, 4.2 * n_rows + 0.6), layout="constrained")
    panels = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
    for ax in panels[count:]:
        ax.set_axis_off()
    return panels[:count]
