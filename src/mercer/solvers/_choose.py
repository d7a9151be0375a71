"""choose(): the only table from names and sizes to solvers."""

from __future__ import annotations

from enum import Enum
from typing import Any

from ._eigen import Arpack, DenseEigen, RandomizedEigen
from ._krylov import BlockKrylov
from ._linear import Cholesky, LeastSquares
from ._lowrank import FourierEigen, LowRankEigen
from ._power import PowerPeeling

__all__ = ["EIGEN", "LINEAR", "Problem", "choose"]


class Problem(Enum):
    """What is to be solved."""

    LINEAR = "(K + shift) a = y"
    EIGEN = "K u = l u"


LINEAR, EIGEN = Problem.LINEAR, Problem.EIGEN

_NAMES: dict[Problem, dict[str, Any]] = {
    LINEAR: {"cholesky": Cholesky, "lstsq": LeastSquares},
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
    problem: Problem, gram: Any, spec: Any = "auto", *, k: int | None = None, **options: Any
) -> Any:
    """Return the solver for `problem` on `gram`.

    ========= ========== ============================================ =================
    problem   spec       when                                         solver
    ========= ========== ============================================ =================
    LINEAR    "auto"                                                  Cholesky
              a name     "cholesky", "lstsq"                          that solver
    EIGEN     "auto"     fewer than n / 5 pairs, and n > 1500 or K    BlockKrylov
                         is not an array
                         otherwise                                    DenseEigen
              a name     "dense", "krylov", "nystroem", "features",   that solver
                         "power", "arpack", "randomized"
    either    a solver                                                itself
    ========= ========== ============================================ =================

    Parameters
    ----------
    problem : Problem
    gram : GramOperator or CentredGram
    spec : str or solver
    k : int, optional
        How many eigenpairs are wanted; None for all.
    **options
        For a solver given by name; those that only other solvers have are dropped.

    Examples
    --------
    >>> from mercer.gram import gram
    >>> from mercer.kernels import Linear
    >>> from mercer.solvers import EIGEN, choose
    >>> choose(EIGEN, gram(Linear(), [[1.0], [2.0]]), k=1)
    DenseEigen()
    """
    if not isinstance(spec, str):
        verb = "factorize" if problem is LINEAR else "eigenpairs"
        if not hasattr(spec, verb):
            raise TypeError(f"{spec!r} is no solver for {problem.value}: it has no {verb}()")
        return spec
    names = _NAMES[problem]
    if spec == "auto":
        spec = "cholesky" if problem is LINEAR else _eigen_name(gram, k)
    if spec not in names:
        raise ValueError(
            f"unknown solver {spec!r} for {problem.value}; use 'auto', {sorted(names)} or a solver"
        )
    known = {name for solver in names.values() for name in solver.__dataclass_fields__}
    if unknown := sorted(options.keys() - known):
        raise TypeError(f"no solver for {problem.value} has the options {unknown}")
    fields = names[spec].__dataclass_fields__
    return names[spec](**{name: v for name, v in options.items() if name in fields})


def _eigen_name(gram: Any, k: int | None) -> str:
    n = gram.shape[0]
    if k is None or 5 * k >= n:
        return "dense"
    held = getattr(gram, "gram", gram)
    return "krylov" if n > 1500 or not hasattr(held, "release") else "dense"
