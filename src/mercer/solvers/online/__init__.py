"""Online learners: perceptrons, kernel recursive least squares and stochastic gradient descent."""

from ._online_learner import OnlineLearner, Schedule
from ._perceptron import BudgetPerceptron, Perceptron
from ._regression_learners import Norma, RecursiveLeastSquares

__all__ = [
    "BudgetPerceptron",
    "Norma",
    "OnlineLearner",
    "Perceptron",
    "RecursiveLeastSquares",
    "Schedule",
]
