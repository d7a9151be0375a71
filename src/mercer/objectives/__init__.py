"""What a search over the parameters of a kernel maximises: values and gradients in theta."""

from ._inducing import InducingBound
from ._leave_one_out import LeaveOneOut
from ._likelihood import MarginalLikelihood
from ._search import Optimum, maximise
from ._stochastic import Estimate, StochasticLikelihood

__all__ = [
    "Estimate",
    "InducingBound",
    "LeaveOneOut",
    "MarginalLikelihood",
    "Optimum",
    "StochasticLikelihood",
    "maximise",
]
