"""Graphs one edit away: the steps of a search for a pre-image."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, permutations
from typing import Any

import numpy as np

from ._graph_collection import Graph, Graphs, as_graphs
from ._graph_sources import Entries, as_values

__all__ = ["edits"]


def edits(X: Graphs) -> Callable[[Any], Graphs]:
    """Return the function that lists all graphs one edit away from a graph.

    An edit adds or removes an edge between two different nodes, or gives a node or an edge another
    of the labels that occur in X; a new edge gets each of the labels of edges.

    Examples
    --------
    >>> from mercer.kernels import Graphs
    >>> from mercer.kernels._graph_edits import edits
    >>> X = Graphs.from_edges([[(0, 1)]], labels=[["C", "O"]])
    >>> [graph.labels.tolist() for graph in edits(X)(X[0])]
    [['C', 'O'], ['O', 'O'], ['C', 'C']]
    """
    labels = [] if X.labels is None else list(dict.fromkeys(X.labels.tolist()))
    marks = [None] if X.edge_labels is None else list(dict.fromkeys(X.edge_labels.tolist()))

    def around(graph: Any) -> Graphs:
        if not isinstance(graph, Graph):  # a point as it was given
            graph = as_graphs([graph], "a pre-image")[0]
        pairs, n, names = graph.edges, graph.n_nodes, graph.edge_labels
        present = {tuple(pair): i for i, pair in enumerate(pairs.tolist())}
        # Each edit of edges: the place of the one that goes, or -1, and the one that comes, if any.
        swaps: list[tuple[int, tuple[int, int, Any] | None]] = []
        for u, v in (permutations if graph.directed else combinations)(range(n), 2):
            place = present.get((u, v), -1)
            if place >= 0:
                swaps.append((place, None))
            own = names[place] if names is not None and place >= 0 else None
            swaps += [(place, (u, v, mark)) for mark in marks if place < 0 or mark != own]
        renamed = [
            (u, name)
            for u, own in enumerate([] if graph.labels is None else graph.labels.tolist())
            for name in labels
            if name != own
        ]
        total = len(swaps) + len(renamed)
        kept = np.ones((total, len(pairs)), dtype=bool)
        for i, (place, _) in enumerate(swaps):
            if place >= 0:
                kept[i, place] = False
        copy, places = np.nonzero(kept)
        added = [(i, *edge) for i, (_, edge) in enumerate(swaps) if edge is not None]
        fresh = np.array([(i * n + u, i * n + v) for i, u, v, _ in added], dtype=np.int64)
        ends = np.concatenate([pairs[places] + n * copy[:, None], fresh.reshape(-1, 2)])
        edge_labels = None
        if X.edge_labels is not None:
            old = [] if names is None else names[places].tolist()
            edge_labels = as_values([*old, *(mark for *_, mark in added)])
        node_labels = None
        if graph.labels is not None:
            node_labels = np.tile(graph.labels, total)
            for i, (u, name) in enumerate(renamed, start=len(swaps)):
                node_labels[i * n + u] = name
        return Graphs(
            np.full(total, n),
            Entries(ends[:, 0], ends[:, 1], edge_labels),
            node_labels,
            None if graph.attributes is None else np.tile(graph.attributes, (total, 1)),
            directed=graph.directed,
        )

    return around
