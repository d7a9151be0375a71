"""Graph kernels against enumeration, and the Graphs collection."""

import itertools
import pickle
from collections import Counter

import numpy as np
import pytest
import scipy.sparse as sp
from data_folder import DATA
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import expm

import mercer.kernels.graphs._graph_kernels as module
from mercer import SVC, Expansion, KernelPCA, two_sample_test
from mercer._core import concatenate, length, same_points, take
from mercer.datasets import read_tudataset
from mercer.kernels import (
    RBF,
    EdgeHistogram,
    Graph,
    Graphlet,
    Graphs,
    Linear,
    Normalized,
    RandomWalk,
    ShortestPath,
    VertexHistogram,
    WeisfeilerLehman,
)
from mercer.kernels._preimage_formulas import single_edit_neighbours
from mercer.kernels.graphs._graph_collection import Entries
from mercer.testing import check_pullback

# ---------------------------------------------------------------------- small graphs


@st.composite
def collections(draw, directed=None, least=1):
    """Graphs of up to 5 nodes with labels of nodes and edges, loops, and isolated nodes."""
    directed = draw(st.booleans()) if directed is None else directed
    edges, labels, marks = [], [], []
    for _ in range(draw(st.integers(least, 4))):
        n = draw(st.integers(0, 5))
        pairs = [(u, v) for u in range(n) for v in range(0 if directed else u, n)]
        some = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
        edges.append(some)
        labels.append(draw(st.lists(st.sampled_from("ab"), min_size=n, max_size=n)))
        marks.append(draw(st.lists(st.integers(0, 1), min_size=len(some), max_size=len(some))))
    return Graphs.from_edges(edges, labels=labels, edge_labels=marks, directed=directed)


def entries(graph):
    """Return {(u, v): label}, with both directions of an undirected edge."""
    found = {}
    for (u, v), mark in zip(graph.edges.tolist(), graph.edge_labels, strict=True):
        found[u, v] = mark
        if not graph.directed:
            found[v, u] = mark
    return found


def products(features):
    """Return the inner products of counters."""
    return np.array(
        [[float(sum(f[c] * g[c] for c in f)) for g in features] for f in features]
    ).reshape(len(features), len(features))


def wl_features(graph, h, edges):
    labels, found = dict(enumerate(graph.labels)), Counter()
    around = entries(graph)
    for i in range(h + 1):
        found.update((i, label) for label in labels.values())
        labels = {
            u: (
                labels[u],
                tuple(
                    sorted((m if edges else 0, labels[w]) for (v, w), m in around.items() if v == u)
                ),
            )
            for u in labels
        }
    return found


def sp_features(graph):
    n, around = graph.n_nodes, entries(graph)
    d = np.full((n, n), np.inf)
    np.fill_diagonal(d, 0)
    for u, v in around:
        d[u, v] = min(d[u, v], 1)
    for w, u, v in itertools.product(range(n), repeat=3):  # Floyd-Warshall
        d[u, v] = min(d[u, v], d[u, w] + d[w, v])
    found = Counter()
    for u, v in itertools.permutations(range(n), 2):
        if np.isfinite(d[u, v]) and (graph.directed or u < v):
            ends = (graph.labels[u], graph.labels[v])
            found[ends if graph.directed else tuple(sorted(ends)), d[u, v]] += 1
    return found


def graphlet_features(graph, size, connected):
    pairs = {frozenset(e) for e in entries(graph) if e[0] != e[1]}
    found = Counter()
    for nodes in itertools.combinations(range(graph.n_nodes), size):
        inside = [e for e in pairs if e <= set(nodes)]
        reached, before = {nodes[0]}, None
        while reached != before:
            before = set(reached)
            reached = reached.union(*(e for e in inside if e & reached))
        if not connected or reached == set(nodes):
            found[len(inside), tuple(sorted(sum(v in e for e in inside) for v in nodes))] += 1
    return found


def walk_value(x, z, decay, kind, labelled):
    """Return the sum over the product graph, computed with its full matrix."""
    nodes = [
        (u, v)
        for u in range(x.n_nodes)
        for v in range(z.n_nodes)
        if not labelled or x.labels[u] == z.labels[v]
    ]
    a, b = entries(x), entries(z)
    W = np.zeros((len(nodes), len(nodes)))
    for i, (u, v) in enumerate(nodes):
        for j, (s, t) in enumerate(nodes):
            both = (u, s) in a and (v, t) in b
            W[i, j] = both and (not labelled or a[u, s] == b[v, t])
    if not nodes:
        return 0.0
    if kind == "geometric":
        return np.linalg.solve(np.eye(len(W)) - decay * W, np.ones(len(W))).sum()
    return expm(decay * W).sum()


# ---------------------------------------------------------------------- against enumeration

few = settings(max_examples=25, deadline=None)


@few
@given(collections(), st.integers(0, 3), st.booleans())
def test_weisfeiler_lehman(X, h, edges):
    truth = products([wl_features(graph, h, edges) for graph in X])
    np.testing.assert_array_equal(WeisfeilerLehman(h, edges=edges)(X), truth)
    np.testing.assert_array_equal(WeisfeilerLehman(h, edges=edges, exact=True)(X), truth)


@few
@given(collections())
def test_shortest_path(X):
    truth = products([sp_features(graph) for graph in X])
    np.testing.assert_array_equal(ShortestPath()(X), truth)
    np.testing.assert_array_equal(ShortestPath().diag(X), np.diag(truth))


@few
@given(collections(), st.sampled_from([3, 4]), st.booleans())
def test_graphlet(X, size, connected):
    truth = products([graphlet_features(graph, size, connected) for graph in X])
    np.testing.assert_array_equal(Graphlet(size, connected)(X), truth)


def test_graphlets_of_denser_graphs():
    rng = np.random.default_rng(0)
    graphs = []
    for n in (6, 7, 8, 9):
        A = np.triu(rng.random((n, n)) < 0.6, 1)
        graphs.append(sp.csr_array((A | A.T).astype(float)))
    X = Graphs.from_adjacency(graphs)
    X = Graphs.from_edges(
        [g.edges.tolist() for g in X], edge_labels=[[0] * len(g.edges) for g in X]
    )
    for size, connected in itertools.product((3, 4), (False, True)):
        truth = products([graphlet_features(graph, size, connected) for graph in X])
        np.testing.assert_array_equal(Graphlet(size, connected)(X), truth)


@few
@given(collections(), st.booleans())
def test_histograms(X, ends):
    truth = products([Counter(graph.labels.tolist()) for graph in X])
    np.testing.assert_array_equal(VertexHistogram()(X), truth)
    found = []
    for graph in X:
        counts = Counter()
        for (u, v), mark in zip(graph.edges.tolist(), graph.edge_labels, strict=True):
            names = (graph.labels[u], graph.labels[v])
            counts[mark, (names if graph.directed else tuple(sorted(names))) if ends else ()] += 1
        found.append(counts)
    np.testing.assert_array_equal(EdgeHistogram(ends)(X), products(found))


@few
@given(collections(), st.sampled_from(["exponential", "geometric"]), st.booleans())
def test_random_walk(X, kind, labelled):
    k = RandomWalk(0.03, kind, labelled)
    truth = [[walk_value(x, z, 0.03, kind, labelled) for z in X] for x in X]
    np.testing.assert_allclose(k(X), np.array(truth).reshape(len(X), len(X)), rtol=1e-11)
    np.testing.assert_allclose(k.diag(X), np.diag(truth), rtol=1e-11)
    check_pullback(k, X)


KERNELS = [
    VertexHistogram(),
    EdgeHistogram(),
    EdgeHistogram(ends=True),
    WeisfeilerLehman(2),
    WeisfeilerLehman(2, edges=True, exact=True),
    ShortestPath(),
    Graphlet(3),
    Graphlet(4),
    RandomWalk(),
    RandomWalk(0.03, "geometric"),
    RandomWalk(labelled=True),
]
each_kernel = pytest.mark.parametrize("k", KERNELS, ids=repr)


@each_kernel
@settings(max_examples=8, deadline=None)
@given(X=collections(), seed=st.integers(0, 99))
def test_the_numbering_of_nodes_does_not_matter(k, X, seed):
    rng = np.random.default_rng(seed)
    orders = [rng.permutation(graph.n_nodes) for graph in X]
    Z = Graphs.from_edges(
        [np.argsort(o)[g.edges].tolist() for o, g in zip(orders, X, strict=True)],
        labels=[g.labels[o] for o, g in zip(orders, X, strict=True)],
        edge_labels=[g.edge_labels for g in X],
        directed=X.directed,
    )
    np.testing.assert_allclose(k(Z), k(X), rtol=1e-12)
    np.testing.assert_allclose(k(X, Z), k(X), rtol=1e-12)


PATH, CLIQUE = [(0, 1), (1, 2), (2, 3)], list(itertools.combinations(range(4), 2))


def test_reference_values():
    np.testing.assert_array_equal(ShortestPath()([PATH, CLIQUE]), [[14, 18], [18, 36]])
    X = Graphs.from_edges([PATH, CLIQUE, PATH])
    for h in range(4):
        K = WeisfeilerLehman(h)(X)
        np.testing.assert_array_equal(K, np.rint(K))
        np.testing.assert_array_equal(K[0], K[2])
        assert np.all(WeisfeilerLehman(h + 1).diag(X) >= WeisfeilerLehman(h).diag(X))


@each_kernel
def test_graphs_without_much_in_them(k):
    X = Graphs.from_edges([[], [], [], [(0, 0)], [(0, 1)]], sizes=[0, 1, 3, 1, 2])
    K = k(X)
    assert np.all(np.isfinite(K)) and np.all(K[0] == 0)
    np.testing.assert_allclose(K, K.T)
    assert k([], X).shape == (0, 5)
    np.testing.assert_allclose(k(X, X), K)
    Normalized(k)(X)


def test_labels_that_training_never_saw():
    X = Graphs.from_edges([[(0, 1)], [(0, 1)]], labels=[["a", "a"], ["a", "b"]])
    Z = Graphs.from_edges([[(0, 1)], [(0, 1)]], labels=[["a", "c"], ["c", "c"]])
    k = WeisfeilerLehman(1)
    np.testing.assert_array_equal(k(Z, X), [[2, 1], [0, 0]])
    np.testing.assert_array_equal(k.diag(Z), [4, 8])
    np.testing.assert_allclose(Normalized(k)(Z, X)[0, 0], 2 / np.sqrt(4 * 8))


def test_a_base_kernel_compares_attributes():
    rng = np.random.default_rng(0)
    sizes = [3, 0, 2, 4]
    parts = [rng.normal(size=(n, 2)) for n in sizes]
    X = Graphs.from_edges([[]] * 4, attributes=parts)
    k = VertexHistogram(base=RBF(0.7))
    truth = [[RBF(0.7)(a, b).sum() if len(a) and len(b) else 0.0 for b in parts] for a in parts]
    np.testing.assert_allclose(k(X), truth)
    np.testing.assert_allclose(k.diag(X), np.diag(truth))
    np.testing.assert_allclose(k(X[[2, 0]], X), np.array(truth)[[2, 0]])
    check_pullback(k, X)
    check_pullback(k, X, X[1:])
    np.testing.assert_allclose(
        VertexHistogram(base=Linear())(X)[0, 3], parts[0].sum(axis=0) @ parts[3].sum(axis=0)
    )
    with pytest.raises(ValueError, match="the graphs have none; provide attributes"):
        k([PATH])
    with pytest.raises(ValueError, match="only without a base kernel"):
        k.features(X)


def test_large_collections_are_worked_on_in_parts(monkeypatch):
    rng = np.random.default_rng(0)
    X = Graphs.from_edges(
        [PATH, CLIQUE, PATH], attributes=[rng.normal(size=(4, 1)) for _ in range(3)]
    )
    kernels = (ShortestPath(), VertexHistogram(RBF()))
    before = [k(X) for k in kernels]
    monkeypatch.setattr(module, "_MAX_NODE_PAIRS", 17)
    monkeypatch.setattr(module, "_MAX_BASE_VALUES", 30)
    for k, K in zip(kernels, before, strict=True):
        np.testing.assert_allclose(k(X), K, rtol=1e-14)


def test_a_shared_hash_is_noticed(monkeypatch):
    monkeypatch.setattr(module, "splitmix64", lambda x, salt=0: np.asarray(x) * np.uint64(0))
    with pytest.raises(
        ArithmeticError, match=r"after 1 iterations, 2 different labels have only 1 different"
    ):
        WeisfeilerLehman(1, exact=True)([PATH])


def test_both_directions_count_where_there_are_directions():
    X = Graphs.from_edges([PATH])
    assert ShortestPath()(X)[0, 0] == 14 and ShortestPath()(X.as_directed())[0, 0] == 56
    one_way = Graphs.from_edges([PATH], directed=True)
    assert ShortestPath()(one_way)[0, 0] == 14
    with pytest.raises(ValueError, match="one of the two collections is directed"):
        RandomWalk()(X, one_way)
    for k in (ShortestPath(), WeisfeilerLehman(), EdgeHistogram(ends=True)):
        with pytest.raises(TypeError, match=r"are directed .* with points that are undirected"):
            k(X, one_way)


def test_degrees_can_take_the_place_of_labels():
    X = Graphs.from_edges([PATH, CLIQUE])
    np.testing.assert_array_equal(VertexHistogram()(X.with_labels(X.degrees)), [[8, 0], [0, 16]])


# ---------------------------------------------------------------------- the collection


def sample(n=6, seed=0, directed=False):
    rng = np.random.default_rng(seed)
    edges, labels, marks, attributes = [], [], [], []
    for _ in range(n):
        m = int(rng.integers(2, 6))
        pairs = [p for p in itertools.combinations(range(m), 2) if rng.random() < 0.6]
        edges.append(pairs)
        labels.append(rng.choice(list("CNO"), size=m).tolist())
        marks.append(rng.integers(2, size=len(pairs)).tolist())
        attributes.append(rng.normal(size=(m, 2)))
    return Graphs.from_edges(
        edges, labels=labels, edge_labels=marks, attributes=attributes, directed=directed
    )


def test_a_collection_is_a_sequence():
    X = sample()
    assert len(X) == 6 and isinstance(X[-1], Graph) and X[-1].index == 5
    assert (
        X[2:4] == X[[2, 3]] == X[np.arange(6) // 2 == 1] == Graphs._concatenated([X[2:3], X[3:4]])
    )
    assert X[::-1][::-1] == X and X[[-1]] == X[5:] and len(X[:0]) == 0
    assert X[::-1] != X and X[0] == X[[0, 1]][0] != X[1] and X != 3 and X[0] != 3
    assert len({X[0], X[:1][0]}) == 1
    assert pickle.loads(pickle.dumps(X)) == X and pickle.loads(pickle.dumps(X[2])) == X[2]
    views = list(X)
    assert module.as_graphs(views, "") == X
    assert module.as_graphs([X[3], X[0]], "") == X[[3, 0]]
    several = [X[4], sample(seed=1)[2], X[1], sample(seed=1)[0]]
    assert list(module.as_graphs(several, "")) == several
    with pytest.raises(IndexError, match="graph 6 does not exist: the collection has 6"):
        X[6]


def test_points_of_the_collection():
    X = sample()
    assert length(X) == 6 and isinstance(take(X, [1, 2]), Graphs)
    assert concatenate(X[:2], X[2:]) == X == concatenate(list(X[:2]), X[2:])
    assert same_points(X, X[:]) and not same_points(X, X[::-1])
    assert same_points(list(X), X) and concatenate(X[:0], X) == X
    with pytest.raises(ValueError, match="some of the graphs are directed"):
        concatenate(X, sample(directed=True))
    with pytest.raises(ValueError, match="some of the graphs have labels and others do not"):
        concatenate(X, Graphs.from_edges([PATH]))
    nothing = Graphs.from_edges([[]], sizes=[0])
    assert len(concatenate(X, nothing)) == 7


def test_a_view_shows_its_graph():
    X = Graphs.from_edges(
        [[(1, 0), (1, 1)], [(2, 0)]],
        labels=[[7, 8], [1, 2, 3]],
        edge_labels=[["-", "o"], ["="]],
        attributes=[[1.0, 2.0], [3.0, 4.0, 5.0]],
    )
    first, second = X
    assert first.edges.tolist() == [[0, 1], [1, 1]] and first.edge_labels.tolist() == ["-", "o"]
    assert second.labels.tolist() == [1, 2, 3] and second.edges.tolist() == [[0, 2]]
    np.testing.assert_array_equal(first.adjacency.toarray(), [[0, 1], [1, 1]])
    assert first.attributes.tolist() == [[1.0], [2.0]]
    assert repr(X) == "<Graphs: 2 graphs, 5 nodes, 3 edges; labels, attributes, edge labels>"
    assert repr(X.as_directed()[0]) == "<Graph: 2 nodes, 3 directed edges>"


def test_matrices():
    A = [np.array([[0, 2.0], [2.0, 1.0]]), sp.csr_array(np.zeros((3, 3)))]
    X = Graphs.from_adjacency(A, labels=["ab", "abc"])
    assert X.sizes.tolist() == [2, 3] and X.weights.tolist() == [2.0, 2.0, 1.0]
    np.testing.assert_array_equal(X[0].adjacency.toarray(), A[0])
    values, U = np.linalg.eigh(A[0])
    s = U.sum(axis=0) ** 2
    truth = s @ np.exp(0.1 * np.outer(values, values)) @ s
    np.testing.assert_allclose(RandomWalk()([A[0]]), [[truth]])  # weights multiply along a walk
    np.testing.assert_array_equal(ShortestPath()(A), [[1, 0], [0, 0]])
    Z = Graphs.from_adjacency([np.array([[0, 1], [0, 0]])], directed=True)
    assert Z[0].edges.tolist() == [[0, 1]]
    assert X.joined(Graphs.from_edges([[(0, 1)]], labels=["ab"])).weights.tolist()[-2:] == [1, 1]


def test_networkx():
    nx = pytest.importorskip("networkx")
    g = nx.Graph()
    g.add_node("x", label="C", atom=6, at=[0.0, 1.0])
    g.add_node("y", label="O", atom=8, at=[2.0, 3.0])
    g.add_edge("y", "x", label="=", atom=2)
    X = Graphs.from_networkx([g, nx.Graph()], attributes="at")
    assert (
        Graphs.from_edges(
            [[(0, 1)], []],
            labels=["CO", ""],
            edge_labels=["=", ""],
            attributes=[[[0, 1], [2, 3]], []],
        )
        == X
    )
    X = Graphs.from_networkx([g], labels="atom", attributes=["at", "atom"])
    assert X.labels.tolist() == [6, 8] and X.edge_labels.tolist() == [2, 2]
    assert X.attributes.tolist() == [[0, 1, 6], [2, 3, 8]]
    path = nx.path_graph(4)
    np.testing.assert_array_equal(ShortestPath()([path]), [[14]])
    assert Graphs.from_networkx([nx.DiGraph([(0, 1)])]).directed
    g.add_node("z")
    with pytest.raises(
        ValueError, match=r"graph 1: the node 'z' has no attribute 'label', which 2"
    ):
        WeisfeilerLehman()([nx.Graph(), g])
    with pytest.raises(ValueError, match="no node and no edge has the attribute 'color'"):
        Graphs.from_networkx([g], labels="color")
    with pytest.raises(
        ValueError, match=r"node 'z' has no attribute 'at', which is listed in attributes="
    ):
        Graphs.from_networkx([g], labels=None, attributes="at")
    with pytest.raises(ValueError, match="graph 0 is a multigraph"):
        Graphs.from_networkx([nx.MultiGraph()])
    with pytest.raises(ValueError, match="some of the graphs are directed"):
        Graphs.from_networkx([path, nx.DiGraph()])
    with pytest.raises(ValueError, match=r"the attributes .* of the node 'x' are not numbers"):
        Graphs.from_networkx([g], labels=None, attributes="label")


def test_graphml(tmp_path):
    nx = pytest.importorskip("networkx")
    g = nx.Graph()
    g.add_node("x", label="C")
    g.add_node("y", label="O")
    g.add_edge("x", "y", label="=")
    nx.write_graphml(g, tmp_path / "g.graphml")
    one = Graphs.from_graphml(tmp_path / "g.graphml")
    assert one == Graphs.from_networkx([g])
    assert len(Graphs.from_graphml([tmp_path / "g.graphml"] * 2)) == 2


FILES = {
    "A": "1, 2\n2, 1\n4,3\n3,4\n",
    "graph_indicator": "1\n1\n2\n2\n2",
    "graph_labels": "1\n-1\n",
    "node_labels": "0\n1\n0\n0\n2\n",
    "edge_labels": "5\n5\n6\n6\n",
    "node_attributes": "0.5, 1\n1,1\n2, 1e-3\n0,0\n1,1\n",
}


def write(folder, **changes):
    for name, text in (FILES | changes).items():
        if text is not None:
            (folder / f"DS_{name}.txt").write_text(text)
    return folder


def test_tudataset(tmp_path):
    X, y = read_tudataset(write(tmp_path))
    assert y.tolist() == [1, -1] and X[1].labels.tolist() == [0, 0, 2]
    assert X[1].edges.tolist() == [[0, 1]] and X[1].edge_labels.tolist() == [6]
    assert X.attributes[2].tolist() == [2.0, 0.001]
    archive = tmp_path / "DS.zip"
    import zipfile

    with zipfile.ZipFile(archive, "w") as z:
        for name in FILES:
            z.write(tmp_path / f"DS_{name}.txt", f"DS/DS_{name}.txt")
    again, _ = read_tudataset(archive)
    assert again == X


def test_tudataset_in_another_order_and_with_targets(tmp_path):
    changes = {"graph_labels": None, "graph_attributes": "0.5\n1.5", "edge_labels": None}
    folder = write(
        tmp_path,
        A="1,3\n3,1",
        graph_indicator="2\n1\n2\n1\n1",
        node_labels="1,0\n2,0\n3,0\n4,0\n5,0",
        **changes,
    )
    X, y = read_tudataset(folder)
    assert y.tolist() == [0.5, 1.5] and X.sizes.tolist() == [3, 2]
    assert X[0].labels.tolist() == [(2, 0), (4, 0), (5, 0)] and X[1].edges.tolist() == [[0, 1]]


@pytest.mark.parametrize(
    ("changes", "error", "text"),
    [
        (
            {"A": None},
            FileNotFoundError,
            r"has no file NAME_A.txt.*the parts found are.*Graphs.from_graphml",
        ),
        ({"graph_labels": None}, FileNotFoundError, "has no file NAME_graph_labels.txt"),
        ({"node_labels": "1\n2"}, ValueError, "NAME_node_labels.txt has 2 lines, but 5 are"),
        (
            {"node_labels": "1\nx\n3\n4\n5"},
            ValueError,
            "NAME_node_labels.txt, line 2, cannot be read.*'x'",
        ),
        (
            {"A": "1, 2\n2"},
            ValueError,
            "NAME_A.txt, line 2, cannot be read: got 1 numbers, but 2 in",
        ),
        ({"A": "1, 2, 3\n2, 1, 3"}, ValueError, "NAME_A.txt has 3 numbers per line, but an edge"),
        ({"graph_labels": f"{10**30}\n1"}, ValueError, "NAME_graph_labels.txt, line 1, cannot"),
        ({"graph_labels": "1"}, ValueError, "refers to graphs 1 to 2, but there are labels only"),
        ({"A": "1, 9\n9, 1\n1,2\n2,1"}, ValueError, "refers to nodes 1 to 9, but"),
        ({"A": "1, 3\n3, 1\n1,2\n2,1"}, ValueError, "edge 0 connects graph 0, node 0 and graph 1"),
        (
            {"node_attributes": "0\n1\nnan\n1\n1"},
            ValueError,
            "graph 1, node 0 has the attribute nan in column 0",
        ),
        (
            {"edge_labels": "5\n4\n6\n6"},
            ValueError,
            r"graph 0: the edge \(0, 1\) has two different labels",
        ),
    ],
)
def test_an_unreadable_folder_says_what_is_wrong(tmp_path, changes, error, text):
    with pytest.raises(error, match=text):
        read_tudataset(write(tmp_path, **changes))


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere is missing; pass a folder"):
        read_tudataset(tmp_path / "nowhere")
    (tmp_path / "file").write_text("x")
    with pytest.raises(FileNotFoundError, match="file is neither a folder nor a zip file"):
        read_tudataset(tmp_path / "file")


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: WeisfeilerLehman(-1), ValueError, "h must be an integer of at least 0, got -1"),
        (lambda: WeisfeilerLehman(1.5), ValueError, "h must be an integer"),
        (lambda: WeisfeilerLehman(edges="yes"), TypeError, "edges must be True or False"),
        (lambda: Graphlet(5), ValueError, "Graphlet: size must be 3 or 4, got 5"),
        (lambda: RandomWalk(kind="lazy"), ValueError, "kind must be one of"),
        (lambda: RandomWalk(-0.1), ValueError, "decay must be positive"),
        (lambda: RandomWalk(labelled=1), TypeError, "labelled must be True or False"),
        (lambda: VertexHistogram(base="rbf"), TypeError, "base must be a kernel or None"),
        (lambda: ShortestPath()([PATH, 3]), TypeError, "graph 1 is 3, which is not a graph"),
        (lambda: ShortestPath()([PATH, np.eye(2)]), TypeError, "graph 0 is a list of edges, but"),
        (lambda: ShortestPath()("PATH"), TypeError, "requires Graphs or a list of graphs"),
        (lambda: ShortestPath()(sample()[0]), TypeError, "got a single graph; put it in a list"),
        (lambda: ShortestPath()([np.ones((2, 3))]), ValueError, "graph 0 is a matrix of shape"),
        (
            lambda: ShortestPath()([[(0, "a")]]),
            ValueError,
            r"graph 0: edges must be pairs \(u, v\)",
        ),
        (
            lambda: ShortestPath()([np.array([[0, 1], [0, 0]])]),
            ValueError,
            "the adjacency matrix of graph 0 is not symmetric; pass directed=True",
        ),
        (
            lambda: Graphs.from_edges([PATH, PATH], labels=["abcd", ["a", "b", None, "c"]]),
            ValueError,
            "graph 1, node 2 has no label",
        ),
        (
            lambda: Graphs.from_edges([PATH], labels=["abc"]),
            ValueError,
            r"graph 0 has 3 nodes, numbered from 0, but an edge is \(2, 3\)",
        ),
        (
            lambda: Graphs.from_edges([PATH], edge_labels=["ab"]),
            ValueError,
            "graph 0 has 3 edges, but 2 edge labels",
        ),
        (
            lambda: Graphs.from_edges([PATH], attributes=[[0, 1, np.nan, 2]]),
            ValueError,
            "graph 0, node 2 has the attribute nan in column 0",
        ),
        (
            lambda: Graphs.from_edges([[(0, 1), (1, 0)]], edge_labels=["ab"]),
            ValueError,
            "has two different labels, 'a' and 'b'; pass only one, or directed=True",
        ),
        (
            lambda: Graphs.from_edges([PATH], sizes=[4, 1]),
            ValueError,
            "got sizes, labels or attributes of 2 graphs, but edges of 1",
        ),
        (
            lambda: Graphs.from_edges([PATH], sizes=[4], labels=["abcd", "a"]),
            ValueError,
            "got labels for 2 graphs, but there are 1 graphs",
        ),
        (
            lambda: Graphs.from_edges([PATH, PATH], attributes=[[0] * 4, [[0, 1]] * 4]),
            ValueError,
            r"the graphs have attributes of different lengths, \[1, 2\]",
        ),
        (
            lambda: concatenate(
                Graphs.from_edges([PATH], attributes=[[0] * 4]),
                Graphs.from_edges([PATH], attributes=[[[0, 1]] * 4]),
            ),
            ValueError,
            r"the graphs have attributes of different lengths, \[1, 2\]",
        ),
        (
            lambda: Graphs.from_edges([PATH], edge_labels=[["a", None, "b"]]),
            ValueError,
            "edge number 1 of the collection has no label; label every edge, or omit",
        ),
        (
            lambda: Graphs.from_edges([[(0, 1), (1,)]]),
            ValueError,
            r"graph 0: edges must be pairs \(u, v\) of node numbers",
        ),
        (
            lambda: Graphs.from_adjacency([np.zeros((2, 2)), [[0, np.inf], [np.inf, 0]]]),
            ValueError,
            "graph 1 has an edge weight that is infinite or NaN",
        ),
        (lambda: RBF()(sample()), ValueError, "RBF requires vectors, but X contains graphs"),
        (lambda: SVC().fit(sample(), [0, 1] * 3), ValueError, "kernels for graphs are Weis"),
        (lambda: WeisfeilerLehman()([[(0, 1)]]) and sample().with_labels([1]), ValueError, "1 la"),
    ],
)
def test_refusals(make, error, text):
    with pytest.raises(error, match=text):
        make()


def test_a_walk_that_diverges_says_how_far_decay_may_go():
    X = Graphs.from_edges([PATH, CLIQUE])  # radius 3
    k = RandomWalk(1 / 9, "geometric")
    text = r"diverges for graph 1, .* radius 3: decay=0.111111 must be below .* = 0.111111"
    with pytest.raises(ValueError, match=text):
        k(X)
    assert np.all(RandomWalk(0.11, "geometric")(X) > 0)
    model = KernelPCA(1, kernel=k).fit([PATH, PATH[:1], PATH[:2]])
    with pytest.raises(ValueError, match="diverges for graph 0"):
        model.transform([CLIQUE])
    for labelled in (False, True):
        with pytest.raises(ValueError, match="diverges"):
            RandomWalk(0.2, "geometric", labelled)(X.as_directed())
    with pytest.raises(ValueError, match=r"overflows for graph 1.*below 77.8"):
        RandomWalk(100.0)(X)


# ---------------------------------------------------------------------- estimators, pre-images


def test_lists_and_collections_go_through_estimators():
    X, y = sample(30), np.arange(30) % 2
    k = Normalized(WeisfeilerLehman(2))
    model = SVC(kernel=k).fit(X, y)
    for other in (list(X), X):
        np.testing.assert_array_equal(SVC(kernel=k).fit(other, y).predict(X), model.predict(other))
    assert isinstance(model.support_vectors_, Graphs)
    pca = KernelPCA(2, kernel=k).fit(X)
    np.testing.assert_allclose(pca.transform(list(X)), pca.fit_transform(X), atol=1e-10)
    assert two_sample_test(X[:15], X[15:], k, random_state=0).pvalue <= 1


def test_the_mean_of_graphs():
    ring = [(i, (i + 1) % 5) for i in range(5)]
    X = Graphs.from_edges(
        [ring, [*ring, (0, 2)], [*ring, (1, 4)]], labels=["CCCCC", "CCCCN", "CCCCC"]
    )
    for k in (WeisfeilerLehman(1), Normalized(ShortestPath()), 2 * WeisfeilerLehman(1) + 1):
        mean = Expansion.mean(k, X)
        nearest, found = mean.preimage("nearest"), mean.preimage()
        assert found.methods == ("search",) and found.residuals[0] <= nearest.residuals[0] + 1e-12
        direct = k.diag(found.points) - 2 * mean(found.points)[:, 0] + mean.norm()[0] ** 2
        np.testing.assert_allclose(found.residuals, direct, atol=1e-9)
    # A pre-image among the neighbours of a candidate is found.
    f = Expansion.sections(WeisfeilerLehman(1), X[1:2])
    found = f.preimage(candidates=Graphs.from_edges([ring], labels=["CCCCN"]))
    assert found.residuals[0] == 0.0


def test_edits_change_one_thing():
    X = Graphs.from_edges([[(0, 1)], [(0, 1)]], labels=["abb", "ab"], edge_labels=["-", "="])
    around = single_edit_neighbours(X)(X[0])
    # the edge goes, or is "="; two edges come, with two labels each; three nodes are relabelled
    assert len(around) == 1 + 1 + 4 + 3 and len({(g, tuple(g.labels)) for g in around}) == 9
    assert all(g != X[0] for g in around)
    ways = single_edit_neighbours(Graphs.from_edges([[(0, 1)]], directed=True))
    assert len(ways(Graphs.from_edges([[(0, 1)]], directed=True)[0])) == 2


# ---------------------------------------------------------------------- real data


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "k", "least"),
    [("MUTAG", ShortestPath(), 0.80), ("ENZYMES", WeisfeilerLehman(2), 0.45)],
    ids=["MUTAG", "ENZYMES"],
)
def test_published_accuracies(name, k, least):
    """Ten folds with one C; benchmarks/graph_accuracy.py selects C and h within the folds."""
    path = DATA / "graphs" / f"{name}.zip"
    if not path.exists():
        pytest.skip(f"no {path.name}: set MERCER_DATA")
    from sklearn.model_selection import StratifiedKFold, cross_val_score

    X, y = read_tudataset(path)
    folds = StratifiedKFold(10, shuffle=True, random_state=0)
    assert cross_val_score(SVC(C=10.0, kernel=Normalized(k)), X, y, cv=folds).mean() > least


def test_the_rule_of_a_base_kernel_uses_all_nodes():
    X = Graphs.from_edges([[(0, 1)], [(0, 1)]], attributes=[[0.0, 1.0], [1.0, 3.0]])
    kernel = VertexHistogram(RBF("median")).resolve(X)
    assert kernel.base == RBF("median").resolve([[0.0], [1.0], [1.0], [3.0]])


def test_the_arrays_of_a_collection_are_checked():
    ends = np.array([0]), np.array([1])
    with pytest.raises(ValueError, match="edge 0 leads to node 5, but there are 2 nodes"):
        Graphs([2], Entries(ends[0], np.array([5]), None))
    with pytest.raises(
        ValueError, match=r"attributes have the shape \(1, 1\), but there are 2 nod"
    ):
        Graphs([2], Entries(*ends, None), attributes=[[1.0]])
