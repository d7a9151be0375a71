"""mercer predict, transform, denoise, compress and info: what a saved model can do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from ._app import app
from ._session import Session, replacing, session_options

model_argument = click.argument("model", type=click.Path(exists=True, dir_okay=False))
data_argument = click.argument("data")
format_option = click.option("--format", "kind", help="What kind of file DATA is.")
output_option = click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Where to write; the standard output unless given.",
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
    data: str,
    kind: str | None,
    output: str | None,
    values: Any,
    show_code: bool,
    lines: list[str],
) -> None:
    """Write a table of values(trained, points) for the rows of a file, block by block."""
    from ..tables import open_table

    source = open_table(data, format=kind)
    if show_code:
        from ._code import opened

        reading = {} if kind is None else {"format": kind}
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
                    "model, recipe = trained.model, trained.recipe",
                    f"for number, block in enumerate({opened(source, reading)}.blocks()):",
                    "    X = recipe.transform(block)",
                    *(f"    {line}" for line in lines),
                    "    recipe.answer(block, values).write(sys.stdout, header=number == 0)",
                ]
            )
        )
        return
    trained = loaded(path)
    with replacing(output) as file, session.listening(), session.progress("rows") as at:
        for number, block in enumerate(source.blocks()):
            found = values(trained, trained.recipe.transform(block))
            trained.recipe.answer(block, found).write(file, header=number == 0)
            at(source.share)


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
@data_argument
@format_option
@output_option
@click.option("--proba", is_flag=True, help="Also the probability of each class.")
@click.option("--std", is_flag=True, help="Also the standard deviation of each prediction.")
@code_option
def predict(
    session: Session,
    model: str,
    data: str,
    kind: str | None,
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

    def values(trained: Any, X: Any) -> dict[str, Any]:
        fitted = _able(trained, "predict", "mercer transform")
        if std:
            prediction, deviation = fitted.predict(X, return_std=True)
            found = {"prediction": prediction, "std": deviation}
        else:
            found = {"prediction": fitted.predict(X)}
        if proba:
            chances = _able(trained, "predict_proba", "no --proba").predict_proba(X)
            found |= {f"p({c})": p for c, p in zip(fitted.classes_, chances.T, strict=True)}
        return found

    answer(session, model, data, kind, output, values, show_code, lines)


@app.command()
@session_options
@model_argument
@data_argument
@format_option
@output_option
@code_option
def transform(
    session: Session, model: str, data: str, kind: str | None, output: str | None, show_code: bool
) -> None:
    """Give the components of each row of DATA under a saved MODEL: a PCA, Fisher or k-means."""
    lines = [
        "scores = model.transform(X)",
        'values = {f"component{j + 1}": scores[:, j] for j in range(scores.shape[1])}',
    ]

    def values(trained: Any, X: Any) -> dict[str, Any]:
        scores = _able(trained, "transform", "mercer predict").transform(X)
        return {f"component{j + 1}": scores[:, j] for j in range(scores.shape[1])}

    answer(session, model, data, kind, output, values, show_code, lines)


@app.command()
@session_options
@model_argument
@data_argument
@format_option
@output_option
@code_option
def denoise(
    session: Session, model: str, data: str, kind: str | None, output: str | None, show_code: bool
) -> None:
    """Project each row of DATA on the components of a saved PCA, and give the nearest points.

    They come in the units of the file: what the recipe did to columns of numbers is undone.
    """
    lines = ["values = recipe.restored(model.denoise(X))"]

    def values(trained: Any, X: Any) -> dict[str, Any]:
        fitted = _able(trained, "denoise", "a model of mercer pca")
        return dict(trained.recipe.restored(fitted.denoise(X)))

    answer(session, model, data, kind, output, values, show_code, lines)


@app.command()
@session_options
@model_argument
@click.option("-n", "--points", type=click.IntRange(1), help="How many points to keep.")
@click.option("--max-error", type=float, help="How large the error may be, in place of a number.")
@click.option("-o", "--output", required=True, type=click.Path(dir_okay=False), metavar="FILE")
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
        small = mercer.compress(trained.model, points, max_error=max_error)
    save_trained(replace(trained, model=small), output)
    session.note(f"wrote {output}")
    made = small.reduction_
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
        else [
            f"{type(fitted).__name__}({getattr(fitted, 'kernel_', '')})",
            *(f"  {line}" for line in str(getattr(fitted, "report_", "")).splitlines()),
        ]
    )
    columns = ["no recipe: mercer.save wrote it"] if recipe is None else recipe.describe()
    said += ["", "Columns", *(f"  {line}" for line in columns)]
    if trained.story:
        said += ["", "Made by", *(f"  {name:<10} {text}" for name, text in trained.story.items())]
    session.result(
        "\n".join(said),
        estimator=type(fitted).__name__,
        kernel=repr(getattr(fitted, "kernel_", None)),
        parameters={k: repr(v) for k, v in fitted.get_params(deep=False).items()},
        features=None if recipe is None or recipe.points != "vectors" else recipe.features,
        columns=columns,
        story=trained.story,
    )
