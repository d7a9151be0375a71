"""Save and load fitted models; loading a file does not execute code."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import sklearn
from sklearn.pipeline import Pipeline

from .._core import ModelFileError
from .._version import __version__
from ..kernels import Kernel
from ..tables import Recipe, TableModel, recipe_from_notes
from ._class_registry import StoredClass, by_class, by_name, with_user_classes
from ._decoder import Decoder
from ._encoder import Encoder
from ._safetensors_file import FilePath, Json, Tensor, read, strict_json, write

_FORMAT = 1  # version of the file format; in addition, each class has its own version
_MAX_SHOWN_KERNEL = 2000  # maximum length of the kernel in the metadata, which is only informative


def save(model: object, path: FilePath, *, notes: Mapping[str, str] | None = None) -> None:
    """Save a fitted model to a file; `load` restores it bit for bit.

    The file is a safetensors file: arrays are stored as they are, and everything else as JSON in
    the header.  It does not contain code.  An existing file is replaced only when the new one is
    complete.

    Parameters
    ----------
    model : estimator, TableModel, Expansion or Primal
        The fitted model, with points of any kind.  A scikit-learn pipeline of a
        `mercer.tables.Recipe` and an estimator is stored as a `TableModel`.  Kernels and other
        parameters that are functions raise an error, because a file cannot contain code: write a
        subclass of `mercer.kernels.Kernel` instead.
    path : str or path
        The file to write.
    notes : dict of str, default=None
        Strings to store with the model, by name; `read_notes` returns them.

    Raises
    ------
    TypeError
        If the model contains a function or another object that a file cannot contain.

    See Also
    --------
    load : Load the model.
    compress : Reduce the size of a model before it is saved.

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
    model = _as_table_model(model)
    if type(model) not in by_class():
        search = "save its best_estimator_; " if hasattr(model, "best_estimator_") else ""
        raise TypeError(
            f"mercer.save stores estimators of mercer, Expansion and Primal, got an object of type "
            f"{type(model).__name__}; {search}to save a scikit-learn pipeline that contains such "
            f"estimators, use skops.io"
        )
    if hasattr(model, "_validate_params"):
        model._validate_params()  # detect errors now and not only in `load`
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


def load(path: FilePath, mmap: bool = False, *, classes: Iterable[type] = ()) -> Any:
    """Load a model that `save` has written.

    Nothing in the file is executed or imported: classes are looked up in a fixed table, and all
    names, types and sizes are checked before memory is allocated.

    Parameters
    ----------
    path : str or path
        The file.
    mmap : bool, default=False
        Whether to memory-map the arrays instead of reading them.  They are then read-only, and
        loaded into memory when they are used.  The fingerprint of the file is not checked.
    classes : iterable of classes, default=()
        User-defined kernels of the model: subclasses of `mercer.kernels.Kernel`.

    Returns
    -------
    estimator, TableModel, Expansion or Primal
        The model.  For a file that `mercer fit` or `mercer pca` has written, it is a `TableModel`,
        which predicts from raw tables; its attribute `estimator` is the model without the
        preprocessing of the columns.

    Raises
    ------
    ModelFileError
        If the file is not valid; the message states the problem and its position.

    See Also
    --------
    save : Save a model.

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
    table = with_user_classes(classes) if classes else by_name()
    try:
        metadata, tensors = read(path, mapped=mmap)
        model, notes = _decode_model(metadata, tensors, table), _notes(metadata)
        if "recipe" in notes:  # written by an earlier version
            story = strict_json(notes.get("story", "{}"), "the story")
            recipe = recipe_from_notes(strict_json(notes["recipe"], "the recipe"))
            model = TableModel(model, recipe, story if isinstance(story, dict) else {})
    except ModelFileError as error:
        raise ModelFileError(f"{os.fspath(path)!s}: {error}") from error.__cause__
    return model


def read_notes(path: FilePath) -> dict[str, str]:
    """Return the notes that were saved with a model, without loading the model.

    Parameters
    ----------
    path : str or path
        A file written by `save`.

    Returns
    -------
    dict of str
        The notes by name.
    """
    try:
        metadata, _ = read(path, mapped=True)
        return _notes(metadata)
    except ModelFileError as error:
        raise ModelFileError(f"{os.fspath(path)!s}: {error}") from error.__cause__


def _notes(metadata: dict[str, str]) -> dict[str, str]:
    """Return the notes in the metadata of a file."""
    notes = strict_json(metadata.get("notes", "{}"), "the notes")
    if not isinstance(notes, dict) or not all(isinstance(v, str) for v in notes.values()):
        raise ModelFileError("the notes are not a dictionary of strings")
    return notes


def _decode_model(
    metadata: dict[str, str], tensors: dict[str, Tensor], table: dict[str, StoredClass]
) -> Any:
    """Return the model of a file, whose classes are looked up in `table`."""
    if metadata.get("format") != "mercer" or metadata.get("format_version") != str(_FORMAT):
        raise ModelFileError(
            f"the file has the format {metadata.get('format', '')[:40]!r} "
            f"{metadata.get('format_version', '')[:40]}, but this version of mercer reads "
            f"'mercer' {_FORMAT}; install the version that wrote it, {metadata.get('mercer')!r:.40}"
        )
    formats = strict_json(metadata.get("classes", ""), "the list of classes")
    if not isinstance(formats, dict):
        raise ModelFileError("the list of classes is not a dictionary")
    for name, number in formats.items():
        if name in table and number != table[name].format:
            raise ModelFileError(
                f"the file has a {name} of format {number!r:.20}, but this version of mercer reads "
                f"format {table[name].format}; install the version that wrote it"
            )
    state = strict_json(metadata.get("state", ""), "the state")
    decoder = Decoder(tensors, {name: table[name] for name in formats if name in table})
    model = decoder.decode(state)
    if type(model) not in by_class() or by_class()[type(model)].name != metadata.get("class"):
        raise ModelFileError("the state is not an object of the class in the metadata")
    if len(decoder.used) < len(tensors):
        unused = sorted(tensors.keys() - decoder.used)
        raise ModelFileError(f"the tensors {str(unused)[:80]} are not used by the model")
    return model


def _as_table_model(model: Any) -> Any:
    """Return a `TableModel` for a pipeline of a recipe and an estimator, otherwise the model."""
    if isinstance(model, Pipeline) and len(model.steps) == 2 and isinstance(model[0], Recipe):
        return TableModel(model[1], model[0])
    return model


def _kernel_of(model: Any) -> str:
    """Return the kernel of a model as a string for the metadata, which `load` does not read."""
    model = model.estimator if isinstance(model, TableModel) else model
    kernel = getattr(model, "kernel_", None)
    kernel = getattr(model, "kernel", "") if kernel is None else kernel
    text = repr(kernel) if isinstance(kernel, Kernel) else str(kernel)
    return text if len(text) <= _MAX_SHOWN_KERNEL else str(kernel)[:_MAX_SHOWN_KERNEL]


def _json(value: Json) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)
