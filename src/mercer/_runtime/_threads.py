"""Threads over tiles, with the BLAS held to one thread each, so that the two never multiply."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, ContextDecorator, contextmanager, nullcontext
from contextvars import ContextVar, copy_context
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

from ._arguments import is_count

__all__ = [
    "blas_threads",
    "check_threads",
    "cut",
    "one_blas_thread",
    "ordered_sum",
    "quiet",
    "run",
    "slices",
    "thread_count",
    "threads",
]

_inside = threading.local()
_most: ContextVar[int | None] = ContextVar("the threads that None stands for", default=None)
_SHARED = 1500  # rows from which a matrix is worth a second thread of the BLAS


def thread_count() -> int:
    """Return the number of processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def check_threads(n_threads: Any) -> int:
    """Return the number of threads to use; None stands for all processors, or see `threads`."""
    if n_threads is None:
        n_threads = _most.get()
    if n_threads is None:
        return thread_count()
    if not is_count(n_threads):
        raise ValueError(f"n_threads must be a positive integer or None, got {n_threads!r}")
    return int(n_threads)


@contextmanager
def threads(n_threads: int | None) -> Iterator[None]:
    """Let None stand for so many threads inside of the block, for this caller alone.

    None itself changes nothing: who runs inside of another keeps to the other's number.

    Examples
    --------
    >>> from mercer._runtime import check_threads, threads
    >>> with threads(3):
    ...     check_threads(None), check_threads(2)
    (3, 2)
    """
    token = _most.set(_most.get() if n_threads is None else n_threads)
    try:
        yield
    finally:
        _most.reset(token)


@cache
def _blas() -> list[Any]:
    """Return the BLAS libraries of this process; it takes a search through all that is loaded."""
    import scipy.linalg  # noqa: F401 - SciPy brings a BLAS of its own: it must be loaded to be seen

    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


class _OneBlasThread(ContextDecorator):
    """Hold the BLAS to one thread while anybody is inside, a block or a decorated function.

    The first to enter remembers the number of threads and the last to leave restores it.  If each
    caller did so for itself, two that overlap would leave the BLAS with one thread for good.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._before: list[tuple[Any, int]] = []

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._before = [(blas, n) for blas in _blas() if (n := blas.num_threads) != 1]
                for blas, _ in self._before:
                    blas.set_num_threads(1)
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                for blas, n in self._before:
                    blas.set_num_threads(n)


one_blas_thread = _OneBlasThread()


def blas_threads(n: int) -> AbstractContextManager[None]:
    """Hold the BLAS to one thread if matrices have n rows, and these are few.

    OpenBLAS gives each of its threads a part, and waits, spinning, for the last one.  Where
    another process has a processor, that is the end of a time slice, for every one of the many
    small steps of a factorisation.
    """
    return one_blas_thread if n < _SHARED else nullcontext()


# What overflows is found, and said, afterwards.  A decorator, as threads do not inherit it.
quiet = np.errstate(over="ignore", invalid="ignore")


def run(task: Callable[[Any], Any], jobs: Iterable[Any], n_threads: int | None = None) -> None:
    """Call task(job) for every job, in threads; a long task is a generator that yields at times.

    Jobs must write to separate places: what they compute then does not depend on the number of
    threads.  An exception, or Ctrl-C, ends the others where they yield next, and is raised here.
    """
    jobs = list(jobs)
    workers = min(check_threads(n_threads), len(jobs))
    stop = threading.Event()

    @quiet
    def work(job: Any) -> None:
        done = task(job)
        if isinstance(done, Iterator):
            for _ in done:
                if stop.is_set():
                    return

    if getattr(_inside, "pool", False):  # never a pool within a pool
        for job in jobs:
            work(job)
        return
    if workers <= 1:
        with one_blas_thread:  # tiles are too small to share
            for job in jobs:
                work(job)
        return

    left = iter(jobs)  # shared: each takes the next

    def share() -> None:
        _inside.pool = True
        try:
            for job in left:
                if stop.is_set():
                    return
                work(job)
        except BaseException:
            stop.set()
            raise
        finally:
            _inside.pool = False

    # what holds here (a budget, who is told what is compiled) holds in the threads as well
    with one_blas_thread:
        others = [_pool(workers - 1).submit(copy_context().run, share) for _ in range(workers - 1)]
        try:
            share()
        except BaseException:
            stop.set()
            raise
        finally:
            wait([other for other in others if not other.cancel()])
        for other in others:
            if not other.cancelled():
                other.result()


@cache
def _pool(workers: int) -> ThreadPoolExecutor:
    """Return so many threads that wait for work: to start one takes longer than a small task.

    Callers share them.  Each works on its own jobs, too, so that no one waits for the others.
    """
    return ThreadPoolExecutor(workers, thread_name_prefix="mercer")


if hasattr(os, "register_at_fork"):  # a child has none of the threads of its parent
    os.register_at_fork(after_in_child=_pool.cache_clear)


def slices(n: int, size: int) -> list[slice]:
    """Return n rows in strips of `size`, of which the last may be shorter."""
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def cut(n: int, parts: int) -> list[slice]:
    """Return n rows in so many parts, as even as can be; the number of threads has no say."""
    ends = np.linspace(0, n, parts + 1).astype(int)
    return [slice(int(a), int(b)) for a, b in pairwise(ends)]


def ordered_sum(
    term: Callable[[Any], Any], parts: Sequence[Any], groups: int, n_threads: int | None = None
) -> Any:
    """Return the sum of term(part) over all parts, in an order that no thread changes.

    Each of so many groups of neighbours is added up by itself, then their sums.
    """
    if len(parts) == 1:  # few points, whose sums may be taken ten thousand times in a fit
        with one_blas_thread:
            return 0.0 + quiet(term)(parts[0])
    members = cut(len(parts), min(groups, len(parts)))
    sums: list[Any] = [0.0] * len(members)

    def group(g: int) -> Iterator[None]:
        for part in parts[members[g]]:
            sums[g] = sums[g] + term(part)
            yield

    run(group, range(len(sums)), n_threads)
    return sum(sums[1:], sums[0]) if sums else 0.0
