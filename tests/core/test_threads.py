"""Threads over tiles: errors stop them, pools are not nested, sums have a fixed order."""

import os
import threading
import time
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from mercer._core import _threads, ordered_sum, run_in_threads, split_evenly


def test_an_error_in_a_thread_is_raised_and_stops_the_others():
    seen = []

    def task(job):
        if job == 0:
            raise ZeroDivisionError("job 0")
        for step in range(500):
            yield time.sleep(0.01)
            seen.append((job, step))

    with pytest.raises(ZeroDivisionError, match="job 0"):
        run_in_threads(task, range(6), n_threads=2)
    assert len(seen) < 100
    assert threading.active_count() < 50


def test_pools_do_not_nest():
    deepest = []

    def outer(job):
        names = set()
        run_in_threads(lambda _: names.add(threading.current_thread().name), range(8), n_threads=4)
        deepest.append(len(names))

    run_in_threads(outer, range(3), n_threads=2)
    assert deepest == [1, 1, 1]


@threadpool_limits.wrap(limits=2, user_api="blas")
def test_overlapping_calls_give_the_blas_its_threads_back():
    def blas_threads():
        return [p["num_threads"] for p in threadpool_info() if p["user_api"] == "blas"]

    before = blas_threads()
    inside, leave = threading.Barrier(2), threading.Event()

    def first(job):
        if job == 0:
            inside.wait(10)
            leave.wait(10)

    thread = threading.Thread(
        target=run_in_threads, args=(first, range(2)), kwargs={"n_threads": 2}
    )
    thread.start()
    inside.wait(10)  # the first call limits the BLAS ...
    run_in_threads(
        lambda job: leave.set(), range(2), n_threads=2
    )  # ... and a second one starts and ends
    thread.join(10)
    assert blas_threads() == before


def test_what_overflows_in_a_task_is_for_the_caller_to_say():
    out = np.ones(4)

    def task(i):
        out[i] = np.exp(np.array([1000.0]))[0]

    run_in_threads(task, range(4), n_threads=2)
    assert np.all(np.isinf(out))


@pytest.mark.parametrize("n_threads", [1, 2, 3])
def test_a_sum_has_the_same_bits_whatever_the_threads(n_threads):
    values = np.random.default_rng(0).normal(size=1000) * 10.0 ** np.arange(-5, 5).repeat(100)
    parts = split_evenly(1000, 37)
    assert sum(part.stop - part.start for part in parts) == 1000
    want = ordered_sum(lambda part: values[part].sum(), parts, 5, n_threads=1)
    assert ordered_sum(lambda part: values[part].sum(), parts, 5, n_threads=n_threads) == want
    assert want == pytest.approx(values.sum())
    assert ordered_sum(lambda part: values[part].sum(), [], 5) == 0.0


def test_a_sum_of_one_part_is_new_and_overflows_quietly():
    term = np.array([1.0, 1e308])
    total = ordered_sum(lambda part: term, [0], 5)
    total += 1.0
    assert term[0] == 1.0
    assert ordered_sum(lambda part: 10.0 * term, [0], 5)[1] == np.inf


def test_threads_are_kept_and_a_call_inside_of_another_thread_does_not_wait():
    names = set()

    def task(job):
        names.add(threading.current_thread())
        time.sleep(0.001)

    for _ in range(20):
        run_in_threads(task, range(4), n_threads=2)
    assert len(names) == 2 and threading.current_thread() in names
    busy, done = threading.Event(), threading.Event()

    def long(job):
        busy.set()
        done.wait(10)

    thread = threading.Thread(target=run_in_threads, args=(long, range(2)), kwargs={"n_threads": 2})
    thread.start()
    busy.wait(10)
    seen = []
    run_in_threads(
        seen.append, range(4), n_threads=2
    )  # the pool is busy, so the calling thread does all jobs
    assert sorted(seen) == [0, 1, 2, 3] and not done.is_set()
    done.set()
    thread.join(10)


def test_an_index_error_of_a_task_is_not_lost():
    with pytest.raises(IndexError):
        run_in_threads(lambda job: [][job], range(4), n_threads=2)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not support fork")
def test_a_forked_child_has_its_own_threads():
    def total():
        out = np.zeros(8)
        run_in_threads(lambda i: out.__setitem__(i, i), range(8), n_threads=2)
        return out.sum()

    assert total() == 28
    with warnings.catch_warnings():
        # fork in a process with threads, since Python 3.12
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        os._exit(0 if total() == 28 else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_a_forked_child_restores_a_limit_that_another_thread_of_its_parent_set(monkeypatch):
    number = [4]
    library = _threads._BlasLibrary(lambda: number[0], lambda n: number.__setitem__(0, n))
    monkeypatch.setattr(_threads, "_blas", lambda: [library])
    limits = _threads._BlasThreads()
    limits.hold()
    assert number == [1]
    limits.after_fork()  # this thread holds no limit
    assert number == [4]
    limits.hold()
    assert number == [1]
    limits.release()
    assert number == [4]


@pytest.mark.parametrize(
    "blas",
    [
        SimpleNamespace(internal_api="mkl"),
        SimpleNamespace(internal_api="openblas", threading_layer="openmp"),
        SimpleNamespace(internal_api="openblas", threading_layer="pthreads", dynlib=object()),
    ],
    ids=["MKL", "OpenMP", "unknown names"],
)
def test_the_functions_of_other_libraries_are_not_called_directly(blas):
    assert _threads._openblas_functions(blas) is None
