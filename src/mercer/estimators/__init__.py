"""scikit-learn estimators: thin, each a kernel, a Gram, a solver and an expansion."""

from ._compress import compress
from ._density import ParzenDensity
from ._gaussian_process import GaussianProcessRegressor
from ._logistic import KernelLogisticRegression
from ._logistic_cv import KernelLogisticRegressionCV
from ._machine_classifier import KernelMachineClassifier
from ._machine_regressor import KernelMachineRegressor
from ._pca import KernelPCA
from ._ridge import KernelRidge
from ._ridge_cv import KernelRidgeCV
from ._sparse_classifier import SparseKernelClassifier
from ._sparse_regressor import SparseKernelRegressor
from .svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM

__all__ = [
    "SVC",
    "SVR",
    "GaussianProcessRegressor",
    "KernelLogisticRegression",
    "KernelLogisticRegressionCV",
    "KernelMachineClassifier",
    "KernelMachineRegressor",
    "KernelPCA",
    "KernelRidge",
    "KernelRidgeCV",
    "NuSVC",
    "NuSVR",
    "OneClassSVM",
    "ParzenDensity",
    "SparseKernelClassifier",
    "SparseKernelRegressor",
    "compress",
]
