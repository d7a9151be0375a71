"""Derived columns from nearest neighbours: points that are isolated, repeated or mislabelled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..._core import Points, as_float64, length
from ...gram import nearest_neighbors
from ...kernels import Kernel, Linear
from ...tables import Table
from ._embeddings import Embedding, as_vectors

NEAREST_DISTANCE = "distance to the nearest point"
MAX_NEIGHBOUR_POINTS = 50_000  # all pairs are compared, which takes too long for more points
MAX_LABEL_COLUMNS = 4  # labels of at most this many columns are compared with those of neighbours
MAX_COLOR_CLASSES = 100  # a colour with more distinct texts or integers is not a label
MAX_OTHER_CLASSES = 20  # the same for other columns, which the user did not choose
_N_NEIGHBOURS = 10


class PointNeighbours(NamedTuple):
    """The nearest other points of each point, and their distances, both of shape (n, k)."""

    rows: np.ndarray
    distances: np.ndarray


def points_kernel(embeddings: tuple[Embedding, ...], points: Points) -> Kernel | None:
    """Return the kernel that defines distances between points, or None if there is none.

    It is the kernel of the first model that has one; vectors without such a model have the
    Euclidean distance, that of the linear kernel.
    """
    for embedding in embeddings:
        kernel = getattr(embedding.model, "kernel_", None)
        if isinstance(kernel, Kernel):
            return kernel
    is_vectors = as_vectors(points) is not None or hasattr(points, "toarray")
    return Linear() if is_vectors else None


def point_neighbours(kernel: Kernel, points: Points) -> PointNeighbours:
    """Return the ten nearest other points of each point in the feature space of the kernel.

    All pairs are compared in tiles, in O(n) memory.
    """
    X = as_float64(points)
    norms = np.asarray(kernel.diag(X), dtype=np.float64)
    squared, rows = nearest_neighbors(
        kernel, X, None, min(_N_NEIGHBOURS, length(X) - 1), norms, norms
    )
    return PointNeighbours(rows, np.sqrt(squared))


def label_codes(table: Table, name: str, max_classes: int) -> np.ndarray | None:
    """Return the class of each row as an integer, and -1 for missing values.

    Return None if the column has no classes: it contains dates, numbers that are not integers, only
    one value, or more than `max_classes` values.
    """
    values, kind = table.columns[name], table.kinds[name]
    if kind == "text":
        known = np.array([value is not None for value in values], dtype=bool)
    elif kind == "numbers":
        known = np.isfinite(values)
        if np.any(values[known] != np.rint(values[known])):
            return None
    else:
        return None
    classes, codes = np.unique(values[known], return_inverse=True)
    if not 2 <= len(classes) <= max_classes:
        return None
    result = np.full(len(values), -1, dtype=np.int64)
    result[known] = codes
    return result


def label_disagreement(neighbours: PointNeighbours, codes: np.ndarray) -> np.ndarray:
    """Return the fraction of the neighbours of each point whose class differs from its own.

    Neighbours without a class do not count.  Points without a class, and points whose neighbours
    have no class, have the value NaN.
    """
    others = codes[neighbours.rows]
    counts = np.count_nonzero(others >= 0, axis=1)
    different = np.count_nonzero((others >= 0) & (others != codes[:, None]), axis=1)
    fractions = different / np.maximum(counts, 1)
    return np.where((codes >= 0) & (counts > 0), fractions, np.nan)
