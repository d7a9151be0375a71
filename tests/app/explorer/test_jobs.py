"""Jobs run in lanes, report their progress, and are cancelled by newer requests or by the user."""

import threading
import time

import numpy as np
import pytest
from wire import Talk

from mercer import KernelPCA, embedding_quality, explore
from mercer._core import ProgressStep, capture_progress, report_step, run_in_threads
from mercer.app.explorer._jobs import Cancelled, Job, Jobs
from mercer.app.explorer._scene import Scene


@pytest.fixture
def talk():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 5)) + 3.0 * np.eye(5)[np.arange(90) % 3]
    talk = Talk(explore(KernelPCA(3, kernel="RBF(2.0)").fit(X), X, title="blobs").scene)
    yield talk
    talk.controller.close()


@pytest.fixture
def slow(monkeypatch):
    """Make the trustworthiness take until `slow.set()`, or until it is cancelled."""
    gate = threading.Event()
    gate.started = threading.Event()
    gate.calls = 0

    def compute(scene, embedding):
        gate.calls += 1
        gate.started.set()
        for step in range(2000):
            report_step(f"{step} of 2000 points", step, 2000)
            if gate.wait(0.01):
                break
        return np.ones(len(scene))

    monkeypatch.setattr(Scene, "_trustworthiness", compute)
    return gate


TRUST = "trustworthiness in kernel PCA"


def wait_until(condition, seconds=20.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_a_slow_column_delays_nothing(talk, slow):
    talk.ask(type="column", name=TRUST)
    assert slow.started.wait(20)
    talk.ask(type="preimage", pane=0, x=0.1, y=-0.2, token=1)
    assert talk.next("preimage")["token"] == 1
    talk.ask(type="field", pane=1, name="eigenfunction 1")
    assert len(talk.next("field")["levels"]) > 2
    talk.ask(type="page")
    assert b"<html" in bytes(talk.next("page")["bytes"])
    talk.ask(type="column", name="x1")  # waits in the lane of the slow column
    slow.set()
    wait_until(lambda: [one["name"] for one in talk.all("column")] == [TRUST, "x1"])


def test_only_the_newest_preimage_is_computed(talk):
    gate, finished = threading.Event(), threading.Event()
    talk.controller.jobs.submit("queries", Job(lambda: gate.wait(20)))
    for token in range(5):
        talk.ask(type="preimage", pane=0, x=0.1, y=-0.2, token=token)
    talk.controller.jobs.submit("queries", Job(finished.set))
    gate.set()
    assert finished.wait(20)
    assert [one["token"] for one in talk.all("preimage")] == [4]


def test_two_requests_for_a_column_are_one_computation(talk, slow):
    for _ in range(3):
        talk.ask(type="column", name=TRUST)
    slow.set()
    assert talk.next("column")["data"].tolist() == [1] * 90
    wait_until(lambda: not talk.controller.is_busy)
    assert slow.calls == 1 and talk.all("column") == []


def test_a_job_of_more_than_a_second_is_shown_with_its_progress(talk, slow):
    talk.ask(type="column", name=TRUST)
    assert slow.started.wait(20)
    start = time.monotonic()
    first = talk.next("job")
    assert 0.5 < time.monotonic() - start < 5.0
    assert first["title"] == f"Computing {TRUST}" and not first["done"]
    later = talk.next("job")
    assert later["id"] == first["id"] and later["fraction"] > first["fraction"] > 0.0
    assert later["text"].endswith(" of 2000 points")
    slow.set()
    wait_until(lambda: any(one["done"] for one in talk.all("job")))
    assert talk.next("column")["name"] == TRUST
    talk.ask(type="preimage", pane=0, x=0.1, y=-0.2, token=1)  # fast: it is not shown
    talk.next("preimage")
    time.sleep(1.2)
    assert talk.all("job") == []


def test_cancel_ends_a_running_job_and_a_waiting_one(talk, slow):
    talk.ask(type="column", name=TRUST)
    talk.ask(type="column", name="reconstruction error")
    wait_until(lambda: len({one["id"] for one in talk.all("job")}) == 2)
    ids = {one["title"]: (one["id"], one["text"]) for one in talk.all("job")}
    assert ids["Computing reconstruction error"][1] == "waiting"
    talk.said.clear()
    for number, _ in ids.values():
        talk.ask(type="cancel", id=number)
    wait_until(lambda: not talk.controller.is_busy)
    assert {one["name"]: one["error"] for one in talk.all("column")} == {
        TRUST: f"Computing {TRUST}: cancelled.",
        "reconstruction error": "Computing reconstruction error: cancelled.",
    }
    assert {one["id"] for one in talk.all("job") if one["done"]} == {n for n, _ in ids.values()}
    assert not talk.controller.scene.derived_cache
    talk.ask(type="cancel", id=ids[f"Computing {TRUST}"][0])  # it is no longer there
    talk.ask(type="cancel", id="x")
    talk.said.clear()
    talk.ask(type="column", name="reconstruction error")
    assert "error" not in talk.next("column")


def test_a_cancelled_fit_can_be_started_again(talk):
    gate = threading.Event()
    talk.controller.jobs.submit("fits", Job(lambda: gate.wait(20)))
    talk.ask(type="fit", kernel="RBF(4.0)", token=3)
    wait_until(lambda: any(one["title"] == "Fitting the models" for one in talk.all("job")))
    number = next(o["id"] for o in talk.all("job") if o["title"] == "Fitting the models")
    talk.ask(type="cancel", id=number)
    state = talk.next("state")
    assert state["run"] and state["token"] == 3 and "cancelled. Press Run" in state["text"]
    gate.set()
    talk.ask(type="fit", run=True, token=4)
    assert talk.next("embeddings")["controls"]["kernel"] == "RBF(length_scale=4.0)"


def test_no_column_of_older_embeddings_follows_newer_embeddings(talk, slow):
    talk.ask(type="column", name=TRUST)
    assert slow.started.wait(20)
    talk.ask(type="fit", kernel="RBF(4.0)")
    talk.next("embeddings")
    wait_until(lambda: not talk.controller.is_busy)
    assert talk.all("column") == []
    slow.set()
    talk.ask(type="column", name=TRUST)
    assert talk.next("column")["data"].tolist() == [1] * 90


def test_axes_that_change_during_a_fit_are_kept(talk):
    fit = KernelPCA.fit
    gate, started = threading.Event(), threading.Event()

    def fit_slowly(self, X, *args, **params):
        started.set()
        gate.wait(20)
        return fit(self, X, *args, **params)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(KernelPCA, "fit", fit_slowly)
        talk.ask(type="fit", kernel="RBF(4.0)")
        assert started.wait(20)
        talk.ask(type="axes", axes=[0, 2])
        talk.next("embeddings")
        gate.set()
        message = talk.next("embeddings")
    assert message["panes"][0]["shown"] == [0, 2]
    assert message["controls"]["kernel"] == "RBF(length_scale=4.0)"


def test_idle_pages_have_no_threads(talk):
    before = set(threading.enumerate())
    talk.ask(type="preimage", pane=0, x=0.1, y=-0.2, token=1)
    talk.next("preimage")
    mine = lambda: [t for t in threading.enumerate() if t not in before]  # noqa: E731
    wait_until(lambda: not [t for t in mine() if t.name.startswith(("mercer-", "Thread-"))])


def test_a_failing_job_does_not_stop_its_lane(caplog):
    finished, jobs = threading.Event(), Jobs(lambda message: None)
    jobs.submit("a", Job(lambda: 1 // 0, "Division"))
    jobs.submit("a", Job(finished.set))
    assert finished.wait(20)
    assert "Division failed: ZeroDivisionError" in caplog.text
    jobs.close()
    jobs.submit("a", Job(lambda: pytest.fail("closed")))
    wait_until(lambda: not jobs.is_busy)


def test_tiles_and_quality_stop_at_a_checkpoint():
    count = 0

    def stop_at_third():
        nonlocal count
        count += 1
        if count == 3:
            raise Cancelled

    done = []
    with capture_progress(done.append, stop_at_third), pytest.raises(Cancelled):
        run_in_threads(done.append, range(8), 1)
    assert done == [0, 1]
    X = np.random.default_rng(0).normal(size=(3000, 3))
    steps, count = [], 3
    with capture_progress(steps.append, lambda: None):
        expected = embedding_quality(X, X[:, :2], 600)
    assert all(isinstance(step, ProgressStep) and step.total == 600 for step in steps)
    assert sorted(step.done for step in steps)[-1] == 600 and len(steps) > 3
    np.testing.assert_array_equal(embedding_quality(X, X[:, :2], 600).q_nx, expected.q_nx)
    count = 0
    with capture_progress(steps.append, stop_at_third), pytest.raises(Cancelled):
        embedding_quality(X, X[:, :2], 600)


def test_long_requests_report_their_progress(talk, monkeypatch):
    """With small blocks, each of these requests takes several steps and stops at the next one."""
    monkeypatch.setattr("mercer.app.explorer._embeddings._BLOCK_ROWS", 16)
    monkeypatch.setattr("mercer.app.explorer._serialize._COMPRESSED_BLOCK", 500)
    scene = talk.controller.scene
    tables = [scene.table, scene.table.take(np.arange(40))]
    requests = {
        "reconstruction error": lambda: scene.derived["reconstruction error"](),
        "contours": lambda: scene.embeddings[1].magnification(),
        "saved page": lambda: talk.controller.html(),
        "projection": lambda: [scene.projected(table) for table in tables],
    }
    for name, request in requests.items():
        steps = []
        with capture_progress(steps.append):
            request()
        fractions = [step.done / step.total for step in steps]
        assert len(steps) >= 3 and max(fractions) >= 1.0 > min(fractions), name
        count = 0

        def stop_at_second():
            nonlocal count
            count += 1
            if count == 2:
                raise Cancelled

        with capture_progress(steps.append, stop_at_second), pytest.raises(Cancelled):
            request()


def test_a_job_that_is_done_is_not_shown_again():
    shown, counts = [], []
    job = Job(lambda: counts.append(1), "Counting")
    job.prepare(shown.append, threads=2)
    job.run()
    job.show()
    job.finish()
    assert counts == [1] and shown == []
