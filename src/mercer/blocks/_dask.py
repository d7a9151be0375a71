"""Dask collections as blocks: each task is one block, or one merge of the tree.

No client is asked for: graphs run wherever Dask runs them, on threads or on a cluster.  Nothing is
pinned or scattered, and no task changes what it is given, so that a lost worker costs its tasks
and nothing else.  A task runs in one thread, since a worker runs as many tasks as it has threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from time import monotonic, sleep
from typing import Any, Self

import numpy as np

from .._errors import MemoryBudgetError
from .._runtime import check_threads, in_words, one_blas_thread, threads
from ._blocks import Blocks, checked, texts
from ._tree import tree

__all__ = ["DaskBlocks", "is_dask"]

OBJECT = np.dtype(object)
_PATIENCE = 30.0  # seconds that a cluster may be without workers
_LARGE = "1 TiB"  # feature maps are part of the graph on purpose, and no reason to be warned


def is_dask(X: Any) -> bool:
    """Tell whether X is a collection of Dask, without importing it."""
    return type(X).__module__.partition(".")[0] == "dask" and hasattr(X, "__dask_graph__")


@dataclass(frozen=True, eq=False, repr=False)
class DaskBlocks(Blocks):
    """The chunks of a Dask array, or the partitions of a Dask data frame, as they are."""

    sizes: tuple[int, ...]
    width: int | None
    collection: Any
    names: list[str] | None = None
    y: Any = None
    weights: Any = None
    _sent: dict[str, Any] = field(default_factory=dict)  # what workers were sent, and where it is

    @classmethod
    def from_dask(cls, X: Any, what: str = "X") -> Self:
        """Return an array or a data frame in its own blocks; partitions are counted in a pass."""
        anything = type(X).__module__ == "dask.delayed"  # it has whatever is asked for
        if not anything and hasattr(X, "chunks"):
            return cls(_chunk_sizes(X, what), X.shape[1] if X.ndim == 2 else None, X)
        if anything or not (hasattr(X, "npartitions") and hasattr(X, "ndim")):
            raise TypeError(
                f"{what} is a {type(X).__name__} of Dask; blocks come from its arrays and data "
                f"frames"
            )
        from dask.delayed import delayed

        parts = [delayed(len)(part) for part in X.to_delayed()]
        sizes = compute(parts)
        _refuse_empty(sizes, what)
        if X.ndim == 1:
            return cls(tuple(sizes), None, X)
        return cls(tuple(sizes), len(X.columns), X, texts(X))

    @property
    def dtype(self) -> np.dtype:
        kinds = getattr(self.collection, "dtypes", None)
        if kinds is None:
            return np.dtype(self.collection.dtype)
        return np.result_type(*np.ravel(kinds)) if all(map(_is_number, np.ravel(kinds))) else OBJECT

    @property
    def _delayed(self) -> list[Any]:
        return list(np.ravel(np.asarray(self.collection.to_delayed(), dtype=object)))

    def map(self, f: Callable[..., Any], *shared: Any) -> list[Any]:
        return compute(list(self._answers(f, shared)))

    def reduce(
        self, f: Callable[..., Any], merge: Callable[[Any, Any], Any], *shared: Any, say: Any = None
    ) -> Any:
        from dask.delayed import delayed

        merged = delayed(_alone, pure=False)
        plan = tree(self._answers(f, shared), lambda a, b: merged(merge, a, b))
        if say is not None:
            say(f"a pass over {len(self.sizes)} blocks, by Dask")
        return compute([plan])[0]

    @property
    def cores(self) -> int:
        client = _client()
        return check_threads(None) if client is None else sum(client.nthreads().values())

    def spread(
        self,
        f: Callable[..., Any],
        merge: Callable[[Any, Any], Any],
        kept: Any,
        given: Any,
        jobs: Sequence[Any],
    ) -> Any:
        from dask.base import persist
        from dask.delayed import delayed

        if self._sent.get("kept") is not kept[1]:
            require_room(kept[1], given)
            (there,) = persist(delayed(_Shared(kept), pure=False, traverse=False))
            self._sent.update(kept=kept[1], there=there)
        common = delayed(_Shared(given), pure=False, traverse=False)
        task, merged = delayed(_job, pure=False), delayed(_alone, pure=False)
        tasks = (task(f, self._sent["there"], common, job) for job in jobs)
        return compute([tree(tasks, lambda a, b: merged(merge, a, b))])[0]

    def _answers(
        self, f: Callable[..., Any], shared: Sequence[Any], say: Any = None
    ) -> Iterator[Any]:
        """Yield the tasks."""
        from dask.delayed import delayed

        task = delayed(_task, pure=False)
        common = delayed(_Shared(tuple(shared)), pure=False, traverse=False)
        beside = [self._beside(part) for part in (self.y, self.weights)]
        every = zip(self.starts, self.sizes, self._delayed, *beside, strict=True)
        for place, (start, size, X, y, weights) in enumerate(every):
            yield task(f, common, place, start, X, y, weights, self.width, size)

    def _beside(self, part: Any) -> list[Any]:
        if isinstance(part, DaskBlocks):
            return part._delayed
        if isinstance(part, Blocks):
            raise ValueError(
                f"the points are a Dask collection, but what is beside them is {part!r}, which "
                f"this process reads; give a Dask collection, or an array"
            )
        ends = zip(self.starts, self.sizes, strict=True)
        return [None if part is None else part[start : start + size] for start, size in ends]

    def _with(self, y: Any, weights: Any) -> Self:
        return replace(self, y=y, weights=weights)

    def mapped(self, f: Callable[[np.ndarray], Any], like: np.ndarray) -> Any:
        """Return a lazy Dask array with the same chunks."""
        import dask.array as da
        from dask.delayed import delayed

        common = delayed(_Shared((f,)), pure=False, traverse=False)
        task = delayed(_mapped, pure=False)
        # the result is optimized when it is computed; until then it holds on to what is persisted,
        # which parts of an optimized array do not
        lazy = {"optimize_graph": False} if hasattr(self.collection, "chunks") else {}
        chunks = np.ravel(np.asarray(self.collection.to_delayed(**lazy), dtype=object))
        every = zip(self.starts, self.sizes, chunks, strict=True)
        parts = [
            da.from_delayed(
                task(common, place, start, X, self.width, size),
                (size, *like.shape[1:]),
                dtype=like.dtype,
            )
            for place, (start, size, X) in enumerate(every)
        ]
        return da.concatenate(parts)


def _is_number(kind: Any) -> bool:
    return isinstance(kind, np.dtype) and kind.kind in "biuf"


class _Shared:
    """What all tasks of a pass are given, in the graph once; Dask does not look into it."""

    def __init__(self, parts: tuple[Any, ...]) -> None:
        self.parts = parts


def _task(f: Any, common: _Shared, place: int, start: int, X: Any, y: Any, w: Any, *at: Any) -> Any:
    return _alone(_checked_call, f, common.parts, place, start, X, y, w, *at)


def _job(f: Any, kept: _Shared, given: _Shared, job: Any) -> Any:
    return _alone(f, kept.parts, given.parts, job)


def _checked_call(
    f: Any, shared: Any, place: int, start: int, X: Any, y: Any, w: Any, width: Any, size: int
) -> Any:
    return f(checked(place, start, X, y, w, width, size), *shared)


def _mapped(common: _Shared, place: int, start: int, X: Any, width: Any, size: int) -> Any:
    return _alone(common.parts[0], checked(place, start, X, None, None, width, size).X)


def _alone(f: Callable[..., Any], *args: Any) -> Any:
    """Return f(*args), in one thread."""
    with threads(1), one_blas_thread:
        return f(*args)


# ---------------------------------------------------------------------- running, and what fails


def compute(tasks: list[Any]) -> list[Any]:
    """Run tasks where Dask runs them, and say in words what a cluster may lack.

    Ctrl-C releases the tasks, with which Dask cancels them.
    """
    import dask
    from dask.base import compute as run_tasks

    _require_workers()
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": _LARGE}):
        return list(run_tasks(*tasks))


def require_room(*parts: Any) -> None:
    """Refuse to send to each worker what would take half of its memory."""
    needed = sum(size_of(part) for part in parts)
    limit = _least_memory()
    if limit and 2 * needed > limit:
        raise MemoryBudgetError(
            f"each worker would hold {in_words(needed)} of points and vectors, and has "
            f"{in_words(limit)}: too large to broadcast. Take landmarks (solver or "
            f"eigen_solver='nystroem'), or workers with more memory"
        )


def size_of(part: Any) -> int:
    """Return the bytes of the arrays in something, as far as attributes and tuples tell."""
    if isinstance(part, np.ndarray):
        return int(part.nbytes)
    if isinstance(part, (tuple, list)):
        return sum(map(size_of, part))
    return sum(map(size_of, getattr(part, "__dict__", {}).values()))


def _least_memory() -> int:
    """Return the memory of the smallest worker of a cluster; 0 if it is not known."""
    client = _client()
    if client is None:
        return 0
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    return int(min((worker.get("memory_limit") or 0 for worker in workers), default=0))


def _client() -> Any:
    """Return who runs tasks on a cluster, if anybody does."""
    from dask.base import get_scheduler

    client: Any = getattr(get_scheduler(), "__self__", None)
    return client if hasattr(client, "scheduler_info") else None


_able: set[str] = set()  # addresses of workers that can import this package


def _require_workers() -> None:
    """Refuse a cluster that would wait for ever: without workers, or with some that lack mercer.

    One that starts workers when there is work may have none.
    """
    if (client := _client()) is None:
        return
    adaptive = getattr(getattr(client, "cluster", None), "_adaptive", None)
    end = monotonic() + _PATIENCE
    # The last worker may just have been lost, and a nanny be starting another.
    while not (workers := set(client.nthreads())) and adaptive is None and monotonic() < end:
        sleep(0.1)
    if adaptive is None and not workers:
        raise RuntimeError(
            "the Dask cluster of this process has no workers, and the fit would wait for ever; "
            "start some (cluster.scale(2)), or close the client to work in threads"
        )
    if not (new := sorted(workers - _able)):
        return
    # a function that every Python has; a worker that is lost meanwhile returns an error
    found = client.run(find_spec, "mercer", workers=new, on_error="return")
    if lacking := [worker for worker, spec in found.items() if spec is None]:
        raise RuntimeError(
            f"{len(lacking)} of {len(workers)} workers cannot import mercer, {lacking[0]} for one; "
            f"install mercer where they run, in the version of this process"
        )
    _able.update(found)


def _chunk_sizes(X: Any, what: str) -> tuple[int, ...]:
    if X.ndim not in (1, 2):
        raise ValueError(f"{what} has {X.ndim} axes; rows of numbers have two, targets one")
    sizes, *across = X.chunks
    if any(np.isnan(size) for size in (*sizes, *(s for axis in across for s in axis))):
        raise ValueError(
            f"the chunks of {what} have unknown sizes, as after a filter or from a data frame; "
            f"call {what}.compute_chunk_sizes() first"
        )
    if across and len(across[0]) > 1:
        raise ValueError(
            f"the columns of {what} are in {len(across[0])} chunks, of {across[0]}, and a row must "
            f"be in one; rechunk it: {what}.rechunk({{1: -1}})"
        )
    _refuse_empty(sizes, what)
    return tuple(int(size) for size in sizes)


def _refuse_empty(sizes: Sequence[int], what: str) -> None:
    if 0 in sizes or not len(sizes):
        where = f"block {list(sizes).index(0)} of {len(sizes)}" if len(sizes) else "it"
        raise ValueError(
            f"{where} of {what} has no rows; the usual cause is a filter: repartition or rechunk "
            f"{what} so that each block has some"
        )
