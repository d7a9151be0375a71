"""Ridge regression as a problem: one alpha, all of them at once, or many landmarks."""

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
