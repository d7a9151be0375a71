"""Mean embeddings: distances of samples, tests, and summaries of a sample by a few points."""

from .._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
