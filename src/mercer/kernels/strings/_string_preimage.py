"""Construct strings with given counts of words (p-grams), as Eulerian paths of a de Bruijn graph.

The words of length p are the edges of the graph: a word leads from its first p - 1 symbols to its
last p - 1 symbols.  The words of a string form a path.  Conversely, integers n_u are the word
counts of a string if and only if the edges are connected and each node has as many outgoing as
incoming edges, except for the first and the last node of the path.  The string is then an Eulerian
path.

The target counts e_u of a pre-image are real numbers.  They are rounded to integers n_u, and then
edges are added or removed until these conditions hold, at a small increase of
sum_u (n_u - e_u)^2.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components, dijkstra

from ._sequences import SequenceEncoding, iter_words

__all__ = ["strings_from_word_counts"]

# Minimum cost of adding or removing an edge.  It is positive, so that shortest paths contain no
# superfluous edges.
_MIN_STEP_COST = 1e-9


def strings_from_word_counts(S: SequenceEncoding, X: Any, C: np.ndarray, p: int) -> list:
    """Return one string per column c of C, with word counts near sum_i C_ic counts(x_i).

    Words have length p, and counts(x_i) are the word counts of string i of X.  If a string of X is
    closer to the target counts than the constructed string, it is returned instead.  S is the
    encoding of X.
    """
    *_, w = iter_words(S, p)
    _, first, word = np.unique(w.code, return_index=True, return_inverse=True)
    counts = sp.coo_array((np.ones(len(word)), (w.owner, word)), (len(S), len(first))).tocsr()
    targets = np.asarray(counts.T @ np.asarray(C, dtype=float))
    # squared distances of the counts of X from each target e, without the constant |e|^2
    costs = counts.power(2).sum(axis=1)[:, None] - 2.0 * (counts @ targets)
    graph, strings = _DeBruijnGraph(S, w.start[first], p), []
    for e, cost in zip(targets.T, costs.T, strict=True):
        n, nearest = graph.nearest_counts(e), int(np.argmin(cost))
        start = S.starts[nearest]
        positions = (
            list(range(start, start + S.lengths[nearest]))
            if cost[nearest] < np.sum(n * (n - 2.0 * e))
            else graph.eulerian_path(n)
        )
        strings.append(_string_at(positions, S, X))
    return strings


def _string_at(positions: list[int], S: SequenceEncoding, X: Any) -> Any:
    """Return the string of the symbols at these positions of the flat array of symbols."""
    symbols = S.symbols[positions].tolist() if len(positions) else []
    if S.kind == "str":
        return "".join(map(chr, symbols))
    if S.kind == "bytes":
        return bytes(symbols)
    owner = np.searchsorted(S.starts + S.lengths, positions, side="right")
    return tuple(X[i][at - S.starts[i]] for i, at in zip(owner, positions, strict=True))


class _ResidualGraph:
    """Residual graph of a minimum-cost flow: the costs of changing edge counts n_u by one.

    An arc along an edge adds one copy of the edge.  If `remove` is True, an arc against the
    direction of an edge removes one copy.  The cost is the change of sum_u (n_u - target_u)^2.
    """

    def __init__(
        self, graph: _DeBruijnGraph, n: np.ndarray, target: np.ndarray, remove: bool
    ) -> None:
        removable = np.flatnonzero(n > 0) if remove else np.zeros(0, dtype=int)
        edge = np.concatenate([np.arange(len(n)), removable])
        change = np.repeat([1, -1], [len(n), len(removable)])
        cost = np.maximum(2.0 * change * (n[edge] - target[edge]) + 1.0, _MIN_STEP_COST)
        start = np.where(change > 0, graph.tail[edge], graph.head[edge])
        end = np.where(change > 0, graph.head[edge], graph.tail[edge])
        order = np.lexsort((cost, end, start))
        arc = start[order] * graph.size + end[order]
        order = order[np.append(True, arc[1:] != arc[:-1])]  # keep the cheapest of parallel arcs
        self.size, self.arc = graph.size, start[order] * graph.size + end[order]
        self.edge, self.change = edge[order], change[order]
        self.costs = sp.csr_array((cost[order], (start[order], end[order])), (graph.size,) * 2)

    def closest_pair(self, starts: np.ndarray, ends: np.ndarray) -> tuple[int, int]:
        """Return the start node and the end node that are connected by the cheapest path."""
        distance, _, source = dijkstra(
            self.costs, indices=starts, min_only=True, return_predecessors=True
        )
        end = int(ends[np.argmin(distance[ends])])
        return int(source[end]) if np.isfinite(distance[end]) else end, end

    def path(self, start: int, end: int) -> list[tuple[int, int]]:
        """Return the cheapest path as pairs (edge, change of its count); [] if there is no path."""
        _, predecessor = dijkstra(self.costs, indices=start, return_predecessors=True)
        steps = []
        while predecessor[end] >= 0:
            at = np.searchsorted(self.arc, predecessor[end] * self.size + end)
            steps.append((int(self.edge[at]), int(self.change[at])))
            end = int(predecessor[end])
        return steps


class _DeBruijnGraph:
    """De Bruijn graph: words of length p are edges, words of length p - 1 are nodes.

    For each word, `positions` contains an index in S.symbols at which the word starts.
    """

    def __init__(self, S: SequenceEncoding, positions: np.ndarray, p: int) -> None:
        self.positions, self.p = positions, p
        if p == 1:
            # For p = 1, the only node is the empty word.
            tails = heads = np.zeros(len(positions), dtype=np.uint64)
        else:
            *_, shorter = iter_words(S, p - 1)
            code = np.zeros(len(S.symbols), dtype=np.uint64)
            code[shorter.start] = shorter.code
            tails, heads = code[positions], code[positions + 1]
        nodes, ends = np.unique(np.concatenate([tails, heads]), return_inverse=True)
        self.size = len(nodes)
        self.tail, self.head = ends.reshape(2, -1)

    def nearest_counts(self, target: np.ndarray) -> np.ndarray:
        """Return edge counts, near the target counts, for which an Eulerian path exists."""
        n = np.rint(np.maximum(target, 0.0)).astype(int)
        if n.any():
            self._balance(n, target)
            self._connect(n, target)
        return n

    def _surplus(self, n: np.ndarray) -> np.ndarray:
        """Return the number of outgoing minus incoming edges of each node."""
        out = np.bincount(self.tail, n, self.size) - np.bincount(self.head, n, self.size)
        return out.astype(int)

    def _balance(self, n: np.ndarray, target: np.ndarray) -> None:
        """Change the counts n in place until at most the two ends of one path are unbalanced."""
        while (surplus := self._surplus(n)).clip(min=0).sum() > 1:
            residual = _ResidualGraph(self, n, target, remove=True)
            ends = residual.closest_pair(np.flatnonzero(surplus < 0), np.flatnonzero(surplus > 0))
            for edge, change in residual.path(*ends):
                n[edge] += change

    def _connect(self, n: np.ndarray, target: np.ndarray) -> None:
        """Change the counts n in place until the edges with n > 0 are connected.

        Each component is either joined to the largest component or removed, whichever costs less.
        """
        while True:
            used = n > 0
            links = sp.coo_array(
                (np.ones(used.sum()), (self.tail[used], self.head[used])), (self.size,) * 2
            )
            _, part = connected_components(links, directed=False)
            weight = np.bincount(part[self.tail], n)
            main = int(np.argmax(weight)) if len(weight) else 0
            others = np.flatnonzero(weight * (np.arange(len(weight)) != main))
            if not len(others):
                return
            in_other = used & (part[self.tail] == others[0])
            removal_cost = np.sum(n[in_other] * (2.0 * target[in_other] - n[in_other]))
            joined = n.copy()
            for edge, change in self._round_trip(n, target, part == main, part == others[0]):
                joined[edge] += change
            joining_cost = np.sum((joined - target) ** 2 - (n - target) ** 2)
            if np.any(joined != n) and joining_cost < removal_cost:
                n[:] = joined
            else:
                n[in_other] = 0

    def _round_trip(
        self, n: np.ndarray, target: np.ndarray, main: np.ndarray, other: np.ndarray
    ) -> list[tuple[int, int]]:
        """Return the cheapest path from one component to another and back, or [] if none exists.

        `main` and `other` are boolean masks of the nodes of the two components.
        """
        if np.any(self._surplus(n)[other]):
            return []  # the edges of `other` form an open path, not a cycle
        residual = _ResidualGraph(self, n, target, remove=False)
        start, end = residual.closest_pair(np.flatnonzero(main), np.flatnonzero(other))
        outward = residual.path(start, end)
        back = residual.path(end, start)
        return outward + back if outward and back else []

    def eulerian_path(self, n: np.ndarray) -> list[int]:
        """Return the string of an Eulerian path, as indices in the flat array of symbols.

        n is the number of copies of each edge.  Hierholzer's algorithm: follow unused edges until
        the current node has none, and insert further cycles at the nodes where they start.
        """
        if not n.any():
            return []
        unused: list[list[int]] = [[] for _ in range(self.size)]
        for u in np.flatnonzero(n)[::-1]:
            unused[self.tail[u]] += [int(u)] * int(n[u])
        surplus = self._surplus(n)
        start = int(np.argmax(surplus)) if surplus.any() else int(self.tail[np.argmax(n)])
        stack, path = [(start, -1)], []
        while stack:
            node = stack[-1][0]
            if unused[node]:
                u = unused[node].pop()
                stack.append((int(self.head[u]), u))
            else:
                path.append(stack.pop()[1])
        edges = path[-2::-1]  # edges in forward order, without the -1 of the start node
        if not edges:
            return []
        first = int(self.positions[edges[0]])
        return [
            *range(first, first + self.p - 1),
            *(int(self.positions[u]) + self.p - 1 for u in edges),
        ]
