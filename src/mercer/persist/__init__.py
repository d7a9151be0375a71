"""Save and load fitted models as safetensors files; loading a file does not execute code."""

from ._save_load import load, read_notes, save

__all__ = ["load", "read_notes", "save"]
