"""Models in files: safetensors with a header in JSON, written whole, read without running code."""

from ._model import load, read_notes, save

__all__ = ["load", "read_notes", "save"]
