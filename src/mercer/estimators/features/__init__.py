"""Transformers to features phi(x) whose inner products equal or approximate a kernel."""

from ._chi2 import AdditiveChi2Sampler
from ._explicit import ExplicitFeatures
from ._nystroem import Nystroem
from ._polynomial import PolynomialCountSketch
from ._waves import RandomFeatures, RBFSampler, SkewedChi2Sampler

__all__ = [
    "AdditiveChi2Sampler",
    "ExplicitFeatures",
    "Nystroem",
    "PolynomialCountSketch",
    "RBFSampler",
    "RandomFeatures",
    "SkewedChi2Sampler",
]
