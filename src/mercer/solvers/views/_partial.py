"""Partial least squares: directions of two views with the largest covariance, one after the other.

    max  cov(f(x), g(y))      with      |f| = |g| = 1

in whitened coordinates f = Phi w, g = Psi v, is the largest singular value of M = C_xy.  Before the
next pair, what the scores explain is taken off (Rosipal and Trejo 2001): with P and Q the
projections on scores t of x so far and on

    regression: the same t               canonical: the scores of y,

of each view (1 - P) F and (1 - Q) G remain, and M becomes F^T (1 - P) (1 - Q) G.  That is a change
of rank one or three, so that neither K nor F is touched.  Scores of x are uncorrelated.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..._errors import warn_caller
from ..._runtime import Stopwatch, entry_point
from ..._runtime.linalg import solve_triangular
from .._report import Report, Status, judged
from ..eigen import signs_of
from ._view import Relation, View, check_views, leading

__all__ = ["PartialLeastSquares"]


@entry_point
@dataclass(frozen=True)
class PartialLeastSquares:
    """Find pairs of directions by partial least squares.

    Parameters
    ----------
    n_components : int
        How many pairs.
    mode : {"regression", "canonical"}
        What is taken off y after each pair: what the score of x explains, or that of y.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers import PartialLeastSquares, View
    >>> rng = np.random.default_rng(0)
    >>> F = rng.normal(size=(100, 3))
    >>> y = F @ [[1.0], [2.0], [0.0]] + 5.0
    >>> found = PartialLeastSquares(3).relate(View.of(F), View.of(y))
    >>> B, b = found.regression(y)
    >>> (found.x @ B)[:, 0].round(6) + 0.0
    array([1., 2., 0.])
    """

    n_components: int = 2
    mode: str = "regression"

    @staticmethod
    def workspace(n: int, m: int, m_y: int, k: int) -> int:
        """Return the bytes beside the coordinates: covariances, their squares, scores."""
        return 8 * (5 * m * m_y + 2 * min(m, m_y) ** 2 + 8 * n * k + (1 << 19))

    def relate(self, x: View, y: View) -> Relation:
        """Return the directions and their covariances.

        Scores are (F - mean) x.  Those of y are functions of y alone: in the regression mode, of
        the directions of M; in the canonical mode without what earlier ones explain.
        """
        watch, k, both = Stopwatch(), self.n_components, self.mode == "canonical"
        check_views(x, y)
        self._check(x, y)
        M, values, V = x.covariance(y), np.zeros(k), np.zeros((y.F.shape[1], k))
        floor = float(np.sqrt(x.rounding * y.rounding))
        X, Y = _Deflated(x), _Deflated(y)
        for j in range(k):
            w, s, v = (found[..., 0] for found in leading(M, 1))
            if s <= floor:
                break
            values[j], V[:, j] = s, v
            t, a = X.take(w)
            M -= np.outer(a, y.pull(Y.rest(t)))
            if both:
                u, b = Y.take(v)
                M -= np.outer(x.pull(X.rest(u)), b)
        found = len(X.loadings)
        U, V = X.rotations(), Y.rotations() if both else V[:, :found]
        signs = signs_of(x.scores(U))
        residual = X.residual(U)
        status, message = judged(Status.DIRECT, "", residual)
        if found < k:
            message = (
                f"{found} of n_components={k} leave no covariance between the views; the others "
                f"are left out. Ask for fewer"
            )
        if message:
            warn_caller(message)
        report = Report(
            repr(self), status, residual=residual, seconds=watch.seconds, message=message
        )
        return Relation.of(x, y, U * signs, V * signs, values=values[:found], report=report)

    def _check(self, x: View, y: View) -> None:
        """Refuse more components than there can be."""
        n, k = x.F.shape[0], self.n_components
        most = min(n - 1, x.F.shape[1], y.F.shape[1] if self.mode == "canonical" else n)
        if k > most:
            raise ValueError(
                f"n_components={k}, but {n} points have {x.F.shape[1]} coordinates in X and "
                f"{y.F.shape[1]} in y, and there are at most {most}; ask for fewer"
            )


class _Deflated:
    """A view, and the scores whose part in it is taken off."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.directions: list[np.ndarray] = []
        self.scores: list[np.ndarray] = []  # of unit variance, uncorrelated
        self.sizes: list[float] = []  # what they were divided by
        self.loadings: list[np.ndarray] = []

    def rest(self, t: np.ndarray) -> np.ndarray:
        """Return what the scores so far leave of t."""
        for other in self.scores:
            t = t - other * float(self.view.shares @ (other * t))
        return t

    def take(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Add a direction; return its score, of unit variance, and what F has of that."""
        t = self.rest(self.rest(self.view.scores(w)))  # twice: uncorrelated to the last digits
        size = float(np.sqrt(self.view.shares @ np.square(t)))
        t /= size
        a = self.view.pull(t)
        self.directions.append(w)
        self.scores.append(t)
        self.sizes.append(size)
        self.loadings.append(a / size)
        return t, a

    def rotations(self) -> np.ndarray:
        """Return R = W (P^T W)^-1, with which (F - mean) R are the scores of what was left."""
        W, P = np.column_stack(self.directions), np.column_stack(self.loadings)
        return np.asarray(solve_triangular(P.T @ W, W.T, trans="T").T)

    def residual(self, R: np.ndarray) -> float:
        """Return how far the scores of rotations are from those that were found."""
        missed = self.view.scores(R) / self.sizes - np.column_stack(self.scores)
        return float(np.sqrt(self.view.shares @ np.square(missed)).max())
