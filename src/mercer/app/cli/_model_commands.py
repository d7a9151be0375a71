"""Commands that use a saved model: mercer predict, transform, denoise, compress and info."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from inspect import signature
from textwrap import indent
from typing import TYPE_CHECKING, Any

import click

import mercer

from ... import tables
from ._console import Command, Session, TableOutputPath, session_options
from ._main import app
from ._options import (
    Data,
    code_option,
    flag,
    grouped,
    input_options,
    open_table_code,
    option,
    output_option,
    positive,
)

if TYPE_CHECKING:
    from ..._core import Points

model_argument = click.argument("model", type=click.Path(exists=True, dir_okay=False))


def load_with_recipe(path: str) -> tables.Trained:
    """Load a model with its preprocessing recipe; raise a `TableError` if it has no recipe."""
    trained = tables.load_trained(path)
    if trained.recipe is None:
        raise tables.TableError(
            f"{path} contains a model without the preprocessing of its columns, usually because it "
            f"was written by mercer.save; save it with mercer.tables.save_trained instead"
        )
    return trained


@dataclass(frozen=True)
class RowResults:
    """A saved model, the file whose rows it is applied to, and the output of the results."""

    model: str
    data: Data
    output: str | None
    show_code: bool

    def write(
        self,
        session: Session,
        values: Callable[[tables.Trained, Any], dict[str, Any]],
        code: str,
    ) -> None:
        """Apply the model to the rows, and write the results block by block.

        `values(trained, points)` returns the result columns of a block.  `code` is the equivalent
        Python code, which is printed if `show_code` is True.
        """
        from ..._core import length

        source, output = self.data.open(session), self.output
        if self.show_code:
            click.echo(
                f'''"""Apply a saved model to the rows of a file."""

import sys

from mercer.tables import load_trained, open_table

trained = load_trained({self.model!r})
model, recipe = trained.model, trained.row_recipe
blocks = {open_table_code(source, self.data)}.blocks(recipe.text_columns)
for number, block in enumerate(blocks):
    X = recipe.transform(block)
{indent(code, "    ")}
    answer = recipe.result_table(block, values, all_rows=True)
    answer.write(sys.stdout, header=number == 0)'''
            )
            return
        trained = load_with_recipe(self.model)
        recipe, rows, n = trained.row_recipe, 0, source.shape.rows
        results: dict[str, Any] = {}
        # Blocks that are not written yet.  A block in which every row has missing values is written
        # together with the next complete row, which determines the names of the result columns.
        pending: list[tables.Table] = []
        with (
            session.table(output) as write,
            session.capture_warnings(),
            session.progress("rows") as update,
        ):
            for block in source.blocks(recipe.text_columns):
                pending.append(block)
                points = recipe.transform(block)
                if not length(points):
                    continue
                rows += length(points)
                results = values(trained, points)
                write(recipe.result_table(tables.Table.joined(pending), results, all_rows=True))
                pending.clear()
                update(source.fraction_read)
            if rows and pending:
                empty = {name: column[:0] for name, column in results.items()}
                write(recipe.result_table(tables.Table.joined(pending), empty, all_rows=True))
            if not rows:
                raise tables.TableError(
                    f"{source.name}: all {n} rows have missing values, so there are no "
                    f"results; fill in the missing values, or fit the model with --impute"
                )
        if rows < n:
            session.warn(
                f"{n - rows} of {n} rows have missing values, so their results are empty; to "
                f"replace missing values instead, fit the model again with --impute"
            )
        if output not in (None, "-"):
            session.note(f"wrote {output}")
            session.result("", file=output, rows=n, empty=n - rows)


_output_group = grouped(
    "results",
    RowResults,
    output_option(
        "Output file: .csv, .tsv, .jsonl, .json (also with .gz), .parquet, .arrow, .feather, "
        ".xlsx, .npy or .npz; by default standard output.",
        type=TableOutputPath(),
    ),
    code_option,
)


def row_options(command: Command) -> Command:
    """Add MODEL, DATA and the options for the output; the command receives `RowResults`."""
    return model_argument(input_options(_output_group(command)))


def _model_with(trained: tables.Trained, method: str, instead: str) -> Any:
    """Return the model, or raise a `TableError` if it does not have the method."""
    if not hasattr(trained.model, method):
        raise tables.TableError(
            f"{type(trained.model).__name__} has no method {method}; try {instead}, or see what "
            f"the file contains with `mercer info`"
        )
    return trained.model


@app.command()
@session_options
@row_options
@flag("--proba", "Also write the probability of each class.")
@flag("--std", "Also write the standard deviation of each prediction.")
def predict(session: Session, results: RowResults, proba: bool, std: bool) -> None:
    r"""Predict the target of each row of DATA with a saved MODEL.

    \b
    Example:
      mercer predict model.mercer new.csv > predictions.csv
    """
    code = 'values = {"prediction": model.predict(X)}'
    if std:
        code = (
            "prediction, deviation = model.predict(X, return_std=True)\n"
            'values = {"prediction": prediction, "std": deviation}'
        )
    if proba:
        code += (
            "\nvalues |= {f'p({c})': p for c, p in zip(model.classes_, model.predict_proba(X).T)}"
        )

    def values(trained: Any, X: Points) -> dict[str, Any]:
        fitted = _model_with(trained, "predict", "mercer transform")
        if std:
            if "return_std" not in signature(fitted.predict).parameters:
                raise tables.TableError(
                    f"{type(fitted).__name__} does not provide standard deviations; omit --std, or "
                    f"use a model from `mercer fit ridge` or `mercer fit gp`"
                )
            prediction, deviation = fitted.predict(X, return_std=True)
            columns = {"prediction": prediction, "std": deviation}
        else:
            columns = {"prediction": fitted.predict(X)}
        if proba:
            p = _model_with(trained, "predict_proba", "without --proba").predict_proba(X)
            columns |= {f"p({c})": p_c for c, p_c in zip(fitted.classes_, p.T, strict=True)}
        return columns

    results.write(session, values, code)


@app.command()
@session_options
@row_options
def transform(session: Session, results: RowResults) -> None:
    """Compute the components of each row of DATA.

    MODEL is a saved kernel PCA, Fisher discriminant or kernel k-means model.
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
    """Denoise each row of DATA with a saved PCA MODEL.

    Each row is projected onto the components in the feature space, and its pre-image is computed.
    Numeric columns are transformed back to the units of the file.
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
@option("--max-error", "Largest allowed error; use instead of --points.", type=float)
@output_option("Output file for the compressed model.", required=True)
def compress(
    session: Session, model: str, points: int | None, max_error: float | None, output: str
) -> None:
    """Approximate a saved MODEL by a smaller one with fewer points.

    Prints the error of the approximation.
    """
    if (points is None) == (max_error is None):
        raise click.UsageError("give either the number of points (-n) or --max-error, but not both")
    trained = tables.load_trained(model)
    with session.progress("compressing"), session.capture_warnings():
        compressed: Any
        if isinstance(trained.model, mercer.Expansion):
            compressed = trained.model.compress(points, max_error=max_error)
            reduction = compressed.reduction
        else:
            compressed = mercer.compress(trained.model, points, max_error=max_error)
            reduction = compressed.reduction_
    tables.save_trained(replace(trained, model=compressed), output)
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
    """Show the contents of a saved MODEL.

    Prints the estimator, its solver report and the preprocessing of the columns.
    """
    trained = tables.load_trained(model)
    fitted, recipe = trained.model, trained.recipe
    if hasattr(fitted, "summary"):
        text_lines = [fitted.summary()]
    elif hasattr(fitted, "get_params"):
        text_lines = [f"{type(fitted).__name__}({getattr(fitted, 'kernel_', '')})"]
        text_lines += [f"  {line}" for line in str(getattr(fitted, "report_", "")).splitlines()]
    else:
        text_lines = [str(fitted)]
    parameters = fitted.get_params(deep=False) if hasattr(fitted, "get_params") else {}
    columns = ["no preprocessing: written by mercer.save"] if recipe is None else recipe.describe()
    text_lines += ["", "Columns", *(f"  {line}" for line in columns)]
    if trained.metadata:
        text_lines += ["", "Created by"]
        text_lines += [f"  {name:<10} {text}" for name, text in trained.metadata.items()]
    session.result(
        "\n".join(text_lines),
        estimator=type(fitted).__name__,
        kernel=repr(getattr(fitted, "kernel_", getattr(fitted, "kernel", None))),
        parameters={k: repr(v) for k, v in parameters.items()},
        features=None if recipe is None or recipe.points != "vectors" else recipe.features,
        columns=columns,
        story=trained.metadata,
    )
