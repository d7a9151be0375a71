"""Files as blocks: the same rows in all formats, and identical results for the same blocks."""

import csv
from decimal import Decimal

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
    memory = Blocks.of(X, ROWS)
    expected = model.fit(memory, y).predict(memory).to_array()
    table, comma = open_blocks(parquet, rows=ROWS), open_blocks(folder / "x.csv", rows=ROWS)
    whole = open_blocks(folder / "all.npy", rows=ROWS)
    for given in (table, comma):
        points = given[["a", "b", "c"]]
        assert np.array_equal(model.fit(points, given["y"]).predict(points), expected)
    assert np.array_equal(model.fit(whole[[0, 1, 2]], whole[3]).predict(memory), expected)


def test_components_and_classes_of_files(folder, parquet):
    table, memory = open_blocks(parquet, rows=ROWS), Blocks.of(X, ROWS)
    points = table[["a", "b", "c"]]
    pca = KernelPCA(3, kernel="rbf", gamma=0.5, eigen_solver="nystroem", rank=40)
    expected = pca.fit(memory).transform(memory).to_array()
    np.testing.assert_allclose(expected, pca.transform(X), atol=1e-12)
    assert np.array_equal(pca.fit(points).transform(points), expected)
    model = KernelLogisticRegression(gamma=0.5, solver="nystroem", rank=40)
    expected = model.fit(memory, LABELS).predict_proba(memory).to_array()
    found = model.fit(points, table["label"]).predict_proba(points)
    assert np.array_equal(found, expected)


def test_a_block_at_a_time_is_in_memory(folder):
    """Rows of a file are mapped block by block, so that the resident memory does not grow."""
    import tracemalloc

    np.save(folder / "long.npy", np.zeros((100_000, 4)))
    blocks = open_blocks(folder / "long.npy", rows=2000)
    tracemalloc.start()
    blocks.reduce(lambda rows: rows.X.sum(), lambda a, b: a + b)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 * 2000 * 32  # a few blocks of 64,000 bytes; the file has 3,200,000


# ---------------------------------------------------------------------- bad input


def test_what_is_not_there(folder, parquet):
    with pytest.raises(TableError, match=r"nowhere\.npy does not exist"):
        open_blocks(folder / "nowhere.npy")
    with pytest.raises(TableError, match="open_blocks needs at least one file"):
        open_blocks([])
    with pytest.raises(TableError, match="has no column 'd'"):
        open_blocks(parquet, columns=["a", "d"])
    with pytest.raises(IndexError, match="column 4 does not exist: there are 4 columns"):
        open_blocks(folder / "all.npy", columns=4)
    with pytest.raises(TypeError, match="selected by integer indices, got 'a'"):
        open_blocks(folder / "all.npy", columns="a")


def test_files_of_different_width(folder, tmp_path):
    with pytest.raises(ValueError, match=r"array 1 has the shape \(\d+, 4\), but .* \(\d+, 3"):
        open_blocks([folder / "first.npy", folder / "all.npy"])
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    with pytest.raises(TableError, match=r"other\.csv has no column 'c', which .*x\.csv has"):
        open_blocks([folder / "x.csv", tmp_path / "other.csv"], columns=["a", "c"])


def test_text_is_not_a_point(folder, parquet):
    with pytest.raises(TableError, match=r"the column 'label' contains text.*columns=\['a'\]"):
        open_blocks(folder / "x.csv", columns=["a", "label"]).to_array()
    with pytest.raises(TableError, match=r"the column .label. contains text.*columns=\[.a.\]"):
        open_blocks(parquet, columns=["a", "label"]).to_array()


def test_a_missing_value_is_named(tmp_path):
    (tmp_path / "gap.csv").write_text("a,b\n" + "1,2\n" * 5 + "1,\n" + "1,2\n" * 4)
    model = KernelPCA(1, kernel="rbf", eigen_solver="nystroem", rank=1)
    with pytest.raises(
        ValueError,
        match=r"gap.csv, row 6, column 'b': X contains nan in block 1, row 1, column 1 \(row 5 of",
    ):
        model.fit(open_blocks(tmp_path / "gap.csv", rows=4))
    (tmp_path / "good.csv").write_text("a,b\n" + "1,2\n" * 3)
    both = open_blocks([tmp_path / "good.csv", tmp_path / "gap.csv"], rows=4)
    with pytest.raises(ValueError, match=r"gap.csv, row 6, column 'b': X contains nan"):
        model.fit(both)
    ridge = KernelRidge(0.1, kernel="rbf", gamma=0.5, solver="nystroem", rank=1)
    with pytest.raises(ValueError, match="y contains nan in block 2, row 1"):
        ridge.fit(both[["a"]], both["b"])
    with pytest.raises(ValueError, match=r"^y contains nan in block 0, row 0"):
        ridge.fit(both[["a"]], np.full(13, np.nan))


def test_patterns_of_files(folder, parquet, tmp_path):
    both = open_blocks(str(folder / "[fs]*.npy"), rows=ROWS)  # the files first.npy and second.npy
    assert np.array_equal(both.to_array(), X)
    assert np.array_equal(open_blocks([folder / "first.npy", str(folder / "sec*.npy")]), both)
    assert np.array_equal(open_blocks(str(folder / "*.parquet"), columns="y"), y)
    with pytest.raises(TableError, match=r"no file matches .*\*\.csv'; check the pattern"):
        open_blocks(str(tmp_path / "*.csv"))
    (tmp_path / "a[1].csv").write_text("a,b\n1,2\n")  # a name that looks like a pattern
    assert open_blocks(tmp_path / "a[1].csv").to_array().tolist() == [[1.0, 2.0]]


def test_identifiers_as_targets_are_exact(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    ids = [1, 2, 3, 2**53 + 1, 2**53 + 2, 2**63 - 1]
    table = pa.table({"id": ids, "small": [1, 2, 3, 4, 5, 6], "x": np.arange(6.0)})
    for options in ({}, {"write_statistics": False}, {"row_group_size": 2}):
        parquet.write_table(table, tmp_path / "a.parquet", **options)
        with pa.ipc.new_file(tmp_path / "a.arrow", table.schema) as file:
            file.write_table(table)
        for name in ("a.parquet", "a.arrow"):
            blocks = open_blocks(tmp_path / name, rows=2)
            assert blocks["id"].to_array().tolist() == [str(i) for i in ids]
            assert blocks["small"].to_array().tolist() == [1, 2, 3, 4, 5, 6]
            assert blocks[["small", "x"]].to_array().shape == (6, 2)
            with pytest.raises(TableError, match=r"'id' contains integers above 2\^53"):
                blocks[["id", "x"]].to_array()


def test_decimals_categories_and_files_without_rows(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    decimals = pa.array([Decimal("1.5"), Decimal("2.5")])
    city = pa.array(["a", "b"]).dictionary_encode()
    table = pa.table({"x": decimals, "n": pa.array([2, 3]).dictionary_encode(), "city": city})
    parquet.write_table(table, tmp_path / "a.parquet")
    blocks = open_blocks(tmp_path / "a.parquet")
    assert blocks[["x", "n"]].to_array().tolist() == [[1.5, 2], [2.5, 3]]
    assert blocks["city"].to_array().tolist() == ["a", "b"]
    parquet.write_table(table[:0], tmp_path / "none.parquet")
    with pytest.raises(TableError, match=r"none\.parquet has no rows; omit this file"):
        open_blocks([tmp_path / "a.parquet", tmp_path / "none.parquet"])


def test_columns_that_are_not_numbers(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = pa.table(
        {"x": [1.0, 2.0], "when": np.array(["2024", "2025"], "M8[us]"), "list": [[1], [2]]}
    )
    parquet.write_table(table, tmp_path / "a.parquet")
    blocks = open_blocks(tmp_path / "a.parquet")
    with pytest.raises(TableError, match=r"'when' contains dates, but.*columns=\['x'\]"):
        blocks.to_array()
    with pytest.raises(TableError, match="'list' contains values that are neither numbers nor"):
        blocks[["x", "list"]].to_array()
    with pytest.raises(TableError, match="'list' contains values that are neither numbers nor"):
        blocks["list"].to_array()
    assert blocks[["x"]].to_array().tolist() == [[1.0], [2.0]]


def test_broken_files(tmp_path):
    (tmp_path / "not.npy").write_bytes(b"nothing of the kind")
    with pytest.raises(TableError, match="cannot be read as NPY"):
        open_blocks(tmp_path / "not.npy")
    np.save(tmp_path / "objects.npy", np.array([1 + 2j]))
    with pytest.raises(TableError, match="is not an array of numbers"):
        open_blocks(tmp_path / "objects.npy")


def test_dask_points_take_targets_from_files(folder):
    da = pytest.importorskip("dask.array")
    model = KernelRidge(solver="nystroem", rank=5)
    targets = open_blocks(folder / "all.npy", columns=3, rows=500)
    points = da.from_array(X, chunks=(500, 3))
    found = model.fit(points, targets).dual_coef_.copy()
    assert np.array_equal(found, model.fit(points, y).dual_coef_)


def test_a_file_that_changes_between_two_passes_is_named(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    file, array = tmp_path / "x.parquet", tmp_path / "x.npy"
    parquet.write_table(pa.table({"a": X[:, 0], "b": X[:, 1]}), file)
    np.save(array, X)
    table, rows = open_blocks(file, rows=ROWS), open_blocks(array, rows=ROWS)
    for part, how in ((X[:500], "fewer"), (np.vstack([X, X]), "more")):
        parquet.write_table(pa.table({"a": part[:, 0], "b": part[:, 1]}), file)
        with pytest.raises(TableError, match=rf"x.parquet has changed .* has {how} than 1000 rows"):
            table.to_array()
    np.save(array, X[:500])
    with pytest.raises(TableError, match=r"x.npy has changed .* rows 390 to 520 cannot be read"):
        rows.to_array()
    array.unlink()
    with pytest.raises(TableError, match=r"x.npy has changed .* rows 0 to 130 cannot be read"):
        rows.to_array()


def test_a_folder_is_many_files(tmp_path):
    (tmp_path / "x.parquet").mkdir()
    with pytest.raises(TableError, match=r"x.parquet is a folder; pass a pattern.*x.parquet/\*"):
        open_blocks(tmp_path / "x.parquet")


def test_columns_of_a_table_have_names(folder):
    with pytest.raises(
        TableError, match=r"x.csv has no column 0; its columns are a, b, c, y, label"
    ):
        open_blocks(folder / "x.csv", columns=0)


def test_names_of_columns_are_learned_and_compared(folder):
    table = open_blocks(folder / "x.csv", rows=ROWS)
    model = KernelRidge(kernel="rbf", solver="nystroem", rank=20).fit(table[["a", "b", "c"]], y)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    lazy = model.predict(table[["a", "b", "c"]])
    assert model.score(table[["a", "b", "c"]], table["y"]) > 0.9
    with pytest.raises(ValueError, match="X has the columns c, b, a, but KernelRidge was fitted"):
        model.predict(table[["c", "b", "a"]])
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        np.testing.assert_allclose(lazy.to_array(), model.predict(X), rtol=1e-12)
