"""Kernel ridge regression: for one alpha, for a path of alphas, and on landmarks.

It also contains Fisher discriminants, which are computed from ridge regression on class indicators.
"""

from ._fisher_discriminants import Discriminants
from ._jackknife import DualSmoother as DualSmoother
from ._jackknife import check_interval_memory as check_interval_memory
from ._jackknife import interval_bounds as interval_bounds
from ._jackknife import interval_rank as interval_rank
from ._jackknife import invert_lower as invert_lower
from ._jackknife import jackknife_bounds as jackknife_bounds
from ._jackknife import warn_if_infinite as warn_if_infinite
from ._ridge_path import Calibration as Calibration
from ._ridge_path import ExactPath, NystroemPath, RidgePath
from ._ridge_problem import ExactRidge, LandmarkRidge
from ._ridge_problem import kernel_rows as kernel_rows
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
