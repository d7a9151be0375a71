"""Python code that computes the embeddings of a scene again."""

from __future__ import annotations

import ast
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

from ...estimators import KernelPCA
from ...kernels import as_kernel
from ._embeddings import Embedding, IdentityEmbedding
from ._scene import Scene

_MAX_LISTED_ROWS = 200  # the code lists the selected rows if there are at most this many
_NOT_IN_CODE = ("verbose", "n_jobs")  # parameters that do not change the result
_KERNEL_PARAMETERS = ("gamma", "degree", "coef0", "kernel_params")  # parts of a named kernel


def view_code(scene: Scene, selection: np.ndarray | None = None) -> str:
    """Return Python code that computes the coordinates of both embeddings of a scene.

    Parameters
    ----------
    scene : Scene
        The scene.
    selection : ndarray of int, optional
        Indices of the selected rows, which the code contains if there are few.

    Returns
    -------
    str
        The code.  It assigns the coordinates in the visible dimensions to `embedding` and, if
        there are two embeddings, to `second_embedding`.
    """
    imports, lines = {"mercer": {"KernelPCA"}}, []
    if scene.reading is not None and scene.recipe is not None:
        imports["mercer.tables"] = {"Recipe", "open_table"}
        lines += [
            f"table = {scene.reading}.table()",
            f"recipe = {clone(scene.recipe)!r}.fit(table)",
            "X = recipe.transform(table)",
        ]
    else:
        lines.append("# X contains the points that were passed to explore.")
    if scene.n_fitted is not None:
        lines.append(f"# {len(scene) - scene.n_fitted} rows that were projected are not included.")
    for prefix, embedding in zip(("", "second_"), scene.embeddings, strict=False):
        lines += ["", *_embedding_code(prefix, embedding, imports)]
    if selection is not None and 0 < len(selection) <= _MAX_LISTED_ROWS:
        rows = f"selected = {np.asarray(selection).tolist()}"
        lines += ["", f"{rows}  # positions of the selected points, counted from 0"]
    if not any("KernelPCA(" in line for line in lines):
        imports["mercer"].discard("KernelPCA")
    first = [
        f"from {module} import {', '.join(sorted(names))}"
        for module, names in sorted(imports.items())
        if names
    ]
    return "\n".join([*first, "", *lines]) + "\n"


def _embedding_code(prefix: str, embedding: Embedding, imports: dict[str, set[str]]) -> list[str]:
    """Return the lines that compute an embedding, and add the imports that they need."""
    model = embedding.model
    dims = f"[:, {list(embedding.shown_dims)}]"
    if embedding.coordinates.shape[1] < 2:
        dims = ""
    signs = ""
    if -1 in embedding.signs:
        shown = [embedding.signs[j] for j in embedding.shown_dims if j < len(embedding.signs)]
        signs = f" * {shown}"
    if isinstance(model, IdentityEmbedding):
        return [f"{prefix}embedding = X{dims}"]
    if not isinstance(model, BaseEstimator):
        return [f"# The model {type(model).__name__} was passed to explore."]
    parameters, left_out = _parameters(model)
    module, name = _public_module(model), type(model).__name__
    imports.setdefault(module, set()).add(name)
    arguments = ", ".join(f"{key}={value!r}" for key, value in parameters.items())
    lines = [f"{prefix}model = {name}({arguments}).fit(X)"]
    if left_out:
        lines.insert(0, f"# The parameters {', '.join(left_out)} were passed as Python objects.")
    stored = "training_scores_" if isinstance(model, KernelPCA) else "embedding_"
    known = getattr(model, stored, None) is not None
    coordinates = f"{prefix}model.{stored}" if known else f"{prefix}model.transform(X)"
    return [*lines, f"{prefix}embedding = {coordinates}{dims}{signs}"]


def _parameters(model: Any) -> tuple[dict[str, Any], list[str]]:
    """Return the non-default parameters, and the names of those that cannot be written as code."""
    values, defaults = model.get_params(deep=False), type(model)().get_params(deep=False)
    if isinstance(model, KernelPCA):
        values["kernel"] = repr(model.kernel_)
        values |= {name: defaults[name] for name in _KERNEL_PARAMETERS}
    shown, left_out = {}, []
    for name, value in values.items():
        if name in _NOT_IN_CODE or repr(value) == repr(defaults[name]):
            continue
        if name == "kernel":
            value = value if isinstance(value, str) else repr(value)
            if not _is_kernel(value):
                left_out.append(name)
                continue
        if isinstance(value, np.generic):
            value = value.item()
        try:
            ast.literal_eval(repr(value))
        except (ValueError, SyntaxError):
            left_out.append(name)
        else:
            shown[name] = value
    return shown, left_out


def _is_kernel(text: str) -> bool:
    """Return True if a text, such as "rbf" or "RBF(1.0)", defines a kernel."""
    try:
        as_kernel(text)
    except ValueError:
        return False
    return True


def _public_module(model: Any) -> str:
    """Return the module from which the class of a model is imported."""
    parts = type(model).__module__.split(".")
    if parts[0] == "mercer":
        return "mercer"
    public = [part for part in parts if not part.startswith("_")]
    return ".".join(public)
