"""Tables from files, and recipes that turn their columns into points.

    table ──► Recipe ──► points and targets

A file is read in blocks of rows, so that it may be larger than the memory; a `Recipe` says what
becomes of each column, and is saved beside the model that was fitted to its points.  Nothing is
done to a column without a word: text and missing values are an error until the recipe names them.
"""

from ._blocks import open_blocks
from ._model import Trained, load_trained, save_trained
from ._read import FORMATS, open_table, read_table
from ._recipe import Part, Recipe, label_values
from ._recipe import missing as missing  # for mercer.cli
from ._source import Source
from ._table import Table, TableError, as_texts, nearest
from ._write import output_format as output_format  # for mercer.cli
from ._write import table_writer as table_writer  # for mercer.cli

__all__ = [
    "FORMATS",
    "Part",
    "Recipe",
    "Source",
    "Table",
    "TableError",
    "Trained",
    "as_texts",
    "label_values",
    "load_trained",
    "nearest",
    "open_blocks",
    "open_table",
    "read_table",
    "save_trained",
]
