"""Kernel methods built on one sentence, the representer theorem: f = sum_i a_i k(x_i, .).

points -> Kernel -> Gram operator -> solver -> Expansion -> predict, transform, ...
"""

from . import datasets, gram, kernels, solvers
from ._errors import (
    DensifyWarning,
    KernelMismatchError,
    MemoryBudgetError,
    NotDifferentiableError,
    NotPositiveDefiniteError,
)
from ._reduce import Reduction
from ._version import __version__
from .estimators import (
    KernelPCA,
    KernelRidge,
    compress,
)
from .expansion import Expansion

__all__ = [
    "DensifyWarning",
    "Expansion",
    "KernelMismatchError",
    "KernelPCA",
    "KernelRidge",
    "MemoryBudgetError",
    "NotDifferentiableError",
    "NotPositiveDefiniteError",
    "Reduction",
    "__version__",
    "compress",
    "datasets",
    "gram",
    "kernels",
    "solvers",
]
