"""Cost model of the primal and the dual form of a kernel model.

                                            dual                         primal
    stored values                           n (s + m)                    M m
    multiply-adds per prediction            n (s + m)                    e (1 + m)
    multiply-adds of ridge training         n^2 (s + n/3) / 2            (n e^2 + M^3/3) / 2

Here n is the number of points, m the number of functions, M the number of features, e the mean
number of nonzero features of a point, and s the number of values that the kernel stores for a
point.  Ridge training computes one half of a symmetric matrix, K or Phi^T Phi, and its Cholesky
factor.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .._core import as_csr, entry_point, length, take
from ..kernels import Kernel, Prepared, finite_features

__all__ = ["PrimalDualCost", "PrimalDualSizes", "primal_or_dual"]


class PrimalDualCost(NamedTuple):
    """A cost in the dual and the primal form, and the number of points for which they are equal.

    With more than `crossover` points the primal form is cheaper.
    """

    dual: float
    primal: float
    crossover: float

    @property
    def cheaper(self) -> str:
        """The cheaper form, "primal" or "dual"."""
        return "primal" if self.primal < self.dual else "dual"


@dataclass(frozen=True)
class PrimalDualSizes:
    """Sizes of a model, from which the costs of its primal and dual form are computed.

    ``print`` shows the costs as a table.

    Parameters
    ----------
    n_points, n_features, n_functions : int
        The number of points n, of features M, and of functions m.
    entries : float
        Mean number e of nonzero features of a point.
    numbers : float
        Number s of values that the kernel stores for a point: the dimension d for vectors, or e
        for kernels that count features, such as those of strings.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import primal_or_dual
    >>> from mercer.kernels import Polynomial
    >>> sizes = primal_or_dual(Polynomial(2), np.zeros((100, 3)))
    >>> sizes.n_features, sizes.prediction.cheaper
    (10, 'primal')
    """

    n_points: int
    n_features: int
    n_functions: int
    entries: float
    numbers: float

    @property
    def stored(self) -> PrimalDualCost:
        """Number of stored values: points and coefficients (dual), or weights (primal)."""
        per_point, n_weights = self.numbers + self.n_functions, self.n_features * self.n_functions
        return PrimalDualCost(self.n_points * per_point, n_weights, n_weights / per_point)

    @property
    def prediction(self) -> PrimalDualCost:
        """Number of multiply-adds to predict for one point; computing a feature counts as one."""
        per_point, operations = (
            self.numbers + self.n_functions,
            self.entries * (1.0 + self.n_functions),
        )
        return PrimalDualCost(self.n_points * per_point, operations, operations / per_point)

    @property
    def training(self) -> PrimalDualCost:
        """Number of multiply-adds of ridge training: half of K or Phi^T Phi, and its factor."""
        n, M, e, s = float(self.n_points), float(self.n_features), self.entries, self.numbers
        # The costs are equal at a root of n^3/3 + s n^2 - e^2 n - M^3/3.  The signs of the
        # coefficients change only once, so that there is exactly one positive root.
        roots = np.roots([1.0 / 3.0, s, -(e**2), -(M**3) / 3.0])
        return PrimalDualCost(
            n**2 * (s + n / 3.0) / 2.0,
            (n * e**2 + M**3 / 3.0) / 2.0,
            float(roots[np.argmax(roots.real)].real),
        )

    def __str__(self) -> str:
        rows = {
            "stored numbers": self.stored,
            "multiply-adds per prediction": self.prediction,
            "multiply-adds of ridge training": self.training,
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
) -> PrimalDualSizes:
    """Compare the costs of the primal and the dual form of a model on the points X.

    No model is fitted; only the features of the kernel are counted.  For strings and graphs, this
    requires the features of all points.

    Parameters
    ----------
    kernel : Kernel
        A kernel with finitely many features; other kernels have only a dual form.
    X : points
        The training points.
    n_functions : int, default=1
        Number of functions of the model, such as targets or classes.
    max_memory : int, str or None
        Memory budget in bytes, or a string such as "2 GiB"; None means half of the memory of this
        computer.

    Returns
    -------
    PrimalDualSizes

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import primal_or_dual
    >>> from mercer.kernels import Polynomial
    >>> sizes = primal_or_dual(Polynomial(3), np.zeros((200, 10)))
    >>> print(sizes)
    200 points, 286 features, 1 function          dual    primal   cheaper   equal at
      stored numbers                           2.2e+03       286   primal    26 points
      multiply-adds per prediction             2.2e+03       572   primal    52 points
      multiply-adds of ridge training         1.53e+06  1.21e+07   dual      524 points
    """
    X, first = as_csr(X), slice(0, 1)
    phi, _ = finite_features(kernel, take(X, first), None, max_memory)
    if sp.issparse(phi):
        phi, _ = finite_features(kernel, X, None, max_memory)
        entries = phi.nnz / max(1, length(X))
        return PrimalDualSizes(length(X), phi.shape[1], n_functions, entries, entries)
    # if points are dense, the size of the first one is that of all
    M, sample = int(phi.shape[1]), X if sp.issparse(X) else take(X, first)
    return PrimalDualSizes(
        length(X), M, n_functions, float(M), _numbers_per_point(kernel.prepare(sample))
    )


def _numbers_per_point(P: Prepared) -> float:
    """Return the number of values stored for a point, summed over all parts of the kernel."""
    # 1-D arrays, which contain norms, are not counted
    count = sum(np.size(a) for a in P.arrays if np.ndim(a) == 2)
    return float(count / max(1, len(P)) + sum(map(_numbers_per_point, P.children)))
