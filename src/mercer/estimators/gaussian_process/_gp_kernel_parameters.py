"""Gaussian process objectives as functions of the hyper-parameters theta of the user's kernel.

A user may pass a scikit-learn GP kernel, whose theta has a different order and scale than that of
the equivalent mercer kernel. Users read and write theta in the form of their kernel, but the
objectives use the mercer kernel. For log-parameters the conversion is linear, and each internal
entry depends on a single entry of the user's theta, with index place[i]:

    internal[i] = factor[i] * user[place[i]] + offset[i]

The optimisation starts at the theta of the kernel, and optionally at random values within the
bounds. It runs in the user's theta, because the path of L-BFGS, and therefore the local optimum
that it finds, depends on the scale of theta.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ..._core import NotPositiveDefiniteError, Points, ProgressCallback, ProgressStep, warn_caller
from ...kernels import (
    RBF,
    Kernel,
    SklearnKernel,
    as_kernel,
    expects_precomputed_rows,
    from_sklearn,
    unwrap,
)
from ...models.gp import Capabilities, Objective, Optimum, Posterior, first_steps, maximise
from ...solvers import Status
from .._kernel_estimator import ExpansionEstimator, Seed, SklearnGPKernel
from .._parameters import estimator, fitted, parameter
from .._training_sample import Sample

# Possible factors between log-parameters of both kernels: 1 if the parameters are the same, 2 or
# 0.5 for a square or a root, and negative for a reciprocal.
_LOG_FACTORS = np.array([1.0, 0.5, 2.0, -1.0, -0.5, -2.0])


def default_kernel() -> Kernel:
    """Return 1.0 * RBF(1.0), which is used for kernel=None."""
    return 1.0 * RBF()


class ThetaMap:
    """The conversion between the theta of the user's kernel and that of the mercer kernel.

    Parameters
    ----------
    spec : None, Kernel, scikit-learn GP kernel, or any input of `as_kernel`
        The kernel that the user passed; None means `default_kernel`.
    sample : Sample, optional
        The training sample, from which parameters given by a rule, such as "median", are computed.
        It warns if the kernel is known not to be positive definite.

    Attributes
    ----------
    given : Kernel or scikit-learn GP kernel
        The user's kernel.
    kernel : Kernel
        The equivalent mercer kernel.
    """

    def __init__(self, spec: Any, sample: Sample | None = None) -> None:
        self.given: Any
        if isinstance(spec, SklearnGPKernel):
            self.given = clone(spec)
            self.kernel, self._place, self._factor, self._offset = _match_parameters(self.given)
            if sample is not None:
                sample.judge(self.kernel)
        else:
            kernel = default_kernel() if spec is None else as_kernel(spec)
            self.given = self.kernel = kernel if sample is None else sample.resolve(kernel)
            self._place, self._factor, self._offset = _identity_map(self.kernel.theta.size)

    @property
    def theta(self) -> np.ndarray:
        """The theta of the user's kernel."""
        return np.array(self.given.theta, dtype=float)

    @cached_property
    def bounds(self) -> np.ndarray:
        """The bounds of the user's theta, of shape (p, 2)."""
        with np.errstate(invalid="ignore"):  # the logarithm of a negative bound is NaN
            return np.array(self.given.bounds, dtype=float).reshape(-1, 2)

    def to_internal(self, theta: Any) -> np.ndarray:
        """Return the theta of the mercer kernel for a theta of the user's kernel."""
        theta = np.asarray(theta, dtype=float)
        if theta.shape != self._place.shape:
            raise ValueError(
                f"theta has shape {theta.shape}, but {self.given} has {self._place.size} free "
                f"parameters; pass one number for each"
            )
        return self._factor * theta[self._place] + self._offset

    def gradient_to_user(self, gradient: np.ndarray) -> np.ndarray:
        """Convert first derivatives from the internal theta to the user's theta."""
        return self.to_user_order((self._factor * gradient.T).T)

    def to_user_order(self, values: np.ndarray) -> np.ndarray:
        """Reorder values from the order of the internal theta to that of the user's theta."""
        result = np.empty_like(values)
        result[self._place] = values
        return result

    def hessian_to_user(self, B: np.ndarray) -> np.ndarray:
        """Convert second derivatives from the internal theta to the user's theta."""
        return self.gradient_to_user(self.gradient_to_user(B).T).T

    def kernel_at(self, theta: Any) -> Any:
        """Return the user's kernel with this theta."""
        if isinstance(self.given, Kernel):
            return self.given.with_theta(theta)
        return self.given.clone_with_theta(theta)

    def parameters_on_bounds(self, theta: np.ndarray) -> list[tuple[str, int, str, float]]:
        """Return the parameters of theta that lie on one of their bounds.

        Returns
        -------
        list of (name, dimension, "lower" or "upper", bound)
        """
        parameters: list[tuple[str, int, str, float]] = []
        is_close = np.isclose(self.bounds, theta[:, None])
        if not is_close.any():
            return parameters
        for (name, dimension), interval, is_close_to in zip(
            self._theta_names(), self.bounds, is_close, strict=True
        ):
            if is_close_to.any():
                side = int(not is_close_to[0])
                bound = float(f"{np.exp(interval[side]):.10g}")
                parameters.append((name, dimension, ("lower", "upper")[side], bound))
        return parameters

    def _theta_names(self) -> list[tuple[str, int]]:
        """Return the parameter name and the index within this parameter for each entry of theta."""
        if not isinstance(self.given, Kernel):
            return [
                (h.name, i)
                for h in self.given.hyperparameters
                if not h.fixed
                for i in range(h.n_elements)
            ]
        parts = [name.partition("[") for name in self.given.theta_names]
        return [(name, int(index[:-1]) if index else 0) for name, _, index in parts]


def _identity_map(p: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the indices, factors and offsets of p parameters that need no conversion."""
    return np.arange(p), np.ones(p), np.zeros(p)


def _match_parameters(user_kernel: Any) -> tuple[Kernel, np.ndarray, np.ndarray, np.ndarray]:
    """Convert a scikit-learn GP kernel and match its parameters with those of the result.

    For the matching, all entries of theta are changed at once, each by a different step. The steps
    differ by less than a factor of 2, so the change of an internal entry identifies both the entry
    of the user's theta and the factor. If the parameters do not correspond one to one, the
    scikit-learn kernel is wrapped instead.

    Returns
    -------
    kernel : Kernel
        The mercer kernel.
    place : ndarray of int of shape (p,)
        For each internal entry, the index of the user's entry.
    factor, offset : ndarray of shape (p,)
        The coefficients of the linear conversion.
    """
    theta = np.asarray(user_kernel.theta, dtype=float)
    p = theta.size
    with np.errstate(invalid="ignore"):
        if np.any(np.isnan(user_kernel.bounds)):  # `optimise` raises an error for invalid bounds
            return SklearnKernel(user_kernel), *_identity_map(p)
    kernel = from_sklearn(user_kernel)
    if kernel.theta.size == p and np.all(np.isfinite(theta)):
        steps = np.linspace(1.0, 1.5, p)
        change = from_sklearn(user_kernel.clone_with_theta(theta + steps)).theta - kernel.theta
        match = np.abs(change[:, None, None] - np.multiply.outer(steps, _LOG_FACTORS)) < 1e-9
        internal_index, user_index, factor_index = np.nonzero(match)
        if np.array_equal(internal_index, np.arange(p)) and np.unique(user_index).size == p:
            factor = _LOG_FACTORS[factor_index]
            offset = kernel.theta - factor * theta[user_index]
            offset[np.abs(offset) < 1e-12] = 0.0
            return kernel, user_index, factor, offset
    return SklearnKernel(user_kernel), *_identity_map(p)


@dataclass(frozen=True, eq=False)
class ReparametrisedObjective:
    """The objective of a Gaussian process as a function of the user's theta."""

    objective: Any
    translation: ThetaMap

    def value(self, theta: Any, eval_gradient: bool = False) -> Any:
        """Return the objective at theta, and optionally its gradient.

        The value is a NumPy float64, as in scikit-learn, because a Python float would be rounded in
        arithmetic with float32 arrays.
        """
        if not eval_gradient:
            return np.float64(self.objective.value(self.translation.to_internal(theta)))
        value, gradient = self.value_and_gradient(theta)
        return np.float64(value), gradient

    # ------------------------------------------------------------------ used by the optimiser

    @property
    def X(self) -> Any:
        """The training points."""
        return self.objective.X

    @property
    def capabilities(self) -> Capabilities:
        """The optional methods that the wrapped objective, and therefore this one, supports."""
        capabilities: Capabilities = self.objective.capabilities
        return capabilities

    @property
    def noise_mask(self) -> np.ndarray:
        """Boolean mask of the parameters that are noise variances."""
        mask: np.ndarray = self.objective.noise_mask
        return self.translation.to_user_order(mask)

    def value_and_gradient(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the objective and its gradient at theta."""
        value, gradient = self.objective.value_and_gradient(self.translation.to_internal(theta))
        return value, self.translation.gradient_to_user(gradient)

    def with_information(
        self, theta: np.ndarray, above: float = -np.inf
    ) -> tuple[float, np.ndarray, np.ndarray]:
        """Return the objective, its gradient, and an approximation of minus its Hessian at theta.

        Derivatives are computed only if the objective exceeds `above`; otherwise they are 0.
        """
        value, gradient, B = self.objective.with_information(
            self.translation.to_internal(theta), above
        )
        return (
            value,
            self.translation.gradient_to_user(gradient),
            self.translation.hessian_to_user(B),
        )

    def subset(self, rows: np.ndarray) -> ReparametrisedObjective:
        """Return the objective of a subset of the observations."""
        return replace(self, objective=self.objective.subset(rows))

    def standard_error(self, theta: np.ndarray) -> float:
        """Return the standard error of the estimated objective at theta."""
        error: float = self.objective.standard_error(self.translation.to_internal(theta))
        return error

    # ------------------------------------------------------------------ results

    def posterior(self, theta: Any) -> Posterior:
        """Return the posterior at theta; error messages show the user's kernel."""
        try:
            posterior: Posterior = self.objective.posterior(self.translation.to_internal(theta))
        except NotPositiveDefiniteError as error:
            raise NotPositiveDefiniteError(
                f"The kernel, {self.translation.kernel_at(theta)}, is not returning a positive "
                f"definite matrix. Try {self.objective.remedy}. ({error})"
            ) from None
        f, k = posterior.expansion, posterior.covariance
        k = unwrap(k) if isinstance(k, Kernel) else replace(k, kernel=unwrap(k.kernel))
        posterior = replace(posterior, expansion=replace(f, kernel=unwrap(f.kernel)), covariance=k)
        if "jitter" in posterior.report.certificate:
            warn_caller(posterior.report.message)
        return posterior

    def unwrapped(self) -> ReparametrisedObjective:
        """Return the objective without the kernel values cached during the fit.

        The fitted model stores this objective, and the cache would take too much memory.
        """
        objective = copy(
            self.objective
        )  # a shallow copy, with the same landmarks and random probes
        objective.__dict__["kernel"] = unwrap(objective.kernel)
        return replace(self, objective=objective)

    def optimise(
        self, optimizer: Any, restarts: int, seed: Any, log: ProgressCallback | None
    ) -> Optimum:
        """Return the best optimum over all starts.

        Without an optimizer, or without free parameters, the result is the theta of the kernel.

        Parameters
        ----------
        optimizer : str, callable or None
        restarts : int
            The number of random starts in addition to the theta of the kernel.
        seed : int, RandomState or None
            Seed of the random starts; None means 0.
        log : callable or None
            Called with progress messages.
        """
        start, bounds = self.translation.theta, self.translation.bounds
        if optimizer is None or not start.size:
            return Optimum(start, np.nan, 0, True, "there are no parameters to optimise")
        if restarts and not np.all(np.isfinite(bounds)):
            raise ValueError(
                "Multiple optimizer restarts (n_restarts_optimizer>0) requires that all bounds are "
                "finite."
            )
        if np.any(np.isnan(bounds)):
            given = self.translation.given
            raise ValueError(f"the bounds of all parameters of {given} must be positive")
        rng = check_random_state(0 if seed is None else seed)
        starts = [start, *(rng.uniform(bounds[:, 0], bounds[:, 1]) for _ in range(restarts))]
        if callable(optimizer):
            optima = [self._run_user_optimizer(optimizer, theta) for theta in starts]
        else:
            optima, (first_way, *other_ways) = [], first_steps(self)
            for i, theta in enumerate(starts):
                best_value = max((optimum.value for optimum in optima), default=-np.inf)
                optima.append(self._optimise_from(theta, i, log, first_way))
                # If the optimum is the best so far but lies on a bound, run the optimiser again
                # from the same start with the other kinds of first step.
                promising = optima[-1].value > best_value
                if promising and self.translation.parameters_on_bounds(optima[-1].theta):
                    optima += [self._optimise_from(theta, i, log, way) for way in other_ways]
        best = max(optima, key=lambda optimum: optimum.value)
        for name, dimension, side, bound in self.translation.parameters_on_bounds(best.theta):
            change = "Decreasing" if side == "lower" else "Increasing"
            warn_caller(
                f"The optimal value found for dimension {dimension} of parameter {name} is close "
                f"to the specified {side} bound {bound}. {change} the bound and calling fit again "
                f"may find a better value.",
                ConvergenceWarning,
            )
        return replace(best, evaluations=sum(optimum.evaluations for optimum in optima))

    def _run_user_optimizer(self, optimizer: Any, start: np.ndarray) -> Optimum:
        """Return the optimum that a user-defined optimizer finds."""
        n_evaluations = 0

        def negative_objective(theta: Any, eval_gradient: bool = True) -> Any:
            """Return minus the objective, as scikit-learn's optimizers expect it."""
            nonlocal n_evaluations
            n_evaluations += 1
            result = self.value(theta, eval_gradient)
            return (-result[0], -result[1]) if eval_gradient else -result

        result = optimizer(negative_objective, start, bounds=self.translation.bounds)
        try:
            theta, minimum = result
            theta, minimum = np.array(theta, dtype=float).ravel(), float(minimum)
        except (TypeError, ValueError):
            raise ValueError(
                f"the optimizer must return a pair (theta, value of obj_func at theta), got "
                f"{result!r}"
            ) from None
        if theta.shape != start.shape or not np.all(np.isfinite(theta)) or np.isnan(minimum):
            raise ValueError(
                f"the optimizer must return {start.size} finite parameters and the value of "
                f"obj_func there, got {theta} and {minimum}"
            )
        return Optimum(theta, -minimum, n_evaluations, True, "reported by the user's optimizer")

    def _optimise_from(
        self, start: np.ndarray, number: int, log: ProgressCallback | None, way: str
    ) -> Optimum:
        """Return the local optimum reached from one start.

        If the objective cannot be evaluated at the start, the result is the start itself. A warning
        is issued if the optimisation did not converge.
        """
        optimum = maximise(
            self,
            start,
            self.translation.bounds,
            first_step=way,
            log=None if log is None else lambda text: log(ProgressStep(f"start {number}, {text}")),
        )
        if not optimum.converged:
            remedy, is_estimate = self.objective.remedy, self.capabilities.standard_error
            advice = "more landmarks (rank)" if is_estimate else f"a White() term, {remedy}"
            warn_caller(
                f"the optimisation of theta stopped after {optimum.evaluations} evaluations at a "
                f"log marginal likelihood of {optimum.value:.6g} without convergence: "
                f"{optimum.message}. Try {advice}, or another start",
                ConvergenceWarning,
            )
        return optimum


# --- Base class of Gaussian process estimators: the kernel parameter and the optimisation of theta.


@estimator(kw_only=True)
class GaussianProcess(ExpansionEstimator):
    """Base class of estimators that optimise the hyper-parameters theta of their kernel.

    Parameters
    ----------
    optimizer : "fmin_l_bfgs_b", callable or None
        The optimiser of theta; with None, the theta of `kernel` is used unchanged. A callable is
        called as ``optimizer(obj_func, initial_theta, bounds=bounds)`` and returns the best theta
        and the value of ``obj_func`` there; ``obj_func(theta, eval_gradient=True)`` is minus the
        log marginal likelihood.
    n_restarts_optimizer : int
        The number of additional starts of the optimiser, from random values of theta within the
        bounds. Use 5 to 10 if the likelihood may have several maxima, for instance with periodic
        kernels or few points. Each start takes about as long as the first.
    copy_X_train : bool
        Whether to store a copy of the training points. Without a copy, later changes of X change
        the model, so set it to False only to save memory.
    """

    kernel: Any = parameter(None, Kernel, SklearnGPKernel, str, default=None)
    optimizer: Any = parameter({"fmin_l_bfgs_b"}, callable, None, default="fmin_l_bfgs_b")
    n_restarts_optimizer: int = parameter("non-negative integer", default=0)
    copy_X_train: bool = parameter("boolean", default=True)

    kernel_: Any = fitted()  # a Kernel, a scikit-learn GP kernel, or a tuple of kernels
    log_marginal_likelihood_value_: float = fitted()

    def _is_precomputed_kernel(self, kernel: Any) -> bool:
        """Return True if X is a matrix of kernel values for this kernel specification."""
        if isinstance(kernel, Kernel):
            return expects_precomputed_rows(kernel)
        return super()._is_precomputed_kernel(kernel)

    def set_params(self, **params: Any) -> Self:  # inherits its docstring
        kernel_params = sorted(name for name in params if name.startswith("kernel__"))
        if kernel_params and params.get("kernel", self.kernel) is None:
            raise ValueError(
                f"kernel=None means {default_kernel()!r}, whose parameters cannot be set; "
                f"pass a kernel, such as 1.0 * RBF(), to set {kernel_params}"
            )
        return super().set_params(**params)

    def _expects_matrix(self, X: Points) -> bool:
        """Return True if X must be a numeric matrix."""
        if self.kernel is None:
            return True
        if isinstance(self.kernel, SklearnGPKernel):
            return bool(self.kernel.requires_vector_input)
        return super()._expects_matrix(X)

    def _optimise_theta(
        self, objective: Objective, translation: ThetaMap, random_state: Seed
    ) -> tuple[ReparametrisedObjective, Optimum, Posterior]:
        """Return the objective to store in the model, its optimum, and the posterior there."""
        user_objective = ReparametrisedObjective(objective, translation)
        optimum = user_objective.optimise(
            self.optimizer, self.n_restarts_optimizer, random_state, self._progress_callback
        )
        posterior = user_objective.posterior(optimum.theta)
        if not optimum.converged:
            report = replace(posterior.report, status=Status.NOT_CONVERGED)
            posterior = replace(posterior, report=report)
        return user_objective.unwrapped(), optimum, posterior

    def log_marginal_likelihood(
        self,
        theta: np.ndarray | Sequence[float] | None = None,
        eval_gradient: bool = False,
        clone_kernel: bool = True,
    ) -> Any:
        """Return the log marginal likelihood of theta, and optionally its gradient.

        If a classifier consists of several binary models, the result is the mean over all of them,
        and the gradient is not available.

        Parameters
        ----------
        theta : array-like of shape (p,) or None, default=None
            Hyper-parameters in the order and scale of ``kernel_.theta``, which contains logarithms.
            None means the fitted ones. With several binary models, either one theta for all of
            them, or the concatenation of one for each.
        eval_gradient : bool, default=False
            Whether to return the gradient as well; requires theta.
        clone_kernel : bool, default=True
            If False, the model is updated to this theta, including its predictions.

        Returns
        -------
        value : float
            The log marginal likelihood log p(y).
        gradient : ndarray of shape (p,)
            The derivatives with respect to theta; only if `eval_gradient` is True.
        """
        check_is_fitted(self, "log_marginal_likelihood_value_")
        if theta is not None:
            theta = np.asarray(theta, dtype=float)
            return self._likelihood_at(theta, eval_gradient, update=not clone_kernel)
        if eval_gradient:
            raise ValueError("Gradient can only be evaluated for theta!=None")
        return self.log_marginal_likelihood_value_

    @abstractmethod
    def _likelihood_at(self, theta: np.ndarray, eval_gradient: bool, update: bool) -> Any:
        """Return the log marginal likelihood of theta; if `update`, move the model to theta."""
