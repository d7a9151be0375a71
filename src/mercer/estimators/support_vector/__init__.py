"""Support vector machines for classification, regression and outlier detection."""

from ._one_vs_one import PairExpansion, Pairs
from ._single_function_svm import SVR, NuSVR, OneClassSVM
from ._svc import SVC, NuSVC

__all__ = ["SVC", "SVR", "NuSVC", "NuSVR", "OneClassSVM", "PairExpansion"]
__all__ += ["Pairs"]
