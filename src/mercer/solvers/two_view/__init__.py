"""Kernel CCA and PLS: directions in which two views of the same points vary together."""

from ._cca_solver import CanonicalCorrelations
from ._pls_solver import PartialLeastSquares
from ._views import Relation, View, coordinates, correlations

__all__ = ["CanonicalCorrelations", "PartialLeastSquares", "Relation", "View"]
__all__ += ["coordinates", "correlations"]
