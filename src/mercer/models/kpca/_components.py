"""The fitted components of a kernel PCA: component functions, mean, and spectrum.

    score_j(x) = w_j(x) - <w_j, mu>,     |phi(x) - mu - sum_j score_j(x) w_j|^2
                                           = k(x, x) - 2 mu(x) + |mu|^2 - sum_j score_j(x)^2

phi(x) = k(x, .) is the point x in feature space, mu is the mean of phi over the training points,
and w_j is component j.  The functions w_j and mu are expansions in the same points: all training
points for an exact solver, and the landmarks for Nyström.  With random features, they are
expansions of the linear kernel in the feature space.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..._core import MemoryLimit, Points, entry_point, length, take
from ...expansion import Expansion, Primal
from ...expansion.preimage import PreImages, concatenate_preimages
from ...expansion.reduced_set import Reduction
from ...gram import CentredGram, FourierMap, NystroemMap
from ...kernels import Kernel, Linear
from ...solvers import Certificate, EigenPairs, Moments, Report, canonical_signs
from ._indefinite_spectrum import rounding_floor

_FEATURE_BLOCK_ROWS = 8192  # number of points whose random features are in memory at a time
_MAX_DECODE_ENTRIES = 2**22  # number of coefficients of reconstructions in memory at a time


@entry_point
@dataclass(frozen=True, eq=False)
class Components:
    """The components of a kernel PCA: eigenvalues with bounds, and functions that score points.

    Attributes
    ----------
    values : ndarray of shape (k,)
        The eigenvalues of the centred kernel matrix, in descending order.
    vectors : ndarray of shape (n, k) or None
        Its eigenvectors; None after `partial_fit`, which does not store the points.
    certificate : Certificate
        Bounds on the eigenvalues.
    report : Report
        The report of the solver: its status, residual and time.
    total : float
        The trace of the centred kernel matrix; for Nyström, an upper bound on it.
    rows : int
        The number of training points that were used.
    expansion : Expansion or Primal
        The component functions w_j, and the mean mu in feature space as the last column.
    offset : ndarray of shape (k,)
        The inner products <w_j, mu>.
    squared_mean : float
        The squared norm |mu|^2.
    scores : ndarray of shape (n, k) or None
        The scores of the training points.
    basis : FeatureBasis or None
        The feature map and the moments of the features, for landmarks or random features.
    reduction : Reduction or None
        Information about the compression of the expansion to fewer points; None if there was none.
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
        cls,
        centred: CentredGram,
        pairs: EigenPairs,
        points: Points,
        score_factors: np.ndarray,
        total: float,
    ) -> Components:
        """Return components expanded in all points: w_j = sum_i u_ij c_j (phi(x_i) - mu).

        u_ij are the entries of the eigenvectors.  The factors c_j (`score_factors`) are
        1 / sqrt(l_j) for the eigenvalues l_j, unless `repair_spectrum` changed the spectrum of an
        indefinite matrix.
        """
        S, vectors = centred.scale[:, None], pairs.vectors
        is_unweighted = bool(np.all(S == 1.0))  # S holds the square roots of the weights
        coefficients, offset = centred.centre_expansion(
            (vectors if is_unweighted else S * vectors) * score_factors
        )
        columns = np.column_stack([coefficients, centred.weights])
        singular_values = np.sqrt(pairs.values)
        return cls(
            pairs.values,
            pairs.vectors,
            pairs.certificate,
            pairs.report,
            total,
            centred.shape[0],
            Expansion(centred.kernel, points, columns),
            offset,
            centred.grand_mean,
            (vectors if is_unweighted else vectors / S) * singular_values,
        )

    @classmethod
    def from_features(
        cls, pairs: EigenPairs, scale: np.ndarray | None, *, drop_zeros: bool = False
    ) -> Components:
        """Return components expanded in landmarks, or in the space of random features.

        Components without variance are set to 0, or removed if `drop_zeros` is True.  The sign of
        a component is such that its largest score in modulus among the landmarks is positive.  If
        all points are landmarks, these are the signs of an exact solver.
        """
        phi, moments, axes, _ = pairs.basis
        total = float(np.trace(moments.comoment)) + moments.residual
        uncentred_trace = total + moments.weight * float(moments.mean @ moments.mean)
        is_zero = pairs.values < rounding_floor(
            pairs.values, float(pairs.values.max(initial=0.0)), uncentred_trace
        )
        signs = np.ones(axes.shape[1])
        if isinstance(phi, NystroemMap):
            signs = canonical_signs(phi.factor @ axes - moments.mean @ axes)
        signs[is_zero] = 0.0
        axes = axes * signs
        pairs = replace(
            pairs,
            values=np.where(is_zero, 0.0, pairs.values),
            vectors=pairs.vectors * signs,
            basis=pairs.basis._replace(axes=axes),
        )
        if drop_zeros:
            pairs = pairs.first(int(np.count_nonzero(~is_zero)))
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
        """The component functions w_j, without the mean."""
        return self.expansion[slice(0, len(self.offset))]

    @property
    def mean(self) -> Any:
        """The mean mu of the training points in feature space, as an expansion with one column."""
        return self.expansion[[len(self.offset)]]

    @property
    def in_features(self) -> bool:
        """Whether the expansion is in the space of random features."""
        return self.basis is not None and isinstance(self.basis.map, FourierMap)

    def with_moments(self, moments: Moments) -> Components:
        """Return the components with the given moments of the features."""
        return replace(self, basis=self.basis._replace(moments=moments))

    def in_terms_of(self, kernel: Kernel) -> Components:
        """Return the components with the kernel replaced by `kernel`, which has the same values."""
        f, basis = self.expansion, self.basis
        if basis is not None and isinstance(basis.map, NystroemMap):
            basis = basis._replace(map=replace(basis.map, kernel=kernel))
        return replace(self, expansion=Expansion(kernel, f.points, f.coefficients), basis=basis)

    def to_primal(self, max_memory: MemoryLimit = None) -> Components:
        """Return the components as weights of the explicit features of the kernel."""
        f = self.expansion.to_primal(max_memory=max_memory)
        return replace(self, expansion=f, vectors=None, scores=None, basis=None)

    @property
    def in_primal(self) -> bool:
        """Whether the functions are stored as weights of features, without points."""
        return isinstance(self.expansion, Primal)

    def decode(self, scores: np.ndarray) -> Expansion:
        """Return the elements mu + sum_j scores_ij w_j of the RKHS, one for each row of scores."""
        f, A = self.expansion, self.expansion.coefficients
        return Expansion(f.kernel, f.points, A[:, :-1] @ scores.T + A[:, -1:])

    def preimage(
        self, scores: np.ndarray, method: str = "auto", *, start: Any = None, **options: Any
    ) -> PreImages:
        """Return approximate pre-images of `decode(scores)`, computed in blocks of rows."""
        if not len(scores):
            raise ValueError("scores is empty: pre-images need at least one row of scores")
        points = self.expansion.points
        n_columns = points.shape[1] if getattr(points, "ndim", 0) == 2 else 1
        rows = max(1, _MAX_DECODE_ENTRIES // max(length(points), 16 * n_columns))
        preimages = []
        for first in range(0, len(scores), rows):
            block = slice(first, first + rows)
            block_start = None if start is None else take(start, block)
            preimages.append(
                self.decode(scores[block]).preimage(method, start=block_start, **options)
            )
        return concatenate_preimages(preimages)

    def contributions(self, X: np.ndarray) -> np.ndarray:
        """Return the relative contribution of each feature to each component, shape (k, d).

        The contribution of feature c to component j is proportional to the mean over X of
        (s_c dw_j / dx_c)^2, where s_c is the standard deviation of the feature.  Rows sum to 1.
        """
        if not len(self.values):
            return np.zeros((0, X.shape[1]))
        squares = np.mean((self.functions.gradient(X) * np.std(X, axis=0)) ** 2, axis=0)
        total = squares.sum(axis=1, keepdims=True)
        return np.divide(squares, total, out=np.zeros_like(squares), where=total > 0)

    def score(self, X: Points) -> np.ndarray:
        """Return the scores <w_j, phi(x) - mu> of each point x of X, shape (n, k)."""
        # The last column, the mean mu, is evaluated but not used.  It costs little, and the points
        # of the whole expansion are already prepared and cached.
        return self._evaluate(X, self.expansion)[:, :-1] - self.offset

    def error(self, X: Points, kernel: Kernel) -> np.ndarray:
        """Return the squared reconstruction error in feature space for each point of X.

        With random features, phi(x) are these features, and k(x, x) is replaced by |phi(x)|^2.
        """
        if self.in_features:
            diagonal = self._evaluate(X, lambda Y: np.einsum("ij,ij->i", Y, Y))
        else:
            diagonal = np.asarray(kernel.diag(X))
        values = self._evaluate(X, self.expansion)
        distances = diagonal - 2.0 * values[:, -1] + self.squared_mean
        return self.reconstruction_errors(distances, values[:, :-1] - self.offset)

    @staticmethod
    def reconstruction_errors(distances: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """Return |phi(x) - mu|^2 - |scores|^2; negative values are rounding errors and become 0."""
        return np.maximum(distances - np.einsum("ij,ij->i", scores, scores), 0.0)

    def _evaluate(self, X: Points, function: Any) -> np.ndarray:
        """Apply the function to the points, or to their random features in blocks of rows."""
        if not self.in_features:
            return np.asarray(function(X))
        blocks = self.basis.map.blocks(X, _FEATURE_BLOCK_ROWS)
        return np.concatenate([function(F) for _, F in blocks])
