from ._accelerate import accelerate
from ._convert import compress, to_dual, to_primal
from ._kernel_kmeans import KernelKMeans
from ._kernel_neighbors import (
    KernelKNeighborsClassifier,
    KernelKNeighborsRegressor,
    KernelRadiusNeighborsClassifier,
)
from ._kernel_search import FoundKernel, search_kernels
from ._parzen_density import ParzenDensity
from ._tune import Tuned, tune
from .decomposition._kernel_ica import KernelICA
from .decomposition._kernel_pca import KernelPCA
from .decomposition._two_views import KernelCCA, KernelPLS
from .embedding._autoencoder import Autoencoder
from .embedding._gplvm import GPLVM, BayesianGPLVM
from .embedding._latent_model import ProbabilisticPCA
from .embedding._metric_mds import MetricMDS
from .embedding._neuroscale import NeuroScale
from .features import (
    AdditiveChi2Sampler,
    CountSketchMap,
    ExplicitFeatures,
    FlippedMap,
    Nystroem,
    PolynomialCountSketch,
    RandomFeatures,
    RBFSampler,
    SkewedChi2Sampler,
)
from .gaussian_process._gp_classifier import GaussianProcessClassifier
from .gaussian_process._gp_regressor import GaussianProcessRegressor
from .supervised._fisher_discriminant import KernelFisherDiscriminant
from .supervised._kernel_logistic import KernelLogisticRegression
from .supervised._kernel_logistic_cv import KernelLogisticRegressionCV
from .supervised._kernel_machine import KernelMachineClassifier, KernelMachineRegressor
from .supervised._kernel_perceptron import KernelPerceptron
from .supervised._kernel_ridge import KernelRidge
from .supervised._kernel_ridge_cv import KernelRidgeCV
from .supervised._online_learning import KernelRecursiveLeastSquares, OnlineKernelRegressor
from .supervised._recursive_feature_machine import RFMClassifier, RFMRegressor
from .supervised._sparse_kernel_machine import SparseKernelClassifier, SparseKernelRegressor
from .support_vector import SVC, SVR, NuSVC, NuSVR, OneClassSVM

# parts of fitted estimators, for files that hold them
from ._accelerate import AcceleratedModel as AcceleratedModel  # isort: skip
from ._parameters import fitted_types as fitted_types  # isort: skip
from ._parameters import estimator as estimator  # isort: skip  # used by mercer.tables
from ._parameters import fitted as fitted  # isort: skip
from ._parameters import parameter as parameter  # isort: skip
from .gaussian_process._gp_classifier import LatentProcess as LatentProcess  # isort: skip
from .gaussian_process._gp_kernel_parameters import (  # isort: skip
    ThetaMap as ThetaMap,
)
from .gaussian_process._gp_kernel_parameters import (  # isort: skip
    ReparametrisedObjective as ReparametrisedObjective,
)
from .decomposition._two_views import SecondView as SecondView  # isort: skip
from .support_vector import PairExpansion as PairExpansion  # isort: skip
from .support_vector import Pairs as Pairs  # isort: skip

__all__ = [
    "GPLVM",
    "SVC",
    "SVR",
    "AdditiveChi2Sampler",
    "Autoencoder",
    "BayesianGPLVM",
    "CountSketchMap",
    "ExplicitFeatures",
    "FlippedMap",
    "FoundKernel",
    "GaussianProcessClassifier",
    "GaussianProcessRegressor",
    "KernelCCA",
    "KernelFisherDiscriminant",
    "KernelICA",
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
    "NeuroScale",
    "NuSVC",
    "NuSVR",
    "Nystroem",
    "OneClassSVM",
    "OnlineKernelRegressor",
    "ParzenDensity",
    "PolynomialCountSketch",
    "ProbabilisticPCA",
    "RBFSampler",
    "RFMClassifier",
    "RFMRegressor",
    "RandomFeatures",
    "SkewedChi2Sampler",
    "SparseKernelClassifier",
    "SparseKernelRegressor",
    "Tuned",
    "accelerate",
    "compress",
    "search_kernels",
    "to_dual",
    "to_primal",
    "tune",
]
