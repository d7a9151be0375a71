"""Learners that see points one after the other: perceptrons, recursive least squares, NORMA."""

from ._budget_perceptron import BudgetPerceptron
from ._learner import OnlineLearner, Schedule
from ._norma import Norma
from ._perceptron import Perceptron
from ._recursive import RecursiveLeastSquares

__all__ = [
    "BudgetPerceptron",
    "Norma",
    "OnlineLearner",
    "Perceptron",
    "RecursiveLeastSquares",
    "Schedule",
]
