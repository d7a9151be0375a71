from ._adam import Adam
from ._autoencoder_training import ACTIVATIONS, MLP, ReconstructionLoss, fit_autoencoder
from ._embedding_quality import EmbeddingQuality, QualityMeasures, embedding_quality
from ._embedding_quality import feature_space_cdist as feature_space_cdist
from ._embedding_quality import feature_space_pdist as feature_space_pdist
from ._gplvm_training import BayesianGPLVMModel, GPLVMModel, fit_bayesian_gplvm, fit_gplvm
from ._gplvm_training import default_ard_kernel as default_ard_kernel
from ._gplvm_training import pca_scores as pca_scores
from ._gplvm_training import scale_to_unit_variance as scale_to_unit_variance
from ._ica_rotation import CONTRASTS as CONTRASTS
from ._ica_rotation import IndependentRotation as IndependentRotation
from ._ica_rotation import PairDependence as PairDependence
from ._ica_rotation import find_independent_rotation as find_independent_rotation
from ._mds_training import Stress, classical_mds, metric_mds
from ._mds_training import embed_new_points as embed_new_points
from ._mds_training import stress_of_points as stress_of_points
from ._neuroscale_training import fit_neuroscale as fit_neuroscale
from ._ppca_training import LinearGaussian, fit_ppca, fit_ppca_missing

__all__ = [
    "ACTIVATIONS",
    "MLP",
    "Adam",
    "BayesianGPLVMModel",
    "EmbeddingQuality",
    "GPLVMModel",
    "LinearGaussian",
    "QualityMeasures",
    "ReconstructionLoss",
    "Stress",
    "classical_mds",
    "embedding_quality",
    "fit_autoencoder",
    "fit_bayesian_gplvm",
    "fit_gplvm",
    "fit_ppca",
    "fit_ppca_missing",
    "metric_mds",
]
