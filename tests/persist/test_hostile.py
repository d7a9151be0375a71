"""`load` loads a file or says what is wrong with it; `hostile_files.py` makes more of them."""

import os
import sys
import tempfile
import warnings

import hostile_files as hostile
import numpy as np
import pytest

from mercer import ModelFileError, load
from mercer.persist._schema_checks import is_valid_csr


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
    "strings whose ends are not integers": (
        lambda one: one.state["fields"].update(
            points={"list": {"texts": "coefficients", "ends": "points"}}
        ),
        r"at points there is strings without valid end positions",
    ),
    "strings whose ends are not in the text": (
        lambda one: (
            one.header["points"].update(dtype="I64", shape=[36]),
            one.state["fields"].update(
                points={"list": {"texts": "coefficients", "ends": "points"}}
            ),
        ),
        r"at points there is strings with inconsistent end positions",
    ),
    "two element types of an array": (
        lambda one: one.state["fields"]["points"].update(type="<U5"),
        r"at points there is an array with two different element types",
    ),
    "a boolean that is neither 0 nor 1": (
        lambda one: (
            one.header["points"].update(dtype="BOOL", shape=[288]),
            one.state["fields"].update(points={"array": "points", "shape": [288]}),
        ),
        r"at points there is a boolean array with values other than 0 and 1",
    ),
    "a character that does not exist": (
        lambda one: (
            one.header["points"].update(dtype="U8", shape=[288]),
            one.state["fields"].update(points={"array": "points", "shape": [72], "type": "<U1"}),
        ),
        r"at points there is a string with an invalid character",
    ),
    "an axis twice": (
        lambda one: one.state["fields"]["points"].update(axes=[0, 0]),
        r"at points there is an array with an invalid order of axes",
    ),
    "a fraction in an integer": (
        lambda one: one.state["fields"].update(points={"scalar": "<i4", "value": 1.5}),
        r"at points there is a number that cannot be represented as int32",
    ),
    "a kernel that is too long": (
        lambda one: one.state["fields"].update(kernel={"kernel": "RBF()" + "+RBF()" * 2000}),
        r"at kernel there is a kernel of more than 10000 characters",
    ),
    "an object without fields": (
        lambda one: one.state.update(parameters=one.state.pop("fields")),
        r"the top level there is a Expansion without its fields",
    ),
    "a list of notes": (
        lambda one: one.metadata.update(notes="[1]"),
        r"the notes are not a dictionary of strings",
    ),
    "a list of classes": (
        lambda one: one.metadata.update(classes="[]"),
        r"the list of classes is not a dictionary",
    ),
    "a number that overflows": (
        lambda one: one.metadata.update(classes='{"RBF": 1e400}'),
        r"the list of classes contains a number that overflows",
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


def _table(kind, **parts):
    """Return a change that replaces the points by a table of these parts."""

    def change(one):
        entries = {"dict": list(parts), "values": list(parts.values())}
        one.state["fields"]["points"] = {"table": kind, "parts": entries}

    return change


_STRINGS = {"tuple": ["String", {"list": ["a", "b"]}]}
_NUMBERS = {"array": "points", "shape": [12, 3]}
EVIL_TABLES = {
    "another library": (
        _table("cudf.DataFrame", names={"list": []}, columns={"list": []}),
        r"a table of type 'cudf.DataFrame', which is not from pandas or polars",
    ),
    "a missing index": (
        _table("pandas.DataFrame", names={"list": []}, columns={"list": []}),
        r"a table in the file must have the keys columns, index, names",
    ),
    "fewer names": (
        _table("polars.DataFrame", names={"list": []}, columns={"list": [_STRINGS]}),
        r"a table in the file must have one name per column",
    ),
    "a Series of two columns": (
        _table("polars.Series", names={"list": ["a", "b"]}, columns={"list": [_STRINGS] * 2}),
        r"a Series in the file must have exactly one name",
    ),
    "an unknown column of pandas": (
        _table(
            "pandas.Series",
            names={"list": ["a"]},
            columns={"list": [{"tuple": ["object", 1]}]},
            index={"slice": [0, 2, 1]},
        ),
        r"a table in the file has a column of an unknown kind",
    ),
    "an unknown column of polars": (
        _table("polars.Series", names={"list": ["a"]}, columns={"list": [{"tuple": ["Int8", 1]}]}),
        r"a table in the file has a column of an unknown kind",
    ),
    "an unknown type of polars": (
        _table(
            "polars.Series",
            names={"list": ["a"]},
            columns={"list": [{"tuple": ["Object", _NUMBERS, _NUMBERS]}]},
        ),
        r"a table in the file has a column with inconsistent parts",
    ),
}


@pytest.mark.parametrize("name", EVIL_TABLES)
def test_tables_are_checked(name, originals, tmp_path):
    change, message = EVIL_TABLES[name]
    with pytest.raises(ModelFileError, match=message):
        load(changed(originals, 0, change, tmp_path))


def test_a_missing_library_of_a_table_is_named(originals, tmp_path, monkeypatch):
    change = _table("polars.Series", names={"list": ["a"]}, columns={"list": [_STRINGS]})
    path = changed(originals, 0, change, tmp_path)
    monkeypatch.setitem(sys.modules, "polars", None)  # `import polars` fails
    with pytest.raises(ModelFileError, match="contains a polars table; install polars"):
        load(path)


def _edge_between_graphs(one):
    begin, _ = one.header["support_vectors_.indices"]["data_offsets"]
    one.data[begin : begin + 8] = (29).to_bytes(8, "little")  # the last node of the last graph


@pytest.mark.parametrize(
    ("number", "change"),
    [
        (7, _edge_between_graphs),
        (7, lambda one: one.state["fitted"]["support_vectors_"]["fields"].update(weights=3)),
        (7, lambda one: one.state["fitted"]["support_vectors_"]["fields"].update(offsets=3)),
    ],
    ids=["edge between graphs", "weights are not an array", "offsets are not an array"],
)
def test_graphs_are_checked(number, change, originals, tmp_path):
    with pytest.raises(ModelFileError, match=r"inconsistent sizes|wrong type"):
        load(changed(originals, number, change, tmp_path))


@pytest.mark.parametrize(
    "arrays",
    [
        (np.ones(2), np.zeros(1, dtype=np.int32), np.array([0, 1, 2], dtype=np.int32)),
        (np.ones(2), [0, 1], np.array([0, 1, 2], dtype=np.int32)),
        (np.ones(2), np.zeros(2, dtype=np.int32), np.array([0, 2], dtype=np.int32)),
        (np.ones(2), np.zeros(2, dtype=np.int8), np.array([0, 1, 2], dtype=np.int32)),
    ],
    ids=["other lengths", "a list", "too few offsets", "small integers"],
)
def test_arrays_of_a_sparse_matrix_are_checked(arrays):
    data, indices, indptr = arrays
    assert is_valid_csr(np.ones(2), np.zeros(2, dtype=np.int32), np.array([0, 1, 2]), (2, 1))
    assert not is_valid_csr(data, indices, indptr, (2, 1))


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
