"""Ridge regression as a problem: one alpha, all of them at once, or many landmarks."""

from ._krill import Krill
from ._path import ExactPath, NystroemPath, RidgePath
from ._ridge import ExactRidge, LandmarkRidge
from ._tridiagonal import Tridiagonal

__all__ = [
    "ExactPath",
    "ExactRidge",
    "Krill",
    "LandmarkRidge",
    "NystroemPath",
    "RidgePath",
    "Tridiagonal",
]
