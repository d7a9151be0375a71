"""Regularised risks sum_i w_i loss(y_i, f(x_i) + b) + alpha g(|f|), and their solvers."""

from ._basis_learning import LearnedVectors
from ._cutting_planes import CuttingPlanes
from ._cutting_planes import max_stored_cuts as max_stored_cuts
from ._loss_interior_point import InteriorPoint
from ._losses import (
    Absolute,
    CustomLoss,
    EpsilonInsensitive,
    Hinge,
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
from ._newton_blockwise import OutOfCoreNewton as OutOfCoreNewton
from ._newton_blockwise import OutOfCoreRisk as OutOfCoreRisk
from ._norm_penalty import NormPenaltySolver, Penalty
from ._reduced_expansion import ReducedExpansionRisk
from ._regularised_risk import Minimum, RegularisedRisk
from ._smooth_risk_solvers import GradientDescent, Newton
from ._whitening import WhitenedCoordinates, whiten

__all__ = [
    "Absolute",
    "CustomLoss",
    "CuttingPlanes",
    "EpsilonInsensitive",
    "GradientDescent",
    "Hinge",
    "Huber",
    "InteriorPoint",
    "LearnedVectors",
    "Logistic",
    "Loss",
    "Minimum",
    "Newton",
    "NormPenaltySolver",
    "Penalty",
    "PiecewiseQuadratic",
    "Poisson",
    "Quantile",
    "ReducedExpansionRisk",
    "RegularisedRisk",
    "Softmax",
    "Squared",
    "SquaredHinge",
    "WhitenedCoordinates",
    "whiten",
]
