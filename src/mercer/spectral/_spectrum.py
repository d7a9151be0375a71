"""The spectrum of a kernel PCA: is it that of a kernel, and what to do if it is not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..solvers import EigenPairs, certify

__all__ = ["POLICIES", "checked_spectrum", "gains_of", "how_many", "mended", "noise_of"]

POLICIES = ("raise", "clip", "flip", "shift")


def checked_spectrum(values: np.ndarray, size: float) -> np.ndarray:
    """Return eigenvalues of a matrix that ought to be positive semidefinite, without the noise.

    Values within rounding of 0 become 0: relative to the largest 1e-12 (2e-7 in float32), or
    relative to `size`, the trace of the matrix before centring, eight machine epsilons.  A clearly
    negative one (1e-5 of the largest, 5e-3 in float32) is an error: its component has no variance.
    """
    single = values.dtype == np.float32
    significant = 5e-3 if single else 1e-5
    rounding = float(np.finfo(values.dtype).eps) * size
    largest, smallest = values.max(initial=0.0), values.min(initial=0.0)
    if smallest < -10.0 * rounding:
        if largest <= rounding:
            raise ValueError(
                f"All eigenvalues are negative (the largest is {values.max():.3g}). "
                f"The kernel is not positive semidefinite on these points"
            )
        if smallest < -significant * largest:
            raise ValueError(
                f"There are significant negative eigenvalues ({-smallest / largest:g} of the "
                f"maximum positive). Either the kernel is not positive semidefinite on these "
                f"points (the sigmoid kernel never is), or the matrix is not a kernel matrix. "
                f"Ask for fewer components, choose another kernel, or say what to do with them: "
                f"indefinite='clip', 'flip' or 'shift'"
            )
    values = values.copy()
    values[values < noise_of(values, largest, size)] = 0.0
    return values


def noise_of(values: np.ndarray, largest: float, size: float) -> float:
    """Return what an eigenvalue must reach to be told from 0; see `checked_spectrum`."""
    relative = 2e-7 if values.dtype == np.float32 else 1e-12
    return max(relative * largest, 8.0 * float(np.finfo(values.dtype).eps) * size)


def mended(pairs: EigenPairs, policy: str, size: float) -> tuple[EigenPairs, np.ndarray]:
    """Turn the whole spectrum of an indefinite matrix into that of a kernel; return the gains too.

    ======= ============================ =================================
    policy  eigenvalue                   gain of the out-of-sample map
    ======= ============================ =================================
    clip    max(l, 0)                    1 / sqrt(l)
    flip    |l|                          sign(l) / sqrt(|l|)
    shift   l - min l                    sqrt(l - min l) / l
    ======= ============================ =================================

    The score of x is gain_j u_j^T k_c(x): the linear map that gives training points the scores
    u_j sqrt(new l_j), applied to all points alike.
    """
    old = pairs.values.astype(float)
    noise = noise_of(old, float(np.abs(old).max(initial=0.0)), size)
    if policy == "clip":
        new = np.maximum(old, 0.0)
    elif policy == "flip":
        new = np.abs(old)
    else:
        lowest = min(0.0, float(old.min(initial=0.0)))
        # the constant vector is an eigenvector of centring, and no direction of variance
        new = np.where(np.abs(old) > noise, old - (lowest if lowest < -noise else 0.0), 0.0)
    new[new < noise] = 0.0
    real = (new > 0) & (np.abs(old) > noise)
    gains = np.divide(np.sqrt(new), old, out=np.zeros_like(new), where=real)
    order = np.argsort(-new, kind="stable")
    values, residuals = new[order], pairs.residuals[order]
    certificate = certify(
        values, residuals, len(values), slack=pairs.certificate.slack, following=-np.inf
    )
    changed = replace(
        pairs,
        values=values,
        vectors=pairs.vectors[:, order],
        residuals=residuals,
        certificate=certificate,
    )
    return changed, gains[order]


def gains_of(values: np.ndarray) -> np.ndarray:
    """Return 1 / sqrt(l), and 0 where l is 0."""
    roots = np.sqrt(values)
    return np.divide(1.0, roots, out=np.zeros_like(roots), where=roots > 0)


def how_many(values: np.ndarray, total: float, wanted: int | float | None) -> int:
    """Return how many components n_components means: a number, a share of the variance, or all."""
    n = len(values)
    if wanted is None:
        return n
    if wanted < 1:
        if not total > 0:
            return min(n, 1)
        reached = np.cumsum(values) >= wanted * total * (1.0 - 1e-12)
        return int(np.argmax(reached)) + 1 if reached.any() else n
    return min(n, int(wanted))
