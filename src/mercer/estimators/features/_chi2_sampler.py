"""Approximate features of the additive chi-squared kernel."""

from __future__ import annotations

from dataclasses import KW_ONLY
from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import (
    _check_feature_names_in,
    check_is_fitted,
    check_non_negative,
    validate_data,
)

from ..._core import Points
from ...kernels import additive_chi2_features
from .._parameters import (
    POSITIVE,
    POSITIVE_INTEGER,
    estimator,
    fit_method,
    parameter,
    predict_method,
)
from .._plan_method import PlanMixin
from .._training_sample import Sample

# Default sampling interval for each number of steps: Vedaldi and Zisserman (2012), figure 3.
_DEFAULT_INTERVALS = {1: 0.8, 2: 0.5, 3: 0.4}


@estimator()
class AdditiveChi2Sampler(TransformerMixin, PlanMixin, BaseEstimator):
    """Approximate features of the additive chi-squared kernel, for non-negative data.

        phi(x) . phi(z)  is close to  sum_c 2 x_c z_c / (x_c + z_c),    x_c, z_c >= 0

    The features of each column x are, for j = 1 .. sample_steps - 1,

        sqrt(L x),    a_j cos(j L log x),    a_j sin(j L log x),    a_j = sqrt(2 L x sech(pi j L))

    They sample the spectrum of the kernel at multiples of the sampling interval L (Vedaldi and
    Zisserman, TPAMI 2012). The map is deterministic and does not depend on the training data.  A
    drop-in replacement for scikit-learn's `AdditiveChi2Sampler`.

    Parameters
    ----------
    sample_steps : int
        Number of multiples of L, including 0.  Each column has 2 sample_steps - 1 features.
    sample_interval : float or None
        The sampling interval L; None means 0.8, 0.5 or 0.4 for 1, 2 or 3 steps.
    n_jobs : int or None
        Number of threads; None means all processors.  It does not affect the results.

    Attributes
    ----------
    n_features_in_ : int
        Number of columns of X.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import AdditiveChi2Sampler
    >>> F = AdditiveChi2Sampler(sample_steps=3).fit_transform([[0.2, 0.8], [0.5, 0.5]])
    >>> F.shape
    (2, 10)
    >>> bool(abs(F[0] @ F[1] - (2 * 0.1 / 0.7 + 2 * 0.4 / 1.3)) < 0.03)
    True
    """

    _: KW_ONLY
    sample_steps: int = parameter(POSITIVE_INTEGER, default=2)
    sample_interval: float | None = parameter(POSITIVE, None, default=None)
    n_jobs: int | None = parameter(None, Integral, default=None)

    @fit_method
    def fit(self, X: Points, y: Any = None) -> Self:
        """Check X and store the number and names of its columns; y is ignored."""
        self._check(X, reset=True)
        self._interval()
        return self

    @predict_method
    def transform(self, X: Points) -> Any:
        """Return features, shape (n, (2 sample_steps - 1) n_features); sparse if X is sparse."""
        X = self._check(X, reset=False)
        return additive_chi2_features(X, self.sample_steps, self._interval())

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the features, such as additivechi2sampler_x0_cos1.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Names of the columns; None means the names seen in `fit`, or x0, x1, ...

        Returns
        -------
        ndarray of str objects
        """
        check_is_fitted(self, "n_features_in_")
        columns = _check_feature_names_in(self, input_features, generate_names=True)
        parts = [f"{wave}{j}" for j in range(1, self.sample_steps) for wave in ("cos", "sin")]
        prefix = type(self).__name__.lower()
        names = [f"{prefix}_{column}_{part}" for part in ["sqrt", *parts] for column in columns]
        return np.asarray(names, dtype=object)

    def _check(self, X: Points, *, reset: bool) -> Any:
        """Check X and return it; raise an error for negative values."""
        dtypes = [np.float64, np.float32]
        X = validate_data(self, X, accept_sparse="csr", dtype=dtypes, reset=reset)
        check_non_negative(X, f"X in {type(self).__name__}")
        return X

    def _planned_option(self, sample: Sample) -> tuple[str, dict[str, Any]]:
        m = (2 * self.sample_steps - 1) * sample.points.shape[1]
        option = {"solver": "sampled", "storage": "features", "exact": False, "rank": m}
        return f"{m} features of {len(sample)} points", {**option, "copies": 0.0}

    def _interval(self) -> float:
        """Return the sampling interval L."""
        if self.sample_interval is not None:
            return float(self.sample_interval)
        if self.sample_steps not in _DEFAULT_INTERVALS:
            raise ValueError(
                "If sample_steps is not in [1, 2, 3], you need to provide sample_interval; got "
                f"sample_steps={self.sample_steps}"
            )
        return _DEFAULT_INTERVALS[self.sample_steps]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.positive_only = True
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
