"""Kernels of the words that strings have in common, by explicit features.

A word is a run of symbols.  Its code depends on it alone, whatever the alphabet and whatever else
is in the collection, so nothing is truncated, dropped or learned from the training strings.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from .._points import length
from ._base import node
from ._eulerian import walks
from ._explicit import Explicit, Terms, mix
from ._sequences import OnStrings, check_count, check_decay, sequences, strings_of, words

__all__ = ["Spectrum", "WeightedDegree"]


@node
class Spectrum(OnStrings, Explicit):
    """k(s, t) = sum over words u of decay^(2|u|) #(u in s) #(u in t), |u| = p; blended: |u| <= p.

    Parameters
    ----------
    p : int
        The length of the words, the contiguous p-grams.
    blended : bool
        Count the words of all lengths 1, ..., p.
    decay : float in (0, 1]
        The weight of a symbol: a word of length q weighs decay^(2q).

    Notes
    -----
    Leslie, Eskin and Noble, "The spectrum kernel: a string kernel for SVM protein classification",
    PSB 2002; blended: Shawe-Taylor and Cristianini, 2004, section 11.2.  Features take linear time,
    K is one sparse product.  Values grow with the strings: use `Normalized(Spectrum(...))`.  With
    p too long nothing matches, with p too short everything does; 3 to 6 suit DNA, proteins, text.

    Examples
    --------
    >>> from mercer.kernels import Spectrum
    >>> Spectrum(2)(["ABAB"], ["BABA", "ABAB"])
    array([[4., 5.]])
    >>> Spectrum(2).features(["ABAB", "BABA", "BB"]).shape  # AB, BA and BB
    (3, 3)
    """

    p: int = 3
    blended: bool = False
    decay: float = 1.0

    def _check(self) -> None:
        check_count("Spectrum", "p", self.p)
        check_decay("Spectrum", self.decay)
        if not isinstance(self.blended, (bool, np.bool_)):
            raise TypeError(f"Spectrum: blended must be a bool, got {self.blended!r}")

    def _shortest(self) -> tuple[str, int]:
        return "p", 1 if self.blended else self.p

    def _terms(self, X: Any) -> Terms:
        S = sequences(X, "Spectrum")
        parts = []
        for q, w in enumerate(words(S, self.p), start=1):
            if self.blended or q == self.p:
                value = np.full(len(w.code), float(self.decay) ** q)
                parts.append(Terms(len(S), w.owner, mix(w.code, q), value, S.kind))
        return Terms.joined(*parts)

    _preimage_method: ClassVar[str] = "eulerian"

    def _preimage(self, X: Any, C: np.ndarray) -> Any:
        if self.blended or not length(X):
            return None
        return walks(sequences(X, "Spectrum"), strings_of(X, "Spectrum"), C, self.p)


@node
class WeightedDegree(OnStrings, Explicit):
    """k(s, t) = sum_(q <= degree) beta_q #(places where s and t have the same word of length q).

    beta_q = 2 (degree - q + 1) / (degree (degree + 1)), which sum to 1.  All strings must have one
    length: place i of one is compared with place i of the other.

    Parameters
    ----------
    degree : int
        The greatest length of a word.

    Notes
    -----
    Raetsch and Sonnenburg, "Accurate splice site prediction for Caenorhabditis elegans", in Kernel
    Methods in Computational Biology, 2004.  A string of length l has degree * l features.  For
    strings cut around something whose place is known, such as a splice site; one inserted symbol
    moves all that follows, and nothing matches any more.

    Examples
    --------
    >>> from mercer.kernels import WeightedDegree
    >>> WeightedDegree(3)(["GATTA"], ["GATTA", "GATCA"]).round(4)  # 13/3, 2 + 2/3 + 1/6
    array([[4.3333, 2.8333]])
    """

    degree: int = 3

    def _check(self) -> None:
        check_count("WeightedDegree", "degree", self.degree)

    def _terms(self, X: Any) -> Terms:
        S = sequences(X, "WeightedDegree")
        if len(S) and np.any(S.lengths != S.lengths[0]):
            other = int(np.argmax(S.lengths != S.lengths[0]))
            raise ValueError(
                f"WeightedDegree compares strings place by place, but point {other} has "
                f"{S.lengths[other]} symbols and point 0 has {S.lengths[0]}; cut them to one "
                f"length, or use Spectrum, which does not mind"
            )
        kind = f"{S.kind} of {S.longest} symbols" if len(S) else ""
        d, parts = self.degree, []
        for q, w in enumerate(words(S, d), start=1):
            beta = 2.0 * (d - q + 1) / (d * (d + 1))
            where = mix((w.place - S.starts[w.owner]).view(np.uint64), q)
            value = np.full(len(w.code), np.sqrt(beta))
            parts.append(Terms(len(S), w.owner, mix(w.code ^ where), value, kind))
        return Terms.joined(*parts)
