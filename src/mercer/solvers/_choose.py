"""choose(), and what else turns names and sizes into solvers: the only place that compares."""

from __future__ import annotations

from enum import Enum
from typing import Any

from .._runtime import budget_in_bytes
from ._cost import Cost, reading
from .dual import BoxInterior, Relay
from .eigen import (
    Arpack,
    BlockKrylov,
    DenseEigen,
    FourierEigen,
    LowRankEigen,
    PowerPeeling,
    RandomizedEigen,
)
from .linear import Cascade, Cholesky, ConjugateGradient, LeastSquares, MixedCholesky

__all__ = [
    "EIGEN",
    "LINEAR",
    "MOST_EXACT",
    "Problem",
    "cheapest",
    "choose",
    "eigen_costs",
    "linear_machine",
]


class Problem(Enum):
    """What is to be solved."""

    LINEAR = "(K + shift) a = y"
    EIGEN = "K u = l u"


LINEAR, EIGEN = Problem.LINEAR, Problem.EIGEN

_SMALL = 3000  # points up to which a float64 factor costs next to nothing
# Points up to which "auto" minimises a risk over the whole RKHS, by Newton's method for the
# log-losses, by any method, and for outputs in order: about a minute on one core.
# "clusters": up to which it looks for clusters by passes over K.
MOST_EXACT = {"newton": 5000, "exact": 3000, "ordered": 1000, "clusters": 50_000}
_LEAST_ROWS = 500  # up to so many points the dual of a machine is solved from rows of K

_NAMES: dict[Problem, dict[str, Any]] = {
    LINEAR: {
        "cholesky": Cholesky,
        "mixed": MixedCholesky,
        "cg": ConjugateGradient,
        "lstsq": LeastSquares,
    },
    EIGEN: {
        "dense": DenseEigen,
        "krylov": BlockKrylov,
        "nystroem": LowRankEigen,
        "features": FourierEigen,
        "power": PowerPeeling,
        "arpack": Arpack,
        "randomized": RandomizedEigen,
    },
}


def choose(
    problem: Problem,
    gram: Any,
    spec: Any = "auto",
    *,
    k: int | None = None,
    n: int | None = None,
    max_memory: Any = None,
    **options: Any,
) -> Any:
    """Return the solver for `problem` on `gram`.

    ========= ========== ============================================ =================
    problem   spec       when                                         solver
    ========= ========== ============================================ =================
    LINEAR    "auto"     K is an array, or would fit; n <= 3000       Cholesky
                         the same, n > 3000, and 4 n^2 bytes beside   CG, mixed, Cholesky
                         the same, without these                      CG, Cholesky
                         4 n^2 bytes fit                              CG, mixed
                         otherwise                                    CG
              a name     "cholesky", "mixed", "cg", "lstsq"           that solver
    EIGEN     "auto"     the least cost: see `eigen_costs`            BlockKrylov or
                                                                      DenseEigen
              a name     "dense", "krylov", "nystroem", "features",   that solver
                         "power", "arpack", "randomized"
    either    a solver                                                itself
    ========= ========== ============================================ =================

    "CG, mixed" is a `Cascade`: ConjugateGradient is given up as soon as ten steps or more promise
    a total beyond n / 100 (or 60), at the latest after n / 150 (or 40), and MixedCholesky takes
    over, to which the spectrum matters little.  All end at about the residual of a float64 Cholesky
    factor, which is checked.

    Processor time, with the Gram, in multiples of that of Cholesky (RBF, 20 columns, alpha = 1, a
    BLAS of one thread; medians of 5, 3 and 1 rounds), where the spectrum falls fast / slowly:

    ======== ============= ================ ================
    n        CG, array     mixed, tiled     mixed, array
    ======== ============= ================ ================
    1500     0.95 / 2.0    0.95 / 1.1       0.86 / 0.84
    4000     0.43 / 0.75   0.73 / 0.73      1.1 / 1.2
    10000    0.14 / 0.30   0.64 / 0.56      0.91 / 0.70
    ======== ============= ================ ================

    Parameters
    ----------
    problem : Problem
    gram : GramOperator, CentredGram or None
        None where the solver decides how K is to be held: see the `storage` of a linear solver,
        "dense" or "tiled".
    spec : str or solver
    k : int, optional
        How many eigenpairs are wanted; None for all.
    n : int, optional
        The number of points, where there is no Gram.
    max_memory : int, str or None
        The budget, in bytes or as "2 GiB"; None for half of the machine's memory.
    **options
        For a solver given by name; those that only other solvers have are dropped.

    Examples
    --------
    >>> from mercer.gram import gram
    >>> from mercer.kernels import Linear
    >>> from mercer.solvers import EIGEN, LINEAR, choose
    >>> choose(EIGEN, gram(Linear(), [[1.0], [2.0]]), k=1)
    DenseEigen()
    >>> choose(LINEAR, None, n=100)
    Cholesky()
    >>> choose(LINEAR, None, n=50_000, max_memory="8 GiB")
    ConjugateGradient(rank=None, tol=1e-14, max_iter=None, random_state=None, max_memory='8 GiB')
    """
    if not isinstance(spec, str):
        verb = "factorize" if problem is LINEAR else "eigenpairs"
        if not hasattr(spec, verb):
            raise TypeError(f"{spec!r} is no solver for {problem.value}: it has no {verb}()")
        return spec
    names = _NAMES[problem]
    if spec not in ("auto", *names):
        raise ValueError(
            f"unknown solver {spec!r} for {problem.value}; use 'auto', {sorted(names)} or a solver"
        )
    known = {name for solver in names.values() for name in solver.__dataclass_fields__}
    if unknown := sorted(options.keys() - known):
        raise TypeError(f"no solver for {problem.value} has the options {unknown}")

    def make(name: str, **more: Any) -> Any:
        given = {"max_memory": max_memory, **options, **more}
        fields = names[name].__dataclass_fields__
        return names[name](**{name: v for name, v in given.items() if name in fields})

    if spec != "auto":
        return make(spec)
    if problem is EIGEN:
        held, size = getattr(gram, "gram", gram), gram.shape[0]
        kind = "dense" if hasattr(held, "release") else "tiled"
        costs = eigen_costs(held.kernel, held.X, size, size if k is None else k)
        name, _ = cheapest({way: costs[way] for way in costs if way[1] == kind or k is None})
        return make(name)
    n = n if gram is None else gram.shape[0]
    stages = _linear_names(n or 0, gram, budget_in_bytes(max_memory))
    if len(stages) == 1:
        return make(stages[0])
    if "max_iter" in options:
        return Cascade(tuple(make(name) for name in stages))
    trial = {"max_iter": max(40, (n or 0) // 150)}  # passes that take about as long as a factor
    return Cascade(tuple(make(name, **(trial if name == "cg" else {})) for name in stages))


def _linear_names(n: int, gram: Any, budget: int) -> list[str]:
    """Return the names of the linear solvers to try in turn."""
    single = MixedCholesky().workspace(n)
    array = hasattr(gram, "release") or (gram is None and 8 * n * n <= budget)
    if array and n <= _SMALL:
        return ["cholesky"]
    if array:  # with room for a float32 matrix beside K, or without
        return ["cg", "mixed", "cholesky"] if 8 * n * n + single <= budget else ["cg", "cholesky"]
    return ["cg", "mixed"] if single <= budget else ["cg"]


def cheapest(costs: dict[Any, Cost]) -> Any:
    """Return the key of the least cost, the first of several; None if there is none."""
    return min(costs, key=lambda way: costs[way].seconds, default=None)


def eigen_costs(
    kernel: Any, X: Any, n: int, k: int, found: int | None = None
) -> dict[tuple[str, str], Cost]:
    """Return the cost of k of n eigenpairs by each exact solver, and each way to hold K.

    `found` is how many LAPACK has to find, where k depends on the spectrum.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF
    >>> from mercer.solvers import cheapest, eigen_costs
    >>> X = np.zeros((3000, 256))
    >>> [cheapest(eigen_costs(RBF(), X, 3000, k))[0] for k in (10, 50, 300)]
    ['krylov', 'krylov', 'dense']
    """
    ways = (("dense", "dense"), ("krylov", "dense"), ("krylov", "tiled"))
    solvers: dict[str, Any] = {"dense": DenseEigen(), "krylov": BlockKrylov()}
    costs = {}
    for name, storage in ways:
        held, read = reading(kernel, X, n, stored=storage == "dense")
        count = found or k if name == "dense" else k
        costs[name, storage] = held + solvers[name].cost(n, count, read)
    return costs


def linear_machine(n: int, m: int, pairs: int = 1, max_memory: Any = None) -> str:
    """Return what a support vector machine of n points in m dense columns is best solved by.

    "smo", from rows of K, for few points or more columns than points; "primal", from the columns,
    where an interior point costs next to nothing; else "either", a `Relay` of both.
    """
    fits = BoxInterior.workspace(n, m, 2 * n) + 8 * n * m <= budget_in_bytes(max_memory)
    if n <= _LEAST_ROWS or m >= n or not fits:
        return "smo"
    return "either" if pairs > 1 or Relay.is_open(n, m) else "primal"
