"""What is shown of a kernel PCA: some of the points, in a picture and in a report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..tables import Table

__all__ = ["SHOWN", "Picture"]

SHOWN = 20_000  # points in the picture, evenly spaced in the file


class Picture:
    """The scores, labels and some columns of the points that are shown.

    `rows` is the number of rows of the file, `points` of those that became points.
    """

    def __init__(self, model: Any, recipe: Any, rows: int, color: str | None) -> None:
        self.model, self.recipe, self.rows, self.color = model, recipe, rows, color
        self.shown = np.unique(np.linspace(0, rows - 1, min(rows, SHOWN)).astype(np.int64))
        self.points = 0
        self._scores: list[np.ndarray] = []
        self._parts: list[Table] = []

    def take(self, table: Table, scores: np.ndarray) -> None:
        """Keep what is shown of some rows."""
        self.points += len(scores)
        places = self.recipe.kept(table)
        chosen = np.isin(places + table.start, self.shown, assume_unique=True)
        self._scores.append(scores[chosen])
        self._parts.append(table.take(places[chosen]))
        self._parts[-1] = Table(
            {"row": places[chosen] + table.start + 1, **self._parts[-1].columns}, table.source
        )

    @property
    def scores(self) -> np.ndarray:
        """The scores of the points shown."""
        return np.concatenate(self._scores)

    @property
    def table(self) -> Table:
        """The rows shown, with their numbers in the file as the column `row`."""
        return Table.joined(self._parts)

    @property
    def labels(self) -> Any:
        """What to colour by, or None."""
        from ..tables import label_values

        return None if self.color is None else label_values(self.table.column(self.color))

    def draw(self, path: Path) -> None:
        """Draw the embedding and the spectrum."""
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        from ..plotting import embedding, spectrum

        figure = Figure(figsize=(12.8, 6.4), layout="constrained")
        FigureCanvasAgg(figure)
        left, right = figure.subplots(1, 2, width_ratios=[1.7, 1])
        scores = self.scores
        if scores.shape[1] > 1:
            embedding(scores, self.labels, ax=left)
            for axes in figure.axes[2:]:  # a colour bar
                axes.set_ylabel(str(self.color))
            shares = 100.0 * self.model.explained_variance_ratio_
            left.set_xlabel(f"component 1 ({shares[0]:.1f} % of the variance)")
            left.set_ylabel(f"component 2 ({shares[1]:.1f} %)")
        else:
            left.plot(scores[:, 0], ".")
            left.set(xlabel="row shown", ylabel="component 1")
        part = "" if len(scores) == self.points else f", {len(scores)} of them shown"
        left.set_title(f"Kernel PCA of {self.points} points{part}", loc="left")
        spectrum(self.model, ax=right)
        figure.savefig(path, dpi=150)
