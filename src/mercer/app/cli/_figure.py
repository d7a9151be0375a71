"""The figure of `mercer pca`, and the choice of points for the figure and the report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..tables import Table

__all__ = ["MAX_SHOWN", "PCAFigure"]

MAX_SHOWN = 20_000  # the figure shows at most this many points, evenly spaced in the file


class PCAFigure:
    """Scores, labels and table rows of the points shown in the figure and the report.

    `rows` is the number of rows of the file, and `points` the number of rows that were used, which
    is smaller if rows with missing values were dropped.
    """

    def __init__(self, model: Any, recipe: Any, rows: int, color: str | None) -> None:
        self.model, self.recipe, self.rows, self.color = model, recipe, rows, color
        self.shown = np.unique(np.linspace(0, rows - 1, min(rows, MAX_SHOWN)).astype(np.int64))
        self.points = 0
        self._scores: list[np.ndarray] = []
        self._parts: list[Table] = []

    def add(self, table: Table, scores: np.ndarray) -> None:
        """Add a block of rows and their scores; only rows to be shown are stored."""
        self.points += len(scores)
        rows = self.recipe.kept_rows(table)
        is_shown = np.isin(rows + table.start, self.shown, assume_unique=True)
        self._scores.append(scores[is_shown])
        self._parts.append(table.take(rows[is_shown]))
        self._parts[-1] = Table(
            {"row": rows[is_shown] + table.start + 1, **self._parts[-1].columns}, table.source
        )

    @property
    def scores(self) -> np.ndarray:
        """The scores of the shown points."""
        return np.concatenate(self._scores)

    @property
    def table(self) -> Table:
        """The shown rows, with their numbers in the file as the column `row`."""
        return Table.joined(self._parts)

    @property
    def labels(self) -> Any:
        """The values that colour the points, or None."""
        from ..tables import label_values

        return None if self.color is None else label_values(self.table.column(self.color))

    def draw(self, path: Path) -> None:
        """Draw the embedding and the eigenvalues, and save the figure as a PNG file."""
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        from ...plotting import embedding, spectrum

        figure = Figure(figsize=(12.8, 6.4), layout="constrained")
        FigureCanvasAgg(figure)
        left, right = figure.subplots(1, 2, width_ratios=[1.7, 1])
        scores = self.scores
        if scores.shape[1] > 1:
            embedding(scores, self.labels, ax=left)
            for axes in figure.axes[2:]:  # the axes after the first two are the colour bar
                axes.set_ylabel(str(self.color))
            percent = 100.0 * self.model.explained_variance_ratio_
            left.set_xlabel(f"component 1 ({percent[0]:.1f} % of the variance)")
            left.set_ylabel(f"component 2 ({percent[1]:.1f} % of the variance)")
        else:
            left.plot(scores[:, 0], ".")
            left.set(xlabel="row", ylabel="component 1")
        subset = "" if len(scores) == self.points else f" ({len(scores)} shown)"
        left.set_title(f"Kernel PCA of {self.points} points{subset}", loc="left")
        spectrum(self.model, ax=right)
        figure.savefig(path, dpi=150)
