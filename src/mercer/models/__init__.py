"""Models behind the estimators: kernel PCA, Gaussian processes, mean embeddings and others."""

from .._core import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
