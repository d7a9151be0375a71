"""Cutting planes for the hinge loss, with basis vectors that are pre-images of the cuts.

    J(f) = alpha |f|^2 + R(f),      R(f) = min over c of sum_i w_i max(0, 1 - y_i (f(x_i) + c))

R is convex, so at any function f_t it has the lower bound (the cut)

    R(f) >= o_t + <g_t, f>,         g_t = -sum_i s_ti y_i phi(x_i),      o_t = sum_i s_ti,

where s_ti = w_i if point i violates the margin at f_t, and otherwise 0.  At the optimal c,
sum_i s_ti y_i = 0 for a suitable fraction of w_i at a point exactly on the margin.  The model of J
is the maximum of all cuts (the 1-slack formulation), and its dual is a quadratic program over the
simplex, whose value is a lower bound of J:

    max over l >= 0, sum_t l_t = 1 of   sum_t l_t o_t - |sum_t l_t P g_t|^2 / (4 alpha).

P projects on the span of the basis vectors phi(z_j).  For functions in this span, <P g, f> =
<g, f>, so the projected cuts are exact.  All computations use coordinates of an orthonormal basis
of the span, K_zz = L L^T.

The basis grows by pre-images: the next z maximises r(z)^2 / k(z, z), which is the decrease of |r|^2
if b phi(z) is subtracted from r with the best b.  Here r = (1 - P) sum_t l_t g_t is the component
of the aggregated cut that the basis does not represent.  Several functions (one versus rest) have
separate cuts, but share the basis, so that the sum of their r(z)^2 is maximised.

As in OCAS (Franc & Sonnenburg 2009), the best function so far is improved by an exact line search
towards the minimum of the model, and the next cut is made near it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from ..._core import (
    NotPositiveDefiniteError,
    ProgressCallback,
    ProgressStep,
    RandomState,
    Stopwatch,
    as_generator,
    entry_point,
    one_blas_thread,
    ordered_sum,
    slices,
    take,
    warn_caller,
)
from ..._core.linalg import lapack, solve_triangular
from .._box_qp import BoxQP, PrimalDualPoint, cholesky_or_none
from .._report import Report, Status
from ._basis_learning import BasisLearningResult, coordinate_lower_bound
from ._losses import Hinge
from ._reduced_expansion import (
    Columns,
    ExpansionFit,
    OverflowingKernelError,
    ReducedExpansionRisk,
)


@dataclass(frozen=True)
class _CuttingPlaneTuning:
    """Numerical constants of the cutting-plane method."""

    # Total number of cuts of a function while the basis grows, and the smallest and largest number
    # of cuts between two new vectors.
    n_growing_cuts: int = 100
    min_cuts_per_vector: int = 2
    max_cuts_per_vector: int = 5
    # At most this many cuts are stored for a function of m vectors, or m + 20 if that is more.
    n_stored_cuts: int = 100
    # A cut whose multiplier was 0 in this many consecutive iterations is removed.
    max_idle: int = 15
    # The next cut is made at best + cut_position * (minimum of the model - best), as in OCAS.
    cut_position: float = 0.1
    # Maximum number of points by which an aggregated cut is approximated, and number of training
    # points of which the best one is the initial pre-image.
    n_target_points: int = 2000
    n_candidates: int = 300
    # Maximum number of L-BFGS steps of a pre-image.
    n_preimage_steps: int = 30
    # A vector is not added if its relative squared distance from the span is below this.
    min_distance: float = 1e-10
    # The report contains the norms of aggregated cuts only if they have at most this many points.
    max_norm_points: int = 10_000
    # Maximum number of interior-point steps of the quadratic program, and its accuracy relative to
    # `tol`.
    max_qp_steps: int = 60
    qp_tol: float = 0.1


_TUNING = _CuttingPlaneTuning()


def max_stored_cuts(m: int) -> int:
    """Return the maximum number of cuts that are stored for a function with m basis vectors.

    At the minimum of the model, at most m + 1 cuts have positive multipliers.
    """
    return max(_TUNING.n_stored_cuts, m + 20)


@entry_point
@dataclass(frozen=True)
class CuttingPlanes:
    """Train a kernel SVM with a limited number of basis vectors by cutting planes.

    It minimises the hinge loss plus alpha |f|^2 over functions f = sum_j b_j k(z_j, .) + c of at
    most `n_vectors` vectors.  The vectors are pre-images of the cutting planes, and are not moved
    later.  For the final vectors, the weights are optimal up to a duality gap, which is reported.
    Several functions (one versus rest) share the vectors.

    Parameters
    ----------
    n_vectors : int, default=100
        Maximum number of vectors.  Vectors that are given to `minimize` count.
    max_iter : int, default=1000
        Maximum number of cutting planes for each function.
    tol : float, default=1e-3
        Stop when the duality gap is at most `tol` times the objective.
    random_state : int, RandomState or None, default=None
        Seed for the choice of the training points from which the pre-images start.

    See Also
    --------
    LearnedVectors : Optimises all vectors together, for smooth losses.

    References
    ----------
    Joachims and Yu, "Sparse kernel SVMs via cutting-plane training", Machine Learning, 2009.

    Franc and Sonnenburg, "Optimized cutting plane algorithm for large-scale risk minimization",
    Journal of Machine Learning Research, 2009.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF
    >>> from mercer.solvers import CuttingPlanes, Hinge, ReducedExpansionRisk
    >>> X = np.linspace(-3, 3, 60)[:, None]
    >>> Y, w = np.where(np.abs(X) < 1, 1.0, -1.0), np.full(60, 1 / 60)
    >>> risk = ReducedExpansionRisk(RBF(), X, Y, Hinge(), w, 1e-3)
    >>> found = CuttingPlanes(n_vectors=2).minimize(risk, np.empty((0, 1)))
    >>> bool(found.report.certificate["gap"] <= 1e-3 * found.fit.value)
    True
    """

    n_vectors: int = 100
    max_iter: int = 1000
    tol: float = 1e-3
    random_state: RandomState = None

    @one_blas_thread  # tiles run in parallel threads, each with one BLAS thread
    def minimize(
        self, risk: ReducedExpansionRisk, Z: np.ndarray, log: ProgressCallback | None = None
    ) -> BasisLearningResult:
        """Learn vectors and weights.

        Parameters
        ----------
        risk : ReducedExpansionRisk
            The problem, with the loss `Hinge`.
        Z : ndarray of shape (m, d)
            Initial vectors, which are not changed; m may be 0.
        log : callable or None, default=None
            Called with progress messages.

        Returns
        -------
        BasisLearningResult
            Named tuple of the fit, the objective after each iteration, and the report.
        """
        if not isinstance(risk.loss, Hinge):
            raise TypeError(
                f"CuttingPlanes minimises the loss Hinge(), but the risk has the loss "
                f"{risk.loss!r}; use LearnedVectors for smooth losses"
            )
        watch, log = Stopwatch(), log or (lambda text: None)
        search = _CutSearch(risk, Z, as_generator(self.random_state))
        curve, n_vectors = [search.value], self.n_vectors
        if len(Z) >= n_vectors:
            n_vectors = search.size  # without vectors that depend linearly on others
        limits = _TUNING.min_cuts_per_vector, _TUNING.max_cuts_per_vector
        n_cuts = int(np.clip(_TUNING.n_growing_cuts // n_vectors, *limits))
        for iteration in range(1, self.max_iter + 1):
            is_due = (iteration - 1) % n_cuts == 0 or search.relative_gap <= self.tol
            if search.size < n_vectors and is_due and not search.grow():
                n_vectors = search.size  # more vectors would not change the span
            is_growing = search.size < n_vectors
            search.add_cuts(self.tol, is_growing)
            curve.append(search.value)
            if iteration % 10 == 0:
                log(
                    ProgressStep(
                        f"iteration {iteration}: {search.size} vectors, objective "
                        f"{search.value:.6g}, gap {search.relative_gap:.1e}"
                    )
                )
            if not is_growing and search.relative_gap <= self.tol:
                break
        message = ""
        if search.size < n_vectors or not search.relative_gap <= self.tol:
            message = (
                f"after {self.max_iter} cutting planes with {search.size} of {n_vectors} vectors, "
                f"the duality gap is {search.relative_gap:.1e} of the objective "
                f"{search.value:.6g}, more than tol = {self.tol:g}; the usual cause is a small "
                f"alpha. The model is usable; for a better one raise max_iter, alpha or tol"
            )
            warn_caller(message, ConvergenceWarning)
        report = Report(
            solver=repr(self),
            status=Status.NOT_CONVERGED if message else Status.CONVERGED,
            n_iter=len(curve) - 1,
            residual=search.relative_gap,
            seconds=watch.seconds,
            message=message or "the residual is the duality gap relative to the objective",
            certificate=search.certificate(),
        )
        return BasisLearningResult(search.fit(), np.array(curve), report)


@dataclass
class _VectorBasis:
    """Basis vectors, and the Cholesky factor L of their kernel matrix."""

    risk: ReducedExpansionRisk
    Z: np.ndarray
    L: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))
    columns: Columns | None = None

    def values(self, U: np.ndarray) -> np.ndarray:
        """Return the values at the training points of functions with coordinates U."""
        if self.columns is None:
            return np.zeros((len(self.risk.Y), U.shape[1]))
        return self.columns.times(self.weights(U))

    def coordinates(self, G: np.ndarray) -> np.ndarray:
        """Return the coordinates of the projections of sum_i G_ic phi(x_i)."""
        if self.columns is None:
            return np.empty((0, G.shape[1]))
        return solve_triangular(self.L, self.columns.adjoint(G)[: len(self.Z)], lower=True)

    def weights(self, U: np.ndarray) -> np.ndarray:
        """Return the expansion coefficients of functions with coordinates U."""
        return solve_triangular(self.L, U, lower=True, trans=1) if len(U) else U

    def start(self, Z: np.ndarray) -> None:
        """Append the initial vectors, except those in the span of others."""
        for z in Z:
            self.add(z, evaluate=False)
        if len(self.Z):
            self.columns = Columns(self.risk, self.Z)

    def add(self, z: np.ndarray, evaluate: bool = True) -> tuple[Columns, np.ndarray, float] | None:
        """Append a vector.

        Returns its column k(X, z), its coordinates and its distance from the former span, or None
        if it is numerically in this span or `evaluate` is False.
        """
        kernel, m = self.risk.kernel, len(self.Z)
        k = kernel(self.Z, z[None])[:, 0] if m else np.empty(0)
        row = solve_triangular(self.L, k, lower=True) if m else k
        norm = float(kernel.diag(z[None])[0])
        square = norm - row @ row
        if not np.isfinite(square):
            raise OverflowingKernelError(
                f"k(x, z) is not finite for some vectors x and z. The usual cause is that the "
                f"kernel {kernel} overflows on these points. Scale the features"
            )
        if square < -1e-8 * (abs(norm) + row @ row):
            raise NotPositiveDefiniteError(
                f"{kernel} is not positive semidefinite: the squared distance of the vector "
                f"{m + 1} from the span of the others is {square:.3g}; choose a Mercer kernel"
            )
        if not square > _TUNING.min_distance * norm:
            return None
        L = np.zeros((m + 1, m + 1))
        L[:m, :m], L[m, :m], L[m, m] = self.L, row, np.sqrt(square)
        self.Z, self.L = np.vstack([self.Z, z[None]]), L
        if not evaluate:
            return None
        column = Columns(self.risk, z[None])
        parts = () if self.columns is None else (self.columns, column)
        self.columns = Columns(self.risk, self.Z, parts)
        return column, row, float(L[m, m])


class _CutSearch:
    """State of the cutting-plane method: the basis, and a model of each function's objective."""

    def __init__(self, risk: ReducedExpansionRisk, Z: np.ndarray, rng: Any):
        self.risk, self.rng = risk, rng
        n, q = risk.Y.shape
        self.basis = _VectorBasis(risk, np.empty((0, Z.shape[1])))
        self.basis.start(Z)
        self.models = [_CutModel(risk, y, self.size) for y in risk.Y.T]
        candidates = rng.choice(n, min(n, _TUNING.n_candidates), replace=False)
        self.candidates = take(risk.X, np.sort(candidates))
        if sp.issparse(self.candidates):
            self.candidates = self.candidates.toarray()
        speed = risk.rkhs_speed(self.candidates)
        self.column_scale = 1.0 / np.where(speed > 1e-8 * speed.max(), speed, 1.0)
        self.lower_bound = coordinate_lower_bound(risk.kernel, self.candidates)
        self._append_cuts(list(range(q)))

    @property
    def size(self) -> int:
        return len(self.basis.Z)

    @property
    def value(self) -> float:
        """The objective of the best functions so far."""
        return float(sum(model.value for model in self.models))

    @property
    def lower(self) -> float:
        """A lower bound of the objective in the span of the basis."""
        return float(sum(model.lower for model in self.models))

    @property
    def relative_gap(self) -> float:
        return (self.value - self.lower) / self.value if self.value > 0 else 0.0

    def add_cuts(self, tol: float, is_growing: bool) -> None:
        """Minimise the models, improve the functions, and add a cut to each model."""
        rows = []
        U = np.zeros((self.size, len(self.models)))
        for c, model in enumerate(self.models):
            if is_growing or not model.gap <= tol * model.value:
                U[:, c] = model.minimize(_TUNING.qp_tol * tol)
                rows.append(c)
        F = self.basis.values(U[:, rows])
        for c, f in zip(rows, F.T, strict=True):
            self.models[c].improve(U[:, c], f)
        self._append_cuts(rows)

    def _append_cuts(self, rows: list[int]) -> None:
        if not rows:
            return
        fractions = [self.models[c].cut_fractions() for c in rows]
        weights = [self.models[c].signed_weights for c in rows]
        P = self.basis.coordinates(np.stack(fractions, axis=1) * np.stack(weights, axis=1))
        for c, fraction, p in zip(rows, fractions, P.T, strict=True):
            self.models[c].add(fraction, p)

    def grow(self) -> bool:
        """Add a pre-image of an aggregated cut to the basis; return False if none is useful."""
        G = np.stack([model.aggregated_cut() for model in self.models], axis=1)
        z = self._preimage(G)
        added = None if z is None else self.basis.add(z)
        if added is None:
            return False
        column, row, distance = added
        for model in self.models:
            model.extend(column.adjoint(model.coefficients())[0], row, distance)
        return True

    def _preimage(self, G: np.ndarray) -> np.ndarray | None:
        """Return the z with the largest sum_c r_c(z)^2 / k(z, z), or None if this is 0.

        The functions sum_i G_ic phi(x_i) are the aggregated cuts, and r_c their residuals.
        """
        kernel, B = self.risk.kernel, self.basis.weights(self.basis.coordinates(G))
        rows, scale = np.flatnonzero(G.any(axis=1)), 1.0
        if len(rows) > _TUNING.n_target_points:
            scale = len(rows) / _TUNING.n_target_points
            rows = np.sort(self.rng.choice(rows, _TUNING.n_target_points, replace=False))
        X = take(self.risk.X, rows)
        X = X.toarray() if sp.issparse(X) else X
        X, A = np.vstack([X, self.basis.Z]), np.vstack([scale * G[rows], -B])
        norms = np.maximum(kernel.diag(self.candidates), np.finfo(float).tiny)
        K = kernel(self.candidates, X)
        values = np.square(K @ A).sum(axis=1) / norms
        best = int(np.argmax(values))
        rounding = np.finfo(float).eps * np.square(np.abs(K) @ np.abs(A)).sum(axis=1) / norms
        if not values[best] > rounding[best]:
            return None

        def loss(x: np.ndarray) -> tuple[float, np.ndarray]:
            z = (x * self.column_scale)[None]
            r, norm = kernel(z, X) @ A, float(kernel.diag(z)[0])
            value = float(np.square(r).sum()) / norm
            gradient = 2.0 / norm * kernel.input_gradient(z, X, r @ A.T)
            gradient -= value / norm * kernel._diag_gradient(z, np.ones(1))
            if not np.isfinite(gradient).all():
                return 0.0, np.zeros_like(x)
            return -value / values[best], -gradient[0] / values[best] * self.column_scale

        start = self.candidates[best] / self.column_scale
        found = minimize(
            loss,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=[(self.lower_bound, None)] * len(start),
            options={"maxiter": _TUNING.n_preimage_steps},
        )
        return np.asarray(found.x * self.column_scale)

    def fit(self) -> ExpansionFit:
        """Return the best functions so far."""
        U = np.stack([model.u for model in self.models], axis=1)
        c = np.array([model.intercept for model in self.models])
        slopes = np.stack(
            [model.cut_fractions(0.0) * model.signed_weights for model in self.models], axis=1
        )
        Z, weights = self.basis.Z, self.basis.weights(U)
        if not len(Z):  # an expansion has at least one point
            Z, weights = self.candidates[:1], np.zeros((1, len(self.models)))
        return ExpansionFit(self.value, self.risk.kernel, Z, weights, c, slopes)

    def certificate(self) -> dict[str, float]:
        """Return the objective, its lower bounds, and the numbers of cuts and vectors."""
        out = {
            "objective": self.value,
            "lower bound": self.lower,
            "gap": self.value - self.lower,
            "cuts": sum(model.n_added for model in self.models),
        }
        G = np.stack([model.aggregated_cut() for model in self.models], axis=1)
        rows = np.flatnonzero(G.any(axis=1))
        if len(rows) <= _TUNING.max_norm_points:
            X = take(self.risk.X, rows)

            def partial_norm(block: slice) -> np.ndarray:
                products = self.risk.kernel(take(X, block), X) @ G[rows]
                return np.asarray(np.einsum("ic,ic->c", G[rows[block]], products))

            squares = ordered_sum(partial_norm, slices(len(rows), 500), 8)
            projected = np.square(self.basis.coordinates(G)).sum(axis=0)
            residual = np.maximum(squares - projected, 0.0)
            out["residual of the cuts"] = float(
                np.sqrt(residual.sum() / max(squares.sum(), np.finfo(float).tiny))
            )
            bounds = np.array([model.dual_value for model in self.models])
            bounds -= residual / (4.0 * self.risk.alpha)
            out["lower bound for all vectors"] = float(np.maximum(bounds, 0.0).sum())
        return out


class _CutModel:
    """The cutting planes of one function, and the best function so far."""

    def __init__(self, risk: ReducedExpansionRisk, y: np.ndarray, m: int) -> None:
        self.risk, self.y, self.u, self.f = risk, y, np.zeros(m), np.zeros(len(y))
        self.signed_weights = -y * risk.weights
        # The first cut is R >= 0.  Fractions are the s_ti / w_i of the stored cuts.
        self.fractions = np.zeros((1, len(y)), dtype=np.float32)
        self.offsets, self.P, self.idle = np.zeros(1), np.zeros((1, m)), np.zeros(1, dtype=int)
        self.multipliers, self.lower, self.dual_value, self.n_added = np.ones(1), 0.0, 0.0, 0
        self.f_model = self.f
        self.intercept, _ = self._violations(self.f)
        self.value = self._objective(self.u, self.f, self.intercept)

    @property
    def gap(self) -> float:
        return self.value - self.lower

    def cut_fractions(self, position: float = _TUNING.cut_position) -> np.ndarray:
        """Return s_i / w_i at best + position * (minimum of the model - best)."""
        f = self.f + position * (self.f_model - self.f)
        return self._violations(f)[1].astype(np.float32)

    def add(self, fractions: np.ndarray, p: np.ndarray) -> None:
        """Add a cut with the coordinates p of its projection."""
        self.fractions = np.vstack([self.fractions, fractions])
        self.P = np.vstack([self.P, p])
        self.offsets = np.append(self.offsets, self.risk.weights @ fractions)
        self.idle, self.n_added = np.append(self.idle, 0), self.n_added + 1
        self.multipliers = np.append(self.multipliers * (self.n_added > 1), self.n_added == 1)

    def coefficients(self) -> np.ndarray:
        """Return the coefficients of all cuts, g_t = sum_i coefficients[i, t] phi(x_i)."""
        return np.transpose(self.fractions * self.signed_weights)

    def aggregated_cut(self) -> np.ndarray:
        """Return the coefficients of the convex combination of cuts that minimises the model."""
        return np.asarray(self.multipliers @ self.fractions * self.signed_weights)

    def extend(self, products: np.ndarray, row: np.ndarray, distance: float) -> None:
        """Extend all coordinates by one, given the products <g_t, phi(z)> with the new vector."""
        self.P = np.column_stack([self.P, (products - self.P @ row) / distance])
        self.u = np.append(self.u, 0.0)
        self.lower = 0.0  # bounds for the former span are not valid for the larger one

    def minimize(self, accuracy: float) -> np.ndarray:
        """Return the coordinates of the minimum of the model; update the lower bound."""
        alpha = self.risk.alpha
        weights = _solve_simplex_qp(self.P / np.sqrt(2.0 * alpha), self.offsets, accuracy)
        p = weights @ self.P
        self.dual_value = float(weights @ self.offsets - p @ p / (4.0 * alpha))
        self.lower = max(self.lower, self.dual_value)
        self.idle = np.where(weights > 1e-6, 0, self.idle + 1)
        order = np.argsort(-weights, kind="stable")[: max_stored_cuts(len(self.u))]
        order = np.sort(order[self.idle[order] <= _TUNING.max_idle])
        self.multipliers = weights[order] / weights[order].sum()
        self.P, self.offsets, self.idle = self.P[order], self.offsets[order], self.idle[order]
        self.fractions = self.fractions[order]
        return -p / (2.0 * alpha)

    def improve(self, u: np.ndarray, f: np.ndarray) -> None:
        """Minimise the objective on the line from the best function to one with coordinates u."""
        self.f_model = f
        c, _ = self._violations(f)
        step, change = u - self.u, f + c - self.f - self.intercept
        length = self._line_search(step, change)
        trial = self.u + length * step, self.f + length * (f - self.f)
        c, _ = self._violations(trial[1])
        value = self._objective(*trial, c)
        if value < self.value:
            (self.u, self.f), self.intercept, self.value = trial, c, value

    def _objective(self, u: np.ndarray, f: np.ndarray, c: float) -> float:
        losses = np.maximum(1.0 - self.y * (f + c), 0.0)
        return float(self.risk.alpha * (u @ u) + self.risk.weights @ losses)

    def _line_search(self, step: np.ndarray, change: np.ndarray) -> float:
        """Return the step length that minimises the objective, which is piecewise quadratic."""
        alpha, w = self.risk.alpha, self.risk.weights
        margin = 1.0 - self.y * (self.f + self.intercept)
        rate = -self.y * change
        slope = 2.0 * alpha * float(self.u @ step) + float(w @ (rate * (margin > 0)))
        curvature = 2.0 * alpha * float(step @ step)
        with np.errstate(divide="ignore", invalid="ignore"):
            kinks = -margin / rate
        crossed = np.flatnonzero((kinks >= 0) & np.isfinite(kinks) & ((margin <= 0) == (rate > 0)))
        crossed = crossed[np.argsort(kinks[crossed])]
        kinks = np.append(kinks[crossed], np.inf)
        slopes = slope + np.append(0.0, np.cumsum(np.abs(w * rate)[crossed]))
        # On the interval that ends at kinks[k], the derivative is slopes[k] + curvature * length.
        if slopes[0] >= 0 or not curvature > 0:
            return 0.0
        k = int(np.argmax(slopes + curvature * kinks >= 0))
        lower = kinks[k - 1] if k else 0.0
        return float(max(-slopes[k] / curvature, lower))

    def _violations(self, f: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the optimal intercept c for f, and the fractions s_i / w_i.

        The loss is piecewise linear in c, with a kink at y_i - f_i for each point, where its slope
        increases by w_i.  The minimum is the kink at which the slope changes its sign.
        """
        if not self.risk.intercept:
            return 0.0, (self.y * f < 1.0).astype(float)
        w, kinks = self.risk.weights, self.y - f
        order = np.argsort(kinks)
        passed = np.cumsum(w[order])
        target = float(w[self.y > 0].sum())
        k = min(int(np.searchsorted(passed, target * (1.0 - 1e-12))), len(order) - 1)
        i = order[k]
        is_passed = np.zeros(len(w))
        is_passed[order[:k]] = 1.0
        is_passed[i] = min((target - passed[k] + w[i]) / w[i], 1.0)
        c = float(kinks[i])
        if is_passed[i] > 1.0 - 1e-9 and k + 1 < len(order):
            c = 0.5 * (c + float(kinks[order[k + 1]]))  # the middle of an interval of minima
        return c, np.where(self.y > 0, 1.0 - is_passed, is_passed)


class _SimplexQP(BoxQP):
    """The dual of the cutting-plane model: min 1/2 |A^T v|^2 - <offsets, v> over the simplex."""

    def __init__(self, A: np.ndarray, offsets: np.ndarray) -> None:
        n, m = A.shape
        self.A = np.column_stack([A, np.ones(n)])
        ridge, sums = np.ones(m + 1), np.zeros(m + 1)
        ridge[m], sums[m] = 0.0, 1.0
        super().__init__(np.zeros(n), np.full(n, np.inf), -offsets, ridge, sums=sums)

    def times(self, u: np.ndarray) -> np.ndarray:
        return np.asarray(self.A @ u)

    def pulled(self, v: np.ndarray) -> np.ndarray:
        return np.asarray(v @ self.A)

    def factor(self, h: np.ndarray) -> Callable[[np.ndarray], np.ndarray] | None:
        M = (self.A * h[:, None]).T @ self.A
        M.flat[:: len(M) + 1] += self.ridge
        L = cholesky_or_none(M)
        return None if L is None else partial(_solve_with_factor, L)

    def start(self) -> PrimalDualPoint:
        """Return the initial point: equal multipliers, and a dual feasible u."""
        a = np.full(len(self.A), 1.0 / len(self.A))
        u = self.pulled(a) - self.sums
        slopes = self.times(u) + self.linear
        u[-1] += np.ptp(slopes) - slopes.min() + 1e-6
        image, ones = self.times(u), np.ones_like(a)
        return PrimalDualPoint(u, a, ones, image + self.linear, 0.0 * a, image, self.pulled(a))


def _solve_with_factor(L: np.ndarray, right: np.ndarray) -> np.ndarray:
    return np.asarray(lapack.dpotrs(L, right, lower=1)[0])


def _solve_simplex_qp(A: np.ndarray, offsets: np.ndarray, accuracy: float) -> np.ndarray:
    """Return the v >= 0 of sum 1 that minimise 1/2 |A^T v|^2 - <offsets, v>.

    The relative error of the minimum is at most `accuracy`, except for rounding errors.
    """
    if A.shape[0] < A.shape[1]:
        A = np.transpose(np.linalg.qr(A.T, mode="r"))
    problem = _SimplexQP(A, offsets)
    point = problem.start()
    for _ in range(_TUNING.max_qp_steps):
        v = point.a / point.a.sum()
        value = 0.5 * float(np.square(v @ A).sum()) - float(offsets @ v)
        moved = problem.step(point)
        if moved is None or point.products <= accuracy * abs(value):
            break
        point = moved
    return np.asarray(point.a / point.a.sum())
