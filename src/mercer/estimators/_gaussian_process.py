"""Gaussian process regression: f given noisy values, its hyper-parameters by their likelihood."""

from __future__ import annotations

from dataclasses import KW_ONLY, replace
from typing import Any, Self

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .. import gp
from .._points import length
from .._runtime import check_budget
from ..expansion import Primal
from ..gp import Conditioned, Posterior
from ..gram import memoise_if_affordable
from ..kernels import Kernel, White, reads_all
from ..solvers import Report, Status
from ._base import Landmarked
from ._gaussian_process_base import GaussianProcess
from ._gaussian_process_theta import KernelTranslation, SpelledObjective, default_kernel
from ._parameters import AT_LEAST_0, COUNT, estimator, fitting, learned, parameter, solver, threaded
from ._sample import warn_refuted

__all__ = ["GaussianProcessRegressor"]

_EPS = np.finfo(float).eps


@estimator()
class GaussianProcessRegressor(MultiOutputMixin, RegressorMixin, Landmarked, GaussianProcess):
    """y = f(x) + noise with f a Gaussian process of covariance k, whose theta maximises p(y).

        mean  k_X(x)^T C^-1 y,     covariance  k(x, z) - k_X(x)^T C^-1 k_X(z),     C = K + alpha

    A drop-in for scikit-learn's estimator of this name, which takes its GP kernels as well as
    ours.  The gradient of the likelihood takes little memory beyond one n x n matrix, whatever the
    number of parameters; see `mercer.gp.MarginalLikelihood`.

    A likelihood may have several optima.  The search starts from the kernel given, and may end at
    another of them than that of scikit-learn; `n_restarts_optimizer` looks for better ones.

    Parameters
    ----------
    kernel : Kernel, scikit-learn GP kernel or None
        The prior covariance, with the noise as a `White` part if it is to be learned.  None for
        ``1.0 * RBF(1.0)``, both parameters to be found, and with the approximate solvers
        ``+ White(1.0)``: they need a noise that can grow.  Names as in `KernelRidge` are taken too.
    alpha : float or array of shape (n,)
        Variance of the noise beside that of the kernel, for all observations or for each.
    normalize_y : bool
        Whether targets are centred and scaled to variance 1 for the model.
    n_targets : int or None
        For predictions before `fit`.
    solver : {"auto", "exact", "cholesky", "nystroem", "cg"}
        ============ =====================================================================
        "cholesky"   exact: n^3 operations, n^2 memory; "exact" is another name
        "nystroem"   a lower bound of the likelihood, with `rank` inducing points
        "cg"         the likelihood estimated with random probes, without n^2 memory
        "auto"       "cholesky" up to 10 000 points if it fits the memory; then "nystroem",
                     with a warning
        ============ =====================================================================
    rank : int or None
        Number of landmarks, the inducing points of "nystroem" and the preconditioner of "cg"; None
        for 500.

    Attributes
    ----------
    kernel_ : Kernel or scikit-learn GP kernel
        The kernel with the theta found, of the kind that was given.
    X_train_, y_train_
        Training points and targets (normalised, if they are).
    L_ : ndarray of shape (n, n)
        L with L L^T = C; only with "cholesky".
    alpha_ : ndarray of shape (n,) or (n, n_targets)
        C^-1 y with "cholesky"; in any case the coefficients on ``expansion_.points``, which may be
        the inducing points, or those that `compress` has left.
    log_marginal_likelihood_value_ : float
        That of `kernel_`: its bound with "nystroem", an estimate with "cg".
    expansion_ : Expansion
        The mean as a value, less the mean of the targets if they are normalised.
    covariance_ : Kernel
        The covariance given the data, in units of normalised targets: `Conditioned`, or with
        "cg" a kernel that solves n equations for each new point.
    report_ : Report
        What was done; `n_iter` counts evaluations of the likelihood, and `status` tells if the
        search for theta did not converge.

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
    alpha: float | np.ndarray | list = parameter(AT_LEAST_0, "array-like", default=1e-10)
    normalize_y: bool = parameter("boolean", default=False)
    n_targets: int | None = parameter(COUNT, None, default=None)
    solver: str = solver("cholesky", "nystroem", "cg", default="auto")

    X_train_: Any = learned()
    y_train_: np.ndarray = learned()
    kernel_: Any = learned()
    covariance_: Kernel = learned()
    report_: Report = learned()
    log_marginal_likelihood_value_: np.float64 = learned()
    _y_train_std: np.ndarray = learned()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False  # before fit, predictions are those of the prior
        return tags

    def _compress(self, shrink: Any) -> None:
        super()._compress(shrink)
        if isinstance(self.expansion_, Primal):
            raise TypeError(
                "the standard deviations of a Gaussian process need its points; "
                "expansion_.to_primal() is its mean alone"
            )
        coefficients = self.expansion_.coefficients / self._y_train_std
        self.alpha_ = coefficients if self.y_train_.ndim > 1 else coefficients[:, 0]

    # ------------------------------------------------------------------ fit

    @fitting
    def fit(self, X: Any, y: Any) -> Self:
        """Find theta, and condition on the targets y, (n,) or (n, n_targets)."""
        X, y = self._check_points(X, y, reset=True, copy=self.copy_X_train, supervised=True)
        y = np.array(y, dtype=float)
        Y = y.reshape(len(y), -1)
        if self.n_targets is not None and Y.shape[1] != self.n_targets:
            raise ValueError(
                f"The number of targets seen in `y` is different from the parameter `n_targets`. "
                f"Got {Y.shape[1]} != {self.n_targets}."
            )
        mean, std = self._normalisation(Y)
        Y = (Y - mean) / std
        noise = self._noise(len(Y))
        kind = gp.choose_objective(self.solver, length(X), self.max_memory)
        approximate = kind is not gp.MarginalLikelihood
        noisy = self.kernel is None and approximate
        spec = default_kernel() + White() if noisy else self.kernel
        translation = KernelTranslation(spec, X, Y)
        warn_refuted(translation.kernel, X)
        options = {"max_memory": self.max_memory}
        if approximate:
            options |= {name: getattr(self, name) for name in ("rank", "landmarks", "random_state")}
        kernel = memoise_if_affordable(translation.kernel, length(X), self.max_memory)
        objective = kind(kernel, X, Y, noise, **options)
        spelled = SpelledObjective(objective, translation)
        best = spelled.best(
            self.optimizer, self.n_restarts_optimizer, self.random_state, self._teller
        )
        posterior = spelled.posterior(best.theta)
        # all of it at the end: a fit that fails leaves the model of an earlier one as it was
        self.X_train_, self.y_train_ = X, Y.reshape(y.shape)
        self._y_train_mean, self._y_train_std = mean, std
        self._spelled = spelled.unwrapped()
        self._settle(best.theta, posterior)
        self.report_ = replace(self.report_, n_iter=best.evaluations)
        if not best.converged:
            self.report_ = replace(self.report_, status=Status.NOT_CONVERGED)
        if self.solver == "auto" and approximate:
            message = f"chosen by solver='auto'; {self.report_.message}"
            self.report_ = replace(self.report_, message=message)
        self._say(
            f"log marginal likelihood {self.log_marginal_likelihood_value_:.6g}, {self.kernel_}"
        )
        return self

    def _settle(self, theta: np.ndarray, posterior: Posterior) -> None:
        """Make the posterior for this theta that of the model."""
        known = posterior.report.certificate
        self.kernel_ = self._spelled.translation.at(theta)
        self.expansion_ = posterior.expansion * self._y_train_std
        self.covariance_ = posterior.covariance
        self.report_ = posterior.report
        value = known["log p >=" if "log p >=" in known else "log marginal likelihood"]
        self.log_marginal_likelihood_value_ = np.float64(value)
        coefficients = posterior.expansion.coefficients
        self.alpha_ = coefficients if self.y_train_.ndim > 1 else coefficients[:, 0]
        self.__dict__.pop("L_", None)  # an earlier fit may have left one
        if isinstance(posterior.covariance, Conditioned) and posterior.covariance.inner is None:
            self.L_ = posterior.covariance.factor
        objective = self._spelled.objective
        if isinstance(objective, gp.MarginalLikelihood) and "jitter" in known:
            # from here on it belongs to the noise
            objective = replace(objective, noise=objective.noise + known["jitter"])
            self._spelled = replace(self._spelled, objective=objective)

    def _normalisation(self, Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if not self.normalize_y:
            return np.zeros(Y.shape[1]), np.ones(Y.shape[1])
        with np.errstate(over="ignore"):
            mean, std = Y.mean(axis=0), Y.std(axis=0)
        if not np.all(np.isfinite(std)):
            raise ValueError(
                f"targets as large as {np.abs(Y).max():.1e} overflow when they are squared; divide "
                f"them by a constant"
            )
        constant = std <= 10.0 * _EPS * np.abs(mean)
        return mean, np.where(constant, 1.0, std)

    def _noise(self, n: int) -> Any:
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
                f"alpha must be finite and not negative, got a minimum of {alpha.min():.3g}: it "
                f"is the variance of the noise"
            )
        return float(alpha.item()) if alpha.size == 1 else alpha

    # ------------------------------------------------------------------ what the model says

    @threaded
    def predict(self, X: Any, return_std: bool = False, return_cov: bool = False) -> Any:
        """Return the mean of y at each point, and its standard deviation or covariance if asked.

        Before `fit` they are those of the prior.  The noise of a `White` part is included in
        standard deviation and covariance, that of `alpha` is not, as in scikit-learn.

        Parameters
        ----------
        X : points
        return_std, return_cov : bool
            At most one of them.

        Returns
        -------
        mean : ndarray of shape (n,) or (n, n_targets)
        std : ndarray of the same shape, or cov : ndarray of shape (n, n) or (n, n, n_targets)
        """
        if return_std and return_cov:
            raise RuntimeError("At most one of return_std or return_cov can be requested.")
        fitted = hasattr(self, "expansion_")
        X = self._check_points(X, reset=False)
        if fitted:
            mean = self.expansion_(X) + self._y_train_mean
            kernel, variances = self.covariance_, self._y_train_std**2
        else:
            kernel = KernelTranslation(self.kernel, X).kernel
            variances = np.ones(self.n_targets or 1)
            mean = np.zeros((length(X), len(variances)))
        if (return_std or return_cov) and fitted and reads_all(kernel):
            raise ValueError(
                "precomputed rows of values with the training points have no k(x, x) for "
                "variances: keep the matrix of all points, Precomputed(matrix), and give indices"
            )
        if return_cov:
            n, m, q = length(X), len(getattr(self, "alpha_", ())), len(variances)
            needed = 8 * n * (n * (1 + q if q > 1 else 1) + m)
            check_budget(needed, self.max_memory, f"the covariance of {n} predictions")
            cov = kernel(X)[..., None]
            cov = np.multiply(cov, variances, out=cov if q == 1 else None)
            return _flat(mean), _flat(cov)
        if return_std:
            return _flat(mean), _flat(np.sqrt(kernel.diag(X)[:, None] * variances))
        return _flat(mean)

    def predict_gradient(self, X: Any, return_std: bool = False) -> Any:
        """Return the derivatives of the predictions with respect to the points.

        At a kink, as Laplacian and Matern(nu=0.5) have one at each training point, the mean of the
        slopes on both sides.

        Parameters
        ----------
        X : array of shape (n, d)
        return_std : bool
            Whether those of the standard deviation are returned as well; 0 where it is 0.

        Returns
        -------
        mean_gradient : ndarray of shape (n, d) or (n, d, n_targets)
        std_gradient : ndarray of the same shape
        """
        check_is_fitted(self, "expansion_")
        X = self._check_points(X, reset=False)
        mean = np.moveaxis(self.expansion_.gradient(X), 1, 2)
        if not return_std:
            return _flat(mean)
        std = np.sqrt(self.covariance_.diag(X))[:, None]
        slope = self.covariance_._diag_gradient(X, np.ones(length(X)))
        slope = np.divide(0.5 * slope, std, out=np.zeros_like(slope), where=std > 0)
        return _flat(mean), _flat(slope[..., None] * self._y_train_std)

    def leave_one_out(self) -> tuple[np.ndarray, np.ndarray]:
        """Return what each observation was predicted to be from all the others.

            mean_i = y_i - (C^-1 y)_i / (C^-1)_ii,     variance_i = 1 / (C^-1)_ii

        In closed form, with the kernel as it is.  The variance is that of y_i, noise included.

        Returns
        -------
        means, variances : ndarrays of shape (n,) or (n, n_targets)
        """
        check_is_fitted(self, "expansion_")
        objective, translation = self._spelled.objective, self._spelled.translation
        if not isinstance(objective, gp.MarginalLikelihood):
            raise ValueError(
                f"leave_one_out needs C^-1, which solver={self.solver!r} has avoided; fit with "
                f"solver='cholesky'"
            )
        means, variances = objective.leave_one_out(translation.ours(self.kernel_.theta))
        means = means * self._y_train_std + self._y_train_mean
        return _flat(means), _flat(variances[:, None] * self._y_train_std**2)

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = 0) -> np.ndarray:
        """Return draws of the process at X, (n, n_samples) or (n, n_targets, n_samples).

        The same random_state gives the draws of scikit-learn.
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

    def log_marginal_likelihood(
        self, theta: Any = None, eval_gradient: bool = False, clone_kernel: bool = True
    ) -> Any:
        """Return the log marginal likelihood of theta, and its gradient if asked.

        Parameters
        ----------
        theta : array of shape (p,), optional
            As in `kernel_`, whose own value is returned by default.
        eval_gradient : bool
        clone_kernel : bool
            If False, the model moves to this theta, with all that it predicts.
        """
        check_is_fitted(self, "expansion_")
        if theta is None:
            if eval_gradient:
                raise ValueError("Gradient can only be evaluated for theta!=None")
            return self.log_marginal_likelihood_value_
        if not clone_kernel:
            theta = np.asarray(theta, dtype=float)
            self._settle(theta, self._spelled.posterior(theta))
        return self._spelled.value(theta, eval_gradient)


def _flat(values: np.ndarray) -> np.ndarray:
    """Return values without their last axis, if that has one target."""
    return values[..., 0] if values.shape[-1] == 1 else values
