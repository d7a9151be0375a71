from ._linear_gaussian import LinearGaussian
from ._ppca import principal, with_gaps
from ._quality import EmbeddingQuality, Measures, embedding_quality

__all__ = [
    "EmbeddingQuality",
    "LinearGaussian",
    "Measures",
    "embedding_quality",
    "principal",
    "with_gaps",
]
