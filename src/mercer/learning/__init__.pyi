from ._aligned import TargetAlignment
from ._alignment import alignment
from ._expressions import ExpressionSearch, Story
from ._multiple import KernelWeights, MultipleKernel

__all__ = [
    "ExpressionSearch",
    "KernelWeights",
    "MultipleKernel",
    "Story",
    "TargetAlignment",
    "alignment",
]
