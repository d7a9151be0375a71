"""Kernel ridge regression: for one alpha, for a path of alphas, and on landmarks.

Also Fisher discriminants, which follow from ridge regression on class indicators.
"""

from ._discriminants import Discriminants
from ._krill import Krill
from ._path import BlockedPath, ExactPath, NystroemPath, RidgePath
from ._ridge import ExactRidge, LandmarkRidge
from ._tridiagonal import Tridiagonal

__all__ = [
    "BlockedPath",
    "Discriminants",
    "ExactPath",
    "ExactRidge",
    "Krill",
    "LandmarkRidge",
    "NystroemPath",
    "RidgePath",
    "Tridiagonal",
]
