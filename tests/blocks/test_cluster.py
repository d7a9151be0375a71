"""Test fits on a Dask cluster: the number of workers, or the loss of one, changes no result."""

import contextlib
import multiprocessing
import os
import resource
import signal
import threading
import time
from functools import partial

import numpy as np
import pytest
from sklearn.base import clone

from mercer import Blocks, KernelPCA, independence_test, two_sample_test
from mercer.blocks import as_blocks
from mercer.solvers import Moments

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")
from block_models import MODELS, ROWS, WEIGHTS, X, fitted, on_dask  # noqa: E402

TIMEOUT = 60.0
LOCAL = {"threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
QUIET = {"silence_logs": 50}
# Workers are forked from a process that has already imported these modules.  Otherwise each of the
# workers that the tests start and kill would import them again, which takes most of the time.
PRELOADED = ["distributed.nanny", "dask.dataframe", "mercer.blocks._dask_blocks", "mercer.compile"]
PRELOADED += ["mercer.solvers.eigen._feature_eigen"]  # mercer's packages are lazy


@pytest.fixture(scope="module")
def client():
    distributed.utils._forkserver_preload_set = True  # Dask would replace the list by its own
    multiprocessing.get_context("forkserver").set_forkserver_preload(PRELOADED)
    with (
        dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}),
        distributed.LocalCluster(n_workers=2, **LOCAL, **QUIET) as cluster,
        distributed.Client(cluster, timeout=TIMEOUT) as client,
    ):
        yield client


def with_workers(client, count):
    client.cluster.scale(count)
    end = time.monotonic() + TIMEOUT
    while len(client.nthreads()) != count:
        assert time.monotonic() < end, f"{client.nthreads()} instead of {count} workers"
        time.sleep(0.05)


ALL = pytest.param(list(MODELS), (2, 4, 1), id="all", marks=pytest.mark.long)
SOME = pytest.param(["pca", "pca-exact", "logistic-three", "kmeans"], (2, 1), id="some")


@pytest.mark.parametrize(("names", "counts"), [SOME, ALL])
def test_the_same_bits_for_any_number_of_workers(client, names, counts):
    targets = {name: MODELS[name][1] for name in names}
    here = {name: answers(name, Blocks.of(X, ROWS), y) for name, y in targets.items()}
    for count in counts:
        with_workers(client, count)
        for name, y in targets.items():
            there = answers(name, on_dask(X), on_dask(y))
            assert np.array_equal(there, here[name]), (name, count)


def answers(name, points, y):
    """Return the predictions of a model for X after a fit to blocks."""
    return getattr(fitted(name, points, y), MODELS[name][2])(X)


def killing(client, ready):
    """Start a thread that kills a worker as soon as `ready` returns; return the thread."""
    found = client.run(os.getpid, on_error="return").values()
    pids = [pid for pid in found if isinstance(pid, int)]  # a worker may just have been lost

    def kill():
        ready()
        with contextlib.suppress(ProcessLookupError):
            os.kill(pids[0], signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    return killer


def some_done(client, count):
    """Wait until the given number of blocks of a pass has been processed."""
    end = time.monotonic() + TIMEOUT
    while time.monotonic() < end:
        tasks = dict(client.cluster.scheduler.tasks)  # a copy, because another thread modifies it
        mine = (task for key, task in tasks.items() if str(key).startswith(("_task", "_job")))
        done = sum(task.state in ("memory", "released") for task in mine)
        if done >= count:
            return
        time.sleep(0.01)


def exact_run():
    """Run an exact kernel PCA, which uses distributed products with K."""
    big = np.random.default_rng(1).standard_normal((9000, 8))
    model = KernelPCA(3, kernel="rbf", gamma=0.1, eigen_solver="krylov")
    expected = clone(model).fit(Blocks.of(big, 3000)).transform(big[:50])
    return model, big, da.from_array(big, chunks=(3000, 8)), expected


def long_run():
    """Run a kernel PCA that takes a few seconds, on points in memory and on a cluster."""
    rows, m = 4000, 400
    big = np.random.default_rng(1).standard_normal((16 * rows, 8))
    model = KernelPCA(4, kernel="rbf", gamma=0.1, eigen_solver="nystroem", landmarks=big[:m])
    expected = clone(model).fit(Blocks.of(big, rows)).transform(big[:50])
    points = da.random.default_rng(0).standard_normal((16 * rows, 8), chunks=(rows, 8))
    return model, big, da.from_array(big, chunks=(rows, 8)) + 0.0 * points, expected


@pytest.mark.parametrize("what", [long_run, exact_run], ids=["landmarks", "exact"])
def test_a_worker_that_is_killed_costs_nothing_but_time(client, what):
    model, big, points, expected = what()
    with_workers(client, 2)
    before = set(client.run(os.getpid).values())
    killer = killing(client, lambda: some_done(client, 5))
    found = clone(model).fit(points).transform(big[:50])
    killer.join(TIMEOUT)
    two_again(client)
    assert set(client.run(os.getpid).values()) != before  # one worker was replaced
    assert np.array_equal(found, expected)


SAMPLE_TESTS = {
    "two samples": two_sample_test,
    "two samples, linear": partial(two_sample_test, method="linear"),
    "independence": independence_test,
}


@pytest.mark.parametrize("name", SAMPLE_TESTS)
@pytest.mark.parametrize("counts", [(2,), pytest.param((4, 1, 2), marks=pytest.mark.long)])
def test_tests_of_samples_give_the_same_bits_on_a_cluster(client, name, counts):
    """The number of workers, and the loss of one, change no statistic.

    A worker is killed only in the first test, and in all tests of `pytest -m long`.
    """
    rows = 1000
    A = np.random.default_rng(2).standard_normal((8 * rows, 3))
    B = A[:, :2] ** 2 if name == "independence" else A[::-1] + 0.01
    run = partial(SAMPLE_TESTS[name], rank=30, n_permutations=199)
    expected = run(Blocks.of(A, rows), Blocks.of(B, rows))

    def matches():
        found = run(*(da.from_array(P, chunks=(rows, P.shape[1])) for P in (A, B)))
        same = (found.statistic, found.pvalue) == (expected.statistic, expected.pvalue)
        return same and np.array_equal(found.null, expected.null)

    for count in counts:
        with_workers(client, count)
        assert matches(), count
    if len(counts) > 1 or name == "two samples":
        before = set(client.run(os.getpid).values())
        killer = killing(client, lambda: some_done(client, 2))
        assert matches()
        killer.join(TIMEOUT)
        two_again(client)
        assert set(client.run(os.getpid).values()) != before  # one worker was replaced


def two_again(client):
    """Wait for a second worker; start one if a nanny was lost together with its worker."""
    try:
        client.wait_for_workers(2, timeout=20)
    except TimeoutError:
        client.cluster.scale(len(client.cluster.workers) + 1)
        client.wait_for_workers(2, timeout=TIMEOUT)


@pytest.mark.long
def test_twenty_kills_at_random_moments(client):
    with_workers(client, 2)
    runs = [long_run(), exact_run()]
    for place, after in enumerate(np.random.default_rng(0).uniform(0.05, 4.0, 20)):
        model, big, points, expected = runs[place % 2]
        two_again(client)
        killer = killing(client, lambda after=after: time.sleep(after))
        found = clone(model).fit(points).transform(big[:50])
        killer.join(TIMEOUT)
        assert np.array_equal(found, expected), (place, after)
        print(f"kill {place} after {after:.2f} s: the same bits")


def test_three_tasks_for_a_block_and_a_pass(monkeypatch):
    from mercer.blocks import _dask_blocks

    compute, counted = _dask_blocks.compute, []

    def counting(tasks):
        counted.append(sum(len(task.__dask_graph__()) for task in tasks))
        return compute(tasks)

    monkeypatch.setattr(_dask_blocks, "compute", counting)
    y = MODELS["ridge"][1]
    fitted("ridge", on_dask(X), y)  # the chunks of X are separate tasks
    blocks = -(-len(X) // ROWS)
    assert len(counted) == 2  # the sample, and the moments
    assert (
        max(counted) <= 3 * blocks + 2
    )  # plus one task each for the array and for the shared arguments


@pytest.mark.long
def test_the_memory_of_a_worker(client):
    """A worker needs at most two blocks and 32 m^2 bytes in addition to its initial memory."""
    m, rows, columns = 1200, 20_000, 40
    with_workers(client, 0)
    with_workers(client, 2)  # new workers, so that their peak memory starts from zero
    points = da.random.default_rng(0).standard_normal((12 * rows, columns), chunks=(rows, columns))
    landmarks = np.random.default_rng(0).standard_normal((m, columns))
    model = KernelPCA(2, kernel="rbf", gamma=0.01, eigen_solver="nystroem", landmarks=landmarks)
    small = points[: 2 * rows].rechunk((2000, columns))
    clone(model).set_params(landmarks=landmarks[:50]).fit(
        small
    )  # imports everything before memory is measured
    before = client.run(resource.getrusage, resource.RUSAGE_SELF)
    clone(model).fit(points)
    after = client.run(resource.getrusage, resource.RUSAGE_SELF)
    grown = 1024 * max(after[w].ru_maxrss - before[w].ru_maxrss for w in after)
    block = 8 * rows * columns
    constants = 2 * 2**25 + 2**26  # two strips of features, and memory retained by allocators
    print(
        f"{grown / 2**20:.0f} MiB, of which 2 blocks {block / 2**19:.0f}, 32 m^2 {m**2 / 2**15:.0f}"
    )
    assert grown <= 2 * block + 32 * m**2 + constants


# ---------------------------------------------------------------------- bad input


def test_a_value_that_is_not_a_number_is_named_by_a_worker(client):
    with_workers(client, 2)
    bad = X.copy()
    bad[777, 1] = np.nan
    with pytest.raises(ValueError, match=r"in block 1, row 377, column 1 \(row 777 of all\)"):
        fitted("pca", on_dask(bad), None)


def test_a_cluster_without_workers(client, monkeypatch):
    with_workers(client, 0)
    late = threading.Timer(1.0, client.cluster.scale, [1])
    late.start()
    assert fitted("pca", on_dask(X), None).n_features_in_ == X.shape[1]  # waits for a worker
    with_workers(client, 0)
    monkeypatch.setattr("mercer.blocks._dask_blocks._WORKER_TIMEOUT", 0.2)
    with pytest.raises(RuntimeError, match=r"has no workers, so that the fit would wait forever"):
        fitted("pca", on_dask(X), None)
    with_workers(client, 2)


def test_workers_that_lack_the_package():
    hidden = "import sys; sys.modules['mercer'] = None"
    with (
        dask.config.set({"distributed.worker.multiprocessing-method": "spawn"}),
        distributed.LocalCluster(n_workers=1, preload=[hidden], **LOCAL, **QUIET) as cluster,
        distributed.Client(cluster, timeout=TIMEOUT),
        pytest.raises(RuntimeError, match=r"1 of 1 workers cannot import mercer.*install mercer"),
    ):
        fitted("pca", on_dask(X), None)


def test_moments_can_be_merged_by_anybody(client):
    """Merging the results of two tasks modifies neither of them."""
    one, other = Moments.of(X[:50]), Moments.of(X[50:100])
    copies = [part.comoment.copy() for part in (one, other)]
    one.merge(other)
    assert np.array_equal(one.comoment, copies[0])
    assert np.array_equal(other.comoment, copies[1])
    assert as_blocks(on_dask(WEIGHTS)).width is None


def test_lazy_answers_hold_on_to_points_that_were_persisted(client):
    with_workers(client, 2)
    model = fitted("pca", X, None)
    lazy = model.transform(
        on_dask(X).persist()
    )  # no other reference keeps the persisted data alive
    time.sleep(0.3)  # the scheduler is notified of released data
    np.testing.assert_allclose(lazy.compute(), model.transform(X), atol=1e-12)
