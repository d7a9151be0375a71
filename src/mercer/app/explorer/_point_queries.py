"""Requests of a page about points: their neighbours, their cells, and how two groups differ."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import numpy as np

from ..._core import Points, as_float64, length, take
from ...gram import nearest_neighbors, radius_neighbors
from ...kernels import Kernel, Linear
from ...models.mean_embedding import two_sample_test
from ._neighbour_columns import points_kernel
from ._scene import Scene
from ._serialize import Message, column_message

_MAX_REQUEST_ROWS = 500  # a request about more rows than this is truncated
_MAX_TEST_POINTS = 300  # at most this many points of each group are tested
_MAX_NEIGHBOURS = 100


def scene_kernel(scene: Scene) -> Kernel:
    """Return the kernel that defines distances between the points of a scene.

    It is the kernel of the first model that has one; vectors without such a model have the
    Euclidean distance, that of the linear kernel.
    """
    kernel = points_kernel(scene.embeddings, scene.points)
    if kernel is None:
        raise ValueError(
            "these points have no distances, because no model on this page has a kernel; replace "
            "a model by a kernel PCA"
        )
    return kernel


def neighbours(scene: Scene, request: Message) -> Message:
    """Return the nearest neighbours of a point in the feature space of the kernel.

    All distances sqrt(k(x, x) - 2 k(x, z) + k(z, z)) are computed in tiles, in O(n) memory.
    `same` is the number of other points at distance 0.
    """
    kernel, X, i = scene_kernel(scene), _points(scene), int(request["row"])
    n = length(X)
    if not 0 <= i < n:
        raise ValueError(f"there is no row {i} among {n} points")
    count = min(int(request["count"]), _MAX_NEIGHBOURS, n - 1)
    x, norms = take(X, slice(i, i + 1)), np.asarray(kernel.diag(X), dtype=np.float64)
    own, same = norms[i : i + 1], 0
    squared, index = nearest_neighbors(kernel, x, X, min(n, count + 1), norms, own)
    others = np.flatnonzero(index[0] != i)[:count]
    rows, distances = index[0][others], np.sqrt(squared[0][others])
    if count and distances[0] == 0.0:
        same = len(radius_neighbors(kernel, x, X, 0.0, norms, own)[2]) - 1
    space = (
        "Euclidean distance" if kernel == Linear() else f"Distance in the feature space of {kernel}"
    )
    return {
        "rows": rows.astype(np.uint32),
        "distances": distances,
        "same": max(same, int(np.count_nonzero(distances == 0.0))),
        "text": f"{space}, among all {n} points.",
    }


def contrast(scene: Scene, request: Message) -> Message:
    """Test whether two groups of points have the same distribution, with the kernel."""
    kernel = scene_kernel(scene)
    kernel_or_default = None if kernel == Linear() else kernel
    X, Y = (
        take(_points(scene), _rows(request[name], len(scene), _MAX_TEST_POINTS))
        for name in ("selected", "rest")
    )
    result = two_sample_test(X, Y, kernel_or_default, random_state=0)
    mmd = np.sqrt(max(0.0, result.statistic))
    text = (
        f"MMD = {mmd:.4g}, p = {result.pvalue:.2g} ({result.n_permutations} permutations of "
        f"{length(X)} selected and {length(Y)} other points; kernel {result.kernel}). The p-value "
        f"describes the strength of the difference and proves nothing, because a group that was "
        f"selected in the embedding is not independent of the points."
    )
    return {"mmd": mmd, "statistic": result.statistic, "pvalue": result.pvalue, "text": text}


def cells(scene: Scene, request: Message) -> Message:
    """Return the values of some columns in some rows."""
    rows = np.array(request["rows"], dtype=np.int64)[:_MAX_REQUEST_ROWS]
    rows = rows[(rows >= 0) & (rows < len(scene))]
    table = scene.table
    columns = [
        column_message(name, take(table.columns[name], rows), boolean=name in table.booleans)
        for name in map(str, request["names"])
        if name in table.columns
    ]
    return {"rows": rows.astype(np.uint32), "columns": columns}


def requested_drawings(scene: Scene, request: Message) -> Message:
    """Return the drawings of some points."""
    rows = np.array(request["rows"], dtype=np.int64)[:_MAX_REQUEST_ROWS]
    rows = rows[(rows >= 0) & (rows < len(scene))]
    return {"items": scene.drawings(rows)}


POINT_QUERIES: dict[str, Callable[[Scene, Message], Message]] = {  # by the type of the request
    "neighbours": neighbours,
    "contrast": contrast,
    "cells": cells,
    "drawings": requested_drawings,
}


def _points(scene: Scene) -> Points:
    """Return the points; dense vectors as float64, because distances are small differences."""
    return as_float64(scene.points)


def _rows(encoded: Any, n: int, limit: int) -> np.ndarray:
    """Decode row indices, which are 32-bit integers in base64."""
    rows = np.frombuffer(base64.b64decode(encoded), "<u4").astype(np.int64)
    return rows[rows < n][:limit]
