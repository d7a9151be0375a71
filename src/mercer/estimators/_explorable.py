"""The method `explore`, which opens the interactive explorer for a fitted embedding model.

`mercer.explore` imports the estimators, so the method imports it only when it is called.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["Explorable"]


class Explorable:
    """Mixin for models with an embedding that can be displayed interactively."""

    def explore(self, X: Any = None, **options: Any) -> Any:
        """Open the interactive explorer for the embedding of this model.

        Parameters
        ----------
        X : points, optional
            The points to show. By default the training points, if the model stores them.
        **options
            Options of `mercer.explore`.

        Returns
        -------
        Explorer
            The result of `mercer.explore`, which can be displayed in a notebook, served over HTTP,
            or saved as an HTML page.
        """
        return import_module("mercer").explore(self, X, **options)
