"""Test blocks: tree reduction, validation, and samples that do not depend on block sizes."""

import operator
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from mercer import Blocks
from mercer.blocks import (
    SpreadTask,
    as_blocks,
    concatenate_blocks,
    is_chunked,
    sample_rows,
    select_rows,
    tree_reduce,
    validate_block,
    with_targets,
)

X = np.random.default_rng(0).standard_normal((1000, 3))


def total(rows, factor=1.0):
    return factor * rows.X.sum(axis=0)


def levels(values, merge):
    """Reference tree reduction: merge neighbouring pairs, level by level."""
    while len(values) > 1:
        pairs = [values[i : i + 2] for i in range(0, len(values), 2)]
        values = [merge(*pair) if len(pair) == 2 else pair[0] for pair in pairs]
    return values[0]


@given(st.integers(1, 70))
def test_the_tree_merges_neighbours_level_by_level(n):
    words = [str(i) for i in range(n)]
    join = "({} {})".format
    assert tree_reduce(iter(words), join) == levels(words, join)


def test_no_more_than_a_logarithm_of_partial_sums_waits():
    alive, most = set(), 0

    class Part:
        def __init__(self):
            nonlocal most
            alive.add(id(self))
            self.key = id(self)
            most = max(most, len(alive))

    def merge(a, b):
        alive.discard(a.key), alive.discard(b.key)
        return Part()

    tree_reduce((Part() for _ in range(1024)), merge)
    assert most <= 12


def test_nothing_has_no_tree():
    with pytest.raises(ValueError, match="there are no blocks"):
        tree_reduce([], operator.add)


def test_blocks_are_what_they_say():
    blocks = Blocks.of(X, rows=300)
    assert blocks.sizes == (300, 300, 300, 100)
    assert (len(blocks), blocks.shape, blocks.ndim) == (1000, (1000, 3), 2)
    assert blocks.starts == [0, 300, 600, 900]
    assert repr(blocks) == "<ArrayBlocks: 1000 x 3 in 4 blocks>"
    assert np.array_equal(blocks.to_array(), X)
    assert np.array_equal(blocks[[2, 0]].to_array(), X[:, [2, 0]])
    assert np.array_equal(blocks[1].to_array(), X[:, 1])
    assert is_chunked(blocks)
    assert not is_chunked(X)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_the_bits_depend_on_the_blocks_alone(threads):
    from mercer._core import resource_scope

    with resource_scope(n_threads=threads):
        found = Blocks.of(X, rows=130).reduce(total, operator.add, 2.0)
    parts = [2.0 * X[i : i + 130].sum(axis=0) for i in range(0, 1000, 130)]
    assert np.array_equal(found, levels(parts, operator.add))


def test_targets_and_weights_go_with_their_rows():
    def seen(rows):
        return np.column_stack([rows.X[:, 0], rows.y, rows.weights])

    w = np.arange(1000.0)
    blocks = with_targets(Blocks.of(X, rows=300), Blocks.of(X[:, 1], rows=300), w)
    assert np.array_equal(concatenate_blocks(blocks, seen), np.column_stack([X[:, :2], w]))


def test_labels_may_be_texts_of_any_length():
    y = np.array(["a"] * 300 + ["longer"] * 700, dtype=object)
    assert concatenate_blocks(
        with_targets(Blocks.of(X, rows=300), y), lambda rows: rows.y
    ).tolist() == list(y)


@pytest.mark.parametrize("rows", [7, 100, 999, 5000])
def test_a_sample_does_not_know_how_rows_are_cut(rows):
    found = sample_rows(Blocks.of(X, rows=rows), 50, seed=3)
    assert np.array_equal(found.X, X[found.places])
    assert np.array_equal(found.places, sample_rows(Blocks.of(X, rows=64), 50, seed=3).places)
    assert len(np.unique(found.places)) == 50


def test_a_sample_is_uniform():
    index = np.arange(200.0)[:, None]
    counts = np.zeros(200)
    for seed in range(400):
        counts[sample_rows(Blocks.of(index, rows=50), 20, seed).places] += 1
    # each row is drawn 40 times on average, with a standard deviation of 6
    assert np.abs(counts - 40.0).max() < 5 * 6
    assert abs(np.corrcoef(counts, np.arange(200))[0, 1]) < 0.25


def test_rows_without_weight_are_not_drawn():
    w = np.where(np.arange(1000) % 2, 1.0, 0.0)
    found = sample_rows(with_targets(Blocks.of(X, rows=128), None, w), 400)
    assert np.all(found.places % 2 == 1)


# ---------------------------------------------------------------------- bad input


def with_value(value, row=777, column=1):
    bad = X.copy()
    bad[row, column] = value
    return bad


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_value_that_is_not_a_number_is_named_by_block_and_row(value):
    blocks = Blocks.of(with_value(value), rows=300)
    with pytest.raises(ValueError, match=r"in block 2, row 177, column 1 \(row 777 of all\)"):
        blocks.reduce(total, operator.add)


def test_so_are_targets_and_weights():
    blocks = Blocks.of(X, rows=300)
    with pytest.raises(ValueError, match=r"y contains nan in block 2, row 177 \(row 777 of all\)"):
        with_targets(blocks, with_value(np.nan)[:, 1]).reduce(total, operator.add)
    w = np.ones(1000)
    w[301] = -1.0
    with pytest.raises(ValueError, match=r"non-negative, got -1 in block 1, row 1 \(row 301"):
        with_targets(blocks, None, w).reduce(total, operator.add)


def test_targets_must_have_the_same_rows():
    blocks = Blocks.of(X, rows=300)
    with pytest.raises(ValueError, match=r"y has the shape \(999,\), but X has 1000 rows"):
        with_targets(blocks, np.zeros(999))
    with pytest.raises(ValueError, match="y has 999 rows, but X has 1000"):
        with_targets(blocks, Blocks.of(np.zeros(999), rows=300))
    with pytest.raises(
        ValueError, match=r"y is split into 5 blocks, and X into 4; block 0 has 200"
    ):
        with_targets(blocks, Blocks.of(np.zeros(1000), rows=200))


def test_arrays_below_each_other_have_the_same_width():
    from mercer.blocks import ArrayBlocks

    with pytest.raises(ValueError, match=r"array 1 has the shape \(\d+, 2\), but the first"):
        ArrayBlocks.below([X, X[:, :2]])
    with pytest.raises(ValueError, match=r"array 0 has the shape \(0, 3\)"):
        ArrayBlocks.below([X[:0]])


def test_texts_are_no_points():
    blocks = Blocks.of(np.array([["a", "b"]]))
    with pytest.raises(ValueError, match="block 0 contains values that are not numbers"):
        blocks.reduce(total, operator.add)


def test_other_kinds_of_numbers_are_no_points():
    with pytest.raises(
        ValueError, match=r"block 0 contains values that are not numbers \(complex numbers\)"
    ):
        Blocks.of(X.astype(complex), rows=300).reduce(total, operator.add)
    with pytest.raises(TypeError, match="blocks must be dense, but this matrix is sparse"):
        Blocks.of(sp.csr_array(X), rows=300)


def test_a_block_needs_rows():
    with pytest.raises(ValueError, match="rows must be a positive integer or None, got 0"):
        Blocks.of(X, rows=0)


def test_all_rows_in_one_array_must_fit():
    from mercer import MemoryBudgetError

    with pytest.raises(MemoryBudgetError, match="all 1000 rows in one array needs"):
        Blocks.of(X).to_array(max_memory=1000)


def test_an_interrupt_ends_a_pass():
    def stop(rows):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Blocks.of(X, rows=100).map(stop)


def test_dask_is_not_imported_without_need():
    code = (
        "import sys, numpy as np; from mercer import Blocks, KernelRidge;"
        "X = np.random.default_rng(0).normal(size=(300, 2));"
        "model = KernelRidge(kernel='rbf', solver='nystroem', rank=9);"
        "model.fit(Blocks.of(X, 100), X[:, 0]).predict(X);"
        "assert not {'dask', 'distributed', 'zarr'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_as_blocks_names_what_it_cannot_cut():
    bag = pytest.importorskip("dask.bag")
    delayed = pytest.importorskip("dask").delayed(X)
    with pytest.raises(TypeError, match=r"X is a Dask Delayed\w*, but only Dask arrays"):
        as_blocks(delayed)
    with pytest.raises(TypeError, match="X is a Dask Bag, but only Dask arrays"):
        as_blocks(bag.from_sequence([1, 2]))


def test_blocks_are_arrays_for_who_wants_these():
    X = np.arange(20.0).reshape(10, 2)
    blocks = Blocks.of(X, rows=4)
    assert np.array_equal(np.asarray(blocks), X)
    assert np.asarray(blocks, dtype=np.float32).dtype == np.float32
    assert [block.shape for block in blocks] == [(4, 2), (4, 2), (2, 2)]
    for rows in (slice(3), (np.arange(3), ...)):
        with pytest.raises(TypeError, match="selects columns, not rows; for cross-validation"):
            blocks[rows]


def test_a_label_that_is_missing_is_named():
    labels = np.array(["a", "b"] * 5, dtype=object)
    for nothing in (None, np.nan):
        labels[7] = nothing
        with pytest.raises(ValueError, match=rf"y contains {nothing} in block 1, row 3 \(row 7 of"):
            with_targets(Blocks.of(np.zeros((10, 2)), rows=4), labels).map(total)


def test_names_of_columns_are_texts():
    pd = pytest.importorskip("pandas")
    assert Blocks.of(pd.DataFrame({"a": [1.0], "b": [2.0]})).names == ["a", "b"]
    assert Blocks.of(pd.DataFrame({0: [1.0], 1: [2.0]})).names is None


def test_points_in_this_process_do_not_take_targets_from_dask():
    da = pytest.importorskip("dask.array")
    with pytest.raises(ValueError, match=r"X is .* but y or sample_weight is a Dask collection"):
        with_targets(Blocks.of(np.zeros((10, 2)), rows=5), da.zeros(10, chunks=5)).map(total)


def test_columns_are_selected_only_once():
    for blocks in (Blocks.of(X)[[0, 1]], Blocks.of(X[:, 0])):
        with pytest.raises(TypeError, match="columns can be selected only once"):
            blocks[0]


def test_selected_rows_are_read_from_their_source():
    source = Blocks.of(X.astype(np.float32), rows=300)
    chosen = select_rows(source, np.arange(0, 1000, 7))
    assert (chosen.dtype, chosen.cores) == (np.float32, source.cores)
    assert np.array_equal(chosen.to_array(), X.astype(np.float32)[::7])
    task = SpreadTask(lambda static, inputs, job: inputs + job, operator.add, (None, None), 0.5)
    assert chosen.spread(task, [1, 2, 3]) == 7.5
    with pytest.raises(TypeError, match="for all rows of blocks, not for a selection"):
        chosen.mapped(np.sum, X)


def test_a_block_of_another_length_is_an_error():
    with pytest.raises(ValueError, match="block 2 of y has 9 rows, but X has 10 in this block"):
        validate_block(2, 20, X[:10], np.zeros(9), None, 3, 10)
