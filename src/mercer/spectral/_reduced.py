"""Components on fewer points: what is left of a kernel PCA after its expansion was compressed.

The columns w_j sqrt(l_j / n) and mu are compressed together.  If g_j is the projection of w_j on
the new span, then to first order the variance along it is smaller by l_j |w_j - g_j|^2 / n, so
that with these factors all squared errors are variances, that of the mean included.

The g_j are not orthonormal.  Rayleigh and Ritz find the basis T of their span with

    T^T <g, g> T = I,     T^T C T = diag(l),     C_ij = sum over training points of g_i g_j, centred

so that scores are uncorrelated again, errors of reconstruction add up, and no l_j is above the
exact eigenvalue.  As g_j lies in the span on which mu was projected, <g_j, mu> is exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from .._runtime import entry_point
from ..expansion import Expansion
from ..gram import gram
from ._components import Components

__all__ = ["reduced_components"]

_DEPENDENT = 1e-10  # eigenvalues of <g, g> below this part of the largest count as 0


@entry_point
def reduced_components(
    parts: Components, shrink: Callable[[Expansion], Expansion]
) -> tuple[Components, np.ndarray | None]:
    """Return the components on fewer points, and their errors on training points, if there are."""
    k, f = len(parts.offset), parts.expansion
    real = np.flatnonzero(parts.values > 0)
    roots = np.append(np.sqrt(parts.values / parts.rows), 1.0)
    small = shrink(f * roots)
    kernel, Z, B = small.kernel, small.points, small.coefficients
    axes, mean = B[:, real] / roots[real], B[:, k]
    K_zz = gram(kernel, Z, storage="tiled")
    G, at_mean = np.hsplit(axes.T @ (K_zz @ np.column_stack([axes, mean])), [len(real)])
    errors, T = None, np.zeros((len(real), k))
    if parts.basis is None:
        values = gram(kernel, f.points, Z) @ np.column_stack([axes, mean])
        centred = values[:, :-1] - at_mean.T
        weights = parts.rows * f.coefficients[:, k]
        values_of, T = _ritz(G, (weights[:, None] * centred).T @ centred, k)
    else:
        # Points seen through landmarks have the covariance of their features L^-1 k_S(x).
        moments = parts.basis.moments
        F = parts.basis.map.features(Z).T @ axes
        values_of, T = _ritz(G, parts.rows / moments.weight * (F.T @ moments.comoment @ F), k)
    squared_mean = float(mean @ (K_zz @ mean))
    if parts.basis is None:
        distances = kernel.diag(f.points) - 2.0 * values[:, -1] + squared_mean
        errors = Components.left(distances, centred @ T)
    c = parts.certificate
    away = np.maximum(np.abs(c.upper - values_of), np.abs(values_of - c.lower))
    reduced = replace(
        parts,
        values=values_of,
        vectors=None,
        certificate=replace(
            c, lower=np.minimum(values_of, c.lower), residuals=away, sines=np.ones(k), clusters=()
        ),
        expansion=Expansion(f.kernel, Z, np.column_stack([axes @ T, mean]), small.reduction),
        offset=T.T @ at_mean[:, 0],
        squared_mean=squared_mean,
        scores=None,
        basis=None,
        reduction=small.reduction,
    )
    return reduced, errors


def _ritz(G: np.ndarray, C: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return k values l, descending, and T with T^T G T = I and T^T C T = diag(l).

    Where functions depend on each other there are fewer, and the rest is 0.
    """
    s, V = np.linalg.eigh(G)
    kept = s > _DEPENDENT * s.max(initial=0.0)
    V = V[:, kept] / np.sqrt(s[kept])
    ritz, U = np.linalg.eigh(V.T @ C @ V)
    values, T = np.zeros(k), np.zeros((len(G), k))
    values[: len(ritz)] = np.maximum(ritz[::-1], 0.0)
    T[:, : len(ritz)] = (V @ U)[:, ::-1]
    # the sign of the component that it comes from
    first = min(len(G), k)
    along = np.einsum("ij,ji->i", G[:first], T[:, :first])
    T[:, :first] *= np.where(along < 0, -1.0, 1.0)
    return values, T
