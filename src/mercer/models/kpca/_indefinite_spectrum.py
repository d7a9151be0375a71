"""Validation of the eigenvalues of a kernel PCA, and repair of indefinite spectra."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...solvers import EigenPairs, certify

INDEFINITE_POLICIES = ("raise", "clip", "flip", "shift")


def check_psd_eigenvalues(values: np.ndarray, uncentred_trace: float) -> np.ndarray:
    """Return the eigenvalues of a positive semidefinite matrix, with rounding errors set to 0.

    Parameters
    ----------
    values : ndarray of shape (k,)
        The computed eigenvalues of the centred kernel matrix.
    uncentred_trace : float
        The trace of the matrix before centring, which determines the size of rounding errors.

    Returns
    -------
    ndarray of shape (k,)
        The eigenvalues; those below `rounding_floor` are set to 0.

    Raises
    ------
    ValueError
        If an eigenvalue is significantly negative: below -1e-5 times the largest one (-5e-3 in
        float32).
    """
    is_float32 = values.dtype == np.float32
    max_negative = 5e-3 if is_float32 else 1e-5
    rounding = float(np.finfo(values.dtype).eps) * uncentred_trace
    largest, smallest = values.max(initial=0.0), values.min(initial=0.0)
    if smallest < -10.0 * rounding:
        if largest <= rounding:
            raise ValueError(
                f"All eigenvalues are negative (the largest is {values.max():.3g}): "
                f"the kernel is not positive semidefinite on these points; choose another kernel"
            )
        if smallest < -max_negative * largest:
            raise ValueError(
                f"There are significant negative eigenvalues ({-smallest / largest:g} of the "
                f"maximum positive). Either the kernel is not positive semidefinite on these "
                f"points (the sigmoid kernel usually is not), or the matrix is not a kernel "
                f"matrix. Request fewer components, choose another kernel, or choose how to repair "
                f"the spectrum: indefinite='clip', 'flip' or 'shift'"
            )
    values = values.copy()
    values[values < rounding_floor(values, largest, uncentred_trace)] = 0.0
    return values


def rounding_floor(values: np.ndarray, largest: float, uncentred_trace: float) -> float:
    """Return the value below which an eigenvalue cannot be distinguished from 0.

    It is the larger of 1e-12 (2e-7 in float32) times the largest eigenvalue, and eight machine
    epsilons times the trace of the matrix before centring.
    """
    relative = 2e-7 if values.dtype == np.float32 else 1e-12
    return max(relative * largest, 8.0 * float(np.finfo(values.dtype).eps) * uncentred_trace)


def repair_spectrum(
    pairs: EigenPairs, policy: str, uncentred_trace: float
) -> tuple[EigenPairs, np.ndarray]:
    """Change the spectrum of an indefinite matrix so that all eigenvalues are nonnegative.

    Returns the changed eigenpairs, and the factors c of the scores, for each eigenvalue l:

    ======= ============================ =================================
    policy  new eigenvalue               factor c of the scores
    ======= ============================ =================================
    clip    max(l, 0)                    1 / sqrt(l)
    flip    |l|                          sign(l) / sqrt(|l|)
    shift   l - min l                    sqrt(l - min l) / l
    ======= ============================ =================================

    The score of x on component j is c_j u_j^T k_c(x), where u_j is the eigenvector and k_c(x)
    contains the centred kernel values of x and the training points.  For the training points it is
    u_j sqrt(l_j), with the new eigenvalue l_j; the same linear map is applied to new points.
    """
    eigenvalues = pairs.values.astype(float)
    floor = rounding_floor(
        eigenvalues, float(np.abs(eigenvalues).max(initial=0.0)), uncentred_trace
    )
    if policy == "clip":
        repaired = np.maximum(eigenvalues, 0.0)
    elif policy == "flip":
        repaired = np.abs(eigenvalues)
    else:
        lowest = min(0.0, float(eigenvalues.min(initial=0.0)))
        # Centring makes the constant vector an eigenvector with eigenvalue 0.  This eigenvalue is
        # not shifted, because the constant vector is not a direction of variance.
        repaired = np.where(
            np.abs(eigenvalues) > floor, eigenvalues - (lowest if lowest < -floor else 0.0), 0.0
        )
    repaired[repaired < floor] = 0.0
    has_variance = (repaired > 0) & (np.abs(eigenvalues) > floor)
    score_factors = np.divide(
        np.sqrt(repaired), eigenvalues, out=np.zeros_like(repaired), where=has_variance
    )
    order = np.argsort(-repaired, kind="stable")
    values, residuals = repaired[order], pairs.residuals[order]
    certificate = certify(
        values, residuals, len(values), slack=pairs.certificate.slack, following=-np.inf
    )
    repaired_pairs = replace(
        pairs,
        values=values,
        vectors=pairs.vectors[:, order],
        residuals=residuals,
        certificate=certificate,
    )
    return repaired_pairs, score_factors[order]


def inverse_sqrt(values: np.ndarray) -> np.ndarray:
    """Return 1 / sqrt(l) for each eigenvalue l, and 0 where l is 0."""
    roots = np.sqrt(values)
    return np.divide(1.0, roots, out=np.zeros_like(roots), where=roots > 0)


def n_components_for(values: np.ndarray, total: float, wanted: int | float | None) -> int:
    """Return the number of components that satisfies the request `wanted`.

    Parameters
    ----------
    values : ndarray
        The eigenvalues, in descending order.
    total : float
        The total variance.
    wanted : int, float or None
        A number of components, a fraction of the variance in (0, 1), or None for all.
    """
    n = len(values)
    if wanted is None:
        return n
    if wanted < 1:
        if not total > 0:
            return min(n, 1)
        reached = np.cumsum(values) >= wanted * total * (1.0 - 1e-12)
        return int(np.argmax(reached)) + 1 if reached.any() else n
    return min(n, int(wanted))
