"""A collection of strings as one flat array of symbols, and the words that occur in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from .._points import only_column
from ._base import Kernel, node
from ._explicit import codes_of, mix

__all__ = [
    "OnStrings",
    "Sequences",
    "Words",
    "chained",
    "check_count",
    "check_decay",
    "sequences",
    "strings_of",
    "symbols_of",
    "words",
]

_KINDS = {str: "str", bytes: "bytes", tuple: "sequences", list: "sequences"}


@dataclass(frozen=True, eq=False)
class Sequences:
    """String i is symbols[starts[i] : starts[i] + lengths[i]].

    A symbol is a number that depends on nothing but itself: the code point of a character, the
    value of a byte, the code of any other value.  So collections that are encoded apart agree.
    """

    symbols: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray
    kind: str  # of its points: "str", "bytes", "sequences", or "" if there are none

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def longest(self) -> int:
        """The length of the longest string."""
        return int(self.lengths.max(initial=0))


@node
class OnStrings(Kernel):
    """What kernels of strings say about training strings: all must not be too short."""

    domain: ClassVar[str] = "strings"
    reads_matrix: ClassVar[bool] = False  # integers beyond 2^53 are symbols, not floats

    def _shortest(self) -> tuple[str, int]:
        """Return the option that says how long a string has to be, and its value."""
        return "", 0

    @property
    def _judges(self) -> bool:
        return True

    def _judge(self, X: Any) -> None:
        name, least = self._shortest()
        S = sequences(X, type(self).__name__)
        if len(S) and S.longest < least:
            raise ValueError(
                f"{type(self).__name__}: {name}={least} is longer than every string, so k is 0 for "
                f"all of them; the longest of the {len(S)}, point {int(np.argmax(S.lengths))}, has "
                f"{S.longest} symbols: choose a smaller {name}"
            )
        if S.longest and not self._reads(S).any():
            raise ValueError(
                f"{type(self).__name__}: no symbol of the {len(S)} strings is in the alphabet, so "
                f"they cannot be told apart; the usual cause is lower case, s.upper()"
            )

    def _reads(self, S: Sequences) -> np.ndarray:
        """Tell for each symbol whether it is in the alphabet."""
        return np.ones(len(S.symbols), dtype=bool)


def sequences(X: Any, owner: str, kind: str = "") -> Sequences:
    """Encode strings, bytes, or sequences of hashable values, if they are of one kind."""
    points = strings_of(X, owner)
    found = ""
    for place, point in enumerate(points):
        its = _kind(point)
        if its is None:
            raise TypeError(
                f"{owner}: point {place} is {point!r}, not a string; points are str, bytes, or "
                f"lists of symbols (decide what a missing one stands for, an empty string say)"
            )
        if its != (found or kind or its):
            first = (
                f"point 0 is {points[0]!r}" if found else f"those it is compared with are {kind}"
            )
            raise TypeError(
                f"{owner}: point {place} is {point!r}, but {first}; text and bytes have no symbols "
                f"in common, so decode or encode one of them"
            )
        found = its
    lengths = np.fromiter(map(len, points), dtype=np.int64, count=len(points))
    starts = np.cumsum(lengths) - lengths
    return Sequences(_symbols(points, found, owner), starts, lengths, found)


def strings_of(X: Any, owner: str) -> list:
    """Return the strings as a list; a table of one column holds them in that column."""
    if isinstance(X, (str, bytes)):
        raise TypeError(f"{owner} takes a collection of strings, got one, {X!r}; pass [{X!r}]")
    return list(only_column(X, owner))


def _kind(point: Any) -> str | None:
    if isinstance(point, np.ndarray):
        return "sequences" if point.ndim == 1 else None
    return next((kind for cls, kind in _KINDS.items() if isinstance(point, cls)), None)


def _symbols(points: list, kind: str, owner: str) -> np.ndarray:
    if kind == "str":
        flat = "".join(points).encode("utf-32-le", "surrogatepass")
        return np.frombuffer(flat, dtype="<u4").astype(np.int64)
    if kind == "bytes":
        return np.frombuffer(b"".join(points), dtype=np.uint8).astype(np.int64)
    try:
        letters = [s for point in points for s in point]
        return codes_of(letters, owner, "symbols", reals=False).view(np.int64)
    except TypeError:  # again, to name the point
        for place, point in enumerate(points):
            codes_of(list(point), owner, f"the symbols of point {place}", reals=False)
        raise


def symbols_of(alphabet: Any, kind: str) -> np.ndarray:
    """Return the numbers that stand for the letters of an alphabet in points of a kind."""
    if kind == "sequences":
        return codes_of(list(alphabet), "alphabet", "letters").view(np.int64)
    if isinstance(alphabet, bytes):
        return np.frombuffer(alphabet, dtype=np.uint8).astype(np.int64)
    return np.array([ord(letter) for letter in alphabet], dtype=np.int64)


class Words(NamedTuple):
    """All words of one length: which string each is in, where it begins, and its code."""

    owner: np.ndarray
    place: np.ndarray  # in the flat array
    code: np.ndarray


def words(S: Sequences, longest: int) -> Iterator[Words]:
    """Yield the words of lengths 1, ..., longest; the code of a word depends on it alone."""
    letters = mix(S.symbols.view(np.uint64))
    chain = letters
    for q in range(1, longest + 1):
        if q > 1:  # one pass over the whole array; words across two strings are left out below
            chain = mix(chain[: max(len(letters) - q + 1, 0)]) + letters[q - 1 :]
        counts = np.maximum(S.lengths - q + 1, 0)
        owner = np.repeat(np.arange(len(S)), counts)
        within = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
        place = within + np.repeat(S.starts, counts)
        yield Words(owner, place, chain[place])


def chained(letters: np.ndarray, salt: int = 0) -> np.ndarray:
    """Return the codes of words whose letters are columns of codes."""
    code = mix(letters[..., 0], salt)
    for place in range(1, letters.shape[-1]):
        code = mix(code) + letters[..., place]
    return code


def check_count(owner: str, name: str, value: Any, least: int = 1) -> None:
    """Refuse an option that is not an integer of at least `least`."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{owner}: {name} must be an integer, got {value!r}")
    if value < least:
        raise ValueError(f"{owner}: {name} must be at least {least}, got {value!r}")


def check_decay(owner: str, value: Any) -> None:
    """Refuse a decay that is not in (0, 1]."""
    unfit = isinstance(value, (bool, np.bool_)) or not isinstance(
        value, (int, float, np.integer, np.floating)
    )
    if unfit:
        raise TypeError(f"{owner}: decay must be a number, got {value!r}")
    if not 0 < value <= 1:
        raise ValueError(f"{owner}: decay must be in (0, 1], got {value!r}")
