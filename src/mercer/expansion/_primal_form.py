"""Primal form f(.) = <w, phi(.)> of an expansion, for kernels with finitely many features.

A linear model of phi(x) has M weights, independent of the number of training points.  The same
function as an expansion (dual form) has one coefficient per point and does not need phi.  The two
forms are related by w = sum_i a_i phi(x_i).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from .._core import KernelMismatchError, as_csr, as_float64, entry_point, length, slices, take
from ..kernels import Kernel, finite_features
from ..solvers import minimum_norm_solution

if TYPE_CHECKING:
    from ._expansion import Expansion

__all__ = ["Primal", "to_weights"]

_FEATURE_BLOCK_BYTES = 2**25  # features phi(X) are computed in blocks of about this size


@entry_point
@dataclass(frozen=True, eq=False)
class Primal:
    """Functions f_c(.) = <w_c, phi(.)> of a kernel with finitely many features phi.

    Objects are immutable.  `Expansion.to_primal` converts an expansion; to convert a linear model,
    pass its weights.

    Parameters
    ----------
    kernel : Kernel
        The kernel phi(x) . phi(z).  For a user-defined feature map use ``Features(map)``.
    weights : array of shape (M, m) or (M,)
        The weights, with one row per feature and one column per function.
    frame : object, optional
        Description of the features, as returned by `mercer.kernels.finite_features`.  It is needed
        if the features depend on the points, as for strings and graphs.

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
        w = np.array(self.weights, dtype=float)  # always copy the weights
        if w.ndim not in (1, 2):
            raise ValueError(f"weights must have one row per feature, got shape {w.shape}")
        object.__setattr__(self, "weights", w[:, None] if w.ndim == 1 else w)

    def __len__(self) -> int:
        """Return m, the number of functions."""
        return self.weights.shape[1]

    def __getitem__(self, columns: Any) -> Primal:
        """Return the selected functions."""
        columns = [columns] if isinstance(columns, (int, np.integer)) else columns
        return Primal(self.kernel, self.weights[:, columns], self.frame)

    def __call__(self, X: Any, *, n_threads: int | None = None) -> np.ndarray:
        """Return the values f_c(x_i) at the points X, shape (n, m), computed in blocks of points.

        `n_threads` is ignored; it is accepted for compatibility with `Expansion`.
        """
        out = np.empty((length(X), len(self)))
        for rows, phi in _feature_blocks(self.kernel, X, self.frame, len(self.weights)):
            self._require_columns(phi)
            out[rows] = phi @ self.weights
        return out

    def inner(self, other: Primal) -> np.ndarray:
        """Return all inner products <f_c, g_e> with the functions g_e of `other`, shape (m, m')."""
        if self.kernel != other.kernel or not _frames_equal(self.frame, other.frame):
            raise KernelMismatchError(
                f"the two belong to different feature spaces: one has {len(self.weights)} "
                f"features of {self.kernel}, the other has {len(other.weights)} different "
                f"features of {other.kernel}"
            )
        return self.weights.T @ other.weights

    def norm(self) -> np.ndarray:
        """Return the norms |w_c| of the weights, shape (m,).

        They are the norms in the RKHS if w_c is in the span of the feature vectors phi(x).
        """
        return np.linalg.norm(self.weights, axis=0)

    def to_dual(self, X: Any, *, tol: float = 1e-6, max_memory: Any = None) -> Expansion:
        """Return f as an expansion in the points X (dual form).

        The coefficients a are the solution of Phi(X)^T a = w with the smallest norm.  It exists if
        w is in the span of the phi(x_i).  By the representer theorem, this is so if w was trained
        on X with a penalty that increases with |w|.  It is also so for M points in general
        position, where M is the number of features.

        Parameters
        ----------
        X : points
        tol : float, default=1e-6
            Largest allowed relative residual |w - Phi^T a| / |w|; a larger one raises ValueError.
            With ``tol=1`` there is no error, and the result is the projection of f on the span.
        max_memory : int, str or None
            Memory budget in bytes, or a string such as "2 GiB"; None means half of the memory of
            this computer.

        Returns
        -------
        Expansion
        """
        from ._expansion import Expansion  # imported here to avoid a circular import

        F, _ = finite_features(self.kernel, as_float64(as_csr(X)), self.frame, max_memory)
        self._require_columns(F)
        A, residual = minimum_norm_solution(F, self.weights, max_memory)
        norms = self.norm()
        relative = np.divide(residual, norms, out=np.zeros_like(residual), where=norms > 0)
        if relative.max(initial=0.0) > tol:
            c = int(relative.argmax())
            raise ValueError(
                f"w is not a linear combination of the features of these {length(X)} points: the "
                f"residual |w - Phi^T a| is {residual[c]:.4g} with |w| = {norms[c]:.4g}, and the "
                f"ratio {relative[c]:.2g} is larger than tol={tol:g}. The usual causes are points "
                f"that w was not trained on, and a penalty that is not a function of |w|, such as "
                f"that of the lasso; pass the training points, or more points (there are "
                f"{len(self.weights)} features), or a larger tol for the nearest expansion"
            )
        return Expansion(self.kernel, X, A)

    def _require_columns(self, phi: Any) -> None:
        if phi.shape[1] != len(self.weights):
            raise ValueError(
                f"{self.kernel} has {phi.shape[1]} features for these points, but there are "
                f"{len(self.weights)} weights; pass one weight per feature"
            )

    def __repr__(self) -> str:
        M, m = self.weights.shape
        functions = "function" if m == 1 else "functions"
        return f"<Primal: {m} {functions} of {M} features, {self.kernel}>"


def _feature_blocks(
    kernel: Kernel, X: Any, frame: Any, columns: int, max_memory: Any = None
) -> Iterator[tuple[slice, Any]]:
    """Yield pairs (rows, phi(X[rows])) in blocks of about 32 MiB; phi has `columns` columns."""
    X = as_csr(X)
    for rows in slices(length(X), max(1, _FEATURE_BLOCK_BYTES // (8 * max(1, columns)))):
        yield rows, finite_features(kernel, as_float64(take(X, rows)), frame, max_memory)[0]


def to_weights(kernel: Kernel, X: Any, A: np.ndarray, max_memory: Any) -> tuple[np.ndarray, Any]:
    """Return the primal weights Phi(X)^T A, and the frame that describes their features."""
    phi, frame = finite_features(kernel, as_float64(as_csr(take(X, slice(0, 1)))), None, max_memory)
    # Sparse features depend on all points, and must be computed for all of them together.  Each
    # point has few nonzero features, so that this needs little memory.
    if sp.issparse(phi):
        phi, frame = finite_features(kernel, as_float64(as_csr(X)), None, max_memory)
        return np.asarray(phi.T @ A), frame
    W = np.zeros((phi.shape[1], A.shape[1]))
    for rows, phi in _feature_blocks(kernel, X, frame, len(W), max_memory):
        W += phi.T @ A[rows]
    return W, frame


def _frames_equal(one: Any, other: Any) -> bool:
    """Return True if two frames, which are nested tuples of arrays, are equal."""
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(_frames_equal, one, other))
    return one is other or bool(np.array_equal(one, other))
