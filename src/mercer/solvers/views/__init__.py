"""Kernel CCA and PLS: directions in which two views of the same points vary together."""

from ._canonical import CanonicalCorrelations
from ._coordinates import coordinates
from ._partial import PartialLeastSquares
from ._view import Relation, View, correlations

__all__ = ["CanonicalCorrelations", "PartialLeastSquares", "Relation", "View"]
__all__ += ["coordinates", "correlations"]
