"""Commands for statistical tests: mercer test two-sample and mercer test independence."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from ... import tables
from ...models import mean_embedding
from ._console import Decorator, Session, session_options
from ._main import CommandGroup, app
from ._options import (
    Data,
    data_options,
    dropped_rows_message,
    kernel_option,
    option,
    positive,
    report_dropped_rows,
    seed_option,
)


@app.group(cls=CommandGroup)
def test() -> None:
    r"""Test whether two samples differ, or columns are independent.

    The tests compare mean embeddings (MMD) and cross-covariances (HSIC) of kernels, with random
    permutations.

    \b
    Examples:
      mercer test two-sample before.csv after.csv
      mercer test independence data.csv --x age --y height
    """


permutations_option = option(
    "--permutations", "Number of random permutations.", type=positive, default=999
)


def columns_option(letter: str, variable: str) -> Decorator:
    """Return the option --x or --y, which selects the columns of one of the variables."""
    text = f"Columns of the {variable} variable, comma-separated."
    return option(f"--{letter} {variable}", text, "NAMES", multiple=True, required=True)


def _print_result(session: Session, result: Any, significant: str, not_significant: str) -> None:
    """Print a test result and the conclusion at the 5 % significance level."""
    text = (
        f"p-value {result.pvalue:.4g} ({result.n_permutations} permutations, "
        f"statistic {result.statistic:.6g}, {result.kernel})\n"
    )
    text += significant if result.pvalue < 0.05 else not_significant
    session.result(
        text,
        pvalue=result.pvalue,
        statistic=result.statistic,
        method=result.method,
        permutations=result.n_permutations,
        kernel=repr(result.kernel),
    )


@test.command("two-sample")
@session_options
@data_options
@click.argument("other")
@kernel_option()
@permutations_option
@seed_option
def two_sample(
    session: Session, data: Data, other: str, kernel: str, permutations: int, seed: int
) -> None:
    r"""Test whether two files have the same distribution (MMD).

    The null hypothesis is that the rows of DATA and OTHER come from the same distribution.

    \b
    Examples:
      mercer test two-sample before.csv after.csv
      mercer test two-sample before.csv after.csv --columns age,height --permutations 99
    """
    source, second = data.open(session), data.open(session, other)
    with session.reading(source):
        first_table = source.table()
    with session.reading(second):
        second_table = second.table()
    recipe = data.recipe(source, kernel)
    unused = () if recipe.columns else (*recipe.ignore, *first_table.index_columns)
    for name in recipe.columns or first_table.columns:
        if name in first_table.columns and name not in unused:
            second_table.column(name)  # if it is missing, the error suggests the closest one
    common = [name for name in first_table.columns if name in second_table.columns]
    for name in common:
        kinds = [table.kinds[name] for table in (first_table, second_table)]
        if kinds[0] != kinds[1]:
            raise tables.TableError(
                f"column {name!r} contains {kinds[0]} in {source.name}, but {kinds[1]} in "
                f"{second.name}; correct the files, or use --ignore {name!r}"
            )
    joined = tables.Table.joined(
        [
            replace(table, columns={name: table.columns[name] for name in common}, lines=None)
            for table in (first_table, second_table)
        ]
    )
    recipe = recipe.fit(joined)
    session.note("\n".join(recipe.describe()))
    for table in (first_table, second_table):
        report_dropped_rows(recipe, table, session)
    with session.progress("permutations"), session.capture_warnings():
        result = mean_embedding.two_sample_test(
            recipe.transform(first_table),
            recipe.transform(second_table),
            kernel,
            n_permutations=permutations,
            random_state=seed,
        )
    _print_result(
        session,
        result,
        "The two files differ significantly (5 % level): samples from the same distribution would "
        "rarely differ this much.",
        "No significant difference (5 % level): samples from the same distribution would often "
        "differ this much.",
    )


@test.command()
@session_options
@data_options
@columns_option("x", "first")
@columns_option("y", "second")
@kernel_option()
@option(
    "--kernel-y",
    "Kernel for the second variable; by default the same as --kernel.",
    "EXPRESSION",
)
@permutations_option
@seed_option
def independence(
    session: Session,
    data: Data,
    first: tuple[str, ...],
    second: tuple[str, ...],
    kernel: str,
    kernel_y: str | None,
    permutations: int,
    seed: int,
) -> None:
    r"""Test whether two groups of columns are independent (HSIC).

    The null hypothesis is that the columns of --x and the columns of --y are independent.

    \b
    Examples:
      mercer test independence data.csv --x age --y height
      mercer test independence reviews.csv --x text --y stars --kernel "Spectrum(3)" --kernel-y rbf
    """
    import numpy as np

    source = data.open(session)
    with session.reading(source):
        table = source.table()
    recipes = []
    kernel_y = kernel_y or kernel
    for names, side_kernel in ((first, kernel), (second, kernel_y)):
        recipe = replace(data, columns=names).recipe(source, side_kernel)
        onehot = recipe.onehot
        if isinstance(onehot, tuple):
            onehot = tuple(name for name in onehot if name in (recipe.columns or ()))
        recipes.append(replace(recipe, onehot=onehot).fit(table))
        session.note("\n".join(recipes[-1].describe()))
    with session.progress("permutations"), session.capture_warnings():
        complete = np.intersect1d(recipes[0].kept_rows(table), recipes[1].kept_rows(table))
        X, Y = (recipe.transform(table.take(complete)) for recipe in recipes)
        result = mean_embedding.independence_test(
            X, Y, kernel, kernel_y, n_permutations=permutations, random_state=seed
        )
    if len(complete) < len(table):
        session.note(dropped_rows_message(source.name, len(table) - len(complete), len(table)))
    _print_result(
        session,
        result,
        "The columns are dependent (5 % level): independent columns would rarely give a statistic "
        "this large.",
        "No significant dependence (5 % level): independent columns would often give a statistic "
        "this large.",
    )
