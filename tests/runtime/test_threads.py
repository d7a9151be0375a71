"""Threads over tiles: errors end them, pools do not nest, sums keep their order."""

import threading
import time

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from mercer._runtime import cut, ordered_sum, run


def test_an_error_in_a_thread_is_raised_and_stops_the_others():
    seen = []

    def task(job):
        if job == 0:
            raise ZeroDivisionError("job 0")
        for step in range(500):
            yield time.sleep(0.01)
            seen.append((job, step))

    with pytest.raises(ZeroDivisionError, match="job 0"):
        run(task, range(6), n_threads=2)
    assert len(seen) < 100
    assert threading.active_count() < 50


def test_pools_do_not_nest():
    deepest = []

    def outer(job):
        names = set()
        run(lambda _: names.add(threading.current_thread().name), range(8), n_threads=4)
        deepest.append(len(names))

    run(outer, range(3), n_threads=2)
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

    thread = threading.Thread(target=run, args=(first, range(2)), kwargs={"n_threads": 2})
    thread.start()
    inside.wait(10)  # the first call holds the BLAS ...
    run(lambda job: leave.set(), range(2), n_threads=2)  # ... and a second comes and goes
    thread.join(10)
    assert blas_threads() == before


def test_what_overflows_in_a_task_is_for_the_caller_to_say():
    out = np.ones(4)

    def task(i):
        out[i] = np.exp(np.array([1000.0]))[0]

    run(task, range(4), n_threads=2)
    assert np.all(np.isinf(out))


@pytest.mark.parametrize("n_threads", [1, 2, 3])
def test_a_sum_has_the_same_bits_whatever_the_threads(n_threads):
    values = np.random.default_rng(0).normal(size=1000) * 10.0 ** np.arange(-5, 5).repeat(100)
    parts = cut(1000, 37)
    assert sum(part.stop - part.start for part in parts) == 1000
    want = ordered_sum(lambda part: values[part].sum(), parts, 5, n_threads=1)
    assert ordered_sum(lambda part: values[part].sum(), parts, 5, n_threads=n_threads) == want
    assert want == pytest.approx(values.sum())
    assert ordered_sum(lambda part: values[part].sum(), [], 5) == 0.0
