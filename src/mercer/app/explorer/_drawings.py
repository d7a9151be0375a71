"""Drawings of points in the explorer: graphs with a layout of their nodes, and series.

The page draws graphs and series as SVG.  Python computes the positions of the nodes: they minimise
the stress, the sum over pairs of nodes of ((|z_i - z_j| - d_ij) / d_ij)^2, where d_ij is the number
of edges of the shortest path.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, shortest_path

from ..._core import Points, length, take
from ...kernels import Graph, Graphs
from ._serialize import Message

MAX_DRAWN_NODES = 200  # larger graphs are described by a text
_LAYOUT_ITERATIONS = 60  # maximum number of steps of stress majorisation
_LAYOUT_STEP = 0.01  # it stops if no coordinate changes by more than this fraction of an edge
_MAX_LABELS = 250  # codes of node labels are sent as bytes
_SERIES_COLUMNS = range(8, 2001)  # vectors with another number of columns are not drawn as series
# Columns are a series if neighbouring values differ by less than this fraction of the difference of
# values in a random order (the ratio of von Neumann, whose expectation is 1 for a random order).
_MAX_ROUGHNESS = 0.5
_ROUGHNESS_ROWS = 500  # the roughness is computed from the first rows
_MAX_SERIES_LENGTH = 2000  # longer sequences are shortened to this number of values


def as_drawable_graphs(X: Points) -> Graphs | None:
    """Return the points as `Graphs`, or None if they are neither graphs nor networkx graphs."""
    if isinstance(X, Graphs):
        return X
    if isinstance(X, (list, tuple)) and len(X):
        if isinstance(X[0], Graph):
            return X[0].collection[:0].joined(X)
        if hasattr(X[0], "number_of_nodes"):
            return Graphs.from_networkx(X, edge_labels=False)
    return None


def _is_numeric_sequence(x: Any) -> bool:
    """Whether a point is a sequence of at least two numbers."""
    if isinstance(x, np.ndarray):
        return x.ndim == 1 and x.dtype.kind in "iuf" and len(x) > 1
    numeric = isinstance(x, (tuple, list)) and len(x) > 1
    return numeric and all(isinstance(v, Real) and not isinstance(v, bool) for v in x)


def can_draw(X: Points) -> bool:
    """Whether points are drawn one by one: graphs, and sequences of numbers of any length."""
    if isinstance(X, Graphs):
        return True
    if not isinstance(X, (list, tuple)) or not len(X):
        return False
    if isinstance(X[0], Graph) or hasattr(X[0], "number_of_nodes"):
        return True
    return all(_is_numeric_sequence(x) for x in X[:20])


def node_labels(X: Points) -> list[str]:
    """Return the labels of the nodes of all graphs, the most frequent first."""
    graphs = as_drawable_graphs(X)
    if graphs is None or graphs.labels is None:
        return []
    counts = Counter(map(str, graphs.labels.tolist()))
    return sorted(counts, key=lambda label: (-counts[label], label))


def drawings(
    X: Points, rows: np.ndarray, labels: Sequence[str] | None = None
) -> dict[int, Message]:
    """Return the drawings of the points with these indices, by index.

    Parameters
    ----------
    X : points
        All points.
    rows : ndarray of int
        The indices of the points to draw.
    labels : sequence of str, optional
        The labels of the nodes in the order of their codes, as returned by `node_labels`.
    """
    if not can_draw(X):
        return {}
    chosen = take(X, rows)
    graphs = as_drawable_graphs(chosen)
    if graphs is None:
        values = [np.asarray(x, dtype="f4") for x in chosen]
        steps = [max(1, -(-len(v) // _MAX_SERIES_LENGTH)) for v in values]
        return {
            int(i): {"values": v[::step]} for i, v, step in zip(rows, values, steps, strict=True)
        }
    codes = {label: min(code, _MAX_LABELS) for code, label in enumerate(labels or node_labels(X))}
    return {int(i): draw_graph(graph, codes) for i, graph in zip(rows, graphs, strict=True)}


def draw_graph(graph: Graph, codes: Mapping[str, int]) -> Message:
    """Return a graph as a message: positions and label codes of the nodes, and the edges.

    Coordinates are multiples of 1/255 of the size of the picture.  A graph with more than
    `MAX_DRAWN_NODES` nodes is only described by a text.
    """
    text, n = describe_graph(graph), graph.n_nodes
    if not 0 < n <= MAX_DRAWN_NODES:
        return {"text": text}
    positions = np.rint(255.0 * node_positions(graph.adjacency)).astype("u1")
    labels = graph.labels
    return {
        "x": positions[:, 0],
        "y": positions[:, 1],
        "edges": graph.edges.astype("u1").reshape(-1),
        "codes": None
        if labels is None
        else np.array([codes[str(label)] for label in labels.tolist()], dtype="u1"),
        "directed": graph.directed,
        "text": text,
    }


def describe_graph(graph: Graph) -> str:
    """Return the size of a graph; of a large graph, also its degrees, components and labels."""
    n, m = graph.n_nodes, len(graph.edges)
    text = f"{n} nodes, {m} {'directed edges' if graph.directed else 'edges'}"
    if n <= MAX_DRAWN_NODES:
        return text
    A = graph.adjacency
    degrees, components = np.diff(A.indptr), connected_components(A, directed=False)[0]
    text += f", {components} components, degrees {degrees.min()} to {degrees.max()}"
    text += f" (mean {degrees.mean():.3g})"
    if graph.labels is not None:
        counts = Counter(map(str, graph.labels.tolist())).most_common(3)
        text += "; labels " + ", ".join(f"{label} ({c / n:.0%})" for label, c in counts)
    return text


def node_positions(adjacency: csr_array) -> np.ndarray:
    """Return positions of the nodes of a graph in the unit square, shape (n, 2).

    The layout starts from classical scaling of the shortest-path distances and reduces the stress
    by majorisation.  It is deterministic.  Nodes of different components have a distance of the
    largest finite distance plus two.
    """
    n = adjacency.shape[0]
    if n == 1:
        return np.full((1, 2), 0.5)
    links = csr_array((np.ones(adjacency.nnz), adjacency.indices, adjacency.indptr), (n, n))
    D = shortest_path(links, directed=False, unweighted=True)
    D[~np.isfinite(D)] = D[np.isfinite(D)].max() + 2.0
    Z = _classical_scaling(D)
    # Without this, nodes at equal positions would never separate.
    angles = 2.0 * np.pi * np.arange(n) / n
    Z += 0.1 * np.column_stack([np.cos(angles), np.sin(angles)])
    weights = 1.0 / np.square(D + np.eye(n)) - np.eye(n)
    inverse = np.linalg.pinv(np.diag(weights.sum(axis=1)) - weights, hermitian=True)
    pulls, diagonal = -weights * D, np.arange(n)
    for _ in range(_LAYOUT_ITERATIONS):
        x, y = Z.T
        distances = np.hypot(x[:, None] - x, y[:, None] - y)
        distances[diagonal, diagonal] = 1.0
        B = pulls / np.maximum(distances, 1e-9)
        B[diagonal, diagonal] = -B.sum(axis=1)
        before, Z = Z, inverse @ (B @ Z)
        if np.abs(Z - before).max() < _LAYOUT_STEP:
            break
    Z -= Z.mean(axis=0)
    # Rotate the longest axis to the horizontal.
    Z = Z @ _with_fixed_signs(np.linalg.svd(Z, full_matrices=False)[2].T)
    low, high = Z.min(axis=0), Z.max(axis=0)
    return 0.5 + (Z - (low + high) / 2.0) / max(float((high - low).max()), 1e-9)


def _classical_scaling(D: np.ndarray) -> np.ndarray:
    """Return the coordinates in the plane whose inner products fit the distances best."""
    J = np.eye(len(D)) - 1.0 / len(D)
    values, vectors = np.linalg.eigh(-0.5 * J @ np.square(D) @ J)
    return np.asarray(_with_fixed_signs(vectors[:, -2:]) * np.sqrt(np.maximum(values[-2:], 0.0)))


def _with_fixed_signs(vectors: np.ndarray) -> np.ndarray:
    """Return columns with the signs for which their largest entries are positive."""
    largest = vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])]
    return vectors * np.where(largest < 0.0, -1.0, 1.0)


def are_series(X: np.ndarray, names: Sequence[str]) -> bool:
    """Whether the columns of vectors are an ordered sequence, so that a vector is a curve.

    The names of the columns must end in increasing numbers after a common prefix, and neighbouring
    values must be similar, compared with values in a random order.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        The vectors.
    names : sequence of str
        The names of the columns.
    """
    if X.shape[1] not in _SERIES_COLUMNS:
        return False
    parts = [re.fullmatch(r"(\D*)(\d+(?:\.\d+)?)", name) for name in names]
    if not all(parts) or len({part[1] for part in parts if part}) > 1:
        return False
    if np.any(np.diff([float(part[2]) for part in parts if part]) <= 0):
        return False
    some = X[:_ROUGHNESS_ROWS]
    steps, variances = np.square(np.diff(some, axis=1)).mean(axis=1), some.var(axis=1)
    varying = variances > 0
    if not varying.any():
        return False
    return bool(np.median(steps[varying] / (2.0 * variances[varying])) < _MAX_ROUGHNESS)


def series_columns(columns: Mapping[str, np.ndarray]) -> list[str]:
    """Return the names of the columns of numbers that are a series, or [] if there is none.

    They are the largest group of columns whose names differ only in the number at their end.  There
    may be other columns, such as the place and the date of a measurement.

    Parameters
    ----------
    columns : mapping of str to ndarray of shape (n,)
        Columns of numbers, with NaN for missing values, by name.
    """
    groups: dict[str, list[str]] = {}
    for name in columns:
        if part := re.fullmatch(r"(\D*)\d+(?:\.\d+)?", name):
            groups.setdefault(part[1], []).append(name)
    names = max(groups.values(), key=len, default=[])
    if len(names) not in _SERIES_COLUMNS:
        return []
    X = np.column_stack([columns[name][:_ROUGHNESS_ROWS] for name in names])
    known = X[np.isfinite(X).all(axis=1)]
    return names if len(known) and are_series(known, names) else []


def graph_columns(graphs: Graphs, max_labels: int = 12) -> dict[str, Any]:
    """Return the numbers of nodes and edges of graphs, and of nodes with each label."""
    edges = np.array([len(graph.edges) for graph in graphs], dtype=float)
    columns = {"nodes": graphs.sizes.astype(float), "edges": edges}
    labels = node_labels(graphs)
    if graphs.labels is not None and len(labels) <= max_labels:
        texts = np.array([str(label) for label in graphs.labels.tolist()])
        for label in labels:
            counts = np.bincount(graphs.owner[texts == label], minlength=length(graphs))
            columns[f"label {label}"] = counts.astype(float)
    return columns
