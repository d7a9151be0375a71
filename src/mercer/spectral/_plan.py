"""What a kernel PCA would cost, by each method, before anything is allocated."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._errors import MemoryBudgetError
from .._points import length
from .._runtime import budget_in_bytes, check_budget, check_threads, in_words
from ..blocks import Blocks
from ..gram import TiledGram, working_bytes
from ..kernels import Kernel, Precomputed
from ..solvers import BlockKrylov, Cost, DenseEigen, LowRankEigen, cheapest, eigen_costs

__all__ = ["LEAN", "Option", "Plan", "affordable", "feature_bytes", "fits_dense", "make_plan"]

LEAN = BlockKrylov(rank=0, prove=False)  # block Krylov with the least memory
_LEAN_PASSES = 1.5  # how many more of them it takes
_BLOCK = 2**15  # points in a block of features
_UNKNOWN = Cost(calls=np.inf)  # of approximations, which no exact method is compared with
_STRIP = 512  # rows of K that are summed together
_LARGE, _FOR_MEMORY = 2**31, 1.25  # bytes of a K that must save so much of the time to be held
_PASSES, _BANDWIDTH = 5, 1e9  # of a block Krylov method; bytes a second between machines


@dataclass(frozen=True)
class Option:
    """One way to go: what it needs, and what it gives."""

    eigen_solver: str
    storage: str
    memory: int
    passes: str
    entries: float
    exact: bool
    why_not: str = ""
    lean: bool = False
    cost: Cost = Cost()  # noqa: RUF009

    @property
    def fits(self) -> bool:
        """Whether nothing speaks against it."""
        return not self.why_not


@dataclass(frozen=True)
class Plan:
    """What each method would cost; `chosen` is what "auto" takes, None if nothing exact fits.

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
    spread: str = ""  # what the law says of points in blocks

    def __str__(self) -> str:
        lines = [
            f"Kernel PCA of {self.n} points, {self.components} components, "
            f"budget {in_words(self.budget)}",
            "  eigen_solver  storage      memory   passes over K   entries of K   time   result",
        ]
        unit = min(o.cost.seconds for o in self.options if o.exact)
        for option in self.options:
            mark = ">" if option is self.chosen else " "
            result = "exact" if option.exact else "approximate"
            if not option.fits:
                result = option.why_not
            lines.append(
                f"{mark} {option.eigen_solver:<13} {option.storage:<8} "
                f"{in_words(option.memory):>10}   {option.passes:>13}   {option.entries:>12.1e}   "
                f"{_times(option.cost.seconds / unit):>4}   {result}"
            )
        if self.chosen is None:
            lines.append(
                "  nothing exact fits: raise max_memory, ask for fewer components, or take"
            )
            lines.append("  eigen_solver='nystroem', whose error is certified")
        if self.spread:
            lines.append(f"  {self.spread}")
        return "\n".join(lines)

    def require(self) -> Option:
        """Return the choice, or refuse with the alternatives."""
        if self.chosen is None:
            raise MemoryBudgetError(f"no exact method fits the memory budget.\n{self}")
        return self.chosen


def make_plan(
    kernel: Kernel,
    X: Any,
    wanted: int | float | None,
    storage: str = "auto",
    rank: int | None = None,
    max_memory: Any = None,
) -> Plan:
    """Return what each method would cost for these points; nothing is evaluated."""
    n, budget = length(X), budget_in_bytes(max_memory)
    k = n if wanted is None else max(1, min(n, int(wanted) if wanted >= 1 else min(n, 100)))
    whole = 8 * n * n
    given = isinstance(kernel, Precomputed)
    threads = check_threads(None)
    tiled = working_bytes(kernel, X, None, k + 16, threads)
    tiles = 0 if given else working_bytes(kernel, X, None, 0, threads)
    strips = 8 * n * min(n, _STRIP) * (3 if given else 1)  # weighted sums; checks of what is given
    found = n if wanted is not None and wanted < 1 else k  # LAPACK finds all for a share
    krylov, low = BlockKrylov(), LowRankEigen(rank=rank)
    m = low.features(n, k)
    needed = {
        ("dense", "dense"): (tiles + strips + dense_bytes(n, found), "1", n**2 / 2),
        ("krylov", "dense"): (tiles + whole + krylov.workspace(n, k), "3-6, stored", n**2 / 2),
        ("krylov", "tiled"): (tiled + krylov.workspace(n, k), "3-6", 2.5 * n**2),
        ("nystroem", "low rank"): (feature_bytes(low, X, k, wanted, given), "-", 2.0 * n * m),
    }
    if given:
        del needed["krylov", "tiled"]
    costs = eigen_costs(kernel, X, n, k, found)
    options = []
    for (name, held), (memory, passes, entries) in needed.items():
        why = "" if memory <= budget else "does not fit the budget"
        exact, lean = name != "nystroem", False
        if why and name == "krylov":  # with a small factor, or none, at the price of more passes
            least = memory - krylov.workspace(n, k) + LEAN.workspace(n, k)
            if least <= budget:
                memory, passes, why, lean = least, "5-20", "", True
        if storage != "auto" and held in ("dense", "tiled") and held != storage:
            why = f"storage is {storage!r}"
        cost = (_LEAN_PASSES if lean else 1.0) * costs.get((name, held), _UNKNOWN)
        options.append(Option(name, held, memory, passes, entries, exact, why, lean, cost))
    shown = "all" if wanted is None else f"{wanted:g}"
    fitting = {way: way.cost for way in options if way.fits and way.exact}
    for way in fitting:
        if way.storage == "dense" and whole > _LARGE and not given:
            fitting[way] = _FOR_MEMORY * way.cost
    if isinstance(X, Blocks):  # where K is never held in one place
        fitting = {way: cost for way, cost in fitting.items() if way.storage == "tiled"}
    return Plan(n, shown, budget, tuple(options), cheapest(fitting), _law(X, costs, k))


def _law(X: Any, costs: dict[tuple[str, str], Cost], k: int) -> str:
    """Return T = passes n^2 / (2 p r) + 16 n c / B a pass for points in blocks, in words."""
    if not isinstance(X, Blocks):
        return ""
    p, n = X.cores, len(X)
    sent, points = 16.0 * n * (k + 16), 8 * n * ((X.width or 1) + 3)
    seconds = costs["krylov", "tiled"].seconds / p + _PASSES * sent / _BANDWIDTH
    return (
        f"in blocks on {p} cores, krylov: about {seconds:.0f} s; every worker holds "
        f"{in_words(points)} of points, and {in_words(sent)} travel in a pass"
    )


def affordable(solver: Any, K: Any, k: int, max_memory: Any) -> Any:
    """Return the solver for k components of K, a lean one if there is no room for another."""
    n = K.shape[0]
    if isinstance(K, TiledGram):
        held = working_bytes(K.kernel, K.X, None, k + 16, check_threads(K.n_threads))
    else:
        held = 8 * n * n
    workspace = getattr(solver, "workspace", lambda n, k: 0)  # a solver from elsewhere may not say
    if isinstance(solver, BlockKrylov) and held + workspace(n, k) > budget_in_bytes(max_memory):
        solver = replace(solver, rank=0, prove=False)
        workspace = solver.workspace
    name, needed = f"{solver}", held + workspace(n, k)
    if isinstance(solver, DenseEigen):
        name, needed = "a dense eigenproblem", dense_bytes(n, k)
    check_budget(needed, max_memory, f"{name} of {n} points, {k} components,")
    return solver


def fits_dense(kernel: Kernel, X: Any, max_memory: Any) -> bool:
    """Tell whether all components can be found by LAPACK within the budget."""
    n = length(X)
    tiles = working_bytes(kernel, X, None, 0, check_threads(None))
    return tiles + 24 * n * n + dense_bytes(n, n) <= budget_in_bytes(max_memory)


def dense_bytes(n: int, k: int) -> int:
    """Return the bytes of LAPACK on the whole matrix and, when that is gone, of k components.

    Those are seven arrays: the vectors, scores and coefficients, and what they are made from.
    """
    return max(8 * n * n + DenseEigen().workspace(n, k), 8 * n * 7 * k)


def feature_bytes(solver: Any, X: Any, k: int, wanted: int | float | None, given: bool) -> int:
    """Return the bytes of a solver on features: its own, those of blocks of points, and components.

    Those are four arrays beside the vectors; of all, or a share, as many as there are features.
    """
    n = length(X)
    found = k if wanted is not None and wanted >= 1 else solver.features(n, k)
    columns = X.shape[1] if len(getattr(X, "shape", ())) == 2 else 1
    # two blocks of points, or three copies of values that were given
    points = 24 * n * n if given else 16 * min(n, _BLOCK) * (columns + 3)
    return int(solver.workspace(n, k) + 32 * n * found + points)


def _times(ratio: float) -> str:
    """Return how many times as long as the quickest exact one a method takes, as text."""
    return "-" if np.isinf(ratio) else f"{ratio:.{1 if ratio < 10 else 0}f}x"
