"""Compiled loops over graphs: pairs of nodes by their distance, and small subgraphs."""

from __future__ import annotations

from functools import cache
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from .._runtime import jit
from ._graph_collection import Graphs

__all__ = ["count_graphlets", "shortest_paths"]


@jit()
def _mixed(x: Any) -> Any:  # as `mix`, for one number
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@jit()
def shortest_paths(
    offsets: Any,
    largest: Any,
    indptr: Any,
    indices: Any,
    ends: Any,
    directed: Any,
    owner: Any,
    code: Any,
    value: Any,
) -> Any:
    """Write how often each code of (ends, distance) occurs in each graph; return how many are new.

    `ends` are codes of the nodes.  Distances are counted in edges, by breadth-first search.
    """
    distance = np.empty(largest, dtype=np.int64)
    queue = np.empty(largest, dtype=np.int64)
    room = 1  # a table with free places for all pairs of nodes of a graph
    while room < 2 * largest * largest:
        room *= 2
    table = np.full(room, -1)
    found = 0
    for g in range(len(offsets) - 1):
        first = offsets[g]
        n = offsets[g + 1] - first
        begin = found  # what the table knows of earlier graphs is below
        for s in range(n):
            for v in range(n):
                distance[v] = -1
            distance[s], queue[0] = 0, s
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
            for place in range(1, tail):
                v = queue[place]
                if directed or v > s:
                    start = _mixed(ends[first + s]) if directed else ends[first + s]
                    both = _mixed(start + ends[first + v])
                    mine = _mixed(both + np.uint64(distance[v]))
                    slot = np.int64(mine & np.uint64(room - 1))
                    while table[slot] >= begin and code[table[slot]] != mine:
                        slot = (slot + 1) % room
                    if table[slot] < begin:
                        table[slot] = found
                        owner[found], code[found], value[found] = g, mine, 0.0
                        found += 1
                    value[table[slot]] += 1.0
    return found


# ---------------------------------------------------------------------- subgraphs of 3 or 4 nodes


class Kind(NamedTuple):
    """A graph of up to 4 nodes, known by its degrees."""

    edges: int
    degrees: tuple[int, ...]

    @property
    def connected(self) -> bool:
        return self.degrees[0] > 0 and self.edges >= len(self.degrees) - 1


@cache
def small_graphs(size: int) -> tuple[list[Kind], np.ndarray]:
    """Return the graphs of 3 or 4 nodes, and how many subgraphs like H each graph H' has.

    Subgraphs have all nodes of H' and some of its edges; entry (H, H').
    """
    edges = list(combinations(range(size), 2))
    sets = [some for r in range(len(edges) + 1) for some in combinations(edges, r)]

    def kind(some: tuple) -> Kind:
        return Kind(len(some), tuple(sorted(sum(v in e for e in some) for v in range(size))))

    kinds = sorted({kind(some) for some in sets})
    copies = np.zeros((len(kinds), len(kinds)))
    for column, whole in enumerate(kinds):
        model = next(some for some in sets if kind(some) == whole)
        for r in range(len(model) + 1):
            for some in combinations(model, r):
                copies[kinds.index(kind(some)), column] += 1
    return kinds, copies


def count_graphlets(X: Graphs, size: int) -> tuple[list[Kind], np.ndarray]:
    """Return the graphs H of `size` nodes, and the numbers of induced ones in each graph of X.

    Subgraphs that need not be induced are counted from degrees, triangles and squares, and an
    induced H' holds a known number of each H: a triangular system.
    """
    n = X.sizes.astype(float)
    table = _subgraphs(X.offsets, *_skeleton(X), size == 4)
    m, wedges, triangles, claws, paths, paws, squares, diamonds, cliques = table.T
    if size == 3:
        free = [_choose(n, 3), m * (n - 2), wedges, triangles]
    else:
        free = [_choose(n, 4), m * _choose(n - 2, 2), wedges * (n - 3), _choose(m, 2) - wedges]
        free += [triangles * (n - 3), claws, paths, paws, squares, diamonds, cliques]
    kinds, copies = small_graphs(size)
    return kinds, (np.rint(np.linalg.inv(copies)) @ np.array(free)).T


def _choose(n: np.ndarray, k: int) -> np.ndarray:
    """Return the binomial coefficient, 0 below k."""
    n = np.maximum(n, k - 1)
    return np.prod([n - i for i in range(k)], axis=0) / np.prod(np.arange(1, k + 1))


def _skeleton(X: Graphs) -> tuple[np.ndarray, np.ndarray]:
    """Return the adjacency matrix without loops and directions."""
    kept = X.source != X.indices
    source, target = X.source[kept], X.indices[kept]
    n = len(X.indptr) - 1
    if X.directed:
        both = np.unique(np.concatenate([source * n + target, target * n + source]))
        source, target = np.divmod(both, max(1, n))
    return np.concatenate([[0], np.cumsum(np.bincount(source, minlength=n))]), target


@jit()
def _subgraphs(offsets: Any, indptr: Any, indices: Any, four: Any) -> Any:
    """Count edges, wedges, triangles and, for four nodes, claws, paths, paws, squares, ..."""
    counts = np.zeros((len(offsets) - 1, 9))
    near = np.full(len(indptr), -1)  # the node whose neighbour this is
    also = np.full(len(indptr), -1)  # the edge to both of whose ends this is a neighbour
    common = np.empty(len(indptr), dtype=np.int64)
    reached = np.zeros(len(indptr), dtype=np.int64)
    for g in range(len(offsets) - 1):
        out = counts[g]
        for u in range(offsets[g], offsets[g + 1]):
            d = indptr[u + 1] - indptr[u]
            out[0] += 0.5 * d
            out[1] += 0.5 * d * (d - 1)
            out[3] += d * (d - 1) * (d - 2) / 6.0
            for e in range(indptr[u], indptr[u + 1]):
                near[indices[e]] = u
            here = 0  # twice the number of triangles at u
            for e in range(indptr[u], indptr[u + 1]):
                v = indices[e]
                shared = 0
                later = 0
                for f in range(indptr[v], indptr[v + 1]):
                    w = indices[f]
                    if near[w] == u:
                        shared += 1
                        if w > v > u:
                            common[later] = w
                            also[w] = e
                            later += 1
                here += shared
                if not (four and v > u):
                    continue
                out[4] += (d - 1.0) * (indptr[v + 1] - indptr[v] - 1)
                out[7] += 0.5 * shared * (shared - 1)
                for i in range(later):
                    w = common[i]
                    for f in range(indptr[w], indptr[w + 1]):
                        if indices[f] > w and also[indices[f]] == e:
                            out[8] += 1.0
            out[2] += here / 6.0
            out[5] += 0.5 * here * (d - 2)
            if four:  # squares, by pairs of opposite nodes: each is met twice
                for sign in (1, 0):
                    for e in range(indptr[u], indptr[u + 1]):
                        w = indices[e]
                        for f in range(indptr[w], indptr[w + 1]):
                            v = indices[f]
                            if v > u:
                                if sign:
                                    out[6] += 0.5 * reached[v]
                                    reached[v] += 1
                                else:
                                    reached[v] = 0
        out[2] = np.round(out[2])
        out[4] -= 3.0 * out[2]
    return counts
