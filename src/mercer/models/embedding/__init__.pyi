from ._autoencoder_training import ReconstructionLoss, fit_autoencoder
from ._bayesian_gplvm_training import BayesianGPLVMModel, default_ard_kernel, fit_bayesian_gplvm
from ._embedding_quality import EmbeddingQuality, QualityMeasures, embedding_quality
from ._gplvm_training import GPLVMModel, fit_gplvm, pca_scores, scale_to_unit_variance
from ._linear_gaussian import LinearGaussian
from ._mds_training import classical_mds, metric_mds
from ._mlp import ACTIVATIONS, MLP
from ._out_of_sample import embed_new_points, stress_of_points
from ._pairwise_distances import feature_space_cdist, feature_space_pdist
from ._ppca_training import fit_ppca, fit_ppca_missing
from ._stress import Stress

__all__ = [
    "ACTIVATIONS",
    "MLP",
    "BayesianGPLVMModel",
    "EmbeddingQuality",
    "GPLVMModel",
    "LinearGaussian",
    "QualityMeasures",
    "ReconstructionLoss",
    "Stress",
    "classical_mds",
    "default_ard_kernel",
    "embed_new_points",
    "embedding_quality",
    "feature_space_cdist",
    "feature_space_pdist",
    "fit_autoencoder",
    "fit_bayesian_gplvm",
    "fit_gplvm",
    "fit_ppca",
    "fit_ppca_missing",
    "metric_mds",
    "pca_scores",
    "scale_to_unit_variance",
    "stress_of_points",
]
