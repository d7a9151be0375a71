"""NeuroScale: embeddings that are kernel expansions, with minimal stress.

The coordinates are Z = K_c A, where K_c is the centred kernel matrix.  The objective is the stress
S(Z) plus a ridge penalty on the norm of the functions.  The shadow-target algorithm of Tipping and
Lowe alternates between targets T = Z - (step of a majorisation of S) and a least-squares fit of A
to T.  With the eigenvalues e_k and eigenvectors U of V^(1/2) K_c V^(1/2), where V is the diagonal
matrix of the total weights of the points, and with a ridge parameter l, the fit is

    U^T V^(1/2) Z = sqrt(e / (e + l)) C,    C = sqrt(e / (e + l)) U^T V^(1/2) T.

In the variables C, one iteration is therefore half the negative gradient.  L-BFGS in the same
variables needs far fewer iterations, because it also uses the gradients of past iterations.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..._core import ProgressCallback, entry_point
from ..._core.linalg import eigh
from ...solvers import Report
from ._mds_training import LinearStress, Stress, minimise_stress, principal_axes

# Eigenvalues below this times the largest are rounding errors, or those of an indefinite kernel.
_MIN_EIGENVALUE = 1e-12


class NeuroScaleResult(NamedTuple):
    """The coefficients A, the mean of K A, the coordinates Z = K A - mean, and the report."""

    A: np.ndarray
    mean: np.ndarray
    Z: np.ndarray
    report: Report


@entry_point
def fit_neuroscale(
    S: Stress,
    K: np.ndarray,
    q: int,
    alpha: float = 1e-3,
    n_init: int = 1,
    tol: float = 1e-5,
    max_iter: int = 1000,
    rng: np.random.Generator | None = None,
    log: ProgressCallback | None = None,
) -> NeuroScaleResult:
    """Return the kernel expansions with q components whose values minimise the stress S.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        The kernel matrix, which is overwritten.
    alpha : float, default=1e-3
        The ridge parameter, relative to the mean eigenvalue of the centred kernel matrix.
    S, q, n_init, tol, max_iter, rng, log
        As in `metric_mds`.

    Returns
    -------
    NeuroScaleResult
        The coordinates are along their principal axes; the certificate of the report contains the
        stress, the penalised stress, and the norm of its gradient.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.spatial.distance import pdist
    >>> from mercer.models.embedding import Stress, fit_neuroscale
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> result = fit_neuroscale(Stress(pdist(X)), X @ X.T, 2)  # the linear kernel
    >>> np.allclose(pdist(result.Z), pdist(X), rtol=0.01)
    True
    """
    means = K.mean(axis=0)
    problem, e = kernel_stress(S, K, alpha)
    run = minimise_stress(problem, q, n_init, tol, max_iter, rng, log)
    C = run.best.x.reshape(-1, q)
    Z = problem.coordinates(C)
    rotation = principal_axes(Z)
    A = problem.U @ (C @ rotation / e) * (np.sqrt(S.total * S.mass) / S.mass.mean())[:, None]
    A -= A.mean(axis=0)
    value, gradient = problem(C)
    certificate = {"stress": S(Z)[0], "penalised_stress": value}
    certificate["gradient_norm"] = float(np.linalg.norm(gradient))
    report = replace(run.report, certificate={**run.report.certificate, **certificate})
    return NeuroScaleResult(A, means @ A, Z @ rotation, report)


def kernel_stress(S: Stress, K: np.ndarray, alpha: float) -> tuple[LinearStress, np.ndarray]:
    """Return the penalised stress in the variables C, and the eigenvalues e; K is overwritten."""
    means = K.mean(axis=0)
    K -= means
    K -= (means - means.mean())[:, None]
    root = np.sqrt(S.mass / S.mass.mean())
    K *= root[:, None]
    K *= root
    e, U = eigh(K, overwrite_a=True, check_finite=False)
    if not e[-1] > _MIN_EIGENVALUE * np.abs(means).max():
        raise ValueError(
            f"the kernel is constant on the points (its mean is {means.mean():.3g}), so that it "
            f"defines no coordinates; the usual cause is a width that is much too large"
        )
    first = int(np.searchsorted(e, _MIN_EIGENVALUE * e[-1]))
    e, U = e[first:, None], U[:, first:]
    ridge = alpha * float(e.sum()) / S.n
    U *= np.sqrt(e / (e + ridge)).T
    return LinearStress(S, U, ridge / (e + ridge)), e
