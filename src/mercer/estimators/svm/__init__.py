"""Support vector machines for classification, regression and outlier detection."""

from ._one_class import OneClassSVM
from ._pairs import PairExpansion, Pairs
from ._svc import SVC, NuSVC
from ._svr import SVR, NuSVR

__all__ = ["SVC", "SVR", "NuSVC", "NuSVR", "OneClassSVM", "PairExpansion"]
__all__ += ["Pairs"]
