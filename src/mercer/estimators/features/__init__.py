"""Feature maps phi with phi(x) . phi(z) near k(x, z), or equal to it, as transformers."""

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
