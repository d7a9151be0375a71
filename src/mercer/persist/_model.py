"""save() and load(): fitted models in files that anybody may read, and that run nothing."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import sklearn

from .._errors import ModelFileError
from .._version import __version__
from ..kernels import Kernel
from ._container import read, strict_json, write
from ._decode import Decoder
from ._encode import Encoder
from ._registry import Stored, by_class, by_name, extended

__all__ = ["load", "load_with_notes", "read_notes", "save"]

_FORMAT = 1  # of the file; classes have numbers of their own
_KERNEL = 2000  # characters of the kernel in the header, which is for people


def save(
    model: Any, path: str | os.PathLike[str], *, notes: Mapping[str, str] | None = None
) -> None:
    """Write a fitted model into one file, from which `load` reads it back to the last bit.

    The file is a safetensors file with arrays as they are, and all else as JSON in its header.
    It holds no code, and is written as a whole or not at all.

    Parameters
    ----------
    model : estimator, Expansion or Primal
        With points of any kind.  Functions are refused, as kernels and as other parameters,
        because a file holds no code: write a subclass of `mercer.kernels.Kernel` instead.
    path : str or path
    notes : dict of str, optional
        Texts by name that are kept beside the model; `read_notes` returns them.

    Examples
    --------
    >>> import os, tempfile
    >>> import mercer
    >>> model = mercer.SVC().fit([[0.0], [1.0], [2.0], [3.0]], ["a", "a", "b", "b"])
    >>> path = os.path.join(tempfile.mkdtemp(), "model.safetensors")
    >>> mercer.save(model, path)
    >>> mercer.load(path).predict([[0.5], [2.5]])
    array(['a', 'b'], dtype='<U1')
    """
    if type(model) not in by_class():
        raise TypeError(
            f"mercer.save writes estimators of mercer, Expansion and Primal, got {model!r:.200}; "
            f"pipelines of scikit-learn with such estimators in them are for skops.io"
        )
    if hasattr(model, "_validate_params"):
        model._validate_params()  # what `load` would refuse is refused while the model is there
    encoder = Encoder()
    state = encoder.encode(model)
    metadata = {
        "format": "mercer",
        "format_version": str(_FORMAT),
        "mercer": __version__,
        "numpy": np.__version__,
        "scikit-learn": sklearn.__version__,
        "class": by_class()[type(model)].name,
        "kernel": _kernel_of(model),
        "classes": _json(dict(sorted(encoder.classes.items()))),
        "state": _json(state),
        "notes": _json(dict(notes or {})),
    }
    write(path, metadata, encoder.arrays)


def load(path: str | os.PathLike[str], mmap: bool = False, *, classes: Iterable[type] = ()) -> Any:
    """Read a model that `save` has written.

    Nothing in the file is executed, and nothing is imported: classes are looked up in a table, and
    everything is checked, sizes before anything of such a size is made.

    Parameters
    ----------
    path : str or path
    mmap : bool
        Whether to map the arrays instead of reading them: they are then read-only, on the disk,
        and come into memory as they are needed.  The fingerprint of the file is not checked.
    classes : classes of kernels, optional
        Your own, if the model has one: subclasses of `mercer.kernels.Kernel`.

    Returns
    -------
    estimator, Expansion or Primal

    Raises
    ------
    ModelFileError
        A ValueError that says what is wrong with the file, and where.  It is also raised for a
        model of `mercer fit` whose points are not the columns of a table as they are, but
        standardised, one-hot or imputed ones: without them its predictions would be wrong.
        `mercer.tables.load_trained` reads the model together with that recipe.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> import mercer
    >>> from mercer.kernels import RBF
    >>> f = mercer.Expansion(RBF(2.0), np.eye(3), np.ones(3))
    >>> path = os.path.join(tempfile.mkdtemp(), "mean.safetensors")
    >>> mercer.save(f, path)
    >>> mercer.load(path, mmap=True)
    <Expansion: 1 function on 3 points, RBF(length_scale=2.0)>
    """
    model, notes = load_with_notes(path, mmap, classes=classes)
    place = os.fspath(path)
    if prepared := _prepared_columns(notes, place):
        raise ModelFileError(
            f"{place!s}: the model was fitted to columns that a recipe prepares ({prepared}), and "
            f"mercer.load returns estimators without their recipe, so that predictions from raw "
            f"columns would be wrong - usually a model of `mercer fit` or `mercer pca` - use "
            f"mercer.tables.load_trained({place!r}): its predict takes the raw table and applies "
            f"the recipe, as `mercer predict` does, and its attribute model is the bare estimator"
        )
    return model


def load_with_notes(
    path: str | os.PathLike[str], mmap: bool = False, *, classes: Iterable[type] = ()
) -> tuple[Any, dict[str, str]]:
    """Return a model, and the texts that `save` stored with it."""
    table = extended(classes) if classes else by_name()
    try:
        metadata, tensors = read(path, mapped=mmap)
        return _model(metadata, tensors, table), _notes(metadata)
    except ModelFileError as error:
        raise ModelFileError(f"{os.fspath(path)!s}: {error}") from error.__cause__


def _prepared_columns(notes: dict[str, str], place: Any) -> str:
    """Describe how the recipe in the notes changes columns; "" if it does not change them.

    The text is that of `mercer.tables.Recipe.to_json`.
    """
    if "recipe" not in notes:
        return ""
    recipe = strict_json(notes["recipe"], f"{place!s}: its recipe")
    recipe = recipe if isinstance(recipe, dict) else {}
    parts = [part for part in recipe.get("parts") or () if isinstance(part, dict)]
    scaled = sum((part.get("mean"), part.get("scale")) != (0.0, 1.0) for part in parts)
    onehot = sum(part.get("categories") is not None for part in parts)
    filled = sum(part.get("fill") is not None for part in parts)
    chosen = len(recipe.get("columns") or ())
    done = {"standardised": scaled, "one-hot": onehot, "imputed": filled}
    said = [f"{count} {what}" for what, count in done.items() if count]
    return ", ".join(said + [f"{chosen} selected in a certain order"] * (chosen > 1))


def read_notes(path: str | os.PathLike[str]) -> dict[str, str]:
    """Return the texts that `save` was given beside a model, without reading the model."""
    try:
        metadata, _ = read(path, mapped=True)
        return _notes(metadata)
    except ModelFileError as error:
        raise ModelFileError(f"{os.fspath(path)!s}: {error}") from error.__cause__


def _notes(metadata: dict[str, str]) -> dict[str, str]:
    found = strict_json(metadata.get("notes", "{}"), "its notes")
    if not isinstance(found, dict) or not all(isinstance(v, str) for v in found.values()):
        raise ModelFileError("its notes are not texts by name")
    return found


def _model(metadata: dict[str, str], tensors: Any, table: dict[str, Stored]) -> Any:
    if metadata.get("format") != "mercer" or metadata.get("format_version") != str(_FORMAT):
        raise ModelFileError(
            f"it has the format {metadata.get('format', '')[:40]!r} "
            f"{metadata.get('format_version', '')[:40]}, and this version of mercer reads "
            f"'mercer' {_FORMAT}; install the version that wrote it, {metadata.get('mercer')!r:.40}"
        )
    formats = strict_json(metadata.get("classes", ""), "its list of classes")
    if not isinstance(formats, dict):
        raise ModelFileError("its list of classes is none")
    for name, number in formats.items():
        if name in table and number != table[name].format:
            raise ModelFileError(
                f"it has a {name} of format {number!r:.20}, and this version of mercer reads "
                f"{table[name].format}; install the version that wrote it"
            )
    state = strict_json(metadata.get("state", ""), "its state")
    decoder = Decoder(tensors, {name: table[name] for name in formats if name in table})
    try:
        model = decoder.decode(state)
    except RecursionError:
        raise ModelFileError("its values are too deep inside each other") from None
    if type(model) not in by_class() or by_class()[type(model)].name != metadata.get("class"):
        raise ModelFileError("its state is not the model that its header names")
    if len(decoder.used) < len(tensors):
        others = sorted(tensors.keys() - decoder.used)
        raise ModelFileError(f"its tensors {str(others)[:80]} belong to nothing")
    return model


def _kernel_of(model: Any) -> str:
    """Return the kernel as text, for people who look into the file."""
    kernel = getattr(model, "kernel_", None)
    kernel = getattr(model, "kernel", "") if kernel is None else kernel
    text = repr(kernel) if isinstance(kernel, Kernel) else str(kernel)
    return text if len(text) <= _KERNEL else str(kernel)[:_KERNEL]


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)
