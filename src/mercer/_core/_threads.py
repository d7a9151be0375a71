"""Run loops over tiles in parallel Python threads, and control the number of BLAS threads.

In each Python thread, the BLAS uses one thread.  Otherwise there would be more threads than
processors.

The number of BLAS threads is a setting of the loaded library, so that it is the same for the whole
process and cannot be passed as an argument.  This module is the only one that changes it.
"""

from __future__ import annotations

import inspect
import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, ContextDecorator
from contextvars import copy_context
from functools import cache, wraps
from itertools import pairwise, product
from types import FunctionType
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from threadpoolctl import ThreadpoolController

from ._platform import has_threads
from ._resources import check_threads, running_resources

T = TypeVar("T")
Job = TypeVar("Job")
_pool_state = threading.local()  # attribute `in_pool`: True in a thread that executes jobs
# Methods that `entry_point` wraps although they are private: f(x) and K @ V call them.
_ENTRY_METHODS = {"__call__", "_matmat", "_matvec"}
ENTRY_WORK = 20.0  # approximate cost of one entry of K, in multiplications
# For fewer multiplications than this, `run_in_threads` uses one thread.  This many multiplications
# take about 10 ms; on a busy computer, a second thread might wait longer for a processor.
_MIN_PARALLEL_WORK = 2e7
_MIN_BLAS_ROWS = 1500  # for matrices of at least this size, more BLAS threads are faster


class _BlasLibrary(NamedTuple):
    """Functions that get and set the number of threads of one loaded BLAS library."""

    get: Callable[[], int]
    set: Callable[[int], Any]


@cache
def _blas() -> list[_BlasLibrary]:
    """Return all BLAS libraries that are loaded in this process."""
    import scipy.linalg  # noqa: F401 - loads SciPy's own BLAS, so that it is found, too

    libraries = ThreadpoolController().select(user_api="blas").lib_controllers
    return [
        _openblas_functions(blas) or _BlasLibrary(blas.get_num_threads, blas.set_num_threads)
        for blas in libraries
    ]


def _openblas_functions(blas: Any) -> _BlasLibrary | None:
    """Return OpenBLAS's own functions if its number of threads is global to the process, or None.

    They take a tenth of the time of threadpoolctl's functions.  Besides, recent versions of
    threadpoolctl let only the first Python thread set the number, because several threads would
    overwrite each other's value.  Here any thread may set it, because `_BlasThreads` counts the
    threads that do.
    """
    if blas.internal_api != "openblas" or getattr(blas, "threading_layer", "openmp") == "openmp":
        return None
    for prefix, suffix in product(("", "scipy_"), ("", "64_", "_64")):
        names = [f"{prefix}openblas_{verb}_num_threads{suffix}" for verb in ("get", "set")]
        if all(hasattr(blas.dynlib, name) for name in names):
            return _BlasLibrary(*(getattr(blas.dynlib, name) for name in names))
    return None


class _BlasThreads:
    """Limit the BLAS to one thread while at least one Python thread (a holder) requests it.

    The first holder stores the current number of BLAS threads, and the last holder restores it.  If
    every holder did both, two overlapping holders could leave the BLAS limited permanently.  A
    number set by the user (`OPENBLAS_NUM_THREADS`, threadpoolctl) is never increased.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holders = 0
        self._stored: list[tuple[_BlasLibrary, int]] = []

    def hold(self) -> None:
        with self._lock:
            if self._holders == 0:
                self._stored = [(blas, n) for blas in _blas() if (n := blas.get()) != 1]
                for blas, _ in self._stored:
                    blas.set(1)
            self._holders += 1

    def release(self) -> None:
        with self._lock:
            self._holders -= 1
            if self._holders == 0:
                self._restore()

    def after_fork(self) -> None:
        """Correct the number of holders in a forked process, where only one thread exists."""
        self._lock = threading.Lock()
        before, self._holders = self._holders, int(_limits.held)
        if before and not self._holders:
            self._restore()

    def _restore(self) -> None:
        for blas, n in self._stored:
            blas.set(n)


class _Limits(threading.local):
    """Number of active `with` blocks of each kind of BLAS limit in the current Python thread.

    `strict` (`one_blas_thread`) takes precedence over `permitted` (`all_blas_threads`), which takes
    precedence over `entry` (`entry_point`).  `held` is True while this thread limits the BLAS to
    one thread.
    """

    strict = entry = permitted = 0
    held = False

    def change(self, name: str, by: int) -> None:
        setattr(self, name, getattr(self, name) + by)
        hold = self.strict > 0 or (self.entry > 0 and self.permitted == 0)
        if hold != self.held:
            if hold:
                _blas_threads.hold()
            else:
                _blas_threads.release()
            self.held = hold


_limits = _Limits()
_blas_threads = _BlasThreads()


class _BlasLimit(ContextDecorator):
    """A reentrant context manager and decorator that applies one kind of limit of `_Limits`."""

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def __enter__(self) -> None:
        _limits.change(self._kind, 1)

    def __exit__(self, *_: object) -> None:
        _limits.change(self._kind, -1)


# Inside a `with one_blas_thread` block, results do not depend on the number of BLAS threads.
one_blas_thread = _BlasLimit("strict")
all_blas_threads = _BlasLimit("permitted")  # has no effect inside a `with one_blas_thread` block
_entry_limit = _BlasLimit("entry")


def entry_point(target: T) -> T:
    """Decorate a public function or class so that the BLAS uses one thread during its calls.

    For a class, all public methods are wrapped: those that it defines and those that it inherits
    from classes of mercer.

    OpenBLAS splits every product between its threads and then waits for the last one.  If another
    process occupies a processor, this takes up to a time slice for each of the thousands of small
    products of a fit.  Therefore large products are split into tiles for the threads of
    `run_in_threads` instead, and only large factorisations use all BLAS threads (`blas_threads`).

    A call of one entry point from another costs less than a microsecond, because only the outermost
    one sets the limit.  A test calls every public function and method, and fails if a call uses
    several BLAS threads.

    Examples
    --------
    >>> from mercer._core import entry_point
    >>> @entry_point
    ... def double(x):
    ...     return 2 * x
    >>> double(4)
    8
    """
    if not isinstance(target, type):
        return cast(T, _as_entry_point(target) or target)
    for cls in target.__mro__:
        if cls.__module__.startswith("mercer."):
            for name, value in list(vars(cls).items()):
                if name in _ENTRY_METHODS or not name.startswith("_"):
                    wrapped = _as_entry_point(value)
                    if wrapped is not None:
                        setattr(cls, name, wrapped)
    return target


def _as_entry_point(value: Any) -> Any:
    """Wrap a function, class method or static method as an entry point; otherwise return None."""
    if isinstance(value, classmethod | staticmethod):
        inner = _as_entry_point(value.__func__)
        return None if inner is None else type(value)(inner)
    is_plain = isinstance(value, FunctionType) and not inspect.isgeneratorfunction(value)
    skipped = hasattr(value, "__entry_point__") or getattr(value, "__isabstractmethod__", False)
    if not is_plain or skipped:
        return None

    @wraps(value)
    def limited(*args: Any, **params: Any) -> Any:
        if _limits.held:
            return value(*args, **params)
        with _entry_limit:
            return value(*args, **params)

    limited.__entry_point__ = True  # type: ignore[attr-defined]
    return limited


def blas_threads(n: int) -> AbstractContextManager[None]:
    """Return a context manager that permits all BLAS threads if n is large, and one otherwise.

    Use it for a single call of LAPACK or the BLAS on a matrix with n rows.  Inside
    `one_blas_thread` it has no effect.
    """
    return _entry_limit if n < _MIN_BLAS_ROWS else all_blas_threads


# A context manager and decorator that suppresses NumPy's warnings; results are checked for inf and
# nan afterwards.  Use it as a decorator of functions that run in threads, because threads do not
# inherit `errstate`.
ignore_overflow = np.errstate(over="ignore", invalid="ignore")


def run_in_threads(
    task: Callable[[Job], object],
    jobs: Iterable[Job],
    n_threads: int | None = None,
    work: float = np.inf,
) -> None:
    """Call task(job) for every job, in parallel threads.

    Parameters
    ----------
    task : callable
        Function that is called with one job.  A long task should be a generator function that
        yields from time to time, so that it can be interrupted at these points.
    jobs : iterable
        Arguments of `task`.  Jobs must write to disjoint memory, so that the result does not depend
        on the number of threads.
    n_threads : int, optional
        Number of threads; see `check_threads`.
    work : float, default=inf
        Estimated number of multiplications of all jobs; an entry of K counts as `ENTRY_WORK`.  If
        it is small, the calling thread executes all jobs, because waiting for a second thread could
        take longer.

    Raises
    ------
    BaseException
        The exception of a job or of `Resources.checkpoint`, or KeyboardInterrupt.  The other jobs
        stop when they next yield.
    """
    jobs = list(jobs)
    workers = min(check_threads(n_threads), len(jobs))
    if work < _MIN_PARALLEL_WORK or not has_threads():
        workers = 1
    stop, checkpoint = threading.Event(), running_resources().checkpoint

    @ignore_overflow
    def run_job(job: Job) -> None:
        if checkpoint is not None:
            checkpoint()
        steps = task(job)
        if isinstance(steps, Iterator):
            for _ in steps:
                if checkpoint is not None:
                    checkpoint()
                if stop.is_set():
                    return

    if getattr(_pool_state, "in_pool", False):  # a nested call starts no more threads
        for job in jobs:
            run_job(job)
        return
    if workers <= 1:
        with one_blas_thread:  # a tile is too small for several BLAS threads
            for job in jobs:
                run_job(job)
        return

    # Each thread takes the next job.  Without a GIL, an iterator could yield a job to two threads.
    remaining = deque(jobs)

    def run_remaining() -> None:
        _pool_state.in_pool = True
        try:
            with one_blas_thread:
                while not stop.is_set():
                    try:
                        job = remaining.popleft()
                    except IndexError:  # all jobs have been taken
                        return
                    run_job(job)
        except BaseException:
            stop.set()
            raise
        finally:
            _pool_state.in_pool = False

    # The threads inherit the context of the caller: the resources of the running fit.
    with one_blas_thread:
        pool = _pool(workers - 1)
        others = [pool.submit(copy_context().run, run_remaining) for _ in range(workers - 1)]
        try:
            run_remaining()
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
    """Return a pool of `workers` threads, which are kept alive and shared by all callers.

    Starting a thread takes longer than a small task.  The thread of a caller also executes jobs, so
    that it makes progress even while the pool is busy.
    """
    return ThreadPoolExecutor(workers, thread_name_prefix="mercer")


# A forked child process does not have its parent's threads.
if hasattr(os, "register_at_fork"):  # pragma: no branch (Windows has no fork)
    os.register_at_fork(after_in_child=_pool.cache_clear)
    os.register_at_fork(after_in_child=_blas_threads.after_fork)


def slices(n: int, size: int) -> list[slice]:
    """Split n rows into slices of length `size`; the last one may be shorter."""
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def split_evenly(n: int, parts: int) -> list[slice]:
    """Split n rows into `parts` slices of nearly equal length.

    They do not depend on the number of threads, so that results do not depend on it either.
    """
    ends = np.linspace(0, n, parts + 1).astype(int)
    return [slice(int(a), int(b)) for a, b in pairwise(ends)]


def map_in_threads(
    task: Callable[[Job], Any],
    jobs: Iterable[Job],
    n_threads: int | None = None,
    work: float = np.inf,
) -> list[Any]:
    """Return the list of task(job) for all jobs, computed in parallel threads.

    The parameters are those of `run_in_threads`; the result of a generator function is the value
    that it returns.

    Examples
    --------
    >>> from mercer._core import map_in_threads
    >>> map_in_threads(abs, [-1, 2, -3])
    [1, 2, 3]
    """
    jobs = list(jobs)
    results: list[Any] = [None] * len(jobs)

    def run(i: int) -> Iterator[None]:
        result = task(jobs[i])
        results[i] = (yield from result) if isinstance(result, Generator) else result

    run_in_threads(run, range(len(jobs)), n_threads, work)
    return results


def ordered_sum(
    term: Callable[[Job], Any],
    parts: Sequence[Job],
    groups: int,
    n_threads: int | None = None,
    work: float = np.inf,
) -> Any:
    """Return the sum of term(part) over all parts, independent of the number of threads.

    Consecutive parts form `groups` groups.  One thread sums each group, and the sums of the groups
    are added in order.  For `n_threads` and `work` see `run_in_threads`.
    """
    if len(parts) == 1:  # avoid overhead: a fit may need 10,000 such sums
        with one_blas_thread:
            return 0.0 + ignore_overflow(term)(parts[0])

    def group(members: slice) -> Generator[None, None, Any]:
        total: Any = 0.0
        for part in parts[members]:
            total = total + term(part)
            yield
        return total

    members = split_evenly(len(parts), min(groups, len(parts)))
    sums = map_in_threads(group, members, n_threads, work)
    return sum(sums[1:], sums[0]) if sums else 0.0
