"""Kernel PCA: search for the components, and the fitted components as a value."""

from ._components import Components
from ._inverse import LearnedInverse
from ._plan import Option, Plan
from ._reduced import reduced_components
from ._search import ComponentSearch, Found, same_map
from ._spectrum import POLICIES, gains_of

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
