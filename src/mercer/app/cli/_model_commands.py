"""Commands that use a saved model: mercer predict, transform, denoise, compress and info."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from textwrap import indent
from typing import TYPE_CHECKING, Any

import click

import mercer

from ... import tables
from ._console import Command, Session, TableOutputPath, session_options
from ._main import app
from ._options import (
    Data,
    _names,
    code_option,
    files_argument,
    flag,
    grouped,
    input_options,
    keyword_code,
    open_table_code,
    option,
    output_option,
    positive,
    unknown_option,
)

if TYPE_CHECKING:
    from ..._core import Points

model_argument = click.argument("model", type=click.Path(exists=True, dir_okay=False))


def load_with_recipe(path: str) -> tables.TableModel:
    """Load a model with its preprocessing recipe; raise a `TableError` if it has no recipe."""
    model = mercer.load(path)
    if not isinstance(model, tables.TableModel):
        raise tables.TableError(
            f"{path} contains a model without the preprocessing of its columns, usually because it "
            f"was fitted to an array in Python; save a mercer.tables.TableModel instead, or a "
            f"pipeline of a Recipe and the estimator"
        )
    return model


def load_parts(path: str) -> tuple[Any, tables.Recipe | None, dict[str, str]]:
    """Load a model: the estimator, its recipe (None if there is none), and the metadata."""
    model = mercer.load(path)
    if isinstance(model, tables.TableModel):
        return model.estimator, model.recipe, model.metadata
    return model, None, {}


def report_lines(model: Any) -> list[str]:
    """Return the lines of the solver's report, without values that were not computed (NaN)."""
    lines = str(getattr(model, "report_", "")).splitlines()
    return [line for line in lines if line.split()[-1:] != ["nan"]]


@dataclass(frozen=True)
class RowResults:
    """A saved model, the files whose rows it is applied to, and the output of the results."""

    model: str
    paths: tuple[str, ...]
    data: Data
    keep: tuple[str, ...]
    output: str | None
    show_code: bool

    def write(
        self,
        session: Session,
        values: Callable[[tables.TableModel, Any], dict[str, Any]],
        code: str,
        check: Callable[[Any], None] = lambda estimator: None,
    ) -> None:
        """Apply the model to the rows, and write the results block by block.

        `values(loaded, points)` returns the result columns of a block.  `code` is the equivalent
        Python code, which is printed if `show_code` is True.  `check(estimator)` raises an error if
        the model cannot compute the results.
        """
        from ..._core import length

        loaded = load_with_recipe(self.model)
        check(loaded.estimator)
        recipe = loaded.row_recipe
        recipe.unknown = self.data.unknown or recipe.unknown
        sources = [self.data.open(session, path, recipe) for path in self.paths]
        for source in sources:
            with session.reading(source):
                _ = source.shape  # reads the file
        kept = self._kept_columns(session, sources[0])
        texts = recipe.text_columns
        if self._writes_text(session):  # copy the cells as they are written in the file
            texts = (*texts, *(name for name in kept if name not in _feature_columns(recipe)))
        if self.show_code:
            click.echo(self._code(recipe, sources, kept, texts, code))
            return
        rows, n = 0, sum(source.shape.rows for source in sources)
        results: dict[str, Any] = {}
        # Blocks that are not written yet.  A block in which every row has missing values is written
        # before the next complete row, which determines the names of the result columns.
        pending: list[tuple[str, tables.Table]] = []
        with (
            session.table(self.output) as write,
            session.capture_warnings(),
            session.progress("rows") as update,
        ):

            def write_pending() -> None:
                empty = {name: column[:0] for name, column in results.items()}
                for path, block in pending:
                    write(self._result(session, recipe, path, block, empty, kept))
                pending.clear()

            for number, source in enumerate(sources):
                for block in source.blocks(texts):
                    points = recipe.transform(block)
                    if not length(points):
                        pending.append((self.paths[number], block))
                        continue
                    rows += length(points)
                    results = values(loaded, points)
                    write_pending()
                    path = self.paths[number]
                    write(self._result(session, recipe, path, block, results, kept))
                    update((number + source.fraction_read) / len(sources))
            if rows:
                write_pending()
            else:
                raise tables.TableError(
                    f"{', '.join(source.name for source in sources)}: all {n} rows have missing "
                    f"values, so there are no results; fill in the missing values, or fit the "
                    f"model with --impute"
                )
        if rows < n:
            why = "missing values"
            remedy = "to replace missing values instead, fit the model again with --impute"
            if recipe.unknown == "drop":
                why = "missing or unknown values"
                remedy = "to handle unknown values as missing instead, use --unknown ignore"
            session.warn(f"{n - rows} of {n} rows have {why}, so their results are empty; {remedy}")
        if self.output not in (None, "-"):
            session.note(f"wrote {self.output}")
            session.result("", file=self.output, rows=n, empty=n - rows)

    def _writes_text(self, session: Session) -> bool:
        """Return True if the output is CSV, in which numbers and text are written alike."""
        if self.output in (None, "-"):
            return not session.as_json
        return tables.output_format(str(self.output)) in ("csv", "tsv")

    def _kept_columns(self, session: Session, source: tables.Source) -> tuple[str, ...]:
        """Return the columns to copy to the output, given the first file."""
        kinds = source.shape.kinds
        names = _names(self.keep, set(kinds))
        copied = {name for name, kind in kinds.items() if kind not in ("graphs", "unreadable")}
        if names == ("all",) and "all" not in kinds:
            if omitted := [name for name in kinds if name not in copied]:
                session.note(f"not copied, because they cannot be written: {', '.join(omitted)}")
            return tuple(name for name in kinds if name in copied)
        for name in names:
            if name not in kinds:
                listed = ", ".join(map(repr, list(kinds)[:12])) + (
                    " ..." if len(kinds) > 12 else ""
                )
                raise click.BadParameter(
                    f"{source.name} has no column {name!r}{tables.suggest_name(name, kinds)} its "
                    f"columns are {listed}",
                    param_hint="--keep",
                )
            if name not in copied:
                raise click.BadParameter(
                    f"the column {name!r} of {source.name} cannot be copied, because it contains "
                    f"{'graphs' if kinds[name] == 'graphs' else 'unreadable values'}",
                    param_hint="--keep",
                )
        return names

    def _result(
        self,
        session: Session,
        recipe: tables.Recipe,
        path: str,
        block: tables.Table,
        values: dict[str, Any],
        kept: tuple[str, ...],
    ) -> tables.Table:
        """Return the rows to write for a block: row numbers, copied columns and results."""
        result = recipe.result_table(block, values, kept, all_rows=True)
        if len(self.paths) == 1:
            return result
        files = tables.column_from_texts([path] * len(block))
        return replace(result, columns={file_column(result.columns): files, **result.columns})

    def _code(
        self,
        recipe: tables.Recipe,
        sources: list[tables.Source],
        kept: tuple[str, ...],
        texts: tuple[str, ...],
        code: str,
    ) -> str:
        """Return the equivalent Python code."""
        also_text = texts[len(recipe.text_columns) :]
        blocks = f"(*recipe.text_columns, *{also_text!r})" if also_text else "recipe.text_columns"
        blocks += ", recipe.notations_"
        several = len(sources) > 1
        used = {"open_table"} | ({"Table", "column_from_texts"} if several else set())
        helpers = ("predict_observations", "predict_observation_interval")
        used |= {name for name in helpers if f"{name}(" in code}
        names = ", ".join(sorted(used, key=lambda name: (name != "Table", name)))
        if several:
            options = ", ".join(filter(None, ["path", keyword_code(self.data.read_options)]))
            loop = f"""blocks = (
    (path, block)
    for path in {list(self.paths)!r}
    for block in open_table({options}).blocks({blocks})
)
for number, (path, block) in enumerate(blocks):"""
        else:
            data = replace(self.data, na=self.data.na or tuple(recipe.na))
            loop = f"""blocks = {open_table_code(sources[0], data)}.blocks({blocks})
for number, block in enumerate(blocks):"""
        copied = f", {kept!r}" if kept else ""
        lines = [f"answer = recipe.result_table(block, values{copied}, all_rows=True)"]
        if several:
            column = file_column(kept)
            lines.append("files = column_from_texts([path] * len(block))")
            lines.append(f'answer = Table({{"{column}": files, **answer.columns}})')
        lines.append("answer.write(sys.stdout, header=number == 0)")
        return f'''"""Apply a saved model to the rows of a file."""

import sys

import mercer
from mercer.tables import {names}

loaded = mercer.load({self.model!r})
model, recipe = loaded.estimator, loaded.row_recipe
{loop}
    X = recipe.transform(block)
{indent(code, "    ")}
{indent(chr(10).join(lines), "    ")}'''


def file_column(names: Iterable[str]) -> str:
    """Return the name of the column of file names, which differs from the other columns."""
    return "data_file" if "file" in names else "file"


def _feature_columns(recipe: tables.Recipe) -> set[str]:
    """Return the names of the columns that the recipe reads."""
    return {encoder.name for encoder in recipe.encoders_}


_output_group = grouped(
    "results",
    RowResults,
    option(
        "--keep",
        "Comma-separated columns of DATA to copy to the output, such as id,name; 'all' copies all "
        "columns.",
        "NAMES",
        multiple=True,
    ),
    unknown_option(),
    output_option(
        "Output file: .csv, .tsv, .jsonl, .json (also with .gz), .parquet, .arrow, .feather, "
        ".xlsx, .npy or .npz; by default standard output.",
        type=TableOutputPath(),
    ),
    code_option,
)


def row_options(command: Command) -> Command:
    """Add MODEL, DATA and the options for the output; the command receives `RowResults`."""
    return model_argument(files_argument(input_options(_output_group(command))))


def _model_with(loaded: tables.TableModel, method: str, instead: str) -> Any:
    """Return the estimator, or raise a `TableError` if it does not have the method."""
    estimator = loaded.estimator
    if not hasattr(estimator, method):
        raise tables.TableError(
            f"{type(estimator).__name__} has no method {method}; try {instead}, or see what "
            f"the file contains with `mercer info`"
        )
    return estimator


@app.command()
@session_options
@row_options
@flag("--proba", "Also write the probability of each class.")
@flag("--std", "Also write the standard deviation of a new observation, which includes noise.")
@option(
    "--interval",
    "Also write the bounds of an interval that contains a new observation with this probability, "
    "such as 0.9.",
    "P",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
)
def predict(
    session: Session, results: RowResults, proba: bool, std: bool, interval: float | None
) -> None:
    r"""Predict the target of each row with a saved model.

    Writes one line per row of DATA with the number of the row and the prediction. The rows need not
    contain the target. If there are several files, the first column is the name of the file.

    --std and --interval describe a new observation, for all models that support them (ridge and
    gp): they include the uncertainty of the fitted function and the noise of one observation. The
    intervals are computed from leave-one-out errors (jackknife+). They do not assume a distribution
    of the noise, but the new rows must come from the same distribution as the training rows. The
    standard deviations assume Gaussian noise; for ridge, the noise variance is proportional to
    alpha, so choose alpha with `mercer tune` first.

    \b
    Examples:
      mercer predict model.mercer new-houses.csv > predictions.csv
      mercer predict model.mercer new-houses.csv --interval 0.9 --keep all
      mercer predict model.mercer houses.csv new-houses.csv --keep id -o predictions.parquet
    """
    code = 'values = {"prediction": model.predict(X)}'
    if std:
        code += '\nvalues["std"] = predict_observations(model, X)[1]'
    if interval is not None:
        code += (
            f"\nlower, upper = predict_observation_interval(model, X, {interval!r}).T"
            '\nvalues |= {"lower": lower, "upper": upper}'
        )
    if proba:
        code += (
            "\nvalues |= {f'p({c})': p for c, p in zip(model.classes_, model.predict_proba(X).T)}"
        )

    def check(estimator: Any) -> None:
        name = type(estimator).__name__
        missing = ["--std"] * (std and not tables.has_observation_std(estimator))
        if interval is not None and not tables.has_observation_interval(estimator):
            missing.append("--interval")
        if flags := " and ".join(missing):
            instead = "use a model from `mercer fit ridge` or `mercer fit gp`"
            if hasattr(estimator, "classes_"):
                instead = "it predicts labels; for probabilities, use --proba with a model from "
                instead += "`mercer fit logistic` or `mercer fit fisher`"
            raise tables.TableError(
                f"{name} does not provide standard deviations; omit {flags}: {instead}"
            )
        if proba and not hasattr(estimator, "predict_proba"):
            raise tables.TableError(
                f"{name} does not compute probabilities; omit --proba, or use a model from `mercer "
                f"fit logistic` or `mercer fit fisher`"
            )

    def values(loaded: Any, X: Points) -> dict[str, Any]:
        fitted = _model_with(loaded, "predict", "mercer transform")
        columns = {"prediction": fitted.predict(X)}
        if std:
            columns["std"] = tables.predict_observations(fitted, X)[1]
        if interval is not None:
            bounds = tables.predict_observation_interval(fitted, X, interval)
            columns["lower"], columns["upper"] = bounds.T
        if proba:
            p = fitted.predict_proba(X)
            columns |= {f"p({c})": p_c for c, p_c in zip(fitted.classes_, p.T, strict=True)}
        return columns

    results.write(session, values, code, check)


@app.command()
@session_options
@row_options
def transform(session: Session, results: RowResults) -> None:
    r"""Compute the components of each row with a saved model.

    MODEL is a saved kernel PCA, Fisher discriminant or kernel k-means model.

    \b
    Examples:
      mercer transform out/model.mercer data.csv > components.csv
      mercer transform out/model.mercer data.csv --keep label -o components.parquet
    """
    code = (
        "scores = model.transform(X)\n"
        'values = {f"component{j + 1}": scores[:, j] for j in range(scores.shape[1])}'
    )

    def values(trained: Any, X: Points) -> dict[str, Any]:
        scores = _model_with(trained, "transform", "mercer predict").transform(X)
        return {f"component{j + 1}": scores[:, j] for j in range(scores.shape[1])}

    results.write(session, values, code)


@app.command()
@session_options
@row_options
def denoise(session: Session, results: RowResults) -> None:
    r"""Denoise each row with a saved kernel PCA.

    Each row is projected onto the components in the feature space, and its pre-image is computed.
    Numeric columns are transformed back to the units of the file.

    \b
    Examples:
      mercer denoise out/model.mercer data.csv > denoised.csv
      mercer denoise out/model.mercer data.csv --keep label -o denoised.parquet
    """

    def values(trained: Any, X: Points) -> dict[str, Any]:
        fitted = _model_with(trained, "denoise", "a model from `mercer pca`")
        if trained.recipe.points == "graphs":
            raise tables.TableError(
                "graphs cannot be written to a table; use model.denoise in Python"
            )
        return trained.recipe.inverse_transform(fitted.denoise(X))

    results.write(session, values, "values = recipe.inverse_transform(model.denoise(X))")


@app.command()
@session_options
@model_argument
@option("-n --points", "Number of points in the result.", type=positive)
@option(
    "--max-error",
    "Largest allowed norm of the difference of both functions; use instead of --points.",
    type=float,
)
@output_option("Output file for the compressed model.", required=True)
def compress(
    session: Session, model: str, points: int | None, max_error: float | None, output: str
) -> None:
    r"""Approximate a saved model by one with fewer points.

    Prints the error of the approximation.

    \b
    Examples:
      mercer compress model.mercer -n 20 -o small.mercer
      mercer compress model.mercer --max-error 2000 -o small.mercer
    """
    if (points is None) == (max_error is None):
        raise click.UsageError("give either the number of points (-n) or --max-error, but not both")
    fitted, recipe, metadata = load_parts(model)
    with session.progress("compressing"), session.capture_warnings():
        compressed: Any
        if isinstance(fitted, mercer.Expansion):
            compressed = fitted.compress(points, max_error=max_error)
            reduction = compressed.reduction
        else:
            compressed = mercer.compress(fitted, points, max_error=max_error)
            reduction = compressed.reduction_
    if recipe is not None:
        compressed = tables.TableModel(compressed, recipe, metadata)
    mercer.save(compressed, output)
    session.note(f"wrote {output}")
    session.result(
        str(reduction)[1:-1],
        points=reduction.n_points,
        before=reduction.n_points_before,
        error=reduction.error,
        relative_error=reduction.relative_error,
    )


@app.command()
@session_options
@model_argument
def info(session: Session, model: str) -> None:
    r"""Show the contents of a saved model.

    Prints the estimator, its solver report and the preprocessing of the columns.

    \b
    Examples:
      mercer info model.mercer
      mercer info model.mercer --json
    """
    fitted, recipe, metadata = load_parts(model)
    if hasattr(fitted, "summary"):
        text_lines = [fitted.summary()]
    elif hasattr(fitted, "get_params"):
        text_lines = [f"{type(fitted).__name__}({getattr(fitted, 'kernel_', '')})"]
        text_lines += [f"  {line}" for line in report_lines(fitted)]
    else:
        text_lines = [str(fitted)]
    parameters = fitted.get_params(deep=False) if hasattr(fitted, "get_params") else {}
    columns = ["no preprocessing: written by mercer.save"] if recipe is None else recipe.describe()
    text_lines += ["", "Columns", *(f"  {line}" for line in columns)]
    if metadata:
        text_lines += ["", "Created by"]
        text_lines += [f"  {name:<10} {text}" for name, text in metadata.items()]
    session.result(
        "\n".join(text_lines),
        estimator=type(fitted).__name__,
        kernel=repr(getattr(fitted, "kernel_", getattr(fitted, "kernel", None))),
        parameters={k: repr(v) for k, v in parameters.items()},
        features=None if recipe is None or recipe.points != "vectors" else recipe.features,
        columns=columns,
        story=metadata,
    )
