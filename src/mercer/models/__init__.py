"""Models built on expansions: kernel PCA, Gaussian processes, mean embeddings, embeddings."""

from .._core import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
