"""Parameters of a tree of immutable nodes: names, logarithms, bounds and replacement.

Each field of a node is one of

    a parameter        declared with `parameter(...)`: positive and tunable; `theta`, the vector
                       that a parameter search changes, contains its logarithm
    a child            another node, or a tuple of nodes; `child(...)` declares one whose parameters
                       are treated in a special way
    an option          anything else; `option(...)` declares one whose value is checked, and
                       `data_dependent(...)` one that `resolve` may compute

The *path* of a parameter or child is the name of its field, or `terms__0` for the first member of
the tuple `terms`.  `theta`, `bounds`, `get_params` and `set_params` follow from the fields alone,
so that no subclass has to implement them.
"""

from __future__ import annotations

import dataclasses
import numbers
from abc import ABC
from collections.abc import Callable as Function
from collections.abc import Iterator
from functools import cache, cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import clone

from ._dataclass import Value
from ._parameter_checks import Check, frozen_parameter

_MIN_LOG_PARAMETER = -700.0  # exp() of a smaller logarithm may underflow to 0


def parameter(
    default: Any = dataclasses.MISSING,
    check: Check | None = None,
    *,
    bounds: tuple[float, float] = (1e-5, 1e5),
) -> Any:
    """Declare a positive, tunable parameter as a field of a kernel class.

    Parameters
    ----------
    default : float or str, optional
        The default value of the field.  Without it, the constructor requires a value.
    check : callable, optional
        `check(class_name, field_name, value)` raises an error if the value is invalid.  By default,
        values are not checked.
    bounds : tuple (low, high), default=(1e-5, 1e5)
        The interval in which a parameter search looks for the value.  Narrow it if values outside
        some range make no sense, such as a length scale below the precision of the data.

    Returns
    -------
    dataclasses.Field
        The declaration of the field; assign it in the body of a class with the decorator `node`.

    See Also
    --------
    node : The decorator of kernel classes.
    Fixed : Excludes the parameters of one kernel from a search.
    Bounded : Changes the bounds of one kernel.

    Examples
    --------
    >>> from mercer.kernels import RBF, node, parameter
    >>> @node
    ... class Tuned(RBF):
    ...     weight: float = parameter(1.0, bounds=(0.1, 10.0))
    >>> Tuned().theta_names
    ['length_scale', 'weight']
    """
    return dataclasses.field(default=default, metadata={"bounds": bounds, "check": check})


def option(default: Any, check: Check) -> Any:
    """Declare an option whose value is checked, as described for `parameter`."""
    return dataclasses.field(default=default, metadata={"check": check})


def data_dependent(default: Any, is_rule: Function[[Any], bool]) -> Any:
    """Declare an option whose value `resolve` computes from data if `is_rule(value)` is True."""
    return dataclasses.field(default=default, metadata={"is_rule": is_rule})


class ForeignParameters:
    """Gives a kernel of scikit-learn, stored in a field, the interface of a child node."""

    def __init__(self, value: Any) -> None:
        self.value = value

    @property
    def theta(self) -> np.ndarray:
        """The logarithms of the free parameters, shape (p,)."""
        return np.asarray(self.value.theta, dtype=float)

    @property
    def bounds(self) -> np.ndarray:
        """The bounds of `theta`, shape (p, 2)."""
        return np.asarray(self.value.bounds, dtype=float).reshape(-1, 2)

    @property
    def theta_names(self) -> list[str]:
        """The name of each entry of `theta`."""
        names: list[str] = []
        for h in self.value.hyperparameters:
            if not h.fixed:
                indices = [f"[{i}]" for i in range(h.n_elements)] if h.n_elements > 1 else [""]
                names += [f"{h.name}{index}" for index in indices]
        return names

    def with_theta(self, theta: np.ndarray) -> object:
        """Return a copy of the object with its free parameters set to exp(theta)."""
        return self.value.clone_with_theta(theta)

    def get_params(self) -> dict[str, Any]:
        """Return the parameters of the object by name."""
        params: dict[str, Any] = self.value.get_params()
        return params

    def set_params(self, **params: Any) -> object:
        """Return a copy of the object with these parameters."""
        return clone(self.value).set_params(**params)


class _ChildOptions(NamedTuple):
    """How the parameters of the child in one field are treated, see `child`."""

    free: bool = True
    limits: str = ""
    transparent: bool = False
    foreign: bool = False


def child(default: Any = dataclasses.MISSING, **options: Any) -> Any:
    """Declare a child whose parameters are treated in a special way.

    Parameters
    ----------
    default : object, optional
        The default value of the field.
    free : bool, default=True
        Whether the parameters of the child are part of `theta`.
    limits : str, default=""
        The name of a field that contains the bounds of the parameters of the child.
    transparent : bool, default=False
        Whether the parameters of the node are those of the child, with the same names.
    foreign : bool, default=False
        Whether the child is a Gaussian process kernel of scikit-learn.
    """
    return dataclasses.field(default=default, metadata={"child": _ChildOptions(**options)})


class _Layout(NamedTuple):
    """The fields of a class by their role."""

    names: tuple[str, ...]
    tunable: frozenset[str]
    children: dict[str, _ChildOptions]  # only the fields that are declared with `child`
    rules: dict[str, Function[[Any], bool]]  # only the fields declared with `data_dependent`
    transparent: str  # the name of the transparent child, or ""


@cache
def _layout(cls: type[ParameterTree]) -> _Layout:
    """Return the roles of the fields of a class."""
    fields = dataclasses.fields(cls)  # type: ignore[arg-type]
    children = {f.name: f.metadata["child"] for f in fields if "child" in f.metadata}
    return _Layout(
        tuple(f.name for f in fields),
        frozenset(f.name for f in fields if "bounds" in f.metadata),
        children,
        {f.name: f.metadata["is_rule"] for f in fields if "is_rule" in f.metadata},
        next((name for name, options in children.items() if options.transparent), ""),
    )


class ParameterTree(Value, ABC):
    """Base class of immutable nodes with parameters and children."""

    def __post_init__(self) -> None:
        for name in _layout(type(self)).tunable:
            value = getattr(self, name)
            if not isinstance(value, (float, str, numbers.Number)):
                object.__setattr__(self, name, frozen_parameter(value))
        super().__post_init__()

    # ------------------------------------------------------------------ fields

    @cached_property
    def _slots(self) -> dict[str, Any]:
        """Dictionary {path: parameter or child}, in the order of the fields; do not modify it."""
        layout = _layout(type(self))
        slots: dict[str, Any] = {}
        for name in layout.names:
            value = getattr(self, name)
            options = layout.children.get(name)
            if options is not None and options.foreign:
                slots[name] = ForeignParameters(value)
            elif _is_node_tuple(value):
                slots |= {f"{name}__{i}": each for i, each in enumerate(value)}
            elif name in layout.tunable or isinstance(value, ParameterTree):
                slots[name] = value
        return slots

    def _children(self) -> Iterator[tuple[str, Any]]:
        """Return the (path, node) pairs of the children."""
        return ((path, v) for path, v in self._slots.items() if isinstance(v, ParameterTree))

    def _options(self, path: str) -> _ChildOptions:
        """Return how the parameters of the child at this path are treated."""
        return _layout(type(self)).children.get(path, _ChildOptions())

    def _free(self) -> Iterator[tuple[str, np.ndarray]]:
        """Yield (path, entries of theta at this path) for every free parameter and every child."""
        self._require_resolved()
        for path, value in self._slots.items():
            if isinstance(value, ParameterTree):
                if self._options(path).free:
                    yield path, value._theta
            elif isinstance(value, ForeignParameters):
                yield path, value.theta
            elif np.all((value := np.asarray(value, dtype=float)) > 0):
                yield path, np.log(np.ravel(value))  # a parameter that is 0 is not free

    def _with(self, changes: dict[str, Any]) -> Self:
        """Return this node with the new values {path: value} of parameters or children."""
        fields: dict[str, Any] = {}
        for path, value in changes.items():
            name, _, position = path.partition("__")
            if position:
                members = list(fields.get(name, getattr(self, name)))
                members[int(position)] = value
                value = tuple(members)
            fields[name] = value
        return dataclasses.replace(self, **fields)  # type: ignore[type-var]

    def _with_children(self, children: dict[str, Any]) -> Self:
        """Return this node with other children, or itself if they are the same objects."""
        same = all(self._slots[path] is new for path, new in children.items())
        return self if same else self._with(children)

    # ------------------------------------------------------------------ rules

    @cached_property
    def _unresolved(self) -> list[str]:
        """The fields that are still rules and need data, as strings "name=rule"."""
        own = [f"{name}={v!r}" for name, v in self._slots.items() if isinstance(v, str)]
        for name, is_rule in _layout(type(self)).rules.items():
            if is_rule(value := getattr(self, name)):
                own.append(f"{name}={value!r}")
        return own + [name for _, node in self._children() for name in node._unresolved]

    def _require_resolved(self) -> None:
        """Raise ValueError if a parameter is still a rule such as "median"."""
        if self._unresolved:
            raise ValueError(
                f"{type(self).__name__} has {', '.join(self._unresolved)}, which must be computed "
                f"from data; call kernel.resolve(X) with the training points first (estimators do "
                f"this in fit)"
            )

    # ------------------------------------------------------------------ theta

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
            if limits := self._options(path).limits:
                rows.append(self._bounds_from(limits, path))
            elif isinstance(value := self._slots[path], (ParameterTree, ForeignParameters)):
                rows.append(value.bounds)
            else:
                limits = self.__dataclass_fields__[path].metadata["bounds"]  # type: ignore[attr-defined]
                rows.append(np.tile(np.log(limits), (len(part), 1)))
        return np.concatenate(rows)

    def _bounds_from(self, field: str, path: str) -> np.ndarray:
        """Return the logarithms of the bounds that a field contains for the child at this path."""
        limits, node = np.log(np.asarray(getattr(self, field), dtype=float)), self._slots[path]
        p = node.theta.size
        if limits.ndim == 2 and len(limits) != p:
            raise ValueError(
                f"{type(self).__name__} has {len(limits)} pairs of {field} for the {p} parameters "
                f"{node.theta_names}"
            )
        return np.broadcast_to(limits, (p, 2))

    @property
    def theta_names(self) -> list[str]:
        """The nested name of each entry of `theta`, with an index [i] for vector parameters."""
        names: list[str] = []
        for path, part in self._free():
            if isinstance(value := self._slots[path], (ParameterTree, ForeignParameters)):
                prefix = "" if self._options(path).transparent else f"{path}__"
                names += [prefix + inner for inner in value.theta_names]
            else:
                names += [f"{path}[{i}]" for i in range(len(part))] if np.ndim(value) else [path]
        return names

    def with_theta(self, theta: Any) -> Self:
        """Return this kernel with its free parameters set to exp(theta).

        Parameter searches use it, because `theta` is unconstrained: the exponential of every number
        is a valid parameter.

        Parameters
        ----------
        theta : array-like of shape (p,)
            The logarithms of the free parameters, in the order of `theta_names`.

        Returns
        -------
        Kernel
            A new kernel of the same class; this one is not modified.

        Examples
        --------
        >>> import numpy as np
        >>> from mercer.kernels import RBF
        >>> k = RBF() + 1.0
        >>> k.theta_names
        ['terms__0__length_scale', 'terms__1__value']
        >>> k.with_theta(np.log([2.0, 3.0])).get_params()["terms__0__length_scale"]
        2.0
        """
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
            if isinstance(value, (ParameterTree, ForeignParameters)):
                if size:
                    changes[path] = value.with_theta(entries)
            else:
                new = np.exp(entries).tolist()
                changes[path] = tuple(new) if np.ndim(value) else new[0]
        result = self._with(changes)
        if theta.min(initial=0.0) > _MIN_LOG_PARAMETER:
            # No parameter became 0, so the same parameters are free, and the caches stay valid.
            result.__dict__.update(_parts=self._parts, _unresolved=[])
        return result

    # ------------------------------------------------------------------ parameters by name

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters of the kernel and of the kernels inside it, by name.

        This is the interface of scikit-learn, so that `GridSearchCV` can search over parameters of
        a kernel inside an estimator, for example as `kernel__length_scale`.

        Parameters
        ----------
        deep : bool, default=True
            Whether to include the parameters of child kernels, with names of the form
            `child__field`.

        Returns
        -------
        dict
            The values by name, {name: value}.

        Examples
        --------
        >>> from mercer.kernels import RBF
        >>> (2.0 * RBF()).get_params()
        {'kernel': RBF(length_scale=1.0), 'factor': 2.0, 'kernel__length_scale': 1.0}
        """
        if name := _layout(type(self)).transparent:
            inner: dict[str, Any] = self._slots[name].get_params(deep)
            return inner
        params = dict(self._items())
        if deep:
            for name, value in self._slots.items():
                if isinstance(value, ParameterTree):
                    params[name] = value
                if isinstance(value, (ParameterTree, ForeignParameters)):
                    params |= {f"{name}__{k}": v for k, v in value.get_params().items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Return a new kernel with other parameters.

        Unlike the method of estimators, it does not modify the object, because
        kernels are immutable.

        Parameters
        ----------
        **params : keyword arguments
            The new values by name.  The names are those of `get_params`, possibly nested, such as
            `kernel__length_scale`.

        Returns
        -------
        Kernel
            The new kernel.

        Raises
        ------
        ValueError
            If the kernel has no parameter of such a name.

        Examples
        --------
        >>> from mercer.kernels import RBF
        >>> (2.0 * RBF()).set_params(kernel__length_scale=0.5)
        2.0*RBF(length_scale=0.5)
        """
        if name := _layout(type(self)).transparent:
            return self._with({name: self._slots[name].set_params(**params)})
        fields = {name: params.pop(name) for name, _ in self._items() if name in params}
        if fields:  # replace children first, then set the nested parameters of the new ones
            changed = dataclasses.replace(self, **fields)  # type: ignore[type-var]
            return changed.set_params(**params) if params else changed
        changes: dict[str, Any] = {}
        nested: dict[str, dict[str, Any]] = {
            path: {}
            for path, value in self._slots.items()
            if isinstance(value, (ParameterTree, ForeignParameters))
        }
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
        for path, inner in nested.items():
            if inner:
                changes[path] = changes.get(path, self._slots[path]).set_params(**inner)
        return self._with(changes)


def _is_node_tuple(value: Any) -> bool:
    """Return True for a non-empty tuple of nodes."""
    return (
        isinstance(value, tuple)
        and bool(value)
        and all(isinstance(each, ParameterTree) for each in value)
    )
