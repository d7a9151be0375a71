from ._quality import EmbeddingQuality, Measures, embedding_quality

__all__ = ["EmbeddingQuality", "Measures", "embedding_quality"]
