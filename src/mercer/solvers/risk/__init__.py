"""Regularised risks sum_i w_i loss(y_i, f(x_i) + b) + alpha g(|f|), and their solvers."""

from ._basis_learning import LearnedVectors
from ._gradient_descent import GradientDescent
from ._loss_interior_point import InteriorPoint
from ._losses import (
    Absolute,
    EpsilonInsensitive,
    Given,
    Huber,
    Logistic,
    Loss,
    PiecewiseQuadratic,
    Poisson,
    Quantile,
    Softmax,
    Squared,
    SquaredHinge,
)
from ._newton import Newton
from ._newton_blockwise import NewtonInPasses, RiskInBlocks
from ._norm_penalty import Machine
from ._penalty import Penalty
from ._reduced_expansion import ShortExpansionRisk
from ._regularised_risk import Minimum, RegularisedRisk
from ._whitening import Whitened, whiten

__all__ = [
    "Absolute",
    "EpsilonInsensitive",
    "Given",
    "GradientDescent",
    "Huber",
    "InteriorPoint",
    "LearnedVectors",
    "Logistic",
    "Loss",
    "Machine",
    "Minimum",
    "Newton",
    "NewtonInPasses",
    "Penalty",
    "PiecewiseQuadratic",
    "Poisson",
    "Quantile",
    "RegularisedRisk",
    "RiskInBlocks",
    "ShortExpansionRisk",
    "Softmax",
    "Squared",
    "SquaredHinge",
    "Whitened",
    "whiten",
]
