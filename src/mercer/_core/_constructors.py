"""Constructors of dataclasses whose errors say which argument was probably meant."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from typing import Any, TypeVar, cast

T = TypeVar("T")
# A function of a class, an unknown keyword and its value, which returns a sentence, or "".
Advice = Callable[[type, str, Any], str]


def explain_arguments(cls: type[T], advice: Advice, order: Sequence[str] | None = None) -> type[T]:
    """Make the constructor of a class explain unknown, misspelled and surplus arguments.

    Parameters
    ----------
    cls : type
        The class, which is modified and returned.
    advice : callable
        ``advice(cls, name, value)`` returns a sentence that says what to write instead of the
        keyword `name`, or "" if nothing is known about it.
    order : sequence of str or None
        The order of the parameters in the signature, if it differs from the order of the fields.
        Only keyword-only parameters can change their position.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from mercer._core import explain_arguments
    >>> @dataclass
    ... class Model:
    ...     alpha: float = 1.0
    >>> Model = explain_arguments(Model, lambda cls, name, value: "")
    >>> try:
    ...     Model(alpa=2.0)
    ... except TypeError as error:
    ...     print(error)
    Model() got an unexpected keyword argument 'alpa'. Did you mean alpha?
    """
    construct: Any = cls.__init__
    signature = inspect.signature(construct)
    if order is not None:
        first, *others = signature.parameters.values()
        by_name = {parameter.name: parameter for parameter in others}
        signature = signature.replace(parameters=[first, *(by_name[name] for name in order)])

    @wraps(construct)
    def __init__(self: Any, *args: Any, **params: Any) -> None:
        try:
            construct(self, *args, **params)
        except TypeError:
            message = _mistake(type(self), list(signature.parameters.values())[1:], args, params)
            if message is None:
                raise
            text, unknown = message
            if unknown:
                text += " " + _remedy(type(self), signature, unknown, params[unknown], advice)
            raise TypeError(text) from None

    __init__.__signature__ = signature  # type: ignore[attr-defined]
    cast(Any, cls).__init__ = __init__
    return cls


def _mistake(
    cls: type,
    parameters: list[inspect.Parameter],
    args: tuple[Any, ...],
    params: Mapping[str, Any],
) -> tuple[str, str] | None:
    """Return a description of wrong arguments, and the unknown keyword; None if all are known."""
    known = {parameter.name for parameter in parameters}
    unknown = next((name for name in params if name not in known), None)
    if unknown is not None:
        return f"{cls.__name__}() got an unexpected keyword argument {unknown!r}.", unknown
    positional = [p.name for p in parameters if p.kind is not inspect.Parameter.KEYWORD_ONLY]
    if len(args) <= len(positional):
        return None
    rest = [p.name for p in parameters if p.name not in positional and p.name not in params]
    example = f", such as {'kernel' if 'kernel' in rest else rest[0]}=..." if rest else ""
    accepted = "no positional arguments"
    if positional:
        few = f"{len(positional)} positional argument" + "s" * (len(positional) > 1)
        accepted = f"at most {few} ({', '.join(positional)})"
    were = "1 was" if len(args) == 1 else f"{len(args)} were"
    advice = f". Pass other arguments by name{example}" if rest else ""
    return f"{cls.__name__}() takes {accepted}, but {were} given{advice}", ""


def _remedy(
    cls: type, signature: inspect.Signature, name: str, value: object, advice: Advice
) -> str:
    """Return a sentence that says what to write instead of an unknown keyword."""
    known = list(signature.parameters)[1:]
    if text := advice(cls, name, value):
        return text
    if similar := closest_name(name, known):
        return f"Did you mean {similar}?"
    if not known:
        return f"{cls.__name__} has no parameters"
    return f"The parameters of {cls.__name__} are: {', '.join(known)}"


def closest_name(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that a misspelled name probably means, or None.

    Examples
    --------
    >>> from mercer._core import closest_name
    >>> closest_name("nComponents", ["n_components", "kernel"])
    'n_components'
    """
    simple = {other.lower().replace("_", ""): other for other in known}
    found = difflib.get_close_matches(name.lower().replace("_", ""), simple, 1, cutoff=0.7)
    return simple[found[0]] if found else None


def first_known(names: Mapping[str, str], name: str, known: Iterable[str]) -> str | None:
    """Return the first known parameter whose synonyms in `names` contain `name`, or None.

    Parameters
    ----------
    names : mapping
        For each parameter, its names in other libraries, separated by spaces.
    name : str
        The name to look up.
    known : iterable of str
        The parameters that are possible.
    """
    return next((p for p in known if name.lower() in names.get(p, "").split()), None)


def short_repr(value: object) -> str:
    """Return the repr of a value in one line of at most 60 characters, for messages."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:57]}..."
