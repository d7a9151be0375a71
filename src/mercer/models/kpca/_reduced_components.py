"""Compression of the components of a kernel PCA to an expansion in fewer points.

The scaled components w_j sqrt(l_j / n), with eigenvalues l_j and n training points, are compressed
together with the mean mu.  Let g_j be the projection of w_j on the span of the new points.  To
first order, the variance along g_j is smaller than that along w_j by l_j |w_j - g_j|^2 / n.  With
this scaling all squared errors, including that of the mean, are therefore variances.

The g_j are not orthonormal.  The Rayleigh-Ritz method finds coefficients T of a new basis of their
span with

    T^T <g, g> T = I,     T^T C T = diag(l),     C_ij = sum over training points of g_i g_j, centred

so that the scores are uncorrelated again, the squared scores and the reconstruction error add up to
the squared distance from the mean, and no l_j exceeds the exact eigenvalue.  Because g_j is in the
span on which mu was projected, <g_j, mu> is exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ..._core import entry_point
from ...expansion import Expansion
from ...gram import gram
from ._components import Components

# Eigenvalues of the matrix <g_i, g_j> below this fraction of the largest one count as 0, which
# means that the functions g_j are linearly dependent.
_MIN_RELATIVE_EIGENVALUE = 1e-10


@entry_point
def reduced_components(
    components: Components, shrink: Callable[[Expansion], Expansion]
) -> tuple[Components, np.ndarray | None]:
    """Return the components expanded in fewer points, and the errors of the training points.

    Parameters
    ----------
    components : Components
    shrink : callable
        Function that compresses an expansion to fewer points.

    Returns
    -------
    tuple of Components and ndarray of shape (n,) or None
        The compressed components, and the reconstruction errors of the training points; None if
        the training points are not stored.
    """
    k, f = len(components.offset), components.expansion
    nonzero = np.flatnonzero(components.values > 0)
    column_scales = np.append(np.sqrt(components.values / components.rows), 1.0)
    compressed = shrink(f * column_scales)
    kernel, Z, B = compressed.kernel, compressed.points, compressed.coefficients
    axes, mean = B[:, nonzero] / column_scales[nonzero], B[:, k]
    K_zz = gram(kernel, Z, storage="tiled")
    G, at_mean = np.hsplit(axes.T @ (K_zz @ np.column_stack([axes, mean])), [len(nonzero)])
    errors, T = None, np.zeros((len(nonzero), k))
    if components.basis is None:
        values = gram(kernel, f.points, Z) @ np.column_stack([axes, mean])
        centred = values[:, :-1] - at_mean.T
        weights = components.rows * f.coefficients[:, k]
        ritz_values, T = _ritz(G, (weights[:, None] * centred).T @ centred, k)
    else:
        # With landmarks S, the covariance is that of the features L^-1 k_S(x), with L L^T = K_SS.
        moments = components.basis.moments
        F = components.basis.map.features(Z).T @ axes
        ritz_values, T = _ritz(
            G, components.rows / moments.weight * (F.T @ moments.comoment @ F), k
        )
    squared_mean = float(mean @ (K_zz @ mean))
    if components.basis is None:
        distances = kernel.diag(f.points) - 2.0 * values[:, -1] + squared_mean
        errors = Components.reconstruction_errors(distances, centred @ T)
    c = components.certificate
    deviations = np.maximum(np.abs(c.upper - ritz_values), np.abs(ritz_values - c.lower))
    reduced = replace(
        components,
        values=ritz_values,
        vectors=None,
        certificate=replace(
            c,
            lower=np.minimum(ritz_values, c.lower),
            residuals=deviations,
            sines=np.ones(k),
            clusters=(),
        ),
        expansion=Expansion(f.kernel, Z, np.column_stack([axes @ T, mean]), compressed.reduction),
        offset=T.T @ at_mean[:, 0],
        squared_mean=squared_mean,
        scores=None,
        basis=None,
        reduction=compressed.reduction,
    )
    return reduced, errors


def _ritz(G: np.ndarray, C: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return k values l in descending order, and T with T^T G T = I and T^T C T = diag(l).

    If the functions are linearly dependent, the last values and columns of T are 0.
    """
    s, V = np.linalg.eigh(G)
    independent = s > _MIN_RELATIVE_EIGENVALUE * s.max(initial=0.0)
    V = V[:, independent] / np.sqrt(s[independent])
    ritz, U = np.linalg.eigh(V.T @ C @ V)
    values, T = np.zeros(k), np.zeros((len(G), k))
    values[: len(ritz)] = np.maximum(ritz[::-1], 0.0)
    T[:, : len(ritz)] = (V @ U)[:, ::-1]
    # choose the sign of each component so that its overlap with the original one is positive
    n_signs = min(len(G), k)
    overlaps = np.einsum("ij,ji->i", G[:n_signs], T[:, :n_signs])
    T[:, :n_signs] *= np.where(overlaps < 0, -1.0, 1.0)
    return values, T
