"""From counts of words back to a string: a walk through the graph in which words are edges.

A word of length p leads from its first p - 1 symbols to its last p - 1.  The words of a string are
a walk in this graph; conversely integers n_u are the counts of a string's words exactly if their
edges hang together and as many leave each node as enter it, except for the two ends: they are then
walked by an Eulerian path.  Counts that are wanted, e_u, are rounded, and then repaired with edges
that add the least to sum_u (n_u - e_u)^2.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components, dijkstra

from ._sequences import Sequences, words

__all__ = ["walks"]

_LEAST = 1e-9  # a step costs at least this: none is free, so that detours are not taken


def walks(S: Sequences, X: Any, C: np.ndarray, p: int) -> list:
    """Return strings with about the counts sum_i C_ic counts(x_i) of p-words, one for each c.

    None of them is further from these counts than the nearest of the strings X.
    """
    *_, w = words(S, p)
    _, first, word = np.unique(w.code, return_index=True, return_inverse=True)
    counts = sp.coo_array((np.ones(len(word)), (w.owner, word)), (len(S), len(first))).tocsr()
    wanted = np.asarray(counts.T @ np.asarray(C, dtype=float))
    costs = counts.power(2).sum(axis=1)[:, None] - 2.0 * (counts @ wanted)
    graph, found = _Graph(S, w.place[first], p), []
    for e, cost in zip(wanted.T, costs.T, strict=True):
        n, nearest = graph.nearest(e), int(np.argmin(cost))
        start = S.starts[nearest]
        places = (
            list(range(start, start + S.lengths[nearest]))
            if cost[nearest] < np.sum(n * (n - 2.0 * e))
            else graph.walk(n)
        )
        found.append(_spelled(places, S, X))
    return found


def _spelled(places: list[int], S: Sequences, X: Any) -> Any:
    """Return the string that has at its places the symbols of these places of the flat array."""
    symbols = S.symbols[places].tolist() if len(places) else []
    if S.kind == "str":
        return "".join(map(chr, symbols))
    if S.kind == "bytes":
        return bytes(symbols)
    owner = np.searchsorted(S.starts + S.lengths, places, side="right")
    return tuple(X[i][place - S.starts[i]] for i, place in zip(owner, places, strict=True))


class _Steps:
    """What it costs to go from node to node by one more edge, or backwards by one fewer."""

    def __init__(self, graph: _Graph, n: np.ndarray, wanted: np.ndarray, remove: bool) -> None:
        fewer = np.flatnonzero(n > 0) if remove else np.zeros(0, dtype=int)
        edge = np.concatenate([np.arange(len(n)), fewer])
        change = np.repeat([1, -1], [len(n), len(fewer)])
        cost = np.maximum(2.0 * change * (n[edge] - wanted[edge]) + 1.0, _LEAST)
        start = np.where(change > 0, graph.tail[edge], graph.head[edge])
        end = np.where(change > 0, graph.head[edge], graph.tail[edge])
        order = np.lexsort((cost, end, start))
        arc = start[order] * graph.size + end[order]
        order = order[np.append(True, arc[1:] != arc[:-1])]  # the cheapest of each kind
        self.size, self.arc = graph.size, start[order] * graph.size + end[order]
        self.edge, self.change = edge[order], change[order]
        self.costs = sp.csr_array((cost[order], (start[order], end[order])), (graph.size,) * 2)

    def from_any(self, starts: np.ndarray, ends: np.ndarray) -> tuple[int, int]:
        """Return the start and the end between which the way is cheapest."""
        far, _, source = dijkstra(
            self.costs, indices=starts, min_only=True, return_predecessors=True
        )
        end = int(ends[np.argmin(far[ends])])
        return int(source[end]) if np.isfinite(far[end]) else end, end

    def path(self, start: int, end: int) -> list[tuple[int, int]]:
        """Return the edges of the cheapest way and how their numbers change; [] if none."""
        _, before = dijkstra(self.costs, indices=start, return_predecessors=True)
        found = []
        while before[end] >= 0:
            at = np.searchsorted(self.arc, before[end] * self.size + end)
            found.append((int(self.edge[at]), int(self.change[at])))
            end = int(before[end])
        return found


class _Graph:
    """Words as edges tail -> head between the words that are one symbol shorter."""

    def __init__(self, S: Sequences, places: np.ndarray, p: int) -> None:
        self.places, self.p = places, p
        if p == 1:
            tails = heads = np.zeros(len(places), dtype=np.uint64)  # of the empty word
        else:
            *_, shorter = words(S, p - 1)
            code = np.zeros(len(S.symbols), dtype=np.uint64)
            code[shorter.place] = shorter.code
            tails, heads = code[places], code[places + 1]
        nodes, ends = np.unique(np.concatenate([tails, heads]), return_inverse=True)
        self.size = len(nodes)
        self.tail, self.head = ends.reshape(2, -1)

    def nearest(self, wanted: np.ndarray) -> np.ndarray:
        """Return numbers of edges that a path can have, about as many as wanted."""
        n = np.rint(np.maximum(wanted, 0.0)).astype(int)
        if n.any():
            self._balance(n, wanted)
            self._connect(n, wanted)
        return n

    def _surplus(self, n: np.ndarray) -> np.ndarray:
        """Return for each node how many more edges leave it than enter it."""
        out = np.bincount(self.tail, n, self.size) - np.bincount(self.head, n, self.size)
        return out.astype(int)

    def _balance(self, n: np.ndarray, wanted: np.ndarray) -> None:
        """Change n until it is balanced but for the ends of one path."""
        while (surplus := self._surplus(n)).clip(min=0).sum() > 1:
            steps = _Steps(self, n, wanted, remove=True)
            ends = steps.from_any(np.flatnonzero(surplus < 0), np.flatnonzero(surplus > 0))
            for edge, change in steps.path(*ends):
                n[edge] += change

    def _connect(self, n: np.ndarray, wanted: np.ndarray) -> None:
        """Leave out the parts that do not hang together with the largest, or join them to it."""
        while True:
            there = n > 0
            links = sp.coo_array(
                (np.ones(there.sum()), (self.tail[there], self.head[there])), (self.size,) * 2
            )
            _, part = connected_components(links, directed=False)
            weight = np.bincount(part[self.tail], n)
            main = int(np.argmax(weight)) if len(weight) else 0
            others = np.flatnonzero(weight * (np.arange(len(weight)) != main))
            if not len(others):
                return
            of_other = there & (part[self.tail] == others[0])
            dropped = np.sum(n[of_other] * (2.0 * wanted[of_other] - n[of_other]))
            joined = n.copy()
            for edge, change in self._detour(n, wanted, part == main, part == others[0]):
                joined[edge] += change
            added = np.sum((joined - wanted) ** 2 - (n - wanted) ** 2)
            if np.any(joined != n) and added < dropped:
                n[:] = joined
            else:
                n[of_other] = 0

    def _detour(
        self, n: np.ndarray, wanted: np.ndarray, main: np.ndarray, other: np.ndarray
    ) -> list[tuple[int, int]]:
        """Return the edges from one part to another and back to where they left, if there are."""
        if np.any(self._surplus(n)[other]):
            return []  # an open path, which a round trip does not join
        steps = _Steps(self, n, wanted, remove=False)
        start, end = steps.from_any(np.flatnonzero(main), np.flatnonzero(other))
        there = steps.path(start, end)
        back = steps.path(end, start)
        return there + back if there and back else []

    def walk(self, n: np.ndarray) -> list[int]:
        """Return the places in the flat array of the symbols along an Eulerian path.

        Hierholzer's algorithm: walk until stuck, and insert further rounds where they begin.
        """
        if not n.any():
            return []
        left: list[list[int]] = [[] for _ in range(self.size)]
        for u in np.flatnonzero(n)[::-1]:
            left[self.tail[u]] += [int(u)] * int(n[u])
        surplus = self._surplus(n)
        start = int(np.argmax(surplus)) if surplus.any() else int(self.tail[np.argmax(n)])
        stack, path = [(start, -1)], []
        while stack:
            node = stack[-1][0]
            if left[node]:
                u = left[node].pop()
                stack.append((int(self.head[u]), u))
            else:
                path.append(stack.pop()[1])
        edges = path[-2::-1]  # the last one stands for the start
        if not edges:
            return []
        first = int(self.places[edges[0]])
        return [
            *range(first, first + self.p - 1),
            *(int(self.places[u]) + self.p - 1 for u in edges),
        ]
