"""Compare the embeddings that several models compute for the same points."""

from ..._core import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
