"""Frozen values that solve: systems (`factorize`) and eigenproblems (`eigenpairs`)."""

from ._certificate import Certificate
from ._choose import EIGEN, LINEAR, Problem, choose
from ._eigen import Arpack, DenseEigen, RandomizedEigen
from ._krylov import BlockKrylov
from ._linear import Cholesky, Factor, LeastSquares
from ._lowrank import FourierEigen, LowRankEigen
from ._moments import Moments
from ._pairs import EigenPairs
from ._power import PowerPeeling
from ._report import Report, Status
from ._support import LearnedVectors

__all__ = [
    "EIGEN",
    "LINEAR",
    "Arpack",
    "BlockKrylov",
    "Certificate",
    "Cholesky",
    "DenseEigen",
    "EigenPairs",
    "Factor",
    "FourierEigen",
    "LearnedVectors",
    "LeastSquares",
    "LowRankEigen",
    "Moments",
    "PowerPeeling",
    "Problem",
    "RandomizedEigen",
    "Report",
    "Status",
    "choose",
]
