"""Gaussian processes: what a search over theta maximises, and what data leave open."""

from ._choose import choose_objective
from ._inducing import InducingBound
from ._leave_one_out import LeaveOneOut
from ._likelihood import MarginalLikelihood
from ._posterior import Conditioned, Posterior
from ._search import Optimum, maximise
from ._stochastic import Estimate, StochasticLikelihood

__all__ = [
    "Conditioned",
    "Estimate",
    "InducingBound",
    "LeaveOneOut",
    "MarginalLikelihood",
    "Optimum",
    "Posterior",
    "StochasticLikelihood",
    "choose_objective",
    "maximise",
]
