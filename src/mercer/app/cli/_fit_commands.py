"""Commands that train and evaluate models: mercer fit, score and tune."""

from __future__ import annotations

import copy
import shlex
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

import mercer

from ... import tables
from ._console import Command, Session, session_options
from ._cross_validation import CrossValidation, cross_validate, format_score, refuse_one_class
from ._main import app
from ._measures import LISTED, Predictions, display_name, explain_measures, parse_scoring
from ._model_commands import load_with_recipe, report_lines
from ._options import (
    RBF,
    ModelOptions,
    code_option,
    data_options,
    flag,
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
    "rfm": ("RFMRegressor", "numbers", {"kernel": "auto"}),
    "rfm-classes": ("RFMClassifier", "labels", {"kernel": "auto"}),
    "logistic": ("KernelLogisticRegression", "labels", {}),
    "svc": ("SVC", "labels", {}),
    "svr": ("SVR", "numbers", {}),
    "oneclass": ("OneClassSVM", "", {}),
    "kmeans": ("KernelKMeans", "", {}),
    "fisher": ("KernelFisherDiscriminant", "labels", {}),
}
method_argument = click.argument("method", type=click.Choice(list(METHODS)))
_MAX_TRAINING_ROWS = 10_000  # the training score is computed on at most this many rows


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
        self, session: Session, method: str, parameters: dict[str, Any]
    ) -> tuple[tables.Source, tables.Recipe]:
        """Open the input file, and return it with its unfitted preprocessing recipe.

        Raises a usage error if --target is missing, or if the method does not use a target.
        """
        targets = METHODS[method][1]
        if self.target is not None and not targets:
            by_type = {"labels": list[str](), "numbers": list[str]()}
            for name, (_, kind, _) in METHODS.items():
                if kind:
                    by_type[kind].append(name)
            raise click.UsageError(
                f"{method} does not predict a target. To exclude the column from the features, "
                f"use --ignore {shlex.quote(self.target)}. To predict it, use another method: "
                f"{', '.join(by_type['labels'])} for labels; {', '.join(by_type['numbers'])} for "
                f"numbers"
            )
        source = self.data.open(session)
        with session.reading(source):
            _ = source.shape  # reads the file
        if self.target is None and targets:
            raise missing_target(source, method, labels=targets == "labels")
        kernel = parameters.get("kernel")
        kernel = RBF if kernel == "auto" else kernel  # the estimator compares kernels on vectors
        return source, self.data.recipe(source, kernel, self.target)


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


def _warn_about_scale(
    session: Session, method: str, parameters: dict[str, Any], y: np.ndarray
) -> None:
    """Print a note if the default C or epsilon of svr does not suit the scale of the target."""
    if method != "svr" or len(y) < 2:
        return
    std = float(y.std())
    if "C" not in parameters and std > 10:
        session.note(
            f"The default C=1 is small for a target with standard deviation {std:.3g}, so the fit "
            f"may be poor; try --set C={std:.0e}, or `mercer tune svr`."
        )
    if "epsilon" not in parameters and 0 < std < 0.2:
        session.note(
            f"The default epsilon=0.1 is large for a target with standard deviation {std:.3g}, so "
            f"the fit may be poor; try --set epsilon={std / 10:.0e}."
        )


scoring_option = option(
    "--scoring",
    "Measure, or several separated by commas. Classification: "
    f"{', '.join(LISTED['classification'])}; regression: {', '.join(LISTED['regression'])}. Also "
    "scikit-learn's names and auc. f1, precision and recall are those of the second class, or the "
    "means over all classes (macro) if there are more than two. By default accuracy or r2.",
    "NAMES",
    multiple=True,
)


@app.command()
@session_options
@method_argument
@method_options
@option("--cv", "Also cross-validate with this number of folds.", "N", type=click.IntRange(2))
@scoring_option
@memory_option()
@output_option("Output file for the model; if omitted, only a summary is printed.")
@flag("-v --verbose", "Also print the report of the solver.")
@code_option
def fit(
    session: Session,
    method: str,
    options: MethodOptions,
    cv: int | None,
    scoring: tuple[str, ...],
    verbose: bool,
) -> None:
    r"""Fit a model, and save it with its preprocessing.

    The default kernel is RBF(length_scale='median'). A Gaussian process (gp) adds White(noise=0.1)
    and optimises the parameters of its kernel. Regression models centre the target: ridge and svr
    have an intercept, gp subtracts the mean and divides by the standard deviation.

    The summary contains the score on the training rows, which is usually better than the score for
    new rows. --cv estimates the score for new rows. With -o, the summary is a message on standard
    error, which --quiet suppresses.

    \b
    Examples:
      mercer fit ridge houses.csv --target price -o model.mercer
      mercer fit svc cells.parquet --target kind --set C=10 --cv 5
    """
    cls, parameters, targets = options.estimator(method)
    labels = targets == "labels"
    measures = parse_scoring(scoring, labels=labels) if targets else []
    if not targets and (cv is not None or scoring):
        raise _no_target(method, "score")
    source, recipe = options.open(session, method, parameters)
    if options.show_code:
        y_code = f", recipe.targets(table, labels={labels})" if targets else ""
        click.echo(
            f'''"""Equivalent of `mercer fit {method}` on {source.title}."""

from mercer import {cls.__name__}, save
from mercer.tables import Recipe, TableModel, open_table

table = {open_table_code(source, options.data)}.table()
recipe = {recipe!r}.fit(table)
X = recipe.transform(table)
model = {cls.__name__}({keyword_code(parameters)}).fit(X{y_code})
save(TableModel(model, recipe), {options.output or "model.mercer"!r})'''
        )
        return
    with session.reading(source):
        table, recipe = read_table(session, source, recipe)
    if message := _centring_message(parameters):
        session.note(message)
    X = recipe.transform(table)
    y = recipe.targets(table, labels=labels) if targets else None
    y_args = () if y is None else (y,)
    if labels and y is not None:
        refuse_one_class(table, recipe, y)
    if y is not None:
        _warn_about_scale(session, method, parameters, y)
    start = perf_counter()
    with session.progress(f"fitting {cls.__name__}"), session.capture_warnings():
        model = cls(**parameters).fit(X, *y_args)
    summary = FitSummary(model, X, y, perf_counter() - start)
    save_model(session, model, recipe, source, options.output)
    if message := explain_measures(measures, getattr(model, "classes_", None)):
        session.note(message)
    with session.progress("scoring"), session.capture_warnings():
        summary.compute_scores(measures)
    if cv is not None:
        summary.cross_validation = cross_validate(
            session,
            (cls, parameters),
            recipe,
            table,
            measures,
            labels=labels,
            cv=cv,
            seed=options.seed,
        )
    session.summary(summary.text(verbose), options.output, **summary.to_json(options.output))


class FitSummary:
    """What `mercer fit` prints about a fitted model.

    Parameters
    ----------
    model : estimator
        The fitted model.
    X : points
        The training points.
    y : ndarray or None
        Their targets.
    seconds : float
        The time of the fit.
    """

    def __init__(self, model: Any, X: Any, y: np.ndarray | None, seconds: float) -> None:
        from ..._core import length

        self.model, self.X, self.y, self.seconds = model, X, y, seconds
        self.n = length(X)
        self.n_features = X.shape[1] if hasattr(X, "shape") else None
        self.scores = dict[str, float]()
        self.n_scored = 0
        self.cross_validation: CrossValidation | None = None

    def compute_scores(self, measures: list[str]) -> None:
        """Compute the scores on the training rows, or on a part of them if there are many."""
        if self.y is None:
            return
        from ..._core import take
        from ._pca_job import evenly_spaced

        rows = evenly_spaced(self.n, _MAX_TRAINING_ROWS)
        self.n_scored, classes = len(rows), getattr(self.model, "classes_", None)
        predictions = Predictions(self.model, take(self.X, rows), self.y[rows], classes)
        n_classes = 0 if classes is None else len(classes)
        self.scores = {
            display_name(name, n_classes): predictions.compute(name) for name in measures
        }

    @property
    def n_support(self) -> int | None:
        """The number of support vectors; None if the model is not a support vector machine."""
        support = getattr(self.model, "support_", None)
        return None if support is None else len(support)

    @property
    def n_landmarks(self) -> int | None:
        """The number of landmarks; None if the model uses all training points."""
        from ..._core import length

        if getattr(self.model, "solver", None) not in ("auto", "nystroem", "krill"):
            return None
        expansion = getattr(self.model, "expansion_", None)
        count = self.n if expansion is None else length(expansion.points)
        is_reduced = self.model.solver != "auto" or hasattr(self.model, "log_marginal_likelihood")
        return count if is_reduced and count < self.n else None

    def text(self, verbose: bool) -> str:
        """Return the summary, one property per line."""
        rows = [("rows", str(self.n))]
        if self.n_features is not None:
            rows.append(("features", str(self.n_features)))
        part = f"{self.n_scored} of " if self.n_scored < self.n else ""
        for name, value in self.scores.items():
            warning = f"on {part}the training rows, not an estimate for new rows"
            rows.append((name, f"{format_score(value)} {warning}"))
        if self.cross_validation is not None:
            for name in self.cross_validation.values:
                score = format_score(*self.cross_validation.mean_and_std(name))
                folds = self.cross_validation.n_folds
                rows.append((name, f"{score} in cross-validation with {folds} folds"))
        if self.n_support is not None:
            rows.append(("support vectors", f"{self.n_support} of {self.n} rows"))
        if self.n_landmarks is not None:
            rows.append(("landmarks", str(self.n_landmarks)))
        rows += self._unsupervised()
        rows.append(("time", f"{self.seconds:.3g} s"))
        width = max(len(name) for name, _ in rows)
        lines = [f"{type(self.model).__name__}({self.model.kernel_})"]
        lines += [f"{name:<{width}}  {value}" for name, value in rows]
        return "\n".join([*lines, *(report_lines(self.model) if verbose else ())])

    def _unsupervised(self) -> list[tuple[str, str]]:
        """Return the properties of a model without targets: cluster sizes, or outliers."""
        import numpy as np

        if self.y is not None:
            return []
        if hasattr(self.model, "labels_"):
            sizes = np.sort(np.bincount(self.model.labels_))[::-1].tolist()
            shown = " ".join(map(str, sizes[:20])) + (" ..." if len(sizes) > 20 else "")
            return [("clusters", f"{len(sizes)}, with {shown} rows")]
        outliers = int((self.model.predict(self.X) == -1).sum())
        return [("outliers", f"{outliers} of {self.n} training rows")]

    def to_json(self, output: str | None) -> dict[str, Any]:
        """Return the summary as values for JSON."""
        report, validated = getattr(self.model, "report_", None), self.cross_validation
        return {
            "estimator": type(self.model).__name__,
            "kernel": repr(self.model.kernel_),
            "rows": self.n,
            "features": self.n_features,
            "training_scores": self.scores,
            "cross_validation": None if validated is None else validated.to_json(),
            "support_vectors": self.n_support,
            "landmarks": self.n_landmarks,
            "seconds": self.seconds,
            "status": None if report is None else report.status.value,
            "file": output,
        }


def missing_target(source: tables.Source, method: str, *, labels: bool) -> click.UsageError:
    """Return the error for a missing --target, which lists the columns and proposes one."""
    kinds = source.shape.kinds
    listed = ", ".join(f"{name} ({kind})" for name, kind in list(kinds.items())[:20])
    more = f" and {len(kinds) - 20} more" if len(kinds) > 20 else ""
    likely = _likely_target(next(iter(source.blocks())), labels=labels)
    proposal = "" if likely is None else f" Probably: --target {shlex.quote(likely)}"
    return click.UsageError(
        f"{method} predicts a column, so it needs --target NAME. {source.name} has the columns "
        f"{listed}{more}.{proposal}"
    )


# Common names of target columns, in lower case; earlier names are proposed first.
_TARGET_NAMES = (
    *("target", "label", "class", "y", "outcome", "response", "species", "diagnosis", "survived"),
    *("churn", "price", "income", "salary", "quality", "kind", "category", "rating", "score"),
)
_MAX_CLASSES = 30  # a column with more distinct values is not proposed for a classifier


def _likely_target(table: tables.Table, *, labels: bool) -> str | None:
    """Return the column that is most likely the target, or None if no column is suitable.

    A target for a classifier has few distinct values; a target for a regression is numeric.  Of
    these columns, one with a common name is chosen, otherwise the last.
    """
    import numpy as np

    suitable = list[str]()
    for name, kind in table.kinds.items():
        if kind not in ("numbers", "text") or name in table.index_columns:
            continue
        column = table.columns[name]
        values = column[~tables.is_missing(column)]
        n_distinct = len(set(values.tolist()))
        if labels:
            whole = kind == "text" or bool(np.all(values == np.round(values)))
            is_suitable = whole and 2 <= n_distinct <= min(_MAX_CLASSES, max(2, len(values) // 2))
        else:
            is_suitable = kind == "numbers" and n_distinct > 2
        if is_suitable:
            suitable.append(name)
    by_name = {name.lower(): name for name in suitable}
    common = [by_name[name] for name in _TARGET_NAMES if name in by_name]
    return next(iter([*common, *suitable[::-1]]), None)


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
@scoring_option
def score(
    session: Session, model: str, options: MethodOptions, cv: int, scoring: tuple[str, ...]
) -> None:
    r"""Cross-validate a method, or score a saved model.

    MODEL is a method for a target (see `mercer fit --help`), which is cross-validated, or a
    model file written by `mercer fit`. Cross-validation fits the preprocessing on the training rows
    of each fold.

    Prints one line per measure to standard output: its name, and the mean ± standard deviation over
    the folds or, for a model file, the value. Errors such as rmse are positive, and smaller is
    better; scikit-learn's names for them, such as neg_root_mean_squared_error, select the same
    measures.

    \b
    Examples:
      mercer score ridge houses.csv --target price
      mercer score svc cells.parquet --target kind --scoring accuracy,f1,auc
      mercer score model.mercer new-houses.csv --scoring rmse,mae --quiet
    """
    if model in METHODS:
        _score_method(session, model, options, cv, scoring)
    else:
        _score_model(session, model, options, scoring)


def _score_model(
    session: Session, model: str, options: MethodOptions, scoring: tuple[str, ...]
) -> None:
    """Print the scores of a saved model on the rows of the input file."""
    if not Path(model).is_file():
        raise click.UsageError(
            f"{model!r} is neither a method ({', '.join(METHODS)}) nor a model file"
            f"{tables.suggest_name(model, METHODS).rstrip(';')}"
        )
    if options.data.has_column_options or options.target or options.kernel or options.more:
        raise click.UsageError(
            f"{model} is a fitted model, so its columns, target, kernel and parameters are "
            f"fixed; omit the options that set them, or give a method instead of a model file"
        )
    loaded = load_with_recipe(model)
    recipe, estimator = loaded.recipe, loaded.estimator
    if recipe is None or recipe.target is None:
        raise _no_target(model, "score")
    classes = getattr(estimator, "classes_", None)
    measures = parse_scoring(scoring, labels=classes is not None)
    source = options.data.open(session, recipe=recipe)
    with session.reading(source):
        table = source.table(recipe.text_columns)
    table = _rows_with_target(recipe, recipe.target, table, session)
    y = recipe.targets(table, labels=classes is not None)
    _check_labels(y, classes, table.source, session)
    if message := explain_measures(measures, classes):
        session.note(message)
    n_classes = 0 if classes is None else len(classes)
    with session.progress("scoring"), session.capture_warnings():
        predictions = Predictions(estimator, recipe.transform(table), y, classes)
        scores = {display_name(name, n_classes): predictions.compute(name) for name in measures}
    session.note(f"{table.source}: {len(y)} rows scored")
    first = next(iter(scores))
    session.result(
        "\n".join(f"{name} {_exact(value)}" for name, value in scores.items()),
        measure=first,
        score=scores[first],
        scores=scores,
        rows=len(y),
    )


def _exact(value: float) -> str:
    """Return a score with six significant digits; "undefined" for NaN."""
    return "undefined" if value != value else f"{value:.6g}"


def _no_target(model: str, action: str) -> click.UsageError:
    """Return the error for a model without a target."""
    return click.UsageError(f"{model} does not predict a target, so there is nothing to {action}")


def _score_method(
    session: Session, method: str, options: MethodOptions, cv: int, scoring: tuple[str, ...]
) -> None:
    """Print the cross-validation scores of a method on the rows of the input file."""
    import numpy as np

    cls, parameters, targets = options.estimator(method)
    if not targets:
        raise _no_target(method, "score")
    labels = targets == "labels"
    measures = parse_scoring(scoring, labels=labels)
    source, recipe = options.open(session, method, parameters)
    with session.reading(source):
        table, recipe = read_table(session, source, recipe)
    result = cross_validate(
        session,
        (cls, parameters),
        recipe,
        table,
        measures,
        labels=labels,
        cv=cv,
        seed=options.seed,
    )
    y = recipe.targets(table, labels=labels)
    _warn_about_scale(session, method, parameters, y)
    if message := explain_measures(measures, np.unique(y) if labels else None):
        session.note(message)
    for name, values in result.values.items():
        session.note(f"{name} of each fold: {' '.join(map(format_score, values))}")
    scores = result.to_json()
    first = next(iter(scores))
    session.result(
        "\n".join(f"{name} {format_score(*result.mean_and_std(name))}" for name in scores),
        measure=first,
        **scores[first],
        scores=scores,
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
@click.pass_context
def tune(
    ctx: click.Context, session: Session, method: str, options: MethodOptions, objective: str
) -> None:
    r"""Optimise the kernel parameters and the regularisation.

    Uses gradients of the objective. Prints a complete `mercer fit` command with the optimised
    parameters.

    \b
    Examples:
      mercer tune ridge houses.csv --target price
      mercer tune svc cells.parquet --target kind --objective alignment
    """
    cls, parameters, targets = options.estimator(method)
    if not targets:
        raise _no_target(method, "optimise")
    if METHODS[method][2].get("kernel") == "auto":
        raise click.UsageError(
            f"{method} chooses all its parameters during the fit; use mercer fit {method}"
        )
    source, recipe = options.open(session, method, parameters)
    with session.reading(source):
        table, recipe = read_table(session, source, recipe)
    X, y = recipe.transform(table), recipe.targets(table, labels=targets == "labels")
    with session.progress("tuning"), session.capture_warnings():
        result = mercer.tune(cls(**parameters), X, y, objective, random_state=options.seed)
        model = result.estimator.fit(X, y) if options.output else result.estimator
    save_model(session, model, recipe, source, options.output)
    session.note(str(result))
    before, after = cls(**parameters).get_params(deep=False), model.get_params(deep=False)
    changed = {k: v for k, v in after.items() if k != "kernel" and repr(v) != repr(before[k])}
    kept = tuple(text for text in options.more if text.partition("=")[0] not in changed)
    words = ["mercer", "fit", *_given_words(ctx, skip=("objective", "kernel", "more", "output"))]
    kernel = repr(_without_term_weights(model.kernel, before["kernel"]))
    words += ["--kernel", kernel]
    for text in (*kept, *(f"{name}={value!r}" for name, value in changed.items())):
        words += ["--set", text]
    session.result(
        shlex.join(words),
        kernel=kernel,
        value=result.value,
        objective=objective,
        converged=result.converged,
        command=shlex.join(words),
        **{name: after[name] for name in ("alpha", "C") if name in after},
    )


def _without_term_weights(kernel: Any, given: Any) -> Any:
    """Return a tuned kernel on texts without the weights of terms, which `fit` computes again."""
    from ...kernels import parse_if_expression

    weights = [name for name, value in kernel.get_params().items() if isinstance(value, dict)]
    if not weights:
        return kernel
    parameters = parse_if_expression(given).get_params()
    computed = {name: True for name in weights if parameters.get(name) is True}
    return copy.deepcopy(kernel).set_params(**computed)


def _given_words(ctx: click.Context, skip: tuple[str, ...]) -> list[str]:
    """Return the arguments and options that the user gave, except `skip` and the output options."""
    words, skip = list[str](), (*skip, "quiet", "as_json", "debug")
    for parameter in ctx.command.params:
        name = str(parameter.name)
        value, origin = ctx.params.get(name), ctx.get_parameter_source(name)
        if name in skip or origin is not click.core.ParameterSource.COMMANDLINE:
            continue
        if isinstance(parameter, click.Argument):
            words.append(str(value))
        elif isinstance(value, bool):
            words.append((parameter.opts if value else parameter.secondary_opts)[-1])
        elif getattr(parameter, "multiple", False):
            words += [word for item in value or () for word in (parameter.opts[-1], str(item))]
        else:
            text = ",".join(value) if isinstance(value, tuple) else str(value)
            words += [parameter.opts[-1], text]
    return words
