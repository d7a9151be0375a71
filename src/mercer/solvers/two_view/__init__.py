"""Kernel CCA and PLS: directions in which two views of the same points vary together."""

from ._cca_solver import CanonicalCorrelations
from ._pls_solver import PartialLeastSquares
from ._views import TwoViewResult, View, columnwise_correlations, two_view_coordinates

__all__ = ["CanonicalCorrelations", "PartialLeastSquares", "TwoViewResult", "View"]
__all__ += ["columnwise_correlations", "two_view_coordinates"]
