"""The contract of a kernel, written once for every node of the algebra.

A kernel is a frozen dataclass.  Each field is one of

    a parameter        made with `parameter(...)`: tunable, positive, seen in log space by `theta`
    a child            a Kernel, or a tuple of them
    an option          anything else

so that parameters, `theta`, equality, `repr` and resolution are walks over fields.  A node adds
only its mathematics, in five hooks:

    _prepare(X, like)           points made ready for tiles, once per operand
    _tile(P, Q, out)            out <- k(P, Q)
    _diag(X)                    k(x_i, x_i)
    _pullback(X, Z, W)          {field: sum_ij W_ij dk(x_i, z_j) / d log field}
    _input_gradient(X, Z, W)    sum_j W_ij dk(x_i, z_j) / dx_i

A kernel whose values are expensive one by one (a dynamic programme, a Python function) says so by
`costly`, and evaluates single pairs in `_pairs(P, Q, i, j)`: a fit then asks for none twice.
"""

from __future__ import annotations

import dataclasses
import itertools
import numbers
from abc import ABC, abstractmethod
from collections.abc import Callable as Function
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Self, TypeVar, dataclass_transform

import numpy as np

from .._errors import NotDifferentiableError
from .._points import length, take
from ._fields import brief, frozen_parameter, key, same, show
from ._prepared import Prepared, pair

__all__ = ["Kernel", "node", "parameter"]

T = TypeVar("T")

_ROWS = 1024  # rows of a block filled at a time, so that scratch stays small


@dataclass_transform(frozen_default=True, eq_default=False)
def node(cls: type[T]) -> type[T]:
    """Make `cls` a node: a frozen dataclass whose equality and repr come from Kernel."""
    return dataclass(frozen=True, eq=False, repr=False)(cls)


def parameter(
    default: Any = dataclasses.MISSING, *, bounds: tuple[float, float] = (1e-5, 1e5)
) -> Any:
    """Declare a tunable positive field; `bounds` are those a search over it respects."""
    return field(default=default, metadata={"bounds": bounds})


@node
class Kernel(ABC):
    """A symmetric function k(x, z) of two points; see the module for the contract."""

    __array_ufunc__ = None  # so that numpy.float64(2) * k reaches __rmul__

    def __post_init__(self) -> None:
        for f in dataclasses.fields(self):
            value = getattr(self, f.name)
            if "bounds" in f.metadata and not isinstance(value, (str, numbers.Number)):
                object.__setattr__(self, f.name, frozen_parameter(value))
        self._check()

    def _check(self) -> None:
        """Refuse fields that make no kernel."""
        return

    # ------------------------------------------------------------------ evaluation

    def __call__(self, X: Any, Z: Any = None) -> np.ndarray:
        """Return the block k(x_i, z_j), shape (n, m); with `Z=None` the matrix k(X, X)."""
        P, Q = pair(self, X, Z)
        out = np.empty((len(P), len(Q)), dtype=np.result_type(P.dtype, Q.dtype))
        for start in range(0, len(P), _ROWS):
            rows = slice(start, start + _ROWS)
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
        if not self._theta.size:
            return np.zeros(0)
        W = self._check_weights(X, Z, W)
        gradient = self._pullback(X, Z, W)
        return np.concatenate([np.ravel(gradient[name]) for name, _ in self._free()])

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
        for rows in _chunks(len(P)):
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

    def _input_gradient(self, X: Any, Z: Any, W: np.ndarray) -> np.ndarray:
        raise NotDifferentiableError(
            f"{type(self).__name__} has no derivative with respect to its points; "
            f"choose a method that does not need input_gradient"
        )

    def _single_error(self, P: Prepared) -> float | None:
        """Return e with |float32 tile - k| <= e k for these points and k >= 0; None: not known."""
        return None

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

    def _inner_weights(self, X: Any, weights: np.ndarray | None) -> np.ndarray | None:
        """Return the weights of the points on which the children are evaluated."""
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

    @property
    def reads_matrix(self) -> bool:
        """Whether a matrix of numbers, if one is given, has rows of finite numbers as points."""
        return all(child.reads_matrix for _, child in self._children())

    @property
    def discrete(self) -> bool:
        """Whether points, even as rows of numbers, cannot be moved a little: sets, rankings."""
        return any(child.discrete for _, child in self._children())

    @property
    def infinitely_divisible(self) -> bool:
        """Whether k**p is a Mercer kernel for every real p > 0 (log k is then CPD)."""
        return False

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
        for rows in _chunks(length(X)):
            total += self.pullback(take(X, rows), None, np.diag(w[rows]))
        return total

    def _diag_gradient(self, X: Any, w: np.ndarray) -> np.ndarray:
        """Return w_i d/dx_i k(x_i, x_i): by symmetry twice the derivative of one argument."""
        parts = [
            2.0 * self.input_gradient(take(X, rows), None, np.diag(w[rows]))
            for rows in [*_chunks(length(X))] or [slice(0)]  # no points have a width, too
        ]
        return np.concatenate(parts)

    # ------------------------------------------------------------------ parameters

    def _children(self) -> Iterator[tuple[str, Kernel]]:
        for f in dataclasses.fields(self):
            value = getattr(self, f.name)
            if isinstance(value, Kernel):
                yield f.name, value
            elif _is_family(value):
                yield from ((f"{f.name}__{i}", child) for i, child in enumerate(value))

    def _free(self) -> Iterator[tuple[str, np.ndarray]]:
        """Yield (field, its part of theta) for every field that has one, in field order."""
        self._require_resolved()
        for f in dataclasses.fields(self):
            value = getattr(self, f.name)
            if "bounds" in f.metadata:
                value = np.asarray(value, dtype=float)
                if np.all(value > 0):  # a parameter at 0 has no logarithm: it stays put
                    yield f.name, np.log(np.ravel(value))
            elif isinstance(value, Kernel):
                yield f.name, value._theta
            elif _is_family(value):
                yield f.name, np.concatenate([child._theta for child in value])

    @cached_property
    def _theta(self) -> np.ndarray:
        parts = [part for _, part in self._free()]
        return np.concatenate(parts) if parts else np.zeros(0)

    @property
    def theta(self) -> np.ndarray:
        """The logarithms of the free parameters, fields before later fields, depth first."""
        return self._theta.copy()

    @property
    def bounds(self) -> np.ndarray:
        """The bounds of `theta`, in log space, shape (p, 2)."""
        rows: list[np.ndarray] = []
        for name, part in self._free():
            value = getattr(self, name)
            if isinstance(value, Kernel):
                rows.append(value.bounds)
            elif _is_family(value):
                rows.extend(child.bounds for child in value)
            else:
                limits = next(f for f in dataclasses.fields(self) if f.name == name)
                rows.append(np.tile(np.log(limits.metadata["bounds"]), (len(part), 1)))
        return np.concatenate(rows) if rows else np.zeros((0, 2))

    @property
    def theta_names(self) -> list[str]:
        """The nested name of each entry of `theta`; entries of a vector carry their place."""
        names: list[str] = []
        for name, part in self._free():
            value = getattr(self, name)
            if isinstance(value, Kernel):
                names += [f"{name}__{inner}" for inner in value.theta_names]
            elif _is_family(value):
                names += [f"{name}__{i}__{s}" for i, c in enumerate(value) for s in c.theta_names]
            elif np.ndim(value) == 0:
                names.append(name)
            else:
                names += [f"{name}[{i}]" for i in range(len(part))]
        return names

    def with_theta(self, theta: Any) -> Self:
        """Return this kernel with its free parameters set to exp(theta)."""
        theta = np.asarray(theta, dtype=float)
        if theta.shape != self._theta.shape:
            raise ValueError(
                f"theta has shape {theta.shape}, but {self!r} has {self.theta.size} free "
                f"parameters: {self.theta_names}"
            )
        changes: dict[str, Any] = {}
        for name, part in self._free():
            mine, theta = theta[: len(part)], theta[len(part) :]
            value = getattr(self, name)
            if isinstance(value, Kernel):
                changes[name] = value.with_theta(mine)
            elif _is_family(value):
                ends = list(itertools.accumulate(c._theta.size for c in value))
                changes[name] = tuple(
                    c.with_theta(mine[end - c._theta.size : end])
                    for c, end in zip(value, ends, strict=True)
                )
            else:
                new = np.exp(mine)
                changes[name] = float(new[0]) if np.ndim(value) == 0 else tuple(new.tolist())
        return dataclasses.replace(self, **changes)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the fields by name; with `deep`, also those of the children, joined by `__`."""
        params: dict[str, Any] = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        if deep:
            for name, child in self._children():
                params[name] = child
                params |= {f"{name}__{k}": v for k, v in child.get_params().items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Return a *new* kernel with these (possibly nested) parameters: kernels do not change."""
        names = {f.name for f in dataclasses.fields(self)}
        changes = {path: value for path, value in params.items() if path in names}
        inside = {path: value for path, value in params.items() if path not in names}
        if changes and inside:  # a new child first, then what is said about its inside
            return dataclasses.replace(self, **changes).set_params(**inside)
        nested: dict[str, dict[str, Any]] = {}
        children = dict(self._children())
        for path, value in inside.items():
            # a child of a family is called `terms__0`: match the longest prefix
            owner = max(
                (c for c in children if (path + "__").startswith(c + "__")), default=None, key=len
            )
            if owner is None:
                raise ValueError(
                    f"Invalid parameter {path!r} for kernel {type(self).__name__}. "
                    f"Valid parameters are: {sorted(self.get_params())!r}."
                )
            nested.setdefault(owner, {})[path[len(owner) + 2 :]] = value
        for owner, inner in nested.items():
            child = inner.pop("", children[owner])
            child = child.set_params(**inner) if inner else child
            name, _, position = owner.partition("__")
            if position:
                family = list(changes.get(name, getattr(self, name)))
                family[int(position)] = child
                changes[name] = tuple(family)
            else:
                changes[name] = child
        return dataclasses.replace(self, **changes)

    def __sklearn_clone__(self) -> Self:
        return self  # a value: nothing of it can be changed by its holder

    # ------------------------------------------------------------------ values that wait for data

    def resolve(self, X: Any, weights: np.ndarray | None = None) -> Self:
        """Return this kernel with "scale", "auto" and "median" replaced by their values on X.

        A point of weight 2 counts as two points, one of weight 0 as none.
        """
        if self._judges:
            self._judge(X)
        if not self._unresolved:
            return self
        changes = self._resolve_own(X, weights)
        inner = X
        if any(child._unresolved for _, child in self._children()):
            inner, weights = self._inner_points(X), self._inner_weights(X, weights)
        for f in dataclasses.fields(self):
            value = getattr(self, f.name)
            if isinstance(value, Kernel):
                changes[f.name] = value.resolve(inner, weights)
            elif _is_family(value):
                changes[f.name] = tuple(child.resolve(inner, weights) for child in value)
        return dataclasses.replace(self, **changes)

    def _rules(self) -> list[str]:
        """Return the names of the own fields that hold a rule, to be replaced by its value."""
        return [
            f.name
            for f in dataclasses.fields(self)
            if "bounds" in f.metadata and isinstance(getattr(self, f.name), str)
        ]

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
        kept = ("_theta", "_unresolved")  # at hand for speed, no part of the value
        return {name: value for name, value in self.__dict__.items() if name not in kept}

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(
            same(getattr(self, f.name), getattr(other, f.name)) for f in dataclasses.fields(self)
        )

    def __hash__(self) -> int:
        return hash((type(self), *(key(getattr(self, f.name)) for f in dataclasses.fields(self))))

    def __repr__(self) -> str:
        inside = ", ".join(
            f"{f.name}={show(getattr(self, f.name))}" for f in dataclasses.fields(self)
        )
        return f"{type(self).__name__}({inside})"

    def __str__(self) -> str:
        inside = ", ".join(
            f"{f.name}={brief(getattr(self, f.name))}" for f in dataclasses.fields(self)
        )
        return f"{type(self).__name__}({inside})"

    # ------------------------------------------------------------------ checks

    def _check_weights(self, X: Any, Z: Any, W: Any) -> np.ndarray:
        W = np.asarray(W)
        shape = (length(X), length(X if Z is None else Z))
        if W.shape != shape:
            raise ValueError(f"W has shape {W.shape}, but k(X, Z) has shape {shape}")
        return W


def _chunks(n: int, size: int = 64) -> Iterator[slice]:
    return (slice(start, min(start + size, n)) for start in range(0, n, size))


def _is_family(value: Any) -> bool:
    return isinstance(value, tuple) and bool(value) and all(isinstance(v, Kernel) for v in value)
