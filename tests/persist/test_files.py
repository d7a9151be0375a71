"""The file format: readable by other software, written atomically, errors for other objects."""

import json
import os
import stat
import tracemalloc

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest
import safetensors
import safetensors.numpy
import scipy.sparse as sp
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mercer
from mercer import SVC, Expansion, KernelPCA, KernelRidge, ModelFileError, load, save
from mercer.kernels import RBF, Callable, Features, Linear, Map, RankOne, WeisfeilerLehman
from mercer.persist import _safetensors_file, read_notes

rng = np.random.default_rng(0)
X = rng.normal(size=(30, 2))
LABELS = np.arange(30) % 2


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.safetensors"


# ---------------------------------------------------------------------- other software


def test_the_safetensors_package_reads_the_same_arrays(path):
    points = np.asfortranarray(X)  # the safetensors package itself would store the wrong order
    model = KernelRidge(kernel="rbf").fit(points, LABELS)
    save(model, path)
    with safetensors.safe_open(path, "np") as file:
        metadata, names = file.metadata(), list(file.keys())
        np.testing.assert_array_equal(file.get_tensor("X_fit_").T, X)
        np.testing.assert_array_equal(file.get_tensor("dual_coef_"), model.dual_coef_)
    assert set(safetensors.numpy.load_file(path)) == set(names)
    assert metadata["class"] == "KernelRidge"
    assert metadata["kernel"] == repr(model.kernel_)
    assert mercer.parse_kernel(metadata["kernel"]) == model.kernel_
    state = json.loads(metadata["state"])
    assert state["parameters"]["alpha"] == 1 and state["parameters"]["kernel"] == "rbf"
    assert state["fitted"]["X_fit_"]["axes"] == [1, 0]
    assert json.loads(metadata["classes"])["KernelRidge"] == 1


def test_every_kind_of_array_is_one_of_theirs(path):
    kinds = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"]
    points = [np.ones(5, dtype=kind) for kind in kinds]
    save(Expansion(Linear(), points, np.ones(len(points))), path)
    arrays = safetensors.numpy.load_file(path)
    for i, one in enumerate(points):
        assert arrays[f"points.{i}"].dtype == one.dtype


def test_tensors_are_aligned_and_only_padding_is_between_them(path):
    points = [np.ones(n) for n in (1, 3, 8, 5)]
    save(Expansion(Linear(), points, np.ones(4)), path)
    content = path.read_bytes()
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    assert (8 + size) % 64 == 0
    for name, entry in header.items():
        if name.startswith("points"):
            assert entry["data_offsets"][0] % 64 == 0
    for one in load(path, mmap=True).points:
        assert one.__array_interface__["data"][0] % 64 == 0


def test_no_private_module_and_no_place_on_the_machine_is_in_a_file(path):
    save(KernelPCA(2, kernel="rbf", eigen_solver="nystroem").fit(X), path)
    content = path.read_bytes()
    for word in (b"mercer.", b"_nystroem", str(path.parent).encode(), b"numpy.", b"sklearn."):
        assert word not in content


# ---------------------------------------------------------------------- atomic writes


def test_an_interrupted_save_leaves_the_old_file(path, monkeypatch):
    save(Expansion(Linear(), X, X), path)
    before = path.read_bytes()
    for name in ("fsync", "replace"):
        with monkeypatch.context() as patch:

            def interrupt(*args):
                raise KeyboardInterrupt

            patch.setattr(os, name, interrupt)
            with pytest.raises(KeyboardInterrupt):
                save(SVC().fit(X, LABELS), path)
        assert path.read_bytes() == before
        assert os.listdir(path.parent) == [path.name]
    with pytest.raises(TypeError):
        save(SVC(kernel=lambda x, z: x @ z.T).fit(X, LABELS), path)
    assert path.read_bytes() == before


def test_a_file_has_the_rights_of_any_other_and_a_link_stays_one(path, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(path)
    save(Expansion(Linear(), X, X), link)
    (tmp_path / "other").write_bytes(b"")
    assert link.is_symlink() and path.exists()
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE((tmp_path / "other").stat().st_mode)
    save(Expansion(Linear(), X, X), str(path))  # a str is accepted, too
    with pytest.raises(FileNotFoundError):
        save(Expansion(Linear(), X, X), tmp_path / "nowhere" / "m")
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nothing")


def test_a_map_takes_neither_time_nor_memory(path):
    points = np.zeros((2_000_000, 2))  # 32 MB
    save(Expansion(RBF(), points, np.zeros(2_000_000)), path)
    del points
    load(path, mmap=True)
    tracemalloc.start()
    model = load(path, mmap=True)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 300_000
    assert not model.points.flags.writeable and not model.coefficients.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        model.points[0] = 1.0
    tracemalloc.start()
    load(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.1 * path.stat().st_size


# ---------------------------------------------------------------------- errors


FUNCTIONS = {
    "a lambda": SVC(kernel=lambda x, z: x @ z.T),
    "a kernel of a function": SVC(kernel=Callable(lambda x, z: x @ z.T)),
    "inside an expression": SVC(kernel=2 * RBF() * Map(RBF(), np.tanh)),
    "features": SVC(kernel=Features(np.tanh)),
    "rank one": SVC(kernel=RankOne(lambda X: X[:, 0]) + RBF()),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_refused_with_a_remedy(name, path):
    model = FUNCTIONS[name].fit(X, LABELS)
    with pytest.raises(TypeError, match=r"kernel.* is <.*a function, but a file cannot contain"):
        save(model, path)
    with pytest.raises(TypeError, match=r"subclass of mercer.kernels.Kernel.*classes=\["):
        save(model, path)
    assert not path.exists()


def test_other_things_are_refused_by_name(path):
    with pytest.raises(TypeError, match=r"stores estimators of mercer.*type Pipeline; .*skops\.io"):
        save(make_pipeline(StandardScaler(), SVC()), path)
    with pytest.raises(TypeError, match="stores estimators of mercer"):
        save({"a": 1}, path)
    graphs = [nx.path_graph(n) for n in (2, 3, 4, 5)]
    with pytest.raises(
        TypeError, match=r"support_vectors_.0 is .*fit the model to Graphs.from_networkx"
    ):
        save(SVC(kernel=WeisfeilerLehman(1)).fit(graphs, [0, 1, 0, 1]), path)

    def holding(value):
        return Expansion(Linear(), [value], np.ones(1))

    with pytest.raises(TypeError, match=r"points\.0 .*use \.tocsr\(\)"):
        save(holding(sp.coo_array(np.eye(2))), path)
    with pytest.raises(TypeError, match=r"points\.0 is a MaskedArray of float64"):
        save(holding(np.ma.masked_array(np.eye(2))), path)
    with pytest.raises(TypeError, match=r"points\.0 is a ndarray of \[\('a'"):
        save(holding(np.zeros(2, dtype=[("a", "f8")])), path)
    with pytest.raises(TypeError, match=r"points\.0 is .*of the class builtins\.object"):
        save(holding(object()), path)
    with pytest.raises(TypeError, match=r"of the class Status|of the class HTTPStatus"):
        from http import HTTPStatus

        save(holding(HTTPStatus.OK), path)
    with pytest.raises(TypeError, match=r"points\.0 is a void, which cannot be stored"):
        save(holding(np.zeros(1, dtype=[("a", "f8")])[0]), path)
    with pytest.raises(TypeError, match=r"points\.0 is a one-dimensional sparse array"):
        save(holding(sp.csr_array(np.ones(3))), path)
    itself = []
    itself.append(itself)
    with pytest.raises(TypeError, match=r"points\.0\.0 contains itself"):
        save(holding(itself), path)


TABLES = {
    "an index": (lambda: pd.Index(["a", "b"]), r"is a pandas\.Index; use a pandas or polars table"),
    "two levels": (
        lambda: pd.DataFrame({"a": [1, 2]}, index=pd.MultiIndex.from_product([[0], [1, 2]])),
        r"has an index of 2 levels; use \.reset_index\(\) first",
    ),
    "an extension type": (
        lambda: pd.DataFrame({"a": pd.array([1, None], dtype="Int64")}),
        r"has the column 'a' of type Int64; convert it to numbers, strings or categories",
    ),
    "lists in polars": (
        lambda: pl.DataFrame({"a": [[1], [2]]}),
        r"has the column 'a' of type List\(Int64\); cast it to numbers or strings",
    ),
}


@pytest.mark.parametrize("name", TABLES)
def test_columns_that_cannot_be_stored_are_named(name, path):
    make, message = TABLES[name]
    with pytest.raises(TypeError, match=rf"points\.0 {message}"):
        save(Expansion(Linear(), [make()], np.ones(1)), path)


def test_notes_are_read_without_the_model(path):
    save(Expansion(Linear(), X, X), path, notes={"author": "me"})
    assert read_notes(path) == {"author": "me"}
    path.write_bytes(b"short")
    with pytest.raises(ModelFileError, match=rf"{path.name}: the file has 5 bytes"):
        read_notes(path)


def test_headers_are_limited(path, monkeypatch):
    monkeypatch.setattr(_safetensors_file, "_MAX_HEADER_BYTES", 1000)
    with pytest.raises(ValueError, match=r"would have \d+ bytes, but the format allows 1000"):
        save(Expansion(Linear(), [(i,) for i in range(100)], np.ones(100)), path)


def test_a_file_that_becomes_shorter_while_it_is_read(path, monkeypatch):
    save(Expansion(Linear(), X, X), path)
    found = os.stat(path)
    path.write_bytes(path.read_bytes()[:-8])
    monkeypatch.setattr(os, "fstat", lambda file: found)
    with pytest.raises(ModelFileError, match="became shorter while it was read"):
        load(path)


def test_what_is_not_part_of_the_state_is_not_lost_in_silence(path):
    model = SVC().fit(X, LABELS)
    model.note = "the best one"
    with pytest.raises(TypeError, match=r"SVC has the attributes note, .* would be lost"):
        save(model, path)
    del model.note
    model.set_params(C=-1.0)
    with pytest.raises(ValueError, match="C"):
        save(model, path)


# ---------------------------------------------------------------------- damaged


def test_damage_is_found_wherever_it_is(path, tmp_path):
    save(SVC().fit(X, LABELS), path)
    content, other = path.read_bytes(), tmp_path / "damaged"
    for place in range(0, len(content), 7):
        damaged = bytearray(content)
        damaged[place] ^= 1 << (place % 8)
        other.write_bytes(damaged)
        with pytest.raises(ModelFileError, match="damaged: "):
            load(other)
    for size in range(0, len(content), 31):
        other.write_bytes(content[:size])
        for mmap in (False, True):
            with pytest.raises(ModelFileError):
                load(other, mmap=mmap)
    other.write_bytes(content + b"\0")
    with pytest.raises(ModelFileError, match="data were appended"):
        load(other, mmap=True)


def test_later_formats_are_reported(path, monkeypatch):
    def written(**changes):
        save(SVC().fit(X, LABELS), path)
        metadata, tensors = _safetensors_file.read(path, mapped=False)
        arrays = {n: t.block.view(t.dtype).reshape(t.shape) for n, t in tensors.items()}
        metadata = {**metadata, **changes}
        del metadata["fingerprint"]
        _safetensors_file.write(path, metadata, arrays)

    written()
    load(path)
    written(format_version="2")
    with pytest.raises(ModelFileError, match=r"the format 'mercer' 2, but this version .*reads"):
        load(path)
    written(classes='{"SVC": 2}')
    with pytest.raises(ModelFileError, match="a SVC of format 2"):
        load(path)
    safetensors.numpy.save_file({"a": X}, path)
    with pytest.raises(ModelFileError, match=r"no __metadata__"):
        load(path)
    safetensors.numpy.save_file({"a": X}, path, {"format": "pt"})
    with pytest.raises(ModelFileError, match="which contains arrays, but no model"):
        load(path)
