"""mercer predict, transform, denoise, compress and info: what a saved model can do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from ._app import app
from ._data import Data, reading_options
from ._session import Output, Session, TableOutput, session_options

model_argument = click.argument("model", type=click.Path(exists=True, dir_okay=False))
output_option = click.option(
    "-o",
    "--output",
    type=TableOutput(),
    metavar="FILE",
    help="File to write: .csv, .tsv, .jsonl (also .gz), .parquet, .arrow, .feather, .npy or .npz; "
    "the standard output unless given.",
)
code_option = click.option(
    "--show-code", is_flag=True, help="Print the Python that does the same, and stop."
)


def loaded(path: str) -> Any:
    """Return a model with its recipe, or say that it has none."""
    from ..tables import TableError, load_trained

    trained = load_trained(path)
    if trained.recipe is None:
        raise TableError(
            f"{path} holds a model, but not what is done to the columns of a file before it - "
            f"usually since mercer.save wrote it - save it with mercer.tables.save_trained"
        )
    return trained


def answer(
    session: Session,
    path: str,
    data: Data,
    output: str | None,
    values: Any,
    show_code: bool,
    lines: list[str],
) -> None:
    """Write a table of values(trained, points) for the rows of a file, block by block."""
    from .._points import length
    from ..tables import TableError

    source = data.open(session)
    if show_code:
        from ._code import opened

        click.echo(
            "\n".join(
                [
                    '"""What `mercer` does with a saved model."""',
                    "",
                    "import sys",
                    "",
                    "from mercer.tables import load_trained, open_table",
                    "",
                    f"trained = load_trained({path!r})",
                    "model, recipe = trained.model, trained.row_recipe",
                    f"blocks = {opened(source, data.reading)}.blocks(recipe.text_columns)",
                    "for number, block in enumerate(blocks):",
                    "    X = recipe.transform(block)",
                    *(f"    {line}" for line in lines),
                    "    answer = recipe.answer(block, values, all_rows=True)",
                    "    answer.write(sys.stdout, header=number == 0)",
                ]
            )
        )
        return
    trained = loaded(path)
    recipe, rows, n = trained.row_recipe, 0, source.shape.rows
    empty: dict[str, Any] = {}
    waiting: list[Any] = []  # blocks of incomplete rows, until the names of the results are known
    with session.table(output) as write, session.listening(), session.progress("rows") as at:
        for block in source.blocks(recipe.text_columns):
            points = recipe.transform(block)
            rows += length(points)
            found = values(trained, points) if length(points) else None
            if found is None and not rows:
                waiting.append(block)
                continue
            if found is not None:
                empty = {name: column[:0] for name, column in found.items()}
            for one in waiting:
                write(recipe.answer(one, empty, all_rows=True))
            waiting.clear()
            write(recipe.answer(block, found or empty, all_rows=True))
            at(source.share)
        if not rows:
            raise TableError(f"{source.name}: all {n} rows have a missing value")
    if rows < n:
        session.warn(
            f"{n - rows} of {n} rows have missing values and an empty result: the recipe of "
            f"{path} leaves out such rows"
        )
    if output not in (None, "-"):
        session.note(f"wrote {output}")
        session.result("", file=output, rows=n, empty=n - rows)


def _able(trained: Any, verb: str, instead: str) -> Any:
    """Return the model, if it can do what is asked."""
    from ..tables import TableError

    if not hasattr(trained.model, verb):
        raise TableError(
            f"a {type(trained.model).__name__} cannot {verb} - try {instead}, or `mercer info`"
        )
    return trained.model


@app.command()
@session_options
@model_argument
@reading_options
@output_option
@click.option("--proba", is_flag=True, help="Also the probability of each class.")
@click.option("--std", is_flag=True, help="Also the standard deviation of each prediction.")
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
    r"""Predict the target of each row of DATA by a saved MODEL.

    \b
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
        fitted = _able(trained, "predict", "mercer transform")
        if std:
            if "return_std" not in signature(fitted.predict).parameters:
                raise TableError(
                    f"a {type(fitted).__name__} knows no standard deviations - try no --std, or a "
                    f"model of mercer fit ridge or gp"
                )
            prediction, deviation = fitted.predict(X, return_std=True)
            found = {"prediction": prediction, "std": deviation}
        else:
            found = {"prediction": fitted.predict(X)}
        if proba:
            chances = _able(trained, "predict_proba", "no --proba").predict_proba(X)
            found |= {f"p({c})": p for c, p in zip(fitted.classes_, chances.T, strict=True)}
        return found

    answer(session, model, data, output, values, show_code, lines)


@app.command()
@session_options
@model_argument
@reading_options
@output_option
@code_option
def transform(
    session: Session, model: str, data: Data, output: str | None, show_code: bool
) -> None:
    """Give the components of each row of DATA under a saved MODEL: a PCA, Fisher or k-means."""
    lines = [
        "scores = model.transform(X)",
        'values = {f"component{j + 1}": scores[:, j] for j in range(scores.shape[1])}',
    ]

    def values(trained: Any, X: Any) -> dict[str, Any]:
        scores = _able(trained, "transform", "mercer predict").transform(X)
        return {f"component{j + 1}": scores[:, j] for j in range(scores.shape[1])}

    answer(session, model, data, output, values, show_code, lines)


@app.command()
@session_options
@model_argument
@reading_options
@output_option
@code_option
def denoise(session: Session, model: str, data: Data, output: str | None, show_code: bool) -> None:
    """Project each row of DATA on the components of a saved PCA, and give the nearest points.

    They come in the units of the file: what the recipe did to columns of numbers is undone.
    """
    from ..tables import TableError

    lines = ["values = recipe.restored(model.denoise(X))"]

    def values(trained: Any, X: Any) -> dict[str, Any]:
        fitted = _able(trained, "denoise", "a model of mercer pca")
        if trained.recipe.points == "graphs":
            raise TableError("graphs have no place in a table of text - denoise them in Python")
        return dict(trained.recipe.restored(fitted.denoise(X)))

    answer(session, model, data, output, values, show_code, lines)


@app.command()
@session_options
@model_argument
@click.option("-n", "--points", type=click.IntRange(1), help="How many points to keep.")
@click.option("--max-error", type=float, help="How large the error may be, in place of a number.")
@click.option("-o", "--output", required=True, type=Output(dir_okay=False), metavar="FILE")
def compress(
    session: Session, model: str, points: int | None, max_error: float | None, output: str
) -> None:
    """Write a MODEL on fewer points, with a certificate of what that changes."""
    import mercer

    from ..tables import load_trained, save_trained

    if (points is None) == (max_error is None):
        raise click.UsageError("say either how many points to keep, -n, or --max-error")
    trained = load_trained(model)
    with session.progress("compressing"), session.listening():
        small: Any
        if isinstance(trained.model, mercer.Expansion):
            small = trained.model.compress(points, max_error=max_error)
            made = small.reduction
        else:
            small = mercer.compress(trained.model, points, max_error=max_error)
            made = small.reduction_
    save_trained(replace(trained, model=small), output)
    session.note(f"wrote {output}")
    session.result(
        str(made)[1:-1],
        points=made.n_points,
        before=made.n_points_before,
        error=made.error,
        relative_error=made.relative_error,
    )


@app.command()
@session_options
@model_argument
def info(session: Session, model: str) -> None:
    """Say what a saved MODEL is, how well it was fitted, and what it does to columns."""
    from ..tables import load_trained

    trained = load_trained(model)
    fitted, recipe = trained.model, trained.recipe
    said = (
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
    columns = ["no recipe: mercer.save wrote it"] if recipe is None else recipe.describe()
    said += ["", "Columns", *(f"  {line}" for line in columns)]
    if trained.story:
        said += ["", "Made by", *(f"  {name:<10} {text}" for name, text in trained.story.items())]
    session.result(
        "\n".join(said),
        estimator=type(fitted).__name__,
        kernel=repr(getattr(fitted, "kernel_", getattr(fitted, "kernel", None))),
        parameters={k: repr(v) for k, v in parameters.items()},
        features=None if recipe is None or recipe.points != "vectors" else recipe.features,
        columns=columns,
        story=trained.story,
    )
