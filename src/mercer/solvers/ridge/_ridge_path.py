"""Kernel ridge regression for a path of alphas, with leave-one-out errors.

The objective is

    J(f, b) = sum_i w_i (y_i - f(x_i) - b)^2 + alpha |f|^2

`ExactPath` decomposes the kernel matrix K once (K = Q T Q^T, T tridiagonal).  `NystroemPath`
computes the landmark features F once (F^T W F = V diag(s) V^T, W = diag(w)).  After that, each
alpha is cheap.  The leave-one-out errors e_i follow in closed form: from the dual coefficients
a = P y (see `BorderedSystem` for P), or from the leverages h_i of the features,

    e_i = a_i / P_ii,        or, for features,        e_i = (y_i - f(x_i) - b) / (1 - h_i).

Generalised cross-validation (GCV) replaces P_ii (or h_i) by their mean.  With the residuals r_i and
the hat matrix H, which maps y to the fitted values, the score is
(1/n) sum w_i r_i^2 / (tr(I - H) / n)^2.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import replace
from operator import add
from typing import NamedTuple, Self, TypeAlias, TypeVar

import numpy as np

from ..._core import (
    MemoryLimit,
    Points,
    ProgressCallback,
    ProgressStep,
    Stopwatch,
    budget_in_bytes,
    entry_point,
    length,
    one_blas_thread,
    run_in_threads,
    slices,
)
from ..._core.linalg import eigh
from ...blocks import BlockRows, Blocks, map_rows, reduce_rows
from ...gram import DenseGram, NystroemMap
from ...kernels import unwrap
from .._report import Report, Status, status_of, worst_report
from ..eigen import Moments
from ..linear import (
    inverse_diagonal_with_intercept,
    max_relative_residual,
    solve_with_intercept,
    warn_inaccurate,
)
from ._jackknife import jackknife_bounds
from ._tridiagonal import Tridiagonal

_MAX_SOLUTION_COLUMNS = 256  # columns of solutions computed at a time; limits memory
_STRIP_ROWS = 512  # rows of features per parallel task when leave-one-out errors are computed
# An alpha below this fraction of the largest eigenvalue of F^T W F is less than a rounding error.
_MIN_RELATIVE_ALPHA = 1e-13
Result = TypeVar("Result")


@entry_point
class RidgePath(ABC):
    """Base class of solutions of kernel ridge regression for a path of alphas.

    One decomposition serves all alphas, and gives leave-one-out errors and GCV scores in closed
    form.  Use a path to choose alpha: compute `gcv` or `leave_one_out` for a grid of alphas, and
    solve for the best.

    Attributes
    ----------
    points : points
        The points of the kernel expansion of f: all training points, or landmarks.
    report : Report
        Report on the most recent solution.

    See Also
    --------
    ExactPath : All points.
    NystroemPath : Landmarks, for many points.

    References
    ----------
    Saunders, Gammerman and Vovk, "Ridge regression learning algorithm in dual variables", ICML
    1998.

    Golub, Heath and Wahba, "Generalized cross-validation as a method for choosing a good ridge
    parameter", Technometrics, 1979.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF
    >>> from mercer.solvers import ExactPath, RidgePath
    >>> issubclass(ExactPath, RidgePath)
    True
    """

    points: Points
    report: Report

    @abstractmethod
    def usable(self, alphas: np.ndarray) -> np.ndarray:
        """Return, for each alpha, whether it is large enough to be above rounding errors.

        Parameters
        ----------
        alphas : ndarray of shape (n_alphas,)
            The ridge penalties.

        Returns
        -------
        ndarray of bool, shape (n_alphas,)
            False if a solution for this alpha would be determined by rounding errors.
        """

    def solve(self, alpha: float, *, warn: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """Return the coefficients and the intercepts for one alpha; this also sets `report`.

        Parameters
        ----------
        alpha : float
            The ridge penalty.
        warn : bool, default=True
            Whether an inaccurate solution causes a warning.

        Returns
        -------
        A : ndarray of shape (m, q)
            Coefficients of the m points `points`.
        b : ndarray of shape (q,)
            Intercepts; 0 if none are fitted.
        """
        solution = self._solve(alpha)
        if warn and self.report.status is Status.INACCURATE:
            warn_inaccurate(self.report)
        return solution

    def solve_each(
        self, alphas: np.ndarray, *, warn: bool = True
    ) -> tuple[np.ndarray, np.ndarray, Report]:
        """Solve with a separate alpha for each target.

        Parameters
        ----------
        alphas : ndarray of shape (q,)
            The ridge penalty of each target.
        warn : bool, default=True
            Whether an inaccurate solution causes a warning.

        Returns
        -------
        A : ndarray of shape (m, q)
            Coefficients of the m points `points`.
        b : ndarray of shape (q,)
            Intercepts.
        report : Report
            Report of the least accurate solution.
        """
        return solve_per_target(alphas, lambda alpha: (*self.solve(alpha, warn=warn), self.report))

    @abstractmethod
    def _solve(self, alpha: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the solution for one alpha, and set the report."""

    @abstractmethod
    def leave_one_out(self, alphas: np.ndarray) -> Iterator[np.ndarray]:
        """Compute the leave-one-out errors in closed form, without fitting n models.

        The error of point i is y_i - f(x_i) - b, with f and b fitted without that point.

        Parameters
        ----------
        alphas : ndarray of shape (n_alphas,)
            The ridge penalties.

        Yields
        ------
        ndarray of shape (n, q)
            The errors for the next alpha.
        """

    @abstractmethod
    def gcv(self, alphas: np.ndarray) -> np.ndarray:
        """Return the scores of generalised cross-validation, estimates of the mean squared error.

        Parameters
        ----------
        alphas : ndarray of shape (n_alphas,)
            The ridge penalties.

        Returns
        -------
        ndarray of shape (n_alphas, q)
            The scores; choose the alpha with the smallest one.
        """


@entry_point
class ExactPath(RidgePath):
    """Exact kernel ridge regression on all n points for a path of alphas, from K = Q T Q^T.

    The tridiagonal decomposition takes O(n^3) operations and 16 n^2 bytes; each alpha then takes
    O(n^2) operations.  Prefer `NystroemPath` if that is too much.

    Parameters
    ----------
    gram : DenseGram
        The kernel matrix; its array is overwritten.
    Y : ndarray of shape (n, q)
        Targets.
    weights : ndarray of shape (n,) or None, default=None
        Positive weights of the squared errors; None means 1.
    intercept : bool
        Whether to fit an intercept b.

    See Also
    --------
    Tridiagonal : The decomposition.
    ExactRidge : Solve for one alpha, with any linear solver.

    References
    ----------
    Saunders, Gammerman and Vovk, "Ridge regression learning algorithm in dual variables", ICML
    1998.

    Golub, Heath and Wahba, "Generalized cross-validation as a method for choosing a good ridge
    parameter", Technometrics, 1979.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import gram
    >>> from mercer.kernels import RBF
    >>> from mercer.solvers import ExactPath
    >>> X = np.linspace(0, 6, 30)[:, None]
    >>> path = ExactPath(gram(RBF(), X), np.sin(X), intercept=False)
    >>> path.gcv(np.array([1e-3, 1.0])).ravel().round(4)
    array([0.    , 0.0131])
    """

    def __init__(
        self,
        gram: DenseGram,
        Y: np.ndarray,
        weights: np.ndarray | None = None,
        *,
        intercept: bool,
    ) -> None:
        watch = Stopwatch()
        self.points = gram.X
        self.sqrt_weights = np.ones(len(Y)) if weights is None else np.sqrt(weights)
        # Centre the targets, because a large mean reduces the precision; `_solve` adds it to b.
        self._mean = np.average(Y, axis=0, weights=weights) if intercept else np.zeros(Y.shape[1])
        self.Y = Y - self._mean
        # For points of tiny weight, the closed form magnifies rounding errors.  Their
        # leave-one-out errors are therefore computed from their rows of K.
        light = self.sqrt_weights < 1e-3 * np.median(self.sqrt_weights)
        self._light_points = np.flatnonzero(light)
        self._light_rows = gram.block(self._light_points, slice(None)) if light.any() else None
        scaled = gram if weights is None else gram.scaled(self.sqrt_weights)
        self._T = Tridiagonal.of(scaled, overwrite=True)
        self._intercept = intercept
        rhs = np.c_[self.Y, np.ones(len(Y))] if intercept else self.Y
        self._rhs = self.sqrt_weights[:, None] * rhs
        message = "K = Q T Q^T, computed once for all alphas"
        seconds = watch.seconds
        self.report = Report("Tridiagonal", Status.PENDING, seconds=seconds, message=message)

    def usable(self, alphas: np.ndarray) -> np.ndarray:
        return self._T.usable(alphas)

    def _solve(self, alpha: float) -> tuple[np.ndarray, np.ndarray]:
        (B,) = self._T.solve(self._rhs, [alpha])
        residual = max_relative_residual(self._rhs - self._T.times(B, alpha), self._rhs)
        status, message = status_of(
            Status.DIRECT, "K = Q T Q^T, computed once for all alphas", residual
        )
        self.report = replace(self.report, status=status, residual=residual, message=message)
        A, b, _ = self._solution(B)
        return A, b + self._mean

    def leave_one_out(self, alphas: np.ndarray) -> Iterator[np.ndarray]:
        w, light = np.square(self.sqrt_weights), self._light_points
        inverse, solutions = self._T.inverse_diagonal(alphas), self._solutions(alphas)
        for alpha, diagonal, (A, b, u) in zip(alphas, inverse, solutions, strict=True):
            P = inverse_diagonal_with_intercept(w * diagonal, u)
            errors = A / P[:, None]
            if self._light_rows is not None:
                gap = self.Y[light] - self._light_rows @ A - b
                errors[light] = gap * (w[light] / (alpha * P[light]))[:, None]
            yield errors

    def gcv(self, alphas: np.ndarray) -> np.ndarray:
        traces = self._T.inverse_trace(alphas)
        n, out = len(self.Y), np.empty((len(alphas), self.Y.shape[1]))
        for j, (A, _, u) in enumerate(self._solutions(alphas)):
            v = None if u is None else np.square(u / self.sqrt_weights).sum() / u.sum()
            free = traces[j] if v is None else traces[j] - v  # tr(I - H) / alpha
            out[j] = n * np.square(A / self.sqrt_weights[:, None]).sum(axis=0) / free**2
        return out

    def _solutions(
        self, alphas: np.ndarray
    ) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray | None]]:
        """Yield, for each alpha, the coefficients, the intercepts b, and u.

        With an intercept, u = (K + alpha / w)^-1 1 is the solution for the constant target 1;
        otherwise it is None.
        """
        step = max(1, _MAX_SOLUTION_COLUMNS // self._rhs.shape[1])
        for start in range(0, len(alphas), step):
            for B in self._T.solve(self._rhs, alphas[start : start + step]):
                yield self._solution(B)

    def _solution(self, B: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Return the coefficients, b and u (see `_solutions`) from B.

        B = (S K S + alpha)^-1 S [Y, 1] with S = diag(sqrt(weights)); the last column exists only
        with an intercept.
        """
        A = self.sqrt_weights[:, None] * B
        u = A[:, -1] if self._intercept else None
        return *solve_with_intercept(A[:, : self.Y.shape[1]], u, self.Y), u


class Calibration(NamedTuple):
    """Training points that are left out, one at a time, for prediction intervals."""

    X: Points
    Y: np.ndarray  # shape (n, q)
    weights: np.ndarray  # shape (n,)


class _ErrorsFromFeatures(NamedTuple):
    """Computes the errors y - f(x) - b of points from their features, for all alphas at once."""

    V: np.ndarray
    mean: np.ndarray
    inverse: np.ndarray
    solutions: np.ndarray
    constant: float

    def fitted(self, F: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """Return the residuals of the models fitted on all points.

        The shape is (n_rows, n_alphas, n_targets).
        """
        return self._residuals(self._rotate(F), Y)

    def leave_one_out(self, F: np.ndarray, Y: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return the leave-one-out errors, of shape (n_rows, n_alphas, n_targets)."""
        Z = self._rotate(F)
        gap = self._residuals(Z, Y)
        np.square(Z, out=Z)
        h = weights[:, None] * (Z @ self.inverse + self.constant)
        residuals: np.ndarray = gap / (1.0 - h)[:, :, None]
        return residuals

    def bounds(
        self,
        F: np.ndarray,
        left_out: np.ndarray,
        errors: np.ndarray,
        w: np.ndarray,
        coverage: float,
    ) -> np.ndarray:
        """Return jackknife+ intervals of points with features F for one alpha, (n_rows, q, 2).

        `left_out` contains the features of the calibration points, `errors` their leave-one-out
        errors, and w their weights.
        """
        Z = self._rotate(F)
        f = Z @ self.solutions + self.mean[len(self.V) :]
        psi = (Z * self.inverse[:, 0]) @ self._rotate(left_out).T + self.constant
        return jackknife_bounds(f, psi * w, errors, coverage)

    def _rotate(self, F: np.ndarray) -> np.ndarray:
        projected: np.ndarray = (F - self.mean[: len(self.V)]) @ self.V
        return projected

    def _residuals(self, Z: np.ndarray, Y: np.ndarray) -> np.ndarray:
        centred = Y - self.mean[len(self.V) :]
        predictions = (Z @ self.solutions).reshape(len(Z), -1, centred.shape[1])
        return np.asarray(centred[:, None, :] - predictions)


@entry_point
class NystroemPath(RidgePath):
    """Ridge regression on landmarks for a path of alphas, from one pass over the points.

    It takes O(n m^2) operations for m landmarks, and O(m^2) memory.  X may be larger than the
    memory.

    Parameters
    ----------
    phi : NystroemMap
        The features of the landmarks.
    X : points or Blocks
        The n training points.
    Y : ndarray of shape (n, q)
        Targets.
    weights : ndarray of shape (n,) or None, default=None
        Weights of the squared errors; None means 1.
    intercept : bool
        Whether to fit an intercept b.
    max_memory : int, str or None, default=None
        Memory budget.  If the features of points in memory fit into a quarter of it, they are
        stored; otherwise the leave-one-out errors need a second pass that computes them again.
    log : callable or None, default=None
        Called with a progress message after each block of points.

    See Also
    --------
    LandmarkRidge : Choose the landmarks and solve for given alphas.
    ExactPath : All points instead of landmarks.

    References
    ----------
    Rudi, Camoriano and Rosasco, "Less is more: Nyström computational regularization", NIPS 2015.

    Golub, Heath and Wahba, "Generalized cross-validation as a method for choosing a good ridge
    parameter", Technometrics, 1979.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.blocks import Blocks
    >>> from mercer.gram import NystroemMap
    >>> from mercer.kernels import RBF
    >>> from mercer.solvers import NystroemPath
    >>> X = np.linspace(0, 6, 30)[:, None]
    >>> path = NystroemPath(NystroemMap.on(RBF(), X), X, np.sin(X), intercept=False)
    >>> path.gcv(np.array([1e-3, 1.0])).ravel().round(4)  # exact, as all points are landmarks
    array([0.    , 0.0131])
    >>> path = NystroemPath(path.phi, Blocks.of(X, rows=10), np.sin(X), intercept=False)
    >>> path.gcv(np.array([1e-3, 1.0])).ravel().round(4)
    array([0.    , 0.0131])
    """

    @one_blas_thread
    def __init__(
        self,
        phi: NystroemMap,
        X: Points | Blocks,
        Y: np.ndarray,
        weights: np.ndarray | None = None,
        *,
        intercept: bool,
        max_memory: MemoryLimit = None,
        log: ProgressCallback | None = None,
    ) -> None:
        watch = Stopwatch()
        self.points, self.phi, self.X, self.Y = phi.points, phi, X, Y
        self.weights = np.ones(len(Y)) if weights is None else weights
        in_memory = not isinstance(X, Blocks)
        keep = in_memory and 8 * length(X) * len(phi) <= budget_in_bytes(max_memory) // 4
        self._kept: _KeptFeatures = [] if keep else None
        moments = self._reduce(_joint_moments, Moments.merge, log=log)
        self.rows, self._weight = moments.rows, moments.weight
        self._decompose(moments, intercept, watch)

    def _reduce(
        self,
        f: Callable[..., Result],
        merge: Callable[[Result, Result], Result],
        *shared: object,
        log: ProgressCallback | None = None,
    ) -> Result:
        """Return the merged results f(rows, phi, kept, *shared), in one pass over the points."""
        shared, data = (self.phi, self._kept, *shared), {"y": self.Y, "weights": self.weights}
        return reduce_rows(self.X, f, merge, *shared, **data, log=log)

    def _decompose(self, moments: Moments, intercept: bool, watch: Stopwatch) -> None:
        """Compute the eigendecomposition of F^T W F, after which each alpha is cheap."""
        m, C, self._mean = len(self.phi), moments.comoment, moments.mean
        if not intercept:
            C = C + moments.weight * np.outer(self._mean, self._mean)
            self._mean = np.zeros(len(C))
        # The contribution of the intercept to each leverage, divided by the weight of the point.
        self._constant = 1.0 / moments.weight if intercept else 0.0
        s, self._V = eigh(C[:m, :m], check_finite=False)
        self._s, self._c = np.maximum(s, 0.0), self._V.T @ C[:m, m:]
        self._yy = C.diagonal()[m:]
        self.report = Report(f"Nyström on {m} landmarks", Status.PENDING, seconds=watch.seconds)

    def usable(self, alphas: np.ndarray) -> np.ndarray:
        return np.asarray(alphas) > self._floor

    @one_blas_thread
    def _solve(self, alpha: float) -> tuple[np.ndarray, np.ndarray]:
        status = Status.APPROXIMATE
        message = f"f is restricted to the span of {len(self.phi)} landmarks"
        if not self.usable(np.array([alpha]))[0]:
            status = Status.INACCURATE
            limit = f"{self._floor:.1e}, the rounding error of F^T F"
            message += f"; alpha = {alpha:g} is below {limit}"
        self.report = replace(self.report, status=status, message=message)
        w = self._V @ (self._c / (self._s + alpha)[:, None])
        m = len(self.phi)
        return self.phi.expansion_coefficients(w), self._mean[m:] - self._mean[:m] @ w

    def objective(self, alpha: float) -> np.ndarray:
        """Return the minimum of the objective J(f, b) for each target.

        Parameters
        ----------
        alpha : float
            The ridge penalty.

        Returns
        -------
        ndarray of shape (q,)
            sum_i w_i (y_i - f(x_i) - b)^2 + alpha |f|^2 at the minimum.
        """
        values: np.ndarray = self._yy - np.sum(
            np.square(self._c) / (self._s + alpha)[:, None], axis=0
        )
        return values

    def gcv(self, alphas: np.ndarray) -> np.ndarray:
        n, m, constant = self.rows, len(self.phi), self._constant > 0
        rss = np.array([self._rss(alpha) for alpha in alphas])
        # `_rss` computes a difference, which is inaccurate if the result is small.
        if np.any(rss < 1e-8 * self._yy):
            rss = self._reduce(_squared_errors, add, self._errors(alphas), False)
        # n minus the degrees of freedom; this formula avoids cancellation if the two are close.
        free = np.array([n - m - constant + np.sum(alpha / (self._s + alpha)) for alpha in alphas])
        out = np.full(rss.shape, np.inf)  # the score if no degrees of freedom are left
        np.divide(n * rss, np.square(free)[:, None], out=out, where=(free > 0)[:, None])
        return out

    def _rss(self, alpha: float) -> np.ndarray:
        """Return the weighted residual sum of squares of each target, min J - alpha |f|^2."""
        norms = np.square(self._c) / np.square(self._s + alpha)[:, None]
        values: np.ndarray = self.objective(alpha) - alpha * norms.sum(axis=0)
        return values

    def mean_squares(self, alphas: np.ndarray) -> np.ndarray:
        """Return the weighted mean squared leave-one-out errors.

        Parameters
        ----------
        alphas : ndarray of shape (n_alphas,)
            The ridge penalties.

        Returns
        -------
        ndarray of shape (n_alphas, q)
            The mean squared errors of each target.
        """
        total = self._reduce(_squared_errors, add, self._errors(alphas), True)
        return np.asarray(total / self._weight)

    def leave_one_out(self, alphas: np.ndarray) -> Iterator[np.ndarray]:
        # Blocks are processed in parallel, so that each may use only little memory.
        step = _STRIP_ROWS if isinstance(self.X, Blocks) else None
        shared = self.phi, self._kept, self._errors(alphas), step
        errors = map_rows(self.X, _block_errors, *shared, y=self.Y, weights=self.weights)
        yield from map(np.ascontiguousarray, errors.transpose(1, 0, 2))

    def without_data(self) -> Self:
        """Discard the data, and return self; solutions and variances remain available.

        Returns
        -------
        NystroemPath
            This object, without points and targets.
        """
        self._kept, self.X = None, None
        if (kernel := unwrap(self.phi.kernel)) is not self.phi.kernel:
            self.phi = replace(self.phi, kernel=kernel)
        self.Y, self.weights = self.Y[:0], self.weights[:0]
        del self.rows, self._weight
        return self

    def _errors(self, alphas: np.ndarray) -> _ErrorsFromFeatures:
        """Return an object that computes the errors of individual points for these alphas."""
        (m, q), inverse = self._c.shape, 1.0 / (self._s[:, None] + alphas)  # (m, n_alphas)
        # Solutions V^T w for all alphas and targets, so that one product gives all predictions.
        solutions = (self._c[:, None, :] * inverse[:, :, None]).reshape(m, len(alphas) * q)
        return _ErrorsFromFeatures(self._V, self._mean, inverse, solutions, self._constant)

    def variance(self, F: np.ndarray, alpha: float) -> np.ndarray:
        """Return the unscaled posterior variance within the landmark span, for each row of F.

        It is alpha phi^T (F^T W F + alpha)^-1 phi for the features phi of a point, plus a term for
        the intercept.

        Parameters
        ----------
        F : ndarray of shape (r, m)
            Features of r points.
        alpha : float
            The ridge penalty.

        Returns
        -------
        ndarray of shape (r,)
            The variances.
        """
        Z = (F - self._mean[: len(self.phi)]) @ self._V
        return np.asarray(alpha * (np.square(Z) @ (1.0 / (self._s + alpha)) + self._constant))

    @one_blas_thread
    def intervals(
        self, Z: Points, calibration: Calibration, alpha: float, coverage: float
    ) -> np.ndarray:
        """Return prediction intervals by the jackknife+, in which calibration points are left out.

        The jackknife+ remains valid if only a random sample of the training points is left out, one
        at a time, while all others are used in every fit.

        Parameters
        ----------
        Z : points
            The new points, r of them.
        calibration : Calibration
            A random sample of the training points.
        alpha : float
            The ridge penalty.
        coverage : float
            The nominal coverage, between 0 and 1.

        Returns
        -------
        ndarray of shape (r, q, 2)
            The bounds for each target.
        """
        model, F = self._errors(np.array([alpha])), self.phi.features(calibration.X)
        w, Y = calibration.weights, calibration.Y
        errors = model.leave_one_out(F, Y, w)[:, 0]
        out = np.empty((length(Z), Y.shape[1], 2))
        for rows, features in self.phi.blocks(Z, _STRIP_ROWS):
            out[rows] = model.bounds(features, F, errors, w, coverage)
        return out

    @property
    def _floor(self) -> float:
        return _MIN_RELATIVE_ALPHA * float(self._s.max(initial=0.0))


# The features of blocks of rows, stored by the first pass over points in memory.
_KeptFeatures: TypeAlias = list[tuple[slice, np.ndarray]] | None


def _joint_moments(rows: BlockRows, phi: NystroemMap, kept: _KeptFeatures) -> Moments:
    """Return the joint moments of the features and targets of a block of points.

    The features are appended to `kept`, unless it is None.
    """
    n, moments = length(rows.X), Moments.none(len(phi) + rows.y.shape[1])
    for part, F in phi.blocks(rows.X):
        moments = moments.merge(Moments.of(np.c_[F, rows.y[part]], rows.weights[part]))
        if kept is not None:
            kept.append((part, F))
        if rows.log is not None and part.stop < n:
            rows.log(ProgressStep(f"{part.stop} of {n} points", part.stop, n))
    return moments


def _block_errors(
    rows: BlockRows,
    phi: NystroemMap,
    kept: _KeptFeatures,
    errors: _ErrorsFromFeatures,
    step: int | None,
) -> np.ndarray:
    """Return the leave-one-out errors of a block, of shape (n_rows, n_alphas, n_targets).

    Features that are not stored are computed for `step` rows at a time.
    """
    out = np.empty((len(rows.y), errors.inverse.shape[1], rows.y.shape[1]))

    def strip(job: tuple[slice, np.ndarray]) -> None:
        part, F = job
        out[part] = errors.leave_one_out(F, rows.y[part], rows.weights[part])

    for part, F in phi.blocks(rows.X, step) if kept is None else kept:
        strips = slices(len(F), _STRIP_ROWS)
        jobs = [(slice(part.start + s.start, part.start + s.stop), F[s]) for s in strips]
        run_in_threads(strip, jobs, work=F.size * (F.shape[1] + 2.0 * out.shape[1]))
    return out


def _squared_errors(
    rows: BlockRows,
    phi: NystroemMap,
    kept: _KeptFeatures,
    errors: _ErrorsFromFeatures,
    leave_one_out: bool,
) -> np.ndarray:
    """Return the weighted sum of squared errors of a block, for all alphas and targets."""
    total = np.zeros((errors.inverse.shape[1], rows.y.shape[1]))
    for part, F in phi.blocks(rows.X, _STRIP_ROWS) if kept is None else kept:
        Y, w = rows.y[part], rows.weights[part]
        values = errors.leave_one_out(F, Y, w) if leave_one_out else errors.fitted(F, Y)
        total += np.einsum("i,ijc->jc", w, np.square(values))
    return total


def solve_per_target(
    alphas: np.ndarray, solve: Callable[[float], tuple[np.ndarray, np.ndarray, Report]]
) -> tuple[np.ndarray, np.ndarray, Report]:
    """Solve once for each distinct alpha, and combine the solutions for one alpha per target.

    `solve(alpha)` returns the coefficients, the intercepts and the report for all targets.  The
    result has the same form; its report is that of the least accurate solution.
    """
    solutions = {alpha: solve(alpha) for alpha in np.unique(alphas).tolist()}
    parts = [solutions[alpha] for alpha in alphas.tolist()]
    A = np.stack([a[:, c] for c, (a, _, _) in enumerate(parts)], axis=1)
    b = np.array([b[c] for c, (_, b, _) in enumerate(parts)])
    return A, b, worst_report(report for *_, report in solutions.values())
