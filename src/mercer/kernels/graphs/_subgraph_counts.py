"""Count features of graphs in compiled loops: shortest paths, and subgraphs of 3 or 4 nodes."""

from __future__ import annotations

from functools import cache
from itertools import combinations
from typing import NamedTuple

import numpy as np

from ..._core import jit
from ._graph_collection import Graphs


@jit()
def _mix_scalar(x: np.uint64) -> np.uint64:
    """Hash one 64-bit integer with the last step of SplitMix64; `splitmix64` does so for arrays."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@jit()
def count_shortest_paths(
    offsets: np.ndarray,
    largest: int,
    indptr: np.ndarray,
    indices: np.ndarray,
    node_codes: np.ndarray,
    directed: bool,
    owner: np.ndarray,
    code: np.ndarray,
    value: np.ndarray,
) -> int:
    """Count the pairs of nodes of each graph by their labels and their distance.

    The distance is the number of edges of a shortest path, computed by a breadth-first search from
    every node.

    Parameters
    ----------
    offsets : ndarray of shape (n_graphs + 1,)
        Graph g has the nodes offsets[g], ..., offsets[g + 1] - 1.
    largest : int
        The number of nodes of the largest graph.
    indptr, indices : ndarray
        The adjacency matrix of all nodes, in CSR format.
    node_codes : ndarray of uint64
        A code for the label of each node.
    directed : bool
        Whether (u, v) and (v, u) are different pairs.
    owner, code, value : ndarray
        Output: the graph, the code of (labels, distance) and the count of each feature.

    Returns
    -------
    int
        The number of features written to `owner`, `code` and `value`.
    """
    distance = np.empty(largest, dtype=np.int64)
    queue = np.empty(largest, dtype=np.int64)
    capacity = 1  # size of the hash table: at least twice the number of pairs of the largest graph
    while capacity < 2 * largest * largest:
        capacity *= 2
    table = np.full(capacity, -1)
    n_codes = 0
    for g in range(len(offsets) - 1):
        first = offsets[g]
        n = offsets[g + 1] - first
        first_code = n_codes  # table entries less than `first_code` belong to earlier graphs
        for source in range(n):
            for v in range(n):
                distance[v] = -1
            distance[source], queue[0] = 0, source
            head, tail = 0, 1
            while head < tail:
                u = queue[head]
                head += 1
                for e in range(indptr[first + u], indptr[first + u + 1]):
                    v = indices[e] - first
                    if distance[v] < 0:
                        distance[v] = distance[u] + 1
                        queue[tail] = v
                        tail += 1
            for i in range(1, tail):
                v = queue[i]
                if directed or v > source:
                    start = node_codes[first + source]
                    if directed:
                        start = _mix_scalar(start)
                    ends = _mix_scalar(start + node_codes[first + v])
                    key = _mix_scalar(ends + np.uint64(distance[v]))
                    slot = np.int64(key & np.uint64(capacity - 1))
                    while table[slot] >= first_code and code[table[slot]] != key:
                        slot = (slot + 1) % capacity
                    if table[slot] < first_code:
                        table[slot] = n_codes
                        owner[n_codes], code[n_codes], value[n_codes] = g, key, 0.0
                        n_codes += 1
                    value[table[slot]] += 1.0
    return n_codes


# ---------------------------------------------------------------------- subgraphs of 3 or 4 nodes


class GraphletType(NamedTuple):
    """An isomorphism class of graphs of 3 or 4 nodes.

    For these sizes, the sorted degrees of the nodes determine the class.
    """

    edges: int
    degrees: tuple[int, ...]

    @property
    def connected(self) -> bool:
        """Whether the graph is connected."""
        return self.degrees[0] > 0 and self.edges >= len(self.degrees) - 1


@cache
def graphlet_types(size: int) -> tuple[list[GraphletType], np.ndarray]:
    """List all graphs of `size` nodes, and count how often each one is a subgraph of another.

    Returns
    -------
    types : list of GraphletType
    multiplicity : ndarray of shape (len(types), len(types))
        Entry (H, H') is the number of subgraphs of H' that are isomorphic to H.  A subgraph has all
        nodes of H' and a subset of its edges.
    """
    edges = list(combinations(range(size), 2))
    edge_sets = [chosen for r in range(len(edges) + 1) for chosen in combinations(edges, r)]

    def type_of(chosen: tuple[tuple[int, int], ...]) -> GraphletType:
        return GraphletType(
            len(chosen), tuple(sorted(sum(v in e for e in chosen) for v in range(size)))
        )

    types = sorted({type_of(chosen) for chosen in edge_sets})
    multiplicity = np.zeros((len(types), len(types)))
    for column, whole_type in enumerate(types):
        representative = next(chosen for chosen in edge_sets if type_of(chosen) == whole_type)
        for r in range(len(representative) + 1):
            for chosen in combinations(representative, r):
                multiplicity[types.index(type_of(chosen)), column] += 1
    return types, multiplicity


def count_graphlets(X: Graphs, size: int) -> tuple[list[GraphletType], np.ndarray]:
    """Count the induced subgraphs of 3 or 4 nodes of each graph.

    The number of all subgraphs of a type H, induced or not, follows from degrees, triangles and
    squares.  Each induced subgraph of a type H' contributes a known number of subgraphs of type H,
    so that the induced counts are the solution of a triangular system of equations.

    Returns
    -------
    types : list of GraphletType
        The graphs of `size` nodes.
    counts : ndarray of shape (n_graphs, len(types))
        The number of induced subgraphs of each type.
    """
    n = X.sizes.astype(float)
    counts = _count_subgraphs(X.offsets, *_simple_adjacency(X), size == 4)
    edges, wedges, triangles, claws, paths, paws, squares, diamonds, cliques = counts.T
    if size == 3:
        subgraphs = [_binomial(n, 3), edges * (n - 2), wedges, triangles]
    else:
        subgraphs = [
            _binomial(n, 4),
            edges * _binomial(n - 2, 2),
            wedges * (n - 3),
            _binomial(edges, 2) - wedges,
        ]
        subgraphs += [triangles * (n - 3), claws, paths, paws, squares, diamonds, cliques]
    types, multiplicity = graphlet_types(size)
    return types, (np.rint(np.linalg.inv(multiplicity)) @ np.array(subgraphs)).T


def _binomial(n: np.ndarray, k: int) -> np.ndarray:
    """Return the binomial coefficient "n choose k", which is 0 for n < k."""
    n = np.maximum(n, k - 1)
    counts: np.ndarray = np.prod([n - i for i in range(k)], axis=0) / np.prod(np.arange(1, k + 1))
    return counts


def _simple_adjacency(X: Graphs) -> tuple[np.ndarray, np.ndarray]:
    """Return (indptr, indices) of the undirected graph, without self-loops."""
    proper = X.source != X.indices
    source, target = X.source[proper], X.indices[proper]
    n = len(X.indptr) - 1
    if X.directed:
        both = np.unique(np.concatenate([source * n + target, target * n + source]))
        source, target = np.divmod(both, max(1, n))
    return np.concatenate([[0], np.cumsum(np.bincount(source, minlength=n))]), target


@jit()
def _count_subgraphs(
    offsets: np.ndarray, indptr: np.ndarray, indices: np.ndarray, four: bool
) -> np.ndarray:
    """Count subgraphs, induced or not, of each graph; shape (n_graphs, 9).

    The columns are edges, wedges (paths of 2 edges), triangles, claws (stars of 3 edges), paths of
    3 edges, paws (a triangle with a pendant edge), squares, diamonds (4-cliques without an edge)
    and 4-cliques.  Columns 4 and 6 to 8 are only valid if `four` is True.
    """
    counts = np.zeros((len(offsets) - 1, 9))
    neighbour_of = np.full(len(indptr), -1)  # for each node, the last u that is adjacent to it
    # For each node, the last edge whose ends are both adjacent to it.
    common_of = np.full(len(indptr), -1)
    # List of the common neighbours w > v of u and v.
    later_common = np.empty(len(indptr), dtype=np.int64)
    # Number of paths of two edges from u to each node.
    n_walks = np.zeros(len(indptr), dtype=np.int64)
    for g in range(len(offsets) - 1):
        out = counts[g]
        for u in range(offsets[g], offsets[g + 1]):
            d = indptr[u + 1] - indptr[u]
            out[0] += 0.5 * d
            out[1] += 0.5 * d * (d - 1)
            out[3] += d * (d - 1) * (d - 2) / 6.0
            for e in range(indptr[u], indptr[u + 1]):
                neighbour_of[indices[e]] = u
            double_triangles = 0  # twice the number of triangles that contain u
            for e in range(indptr[u], indptr[u + 1]):
                v = indices[e]
                n_common = 0
                n_later = 0
                for f in range(indptr[v], indptr[v + 1]):
                    w = indices[f]
                    if neighbour_of[w] == u:
                        n_common += 1
                        if w > v > u:
                            later_common[n_later] = w
                            common_of[w] = e
                            n_later += 1
                double_triangles += n_common
                if not (four and v > u):
                    continue
                out[4] += (d - 1.0) * (indptr[v + 1] - indptr[v] - 1)
                out[7] += 0.5 * n_common * (n_common - 1)
                for i in range(n_later):
                    w = later_common[i]
                    for f in range(indptr[w], indptr[w + 1]):
                        if indices[f] > w and common_of[indices[f]] == e:
                            out[8] += 1.0
            out[2] += double_triangles / 6.0
            out[5] += 0.5 * double_triangles * (d - 2)
            if four:  # count each square twice, once per pair of opposite nodes
                for counting in (1, 0):  # the second pass resets n_walks
                    for e in range(indptr[u], indptr[u + 1]):
                        w = indices[e]
                        for f in range(indptr[w], indptr[w + 1]):
                            v = indices[f]
                            if v > u:
                                if counting:
                                    out[6] += 0.5 * n_walks[v]
                                    n_walks[v] += 1
                                else:
                                    n_walks[v] = 0
        out[2] = np.round(out[2])
        out[4] -= 3.0 * out[2]
    return counts
