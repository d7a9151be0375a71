"""The explorer session replies to every request, and a newer request replaces older ones."""

import base64
import tempfile
import threading
import time
from dataclasses import replace

import numpy as np
import pytest
from wire import Talk

from mercer import KernelPCA, ProbabilisticPCA, embedding_quality, explore
from mercer._core import capture_progress
from mercer.app.explorer._jobs import Cancelled, Job
from mercer.app.explorer._model_requests import changed_request, current_request
from mercer.app.explorer._scene import WatchedScene
from mercer.datasets import circles


def as_text(data):
    return base64.b64encode(data).decode()


@pytest.fixture
def blobs():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 5)) + 3.0 * np.eye(5)[np.arange(90) % 3]
    model = KernelPCA(3, kernel="RBF(2.0)").fit(X)
    return model, X


@pytest.fixture
def talk(blobs):
    talk = Talk(explore(*blobs, title="blobs").scene)
    yield talk
    talk.controller.close()


def test_the_scene(talk, blobs):
    talk.ask(type="scene")
    message = talk.next("scene")
    assert message["rows"] == 90 and [pane["title"] for pane in message["panes"]] == [
        "kernel PCA",
        "probabilistic PCA",
    ]
    model, _ = blobs
    np.testing.assert_allclose(message["panes"][0]["x"], model.training_scores_[:, 0], rtol=1e-6)
    spectrum = message["panes"][0]["spectrum"]
    assert spectrum["values"] == model.eigenvalues_.tolist()
    assert spectrum["upper"] == model.eigenvalue_bounds_[:, 1].tolist()
    assert message["controls"]["kernel"] == "RBF(length_scale=2.0)"
    assert message["controls"]["parameters"] == [
        {"name": "length_scale", "value": 2.0, "centre": 2.0}
    ]
    lines = [name for name, _ in message["panes"][1]["overlays"]]
    assert lines == ["eigenfunction 1", "eigenfunction 2", "eigenfunction 3", "magnification"]


def test_what_would_be_here(talk, blobs):
    model, X = blobs
    talk.ask(type="preimage", pane=0, x=0.1, y=-0.2, token=7)
    message = talk.next("preimage")
    expected = model.decode([[0.1, -0.2, 0.0]]).preimage()
    assert message["token"] == 7 and message["residual"] == expected.residuals[0]
    assert message["record"] == [[f"x{j + 1}", f"{expected.points[0, j]:.5g}"] for j in range(5)]
    assert "(coordinates that are not shown are 0)" in message["text"]
    talk.ask(type="preimage", pane=1, x=1.0, y=0.5, token=8)
    message = talk.next("preimage")
    back = ProbabilisticPCA(2).fit(X).inverse_transform([[1.0, 0.5]])[0]
    np.testing.assert_allclose([float(v) for _, v in message["record"]], back, rtol=1e-4)
    talk.ask(type="preimage", pane=0, x=float("nan"), y=0.0, token=9)
    assert "not finite" in talk.next("preimage")["text"]


def test_columns_that_models_give(talk, blobs):
    model, X = blobs
    talk.ask(type="column", name="trustworthiness in kernel PCA")
    message = talk.next("column")
    shown = model.training_scores_[:, :2].astype(np.float32)
    trust = embedding_quality(X, shown).points.trustworthiness
    np.testing.assert_allclose(message["data"], trust, rtol=1e-6)
    talk.ask(type="column", name="reconstruction error")
    np.testing.assert_allclose(
        talk.next("column")["data"], model.reconstruction_error(X), rtol=1e-5, atol=1e-7
    )
    talk.ask(type="column", name="nothing of the kind")
    assert "nothing of the kind" in talk.next("column")["error"]


def test_lines(talk, blobs):
    model, X = blobs
    talk.ask(type="field", pane=1, name="eigenfunction 2")
    message = talk.next("field")
    m = message["columns"]
    x, y = message["left"], message["high"]  # the first of the last row
    point = ProbabilisticPCA(2).fit(X).inverse_transform([[x, y]])
    np.testing.assert_allclose(
        message["values"][(m - 1) * m], model.transform(point)[0, 1], atol=1e-5
    )
    assert 3 < len(message["levels"]) < 15 and 0.0 in message["levels"]
    talk.ask(type="field", pane=1, name="magnification")
    message = talk.next("field")
    W = ProbabilisticPCA(2).fit(X).loadings_
    expected = 0.5 * np.log10(np.linalg.det(W.T @ W))
    np.testing.assert_allclose(message["values"], expected, atol=1e-4)
    assert message["levels"] == [] and "everywhere" in message["text"]


def test_the_newest_question_wins(talk):
    gate = threading.Event()
    talk.controller.jobs.submit("fits", Job(lambda: gate.wait(20)))
    for length in (0.5, 1.0, 4.0):
        talk.ask(type="fit", kernel=f"RBF({length})")
    gate.set()
    assert talk.next("embeddings")["controls"]["kernel"] == "RBF(length_scale=4.0)"
    finished = threading.Event()
    talk.controller.jobs.submit("fits", Job(finished.set))
    assert finished.wait(20)
    assert talk.all("embeddings") == []  # the other two were dropped
    assert talk.controller.scene.embeddings[0].model.kernel_.length_scale == 4.0


def test_a_request_is_repeated_after_the_reply_went_to_a_lost_connection(talk, monkeypatch):
    """It is not ignored, although the job that sent the reply has not finished."""
    gate, finish = threading.Event(), Job.finish
    monkeypatch.setattr(Job, "finish", lambda job: (gate.wait(20), finish(job)))
    talk.ask(type="scene")
    talk.next("scene")
    talk.ask(type="scene")
    assert talk.controller.jobs.find(lambda job: not job.has_replied)
    gate.set()
    assert talk.next("scene")["rows"] == 90


def test_sliders_that_move_before_the_fit_of_another_has_ended(talk):
    talk.ask(type="fit", kernel="2*RBF(3.0) + Laplacian(9.0)")
    talk.next("embeddings")
    scene = talk.controller.scene

    def kernel(*changes):
        request = current_request(scene)
        for change in changes:  # without a fit between them
            request = changed_request(request, change, scene)
        return request.first.kernel.get_params()

    names = ["terms__0__kernel__length_scale", "terms__0__factor", "terms__1__length_scale"]
    first, second = {"parameter": 0, "value": 4.0}, {"parameter": 1, "value": 5.0}
    assert [kernel(first, second)[name] for name in names] == [4.0, 5.0, 9.0]
    # A kernel with other parameters, or with unknown ones, has no sliders yet.
    for text in ("RBF(7.0)", "2*RBF('median') + Laplacian(9.0)"):
        params = kernel({"kernel": text}, second)
        assert [params[name] for name in names] == [3.0, 5.0, 9.0]


def test_a_fit_that_is_overtaken_ends_at_its_next_step():
    X, _ = circles(400, random_state=0)

    def stop(text):
        raise Cancelled

    model = KernelPCA(3, kernel="rbf", eigen_solver="krylov", verbose=1)
    with capture_progress(stop), pytest.raises(Cancelled):
        model.fit(X)
    assert not hasattr(model, "eigenvalues_")


def test_what_takes_long_waits_for_run(talk, monkeypatch):
    monkeypatch.setattr("mercer.app.explorer._controller.MAX_UNCONFIRMED_SECONDS", 0.0)
    talk.ask(type="fit", kernel="RBF(3.0)")
    message = talk.next("state")
    assert message["run"] and message["text"].startswith("This fit takes about 0 s")
    time.sleep(0.1)
    assert talk.all("embeddings") == []
    talk.ask(type="fit", run=True)
    assert talk.next("embeddings")["controls"]["kernel"] == "RBF(length_scale=3.0)"


def test_parameters_components_axes_and_the_second_map(talk):
    talk.ask(type="fit", parameter=0, value=2.5)
    assert talk.next("embeddings")["controls"]["kernel"] == "RBF(length_scale=2.5)"
    talk.ask(type="fit", components=4)
    message = talk.next("embeddings")
    assert (
        message["controls"]["components"] == 4
        and len(message["panes"][0]["spectrum"]["values"]) == 4
    )
    talk.ask(type="axes", axes=[0, 3])
    assert talk.next("embeddings")["panes"][0]["axes"][1].startswith("component 4")
    talk.ask(type="axes", axes=[0, 9])
    assert talk.next("notice")["text"] == "the embedding has only 4 dimensions"
    talk.ask(type="fit", second="data")
    assert talk.next("embeddings")["panes"][1]["title"] == "the data"
    talk.ask(type="fit", second="none")
    assert len(talk.next("embeddings")["panes"]) == 1
    talk.said.clear()
    talk.ask(type="fit", second="gtm")
    error = (
        "the second embedding 'gtm' is not available for these points; the options are none, data, "
        "kernel-pca, pca, ppca, mds, sammon"
    )
    assert talk.next("state")["error"].startswith(error)


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ({"kernel": "RBF(("}, "RBF(("),
        ({"kernel": "RBF(-1)"}, "length_scale"),
        ({"kernel": "WeisfeilerLehman()"}, "graph"),
        ({"kernel": ""}, "empty"),
        ({"parameter": 0, "value": 0.0}, "must be positive, got 0"),
    ],
    ids=["brackets", "negative", "graphs", "empty", "zero"],
)
def test_a_mistake_is_told_and_the_map_stays(talk, question, words):
    before = talk.controller.scene.embeddings
    talk.ask(type="fit", **question)
    deadline = time.monotonic() + 10
    while not any(one.get("error") for one in talk.all("state")):
        assert time.monotonic() < deadline, talk.said
        time.sleep(0.01)
    errors = [one["error"] for one in talk.all("state") if one.get("error")]
    assert words in errors[-1]
    assert talk.controller.scene.embeddings is before


@pytest.mark.parametrize(
    "question", [None, 3, "fit", {}, {"type": "no such thing"}, {"type": ["fit"]}], ids=str
)
def test_what_is_no_question_is_not_heard(talk, question):
    talk.controller.handle(question)
    assert talk.said == []


def test_the_selection(talk):
    talk.ask(type="select", rows=as_text(np.array([3, 5, 4_000_000], dtype="<u4").tobytes()))
    assert talk.controller.selection.tolist() == [3, 5]


def test_the_rows_that_pass_the_filters(talk):
    n = len(talk.controller.scene)
    assert talk.controller.filtered.tolist() == list(range(n))
    passing = np.arange(n) % 7 == 2
    bits = as_text(np.packbits(passing, bitorder="little").tobytes())
    talk.ask(type="filter", mask=bits)
    assert talk.controller.filtered.tolist() == np.flatnonzero(passing).tolist()
    talk.ask(type="filter", mask=as_text(b"1"))  # too short
    assert talk.controller.filtered.tolist() == list(range(n))
    talk.ask(type="filter", mask=bits)
    talk.ask(type="filter", mask=None)
    assert talk.controller.filtered.tolist() == list(range(n))


def test_new_rows_stay_in_the_maps_of_a_new_fit(talk, blobs):
    _, X = blobs
    lines = ["x1,x2,x3,x4,x5", *(",".join(map(repr, row)) for row in X[:4].tolist())]
    talk.ask(type="project", name="new.csv", bytes=as_text("\n".join(lines).encode()))
    message = talk.next("scene")
    assert (
        message["rows"] == 94
        and message["color"] == "set"
        and message["ids"][-4:].tolist() == [1, 2, 3, 4]
    )
    np.testing.assert_allclose(
        message["panes"][0]["x"][90:], message["panes"][0]["x"][:4], atol=1e-6
    )
    talk.ask(type="fit", kernel="RBF(3.0)")
    message = talk.next("embeddings")
    again = KernelPCA(3, kernel="RBF(3.0)").fit(X)  # and not of 94 points
    np.testing.assert_allclose(
        message["panes"][0]["x"][90:], again.transform(X[:4])[:, 0], atol=1e-6
    )
    talk.ask(type="project", name="other.csv", bytes=as_text(b"a,b\n1,2\n"))
    assert "other.csv has no columns 'x1', 'x2'" in talk.next("notice")["text"]


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("table.xyz", b"x1\n1\n"),
        ("empty.csv", b""),
        ("broken.npz", b"PK\x03\x04 nothing"),
        ("broken.parquet", b"PAR1 nothing"),
        ("broken.csv.gz", b"not gzip"),
        ("graphs.zip", b"PK nothing"),
        ("none.fasta", b""),
        ("sheet.xlsx", b"PK"),
        ("nul\0.csv", b"x1\n1\n"),
        ("", b"x1\n"),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_errors_of_uploads_name_the_file_of_the_user(talk, name, data):
    talk.ask(type="project", name=name, bytes=as_text(data))
    text = talk.next("notice")["text"]
    assert tempfile.gettempdir() not in text and "/new" not in text, text
    assert name in text or "\0" in name, text


def test_an_invalid_kernel_replaces_a_running_fit(talk):
    gate = threading.Event()
    talk.controller.jobs.submit("fits", Job(lambda: gate.wait(20)))
    talk.ask(type="fit", kernel="RBF(4.0)", token=1)
    talk.ask(type="fit", kernel="RBF(4.0", token=2)
    gate.set()
    finished = threading.Event()
    talk.controller.jobs.submit("fits", Job(finished.set))
    assert finished.wait(20)
    assert talk.all("embeddings") == []
    assert [(one["token"], bool(one["error"])) for one in talk.all("state")] == [(2, True)]
    assert talk.controller.scene.embeddings[0].model.kernel_.length_scale == 2.0


@pytest.mark.parametrize(
    ("kernel", "domain"),
    [("Spectrum(3)", "strings"), ("2 * Mismatch()", "strings"), ("BagOfWords()", "texts")],
)
def test_a_kernel_on_strings_is_refused_for_vectors(talk, kernel, domain):
    talk.ask(type="fit", kernel=kernel, token=1)
    error = talk.next("state")["error"]
    assert f"compares {domain}, but the points are vectors of 5 numbers; use a kernel on " in error
    assert talk.controller.scene.embeddings[0].model.kernel_.length_scale == 2.0


def test_a_kernel_on_strings_is_taken_for_texts():
    words = ["spam", "spam ham", "ham", "eggs", "egg and ham", "and spam"]
    talk = Talk(explore(KernelPCA(2, kernel="Spectrum(2)").fit(words), words, second=None).scene)
    talk.ask(type="fit", kernel="Spectrum(1)", token=1)
    assert talk.next("embeddings")["controls"]["kernel"].startswith("Spectrum(p=1")
    talk.controller.close()


def test_a_file_that_changes(blobs, tmp_path):
    scene, path = explore(*blobs).scene, tmp_path / "data.csv"
    path.write_text("1\n")
    other = explore(*blobs, title="read again").scene
    talk = Talk(scene, source=WatchedScene(lambda: scene, path, lambda: other))
    talk.controller.check_file()
    assert talk.said == []
    path.write_text("1\n2\n")
    talk.controller.check_file()
    talk.controller.check_file()
    assert [(one["text"], one["action"]) for one in talk.all("notice")] == [
        ("data.csv has changed since it was read.", "reload")
    ]
    talk.ask(type="reload")
    assert talk.next("scene")["title"] == "read again"
    talk.controller.check_file()
    assert talk.said == []
    talk.controller.close()


def test_a_new_page_reads_a_file_that_has_changed(blobs, tmp_path):
    scene, path = explore(*blobs, title="old").scene, tmp_path / "data.csv"
    path.write_text("1\n")
    titles = iter(["second", "third"])

    def read():
        if path.read_text() == "broken\n":
            raise ValueError("line 1 is broken")
        return explore(*blobs, title=next(titles)).scene

    source = WatchedScene(lambda: scene, path, read)

    def opened():
        talk = Talk(source.scene, source=source)
        talk.ask(type="scene")
        talk.title = talk.next("scene")["title"]
        return talk

    assert opened().title == "old"
    path.write_text("1\n2\n")
    second = opened()
    assert second.title == "second"
    second.controller.check_file()
    assert second.all("notice") == []
    assert opened().title == "second"  # no file is read
    path.write_text("broken\n")
    talk = Talk(source.scene, source=source)
    talk.ask(type="scene")
    notice = talk.next("notice")
    assert notice["text"] == "data.csv was changed, but cannot be read: line 1 is broken"
    assert notice["action"] == "reload"
    path.write_text("1\n2\n3\n")
    talk.ask(type="reload")
    assert talk.next("scene")["title"] == "third"
    second.controller.check_file()  # another page, which still shows the rows before that
    second.ask(type="reload")
    assert second.next("scene")["title"] == "third"
    path.unlink()
    last = opened()
    assert last.title == "third"
    last.controller.check_file()
    assert (
        last.next("notice")["text"]
        == "data.csv no longer exists; the page shows what was read earlier."
    )


def test_a_gplvm_beside_it(talk):
    talk.ask(type="fit", second="gplvm")
    message = talk.next("embeddings")
    assert message["panes"][1]["title"] == "GPLVM"
    model, X = talk.controller.scene.embeddings[1].model, talk.controller.scene.points
    np.testing.assert_allclose(message["panes"][1]["x"], model.embedding_[:, 0], rtol=1e-6)
    talk.ask(type="preimage", pane=1, x=0.3, y=-0.4, token=1)
    expected = model.inverse_transform([[0.3, -0.4]])[0]
    found = [float(value) for _, value in talk.next("preimage")["record"]]
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    talk.ask(type="field", pane=1, name="magnification")
    message = talk.next("field")
    assert len(message["levels"]) > 2  # it stretches some places more than others
    k, m = 24 * message["columns"] + 24, message["columns"]
    x = message["left"] + (message["right"] - message["left"]) * 24 / (m - 1)
    y = message["low"] + (message["high"] - message["low"]) * 24 / (m - 1)
    h = 1e-5
    J = [
        (model.inverse_transform([[x + a, y + b]]) - model.inverse_transform([[x - a, y - b]]))[0]
        for a, b in ((h, 0), (0, h))
    ]
    area = np.sqrt(np.linalg.det(np.array(J) @ np.array(J).T)) / (2 * h) ** 2
    np.testing.assert_allclose(message["values"][k], np.log10(area), atol=1e-3)
    assert len(X) == 90


def test_the_code(talk):
    talk.ask(type="code")
    text = talk.next("code")["text"]
    assert "model = KernelPCA(" in text and "RBF(length_scale=2.0)" in text


def test_a_scene_without_a_file_or_a_recipe(talk):
    talk.ask(type="reload")  # there is no file to read again
    assert talk.said == []
    talk.controller._replace_scene(replace(talk.controller.scene, recipe=None))
    talk.said.clear()
    talk.ask(type="project", name="new.csv", bytes=as_text(b"x1\n1\n"))
    assert "the points do not come from a table" in talk.next("notice")["text"]


def test_a_fit_of_unknown_duration_waits_for_run():
    X = np.random.default_rng(0).normal(size=(1500, 4))
    talk = Talk(explore(KernelPCA(2, kernel="RBF(2.0)").fit(X), X).scene)
    talk.ask(type="fit", second="mds")
    message = talk.next("state")
    assert message["text"] == "The duration of this fit is unknown. Press Run to start it."
    talk.controller.close()


def test_a_second_model_that_was_not_passed(talk):
    talk.ask(type="fit", second="given")
    assert "unknown model 'given'" in talk.next("state")["error"]
