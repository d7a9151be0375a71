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
    AdditiveChi2Sampler,
    ExplicitFeatures,
    GaussianProcessRegressor,
    KernelLogisticRegression,
    KernelLogisticRegressionCV,
    KernelMachineClassifier,
    KernelMachineRegressor,
    KernelPCA,
    KernelRidge,
    KernelRidgeCV,
    NuSVC,
    NuSVR,
    Nystroem,
    OneClassSVM,
    ParzenDensity,
    PolynomialCountSketch,
    RandomFeatures,
    RBFSampler,
    SkewedChi2Sampler,
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
    "AdditiveChi2Sampler",
    "DensifyWarning",
    "Expansion",
    "ExplicitFeatures",
    "GaussianProcessRegressor",
    "Graphs",
    "KernelLogisticRegression",
    "KernelLogisticRegressionCV",
    "KernelMachineClassifier",
    "KernelMachineRegressor",
    "KernelMismatchError",
    "KernelPCA",
    "KernelRidge",
    "KernelRidgeCV",
    "MemoryBudgetError",
    "NotDifferentiableError",
    "NotPositiveDefiniteError",
    "NuSVC",
    "NuSVR",
    "Nystroem",
    "OneClassSVM",
    "ParzenDensity",
    "PolynomialCountSketch",
    "RBFSampler",
    "RandomFeatures",
    "Reduction",
    "SkewedChi2Sampler",
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
