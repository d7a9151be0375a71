"""Graph kernels that count substructures: nodes, edges, subtrees, shortest paths and graphlets.

The features of these kernels are counts, so that the kernel matrix is a product of two sparse
matrices.  A label that does not occur in the training graphs contributes nothing to k(test, train),
but it does contribute to k(test, test).

Conventions, unless the docstring of a kernel says otherwise:

- Nodes without labels all have the same label.
- An undirected edge counts once, and so does an unordered pair of nodes.  In a directed graph, an
  edge is counted from its source, and pairs are ordered.
- A self-loop is an edge, and it makes a node its own neighbour.
- Edge weights are ignored.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np

from ..._core import Points, check_budget, is_count
from .._base import Kernel, node, option
from .._evaluation import ParameterGradients, Prepared
from .._parameter_checks import flag, require
from .._properties import Domain, Properties
from .._sparse_features import Explicit, FeatureTerms, splitmix64
from ._graph_collection import Graphs, as_graphs, concatenated_ranges
from ._subgraph_counts import count_graphlets, count_shortest_paths


@node
class GraphKernel(Kernel):
    """Base class of the kernels on graphs.

    The points are a `Graphs`, or a list of `Graph`, networkx graphs, adjacency matrices or lists of
    edges.

    See Also
    --------
    WeisfeilerLehman : The usual first choice for labelled graphs.
    ShortestPath : Compares distances of nodes.
    Graphlet : Counts small subgraphs; ignores labels.
    RandomWalk : Compares walks.
    Graphs : Collection of graphs, which is converted only once.

    Examples
    --------
    >>> from mercer.kernels import GraphKernel, ShortestPath
    >>> isinstance(ShortestPath(), GraphKernel)
    True
    >>> ShortestPath()([[(0, 1), (1, 2)], [(0, 1)]])
    array([[5., 2.],
           [2., 1.]])
    """

    def _domain(self, *inner: Domain) -> Domain:
        # The points are graphs, even if a base kernel compares vectors.
        return Domain.of(inner, kind="graphs", on_vectors=False, accepts_matrix=False)

    def _graphs(self, X: Points) -> Graphs:
        """Convert X to a `Graphs`; error messages mention the name of this kernel."""
        return as_graphs(X, type(self).__name__)


@node
class VertexHistogram(GraphKernel, Explicit):
    """Vertex histogram kernel: the inner product of the node label counts of two graphs.

        k(x, z) = sum_{u in x, v in z} [label(u) = label(v)]

    With a base kernel, nodes are compared by their attributes a instead of their labels:
    k(x, z) = sum_{u in x, v in z} base(a_u, a_v).

    Parameters
    ----------
    base : Kernel or None, default=None
        A kernel on the node attributes, such as `RBF("median")`.  None compares labels.

    See Also
    --------
    EdgeHistogram : Counts edges.
    WeisfeilerLehman : Also compares the neighbourhoods of nodes; h = 0 is this kernel.

    Notes
    -----
    The cost is linear in the number of nodes; with a base kernel it is proportional to the product
    of the numbers of nodes of X and Z.  The kernel ignores edges.  Use it as a baseline for other
    graph kernels.

    References
    ----------
    Sugiyama and Borgwardt, "Halting in random walk kernels", NIPS 2015.

    Examples
    --------
    >>> from mercer.kernels import Graphs, VertexHistogram
    >>> X = Graphs.from_edges([[(0, 1)], [(0, 1), (1, 2)]], labels=[["C", "O"], ["C", "C", "O"]])
    >>> VertexHistogram()(X)
    array([[2., 3.],
           [3., 5.]])
    """

    base: Kernel | None = option(
        None, require(lambda k: k is None or isinstance(k, Kernel), "a kernel or None", TypeError)
    )

    def _properties(self, *inner: Properties) -> Properties:
        order = 0 if all(k.proves(0, math.inf) for k in inner) else None
        return Properties.of(inner, "inner product of sums of node features", order, against=None)

    def _terms(self, X: Points) -> FeatureTerms:
        if self.base is not None:
            raise ValueError("VertexHistogram has explicit features only without a base kernel")
        X = self._graphs(X)
        labels = "no labels" if X.labels is None else "labels"
        kind = f"graphs whose nodes have {labels}" if len(X.owner) else ""
        return FeatureTerms.counted(len(X), X.owner, X.codes, kind)

    # With a base kernel, the nodes of all graphs are prepared as one set of points, of which each
    # graph is a range.

    def _prepare(self, X: Points, like: Prepared | None) -> Prepared:
        if self.base is None:
            return super()._prepare(X, like)
        X = self._graphs(X)
        nodes = self.base._prepare(self._attributes(X), like.frame if like is not None else None)
        return Prepared((X.offsets[:-1], X.sizes), frame=nodes, dtype=nodes.dtype)

    def _tile(self, P: Prepared, Q: Prepared, out: np.ndarray) -> None:
        if self.base is None:
            return super()._tile(P, Q, out)
        columns = Q.frame[concatenated_ranges(*Q.arrays)]
        for rows in _batches(P.arrays[1], max(1, _MAX_BASE_VALUES // max(1, len(columns)))):
            nodes = P.frame[concatenated_ranges(P.arrays[0][rows], P.arrays[1][rows])]
            block = np.empty((len(nodes), len(columns)), dtype=out.dtype)
            self.base._tile(nodes, columns, block)
            out[rows] = _segment_sums(_segment_sums(block, P.arrays[1][rows]).T, Q.arrays[1]).T

    def _diag(self, X: Points) -> np.ndarray:
        if self.base is None:
            return super()._diag(X)
        return Kernel._diag(self, X)

    def _pullback(self, X: Points, Z: Points, W: np.ndarray) -> ParameterGradients:
        X, Z = self._graphs(X), None if Z is None else self._graphs(Z)
        columns = X.owner if Z is None else Z.owner
        others = None if Z is None else self._attributes(Z)
        base: Any = self.base  # not None here, because only a base kernel has parameters
        return {"base": base.pullback(self._attributes(X), others, W[X.owner][:, columns])}

    def _inner_points(self, X: Points) -> tuple[np.ndarray, np.ndarray]:
        X = self._graphs(X)
        return self._attributes(X), X.owner

    def _attributes(self, X: Graphs) -> np.ndarray:
        """Return the attributes of the nodes of all graphs."""
        if X.attributes is None and X.offsets[-1]:
            raise ValueError(
                "VertexHistogram with a base kernel compares node attributes, but the graphs have "
                "none; provide attributes, or set base=None to compare labels"
            )
        return np.zeros((0, 1)) if X.attributes is None else X.attributes


@node
class EdgeHistogram(GraphKernel, Explicit):
    """Edge histogram kernel: the inner product of the edge label counts of two graphs.

        k(x, z) = sum_{e in edges(x), f in edges(z)} [label(e) = label(f)]

    Parameters
    ----------
    ends : bool, default=False
        Whether two edges match only if the labels of their end nodes are equal, too.  The order of
        the ends matters only in directed graphs.  Choose True if nodes have informative labels.

    See Also
    --------
    VertexHistogram : Counts nodes.
    WeisfeilerLehman : Compares larger neighbourhoods.

    Notes
    -----
    The cost is linear in the number of edges.  Without edge labels, and with `ends=False`, the
    value is the product of the numbers of edges of the two graphs.

    References
    ----------
    Sugiyama and Borgwardt, "Halting in random walk kernels", NIPS 2015.

    Examples
    --------
    >>> from mercer.kernels import EdgeHistogram, Graphs
    >>> X = Graphs.from_edges([[(0, 1)], [(0, 1), (1, 2)]], edge_labels=[["-"], ["-", "="]])
    >>> EdgeHistogram()(X)
    array([[1., 1.],
           [1., 2.]])
    """

    ends: bool = option(False, flag)

    def _terms(self, X: Points) -> FeatureTerms:
        X = self._graphs(X)
        once = X._edge_mask
        code = splitmix64(X.edge_codes[once], 1)
        if self.ends:
            first, second = (X.codes[end[once]] for end in (X.source, X.indices))
            code = splitmix64(code + _pair_codes(first, second, X.directed))
        return FeatureTerms.counted(len(X), X.owner[X.source[once]], code, _description(X))


@node
class WeisfeilerLehman(GraphKernel, Explicit):
    """Weisfeiler-Lehman subtree kernel, which compares the neighbourhoods of nodes.

        k(x, z) = sum_{i=0..h} sum_{u in x, v in z} [label_i(u) = label_i(v)]

    label_0 is the node label.  In each iteration, the new label of a node consists of its old label
    and the multiset of the old labels of its neighbours.  After i iterations, a label represents
    the tree of all walks of length i that start at the node.

    Parameters
    ----------
    h : int, default=3
        The number of iterations.  h = 0 is `VertexHistogram`; values from 0 to 5 are usual.  Select
        it by cross-validation.
    edges : bool, default=False
        Whether the multiset also contains the labels of the edges to the neighbours, such as the
        types of chemical bonds.
    exact : bool, default=False
        Whether to verify that no two different labels of a collection have the same 64-bit hash.
        This sorts all multisets, and raises an `ArithmeticError` if two labels have the same hash.

    See Also
    --------
    VertexHistogram : Node labels only, as a baseline.
    ShortestPath : Global structure instead of neighbourhoods.
    RandomWalk : Walks instead of subtrees; slower.

    Notes
    -----
    The cost is proportional to h times the number of edges for the labels, plus a product of sparse
    matrices.  For large h, the kernel matrix is nearly diagonal, because most subtrees occur in one
    graph only.  Use `Normalized(WeisfeilerLehman(h))`, because the values grow with the size of the
    graphs.  A label is stored as a 64-bit hash; the hash of a multiset is a sum modulo 2^64.
    Among a million different labels, two have the same hash with probability 3e-8.  In directed
    graphs, the neighbours of a node are its successors.

    References
    ----------
    Shervashidze, Schweitzer, van Leeuwen, Mehlhorn and Borgwardt, "Weisfeiler-Lehman graph
    kernels", JMLR 12, 2539-2561, 2011.

    Examples
    --------
    >>> from mercer.kernels import Graphs, WeisfeilerLehman
    >>> X = Graphs.from_edges([[(0, 1), (1, 2)], [(0, 1), (1, 2), (2, 0)]])  # no labels
    >>> WeisfeilerLehman(h=1)(X)
    array([[14., 12.],
           [12., 18.]])
    """

    h: int = option(3, require(lambda h: is_count(h, 0), "an integer of at least 0"))
    edges: bool = option(False, flag)
    exact: bool = option(False, flag)

    def _terms(self, X: Points) -> FeatureTerms:
        X = self._graphs(X)
        labels = X.codes
        edge_hashes = splitmix64(X.edge_codes, 1) if self.edges else np.uint64(0)
        collisions = _CollisionCheck(X, self.edges) if self.exact else None
        terms = [FeatureTerms.counted(len(X), X.owner, labels, _description(X))]
        for i in range(self.h):
            sums = _sum_over_neighbours(
                X, splitmix64(splitmix64(labels, 2)[X.indices] + edge_hashes)
            )
            labels = splitmix64(splitmix64(labels, 3) + sums, 4 + i)
            terms.append(FeatureTerms.counted(len(X), X.owner, labels))
            if collisions is not None:
                collisions.check(labels, i + 1)
        return FeatureTerms.joined(*terms)


def _sum_over_neighbours(X: Graphs, values: np.ndarray) -> np.ndarray:
    """Return, for each node, the sum of the values of its adjacency entries, modulo 2^64."""
    # Cumulative sums may overflow, but their differences are correct modulo 2^64.
    running = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(values, dtype=np.uint64)])
    sums: np.ndarray = running[X.indptr[1:]] - running[X.indptr[:-1]]
    return sums


class _CollisionCheck:
    """Repeat the Weisfeiler-Lehman iterations without hashes, to detect hash collisions.

    Labels are consecutive integers, which are assigned by sorting the multisets.
    """

    def __init__(self, X: Graphs, edges: bool) -> None:
        self.X = X
        self.edge_labels = np.unique(X.edge_codes, return_inverse=True)[1] if edges else None
        self.labels = np.unique(X.codes, return_inverse=True)[1]

    def check(self, hashes: np.ndarray, iteration: int) -> None:
        """Do one iteration, and raise an error if there are fewer different hashes than labels.

        Equal labels have equal hashes, so that equal numbers mean that there is no collision.
        """
        X = self.X
        adjacent = self.labels[X.indices]
        if self.edge_labels is not None:
            adjacent = adjacent * (int(self.edge_labels.max(initial=0)) + 1) + self.edge_labels
        adjacent = adjacent[np.lexsort((adjacent, X.source))]
        # For the nodes of each degree, sort the rows [label, sorted labels of the neighbours].
        new_labels = np.zeros(len(X.codes), dtype=np.int64)
        count = 0
        for degree in np.unique(X.degrees):
            nodes = np.flatnonzero(X.degrees == degree)
            rows = adjacent[X.indptr[nodes][:, None] + np.arange(degree)]
            multisets = np.column_stack([self.labels[nodes], rows])
            numbers = np.unique(multisets, axis=0, return_inverse=True)[1].ravel()
            new_labels[nodes] = numbers + count
            count += int(numbers.max(initial=-1)) + 1
        self.labels = new_labels
        distinct = len(np.unique(hashes))
        if distinct != count:
            raise ArithmeticError(
                f"WeisfeilerLehman: after {iteration} iterations, {count} different labels "
                f"have only {distinct} different 64-bit hashes; rename a node label, which changes "
                f"the hashes"
            )


@node
class ShortestPath(GraphKernel, Explicit):
    """Shortest-path kernel, which compares pairs of nodes by their labels and their distance.

        k(x, z) = sum over pairs {u, v} of x and {u', v'} of z
                  of [labels(u, v) = labels(u', v') and d(u, v) = d(u', v')]

    The distance d is the number of edges of a shortest path.  A pair consists of two different
    nodes that are connected by a path.  The kernel has no parameters.

    See Also
    --------
    WeisfeilerLehman : Neighbourhoods of nodes; faster for large graphs.
    Graphlet : Ignores labels and counts small subgraphs.

    Notes
    -----
    The cost is proportional to nodes times edges, for a breadth-first search from every node, plus
    a product of sparse matrices.  There is one feature for each pair of labels and each distance.
    The number of pairs grows quadratically with the size of a graph, so that
    `Normalized(ShortestPath())` is recommended.  For `X.as_directed()`, each pair counts in both
    orders; the library GraKeL computes this value.

    References
    ----------
    Borgwardt and Kriegel, "Shortest-path kernels on graphs", ICDM 2005.

    Examples
    --------
    >>> from mercer.kernels import Graphs, ShortestPath
    >>> path, clique = [(0, 1), (1, 2), (2, 3)], [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    >>> ShortestPath()([path, clique])
    array([[14., 18.],
           [18., 36.]])
    """

    def _terms(self, X: Points) -> FeatureTerms:
        X = self._graphs(X)
        node_codes = splitmix64(X.codes, 5)
        no_terms = np.zeros(0, np.int64), np.zeros(0, np.uint64)
        parts = [FeatureTerms.counted(len(X), *no_terms, _description(X))]
        largest = int(X.sizes.max(initial=0))
        check_budget(48 * largest**2, None, f"ShortestPath of a graph of {largest} nodes")
        for graphs in _batches(X.sizes**2, _MAX_NODE_PAIRS):
            size = int(np.sum(X.sizes[graphs] ** 2))
            owner, code = np.empty(size, np.int64), np.empty(size, np.uint64)
            value = np.empty(size)
            first, last = graphs.start, graphs.stop
            nodes, largest = X.offsets[first : last + 1], int(X.sizes[graphs].max())
            count = count_shortest_paths(
                nodes, largest, X.indptr, X.indices, node_codes, X.directed, owner, code, value
            )
            parts.append(
                FeatureTerms(
                    len(X), owner[:count] + first, code[:count].copy(), value[:count].copy()
                )
            )
        return FeatureTerms.joined(*parts)


@node
class Graphlet(GraphKernel, Explicit):
    """Graphlet kernel: the inner product of the numbers of induced subgraphs of 3 or 4 nodes.

        k(x, z) = sum_H N_H(x) N_H(z)

    H runs over all graphs of `size` nodes, up to isomorphism, and N_H(x) is the number of induced
    subgraphs of x that are isomorphic to H.  Every set of `size` nodes counts for exactly one H,
    so that `Normalized(Graphlet())` compares relative frequencies.

    Parameters
    ----------
    size : {3, 4}, default=3
        The number of nodes of the subgraphs.  4 distinguishes more graphs, but takes longer.
    connected : bool, default=False
        Whether to count only connected subgraphs: 2 of the 4 graphs of 3 nodes, or 6 of the 11
        graphs of 4 nodes.  In sparse graphs most subgraphs are disconnected, and their counts
        depend mainly on the number of nodes.

    See Also
    --------
    WeisfeilerLehman : Uses labels, and neighbourhoods of any size.
    ShortestPath : Uses labels, and distances of nodes.

    Notes
    -----
    The counts are exact, not sampled.  The cost is proportional to the sum of the squared degrees
    for size 3, and larger by a factor of about the degree for size 4.  Labels, self-loops and edge
    directions are ignored.

    References
    ----------
    Shervashidze, Vishwanathan, Petri, Mehlhorn and Borgwardt, "Efficient graphlet kernels for large
    graph comparison", AISTATS 2009.

    Examples
    --------
    >>> from mercer.kernels import Graphlet
    >>> square = [(0, 1), (1, 2), (2, 3), (3, 0)]
    >>> Graphlet(connected=True).features([square]).toarray()  # four paths of three nodes
    array([[4.]])
    """

    size: int = option(3, require(lambda size: size in (3, 4), "3 or 4"))
    connected: bool = option(False, flag)

    def _terms(self, X: Points) -> FeatureTerms:
        X = self._graphs(X)
        types, counts = count_graphlets(X, int(self.size))
        counts[:, np.array([self.connected and not t.connected for t in types])] = 0.0
        owner, column = np.nonzero(counts)
        codes = splitmix64(np.arange(len(types), dtype=np.uint64), 10 + int(self.size))
        return FeatureTerms(len(X), owner, codes[column], counts[owner, column])


# ---------------------------------------------------------------------- helpers

# Work is split into batches, so that temporary arrays stay below about 100 MB.
_MAX_BASE_VALUES = 2**22  # maximum number of base kernel values per batch, in VertexHistogram
_MAX_NODE_PAIRS = 2**22  # maximum number of pairs of nodes per batch, in ShortestPath


def _description(X: Graphs) -> str:
    """Describe whether the graphs are directed and labelled, for `FeatureTerms.kind`.

    Graphs with different descriptions have no features in common, and comparing them is an error.
    """
    if not len(X.indices):
        return ""
    labels = "no labels" if X.labels is None else "labels"
    return f"{'directed' if X.directed else 'undirected'} graphs whose nodes have {labels}"


def _pair_codes(first: np.ndarray, second: np.ndarray, directed: bool) -> np.ndarray:
    """Combine pairs of codes into one code; the order matters only if `directed` is True."""
    codes: np.ndarray = splitmix64(first, 6) + splitmix64(second, 7 if directed else 6)
    return codes


def _batches(costs: np.ndarray, budget: int) -> list[slice]:
    """Split items into consecutive slices whose total cost is at most `budget`.

    The cost of a slice exceeds `budget` only if a single item costs more.
    """
    ends, total = [0], 0
    for i, cost in enumerate(costs.tolist()):
        if total and total + cost > budget:
            ends.append(i)
            total = 0
        total += cost
    ends.append(len(costs))
    return [slice(a, b) for a, b in pairwise(ends) if a < b]


def _segment_sums(block: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the sums of consecutive segments of rows; segment i has counts[i] >= 0 rows."""
    sums = np.zeros((len(counts), block.shape[1]), dtype=block.dtype)
    nonempty = counts > 0
    if nonempty.any():
        starts = (np.cumsum(counts) - counts)[nonempty]
        sums[nonempty] = np.add.reduceat(block, starts, axis=0)
    return sums
