"""Files as blocks: the same rows, and with the same blocks the same bits, whatever the format."""

import csv

import numpy as np
import pytest

from mercer import Blocks, KernelLogisticRegression, KernelPCA, KernelRidge, open_blocks
from mercer.tables import TableError

rng = np.random.default_rng(0)
n, ROWS = 1000, 130
X = rng.standard_normal((n, 3))
y = np.sin(X[:, 0])
LABELS = np.where(X[:, 1] > 0.3, "up", "down")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    np.save(folder / "first.npy", X[:520])
    np.save(folder / "second.npy", X[520:])
    np.save(folder / "all.npy", np.column_stack([X, y]))
    np.save(folder / "columns.npy", np.asfortranarray(X))
    with (folder / "x.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["a", "b", "c", "y", "label"])
        writer.writerows([*row, v, w] for row, v, w in zip(X.tolist(), y, LABELS, strict=True))
    return folder


@pytest.fixture(scope="module")
def parquet(folder):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    columns = {"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": y, "label": LABELS.tolist()}
    parquet.write_table(pa.table(columns), folder / "x.parquet", row_group_size=170)
    return folder / "x.parquet"


def test_arrays(folder):
    both = open_blocks([folder / "first.npy", folder / "second.npy"], rows=ROWS)
    assert both.sizes == (130, 130, 130, 130, 130, 130, 130, 90)
    assert np.array_equal(both.to_array(), X)
    assert np.array_equal(open_blocks(folder / "columns.npy", rows=ROWS).to_array(), X)
    whole = open_blocks(folder / "all.npy", rows=ROWS)
    assert np.array_equal(whole[[0, 1, 2]].to_array(), X)
    assert np.array_equal(open_blocks(folder / "all.npy", columns=3).to_array(), y)


def test_zarr(folder):
    zarr = pytest.importorskip("zarr")
    array = zarr.create_array(str(folder / "x.zarr"), shape=X.shape, chunks=(100, 3), dtype="f8")
    array[:] = X
    assert np.array_equal(open_blocks(folder / "x.zarr", rows=ROWS).to_array(), X)


@pytest.mark.parametrize("rows", [7, 130, 5000])
def test_tables(folder, parquet, rows):
    for path in (folder / "x.csv", parquet):
        table = open_blocks(path, rows=rows)
        assert np.array_equal(table[["a", "b", "c"]].to_array(), X)
        assert np.array_equal(table["y"].to_array(), y)
        assert np.array_equal(open_blocks(path, columns="label").to_array(), LABELS)


def test_a_fit_of_files_has_the_bits_of_the_same_blocks_in_memory(folder, parquet):
    model = KernelRidge(0.1, kernel="rbf", gamma=0.5, solver="nystroem", rank=40)
    expected = model.fit(Blocks.of(X, ROWS), y).predict(X)
    table, comma = open_blocks(parquet, rows=ROWS), open_blocks(folder / "x.csv", rows=ROWS)
    whole = open_blocks(folder / "all.npy", rows=ROWS)
    for given in (table, comma):
        found = model.fit(given[["a", "b", "c"]], given["y"]).predict(X)
        assert np.array_equal(found, expected)
    assert np.array_equal(model.fit(whole[[0, 1, 2]], whole[3]).predict(X), expected)


def test_components_and_classes_of_files(folder, parquet):
    table = open_blocks(parquet, rows=ROWS)
    pca = KernelPCA(3, kernel="rbf", gamma=0.5, eigen_solver="nystroem", rank=40)
    expected = pca.fit(Blocks.of(X, ROWS)).transform(X)
    assert np.array_equal(pca.fit(table[["a", "b", "c"]]).transform(X), expected)
    scores = pca.transform(table[["a", "b", "c"]])  # lazy
    np.testing.assert_allclose(scores.to_array(), expected, atol=1e-12)
    model = KernelLogisticRegression(gamma=0.5, solver="nystroem", rank=40)
    expected = model.fit(Blocks.of(X, ROWS), LABELS).predict_proba(X)
    found = model.fit(table[["a", "b", "c"]], table["label"]).predict_proba(X)
    assert np.array_equal(found, expected)


def test_a_block_at_a_time_is_in_memory(folder):
    """Rows of a file are mapped block by block, so that what is resident does not grow."""
    import tracemalloc

    np.save(folder / "long.npy", np.zeros((100_000, 4)))
    blocks = open_blocks(folder / "long.npy", rows=2000)
    tracemalloc.start()
    blocks.reduce(lambda rows: rows.X.sum(), lambda a, b: a + b)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 * 2000 * 32  # of 3 200 000 bytes, a few blocks of 64 000


# ---------------------------------------------------------------------- bad input


def test_what_is_not_there(folder, parquet):
    with pytest.raises(TableError, match=r"nowhere\.npy is not there"):
        open_blocks(folder / "nowhere.npy")
    with pytest.raises(TableError, match="open_blocks needs at least one file"):
        open_blocks([])
    with pytest.raises(TableError, match="has no column 'd'"):
        open_blocks(parquet, columns=["a", "d"])
    with pytest.raises(IndexError, match="there are 4 columns, got 4"):
        open_blocks(folder / "all.npy", columns=4)
    with pytest.raises(TypeError, match="columns of arrays have numbers, got 'a'"):
        open_blocks(folder / "all.npy", columns="a")


def test_files_of_different_width(folder, tmp_path):
    with pytest.raises(ValueError, match=r"array 1 has \(4,\) columns, but the first one has \(3,"):
        open_blocks([folder / "first.npy", folder / "all.npy"])
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    with pytest.raises(TableError, match=r"other\.csv has no column 'c', which .*x\.csv has"):
        open_blocks([folder / "x.csv", tmp_path / "other.csv"], columns=["a", "c"])


def test_text_is_no_point(folder, parquet):
    with pytest.raises(TableError, match=r"the column 'label' holds text.*columns=\['a'\]"):
        open_blocks(folder / "x.csv", columns=["a", "label"]).to_array()
    with pytest.raises(ValueError, match="block 0 holds what is no number"):
        open_blocks(parquet, columns=["a", "label"]).to_array()


def test_a_missing_value_is_named(tmp_path):
    (tmp_path / "gap.csv").write_text("a,b\n" + "1,2\n" * 5 + "1,\n" + "1,2\n" * 4)
    model = KernelPCA(1, kernel="rbf", eigen_solver="nystroem", rank=1)
    with pytest.raises(ValueError, match=r"X holds nan in block 1, row 1, column 1 \(row 5 of all"):
        model.fit(open_blocks(tmp_path / "gap.csv", rows=4))


def test_broken_files(tmp_path):
    (tmp_path / "not.npy").write_bytes(b"nothing of the kind")
    with pytest.raises(TableError, match="cannot be read as NPY"):
        open_blocks(tmp_path / "not.npy")
    np.save(tmp_path / "objects.npy", np.array([1 + 2j]))
    with pytest.raises(TableError, match="is no array of numbers"):
        open_blocks(tmp_path / "objects.npy")


def test_dask_points_do_not_take_targets_from_files(folder):
    da = pytest.importorskip("dask.array")
    model = KernelRidge(solver="nystroem", rank=5)
    targets = open_blocks(folder / "all.npy", columns=3, rows=500)
    with pytest.raises(ValueError, match=r"points are a Dask collection, but what is beside them"):
        model.fit(da.from_array(X, chunks=(500, 3)), targets)
