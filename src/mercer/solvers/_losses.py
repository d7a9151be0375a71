"""Losses of the values F = f(x_i) against the targets Y, row by row, with two derivatives.

    Squared         |y - f|^2                              y any numbers
    SquaredHinge    sum_c max(0, 1 - y_c f_c)^2            y_c = +1 or -1, one against the rest
    Logistic        log(1 + exp(-y f))                     y = +1 or -1
    Softmax         log sum_c exp f_c - <y, f>             y the unit vector of the class

All are convex in f, with a slope that is Lipschitz.  All but Softmax are sums over the outputs, so
that the second derivative of a row is diagonal.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import expit, softmax

__all__ = ["Local", "Logistic", "Loss", "Softmax", "Squared", "SquaredHinge"]


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
    >>> from mercer.solvers._losses import Logistic
    >>> Logistic()(np.zeros((1, 1)), np.ones((1, 1))).slopes
    array([[-0.5]])
    """

    @abstractmethod
    def __call__(self, F: np.ndarray, Y: np.ndarray) -> Local: ...

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class Squared(Loss):
    """|y - f|^2."""

    def __call__(self, F: np.ndarray, Y: np.ndarray) -> Local:
        gap = F - Y
        values = np.einsum("ij,ij->i", gap, gap)
        return Local(values, 2.0 * gap, np.full((len(F), 1), 2.0), lambda V: 2.0 * V)


class SquaredHinge(Loss):
    """sum_c max(0, 1 - y_c f_c)^2; its second derivative jumps, its slope does not."""

    def __call__(self, F: np.ndarray, Y: np.ndarray) -> Local:
        gap = np.maximum(1.0 - Y * F, 0.0)
        second = 2.0 * (gap > 0)
        values = np.einsum("ij,ij->i", gap, gap)
        return Local(values, -2.0 * Y * gap, second, lambda V: second * V)


class Logistic(Loss):
    """log(1 + exp(-y f))."""

    def __call__(self, F: np.ndarray, Y: np.ndarray) -> Local:
        wrong = expit(-Y * F)
        second = wrong * (1.0 - wrong)
        values = np.logaddexp(0.0, -Y * F).sum(axis=1)
        return Local(values, -Y * wrong, second, lambda V: second * V)


class Softmax(Loss):
    """log sum_c exp f_c - <y, f>, the multinomial log-loss."""

    def __call__(self, F: np.ndarray, Y: np.ndarray) -> Local:
        P = softmax(F, axis=1)
        above = F - F.max(axis=1, keepdims=True)  # no exp of a large number
        values = np.log(np.exp(above).sum(axis=1)) - np.einsum("ij,ij->i", Y, above)

        def times(V: np.ndarray) -> np.ndarray:
            PV = P * V
            return PV - P * PV.sum(axis=1, keepdims=True)

        return Local(values, P - Y, P * (1.0 - P), times)
