"""The autoencoder, thin: checks, and scikit-learn's names for what `maps` finds."""

from __future__ import annotations

from dataclasses import KW_ONLY
from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from .._points import refuse_structured
from .._runtime import is_count, progress, random_numbers
from ..maps import ACTIVATIONS, Layers, autoencode
from ..solvers import Report
from ._base import Seed
from ._explorable import Explorable
from ._parameters import AT_LEAST_0, COUNT, POSITIVE, estimator, fitting, learned, parameter
from ._places import check_places, number_of_components, refuse_equal

__all__ = ["Autoencoder"]


@estimator()
class Autoencoder(Explorable, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """z = f(x) and x = g(z) by two small networks, which together lose as little as they can.

    Both have the hidden layers, the second in the opposite order: of 12 columns the layers are
    12-20-2-20-12 by default.  The bottleneck is linear, so that the map is not squeezed into a box.
    What is minimised, by L-BFGS from several random places, is the part of the variance that is
    lost, with weight decay:

        E = sum_i |x_i - g(f(x_i))|^2 / sum_i |x_i - mean|^2 + alpha sum_j |W_j|^2.

    E has many minima: `losses_` and `summary` tell how far apart the restarts ended.  Columns count
    by their variance, as in PCA; standardise them if their units differ.

    Parameters
    ----------
    n_components : int or None
        The dimensions of the map, not more than there are columns; None is 2, or 1 of two columns.
    hidden_layer_sizes : sequence of int
        Units of the layers from the data to the map.
    activation : {"tanh", "logistic", "relu", "identity"}
        The function of the hidden layers; "identity" leads to the plane of PCA.
    alpha : float
        The weight decay, for points of unit variance.
    n_init : int
        Restarts; the one with the least E is kept.
    tol : float
        A descent has converged when no slope of E is larger than this.
    max_iter : int
        The most steps of a descent.
    random_state : int, RandomState or None
        Of the places to start from; None stands for 0.
    verbose : int
        Whether to say how far the descents are.

    Attributes
    ----------
    encoder_, decoder_ : Layers
        f and g, for points as they come.  The axes of the map are principal ones, and its mean is
        0, which changes nothing in E but makes fits comparable.
    losses_ : ndarray of shape (n_init,)
        The E of each restart.
    report_ : Report
        What was done: steps and largest slope of the best restart, and the spread of all of them.
    n_iter_ : int
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import Autoencoder
    >>> t = np.linspace(-2.0, 2.0, 100)
    >>> X = np.stack([t, t**2, np.sin(2.0 * t)], axis=1)  # a curve
    >>> model = Autoencoder(1, hidden_layer_sizes=(8,)).fit(X)
    >>> Z = model.transform(X)
    >>> Z.shape, bool(np.all(np.diff(Z[:, 0]) > 0) or np.all(np.diff(Z[:, 0]) < 0))
    ((100, 1), True)
    >>> bool(-model.score(X) < 0.01 * X.var(axis=0).mean())  # PCA loses a third
    True
    """

    n_components: int | None = parameter(COUNT, None, default=None)
    _: KW_ONLY
    hidden_layer_sizes: Any = parameter("array-like", default=(20,))
    activation: str = parameter(StrOptions(set(ACTIVATIONS)), default="tanh")
    alpha: float = parameter(AT_LEAST_0, default=1e-4)
    n_init: int = parameter(COUNT, default=3)
    tol: float = parameter(POSITIVE, default=1e-4)
    max_iter: int = parameter(COUNT, default=5000)
    random_state: Seed = parameter("random_state", default=None)
    verbose: int = parameter("boolean", Interval(Integral, 0, None, closed="left"), default=0)

    encoder_: Layers = learned()
    decoder_: Layers = learned()
    losses_: np.ndarray = learned()
    report_: Report = learned()

    @fitting
    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the way to the map and back."""
        X = self._check(X, reset=True, ensure_min_samples=2)
        q = number_of_components(self.n_components, X.shape[1])
        refuse_equal(len(X), bool(np.all(X[0] == X)))
        hidden = tuple(self.hidden_layer_sizes)
        if not all(is_count(units) for units in hidden):
            raise ValueError(
                f"hidden_layer_sizes must be positive integers, got {self.hidden_layer_sizes!r}"
            )
        with progress(type(self).__name__, self.verbose) as say:
            found = autoencode(
                X,
                q,
                tuple(map(int, hidden)),
                self.activation,
                self.alpha,
                self.n_init,
                self.tol,
                self.max_iter,
                random_numbers(self.random_state),
                say,
            )
            self.encoder_, self.decoder_, self.losses_, self.report_ = found
            if say is not None:
                say(f"{self.losses_.min():.4g} of the variance lost, by the best of {self.n_init}")
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Return f(x), the place of each row in the map."""
        check_is_fitted(self)
        return self.encoder_(self._check(X))

    def inverse_transform(self, X: Any) -> np.ndarray:
        """Return g(z), what would be at each place z."""
        check_is_fitted(self)
        return self.decoder_(check_places(self, X, self._n_features_out))

    def score_samples(self, X: Any) -> np.ndarray:
        """Return -|x - g(f(x))|^2 / d of each row."""
        check_is_fitted(self)
        X = self._check(X)
        return np.asarray(-np.mean((X - self.decoder_(self.encoder_(X))) ** 2, axis=1))

    def score(self, X: Any, y: Any = None) -> float:
        """Return minus the mean squared error of a value, -sum_i |x_i - g(f(x_i))|^2 / (n d)."""
        return float(self.score_samples(X).mean())

    def summary(self) -> str:
        """Return what was fitted, how well, and at what cost, as text."""
        check_is_fitted(self)
        layers = [W.shape[0] for half in (self.encoder_, self.decoder_) for W in half.weights]
        sizes = "-".join(map(str, [*layers, self.n_features_in_]))
        lost = self.losses_
        report = str(self.report_).replace("\n", "\n  ")
        return "\n".join(
            [
                f"Autoencoder {sizes}, {self.activation}",
                f"  {report}",
                f"  lost       {lost.min():.4g} to {lost.max():.4g} of the variance "
                f"(with weight decay) after {len(lost)} restart{'s' * (len(lost) != 1)}",
            ]
        )

    @property
    def n_iter_(self) -> int:
        return self.report_.n_iter

    @property
    def _n_features_out(self) -> int:
        return int(self.encoder_.weights[-1].shape[1])

    def _check(self, X: Any, reset: bool = False, **options: Any) -> np.ndarray:
        refuse_structured(X, type(self).__name__)
        return np.asarray(validate_data(self, X, reset=reset, dtype=np.float64, **options))
