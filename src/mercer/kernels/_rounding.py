"""Rounding errors of kernel values, and distances in feature space without cancellation.

The squared distance of two points in feature space, k(x, x) - 2 k(x, z) + k(z, z), loses digits if
the points are far from the origin relative to their spread and k has a linear part.  Linear parts
are therefore shifted to the points (`shifted_to_data`), or replaced by distances
(`as_distance_kernel`).
"""

from __future__ import annotations

from functools import singledispatch

import numpy as np
import scipy.sparse as sp

from .._core import Points, as_vectors
from ._base import Kernel
from ._evaluation import Prepared
from .algebra._closure_rules import Scale, Sum
from .algebra._input_maps import Shift, TransformedPoints
from .algebra._wrappers import SameValues
from .vectors._dot_product import Bilinear, Linear
from .vectors._radial import prepared_squared_norms
from .vectors._radial_kernels import RBF, Distance
from .vectors._vector_kernel import distant_centre

# The distances in feature space of these kernels depend only on those of their children.
_PRESERVE_DISTANCES = (Sum, Scale, SameValues, TransformedPoints)


# ---------------------------------------------------------------------- float32


@singledispatch
def float32_error_bound(kernel: Kernel, P: Prepared) -> float | None:
    """Return a bound e on the relative error of tiles of prepared points in float32, or None.

    A bound e means that |float32 value - k| <= e k for every entry, with k >= 0.  None means that
    no bound is known.

    Examples
    --------
    >>> from mercer.kernels import RBF, Linear, float32_error_bound
    >>> X = [[0.0], [1.0]]
    >>> round(float32_error_bound(RBF(), RBF().prepare(X)), 8)
    1.5e-06
    >>> float32_error_bound(Linear(), Linear().prepare(X)) is None
    True
    """
    return None


@float32_error_bound.register
def _(kernel: RBF, P: Prepared) -> float | None:
    # An absolute error of the exponent is a relative error of k.  (Values of k below 1e-38 become
    # 0, a change that is smaller than the rounding error of float64.)
    norm = float(np.sqrt(prepared_squared_norms(P).max(initial=0.0)))
    if P.frame.form == "direct":
        # Sums of at most eight squared differences: the error is the rounding error eps |y| of the
        # rows times the distance, which is at most 13 where float32 can represent k.  The constant
        # is twice the largest measured error.
        exponent = 6e-7 * norm * min(norm, 13.0)
    else:
        # A matrix product: the partial sums of m products are at most 2 |y|^2, and each of them is
        # rounded.  The bound u (m + 8) |y|^2 with u = 6e-8 includes the rounding of the rows and of
        # the last two terms.  It holds for every order of summation.  A bound with sqrt(m) does
        # not, because the rounding errors of similar columns add up: some BLAS sum hundreds of
        # columns one after the other.
        rows = P.arrays[0]
        sparse = P.frame.form == "inner"
        terms = int(np.diff(rows.indptr).max(initial=0)) if sparse else P.frame.columns
        exponent = 6e-8 * (terms + 8) * norm**2
    return max(1.2e-6, exponent) + 3e-7


@float32_error_bound.register
def _(kernel: SameValues, P: Prepared) -> float | None:
    return float32_error_bound(kernel.kernel, P.children[0])


@float32_error_bound.register
def _(kernel: Scale, P: Prepared) -> float | None:
    error = float32_error_bound(kernel.kernel, P.children[0])
    # 2e-7 bounds the rounding errors of the factor and of the product.
    return None if error is None else error + 2e-7


def has_float32_error_bound(kernel: Kernel) -> bool:
    """Return True if `float32_error_bound` is implemented for all nodes of an expression.

    Examples
    --------
    >>> from mercer.kernels import RBF, Linear, has_float32_error_bound
    >>> has_float32_error_bound(2.0 * RBF()), has_float32_error_bound(Linear())
    (True, False)
    """
    implemented = float32_error_bound.dispatch(type(kernel)) is not _NO_BOUND
    return implemented and all(has_float32_error_bound(child) for _, child in kernel._children())


_NO_BOUND = float32_error_bound.dispatch(object)


# ---------------------------------------------------------------------- distances in feature space


def shifted_to_data(kernel: Kernel, X: Points) -> Kernel:
    """Return a kernel whose feature-space distances are the same, but suffer less cancellation.

    Linear terms are shifted to the centre of X if X is far from the origin relative to its spread.

    Examples
    --------
    >>> from mercer.kernels import Linear, shifted_to_data
    >>> shifted_to_data(Linear(), [[1e6], [1e6 + 2.0]])
    Shift(Linear(), offset=(1000001.0,))
    """
    if isinstance(kernel, Shift) or not _has_linear_part(kernel):
        return kernel
    if not isinstance(kernel, (Linear, Bilinear)):
        inner, _ = kernel._inner_points(X)
        return kernel._with_children(
            {path: shifted_to_data(child, inner) for path, child in kernel._children()}
        )
    centre = None if sp.issparse(X) else distant_centre(as_vectors(X, type(kernel).__name__))
    return kernel if centre is None else Shift(kernel, tuple(centre.tolist()))


def as_distance_kernel(kernel: Kernel) -> Kernel:
    """Return a kernel with the same distances in feature space, computed from differences.

    <x, z> becomes -|x - z|^2 / 2.  This is only conditionally positive definite, and costs more
    than an inner product, but distances do not lose digits, however far the points are from the
    origin.

    Examples
    --------
    >>> from mercer.kernels import Linear, as_distance_kernel
    >>> as_distance_kernel(Linear() + 1.0)
    0.5*Distance(length_scale=1.0, exponent=2) + 1.0
    """
    if isinstance(kernel, Bilinear) or not _has_linear_part(kernel):
        return kernel
    if isinstance(kernel, Linear):
        return 0.5 * Distance(exponent=2)
    return kernel._with_children(
        {path: as_distance_kernel(child) for path, child in kernel._children()}
    )


def _has_linear_part(kernel: Kernel) -> bool:
    """Whether a term such as <x, z> changes if all points are shifted, but no distance does."""
    if type(kernel) in (Linear, Bilinear):  # a subclass may override `profile`
        return True
    return isinstance(kernel, _PRESERVE_DISTANCES) and any(
        _has_linear_part(child) for _, child in kernel._children()
    )
