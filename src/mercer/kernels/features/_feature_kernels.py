"""Kernels defined by their features, k(x, z) = phi(x)^T phi(z), and ready-made bases phi.

A basis is any function of the points that returns one row of M features per point.  If it has a
method `pullback(X, G)` that returns sum_m G_im dphi_m(x_i) / dx_i, the kernel has gradients with
respect to the points.  All bases in this module have this method.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.special import expit, gammainc, gammaln, xlogy

from ..._core import NotDifferentiableError, Points, as_vectors, is_count, length
from .._base import Kernel, node, option
from .._dataclass import Value, callable_name
from .._evaluation import Prepared
from .._parameter_checks import nonnegative, positive, positive_integer, require
from .._properties import FEATURES, RANK_ONE, Properties
from ..vectors._dot_product import squared_norms
from ..vectors._radial_kernels import RBF
from ..vectors._vector_kernel import inner_products


def function_pullback(
    owner: str, function: Any, X: Points, G: np.ndarray, value: str
) -> np.ndarray:
    """Return function.pullback(X, G), or raise NotDifferentiableError if there is no such method.

    In the error message, `owner` is the kernel, and `value` the expression that contains the
    function.
    """
    if not hasattr(function, "pullback"):
        raise NotDifferentiableError(
            f"{owner}: {callable_name(function)} has no method pullback(X, G), so {value} has no "
            f"derivative with respect to x; add this method, or choose an algorithm that does not "
            f"need input_gradient"
        )
    return np.asarray(function.pullback(X, G))


@node
class FeatureFunctionKernel(Kernel):
    """Base class of kernels k(x, z) = phi(x)^T phi(z) whose only field is a function for phi."""

    @property
    def _function(self) -> Any:
        return self._items()[0][1]

    def _check(self) -> None:
        if not callable(self._function):
            raise TypeError(
                f"{type(self).__name__} needs a function of the points, got {self._function!r}"
            )

    def _properties(self, *inner: Properties) -> Properties:
        return Properties(self._rule, 0)

    _rule: ClassVar[str] = FEATURES

    @abstractmethod
    def _features(self, X: Points) -> Points:
        """Return phi(X), shape (n, M)."""

    def _prepare(self, X: Points, like: Prepared | None) -> Prepared:
        phi = self._features(X)
        if like is not None and like.arrays[0].shape[1] != phi.shape[1]:
            raise ValueError(
                f"Features: {callable_name(self._function)} returned "
                f"{like.arrays[0].shape[1]} features "
                f"for some points and {phi.shape[1]} for others; it must always return the same "
                f"number of features"
            )
        return Prepared((phi,), dtype=phi.dtype)

    def _tile(self, P: Prepared, Q: Prepared, out: np.ndarray) -> None:
        inner_products(P.arrays[0], Q.arrays[0], out)

    def _diag(self, X: Points) -> np.ndarray:
        return squared_norms(self._features(X))

    def _input_gradient(self, X: Points, Z: Points, W: np.ndarray) -> np.ndarray:
        G = np.asarray(W @ self._features(X if Z is None else Z))
        return function_pullback(type(self).__name__, self._function, X, G, "phi(x)^T phi(z)")


@node
class Features(FeatureFunctionKernel):
    """Kernel defined by basis functions phi_m.

        k(x, z) = phi(x)^T phi(z) = sum_m phi_m(x) phi_m(z)

    Parameters
    ----------
    basis : callable
        `basis(X)` returns the features, an array or sparse matrix of shape (n, M).  If it has a
        method `pullback(X, G)` that returns sum_m G_im dphi_m(x_i) / dx_i, shape (n, d), the kernel
        has gradients with respect to the points.

    See Also
    --------
    Map : Another kernel on the values of a function.
    RankOne : A single feature.
    Explicit : Base class of kernels with sparse features and without a fixed number of columns.
    finite_features : The features of kernels such as `Polynomial`.

    Examples
    --------
    >>> from mercer.kernels import Features, PolynomialBasis
    >>> Features(PolynomialBasis(degree=2))([[2.0]], [[3.0]])  # 1 + 2 * 3 + 4 * 9
    array([[43.]])
    """

    basis: Any = None

    def _features(self, X: Points) -> Points:
        phi, n = self.basis(X), length(X)
        phi = phi.tocsr() if sp.issparse(phi) else np.asarray(phi)
        if phi.ndim != 2 or phi.shape[0] != n:
            raise ValueError(
                f"Features: {callable_name(self.basis)} returned shape {phi.shape} for {n} points; "
                f"it must return one row of features per point, shape ({n}, M)"
            )
        if phi.dtype not in (np.float32, np.float64):
            phi = phi.astype(np.float64)
        if not np.all(np.isfinite(phi.data if sp.issparse(phi) else phi)):
            raise ValueError(
                f"Features: {callable_name(self.basis)} returned NaN or infinite features"
            )
        return phi


@node
class RankOne(FeatureFunctionKernel):
    """Kernel with a single feature, given by a real-valued function f.

        k(x, z) = f(x) f(z)

    Parameters
    ----------
    function : callable
        `function(X)` returns one number for each of n points, shape (n,) or (n, 1).  If it has a
        method `pullback(X, G)` that returns G_i df(x_i) / dx_i, shape (n, d), the kernel has
        gradients with respect to the points.

    See Also
    --------
    Features : Several features.
    Constant : The feature is constant.
    Product : `RankOne(f) * k` multiplies the standard deviation of k by f(x).

    References
    ----------
    Aronszajn, "Theory of reproducing kernels", Transactions of the American Mathematical Society
    68, 1950. Shawe-Taylor and Cristianini, "Kernel methods for pattern analysis", Cambridge
    University Press, 2004, section 3.4.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RankOne
    >>> RankOne(np.ravel)([[2.0], [3.0]])
    array([[4., 6.],
           [6., 9.]])
    """

    function: Any = None

    _rule: ClassVar[str] = RANK_ONE

    def _features(self, X: Points) -> np.ndarray:
        values = np.asarray(self.function(X), dtype=float)
        if values.size != length(X) or values.ndim > 2:
            raise ValueError(
                f"RankOne: the function returned shape {values.shape} for {length(X)} points; "
                f"it must return one number per point"
            )
        return values.reshape(-1, 1)


# ---------------------------------------------------------------------- bases


class _Basis(Value, ABC):
    """Base class of bases: functions that return features phi(X) and have derivatives."""

    @abstractmethod
    def __call__(self, X: Points) -> Points:
        """Return phi(X), shape (n, M)."""

    @abstractmethod
    def pullback(self, X: Points, G: np.ndarray) -> np.ndarray:
        """Return the gradient of weighted sums of the features with respect to the points.

            g_i = sum_m G_im dphi_m(x_i) / dx_i

        Kernels call it to compute `input_gradient`.

        Parameters
        ----------
        X : array-like of shape (n, d)
            The points x_i.
        G : ndarray of shape (n, M)
            The weight of each feature of each point.

        Returns
        -------
        ndarray of shape (n, d)
            One gradient per point.
        """

    def _vectors(self, X: Points, like: np.ndarray | None = None, what: str = "") -> Points:
        """Return X as a matrix; raise an error if `like` has another number of columns.

        `what` describes `like` in the error message.
        """
        X = as_vectors(X, type(self).__name__)
        if like is not None and like.shape[1] != X.shape[1]:
            raise ValueError(
                f"{type(self).__name__}: the {what} have {like.shape[1]} columns, but the points "
                f"have {X.shape[1]}"
            )
        return X

    def _dense(self, X: Points) -> np.ndarray:
        X = self._vectors(X)
        dense: np.ndarray = X.toarray() if sp.issparse(X) else X
        return dense


@node
class GaussianBasis(_Basis):
    """Gaussian basis functions, one at each centre.

        phi_m(x) = exp(-|x - c_m|^2 / (2 width^2))

    Parameters
    ----------
    centres : array-like of shape (M, d), or (M,) if the points have one column
        The centres c_m, for example a grid, cluster centres or a sample of the training points.
    width : float, default=1.0
        The standard deviation of the Gaussians, > 0.  One to two times the distance of neighbouring
        centres gives functions that overlap.

    See Also
    --------
    Features : Makes a kernel of a basis.
    RBF : Without centres; it corresponds to infinitely many Gaussians.
    SigmoidBasis : Steps instead of bumps.

    References
    ----------
    Bishop, "Pattern recognition and machine learning", Springer, 2006, section 3.1.

    Examples
    --------
    >>> from mercer.kernels import GaussianBasis
    >>> GaussianBasis(centres=[0.0, 2.0], width=1.0)([[0.0]]).round(4)
    array([[1.    , 0.1353]])
    """

    centres: Any
    width: float = option(1.0, positive)

    def _check(self) -> None:
        if np.ndim(self.centres) not in (1, 2) or not np.size(self.centres):
            raise ValueError(
                f"GaussianBasis: centres must have shape (M, d) or (M,), "
                f"got {np.shape(self.centres)}"
            )

    def __call__(self, X: Points) -> np.ndarray:
        return self._gaussian()(*self._points_and_centres(X))

    def pullback(self, X: Points, G: np.ndarray) -> np.ndarray:
        return self._gaussian().input_gradient(*self._points_and_centres(X), G)

    def _gaussian(self) -> RBF:
        return RBF(length_scale=float(self.width))

    def _points_and_centres(self, X: Points) -> tuple[Points, np.ndarray]:
        C = np.asarray(self.centres, dtype=float)
        C = C.reshape(-1, 1) if C.ndim == 1 else C
        X = self._vectors(X, C, "centres")
        return X, C.astype(X.dtype)


@node
class SigmoidBasis(_Basis):
    """Logistic basis functions, each a smooth step at a centre.

        phi_m(x) = 1 / (1 + exp(-(x - c_m) / width))

    Points with several columns have M features for the first column, then M for the second, and so
    on.

    Parameters
    ----------
    centres : array-like of shape (M,)
        The centres c_m, used for every column.
    width : float, default=1.0
        The width of the steps, > 0.  About the distance of neighbouring centres is usual.

    See Also
    --------
    Features : Makes a kernel of a basis.
    GaussianBasis : Bumps instead of steps.

    References
    ----------
    Bishop, "Pattern recognition and machine learning", Springer, 2006, section 3.1.

    Examples
    --------
    >>> from mercer.kernels import SigmoidBasis
    >>> SigmoidBasis(centres=[0.0, 1.0], width=0.5)([[0.0]]).round(4)
    array([[0.5   , 0.1192]])
    """

    centres: Any
    width: float = option(1.0, positive)

    def _check(self) -> None:
        if np.ndim(self.centres) != 1 or not np.size(self.centres):
            raise ValueError(
                f"SigmoidBasis: centres must have shape (M,), got {np.shape(self.centres)}"
            )

    def __call__(self, X: Points) -> np.ndarray:
        X = self._dense(X)
        features: np.ndarray = expit(self._arguments(X)).reshape(
            len(X), X.shape[1] * len(self.centres)
        )
        return features

    def pullback(self, X: Points, G: np.ndarray) -> np.ndarray:
        t = self._arguments(self._dense(X))
        slopes = expit(t) * expit(-t) / self.width
        gradient: np.ndarray = np.sum(slopes * G.reshape(t.shape), axis=2)
        return gradient

    def _arguments(self, X: np.ndarray) -> np.ndarray:
        """Return (x - c) / width, shape (n, d, M)."""
        centres = np.asarray(self.centres, dtype=X.dtype)
        arguments: np.ndarray = (X[:, :, None] - centres) / float(self.width)
        return arguments


@node
class PolynomialBasis(_Basis):
    """Basis of all monomials up to a given degree.

        phi(x) = all x_1^p_1 ... x_d^p_d with p_1 + ... + p_d <= degree

    The order of the features is that of `PolynomialFeatures` in scikit-learn: 1, x_1, ..., x_d,
    x_1^2, x_1 x_2, ...  The kernel (1 + <x, z>)^degree has the same features, but with
    different weights.

    Parameters
    ----------
    degree : int, default=2
        The largest degree, >= 0.  There are "d + degree choose degree" features, so that a large
        degree is possible only for few columns d.

    See Also
    --------
    Features : Makes a kernel of a basis.
    Polynomial : The polynomial kernel, without explicit features.
    QuadraticMap : The explicit features of the quadratic kernel.

    References
    ----------
    Bishop, "Pattern recognition and machine learning", Springer, 2006, section 3.1.

    Examples
    --------
    >>> from mercer.kernels import PolynomialBasis
    >>> PolynomialBasis(degree=2)([[2.0, 3.0]])
    array([[1., 2., 3., 4., 6., 9.]])
    """

    degree: int = option(2, require(lambda degree: is_count(degree, 0), "a non-negative integer"))

    def __call__(self, X: Points) -> np.ndarray:
        return self._evaluate(self._dense(X))[0]

    def pullback(self, X: Points, G: np.ndarray) -> np.ndarray:
        # Reverse-mode differentiation: each monomial is a product of a shorter monomial and some
        # x_c, and propagates its weight to both of them.
        X = self._dense(X)
        phi, index = self._evaluate(X)
        weights, out = np.array(G, dtype=float), np.zeros(X.shape)
        for columns, m in reversed(index.items()):
            if columns:
                shorter, c = index[columns[:-1]], columns[-1]
                out[:, c] += weights[:, m] * phi[:, shorter]
                weights[:, shorter] += weights[:, m] * X[:, c]
        return out

    def _evaluate(self, X: np.ndarray) -> tuple[np.ndarray, dict[tuple[int, ...], int]]:
        """Return phi(X), and a dictionary {(i, j, ...): index of the monomial x_i x_j ...}."""
        products = (
            itertools.combinations_with_replacement(range(X.shape[1]), k)
            for k in range(int(self.degree) + 1)
        )
        index = {columns: m for m, columns in enumerate(itertools.chain(*products))}
        phi = np.ones((len(X), len(index)), dtype=X.dtype, order="F")
        for columns, m in index.items():
            if columns:
                np.multiply(phi[:, index[columns[:-1]]], X[:, columns[-1]], out=phi[:, m])
        return phi, index


@node
class QuadraticMap(_Basis):
    """Explicit feature map of the quadratic kernel.

        phi(x)^T phi(z) = (<x, z> + coef0)^2

    The features are x_i^2 and sqrt(2) x_i x_j for i < j, ordered by the pairs (i, j): 11, 12, ...,
    1d, 22, 23, ..., dd.  For coef0 > 0, they are followed by sqrt(2 coef0) x_i and coef0.

    Parameters
    ----------
    coef0 : float, default=0.0
        The constant term of the kernel, >= 0.  With 0, only products of two entries are features;
        with 1, also the entries themselves and a constant.

    See Also
    --------
    Features : Makes a kernel of a basis.
    Polynomial : The same kernel with `degree=2`, for many columns.
    PolynomialBasis : Any degree, with equal weights.

    References
    ----------
    Shawe-Taylor and Cristianini, "Kernel methods for pattern analysis", Cambridge University Press,
    2004, chapter 9.

    Examples
    --------
    >>> from mercer.kernels import Features, QuadraticMap
    >>> QuadraticMap()([[1.0, 2.0]]).round(4)
    array([[1.    , 2.8284, 4.    ]])
    >>> Features(QuadraticMap())([[1.0, 2.0]], [[3.0, 4.0]]).round(4)  # 11^2
    array([[121.]])
    """

    coef0: float = option(0.0, nonnegative)

    def __call__(self, X: Points) -> np.ndarray:
        X = self._dense(X)
        c = float(self.coef0)
        parts = [
            _quadratic_weights(X.shape[1] - i) * X[:, i:] * X[:, [i]] for i in range(X.shape[1])
        ]
        if c > 0:
            parts += [np.sqrt(2.0 * c) * X, np.full((len(X), 1), c)]
        return np.concatenate(parts, axis=1).astype(X.dtype, copy=False)

    def pullback(self, X: Points, G: np.ndarray) -> np.ndarray:
        X = self._dense(X)
        out, start = np.zeros(X.shape), 0
        for i in range(X.shape[1]):
            stop = start + X.shape[1] - i
            weighted = G[:, start:stop] * _quadratic_weights(stop - start)
            out[:, i] += np.sum(weighted * X[:, i:], axis=1)
            out[:, i:] += weighted * X[:, [i]]
            start = stop
        if self.coef0 > 0:
            out += np.sqrt(2.0 * self.coef0) * G[:, start : start + X.shape[1]]
        return out


@node
class GaussianSeries(_Basis):
    """Features of the Gaussian kernel for points with one column, as a truncated Taylor series.

        phi_m(x) = exp(-x^2 / (2 l^2)) (x / l)^m / sqrt(m!),  m < n_terms

    The infinite series sum_m phi_m(x) phi_m(z) equals the Gaussian kernel.  With v = |x z| / l^2,
    the truncation error is at most

        exp(-v) sum_(m >= n_terms) v^m / m!,

    the probability that a Poisson variable with mean v is at least n_terms.  It increases with v,
    so that `error_bound(X)` uses the largest x^2 / l^2.  About v + 6 sqrt(v) terms are sufficient;
    40 terms give an error of 1e-13 for points within three length scales of 0.

    Parameters
    ----------
    length_scale : float, default=1.0
        The length scale l of the Gaussian kernel, > 0, as in `RBF`.
    n_terms : int, default=40
        The number of features.  Choose it by `error_bound` for the points of interest.

    See Also
    --------
    RBF : The kernel itself, for any number of columns.
    random_features : Approximate features for several columns.
    Features : Makes a kernel of a basis.

    References
    ----------
    Cotter, Keshet and Srebro, "Explicit approximations of the Gaussian kernel", arXiv:1109.4603,
    2011. Steinwart, Hush and Scovel, "An explicit description of the reproducing kernel Hilbert
    spaces of Gaussian RBF kernels", IEEE Transactions on Information Theory 52, 2006.

    Examples
    --------
    >>> from mercer.kernels import Features, GaussianSeries
    >>> Features(GaussianSeries())([[0.0]], [[0.0], [2.0]]).round(4)
    array([[1.    , 0.1353]])
    """

    length_scale: float = option(1.0, positive)
    n_terms: int = option(40, positive_integer)

    def __call__(self, X: Points) -> np.ndarray:
        X = self._one_column(X)
        return self._terms(X).astype(X.dtype, copy=False)

    def pullback(self, X: Points, G: np.ndarray) -> np.ndarray:
        # The derivative is l phi_m' = sqrt(m) phi_(m-1) - (x / l) phi_m.
        X = self._one_column(X)
        phi = self._terms(X)
        slopes = -(X / self.length_scale) * phi
        slopes[:, 1:] += np.sqrt(np.arange(1, self.n_terms)) * phi[:, :-1]
        gradient: np.ndarray = np.sum(slopes * G, axis=1, keepdims=True) / self.length_scale
        return gradient

    def error_bound(self, X: Points) -> float:
        """Return an upper bound on the truncation error of the kernel for all pairs of points.

        Parameters
        ----------
        X : array-like of shape (n, 1)
            The points.

        Returns
        -------
        float
            The bound on |phi(x)^T phi(z) - k(x, z)| for all x and z that are not further from 0
            than the points X.

        Examples
        --------
        >>> from mercer.kernels import GaussianSeries
        >>> [round(GaussianSeries(n_terms=m).error_bound([[3.0]]), 4) for m in (10, 20)]
        [0.4126, 0.0011]
        """
        largest = np.abs(self._one_column(X)).max(initial=0.0) / self.length_scale
        return float(gammainc(self.n_terms, largest**2))

    def _terms(self, X: np.ndarray) -> np.ndarray:
        """Return phi(X) in float64, shape (n, n_terms)."""
        # Computed from logarithms, because exp(-x^2 / (2 l^2)) alone would underflow far from 0.
        t = X.astype(np.float64) / self.length_scale
        m = np.arange(self.n_terms)
        sizes = np.exp(xlogy(m, np.abs(t)) - 0.5 * (t**2 + gammaln(m + 1.0)))
        signed: np.ndarray = np.where((t < 0) & (m % 2 == 1), -sizes, sizes)
        return signed

    def _one_column(self, X: Points) -> np.ndarray:
        """Return X as a dense array, after checking that it has one column."""
        column = self._dense(X)
        if column.shape[1] != 1:
            raise ValueError(
                f"GaussianSeries needs points with one column, got {column.shape[1]} columns; for "
                f"several columns, use a product of kernels Select(Features(...), [c])"
            )
        return column


def _quadratic_weights(size: int) -> np.ndarray:
    """Return the weights 1, sqrt(2), ..., sqrt(2) of the monomials x_i x_i, ..., x_i x_d."""
    weights = np.full(size, np.sqrt(2.0))
    weights[0] = 1.0
    return weights
