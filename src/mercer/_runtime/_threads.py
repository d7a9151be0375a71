"""Threads over tiles, with the BLAS held to one thread each, so that the two never multiply."""

from __future__ import annotations

import inspect
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, ContextDecorator, contextmanager
from contextvars import ContextVar, copy_context
from functools import cache, wraps
from itertools import pairwise, product
from types import FunctionType
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from threadpoolctl import ThreadpoolController

from ._arguments import is_count

__all__ = [
    "ENTRY_WORK",
    "all_blas_threads",
    "blas_threads",
    "check_threads",
    "cut",
    "entry_point",
    "one_blas_thread",
    "ordered_sum",
    "quiet",
    "run",
    "slices",
    "thread_count",
    "threads",
]

T = TypeVar("T")
_inside = threading.local()
_most: ContextVar[int | None] = ContextVar("the threads that None stands for", default=None)
_PRODUCTS = {"__call__", "_matmat", "_matvec"}  # called by f(x) and, through SciPy, by K @ V
ENTRY_WORK = 20.0  # multiplications that take as long as one entry of K, roughly
_MIN_SHARED_WORK = 2e7  # multiplications: about 10 ms, several time slices of a busy machine
_SHARED = 1500  # rows from which a factorisation gains from a second BLAS thread


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


class _Library(NamedTuple):
    """A BLAS library of this process: how to get and to set its number of threads."""

    get: Callable[[], int]
    set: Callable[[int], Any]


@cache
def _blas() -> list[_Library]:
    """Return the BLAS libraries of this process, found by a search through all that is loaded."""
    import scipy.linalg  # noqa: F401 - SciPy has a separate BLAS, which must be loaded to be found

    found = ThreadpoolController().select(user_api="blas").lib_controllers
    return [
        _directly(blas) or _Library(blas.get_num_threads, blas.set_num_threads) for blas in found
    ]


def _directly(blas: Any) -> _Library | None:
    """Return the functions of OpenBLAS itself, if its number of threads is that of the process.

    They take a tenth of the time.  And later versions of threadpoolctl ignore all Python threads
    but the first one to set a number, because these would overwrite each other's numbers.  Here
    the holders are counted, so that any Python thread may set it.
    """
    if blas.internal_api != "openblas" or getattr(blas, "threading_layer", "openmp") == "openmp":
        return None
    for prefix, suffix in product(("", "scipy_"), ("", "64_", "_64")):
        names = [f"{prefix}openblas_{verb}_num_threads{suffix}" for verb in ("get", "set")]
        if all(hasattr(blas.dynlib, name) for name in names):
            return _Library(*(getattr(blas.dynlib, name) for name in names))
    return None


class _BlasThreads:
    """The number of BLAS threads of the process: 1 while any Python thread holds it.

    The first holder stores the current number and the last one restores it.  If each holder did
    that alone, two that overlap would leave the BLAS with one thread for good.  A number that the
    user has set (`OPENBLAS_NUM_THREADS`, threadpoolctl) is only ever lowered.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holders = 0
        self._before: list[tuple[_Library, int]] = []

    def hold(self) -> None:
        with self._lock:
            if self._holders == 0:
                self._before = [(blas, n) for blas in _blas() if (n := blas.get()) != 1]
                for blas, _ in self._before:
                    blas.set(1)
            self._holders += 1

    def release(self) -> None:
        with self._lock:
            self._holders -= 1
            if self._holders == 0:
                self._restore()

    def after_fork(self) -> None:
        """Drop the holders that a child process does not have: only the forking thread remains."""
        self._lock = threading.Lock()
        held, self._holders = self._holders, int(_limits.held)
        if held and not self._holders:
            self._restore()

    def _restore(self) -> None:
        for blas, n in self._before:
            blas.set(n)


class _Limits(threading.local):
    """The limits that one Python thread has entered, and whether it holds the BLAS.

    A strict limit outweighs a permission, which outweighs the limit of an entry point.
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


class _Limited(ContextDecorator):
    """A block or a decorated function with one kind of limit; it may be entered repeatedly."""

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def __enter__(self) -> None:
        _limits.change(self._kind, 1)

    def __exit__(self, *_: object) -> None:
        _limits.change(self._kind, -1)


one_blas_thread = _Limited("strict")  # results then do not depend on the number of BLAS threads
all_blas_threads = _Limited("permitted")  # except within `one_blas_thread`
_at_entry = _Limited("entry")


def entry_point(target: T) -> T:
    """Decorate a public function, or a class with public methods: the BLAS gets one thread.

    The methods of a class are those that it defines and those that it inherits within mercer.

    OpenBLAS gives each of its threads a part of every product and waits, spinning, for the last
    one.  If another process occupies a processor, that wait is the rest of a time slice, in each
    of the thousands of small products of a fit.  Large products are split into tiles for the
    threads of `run` instead, and large factorisations are permitted all BLAS threads again; see
    `blas_threads`.

    Calls between entry points cost a fraction of a microsecond: only the outermost one sets the
    limit.  A test calls every public function and method and fails if another thread has run.

    Examples
    --------
    >>> from mercer._runtime import entry_point
    >>> @entry_point
    ... def double(x):
    ...     return 2 * x
    >>> double(4)
    8
    """
    if not isinstance(target, type):
        return cast(T, _wrapped(target) or target)
    for cls in target.__mro__:
        if cls.__module__.startswith("mercer."):
            for name, value in list(vars(cls).items()):
                if name in _PRODUCTS or not name.startswith("_"):
                    wrapped = _wrapped(value)
                    if wrapped is not None:
                        setattr(cls, name, wrapped)
    return target


def _wrapped(value: Any) -> Any:
    """Return a function or class method as an entry point; None for anything else."""
    if isinstance(value, classmethod | staticmethod):
        inner = _wrapped(value.__func__)
        return None if inner is None else type(value)(inner)
    plain = isinstance(value, FunctionType) and not inspect.isgeneratorfunction(value)
    if (
        not plain
        or hasattr(value, "__entry_point__")
        or getattr(value, "__isabstractmethod__", False)
    ):
        return None

    @wraps(value)
    def entered(*args: Any, **params: Any) -> Any:
        if _limits.held:
            return value(*args, **params)
        with _at_entry:
            return value(*args, **params)

    entered.__entry_point__ = True  # type: ignore[attr-defined]
    return entered


def blas_threads(n: int) -> AbstractContextManager[None]:
    """Permit all BLAS threads for one call on a matrix with n rows if n is large, else one.

    Only for single calls of LAPACK and the BLAS: these take as long as many time slices if n is
    large.  Inside of `one_blas_thread` nothing is permitted.
    """
    return _at_entry if n < _SHARED else all_blas_threads


# What overflows is found, and said, afterwards.  A decorator, as threads do not inherit it.
quiet = np.errstate(over="ignore", invalid="ignore")


def run(
    task: Callable[[Any], Any],
    jobs: Iterable[Any],
    n_threads: int | None = None,
    work: float = np.inf,
) -> None:
    """Call task(job) for every job, in threads; a long task is a generator that yields at times.

    `work` is an estimate of all multiplications, for which an entry of K counts as `ENTRY_WORK`.
    If it is small, the calling thread does all jobs itself: on a busy machine it would wait longer
    for a second thread to get a processor.

    Jobs must write to separate places: what they compute then does not depend on the number of
    threads.  An exception, or Ctrl-C, ends the others where they yield next, and is raised here.
    """
    jobs = list(jobs)
    workers = min(check_threads(n_threads), len(jobs))
    if work < _MIN_SHARED_WORK:
        workers = 1
    stop = threading.Event()

    @quiet
    def do(job: Any) -> None:
        done = task(job)
        if isinstance(done, Iterator):
            for _ in done:
                if stop.is_set():
                    return

    if getattr(_inside, "pool", False):  # never a pool within a pool
        for job in jobs:
            do(job)
        return
    if workers <= 1:
        with one_blas_thread:  # tiles are too small to share
            for job in jobs:
                do(job)
        return

    left = iter(jobs)  # shared: each takes the next

    def share() -> None:
        _inside.pool = True
        try:
            with one_blas_thread:
                for job in left:
                    if stop.is_set():
                        return
                    do(job)
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
    os.register_at_fork(after_in_child=_blas_threads.after_fork)


def slices(n: int, size: int) -> list[slice]:
    """Return n rows in strips of `size`, of which the last may be shorter."""
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def cut(n: int, parts: int) -> list[slice]:
    """Return n rows in so many parts, as even as can be; the number of threads has no say."""
    ends = np.linspace(0, n, parts + 1).astype(int)
    return [slice(int(a), int(b)) for a, b in pairwise(ends)]


def ordered_sum(
    term: Callable[[Any], Any],
    parts: Sequence[Any],
    groups: int,
    n_threads: int | None = None,
    work: float = np.inf,
) -> Any:
    """Return the sum of term(part) over all parts, in an order that no thread changes.

    Neighbouring parts form `groups` groups.  Each group is summed separately, then their sums.
    For `work` see `run`.
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

    run(group, range(len(sums)), n_threads, work)
    return sum(sums[1:], sums[0]) if sums else 0.0
