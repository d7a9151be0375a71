"""Cross-validation of a method on the rows of a table."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ... import tables
from ._console import Session
from ._measures import Predictions, display_name

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class CrossValidation:
    """The value of each measure in each fold; `n_folds` may be smaller than requested."""

    n_folds: int
    values: dict[str, list[float]]

    def mean_and_std(self, measure: str) -> tuple[float, float]:
        """Return mean and standard deviation over the folds in which the measure is defined."""
        import numpy as np

        defined = [value for value in self.values[measure] if value == value]
        return (float(np.mean(defined)), float(np.std(defined))) if defined else (np.nan, np.nan)

    def to_json(self) -> dict[str, Any]:
        """Return mean, standard deviation and fold values of each measure."""
        result = {}
        for measure, values in self.values.items():
            mean, std = self.mean_and_std(measure)
            result[measure] = {"mean": mean, "std": std, "folds": values}
        return result


def format_score(mean: float, std: float | None = None) -> str:
    """Return a score for people, such as "0.9822 ± 0.0021"; "undefined" for NaN."""
    if mean != mean:
        return "undefined"
    digits = ".4f" if 0.01 <= abs(mean) < 1000 else ".4g"
    return f"{mean:{digits}}" if std is None else f"{mean:{digits}} ± {std:{digits}}"


def cross_validate(
    session: Session,
    estimator: tuple[type, dict[str, Any]],
    recipe: tables.Recipe,
    table: tables.Table,
    measures: list[str],
    *,
    labels: bool,
    cv: int,
    seed: int,
) -> CrossValidation:
    """Cross-validate a method; the preprocessing is fitted on the training rows of each fold.

    Parameters
    ----------
    session : Session
        The output of the command.
    estimator : tuple
        The estimator class and its parameters.
    recipe : Recipe
        The preprocessing, fitted on all rows.
    table : Table
        The rows.
    measures : list of str
        Names of measures (`parse_scoring`).
    labels : bool
        Whether the target consists of class labels.
    cv : int
        The number of folds; there are fewer if there are too few rows.
    seed : int
        The seed for shuffling the rows.

    Returns
    -------
    CrossValidation
        The values of the measures.
    """
    import numpy as np

    cls, parameters = estimator
    table = table.take(recipe.kept_rows(table))
    y = recipe.targets(table, labels=labels)
    fold_recipe = _unfitted(recipe)
    classes = np.unique(y) if labels else None
    if classes is not None:
        refuse_one_class(table, recipe, classes)
    folds = _choose_folds(session, y, cv, seed, labels=labels)
    names = {name: display_name(name, 0 if classes is None else len(classes)) for name in measures}
    values: dict[str, list[float]] = {name: [] for name in names.values()}
    with session.progress("cross-validation") as update, session.capture_warnings():
        # In the test rows of a fold, values that do not occur in the training rows are usual.
        warnings.simplefilter("ignore", tables.UnknownValuesWarning)
        for number, (train, test) in enumerate(folds, start=1):
            learned = fold_recipe.fit(table.take(train))
            X, y_train = learned.transform(table.take(train)), y[train]
            if labels and len(np.unique(y_train)) < 2:
                model = _constant_classifier(session, y_train)
            else:
                model = cls(**parameters).fit(X, y_train)
            X_test = learned.transform(table.take(test))
            predictions = Predictions(model, X_test, y[test], classes)
            for name, displayed in names.items():
                values[displayed].append(predictions.compute(name))
            update(number / len(folds))
    return CrossValidation(len(folds), values)


def _unfitted(recipe: tables.Recipe) -> tables.Recipe:
    """Return a new unfitted recipe that treats the columns as the fitted recipe does.

    The fitted recipe states the types of the columns.  In the few rows of one fold, a categorical
    column could be mistaken for an identifier.
    """
    from sklearn.base import clone

    unfitted = clone(recipe).set_params(types=recipe.types_, onehot=(), strict=False)
    if recipe.points == "vectors":
        unfitted.set_params(standardize=recipe.is_standardized)
    return unfitted


def refuse_one_class(table: tables.Table, recipe: tables.Recipe, y: np.ndarray) -> None:
    """Raise a `TableError` if all labels are equal."""
    if len(set(y.tolist())) < 2:
        rows = "1 row" if len(table) == 1 else f"{len(table)} rows"
        raise tables.TableError(
            f"{table.source}: a classifier needs at least two classes, but the target "
            f"{recipe.target!r} is {y.tolist()[0]!r} in all of the {rows} - choose another column "
            f"with --target"
        )


def _constant_classifier(session: Session, y: np.ndarray) -> Any:
    """Return a classifier that always predicts the only class of the training rows of a fold."""
    from sklearn.dummy import DummyClassifier

    session.note(
        f"In one fold, all training rows have the class {y.tolist()[0]!r}, which is then predicted "
        f"for its test rows."
    )
    return DummyClassifier(strategy="most_frequent").fit([[0.0]] * len(y), y)


def _choose_folds(
    session: Session, y: np.ndarray, cv: int, seed: int, *, labels: bool
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return training and test rows of each fold, and print a note if there are too few rows.

    Labels are stratified: each fold contains about the same fraction of each class.
    """
    import warnings

    import numpy as np
    from sklearn.model_selection import KFold, StratifiedKFold

    n = len(y)
    if n < 2:
        raise tables.TableError(
            f"cross-validation needs at least 2 rows, but there is {n or 'none'}; add rows"
        )
    if not labels:
        folds = max(2, min(cv, n // 2))  # R^2 needs at least two test rows
        if folds < cv:
            session.note(f"{n} rows are too few for {cv} folds; using {folds} folds.")
        return list(KFold(folds, shuffle=True, random_state=seed).split(y))
    classes, counts = np.unique(y, return_counts=True)
    folds = min(cv, int(counts.max()))
    if folds < 2:
        folds = min(cv, n)
        session.note(
            f"Every class has a single row, so the {folds} folds are not stratified, and no class "
            f"of a test row occurs in its training rows."
        )
        return list(KFold(folds, shuffle=True, random_state=seed).split(y))
    if folds < cv:
        session.note(f"No class has {cv} rows; using {folds} folds.")
    rare = [c for c, k in zip(classes.tolist(), counts, strict=True) if k < folds]
    if rare:
        listed = ", ".join(map(repr, rare[:8])) + (" ..." if len(rare) > 8 else "")
        session.note(
            f"{len(rare)} of {len(classes)} classes have fewer rows than there are folds "
            f"({folds}), so they are missing from some folds: {listed}."
        )
    splitter = StratifiedKFold(folds, shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the note above replaces the warning
        return list(splitter.split(np.zeros(n), y))
