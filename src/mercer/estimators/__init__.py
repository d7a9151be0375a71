"""scikit-learn estimators: thin, each a kernel, a Gram, a solver and an expansion."""

from ._compress import compress
from ._density import ParzenDensity
from ._fisher import KernelFisherDiscriminant
from ._gaussian_process import GaussianProcessRegressor
from ._logistic import KernelLogisticRegression
from ._logistic_cv import KernelLogisticRegressionCV
from ._machine import KernelMachineClassifier, KernelMachineRegressor
from ._online import KernelPerceptron, KernelRecursiveLeastSquares, OnlineKernelRegressor
from ._pca import KernelPCA
from ._ridge import KernelRidge
from ._ridge_cv import KernelRidgeCV
from ._sparse import SparseKernelClassifier, SparseKernelRegressor
from .svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM

__all__ = [
    "SVC",
    "SVR",
    "GaussianProcessRegressor",
    "KernelFisherDiscriminant",
    "KernelLogisticRegression",
    "KernelLogisticRegressionCV",
    "KernelMachineClassifier",
    "KernelMachineRegressor",
    "KernelPCA",
    "KernelPerceptron",
    "KernelRecursiveLeastSquares",
    "KernelRidge",
    "KernelRidgeCV",
    "NuSVC",
    "NuSVR",
    "OneClassSVM",
    "OnlineKernelRegressor",
    "ParzenDensity",
    "SparseKernelClassifier",
    "SparseKernelRegressor",
    "compress",
]
