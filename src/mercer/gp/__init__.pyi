from ._capabilities import Capabilities as Capabilities  # isort: skip
from ._choose import choose_objective
from ._exact import LeaveOneOut, MarginalLikelihood
from ._inducing import InducingBound

from ._iterative import Preconditioned as Preconditioned  # isort: skip
from ._iterative import Solved as Solved  # isort: skip
from ._laplace import LaplaceLikelihood
from ._latent import LatentLikelihood
from ._latent_bound import LatentBound, LatentState, RowBound
from ._logistic import expected_probability
from ._objective import Objective
from ._posterior import Conditioned, Posterior

from ._projection import Projection as Projection  # isort: skip
from ._psi import expectations, length_scales, with_relevance
from ._search import Optimum, maximise

from ._search import ways as ways  # isort: skip
from ._softmax import ClassCovariance, expected_softmax
from ._stochastic import Estimate, StochasticLikelihood
from ._validation import CRITERIA, RidgeCriterion

__all__ = [
    "CRITERIA",
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
