"""Fisher's discriminants from ridge regression on the classes.

With features F, the scatter within the classes is W, between them B, and all of it T = W + B.  The
directions v that maximise

    v^T B v / v^T (W + alpha) v        maximise        l = v^T B v / v^T (T + alpha) v,

and these come from the regression of the indicators Y of the classes on F, with an intercept and
the ridge alpha (Hastie, Buja and Tibshirani 1995): with D = Y^T Y, the sizes, and R the residuals,

    D^-1/2 Y^T R D^-1/2 u = (1 - l) u,        f = sum_c u_c / sqrt(D_c) f_c.

So the problem has as many unknowns as there are classes.  For two it has one solution: ridge
regression on the targets (n / n_1, -n / n_2), up to a factor.  Of the exact solution R is alpha A,
and even an l next to 1 keeps its digits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from ..._runtime import entry_point
from ..._runtime.linalg import eigh, qr

__all__ = ["Discriminants"]

_NOTHING = 1e-12  # an l below this is rounding: a direction in which classes do not differ
_CERTAIN = 1e-14  # and 1 - l below this


@entry_point
@dataclass(frozen=True, eq=False)
class Discriminants:
    """Directions in which classes differ, of unit variance v^T (W + alpha) v / n.

    Attributes
    ----------
    mixing : ndarray of shape (n_classes, q)
        What each function of the regression contributes to each of q = n_classes - 1 directions.
    means : ndarray of shape (n_classes, q)
        Of the classes, seen from the mean of all points.
    shares : ndarray of shape (n_classes,)
        Of the points.
    ratios : ndarray of shape (q,)
        v^T B v / v^T (W + alpha) v, largest first.

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
        """Return the directions, from the residuals of indicators, (n, n_classes)."""
        n_classes = residuals.shape[1]
        sizes = np.bincount(labels, weights, minlength=n_classes)
        root, n = np.sqrt(sizes), float(sizes.sum())
        sums = np.zeros((n_classes, n_classes))
        np.add.at(sums, labels, weights[:, None] * residuals)
        E = sums / np.outer(root, root)
        # residuals of all indicators together are 0: that direction is none
        others = qr(root[:, None])[0][:, 1:]
        missed, U = eigh(others.T @ (0.5 * (E + E.T)) @ others)
        U = others @ U
        missed = np.clip(missed, _CERTAIN, 1.0)
        found = 1.0 - missed
        scale = np.where(
            found > _NOTHING,
            np.sqrt(n / np.maximum(found * missed, _NOTHING * _CERTAIN)),
            0.0,
        )
        means = U / root[:, None] * (found * scale)
        largest = np.abs(means).argmax(axis=0) if n_classes > 2 else np.array([1])
        last = means[largest, np.arange(n_classes - 1)]
        signs = np.where(last < 0, -1.0, 1.0)
        mixing = U / root[:, None] * (scale * signs)
        return cls(mixing, means * signs, sizes / n, found / missed)

    def decisions(self, priors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return G and g with z G + g = log p(class | z) up to a constant, for scores z.

        Classes are taken as Gaussians of covariance 1 around their means.  For two there is one
        column, the log-odds of the second.
        """
        return self._decisions(priors, self.means, self.means)

    def left_out(
        self, priors: np.ndarray, errors: np.ndarray, labels: np.ndarray, weights: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the same from scores of points that the regression has not seen.

        Rich kernels pull the points they are fitted to towards the means of their classes; what
        remains of the spread says little of new ones.  Here means and covariance are those of
        Y - errors, with the errors of leaving out each point.
        """
        q, n_classes = self.mixing.shape[1], len(self.means)
        Z = -errors @ self.mixing + (self.mixing - self.shares @ self.mixing)[labels]
        sums = np.zeros((n_classes, q))
        np.add.at(sums, labels, weights[:, None] * Z)
        means = sums / np.bincount(labels, weights, minlength=n_classes)[:, None]
        Z -= means[labels]
        spread = Z.T @ (weights[:, None] * Z) / weights.sum()
        values, V = eigh(spread)
        # a spread of 0, where all points of a class are the same, would make anything certain
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
