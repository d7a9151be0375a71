"""Plans of each family of problems: their options, with predicted memory and time.

The functions list the options.  Which of them is chosen is decided by the functions in
`_choose_solver.py`, which the solvers call as well.  The constants of the memory predictions were
fitted to measured peaks; `python -m benchmarks.plan` compares them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._core import MemoryLimit, Points, budget_in_bytes, check_threads, format_bytes, length
from ..blocks import Blocks
from ..gram import KernelRows, Landmarks, working_bytes
from ..kernels import Kernel, Linear, Precomputed
from ._choose_solver import (
    MAX_DIRECT_POINTS,
    MAX_EXACT_POINTS,
    affordable_landmarks,
    choose_svm_solver,
    linear_solver_sequence,
    use_landmarks,
)
from ._cost_model import Cost, cost_of_entries, cost_of_storing_and_reading
from ._plan import Option, Plan, make_plan
from .eigen import LowRankEigen
from .kmeans import Lloyd, stores_cluster_gram
from .linear import Cholesky, ConjugateGradient, MixedCholesky
from .ridge import Krill
from .svm import BoxInterior


@dataclass(frozen=True)
class _PlanTuning:
    """Assumptions of the memory and time estimates."""

    # Features on landmarks are computed in blocks of this many bytes.
    feature_block_bytes: int = 2**25
    # Typical number of steps of conjugate gradients.
    cg_steps: int = 20
    # Typical number of iterations of k-means for one start.
    lloyd_rounds: int = 20
    # Pairs of classes with at most this many points are solved in threads, as in `BlockSMO`.
    max_streamed_points: int = 2200
    # Typical number of SMO steps per point.
    smo_steps: float = 1.0
    # Typical size of a core set, and typical number of passes over the points that find it.
    core_set_points: int = 3000
    core_set_passes: int = 10
    # Memory of the allocator and of compiled loops, in addition to arrays.
    overhead: int = 2**22


_TUNING = _PlanTuning()


def tile_bytes(kernel: Kernel, X: Points, columns: int = 0) -> int:
    """Return the memory for evaluating tiles of K, and products with `columns` columns."""
    return working_bytes(kernel, X, None, columns, check_threads(None))


def n_columns(X: Points) -> int:
    """Return the number of columns of vectors; 1 for other points."""
    return X.shape[1] if len(getattr(X, "shape", ())) == 2 else 1


def plan_stored_points(
    problem: str,
    X: Points,
    solver: str = "exact",
    *,
    storage: str = "points",
    extra: int = 0,
    required: int = 0,
    exact: bool = True,
    rank: int | None = None,
    cost: Cost = Cost(),  # noqa: B008
    copies: float = 1.0,
    max_memory: MemoryLimit = None,
) -> Plan:
    """Plan a fit without alternatives, which stores the points.

    Parameters
    ----------
    problem : str
        A description of the problem.
    X : points
    solver, storage, exact, rank, cost
        Attributes of the only `Option`.
    extra : int
        Bytes in addition to the copies of the points.
    required : int
        The smallest budget in bytes that the fit accepts; 0 if it does not check the budget.
    copies : float
        Number of copies of the points.
    max_memory : int, str or None
        Memory budget.
    """
    points = int(8 * copies * length(X) * n_columns(X))
    memory = points + extra
    option = Option(solver, storage, memory, cost, exact, rank, required)
    return make_plan(problem, length(X), [option], max_memory=max_memory)


def landmark_bytes(n: int, m: int, stored: float, blocks: float, squares: float) -> int:
    """Return the memory of a fit on m landmarks.

    Parameters
    ----------
    n, m : int
        Numbers of points and landmarks.
    stored : float
        Number of n x m arrays that are stored.
    blocks : float
        Number of blocks of rows of such arrays.
    squares : float
        Number of m x m arrays.
    """
    block = min(8 * n * m, _TUNING.feature_block_bytes)
    return int(8 * n * m * stored + block * blocks + 8 * m * m * squares) + _TUNING.overhead


def plan_exact_or_landmarks(
    problem: str,
    kernel: Kernel,
    X: Points,
    spec: str,
    landmarks: Landmarks,
    *,
    squares: float,
    features: tuple[float, float, float],
    needed: Callable[[str, int], int] | None = None,
    limit: str | None = None,
    exact: str = "exact",
    others: Sequence[Option] = (),
    steps: float = 1.0,
    max_memory: MemoryLimit = None,
) -> Plan:
    """Plan a fit on all points, which stores matrices of their size, or on landmarks.

    Parameters
    ----------
    problem : str
        A description of the problem.
    kernel, X : Kernel and points
    spec : str
        The requested solver: "auto", "nystroem", or the name of an exact solver.
    landmarks : Landmarks
        The requested landmarks.
    squares : float
        Number of n x n arrays of the exact solver.
    features : tuple of float
        The arguments `stored`, `blocks` and `squares` of `landmark_bytes`.
    needed : function, optional
        `needed(solver, m)` returns the smallest budget, in bytes, that a solver with m coordinates
        accepts.  By default, it is the predicted memory.
    limit : str, optional
        The key of `MAX_EXACT_POINTS` up to which "auto" is exact.
    exact : str, default="exact"
        The name of the exact solver.
    others : sequence of Option, default=()
        Other options, which are used only on request.
    steps : float, default=1.0
        Number of factorisations that the solver needs.
    max_memory : int, str or None
        Memory budget.
    """
    n, budget = length(X), budget_in_bytes(max_memory)
    tiles = tile_bytes(kernel, X)
    if needed is None:

        def needed(solver: str, m: int) -> int:
            if solver == "nystroem":
                return landmark_bytes(n, m, *features)
            return int(8 * n * n * squares) + tiles

    is_other = [option.solver == spec for option in others]
    name = exact if spec in ("auto", "exact", "nystroem") or any(is_other) else spec
    fits = spec != "auto" or needed(exact, n) <= budget
    on_landmarks = use_landmarks(spec, n, limit, fits)
    if on_landmarks:
        landmarks = affordable_landmarks(
            landmarks, spec, n, lambda m: needed("nystroem", m), budget
        )
    m = landmarks.count(n)
    storing, _ = cost_of_storing_and_reading(kernel, X, n, stored=True)
    too_many = ""
    if spec == "auto" and limit is not None and n > MAX_EXACT_POINTS[limit]:
        too_many = f"more than {MAX_EXACT_POINTS[limit]} points"
    in_blocks = "points are in blocks" if isinstance(X, Blocks) else ""
    options = [
        Option(
            name,
            "dense",
            int(8 * n * n * squares) + tiles + _TUNING.overhead,
            storing + Cost(factors=steps * n**3 / 3.0),
            required=needed(name, n),
            rejection=in_blocks or too_many,
        ),
        Option(
            "nystroem",
            "low rank",
            landmark_bytes(n, m, *features) + tiles,
            cost_of_entries(kernel, X, 2.0 * n * m)
            + Cost(products=(2.0 + 2.0 * steps) * n * m * m),
            exact=False,
            rank=m,
            required=needed("nystroem", m),
        ),
    ]
    chosen = 2 + is_other.index(True) if any(is_other) else int(on_landmarks)
    because = ""
    if spec == "auto" and limit is not None:
        because = options[0].within(budget).rejection or f"up to {MAX_EXACT_POINTS[limit]} points"
    return make_plan(
        *(problem, n, [*options, *others], chosen),
        spec=spec,
        because=because,
        max_memory=max_memory,
        advice=_ADVICE,
    )


_ADVICE = (
    "no method fits: increase max_memory, or use solver='nystroem' with a smaller rank, which is "
    "approximate"
)


# --- Linear systems


def plan_ridge(
    problem: str,
    kernel: Kernel,
    X: Points,
    spec: object,
    landmarks: Landmarks,
    *,
    columns: int = 1,
    alphas: int = 1,
    weighted: bool = False,
    max_memory: MemoryLimit = None,
) -> Plan:
    """Plan a kernel ridge regression.

    Parameters
    ----------
    problem : str
        A description of the problem.
    kernel, X : Kernel and points
        Points in `Blocks` are gathered, and their workers compute products with K.
    spec : str or solver
        The requested solver.
    landmarks : Landmarks
        The requested landmarks; their rank is also the rank of the preconditioner.
    columns : int, default=1
        Number of targets.
    alphas : int, default=1
        Number of different ridge parameters.
    weighted : bool, default=False
        Whether points have weights.
    max_memory : int, str or None
        Memory budget.
    """
    n, tiles = length(X), tile_bytes(kernel, X)
    is_precomputed, in_blocks = isinstance(kernel, Precomputed), isinstance(X, Blocks)
    products = tile_bytes(kernel, X, 1)
    m, matrix = landmarks.count(n), 8 * n * n
    cg = ConjugateGradient(rank=landmarks.rank)
    storing, dense = cost_of_storing_and_reading(kernel, X, n, stored=True)
    tiled = cost_of_storing_and_reading(kernel, X, n, stored=False)[1]
    setup, step = cg.cost(n, tiled, columns)
    copies = 1 + (alphas > 1) + (is_precomputed and weighted)
    stored = matrix * copies + (0 if is_precomputed else tiles)
    cg_bytes = products + cg.workspace(n, columns) + 8 * n * n_columns(X) * in_blocks
    mixed_bytes = products + MixedCholesky().workspace(n)
    entries = cost_of_entries(kernel, X, 2.0 * n * m)
    features = landmark_bytes(n, m, 0.0, 3.0, 4.0)
    krill = Krill(landmarks.rank, landmarks.method)
    options = [
        Option("cholesky", "dense", stored, storing + Cholesky.cost(n, dense, columns)),
        Option(
            "mixed", "tiled", mixed_bytes, tiled + MixedCholesky.cost(n, tiled, columns), rank=None
        ),
        Option(
            "cg",
            "distributed" if in_blocks else "tiled",
            cg_bytes,
            setup + float(_TUNING.cg_steps) * step,
        ),
        Option(
            "lstsq",
            "dense",
            stored + matrix * (alphas == 1),
            storing + Cost(reductions=4.0 * n**3, products=2.0 * n**3),
        ),
        Option(
            "nystroem",
            "low rank",
            features,
            entries + Cost(products=4.0 * n * m * m),
            exact=False,
            rank=m,
            required=LowRankEigen(m).workspace(n, 1),
        ),
        Option(
            "krill",
            "low rank",
            features,
            entries + Cost(products=2.0 * n * m * m, factors=2.0 * m**3),
            exact=False,
            rank=m,
            required=krill.workspace(n),
        ),
    ]
    chosen: int | str = spec if isinstance(spec, str) else 0
    note, because, requested = "", "", spec
    if in_blocks and spec != "nystroem":
        chosen, requested = "cg", "cg"
    elif not isinstance(spec, str):
        options = [Option(f"{type(spec).__name__}", getattr(spec, "storage", "dense"), stored)]
    elif spec in ("auto", "exact"):
        available = max(1, budget_in_bytes(max_memory) - products)
        sequence, _, reads = linear_solver_sequence(
            n, kernel, X, columns, available, True if is_precomputed else None
        )
        chosen, requested = ", ".join(sequence), "auto"
        if sequence == ["cholesky"]:
            because = f"up to {MAX_DIRECT_POINTS} points"
        by_name = {option.solver: option for option in options}
        if len(sequence) > 1:
            # Conjugate gradients are tried first, on tiles unless K is stored anyway.
            storage = "tiled" if "tiled" in reads else "dense"
            first, last = by_name["cg"], by_name[sequence[1]]
            extra = stored if storage == "dense" else 0
            # A stage that does not fit the budget is given up.
            required = max(extra, min(by_name[name].memory for name in sequence))
            memory = min(first.memory + extra, max(required, budget_in_bytes(max_memory)))
            both = Option(chosen, storage, memory, first.cost, required=required)
            options.insert(0, both)
            note = (
                f"{chosen} are tried in this order; {last.solver}, which needs "
                f"{format_bytes(max(memory, last.memory))}, follows if cg would take too many steps"
            )
    return make_plan(
        problem,
        n,
        options,
        chosen,
        spec=requested,
        because=because,
        max_memory=max_memory,
        note=note,
        advice="no exact method fits: increase max_memory, or use solver='nystroem'",
    )


# --- Support vector machines


_ONLY_EXACT = "the only exact method"
# If the solver may switch from SMO to the interior point method, the cache for rows of K is limited
# to this many bytes, or to the size of X if that is larger.
MIN_SVM_CACHE_BYTES = 2**24


def plan_svm(
    problem: str,
    kernel: Kernel,
    X: Points,
    spec: str,
    landmarks: Landmarks,
    *,
    labels: np.ndarray | None = None,
    regression: bool = False,
    cache_bytes: int | None = None,
    max_memory: MemoryLimit = None,
    squared: bool = False,
    has_core_set: bool = False,
) -> Plan:
    """Plan the fit of a support vector machine.

    Parameters
    ----------
    problem : str
        A description of the problem.
    kernel, X : Kernel and points
    spec : {"auto", "smo", "primal", "nystroem", "core-set"}
        The requested solver.
    landmarks : Landmarks
        The requested landmarks.
    labels : ndarray of int, shape (n,), optional
        The class of each point, if there is a problem for each pair of classes.
    regression : bool, default=False
        Whether each point has two variables, one for each sign of the error.
    cache_bytes : int, optional
        The size of the cache for rows of K; the whole budget by default.
    max_memory : int, str or None
        Memory budget.
    squared : bool, default=False
        Whether the loss is squared, which only "smo", with a stored K, and "core-set" support.
    has_core_set : bool, default=False
        Whether "core-set" is supported.
    """
    n, d, m = length(X), n_columns(X), landmarks.count(length(X))
    counts = np.array([n]) if labels is None else np.bincount(labels)
    largest = int(np.sort(counts)[-2:].sum())
    rows, minimum = KernelRows.workspace(kernel, X, len(counts), cache_bytes, max_memory)
    is_linear = isinstance(kernel, Linear)
    entries = cost_of_entries(kernel, X, 0.3 * n * n)
    smo = entries + Cost(moves=_TUNING.smo_steps * n, read=8.0 * n * n)
    inside = BoxInterior.workspace(n, d, 2 * n)
    if len(counts) > 2 and largest <= _TUNING.max_streamed_points:
        rows = max(rows, check_threads(None) * 16 * largest**2)  # each thread solves one pair
    if regression:  # twice as many variables need another block of K
        rows += min(8 * n * n, _TUNING.feature_block_bytes)
    not_linear = "" if is_linear else "the kernel is not linear"
    options = [
        Option("smo", "rows", rows, smo, required=minimum),
        Option(
            *("primal", "features", inside, BoxInterior.cost(n, d)), rejection=not_linear, rank=d
        ),
        Option(
            "nystroem",
            "low rank",
            landmark_bytes(n, m, 1.0, 1.0, 6.0),
            cost_of_entries(kernel, X, 2.0 * n * m) + BoxInterior.cost(n, m),
            exact=False,
            rank=m,
            required=8 * (n * m + 3 * m * m),
        ),
    ]
    if squared:
        options[0] = replace(options[0], memory=rows + 16 * n * n, required=24 * n * n)
        options[1:] = [replace(o, rejection="the loss is squared") for o in options[1:]]
    if has_core_set:
        core = min(n, _TUNING.core_set_points)
        cost = cost_of_entries(kernel, X, float(_TUNING.core_set_passes * n * core))
        needed = 32 * core**2 + tile_bytes(kernel, X, 1) + 64 * n
        options.append(
            Option(
                "core-set", "rows", needed, cost + Cost(moves=float(_TUNING.core_set_passes * core))
            )
        )
    name = choose_svm_solver(kernel, X, spec, labels, max_memory, squared)
    because = ""
    if name == "either":
        # SMO needs few rows until the solver switches; if it does not fit, primal is used alone.
        cache = max(8 * n * d, MIN_SVM_CACHE_BYTES)
        cache = cache if cache_bytes is None else min(cache, cache_bytes)
        rows, _ = KernelRows.workspace(kernel, X, len(counts), cache, max_memory)
        rows += cache // 2  # such a small cache is filled
        memory, cost = min(rows + inside, budget_in_bytes(max_memory)), options[1].cost
        both = Option("smo, primal", "rows", memory, cost, rank=d, required=inside)
        options.insert(0, both)
        name, because = both.solver, "smo first, and primal if smo takes too long"
    elif squared and spec == "auto":
        because = "K fits" if name == "smo" else "K is too large to be stored"
    elif name == "smo" and spec == "auto" and not is_linear:
        because = "fastest if many points are support vectors" if has_core_set else _ONLY_EXACT
    elif spec == "auto":
        because = f"fastest for {largest} points and {d} columns"
    return make_plan(
        problem, n, options, name, spec=spec, because=because, max_memory=max_memory, advice=_ADVICE
    )


# --- Clusters


def plan_clusters(
    problem: str, kernel: Kernel, X: Points, lloyd: Lloyd, spec: str, landmarks: Landmarks
) -> Plan:
    """Plan a kernel k-means; the arguments are those of `cluster`."""
    n, m, budget = length(X), landmarks.count(length(X)), budget_in_bytes(lloyd.max_memory)
    C, tiles = lloyd.n_clusters, tile_bytes(kernel, X, lloyd.n_clusters)
    work = min(lloyd.workspace(n, lloyd.n_init), max(lloyd.workspace(n), budget // 4))
    storing, reading = cost_of_storing_and_reading(kernel, X, n, stored=True)
    tiled = cost_of_storing_and_reading(kernel, X, n, stored=False)[1]
    products = Cost(products=2.0 * n * n * C)
    rounds = float(_TUNING.lloyd_rounds * lloyd.n_init)
    too_many = ""
    if spec == "auto" and use_landmarks(spec, n, "clusters"):
        too_many = f"more than {MAX_EXACT_POINTS['clusters']} points"
    exact: dict[str, Any] = {
        "rejection": "points are in blocks" if isinstance(X, Blocks) else too_many
    }
    options = [
        Option("exact", "dense", 8 * n * n + tiles + work, storing + rounds * reading, **exact),
        Option("exact", "tiled", tiles + work, rounds * (tiled + products), **exact),
        Option(
            "nystroem",
            "low rank",
            landmark_bytes(n, m, 1.0, 0.2, 3.0) + work,
            cost_of_entries(kernel, X, 2.0 * n * m)
            + Cost(products=2.0 * n * m * m + rounds * 2.0 * n * m * C),
            exact=False,
            rank=m,
            required=landmarks.workspace(n) + 16 * m * m,
        ),
    ]
    stored = stores_cluster_gram(kernel, n) and 8 * n * n + tiles + lloyd.workspace(n) <= budget
    chosen = 2 if use_landmarks(spec, n, "clusters") else 1 - int(stored)
    return make_plan(
        problem, n, options, chosen, spec=spec, max_memory=lloyd.max_memory, advice=_ADVICE
    )
