"""Maps of points into a few dimensions: models that draw them, and how much of a map is true."""

from .._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
