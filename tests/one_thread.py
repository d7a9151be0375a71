"""Which BLAS threads of this process have run: the kernel of the system counts their time slices.

This finds every multi-threaded BLAS call, wherever it is made: a worker of OpenBLAS sleeps until a
call gives it a part of the work.
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

from mercer._runtime import _threads

TASKS = Path("/proc/self/task")
needs_counts = pytest.mark.skipif(
    not (TASKS / str(os.getpid()) / "schedstat").exists(),
    reason="this system does not count the time slices of threads",
)


def blas_threads():
    """Return the numbers of threads that the BLAS libraries have at the moment."""
    return {p["num_threads"] for p in threadpool_info() if p["user_api"] == "blas"}


@cache
def _workers():
    """Return the threads of the BLAS: those that take part in large products."""
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
    """Return the number of time slices that each of these threads has had."""
    found = {}
    for task in tasks:
        try:
            found[task] = int((TASKS / task / "schedstat").read_text().split()[2])
        except OSError:  # it has ended
            continue
    return found


def _wait_until_asleep(tasks):
    """Wait for the end of a product: its threads spin for a while before they sleep."""
    state = lambda t: (TASKS / t / "stat").read_text().rpartition(")")[2].split()[0]  # noqa: E731
    while any(state(task) == "R" for task in tasks):
        time.sleep(0.01)


@contextmanager
def watching(monkeypatch):
    """Yield a list that gets the names of the other threads that have run inside the block.

    The BLAS has two threads, and mercer finds two processors.
    """
    workers, ran = _workers(), []
    _wait_until_asleep(workers)

    def pool(count):
        ran.append("mercer's pool")
        return _pool(count)

    _pool = _threads._pool
    with monkeypatch.context() as patch, threadpool_limits(limits=2, user_api="blas"):
        patch.setattr(_threads, "thread_count", lambda: 2)
        patch.setattr(_threads, "_pool", pool)
        before = _counts(workers)
        yield ran
        after = _counts(workers)
        assert blas_threads() == {2}  # the limit has been lifted again
    ran += ["BLAS" for task in workers if after[task] > before[task]]
