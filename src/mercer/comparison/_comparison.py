"""What a comparison found, as a value: a table, and maps to be drawn."""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._runtime import entry_point
from ..maps import EmbeddingQuality

__all__ = ["Compared", "Comparison"]

_HEADS = ("model", "T", "C", "AUC", "1-NN errors", "lost", "seconds")


@dataclass(frozen=True, eq=False)
class Compared:
    """One model, its map, and how much of it is true; without a map if it has failed.

    Attributes
    ----------
    name : str
    model : estimator or None
        Fitted.
    Z : ndarray of shape (n, q) or None
        The map.
    quality : EmbeddingQuality or None
    errors : float
        Points, of those that were asked, whose nearest neighbour in the map has another label; NaN
        without labels.
    reconstruction : float
        The mean squared error of a value after the way to the map and back; NaN if there is none.
    seconds : float
        Of the fit.
    note : str
        Why it has failed, or what it warned of.
    """

    name: str
    model: Any = field(default=None, repr=False)
    Z: np.ndarray | None = field(default=None, repr=False)
    quality: EmbeddingQuality | None = field(default=None, repr=False)
    errors: float = np.nan
    reconstruction: float = np.nan
    seconds: float = np.nan
    note: str = ""


@entry_point
@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """What `compare` found; printed, it is a table.

    Attributes
    ----------
    rows : tuple of Compared
        One for each model, failed ones as well.
    left_out : dict
        Models that were not taken, each with the reason.
    n_points : int
    n_asked : int
        Points that were asked for their neighbours.
    n_neighbors : int
        K of T and C.
    y : ndarray or None
        Labels, or numbers, to colour by.

    Examples
    --------
    >>> import numpy as np
    >>> import mercer
    >>> X = np.random.default_rng(0).normal(size=(40, 4)) * [3.0, 1.0, 0.1, 0.1]
    >>> found = mercer.compare(X, models=["PCA", "MDS"])
    >>> list(found.maps), found.maps["MDS"].shape
    (['PCA', 'MDS'], (40, 2))
    >>> print(str(found).splitlines()[0])
    Maps of 40 points in 2 dimensions; T and C at 10 neighbours
    """

    rows: tuple[Compared, ...]
    left_out: dict[str, str]
    n_points: int
    n_asked: int
    n_neighbors: int
    y: np.ndarray | None = None

    @property
    def maps(self) -> dict[str, np.ndarray]:
        """The maps by name, without models that failed."""
        return {row.name: row.Z for row in self.rows if row.Z is not None}

    @property
    def models(self) -> dict[str, Any]:
        """The fitted models by name."""
        return {row.name: row.model for row in self.rows if row.Z is not None}

    @property
    def qualities(self) -> dict[str, EmbeddingQuality]:
        """All measures of each map, by name."""
        return {row.name: row.quality for row in self.rows if row.quality is not None}

    @property
    def table(self) -> dict[str, list[Any]]:
        """Columns by name, one entry for each model: ``pandas.DataFrame(found.table)``."""
        at = self.n_neighbors - 1

        def measured(name: str, at: Any, errors: bool = False) -> list[float]:
            found = []
            for row in self.rows:
                part: Any = row.quality
                part = part.standard_error if errors and part is not None else part
                value: Any = np.nan if part is None else getattr(part, name)
                found.append(float(value if at is None or part is None else value[at]))
            return found

        return {
            "model": [row.name for row in self.rows],
            "trustworthiness": measured("trustworthiness", at),
            "continuity": measured("continuity", at),
            "auc": measured("auc", None),
            "auc_standard_error": measured("auc", None, errors=True),
            "errors": [float(row.errors) for row in self.rows],
            "reconstruction_error": [float(row.reconstruction) for row in self.rows],
            "seconds": [float(row.seconds) for row in self.rows],
            "note": [row.note for row in self.rows],
        }

    def summary(self) -> str:
        """Return the table as text, with what it means and what was left out."""
        cells = [_HEADS, *self._cells()]
        widths = [max(len(row[j]) for row in cells) for j in range(len(_HEADS))]
        lines = [self._head]
        for row in cells:
            rest = (cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))
            lines.append(f"  {row[0].ljust(widths[0])}  {'  '.join(rest)}".rstrip())
        lines += ["", *self._legend]
        lines += [f"  {row.name}: {row.note}" for row in self.rows if row.note]
        lines += [f"  {name} was left out: {why}" for name, why in self.left_out.items()]
        return "\n".join(lines)

    def plot(self, figure: Any = None) -> Any:
        """Draw all maps side by side and return their axes; see `mercer.plotting.maps`."""
        from ..plotting import maps

        if not self.maps:
            raise ValueError("there is no map to draw: all models have failed")
        titles = {row.name: self._title(row) for row in self.rows}
        return maps(self.maps, self.y, titles=titles, figure=figure)

    @property
    def _head(self) -> str:
        q = next((Z.shape[1] for Z in self.maps.values()), 0)
        some = "" if self.n_asked == self.n_points else f", measured at {self.n_asked} of them"
        return (
            f"Maps of {self.n_points} points in {q} dimension{'s' * (q != 1)}{some}; "
            f"T and C at {self.n_neighbors} neighbours"
        )

    @property
    def _legend(self) -> list[str]:
        words = [
            "  T: who is near in the map is near in the data; C: the other way round;",
            "  AUC: neighbours in common, at all scales; all three are 1 for a perfect map.",
        ]
        if any(np.isfinite(row.errors) for row in self.rows):
            words.append(
                f"  1-NN errors: points of {self.n_asked} whose nearest neighbour in the map has "
                f"another label."
            )
        if any(np.isfinite(row.reconstruction) for row in self.rows):
            words.append("  lost: mean squared error of a value, to the map and back.")
        return words

    def _cells(self) -> list[tuple[str, ...]]:
        t = self.table
        sampled = np.nansum(t["auc_standard_error"]) > 0.0  # not all rows that could be
        found = []
        for i, name in enumerate(t["model"]):
            auc = f"{t['auc'][i]:.3f}" + (f"±{t['auc_standard_error'][i]:.3f}" if sampled else "")
            numbers = (
                (t["trustworthiness"][i], f"{t['trustworthiness'][i]:.4f}"),
                (t["continuity"][i], f"{t['continuity'][i]:.4f}"),
                (t["auc"][i], auc),
                (t["errors"][i], f"{t['errors'][i]:.0f}"),
                (t["reconstruction_error"][i], f"{t['reconstruction_error'][i]:.4g}"),
                (t["seconds"][i], f"{t['seconds'][i]:.2f}"),
            )
            found.append((name, *(text if np.isfinite(value) else "-" for value, text in numbers)))
        return found

    def _title(self, row: Compared) -> str:
        if row.quality is None:
            return row.name
        at = self.n_neighbors - 1
        text = f"{row.name}\nT {row.quality.trustworthiness[at]:.3f}, AUC {row.quality.auc:.3f}"
        plural = "s" * (row.errors != 1)
        return text + (f", {row.errors:.0f} error{plural}" if np.isfinite(row.errors) else "")

    def __repr__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        rows = [("th", _HEADS), *(("td", cells) for cells in self._cells())]
        body = "".join(
            "<tr>" + "".join(f"<{tag}>{html.escape(c)}</{tag}>" for c in cells) + "</tr>"
            for tag, cells in rows
        )
        words = self.summary().partition("\n\n")[2].splitlines()
        below = "<br>".join(html.escape(line.strip()) for line in words)
        return f"<p>{html.escape(self._head)}</p><table>{body}</table><p>{below}</p>"
