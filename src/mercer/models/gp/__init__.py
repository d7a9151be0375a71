"""Gaussian processes: objectives for fitting kernel parameters (theta), and posteriors."""

from ..._core import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
