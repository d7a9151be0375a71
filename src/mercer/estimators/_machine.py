"""What the two kernel machines share: everything but the targets.

min over f in the RKHS and b:  sum_i w_i loss(y_i, f(x_i) + b) + alpha g(|f|)
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from sklearn.utils._param_validation import HasMethods, StrOptions

from ..expansion import Expansion
from ..solvers import Given, Loss, Machine, Penalty, RegularisedRisk, Status, whiten
from ._base import KernelLike, Landmarked, NamedKernel
from ._parameters import COUNT, POSITIVE, estimator, parameter
from ._sample import Sample

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

    def _learn(self, sample: Sample, Y: np.ndarray, loss: Loss, *, ordered: bool = False) -> None:
        """Find f and the intercept for the targets Y of the points that take part."""
        sample = sample.doubled()
        w, (n, q) = sample.counts, Y.shape
        _check_loss(loss, Y, w)
        penalty = Penalty.of(self.penalty, float(self.alpha))
        kernel, points = sample.resolve(self._make_kernel(self.gamma)), sample.points
        phi = whiten(
            sample.evaluated(kernel, self.max_memory),
            points,
            self.solver,
            self._chosen,
            lambda _, m: _bytes(n, m, q),
            exact="exact",
            most=_ORDERED if ordered else _EXACT,
            what=f"the fit of {q} functions of {n} points",
            max_memory=self.max_memory,
        )
        self._say(f"{loss} of {n} points, {phi.message}")
        risk = RegularisedRisk(phi.F, Y, loss, w, intercept=self.fit_intercept, ordered=ordered)
        found = Machine(self.tol, self.max_iter).minimize(risk, penalty, self._teller)
        A = found.dual  # the coefficients of the theorem: 0 for every point whose loss is flat at f
        if phi.approximate or A is None:
            points, A = phi.points, phi.coefficients(found.weights)
        status = found.report.status
        if phi.approximate and status is Status.CONVERGED:
            status = Status.APPROXIMATE
        message = "; ".join(filter(None, [phi.message, found.report.message]))
        self.kernel_, self.loss_ = kernel, loss
        self._set_expansion(Expansion(kernel, points, A), found.intercept, flat=False)
        self.n_iter_ = found.report.n_iter
        self.report_ = dataclasses.replace(found.report, status=status, message=message)
        self._say(f"objective {self.report_.certificate['objective']:.8g}: {status.value}")


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
