"""What a kernel PCA would cost, by each method, before anything is allocated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._errors import MemoryBudgetError
from .._points import length
from .._runtime import budget_in_bytes, check_threads, in_words
from ..gram import working_bytes
from ..kernels import Kernel, Precomputed
from ..solvers import BlockKrylov, DenseEigen, LowRankEigen

__all__ = ["LEAN", "Option", "Plan", "block_bytes", "dense_bytes", "make_plan"]

_SMALL = 1500  # points below which LAPACK on the whole matrix is quick
_SHARE = 5  # beyond n / 5 components the whole spectrum is cheaper
_HELD = 2**28  # bytes of K that are held without a second thought
LEAN = BlockKrylov(rank=0, prove=False)  # block Krylov with the least memory
_BLOCK = 2**15  # points of a block
_STRIP = 512  # rows of K that are looked at together
_COSTLY = 128  # columns beyond which evaluating K costs more than reading it


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

    def __str__(self) -> str:
        lines = [
            f"Kernel PCA of {self.n} points, {self.components} components, "
            f"budget {in_words(self.budget)}",
            "  eigen_solver  storage      memory   passes over K   entries of K   result",
        ]
        for option in self.options:
            mark = ">" if option is self.chosen else " "
            result = "exact" if option.exact else "approximate"
            if not option.fits:
                result = option.why_not
            lines.append(
                f"{mark} {option.eigen_solver:<13} {option.storage:<8} "
                f"{in_words(option.memory):>10}   {option.passes:>13}   {option.entries:>12.1e}   "
                f"{result}"
            )
        if self.chosen is None:
            lines.append(
                "  nothing exact fits: raise max_memory, ask for fewer components, or take"
            )
            lines.append("  eigen_solver='nystroem', whose error is certified")
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
    *,
    max_memory: Any = None,
    n_threads: int | None = None,
    storage: str = "auto",
    rank: int | None = None,
) -> Plan:
    """Return what each method would cost for these points; nothing is evaluated."""
    n, budget = length(X), budget_in_bytes(max_memory)
    k = n if wanted is None else max(1, min(n, int(wanted) if wanted >= 1 else min(n, 100)))
    whole = 8 * n * n
    given = isinstance(kernel, Precomputed)
    threads = check_threads(n_threads)
    tiled = working_bytes(kernel, X, None, k + 16, threads)
    filling = 8 * n * min(n, _STRIP) * (3 if given else 1)  # weighted sums; checks of what is given
    filling += 0 if given else working_bytes(kernel, X, None, 0, threads)
    found = n if wanted is not None and wanted < 1 else k  # LAPACK finds all for a share
    krylov, low = BlockKrylov(), LowRankEigen(rank=rank)
    m = low.features(n, k)
    needed = {
        ("dense", "dense"): (filling + dense_bytes(n, found), "1", n**2 / 2),
        ("krylov", "dense"): (whole + krylov.workspace(n, k), "3-6, stored", n**2 / 2),
        ("krylov", "tiled"): (tiled + krylov.workspace(n, k), "3-6", 2.5 * n**2),
        ("nystroem", "low rank"): (low.workspace(n, k) + block_bytes(X, given), "-", 2.0 * n * m),
    }
    if given:
        del needed["krylov", "tiled"]
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
        options.append(Option(name, held, memory, passes, entries, exact, why, lean))
    shown = "all" if wanted is None else f"{wanted:g}"
    return Plan(n, shown, budget, tuple(options), _choose(options, kernel, X, n, k, whole))


def dense_bytes(n: int, k: int) -> int:
    """Return the bytes of LAPACK on the whole matrix and, when that is gone, of k components.

    Those are seven arrays: the vectors, scores and coefficients, and what they are made from.
    """
    return max(8 * n * n + DenseEigen().workspace(n, k), 8 * n * 7 * k)


def block_bytes(X: Any, given: bool = False) -> int:
    """Return the bytes of two blocks of points, or of three copies of values that were given."""
    if given:
        return 3 * 8 * length(X) ** 2
    columns = X.shape[1] if len(getattr(X, "shape", ())) == 2 else 1
    return 16 * min(length(X), _BLOCK) * (columns + 3)


def _choose(
    options: list[Option], kernel: Kernel, X: Any, n: int, k: int, whole: int
) -> Option | None:
    """Return the first exact option that fits, in the order of what is quickest."""
    columns = X.shape[1] if len(getattr(X, "shape", ())) == 2 else np.inf
    stored = whole <= _HELD or columns > _COSTLY or not kernel.on_vectors
    order = [("krylov", "dense" if stored else "tiled"), ("krylov", "tiled"), ("krylov", "dense")]
    order.insert(0 if n <= _SMALL or k > n // _SHARE else len(order), ("dense", "dense"))
    for wish in order:
        for option in options:
            if option.fits and (option.eigen_solver, option.storage) == wish:
                return option
    return None
