from ._cell_notation import column_from_texts as column_from_texts  # used by mercer.app.explorer
from ._column_contents import is_missing as is_missing  # used by mercer.app.cli
from ._column_encoders import CategoryColumn, DateColumn, NumberColumn, TextColumn
from ._file_formats import FORMATS
from ._new_observations import has_observation_interval as has_observation_interval
from ._new_observations import has_observation_std as has_observation_std  # used by mercer.app.cli
from ._new_observations import predict_observation_interval, predict_observations
from ._open_table import open_blocks, open_table, read_table
from ._recipe import Recipe, UnknownValuesWarning
from ._table import Table, TableError, UnreadableColumn, as_texts, suggest_name
from ._table import array_column as array_column  # used by mercer.app.explorer
from ._table import atomic_file as atomic_file  # used by mercer.app.cli
from ._table import output_format as output_format  # used by mercer.app.cli
from ._table import table_writer as table_writer  # used by mercer.app.cli
from ._table_model import TableModel
from ._table_model import recipe_from_notes as recipe_from_notes  # used by mercer.persist
from ._table_source import Source
from ._targets import label_values
from ._treatments import DecisionError, Treatment
from ._typed_columns import TypedColumn as TypedColumn  # used by mercer.app.explorer
from ._typed_columns import as_microseconds as as_microseconds  # used by mercer.app.explorer
from ._typed_columns import is_missing_value as is_missing_value  # used by mercer.app.explorer
from ._typed_columns import object_column as object_column  # used by mercer.app.explorer

__all__ = [
    "FORMATS",
    "CategoryColumn",
    "DateColumn",
    "DecisionError",
    "NumberColumn",
    "Recipe",
    "Source",
    "Table",
    "TableError",
    "TableModel",
    "TextColumn",
    "Treatment",
    "UnknownValuesWarning",
    "UnreadableColumn",
    "as_texts",
    "label_values",
    "open_blocks",
    "open_table",
    "predict_observation_interval",
    "predict_observations",
    "read_table",
    "suggest_name",
]
