"""Learned support vectors: the m points at which a short expansion f is best centred.

    min over Z of J(Z),     J(Z) = min over B of sum_i w_i loss(y_i, f(x_i)) + alpha |f|^2

by variable projection (Golub & Pereyra 1973): L-BFGS moves only the vectors, and the weights are
always the best for where they are.  At the best weights dJ/dB = 0, so that the gradient of J(Z) is
the partial one; also in the parameters of the kernel, which may be learned with the vectors.
Moving Z and B together needs many times the steps, because the best weights for one Z are bad ones
for the next.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from ..._errors import warn_caller
from ..._runtime import Step, Stopwatch, entry_point, one_blas_thread
from ...kernels import Kernel
from .._report import Report, Status
from ._short_expansion import Fit, OverflowingKernelError, ShortExpansionRisk

__all__ = ["LearnedVectors", "Support"]

_LBFGS_PAIRS = 20  # pairs of steps and gradients that L-BFGS remembers
_SPAN = 10  # iterations over which a decrease is measured: single ones are often small
_INNER_TOL = 1e-3  # while vectors move, weights are exact to this part of tol


class Support(NamedTuple):
    """What a search found: the fit, J after each iteration, and the report."""

    fit: Fit
    curve: np.ndarray
    report: Report


@entry_point
@dataclass(frozen=True)
class LearnedVectors:
    """Variable projection: L-BFGS over the vectors, the best weights for each.

    Parameters
    ----------
    max_iter : int
        Iterations of L-BFGS, of a little more than one evaluation each; 0 leaves the vectors where
        they are.
    tol : float
        Stop when ten iterations lowered J by less than this part of it.
    learn_kernel : bool
        Also learn the kernel's free parameters, within their bounds.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF
    >>> from mercer.solvers import LearnedVectors, ShortExpansionRisk, Squared
    >>> X = np.linspace(-3, 3, 60)[:, None]
    >>> Y, w = RBF()(X, [[1.0]]), np.full(60, 1 / 60)
    >>> risk = ShortExpansionRisk(RBF(), X, Y, Squared(), w, 1e-8)
    >>> found = LearnedVectors().minimize(risk, np.array([[0.0]]))
    >>> found.fit.vectors.round(2)
    array([[1.]])
    """

    max_iter: int = 1000
    tol: float = 1e-3
    learn_kernel: bool = False

    def minimize(
        self, risk: ShortExpansionRisk, Z: np.ndarray, say: Callable[[str], None] | None = None
    ) -> Support:
        """Return the best vectors found from the start Z on, never worse than Z itself."""
        with one_blas_thread:  # tiles are shared out to threads, and the bits do not depend on them
            return self._minimize(risk, Z, say or (lambda text: None))

    def _minimize(
        self, risk: ShortExpansionRisk, Z: np.ndarray, say: Callable[[str], None]
    ) -> Support:
        watch = Stopwatch()
        best = risk.best(Z)
        search = _Search(risk, best, self.tol, self.learn_kernel, say)
        message = ""
        # targets that an intercept alone explains leave nothing but rounding to be minimised
        nothing = np.finfo(float).eps ** 2 * float(risk.weights @ np.square(risk.Y).sum(axis=1))
        if self.max_iter and best.value > nothing:
            message = search.run(self.max_iter)
            exact = search.risk_of(search.best.kernel).best(search.best.vectors, search.best)
            best = min(search.best, exact, key=attrgetter("value"))
        curve = np.minimum.accumulate([*search.curve[:-1], min(search.curve[-1], best.value)])
        report = Report(
            solver=repr(self),
            status=Status.NOT_CONVERGED if message else Status.CONVERGED,
            n_iter=len(curve) - 1,
            residual=search.decrease(),
            seconds=watch.seconds,
            message=message or "the residual is the relative decrease of the last ten iterations",
            certificate={"objective": best.value, "at the start": curve[0]},
        )
        return Support(best, curve, report)


@dataclass
class _Search:
    """One run of L-BFGS: the objective it evaluates, the best fit so far, and its messages."""

    risk: ShortExpansionRisk
    best: Fit
    tol: float
    learn_kernel: bool
    say: Callable[[str], None]
    curve: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.curve.append(self.best.value)
        self._last, self._first = self.best, self.best.value

    def run(self, max_iter: int) -> str:
        """Move the vectors; return a warning if J still fell at the end, else nothing."""
        Z = self.best.vectors
        speed = self.risk.speed(Z)
        # a column that k does not see stays where it is, whatever its unit
        self._unit = 1.0 / np.where(speed > 1e-8 * speed.max(), speed, 1.0)
        self.say(f"{len(Z)} vectors at the start: objective {self._first:.6g}")
        lowest = [(_lowest(self.risk.kernel, Z), None)] * Z.size
        limits = self.risk.kernel.bounds.tolist() if self.learn_kernel else []
        left = max_iter
        while left and not self.done():
            before = len(self.curve)
            minimize(
                self._evaluate,
                self._pack(self.best.vectors / self._unit, self.best.kernel.theta),
                jac=True,
                method="L-BFGS-B",
                bounds=[*lowest, *limits],
                callback=self._after,
                options={"maxiter": left, "maxcor": _LBFGS_PAIRS, "ftol": 0.0, "gtol": 0.0},
            )
            taken = len(self.curve) - before
            left -= taken
            if left and taken < _SPAN:  # rounding stopped its line search, with a new memory too
                return ""
        if self.decrease() <= self.tol:
            return ""
        message = (
            f"the objective still fell by {self.decrease():.1e} of itself in the last "
            f"{min(_SPAN, max_iter)} of {max_iter} iterations, tol = {self.tol:g} was asked "
            f"for; it fell from {self._first:.6g} to {self.best.value:.6g}. The vectors found are "
            f"usable; for better ones raise max_iter"
        )
        warn_caller(message, ConvergenceWarning)
        return message

    def done(self) -> bool:
        """Tell whether the last ten iterations brought too little to go on."""
        return len(self.curve) > _SPAN and self.decrease() <= self.tol

    def decrease(self) -> float:
        """Return by how much of itself J fell during the last ten iterations."""
        before = self.curve[max(0, len(self.curve) - 1 - _SPAN)]
        return (before - self.curve[-1]) / before if before > 0 else 0.0

    def _evaluate(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        size, kernel = self.best.vectors.size, self.risk.kernel
        Z = x[:size].reshape(self.best.vectors.shape) * self._unit
        risk = self.risk_of(kernel.with_theta(x[size:]) if self.learn_kernel else kernel)
        try:
            fit = risk.best(Z, self._last, _INNER_TOL * self.tol)
        except OverflowingKernelError:  # a step too far: the line search tries a shorter one
            return np.inf, np.zeros_like(x)
        gradient = risk.pull(Z, fit.weights, fit.slopes) * self._unit
        in_theta = risk.pull_theta(Z, fit.weights, fit.slopes) if self.learn_kernel else np.zeros(0)
        self._last = fit
        self.best = min(self.best, fit, key=attrgetter("value"))
        # in units of the start, so that the first step, of length 1, suits any targets
        return fit.value / self._first, self._pack(gradient, in_theta) / self._first

    def risk_of(self, kernel: Kernel) -> ShortExpansionRisk:
        """Return the risk with this kernel; that at hand, whose points are prepared, if it fits."""
        same = kernel is self.risk.kernel
        return self.risk if same else dataclasses.replace(self.risk, kernel=kernel)

    def _pack(self, Z: np.ndarray, theta: np.ndarray) -> np.ndarray:
        """Return what L-BFGS sees: positions and, if they are learned, the kernel's parameters."""
        return np.concatenate([Z.ravel(), theta]) if self.learn_kernel else Z.ravel()

    def _after(self, intermediate_result: Any) -> None:
        self.curve.append(float(intermediate_result.fun) * self._first)
        taken = len(self.curve) - 1
        if taken % _SPAN == 0:
            self.say(Step(f"iteration {taken}: objective {self.curve[-1]:.6g}"))
        if self.done():
            raise StopIteration


def _lowest(kernel: Kernel, Z: np.ndarray) -> float | None:
    """Return 0 for a kernel of non-negative vectors alone, such as chi2; None for others."""
    try:
        kernel(-1.0 - np.abs(Z[:1]))
    except ValueError:
        return 0.0
    return None
