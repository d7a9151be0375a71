"""mercer compare: maps of the points of a file by several models, side by side."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ._app import app
from ._data import Data, data_options, kept, kernel_option
from ._session import Output, Session, replacing, session_options

if TYPE_CHECKING:
    from ..comparison import Comparison
    from ..tables import Recipe, Source, Table

FILES = ("comparison.csv", "comparison.png", "maps.csv")
SHOWN = 20_000  # points in the picture, evenly spaced in the file


@app.command()
@session_options
@data_options
@kernel_option(None)
@click.option(
    "-m",
    "--models",
    multiple=True,
    metavar="NAMES",
    help="Which models, between commas: PCA, PPCA, kernel PCA, MDS, Sammon, autoencoder, GPLVM, "
    "Bayesian GPLVM; by default all that the number of points allows.",
)
@click.option(
    "-k",
    "--components",
    type=click.IntRange(1),
    default=2,
    show_default=True,
    help="The dimensions of the maps.",
)
@click.option(
    "--color",
    metavar="NAME",
    help="The column to colour by; it is not among the points. If it holds labels, errors of the "
    "nearest neighbour in the map are counted.",
)
@click.option(
    "--neighbors",
    type=click.IntRange(1),
    default=10,
    show_default=True,
    help="How many neighbours trustworthiness and continuity look at.",
)
@click.option(
    "--rows", type=click.IntRange(3), help="How many points are asked: all of 5000, 2000 of more."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of all that is drawn.")
@click.option("--max-memory", metavar="SIZE", help='How much memory to take: "2 GiB".')
@click.option(
    "-o",
    "--output",
    type=Output(file_okay=False),
    metavar="FOLDER",
    help="Where comparison.csv, comparison.png and maps.csv go; without it the table goes to the "
    "standard output.",
)
@click.option("--show-code", is_flag=True, help="Print the Python that does the same, and stop.")
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
    r"""Make maps of the points in DATA by several models, and tell how much of each is true.

    \b
      mercer compare data.csv --color label -o out
      mercer compare data.csv --models "PCA,Sammon,autoencoder"
      mercer compare dna.fasta --kernel "Normalized(Spectrum(3))"
    """
    from ..comparison import compare as compared
    from ..tables import label_values

    names = [name.strip() for text in models for name in text.split(",") if name.strip()]
    given: dict[str, Any] = {"models": names or None, "n_components": components, "kernel": kernel}
    given |= {"rows": rows, "n_neighbors": neighbors, "random_state": seed}
    given |= {"max_memory": max_memory}
    given = {name: value for name, value in given.items() if value is not None}
    source = data.open(session)
    recipe = data.recipe(source, kernel, beside=() if color is None else (color,))
    if show_code:
        click.echo(_code(source, data, recipe, color, given), nl=False)
        return
    table = source.table()
    labels = None if color is None else label_values(table.column(color))
    recipe = recipe.fit(table)
    session.note("\n".join(recipe.describe()))
    kept(recipe, table, session)
    y = None if labels is None else labels[recipe.kept(table)]
    with session.progress("maps"), session.listening():
        found = compared(recipe.transform(table), y, **given)
    if output is not None:
        _write(found, Path(output), recipe, table, color, session)
        session.note(f"\n{found}\n")
        session.note("\n".join(f"wrote {Path(output) / name}" for name in FILES))
    columns = found.table
    rows_of = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    session.result(
        found.summary() if output is None else "",
        files=[] if output is None else [str(Path(output) / name) for name in FILES],
        rows=found.n_points,
        asked=found.n_asked,
        neighbors=found.n_neighbors,
        models=rows_of,
        left_out=found.left_out,
    )


def _write(
    found: Comparison,
    folder: Path,
    recipe: Recipe,
    table: Table,
    color: str | None,
    session: Session,
) -> None:
    """Write all files beside their places, then move them there together."""
    from ..tables import Table as Columns

    work = folder / ".unfinished-comparison"
    work.mkdir(parents=True, exist_ok=True)
    try:
        with replacing(work / "comparison.csv") as file:
            Columns(_columns(found), "comparison").write(file, header=True)
        places = {
            f"{name} {j + 1}": Z[:, j] for name, Z in found.maps.items() for j in range(Z.shape[1])
        }
        beside = () if color is None else (color,)
        with replacing(work / "maps.csv") as file:
            recipe.answer(table, places, beside).write(file, header=True)
        try:
            _draw(found, work / "comparison.png", color)
        except ValueError as error:  # too many classes to be told apart
            session.warn(f"the picture has one colour: {error}")
            _draw(replace(found, y=None), work / "comparison.png", None)
        for name in FILES:
            (work / name).replace(folder / name)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _columns(found: Comparison) -> dict[str, Any]:
    import numpy as np

    return {name: np.asarray(values) for name, values in found.table.items()}


def _draw(found: Comparison, path: Path, color: str | None) -> None:
    """Draw the maps, of many points some."""
    import numpy as np
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    n = found.n_points
    if n > SHOWN:
        shown = np.unique(np.linspace(0, n - 1, SHOWN).astype(np.int64))
        rows = [row if row.Z is None else replace(row, Z=row.Z[shown]) for row in found.rows]
        found = replace(found, rows=tuple(rows), y=None if found.y is None else found.y[shown])
    figure = Figure(layout="constrained")
    FigureCanvasAgg(figure)
    grid = found.plot(figure)[0].get_gridspec()
    figure.set_size_inches(4.2 * grid.ncols, 4.2 * grid.nrows + 0.6)
    if found.y is not None and not figure.legends:  # a colour bar
        figure.axes[-1].set_ylabel(str(color))
    figure.savefig(path, dpi=150)


def _code(
    source: Source, data: Data, recipe: Recipe, color: str | None, given: dict[str, Any]
) -> str:
    """Return the Python that does the same."""
    from ._code import opened

    options = "".join(f", {name}={value!r}" for name, value in given.items())
    y = "None" if color is None else f"label_values(table.column({color!r}))[recipe.kept(table)]"
    lines = [
        f'"""Maps of {source.title}: what `mercer compare` does."""',
        "",
        "from mercer import compare",
        f"from mercer.tables import Recipe, {'label_values, ' if color else ''}open_table",
        "",
        f"table = {opened(source, data.reading)}.table()",
        f"recipe = {recipe!r}.fit(table)",
        f"y = {y}",
        f"found = compare(recipe.transform(table), y{options})",
        "print(found)",
        'found.plot()[0].figure.savefig("comparison.png", dpi=150)',
    ]
    return "\n".join(lines) + "\n"
