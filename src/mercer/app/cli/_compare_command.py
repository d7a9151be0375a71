"""The command `mercer compare`: compare the embeddings of a file by several models."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ._console import OutputPath, Session, atomic_write, session_options
from ._data_options import Data, data_options, kernel_option, report_dropped_rows
from ._main import app

if TYPE_CHECKING:
    from ..comparison import Comparison
    from ..tables import Recipe, Source, Table

FILES = ("comparison.csv", "comparison.png", "maps.csv")
MAX_SHOWN = 20_000  # the figure shows at most this many points, evenly spaced in the file


@app.command()
@session_options
@data_options
@kernel_option(None)
@click.option(
    "-m",
    "--models",
    multiple=True,
    metavar="NAMES",
    help="Comma-separated models: PCA, PPCA, kernel PCA, MDS, Sammon, autoencoder, GPLVM, "
    "Bayesian GPLVM; by default all models that are fast enough for the number of points.",
)
@click.option(
    "-k",
    "--components",
    type=click.IntRange(1),
    default=2,
    show_default=True,
    help="Number of dimensions of the embeddings.",
)
@click.option(
    "--color",
    metavar="NAME",
    help="Column that colours the points; it is not used as a feature. If it contains labels, the "
    "table also shows the nearest-neighbour classification errors of each embedding.",
)
@click.option(
    "--neighbors",
    type=click.IntRange(1),
    default=10,
    show_default=True,
    help="Number of neighbours for trustworthiness and continuity.",
)
@click.option(
    "--rows",
    type=click.IntRange(3),
    help="Number of randomly chosen points on which the embeddings are evaluated; by default "
    "all points if there are at most 5000, otherwise 2000.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Random seed.")
@click.option("--max-memory", metavar="SIZE", help='Memory limit, such as "2 GiB".')
@click.option(
    "-o",
    "--output",
    type=OutputPath(file_okay=False),
    metavar="FOLDER",
    help="Output folder for comparison.csv, comparison.png and maps.csv; if omitted, the table is "
    "printed to standard output.",
)
@click.option("--show-code", is_flag=True, help="Print the equivalent Python code and exit.")
def compare(
    session: Session,
    data: Data,
    kernel: str | None,
    models: tuple[str, ...],
    components: int,
    color: str | None,
    neighbors: int,
    rows: int | None,
    seed: int,
    max_memory: str | None,
    output: str | None,
    show_code: bool,
) -> None:
    r"""Compare embeddings of the rows of DATA by several models.

    The table shows how well each embedding preserves the nearest neighbours of each row, and how
    well the data can be reconstructed from it.

    \b
    Examples:
      mercer compare data.csv --color label -o out
      mercer compare data.csv --models "PCA,Sammon,autoencoder"
      mercer compare dna.fasta --kernel "Normalized(Spectrum(3))"
    """
    from ..comparison import compare as compare_models
    from ..tables import label_values

    names = [name.strip() for text in models for name in text.split(",") if name.strip()]
    options: dict[str, Any] = {
        "models": names or None,
        "n_components": components,
        "kernel": kernel,
    }
    options |= {"rows": rows, "n_neighbors": neighbors, "random_state": seed}
    options |= {"max_memory": max_memory}
    options = {name: value for name, value in options.items() if value is not None}
    source = data.open(session)
    recipe = data.recipe(source, kernel, exclude=() if color is None else (color,))
    if show_code:
        click.echo(_code(source, data, recipe, color, options), nl=False)
        return
    table = source.table()
    labels = None if color is None else label_values(table.column(color))
    recipe = recipe.fit(table)
    session.note("\n".join(recipe.describe()))
    report_dropped_rows(recipe, table, session)
    y = None if labels is None else labels[recipe.kept_rows(table)]
    with session.progress("embeddings"), session.capture_warnings():
        comparison = compare_models(recipe.transform(table), y, **options)
    if output is not None:
        _write(comparison, Path(output), recipe, table, color, session)
        session.note(f"\n{comparison}\n")
        session.note("\n".join(f"wrote {Path(output) / name}" for name in FILES))
    columns = comparison.table
    table_rows = [
        dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)
    ]
    session.result(
        comparison.summary() if output is None else "",
        files=[] if output is None else [str(Path(output) / name) for name in FILES],
        rows=comparison.n_points,
        evaluated=comparison.n_evaluated,
        neighbors=comparison.n_neighbors,
        models=table_rows,
        left_out=comparison.left_out,
    )


def _write(
    comparison: Comparison,
    folder: Path,
    recipe: Recipe,
    table: Table,
    color: str | None,
    session: Session,
) -> None:
    """Write all files to a temporary folder, and move them to `folder` when all are complete."""
    from ..tables import Table as OutputTable

    work = folder / ".unfinished-comparison"
    work.mkdir(parents=True, exist_ok=True)
    try:
        with atomic_write(work / "comparison.csv") as file:
            OutputTable(_columns(comparison), "comparison").write(file, header=True)
        coordinates = {
            f"{name} {j + 1}": Z[:, j]
            for name, Z in comparison.maps.items()
            for j in range(Z.shape[1])
        }
        extra_columns = () if color is None else (color,)
        with atomic_write(work / "maps.csv") as file:
            recipe.result_table(table, coordinates, extra_columns).write(file, header=True)
        try:
            _draw(comparison, work / "comparison.png", color)
        except ValueError as error:  # there are more classes than distinguishable colours
            session.warn(f"the figure uses a single colour: {error}")
            _draw(replace(comparison, y=None), work / "comparison.png", None)
        for name in FILES:
            (work / name).replace(folder / name)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _columns(comparison: Comparison) -> dict[str, Any]:
    """Return the comparison table as arrays."""
    import numpy as np

    return {name: np.asarray(values) for name, values in comparison.table.items()}


def _draw(comparison: Comparison, path: Path, color: str | None) -> None:
    """Draw the embeddings of at most `MAX_SHOWN` points, and save the figure."""
    import numpy as np
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    n = comparison.n_points
    if n > MAX_SHOWN:
        shown = np.unique(np.linspace(0, n - 1, MAX_SHOWN).astype(np.int64))
        rows = [row if row.Z is None else replace(row, Z=row.Z[shown]) for row in comparison.rows]
        comparison = replace(
            comparison, rows=tuple(rows), y=None if comparison.y is None else comparison.y[shown]
        )
    figure = Figure(layout="constrained")
    FigureCanvasAgg(figure)
    grid = comparison.plot(figure)[0].get_gridspec()
    figure.set_size_inches(4.2 * grid.ncols, 4.2 * grid.nrows + 0.6)
    if comparison.y is not None and not figure.legends:  # the last axes are a colour bar
        figure.axes[-1].set_ylabel(str(color))
    figure.savefig(path, dpi=150)


def _code(
    source: Source, data: Data, recipe: Recipe, color: str | None, options: dict[str, Any]
) -> str:
    """Return the Python code that is equivalent to the command."""
    from ._codegen import open_table_code

    arguments = "".join(f", {name}={value!r}" for name, value in options.items())
    y = (
        "None"
        if color is None
        else f"label_values(table.column({color!r}))[recipe.kept_rows(table)]"
    )
    lines = [
        f'"""Embeddings of {source.title}: equivalent to `mercer compare`."""',
        "",
        "from mercer import compare",
        f"from mercer.app.tables import Recipe, {'label_values, ' if color else ''}open_table",
        "",
        f"table = {open_table_code(source, data.read_options)}.table()",
        f"recipe = {recipe!r}.fit(table)",
        f"y = {y}",
        f"comparison = compare(recipe.transform(table), y{arguments})",
        "print(comparison)",
        'comparison.plot()[0].figure.savefig("comparison.png", dpi=150)',
    ]
    return "\n".join(lines) + "\n"
