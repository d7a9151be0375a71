"""Frozen values that solve: `factorize` systems, `eigenpairs` of K, `minimize` risks and duals."""

from ._bordered import Bordered
from ._box import BoxInterior
from ._cascade import Cascade
from ._certificate import Certificate, certify
from ._choose import EIGEN, LINEAR, Problem, choose
from ._conjugate import ConjugateGradient
from ._dual import Dual, DualSolution
from ._eigen import Arpack, DenseEigen, RandomizedEigen
from ._krill import Krill
from ._krylov import BlockKrylov
from ._linear import Cholesky, Factor, LeastSquares, warn_inaccurate
from ._lowrank import (
    FourierEigen,
    LowRankEigen,
    eigenpairs_of_moments,
    eigenpairs_of_points,
    moments_of,
)
from ._mixed import MixedCholesky
from ._moments import Moments
from ._pairs import EigenPairs, signs_of
from ._path import ExactPath, NystroemPath, RidgePath
from ._power import PowerPeeling
from ._report import Report, Status, enough, judged, worst
from ._ridge import ExactRidge, LandmarkRidge
from ._shifted import ShiftedLowRank
from ._smo import BlockSMO
from ._tridiagonal import Tridiagonal
from .risk import (
    Absolute,
    EpsilonInsensitive,
    Given,
    GradientDescent,
    Huber,
    InteriorPoint,
    LearnedVectors,
    Logistic,
    Loss,
    Machine,
    Minimum,
    Newton,
    Penalty,
    PiecewiseQuadratic,
    Poisson,
    Quantile,
    RegularisedRisk,
    ShortExpansionRisk,
    Softmax,
    Squared,
    SquaredHinge,
    Whitened,
    whiten,
)

__all__ = [
    "EIGEN",
    "LINEAR",
    "Absolute",
    "Arpack",
    "BlockKrylov",
    "BlockSMO",
    "Bordered",
    "BoxInterior",
    "Cascade",
    "Certificate",
    "Cholesky",
    "ConjugateGradient",
    "DenseEigen",
    "Dual",
    "DualSolution",
    "EigenPairs",
    "EpsilonInsensitive",
    "ExactPath",
    "ExactRidge",
    "Factor",
    "FourierEigen",
    "Given",
    "GradientDescent",
    "Huber",
    "InteriorPoint",
    "Krill",
    "LandmarkRidge",
    "LearnedVectors",
    "LeastSquares",
    "Logistic",
    "Loss",
    "LowRankEigen",
    "Machine",
    "Minimum",
    "MixedCholesky",
    "Moments",
    "Newton",
    "NystroemPath",
    "Penalty",
    "PiecewiseQuadratic",
    "Poisson",
    "PowerPeeling",
    "Problem",
    "Quantile",
    "RandomizedEigen",
    "RegularisedRisk",
    "Report",
    "RidgePath",
    "ShiftedLowRank",
    "ShortExpansionRisk",
    "Softmax",
    "Squared",
    "SquaredHinge",
    "Status",
    "Tridiagonal",
    "Whitened",
    "certify",
    "choose",
    "eigenpairs_of_moments",
    "eigenpairs_of_points",
    "enough",
    "judged",
    "moments_of",
    "signs_of",
    "warn_inaccurate",
    "whiten",
    "worst",
]
