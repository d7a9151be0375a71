"""What y says about the points: a few classes, or a number that varies."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ._axes import DIVERGING, PALETTE

__all__ = ["LOOKS", "Labels", "labels_of", "looks_of_signs", "scatter"]

# A colour and a marker for each class: the marker changes when all colours have been used.
LOOKS: list[tuple[Any, str]] = [(colour, marker) for marker in "o^sD" for colour in PALETTE]


class Labels(NamedTuple):
    """y as an array, the names of its classes, and the class of each point; None where absent."""

    values: Any
    names: list[str] | None
    classes: Any


def labels_of(y: Any, n: int) -> Labels:
    """Read y: what is not a number is a class, and so are at most ten different whole numbers."""
    if y is None:
        return Labels(None, None, None)
    y = np.asarray(y)
    if y.shape != (n,):
        raise ValueError(
            f"y has shape {y.shape}, but there are {n} points - usually the labels of another "
            f"part of the data - try y of shape ({n},)"
        )
    if y.dtype.kind == "O":
        y = y.astype(str)  # text of a table; numbers would have had a type of their own
    values, classes = np.unique(y, return_inverse=True)
    if y.dtype.kind in "iuf":
        few = len(values) <= 10 and np.all(values == np.rint(values))
        return Labels(y, [f"{value:g}" for value in values] if few else None, classes)
    if len(values) > len(LOOKS):
        raise ValueError(
            f"y has {len(values)} classes, but only {len(LOOKS)} can be told apart by colour and "
            f"marker - usually y is a name of each point - try larger classes, or numbers, "
            f"which are drawn as shades"
        )
    return Labels(y, [str(value) for value in values], classes)


def looks_of_signs(first: float, second: float) -> list[tuple[Any, str]]:
    """Return looks for two classes: shades between 0, the lowest of a function, and 1."""
    import matplotlib

    shades = matplotlib.colormaps[DIVERGING]
    return [(shades(first), "o"), (shades(second), "^")]


def scatter(
    ax: Any, points: np.ndarray, labels: Labels, colour: str, looks: Any = LOOKS, **style: Any
) -> None:
    """Draw the points of each class in its own look and under its name; without names, in one."""
    if labels.names is None:
        ax.scatter(*points.T, color=colour, **style)
        return
    for c, (name, (colour, marker)) in enumerate(zip(labels.names, looks, strict=False)):
        of_class = points[labels.classes == c]
        ax.scatter(*of_class.T, color=colour, marker=marker, label=name, **style)
