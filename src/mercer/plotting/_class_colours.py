"""Interpret y as class labels or as numbers, and draw points in the colours of their classes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ._axes import DIVERGING, PALETTE

__all__ = ["CLASS_STYLES", "Labels", "diverging_styles", "interpret_labels", "scatter"]

# The colour and the marker of each class; the marker changes after all colours have been used.
CLASS_STYLES: list[tuple[Any, str]] = [(colour, marker) for marker in "o^sD" for colour in PALETTE]


class Labels(NamedTuple):
    """Labels y as an array, the names of their classes, and the class index of each point.

    All fields are None if there are no labels.  The names are None if the labels are numbers.
    """

    values: Any
    names: list[str] | None
    classes: Any


def interpret_labels(y: Any, n: int) -> Labels:
    """Treat y as class labels if it has strings or at most ten integers, otherwise as numbers."""
    if y is None:
        return Labels(None, None, None)
    y = np.asarray(y)
    if y.shape != (n,):
        raise ValueError(
            f"y has shape {y.shape}, but there are {n} points - usually because y belongs to "
            f"another data set - try y of shape ({n},)"
        )
    if y.dtype.kind == "O":
        y = y.astype(str)  # strings of a table; numbers would have a numeric dtype
    values, classes = np.unique(y, return_inverse=True)
    if y.dtype.kind in "iuf":
        is_categorical = len(values) <= 10 and np.all(values == np.rint(values))
        return Labels(y, [f"{value:g}" for value in values] if is_categorical else None, classes)
    if len(values) > len(CLASS_STYLES):
        raise ValueError(
            f"y has {len(values)} classes, but only {len(CLASS_STYLES)} can be distinguished by "
            f"colour and marker - usually because y identifies each point - try fewer "
            f"classes, or numbers, which are drawn with a colour bar"
        )
    return Labels(y, [str(value) for value in values], classes)


def diverging_styles(first: float, second: float) -> list[tuple[Any, str]]:
    """Return the colours and markers of two classes, from positions in the diverging colormap.

    Position 0 is the colour of the lowest value of a function, and 1 that of the highest.
    """
    import matplotlib

    colormap = matplotlib.colormaps[DIVERGING]
    return [(colormap(first), "o"), (colormap(second), "^")]


def scatter(
    ax: Any,
    points: np.ndarray,
    labels: Labels,
    colour: str,
    styles: Any = CLASS_STYLES,
    **style: Any,
) -> None:
    """Draw points with one colour and marker per class, or in `colour` if there are no classes."""
    if labels.names is None:
        ax.scatter(*points.T, color=colour, **style)
        return
    for c, (name, (colour, marker)) in enumerate(zip(labels.names, styles, strict=False)):
        of_class = points[labels.classes == c]
        ax.scatter(*of_class.T, color=colour, marker=marker, label=name, **style)
