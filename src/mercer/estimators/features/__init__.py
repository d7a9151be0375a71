"""Transformers to features phi(x) whose inner products equal or approximate a kernel."""

from ._explicit_transformer import AdditiveChi2Sampler, ExplicitFeatures
from ._nystroem import FlippedMap, Nystroem
from ._polynomial_count_sketch import CountSketchMap, PolynomialCountSketch
from ._random_fourier import RandomFeatures, RBFSampler, SkewedChi2Sampler

__all__ = [
    "AdditiveChi2Sampler",
    "CountSketchMap",
    "ExplicitFeatures",
    "FlippedMap",
    "Nystroem",
    "PolynomialCountSketch",
    "RBFSampler",
    "RandomFeatures",
    "SkewedChi2Sampler",
]
