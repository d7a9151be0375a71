"""What a kernel PCA has learned, however it was found: functions, their mean, and their spectrum.

    score_j(x) = f_j(x) - f_j(mu),     |phi(x) - mu - sum_j score_j w_j|^2
                                         = k(x, x) - 2 mu(x) + |mu|^2 - sum_j score_j(x)^2

f_j and mu are expansions in the same points: all training points for an exact solver, the
landmarks for Nyström.  Random features are an expansion too, with the linear kernel, in the space
they map to.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._points import length, take
from .._runtime import entry_point
from ..expansion import Expansion, Primal
from ..gram import CentredGram, FourierMap, NystroemMap
from ..kernels import Kernel, Linear
from ..preimage import PreImages, joined
from ..reduce import Reduction
from ..solvers import Certificate, EigenPairs, Moments, Report, signs_of
from ._spectrum import noise_of

__all__ = ["Components"]

_ROWS = 8192  # points lifted to random features at a time
_ENTRIES = 2**22  # coefficients of reconstructions held at a time


@entry_point
@dataclass(frozen=True, eq=False)
class Components:
    """Eigenvalues with their bounds, and functions that score any point.

    Attributes
    ----------
    values : ndarray of shape (k,)
    vectors : ndarray of shape (n, k) or None
        Of the centred kernel matrix; None after a stream, whose points are gone.
    certificate, report
    total : float
        The trace of the centred kernel matrix (for Nyström an upper bound on it).
    rows : int
        Training points that count.
    expansion : Expansion or Primal
        The functions w_j, and mu in the last column.
    offset : ndarray of shape (k,)
        <w_j, mu>.
    squared_mean : float
        |mu|^2.
    scores : ndarray of shape (n, k) or None
        Of the training points.
    basis : FeatureBasis or None
    reduction : Reduction or None
        Of components on fewer points than they were found on.
    """

    values: np.ndarray
    vectors: np.ndarray | None
    certificate: Certificate
    report: Report
    total: float
    rows: int
    expansion: Any
    offset: np.ndarray
    squared_mean: float
    scores: np.ndarray | None
    basis: Any = None
    reduction: Reduction | None = None

    @classmethod
    def exact(
        cls, centred: CentredGram, pairs: EigenPairs, points: Any, gains: np.ndarray, total: float
    ) -> Components:
        """Return the components on all points: w_j = sum_i u_ij gain_j (phi(x_i) - mu).

        The gain is 1 / sqrt(l_j), unless the spectrum was changed to make it that of a kernel.
        """
        S, vectors = centred.scale[:, None], pairs.vectors
        even = bool(np.all(S == 1.0))  # without weights
        coefficients, offset = centred.centre_expansion((vectors if even else S * vectors) * gains)
        both = np.column_stack([coefficients, centred.weights])
        roots = np.sqrt(pairs.values)
        return cls(
            pairs.values,
            pairs.vectors,
            pairs.certificate,
            pairs.report,
            total,
            centred.shape[0],
            Expansion(centred.kernel, points, both),
            offset,
            centred.grand_mean,
            (vectors if even else vectors / S) * roots,
        )

    @classmethod
    def of_features(
        cls, pairs: EigenPairs, scale: np.ndarray | None, *, drop_zeros: bool = False
    ) -> Components:
        """Return the components on landmarks, or in the space of random features.

        A component without variance is 0, or dropped.  The largest score among the landmarks is
        positive, so that the signs are those of an exact solver if all points are landmarks.
        """
        phi, moments, axes, _ = pairs.basis
        total = float(np.trace(moments.comoment)) + moments.residual
        size = total + moments.weight * float(moments.mean @ moments.mean)
        null = pairs.values < noise_of(pairs.values, float(pairs.values.max(initial=0.0)), size)
        signs = np.ones(axes.shape[1])
        if isinstance(phi, NystroemMap):
            signs = signs_of(phi.factor @ axes - moments.mean @ axes)
        signs[null] = 0.0
        axes = axes * signs
        pairs = replace(
            pairs,
            values=np.where(null, 0.0, pairs.values),
            vectors=pairs.vectors * signs,
            basis=pairs.basis._replace(axes=axes),
        )
        if drop_zeros:
            pairs = pairs.first(int(np.count_nonzero(~null)))
            axes = pairs.basis.axes
        columns = np.column_stack([axes, moments.mean])
        kernel: Kernel
        if isinstance(phi, FourierMap):
            kernel, points, coefficients = Linear(), columns.T, np.eye(columns.shape[1])
        else:
            kernel, points = phi.kernel, phi.points
            coefficients = phi.expansion_coefficients(columns)
        scores = None
        if scale is not None:
            scores = pairs.vectors * np.sqrt(pairs.values) / scale[:, None]
        return cls(
            pairs.values,
            None if scale is None else pairs.vectors,
            pairs.certificate,
            pairs.report,
            total,
            moments.rows,
            Expansion(kernel, points, coefficients),
            axes.T @ moments.mean,
            float(moments.mean @ moments.mean),
            scores,
            pairs.basis,
        )

    @property
    def functions(self) -> Any:
        """The components w_j alone."""
        return self.expansion[slice(0, len(self.offset))]

    @property
    def mean(self) -> Any:
        """The mean mu alone."""
        return self.expansion[[len(self.offset)]]

    @property
    def in_features(self) -> bool:
        """Whether the expansion lives in the space of random features."""
        return self.basis is not None and isinstance(self.basis.map, FourierMap)

    def with_moments(self, moments: Moments) -> Components:
        """Return the components with other moments of their features."""
        return replace(self, basis=self.basis._replace(moments=moments))

    def in_terms_of(self, kernel: Kernel) -> Components:
        """Return the components as functions of this kernel, which has the same values."""
        f, basis = self.expansion, self.basis
        if basis is not None and isinstance(basis.map, NystroemMap):
            basis = basis._replace(map=replace(basis.map, kernel=kernel))
        return replace(self, expansion=Expansion(kernel, f.points, f.coefficients), basis=basis)

    def to_primal(self, max_memory: Any = None) -> Components:
        """Return the components as weights of the kernel's features, without any points."""
        f = self.expansion.to_primal(max_memory=max_memory)
        return replace(self, expansion=f, vectors=None, scores=None, basis=None)

    @property
    def in_primal(self) -> bool:
        """Whether the functions are weights, and have no points."""
        return isinstance(self.expansion, Primal)

    def decode(self, scores: np.ndarray) -> Expansion:
        """Return the elements mu + sum_j scores_ij w_j of the RKHS, one for each row of scores."""
        f, A = self.expansion, self.expansion.coefficients
        return Expansion(f.kernel, f.points, A[:, :-1] @ scores.T + A[:, -1:])

    def preimage(
        self, scores: np.ndarray, method: str = "auto", *, start: Any = None, **options: Any
    ) -> PreImages:
        """Return points whose phi is close to `decode(scores)`, some rows at a time."""
        if not len(scores):
            raise ValueError("there are no scores to find pre-images of")
        points = self.expansion.points
        columns = points.shape[1] if getattr(points, "ndim", 0) == 2 else 1
        rows = max(1, _ENTRIES // max(length(points), 16 * columns))
        found = []
        for first in range(0, len(scores), rows):
            block = slice(first, first + rows)
            here = None if start is None else take(start, block)
            found.append(self.decode(scores[block]).preimage(method, start=here, **options))
        return joined(found)

    def contributions(self, X: np.ndarray) -> np.ndarray:
        """Return the share of each column in each component, (k, d), at the points X.

        The mean of (s_c df_j / dx_c)^2, with s_c the standard deviation of column c; rows sum to 1.
        """
        if not len(self.values):
            return np.zeros((0, X.shape[1]))
        squares = np.mean((self.functions.gradient(X) * np.std(X, axis=0)) ** 2, axis=0)
        total = squares.sum(axis=1, keepdims=True)
        return np.divide(squares, total, out=np.zeros_like(squares), where=total > 0)

    def score(self, X: Any) -> np.ndarray:
        """Return <w_j, phi(x) - mu>, (n, k)."""
        # with mu, which costs little: an expansion keeps its points ready for the next few x
        return self._by_rows(X, self.expansion)[:, :-1] - self.offset

    def error(self, X: Any, kernel: Kernel) -> np.ndarray:
        """Return |phi(x) - mu - its projection|^2; random features have norms of their own."""
        if self.in_features:
            diagonal = self._by_rows(X, lambda Y: np.einsum("ij,ij->i", Y, Y))
        else:
            diagonal = np.asarray(kernel.diag(X))
        both = self._by_rows(X, self.expansion)
        distances = diagonal - 2.0 * both[:, -1] + self.squared_mean
        return self.left(distances, both[:, :-1] - self.offset)

    @staticmethod
    def left(distances: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """Return |phi(x) - mu|^2 - |scores|^2, where what is below 0 is rounding."""
        return np.maximum(distances - np.einsum("ij,ij->i", scores, scores), 0.0)

    def _by_rows(self, X: Any, function: Any) -> np.ndarray:
        """Apply the function to the points, or to their random features, some rows at a time."""
        if not self.in_features:
            return np.asarray(function(X))
        blocks = self.basis.map.blocks(X, _ROWS)
        return np.concatenate([function(F) for _, F in blocks])
