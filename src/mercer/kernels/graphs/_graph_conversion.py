"""Convert networkx graphs, matrices, lists of edges and files to the arguments of `Graphs`.

Each function returns a dictionary with the keys sizes, entries, labels, attributes and directed.
Files in the TUDataset format and in GraphML are supported.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike

from ..._core import Points, warn_caller

PerGraph: TypeAlias = Sequence[Any] | None  # one sequence of values for each graph
GraphParts: TypeAlias = dict[str, Any]  # the arguments of `Graphs`
FilePath: TypeAlias = str | PathLike[str]


class Entries(NamedTuple):
    """The edges of a collection as entries of its adjacency matrix, in any order.

    Nodes are numbered consecutively through the whole collection.  Labels and weights are
    optional.
    """

    source: np.ndarray
    target: np.ndarray
    labels: np.ndarray | None = None
    weights: np.ndarray | None = None

    @classmethod
    def empty(cls) -> Self:
        """Return an instance without edges."""
        return cls(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))

    def canonical(self, offsets: np.ndarray, directed: bool) -> Entries:
        """Return the entries sorted by node and without duplicates.

        If the graphs are undirected, each edge has an entry for both directions.
        """
        source, target, *values = self
        if not directed:
            source, target = np.concatenate([source, target]), np.concatenate([target, source])
            values = [None if v is None else np.concatenate([v, v]) for v in values]
        key = source * np.int64(max(1, offsets[-1])) + target
        order = np.argsort(key, kind="stable")
        key = key[order]
        is_first = np.diff(key, prepend=-1) != 0
        for field, value in zip(("labels", "weights"), values, strict=True):
            if value is not None:
                value = value[order]
                repeated = np.flatnonzero(~is_first)
                conflict = [i for i in repeated if value[i] != value[i - 1]]
                if len(conflict):
                    i = int(conflict[0])
                    u, v = source[order[i]], target[order[i]]
                    graph = int(np.searchsorted(offsets, u, side="right")) - 1
                    raise ValueError(
                        f"graph {graph}: the edge ({u - offsets[graph]}, {v - offsets[graph]}) has "
                        f"two different {field}, {value[i - 1]!r} and {value[i]!r}; pass only one, "
                        f"or directed=True if they belong to different directions"
                    )
        chosen = order[is_first]
        chosen_values = [None if v is None else v[chosen] for v in values]
        return Entries(source[chosen], target[chosen], *chosen_values)


def as_label_array(values: Iterable[Any]) -> np.ndarray:
    """Return labels as an int64 array if all fit into int64, otherwise as an object array."""
    if isinstance(values, np.ndarray) and values.ndim == 1:
        if values.dtype.kind in "bi":
            return values.astype(np.int64)
        values = values.tolist()
    values = list(values)
    if all(isinstance(v, (int, np.integer)) and not isinstance(v, bool) for v in values):
        with suppress(OverflowError):
            return np.array(values, dtype=np.int64)
    return np.fromiter(values, dtype=object, count=len(values))


def _flatten(parts: PerGraph, sizes: Sequence[int], what: str, of: str) -> Any:
    """Concatenate one sequence of values per graph, after a check of their lengths.

    In error messages, `what` is the name of the values, and `of` is "nodes" or "edges".
    """
    if parts is None:
        return None
    if len(parts) != len(sizes):
        raise ValueError(f"got {what} for {len(parts)} graphs, but there are {len(sizes)} graphs")
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


def from_adjacency_matrices(
    matrices: Sequence[Points],
    labels: PerGraph = None,
    attributes: PerGraph = None,
    directed: bool = False,
) -> GraphParts:
    """Convert adjacency matrices: nonzero entries are edges, and their values are weights."""
    blocks = []
    for graph, matrix in enumerate(matrices):
        A = sp.coo_array(matrix)
        if A.ndim != 2 or A.shape[0] != A.shape[1]:
            raise ValueError(
                f"graph {graph} is a matrix of shape {A.shape}, but an adjacency matrix must be "
                f"square; if these are edges, pass a list of pairs instead of an array"
            )
        if not np.all(np.isfinite(A.data)):
            raise ValueError(f"graph {graph} has an edge weight that is infinite or NaN")
        A.sum_duplicates()
        A.eliminate_zeros()
        if not directed and (abs(A - A.T) > 0).nnz:
            raise ValueError(
                f"the adjacency matrix of graph {graph} is not symmetric; pass directed=True, or "
                f"symmetrise it: A + A.T"
            )
        blocks.append(A)
    together = sp.block_diag(blocks, format="coo") if blocks else sp.coo_array((0, 0))
    source, target = (ends.astype(np.int64) for ends in together.coords)
    weights = None if np.all(together.data == 1.0) else together.data.astype(float)
    entries = Entries(source, target, None, weights)
    return _parts_of([A.shape[0] for A in blocks], entries, labels, attributes, directed)


def from_edge_lists(
    edges: Sequence[Any],
    sizes: Sequence[int] | None = None,
    labels: PerGraph = None,
    edge_labels: PerGraph = None,
    attributes: PerGraph = None,
    directed: bool = False,
) -> GraphParts:
    """Convert lists of edges, which are pairs of node numbers."""
    blocks = [_edge_array(pairs, graph) for graph, pairs in enumerate(edges)]
    if sizes is None:
        known = labels if labels is not None else attributes
        if known is not None:
            sizes = [len(part) for part in known]
        else:
            sizes = [int(block.max(initial=-1)) + 1 for block in blocks]
    if len(sizes) != len(blocks):
        raise ValueError(
            f"got sizes, labels or attributes of {len(sizes)} graphs, but edges of {len(blocks)}"
        )
    for graph, (block, size) in enumerate(zip(blocks, sizes, strict=True)):
        if block.size and not 0 <= block.min() <= block.max() < size:
            bad = block[np.any((block < 0) | (block >= size), axis=1)][0].tolist()
            raise ValueError(
                f"graph {graph} has {size} nodes, numbered from 0, but an edge is {tuple(bad)}"
            )
    first_nodes = np.cumsum([0, *sizes])[:-1].astype(np.int64)
    shifted = [b + first for b, first in zip(blocks, first_nodes, strict=True)]
    ends = np.concatenate([np.zeros((0, 2), dtype=np.int64), *shifted])
    values = _flatten(edge_labels, [len(b) for b in blocks], "edge labels", "edges")
    if values is not None and None in values:
        raise ValueError(
            f"edge number {values.index(None)} of the collection has no label; label every edge, "
            f"or omit all edge labels"
        )
    label_array = None if values is None else as_label_array(values)
    entries = Entries(ends[:, 0], ends[:, 1], label_array)
    return _parts_of(sizes, entries, labels, attributes, directed)


def _parts_of(
    sizes: Sequence[int], entries: Entries, labels: PerGraph, attributes: PerGraph, directed: bool
) -> GraphParts:
    """Return the arguments of `Graphs`, with labels and attributes given graph by graph."""
    return {
        "sizes": sizes,
        "entries": entries,
        "labels": _flatten(labels, sizes, "labels", "nodes"),
        "attributes": _flatten(attributes, sizes, "attributes", "nodes"),
        "directed": directed,
    }


def _edge_array(pairs: Iterable[Any], graph: int) -> np.ndarray:
    """Return a list of edges as an array of shape (n_edges, 2)."""
    pairs = sorted(pairs) if isinstance(pairs, (set, frozenset)) else pairs
    try:
        block = np.asarray(pairs)
        has_pairs = block.size == 0 or (block.ndim == 2 and block.shape[1] == 2)
        has_integers = block.size == 0 or block.dtype.kind in "iu"
    except (TypeError, ValueError):
        has_pairs = has_integers = False
    if not (has_pairs and has_integers):
        raise ValueError(
            f"graph {graph}: edges must be pairs (u, v) of node numbers, got {pairs!r}"
        )
    return block.reshape(-1, 2).astype(np.int64)


# ---------------------------------------------------------------------- networkx


_TECHNICAL = ("weight", "id")  # edge attributes that are never labels; GraphML files have "id"


def from_networkx_graphs(
    graphs: Sequence[Any],
    labels: str | None = "label",
    attributes: Any = None,
    edge_labels: str | bool | None = None,
) -> GraphParts:
    """Convert networkx graphs; see `Graphs.from_networkx` for the parameters."""
    if edge_labels is True:
        raise ValueError("edge_labels must be the name of an edge attribute, None or False")
    of_edges = labels if edge_labels is None else edge_labels
    directed = {bool(graph.is_directed()) for graph in graphs}
    if len(directed) > 1:
        raise ValueError(
            "some of the graphs are directed and some are undirected; convert all to directed "
            "graphs with graph.to_directed()"
        )
    node_counts = [0]  # cumulative numbers of nodes of the graphs
    node_labels: list[Any] = []
    labels_of_edges: list[Any] = []
    unread: set[str] = set()  # names of edge attributes that are not read
    ends, weights, rows = [], [], []
    for g, graph in enumerate(graphs):
        if graph.is_multigraph():
            raise ValueError(
                f"graph {g} is a multigraph; merge its parallel edges with networkx.Graph(graph)"
            )
        index = {node: i for i, node in enumerate(graph, start=node_counts[-1])}
        node_counts.append(node_counts[-1] + len(index))
        for node, data in graph.nodes(data=True):
            node_labels.append((g, node, data.get(labels)))
            if attributes is not None:
                rows.append(_attribute_row(data, attributes, g, node))
        for u, v, data in graph.edges(data=True):
            ends.append((index[u], index[v]))
            labels_of_edges.append((g, (u, v), data.get(of_edges) if of_edges else None))
            unread.update(map(str, data.keys() - {of_edges, *_TECHNICAL}))
            weights.append(_edge_weight(data.get("weight", 1.0), g, (u, v)))
    found = (
        _labels_or_none(node_labels, "node", labels),
        _labels_or_none(labels_of_edges, "edge", of_edges or None),
    )
    if labels not in (None, "label") and node_labels and found[0] is None and found[1] is None:
        raise ValueError(
            f"no node and no edge has the attribute {labels!r}; set labels= to the name of the "
            f"attribute that contains the labels"
        )
    if isinstance(edge_labels, str) and ends and found[1] is None:
        raise ValueError(
            f"no edge has the attribute {edge_labels!r}; the edges have the attributes "
            f"{sorted(unread)}"
        )
    if labels is not None and edge_labels is None and found[1] is None and unread:
        warn_caller(
            f"the edges have the attributes {sorted(unread)}, but not {labels!r}, so that they are "
            f"read without labels. Pass edge_labels={min(unread)!r} to use an attribute as edge "
            f"labels, or edge_labels=False to Graphs.from_networkx to ignore them"
        )
    pairs = np.array(ends, dtype=np.int64).reshape(-1, 2)
    values = None if all(w == 1.0 for w in weights) else np.array(weights)
    return {
        "sizes": np.diff(node_counts),
        "entries": Entries(pairs[:, 0], pairs[:, 1], found[1], values),
        "labels": found[0],
        "attributes": np.array(rows) if attributes is not None else None,
        "directed": directed == {True},
    }


def _labels_or_none(
    labelled: list[tuple[int, Any, Any]], what: str, labels: str | None
) -> np.ndarray | None:
    """Return the labels of all nodes or edges, or None if none of them has a label.

    `labelled` contains triples (graph, node or edge, its label or None), and `what` is "node" or
    "edge".
    """
    missing = [(graph, element) for graph, element, label in labelled if label is None]
    if len(missing) == len(labelled):
        return None
    if missing:
        graph, element = missing[0]
        raise ValueError(
            f"graph {graph}: the {what} {element!r} has no attribute {labels!r}, which "
            f"{len(labelled) - len(missing)} other {what}s have; label every {what}, or ignore "
            f"labels with Graphs.from_networkx(..., labels=None)"
        )
    return as_label_array([label for _, _, label in labelled])


def _attribute_row(data: dict[Any, Any], names: Any, graph: int, node: object) -> np.ndarray:
    """Return the numeric attributes `names` of one node as a flat array."""
    names = [names] if isinstance(names, str) else list(names)
    try:
        parts = [np.ravel(np.asarray(data[name], dtype=float)) for name in names]
    except KeyError as error:
        raise ValueError(
            f"graph {graph}: the node {node!r} has no attribute {error}, which is listed in "
            f"attributes=; its attributes are {sorted(map(str, data))}"
        ) from None
    except (TypeError, ValueError):
        raise ValueError(
            f"graph {graph}: the attributes {names} of the node {node!r} are not numbers"
        ) from None
    return np.concatenate(parts)


def _edge_weight(weight: Any, graph: int, edge: object) -> float:
    """Return the weight of an edge as a float, 1 if it is None; raise if it is not finite."""
    try:
        value = 1.0 if weight is None else float(weight)
    except (TypeError, ValueError):
        value = np.nan
    if not np.isfinite(value):
        raise ValueError(
            f"graph {graph}: the edge {edge!r} has the weight {weight!r}, which is not a finite "
            f"number"
        )
    return value


# ---------------------------------------------------------------------- files


_FILE_PARTS = (  # a dataset NAME consists of the files NAME_<part>.txt
    "A",
    "graph_indicator",
    "graph_labels",
    "graph_attributes",
    "node_labels",
    "edge_labels",
    "node_attributes",
)


def read_graphml(paths: FilePath | Iterable[FilePath]) -> list[Any]:
    """Return the graphs of one or more GraphML files as networkx graphs."""
    try:
        from networkx.readwrite.graphml import GraphMLReader
    except ImportError:
        raise ImportError(
            "reading GraphML requires networkx, which is not installed; install it with: "
            "pip install 'mercer[graphs]'"
        ) from None
    paths = [paths] if isinstance(paths, (str, PathLike)) else list(paths)
    return [graph for path in paths for graph in GraphMLReader()(path=path)]


def read_tudataset(path: FilePath) -> tuple[GraphParts, np.ndarray]:
    """Return the arguments of `Graphs` for a TUDataset, and a label or target for each graph."""
    files = _TUFiles(Path(path))
    edges, owner = files.table("A") - 1, files.table("graph_indicator")[:, 0] - 1
    targets = files.table("graph_labels", required=not files.has("graph_attributes"))
    if targets is None:
        targets = files.table("graph_attributes", dtype=float)
    n = len(targets)
    if len(owner) and not 0 <= owner.min() <= owner.max() < n:
        raise ValueError(
            f"{path}: NAME_graph_indicator.txt refers to graphs {owner.min() + 1} to "
            f"{owner.max() + 1}, but there are labels only for graphs 1 to {n}; the usual cause is "
            f"a truncated file or files of different datasets"
        )
    order = np.argsort(owner, kind="stable")  # group the nodes by graph
    new_number = np.argsort(order)
    if edges.size and not 0 <= edges.min() <= edges.max() < len(owner):
        raise ValueError(
            f"{path}: NAME_A.txt refers to nodes {edges.min() + 1} to {edges.max() + 1}, but "
            f"NAME_graph_indicator.txt has only nodes 1 to {len(owner)}; the usual cause is a "
            f"truncated file or files of different datasets"
        )
    ends = new_number[edges.reshape(-1, 2)]
    labels = files.labels("node_labels", len(owner))
    attributes = files.table("node_attributes", len(owner), dtype=float, required=False)
    arguments = {
        "sizes": np.bincount(owner, minlength=n),
        "entries": Entries(ends[:, 0], ends[:, 1], files.labels("edge_labels", len(ends))),
        "labels": None if labels is None else labels[order],
        "attributes": None if attributes is None else attributes[order],
    }
    return arguments, targets[:, 0] if targets.shape[1] == 1 else targets


class _TUFiles:
    """The contents of the files NAME_<part>.txt of a folder or a zip file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._texts: dict[str, str] = {}
        if path.is_dir():
            for file in sorted(path.iterdir()):
                self._read_part(file.name, file.read_bytes)
        elif zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                for name in sorted(archive.namelist()):
                    self._read_part(name, partial(archive.read, name))
        else:
            kind = "neither a folder nor a zip file" if path.exists() else "missing"
            raise FileNotFoundError(
                f"{path} is {kind}; pass a folder with the files NAME_A.txt, "
                f"NAME_graph_indicator.txt and NAME_graph_labels.txt, or a zip file of them"
            )

    def _read_part(self, name: str, read: Callable[[], bytes]) -> None:
        """Store the text of a file if its name ends with _<part>.txt; `read` returns its bytes."""
        for part in _FILE_PARTS:
            if name.endswith(f"_{part}.txt"):
                try:
                    self._texts[part] = read().decode("utf-8")
                except (UnicodeDecodeError, zipfile.BadZipFile, zlib.error, OSError) as error:
                    raise ValueError(f"{self.path}: {name} cannot be read: {error}") from None

    def has(self, part: str) -> bool:
        """Return True if the file NAME_<part>.txt exists."""
        return part in self._texts

    def table(
        self,
        part: str,
        n_rows: int | None = None,
        *,
        dtype: DTypeLike = np.int64,
        required: bool = True,
    ) -> Any:
        """Return the numbers of a file, one row per line; None if an optional file is missing."""
        if part not in self._texts:
            if not required:
                return None
            raise FileNotFoundError(
                f"{self.path} has no file NAME_{part}.txt, which the TUDataset layout requires; "
                f"the parts found are {sorted(self._texts) or 'none'}; GraphML files are read in "
                f"Python with Graphs.from_graphml(paths)"
            )
        words = self._texts[part].split()  # "1, 2" is split into "1," and "2"
        rows = self._texts[part].strip().count("\n") + 1 if words else 0
        flat = "".join(word if word.endswith(",") else f"{word}," for word in words)
        try:
            values = np.array(flat.rstrip(",").split(",") if flat else [], dtype=dtype)
            table = values.reshape(rows, -1) if rows else values.reshape(0, 1)
        except (ValueError, OverflowError) as error:
            where, reason = _first_bad_line(self._texts[part], dtype) or ("", str(error))
            raise ValueError(
                f"{self.path}: NAME_{part}.txt{where} cannot be read: {reason}"
            ) from None
        if part == "A" and len(table) and table.shape[1] != 2:
            raise ValueError(
                f"{self.path}: NAME_A.txt has {table.shape[1]} numbers per line, but an edge must "
                f"be a pair of nodes"
            )
        if n_rows is not None and len(table) != n_rows:
            raise ValueError(
                f"{self.path}: NAME_{part}.txt has {len(table)} lines, but {n_rows} are expected; "
                f"the file may be truncated"
            )
        return table

    def labels(self, part: str, count: int) -> np.ndarray | None:
        """Return the labels of a file, as tuples if it has several columns; None if missing."""
        table = self.table(part, count, required=False)
        if table is None or table.shape[1] == 1:
            return None if table is None else table[:, 0]
        return as_label_array(list(map(tuple, table.tolist())))


def _first_bad_line(text: str, dtype: DTypeLike) -> tuple[str, str] | None:
    """Return the position of the first malformed line, and the reason; None if there is none.

    A line is malformed if it contains text, or more or fewer numbers than the first line.
    """
    expected = None
    for number, line in enumerate(text.strip().splitlines(), start=1):
        cells = line.replace(",", " ").split()
        expected = len(cells) if expected is None else expected
        try:
            np.array(cells, dtype=dtype)
        except (ValueError, OverflowError) as error:
            return f", line {number},", str(error)
        if len(cells) != expected:
            return (
                f", line {number},",
                f"got {len(cells)} numbers, but {expected} in the first line",
            )
    return None
