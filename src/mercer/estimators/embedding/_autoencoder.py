"""Autoencoder: scikit-learn interface to `mercer.models.embedding.autoencode`."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from ..._core import Points, is_count, progress, reject_structured, seeded_generator
from ...models.embedding import ACTIVATIONS, MLP, fit_autoencoder
from ...solvers import Report
from .._kernel_estimator import ExploreMixin, Seed
from .._parameters import estimator, fit_method, fitted, parameter
from .._plan_method import PlanMixin, n_of
from .._training_sample import Sample
from ._latent_model import check_latent_coordinates, require_distinct_rows, resolve_n_components


@estimator()
class Autoencoder(
    ExploreMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, PlanMixin, BaseEstimator
):
    """Nonlinear dimensionality reduction with a small neural network.

    An encoder z = f(x) maps points to a low-dimensional embedding, and a decoder x = g(z) maps
    embedded points back. Both networks have the same hidden layers, the decoder in reverse order:
    for data with 12 columns the default layers are 12-20-2-20-12. The bottleneck layer is linear,
    so that the coordinates of the embedding are not confined to the range of the activation
    function.

    L-BFGS minimises the fraction of variance that is lost, plus weight decay, from several random
    initialisations, with weight matrices W_j:

        E = sum_i |x_i - g(f(x_i))|^2 / sum_i |x_i - mean|^2 + alpha sum_j |W_j|^2.

    E has many local minima; `losses_` and `summary` show how much the restarts differ. Columns with
    a larger variance have more influence, as in PCA; standardise the columns if their units differ.

    Parameters
    ----------
    n_components : int or None
        The dimension of the embedding, at most the number of columns. None means 2, or 1 if X has
        two columns or fewer. 2 suits plots; more dimensions lose less variance.
    hidden_layer_sizes : sequence of int
        The number of units in each hidden layer of the encoder. Wider or more layers give more
        flexible maps, and need more data or a larger alpha.
    activation : {"tanh", "logistic", "relu", "identity"}
        The activation function of the hidden layers. "tanh" gives smooth maps, and "relu" piecewise
        linear ones. With "identity" the embedding spans the same subspace as PCA.
    alpha : float
        The weight decay, for data scaled to unit variance. Larger values give smoother maps. Choose
        it by the `score` of held-out rows, for instance from 10^-6 to 10^-2.
    n_init : int
        The number of random initialisations; the result with the smallest E is used. Increase it if
        `losses_` differ much.
    tol : float
        A restart has converged when the largest absolute entry of the gradient of E is at most tol.
        Smaller values take more iterations.
    max_iter : int
        The maximum number of L-BFGS iterations per restart.
    random_state : int, RandomState or None
        Seed of the initial weights; None means 0.
    verbose : int
        Whether to print progress.

    Attributes
    ----------
    encoder_, decoder_ : MLP
        The networks f and g, which take and return unscaled data. The embedding has mean 0 and
        its axes are principal axes; this does not change E, but makes fits comparable.
    losses_ : ndarray of shape (n_init,)
        The value of E after each restart.
    report_ : Report
        Iterations and largest gradient entry of the best restart, and the range of `losses_`.
    n_iter_ : int
        The number of iterations of the best restart.
    n_features_in_ : int
        The number of columns of X.

    See Also
    --------
    KernelPCA : A nonlinear embedding without local minima.
    GPLVM : A probabilistic nonlinear embedding, for smaller data.
    ProbabilisticPCA : The linear case, with missing values.
    sklearn.neural_network.MLPRegressor : Networks for supervised regression.

    References
    ----------
    Kramer, "Nonlinear principal component analysis using autoassociative neural networks", AIChE
    Journal 37, 1991.

    Hinton and Salakhutdinov, "Reducing the dimensionality of data with neural networks", Science
    313, 2006.

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

    n_components: int | None = parameter("positive integer", None, default=None)
    _: KW_ONLY
    hidden_layer_sizes: Any = parameter("array-like", default=(20,))
    activation: str = parameter(set(ACTIVATIONS), default="tanh")
    alpha: float = parameter("non-negative", default=1e-4)
    n_init: int = parameter("positive integer", default=3)
    tol: float = parameter("positive", default=1e-4)
    max_iter: int = parameter("positive integer", default=5000)
    random_state: Seed = parameter("random_state", default=None)
    verbose: int = parameter("boolean", "non-negative integer", default=0)

    encoder_: MLP = fitted()
    decoder_: MLP = fitted()
    losses_: np.ndarray = fitted()
    report_: Report = fitted()

    @fit_method
    def fit(self, X: Points, y: object = None) -> Self:
        """Train the encoder and the decoder on the rows of X.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Training data; standardise the columns if their units differ.
        y : None, default=None
            Ignored; it is a parameter because pipelines pass it.

        Returns
        -------
        self : Autoencoder
            The fitted estimator.
        """
        X = self._check(X, reset=True, ensure_min_samples=2)
        q = resolve_n_components(self.n_components, X.shape[1])
        require_distinct_rows(len(X), bool(np.all(X[0] == X)))
        hidden = tuple(self.hidden_layer_sizes)
        if not all(is_count(units) for units in hidden):
            raise ValueError(
                f"hidden_layer_sizes must be positive integers, got {self.hidden_layer_sizes!r}"
            )
        with progress(type(self).__name__, self.verbose) as log:
            result = fit_autoencoder(
                X,
                q,
                tuple(map(int, hidden)),
                self.activation,
                self.alpha,
                self.n_init,
                self.tol,
                self.max_iter,
                seeded_generator(self.random_state),
                log,
            )
            self.encoder_, self.decoder_, self.losses_, self.report_ = result
            if log is not None:
                log(
                    f"{self.losses_.min():.4g} of the variance lost in the best of {self.n_init} "
                    f"restarts"
                )
        return self

    def transform(self, X: Points) -> np.ndarray:
        """Return f(x), the coordinates of each row in the embedding.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Points, one per row, with the columns of the training data.

        Returns
        -------
        ndarray of shape (n, n_components)
            The coordinates.
        """
        check_is_fitted(self)
        return self.encoder_(self._check(X))

    def inverse_transform(self, X: Points) -> np.ndarray:
        """Return g(z), the reconstruction of each embedded point.

        Parameters
        ----------
        X : array-like of shape (n, n_components)
            Coordinates z in the embedding, as `transform` returns them.

        Returns
        -------
        ndarray of shape (n, d)
            Points in the units of the training data.
        """
        check_is_fitted(self)
        return self.decoder_(check_latent_coordinates(self, X, self._n_features_out))

    def score_samples(self, X: Points) -> np.ndarray:
        """Return minus the mean squared reconstruction error of each row, -|x - g(f(x))|^2 / d.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Points, one per row, with the columns of the training data.

        Returns
        -------
        ndarray of shape (n,)
            Values of at most 0; low values mean points unlike the training data.
        """
        check_is_fitted(self)
        X = self._check(X)
        return np.asarray(-np.mean((X - self.decoder_(self.encoder_(X))) ** 2, axis=1))

    def score(self, X: Points, y: object = None) -> float:
        """Return minus the mean squared error, -sum_i |x_i - g(f(x_i))|^2 / (n d).

        Parameters
        ----------
        X : array-like of shape (n, d)
            Points, one per row, with the columns of the training data.
        y : None, default=None
            Ignored; it is a parameter because pipelines pass it.

        Returns
        -------
        float
            The mean of `score_samples`; larger is better.
        """
        return float(self.score_samples(X).mean())

    def summary(self) -> str:
        """Return a text with the layers, the quality of the fit and its cost.

        Returns
        -------
        str
            Several lines, to print.
        """
        check_is_fitted(self)
        layers = [W.shape[0] for half in (self.encoder_, self.decoder_) for W in half.weights]
        sizes = "-".join(map(str, [*layers, self.n_features_in_]))
        losses = self.losses_
        report = str(self.report_).replace("\n", "\n  ")
        return "\n".join(
            [
                f"Autoencoder {sizes}, {self.activation}",
                f"  {report}",
                f"  lost       {losses.min():.4g} to {losses.max():.4g} of the variance "
                f"(with weight decay) after {len(losses)} restart{'s' * (len(losses) != 1)}",
            ]
        )

    @property
    def n_iter_(self) -> int:
        """The number of iterations of the best restart."""
        return self.report_.n_iter

    @property
    def _n_features_out(self) -> int:
        return int(self.encoder_.weights[-1].shape[1])

    def _planned_option(self, sample: Sample) -> tuple[str, dict[str, Any]]:
        n, d = sample.points.shape
        units = sum(2 * int(units) for units in self.hidden_layer_sizes) + d
        problem = f"an autoencoder of {n} points, {n_of(self.n_init, 'start')}"
        return problem, {"solver": "lbfgs", "exact": False, "extra": 24 * n * units, "copies": 2.0}

    def _check(self, X: Points, reset: bool = False, **options: Any) -> np.ndarray:
        """Return X as a validated float64 array."""
        reject_structured(X, type(self).__name__)
        return np.asarray(validate_data(self, X, reset=reset, dtype=np.float64, **options))
