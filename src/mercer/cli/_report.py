"""report.html: one kernel PCA on one page, for people who have not met one before."""

from __future__ import annotations

import html
import json
import re
from importlib.resources import files
from typing import Any

import numpy as np

from ..tables import Source
from ._picture import Picture

__all__ = ["report"]

_POINTS = 3000  # with a tooltip each: more make a page slow
_WORDS = 6  # columns of the file in a tooltip
_CLASSES = 10


def report(picture: Picture, source: Source, command: str, code: str) -> str:
    """Return the page; it needs no network, and all text in it is escaped."""
    model = picture.model
    places = np.unique(
        np.linspace(0, len(picture.scores) - 1, min(len(picture.scores), _POINTS)).astype(int)
    )
    share = float(model.explained_variance_ratio_.sum())
    shown = f"{len(places)} evenly spaced ones are drawn" if len(places) < picture.points else ""
    fields = {
        "title": f"Kernel PCA of {source.title}",
        "subtitle": f"{_counted(picture)}, {model.n_components_} components, the kernel "
        f"{model.kernel_}.",
        "reading": "Each dot is a row of the file. Rows that the kernel finds similar lie close "
        "together; the two axes are the directions in which the rows differ most. "
        f"Point at a dot to see its row.{f' Of all points, {shown}.' if shown else ''}",
        "spectrum": f"An eigenvalue says how much the rows differ along a component. These "
        f"{model.n_components_} together explain {share:.1%} of all differences that the kernel "
        f"sees. The mark at the top of each bar shows between which bounds the exact eigenvalue is "
        f"proved to lie; one line means that they are closer together than the line is thick.",
        "command": command,
        "code": code,
        "summary": model.summary(),
    }
    escaped = {name: html.escape(text) for name, text in fields.items()}
    escaped["rows"] = "".join(_row(model, j) for j in range(model.n_components_))
    escaped["certain"] = "".join(
        f'<li class="{"good" if good else "open"}">{html.escape(text)}</li>'
        for good, text in certainties(model)
    )
    escaped["columns"] = "".join(
        f"<li>{html.escape(text)}</li>" for text in [*picture.recipe.describe(), *source.notes]
    )
    escaped["data"] = _json(_data(picture, places))
    page = files(__package__).joinpath("report.html").read_text("utf-8")
    return re.sub(r"\{\{(\w+)\}\}", lambda found: escaped[found[1]], page)


def _counted(picture: Picture) -> str:
    """Return the number of points, and of the rows that were left out."""
    left_out = picture.rows - picture.points
    if not left_out:
        return f"{picture.points} rows"
    return f"{picture.points} of {picture.rows} rows ({left_out} left out, values are missing)"


def certainties(model: Any) -> list[tuple[bool, str]]:
    """Return what is certain of a fitted kernel PCA, in words, and what is open."""
    c, k = model.certificate_, model.n_components_
    exact = model._components.basis is None
    known = np.isfinite(c.upper)
    found: list[tuple[bool, str]] = [
        (
            model.report_.status.name in ("CONVERGED", "DIRECT", "APPROXIMATE"),
            f"The solver: {model.report_.status.value}.",
        ),
    ]
    if not known.any():
        return [
            *found,
            (
                False,
                "Random features are right on average over their draw; how far "
                "this draw is off is not known.",
            ),
        ]
    widths = (c.upper - c.lower)[known] / np.maximum(model.eigenvalues_[known], 1e-300)
    if exact:
        tight = widths < 1e-6
        if tight.any():
            which = f"All {k}" if tight.all() and known.all() else f"{int(tight.sum())} of {k}"
            found.append(
                (
                    True,
                    f"{which} eigenvalues are proved to be the exact ones up to a part of "
                    f"{max(float(widths[tight].max()), 1e-16):.1g}, by bounds computed from the "
                    f"kernel matrix itself.",
                )
            )
        if not tight.all():
            found.append(
                (
                    False,
                    f"For the others the bounds are wider, up to {widths.max():.0%} of the "
                    f"eigenvalue. That is what is proved; the error itself may be far smaller. "
                    f"--method dense has close bounds for all.",
                )
            )
        if c.nothing_missed:
            found.append(
                (
                    True,
                    f"Nothing was missed: it is proved that there are no other "
                    f"components larger than these {k}.",
                )
            )
        else:
            found.append(
                (
                    False,
                    "It is not proved that no larger component was missed, though it "
                    "is unlikely. --method dense finds all of them.",
                )
            )
        sines = c.sines[c.sines < 1]
        if len(sines):
            found.append(
                (
                    True,
                    f"The directions are right up to an angle whose sine is at most "
                    f"{sines.max():.1g}.",
                )
            )
        for a, b in c.clusters:
            found.append(
                (
                    False,
                    f"Components {a + 1} to {min(b, k)} are not told apart by these bounds: the "
                    f"space that they span is certain, their single axes are not.",
                )
            )
    else:
        landmarks = len(model._components.expansion.points)
        left = model._components.basis.moments.residual / max(model._components.total, 1e-300)
        found.append(
            (
                left < 0.05,
                f"This is an approximation on {landmarks} landmarks. They leave "
                f"out {left:.2%} of the variance, which is computed exactly; so each "
                f"exact eigenvalue lies between the one printed and its upper bound.",
            )
        )
        if left >= 0.05:
            found.append((False, "More landmarks leave out less: --rank."))
    return found


def _row(model: Any, j: int) -> str:
    value, (lower, upper) = model.eigenvalues_[j], model.eigenvalue_bounds_[j]
    ratios = model.explained_variance_ratio_
    cells = [f"{j + 1}", f"{value:.6g}", _gap(value - lower)]
    cells += [_gap(upper - value)]
    cells += [f"{ratios[j]:.2%}", f"{ratios[: j + 1].sum():.2%}"]
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def _gap(size: float) -> str:
    return f"{max(0.0, size):.1e}" if np.isfinite(size) else "no bound"


def _data(picture: Picture, places: np.ndarray) -> dict[str, Any]:
    """Return what the drawing needs."""
    model, scores = picture.model, picture.scores[places]
    table = picture.table.take(places)
    flat = scores.shape[1] < 2
    shares = 100.0 * model.explained_variance_ratio_
    axes = [
        f"component {j + 1} ({shares[j]:.1f} % of the variance)"
        for j in range(min(2, scores.shape[1]))
    ]
    names = ["row", *([picture.color] if picture.color else [])]
    names += [n for n in table.columns if n not in names and table.kinds[n] != "graphs"]
    names = names[: _WORDS + 2]
    columns = [[_word(value) for value in table.columns[name].tolist()] for name in names]
    found: dict[str, Any] = {
        "x": [*range(1, len(scores) + 1)] if flat else _digits(scores[:, 0]),
        "y": _digits(scores[:, 0] if flat else scores[:, 1]),
        "flat": flat,
        "axes": ["row", axes[0]] if flat else axes,
        "names": names,
        "words": list(zip(*columns, strict=True)),
        "color": picture.color,
        "eigenvalues": model.eigenvalues_.tolist(),
        "lower": [max(float(v), 0.0) for v in model.eigenvalue_bounds_[:, 0]],
        "upper": [float(v) if np.isfinite(v) else None for v in model.eigenvalue_bounds_[:, 1]],
        "ratios": model.explained_variance_ratio_.tolist(),
        "classes": None,
        "label": None,
    }
    if picture.color is not None:
        found |= _labels(picture.labels[places])
    return found


def _labels(labels: np.ndarray) -> dict[str, Any]:
    """Return classes and the place of each, or numbers: as `plotting.embedding` tells them."""
    different = np.unique(labels)
    if labels.dtype.kind == "f" or (labels.dtype.kind == "i" and len(different) > _CLASSES):
        finite = np.isfinite(labels)
        return {"label": [v if f else None for v, f in zip(labels.tolist(), finite, strict=True)]}
    return {
        "classes": [str(one) for one in different.tolist()],
        "label": np.searchsorted(different, labels).tolist(),
    }


def _word(value: Any) -> str:
    if value is None or value != value:
        return "missing"
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _digits(values: np.ndarray) -> list[float]:
    """Return numbers with the digits that a picture shows."""
    size = float(np.abs(values).max(initial=0.0)) or 1.0
    places = 5 - int(np.floor(np.log10(size)))
    return np.round(values, places).tolist()


def _json(data: dict[str, Any]) -> str:
    """Return JSON that cannot end the script it stands in."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
