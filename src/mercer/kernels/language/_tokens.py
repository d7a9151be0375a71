"""Text cut into tokens: names, numbers, strings and signs, each with its place."""

from __future__ import annotations

import math
import re
from typing import Any, NamedTuple

from ..._errors import KernelSyntaxError

__all__ = ["Token", "tokens"]

_LENGTH = 100_000  # characters of a text
_DIGITS = 400  # characters of a number: more than any float needs

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
    ".": "there are no attributes in this language",
    "/": "kernels are not divided: write 0.5*k",
    "^": "powers are written with **",
    "'": "this string has no end",
    '"': "this string has no end",
}


class Token(NamedTuple):
    """A piece of the text: its kind ("number", "string", "name", "sign", "end") and place."""

    kind: str
    text: str
    at: int
    value: Any = None


def tokens(text: str) -> list[Token]:
    """Return the tokens of a text, the last of which is its end."""
    if len(text) > _LENGTH:
        raise KernelSyntaxError(
            f"the text has {len(text)} characters, and at most {_LENGTH} are read", text, 0
        )
    found, place = [], 0
    while True:
        match = _TOKEN.match(text, place)
        if match is None:
            place += len(text[place:]) - len(text[place:].lstrip())
            sign = text[place]
            hint = _HINTS.get(sign, "it has no meaning here")
            raise KernelSyntaxError(f"unexpected {sign!r}: {hint}", text, place)
        kind = str(match.lastgroup)
        piece, at, place = match[kind], match.start(kind), match.end()
        found.append(Token(kind, piece, at, _value(kind, piece, text, at)))
        if kind == "end":
            return found


def _value(kind: str, piece: str, text: str, at: int) -> Any:
    if kind == "number":
        return _number(piece, text, at)
    return _string(piece, text, at) if kind == "string" else None


def _number(piece: str, text: str, at: int) -> int | float:
    if len(piece) > _DIGITS:
        raise KernelSyntaxError(
            f"a number of {len(piece)} characters; at most {_DIGITS} are read", text, at
        )
    size = float(piece)
    if math.isinf(size):
        raise KernelSyntaxError(f"{piece} overflows: the largest number is 1.8e308", text, at)
    if size == 0.0 and re.search("[1-9]", re.split("[eE]", piece)[0]):
        raise KernelSyntaxError(f"{piece} underflows: the smallest number is 4.9e-324", text, at)
    return int(piece) if piece.isdigit() else size


def _string(piece: str, text: str, at: int) -> str | bytes:
    start = piece.find(piece[-1]) + 1
    raw = start == 2

    def character(match: re.Match[str]) -> str:
        *codes, plain = match.groups()
        code = int(next((c for c in codes if c), "0"), 16)
        if plain not in {None, *_ESCAPES} or code > (0xFF if raw else 0x10FFFF):
            raise KernelSyntaxError(
                f"unknown escape {match[0]!r}", text, at + start + match.start()
            )
        return chr(code) if plain is None else _ESCAPES[plain]

    if raw and not piece.isascii():
        raise KernelSyntaxError("bytes hold ASCII characters, and others as \\xff", text, at)
    value = _ESCAPE.sub(character, piece[start:-1])
    return value.encode("latin-1") if raw else value
