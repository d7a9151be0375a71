"""Support vector machines for classification, regression and outlier detection."""

from ._one_class_svm import OneClassSVM
from ._one_vs_one import PairExpansion, Pairs
from ._svc import SVC, NuSVC
from ._svr import SVR, NuSVR

__all__ = ["SVC", "SVR", "NuSVC", "NuSVR", "OneClassSVM", "PairExpansion"]
__all__ += ["Pairs"]
