"""Pre-images that are given by a formula, and neighbours of structured points.

The pre-images z_c of sum_i C_ic phi(x_i) minimise |phi(z_c) - sum_i C_ic phi(x_i)|, where phi is
the feature map of the kernel.  For a few classes of kernels there is a formula
(`closed_form_preimage`).  Otherwise a search moves from a point to one of its neighbours
(`preimage_neighbours`).  Both functions dispatch on the class of the kernel;
`closed_form_preimage.register(cls)` adds a formula.

Strings are constructed from counts of words (p-grams), as Eulerian paths of a de Bruijn graph.  The
words of length p are the edges of the graph: a word leads from its first p - 1 symbols to its last
p - 1 symbols.  The words of a string form a path.  Conversely, integers n_u are the word counts of
a string if and only if the edges are connected and each node has as many outgoing as incoming
edges, except for the first and the last node of the path.  The string is then an Eulerian path.

The target counts e_u of a pre-image are real numbers.  They are rounded to integers n_u, and then
edges are added or removed until these conditions hold, at a small increase of
sum_u (n_u - e_u)^2.
"""

from __future__ import annotations

from collections.abc import Callable as Function
from functools import singledispatch
from itertools import combinations, permutations
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components, dijkstra

from .._core import Points, length
from ._base import Kernel
from .algebra._closure_rules import Combination
from .algebra._input_maps import Shift
from .algebra._wrappers import Wrapper
from .graphs._graph_collection import Graph, Graphs, as_graphs
from .graphs._graph_conversion import Entries, as_label_array
from .graphs._graph_kernels import GraphKernel
from .sets._ranking_kernels import RankingKernel, pair_batches, pair_features
from .sets._set_kernels import Intersection, SetRatio
from .strings._sequences import SequenceEncoding, as_string_list, encode_sequences, iter_words
from .strings._word_kernels import Spectrum
from .vectors._dot_product import Bilinear, Linear

# Minimum cost of adding or removing an edge.  It is positive, so that shortest paths contain no
# superfluous edges.
_MIN_STEP_COST = 1e-9


Neighbours: TypeAlias = Function[[Any], Points]  # returns the neighbours of one point


class PreimageFormula(NamedTuple):
    """Pre-images that were computed by a formula."""

    points: Points
    method: str = "exact"  # the name of the formula if it is only approximate


@singledispatch
def closed_form_preimage(kernel: Kernel, X: Points, C: np.ndarray) -> PreimageFormula | None:
    """Return the points z_c that minimise |phi(z_c) - sum_i C_ic phi(x_i)|, by a formula.

    Returns None if there is no formula, so that a search is needed.  For a kernel with neighbours,
    a search starts from the returned points.

    Parameters
    ----------
    kernel : Kernel
    X : n points
    C : ndarray of shape (n, q)
        The coefficients; z_c is the pre-image of column c.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF, Linear, closed_form_preimage
    >>> closed_form_preimage(Linear(), np.array([[1.0], [3.0]]), np.array([[0.5], [0.5]])).points
    array([[2.]])
    >>> closed_form_preimage(RBF(), np.array([[1.0], [3.0]]), np.array([[0.5], [0.5]])) is None
    True
    """
    return None


@singledispatch
def preimage_neighbours(kernel: Kernel, X: Points) -> Neighbours | None:
    """Return a function that lists the neighbours of a structured point, or None.

    Neighbours differ from a point by one small change, such as one edge of a graph.  The search for
    pre-images moves from a point to one of its neighbours.  The points X determine which changes
    are possible: for graphs, the labels that occur in X.

    Examples
    --------
    >>> from mercer.kernels import Kendall, preimage_neighbours
    >>> preimage_neighbours(2.0 * Kendall(), [[1, 2, 3]])([1, 2, 3])
    array([[2., 1., 3.],
           [1., 3., 2.]])
    """
    return None


@preimage_neighbours.register
def _(kernel: Wrapper, X: Points) -> Neighbours | None:
    return preimage_neighbours(kernel.kernel, X) if kernel._inner_points(X)[0] is X else None


@preimage_neighbours.register
def _(kernel: Combination, X: Points) -> Neighbours | None:
    functions = (preimage_neighbours(child, X) for _, child in kernel._children())
    return next((function for function in functions if function is not None), None)


# ---------------------------------------------------------------------- vectors


@closed_form_preimage.register(Linear)
@closed_form_preimage.register(Bilinear)
def _of_linear(kernel: Kernel, X: Points, C: np.ndarray) -> PreimageFormula:
    return PreimageFormula(np.asarray(C.T @ X))  # phi(x) = x, or A^(1/2) x


@closed_form_preimage.register
def _(kernel: Shift, X: Points, C: np.ndarray) -> PreimageFormula | None:
    inner = closed_form_preimage(kernel.kernel, kernel._transform(X), C)
    if inner is None or not isinstance(inner.points, np.ndarray):
        return None
    return PreimageFormula(inner.points + kernel._per_column(inner.points.shape[1]))


# ---------------------------------------------------------------------- sets and rankings


@closed_form_preimage.register
def _(kernel: Intersection, X: Points, C: np.ndarray) -> PreimageFormula:
    elements = kernel._encode(X)
    # Minimise k(z, z) - 2 f(z) with f = sum_i c_i k(x_i, .).  Each element of z adds 1 - 2 w,
    # where w is the sum of c_i over the points that contain it, so choose those with w > 1/2.
    return PreimageFormula(elements.like(np.asarray(sp.csr_array(elements.phi).T @ C).T > 0.5))


@closed_form_preimage.register
def _(kernel: SetRatio, X: Points, C: np.ndarray) -> PreimageFormula | None:
    """Return the exact pre-image for each column c of C.

    This is the set z of elements of X that maximises f(z) = sum_i c_i k(x_i, z): since k(z, z)
    = 1, it is the set nearest to f in feature space.  For a given size t of z, f(z) is a sum of
    one weight per element, so that the t elements with the largest weights are optimal.  Sizes
    t are tried in increasing order.  With s_i = |x_i|, sum_i |c_i| s_i / size(s_i, t) is an
    upper bound of f(z) that decreases with t, so that the search stops when the bound is not
    larger than the best value.
    """
    elements = kernel._encode(X)
    phi, s = sp.csr_array(elements.phi).astype(float), elements.sizes
    positive_sizes = np.where(s == 0, 1.0, s)
    best = C[s == 0].sum(axis=0)  # the value f(z) of the empty set z
    chosen = np.zeros((C.shape[1], phi.shape[1]), dtype=bool)
    for t in range(1, phi.shape[1] + 1):
        rates = 1.0 / kernel._size(positive_sizes, float(t))
        undecided = np.flatnonzero((s * rates) @ np.abs(C) > best)
        if not undecided.size:
            break
        weights = np.asarray(phi.T @ (C[:, undecided] * rates[:, None])).T
        top = np.argsort(-weights, axis=1, kind="stable")[:, :t]
        values = np.take_along_axis(weights, top, axis=1).sum(axis=1)
        better = values > best[undecided]
        rows = undecided[better]
        best[rows], chosen[rows] = values[better], False
        chosen[rows[:, None], top[better]] = True
    return PreimageFormula(elements.like(chosen))


@closed_form_preimage.register
def _(kernel: RankingKernel, X: Points, C: np.ndarray) -> PreimageFormula | None:
    """Return complete rankings from which the search for pre-images starts.

    For each column c of C, the target in feature space is sum_i c_i phi(x_i).  The result is
    the Borda ranking, or a ranking in X if that is closer to the target.  The Borda ranking
    sorts the items by the weighted mean number of items that are ranked after them.
    """
    ranks, lead = kernel._ranks(X)
    m = ranks.shape[1]
    wins = np.zeros((m, C.shape[1]))
    for a, b in pair_batches(m):
        means = pair_features(ranks, lead, a, b).T @ C
        np.add.at(wins, a, means)
        np.subtract.at(wins, b, means)
    first = 0.0 if np.nanmin(ranks, initial=1.0) == 0 else 1.0
    borda = np.argsort(np.argsort(-wins.T, axis=1, kind="stable"), axis=1) + first
    candidates = np.concatenate([borda, ranks[~np.isnan(ranks).any(axis=1)]])
    costs = kernel.diag(candidates)[:, None] - 2.0 * kernel(candidates, X) @ C
    # Prefer the Borda ranking to rankings with the same cost up to rounding.
    costs[np.arange(len(borda)), np.arange(len(borda))] -= 1e-12
    return PreimageFormula(candidates[np.argmin(costs, axis=0)])


@preimage_neighbours.register
def _(kernel: RankingKernel, X: Points) -> Neighbours:
    return _adjacent_swaps


def _adjacent_swaps(z: Any) -> np.ndarray:
    """Return all rankings that result from swapping two items with consecutive ranks in z."""
    z = np.asarray(z, dtype=float)
    order = np.argsort(z, kind="stable")
    order = order[~np.isnan(z[order])]
    changed = np.repeat(z[None], max(len(order) - 1, 0), axis=0)
    rows = np.arange(len(changed))
    changed[rows, order[:-1]], changed[rows, order[1:]] = z[order[1:]], z[order[:-1]]
    return changed


# ---------------------------------------------------------------------- graphs


@preimage_neighbours.register
def _(kernel: GraphKernel, X: Points) -> Neighbours:
    return single_edit_neighbours(kernel._graphs(X))


def single_edit_neighbours(X: Graphs) -> Neighbours:
    """Return a function that lists all graphs that differ from a given graph by one edit.

    An edit adds or removes an edge between two different nodes, or replaces the label of a node or
    of an edge by another label that occurs in X.  If edges have labels, an edge is added with each
    label in turn.

    Examples
    --------
    >>> from mercer.kernels import Graphs
    >>> from mercer.kernels._preimage_formulas import single_edit_neighbours
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


# ---------------------------------------------------------------------- strings


@closed_form_preimage.register
def _(kernel: Spectrum, X: Points, C: np.ndarray) -> PreimageFormula | None:
    if kernel.blended or not length(X):
        return None
    S, strings = encode_sequences(X, "Spectrum"), as_string_list(X, "Spectrum")
    return PreimageFormula(strings_from_word_counts(S, strings, C, kernel.p), "eulerian")


def strings_from_word_counts(S: SequenceEncoding, X: Points, C: np.ndarray, p: int) -> list[Any]:
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


def _string_at(
    positions: list[int], S: SequenceEncoding, X: Points
) -> str | bytes | tuple[Any, ...]:
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
        n: np.ndarray = np.rint(np.maximum(target, 0.0)).astype(int)
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
        first = int(self.positions[edges[0]])
        return [
            *range(first, first + self.p - 1),
            *(int(self.positions[u]) + self.p - 1 for u in edges),
        ]
