"""Commands that embed the rows of a file: mercer pca, plan, explore and compare."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NoReturn

import click

from ... import estimators, tables
from .. import comparison, explorer
from ._console import INTERRUPTED, OutputPath, Session, atomic_write, session_options
from ._fit_commands import METHODS, MethodOptions
from ._main import app
from ._options import (
    EmbeddingOptions,
    code_option,
    embedding_options,
    flag,
    keyword_code,
    memory_option,
    open_table_code,
    option,
    output_option,
    positive,
    print_treatments,
    read_table,
    report_dropped_rows,
    seed_option,
    set_option,
)

if TYPE_CHECKING:
    from ...solvers import Plan

STREAMED = ("nystroem", "features")  # these methods read the file block by block
COMPARISON_FILES = ("comparison.csv", "comparison.png", "maps.csv")
set_pca_option = set_option("Any other parameter of mercer.KernelPCA")


@app.command()
@session_options
@embedding_options()
@option(
    "--method",
    "Solver. nystroem and features are approximate and read the file block by block, so that it "
    "can be larger than memory.",
    type=click.Choice(["auto", "exact", "dense", "krylov", *STREAMED]),
    default="auto",
)
@option(
    "--rank",
    "Number of landmarks (nystroem) or random features (features), such as 1000.",
    type=positive,
)
@seed_option
@set_pca_option
@memory_option()
@output_option(
    "Output folder for embedding.csv, embedding.png, model.mercer and report.html; if omitted, the "
    "embedding is written to standard output.",
    folder=True,
)
@flag("--resume", "Resume an interrupted run in FOLDER.")
@code_option
def pca(
    session: Session,
    options: EmbeddingOptions,
    method: str,
    rank: int | None,
    max_memory: str | None,
    resume: bool,
) -> None:
    r"""Compute kernel principal components, with figure and report.

    DATA is a CSV, Parquet, Arrow, NPY, NPZ, JSONL or FASTA file, a folder or zip file of graphs in
    the TUDataset layout, or - for standard input.

    \b
    Examples:
      mercer pca data.csv -k 2 --color label -o out
      mercer pca dna.fasta --kernel "Normalized(Spectrum(3))" > embedding.csv
    """
    from ._pca_job import PCARun

    parameters = options.pca_parameters(eigen_solver=method, rank=rank, max_memory=max_memory)
    run = PCARun(session, options, *options.open(session), parameters)
    if options.show_code:
        click.echo(run.code(), nl=False)
    elif method in STREAMED:
        run.fit_out_of_core(resume=resume)
    else:
        run.fit_in_memory()


class PlanCommand(click.Command):
    """A command with the arguments METHOD and DATA, where METHOD may be omitted."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert the default method, pca, if there is only one argument besides options."""
        options = [option for option in self.params if isinstance(option, click.Option)]
        with_value = {name for option in options if not option.is_flag for name in option.opts}
        arguments = [
            i
            for i, word in enumerate(args)
            if not word.startswith("-") and (i == 0 or args[i - 1] not in with_value)
        ]
        if len(arguments) == 1 and args[arguments[0]] not in ("pca", *METHODS):
            args = [*args[: arguments[0]], "pca", *args[arguments[0] :]]
        return super().parse_args(ctx, args)


@app.command(cls=PlanCommand)
@session_options
@click.argument("method", type=click.Choice(["pca", *METHODS]), metavar="[METHOD]")
@embedding_options(components="Number of components.", color="Column not to use as a feature.")
@option("--target", "Column to predict.", "NAME")
@set_option()
@option("--rank", "Number of landmarks for nystroem, such as 1000.", type=click.IntRange(1))
@memory_option("Available memory")
def plan(
    session: Session,
    method: str,
    options: EmbeddingOptions,
    target: str | None,
    rank: int | None,
    max_memory: str | None,
) -> None:
    r"""Print memory and relative time of each solver for a fit.

    METHOD is pca (the default), or a method of `mercer fit`. The kernel matrix is not computed.

    \b
    Examples:
      mercer plan data.csv -k 10 --max-memory "4 GB"
      mercer plan svc cells.parquet --target kind --set C=10
    """
    if method == "pca":
        parameters = options.pca_parameters(rank=rank, max_memory=max_memory)
        made = _plan_pca(session, options, parameters)
    else:
        more = options.more if rank is None else (*options.more, f"rank={rank}")
        chosen = MethodOptions(
            options.data, options.kernel, more, target=target, max_memory=max_memory
        )
        cls, parameters, targets = chosen.estimator(method)
        source, recipe = chosen.open(session, method, parameters)
        with session.reading(source):
            table, recipe = read_table(session, source, recipe)
        y = recipe.targets(table, labels=targets == "labels") if targets else None
        made = cls(**parameters).plan(recipe.transform(table), y)
    names = {"method": "solver", "storage": "storage", "bytes": "memory", "rank": "rank"}
    names |= {"exact": "exact", "fits": "fits", "reason": "reason"}
    session.result(
        str(made),
        rows=made.n,
        budget=made.budget,
        chosen=made.chosen and made.chosen.solver,
        options=[{key: getattr(o, name) for key, name in names.items()} for o in made.options],
    )


def _plan_pca(session: Session, options: EmbeddingOptions, parameters: dict[str, Any]) -> Plan:
    """Return the plan of a kernel PCA; numeric tables are not loaded into memory."""
    import numpy as np

    source, recipe = options.open(session)
    with session.reading(source):
        recipe = recipe.fit(source.blocks())
    if recipe.points == "vectors":  # the estimates depend only on the shape of the points
        with session.reading(source):
            count = sum(len(recipe.kept_rows(block)) for block in source.blocks())
        points: Any = np.broadcast_to(0.0, (count, len(recipe.features)))
    else:
        table = source.table()
        report_dropped_rows(recipe, table, session)
        points = recipe.transform(table)
    return estimators.KernelPCA(**parameters).plan(points)


# ---------------------------------------------------------------------- explore


class ImageShape(click.ParamType):
    """Option type: an image shape, ROWSxCOLUMNS, or ROWSxCOLUMNSx3 for colour images."""

    name = "shape"

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        """Convert text such as "8x8" to a tuple such as (8, 8)."""
        try:
            shape = tuple(int(part) for part in value.lower().split("x"))
        except ValueError:
            shape = ()
        if len(shape) not in (2, 3) or min(shape) < 1 or shape[2:] not in ((), (1,), (3,)):
            self.fail(f"{value!r} is not an image shape such as 8x8 or 32x32x3", param, ctx)
        return shape


@app.command()
@session_options
@embedding_options()
@option(
    "--second",
    "Second embedding to show: a kernel such as 'Laplacian(2.0)' for a second kernel PCA, a model "
    "of mercer compare such as kernel-pca, ppca, t-sne or gplvm, data (two columns), or none.",
    "NAME",
    default="auto",
)
@option(
    "--image-shape",
    "Show points as images of this shape, such as 8x8, or 32x32x3 for colour images.",
    type=ImageShape(),
)
@option("--new", "File with new rows to project into the same embeddings.", "FILE")
@option(
    "--session session_file",
    "Session to show, saved with Session > Save session on a page.",
    "FILE",
)
@seed_option
@set_pca_option
@option("--port", "Port of the server; by default any free port.", type=click.IntRange(0, 65535))
@flag("--no-browser", "Print the address without opening a browser.")
@option(
    "--export",
    "Write a self-contained HTML page and exit; - for standard output.",
    "FILE",
    type=OutputPath(dir_okay=False),
)
@option(
    "--preimages",
    "With --export: include pre-images for an N x N grid of positions.",
    "N",
    type=click.IntRange(0, 100),
)
def explore(
    session: Session,
    options: EmbeddingOptions,
    second: str,
    image_shape: tuple[int, ...] | None,
    new: str | None,
    session_file: str | None,
    port: int | None,
    no_browser: bool,
    export: str | None,
    preimages: int | None,
) -> None:
    r"""Explore embeddings of the rows in a browser.

    The page shows two embeddings; points selected in one are also selected in the other. Click
    anywhere in an embedding to see the pre-image of that position. Change the kernel to see how the
    embedding changes. The server accepts connections only from this computer and runs until Ctrl-C.
    Its address contains a token, and requests without the token are rejected.

    \b
    Examples:
      mercer explore data.csv --color label
      mercer explore digits.csv --color digit --image-shape 8x8 --export digits.html
    """
    data = options.data
    shown = None if session_file is None else explorer.read_session(session_file)

    def read() -> tuple[tables.Source, explorer.Scene]:
        source, recipe = options.open(session)
        with session.reading(source):
            table = source.table()
            recipe, color, notes = explorer.first_look(table, recipe, options.color, image_shape)
            recipe.notations_ = source.notations
            print_treatments(session, recipe)
            report_dropped_rows(recipe, table, session)
        for note in notes:
            session.note(note)
        requested = estimators.KernelPCA(**options.pca_parameters())
        model, planned = explorer.affordable_kernel_pca(requested, recipe.transform(table))
        if model is not requested:
            session.note(
                f"exact kernel PCA would take too long; using a Nyström approximation instead: "
                f"{planned.summary}"
            )
        with session.progress("embeddings"), session.capture_warnings():
            scene = explorer.scene_from_table(
                title=source.title,
                table=table,
                recipe=recipe,
                model=model,
                second=second,
                color=color,
                image=image_shape,
                notes=(*notes, *explorer.describe_features(recipe), *source.notes),
                session=shown,
                reading=open_table_code(source, data),
            )
            if new is not None:
                scene = scene.projected(data.open(session, new, recipe).table(recipe.text_columns))
        return source, scene

    watched = Path(data.path) if data.path != "-" else None
    stamp = explorer.file_stamp(watched)
    source, scene = read()
    if export is not None:
        with session.progress("pre-images"), session.capture_warnings():
            text = explorer.Explorer(scene).html(preimages=preimages or 0)
        with atomic_write(export) as file:
            file.write(text)
        if export != "-":
            session.note(f"wrote {export}")
            session.result("", file=export, rows=len(scene), bytes=len(text.encode()))
        return

    server = explorer.serve(
        lambda: scene,
        port=port or 0,
        title=scene.title,
        reload=None if watched is None else lambda: read()[1],
        watched=watched,
        stamp=stamp,
    ).start()
    session.result(f"The explorer is at {server.url}", url=server.url, rows=len(scene))
    session.note("Press Ctrl-C to stop the server.")
    if not no_browser:
        import webbrowser

        webbrowser.open(server.url)
    try:
        server.wait()
    except KeyboardInterrupt:
        _exit_at_once(None if watched is not None else Path(source.path), server.is_busy)


def _exit_at_once(temporary: Path | None, is_busy: bool) -> NoReturn:
    """Exit the process immediately, even if a thread is still computing.

    A normal exit would wait for the computation, because Ctrl-C does not interrupt worker threads,
    and release all points and modules one by one, which takes a second or more on a busy computer.
    `temporary` is the temporary copy of standard input, which a normal exit would remove.
    """
    if temporary is not None:
        temporary.unlink(missing_ok=True)
    suffix = (
        "the running computation was cancelled" if is_busy else "existing files were not changed"
    )
    click.echo(f"interrupted; {suffix}", err=True)
    sys.stdout.flush()
    os._exit(INTERRUPTED)


# ---------------------------------------------------------------------- compare


@app.command()
@session_options
@embedding_options(
    None,
    "Number of dimensions of the embeddings.",
    click.IntRange(1),
    "Column that colours the points; it is not used as a feature. If it contains labels, the table "
    "also shows the nearest-neighbour classification errors of each embedding.",
)
@option(
    "-m --models",
    "Comma-separated models: PCA, PPCA, kernel PCA, MDS, Sammon, NeuroScale, autoencoder, GPLVM, "
    "Bayesian GPLVM, t-SNE, UMAP, Isomap, LLE, spectral embedding; by default, those before t-SNE "
    "that are fast enough for the number of points.",
    "NAMES",
    multiple=True,
)
@option(
    "--neighbors",
    "Number of neighbours for trustworthiness and continuity.",
    type=positive,
    default=10,
)
@option(
    "--rows",
    "Number of randomly chosen points on which the embeddings are evaluated; by default "
    "all points if there are at most 5000, otherwise 2000.",
    type=click.IntRange(3),
)
@seed_option
@memory_option()
@output_option(
    "Output folder for comparison.csv, comparison.png and maps.csv; if omitted, the table is "
    "printed to standard output.",
    folder=True,
)
@code_option
def compare(
    session: Session,
    options: EmbeddingOptions,
    models: tuple[str, ...],
    neighbors: int,
    rows: int | None,
    max_memory: str | None,
) -> None:
    r"""Compare embeddings of the rows by several models.

    The table shows how well each embedding preserves the nearest neighbours of each row, and how
    well the data can be reconstructed from it.

    \b
    Examples:
      mercer compare data.csv --color label -o out
      mercer compare data.csv --models "PCA,Sammon,autoencoder"
      mercer compare dna.fasta --kernel "Normalized(Spectrum(3))"
    """
    names = [name.strip() for text in models for name in text.split(",") if name.strip()]
    arguments: dict[str, Any] = {
        "models": names or None,
        "n_components": options.components,
        "kernel": options.kernel,
        "rows": rows,
        "n_neighbors": neighbors,
        "random_state": options.seed,
        "max_memory": max_memory,
    }
    arguments = {name: value for name, value in arguments.items() if value is not None}
    source, recipe = options.open(session)
    if options.show_code:
        click.echo(_comparison_code(source, options, recipe, arguments), nl=False)
        return
    with session.reading(source):
        table, recipe = read_table(session, source, recipe)
    y = None
    if options.color is not None:
        y = tables.label_values(table.column(options.color))[recipe.kept_rows(table)]
    with session.progress("embeddings"), session.capture_warnings():
        result = comparison.compare(recipe.transform(table), y, **arguments)
    files = []
    if options.output is not None:
        files = [str(Path(options.output) / name) for name in COMPARISON_FILES]
        with session.progress("figure"):
            _write_comparison(result, Path(options.output), recipe, table, options, session)
        session.note(f"\n{result}\n")
        session.note("\n".join(f"wrote {file}" for file in files))
    columns = result.table
    session.result(
        "" if files else result.summary(),
        files=files,
        rows=result.n_points,
        evaluated=result.n_evaluated,
        neighbors=result.n_neighbors,
        models=[
            dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)
        ],
        left_out=result.left_out,
    )


def _write_comparison(
    result: comparison.Comparison,
    folder: Path,
    recipe: tables.Recipe,
    table: tables.Table,
    options: EmbeddingOptions,
    session: Session,
) -> None:
    """Write all files to a temporary folder, and move them to `folder` when all are complete."""
    import numpy as np

    columns = {name: np.asarray(values) for name, values in result.table.items()}
    coordinates = {
        f"{name} {j + 1}": Z[:, j] for name, Z in result.maps.items() for j in range(Z.shape[1])
    }
    embeddings = recipe.result_table(table, coordinates, options.extra_columns)
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".unfinished-", dir=folder) as temporary:
        work = Path(temporary)
        with atomic_write(work / "comparison.csv") as file:
            tables.Table(columns, "comparison").write(file)
        with atomic_write(work / "maps.csv") as file:
            embeddings.write(file)
        try:
            _draw_comparison(result, work / "comparison.png", options.color)
        except ValueError as error:  # there are more classes than distinguishable colours
            session.warn(f"the figure uses a single colour: {error}")
            _draw_comparison(replace(result, y=None), work / "comparison.png", None)
        for name in COMPARISON_FILES:
            (work / name).replace(folder / name)


def _draw_comparison(result: comparison.Comparison, path: Path, color: str | None) -> None:
    """Draw the embeddings of evenly spaced points, and save the figure."""
    from matplotlib.figure import Figure

    from ._pca_job import MAX_SHOWN, evenly_spaced

    shown = evenly_spaced(result.n_points, MAX_SHOWN)
    rows = [row if row.Z is None else replace(row, Z=row.Z[shown]) for row in result.rows]
    y = None if result.y is None else result.y[shown]
    figure = Figure(layout="constrained")
    grid = replace(result, rows=tuple(rows), y=y).plot(figure)[0].get_gridspec()
    figure.set_size_inches(4.2 * grid.ncols, 4.2 * grid.nrows + 0.6)
    if y is not None and not figure.legends:  # the last axes are a colour bar
        figure.axes[-1].set_ylabel(str(color))
    figure.savefig(path, dpi=150)


def _comparison_code(
    source: tables.Source,
    options: EmbeddingOptions,
    recipe: tables.Recipe,
    arguments: dict[str, Any],
) -> str:
    """Return the Python code that is equivalent to `mercer compare`."""
    color = options.color
    labels = f"label_values(table.column({color!r}))[recipe.kept_rows(table)]"
    further = keyword_code(arguments)
    return f'''"""Embeddings of {source.title}: equivalent to `mercer compare`."""

from mercer import compare
from mercer.tables import Recipe, {"label_values, " if color else ""}open_table

table = {open_table_code(source, options.data)}.table()
recipe = {recipe!r}.fit(table)
y = {None if color is None else labels}
comparison = compare(recipe.transform(table), y, {further})
print(comparison)
comparison.plot()[0].figure.savefig("comparison.png", dpi=150)
'''
