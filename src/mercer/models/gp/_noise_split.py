"""Split k(x, x) into the latent variance and the noise variance of an observation.

    latent(x) = k(x, x')  for another observation x' with the same features
    noise(x) = k(x, x) - latent(x)

Here k is a kernel that may contain `White` terms; only these contribute noise.  Low-rank
approximations of K treat the noise separately, because it has full rank.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..._core import take
from ...kernels import Bounded, Constant, Fixed, Kernel, Power, Product, Radial, Scale, Sum, White

__all__ = ["diagonal_pullback", "latent_and_noise", "noise_parameter_mask", "without_noise"]

# Number of points per block when a whole block of K is evaluated only for its diagonal.  With
# larger blocks, the cost per point grows and the overhead per block shrinks.
_DIAGONAL_CHUNK = 64


def latent_and_noise(kernel: Kernel, X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the latent and the noise part of k(x_i, x_i), each of shape (n,).

    Examples
    --------
    >>> from mercer.kernels import Linear, White
    >>> from mercer.models.gp._noise_split import latent_and_noise
    >>> latent_and_noise(Linear() + 3 * White(0.1), [[1.0], [2.0]])
    (array([1., 4.]), array([0.3, 0.3]))
    """
    total = np.asarray(kernel.diag(X), dtype=float)
    if not kernel.distinguishes_observations:
        return total, np.zeros_like(total)
    # Computing both parts term by term avoids a subtraction, which would reduce the precision.
    match kernel:
        case White():
            return np.zeros_like(total), total
        case Sum(terms):
            latent, noise = np.sum([latent_and_noise(k, X) for k in terms], axis=0)
            return latent, noise
        case Scale(inner, factor):
            latent, noise = latent_and_noise(inner, X)
            return factor * latent, factor * noise
        case Fixed(inner) | Bounded(inner):
            return latent_and_noise(inner, X)
    latent = np.empty_like(total)
    for rows in _chunk_slices(len(total)):
        points = take(X, rows)
        # k(X, Z) treats its arguments as different observations, so that it contains no noise
        latent[rows] = kernel(points, points).diagonal()
    return latent, total - latent


def diagonal_pullback(kernel: Kernel, X: Any, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return sum_i a_i d latent(x_i) / d theta + b_i d noise(x_i) / d theta.

    latent(x) + noise(x) = k(x, x), as in `latent_and_noise`.
    """
    match kernel:  # in these cases, the diagonal of K can be computed without a block of K
        case White() | Constant():
            weights = b if isinstance(kernel, White) else a
            return np.full(kernel.theta.size, weights @ kernel.diag(X))
        case Radial():  # the diagonal is the same for all points
            return kernel._diag_pullback(take(X, slice(0, 1)), np.array([a.sum()]))
        case Sum(terms):
            return np.concatenate([diagonal_pullback(k, X, a, b) for k in terms])
        case Bounded(inner):
            return diagonal_pullback(inner, X, a, b)
        case Scale(inner, factor) if factor > 0:
            latent, noise = latent_and_noise(inner, X)
            own_gradient = factor * float(a @ latent + b @ noise)
            return np.append(diagonal_pullback(inner, X, factor * a, factor * b), own_gradient)
        case Product(factors) if not kernel.distinguishes_observations:
            diagonals = np.array([k.diag(X) for k in factors])
            others = [np.prod(np.delete(diagonals, i, axis=0), axis=0) for i in range(len(factors))]
            parts = [
                diagonal_pullback(k, X, a * w, b) for k, w in zip(factors, others, strict=True)
            ]
            return np.concatenate(parts)
    if not kernel.distinguishes_observations:
        return kernel._diag_pullback(X, a)
    total = kernel._diag_pullback(X, b)
    for rows in _chunk_slices(len(a)):
        points = take(X, rows)
        total += kernel.pullback(points, points, np.diag(a[rows] - b[rows]))
    return total


def noise_parameter_mask(kernel: Kernel) -> np.ndarray:
    """Return a mask of the entries of theta that are variances of additive `White` terms.

    Examples
    --------
    >>> from mercer.kernels import RBF, White
    >>> from mercer.models.gp._noise_split import noise_parameter_mask
    >>> noise_parameter_mask(2 * RBF() + White())
    array([False, False,  True])
    """
    match kernel:
        case White():
            return np.ones(kernel.theta.size, dtype=bool)
        case Sum(terms):
            return np.concatenate([noise_parameter_mask(k) for k in terms])
        case Bounded(inner):
            return noise_parameter_mask(inner)
    return np.zeros(kernel.theta.size, dtype=bool)


def without_noise(kernel: Kernel) -> Kernel:
    """Return the kernel without its noise terms, for choosing landmarks.

    A kernel that consists of noise only is returned unchanged.

    Examples
    --------
    >>> from mercer.kernels import RBF, White
    >>> from mercer.models.gp._noise_split import without_noise
    >>> without_noise(2 * RBF() + White())
    2.0*RBF(length_scale=1.0)
    """
    latent = _noise_free_part(kernel)
    return kernel if latent is None else latent


def _noise_free_part(kernel: Kernel) -> Kernel | None:
    """Return the kernel without noise terms, or None if it consists of noise only.

    Constant factors of a product become a `Scale`.
    """
    match kernel:
        case White():
            return None
        case Fixed(inner) | Bounded(inner):
            return _noise_free_part(inner)
        case Scale() | Power():
            latent = _noise_free_part(kernel.kernel)
            return None if latent is None else replace(kernel, kernel=latent)
        case Sum(terms):
            parts = [part for k in terms if (part := _noise_free_part(k)) is not None]
            return Sum(tuple(parts)) if len(parts) > 1 else next(iter(parts), None)
        case Product(factors):
            parts = [part for k in factors if (part := _noise_free_part(k)) is not None]
            if len(parts) < len(factors):
                return None
            others = [k for k in parts if not isinstance(k, Constant)]
            factor = float(np.prod([k.value for k in parts if isinstance(k, Constant)]))
            if not others:
                return Constant(factor)
            product = Product(tuple(others)) if len(others) > 1 else others[0]
            return product if len(others) == len(parts) else Scale(product, factor)
    return kernel


def _chunk_slices(n: int) -> list[slice]:
    """Return slices of `_DIAGONAL_CHUNK` points that cover 0, ..., n - 1."""
    return [slice(start, min(start + _DIAGONAL_CHUNK, n)) for start in range(0, n, _DIAGONAL_CHUNK)]
