"""Base classes of kernels on vectors, checks of their parameters, and inner products."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike

from ..._core import Points, as_vectors, blas_threads, jit, slices
from .._base import Kernel, node, parameter
from .._evaluation import ParameterGradients, Prepared, prepare_pair
from .._parameter_checks import positive
from .._properties import Domain
from ._bandwidth_rules import evenly_spaced_rows, gamma_from_rule, scales_or_rule

_MEDIAN_ROWS = 100  # number of rows from which the medians of the columns are computed
_CHUNK_ROWS = 1024  # number of rows from which the centre is subtracted at a time
# Points are far from the origin if the squared norm of their centre exceeds their variance by this
# factor.  Squared distances computed from inner products then lose more than four digits.
_FAR_RATIO = 1e4
_MAX_DENSE_ENTRIES = 1 << 22  # entries of the dense arrays to which sparse rows are converted
# In a product of two sparse matrices, a column is multiplied by dense BLAS if for more than this
# fraction of the pairs of rows, both rows have an entry in this column.
_MIN_BLAS_FRACTION = 0.02


@node
class VectorKernel(Kernel):
    """Base class of kernels whose points are the rows of a 2-D array or CSR matrix."""

    def _domain(self, *inner: Domain) -> Domain:
        return Domain("vectors", on_vectors=True)

    def _prepare(self, X: Points, like: Prepared | None) -> Prepared:
        X = self._vectors(X, like)
        return Prepared((X,), dtype=X.dtype)

    def _vectors(self, X: Points, like: Prepared | None = None) -> Points:
        """Return X as a matrix; raise an error if `like` has another number of columns."""
        X = as_vectors(X, type(self).__name__)
        if like is not None:
            self._check_same_columns(like.arrays[0].shape[1], X.shape[1])
        return X

    def _operands(self, X: Points, Z: Points) -> tuple[Points, Points]:
        """Return X and Z as matrices with the same number of columns; `Z=None` means X."""
        X = self._vectors(X)
        if Z is None:
            return X, X
        Z = self._vectors(Z)
        self._check_same_columns(X.shape[1], Z.shape[1])
        return X, Z

    def _check_same_columns(self, p: int, q: int) -> None:
        """Raise an error if two numbers of columns are different."""
        if p != q:
            raise ValueError(
                f"{type(self).__name__} cannot compare points with {p} columns to points with {q} "
                f"columns; pass points with the same features"
            )


@node
class ProfileKernel(VectorKernel):
    """Base class of kernels that depend on a pair of points only through one number s.

        k(x, z) = profile(s(x, z))

    The statistic s is, for example, a squared distance or an inner product.  Subclasses such as
    `Radial` define s.  Their subclasses, such as `RBF`, define the profile and its slope.
    """

    # The lowest precision in which s may be computed for derivatives.
    _min_statistic_dtype: ClassVar[DTypeLike] = np.float32

    @abstractmethod
    def profile(self, s: np.ndarray) -> np.ndarray:
        """Return the kernel values for an array of the statistic s.

        Kernel authors implement it; users call the kernel instead.

        Parameters
        ----------
        s : ndarray of any shape
            The values of the statistic, such as squared scaled distances.  They may be overwritten,
            so pass a copy if they are needed later.

        Returns
        -------
        ndarray of the shape of s
            The kernel values, possibly in the memory of s.
        """

    @abstractmethod
    def slope(self, s: np.ndarray) -> np.ndarray:
        """Return the derivative of the profile with respect to the statistic s.

        Parameters
        ----------
        s : ndarray of any shape
            The values of the statistic, which are not modified.

        Returns
        -------
        ndarray of the shape of s
            The derivatives.  They may be infinite at s = 0 if the kernel has a kink there.
        """

    def parameter_slopes(self, s: np.ndarray) -> dict[str, np.ndarray]:
        """Return the derivatives of the profile with respect to the logarithms of its parameters.

        Kernel authors implement it if the profile has parameters on which s does not depend.

        Parameters
        ----------
        s : ndarray of any shape
            The values of the statistic, which are not modified.

        Returns
        -------
        dict
            The derivatives {name: d profile / d log(parameter)}, arrays of the shape of s.  It is
            empty if there are no such parameters.
        """
        return {}

    @abstractmethod
    def _statistic(
        self, P: Prepared, Q: Prepared, out: np.ndarray, exact: bool = True
    ) -> np.ndarray:
        """Write s to `out` and return it; with `exact`, accurately enough for derivatives."""

    @abstractmethod
    def _statistic_gradient(
        self, P: Prepared, Q: Prepared, s: np.ndarray, M: np.ndarray
    ) -> np.ndarray:
        """Return sum_j M_ij ds_ij / dx_i, overwriting M."""

    def _statistic_pullback(
        self, P: Prepared, Q: Prepared, s: np.ndarray, W: np.ndarray
    ) -> ParameterGradients:
        """Return {name: sum_ij W_ij dk_ij / d log(parameter)} for parameters on which s depends."""
        return {}

    def _finite_slope(self, s: np.ndarray) -> np.ndarray:
        """Return the slope; subclasses replace infinite values at a kink by finite ones."""
        return self.slope(s)

    def _tile(self, P: Prepared, Q: Prepared, out: np.ndarray) -> None:
        result = self.profile(self._statistic(P, Q, out, exact=False))
        if result is not out:
            out[...] = result

    def _pullback(self, X: Points, Z: Points, W: np.ndarray) -> ParameterGradients:
        P, Q, s = self._statistics(X, Z)
        own = {name: np.sum(W * g) for name, g in self.parameter_slopes(s).items()}
        return self._statistic_pullback(P, Q, s, W) | own

    def _input_gradient(self, X: Points, Z: Points, W: np.ndarray) -> np.ndarray:
        P, Q, s = self._statistics(X, Z)
        return self._statistic_gradient(P, Q, s, W * self._finite_slope(s))

    def _statistics(self, X: Points, Z: Points) -> tuple[Prepared, Prepared, np.ndarray]:
        """Return the prepared points and their statistic s, accurate enough for derivatives."""
        P, Q = prepare_pair(self, X, Z)
        dtype = np.result_type(P.dtype, Q.dtype, self._min_statistic_dtype)
        return P, Q, self._statistic(P, Q, np.empty((len(P), len(Q)), dtype=dtype))

    def _value_at_zero(self) -> float:
        """Return the value of the kernel for s = 0."""
        return float(self.profile(np.zeros((1, 1)))[0, 0]) + 0.0  # adding 0.0 turns -0.0 into 0.0


@node
class LengthScaleKernel(ProfileKernel):
    """Base class of kernels that depend on scaled differences (x - z) / length_scale.

    The length scale is one number, or one number per column.
    """

    length_scale: Any = parameter(1.0, scales_or_rule)

    @staticmethod
    @abstractmethod
    def _length_from_gamma(gamma: float) -> float:
        """Return the length scale that is equivalent to gamma."""

    @classmethod
    def from_gamma(cls, gamma: float | str, **options: Any) -> Self:
        """Return the kernel with the length scale that is equivalent to gamma.

        For radial kernels, gamma = 1 / (2 length_scale^2); for `Laplacian`, gamma = 1 /
        length_scale.

        Parameters
        ----------
        gamma : float or str
            The factor of the distance in the exponent of the kernel, > 0, such as the gamma of
            exp(-gamma |x - z|^2); or a rule such as "scale", see the notes of `RBF`.  A larger
            gamma gives a narrower kernel.
        **options : keyword arguments
            Other parameters of the kernel, such as `nu` of `Matern`.

        Returns
        -------
        Kernel
            An instance of this class.

        Examples
        --------
        >>> from mercer.kernels import Matern
        >>> Matern.from_gamma(2.0, nu=2.5)
        Matern(length_scale=0.5, nu=2.5)
        """
        if not isinstance(gamma, str):
            positive(cls.__name__, "gamma", gamma)
            gamma = cls._length_from_gamma(gamma)
        return cls(length_scale=gamma, **options)

    def _scale(self, columns: int) -> float | np.ndarray:
        """Return the length scale as a float, or as an array with one entry per column."""
        return scalar_or_per_column(type(self).__name__, self.length_scale, columns)

    def _resolve(self, X: Points, weights: np.ndarray | None, targets: np.ndarray | None) -> Kernel:
        if not isinstance(self.length_scale, str):
            return self
        gamma = gamma_from_rule(self.length_scale, self._vectors(X), weights)
        return replace(self, length_scale=self._length_from_gamma(gamma))


def inner_products(X: Points, Z: Points, out: np.ndarray) -> None:
    """Write X Z^T to `out`, where each of X and Z is a dense or CSR matrix."""
    if sp.issparse(X) and sp.issparse(Z):
        _sparse_products(X, Z, out)
    elif sp.issparse(X) or sp.issparse(Z):
        out[...] = X @ Z.T
    else:
        np.matmul(X, Z.T, out=out)


def _sparse_products(X: Points, Z: Points, out: np.ndarray) -> None:
    """Write X Z^T to `out` for two CSR matrices.

    A multiplication takes about 50 times as long in a sparse product as in dense BLAS (measured: 2
    to 6 ns versus 0.05 ns), but a sparse product only multiplies stored entries.  Therefore BLAS is
    used for columns with many entries, and a sparse product for the others.
    """
    columns = X.shape[1]
    x_counts, z_counts = (np.bincount(A.indices, minlength=columns) for A in (X, Z))
    filled = x_counts * z_counts > _MIN_BLAS_FRACTION * out.size
    if not filled.any():
        _sparse_inner_products(X, Z, out)
    elif filled.all():
        _dense_products(X, Z, out)
    else:
        _dense_products(X[:, filled], Z[:, filled], out)
        _sparse_inner_products(X[:, ~filled], Z[:, ~filled], out, add=True)


def _dense_products(X: Points, Z: Points, out: np.ndarray) -> None:
    """Write X Z^T to `out` for two CSR matrices, converting blocks of rows to dense arrays."""
    step = max(1, _MAX_DENSE_ENTRIES // X.shape[1])
    with blas_threads(min(out.shape)):
        for i in range(0, X.shape[0], step):
            A = X[i : i + step].toarray()
            for j in range(0, Z.shape[0], step):
                np.matmul(A, Z[j : j + step].toarray().T, out=out[i : i + step, j : j + step])


# ---------------------------------------------------------------------- sums over sparse rows
#
# Sums over the common columns of two sparse rows, out_ij = sum_c g(a_ic, b_jc).  For each entry
# a_ic of row i, row c of B^T lists the rows j of B that have an entry in column c.  Their terms are
# added to row i of the dense result, so that the work is proportional to the number of nonzero
# terms.  SciPy's product of two sparse matrices computes the same terms, but collects the sums in a
# sparse matrix.  That takes ten times as long if most of the sums are not 0.


def _sparse_inner_products(
    A: sp.csr_array, B: sp.csr_array, out: np.ndarray, *, add: bool = False
) -> None:
    """Write sum_c a_ic b_jc to out_ij for CSR matrices A and B, or add it if `add` is True."""
    _scatter(False, add, *_csr_arrays(A), *_csr_arrays(B.T.tocsr()), out)


def sparse_min_sums(A: sp.csr_array, B: sp.csr_array, out: np.ndarray) -> None:
    """Write sum_c min(a_ic, b_jc) to out_ij for two CSR matrices with entries >= 0."""
    _scatter(True, False, *_csr_arrays(A), *_csr_arrays(B.T.tocsr()), out)


def _csr_arrays(A: sp.csr_array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the row pointers, the column indices and the values of a CSR matrix."""
    # Always convert indices to int64, so that Numba does not compile the loop for other types.
    return A.indptr.astype(np.int64), A.indices.astype(np.int64, copy=False), A.data


@jit()
def _scatter(
    minimum: bool,
    add: bool,
    a_indptr: np.ndarray,
    a_columns: np.ndarray,
    a_values: np.ndarray,
    bt_indptr: np.ndarray,
    bt_rows: np.ndarray,
    bt_values: np.ndarray,
    out: np.ndarray,
) -> None:
    """Add the terms min(a, b) or a * b to `out`, given the CSR arrays of A and of B^T."""
    for i in range(out.shape[0]):
        sums = out[i]
        if not add:
            sums[:] = 0
        for p in range(a_indptr[i], a_indptr[i + 1]):
            a, c = a_values[p], a_columns[p]
            if minimum:
                for q in range(bt_indptr[c], bt_indptr[c + 1]):
                    sums[bt_rows[q]] += min(a, bt_values[q])
            else:
                for q in range(bt_indptr[c], bt_indptr[c + 1]):
                    sums[bt_rows[q]] += a * bt_values[q]


# ---------------------------------------------------------------------- parameters


def column_medians(X: np.ndarray) -> np.ndarray:
    """Return the median of each column, computed from at most 100 evenly spaced rows.

    The median is used as the centre of the points because it is robust to outliers.
    """
    sample = X if len(X) <= _MEDIAN_ROWS else X[evenly_spaced_rows(len(X), _MEDIAN_ROWS)]
    half = len(sample) // 2
    ranked = np.partition(sample, [half - 1, half] if half else 0, axis=0)
    centre = ranked[half] if len(sample) % 2 else 0.5 * (ranked[half - 1] + ranked[half])
    return np.asarray(centre.astype(np.float64))


def distant_centre(X: np.ndarray) -> np.ndarray | None:
    """Return the centre of the points if it is far from the origin relative to their spread.

    Return None if it is not far from the origin, or if all points are equal.
    """
    if not len(X):
        return None
    centre = column_medians(X)
    with np.errstate(over="ignore", invalid="ignore"):
        squares = sum(
            float(np.sum((X[rows] - centre) ** 2)) for rows in slices(len(X), _CHUNK_ROWS)
        )
        is_far = 0.0 < _FAR_RATIO * squares / len(X) < float(centre @ centre) < np.inf
    return centre if is_far else None


def scalar_or_per_column(
    owner: str, value: Any, columns: int, what: str = "length scales"
) -> float | np.ndarray:
    """Return a parameter such as a length scale as a float, or as an array of shape (columns,).

    An array of another size raises ValueError; `owner` and `what` name the kernel and the
    parameter in its message.
    """
    if np.ndim(value) == 0:
        return float(value)
    scale = np.asarray(value, dtype=float)
    if scale.size != columns:
        raise ValueError(f"{owner} has {scale.size} {what}, but the points have {columns} columns")
    return scale
