"""Tokenizer of kernel expressions: names, numbers, strings and signs with their positions."""

from __future__ import annotations

import math
import re
from typing import Any, NamedTuple

from ..._core import KernelSyntaxError

__all__ = ["Token", "tokenize"]

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
