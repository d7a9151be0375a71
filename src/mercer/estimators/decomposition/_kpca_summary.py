"""The text of `KernelPCA.summary`: solver, explained variances and error bounds."""

from __future__ import annotations

from textwrap import fill
from typing import Any

import numpy as np

_MAX_ROWS = 10  # maximum number of components in the table
_TABLE_HEADER = (
    "  component   eigenvalue   explained   cumulative     at most +     residual   angle below"
)
_LEGEND = [
    "  How to read this table: `explained` is the fraction of the variance in feature space that",
    "  lies along a component; an eigenvalue is that variance, not divided by n - 1.",
]
_COMPRESSED_NOTE = [
    "  Compressed: each variance is that of the training points along a component with fewer",
    "  points; the exact eigenvalue is at least this value, and larger by at most `at most +`.",
]


def summary(model: Any) -> str:
    """Return the text of `KernelPCA.summary` for a fitted model."""
    report, ratios, c = model.report_, model.explained_variance_ratio_, model.certificate_
    reduction = model._components.reduction
    exact = model._components.basis is None and reduction is None
    total = "the exact total tr(HKH) / (n - 1)" if exact else "an upper bound on the total"
    if exact and model.indefinite != "raise":
        total = f"the total after indefinite={model.indefinite!r}"
    if model._components.in_features:
        total = "the total of the random features"
    k = model.n_components_
    lines = [
        f"Kernel PCA of {model._components.rows} points, {k} component{'s' if k != 1 else ''}",
        f"  kernel     {model.kernel_}",
        f"  matrix     {model._held}",
        *([f"  reduced    {str(reduction)[1:-1]}"] if reduction is not None else []),
        f"  solver     {report.solver}",
        f"  status     {report.status.value}" + (", before compression" if reduction else ""),
        *_time_line(report),
        *([f"  note       {report.message}"] if report.message else []),
        f"  variance   {ratios.sum():.2%} of {model.total_variance_:.6g}, {total}",
        "",
        _TABLE_HEADER,
    ]
    for j in range(min(k, _MAX_ROWS)):
        lines.append(
            f"  {j + 1:9d} {model.eigenvalues_[j]:12.6g} {ratios[j]:11.2%} "
            f"{ratios[: j + 1].sum():12.2%} {c.upper[j] - model.eigenvalues_[j]:13.1e} "
            f"{model.residuals_[j]:12.1e} {_angle_bound(c, j):>13}"
        )
    if k > _MAX_ROWS:
        lines.append(f"  ... and {k - _MAX_ROWS} more")
    if k == 0:
        return "\n".join([*lines, "", "  No components: the points have no variance."])
    guarantees = _explain_bounds(c, exact, k) if reduction is None else _COMPRESSED_NOTE
    return "\n".join([*lines, "", *_LEGEND, "", *guarantees])


def _time_line(report: Any) -> list[str]:
    """Return the line with the time and number of passes; no line if the report has neither."""
    parts = [] if np.isnan(report.seconds) else [f"{report.seconds:.3g} s in the eigensolver"]
    parts += [f"{report.n_iter} passes"] if report.n_iter else []
    return [f"  time       {', '.join(parts)}"] if parts else []


def _angle_bound(certificate: Any, j: int) -> str:
    """Return the error bound of component j as an angle; * marks clustered eigenvalues."""
    sine = certificate.sines[j]
    mark = "*" if any(a <= j < b for a, b in certificate.clusters) else ""
    return f"{np.degrees(np.arcsin(sine)):.1e}°{mark}" if sine < 1 else f"no bound{mark}"


def _explain_bounds(c: Any, exact: bool, k: int) -> list[str]:
    """Return the explanation of the error bounds of the certificate c for k components."""
    if not exact and not np.isfinite(c.upper).all():
        return ["  Random features: the approximate kernel is unbiased; there are no error bounds."]
    if not exact:
        return [
            "  Guaranteed if the kernel is positive semidefinite: each exact eigenvalue is at",
            "  least the printed one, and larger by at most `at most +`.  This bound is the exact",
            "  trace that the landmarks do not explain (the Nystroem sandwich).  More landmarks,",
            "  that is a larger `rank`, make it smaller.",
        ]
    lines = [
        "  Guaranteed by theorems, for the kernel matrix as it was evaluated:",
        "  - Each exact eigenvalue is at least the printed one, and larger by at most `at most +`,",
        f"    up to rounding of {c.slack:.1e}.  An exact eigenvalue lies within the residual.",
        "  - The angle between each exact component and the computed one is below the printed",
        "    bound.",
        fill(
            f"- {str(c)[0].upper()}{str(c)[1:]}.", 96, initial_indent="  ", subsequent_indent="    "
        ),
    ]
    if not c.nothing_missed:
        lines.append("    The solvers 'dense' and 'krylov' can prove that nothing was missed.")
    if c.clusters:
        groups = ", ".join(f"{a + 1} to {min(b, k)}" for a, b in c.clusters)
        lines.append(
            f"  * Not separated: components {groups}; the bound is for their common subspace."
        )
    return lines
