"""Nyström features for an indefinite kernel, by changing the signs of negative eigenvalues.

    phi(x) = |K_SS|^-1/2 sgn(K_SS) k_S(x),     so that  phi(s) . phi(t) = |K_SS|_st

K_SS is the kernel matrix of the landmarks S, and k_S(x) are the kernel values between x and S.
|K_SS| has the eigenvectors of K_SS and the absolute values of its eigenvalues ("spectrum flip";
Chen, Garcia, Gupta, Rahimi and Cazzanti, JMLR 2009).  scikit-learn's `Nystroem` is equivalent; it
uses the singular values of K_SS.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from ..._core import Points, as_csr, as_float64, entry_point, not_finite_error, take
from ..._core.linalg import eigh
from ...gram import FeatureMap, fill_gram, residual_tolerances
from ...kernels import Kernel, Prepared


@entry_point
@dataclass(frozen=True, eq=False)
class FlippedMap(FeatureMap):
    """Nyström features on landmarks S, for kernels that may be indefinite.

    phi(x) = U |l|^-1/2 sgn(l) U^T k_S(x) with the eigendecomposition K_SS = U diag(l) U^T of the
    kernel matrix of the landmarks, and the kernel values k_S(x) between x and the landmarks.  If k
    is positive semidefinite, these are the features of `NystroemMap` up to a rotation.  Make one
    with `FlippedMap.on(kernel, points)`.

    Attributes
    ----------
    kernel : Kernel
    points : points
        The landmarks S.
    normalization : ndarray of shape (m, m)
        The matrix U |l|^-1/2 sgn(l) U^T.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.estimators import FlippedMap
    >>> from mercer.kernels import Callable
    >>> k = Callable(lambda x, z: 0.0 if x == z else -1.0)
    >>> F = FlippedMap.on(k, ["a", "b"]).features(["a", "b"])
    >>> np.abs(F @ F.T).round(6)  # K has the eigenvalues -1 and 1
    array([[1., 0.],
           [0., 1.]])
    """

    kernel: Kernel
    points: Any
    normalization: np.ndarray

    @classmethod
    def on(cls, kernel: Kernel, points: Points, n_threads: int | None = None) -> Self:
        """Return the map for these landmarks; eigenvalues below rounding errors are dropped."""
        points = as_float64(as_csr(points))
        P = kernel.prepare(points)
        K = np.empty((len(P), len(P)))
        fill_gram(kernel, P, P, K, n_threads)
        if not np.isfinite(K.sum()):
            raise not_finite_error(kernel, "K_SS", "the landmarks")
        values, U = eigh(0.5 * (K + K.T))
        magnitudes = np.abs(values)
        significant = magnitudes > residual_tolerances(P.dtype)[0] * magnitudes.max()
        scale = np.zeros(len(values))
        scale[significant] = np.sign(values[significant]) / np.sqrt(magnitudes[significant])
        return cls(kernel, points, (U * scale) @ U.T)

    @property
    def report_remarks(self) -> list[str]:
        """Remarks on the landmarks for a solver report."""
        return ["features of |K_SS|, because k is not positive semidefinite"]

    def __len__(self) -> int:
        return len(self.normalization)

    def __repr__(self) -> str:
        return f"<FlippedMap on {len(self)} landmarks, {self.kernel}>"

    def expansion_coefficients(self, V: np.ndarray) -> np.ndarray:
        """Return the coefficients of phi(.)^T V in terms of k(s, .) for the landmarks s."""
        return np.asarray(self.normalization @ V)

    def _fill(self, X: Points, rows: slice, out: np.ndarray, whiten: bool = True) -> None:
        P = self.kernel.prepare(as_float64(take(X, rows)), like=self._landmarks)
        self.kernel.tile(P, self._landmarks, out)
        if whiten:
            out[...] = out @ self.normalization

    @cached_property
    def _landmarks(self) -> Prepared:
        return self.kernel.prepare(self.points)
