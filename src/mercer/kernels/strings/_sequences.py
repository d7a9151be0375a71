"""Encoding of a collection of strings, and of the words in them, as arrays of integers.

A *word* is a substring of fixed length.  The strings may be str, bytes or sequences of any hashable
symbols.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..._core import Points, single_column
from .._base import Kernel, node
from .._parameter_checks import is_bool
from .._properties import Domain
from .._sparse_features import hash_codes, hash_elements, splitmix64

_KINDS = {str: "str", bytes: "bytes", tuple: "sequences", list: "sequences"}


@dataclass(frozen=True, eq=False)
class SequenceEncoding:
    """Strings encoded as one array: string i is symbols[starts[i] : starts[i] + lengths[i]].

    A symbol is encoded as an integer that does not depend on the collection: the code point of a
    character, the value of a byte, or the hash code of any other value.  Collections that are
    encoded separately can therefore be compared.
    """

    symbols: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray
    kind: str  # the type of the points: "str", "bytes" or "sequences"; "" if there are no points

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def longest(self) -> int:
        """The length of the longest string, 0 if there are no strings."""
        return int(self.lengths.max(initial=0))


@node
class StringKernel(Kernel):
    """Base class of string kernels.

    It checks the training strings: at least one string must be long enough to contain a word that
    the kernel compares, and at least one symbol must be in the alphabet.
    """

    def _domain(self, *inner: Domain) -> Domain:
        # A matrix is not converted to floats, because symbols may be integers beyond 2^53.
        return Domain("strings", accepts_matrix=False, checks_training_points=True)

    def _min_length(self) -> tuple[str, int]:
        """Return the name of the parameter that sets the minimum string length, and its value."""
        return "", 0

    def _resolve(self, X: Points, weights: np.ndarray | None, targets: np.ndarray | None) -> Kernel:
        name, min_length = self._min_length()
        S = encode_sequences(X, type(self).__name__)
        if len(S) and S.longest < min_length:
            raise ValueError(
                f"{type(self).__name__}: {name}={min_length} is longer than every string, so the "
                f"kernel is 0 for all of them; the longest of the {len(S)} strings, point "
                f"{int(np.argmax(S.lengths))}, has {S.longest} symbols; choose a smaller {name}"
            )
        if S.longest and not self._in_alphabet(S).any():
            raise ValueError(
                f"{type(self).__name__}: no symbol of the {len(S)} strings is in the alphabet, so "
                f"the strings cannot be distinguished; the usual cause is lower-case "
                f"letters: convert the strings with s.upper()"
            )
        return self

    def _in_alphabet(self, S: SequenceEncoding) -> np.ndarray:
        """Return a boolean mask of the symbols that are in the alphabet; by default all are."""
        return np.ones(len(S.symbols), dtype=bool)


def encode_sequences(X: Points, owner: str, kind: str = "") -> SequenceEncoding:
    """Encode strings, bytes, or sequences of hashable values.

    All points must be of the same kind, and of the given `kind` if it is not empty.  `owner` is the
    name of the kernel, for error messages.
    """
    points = as_string_list(X, owner)
    common_kind = ""
    for i, point in enumerate(points):
        point_kind = _kind(point)
        if point_kind is None:
            raise TypeError(
                f"{owner}: point {i} is {point!r}, not a string; points must be str, bytes, or "
                f"lists of symbols; replace missing values, for example by an empty string"
            )
        if point_kind != (common_kind or kind or point_kind):
            other = f"the points that it is compared with are {kind}"
            if common_kind:
                other = f"point 0 is {points[0]!r}"
            raise TypeError(
                f"{owner}: point {i} is {point!r}, but {other}; points of different types have "
                f"no symbols in common, so convert all points to the same type"
            )
        common_kind = point_kind
    lengths = np.fromiter(map(len, points), dtype=np.int64, count=len(points))
    starts = np.cumsum(lengths) - lengths
    return SequenceEncoding(_symbols(points, common_kind, owner), starts, lengths, common_kind)


def as_string_list(X: Points, owner: str) -> list[Any]:
    """Return the strings of X as a list; a table must have exactly one column."""
    if isinstance(X, (str, bytes)):
        raise TypeError(
            f"{owner} takes a collection of strings, got the single string {X!r}; pass [{X!r}]"
        )
    return list(single_column(X, owner))


def _kind(point: Any) -> str | None:
    """Return "str", "bytes" or "sequences", or None if the point is not a string of any kind."""
    if isinstance(point, np.ndarray):
        return "sequences" if point.ndim == 1 else None
    return next((kind for cls, kind in _KINDS.items() if isinstance(point, cls)), None)


def _symbols(points: list[Any], kind: str, owner: str) -> np.ndarray:
    """Concatenate the symbols of all strings to one int64 array."""
    if kind == "str":
        flat = "".join(points).encode("utf-32-le", "surrogatepass")
        return np.frombuffer(flat, dtype="<u4").astype(np.int64)
    if kind == "bytes":
        return np.frombuffer(b"".join(points), dtype=np.uint8).astype(np.int64)
    return hash_elements(points, owner, "symbols", reals=False).view(np.int64)


def encode_alphabet(alphabet: Any, kind: str) -> np.ndarray:
    """Return the codes of the letters, as `encode_sequences` computes them for this kind."""
    if kind == "sequences":
        return hash_codes(list(alphabet), "alphabet", "letters").view(np.int64)
    if isinstance(alphabet, bytes):
        return np.frombuffer(alphabet, dtype=np.uint8).astype(np.int64)
    return np.array([ord(letter) for letter in alphabet], dtype=np.int64)


class WordOccurrences(NamedTuple):
    """All words of one length in a collection of strings, one entry per occurrence."""

    owner: np.ndarray  # index of the string that contains the word
    start: np.ndarray  # index of the first symbol of the word in the flat array of symbols
    code: np.ndarray  # hash code of the word


def iter_words(S: SequenceEncoding, longest: int) -> Iterator[WordOccurrences]:
    """Yield the words of length 1, then those of length 2, ..., up to the length `longest`.

    The code of a word depends only on its symbols, not on the collection.
    """
    letters = splitmix64(S.symbols.view(np.uint64))
    codes = letters
    for q in range(1, longest + 1):
        if q > 1:
            # Compute the codes of the words of length q at all positions of the flat array from
            # the codes of the words of length q - 1.
            # `start` below excludes words that cross the boundary between two strings.
            codes = splitmix64(codes[: max(len(letters) - q + 1, 0)]) + letters[q - 1 :]
        counts = np.maximum(S.lengths - q + 1, 0)
        owner = np.repeat(np.arange(len(S)), counts)
        offset = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
        start = offset + np.repeat(S.starts, counts)
        yield WordOccurrences(owner, start, codes[start])


def combine_codes(letters: np.ndarray, salt: int = 0) -> np.ndarray:
    """Return the codes of words, given the codes of their letters along the last axis.

    Different values of `salt` give different codes to the same word.
    """
    code = splitmix64(letters[..., 0], salt)
    for i in range(1, letters.shape[-1]):
        code = splitmix64(code) + letters[..., i]
    return code


def decay_factor(owner: str, name: str, value: Any) -> None:
    """Raise an error if the decay of a string kernel is not a number in (0, 1]."""
    if is_bool(value) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise TypeError(f"{owner}: {name} must be a number, got {value!r}")
    if not 0 < value <= 1:
        raise ValueError(f"{owner}: {name} must be in (0, 1], got {value!r}")
