"""`load` loads a file or says what is wrong with it; `hostile_files.py` makes more of them."""

import os
import tempfile
import warnings

import hostile_files as hostile
import numpy as np
import pytest

from mercer import ModelFileError, load


@pytest.mark.parametrize("seed", range(4))
def test_hostile_files_are_refused(seed):
    ends = hostile.run(10 * len(hostile.CHANGES), seed)
    kinds = {change for change, end in ends if end == "refused"}
    # other numbers in an array are often as good as the first ones
    assert kinds >= {change.__name__ for change in hostile.CHANGES} - {"data_changed"}
    assert all(
        end == "refused" for change, end in ends if change in ("cut", "bomb", "length_changed")
    )


@pytest.fixture(scope="module")
def originals():
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return hostile.bases(folder)


def changed(originals, number, change, tmp_path):
    """Write a file with a change of its state, signed again, and return its path."""
    one = hostile.Content(originals[number])
    change(one)
    path = tmp_path / "m"
    path.write_bytes(one.written())
    return path


EVIL = {
    "a class that is none of ours": (
        lambda one: one.state.update({"class": "os.system"}),
        r"the top level there is an object of the class 'os\.system', which is unknown to mercer",
    ),
    "a private attribute": (
        lambda one: one.state["fields"].update({"__class__": 1}),
        r"an? Expansion with unknown attributes: \['__class__'\]",
    ),
    "a kernel that is code": (
        lambda one: one.state["fields"].update(kernel={"kernel": "__import__('os').system('x')"}),
        r"at kernel there is an invalid kernel: unexpected '\.': attributes are not",
    ),
    "another type": (
        lambda one: one.state["fields"].update(kernel=3),
        r"the kernel of Expansion in the file has the wrong type int",
    ),
    "another shape": (
        lambda one: one.state["fields"]["points"].update(shape=[2, 12]),
        r"at points there is an array of shape \(2, 12\) and type float64 that has 288 bytes",
    ),
    "fewer points": (
        lambda one: one.state["fields"].update(points={"list": [1, 2]}),
        r"the Expansion in the file has arrays of inconsistent sizes",
    ),
    "a tensor that is not there": (
        lambda one: one.state["fields"]["points"].update(array="nothing"),
        r"at points there is the name of a tensor that does not exist: 'nothing'",
    ),
    "a tensor that is not referenced": (
        lambda one: one.state["fields"].update(points={"list": [1] * 12}),
        r"the tensors \['points'\] are not used by the model",
    ),
    "a cycle": (
        lambda one: one.state["fields"].update(points={"list": [{"ref": 0}], "id": 0}),
        r"at points\.0 there is a reference to a value that was not defined before",
    ),
    "an unknown kind": (
        lambda one: one.state["fields"].update(points={"pickle": "x"}),
        r"at points there is a value of an unknown kind: \['pickle'\]",
    ),
    "offsets that overlap": (
        lambda one: one.header["coefficients"].update(data_offsets=[0, 192]),
        r"tensor 'coefficients' begins at byte 0 of the data, but the one before ends at",
    ),
    "a negative size": (
        lambda one: one.header["points"].update(shape=[-3, -12]),
        r"tensor 'points' has missing or inconsistent dtype, shape and data_offsets",
    ),
    "a size that overflows": (
        lambda one: one.header["points"].update(shape=[2**61, 2**61, 0]),
        r"tensor 'points' has missing or inconsistent dtype, shape and data_offsets",
    ),
    "another element": (
        lambda one: one.header["points"].update(dtype="PICKLE"),
        r"tensor 'points' has an unknown dtype",
    ),
}


@pytest.mark.parametrize("name", EVIL)
def test_what_is_wrong_is_said(name, originals, tmp_path):
    change, message = EVIL[name]
    path = changed(originals, 0, change, tmp_path)
    for mmap in (False, True):
        with pytest.raises(ModelFileError, match=rf"{os.path.basename(path)}: .*{message}"):
            load(path, mmap=mmap)


def test_numbers_that_compiled_loops_read_are_checked(originals, tmp_path):
    """Rows of a sparse matrix, edges of graphs, buckets of a sketch, points of a learner."""
    cases = [
        (9, "support_vectors_.indptr", "<i4"),
        (9, "support_vectors_.indices", "<i4"),
        (7, "support_vectors_.indices", "<i8"),
        (7, "support_vectors_.indptr", "<i8"),
        (7, "support_vectors_.offsets", "<i8"),
        (13, "_map.buckets", "<i8"),
        (12, "_learner.support", "<i8"),
    ]
    for number, tensor, kind in cases:
        for value in (-1, 2**30):

            def change(one, tensor=tensor, kind=kind, value=value):
                begin, end = one.header[tensor]["data_offsets"]
                numbers = np.frombuffer(
                    one.data, dtype=kind, count=(end - begin) // int(kind[2]), offset=begin
                )
                numbers = numbers.copy()
                numbers[-1] = value
                one.data[begin:end] = numbers.tobytes()

            if tensor == "_learner.support" and value > 0:
                continue  # places among points that are only numbered
            path = changed(originals, number, change, tmp_path)
            with pytest.raises(ModelFileError, match=r"invalid arrays|inconsistent sizes"):
                load(path)
