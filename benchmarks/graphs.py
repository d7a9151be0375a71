"""Kernel matrices of graphs against GraKeL: Weisfeiler-Lehman (h = 5) and shortest paths.

What is timed is the matrix K of a set of TUDataset, from graphs in memory in the form that each
library takes: `Graphs` here, lists of (edges, labels) there.  GraKeL counts every pair of nodes in
both orders, so shortest paths are those of `X.as_directed()`.  The reference relabels by a
dictionary, and takes distances from SciPy.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import scipy.sparse as sp

from ._problems import DATA
from ._suite import Call, Case, Contender, Suite

H = 5
ROWS = 7  # every seventh row of K is compared


def problem(name: str, n: int | None):
    from mercer.datasets import read_tudataset

    return read_tudataset(DATA / "graphs" / f"{name}.zip")[0][:n]


def mercer(kernel: str, name: str, n: int | None) -> Call:
    from mercer.kernels import ShortestPath, WeisfeilerLehman

    X = problem(name, n)
    if kernel == "shortest path":
        k, X = ShortestPath(), X.as_directed()
    else:
        k = WeisfeilerLehman(H)
    k(X[:50])  # what is compiled on first use
    return lambda: k(X[:])[::ROWS]  # another collection: nothing is kept between calls


def grakel(kernel: str, name: str, n: int | None) -> Call:
    from grakel import Graph
    from grakel.kernels import ShortestPath, VertexHistogram, WeisfeilerLehman

    graphs = []
    for g in problem(name, n):
        edges = {(u, v) for a, b in g.edges.tolist() for u, v in ((a, b), (b, a))}
        # A set of edges leaves out nodes without any, and shortest paths then fail.
        alone = len({u for u, _ in edges}) < g.n_nodes
        structure = g.adjacency.toarray() if alone else edges
        graphs.append(Graph(structure, node_labels=dict(enumerate(g.labels.tolist()))))

    def call() -> np.ndarray:
        if kernel == "shortest path":
            return ShortestPath().fit_transform(graphs)[::ROWS]
        model = WeisfeilerLehman(n_iter=H, base_graph_kernel=VertexHistogram)
        return np.asarray(model.fit_transform(graphs), dtype=float)[::ROWS]

    return call


def reference(kernel: str, name: str, n: int | None) -> np.ndarray:
    """Count features in dictionaries."""
    counters = [wl(g) if kernel != "shortest path" else paths(g) for g in problem(name, n)]
    places: dict = {}
    rows, columns, values = [], [], []
    for i, counter in enumerate(counters):
        for feature, value in counter.items():
            rows.append(i)
            columns.append(places.setdefault(feature, len(places)))
            values.append(float(value))
    phi = sp.csr_array((values, (rows, columns)), shape=(len(counters), len(places)))
    return (phi[::ROWS] @ phi.T).toarray()


_names: dict = {}  # of labels that rounds have made, the same for equal ones


def wl(g) -> Counter:
    around: list[list[int]] = [[] for _ in range(g.n_nodes)]
    for u, v in g.edges.tolist():
        around[u].append(v)
        around[v].append(u)
    labels = g.labels.tolist()
    found: Counter = Counter((0, label) for label in labels)
    for i in range(1, H + 1):
        keys = [
            (i, labels[u], tuple(sorted(labels[v] for v in around[u]))) for u in range(len(around))
        ]
        labels = [_names.setdefault(key, len(_names)) for key in keys]
        found.update((i, label) for label in labels)
    return found


def paths(g) -> Counter:
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
    "Matrices of graph kernels",
    cases,
    {"mercer": Contender("mercer", mercer), "GraKeL": Contender("grakel", grakel)},
    reference,
)
