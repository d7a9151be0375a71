"""tune(): the parameters of a kernel and the ridge, found by gradients instead of a grid."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import ConvergenceWarning

from .._errors import warn_caller
from .._points import doubled, length
from .._runtime import blas_threads, check_choice, entry_point, is_count, progress, reserving
from ..gp import (
    Capabilities,
    LeaveOneOut,
    MarginalLikelihood,
    Objective,
    Optimum,
    RidgeCriterion,
    maximise,
)
from ..gram import memoise_if_affordable
from ..kernels import Fixed, Kernel, Sum, White, as_kernel, unwrap
from ..learning import TargetAlignment
from ._base import KernelEstimator, NamedKernel
from ._gaussian_process import GaussianProcessRegressor
from ._gaussian_process_base import GaussianProcess
from ._gaussian_process_theta import default_kernel
from ._logistic import KernelLogisticRegression
from ._ridge import KernelRidge
from ._sample import Sample
from .svm import SVC, SVR

__all__ = ["Tuned", "tune"]

_MOST = 4000  # points up to which "auto" searches on all of them
_ALPHAS = (1e-9, 1e4)  # bounds of alpha, in units of the mean of k(x, x)
_STARTS = (1e-3, 1.0)  # where a search for it starts at least and at most, in these units
_COARSE_ALPHAS = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)  # further starts, in units of the mean of k(x, x)
_COARSE_SCALES = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0)  # and in units of the length scales given
_FEW = 200  # points on which starts are compared
_RIDGED = (KernelRidge, GaussianProcessRegressor, SVC, SVR, KernelLogisticRegression)

OBJECTIVES = ("loo", "gcv", "likelihood", "alignment")


@dataclass(frozen=True, eq=False)
class Tuned:
    """What `tune` found; `print` it.

    Attributes
    ----------
    estimator : estimator
        Not fitted, with the kernel and the ridge found.
    objective : str
    value : float
        The mean squared error of "loo" and "gcv", the log likelihood or log predictive density, or
        the alignment.
    evaluations : int
        Of the objective with its gradient, on all points of the search.
    converged : bool
    message : str
        Why the search ended, and what it was made on.
    history : list of (float, ndarray)
        The value and theta at each evaluation; theta are logarithms of the parameters of the
        kernel, in the order of `names`, then of alpha.
    names : list of str
    start : ndarray
        The theta of the estimator as it was given; the search may have begun elsewhere.

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
    X: Any,
    y: Any,
    objective: str = "loo",
    *,
    sample_weight: Any = None,
    subsample: int | str | None = "auto",
    random_state: int = 0,
    verbose: int = 0,
) -> Tuned:
    """Return the estimator with the parameters of its kernel, and its ridge, set by gradients.

    ============== ==========================================================================
    objective      what is best
    ============== ==========================================================================
    "loo"          the mean squared error of leave-one-out, in closed form; for a Gaussian process
                   the log density of each target given the others
    "gcv"          generalised cross-validation
    "likelihood"   the marginal likelihood; for a ridge with the best variance of the process
    "alignment"    the alignment of the kernel with the targets; the ridge then by "loo"
    ============== ==========================================================================

    All parameters of the kernel are searched at once, one length scale for each column included:
    ``RBF([1.0] * d)``.  `Fixed(kernel)` holds some, `Bounded` limits them.  A gradient costs about
    as much as a few fits, whatever their number, so that dozens of evaluations do what a grid
    cannot.  An objective may have several optima: the search starts at the kernel that was given,
    or with its length scales up to eight times shorter or four times longer and other ridges, if
    that is better on 200 of the points.

    Parameters
    ----------
    estimator : estimator
        A regressor or classifier of mercer, which is not changed.  Classifiers, and regressors with
        another loss than squares, are tuned *by a surrogate*: least squares, with an intercept, on
        the targets or on indicators of the classes.

        ================================== ====================================================
        estimator                          the ridge
        ================================== ====================================================
        KernelRidge                        alpha, unless the kernel has noise (White) of its own
        GaussianProcessRegressor           the same; `optimizer=None` then keeps what was found
        SVC, SVR                           C = 1 / (2 alpha), as if their losses were squares
        KernelLogisticRegression           C = 4 / alpha, for the squares nearest to its loss
        others                             left as it is
        ================================== ====================================================
    X, y : points and targets
    objective : str
    sample_weight : array of shape (n,), optional
        Weights of squared errors.  Leave-one-out leaves out a point with all its weight.  "loo" and
        "likelihood" of a Gaussian process have no weights, and raise an error.
    subsample : "auto", int or None
        Search on so many points, drawn at random; None for all.  "auto" is all up to 4000 and
        4000 of more, with a warning: an evaluation takes n^3 operations and two n x n arrays.
    random_state : int
        Of that draw.
    verbose : int

    Returns
    -------
    Tuned
        With `estimator`, `value`, `history`.

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
    if not isinstance(estimator, KernelEstimator) or not (
        is_classifier(estimator) or is_regressor(estimator)
    ):
        raise TypeError(f"tune takes a regressor or a classifier of mercer, got {estimator!r}")
    if estimator._precomputed:
        raise ValueError("a precomputed kernel has no parameters; give a kernel and the points")
    model = clone(estimator)
    with blas_threads(length(X)), reserving(), progress("tune", verbose) as say:
        labels = is_classifier(model)
        sample = model._sample(X, y, sample_weight, labels=labels)
        sample, note = _subsample(sample, subsample, random_state)
        problem = _Problem(model, sample, objective, say)
        names = problem.names
        tuned, found, way = problem.solve()
        message = "; ".join(filter(None, [found.message, note]))
        history = [(problem.value(value), theta) for value, theta in way.history]
        return Tuned(
            tuned,
            objective,
            problem.value(found.value),
            found.evaluations,
            found.converged,
            message,
            history,
            names,
            way.start,
        )


def _subsample(sample: Sample, wanted: Any, seed: int) -> tuple[Sample, str]:
    n = len(sample)
    if wanted != "auto" and wanted is not None and not is_count(wanted):
        raise ValueError(f"subsample must be 'auto', a positive integer or None, got {wanted!r}")
    most = _MOST if wanted == "auto" else n if wanted is None else wanted
    if n <= most:
        return sample, ""
    if wanted == "auto":
        warn_caller(
            f"a search on {n} points takes about {n**3:.0e} operations for each evaluation, so it "
            f"is made on {most} of them, drawn at random. subsample={most} asks for that, "
            f"subsample=None searches on all"
        )
    rows = np.sort(np.random.default_rng(seed).permutation(n)[:most])
    return sample.take(rows), f"found on {most} of {n} points"


class _Recorded:
    """An objective that remembers what it was asked."""

    def __init__(self, objective: Any) -> None:
        self.objective, self.X = objective, objective.X
        inner = objective.capabilities  # second derivatives are not recorded, so not offered
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


class _Problem:
    """What is searched for, for which estimator."""

    def __init__(self, model: Any, sample: Sample, name: str, say: Any) -> None:
        self.model, self.name, self.say = model, name, say
        self.process = isinstance(model, GaussianProcessRegressor)
        if self.process and name in ("loo", "likelihood") and sample.weights is not None:
            raise ValueError(
                f"objective={name!r} of a GaussianProcessRegressor would ignore the sample_weight "
                f"that was given for {len(sample)} points: its observations have no weights. Use "
                f"objective='gcv' or 'alignment', or tune a KernelRidge"
            )
        self.X, self.weights, self.Y = doubled(sample.points), sample.weights, _targets(sample)
        if hasattr(model, "_make_kernel"):
            spec = model._make_kernel(model.gamma)
        else:
            spec = default_kernel() if model.kernel is None else as_kernel(model.kernel)
        kernel = sample.resolve(spec)
        if self.process:
            if np.ndim(model.alpha):
                raise ValueError("alpha must be one number to be tuned, not one per observation")
            mean, std = model._normalisation(self.Y)
            self.Y = (self.Y - mean) / std
        self.size = float(np.mean(kernel.diag(self.X))) or 1.0
        self.free = not kernel.tells_observations_apart  # else the noise is a part of the kernel
        if not kernel.theta.size and not (self.free and isinstance(model, _RIDGED)):
            raise ValueError(
                f"{kernel} has no free parameters, and {type(model).__name__} no ridge that is "
                f"searched for: there is nothing to tune"
            )
        self.kernel = memoise_if_affordable(kernel, len(sample), model.max_memory)

    def solve(self) -> tuple[Any, Optimum, _Recorded]:
        """Return the tuned model, where the search ended, and how."""
        if self.name != "alignment":
            found, way = self._search(self._objective())
            return self._settled(*self._split(found.theta)), found, way
        if not self.kernel.theta.size:
            raise ValueError(
                f"{self.kernel} has no free parameters, so its alignment cannot change; "
                f"objective='loo' tunes the ridge"
            )
        aligned = TargetAlignment(self.kernel, self.X, self.Y, self.weights, self.model.max_memory)
        found, way = self._search(aligned)
        self.kernel, alpha = self.kernel.with_theta(found.theta), None
        if self.free:
            ridge, _ = self._search(self._criterion(Fixed(self.kernel), "loo"))
            alpha = float(np.exp(ridge.theta[0]))
        return self._settled(self.kernel, alpha), found, way

    def value(self, value: float) -> float:
        """Return an objective as people read it."""
        if self.name == "alignment":
            return value / len(self.Y)
        objective = self._objective()
        return objective.error(value) if isinstance(objective, RidgeCriterion) else value

    @property
    def names(self) -> list[str]:
        """The names of theta."""
        ridge = self.free and self.name != "alignment"
        return [*self.kernel.theta_names, *["alpha"] * ridge]

    def _objective(self) -> Any:
        if not self.process or self.name == "gcv":
            return self._criterion(self.kernel, self.name)
        noise = 0.0 if self.free else float(self.model.alpha)
        kernel = Sum((self.kernel, White(self._alpha))) if self.free else self.kernel
        kind = LeaveOneOut if self.name == "loo" else MarginalLikelihood
        return kind(kernel, self.X, self.Y, noise, self.model.max_memory)

    def _criterion(self, kernel: Kernel, name: str) -> RidgeCriterion:
        return RidgeCriterion(
            kernel,
            self.X,
            self.Y,
            0.0 if self.weights is None else 1.0 / self.weights,
            self.model.max_memory,
            alpha=self._alpha,
            free=self.free,
            intercept=bool(getattr(self.model, "fit_intercept", not self.process)),
            criterion=name,
        )

    @property
    def _alpha(self) -> float:
        """Where the search for alpha starts: as given, but not where everything is flat."""
        low, high = (part * self.size for part in _STARTS)
        given = low
        if isinstance(self.model, (KernelRidge, GaussianProcessRegressor)):
            given = float(np.mean(self.model.alpha))
        elif isinstance(self.model, _RIDGED):
            given = _factor(self.model) / self.model.C
        return float(np.clip(given, low, high)) if self.free else max(given, 1e-300)

    def _search(self, objective: Any) -> tuple[Optimum, _Recorded]:
        bounds, way = objective.kernel.bounds, _Recorded(objective)
        ridge = np.log(np.array(_ALPHAS) * self.size)
        if isinstance(objective, RidgeCriterion) and objective.free:
            bounds = np.vstack([bounds, ridge])
        elif isinstance(objective, Objective) and self.free:
            bounds[-1] = ridge
        found = maximise(way, self._start(objective), bounds, say=self.say)
        if not found.converged:
            warn_caller(
                f"the search ended after {found.evaluations} evaluations without convergence: "
                f"{found.message}. Try another start, Bounded parameters, or another objective",
                ConvergenceWarning,
            )
        elif objective.capabilities.standard_error:
            why = "a further step would gain far less than other data of this kind would change"
            found = replace(found, message=why)
        return found, way

    def _start(self, objective: Any) -> np.ndarray:
        """Return the theta given, or a better one nearby: coarse steps, judged on a few points.

        Objectives have several optima, most often along the length scales, among them the one at
        infinity, where a kernel is flat.
        """
        start, n = objective.start, length(self.X)
        names = objective.kernel.theta_names
        scales = np.array(["length_scale" in name for name in names] + [False] * len(start))
        scales = scales[: len(start)]
        alphas: Any = [start[-1:]]
        if self.free and not isinstance(objective, TargetAlignment):
            alphas = np.log(np.array(_COARSE_ALPHAS) * self.size)[:, None]
        few = objective
        if n > _FEW:
            few = objective.subset(np.linspace(0, n - 1, _FEW).astype(int))
        best, most = start, few.value(start)
        for step in _COARSE_SCALES if scales.any() else (1.0,):
            for alpha in alphas:
                theta = start + np.log(step) * scales
                theta[-1:] = alpha if len(alphas) > 1 else theta[-1:]
                value = few.value(theta)
                if value > most:
                    best, most = theta, value
        return best

    def _split(self, theta: np.ndarray) -> tuple[Kernel, float | None]:
        p = self.kernel.theta.size
        return self.kernel.with_theta(theta[:p]), float(np.exp(theta[p])) if self.free else None

    def _settled(self, kernel: Kernel, alpha: float | None) -> Any:
        """Return the model with this kernel and ridge, in its own words."""
        model, values = self.model, dict[str, Any](kernel=unwrap(kernel))
        if alpha is not None and isinstance(model, _RIDGED):
            C = hasattr(model, "C")
            values |= {"C": _factor(model) / alpha} if C else {"alpha": alpha}
        if isinstance(model, NamedKernel):
            values |= model._defaults_of_names()
        if isinstance(model, GaussianProcess):
            values["optimizer"] = None
        return model.set_params(**values)


def _factor(model: Any) -> float:
    """Return C alpha: of squares for machines; log losses near 0 are C/2 of squares of f/2."""
    return 4.0 if isinstance(model, KernelLogisticRegression) else 0.5


def _targets(sample: Sample) -> np.ndarray:
    Y = np.asarray(sample.learned_from, dtype=float)
    if np.all(Y[0] == Y):
        raise ValueError(f"all {len(Y)} targets are equal: there is nothing to tune for")
    return Y
