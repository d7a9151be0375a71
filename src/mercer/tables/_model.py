"""A trained model in one file: the estimator, and the recipe that makes its points of columns."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

import numpy as np

from .._points import length
from ._read import open_table
from ._recipe import Recipe, scattered
from ._table import TableError

__all__ = ["Trained", "load_trained", "save_trained"]


@dataclass(frozen=True, eq=False)
class Trained:
    """A fitted model with the recipe that makes its points of the columns of a table.

    `predict`, `predict_proba`, `decision_function` and `transform` take a table as it is in a
    file: a path, a DataFrame of pandas or polars, a `Table` or a source of `open_table`.  They
    apply the recipe and give one result per row, bit-for-bit what `mercer predict` and
    `mercer transform` write.  A row that the recipe leaves out because a value is missing
    (``impute="drop"``) gets NaN, or None in place of a label.  The target need not be there.

    Attributes
    ----------
    model : estimator
        The estimator without the recipe.
    recipe : Recipe or None
        None for a model that `mercer.save` wrote alone.
    story : dict
        Texts by name: the command, the input, ...

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
    story: dict[str, str] = field(default_factory=dict)

    def predict(self, table: Any, **options: Any) -> Any:
        """Return the prediction of each row; `options` are those of the estimator's method."""
        return self._each_row("predict", table, options)

    def predict_proba(self, table: Any) -> Any:
        """Return the probability of each class for each row."""
        return self._each_row("predict_proba", table, {})

    def decision_function(self, table: Any) -> Any:
        """Return the values of the decision function for each row."""
        return self._each_row("decision_function", table, {})

    def transform(self, table: Any) -> Any:
        """Return the components of each row."""
        return self._each_row("transform", table, {})

    @property
    def row_recipe(self) -> Recipe:
        """The recipe for new rows, whose target may be missing."""
        if self.recipe is None:
            raise TableError(
                "this model was saved without a recipe for the columns of a table - usually "
                "because mercer.save wrote it - use the estimator, `.model`, on points, or save "
                "model and recipe together with mercer.tables.save_trained"
            )
        return self.recipe.without_target()

    def _each_row(self, verb: str, table: Any, options: dict[str, Any]) -> Any:
        recipe = self.row_recipe
        method: Callable[..., Any] | None = getattr(self.model, verb, None)
        if method is None:
            raise AttributeError(f"a {type(self.model).__name__} has no method {verb!r}")
        rows, found, n = list[np.ndarray](), list[Any](), 0
        for block in open_table(table).blocks(recipe.text_columns):
            points = recipe.transform(block)
            if length(points):
                rows.append(n + recipe.kept(block))
                found.append(method(points, **options))
            n += len(block)
        if not found:
            raise TableError(f"all {n} rows have a missing value, so there is nothing to {verb}")
        kept = np.concatenate(rows)
        if isinstance(found[0], tuple):
            return tuple(
                scattered(np.concatenate(part), kept, n) for part in zip(*found, strict=True)
            )
        return scattered(np.concatenate(found), kept, n)


def save_trained(trained: Trained, path: str | PathLike[str]) -> None:
    """Write a model and its recipe into one file, which `load_trained` reads."""
    from ..persist import save

    notes = {"story": json.dumps(trained.story)}
    if trained.recipe is not None:
        notes["recipe"] = trained.recipe.to_json()
    save(trained.model, path, notes=notes)


def load_trained(path: str | PathLike[str], *, mmap: bool = False) -> Trained:
    """Return a model with its recipe, if the file has one.

    Its `predict` takes the columns of a table as they are in a file.

    Parameters
    ----------
    path : str or path
    mmap : bool
        Whether to map the arrays instead of reading them.
    """
    from ..persist import load_with_notes

    model, notes = load_with_notes(path, mmap=mmap)
    recipe = notes.get("recipe")
    story = json.loads(notes.get("story", "{}"))
    return Trained(model, None if recipe is None else Recipe.from_json(recipe), story)
