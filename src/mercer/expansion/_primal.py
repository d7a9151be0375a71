"""The twin of an expansion, for kernels with finitely many features: f(.) = <w, phi(.)>.

A linear model of phi(x) is parametric: M weights, however many points it was fitted to.  The same
function as an expansion has one coefficient for each point, and needs no phi.  What leads from one
to the other is w = sum_i a_i phi(x_i).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from .._errors import KernelMismatchError
from .._points import doubled, length, sliceable, take
from .._runtime import entry_point, slices
from ..kernels import Kernel, finite_features
from ..solvers import minimum_norm

if TYPE_CHECKING:
    from ._expansion import Expansion

__all__ = ["Primal", "to_weights"]

_BLOCK = 2**25  # bytes of features that are held at a time


@entry_point
@dataclass(frozen=True, eq=False)
class Primal:
    """m functions f_c(.) = <w_c, phi(.)>, phi the finitely many features of `kernel`.

    A value.  `Expansion.to_primal` makes one, or give the weights of a linear model.

    Parameters
    ----------
    kernel : Kernel
        phi(x) . phi(z).  A map of your own is the kernel ``Features(map)``.
    weights : array of shape (M, m) or (M,)
    frame : object, optional
        Which features the columns are, where that depends on the points that were seen first
        (strings, graphs): as `mercer.kernels.finite_features` returns it.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import Expansion
    >>> from mercer.kernels import Polynomial
    >>> X = np.linspace(0, 1, 50)[:, None]
    >>> f = Expansion(Polynomial(2, coef0=1.0), X, np.sin(9 * X))
    >>> p = f.to_primal()  # the weights of 1, sqrt(2) x and x^2
    >>> p
    <Primal: 1 function of 3 features, Polynomial(degree=2, coef0=1.0, gamma=1.0)>
    >>> bool(np.allclose(p(X), f(X))), bool(np.allclose(p.norm(), f.norm()))
    (True, True)
    >>> g = p.to_dual(X[::20])  # three points are enough for three features
    >>> bool(np.allclose(g(X), f(X)))
    True
    """

    kernel: Kernel
    weights: np.ndarray
    frame: Any = None

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, Kernel):
            raise TypeError(f"a Primal needs a Kernel, got {self.kernel!r}")
        w = np.array(self.weights, dtype=float)  # a copy of its own
        if w.ndim not in (1, 2):
            raise ValueError(f"weights have shape {w.shape}; one row per feature is needed")
        object.__setattr__(self, "weights", w[:, None] if w.ndim == 1 else w)

    def __len__(self) -> int:
        """Return m, the number of functions."""
        return self.weights.shape[1]

    def __getitem__(self, columns: Any) -> Primal:
        """Return some of the functions."""
        columns = [columns] if isinstance(columns, (int, np.integer)) else columns
        return Primal(self.kernel, self.weights[:, columns], self.frame)

    def __call__(self, X: Any, *, n_threads: int | None = None) -> np.ndarray:
        """Return f_c(x_i), shape (n, m), some rows of phi(X) at a time.

        `n_threads` is there for the likeness with Expansion: features are computed in one.
        """
        out = np.empty((length(X), len(self)))
        for rows, phi in _blocks(self.kernel, X, self.frame, len(self.weights)):
            self._require_columns(phi)
            out[rows] = phi @ self.weights
        return out

    def inner(self, other: Primal) -> np.ndarray:
        """Return <f_c, g_e> in the RKHS, shape (m, m'): the products of the weights."""
        if self.kernel != other.kernel or not _same(self.frame, other.frame):
            raise KernelMismatchError(
                f"the two live in different spaces: one has {len(self.weights)} features of "
                f"{self.kernel}, the other {len(other.weights)} of {other.kernel}, and they are "
                f"not the same ones"
            )
        return self.weights.T @ other.weights

    def norm(self) -> np.ndarray:
        """Return |f_c| in the RKHS, shape (m,): |w_c|, for a w_c in the span of the phi(x)."""
        return np.linalg.norm(self.weights, axis=0)

    def to_dual(self, X: Any, *, tol: float = 1e-6, max_memory: Any = None) -> Expansion:
        """Return f as an expansion in the points X: the a of least norm with Phi(X)^T a = w.

        By the representer theorem such an a exists if w was trained on X with a penalty that rises
        with |w|.  In general it exists if the phi(x_i) span w, as M of them in general position do.

        Parameters
        ----------
        X : points
        tol : float
            How much of w may be left over, |w - Phi^T a| / |w|.  More is an error; with ``tol=1``
            none is, and what is returned is the projection of f on the span.
        max_memory : int, str or None
            Bytes, or "2 GiB"; None for half of the machine's memory.
        """
        from ._expansion import Expansion  # the other half of this room

        F, _ = finite_features(self.kernel, doubled(sliceable(X)), self.frame, max_memory)
        self._require_columns(F)
        A, left = minimum_norm(F, self.weights, max_memory)
        size = self.norm()
        part = np.divide(left, size, out=np.zeros_like(left), where=size > 0)
        if part.max(initial=0.0) > tol:
            c = int(part.argmax())
            raise ValueError(
                f"w is no combination of the features of these {length(X)} points: they leave "
                f"|w - Phi^T a| = {left[c]:.4g} of |w| = {size[c]:.4g}, a part of {part[c]:.2g} "
                f"that is more than tol={tol:g}. The usual causes are other points than w was "
                f"trained on, and a penalty that is not one of |w|, such as the lasso's; give the "
                f"training points, or more points (there are {len(self.weights)} features), or a "
                f"larger tol for the nearest expansion"
            )
        return Expansion(self.kernel, X, A)

    def _require_columns(self, phi: Any) -> None:
        if phi.shape[1] != len(self.weights):
            raise ValueError(
                f"{self.kernel} has {phi.shape[1]} features of these points, but there are "
                f"{len(self.weights)} weights; one for each is needed"
            )

    def __repr__(self) -> str:
        M, m = self.weights.shape
        functions = "function" if m == 1 else "functions"
        return f"<Primal: {m} {functions} of {M} features, {self.kernel}>"


def _blocks(
    kernel: Kernel, X: Any, frame: Any, columns: int, max_memory: Any = None
) -> Iterator[tuple[slice, Any]]:
    """Yield (rows of X, phi of these) for a phi of so many columns, about 32 MiB at a time."""
    X = sliceable(X)
    for rows in slices(length(X), max(1, _BLOCK // (8 * max(1, columns)))):
        yield rows, finite_features(kernel, doubled(take(X, rows)), frame, max_memory)[0]


def to_weights(kernel: Kernel, X: Any, A: np.ndarray, max_memory: Any) -> tuple[np.ndarray, Any]:
    """Return Phi(X)^T A and the frame of its rows."""
    phi, frame = finite_features(kernel, doubled(sliceable(take(X, slice(0, 1)))), None, max_memory)
    if sp.issparse(phi):  # all points say which features there are, and they are few at a point
        phi, frame = finite_features(kernel, doubled(sliceable(X)), None, max_memory)
        return np.asarray(phi.T @ A), frame
    W = np.zeros((phi.shape[1], A.shape[1]))
    for rows, phi in _blocks(kernel, X, frame, len(W), max_memory):
        W += phi.T @ A[rows]
    return W, frame


def _same(one: Any, other: Any) -> bool:
    """Tell whether two frames, which are nested tuples with arrays in them, are equal."""
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    return one is other or bool(np.array_equal(one, other))
