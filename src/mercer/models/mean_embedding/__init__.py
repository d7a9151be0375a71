"""Mean embeddings: distances between samples, hypothesis tests, sample summaries, densities."""

from ..._core import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
