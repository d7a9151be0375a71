"""Choice of the objective of a Gaussian process from the name of a solver."""

from __future__ import annotations

from typing import Any

from ...._core import budget_in_bytes, format_bytes, warn_caller
from .._exact_solve import pullback_workspace
from ._exact_likelihood import MarginalLikelihood
from ._inducing_bound import InducingBound
from ._stochastic_likelihood import StochasticLikelihood

__all__ = ["choose_objective"]

# Up to this many points "auto" uses the exact objective.  At this size, evaluating the likelihood
# once takes about a minute.
_MAX_EXACT_POINTS = 10_000
_OBJECTIVES: dict[str, Any] = {
    "cholesky": MarginalLikelihood,
    "exact": MarginalLikelihood,
    "nystroem": InducingBound,
    "cg": StochasticLikelihood,
}


def choose_objective(spec: str, n: int, max_memory: Any = None) -> Any:
    """Return the objective class for a solver name and a number of points.

    Parameters
    ----------
    spec : {"auto", "cholesky", "exact", "nystroem", "cg"}
        The solver name; see the table.
    n : int
        The number of points.
    max_memory : int, str or None
        The memory budget, in bytes or as a string such as "2 GiB"; used by "auto" only.

    Returns
    -------
    type
        A subclass of `Objective`.

    Notes
    -----
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
    >>> from mercer.models.gp import choose_objective
    >>> choose_objective("auto", 100).__name__
    'MarginalLikelihood'
    """
    if spec != "auto":
        return _OBJECTIVES[spec]
    # two n x n arrays: the stored Cholesky factor, and one for evaluating the likelihood
    needed = 16 * n * n + pullback_workspace(n)
    if n <= _MAX_EXACT_POINTS and needed <= budget_in_bytes(max_memory):
        return MarginalLikelihood
    warn_caller(
        f"an exact Gaussian process on {n} points takes {format_bytes(needed)} and about "
        f"{n**3:.0e} operations for each evaluation of the likelihood, so inducing points are "
        f"used: the result is approximate. Set solver='nystroem' to choose this approximation "
        f"explicitly, with `rank` inducing points, or solver='cholesky' for the exact result"
    )
    return InducingBound
