"""Where graphs come from: networkx, matrices, lists of edges.

Each reader returns the arguments of `Graphs`: sizes, entries, labels, attributes, directed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp

__all__ = [
    "Entries",
    "as_values",
    "edges_of_list",
    "edges_of_matrix",
    "edges_of_networkx",
]


class Entries(NamedTuple):
    """Entries of the adjacency matrix of all nodes, in any order; labels and weights if any."""

    source: np.ndarray
    target: np.ndarray
    labels: np.ndarray | None = None
    weights: np.ndarray | None = None

    @classmethod
    def none(cls) -> Self:
        """Return no entries."""
        return cls(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))

    def canonical(self, offsets: np.ndarray, directed: bool) -> Entries:
        """Return the entries in order, each once, and in both directions if there are none."""
        source, target, *values = self
        if not directed:
            source, target = np.concatenate([source, target]), np.concatenate([target, source])
            values = [None if v is None else np.concatenate([v, v]) for v in values]
        key = source * np.int64(max(1, offsets[-1])) + target
        order = np.argsort(key, kind="stable")
        key = key[order]
        new = np.diff(key, prepend=-1) != 0
        for what, value in zip(("labels", "weights"), values, strict=True):
            if value is not None:
                value = value[order]
                repeated = np.flatnonzero(~new)
                conflict = [i for i in repeated if value[i] != value[i - 1]]
                if len(conflict):
                    i = int(conflict[0])
                    u, v = source[order[i]], target[order[i]]
                    graph = int(np.searchsorted(offsets, u, side="right")) - 1
                    raise ValueError(
                        f"graph {graph}: the edge ({u - offsets[graph]}, {v - offsets[graph]}) has "
                        f"two {what}, {value[i - 1]!r} and {value[i]!r}; give one, or "
                        f"directed=True if they belong to different directions"
                    )
        kept = order[new]
        rest = [None if v is None else v[kept] for v in values]
        return Entries(source[kept], target[kept], *rest)


def as_values(values: Iterable[Any]) -> np.ndarray:
    """Return labels as an array: of integers if all fit into 64 bits, else of objects."""
    if isinstance(values, np.ndarray) and values.ndim == 1:
        if values.dtype.kind in "bi":
            return values.astype(np.int64)
        values = values.tolist()
    values = list(values)
    if all(isinstance(v, (int, np.integer)) and not isinstance(v, bool) for v in values):
        with suppress(OverflowError):
            return np.array(values, dtype=np.int64)
    return np.fromiter(values, dtype=object, count=len(values))


def _shifts(sizes: Sequence[int]) -> np.ndarray:
    return np.cumsum([0, *sizes])[:-1].astype(np.int64)


def _chained(parts: Sequence[Any] | None, sizes: Sequence[int], what: str, of: str) -> Any:
    """Return one sequence of values per graph as one sequence, checked against the sizes."""
    if parts is None:
        return None
    if len(parts) != len(sizes):
        raise ValueError(f"{what} of {len(parts)} graphs for {len(sizes)} graphs")
    for graph, (part, size) in enumerate(zip(parts, sizes, strict=True)):
        if len(part) != size:
            raise ValueError(f"graph {graph} has {size} {of}, but {len(part)} {what}")
    if what == "attributes":
        rows = [np.asarray(part, dtype=float) for part in parts if len(part)]
        rows = [row[:, None] if row.ndim == 1 else row for row in rows]
        widths = {row.shape[1] for row in rows}
        if len(widths) > 1:
            raise ValueError(f"the graphs have attributes of different lengths, {sorted(widths)}")
        return np.concatenate(rows) if rows else np.zeros((0, 1))
    return [value for part in parts for value in part]


# ---------------------------------------------------------------------- matrices and lists


def edges_of_matrix(
    matrices: Sequence[Any],
    labels: Sequence[Any] | None = None,
    attributes: Sequence[Any] | None = None,
    directed: bool = False,
) -> dict[str, Any]:
    """Read adjacency matrices; entries other than 0 are edges, and their values weights."""
    blocks = []
    for graph, matrix in enumerate(matrices):
        A = sp.coo_array(matrix)
        if A.ndim != 2 or A.shape[0] != A.shape[1]:
            raise ValueError(
                f"graph {graph} is a matrix of shape {A.shape}, but an adjacency matrix is square; "
                f"a list of edges must be a list of pairs, not an array"
            )
        if not np.all(np.isfinite(A.data)):
            raise ValueError(f"graph {graph} has weights of edges that are not finite")
        A.sum_duplicates()
        A.eliminate_zeros()
        if not directed and (abs(A - A.T) > 0).nnz:
            raise ValueError(
                f"the adjacency matrix of graph {graph} is not symmetric; pass directed=True, or "
                f"symmetrise it: A + A.T"
            )
        blocks.append(A)
    sizes = [A.shape[0] for A in blocks]
    source, target = np.zeros((2, 0), dtype=np.int64)
    weights = np.zeros(0)
    if blocks:
        shifts = _shifts(sizes)
        source, target = (
            np.concatenate([A.coords[i] + s for A, s in zip(blocks, shifts, strict=True)])
            for i in (0, 1)
        )
        weights = np.concatenate([A.data for A in blocks]).astype(float)
    entries = Entries(
        source.astype(np.int64),
        target.astype(np.int64),
        None,
        None if np.all(weights == 1.0) else weights,
    )
    return {
        "sizes": sizes,
        "entries": entries,
        "labels": _chained(labels, sizes, "labels", "nodes"),
        "attributes": _chained(attributes, sizes, "attributes", "nodes"),
        "directed": directed,
    }


def edges_of_list(
    edges: Sequence[Any],
    sizes: Sequence[int] | None = None,
    labels: Sequence[Any] | None = None,
    edge_labels: Sequence[Any] | None = None,
    attributes: Sequence[Any] | None = None,
    directed: bool = False,
) -> dict[str, Any]:
    """Read lists of pairs of nodes."""
    blocks = [_pairs(pairs, graph) for graph, pairs in enumerate(edges)]
    if sizes is None:
        known = labels if labels is not None else attributes
        if known is not None:
            sizes = [len(part) for part in known]
        else:
            sizes = [int(block.max(initial=-1)) + 1 for block in blocks]
    if len(sizes) != len(blocks):
        raise ValueError(f"sizes, labels or attributes of {len(sizes)} graphs for {len(blocks)}")
    for graph, (block, size) in enumerate(zip(blocks, sizes, strict=True)):
        if block.size and not 0 <= block.min() <= block.max() < size:
            bad = block[np.any((block < 0) | (block >= size), axis=1)][0].tolist()
            raise ValueError(
                f"graph {graph} has {size} nodes, numbered from 0, but an edge {tuple(bad)}"
            )
    shifted = [b + s for b, s in zip(blocks, _shifts(sizes), strict=True)]
    ends = np.concatenate([np.zeros((0, 2), dtype=np.int64), *shifted])
    values = _chained(edge_labels, [len(b) for b in blocks], "edge labels", "edges")
    if values is not None and None in values:
        raise ValueError(
            f"edge number {values.index(None)} of the collection has no label; give one to every "
            f"edge, or leave out all labels"
        )
    return {
        "sizes": sizes,
        "entries": Entries(ends[:, 0], ends[:, 1], None if values is None else as_values(values)),
        "labels": _chained(labels, sizes, "labels", "nodes"),
        "attributes": _chained(attributes, sizes, "attributes", "nodes"),
        "directed": directed,
    }


def _pairs(pairs: Any, graph: int) -> np.ndarray:
    """Return a list of edges as an array (m, 2)."""
    pairs = sorted(pairs) if isinstance(pairs, (set, frozenset)) else pairs
    try:
        block = np.asarray(pairs)
        fits = block.size == 0 or (block.ndim == 2 and block.shape[1] == 2)
        whole = block.size == 0 or block.dtype.kind in "iu"
    except (TypeError, ValueError):
        fits = whole = False
    if not (fits and whole):
        raise ValueError(
            f"graph {graph}: edges must be pairs (u, v) of numbers of nodes, got {pairs!r}"
        )
    return block.reshape(-1, 2).astype(np.int64)


# ---------------------------------------------------------------------- networkx


def edges_of_networkx(
    graphs: Sequence[Any], labels: str | None = "label", attributes: Any = None
) -> dict[str, Any]:
    """Read networkx graphs."""
    directed = {bool(graph.is_directed()) for graph in graphs}
    if len(directed) > 1:
        raise ValueError(
            "some of the graphs are directed and some are not; make them alike by "
            "graph.to_directed()"
        )
    totals = [0]  # of nodes
    names: list[Any] = []
    marks: list[Any] = []
    ends, weights, rows = [], [], []
    for place, graph in enumerate(graphs):
        if graph.is_multigraph():
            raise ValueError(
                f"graph {place} is a multigraph; make parallel edges one by networkx.Graph(graph)"
            )
        index = {node: i for i, node in enumerate(graph, start=totals[-1])}
        totals.append(totals[-1] + len(index))
        for node, data in graph.nodes(data=True):
            names.append((place, node, data.get(labels)))
            if attributes is not None:
                rows.append(_row(data, attributes, place, node))
        for u, v, data in graph.edges(data=True):
            ends.append((index[u], index[v]))
            marks.append((place, (u, v), data.get(labels)))
            weights.append(_weight(data.get("weight", 1.0), place, (u, v)))
    given = _given(names, "node", labels), _given(marks, "edge", labels)
    if labels not in (None, "label") and names and given[0] is None and given[1] is None:
        raise ValueError(
            f"no node and no edge has the attribute {labels!r}; labels= names the one that holds "
            f"labels"
        )
    pairs = np.array(ends, dtype=np.int64).reshape(-1, 2)
    values = None if all(w == 1.0 for w in weights) else np.array(weights)
    return {
        "sizes": np.diff(totals),
        "entries": Entries(pairs[:, 0], pairs[:, 1], given[1], values),
        "labels": given[0],
        "attributes": np.array(rows) if attributes is not None else None,
        "directed": directed == {True},
    }


def _given(marks: list[tuple[int, Any, Any]], what: str, labels: str | None) -> np.ndarray | None:
    """Return labels if all have one, None if none has."""
    missing = [(graph, thing) for graph, thing, label in marks if label is None]
    if len(missing) == len(marks):
        return None
    if missing:
        graph, thing = missing[0]
        raise ValueError(
            f"graph {graph}: the {what} {thing!r} has no attribute {labels!r}, which "
            f"{len(marks) - len(missing)} other {what}s have; give every {what} one, or leave all "
            f"out by Graphs.from_networkx(..., labels=None)"
        )
    return as_values([label for _, _, label in marks])


def _row(data: dict, names: Any, graph: int, node: Any) -> np.ndarray:
    """Return the attributes of one node as numbers."""
    names = [names] if isinstance(names, str) else list(names)
    try:
        parts = [np.ravel(np.asarray(data[name], dtype=float)) for name in names]
    except KeyError as error:
        raise ValueError(
            f"graph {graph}: the node {node!r} has no attribute {error}, which attributes= names; "
            f"it has {sorted(map(str, data))}"
        ) from None
    except (TypeError, ValueError):
        raise ValueError(
            f"graph {graph}: the attributes {names} of the node {node!r} are not numbers"
        ) from None
    return np.concatenate(parts)


def _weight(weight: Any, graph: int, edge: Any) -> float:
    """Return the weight of an edge; None stands for none, that is 1."""
    try:
        value = 1.0 if weight is None else float(weight)
    except (TypeError, ValueError):
        value = np.nan
    if not np.isfinite(value):
        raise ValueError(
            f"graph {graph}: the edge {edge!r} has the weight {weight!r}, which is no finite number"
        )
    return value
