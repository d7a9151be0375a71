"""Estimates of the memory and time of each kernel PCA solver, before anything is allocated."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..._core import (
    MemoryBudgetError,
    MemoryLimit,
    Points,
    budget_in_bytes,
    check_budget,
    check_threads,
    format_bytes,
    length,
)
from ...blocks import Blocks
from ...gram import DistributedGram, TiledGram, working_bytes
from ...kernels import Kernel, Precomputed
from ...solvers import BlockKrylov, Cost, DenseEigen, LowRankEigen, cheapest, eigen_costs


@dataclass(frozen=True)
class _PlanTuning:
    """Assumptions of the memory and time estimates."""

    # The low-memory block Krylov solver takes this many times as long as the default one, because
    # it needs more passes over K.
    low_memory_passes: float = 1.5
    # Number of points in a block of features.
    feature_block: int = 2**15
    # Number of rows of K that are evaluated at a time for weighted sums of rows.
    sum_strip: int = 512
    # If K takes more bytes than this, it is stored only if this clearly saves time.
    large_matrix: int = 2**31
    # When solvers are compared, the time of those that store a K of more than `large_matrix` bytes
    # is multiplied by this.
    large_matrix_penalty: float = 1.25
    # Typical number of passes over K that the block Krylov solver needs.
    krylov_passes: int = 5
    # Network bandwidth between workers, in bytes per second.
    bandwidth: float = 1e9


_TUNING = _PlanTuning()
LOW_MEMORY_KRYLOV = BlockKrylov(rank=0, prove=False)  # block Krylov with the smallest workspace
_UNKNOWN_COST = Cost(calls=np.inf)  # used for approximate solvers, whose time is not estimated


@dataclass(frozen=True)
class Option:
    """One combination of eigensolver and storage in a `Plan`, with its cost.

    Attributes
    ----------
    eigen_solver, storage : str
        The values of these parameters of `KernelPCA`.
    memory : int
        The memory in bytes.
    passes : str
        The number of passes over K, as text such as "3-6".
    entries : float
        The number of kernel evaluations.
    exact : bool
        Whether the result is exact.
    rejection : str
        Why the option cannot be used; empty if it can.
    low_memory : bool
        Whether the block Krylov solver uses its smallest workspace.
    cost : Cost
        The estimated time.
    """

    eigen_solver: str
    storage: str
    memory: int
    passes: str
    entries: float
    exact: bool
    rejection: str = ""
    low_memory: bool = False
    cost: Cost = Cost()  # noqa: RUF009

    @property
    def fits(self) -> bool:
        """Whether the option can be used."""
        return not self.rejection


@dataclass(frozen=True)
class Plan:
    """Memory and time of each solver for a kernel PCA; printing it shows a table.

    `chosen` is the option that "auto" uses, or None if no exact solver fits the memory budget.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelPCA
    >>> plan = KernelPCA(n_components=10, kernel="rbf").plan(np.zeros((50_000, 20)))
    >>> plan.chosen.eigen_solver, plan.chosen.storage
    ('krylov', 'tiled')
    """

    n: int
    components: str
    budget: int
    options: tuple[Option, ...]
    chosen: Option | None
    distributed: str = ""  # text with the estimate for points in `Blocks`, otherwise empty

    def __str__(self) -> str:
        lines = [
            f"Kernel PCA of {self.n} points, {self.components} components, "
            f"budget {format_bytes(self.budget)}",
            "  eigen_solver  storage      memory   passes over K   entries of K   time   result",
        ]
        fastest = min(o.cost.seconds for o in self.options if o.exact)
        for option in self.options:
            marker = ">" if option is self.chosen else " "
            result = "exact" if option.exact else "approximate"
            if not option.fits:
                result = option.rejection
            lines.append(
                f"{marker} {option.eigen_solver:<13} {option.storage:<8} "
                f"{format_bytes(option.memory):>10}   {option.passes:>13}   "
                f"{option.entries:>12.1e}   "
                f"{_format_ratio(option.cost.seconds / fastest):>4}   {result}"
            )
        if self.chosen is None:
            lines.append(
                "  no exact method fits: increase max_memory, request fewer components, or use"
            )
            lines.append("  eigen_solver='nystroem', whose error is certified")
        if self.distributed:
            lines.append(f"  {self.distributed}")
        return "\n".join(lines)

    def require(self) -> Option:
        """Return the chosen option, or raise a MemoryBudgetError that lists all options."""
        if self.chosen is None:
            raise MemoryBudgetError(f"no exact method fits the memory budget.\n{self}")
        return self.chosen


def make_plan(
    kernel: Kernel,
    X: Points,
    wanted: int | float | None,
    storage: str = "auto",
    rank: int | None = None,
    max_memory: MemoryLimit = None,
) -> Plan:
    """Estimate the memory and time of each solver for these points, without evaluating K.

    Parameters
    ----------
    kernel : Kernel
    X : points
    wanted : int, float or None
        The number of components, a fraction of the variance, or None for all components.
    storage : {"auto", "dense", "tiled"}, default="auto"
        How K may be stored.
    rank : int, optional
        The number of landmarks for "nystroem".
    max_memory : int, str or None
        The memory budget.
    """
    n, budget = length(X), budget_in_bytes(max_memory)
    k = n if wanted is None else max(1, min(n, int(wanted) if wanted >= 1 else min(n, 100)))
    matrix_bytes = 8 * n * n
    is_precomputed = isinstance(kernel, Precomputed)
    threads = check_threads(None)
    tiled_bytes = working_bytes(kernel, X, None, k + 16, threads)
    tile_bytes = 0 if is_precomputed else working_bytes(kernel, X, None, 0, threads)
    # Weighted sums of rows need this memory; a precomputed K is also validated and needs more.
    strip_bytes = 8 * n * min(n, _TUNING.sum_strip) * (3 if is_precomputed else 1)
    # A fraction of the variance requires all n components.
    n_computed = n if wanted is not None and wanted < 1 else k
    krylov, nystroem = BlockKrylov(), LowRankEigen(rank=rank)
    n_landmarks = nystroem.features(n, k)
    needs = {
        ("dense", "dense"): (
            tile_bytes + strip_bytes + dense_eigen_bytes(n, n_computed),
            "1",
            n**2 / 2,
        ),
        ("krylov", "dense"): (
            tile_bytes + matrix_bytes + krylov.workspace(n, k),
            "3-6, stored",
            n**2 / 2,
        ),
        ("krylov", "tiled"): (tiled_bytes + krylov.workspace(n, k), "3-6", 2.5 * n**2),
        ("nystroem", "low rank"): (
            feature_solver_bytes(nystroem, X, k, wanted, is_precomputed),
            "-",
            2.0 * n * n_landmarks,
        ),
    }
    if is_precomputed:
        del needs["krylov", "tiled"]
    costs = eigen_costs(kernel, X, n, k, n_computed)
    options = []
    for (name, storage_kind), (memory, passes, entries) in needs.items():
        reason = "" if memory <= budget else "does not fit the budget"
        exact, low_memory = name != "nystroem", False
        if reason and name == "krylov":  # try the smallest workspace, which needs more passes
            reduced_memory = memory - krylov.workspace(n, k) + LOW_MEMORY_KRYLOV.workspace(n, k)
            if reduced_memory <= budget:
                memory, passes, reason, low_memory = reduced_memory, "5-20", "", True
        if storage != "auto" and storage_kind in ("dense", "tiled") and storage_kind != storage:
            reason = f"storage is {storage!r}"
        cost = (_TUNING.low_memory_passes if low_memory else 1.0) * costs.get(
            (name, storage_kind), _UNKNOWN_COST
        )
        options.append(
            Option(name, storage_kind, memory, passes, entries, exact, reason, low_memory, cost)
        )
    components_text = "all" if wanted is None else f"{wanted:g}"
    candidates = {option: option.cost for option in options if option.fits and option.exact}
    for option in candidates:
        if option.storage == "dense" and matrix_bytes > _TUNING.large_matrix and not is_precomputed:
            candidates[option] = _TUNING.large_matrix_penalty * option.cost
    if isinstance(X, Blocks):  # for chunked points, K is never stored as a whole
        candidates = {
            option: cost for option, cost in candidates.items() if option.storage == "tiled"
        }
    return Plan(
        n,
        components_text,
        budget,
        tuple(options),
        cheapest(candidates),
        _distributed_estimate(X, costs, k),
    )


def _distributed_estimate(X: Points, costs: dict[tuple[str, str], Cost], k: int) -> str:
    """Return a text with the time and network traffic for points in `Blocks`; "" for other points.

    The estimated time is passes * (n^2 / (2 p r) + 16 n c / B), for p cores that evaluate r kernel
    values per second, c columns per product, and a network bandwidth of B bytes per second.
    """
    if not isinstance(X, Blocks):
        return ""
    p, n = X.cores, len(X)
    transferred, points = 16.0 * n * (k + 16), 8 * n * ((X.width or 1) + 3)
    seconds = (
        costs["krylov", "tiled"].seconds / p
        + _TUNING.krylov_passes * transferred / _TUNING.bandwidth
    )
    return (
        f"distributed over {p} cores, krylov: about {seconds:.0f} s; every worker stores "
        f"{format_bytes(points)} of points, and each pass transfers {format_bytes(transferred)}"
    )


def fit_solver_to_budget(solver: Any, K: Any, k: int, max_memory: MemoryLimit) -> Any:
    """Return the solver, with a smaller workspace if the memory budget requires it.

    Raises a MemoryBudgetError if k components of K do not fit at all.
    """
    n = K.shape[0]
    if isinstance(K, (TiledGram, DistributedGram)):
        matrix_bytes = working_bytes(K.kernel, K.X, None, k + 16, check_threads(K.n_threads))
    else:
        matrix_bytes = 8 * n * n
    # User-defined solvers may not have a method `workspace`.
    workspace = getattr(solver, "workspace", lambda n, k: 0)
    if isinstance(solver, BlockKrylov) and matrix_bytes + workspace(n, k) > budget_in_bytes(
        max_memory
    ):
        solver = replace(solver, rank=0, prove=False)
        workspace = solver.workspace
    name, needed = f"{solver}", matrix_bytes + workspace(n, k)
    if isinstance(solver, DenseEigen):
        name, needed = "a dense eigenproblem", dense_eigen_bytes(n, k)
    check_budget(needed, max_memory, f"{name} of {n} points, {k} components,")
    return solver


def fits_dense(kernel: Kernel, X: Points, max_memory: MemoryLimit) -> bool:
    """Whether LAPACK can compute all components within the memory budget."""
    n = length(X)
    tile_bytes = working_bytes(kernel, X, None, 0, check_threads(None))
    return tile_bytes + 24 * n * n + dense_eigen_bytes(n, n) <= budget_in_bytes(max_memory)


def dense_eigen_bytes(n: int, k: int) -> int:
    """Return the memory for k components of a dense n x n eigenproblem, in bytes.

    It is the larger of the memory of two phases: LAPACK on the whole matrix, and seven n x k arrays
    for eigenvectors, scores, coefficients and temporary results.
    """
    return max(8 * n * n + DenseEigen().workspace(n, k), 8 * n * 7 * k)


def feature_solver_bytes(
    solver: Any, X: Points, k: int, wanted: int | float | None, is_precomputed: bool
) -> int:
    """Return the memory of a solver on landmarks or random features, in bytes.

    It includes the workspace of the solver, blocks of points, and four arrays of n numbers per
    component.  If `wanted` is None or a fraction, there are as many components as features.
    """
    n = length(X)
    n_computed = k if wanted is not None and wanted >= 1 else solver.features(n, k)
    columns = X.shape[1] if len(getattr(X, "shape", ())) == 2 else 1
    # memory of two blocks of points, or of three copies of a precomputed matrix
    points = 24 * n * n if is_precomputed else 16 * min(n, _TUNING.feature_block) * (columns + 3)
    return int(solver.workspace(n, k) + 32 * n * n_computed + points)


def _format_ratio(ratio: float) -> str:
    """Return the time relative to the fastest exact solver as text, such as "2.5x"."""
    return "-" if np.isinf(ratio) else f"{ratio:.{1 if ratio < 10 else 0}f}x"
