"""parse_kernel(): from text to kernels, without evaluating any of it as Python.

    expression  =  product {"+" product}
    product     =  power {"*" power}
    power       =  atom ["**" number]
    atom        =  number | string | constant | name ["(" arguments ")"]
                |  "(" expression ")" | "(" items ")" | "[" items "]" | "{" pairs "}"
    arguments   =  {[name "="] expression ","}

Operators do what they do in Python.  Every name is looked up in one table; what a text may ask
for is bounded by its length, the depth of its brackets and the height of the kernel.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable as Function
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from ..._errors import KernelSyntaxError
from .._algebra import add, multiply
from .._base import Kernel
from .._fields import Value, brief
from ._names import CONSTANTS, SHORT, meant, vocabulary
from ._tokens import Token, tokens

__all__ = ["parse_kernel"]

_DEPTH = 100  # of brackets inside brackets, and of kernels inside kernels
_CLOSING = {"(": ")", "[": "]", "{": "}"}


def parse_kernel(text: str, names: Mapping[str, Any] | None = None) -> Kernel:
    """Return the kernel that a text describes: the inverse of `repr`.

    The text is not evaluated as Python.  It may hold the kernels of `mercer.kernels` and their
    bases, scikit-learn's short names (`rbf`, `poly(degree=2)`), ``+ * **``, brackets, numbers,
    strings, tuples, lists, dictionaries, None, True, False and inf; and nothing else.

    Parameters
    ----------
    text : str
        At most 100 000 characters and 100 brackets deep.
    names : dict, optional
        Further names: kernel classes of your own, and functions for `Map`, `Callable`, ...

    Raises
    ------
    KernelSyntaxError
        A ValueError that points at the mistake, and at the nearest name.

    Examples
    --------
    >>> import mercer
    >>> mercer.parse_kernel("0.5*RBF(length_scale=2) + Polynomial(degree=2)")
    0.5*RBF(length_scale=2) + Polynomial(degree=2, coef0=1.0, gamma=1.0)
    >>> mercer.parse_kernel("0.5*gauss(2)")
    Traceback (most recent call last):
        ...
    mercer._errors.KernelSyntaxError: unknown name 'gauss'; did you mean RBF?
      0.5*gauss(2)
          ^
    """
    if not isinstance(text, str):
        raise TypeError(f"parse_kernel reads a text, got {type(text).__name__}")
    reader = _Reader(text, {**vocabulary(), **(names or {})})
    try:
        return reader.kernel()
    except RecursionError:
        raise KernelSyntaxError("too deep for the stack of the caller", text, 0) from None


class _Operand(NamedTuple):
    """A value, where its text begins, and how many kernels are nested in it."""

    value: Any
    at: int
    height: int = 0

    @property
    def is_number(self) -> bool:
        return isinstance(self.value, (int, float)) and not isinstance(self.value, bool)


class _Reader:
    """Reads one text, from left to right."""

    def __init__(self, text: str, names: dict[str, Any]) -> None:
        self.text, self.names = text, names
        self.tokens, self.place = tokens(text), 0
        self.depth = 0

    def kernel(self) -> Kernel:
        if self.next.kind == "end":
            raise self.error("the text is empty; write a kernel, such as RBF(length_scale=1.0)", 0)
        found = self.expression()
        if self.next.kind != "end":
            raise self.unexpected("an operator (+ * **) or the end")
        if isinstance(found.value, Kernel):
            return found.value
        advice = ""
        if found.is_number:
            advice = f"; write Constant({found.value})"
        elif isinstance(found.value, Value):
            advice = f"; write Features({type(found.value).__name__}(...))"
        raise self.error(f"{_short(found.value)} is not a kernel{advice}", found.at)

    # ------------------------------------------------------------------ tokens

    @property
    def next(self) -> Token:
        return self.tokens[self.place]

    def skip(self, sign: str) -> bool:
        """Step over a sign if it is the next token."""
        found = self.next.kind == "sign" and self.next.text == sign
        self.place += found
        return found

    def error(self, problem: str, at: int) -> KernelSyntaxError:
        return KernelSyntaxError(problem, self.text, at)

    def unexpected(self, wanted: str) -> KernelSyntaxError:
        token = self.next
        got = "the text ends" if token.kind == "end" else f"got {_short(token.text)}"
        hint = ""
        if token.text == "-":
            hint = "; a minus sign stands before a number only: k1 - k2 need not be a kernel"
        return self.error(f"expected {wanted}, but {got}{hint}", token.at)

    # ------------------------------------------------------------------ the grammar

    def expression(self) -> _Operand:
        """Read sums of products of powers."""
        terms = []
        while True:
            factors = [self.power()]
            while self.skip("*"):
                factors.append(self.power())
            terms.append(self.combined(multiply, "*", factors))
            if not self.skip("+"):
                return self.combined(add, "+", terms)

    def combined(self, make: Function[..., Any], sign: str, operands: list[_Operand]) -> _Operand:
        """Return what an operator makes of all its operands at once."""
        first, *others = operands
        if not others:
            return first
        for operand in operands:
            if not (operand.is_number or isinstance(operand.value, Kernel)):
                what = _short(operand.value)
                raise self.error(f"{sign} joins kernels and numbers, not {what}", operand.at)
        if first.is_number and others[0].is_number:
            raise self.error(
                f"two numbers beside {sign}: write the number that they make", first.at
            )
        numbers = sum(operand.is_number for operand in operands) if sign == "*" else 0
        several = len(operands) > numbers + 1
        height = max(operand.height for operand in operands) + numbers + several
        return self.made(first.at, height, make, *(operand.value for operand in operands))

    def power(self) -> _Operand:
        base = self.atom()
        if not self.skip("**"):
            return base
        if not isinstance(base.value, Kernel):
            raise self.error(f"** raises a kernel, not {_short(base.value)}", base.at)
        exponent = self.atom()
        if not exponent.is_number:
            raise self.error("the exponent has to be a number", exponent.at)
        if self.skip("**"):
            raise self.error("two powers in a row: use brackets, (k**2)**3", exponent.at)
        return self.made(base.at, base.height + 1, pow, base.value, exponent.value)

    def atom(self) -> _Operand:
        token = self.next
        if token.text in _CLOSING and token.kind == "sign":
            return self.brackets(token)
        if token.text == "-" and token.kind == "sign":
            self.place += 1
            number = self.atom() if self.next.kind == "number" or self.next.text == "inf" else None
            if number is None:
                raise self.error("a minus sign stands before a number only", token.at)
            return _Operand(-number.value, token.at)
        if token.kind in ("number", "string"):
            self.place += 1
            return _Operand(token.value, token.at)
        if token.kind == "name":
            self.place += 1
            return self.named(token)
        raise self.unexpected("a kernel, a number or an opening bracket")

    def named(self, token: Token) -> _Operand:
        """Read a constant, a call, a short name, or one of the caller's functions."""
        name = token.text
        called = self.next.kind == "sign" and self.next.text == "("
        if name in CONSTANTS and not called:
            return _Operand(CONSTANTS[name], token.at)
        if name not in self.names:
            hint = meant(name, self.names) or "; the names are those of mercer.kernels."
            if not called and self.depth:
                hint += " If it is a function, build the kernel in Python, or pass names={...}"
            raise self.error(f"unknown name {_short(name)}{hint}", token.at)
        target = self.names[name]
        if called and (isinstance(target, type) or name in SHORT):
            return self.call(token, target)
        if called:
            raise self.error(f"{name} is not a class of kernels, and is not called", token.at)
        if isinstance(target, type):
            raise self.error(f"{name} is a class; write {name}()", token.at)
        return self.made(token.at, 1, target) if name in SHORT else _Operand(target, token.at)

    def call(self, token: Token, target: Any) -> _Operand:
        """Read the arguments of a kernel and make it."""
        known = _parameters(target)
        values: list[Any] = []
        options: dict[str, Any] = {}
        height = 0
        for word, argument in self.items("(", keywords=True):
            height = max(height, argument.height)
            if word is None and options:
                raise self.error("a value without a name after one with a name", argument.at)
            if word is None:
                values.append(argument.value)
            elif word.text in options:
                raise self.error(f"{token.text} got {word.text} twice", word.at)
            elif known is None or word.text not in known.parameters:
                hint = meant(word.text, known.parameters if known else ())
                what = f"{token.text} has no parameter {_short(word.text)}"
                raise self.error(what + hint, word.at)
            else:
                options[word.text] = argument.value
        if known is not None:
            try:
                known.bind(*values, **options)
            except TypeError as error:
                raise self.error(f"{token.text}: {error}", token.at) from None
        return self.made(token.at, height + 1, target, *values, **options)

    def brackets(self, token: Token) -> _Operand:
        """Read an expression in brackets, a tuple, a list or a dictionary."""
        read = self.items(token.text, pairs=token.text == "{")
        comma = self.tokens[self.place - 2].text == ","
        height = max((operand.height for _, operand in read), default=0)
        if token.text == "{":
            pairs = [(key.value, operand.value) for key, operand in read]
            return self.made(token.at, height, dict, pairs)
        values = [operand.value for _, operand in read]
        if token.text == "[":
            return _Operand(values, token.at, height)
        if len(values) == 1 and not comma:
            return _Operand(values[0], token.at, height)
        return _Operand(tuple(values), token.at, height)

    def items(self, opening: str, *, keywords: bool = False, pairs: bool = False) -> list[Any]:
        """Read what stands between brackets: (its name or key or None, the operand)."""
        start, closing = self.next, _CLOSING[opening]
        self.place += 1
        self.depth += 1
        if self.depth > _DEPTH:
            raise self.error(f"more than {_DEPTH} brackets inside each other", start.at)
        found: list[Any] = []
        while not self.skip(closing):
            key: Any = None
            if keywords and self.next.kind == "name" and self.tokens[self.place + 1].text == "=":
                key = self.next
                self.place += 2
            elif pairs:
                key = self.expression()
                if not self.skip(":"):
                    raise self.unexpected("a colon")
            found.append((key, self.expression()))
            if not self.skip(",") and self.next.text != closing:
                raise self.unexpected(f"a comma or the {closing} of column {start.at + 1}")
        self.depth -= 1
        return found

    def made(self, at: int, height: int, make: Any, *values: Any, **options: Any) -> _Operand:
        """Return make(*values, **options); whatever it refuses is an error of the text."""
        if height > _DEPTH:
            raise self.error(f"more than {_DEPTH} kernels inside each other", at)
        try:
            return _Operand(make(*values, **options), at, height)
        except Exception as error:
            raise self.error(str(error) or type(error).__name__, at) from error


@lru_cache(256)
def _parameters(target: Any) -> inspect.Signature | None:
    try:
        return inspect.signature(target)
    except ValueError:  # slice has none
        return None


def _short(value: Any) -> str:
    """Return a value in a few words."""
    text = f"a {type(value).__name__}" if isinstance(value, (list, tuple, dict)) else brief(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
