from ._column_contents import is_missing as is_missing  # used by mercer.app.cli
from ._file_formats import FORMATS
from ._open_table import open_blocks, open_table, read_table
from ._preprocessing import ColumnTransform, Recipe, label_values
from ._table import Table, TableError, as_texts, suggest_name
from ._table import array_column as array_column  # used by mercer.app.explorer
from ._table import atomic_file as atomic_file  # used by mercer.app.cli
from ._table import column_from_texts as column_from_texts  # used by mercer.app.explorer
from ._table import output_format as output_format  # used by mercer.app.cli
from ._table import table_writer as table_writer  # used by mercer.app.cli
from ._table_model import Trained, load_trained, save_trained
from ._table_source import Source
from ._typed_columns import is_missing_value as is_missing_value  # used by mercer.app.explorer

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
