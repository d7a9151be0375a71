"""The search for the best theta within bounds: L-BFGS, or steps of Newton's.

With many observations it is first made on a quarter of them, at 1/64 of the cost.  If the
objective has cheap approximate second derivatives (`with_information`), Newton steps on half of the
observations and then on all of them follow; the last step is so small that it needs no gradient.
Otherwise the curvature of the quarter, found by differences, makes the first
step on all of them one of Newton's; a quarter whose optimum is on a bound, or is none, is used
only if all of them rise straight towards it.  None of that changes what an optimum is.

A likelihood may have several optima, and which of them is found depends on the way as well as on
the start: another program may end at another one.  With few observations the way is that of
scikit-learn.
"""

from __future__ import annotations

from collections.abc import Callable as Function
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import minimize

from .._points import length
from .._runtime import Step, check_choice, entry_point
from ._newton import Model

__all__ = ["Optimum", "maximise"]

_MANY = 500  # observations from which a quarter is searched first
_STEP = 1e-3  # the step in log parameters of finite differences
_MARGIN = 0.01  # an optimum this close to a bound counts as on it
_FLAT = 1e-6  # curvature per observation below which a quarter of the data fixes no theta
_FAR = 100.0  # standard deviations from the optimum of a quarter that are searched at most
_NOISE = 0.01  # a step that gains less than this part of a standard error is the last
_GRADIENT, _GAIN = 1e-5, 2.2e-9  # where a search ends, as SciPy has them
_SCALED_GRADIENT = 1e-3  # with unit curvature, the value can rise by half its square
_WORTH = 1e-3  # a search that gained less, or would gain less, does not go on from its end
_ROUGH = 0.1  # in units of the objective, what is worth no step on some of the observations
_GAINS = 1e-7  # per observation, what is worth no step on all of them
_STRAIGHT = 0.99  # the cosine of an angle that is next to none
_HALVINGS = 4  # of the way from a bound to the start
_PATIENCE = 30  # steps of Newton's after which L-BFGS goes on
_IDLE, _LITTLE = 2, 2.0  # steps in succession that gained next to nothing, and how little
_SURE = 0.01  # part of what is worth a step that may be left where slopes are not asked for
_PAIRS = 20  # steps that L-BFGS remembers, of a search for many parameters
_SPAN = 10  # steps over which a gain is measured: single ones are often small
_SLOPE = 0.02  # slopes below this part of sqrt(n), their size at the true theta, count as 0


@dataclass(frozen=True)
class Optimum:
    """Where a search ended.

    Attributes
    ----------
    theta : ndarray
    value : float
    evaluations : int
        Values with gradients, on all observations.
    converged : bool
    message : str
        Why it ended.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gp import MarginalLikelihood, maximise
    >>> from mercer.kernels import RBF
    >>> X, k = np.linspace(0, 1, 20)[:, None], RBF()
    >>> likelihood = MarginalLikelihood(k, X, np.sin(6 * X[:, 0]), noise=0.01)
    >>> found = maximise(likelihood, k.theta, k.bounds)
    >>> found.converged, np.exp(found.theta).round(2)
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
    way: str = "both",
    say: Function[[str], None] | None = None,
    max_iter: int = 1000,
    gain: float | None = None,
    seed: int = 0,
) -> Optimum:
    """Return the theta near `start` that maximises the objective within the bounds.

    Parameters
    ----------
    objective : MarginalLikelihood or another objective
        An object with `X`, `value_and_gradient(theta)`, and the other methods that its
        `capabilities` list.
    start : ndarray of shape (p,)
    bounds : ndarray of shape (p, 2)
        In log space, as those of a kernel.
    way : {"both", "bold", "cautious"}
        With few observations, the length of the first step: the gradient, as scikit-learn has it,
        which may lead into a corner of the bounds; at most 1; or if the one has led to a bound,
        the other as well.
    say : function, optional
        Called with a line of progress after each evaluation.
    max_iter : int
    gain : float, optional
        Where ten steps gain less than this each, a search from a start ends; for many parameters,
        of which some can always gain a little.
    seed : int
        Of the choice of a quarter.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF, White
    >>> from mercer.gp import MarginalLikelihood, maximise
    >>> X = np.linspace(0, 1, 40)[:, None]
    >>> y = np.sin(6 * X[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=40)
    >>> kernel = 1.0 * RBF() + White()
    >>> best = maximise(MarginalLikelihood(kernel, X, y), kernel.theta, kernel.bounds)
    >>> np.exp(best.theta).round(3)
    array([0.22 , 0.586, 0.005])
    """
    check_choice("way", way, "both", "bold", "cautious")
    search = _Search(objective, bounds, max_iter, say, gain)
    start = search.within(start)
    n = length(objective.X)
    if n >= _MANY and objective.capabilities.cheap_information:
        best = search.ascend(_approach(objective, start, bounds, max_iter, seed), _GAINS * n)
        return best if best.converged else search.climb(best.theta)
    if n >= _MANY and objective.capabilities.subset:
        rows = np.sort(np.random.default_rng(seed).permutation(n)[: n // 4])
        part = _Search(objective.subset(rows), bounds, max_iter)
        near = part.climb(start)
        H = part.curvature(near)
        if H is not None:
            best = search.climb(near.theta, H * (n / len(rows)))
            if best.converged or search.inside(best.theta):
                return best
            start = best.theta
        else:
            start = search.follow(start, near.theta)
    best = search.climb(start, cautious=way == "cautious")
    if way == "both" and ways(objective)[1:] and search.on_bounds(best.theta).any():
        best = max(best, search.climb(start, cautious=True), key=lambda end: end.value)
    return replace(best, evaluations=search.evaluations)


def ways(objective: Any) -> tuple[str, ...]:
    """Return the ways of `maximise` that differ: with many observations there is but one."""
    few = length(objective.X) < _MANY and not objective.capabilities.standard_error
    return ("bold", "cautious") if few else ("cautious",)


def _approach(
    objective: Any, start: np.ndarray, bounds: np.ndarray, max_iter: int, seed: int
) -> np.ndarray:
    """Return where a quarter of the observations, and then half of them, are roughly best."""
    n = length(objective.X)
    order, theta = np.random.default_rng(seed).permutation(n), start
    for size in (n // 4, n // 2):
        part = _Search(objective.subset(np.sort(order[:size])), bounds, max_iter)
        rough = part.climb(theta, rough=True) if size < n // 2 else part.ascend(theta, _ROUGH)
        theta = part.edge(rough.theta, start)
    return theta


class _Search:
    """Counts evaluations, and says how it goes."""

    def __init__(
        self,
        objective: Any,
        bounds: np.ndarray,
        max_iter: int,
        say: Function[[str], None] | None = None,
        gain: float | None = None,
    ) -> None:
        self.gain = gain
        self.objective, self.bounds, self.max_iter, self.say = objective, bounds, max_iter, say
        self.evaluations = 0
        self.latest: Any = None  # where the last search ended: theta, value, gradient

    def within(self, theta: np.ndarray) -> np.ndarray:
        return np.minimum(np.maximum(theta, self.bounds[:, 0]), self.bounds[:, 1])

    def inside(self, theta: np.ndarray) -> bool:
        """Tell whether theta is on no bound, nor close to one."""
        return bool(np.all(np.abs(theta[:, None] - self.bounds) > _MARGIN))

    def on_bounds(self, theta: np.ndarray) -> np.ndarray:
        """Return which parameters are on a bound."""
        return np.asarray(np.any(theta[:, None] == self.bounds, axis=1))

    def evaluate(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = self.objective.value_and_gradient(theta)
        self._count(value, gradient)
        return value, gradient

    def _count(self, value: float, gradient: np.ndarray) -> None:
        self.evaluations += 1
        if self.say is not None:
            steepest = np.abs(gradient).max(initial=0.0)
            words = f", gradient {steepest:.1e}" if steepest else ""
            self.say(Step(f"evaluation {self.evaluations}: {value:.6g}{words}"))

    def curvature(self, best: Optimum) -> np.ndarray | None:
        """Return minus the second derivatives at an optimum; None if it is on a bound or flat."""
        theta = best.theta
        if not best.converged or not self.inside(theta):
            return None
        H = np.empty((theta.size, theta.size))
        for i, step in enumerate(_STEP * np.eye(theta.size)):
            up, down = (self.evaluate(theta + sign * step)[1] for sign in (1, -1))
            H[i] = (down - up) / (2.0 * _STEP)
        H = 0.5 * (H + H.T)
        return H if np.linalg.eigvalsh(H)[0] > _FLAT * length(self.objective.X) else None

    def follow(self, start: np.ndarray, end: np.ndarray) -> np.ndarray:
        """Return where some observations led to, if all of them rise straight towards it.

        Where the kernel sees nothing in the data, the objective levels off like an exponential, and
        a search goes along it in many steps of one length.
        """
        value, gradient = self.evaluate(start)
        self.latest = start, value, gradient
        way = end - start
        if gradient @ way > _STRAIGHT * np.linalg.norm(gradient) * np.linalg.norm(way):
            there, slopes = self.evaluate(end)
            if there > value:
                self.latest = end, there, slopes
        return np.asarray(self.latest[0])

    def edge(self, theta: np.ndarray, start: np.ndarray) -> np.ndarray:
        """Return theta with parameters on bounds moved towards `start`, as far as that is as good.

        On a bound the objective is often flat, as it is in a width that is large already or in a
        noise that is small: nothing tells there that more observations would have it elsewhere.
        """
        best = self.objective.value(theta)
        for i in np.flatnonzero(np.any(np.abs(theta[:, None] - self.bounds) < _MARGIN, axis=1)):
            low, high = 0.0, 1.0
            for _ in range(_HALVINGS):
                share, moved = 0.5 * (low + high), theta.copy()
                moved[i] += share * (start[i] - theta[i])
                good = self.objective.value(moved) > best - _ROUGH
                low, high = (share, high) if good else (low, share)
            theta = theta.copy()
            theta[i] += low * (start[i] - theta[i])
        return theta

    def ascend(self, start: np.ndarray, least: float, most_idle: int = _IDLE) -> Optimum:
        """Return where steps of Newton's end, each of which gains at least so much.

        So many in succession that gain next to nothing are an end as well.
        """
        model, fresh = (Model(self.bounds, self.objective.noises) for _ in range(2))
        theta = start
        value, gradient, B = self.inform(theta)
        before, idle = 0.0, 0  # what the last step was expected to gain; steps without gain
        for _ in range(min(_PATIENCE, self.max_iter)):
            if not np.isfinite(value):
                break
            H = model.corrected(B)
            step, expected = model.step(theta, gradient, H)
            # within a short reach little is gained anywhere
            if expected <= least and fresh.step(theta, gradient, H)[1] <= least:
                return self._ended(theta, value, True, "no step gains more")
            there = self.within(theta + step)
            if (
                expected**2 <= _SURE * least * before
            ):  # as far below it as this is below the last one
                new = self.objective.value(there)
                if new > value:
                    return self._ended(there, new, True, "no second step gains more")
            moved = there - theta
            new, slopes, information = self.inform(there, value + model.least(moved, expected))
            gained = new - value
            idle = idle + 1 if abs(gained) <= _LITTLE * least else 0
            before = expected if gained > 0.5 * expected else 0.0
            if model.judge(moved, gradient, slopes, gained, expected):
                theta, value, gradient, B = there, new, slopes, information
            if idle == most_idle:
                return self._ended(theta, value, True, "steps gain nothing")
        return self._ended(theta, value, False, "steps of Newton's did not settle")

    def inform(
        self, theta: np.ndarray, above: float = -np.inf
    ) -> tuple[float, np.ndarray, np.ndarray]:
        value, gradient, B = self.objective.with_information(theta, above)
        self._count(value, gradient)
        return value, gradient, B

    def climb(
        self,
        start: np.ndarray,
        H: np.ndarray | None = None,
        *,
        rough: bool = False,
        cautious: bool = False,
        held: np.ndarray | None = None,
    ) -> Optimum:
        """Return where L-BFGS ends, which searches for u in theta = start + R u.

        R R^T = H^-1 if the curvature is known, so that it is about 1 in u; else R = I.  In these
        directions bounds are no bounds of u.  So a search that steps on one goes on without the
        parameters that are on theirs, which are `held`.  A `cautious` first step has length 1.
        """
        known_bounds = 0 if held is None else int(held.sum())
        if self.latest is not None and np.array_equal(self.latest[0], start):
            _, value, gradient = self.latest
        else:
            value, gradient = self.evaluate(start)
        if not np.isfinite(value):
            return self._ended(start, value, False, "it is not finite at the start")
        errors = None  # of the values, if they are estimates
        if self.objective.capabilities.standard_error:
            errors = self.objective.standard_error
        if H is None:
            R, box = None, self.bounds - start[:, None]
            # The first step is the gradient: if long, into a corner of the bounds.  That is how
            # scikit-learn searches too, and with few observations we follow it, to its optimum.
            cautious |= rough or "bold" not in ways(self.objective)
            unit = 1.0 / max(1.0, float(np.linalg.norm(gradient))) if cautious else 1.0
            options = {"gtol": _GRADIENT * unit, "ftol": _GAIN}
            if self.gain is not None:  # points have no bounds, so that L-BFGS itself is cautious
                unit, options = 1.0, {"gtol": _GRADIENT, "ftol": 0.0, "maxcor": _PAIRS}
        else:
            free, unit = np.arange(start.size) if held is None else np.flatnonzero(~held), 1.0
            R = np.zeros((start.size, free.size))
            R[free] = np.linalg.inv(np.linalg.cholesky(H[np.ix_(free, free)])).T
            box = np.tile([-_FAR, _FAR], (free.size, 1))
            options = {"gtol": _SCALED_GRADIENT, "ftol": 1e-12}
        turn, back = (_same, _same) if R is None else (R.__matmul__, R.T.__matmul__)
        first, known = value, {start.tobytes(): (value, gradient)}
        best: list[Any] = [value, start, gradient]
        climbed: list[float] = []  # the values after each step
        least = _ROUGH if rough else -np.inf if errors is None else _NOISE * errors(start)

        def negative(u: np.ndarray) -> tuple[float, np.ndarray]:
            theta = self.within(start + turn(u))
            place = theta.tobytes()
            value, gradient = known.pop(place) if place in known else self.evaluate(theta)
            if value > best[0]:
                best[:] = value, theta, gradient
            return -unit * value, -unit * back(gradient)

        def slow() -> bool:
            if self.gain is None or H is not None or len(climbed) <= _SPAN:
                return False
            return bool(climbed[-1] - climbed[-1 - _SPAN] < _SPAN * self.gain)

        def step(intermediate_result: Any) -> None:
            climbed.append(-float(intermediate_result.fun) / unit)
            if slow():
                raise StopIteration
            if len(climbed) > 1 and climbed[-1] - climbed[-2] < least:
                raise StopIteration
            if H is not None and self.on_bounds(best[1]).sum() > known_bounds:
                raise StopIteration

        result = minimize(
            negative,
            np.zeros(len(box)),
            jac=True,
            method="L-BFGS-B",
            bounds=box,
            callback=step if H is not None or least > -np.inf or self.gain is not None else None,
            options={"maxiter": self.max_iter, **options},
        )
        value, theta, gradient = best
        self.latest = theta, value, gradient
        now = self.on_bounds(theta)
        if H is not None and now.sum() > known_bounds:
            return self.climb(theta) if now.all() else self.climb(theta, H, held=now)
        if rough:
            return self._ended(theta, value, True, "roughly")
        if slow():
            return self._ended(theta, value, True, f"{_SPAN} steps gain too little")
        slope = np.abs(self.within(theta + gradient) - theta).max(initial=0.0)
        converged, message = bool(result.success), _reason(str(result.message))
        if held is not None and np.any(held & (self.within(theta + gradient) != theta)):
            return self.climb(theta)  # it rises on the way back from a bound
        if converged and errors is None and slope > _SLOPE * np.sqrt(length(self.objective.X)):
            if value > first + _WORTH:  # tolerances of a steep start are wide: here they are not
                return self.climb(theta)
            converged, message = False, f"it still rises, with a slope of {slope:.1e} in theta"
        if not converged and errors is None and self.objective.capabilities.information:
            # A period that is known to many digits has a slope at any distance from where it is
            # best, beside which no step of L-BFGS sees the other parameters: Newton's do.
            settled = self.ascend(theta, _WORTH, most_idle=_PATIENCE)
            theta, value, converged = settled.theta, settled.value, settled.converged
            message = settled.message if converged else message
        if errors is not None and not converged:
            error, gain = errors(theta), climbed[-1] - climbed[-2] if climbed[1:] else np.inf
            if H is not None:
                gain = min(gain, 0.5 * float(np.sum(back(gradient) ** 2)))
            converged = gain <= error
            message = (
                f"values and gradients are estimates, and do not agree to the end; about "
                f"{gain:.1e} is left to be gained, with a standard error of {error:.1e}"
            )
        return self._ended(theta, value, converged, message)

    def _ended(self, theta: np.ndarray, value: float, converged: bool, message: str) -> Optimum:
        return Optimum(theta, value, self.evaluations, converged, message)


def _same(u: np.ndarray) -> np.ndarray:
    return u


def _reason(message: str) -> str:
    """Put L-BFGS's reason to end into words."""
    if message.startswith("ABNORMAL"):
        return (
            "no step along the gradient raises it, which rounding explains where K + noise is "
            "nearly singular"
        )
    return message.strip().rstrip(".").capitalize()
