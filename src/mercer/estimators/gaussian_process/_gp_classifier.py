"""Gaussian process classification with Laplace's approximation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, replace
from itertools import combinations
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import _ovr_decision_function
from sklearn.utils.validation import check_is_fitted

from ..._core import Points, length, optional_type, reserve, slices, take
from ...expansion import Expansion
from ...gram import memoise_if_affordable
from ...models.gp import LaplaceLikelihood, Posterior, expected_probability, expected_softmax
from ...solvers import Report, tile_bytes, worst_report
from .._kernel_estimator import Seed, Shrink, SklearnGPKernel
from .._parameters import estimator, fit_method, fitted, parameter, predict_method
from .._plan_method import n_of
from .._prediction_intervals import PredictionSetMixin
from .._training_sample import Sample
from ._gp_kernel_parameters import GaussianProcess, ReparametrisedObjective, ThetaMap

_CompoundKernel = optional_type("sklearn.gaussian_process.kernels", "CompoundKernel")
# Points per block in multinomial predictions, which store for each point a covariance matrix of
# the functions of all classes.
_SOFTMAX_BLOCK_ROWS = 4096


@dataclass(frozen=True, eq=False)
class LatentProcess:
    """A fitted latent process: one function for a binary problem, or one function per class.

    A binary problem separates two classes, or one class from all others. In the multinomial model a
    single process has one function per class.
    """

    spelled: ReparametrisedObjective
    theta: np.ndarray
    posterior: Posterior
    report: Report

    @property
    def kernel(self) -> Any:
        """The kernel with the fitted theta, of the same type as the parameter `kernel`."""
        return self.spelled.translation.kernel_at(self.theta)

    @property
    def value(self) -> float:
        """The log marginal likelihood at the fitted theta."""
        return float(self.posterior.report.certificate["log marginal likelihood"])

    @property
    def joint(self) -> bool:
        """Whether there is one function per class (multinomial) instead of a single one."""
        return len(self.posterior.expansion) > 1

    def moments(self, X: Points) -> tuple[np.ndarray, np.ndarray]:
        """Return the posterior means and variances of the latent function at each point.

        For the multinomial model, return the means of all functions and their covariance matrices.
        """
        f, k = self.posterior.expansion, self.posterior.covariance
        if self.joint:
            return f(X), k(X)
        means, variances = self.posterior.moments(X)
        return means[:, 0], variances

    def probability(self, X: Points) -> np.ndarray:
        """Return the probability of the second class, or of each class in a multinomial model."""
        if not self.joint:
            return expected_probability(*self.moments(X))
        blocks = (take(X, rows) for rows in slices(length(X), _SOFTMAX_BLOCK_ROWS))
        return np.concatenate([expected_softmax(*self.moments(block)) for block in blocks])


@estimator()
class GaussianProcessClassifier(PredictionSetMixin, ClassifierMixin, GaussianProcess):
    """Gaussian process classification.

    For two classes, p(y = 1 | x) = E[1 / (1 + exp(-f(x)))] with a Gaussian process f with
    covariance k. With more classes there are several such binary models, or, with
    multi_class="multinomial", one joint model with a function f_c for each class c,

        p(y = c | x) = E[exp(f_c(x)) / sum_b exp(f_b(x))].

    The posterior of f is not normal. Laplace's approximation replaces it by a normal distribution
    around its mode, and the hyper-parameters theta maximise the resulting approximate marginal
    likelihood. This is a drop-in replacement for scikit-learn's estimator of the same name and also
    accepts scikit-learn's GP kernels. There are two differences: the default kernel is optimised,
    and there is no attribute `base_estimator_`. For one function, the expectation is computed by
    quadrature with an error of about 1e-10; scikit-learn's sum of five error functions has errors
    of about 1e-4. For several functions it is computed by quasi-Monte Carlo, see
    `mercer.models.gp.expected_softmax`.

    Parameters
    ----------
    kernel : Kernel, scikit-learn GP kernel or None
        The prior covariance of f, for instance ``1.0 * RBF(1.0)``. None means ``1.0 * RBF(1.0)``
        with both parameters optimised; scikit-learn's default has the same kernel with both
        parameters fixed, which is ``optimizer=None`` here. The factor of the kernel determines how
        confident probabilities can be.
    max_iter_predict : int
        The maximum number of Newton steps to find the mode of f. A few are usually enough.
    warm_start : bool
        Whether Newton's method starts from the mode found for the previous theta, which is faster.
    random_state : int, RandomState or None
        Seed of the random restarts of the optimiser; None means 0.
    multi_class : {"one_vs_rest", "one_vs_one", "multinomial"}
        How more than two classes are handled. "one_vs_rest" fits one binary model per class and
        normalises the probabilities to sum to 1. "one_vs_one" fits one model per pair of classes,
        which vote; it cannot predict probabilities. "multinomial" uses the softmax of C functions,
        one per class, with a common kernel and theta; it needs C + 5 arrays of n x n during the fit
        and stores C of them. Two classes use one function f, except in "multinomial", where each
        class has a function and their difference has the covariance 2 k.

    Attributes
    ----------
    classes_ : ndarray
        The class labels.
    n_classes_ : int
        The number of classes.
    kernel_ : Kernel or scikit-learn GP kernel
        The kernel with the optimised theta. With several binary models, a tuple of kernels or
        scikit-learn's CompoundKernel.
    log_marginal_likelihood_value_ : float
        The log marginal likelihood; with several binary models, their mean.
    expansion_ : Expansion
        The mode of f, with one column per class in the multinomial model. With several binary
        models it is not set; see `expansions_`.
    expansions_ : list of Expansion
        The mode of f of each model.
    report_, reports_ : Report, list of Report
        The report of the model with the worst status, and the reports of all models.

    See Also
    --------
    KernelLogisticRegression : The same likelihood with fixed kernel parameters; faster, and for
        more points.
    SVC : Labels without probabilities; sparse.
    GaussianProcessRegressor : For numeric targets.
    sklearn.gaussian_process.GaussianProcessClassifier : The same model without the multinomial
        form.

    References
    ----------
    Rasmussen and Williams, "Gaussian Processes for Machine Learning", MIT Press, 2006, chapter 3.

    Williams and Barber, "Bayesian classification with Gaussian processes", IEEE Transactions on
    Pattern Analysis and Machine Intelligence 20, 1998.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import GaussianProcessClassifier
    >>> from mercer.kernels import RBF
    >>> X = np.linspace(0, 6, 40)[:, None]
    >>> model = GaussianProcessClassifier(1.0 * RBF(1.0)).fit(X, np.sin(X[:, 0]) > 0)
    >>> model.predict([[1.5], [4.5]])
    array([ True, False])
    >>> bool(model.predict_proba([[1.5]])[0, 1] > 0.9 > model.predict_proba([[3.1]])[0, 1])
    True
    """

    kernel: Any = None
    _: KW_ONLY
    max_iter_predict: int = parameter("positive integer", default=100)
    warm_start: bool = parameter("boolean", default=False)
    random_state: Seed = parameter("random_state", default=None)
    multi_class: str = parameter(
        {"one_vs_rest", "one_vs_one", "multinomial"}, default="one_vs_rest"
    )

    classes_: np.ndarray = fitted()
    n_classes_: int = fitted()
    expansions_: list[Expansion] = fitted()
    reports_: list[Report] = fitted()
    _latents: list[LatentProcess] = fitted()
    _form: str = fitted()

    @fit_method
    def fit(self, X: Points, y: ArrayLike) -> Self:
        """Optimise theta and find the mode of each latent function.

        Each evaluation of the likelihood takes n^3 operations, so use it for up to a few thousand
        points.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            Training points: vectors as the rows of a matrix or, for kernels on other objects, a
            list of strings, sets or graphs. With kernel="precomputed", the kernel matrix of shape
            (n, n).
        y : array-like of shape (n,)
            Class labels, numbers or strings.

        Returns
        -------
        self : GaussianProcessClassifier
            The fitted estimator.
        """
        if isinstance(self.kernel, _CompoundKernel):
            raise ValueError("kernel cannot be a CompoundKernel; pass one kernel for all classes")
        if self._precomputed:
            raise ValueError(
                "kernel='precomputed' is not supported, because predictions need k(x, x) of new "
                "points; use kernel=Precomputed(K) with the matrix K of all points, and indices as "
                "X"
            )
        sample = self._sample(X, y, labels=True, copy=self.copy_X_train).doubled()
        latents = [self._latent(problem) for problem in self._problems(sample)]
        self.classes_, self.n_classes_ = sample.classes, len(sample.classes)
        self._latents = latents
        self._form = self.multi_class
        self._set_fitted_attributes()
        return self

    def _planned_option(self, sample: Sample) -> tuple[str, dict[str, Any]]:
        n, q, kernel = len(sample), len(sample.classes), self._planned_kernel(sample)
        joint = self.multi_class == "multinomial" and q > 2
        # A model needs K, its factor and work arrays; the factors of finished models stay stored.
        arrays, models = q + 4 if joint else 3, 1 if joint or q == 2 else q
        squares = arrays + (self.optimizer is not None) + models - 1
        memory = 8 * n * n * squares + tile_bytes(kernel, sample.points)
        option = {"storage": "dense", "extra": memory, "required": 8 * n * n * arrays}
        problem = f"Gaussian process classification of {n} points, {n_of(q, 'class')}"
        return problem, {"solver": "laplace", "exact": False, **option}

    def _problems(self, sample: Sample) -> Iterator[Sample]:
        """Yield the sample of each model to fit.

        The classes of a binary model are False and True. The multinomial model is a single problem,
        whose targets are class indicators.
        """
        labels, q = sample.labels, len(sample.classes)
        if self.multi_class == "multinomial":
            yield sample.with_indicators()
        elif q == 2 or self.multi_class == "one_vs_rest":
            yield from (_separating(sample, c) for c in range(1 if q == 2 else 0, q))
        else:
            for a, b in combinations(range(q), 2):
                rows = np.flatnonzero((labels == a) | (labels == b))
                yield _separating(sample.take(rows), b)

    def _latent(self, sample: Sample) -> LatentProcess:
        """Fit one latent process to the class indicators of a sample, or to its two classes."""
        translation = ThetaMap(self.kernel, sample)
        objective = LaplaceLikelihood(
            memoise_if_affordable(translation.kernel, len(sample), self.max_memory),
            sample.points,
            sample.labels if sample.targets is None else sample.targets,
            max_memory=self.max_memory,
            max_iter=self.max_iter_predict,
            warm=self.warm_start,
        )
        spelled, optimum, posterior = self._optimise_theta(
            objective, translation, self.random_state
        )
        reserve(8 * len(sample) ** 2)  # the factor stays in memory while the next model is fitted
        latent = LatentProcess(spelled, optimum.theta, posterior, posterior.report)
        self._log_progress(f"log marginal likelihood {latent.value:.6g}, {latent.kernel}")
        return latent

    def _set_fitted_attributes(self) -> None:
        """Set the fitted attributes from the latent processes."""
        latents = self._latents
        kernels = [latent.kernel for latent in latents]
        self.kernel_ = kernels[0] if len(latents) == 1 else tuple(kernels)
        if len(latents) > 1 and isinstance(self.kernel, SklearnGPKernel):
            from sklearn.gaussian_process.kernels import CompoundKernel

            self.kernel_ = CompoundKernel(kernels)
        self.expansions_ = [latent.posterior.expansion for latent in latents]
        self.__dict__.pop("expansion_", None)
        if len(latents) == 1:
            self.expansion_ = self.expansions_[0]
        self.reports_ = [latent.report for latent in latents]
        self.report_ = worst_report(self.reports_)
        self.log_marginal_likelihood_value_ = np.float64(
            np.mean([latent.value for latent in latents])
        )

    def _compress(self, shrink: Shrink) -> None:
        """Raise an error, because the covariance of f cannot be reduced to fewer points."""
        raise ValueError(
            "a Gaussian process classifier also needs the covariance of f, which cannot be "
            "compressed; compress its expansion_ if you only need the mean of f"
        )

    # ------------------------------------------------------------------ predictions

    @predict_method
    def predict(self, X: Points) -> np.ndarray:
        """Predict the most probable class of each point.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            New points of the same type as the training points. With kernel="precomputed", the
            kernel matrix of shape (n, n_fit) between the n new points and the n_fit training
            points. If X is in blocks, so is the result, which is computed lazily.

        Returns
        -------
        ndarray of shape (n,)
            Labels from `classes_`.
        """
        X = self._check_new(X)
        if self.n_classes_ == 2:
            f = self.expansion_(X)  # the last column belongs to the second class
            return self.classes_[(f[:, -1] >= (f[:, 0] if len(f.T) > 1 else 0.0)).astype(int)]
        P = np.column_stack([latent.probability(X) for latent in self._latents])
        if self._form == "one_vs_one":
            P = _ovr_decision_function((P > 0.5).astype(int), P, self.n_classes_)
        return self.classes_[np.argmax(P, axis=1)]

    def _has_probabilities(self) -> bool:
        """Return True, or raise an AttributeError for one_vs_one with more than two classes."""
        form = getattr(self, "_form", self.multi_class)
        if form == "one_vs_one" and getattr(self, "n_classes_", 2) > 2:
            raise AttributeError(
                "one_vs_one multi-class mode does not support predicting probability estimates. "
                "Use one_vs_rest mode instead, or multinomial."
            )
        return True

    @available_if(_has_probabilities)
    @predict_method
    def predict_proba(self, X: Points) -> np.ndarray:
        """Return the probability of each class.

        Not available with multi_class="one_vs_one" and more than two classes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            New points of the same type as the training points. With kernel="precomputed", the
            kernel matrix of shape (n, n_fit) between the n new points and the n_fit training
            points. If X is in blocks, so is the result, which is computed lazily.

        Returns
        -------
        ndarray of shape (n, n_classes)
            Probabilities in the order of `classes_`; each row sums to 1.
        """
        X = self._check_new(X)
        P = np.column_stack([latent.probability(X) for latent in self._latents])
        if len(P.T) == 1:
            return np.column_stack([1.0 - P, P])
        return P / P.sum(axis=1, keepdims=True)

    @predict_method
    def latent_mean_and_variance(self, X: Points) -> tuple[np.ndarray, np.ndarray]:
        """Return the posterior mean and variance of the latent function at each point.

        For the multinomial model, the result is for f_2 - f_1 with two classes, and for all f_c
        with more. Not available with several binary models.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            New points of the same type as the training points. With kernel="precomputed", the
            kernel matrix of shape (n, n_fit) between the n new points and the n_fit training
            points.

        Returns
        -------
        mean : ndarray of shape (n,) or (n, n_classes)
            The posterior mean of f; two-dimensional for the multinomial model with more than two
            classes.
        variance : ndarray of the same shape
            The posterior variance of f.
        """
        check_is_fitted(self)
        if len(self._latents) > 1:
            raise ValueError(
                "Returning the mean and variance of the latent function f is only supported for "
                f"binary classification, received {self.n_classes_} classes."
            )
        mean, variance = self._latents[0].moments(self._check_points(X, reset=False))
        if variance.ndim == 1:
            return mean, variance
        if self.n_classes_ > 2:
            return mean, np.einsum("icc->ic", variance)
        sign = np.array([-1.0, 1.0])
        return mean @ sign, variance @ sign @ sign

    def _likelihood_at(self, theta: np.ndarray, eval_gradient: bool, update: bool) -> Any:
        if eval_gradient and len(self._latents) > 1:
            raise NotImplementedError(
                "Gradient of log-marginal-likelihood not implemented for multi-class GPC."
            )
        p, q = self._latents[0].theta.size, len(self._latents)
        if theta.shape not in ((p,), (p * q,)):
            allowed = f"{p}" if q == 1 else f"either {p} or {p * q}"
            raise ValueError(
                f"Shape of theta must be {allowed}. Obtained theta with shape {theta.shape}."
            )
        thetas = np.broadcast_to(theta, (q, p)) if theta.size == p else theta.reshape(q, p)
        pairs = list(zip(self._latents, thetas, strict=True))
        values = [latent.spelled.value(theta_i, eval_gradient) for latent, theta_i in pairs]
        if update:
            posteriors = [latent.spelled.posterior(theta_i) for latent, theta_i in pairs]
            self._latents = [
                LatentProcess(latent.spelled, theta_i, posterior, posterior.report)
                for (latent, theta_i), posterior in zip(pairs, posteriors, strict=True)
            ]
            self._set_fitted_attributes()
        return values[0] if q == 1 else np.float64(np.mean(values))


def _separating(sample: Sample, c: int) -> Sample:
    """Return the sample with the classes False and True: whether a point belongs to class c."""
    labels = (sample.labels == c).astype(int)
    return replace(sample, classes=np.array([False, True]), labels=labels)
