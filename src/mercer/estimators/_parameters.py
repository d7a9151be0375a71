"""Parameters of estimators, each declared and described once, and the doors that check them.

    gamma: float | str | None = parameter(POSITIVE, StrOptions({"scale", "auto"}), default="scale")

is a field of an estimator, with the constraints that scikit-learn checks before every fit; its
words stand in the docstring of the same class.  `estimator` makes the constructor, as a dataclass
does.  A class inherits the parameters of its bases with their constraints and words, and may give
another default, ``gamma: float | str | None = None``, or other words.

`fitting` is the door of every fit, `threaded` that of every answer that takes long.  At both
of them points in blocks take another way.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable
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

from .._points import refuse_masked
from .._runtime import (
    budget_in_bytes,
    entry_point,
    progress,
    reserving,
    thread_count,
    threads,
)
from ..blocks import in_blocks
from ._in_blocks import answered, fitted

__all__ = ["AT_LEAST_0", "COUNT", "POSITIVE", "by_size", "estimator"]
__all__ += ["fitting", "learned", "parameter", "solver", "threaded"]

POSITIVE = Interval(Real, 0, None, closed="neither")
AT_LEAST_0 = Interval(Real, 0, None, closed="left")
COUNT = Interval(Integral, 1, None, closed="left")

_PLAIN = {str, int, float, bool, type(None), np.float64, np.int64}
_MOST_PASSED = 1000
_passed: set[Any] = set()  # classes with parameters that were found to be what they may be
_TITLE = re.compile(r"^\w[\w ]*\n-{3,}\n", flags=re.M)
T = TypeVar("T")


def parameter(*constraints: Any, default: Any) -> Any:
    """Return a field with a default and constraints."""
    return dataclasses.field(default=default, metadata={"constraints": list(constraints)})


def solver(*names: str, given: Any = (), default: str = "auto") -> Any:
    """Return the field of a solver: "auto", "exact", one of these names, or a solver itself.

    "exact" is never approximate.  "auto" is not either, or warns when it is.
    """
    return parameter(StrOptions({"auto", "exact", *names}), *given, default=default)


def by_size(spec: Any) -> Any:
    """Return what "exact" stands for where "auto" is exact and chooses by size: "auto"."""
    return "auto" if isinstance(spec, str) and spec == "exact" else spec


def learned(*, init: Literal[False] = False) -> Any:
    """Return the field of an attribute that only a fit sets."""
    return dataclasses.field(init=init)


@dataclass_transform(eq_default=False, field_specifiers=(parameter, solver, learned))
def estimator(*, kw_only: bool = False) -> Callable[[type[T]], type[T]]:
    """Make a class an estimator with the parameters that it and its bases declare.

    All public methods of the class and of its bases in mercer become entry points.

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
    ...         How many landmarks.
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
    >>> print(Model.__doc__[-46:])
    rank : int, default=20
        How many landmarks.
    """

    def made(cls: Any) -> Any:
        bases: list[Any] = [b for b in cls.__mro__[:0:-1] if dataclasses.is_dataclass(b)]
        words: dict[str, str] = {}
        constraints: dict[str, list[Any]] = {}
        for base in bases:
            words |= _parts(base.__doc__)[1]
            constraints |= base._parameter_constraints
        before, own, after = _parts(cls.__doc__)
        cls = dataclasses.dataclass(eq=False, repr=False, kw_only=kw_only)(cls)
        fields = {f.name: f for f in dataclasses.fields(cls)}
        names = list(inspect.signature(cls).parameters)
        constraints |= {n: f.metadata["constraints"] for n, f in fields.items() if f.metadata}
        cls._parameter_constraints = {name: constraints[name] for name in names}
        cls._defaults = {name: fields[name].default for name in sorted(names)}
        cls._get_param_names, cls._validate_params = classmethod(_names), _validate
        words |= own
        order = [*own, *(name for name in names if name not in own and name in words)]
        section = ["Parameters", "----------", *(_entry(words[n], fields[n]) for n in order)]
        cls.__doc__ = "\n\n".join(filter(None, [before, "\n".join(section), after]))
        return entry_point(cls)

    return made


def _names(cls: Any) -> list[str]:
    """Return the names of all parameters, which scikit-learn reads from the signature each time."""
    known = cls.__dict__.get("_defaults")  # not of a base: a subclass may have its own constructor
    return BaseEstimator._get_param_names.__func__(cls) if known is None else list(known)


def _validate(self: Any) -> None:
    """Check the parameters, but for those that have their defaults, or have passed before."""
    known = type(self).__dict__.get("_defaults", {})
    given = {name: getattr(self, name) for name in self._get_param_names()}
    given = {name: v for name, v in given.items() if name not in known or v is not known[name]}
    plain = all(type(value) in _PLAIN for value in given.values())
    key = (type(self), *((name, type(v), v) for name, v in given.items())) if plain else None
    if plain and key in _passed:
        return
    validate_parameter_constraints(self._parameter_constraints, given, type(self).__name__)
    if plain and len(_passed) < _MOST_PASSED:
        _passed.add(key)


def _parts(doc: str | None) -> tuple[str, dict[str, str], str]:
    """Return what stands before the parameters, their entries by name, and what stands after."""
    doc = inspect.cleandoc(doc or "")
    starts = [title.start() for title in _TITLE.finditer(doc)] + [len(doc)]
    section, _, after = doc[starts[0] :].partition("\n\n")
    if not section.startswith("Parameters\n"):
        return doc[: starts[0]].strip(), {}, doc[starts[0] :]
    entries = re.split(r"\n(?=\S)", section.split("\n", 2)[2])
    return doc[: starts[0]].strip(), {e.split(" : ")[0]: e for e in entries}, after


def _entry(words: str, field: dataclasses.Field) -> str:
    """Return an entry with the default in its first line."""
    head, _, body = words.partition("\n")
    default = field.default
    shown = f'"{default}"' if isinstance(default, str) else repr(default)
    head = f"{head.split(', default=')[0]}, default={shown}"
    return f"{head}\n{body}" if body else head


def threaded(method: Callable[..., Any]) -> Any:
    """Decorate an answer of an estimator: it runs in `n_jobs` threads; in blocks for blocks."""
    in_threads = _in_threads(method)

    @wraps(method)
    def answer(self: Any, *args: Any, **params: Any) -> Any:
        given = (args or (params.get("X"),))[0]  # X may be named
        if in_blocks(given):
            others = {name: value for name, value in params.items() if name != "X"}
            return answered(self, method.__name__, given, *args[1:], **others)
        return in_threads(self, *args, **params)

    return answer


def _in_threads(method: Callable[..., Any]) -> Any:
    @wraps(method)
    def run(self: Any, *args: Any, **params: Any) -> Any:
        named = zip(("X", "y", "sample_weight"), args, strict=False)
        for name, value in (*named, *params.items()):
            refuse_masked(value, name)
        count = getattr(self, "n_jobs", None)
        if count == 0:
            raise ValueError("n_jobs == 0 has no meaning; None or -1 stands for all processors")
        if count is not None and count < 0:
            count = max(1, thread_count() + 1 + count)
        with threads(count):
            return method(self, *args, **params)

    return run


def fitting(method: Callable[..., Any]) -> Any:
    """Decorate a method `fit(self, X, ...)`: it checks parameters and scopes the memory budget.

    Examples
    --------
    >>> from sklearn.base import BaseEstimator
    >>> from mercer.estimators._parameters import fitting
    >>> class Mean(BaseEstimator):
    ...     _parameter_constraints = {}
    ...     @fitting
    ...     def fit(self, X):
    ...         return sum(X) / len(X)
    >>> Mean().fit([1.0, 2.0])
    1.5
    """

    @wraps(method)
    def anywhere(self: Any, X: Any, *args: Any, **params: Any) -> Any:
        if in_blocks(X):
            return fitted(self, method.__name__, X, *args, **params)
        return method(self, X, *args, **params)

    checked = _fit_context(prefer_skip_nested_validation=True)(_in_threads(anywhere))

    @wraps(method)
    def fit(self: Any, X: Any, *args: Any, **params: Any) -> Any:
        budget = getattr(self, "max_memory", None)
        budget_in_bytes(budget)  # refuses what is no size
        speaks = progress(type(self).__name__, getattr(self, "verbose", False))
        with reserving(budget), speaks:
            return checked(self, X, *args, **params)

    return fit
