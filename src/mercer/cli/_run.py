"""One kernel PCA of a file: all at once, or in blocks with checkpoints; and the Python for it.

The printed code makes the same calls as `whole` and `stream` do, so that it gives the same bits.
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

from .._version import __version__
from ..estimators import KernelPCA
from ..tables import Recipe, Source, Table, TableError, Trained, load_trained, save_trained
from ._code import called, opened
from ._data import left_out_rows
from ._picture import Picture
from ._session import Session, replacing

SAMPLE = 20_000  # rows, drawn at random, among which landmarks are sought
FILES = ("embedding.csv", "embedding.png", "model.mercer", "report.html")


@dataclass(frozen=True)
class PCARun:
    """What is asked for: a file, a recipe, the parameters of the estimator, a folder."""

    source: Source
    reading: dict[str, Any]
    recipe: Recipe
    parameters: dict[str, Any]
    color: str | None
    output: Path | None
    command: str
    session: Session

    # ------------------------------------------------------------------ the two ways

    def whole(self) -> None:
        """Fit all points at once."""
        table = self.source.table()
        recipe = self.recipe.fit(table)
        self.session.note("\n".join(recipe.describe()))
        model = KernelPCA(**self.parameters)
        with self.session.progress("components"), self.session.listening():
            model.fit(recipe.transform(table))
        parts = iter([(table, model.training_scores_)])
        self._finish(Trained(model, recipe, self._story), parts)

    def stream(self, *, resume: bool) -> None:
        """Fit in blocks of rows: the file is never in the memory as a whole."""
        with self.session.listening():
            model, recipe = self._taken_in(resume)
        parts = (
            (block, model.transform(recipe.transform(block)))
            for block in self._blocks()
            if len(recipe.kept(block))
        )
        self._finish(Trained(model, recipe, self._story), parts)

    def _taken_in(self, resume: bool) -> tuple[Any, Any]:
        """Return the model that has taken in all blocks, after a checkpoint if there is one."""
        recipe: Any
        done, found = 0, self._checkpoint() if resume else None
        if found is not None:
            model, recipe, done = found.model, found.recipe, int(found.story["blocks"])
            self.session.note(f"going on after {done} blocks of rows")
        else:
            if not resume and self._place("checkpoint.mercer").exists():
                self.session.note("an interrupted run is started anew; --resume goes on with one")
            self._clear()
            recipe = self.recipe.fit(self._blocks("columns"))
            self.session.note("\n".join(recipe.describe()))
            model = self._begun(recipe)
        for number, block in enumerate(self._blocks("components"), start=1):
            if number <= done:
                continue
            points = recipe.transform(block)
            if len(points):
                model.partial_fit(points)
            if self.output is not None and hasattr(model, "kernel_"):
                story = {"blocks": str(number), "of": self._fingerprint}
                save_trained(Trained(_timeless(model), recipe, story), self._work("checkpoint"))
        if not hasattr(model, "kernel_"):
            raise TableError(f"{self.source.name}: every row has a missing value")
        return model, recipe

    def _begun(self, recipe: Recipe) -> KernelPCA:
        """Return a model with the kernel and the landmarks that a sample of all rows gives it.

        The first block alone need not be a fair sample: files are often sorted.
        """
        sample = self.source.sample(SAMPLE, self.parameters["random_state"])
        start = KernelPCA(**self.parameters).partial_fit(recipe.transform(sample))
        fixed: dict[str, Any] = {"kernel": start.kernel_}
        if self.parameters["eigen_solver"] == "nystroem":
            fixed["landmarks"] = start.X_fit_
        return KernelPCA(**{**self.parameters, **KernelPCA._defaults_of_names(), **fixed})

    def _blocks(self, what: str = "embedding") -> Iterator[Table]:
        with self.session.progress(what) as at:
            for block in self.source.blocks():
                yield block
                at(self.source.share)

    # ------------------------------------------------------------------ results

    def _finish(self, trained: Trained, parts: Iterator[tuple[Table, np.ndarray]]) -> None:
        """Write the embedding and, into a folder, the model, the picture and the report."""
        model, recipe = _timeless(trained.model), trained.recipe
        if not np.any(model.eigenvalues_ > 0):
            raise TableError(
                f"{self.source.name}: all points are the same to the kernel {model.kernel_}, so "
                f"there are no components - usually too large a length scale, or columns that are "
                f"constant - try another kernel, or look at the data"
            )
        picture = Picture(model, recipe, self.source.shape.rows, self.color)
        if self.output is None:
            with replacing(None) as file:
                self._embed(file, parts, recipe, None)
            return
        self._work("")
        with replacing(self._work("embedding.csv")) as file:
            self._embed(file, parts, recipe, picture)
        from ._report import report

        save_trained(Trained(model, recipe, self._story), self._work("model.mercer"))
        picture.draw(self._work("embedding.png"))
        text = report(picture, self.source, self.command, self.code())
        self._work("report.html").write_text(text, "utf-8")
        for name in FILES:
            os.replace(self._work(name), self.output / name)
        self._clear()
        if not self.session.quiet and not self.session.as_json:
            self.session.note(f"\n{model.summary()}\n")
            self.session.note("\n".join(f"wrote {self.output / name}" for name in FILES))
        self.session.result(
            "",
            files=[str(self.output / name) for name in FILES],
            rows=self.source.shape.rows,
            points=picture.points,
            kernel=repr(model.kernel_),
            eigenvalues=model.eigenvalues_,
            bounds=model.eigenvalue_bounds_,
            explained_variance_ratio=model.explained_variance_ratio_,
            nothing_missed=model.certificate_.nothing_missed,
            status=model.report_.status.value,
            columns=recipe.describe() if recipe else [],
        )

    def _embed(self, file: Any, parts: Any, recipe: Any, picture: Picture | None) -> None:
        beside = () if self.color is None else (self.color,)
        rows = self.source.shape.rows
        left_out = rows
        for number, (table, scores) in enumerate(parts):
            left_out -= len(scores)
            names = (f"component{j + 1}" for j in range(scores.shape[1]))
            answer = recipe.answer(table, dict(zip(names, scores.T, strict=True)), beside)
            self.session.write(answer, file, number)
            if picture is not None:
                picture.take(table, scores)
        if left_out:
            self.session.note(left_out_rows(self.source.name, left_out, rows))

    # ------------------------------------------------------------------ files

    @property
    def _story(self) -> dict[str, str]:
        return {"command": self.command, "input": self.source.name, "version": __version__}

    def _place(self, name: str) -> Path:
        return (self.output or Path()) / ".unfinished" / name

    def _work(self, name: str) -> Path:
        """Return the place of a file that is not finished, in a folder of its own."""
        folder = self._place("")
        folder.mkdir(parents=True, exist_ok=True)
        return folder / (f"{name}.mercer" if name == "checkpoint" else name)

    def _clear(self) -> None:
        """Remove what interrupted runs have left."""
        if self.output is not None:
            shutil.rmtree(self._place(""), ignore_errors=True)

    @cached_property
    def _fingerprint(self) -> str:
        """What a checkpoint is of: the bytes of the file, and all that is asked for."""
        asked = {name: repr(value) for name, value in sorted(self.parameters.items())}
        words = [self.source.fingerprint(), repr(self.recipe), repr(self.reading), __version__]
        return json.dumps([*words, asked])

    def _checkpoint(self) -> Trained | None:
        place = self._place("checkpoint.mercer")
        if self.output is None:
            raise TableError("--resume needs the folder of the run to go on with: -o FOLDER")
        if not place.exists():
            return None
        found = load_trained(place)
        if found.story.get("of") != self._fingerprint:
            raise TableError(
                f"the run in {self.output} that was interrupted had another input or other "
                f"options, so it cannot go on - repeat its command, or start without --resume"
            )
        return found

    # ------------------------------------------------------------------ the code

    def code(self) -> str:
        """Return the Python that does the same."""
        streamed = self.parameters.get("eigen_solver") in ("nystroem", "features")
        beside = () if self.color is None else (self.color,)
        made = called("KernelPCA", self.parameters)
        lines = [
            f'"""Kernel PCA of {self.source.title}: what `mercer pca` does."""',
            "",
            "import sys",
            "",
            "from mercer import KernelPCA",
            "from mercer.tables import Recipe, open_table",
            "",
            f"source = {opened(self.source, self.reading)}",
        ]
        names = '{f"component{j + 1}": scores[:, j] for j in range(scores.shape[1])}'
        if not streamed:
            lines += [
                "table = source.table()",
                f"recipe = {self.recipe!r}.fit(table)",
                f"model = {made}",
                "scores = model.fit_transform(recipe.transform(table))",
                "print(model.summary(), file=sys.stderr)",
                f"recipe.answer(table, {names}, {beside!r}).write(sys.stdout)",
            ]
            return "\n".join(lines) + "\n"
        fixed = "kernel=start.kernel_"
        if self.parameters["eigen_solver"] == "nystroem":
            fixed += ", landmarks=start.X_fit_"
        lines += [
            f"recipe = {self.recipe!r}.fit(source.blocks())",
            "# a sample of all rows gives the kernel its scale, and the landmarks",
            f"sample = source.sample({SAMPLE}, {self.parameters['random_state']})",
            f"start = {made}.partial_fit(recipe.transform(sample))",
            f"model = KernelPCA(**{{**start.get_params(), {_quoted(fixed)}}})",
            "for block in source.blocks():",
            "    model.partial_fit(recipe.transform(block))",
            "print(model.summary(), file=sys.stderr)",
            "for number, block in enumerate(source.blocks()):",
            "    scores = model.transform(recipe.transform(block))",
            f"    values = {names}",
            f"    recipe.answer(block, values, {beside!r}).write(sys.stdout, header=number == 0)",
        ]
        return "\n".join(lines) + "\n"


def _quoted(fixed: str) -> str:
    """Return "a=x, b=y" as the entries of a dictionary."""
    return ", ".join(
        f'"{name}": {value}' for name, value in (p.split("=") for p in fixed.split(", "))
    )


def _timeless(model: KernelPCA) -> KernelPCA:
    """Return the model without the time it took, so that the same input gives the same file."""
    parts = model._components
    model.report_ = replace(parts.report, seconds=float("nan"))
    model._components = replace(parts, report=model.report_)
    return model
