"""choose_objective(): the only table from names to the objectives of a Gaussian process."""

from __future__ import annotations

from typing import Any

from .._errors import warn_caller
from .._runtime import budget_in_bytes, in_words
from ._exact import MarginalLikelihood
from ._inducing import InducingBound
from ._stochastic import StochasticLikelihood
from ._system import pullback_workspace

__all__ = ["choose_objective"]

_MOST_EXACT = 10_000  # points up to which "auto" is exact: there a likelihood takes a minute
_NAMES: dict[str, Any] = {
    "cholesky": MarginalLikelihood,
    "exact": MarginalLikelihood,
    "nystroem": InducingBound,
    "cg": StochasticLikelihood,
}


def choose_objective(spec: str, n: int, max_memory: Any = None) -> Any:
    """Return the objective of this name for n points.

    =========== ======================================== ====================
    spec        when                                     objective
    =========== ======================================== ====================
    "auto"      n <= 10 000, and two n x n arrays fit    MarginalLikelihood
                otherwise, with a warning                InducingBound
    "cholesky"                                           MarginalLikelihood
    "exact"                                              MarginalLikelihood
    "nystroem"                                           InducingBound
    "cg"                                                 StochasticLikelihood
    =========== ======================================== ====================

    Examples
    --------
    >>> from mercer.gp import choose_objective
    >>> choose_objective("auto", 100).__name__
    'MarginalLikelihood'
    """
    if spec != "auto":
        return _NAMES[spec]
    needed = 16 * n * n + pullback_workspace(n)  # a factor, and a likelihood beside it
    if n <= _MOST_EXACT and needed <= budget_in_bytes(max_memory):
        return MarginalLikelihood
    warn_caller(
        f"an exact Gaussian process on {n} points takes {in_words(needed)} and about "
        f"{n**3:.0e} operations for each likelihood, so inducing points are used: the "
        f"result is approximate. solver='nystroem' asks for that, with `rank` points; "
        f"solver='cholesky' is exact"
    )
    return InducingBound
