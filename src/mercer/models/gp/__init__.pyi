from .objectives._gp_objective import Capabilities as Capabilities  # isort: skip
from .objectives._choose_objective import choose_objective
from .objectives._exact_likelihood import LeaveOneOut, MarginalLikelihood
from .objectives._inducing_bound import InducingBound

from ._cg_posterior import Preconditioned as Preconditioned  # isort: skip
from ._cg_posterior import Solved as Solved  # isort: skip
from ._logistic_likelihood import expected_probability
from ._posterior import Conditioned, Posterior
from .objectives._bgplvm_bound import LatentBound, LatentState, RowBound
from .objectives._gp_objective import Objective
from .objectives._gplvm_objective import LatentLikelihood
from .objectives._laplace_likelihood import LaplaceLikelihood

from ._inducing_projection import Projection as Projection  # isort: skip
from ._optimise import Optimum, maximise
from ._psi_statistics import expectations, length_scales, with_relevance

from ._optimise import first_steps as first_steps  # isort: skip
from ._softmax_likelihood import ClassCovariance, expected_softmax
from .objectives._ridge_criteria import RIDGE_CRITERIA, RidgeCriterion
from .objectives._stochastic_likelihood import Estimate, StochasticLikelihood

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
