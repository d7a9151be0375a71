"""choose(), and what else turns names and sizes into solvers: the only place that compares."""

from __future__ import annotations

from enum import Enum
from typing import Any

import numpy as np

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
    """What is to be solved.

    Examples
    --------
    >>> from mercer.solvers import EIGEN, Problem
    >>> EIGEN is Problem.EIGEN, EIGEN.value
    (True, 'K u = l u')
    """

    LINEAR = "(K + shift) a = y"
    EIGEN = "K u = l u"


LINEAR, EIGEN = Problem.LINEAR, Problem.EIGEN

_SMALL = 2000  # points up to which a float64 factor costs next to nothing
_ATTEMPT = 0.05  # the part of the cost of a factor that conjugate gradients may spend on pivots
_LEAST_RANK = 50  # of their preconditioner
_LEAST_STEPS = 20  # of conjugate gradients, or they are not tried
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
    kernel: Any = None,
    X: Any = None,
    columns: int = 1,
    max_memory: Any = None,
    **options: Any,
) -> Any:
    """Return the solver for `problem` on `gram`.

    ========= ========== ============================================ =================
    problem   spec       when                                         solver
    ========= ========== ============================================ =================
    LINEAR    "auto"     K is an array, or would fit; n <= 2000       Cholesky
                         the same, n > 2000, and 4 n^2 bytes beside   CG, mixed, Cholesky
                         the same, without these, or if Cholesky      CG, Cholesky
                         costs less than mixed (costly entries)
                         4 n^2 bytes fit                              CG, mixed
                         otherwise                                    CG
              a name     "cholesky", "mixed", "cg", "lstsq"           that solver
    EIGEN     "auto"     the least cost: see `eigen_costs`            BlockKrylov or
                                                                      DenseEigen
              a name     "dense", "krylov", "nystroem", "features",   that solver
                         "power", "arpack", "randomized"
    either    a solver                                                itself
    ========= ========== ============================================ =================

    "CG, mixed" is a `Cascade`: the pivots of the preconditioner, on which at most 5 % of the cost
    of a factorisation is spent, tell how many steps ConjugateGradient will take.  If these cost
    more than a factorisation, MixedCholesky takes over, to which the spectrum matters little.  All
    end at about the residual of a float64 Cholesky factor, which is checked.

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
    kernel, X : Kernel and points, optional
        What a Gram would be of: they say what an entry of K costs.
    columns : int
        How many right-hand sides there are.
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
    names_in_turn, held, reads = _linear_plan(
        n or 0, gram, kernel, X, columns, budget_in_bytes(max_memory)
    )
    if len(names_in_turn) == 1:
        return make(names_in_turn[0])
    trial, hold = _attempt(make("cg"), n or 0, make(names_in_turn[1]), held, reads, columns)
    trial = {name: value for name, value in trial.items() if name not in options}
    stages = tuple(make(name, **(trial if name == "cg" else {})) for name in names_in_turn)
    return Cascade(stages, hold if "cholesky" in names_in_turn and "tiled" in reads else np.inf)


def _linear_plan(
    n: int, gram: Any, kernel: Any, X: Any, columns: int, budget: int
) -> tuple[list[str], Cost, dict[str, Cost]]:
    """Return the linear solvers to try in turn, what an array costs, and a pass over K by storage.

    Where K is not held yet and both ways fit, the cheaper of the two factorisations decides.
    """
    given = gram is not None
    kernel, X = (gram.kernel, gram.X) if given else (kernel, X)
    held, dense = reading(kernel, X, n, stored=True)
    tiled = reading(kernel, X, n, stored=False)[1]
    single = MixedCholesky().workspace(n)
    array = hasattr(gram, "release") if given else 8 * n * n <= budget
    if array and n <= _SMALL:
        return ["cholesky"], held, {"dense": dense}
    room = 8 * n * n + single <= budget
    if array and (given or not room):
        return ["cg", "mixed", "cholesky"] if room else ["cg", "cholesky"], held, {"dense": dense}
    if not array:
        return ["cg", "mixed"] if single <= budget else ["cg"], held, {"tiled": tiled}
    costs = {
        "cholesky": held + Cholesky.cost(n, dense, columns),
        "mixed": tiled + MixedCholesky.cost(n, tiled, columns),
    }
    if cheapest(costs) == "cholesky":
        return ["cg", "cholesky"], held, {"dense": dense}
    return ["cg", "mixed", "cholesky"], held, {"dense": dense, "tiled": tiled}


def _attempt(
    cg: Any, n: int, direct: Any, held: Cost, reads: dict[str, Cost], columns: int
) -> tuple[dict[str, Any], float]:
    """Return the rank and the steps of conjugate gradients that `direct` leaves room for.

    And the number of steps from which it pays to hold K.
    """
    first = reads.get("tiled") or reads["dense"]
    whole = direct.cost(n, first, columns).seconds
    prepared, step = cg.cost(n, first, columns)
    saved, hold = 0.0, np.inf
    if len(reads) == 2:
        quick = cg.cost(n, reads["dense"], columns)[1]
        saved = step.seconds - quick.seconds
        hold = held.seconds / saved if saved > 0 else np.inf
    most = (whole - prepared.seconds) / step.seconds
    if most > hold:
        most = (whole - prepared.seconds - held.seconds) / (step.seconds - saved)
    trial: dict[str, Any] = {
        "max_iter": max(_LEAST_STEPS, int(2.0 * most))
    }  # a Cascade expects half
    if prepared.seconds > _ATTEMPT * whole:  # it grows with the square of the rank
        affordable = int(cg._rank(n) * np.sqrt(_ATTEMPT * whole / prepared.seconds))
        trial["rank"] = min(n, max(_LEAST_RANK, affordable))
    return trial, hold


def cheapest(costs: dict[Any, Cost]) -> Any:
    """Return the key of the least cost, the first of several; None if there is none.

    Examples
    --------
    >>> from mercer.solvers import Cost, cheapest
    >>> cheapest({"read it": Cost(read=1e9), "read it twice": Cost(read=2e9)})
    'read it'
    """
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
        more = {"rounds": kernel._rounds} if storage == "tiled" else {}
        costs[name, storage] = held + solvers[name].cost(n, count, read, **more)
    return costs


def linear_machine(n: int, m: int, largest: int | None = None, max_memory: Any = None) -> str:
    """Return what a support vector machine of n points in m dense columns is best solved by.

    `largest` is how many points two classes have, of several.  "smo", from rows of K, for few
    points or more columns than points; "primal", from the columns, where an interior point costs
    next to nothing; else "either", a `Relay` of both.

    Examples
    --------
    >>> from mercer.solvers import linear_machine
    >>> linear_machine(200, 10), linear_machine(100_000, 10)
    ('smo', 'primal')
    """
    fits = BoxInterior.workspace(n, m, 2 * n) + 8 * n * m <= budget_in_bytes(max_memory)
    largest = n if largest is None else largest
    if largest <= _LEAST_ROWS or m >= largest or not fits:
        return "smo"
    return "either" if largest < n or Relay.is_open(n, m) else "primal"
