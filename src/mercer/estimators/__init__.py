"""scikit-learn estimators: thin, each a kernel, a Gram, a solver and an expansion."""

from .._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
