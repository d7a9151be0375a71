"""The function `tune`: optimise the parameters of a kernel and the regularisation by gradients."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import ConvergenceWarning

from .._core import (
    Points,
    as_float64,
    blas_threads,
    check_choice,
    entry_point,
    is_count,
    length,
    progress,
    resource_scope,
    warn_caller,
)
from ..gram import memoise_if_affordable
from ..kernels import Fixed, Kernel, Sum, White, as_kernel, unwrap
from ..models.gp import (
    Capabilities,
    LeaveOneOut,
    MarginalLikelihood,
    Objective,
    Optimum,
    RidgeCriterion,
    maximise,
)
from ..models.kernel_learning import TargetAlignment
from ._kernel_estimator import KernelEstimator, NamedKernelEstimator
from ._training_sample import Sample
from .gaussian_process._gp_kernel_parameters import GaussianProcess, default_kernel
from .gaussian_process._gp_regressor import GaussianProcessRegressor
from .supervised._kernel_logistic import KernelLogisticRegression
from .supervised._kernel_ridge import KernelRidge
from .support_vector import SVC, SVR

# Estimators whose regularisation is tuned, in addition to the kernel.
_WITH_RIDGE = (KernelRidge, GaussianProcessRegressor, SVC, SVR, KernelLogisticRegression)

OBJECTIVES = ("loo", "gcv", "likelihood", "alignment")


@dataclass(frozen=True)
class _Tuning:
    """Limits and initial values of the search; alphas are in units of the mean of k(x, x)."""

    # With more points than this, subsample="auto" searches on a random sample of this size,
    # because an evaluation takes O(n^3) operations.
    max_points: int = 4000
    # Bounds of alpha.
    alpha_bounds: tuple[float, float] = (1e-9, 1e4)
    # The initial alpha is clipped to this range, because the objective is flat outside it.
    initial_alpha_range: tuple[float, float] = (1e-3, 1.0)
    # Additional initial values of alpha that are tried.
    coarse_alphas: tuple[float, ...] = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
    # The length scales of the user's kernel times these factors are tried as initial values.
    coarse_scales: tuple[float, ...] = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0)
    # Number of points on which initial values are compared; more points cost more time.
    max_points_initial: int = 200


_TUNING = _Tuning()


@dataclass(frozen=True, eq=False)
class Tuned:
    """The result of `tune`; `print` shows a summary.

    Attributes
    ----------
    estimator : estimator
        An unfitted estimator with the optimised kernel and regularisation.
    objective : str
        The objective that was optimised.
    value : float
        The optimal value of the objective: the mean squared error for "loo" and "gcv" (the log
        predictive density for "loo" of a Gaussian process), the log likelihood, or the alignment.
    evaluations : int
        Number of evaluations of the objective and its gradient.
    converged : bool
        Whether the search converged.
    message : str
        Why the search stopped, and how many points it used.
    history : list of (float, ndarray)
        The value and theta at each evaluation.  theta contains the logarithms of the kernel
        parameters, in the order of `names`, and then of alpha.
    names : list of str
        The names of the entries of theta.
    start : ndarray
        The theta of the estimator that was passed to `tune`; the search may have started at
        other values.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelRidge, tune
    >>> from mercer.kernels import RBF
    >>> X = np.linspace(0, 1, 30)[:, None]
    >>> found = tune(KernelRidge(kernel=RBF()), X, np.sin(6 * X[:, 0]))
    >>> found.estimator.fit(X, np.sin(6 * X[:, 0])).score(X, np.sin(6 * X[:, 0])) > 0.99
    True
    """

    estimator: Any
    objective: str
    value: float
    evaluations: int
    converged: bool
    message: str
    history: list[tuple[float, np.ndarray]] = field(repr=False)
    names: list[str] = field(repr=False)
    start: np.ndarray = field(repr=False)

    def __str__(self) -> str:
        last = min(self.history, key=lambda e: abs(e[0] - self.value))
        lines = [f"{self.objective} {self.value:.6g} after {self.evaluations} evaluations"]
        width = max(map(len, self.names))
        for name, a, b in zip(self.names, np.exp(self.start), np.exp(last[1]), strict=True):
            lines.append(f"{name:<{width}}  {a:.4g} -> {b:.4g}")
        return "\n".join([*lines, self.message])


@entry_point
def tune(
    estimator: Any,
    X: Points,
    y: ArrayLike,
    objective: str = "loo",
    *,
    sample_weight: ArrayLike | None = None,
    subsample: int | str | None = "auto",
    random_state: int = 0,
    verbose: int = 0,
) -> Tuned:
    """Optimise the kernel parameters and the regularisation of an estimator by gradients.

    ============== ==========================================================================
    objective      what is optimised
    ============== ==========================================================================
    "loo"          the mean squared leave-one-out error, in closed form; for a Gaussian process,
                   the log density of each target given the others
    "gcv"          generalised cross-validation
    "likelihood"   the marginal likelihood; for estimators other than Gaussian processes, with the
                   optimal scale of the kernel
    "alignment"    the alignment of the kernel with the targets; then the regularisation by "loo"
    ============== ==========================================================================

    All kernel parameters are optimised jointly, including one length scale per column:
    ``RBF([1.0] * d)``.  `Fixed(kernel)` excludes parameters from the search, and `Bounded` limits
    them.  A gradient costs about as much as a few fits, independent of the number of parameters,
    so the search also works with more parameters than a grid can cover.

    An objective may have several local optima.  The search starts at the parameters of the
    estimator, or at a better point of a coarse grid: length scales between 1/8 and 4 times the
    initial ones and several alphas, compared on at most 200 points.

    Parameters
    ----------
    estimator : estimator
        A regressor or classifier of mercer; it is not changed.  Classifiers, and regressors with
        a loss other than the squared error, are tuned with a *surrogate*: least squares with an
        intercept, on the targets or on one-hot encoded classes.

        ================================== ====================================================
        estimator                          regularisation that is tuned
        ================================== ====================================================
        KernelRidge                        alpha, unless the kernel contains noise (White)
        GaussianProcessRegressor           as for KernelRidge; the result has `optimizer=None`
        SVC, SVR                           C = 1 / (2 alpha), as if their loss were squared
        KernelLogisticRegression           C = 4 / alpha, from the curvature of the loss at 0
        others                             none
        ================================== ====================================================
    X : array-like or sparse matrix of shape (n, d), or list of objects
        Training points, as in the `fit` of the estimator.
    y : array-like of shape (n,) or (n, n_targets)
        Numeric targets, or class labels of shape (n,) for classifiers.
    objective : {"loo", "gcv", "likelihood", "alignment"}, default="loo"
        See the table above.  "loo" aims at small prediction errors; "likelihood" assumes Gaussian
        noise.
    sample_weight : array-like of shape (n,) or None, default=None
        Weights of squared errors.  Leave-one-out removes a point with its whole weight.  "loo" and
        "likelihood" of a Gaussian process do not support weights, and raise an error.
    subsample : "auto", int or None, default="auto"
        Number of random points used for the search; None means all points.  "auto" uses
        all points up to 4000; with more points it uses 4000 of them, with a warning.  An
        evaluation takes n^3 operations and two n x n arrays.
    random_state : int, default=0
        Seed for the subsample.
    verbose : int, default=0
        Whether to print the progress of the search.

    Returns
    -------
    Tuned
        The result, with `estimator`, `value` and `history`.

    See Also
    --------
    KernelRidgeCV : Compares a grid of alphas and gammas; simpler for one or two parameters.
    GaussianProcessRegressor : Maximises the marginal likelihood in its `fit`.
    search_kernels : Also searches for the kernel expression.
    MultipleKernel : Learns the weights of a sum of kernels.
    sklearn.model_selection.GridSearchCV : Any estimator and score; the number of fits grows
        exponentially with the number of parameters.

    References
    ----------
    Chapelle, Vapnik, Bousquet and Mukherjee, "Choosing multiple parameters for support vector
    machines", Machine Learning 46, 2002.

    Golub, Heath and Wahba, "Generalized cross-validation as a method for choosing a good ridge
    parameter", Technometrics 21, 1979.

    Cristianini, Shawe-Taylor, Elisseeff and Kandola, "On kernel-target alignment", NIPS 2001.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelRidge, tune
    >>> from mercer.kernels import RBF
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> y = np.sin(3 * X[:, 0]) + 0.1 * np.random.default_rng(1).normal(size=100)
    >>> found = tune(KernelRidge(kernel=RBF([1.0, 1.0])), X, y)
    >>> short, long = found.estimator.kernel.length_scale  # the second column does not matter
    >>> bool(long > 20 * short)
    True
    """
    check_choice("objective", objective, *OBJECTIVES)
    if hasattr(estimator, "steps"):
        raise TypeError(
            "tune optimises one estimator of mercer, got a Pipeline; fit the other steps first: "
            "tune(pipeline[-1], pipeline[:-1].fit_transform(X, y), y), and put the tuned estimator "
            "into a new Pipeline"
        )
    if not isinstance(estimator, KernelEstimator) or not (
        is_classifier(estimator) or is_regressor(estimator)
    ):
        raise TypeError(f"tune needs a regressor or a classifier of mercer, got {estimator!r}")
    if estimator._precomputed:
        raise ValueError("a precomputed kernel has no parameters; pass a kernel and points")
    model = clone(estimator)
    with blas_threads(length(X)), resource_scope(), progress("tune", verbose) as log:
        labels = is_classifier(model)
        sample = model._sample(X, y, sample_weight, labels=labels)
        sample, note = _subsample(sample, subsample, random_state)
        problem = _TuningProblem(model, sample, objective, log)
        names = problem.names
        tuned_model, optimum, recorded = problem.solve()
        message = "; ".join(filter(None, [optimum.message, note]))
        history = [(problem.value(value), theta) for value, theta in recorded.history]
        return Tuned(
            tuned_model,
            objective,
            problem.value(optimum.value),
            optimum.evaluations,
            optimum.converged,
            message,
            history,
            names,
            recorded.start,
        )


def _subsample(sample: Sample, subsample: Any, seed: int) -> tuple[Sample, str]:
    """Return the points to use in the search, and a remark about their number for the message."""
    n = len(sample)
    if subsample != "auto" and subsample is not None and not is_count(subsample):
        raise ValueError(f"subsample must be 'auto', a positive integer or None, got {subsample!r}")
    max_points = (
        _TUNING.max_points if subsample == "auto" else n if subsample is None else subsample
    )
    if n <= max_points:
        return sample, ""
    if subsample == "auto":
        warn_caller(
            f"a search on {n} points takes about {n**3:.0e} operations for each evaluation, so it "
            f"uses a random sample of {max_points} points. Set subsample={max_points} to silence "
            f"this warning, or subsample=None to search on all points"
        )
    rows = np.sort(np.random.default_rng(seed).permutation(n)[:max_points])
    return sample.take(rows), f"the search used {max_points} of {n} points"


class _RecordedObjective:
    """An objective that records the values and parameters of all its evaluations."""

    def __init__(self, objective: Any) -> None:
        self.objective, self.X = objective, objective.X
        inner = objective.capabilities  # second derivatives are omitted: they are not recorded
        self.capabilities = Capabilities(inner.subset, inner.standard_error)
        self.start, self.history = objective.start, list[tuple[float, np.ndarray]]()

    def value_and_gradient(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = self.objective.value_and_gradient(theta)
        self.history.append((float(value), np.array(theta)))
        return value, gradient

    def standard_error(self, theta: np.ndarray) -> float:
        error: float = self.objective.standard_error(theta)
        return error

    def subset(self, rows: np.ndarray) -> Any:
        return self.objective.subset(rows)


class _TuningProblem:
    """The optimisation problem of `tune` for an estimator, a sample and an objective."""

    def __init__(self, model: Any, sample: Sample, name: str, log: Any) -> None:
        self.model, self.name, self.progress = model, name, log
        self.is_gp = isinstance(model, GaussianProcessRegressor)
        if self.is_gp and name in ("loo", "likelihood") and sample.weights is not None:
            raise ValueError(
                f"objective={name!r} of a GaussianProcessRegressor would ignore the sample_weight "
                f"of {len(sample)} points, because it does not support weights. Use "
                f"objective='gcv' or 'alignment', or tune a KernelRidge"
            )
        self.X, self.weights, self.Y = as_float64(sample.points), sample.weights, _targets(sample)
        if hasattr(model, "_make_kernel"):
            spec = model._make_kernel(model.gamma)
        else:
            spec = default_kernel() if model.kernel is None else as_kernel(model.kernel)
        kernel = sample.resolve(spec)
        if self.is_gp:
            if np.ndim(model.alpha):
                raise ValueError("alpha must be one number to be tuned, not one per observation")
            mean, std = model._normalisation(self.Y)
            self.Y = (self.Y - mean) / std
        self.mean_diagonal = float(np.mean(kernel.diag(self.X))) or 1.0
        # alpha is tuned unless the kernel contains a noise term.
        self.tunes_alpha = not kernel.domain.distinguishes_observations
        if not kernel.theta.size and not (self.tunes_alpha and isinstance(model, _WITH_RIDGE)):
            raise ValueError(
                f"{kernel} has no free parameters, and {type(model).__name__} has no "
                f"regularisation that can be tuned, so there is nothing to tune"
            )
        self.kernel = memoise_if_affordable(kernel, len(sample), model.max_memory)

    def solve(self) -> tuple[Any, Optimum, _RecordedObjective]:
        """Return the tuned estimator, the optimum, and the recorded objective."""
        if self.name != "alignment":
            optimum, recorded = self._search(self._objective())
            return self._tuned_model(*self._split(optimum.theta)), optimum, recorded
        if not self.kernel.theta.size:
            raise ValueError(
                f"{self.kernel} has no free parameters, so its alignment cannot change; "
                f"use objective='loo' to tune the regularisation"
            )
        aligned = TargetAlignment(self.kernel, self.X, self.Y, self.weights, self.model.max_memory)
        optimum, recorded = self._search(aligned)
        self.kernel, alpha = self.kernel.with_theta(optimum.theta), None
        if self.tunes_alpha:
            ridge_optimum, _ = self._search(self._criterion(Fixed(self.kernel), "loo"))
            alpha = float(np.exp(ridge_optimum.theta[0]))
        return self._tuned_model(self.kernel, alpha), optimum, recorded

    def value(self, value: float) -> float:
        """Convert an internal objective value to the reported one, such as a squared error."""
        if self.name == "alignment":
            return value / len(self.Y)
        objective = self._objective()
        return objective.error(value) if isinstance(objective, RidgeCriterion) else value

    @property
    def names(self) -> list[str]:
        """The names of the entries of theta."""
        ridge = self.tunes_alpha and self.name != "alignment"
        return [*self.kernel.theta_names, *["alpha"] * ridge]

    def _objective(self) -> Any:
        """Return the function of theta that is maximised."""
        if not self.is_gp or self.name == "gcv":
            return self._criterion(self.kernel, self.name)
        noise = 0.0 if self.tunes_alpha else float(self.model.alpha)
        kernel = Sum((self.kernel, White(self._alpha))) if self.tunes_alpha else self.kernel
        kind = LeaveOneOut if self.name == "loo" else MarginalLikelihood
        return kind(kernel, self.X, self.Y, noise, self.model.max_memory)

    def _criterion(self, kernel: Kernel, name: str) -> RidgeCriterion:
        """Return the criterion `name` of ridge regression with this kernel."""
        return RidgeCriterion(
            kernel,
            self.X,
            self.Y,
            0.0 if self.weights is None else 1.0 / self.weights,
            self.model.max_memory,
            alpha=self._alpha,
            free=self.tunes_alpha,
            intercept=bool(getattr(self.model, "fit_intercept", not self.is_gp)),
            criterion=name,
        )

    @property
    def _alpha(self) -> float:
        """The initial alpha: that of the estimator, clipped to the range of initial values."""
        low, high = (factor * self.mean_diagonal for factor in _TUNING.initial_alpha_range)
        initial = low
        if isinstance(self.model, (KernelRidge, GaussianProcessRegressor)):
            initial = float(np.mean(self.model.alpha))
        elif isinstance(self.model, _WITH_RIDGE):
            initial = _c_times_alpha(self.model) / self.model.C
        return float(np.clip(initial, low, high)) if self.tunes_alpha else max(initial, 1e-300)

    def _search(self, objective: Any) -> tuple[Optimum, _RecordedObjective]:
        """Maximise an objective, and warn if the search did not converge."""
        bounds, recorded = objective.kernel.bounds, _RecordedObjective(objective)
        ridge = np.log(np.array(_TUNING.alpha_bounds) * self.mean_diagonal)
        if isinstance(objective, RidgeCriterion) and objective.free:
            bounds = np.vstack([bounds, ridge])
        elif isinstance(objective, Objective) and self.tunes_alpha:
            bounds[-1] = ridge
        optimum = maximise(recorded, self._initial_theta(objective), bounds, log=self.progress)
        if not optimum.converged:
            warn_caller(
                f"the search did not converge after {optimum.evaluations} evaluations: "
                f"{optimum.message}. Try other initial parameters, Bounded parameters, or another "
                f"objective",
                ConvergenceWarning,
            )
        elif objective.capabilities.standard_error:
            why = "a further step would improve the objective by far less than its standard error"
            optimum = replace(optimum, message=why)
        return optimum, recorded

    def _initial_theta(self, objective: Any) -> np.ndarray:
        """Return the theta of the estimator, or a better one from a coarse grid.

        Objectives often have several local optima along the length scales, including one at
        infinite length scales, where the kernel is constant.  The grid points are compared on a
        subset of the points.
        """
        start, n = objective.start, length(self.X)
        names = objective.kernel.theta_names
        scales = np.array(["length_scale" in name for name in names] + [False] * len(start))
        scales = scales[: len(start)]
        alphas: Any = [start[-1:]]
        if self.tunes_alpha and not isinstance(objective, TargetAlignment):
            alphas = np.log(np.array(_TUNING.coarse_alphas) * self.mean_diagonal)[:, None]
        subset_objective = objective
        if n > _TUNING.max_points_initial:
            subset_objective = objective.subset(
                np.linspace(0, n - 1, _TUNING.max_points_initial).astype(int)
            )
        best_theta, best_value = start, subset_objective.value(start)
        for factor in _TUNING.coarse_scales if scales.any() else (1.0,):
            for alpha in alphas:
                theta = start + np.log(factor) * scales
                theta[-1:] = alpha if len(alphas) > 1 else theta[-1:]
                value = subset_objective.value(theta)
                if value > best_value:
                    best_theta, best_value = theta, value
        return best_theta

    def _split(self, theta: np.ndarray) -> tuple[Kernel, float | None]:
        """Return the kernel and the alpha (None if it is not tuned) for theta."""
        p = self.kernel.theta.size
        alpha = float(np.exp(theta[p])) if self.tunes_alpha else None
        return self.kernel.with_theta(theta[:p]), alpha

    def _tuned_model(self, kernel: Kernel, alpha: float | None) -> Any:
        """Return the estimator with this kernel, and with alpha or the equivalent C."""
        model, values = self.model, dict[str, Any](kernel=unwrap(kernel))
        if alpha is not None and isinstance(model, _WITH_RIDGE):
            uses_C = hasattr(model, "C")
            values |= {"C": _c_times_alpha(model) / alpha} if uses_C else {"alpha": alpha}
        if isinstance(model, NamedKernelEstimator):
            values |= model._named_kernel_defaults()
        if isinstance(model, GaussianProcess):
            values["optimizer"] = None
        return model.set_params(**values)


def _c_times_alpha(model: Any) -> float:
    """Return C times alpha for which an estimator with C corresponds to ridge regression.

    It is 1/2 for SVMs, as if their loss were the squared error.  For logistic regression it is 4,
    from the second derivative 1/4 of the log loss at 0.
    """
    return 4.0 if isinstance(model, KernelLogisticRegression) else 0.5


def _targets(sample: Sample) -> np.ndarray:
    """Return the targets or one-hot encoded labels; raise an error if they are constant."""
    Y = np.asarray(sample.targets_for_kernel, dtype=float)
    if np.all(Y[0] == Y):
        raise ValueError(f"all {len(Y)} targets are equal, so there is nothing to tune; check y")
    return Y
