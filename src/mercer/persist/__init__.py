"""Save and load fitted models as safetensors files, which are read without running code."""

from ._model import load, read_notes, save
from ._model import load_with_notes as load_with_notes  # for mercer.tables

__all__ = ["load", "read_notes", "save"]
