"""Neighbours, two-sample tests, cells and drawings that the explorer session computes."""

import base64
import queue

import numpy as np
import pandas as pd
import pytest
from wire import unpack

from mercer import KernelPCA, explore, two_sample_test
from mercer.app.explorer._controller import Controller
from mercer.app.explorer._drawings import (
    MAX_DRAWN_NODES,
    are_series,
    describe_graph,
    draw_graph,
    drawings,
    node_labels,
    node_positions,
)
from mercer.app.explorer._embeddings import Embedding, IdentityEmbedding
from mercer.app.explorer._point_queries import neighbours
from mercer.app.explorer._scene import Scene
from mercer.kernels import Graphs, as_kernel
from mercer.tables import Table


def random_graphs(n=40, seed=0, directed=False):
    """Trees with additional edges, and node labels; the last two graphs are equal."""
    rng = np.random.default_rng(seed)
    edges, labels = [], []
    for _ in range(n - 1):
        size = int(rng.integers(3, 15))
        tree = [(int(rng.integers(0, j)), j) for j in range(1, size)]
        edges.append([*tree, (0, size - 1)] if (0, size - 1) not in tree else tree)
        labels.append(list(rng.choice(["C", "N", "O"], size, p=[0.7, 0.2, 0.1])))
    edges.append(edges[-1])
    labels.append(labels[-1])
    return Graphs.from_edges(edges, labels=labels)


def strings(n=40):
    rng = np.random.default_rng(1)
    words = ["".join(rng.choice(list("ACGT"), rng.integers(5, 15))) for _ in range(n - 3)]
    return [*words, words[4], words[4], words[7]]


def vectors(n=60):
    X = np.random.default_rng(2).normal(size=(n, 4))
    X[50] = X[51] = X[3]
    return X


POINTS = [
    (vectors(), "RBF(2.0)"),
    (vectors(), "Polynomial(2)"),
    (random_graphs(), "WeisfeilerLehman(2)"),
    (strings(), "Spectrum(2)"),
]


class Talk:
    """A session that answers one request at a time."""

    def __init__(self, scene):
        self.messages = queue.SimpleQueue()
        self.controller = Controller(scene, lambda data: self.messages.put(unpack(data)))

    def ask(self, **request):
        self.controller.handle(request)

    def next(self, kind):
        while (message := self.messages.get(timeout=60))["kind"] != kind:
            pass
        return message


def encoded(rows):
    return base64.b64encode(np.asarray(rows, dtype="<u4").tobytes()).decode()


@pytest.fixture(params=POINTS, ids=["rbf", "polynomial", "graphs", "strings"])
def talk(request):
    X, kernel = request.param
    model = KernelPCA(2, kernel=kernel).fit(X)
    talk = Talk(explore(model, X, second=None).scene)
    talk.X, talk.kernel = X, as_kernel(kernel)
    yield talk
    talk.controller.close()


def test_neighbours_equal_brute_force(talk):
    n = len(talk.X)
    K = talk.kernel(talk.X).astype(float)
    squared = np.diag(K)[:, None] + np.diag(K) - 2.0 * K
    for i in (0, 3, 4, n - 1):
        talk.ask(type="neighbours", row=i, count=7, token=i)
        message = talk.next("neighbours")
        distances = np.sqrt(np.maximum(np.delete(squared[i], i), 0.0))
        expected = np.sort(distances)[:7]
        np.testing.assert_allclose(message["distances"], expected, atol=1e-6 * K.max() ** 0.5)
        assert i not in message["rows"] and len(set(message["rows"].tolist())) == 7
        found = np.sqrt(np.maximum(squared[i, message["rows"].astype(int)], 0.0))
        np.testing.assert_allclose(found, expected, atol=1e-6 * K.max() ** 0.5)
        same = np.count_nonzero(distances < 1e-6)
        assert message["same"] == same
        assert message["token"] == i
    talk.ask(type="neighbours", row=n, count=7, token=0)
    assert f"no row {n}" in talk.next("neighbours")["error"]
    talk.ask(type="neighbours", row=0, count=10_000, token=0)
    assert len(talk.next("neighbours")["rows"]) == 100 if n > 100 else n - 1


def test_the_two_sample_test(talk):
    n = len(talk.X)
    selected, rest = np.arange(0, n, 3), np.setdiff1d(np.arange(n), np.arange(0, n, 3))
    talk.ask(type="contrast", selected=encoded(selected), rest=encoded(rest), token=5)
    message = talk.next("contrast")
    groups = [
        talk.X[rows] if not isinstance(talk.X, list) else [talk.X[i] for i in rows]
        for rows in (selected, rest)
    ]
    expected = two_sample_test(*groups, talk.kernel, random_state=0)
    assert message["statistic"] == pytest.approx(expected.statistic, rel=1e-9)
    assert message["pvalue"] == expected.pvalue
    assert f"{len(selected)} selected and {len(rest)} other points" in message["text"]
    assert "proves nothing" in message["text"]
    talk.ask(type="contrast", selected=encoded([0]), rest=encoded(rest), token=6)
    assert "at least 2" in talk.next("contrast")["error"]


def test_a_shifted_group_has_a_small_p_value():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 3))
    X[:800] += 2.0
    talk = Talk(explore(KernelPCA(2, kernel="RBF(2.0)").fit(X), X, second=None).scene)
    rows = np.arange(2000)
    talk.ask(type="contrast", selected=encoded(rows[:800]), rest=encoded(rows[800:]), token=1)
    message = talk.next("contrast")
    assert message["pvalue"] == 0.001 and message["mmd"] > 0.3
    assert "300 selected and 300 other points" in message["text"]  # at most 300 are tested
    talk.controller.close()


def test_cells():
    X = vectors()
    table = {"name": [f"row {i}" for i in range(60)], "even": np.arange(60) % 2 == 0}
    talk = Talk(explore(KernelPCA(2, kernel="RBF(2.0)").fit(X), X, table=table, second=None).scene)
    talk.ask(type="cells", rows=[7, 3, 99, -1], names=["name", "even", "x1", "no such column"])
    message = talk.next("cells")
    assert message["rows"].tolist() == [7, 3]
    name, even, x1 = message["columns"]
    assert [name["values"][k] for k in name["data"]] == ["row 7", "row 3"]
    assert [even["values"][k] for k in even["data"]] == ["false", "false"]
    np.testing.assert_array_equal(x1["data"] / x1.get("divisor", 1), X[[7, 3], 0])
    talk.controller.close()


# --- drawings -------------------------------------------------------------------------------------


def stress(Z, D):
    i, j = np.triu_indices(len(D), 1)
    d = np.linalg.norm(Z[i] - Z[j], axis=1)
    scale = (d / D[i, j]).sum() / np.square(d / D[i, j]).sum()  # the best scale of the picture
    return float(np.square(scale * d / D[i, j] - 1).mean())


def test_layouts_are_deterministic_and_show_distances():
    graphs = random_graphs()
    for graph in graphs:
        Z = node_positions(graph.adjacency)
        assert np.array_equal(Z, node_positions(graph.adjacency))
        assert Z.min() >= -1e-12 and Z.max() <= 1 + 1e-12
        assert np.ptp(Z, axis=0).max() == pytest.approx(1.0)
        A = graph.adjacency.toarray() != 0
        n = len(A)
        D = np.where(A, 1.0, np.inf)
        np.fill_diagonal(D, 0.0)
        for k in range(n):
            D = np.minimum(D, D[:, [k]] + D[[k]])
        random = np.random.default_rng(0).uniform(size=(n, 2))
        assert stress(Z, D) < 0.6 * stress(random, D)
        separation = np.linalg.norm(Z[:, None] - Z, axis=2) + np.eye(n)
        assert separation.min() > 0.01  # no two nodes coincide


def test_a_path_is_straight_and_special_graphs_are_drawn():
    (path,) = Graphs.from_edges([[(j, j + 1) for j in range(9)]])
    Z = node_positions(path.adjacency)
    np.testing.assert_allclose(np.abs(np.diff(Z[:, 0])), 1 / 9, atol=0.01)
    np.testing.assert_allclose(Z[:, 1], 0.5, atol=0.02)
    single = Graphs.from_adjacency([np.zeros((1, 1))])[0]
    assert node_positions(single.adjacency).tolist() == [[0.5, 0.5]]
    pieces = Graphs.from_adjacency([np.kron(np.eye(3), [[0, 1], [1, 0]])])[0]
    Z = node_positions(pieces.adjacency)
    within = np.linalg.norm(Z[::2] - Z[1::2], axis=1)
    between = np.linalg.norm(Z[::2][:, None] - Z[::2], axis=2)[np.triu_indices(3, 1)]
    assert within.max() < between.min()
    star = Graphs.from_edges([[(0, j) for j in range(1, 8)]])[0]
    Z = node_positions(star.adjacency)
    np.testing.assert_allclose(np.ptp(np.linalg.norm(Z[1:] - Z[0], axis=1)), 0, atol=0.2)


def test_drawings_of_graphs():
    graphs = random_graphs()
    labels = node_labels(graphs)
    assert labels == ["C", "N", "O"]  # by frequency
    found = drawings(graphs, np.array([5, 2]))
    assert list(found) == [5, 2]
    for i, message in found.items():
        graph = graphs[i]
        assert message["text"] == f"{graph.n_nodes} nodes, {len(graph.edges)} edges"
        assert message["edges"].reshape(-1, 2).tolist() == graph.edges.tolist()
        assert [labels[code] for code in message["codes"]] == graph.labels.tolist()
        assert len(message["x"]) == len(message["y"]) == graph.n_nodes
    n = MAX_DRAWN_NODES + 1
    (large,) = Graphs.from_edges([[(0, j) for j in range(1, n - 1)]], labels=[["a"] * (n - 1)])
    assert "x" in draw_graph(large, {"a": 0})
    (large,) = Graphs.from_edges([[(0, j) for j in range(1, n)]], labels=[["a"] * n])
    message = draw_graph(large, {"a": 0})
    assert list(message) == ["text"]
    assert message["text"] == (
        f"{n} nodes, {n - 1} edges, 1 components, degrees 1 to {n - 1} "
        f"(mean {2 * (n - 1) / n:.3g}); labels a (100%)"
    )


def test_drawings_of_networkx_graphs():
    networkx = pytest.importorskip("networkx")
    graphs = [networkx.path_graph(3), networkx.cycle_graph(4)]
    found = drawings(graphs, np.array([1]))
    assert found[1]["text"] == "4 nodes, 4 edges" and found[1]["codes"] is None


def test_series():
    rng = np.random.default_rng(0)
    t = np.linspace(0, 1, 30)
    waves = np.sin(2 * np.pi * (t + rng.uniform(size=(50, 1)))) + 0.1 * rng.normal(size=(50, 30))
    names = [f"t{j}" for j in range(30)]
    assert are_series(waves, names)
    assert are_series(waves, [f"{400 + 2.5 * j:g}" for j in range(30)])
    assert not are_series(waves[:, rng.permutation(30)], names)
    assert not are_series(waves, names[::-1])
    assert not are_series(waves, [*names[:-1], "age"])
    assert not are_series(waves[:, :7], names[:7])
    assert not are_series(np.ones((50, 30)), names)
    sequences = [np.arange(5.0), np.array([2.0, 1.0])]
    assert {i: m["values"].tolist() for i, m in drawings(sequences, np.arange(2)).items()} == {
        0: [0, 1, 2, 3, 4],
        1: [2, 1],
    }
    assert drawings(["text", "words"], np.arange(2)) == {}
    assert drawings([{1, 2}], np.arange(1)) == {}


def test_the_tooltip_of_a_series_shows_the_other_columns(opened, tmp_path):
    t = np.linspace(0, 1, 30)
    waves = np.sin(2 * np.pi * (t + np.linspace(0, 1, 40)[:, None]))
    frame = pd.DataFrame(waves, columns=[f"t{j}" for j in range(30)])
    model = KernelPCA(2, kernel="rbf", gamma=0.1).fit(frame)
    device = np.array(["a", "b"], dtype=object)[np.arange(40) % 2]
    explore(model, frame, table={"device": device}, second=None).save(tmp_path / "waves.html")
    page = opened.go(tmp_path / "waves.html")
    page("ex.hover(ex.panes[0], 3)")
    tip = page.page.locator(".tip")
    assert tip.locator("svg.series").count() == 1
    assert tip.locator("dt").all_inner_texts() == ["row", "device"]


def test_a_page_of_graphs(opened, tmp_path):
    """Saved pages contain the drawings; the columns count nodes, edges and labels."""
    graphs = random_graphs()
    explorer = explore(KernelPCA(2, kernel="WeisfeilerLehman(2)").fit(graphs), graphs, second=None)
    columns = explorer.scene.table.columns
    assert list(columns) == ["point", "nodes", "edges", "label C", "label N", "label O"]
    assert columns["nodes"].tolist() == graphs.sizes.tolist()
    total = sum(columns[f"label {label}"] for label in "CNO")
    assert total.tolist() == graphs.sizes.tolist()
    explorer.save(tmp_path / "graphs.html")
    page = opened.go(tmp_path / "graphs.html")
    page("() => { ex.table.setOpen(true); ex.table.setMode('pictures'); }")
    pictures = page.page.locator(".thumbnail svg.graph")
    assert pictures.count() == 40
    nodes = [pictures.nth(i).locator("circle").count() for i in range(4)]
    assert nodes == graphs.sizes[:4].tolist()
    page.page.locator(".thumbnail").nth(3).click()
    assert page("ex.point.current") == 3
    panel = page.page.get_by_role("tabpanel", name="Point")
    assert panel.locator("svg.graph").get_attribute("aria-label") == (
        f"{graphs[3].n_nodes} nodes, {len(graphs[3].edges)} edges"
    )
    assert panel.locator(".nodes .item").all_inner_texts() == ["C", "N", "O"]


def test_a_served_page_of_graphs(opened):
    """Drawings and neighbours in feature space are sent on request."""
    pytest.importorskip("tornado")
    graphs = random_graphs()
    model = KernelPCA(2, kernel="WeisfeilerLehman(2)").fit(graphs)
    server = explore(model, graphs, second=None).show(open_browser=False)
    try:
        page = opened.go(server.url)
        page("ex.point.show(38)")
        page.until("document.querySelectorAll('.near li').length === 10")
        panel = page.page.get_by_role("tabpanel", name="Point")
        text = panel.inner_text()
        assert "identical (distance 0)" in text  # the last two graphs are equal
        assert "feature space of WeisfeilerLehman" in text
        assert 39 in page("ex.point.neighbours")
        page.until("document.querySelectorAll('.record svg.graph').length === 1")
        page("() => { ex.table.setOpen(true); ex.table.setMode('pictures'); }")
        page.until("document.querySelectorAll('.thumbnail svg.graph').length === 40")
        page("ex.point.request(ex.panes[0], ex.panes[0].x[0], ex.panes[0].y[0])")
        page.until("document.querySelectorAll('.preimage svg.graph').length === 1")
        page("ex.select(ex.combineSelection(i => i < 15, 'set'), 'first rows')")
        page("ex.tabs.show('Selection')")
        page.page.get_by_role("button", name="Kernel two-sample test").click()
        page.until("/MMD = /.test(ex.selection.contrast.testResult.textContent)")
    finally:
        server.stop()


def test_points_without_a_kernel_have_no_neighbours():
    words = strings()[:6]
    embedding = Embedding("plane", IdentityEmbedding(), vectors(60)[:6, :2])
    table = Table({"w": np.array(words, dtype=object)})
    with pytest.raises(ValueError, match="these points have no distances, because no model on"):
        neighbours(Scene("words", table, words, (embedding,)), {"row": 0, "count": 2})


def test_a_large_graph_without_labels():
    n = MAX_DRAWN_NODES + 1
    graph = Graphs.from_edges([[(j, j + 1) for j in range(n - 1)]])[0]
    assert describe_graph(graph).endswith("1 components, degrees 1 to 2 (mean 1.99)")
