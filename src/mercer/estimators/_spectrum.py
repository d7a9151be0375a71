"""The spectrum of a kernel PCA: is it one, and what does it say."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["checked_spectrum", "summary"]


def checked_spectrum(values: np.ndarray, size: float) -> np.ndarray:
    """Return eigenvalues of a matrix that ought to be positive semidefinite, without the noise.

    Values within rounding of 0 become 0: relative to the largest 1e-12 (2e-7 in float32), or
    relative to `size`, the trace of the matrix before centring, the machine epsilon.  A clearly
    negative one (1e-5 of the largest, 5e-3 in float32) is an error: its component has no variance.
    """
    single = values.dtype == np.float32
    significant, noise = (5e-3, 2e-7) if single else (1e-5, 1e-12)
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
                f"Ask for fewer components, or choose another kernel"
            )
    values = values.copy()
    values[values < max(noise * largest, rounding)] = 0.0
    return values


def summary(model: Any) -> str:
    """Return the text of KernelPCA.summary."""
    report, ratios = model.report_, model.explained_variance_ratio_
    lines = [
        f"Kernel PCA of {model.eigenvectors_.shape[0]} points, {model.n_components_} components",
        f"  kernel     {model.kernel_}",
        f"  matrix     {model._held}",
        f"  solver     {report.solver}",
        f"  status     {report.status.value}",
        f"  time       {report.seconds:.3g} s in the eigensolver",
        f"  variance   {ratios.sum():.2%} of {model.total_variance_:.6g}, the exact total "
        f"tr(HKH) / (n - 1)",
        "",
        "  component   eigenvalue    explained   cumulative     residual",
    ]
    shown = min(model.n_components_, 10)
    for j in range(shown):
        lines.append(
            f"  {j + 1:9d} {model.eigenvalues_[j]:12.6g} {ratios[j]:12.2%} "
            f"{ratios[: j + 1].sum():12.2%} {model.residuals_[j]:12.1e}"
        )
    if shown < model.n_components_:
        lines.append(f"  ... and {model.n_components_ - shown} more")
    lines.append("")
    lines.append("  An exact eigenvalue lies within the residual of each one printed.")
    return "\n".join(lines)
