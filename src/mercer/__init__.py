"""Kernel methods built on one sentence, the representer theorem: f = sum_i a_i k(x_i, .).

points -> Kernel -> Gram operator -> solver -> Expansion -> predict, transform, ...
"""

from . import datasets, gp, gram, kernels, means, solvers
from ._errors import (
    DensifyWarning,
    KernelMismatchError,
    MemoryBudgetError,
    NotDifferentiableError,
    NotPositiveDefiniteError,
)
from ._version import __version__
from .estimators import (
    SVC,
    SVR,
    GaussianProcessRegressor,
    KernelFisherDiscriminant,
    KernelLogisticRegression,
    KernelLogisticRegressionCV,
    KernelMachineClassifier,
    KernelMachineRegressor,
    KernelPCA,
    KernelPerceptron,
    KernelRecursiveLeastSquares,
    KernelRidge,
    KernelRidgeCV,
    NuSVC,
    NuSVR,
    OneClassSVM,
    OnlineKernelRegressor,
    ParzenDensity,
    SparseKernelClassifier,
    SparseKernelRegressor,
    compress,
)
from .expansion import Expansion
from .kernels import Graphs
from .means import herd, hsic, independence_test, mmd, thin, two_sample_test
from .reduce import Reduction

__all__ = [
    "SVC",
    "SVR",
    "DensifyWarning",
    "Expansion",
    "GaussianProcessRegressor",
    "Graphs",
    "KernelFisherDiscriminant",
    "KernelLogisticRegression",
    "KernelLogisticRegressionCV",
    "KernelMachineClassifier",
    "KernelMachineRegressor",
    "KernelMismatchError",
    "KernelPCA",
    "KernelPerceptron",
    "KernelRecursiveLeastSquares",
    "KernelRidge",
    "KernelRidgeCV",
    "MemoryBudgetError",
    "NotDifferentiableError",
    "NotPositiveDefiniteError",
    "NuSVC",
    "NuSVR",
    "OneClassSVM",
    "OnlineKernelRegressor",
    "ParzenDensity",
    "Reduction",
    "SparseKernelClassifier",
    "SparseKernelRegressor",
    "__version__",
    "compress",
    "datasets",
    "gp",
    "gram",
    "herd",
    "hsic",
    "independence_test",
    "kernels",
    "means",
    "mmd",
    "solvers",
    "thin",
    "two_sample_test",
]
