"""Fisher discriminants, computed from ridge regression on class indicators.

Let W be the within-class scatter of the features F, B the between-class scatter, and T = W + B the
total scatter.  The directions v that maximise the Fisher criterion

    v^T B v / v^T (W + alpha) v        also maximise        l = v^T B v / v^T (T + alpha) v.

They follow from the ridge regression of the class indicators Y on F, with an intercept and penalty
alpha (Hastie, Buja and Tibshirani 1995).  Let D = Y^T Y hold the class sizes, R the residuals, and
f_c the regression function of class c.  A small eigenproblem gives u and the discriminant f,

    D^-1/2 Y^T R D^-1/2 u = (1 - l) u,        f = sum_c u_c / sqrt(D_c) f_c.

It has only as many unknowns as there are classes.  For two classes it has one solution, which is,
up to a factor, ridge regression on the targets n / n_1 (first class, of size n_1) and -n / n_2.  In
an exact solver, R = alpha A with the dual coefficients A, so 1 - l is accurate even if l is close
to 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from ..._core import entry_point
from ..._core.linalg import eigh, qr

# If the explained ratio l of a direction is smaller, the classes do not differ along it.
_MIN_RATIO = 1e-12
# If 1 - l is smaller, it is only rounding, and the classes are perfectly separated.
_MIN_ERROR = 1e-14


@entry_point
@dataclass(frozen=True, eq=False)
class Discriminants:
    """Fisher discriminant directions, scaled to unit within-class variance.

    The directions separate the classes best: they maximise v^T B v / v^T (W + alpha) v, where B is
    the between-class scatter, W the within-class scatter and alpha the ridge penalty.  They follow
    from a ridge regression on class indicators; use `Discriminants.of`.  A direction v in feature
    space is scaled to v^T (W + alpha) v / n = 1.

    Attributes
    ----------
    mixing : ndarray of shape (n_classes, q)
        Coefficients of the q = n_classes - 1 directions in the regression functions f_c.
    means : ndarray of shape (n_classes, q)
        Class means along the directions, relative to the mean of all points.
    shares : ndarray of shape (n_classes,)
        Fraction of the points (by weight) in each class.
    ratios : ndarray of shape (q,)
        The Fisher criterion v^T B v / v^T (W + alpha) v of each direction, where B is the
        between-class scatter; in descending order.

    References
    ----------
    Mika, Rätsch, Weston, Schölkopf and Müller, "Fisher discriminant analysis with kernels", IEEE
    Workshop on Neural Networks for Signal Processing, 1999.

    Hastie, Buja and Tibshirani, "Penalized discriminant analysis", The Annals of Statistics, 1995.

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
        """Compute the directions from the residuals of a ridge regression on class indicators.

        Parameters
        ----------
        residuals : ndarray of shape (n, n_classes)
            Class indicators minus predictions.
        labels : ndarray of int, shape (n,)
            The class of each point, from 0 to n_classes - 1.
        weights : ndarray of shape (n,)
            Sample weights.

        Returns
        -------
        Discriminants
            The q = n_classes - 1 directions.
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
        product = np.maximum(explained * unexplained, _MIN_RATIO * _MIN_ERROR)
        scale = np.where(explained > _MIN_RATIO, np.sqrt(n / product), 0.0)
        means = U / sqrt_sizes[:, None] * (explained * scale)
        largest = np.abs(means).argmax(axis=0) if n_classes > 2 else np.array([1])
        anchor = means[largest, np.arange(n_classes - 1)]
        signs = np.where(anchor < 0, -1.0, 1.0)
        mixing = U / sqrt_sizes[:, None] * (scale * signs)
        return cls(mixing, means * signs, sizes / n, explained / unexplained)

    def decisions(self, priors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the linear decision functions, log p(class | z) = z G + g up to a constant.

        z is the row of scores of a point, its projections on the directions.  Each class is
        modelled as a Gaussian with unit covariance around its mean.

        Parameters
        ----------
        priors : ndarray of shape (n_classes,)
            Prior probabilities of the classes.

        Returns
        -------
        G : ndarray of shape (q, n_classes), or (q, 1) for two classes
            Coefficients of the scores.  For two classes, z G + g is the log-odds of the second
            class.
        g : ndarray of shape (n_classes,), or (1,) for two classes
            Constants.
        """
        return self._decisions(priors, self.means, self.means)

    def left_out(
        self, priors: np.ndarray, errors: np.ndarray, labels: np.ndarray, weights: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return G and g as `decisions` does, but estimated from leave-one-out scores.

        With a flexible kernel, the scores of training points are closer to their class means than
        those of new points.  The class means and the covariance are therefore estimated from the
        leave-one-out predictions, the class indicators minus `errors`.

        Parameters
        ----------
        priors : ndarray of shape (n_classes,)
            Prior probabilities of the classes.
        errors : ndarray of shape (n, n_classes)
            Leave-one-out errors of the regression on class indicators.
        labels : ndarray of int, shape (n,)
            The class of each point, from 0 to n_classes - 1.
        weights : ndarray of shape (n,)
            Sample weights.

        Returns
        -------
        G : ndarray of shape (q, n_classes), or (q, 1) for two classes
            Coefficients of the scores, as in `decisions`.
        g : ndarray of shape (n_classes,), or (1,) for two classes
            Constants.
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
