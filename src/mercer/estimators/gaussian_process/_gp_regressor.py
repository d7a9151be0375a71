"""Gaussian process regression with hyper-parameters that maximise the marginal likelihood."""

from __future__ import annotations

from dataclasses import KW_ONLY, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from ..._core import Points, RandomState, check_budget, length
from ...expansion import Primal
from ...gram import memoise_if_affordable
from ...kernels import Kernel, White, expects_precomputed_rows
from ...models import gp
from ...models.gp import Conditioned, Posterior
from ...solvers import (
    DualSmoother,
    Option,
    Plan,
    check_interval_memory,
    cost_of_entries,
    kernel_rows,
    landmark_bytes,
    plan_exact_or_landmarks,
    tile_bytes,
    warn_if_infinite,
)
from .._kernel_estimator import LandmarkMixin, Shrink
from .._parameters import (
    FittedPoints,
    estimator,
    fit_method,
    fitted,
    parameter,
    predict_method,
    solver,
)
from .._plan_method import n_of
from .._prediction_intervals import IntervalMixin, reject_without_points
from .._training_sample import Sample
from ._gp_kernel_parameters import (
    GaussianProcess,
    ReparametrisedObjective,
    ThetaMap,
    default_kernel,
)

_EPS = np.finfo(float).eps


@estimator()
class GaussianProcessRegressor(
    IntervalMixin, MultiOutputMixin, RegressorMixin, LandmarkMixin, GaussianProcess
):
    """Gaussian process regression.

    The model is y = f(x) + noise with a Gaussian process f with covariance k. The hyper-parameters
    theta of the kernel maximise the marginal likelihood p(y). The posterior of f is

        mean  k_X(x)^T C^-1 y,     covariance  k(x, z) - k_X(x)^T C^-1 k_X(z),     C = K + alpha I,

    where K is the kernel matrix and k_X(x) are the kernel values between x and the training points.

    This is a drop-in replacement for scikit-learn's estimator of the same name and also accepts
    scikit-learn's GP kernels. The gradient of the likelihood needs little memory beyond one n x n
    matrix, whatever the number of hyper-parameters; see `mercer.models.gp.MarginalLikelihood`.

    The likelihood may have several local maxima. The optimisation starts from the parameters of
    `kernel` and may find a different maximum than scikit-learn; `n_restarts_optimizer` adds
    random starts.

    Parameters
    ----------
    kernel : Kernel, scikit-learn GP kernel or None
        The prior covariance. Include a `White` term to learn the noise, for instance ``1.0 *
        RBF(1.0) + White(0.1)``. Use one length scale per column, ``RBF([1.0] * d)``, to learn which
        columns matter. None means ``1.0 * RBF(1.0)`` with both parameters optimised; scikit-learn's
        default fixes them, which is ``optimizer=None`` here. The
        approximate solvers add ``+ White(1.0)`` to this default, because they need a noise variance
        that can be optimised. Kernel names as in `KernelRidge` are accepted too.
    alpha : float or array of shape (n,)
        Noise variance in addition to a `White` term of the kernel; one number for all observations
        or one for each. Set it if the variance of the measurements is known; otherwise learn it
        with `White`.
    normalize_y : bool
        Whether to centre the targets and scale them to variance 1 for the fit. Recommended unless
        the targets have mean 0 and the kernel has their scale.
    n_targets : int or None
        The number of targets, for predictions before `fit`.
    solver : {"auto", "exact", "cholesky", "nystroem", "cg"}
        ============ =====================================================================
        "cholesky"   exact: n^3 operations, n^2 memory; "exact" is a synonym
        "nystroem"   maximises a lower bound of the likelihood, with `rank` inducing points
        "cg"         estimates the likelihood with random probes, without n^2 memory
        "auto"       "cholesky" for up to 10 000 points if it fits into memory; otherwise
                     "nystroem", with a warning
        ============ =====================================================================
    rank : int or None
        The number of landmarks, which are the inducing points of "nystroem" and the preconditioner
        of "cg". None means 500.

    Attributes
    ----------
    kernel_ : Kernel or scikit-learn GP kernel
        The kernel with the optimised theta, of the same type as `kernel`.
    X_train_, y_train_
        Training points and targets; the targets are normalised if `normalize_y` is set.
    L_ : ndarray of shape (n, n)
        The Cholesky factor of C = K + alpha I, with L L^T = C. Only with solver "cholesky".
    alpha_ : ndarray of shape (n,) or (n, n_targets)
        The coefficients of the mean at ``expansion_.points``. With "cholesky" these
        are the training points, and the coefficients are C^-1 y. With "nystroem" they are the
        inducing points, and after `compress` the points of the reduced expansion.
    log_marginal_likelihood_value_ : float
        The log marginal likelihood of `kernel_`: a lower bound with "nystroem", an estimate with
        "cg".
    expansion_ : Expansion
        The posterior mean; if `normalize_y` is set, of the targets minus their mean.
    covariance_ : Kernel
        The posterior covariance, in units of the normalised targets. It is a `Conditioned` kernel,
        or with "cg" a kernel that solves a system of n equations for each new point.
    report_ : Report
        How the fit was computed. `n_iter` counts evaluations of the likelihood, and `status` shows
        whether the optimisation of theta converged.

    See Also
    --------
    KernelRidge : The same predictions for fixed kernel parameters and alpha; faster.
    KernelRidgeCV : Selects gamma and alpha by leave-one-out errors.
    GaussianProcessClassifier : For class labels.
    search_kernels : Searches for a kernel expression.
    tune : Optimises kernel parameters by other criteria.
    sklearn.gaussian_process.GaussianProcessRegressor : The same model, with the Cholesky solver
        only.

    References
    ----------
    Rasmussen and Williams, "Gaussian Processes for Machine Learning", MIT Press, 2006.

    Titsias, "Variational learning of inducing variables in sparse Gaussian processes", AISTATS
    2009.

    Gardner, Pleiss, Bindel, Weinberger and Wilson, "GPyTorch: blackbox matrix-matrix Gaussian
    process inference with GPU acceleration", NeurIPS 2018.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import GaussianProcessRegressor
    >>> from mercer.kernels import RBF, White
    >>> X = np.linspace(0, 1, 30)[:, None]
    >>> y = np.sin(6 * X[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=30)
    >>> model = GaussianProcessRegressor(1.0 * RBF(0.5) + White(0.1)).fit(X, y)
    >>> mean, std = model.predict([[0.5], [3.0]], return_std=True)
    >>> mean.round(1), std.round(1)
    (array([0.1, 0. ]), array([0.1, 0.8]))
    """

    kernel: Any = None
    _: KW_ONLY
    alpha: float | np.ndarray | list = parameter("non-negative", "array-like", default=1e-10)
    normalize_y: bool = parameter("boolean", default=False)
    n_targets: int | None = parameter("positive integer", None, default=None)
    solver: str = solver("cholesky", "nystroem", "cg", default="auto")

    X_train_: FittedPoints = fitted()
    y_train_: np.ndarray = fitted()
    L_: np.ndarray = fitted()
    alpha_: np.ndarray = fitted()
    covariance_: Kernel = fitted()
    _spelled: ReparametrisedObjective = fitted()
    _y_train_mean: np.ndarray = fitted()
    _y_train_std: np.ndarray = fitted()

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False  # before `fit`, predictions are those of the prior
        return tags

    def _compress(self, shrink: Shrink) -> None:
        """Reduce the expansion of the mean to fewer points; the covariance is not changed."""
        super()._compress(shrink)
        if isinstance(self.expansion_, Primal):
            raise TypeError(
                "the standard deviations of a Gaussian process need its training points; use "
                "expansion_.to_primal() if you only need the mean"
            )
        coefficients = self.expansion_.coefficients / self._y_train_std
        self.alpha_ = coefficients if self.y_train_.ndim > 1 else coefficients[:, 0]

    # ------------------------------------------------------------------ fit

    _accepts_blocks: ClassVar[bool] = False

    @fit_method
    def fit(self, X: Points, y: ArrayLike) -> Self:
        """Optimise theta and compute the posterior.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            Training points: vectors as the rows of a matrix or, for kernels on other objects, a
            list of strings, sets or graphs. With kernel="precomputed", the kernel matrix of shape
            (n, n).
        y : array-like of shape (n,) or (n, n_targets)
            Targets. All targets share the kernel.

        Returns
        -------
        self : GaussianProcessRegressor
            The fitted estimator.
        """
        sample = self._sample(X, y, copy=self.copy_X_train)
        q = sample.targets.shape[1]
        if self.n_targets is not None and q != self.n_targets:
            raise ValueError(
                f"The number of targets seen in `y` is different from the parameter `n_targets`. "
                f"Got {q} != {self.n_targets}."
            )
        mean, std = self._normalisation(sample.targets)
        sample = replace(sample, targets=(sample.targets - mean) / std)
        noise = self._noise(len(sample))
        objective_class = gp.choose_objective(self.solver, len(sample), self.max_memory)
        approximate = objective_class is not gp.MarginalLikelihood
        add_noise_term = self.kernel is None and approximate
        spec = default_kernel() + White() if add_noise_term else self.kernel
        translation = ThetaMap(spec, sample)
        options = {"max_memory": self.max_memory}
        if approximate:
            options |= {name: getattr(self, name) for name in ("rank", "landmarks", "random_state")}
        kernel = memoise_if_affordable(translation.kernel, len(sample), self.max_memory)
        # A precomputed kernel may be part of an expression, so that the objective needs its matrix.
        X = sample.points if sample.values is None else sample.values.matrix
        objective = objective_class(kernel, X, sample.targets, noise, **options)
        spelled, optimum, posterior = self._optimise_theta(
            objective, translation, self.random_state
        )
        # Set all attributes at the end, so that a failed fit leaves an earlier model unchanged.
        self.X_train_ = X
        self.y_train_ = sample.targets[:, 0] if sample.flat else sample.targets
        self._y_train_mean, self._y_train_std = mean, std
        self._spelled = spelled
        self._set_posterior(optimum.theta, posterior)
        self.report_ = replace(self.report_, n_iter=optimum.evaluations)
        if self.solver == "auto" and approximate:
            message = f"chosen by solver='auto'; {self.report_.message}"
            self.report_ = replace(self.report_, message=message)
        self._log_progress(
            f"log marginal likelihood {self.log_marginal_likelihood_value_:.6g}, {self.kernel_}"
        )
        return self

    def _plan(self, sample: Sample) -> Plan:
        (n, q), kernel = sample.targets.shape, self._planned_kernel(sample)
        m, steps = self._chosen.count(n), 1.0 if self.optimizer is None else 30.0
        strips, tiles = gp.Projection.workspace(n, m, q), tile_bytes(kernel, sample.points, 16)
        stochastic = Option(
            *("cg", "tiled", tiles + landmark_bytes(n, m, 1.0, 0.0, 4.0)),
            steps * (20.0 * cost_of_entries(kernel, sample.points, n * n / 2.0)),
            exact=False,
            rank=m,
            required=4 * self._chosen.workspace(n),
        )

        def needed(solver: str, m: int) -> int:
            if solver == "nystroem":
                return max(4 * self._chosen.workspace(n), strips)
            exact = gp.exact_likelihood_memory(n)
            if self.solver == "auto":
                return exact
            return 8 * n * n if self.optimizer is None else exact - 8 * n * n

        return plan_exact_or_landmarks(
            f"Gaussian process of {n} points, {n_of(q, 'target')}",
            *(kernel, sample.points, self.solver, self._chosen),
            squares=1.0 if self.optimizer is None else 2.0,
            features=(0.0, 1.0, 5.0),
            needed=needed,
            limit="likelihood",
            exact="cholesky",
            others=[stochastic],
            steps=steps,
            max_memory=self.max_memory,
        )

    def _set_posterior(self, theta: np.ndarray, posterior: Posterior) -> None:
        """Set the fitted attributes to those of the posterior at theta."""
        certificate = posterior.report.certificate
        self.kernel_ = self._spelled.translation.kernel_at(theta)
        self.expansion_ = posterior.expansion * self._y_train_std
        self.covariance_ = posterior.covariance
        self.report_ = posterior.report
        value = certificate["log p >=" if "log p >=" in certificate else "log marginal likelihood"]
        self.log_marginal_likelihood_value_ = np.float64(value)
        coefficients = posterior.expansion.coefficients
        self.alpha_ = coefficients if self.y_train_.ndim > 1 else coefficients[:, 0]
        self.__dict__.pop("L_", None)  # remove the factor of an earlier fit
        if isinstance(posterior.covariance, Conditioned) and posterior.covariance.inner is None:
            self.L_ = posterior.covariance.factor
        objective = self._spelled.objective
        if isinstance(objective, gp.MarginalLikelihood) and "jitter" in certificate:
            # The posterior was computed with this jitter, so later evaluations must include it.
            objective = replace(objective, noise=objective.noise + certificate["jitter"])
            self._spelled = replace(self._spelled, objective=objective)

    def _normalisation(self, Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean and scale of each target; 0 and 1 without `normalize_y`."""
        if not self.normalize_y:
            return np.zeros(Y.shape[1]), np.ones(Y.shape[1])
        with np.errstate(over="ignore"):
            mean, std = Y.mean(axis=0), Y.std(axis=0)
        if not np.all(np.isfinite(std)):
            raise ValueError(
                f"the squares of the targets, which are as large as {np.abs(Y).max():.1e}, "
                f"overflow; divide the targets by a constant"
            )
        constant = std <= 10.0 * _EPS * np.abs(mean)
        return mean, np.where(constant, 1.0, std)

    def _noise(self, n: int) -> Any:
        """Return alpha as a float or as an array of n variances, after validation."""
        alpha = np.asarray(self.alpha, dtype=float)
        if alpha.ndim > 1:
            raise ValueError(
                f"alpha must be a scalar or an array of shape ({n},), got shape {alpha.shape}"
            )
        if alpha.size not in (1, n):
            raise ValueError(
                f"alpha must be a scalar or an array with same number of entries as y. "
                f"({alpha.size} != {n})"
            )
        if not np.all(np.isfinite(alpha)) or np.any(alpha < 0):
            raise ValueError(
                f"alpha must be finite and not negative, because it is a noise variance; got a "
                f"minimum of {alpha.min():.3g}"
            )
        return float(alpha.item()) if alpha.size == 1 else alpha

    # ------------------------------------------------------------------ predictions

    @predict_method
    def predict(self, X: Points, return_std: bool = False, return_cov: bool = False) -> Any:
        """Return the predictive mean, and optionally standard deviations or a covariance matrix.

        Before `fit`, predictions are those of the prior. As in scikit-learn, standard deviations
        and covariances include the noise of a `White` term, but not the noise variance `alpha`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            New points of the same type as the training points. With kernel="precomputed", the
            kernel matrix of shape (n, n_fit) between the n new points and the n_fit training
            points.
        return_std : bool, default=False
            Whether to return standard deviations.
        return_cov : bool, default=False
            Whether to return the covariance matrix, which takes n^2 memory. At most one of
            `return_std` and `return_cov` may be True.

        Returns
        -------
        mean : ndarray of shape (n,) or (n, n_targets)
            The predictive mean.
        std : ndarray of the same shape
            The standard deviations; only if `return_std` is True.
        cov : ndarray of shape (n, n) or (n, n, n_targets)
            The covariance matrix, one for each target; only if `return_cov` is True.
        """
        if return_std and return_cov:
            raise RuntimeError("At most one of return_std or return_cov can be requested.")
        fitted = hasattr(self, "expansion_")
        X = self._check_points(X, reset=False)
        if fitted:
            mean = self.expansion_(X) + self._y_train_mean
            kernel, variances = self.covariance_, self._y_train_std**2
        else:
            kernel = ThetaMap(self.kernel, Sample.of(X, order=None)).kernel
            variances = np.ones(self.n_targets or 1)
            mean = np.zeros((length(X), len(variances)))
        if (return_std or return_cov) and fitted and expects_precomputed_rows(kernel):
            raise ValueError(
                "variances need k(x, x), which the kernel values between new and training points "
                "do not contain; use kernel=Precomputed(K) with the matrix K of all points, and "
                "indices as X"
            )
        if return_cov:
            n, m, q = length(X), len(getattr(self, "alpha_", ())), len(variances)
            needed = 8 * n * (n * (1 + q if q > 1 else 1) + m)
            check_budget(needed, self.max_memory, f"the covariance of {n} predictions")
            cov = kernel(X)[..., None]
            cov = np.multiply(cov, variances, out=cov if q == 1 else None)
            return _drop_single_target_axis(mean), _drop_single_target_axis(cov)
        if return_std:
            return _drop_single_target_axis(mean), _drop_single_target_axis(
                np.sqrt(kernel.diag(X)[:, None] * variances)
            )
        return _drop_single_target_axis(mean)

    def predict_gradient(self, X: Points, return_std: bool = False) -> Any:
        """Return the derivatives of the predictions with respect to the coordinates of the points.

        Where predictions have a kink, as at the training points with the kernels Laplacian and
        Matern(nu=0.5), the result is the mean of the slopes on both sides.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Points at which derivatives are evaluated. The kernel must be differentiable in its
            points.
        return_std : bool, default=False
            Whether to return the gradient of the standard deviation as well. It is 0 where the
            standard deviation is 0.

        Returns
        -------
        mean_gradient : ndarray of shape (n, d) or (n, d, n_targets)
            The derivatives of the predictive mean.
        std_gradient : ndarray of the same shape
            The derivatives of the standard deviation; only if `return_std` is True.
        """
        check_is_fitted(self, "expansion_")
        X = self._check_points(X, reset=False)
        mean = np.moveaxis(self.expansion_.gradient(X), 1, 2)
        if not return_std:
            return _drop_single_target_axis(mean)
        std = np.sqrt(self.covariance_.diag(X))[:, None]
        gradient = self.covariance_._diag_gradient(X, np.ones(length(X)))
        gradient = np.divide(0.5 * gradient, std, out=np.zeros_like(gradient), where=std > 0)
        return _drop_single_target_axis(mean), _drop_single_target_axis(
            gradient[..., None] * self._y_train_std
        )

    def leave_one_out(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the predictive mean and variance of each observation, given all others.

            mean_i = y_i - (C^-1 y)_i / (C^-1)_ii,     variance_i = 1 / (C^-1)_ii

        Here C = K + alpha I, with the kernel parameters fitted to all observations. The variance is
        that of y_i, including the noise.

        Returns
        -------
        means : ndarray of shape (n,) or (n, n_targets)
            The predictive means.
        variances : ndarray of the same shape
            The predictive variances.
        """
        check_is_fitted(self, "expansion_")
        objective, translation = self._spelled.objective, self._spelled.translation
        if not isinstance(objective, gp.MarginalLikelihood):
            raise ValueError(
                f"leave_one_out needs C^-1, which solver={self.solver!r} does not compute; fit "
                f"with solver='cholesky'"
            )
        means, variances = objective.leave_one_out(translation.to_internal(self.kernel_.theta))
        means = means * self._y_train_std + self._y_train_mean
        return _drop_single_target_axis(means), _drop_single_target_axis(
            variances[:, None] * self._y_train_std**2
        )

    @property
    def _has_single_target(self) -> bool:
        """Whether predictions are one-dimensional."""
        return len(self._y_train_mean) == 1

    def _jackknife_bounds(self, X: Points, coverage: float) -> np.ndarray:
        X = self._check_points(X, reset=False)
        what = "prediction intervals by the jackknife+"
        reject_without_points(self, what)
        objective, Y = self._spelled.objective, self.y_train_.reshape(len(self.y_train_), -1)
        covariance: Any = self.covariance_
        if expects_precomputed_rows(covariance):
            raise ValueError(
                f"{what} need the kernel values between the training points; use "
                f"kernel=Precomputed(K) with the matrix K of all points, and indices as X"
            )
        if isinstance(objective, gp.MarginalLikelihood):
            warn_if_infinite(len(Y), coverage)
            check_interval_memory(len(Y), self.max_memory)
            smoother = DualSmoother(covariance.inverse_factor, Y)
            bounds = np.empty((length(X), Y.shape[1], 2))
            rows = kernel_rows(covariance.kernel, X, covariance.points, self.max_memory)
            for index, K in rows:
                bounds[index] = smoother.bounds(K, coverage)
        elif isinstance(objective, gp.InducingBound):
            theta = self._spelled.translation.to_internal(self.kernel_.theta)
            ridge = objective.ridge(theta)
            warn_if_infinite(ridge.n_left_out, coverage)
            bounds = ridge.intervals(X, coverage)
        else:
            raise ValueError(
                f"{what} need a factorisation, which solver={self.solver!r} does not compute; fit "
                f"with solver='cholesky' or 'nystroem', or use `conformalize` with data that were "
                f"not used in `fit`"
            )
        out: np.ndarray = bounds * self._y_train_std[:, None] + self._y_train_mean[:, None]
        return out

    def sample_y(self, X: Points, n_samples: int = 1, random_state: RandomState = 0) -> np.ndarray:
        """Draw random functions from the process and return their values at X.

        The same `random_state` gives the same draws as scikit-learn, if the posteriors are equal.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or list of objects
            New points of the same type as the training points. With kernel="precomputed", the
            kernel matrix of shape (n, n_fit) between the n new points and the n_fit training
            points.
        n_samples : int, default=1
            The number of functions.
        random_state : int, RandomState or None, default=0
            Random seed; None means 0.

        Returns
        -------
        ndarray of shape (n, n_samples) or (n, n_targets, n_samples)
            The values of the functions, from the posterior after `fit` and from the prior before.
        """
        rng = check_random_state(0 if random_state is None else random_state)
        mean, cov = self.predict(X, return_cov=True)
        if mean.ndim == 1:
            return rng.multivariate_normal(mean, cov, n_samples).T
        draws = [
            rng.multivariate_normal(mean[:, c], cov[..., c], n_samples).T
            for c in range(mean.shape[1])
        ]
        return np.stack(draws, axis=1)

    def _likelihood_at(self, theta: np.ndarray, eval_gradient: bool, update: bool) -> Any:
        if update:
            self._set_posterior(theta, self._spelled.posterior(theta))
        return self._spelled.value(theta, eval_gradient)


def _drop_single_target_axis(values: np.ndarray) -> np.ndarray:
    """Return values without their last axis if that axis has length 1."""
    return values[..., 0] if values.shape[-1] == 1 else values
