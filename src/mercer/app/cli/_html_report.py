"""The HTML report of `mercer pca`, written for readers who do not know kernel PCA."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import numpy as np

from ..._core import page_palette
from ...estimators import KernelPCA
from ...tables import Source
from ._pca_job import PCAFigure, evenly_spaced

_MAX_POINTS = 3000  # each point is an SVG circle, and more circles make the page slow
# A tooltip shows the row number, the colour value and up to this many columns.
_MAX_TOOLTIP_COLUMNS = 6
_MAX_INTEGER_CLASSES = 10  # integer labels with more distinct values get a continuous colour scale


def report(figure: PCAFigure, source: Source, command: str, code: str) -> str:
    """Return the report as a self-contained HTML page."""
    model = figure.model
    indices = evenly_spaced(len(figure.scores), _MAX_POINTS)
    explained = float(model.explained_variance_ratio_.sum())
    subset = f"{len(indices)} of {figure.points} rows" if len(indices) < figure.points else ""
    fields = {
        "title": f"Kernel PCA of {source.title}",
        "subtitle": f"{_row_count(figure)}, {model.n_components_} components, kernel "
        f"{model.kernel_}.",
        "reading": "Each dot is a row of the file. Similar rows, as measured by the kernel, are "
        "close together. The axes are the directions in which the rows vary most. Hover over a "
        f"dot to see its row.{f' The plot shows {subset}, evenly spaced.' if subset else ''}",
        "spectrum": f"An eigenvalue measures how much the rows vary along a component. Together, "
        f"the {model.n_components_} components explain {explained:.1%} of the variance in the "
        f"feature space of the kernel. The error bar at the top of each bar marks rigorous bounds "
        f"on the exact eigenvalue. If only one line is visible, the bounds are too close to "
        f"distinguish in the plot.",
        "command": command,
        "code": code,
        "summary": model.summary(),
    }
    escaped = {name: html.escape(text) for name, text in fields.items()}
    escaped["rows"] = "".join(_table_row(model, j) for j in range(model.n_components_))
    escaped["certain"] = "".join(
        f'<li class="{"good" if good else "open"}">{html.escape(text)}</li>'
        for good, text in _accuracy_statements(model)
    )
    escaped["treatments"] = "".join(
        "<tr>"
        + "".join(f'<td class="left">{html.escape(str(cell))}</td>' for cell in row)
        + "</tr>"
        for row in figure.recipe.treatments_
    )
    escaped["notes"] = "".join(f"<li>{html.escape(text)}</li>" for text in source.notes)
    escaped["data"] = _json(_plot_data(figure, indices) | {"palette": page_palette()})
    page = files(__package__).joinpath("report.html").read_text("utf-8")
    return re.sub(r"\{\{(\w+)\}\}", lambda match: escaped[match[1]], page)


def _row_count(figure: PCAFigure) -> str:
    """Return text with the number of rows and, if rows were dropped, how many."""
    dropped = figure.rows - figure.points
    if not dropped:
        return f"{figure.points} rows"
    return f"{figure.points} of {figure.rows} rows ({dropped} dropped because of missing values)"


def _accuracy_statements(model: KernelPCA) -> Iterator[tuple[bool, str]]:
    """Yield sentences about the accuracy of a fitted kernel PCA, each paired with a flag.

    The flag is True if the sentence states a guarantee, and False if it states a limitation.
    """
    c, k, status = model.certificate_, model.n_components_, model.report_.status
    bounded = np.isfinite(c.upper)
    is_good = status.name in ("CONVERGED", "DIRECT", "APPROXIMATE")
    yield is_good, f"Solver status: {status.value}."
    if not bounded.any():
        yield (
            False,
            "The random features approximate the kernel without bias, but the error for this "
            "particular random seed is unknown.",
        )
        return
    if model._components.basis is not None:
        landmarks = len(model._components.expansion.points)
        lost = model._components.basis.moments.residual / max(model._components.total, 1e-300)
        yield (
            lost < 0.05,
            f"This is a Nyström approximation with {landmarks} landmarks. It does not "
            f"represent {lost:.2%} of the variance. This fraction is computed exactly, so each "
            f"exact eigenvalue lies between the printed value and its upper bound.",
        )
        if lost >= 0.05:
            yield False, "More landmarks (--rank) reduce this fraction."
        return
    widths = (c.upper - c.lower)[bounded] / np.maximum(model.eigenvalues_[bounded], 1e-300)
    tight = widths < 1e-6
    if tight.any():
        which = f"All {k}" if tight.all() and bounded.all() else f"{int(tight.sum())} of {k}"
        yield (
            True,
            f"{which} eigenvalues are proved to have a relative error of at most "
            f"{max(float(widths[tight].max()), 1e-16):.1g}, by bounds computed from the kernel "
            f"matrix.",
        )
    if not tight.all():
        bounds = "other eigenvalues are wider" if tight.any() else "eigenvalues are wide"
        yield (
            False,
            f"The bounds of the {bounds}, up to {widths.max():.0%} of the "
            f"eigenvalue. The actual errors may be much smaller. --method dense gives tight "
            f"bounds for all eigenvalues.",
        )
    if c.nothing_missed:
        yield (
            True,
            f"No component was missed: it is proved that these {k} components are the largest.",
        )
    else:
        yield (
            False,
            "It is not proved that these components are the largest, although a missed component "
            "is unlikely. --method dense computes all components.",
        )
    sines = c.sines[c.sines < 1]
    if len(sines):
        yield (
            True,
            f"The angle between each computed direction and the exact one has a sine of at most "
            f"{sines.max():.1g}.",
        )
    for a, b in c.clusters:
        yield (
            False,
            f"Components {a + 1} to {min(b, k)} have eigenvalues that these bounds cannot "
            f"separate: their span is accurate, but the individual directions are not.",
        )


def _table_row(model: KernelPCA, j: int) -> str:
    """Return the HTML of row `j` of the table of eigenvalues."""
    value, (lower, upper) = model.eigenvalues_[j], model.eigenvalue_bounds_[j]
    ratios = model.explained_variance_ratio_
    cells = [f"{j + 1}", f"{value:.6g}", _format_gap(value - lower), _format_gap(upper - value)]
    cells += [f"{ratios[j]:.2%}", f"{ratios[: j + 1].sum():.2%}"]
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def _format_gap(size: float) -> str:
    """Format the distance from an eigenvalue to its bound."""
    return f"{max(0.0, size):.1e}" if np.isfinite(size) else "no bound"


def _plot_data(figure: PCAFigure, indices: np.ndarray) -> dict[str, Any]:
    """Return the data for the plots that the JavaScript code of the page draws."""
    model, scores = figure.model, figure.scores[indices]
    table = figure.table.take(indices)
    one_dimensional = scores.shape[1] < 2
    axes = figure.axis_labels
    names = ["row", *([figure.color] if figure.color else [])]
    names += [
        n
        for n in table.columns
        if n not in names and table.kinds[n] not in ("graphs", "unreadable")
    ]
    names = names[: _MAX_TOOLTIP_COLUMNS + 2]
    columns = [[_format_cell(value) for value in table.columns[name].tolist()] for name in names]
    data: dict[str, Any] = {
        "x": [*range(1, len(scores) + 1)] if one_dimensional else _rounded(scores[:, 0]),
        "y": _rounded(scores[:, 0] if one_dimensional else scores[:, 1]),
        "flat": one_dimensional,
        "axes": ["row", axes[0]] if one_dimensional else axes,
        "names": names,
        "texts": list(zip(*columns, strict=True)),
        "color": figure.color,
        "eigenvalues": model.eigenvalues_.tolist(),
        "lower": [max(float(v), 0.0) for v in model.eigenvalue_bounds_[:, 0]],
        "upper": [float(v) if np.isfinite(v) else None for v in model.eigenvalue_bounds_[:, 1]],
        "ratios": model.explained_variance_ratio_.tolist(),
        "classes": None,
        "label": None,
    }
    if figure.labels is not None:
        data |= _labels(figure.labels[indices])
    return data


def _labels(labels: np.ndarray) -> dict[str, Any]:
    """Return the class names and the class index of each point, or numeric labels.

    Whether labels are classes or numbers is decided as in `mercer.plotting.embedding`.
    """
    unique_labels = np.unique(labels)
    if labels.dtype.kind == "f" or (
        labels.dtype.kind == "i" and len(unique_labels) > _MAX_INTEGER_CLASSES
    ):
        finite = np.isfinite(labels)
        return {"label": [v if f else None for v, f in zip(labels.tolist(), finite, strict=True)]}
    return {
        "classes": [str(label) for label in unique_labels.tolist()],
        "label": np.searchsorted(unique_labels, labels).tolist(),
    }


def _format_cell(value: Any) -> str:
    """Format a cell of the table for a tooltip."""
    if value is None or value != value:
        return "missing"
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    text = text.removesuffix(" 00:00:00")  # the time of a date without a time
    return text if len(text) <= 60 else f"{text[:57]}..."


def _rounded(values: np.ndarray) -> list[float]:
    """Round so that the largest number keeps six significant digits, enough for a plot."""
    size = float(np.abs(values).max(initial=0.0)) or 1.0
    decimals = 5 - int(np.floor(np.log10(size)))
    return np.round(values, decimals).tolist()


def _json(data: dict[str, Any]) -> str:
    """Return JSON that is safe inside a script element, because it contains no <, > or &."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
