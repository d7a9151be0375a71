"""What the two kernel machines share: everything but the targets.

min over f in the RKHS and b:  sum_i w_i loss(y_i, f(x_i) + b) + alpha g(|f|)
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from sklearn.utils._param_validation import HasMethods, StrOptions

from .._points import doubled, take
from .._runtime import budget_in_bytes, check_budget
from ..expansion import Expansion
from ..kernels import Kernel, on_indices
from ..solvers import Given, Loss, Machine, Penalty, Status, Whitened
from ._base import KernelLike, Landmarked, NamedKernel
from ._labels import instead_of_exact
from ._parameters import COUNT, POSITIVE, estimator, parameter

__all__ = ["OWN_LOSS", "KernelMachine"]

_EXACT, _ORDERED = 3000, 1000  # points up to which "auto" is exact: about a minute on one core
OWN_LOSS = HasMethods(["value", "gradient", "curvature"])


@estimator(kw_only=True)
class KernelMachine(Landmarked, NamedKernel):
    """An estimator that minimises any loss with any penalty; see KernelMachineRegressor.

    Parameters
    ----------
    alpha : float
        The weight of the penalty, positive.
    penalty : {"ridge", "norm"}, pair (g, dg) or object
        g(t) = t^2 or t, or one's own with its derivative: two functions of a number, or an object
        with methods `value` and `derivative`.  For several functions |f|^2 is the sum over them.
        If g is not convex what is found is a local minimum along the norm.
    fit_intercept : bool
        Add a constant b to each f, which is not penalised.
    solver : {"auto", "exact", "nystroem"}
        Over the whole RKHS, or over the span of landmarks.  "auto" is exact up to 3000 points, 1000
        for several quantiles, if the memory allows; beyond, it takes landmarks, with a warning.
    tol : float
        Stop when the objective is this close to its minimum, relatively; for losses of bounded
        slope, relative to no less than 1e-4 times the losses of the best constant.
    max_iter : int
        Steps of Newton's method or of the interior point.
    """

    loss: Any = parameter(OWN_LOSS, default="squared")
    alpha: float = parameter(POSITIVE, default=1.0)
    penalty: Any = parameter(
        StrOptions({"ridge", "norm"}), tuple, HasMethods(["value", "derivative"]), default="ridge"
    )
    kernel: KernelLike = "rbf"
    gamma: float | str | None = "scale"
    fit_intercept: bool = parameter("boolean", default=True)
    solver: str = parameter(StrOptions({"auto", "exact", "nystroem"}), default="auto")
    tol: float = parameter(POSITIVE, default=1e-9)
    max_iter: int = parameter(COUNT, default=100)

    def _learn(
        self, X: Any, Y: np.ndarray, w: np.ndarray, loss: Loss, *, ordered: bool = False
    ) -> None:
        """Find f and the intercept from the points whose weight w is positive."""
        some = np.flatnonzero(w)
        Y, w = np.asarray(Y[some], dtype=float), w[some]
        _check_loss(loss, Y, w)
        penalty = Penalty.of(self.penalty, float(self.alpha))
        uneven = None if self._precomputed or np.all(w == w[0]) else w
        X = X if self._precomputed else doubled(X)
        counted = X if self._precomputed else take(X, some)
        kernel: Kernel = self._make_kernel(self.gamma).resolve(counted, uneven)
        phi = self._whiten(kernel, X, some, Y.shape[1], _ORDERED if ordered else _EXACT)
        self._say(f"{loss} of {len(Y)} points, {phi.message}")
        found = Machine(self.tol, self.max_iter).minimize(
            phi.F,
            Y,
            loss,
            w,
            penalty,
            intercept=self.fit_intercept,
            ordered=ordered,
            say=self._say if self.verbose else None,
        )
        if phi.approximate or found.dual is None:
            points, A = phi.points, phi.coefficients(found.weights)
        else:  # the coefficients of the theorem: 0 for every point whose loss is flat at f
            points, A = some if self._precomputed else counted, found.dual
        status = found.report.status
        if phi.approximate and status is Status.CONVERGED:
            status = Status.APPROXIMATE
        message = "; ".join(filter(None, [phi.message, found.report.message]))
        self.kernel_, self.loss_ = kernel, loss
        self.X_fit_, self.dual_coef_ = points, A
        self.expansion_ = Expansion(kernel, points, A)
        self.intercept_: Any = found.intercept
        self.n_iter_ = found.report.n_iter
        self.report_ = dataclasses.replace(found.report, status=status, message=message)
        self._say(f"objective {self.report_.certificate['objective']:.8g}: {status.value}")

    def _whiten(self, kernel: Kernel, X: Any, some: np.ndarray, q: int, most: int) -> Whitened:
        """Return whitened coordinates of some points from all of them, or from landmarks.

        For "auto" from all if there are at most so many, and for q functions that fits the memory.
        Points of the result are, for values that the user computed, indices into X.
        """
        n, memory = len(some), self.max_memory
        fits = n <= most and _bytes(n, n, q) <= budget_in_bytes(memory)
        if self.solver == "exact" or (self.solver == "auto" and fits):
            text = f"the exact fit of {q} functions of {n} points (solver='nystroem' needs less)"
            check_budget(_bytes(n, n, q), memory, text)
            kernel, X = on_indices(kernel, X)
            return Whitened.exact(kernel, take(X, some), max_memory=memory)
        m = self._chosen.count(n)
        text = f"the fit of {q} functions of {n} points on {m} landmarks"
        check_budget(_bytes(n, m, q), memory, text)
        kernel, X = on_indices(kernel, X)
        phi = Whitened.nystroem(kernel, take(X, some), self._chosen, max_memory=memory)
        return instead_of_exact(phi, n, "exact") if self.solver == "auto" else phi


def _bytes(n: int, m: int, q: int) -> int:
    """Return what a fit of q functions takes: F and two like it, systems, values at the points."""
    return 8 * (3 * n * m + (2 * q + 2) * m * m + 50 * n * q)


def _check_loss(loss: Loss, Y: np.ndarray, w: np.ndarray) -> None:
    """Refuse a loss of one's own that is wrong, and targets too large to compute with."""
    if isinstance(loss, Given):
        loss.check(Y)
    with np.errstate(over="ignore", invalid="ignore"):
        total = float(w @ loss(np.zeros(Y.shape), Y).values)
        if not np.isfinite(total * total):
            raise ValueError(
                f"the losses at f = 0 add up to {total:.3g}, too large to compute with; the usual "
                f"cause is targets as large as {np.abs(Y).max():.3g}, or weights. Scale them"
            )
