"""Structured points in unusual containers, and structured points of the wrong type."""

import copy
import enum
import pickle
import warnings
from collections import Counter

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import zoo
from sklearn.base import clone

from mercer import (
    SVC,
    Expansion,
    GaussianProcessRegressor,
    Graphs,
    KernelPCA,
    KernelPerceptron,
    KernelRidge,
    OnlineKernelRegressor,
    ParzenDensity,
    two_sample_test,
)
from mercer._core import snapshot
from mercer.kernels import (
    RBF,
    BagOfWords,
    Callable,
    EdgeHistogram,
    Fixed,
    Gapped,
    Jaccard,
    Kendall,
    LocalAlignment,
    MeanOf,
    MinMax,
    Mismatch,
    Normalized,
    RandomWalk,
    Scale,
    Select,
    ShortestPath,
    Spectrum,
    VertexHistogram,
    WeisfeilerLehman,
)

rng = np.random.default_rng(0)
TABLE = pd.DataFrame({"t": ["cat dog", "dog", "tea", "milk tea"], "n": [1.0, 2.0, 3.0, 4.0]})
LABELS = [0, 1, 0, 1]
LOWER = ["acgtacgtaa", "ggtacctagg"] * 3


@pytest.mark.parametrize("kernel", [Jaccard(), MinMax(), Kendall()], ids=str)
def test_columns_of_a_table_keep_their_names(kernel):
    X = pd.DataFrame([rng.permutation(4) + 1.0 for _ in range(12)], columns=list("abcd"))
    X = X if isinstance(kernel, Kendall) else (X > 2).astype(int)
    model = SVC(kernel=kernel).fit(X, np.arange(12) % 2)
    assert model.feature_names_in_.tolist() == list("abcd")
    model.predict(X)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(X[list("dcba")])


def test_a_table_of_one_column_is_its_column():
    texts, sets = TABLE["t"].tolist(), [set(t) for t in TABLE["t"]]
    words = BagOfWords(tfidf=False)
    np.testing.assert_array_equal(Select(words, ["t"])(TABLE), words(texts))
    np.testing.assert_array_equal(words(TABLE[["t"]]), words(texts))
    np.testing.assert_array_equal(Spectrum(1)(np.array([["ab"], ["b"]])), Spectrum(1)(["ab", "b"]))
    np.testing.assert_array_equal(Jaccard()(pd.DataFrame({"s": sets})), Jaccard()(sets))
    graphs = [nx.path_graph(3), nx.path_graph(2)]
    walk = Select(WeisfeilerLehman(1), ["g"])(pd.DataFrame({"g": graphs}))
    np.testing.assert_array_equal(walk, WeisfeilerLehman(1)(graphs))
    assert SVC(kernel=BagOfWords()).fit(TABLE[["t"]], LABELS).predict(["dog"]).shape == (1,)


@pytest.mark.parametrize("kernel", [BagOfWords(), Spectrum(1), WeisfeilerLehman()], ids=str)
def test_a_table_of_several_columns_wants_a_choice(kernel):
    with pytest.raises(TypeError, match=r"a table with 2 columns.*Select\(\w+\(\.\.\.\), 't'\)"):
        KernelPCA(1, kernel=kernel).fit(TABLE)


def test_a_vector_kernel_names_the_column_that_is_none():
    for model in (SVC(kernel=RBF(1.0)), KernelRidge()):
        with pytest.raises(ValueError, match=r"the column 't' contains 'cat dog'; .* Select"):
            model.fit(TABLE, LABELS)
    with pytest.raises(ValueError, match="ParzenDensity requires vectors, but X contains strings"):
        ParzenDensity().fit(["a", "b"])


def test_graphs_with_and_without_labels_are_not_compared():
    labelled = Graphs.from_edges([[(0, 1)]], labels=["CO"])
    bare = Graphs.from_edges([[(0, 1)]])
    for kernel in (
        WeisfeilerLehman(1),
        VertexHistogram(),
        ShortestPath(),
        EdgeHistogram(ends=True),
    ):
        for X, Z in ((labelled, bare), (bare, labelled)):
            with pytest.raises(TypeError, match=r"nodes have no labels|nodes have labels"):
                kernel(X, Z)
    assert WeisfeilerLehman(1)(labelled, Graphs.from_edges([[]])).tolist() == [[0.0]]


@pytest.mark.parametrize("of", [nx.path_graph, lambda n: nx.to_numpy_array(nx.path_graph(n))])
def test_the_mean_of_graphs_in_any_form(of):
    found = Expansion.mean(WeisfeilerLehman(1), [of(3), of(4), of(4)]).preimage()
    held = Graphs.from_networkx([nx.path_graph(3), nx.path_graph(4), nx.path_graph(4)])
    same = Expansion.mean(WeisfeilerLehman(1), held).preimage()
    np.testing.assert_allclose(found.residuals, same.residuals)


def test_attributes_of_nodes_pass_through_estimators():
    attributes = [rng.normal(label, size=(3, 1)) for label in range(2) for _ in range(8)]
    X = Graphs.from_edges([[(0, 1), (1, 2)]] * 16, attributes=attributes)
    kernel = Normalized(VertexHistogram(RBF(1.0)))
    assert SVC(kernel=kernel).fit(X, np.repeat([0, 1], 8)).score(X, np.repeat([0, 1], 8)) > 0.8
    assert Expansion.mean(kernel, X).preimage().residuals[0] > 0


def test_one_graph_is_stored_without_the_others():
    X = Graphs.from_edges([[(0, 1), (1, 2)]] * 300, labels=["CCO"] * 300)
    again = pickle.loads(pickle.dumps(X[7]))
    assert len(pickle.dumps(X[7])) < len(pickle.dumps(X)) / 20
    assert again.labels.tolist() == ["C", "C", "O"] and again.edges.tolist() == X[7].edges.tolist()


def test_strings_outside_the_alphabet_are_refused():
    for kernel in (Mismatch(3, 1, "ACGT"), LocalAlignment()):
        with pytest.raises(ValueError, match=r"no symbol of the 6 strings is in the alphabet"):
            SVC(kernel=kernel).fit(LOWER, [0, 1] * 3)
    assert SVC(kernel=Mismatch(3, 1)).fit(LOWER, [0, 1] * 3).score(LOWER, [0, 1] * 3) == 1.0


def test_words_longer_than_every_string_are_refused_by_a_test_too():
    with pytest.raises(ValueError, match="p=9 is longer than every string"):
        two_sample_test(["ab", "ba"], ["ab", "b"], Spectrum(9))


def test_features_wait_for_data_and_go_through_norms_and_factors():
    for kernel, what in ((BagOfWords(), "tfidf=True"), (Mismatch(2, 1), "alphabet=None")):
        with pytest.raises(ValueError, match=f"{what}, which must be computed from data"):
            kernel.features(["ab", "b"])
    X, Z = ["abab", "ba"], ["abx", "b"]
    kernel = Scale(Normalized(Spectrum(2)), 3.0)
    phi, psi = kernel.features(X), kernel.features(Z, like=X)
    np.testing.assert_allclose((phi @ phi.T).toarray(), kernel(X))
    np.testing.assert_allclose((psi @ phi.T).toarray(), kernel(Z, X))


def test_a_walk_close_to_divergence_is_refused():
    ring = Graphs.from_edges([[(i, (i + 1) % 6) for i in range(6)]], labels=["CCCCCC"])
    walk = RandomWalk(0.9 / 4, kind="geometric", labelled=True)
    np.testing.assert_allclose(walk(ring), [[36 / (1 - 0.9)]])
    with pytest.raises(
        ValueError, match=r"did not converge within 100000 terms for the points 0 and 0"
    ):
        RandomWalk(0.99995 / 4, kind="geometric", labelled=True)(ring)


@pytest.mark.parametrize("weight", [float("nan"), "x"])
def test_a_weight_that_is_not_a_number_is_named(weight):
    graph = nx.path_graph(3)
    graph.edges[0, 1]["weight"] = weight
    with pytest.raises(ValueError, match=r"graph 1: the edge \(0, 1\) has the weight"):
        WeisfeilerLehman()([nx.path_graph(2), graph])


def test_equal_parts_of_a_kernel_share_what_they_remember():
    calls = []
    kernel = Callable(lambda s, t: calls.append(1) or float(s == t), contract="pair")
    KernelRidge(kernel=kernel * kernel + 0.5 * kernel).fit(["a", "b", "c"], [0, 1, 2])
    assert len(calls) == 6


def test_equal_strings_have_equal_codes_whatever_their_class():
    class Colour(enum.StrEnum):
        RED = "red"

    assert Jaccard()([{Colour.RED}], [{"red"}]) == 1.0


TOKENS = [["a", "b", "a"], ["b", "c"], ["c", "a", "b"], ["b", "b"]]


@pytest.mark.parametrize(
    "kernel", [Mismatch(2, 1), Mismatch(2, 0), Spectrum(2), Spectrum(2, blended=True)], ids=str
)
@pytest.mark.parametrize("column", ["t", ("a", "b"), 7], ids=str)
def test_a_table_of_one_column_of_token_lists_is_its_column(kernel, column):
    table = pd.DataFrame({"t": TOKENS}, index=[10, 11, 12, 13])
    table.columns = pd.Index([column], tupleize_cols=False)
    resolved, plain = kernel.resolve(table), kernel.resolve(TOKENS)
    assert resolved == plain
    np.testing.assert_array_equal(resolved(table), plain(TOKENS))
    assert plain(TOKENS).any()
    if kernel == Spectrum(2):
        found = [
            Expansion.mean(kernel, X).preimage().points for X in (table, table[column], TOKENS)
        ]
        assert found[0] == found[1] == found[2]


def test_integer_symbols_keep_all_their_digits_in_estimators():
    X = [[2**53, 5], [2**53 + 1, 5], [2**53, 5], [2**53 + 1, 5]]
    for points in (X, np.array(X)):
        model = SVC(kernel=Spectrum(1)).fit(points, LABELS)
        assert model.predict(points).tolist() == LABELS


# ---------------------------------------------------------------------- copies of points

LETTERS = list("abcdefgh")


def _some(size=3):
    return rng.choice(LETTERS, size=size).tolist()


N = 14
MUTABLE = {  # points that can be changed in place, a kernel for them, and the change
    "sets": (Jaccard(), [set(_some()) for _ in range(N)], lambda x: x.clear()),
    "bags": (MinMax(), [{c: 1.0 for c in _some()} for _ in range(N)], lambda x: x.clear()),
    "counters": (MinMax(), [Counter(_some(5)) for _ in range(N)], lambda x: x.clear()),
    "lists": (Spectrum(1), [_some(5) for _ in range(N)], lambda x: x.clear()),
    "costly lists": (Gapped(10, 5), [_some(12) for _ in range(N)], lambda x: x.reverse()),
    "arrays": (Spectrum(1), [rng.integers(5, size=4) for _ in range(N)], lambda x: x.fill(0)),
    "sets of vectors": (
        MeanOf(RBF()),
        [rng.normal(size=(3, 2)) for _ in range(N)],
        lambda x: x.fill(0),
    ),
    "networkx": (
        WeisfeilerLehman(1),
        [nx.gnp_random_graph(5, 0.5, seed=i) for i in range(N)],
        lambda x: x.clear(),
    ),
    "costly networkx": (
        Fixed(Normalized(RandomWalk(0.1))),
        [nx.gnp_random_graph(5, 0.5, seed=i) for i in range(N)],
        lambda x: x.clear_edges(),
    ),
    "lists of edges": (
        WeisfeilerLehman(1),
        [[(0, int(v)) for v in rng.permutation(4)[:3] + 1] for _ in range(N)],
        lambda x: x.pop(),
    ),
    "adjacency": (
        ShortestPath(),
        [nx.to_scipy_sparse_array(nx.gnp_random_graph(5, 0.6, seed=i)) for i in range(N)],
        lambda x: x.data.fill(0),
    ),
    "functions": (
        Callable(lambda x, z: float(len({*x} & {*z})), contract="pair"),
        [_some(4) for _ in range(N)],
        lambda x: x.clear(),
    ),
}
FORMS = {
    "list": lambda points: list(points),
    "objects": lambda points: np.fromiter(points, dtype=object, count=len(points)),
    "series": lambda points: pd.Series(list(points), index=np.arange(len(points)) + 7),
    "table": lambda points: pd.DataFrame({"x": list(points)}),
}


def _answers(model, new):
    """Return all outputs of a fitted model for new points."""
    names = ("predict", "decision_function", "transform", "predict_proba", "score_samples")
    return [np.asarray(getattr(model, name)(new)) for name in names if hasattr(model, name)]


def _check_snapshot(model, kind, form):
    kernel, points, change = MUTABLE[kind]
    points = copy.deepcopy(points)
    X, new = form(points), copy.deepcopy(points[:5])
    model = clone(model).set_params(kernel=kernel)
    if "gamma" in model.get_params():
        model.set_params(gamma=type(model).gamma)  # only for kernels given by name
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # caused by random labels
        model.fit(X, np.arange(N) % 2)
    before = _answers(model, new)
    assert before
    for point in points:
        change(point)
    for old, now in zip(before, _answers(model, new), strict=True):
        np.testing.assert_array_equal(old, now)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("kind", MUTABLE)
def test_a_fitted_model_does_not_change_with_its_training_objects(kind, form):
    if form is FORMS["table"] and kind in ("functions", "sets of vectors"):
        pytest.skip("a point is a row of the table")
    for model in (SVC(), KernelPCA(2), GaussianProcessRegressor(alpha=1.0, optimizer=None)):
        _check_snapshot(model, kind, form)


FOR_VECTORS = ["GPLVM", "Parzen", "Random", "Explicit", "SparseKernel", "primal", "features"]
FOR_VECTORS += ["gammas", "MetricMDS", "RFM"]
STRUCTURED = [
    model
    for model in zoo.ESTIMATORS
    if "kernel" in model.get_params() and not any(name in str(model) for name in FOR_VECTORS)
]


@pytest.mark.parametrize("kind", ["sets", "costly networkx"])
@pytest.mark.parametrize("model", STRUCTURED, ids=str)
def test_no_estimator_changes_with_its_training_objects(model, kind):
    _check_snapshot(model, kind, list)


@pytest.mark.parametrize("model", [KernelPerceptron(), OnlineKernelRegressor()], ids=str)
def test_online_learners_do_not_change_with_the_objects_they_have_seen(model):
    kernel, points, change = MUTABLE["sets"]
    points, new = copy.deepcopy(points), copy.deepcopy(points[:5])
    y = np.arange(N) % 2
    model = clone(model).set_params(kernel=kernel)
    options = {"classes": [0, 1]} if isinstance(model, KernelPerceptron) else {}
    model.partial_fit(points[:7], y[:7], **options).partial_fit(points[7:], y[7:])
    before = model.predict(new)
    for point in points:
        change(point)
    np.testing.assert_array_equal(model.predict(new), before)


def test_objects_of_unknown_classes_are_kept_by_reference():
    class Molecule:
        def __init__(self, mass):
            self.mass = mass

    X = [Molecule(float(i)) for i in range(6)]
    known = {x: i for i, x in enumerate(X)}
    kernel = Callable(lambda x, z: float(known[x] == known[z]), contract="pair")
    assert SVC(kernel=kernel).fit(X, [0, 1] * 3).predict(X).tolist() == [0, 1] * 3


def test_copies_of_a_table_keep_the_dtypes_of_its_columns():
    table = pd.DataFrame({"s": pd.array(["a", "b"], dtype="string"), "o": [{1}, {2}]})
    table["c"] = pd.Categorical(["x", "y"])
    copied = snapshot(table)
    assert copied.dtypes.tolist() == table.dtypes.tolist()
    assert copied.equals(table) and copied["o"][0] is not table["o"][0]
