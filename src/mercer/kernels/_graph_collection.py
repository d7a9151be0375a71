"""Graphs: many of them in a few arrays, and each of them as a view.

All nodes of a collection are numbered through, and its edges are the entries of one block-diagonal
matrix: a step that every node takes is one pass over arrays, however many graphs there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from .._points import Collection, only_column
from ._explicit import codes_of
from ._graph_files import read_graphml, read_tudataset
from ._graph_sources import (
    Entries,
    as_values,
    edges_of_list,
    edges_of_matrix,
    edges_of_networkx,
)

__all__ = ["Graph", "Graphs", "as_graphs", "spans"]

_PER_NODE = ("labels", "attributes")
_PER_ENTRY = ("edge_labels", "weights")


class Graphs(Collection):
    """Graphs with labels and attributes, a sequence: `X[3]` is a `Graph`, `X[2:5]` are `Graphs`.

    Made by `from_networkx`, `from_adjacency`, `from_edges` and `from_graphml`, and by
    `mercer.datasets.read_tudataset`.  Kernels and estimators also take lists of networkx graphs,
    of adjacency matrices and of lists of edges as they are; a `Graphs` is read only once.

    An undirected edge is an entry in both directions, a self-loop one entry.  Two edges between
    the same nodes are one.

    Attributes
    ----------
    offsets : ndarray of shape (len + 1,)
        The nodes of graph g are those from offsets[g] to offsets[g + 1].
    indptr, indices : ndarray
        The adjacency matrix of all nodes, as CSR.
    labels : ndarray of shape (n_nodes,) or None
        Numbers, strings or tuples of them.
    edge_labels, weights : ndarray of shape (n_entries,) or None
    attributes : ndarray of shape (n_nodes, d) or None
    directed : bool

    Examples
    --------
    >>> from mercer.kernels import Graphs
    >>> X = Graphs.from_edges([[(0, 1), (1, 2)], [(0, 1)]], labels=[["C", "C", "O"], ["C", "O"]])
    >>> X
    <Graphs: 2 graphs, 5 nodes, 3 edges; labels>
    >>> X[0]
    <Graph: 3 nodes, 2 edges>
    """

    def __init__(
        self,
        sizes: Any,
        entries: Entries,
        labels: Any = None,
        attributes: Any = None,
        *,
        directed: bool = False,
    ) -> None:
        self.offsets = np.concatenate([[0], np.cumsum(np.asarray(sizes, dtype=np.int64))])
        self.directed = bool(directed)
        self.labels = _node_labels(labels, self.offsets)
        self.attributes = _attributes(attributes, self.offsets)
        _check_inside(entries, self.offsets)
        entries = entries.canonical(self.offsets, self.directed)
        n = int(self.offsets[-1])
        counts = np.bincount(entries.source, minlength=n)
        self.indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        self.indices = entries.target
        self.edge_labels, self.weights = entries.labels, entries.weights

    # ------------------------------------------------------------------ from other forms

    @classmethod
    def from_networkx(
        cls, graphs: Sequence[Any], *, labels: str | None = "label", attributes: Any = None
    ) -> Self:
        """Return networkx graphs: `labels` names the attribute of nodes and edges that labels them.

        `attributes` names one attribute of nodes, or several, that hold numbers.  An edge has the
        weight that networkx knows.
        """
        return cls._from_parts(edges_of_networkx(graphs, labels, attributes))

    @classmethod
    def from_adjacency(
        cls,
        matrices: Sequence[Any],
        *,
        labels: Sequence[Any] | None = None,
        attributes: Sequence[Any] | None = None,
        directed: bool = False,
    ) -> Self:
        """Return graphs of square matrices, dense or sparse, whose entries are weights of edges.

        Labels and attributes are one sequence of values per graph.
        """
        return cls._from_parts(edges_of_matrix(matrices, labels, attributes, directed))

    @classmethod
    def from_edges(
        cls,
        edges: Sequence[Any],
        *,
        sizes: Sequence[int] | None = None,
        labels: Sequence[Any] | None = None,
        edge_labels: Sequence[Any] | None = None,
        attributes: Sequence[Any] | None = None,
        directed: bool = False,
    ) -> Self:
        """Return graphs of lists of pairs (u, v): the nodes of each are numbered from 0.

        The number of nodes is that of the labels or attributes, or `sizes`, or one more than the
        largest number that occurs.  Labels of edges come in the order of the edges.
        """
        parts = edges_of_list(edges, sizes, labels, edge_labels, attributes, directed)
        return cls._from_parts(parts)

    @classmethod
    def from_graphml(
        cls, paths: Any, *, labels: str | None = "label", attributes: Any = None
    ) -> Self:
        """Return the graphs of one or more GraphML files, which networkx reads."""
        return cls.from_networkx(read_graphml(paths), labels=labels, attributes=attributes)

    @classmethod
    def from_tudataset(cls, path: Any) -> tuple[Self, np.ndarray]:
        """Return graphs and y; see `mercer.datasets.read_tudataset`."""
        parts, y = read_tudataset(path)
        return cls._from_parts(parts), y

    @classmethod
    def _from_parts(cls, parts: dict[str, Any]) -> Self:
        return cls(**parts)

    @classmethod
    def _of_arrays(cls, offsets: np.ndarray, directed: bool, **arrays: Any) -> Self:
        """Return a collection of arrays that are known to be right."""
        self = cls.__new__(cls)
        self.offsets, self.directed = offsets, directed
        for name in ("indptr", "indices", *_PER_NODE, *_PER_ENTRY):
            setattr(self, name, arrays[name])
        return self

    # ------------------------------------------------------------------ a sequence

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, rows: Any) -> Any:
        if isinstance(rows, (int, np.integer)):
            n = len(self)
            if not -n <= rows < n:
                raise IndexError(f"there is no graph {rows}: the collection has {n}")
            return Graph(self, int(rows) % n)
        if isinstance(rows, slice):
            if rows == slice(None):  # another collection of the same arrays
                return self.with_labels(self.labels)
            rows = np.arange(*rows.indices(len(self)))
        rows = np.asarray(rows)
        rows = np.flatnonzero(rows) if rows.dtype == bool else rows.astype(np.int64)
        rows = np.where(rows < 0, rows + len(self), rows)
        return self._taken(rows)

    def _taken(self, rows: np.ndarray) -> Self:
        nodes = spans(self.offsets[rows], self.sizes[rows])
        entries = spans(self.indptr[nodes], self.degrees[nodes])
        offsets = np.concatenate([[0], np.cumsum(self.sizes[rows])])
        shift = np.repeat(offsets[:-1] - self.offsets[rows], self._entries_of(rows))
        arrays = {
            "indptr": np.concatenate([[0], np.cumsum(self.degrees[nodes])]),
            "indices": self.indices[entries] + shift,
        }
        for names, kept in ((_PER_NODE, nodes), (_PER_ENTRY, entries)):
            for name in names:
                values = getattr(self, name)
                arrays[name] = None if values is None else values[kept]
        return self._of_arrays(offsets, self.directed, **arrays)

    def _entries_of(self, rows: np.ndarray) -> np.ndarray:
        return self.indptr[self.offsets[rows + 1]] - self.indptr[self.offsets[rows]]

    def __iter__(self) -> Iterator[Graph]:
        return (Graph(self, g) for g in range(len(self)))

    def joined(self, others: Any) -> Self:
        """Return these graphs followed by others."""
        return self._concatenated([self, as_graphs(others, "Graphs")])

    @classmethod
    def _concatenated(cls, parts: list[Any]) -> Self:
        parts = [part for part in parts if len(part)] or parts[:1]
        if len(parts) == 1:
            return parts[0]
        if len({part.directed for part in parts}) > 1:
            raise ValueError(
                "some of the graphs are directed and some are not; make them alike, in networkx by "
                "graph.to_directed()"
            )
        nodes = np.cumsum([0, *(part.offsets[-1] for part in parts)])
        entries = np.cumsum([0, *(len(part.indices) for part in parts)])

        def shifted(name: str, by: np.ndarray, first: int) -> np.ndarray:
            moved = [getattr(part, name)[first:] + s for part, s in zip(parts, by, strict=False)]
            return np.concatenate([np.zeros(first, dtype=np.int64), *moved])

        arrays: dict[str, Any] = {
            "indptr": shifted("indptr", entries, 1),
            "indices": shifted("indices", nodes, 0),
        }
        for name in (*_PER_NODE, *_PER_ENTRY):
            arrays[name] = _stacked(name, parts)
        return cls._of_arrays(shifted("offsets", nodes, 1), parts[0].directed, **arrays)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Graphs):
            return NotImplemented
        names = ("offsets", "indptr", "indices", *_PER_NODE, *_PER_ENTRY)
        return self.directed == other.directed and all(
            _same(getattr(self, name), getattr(other, name)) for name in names
        )

    __hash__ = None  # type: ignore[assignment]

    def __getstate__(self) -> dict[str, Any]:
        kept = ("offsets", "directed", "indptr", "indices", *_PER_NODE, *_PER_ENTRY)
        return {name: self.__dict__[name] for name in kept}  # without what is computed from them

    def __repr__(self) -> str:
        names = (*_PER_NODE, *_PER_ENTRY)
        parts = [name.replace("_", " ") for name in names if getattr(self, name) is not None]
        kind = "directed graphs" if self.directed else "graphs"
        edges = int(np.count_nonzero(self._once))
        text = f"<Graphs: {len(self)} {kind}, {self.offsets[-1]} nodes, {edges} edges"
        return f"{text}; {', '.join(parts)}>" if parts else f"{text}>"

    # ------------------------------------------------------------------ what kernels read

    @cached_property
    def sizes(self) -> np.ndarray:
        """The number of nodes of each graph."""
        return np.diff(self.offsets)

    @cached_property
    def degrees(self) -> np.ndarray:
        """The number of entries in the row of each node: neighbours, or successors."""
        return np.diff(self.indptr)

    @cached_property
    def owner(self) -> np.ndarray:
        """The graph of each node."""
        return np.repeat(np.arange(len(self)), self.sizes)

    @cached_property
    def source(self) -> np.ndarray:
        """The node at which each entry starts; `indices` are those at which they end."""
        return np.repeat(np.arange(len(self.indptr) - 1), self.degrees)

    @cached_property
    def _once(self) -> np.ndarray:
        """Which entries stand for an edge: all of a directed graph, else one of the two."""
        return np.asarray((self.source <= self.indices) | self.directed)

    @cached_property
    def codes(self) -> np.ndarray:
        """A code for the label of each node; without labels all have the same."""
        return _codes(self.labels, int(self.offsets[-1]), "labels")

    @cached_property
    def edge_codes(self) -> np.ndarray:
        """A code for the label of each entry."""
        return _codes(self.edge_labels, len(self.indices), "edge labels")

    def with_labels(self, labels: Any) -> Self:
        """Return the same graphs with other labels of nodes: one for each, in their order.

        `X.with_labels(X.degrees)` compares degrees, where there are no labels.
        """
        arrays = {name: getattr(self, name) for name in ("indptr", "indices", *_PER_ENTRY)}
        labels = _node_labels(labels, self.offsets)
        return self._of_arrays(
            self.offsets, self.directed, labels=labels, attributes=self.attributes, **arrays
        )

    def as_directed(self) -> Self:
        """Return the same entries as directed edges: every undirected one goes both ways."""
        names = ("indptr", "indices", *_PER_NODE, *_PER_ENTRY)
        return self._of_arrays(self.offsets, True, **{name: getattr(self, name) for name in names})


@dataclass(frozen=True, eq=False, repr=False)
class Graph:
    """One graph of a collection, seen and not copied.

    Examples
    --------
    >>> from mercer.kernels import Graphs
    >>> (graph,) = Graphs.from_edges([[(0, 1), (1, 2)]], labels=[["C", "C", "O"]])
    >>> graph.edges
    array([[0, 1],
           [1, 2]])
    >>> graph.labels
    array(['C', 'C', 'O'], dtype=object)
    """

    collection: Graphs
    index: int

    def __reduce__(self) -> Any:
        return Graph, (self.collection[self.index : self.index + 1], 0)  # not with all the others

    def _entries(self) -> slice:
        first, last = self.collection.offsets[self.index : self.index + 2]
        return slice(*self.collection.indptr[[first, last]])

    def _nodes(self) -> slice:
        return slice(*self.collection.offsets[self.index : self.index + 2])

    @property
    def n_nodes(self) -> int:
        """The number of nodes."""
        return int(self.collection.sizes[self.index])

    @property
    def directed(self) -> bool:
        """Whether edges have a direction."""
        return self.collection.directed

    @property
    def labels(self) -> np.ndarray | None:
        """The label of each node."""
        labels = self.collection.labels
        return None if labels is None else labels[self._nodes()]

    @property
    def attributes(self) -> np.ndarray | None:
        """The attributes of each node, one row each."""
        attributes = self.collection.attributes
        return None if attributes is None else attributes[self._nodes()]

    @property
    def edges(self) -> np.ndarray:
        """The edges as pairs of nodes, numbered from 0; an undirected one occurs once."""
        some, first = self._entries(), self.collection.offsets[self.index]
        pairs = np.column_stack([self.collection.source[some], self.collection.indices[some]])
        return pairs[self.collection._once[some]] - first

    @property
    def edge_labels(self) -> np.ndarray | None:
        """The label of each edge, in the order of `edges`."""
        labels, some = self.collection.edge_labels, self._entries()
        return None if labels is None else labels[some][self.collection._once[some]]

    @property
    def adjacency(self) -> sp.csr_array:
        """The adjacency matrix, with the weights of the edges."""
        some, nodes, n = self._entries(), self._nodes(), self.n_nodes
        weights = self.collection.weights
        values = np.ones(some.stop - some.start) if weights is None else weights[some]
        indptr = self.collection.indptr[nodes.start : nodes.stop + 1] - some.start
        return sp.csr_array((values, self.collection.indices[some] - nodes.start, indptr), (n, n))

    def _arrays(self) -> tuple[Any, ...]:
        """Return the parts of the graph: edges with their weights, labels, attributes."""
        A, some = self.adjacency, self._entries()
        marks = self.collection.edge_labels
        parts = (self.labels, self.attributes, None if marks is None else marks[some])
        return (self.directed, A.indptr, A.indices, A.data, *parts)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Graph):
            return NotImplemented
        mine, theirs = ([g.index] for g in (self, other))
        return bool(self.collection[mine] == other.collection[theirs])

    def __hash__(self) -> int:
        return hash((self.n_nodes, self.edges.tobytes()))

    def __repr__(self) -> str:
        kind = "directed edges" if self.directed else "edges"
        return f"<Graph: {self.n_nodes} nodes, {len(self.edges)} {kind}>"


def as_graphs(X: Any, owner: str) -> Graphs:
    """Return X as one collection: `Graphs`, or a list of graphs in any of the forms it takes."""
    if isinstance(X, Graphs):
        return X
    if isinstance(X, Graph) or hasattr(X, "adjacency"):
        raise TypeError(f"{owner} takes a collection of graphs, got one graph; put it in a list")
    if isinstance(X, (str, bytes)) or not hasattr(X, "__len__"):
        raise TypeError(f"{owner} takes Graphs or a list of graphs, got {X!r}")
    graphs = list(only_column(X, owner)) if not sp.issparse(X) else list(X)
    if not graphs:
        return Graphs([], Entries.none())
    kind, read = _reader(graphs[0], 0, owner)
    for place, graph in enumerate(graphs):
        if _reader(graph, place, owner)[0] != kind:
            raise TypeError(
                f"{owner}: graph 0 is given as {kind}, but graph {place} is {graph!r}; give all "
                f"in the same form"
            )
    return read(graphs)


def _reader(graph: Any, place: int, owner: str) -> tuple[str, Callable[[list], Graphs]]:
    """Return in which form a graph has come, and what reads a list of such."""
    if isinstance(graph, Graph):
        return "a Graph", _gathered
    if hasattr(graph, "adjacency") and hasattr(graph, "nodes"):
        return "a networkx graph", Graphs.from_networkx
    if sp.issparse(graph) or isinstance(graph, np.ndarray):
        return "a matrix", Graphs.from_adjacency
    if isinstance(graph, (list, tuple, set, frozenset)):
        return "a list of edges", Graphs.from_edges
    raise TypeError(
        f"{owner}: graph {place} is {graph!r}, which is no graph; give a Graph, a networkx graph, "
        f"an adjacency matrix or a list of edges (u, v)"
    )


def _gathered(graphs: list[Graph]) -> Graphs:
    """Return views of any collections as one: a copy per collection, not per graph."""
    homes = {id(graph.collection): graph.collection for graph in graphs}
    if len(homes) == 1:
        return graphs[0].collection[np.array([graph.index for graph in graphs])]
    places: dict[int, list[int]] = {home: [] for home in homes}
    for place, graph in enumerate(graphs):
        places[id(graph.collection)].append(place)
    parts = [
        homes[home][np.array([graphs[place].index for place in some])]
        for home, some in places.items()
    ]
    order = np.concatenate([np.array(some) for some in places.values()])
    return Graphs._concatenated(parts)[np.argsort(order)]


def spans(starts: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the numbers start, ..., start + count - 1 of each span, one after the other.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels._graph_collection import spans
    >>> spans(np.array([5, 0, 9]), np.array([2, 0, 3]))
    array([ 5,  6,  9, 10, 11])
    """
    before = np.cumsum(counts) - counts
    return np.repeat(starts - before, counts) + np.arange(int(np.sum(counts)))


# ---------------------------------------------------------------------- parts


def _codes(labels: np.ndarray | None, count: int, what: str) -> np.ndarray:
    if labels is None:
        return np.zeros(count, dtype=np.uint64)
    return codes_of(labels, "Graphs", what)


def _stacked(name: str, parts: list) -> np.ndarray | None:
    """Return the values that all parts have; parts without nodes or entries need none."""
    per = "offsets" if name in _PER_NODE else "indptr"
    counted = [part for part in parts if getattr(part, per)[-1]]
    values = [getattr(part, name) for part in counted]
    if name == "weights" and any(value is not None for value in values):
        values = [np.ones(len(p.indices)) if p.weights is None else p.weights for p in counted]
    absent = [value is None for value in values]
    if all(absent):
        return None
    if any(absent):
        raise ValueError(
            f"some of the graphs have {name.replace('_', ' ')} and some have none; give them to "
            f"all or to none"
        )
    if name == "attributes" and len({value.shape[1] for value in values}) > 1:
        widths = sorted({value.shape[1] for value in values})
        raise ValueError(f"the graphs have attributes of different lengths, {widths}")
    kinds = {value.dtype.kind for value in values}
    if kinds == {"i", "O"}:  # numbers here and names there: as they are, not as text
        values = [value.astype(object) for value in values]
    return np.concatenate(values)


def _same(a: Any, b: Any) -> bool:
    if a is None or b is None:
        return a is b
    return bool(np.array_equal(a, b))


def _place(node: int, offsets: np.ndarray) -> str:
    graph = int(np.searchsorted(offsets, node, side="right")) - 1
    return f"graph {graph}, node {node - offsets[graph]}"


def _node_labels(labels: Any, offsets: np.ndarray) -> np.ndarray | None:
    if labels is None:
        return None
    values = as_values(labels)
    if len(values) != offsets[-1]:
        raise ValueError(f"{len(values)} labels for {offsets[-1]} nodes; give one to each")
    if values.dtype == object:
        missing = [node for node, value in enumerate(values) if value is None or value != value]
        if missing:
            raise ValueError(
                f"{_place(missing[0], offsets)} has no label ({values[missing[0]]!r}), and "
                f"{len(missing) - 1} more nodes have none; give one to every node, or leave out "
                f"all labels"
            )
    return values


def _attributes(attributes: Any, offsets: np.ndarray) -> np.ndarray | None:
    if attributes is None:
        return None
    rows = np.asarray(attributes, dtype=float)
    rows = rows[:, None] if rows.ndim == 1 else rows
    if rows.ndim != 2 or len(rows) != offsets[-1]:
        raise ValueError(
            f"attributes have shape {rows.shape} for {offsets[-1]} nodes; give one row to each"
        )
    bad = np.argwhere(~np.isfinite(rows))
    if len(bad):
        node, column = bad[0]
        raise ValueError(
            f"{_place(node, offsets)} has the attribute {rows[node, column]} in column {column}, "
            f"one of {len(bad)} that are not finite; fill them in, or leave out the graphs"
        )
    return rows


def _check_inside(entries: Entries, offsets: np.ndarray) -> None:
    """Refuse an edge between two graphs, or to a node that does not exist."""
    n = offsets[-1]
    for ends in (entries.source, entries.target):
        outside = np.flatnonzero((ends < 0) | (ends >= n))
        if len(outside):
            raise ValueError(
                f"edge {outside[0]} leads to node {ends[outside[0]]}, but there are {n} nodes, "
                f"numbered from 0"
            )
    owner = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    across = np.flatnonzero(owner[entries.source] != owner[entries.target])
    if len(across):
        u, v = entries.source[across[0]], entries.target[across[0]]
        raise ValueError(
            f"edge {across[0]} joins {_place(u, offsets)} and {_place(v, offsets)}; edges stay "
            f"within a graph"
        )
