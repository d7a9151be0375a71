"""Autoencoder: scikit-learn interface to `mercer.models.embedding.autoencode`."""

from __future__ import annotations

from dataclasses import KW_ONLY
from itertools import pairwise
from numbers import Integral, Real
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted, validate_data

from ..._core import (
    Points,
    check_budget,
    is_count,
    progress,
    reject_structured,
    seeded_generator,
)
from ...models.embedding import ACTIVATIONS, MLP, Adam, fit_autoencoder
from ...solvers import Report
from .._kernel_estimator import ExploreMixin, Seed
from .._parameters import estimator, fit_method, fitted, parameter, solver
from .._plan_method import PlanMixin, n_of
from .._training_sample import Sample
from ._latent_model import check_latent_coordinates, require_distinct_rows, resolve_n_components

_BATCH_SIZE = 256  # larger batches use the processor better, smaller ones make more steps per epoch
# From these sizes on, the default network has two hidden layers; smaller data do not determine it.
_MIN_DEEP_POINTS, _MIN_DEEP_COLUMNS = 2000, 100
# From this number of products of weights and points on, an epoch takes longer than about 10 ms, and
# the thousands of steps of L-BFGS take minutes.
_MIN_ADAM_PRODUCTS = 2e7


class _Settings(NamedTuple):
    """The parameters of a fit; `adam` is None for L-BFGS."""

    hidden: tuple[int, ...]
    adam: Adam | None
    activation: str
    alpha: float
    n_init: int
    max_iter: int
    tol: float


# Default values of activation, alpha, n_init, max_iter and tol for each solver.
_LBFGS_DEFAULTS = ("tanh", 1e-4, 3, 5000, 1e-4)
_ADAM_DEFAULTS = ("relu", 1e-5, 1, 50, 0.02)


@estimator()
class Autoencoder(
    ExploreMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, PlanMixin, BaseEstimator
):
    """Nonlinear dimensionality reduction with a neural network.

    An encoder z = f(x) maps points to a low-dimensional embedding, and a decoder x = g(z) maps
    embedded points back. Both networks have the same hidden layers, the decoder in reverse order:
    for data with 12 columns the default layers are 12-20-2-20-12. The bottleneck layer is linear,
    so that the coordinates of the embedding are not confined to the range of the activation
    function.

    The fit minimises the fraction of variance that is lost, plus weight decay, from one or several
    random initialisations, with weight matrices W_j:

        E = sum_i |x_i - g(f(x_i))|^2 / sum_i |x_i - mean|^2 + alpha sum_j |W_j|^2.

    E has many local minima; `losses_` and `summary` show how much the restarts differ. Columns with
    a larger variance have more influence, as in PCA; standardise the columns if their units differ.

    Small problems are solved by L-BFGS. For deep networks and many points, such as 10^4 images,
    Adam trains by mini-batches in single precision. Parameters with the default None depend on the
    solver, as follows:

    ==================== ======== ========
    parameter            "lbfgs"  "adam"
    ==================== ======== ========
    `activation`         "tanh"   "relu"
    `alpha`              1e-4     1e-5
    `n_init`             3        1
    `max_iter`           5000     50
    `tol`                1e-4     0.02
    ==================== ======== ========

    Parameters
    ----------
    n_components : int or None
        The dimension of the embedding, at most the number of columns. None means 2, or 1 if X has
        two columns or fewer. 2 suits plots; more dimensions lose less variance.
    hidden_layer_sizes : sequence of int or None
        The number of units in each hidden layer of the encoder, for instance ``(1000, 500, 250)``.
        Wider or more layers give more flexible maps, and need more data or a larger alpha. None
        means (20,) or, for 2000 or more points with 100 or more columns, (256, 64).
    activation : {"tanh", "logistic", "relu", "identity"} or None
        The activation function of the hidden layers. "tanh" gives smooth maps, and "relu" piecewise
        linear ones, which deep networks learn in fewer epochs. With "identity" the embedding spans
        the same subspace as PCA.
    alpha : float or None
        The weight decay, for data scaled to unit variance. Larger values give smoother maps. Choose
        it by the `score` of held-out rows, for instance from 10^-6 to 10^-2. Deep networks have
        more weights, and therefore need a smaller alpha.
    n_init : int or None
        The number of random initialisations. The result with the smallest E is used or, with early
        stopping, that with the smallest error on held-out rows. Increase it if `losses_` differ
        much.
    solver : {"auto", "exact", "lbfgs", "adam"}
        "lbfgs" uses all points in each step and converges to a local minimum. "adam" uses
        `batch_size` points in each step. "auto" chooses "adam" if the number of points times the
        number of weights is at least 2 * 10^7. "exact" is "lbfgs".
    tol : float or None
        L-BFGS has converged when the largest absolute entry of the gradient of E is at most tol.
        Smaller values take more iterations. Adam completes its epochs regardless of tol; a warning
        reports if E decreased by a larger fraction than tol in the last tenth of them.
    max_iter : int or None
        The maximum number of L-BFGS iterations per restart, or the number of epochs of Adam, that
        is, of passes over the points.
    batch_size : int or "auto"
        The number of points in each step of Adam; "auto" means 256, or a tenth of the points if
        that is less.
    learning_rate_init : float
        The largest learning rate of Adam. The learning rate increases to this value in the first
        100 steps, and decreases to 0 over `max_iter` epochs. Decrease it if the loss grows.
    early_stopping : bool
        Whether Adam holds out a random `validation_fraction` of the points, stops when the error on
        them has not decreased for `n_iter_no_change` epochs, and returns the weights with the
        smallest error on them.
    validation_fraction : float
        The fraction of points that early stopping holds out.
    n_iter_no_change : int
        The number of epochs without improvement after which early stopping ends the fit.
    max_memory : int, str or None
        The memory budget, in bytes or as a string such as "2 GiB". None means half of the
        computer's memory. A fit that needs more raises a `MemoryBudgetError` at the start.
    n_jobs : int or None
        The number of threads. None means all processors. It does not affect the results.
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
        Iterations of the best restart, the range of `losses_`, and as the residual the value that
        is compared with `tol`. If early stopping ended the fit, the status is "approximate". With
        early stopping, the certificate also contains the epoch of the result and its error on
        held-out rows.
    n_iter_ : int
        The number of iterations, or epochs of Adam, of the best restart.
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

    Kingma and Ba, "Adam: a method for stochastic optimization", ICLR 2015.

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
    hidden_layer_sizes: Any = parameter("array-like", None, default=None)
    activation: str | None = parameter(set(ACTIVATIONS), None, default=None)
    alpha: float | None = parameter("non-negative", None, default=None)
    n_init: int | None = parameter("positive integer", None, default=None)
    solver: str = solver("lbfgs", "adam", default="auto")
    tol: float | None = parameter("positive", None, default=None)
    max_iter: int | None = parameter("positive integer", None, default=None)
    batch_size: int | str = parameter("positive integer", {"auto"}, default="auto")
    learning_rate_init: float = parameter("positive", default=2e-3)
    early_stopping: bool = parameter("boolean", default=False)
    validation_fraction: float = parameter(Interval(Real, 0, 1, closed="neither"), default=0.1)
    n_iter_no_change: int = parameter("positive integer", default=10)
    max_memory: int | float | str | None = parameter("positive", str, None, default=None)
    n_jobs: int | None = parameter(None, Integral, default=None)
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
        n, d = X.shape
        q = resolve_n_components(self.n_components, d)
        require_distinct_rows(len(X), bool(np.all(X[0] == X)))
        settings = self._settings(n, d, q)
        needed = _required_bytes(n, d, q, settings)
        check_budget(needed, self.max_memory, f"an autoencoder of {n} points")
        with progress(type(self).__name__, self.verbose) as log:
            result = fit_autoencoder(
                *(X, q, settings.hidden, settings.activation, settings.alpha, settings.n_init),
                *(settings.tol, settings.max_iter, seeded_generator(self.random_state), log),
                settings.adam,
            )
            self.encoder_, self.decoder_, self.losses_, self.report_ = result
            if log is not None:
                log(
                    f"{self.losses_.min():.4g} of the variance lost in the best of "
                    f"{n_of(settings.n_init, 'restart')}"
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
                f"Autoencoder {sizes}, {self.encoder_.activation}",
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

    def _settings(self, n: int, d: int, q: int) -> _Settings:
        """Return the hidden layers, the solver, and its parameters for n points with d columns."""
        hidden = self.hidden_layer_sizes
        if hidden is None:
            hidden = (256, 64) if n >= _MIN_DEEP_POINTS and d >= _MIN_DEEP_COLUMNS else (20,)
        hidden = tuple(hidden)
        if not all(is_count(units) for units in hidden):
            raise ValueError(
                f"hidden_layer_sizes must be positive integers, got {self.hidden_layer_sizes!r}"
            )
        hidden = tuple(map(int, hidden))
        n_weights = 2 * sum(a * b for a, b in pairwise((d, *hidden, q)))
        is_large = self.solver == "auto" and n * n_weights >= _MIN_ADAM_PRODUCTS
        adam = None
        if is_large or self.solver == "adam":
            batch = min(_BATCH_SIZE, -(-n // 10)) if self.batch_size == "auto" else self.batch_size
            fraction = self.validation_fraction if self.early_stopping else 0.0
            adam = Adam(int(batch), self.learning_rate_init, fraction, self.n_iter_no_change)
        given: tuple[Any, ...] = (self.activation, self.alpha, self.n_init, self.max_iter, self.tol)
        defaults: tuple[Any, ...] = _LBFGS_DEFAULTS if adam is None else _ADAM_DEFAULTS
        chosen = (b if a is None else a for a, b in zip(given, defaults, strict=True))
        return _Settings(hidden, adam, *chosen)

    def _planned_option(self, sample: Sample) -> tuple[str, dict[str, Any]]:
        n, d = sample.points.shape
        q = resolve_n_components(self.n_components, d)
        settings = self._settings(n, d, q)
        memory = _required_bytes(n, d, q, settings)
        layers = "-".join(map(str, (d, *settings.hidden, q)))
        starts = n_of(settings.n_init, "start")
        problem = f"an autoencoder of {n} points, layers {layers}, {starts}"
        option = {"solver": "lbfgs" if settings.adam is None else "adam", "exact": False}
        return problem, {**option, "extra": memory, "required": memory, "copies": 0.0}

    def _check(self, X: Points, reset: bool = False, **options: Any) -> np.ndarray:
        """Return X as a validated float64 array."""
        reject_structured(X, type(self).__name__)
        return np.asarray(validate_data(self, X, reset=reset, dtype=np.float64, **options))


def _required_bytes(n: int, d: int, q: int, settings: _Settings) -> int:
    """Return the peak memory of a fit, without X."""
    layers = (d, *settings.hidden, q)
    n_parameters = sum(2 * a * b + a + b for a, b in pairwise(layers))
    # Four threads store the values and gradients of 512 rows each.
    values = 3 * sum(layers) * min(n, 2048)
    # L-BFGS stores 20 steps and gradients; Adam stores arrays in single precision.
    size, copies = (8, 70) if settings.adam is None else (4, 8)
    network = size * (values + copies * n_parameters)
    return max(16 * n * d, 8 * n * d + network)
