"""The contract of a kernel, written once for every node of the algebra.

A kernel is a frozen dataclass.  Each field is one of

    a parameter        made with `parameter(...)`: tunable, positive, seen in log space by `theta`
    a child            a Kernel, or a tuple of them
    an option          anything else

so that parameters, `theta`, equality, `repr` and resolution are walks over fields.  A node adds
only its mathematics, in six hooks:

    _prepare(X, like)           points made ready for tiles, once per operand
    _tile(P, Q, out)            out <- k(P, Q)
    _diag(X)                    k(x_i, x_i)
    _pullback(X, Z, W)          {path: sum_ij W_ij dk(x_i, z_j) / d log parameter}
    _input_gradient(X, Z, W)    sum_j W_ij dk(x_i, z_j) / dx_i
    _claims(*inner)             what is known of k from what is known of its children

A path is the name of a field, or `terms__0` for a member of the tuple `terms`.

A kernel whose values are expensive one by one (a dynamic programme, a Python function) says so by
`costly`, and evaluates single pairs in `_pairs(P, Q, i, j)`: a fit then asks for none twice.
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

from .._errors import NotDifferentiableError
from .._points import length, take
from .._runtime import ENTRY_WORK, entry_point, slices
from ._claims import Claims
from ._fields import Value, frozen_parameter, node
from ._linearised import Linearised
from ._prepared import Prepared, pair

if TYPE_CHECKING:
    from .validity import Validity

__all__ = ["Kernel", "node", "parameter"]

_ROWS = 1024  # rows of a block filled at a time, so that scratch stays small
_DIAGONAL = 64  # rows of a block of which only the diagonal is read
_VANISHES = -700.0  # below this logarithm a parameter may be 0 to rounding


def parameter(
    default: Any = dataclasses.MISSING, *, bounds: tuple[float, float] = (1e-5, 1e5)
) -> Any:
    """Declare a tunable positive field; `bounds` are those a search over it respects.

    Examples
    --------
    >>> from mercer.kernels import RBF, Kernel, node, parameter
    >>> class Tuned(RBF):
    ...     weight: float = parameter(1.0, bounds=(0.1, 10.0))
    >>> Tuned().theta_names
    ['length_scale']
    """
    return dataclasses.field(default=default, metadata={"bounds": bounds})


@entry_point
@node
class Kernel(Value, ABC):
    """A symmetric function k(x, z) of two points; see the module for the contract.

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

    __array_ufunc__ = None  # so that numpy.float64(2) * k reaches __rmul__

    def __post_init__(self) -> None:
        for name, tunable in _fields(type(self)):
            value = getattr(self, name)
            if tunable and not isinstance(value, (float, str, numbers.Number)):
                object.__setattr__(self, name, frozen_parameter(value))
        self._check()

    def _check(self) -> None:
        """Refuse fields that make no kernel."""
        return

    # ------------------------------------------------------------------ evaluation

    def __call__(self, X: Any, Z: Any = None) -> np.ndarray:
        """Return the block k(x_i, z_j), shape (n, m); with `Z=None` the matrix k(X, X)."""
        P, Q = pair(self, X, Z)
        out = np.empty((len(P), len(Q)), dtype=np.result_type(P.dtype, Q.dtype))
        for rows in slices(len(P), _ROWS):
            self._tile(P[rows], Q, out[rows])
        return out

    def diag(self, X: Any) -> np.ndarray:
        """Return k(x_i, x_i), shape (n,)."""
        self._require_resolved()
        return self._diag(X)

    def prepare(self, X: Any, like: Prepared | None = None) -> Prepared:
        """Return the points made ready for tiles; pass `like` to share another operand's frame."""
        self._require_resolved()
        return self._prepare(X, like)

    def tile(self, P: Prepared, Q: Prepared, out: np.ndarray) -> np.ndarray:
        """Fill `out` with k(P, Q) and return it."""
        self._tile(P, Q, out)
        return out

    def pullback(self, X: Any, Z: Any, W: np.ndarray) -> np.ndarray:
        """Return sum_ij W_ij dk(x_i, z_j) / d theta, aligned with `theta`.

        Reverse mode: the weights travel down the tree, and no (n, m, p) tensor exists.
        `Z=None` means the points X themselves.
        """
        if not self._freedom:
            return np.zeros(0)
        W = self._check_weights(X, Z, W)
        gradient = self._pullback(X, Z, W)
        return np.concatenate([np.ravel(gradient[path]) for path, _ in self._parts])

    def linearise(self, X: Any, Z: Any = None) -> Linearised:
        """Return the block k(X, Z) with its derivatives in theta; `Z=None` means X itself."""
        self._require_resolved()
        return self._linearise(X, Z)

    def input_gradient(self, X: Any, Z: Any, W: np.ndarray) -> np.ndarray:
        """Return sum_j W_ij dk(x_i, z_j) / dx_i, shape (n, d).

        Only the first argument of k moves, also for `Z=None`.  Where k has a kink at x_i = z_j
        (Laplacian, Matern(nu=0.5), ...) that pair contributes 0, the middle of its subgradients.
        """
        self._require_resolved()
        return self._input_gradient(X, Z, self._check_weights(X, Z, W))

    # ------------------------------------------------------------------ hooks

    def _prepare(self, X: Any, like: Prepared | None) -> Prepared:
        return Prepared((X,))

    @abstractmethod
    def _tile(self, P: Prepared, Q: Prepared, out: np.ndarray) -> None: ...

    def _diag(self, X: Any) -> np.ndarray:
        """Diagonals of small blocks: right for every kernel, and for some the only way."""
        P = self.prepare(X)
        out = np.empty(len(P), dtype=P.dtype)
        for rows in slices(len(P), _DIAGONAL):
            Pc = P[rows]
            out[rows] = self.tile(Pc, Pc, np.empty((len(Pc), len(Pc)), dtype=P.dtype)).diagonal()
        return out

    def _pairs(self, P: Prepared, Q: Prepared, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Return k(p_i, q_j) for a list of pairs: those of one point are a row of a tile."""
        values = np.empty(len(i), dtype=P.dtype)
        for point in np.unique(i):
            mine = i == point
            row = np.empty((1, int(mine.sum())), dtype=P.dtype)
            self._tile(P[[point]], Q[j[mine]], row)
            values[mine] = row[0]
        return values

    def _by_blocks(self, P: Prepared) -> bool:
        """Whether blocks of these points are evaluated faster than single pairs are looked up."""
        return False

    def _tile_by_pairs(self, P: Prepared, Q: Prepared, out: np.ndarray) -> None:
        """Fill a tile from `_pairs`; the points against themselves are symmetric: half of them."""
        if P.source is Q.source and np.array_equal(P.index, Q.index):
            i, j = np.triu_indices(len(P))
            out[i, j] = out[j, i] = self._pairs(P, Q, i, j)
        else:
            i, j = np.indices(out.shape).reshape(2, -1)
            out[...] = self._pairs(P, Q, i, j).reshape(out.shape)

    def _diag_prepared(self, P: Prepared) -> np.ndarray:
        """Return k(p_i, p_i) of points that are prepared."""
        i = np.arange(len(P))
        return self._pairs(P, P, i, i)

    def _pullback(self, X: Any, Z: Any, W: np.ndarray) -> dict[str, Any]:
        raise NotDifferentiableError(
            f"{type(self).__name__} has no derivative with respect to its parameters; "
            f"wrap it as Fixed(...) to leave them out of the search"
        )

    def _linearise(self, X: Any, Z: Any) -> Linearised:
        return Linearised(self, X, Z)

    def _input_gradient(self, X: Any, Z: Any, W: np.ndarray) -> np.ndarray:
        raise NotDifferentiableError(
            f"{type(self).__name__} has no derivative with respect to its points; "
            f"choose a method that does not need input_gradient"
        )

    def _single_error(self, P: Prepared) -> float | None:
        """Return e with |float32 tile - k| <= e k for these points and k >= 0; None: not known."""
        return None

    @property
    def _rounds(self) -> bool:
        """Whether `_single_error` knows anything, in this node and all below it."""
        own = type(self)._single_error is not Kernel._single_error
        return own and all(child._rounds for _, child in self._children())

    def _preimage(self, X: Any, C: np.ndarray) -> Any:
        """Return the z_c that minimise |phi(z) - sum_i C_ic phi(x_i)|, if there is a formula.

        None: there is none, and a search is needed.  If the formula only comes close, it has a
        name of its own in `_preimage_method`; a kernel with `_neighbours` returns here where the
        search through them begins.
        """
        return None

    _preimage_method: ClassVar[str] = "exact"

    def _neighbours(self, X: Any) -> Function[[Any], Any] | None:
        """Return a function that lists the points one small change away from a point.

        A search for pre-images takes these steps; X are points that may say which changes there
        are.  None: none are known.
        """
        return None

    def _inner_points(self, X: Any) -> Any:
        """Return the points on which the children are evaluated."""
        return X

    # Whether distances in feature space follow from those of the children, as those of a sum do.
    _keeps_distances: ClassVar[bool] = False

    @property
    def _has_linear_part(self) -> bool:
        """Whether a translation of the points changes k, but not its distances, in some term."""
        return self._keeps_distances and any(c._has_linear_part for _, c in self._children())

    def _about(self, X: Any) -> Kernel:
        """Return a kernel with the same distances in feature space, and smaller values.

        k(x, x) - 2 k(x, z) + k(z, z) cancels if points X are far from the origin compared with
        their spread.  Linear terms of such points are evaluated about the middle of X.
        """
        if not self._has_linear_part:
            return self
        inner = self._inner_points(X)
        return self._with_children({path: c._about(inner) for path, c in self._children()})

    def _by_differences(self) -> Kernel:
        """Return a kernel with the same distances in feature space, from differences of points.

        <x, z> becomes -|x - z|^2 / 2.  It is only conditionally positive definite, and costs more
        than an inner product, but no distance loses digits, wherever the points are.
        """
        if not self._has_linear_part:
            return self
        return self._with_children({path: c._by_differences() for path, c in self._children()})

    def _with_children(self, children: dict[str, Kernel]) -> Kernel:
        """Return this node over other children, or itself if they are the same objects."""
        same = all(children[path] is child for path, child in self._children())
        return self if same else self._with(children)

    def _inner_weights(self, X: Any, weights: np.ndarray | None) -> np.ndarray | None:
        """Return the weights, or the targets, of the points on which children are evaluated."""
        return weights

    def _resolve_own(self, X: Any, weights: np.ndarray | None) -> dict[str, Any]:
        """Return values for the own fields that depend on the data."""
        return {}

    @property
    def _judges(self) -> bool:
        """Whether there are training points that `_judge` refuses."""
        return any(child._judges for _, child in self._children())

    def _judge(self, X: Any) -> None:
        """Refuse training points from which nothing can be learned."""
        inner = self._inner_points(X)
        for _, child in self._children():
            if child._judges:
                child._judge(inner)

    @property
    def on_vectors(self) -> bool:
        """Whether the points must be rows of a matrix of numbers."""
        return any(child.on_vectors for _, child in self._children()) and not self._reads_names()

    def _reads_names(self) -> bool:
        """Whether a node inside selects columns of a table by their names."""
        return any(child._reads_names() for _, child in self._children())

    @property
    def costly(self) -> bool:
        """Whether single values cost so much that none should be computed twice."""
        return any(child.costly for _, child in self._children())

    def _evaluation_work(self, entries: int, columns: int = 0) -> float:
        """Return the multiplications that some entries of K and a product with columns take.

        Values of costly kernels, and of those on structured points, are always worth a thread.
        """
        cheap = self.on_vectors and not self.costly
        return entries * (ENTRY_WORK + columns) if cheap else np.inf

    @property
    def reads_matrix(self) -> bool:
        """Whether a matrix of numbers, if one is given, has rows of finite numbers as points."""
        return all(child.reads_matrix for _, child in self._children())

    @property
    def discrete(self) -> bool:
        """Whether points, even as rows of numbers, cannot be moved a little: sets, rankings."""
        return any(child.discrete for _, child in self._children())

    # ------------------------------------------------------------------ what is known

    def _claims(self, *inner: Claims) -> Claims:
        """Return what is known of this node, given what is known of its children."""
        return Claims()

    @cached_property
    def claims(self) -> Claims:
        """What is known of the kernel, and by which rule: a walk over the expression.

        Nothing is known of a class that changes methods of the one that makes the claims, unless
        it makes its own.
        """
        if _changes_methods(type(self)):
            return Claims()
        return self._claims(*(child.claims for _, child in self._children()))

    @property
    def infinitely_divisible(self) -> bool:
        """Whether k**p is a Mercer kernel for every real p > 0 (log k is then CPD)."""
        return self.claims.infinitely_divisible

    @property
    def domain(self) -> str:
        """What points are, "" if that is not known.

        "vectors", "nonnegative" (vectors), "sets", "bags", "strings", "texts", "graphs",
        "rankings", "indices" or "collections" (of points).
        """
        kinds = {child.domain for _, child in self._children()} - {""}
        if kinds == {"vectors", "nonnegative"}:
            return "nonnegative"
        return kinds.pop() if len(kinds) == 1 else ""

    def validity(self, X: Any = None, *, order: int = 0, **options: Any) -> Validity:
        """Tell whether this is a Mercer kernel: a proof, or a witness against it, or neither.

        See `mercer.validity` for the options.

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
        """A number that k(x, x) exceeds for no x: |f(x)|^2 is at most that times |f|^2.

        inf if none is known, or if the kernel is only conditionally positive definite.
        """
        return np.inf

    @property
    def tells_observations_apart(self) -> bool:
        """Whether k(X, Z) may differ from k(X) where Z equals X: noise belongs to observations."""
        return any(child.tells_observations_apart for _, child in self._children())

    @property
    def pullback_in_tiles(self) -> bool:
        """Whether pullback(X, Z, W) exists for two different collections of points."""
        return all(child.pullback_in_tiles for _, child in self._children())

    # ------------------------------------------------------------------ derivatives of k(x, x)

    def _diag_pullback(self, X: Any, w: np.ndarray) -> np.ndarray:
        """Return sum_i w_i dk(x_i, x_i) / d theta."""
        total = np.zeros(self.theta.size)
        for rows in slices(length(X), _DIAGONAL):
            total += self.pullback(take(X, rows), None, np.diag(w[rows]))
        return total

    def _diag_gradient(self, X: Any, w: np.ndarray) -> np.ndarray:
        """Return w_i d/dx_i k(x_i, x_i): by symmetry twice the derivative of one argument."""
        parts = [
            2.0 * self.input_gradient(take(X, rows), None, np.diag(w[rows]))
            for rows in slices(length(X), _DIAGONAL) or [slice(0)]  # no points have a width, too
        ]
        return np.concatenate(parts)

    # ------------------------------------------------------------------ parameters

    @cached_property
    def _slots(self) -> dict[str, Any]:
        """The parameters and children by their paths, in field order; not to be written to."""
        slots: dict[str, Any] = {}
        for name, tunable in _fields(type(self)):
            value = getattr(self, name)
            if _is_family(value):
                slots |= {f"{name}__{i}": child for i, child in enumerate(value)}
            elif tunable or isinstance(value, Kernel):
                slots[name] = value
        return slots

    def _children(self) -> Iterator[tuple[str, Kernel]]:
        return ((path, v) for path, v in self._slots.items() if isinstance(v, Kernel))

    def _free(self) -> Iterator[tuple[str, np.ndarray]]:
        """Yield (path, its part of theta) for every parameter and child that has one."""
        self._require_resolved()
        for path, value in self._slots.items():
            if isinstance(value, Kernel):
                yield path, value._theta
            elif np.all((value := np.asarray(value, dtype=float)) > 0):
                yield path, np.log(np.ravel(value))  # a parameter at 0 has no logarithm: it stays

    def _with(self, changes: dict[str, Any]) -> Self:
        """Return this kernel with other values at some paths."""
        fields: dict[str, Any] = {}
        for path, value in changes.items():
            name, _, place = path.partition("__")
            if place:
                family = list(fields.get(name, getattr(self, name)))
                family[int(place)] = value
                value = tuple(family)
            fields[name] = value
        return dataclasses.replace(self, **fields)

    @cached_property
    def _parts(self) -> tuple[tuple[str, int], ...]:
        """The paths of `_free`, each with the number of its entries of theta."""
        return tuple((path, part.size) for path, part in self._free())

    @property
    def _freedom(self) -> int:
        """The number of entries of theta."""
        return sum(size for _, size in self._parts)

    @cached_property
    def _theta(self) -> np.ndarray:
        return np.concatenate([np.zeros(0), *(part for _, part in self._free())])

    @property
    def theta(self) -> np.ndarray:
        """The logarithms of the free parameters, fields before later fields, depth first."""
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
        """The nested name of each entry of `theta`; entries of a vector carry their place."""
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
        if theta.shape != (self._freedom,):
            raise ValueError(
                f"theta has shape {theta.shape}, but {self!r} has {self.theta.size} free "
                f"parameters: {self.theta_names}"
            )
        changes: dict[str, Any] = {}
        start = 0
        for path, size in self._parts:
            mine, value = theta[start : start + size], self._slots[path]
            start += size
            if isinstance(value, Kernel):
                changes[path] = value.with_theta(mine) if size else value
            else:
                new = np.exp(mine).tolist()
                changes[path] = tuple(new) if np.ndim(value) else new[0]
        there = self._with(changes)
        if theta.min(initial=0.0) > _VANISHES:  # the same parameters are free: no second look
            there.__dict__.update(_parts=self._parts, _unresolved=[])
        return there

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the fields by name; with `deep`, also those of the children, joined by `__`."""
        params = dict(self._items())
        if deep:
            for name, child in self._children():
                params[name] = child
                params |= {f"{name}__{k}": v for k, v in child.get_params().items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Return a *new* kernel with these (possibly nested) parameters: kernels do not change."""
        own = {name: params.pop(name) for name, _ in self._items() if name in params}
        if own:  # a new child first, then what is said about its inside
            changed = dataclasses.replace(self, **own)
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
        inside = {
            path: changes[path].set_params(**inner) for path, inner in nested.items() if inner
        }
        return self._with(changes | inside)

    def __sklearn_clone__(self) -> Self:
        return self  # a value: nothing of it can be changed by its holder

    # ------------------------------------------------------------------ values that wait for data

    def resolve(
        self, X: Any, weights: np.ndarray | None = None, targets: np.ndarray | None = None
    ) -> Kernel:
        """Return this kernel with rules such as "median" replaced by their values on X.

        A point of weight 2 counts as two points, a point of weight 0 is absent.  Targets, (n, q),
        are for kernels that learn from them (`MultipleKernel`); no rule reads them.
        """
        if self._judges:
            self._judge(X)
        if not self._unresolved:
            return self
        if weights is not None and not np.all(weights):
            present = np.flatnonzero(weights)
            X, weights = take(X, present), weights[present]
            targets = None if targets is None else targets[present]
        inside = (X, weights, targets)
        if any(child._unresolved for _, child in self._children()):
            inside = (
                self._inner_points(X),
                self._inner_weights(X, weights),
                self._inner_weights(X, targets),
            )
        children = {path: child.resolve(*inside) for path, child in self._children()}
        known = self._with(self._resolve_own(X, weights) | children)
        return known._learned(X, weights, targets)

    def _learned(self, X: Any, weights: np.ndarray | None, targets: np.ndarray | None) -> Kernel:
        """Return what this kernel, whose rules are resolved, becomes when it has seen the data."""
        return self

    def _untaught(self) -> Kernel:
        """Return this kernel with rules that need no targets."""
        return self._with({path: child._untaught() for path, child in self._children()})

    def _rules(self) -> list[str]:
        """Return the names of the own fields that hold a rule, to be replaced by its value."""
        return [name for name, value in self._slots.items() if isinstance(value, str)]

    @cached_property
    def _unresolved(self) -> list[str]:
        """The parameters whose values still depend on data."""
        own = [f"{name}={getattr(self, name)!r}" for name in self._rules()]
        return own + [name for _, child in self._children() for name in child._unresolved]

    def _require_resolved(self) -> None:
        if self._unresolved:
            raise ValueError(
                f"{type(self).__name__} has {', '.join(self._unresolved)}, a rule that needs data; "
                f"call kernel.resolve(X) with the training points first (estimators do this in fit)"
            )

    # ------------------------------------------------------------------ algebra

    def __add__(self, other: Any) -> Kernel:
        from ._algebra import add

        return add(self, other)

    def __radd__(self, other: Any) -> Kernel:
        from ._algebra import add

        return add(other, self)

    def __mul__(self, other: Any) -> Kernel:
        from ._algebra import multiply

        return multiply(self, other)

    def __rmul__(self, other: Any) -> Kernel:
        from ._algebra import multiply

        return multiply(other, self)

    def __pow__(self, exponent: Any) -> Kernel:
        from ._algebra import Power

        return Power(self, exponent)

    # ------------------------------------------------------------------ values

    def __getstate__(self) -> dict[str, Any]:
        # at hand for speed, no part of the value
        kept = ("_slots", "_parts", "_theta", "_unresolved", "claims")
        return {name: value for name, value in self.__dict__.items() if name not in kept}

    # ------------------------------------------------------------------ in notebooks

    _latex: ClassVar[str] = ""  # k(x, z), with <name> for a field; "" to be written by its name

    def _repr_latex_(self) -> str:
        from .language import formula

        return rf"$\displaystyle {formula(self)}$"

    def _repr_html_(self) -> str:
        from .language import tree

        return f"<p>{escape(self._repr_latex_())}</p>{tree(self)}"

    # ------------------------------------------------------------------ checks

    def _check_weights(self, X: Any, Z: Any, W: Any) -> np.ndarray:
        W = np.asarray(W)
        shape = (length(X), length(X if Z is None else Z))
        if W.shape != shape:
            raise ValueError(f"W has shape {W.shape}, but k(X, Z) has shape {shape}")
        return W


@cache
def _fields(kernel: type[Kernel]) -> tuple[tuple[str, bool], ...]:
    """Return the names of the fields of a class, each with whether it is tunable."""
    return tuple((f.name, "bounds" in f.metadata) for f in dataclasses.fields(kernel))


@cache
def _changes_methods(kernel: type[Kernel]) -> bool:
    """Tell whether a class of somebody else changes methods, but not what is known of it."""
    for cls in kernel.__mro__:
        if "_claims" in vars(cls) or cls.__module__.startswith("mercer."):
            return False
        own = {name: value for name, value in vars(cls).items() if not name.startswith("__")}
        if any(callable(value) or isinstance(value, property) for value in own.values()):
            return True
    return False


def _is_family(value: Any) -> bool:
    return isinstance(value, tuple) and bool(value) and all(isinstance(v, Kernel) for v in value)
