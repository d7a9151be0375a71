"""Read tables from files, and turn their columns into training points with a recipe.

    table ──► Recipe ──► points and targets

Files are read in blocks of rows, so a file may be larger than memory.  A `Recipe` describes
how each column is preprocessed, and is saved in the same file as the model.  No column is converted
silently: text columns and missing values raise an error unless the recipe states how to handle
them.
"""

from ._file_blocks import open_blocks
from ._open_table import FORMATS, open_table, read_table
from ._preprocessing import ColumnTransform, Recipe, label_values
from ._preprocessing import is_missing as is_missing  # used by mercer.app.cli
from ._table import Table, TableError, as_texts, suggest_name
from ._table_model import Trained, load_trained, save_trained
from ._table_source import Source
from ._table_writer import output_format as output_format  # used by mercer.app.cli
from ._table_writer import table_writer as table_writer  # used by mercer.app.cli

__all__ = [
    "FORMATS",
    "ColumnTransform",
    "Recipe",
    "Source",
    "Table",
    "TableError",
    "Trained",
    "as_texts",
    "label_values",
    "load_trained",
    "open_blocks",
    "open_table",
    "read_table",
    "save_trained",
    "suggest_name",
]
