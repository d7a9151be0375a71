"""Kernel PCA: computation of the components, and the fitted components."""

from ..._core import former_names
from ._component_search import (
    INDEFINITE_POLICIES,
    ComponentSearch,
    ComponentSearchResult,
    inverse_sqrt,
    same_feature_map,
)
from ._components import Components, LearnedInverse, reduced_components

__getattr__ = former_names(__name__)

__all__ = [
    "INDEFINITE_POLICIES",
    "ComponentSearch",
    "ComponentSearchResult",
    "Components",
    "LearnedInverse",
    "inverse_sqrt",
    "reduced_components",
    "same_feature_map",
]
