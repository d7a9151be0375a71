"""Kernels that are functions of the inner product t = <x, z>.

A new kernel implements `profile(t)`, `slope(t)` = profile'(t) and, if it has parameters,
`parameter_slopes(t)`.  The base class `DotProduct` implements the rest.
"""

from __future__ import annotations

import math
import numbers
from abc import abstractmethod
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike

from ..._core import Points
from .._base import Kernel, node, parameter
from .._evaluation import Prepared
from .._parameter_checks import frozen_matrix, lowest_eigenvalue, nonnegative, require
from .._properties import NORMALISED, SERIES, Properties
from ._bandwidth_rules import gamma_from_rule, scale_or_rule
from ._vector_kernel import ProfileKernel, VectorKernel, inner_products


@node
class DotProduct(ProfileKernel):
    """Base class of kernels that are functions of the inner product.

        k(x, z) = profile(<x, z>)

    A subclass defines the function `profile` and its derivative `slope`.

    See Also
    --------
    Linear : The inner product itself.
    Polynomial : A power of the inner product.
    Radial : Base class of functions of the distance.

    Examples
    --------
    >>> from mercer.kernels import DotProduct, Linear, Polynomial
    >>> isinstance(Linear(), DotProduct), isinstance(Polynomial(2), DotProduct)
    (True, True)
    """

    def _statistic(
        self, P: Prepared, Q: Prepared, out: np.ndarray, exact: bool = True
    ) -> np.ndarray:
        inner_products(P.arrays[0], Q.arrays[0], out)
        return out

    def _diag(self, X: Points) -> np.ndarray:
        return self.profile(squared_norms(self._vectors(X)))

    def _statistic_gradient(
        self, P: Prepared, Q: Prepared, s: np.ndarray, M: np.ndarray
    ) -> np.ndarray:
        return np.asarray(M @ Q.arrays[0])


def squared_norms(X: Points) -> np.ndarray:
    """Return the squared norms |x_i|^2 of the rows of X, shape (n,)."""
    if sp.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    with np.errstate(over="ignore"):  # no overflow warnings: the caller handles infinite norms
        norms: np.ndarray = np.einsum("ij,ij->i", X, X)
        return norms


@node
class Linear(DotProduct):
    """Linear kernel: the inner product.

        k(x, z) = <x, z>

    It has no parameters.  `Linear() + c` adds an intercept, and `c * Linear()` a variance.  Points
    are rows of an array or CSR matrix of shape (n, d).

    See Also
    --------
    Bilinear : The inner product of a matrix A.
    Polynomial : Products of columns as additional features.
    Cosine : Ignores the norms of the points, for example the lengths of texts.
    RBF : For functions that are not linear.

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> Linear()([[1.0, 2.0]], [[3.0, 4.0]])
    array([[11.]])
    """

    def _properties(self, *inner: Properties) -> Properties:
        return Properties("x^T A z with A = I", 0)

    def profile(self, t: np.ndarray) -> np.ndarray:
        """Return the kernel values for an array of inner products.

        Parameters
        ----------
        t : ndarray of any shape
            The inner products <x, z>.

        Returns
        -------
        ndarray of the shape of t
            The array t itself.
        """
        return t

    def slope(self, t: np.ndarray) -> np.ndarray:
        """Return the derivative of the profile, which is 1.

        Parameters
        ----------
        t : ndarray of any shape
            The inner products <x, z>.

        Returns
        -------
        ndarray of the shape of t
            An array of ones.
        """
        return np.ones_like(t)


class _Affine(DotProduct):
    """Base class of kernels k(x, z) = g(gamma <x, z> + coef0) with a scalar function g."""

    # The subclasses declare these fields, in different orders, and are decorated with @node.

    gamma: float | str
    coef0: float

    def slope(self, t: np.ndarray) -> np.ndarray:
        """Return the derivative of the profile with respect to the inner product.

        Parameters
        ----------
        t : ndarray of any shape
            The inner products <x, z>, which are not modified.

        Returns
        -------
        ndarray of the shape of t
            The derivatives gamma g'(gamma t + coef0).
        """
        return float(self.gamma) * self._outer_slope(t)

    def parameter_slopes(self, t: np.ndarray) -> dict[str, np.ndarray]:
        """Return the derivatives of the profile with respect to log(gamma) and log(coef0).

        Parameters
        ----------
        t : ndarray of any shape
            The inner products <x, z>, which are not modified.

        Returns
        -------
        dict
            The derivatives {"gamma": ..., "coef0": ...}, arrays of the shape of t.
        """
        outer = self._outer_slope(t)
        return {"gamma": float(self.gamma) * t * outer, "coef0": self.coef0 * outer}

    @abstractmethod
    def _outer_slope(self, t: np.ndarray) -> np.ndarray:
        """Return g'(gamma t + coef0)."""

    def _resolve(self, X: Points, weights: np.ndarray | None, targets: np.ndarray | None) -> Kernel:
        return self._with({"gamma": gamma_from_rule(str(self.gamma), self._vectors(X), weights)})


@node
class Polynomial(_Affine):
    """Polynomial kernel.

        k(x, z) = (gamma <x, z> + coef0)^degree

    Its features are all monomials in the entries of x of at most this degree, or, for coef0 = 0, of
    exactly this degree.

    Parameters
    ----------
    degree : int, default=3
        The degree, a positive integer.  2 or 3 is usual: the number of features grows with
        d^degree, and values spread over many orders of magnitude if the degree is large.
    coef0 : float, default=1.0
        The constant term, >= 0.  Tunable.  A larger value gives more weight to monomials of low
        degree; 0 uses only those of the highest degree.
    gamma : float or str, default=1.0
        The factor of the inner product, > 0.  Tunable.  A rule such as "scale", "auto" or "median"
        is also possible; `resolve` replaces it by a value for the data, see `RBF`.  Choose it such
        that gamma <x, x> is about 1; "scale" does this for centred data.

    See Also
    --------
    Linear : Degree 1, without products of columns.
    QuadraticMap : The explicit features of degree 2, for linear models with many points.
    PolynomialBasis : All monomials with equal weights.
    RBF : Bounded, and usually easier to tune.

    References
    ----------
    Boser, Guyon and Vapnik, "A training algorithm for optimal margin classifiers", COLT 1992.
    Shawe-Taylor and Cristianini, "Kernel methods for pattern analysis", Cambridge University Press,
    2004, chapter 9.

    Examples
    --------
    >>> from mercer.kernels import Polynomial
    >>> Polynomial(degree=2, coef0=0.0)([[1.0, 2.0]], [[3.0, 4.0]])
    array([[121.]])
    """

    degree: int = 3
    coef0: float = parameter(1.0, nonnegative)
    gamma: float | str = parameter(1.0, scale_or_rule)

    def _check(self) -> None:
        degree = self.degree
        # NaN is rejected, because nan % 1 is not 0.
        if not isinstance(degree, numbers.Real) or degree % 1 != 0 or degree < 1:
            raise ValueError(
                f"Polynomial: degree must be a positive integer, got {degree!r}; "
                f"a fractional power of a polynomial is not a Mercer kernel"
            )

    def _properties(self, *inner: Properties) -> Properties:
        rule = f"(x^T A z + c)^n with c >= 0, n an integer: a {SERIES}"
        return Properties(rule, 0, nonnegative=self.degree % 2 == 0)

    def profile(self, t: np.ndarray) -> np.ndarray:
        """Return the kernel values (gamma t + coef0)^degree for an array t of inner products.

        Parameters
        ----------
        t : ndarray of any shape
            The inner products <x, z>, which are overwritten.

        Returns
        -------
        ndarray of the shape of t
            The kernel values, in the memory of t.
        """
        t *= self.gamma
        t += self.coef0
        return integer_power(t, int(self.degree))

    def _outer_slope(self, t: np.ndarray) -> np.ndarray:
        base = float(self.gamma) * t + self.coef0
        return int(self.degree) * integer_power(base, int(self.degree) - 1)


@node
class Sigmoid(_Affine):
    """Sigmoid (hyperbolic tangent) kernel, which is *not* a Mercer kernel.

        k(x, z) = tanh(gamma <x, z> + coef0)

    It is indefinite for all gamma and coef0.  For example, the matrix of tanh(xz) for the points 1
    and 2 has a negative eigenvalue.  It is included because it is common in the literature.
    Estimators that require a Mercer kernel warn or raise an error.

    Parameters
    ----------
    gamma : float or str, default=1.0
        The factor of the inner product, > 0.  Tunable.  A rule such as "scale", "auto" or "median"
        is also possible; `resolve` replaces it by a value for the data, see `RBF`.
    coef0 : float, default=1.0
        The constant term, any finite number.  Tunable if it is positive.  With a small gamma and
        coef0 < 0, a support vector machine behaves similarly to one with an RBF kernel.

    See Also
    --------
    RBF : A Mercer kernel; prefer it for new models.
    SigmoidBasis : Sigmoid functions as explicit features, which give a Mercer kernel.
    mercer.validity : Shows a counterexample.

    References
    ----------
    Lin and Lin, "A study on sigmoid kernels for SVM and the training of non-PSD kernels by SMO-type
    methods", technical report, National Taiwan University, 2003.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Sigmoid
    >>> K = Sigmoid(coef0=0.0)([[1.0], [2.0]])
    >>> bool(np.linalg.eigvalsh(K)[0] < 0)
    True
    """

    gamma: float | str = parameter(1.0, scale_or_rule)
    coef0: float = parameter(
        1.0, require(lambda c: isinstance(c, numbers.Real) and math.isfinite(c), "a finite number")
    )

    def _properties(self, *inner: Properties) -> Properties:
        rule = "tanh has a power series with negative coefficients"
        if isinstance(self.gamma, str):
            return Properties(rule, diagonal_bound=1.0)
        # Points whose matrix has a negative eigenvalue: 0 if coef0 < 0; 1 and 2 if coef0 = 0; 0 and
        # two distant points x and -x if coef0 > 0.
        far = np.sqrt(5.0 + abs(self.coef0))
        positions = np.array([[0.0], [1.0], [2.0], [far], [-far]])
        against = positions / np.sqrt(float(self.gamma))
        return Properties(rule, diagonal_bound=1.0, against=against)

    def profile(self, t: np.ndarray) -> np.ndarray:
        """Return the kernel values tanh(gamma t + coef0) for an array t of inner products.

        Parameters
        ----------
        t : ndarray of any shape
            The inner products <x, z>, which are overwritten.

        Returns
        -------
        ndarray of the shape of t
            The kernel values, in the memory of t.
        """
        t *= self.gamma
        t += self.coef0
        values: np.ndarray = np.tanh(t, out=t)
        return values

    def _outer_slope(self, t: np.ndarray) -> np.ndarray:
        # 1 - tanh(u)^2 suffers from cancellation; it equals 4 e / (1 + e)^2 with e = exp(-2 |u|).
        e = np.exp(-2.0 * np.abs(float(self.gamma) * t + self.coef0))
        return 4.0 * e / (1.0 + e) ** 2


@node
class Cosine(VectorKernel):
    """Cosine similarity.

        k(x, z) = <x, z> / (|x| |z|)

    It is 0 if x or z is 0.  It has no parameters.  Points are rows of an array or CSR matrix.

    See Also
    --------
    Normalized : The same for any other kernel: `Cosine()` equals `Normalized(Linear())`.
    BagOfWords : Cosine similarity of texts.
    Linear : If the norms of the points matter.

    References
    ----------
    Salton, Wong and Yang, "A vector space model for automatic indexing", Communications of the ACM
    18, 1975. Shawe-Taylor and Cristianini, "Kernel methods for pattern analysis", Cambridge
    University Press, 2004, chapter 5.

    Examples
    --------
    >>> from mercer.kernels import Cosine
    >>> Cosine()([[3.0, 0.0]], [[1.0, 0.0], [0.0, 2.0]])
    array([[1., 0.]])
    """

    def _properties(self, *inner: Properties) -> Properties:
        return Properties(f"{NORMALISED}, of x^T z", 0, diagonal_bound=1.0)

    def _prepare(self, X: Points, like: Prepared | None) -> Prepared:
        X = self._vectors(X, like)
        return Prepared((_unit_rows(X)[0],), dtype=X.dtype)

    def _tile(self, P: Prepared, Q: Prepared, out: np.ndarray) -> None:
        inner_products(P.arrays[0], Q.arrays[0], out)

    def _diag(self, X: Points) -> np.ndarray:
        X = self._vectors(X)
        return (_unit_rows(X)[1] > 0).astype(X.dtype)

    def _input_gradient(self, X: Points, Z: Points, W: np.ndarray) -> np.ndarray:
        # The derivative of u.v with respect to x, where u = x / |x|, is (v - (u.v) u) / |x|.
        X, Z = self._operands(X, Z)
        U, inverse = _unit_rows(X)
        weighted = np.asarray(W @ _unit_rows(Z)[0])
        U = U.toarray() if sp.issparse(U) else U
        radial = np.einsum("ij,ij->i", weighted, U)
        gradient: np.ndarray = (weighted - radial[:, None] * U) * inverse[:, None]
        return gradient


@node
class Bilinear(VectorKernel):
    """Linear kernel with respect to the inner product that a matrix A defines.

        k(x, z) = x^T A z

    Parameters
    ----------
    A : array-like of shape (d, d)
        A symmetric positive semidefinite matrix; any other matrix raises an error.  With A = M^T M,
        the kernel is the inner product of M x and M z; the inverse covariance matrix of the columns
        gives the Mahalanobis inner product.

    See Also
    --------
    Linear : A is the identity.
    Stretch : A is diagonal, with tunable scales.
    Map : A function of the points that is not linear.

    References
    ----------
    Shawe-Taylor and Cristianini, "Kernel methods for pattern analysis", Cambridge University Press,
    2004, section 3.4.

    Examples
    --------
    >>> from mercer.kernels import Bilinear
    >>> Bilinear(A=[[2.0, 0.0], [0.0, 1.0]])([[1.0, 1.0]], [[1.0, 3.0]])
    array([[5.]])
    """

    A: Any = ()

    def _check(self) -> None:
        A = frozen_matrix(self.A, "Bilinear", "A")
        object.__setattr__(self, "A", A)
        if (lowest := lowest_eigenvalue(A)) < 0:
            raise ValueError(
                f"Bilinear: A must be positive semidefinite, but its smallest eigenvalue is "
                f"{lowest:.3g}, so x^T A z is not a Mercer kernel. Use the nearest "
                f"positive semidefinite matrix, check_gram(A).nearest"
            )

    def _properties(self, *inner: Properties) -> Properties:
        return Properties("x^T A z with A positive semidefinite", 0)

    def _tile(self, P: Prepared, Q: Prepared, out: np.ndarray) -> None:
        X, Z = P.arrays[0], Q.arrays[0]
        inner_products(X, Q.cached("ZA", lambda: np.asarray(Z @ self._matrix(Q.dtype))), out)

    def _diag(self, X: Points) -> np.ndarray:
        X = self._vectors(X)
        XA = np.asarray(X @ self._matrix(X.dtype))
        return np.asarray((X.multiply(XA) if sp.issparse(X) else X * XA).sum(axis=1)).ravel()

    def _input_gradient(self, X: Points, Z: Points, W: np.ndarray) -> np.ndarray:
        Z = self._vectors(X if Z is None else Z)
        return np.asarray(W @ np.asarray(Z @ self._matrix(Z.dtype)))

    def _vectors(self, X: Points, like: Prepared | None = None) -> Points:
        X = super()._vectors(X)
        self._check_same_columns(len(self.A), X.shape[1])
        return X

    def _matrix(self, dtype: DTypeLike) -> np.ndarray:
        return np.asarray(self.A, dtype=dtype)


def integer_power(t: np.ndarray, exponent: int) -> np.ndarray:
    """Overwrite t with t**exponent by repeated squaring, which is much faster than np.power."""
    if exponent == 0:
        t[...] = 1.0
        return t
    bits = bin(exponent)[3:]  # the binary digits after the leading 1
    base = t.copy() if "1" in bits else t
    for bit in bits:
        np.square(t, out=t)
        if bit == "1":
            t *= base
    return t


def _unit_rows(X: Points) -> tuple[Points, np.ndarray]:
    """Return the rows of X scaled to norm 1 (zero rows stay 0), and the inverse norms."""
    # Divide by the largest entry first, so that the squares do not overflow.
    largest: Any = abs(X).max(axis=1) if X.shape[0] else np.zeros(0)
    largest = np.asarray(largest.toarray() if sp.issparse(largest) else largest).ravel()
    first = np.divide(1.0, largest, out=np.zeros_like(largest), where=largest > 0)
    X = sp.csr_array(X.multiply(first[:, None])) if sp.issparse(X) else X * first[:, None]
    norms = np.sqrt(squared_norms(X))
    inverse = np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0)
    if sp.issparse(X):
        return sp.csr_array(X.multiply(inverse[:, None])), first * inverse
    return X * inverse[:, None], first * inverse
