"""Kernels that compare two strings by a dynamic programme, in time |s| |t|.

A new one names its programme in `_evaluate`, a compiled loop over a list of pairs.  No pair is
worth computing twice, so these kernels are `costly`: a fit asks for each pair once.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from .._runtime import jit
from ._base import node
from ._claims import FEATURES, Claims
from ._prepared import Prepared
from ._sequences import OnStrings, Sequences, check_count, check_decay, sequences

__all__ = ["AllSubsequences", "StringProgramme", "Subsequence", "SubsequenceSum"]

_LANES = 8  # strings that one string is compared with at a time: a vector register of float64


@node
class StringProgramme(OnStrings):
    """A kernel of two strings; a node adds `_evaluate`, its values for a list of pairs."""

    @abstractmethod
    def _evaluate(
        self, x: np.ndarray, x_spans: np.ndarray, z: np.ndarray, z_spans: np.ndarray
    ) -> np.ndarray:
        """Return k of the pairs of strings x[start : start + length], z[start : start + length]."""

    def _symbols(self, S: Sequences) -> np.ndarray:
        """Return the symbols as the programme wants them."""
        return S.symbols

    def _prepare(self, X: Any, like: Prepared | None) -> Prepared:
        S = sequences(X, type(self).__name__, like.frame.kind if like is not None else "")
        S = replace(S, symbols=self._symbols(S))
        return Prepared((np.column_stack([S.starts, S.lengths]),), frame=S)

    def _tile(self, P: Prepared, Q: Prepared, out: np.ndarray) -> None:
        self._tile_by_pairs(P, Q, out)

    def _pairs(self, P: Prepared, Q: Prepared, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        values = self._evaluate(P.frame.symbols, P.arrays[0][i], Q.frame.symbols, Q.arrays[0][j])
        bad = np.flatnonzero(~np.isfinite(values))
        if len(bad):
            raise OverflowError(
                f"{type(self).__name__}: k of the points {P.index[i[bad[0]]]} and "
                f"{Q.index[j[bad[0]]]}, of {P.arrays[0][i[bad[0]], 1]} and "
                f"{Q.arrays[0][j[bad[0]], 1]} symbols, is beyond 1e308; {self._remedy}"
            )
        return values

    _remedy: ClassVar[str] = "cut the strings"
    _rule: ClassVar[str] = f"{FEATURES}: the subsequences of a string"

    def _claims(self, *inner: Claims) -> Claims:
        return Claims(self._rule, 0, nonnegative=True)

    def _diag(self, X: Any) -> np.ndarray:
        return self._diag_prepared(self._prepare(X, None))

    costly: ClassVar[bool] = True


# ---------------------------------------------------------------------- subsequences


@node
class Subsequence(StringProgramme):
    """k(s, t) = sum over u of length n of sum_{i: s[i] = u} sum_{j: t[j] = u} decay^(l(i) + l(j)).

    Here i are places of s that need not be neighbours, s[i] is what stands there, and l(i) is how
    far the first is from the last, both counted: gaps make a subsequence worth less.

    Parameters
    ----------
    n : int
        The length of the subsequences, and only this one: `SubsequenceSum` adds up all lengths to
        n, which some libraries call the subsequence kernel.
    decay : float in (0, 1]
        What a step costs.  At 1 gaps cost nothing; near 0 only n-grams without gaps are left.

    Notes
    -----
    Lodhi, Saunders, Shawe-Taylor, Cristianini and Watkins, "Text classification using string
    kernels", JMLR 2002.  Time n |s| |t| a pair.  The values scale as decay^(2n) and grow with the
    strings, so use it as `Normalized(Subsequence(...))`.  On their news articles n-grams
    (`Spectrum`) were as good or better almost everywhere, at a fraction of the time.

    Examples
    --------
    >>> from mercer.kernels import Normalized, Subsequence
    >>> Subsequence(2, decay=0.5)(["cat"], ["car", "cat"])  # decay^4, 2 decay^4 + decay^6
    array([[0.0625  , 0.140625]])
    >>> Normalized(Subsequence(2, decay=0.5))(["cat"], ["car"]).round(4)
    array([[0.4444]])
    """

    n: int = 3
    decay: float = 0.5

    def _check(self) -> None:
        check_count("Subsequence", "n", self.n)
        check_decay("Subsequence", self.decay)

    def _shortest(self) -> tuple[str, int]:
        return "n", self.n

    def _evaluate(self, *pairs: np.ndarray) -> np.ndarray:
        return _subsequence_sums(np.eye(self.n)[-1], self.decay, *pairs)


@node
class SubsequenceSum(StringProgramme):
    """k(s, t) = sum of Subsequence(q, decay)(s, t) over the lengths q = 1, ..., n.

    Parameters
    ----------
    n : int
        The greatest length.
    decay : float in (0, 1]
        What a step costs.

    Notes
    -----
    What Shogun and strkernels compute under the name of the subsequence kernel.  A subsequence of
    length q weighs decay^(2q), so below 1 short ones dominate, and normalised values are large.
    Time n |s| |t| a pair.

    Examples
    --------
    >>> from mercer.kernels import Normalized, SubsequenceSum
    >>> Normalized(SubsequenceSum(2, decay=1.0))(["ABCDEFG"], ["EFGHIJK"]).round(4)  # 6 / 28
    array([[0.2143]])
    """

    n: int = 3
    decay: float = 0.5

    def _check(self) -> None:
        check_count("SubsequenceSum", "n", self.n)
        check_decay("SubsequenceSum", self.decay)

    def _evaluate(self, *pairs: np.ndarray) -> np.ndarray:
        return _subsequence_sums(np.ones(self.n), self.decay, *pairs)


@node
class AllSubsequences(StringProgramme):
    """k(s, t) = how many pairs of equal subsequences s and t have, the empty one included.

    Notes
    -----
    Shawe-Taylor and Cristianini, "Kernel methods for pattern analysis", 2004, section 11.3.  The
    limit of 1 + `SubsequenceSum` without decay and without a greatest length.  Time |s| |t| a
    pair.  k(s, s) is at least 2^|s|, and (2n over n) for n equal symbols: two strings of more than
    about 500 symbols may overflow, which raises; long before, a normalised matrix is the identity.

    Examples
    --------
    >>> from mercer.kernels import AllSubsequences
    >>> AllSubsequences()(["gatta", "gatt"], ["cata"])
    array([[14.],
           [ 7.]])
    """

    _remedy: ClassVar[str] = "cut the strings, or use SubsequenceSum, whose decay helps"

    def _evaluate(self, *pairs: np.ndarray) -> np.ndarray:
        return _all_subsequences(*pairs)


def _subsequence_sums(
    weights: np.ndarray,
    decay: float,
    x: np.ndarray,
    x_spans: np.ndarray,
    z: np.ndarray,
    z_spans: np.ndarray,
) -> np.ndarray:
    """Return sum_q weights_q K_q for each pair: those of one x, of similar length, together."""
    order = np.lexsort((z_spans[:, 1], x_spans[:, 0], x_spans[:, 1]))
    values = np.empty(len(order))
    values[order] = _subsequences(weights, float(decay), x, x_spans[order], z, z_spans[order])
    return values


@jit()
def _subsequences(
    weights: np.ndarray,
    decay: float,
    x: np.ndarray,
    x_spans: np.ndarray,
    z: np.ndarray,
    z_spans: np.ndarray,
) -> np.ndarray:
    """Evaluate up to _LANES strings against one: entry t of a row is place t // _LANES of lane t %.

    With S_0 = 1,  S_q(i, j) = [x_i = z_j] decay^2 D_(q-1)(i-1, j-1),  K_q = sum_ij S_q(i, j)  and

        D_q(i, j) = sum_(i' <= i, j' <= j) decay^(i - i' + j - j') S_q(i', j')

    in two steps, E_q over i' and then D_q over j'.  Only the last row is kept.
    """
    values = np.zeros(len(x_spans))
    n = len(weights)
    first = 0
    while first < len(x_spans):
        start, count = x_spans[first]
        last = first + 1
        while (
            last < min(first + _LANES, len(x_spans))
            and x_spans[last, 0] == start
            and x_spans[last, 1] == count
        ):
            last += 1
        m = _LANES * z_spans[last - 1, 1]  # the longest of the group: lengths are in order
        letters = np.full(m, -1)
        for lane in range(last - first):
            for place in range(z_spans[first + lane, 1]):
                letters[place * _LANES + lane] = z[z_spans[first + lane, 0] + place]
        E = np.zeros((n, m))
        D = np.zeros((n, m + _LANES))
        D[0] = 1.0
        K = np.zeros(m)
        for i in range(start, start + count):
            letter = x[i]
            for q in range(n, 0, -1):  # downwards: D_(q-1) must still be the last row
                if weights[q - 1] != 0.0:
                    _add_matches(letter, letters, weights[q - 1] * decay * decay, D[q - 1], K)
                if q < n:
                    _advance(letter, letters, decay, D[q - 1], E[q], D[q])
        for t in range(m):
            lane = t % _LANES
            if lane < last - first:
                values[first + lane] += K[t]
        first = last
    return values


@jit()
def _add_matches(
    letter: int, letters: np.ndarray, factor: float, below: np.ndarray, K: np.ndarray
) -> None:
    for t in range(len(letters)):
        K[t] += factor * below[t] if letters[t] == letter else 0.0


@jit()
def _advance(
    letter: int, letters: np.ndarray, decay: float, below: np.ndarray, E: np.ndarray, D: np.ndarray
) -> None:
    new = D[_LANES:]  # one place further, so that D[t] is the entry left of new[t]
    for t in range(len(letters)):
        E[t] = decay * E[t] + (decay * decay * below[t] if letters[t] == letter else 0.0)
        new[t] = E[t] + decay * D[t]


@jit()
def _all_subsequences(
    x: np.ndarray, x_spans: np.ndarray, z: np.ndarray, z_spans: np.ndarray
) -> np.ndarray:
    """k(s a, t) = k(s, t) + sum over the places j of a in t of k(s, t[:j])."""
    values = np.empty(len(x_spans))
    for pair in range(len(values)):
        start, count = z_spans[pair]
        letters = z[start : start + count]
        row = np.ones(count + 1)
        for i in range(x_spans[pair, 0], x_spans[pair, 0] + x_spans[pair, 1]):
            letter, total, left = x[i], 0.0, 1.0
            for j in range(count):
                if letters[j] == letter:
                    total += left
                left = row[j + 1]
                row[j + 1] += total
        values[pair] = row[count]
    return values
