"""Toy data sets: without noise their equations hold exactly; a seed gives identical data."""
# ruff: noqa: NPY002 - one test is about NumPy's global state

import gzip
import inspect
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import make_circles, make_moons, make_swiss_roll

from mercer import datasets
from mercer.datasets import (
    circles,
    cubic_curve,
    ellipse,
    moons,
    noisy_sine,
    swiss_roll,
    three_clusters,
)

CENTRES = np.array([[-0.5, -0.2], [0.0, 0.6], [0.5, 0.0]])
COLUMNS = {
    three_clusters: 2,
    circles: 2,
    moons: 2,
    swiss_roll: 3,
    cubic_curve: 2,
    ellipse: 2,
    noisy_sine: 1,
}
CLASSES = {three_clusters: 3, circles: 2, moons: 2}
FROM_SKLEARN = {circles: make_circles, moons: make_moons, swiss_roll: make_swiss_roll}

every_set = pytest.mark.parametrize("make", COLUMNS, ids=lambda make: make.__name__)
sizes = st.integers(1, 60)
seeds = st.integers(0, 2**32 - 1)
scales = st.floats(0.0, 10.0)


def scale_name(make):
    return "std" if make is three_clusters else "noise"


def same(first, second):
    return all(a.tobytes() == b.tobytes() for a, b in zip(first, second, strict=True))


# --- properties of all data sets ---------------------------------------------------------------


def test_every_public_name_is_tested():
    readers = ["read_fasta", "read_lines", "read_tudataset"]
    assert datasets.__all__ == sorted([*readers, *(make.__name__ for make in COLUMNS)])


@every_set
def test_only_the_size_is_positional(make):
    first, *rest = inspect.signature(make).parameters.values()
    assert first.name == "n_samples"
    assert all(p.kind is p.KEYWORD_ONLY for p in rest)
    assert rest[-1].name == "random_state"


@every_set
@given(n=sizes, scale=scales, seed=seeds)
def test_shape_dtype_and_bits(make, n, scale, seed):
    options = {scale_name(make): scale, "random_state": seed}
    X, y = make(n, **options)
    assert X.shape == (n, COLUMNS[make])
    assert y.shape == (n,)
    assert X.dtype == np.float64
    assert y.dtype.kind == ("i" if make in CLASSES else "f")
    assert np.isfinite(X).all()
    assert np.isfinite(y).all()
    assert same((X, y), make(n, **options))


@every_set
def test_defaults_run_and_sizes_may_be_numpy_integers(make):
    X, _ = make()
    assert len(X) == inspect.signature(make).parameters["n_samples"].default
    assert same(make(np.int64(7), random_state=np.uint32(3)), make(7, random_state=3))


@every_set
def test_any_real_scalar_is_a_scale(make):
    name = scale_name(make)
    expected = make(8, **{name: 0.5}, random_state=0)
    for half in (np.float32(0.5), Fraction(1, 2)):
        assert same(make(8, **{name: half}, random_state=0), expected)


@every_set
def test_different_seeds_differ(make):
    name = scale_name(make)
    assert not same(
        make(20, **{name: 0.1}, random_state=0), make(20, **{name: 0.1}, random_state=1)
    )
    assert not same(make(20, **{name: 0.1}), make(20, **{name: 0.1}))


@every_set
@pytest.mark.parametrize("stream", [np.random.default_rng, np.random.RandomState])
def test_a_stream_is_advanced_and_repeatable(make, stream):
    options = {scale_name(make): 0.1}
    rng, again = stream(5), stream(5)
    first, second = (make(20, **options, random_state=rng) for _ in range(2))
    assert not same(first, second)
    assert same(first, make(20, **options, random_state=again))
    assert same(second, make(20, **options, random_state=again))


@every_set
def test_numpy_global_state_is_neither_read_nor_changed(make):
    before = np.random.get_state()
    try:
        np.random.seed(0)
        first = make(20, **{scale_name(make): 0.1})
        assert np.random.random_sample() == np.random.RandomState(0).random_sample()
        np.random.seed(0)
        assert not same(first, make(20, **{scale_name(make): 0.1}))
    finally:
        np.random.set_state(before)


# --- classes -----------------------------------------------------------------------------------


@pytest.mark.parametrize("make", CLASSES, ids=lambda make: make.__name__)
@given(n=sizes, seed=seeds)
def test_classes_are_balanced(make, n, seed):
    _, y = make(n, random_state=seed)
    counts = [np.count_nonzero(y == c) for c in range(CLASSES[make])]
    assert sum(counts) == n
    assert max(counts) - min(counts) <= 1


@pytest.mark.parametrize("make", CLASSES, ids=lambda make: make.__name__)
def test_classes_are_shuffled(make):
    _, y = make(90, random_state=0)
    assert len(np.unique(y[:20])) == CLASSES[make]
    assert np.count_nonzero(np.diff(y)) > 20


@pytest.mark.parametrize(("make", "theirs"), FROM_SKLEARN.items(), ids=lambda f: f.__name__)
def test_an_integer_seed_gives_the_points_of_scikit_learn(make, theirs):
    X, y = make(31, noise=0.2, random_state=4)
    options = {"factor": 0.3} if make is circles else {}
    X_theirs, y_theirs = theirs(31, noise=0.2, random_state=4, **options)
    np.testing.assert_array_equal(X, X_theirs)
    np.testing.assert_array_equal(y, y_theirs)


# --- the equation of each data set -------------------------------------------------------------


@given(n=sizes, seed=seeds)
def test_three_clusters_without_spread_are_their_centres(n, seed):
    X, y = three_clusters(n, std=0, random_state=seed)
    np.testing.assert_array_equal(X, CENTRES[y.astype(int)])


def test_three_clusters_have_their_means_and_spread():
    X, y = three_clusters(30_000, std=0.1, random_state=0)
    for c, centre in enumerate(CENTRES):
        cluster = X[y == c]
        np.testing.assert_allclose(cluster.mean(axis=0), centre, atol=5 * 0.1 / 100)
        np.testing.assert_allclose(np.cov(cluster.T), 0.01 * np.eye(2), atol=6e-4)


@given(n=sizes, factor=st.floats(0.0, 1.0, exclude_max=True, allow_subnormal=False), seed=seeds)
def test_circles_have_their_radii(n, factor, seed):
    X, y = circles(n, factor=factor, noise=0, random_state=seed)
    np.testing.assert_allclose(np.hypot(*X.T), np.where(y == 0, 1.0, factor), rtol=1e-14)


@given(n=sizes, seed=seeds)
def test_moons_are_half_circles(n, seed):
    X, y = moons(n, noise=0, random_state=seed)
    upper = (y == 0)[:, np.newaxis]
    arc = np.where(upper, X, [1.0, 0.5] - X)
    np.testing.assert_allclose(np.hypot(*arc.T), 1.0, rtol=1e-14)
    assert (arc[:, 1] >= -1e-15).all()


@given(n=sizes, seed=seeds)
def test_swiss_roll_is_a_spiral_times_an_interval(n, seed):
    X, y = swiss_roll(n, random_state=seed)
    spiral = np.column_stack([y * np.cos(y), y * np.sin(y)])
    np.testing.assert_allclose(X[:, [0, 2]], spiral, atol=1e-13)
    assert ((1.5 * np.pi <= y) & (y <= 4.5 * np.pi)).all()
    assert ((X[:, 1] >= 0) & (X[:, 1] <= 21)).all()


@given(n=st.integers(2, 500))
def test_cubic_curve_satisfies_its_equation(n):
    X, t = cubic_curve(n)
    np.testing.assert_array_equal(X[:, 0], t)
    np.testing.assert_allclose(X[:, 1], 2 * t**2 + t**3, atol=1e-14)
    assert (t[0], t[-1]) == (-2.0, 1.0)
    np.testing.assert_allclose(np.diff(t), 3 / (n - 1), rtol=1e-11)


def test_cubic_curve_is_flat_in_cubic_features_only():
    X, _ = cubic_curve()

    def rank(degree):
        monomials = [
            X[:, 0] ** i * X[:, 1] ** j
            for i in range(degree + 1)
            for j in range(degree + 1 - i)
            if i + j > 0
        ]
        features = np.column_stack(monomials)
        features -= features.mean(axis=0)
        return np.linalg.matrix_rank(features, tol=1e-9), features.shape[1]

    assert rank(1) == (2, 2)
    assert rank(2) == (5, 5)
    assert rank(3) == (8, 9)


@given(n=st.integers(1, 500))
def test_ellipse_satisfies_its_equation(n):
    X, angle = ellipse(n)
    np.testing.assert_allclose(X[:, 0] ** 2 + 4 * X[:, 1] ** 2, 1.0, rtol=1e-15, atol=1e-15)
    np.testing.assert_allclose(angle, 2 * np.pi * np.arange(n) / n, rtol=1e-14)
    np.testing.assert_allclose(np.exp(1j * angle), X[:, 0] + 2j * X[:, 1], atol=1e-15)


@given(n=st.integers(2, 500), frequency=st.floats(0.0, 20.0))
def test_noisy_sine_without_noise_is_the_sine(n, frequency):
    X, y = noisy_sine(n, noise=0, frequency=frequency)
    np.testing.assert_array_equal(X[:, 0], np.linspace(0, 1, n))
    np.testing.assert_allclose(y, np.sin(2 * np.pi * frequency * X[:, 0]), atol=1e-13)


@given(noise=st.floats(0.01, 10.0), seed=seeds)
def test_noisy_sine_noise_is_linear_in_its_scale(noise, seed):
    X, clean = noisy_sine(noise=0)
    X_noisy, y = noisy_sine(noise=noise, random_state=seed)
    _, unit = noisy_sine(noise=1, random_state=seed)
    np.testing.assert_array_equal(X_noisy, X)
    np.testing.assert_allclose(y - clean, noise * (unit - clean), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("make", [cubic_curve, ellipse])
def test_noise_moves_both_coordinates_and_leaves_the_parameter(make):
    exact, t = make(20_000)
    X, t_noisy = make(20_000, noise=0.2, random_state=0)
    np.testing.assert_array_equal(t_noisy, t)
    np.testing.assert_allclose(np.cov((X - exact).T), 0.04 * np.eye(2), atol=2e-3)
    np.testing.assert_allclose((X - exact).mean(axis=0), 0.0, atol=0.01)


# --- errors ------------------------------------------------------------------------------------


@every_set
@pytest.mark.parametrize("n", [True, np.True_, 10.0, "10", None, [3]])
def test_a_size_that_is_not_an_integer_is_refused(make, n):
    with pytest.raises(TypeError, match=r"n_samples=.* not an integer - .* - try int"):
        make(n)


@every_set
@pytest.mark.parametrize("n", [0, -3])
def test_a_size_below_one_is_refused(make, n):
    with pytest.raises(ValueError, match=rf"n_samples={n} is less than one .* - try"):
        make(n)


@every_set
@pytest.mark.parametrize("value", [-0.1, np.nan, np.inf, -np.inf])
def test_a_scale_out_of_range_is_refused(make, value):
    name = scale_name(make)
    with pytest.raises(ValueError, match=rf"{name}={value} is not a finite number >= 0 - .* - try"):
        make(10, **{name: value})


@every_set
@pytest.mark.parametrize("value", [None, "0.1", True, [0.1], 1j])
def test_a_scale_that_is_not_a_real_number_is_refused(make, value):
    name = scale_name(make)
    with pytest.raises(TypeError, match=rf"{name}=.* not a real number - .* - try"):
        make(10, **{name: value})


@every_set
@pytest.mark.parametrize("seed", [True, 1.0, "0", [1, 2]])
def test_a_seed_of_unknown_kind_is_refused(make, seed):
    with pytest.raises(TypeError, match=r"random_state=.* is of type .* - .* - try an int"):
        make(10, random_state=seed)


@every_set
@pytest.mark.parametrize("seed", [-1, 2**32])
def test_a_seed_out_of_range_is_refused(make, seed):
    with pytest.raises(ValueError, match=rf"random_state={seed} is outside .* - .* - try"):
        make(10, random_state=seed)


@pytest.mark.parametrize("factor", [1, 1.0, 2.5])
def test_circles_that_cross_are_refused(factor):
    with pytest.raises(ValueError, match=rf"factor={factor} puts the inner .* - .* - try factor"):
        circles(10, factor=factor)


@pytest.mark.parametrize(
    ("make", "name"), [(circles, "factor"), (noisy_sine, "frequency")], ids=["factor", "frequency"]
)
def test_the_other_numbers_are_checked_too(make, name):
    with pytest.raises(ValueError, match=rf"{name}=-1 is not a finite number >= 0"):
        make(10, **{name: -1})
    with pytest.raises(TypeError, match=rf"{name}='1' is of type str"):
        make(10, **{name: "1"})


# ---------------------------------------------------------------------- files of strings


def test_fasta(tmp_path):
    text = "; a comment\n>one first\nGATT\nAC A\n\n>two\r\nacgt\r\n"
    for name, data in (("s.fa", text.encode()), ("s.fa.gz", gzip.compress(text.encode()))):
        (tmp_path / name).write_bytes(data)
        sequences, names = datasets.read_fasta(tmp_path / name)
        assert sequences == ["GATTACA", "acgt"]
        assert names == ["one first", "two"]


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"GATTACA\n>one\nA\n", r"line 1 \('GATTACA'\) precedes .* not a FASTA file"),
        (b"", "no line begins with '>'"),
        (b">one\nA\n>two\n>three\nA", "sequence 1, 'two', is empty"),
        (b">one\nGA\xffTT", "not UTF-8 text: byte 7 is 0xff"),
    ],
)
def test_what_is_not_fasta_is_named(tmp_path, data, text):
    (tmp_path / "s.fa").write_bytes(data)
    with pytest.raises(ValueError, match=text):
        datasets.read_fasta(str(tmp_path / "s.fa"))


def test_lines(tmp_path):
    path = tmp_path / "s.txt"
    path.write_bytes("\ufeffüber \r\n\nCCO\x0bO".encode())
    assert datasets.read_lines(path) == ["über ", "", "CCO\x0bO"]
    path.write_bytes(b"")
    assert datasets.read_lines(path) == []
    (tmp_path / "s.gz").write_bytes(b"no archive")
    with pytest.raises(ValueError, match=r"s\.gz is not a gzipped file"):
        datasets.read_lines(tmp_path / "s.gz")
    with pytest.raises(FileNotFoundError, match="nowhere"):
        datasets.read_lines(tmp_path / "nowhere")
