from ._autoencoder import LostVariance, autoencode
from ._layers import ACTIVATIONS, Layers
from ._linear_gaussian import LinearGaussian
from ._ppca import principal, with_gaps
from ._quality import EmbeddingQuality, Measures, embedding_quality

__all__ = [
    "ACTIVATIONS",
    "EmbeddingQuality",
    "Layers",
    "LinearGaussian",
    "LostVariance",
    "Measures",
    "autoencode",
    "embedding_quality",
    "principal",
    "with_gaps",
]
