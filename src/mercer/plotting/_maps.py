"""Several maps of the same points, side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .._runtime import entry_point
from ._axes import PALETTE, SEQUENTIAL, Style, require_matplotlib
from ._labels import labels_of, scatter

__all__ = ["maps"]

_FEW = 6  # maps up to which three stand in a row, and four beyond
_MANY = 2000  # points from which marks are smaller


@entry_point
def maps(
    embeddings: Mapping[str, Any],
    y: Any = None,
    titles: Mapping[str, str] | None = None,
    figure: Any = None,
) -> Any:
    """Draw maps of the same points side by side, each with its name, in the same colours.

    Parameters
    ----------
    embeddings : dict of arrays of shape (n, q)
        Maps by name, whose first two columns are drawn; of one column, the points in their order.
    y : array-like of shape (n,), optional
        What to colour by: classes, with one legend for all maps, or a number, with a colour bar.
    titles : dict of str, optional
        By name, what to write above a map instead of its name.
    figure : matplotlib Figure, by default a new one

    Returns
    -------
    ndarray of Axes
        One for each map.

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
    found = {name: np.asarray(Z, dtype=float) for name, Z in embeddings.items()}
    if not found:
        raise ValueError("there are no maps to draw")
    n = len(next(iter(found.values())))
    labels = labels_of(y, n)
    panels = _panels(len(found), figure)
    style: Style = {"s": 14 if n <= _MANY else 5, "alpha": 0.75, "linewidths": 0}
    points = None
    for ax, (name, Z) in zip(panels, found.items(), strict=True):
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
    whole = panels[0].figure
    if points is not None:
        whole.colorbar(points, ax=list(panels), label=str(getattr(y, "name", None) or "y"))
    elif labels.names is not None:
        handles, names = panels[0].get_legend_handles_labels()
        below: Style = {"loc": "outside lower center", "ncols": min(len(names), 8)}
        whole.legend(handles, names, frameon=False, markerscale=2.0, **below)
    return panels


def _panels(count: int, figure: Any) -> Any:
    """Return axes for so many maps."""
    across = min(count, 3 if count <= _FEW else 4)
    down = -(-count // across)
    if figure is None:
        import matplotlib.pyplot as plt

        figure = plt.figure(figsize=(4.2 * across, 4.2 * down + 0.6), layout="constrained")
    panels = figure.subplots(down, across, squeeze=False).ravel()
    for ax in panels[count:]:
        ax.set_axis_off()
    return panels[:count]
