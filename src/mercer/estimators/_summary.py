"""KernelPCA.summary: what was fitted, how well, and at what cost, as text."""

from __future__ import annotations

from textwrap import fill
from typing import Any

import numpy as np

__all__ = ["summary"]

_SHOWN = 10
_HEAD = "  component   eigenvalue   explained   cumulative     at most +     residual   angle below"
_READ = [
    "  How to read it: `explained` is the share of the variance of the points in feature space",
    "  that lies along a component; an eigenvalue is that variance, not divided by n - 1.",
]
_REDUCED = [
    "  Compressed: a variance printed is that of the training points along a component on fewer",
    "  points; the exact eigenvalue lies between it and it plus `at most +`.",
]


def summary(model: Any) -> str:
    """Return the text of KernelPCA.summary."""
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
        *_time(report),
        *([f"  note       {report.message}"] if report.message else []),
        f"  variance   {ratios.sum():.2%} of {model.total_variance_:.6g}, {total}",
        "",
        _HEAD,
    ]
    for j in range(min(k, _SHOWN)):
        lines.append(
            f"  {j + 1:9d} {model.eigenvalues_[j]:12.6g} {ratios[j]:11.2%} "
            f"{ratios[: j + 1].sum():12.2%} {c.upper[j] - model.eigenvalues_[j]:13.1e} "
            f"{model.residuals_[j]:12.1e} {_angle(c, j):>13}"
        )
    if k > _SHOWN:
        lines.append(f"  ... and {k - _SHOWN} more")
    if k == 0:
        return "\n".join([*lines, "", "  No component: the points do not vary."])
    certain = _words(c, exact, k) if reduction is None else _REDUCED
    return "\n".join([*lines, "", *_READ, "", *certain])


def _time(report: Any) -> list[str]:
    """Return how long it took; a model that was saved without the time does not know."""
    parts = [] if np.isnan(report.seconds) else [f"{report.seconds:.3g} s in the eigensolver"]
    parts += [f"{report.n_iter} passes"] if report.n_iter else []
    return [f"  time       {', '.join(parts)}"] if parts else []


def _angle(certificate: Any, j: int) -> str:
    sine = certificate.sines[j]
    mark = "*" if any(a <= j < b for a, b in certificate.clusters) else ""
    return f"{np.degrees(np.arcsin(sine)):.1e}°{mark}" if sine < 1 else f"no bound{mark}"


def _words(c: Any, exact: bool, k: int) -> list[str]:
    if not exact and not np.isfinite(c.upper).all():
        return ["  Random features: right in the mean over the draw, without bounds."]
    if not exact:
        return [
            "  What is certain, if the kernel is positive semidefinite: an exact eigenvalue is not",
            "  smaller than the one printed, and larger by `at most +`, which comes from the exact",
            "  trace that the landmarks leave over (the Nystroem sandwich).  More landmarks, a",
            "  larger `rank`, make it smaller.",
        ]
    lines = [
        "  What is certain, by theorems about the matrix as it was evaluated:",
        "  - An exact eigenvalue is not smaller than the one printed, and larger by `at most +`;",
        f"    give or take {c.slack:.1e} for rounding.  One lies within the residual of it.",
        "  - An exact component points where the one found does, but for an angle below the one",
        "    printed.",
        fill(
            f"- {str(c)[0].upper()}{str(c)[1:]}.",
            96,
            initial_indent="  ",
            subsequent_indent="    ",
        ),
    ]
    if not c.nothing_missed:
        lines.append("    The solvers 'dense' and 'krylov' go to some length to be certain.")
    if c.clusters:
        groups = ", ".join(f"{a + 1} to {min(b, k)}" for a, b in c.clusters)
        lines.append(f"  * Not told apart: components {groups}; their common subspace is bounded.")
    return lines
