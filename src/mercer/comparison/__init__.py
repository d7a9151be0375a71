"""Maps of the same points by several models, side by side."""

from .._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
