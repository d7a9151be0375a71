"""The second embedding: a kernel PCA with its own kernel, models of compare, and aligned signs."""

import threading

import numpy as np
import pytest
from sklearn.manifold import TSNE
from wire import Talk

from mercer import KernelPCA, ProbabilisticPCA, explore
from mercer.app.explorer import _model_requests
from mercer.app.explorer._embeddings import Embedding, as_vectors, embedding_of
from mercer.app.explorer._fitted_models import FittedModels
from mercer.app.explorer._model_requests import second_options
from mercer.datasets import circles
from mercer.kernels import RBF, Laplacian

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 4)) * [3.0, 2.0, 1.0, 0.5] + 3.0 * np.eye(4)[np.arange(60) % 3]
WORDS = ["GATTACA", "GATTTACA", "CCGGCG", "CCGCGG", "ATTACC", "TTACCA", "GGGCCG", "GATACA"]


@pytest.fixture
def talk():
    talk = Talk(explore(KernelPCA(3, kernel="RBF(2.0)").fit(X), X).scene)
    yield talk
    talk.controller.close()


def test_the_second_kernel_pca_has_its_own_kernel(talk):
    expected = KernelPCA(4, kernel="Laplacian(3.0)").fit(X)
    talk.ask(type="fit", second="kernel-pca")
    message = talk.next("embeddings")
    assert [pane["title"] for pane in message["panes"]] == ["kernel PCA", "second kernel PCA"]
    assert message["controls"]["other"]["kernel"] == "RBF(length_scale=2.0)"
    talk.ask(type="fit", second_kernel="Laplacian(3.0)", second_components=4)
    message = talk.next("embeddings")
    assert message["controls"]["kernel"] == "RBF(length_scale=2.0)"
    assert message["controls"]["other"]["components"] == 4
    np.testing.assert_allclose(
        np.abs(message["panes"][1]["x"]), np.abs(expected.training_scores_[:, 0]), rtol=1e-5
    )
    assert message["panes"][1]["spectrum"]["values"] == expected.eigenvalues_.tolist()
    talk.ask(type="fit", second_parameter=0, second_value=1.5)
    assert talk.next("embeddings")["controls"]["other"]["parameters"][0]["value"] == 1.5
    before = talk.controller.scene.embeddings[1]
    talk.ask(type="fit", kernel="RBF(3.0)")
    talk.next("embeddings")
    assert talk.controller.scene.embeddings[1] is before  # only the first one was fitted
    talk.ask(type="axes", pane=1, axes=[1, 3])
    message = talk.next("embeddings")
    assert message["panes"][1]["shown"] == [1, 3] and message["panes"][0]["shown"] == [0, 1]
    talk.ask(type="column", name="component 4 of the second kernel PCA")
    np.testing.assert_allclose(talk.next("column")["data"], before.coordinates[:, 3], rtol=1e-6)
    talk.ask(type="fit", second_kernel="Laplacian(", token=5)
    assert talk.next("state")["error"]


def test_contours_of_each_kernel_pca_over_the_other(talk):
    talk.ask(type="fit", second="kernel-pca", second_kernel="Laplacian(3.0)")
    message = talk.next("embeddings")
    names = ["eigenfunction 1", "eigenfunction 2", "eigenfunction 3"]
    assert [[name for name, _ in pane["overlays"]] for pane in message["panes"]] == [names, names]
    talk.ask(type="field", pane=0, name="eigenfunction 2")
    field = talk.next("field")
    first, second = talk.controller.scene.embeddings
    m = field["columns"]
    corner = np.array([[field["left"], field["low"]]])
    point = first.preimages(corner)[0].points
    np.testing.assert_allclose(field["values"][0], second.transform(point)[0, 1], atol=1e-5)
    assert len(field["values"]) == m * m and "of second kernel PCA" in field["text"]


def test_every_option_can_be_fitted(talk):
    options = [name for name, _ in second_options(X)]
    assert options[:4] == ["none", "data", "kernel-pca", "pca"]
    assert {"ppca", "mds", "t-sne", "isomap", "spectral-embedding"} <= set(options)
    for name in ("pca", "isomap", "spectral-embedding", "mds"):
        talk.ask(type="fit", second=name)
        message = talk.next("embeddings")
        assert message["controls"]["second"] == name
        assert np.isfinite(message["panes"][1]["x"]).all()


def test_a_model_without_transform_shows_the_training_points_only(talk):
    talk.ask(type="fit", second="t-sne")
    message = talk.next("embeddings")
    assert message["panes"][1]["title"] == "t-SNE" and not message["panes"][1]["has_inverse"]
    scene = talk.controller.scene
    rows = scene.projected(scene.table.take(np.arange(3)))
    assert rows.to_message(live=True)["notes"] == [
        "t-SNE cannot embed new points, so that it shows only the 60 points to which it was fitted."
    ]
    coordinates = rows.embeddings[1].coordinates
    assert np.isnan(coordinates[60:]).all() and np.isfinite(coordinates[:60]).all()
    trust = rows.column("trustworthiness in t-SNE")["data"]
    assert np.isnan(trust[60:]).all() and np.isfinite(trust[:60]).all()
    model = TSNE(2, perplexity=5.0, max_iter=250).fit(X)
    assert len(explore(ProbabilisticPCA(2).fit(X), X, second=model).scene.embeddings) == 2
    with pytest.raises(ValueError, match="coordinates of 60 points, but 50 are shown"):
        explore(ProbabilisticPCA(2).fit(X), X[:50], second=model)


def test_the_argument_second_of_explore():
    model = KernelPCA(3, kernel="RBF(2.0)").fit(X)
    for second in (Laplacian(2.0), "Laplacian(2.0)"):
        embedding = explore(model, second=second).scene.embeddings[1]
        assert embedding.model.kernel_ == Laplacian(2.0) and embedding.coordinates.shape == (60, 3)
    assert explore(model, second="PCA").scene.embeddings[1].title == "PCA"
    with pytest.raises(ValueError, match=r"the options are none, data, .* or a kernel such as"):
        explore(model, second="gtm")


def test_models_of_kernel_distances_for_strings():
    model = KernelPCA(2, kernel="Spectrum(2)").fit(WORDS)
    assert [name for name, _ in second_options(WORDS)][:4] == [
        "none",
        "kernel-pca",
        "mds",
        "sammon",
    ]
    embedding = explore(model, WORDS, second="isomap").scene.embeddings[1]
    assert embedding.model.kernel_ == model.kernel_
    np.testing.assert_allclose(embedding.transform(WORDS[:2]), embedding.coordinates[:2], atol=1e-6)


def test_a_topographic_map_of_vectors_and_strings():
    vectors = explore(KernelPCA(2, kernel="linear").fit(X), second="neuroscale").scene.embeddings[1]
    assert vectors.title == "NeuroScale" and type(vectors.model.kernel_) is RBF
    strings = KernelPCA(2, kernel="Spectrum(2)").fit(WORDS)
    embedding = explore(strings, WORDS, second="neuroscale").scene.embeddings[1]
    assert embedding.model.kernel_ == strings.kernel_
    np.testing.assert_allclose(embedding.transform(WORDS), embedding.coordinates, atol=1e-9)


# --- signs


def separated(values):
    """Return which eigenvalues differ from their neighbours by at least 10 per cent."""
    ratios = values[1:] / values[:-1]
    apart = ratios < 0.9
    return np.concatenate([[True], apart]) & np.concatenate([apart, [False]])


def correlations(old, new):
    return np.array([np.corrcoef(a, b)[0, 1] for a, b in zip(old.T, new.T, strict=True)])


def test_signs_do_not_change_during_a_sweep(talk):
    values = np.geomspace(0.7, 12.0, 25)
    old = talk.controller.scene.embeddings[0]
    flipped, compared = 0, 0
    for value in values:
        talk.ask(type="fit", parameter=0, value=float(value))
        talk.next("embeddings")
        new = talk.controller.scene.embeddings[0]
        stable = separated(new.model.eigenvalues_) & separated(old.model.eigenvalues_)
        found = correlations(old.coordinates, new.coordinates)
        assert (found[stable] > 0.0).all(), (value, found)
        assert (found >= 0.0).all()
        flipped += int(np.any(np.array(new.signs or (1,)) < 0))
        compared += int(stable.sum())
        old = new
    assert flipped and compared > 20  # the model itself would have flipped some of them


def test_a_new_second_kernel_pca_has_the_signs_of_the_first(talk):
    talk.ask(type="orient", axes=[[0, 1], [0, 1]], signs=[[-1, 1, -1], []])
    talk.next("embeddings")
    for other in ("ppca", "none"):
        talk.ask(type="fit", second=other)
        talk.next("embeddings")
        talk.ask(type="fit", second="kernel-pca")
        talk.next("embeddings")
        first, second = talk.controller.scene.embeddings
        assert second.title == "second kernel PCA"
        np.testing.assert_allclose(second.coordinates, first.coordinates, atol=1e-6)
        assert first.signs == (-1, 1, -1)


def test_models_that_were_fitted_before_are_not_fitted_again(talk, monkeypatch):
    talk.ask(type="fit", second="isomap")
    talk.next("embeddings")
    isomap = talk.controller.scene.embeddings[1]
    talk.ask(type="fit", second="none", kernel="RBF(3.0)")
    talk.next("embeddings")
    expected = talk.controller.scene.embeddings[0].coordinates
    monkeypatch.setattr("mercer.app.explorer._model_requests._fit", None)  # no fit is possible
    page = Talk(talk.controller.scene)  # another page on the same server
    page.ask(type="fit", second="isomap", kernel="RBF(2.0)")
    assert [pane["title"] for pane in page.next("embeddings")["panes"]] == ["kernel PCA", "Isomap"]
    first, second = page.controller.scene.embeddings
    assert first.model.kernel_ == RBF(2.0) and second.model is isomap.model
    page.ask(type="fit", second="kernel-pca", second_kernel="RBF(3.0)")
    page.next("embeddings")
    second = page.controller.scene.embeddings[1]
    assert second.title == "second kernel PCA"
    np.testing.assert_array_equal(np.abs(second.coordinates), np.abs(expected))
    page.ask(type="fit", kernel="RBF(3.0)")
    assert page.next("embeddings")["panes"][0]["title"] == "kernel PCA"
    page.ask(type="fit", kernel="RBF(4.0)")
    assert "error" in page.next("state")
    page.controller.close()
    scene = page.controller.scene
    assert scene.projected(scene.table.take(np.arange(3))).fitted is not scene.fitted


def test_models_of_kernel_distances_are_stored_for_each_kernel(monkeypatch):
    model = KernelPCA(2, kernel="Spectrum(2)").fit(WORDS)
    talk = Talk(explore(model, WORDS, second="mds").scene)
    before = talk.controller.scene.embeddings[1]
    talk.ask(type="fit", kernel="Spectrum(3)")
    talk.next("embeddings")
    assert talk.controller.scene.embeddings[1].model is not before.model
    monkeypatch.setattr("mercer.app.explorer._model_requests._fit", None)
    talk.ask(type="fit", kernel="Spectrum(2)")
    talk.next("embeddings")
    assert talk.controller.scene.embeddings[1].model is before.model
    talk.controller.close()


def test_the_first_embedding_does_not_wait_for_a_slow_second_one(talk, monkeypatch):
    monkeypatch.setattr(_model_requests, "_MAX_UNCONFIRMED_POINTS", 0)
    may_fit, fit = threading.Event(), _model_requests._fit

    def wait_and_fit(model, *args, **options):
        assert isinstance(model, KernelPCA) or may_fit.wait(20)
        fit(model, *args, **options)

    monkeypatch.setattr(_model_requests, "_fit", wait_and_fit)
    old = talk.controller.scene.embeddings[1]
    talk.ask(type="fit", second="isomap", kernel="RBF(3.0)", run=True, token=4)
    message = talk.next("embeddings")
    assert message["controls"]["kernel"] == "RBF(length_scale=3.0)" and "token" not in message
    assert message["controls"]["second"] == "isomap"
    assert message["panes"][1]["title"] == old.title
    may_fit.set()
    message = talk.next("embeddings")
    assert [pane["title"] for pane in message["panes"]] == ["kernel PCA", "Isomap"]
    assert message["token"] == 4


def test_names_of_kernel_parameters_are_readable(talk):
    talk.ask(type="fit", kernel="2*Select(RBF(1.0), columns=[0]) + Linear()")
    first = talk.next("embeddings")["controls"]["parameters"]
    assert [one["name"] for one in first] == ["RBF length_scale", "factor of RBF"]
    kernel = "2*RBF(1.0) + Laplacian(2.0) + Select(Laplacian(1.0), columns=[0])*RBF([1, 2, 3, 4])"
    talk.ask(type="fit", kernel=kernel)
    names = [one["name"] for one in talk.next("embeddings")["controls"]["parameters"]]
    assert names == [
        "RBF length_scale",
        "factor of RBF",
        "Laplacian length_scale 1",
        "Laplacian length_scale 2",
        *[f"RBF length_scale[{j}]" for j in range(4)],
    ]


def test_the_last_eight_models_are_stored():
    fitted = FittedModels()
    embeddings = [Embedding("e", object(), X, name="pca") for _ in range(10)]
    for embedding in embeddings[:8]:
        fitted.add(embedding)
    assert fitted.find(lambda e, _: e is embeddings[0]) is embeddings[0]  # now the most recent
    for embedding in embeddings[8:]:
        fitted.add(embedding)
    found = [e for e in embeddings if fitted.find(lambda one, _, e=e: one is e)]
    assert found == [embeddings[0], *embeddings[3:]]


@pytest.mark.parametrize("kind", ["kernel PCA", "PPCA"])
def test_a_flipped_embedding_is_consistent(kind):
    model = KernelPCA(3, kernel="RBF(3.0)") if kind == "kernel PCA" else ProbabilisticPCA(3)
    plain = embedding_of(model.fit(X), X, shown_dims=(0, 2))
    for signs in ((-1, 1, 1), (1, -1, -1), (-1, -1, -1)):
        flipped = plain.with_signs(signs)
        np.testing.assert_array_equal(flipped.coordinates, plain.coordinates * signs)
        np.testing.assert_allclose(flipped.transform(X[:5]), plain.transform(X[:5]) * signs)
        positions = rng.normal(size=(4, 2)) * np.ptp(plain.coordinates[:, [0, 2]], axis=0) / 4
        mirrored = positions * np.array(signs)[[0, 2]]
        for one, other in zip(flipped.preimages(mirrored), plain.preimages(positions), strict=True):
            np.testing.assert_allclose(one.points, other.points, rtol=1e-6, atol=1e-8)
            assert one.residual == pytest.approx(other.residual, rel=1e-6, abs=1e-12)
        again = flipped.with_signs((1, 1, 1))
        np.testing.assert_array_equal(again.coordinates, plain.coordinates)
        assert again.aligned_with(flipped).signs == signs


def test_alignment_with_fewer_points_and_dimensions():
    plain = embedding_of(KernelPCA(3, kernel="RBF(3.0)").fit(X), X)
    shorter = Embedding("mirrored", None, -plain.coordinates[:40, :2])
    shorter.coordinates[3] = np.nan
    assert plain.aligned_with(shorter).signs == (-1, -1, 1)
    data = explore(plain.model, second="data").scene.embeddings[1]
    assert data.aligned_with(plain) is data


def test_titles_of_models_passed_by_users():
    Z, _ = circles(40, random_state=0)
    assert embedding_of(ProbabilisticPCA(2).fit(X), X).title == "probabilistic PCA"
    assert embedding_of(KernelPCA(2).fit(Z), Z).title == "kernel PCA"


def test_models_without_bounds_and_with_one_dimension():
    scene = explore(KernelPCA(1, kernel="RBF(2.0)", eigen_solver="features").fit(X), X).scene
    pane = scene.to_message(live=False)["panes"][0]
    assert pane["spectrum"]["text"] == (
        "For this approximation, no bounds on the eigenvalues are known."
    )
    embedding = explore(KernelPCA(1, kernel="RBF(2.0)").fit(X), X).scene.embeddings[0]
    assert embedding.full_coordinates(np.array([[0.5, 7.0]])).tolist() == [[0.5]]
    with pytest.raises(ValueError, match="1 signs of dimensions are required, each of them 1 or"):
        embedding.oriented([0, 1], [2])


def test_points_that_are_not_vectors():
    assert as_vectors([("a", "b"), ("c", "d")]) is None
    assert as_vectors([(1, 2), (3, 4)]).tolist() == [[1.0, 2.0], [3.0, 4.0]]
