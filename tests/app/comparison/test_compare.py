"""Comparison of several embeddings of the same points: table, figure, and failing models."""

import sys
import warnings

import matplotlib
import numpy as np
import pytest
from data_folder import DATA
from matplotlib.figure import Figure
from sklearn.base import BaseEstimator
from sklearn.decomposition import PCA, FastICA
from sklearn.exceptions import ConvergenceWarning
from sklearn.manifold import (
    TSNE,
    Isomap,
    LocallyLinearEmbedding,
    SpectralEmbedding,
    trustworthiness,
)

import mercer
from mercer import Autoencoder, KernelPCA, MetricMDS, ProbabilisticPCA, compare
from mercer.app.comparison import (
    MODELS,
    EmbeddingRequest,
    KernelDistanceModel,
    ModelSpec,
    _registry,
    choose_models,
    find_model,
)
from mercer.kernels import RBF, LocallyLinear, Spectrum

matplotlib.use("Agg")
rng = np.random.default_rng(0)
y = np.repeat(["low", "mid", "high"], 20)
X = rng.normal(size=(60, 5)) + np.repeat([[0.0], [3.0], [6.0]], 20, axis=0) * [1, 0, 1, 0, 0]
WORDS = ["GATTACA", "GATTTACA", "CCGGCG", "CCGCGG", "ATTACC", "TTACCA", "GGGCCG"]
QUICK = Autoencoder(2, hidden_layer_sizes=(4,), n_init=1, tol=1e-2)


class Broken(BaseEstimator):
    """A model that raises an error."""

    def fit_transform(self, X, y=None):
        raise RuntimeError("no luck today")


class Silent(BaseEstimator):
    """An embedding without inverse transform, which warns."""

    def fit(self, X):
        warnings.warn("a matter of taste", ConvergenceWarning, stacklevel=1)
        return self

    def transform(self, X):
        return X[:, :2]


@pytest.fixture(scope="module")
def found():
    return compare(X, y, ["PCA", "kernel PCA", "MDS", "Sammon", QUICK])


def test_rows_are_what_one_would_measure_alone(found):
    assert list(found.maps) == ["PCA", "kernel PCA", "MDS", "Sammon", "Autoencoder"]
    Z, table = found.maps["PCA"], found.table
    np.testing.assert_allclose(np.abs(Z), np.abs(PCA(2).fit_transform(X)))
    assert table["model"][0] == "PCA"
    assert table["trustworthiness"][0] == pytest.approx(trustworthiness(X, Z, n_neighbors=10))
    assert table["auc"][0] == mercer.embedding_quality(X, Z).auc == found.qualities["PCA"].auc
    apart = np.linalg.norm(Z[:, None] - Z, axis=2) + np.diag(np.full(60, np.inf))
    assert table["errors"][0] == np.sum(y[apart.argmin(axis=1)] != y)
    model = found.models["PCA"]
    assert table["reconstruction_error"][0] == np.mean((X - model.inverse_transform(Z)) ** 2)
    assert np.isnan(table["reconstruction_error"][2])  # MDS
    assert table["reconstruction_error"][4] == pytest.approx(-found.models["Autoencoder"].score(X))
    np.testing.assert_array_equal(found.maps["MDS"], MetricMDS(2).fit(X).embedding_)
    assert all(seconds >= 0 for seconds in table["seconds"]) and table["note"] == [""] * 5
    assert {len(column) for column in table.values()} == {5}


def test_it_prints_as_a_table(found):
    text = str(found)
    assert text == repr(found) == found.summary()
    lines = text.splitlines()
    assert lines[0] == "Embeddings of 60 points in 2 dimensions; T and C with 10 neighbours"
    assert lines[1].split() == ["model", "T", "C", "AUC", "1-NN", "errors", "MSE", "seconds"]
    assert lines[2].startswith("  PCA  ") and len({len(line) for line in lines[1:7]}) == 1
    assert lines[4].split()[5] == "-"  # MDS has no way back
    assert "1-NN errors: number of points, of 60, whose nearest neighbour" in text
    page = found._repr_html_()
    assert page.count("<tr>") == 6 and "<td>Sammon</td>" in page


def test_names_in_html_are_text():
    page = compare(X, models={"<script>": "PCA"})._repr_html_()
    assert "<td>&lt;script&gt;</td>" in page and "<script>" not in page


def test_the_picture(found):
    figure = Figure(layout="constrained")
    panels = found.plot(figure)
    assert len(panels) == 5 and len(figure.axes) == 6  # one panel is empty
    titles = [panel.get_title(loc="left") for panel in panels]
    assert titles[0].startswith("PCA\nT 0.") and titles[0].endswith("errors")
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["high", "low", "mid"]
    figure.canvas.draw()
    assert len(found.plot()) == 5  # a new figure
    matplotlib.pyplot.close("all")


def test_a_failure_has_its_own_row():
    with pytest.warns(UserWarning, match="Broken failed: no luck today; the other models"):
        found = compare(X, y, ["PCA", Broken(), "MDS"])
    assert list(found.maps) == ["PCA", "MDS"] == list(found.models)
    assert found.table["note"] == ["", "failed: no luck today", ""]
    assert np.isnan(found.table["auc"][1]) and "Broken: failed: no luck today" in str(found)
    assert len(found.plot(Figure())) == 2
    with (
        pytest.warns(UserWarning, match="Broken"),
        pytest.raises(ValueError, match="all models failed: Broken failed: no luck today"),
    ):
        compare(X, models=[Broken()])


def test_warnings_have_the_name_of_their_model():
    with pytest.warns(ConvergenceWarning, match="Silent: a matter of taste"):
        found = compare(X, models=[Silent()])
    assert found.table["note"] == ["a matter of taste"]
    assert np.isnan(found.table["reconstruction_error"][0]) and "MSE:" not in str(found)


def test_models_by_name_instance_and_dict():
    asked = EmbeddingRequest(60, 2, "rbf")
    for name, cls in (("pca", PCA), ("Kernel-PCA", KernelPCA), ("MetricMDS", MetricMDS)):
        (model,) = choose_models([name], asked)[0].values()
        assert type(model) is cls
    two = choose_models(["PCA", "PCA", FastICA(2)], asked)[0]
    assert list(two) == ["PCA", "PCA 2", "FastICA"]
    given = MetricMDS(2, stress="sammon")
    named = choose_models({"mine": given, "theirs": "MDS"}, asked)[0]
    assert list(named) == ["mine", "theirs"] and named["mine"] is not given
    assert named["mine"].stress == "sammon"
    assert list(choose_models("sammon", asked)[0]) == ["Sammon"]
    with pytest.raises(ValueError, match="unknown model 'Samon'; did you mean 'Sammon'"):
        choose_models(["Samon"], asked)
    with pytest.raises(ValueError, match="models is empty"):
        choose_models([], asked)
    with pytest.raises(TypeError, match="names or estimators with fit_transform, got 3"):
        choose_models([3], asked)


def test_what_is_taken_by_default():
    for n, expected in ((100, 8), (2000, 7), (4000, 5), (20_000, 2)):
        models, left_out = choose_models(None, EmbeddingRequest(n, 2, "rbf"))
        assert len(models) == expected and set(models) | set(left_out) == set(MODELS)
    assert left_out["MDS"] == "too slow for 20000 points (limit 10000)"
    models, left_out = choose_models(None, EmbeddingRequest(1000, 2, "rbf", d=784))
    long = "too slow for 1000 x 784 values (limit 250000)"
    assert left_out["autoencoder"] == long and "GPLVM" in models
    models, left_out = choose_models(None, EmbeddingRequest(100, 2, Spectrum(2), vectors=False))
    assert list(models) == ["kernel PCA", "MDS", "Sammon", "NeuroScale"]
    assert left_out["autoencoder"] == "it requires vectors"
    models, left_out = choose_models(None, EmbeddingRequest(100, 2, "rbf", has_missing=True))
    assert list(models) == ["PPCA"] and left_out["PCA"] == "it does not support missing values"


def test_the_table_of_models_can_grow(monkeypatch):
    """A model is one line there."""
    monkeypatch.setitem(MODELS, "ICA", ModelSpec(lambda a: FastICA(a.q), max_points=1000))
    found = compare(X, models=["ica"], random_state=3)
    assert found.models["ICA"].random_state == 3 and list(found.maps) == ["ICA"]


def test_seed_and_budget_reach_named_models_alone():
    asked = EmbeddingRequest(60, 2, RBF(1.0), seed=7, max_memory="1 GiB")
    models = choose_models(["autoencoder", "MDS", QUICK], asked)[0]
    assert models["autoencoder"].random_state == 7 and models["MDS"].max_memory == "1 GiB"
    assert models["Autoencoder"].random_state is None


def test_structured_points():
    found = compare(WORDS, kernel=Spectrum(2))
    assert list(found.maps) == ["kernel PCA", "MDS", "Sammon", "NeuroScale"]
    assert found.n_neighbors == 5  # limited because there are only seven points
    alone = mercer.embedding_quality(WORDS, found.maps["MDS"], kernel=Spectrum(2))
    assert found.qualities["MDS"].auc == alone.auc
    assert "PCA was left out: it requires vectors" in str(found)


def test_models_of_scikit_learn_are_fitted_if_they_are_named():
    models = choose_models(["tsne", "isomap", "Spectral-Embedding"], EmbeddingRequest(60, 2, "rbf"))
    assert [type(model) for model in models[0].values()] == [TSNE, Isomap, SpectralEmbedding]
    assert [model.n_neighbors for model in list(models[0].values())[1:]] == [10, 10]
    left_out = choose_models(None, EmbeddingRequest(60, 2, "rbf"))[1]
    assert left_out["t-SNE"] == left_out["Isomap"] == "it is fitted only if it is named"
    assert find_model("T-SNE") == find_model("TSNE") == "t-SNE" and find_model("GTM") is None
    found = compare(X, models=["spectral embedding"])
    expected = SpectralEmbedding(
        2, affinity="nearest_neighbors", n_neighbors=10, random_state=0
    ).fit_transform(X)
    np.testing.assert_allclose(found.maps["spectral embedding"], expected, atol=1e-8)


def test_lle_is_kernel_pca():
    found = compare(X, models=["lle"])
    assert found.models["LLE"].kernel == LocallyLinear(10)
    expected = LocallyLinearEmbedding(n_neighbors=10, eigen_solver="dense").fit_transform(X)
    correlation = np.corrcoef(found.maps["LLE"].T, expected.T)[:2, 2:]
    np.testing.assert_allclose(np.abs(correlation), np.eye(2), atol=1e-5)
    assert (
        choose_models(None, EmbeddingRequest(60, 2, "rbf"))[1]["LLE"]
        == "it is fitted only if it is named"
    )


def test_umap_requires_its_package(monkeypatch):
    monkeypatch.setattr("mercer.app.comparison._registry.find_spec", lambda name: None)
    left_out = choose_models(None, EmbeddingRequest(60, 2, "rbf"))[1]
    assert left_out["UMAP"] == "the package umap is not installed"


def test_umap_is_imported_without_its_warning_about_tensorflow(monkeypatch, tmp_path):
    text = "import warnings; warnings.warn('no tensorflow', ImportWarning)\n"
    (tmp_path / "umap.py").write_text(text + "from sklearn.manifold import Isomap as UMAP\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "umap", raising=False)
    monkeypatch.setattr(_registry, "_manifold_model", lambda kind, *args, **options: kind)
    assert _registry._umap(EmbeddingRequest(60, 2, "rbf")) is Isomap
    del sys.modules["umap"]


def test_models_of_distances_accept_any_points():
    kernel = Spectrum(2)
    K = kernel(WORDS)
    distances = np.sqrt(np.diag(K)[:, None] + np.diag(K) - 2 * K)
    isomap = Isomap(n_neighbors=4, n_components=2, metric="precomputed")
    model = KernelDistanceModel(isomap, kernel)
    Z = model.fit_transform(WORDS)
    np.testing.assert_allclose(Z, isomap.fit_transform(distances), atol=1e-8)
    np.testing.assert_allclose(model.transform(WORDS[:2]), Z[:2], atol=1e-6)
    request = EmbeddingRequest(len(WORDS), 2, kernel, vectors=False)
    tsne = MODELS["t-SNE"].build(request)
    assert tsne.fit_transform(WORDS).shape == (7, 2) and not hasattr(tsne, "transform")
    assert MODELS["spectral embedding"].build(request).fit_transform(WORDS).shape == (7, 2)


def test_gaps_are_for_probabilistic_pca():
    gaps = X.copy()
    gaps[::7, 1] = np.nan
    found = compare(gaps, y)
    assert list(found.maps) == ["PPCA"] and type(found.models["PPCA"]) is ProbabilisticPCA
    assert found.n_points == 60 and found.n_evaluated == 60 - 9
    assert np.isfinite(found.table["reconstruction_error"][0])
    assert "MDS was left out: it does not support missing values" in str(found) and "±" not in str(
        found
    )
    with pytest.warns(UserWarning, match="PCA failed: Input X contains NaN"):
        found = compare(gaps, y, ["PCA", "PPCA"])
    assert list(found.maps) == ["PPCA"]


def test_some_rows_stand_for_all():
    some = compare(X, y, ["PCA"], rows=30, random_state=1)
    assert some.n_evaluated == 30 and "evaluated on 30 of them" in str(some) and "±" in str(some)
    full = compare(X, y, ["PCA"])
    error = some.table["auc_standard_error"][0]
    assert error > 0 and abs(some.table["auc"][0] - full.table["auc"][0]) < 5 * error


def test_numbers_colour_and_are_no_labels():
    found = compare(X, X[:, 0], ["PCA"])
    assert np.isnan(found.table["errors"][0]) and "1-NN errors:" not in str(found)
    figure = Figure(layout="constrained")
    found.plot(figure)
    assert len(figure.axes) == 2 and figure.axes[1].get_ylabel() == "y"  # the colour bar


def test_one_dimension_and_neighbours():
    found = compare(X, y, ["PCA", "MDS"], n_components=1, n_neighbors=3)
    assert found.maps["MDS"].shape == (60, 1) and "1 dimension;" in str(found)
    expected = trustworthiness(X, found.maps["PCA"], n_neighbors=3)
    assert found.table["trustworthiness"][0] == pytest.approx(expected)
    assert len(found.plot(Figure())) == 2


def test_verbose(capsys):
    compare(X, models=["PCA", "MDS"], verbose=1)
    out = capsys.readouterr().out
    assert "[compare] PCA, 1 of 2" in out and "[compare] MDS, 2 of 2" in out


GAPS = np.where(np.arange(5) == 2, np.nan, X)


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (X[:1], {}, "at least 3 points, got n_samples=1"),
        (X, {"n_components": 6}, "n_components=6 exceeds the number of columns of X, 5"),
        (X, {"y": [1, 2]}, r"y has shape \(2,\), but there are 60 points"),
        (GAPS, {}, "only 0 of 60 rows have no missing values; 3 are needed"),
        (WORDS, {}, "requires vectors, but X contains strings"),
        (np.ones((9, 3)), {}, "all 9 rows of X are equal.*columns are constant"),
        (X, {"n_neighbors": 0}, "n_neighbors must be a positive integer, got 0"),
        (X, {"n_components": None}, "n_components must be a positive integer, got None"),
        (X, {"n_components": 2.0}, "n_components must be a positive integer, got 2.0"),
        (X, {"rows": 0}, "rows must be a positive integer, got 0"),
        (X, {"random_state": None}, "random_state must be a non-negative integer, got None"),
        (X, {"max_memory": "lots"}, "max_memory must be a positive number of bytes"),
        (np.where(X > 5, np.inf, X), {}, "infinity"),
    ],
)
def test_what_cannot_be_compared_is_reported(data, options, message):
    with pytest.raises(ValueError, match=message):
        compare(data, **options)


def test_a_constant_column_is_not_an_obstacle():
    wide = np.c_[X, np.full(60, 2.0)]
    found = compare(wide, y, ["PCA", "kernel PCA", "PPCA", "MDS", "Sammon", QUICK])
    assert len(found.maps) == 6


@pytest.mark.data
def test_oil_flow():
    """The published result of PCA is 162 nearest-neighbour errors."""
    path = DATA / "oil_flow" / "oil_flow.npz"
    if not path.exists():
        pytest.skip(f"no {path.name}: set MERCER_DATA")
    with np.load(path, allow_pickle=False) as data:
        found = compare(data["X_train"], data["y_train"], ["PCA", "MDS", "Sammon"])
    errors = dict(zip(found.table["model"], found.table["errors"], strict=True))
    assert errors["PCA"] == 162 and errors["MDS"] < 130 and errors["Sammon"] < 130
