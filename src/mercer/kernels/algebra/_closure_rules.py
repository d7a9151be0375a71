"""Sums, products, powers and exponentials of kernels, which are kernels themselves.

The operators + and * flatten nested expressions: (a + b) + c becomes one `Sum` of three terms, and
(a * b) * c one `Product` of three factors.  The constructors do not flatten:
`Sum((Sum((a, b)), c))` remains nested.
"""

from __future__ import annotations

import itertools
import numbers
from abc import abstractmethod
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from ..._core import Points
from .._base import Kernel, node, parameter
from .._dataclass import (
    FieldWriter,
    FormattedExpression,
    format_call,
    format_expression,
    format_operand,
)
from .._evaluation import (
    KernelLinearisation,
    ParameterGradients,
    Prepared,
    ScaleLinearisation,
    SumLinearisation,
    linearisation,
)
from .._parameter_checks import nonnegative
from .._properties import (
    POWER,
    PRODUCT,
    SCALE,
    SCHOENBERG,
    SERIES,
    SUM,
    TENSOR,
    Properties,
    all_have,
    highest_order,
)
from ..vectors._constant import Constant
from ..vectors._dot_product import integer_power
from ..vectors._radial_kernels import RBF
from ._input_maps import Select
from ._wrappers import Wrapper, format_wrapper

# The kind of points of each domain.  Kernels with different kinds of points cannot be combined.
# Sets and rankings are omitted, because they can also be given as rows of a matrix.
_KINDS = {"vectors": "vectors", "nonnegative": "vectors", "graphs": "graphs"}
_KINDS |= {"strings": "strings", "texts": "strings", "collections": "sets of points"}


def add(*operands: Kernel | float) -> Kernel:
    """Return the sum of kernels and numbers; a number becomes a `Constant` kernel."""
    terms: list[Kernel] = []
    for term in operands:
        if isinstance(term, Sum):
            terms += term.terms
        elif isinstance(term, Kernel):
            terms.append(term)
        elif isinstance(term, numbers.Real):
            terms.append(Constant(float(term)))
        else:
            return NotImplemented  # type: ignore[no-any-return]  # the operators return it
    return Sum(tuple(terms))


def multiply(*operands: Kernel | float) -> Kernel:
    """Return the product of kernels and numbers, from left to right; a number becomes a `Scale`."""
    factors: list[Any] = []  # the operands so far that are not yet multiplied
    for operand in operands:
        if not isinstance(operand, (Kernel, numbers.Real)):
            return NotImplemented  # type: ignore[no-any-return]  # the operators return it
        if factors and (isinstance(operand, numbers.Real) or isinstance(factors[0], numbers.Real)):
            scaled: list[Any] = [_product(factors), operand]
            scaled.sort(key=lambda each: isinstance(each, numbers.Real))  # put the kernel first
            factors = [Scale(scaled[0], float(scaled[1]))]
        else:
            factors.append(operand)
    return _product(factors)


def _product(kernels: list[Any]) -> Kernel:
    """Return the flat `Product` of several kernels, or a single kernel unchanged."""
    if len(kernels) == 1:
        single: Kernel = kernels[0]
        return single
    parts = (k.factors if isinstance(k, Product) else (k,) for k in kernels)
    return Product(tuple(itertools.chain(*parts)))


def _is_float(value: object) -> bool:
    """Return True if `value` is a number that float() converts without rounding."""
    return isinstance(value, (int, float, np.number)) and bool(float(value) == value)


def _format_term(term: Kernel, as_number: bool, write: FieldWriter) -> str:
    """Format a term of a sum; with `as_number`, a `Constant` is written as a plain number."""
    if as_number and isinstance(term, Constant) and _is_float(term.value):
        return write(term.value)
    return format_operand(term, write).inside(1)


@node
class Combination(Kernel):
    """Base class of sums and products: the values of several kernels, combined by a ufunc.

    The first field is the tuple of the child kernels.
    """

    _combine: ClassVar[np.ufunc]  # combines the values of two children, e.g. np.add

    @property
    def _members(self) -> tuple[Kernel, ...]:
        members: tuple[Kernel, ...] = self._items()[0][1]
        return members

    def _check(self) -> None:
        if not isinstance(self._members, tuple) or not self._members:
            raise ValueError(f"{type(self).__name__} needs a tuple of at least one kernel")
        for child in self._members:
            if not isinstance(child, Kernel):
                raise TypeError(f"{type(self).__name__} needs a tuple of kernels, got {child!r}")
        kinds = {kind: child for child in self._members if (kind := _KINDS.get(child.domain.kind))}
        if len(kinds) > 1:
            (a, one), (b, other) = list(kinds.items())[:2]
            raise ValueError(
                f"{type(self).__name__}: {one} is a kernel on {a}, but {other} is a kernel on {b}, "
                f"so no point is valid for both; for a table with both kinds of columns, select "
                f"the columns of each kernel with Select(k, 'name')"
            )

    def _evaluated(self) -> tuple[Kernel, ...]:
        """Return the kernels to evaluate; a subclass may merge several children into one kernel."""
        return self._members

    def _prepare(self, X: Points, like: Prepared | None) -> Prepared:
        children = self._evaluated()
        likes = like.children if like is not None else (None,) * len(children)
        return Prepared.from_children(
            *(child._prepare(X, other) for child, other in zip(children, likes, strict=True))
        )

    def _tile(self, P: Prepared, Q: Prepared, out: np.ndarray) -> None:
        scratch = out  # the first child writes to `out`, the others to a scratch tile
        for child, p, q in zip(self._evaluated(), P.children, Q.children, strict=True):
            child._tile(p, q, scratch)
            if scratch is out:
                scratch = np.empty_like(out)
            else:
                self._combine(out, scratch, out=out)

    def _diag(self, X: Points) -> np.ndarray:
        diagonal: np.ndarray = self._combine.reduce([child.diag(X) for child in self._members])
        return diagonal


@node
class Sum(Combination):
    """Sum of kernels, written `k1 + k2`.

        k(x, z) = k_1(x, z) + ... + k_m(x, z)

    Its feature vector is the concatenation of the feature vectors of the terms.  `k + 1` adds a
    `Constant`.

    Parameters
    ----------
    terms : tuple of Kernel
        The kernels to add, at least one.  Multiply a term by a number to give it another weight:
        `2.0 * RBF() + Linear()`.

    See Also
    --------
    Product : Large only if all factors are large; a sum is large if one term is.
    mercer.MultipleKernel : Learns the weights of the terms.
    Constant : The kernel of a number in a sum.

    References
    ----------
    Aronszajn, "Theory of reproducing kernels", Transactions of the American Mathematical Society
    68, 1950. Shawe-Taylor and Cristianini, "Kernel methods for pattern analysis", Cambridge
    University Press, 2004, section 3.4.

    Examples
    --------
    >>> from mercer.kernels import Linear, RBF
    >>> (RBF() + Linear())([[1.0]], [[1.0]])
    array([[2.]])
    """

    terms: tuple[Kernel, ...] = ()

    def _properties(self, *inner: Properties) -> Properties:
        return Properties.of(
            inner,
            SUM,
            highest_order(inner),
            strict=any(k.strict for k in inner),
            nonnegative=all_have(inner, "nonnegative"),
            stationary=all_have(inner, "stationary"),
            diagonal_bound=float(sum(k.diagonal_bound for k in inner)),
        )

    _combine: ClassVar[np.ufunc] = np.add

    def _pullback(self, X: Points, Z: Points, W: np.ndarray) -> ParameterGradients:
        return {path: child.pullback(X, Z, W) for path, child in self._children()}

    def _input_gradient(self, X: Points, Z: Points, W: np.ndarray) -> np.ndarray:
        gradient: np.ndarray = np.sum(
            [child.input_gradient(X, Z, W) for child in self.terms], axis=0
        )
        return gradient


linearisation.register(Sum, SumLinearisation)


@format_expression.register
def _(value: Sum, write: FieldWriter) -> FormattedExpression:
    if len(value.terms) == 1 or any(isinstance(term, Sum) for term in value.terms):
        return format_call(value, write)  # the operator + would flatten a nested sum
    # Python would evaluate the leading numbers of "1 + 2 + k" to 3.  Therefore the first two
    # terms are written as Constant(...) if both are constants.
    both = all(isinstance(term, Constant) for term in value.terms[:2])
    as_number = [not both or i > 1 for i in range(len(value.terms))]
    texts = [_format_term(*each, write) for each in zip(value.terms, as_number, strict=True)]
    return FormattedExpression(" + ".join(texts), 0)


@node
class Product(Combination):
    """Product of kernels, written `k1 * k2`.

        k(x, z) = k_1(x, z) ... k_m(x, z)

    It is a Mercer kernel by Schur's product theorem.  A product of RBF kernels with length scales
    l_1, ..., l_m is evaluated as a single RBF with length scale l, 1 / l^2 = sum_i 1 / l_i^2.

    Parameters
    ----------
    factors : tuple of Kernel
        The kernels to multiply, at least one.  Factors on different columns, such as
        ``Select(k1, [0]) * Select(k2, [1])``, model interactions of these columns.

    See Also
    --------
    Sum : Large if one of the terms is large; additive models.
    Power : The product of a kernel with itself.
    Scale : A kernel times a number.

    References
    ----------
    Schur, "Bemerkungen zur Theorie der beschränkten Bilinearformen mit unendlich vielen
    Veränderlichen", Journal für die reine und angewandte Mathematik 140, 1911. Aronszajn, "Theory
    of reproducing kernels", Transactions of the American Mathematical Society 68, 1950.

    Examples
    --------
    >>> from mercer.kernels import Linear, RBF
    >>> (RBF() * Linear())([[2.0]], [[2.0]])
    array([[4.]])
    """

    factors: tuple[Kernel, ...] = ()

    def _properties(self, *inner: Properties) -> Properties:
        # By Oppenheim's inequality, the product is strictly positive definite if one factor is,
        # and if all other factors have k(x, x) > 0.
        positive = all(k.strict or k.unit_diagonal for k in inner)
        bounds = [k.diagonal_bound for k in inner]
        return Properties.of(
            inner,
            TENSOR if all(isinstance(k, Select) for k in self.factors) else PRODUCT,
            0 if highest_order(inner) == 0 else None,
            strict=positive and any(k.strict for k in inner),
            nonnegative=all_have(inner, "nonnegative"),
            unit_diagonal=all_have(inner, "unit_diagonal"),
            infinitely_divisible=all_have(inner, "infinitely_divisible"),
            stationary=all_have(inner, "stationary"),
            diagonal_bound=0.0 if 0.0 in bounds else float(np.prod(bounds)),
        )

    _combine: ClassVar[np.ufunc] = np.multiply

    def _evaluated(self) -> tuple[Kernel, ...]:
        merged = self._merged()
        return self.factors if merged is None else (merged,)

    def _merged(self) -> RBF | None:
        """Return the RBF that equals a product of RBF kernels, or None for other factors."""
        scales = [np.asarray(k.length_scale) for k in self.factors if type(k) is RBF]
        if len(scales) < max(2, len(self.factors)) or self._unresolved:
            return None
        if len({scale.shape for scale in scales} - {()}) > 1:
            return None  # inconsistent columns: evaluating the factors will raise an error
        inverse = sum(scale.astype(float) ** -2.0 for scale in scales)
        return RBF(length_scale=np.asarray(inverse) ** -0.5)

    def _pullback(self, X: Points, Z: Points, W: np.ndarray) -> ParameterGradients:
        pairs = zip(self._children(), self._others(X, Z), strict=True)
        return {path: child.pullback(X, Z, W * rest) for (path, child), rest in pairs}

    def _input_gradient(self, X: Points, Z: Points, W: np.ndarray) -> np.ndarray:
        pairs = zip(self.factors, self._others(X, Z), strict=True)
        gradient: np.ndarray = np.sum(
            [child.input_gradient(X, Z, W * rest) for child, rest in pairs], axis=0
        )
        return gradient

    def _others(self, X: Points, Z: Points) -> list[np.ndarray]:
        """Return the product of all other factors for each factor, without dividing by zeros."""
        blocks = [child(X, Z) for child in self.factors]
        one = np.ones_like(blocks[0])
        return [np.prod([one, *blocks[:i], *blocks[i + 1 :]], axis=0) for i in range(len(blocks))]


@format_expression.register
def _(value: Product, write: FieldWriter) -> FormattedExpression:
    if len(value.factors) == 1 or any(isinstance(factor, Product) for factor in value.factors):
        return format_call(value, write)  # the operator * would flatten a nested product
    first, *others = (format_operand(factor, write) for factor in value.factors)
    return FormattedExpression(
        "*".join([first.inside(1), *(other.inside(2) for other in others)]), 1
    )


@node
class _ScalarFunction(Wrapper):
    """Base class of kernels k(x, z) = g(k_1(x, z)) with a scalar function g."""

    @abstractmethod
    def _apply(self, block: np.ndarray) -> np.ndarray:
        """Overwrite an array of values of k_1 with g(k_1), and return it."""

    @abstractmethod
    def _slope(self, X: Points, Z: Points) -> np.ndarray | float:
        """Return g'(k_1(x_i, z_j)), a number or an array of shape (n, m)."""

    def _tile(self, P: Prepared, Q: Prepared, out: np.ndarray) -> None:
        super()._tile(P, Q, out)
        self._apply(out)

    def _diag(self, X: Points) -> np.ndarray:
        return self._apply(np.array(self.kernel.diag(X)))

    def _pullback(self, X: Points, Z: Points, W: np.ndarray) -> ParameterGradients:
        return {"kernel": self.kernel.pullback(X, Z, W * self._slope(X, Z))}

    def _input_gradient(self, X: Points, Z: Points, W: np.ndarray) -> np.ndarray:
        return self.kernel.input_gradient(X, Z, W * self._slope(X, Z))


@node
class Scale(_ScalarFunction):
    """A kernel times a number, written `2 * k`.

        k(x, z) = factor * k_1(x, z)

    Parameters
    ----------
    kernel : Kernel
        The kernel k_1 to scale.
    factor : float, default=1.0
        The factor, >= 0.  Tunable.  In a Gaussian process it is the signal variance; start with the
        variance of the target.  In a sum it is the weight of the term.  A factor of the whole
        kernel of an SVM or of ridge regression only rescales C or alpha.

    See Also
    --------
    Normalized : Divides by the norms, so that k(x, x) = 1.
    Stretch : Scales the points instead of the values.
    Constant : A constant kernel.

    References
    ----------
    Aronszajn, "Theory of reproducing kernels", Transactions of the American Mathematical Society
    68, 1950. Shawe-Taylor and Cristianini, "Kernel methods for pattern analysis", Cambridge
    University Press, 2004, section 3.4.

    Examples
    --------
    >>> from mercer.kernels import RBF
    >>> 2 * RBF()
    2.0*RBF(length_scale=1.0)
    """

    factor: float = parameter(1.0)

    def _check(self) -> None:
        if isinstance(self.factor, numbers.Real) and self.factor < 0:
            raise ValueError(
                f"Scale: factor must be >= 0, got {self.factor!r}; with a negative factor, the "
                f"kernel is not positive semidefinite"
            )
        nonnegative("Scale", "factor", self.factor)

    def _properties(self, *inner: Properties) -> Properties:
        if self.factor == 0:
            return Properties(
                "k = 0",
                0,
                nonnegative=True,
                infinitely_divisible=True,
                stationary=True,
                diagonal_bound=0.0,
            )
        return replace(
            inner[0],
            rule=SCALE,
            unit_diagonal=inner[0].unit_diagonal and self.factor == 1,
            diagonal_bound=float(self.factor * inner[0].diagonal_bound),
        )

    def features(self, X: Points, like: Points = None) -> Points:
        """Return the features sqrt(factor) * phi_1(x), if k_1 has explicit features phi_1.

        Parameters
        ----------
        X : collection of n points
            The points, such as a list of strings.
        like : collection of points, optional
            The columns are the features that occur in these points; by default those that occur in
            X.

        Returns
        -------
        csr_array of shape (n, n_features)
            The features, one row per point.
        """
        return np.sqrt(self.factor) * self.kernel.features(X, like)  # type: ignore[attr-defined]

    def _apply(self, block: np.ndarray) -> np.ndarray:
        scaled: np.ndarray = np.multiply(block, self.factor, out=block)
        return scaled

    def _slope(self, X: Points, Z: Points) -> float:
        return self.factor

    def _pullback(self, X: Points, Z: Points, W: np.ndarray) -> ParameterGradients:
        block = self.kernel.linearise(X, Z)
        return {"kernel": self.factor * block.pullback(W), "factor": self.factor * block.total(W)}


@linearisation.register
def _(kernel: Scale, X: Points, Z: Points) -> KernelLinearisation:
    return (ScaleLinearisation if kernel.factor else KernelLinearisation)(kernel, X, Z)


@format_expression.register
def _(value: Scale, write: FieldWriter) -> FormattedExpression:
    if not _is_float(value.factor):
        return format_wrapper(value, write)
    return FormattedExpression(
        f"{write(value.factor)}*{format_operand(value.kernel, write).inside(2)}", 1
    )


@node
class Power(_ScalarFunction):
    """Power of a kernel, written `k ** p`.

        k(x, z) = k_1(x, z)^exponent

    Parameters
    ----------
    kernel : Kernel
        The kernel k_1 to raise to a power.
    exponent : float, default=1
        A positive integer, or any positive number if `kernel` is infinitely divisible (for example
        `RBF` and `Laplacian`).  An integer p adds products of p features; 2 or 3 is usual.

    See Also
    --------
    Polynomial : `(gamma * Linear() + coef0) ** degree`, faster.
    Exp : A weighted sum of all powers.
    Product : Products of different kernels.

    References
    ----------
    Aronszajn, "Theory of reproducing kernels", Transactions of the American Mathematical Society
    68, 1950. Shawe-Taylor and Cristianini, "Kernel methods for pattern analysis", Cambridge
    University Press, 2004, section 3.4.

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> (Linear() ** 2)([[1.0, 2.0]], [[3.0, 4.0]])
    array([[121.]])
    """

    exponent: float = 1

    def _check(self) -> None:
        p = self.exponent
        if isinstance(p, bool) or not isinstance(p, numbers.Real) or not (0 < p < np.inf):
            raise ValueError(f"Power: the exponent must be a positive number, got {p!r}")
        if p != int(p) and not self.kernel.infinitely_divisible:
            raise ValueError(
                f"Power: {type(self.kernel).__name__} is not known to be infinitely divisible, so "
                f"its power {p!r} may not be a Mercer kernel; use a positive integer exponent"
            )

    def _properties(self, *inner: Properties) -> Properties:
        return power_properties(inner[0], float(self.exponent))

    def _apply(self, block: np.ndarray) -> np.ndarray:
        return self._raise_to(block, self.exponent)

    def _slope(self, X: Points, Z: Points) -> np.ndarray:
        block = self.kernel(X, Z)
        if self.exponent >= 1:
            return self.exponent * self._raise_to(block, self.exponent - 1)
        # Where k_1 underflows to 0, k_1^(p - 1) is infinite.  The derivative of k_1 goes to 0
        # faster, so the product is set to 0.
        slope = np.zeros_like(block)
        np.power(block, self.exponent - 1, out=slope, where=block > 0)
        return self.exponent * slope

    @staticmethod
    def _raise_to(block: np.ndarray, p: float) -> np.ndarray:
        if p == int(p) and p >= 0:
            return integer_power(block, int(p))
        powers: np.ndarray = np.power(block, p, out=block)
        return powers


@format_expression.register
def _(value: Power, write: FieldWriter) -> FormattedExpression:
    return FormattedExpression(
        f"{format_operand(value.kernel, write).inside(3)}**{write(value.exponent)}", 2
    )


@node
class Exp(_ScalarFunction):
    """Exponential of a kernel.

        k(x, z) = exp(k_1(x, z))

    It is a Mercer kernel if k_1 is, because the power series of exp has no negative coefficients.
    It is also a Mercer kernel if k_1 is only conditionally positive definite of order 1, such as
    `Distance`.

    Parameters
    ----------
    kernel : Kernel
        The kernel k_1 in the exponent.  Its values must be moderate, because exp(k_1) overflows for
        k_1 > 709; scale it, `Exp(0.1 * k)`, if necessary.

    See Also
    --------
    Power : A single power of a kernel.
    RBF : `Normalized(Exp(Linear()))`, computed without overflow.
    Chi2 : The exponential of `AdditiveChi2`.

    References
    ----------
    Schoenberg, "Metric spaces and positive definite functions", Transactions of the American
    Mathematical Society 44, 1938 (order 1). Shawe-Taylor and Cristianini, "Kernel methods for
    pattern analysis", Cambridge University Press, 2004, section 3.4.

    Examples
    --------
    >>> from mercer.kernels import Exp, Linear
    >>> Exp(Linear())([[1.0]], [[1.0]]).round(4)
    array([[2.7183]])
    """

    def _properties(self, *inner: Properties) -> Properties:
        (k,) = inner
        return k.derived(
            f"exp, a {SERIES}" if k.order == 0 else SCHOENBERG,
            0 if k.order in (0, 1) else None,
            nonnegative=True,
            unit_diagonal=False,
            infinitely_divisible=k.order in (0, 1),  # exp(p k_1) is a kernel for every p > 0
            diagonal_bound=float(np.exp(k.diagonal_bound)),
        )

    def _apply(self, block: np.ndarray) -> np.ndarray:
        values: np.ndarray = np.exp(block, out=block)
        return values

    def _slope(self, X: Points, Z: Points) -> np.ndarray:
        return self(X, Z)


def power_properties(k: Properties, p: float) -> Properties:
    """Return the known properties of k^p, given the known properties of k.

    k^p is a Mercer kernel if p is a positive integer, or if k is infinitely divisible and p > 0.
    """
    is_integer = p.is_integer() and p > 0
    return k.derived(
        POWER if is_integer else "real power of an infinitely divisible kernel",
        0 if k.order == 0 and p > 0 and (is_integer or k.infinitely_divisible) else None,
        strict=k.strict and is_integer,
        nonnegative=k.nonnegative or p % 2 == 0,
        diagonal_bound=float(np.power(k.diagonal_bound, p)) if p > 0 else np.inf,
    )
