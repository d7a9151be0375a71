"""Frozen values that solve: `factorize` systems, `eigenpairs` of K, `minimize` risks and duals."""

from . import dual, eigen, linear, ridge, risk
from ._choose import EIGEN, LINEAR, Problem, choose, dense_is_quicker
from ._report import Report, Status, enough, judged, worst
from .dual import *
from .eigen import *
from .linear import *
from .ridge import *
from .risk import *

__all__ = [
    "EIGEN",
    "LINEAR",
    "Problem",
    "Report",
    "Status",
    "choose",
    "dense_is_quicker",
    "enough",
    "judged",
    "worst",
]
__all__ += linear.__all__ + eigen.__all__ + ridge.__all__ + risk.__all__ + dual.__all__
