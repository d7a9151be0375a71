"""mercer test: whether two samples differ, and whether columns are related."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from ._app import Commands, app
from ._data import Data, data_options, kept, kernel_option, left_out_rows
from ._session import Session, session_options


@app.group(cls=Commands)
def test() -> None:
    """Test samples: `two-sample` for a difference, `independence` for a relation."""


permutations_option = click.option(
    "--permutations",
    type=click.IntRange(1),
    default=999,
    show_default=True,
    help="How many random splits to compare.",
)
seed_option = click.option("--seed", type=int, default=0, show_default=True)


def _said(session: Session, result: Any, small: str, large: str) -> None:
    words = (
        f"p-value {result.pvalue:.4g} ({result.n_permutations} permutations, "
        f"statistic {result.statistic:.6g}, {result.kernel})\n"
    )
    words += small if result.pvalue < 0.05 else large
    session.result(
        words,
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
    """Test whether the rows of DATA and OTHER come from the same distribution (MMD)."""
    from ..means import two_sample_test
    from ..tables import Table, TableError

    source, second = data.open(session), data.open(session, other)
    one, two = source.table(), second.table()
    missing = [name for name in one.columns if name not in two.columns]
    recipe = data.recipe(source, kernel)
    for name in missing:
        if name in recipe.columns if recipe.columns else name not in (*recipe.ignore, *one.beside):
            two.column(name)  # says which column is nearest
    both = [
        replace(t, columns={n: t.columns[n] for n in one.columns if n in two.columns})
        for t in (one, two)
    ]
    if both[0].kinds != both[1].kinds:
        name = next(n for n in both[0].kinds if both[0].kinds[n] != both[1].kinds[n])
        raise TableError(
            f"column {name!r} holds {both[0].kinds[name]} in {source.name} and "
            f"{both[1].kinds[name]} in {second.name}"
        )
    recipe = recipe.fit(Table.joined([replace(t, lines=None) for t in both]))
    session.note("\n".join(recipe.describe()))
    for table in (one, two):
        kept(recipe, table, session)
    with session.progress("permutations"), session.listening():
        result = two_sample_test(
            recipe.transform(one),
            recipe.transform(two),
            kernel,
            n_permutations=permutations,
            random_state=seed,
        )
    _said(
        session,
        result,
        "The two files differ: if they came from one distribution, a difference as large would "
        "be this rare.",
        "No difference is shown: one distribution would often give a difference as large.",
    )


@test.command()
@session_options
@data_options
@click.option(
    "--x", "first", multiple=True, required=True, metavar="NAMES", help="The columns on one side."
)
@click.option(
    "--y",
    "second",
    multiple=True,
    required=True,
    metavar="NAMES",
    help="The columns on the other side.",
)
@kernel_option()
@click.option("--kernel-y", metavar="EXPRESSION", help="A kernel of its own for the other side.")
@permutations_option
@seed_option
def independence(
    session: Session,
    data: Data,
    first: Any,
    second: Any,
    kernel: str,
    kernel_y: str | None,
    permutations: int,
    seed: int,
) -> None:
    """Test whether some columns of DATA are independent of others (HSIC)."""
    import numpy as np

    from ..means import independence_test

    source = data.open(session)
    table = source.table()
    sides = []
    kernel_y = kernel_y or kernel
    for names, which in ((first, kernel), (second, kernel_y)):
        recipe = replace(data, columns=names).recipe(source, which)
        hot = recipe.onehot
        if isinstance(hot, tuple):
            hot = tuple(name for name in hot if name in (recipe.columns or ()))
        sides.append(replace(recipe, onehot=hot).fit(table))
        session.note("\n".join(sides[-1].describe()))
    with session.progress("permutations"), session.listening():
        both = np.intersect1d(sides[0].kept(table), sides[1].kept(table))
        X, Y = (recipe.transform(table.take(both)) for recipe in sides)
        result = independence_test(
            X, Y, kernel, kernel_y, n_permutations=permutations, random_state=seed
        )
    if len(both) < len(table):
        session.note(left_out_rows(source.name, len(table) - len(both), len(table)))
    _said(
        session,
        result,
        "They are related: independent columns would rarely show as much.",
        "No relation is shown: independent columns would often show as much.",
    )
