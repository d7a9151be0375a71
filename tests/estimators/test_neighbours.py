"""Nearest neighbours in feature space: against scikit-learn, by definition, invalid input."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.neighbors import (
    KNeighborsClassifier,
    KNeighborsRegressor,
    NearestNeighbors,
    RadiusNeighborsClassifier,
)
from zoo import LEAVES

from mercer import (
    KernelKNeighborsClassifier,
    KernelKNeighborsRegressor,
    KernelRadiusNeighborsClassifier,
    compress,
)
from mercer.gram import nearest_neighbors, radius_neighbors
from mercer.kernels import RBF, Distance, Laplacian, Linear, Matern, Precomputed, Radial, Spectrum

rng = np.random.default_rng(0)
X, Q = rng.normal(size=(900, 4)), rng.normal(size=(500, 4))
y = rng.integers(3, size=900)
Y = rng.normal(size=(900, 2))
WEIGHTS = ["uniform", "distance", lambda d: np.exp(-d)]
every_weight = pytest.mark.parametrize("weights", WEIGHTS, ids=["uniform", "distance", "exp"])


def squared(kernel, A, B):
    return kernel.diag(A)[:, None] - 2.0 * kernel(A, B) + kernel.diag(B)


def by_rows(rows):
    """Convert weights within a radius to scikit-learn's format, an array of arrays."""
    out = np.empty(len(rows), dtype=object)
    out[:] = [np.exp(-d) for d in rows]
    return out


# ---------------------------------------------------------------------- references


@every_weight
@pytest.mark.parametrize("k", [1, 5, 40])
def test_linear_kernel_is_scikit_learns(weights, k):
    theirs = KNeighborsClassifier(k, weights=weights, algorithm="kd_tree").fit(X, y)
    ours = KernelKNeighborsClassifier(k, weights=weights).fit(X, y)
    (d, i), (D, J) = ours.kneighbors(Q), theirs.kneighbors(Q)
    np.testing.assert_array_equal(i, J)
    np.testing.assert_allclose(d, D, rtol=1e-9)
    np.testing.assert_array_equal(ours.predict(Q), theirs.predict(Q))
    np.testing.assert_allclose(ours.predict_proba(Q), theirs.predict_proba(Q), rtol=1e-8)
    (d, i), (D, J) = ours.kneighbors(), theirs.kneighbors()
    np.testing.assert_array_equal(i, J)
    np.testing.assert_allclose(d, D, rtol=1e-9)
    for targets in (Y, Y[:, 0]):
        theirs = KNeighborsRegressor(k, weights=weights, algorithm="kd_tree").fit(X, targets)
        ours = KernelKNeighborsRegressor(k, weights=weights).fit(X, targets)
        np.testing.assert_allclose(ours.predict(Q), theirs.predict(Q), rtol=1e-8, atol=1e-12)
        np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-8, atol=1e-12)


@pytest.mark.filterwarnings("ignore:Outlier label -1")  # scikit-learn also warns in predict
@every_weight
@pytest.mark.parametrize("outlier", [-1, "most_frequent"])
def test_linear_kernel_is_scikit_learns_within_a_radius(weights, outlier):
    given = by_rows if callable(weights) else weights
    both = {"radius": 0.9, "outlier_label": outlier}
    theirs = RadiusNeighborsClassifier(weights=given, algorithm="brute", **both).fit(X, y)
    ours = KernelRadiusNeighborsClassifier(weights=weights, **both).fit(X, y)
    d, i = ours.radius_neighbors(Q)
    D, J = theirs.radius_neighbors(Q)
    for a, b, c, e in zip(d, D, i, J, strict=True):
        np.testing.assert_array_equal(c, np.sort(e))
        np.testing.assert_allclose(np.sort(a), np.sort(b), rtol=1e-9)
    assert any(len(each) == 0 for each in i)
    np.testing.assert_array_equal(ours.predict(Q), theirs.predict(Q))
    np.testing.assert_allclose(ours.predict_proba(Q), theirs.predict_proba(Q), rtol=1e-8)


def test_label_of_outliers_that_is_not_a_class():
    model = KernelRadiusNeighborsClassifier(0.5, outlier_label=-1).fit(X, y)
    far = np.full((1, 4), 99.0)
    assert model.predict(far).tolist() == [-1]
    with pytest.warns(UserWarning, match="Outlier label -1 is not in training classes"):
        assert model.predict_proba(far).tolist() == [[0.0, 0.0, 0.0]]


METRICS = [RBF(0.7), Laplacian(), RBF() * Linear(), Distance(), Matern(nu=0.5)]


@pytest.mark.parametrize("kernel", METRICS, ids=str)
def test_metric_of_the_kernel(kernel):
    D = squared(kernel, Q, X)
    model = KernelKNeighborsClassifier(7, kernel=kernel).fit(X, y)
    d, i = model.kneighbors(Q)
    np.testing.assert_array_equal(i, np.argsort(D, axis=1, kind="stable")[:, :7])
    np.testing.assert_allclose(d**2, np.take_along_axis(D, i, axis=1), atol=1e-12)
    r = float(np.sqrt(np.median(D)))
    ball = KernelRadiusNeighborsClassifier(r, kernel=kernel, outlier_label=0).fit(X, y)
    places = ball.radius_neighbors(Q, return_distance=False)
    for row, some in zip(D, places, strict=True):
        np.testing.assert_array_equal(some, np.flatnonzero(row <= r**2))


@pytest.mark.parametrize("kernel", [c.kernel for c in LEAVES], ids=str)
def test_kernels_that_fall_do(kernel):
    if isinstance(kernel, Radial) and kernel.is_decreasing:
        values = kernel.profile(np.linspace(0.0, 50.0, 2000)[None, :])
        assert np.all(np.diff(values) <= 1e-15)


def test_points_beyond_the_range_of_the_kernel_are_distinguished():
    Z = np.array([[90.0], [80.0], [100.0], [70.0]])
    model = KernelKNeighborsRegressor(2, kernel=RBF(1.0)).fit(Z, Z[:, 0])
    d, i = model.kneighbors([[0.0]])
    assert i.tolist() == [[3, 1]]
    np.testing.assert_allclose(d**2, 2.0)


def test_neighbours_of_radial_kernels_are_those_in_space():
    near = NearestNeighbors(n_neighbors=6, algorithm="brute").fit(X).kneighbors(Q)[1]
    model = KernelKNeighborsRegressor(6, kernel=RBF(2.0)).fit(X, Y)
    np.testing.assert_array_equal(model.kneighbors(Q, return_distance=False), near)


# ---------------------------------------------------------------------- behaviour


def test_copies_are_at_distance_0_and_the_first_is_nearest():
    twice = np.vstack([X, X])
    model = KernelKNeighborsClassifier(2, kernel=RBF(0.5)).fit(twice, np.tile(y, 2))
    d, i = model.kneighbors(X)
    np.testing.assert_array_equal(d, 0.0)
    np.testing.assert_array_equal(i, np.column_stack([np.arange(900), np.arange(900) + 900]))
    np.testing.assert_array_equal(model.kneighbors(n_neighbors=1)[1][:900, 0], np.arange(900) + 900)
    far = KernelKNeighborsRegressor(1, weights="distance").fit(X, Y)
    np.testing.assert_allclose(far.predict(X), Y)


def test_same_bits_for_any_number_of_threads():
    norms, own = Linear().diag(X), Linear().diag(Q)
    one, two = (nearest_neighbors(Linear(), Q, X, 9, norms, own, n) for n in (1, 2))
    np.testing.assert_array_equal(one[0], two[0])
    np.testing.assert_array_equal(one[1], two[1])
    one, two = (radius_neighbors(Linear(), Q, X, 2.0, norms, own, n) for n in (1, 2))
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a, b)


def test_graph():
    model = KernelKNeighborsClassifier(3).fit(X, y)
    theirs = KNeighborsClassifier(3, algorithm="brute").fit(X, y)
    for mode in ("connectivity", "distance"):
        gap = model.kneighbors_graph(Q, mode=mode) - theirs.kneighbors_graph(Q, mode=mode)
        assert abs(gap).max() < 1e-9
    with pytest.raises(ValueError, match="mode must be"):
        model.kneighbors_graph(Q, mode="both")


def test_sparse_rows():
    A, B = np.where(X > 0, X, 0.0), np.where(Q > 0, Q, 0.0)
    dense = KernelKNeighborsClassifier().fit(A, y)
    model = KernelKNeighborsClassifier().fit(sp.csr_array(A), y)
    np.testing.assert_allclose(model.kneighbors(sp.csr_array(B))[0], dense.kneighbors(B)[0])


def test_precomputed_matrix():
    K, KQ = RBF()(X), RBF()(Q, X)
    plain = KernelKNeighborsClassifier(kernel=RBF()).fit(X, y)
    model = KernelKNeighborsClassifier(kernel="precomputed").fit(K, y)
    np.testing.assert_array_equal(model.predict(KQ), plain.predict(Q))
    np.testing.assert_allclose(model.kneighbors(K)[0], plain.kneighbors(X)[0], atol=1e-7)
    for others in (KQ, RBF()(Q, X[:500]), RBF()(X[:900] + 1.0, X)):
        fitted = KernelKNeighborsClassifier(kernel="precomputed")
        fitted.fit(K[: others.shape[1], : others.shape[1]], y[: others.shape[1]])
        with pytest.raises(ValueError, match=r"distances need k\(x, x\), .* the training points"):
            fitted.kneighbors(others)
    with pytest.raises(ValueError, match="not stored for kernel='precomputed'"):
        model.kneighbors()
    given = KernelKNeighborsClassifier(kernel=Precomputed(K)).fit(np.arange(900), y)
    np.testing.assert_array_equal(given.kneighbors()[1], plain.kneighbors()[1])


@pytest.mark.parametrize("kernel", [Linear(), RBF(20.0)], ids=str)
def test_float32_points_keep_their_distances(kernel):
    A, B = (X + 1000.0).astype(np.float32), (Q + 1000.0).astype(np.float32)
    model = KernelKNeighborsClassifier(3, kernel=kernel, weights="distance").fit(A, y)
    exact = KNeighborsClassifier(3, algorithm="kd_tree").fit(A.astype(float), y)
    np.testing.assert_array_equal(model.kneighbors(B)[1], exact.kneighbors(B.astype(float))[1])
    np.testing.assert_array_equal(model.kneighbors(A)[0][:, 0], 0.0)


@pytest.mark.parametrize("weights", ["uniform", "distance"])
def test_few_neighbours_within_a_radius_are_held_at_a_time(weights):
    model = KernelRadiusNeighborsClassifier(2.0, weights=weights, outlier_label=0).fit(X, y)
    small = KernelRadiusNeighborsClassifier(
        2.0, weights=weights, outlier_label=0, max_memory="500 kB"
    ).fit(X, y)
    theirs = RadiusNeighborsClassifier(2.0, weights=weights, outlier_label=0).fit(X, y)
    for given in (None, X):
        np.testing.assert_allclose(small.predict_proba(given), model.predict_proba(given))
        np.testing.assert_allclose(small.predict_proba(given), theirs.predict_proba(given))
    K = X @ X.T
    values = KernelRadiusNeighborsClassifier(
        2.0, kernel="precomputed", weights=weights, outlier_label=0, max_memory="500 kB"
    )
    tracemalloc.start()
    np.testing.assert_array_equal(values.fit(K, y).predict(K), model.predict(X))
    np.testing.assert_array_equal(small.predict(None), model.predict(None))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 128 * 900 * 900 / 4  # all pairs at once would take more


def test_strings():
    words, kinds = ["ACACAC", "CACACA", "ACAC", "GTGTGT", "TGTGTG", "GTGT"], list("aaabbb")
    new = ["CACA", "TGTG"]
    model = KernelKNeighborsClassifier(2, kernel=Spectrum(2)).fit(words, kinds)
    assert model.predict(new).tolist() == ["a", "b"]
    assert model.kneighbors(new)[1].shape == (2, 2)
    line = KernelKNeighborsRegressor(1, kernel=Spectrum(2)).fit(words, [1, 2, 3, 4, 5, 6])
    np.testing.assert_allclose(line.predict(words), [1, 2, 3, 4, 5, 6])
    ball = KernelRadiusNeighborsClassifier(4.0, kernel=Spectrum(2)).fit(words, kinds)
    assert ball.predict(new).tolist() == ["a", "b"]


# ---------------------------------------------------------------------- bad input


def test_more_neighbours_than_points():
    model = KernelKNeighborsClassifier(10).fit(X[:5], [0, 1, 0, 1, 0])
    text = "n_neighbors = 10, n_samples_fit = 5, n_samples = 500: only 5 training points"
    with pytest.raises(ValueError, match=text):
        model.predict(Q)
    with pytest.raises(ValueError, match="only 4 training points"):
        model.kneighbors(n_neighbors=5)
    with pytest.raises(ValueError, match="n_neighbors must be a positive integer, got 0"):
        model.kneighbors(Q, n_neighbors=0)


def test_no_neighbour_within_the_radius():
    model = KernelRadiusNeighborsClassifier(0.5).fit(X, y)
    with pytest.raises(ValueError, match=r"No neighbors found for test samples \[1\] \(1 of 2\)"):
        model.predict([[0.0] * 4, [99.0] * 4])
    with pytest.raises(TypeError, match="outlier_label='none' has a different type"):
        KernelRadiusNeighborsClassifier(outlier_label="none").fit(X, y)


def test_radius_below_0():
    model = KernelRadiusNeighborsClassifier(0.5).fit(X, y)
    for radius in (-1.0, np.nan):
        with pytest.raises(ValueError, match="radius must be a non-negative number"):
            model.radius_neighbors(Q, radius=radius)


def test_a_budget_that_is_not_a_size():
    with pytest.raises(ValueError, match="max_memory must be a positive number of bytes"):
        KernelKNeighborsClassifier(max_memory="lots").fit(X, y)


def test_weights_of_a_wrong_shape():
    model = KernelKNeighborsClassifier(weights=lambda d: d[:1]).fit(X, y)
    with pytest.raises(ValueError, match="must return one number for each"):
        model.predict(Q)


def test_values_that_are_not_finite():
    model = KernelKNeighborsClassifier().fit(X, y)
    with pytest.raises(ValueError, match="not finite"):
        model.predict(np.full((1, 4), 1e200) * [[1, -1, 1, -1]])


def test_there_is_nothing_to_compress():
    with pytest.raises(TypeError, match="predictions need the training points"):
        compress(KernelKNeighborsClassifier().fit(X, y), 10)
