"""Mean embeddings: MMD and HSIC, hypothesis tests, sample summaries, density estimation."""

from ..._core import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
