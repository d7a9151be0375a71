"""Low-dimensional embeddings: the models that compute them, and measures of their quality."""

from ..._core import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
