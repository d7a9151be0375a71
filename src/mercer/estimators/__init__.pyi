from ._autoencoder import Autoencoder
from ._bayesian_gplvm import BayesianGPLVM
from ._cca import KernelCCA
from ._compress import compress
from ._density import ParzenDensity
from ._fisher import KernelFisherDiscriminant
from ._gaussian_process import GaussianProcessRegressor
from ._gaussian_process_classifier import GaussianProcessClassifier
from ._gplvm import GPLVM
from ._kernel_search import FoundKernel, search_kernels
from ._kmeans import KernelKMeans
from ._logistic import KernelLogisticRegression
from ._logistic_cv import KernelLogisticRegressionCV
from ._machine import KernelMachineClassifier, KernelMachineRegressor
from ._mds import MetricMDS
from ._neighbours import (
    KernelKNeighborsClassifier,
    KernelKNeighborsRegressor,
    KernelRadiusNeighborsClassifier,
)
from ._online_regression import KernelRecursiveLeastSquares, OnlineKernelRegressor
from ._pca import KernelPCA
from ._perceptron import KernelPerceptron
from ._pls import KernelPLS
from ._ppca import ProbabilisticPCA
from ._primal import to_dual, to_primal
from ._ridge import KernelRidge
from ._ridge_cv import KernelRidgeCV
from ._sparse import SparseKernelClassifier, SparseKernelRegressor
from ._tune import Tuned, tune
from .features import (
    AdditiveChi2Sampler,
    ExplicitFeatures,
    Nystroem,
    PolynomialCountSketch,
    RandomFeatures,
    RBFSampler,
    SkewedChi2Sampler,
)
from .svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM

# parts of fitted estimators, for files that hold them
from ._gaussian_process_classifier import LatentProcess as LatentProcess  # isort: skip
from ._gaussian_process_theta import KernelTranslation as KernelTranslation  # isort: skip
from ._gaussian_process_theta import SpelledObjective as SpelledObjective  # isort: skip
from ._two_views import SecondView as SecondView  # isort: skip
from .svm import PairExpansion as PairExpansion  # isort: skip
from .svm import Pairs as Pairs  # isort: skip

__all__ = [
    "GPLVM",
    "SVC",
    "SVR",
    "AdditiveChi2Sampler",
    "Autoencoder",
    "BayesianGPLVM",
    "ExplicitFeatures",
    "FoundKernel",
    "GaussianProcessClassifier",
    "GaussianProcessRegressor",
    "KernelCCA",
    "KernelFisherDiscriminant",
    "KernelKMeans",
    "KernelKNeighborsClassifier",
    "KernelKNeighborsRegressor",
    "KernelLogisticRegression",
    "KernelLogisticRegressionCV",
    "KernelMachineClassifier",
    "KernelMachineRegressor",
    "KernelPCA",
    "KernelPLS",
    "KernelPerceptron",
    "KernelRadiusNeighborsClassifier",
    "KernelRecursiveLeastSquares",
    "KernelRidge",
    "KernelRidgeCV",
    "MetricMDS",
    "NuSVC",
    "NuSVR",
    "Nystroem",
    "OneClassSVM",
    "OnlineKernelRegressor",
    "ParzenDensity",
    "PolynomialCountSketch",
    "ProbabilisticPCA",
    "RBFSampler",
    "RandomFeatures",
    "SkewedChi2Sampler",
    "SparseKernelClassifier",
    "SparseKernelRegressor",
    "Tuned",
    "compress",
    "search_kernels",
    "to_dual",
    "to_primal",
    "tune",
]
