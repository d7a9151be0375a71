"""mercer fit, score and tune: models that learn from the rows of a file."""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace
from typing import Any

import click

from ._app import app
from ._data import RBF, Data, data_options, kept, kernel_option, parameters
from ._session import Output, Session, session_options

METHODS = {  # the estimator, and what it learns from: labels, numbers, or points alone
    "ridge": ("KernelRidge", "numbers"),
    "gp": ("GaussianProcessRegressor", "numbers"),
    "logistic": ("KernelLogisticRegression", "labels"),
    "svc": ("SVC", "labels"),
    "svr": ("SVR", "numbers"),
    "oneclass": ("OneClassSVM", ""),
    "kmeans": ("KernelKMeans", ""),
    "fisher": ("KernelFisherDiscriminant", "labels"),
}
method_argument = click.argument("method", type=click.Choice(list(METHODS)))
target_option = click.option("--target", metavar="NAME", help="The column to predict.")
seed_option = click.option(
    "--seed", type=int, default=0, show_default=True, help="Of all that is drawn."
)
set_option = click.option(
    "--set",
    "more",
    multiple=True,
    metavar="NAME=VALUE",
    help="A parameter of the estimator: --set alpha=0.1 or C=10.",
)
memory_option = click.option("--max-memory", metavar="SIZE", help='Memory to take: "2 GiB".')


def chosen(
    method: str, kernel: str | None, more: tuple[str, ...], seed: int, max_memory: str | None = None
) -> tuple[Any, dict[str, Any], str]:
    """Return the class of an estimator, its parameters, and what it learns from."""
    from inspect import signature

    import mercer

    name, targets = METHODS[method]
    cls = getattr(mercer, name)
    known = signature(cls).parameters
    given = {"kernel": kernel or RBF, "random_state": seed, "max_memory": max_memory}
    if method == "ridge":  # without an intercept, targets far from 0 are shrunk towards 0
        given["fit_intercept"] = True
    if method == "gp":  # whose kernel has the noise and the size of the targets in it
        given |= {"kernel": kernel or f"{RBF} + White(noise=0.1)", "normalize_y": True}
    found = {key: value for key, value in given.items() if key in known and value is not None}
    return cls, found | parameters(cls, more), targets


def _centring(given: dict[str, Any]) -> str:
    """Return the message about the centring of a target, or "" if there is none."""
    if given.get("fit_intercept"):
        return "The target is centred: the model has an intercept (--set fit_intercept=False)."
    if given.get("normalize_y"):
        return "The target is centred and scaled to deviation 1 (--set normalize_y=False)."
    return ""


@app.command()
@session_options
@method_argument
@data_options
@target_option
@kernel_option(None)
@set_option
@seed_option
@memory_option
@click.option(
    "-o",
    "--output",
    type=Output(dir_okay=False),
    metavar="FILE",
    help="Where the model goes; without it, only what was fitted is said.",
)
@click.option("--show-code", is_flag=True, help="Print the Python that does the same, and stop.")
def fit(
    session: Session,
    method: str,
    data: Data,
    target: str | None,
    kernel: str | None,
    more: tuple[str, ...],
    seed: int,
    max_memory: str | None,
    output: str | None,
    show_code: bool,
) -> None:
    r"""Fit a model to the rows of DATA, and save it with all that is done to the columns.

    The kernel is RBF(length_scale='median') unless given; a Gaussian process adds White(noise=0.1),
    and learns the parameters of its kernel.  Regressions centre the target: ridge and svr have an
    intercept, gp subtracts the mean and divides by the deviation.

    \b
      mercer fit ridge houses.csv --target price --standardize -o model.mercer
      mercer fit svc cells.parquet --target kind --set C=10 -o model.mercer
    """
    from ..tables import Trained, save_trained
    from ._code import called, opened

    cls, given, targets = chosen(method, kernel, more, seed, max_memory)
    source = data.open(session)
    recipe = data.recipe(source, given.get("kernel"), target)
    labels = targets == "labels"
    if show_code:
        y = f"recipe.targets(table, labels={labels})"
        click.echo(
            f'"""A {method} of {source.title}: what `mercer fit` does."""\n\n'
            f"from mercer import {cls.__name__}\n"
            "from mercer.tables import Recipe, Trained, open_table, save_trained\n\n"
            f"table = {opened(source, data.reading)}.table()\n"
            f"recipe = {recipe!r}.fit(table)\n"
            f"X = recipe.transform(table)\n"
            f"model = {called(cls.__name__, given)}.fit(X{f', {y}' if targets else ''})\n"
            f"save_trained(Trained(model, recipe), {output or 'model.mercer'!r})"
        )
        return
    table = source.table()
    recipe = recipe.fit(table)
    session.note("\n".join(recipe.describe()))
    kept(recipe, table, session)
    if centred := _centring(given):
        session.note(centred)
    answers = (recipe.targets(table, labels=labels),) if targets else ()
    with session.progress(method), session.listening():
        model = cls(**given).fit(recipe.transform(table), *answers)
    story = {"command": shlex.join(["mercer", *sys.argv[1:]]), "input": source.name}
    if output is not None:
        save_trained(Trained(model, recipe, story), output)
        session.note(f"wrote {output}")
    report = getattr(model, "report_", None)
    said = f"{cls.__name__}({model.kernel_})\n{report or ''}".strip()
    session.result(
        said,
        estimator=cls.__name__,
        kernel=repr(model.kernel_),
        status=None if report is None else report.status.value,
        file=output,
    )


def _with_target(recipe: Any, table: Any, session: Session) -> Any:
    """Return the rows of a table that a fitted model can be scored on."""
    import numpy as np

    from ..tables import missing

    known = np.flatnonzero(~missing(table.column(recipe.target)))
    if len(known) < len(table):
        session.warn(f"{len(table) - len(known)} of {len(table)} rows have no target: not scored")
    table = table.take(known)
    kept(recipe, table, session)
    return table


def _check_labels(y: Any, classes: Any, source: str, session: Session) -> None:
    """Report labels that a classifier cannot predict, and refuse if it can predict none."""
    from ..tables import TableError

    if classes is None:
        return
    known = set(classes.tolist())
    unknown = [label for label in y.tolist() if label not in known]
    if not unknown:
        return
    what = (
        f"{source}: {len(unknown)} of {len(y)} labels are unknown to the model, such as "
        f"{unknown[0]!r}; it predicts {', '.join(map(repr, classes.tolist()[:8]))}"
    )
    if len(unknown) == len(y):
        raise TableError(f"{what} - usually another spelling of the labels - use the same labels")
    session.warn(f"{what}; they count as errors")


@app.command()
@session_options
@click.argument("model")
@data_options
@target_option
@kernel_option(None)
@set_option
@seed_option
@click.option("--cv", type=click.IntRange(2), default=5, show_default=True, help="Folds.")
def score(
    session: Session,
    model: str,
    data: Data,
    target: str | None,
    kernel: str | None,
    more: tuple[str, ...],
    seed: int,
    cv: int,
) -> None:
    r"""Score a method by cross-validation on DATA, or a saved model on rows it has not seen.

    MODEL is ridge, gp, logistic, svc, svr or fisher, scored on folds that it was not fitted to
    (what is learned of the columns is learned anew in each), or a file of `mercer fit`.  The score
    is R^2 of a regression, accuracy of a classification.

    \b
      mercer score ridge houses.csv --target price --standardize
      mercer score model.mercer new-houses.csv
    """
    import numpy as np

    if model not in METHODS:
        from pathlib import Path

        from ._apply import loaded

        if not Path(model).is_file():
            raise click.UsageError(
                f"{model!r} is neither a method ({', '.join(METHODS)}) nor the file of a model"
            )
        if data.treats_columns or target or kernel or more:
            raise click.UsageError(
                f"{model} is a fitted model, which knows its columns, target, kernel and "
                f"parameters - leave away what is said of them, or score a method"
            )
    source = data.open(session)
    table = source.table()
    if model not in METHODS:
        trained = loaded(model)
        recipe = trained.recipe
        if recipe.target is None:
            raise click.UsageError(f"{model} predicts no target, so there is nothing to score")
        table = _with_target(recipe, table, session)
        y = recipe.targets(table, labels=hasattr(trained.model, "classes_"))
        _check_labels(y, getattr(trained.model, "classes_", None), table.source, session)
        value = float(trained.model.score(recipe.transform(table), y))
        session.result(f"{value:.6g}", score=value, rows=len(y))
        return
    from sklearn.base import is_classifier
    from sklearn.model_selection import KFold, StratifiedKFold

    cls, given, targets = chosen(model, kernel, more, seed)
    if not targets:
        raise click.UsageError(f"{model} predicts no target, so there is nothing to score")
    recipe = data.recipe(source, given.get("kernel"), target)
    whole = recipe.fit(table)
    hot = tuple(part.name for part in whole.parts or () if part.categories is not None)
    recipe = replace(recipe, onehot=hot)  # a fold need not tell categories from identifiers
    session.note("\n".join(whole.describe()))
    kept(whole, table, session)
    table = table.take(whole.kept(table))
    y = whole.targets(table, labels=targets == "labels")
    kind = StratifiedKFold if is_classifier(cls()) else KFold
    values = []
    with session.progress("folds") as at, session.listening():
        for train, test in kind(cv, shuffle=True, random_state=seed).split(np.zeros(len(y)), y):
            learned = recipe.fit(table.take(train))
            fitted = cls(**given).fit(learned.transform(table.take(train)), y[train])
            values.append(float(fitted.score(learned.transform(table.take(test)), y[test])))
            at(len(values) / cv)
    words = " ".join(f"{value:.4f}" for value in values)
    mean, spread = float(np.mean(values)), float(np.std(values))
    what = "accuracy" if targets == "labels" else "R^2"
    session.result(
        f"{what} {mean:.4f} ± {spread:.4f} over {cv} folds: {words}",
        measure=what,
        mean=mean,
        std=spread,
        folds=values,
    )


@app.command()
@session_options
@method_argument
@data_options
@target_option
@kernel_option(None)
@set_option
@seed_option
@click.option(
    "--objective",
    default="loo",
    show_default=True,
    type=click.Choice(["loo", "gcv", "likelihood", "alignment"]),
)
@click.option(
    "-o",
    "--output",
    type=Output(dir_okay=False),
    metavar="FILE",
    help="Fit a model with what was found, and save it.",
)
def tune(
    session: Session,
    method: str,
    data: Data,
    target: str | None,
    kernel: str | None,
    more: tuple[str, ...],
    seed: int,
    objective: str,
    output: str | None,
) -> None:
    """Find the parameters of the kernel, and the ridge, by gradients; print what was found."""
    import mercer

    from ..tables import Trained, save_trained

    cls, given, targets = chosen(method, kernel, more, seed)
    if not targets:
        raise click.UsageError(f"{method} predicts no target, so there is nothing to tune by")
    source = data.open(session)
    table = source.table()
    recipe = data.recipe(source, given.get("kernel"), target).fit(table)
    session.note("\n".join(recipe.describe()))
    kept(recipe, table, session)
    X, y = recipe.transform(table), recipe.targets(table, labels=targets == "labels")
    with session.progress("tuning"), session.listening():
        found = mercer.tune(cls(**given), X, y, objective, random_state=seed)
        model = found.estimator.fit(X, y) if output is not None else found.estimator
    if output is not None:
        story = {"command": shlex.join(["mercer", *sys.argv[1:]]), "input": source.name}
        save_trained(Trained(model, recipe, story), output)
        session.note(f"wrote {output}")
    session.note(str(found))
    values = model.get_params(deep=False)
    said = {name: values[name] for name in ("alpha", "C") if name in values}
    words = [f"--kernel {shlex.quote(repr(model.kernel))}"]
    words += [f"--set {name}={value!r}" for name, value in said.items()]
    session.result(
        " ".join(words),
        kernel=repr(model.kernel),
        value=found.value,
        objective=objective,
        converged=found.converged,
        **said,
    )
