"""Blocks of Dask arrays and data frames: one task per block, and one per merge.

No Dask client is required: task graphs run on the scheduler that Dask selects, threads or a
cluster.  Tasks are not bound to workers and do not modify their inputs.  Therefore, if a worker is
lost, only its own tasks are repeated.  Each task uses one thread, because a worker runs as many
tasks as it has threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from time import monotonic, sleep
from typing import Any, Self

import numpy as np

from .._core import (
    MemoryBudgetError,
    Points,
    check_threads,
    format_bytes,
    one_blas_thread,
    resource_scope,
)
from ._blocks import (
    BlockPass,
    BlockRows,
    Blocks,
    Result,
    RowValues,
    SpreadTask,
    string_column_names,
    tree_reduce,
    validate_block,
)

_OBJECT_DTYPE = np.dtype(object)
_WORKER_TIMEOUT = 30.0  # seconds to wait for a worker, which Dask may be restarting
# Dask warns of larger task graphs; ours contain feature maps, so the warning is disabled.
_GRAPH_WARNING_SIZE = "1 TiB"


def is_dask(X: Points) -> bool:
    """Return True if X is a Dask collection, without importing Dask."""
    return type(X).__module__.partition(".")[0] == "dask" and hasattr(X, "__dask_graph__")


@dataclass(frozen=True, eq=False, repr=False)
class DaskBlocks(Blocks):
    """Blocks of a Dask collection: the chunks of an array, or the partitions of a data frame.

    Attributes
    ----------
    sizes : tuple of int
        Number of rows of each block.
    width : int or None
        Number of columns; None for one value per row.
    collection : Dask array or data frame
        The rows.
    names : list of str or None
        Names of the columns.
    y, weights : array, DaskBlocks or None
        Targets and sample weights of the rows.
    """

    sizes: tuple[int, ...]
    width: int | None
    collection: Any
    names: list[str] | None = None
    y: RowValues = None
    weights: RowValues = None
    # Last object that `spread` sent to the workers, and its future.
    _sent: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def from_dask(cls, X: Points, what: str = "X") -> Self:
        """Return the blocks of a Dask array or data frame.

        For a data frame, this reads the data once, to compute the sizes of the partitions.  `what`
        is the name of the argument for error messages.
        """
        is_delayed = type(X).__module__ == "dask.delayed"  # for a Delayed, hasattr is always True
        if not is_delayed and hasattr(X, "chunks"):
            return cls(_chunk_sizes(X, what), X.shape[1] if X.ndim == 2 else None, X)
        if is_delayed or not (hasattr(X, "npartitions") and hasattr(X, "ndim")):
            raise TypeError(
                f"{what} is a Dask {type(X).__name__}, but only Dask arrays and data frames can be "
                f"used as blocks"
            )
        from dask.delayed import delayed

        parts = [delayed(len)(part) for part in X.to_delayed()]
        sizes = compute(parts)
        _check_not_empty(sizes, what)
        if X.ndim == 1:
            return cls(tuple(sizes), None, X)
        return cls(tuple(sizes), len(X.columns), X, string_column_names(X))

    @property
    def dtype(self) -> np.dtype:
        dtypes = getattr(self.collection, "dtypes", None)
        if dtypes is None:
            return np.dtype(self.collection.dtype)
        columns = np.ravel(dtypes)
        return np.result_type(*columns) if all(map(_is_number, columns)) else _OBJECT_DTYPE

    def _delayed(self, **options: Any) -> list[Any]:
        """Return the blocks as Dask Delayed objects."""
        return list(np.ravel(np.asarray(self.collection.to_delayed(**options), dtype=object)))

    def _run(self, work: BlockPass) -> Any:
        tasks = self._tasks(work, self._delayed())
        if work.merge is None:
            return compute(list(tasks))
        plan = tree_reduce(tasks, _lazy_merge(work.merge))
        if work.log is not None:
            work.log(f"a pass over {len(self.sizes)} blocks with Dask")
        return compute([plan])[0]

    def _tasks(self, work: BlockPass, chunks: list[Any]) -> Iterator[Any]:
        """Yield a Dask task ``f(rows, *shared)`` for each block."""
        from dask.delayed import delayed

        task, common = delayed(_task, pure=False), _delayed_once(work.shared)
        extras = [self._split_like_blocks(part) for part in (self.y, self.weights)]
        blocks = zip(self.starts, self.sizes, chunks, *extras, strict=True)
        for place, (start, size, X, y, weights) in enumerate(blocks):
            yield task(work.f, common, place, start, X, y, weights, self.width, size)

    def _split_like_blocks(self, part: RowValues) -> list[Any]:
        """Return the targets or weights of each block."""
        if isinstance(part, DaskBlocks):
            return part._delayed()
        if isinstance(part, Blocks):
            raise ValueError(
                f"X is a Dask collection, but y or sample_weight is {part!r}; pass a Dask "
                f"collection or an array"
            )
        ends = zip(self.starts, self.sizes, strict=True)
        return [None if part is None else part[start : start + size] for start, size in ends]

    @property
    def cores(self) -> int:
        client = _client()
        return check_threads(None) if client is None else sum(client.nthreads().values())

    def spread(self, task: SpreadTask, jobs: Sequence[object]) -> Any:
        from dask.base import persist
        from dask.delayed import delayed

        if self._sent.get("static") is not task.static[1]:
            check_worker_memory(task.static[1], task.inputs)
            (future,) = persist(_delayed_once(task.static))
            self._sent.update(static=task.static[1], future=future)
        run, inputs = delayed(_job, pure=False), _delayed_once(task.inputs)
        tasks = (run(task.f, self._sent["future"], inputs, job) for job in jobs)
        return compute([tree_reduce(tasks, _lazy_merge(task.merge))])[0]

    def mapped(self, f: Callable[[np.ndarray], Any], like: np.ndarray) -> Any:
        """Return a lazy Dask array with the same chunks."""
        import dask.array as da

        # Do not optimise the graph before the result is computed: this would drop references to
        # persisted data, so that the workers would release it.
        lazy = {"optimize_graph": False} if hasattr(self.collection, "chunks") else {}
        work = BlockPass(_apply_to_points, (f,))
        tasks = self._with(None, None)._tasks(work, self._delayed(**lazy))
        parts = [
            da.from_delayed(task, (size, *like.shape[1:]), dtype=like.dtype)
            for task, size in zip(tasks, self.sizes, strict=True)
        ]
        return da.concatenate(parts)


def _is_number(dtype: object) -> bool:
    """Return True if the type of a column is a numeric NumPy dtype."""
    return isinstance(dtype, np.dtype) and dtype.kind in "biuf"


class _Shared:
    """Wrapper of the arguments that all tasks of a pass share.

    The task graph contains it only once, and Dask does not search it for other tasks.
    """

    def __init__(self, parts: Any) -> None:
        self.parts = parts


def _delayed_once(parts: object) -> Any:
    """Return shared arguments as a Dask Delayed object; see `_Shared`."""
    from dask.delayed import delayed

    return delayed(_Shared(parts), pure=False, traverse=False)


def _lazy_merge(merge: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return a function that merges two Dask tasks in a third one."""
    from dask.delayed import delayed

    merged = delayed(_in_one_thread, pure=False)
    return lambda a, b: merged(merge, a, b)


def _task(f: Callable[..., Result], common: _Shared, *block: Any) -> Result:
    """Validate one block and call f, in one thread; this is a Dask task."""
    return _in_one_thread(lambda: f(validate_block(*block), *common.parts))


def _job(f: Callable[..., Result], static: _Shared, inputs: _Shared, job: object) -> Result:
    """Run one job of `spread` in one thread; this is a Dask task."""
    return _in_one_thread(f, static.parts, inputs.parts, job)


def _apply_to_points(rows: BlockRows, f: Callable[[np.ndarray], Result]) -> Result:
    return f(rows.X)


def _in_one_thread(f: Callable[..., Result], *args: object) -> Result:
    """Return f(*args), computed in one thread."""
    with resource_scope(n_threads=1), one_blas_thread:
        return f(*args)


# ---------------------------------------------------------------------- running tasks


def compute(tasks: list[Any]) -> list[Any]:
    """Compute Dask tasks and return their results.

    An error is raised if the cluster has no workers, or if they cannot import mercer.  After
    Ctrl-C, Dask cancels the tasks.
    """
    import dask
    from dask.base import compute as run_tasks

    _check_workers()
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": _GRAPH_WARNING_SIZE}):
        return list(run_tasks(*tasks))


def check_worker_memory(*parts: object) -> None:
    """Raise MemoryBudgetError if the data for each worker exceeds half of its memory."""
    needed = sum(array_bytes(part) for part in parts)
    limit = _min_worker_memory()
    if limit and 2 * needed > limit:
        raise MemoryBudgetError(
            f"each worker would need {format_bytes(needed)} for points and vectors, which is more "
            f"than half of its memory of {format_bytes(limit)}. Use landmarks (solver or "
            f"eigen_solver='nystroem'), or workers with more memory"
        )


def array_bytes(part: object) -> int:
    """Return the total size in bytes of the arrays in nested tuples, lists and attributes."""
    if isinstance(part, np.ndarray):
        return int(part.nbytes)
    if isinstance(part, (tuple, list)):
        return sum(map(array_bytes, part))
    return sum(map(array_bytes, getattr(part, "__dict__", {}).values()))


def _min_worker_memory() -> int:
    """Return the smallest memory limit of the workers of the cluster; 0 if it is unknown."""
    client = _client()
    if client is None:
        return 0
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    return int(min((worker.get("memory_limit") or 0 for worker in workers), default=0))


def _client() -> Any:
    """Return the active `distributed.Client`, or None."""
    from dask.base import get_scheduler

    client: Any = getattr(get_scheduler(), "__self__", None)
    return client if hasattr(client, "scheduler_info") else None


# Addresses of the workers that are known to have mercer installed.
_workers_with_mercer: set[str] = set()


def _check_workers() -> None:
    """Raise an error if the cluster has no workers, or if some of them cannot import mercer.

    Without workers, a computation would wait forever.  Only an adaptive cluster may have no
    workers, because it starts them on demand.
    """
    if (client := _client()) is None:
        return
    adaptive = getattr(getattr(client, "cluster", None), "_adaptive", None)
    deadline = monotonic() + _WORKER_TIMEOUT
    # If the last worker was lost, Dask may be starting another one.
    while not (workers := set(client.nthreads())) and adaptive is None and monotonic() < deadline:
        sleep(0.1)
    if adaptive is None and not workers:
        raise RuntimeError(
            "the Dask cluster of this process has no workers, so that the fit would wait forever; "
            "start workers, for example with cluster.scale(2), or close the client to use threads"
        )
    if not (new := sorted(workers - _workers_with_mercer)):
        return
    # find_spec also runs on workers without mercer.  If a worker is lost, its result is an error.
    specs = client.run(find_spec, "mercer", workers=new, on_error="return")
    if lacking := [worker for worker, spec in specs.items() if spec is None]:
        raise RuntimeError(
            f"{len(lacking)} of {len(workers)} workers cannot import mercer, for example "
            f"{lacking[0]}; install mercer on the workers, in the same version as here"
        )
    _workers_with_mercer.update(specs)


def _chunk_sizes(X: Points, what: str) -> tuple[int, ...]:
    """Return the numbers of rows of the chunks of a Dask array, after validation."""
    if X.ndim not in (1, 2):
        raise ValueError(f"{what} has {X.ndim} axes, but points must have two axes and targets one")
    sizes, *other_axes = X.chunks
    if any(np.isnan(size) for size in (*sizes, *(s for axis in other_axes for s in axis))):
        raise ValueError(
            f"the chunks of {what} have unknown sizes; the usual cause is a filter, or a "
            f"conversion from a data frame. Call {what}.compute_chunk_sizes() first"
        )
    if other_axes and len(other_axes[0]) > 1:
        raise ValueError(
            f"the columns of {what} are in {len(other_axes[0])} chunks of sizes {other_axes[0]}, "
            f"but a row must be in one chunk; rechunk it: {what}.rechunk({{1: -1}})"
        )
    _check_not_empty(sizes, what)
    return tuple(int(size) for size in sizes)


def _check_not_empty(sizes: Sequence[int], what: str) -> None:
    """Raise an error if a block has no rows, or if there are no blocks."""
    if 0 in sizes or not len(sizes):
        where = f"block {list(sizes).index(0)} of {len(sizes)}" if len(sizes) else "it"
        raise ValueError(
            f"{where} of {what} has no rows; the usual cause is a filter. Repartition or rechunk "
            f"{what} so that each block has rows"
        )
