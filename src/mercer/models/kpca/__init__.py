"""Kernel PCA: search for the components, and the fitted components as a value."""

from ._component_search import ComponentSearch, Found, same_map
from ._components import Components
from ._indefinite_spectrum import POLICIES, gains_of
from ._kpca_plan import Option, Plan
from ._learned_inverse import LearnedInverse
from ._reduced_components import reduced_components

__all__ = [
    "POLICIES",
    "ComponentSearch",
    "Components",
    "Found",
    "LearnedInverse",
    "Option",
    "Plan",
    "gains_of",
    "reduced_components",
    "same_map",
]
