"""Primal form f(.) = <w, phi(.)> of an expansion, for kernels with finitely many features.

A linear model of phi(x) has M weights, independent of the number of training points.  The same
function as an expansion (dual form) has one coefficient per point and does not need phi.  The two
forms are related by w = sum_i a_i phi(x_i).

The two forms have different costs:

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

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp

from .._core import (
    KernelMismatchError,
    MemoryLimit,
    Points,
    as_csr,
    as_float64,
    entry_point,
    length,
    slices,
    take,
)
from ..kernels import Kernel, Prepared, finite_features
from ..solvers import minimum_norm_solution

if TYPE_CHECKING:
    from ._expansion import Expansion

# One function, or several functions, of an expansion.
ColumnIndex: TypeAlias = int | np.integer | slice | list[int] | np.ndarray
_FEATURE_BLOCK_BYTES = 2**25  # features phi(X) are computed in blocks of about this size


@entry_point
@dataclass(frozen=True, eq=False)
class Primal:
    """Functions f_c(.) = <w_c, phi(.)> of a kernel with finitely many features phi.

    The primal form stores one weight per feature and function, whatever the number of training
    points.  It is the cheaper form of a model that was trained on many points with few features.

    Objects are immutable.  `Expansion.to_primal` converts an expansion; to convert a linear model,
    pass its weights.

    Parameters
    ----------
    kernel : Kernel
        The kernel phi(x) . phi(z).  For a user-defined feature map use ``Features(map)``.
    weights : array of shape (M, m) or (M,)
        The weights, with one row per feature and one column per function.  They are copied.
    frame : object, optional
        Description of the features, as returned by `mercer.kernels.finite_features`.  It is needed
        if the features depend on the points, as for strings and graphs.

    See Also
    --------
    Expansion : The dual form, with one coefficient per point.
    primal_or_dual : Compare the costs of both forms.
    mercer.kernels.finite_features : Compute the features phi(X).

    References
    ----------
    Shawe-Taylor and Cristianini, "Kernel Methods for Pattern Analysis", Cambridge University Press,
    2004, chapter 2.

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

    def __getitem__(self, columns: ColumnIndex) -> Primal:
        """Return the selected functions.

        Parameters
        ----------
        columns : int, slice, list of int or ndarray
            Indices of functions, or a boolean mask.  An integer selects one function.

        Returns
        -------
        Primal
        """
        return Primal(self.kernel, select_columns(self.weights, columns), self.frame)

    def __call__(self, X: Points, *, n_threads: int | None = None) -> np.ndarray:
        """Return the values f_c(x_i) at the points X, computed in blocks of points.

        Parameters
        ----------
        X : points
            The points at which the functions are evaluated.
        n_threads : int, optional
            Ignored; accepted for compatibility with `Expansion`.

        Returns
        -------
        ndarray of shape (n, m)
            One row per point of X and one column per function.
        """
        out = np.empty((length(X), len(self)))
        for rows, phi in _feature_blocks(self.kernel, X, self.frame, len(self.weights)):
            self._require_columns(phi)
            out[rows] = phi @ self.weights
        return out

    def inner(self, other: Primal) -> np.ndarray:
        """Return all inner products <f_c, g_e> with other functions of the same features.

        Parameters
        ----------
        other : Primal
            Functions with the same kernel and the same features.

        Returns
        -------
        ndarray of shape (m, m')
            The inner products of the weights; m' is the number of functions of `other`.

        Raises
        ------
        KernelMismatchError
            If the kernels or the features differ.

        Examples
        --------
        >>> from mercer import Primal
        >>> from mercer.kernels import Linear
        >>> Primal(Linear(), [1.0, 2.0]).inner(Primal(Linear(), [3.0, 1.0]))
        array([[5.]])
        """
        if self.kernel != other.kernel or not _frames_equal(self.frame, other.frame):
            raise KernelMismatchError(
                f"the two belong to different feature spaces: one has {len(self.weights)} "
                f"features of {self.kernel}, the other has {len(other.weights)} different "
                f"features of {other.kernel}"
            )
        return self.weights.T @ other.weights

    def norm(self) -> np.ndarray:
        """Return the norms |w_c| of the weights.

        They are the norms in the RKHS if w_c is in the span of the feature vectors phi(x).

        Returns
        -------
        ndarray of shape (m,)
            The norms.

        Examples
        --------
        >>> from mercer import Primal
        >>> from mercer.kernels import Linear
        >>> Primal(Linear(), [3.0, 4.0]).norm()
        array([5.])
        """
        return np.linalg.norm(self.weights, axis=0)

    def to_dual(self, X: Points, *, tol: float = 1e-6, max_memory: MemoryLimit = None) -> Expansion:
        """Return f as an expansion in the points X (dual form).

        The coefficients a are the solution of Phi(X)^T a = w with the smallest norm.  It exists if
        w is in the span of the phi(x_i).  By the representer theorem, this is so if w was trained
        on X with a penalty that increases with |w|.  It is also so for M points in general
        position, where M is the number of features.

        Parameters
        ----------
        X : points
            The n points of the expansion, usually the training points.
        tol : float, default=1e-6
            Largest allowed relative residual |w - Phi^T a| / |w|; a larger one raises ValueError.
            With ``tol=1`` there is no error, and the result is the projection of f on the span.
        max_memory : int, str or None, default=None
            Memory budget in bytes, or a string such as "2 GiB"; None means half of the memory of
            this computer.

        Returns
        -------
        Expansion
            m functions on the n points X, with coefficients of shape (n, m).

        Raises
        ------
        ValueError
            If w is not in the span of the features of X, up to `tol`.

        See Also
        --------
        Expansion.to_primal : The inverse conversion.

        Examples
        --------
        >>> import numpy as np
        >>> from mercer import Primal
        >>> from mercer.kernels import Linear
        >>> f = Primal(Linear(), [3.0, 1.0])
        >>> f.to_dual(np.eye(2)).coefficients
        array([[3.],
               [1.]])
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
        return f"<Primal: {count_functions(m)} of {M} features, {self.kernel}>"


def select_columns(A: np.ndarray, columns: ColumnIndex) -> np.ndarray:
    """Return columns of a matrix with one column per function; an integer selects one column."""
    if isinstance(columns, (int, np.integer)):
        return A[:, [int(columns)]]
    return A[:, columns]


def count_functions(m: int) -> str:
    """Return "1 function" or "m functions"."""
    return f"{m} function" if m == 1 else f"{m} functions"


def _feature_blocks(
    kernel: Kernel, X: Points, frame: Any, columns: int, max_memory: MemoryLimit = None
) -> Iterator[tuple[slice, Any]]:
    """Yield pairs (rows, phi(X[rows])) in blocks of about 32 MiB; phi has `columns` columns."""
    X = as_csr(X)
    for rows in slices(length(X), max(1, _FEATURE_BLOCK_BYTES // (8 * max(1, columns)))):
        yield rows, finite_features(kernel, as_float64(take(X, rows)), frame, max_memory)[0]


def to_weights(
    kernel: Kernel, X: Points, A: np.ndarray, max_memory: MemoryLimit
) -> tuple[np.ndarray, Any]:
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


# ---------------------------------------------------------------------- cost of the two forms


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
        per_point = self.numbers + self.n_functions
        operations = self.entries * (1.0 + self.n_functions)
        return PrimalDualCost(self.n_points * per_point, operations, operations / per_point)

    @property
    def training(self) -> PrimalDualCost:
        """Number of multiply-adds of ridge training: half of K or Phi^T Phi, and its factor."""
        n, M, e, s = float(self.n_points), float(self.n_features), self.entries, self.numbers
        # The costs are equal at a root of n^3/3 + s n^2 - e^2 n - M^3/3.  The signs of the
        # coefficients change only once, so that there is exactly one positive root.
        roots = np.roots([1.0 / 3.0, s, -(e**2), -(M**3) / 3.0])
        dual, primal = n**2 * (s + n / 3.0) / 2.0, (n * e**2 + M**3 / 3.0) / 2.0
        return PrimalDualCost(dual, primal, float(roots[np.argmax(roots.real)].real))

    def __str__(self) -> str:
        rows = {
            "stored numbers": self.stored,
            "multiply-adds per prediction": self.prediction,
            "multiply-adds of ridge training": self.training,
        }
        functions = count_functions(self.n_functions)
        title = f"{self.n_points} points, {self.n_features} features, {functions}"
        lines = [f"{title:<40}{'dual':>10}{'primal':>10}   cheaper   equal at"]
        for name, cost in rows.items():
            costs = f"{cost.dual:>10.3g}{cost.primal:>10.3g}"
            lines.append(f"  {name:<38}{costs}   {cost.cheaper:<9} {cost.crossover:.0f} points")
        return "\n".join(lines)


@entry_point
def primal_or_dual(
    kernel: Kernel, X: Points, n_functions: int = 1, *, max_memory: MemoryLimit = None
) -> PrimalDualSizes:
    """Compare the costs of the primal and the dual form of a model on the points X.

    Use it before training, to decide between a kernel method (dual) and a linear method on explicit
    features (primal), or before `to_primal`.  No model is fitted; only the features of the kernel
    are counted.  For strings and graphs, this requires the features of all points.

    Parameters
    ----------
    kernel : Kernel
        A kernel with finitely many features; other kernels have only a dual form.
    X : points
        The n training points.
    n_functions : int, default=1
        Number of functions of the model, such as targets or classes.
    max_memory : int, str or None, default=None
        Memory budget in bytes, or a string such as "2 GiB"; None means half of the memory of this
        computer.

    Returns
    -------
    PrimalDualSizes
        The costs `stored`, `prediction` and `training`.  Each has the fields `dual` and `primal`,
        and `crossover`, the number of points from which the primal form is cheaper.

    Raises
    ------
    TypeError
        If the kernel has infinitely many features.

    See Also
    --------
    to_primal : Convert a fitted estimator to the primal form.
    Expansion.to_primal : Convert an expansion.

    References
    ----------
    Shawe-Taylor and Cristianini, "Kernel Methods for Pattern Analysis", Cambridge University Press,
    2004, chapter 2.

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
