"""The local alignment kernel, and the scores of amino acids."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from .._runtime import jit
from ._base import node
from ._fields import frozen_matrix, lowest_eigenvalue
from ._prepared import Prepared
from ._sequences import Sequences, symbols_of
from ._subsequences import StringProgramme
from ._vectors import check_positive

__all__ = ["LocalAlignment"]

_GREATEST = 200.0  # beta times a score: sums of a row must not overflow before they are scaled
_RESIDUES = "ARNDCQEGHILKMFPSTWYV"
# Henikoff and Henikoff, "Amino acid substitution matrices from protein blocks", PNAS 1992
_BLOSUM62 = """
 4
-1  5
-2  0  6
-2 -2  1  6
 0 -3 -3 -3  9
-1  1  0  0 -3  5
-1  0  0  2 -4  2  5
 0 -2  0 -1 -3 -2 -2  6
-2  0  1 -1 -3  0  0 -2  8
-1 -3 -3 -3 -1 -3 -3 -4 -3  4
-1 -2 -3 -4 -1 -2 -3 -4 -3  2  4
-1  2  0 -1 -3  1  1 -2 -1 -3 -2  5
-1 -1 -2 -3 -1  0 -2 -3 -2  1  2 -1  5
-2 -3 -3 -3 -2 -3 -3 -3 -1  0  0 -3  0  6
-1 -2 -2 -1 -3 -1 -1 -2 -2 -3 -3 -1 -2 -4  7
 1 -1  1  0 -1  0  0  0 -1 -2 -2  0 -1 -2 -1  4
 0 -1  0 -1 -1 -1 -1 -2 -2 -1 -1 -1 -1 -2 -1  1  5
-3 -3 -4 -4 -2 -2 -3 -2 -2 -3 -2 -3 -1  1 -4 -3 -2 11
-2 -2 -2 -3 -2 -1 -2 -3  2 -1 -1 -2 -1  3 -3 -2 -2  2  7
 0 -3 -3 -3 -1 -2 -2 -3 -3  3  1 -2  1 -1 -2 -2  0 -3 -1  4
"""


def _blosum62() -> np.ndarray:
    A = np.zeros((20, 20))
    A[np.tril_indices(20)] = np.array(_BLOSUM62.split(), dtype=float)
    return A + np.tril(A, -1).T


@node
class LocalAlignment(StringProgramme):
    """k(s, t) = sum over all local alignments of exp(beta * score).

    A local alignment pairs n >= 0 symbols of s with symbols of t, in order.  Its score is the sum
    of `scores` of the pairs, less opening + extension * (l - 1) for every gap of l symbols between
    two pairs, in either string; the alignment of nothing adds 1.

    Parameters
    ----------
    scores : "BLOSUM62", (match, mismatch), or a symmetric matrix
        A matrix has a row for each symbol of `alphabet`.
    alphabet : str, optional
        The symbols of a matrix, in the order of its rows.  A symbol that is none of them is
        aligned with nothing: gaps go over it.
    opening, extension : float
        What the first and each further symbol of a gap cost, not negative.
    beta : float
        Near 0 all alignments count alike, a large beta leaves the best one.
    normalized : bool
        Return k(s, t) / sqrt(k(s, s) k(t, t)), from logarithms: what `Normalized` does, for
        strings so long that k(s, s) itself is beyond 1e308 (with BLOSUM62 at beta = 0.5, from
        about 270 residues).

    Notes
    -----
    Saigo, Vert, Ueda and Akutsu, "Protein homology detection using string alignment kernels",
    Bioinformatics 2004.  Time |s| |t| a pair.  k is a Mercer kernel if exp(beta * scores) is
    positive semidefinite, which is checked; for BLOSUM62 it is for every beta.

    **The logarithm of k is no Mercer kernel.**  Normalised values of unrelated strings are almost
    0, so that K is nearly the identity; a smaller beta helps.  The paper, and many after it, take
    log k instead, which has negative eigenvalues in general: a machine that needs a Mercer kernel
    may do anything with it.

    Examples
    --------
    >>> from mercer.kernels import LocalAlignment
    >>> k = LocalAlignment(scores=(1.0, -1.0), opening=2.0, extension=1.0, beta=1.0)
    >>> k(["A"], ["A", "C", ""]).round(4)  # 1 + e, 1 + 1/e, 1
    array([[3.7183, 1.3679, 1.    ]])
    >>> LocalAlignment(beta=0.2, normalized=True)(["HEAGAWGHEE"], ["PAWHEAE"]).round(3)
    array([[0.012]])
    """

    scores: Any = "BLOSUM62"
    alphabet: Any = None
    opening: float = 11.0
    extension: float = 1.0
    beta: float = 0.5
    normalized: bool = False

    _rule: ClassVar[str] = "R-convolution of exp(beta * scores), positive semidefinite, and gaps"
    _remedy: ClassVar[str] = "use normalized=True, a smaller beta, or shorter strings"

    def _check(self) -> None:
        check_positive("LocalAlignment", "beta", self.beta)
        for name in ("opening", "extension"):
            check_positive("LocalAlignment", name, getattr(self, name), zero=True)
        if not isinstance(self.normalized, (bool, np.bool_)):
            raise TypeError(f"LocalAlignment: normalized must be a bool, got {self.normalized!r}")
        if isinstance(self.scores, str):
            if self.scores != "BLOSUM62":
                raise ValueError(
                    f"LocalAlignment: scores must be 'BLOSUM62', (match, mismatch) or a matrix, "
                    f"got {self.scores!r}"
                )
            self._refuse_large_scores(11.0)
        elif np.ndim(self.scores) == 1 and np.size(self.scores) == 2:
            match, mismatch = map(float, self.scores)
            if not np.isfinite(match + mismatch) or match < mismatch:
                raise ValueError(
                    f"LocalAlignment: scores (match, mismatch) must be finite, with match at least "
                    f"mismatch, got {self.scores!r}; otherwise k is no Mercer kernel"
                )
            self._refuse_large_scores(match)
        else:
            A = frozen_matrix(self.scores, "LocalAlignment", "scores")
            object.__setattr__(self, "scores", A)
            if self.alphabet is None or len(self.alphabet) != len(A):
                raise ValueError(
                    f"LocalAlignment: scores have {len(A)} rows, so alphabet must name {len(A)} "
                    f"symbols, got {self.alphabet!r}"
                )
            self._refuse_large_scores(float(A.max()))
            # exp(beta A) scaled to ones on the diagonal, so that no large score hides the others
            equal = np.diagonal(A)
            beyond = self.beta * (A - 0.5 * (equal[:, None] + equal))
            cosines = np.exp(np.minimum(beyond, 1.0))  # above 1 it is none, by however much
            if (lowest := lowest_eigenvalue(cosines)) < 0:
                raise ValueError(
                    f"LocalAlignment: exp(beta * scores), scaled to ones on its diagonal, has the "
                    f"eigenvalue {lowest:.3g} < 0, so k is no Mercer kernel; raise beta, or the "
                    f"scores of equal symbols"
                )

    def _refuse_large_scores(self, largest: float) -> None:
        if self.beta * largest > _GREATEST:
            raise ValueError(
                f"LocalAlignment: with beta={self.beta} a single pair, of score {largest:g}, "
                f"overflows; beta times the greatest score must be at most {_GREATEST:g}"
            )

    def _symbols(self, S: Sequences) -> np.ndarray:
        """Return rows of the table of scores, its last one for what has none."""
        if self._is_pair:
            return S.symbols
        letters = symbols_of(_RESIDUES if isinstance(self.scores, str) else self.alphabet, S.kind)
        order = np.argsort(letters)
        place = np.minimum(np.searchsorted(letters, S.symbols, sorter=order), len(letters) - 1)
        return np.where(letters[order][place] == S.symbols, order[place], len(letters))

    def _reads(self, S: Sequences) -> np.ndarray:
        if self._is_pair:
            return super()._reads(S)
        letters = _RESIDUES if isinstance(self.scores, str) else self.alphabet
        return np.isin(S.symbols, symbols_of(letters, S.kind))

    @property
    def _is_pair(self) -> bool:
        return not isinstance(self.scores, str) and np.ndim(self.scores) == 1

    def _prepare(self, X: Any, like: Prepared | None) -> Prepared:
        P = super()._prepare(X, like)
        if self.normalized:
            spans, symbols = P.arrays[0], P.frame.symbols
            norms = 0.5 * self._logarithms(symbols, spans, symbols, spans)
            P = Prepared((spans, norms), frame=P.frame)
        return P

    def _pairs(self, P: Prepared, Q: Prepared, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        if not self.normalized:
            return super()._pairs(P, Q, i, j)
        logarithms = self._logarithms(
            P.frame.symbols, P.arrays[0][i], Q.frame.symbols, Q.arrays[0][j]
        )
        return np.exp(logarithms - P.arrays[1][i] - Q.arrays[1][j])

    def _evaluate(self, *pairs: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            return np.exp(self._logarithms(*pairs))

    def _logarithms(self, *pairs: np.ndarray) -> np.ndarray:
        """Return log k for each pair."""
        if self._is_pair:
            table = np.exp(self.beta * np.array([self.scores], dtype=float))
        else:
            A = _blosum62() if isinstance(self.scores, str) else self.scores
            table = np.zeros((len(A) + 1, len(A) + 1))
            table[:-1, :-1] = np.exp(self.beta * A)
        opening, extension = np.exp([-self.beta * self.opening, -self.beta * self.extension])
        return _local_alignments(table, opening, extension, *pairs)


@jit()
def _local_alignments(
    table: np.ndarray,
    opening: float,
    extension: float,
    x: np.ndarray,
    x_spans: np.ndarray,
    z: np.ndarray,
    z_spans: np.ndarray,
) -> np.ndarray:
    """Return log k of each pair; a table of one row has the scores of equal and other symbols.

    M(i, j) sums the alignments that end with the pair (i, j), U those that end in a gap of x and V
    those that end in one of z, after one of x if there is one, so that no order counts twice:

        M(i, j) = table(x_i, z_j) (1 + M + U + V)(i-1, j-1)
        U(i, j) = opening M(i-1, j) + extension U(i-1, j)
        V(i, j) = opening (M + U)(i, j-1) + extension V(i, j-1),      k = 1 + sum_ij M(i, j)

    Where sums get large, all of them are scaled, the 1 too.
    """
    values = np.empty(len(x_spans))
    for pair in range(len(values)):
        start, count = z_spans[pair]
        letters = z[start : start + count]
        M, U, V = np.zeros(count + 1), np.zeros(count + 1), np.zeros(count + 1)
        one, total, scalings = 1.0, 1.0, 0
        for i in range(x_spans[pair, 0], x_spans[pair, 0] + x_spans[pair, 1]):
            letter = x[i]
            left_M, left_U, left_V = 0.0, 0.0, 0.0  # of the last row
            for j in range(count):
                if len(table) == 1:
                    score = table[0, 0] if letters[j] == letter else table[0, 1]
                else:
                    score = table[letter, letters[j]]
                match = score * (one + left_M + left_U + left_V)
                left_M, left_U, left_V = M[j + 1], U[j + 1], V[j + 1]
                U[j + 1] = opening * left_M + extension * left_U
                V[j + 1] = opening * (M[j] + U[j]) + extension * V[j]
                M[j + 1] = match
                total += match
            if total > 1e100:
                one, total, scalings = one * 1e-100, total * 1e-100, scalings + 1
                M *= 1e-100
                U *= 1e-100
                V *= 1e-100
        values[pair] = np.log(total) + scalings * np.log(1e100)
    return values
