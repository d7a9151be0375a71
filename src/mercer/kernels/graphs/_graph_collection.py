"""Collections of graphs (`Graphs`), stored in a few arrays, and views of single graphs (`Graph`).

The nodes of all graphs of a collection are numbered consecutively, and the edges are the entries of
one block-diagonal adjacency matrix.  An operation on all nodes of all graphs is therefore one
vectorised pass over arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self, overload

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from ..._core import PointCollection, Points, single_column
from .._dataclass import fields_equal
from .._sparse_features import hash_codes
from ._graph_conversion import (
    Entries,
    FilePath,
    GraphParts,
    PerGraph,
    as_label_array,
    from_adjacency_matrices,
    from_edge_lists,
    from_networkx_graphs,
    read_graphml,
    read_tudataset,
)

_NODE_FIELDS = ("labels", "attributes")  # arrays with one row per node
_ENTRY_FIELDS = ("edge_labels", "weights")  # arrays with one value per adjacency entry
_STORED_FIELDS = ("offsets", "directed", "indptr", "indices", *_NODE_FIELDS, *_ENTRY_FIELDS)


class Graphs(PointCollection):
    """A collection of graphs, optionally with labels of nodes and edges and attributes of nodes.

    It is a sequence: `X[3]` is a `Graph`, and `X[2:5]` is a `Graphs`.  Create one with
    `from_networkx`, `from_adjacency`, `from_edges`, `from_graphml` or
    `mercer.datasets.read_tudataset`.  Kernels and estimators also accept lists of networkx graphs,
    of adjacency matrices and of edge lists, but they convert such a list at every call, whereas
    a `Graphs` is converted only once.

    An undirected edge is stored as two entries of the adjacency matrix, one per direction, and a
    self-loop as one entry.  Parallel entries of an edge list are merged into one edge; networkx
    multigraphs are refused.

    Parameters
    ----------
    sizes : array-like of int
        The number of nodes of each graph.
    entries : Entries
        The edges of all graphs.  Nodes are numbered consecutively through the whole collection.
    labels : sequence of length n_nodes, optional
        The labels of the nodes of all graphs: numbers, strings or tuples of them.
    attributes : array-like of shape (n_nodes,) or (n_nodes, d), optional
        Numeric features of the nodes of all graphs.
    directed : bool, default=False
        Whether the edges have a direction.

    Attributes
    ----------
    offsets : ndarray of shape (n_graphs + 1,)
        Graph g has the nodes offsets[g], ..., offsets[g + 1] - 1.
    indptr, indices : ndarray
        The adjacency matrix of all nodes, in CSR format.
    labels : ndarray of shape (n_nodes,) or None
        The node labels.
    edge_labels, weights : ndarray of shape (n_entries,) or None
        The label and the weight of each entry of the adjacency matrix.
    attributes : ndarray of shape (n_nodes, d) or None
        The node attributes.
    directed : bool
        Whether the edges have a direction.

    See Also
    --------
    Graph : One graph of a collection.
    GraphKernel : The kernels that compare graphs.
    mercer.datasets.read_tudataset : Reads a benchmark dataset.

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
        sizes: ArrayLike,
        entries: Entries,
        labels: Any = None,
        attributes: ArrayLike | None = None,
        *,
        directed: bool = False,
    ) -> None:
        self.offsets = np.concatenate([[0], np.cumsum(np.asarray(sizes, dtype=np.int64))])
        self.directed = bool(directed)
        self.labels = _check_node_labels(labels, self.offsets)
        self.attributes = _check_attributes(attributes, self.offsets)
        _check_edge_ends(entries, self.offsets)
        entries = entries.canonical(self.offsets, self.directed)
        n = int(self.offsets[-1])
        counts = np.bincount(entries.source, minlength=n)
        self.indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        self.indices = entries.target
        self.edge_labels, self.weights = entries.labels, entries.weights

    # ------------------------------------------------------------------ constructors

    @classmethod
    def from_networkx(
        cls,
        graphs: Sequence[Any],
        *,
        labels: str | None = "label",
        edge_labels: str | bool | None = None,
        attributes: Any = None,
    ) -> Self:
        """Convert networkx graphs.

        Parameters
        ----------
        graphs : sequence of networkx.Graph or networkx.DiGraph
            The edge weights are read from the edge attribute "weight".
        labels : str or None, default="label"
            The name of the networkx attribute that contains the labels of nodes, and of edges
            unless `edge_labels` is given.  None ignores labels.
        edge_labels : str, False or None, default=None
            The name of the attribute that contains the labels of edges, such as "bond".  None means
            `labels`; if the edges have only other attributes, a warning names them.  False ignores
            the labels of edges.
        attributes : str or list of str, optional
            The names of networkx node attributes that contain numbers.

        Returns
        -------
        Graphs
            The collection, with one graph per entry, in the same order.
        """
        return cls(**from_networkx_graphs(graphs, labels, attributes, edge_labels))

    @classmethod
    def from_adjacency(
        cls,
        matrices: Sequence[Points],
        *,
        labels: PerGraph = None,
        attributes: PerGraph = None,
        directed: bool = False,
    ) -> Self:
        """Convert adjacency matrices.

        Parameters
        ----------
        matrices : sequence of arrays or sparse matrices of shape (n, n)
            The entries other than 0 are edges, and their values are the edge weights.
        labels : sequence of sequences, optional
            The node labels of each graph.
        attributes : sequence of array-likes of shape (n,) or (n, d), optional
            The node attributes of each graph.
        directed : bool, default=False
            Whether the edges have a direction.  If False, the matrices must be symmetric.

        Returns
        -------
        Graphs
            The collection, with one graph per entry, in the same order.
        """
        return cls(**from_adjacency_matrices(matrices, labels, attributes, directed))

    @classmethod
    def from_edges(
        cls,
        edges: Sequence[Any],
        *,
        sizes: Sequence[int] | None = None,
        labels: PerGraph = None,
        edge_labels: PerGraph = None,
        attributes: PerGraph = None,
        directed: bool = False,
    ) -> Self:
        """Convert lists of edges.

        Parameters
        ----------
        edges : sequence of lists of pairs (u, v)
            The edges of each graph.  The nodes of each graph are numbered from 0.
        sizes : sequence of int, optional
            The number of nodes of each graph.  By default it is the number of labels or attributes
            or, without these, the largest node number plus 1.
        labels : sequence of sequences, optional
            The node labels of each graph.
        edge_labels : sequence of sequences, optional
            The edge labels of each graph, in the order of its edges.
        attributes : sequence of array-likes of shape (n,) or (n, d), optional
            The node attributes of each graph.
        directed : bool, default=False
            Whether the edges have a direction.

        Returns
        -------
        Graphs
            The collection, with one graph per entry, in the same order.
        """
        return cls(**from_edge_lists(edges, sizes, labels, edge_labels, attributes, directed))

    @classmethod
    def from_graphml(
        cls,
        paths: FilePath | Iterable[FilePath],
        *,
        labels: str | None = "label",
        edge_labels: str | bool | None = None,
        attributes: Any = None,
    ) -> Self:
        """Read graphs from GraphML files, with networkx.

        Parameters
        ----------
        paths : path or iterable of paths
            One or more GraphML files, with one graph each.
        labels : str or None, default="label"
            The name of the attribute that contains the labels of nodes and edges, as in
            `from_networkx`.
        edge_labels : str, False or None, default=None
            The name of the attribute that contains the labels of edges, as in `from_networkx`.
        attributes : str or list of str, optional
            The names of node attributes that contain numbers, as in `from_networkx`.

        Returns
        -------
        Graphs
            The collection, in the order of the files.
        """
        return cls.from_networkx(
            read_graphml(paths), labels=labels, edge_labels=edge_labels, attributes=attributes
        )

    @classmethod
    def from_tudataset(cls, path: FilePath) -> tuple[Self, np.ndarray]:
        """Read a dataset of the TUDataset collection of graph benchmarks.

        `mercer.datasets.read_tudataset` does the same, and describes the files.

        Parameters
        ----------
        path : path
            The folder with the files of the dataset, or a zip file of them.

        Returns
        -------
        graphs : Graphs
            The graphs, with the labels and attributes that the dataset contains.
        y : ndarray of shape (n_graphs,)
            The target of each graph.
        """
        parts, y = read_tudataset(path)
        return cls(**parts), y

    @classmethod
    def _from_fields(cls, fields: GraphParts) -> Self:
        """Create a collection from values of the stored fields that have already been checked."""
        self = cls.__new__(cls)
        self.__dict__.update({name: fields[name] for name in _STORED_FIELDS})
        return self

    # ------------------------------------------------------------------ sequence interface

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, rows: int | np.integer) -> Graph: ...
    @overload
    def __getitem__(self, rows: slice | np.ndarray | Sequence[int]) -> Self: ...
    def __getitem__(self, rows: Any) -> Any:
        if isinstance(rows, (int, np.integer)):
            n = len(self)
            if not -n <= rows < n:
                raise IndexError(f"graph {rows} does not exist: the collection has {n} graphs")
            return Graph(self, int(rows) % n)
        if isinstance(rows, slice):
            if rows == slice(None):  # return a new collection that shares the arrays
                return self.with_labels(self.labels)
            rows = np.arange(*rows.indices(len(self)))
        rows = np.asarray(rows)
        rows = np.flatnonzero(rows) if rows.dtype == bool else rows.astype(np.int64)
        rows = np.where(rows < 0, rows + len(self), rows)
        return self._select(rows)

    def _select(self, rows: np.ndarray) -> Self:
        """Return a new collection of the graphs with these indices."""
        nodes = concatenated_ranges(self.offsets[rows], self.sizes[rows])
        entries = concatenated_ranges(self.indptr[nodes], self.degrees[nodes])
        offsets = np.concatenate([[0], np.cumsum(self.sizes[rows])])
        shift = np.repeat(offsets[:-1] - self.offsets[rows], self._n_entries(rows))
        fields = {
            "offsets": offsets,
            "directed": self.directed,
            "indptr": np.concatenate([[0], np.cumsum(self.degrees[nodes])]),
            "indices": self.indices[entries] + shift,
        }
        for names, chosen in ((_NODE_FIELDS, nodes), (_ENTRY_FIELDS, entries)):
            for name in names:
                values = getattr(self, name)
                fields[name] = None if values is None else values[chosen]
        return self._from_fields(fields)

    def _n_entries(self, rows: np.ndarray) -> np.ndarray:
        """Return the number of adjacency entries of each of these graphs."""
        counts: np.ndarray = self.indptr[self.offsets[rows + 1]] - self.indptr[self.offsets[rows]]
        return counts

    def __iter__(self) -> Iterator[Graph]:
        return (Graph(self, g) for g in range(len(self)))

    def joined(self, others: Points) -> Self:
        """Return these graphs followed by others.

        Parameters
        ----------
        others : Graphs, or list of graphs
            The graphs to append, in any form that graph kernels accept.

        Returns
        -------
        Graphs
            The new collection.

        Examples
        --------
        >>> from mercer.kernels import Graphs
        >>> Graphs.from_edges([[(0, 1)]]).joined([[(0, 1), (1, 2)]])
        <Graphs: 2 graphs, 5 nodes, 3 edges>
        """
        return self._concatenated([self, as_graphs(others, "Graphs")])

    @classmethod
    def _concatenated(cls, parts: Sequence[Any]) -> Self:
        parts = [part for part in parts if len(part)] or parts[:1]
        if len(parts) == 1:
            single: Self = parts[0]
            return single
        if len({part.directed for part in parts}) > 1:
            raise ValueError(
                "some of the graphs are directed and some are undirected; convert all to directed "
                "graphs, in networkx with graph.to_directed()"
            )
        node_shifts = np.cumsum([0, *(part.offsets[-1] for part in parts)])
        entry_shifts = np.cumsum([0, *(len(part.indices) for part in parts)])

        def shifted(name: str, shifts: np.ndarray, first: int) -> np.ndarray:
            """Concatenate arrays of node or entry numbers, renumbered for the new collection."""
            pieces = [
                getattr(part, name)[first:] + shift
                for part, shift in zip(parts, shifts, strict=False)
            ]
            return np.concatenate([np.zeros(first, dtype=np.int64), *pieces])

        fields: GraphParts = {
            "offsets": shifted("offsets", node_shifts, 1),
            "directed": parts[0].directed,
            "indptr": shifted("indptr", entry_shifts, 1),
            "indices": shifted("indices", node_shifts, 0),
        }
        for name in (*_NODE_FIELDS, *_ENTRY_FIELDS):
            fields[name] = _concatenate_field(name, parts)
        return cls._from_fields(fields)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Graphs):
            return NotImplemented
        return all(
            fields_equal(getattr(self, name), getattr(other, name)) for name in _STORED_FIELDS
        )

    __hash__ = None  # type: ignore[assignment]

    def __getstate__(self) -> dict[str, Any]:
        # Exclude cached properties.
        return {name: self.__dict__[name] for name in _STORED_FIELDS}

    def __repr__(self) -> str:
        names = (*_NODE_FIELDS, *_ENTRY_FIELDS)
        parts = [name.replace("_", " ") for name in names if getattr(self, name) is not None]
        kind = "directed graphs" if self.directed else "graphs"
        edges = int(np.count_nonzero(self._edge_mask))
        text = f"<Graphs: {len(self)} {kind}, {self.offsets[-1]} nodes, {edges} edges"
        return f"{text}; {', '.join(parts)}>" if parts else f"{text}>"

    # ------------------------------------------------------------------ arrays for the kernels

    @cached_property
    def sizes(self) -> np.ndarray:
        """The number of nodes of each graph, shape (n_graphs,)."""
        return np.diff(self.offsets)

    @cached_property
    def degrees(self) -> np.ndarray:
        """The number of neighbours of each node; in directed graphs, the number of successors."""
        return np.diff(self.indptr)

    @cached_property
    def owner(self) -> np.ndarray:
        """The index of the graph that each node belongs to, shape (n_nodes,)."""
        return np.repeat(np.arange(len(self)), self.sizes)

    @cached_property
    def source(self) -> np.ndarray:
        """The start node of each adjacency entry; `indices` contains the end nodes."""
        return np.repeat(np.arange(len(self.indptr) - 1), self.degrees)

    @cached_property
    def _edge_mask(self) -> np.ndarray:
        """A mask of adjacency entries that selects each edge once.

        Of the two entries of an undirected edge, only one is selected.
        """
        return np.asarray((self.source <= self.indices) | self.directed)

    @cached_property
    def codes(self) -> np.ndarray:
        """The 64-bit hash code of the label of each node; all 0 if there are no labels."""
        return _label_codes(self.labels, int(self.offsets[-1]), "labels")

    @cached_property
    def edge_codes(self) -> np.ndarray:
        """The 64-bit hash code of the label of each adjacency entry; all 0 without edge labels."""
        return _label_codes(self.edge_labels, len(self.indices), "edge labels")

    def with_labels(self, labels: Any) -> Self:
        """Return the same graphs with other node labels.

        For graphs without labels, `X.with_labels(X.degrees)` is a common choice.

        Parameters
        ----------
        labels : sequence of length n_nodes, or None
            One label per node of the whole collection: numbers, strings or tuples of them.  None
            removes the labels.

        Returns
        -------
        Graphs
            A new collection that shares all other arrays with this one.

        Examples
        --------
        >>> from mercer.kernels import Graphs
        >>> X = Graphs.from_edges([[(0, 1), (1, 2)], [(0, 1)]])
        >>> X.with_labels(X.degrees)
        <Graphs: 2 graphs, 5 nodes, 3 edges; labels>
        """
        labels = _check_node_labels(labels, self.offsets)
        return self._from_fields(self.__getstate__() | {"labels": labels})

    def as_directed(self) -> Self:
        """Return the graphs as directed graphs: an undirected edge becomes two directed ones.

        Returns
        -------
        Graphs
            A new collection that shares all arrays with this one.
        """
        return self._from_fields(self.__getstate__() | {"directed": True})


@dataclass(frozen=True, eq=False, repr=False)
class Graph:
    """A view of one graph of a collection; the data is not copied.

    Parameters
    ----------
    collection : Graphs
        The collection that contains the graph.
    index : int
        The index of the graph in the collection.

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
        return Graph, (self.collection[self.index : self.index + 1], 0)  # pickle only this graph

    def _entries(self) -> slice:
        """Return the slice of adjacency entries of this graph in the arrays of the collection."""
        first, last = self.collection.offsets[self.index : self.index + 2]
        return slice(*self.collection.indptr[[first, last]])

    def _nodes(self) -> slice:
        """Return the slice of nodes of this graph in the arrays of the collection."""
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
        """The label of each node, or None."""
        labels = self.collection.labels
        return None if labels is None else labels[self._nodes()]

    @property
    def attributes(self) -> np.ndarray | None:
        """The attributes of the nodes, shape (n_nodes, d), or None."""
        attributes = self.collection.attributes
        return None if attributes is None else attributes[self._nodes()]

    @property
    def edges(self) -> np.ndarray:
        """The edges as pairs of node numbers from 0, shape (n_edges, 2).

        An undirected edge is listed once.
        """
        entries, first = self._entries(), self.collection.offsets[self.index]
        pairs = np.column_stack([self.collection.source[entries], self.collection.indices[entries]])
        positions: np.ndarray = pairs[self.collection._edge_mask[entries]] - first
        return positions

    @property
    def edge_labels(self) -> np.ndarray | None:
        """The label of each edge, in the order of `edges`, or None."""
        labels, entries = self.collection.edge_labels, self._entries()
        return None if labels is None else labels[entries][self.collection._edge_mask[entries]]

    @property
    def adjacency(self) -> sp.csr_array:
        """The adjacency matrix of edge weights, shape (n_nodes, n_nodes); weights default to 1."""
        entries, nodes, n = self._entries(), self._nodes(), self.n_nodes
        weights = self.collection.weights
        values = np.ones(entries.stop - entries.start) if weights is None else weights[entries]
        indptr = self.collection.indptr[nodes.start : nodes.stop + 1] - entries.start
        return sp.csr_array(
            (values, self.collection.indices[entries] - nodes.start, indptr), (n, n)
        )

    def _arrays(self) -> tuple[Any, ...]:
        """Return all data of the graph: direction, adjacency, labels, attributes, edge labels."""
        A, entries = self.adjacency, self._entries()
        edge_labels = self.collection.edge_labels
        of_entries = None if edge_labels is None else edge_labels[entries]
        matrix = (A.indptr, A.indices, A.data)
        return (self.directed, *matrix, self.labels, self.attributes, of_entries)

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


def as_graphs(X: Points, owner: str) -> Graphs:
    """Convert X to `Graphs`.

    X is a `Graphs`, or a list of `Graph`, networkx graphs, adjacency matrices or edge lists, all
    in the same form.  `owner` is the name of the caller in error messages.
    """
    if isinstance(X, Graphs):
        return X
    if isinstance(X, Graph) or hasattr(X, "adjacency"):
        raise TypeError(
            f"{owner} requires a collection of graphs, got a single graph; put it in a list, "
            f"or select it as a collection with a slice, X[:1] instead of X[0]"
        )
    if isinstance(X, (str, bytes)) or not hasattr(X, "__len__"):
        raise TypeError(f"{owner} requires Graphs or a list of graphs, got {X!r}")
    graphs = list(single_column(X, owner)) if not sp.issparse(X) else list(X)
    if not graphs:
        return Graphs([], Entries.empty())
    kind, read = _reader_of(graphs[0], 0, owner)
    for index, graph in enumerate(graphs):
        if _reader_of(graph, index, owner)[0] != kind:
            raise TypeError(
                f"{owner}: graph 0 is {kind}, but graph {index} is {graph!r}; pass all graphs in "
                f"the same form"
            )
    return read(graphs)


def _reader_of(graph: Any, index: int, owner: str) -> tuple[str, Callable[[list[Any]], Graphs]]:
    """Return a description of the type of a graph, and a function that converts such graphs."""
    if isinstance(graph, Graph):
        return "a Graph", _merge_views
    if hasattr(graph, "adjacency") and hasattr(graph, "nodes"):
        return "a networkx graph", Graphs.from_networkx
    if sp.issparse(graph) or isinstance(graph, np.ndarray):
        return "a matrix", Graphs.from_adjacency
    if isinstance(graph, (list, tuple, set, frozenset)):
        return "a list of edges", Graphs.from_edges
    raise TypeError(
        f"{owner}: graph {index} is {graph!r}, which is not a graph; pass a Graph, a networkx "
        f"graph, an adjacency matrix or a list of edges (u, v)"
    )


def _merge_views(graphs: list[Graph]) -> Graphs:
    """Copy the graphs of views, in order, to one new collection."""
    collections = {id(graph.collection): graph.collection for graph in graphs}
    if len(collections) == 1:
        return graphs[0].collection[np.array([graph.index for graph in graphs])]
    positions: dict[int, list[int]] = {key: [] for key in collections}
    for i, graph in enumerate(graphs):
        positions[id(graph.collection)].append(i)
    parts = [
        collections[key][np.array([graphs[i].index for i in members])]
        for key, members in positions.items()
    ]
    order = np.concatenate([np.array(members) for members in positions.values()])
    return Graphs._concatenated(parts)[np.argsort(order)]


def concatenated_ranges(starts: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Concatenate the ranges start, ..., start + count - 1 of all starts and counts.

    Examples
    --------
        >>> import numpy as np
        >>> from mercer.kernels.graphs._graph_collection import concatenated_ranges
        >>> concatenated_ranges(np.array([5, 0, 9]), np.array([2, 0, 3]))
        array([ 5,  6,  9, 10, 11])
    """
    before = np.cumsum(counts) - counts
    return np.repeat(starts - before, counts) + np.arange(int(np.sum(counts)))


# ---------------------------------------------------------------------- checks and helpers


def _label_codes(labels: np.ndarray | None, count: int, what: str) -> np.ndarray:
    """Return a 64-bit hash code of each label; all 0 if there are no labels."""
    if labels is None:
        return np.zeros(count, dtype=np.uint64)
    return hash_codes(labels, "Graphs", what)


def _concatenate_field(name: str, parts: Sequence[Graphs]) -> np.ndarray | None:
    """Concatenate a field of several collections, or return None if none of them has it.

    Collections without nodes (or without edges, for an edge field) are skipped.
    """
    counter = "offsets" if name in _NODE_FIELDS else "indptr"
    nonempty = [part for part in parts if getattr(part, counter)[-1]]
    values = [getattr(part, name) for part in nonempty]
    if name == "weights" and any(value is not None for value in values):
        values = [np.ones(len(p.indices)) if p.weights is None else p.weights for p in nonempty]
    absent = [value is None for value in values]
    if all(absent):
        return None
    if any(absent):
        raise ValueError(
            f"some of the graphs have {name.replace('_', ' ')} and others do not; provide them "
            f"for all graphs or for none"
        )
    if name == "attributes" and len({value.shape[1] for value in values}) > 1:
        widths = sorted({value.shape[1] for value in values})
        raise ValueError(f"the graphs have attributes of different lengths, {widths}")
    dtype_kinds = {value.dtype.kind for value in values}
    if dtype_kinds == {"i", "O"}:  # prevent NumPy from converting integers to strings
        values = [value.astype(object) for value in values]
    return np.concatenate(values)


def _node_position(node: int, offsets: np.ndarray) -> str:
    """Return the position of a node of the collection, such as "graph 3, node 5"."""
    graph = int(np.searchsorted(offsets, node, side="right")) - 1
    return f"graph {graph}, node {node - offsets[graph]}"


def _check_node_labels(labels: Any, offsets: np.ndarray) -> np.ndarray | None:
    """Return the node labels as an array; raise if their number is wrong or one is missing."""
    if labels is None:
        return None
    values = as_label_array(labels)
    if len(values) != offsets[-1]:
        raise ValueError(
            f"got {len(values)} labels for {offsets[-1]} nodes; pass one label per node"
        )
    if values.dtype == object:
        missing = [node for node, value in enumerate(values) if value is None or value != value]
        if missing:
            raise ValueError(
                f"{_node_position(missing[0], offsets)} has no label ({values[missing[0]]!r}), "
                f"nor do {len(missing) - 1} other nodes; label every node, or omit all labels"
            )
    return values


def _check_attributes(attributes: ArrayLike | None, offsets: np.ndarray) -> np.ndarray | None:
    """Return the node attributes as a 2-D array; raise unless all are finite numbers."""
    if attributes is None:
        return None
    rows = np.asarray(attributes, dtype=float)
    rows = rows[:, None] if rows.ndim == 1 else rows
    if rows.ndim != 2 or len(rows) != offsets[-1]:
        raise ValueError(
            f"attributes have the shape {rows.shape}, but there are {offsets[-1]} nodes; pass one "
            f"row per node"
        )
    bad = np.argwhere(~np.isfinite(rows))
    if len(bad):
        node, column = bad[0]
        raise ValueError(
            f"{_node_position(node, offsets)} has the attribute {rows[node, column]} in column "
            f"{column}; {len(bad)} attributes are not finite: impute them, or remove these graphs"
        )
    return rows


def _check_edge_ends(entries: Entries, offsets: np.ndarray) -> None:
    """Raise a ValueError if an edge connects two graphs, or ends at a node that does not exist."""
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
            f"edge {across[0]} connects {_node_position(u, offsets)} and "
            f"{_node_position(v, offsets)}; both ends of an edge must be in the same graph"
        )
