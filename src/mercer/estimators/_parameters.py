"""Declaration of parameters and fitted attributes, and decorators for methods of estimators.

    gamma: float | str | None = parameter("positive", {"scale", "auto"}, default="scale")
    dual_coef_: np.ndarray = fitted(per_point=True)

The first line declares a constructor parameter with the constraints that scikit-learn checks before
every fit.  The decorator `estimator` generates the constructor, as a dataclass does.  The
description of a parameter is written once, in the docstring of the class that declares it.
Subclasses inherit parameters with their constraints and descriptions, and can override the default,
``gamma: float | str | None = None``, or the description.

The second line declares an attribute that `fit` sets.  All fitted attributes, also private ones,
are declared in the class that sets them.  The declarations determine what `mercer.save` stores, the
type checks of `mercer.load`, which attributes are removed before another fit, and which of them
`compress` and `to_primal` remove.

The decorator `fit_method` is for methods that fit, and `predict_method` for methods of a fitted
estimator that may run in several threads.  Both call separate implementations for points in blocks
(out-of-core data).
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import typing
import warnings
from collections.abc import Callable, Sized
from contextlib import suppress
from functools import cache, wraps
from numbers import Integral, Real
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, cast, dataclass_transform

import numpy as np
from sklearn.base import BaseEstimator, _fit_context
from sklearn.utils._param_validation import Interval, StrOptions, validate_parameter_constraints

from .._core import (
    MemoryBudgetError,
    Points,
    budget_in_bytes,
    entry_point,
    explain_arguments,
    progress,
    reject_masked,
    resource_scope,
    thread_count,
)
from ..blocks import is_chunked
from ..expansion import Expansion, Primal
from ._blockwise import call_on_blocks, check_block_support
from ._estimator_arguments import (
    estimator_argument_advice,
    signature_order,
    unknown_option_error,
)

# Constraints of numbers, by the names that `parameter` accepts.
_NUMBERS = {
    "finite": Interval(Real, None, None, closed="neither"),
    "positive": Interval(Real, 0, None, closed="neither"),
    "positive or infinite": Interval(Real, 0, None, closed="right"),
    "non-negative": Interval(Real, 0, None, closed="left"),
    "fraction": Interval(Real, 0, 1, closed="right"),
    "positive integer": Interval(Integral, 1, None, closed="left"),
    "non-negative integer": Interval(Integral, 0, None, closed="left"),
}

# Types of fitted attributes.  The second argument of `Annotated` is the type that `load` checks.
FittedPoints: TypeAlias = Annotated[Any, Sized]  # points of any kind
FittedFunction: TypeAlias = Annotated[Any, Expansion | Primal]  # a Primal after `to_primal`
NumberOrArray: TypeAlias = Annotated[
    Any, float | np.ndarray
]  # an array if there are several targets

_HASHABLE_TYPES = {str, int, float, bool, type(None), np.float64, np.int64}
_MAX_VALIDATED = 1000  # maximum size of `_validated`, which limits its memory
_validated: set[Any] = set()  # pairs (class, parameter values) that are known to be valid
_SECTION_TITLE = re.compile(r"^\w[\w ]*\n-{3,}\n", flags=re.M)
T = TypeVar("T")
Method: TypeAlias = Callable[..., Any]
F = TypeVar("F", bound=Method)


def parameter(*constraints: Any, default: Any) -> Any:
    """Return the dataclass field of a constructor parameter with a default and constraints.

    A constraint is one that scikit-learn defines, a name such as "positive", or a set of strings.
    """
    checked = [_as_constraint(constraint) for constraint in constraints]
    return dataclasses.field(default=default, metadata={"constraints": checked})


def _as_constraint(constraint: Any) -> Any:
    """Return the constraint of scikit-learn that a name or a set of strings stands for."""
    if isinstance(constraint, set):
        return StrOptions(constraint)
    return _NUMBERS.get(constraint, constraint) if isinstance(constraint, str) else constraint


def solver(*names: str, given: Any = (), default: str = "auto") -> Any:
    """Return the field of a solver parameter.

    Parameters
    ----------
    names : str
        Names of solvers that are allowed in addition to "auto" and "exact".
    given : sequence of constraints
        Constraints for solver objects that are allowed, such as their classes.
    default : str
        The default, usually "auto".

    Notes
    -----
    In every estimator, "exact" never approximates, and "auto" warns if it chooses an
    approximation.
    """
    return parameter({"auto", "exact", *names}, *given, default=default)


def exact_as_auto(spec: Any) -> Any:
    """Replace "exact" by "auto", for estimators whose "auto" chooses only exact solvers."""
    return "auto" if isinstance(spec, str) and spec == "exact" else spec


def fitted(*, per_point: bool = False, init: Literal[False] = False) -> Any:
    """Return the dataclass field of a fitted attribute, which is not a constructor parameter.

    Parameters
    ----------
    per_point : bool
        Whether the attribute refers to individual training points, so that it is not valid for
        the models that `compress` and `to_primal` return.
    init : False
        For type checkers: the constructor has no such parameter.
    """
    return dataclasses.field(init=init, metadata={"per_point": per_point})


@cache
def fitted_names(cls: type, *, per_point: bool = False) -> tuple[str, ...]:
    """Return the names of the declared fitted attributes of an estimator class.

    If `per_point` is True, only those that refer to individual training points are returned.
    Attributes that a subclass computes by a property instead are left out.
    """
    fields = {f.name: f.metadata for f in getattr(cls, "__dataclass_fields__", {}).values()}
    return tuple(
        name
        for name, metadata in fields.items()
        if metadata.get("per_point", None) in ({True} if per_point else {True, False})
        and not isinstance(getattr(cls, name, None), property)
    )


@cache
def fitted_types(cls: type) -> dict[str, Any]:
    """Return the declared fitted attributes of an estimator class, with their types."""
    hints = typing.get_type_hints(cls, include_extras=True)
    return {name: hints[name] for name in fitted_names(cls)}


def remove_fitted(model: BaseEstimator, *kept: str, per_point: bool = False) -> dict[str, Any]:
    """Delete the fitted attributes, or only those that refer to individual training points.

    Returns the deleted attributes.  Attributes in `kept` are not deleted.
    """
    cls: type = type(model)
    state, names = vars(model), fitted_names(cls, per_point=per_point)
    return {name: state.pop(name) for name in names if name in state and name not in kept}


@dataclass_transform(eq_default=False, field_specifiers=(parameter, solver, fitted))
def estimator(*, kw_only: bool = False) -> Callable[[type[T]], type[T]]:
    """Return a class decorator that adds a constructor with the declared parameters.

    The parameters are those that the class and its bases declare.  The decorator also completes
    the sections "Parameters" and "Attributes" of the docstring, and marks all public methods of the
    class and of its bases in mercer as entry points.

    Examples
    --------
    >>> from mercer.estimators._parameters import estimator, parameter
    >>> @estimator(kw_only=True)
    ... class Base:
    ...     '''A base.
    ...
    ...     Parameters
    ...     ----------
    ...     rank : int
    ...         Number of landmarks.
    ...     '''
    ...
    ...     rank: int = parameter(int, default=10)
    >>> @estimator()
    ... class Model(Base):
    ...     '''A model.'''
    ...
    ...     rank: int = 20
    >>> Model(3).rank, Model._parameter_constraints
    (3, {'rank': [<class 'int'>]})
    >>> print(Model.__doc__[-47:])
    rank : int, default=20
        Number of landmarks.
    """

    def decorate(cls: Any) -> Any:
        bases: list[Any] = [b for b in cls.__mro__[:0:-1] if dataclasses.is_dataclass(b)]
        descriptions: dict[str, str] = {}
        constraints: dict[str, list[Any]] = {}
        for base in bases:
            descriptions |= _split_docstring(base.__doc__)[1]
            constraints |= base._parameter_constraints
        before, own_descriptions, after = _split_docstring(cls.__doc__)
        cls = dataclasses.dataclass(eq=False, repr=False, kw_only=kw_only)(cls)
        fields = {f.name: f for f in dataclasses.fields(cls)}
        names = list(inspect.signature(cls).parameters)
        constraints |= {
            n: f.metadata["constraints"] for n, f in fields.items() if "constraints" in f.metadata
        }
        cls._parameter_constraints = {name: constraints[name] for name in names}
        cls._defaults = {name: fields[name].default for name in sorted(names)}
        cls._get_param_names, cls._validate_params = classmethod(_parameter_names), _validate
        descriptions |= own_descriptions
        order = [
            *own_descriptions,
            *(name for name in names if name not in own_descriptions and name in descriptions),
        ]
        section = [_with_default(descriptions[n], fields[n]) for n in order]
        section = ["Parameters", "----------", *section] if section else []
        after = _with_inherited_attributes(cls, after, bases)
        cls.__doc__ = "\n\n".join(filter(None, [before, "\n".join(section), after]))
        positional = [
            p for p in inspect.signature(cls).parameters.values() if p.kind is not p.KEYWORD_ONLY
        ]
        order_in_signature = signature_order(names, len(positional))
        explain_arguments(cls, estimator_argument_advice, order_in_signature)
        return entry_point(cls)

    return decorate


def _parameter_names(cls: Any) -> list[str]:
    """Return the names of all parameters, faster than scikit-learn, which inspects signatures."""
    # Read the `__dict__` of the class, because a subclass may have a different constructor and
    # must not use the inherited attribute.
    defaults = cls.__dict__.get("_defaults")
    return BaseEstimator._get_param_names.__func__(cls) if defaults is None else list(defaults)


def _validate(self: Any) -> None:
    """Validate the parameters, except defaults and values that were validated before."""
    defaults = type(self).__dict__.get("_defaults", {})
    values = {name: getattr(self, name) for name in self._get_param_names()}
    values = {
        name: v for name, v in values.items() if name not in defaults or v is not defaults[name]
    }
    is_cacheable = all(type(value) in _HASHABLE_TYPES for value in values.values())
    key = (
        (type(self), *((name, type(v), v) for name, v in values.items())) if is_cacheable else None
    )
    if is_cacheable and key in _validated:
        return
    validate_parameter_constraints(self._parameter_constraints, values, type(self).__name__)
    if is_cacheable and len(_validated) < _MAX_VALIDATED:
        _validated.add(key)


def _split_docstring(doc: str | None) -> tuple[str, dict[str, str], str]:
    """Return the text before the parameters, a dict of their descriptions, and the text after."""
    doc = inspect.cleandoc(doc or "")
    starts = [title.start() for title in _SECTION_TITLE.finditer(doc)] + [len(doc)]
    section, _, after = doc[starts[0] :].partition("\n\n")
    if not section.startswith("Parameters\n"):
        return doc[: starts[0]].strip(), {}, doc[starts[0] :]
    return doc[: starts[0]].strip(), _entries(section), after


def _entries(section: str) -> dict[str, str]:
    """Return the entries of a section of a docstring by their names."""
    entries = re.split(r"\n(?=\S)", section.split("\n", 2)[2])
    return {entry.partition("\n")[0].split(" : ")[0]: entry for entry in entries}


def _with_inherited_attributes(cls: type, doc: str, bases: list[type]) -> str:
    """Add the descriptions of fitted attributes in base classes to the section "Attributes"."""
    pattern = r"^Attributes\n-{3,}\n.*?(?=\n\n|\Z)"
    sections = [re.search(pattern, base.__doc__ or "", re.M | re.S) for base in bases]
    inherited = {n: e for found in sections if found for n, e in _entries(found[0]).items()}
    own = re.search(pattern, doc, re.M | re.S)
    if own is None:
        return doc
    described = {name for names in _entries(own[0]) for name in names.split(", ")}
    missing = [
        entry
        for names, entry in inherited.items()
        if described.isdisjoint(names.split(", ")) and _has_attributes(cls, names.split(", "))
    ]
    return doc[: own.end()] + "".join(f"\n{entry}" for entry in missing) + doc[own.end() :]


def _with_default(entry: str, field: dataclasses.Field) -> str:
    """Return the description of a parameter with its default value in the first line."""
    head, _, body = entry.partition("\n")
    default = field.default
    shown = f'"{default}"' if isinstance(default, str) else repr(default)
    head = f"{head.split(', default=')[0]}, default={shown}"
    return f"{head}\n{body}" if body else head


def _has_attributes(cls: type, names: list[str]) -> bool:
    """Whether fits of a class set these attributes, or the class computes them by properties."""
    declared = fitted_names(cls)
    return all(n in declared or isinstance(getattr(cls, n, None), property) for n in names)


def predict_method(method: F) -> F:
    """Make a method of a fitted estimator run in `n_jobs` threads and accept data in blocks."""
    in_threads = _in_threads(method)
    signature = inspect.signature(method).parameters.values()
    known = {p.name for p in signature}
    takes_any = any(p.kind is p.VAR_KEYWORD for p in signature)

    @wraps(method)
    def run_method(self: Any, *args: Any, **params: Any) -> Any:
        if params and not takes_any and not params.keys() <= known:
            raise unknown_option_error(type(self), method.__name__, known, params)
        X = (args or (params.get("X"),))[0]  # X may be passed by keyword
        if is_chunked(X):
            other_params = {name: value for name, value in params.items() if name != "X"}
            return call_on_blocks(self, method.__name__, X, *args[1:], **other_params)
        return in_threads(self, *args, **params)

    return cast(F, run_method)


def _in_threads(method: Method) -> Method:
    """Make a method reject masked arrays and run in `n_jobs` threads."""

    @wraps(method)
    def run(self: Any, *args: Any, **params: Any) -> Any:
        named = zip(("X", "y", "sample_weight"), args, strict=False)
        for name, value in (*named, *params.items()):
            reject_masked(value, name)
        count = getattr(self, "n_jobs", None)
        if count == 0:
            raise ValueError("n_jobs == 0 is not allowed; use None or -1 for all processors")
        if count is not None and count < 0:
            count = max(1, thread_count() + 1 + count)
        with resource_scope(n_threads=count):
            return method(self, *args, **params)

    return run


# Attributes that scikit-learn's validation sets; they belong to the fitted state.
_COLUMN_ATTRIBUTES = ("n_features_in_", "feature_names_in_")


def _replacing(method: Method) -> Method:
    """Make `fit` remove the attributes of an earlier fit, and restore them if it fails.

    A fit with `warm_start` starts at the earlier result.  Methods such as `partial_fit` update it.
    """
    if method.__name__ not in ("fit", "fit_transform"):
        return method

    @wraps(method)
    def replace_fitted(self: Any, *args: Any, **params: Any) -> Any:
        state, continues = vars(self), getattr(self, "warm_start", False)
        earlier = {name: state[name] for name in _COLUMN_ATTRIBUTES if name in state}
        earlier |= {} if continues else remove_fitted(self)
        try:
            return method(self, *args, **params)
        except BaseException:
            if not continues:
                remove_fitted(self)
            for name in _COLUMN_ATTRIBUTES:
                state.pop(name, None)
            if getattr(self, "_restores_failed_fit", True):
                state.update(earlier)
            raise

    return replace_fitted


def _plan_of(model: Any, X: Points, y: object = None, *_: Any, **__: Any) -> Any:
    """Return the plan of a fit; None if it is not available or the arguments are not valid."""
    with suppress(Exception), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return model.plan(X, y)
    return None


def fit_method(method: F) -> F:
    """Decorate a method `fit(self, X, ...)`.

    The decorated method validates the parameters, limits memory reservations to `max_memory`,
    runs in `n_jobs` threads, and accepts points in blocks.  It replaces all fitted attributes of an
    earlier fit; if it fails, they are restored.

    Examples
    --------
    >>> from sklearn.base import BaseEstimator
    >>> from mercer.estimators._parameters import fit_method
    >>> class Mean(BaseEstimator):
    ...     _parameter_constraints = {}
    ...     @fit_method
    ...     def fit(self, X):
    ...         return sum(X) / len(X)
    >>> Mean().fit([1.0, 2.0])
    1.5
    """

    @wraps(method)
    def dispatch(self: Any, X: Points, *args: Any, **params: Any) -> Any:
        if not is_chunked(X):
            return method(self, X, *args, **params)
        X = check_block_support(self, method.__name__, X)
        if method.__name__ == "fit_transform":  # computed lazily, one block at a time
            return self.fit(X, *args, **params).transform(X)
        if not args and "y" not in params:
            params["y"] = None  # so that an error says that targets are needed
        return method(self, X, *args, **params)

    checked = _fit_context(prefer_skip_nested_validation=True)(_in_threads(_replacing(dispatch)))

    @wraps(method)
    def fit(self: Any, X: Points, *args: Any, **params: Any) -> Any:
        budget = getattr(self, "max_memory", None)
        budget_in_bytes(budget)  # raises an error if max_memory is not a valid size
        reporting = progress(type(self).__name__, getattr(self, "verbose", False))
        with resource_scope(budget), reporting as log:
            if method.__name__ != "fit":
                return checked(self, X, *args, **params)
            if log is not None and (plan := _plan_of(self, X, *args, **params)) is not None:
                log(plan.summary)
            try:
                return checked(self, X, *args, **params)
            except MemoryBudgetError as error:
                plan = _plan_of(self, X, *args, **params)
                if plan is None or str(plan) in str(error):
                    raise
                raise MemoryBudgetError(f"{error}\n{plan}") from error

    return cast(F, fit)
