"""Read tables from files, and turn their columns into training points with a recipe.

    table ──► Recipe ──► points and targets ──► estimator

Files are read in blocks of rows, so a file may be larger than memory.  A `Recipe` is a transformer
that chooses a treatment for each column, by its type, and describes it.  A `TableModel` is a fitted
estimator with its recipe; `mercer.save` and `mercer.load` store both in one file.
"""

from .._core import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
