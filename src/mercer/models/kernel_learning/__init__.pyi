from ._kernel_alignment import TargetAlignment, alignment
from ._multiple_kernel import KernelWeights, MultipleKernel
from ._structure_search import ExpressionSearch, SearchLog

__all__ = [
    "ExpressionSearch",
    "KernelWeights",
    "MultipleKernel",
    "SearchLog",
    "TargetAlignment",
    "alignment",
]
