"""Regularised risks sum_i w_i loss(y_i, f(x_i) + b) + alpha g(|f|), and their solvers."""

from ._convex_risk import Machine
from ._gradient import GradientDescent
from ._in_passes import NewtonInPasses, RiskInBlocks
from ._interior_point import InteriorPoint
from ._learned_vectors import LearnedVectors
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
from ._penalty import Penalty
from ._regularised_risk import Minimum, RegularisedRisk
from ._short_expansion import ShortExpansionRisk
from ._whitened import Whitened, whiten

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
