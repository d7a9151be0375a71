"""k(x, x) = latent + noise: which part of a kernel belongs to one observation alone.

    latent(x) = k(x, x')  for another observation x' in the same place,     noise(x) = the rest

A `White` term is noise, and nothing else is; approximations of K treat the two differently, since
noise has full rank.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .._points import take
from ..kernels import Bounded, Constant, Fixed, Kernel, Power, Product, Radial, Scale, Sum, White

__all__ = ["diagonal_pullback", "latent_and_noise", "noises", "signal"]

_FEW = 64  # points whose block is evaluated for its diagonal


def latent_and_noise(kernel: Kernel, X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the two parts of k(x_i, x_i), each of shape (n,).

    Examples
    --------
    >>> from mercer.kernels import Linear, White
    >>> from mercer.gp._noise import latent_and_noise
    >>> latent_and_noise(Linear() + 3 * White(0.1), [[1.0], [2.0]])
    (array([1., 4.]), array([0.3, 0.3]))
    """
    total = np.asarray(kernel.diag(X), dtype=float)
    if not kernel.tells_observations_apart:
        return total, np.zeros_like(total)
    match kernel:  # where the parts are terms, nothing is lost by a subtraction
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
    for rows in _chunks(len(total)):
        some = take(X, rows)
        latent[rows] = kernel(some, some).diagonal()  # two collections, hence no noise
    return latent, total - latent


def diagonal_pullback(kernel: Kernel, X: Any, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return sum_i a_i d latent(x_i) / d theta + b_i d noise(x_i) / d theta."""
    match kernel:  # where the parts are known, no block need be formed for the sake of its diagonal
        case White() | Constant():
            weights = b if isinstance(kernel, White) else a
            return np.full(kernel.theta.size, weights @ kernel.diag(X))
        case Radial():  # the same for all points
            return kernel._diag_pullback(take(X, slice(0, 1)), np.array([a.sum()]))
        case Sum(terms):
            return np.concatenate([diagonal_pullback(k, X, a, b) for k in terms])
        case Bounded(inner):
            return diagonal_pullback(inner, X, a, b)
        case Scale(inner, factor) if factor > 0:
            latent, noise = latent_and_noise(inner, X)
            own = factor * float(a @ latent + b @ noise)
            return np.append(diagonal_pullback(inner, X, factor * a, factor * b), own)
        case Product(factors) if not kernel.tells_observations_apart:
            diagonals = np.array([k.diag(X) for k in factors])
            others = [np.prod(np.delete(diagonals, i, axis=0), axis=0) for i in range(len(factors))]
            parts = [
                diagonal_pullback(k, X, a * w, b) for k, w in zip(factors, others, strict=True)
            ]
            return np.concatenate(parts)
    if not kernel.tells_observations_apart:
        return kernel._diag_pullback(X, a)
    total = kernel._diag_pullback(X, b)
    for rows in _chunks(len(a)):
        some = take(X, rows)
        total += kernel.pullback(some, some, np.diag(a[rows] - b[rows]))
    return total


def noises(kernel: Kernel) -> np.ndarray:
    """Return which entries of theta are variances of noise, terms of their own.

    Examples
    --------
    >>> from mercer.kernels import RBF, White
    >>> from mercer.gp._noise import noises
    >>> noises(2 * RBF() + White())
    array([False, False,  True])
    """
    match kernel:
        case White():
            return np.ones(kernel.theta.size, dtype=bool)
        case Sum(terms):
            return np.concatenate([noises(k) for k in terms])
        case Bounded(inner):
            return noises(inner)
    return np.zeros(kernel.theta.size, dtype=bool)


def signal(kernel: Kernel) -> Kernel:
    """Return the kernel without its noise, as landmarks are chosen for; what is only noise stays.

    Examples
    --------
    >>> from mercer.kernels import RBF, White
    >>> from mercer.gp._noise import signal
    >>> signal(2 * RBF() + White())
    2.0*RBF(length_scale=1.0)
    """
    latent = _latent(kernel)
    return kernel if latent is None else latent


def _latent(kernel: Kernel) -> Kernel | None:
    """Return the covariance of different observations, None for 0; constant factors as `Scale`."""
    match kernel:
        case White():
            return None
        case Fixed(inner) | Bounded(inner):
            return _latent(inner)
        case Scale() | Power():
            latent = _latent(kernel.kernel)
            return None if latent is None else replace(kernel, kernel=latent)
        case Sum(terms):
            parts = [part for k in terms if (part := _latent(k)) is not None]
            return Sum(tuple(parts)) if len(parts) > 1 else next(iter(parts), None)
        case Product(factors):
            parts = [part for k in factors if (part := _latent(k)) is not None]
            if len(parts) < len(factors):
                return None
            others = [k for k in parts if not isinstance(k, Constant)]
            factor = float(np.prod([k.value for k in parts if isinstance(k, Constant)]))
            if not others:
                return Constant(factor)
            product = Product(tuple(others)) if len(others) > 1 else others[0]
            return product if len(others) == len(parts) else Scale(product, factor)
    return kernel


def _chunks(n: int) -> list[slice]:
    return [slice(start, min(start + _FEW, n)) for start in range(0, n, _FEW)]
