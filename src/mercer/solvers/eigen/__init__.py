"""Eigensolvers for kernel matrices, K u = l u.

Exact and approximate methods for all or the leading eigenpairs, with certified error bounds.
"""

from ._block_krylov import BlockKrylov
from ._certificate import Certificate, certify, unknown_certificate, weyl_certificate
from ._eigenpairs import EigenPairs, canonical_signs
from ._feature_eigen import (
    FourierEigen,
    LowRankEigen,
    eigenpairs_of_moments,
    eigenpairs_of_points,
    feature_moments,
)
from ._feature_moments import Moments
from ._library_solvers import Arpack, DenseEigen, RandomizedEigen
from ._power_deflation import PowerDeflation

from ._feature_eigen import FeatureBasis as FeatureBasis  # isort: skip

__all__ = [
    "Arpack",
    "BlockKrylov",
    "Certificate",
    "DenseEigen",
    "EigenPairs",
    "FourierEigen",
    "LowRankEigen",
    "Moments",
    "PowerDeflation",
    "RandomizedEigen",
    "canonical_signs",
    "certify",
    "eigenpairs_of_moments",
    "eigenpairs_of_points",
    "feature_moments",
    "unknown_certificate",
    "weyl_certificate",
]
