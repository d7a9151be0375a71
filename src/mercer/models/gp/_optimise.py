"""Maximisation of an objective over theta within bounds, by L-BFGS or Newton steps.

With many observations, the first search uses a random quarter of them, at 1/64 of the cost.  If the
objective has cheap approximate second derivatives (`with_information`), Newton steps on half of the
observations follow, and then on all of them; the last step is so small that it needs no gradient.
Otherwise, the Hessian on the quarter is computed by finite differences, and the search on all
observations starts with a Newton step that uses it.  If the optimum on the quarter is on a bound,
or its Hessian is not negative definite, it is used only if the gradient on all observations points
to it.  These shortcuts change the path, not the conditions for an optimum.

A likelihood may have several local optima.  Which one is found depends on the start and on the
path, so that other software may find another one.  With few observations the search takes the same
path as scikit-learn.

A Newton step maximises a quadratic model within the bounds and a trust region (`QuadraticModel`).
"""

from __future__ import annotations

from collections.abc import Callable as Function
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.optimize import minimize

from ..._core import ProgressStep, check_choice, entry_point, length

# --- Newton steps within the bounds and a trust region.


@dataclass(frozen=True)
class _TrustRegionTuning:
    """Tolerances and limits of the trust-region steps; theta contains logarithms of parameters."""

    # Largest trust-region radius, in log parameters.
    max_step: float = 2.0
    # Lower limit of the diagonal of the curvature matrix B, which scales the parameters.  An entry
    # is 0 if the objective does not depend on the parameter.
    min_information: float = 1e-12
    # Multipliers of active bounds below this, relative to the largest gradient entry, count as 0.
    gradient_rounding: float = 1e-9
    # Lower limit of the eigenvalues of the scaled B, relative to the largest one.
    min_relative_curvature: float = 1e-9
    # Curvature is estimated only from steps shorter than this, in log parameters: along longer
    # steps it changes too much.
    max_learning_step: float = 0.5
    # Number of recent steps that are used to correct B.
    n_corrections: int = 3
    # A step corrects B only if the ratio of the observed curvature to that predicted by B is below
    # this value or above its inverse.
    agreement_ratio: float = 0.6
    # Observed curvature below this fraction of the predicted one is not used: BFGS updates need
    # positive curvature.
    min_curvature_ratio: float = 0.05


_TRUST_REGION = _TrustRegionTuning()


@dataclass
class QuadraticModel:
    """Quadratic model v + g^T e - 1/2 e^T B e of an objective at theta + d, for a step d.

        e = exp(d) - 1 for a noise variance, else e = d

    v and g are the value and gradient at theta, which contains the logarithms of the parameters.  K
    + noise is linear in the noise variance, and if this variance is small, the objective is nearly
    linear in it as well.  In the logarithm of the variance, the objective would flatten
    exponentially, and all steps would be short.

    B approximates minus the second derivatives.  Along recent short steps, the gradients at both
    ends give the actual curvature.  Where it differs from B, BFGS updates correct B.

    Parameters
    ----------
    bounds : ndarray of shape (p, 2)
        The bounds of theta.
    noise_mask : ndarray of shape (p,), optional
        Mask of the parameters that are noise variances.
    radius : float or ndarray of shape (p,), default=1
        The trust-region radius for each parameter; `update` adapts it.
    steps : list of pairs of ndarrays
        Each recent step e, with the decrease of the gradient along it.
    """

    bounds: np.ndarray
    noise_mask: np.ndarray | bool = False
    radius: float | np.ndarray = 1.0
    steps: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)

    def bfgs_corrected(self, B: np.ndarray) -> np.ndarray:
        """Return B with BFGS corrections for the curvature along the last steps."""
        for s, y in self.steps[-_TRUST_REGION.n_corrections :]:
            Bs = B @ s
            observed, predicted = s @ y, s @ Bs
            agreement = _TRUST_REGION.agreement_ratio
            agrees = agreement * predicted < observed < predicted / agreement
            if observed > _TRUST_REGION.min_curvature_ratio * predicted > 0.0 and not agrees:
                B = B - np.outer(Bs, Bs) / predicted + np.outer(y, y) / observed
        return B

    def step(self, theta: np.ndarray, g: np.ndarray, B: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the best step d within the bounds and the trust region, and its predicted gain."""
        scale = np.sqrt(np.maximum(B.diagonal(), _TRUST_REGION.min_information))
        w, V = np.linalg.eigh(B / np.outer(scale, scale))
        # w[-1] >= 1 unless B is 0 (a flat objective); max(w[-1], 1) keeps H invertible even then
        H = (V * np.maximum(w, _TRUST_REGION.min_relative_curvature * max(w[-1], 1.0))) @ V.T
        low, high = np.clip(self.bounds.T - theta, -self.radius, self.radius)
        e_low, e_high = self._to_model_step(low), self._to_model_step(high)
        scaled = _maximise_in_box(H, g / scale, e_low * scale, e_high * scale)
        e = np.clip(scaled / scale, e_low, e_high)
        d = np.where(self.noise_mask, np.log1p(np.where(self.noise_mask, e, 0.0)), e)
        return np.clip(d, low, high), float(g @ e - 0.5 * e @ B @ e)

    def _to_model_step(self, d: np.ndarray) -> np.ndarray:
        """Return e = exp(d) - 1 for noise variances, else e = d."""
        return np.where(self.noise_mask, np.expm1(d), d)

    def min_useful_gain(self, s: np.ndarray, predicted_gain: float) -> float:
        """Return the gain above which the derivatives at the end of a step s are needed.

        They are needed if the step is accepted, or if it is short enough to correct B.
        """
        return -predicted_gain if np.abs(s).max() < _TRUST_REGION.max_learning_step else 0.0

    def update(
        self,
        s: np.ndarray,
        g: np.ndarray,
        new_gradient: np.ndarray,
        actual_gain: float,
        predicted_gain: float,
    ) -> bool:
        """Update the model after a step s from gradient g; return whether to accept the step."""
        e = self._to_model_step(s)
        # A new gradient of 0 means that it was not computed.
        if np.abs(s).max() < _TRUST_REGION.max_learning_step and new_gradient.any():
            ratio = np.where(self.noise_mask, 1.0 + e, 1.0)  # the derivative of e in the step s
            self.steps.append((e, g - new_gradient / ratio))
        if actual_gain < 0.25 * predicted_gain:
            # Shrink the radius to the maximum of the parabola through the values at both ends of
            # the step, but to no less than 0.1 and no more than 0.5 of the step.
            linear_gain, fraction = g @ e, 0.0
            if -np.inf < actual_gain < linear_gain:
                fraction = 0.5 * linear_gain / (linear_gain - actual_gain)
            self.radius = np.minimum(self.radius, min(max(fraction, 0.1), 0.5) * np.abs(s))
        elif actual_gain > 0.5 * predicted_gain:
            self.radius = np.minimum(_TRUST_REGION.max_step, 4.0 * self.radius)
        return actual_gain > 0.0


def _maximise_in_box(H: np.ndarray, g: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return the d in a box around 0 that maximises g^T d - 1/2 d^T H d.

    This is an active-set method: `free` marks the variables that are not fixed at a bound.
    """
    d = np.zeros(g.size)
    free = ((low < 0.0) | (g > 0.0)) & ((high > 0.0) | (g < 0.0))
    for _ in range(4 * g.size + 4):
        move = np.zeros(g.size)
        move[free] = np.linalg.solve(H[np.ix_(free, free)], (g - H @ d)[free])
        distance = np.where(move > 0.0, high - d, np.where(move < 0.0, low - d, np.inf))
        fraction = np.divide(distance, move, out=np.full(g.size, np.inf), where=move != 0.0)
        if fraction.min(initial=np.inf) < 1.0:  # stop at the first bound and fix that variable
            blocking = int(np.argmin(fraction))
            d = np.clip(d + max(fraction[blocking], 0.0) * move, low, high)
            d[blocking], free[blocking] = (high if move[blocking] > 0.0 else low)[blocking], False
            continue
        d = d + move
        multipliers = np.where(free, 0.0, (g - H @ d) * np.where(d >= high, -1.0, 1.0))
        if not multipliers.max(initial=0.0) > _TRUST_REGION.gradient_rounding * np.abs(g).max(
            initial=0.0
        ):
            break
        free[np.argmax(multipliers)] = True  # free the variable whose release gains most
    return d


# --- Searches for the optimum.


@dataclass(frozen=True)
class _OptimiserTuning:
    """Tolerances and limits of `maximise`; theta contains the logarithms of the parameters."""

    # From this many observations on, the search starts with a quarter of them.
    many_observations: int = 500
    # Step of the finite differences for second derivatives, in log parameters.
    difference_step: float = 1e-3
    # Distance from a bound, in log parameters, below which an optimum counts as being on it.
    bound_margin: float = 0.01
    # If the curvature per observation is below this, the optimum on a quarter of the data counts as
    # undetermined.
    min_curvature: float = 1e-6
    # Search range around the optimum on a quarter of the data, in standard deviations.
    max_deviations: float = 100.0
    # If the values are estimates, the search stops at a step that gains less than this fraction of
    # their standard error.
    min_gain_in_errors: float = 0.01
    # Tolerances of L-BFGS for the gradient and for the relative gain: the defaults of SciPy.
    gtol: float = 1e-5
    ftol: float = 2.2e-9
    # Gradient tolerance in coordinates with unit curvature; there, a gradient g means that the
    # objective can still increase by g^2/2.
    scaled_gtol: float = 1e-3
    # A search that gained less than this is not restarted from its end point.
    min_restart_gain: float = 1e-3
    # Smallest gain worth a step on a subset of the observations, in units of the objective.
    rough_gain: float = 0.1
    # Smallest gain worth a step on all observations, in units of the objective per observation.
    final_gain: float = 1e-7
    # Two directions with a cosine above this count as the same direction.
    min_cosine: float = 0.99
    # Number of bisection steps when a parameter is moved from its bound towards its start value.
    bisections: int = 4
    # After this many Newton steps without convergence, L-BFGS takes over.
    max_newton_steps: int = 30
    # The Newton iteration ends after this many successive steps with a negligible gain.
    max_idle_steps: int = 2
    # A gain is negligible if it is below this multiple of the smallest gain worth a step.
    idle_gain_factor: float = 2.0
    # The gradient is not computed at the end of a Newton step if the predicted gain of the next
    # step is below this fraction of the minimum gain.  That step is then the last one.
    value_only_ratio: float = 0.01
    # Number of steps that L-BFGS stores if there are many parameters.
    lbfgs_memory: int = 20
    # Number of steps over which the average gain is measured; single steps often gain little.
    gain_window: int = 10
    # Gradients below this multiple of sqrt(n) count as 0, for n observations; sqrt(n) is their
    # typical size at the true theta.
    max_final_slope: float = 0.02


_TUNING = _OptimiserTuning()


@dataclass(frozen=True)
class Optimum:
    """The result of `maximise`: the best parameters and how the search ended.

    Attributes
    ----------
    theta : ndarray of shape (p,)
        The best parameters found.
    value : float
        The objective at theta.
    evaluations : int
        The number of evaluations of the value with its gradient, on all observations.
    converged : bool
        Whether the search converged.
    message : str
        Why the search ended.

    See Also
    --------
    maximise : Compute an optimum.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.models.gp import MarginalLikelihood, maximise
    >>> from mercer.kernels import RBF
    >>> X, k = np.linspace(0, 1, 20)[:, None], RBF()
    >>> likelihood = MarginalLikelihood(k, X, np.sin(6 * X[:, 0]), noise=0.01)
    >>> best = maximise(likelihood, k.theta, k.bounds)
    >>> best.converged, np.exp(best.theta).round(2)
    (True, array([0.3]))
    """

    theta: np.ndarray
    value: float
    evaluations: int
    converged: bool
    message: str


@entry_point
def maximise(
    objective: Any,
    start: np.ndarray,
    bounds: np.ndarray,
    *,
    first_step: str = "both",
    log: Function[[str], None] | None = None,
    max_iter: int = 1000,
    gain: float | None = None,
    seed: int = 0,
) -> Optimum:
    """Return the theta near `start` that maximises the objective within the bounds.

    The search uses L-BFGS or, if the objective has cheap approximate second derivatives, Newton
    steps in a trust region.  With more than 500 observations it starts on a random subset of them.

    Parameters
    ----------
    objective : MarginalLikelihood or another objective
        An object with `X`, `value_and_gradient(theta)`, and the other methods that its
        `capabilities` list.
    start : ndarray of shape (p,)
        The initial theta; it is clipped to the bounds.
    bounds : ndarray of shape (p, 2)
        The lower and upper bounds of theta, like ``kernel.bounds``; theta and its bounds are
        logarithms of parameters.
    first_step : {"both", "gradient", "unit"}, default="both"
        The first step if there are few observations.  "gradient" uses the gradient itself as the
        step, as scikit-learn does; a long step may end in a corner of the bounds.  "unit" limits
        the length of the step to 1.  "both" tries "gradient" and, if it ends on a bound, also
        "unit", and returns the better result.
    log : callable, optional
        Function that is called with a line of progress text after each evaluation.
    max_iter : int, default=1000
        Largest number of steps of each search.  Increase it if `converged` is False.
    gain : float, optional
        The search ends when the last ten steps gained less than this on average.  Use it for
        problems with many parameters, where small gains are always possible.
    seed : int, default=0
        Random seed for choosing the subset of observations.

    Returns
    -------
    Optimum
        The best theta of shape (p,), the value there, and whether the search converged.

    See Also
    --------
    MarginalLikelihood : An objective.
    tune : Choose the parameters of an estimator.

    Notes
    -----
    A likelihood may have several local optima.  To find a better one, start from several values of
    theta and use the result with the largest value.

    References
    ----------
    Byrd, Lu, Nocedal and Zhu, "A limited memory algorithm for bound constrained optimization", SIAM
    Journal on Scientific Computing 16, 1995.

    Nocedal and Wright, "Numerical Optimization", 2nd edition, Springer, 2006.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF, White
    >>> from mercer.models.gp import MarginalLikelihood, maximise
    >>> X = np.linspace(0, 1, 40)[:, None]
    >>> y = np.sin(6 * X[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=40)
    >>> kernel = 1.0 * RBF() + White()
    >>> best = maximise(MarginalLikelihood(kernel, X, y), kernel.theta, kernel.bounds)
    >>> np.exp(best.theta).round(3)
    array([0.22 , 0.586, 0.005])
    """
    check_choice("first_step", first_step, "both", "gradient", "unit")
    optimiser = _ThetaOptimiser(objective, bounds, max_iter, log, gain)
    start = optimiser.clip_to_bounds(start)
    n = length(objective.X)
    if n >= _TUNING.many_observations and objective.capabilities.cheap_information:
        start = _start_from_subsets(objective, start, bounds, max_iter, seed)
        best = optimiser.newton(start, _TUNING.final_gain * n)
        return best if best.converged else optimiser.lbfgs(best.theta)
    if n >= _TUNING.many_observations and objective.capabilities.subset:
        rows = np.sort(np.random.default_rng(seed).permutation(n)[: n // 4])
        subset_optimiser = _ThetaOptimiser(objective.subset(rows), bounds, max_iter)
        subset_optimum = subset_optimiser.lbfgs(start)
        H = subset_optimiser.curvature(subset_optimum)
        if H is not None:
            best = optimiser.lbfgs(subset_optimum.theta, H * (n / len(rows)))
            if best.converged or optimiser.is_interior(best.theta):
                return best
            start = best.theta
        else:
            start = optimiser.follow_direction(start, subset_optimum.theta)
    best = optimiser.lbfgs(start, unit_step=first_step == "unit")
    has_other_step = first_step == "both" and len(first_steps(objective)) > 1
    if has_other_step and optimiser.on_bounds(best.theta).any():
        best = max(best, optimiser.lbfgs(start, unit_step=True), key=lambda end: end.value)
    return replace(best, evaluations=optimiser.evaluations)


def first_steps(objective: Any) -> tuple[str, ...]:
    """Return the options of `first_step` in `maximise` that give different results.

    With many observations, or if the values of the objective are estimates, only "unit" is used.
    """
    is_large = length(objective.X) >= _TUNING.many_observations
    is_estimate = objective.capabilities.standard_error
    return ("unit",) if is_large or is_estimate else ("gradient", "unit")


def _start_from_subsets(
    objective: Any, start: np.ndarray, bounds: np.ndarray, max_iter: int, seed: int
) -> np.ndarray:
    """Return a start for the full search: the optimum on a quarter, refined on half of the data."""
    n = length(objective.X)
    order, theta = np.random.default_rng(seed).permutation(n), start
    for size in (n // 4, n // 2):
        optimiser = _ThetaOptimiser(objective.subset(np.sort(order[:size])), bounds, max_iter)
        if size < n // 2:
            rough = optimiser.lbfgs(theta, rough=True)
        else:
            rough = optimiser.newton(theta, _TUNING.rough_gain)
        theta = optimiser.move_off_bounds(rough.theta, start)
    return theta


class _ThetaOptimiser:
    """Optimisation methods for one objective; counts evaluations and reports progress."""

    def __init__(
        self,
        objective: Any,
        bounds: np.ndarray,
        max_iter: int,
        log: Function[[str], None] | None = None,
        gain: float | None = None,
    ) -> None:
        self.gain = gain
        self.objective, self.bounds, self.max_iter, self.log = objective, bounds, max_iter, log
        self.evaluations = 0
        self.last_point: Any = None  # theta, value and gradient at the end of the last search

    def clip_to_bounds(self, theta: np.ndarray) -> np.ndarray:
        """Return theta, clipped to the bounds."""
        return np.minimum(np.maximum(theta, self.bounds[:, 0]), self.bounds[:, 1])

    def is_interior(self, theta: np.ndarray) -> bool:
        """Whether no parameter is on a bound or close to one."""
        return bool(np.all(np.abs(theta[:, None] - self.bounds) > _TUNING.bound_margin))

    def on_bounds(self, theta: np.ndarray) -> np.ndarray:
        """Return a mask of the parameters that are exactly on a bound."""
        return np.asarray(np.any(theta[:, None] == self.bounds, axis=1))

    def evaluate(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the value and gradient at theta."""
        value, gradient = self.objective.value_and_gradient(theta)
        self._record(value, gradient)
        return value, gradient

    def _record(self, value: float, gradient: np.ndarray) -> None:
        """Count an evaluation and report it as progress."""
        self.evaluations += 1
        if self.log is not None:
            largest = np.abs(gradient).max(initial=0.0)
            gradient_text = f", gradient {largest:.1e}" if largest else ""
            self.log(ProgressStep(f"evaluation {self.evaluations}: {value:.6g}{gradient_text}"))

    def curvature(self, best: Optimum) -> np.ndarray | None:
        """Return minus the Hessian at an optimum.

        Return None if the optimum is on a bound, is flat, or has not converged.
        """
        theta = best.theta
        if not best.converged or not self.is_interior(theta):
            return None
        H = np.empty((theta.size, theta.size))
        for i, step in enumerate(_TUNING.difference_step * np.eye(theta.size)):
            up, down = (self.evaluate(theta + sign * step)[1] for sign in (1, -1))
            H[i] = (down - up) / (2.0 * _TUNING.difference_step)
        H = 0.5 * (H + H.T)
        smallest = _TUNING.min_curvature * length(self.objective.X)
        return H if np.linalg.eigvalsh(H)[0] > smallest else None

    def follow_direction(self, start: np.ndarray, end: np.ndarray) -> np.ndarray:
        """Return `end`, the optimum on a subset, if the gradient at `start` points to it.

        Otherwise, or if `end` is not better on all observations, return `start`.  This saves
        steps if the kernel explains nothing in the data: the objective then flattens out
        exponentially, and a search would need many steps of equal length.
        """
        value, gradient = self.evaluate(start)
        self.last_point = start, value, gradient
        direction = end - start
        if gradient @ direction > _TUNING.min_cosine * np.linalg.norm(gradient) * np.linalg.norm(
            direction
        ):
            end_value, end_gradient = self.evaluate(end)
            if end_value > value:
                self.last_point = end, end_value, end_gradient
        return np.asarray(self.last_point[0])

    def move_off_bounds(self, theta: np.ndarray, start: np.ndarray) -> np.ndarray:
        """Return theta with parameters on bounds moved towards `start` without a relevant loss.

        At a bound the objective is often flat, for example at a very large length scale or a very
        small noise.  A search on more observations that starts there would see no gradient towards
        a better value.
        """
        best = self.objective.value(theta)
        for i in np.flatnonzero(
            np.any(np.abs(theta[:, None] - self.bounds) < _TUNING.bound_margin, axis=1)
        ):
            low, high = 0.0, 1.0
            for _ in range(_TUNING.bisections):
                fraction, moved = 0.5 * (low + high), theta.copy()
                moved[i] += fraction * (start[i] - theta[i])
                is_as_good = self.objective.value(moved) > best - _TUNING.rough_gain
                low, high = (fraction, high) if is_as_good else (low, fraction)
            theta = theta.copy()
            theta[i] += low * (start[i] - theta[i])
        return theta

    def newton(
        self, start: np.ndarray, min_gain: float, max_idle: int = _TUNING.max_idle_steps
    ) -> Optimum:
        """Return the optimum found by Newton steps.

        The iteration ends if no step is predicted to increase the objective by more than
        `min_gain`, or after `max_idle` successive steps with a negligible gain.
        """
        noise_mask = self.objective.noise_mask
        model, full_radius_model = (QuadraticModel(self.bounds, noise_mask) for _ in range(2))
        theta = start
        value, gradient, B = self.evaluate_information(theta)
        previous_gain, idle_steps = 0.0, 0  # previous_gain is the predicted gain of the last step
        for _ in range(min(_TUNING.max_newton_steps, self.max_iter)):
            if not np.isfinite(value):
                break
            H = model.bfgs_corrected(B)
            step, predicted_gain = model.step(theta, gradient, H)
            # A small trust region limits the predicted gain, so a model with the full radius is
            # checked as well.
            if (
                predicted_gain <= min_gain
                and full_radius_model.step(theta, gradient, H)[1] <= min_gain
            ):
                message = "no step is predicted to increase the objective further"
                return self._optimum(theta, value, True, message)
            new_theta = self.clip_to_bounds(theta + step)
            # Extrapolate the gain of the next step, assuming that gains shrink by a constant
            # factor.  If it is negligible, this step is the last one and needs no gradient.
            if predicted_gain**2 <= _TUNING.value_only_ratio * min_gain * previous_gain:
                new_value = self.objective.value(new_theta)
                if new_value > value:
                    message = "no further step is predicted to increase the objective"
                    return self._optimum(new_theta, new_value, True, message)
            moved = new_theta - theta
            new_value, new_gradient, new_B = self.evaluate_information(
                new_theta, value + model.min_useful_gain(moved, predicted_gain)
            )
            actual_gain = new_value - value
            is_idle = abs(actual_gain) <= _TUNING.idle_gain_factor * min_gain
            idle_steps = idle_steps + 1 if is_idle else 0
            previous_gain = predicted_gain if actual_gain > 0.5 * predicted_gain else 0.0
            if model.update(moved, gradient, new_gradient, actual_gain, predicted_gain):
                theta, value, gradient, B = new_theta, new_value, new_gradient, new_B
            if idle_steps == max_idle:
                message = "the last steps did not change the objective"
                return self._optimum(theta, value, True, message)
        return self._optimum(theta, value, False, "the Newton steps did not converge")

    def evaluate_information(
        self, theta: np.ndarray, above: float = -np.inf
    ) -> tuple[float, np.ndarray, np.ndarray]:
        """Return the value, gradient and information matrix at theta.

        The gradient and the matrix are 0 if the value is not greater than `above`.
        """
        value, gradient, B = self.objective.with_information(theta, above)
        self._record(value, gradient)
        return value, gradient, B

    def lbfgs(
        self,
        start: np.ndarray,
        H: np.ndarray | None = None,
        *,
        rough: bool = False,
        unit_step: bool = False,
        fixed: np.ndarray | None = None,
    ) -> Optimum:
        """Return the optimum found by L-BFGS in the coordinates u of theta = start + R u.

        If H, minus the Hessian, is given, R R^T = H^-1, so that the curvature in u is about 1;
        otherwise R = I.

        Parameters
        ----------
        start : ndarray of shape (p,)
        H : ndarray of shape (p, p), optional
            Minus the Hessian at `start`.  If H is given, the bounds of theta are not bounds of u.
            A search that reaches a bound is therefore restarted with those parameters fixed.
        rough : bool
            Whether to stop as soon as a step gains less than `rough_gain`.
        unit_step : bool
            Whether to limit the length of the first step to 1.
        fixed : ndarray of bool of shape (p,), optional
            The parameters that are fixed on their bounds; only with H.
        """
        n_fixed = 0 if fixed is None else int(fixed.sum())
        if self.last_point is not None and np.array_equal(self.last_point[0], start):
            _, value, gradient = self.last_point
        else:
            value, gradient = self.evaluate(start)
        if not np.isfinite(value):
            return self._optimum(start, value, False, "the objective is not finite at the start")
        # standard_error is a function of theta if the values are estimates, otherwise None.
        standard_error = None
        if self.objective.capabilities.standard_error:
            standard_error = self.objective.standard_error
        if H is None:
            R, u_bounds = None, self.bounds - start[:, None]
            # By default, the first step of L-BFGS is the gradient; a long step ends in a corner
            # of the bounds.  With few observations we accept this, because scikit-learn does the
            # same and we want to find the same optimum.
            unit_step |= rough or "gradient" not in first_steps(self.objective)
            scale = 1.0 / max(1.0, float(np.linalg.norm(gradient))) if unit_step else 1.0
            options = {"gtol": _TUNING.gtol * scale, "ftol": _TUNING.ftol}
            if self.gain is not None:  # without bounds, L-BFGS limits its first step itself
                scale = 1.0
                options = {"gtol": _TUNING.gtol, "ftol": 0.0, "maxcor": _TUNING.lbfgs_memory}
        else:
            free, scale = np.arange(start.size) if fixed is None else np.flatnonzero(~fixed), 1.0
            R = np.zeros((start.size, free.size))
            R[free] = np.linalg.inv(np.linalg.cholesky(H[np.ix_(free, free)])).T
            u_bounds = np.tile([-_TUNING.max_deviations, _TUNING.max_deviations], (free.size, 1))
            options = {"gtol": _TUNING.scaled_gtol, "ftol": 1e-12}
        to_theta, to_u = (np.asarray,) * 2 if R is None else (R.__matmul__, R.T.__matmul__)
        start_value, cache = value, {start.tobytes(): (value, gradient)}
        best: list[Any] = [value, start, gradient]
        values: list[float] = []  # the value after each step
        min_gain = _TUNING.rough_gain if rough else -np.inf
        if standard_error is not None and not rough:
            min_gain = _TUNING.min_gain_in_errors * standard_error(start)

        def negative_objective(u: np.ndarray) -> tuple[float, np.ndarray]:
            theta = self.clip_to_bounds(start + to_theta(u))
            key = theta.tobytes()
            value, gradient = cache.pop(key) if key in cache else self.evaluate(theta)
            if value > best[0]:
                best[:] = value, theta, gradient
            return -scale * value, -scale * to_u(gradient)

        def gains_too_little() -> bool:
            if self.gain is None or H is not None or len(values) <= _TUNING.gain_window:
                return False
            window = _TUNING.gain_window
            return values[-1] - values[-1 - window] < window * self.gain

        def step(intermediate_result: Any) -> None:
            values.append(-float(intermediate_result.fun) / scale)
            gained_little = len(values) > 1 and values[-1] - values[-2] < min_gain
            reached_bound = H is not None and self.on_bounds(best[1]).sum() > n_fixed
            if gained_little or reached_bound or gains_too_little():
                raise StopIteration

        result = minimize(
            negative_objective,
            np.zeros(len(u_bounds)),
            jac=True,
            method="L-BFGS-B",
            bounds=u_bounds,
            callback=step if H is not None or min_gain > -np.inf or self.gain is not None else None,
            options={"maxiter": self.max_iter, **options},
        )
        value, theta, gradient = best
        self.last_point = theta, value, gradient
        on_bounds = self.on_bounds(theta)
        if H is not None and on_bounds.sum() > n_fixed:
            return self.lbfgs(theta) if on_bounds.all() else self.lbfgs(theta, H, fixed=on_bounds)
        if rough:
            return self._optimum(theta, value, True, "a step gained less than the rough tolerance")
        if gains_too_little():
            message = f"the last {_TUNING.gain_window} steps gained too little"
            return self._optimum(theta, value, True, message)
        move = self.clip_to_bounds(theta + gradient) - theta
        converged, message = bool(result.success), _describe_stop(str(result.message))
        if fixed is not None and np.any(fixed & (move != 0.0)):
            return self.lbfgs(theta)  # the objective increases away from a bound
        slope = np.abs(move).max(initial=0.0)
        is_steep = slope > _TUNING.max_final_slope * np.sqrt(length(self.objective.X))
        if converged and is_steep and standard_error is None:
            # The objective is divided by the length of the initial gradient, so that a steep start
            # widens the tolerance for the gain; a restart from here narrows it.
            if value > start_value + _TUNING.min_restart_gain:
                return self.lbfgs(theta)
            converged = False
            message = f"the objective is still increasing: its gradient in theta is {slope:.1e}"
        if not converged and standard_error is None and self.objective.capabilities.information:
            # A parameter that the data determine very precisely, such as a period, has a large
            # gradient even very close to its optimum.  L-BFGS then makes no progress in the other
            # parameters, but Newton steps do.
            refined = self.newton(
                theta, _TUNING.min_restart_gain, max_idle=_TUNING.max_newton_steps
            )
            theta, value, converged = refined.theta, refined.value, refined.converged
            message = refined.message if converged else message
        if standard_error is not None and not converged:
            error, gain = standard_error(theta), values[-1] - values[-2] if values[1:] else np.inf
            if H is not None:
                gain = min(gain, 0.5 * float(np.sum(to_u(gradient) ** 2)))
            converged = gain <= error
            message = (
                f"the objective and its gradient are estimates, which disagree near the optimum; "
                f"the remaining gain is about {gain:.1e}, with a standard error of {error:.1e}"
            )
        return self._optimum(theta, value, converged, message)

    def _optimum(self, theta: np.ndarray, value: float, converged: bool, message: str) -> Optimum:
        """Return an `Optimum` with the number of evaluations so far."""
        return Optimum(theta, value, self.evaluations, converged, message)


def _describe_stop(message: str) -> str:
    """Convert the stop message of SciPy's L-BFGS to readable text."""
    if message.startswith("ABNORMAL"):
        return (
            "the line search found no increase along the gradient; the usual cause is rounding "
            "errors, because K + noise is nearly singular; try a larger noise"
        )
    return message.strip().rstrip(".").capitalize()
