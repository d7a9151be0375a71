"""Frozen values that solve: systems (`factorize`) and eigenproblems (`eigenpairs`)."""

from ._choose import EIGEN, LINEAR, Problem, choose
from ._eigen import Arpack, DenseEigen, EigenPairs, RandomizedEigen
from ._linear import Cholesky, Factor, LeastSquares
from ._report import Report, Status

__all__ = [
    "EIGEN",
    "LINEAR",
    "Arpack",
    "Cholesky",
    "DenseEigen",
    "EigenPairs",
    "Factor",
    "LeastSquares",
    "Problem",
    "RandomizedEigen",
    "Report",
    "Status",
    "choose",
]
