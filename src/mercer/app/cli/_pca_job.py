"""Kernel PCA of a file, in memory or out of core with checkpoints, for `mercer pca`.

The code printed by --show-code makes the same calls as `fit_in_memory` and `fit_out_of_core`, so
its results are bit-for-bit identical.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ..._version import __version__
from ...estimators import KernelPCA
from ..tables import Recipe, Source, Table, TableError, Trained, load_trained, save_trained
from ._codegen import call_code, open_table_code
from ._console import Session, atomic_write
from ._data_options import dropped_rows_message
from ._figure import PCAFigure

SAMPLE_ROWS = 20_000  # landmarks are chosen from a random sample of this many rows
FILES = ("embedding.csv", "embedding.png", "model.mercer", "report.html")


@dataclass(frozen=True)
class PCARun:
    """One run of `mercer pca`: input file, preprocessing, estimator parameters, output folder.

    `color` is the column that colours the points, or None.  `command` is the command line, which is
    stored in the model and in the report.
    """

    source: Source
    read_options: dict[str, Any]
    recipe: Recipe
    parameters: dict[str, Any]
    color: str | None
    output: Path | None
    command: str
    session: Session

    # ------------------------------------------------------------------ fitting

    def fit_in_memory(self) -> None:
        """Read the whole file, fit the model and write the results."""
        table = self.source.table()
        recipe = self.recipe.fit(table)
        self.session.note("\n".join(recipe.describe()))
        model = KernelPCA(**self.parameters)
        with self.session.progress("components"), self.session.capture_warnings():
            model.fit(recipe.transform(table))
        parts = iter([(table, model.training_scores_)])
        self._finish(Trained(model, recipe, self._metadata), parts)

    def fit_out_of_core(self, *, resume: bool) -> None:
        """Fit the model on blocks of rows, so that the file can be larger than memory."""
        with self.session.capture_warnings():
            model, recipe = self._fit_blocks(resume)
        parts = (
            (block, model.transform(recipe.transform(block)))
            for block in self._blocks()
            if len(recipe.kept_rows(block))
        )
        self._finish(Trained(model, recipe, self._metadata), parts)

    def _fit_blocks(self, resume: bool) -> tuple[Any, Any]:
        """Return the model fitted on all blocks, and the fitted recipe.

        If `resume` is True, continue from the last checkpoint, if there is one.
        """
        recipe: Any
        done, checkpoint = 0, self._checkpoint() if resume else None
        if checkpoint is not None:
            model, recipe = checkpoint.model, checkpoint.recipe
            done = int(checkpoint.metadata["blocks"])
            self.session.note(f"resuming the interrupted run after {done} blocks of rows")
        else:
            if not resume and self._work_path("checkpoint.mercer").exists():
                self.session.note(
                    "discarding the checkpoint of an interrupted run; use --resume to continue it"
                )
            self._remove_work_folder()
            recipe = self.recipe.fit(self._blocks("columns"))
            self.session.note("\n".join(recipe.describe()))
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
                save_trained(
                    Trained(_without_run_time(model), recipe, metadata),
                    self._new_work_path("checkpoint"),
                )
        if not hasattr(model, "kernel_"):
            raise TableError(
                f"{self.source.name}: every row has a missing value, so no rows are "
                f"left to fit; replace missing values with --impute, such as --impute mean"
            )
        return model, recipe

    def _initial_model(self, recipe: Recipe) -> KernelPCA:
        """Return an unfitted model with kernel and landmarks chosen from a random sample of rows.

        The first block alone may not be representative, because files are often sorted.
        """
        sample = self.source.sample(SAMPLE_ROWS, self.parameters["random_state"])
        start = KernelPCA(**self.parameters).partial_fit(recipe.transform(sample))
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

    def _finish(self, trained: Trained, parts: Iterator[tuple[Table, np.ndarray]]) -> None:
        """Write the embedding and, with an output folder, the model, the figure and the report.

        `parts` yields pairs of a table and the scores of its rows.
        """
        model, recipe = _without_run_time(trained.model), trained.recipe
        if not np.any(model.eigenvalues_ > 0):
            raise TableError(
                f"{self.source.name}: the kernel {model.kernel_} considers all points equal, "
                f"so there are no components. Usual causes are a length scale that is too large "
                f"and constant columns; try another kernel, or check the data"
            )
        figure = PCAFigure(model, recipe, self.source.shape.rows, self.color)
        if self.output is None:
            with atomic_write(None) as file:
                self._write_embedding(file, parts, recipe, None)
            return
        self._new_work_path("")  # this creates the work folder
        with atomic_write(self._new_work_path("embedding.csv")) as file:
            self._write_embedding(file, parts, recipe, figure)
        from ._html_report import report

        save_trained(Trained(model, recipe, self._metadata), self._new_work_path("model.mercer"))
        figure.draw(self._new_work_path("embedding.png"))
        text = report(figure, self.source, self.command, self.code())
        self._new_work_path("report.html").write_text(text, "utf-8")
        for name in FILES:
            os.replace(self._new_work_path(name), self.output / name)
        self._remove_work_folder()
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
            columns=recipe.describe() if recipe else [],
        )

    def _write_embedding(
        self, file: Any, parts: Any, recipe: Any, figure: PCAFigure | None
    ) -> None:
        """Write the scores as a table, and add the points to the figure."""
        extra_columns = () if self.color is None else (self.color,)
        rows = self.source.shape.rows
        dropped = rows
        for number, (table, scores) in enumerate(parts):
            dropped -= len(scores)
            names = (f"component{j + 1}" for j in range(scores.shape[1]))
            answer = recipe.result_table(
                table, dict(zip(names, scores.T, strict=True)), extra_columns
            )
            self.session.write(answer, file, number)
            if figure is not None:
                figure.add(table, scores)
        if dropped:
            self.session.note(dropped_rows_message(self.source.name, dropped, rows))

    # ------------------------------------------------------------------ files

    @property
    def _metadata(self) -> dict[str, str]:
        return {"command": self.command, "input": self.source.name, "version": __version__}

    def _work_path(self, name: str) -> Path:
        return (self.output or Path()) / ".unfinished" / name

    def _new_work_path(self, name: str) -> Path:
        """Return the path of a file in the work folder, which is created if necessary."""
        folder = self._work_path("")
        folder.mkdir(parents=True, exist_ok=True)
        return folder / (f"{name}.mercer" if name == "checkpoint" else name)

    def _remove_work_folder(self) -> None:
        """Remove the work folder, which contains the unfinished files of interrupted runs."""
        if self.output is not None:
            shutil.rmtree(self._work_path(""), ignore_errors=True)

    @cached_property
    def _fingerprint(self) -> str:
        """String that identifies the file contents, the options and the version of this run."""
        parameters = {name: repr(value) for name, value in sorted(self.parameters.items())}
        parts = [self.source.fingerprint(), repr(self.recipe), repr(self.read_options), __version__]
        return json.dumps([*parts, parameters])

    def _checkpoint(self) -> Trained | None:
        """Return the checkpoint of an interrupted run, or None if there is none."""
        path = self._work_path("checkpoint.mercer")
        if self.output is None:
            raise TableError("--resume needs the output folder of the interrupted run (-o FOLDER)")
        if not path.exists():
            return None
        checkpoint = load_trained(path)
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
        extra_columns = () if self.color is None else (self.color,)
        constructor = call_code("KernelPCA", self.parameters)
        lines = [
            f'"""Kernel PCA of {self.source.title}: equivalent to `mercer pca`."""',
            "",
            "import sys",
            "",
            "from mercer import KernelPCA",
            "from mercer.app.tables import Recipe, open_table",
            "",
            f"source = {open_table_code(self.source, self.read_options)}",
        ]
        names = '{f"component{j + 1}": scores[:, j] for j in range(scores.shape[1])}'
        if not streamed:
            lines += [
                "table = source.table()",
                f"recipe = {self.recipe!r}.fit(table)",
                f"model = {constructor}",
                "scores = model.fit_transform(recipe.transform(table))",
                "print(model.summary(), file=sys.stderr)",
                f"recipe.result_table(table, {names}, {extra_columns!r}).write(sys.stdout)",
            ]
            return "\n".join(lines) + "\n"
        overrides = "kernel=start.kernel_"
        if self.parameters["eigen_solver"] == "nystroem":
            overrides += ", landmarks=start.X_fit_"
        lines += [
            f"recipe = {self.recipe!r}.fit(source.blocks())",
            "# The length scale of the kernel and the landmarks come from a sample of all rows.",
            f"sample = source.sample({SAMPLE_ROWS}, {self.parameters['random_state']})",
            f"start = {constructor}.partial_fit(recipe.transform(sample))",
            f"model = KernelPCA(**{{**start.get_params(), {_as_dict_entries(overrides)}}})",
            "for block in source.blocks():",
            "    model.partial_fit(recipe.transform(block))",
            "print(model.summary(), file=sys.stderr)",
            "for number, block in enumerate(source.blocks()):",
            "    scores = model.transform(recipe.transform(block))",
            f"    values = {names}",
            f"    table = recipe.result_table(block, values, {extra_columns!r})",
            "    table.write(sys.stdout, header=number == 0)",
        ]
        return "\n".join(lines) + "\n"


def _as_dict_entries(overrides: str) -> str:
    """Convert the text "a=x, b=y" to dictionary entries, '"a": x, "b": y'."""
    return ", ".join(
        f'"{name}": {value}' for name, value in (p.split("=") for p in overrides.split(", "))
    )


def _without_run_time(model: KernelPCA) -> KernelPCA:
    """Remove the run time from the model's report, so that equal inputs give identical files."""
    parts = model._components
    model.report_ = replace(parts.report, seconds=float("nan"))
    model._components = replace(parts, report=model.report_)
    return model
