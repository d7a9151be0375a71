"""A trained model in one file: the estimator, and beside it the recipe of its points."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

from ._recipe import Recipe

__all__ = ["Trained", "load_trained", "save_trained"]


@dataclass(frozen=True, eq=False)
class Trained:
    """A fitted model, the recipe that made its points, and how it came to be.

    Attributes
    ----------
    model : estimator
    recipe : Recipe or None
        None for a model that `mercer.save` wrote alone.
    story : dict
        Texts by name: the command, the input, ...
    """

    model: Any
    recipe: Recipe | None = None
    story: dict[str, str] = field(default_factory=dict)


def save_trained(trained: Trained, path: str | PathLike[str]) -> None:
    """Write a model and its recipe into one file, which `mercer.load` reads as the model alone."""
    from ..persist import save

    notes = {"story": json.dumps(trained.story)}
    if trained.recipe is not None:
        notes["recipe"] = trained.recipe.to_json()
    save(trained.model, path, notes=notes)


def load_trained(path: str | PathLike[str], *, mmap: bool = False) -> Trained:
    """Return a model with its recipe, if the file has one."""
    from ..persist import load, read_notes

    model, notes = load(path, mmap=mmap), read_notes(path)
    recipe = notes.get("recipe")
    story = json.loads(notes.get("story", "{}"))
    return Trained(model, None if recipe is None else Recipe.from_json(recipe), story)
