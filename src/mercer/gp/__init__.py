"""Gaussian processes: what a search over theta maximises, and what data leave open."""

from ._inducing import InducingBound
from ._leave_one_out import LeaveOneOut
from ._likelihood import MarginalLikelihood
from ._posterior import Conditioned, Posterior
from ._search import Optimum, maximise
from ._stochastic import Estimate, StochasticLikelihood
from ._system import pullback_bytes

__all__ = [
    "Conditioned",
    "Estimate",
    "InducingBound",
    "LeaveOneOut",
    "MarginalLikelihood",
    "Optimum",
    "Posterior",
    "StochasticLikelihood",
    "maximise",
    "pullback_bytes",
]
