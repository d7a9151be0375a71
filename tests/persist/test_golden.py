"""Files written by an earlier version are read bit for bit."""

import inspect
import json

import golden_models
import numpy as np
import pandas as pd
import pytest
import safetensors

from mercer import load
from mercer.persist._class_registry import FORMER_CLASSES, FORMER_FIELDS
from mercer.persist._encoder import Encoder
from mercer.persist._safetensors_file import read

# The coordinates of new points minimise a function, which stops at a tolerance.
ITERATIVE = {"BayesianGPLVM", "GPLVM", "KernelICA", "MetricMDS"}
PANDAS_MAJOR_VERSION = int(pd.__version__.partition(".")[0])
ANSWERS = json.loads((golden_models.FOLDER / "answers.json").read_text())


def with_present_names(node):
    """Replace former names of classes and fields in the state of a model."""
    if isinstance(node, list):
        return [with_present_names(part) for part in node]
    if not isinstance(node, dict):
        return node
    node = {key: with_present_names(part) for key, part in node.items()}
    if isinstance(node.get("class"), str):
        node["class"] = FORMER_CLASSES.get(node["class"], node["class"])
        renamed = FORMER_FIELDS.get(node["class"], {})
        if "fields" in node:
            node["fields"] = {renamed.get(k, k): v for k, v in node["fields"].items()}
    return node


def without_new_parameters(state, stored, encoder, model):
    """Return the state without the parameters that are newer than the file, which have defaults."""
    if not isinstance(state, dict) or not isinstance(stored.get("parameters"), dict):
        return state
    names, parameters = stored["parameters"].keys(), state["parameters"]
    for name in parameters.keys() - names:
        default = inspect.signature(type(model)).parameters[name].default
        assert parameters[name] == encoder.encode(default), name
    return {**state, "parameters": {k: v for k, v in parameters.items() if k in names}}


def test_every_model_has_a_file():
    assert golden_models.MODELS.keys() == ANSWERS.keys()
    assert {p.stem for p in golden_models.FOLDER.glob("*.safetensors")} == ANSWERS.keys()


@pytest.mark.parametrize("mmap", [False, True], ids=["read", "mapped"])
@pytest.mark.parametrize("name", golden_models.MODELS)
def test_golden_files(name, mmap):
    path = golden_models.FOLDER / f"{name}.safetensors"
    assert path.stat().st_size < 16_000
    model = load(path, mmap=mmap)
    # Every value equals the one in the file ...
    encoder = Encoder()
    state = json.loads(json.dumps(encoder.encode(model)))
    metadata, tensors = read(path, mapped=True)
    # Memory-mapped arrays are read-only, and pandas 2 has no default type for strings.
    if not mmap and not (name == "table" and PANDAS_MAJOR_VERSION < 3):
        stored = with_present_names(json.loads(metadata["state"]))
        assert without_new_parameters(state, stored, encoder, model) == stored
    assert encoder.arrays.keys() == tensors.keys()
    for tensor, array in encoder.arrays.items():
        assert array.dtype == tensors[tensor].dtype and array.shape == tensors[tensor].shape
        assert array.tobytes() == tensors[tensor].block.tobytes()
    # ... and predictions are the same, up to rounding, which depends on the BLAS.
    predicted = golden_models.answer(model, golden_models.MODELS[name][1])
    if name in ITERATIVE:
        np.testing.assert_allclose(predicted, ANSWERS[name], rtol=1e-4, atol=1e-5)
    elif isinstance(ANSWERS[name][0], str):
        assert predicted == ANSWERS[name]
    else:
        np.testing.assert_allclose(predicted, ANSWERS[name], rtol=1e-9, atol=1e-12)


def test_others_see_the_arrays_of_a_golden_file():
    with safetensors.safe_open(golden_models.FOLDER / "ridge.safetensors", "np") as file:
        np.testing.assert_array_equal(file.get_tensor("X_fit_").T, golden_models.X)
        assert file.metadata()["class"] == "KernelRidge"
