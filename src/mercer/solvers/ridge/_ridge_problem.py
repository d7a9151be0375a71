"""Kernel ridge regression: solution, leave-one-out errors and predictive variances.

The objective is

    J(f, b) = sum_i w_i (y_i - f(x_i) - b)^2 + alpha |f|^2

`ExactRidge` minimises over all f in the RKHS, by solving (K + diag(alpha / w)) a = y.
`LandmarkRidge` restricts f to the span of landmarks.

For every c > 0, f is also the posterior mean of a Gaussian process with covariance c k and noise
variance c alpha / w.  The maximum likelihood estimate of c, min J / (alpha n), scales the
predictive variances.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..._core import (
    NotPositiveDefiniteError,
    Points,
    budget_in_bytes,
    check_budget,
    check_threads,
    entry_point,
    length,
    take,
    warn_caller,
)
from ...blocks import Blocks
from ...gram import GramOperator, Landmarks, TiledGram, gram, working_bytes
from ...kernels import Kernel, Precomputed
from .._choose_solver import LINEAR, choose
from .._report import Report, Status, worst_report
from ..eigen import LowRankEigen
from ..linear import BorderedSystem, Cholesky, LeastSquares
from ._jackknife import DualSmoother, check_interval_memory, invert_lower
from ._ridge_path import Calibration, NystroemPath, solve_per_target
from ._sketched_cg import Krill

_CROSS_KERNEL_BYTES = 2**25  # bytes of k(Z, X) that `ExactRidge` computes at a time
# The maximum number of calibration points that `LandmarkRidge` stores.  With 2000 of them, the
# standard deviation of the coverage over training samples is 0.7 % at a coverage of 90 %.
_MAX_CALIBRATION_POINTS = 2000


@dataclass(eq=False)
class _RidgeProblem:
    """Data and settings of a ridge regression problem, with one alpha per target."""

    kernel: Kernel
    X: Any
    Y: np.ndarray
    weights: np.ndarray | None
    alphas: np.ndarray
    intercept: bool


@entry_point
@dataclass(eq=False)
class ExactRidge(_RidgeProblem):
    """Kernel ridge regression on all points, with one factorisation for each distinct alpha.

    It minimises sum_i w_i (y_i - f(x_i) - b)^2 + alpha |f|^2 over all f in the RKHS, and computes
    leave-one-out errors and the predictive variances of the corresponding Gaussian process.  Prefer
    `ExactPath` to compare many alphas, and `LandmarkRidge` for many points.

    Parameters
    ----------
    kernel : Kernel
        A kernel whose parameters are all numbers (see `Kernel.resolve`).
    X : points
        The n training points.
    Y : ndarray of shape (n, q)
        Targets.
    weights : ndarray of shape (n,) or None
        Positive weights of the squared errors; None means 1.
    alphas : ndarray of shape (q,)
        The ridge penalty of each target.  A larger penalty gives a smoother f.
    intercept : bool
        Whether to fit an intercept b.
    solver : str or solver, default="auto"
        Solver of the linear systems; see `choose`.
    options : dict, default={}
        Parameters of a solver that is given by name.
    max_memory : int, str or None, default=None
        Memory budget; None for half of the memory of the computer.
    log : callable or None, default=None
        Called with a progress message before and after each factorisation.
    chosen : solver or None, default=None
        The solver that was used; set by `solve`.
    report : Report or None, default=None
        Report of the least accurate solution; set by `solve`.

    References
    ----------
    Saunders, Gammerman and Vovk, "Ridge regression learning algorithm in dual variables", ICML
    1998.

    Rasmussen and Williams, "Gaussian processes for machine learning", MIT Press, 2006, chapter 2.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF
    >>> from mercer.solvers import ExactRidge
    >>> X, alphas = np.array([[0.0], [1.0], [2.0]]), np.array([0.1])
    >>> ridge = ExactRidge(RBF(), X, np.sin(X), None, alphas, intercept=False)
    >>> coefficients, intercept = ridge.solve()
    >>> coefficients.ravel().round(3)
    array([-0.488,  0.783,  0.455])
    """

    solver: Any = "auto"
    options: dict[str, Any] = field(default_factory=dict)
    max_memory: Any = None
    log: Callable[[str], None] | None = None
    chosen: Any = None
    report: Report | None = None
    _kept: dict[float, Any] = field(default_factory=dict, repr=False)

    def __getstate__(self) -> dict[str, object]:
        # Omit the factorisations, which are large and can be recomputed.
        return {**self.__dict__, "_kept": {}, "_smoothers": {}, "log": None}

    def solve(self, workers: Blocks | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return the coefficients and the intercepts.

        Parameters
        ----------
        workers : Blocks or None, default=None
            If K is not stored, the workers of these blocks compute the products with it; None means
            this process.

        Returns
        -------
        A : ndarray of shape (n, q)
            Coefficients, f_c = sum_i A_ic k(x_i, .).
        b : ndarray of shape (q,)
            Intercepts; 0 if none are fitted.
        """
        A, b, reports = np.empty(self.Y.shape), np.empty(len(self.alphas)), []
        for solution in self._solutions(workers=workers):
            A[:, solution.columns], b[solution.columns] = solution.A, solution.b
            reports.append(solution.system.report)
            if self.log is not None:
                self.log(f"residual {reports[-1].residual:.1e}")
        self.report = worst_report(reports)
        return A, b

    def leave_one_out(self) -> np.ndarray:
        """Return the leave-one-out errors, in closed form.

        The error of point i is y_i - f(x_i) - b, with f and b fitted without that point.

        Returns
        -------
        ndarray of shape (n, q)
            The errors.
        """
        if len(self.Y) - self.intercept < 1:
            raise ValueError(
                "leave-one-out with an intercept needs at least two points, got n_samples = 1"
            )
        errors = np.empty(self.Y.shape)
        for solution in self._solutions(keep=True):
            self._require_definite(solution, "leave-one-out errors")
            errors[:, solution.columns] = solution.system.leave_one_out(solution.A)
        return errors

    def inverse(self, columns: np.ndarray | None = None) -> np.ndarray:
        """Return columns of the matrix P that maps targets to dual coefficients, a = P y.

        All targets must have the same alpha.

        Parameters
        ----------
        columns : ndarray of int of shape (c,) or None, default=None
            Indices of the columns; None means all n.

        Returns
        -------
        ndarray of shape (n, c)
            The columns of P.
        """
        (solution,) = self._solutions(keep=True)
        return solution.system.inverse(columns)

    def variance(self, Z: Points) -> np.ndarray:
        """Return the predictive variance at new points.

        Parameters
        ----------
        Z : points
            The new points, r of them.

        Returns
        -------
        ndarray of shape (r, q)
            The variance of f, without noise, for each target.
        """
        variance = np.empty((length(Z), len(self.alphas)))
        variance[:] = self.kernel.diag(Z)[:, None]
        for solution in self._solutions(keep=True):
            self._require_definite(solution, "standard deviations")
            for rows, K in kernel_rows(self.kernel, Z, self.X, self.max_memory):
                explained = solution.system.explained(K.T)
                variance[np.ix_(rows, solution.columns)] -= explained[:, None]
            variance[:, solution.columns] *= self._likelihood_scale(solution)
        return np.maximum(variance, 0.0)

    def intervals(self, Z: Points, coverage: float) -> np.ndarray:
        """Return prediction intervals by the jackknife+, from leave-one-out fits in closed form.

        Parameters
        ----------
        Z : points
            The new points, r of them.
        coverage : float
            The nominal coverage, between 0 and 1.

        Returns
        -------
        ndarray of shape (r, q, 2)
            The bounds for each target.

        References
        ----------
        Barber, Candès, Ramdas and Tibshirani, "Predictive inference with the jackknife+", Annals of
        Statistics 49, 2021.
        """
        bounds = np.empty((length(Z), len(self.alphas), 2))
        for alpha in sorted(set(self.alphas.tolist())):
            columns = np.flatnonzero(self.alphas == alpha)
            smoother = self._smoothers.get(alpha) or self._smoother(alpha, columns)
            for rows, K in kernel_rows(self.kernel, Z, self.X, self.max_memory):
                bounds[np.ix_(rows, columns)] = smoother.bounds(K, coverage)
        return bounds

    @property
    def n_left_out(self) -> int:
        """The number of leave-one-out fits from which `intervals` are computed."""
        return len(self.Y)

    @cached_property
    def _smoothers(self) -> dict[float, DualSmoother]:
        """The results of `_smoother` that are stored; not a field, so model files omit them."""
        return {}

    def _smoother(self, alpha: float, columns: np.ndarray) -> DualSmoother:
        """Factorise the system of some targets for `intervals`; keep it if there is one alpha."""
        check_interval_memory(len(self.Y), self.max_memory)
        if len(self.Y) - self.intercept < 1:
            raise ValueError(
                "leave-one-out with an intercept needs at least two points, got n_samples = 1"
            )
        stored = None
        if isinstance(self.kernel, Precomputed):
            stored = gram(self.kernel, self.X, max_memory=self.max_memory)
        K = self._dense_gram(1, stored)
        own = stored is None or self.weights is not None
        try:
            L = Cholesky().lower_factor(K, alpha, overwrite=own)
        except NotPositiveDefiniteError as why:
            raise NotPositiveDefiniteError(
                f"prediction intervals in closed form need a positive definite system ({why}). Use "
                f"a larger alpha, or `conformalize` with data that were not used in `fit`"
            ) from None
        root = None if self.weights is None else np.sqrt(self.weights)
        smoother = DualSmoother(
            invert_lower(L, overwrite=True), self.Y[:, columns], root, intercept=self.intercept
        )
        if len(columns) == len(self.alphas):
            self._smoothers[alpha] = smoother
        return smoother

    def _likelihood_scale(self, solution: _AlphaSolution) -> np.ndarray:
        """Return the factor c of the prior covariance c k that maximises the likelihood."""
        # The minimum of the objective J satisfies min J / alpha = (y - b)^T a.
        gap = self.Y[:, solution.columns] - solution.b
        scale = np.maximum(np.einsum("ic,ic->c", gap, solution.A), 0.0)
        return np.asarray(scale / max(1, len(self.Y) - self.intercept))

    def noise_variance(self) -> np.ndarray:
        """Return the noise variance c alpha of an observation of weight 1, for each target.

        `variance` is the variance of f in the same Gaussian process, so their sum is the variance
        of a new observation.

        Returns
        -------
        ndarray of shape (q,)
            The noise variances.
        """
        noise = np.empty(len(self.alphas))
        for solution in self._solutions(keep=True):
            noise[solution.columns] = self._likelihood_scale(solution)
        shifts: np.ndarray = noise * self.alphas
        return shifts

    @staticmethod
    def _require_definite(solution: _AlphaSolution, what: str) -> None:
        """Raise an error if the system matrix is not positive definite.

        `what` names the result that requires it.  The check is needed because a least-squares
        solution also exists for a singular or indefinite system.
        """
        factor = solution.system.factor
        if factor.report.status is Status.SINGULAR:
            raise NotPositiveDefiniteError(
                f"{what} need a positive definite system, but the system is singular: "
                f"{factor.report.message}. Use a larger alpha"
            )
        if solution.least_squares:
            try:
                factor.logdet()
            except NotPositiveDefiniteError as why:
                raise NotPositiveDefiniteError(
                    f"{what} need a positive definite system ({why}). The usual cause is a kernel "
                    f"that is not positive semidefinite and thus cannot be the covariance of a "
                    f"Gaussian process. Use a positive semidefinite kernel, or a larger alpha"
                ) from None

    # ------------------------------------------------------------------ systems

    def _solutions(
        self, keep: bool = False, workers: Blocks | None = None
    ) -> Iterator[_AlphaSolution]:
        """Yield the solution for each distinct alpha.

        If `keep` is True and there is only one alpha, its factorisation is stored for later
        calls.  Storing several factorisations would take too much memory.
        """
        distinct = sorted(set(self.alphas.tolist()))
        keep = keep and len(distinct) == 1
        K = None
        for alpha in distinct:
            if alpha not in self._kept:
                if K is None:
                    K = self._prepare_gram(len(distinct), workers)
                solution = self._solve_alpha(K, alpha, last=alpha == distinct[-1])
                if not keep:
                    yield solution
                    continue
                self._kept[alpha] = solution
            yield self._kept[alpha]

    def _solve_alpha(self, K: GramOperator, alpha: float, last: bool) -> _AlphaSolution:
        if self.log is not None:
            self.log(f"{self.chosen} of {K!r}, alpha = {alpha:g}")
        columns = np.flatnonzero(self.alphas == alpha)
        try:
            return self._solve_system(K, alpha, columns, overwrite=last)
        except NotPositiveDefiniteError as why:
            if self.solver != "auto":
                raise
            warn_caller(
                f"Singular matrix in solving dual problem. Using least-squares solution "
                f"instead. ({why})"
            )
            self.chosen = LeastSquares()
            K = self._dense_gram(2) if last else K
            return self._solve_system(K, alpha, columns, overwrite=last)

    def _solve_system(
        self, K: GramOperator, alpha: float, columns: np.ndarray, overwrite: bool
    ) -> _AlphaSolution:
        sqrt_weights, shift = None, np.asarray(alpha)
        if self.weights is not None and hasattr(K, "scaled"):
            sqrt_weights = np.sqrt(self.weights)  # `_dense_gram` scaled K by them on both sides
        elif self.weights is not None:
            with np.errstate(over="ignore"):
                shift = alpha / self.weights
            if not np.all(np.isfinite(shift)):
                raise ValueError(
                    f"sample_weight goes down to {self.weights.min():.3g}, and alpha / weight "
                    f"overflows; give such points a weight of 0, or use solver='cholesky'"
                )
        factor = self.chosen.factorize(K, shift, overwrite=overwrite)
        system = BorderedSystem(factor, sqrt_weights, intercept=self.intercept)
        Y, mean = self.Y[:, columns], np.zeros(len(columns))
        if self.intercept:  # centre the targets, because a large mean reduces the precision
            mean = np.average(Y, axis=0, weights=self.weights)
        A, b = system.solve(Y - mean)
        return _AlphaSolution(columns, system, A, b + mean, isinstance(self.chosen, LeastSquares))

    def _prepare_gram(self, n_alphas: int, workers: Blocks | None) -> GramOperator:
        """Choose the solver, and return K in the form that the solver requires."""
        is_precomputed = isinstance(self.kernel, Precomputed)
        n, stored = length(self.X), None
        if is_precomputed:
            stored = gram(self.kernel, self.X, max_memory=self.max_memory)
        available = budget_in_bytes(self.max_memory) - self._tile_bytes(1)
        size: dict[str, Any] = {"n": n, "kernel": self.kernel, "X": self.X}
        size |= {"columns": self.Y.shape[1], "max_memory": max(1, available)}
        self.chosen = choose(LINEAR, stored, self.solver, **size, **self.options)
        if is_precomputed or self.chosen.storage == "dense":
            return self._dense_gram(n_alphas, stored)
        options: dict[str, Any] = {"max_memory": self.max_memory, "workers": workers}
        return gram(self.kernel, self.X, storage="tiled", **options)

    def _dense_gram(self, n_alphas: int, stored: Any = None) -> GramOperator:
        """Return S K S as a `DenseGram`, with S = diag(sqrt(weights))."""
        # Cholesky overwrites K.  A second array is needed for eigenvectors, or to keep K for
        # the next alpha.
        n = length(self.X)
        copies = 1 + (n_alphas > 1 or isinstance(self.chosen, LeastSquares))
        copies += stored is not None and self.weights is not None  # preserve the user's array
        needed = 8 * n * n * copies + (self._tile_bytes(0) if stored is None else 0)
        check_budget(needed, self.max_memory, f"kernel ridge regression of {n} points")
        K: GramOperator
        if stored is None:
            K = gram(self.kernel, self.X, storage="dense", max_memory=self.max_memory)
        else:
            K = stored
        return K if self.weights is None else K.scaled(np.sqrt(self.weights))

    def _tile_bytes(self, columns: int) -> int:
        """Return the bytes of temporary arrays needed while K is evaluated."""
        return working_bytes(self.kernel, self.X, None, columns, check_threads(None))


def kernel_rows(
    kernel: Kernel, Z: Points, X: Points, max_memory: Any
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the indices of some points of Z and their kernel values with X, in small blocks."""
    # Use a small part of the memory budget, because a solve with these rows needs memory too.
    block = min(_CROSS_KERNEL_BYTES, budget_in_bytes(max_memory) // 32)
    tiles, step = TiledGram(kernel, Z, X), max(1, block // (8 * length(X)))
    for start in range(0, length(Z), step):
        rows = np.arange(start, min(start + step, length(Z)))
        yield rows, tiles.rows(rows)


class _AlphaSolution(NamedTuple):
    """The solution for all targets that have the same alpha."""

    columns: np.ndarray
    system: BorderedSystem
    A: np.ndarray
    b: np.ndarray
    least_squares: bool


@entry_point
@dataclass(eq=False)
class LandmarkRidge(_RidgeProblem):
    """Kernel ridge regression with f in the span of k(s, .) for landmarks s.

    With m landmarks, the cost is linear in the number of points, and X may be larger than the
    memory.  The result is the exact minimiser within the span, and approaches that of `ExactRidge`
    as m grows.

    Parameters
    ----------
    kernel : Kernel
        A kernel whose parameters are all numbers (see `Kernel.resolve`).
    X : points or Blocks
        The n training points; Blocks only if `iterative` is False.
    Y : ndarray of shape (n, q)
        Targets.
    weights : ndarray of shape (n,) or None
        Non-negative weights of the squared errors; None means 1.
    alphas : ndarray of shape (q,)
        The positive ridge penalty of each target.
    intercept : bool
        Whether to fit an intercept b.
    landmarks : Landmarks, default=Landmarks()
        How many landmarks to choose, and how.
    iterative : bool, default=False
        Whether to solve by sketched conjugate gradients (`Krill`), which is faster for many
        landmarks, instead of a direct method on the features of all points.
    max_memory : int, str or None, default=None
        Memory budget; None for half of the memory of the computer.
    log : callable or None, default=None
        Called with progress messages.
    chosen : str, default="nystroem"
        Name of the method; set by `solve`.
    report : Report or None, default=None
        Report of the least accurate solution; set by `solve`.
    points : points or None, default=None
        The landmarks; set by `solve`.
    among : points or None, default=None
        The points from which landmarks are chosen; None means X.  Must be given if X is `Blocks`.
    calibration : Calibration or None, default=None
        A random sample of at most 2000 training points, which `intervals` needs; set by
        `calibrate`.

    See Also
    --------
    ExactRidge : All points instead of landmarks.
    NystroemPath : The same problem for many alphas.
    Krill : The iterative solver.

    References
    ----------
    Rudi, Camoriano and Rosasco, "Less is more: Nyström computational regularization", NIPS 2015.

    Rasmussen and Williams, "Gaussian processes for machine learning", MIT Press, 2006, chapter 8.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF
    >>> from mercer.gram import Landmarks
    >>> from mercer.solvers import LandmarkRidge
    >>> X, alphas = np.linspace(0, 6, 500)[:, None], np.array([0.1])
    >>> ridge = LandmarkRidge(RBF(), X, np.sin(X), None, alphas, False, Landmarks(10))
    >>> coefficients, intercept = ridge.solve()
    >>> f = RBF()(X, ridge.points) @ coefficients
    >>> bool(np.abs(f - np.sin(X)).max() < 0.1)
    True
    """

    landmarks: Landmarks = Landmarks()  # noqa: RUF009
    iterative: bool = False
    max_memory: Any = None
    log: Callable[[str], None] | None = None
    chosen: str = "nystroem"
    report: Report | None = None
    points: Points = None
    among: Points = None
    calibration: Calibration | None = None
    _path: NystroemPath | None = None
    _n: int = 0

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "log": None}

    def path(self) -> NystroemPath:
        """Choose the landmarks, make one pass over the points, and return the path of solutions.

        Returns
        -------
        NystroemPath
            Solves for any alpha without another pass.
        """
        n = length(self.X)
        self.landmarks.require(n)
        m = self.landmarks.count(n)
        n_candidates = n if self.among is None else length(self.among)
        needed = LowRankEigen(m).workspace(n_candidates, 1)
        check_budget(needed, self.max_memory, f"a fit on {m} landmarks")
        phi = self.landmarks.map(self.kernel, self.X if self.among is None else self.among)
        if self.log is not None:
            self.log(f"features by {phi!r}")
        options: dict[str, Any] = {"max_memory": self.max_memory, "log": self.log}
        data = self.X, self.Y, self.weights
        return NystroemPath(phi, *data, intercept=self.intercept, **options)

    def solve(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the coefficients of the landmarks and the intercepts.

        Returns
        -------
        A : ndarray of shape (m, q)
            Coefficients, f_c = sum_s A_sc k(s, .).
        b : ndarray of shape (q,)
            Intercepts; 0 if none are fitted.
        """
        if np.any(self.alphas <= 0):
            raise ValueError(
                f"a fit on landmarks needs alpha > 0, got {self.alphas.min():g}; without a ridge "
                f"penalty the system is singular if two landmarks are close. Use a positive alpha"
            )
        if self.iterative:
            return self._solve_iteratively()
        path = self.path()
        A, b, self.report = path.solve_each(self.alphas)
        self._discard_data(path.rows)
        self.points, self._path = path.points, path.without_data()
        return A, b

    def variance(self, Z: Points) -> np.ndarray:
        """Return the predictive variance at new points.

        The part of k(z, z) that the landmarks do not explain counts fully as variance.

        Parameters
        ----------
        Z : points
            The new points, r of them.

        Returns
        -------
        ndarray of shape (r, q)
            The variance of f, without noise, for each target.
        """
        path = self._factorised_path()
        out, n = np.empty((length(Z), len(self.alphas))), max(1, self._n - self.intercept)
        diagonal = self.kernel.diag(Z)
        for rows, F in path.phi.blocks(Z):
            outside = np.maximum(diagonal[rows] - np.einsum("ij,ij->i", F, F), 0.0)
            for alpha in np.unique(self.alphas):
                columns = np.flatnonzero(self.alphas == alpha)
                scale = np.maximum(path.objective(alpha)[columns], 0.0) / (alpha * n)
                inside = path.variance(F, alpha)
                out[rows, columns] = (outside + inside)[:, None] * scale
        return out

    def calibrate(
        self, path: NystroemPath | None, X: Points, Y: np.ndarray, weights: np.ndarray | None
    ) -> None:
        """Store a random sample of at most 2000 training points, which `intervals` needs.

        Parameters
        ----------
        path : NystroemPath or None
            The solutions for all training points, if they were not computed by `solve`.
        X : points
            Training points.
        Y : ndarray of shape (n, q)
            Their targets.
        weights : ndarray of shape (n,) or None
            Their weights; None means 1.
        """
        if path is not None:
            self.points, self._path = path.points, path
            self._discard_data(len(self.Y))
        draw = np.arange(len(Y))
        if len(Y) > _MAX_CALIBRATION_POINTS:
            rng = np.random.default_rng(0)
            draw = np.sort(rng.choice(len(Y), _MAX_CALIBRATION_POINTS, replace=False))
        w = np.ones(len(draw)) if weights is None else weights[draw]
        self.calibration = Calibration(take(X, draw), Y[draw], w)

    @property
    def n_left_out(self) -> int:
        """The number of leave-one-out fits from which `intervals` are computed."""
        return 0 if self.calibration is None else len(self.calibration.Y)

    def intervals(self, Z: Points, coverage: float) -> np.ndarray:
        """Return prediction intervals by the jackknife+, in which `calibration` is left out.

        All leave-one-out models have the same landmarks.

        Parameters
        ----------
        Z : points
            The new points, r of them.
        coverage : float
            The nominal coverage, between 0 and 1.

        Returns
        -------
        ndarray of shape (r, q, 2)
            The bounds for each target.

        References
        ----------
        Barber, Candès, Ramdas and Tibshirani, "Predictive inference with the jackknife+", Annals of
        Statistics 49, 2021.
        """
        path, bounds = (
            self._factorised_path("intervals"),
            np.empty((length(Z), len(self.alphas), 2)),
        )
        if self.calibration is None:
            raise ValueError(
                "the model contains no calibration points, because it was saved by an earlier "
                "version; fit it again, or use `conformalize` with data that were not used in `fit`"
            )
        for alpha in np.unique(self.alphas):
            columns = self.alphas == alpha
            bounds[:, columns] = path.intervals(Z, self.calibration, alpha, coverage)[:, columns]
        return bounds

    def noise_variance(self) -> np.ndarray:
        """Return the noise variance c alpha of an observation of weight 1, for each target.

        Returns
        -------
        ndarray of shape (q,)
            The noise variances.
        """
        path = self._factorised_path()
        noise, n = np.empty(len(self.alphas)), max(1, self._n - self.intercept)
        for column, alpha in enumerate(self.alphas):
            noise[column] = max(float(path.objective(alpha)[column]), 0.0) / n
        return noise

    def _factorised_path(self, what: str = "standard deviations") -> NystroemPath:
        """Return the factorisation of the system, from which `what` is computed."""
        if self._path is None:
            raise ValueError(
                f"{what} need a factorisation, which solver='krill' does not compute; use "
                f"solver='nystroem'"
            )
        return self._path

    def _solve_iteratively(self) -> tuple[np.ndarray, np.ndarray]:
        """Solve by sketched conjugate gradients (`Krill`).

        With an intercept, the system is also solved for the constant target 1.  The two solutions
        are then combined so that the weighted residuals sum to 0.
        """
        n, q = self.Y.shape
        rhs = np.c_[self.Y, np.ones(n)] if self.intercept else self.Y
        w = np.ones(n) if self.weights is None else self.weights

        def solve(alpha: float) -> tuple[np.ndarray, np.ndarray, Report]:
            solver = Krill(
                self.landmarks.rank,
                self.landmarks.method if self.points is None else self.points,
                random_state=self.landmarks.random_state,
                max_memory=self.max_memory,
            )
            self.points, W, report = solver.regress(
                self.kernel, self.X, rhs, alpha, self.weights, log=self.log
            )
            if not self.intercept:
                return W, np.zeros(q), report
            residuals = rhs - TiledGram(self.kernel, self.X, self.points) @ W
            b = w @ residuals[:, :-1] / (w @ residuals[:, -1])
            return W[:, :-1] - W[:, -1:] * b, b, report

        A, b, self.report = solve_per_target(self.alphas, solve)
        # The solution minimises J only over f in the span of the landmarks.
        if self.report.status is Status.CONVERGED:
            self.report = replace(self.report, status=Status.APPROXIMATE)
        self._discard_data(len(self.Y))
        return A, b

    def _discard_data(self, n: int) -> None:
        """Discard the data, so that the fitted model stays small."""
        self._n, self.among = n, None
        self.X, self.weights = None, None
        self.Y = self.Y[:0]
