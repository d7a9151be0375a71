"""String kernels that compare two strings s and t by dynamic programming, in |s| |t| steps.

To add such a kernel, derive it from `PairwiseStringKernel` and implement `_evaluate`, a compiled
loop over a list of pairs of strings.  Because the values are expensive, `fit` evaluates each pair
only once and stores the values.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import ClassVar

import numpy as np

from ..._core import Points, jit
from .._base import node, option
from .._evaluation import Prepared
from .._pairwise_kernels import PairwiseKernel
from .._parameter_checks import count
from .._properties import FEATURES, Properties
from ._sequences import SequenceEncoding, StringKernel, decay_factor, encode_sequences

# Number of strings that are processed together; a vector register has room for 8 float64 values.
_LANES = 8


@node
class PairwiseStringKernel(PairwiseKernel, StringKernel):
    """Base class of string kernels that are evaluated pair by pair.

    A subclass implements `_evaluate`, which returns the values for a list of pairs of strings.
    """

    @abstractmethod
    def _evaluate(
        self, x: np.ndarray, x_spans: np.ndarray, z: np.ndarray, z_spans: np.ndarray
    ) -> np.ndarray:
        """Return k(s, t) for each pair of strings.

        `x` and `z` are arrays of symbols.  Row i of `x_spans` and of `z_spans` is the (start,
        length) of the strings of pair i: s = x[start : start + length], and t similarly from z.
        """

    def _symbols(self, S: SequenceEncoding) -> np.ndarray:
        """Return the symbols in the encoding that `_evaluate` expects."""
        return S.symbols

    def _prepare(self, X: Points, like: Prepared | None) -> Prepared:
        S = encode_sequences(X, type(self).__name__, like.frame.kind if like is not None else "")
        S = replace(S, symbols=self._symbols(S))
        return Prepared((np.column_stack([S.starts, S.lengths]),), frame=S)

    def _pairs(self, P: Prepared, Q: Prepared, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        values = self._evaluate(P.frame.symbols, P.arrays[0][i], Q.frame.symbols, Q.arrays[0][j])
        bad = np.flatnonzero(~np.isfinite(values))
        if len(bad):
            raise OverflowError(
                f"{type(self).__name__}: the kernel value of points {P.index[i[bad[0]]]} and "
                f"{Q.index[j[bad[0]]]} ({P.arrays[0][i[bad[0]], 1]} and "
                f"{Q.arrays[0][j[bad[0]], 1]} symbols) exceeds 1e308; {self._remedy}"
            )
        return values

    _remedy: ClassVar[str] = "use shorter strings"  # advice in the message of an OverflowError
    _rule: ClassVar[str] = f"{FEATURES}: the subsequences of a string"

    def _properties(self, *inner: Properties) -> Properties:
        return Properties(self._rule, 0, nonnegative=True)


# ---------------------------------------------------------------------- subsequences


@node
class WeightedSubsequences(PairwiseStringKernel):
    """Base class of weighted sums of the subsequence kernels K_q of the lengths q = 1, ..., n."""

    n: int = option(3, count())
    decay: float = option(0.5, decay_factor)

    @abstractmethod
    def _length_weights(self) -> np.ndarray:
        """Return the weights of K_1, ..., K_n."""

    def _evaluate(
        self, x: np.ndarray, x_spans: np.ndarray, z: np.ndarray, z_spans: np.ndarray
    ) -> np.ndarray:
        # Pairs are sorted by their first string and by the length of their second string, because
        # `_subsequences` evaluates second strings of similar length together.
        order = np.lexsort((z_spans[:, 1], x_spans[:, 0], x_spans[:, 1]))
        values, decay = np.empty(len(order)), float(self.decay)
        x_spans, z_spans = x_spans[order], z_spans[order]
        values[order] = _subsequences(self._length_weights(), decay, x, x_spans, z, z_spans)
        return values


@node
class Subsequence(WeightedSubsequences):
    """Subsequence kernel: counts common subsequences of a given length, penalising gaps.

        k(s, t) = sum over u of length n of sum_{i: s[i] = u} sum_{j: t[j] = u} decay^(l(i) + l(j))

    Here i = (i_1 < ... < i_n) are positions in s that need not be contiguous, s[i] is the string of
    the symbols at these positions, and l(i) = i_n - i_1 + 1 is the length of their span; j and t[j]
    have the same meaning for t.

    Parameters
    ----------
    n : int, default=3
        The length of the subsequences; 2 to 5 is usual.  Shorter ones are not counted; some
        libraries call the sum over all lengths up to n the subsequence kernel, which is
        `SubsequenceSum` here.
    decay : float, default=0.5
        The decay per position of the span, in (0, 1].  If it is 1, gaps are not penalised; if it is
        near 0, almost only contiguous n-grams contribute.

    See Also
    --------
    SubsequenceSum : All lengths up to n.
    Spectrum : Contiguous words only, and much faster.
    Gapped : Words with wildcards at fixed distances, faster for long strings.

    Notes
    -----
    A pair of strings takes n |s| |t| steps.  The values scale with decay^(2n) and grow with the
    length of the strings, so use `Normalized(Subsequence(...))`.  In the experiments of the
    reference, on news articles, n-grams (`Spectrum`) were as accurate or better in most cases and
    much faster.

    References
    ----------
    Lodhi, Saunders, Shawe-Taylor, Cristianini and Watkins, "Text classification using string
    kernels", JMLR 2002.

    Examples
    --------
    >>> from mercer.kernels import Normalized, Subsequence
    >>> Subsequence(2, decay=0.5)(["cat"], ["car", "cat"])  # decay^4, 2 decay^4 + decay^6
    array([[0.0625  , 0.140625]])
    >>> Normalized(Subsequence(2, decay=0.5))(["cat"], ["car"]).round(4)
    array([[0.4444]])
    """

    def _min_length(self) -> tuple[str, int]:
        return "n", self.n

    def _length_weights(self) -> np.ndarray:
        unit: np.ndarray = np.eye(self.n)[-1]
        return unit


@node
class SubsequenceSum(WeightedSubsequences):
    """Sum of the subsequence kernels of all lengths up to n.

        k(s, t) = sum_(q = 1, ..., n) Subsequence(q, decay)(s, t)

    Parameters
    ----------
    n : int, default=3
        The length of the longest subsequences that are counted; 3 to 5 is usual.
    decay : float, default=0.5
        The decay per position of the span of a subsequence, in (0, 1], as in `Subsequence`.

    See Also
    --------
    Subsequence : One length only.
    AllSubsequences : All lengths, without a penalty for gaps.
    Spectrum : With `blended=True`, contiguous words of all lengths up to p.

    Notes
    -----
    The libraries Shogun and strkernels call this the subsequence kernel.  A contiguous subsequence
    of length q has the weight decay^(2q).  If decay < 1, short subsequences therefore dominate, and
    normalised values are large.  A pair of strings takes n |s| |t| steps.

    References
    ----------
    Lodhi, Saunders, Shawe-Taylor, Cristianini and Watkins, "Text classification using string
    kernels", JMLR 2002.  Shawe-Taylor and Cristianini, "Kernel methods for pattern analysis", 2004,
    chapter 11.

    Examples
    --------
    >>> from mercer.kernels import Normalized, SubsequenceSum
    >>> Normalized(SubsequenceSum(2, decay=1.0))(["ABCDEFG"], ["EFGHIJK"]).round(4)  # 6 / 28
    array([[0.2143]])
    """

    def _length_weights(self) -> np.ndarray:
        return np.ones(self.n)


@node
class AllSubsequences(PairwiseStringKernel):
    """All-subsequences kernel: the number of pairs of equal subsequences of two strings.

        k(s, t) = sum over all strings u, including the empty one, of #(u in s) #(u in t)

    Here #(u in s) is the number of ways to choose positions of s, not necessarily contiguous, whose
    symbols form u.  The kernel has no parameters.

    See Also
    --------
    SubsequenceSum : A limited length and a penalty for gaps; prefer it for more than a few symbols.
    Subsequence : One length only.
    Subsets : The same for sets instead of strings.

    Notes
    -----
    It equals 1 + `SubsequenceSum` with decay = 1 and n at least the length of the strings.  A pair
    of strings takes |s| |t| steps.  k(s, s) is at least 2^|s|, and if s consists of n equal symbols
    it is the binomial coefficient "2n choose n".  For strings of more than about 500 symbols,
    values may overflow, which raises an error.  Even for much shorter strings, the normalised
    kernel matrix is close to the identity.

    References
    ----------
    Shawe-Taylor and Cristianini, "Kernel methods for pattern analysis", 2004, section 11.3.

    Examples
    --------
    >>> from mercer.kernels import AllSubsequences
    >>> AllSubsequences()(["gatta", "gatt"], ["cata"])
    array([[14.],
           [ 7.]])
    """

    _remedy: ClassVar[str] = "use shorter strings, or SubsequenceSum with a decay < 1"

    def _evaluate(self, *pairs: np.ndarray) -> np.ndarray:
        values: np.ndarray = _all_subsequences(*pairs)
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
    """Return sum_q weights_q K_q for sorted pairs, with up to _LANES strings of z at a time.

    K_q is the subsequence kernel of length q.  The recursion is D_0 = 1,  K_q = sum_ij S_q(i, j),
    S_q(i, j) = [x_i = z_j] decay^2 D_(q-1)(i-1, j-1)  and

        D_q(i, j) = sum_(i' <= i, j' <= j) decay^(i - i' + j - j') S_q(i', j').

    D_q is computed in two steps, the sum E_q over i' and then the sum over j'.  Only the row of the
    current i is stored.  Its entry t belongs to position t // _LANES of string t % _LANES of
    the current group of strings of z.
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
        # The last string of the group is the longest, because the lengths are in increasing order.
        m = _LANES * z_spans[last - 1, 1]
        letters = np.full(m, -1)
        for lane in range(last - first):
            for j in range(z_spans[first + lane, 1]):
                letters[j * _LANES + lane] = z[z_spans[first + lane, 0] + j]
        E = np.zeros((n, m))
        D = np.zeros((n, m + _LANES))
        D[0] = 1.0
        K = np.zeros(m)
        for i in range(start, start + count):
            letter = x[i]
            for q in range(n, 0, -1):  # q descends, because D_(q-1) of row i - 1 is needed
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
    letter: int, letters: np.ndarray, factor: float, D_prev: np.ndarray, K: np.ndarray
) -> None:
    """Add factor * D_prev[t] to K[t] at each position t with letters[t] == letter."""
    for t in range(len(letters)):
        K[t] += factor * D_prev[t] if letters[t] == letter else 0.0


@jit()
def _advance(
    letter: int, letters: np.ndarray, decay: float, D_prev: np.ndarray, E: np.ndarray, D: np.ndarray
) -> None:
    """Update the sums E and D for length q to the next row; D_prev is D for length q - 1."""
    new = D[_LANES:]  # a view, shifted by one position: D[t] is the entry to the left of new[t]
    for t in range(len(letters)):
        E[t] = decay * E[t] + (decay * decay * D_prev[t] if letters[t] == letter else 0.0)
        new[t] = E[t] + decay * D[t]


@jit()
def _all_subsequences(
    x: np.ndarray, x_spans: np.ndarray, z: np.ndarray, z_spans: np.ndarray
) -> np.ndarray:
    """Return the all-subsequences kernel of each pair.

    The recursion is k(s a, t) = k(s, t) + sum of k(s, t[:j]) over the positions j where t[j] = a,
    for a string s followed by a symbol a.
    """
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
