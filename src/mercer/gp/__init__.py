"""Gaussian processes: what a search over theta maximises, and what data leave open."""

from .._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
