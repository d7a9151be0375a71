"""Choices for a table that is opened without options: the colour, and columns that are not used."""

from __future__ import annotations

import re
from math import prod
from shlex import quote
from typing import NamedTuple

from ...tables import CategoryColumn, NumberColumn, Recipe, Table, TableError, Treatment

# Names that usually mean the column to predict. They are compared in lower case.
_TARGET_NAMES = ("target", "class", "label", "labels", "species", "outcome", "diagnosis", "y")
_MAX_CLASSES = 20  # a column `y` with more distinct values is a coordinate rather than a class
_MAX_COLOURS = 10  # a category with more levels than distinguishable colours is not a good colour
_MAX_LISTED = 8  # a note lists at most this many columns
_FEATURE_TYPES = ("number", "boolean", "category", "date", "text", "texts", "graphs")


class FirstLook(NamedTuple):
    """How a table is shown if the user has not decided it.

    Attributes
    ----------
    recipe : Recipe
        The fitted recipe.
    color : str or None
        The column that colours the points.
    notes : tuple of str
        What was decided, for the terminal and the page.
    """

    recipe: Recipe
    color: str | None
    notes: tuple[str, ...]


def first_look(
    table: Table,
    recipe: Recipe,
    color: str | None = None,
    image: tuple[int, ...] | None = None,
) -> FirstLook:
    """Fit a recipe without free text and without the column to predict, and choose the colour.

    Free text is used only if there are no other columns, or if the user gives its type.  A column
    whose name usually means the column to predict, such as "species", colours the points and is not
    used for the embedding, unless the user lists it as a feature.  Otherwise, the first column with
    few categories is the colour.  If points are images, only the pixels are used if the names of
    as many columns as an image has pixels differ only in the number at their end,
    unless the user lists other features.  A strict recipe is not changed.

    Parameters
    ----------
    table : Table
        The rows.
    recipe : Recipe
        The unfitted recipe for the options of the user.
    color : str, optional
        The column that the user chose as the colour.
    image : tuple of int, optional
        The shape of the images, if the points are images.

    Returns
    -------
    FirstLook
        The fitted recipe, the colour and the notes.
    """
    if recipe.strict:
        return FirstLook(recipe.fit(table), color, ())
    onehot = () if isinstance(recipe.onehot, str) else recipe.onehot
    listed = {*(recipe.columns or ()), *(recipe.types or {}), *onehot}
    target = _target(table) if color is None else None
    is_feature = target is None or target in listed
    recipe = recipe.fit(table) if is_feature else _fit_without(recipe, table, (str(target),))
    texts = _free_texts(recipe, listed)
    if texts:
        recipe = _fit_without(recipe, table, texts)
    chosen = color or target or _category(recipe)
    others = () if image is None or listed else _other_than_pixels(table, recipe, prod(image))
    if others:
        recipe = _fit_without(recipe, table, others)
        chosen = chosen or _few_numbers(table, others)
    notes = list[str]()
    if color is None and chosen is not None:
        is_ignored = chosen in recipe.ignore
        how = ", which is not used for the embedding (--columns includes it)" if is_ignored else ""
        notes.append(
            f"The points are coloured by {chosen}{how}; --color NAME chooses another column."
        )
    reasons = {name: "not a pixel" for name in others}
    reasons |= {
        name: f"free text; use --type {quote(f'{name}=text')} to include it" for name in texts
    }
    return FirstLook(recipe, chosen, (*notes, *_unused(recipe, chosen, reasons)))


def _fit_without(recipe: Recipe, table: Table, names: tuple[str, ...]) -> Recipe:
    """Fit a recipe without some columns, or with them if there are no other features."""
    ignored = tuple(recipe.ignore)
    more = tuple(name for name in names if name not in ignored)
    try:
        return recipe.set_params(ignore=(*ignored, *more)).fit(table)
    except TableError:
        return recipe.set_params(ignore=ignored).fit(table)


def _target(table: Table) -> str | None:
    """Return the column that is usually predicted, or None."""
    lower = {name.strip().lower(): name for name in table.columns}
    for candidate in _TARGET_NAMES:
        name = lower.get(candidate)
        if name is None or table.kinds[name] not in ("numbers", "text"):
            continue
        if candidate != "y" or ("x" not in lower and _n_distinct(table, name) <= _MAX_CLASSES):
            return name
    return None


def _n_distinct(table: Table, name: str) -> int:
    return len({value for value in table.texts(name).tolist() if value is not None})


def _free_texts(recipe: Recipe, listed: set[str]) -> tuple[str, ...]:
    """Return the columns of free text that the user has not listed, if there are other features."""
    if recipe.points != "vectors" or {t.type for t in recipe.treatments_}.isdisjoint(
        _FEATURE_TYPES[:4]
    ):
        return ()
    return tuple(
        t.column for t in recipe.treatments_ if t.type == "text" and t.column not in listed
    )


def _other_than_pixels(table: Table, recipe: Recipe, n_pixels: int) -> tuple[str, ...]:
    """Return the used columns that are not pixels, or () if it is not clear which columns are.

    The pixels are columns of numbers whose names differ only in the number at their end, such as
    pixel0, pixel1, ..., if exactly one such group has the size of an image.
    """
    groups: dict[str, list[str]] = {}
    for name, kind in table.kinds.items():
        if kind == "numbers" and re.search(r"\d$", name):
            groups.setdefault(re.sub(r"\d+$", "", name), []).append(name)
    found = [set(names) for names in groups.values() if len(names) == n_pixels]
    if len(found) != 1:
        return ()
    used = [t.column for t in recipe.treatments_ if t.type in _FEATURE_TYPES]
    return tuple(name for name in used if name not in found[0])


def _few_numbers(table: Table, names: tuple[str, ...]) -> str | None:
    """Return the first column of numbers with few distinct values, usually a label, or None."""
    numbers = (name for name in names if table.kinds[name] == "numbers")
    return next((name for name in numbers if 2 <= _n_distinct(table, name) <= _MAX_COLOURS), None)


def _category(recipe: Recipe) -> str | None:
    """Return the first column of categories or booleans with few levels, or None."""
    for encoder in recipe.encoders_:
        if isinstance(encoder, CategoryColumn) and 2 <= len(encoder.levels) <= _MAX_COLOURS:
            return encoder.name
        if isinstance(encoder, NumberColumn) and encoder.type == "boolean":
            return encoder.name
    return None


def _unused(recipe: Recipe, color: str | None, known: dict[str, str]) -> list[str]:
    """Return a note about the columns that are not used for the embedding, except the colour."""
    unused = [t for t in recipe.treatments_ if t.type not in _FEATURE_TYPES and t.column != color]
    if not unused:
        return []
    reasons = [f"{t.column} ({known.get(t.column) or _reason(t)})" for t in unused[:_MAX_LISTED]]
    more = len(unused) - len(reasons)
    others = f", and {more} more" if more else ""
    return [f"Not used for the embedding: {', '.join(reasons)}{others}."]


def _reason(treatment: Treatment) -> str:
    """Return the reason why a column is not used for the embedding."""
    if treatment.type == "unreadable":
        return treatment.treatment.removeprefix("not used: ")
    return {"ignored": "excluded"}.get(treatment.type, treatment.type)


def describe_features(recipe: Recipe) -> list[str]:
    """Return a line for each treatment of columns, with the columns that it applies to."""
    groups: dict[str, list[str]] = {}
    for t in recipe.treatments_:
        missing = f" ({t.n_missing} missing)" if t.n_missing else ""
        if t.type in _FEATURE_TYPES:
            groups.setdefault(f"{t.type}, {t.treatment}", []).append(t.column + missing)
    lines = []
    for treatment, names in groups.items():
        more = f" and {len(names) - _MAX_LISTED} more" if len(names) > _MAX_LISTED else ""
        lines.append(f"{', '.join(names[:_MAX_LISTED])}{more}: {treatment}.")
    return lines
