"""What f costs in the primal and in the dual, counted: which is smaller, and from how many points.

    numbers kept                      dual  n (s + m)            primal  M m
    multiply-adds of a prediction           n (s + m)                    e (1 + m)
    multiply-adds of a ridge                n^2 (s + n/3) / 2            (n e^2 + M^3/3) / 2

for n points, m functions and M features, of which e are not 0 at a point; s numbers of a point
enter a value of k.  A ridge is half of a symmetric matrix, K or Phi^T Phi, and its Cholesky factor.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .._points import length, sliceable, take
from .._runtime import entry_point
from ..kernels import Kernel, Prepared, finite_features

__all__ = ["Cost", "Sizes", "primal_or_dual"]


class Cost(NamedTuple):
    """What one thing costs in the dual and in the primal, and with how many points both are equal.

    With more points than `crossover` the primal is cheaper.
    """

    dual: float
    primal: float
    crossover: float

    @property
    def cheaper(self) -> str:
        """The word "primal" or "dual"."""
        return "primal" if self.primal < self.dual else "dual"


@dataclass(frozen=True)
class Sizes:
    """The sizes of a model, and what follows from them; as text, a table.

    Parameters
    ----------
    n_points, n_features, n_functions : int
        n, M and m.
    entries : float
        e, the features that are not 0 at a point, in the mean.
    numbers : float
        s, how many numbers of a point a value of k multiplies: d for vectors, e for counts.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import primal_or_dual
    >>> from mercer.kernels import Polynomial
    >>> type(primal_or_dual(Polynomial(2), np.zeros((100, 3)))).__name__
    'Sizes'
    """

    n_points: int
    n_features: int
    n_functions: int
    entries: float
    numbers: float

    @property
    def stored(self) -> Cost:
        """Numbers kept: points and coefficients, or weights."""
        each, weights = self.numbers + self.n_functions, self.n_features * self.n_functions
        return Cost(self.n_points * each, weights, weights / each)

    @property
    def prediction(self) -> Cost:
        """Multiply-adds for one point; a feature counts as one, given those before it."""
        each, values = self.numbers + self.n_functions, self.entries * (1.0 + self.n_functions)
        return Cost(self.n_points * each, values, values / each)

    @property
    def training(self) -> Cost:
        """Multiply-adds of a ridge: half of K or of Phi^T Phi, and a Cholesky factor."""
        n, M, e, s = float(self.n_points), float(self.n_features), self.entries, self.numbers
        # n^3/3 + s n^2 - e^2 n - M^3/3 changes its sign once, so that it has one positive root
        roots = np.roots([1.0 / 3.0, s, -(e**2), -(M**3) / 3.0])
        return Cost(
            n**2 * (s + n / 3.0) / 2.0,
            (n * e**2 + M**3 / 3.0) / 2.0,
            float(roots[np.argmax(roots.real)].real),
        )

    def __str__(self) -> str:
        rows = {
            "numbers kept": self.stored,
            "multiply-adds of a prediction": self.prediction,
            "multiply-adds of a ridge": self.training,
        }
        functions = "function" if self.n_functions == 1 else "functions"
        title = (
            f"{self.n_points} points, {self.n_features} features, {self.n_functions} {functions}"
        )
        lines = [f"{title:<40}{'dual':>10}{'primal':>10}   cheaper   equal at"]
        for name, cost in rows.items():
            lines.append(
                f"  {name:<38}{cost.dual:>10.3g}{cost.primal:>10.3g}   {cost.cheaper:<9} "
                f"{cost.crossover:.0f} points"
            )
        return "\n".join(lines)


@entry_point
def primal_or_dual(
    kernel: Kernel, X: Any, n_functions: int = 1, *, max_memory: Any = None
) -> Sizes:
    """Return what a model of the points X costs in the primal and in the dual.

    Nothing is fitted: the kernel's features are counted, those of structured points by listing
    them.

    Parameters
    ----------
    kernel : Kernel
        With finitely many features; others are dual only.
    X : points
        The training points.
    n_functions : int
        How many targets, or classes.
    max_memory : int, str or None
        Bytes, or "2 GiB"; None for half of the machine's memory.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import primal_or_dual
    >>> from mercer.kernels import Polynomial
    >>> sizes = primal_or_dual(Polynomial(3), np.zeros((200, 10)))
    >>> print(sizes)
    200 points, 286 features, 1 function          dual    primal   cheaper   equal at
      numbers kept                             2.2e+03       286   primal    26 points
      multiply-adds of a prediction            2.2e+03       572   primal    52 points
      multiply-adds of a ridge                1.53e+06  1.21e+07   dual      524 points
    """
    X, one = sliceable(X), slice(0, 1)
    phi, _ = finite_features(kernel, take(X, one), None, max_memory)
    if sp.issparse(phi):
        phi, _ = finite_features(kernel, X, None, max_memory)
        entries = phi.nnz / max(1, length(X))
        return Sizes(length(X), phi.shape[1], n_functions, entries, entries)
    M, some = int(phi.shape[1]), X if sp.issparse(X) else take(X, one)  # rows are alike
    return Sizes(length(X), M, n_functions, float(M), _numbers(kernel.prepare(some)))


def _numbers(P: Prepared) -> float:
    """Return how many numbers a prepared point has, in all branches of the kernel."""
    own = sum(np.size(a) for a in P.arrays if np.ndim(a) == 2)  # those of one number are norms
    return float(own / max(1, len(P)) + sum(map(_numbers, P.children)))
