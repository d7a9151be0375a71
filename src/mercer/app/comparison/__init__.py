"""Comparison of embeddings of the same points by several models."""

from ..._core import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
