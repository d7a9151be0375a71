"""The local alignment kernel for strings, and the BLOSUM62 scores of amino acids."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ..._core import Points, jit
from .._base import node, option
from .._evaluation import Prepared
from .._parameter_checks import boolean, frozen_matrix, lowest_eigenvalue, nonnegative, positive
from ._sequences import SequenceEncoding, encode_alphabet
from ._subsequence_kernels import PairwiseStringKernel

# Upper limit of beta times the largest score.  The recursion rescales its sums only once per row,
# so exp(beta * score) must be far enough below the largest float64 that no sum overflows in a row.
_MAX_EXPONENT = 200.0
_RESIDUES = "ARNDCQEGHILKMFPSTWYV"  # the amino acids, in the order of the rows of BLOSUM62
# Lower triangle of the matrix of scores, from Henikoff and Henikoff, "Amino acid substitution
# matrices from protein blocks", PNAS 1992.
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
    """Return the symmetric matrix of BLOSUM62 scores, shape (20, 20)."""
    A = np.zeros((20, 20))
    A[np.tril_indices(20)] = np.array(_BLOSUM62.split(), dtype=float)
    return A + np.tril(A, -1).T


@node
class LocalAlignment(PairwiseStringKernel):
    """Local alignment kernel of strings, for example of protein sequences.

        k(s, t) = sum over all local alignments of exp(beta * score)

    A local alignment pairs n >= 0 symbols of s with symbols of t, in order.  Its score is the sum
    of the `scores` of the pairs, minus opening + extension * (l - 1) for every gap of l symbols
    between two pairs, in either string.  The empty alignment, with no pairs, has the score 0.

    Parameters
    ----------
    scores : "BLOSUM62", tuple (match, mismatch), or symmetric array, default="BLOSUM62"
        The score of each pair of symbols.  Use "BLOSUM62" for proteins and a tuple such as
        (1.0, -1.0) for DNA and text.  An array must have one row and one column for each symbol of
        `alphabet`.
    alphabet : str, optional
        The symbols to which the rows of `scores` belong, if it is an array.  Symbols that are not
        in the alphabet are never paired; a gap can extend over them.
    opening : float, default=11.0
        The cost of the first symbol of a gap, >= 0, in units of `scores`.  11 and 1 are usual for
        BLOSUM62.
    extension : float, default=1.0
        The cost of each further symbol of a gap, >= 0.
    beta : float, default=0.5
        The factor of the score, > 0 (inverse temperature).  If beta is near 0, all alignments have
        about the same weight; if it is large, the best alignment dominates.  Choose it by
        cross-validation, starting below 0.5.
    normalized : bool, default=False
        Whether to return k(s, t) / sqrt(k(s, s) k(t, t)), computed from logarithms.  Unlike
        `Normalized`, this also works for strings so long that k(s, s) exceeds 1e308 (with BLOSUM62
        and beta = 0.5, from about 270 residues).

    See Also
    --------
    Mismatch : Counts common words with mismatches; much faster for many sequences.
    Spectrum : Counts common words exactly; the fastest.
    WeightedDegree : For sequences that are already aligned.

    Notes
    -----
    The time for a pair of strings is proportional to |s| |t|.  k is a Mercer kernel if
    exp(beta * scores) is positive semidefinite.  The constructor checks this; it holds for BLOSUM62
    with every beta.

    Normalised values of unrelated strings are almost 0, so that the kernel matrix is nearly the
    identity; a smaller beta helps.  Saigo et al., and many later papers, use log k instead.
    **The logarithm of k is not a Mercer kernel**: its matrix has negative eigenvalues in general,
    and models that require a Mercer kernel then give meaningless results.

    References
    ----------
    Saigo, Vert, Ueda and Akutsu, "Protein homology detection using string alignment kernels",
    Bioinformatics 20, 2004. Henikoff and Henikoff, "Amino acid substitution matrices from protein
    blocks", PNAS 89, 1992 (BLOSUM62).

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
    opening: float = option(11.0, nonnegative)
    extension: float = option(1.0, nonnegative)
    beta: float = option(0.5, positive)
    normalized: bool = option(False, boolean)

    _rule: ClassVar[str] = "R-convolution of gaps and of exp(beta * scores), positive semidefinite"
    _remedy: ClassVar[str] = "use normalized=True, a smaller beta, or shorter strings"

    def _check(self) -> None:
        if isinstance(self.scores, str):
            if self.scores != "BLOSUM62":
                raise ValueError(
                    f"LocalAlignment: scores must be 'BLOSUM62', (match, mismatch) or a matrix, "
                    f"got {self.scores!r}"
                )
            self._check_overflow(11.0)
        elif np.ndim(self.scores) == 1 and np.size(self.scores) == 2:
            match, mismatch = map(float, self.scores)
            if not np.isfinite(match + mismatch) or match < mismatch:
                raise ValueError(
                    f"LocalAlignment: scores (match, mismatch) must be finite, with match at least "
                    f"mismatch, got {self.scores!r}; otherwise k is not a Mercer kernel"
                )
            self._check_overflow(match)
        else:
            A = frozen_matrix(self.scores, "LocalAlignment", "scores")
            object.__setattr__(self, "scores", A)
            if self.alphabet is None or len(self.alphabet) != len(A):
                raise ValueError(
                    f"LocalAlignment: scores have {len(A)} rows, so alphabet must have {len(A)} "
                    f"symbols, got {self.alphabet!r}"
                )
            self._check_overflow(float(A.max()))
            # Scale exp(beta A) to a unit diagonal, so that a large score does not hide negative
            # eigenvalues in its rounding error.  A positive exponent gives an entry > 1, so that
            # the matrix is not positive semidefinite; the limit 1 only avoids overflow.
            diagonal = np.diagonal(A)
            exponents = self.beta * (A - 0.5 * (diagonal[:, None] + diagonal))
            normalized = np.exp(np.minimum(exponents, 1.0))
            if (lowest := lowest_eigenvalue(normalized)) < 0:
                raise ValueError(
                    f"LocalAlignment: exp(beta * scores), scaled to ones on its diagonal, has the "
                    f"eigenvalue {lowest:.3g} < 0, so k is not a Mercer kernel; increase beta, or "
                    f"the scores on the diagonal"
                )

    def _check_overflow(self, largest: float) -> None:
        """Raise ValueError if exp(beta * largest score) could overflow in the recursion."""
        if self.beta * largest > _MAX_EXPONENT:
            raise ValueError(
                f"LocalAlignment: beta={self.beta} is too large for the score {largest:g}, "
                f"because exp(beta * score) may overflow; beta times the largest score must be at "
                f"most "
                f"{_MAX_EXPONENT:g}"
            )

    def _symbols(self, S: SequenceEncoding) -> np.ndarray:
        """Return each symbol's row in the table of scores; unknown symbols have the last row."""
        if self._is_pair:
            return S.symbols
        letters = encode_alphabet(
            _RESIDUES if isinstance(self.scores, str) else self.alphabet, S.kind
        )
        order = np.argsort(letters)
        index = np.minimum(np.searchsorted(letters, S.symbols, sorter=order), len(letters) - 1)
        return np.where(letters[order][index] == S.symbols, order[index], len(letters))

    def _in_alphabet(self, S: SequenceEncoding) -> np.ndarray:
        if self._is_pair:
            return super()._in_alphabet(S)
        letters = _RESIDUES if isinstance(self.scores, str) else self.alphabet
        return np.isin(S.symbols, encode_alphabet(letters, S.kind))

    @property
    def _is_pair(self) -> bool:
        """Whether `scores` is a pair (match, mismatch)."""
        return not isinstance(self.scores, str) and np.ndim(self.scores) == 1

    def _prepare(self, X: Points, like: Prepared | None) -> Prepared:
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
        values: np.ndarray = np.exp(logarithms - P.arrays[1][i] - Q.arrays[1][j])
        return values

    def _evaluate(self, *pairs: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            values: np.ndarray = np.exp(self._logarithms(*pairs))
            return values

    def _logarithms(self, *pairs: np.ndarray) -> np.ndarray:
        """Return log k for each pair of strings."""
        if self._is_pair:
            table = np.exp(self.beta * np.array([self.scores], dtype=float))
        else:
            A = _blosum62() if isinstance(self.scores, str) else self.scores
            table = np.zeros((len(A) + 1, len(A) + 1))
            table[:-1, :-1] = np.exp(self.beta * A)
        opening, extension = np.exp([-self.beta * self.opening, -self.beta * self.extension])
        logarithms: np.ndarray = _local_alignments(table, opening, extension, *pairs)
        return logarithms


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
    """Return log k for each pair of strings.

    `table` contains exp(beta * score), as one row (match, mismatch) or a square array.  Row t of
    `x_spans` is the (start, length) of the first string of pair t in the array of symbols `x`;
    `z_spans` and `z` contain the second strings.

    M(i, j) is the sum over the alignments that end with the pair (x_i, z_j).  U is the sum over
    those that end in a gap of x, and V over those that end in a gap of z.  If there are gaps in
    both strings, the gap of x comes first, so that each alignment is counted once:

        M(i, j) = table(x_i, z_j) (1 + M + U + V)(i-1, j-1)
        U(i, j) = opening M(i-1, j) + extension U(i-1, j)
        V(i, j) = opening (M + U)(i, j-1) + extension V(i, j-1),      k = 1 + sum_ij M(i, j)

    When the total exceeds 1e100, all sums are divided by 1e100, and so is the term 1 in the
    formulas (the variable `one`).
    """
    values = np.empty(len(x_spans))
    for pair in range(len(values)):
        start, count = z_spans[pair]
        letters = z[start : start + count]
        M, U, V = np.zeros(count + 1), np.zeros(count + 1), np.zeros(count + 1)
        one, total, scalings = 1.0, 1.0, 0
        for i in range(x_spans[pair, 0], x_spans[pair, 0] + x_spans[pair, 1]):
            letter = x[i]
            previous_M, previous_U, previous_V = (0.0, 0.0, 0.0)  # M, U and V at (i - 1, j - 1)
            for j in range(count):
                if len(table) == 1:
                    score = table[0, 0] if letters[j] == letter else table[0, 1]
                else:
                    score = table[letter, letters[j]]
                match = score * (one + previous_M + previous_U + previous_V)
                previous_M, previous_U, previous_V = M[j + 1], U[j + 1], V[j + 1]
                U[j + 1] = opening * previous_M + extension * previous_U
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
