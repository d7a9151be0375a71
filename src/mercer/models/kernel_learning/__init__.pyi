from ._kernel_alignment import TargetAlignment, alignment
from ._multiple_kernel import KernelWeights, MultipleKernel
from ._recursive_features import METRIC_FAMILIES as METRIC_FAMILIES
from ._recursive_features import ColumnScaling as ColumnScaling
from ._recursive_features import FeatureChoice as FeatureChoice
from ._recursive_features import FeatureSearch as FeatureSearch
from ._recursive_features import MetricFamily as MetricFamily
from ._recursive_features import RidgeFit as RidgeFit
from ._recursive_features import (
    average_gradient_outer_product as average_gradient_outer_product,
)
from ._recursive_features import best_ridge as best_ridge
from ._recursive_features import calibrate as calibrate
from ._recursive_features import principal_directions as principal_directions
from ._structure_search import ExpressionSearch, SearchLog

__all__ = [
    "ExpressionSearch",
    "KernelWeights",
    "MultipleKernel",
    "SearchLog",
    "TargetAlignment",
    "alignment",
]
