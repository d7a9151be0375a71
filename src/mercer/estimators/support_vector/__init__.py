"""Support vector machines for classification, regression and outlier detection."""

from ._single_function_svm import SVR, NuSVR, OneClassSVM
from ._svc import SVC, NuSVC
from ._svm_training import PairExpansion, Pairs

__all__ = ["SVC", "SVR", "NuSVC", "NuSVR", "OneClassSVM", "PairExpansion"]
__all__ += ["Pairs"]
