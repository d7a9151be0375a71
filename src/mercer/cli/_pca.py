"""mercer pca, mercer plan: components of the points of a file."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import click

from ._app import app
from ._data import Data, data_options, kept, kernel_option, parameters
from ._session import Output, Session, session_options

STREAMED = ("nystroem", "features")  # methods that read a file in blocks


class Count(click.ParamType):
    """A number of components, or a share of the variance between 0 and 1."""

    name = "number"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return an int of 1 or more, or a float between 0 and 1."""
        try:
            found = int(value) if float(value) >= 1 else float(value)
        except ValueError:
            found = 0
        if not found > 0:
            self.fail(f"{value!r} is neither a number of components nor a share, 0.9", param, ctx)
        return found


@app.command()
@session_options
@data_options
@kernel_option()
@click.option(
    "-k",
    "--components",
    type=Count(),
    default=2,
    show_default=True,
    help="How many components, or the share of the variance they are to explain.",
)
@click.option(
    "--color", metavar="NAME", help="The column to colour by; it is not among the points."
)
@click.option(
    "--method",
    default="auto",
    show_default=True,
    type=click.Choice(["auto", "exact", "dense", "krylov", *STREAMED]),
    help="nystroem and features read the file in blocks, so it may exceed the memory.",
)
@click.option("--rank", type=click.IntRange(1), help="Landmarks or random features: 1000.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of all that is drawn.")
@click.option(
    "--set",
    "more",
    multiple=True,
    metavar="NAME=VALUE",
    help="Any other parameter of mercer.KernelPCA.",
)
@click.option("--max-memory", metavar="SIZE", help='How much memory to take: "2 GiB".')
@click.option(
    "-o",
    "--output",
    type=Output(file_okay=False),
    metavar="FOLDER",
    help="Where embedding.csv, embedding.png, model.mercer and report.html go; "
    "without it the embedding goes to the standard output.",
)
@click.option("--resume", is_flag=True, help="Go on where an interrupted run in FOLDER stopped.")
@click.option("--show-code", is_flag=True, help="Print the Python that does the same, and stop.")
def pca(
    session: Session,
    data: Data,
    kernel: str,
    components: Any,
    color: str | None,
    method: str,
    rank: int | None,
    seed: int,
    more: tuple[str, ...],
    max_memory: str | None,
    output: str | None,
    resume: bool,
    show_code: bool,
) -> None:
    r"""Find the principal components of the points in DATA, in the feature space of a kernel.

    DATA is a CSV, Parquet, Arrow, NPY, NPZ, JSONL or FASTA file, a folder or zip file of graphs in
    the layout of TUDataset, or - for the standard input.

    \b
      mercer pca data.csv -k 2 --color label -o out
      mercer pca dna.fasta --kernel "Normalized(Spectrum(3))" > embedding.csv
    """
    from ..estimators import KernelPCA
    from ._run import PCARun

    given = {"n_components": components, "kernel": kernel, "random_state": seed}
    options = {"eigen_solver": method, "rank": rank, "max_memory": max_memory}
    given |= {name: v for name, v in options.items() if v not in (None, "auto")}
    source = data.open(session)
    run = PCARun(
        source=source,
        reading=data.reading,
        recipe=data.recipe(source, kernel, beside=() if color is None else (color,)),
        parameters=given | parameters(KernelPCA, more),
        color=color,
        output=None if output is None else Path(output),
        command=shlex.join(["mercer", *(word for word in sys.argv[1:] if word != "--resume")]),
        session=session,
    )
    if show_code:
        click.echo(run.code(), nl=False)
        return
    run.stream(resume=resume) if method in STREAMED else run.whole()


@app.command()
@session_options
@data_options
@kernel_option()
@click.option(
    "-k", "--components", type=Count(), default=2, show_default=True, help="How many components."
)
@click.option("--color", metavar="NAME", help="A column that is not among the points.")
@click.option("--rank", type=click.IntRange(1), help="Landmarks of nystroem: 1000.")
@click.option("--max-memory", metavar="SIZE", help='How much memory there is: "2 GiB".')
def plan(
    session: Session,
    data: Data,
    kernel: str,
    components: Any,
    color: str | None,
    rank: int | None,
    max_memory: str | None,
) -> None:
    """Say what each method of `mercer pca` would cost on DATA, before anything is computed."""
    import numpy as np

    from ..estimators import KernelPCA

    source = data.open(session)
    recipe = data.recipe(source, kernel, beside=() if color is None else (color,))
    recipe = recipe.fit(source.blocks())
    if recipe.points == "vectors":  # of which the plan looks at nothing but the shape
        count = sum(len(recipe.kept(block)) for block in source.blocks())
        points: Any = np.broadcast_to(0.0, (count, len(recipe.features)))
    else:
        table = source.table()
        kept(recipe, table, session)
        points = recipe.transform(table)
    model = KernelPCA(components, kernel=kernel, rank=rank, max_memory=max_memory)
    made = model.plan(points)
    session.result(
        str(made),
        rows=made.n,
        budget=made.budget,
        chosen=made.chosen and made.chosen.eigen_solver,
        options=[
            {
                "method": o.eigen_solver,
                "storage": o.storage,
                "bytes": o.memory,
                "exact": o.exact,
                "fits": o.fits,
            }
            for o in made.options
        ],
    )
