"""List all graphs that differ from a graph by one edit, for the local search for pre-images."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, permutations
from typing import Any

import numpy as np

from ._graph_collection import Graph, Graphs, as_graphs
from ._graph_conversion import Entries, as_label_array

__all__ = ["single_edit_neighbours"]


def single_edit_neighbours(X: Graphs) -> Callable[[Any], Graphs]:
    """Return a function that lists all graphs that differ from a given graph by one edit.

    An edit adds or removes an edge between two different nodes, or replaces the label of a node or
    of an edge by another label that occurs in X.  If edges have labels, an edge is added with each
    label in turn.

    Examples
    --------
    >>> from mercer.kernels import Graphs
    >>> from mercer.kernels.graphs._graph_edits import single_edit_neighbours
    >>> X = Graphs.from_edges([[(0, 1)]], labels=[["C", "O"]])
    >>> [graph.labels.tolist() for graph in single_edit_neighbours(X)(X[0])]
    [['C', 'O'], ['O', 'O'], ['C', 'C']]
    """
    all_labels = [] if X.labels is None else list(dict.fromkeys(X.labels.tolist()))
    all_edge_labels = (
        [None] if X.edge_labels is None else list(dict.fromkeys(X.edge_labels.tolist()))
    )

    def neighbours(graph: Any) -> Graphs:
        if not isinstance(graph, Graph):  # the user's starting point, such as a networkx graph
            graph = as_graphs([graph], "a pre-image")[0]
        pairs, n, old_edge_labels = graph.edges, graph.n_nodes, graph.edge_labels
        present = {tuple(pair): i for i, pair in enumerate(pairs.tolist())}
        # Each edge edit is a pair: the index of the removed edge (or -1), and the added edge (or
        # None).
        edge_edits: list[tuple[int, tuple[int, int, Any] | None]] = []
        for u, v in (permutations if graph.directed else combinations)(range(n), 2):
            edge_index = present.get((u, v), -1)
            if edge_index >= 0:
                edge_edits.append((edge_index, None))
            current = (
                old_edge_labels[edge_index]
                if old_edge_labels is not None and edge_index >= 0
                else None
            )
            edge_edits += [
                (edge_index, (u, v, edge_label))
                for edge_label in all_edge_labels
                if edge_index < 0 or edge_label != current
            ]
        label_edits = [
            (u, label)
            for u, current in enumerate([] if graph.labels is None else graph.labels.tolist())
            for label in all_labels
            if label != current
        ]
        total = len(edge_edits) + len(label_edits)
        keeps = np.ones((total, len(pairs)), dtype=bool)
        for i, (edge_index, _) in enumerate(edge_edits):
            if edge_index >= 0:
                keeps[i, edge_index] = False
        edit, edge_indices = np.nonzero(keeps)  # edit number edit[i] keeps edge edge_indices[i]
        added = [(i, *edge) for i, (_, edge) in enumerate(edge_edits) if edge is not None]
        new_ends = np.array([(i * n + u, i * n + v) for i, u, v, _ in added], dtype=np.int64)
        ends = np.concatenate([pairs[edge_indices] + n * edit[:, None], new_ends.reshape(-1, 2)])
        edge_labels = None
        if X.edge_labels is not None:
            old_values = [] if old_edge_labels is None else old_edge_labels[edge_indices].tolist()
            edge_labels = as_label_array([*old_values, *(edge_label for *_, edge_label in added)])
        node_labels = None
        if graph.labels is not None:
            node_labels = np.tile(graph.labels, total)
            for i, (u, label) in enumerate(label_edits, start=len(edge_edits)):
                node_labels[i * n + u] = label
        return Graphs(
            np.full(total, n),
            Entries(ends[:, 0], ends[:, 1], edge_labels),
            node_labels,
            None if graph.attributes is None else np.tile(graph.attributes, (total, 1)),
            directed=graph.directed,
        )

    return neighbours
