"""Save and load a model together with the preprocessing recipe for its input columns."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

import numpy as np

from .._core import length
from ._open_table import open_table
from ._preprocessing import Recipe, expand_to_all_rows
from ._table import TableError


@dataclass(frozen=True, eq=False)
class Trained:
    """A fitted estimator together with the preprocessing recipe for its input columns.

    `predict`, `predict_proba`, `decision_function` and `transform` accept a raw table: a path, a
    pandas or polars DataFrame, a `Table` or a source from `open_table`.  They apply the recipe
    and return one result per row, bit-for-bit identical to the output of `mercer predict` and
    `mercer transform`.  A row that the recipe drops because a value is missing
    (``impute="drop"``) gets the result NaN, or None if results are labels.  The target column is
    not required.

    Parameters
    ----------
    model : estimator
        The fitted estimator, whose input is the output of the recipe.
    recipe : Recipe, default=None
        The fitted recipe.  None for a model that was saved with `mercer.save`, without a recipe.
    metadata : dict of str, default={}
        How the model was created, for example the command and the input file.

    Examples
    --------
    >>> import os, tempfile
    >>> import pandas as pd
    >>> from mercer import KernelRidge
    >>> from mercer.tables import Recipe, Trained, load_trained, save_trained
    >>> houses = pd.DataFrame({"area": [50.0, 80.0, 120.0], "price": [100.0, 160.0, 240.0]})
    >>> recipe = Recipe(target="price", standardize=True).fit(houses)
    >>> model = KernelRidge(alpha=1e-6, kernel="linear", fit_intercept=True)
    >>> model = model.fit(recipe.transform(houses), recipe.targets(houses, labels=False))
    >>> path = os.path.join(tempfile.mkdtemp(), "model.mercer")
    >>> save_trained(Trained(model, recipe), path)
    >>> load_trained(path).predict(pd.DataFrame({"area": [100.0]})).round(2)
    array([200.])
    """

    model: Any
    recipe: Recipe | None = None
    metadata: dict[str, str] = field(default_factory=dict)

    def predict(self, table: Any, **options: Any) -> Any:
        """Return the prediction for each row; `options` are passed to the estimator's method."""
        return self._apply_to_rows("predict", table, options)

    def predict_proba(self, table: Any) -> Any:
        """Return the class probabilities for each row."""
        return self._apply_to_rows("predict_proba", table, {})

    def decision_function(self, table: Any) -> Any:
        """Return the values of the decision function for each row."""
        return self._apply_to_rows("decision_function", table, {})

    def transform(self, table: Any) -> Any:
        """Return the transformed values, such as principal components, for each row."""
        return self._apply_to_rows("transform", table, {})

    @property
    def row_recipe(self) -> Recipe:
        """The recipe for new rows, which does not require the target column."""
        if self.recipe is None:
            raise TableError(
                "this model has no recipe for the columns of a table - usually because it was "
                "saved with mercer.save - apply the estimator in the attribute `model` to points, "
                "or save model and recipe together with mercer.tables.save_trained"
            )
        return self.recipe.without_target()

    def _apply_to_rows(self, method_name: str, table: Any, options: dict[str, Any]) -> Any:
        """Apply a method of the estimator to blocks of rows; return one result per row."""
        recipe = self.row_recipe
        method: Callable[..., Any] | None = getattr(self.model, method_name, None)
        if method is None:
            raise AttributeError(f"{type(self.model).__name__} has no method {method_name!r}")
        rows, results, n = list[np.ndarray](), list[Any](), 0
        for block in open_table(table).blocks(recipe.text_columns):
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


def save_trained(trained: Trained, path: str | PathLike[str]) -> None:
    """Save a model and its recipe in one file, which `load_trained` can read.

    Parameters
    ----------
    trained : Trained
        The model with its recipe.
    path : str or path
        The file to write.
    """
    from ..persist import save

    notes = {"story": json.dumps(trained.metadata)}
    if trained.recipe is not None:
        notes["recipe"] = trained.recipe.to_json()
    save(trained.model, path, notes=notes)


def load_trained(path: str | PathLike[str], *, mmap: bool = False) -> Trained:
    """Load a model together with its recipe, if the file contains one.

    Parameters
    ----------
    path : str or path
        A file written by `save_trained`, `mercer.save` or a `mercer` command.
    mmap : bool, default=False
        Whether to memory-map the arrays instead of reading them.

    Returns
    -------
    Trained
        The model and its recipe; its method `predict` accepts raw tables.
    """
    from ..persist import load_with_notes

    model, notes = load_with_notes(path, mmap=mmap)
    recipe = notes.get("recipe")
    story = json.loads(notes.get("story", "{}"))
    return Trained(model, None if recipe is None else Recipe.from_json(recipe), story)
