"""Eigensolvers for kernel matrices, K u = l u.

The solvers compute all eigenpairs or only the leading ones, exactly or approximately; most of them
also return certified error bounds.
"""

from ._block_krylov import BlockKrylov
from ._certificate import Certificate, certify
from ._certificate import unknown_certificate as unknown_certificate
from ._certificate import weyl_certificate as weyl_certificate
from ._eigenpairs import EigenPairs
from ._eigenpairs import canonical_signs as canonical_signs
from ._feature_eigen import FourierEigen, LowRankEigen
from ._feature_eigen import eigenpairs_of_moments as eigenpairs_of_moments
from ._feature_eigen import eigenpairs_of_points as eigenpairs_of_points
from ._feature_eigen import feature_moments as feature_moments
from ._feature_moments import Moments
from ._standard_eigensolvers import Arpack, DenseEigen, PowerDeflation, RandomizedEigen

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
    "certify",
]
