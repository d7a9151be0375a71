"""Estimators with the scikit-learn API.

Each estimator validates its input and combines a kernel, a Gram matrix, a solver and an expansion
from the other packages. The numerical work is done there.
"""

from .._core import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
