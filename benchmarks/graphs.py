"""Kernel matrices of graphs compared with GraKeL: Weisfeiler-Lehman (h = 5) and shortest paths.

The timed call computes the matrix K of a data set of TUDataset from graphs in memory, in the form
that each library needs: `Graphs` for mercer, lists of (edges, labels) for GraKeL.  GraKeL counts
every pair of nodes in both orders, so mercer gets `X.as_directed()` for shortest paths.  The
reference counts features in dictionaries and takes distances from SciPy.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import scipy.sparse as sp

from ._problems import DATA
from ._suite import Call, Case, Contender, Suite

WL_ITERATIONS = 5
ROW_STEP = 7  # only every seventh row of K is compared


def load_graphs(name: str, n: int | None):
    from mercer.datasets import read_tudataset

    return read_tudataset(DATA / "graphs" / f"{name}.zip")[0][:n]


def mercer(kernel: str, name: str, n: int | None) -> Call:
    from mercer.kernels import ShortestPath, WeisfeilerLehman

    X = load_graphs(name, n)
    if kernel == "shortest path":
        k, X = ShortestPath(), X.as_directed()
    else:
        k = WeisfeilerLehman(WL_ITERATIONS)
    k(X[:50])  # compile before timing
    # X[:] is a new collection, so that nothing is cached between calls.
    return lambda: k(X[:])[::ROW_STEP]


def grakel(kernel: str, name: str, n: int | None) -> Call:
    from grakel import Graph
    from grakel.kernels import ShortestPath, VertexHistogram, WeisfeilerLehman

    graphs = []
    for g in load_graphs(name, n):
        edges = {(u, v) for a, b in g.edges.tolist() for u, v in ((a, b), (b, a))}
        # A set of edges does not contain isolated nodes, and shortest paths then fail.
        has_isolated_nodes = len({u for u, _ in edges}) < g.n_nodes
        structure = g.adjacency.toarray() if has_isolated_nodes else edges
        graphs.append(Graph(structure, node_labels=dict(enumerate(g.labels.tolist()))))

    def call() -> np.ndarray:
        if kernel == "shortest path":
            return ShortestPath().fit_transform(graphs)[::ROW_STEP]
        model = WeisfeilerLehman(n_iter=WL_ITERATIONS, base_graph_kernel=VertexHistogram)
        return np.asarray(model.fit_transform(graphs), dtype=float)[::ROW_STEP]

    return call


def reference(kernel: str, name: str, n: int | None) -> np.ndarray:
    """Return rows of K from features counted in dictionaries."""
    counters = [
        count_wl_labels(g) if kernel != "shortest path" else count_shortest_paths(g)
        for g in load_graphs(name, n)
    ]
    columns_by_feature: dict = {}
    rows, columns, values = [], [], []
    for i, counter in enumerate(counters):
        for feature, value in counter.items():
            rows.append(i)
            columns.append(columns_by_feature.setdefault(feature, len(columns_by_feature)))
            values.append(float(value))
    phi = sp.csr_array((values, (rows, columns)), shape=(len(counters), len(columns_by_feature)))
    return (phi[::ROW_STEP] @ phi.T).toarray()


_compressed_labels: dict = {}  # Weisfeiler-Lehman: (label, labels of neighbours) to integer


def count_wl_labels(g) -> Counter:
    """Return the number of nodes with each Weisfeiler-Lehman label, over all iterations."""
    neighbours: list[list[int]] = [[] for _ in range(g.n_nodes)]
    for u, v in g.edges.tolist():
        neighbours[u].append(v)
        neighbours[v].append(u)
    labels = g.labels.tolist()
    counts: Counter = Counter((0, label) for label in labels)
    for i in range(1, WL_ITERATIONS + 1):
        keys = [
            (i, labels[u], tuple(sorted(labels[v] for v in neighbours[u])))
            for u in range(len(neighbours))
        ]
        labels = [_compressed_labels.setdefault(key, len(_compressed_labels)) for key in keys]
        counts.update((i, label) for label in labels)
    return counts


def count_shortest_paths(g) -> Counter:
    """Return the number of node pairs with given labels and distance."""
    from scipy.sparse.csgraph import shortest_path

    labels = g.labels.tolist()
    D = shortest_path(g.adjacency, unweighted=True)
    u, v = np.nonzero(np.isfinite(D) & ~np.eye(g.n_nodes, dtype=bool))
    return Counter((labels[a], labels[b], d) for a, b, d in zip(u, v, D[u, v], strict=True))


def cases(quick: bool) -> list[Case]:
    sets = [(name, None) for name in ("MUTAG", "PTC_MR", "ENZYMES", "PROTEINS", "NCI1", "AIDS")]
    return [
        Case(f"{kernel}, {name}", {"kernel": kernel, "name": name, "n": n}, 1e-14, family=kernel)
        for name, n in sets[: 1 if quick else None]
        if (DATA / "graphs" / f"{name}.zip").exists()
        for kernel in ("Weisfeiler-Lehman, h = 5", "shortest path")
    ]


SUITE = Suite(
    "graph kernel matrices",
    cases,
    {"mercer": Contender("mercer", mercer), "GraKeL": Contender("grakel", grakel)},
    reference,
)
