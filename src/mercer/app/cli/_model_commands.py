"""Commands that use a saved model: mercer predict, transform, denoise, compress and info."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from ._console import OutputPath, Session, TableOutputPath, session_options
from ._data_options import Data, input_options
from ._main import app

model_argument = click.argument("model", type=click.Path(exists=True, dir_okay=False))
output_option = click.option(
    "-o",
    "--output",
    type=TableOutputPath(),
    metavar="FILE",
    help="Output file: .csv, .tsv, .jsonl (also with .gz), .parquet, .arrow, .feather, .npy or "
    ".npz; by default standard output.",
)
code_option = click.option(
    "--show-code", is_flag=True, help="Print the equivalent Python code and exit."
)


def load_with_recipe(path: str) -> Any:
    """Load a model with its preprocessing recipe; raise a `TableError` if it has no recipe."""
    from ..tables import TableError, load_trained

    trained = load_trained(path)
    if trained.recipe is None:
        raise TableError(
            f"{path} contains a model without the preprocessing of its columns, usually because it "
            f"was written by mercer.save; save it with mercer.app.tables.save_trained instead"
        )
    return trained


def write_row_results(
    session: Session,
    path: str,
    data: Data,
    output: str | None,
    values: Any,
    show_code: bool,
    lines: list[str],
) -> None:
    """Apply a saved model to the rows of a file, and write the results block by block.

    `values(trained, points)` returns the result columns of a block.  `lines` is the equivalent
    Python code, which is printed if `show_code` is True.
    """
    from ..._core import length
    from ..tables import TableError

    source = data.open(session)
    if show_code:
        from ._codegen import open_table_code

        click.echo(
            "\n".join(
                [
                    '"""Apply a saved model to the rows of a file."""',
                    "",
                    "import sys",
                    "",
                    "from mercer.app.tables import load_trained, open_table",
                    "",
                    f"trained = load_trained({path!r})",
                    "model, recipe = trained.model, trained.row_recipe",
                    f"blocks = {open_table_code(source, data.read_options)}"
                    ".blocks(recipe.text_columns)",
                    "for number, block in enumerate(blocks):",
                    "    X = recipe.transform(block)",
                    *(f"    {line}" for line in lines),
                    "    answer = recipe.result_table(block, values, all_rows=True)",
                    "    answer.write(sys.stdout, header=number == 0)",
                ]
            )
        )
        return
    trained = load_with_recipe(path)
    recipe, rows, n = trained.row_recipe, 0, source.shape.rows
    empty: dict[str, Any] = {}
    # Blocks in which every row has missing values.  They are written after the first complete row,
    # which determines the names of the result columns.
    pending: list[Any] = []
    with (
        session.table(output) as write,
        session.capture_warnings(),
        session.progress("rows") as update,
    ):
        for block in source.blocks(recipe.text_columns):
            points = recipe.transform(block)
            rows += length(points)
            results = values(trained, points) if length(points) else None
            if results is None and not rows:
                pending.append(block)
                continue
            if results is not None:
                empty = {name: column[:0] for name, column in results.items()}
            for previous in pending:
                write(recipe.result_table(previous, empty, all_rows=True))
            pending.clear()
            write(recipe.result_table(block, results or empty, all_rows=True))
            update(source.fraction_read)
        if not rows:
            raise TableError(
                f"{source.name}: all {n} rows have missing values, so there are no "
                f"results; fill in the missing values, or fit the model with --impute"
            )
    if rows < n:
        session.warn(
            f"{n - rows} of {n} rows have missing values, so their results are empty; to replace "
            f"missing values instead, fit the model again with --impute"
        )
    if output not in (None, "-"):
        session.note(f"wrote {output}")
        session.result("", file=output, rows=n, empty=n - rows)


def _model_with(trained: Any, method: str, instead: str) -> Any:
    """Return the model, or raise a `TableError` if it does not have the method."""
    from ..tables import TableError

    if not hasattr(trained.model, method):
        raise TableError(
            f"{type(trained.model).__name__} has no method {method}; try {instead}, or see what "
            f"the file contains with `mercer info`"
        )
    return trained.model


@app.command()
@session_options
@model_argument
@input_options
@output_option
@click.option("--proba", is_flag=True, help="Also write the probability of each class.")
@click.option("--std", is_flag=True, help="Also write the standard deviation of each prediction.")
@code_option
def predict(
    session: Session,
    model: str,
    data: Data,
    output: str | None,
    proba: bool,
    std: bool,
    show_code: bool,
) -> None:
    r"""Predict the target of each row of DATA with a saved MODEL.

    \b
    Example:
      mercer predict model.mercer new.csv > predictions.csv
    """
    lines = ['values = {"prediction": model.predict(X)}']
    if std:
        lines = [
            "prediction, deviation = model.predict(X, return_std=True)",
            'values = {"prediction": prediction, "std": deviation}',
        ]
    if proba:
        lines += [
            "values |= {f'p({c})': p for c, p in zip(model.classes_, model.predict_proba(X).T)}"
        ]

    from inspect import signature

    from ..tables import TableError

    def values(trained: Any, X: Any) -> dict[str, Any]:
        fitted = _model_with(trained, "predict", "mercer transform")
        if std:
            if "return_std" not in signature(fitted.predict).parameters:
                raise TableError(
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

    write_row_results(session, model, data, output, values, show_code, lines)


@app.command()
@session_options
@model_argument
@input_options
@output_option
@code_option
def transform(
    session: Session, model: str, data: Data, output: str | None, show_code: bool
) -> None:
    """Compute the components of each row of DATA.

    MODEL is a saved kernel PCA, Fisher discriminant or kernel k-means model.
    """
    lines = [
        "scores = model.transform(X)",
        'values = {f"component{j + 1}": scores[:, j] for j in range(scores.shape[1])}',
    ]

    def values(trained: Any, X: Any) -> dict[str, Any]:
        scores = _model_with(trained, "transform", "mercer predict").transform(X)
        return {f"component{j + 1}": scores[:, j] for j in range(scores.shape[1])}

    write_row_results(session, model, data, output, values, show_code, lines)


@app.command()
@session_options
@model_argument
@input_options
@output_option
@code_option
def denoise(session: Session, model: str, data: Data, output: str | None, show_code: bool) -> None:
    """Denoise each row of DATA with a saved PCA MODEL.

    Each row is projected onto the components in the feature space, and its pre-image is computed.
    Numeric columns are transformed back to the units of the file.
    """
    from ..tables import TableError

    lines = ["values = recipe.inverse_transform(model.denoise(X))"]

    def values(trained: Any, X: Any) -> dict[str, Any]:
        fitted = _model_with(trained, "denoise", "a model from `mercer pca`")
        if trained.recipe.points == "graphs":
            raise TableError("graphs cannot be written to a table; use model.denoise in Python")
        return dict(trained.recipe.inverse_transform(fitted.denoise(X)))

    write_row_results(session, model, data, output, values, show_code, lines)


@app.command()
@session_options
@model_argument
@click.option("-n", "--points", type=click.IntRange(1), help="Number of points in the result.")
@click.option("--max-error", type=float, help="Largest allowed error; use instead of --points.")
@click.option(
    "-o",
    "--output",
    required=True,
    type=OutputPath(dir_okay=False),
    metavar="FILE",
    help="Output file for the compressed model.",
)
def compress(
    session: Session, model: str, points: int | None, max_error: float | None, output: str
) -> None:
    """Approximate a saved MODEL by a smaller one with fewer points.

    Prints the error of the approximation.
    """
    import mercer

    from ..tables import load_trained, save_trained

    if (points is None) == (max_error is None):
        raise click.UsageError("give either the number of points (-n) or --max-error, but not both")
    trained = load_trained(model)
    with session.progress("compressing"), session.capture_warnings():
        compressed: Any
        if isinstance(trained.model, mercer.Expansion):
            compressed = trained.model.compress(points, max_error=max_error)
            reduction = compressed.reduction
        else:
            compressed = mercer.compress(trained.model, points, max_error=max_error)
            reduction = compressed.reduction_
    save_trained(replace(trained, model=compressed), output)
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
    from ..tables import load_trained

    trained = load_trained(model)
    fitted, recipe = trained.model, trained.recipe
    text_lines = (
        [fitted.summary()]
        if hasattr(fitted, "summary")
        else [str(fitted)]
        if not hasattr(fitted, "get_params")
        else [
            f"{type(fitted).__name__}({getattr(fitted, 'kernel_', '')})",
            *(f"  {line}" for line in str(getattr(fitted, "report_", "")).splitlines()),
        ]
    )
    parameters = fitted.get_params(deep=False) if hasattr(fitted, "get_params") else {}
    columns = ["no preprocessing: written by mercer.save"] if recipe is None else recipe.describe()
    text_lines += ["", "Columns", *(f"  {line}" for line in columns)]
    if trained.metadata:
        text_lines += [
            "",
            "Created by",
            *(f"  {name:<10} {text}" for name, text in trained.metadata.items()),
        ]
    session.result(
        "\n".join(text_lines),
        estimator=type(fitted).__name__,
        kernel=repr(getattr(fitted, "kernel_", getattr(fitted, "kernel", None))),
        parameters={k: repr(v) for k, v in parameters.items()},
        features=None if recipe is None or recipe.points != "vectors" else recipe.features,
        columns=columns,
        story=trained.metadata,
    )
