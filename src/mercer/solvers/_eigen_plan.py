"""The plan of a kernel PCA: its eigensolvers, with predicted memory and time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

from .._core import MemoryLimit, Points, budget_in_bytes, format_bytes, length
from ..blocks import Blocks
from ..kernels import Kernel, Precomputed
from ._choose_solver import EIGEN, cheapest, choose, eigen_costs
from ._cost_model import Cost, cost_of_entries, cost_of_storing_and_reading
from ._plan import Option, Plan, make_plan
from ._plan_families import landmark_bytes, n_columns, tile_bytes
from .eigen import BlockKrylov, DenseEigen, LowRankEigen


@dataclass(frozen=True)
class _EigenPlanTuning:
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
    # Up to this many points, LAPACK is the fastest eigensolver in all cases.
    dense_eigen_points: int = 500
    # Typical number of passes over K of block Krylov.
    krylov_passes: int = 5
    # Network bandwidth between workers, in bytes per second.
    bandwidth: float = 1e9
    # Typical numbers of passes over K per component, of eigensolvers that are used on request.
    eigen_passes: ClassVar[dict[str, int]] = {"power": 50, "arpack": 8, "randomized": 4}


_TUNING = _EigenPlanTuning()
LOW_MEMORY_KRYLOV = BlockKrylov(rank=0, prove=False)  # block Krylov with the smallest workspace


class FeatureSolver(Protocol):
    """An eigensolver on landmarks or random features, such as `LowRankEigen`."""

    def workspace(self, n: int, k: int) -> int:
        """Return the memory for k components of n points, in bytes."""
        ...

    def features(self, n: int, k: int) -> int:
        """Return the number of features for k components of n points."""
        ...


def prefers_dense_eigen(
    kernel: Kernel, X: Points, storage: str = "auto", max_memory: MemoryLimit = None
) -> bool:
    """Whether there are so few points that LAPACK is the fastest eigensolver in all cases."""
    n = length(X)
    if n > _TUNING.dense_eigen_points or storage != "auto" or isinstance(X, Blocks):
        return False
    needed = tile_bytes(kernel, X) + 24 * n * n + dense_eigen_bytes(n, n)
    return needed <= budget_in_bytes(max_memory)


def plan_eigenproblem(
    kernel: Kernel,
    X: Points,
    wanted: int | float | None,
    storage: str = "auto",
    *,
    spec: object = "auto",
    features: FeatureSolver | None = None,
    rank: int | None = None,
    max_memory: MemoryLimit = None,
) -> Plan:
    """Plan a kernel PCA: which eigensolver, and how the kernel matrix K is stored.

    Parameters
    ----------
    kernel, X : Kernel and points
        If the points are `Blocks`, K is never stored.
    wanted : int, float or None
        The number of components, a fraction of the variance, or None for all components.
    storage : {"auto", "dense", "tiled"}, default="auto"
        How K may be stored.
    spec : str or solver, default="auto"
        The requested eigensolver.
    features : LowRankEigen or FourierEigen, optional
        The eigensolver on features, if it is requested.
    rank : int, optional
        The number of landmarks for "nystroem", if `features` is not given.
    max_memory : int, str or None
        Memory budget.
    """
    n, budget = length(X), budget_in_bytes(max_memory)
    k = n if wanted is None else max(1, min(n, int(wanted) if wanted >= 1 else min(n, 100)))
    is_precomputed, in_blocks = isinstance(kernel, Precomputed), isinstance(X, Blocks)
    solvers: dict[str, Any] = {"dense": DenseEigen(), "krylov": BlockKrylov()}
    solvers["nystroem"] = LowRankEigen(rank=rank)
    name = spec if isinstance(spec, str) else type(spec).__name__
    if features is not None:
        name = "nystroem" if isinstance(features, LowRankEigen) else "features"
        solvers[name] = features
    other = name not in ("auto", "exact", "features", *solvers)
    if other:
        solvers[name] = choose(EIGEN, None, spec)
    costs = eigen_costs(kernel, X, n, k, n if wanted is not None and wanted < 1 else k)
    options = []
    for solver, storage_kind in (
        *(("dense", "dense"), ("krylov", "dense"), ("krylov", "tiled"), ("nystroem", "low rank")),
        *(("features", "features"),) * ("features" in solvers),
        *((name, kind) for kind in ("dense", "tiled") if other),
    ):
        if storage_kind == "tiled" and is_precomputed:
            continue
        option = _eigen_option(
            solver, solvers[solver], storage_kind, kernel, X, k, wanted, costs, budget
        )
        if storage_kind in ("dense", "tiled") and storage not in ("auto", storage_kind):
            option = replace(option, rejection=f"storage is {storage!r}")
        options.append(option.within(budget))
    candidates = {}
    for i, option in enumerate(options):
        if not option.fits or not option.exact or (in_blocks and option.storage == "dense"):
            continue  # for points in blocks, K is never stored as a whole
        is_large = 8 * n * n > _TUNING.large_matrix and not is_precomputed
        is_penalised = option.storage == "dense" and is_large
        candidates[i] = (_TUNING.large_matrix_penalty if is_penalised else 1.0) * option.cost
    if name not in ("auto", "exact"):
        # A requested solver stores K if that is possible, because it may need many passes.
        named = [i for i, option in enumerate(options) if option.solver == name]
        fitting = [i for i in named if options[i].fits and (i in candidates or not in_blocks)]
        chosen, because = next(iter(fitting or named), None), ""
    elif prefers_dense_eigen(kernel, X, storage, max_memory):
        chosen, because = 0, f"fastest for up to {_TUNING.dense_eigen_points} points"
    else:
        chosen, because = cheapest(candidates), ""
    components = "all" if wanted is None else f"{wanted:g}"
    return make_plan(
        f"Kernel PCA of {n} points, {components} components",
        n,
        options,
        chosen,
        spec=spec,
        parameter="eigen_solver",
        because=because,
        max_memory=max_memory,
        advice=(
            "no exact method fits: increase max_memory, request fewer components, or use\n"
            "eigen_solver='nystroem', whose error is certified"
        ),
        note=_distributed_estimate(X, costs, k),
    )


def _eigen_option(
    name: str,
    solver: Any,
    storage: str,
    kernel: Kernel,
    X: Points,
    k: int,
    wanted: int | float | None,
    costs: dict[tuple[str, str], Cost],
    budget: int,
) -> Option:
    """Return an option of `plan_eigenproblem`; `costs` are those of the exact solvers."""
    n, is_precomputed = length(X), isinstance(kernel, Precomputed)
    if storage in ("low rank", "features"):
        m = int(solver.features(n, k))
        # The features have n m entries; features and moments take 2 n m^2 flops each.
        cost = cost_of_entries(kernel, X, float(n * m)) + Cost(products=4.0 * n * m * m)
        required = feature_solver_bytes(solver, X, k, wanted, is_precomputed)
        n_scores = k if wanted is not None and wanted >= 1 else m
        memory = landmark_bytes(n, m, 0.0, 2.0, 5.0 if storage == "low rank" else 0.0)
        memory = min(required, memory + 32 * n * n_scores + 24 * n * n * is_precomputed)
        details: dict[str, Any] = {"exact": False, "rank": m, "passes": "-", "entries": 2.0 * n * m}
        details["required"] = required
        return Option(name, storage, memory, cost, **details)
    # A fraction of the variance requires all n components of the dense solver.
    n_computed = n if wanted is not None and wanted < 1 else k
    fill_bytes = 0 if is_precomputed else tile_bytes(kernel, X)
    if name == "dense":
        # Weighted sums of rows need this memory; a precomputed K is also validated and needs more.
        strip_bytes = 8 * n * min(n, _TUNING.sum_strip) * (3 if is_precomputed else 1)
        memory = fill_bytes + strip_bytes + dense_eigen_bytes(n, n_computed)
        return Option(name, storage, memory, costs[name, storage], passes="1", entries=n**2 / 2)
    stored = storage == "dense"
    K_bytes = fill_bytes + 8 * n * n if stored else tile_bytes(kernel, X, k + 16)
    # User-defined solvers may not have a method `workspace`.
    required = K_bytes + getattr(solver, "workspace", lambda n, k: 0)(n, k)
    # The proof that no eigenvalue was missed usually needs few columns.
    memory = (
        K_bytes + replace(solver, prove=False).workspace(n, k) if name == "krylov" else required
    )
    if name == "krylov":
        cost = costs[name, storage]
    else:
        storing, read = cost_of_storing_and_reading(kernel, X, n, stored=stored)
        cost = storing + float(_TUNING.eigen_passes.get(name, 100) * k) * read
    passes, entries, low_memory = "3-6, stored" if stored else "3-6", 0.5 * n**2, False
    if name == "krylov" and required > budget:  # the smallest workspace needs more passes
        reduced_memory = K_bytes + LOW_MEMORY_KRYLOV.workspace(n, k)
        if reduced_memory <= budget:
            memory, required, passes, low_memory = reduced_memory, reduced_memory, "5-20", True
            cost = _TUNING.low_memory_passes * cost
    return Option(
        name,
        storage,
        memory,
        cost,
        required=required,
        passes=passes if name == "krylov" else "many",
        entries=entries if stored else 5.0 * entries,
        low_memory=low_memory,
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


def dense_eigen_bytes(n: int, k: int) -> int:
    """Return the memory for k components of a dense n x n eigenproblem, in bytes.

    It is the larger of the memory of two phases: LAPACK on the whole matrix, and seven n x k arrays
    for eigenvectors, scores, coefficients and temporary results.
    """
    return max(8 * n * n + DenseEigen().workspace(n, k), 8 * n * 7 * k)


def feature_solver_bytes(
    solver: FeatureSolver, X: Points, k: int, wanted: int | float | None, is_precomputed: bool
) -> int:
    """Return the memory of a solver on landmarks or random features, in bytes.

    It includes the workspace of the solver, blocks of points, and four arrays of n numbers per
    component.  If `wanted` is None or a fraction, there are as many components as features.
    """
    n = length(X)
    n_computed = k if wanted is not None and wanted >= 1 else solver.features(n, k)
    # memory of two blocks of points, or of three copies of a precomputed matrix
    block = 16 * min(n, _TUNING.feature_block) * (n_columns(X) + 3)
    points = 24 * n * n if is_precomputed else block
    return int(solver.workspace(n, k) + 32 * n * n_computed + points)
