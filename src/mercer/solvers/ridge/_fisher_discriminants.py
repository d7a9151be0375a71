"""Fisher discriminants, computed from ridge regression on class indicators.

Let W be the within-class scatter of the features F, B the between-class scatter, and T = W + B the
total scatter.  The directions v that maximise the Fisher criterion

    v^T B v / v^T (W + alpha) v        also maximise        l = v^T B v / v^T (T + alpha) v.

They follow from the ridge regression of the class indicators Y on F, with an intercept and penalty
alpha (Hastie, Buja and Tibshirani 1995).  With the class sizes D = Y^T Y and the residuals R,

    D^-1/2 Y^T R D^-1/2 u = (1 - l) u,        f = sum_c u_c / sqrt(D_c) f_c.

This eigenproblem has only as many unknowns as there are classes.  For two classes it has one
solution, which is ridge regression on the targets (n / n_1, -n / n_2), up to a factor.  An exact
solver has R = alpha A, with the dual coefficients A, so 1 - l is accurate even if l is close to 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from ..._core import entry_point
from ..._core.linalg import eigh, qr

__all__ = ["Discriminants"]

_MIN_RATIO = 1e-12  # a smaller l is rounding: the classes do not differ in this direction
_MIN_ERROR = 1e-14  # a smaller 1 - l is rounding: the classes are perfectly separated


@entry_point
@dataclass(frozen=True, eq=False)
class Discriminants:
    """Fisher discriminant directions v, scaled to unit variance v^T (W + alpha) v / n.

    Attributes
    ----------
    mixing : ndarray of shape (n_classes, q)
        Coefficients of the q = n_classes - 1 directions in the regression functions f_c.
    means : ndarray of shape (n_classes, q)
        Class means along the directions, relative to the mean of all points.
    shares : ndarray of shape (n_classes,)
        Fraction of the points (by weight) in each class.
    ratios : ndarray of shape (q,)
        v^T B v / v^T (W + alpha) v, in descending order.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers import Discriminants
    >>> labels, residuals = np.array([0, 0, 1]), np.array([[0.1, -0.1], [0.1, -0.1], [-0.2, 0.2]])
    >>> Discriminants.of(residuals, labels, np.ones(3)).ratios.round(3)
    array([2.333])
    """

    mixing: np.ndarray
    means: np.ndarray
    shares: np.ndarray
    ratios: np.ndarray

    @classmethod
    def of(cls, residuals: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> Self:
        """Return the directions from the residuals of the regression on class indicators.

        Parameters
        ----------
        residuals : ndarray of shape (n, n_classes)
        labels : ndarray of int, shape (n,)
            The class of each point, from 0 to n_classes - 1.
        weights : ndarray of shape (n,)

        Returns
        -------
        Discriminants
        """
        n_classes = residuals.shape[1]
        sizes = np.bincount(labels, weights, minlength=n_classes)
        sqrt_sizes, n = np.sqrt(sizes), float(sizes.sum())
        sums = np.zeros((n_classes, n_classes))
        np.add.at(sums, labels, weights[:, None] * residuals)
        E = sums / np.outer(sqrt_sizes, sqrt_sizes)
        # The indicators sum to 1, which the intercept fits exactly.  Remove this trivial direction.
        contrasts = qr(sqrt_sizes[:, None])[0][:, 1:]
        unexplained, U = eigh(contrasts.T @ (0.5 * (E + E.T)) @ contrasts)
        U = contrasts @ U
        unexplained = np.clip(unexplained, _MIN_ERROR, 1.0)
        explained = 1.0 - unexplained
        scale = np.where(
            explained > _MIN_RATIO,
            np.sqrt(n / np.maximum(explained * unexplained, _MIN_RATIO * _MIN_ERROR)),
            0.0,
        )
        means = U / sqrt_sizes[:, None] * (explained * scale)
        largest = np.abs(means).argmax(axis=0) if n_classes > 2 else np.array([1])
        anchor = means[largest, np.arange(n_classes - 1)]
        signs = np.where(anchor < 0, -1.0, 1.0)
        mixing = U / sqrt_sizes[:, None] * (scale * signs)
        return cls(mixing, means * signs, sizes / n, explained / unexplained)

    def decisions(self, priors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return G and g such that z G + g = log p(class | z) up to a constant, for scores z.

        Each class is modelled as a Gaussian with unit covariance around its mean.  For two classes
        there is one column, the log-odds of the second class.
        """
        return self._decisions(priors, self.means, self.means)

    def left_out(
        self, priors: np.ndarray, errors: np.ndarray, labels: np.ndarray, weights: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return G and g as `decisions` does, but estimated from leave-one-out scores.

        A flexible kernel moves the training points towards their class means, so the spread of
        their scores is too small for new points.  Here, the means and the covariance are those of
        the leave-one-out predictions Y - errors.

        Parameters
        ----------
        priors : ndarray of shape (n_classes,)
        errors : ndarray of shape (n, n_classes)
            Leave-one-out errors of the regression on class indicators.
        labels : ndarray of int, shape (n,)
        weights : ndarray of shape (n,)
        """
        q, n_classes = self.mixing.shape[1], len(self.means)
        Z = -errors @ self.mixing + (self.mixing - self.shares @ self.mixing)[labels]
        sums = np.zeros((n_classes, q))
        np.add.at(sums, labels, weights[:, None] * Z)
        means = sums / np.bincount(labels, weights, minlength=n_classes)[:, None]
        Z -= means[labels]
        covariance = Z.T @ (weights[:, None] * Z) / weights.sum()
        values, V = eigh(covariance)
        # A covariance of 0 (all points of a class are equal) would give infinite log-odds.
        floor = max(1e-10 * values[-1], np.finfo(float).tiny)
        return self._decisions(priors, means, means @ (V / np.maximum(values, floor)) @ V.T)

    @staticmethod
    def _decisions(
        priors: np.ndarray, means: np.ndarray, scaled: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        g = np.log(priors) - 0.5 * np.einsum("ck,ck->c", means, scaled)
        if len(g) == 2:
            return (scaled[1:] - scaled[:1]).T, g[1:] - g[:1]
        return scaled.T, g
