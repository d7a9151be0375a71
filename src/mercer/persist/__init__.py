"""Models in files: safetensors with a header in JSON, written whole, read without running code."""

from ._model import load, save

__all__ = ["load", "save"]
