"""Kernel PCA: computation of the components, and the fitted components."""

from ._component_search import (
    INDEFINITE_POLICIES,
    ComponentSearch,
    ComponentSearchResult,
    inverse_sqrt,
    same_feature_map,
)
from ._components import Components, LearnedInverse, reduced_components
from ._kpca_plan import Option, Plan

__all__ = [
    "INDEFINITE_POLICIES",
    "ComponentSearch",
    "ComponentSearchResult",
    "Components",
    "LearnedInverse",
    "Option",
    "Plan",
    "inverse_sqrt",
    "reduced_components",
    "same_feature_map",
]
