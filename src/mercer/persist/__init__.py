"""Save and load fitted models as safetensors files; loading a file does not execute code."""

from ._save_load import load, read_notes, save
from ._save_load import load_with_notes as load_with_notes  # used by mercer.tables

__all__ = ["load", "read_notes", "save"]
