"""Parser of kernel expressions such as "0.5*RBF(2) + White(0.1)", which never evaluates Python.

    expression  =  product {"+" product}
    product     =  power {"*" power}
    power       =  atom ["**" number]
    atom        =  number | string | constant | name ["(" arguments ")"]
                |  "(" expression ")" | "(" items ")" | "[" items "]" | "{" pairs "}"
    arguments   =  {[name "="] expression ","}

Operators have the same meaning and precedence as in Python.  Only names in a table of allowed names
are accepted.  The length of the text, the nesting of brackets and the nesting of kernels are
limited, so that untrusted text cannot use much time or memory.
"""

from __future__ import annotations

import difflib
import inspect
import math
import re
from collections.abc import Callable as Function
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache, partial
from importlib import import_module
from typing import Any, NamedTuple

from ..._core import KernelSyntaxError
from .._as_kernel import KERNEL_NAMES, from_name
from .._base import Kernel
from .._dataclass import Value, format_brief
from .._kernel_arguments import kernel_argument_advice
from ..algebra._closure_rules import add, multiply

_MAX_DEPTH = 100  # maximum nesting of brackets, and of kernels
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_MAX_LENGTH = 100_000  # maximum number of characters of an expression
_MAX_NUMBER_LENGTH = 400  # maximum number of characters of a number; no float needs more

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
    | (?P<string>[bB]?(?:'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"))
    | (?P<name>[^\W\d]\w*)
    | (?P<sign>\*\*|[-+*()\[\]{},=:])
    | (?P<end>\Z)
    )""",
    re.VERBOSE,
)
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))")
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\", "'": "'", '"': '"'}
_HINTS = {
    ".": "attributes are not supported in kernel expressions",
    "/": "division is not supported: write 0.5*k instead of k/2",
    "^": "write powers with **",
    "'": "this string is not closed",
    '"': "this string is not closed",
}


def parse_kernel(text: str, names: Mapping[str, Any] | None = None) -> Kernel:
    """Parse a kernel expression, such as the `repr` of a kernel.

    The text is not evaluated as Python.  It may contain only the kernels and basis functions of
    `mercer.kernels`, scikit-learn's kernel names (`rbf`, `poly(degree=2)`), the operators
    ``+ * **``, brackets, numbers, strings, tuples, lists, dictionaries, None, True, False and inf.

    Parameters
    ----------
    text : str
        The expression, with at most 100 000 characters and at most 100 nested brackets.
    names : dict, optional
        Additional names {name: object} that the text may use: custom kernel classes, and functions
        that are parameters of `Map`, `Callable` and others.

    Returns
    -------
    Kernel
        The kernel of the expression.  For the `repr` of a kernel k, it equals k.

    Raises
    ------
    KernelSyntaxError
        If the text is not a valid expression.  This is a ValueError whose message shows the
        position of the mistake and, for an unknown name, the most similar known name.

    See Also
    --------
    as_kernel : Also converts functions and scikit-learn kernels.

    Examples
    --------
    >>> import mercer
    >>> mercer.parse_kernel("0.5*RBF(length_scale=2) + Polynomial(degree=2)")
    0.5*RBF(length_scale=2) + Polynomial(degree=2, coef0=1.0, gamma=1.0)
    >>> mercer.parse_kernel("0.5*gauss(2)")
    Traceback (most recent call last):
        ...
    mercer._core._errors.KernelSyntaxError: unknown name 'gauss'; did you mean RBF?
      0.5*gauss(2)
          ^
    """
    if not isinstance(text, str):
        raise TypeError(f"parse_kernel takes a string, got {type(text).__name__}")
    parser = _Parser(text, {**vocabulary(), **(names or {})})
    try:
        return parser.kernel()
    except RecursionError:
        raise KernelSyntaxError(
            "the expression is nested too deeply, or the call stack is almost full", text, 0
        ) from None


class _ParsedValue(NamedTuple):
    """A parsed value, its position in the text, and how deeply kernels are nested in it."""

    value: Any
    at: int  # index of the first character
    height: int = 0  # maximum number of kernels nested in one another

    @property
    def is_number(self) -> bool:
        return isinstance(self.value, (int, float)) and not isinstance(self.value, bool)


class _Parser:
    """Recursive descent parser of one expression."""

    def __init__(self, text: str, names: dict[str, Any]) -> None:
        self.text, self.names = text, names
        self.tokens, self.position = tokenize(text), 0  # index of the next token
        self.depth = 0  # number of open brackets

    def kernel(self) -> Kernel:
        """Parse the whole text, which must be one kernel."""
        if self.next.kind == "end":
            raise self.error("the text is empty; write a kernel, such as RBF(length_scale=1.0)", 0)
        result = self.expression()
        if self.next.kind != "end":
            raise self.unexpected("an operator (+ * **) or the end")
        if isinstance(result.value, Kernel):
            return result.value
        advice = ""
        if result.is_number:
            advice = f"; write Constant({result.value})"
        elif isinstance(result.value, Value):
            advice = f"; write Features({type(result.value).__name__}(...))"
        raise self.error(f"{_short(result.value)} is not a kernel{advice}", result.at)

    # ------------------------------------------------------------------ tokens

    @property
    def next(self) -> Token:
        """Return the next token without consuming it."""
        return self.tokens[self.position]

    def skip(self, sign: str) -> bool:
        """Consume the next token and return True if it is `sign`; otherwise return False."""
        is_next = self.next.kind == "sign" and self.next.text == sign
        self.position += is_next
        return is_next

    def error(self, problem: str, at: int) -> KernelSyntaxError:
        """Return an error at a position in the text."""
        return KernelSyntaxError(problem, self.text, at)

    def unexpected(self, expected: str) -> KernelSyntaxError:
        """Return an error about the next token, with a description of what was expected."""
        token = self.next
        got = "the text ends" if token.kind == "end" else f"got {_short(token.text)}"
        hint = ""
        if token.text == "-":
            hint = "; a minus sign is allowed only before a number, as k1 - k2 need not be a kernel"
        return self.error(f"expected {expected}, but {got}{hint}", token.at)

    # ------------------------------------------------------------------ the grammar

    def expression(self) -> _ParsedValue:
        """Parse a sum of products of powers."""
        terms = []
        while True:
            factors = [self.power()]
            while self.skip("*"):
                factors.append(self.power())
            terms.append(self.combined(multiply, "*", factors))
            if not self.skip("+"):
                return self.combined(add, "+", terms)

    def combined(
        self, make: Function[..., Any], sign: str, operands: list[_ParsedValue]
    ) -> _ParsedValue:
        """Apply an operator to all its operands at once; return a single operand unchanged."""
        first, *others = operands
        if not others:
            return first
        for operand in operands:
            if not (operand.is_number or isinstance(operand.value, Kernel)):
                what = _short(operand.value)
                raise self.error(f"{sign} combines kernels and numbers, not {what}", operand.at)
        if first.is_number and others[0].is_number:
            raise self.error(f"{sign} between two numbers: write the result instead", first.at)
        numbers = sum(operand.is_number for operand in operands) if sign == "*" else 0
        several = len(operands) > numbers + 1
        height = max(operand.height for operand in operands) + numbers + several
        return self.build(first.at, height, make, *(operand.value for operand in operands))

    def power(self) -> _ParsedValue:
        """Parse an atom and an optional exponent."""
        base = self.atom()
        if not self.skip("**"):
            return base
        if not isinstance(base.value, Kernel):
            raise self.error(f"** applies to a kernel, not to {_short(base.value)}", base.at)
        exponent = self.atom()
        if not exponent.is_number:
            raise self.error("the exponent must be a number", exponent.at)
        if self.skip("**"):
            raise self.error("repeated power: use brackets, as in (k**2)**3", exponent.at)
        return self.build(base.at, base.height + 1, pow, base.value, exponent.value)

    def atom(self) -> _ParsedValue:
        """Parse a number, a string, a name, a call, or an expression in brackets."""
        token = self.next
        if token.text in _CLOSING and token.kind == "sign":
            return self.brackets(token)
        if token.text == "-" and token.kind == "sign":
            self.position += 1
            number = self.atom() if self.next.kind == "number" or self.next.text == "inf" else None
            if number is None:
                raise self.error("a minus sign is allowed only before a number", token.at)
            return _ParsedValue(-number.value, token.at)
        if token.kind in ("number", "string"):
            self.position += 1
            return _ParsedValue(token.value, token.at)
        if token.kind == "name":
            self.position += 1
            return self.named(token)
        raise self.unexpected("a kernel, a number or an opening bracket")

    def named(self, token: Token) -> _ParsedValue:
        """Parse a constant, a call or an object of `names`, after its name was consumed."""
        name = token.text
        called = self.next.kind == "sign" and self.next.text == "("
        if name in CONSTANTS and not called:
            return _ParsedValue(CONSTANTS[name], token.at)
        if name not in self.names:
            hint = suggestion(name, self.names) or "; use the names of mercer.kernels."
            if not called and self.depth:
                hint += " If it is a function, construct the kernel in Python, or pass names={...}"
            raise self.error(f"unknown name {_short(name)}{hint}", token.at)
        target = self.names[name]
        if called and (isinstance(target, type) or name in SKLEARN_NAMES):
            return self.call(token, target)
        if called:
            raise self.error(f"{name} is not a kernel class and cannot be called", token.at)
        if isinstance(target, type):
            raise self.error(f"{name} is a class; write {name}()", token.at)
        return (
            self.build(token.at, 1, target)
            if name in SKLEARN_NAMES
            else _ParsedValue(target, token.at)
        )

    def call(self, token: Token, target: Any) -> _ParsedValue:
        """Parse the arguments of a kernel and construct it."""
        signature = _signature(target)
        values: list[Any] = []
        options: dict[str, Any] = {}
        height = 0
        for keyword, argument in self.items("(", keywords=True):
            height = max(height, argument.height)
            if keyword is None and options:
                raise self.error(
                    "a positional argument must not follow a keyword argument", argument.at
                )
            if keyword is None:
                values.append(argument.value)
            elif keyword.text in options:
                raise self.error(f"{token.text} got the argument {keyword.text} twice", keyword.at)
            elif signature is None or keyword.text not in signature.parameters:
                hint = self.keyword_hint(target, signature, keyword.text, argument.value)
                what = f"{token.text} has no parameter {_short(keyword.text)}"
                raise self.error(what + hint, keyword.at)
            else:
                options[keyword.text] = argument.value
        if signature is not None:
            try:
                signature.bind(*values, **options)
            except TypeError as error:
                raise self.error(f"{token.text}: {error}", token.at) from None
        return self.build(token.at, height + 1, target, *values, **options)

    @staticmethod
    def keyword_hint(
        target: Any, signature: inspect.Signature | None, keyword: str, value: Any
    ) -> str:
        """Return a hint for an unknown keyword, such as "; did you mean length_scale?"."""
        hint = suggestion(keyword, signature.parameters if signature else ())
        if not hint and isinstance(target, type) and issubclass(target, Value):
            advice = kernel_argument_advice(target, keyword, value, as_text=True)
            hint = f". {advice}" if advice else ""
        return hint

    def brackets(self, token: Token) -> _ParsedValue:
        """Parse an expression in brackets, a tuple, a list or a dictionary."""
        items = self.items(token.text, pairs=token.text == "{")
        trailing_comma = self.tokens[self.position - 2].text == ","
        height = max((operand.height for _, operand in items), default=0)
        if token.text == "{":
            pairs = [(key.value, operand.value) for key, operand in items]
            return self.build(token.at, height, dict, pairs)
        values = [operand.value for _, operand in items]
        if token.text == "[":
            return _ParsedValue(values, token.at, height)
        if len(values) == 1 and not trailing_comma:
            return _ParsedValue(values[0], token.at, height)
        return _ParsedValue(tuple(values), token.at, height)

    def items(self, opening: str, *, keywords: bool = False, pairs: bool = False) -> list[Any]:
        """Parse the items in brackets; return pairs (key, value).

        The key is a keyword, the key of a dictionary item, or None.
        """
        start, closing = self.next, _CLOSING[opening]
        self.position += 1
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise self.error(f"brackets are nested more than {_MAX_DEPTH} deep", start.at)
        items: list[Any] = []
        while not self.skip(closing):
            key: Any = None
            if keywords and self.next.kind == "name" and self.tokens[self.position + 1].text == "=":
                key = self.next
                self.position += 2
            elif pairs:
                key = self.expression()
                if not self.skip(":"):
                    raise self.unexpected("a colon")
            items.append((key, self.expression()))
            if not self.skip(",") and self.next.text != closing:
                raise self.unexpected(
                    f"a comma or the {closing} that closes the bracket in column {start.at + 1}"
                )
        self.depth -= 1
        return items

    def build(self, at: int, height: int, make: Any, *values: Any, **options: Any) -> _ParsedValue:
        """Return make(*values, **options); exceptions become a KernelSyntaxError at index `at`."""
        if height > _MAX_DEPTH:
            raise self.error(f"kernels are nested more than {_MAX_DEPTH} deep", at)
        try:
            return _ParsedValue(make(*values, **options), at, height)
        except Exception as error:
            raise self.error(str(error) or type(error).__name__, at) from error


@lru_cache(256)
def _signature(target: Function[..., object]) -> inspect.Signature | None:
    """Return the signature of a class or function, or None if it is not available."""
    try:
        return inspect.signature(target)
    except ValueError:  # the built-in `slice` has no signature
        return None


def _short(value: Any) -> str:
    """Return a short description of a value, for error messages."""
    text = (
        f"a {type(value).__name__}"
        if isinstance(value, (list, tuple, dict))
        else format_brief(value)
    )
    return text if len(text) <= 60 else f"{text[:57]}..."


# ---------------------------------------------------------------------- tokens


class Token(NamedTuple):
    """A token of a kernel expression: a name, a number, a string, a sign or the end."""

    kind: str  # "number", "string", "name", "sign" or "end"
    text: str
    at: int  # index of the first character of the token in the parsed text
    value: Any = None  # the value of a number or string


def tokenize(text: str) -> list[Token]:
    """Return the tokens of an expression; the last one has the kind "end"."""
    if len(text) > _MAX_LENGTH:
        raise KernelSyntaxError(
            f"the text has {len(text)} characters, but at most {_MAX_LENGTH} are allowed", text, 0
        )
    tokens, position = [], 0
    while True:
        match = _TOKEN.match(text, position)
        if match is None:
            position += len(text[position:]) - len(text[position:].lstrip())
            sign = text[position]
            hint = _HINTS.get(sign, "this character is not allowed in kernel expressions")
            raise KernelSyntaxError(f"unexpected {sign!r}: {hint}", text, position)
        kind = str(match.lastgroup)
        piece, at, position = match[kind], match.start(kind), match.end()
        tokens.append(Token(kind, piece, at, _value(kind, piece, text, at)))
        if kind == "end":
            return tokens


def _value(kind: str, piece: str, text: str, at: int) -> Any:
    """Return the value of a number or string, None for other tokens."""
    if kind == "number":
        return _number(piece, text, at)
    return _string(piece, text, at) if kind == "string" else None


def _number(piece: str, text: str, at: int) -> int | float:
    """Return the value of a number; raise an error if it overflows or underflows."""
    if len(piece) > _MAX_NUMBER_LENGTH:
        raise KernelSyntaxError(
            f"a number has {len(piece)} characters, but at most {_MAX_NUMBER_LENGTH} are allowed",
            text,
            at,
        )
    size = float(piece)
    if math.isinf(size):
        raise KernelSyntaxError(f"{piece} overflows: the largest float is 1.8e308", text, at)
    if size == 0.0 and re.search("[1-9]", re.split("[eE]", piece)[0]):
        raise KernelSyntaxError(f"{piece} underflows: the smallest float is 4.9e-324", text, at)
    return int(piece) if piece.isdigit() else size


def _string(piece: str, text: str, at: int) -> str | bytes:
    """Return the value of a string or bytes literal, with its escape sequences replaced."""
    start = piece.find(piece[-1]) + 1
    is_bytes = start == 2

    def character(match: re.Match[str]) -> str:
        """Return the character of an escape sequence."""
        *codes, plain = match.groups()
        code = int(next((c for c in codes if c), "0"), 16)
        if plain not in {None, *_ESCAPES} or code > (0xFF if is_bytes else 0x10FFFF):
            raise KernelSyntaxError(
                f"unknown escape sequence {match[0]}; write a backslash itself as \\\\",
                text,
                at + start + match.start(),
            )
        return chr(code) if plain is None else _ESCAPES[plain]

    if is_bytes and not piece.isascii():
        raise KernelSyntaxError(
            "bytes may contain only ASCII characters; write others as escapes: \\xff", text, at
        )
    value = _ESCAPE.sub(character, piece[start:-1])
    return value.encode("latin-1") if is_bytes else value


# ---------------------------------------------------------------------- names


CONSTANTS = {"None": None, "True": True, "False": False, "inf": float("inf")}

# scikit-learn's kernel names.  They may be used with or without arguments: rbf, poly(degree=2).
SKLEARN_NAMES: dict[str, Function[..., Kernel]] = {
    name: partial(from_name, name) for name in KERNEL_NAMES
}

# For each kernel, its names in other libraries, simplified by `_simplify`.
_SYNONYMS = {
    "RBF": "gauss gaussian normal se squaredexponential exponentiatedquadratic",
    "Matern": "ou ornsteinuhlenbeck exponential",
    "RationalQuadratic": "rq ratquad",
    "Periodic": "expsinesquared sine seasonal per stdperiodic",
    "Linear": "dot dotproduct lin inner",
    "Polynomial": "quadratic cubic",
    "White": "noise whitekernel whitenoise nugget",
    "Constant": "constantkernel bias const",
    "Sigmoid": "tanh mlp neural",
    "Cosine": "cosinesimilarity angle",
    "InverseMultiquadric": "imq",
    "ThinPlate": "tps thinplatespline spline",
    "Distance": "energy brownian",
    "HistogramIntersection": "histogram min minimum",
    "Jaccard": "tanimoto",
    "Equal": "delta kronecker kroneckerdelta indicator matching hamming category categorical",
    "Spectrum": "ngram kmer string",
    "Subsequence": "ssk gapweighted",
    "WeisfeilerLehman": "wl weisfeiler",
    "RandomWalk": "rw walk",
    "Geodesic": "isomap",
    "LocallyLinear": "lle locallylinearembedding",
    "CommuteTime": "laplacianeigenmaps spectralembedding",
    "Diffusion": "diffusionmap diffusionmaps",
    "Power": "exponentiation pow",
    "Sum": "add plus",
    "Product": "mul times prod",
    "Select": "columns activedims",
    "Shift": "translate offset",
    "Stretch": "ard",
    "Normalized": "normalised normalize normalise",
}


@cache
def vocabulary() -> dict[str, Any]:
    """Return a dictionary {name: class or function} of all names that an expression may use.

    These are the kernels and basis functions of mercer.kernels, scikit-learn's kernel names, and
    `slice`.
    """
    from mercer import kernels

    public = {name: vars(kernels)[name] for name in kernels.__all__}
    # Import MultipleKernel here, not at the top, because its package imports this module.
    public["MultipleKernel"] = import_module("mercer.models.kernel_learning").MultipleKernel
    classes = {
        name: cls
        for name, cls in public.items()
        if inspect.isclass(cls) and issubclass(cls, Value) and not inspect.isabstract(cls)
    }
    return classes | SKLEARN_NAMES | {"slice": slice}


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return a hint for an unknown name, such as "; did you mean RBF?" for "gauss".

    The result is "" if no known name is similar.
    """
    if len(name) > 40:
        return ""
    # If two names simplify to the same name, the last one in the table is suggested.  Reverse
    # sorting puts RBF after rbf.
    simple, known = _simplify(name), sorted(known, reverse=True)
    table = {_simplify(other): other for other in known}
    close = difflib.get_close_matches(simple, table, 1)
    synonyms = (other for other in known if simple in _SYNONYMS.get(other, "").split())
    best = table.get(simple) or next(synonyms, None) or (table[close[0]] if close else None)
    return f"; did you mean {best}?" if best else ""


def _simplify(name: str) -> str:
    """Return the name in lower case, without underscores and without the ending "kernel"."""
    return name.lower().replace("_", "").removesuffix("kernel") or name
