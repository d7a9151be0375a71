from ._alignment_objective import TargetAlignment
from ._kernel_alignment import alignment
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
