"""Kernels of graphs by what occurs in them: nodes, edges, subtrees, shortest paths, small graphs.

All have explicit features that count, so that K is a product of two sparse matrices, and labels
that training never saw drop out of k(test, train) but count in k(test, test).

Conventions, where a kernel does not say otherwise.  Nodes without labels all have the same label.
An undirected edge and an unordered pair of nodes count once; in a directed graph an edge counts
from its source, and pairs are ordered.  A self-loop is an edge, and makes a node its own
neighbour.  Weights of edges are not looked at.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from .._runtime import check_budget
from ._base import Kernel, node
from ._claims import Claims
from ._explicit import Explicit, Terms, mix
from ._graph_collection import Graphs, as_graphs, spans
from ._graph_counts import count_graphlets, shortest_paths
from ._graph_edits import edits
from ._prepared import Prepared

__all__ = [
    "EdgeHistogram",
    "GraphKernel",
    "Graphlet",
    "ShortestPath",
    "VertexHistogram",
    "WeisfeilerLehman",
]


@node
class GraphKernel(Kernel):
    """A kernel whose points are graphs: a `Graphs`, or a list of them in any form.

    Examples
    --------
    >>> from mercer.kernels import GraphKernel, ShortestPath
    >>> isinstance(ShortestPath(), GraphKernel)
    True
    >>> ShortestPath()([[(0, 1), (1, 2)], [(0, 1)]])
    array([[5., 2.],
           [2., 1.]])
    """

    on_vectors: ClassVar[bool] = False  # whatever a base kernel of attributes takes
    reads_matrix: ClassVar[bool] = False
    domain: ClassVar[str] = "graphs"

    def _graphs(self, X: Any) -> Graphs:
        return as_graphs(X, type(self).__name__)

    def _neighbours(self, X: Any) -> Any:
        return edits(self._graphs(X))


@node
class VertexHistogram(GraphKernel, Explicit):
    """k(x, z) = sum over pairs of nodes of [their labels are equal], or of base(u, v).

    The inner product of the counts of labels.  With a base kernel, nodes are compared by their
    attributes instead: k(x, z) = sum_{u in x, v in z} base(a_u, a_v).

    Parameters
    ----------
    base : Kernel or None
        A kernel on the attributes of nodes.

    Notes
    -----
    O(nodes); with a base kernel O(nodes(X) nodes(Z)).  It sees no edges, and is the yardstick that
    a graph kernel has to beat.

    References
    ----------
    M. Sugiyama and K. M. Borgwardt, "Halting in random walk kernels", NIPS 2015.

    Examples
    --------
    >>> from mercer.kernels import Graphs, VertexHistogram
    >>> X = Graphs.from_edges([[(0, 1)], [(0, 1), (1, 2)]], labels=[["C", "O"], ["C", "C", "O"]])
    >>> VertexHistogram()(X)
    array([[2., 3.],
           [3., 5.]])
    """

    base: Kernel | None = None

    def _check(self) -> None:
        if self.base is not None and not isinstance(self.base, Kernel):
            raise TypeError(f"VertexHistogram: base must be a kernel or None, got {self.base!r}")

    def _claims(self, *inner: Claims) -> Claims:
        order = 0 if all(k.proves(0, math.inf) for k in inner) else None
        return Claims.of(inner, "inner product of sums of phi over the nodes", order, against=None)

    def _terms(self, X: Any) -> Terms:
        if self.base is not None:
            raise ValueError("VertexHistogram has counts as features only without a base kernel")
        X = self._graphs(X)
        labels = "no labels" if X.labels is None else "labels"
        kind = f"graphs whose nodes have {labels}" if len(X.owner) else ""
        return Terms.counted(len(X), X.owner, X.codes, kind)

    # With a base kernel all nodes are prepared together, and a graph is a span of them.

    def _prepare(self, X: Any, like: Prepared | None) -> Prepared:
        if self.base is None:
            return super()._prepare(X, like)
        X = self._graphs(X)
        nodes = self.base._prepare(self._inner_points(X), like.frame if like is not None else None)
        return Prepared((X.offsets[:-1], X.sizes), frame=nodes, dtype=nodes.dtype)

    def _tile(self, P: Prepared, Q: Prepared, out: np.ndarray) -> None:
        if self.base is None:
            return super()._tile(P, Q, out)
        columns = Q.frame[spans(*Q.arrays)]
        for rows in _batches(P.arrays[1], max(1, _ENTRIES // max(1, len(columns)))):
            nodes = P.frame[spans(P.arrays[0][rows], P.arrays[1][rows])]
            block = np.empty((len(nodes), len(columns)), dtype=out.dtype)
            self.base._tile(nodes, columns, block)
            out[rows] = _summed(_summed(block, P.arrays[1][rows]).T, Q.arrays[1]).T

    def _diag(self, X: Any) -> np.ndarray:
        if self.base is None:
            return super()._diag(X)
        return Kernel._diag(self, X)

    def _pullback(self, X: Any, Z: Any, W: np.ndarray) -> dict[str, Any]:
        X, Z = self._graphs(X), None if Z is None else self._graphs(Z)
        columns = X.owner if Z is None else Z.owner
        others = None if Z is None else self._inner_points(Z)
        base: Any = self.base  # there, or there would be no parameters
        return {"base": base.pullback(self._inner_points(X), others, W[X.owner][:, columns])}

    def _inner_points(self, X: Any) -> np.ndarray:
        X = self._graphs(X)
        if X.attributes is None and X.offsets[-1]:
            raise ValueError(
                "VertexHistogram compares attributes of nodes, and the graphs have none; give "
                "attributes, or base=None to compare labels"
            )
        return np.zeros((0, 1)) if X.attributes is None else X.attributes


@node
class EdgeHistogram(GraphKernel, Explicit):
    """k(x, z) = sum over pairs of edges of [their labels are equal].

    Parameters
    ----------
    ends : bool
        Whether the labels of the nodes at both ends must be equal as well (in any order, if the
        edges have no direction).

    Notes
    -----
    O(edges).  Without labels of edges, and without `ends`, it is the product of the numbers of
    edges.

    References
    ----------
    M. Sugiyama and K. M. Borgwardt, "Halting in random walk kernels", NIPS 2015.

    Examples
    --------
    >>> from mercer.kernels import EdgeHistogram, Graphs
    >>> X = Graphs.from_edges([[(0, 1)], [(0, 1), (1, 2)]], edge_labels=[["-"], ["-", "="]])
    >>> EdgeHistogram()(X)
    array([[1., 1.],
           [1., 2.]])
    """

    ends: bool = False

    def _check(self) -> None:
        _check_flag(self, "ends")

    def _terms(self, X: Any) -> Terms:
        X = self._graphs(X)
        once = X._once
        code = mix(X.edge_codes[once], 1)
        if self.ends:
            first, second = (X.codes[end[once]] for end in (X.source, X.indices))
            code = mix(code + _pair(first, second, X.directed))
        return Terms.counted(len(X), X.owner[X.source[once]], code, _kind(X))


@node
class WeisfeilerLehman(GraphKernel, Explicit):
    """k(x, z) = sum_{i=0..h} sum over pairs of nodes of [their labels after i rounds are equal].

    In a round every node takes as its new label the old one and the multiset of those of its
    neighbours: after i rounds a label stands for the tree of walks of length i from the node.

    Parameters
    ----------
    h : int
        The number of rounds; 0 is `VertexHistogram`.
    edges : bool
        Whether neighbours are told apart by the labels of the edges to them.
    exact : bool
        Whether to make sure, by sorting multisets, that no two labels of a collection share the 64
        bits that stand for them.

    Notes
    -----
    O(h edges) for the labels, and a sparse product.  K is nearly diagonal for a large h: most
    subtrees occur in one graph only.  Normalise it, and choose h from 0 to 5.  A label is a hash of
    what it stands for, the sum over neighbours being taken modulo 2^64; a million different ones
    share one with probability 3e-8.  In directed graphs neighbours are successors.

    References
    ----------
    N. Shervashidze, P. Schweitzer, E. J. van Leeuwen, K. Mehlhorn and K. M. Borgwardt,
    "Weisfeiler-Lehman graph kernels", JMLR 12, 2539-2561, 2011.

    Examples
    --------
    >>> from mercer.kernels import Graphs, WeisfeilerLehman
    >>> X = Graphs.from_edges([[(0, 1), (1, 2)], [(0, 1), (1, 2), (2, 0)]])  # no labels
    >>> WeisfeilerLehman(h=1)(X)
    array([[14., 12.],
           [12., 18.]])
    """

    h: int = 3
    edges: bool = False
    exact: bool = False

    def _check(self) -> None:
        if isinstance(self.h, bool) or not isinstance(self.h, (int, np.integer)) or self.h < 0:
            raise ValueError(
                f"WeisfeilerLehman: h must be an integer of at least 0, got {self.h!r}"
            )
        _check_flag(self, "edges")
        _check_flag(self, "exact")

    def _terms(self, X: Any) -> Terms:
        X = self._graphs(X)
        labels = X.codes
        marks = mix(X.edge_codes, 1) if self.edges else np.uint64(0)
        proof = _Sorted(X, self.edges) if self.exact else None
        rounds = [Terms.counted(len(X), X.owner, labels, _kind(X))]
        for i in range(self.h):
            sums = _over_neighbours(X, mix(mix(labels, 2)[X.indices] + marks))
            labels = mix(mix(labels, 3) + sums, 4 + i)
            rounds.append(Terms.counted(len(X), X.owner, labels))
            if proof is not None:
                proof.check(labels, i + 1)
        return Terms.joined(*rounds)


def _over_neighbours(X: Graphs, values: np.ndarray) -> np.ndarray:
    """Return the sum of the values of the entries in each row, modulo 2^64."""
    # Differences of running sums: both wrap around, and so the differences are right.
    running = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(values, dtype=np.uint64)])
    return running[X.indptr[1:]] - running[X.indptr[:-1]]


class _Sorted:
    """The labels of nodes as numbers that sorting assigns: without hashes, so without chance."""

    def __init__(self, X: Graphs, edges: bool) -> None:
        self.X = X
        self.marks = np.unique(X.edge_codes, return_inverse=True)[1] if edges else None
        self.labels = np.unique(X.codes, return_inverse=True)[1]

    def check(self, hashes: np.ndarray, i: int) -> None:
        """Do one round, and compare the number of labels: a hash is a function of the label."""
        X = self.X
        around = self.labels[X.indices]
        if self.marks is not None:
            around = around * (int(self.marks.max(initial=0)) + 1) + self.marks
        around = around[np.lexsort((around, X.source))]
        # Rows of [label, neighbours in order], filled up with -1, a batch of nodes of one degree.
        new = np.zeros(len(X.codes), dtype=np.int64)
        count = 0
        for degree in np.unique(X.degrees):
            nodes = np.flatnonzero(X.degrees == degree)
            rows = around[X.indptr[nodes][:, None] + np.arange(degree)]
            table = np.column_stack([self.labels[nodes], rows])
            found = np.unique(table, axis=0, return_inverse=True)[1].ravel()
            new[nodes] = found + count
            count += int(found.max(initial=-1)) + 1
        self.labels = new
        distinct = len(np.unique(hashes))
        if distinct != count:
            raise ArithmeticError(
                f"WeisfeilerLehman: after {i} rounds {count} labels have {distinct} hashes of 64 "
                f"bits; rename a label of the nodes, which changes all hashes"
            )


@node
class ShortestPath(GraphKernel, Explicit):
    """k(x, z) = sum over pairs {u, v}, {u', v'} of [equal labels at the ends, equal distance].

    Pairs are of different nodes, one of which can be reached from the other; the distance is the
    number of edges of a shortest path.

    Notes
    -----
    O(nodes edges) by breadth-first search, and a sparse product.  Feature space has as many
    dimensions as there are pairs of labels times distances; it holds the sizes of the graphs
    quadratically, so normalise it.  A graph and the same graph with directions, `X.as_directed()`,
    differ: there each pair counts in both orders, which is what GraKeL computes.

    References
    ----------
    K. M. Borgwardt and H.-P. Kriegel, "Shortest-path kernels on graphs", ICDM 2005.

    Examples
    --------
    >>> from mercer.kernels import Graphs, ShortestPath
    >>> path, clique = [(0, 1), (1, 2), (2, 3)], [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    >>> ShortestPath()([path, clique])
    array([[14., 18.],
           [18., 36.]])
    """

    def _terms(self, X: Any) -> Terms:
        X = self._graphs(X)
        ends = mix(X.codes, 5)
        nothing = np.zeros(0, np.int64), np.zeros(0, np.uint64)
        parts = [Terms.counted(len(X), *nothing, _kind(X))]
        largest = int(X.sizes.max(initial=0))
        check_budget(48 * largest**2, None, f"ShortestPath of a graph of {largest} nodes")
        for graphs in _batches(X.sizes**2, _PAIRS):
            room = int(np.sum(X.sizes[graphs] ** 2))
            owner, code, value = np.empty(room, np.int64), np.empty(room, np.uint64), np.empty(room)
            first, last = graphs.start, graphs.stop
            nodes, largest = X.offsets[first : last + 1], int(X.sizes[graphs].max())
            found = shortest_paths(
                nodes, largest, X.indptr, X.indices, ends, X.directed, owner, code, value
            )
            parts.append(
                Terms(len(X), owner[:found] + first, code[:found].copy(), value[:found].copy())
            )
        return Terms.joined(*parts)


@node
class Graphlet(GraphKernel, Explicit):
    """k(x, z) = sum over graphs H of N_H(x) N_H(z), the numbers of induced subgraphs like H.

    H runs over the graphs of 3 or 4 nodes.  Every set of so many nodes counts for one H, so the
    numbers sum to the binomial coefficient, and `Normalized(Graphlet())` compares frequencies.

    Parameters
    ----------
    size : 3 or 4
    connected : bool
        Whether only connected H count: 2 of the 4 graphs of 3 nodes, 6 of the 11 of 4.

    Notes
    -----
    O(sum of squared degrees) for 3, times a degree for 4: counted, not sampled.  Labels and
    self-loops are not looked at, nor are directions.  Disconnected H outnumber the others in sparse
    graphs and mostly tell the number of nodes.

    References
    ----------
    N. Shervashidze, S. Vishwanathan, T. Petri, K. Mehlhorn and K. M. Borgwardt, "Efficient graphlet
    kernels for large graph comparison", AISTATS 2009.

    Examples
    --------
    >>> from mercer.kernels import Graphlet
    >>> square = [(0, 1), (1, 2), (2, 3), (3, 0)]
    >>> Graphlet(connected=True).features([square]).toarray()  # four paths of three nodes
    array([[4.]])
    """

    size: int = 3
    connected: bool = False

    def _check(self) -> None:
        if isinstance(self.size, bool) or self.size not in (3, 4):
            raise ValueError(f"Graphlet: size must be 3 or 4, got {self.size!r}")
        _check_flag(self, "connected")

    def _terms(self, X: Any) -> Terms:
        X = self._graphs(X)
        kinds, counts = count_graphlets(X, int(self.size))
        counts[:, np.array([self.connected and not kind.connected for kind in kinds])] = 0.0
        owner, kind = np.nonzero(counts)
        codes = mix(np.arange(len(kinds), dtype=np.uint64), 10 + int(self.size))
        return Terms(len(X), owner, codes[kind], counts[owner, kind])


# ---------------------------------------------------------------------- parts

_ENTRIES = 2**22  # values of a base kernel that are held at a time
_PAIRS = 2**22  # pairs of nodes


def _check_flag(kernel: Kernel, name: str) -> None:
    value = getattr(kernel, name)
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{type(kernel).__name__}: {name} must be True or False, got {value!r}")


def _kind(X: Graphs) -> str:
    """Return what two collections must have in common to be compared by edges and labels."""
    if not len(X.indices):
        return ""
    labels = "no labels" if X.labels is None else "labels"
    return f"{'directed' if X.directed else 'undirected'} graphs whose nodes have {labels}"


def _pair(first: np.ndarray, second: np.ndarray, directed: bool) -> np.ndarray:
    """Return codes of pairs of codes, ordered ones if there are directions."""
    return mix(first, 6) + mix(second, 7 if directed else 6)


def _batches(costs: np.ndarray, budget: int) -> list[slice]:
    """Return slices of items in order whose costs sum to the budget, or of one item."""
    ends, total = [0], 0
    for i, cost in enumerate(costs.tolist()):
        if total and total + cost > budget:
            ends.append(i)
            total = 0
        total += cost
    ends.append(len(costs))
    return [slice(a, b) for a, b in pairwise(ends) if a < b]


def _summed(block: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return sums over spans of rows, of so many rows each; a span may be empty."""
    running = np.zeros((len(counts), block.shape[1]), dtype=block.dtype)
    filled = counts > 0
    if filled.any():
        starts = (np.cumsum(counts) - counts)[filled]
        running[filled] = np.add.reduceat(block, starts, axis=0)
    return running
