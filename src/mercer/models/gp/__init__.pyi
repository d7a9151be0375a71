from ._gp_objective import Capabilities as Capabilities  # isort: skip
from ._exact_likelihood import RIDGE_CRITERIA, LeaveOneOut, MarginalLikelihood, RidgeCriterion
from ._inducing_bound import InducingBound

from ._stochastic_likelihood import Preconditioned as Preconditioned  # isort: skip
from ._stochastic_likelihood import Solved as Solved  # isort: skip
from ._gp_objective import Objective
from ._laplace_likelihood import (
    ClassCovariance,
    LaplaceLikelihood,
    expected_probability,
    expected_softmax,
)
from ._latent_objectives import LatentBound, LatentLikelihood, LatentState, RowBound
from ._posterior import Conditioned, Posterior

from ._inducing_bound import Projection as Projection  # isort: skip
from ._latent_objectives import expectations, length_scales, with_relevance
from ._optimise import Optimum, maximise

from ._optimise import first_steps as first_steps  # isort: skip
from ._stochastic_likelihood import Estimate, StochasticLikelihood, choose_objective
from ._stochastic_likelihood import exact_likelihood_memory as exact_likelihood_memory

__all__ = [
    "RIDGE_CRITERIA",
    "ClassCovariance",
    "Conditioned",
    "Estimate",
    "InducingBound",
    "LaplaceLikelihood",
    "LatentBound",
    "LatentLikelihood",
    "LatentState",
    "LeaveOneOut",
    "MarginalLikelihood",
    "Objective",
    "Optimum",
    "Posterior",
    "RidgeCriterion",
    "RowBound",
    "StochasticLikelihood",
    "choose_objective",
    "expectations",
    "expected_probability",
    "expected_softmax",
    "length_scales",
    "maximise",
    "with_relevance",
]
