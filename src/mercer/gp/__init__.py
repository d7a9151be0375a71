"""Gaussian processes: what a search over theta maximises, and what data leave open."""

from ._choose import choose_objective
from ._exact import LeaveOneOut, MarginalLikelihood
from ._inducing import InducingBound
from ._laplace import LaplaceLikelihood, expected_probability
from ._objective import Objective
from ._posterior import Conditioned, Posterior
from ._search import Optimum, maximise
from ._stochastic import Estimate, StochasticLikelihood
from ._validation import CRITERIA, RidgeCriterion

__all__ = [
    "CRITERIA",
    "Conditioned",
    "Estimate",
    "InducingBound",
    "LaplaceLikelihood",
    "LeaveOneOut",
    "MarginalLikelihood",
    "Objective",
    "Optimum",
    "Posterior",
    "RidgeCriterion",
    "StochasticLikelihood",
    "choose_objective",
    "expected_probability",
    "maximise",
]
