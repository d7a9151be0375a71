"""Losses of the values F = f(x_i) against the targets Y, row by row, with two derivatives.

    Squared             |y - f|^2                              y any numbers
    Poisson             exp(f) - y f                           y >= 0, of mean exp(f)
    SquaredHinge        sum_c max(0, 1 - y_c f_c)^2            y_c = +1 or -1, one against the rest
    Logistic            log(1 + exp(-y f))                     y = +1 or -1
    Softmax             log sum_c exp f_c - <y, f>             y the unit vector of the class
    Given               value(y, f)                            what the user says

for Newton's method, and with r = y - f and a slope that is bounded, for quadratic programs:

    Huber               r^2 up to |r| = e, then 2 e |r| - e^2
    Absolute            |r|
    Quantile            q max(r, 0) + (1 - q) max(-r, 0)
    EpsilonInsensitive  max(|r| - e, 0)

All are convex in f.  All but Softmax are sums over the outputs, so that the second derivative of a
row is diagonal.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, softmax

from ..._errors import warn_caller

__all__ = [
    "Absolute",
    "EpsilonInsensitive",
    "Given",
    "Huber",
    "Local",
    "Logistic",
    "Loss",
    "PiecewiseQuadratic",
    "Poisson",
    "Quantile",
    "Softmax",
    "Squared",
    "SquaredHinge",
]

_STEP = 1e-5  # a given gradient is compared with differences over this step


class Local(NamedTuple):
    """A loss near F: values (n,), slopes (n, q), and V -> the second derivatives times V.

    `diagonal` is that of the second derivatives, (n, q), or (n, 1) if it is the same for all
    outputs.
    """

    values: np.ndarray
    slopes: np.ndarray
    diagonal: np.ndarray
    times: Callable[[np.ndarray], np.ndarray]


class Loss(ABC):
    """loss(F, Y) -> Local, for F and Y of shape (n, q).

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers import Logistic
    >>> Logistic()(np.zeros((1, 1)), np.ones((1, 1))).slopes
    array([[-0.5]])
    """

    @abstractmethod
    def __call__(self, F: np.ndarray, Y: np.ndarray) -> Local: ...

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class Squared(Loss):
    """|y - f|^2.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers import Squared
    >>> Squared()(np.array([[1.0]]), np.array([[3.0]])).slopes
    array([[-4.]])
    """

    def __call__(self, F: np.ndarray, Y: np.ndarray) -> Local:
        gap = F - Y
        values = np.einsum("ij,ij->i", gap, gap)
        return Local(values, 2.0 * gap, np.full((len(F), 1), 2.0), lambda V: 2.0 * V)


class Poisson(Loss):
    """exp(f) - y f: minus the log-likelihood of counts of mean exp(f), but for a constant in f.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers import Poisson
    >>> Poisson()(np.array([[0.0]]), np.array([[1.0]])).slopes
    array([[0.]])
    """

    def __call__(self, F: np.ndarray, Y: np.ndarray) -> Local:
        with np.errstate(over="ignore"):  # inf says that a step went too far
            mean = np.exp(F)
        return Local((mean - Y * F).sum(axis=1), mean - Y, mean, lambda V: mean * V)


class SquaredHinge(Loss):
    """sum_c max(0, 1 - y_c f_c)^2; its second derivative jumps, its slope does not.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers import SquaredHinge
    >>> SquaredHinge()(np.array([[0.5], [2.0]]), np.array([[1.0], [1.0]])).values
    array([0.25, 0.  ])
    """

    def __call__(self, F: np.ndarray, Y: np.ndarray) -> Local:
        gap = np.maximum(1.0 - Y * F, 0.0)
        second = 2.0 * (gap > 0)
        values = np.einsum("ij,ij->i", gap, gap)
        return Local(values, -2.0 * Y * gap, second, lambda V: second * V)


class Logistic(Loss):
    """log(1 + exp(-y f)).

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers import Logistic
    >>> Logistic()(np.array([[0.0]]), np.array([[1.0]])).values.round(4)
    array([0.6931])
    """

    def __call__(self, F: np.ndarray, Y: np.ndarray) -> Local:
        wrong = expit(-Y * F)
        second = wrong * (1.0 - wrong)
        values = np.logaddexp(0.0, -Y * F).sum(axis=1)
        return Local(values, -Y * wrong, second, lambda V: second * V)


class Softmax(Loss):
    """log sum_c exp f_c - <y, f>, the multinomial log-loss.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers import Softmax
    >>> Softmax()(np.zeros((1, 3)), np.array([[1.0, 0.0, 0.0]])).values.round(4)
    array([1.0986])
    """

    def __call__(self, F: np.ndarray, Y: np.ndarray) -> Local:
        P = softmax(F, axis=1)
        above = F - F.max(axis=1, keepdims=True)  # no exp of a large number
        values = np.log(np.exp(above).sum(axis=1)) - np.einsum("ij,ij->i", Y, above)

        def times(V: np.ndarray) -> np.ndarray:
            PV = P * V
            return PV - P * PV.sum(axis=1, keepdims=True)

        return Local(values, P - Y, P * (1.0 - P), times)


class PiecewiseQuadratic(Loss):
    """A loss of r = y - f whose slope is 0 in a tube, rises, and ends at a constant on either side.

        h(r - epsilon, above) + h(-r - epsilon, below),
        h(t, c) = 0 for t <= 0,   t^2 / (2 bend) up to t = bend c,   c t - bend c^2 / 2 beyond,

    summed over outputs: piecewise linear for bend = 0.  Slopes that are bounded, and jump or have a
    kink, are what Newton's method cannot use; as a quadratic program the problem is no harder.

    Attributes
    ----------
    above, below : ndarray of shape (1,) or (q,)
        The slopes on either side, positive.
    epsilon : float
        Half the width of the tube that costs nothing.
    bend : float

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers import PiecewiseQuadratic
    >>> loss = PiecewiseQuadratic(above=1.0, below=2.0)  # a residual of -1 costs twice that of 1
    >>> loss(np.array([[0.0], [0.0]]), np.array([[1.0], [-1.0]])).values
    array([1., 2.])
    """

    def __init__(self, above: Any, below: Any, epsilon: float = 0.0, bend: float = 0.0) -> None:
        self.above = np.atleast_1d(np.asarray(above, dtype=float))
        self.below = np.atleast_1d(np.asarray(below, dtype=float))
        self.epsilon, self.bend = float(epsilon), float(bend)

    def __call__(self, F: np.ndarray, Y: np.ndarray) -> Local:
        """At a kink the slope is the middle of the subgradients."""
        gap = Y - F
        values, slopes, second = np.zeros(len(F)), np.zeros_like(F), np.zeros_like(F)
        for sign, steepest in ((1.0, self.above), (-1.0, self.below)):
            t = sign * gap - self.epsilon
            past = np.maximum(t, 0.0)
            if self.bend:
                slope = np.minimum(past / self.bend, steepest)
                second[(t >= 0) & (t <= self.bend * steepest)] = 1.0 / self.bend
            else:
                slope = steepest * np.heaviside(t, 0.5)
            values += (slope * (past - 0.5 * self.bend * slope)).sum(axis=1)
            slopes -= sign * slope
        return Local(values, slopes, second, lambda V: second * V)


class Quantile(PiecewiseQuadratic):
    """q max(r, 0) + (1 - q) max(-r, 0): the best constant is the quantile q of y.

    With several q there is one output for each.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers import Quantile
    >>> Quantile(0.9)(np.array([[0.0], [0.0]]), np.array([[1.0], [-1.0]])).values
    array([0.9, 0.1])
    """

    def __init__(self, q: Any) -> None:
        super().__init__(np.asarray(q, dtype=float), 1.0 - np.asarray(q, dtype=float))

    def __repr__(self) -> str:
        return f"Quantile({', '.join(f'{q:g}' for q in self.above)})"


class Huber(PiecewiseQuadratic):
    """r^2 while |r| <= epsilon, then 2 epsilon |r| - epsilon^2.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers import Huber
    >>> Huber(1.0)(np.array([[0.0], [0.0]]), np.array([[0.5], [3.0]])).values
    array([0.25, 5.  ])
    """

    def __init__(self, epsilon: float) -> None:
        super().__init__(2.0 * epsilon, 2.0 * epsilon, bend=0.5)

    def __repr__(self) -> str:
        return f"Huber({self.above[0] / 2.0:g})"


class Absolute(PiecewiseQuadratic):
    """|y - f|.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers import Absolute
    >>> Absolute()(np.array([[1.0]]), np.array([[3.0]])).values
    array([2.])
    """

    def __init__(self) -> None:
        super().__init__(1.0, 1.0)


class EpsilonInsensitive(PiecewiseQuadratic):
    """max(|y - f| - epsilon, 0).

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers import EpsilonInsensitive
    >>> EpsilonInsensitive(0.5)(np.array([[1.0], [1.2]]), np.array([[3.0], [1.0]])).values
    array([1.5, 0. ])
    """

    def __init__(self, epsilon: float) -> None:
        super().__init__(1.0, 1.0, epsilon)

    def __repr__(self) -> str:
        return f"EpsilonInsensitive({self.epsilon:g})"


class Given(Loss):
    """The user's own loss: an object with value(y, f), gradient(y, f) and curvature(y, f).

    Each is called with two read-only arrays of shape (n,), once for each output, and returns
    another: the loss, its first and its second derivative in f.  Where a loss is not defined its
    value may be inf or nan: no step ends there.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers import Given
    >>> class Cosh:
    ...     def value(self, y, f):
    ...         return np.cosh(f - y)
    ...     def gradient(self, y, f):
    ...         return np.sinh(f - y)
    ...     def curvature(self, y, f):
    ...         return np.cosh(f - y)
    >>> loss = Given(Cosh())
    >>> loss.check(np.ones((3, 1)))
    >>> loss(np.ones((3, 1)), np.ones((3, 1))).values
    array([1., 1., 1.])
    """

    def __init__(self, loss: Any) -> None:
        if isinstance(loss, type):
            raise TypeError(
                f"loss is the class {loss.__name__}, but must be an object: {loss.__name__}()"
            )
        self.loss = loss

    def __repr__(self) -> str:
        return repr(self.loss)

    def __call__(self, F: np.ndarray, Y: np.ndarray) -> Local:
        values = self._all("value", F, Y).sum(axis=1)
        values[np.isnan(values)] = np.inf  # so that no comparison prefers it
        slopes, second = self._all("gradient", F, Y), self._all("curvature", F, Y)
        inside = np.isfinite(values)
        lowest = second[inside].min(initial=0.0)
        if lowest < -1e-8 * np.abs(second[inside]).max(initial=0.0):
            i, c = np.argwhere((second == lowest) & inside[:, None])[0]
            raise ValueError(
                f"the curvature of {self.loss!r} is {lowest:.3g} < 0 at y = {Y[i, c]:.6g}, "
                f"f = {F[i, c]:.6g}: it is not convex, and may have many minima. Change it, or "
                f"check the sign of its curvature"
            )
        # without any curvature the length of a step is a guess: |slope| stands for it
        flat = ~(second > 0).any(axis=0)
        second[:, flat] = np.abs(slopes[:, flat])
        return Local(values, slopes, second, lambda V: second * V)

    def check(self, Y: np.ndarray) -> None:
        """Refuse a loss that is not finite at f = 0, or whose gradient is not its derivative."""
        for name in ("value", "gradient", "curvature"):
            got = self._all(name, np.zeros(Y.shape), Y)
            if not np.isfinite(got).all():
                i, c = np.argwhere(~np.isfinite(got))[0]
                raise ValueError(
                    f"the {name} of {self.loss!r} is {got[i, c]} at y = {Y[i, c]:.6g}, f = 0, "
                    f"where the search starts; the usual cause is a logarithm or a root of f. "
                    f"Write the loss for an f that may be any number"
                )
        for level in (0.0, 1.0):
            F = np.full(Y.shape, level)
            with np.errstate(invalid="ignore"):  # inf - inf, past the end of its domain
                rise = self._all("value", F + _STEP, Y) - self._all("value", F - _STEP, Y)
            want, slopes = rise / (2.0 * _STEP), self._all("gradient", F, Y)
            # where the gradient has a kink, differences see both sides of it
            room = 1e-4 * (1.0 + np.abs(want)) + 2.0 * _STEP * np.abs(self._all("curvature", F, Y))
            wrong = np.abs(slopes - want) > room  # nan, outside of the domain, is not wrong
            if wrong.any():
                i, c = np.argwhere(wrong)[0]
                raise ValueError(
                    f"the gradient of {self.loss!r} is {slopes[i, c]:.6g} at y = {Y[i, c]:.6g}, "
                    f"f = {level:g}, but differences of its value say {want[i, c]:.6g}; it must be "
                    f"the derivative in f, the second argument, of a smooth loss"
                )
            self._check_curvature(F, Y)

    def _check_curvature(self, F: np.ndarray, Y: np.ndarray) -> None:
        """Warn if it is not, to a factor of 2, the derivative of the gradient on either side."""
        here, got = self._all("gradient", F, Y), self._all("curvature", F, Y)
        sides = [(self._all("gradient", F + h, Y) - here) / h for h in (-_STEP, _STEP)]
        low, high = np.minimum(*sides), np.maximum(*sides)
        room = 1e-4 * np.abs(got).max() + 1e-8 * np.abs(here)  # differences are rounded
        wrong = (got < 0.5 * low - room) | (got > 2.0 * high + room)
        wrong &= got >= 0  # less is refused
        if wrong.any():
            i, c = np.argwhere(wrong)[0]
            warn_caller(
                f"the curvature of {self.loss!r} is {got[i, c]:.6g} at y = {Y[i, c]:.6g}, "
                f"f = {F[i, c]:g}, but differences of its gradient say {high[i, c]:.6g}; Newton's "
                f"method may take many steps, or end early. It must be the second derivative in f"
            )

    def _all(self, name: str, F: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """Return value, gradient or curvature for all outputs, (n, q)."""
        out = np.empty(F.shape)
        for c in range(F.shape[1]):
            y, f = Y[:, c], F[:, c]
            y.flags.writeable = f.flags.writeable = False  # of these two views only
            with np.errstate(all="ignore"):  # the callers check what they get
                got = np.asarray(getattr(self.loss, name)(y, f), dtype=float)
            if got.shape not in ((), (len(F),)):
                raise ValueError(
                    f"the {name} of {self.loss!r} has shape {got.shape} for {len(F)} points; it "
                    f"must return one number for each"
                )
            out[:, c] = got
        return out
