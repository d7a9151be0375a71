"""Commands that train and evaluate models: mercer fit, score and tune."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import mercer

from ... import tables
from ._console import Command, Session, session_options
from ._main import app
from ._model_commands import load_with_recipe
from ._options import (
    RBF,
    ModelOptions,
    code_option,
    data_options,
    grouped,
    kernel_option,
    keyword_code,
    memory_option,
    open_table_code,
    option,
    output_option,
    parse_parameters,
    read_table,
    report_dropped_rows,
    save_model,
    seed_option,
    set_option,
)

if TYPE_CHECKING:
    import numpy as np


# For each method: estimator class, type of the target ("" for none), and parameters other than the
# defaults of the estimator.  Without an intercept, predictions would shrink towards 0.
METHODS: dict[str, tuple[str, str, dict[str, object]]] = {
    "ridge": ("KernelRidge", "numbers", {"fit_intercept": True}),
    "gp": (
        "GaussianProcessRegressor",
        "numbers",
        {"kernel": f"{RBF} + White(noise=0.1)", "normalize_y": True},
    ),
    "logistic": ("KernelLogisticRegression", "labels", {}),
    "svc": ("SVC", "labels", {}),
    "svr": ("SVR", "numbers", {}),
    "oneclass": ("OneClassSVM", "", {}),
    "kmeans": ("KernelKMeans", "", {}),
    "fisher": ("KernelFisherDiscriminant", "labels", {}),
}
method_argument = click.argument("method", type=click.Choice(list(METHODS)))


@dataclass(frozen=True)
class MethodOptions(ModelOptions):
    """The options of a command that fits one of the `METHODS`."""

    target: str | None = None
    max_memory: str | None = None

    def estimator(self, method: str) -> tuple[type, dict[str, Any], str]:
        """Return the estimator class, its parameters, and the type of its target (`METHODS`)."""
        name, targets, defaults = METHODS[method]
        cls = getattr(mercer, name)
        given = {"kernel": self.kernel, "random_state": self.seed, "max_memory": self.max_memory}
        known = signature(cls).parameters
        given = {key: v for key, v in given.items() if key in known and v is not None}
        options = {"kernel": RBF} | defaults | given | parse_parameters(cls, self.more)
        return cls, options, targets

    def open(
        self, session: Session, parameters: dict[str, Any]
    ) -> tuple[tables.Source, tables.Recipe]:
        """Open the input file, and return it with its unfitted preprocessing recipe."""
        source = self.data.open(session)
        return source, self.data.recipe(source, parameters.get("kernel"), self.target)


_method_group = grouped(
    "options",
    MethodOptions,
    option("--target", "Column to predict.", "NAME"),
    kernel_option(None),
    set_option(),
    seed_option,
)


def method_options(command: Command) -> Command:
    """Add DATA and the options of a method to a command, which receives `MethodOptions`."""
    return data_options(_method_group(command))


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
@method_options
@memory_option()
@output_option("Output file for the model; if omitted, only a summary is printed.")
@code_option
def fit(session: Session, method: str, options: MethodOptions) -> None:
    r"""Fit a model to DATA, and save it with its preprocessing.

    The default kernel is RBF(length_scale='median'). A Gaussian process (gp) adds White(noise=0.1)
    and optimises the parameters of its kernel. Regression models centre the target: ridge and svr
    have an intercept, gp subtracts the mean and divides by the standard deviation.

    \b
    Examples:
      mercer fit ridge houses.csv --target price --standardize -o model.mercer
      mercer fit svc cells.parquet --target kind --set C=10 -o model.mercer
    """
    cls, parameters, targets = options.estimator(method)
    source, recipe = options.open(session, parameters)
    labels = targets == "labels"
    if options.show_code:
        y = f", recipe.targets(table, labels={labels})" if targets else ""
        click.echo(
            f'''"""Equivalent of `mercer fit {method}` on {source.title}."""

from mercer import {cls.__name__}, save
from mercer.tables import Recipe, TableModel, open_table

table = {open_table_code(source, options.data)}.table()
recipe = {recipe!r}.fit(table)
X = recipe.transform(table)
model = {cls.__name__}({keyword_code(parameters)}).fit(X{y})
save(TableModel(model, recipe), {options.output or "model.mercer"!r})'''
        )
        return
    table, recipe = read_table(session, source, recipe)
    if message := _centring_message(parameters):
        session.note(message)
    y_args = (recipe.targets(table, labels=labels),) if targets else ()
    with session.progress(method), session.capture_warnings():
        model = cls(**parameters).fit(recipe.transform(table), *y_args)
    save_model(session, model, recipe, source, options.output)
    report = getattr(model, "report_", None)
    text = f"{cls.__name__}({model.kernel_})\n{report or ''}".strip()
    session.result(
        text,
        estimator=cls.__name__,
        kernel=repr(model.kernel_),
        status=None if report is None else report.status.value,
        file=options.output,
    )


def _rows_with_target(
    recipe: tables.Recipe, target: str, table: tables.Table, session: Session
) -> tables.Table:
    """Return the table without the rows whose target is missing, and warn if there are any."""
    import numpy as np

    rows = np.flatnonzero(~tables.is_missing(table.column(target)))
    if len(rows) < len(table):
        session.warn(
            f"{len(table) - len(rows)} of {len(table)} rows have no target value and are not scored"
        )
    table = table.take(rows)
    report_dropped_rows(recipe, table, session)
    return table


def _check_labels(y: np.ndarray, classes: np.ndarray | None, source: str, session: Session) -> None:
    """Warn if some labels are unknown to the classifier; raise an error if all are unknown."""
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
        raise tables.TableError(
            f"{message}. Usually the labels are spelled differently in the two files; use the "
            f"spelling of the training data"
        )
    session.warn(f"{message}; rows with unknown labels count as errors")


@app.command()
@session_options
@click.argument("model")
@method_options
@option("--cv", "Number of cross-validation folds.", type=click.IntRange(2), default=5)
def score(session: Session, model: str, options: MethodOptions, cv: int) -> None:
    r"""Cross-validate a method on DATA, or score a saved model on DATA.

    MODEL is a method (ridge, gp, logistic, svc, svr or fisher), which is cross-validated, or a
    model file written by `mercer fit`. Cross-validation fits the preprocessing on the training rows
    of each fold. The score is R^2 for regression and accuracy for classification.

    \b
    Examples:
      mercer score ridge houses.csv --target price --standardize
      mercer score model.mercer new-houses.csv
    """
    if model in METHODS:
        _cross_validate(session, model, options, cv)
    else:
        _score_model(session, model, options)


def _score_model(session: Session, model: str, options: MethodOptions) -> None:
    """Print the score of a saved model on the rows of the input file."""
    if not Path(model).is_file():
        raise click.UsageError(
            f"{model!r} is neither a method ({', '.join(METHODS)}) nor a model file"
        )
    if options.data.has_column_options or options.target or options.kernel or options.more:
        raise click.UsageError(
            f"{model} is a fitted model, so its columns, target, kernel and parameters are "
            f"fixed; omit the options that set them, or give a method instead of a model file"
        )
    table = options.data.open(session).table()
    trained = load_with_recipe(model)
    recipe = trained.recipe
    if recipe is None or recipe.target is None:
        raise _no_target(model, "score")
    table = _rows_with_target(recipe, recipe.target, table, session)
    y = recipe.targets(table, labels=hasattr(trained.estimator, "classes_"))
    _check_labels(y, getattr(trained.estimator, "classes_", None), table.source, session)
    value = float(trained.estimator.score(recipe.transform(table), y))
    session.result(f"{value:.6g}", score=value, rows=len(y))


def _no_target(model: str, action: str) -> click.UsageError:
    """Return the error for a model without a target."""
    return click.UsageError(f"{model} does not predict a target, so there is nothing to {action}")


def _cross_validate(session: Session, method: str, options: MethodOptions, cv: int) -> None:
    """Print the cross-validation scores of a method on the rows of the input file."""
    import numpy as np
    from sklearn.base import clone, is_classifier
    from sklearn.model_selection import KFold, StratifiedKFold

    cls, parameters, targets = options.estimator(method)
    if not targets:
        raise _no_target(method, "score")
    source, recipe = options.open(session, parameters)
    table, whole = read_table(session, source, recipe)
    # Detect the types of the columns now: in the few rows of one fold, a categorical column could
    # be mistaken for an identifier.
    recipe = clone(recipe).set_params(types=whole.types_, onehot=(), strict=False)
    if whole.points == "vectors":
        recipe.set_params(standardize=whole.is_standardized)
    table = table.take(whole.kept_rows(table))
    y = whole.targets(table, labels=targets == "labels")
    kind = StratifiedKFold if is_classifier(cls()) else KFold
    folds = kind(cv, shuffle=True, random_state=options.seed).split(np.zeros(len(y)), y)
    values = []
    with session.progress("folds") as update, session.capture_warnings():
        for train, test in folds:
            learned = clone(recipe).fit(table.take(train))
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
@method_options
@option(
    "--objective",
    "Objective to optimise: leave-one-out error, generalised cross-validation, marginal "
    "likelihood or kernel-target alignment.",
    type=click.Choice(["loo", "gcv", "likelihood", "alignment"]),
    default="loo",
)
@output_option("Output file for a model that is fitted with the optimised parameters.")
def tune(session: Session, method: str, options: MethodOptions, objective: str) -> None:
    """Optimise the kernel parameters and the regularisation of a method.

    Uses gradients of the objective. Prints options that can be passed to `mercer fit`.
    """
    cls, parameters, targets = options.estimator(method)
    if not targets:
        raise _no_target(method, "optimise")
    source, recipe = options.open(session, parameters)
    table, recipe = read_table(session, source, recipe)
    X, y = recipe.transform(table), recipe.targets(table, labels=targets == "labels")
    with session.progress("tuning"), session.capture_warnings():
        result = mercer.tune(cls(**parameters), X, y, objective, random_state=options.seed)
        model = result.estimator.fit(X, y) if options.output else result.estimator
    save_model(session, model, recipe, source, options.output)
    session.note(str(result))
    values = model.get_params(deep=False)
    regularisation = {name: values[name] for name in ("alpha", "C") if name in values}
    best = [f"--kernel {shlex.quote(repr(model.kernel))}"]
    best += [f"--set {name}={value!r}" for name, value in regularisation.items()]
    session.result(
        " ".join(best),
        kernel=repr(model.kernel),
        value=result.value,
        objective=objective,
        converged=result.converged,
        **regularisation,
    )
