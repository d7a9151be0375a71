"""Save and load fitted models as safetensors files, which are read without running code."""

from ._save_load import load, read_notes, save
from ._save_load import load_with_notes as load_with_notes  # for mercer.app.tables

__all__ = ["load", "read_notes", "save"]
