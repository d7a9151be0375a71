"""Detect which BLAS threads of this process have run, by the time slices that Linux counts.

This finds every multi-threaded BLAS call, because a worker thread of OpenBLAS sleeps until a call
gives it a part of the work.
"""

import os
import time
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import scipy.linalg
from threadpoolctl import threadpool_info, threadpool_limits

from mercer._core import _resources, _threads

TASKS = Path("/proc/self/task")
needs_counts = pytest.mark.skipif(
    not (TASKS / str(os.getpid()) / "schedstat").exists(),
    reason="this system does not count the time slices of threads",
)


def blas_threads():
    """Return the current numbers of threads of the BLAS libraries."""
    return {p["num_threads"] for p in threadpool_info() if p["user_api"] == "blas"}


@cache
def _workers():
    """Return the worker threads of the BLAS: those that run during large products."""
    A = np.ones((700, 700))
    with threadpool_limits(limits=2, user_api="blas"):
        before = _counts(os.listdir(TASKS))
        for _ in range(5):
            A @ A
            scipy.linalg.blas.dgemm(1.0, A, A)
        after = _counts(os.listdir(TASKS))
    tasks = {t for t in after if after[t] > before.get(t, 0)} - {str(os.getpid())}
    _wait_until_asleep(tasks)
    return frozenset(tasks)


def _counts(tasks):
    """Return the number of time slices of each of these threads."""
    found = {}
    for task in tasks:
        try:
            found[task] = int((TASKS / task / "schedstat").read_text().split()[2])
        except OSError:  # the thread has ended
            continue
    return found


def _wait_until_asleep(tasks):
    """Wait until the threads sleep; they spin for a while after a product."""
    state = lambda t: (TASKS / t / "stat").read_text().rpartition(")")[2].split()[0]  # noqa: E731
    while any(state(task) == "R" for task in tasks):
        time.sleep(0.01)


@contextmanager
def watching(monkeypatch):
    """Yield a list, which receives the names of other threads that ran inside the block.

    Inside the block, the BLAS has two threads, and mercer sees two processors.
    """
    workers, ran = _workers(), []
    _wait_until_asleep(workers)

    def pool(count):
        ran.append("mercer's pool")
        return _pool(count)

    _pool = _threads._pool
    with monkeypatch.context() as patch, threadpool_limits(limits=2, user_api="blas"):
        patch.setattr(_resources, "thread_count", lambda: 2)
        patch.setattr(_threads, "_pool", pool)
        before = _counts(workers)
        yield ran
        after = _counts(workers)
        assert blas_threads() == {2}  # the limit has been removed again
    ran += ["BLAS" for task in workers if after[task] > before[task]]
