"""Recursive feature machines: a metric of the inputs that is learned from the gradients of a fit.

A round fits kernel ridge regression with a kernel of the distances |T^T (x - z)|, and computes the
average gradient outer product (AGOP) of the fitted function f,

    M = sum_i w_i grad f(x_i) grad f(x_i)^T / sum_i w_i,

summed over several outputs.  The next round uses T T^T = M^e with an exponent e.  Columns and
directions along which f does not vary are thus removed from the distances.

The width, the ridge and the exponent of a round are chosen by leave-one-out errors in closed form.
M depends on all targets, so that the leave-one-out errors of late rounds are too small.  The rounds
and families are therefore compared by cross-fitting: M is learned from one half of the points, and
scored by the leave-one-out errors of the other half.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, cast

import numpy as np
from scipy.optimize import minimize, nnls
from scipy.special import log_softmax

from ..._core import ProgressCallback, length
from ...expansion import Expansion
from ...gram import DenseGram
from ...kernels import Kernel, Laplacian, LinearMap, Matern, Shift
from ...solvers import ExactPath, NystroemPath, Report, RidgePath


@dataclass(frozen=True)
class _FeatureSearchTuning:
    """Constants of the search, from experiments with real tables of 300 to 2000 rows."""

    # Ridge penalties, for kernels with k(x, x) = 1 and standardised targets.
    alphas: tuple[float, ...] = tuple(np.geomspace(1e-8, 10.0, 19).tolist())
    # Widths of the first round, in units of the median distance.
    widths: tuple[float, ...] = (0.3, 1.0, 3.0)
    # After the first round, a penalty is searched within this factor of the previous one.
    alpha_window: float = 50.0
    # Factor between neighbouring widths of a local search.
    width_step: float = 1.8
    # Largest number of steps of a local search for the width, in one direction.
    max_width_steps: int = 5
    # A candidate replaces another one only if its error is smaller by this fraction.
    min_gain: float = 1e-3
    # Eigenvalues of M below this fraction of the largest one are set to 0.
    min_eigenvalue: float = 1e-10
    # The search stops after this number of rounds without an improvement.
    patience: int = 2
    # With fewer points, halves of them are too small to learn a metric.
    min_cross_fitted: int = 50
    # Kernels whose weight in a combination is smaller are left out.
    min_weight: float = 0.03


_TUNING = _FeatureSearchTuning()


@dataclass(frozen=True)
class MetricFamily:
    """A family of kernels with a metric: a radial kernel, or the Laplacian of the L1 distance.

    Parameters
    ----------
    kernel : Kernel
        A kernel with one length scale, which the search replaces.
    diagonal : bool
        Whether the metric is diagonal.  It always is for the `Laplacian` kernel.
    rank : int or None, default=None
        The largest rank of a metric that is not diagonal.

    Examples
    --------
    >>> from mercer.kernels import Matern
    >>> from mercer.models.kernel_learning import MetricFamily
    >>> MetricFamily(Matern(nu=0.5), diagonal=False).name
    'Matern(nu=0.5), full'
    """

    kernel: Kernel
    diagonal: bool
    rank: int | None = None

    @property
    def name(self) -> str:
        """The kernel and the form of its metric, for reports."""
        options = [f"{k}={v}" for k, v in self.kernel._items() if k != "length_scale"]
        form = "diagonal" if self.diagonal else "full" if self.rank is None else f"rank {self.rank}"
        return f"{type(self.kernel).__name__}({', '.join(options)}), {form}"

    def transform(self, M: np.ndarray, exponent: float) -> np.ndarray:
        """Return T of shape (d, r) with T T^T = M^exponent, apart from negligible directions."""
        if self.diagonal:
            variances, V = np.diag(M), np.eye(len(M))
        else:
            variances, V = np.linalg.eigh(M)
        order = np.argsort(-variances, kind="stable")[: None if self.diagonal else self.rank]
        order = order[variances[order] > _TUNING.min_eigenvalue * variances.max()]
        relative = variances[order] / variances.max()
        return np.asarray(V[:, order] * relative ** (0.5 * exponent))


#: The families that are compared by default.
METRIC_FAMILIES = (
    MetricFamily(Laplacian(), diagonal=True),
    MetricFamily(Matern(nu=2.5), diagonal=True),
    MetricFamily(Matern(nu=1.5), diagonal=False),
    MetricFamily(Matern(nu=0.5), diagonal=False),
)


class FeatureRound(NamedTuple):
    """One round of the search for one family of kernels."""

    family: MetricFamily
    round: int
    exponent: float
    transform: np.ndarray  # T
    width: float  # the length scale, in units of the median distance
    length_scale: float
    alpha: float
    score: float  # the mean squared leave-one-out error, in units of the variance of the targets
    coefficients: np.ndarray
    errors: np.ndarray  # leave-one-out errors

    @property
    def kernel(self) -> Kernel:
        """The kernel on points that are not transformed."""
        return LinearMap(self._inner, self.transform)

    @property
    def _inner(self) -> Kernel:
        kernel: Any = self.family.kernel
        return replace(kernel, length_scale=self.length_scale)


def average_gradient_outer_product(
    f: Expansion, X: np.ndarray, weights: np.ndarray | None = None
) -> np.ndarray:
    """Return the average gradient outer product of f, summed over its outputs.

    Parameters
    ----------
    f : Expansion
        The fitted functions.  The gradient of a kernel with a kink is 0 at coincident points.
    X : ndarray of shape (n, d)
        The points.
    weights : ndarray of shape (n,) or None, default=None
        Weights of the points; None means equal weights.

    Returns
    -------
    ndarray of shape (d, d)
        M = sum_i w_i grad f(x_i) grad f(x_i)^T / sum_i w_i, symmetric positive semidefinite.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import Expansion
    >>> from mercer.kernels import Linear
    >>> from mercer.models.kernel_learning import average_gradient_outer_product
    >>> f = Expansion(Linear(), np.array([[1.0, 2.0]]), np.array([1.0]))  # f(x) = x_1 + 2 x_2
    >>> average_gradient_outer_product(f, np.zeros((3, 2)))
    array([[1., 2.],
           [2., 4.]])
    """
    w = np.ones(length(X)) if weights is None else weights
    M = np.zeros((X.shape[1], X.shape[1]))
    for column in f:  # one output at a time, so that only n x d numbers are stored
        G = column.gradient(X)[:, 0]
        M += G.T @ (w[:, None] * G)
    return M / w.sum()


def principal_directions(M: np.ndarray) -> np.ndarray:
    """Return the eigenvectors of a metric as rows, by decreasing eigenvalue.

    The largest entry of each row is positive.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.models.kernel_learning import principal_directions
    >>> principal_directions(np.diag([1.0, 4.0]))
    array([[0., 1.],
           [1., 0.]])
    """
    V = np.linalg.eigh(M)[1][:, ::-1].T
    largest = np.abs(V).argmax(axis=1)
    return np.asarray(V * np.sign(V[np.arange(len(V)), largest])[:, None])


class RidgeFit(NamedTuple):
    """Ridge regression with the best penalty of a path, by leave-one-out errors."""

    points: Any
    A: np.ndarray
    b: np.ndarray
    alpha: float
    score: float  # the mean squared leave-one-out error
    errors: np.ndarray  # leave-one-out errors
    report: Report


def best_ridge(
    path: RidgePath,
    Y: np.ndarray,
    weights: np.ndarray | None,
    alphas: Sequence[float] | None = None,
    *,
    copies: np.ndarray | None = None,
    in_blocks: bool = False,
) -> RidgeFit:
    """Return the solution of a path with the smallest mean squared leave-one-out error.

    Parameters
    ----------
    path : RidgePath
    Y : ndarray of shape (n, q)
        Targets.
    weights : ndarray of shape (n,) or None
    alphas : sequence of float or None, default=None
        Penalties to try; None means 19 values between 1e-8 and 10.
    copies : ndarray of shape (n,) or None, default=None
        The number of copies for which each point stands.  A leave-one-out error leaves out one of
        them, or all if there are less than one.  None means 1.
    in_blocks : bool, default=False
        Whether the points are in blocks, so that the errors for all penalties are not stored.
    """
    tried = np.asarray(_TUNING.alphas if alphas is None else alphas, dtype=float)
    usable = path.usable(tried)
    tried = tried[usable] if usable.any() else np.array([tried.max()])
    errors: list[np.ndarray] = []
    if in_blocks:
        scores: Any = cast(NystroemPath, path).mean_squares(tried).mean(axis=1)
    else:
        errors = list(path.leave_one_out(tried))
        if weights is not None and copies is not None and isinstance(path, ExactPath):
            errors = [
                _errors_without_one_copy(path, alpha, e, weights, copies)
                for alpha, e in zip(tried, errors, strict=True)
            ]
        scores = [_mean_square(e, weights) for e in errors]
    best = int(np.argmin(np.nan_to_num(scores, nan=np.inf)))
    A, b = path.solve(float(tried[best]), warn=False)
    found = next(path.leave_one_out(tried[[best]])) if in_blocks else errors[best]
    score = float(scores[best])
    return RidgeFit(path.points, A, b, float(tried[best]), score, found, path.report)


def _errors_without_one_copy(
    path: ExactPath, alpha: float, errors: np.ndarray, weights: np.ndarray, copies: np.ndarray
) -> np.ndarray:
    """Return the errors of points when one of their c copies is left out.

    With the residual r and the leverage h of the point, the error is r / (1 - h / c).  A point with
    c < 1 is left out as a whole, as in `errors`.
    """
    A, _ = path.solve(float(alpha), warn=False)
    residuals = alpha * A / weights[:, None]
    largest = np.abs(errors).sum(axis=1)
    free = np.ones(len(errors))  # 1 - h
    np.divide(np.abs(residuals).sum(axis=1), largest, out=free, where=largest > 0.0)
    leverage = (1.0 - free) / np.maximum(copies, 1.0)
    return np.asarray(residuals / (1.0 - leverage)[:, None])


def _mean_square(errors: np.ndarray, weights: np.ndarray | None) -> float:
    return float(np.average(np.square(errors), axis=0, weights=weights).mean())


@dataclass(frozen=True)
class ColumnScaling:
    """Standardisation of columns: x is replaced by (x - mean) / scale.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.models.kernel_learning import ColumnScaling
    >>> ColumnScaling.of(np.array([[1.0, 5.0], [3.0, 5.0]]))(np.array([[2.0, 5.0]]))
    array([[0., 0.]])
    """

    mean: np.ndarray
    scale: np.ndarray

    @classmethod
    def of(
        cls, X: np.ndarray, weights: np.ndarray | None = None, groups: np.ndarray | None = None
    ) -> ColumnScaling:
        """Return the means and standard deviations of the columns.

        Columns of the same group share a scale, the square root of the sum of their variances.
        The scale of a constant column is 1.

        Parameters
        ----------
        X : ndarray of shape (n, d)
        weights : ndarray of shape (n,) or None, default=None
        groups : ndarray of int, shape (d,), or None, default=None
            The group of each column; None means that each column has its own.
        """
        with np.errstate(over="ignore"):
            mean = np.average(X, axis=0, weights=weights)
            variance = np.average(np.square(X - mean), axis=0, weights=weights)
        if not np.isfinite(variance).all():
            raise ValueError(
                f"the squares of values as large as {np.abs(X).max():.1e} overflow; divide these "
                f"columns by a constant"
            )
        variance[np.ptp(X, axis=0) == 0.0] = 0.0  # a constant column, in spite of rounding errors
        if groups is not None:
            variance = np.bincount(groups, variance)[groups]
        return cls(mean, np.where(variance > 0.0, np.sqrt(variance), 1.0))

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Return the standardised rows."""
        return np.asarray((X - self.mean) / self.scale)

    def kernel(self, choice: FeatureChoice) -> Kernel:
        """Return the chosen kernel as a kernel on points that are not standardised."""
        rows = 1.0 / self.scale[:, None]
        rounds = [r._replace(transform=rows * r.transform) for r in choice.rounds]
        return Shift(choice._replace(rounds=rounds).kernel, self.mean)


@dataclass(eq=False)
class FeatureSearch:
    """Search for a metric, on standardised points and targets.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        The points.
    Y : ndarray of shape (n, q)
        The targets.
    weights : ndarray of shape (n,) or None
        Positive weights of the points.
    families : sequence of MetricFamily
    exponents : sequence of float
        The exponents e of M to try.
    rounds : int
        The largest number of rounds.
    alphas : sequence of float or None, default=None
        Ridge penalties to try; None means 19 values between 1e-8 and 10.
    widths : sequence of float or None, default=None
        Length scales to try, in units of the median distance.  None means a local search.
    log : callable or None, default=None
        Called with a progress message after each round.
    copies : ndarray of shape (n,) or None, default=None
        The number of copies for which each point stands, see `best_ridge`.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.models.kernel_learning import METRIC_FAMILIES, FeatureSearch
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> y = np.sin(2.0 * X[:, [3]])
    >>> search = FeatureSearch(X, y, None, METRIC_FAMILIES[1:2], [1.0], rounds=3)
    >>> choice = search.run(cross_fit=False, combine=False)
    >>> int(np.abs(choice.rounds[0].transform).max(axis=1).argmax())
    3
    """

    X: np.ndarray
    Y: np.ndarray
    weights: np.ndarray | None
    families: Sequence[MetricFamily]
    exponents: Sequence[float]
    rounds: int
    alphas: Sequence[float] | None = None
    widths: Sequence[float] | None = None
    log: ProgressCallback | None = None
    copies: np.ndarray | None = None

    def path(
        self, family: MetricFamily, test: FeatureSearch | None = None, *, stop: bool = True
    ) -> list[FeatureRound]:
        """Return the rounds of a family.

        If `test` is given, the rounds are scored by the leave-one-out errors of its points, with
        the kernel that was learned from the points of this search.  If `stop` is True, rounds end
        early if they no longer reduce the error.
        """
        d = self.X.shape[1]
        candidates, rounds = [(1.0, np.eye(d))], list[FeatureRound]()
        best = stale = 0
        for t in range(self.rounds + 1):
            current = self._best_width(family, t, candidates, rounds[-1] if rounds else None)
            rounds.append(current if test is None else test.rescore(current))
            if self.log is not None and test is None and stop:
                self.log(f"{family.name}, round {t}: error {current.score:.4g}")
            if rounds[t].score < (1.0 - _TUNING.min_gain) * rounds[best].score:
                best, stale = t, 0
            else:
                stale += t > 0
            M = self._outer_product(current)
            if (stop and stale >= _TUNING.patience) or not M.any():
                break
            candidates = [(e, family.transform(M, e)) for e in self.exponents]
        return rounds

    def _outer_product(self, current: FeatureRound) -> np.ndarray:
        f = Expansion(current.kernel, self.X, current.coefficients)
        M = average_gradient_outer_product(f, self.X, self.weights)
        return np.diag(np.diag(M)) if current.family.diagonal else M

    def _best_width(
        self,
        family: MetricFamily,
        t: int,
        candidates: list[tuple[float, np.ndarray]],
        previous: FeatureRound | None,
    ) -> FeatureRound:
        """Return the best round over transforms and widths, by a local search from the last width.

        If `widths` are given, all of them are tried.
        """
        starts = self.widths or (_TUNING.widths if previous is None else (previous.width,))
        alpha = np.nan if previous is None else previous.alpha
        points = [(e, T, self.X @ T) for e, T in candidates]
        unit = [_median_distance(family.kernel, U, self.weights) for _, _, U in points]
        fits = [
            (self._fit(family, t, *point, width, s, alpha), j)
            for j, (point, s) in enumerate(zip(points, unit, strict=True))
            for width in starts
        ]
        best, j = min(fits, key=lambda fit: fit[0].score)
        if self.widths is not None:
            return best
        for step in (_TUNING.width_step, 1.0 / _TUNING.width_step):
            for _ in range(_TUNING.max_width_steps):
                width = best.width * step
                other = self._fit(family, t, *points[j], width, unit[j], best.alpha)
                if other.score >= (1.0 - _TUNING.min_gain) * best.score:
                    break
                best = other
        return best

    def _fit(
        self,
        family: MetricFamily,
        t: int,
        exponent: float,
        T: np.ndarray,
        U: np.ndarray,
        width: float,
        unit: float,
        alpha: float,
    ) -> FeatureRound:
        """Return the ridge regression on the transformed points U with the best penalty."""
        zero = np.zeros(0)
        trial = FeatureRound(
            *(family, t, exponent, T, width, width * unit, alpha, np.inf, zero, zero)
        )
        return self._solve(trial, U)

    def _solve(self, trial: FeatureRound, U: np.ndarray) -> FeatureRound:
        path = ExactPath(DenseGram(trial._inner, U), self.Y, self.weights, intercept=True)
        fit = best_ridge(path, self.Y, self.weights, self._near(trial.alpha), copies=self.copies)
        return trial._replace(
            alpha=fit.alpha, score=fit.score, coefficients=fit.A, errors=fit.errors
        )

    def _near(self, alpha: float) -> Sequence[float] | None:
        """Return the penalties to try, given the last one, which is NaN in the first round."""
        if np.isnan(alpha) or self.alphas is not None:
            return self.alphas
        factor = _TUNING.alpha_window
        return [a for a in _TUNING.alphas if alpha / factor <= a <= alpha * factor]

    def rescore(self, trained: FeatureRound) -> FeatureRound:
        """Return a round with the errors of its kernel on the points of this search."""
        own = self._solve(trained, self.X @ trained.transform)
        return trained._replace(score=own.score, errors=own.errors)

    def mean_square(self, errors: np.ndarray) -> float:
        """Return the weighted mean of the squared errors, over points and outputs."""
        return _mean_square(errors, self.weights)

    # ------------------------------------------------------------------ comparison of families

    def run(self, *, cross_fit: bool, combine: bool) -> FeatureChoice:
        """Choose the round of each family, and the families.

        Parameters
        ----------
        cross_fit : bool
            Whether the rounds and families are compared by cross-fitting, and not by the
            leave-one-out errors of the points from which the metric was learned.
        combine : bool
            Whether the kernel may be a weighted sum of the kernels of several families.
        """
        cross_fit = cross_fit and len(self.X) >= _TUNING.min_cross_fitted
        compare = self._cross_fitted_path if cross_fit else self.path
        paths = [compare(family) for family in self.families]
        best = [min(path, key=lambda r: r.score) for path in paths]
        if combine and len(best) > 1:
            weights = self._combination([r.errors for r in best])
        else:
            weights = np.zeros(len(best))
            weights[int(np.argmin([r.score for r in best]))] = 1.0
        kept = np.flatnonzero(weights)
        chosen = [best[j] for j in kept]
        if cross_fit:  # learn the metrics again, from all points
            chosen = [replace(self, rounds=r.round).path(r.family, stop=False)[-1] for r in chosen]
        return FeatureChoice(chosen, weights[kept], paths)

    def _cross_fitted_path(self, family: MetricFamily) -> list[FeatureRound]:
        """Return the rounds of a family, with errors of points that M does not depend on."""
        n = len(self.X)
        order = np.random.RandomState(0).permutation(n)
        halves = [np.sort(order[: n // 2]), np.sort(order[n // 2 :])]
        parts = [self._take(rows) for rows in halves]
        paths = [parts[0].path(family, parts[1]), parts[1].path(family, parts[0])]
        rounds = []
        for pair in zip(*paths, strict=False):
            errors = np.empty_like(self.Y)
            for rows, r in zip(halves[::-1], pair, strict=True):
                errors[rows] = r.errors
            rounds.append(pair[0]._replace(errors=errors, score=self.mean_square(errors)))
            if self.log is not None:
                self.log(f"{family.name}, round {rounds[-1].round}: error {rounds[-1].score:.4g}")
        return rounds

    def _take(self, rows: np.ndarray) -> FeatureSearch:
        weights = None if self.weights is None else self.weights[rows]
        copies = None if self.copies is None else self.copies[rows]
        return replace(self, X=self.X[rows], Y=self.Y[rows], weights=weights, copies=copies)

    def _combination(self, errors: list[np.ndarray]) -> np.ndarray:
        """Return the weights of the convex combination of models with the smallest error."""
        w = np.ones(len(self.X)) if self.weights is None else self.weights
        sqrt_weights = np.sqrt(w / w.sum())[:, None]
        E = np.column_stack([np.ravel(sqrt_weights * e) for e in errors])
        largest = float(np.abs(E).max())
        if not largest:
            return np.eye(len(errors))[0]
        # A heavy row of ones enforces that the weights sum to 1.
        ones = np.full((1, len(errors)), 1e3 * largest * np.sqrt(len(E)))
        v, _ = nnls(np.vstack([E, ones]), np.r_[np.zeros(len(E)), ones[0, 0]])
        v[v < _TUNING.min_weight * v.sum()] = 0.0
        return np.asarray(v / v.sum())


class FeatureChoice(NamedTuple):
    """The rounds that a search chose, the weights of their kernels, and all rounds."""

    rounds: list[FeatureRound]
    weights: np.ndarray
    paths: list[list[FeatureRound]]

    @property
    def kernel(self) -> Kernel:
        """The weighted sum of the kernels, on standardised points."""
        terms = [
            r.kernel if w == 1.0 else float(w) * r.kernel
            for w, r in zip(self.weights, self.rounds, strict=True)
        ]
        return sum(terms[1:], start=terms[0])

    def with_metric(
        self, M: np.ndarray, X: np.ndarray, weights: np.ndarray | None
    ) -> FeatureChoice:
        """Return the same families and widths, relative to the median distance, with a metric M."""
        rounds = []
        for r in self.rounds:
            T = r.family.transform(M, r.exponent)
            unit = _median_distance(r.family.kernel, X @ T, weights)
            rounds.append(r._replace(transform=T, length_scale=r.width * unit))
        return self._replace(rounds=rounds)


def _median_distance(kernel: Any, U: np.ndarray, weights: np.ndarray | None) -> float:
    """Return the median distance between two different points, 1 if all points are equal."""
    return float(replace(kernel, length_scale="median").resolve(U, weights).length_scale)


def calibrate(
    values: np.ndarray, labels: np.ndarray, weights: np.ndarray
) -> tuple[float, np.ndarray]:
    """Return a factor a > 0 and offsets b such that a f + b are log-odds of the classes.

    They minimise the log-loss on values that do not depend on the label of their own point, such
    as leave-one-out predictions (Platt scaling).

    Parameters
    ----------
    values : ndarray of shape (n, q)
        The values f, one column for two classes, otherwise one for each class.
    labels : ndarray of int, shape (n,)
        Class indices.
    weights : ndarray of shape (n,)
        Weights of the points.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.models.kernel_learning import calibrate
    >>> f = np.array([[-1.0], [-1.0], [-1.0], [1.0], [1.0], [1.0]])
    >>> a, b = calibrate(f, np.array([0, 0, 1, 1, 1, 0]), np.ones(6))
    >>> round(a, 1), b.round(1) + 0.0
    (0.4, array([0.]))
    """
    n, q = values.shape
    binary = q == 1
    counts = np.bincount(labels, weights, minlength=max(q, 2))
    # Platt's targets: one additional point of each class, so that log-odds stay finite.
    others = 1.0 / (counts + len(counts))[labels, None]
    T = others + np.eye(len(counts))[labels] * (1.0 - len(counts) * others)
    w = (weights / weights.sum())[:, None]

    def loss(p: np.ndarray) -> tuple[float, np.ndarray]:
        a = np.exp(p[0])
        F = a * values + p[1:]
        F = np.hstack([np.zeros((n, 1)), F]) if binary else F
        log_p = log_softmax(F, axis=1)
        R = w * (np.exp(log_p) - T)
        R = R[:, 1:] if binary else R
        small = 1e-6 * p[1:]  # fixes the sum of the offsets, on which probabilities do not depend
        value = -float(np.sum(w * T * log_p)) + 0.5 * float(small @ p[1:])
        return value, np.r_[a * np.sum(R * values), R.sum(axis=0) + small]

    start = np.r_[np.log(2.0), np.zeros(q)]
    bounds = [(-10.0, 10.0), *[(None, None)] * q]
    options = {"ftol": 1e-15, "gtol": 1e-10}
    p = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x
    return float(np.exp(p[0])), p[1:]
