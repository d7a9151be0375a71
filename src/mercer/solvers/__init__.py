"""Frozen values that solve: systems (`factorize`), spectra (`eigenpairs`), duals (`minimize`)."""

from ._bordered import Bordered
from ._cascade import Cascade
from ._certificate import Certificate, certify
from ._choose import EIGEN, LINEAR, Problem, choose
from ._conjugate import ConjugateGradient
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
from ._support import LearnedVectors
from ._tridiagonal import Tridiagonal
from ._whitened import Whitened
from .dual import BlockSMO, BoxInterior, Dual, DualSolution, Progress

__all__ = [
    "EIGEN",
    "LINEAR",
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
    "ExactPath",
    "ExactRidge",
    "Factor",
    "FourierEigen",
    "Krill",
    "LandmarkRidge",
    "LearnedVectors",
    "LeastSquares",
    "LowRankEigen",
    "MixedCholesky",
    "Moments",
    "NystroemPath",
    "PowerPeeling",
    "Problem",
    "Progress",
    "RandomizedEigen",
    "Report",
    "RidgePath",
    "ShiftedLowRank",
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
    "worst",
]
