"""The commands `mercer pca` (kernel PCA of a file) and `mercer plan` (its estimated cost)."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import click

from ._console import OutputPath, Session, session_options
from ._data_options import Data, data_options, kernel_option, parse_parameters, report_dropped_rows
from ._main import app

STREAMED = ("nystroem", "features")  # these methods read the file block by block


class ComponentCount(click.ParamType):
    """Option type: a number of components, or a fraction of the variance between 0 and 1."""

    name = "number"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Convert text to an int (1 or more) or to a float between 0 and 1; fail otherwise."""
        try:
            count = int(value) if float(value) >= 1 else float(value)
        except ValueError:
            count = 0
        if not count > 0:
            self.fail(
                f"{value!r} is neither a number of components nor a fraction of the variance "
                f"such as 0.9",
                param,
                ctx,
            )
        return count


@app.command()
@session_options
@data_options
@kernel_option()
@click.option(
    "-k",
    "--components",
    type=ComponentCount(),
    default=2,
    show_default=True,
    help="Number of components, or the fraction of the variance to explain (between 0 and 1).",
)
@click.option(
    "--color",
    metavar="NAME",
    help="Column that colours the points; it is not used as a feature.",
)
@click.option(
    "--method",
    default="auto",
    show_default=True,
    type=click.Choice(["auto", "exact", "dense", "krylov", *STREAMED]),
    help="Solver. nystroem and features are approximate and read the file block by block, so that "
    "it can be larger than memory.",
)
@click.option(
    "--rank",
    type=click.IntRange(1),
    help="Number of landmarks (nystroem) or random features (features), such as 1000.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Random seed.")
@click.option(
    "--set",
    "more",
    multiple=True,
    metavar="NAME=VALUE",
    help="Any other parameter of mercer.KernelPCA; can be repeated.",
)
@click.option("--max-memory", metavar="SIZE", help='Memory limit, such as "2 GiB".')
@click.option(
    "-o",
    "--output",
    type=OutputPath(file_okay=False),
    metavar="FOLDER",
    help="Output folder for embedding.csv, embedding.png, model.mercer and report.html; if "
    "omitted, the embedding is written to standard output.",
)
@click.option("--resume", is_flag=True, help="Resume an interrupted run in FOLDER.")
@click.option("--show-code", is_flag=True, help="Print the equivalent Python code and exit.")
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
    r"""Compute the kernel principal components of the rows of DATA.

    DATA is a CSV, Parquet, Arrow, NPY, NPZ, JSONL or FASTA file, a folder or zip file of graphs in
    the TUDataset layout, or - for standard input.

    \b
    Examples:
      mercer pca data.csv -k 2 --color label -o out
      mercer pca dna.fasta --kernel "Normalized(Spectrum(3))" > embedding.csv
    """
    from ...estimators import KernelPCA
    from ._pca_job import PCARun

    estimator_options = {"n_components": components, "kernel": kernel, "random_state": seed}
    options = {"eigen_solver": method, "rank": rank, "max_memory": max_memory}
    estimator_options |= {name: v for name, v in options.items() if v not in (None, "auto")}
    source = data.open(session)
    run = PCARun(
        source=source,
        read_options=data.read_options,
        recipe=data.recipe(source, kernel, exclude=() if color is None else (color,)),
        parameters=estimator_options | parse_parameters(KernelPCA, more),
        color=color,
        output=None if output is None else Path(output),
        command=shlex.join(["mercer", *(word for word in sys.argv[1:] if word != "--resume")]),
        session=session,
    )
    if show_code:
        click.echo(run.code(), nl=False)
        return
    run.fit_out_of_core(resume=resume) if method in STREAMED else run.fit_in_memory()


@app.command()
@session_options
@data_options
@kernel_option()
@click.option(
    "-k",
    "--components",
    type=ComponentCount(),
    default=2,
    show_default=True,
    help="Number of components.",
)
@click.option("--color", metavar="NAME", help="Column not to use as a feature.")
@click.option(
    "--rank", type=click.IntRange(1), help="Number of landmarks for nystroem, such as 1000."
)
@click.option("--max-memory", metavar="SIZE", help='Available memory, such as "2 GiB".')
def plan(
    session: Session,
    data: Data,
    kernel: str,
    components: Any,
    color: str | None,
    rank: int | None,
    max_memory: str | None,
) -> None:
    """Estimate the memory and time of each method of `mercer pca` on DATA.

    The kernel matrix is not computed.
    """
    import numpy as np

    from ...estimators import KernelPCA

    source = data.open(session)
    recipe = data.recipe(source, kernel, exclude=() if color is None else (color,))
    recipe = recipe.fit(source.blocks())
    if recipe.points == "vectors":  # the estimates depend only on the shape of the points
        count = sum(len(recipe.kept_rows(block)) for block in source.blocks())
        points: Any = np.broadcast_to(0.0, (count, len(recipe.features)))
    else:
        table = source.table()
        report_dropped_rows(recipe, table, session)
        points = recipe.transform(table)
    model = KernelPCA(components, kernel=kernel, rank=rank, max_memory=max_memory)
    costs = model.plan(points)
    session.result(
        str(costs),
        rows=costs.n,
        budget=costs.budget,
        chosen=costs.chosen and costs.chosen.eigen_solver,
        options=[
            {
                "method": o.eigen_solver,
                "storage": o.storage,
                "bytes": o.memory,
                "exact": o.exact,
                "fits": o.fits,
            }
            for o in costs.options
        ],
    )
