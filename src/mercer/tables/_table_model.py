"""The `TableModel` class: a fitted estimator with the recipe for its input columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from .._core import length
from ._column_encoders import CategoryColumn, NumberColumn, TextColumn
from ._new_observations import predict_observations
from ._open_table import open_table
from ._recipe import Recipe, expand_to_all_rows
from ._table import TableError
from ._treatments import Treatment


@dataclass(frozen=True, eq=False)
class TableModel:
    """A fitted estimator together with the preprocessing recipe for its input columns.

    `mercer fit` saves a `TableModel`, and `mercer.load` returns it.  Its methods accept a raw
    table: a path, a pandas or polars DataFrame, a `Table` or a source from `open_table`.  They
    apply the recipe and return one result per row, bit-for-bit identical to the output of
    `mercer predict` and `mercer transform`.  A row that the recipe drops because a value is missing
    (``impute="drop"``) gets the result NaN, or None if results are labels.  The target column is
    not required.

    Parameters
    ----------
    estimator : estimator
        The fitted estimator, whose input is the output of the recipe.
    recipe : Recipe
        The fitted recipe.
    metadata : dict of str, default={}
        How the model was created, for example the command and the input file.

    See Also
    --------
    Recipe : The preprocessing.
    mercer.load : Loads a model that `mercer fit` or `mercer.save` has written.

    Examples
    --------
    >>> import os, tempfile
    >>> import mercer, pandas as pd
    >>> from mercer.tables import Recipe, TableModel
    >>> houses = pd.DataFrame({"area": [50.0, 80.0, 120.0], "price": [100.0, 160.0, 240.0]})
    >>> recipe = Recipe(target="price").fit(houses)
    >>> model = mercer.KernelRidge(alpha=1e-3, kernel="linear", fit_intercept=True)
    >>> model = model.fit(recipe.transform(houses), recipe.targets(houses, labels=False))
    >>> path = os.path.join(tempfile.mkdtemp(), "model.mercer")
    >>> mercer.save(TableModel(model, recipe), path)
    >>> mercer.load(path).predict(pd.DataFrame({"area": [100.0]})).round(2)
    array([200.])
    """

    estimator: Any
    recipe: Recipe
    metadata: dict[str, str] = field(default_factory=dict)

    def predict(self, table: Any, **options: Any) -> Any:
        """Return the prediction for each row of a table.

        Parameters
        ----------
        table : DataFrame, path, Table or Source
            The raw rows.
        **options
            Keyword arguments of the estimator's `predict`.  With ``return_std=True``, the standard
            deviations are those of new observations, including their noise, as ``mercer predict
            --std`` writes them (see `predict_observations`).

        Returns
        -------
        array of shape (n_rows,), or tuple of arrays
            The predictions.
        """
        if options == {"return_std": True}:
            return self._apply_to_rows("predict", table, {}, predict_observations)
        return self._apply_to_rows("predict", table, options)

    def predict_proba(self, table: Any) -> Any:
        """Return the class probabilities for each row of a table.

        Parameters
        ----------
        table : DataFrame, path, Table or Source
            The raw rows.

        Returns
        -------
        array of shape (n_rows, n_classes)
            The probabilities, in the order of `classes_`.
        """
        return self._apply_to_rows("predict_proba", table, {})

    def decision_function(self, table: Any) -> Any:
        """Return the values of the decision function for each row of a table.

        Parameters
        ----------
        table : DataFrame, path, Table or Source
            The raw rows.

        Returns
        -------
        array of shape (n_rows,) or (n_rows, n_classes)
            The values.
        """
        return self._apply_to_rows("decision_function", table, {})

    def transform(self, table: Any) -> Any:
        """Return the transformed values, such as principal components, for each row of a table.

        Parameters
        ----------
        table : DataFrame, path, Table or Source
            The raw rows.

        Returns
        -------
        array of shape (n_rows, n_components)
            The transformed values.
        """
        return self._apply_to_rows("transform", table, {})

    def score(self, table: Any) -> float:
        """Return the score of the predictions: the accuracy of a classifier, R^2 of a regression.

        Parameters
        ----------
        table : DataFrame, path, Table or Source
            The raw rows, with the target column.  Rows without a target are left out.

        Returns
        -------
        float
            The score.
        """
        recipe = self.recipe
        rows = open_table(recipe.open(table)).table(recipe.text_columns, recipe.notations_)
        y = recipe.targets(rows, labels=hasattr(self.estimator, "classes_"))
        return float(self.estimator.score(recipe.transform(rows), y))

    @property
    def classes_(self) -> np.ndarray:
        """The class labels of a classifier."""
        return self.estimator.classes_

    @property
    def feature_names_in_(self) -> np.ndarray:
        """The columns that the model uses; other columns of a table are ignored."""
        names = [encoder.name for encoder in self.recipe.encoders_]
        return np.array(names, dtype=object)

    def get_feature_names_out(self) -> np.ndarray:
        """Return the names of the features that the recipe computes, the input of the estimator.

        Returns
        -------
        array of str
            The names, such as "age" and "city=Bonn".
        """
        return self.recipe.get_feature_names_out()

    def to_code(self) -> str:
        """Return the source code of an equivalent scikit-learn pipeline.

        Returns
        -------
        str
            Python code.
        """
        return self.recipe.to_code(self.estimator)

    def __repr__(self) -> str:
        columns = ", ".join(map(str, self.feature_names_in_[:6]))
        more = ", ..." if len(self.feature_names_in_) > 6 else ""
        target = f", target {self.recipe.target!r}" if self.recipe.target else ""
        return f"<TableModel: {type(self.estimator).__name__} on {columns}{more}{target}>"

    @property
    def row_recipe(self) -> Recipe:
        """The recipe for new rows, which does not require the target column."""
        return self.recipe.without_target()

    def _apply_to_rows(
        self,
        method_name: str,
        table: Any,
        options: dict[str, Any],
        function: Callable[[Any, Any], Any] | None = None,
    ) -> Any:
        """Apply a method of the estimator to blocks of rows; return one result per row.

        If `function` is given, function(estimator, points) is called instead of the method.
        """
        recipe = self.row_recipe
        method: Callable[..., Any] | None = getattr(self.estimator, method_name, None)
        if method is None:
            raise AttributeError(f"{type(self.estimator).__name__} has no method {method_name!r}")
        if function is not None:
            method = partial(function, self.estimator)
        rows, results, n = list[np.ndarray](), list[Any](), 0
        for block in open_table(recipe.open(table)).blocks(recipe.text_columns, recipe.notations_):
            points = recipe.transform(block)
            if length(points):
                rows.append(n + recipe.kept_rows(block))
                results.append(method(points, **options))
            n += len(block)
        if not results:
            raise TableError(
                f"all {n} rows have missing values, so {method_name} has no input - fill in "
                f"the missing values, or fit the recipe with another value of impute"
            )
        kept_rows = np.concatenate(rows)
        if isinstance(results[0], tuple):
            return tuple(
                expand_to_all_rows(np.concatenate(part), kept_rows, n)
                for part in zip(*results, strict=True)
            )
        return expand_to_all_rows(np.concatenate(results), kept_rows, n)


def recipe_from_notes(values: dict[str, Any]) -> Recipe:
    """Return the recipe in a file of an earlier version, which stored it as JSON."""
    values = dict(values)
    parts, texts = values.pop("parts") or (), values.pop("target_text", False)
    recipe = Recipe(unknown="error")
    for name, value in values.items():
        setattr(recipe, name, tuple(value) if isinstance(value, list) else value)
    encoders = list[Any]()
    for part in parts:
        if recipe.points != "vectors":
            encoders.append(TextColumn(part["name"], None))
        elif part["categories"] is None:
            encoders.append(
                NumberColumn(part["name"], "number", part["fill"], part["mean"], part["scale"])
            )
        else:
            categories = tuple(category.strip() for category in part["categories"])
            encoders.append(
                CategoryColumn(part["name"], categories, fill=part["fill"], text=part["text"])
            )
    recipe.encoders_, recipe.target_text_, recipe.notations_ = tuple(encoders), texts, {}
    recipe.treatments_ = tuple(Treatment(e.name, e.type, "see encoders_") for e in encoders)
    names = [encoder.name for encoder in encoders]
    recipe.n_features_in_, recipe.feature_names_in_ = len(names), np.array(names, dtype=object)
    return recipe
