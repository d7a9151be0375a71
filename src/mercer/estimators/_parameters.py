"""Declaration of estimator parameters, and decorators for the methods of estimators.

    gamma: float | str | None = parameter(POSITIVE, StrOptions({"scale", "auto"}), default="scale")

declares a constructor parameter with the constraints that scikit-learn checks before every fit.
The decorator `estimator` generates the constructor, as a dataclass does.  The description of a
parameter is written once, in the docstring of the class that declares it.  Subclasses inherit
parameters with their constraints and descriptions, and can override the default,
``gamma: float | str | None = None``, or the description.

The decorator `fit_method` is for methods that fit, and `predict_method` for methods of a fitted
estimator that may run in several threads.  Both call separate implementations for points in blocks
(out-of-core data).
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from numbers import Integral, Real
from typing import Any, Literal, TypeVar, dataclass_transform

import numpy as np
from sklearn.base import BaseEstimator, _fit_context
from sklearn.utils._param_validation import (
    Interval,
    StrOptions,
    validate_parameter_constraints,
)

from .._core import (
    MemoryBudgetError,
    Points,
    budget_in_bytes,
    entry_point,
    progress,
    reject_masked,
    resource_scope,
    thread_count,
)
from ..blocks import is_chunked
from ._blockwise import call_on_blocks, check_block_support

POSITIVE = Interval(Real, 0, None, closed="neither")
NON_NEGATIVE = Interval(Real, 0, None, closed="left")
POSITIVE_INTEGER = Interval(Integral, 1, None, closed="left")

_HASHABLE_TYPES = {str, int, float, bool, type(None), np.float64, np.int64}
_MAX_VALIDATED = 1000  # maximum size of `_validated`, which limits its memory
_validated: set[Any] = set()  # pairs (class, parameter values) that are known to be valid
_SECTION_TITLE = re.compile(r"^\w[\w ]*\n-{3,}\n", flags=re.M)
T = TypeVar("T")


def parameter(*constraints: Any, default: Any) -> Any:
    """Return the dataclass field of a constructor parameter with a default and constraints."""
    return dataclasses.field(default=default, metadata={"constraints": list(constraints)})


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
    return parameter(StrOptions({"auto", "exact", *names}), *given, default=default)


def exact_as_auto(spec: Any) -> Any:
    """Replace "exact" by "auto", for estimators whose "auto" chooses only exact solvers."""
    return "auto" if isinstance(spec, str) and spec == "exact" else spec


def fitted_attribute(*, init: Literal[False] = False) -> Any:
    """Return the dataclass field of a fitted attribute, which is not a constructor parameter."""
    return dataclasses.field(init=init)


@dataclass_transform(eq_default=False, field_specifiers=(parameter, solver, fitted_attribute))
def estimator(*, kw_only: bool = False) -> Callable[[type[T]], type[T]]:
    """Return a class decorator that adds a constructor with the declared parameters.

    The parameters are those that the class and its bases declare.  The decorator also completes
    the section "Parameters" of the docstring, and marks all public methods of the class and of
    its bases in mercer as entry points.

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
        constraints |= {n: f.metadata["constraints"] for n, f in fields.items() if f.metadata}
        cls._parameter_constraints = {name: constraints[name] for name in names}
        cls._defaults = {name: fields[name].default for name in sorted(names)}
        cls._get_param_names, cls._validate_params = classmethod(_parameter_names), _validate
        descriptions |= own_descriptions
        order = [
            *own_descriptions,
            *(name for name in names if name not in own_descriptions and name in descriptions),
        ]
        section = [
            "Parameters",
            "----------",
            *(_with_default(descriptions[n], fields[n]) for n in order),
        ]
        cls.__doc__ = "\n\n".join(filter(None, [before, "\n".join(section), after]))
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
    entries = re.split(r"\n(?=\S)", section.split("\n", 2)[2])
    return doc[: starts[0]].strip(), {e.split(" : ")[0]: e for e in entries}, after


def _with_default(entry: str, field: dataclasses.Field) -> str:
    """Return the description of a parameter with its default value in the first line."""
    head, _, body = entry.partition("\n")
    default = field.default
    shown = f'"{default}"' if isinstance(default, str) else repr(default)
    head = f"{head.split(', default=')[0]}, default={shown}"
    return f"{head}\n{body}" if body else head


def predict_method(method: Callable[..., Any]) -> Any:
    """Make a method of a fitted estimator run in `n_jobs` threads and accept data in blocks."""
    in_threads = _in_threads(method)

    @wraps(method)
    def run_method(self: Any, *args: Any, **params: Any) -> Any:
        X = (args or (params.get("X"),))[0]  # X may be passed by keyword
        if is_chunked(X):
            other_params = {name: value for name, value in params.items() if name != "X"}
            return call_on_blocks(self, method.__name__, X, *args[1:], **other_params)
        return in_threads(self, *args, **params)

    return run_method


def _in_threads(method: Callable[..., Any]) -> Any:
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


def _plan_of(model: Any, X: Points, y: Any = None, *_: Any, **__: Any) -> Any:
    """Return the plan of a fit; None if it is not available or the arguments are not valid."""
    with suppress(Exception), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.plan(X, y)
    return None


def fit_method(method: Callable[..., Any]) -> Any:
    """Decorate a method `fit(self, X, ...)`.

    The decorated method validates the parameters, limits memory reservations to `max_memory`,
    runs in `n_jobs` threads, and accepts points in blocks.

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

    checked = _fit_context(prefer_skip_nested_validation=True)(_in_threads(dispatch))

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

    return fit
