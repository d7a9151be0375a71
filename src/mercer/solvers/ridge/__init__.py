"""Kernel ridge regression: for one alpha, for a path of alphas, and on landmarks.

It also contains Fisher discriminants, which are computed from ridge regression on class indicators.
"""

from ._fisher_discriminants import Discriminants
from ._ridge_path import ExactPath, NystroemPath, RidgePath
from ._ridge_problem import ExactRidge, LandmarkRidge
from ._sketched_cg import Krill
from ._tridiagonal import Tridiagonal

__all__ = [
    "Discriminants",
    "ExactPath",
    "ExactRidge",
    "Krill",
    "LandmarkRidge",
    "NystroemPath",
    "RidgePath",
    "Tridiagonal",
]
