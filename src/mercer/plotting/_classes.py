"""What y says about the points: a few classes, or a number that varies."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._axes import MARKERS, PALETTE

__all__ = ["as_classes"]

_MOST = len(PALETTE) * len(MARKERS)


def as_classes(y: Any, n: int) -> tuple[np.ndarray, list[str] | None, np.ndarray]:
    """Return y as an array, the names of its classes, and the class of each point.

    What is not a number is a class, and so are whole numbers if there are at most ten different
    ones.  Otherwise the names are None, and the third array means nothing.
    """
    y = np.asarray(y)
    if y.shape != (n,):
        raise ValueError(
            f"y has shape {y.shape}, but there are {n} points - usually the labels of another "
            f"part of the data - try y of shape ({n},)"
        )
    if y.dtype.kind == "O":
        y = y.astype(str)  # text of a table; numbers would have had a type of their own
    values, index = np.unique(y, return_inverse=True)
    if y.dtype.kind in "iuf":
        if len(values) > 10 or not np.all(values == np.rint(values)):
            return y, None, index
        return y, [f"{value:g}" for value in values], index
    if len(values) > _MOST:
        raise ValueError(
            f"y has {len(values)} classes, but only {_MOST} can be told apart by colour and "
            f"marker - usually y is a name of each point - try larger classes, or numbers, "
            f"which are drawn as shades"
        )
    return y, [str(value) for value in values], index
