"""P = F^T F + shift I for a wide F: what stands for K + shift where F^T F stands for K.

    P^-1 v    = (v - F^T (F F^T + shift)^-1 F v) / shift                        (Woodbury)
    log det P = (n - k) log shift + log det(F F^T + shift)

Only k x k matrices are factored, in float64.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from ..._runtime import cut, entry_point, ordered_sum, run
from ..._runtime.linalg import cho_factor, cho_solve

__all__ = ["ShiftedLowRank", "outer"]

_GROUPS = 8  # strips of F whose products are added in order


@entry_point
class ShiftedLowRank:
    """P = F^T F + shift I, ready to solve with: a preconditioner of K + shift I.

    With F from `rpcholesky`, P <= K + shift <= (1 + trace / shift) P, `trace` being that of what
    the factor left of K.

    Parameters
    ----------
    F : ndarray of shape (k, n)
        Read only, and not copied; the factor of a `PartialCholesky` is in the right order.
    shift : float
        Positive.
    n_threads : int, optional
        All processors by default.  The results do not depend on it.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers import ShiftedLowRank
    >>> P = ShiftedLowRank(np.array([[3.0, 4.0]]), shift=1.0)
    >>> P.solve(np.array([6.0, 8.0])) * 26
    array([6., 8.])
    >>> bool(np.isclose(P.logdet(), np.log(26.0)))
    True
    """

    def __init__(self, F: np.ndarray, shift: float, *, n_threads: int | None = None) -> None:
        F = np.asarray(F, dtype=np.float64)
        if F.ndim != 2:
            raise ValueError(f"F must have shape (k, n), got {F.shape}")
        if not (np.ndim(shift) == 0 and 0.0 < shift < np.inf):
            raise ValueError(
                f"ShiftedLowRank needs a positive, finite shift, got {shift!r}: F^T F alone has no "
                f"inverse. Shifts that differ by point belong into F: scale K on both sides"
            )
        self.F, self.shift, self.n_threads = F, float(shift), n_threads

    @property
    def size(self) -> int:
        """The n of P, n x n."""
        return int(self.F.shape[1])

    def solve(self, V: np.ndarray) -> np.ndarray:
        """Return P^-1 V, for V of shape (n,) or (n, q)."""
        columns = self._columns(V)
        inner = cho_solve(self._factor, self._times(columns), check_finite=False)
        return (self._minus(columns, inner) / self.shift).reshape(np.shape(V))

    def logdet(self) -> float:
        """Return log det P."""
        inner = 2.0 * float(np.sum(np.log(self._factor[0].diagonal())))
        return inner + (self.size - len(self.F)) * float(np.log(self.shift))

    def sample(self, rng: Any, q: int) -> np.ndarray:
        """Return q columns drawn from the normal distribution of covariance P."""
        inside = rng.standard_normal((len(self.F), q))
        return self._minus(np.sqrt(self.shift) * rng.standard_normal((self.size, q)), -inside)

    @cached_property
    def _factor(self) -> tuple[np.ndarray, bool]:
        inner = self._square.copy()
        inner.flat[:: len(inner) + 1] += self.shift
        return cho_factor(inner, lower=True, overwrite_a=True)

    @cached_property
    def _square(self) -> np.ndarray:
        return outer(self.F, self.n_threads)

    # ------------------------------------------------------------------ products with F

    def _columns(self, V: Any) -> np.ndarray:
        V = np.asarray(V, dtype=np.float64)
        if V.ndim not in (1, 2) or len(V) != self.size:
            raise ValueError(f"V has shape {V.shape}, but P has {self.size} rows")
        return V.reshape(self.size, -1)

    def _times(self, V: np.ndarray) -> np.ndarray:
        """Return F V."""
        work = float(self.F.size) * V.shape[1]
        return _summed(lambda part: self.F[:, part] @ V[part], self.size, self.n_threads, work)

    def _minus(self, V: np.ndarray, C: np.ndarray) -> np.ndarray:
        """Return V - F^T C."""
        out = np.empty_like(V)

        def group(part: slice) -> None:
            np.subtract(V[part], self.F[:, part].T @ C, out=out[part])

        work = float(self.F.size) * V.shape[1]
        run(group, cut(self.size, _GROUPS), self.n_threads, work)
        return out


@entry_point
def outer(F: np.ndarray, n_threads: int | None) -> np.ndarray:
    """Return F F^T, in threads whose number does not change the bits.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.solvers import outer
    >>> outer(np.array([[1.0, 2.0], [0.0, 1.0]]), n_threads=1)
    array([[5., 2.],
           [2., 1.]])
    """
    work = float(F.size) * len(F)
    return _summed(lambda part: F[:, part] @ F[:, part].T, F.shape[1], n_threads, work)


def _summed(
    share: Callable[[slice], np.ndarray], n: int, n_threads: int | None, work: float
) -> np.ndarray:
    return np.asarray(ordered_sum(share, cut(n, _GROUPS), _GROUPS, n_threads, work))
