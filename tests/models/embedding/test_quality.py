"""Quality of an embedding: against scikit-learn, against definitions, and in degenerate cases."""

import dataclasses
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.manifold import trustworthiness

from mercer import embedding_quality
from mercer.kernels import RBF, Linear, Precomputed, Spectrum
from mercer.models.embedding import QualityMeasures, _embedding_quality

rng = np.random.default_rng(0)
X = rng.normal(size=(41, 5)) * [3.0, 2.0, 1.0, 0.5, 0.1]
Z = X[:, :2] + 0.1 * rng.normal(size=(41, 2))
NAMES = [field.name for field in dataclasses.fields(QualityMeasures)]
CURVES = [name for name in NAMES if name != "auc"]


def by_definition(X, Z):
    """Return the measures of each point, (n, n - 2), and their area, directly from the formulas."""
    n = len(X)
    rho, r = np.zeros((n, n), int), np.zeros((n, n), int)
    for ranks, points in ((rho, X), (r, Z)):
        D = np.linalg.norm(points[:, None] - points, axis=2)
        np.fill_diagonal(D, -1.0)
        for i in range(n):
            ranks[i, np.argsort(D[i], kind="stable")] = np.arange(n)
    found = {name: np.empty((n, n - 2)) for name in CURVES}
    for K in range(1, n - 1):
        g = K * (2 * n - 3 * K - 1) if n > 2 * K else (n - K) * (n - K - 1)
        near, close = (rho <= K) & (rho > 0), (r <= K) & (r > 0)
        found["trustworthiness"][:, K - 1] = 1 - 2 / g * ((rho - K) * (close & ~near)).sum(axis=1)
        found["continuity"][:, K - 1] = 1 - 2 / g * ((r - K) * (near & ~close)).sum(axis=1)
        Q = found["q_nx"][:, K - 1] = (near & close).sum(axis=1) / K
        found["lcmc"][:, K - 1] = Q - K / (n - 1)
        found["r_nx"][:, K - 1] = ((n - 1) * Q - K) / (n - 1 - K)
    weights = 1.0 / np.arange(1, n - 1)
    return QualityMeasures(**found, auc=found["r_nx"] @ weights / weights.sum())


def test_trustworthiness_is_that_of_scikit_learn():
    T = embedding_quality(X, Z).trustworthiness
    expected = [trustworthiness(X, Z, n_neighbors=K) for K in range(1, 21)]
    np.testing.assert_allclose(T[:20], expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("n", [3, 4, 5, 40, 41])
def test_all_curves_are_those_of_the_definitions(n):
    quality, expected = embedding_quality(X[:n], Z[:n]), by_definition(X[:n], Z[:n])
    for name in NAMES:
        of_each = getattr(expected, name)
        found = getattr(quality, name)
        np.testing.assert_allclose(found, of_each.mean(axis=0), rtol=0, atol=1e-12, err_msg=name)
        assert np.all(getattr(quality.standard_error, name) == 0.0)


def test_each_point_has_its_own_measures():
    several = embedding_quality(X, Z, [7, 3, 30], n_neighbors=[1, 5, 39]).points
    one = embedding_quality(X, Z, n_neighbors=5)
    expected = by_definition(X, Z)
    for name in CURVES:
        each = getattr(expected, name)
        np.testing.assert_allclose(getattr(several, name), each[[7, 3, 30]][:, [0, 4, 38]])
        np.testing.assert_allclose(getattr(one.points, name), each[:, 4], atol=1e-14)
    np.testing.assert_allclose(several.auc, expected.auc[[7, 3, 30]])
    assert one.n_neighbors == 5 and np.array_equal(one.rows, np.arange(41))
    assert embedding_quality(X, Z).n_neighbors == 10


def test_five_points_on_a_line():
    places = np.array([0.0, 2.0, 4.0, 1.0, 3.0])[:, None]
    line = np.arange(5.0)[:, None]  # of two points at the same distance, the first counts as nearer
    assert embedding_quality(line, places).trustworthiness[0] == pytest.approx(0.2, abs=1e-15)


@pytest.mark.parametrize("copies", [1, 3])
def test_a_copy_is_a_perfect_map(copies):
    data = np.repeat(X, copies, axis=0)
    for picture in (data, 4.0 * data, data[:, ::-1], np.c_[data, np.full(len(data), 7.0)]):
        quality = embedding_quality(data, picture)
        assert quality.auc == 1.0
        for name in ("trustworthiness", "continuity", "q_nx", "r_nx"):
            np.testing.assert_array_equal(getattr(quality, name), 1.0)


def test_a_heap_is_worth_chance():
    """All points but one coincide, in random order."""
    heap = np.zeros((400, 1))
    heap[0] = 1.0
    quality = embedding_quality(np.random.default_rng(0).normal(size=(400, 3)), heap)
    assert abs(quality.auc) < 0.05
    np.testing.assert_allclose(quality.trustworthiness[9:50], 0.5, atol=0.1)


def test_copies_are_each_others_neighbours():
    data, picture = np.repeat(X, 2, axis=0), np.repeat(Z, 2, axis=0)
    # the nearest neighbour is the copy, in both spaces
    assert np.all(embedding_quality(data, picture).q_nx[0] == 1.0)


def test_sampled_rows_estimate_all_within_their_errors():
    X = np.random.default_rng(1).normal(size=(1500, 4))
    Z = X[:, :2]
    exact = embedding_quality(X, Z)
    scores = []
    for seed in range(40):
        some = embedding_quality(X, Z, 150, random_state=seed)
        assert len(some.rows) == len(np.unique(some.rows)) == 150
        scores.append(
            [
                (getattr(some, name)[9] - getattr(exact, name)[9])
                / getattr(some.standard_error, name)[9]
                for name in CURVES
            ]
            + [(some.auc - exact.auc) / some.standard_error.auc]
        )
    # 40 draws: the standardised errors have mean 0 ± 0.16 and standard deviation 1 ± 0.11.
    assert np.all(np.abs(np.mean(scores, axis=0)) < 0.6)
    assert np.all(np.abs(np.std(scores, axis=0) - 1.0) < 0.4)


def test_large_samples_are_asked_in_part(monkeypatch):
    tuning = dataclasses.replace(_embedding_quality._TUNING, max_exact_points=40, n_sampled_rows=25)
    monkeypatch.setattr(_embedding_quality, "_TUNING", tuning)
    assert len(embedding_quality(X, Z).rows) == 25
    assert len(embedding_quality(X[:40], Z[:40]).rows) == 40
    assert len(embedding_quality(X, Z, 1000).rows) == 41


def test_one_row_has_no_standard_error():
    error = embedding_quality(X, Z, 1).standard_error
    assert np.isnan(error.auc) and np.isnan(error.trustworthiness).all()


def test_blocks_and_threads_do_not_matter(monkeypatch):
    before = embedding_quality(X, Z)
    monkeypatch.setattr("mercer._core._resources.thread_count", lambda: 1)
    alone = embedding_quality(X, Z)
    tuning = dataclasses.replace(_embedding_quality._TUNING, entries_per_block=100)
    monkeypatch.setattr(_embedding_quality, "_TUNING", tuning)
    blocks = embedding_quality(X, Z)
    for name in NAMES:
        assert np.array_equal(getattr(before, name), getattr(alone, name))
        np.testing.assert_allclose(getattr(before, name), getattr(blocks, name), rtol=1e-14)


def test_distances_of_a_kernel():
    plain = embedding_quality(X, Z)
    near = RBF(1e-3)  # k is 0 between all points, but the distances still differ
    for kernel in (Linear(), near, "RBF(3.0)", 2.0 * RBF(5.0) + 1.0):
        np.testing.assert_allclose(embedding_quality(X, Z, kernel=kernel).q_nx, plain.q_nx)
    matrix = Precomputed(X @ X.T)
    places = np.arange(len(X))
    np.testing.assert_allclose(embedding_quality(places, Z, kernel=matrix).q_nx, plain.q_nx)
    scaled = embedding_quality(X / [1.0, 2.0, 3.0, 4.0, 5.0], Z)
    kernel = RBF([1.0, 2.0, 3.0, 4.0, 5.0])
    np.testing.assert_array_equal(embedding_quality(X, Z, kernel=kernel).q_nx, scaled.q_nx)


def test_structured_points():
    words = ["GATTACA", "GATTACC", "TTTT", "TTTTT", "CCGG", "CCGGG"]
    phi = np.array(
        [[w[i : i + 2] for i in range(len(w) - 1)].count(c) for w in words for c in CODES]
    )
    phi = phi.reshape(len(words), -1).astype(float)
    places = rng.normal(size=(6, 2))
    found = embedding_quality(words, places, kernel=Spectrum(2), random_state=3)
    np.testing.assert_allclose(found.q_nx, embedding_quality(phi, places, random_state=3).q_nx)
    with pytest.raises(ValueError, match=r"X contains strings \(the first is 'GATTACA'\)"):
        embedding_quality(words, places)


CODES = [a + b for a in "ACGT" for b in "ACGT"]


def test_sparse_tables_and_float32():
    plain = embedding_quality(X, Z)
    np.testing.assert_allclose(embedding_quality(sp.csr_array(X), Z).q_nx, plain.q_nx)
    np.testing.assert_array_equal(embedding_quality(X.tolist(), Z.tolist()).q_nx, plain.q_nx)
    rounded = X.astype(np.float32)
    found = embedding_quality(rounded, Z)
    np.testing.assert_array_equal(found.q_nx, embedding_quality(rounded.astype(float), Z).q_nx)


@pytest.mark.parametrize("scale", [1e-300, 1e-200, 1e200, 1e300])
def test_units_do_not_matter(scale):
    assert embedding_quality(scale * X, Z).auc == pytest.approx(embedding_quality(X, Z).auc)
    assert embedding_quality(X + 1e6, Z).auc == pytest.approx(embedding_quality(X, Z).auc)


def test_a_constant_column_does_not_matter():
    wide = np.c_[X, np.full(len(X), 3.0)]
    np.testing.assert_array_equal(embedding_quality(wide, Z).q_nx, embedding_quality(X, Z).q_nx)


BAD = X.copy()
BAD[3, 1] = np.nan


@pytest.mark.parametrize(
    ("X", "Z", "options", "message"),
    [
        (X, Z[:40], {}, "X has 41 points and Z has 40: row i of Z must be the coord"),
        (X[:1], Z[:1], {}, "X has 1 point, but at least 3 are needed"),
        (X[:2], Z[:2], {}, "X has 2 points, but at least 3"),
        (BAD, Z, {}, "Input X contains NaN"),
        (X, BAD, {}, "Input Z contains NaN"),
        (X, np.full((41, 2), np.inf), {}, "Input Z contains infinity"),
        (X, np.arange(41.0), {}, "Expected 2D array, got 1D array"),
        (np.ones((41, 3)), Z, {}, "all 41 points of X are equal"),
        (X, np.ones((41, 2)), {}, "all 41 points of Z are equal.*constant columns"),
        (X, Z, {"rows": 0}, "rows must be a positive integer"),
        (X, Z, {"rows": [0.5]}, "rows must be a positive integer"),
        (X, Z, {"rows": [0, 41]}, "rows must be distinct indices from 0 to 40"),
        (X, Z, {"rows": [3, 3]}, "rows must be distinct indices"),
        (X, Z, {"n_neighbors": 40}, "n_neighbors must be integers from 1 to 39"),
        (X, Z, {"n_neighbors": 0}, "n_neighbors must be integers from 1 to 39"),
        (X, Z, {"n_neighbors": 2.5}, "n_neighbors must be integers"),
        (X, Z, {"kernel": "precomputed"}, r"kernel=Precomputed\(K\)"),
        (1e200 * X, Z, {"kernel": Linear() ** 2}, "entries that are not finite"),
    ],
)
def test_what_cannot_be_measured_is_reported(X, Z, options, message):
    with pytest.raises(ValueError, match=message):
        embedding_quality(X, Z, **options)


def test_memory_grows_with_n_and_not_with_its_square():
    n = 20_000
    X = np.random.default_rng(0).normal(size=(n, 3))
    tracemalloc.start()
    embedding_quality(X, X[:, :2], 40)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1000 * 8 * n / 4  # an array of n^2 entries would be 20 times as large
