"""The base class of all kernels.

A kernel expression such as `2 * RBF() + Linear()` is a tree of nodes.  Each node is a kernel, and a
frozen dataclass.  Each field of a node is one of

    a parameter        declared with `parameter(...)`: positive and tunable; `theta`, the vector
                       that a parameter search changes, contains its logarithm
    a child            a Kernel, or a tuple of kernels
    an option          anything else

`Kernel` derives parameters, `theta`, equality, `repr` and data-dependent values from the fields.
A subclass only implements its mathematics, in these six methods (P and Q are prepared points):

    _prepare(X, like)           convert the points X for `_tile`, once per operand
    _tile(P, Q, out)            out <- k(P, Q)
    _diag(X)                    k(x_i, x_i)
    _pullback(X, Z, W)          {path: sum_ij W_ij dk(x_i, z_j) / d log parameter}
    _input_gradient(X, Z, W)    sum_j W_ij dk(x_i, z_j) / dx_i
    _properties(*inner)         known properties of k, given those of its children

A path is the name of a field, or `terms__0` for the first member of the tuple `terms`.

A kernel whose individual values are expensive (dynamic programming, a Python function) sets
`costly` and implements `_pairs(P, Q, i, j)`, which evaluates a list of pairs.  Its values are then
stored during a fit, so that no pair is evaluated twice.
"""

from __future__ import annotations

import dataclasses
import numbers
from abc import ABC, abstractmethod
from collections.abc import Callable as Function
from collections.abc import Iterator
from functools import cache, cached_property
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from .._core import (
    ENTRY_WORK,
    FormerAttribute,
    NotDifferentiableError,
    entry_point,
    length,
    slices,
    take,
)
from ._dataclass import Value, frozen_parameter, node
from ._jacobian import KernelLinearisation
from ._prepared import Prepared, prepare_pair
from ._properties import Properties

if TYPE_CHECKING:
    from .validity import Validity

__all__ = ["Kernel", "node", "parameter"]

_ROWS_PER_TILE = 1024  # number of rows of k(X, Z) filled at a time, to limit memory
_DIAGONAL_BLOCK = 64  # block size for the diagonal; larger blocks waste work
_MIN_LOG_PARAMETER = -700.0  # exp() of a smaller logarithm may underflow to 0


def parameter(
    default: Any = dataclasses.MISSING, *, bounds: tuple[float, float] = (1e-5, 1e5)
) -> Any:
    """Declare a positive, tunable parameter as a field of a kernel class.

    Parameters
    ----------
    default : float or str, optional
        The default value of the field.
    bounds : tuple (low, high), default (1e-5, 1e5)
        The interval in which a hyperparameter search looks for the value.

    Returns
    -------
    dataclasses.Field

    Examples
    --------
    >>> from mercer.kernels import RBF, node, parameter
    >>> @node
    ... class Tuned(RBF):
    ...     weight: float = parameter(1.0, bounds=(0.1, 10.0))
    >>> Tuned().theta_names
    ['length_scale', 'weight']
    """
    return dataclasses.field(default=default, metadata={"bounds": bounds})


@entry_point
@node
class Kernel(Value, ABC):
    """Base class of all kernels: symmetric functions k(x, z) of two points.

    Kernels are immutable.  They are combined with `+`, `*` and `**`, and evaluated by calling them:
    `k(X, Z)` returns the matrix with the entries k(x_i, z_j).  The docstring of the module
    `mercer.kernels._base` lists the methods that a new kernel must implement.

    Examples
    --------
    >>> from mercer.kernels import RBF, Kernel
    >>> k = 2.0 * RBF() + 1.0
    >>> isinstance(k, Kernel), k.theta_names
    (True, ['terms__0__kernel__length_scale', 'terms__0__factor', 'terms__1__value'])
    >>> k([[0.0], [1.0]]).round(3)
    array([[3.   , 2.213],
           [2.213, 3.   ]])
    """

    __array_ufunc__ = None  # None, so that numpy.float64(2) * k calls __rmul__

    def __post_init__(self) -> None:
        for name, tunable in _fields(type(self)):
            value = getattr(self, name)
            if tunable and not isinstance(value, (float, str, numbers.Number)):
                object.__setattr__(self, name, frozen_parameter(value))
        self._check()

    def _check(self) -> None:
        """Raise an error if the values of the fields are invalid."""
        return

    # ------------------------------------------------------------------ evaluation

    def __call__(self, X: Any, Z: Any = None) -> np.ndarray:
        """Return the matrix with the entries k(x_i, z_j).

        Parameters
        ----------
        X : n points
        Z : m points, optional
            By default X itself.

        Returns
        -------
        ndarray of shape (n, m)
        """
        P, Q = prepare_pair(self, X, Z)
        out = np.empty((len(P), len(Q)), dtype=np.result_type(P.dtype, Q.dtype))
        for rows in slices(len(P), _ROWS_PER_TILE):
            self._tile(P[rows], Q, out[rows])
        return out

    def diag(self, X: Any) -> np.ndarray:
        """Return the diagonal k(x_i, x_i) of k(X, X), shape (n,)."""
        self._require_resolved()
        return self._diag(X)

    def prepare(self, X: Any, like: Prepared | None = None) -> Prepared:
        """Return the points X in the form that `tile` requires.

        If `like` (the other operand, already prepared) is given, the result can be used in one tile
        with it; for example, both are then centred at the same point.
        """
        self._require_resolved()
        return self._prepare(X, like)

    def tile(self, P: Prepared, Q: Prepared, out: np.ndarray) -> np.ndarray:
        """Fill `out` with the kernel values k(P, Q) of prepared points, and return it."""
        self._tile(P, Q, out)
        return out

    def pullback(self, X: Any, Z: Any, W: np.ndarray) -> np.ndarray:
        """Return the gradient sum_ij W_ij dk(x_i, z_j) / d theta, one entry per entry of `theta`.

        This is reverse-mode differentiation: the weights W, shape (n, m), are propagated through
        the kernel expression, so that the (n, m, p) array of all derivatives is never formed.
        `Z=None` means that Z is X.
        """
        if not self._n_free_parameters:
            return np.zeros(0)
        W = self._check_weights(X, Z, W)
        gradient = self._pullback(X, Z, W)
        return np.concatenate([np.ravel(gradient[path]) for path, _ in self._parts])

    def linearise(self, X: Any, Z: Any = None) -> KernelLinearisation:
        """Return the matrix k(X, Z) with its derivatives with respect to `theta`.

        `Z=None` means that Z is X.
        """
        self._require_resolved()
        return self._linearise(X, Z)

    def input_gradient(self, X: Any, Z: Any, W: np.ndarray) -> np.ndarray:
        """Return sum_j W_ij dk(x_i, z_j) / dx_i, shape (n, d).

        This is the derivative with respect to the first argument only, even if Z is None and both
        arguments are X.  If k is not differentiable at x_i = z_j (Laplacian, Matern(nu=0.5), ...),
        such a pair contributes 0, the midpoint of its subgradients.
        """
        self._require_resolved()
        return self._input_gradient(X, Z, self._check_weights(X, Z, W))

    # ------------------------------------------------------------------ methods for subclasses

    def _prepare(self, X: Any, like: Prepared | None) -> Prepared:
        """Return the points X in the form that `_tile` requires, compatible with operand `like`."""
        return Prepared((X,))

    @abstractmethod
    def _tile(self, P: Prepared, Q: Prepared, out: np.ndarray) -> None:
        """Write the kernel values k(P, Q) of prepared points to `out`, shape (n, m)."""

    def _diag(self, X: Any) -> np.ndarray:
        """Return k(x_i, x_i), computed from small blocks of K; subclasses may be faster."""
        P = self.prepare(X)
        out = np.empty(len(P), dtype=P.dtype)
        for rows in slices(len(P), _DIAGONAL_BLOCK):
            Pc = P[rows]
            out[rows] = self.tile(Pc, Pc, np.empty((len(Pc), len(Pc)), dtype=P.dtype)).diagonal()
        return out

    def _pairs(self, P: Prepared, Q: Prepared, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Return k(p_i, q_j) for index arrays i and j; by default from one tile per point p_i."""
        values = np.empty(len(i), dtype=P.dtype)
        for point in np.unique(i):
            of_point = i == point
            row = np.empty((1, int(of_point.sum())), dtype=P.dtype)
            self._tile(P[[point]], Q[j[of_point]], row)
            values[of_point] = row[0]
        return values

    def _by_blocks(self, P: Prepared) -> bool:
        """Whether evaluating a block of K for these points is faster than reading stored values."""
        return False

    def _tile_by_pairs(self, P: Prepared, Q: Prepared, out: np.ndarray) -> None:
        """Fill a tile by calling `_pairs`, only for the upper triangle if the tile is symmetric."""
        if P.source is Q.source and np.array_equal(P.index, Q.index):
            i, j = np.triu_indices(len(P))
            out[i, j] = out[j, i] = self._pairs(P, Q, i, j)
        else:
            i, j = np.indices(out.shape).reshape(2, -1)
            out[...] = self._pairs(P, Q, i, j).reshape(out.shape)

    def _diag_prepared(self, P: Prepared) -> np.ndarray:
        """Return k(p_i, p_i) for prepared points, shape (n,)."""
        i = np.arange(len(P))
        return self._pairs(P, P, i, i)

    def _pullback(self, X: Any, Z: Any, W: np.ndarray) -> dict[str, Any]:
        """Return {path: sum_ij W_ij dk(x_i, z_j) / d log parameter}."""
        raise NotDifferentiableError(
            f"{type(self).__name__} has no derivative with respect to its parameters; "
            f"wrap it as Fixed(...) to exclude them from the search"
        )

    def _linearise(self, X: Any, Z: Any) -> KernelLinearisation:
        return KernelLinearisation(self, X, Z)

    def _input_gradient(self, X: Any, Z: Any, W: np.ndarray) -> np.ndarray:
        """Return sum_j W_ij dk(x_i, z_j) / dx_i, shape (n, d)."""
        raise NotDifferentiableError(
            f"{type(self).__name__} has no derivative with respect to its points; "
            f"choose a method that does not need input_gradient"
        )

    def _float32_error_bound(self, P: Prepared) -> float | None:
        """Return a bound e on the relative error of tiles of these points in float32, or None.

        A bound e means that |float32 value - k| <= e k for every entry, with k >= 0.  None means
        that no bound is known.
        """
        return None

    @property
    def _has_float32_error_bound(self) -> bool:
        """Whether this node and all nodes below it implement `_float32_error_bound`."""
        implemented = type(self)._float32_error_bound is not Kernel._float32_error_bound
        return implemented and all(child._has_float32_error_bound for _, child in self._children())

    def _preimage(self, X: Any, C: np.ndarray) -> Any:
        """Return the points z_c that minimise |phi(z_c) - sum_i C_ic phi(x_i)|, by a formula.

        phi is the feature map of the kernel; z_c is the pre-image of column c of C.  Returns None
        if there is no formula, so that a search is needed.  If the formula is only approximate,
        `_preimage_method` is its name instead of "exact".  For a kernel with `_neighbours`, a
        search starts from the returned points.
        """
        return None

    _preimage_method: ClassVar[str] = "exact"

    def _neighbours(self, X: Any) -> Function[[Any], Any] | None:
        """Return a function that lists the neighbours of a structured point, or None.

        Neighbours differ from a point by one small change, such as one symbol of a string.  The
        search for pre-images moves from a point to one of its neighbours.  The points X determine
        which changes are possible: for strings, the symbols that occur in X.
        """
        return None

    def _inner_points(self, X: Any) -> Any:
        """Return the points on which the children are evaluated."""
        return X

    # Whether the distances in feature space depend only on the distances of the child kernels, as
    # for a sum of kernels.
    _preserves_distances: ClassVar[bool] = False

    @property
    def _has_linear_part(self) -> bool:
        """Whether a term such as <x, z> changes if all points are shifted, but no distance does."""
        return self._preserves_distances and any(c._has_linear_part for _, c in self._children())

    def _shifted_to_data(self, X: Any) -> Kernel:
        """Return a kernel whose feature-space distances are the same, but suffer less cancellation.

        The distance k(x, x) - 2 k(x, z) + k(z, z) loses digits if the points X are far from the
        origin relative to their spread.  Linear terms are therefore shifted to the centre of X.
        """
        if not self._has_linear_part:
            return self
        inner = self._inner_points(X)
        return self._with_children(
            {path: c._shifted_to_data(inner) for path, c in self._children()}
        )

    def _as_distance_kernel(self) -> Kernel:
        """Return a kernel with the same distances in feature space, computed from differences.

        <x, z> becomes -|x - z|^2 / 2.  This is only conditionally positive definite, and costs
        more than an inner product, but distances do not lose digits, however far the points are
        from the origin.
        """
        if not self._has_linear_part:
            return self
        return self._with_children({path: c._as_distance_kernel() for path, c in self._children()})

    def _with_children(self, children: dict[str, Kernel]) -> Kernel:
        """Return this node with other children, or itself if they are the same objects."""
        same = all(children[path] is child for path, child in self._children())
        return self if same else self._with(children)

    def _inner_weights(self, X: Any, weights: np.ndarray | None) -> np.ndarray | None:
        """Return the weights (or targets) of the points on which the children are evaluated."""
        return weights

    def _resolve_rules(self, X: Any, weights: np.ndarray | None) -> dict[str, Any]:
        """Return {field: value} with the values that replace rules, such as "median"."""
        return {}

    @property
    def _checks_training_points(self) -> bool:
        """Whether `_judge` of this kernel or of one of its parts checks the training points."""
        return any(child._checks_training_points for _, child in self._children())

    def _judge(self, X: Any) -> None:
        """Raise an error if nothing can be learned from these training points."""
        inner = self._inner_points(X)
        for _, child in self._children():
            if child._checks_training_points:
                child._judge(inner)

    @property
    def on_vectors(self) -> bool:
        """Whether the points must be rows of a matrix of numbers."""
        return (
            any(child.on_vectors for _, child in self._children()) and not self._selects_by_name()
        )

    def _selects_by_name(self) -> bool:
        """Whether a node of the expression selects columns of a table by name."""
        return any(child._selects_by_name() for _, child in self._children())

    @property
    def costly(self) -> bool:
        """Whether a single value is so expensive that it should be stored, not recomputed."""
        return any(child.costly for _, child in self._children())

    def _evaluation_work(self, entries: int, columns: int = 0) -> float:
        """Estimate the number of multiplications needed to compute `entries` entries of K.

        With `columns`, this includes the product of K with a matrix of that many columns.  The
        estimate determines whether to start threads.  It is infinite for costly kernels and for
        points that are not vectors, because these always justify a thread.
        """
        cheap = self.on_vectors and not self.costly
        return entries * (ENTRY_WORK + columns) if cheap else np.inf

    @property
    def accepts_matrix(self) -> bool:
        """Whether the points may be the rows of a numeric matrix, with finite entries."""
        return all(child.accepts_matrix for _, child in self._children())

    @property
    def discrete(self) -> bool:
        """Whether the points are discrete (sets, rankings), even if given as numeric rows."""
        return any(child.discrete for _, child in self._children())

    # ------------------------------------------------------------------ known properties

    def _properties(self, *inner: Properties) -> Properties:
        """Return the known properties of this node, given those of its children."""
        return Properties()

    @cached_property
    def properties(self) -> Properties:
        """The known properties of the kernel, such as its order, and the rule that proves them.

        They are derived from the kernel expression, without evaluating k.  If a user-defined
        subclass overrides methods, but not `_properties`, nothing is known about it.
        """
        if _changes_methods(type(self)):
            return Properties()
        return self._properties(*(child.properties for _, child in self._children()))

    @property
    def infinitely_divisible(self) -> bool:
        """Whether k**p is a Mercer kernel for every real p > 0."""
        return self.properties.infinitely_divisible

    @property
    def domain(self) -> str:
        """The kind of points that the kernel accepts, or "" if it is unknown.

        One of "vectors", "nonnegative" (vectors), "sets", "bags", "strings", "texts", "graphs",
        "rankings", "indices" and "collections" (of points).
        """
        kinds = {child.domain for _, child in self._children()} - {""}
        if kinds == {"vectors", "nonnegative"}:
            return "nonnegative"
        return kinds.pop() if len(kinds) == 1 else ""

    def validity(self, X: Any = None, *, order: int = 0, **options: Any) -> Validity:
        """Check whether this is a Mercer kernel: find a proof, a counterexample, or neither.

        Parameters
        ----------
        X : points, optional
            Example points with which the search for a counterexample starts; by default points
            are generated.
        order : int, default 0
            0 for a Mercer kernel; m to check for conditional positive definiteness of order m.
        **options
            Further options of `mercer.validity`.

        Returns
        -------
        Validity
            Its `status` is "proved", "refuted" or "unknown".

        Examples
        --------
        >>> from mercer.kernels import RBF, Sigmoid
        >>> (RBF() ** 0.5).validity().status, Sigmoid().validity().status
        ('proved', 'refuted')
        """
        from .validity import validity

        return validity(self, X, order=order, **options)

    @property
    def diagonal_bound(self) -> float:
        """An upper bound B on k(x, x) for all x; then |f(x)|^2 <= B |f|^2 for f in the RKHS.

        It is inf if no bound is known, or if k is only conditionally positive definite.
        """
        return np.inf

    @property
    def distinguishes_observations(self) -> bool:
        """Whether k(X, Z) can differ from k(X) for a copy Z of X, as for the noise of `White`."""
        return any(child.distinguishes_observations for _, child in self._children())

    claims = FormerAttribute("properties")
    reads_matrix = FormerAttribute("accepts_matrix")
    tells_observations_apart = FormerAttribute("distinguishes_observations")

    @property
    def pullback_in_tiles(self) -> bool:
        """Whether `pullback(X, Z, W)` is implemented for a Z that is not X."""
        return all(child.pullback_in_tiles for _, child in self._children())

    # ------------------------------------------------------------------ derivatives of k(x, x)

    def _diag_pullback(self, X: Any, w: np.ndarray) -> np.ndarray:
        """Return sum_i w_i dk(x_i, x_i) / d theta."""
        total = np.zeros(self.theta.size)
        for rows in slices(length(X), _DIAGONAL_BLOCK):
            total += self.pullback(take(X, rows), None, np.diag(w[rows]))
        return total

    def _diag_gradient(self, X: Any, w: np.ndarray) -> np.ndarray:
        """Return w_i d/dx_i k(x_i, x_i), by symmetry twice the derivative in one argument."""
        parts = [
            2.0 * self.input_gradient(take(X, rows), None, np.diag(w[rows]))
            for rows in slices(length(X), _DIAGONAL_BLOCK)
            or [slice(0)]  # an empty slice, so that the result has shape (0, d)
        ]
        return np.concatenate(parts)

    # ------------------------------------------------------------------ parameters

    @cached_property
    def _slots(self) -> dict[str, Any]:
        """Dictionary {path: parameter or child}, in the order of the fields; do not modify it."""
        slots: dict[str, Any] = {}
        for name, tunable in _fields(type(self)):
            value = getattr(self, name)
            if _is_kernel_tuple(value):
                slots |= {f"{name}__{i}": child for i, child in enumerate(value)}
            elif tunable or isinstance(value, Kernel):
                slots[name] = value
        return slots

    def _children(self) -> Iterator[tuple[str, Kernel]]:
        """Return the (path, kernel) pairs of the child kernels."""
        return ((path, v) for path, v in self._slots.items() if isinstance(v, Kernel))

    def _free(self) -> Iterator[tuple[str, np.ndarray]]:
        """Yield (path, entries of theta at this path) for every free parameter and every child."""
        self._require_resolved()
        for path, value in self._slots.items():
            if isinstance(value, Kernel):
                yield path, value._theta
            elif np.all((value := np.asarray(value, dtype=float)) > 0):
                yield path, np.log(np.ravel(value))  # a parameter that is 0 is not free

    def _with(self, changes: dict[str, Any]) -> Self:
        """Return this kernel with the new values {path: value} of parameters or children."""
        fields: dict[str, Any] = {}
        for path, value in changes.items():
            name, _, position = path.partition("__")
            if position:
                members = list(fields.get(name, getattr(self, name)))
                members[int(position)] = value
                value = tuple(members)
            fields[name] = value
        return dataclasses.replace(self, **fields)

    @cached_property
    def _parts(self) -> tuple[tuple[str, int], ...]:
        """The pairs (path, number of entries of theta at this path), in the order of `_free`."""
        return tuple((path, part.size) for path, part in self._free())

    @property
    def _n_free_parameters(self) -> int:
        """The number of entries of theta."""
        return sum(size for _, size in self._parts)

    @cached_property
    def _theta(self) -> np.ndarray:
        return np.concatenate([np.zeros(0), *(part for _, part in self._free())])

    @property
    def theta(self) -> np.ndarray:
        """The logarithms of the free parameters, in the order of `theta_names`, shape (p,)."""
        return self._theta.copy()

    @property
    def bounds(self) -> np.ndarray:
        """The bounds of `theta`, in log space, shape (p, 2)."""
        rows = [np.zeros((0, 2))]
        for path, part in self._free():
            if isinstance(value := self._slots[path], Kernel):
                rows.append(value.bounds)
            else:
                limits = self.__dataclass_fields__[path].metadata["bounds"]
                rows.append(np.tile(np.log(limits), (len(part), 1)))
        return np.concatenate(rows)

    @property
    def theta_names(self) -> list[str]:
        """The nested name of each entry of `theta`, with an index [i] for vector parameters."""
        names: list[str] = []
        for path, part in self._free():
            if isinstance(value := self._slots[path], Kernel):
                names += [f"{path}__{inner}" for inner in value.theta_names]
            else:
                names += [f"{path}[{i}]" for i in range(len(part))] if np.ndim(value) else [path]
        return names

    def with_theta(self, theta: Any) -> Self:
        """Return this kernel with its free parameters set to exp(theta)."""
        theta = np.asarray(theta, dtype=float)
        if theta.shape != (self._n_free_parameters,):
            raise ValueError(
                f"theta has shape {theta.shape}, but {self!r} has {self.theta.size} free "
                f"parameters: {self.theta_names}"
            )
        changes: dict[str, Any] = {}
        start = 0
        for path, size in self._parts:
            entries, value = theta[start : start + size], self._slots[path]
            start += size
            if isinstance(value, Kernel):
                changes[path] = value.with_theta(entries) if size else value
            else:
                new = np.exp(entries).tolist()
                changes[path] = tuple(new) if np.ndim(value) else new[0]
        result = self._with(changes)
        if theta.min(initial=0.0) > _MIN_LOG_PARAMETER:
            # No parameter became 0, so the same parameters are free, and the caches stay valid.
            result.__dict__.update(_parts=self._parts, _unresolved=[])
        return result

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return {field: value}; with `deep`, also the fields of children, as `child__field`."""
        params = dict(self._items())
        if deep:
            for name, child in self._children():
                params[name] = child
                params |= {f"{name}__{k}": v for k, v in child.get_params().items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Return a *new* kernel with these (possibly nested) parameters; kernels are immutable."""
        fields = {name: params.pop(name) for name, _ in self._items() if name in params}
        if fields:  # replace children first, then set the nested parameters of the new ones
            changed = dataclasses.replace(self, **fields)
            return changed.set_params(**params) if params else changed
        changes = dict(self._children())
        nested: dict[str, dict[str, Any]] = {path: {} for path in changes}
        for path, value in params.items():
            owner = next((c for c in nested if f"{path}__".startswith(f"{c}__")), None)
            if owner is None:
                raise ValueError(
                    f"Invalid parameter {path!r} for kernel {type(self).__name__}. "
                    f"Valid parameters are: {sorted(self.get_params())!r}."
                )
            if path == owner:
                changes[owner] = value
            else:
                nested[owner][path[len(owner) + 2 :]] = value
        updated = {
            path: changes[path].set_params(**inner) for path, inner in nested.items() if inner
        }
        return self._with(changes | updated)

    def __sklearn_clone__(self) -> Self:
        return self  # kernels are immutable, so a copy is not needed

    # ------------------------------------------------------------------ data-dependent values

    def resolve(
        self, X: Any, weights: np.ndarray | None = None, targets: np.ndarray | None = None
    ) -> Kernel:
        """Return this kernel with rules such as "median" replaced by their values on X.

        Estimators call this in `fit`.

        Parameters
        ----------
        X : n points
            The training points.
        weights : ndarray of shape (n,), optional
            The weights of the points: a point of weight 2 counts as two points, and a point of
            weight 0 is ignored.
        targets : ndarray of shape (n, q), optional
            The target values, used only by kernels that learn from targets (`MultipleKernel`).
        """
        if self._checks_training_points:
            self._judge(X)
        if not self._unresolved:
            return self
        if weights is not None and not np.all(weights):
            present = np.flatnonzero(weights)
            X, weights = take(X, present), weights[present]
            targets = None if targets is None else targets[present]
        inner = (X, weights, targets)
        if any(child._unresolved for _, child in self._children()):
            inner = (
                self._inner_points(X),
                self._inner_weights(X, weights),
                self._inner_weights(X, targets),
            )
        children = {path: child.resolve(*inner) for path, child in self._children()}
        resolved = self._with(self._resolve_rules(X, weights) | children)
        return resolved._learned(X, weights, targets)

    def _learned(self, X: Any, weights: np.ndarray | None, targets: np.ndarray | None) -> Kernel:
        """Return this kernel fitted to the data.

        This is called after `resolve` has replaced rules such as "median" by their values.  Only
        kernels that learn from data, such as `MultipleKernel`, override it.
        """
        return self

    def _without_targets(self) -> Kernel:
        """Return this kernel with parts that learn from targets replaced by parts that do not."""
        return self._with({path: child._without_targets() for path, child in self._children()})

    def _rules(self) -> list[str]:
        """Return the names of the fields of this node that hold a rule such as "median"."""
        return [name for name, value in self._slots.items() if isinstance(value, str)]

    @cached_property
    def _unresolved(self) -> list[str]:
        """The parameters that are still rules and need data, as strings "name=rule"."""
        own = [f"{name}={getattr(self, name)!r}" for name in self._rules()]
        return own + [name for _, child in self._children() for name in child._unresolved]

    def _require_resolved(self) -> None:
        """Raise ValueError if a parameter is still a rule such as "median"."""
        if self._unresolved:
            raise ValueError(
                f"{type(self).__name__} has {', '.join(self._unresolved)}, which must be computed "
                f"from data; call kernel.resolve(X) with the training points first (estimators do "
                f"this in fit)"
            )

    # ------------------------------------------------------------------ algebra

    def __add__(self, other: Any) -> Kernel:
        from .algebra._closure_rules import add

        return add(self, other)

    def __radd__(self, other: Any) -> Kernel:
        from .algebra._closure_rules import add

        return add(other, self)

    def __mul__(self, other: Any) -> Kernel:
        from .algebra._closure_rules import multiply

        return multiply(self, other)

    def __rmul__(self, other: Any) -> Kernel:
        from .algebra._closure_rules import multiply

        return multiply(other, self)

    def __pow__(self, exponent: Any) -> Kernel:
        from .algebra._closure_rules import Power

        return Power(self, exponent)

    # ------------------------------------------------------------------ pickling

    def __getstate__(self) -> dict[str, Any]:
        # The names of the cached properties, which are recomputed after loading.
        cached = ("_slots", "_parts", "_theta", "_unresolved", "properties")
        return {name: value for name, value in self.__dict__.items() if name not in cached}

    # ------------------------------------------------------------------ in notebooks

    # The formula of k(x, z) in LaTeX, where <name> is replaced by the value of the field `name`; if
    # it is "", the class name is shown instead.
    _latex: ClassVar[str] = ""

    def _repr_latex_(self) -> str:
        from .language import formula

        return rf"$\displaystyle {formula(self)}$"

    def _repr_html_(self) -> str:
        from .language import html_tree

        return f"<p>{escape(self._repr_latex_())}</p>{html_tree(self)}"

    # ------------------------------------------------------------------ checks

    def _check_weights(self, X: Any, Z: Any, W: Any) -> np.ndarray:
        """Return W as an array, after checking that it has the shape of k(X, Z)."""
        W = np.asarray(W)
        shape = (length(X), length(X if Z is None else Z))
        if W.shape != shape:
            raise ValueError(f"W has shape {W.shape}, but k(X, Z) has shape {shape}")
        return W


@cache
def _fields(kernel: type[Kernel]) -> tuple[tuple[str, bool], ...]:
    """Return (name, is_tunable) for each field of a kernel class."""
    return tuple((f.name, "bounds" in f.metadata) for f in dataclasses.fields(kernel))


@cache
def _changes_methods(kernel: type[Kernel]) -> bool:
    """Return True if a class outside of mercer overrides methods, but not `_properties`."""
    for cls in kernel.__mro__:
        if "_properties" in vars(cls) or cls.__module__.startswith("mercer."):
            return False
        members = {name: value for name, value in vars(cls).items() if not name.startswith("__")}
        if any(callable(value) or isinstance(value, property) for value in members.values()):
            return True
    return False


def _is_kernel_tuple(value: Any) -> bool:
    """Return True for a non-empty tuple of kernels."""
    return isinstance(value, tuple) and bool(value) and all(isinstance(v, Kernel) for v in value)
