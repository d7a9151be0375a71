"""Kernel PCA: computation of the components, and the fitted components."""

from ..._core import former_names
from ._component_search import ComponentSearch, ComponentSearchResult, same_feature_map
from ._components import Components
from ._indefinite_spectrum import INDEFINITE_POLICIES, inverse_sqrt
from ._learned_inverse import LearnedInverse
from ._reduced_components import reduced_components

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
