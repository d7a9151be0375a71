"""`model.explore()`: the one door of an estimator that leads up, to a room above it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["Explorable"]


class Explorable:
    """A model that puts points into a map, and can be looked at."""

    def explore(self, X: Any = None, **options: Any) -> Any:
        """Return the map to look at: in a notebook, on a server, or as a page of its own.

        Parameters
        ----------
        X : points, optional
            Those that were fitted to, by default, where the model has kept them.
        options
            Of `mercer.explore`.
        """
        return import_module("mercer").explore(self, X, **options)
