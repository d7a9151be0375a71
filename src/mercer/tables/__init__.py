"""Read tables from files, and turn their columns into training points with a recipe.

    table ──► Recipe ──► points and targets

Files are read in blocks of rows, so a file may be larger than memory.  A `Recipe` describes
how each column is preprocessed, and is saved in the same file as the model.  No column is converted
silently: text columns and missing values raise an error unless the recipe states how to handle
them.
"""

from .._core import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
