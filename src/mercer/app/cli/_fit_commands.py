"""Commands that train and evaluate models: mercer fit, score and tune."""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace
from typing import Any

import click

from ._console import OutputPath, Session, session_options
from ._data_options import (
    RBF,
    Data,
    data_options,
    kernel_option,
    parse_parameters,
    report_dropped_rows,
)
from ._main import app

METHODS = {  # for each method: estimator class, and type of the target ("" for none)
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
target_option = click.option("--target", metavar="NAME", help="Column to predict.")
seed_option = click.option("--seed", type=int, default=0, show_default=True, help="Random seed.")
set_option = click.option(
    "--set",
    "more",
    multiple=True,
    metavar="NAME=VALUE",
    help="Parameter of the estimator, such as alpha=0.1 or C=10; can be repeated.",
)
memory_option = click.option("--max-memory", metavar="SIZE", help='Memory limit, such as "2 GiB".')


def estimator_and_parameters(
    method: str, kernel: str | None, more: tuple[str, ...], seed: int, max_memory: str | None = None
) -> tuple[Any, dict[str, Any], str]:
    """Return the estimator class, its parameters, and the type of its target (see `METHODS`)."""
    from inspect import signature

    import mercer

    name, targets = METHODS[method]
    cls = getattr(mercer, name)
    known = signature(cls).parameters
    options = {"kernel": kernel or RBF, "random_state": seed, "max_memory": max_memory}
    if method == "ridge":  # without an intercept, predictions would shrink towards 0
        options["fit_intercept"] = True
    if method == "gp":  # add noise to the kernel, and standardise the targets
        options |= {"kernel": kernel or f"{RBF} + White(noise=0.1)", "normalize_y": True}
    options = {key: value for key, value in options.items() if key in known and value is not None}
    return cls, options | parse_parameters(cls, more), targets


def _centring_message(parameters: dict[str, Any]) -> str:
    """Return a message that says how the target is centred, or "" if it is not centred."""
    if parameters.get("fit_intercept"):
        return (
            "The target is centred, because the model has an intercept "
            "(to disable: --set fit_intercept=False)."
        )
    if parameters.get("normalize_y"):
        return (
            "The target is centred and scaled to standard deviation 1 "
            "(to disable: --set normalize_y=False)."
        )
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
    type=OutputPath(dir_okay=False),
    metavar="FILE",
    help="Output file for the model; if omitted, only a summary is printed.",
)
@click.option("--show-code", is_flag=True, help="Print the equivalent Python code and exit.")
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
    r"""Fit a model to DATA, and save it with its preprocessing.

    The default kernel is RBF(length_scale='median'). A Gaussian process (gp) adds White(noise=0.1)
    and optimises the parameters of its kernel. Regression models centre the target: ridge and svr
    have an intercept, gp subtracts the mean and divides by the standard deviation.

    \b
    Examples:
      mercer fit ridge houses.csv --target price --standardize -o model.mercer
      mercer fit svc cells.parquet --target kind --set C=10 -o model.mercer
    """
    from ..tables import Trained, save_trained
    from ._codegen import call_code, open_table_code

    cls, parameters, targets = estimator_and_parameters(method, kernel, more, seed, max_memory)
    source = data.open(session)
    recipe = data.recipe(source, parameters.get("kernel"), target)
    labels = targets == "labels"
    if show_code:
        y = f"recipe.targets(table, labels={labels})"
        click.echo(
            f'"""Equivalent of `mercer fit {method}` on {source.title}."""\n\n'
            f"from mercer import {cls.__name__}\n"
            "from mercer.app.tables import Recipe, Trained, open_table, save_trained\n\n"
            f"table = {open_table_code(source, data.read_options)}.table()\n"
            f"recipe = {recipe!r}.fit(table)\n"
            f"X = recipe.transform(table)\n"
            f"model = {call_code(cls.__name__, parameters)}.fit(X{f', {y}' if targets else ''})\n"
            f"save_trained(Trained(model, recipe), {output or 'model.mercer'!r})"
        )
        return
    table = source.table()
    recipe = recipe.fit(table)
    session.note("\n".join(recipe.describe()))
    report_dropped_rows(recipe, table, session)
    if message := _centring_message(parameters):
        session.note(message)
    y_args = (recipe.targets(table, labels=labels),) if targets else ()
    with session.progress(method), session.capture_warnings():
        model = cls(**parameters).fit(recipe.transform(table), *y_args)
    metadata = {"command": shlex.join(["mercer", *sys.argv[1:]]), "input": source.name}
    if output is not None:
        save_trained(Trained(model, recipe, metadata), output)
        session.note(f"wrote {output}")
    report = getattr(model, "report_", None)
    text = f"{cls.__name__}({model.kernel_})\n{report or ''}".strip()
    session.result(
        text,
        estimator=cls.__name__,
        kernel=repr(model.kernel_),
        status=None if report is None else report.status.value,
        file=output,
    )


def _rows_with_target(recipe: Any, table: Any, session: Session) -> Any:
    """Return the table without the rows whose target is missing, and warn if there are any."""
    import numpy as np

    from ..tables import is_missing

    rows = np.flatnonzero(~is_missing(table.column(recipe.target)))
    if len(rows) < len(table):
        session.warn(
            f"{len(table) - len(rows)} of {len(table)} rows have no target value and are not scored"
        )
    table = table.take(rows)
    report_dropped_rows(recipe, table, session)
    return table


def _check_labels(y: Any, classes: Any, source: str, session: Session) -> None:
    """Warn if some labels are unknown to the classifier; raise an error if all are unknown."""
    from ..tables import TableError

    if classes is None:
        return
    known = set(classes.tolist())
    unknown = [label for label in y.tolist() if label not in known]
    if not unknown:
        return
    message = (
        f"{source}: {len(unknown)} of {len(y)} labels are unknown to the model, such as "
        f"{unknown[0]!r}; the labels of the model are {', '.join(map(repr, classes.tolist()[:8]))}"
    )
    if len(unknown) == len(y):
        raise TableError(
            f"{message}. Usually the labels are spelled differently in the two files; use the "
            f"spelling of the training data"
        )
    session.warn(f"{message}; rows with unknown labels count as errors")


@app.command()
@session_options
@click.argument("model")
@data_options
@target_option
@kernel_option(None)
@set_option
@seed_option
@click.option(
    "--cv",
    type=click.IntRange(2),
    default=5,
    show_default=True,
    help="Number of cross-validation folds.",
)
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
    r"""Cross-validate a method on DATA, or score a saved model on DATA.

    MODEL is a method (ridge, gp, logistic, svc, svr or fisher), which is cross-validated, or a
    model file written by `mercer fit`. Cross-validation fits the preprocessing on the training rows
    of each fold. The score is R^2 for regression and accuracy for classification.

    \b
    Examples:
      mercer score ridge houses.csv --target price --standardize
      mercer score model.mercer new-houses.csv
    """
    import numpy as np

    if model not in METHODS:
        from pathlib import Path

        from ._model_commands import load_with_recipe

        if not Path(model).is_file():
            raise click.UsageError(
                f"{model!r} is neither a method ({', '.join(METHODS)}) nor a model file"
            )
        if data.has_column_options or target or kernel or more:
            raise click.UsageError(
                f"{model} is a fitted model, so its columns, target, kernel and parameters are "
                f"fixed; omit the options that set them, or give a method instead of a model file"
            )
    source = data.open(session)
    table = source.table()
    if model not in METHODS:
        trained = load_with_recipe(model)
        recipe = trained.recipe
        if recipe.target is None:
            raise click.UsageError(
                f"{model} does not predict a target, so there is nothing to score"
            )
        table = _rows_with_target(recipe, table, session)
        y = recipe.targets(table, labels=hasattr(trained.model, "classes_"))
        _check_labels(y, getattr(trained.model, "classes_", None), table.source, session)
        value = float(trained.model.score(recipe.transform(table), y))
        session.result(f"{value:.6g}", score=value, rows=len(y))
        return
    from sklearn.base import is_classifier
    from sklearn.model_selection import KFold, StratifiedKFold

    cls, parameters, targets = estimator_and_parameters(model, kernel, more, seed)
    if not targets:
        raise click.UsageError(f"{model} does not predict a target, so there is nothing to score")
    recipe = data.recipe(source, parameters.get("kernel"), target)
    whole = recipe.fit(table)
    # Decide now which columns are one-hot encoded: in the few rows of one fold, a categorical
    # column could be mistaken for an identifier.
    onehot = tuple(part.name for part in whole.parts or () if part.categories is not None)
    recipe = replace(recipe, onehot=onehot)
    session.note("\n".join(whole.describe()))
    report_dropped_rows(whole, table, session)
    table = table.take(whole.kept_rows(table))
    y = whole.targets(table, labels=targets == "labels")
    kind = StratifiedKFold if is_classifier(cls()) else KFold
    values = []
    with session.progress("folds") as update, session.capture_warnings():
        for train, test in kind(cv, shuffle=True, random_state=seed).split(np.zeros(len(y)), y):
            learned = recipe.fit(table.take(train))
            fitted = cls(**parameters).fit(learned.transform(table.take(train)), y[train])
            values.append(float(fitted.score(learned.transform(table.take(test)), y[test])))
            update(len(values) / cv)
    fold_scores = " ".join(f"{value:.4f}" for value in values)
    mean, std = float(np.mean(values)), float(np.std(values))
    measure = "accuracy" if targets == "labels" else "R^2"
    session.result(
        f"{measure} {mean:.4f} ± {std:.4f} over {cv} folds: {fold_scores}",
        measure=measure,
        mean=mean,
        std=std,
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
    help="Objective to optimise: leave-one-out error, generalised cross-validation, marginal "
    "likelihood or kernel-target alignment.",
)
@click.option(
    "-o",
    "--output",
    type=OutputPath(dir_okay=False),
    metavar="FILE",
    help="Output file for a model that is fitted with the optimised parameters.",
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
    """Optimise the kernel parameters and the regularisation of a method.

    Uses gradients of the objective. Prints options that can be passed to `mercer fit`.
    """
    import mercer

    from ..tables import Trained, save_trained

    cls, parameters, targets = estimator_and_parameters(method, kernel, more, seed)
    if not targets:
        raise click.UsageError(
            f"{method} does not predict a target, so there is nothing to optimise"
        )
    source = data.open(session)
    table = source.table()
    recipe = data.recipe(source, parameters.get("kernel"), target).fit(table)
    session.note("\n".join(recipe.describe()))
    report_dropped_rows(recipe, table, session)
    X, y = recipe.transform(table), recipe.targets(table, labels=targets == "labels")
    with session.progress("tuning"), session.capture_warnings():
        result = mercer.tune(cls(**parameters), X, y, objective, random_state=seed)
        model = result.estimator.fit(X, y) if output is not None else result.estimator
    if output is not None:
        metadata = {"command": shlex.join(["mercer", *sys.argv[1:]]), "input": source.name}
        save_trained(Trained(model, recipe, metadata), output)
        session.note(f"wrote {output}")
    session.note(str(result))
    values = model.get_params(deep=False)
    regularisation = {name: values[name] for name in ("alpha", "C") if name in values}
    options = [f"--kernel {shlex.quote(repr(model.kernel))}"]
    options += [f"--set {name}={value!r}" for name, value in regularisation.items()]
    session.result(
        " ".join(options),
        kernel=repr(model.kernel),
        value=result.value,
        objective=objective,
        converged=result.converged,
        **regularisation,
    )
