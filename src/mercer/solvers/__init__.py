"""Frozen values that solve: `factorize` systems, `eigenpairs` of K, `minimize` risks, ..."""

from .._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
