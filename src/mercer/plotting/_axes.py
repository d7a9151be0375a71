"""Where a picture goes: the axes of the caller, or new ones; and the colours it is drawn in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "DIVERGING",
    "MARKERS",
    "PALETTE",
    "SEQUENTIAL",
    "new_axes",
    "new_panels",
    "require_matplotlib",
]

# The colours of Okabe and Ito, which people with any form of colour blindness can tell apart,
# without their yellow, which is lost on white paper.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "^", "s", "D")  # the next one after every round of the colours
SEQUENTIAL, DIVERGING = "viridis", "RdBu_r"


def require_matplotlib() -> None:
    """Raise at once, before anything is computed, if there is nothing to draw with."""
    try:
        import matplotlib.figure  # noqa: F401 - only whether it can be
    except ImportError as error:
        raise ImportError(
            f"matplotlib cannot be imported ({error}) - mercer installs it only if asked to, "
            f"because nothing but the pictures needs it - try pip install mercer[plot]"
        ) from error


def new_axes(ax: Axes | None, figsize: tuple[float, float] = (6.4, 4.8)) -> Axes:
    """Return `ax`, or the axes of a new figure if it is None."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=figsize, layout="constrained")[1]


def new_panels(axes: Any, count: int, columns: int, size: tuple[float, float]) -> np.ndarray:
    """Return `count` of `axes` as a flat array, or those of a new figure if it is None.

    `size` is that of one panel of a new figure, in inches.
    """
    if axes is not None:
        flat = np.ravel(np.asarray(axes, dtype=object))
        if len(flat) < count:
            raise ValueError(
                f"{count} functions are to be drawn, but axes holds {len(flat)} - usually a grid "
                f"with a row too few - try plt.subplots with more panels, or fewer components"
            )
        return flat[:count]
    import matplotlib.pyplot as plt

    columns = min(columns, count)
    rows = -(-count // columns)
    figure, grid = plt.subplots(
        rows,
        columns,
        figsize=(size[0] * columns, size[1] * rows),
        layout="constrained",
        sharex=True,
        sharey=True,
        squeeze=False,
    )
    for empty in grid.flat[count:]:
        figure.delaxes(empty)
    for lowest in grid.flat[max(0, count - columns) : count]:  # of its column
        lowest.tick_params(labelbottom=True)
    return grid.flatten()[:count]
