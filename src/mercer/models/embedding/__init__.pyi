from ._autoencoder_training import LostVariance, autoencode
from ._bayesian_gplvm_training import BayesianMap, default_relevance, fit_bayesian
from ._embedding_quality import EmbeddingQuality, Measures, embedding_quality
from ._gplvm_training import LatentMap, fit_latent, principal_places, whitened
from ._linear_gaussian import LinearGaussian
from ._mds_training import classical, scale
from ._mlp import ACTIVATIONS, Layers
from ._out_of_sample import place, stress_at
from ._pairwise_distances import across, of_pairs
from ._ppca_training import principal, with_gaps
from ._stress import Stress

__all__ = [
    "ACTIVATIONS",
    "BayesianMap",
    "EmbeddingQuality",
    "LatentMap",
    "Layers",
    "LinearGaussian",
    "LostVariance",
    "Measures",
    "Stress",
    "across",
    "autoencode",
    "classical",
    "default_relevance",
    "embedding_quality",
    "fit_bayesian",
    "fit_latent",
    "of_pairs",
    "place",
    "principal",
    "principal_places",
    "scale",
    "stress_at",
    "whitened",
    "with_gaps",
]
