from ._autoencoder import LostVariance, autoencode
from ._bayesian import BayesianMap, default_relevance, fit_bayesian
from ._distances import across, of_pairs
from ._latent import LatentMap, fit_latent, principal_places, whitened
from ._layers import ACTIVATIONS, Layers
from ._linear_gaussian import LinearGaussian
from ._placing import place, stress_at
from ._ppca import principal, with_gaps
from ._quality import EmbeddingQuality, Measures, embedding_quality
from ._scaling import classical, scale
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
