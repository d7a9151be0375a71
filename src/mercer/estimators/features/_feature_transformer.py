"""Base class and helpers of transformers that compute a feature map of vectors."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from ..._core import Points
from ...blocks import Blocks
from ...gram import FeatureMap
from .._blockwise import draw_candidates
from .._kernel_estimator import (
    FeatureMixin,
    Seed,
    points_need_no_validation,
    precision,
    record_n_features,
)
from .._parameters import estimator, fitted, parameter, predict_method
from .._plan_method import PlanMixin, n_of
from .._training_sample import Sample


@estimator(kw_only=True)
class FeatureTransformer(FeatureMixin, PlanMixin, BaseEstimator):
    """Base class of the transformers of vectors whose feature map does not depend on the data.

    Parameters
    ----------
    random_state : int, RandomState or None
        Random seed; None means 0, so that fits are reproducible. Vary it to see how much results
        depend on the random features.
    n_jobs : int or None
        Number of threads; None means all processors.  It does not affect the results.
    """

    random_state: Seed = parameter("random_state", default=None)
    n_jobs: int | None = parameter(None, Integral, default=None)

    _map: FeatureMap = fitted()
    _sparse: ClassVar[bool] = True  # whether sparse matrices are accepted
    _accepts_blocks: ClassVar[bool] = True

    @predict_method
    def transform(self, X: Points) -> np.ndarray:
        """Return the features phi(x) of points, whose inner products approximate the kernel.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            Points, one per row, with the columns of the training data. If X is in blocks, so is the
            result, which is computed lazily.

        Returns
        -------
        ndarray of shape (n, n_components)
            The features; float32 if X is float32, otherwise float64.
        """
        check_is_fitted(self)
        X = self._map_input(self._check(X, reset=False))
        return self._map.features(X, dtype=precision(X))

    def _check(self, X: Points, *, reset: bool) -> Points:
        """Check X and return it as float32 or float64; of `Blocks`, a random sample of the rows."""
        if isinstance(X, Blocks):
            names, X = X.names, self._check(draw_candidates(X).X, reset=reset)
            if names is not None:
                self.feature_names_in_ = np.asarray(names, dtype=object)
            return X
        if points_need_no_validation(self, X, reset):
            return record_n_features(self, X, reset)
        formats: Any = "csr" if self._sparse else False
        dtypes = [np.float64, np.float32]
        return validate_data(self, X, accept_sparse=formats, dtype=dtypes, reset=reset)

    def _planned_option(self, sample: Sample) -> tuple[str, dict[str, Any]]:
        return planned_features(sample, getattr(self, "n_components", 1))

    def _map_input(self, X: Points) -> Points:
        """Convert points to the input of the feature map; subclasses may override this."""
        return X

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_map")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._sparse
        return tags

    @property
    def _n_features_out(self) -> int:
        return len(self._map)


def planned_features(sample: Sample, m: int) -> tuple[str, dict[str, Any]]:
    """Return the plan of m random features; see `PlanMixin._planned_option`."""
    memory = 16 * m * sample.points.shape[1]  # frequencies, which are orthogonalised in a copy
    option = {"solver": "random", "storage": "features", "exact": False, "rank": m}
    problem = f"{n_of(m, 'feature')} of {len(sample)} points"
    return problem, {**option, "extra": memory, "copies": 0.0}


def check_features(X: Points, m: int) -> np.ndarray:
    """Check that features are finite numbers with m columns, and return them as an array."""
    X = np.asarray(X, dtype=float)
    if X.ndim != 2 or X.shape[1] != m:
        raise ValueError(
            f"features must have one column for each of the {m} features of the map, got shape "
            f"{X.shape}"
        )
    if not np.all(np.isfinite(X)):
        raise ValueError("features contain values that are not finite")
    return X
