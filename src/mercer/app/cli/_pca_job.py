"""Kernel PCA of a file, in memory or out of core with checkpoints, and its figure.

The code printed by --show-code makes the same calls as `fit_in_memory` and `fit_out_of_core`, so
its results are bit-for-bit identical.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

import mercer

from ..._core import Points, length
from ..._version import __version__
from ...estimators import KernelPCA
from ...tables import (
    Recipe,
    Source,
    Table,
    TableError,
    TableModel,
    label_values,
)
from ._console import Session
from ._options import (
    EmbeddingOptions,
    command_line,
    dropped_rows_message,
    keyword_code,
    open_table_code,
    print_treatments,
)

SAMPLE_ROWS = 20_000  # landmarks are chosen from a random sample of this many rows
FILES = ("embedding.csv", "embedding.png", "model.mercer", "report.html")
CHECKPOINT = "checkpoint.mercer"


MAX_SHOWN = 20_000  # the figure shows at most this many points, evenly spaced in the file


def evenly_spaced(n: int, count: int) -> np.ndarray:
    """Return at most `count` evenly spaced indices from 0 to n - 1."""
    return np.unique(np.linspace(0, n - 1, min(n, count)).astype(np.int64))


class PCAFigure:
    """Scores, labels and table rows of the points shown in the figure and the report.

    `rows` is the number of rows of the file, and `points` the number of rows that were used, which
    is smaller if rows with missing values were dropped.
    """

    def __init__(self, model: KernelPCA, recipe: Recipe, rows: int, color: str | None) -> None:
        self.model, self.recipe, self.rows, self.color = model, recipe, rows, color
        self.shown = evenly_spaced(rows, MAX_SHOWN)
        self.points = 0
        self._scores: list[np.ndarray] = []
        self._parts: list[Table] = []

    def add(self, table: Table, scores: np.ndarray) -> None:
        """Add a block of rows and their scores; only rows to be shown are stored."""
        self.points += len(scores)
        rows = self.recipe.kept_rows(table)
        is_shown = np.isin(rows + table.start, self.shown, assume_unique=True)
        self._scores.append(scores[is_shown])
        columns = table.take(rows[is_shown]).columns
        numbers = rows[is_shown] + table.start + 1
        self._parts.append(Table({"row": numbers, **columns}, table.source))

    @property
    def scores(self) -> np.ndarray:
        """The scores of the shown points."""
        return np.concatenate(self._scores)

    @property
    def table(self) -> Table:
        """The shown rows, with their numbers in the file as the column `row`."""
        return Table.joined(self._parts)

    @property
    def labels(self) -> np.ndarray | None:
        """The values that colour the points, or None."""
        return None if self.color is None else label_values(self.table.column(self.color))

    @property
    def axis_labels(self) -> list[str]:
        """The labels of the axes of the first two components."""
        percent = 100.0 * self.model.explained_variance_ratio_[:2]
        return [f"component {j + 1} ({p:.1f} % of the variance)" for j, p in enumerate(percent)]

    def draw(self, path: Path) -> None:
        """Draw the embedding and the eigenvalues, and save the figure as a PNG file."""
        from matplotlib.figure import Figure

        from ...plotting import embedding, spectrum

        figure = Figure(figsize=(12.8, 6.4), layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=[1.7, 1])
        scores = self.scores
        if scores.shape[1] > 1:
            embedding(scores, self.labels, ax=left)
            for axes in figure.axes[2:]:  # the axes after the first two are the colour bar
                axes.set_ylabel(str(self.color))
            left.set(xlabel=self.axis_labels[0], ylabel=self.axis_labels[1])
        else:
            left.plot(scores[:, 0], ".")
            left.set(xlabel="row", ylabel="component 1")
        subset = "" if len(scores) == self.points else f" ({len(scores)} shown)"
        left.set_title(f"Kernel PCA of {self.points} points{subset}", loc="left")
        spectrum(self.model, ax=right)
        figure.savefig(path, dpi=150)


@dataclass(frozen=True)
class PCARun:
    """One run of `mercer pca`: options, input file, preprocessing and estimator parameters."""

    session: Session
    options: EmbeddingOptions
    source: Source
    recipe: Recipe
    parameters: dict[str, Any]

    @property
    def output(self) -> Path | None:
        """The output folder; None for standard output."""
        return None if self.options.output is None else Path(self.options.output)

    # ------------------------------------------------------------------ fitting

    def fit_in_memory(self) -> None:
        """Read the whole file, fit the model and write the results."""
        with self.session.reading(self.source):
            table = self.source.table()
            recipe = self.recipe.fit(table)
        print_treatments(self.session, recipe)
        model = KernelPCA(**self.parameters)
        with self.session.progress("components"), self.session.capture_warnings():
            model.fit(self._points(recipe, table))
        parts = iter([(table, model.training_scores_)])
        self._finish(TableModel(model, recipe, self._metadata), parts)

    def fit_out_of_core(self, *, resume: bool) -> None:
        """Fit the model on blocks of rows, so that the file can be larger than memory."""
        with self.session.capture_warnings():
            model, recipe = self._fit_by_partial_fit(resume)
        parts = (
            (block, model.transform(recipe.transform(block)))
            for block in self._blocks()
            if len(recipe.kept_rows(block))
        )
        self._finish(TableModel(model, recipe, self._metadata), parts)

    def _fit_by_partial_fit(self, resume: bool) -> tuple[KernelPCA, Recipe]:
        """Return the model fitted on all blocks, and the fitted recipe.

        If `resume` is True, continue from the last checkpoint, if there is one.  `KernelPCA.fit` of
        `Blocks` is not used, because it cannot be interrupted and resumed: it merges the moments of
        the blocks over a binary tree.  After each call of `partial_fit`, the model is a checkpoint.
        """
        done, checkpoint = 0, self._checkpoint() if resume else None
        if checkpoint is not None and checkpoint.recipe is not None:
            model, recipe = checkpoint.estimator, checkpoint.recipe
            done = int(checkpoint.metadata["blocks"])
            self.session.note(f"resuming the interrupted run after {done} blocks of rows")
        else:
            if not resume and (self._work_folder / CHECKPOINT).exists():
                self.session.note(
                    "discarding the checkpoint of an interrupted run; use --resume to continue it"
                )
            if self.output is not None:
                shutil.rmtree(self._work_folder, ignore_errors=True)
            recipe = self.recipe.fit(self._blocks("columns"))
            print_treatments(self.session, recipe)
            model = self._initial_model(recipe)
        for number, block in enumerate(self._blocks("components"), start=1):
            if number <= done:
                continue
            points = recipe.transform(block)
            if len(points):
                model.partial_fit(points)
            # Save a checkpoint if the model has been fitted to at least one block.
            if self.output is not None and hasattr(model, "kernel_"):
                metadata = {"blocks": str(number), "of": self._fingerprint}
                trained = TableModel(_without_run_time(model), recipe, metadata)
                self._work_folder.mkdir(parents=True, exist_ok=True)
                mercer.save(trained, self._work_folder / CHECKPOINT)
        return model, recipe

    def _points(self, recipe: Recipe, table: Table) -> Points:
        """Return the points of a table or a sample; raise a TableError if all rows are dropped."""
        points = recipe.transform(table)
        if not length(points):
            raise TableError(
                f"{self.source.name}: every row has a missing value, so no rows are "
                f"left to fit; replace missing values with --impute, such as --impute mean"
            )
        return points

    def _initial_model(self, recipe: Recipe) -> KernelPCA:
        """Return an unfitted model with kernel and landmarks chosen from a random sample of rows.

        The first block alone may not be representative, because files are often sorted.
        """
        sample = self.source.sample(SAMPLE_ROWS, self.parameters["random_state"])
        start = KernelPCA(**self.parameters).partial_fit(self._points(recipe, sample))
        overrides: dict[str, Any] = {"kernel": start.kernel_}
        if self.parameters["eigen_solver"] == "nystroem":
            overrides["landmarks"] = start.X_fit_
        return KernelPCA(**{**self.parameters, **KernelPCA._named_kernel_defaults(), **overrides})

    def _blocks(self, description: str = "embedding") -> Iterator[Table]:
        """Yield the blocks of the file, with a progress bar."""
        with self.session.progress(description) as update:
            for block in self.source.blocks():
                yield block
                update(self.source.fraction_read)

    # ------------------------------------------------------------------ results

    def _finish(self, trained: TableModel, parts: Iterator[tuple[Table, np.ndarray]]) -> None:
        """Write the embedding and, with an output folder, the model, the figure and the report.

        `parts` yields pairs of a table and the scores of its rows.
        """
        model, recipe = _without_run_time(trained.estimator), trained.row_recipe
        if not np.any(model.eigenvalues_ > 0):
            raise TableError(
                f"{self.source.name}: the kernel {model.kernel_} considers all points equal, "
                f"so there are no components. Usual causes are a length scale that is too large "
                f"and constant columns; try another kernel, or check the data"
            )
        figure = PCAFigure(model, recipe, self.source.shape.rows, self.options.color)
        work = self._work_folder
        if self.output is None:
            self._write_embedding(None, parts, figure)
            return
        work.mkdir(parents=True, exist_ok=True)
        self._write_embedding(work / "embedding.csv", parts, figure)
        from ._html_report import report

        mercer.save(TableModel(model, recipe, self._metadata), work / "model.mercer")
        with self.session.progress("figure and report"):
            figure.draw(work / "embedding.png")
            text = report(figure, self.source, command_line(), self.code())
            (work / "report.html").write_text(text, "utf-8", newline="\n")
        for name in FILES:
            (work / name).replace(self.output / name)
        shutil.rmtree(work, ignore_errors=True)
        if not self.session.quiet and not self.session.as_json:
            self.session.note(f"\n{model.summary()}\n")
            self.session.note("\n".join(f"wrote {self.output / name}" for name in FILES))
        self.session.result(
            "",
            files=[str(self.output / name) for name in FILES],
            rows=self.source.shape.rows,
            points=figure.points,
            kernel=repr(model.kernel_),
            eigenvalues=model.eigenvalues_,
            bounds=model.eigenvalue_bounds_,
            explained_variance_ratio=model.explained_variance_ratio_,
            nothing_missed=model.certificate_.nothing_missed,
            status=model.report_.status.value,
            columns=recipe.describe(),
        )

    def _write_embedding(
        self, path: Path | None, parts: Iterator[tuple[Table, np.ndarray]], figure: PCAFigure
    ) -> None:
        """Write the scores as a table, and add the points to the figure."""
        with self.session.table(path) as write:
            for table, scores in parts:
                columns = {f"component{j + 1}": column for j, column in enumerate(scores.T)}
                write(figure.recipe.result_table(table, columns, self.options.extra_columns))
                figure.add(table, scores)
        if dropped := figure.rows - figure.points:
            self.session.note(dropped_rows_message(self.source.name, dropped, figure.rows))

    # ------------------------------------------------------------------ files

    @property
    def _metadata(self) -> dict[str, str]:
        return {"command": command_line(), "input": self.source.name, "version": __version__}

    @property
    def _work_folder(self) -> Path:
        """The folder for the checkpoint and the unfinished files; used only with an output."""
        return (self.output or Path()) / ".unfinished"

    @cached_property
    def _fingerprint(self) -> str:
        """String that identifies the file contents, the options and the version of this run."""
        parameters = {name: repr(value) for name, value in sorted(self.parameters.items())}
        read_options = repr(self.options.data.read_options)
        parts = [self.source.fingerprint(), repr(self.recipe), read_options, __version__]
        return json.dumps([*parts, parameters])

    def _checkpoint(self) -> TableModel | None:
        """Return the checkpoint of an interrupted run, or None if there is none."""
        path = self._work_folder / CHECKPOINT
        if self.output is None:
            raise TableError("--resume needs the output folder of the interrupted run (-o FOLDER)")
        if not path.exists():
            return None
        checkpoint = mercer.load(path)
        if checkpoint.metadata.get("of") != self._fingerprint:
            raise TableError(
                f"cannot resume, because the interrupted run in {self.output} had a different "
                f"input or different options; repeat its command, or start without --resume"
            )
        return checkpoint

    # ------------------------------------------------------------------ code generation

    def code(self) -> str:
        """Return the Python code that is equivalent to this run."""
        streamed = self.parameters.get("eigen_solver") in ("nystroem", "features")
        extra_columns = self.options.extra_columns
        constructor = f"KernelPCA({keyword_code(self.parameters)})"
        names = '{f"component{j + 1}": scores[:, j] for j in range(scores.shape[1])}'
        code = f'''"""Kernel PCA of {self.source.title}: equivalent to `mercer pca`."""

import sys

from mercer import KernelPCA
from mercer.tables import Recipe, open_table

source = {open_table_code(self.source, self.options.data)}
'''
        if not streamed:
            return f"""{code}table = source.table()
recipe = {self.recipe!r}.fit(table)
model = {constructor}
scores = model.fit_transform(recipe.transform(table))
print(model.summary(), file=sys.stderr)
recipe.result_table(table, {names}, {extra_columns!r}).write(sys.stdout)
"""
        overrides = '"kernel": start.kernel_'
        if self.parameters["eigen_solver"] == "nystroem":
            overrides += ', "landmarks": start.X_fit_'
        return f"""{code}recipe = {self.recipe!r}.fit(source.blocks())
# The length scale of the kernel and the landmarks come from a sample of all rows.
sample = source.sample({SAMPLE_ROWS}, {self.parameters["random_state"]})
start = {constructor}.partial_fit(recipe.transform(sample))
model = KernelPCA(**{{**start.get_params(), {overrides}}})
for block in source.blocks():
    model.partial_fit(recipe.transform(block))
print(model.summary(), file=sys.stderr)
for number, block in enumerate(source.blocks()):
    scores = model.transform(recipe.transform(block))
    values = {names}
    table = recipe.result_table(block, values, {extra_columns!r})
    table.write(sys.stdout, header=number == 0)
"""


def _without_run_time(model: KernelPCA) -> KernelPCA:
    """Remove the run time from the model's report, so that equal inputs give identical files."""
    parts = model._components
    model.report_ = replace(parts.report, seconds=float("nan"))
    model._components = replace(parts, report=model.report_)
    return model
