from ._latent import LatentMap, default_kernel, fit_latent, principal_places, whitened
from ._linear_gaussian import LinearGaussian
from ._ppca import principal, with_gaps
from ._quality import EmbeddingQuality, Measures, embedding_quality

__all__ = [
    "EmbeddingQuality",
    "LatentMap",
    "LinearGaussian",
    "Measures",
    "default_kernel",
    "embedding_quality",
    "fit_latent",
    "principal",
    "principal_places",
    "whitened",
    "with_gaps",
]
