"""Result classes of `compare`, which print as a table and plot the embeddings."""

from __future__ import annotations

import html
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..._core import FormerAttribute, entry_point
from ...models.embedding import EmbeddingQuality

_FORMATS = {  # format of each number in the printed table
    "trustworthiness": ".4f",
    "continuity": ".4f",
    "auc": ".3f",
    "errors": ".0f",
    "reconstruction_error": ".4g",
    "seconds": ".2f",
}
_COLUMN_TITLES = ("model", "T", "C", "AUC", "1-NN errors", "MSE", "seconds")


@dataclass(frozen=True, eq=False)
class ModelResult:
    """The result of one model in a comparison.

    Attributes
    ----------
    name : str
        Name of the model.
    model : estimator or None
        The fitted model; None if it failed.
    Z : ndarray of shape (n, q) or None
        The embedding; None if the model failed.
    quality : EmbeddingQuality or None
        Quality measures of the embedding.
    errors : float
        Number of evaluated points whose nearest neighbour in the embedding has a different label;
        NaN if there are no labels.
    reconstruction : float
        Mean squared difference between X and its reconstruction from the embedding; NaN if the
        model has no inverse transform.
    seconds : float
        Run time of the fit.
    note : str
        The reason for the failure if the model failed, otherwise its warnings.
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
    """The result of `compare`: embeddings and their quality measures, which print as a table.

    Attributes
    ----------
    rows : tuple of ModelResult
        The results of all models, including those that failed.
    left_out : dict
        For each named model that is not in the comparison, the reason.
    n_points : int
        Number of points.
    n_evaluated : int
        Number of points on which the embeddings were evaluated.
    n_neighbors : int
        Number of neighbours for trustworthiness (T) and continuity (C).
    y : ndarray or None
        Labels or numbers that colour the points.

    See Also
    --------
    compare : Embed points with several models.
    embedding_quality : The quality measures.

    Examples
    --------
    >>> import numpy as np
    >>> import mercer
    >>> X = np.random.default_rng(0).normal(size=(40, 4)) * [3.0, 1.0, 0.1, 0.1]
    >>> comparison = mercer.compare(X, models=["PCA", "MDS"])
    >>> list(comparison.maps), comparison.maps["MDS"].shape
    (['PCA', 'MDS'], (40, 2))
    >>> print(str(comparison).splitlines()[0])
    Embeddings of 40 points in 2 dimensions; T and C with 10 neighbours
    """

    rows: tuple[ModelResult, ...]
    left_out: dict[str, str]
    n_points: int
    n_evaluated: int
    n_neighbors: int
    y: np.ndarray | None = None

    n_asked = FormerAttribute("n_evaluated", since="0.1.0", removed_in="0.2.0")

    @property
    def maps(self) -> dict[str, np.ndarray]:
        """The embeddings by model name, without models that failed."""
        return {row.name: row.Z for row in self.rows if row.Z is not None}

    @property
    def models(self) -> dict[str, Any]:
        """The fitted models by name, without models that failed."""
        return {row.name: row.model for row in self.rows if row.Z is not None}

    @property
    def qualities(self) -> dict[str, EmbeddingQuality]:
        """The quality measures of each embedding, by model name."""
        return {row.name: row.quality for row in self.rows if row.quality is not None}

    @property
    def table(self) -> dict[str, list[Any]]:
        """Dictionary of columns with one entry per model, suitable for ``pandas.DataFrame``."""
        at = self.n_neighbors - 1
        qualities = [row.quality for row in self.rows]

        def measured(measure: Callable[[EmbeddingQuality], float]) -> list[float]:
            return [np.nan if q is None else float(measure(q)) for q in qualities]

        return {
            "model": [row.name for row in self.rows],
            "trustworthiness": measured(lambda q: q.trustworthiness[at]),
            "continuity": measured(lambda q: q.continuity[at]),
            "auc": measured(lambda q: q.auc),
            "auc_standard_error": measured(lambda q: q.standard_error.auc),
            "errors": [float(row.errors) for row in self.rows],
            "reconstruction_error": [float(row.reconstruction) for row in self.rows],
            "seconds": [float(row.seconds) for row in self.rows],
            "note": [row.note for row in self.rows],
        }

    def summary(self) -> str:
        """Return the table as text, with a legend and the models that were left out.

        Returns
        -------
        str
            The text that `print` shows, one line per model.
        """
        cells = [_COLUMN_TITLES, *self._formatted_rows()]
        widths = [max(len(row[j]) for row in cells) for j in range(len(_COLUMN_TITLES))]
        lines = [self._title_line]
        for row in cells:
            rest = (cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))
            lines.append(f"  {row[0].ljust(widths[0])}  {'  '.join(rest)}".rstrip())
        lines += ["", *self._legend]
        lines += [f"  {row.name}: {row.note}" for row in self.rows if row.note]
        lines += [f"  {name} was left out: {why}" for name, why in self.left_out.items()]
        return "\n".join(lines)

    def plot(self, figure: Any = None) -> Any:
        """Draw all embeddings side by side; see `mercer.plotting.maps`.

        Parameters
        ----------
        figure : matplotlib Figure, default=None
            The figure to draw into; None creates a new one.

        Returns
        -------
        ndarray of matplotlib Axes
            The axes of each embedding.
        """
        from ...plotting import maps

        titles = {row.name: self._panel_title(row) for row in self.rows}
        return maps(self.maps, self.y, titles=titles, figure=figure)

    @property
    def _title_line(self) -> str:
        q = next((Z.shape[1] for Z in self.maps.values()), 0)
        is_subset = self.n_evaluated < self.n_points
        subset = f", evaluated on {self.n_evaluated} of them" if is_subset else ""
        return (
            f"Embeddings of {self.n_points} points in {q} dimension{'s' * (q != 1)}{subset}; "
            f"T and C with {self.n_neighbors} neighbours"
        )

    @property
    def _legend(self) -> list[str]:
        lines = [
            "  T: trustworthiness, whether neighbours in the embedding are neighbours in the data.",
            "  C: continuity, whether neighbours in the data are neighbours in the embedding.",
            "  AUC: overlap of both sets of neighbours, averaged over all numbers of neighbours.",
            "  T, C and AUC are 1 for a perfect embedding.",
        ]
        if any(np.isfinite(row.errors) for row in self.rows):
            lines.append(
                f"  1-NN errors: number of points, of {self.n_evaluated}, whose nearest neighbour "
                f"in the embedding has a different label."
            )
        if any(np.isfinite(row.reconstruction) for row in self.rows):
            lines.append(
                "  MSE: mean squared difference between the data and its reconstruction from the "
                "embedding."
            )
        return lines

    def _formatted_rows(self) -> list[tuple[str, ...]]:
        table = self.table
        columns = {
            name: [f"{value:{spec}}" if np.isfinite(value) else "-" for value in table[name]]
            for name, spec in _FORMATS.items()
        }
        errors = table["auc_standard_error"]
        if np.nansum(errors) > 0.0:  # the errors are 0 if all points were used
            columns["auc"] = [
                f"{text}±{error:.3f}" if np.isfinite(error) else text
                for text, error in zip(columns["auc"], errors, strict=True)
            ]
        return list(zip(table["model"], *columns.values(), strict=True))

    def _panel_title(self, row: ModelResult) -> str:
        if row.quality is None:
            return row.name
        at = self.n_neighbors - 1
        text = f"{row.name}\nT {row.quality.trustworthiness[at]:.3f}, AUC {row.quality.auc:.3f}"
        plural = "s" * (row.errors != 1)
        return text + (f", {row.errors:.0f} error{plural}" if np.isfinite(row.errors) else "")

    def __repr__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        rows = [("th", _COLUMN_TITLES), *(("td", cells) for cells in self._formatted_rows())]
        body = "".join(
            "<tr>" + "".join(f"<{tag}>{html.escape(c)}</{tag}>" for c in cells) + "</tr>"
            for tag, cells in rows
        )
        lines = self.summary().partition("\n\n")[2].splitlines()
        legend = "<br>".join(html.escape(line.strip()) for line in lines)
        return f"<p>{html.escape(self._title_line)}</p><table>{body}</table><p>{legend}</p>"
