"""Online learners: perceptrons, kernel recursive least squares and stochastic gradient descent."""

from ._budget_perceptron import BudgetPerceptron
from ._norma import Norma
from ._online_learner import OnlineLearner, Schedule
from ._perceptron import Perceptron
from ._recursive_least_squares import RecursiveLeastSquares

__all__ = [
    "BudgetPerceptron",
    "Norma",
    "OnlineLearner",
    "Perceptron",
    "RecursiveLeastSquares",
    "Schedule",
]
