"""Loss functions with first and second derivatives.

A loss compares a prediction f with a target y.  Smooth losses, for Newton's method:

    Squared             |y - f|^2                              any y
    Poisson             exp(f) - y f                           counts y >= 0 with mean exp(f)
    SquaredHinge        sum_c max(0, 1 - y_c f_c)^2            y_c = +1 or -1, one versus rest
    Logistic            log(1 + exp(-y f))                     y = +1 or -1
    Softmax             log sum_c exp f_c - <y, f>             one-hot y
    CustomLoss          value(y, f)                            a loss defined by the user

A loss for cutting planes:

    Hinge               sum_c max(0, 1 - y_c f_c)              y_c = +1 or -1, one versus rest

Losses whose slopes in r = y - f are bounded, solved as quadratic programs:

    Huber               r^2 up to |r| = e, then 2 e |r| - e^2
    Absolute            |r|
    Quantile            q max(r, 0) + (1 - q) max(-r, 0)
    EpsilonInsensitive  max(|r| - e, 0)

All are convex in f.  All except Softmax are sums over the outputs, so that the matrix of second
derivatives at a point is diagonal.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, softmax

from ..._core import warn_caller

_DIFFERENCE_STEPS = (-1e-5, 1e-5)  # of the finite differences that check user-defined derivatives


class LocalLoss(NamedTuple):
    """Values and derivatives of a loss at the predictions F."""

    values: np.ndarray  # the loss of each point, (n,)
    slopes: np.ndarray  # first derivatives with respect to F, (n, q)
    # second derivatives with respect to each output, (n, q), or (n, 1) if equal for all outputs
    diagonal: np.ndarray
    # Maps V (n, q) to the matrix of second derivatives of each point times its row of V.
    times: Callable[[np.ndarray], np.ndarray]


class Loss(ABC):
    """Base class of losses, which compare predictions F with targets Y.

    Calling a loss with F and Y, both of shape (n, q) for n points and q outputs, evaluates it.  The
    result is a `LocalLoss` with the `values` of shape (n,), the `slopes` of shape (n, q), and the
    second derivatives.  All losses are convex in F.

    See Also
    --------
    CustomLoss : A loss defined by the user.
    RegularisedRisk : The problem that is minimised.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers import Logistic
    >>> Logistic()(np.zeros((1, 1)), np.ones((1, 1))).slopes
    array([[-0.5]])
    """

    @abstractmethod
    def __call__(self, F: np.ndarray, Y: np.ndarray) -> LocalLoss: ...

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class Squared(Loss):
    """Squared loss for regression, |y - f|^2.

    The constant prediction that minimises it is the mean of y.  It is sensitive to outliers; see
    `Huber`.

    References
    ----------
    Hastie, Tibshirani and Friedman, "The elements of statistical learning", 2nd edition, Springer,
    2009, section 2.4.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers import Squared
    >>> Squared()(np.array([[1.0]]), np.array([[3.0]])).slopes
    array([[-4.]])
    """

    def __call__(self, F: np.ndarray, Y: np.ndarray) -> LocalLoss:
        residual = F - Y
        values = np.einsum("ij,ij->i", residual, residual)
        return LocalLoss(values, 2.0 * residual, np.full((len(F), 1), 2.0), lambda V: 2.0 * V)


class Poisson(Loss):
    """Poisson loss for counts, exp(f) - y f.

    It is the negative log-likelihood of counts y with mean exp(f), up to a constant.

    References
    ----------
    McCullagh and Nelder, "Generalized linear models", 2nd edition, Chapman and Hall, 1989, chapter
    6.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers import Poisson
    >>> Poisson()(np.array([[0.0]]), np.array([[1.0]])).slopes
    array([[0.]])
    """

    def __call__(self, F: np.ndarray, Y: np.ndarray) -> LocalLoss:
        with np.errstate(over="ignore"):  # solvers reject a step whose loss is infinite
            mean = np.exp(F)
        return LocalLoss((mean - Y * F).sum(axis=1), mean - Y, mean, lambda V: mean * V)


class SquaredHinge(Loss):
    """Squared hinge loss for classification, sum_c max(0, 1 - y_c f_c)^2 for y_c = +1 or -1.

    Several classes are trained one versus rest.  Its slope is continuous, but its second derivative
    is not.  Points beyond the margin have no influence, as for an SVM, but no probabilities are
    estimated.

    References
    ----------
    Chapelle, "Training a support vector machine in the primal", Neural Computation, 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers import SquaredHinge
    >>> SquaredHinge()(np.array([[0.5], [2.0]]), np.array([[1.0], [1.0]])).values
    array([0.25, 0.  ])
    """

    def __call__(self, F: np.ndarray, Y: np.ndarray) -> LocalLoss:
        margin_error = np.maximum(1.0 - Y * F, 0.0)
        second = 2.0 * (margin_error > 0)
        values = np.einsum("ij,ij->i", margin_error, margin_error)
        return LocalLoss(values, -2.0 * Y * margin_error, second, lambda V: second * V)


class Hinge(Loss):
    """Hinge loss of support vector machines, sum_c max(0, 1 - y_c f_c) for y_c = +1 or -1.

    Several classes are trained one versus rest.  Its slope is discontinuous, so that Newton's
    method cannot minimise it.  At the kink, the slope is 0.

    See Also
    --------
    CuttingPlanes : The solver for this loss.

    References
    ----------
    Cortes and Vapnik, "Support-vector networks", Machine Learning, 1995.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers import Hinge
    >>> Hinge()(np.array([[0.5], [2.0]]), np.array([[1.0], [1.0]])).values
    array([0.5, 0. ])
    """

    def __call__(self, F: np.ndarray, Y: np.ndarray) -> LocalLoss:
        margin_error = np.maximum(1.0 - Y * F, 0.0)
        slopes = -Y * (margin_error > 0)
        zero = np.zeros_like(F)
        return LocalLoss(margin_error.sum(axis=1), slopes, zero, lambda V: 0.0 * V)


class Logistic(Loss):
    """Logistic loss for two classes, log(1 + exp(-y f)) for y = +1 or -1.

    It is the negative log-likelihood if f is the log-odds of the class +1.

    References
    ----------
    Hastie, Tibshirani and Friedman, "The elements of statistical learning", 2nd edition, Springer,
    2009, section 4.4.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers import Logistic
    >>> Logistic()(np.array([[0.0]]), np.array([[1.0]])).values.round(4)
    array([0.6931])
    """

    def __call__(self, F: np.ndarray, Y: np.ndarray) -> LocalLoss:
        error_probability = expit(-Y * F)
        second = error_probability * (1.0 - error_probability)
        values = np.logaddexp(0.0, -Y * F).sum(axis=1)
        return LocalLoss(values, -Y * error_probability, second, lambda V: second * V)


class Softmax(Loss):
    """Softmax loss for several classes, log sum_c exp f_c - <y, f> for one-hot y.

    It is the negative log-likelihood of multinomial logistic regression.  It couples the outputs,
    so that Newton steps need conjugate gradients.

    References
    ----------
    Böhning, "Multinomial logistic regression algorithm", Annals of the Institute of Statistical
    Mathematics, 1992.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers import Softmax
    >>> Softmax()(np.zeros((1, 3)), np.array([[1.0, 0.0, 0.0]])).values.round(4)
    array([1.0986])
    """

    def __call__(self, F: np.ndarray, Y: np.ndarray) -> LocalLoss:
        P = softmax(F, axis=1)
        shifted = F - F.max(axis=1, keepdims=True)  # prevents an overflow of exp
        values = np.log(np.exp(shifted).sum(axis=1)) - np.einsum("ij,ij->i", Y, shifted)

        def times(V: np.ndarray) -> np.ndarray:
            PV = P * V
            product: np.ndarray = PV - P * PV.sum(axis=1, keepdims=True)
            return product

        return LocalLoss(values, P - Y, P * (1.0 - P), times)


class PiecewiseQuadratic(Loss):
    """Piecewise quadratic loss of r = y - f with a bounded slope, summed over the outputs.

        h(r - epsilon, above) + h(-r - epsilon, below),
        h(t, c) = 0 for t <= 0,   t^2 / (2 bend) up to t = bend c,   c t - bend c^2 / 2 beyond

    It is 0 for |r| <= epsilon, then quadratic, then linear with slope `above` (positive r) or
    `below` (negative r).  For bend = 0 it is piecewise linear.  Newton's method cannot minimise
    such losses, because their slopes or second derivatives are discontinuous; `InteriorPoint`
    solves them as quadratic programs.

    Parameters
    ----------
    above, below : float or array of shape (q,)
        The absolute slopes for large positive and large negative r; positive.  As attributes, they
        are arrays of shape (1,) or (q,).
    epsilon : float, default=0.0
        Half the width of the tube in which the loss is 0.
    bend : float, default=0.0
        Inverse of the second derivative of the quadratic pieces; 0 if there are none.

    See Also
    --------
    Absolute, EpsilonInsensitive, Huber, Quantile
    InteriorPoint : The solver for these losses.

    References
    ----------
    Rockafellar and Wets, "Variational analysis", Springer, 1998, for piecewise linear-quadratic
    functions.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers import PiecewiseQuadratic
    >>> loss = PiecewiseQuadratic(above=1.0, below=2.0)  # r = -1 costs twice as much as r = 1
    >>> loss(np.array([[0.0], [0.0]]), np.array([[1.0], [-1.0]])).values
    array([1., 2.])
    """

    def __init__(
        self, above: ArrayLike, below: ArrayLike, epsilon: float = 0.0, bend: float = 0.0
    ) -> None:
        self.above = np.atleast_1d(np.asarray(above, dtype=float))
        self.below = np.atleast_1d(np.asarray(below, dtype=float))
        self.epsilon, self.bend = float(epsilon), float(bend)

    def __call__(self, F: np.ndarray, Y: np.ndarray) -> LocalLoss:
        """Return the values and derivatives; at a kink, the slope is the mean of both slopes."""
        residual = Y - F
        values, slopes, second = np.zeros(len(F)), np.zeros_like(F), np.zeros_like(F)
        for sign, max_slope in ((1.0, self.above), (-1.0, self.below)):
            t = sign * residual - self.epsilon
            excess = np.maximum(t, 0.0)
            if self.bend:
                slope = np.minimum(excess / self.bend, max_slope)
                second[(t >= 0) & (t <= self.bend * max_slope)] = 1.0 / self.bend
            else:
                slope = max_slope * np.heaviside(t, 0.5)
            values += (slope * (excess - 0.5 * self.bend * slope)).sum(axis=1)
            slopes -= sign * slope
        return LocalLoss(values, slopes, second, lambda V: second * V)


class Quantile(PiecewiseQuadratic):
    """Quantile (pinball) loss, q max(r, 0) + (1 - q) max(-r, 0) with r = y - f.

    The constant prediction that minimises it is the q-quantile of y.  If q is a list, there is one
    output for each entry.  Use it to predict intervals, such as the quantiles 0.05 and 0.95.

    Parameters
    ----------
    q : float or sequence of float
        The quantiles, between 0 and 1.

    References
    ----------
    Koenker and Bassett, "Regression quantiles", Econometrica, 1978.

    Takeuchi, Le, Sears and Smola, "Nonparametric quantile estimation", Journal of Machine Learning
    Research, 2006.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers import Quantile
    >>> Quantile(0.9)(np.array([[0.0], [0.0]]), np.array([[1.0], [-1.0]])).values
    array([0.9, 0.1])
    """

    def __init__(self, q: ArrayLike) -> None:
        super().__init__(np.asarray(q, dtype=float), 1.0 - np.asarray(q, dtype=float))

    def __repr__(self) -> str:
        return f"Quantile({', '.join(f'{q:g}' for q in self.above)})"


class Huber(PiecewiseQuadratic):
    """Huber loss for regression with outliers: quadratic for small errors, linear for large ones.

    It is r^2 for |r| <= epsilon, and 2 epsilon |r| - epsilon^2 beyond, with r = y - f.

    Parameters
    ----------
    epsilon : float
        The error from which on the loss is linear, in units of y.  Choose about 1.3 times the
        standard deviation of the noise without outliers.

    References
    ----------
    Huber, "Robust estimation of a location parameter", The Annals of Mathematical Statistics, 1964.

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
    """Absolute loss for regression with outliers, |y - f|.

    The constant prediction that minimises it is the median of y.

    References
    ----------
    Koenker and Bassett, "Regression quantiles", Econometrica, 1978.

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
    """Epsilon-insensitive loss of support vector regression, max(|y - f| - epsilon, 0).

    Points with errors below epsilon have no influence, so that the solution is sparse.

    Parameters
    ----------
    epsilon : float
        Half the width of the tube in which the loss is 0, in units of y.

    References
    ----------
    Vapnik, "The nature of statistical learning theory", Springer, 1995.

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


class CustomLoss(Loss):
    """User-defined loss: an object with value(y, f), gradient(y, f) and curvature(y, f).

    Each method is called once per output with two read-only arrays of shape (n,).  It returns an
    array of the same shape: the loss, its first derivative and its second derivative with respect
    to f.  Where the loss is not defined, its value may be inf or nan; the solver avoids such f.

    Parameters
    ----------
    loss : object
        The object with the three methods.  The loss must be convex in f.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers import CustomLoss
    >>> class Cosh:
    ...     def value(self, y, f):
    ...         return np.cosh(f - y)
    ...     def gradient(self, y, f):
    ...         return np.sinh(f - y)
    ...     def curvature(self, y, f):
    ...         return np.cosh(f - y)
    >>> loss = CustomLoss(Cosh())
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

    def __call__(self, F: np.ndarray, Y: np.ndarray) -> LocalLoss:
        values = self._evaluate("value", F, Y).sum(axis=1)
        values[np.isnan(values)] = np.inf  # solvers reject a step whose loss is infinite
        slopes, second = self._evaluate("gradient", F, Y), self._evaluate("curvature", F, Y)
        is_defined = np.isfinite(values)
        lowest = second[is_defined].min(initial=0.0)
        if lowest < -1e-8 * np.abs(second[is_defined]).max(initial=0.0):
            i, c = np.argwhere((second == lowest) & is_defined[:, None])[0]
            raise ValueError(
                f"the curvature of {self.loss!r} is {lowest:.3g} < 0 at y = {Y[i, c]:.6g}, "
                f"f = {F[i, c]:.6g}: the loss is not convex, so it may have many minima. Use a "
                f"convex loss, or check the sign of its curvature"
            )
        # If the curvature of an output is 0 at all points, |slope| replaces it in Newton steps.
        no_curvature = ~(second > 0).any(axis=0)
        second[:, no_curvature] = np.abs(slopes[:, no_curvature])
        return LocalLoss(values, slopes, second, lambda V: second * V)

    def check(self, Y: np.ndarray) -> None:
        """Check that the loss is finite at f = 0, and that its gradient is correct.

        The gradient is compared with finite differences.

        Parameters
        ----------
        Y : ndarray of shape (n, q)
            Targets at which the loss is evaluated.

        Raises
        ------
        ValueError
            If a check fails.
        """
        for name in ("value", "gradient", "curvature"):
            values = self._evaluate(name, np.zeros(Y.shape), Y)
            if not np.isfinite(values).all():
                i, c = np.argwhere(~np.isfinite(values))[0]
                raise ValueError(
                    f"the {name} of {self.loss!r} is {values[i, c]} at y = {Y[i, c]:.6g}, f = 0, "
                    f"where the solver starts; the usual cause is a logarithm or a root of f. "
                    f"Define the loss for every real f"
                )
        for level in (0.0, 1.0):
            F = np.full(Y.shape, level)
            with np.errstate(invalid="ignore"):  # inf - inf occurs outside the domain of the loss
                low, high = (self._evaluate("value", F + h, Y) for h in _DIFFERENCE_STEPS)
                expected = (high - low) / (2.0 * _DIFFERENCE_STEPS[1])
            slopes = self._evaluate("gradient", F, Y)
            # Next to a kink of the gradient, the finite difference mixes the slopes of both sides.
            kink = 2.0 * _DIFFERENCE_STEPS[1] * np.abs(self._evaluate("curvature", F, Y))
            tolerance = 1e-4 * (1.0 + np.abs(expected)) + kink
            # A nan, outside the domain of the loss, compares as False and is not an error.
            is_wrong = np.abs(slopes - expected) > tolerance
            if is_wrong.any():
                i, c = np.argwhere(is_wrong)[0]
                raise ValueError(
                    f"the gradient of {self.loss!r} is {slopes[i, c]:.6g} at y = {Y[i, c]:.6g}, "
                    f"f = {level:g}, but finite differences of its value give "
                    f"{expected[i, c]:.6g}; the loss must be smooth, and its gradient must be the "
                    f"derivative with respect to f, the second argument"
                )
            self._check_curvature(F, Y)

    def _check_curvature(self, F: np.ndarray, Y: np.ndarray) -> None:
        """Warn if the curvature is not the derivative of the gradient, within a factor of 2."""
        slopes, curvature = self._evaluate("gradient", F, Y), self._evaluate("curvature", F, Y)
        one_sided = [(self._evaluate("gradient", F + h, Y) - slopes) / h for h in _DIFFERENCE_STEPS]
        low, high = np.minimum(*one_sided), np.maximum(*one_sided)
        # The tolerance allows for rounding in the differences.
        tolerance = 1e-4 * np.abs(curvature).max() + 1e-8 * np.abs(slopes)
        is_wrong = (curvature < 0.5 * low - tolerance) | (curvature > 2.0 * high + tolerance)
        is_wrong &= curvature >= 0  # a negative curvature raises an error elsewhere
        if is_wrong.any():
            i, c = np.argwhere(is_wrong)[0]
            warn_caller(
                f"the curvature of {self.loss!r} is {curvature[i, c]:.6g} at y = {Y[i, c]:.6g}, "
                f"f = {F[i, c]:g}, but finite differences of its gradient give {high[i, c]:.6g}; "
                f"Newton's method may take many steps, or stop early. The curvature must be the "
                f"second derivative with respect to f"
            )

    def _evaluate(self, name: str, F: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """Return the value, gradient or curvature for all outputs, shape (n, q)."""
        out = np.empty(F.shape)
        for c in range(F.shape[1]):
            y, f = Y[:, c], F[:, c]
            y.flags.writeable = f.flags.writeable = False  # F and Y stay writeable
            with np.errstate(all="ignore"):  # callers check for values that are not finite
                values = np.asarray(getattr(self.loss, name)(y, f), dtype=float)
            if values.shape not in ((), (len(F),)):
                raise ValueError(
                    f"the {name} of {self.loss!r} has shape {values.shape} for {len(F)} points; it "
                    f"must return one number per point"
                )
            out[:, c] = values
        return out
