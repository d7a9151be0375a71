"""Test points far from the origin: distances in feature space are accurate, or a warning is issued.

The reference is exact: offsets and points are multiples of powers of 2, so that translated points
are rounded once, and their distances are computed with 60 digits.
"""

import warnings

import formulas
import mpmath as mp
import numpy as np
import pytest
import zoo
from sklearn.cluster import KMeans
from sklearn.neighbors import KNeighborsClassifier

from mercer import (
    KernelCCA,
    KernelFisherDiscriminant,
    KernelKMeans,
    KernelKNeighborsClassifier,
    KernelPCA,
    KernelRadiusNeighborsClassifier,
    MetricMDS,
    hsic,
    mmd,
)
from mercer.gram import gram, nearest_neighbors, radius_neighbors
from mercer.gram._cancellation import warn_if_cancelled
from mercer.kernels import (
    RBF,
    Bilinear,
    Callable,
    Constant,
    Cosine,
    Features,
    Fixed,
    Linear,
    Map,
    Polynomial,
    Select,
    Shift,
    Stretch,
)
from mercer.solvers import silhouette

OFFSETS = [1e3, 1e5, 1e7, 1e9]
LOST = "determined by rounding errors: squared distances .* rounding error .* centre or standardise"

# Kernels whose distances in feature space do not change when the points are translated.
INVARIANT = [
    Linear(),
    3.0 * Linear() + 2.0,
    Linear() + RBF(2.0),
    Stretch(Linear(), (0.5, 1.0, 2.0)),
    Fixed(Select(Linear(), [0, 2])) + 0.5 * RBF(),
    Bilinear(np.diag([1.0, 2.0, 0.5]) + 0.2),
    RBF(2.0),
]


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def exact_squares(kernel, X, Z):
    """Return the squared distances in feature space with 60 digits, rounded at the end."""
    with mp.workdps(60):
        own = [formulas.value(kernel, x, x) for x in X]
        norms = [formulas.value(kernel, z, z) for z in Z]
        return np.array(
            [
                [
                    float(a - 2 * formulas.value(kernel, x, z) + b)
                    for z, b in zip(Z, norms, strict=True)
                ]
                for x, a in zip(X, own, strict=True)
            ]
        )


def squared_of(kernel, x, z):
    """Return the squared distance of two points in feature space."""
    return kernel.diag([x]) - 2.0 * kernel([x], [z])[0] + kernel.diag([z])


def right_neighbours(kernel, X, k, index, squared, rtol):
    """Return whether the neighbours of each point are the nearest of the others, up to ties."""
    exact = exact_squares(kernel, X, X)
    np.fill_diagonal(exact, np.inf)
    best = np.sort(exact, axis=1)[:, :k]
    found = np.take_along_axis(exact, index, axis=1)
    floor = 1e-12 * np.abs(best).max()  # absolute tolerance for a sum with a bounded kernel
    return np.allclose(found, best, rtol=rtol, atol=floor) and np.allclose(
        squared, best, rtol=10 * rtol, atol=floor
    )


def neighbours_of_fit(kernel, X, k):
    """Return the neighbours among the training points, and whether a warning was issued."""
    with warnings.catch_warnings(record=True) as caught:
        for category in (UserWarning, RuntimeWarning):  # Exp overflows
            warnings.simplefilter("always", category)
        model = KernelKNeighborsClassifier(k, kernel=kernel).fit(X, np.arange(len(X)) % 2)
        distances, index = model.kneighbors()
    return index, distances**2, any("rounding" in str(w.message) for w in caught)


@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("kernel", INVARIANT, ids=str)
def test_translation_changes_no_neighbour(kernel, offset, rng):
    X = rng.integers(-(2**12), 2**12, (18, 3)) / 2**10 + offset * np.array([1.0, -0.7, 0.3])
    index, squared, warned = neighbours_of_fit(kernel, X, 4)
    assert right_neighbours(kernel, X, 4, index, squared, 1e-6)
    assert not warned


# Each kernel at every second offset; `pytest -m long` runs the other ones.
EVERY = zoo.every(domain="vectors")["argvalues"]
ENTRIES_AT_OFFSETS = [
    pytest.param(entry, offset, id=f"{entry.id}-{offset:g}", marks=[pytest.mark.long] * (turn % 2))
    for number, entry in enumerate(EVERY)
    for turn, offset in enumerate(OFFSETS, start=number)
]


@pytest.mark.parametrize(("entry", "offset"), ENTRIES_AT_OFFSETS)
def test_neighbours_are_right_or_a_warning_is_given(entry, offset, rng):
    kernel = entry.kernel
    X = rng.integers(-(2**12), 2**12, (12, entry.columns or 3)) / 2**10 + offset
    near = rng.normal(size=(2, X.shape[1]))
    try:
        known = np.allclose(exact_squares(kernel, near[:1], near[1:]), squared_of(kernel, *near))
    except (TypeError, AttributeError, IndexError):
        known = False
    if not known:
        pytest.skip("no formula")
    try:
        index, squared, warned = neighbours_of_fit(kernel, X, 3)
    except ValueError as error:
        assert "finite" in str(error)  # the kernel overflows
    else:
        assert warned or right_neighbours(kernel, X, 3, index, squared, 1e-2)


def test_timestamps(rng):
    t = 1.7e9 + rng.uniform(0, 3.6e5, 400)
    y = (np.floor(t / 21600) % 2).astype(int)
    theirs = KNeighborsClassifier(3).fit(t[:300, None], y[:300])
    ours = KernelKNeighborsClassifier(3).fit(t[:300, None], y[:300])
    np.testing.assert_array_equal(ours.predict(t[300:, None]), theirs.predict(t[300:, None]))
    d, i = ours.kneighbors(t[300:, None])
    D, J = theirs.kneighbors(t[300:, None])
    np.testing.assert_array_equal(i, J)
    np.testing.assert_allclose(d, D, rtol=1e-6)


def test_tight_clusters_far_apart(rng):
    """Centring does not help here: the distances must be computed from differences."""
    A = 1e-4 * rng.normal(size=(60, 12))
    X = np.concatenate([A, A[::-1] + 1e6, A - 1e6])
    D, J = KNeighborsClassifier(3, algorithm="ball_tree").fit(X, np.arange(180) % 2).kneighbors()
    d, i = KernelKNeighborsClassifier(3).fit(X, np.arange(180) % 2).kneighbors()
    np.testing.assert_array_equal(i, J)
    np.testing.assert_allclose(d, D, rtol=1e-6)
    model = KernelRadiusNeighborsClassifier(3e-4).fit(X, np.arange(180) % 2)
    near = KNeighborsClassifier(179, algorithm="ball_tree").fit(X, np.arange(180) % 2).kneighbors()
    for found, distances, others in zip(model.radius_neighbors()[1], *near, strict=True):
        np.testing.assert_array_equal(found, np.sort(others[distances <= 3e-4]))


def test_points_within_a_radius_of_sparse_rows(rng):
    import scipy.sparse as sp

    X = rng.integers(-64, 64, (30, 3)) / 16.0 + 1e8
    _, squared, places = radius_neighbors(
        Linear(), sp.csr_array(X), None, 3.0, Linear().diag(X), Linear().diag(X)
    )
    exact = np.square(X[:, None] - X[None]).sum(axis=2)
    np.fill_diagonal(exact, np.inf)
    i, j = np.nonzero(exact <= 9.0)
    np.testing.assert_array_equal(places, j)
    np.testing.assert_allclose(squared, exact[i, j])


@pytest.mark.parametrize("solver", ["exact", "nystroem"])
@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("kernel", INVARIANT[:4], ids=str)
def test_translation_changes_no_cluster(kernel, offset, solver, rng):
    A = rng.integers(-(2**12), 2**12, (90, 3)) / 2**12
    A[20:50] += 4.0
    A[50:] -= 4.0
    X = A + offset
    model = KernelKMeans(3, kernel=kernel, solver=solver).fit(X)
    there = KernelKMeans(3, kernel=kernel, solver=solver).fit(X - offset)
    np.testing.assert_array_equal(model.labels_, there.labels_)
    np.testing.assert_allclose(model.inertia_, there.inertia_, rtol=1e-9)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    np.testing.assert_allclose(
        model.transform(X), there.transform(X - offset), rtol=1e-6, atol=1e-6
    )


def test_inertia_is_that_of_scikit_learn(rng):
    X = rng.normal(size=(400, 3)) + np.repeat([[0.0, 0, 0], [4.0, 0, 0]], 200, axis=0) + 1e7
    theirs = KMeans(2, n_init=10, random_state=0).fit(X)
    ours = KernelKMeans(2, kernel="linear").fit(X)
    np.testing.assert_allclose(ours.inertia_, theirs.inertia_, rtol=1e-9)
    assert ours.kernel_ == Shift(Linear(), ours.kernel_.offset)


@pytest.mark.parametrize("kernel", [Polynomial(3), Linear() ** 2, Map(Polynomial(2), np.copy)])
def test_lost_distances_are_reported(kernel, rng):
    X = rng.normal(size=(60, 3)) + 1e8
    with pytest.warns(UserWarning, match="the neighbours of .* of 60 points are " + LOST):
        KernelKNeighborsClassifier(3, kernel=kernel).fit(X, np.arange(60) % 2).kneighbors()
    with pytest.warns(UserWarning, match=f"{LOST}|fewer than n_clusters"):
        KernelKMeans(2, kernel=kernel).fit(X)
    with pytest.warns(UserWarning, match="silhouettes are " + LOST):
        silhouette(gram(kernel, X), np.arange(60) % 2)


def test_distances_that_are_zero_are_not_reported(rng):
    X = np.repeat(rng.normal(size=(10, 3)), 6, axis=0) + 1e3
    y = np.arange(60) % 2
    for kernel in (Polynomial(2), Linear(), Linear() + 1.0):
        distances, _ = KernelKNeighborsClassifier(5, kernel=kernel).fit(X, y).kneighbors()
        assert not distances.any()
    rays = np.outer(
        rng.uniform(1.0, 2.0, 30), [1.0, 2.0, 3.0]
    )  # the cosine kernel treats them as one point
    found, _ = nearest_neighbors(Cosine(), rays, None, 4, np.ones(30), np.ones(30))
    assert not found.any()
    unseen = np.column_stack([np.repeat([1.0, 2.0, 3.0], 10), rng.normal(size=30)])
    own = Select(Polynomial(2), [0]).diag(unseen)
    assert not nearest_neighbors(Select(Polynomial(2), [0]), unseen, None, 4, own, own)[0].any()


def test_ordinary_points_keep_their_kernel(rng):
    X = rng.normal(size=(50, 3)) + 3.0
    for model in (KernelKMeans(2, kernel="linear"), KernelPCA(2, kernel="linear")):
        assert model.fit(X).kernel_ == Linear()


@pytest.mark.parametrize("offset", OFFSETS)
def test_other_models_of_differences(offset, rng):
    A = rng.integers(-(2**12), 2**12, (60, 3)) / 2**11
    A[30:] += [2.0, 0.0, 0.0]
    X, y, B = A + offset, np.repeat([0, 1], 30), rng.normal(size=(60, 1)) + A[:, :1]
    A = X - offset
    kernel = 2.0 * Linear() + Constant(1.0)
    here, there = (KernelPCA(2, kernel=kernel).fit(P) for P in (X, A))
    np.testing.assert_allclose(
        np.abs(here.transform(X)), np.abs(there.transform(A)), rtol=1e-6, atol=1e-7
    )
    back = here.inverse_transform(here.transform(X), method="auto")
    np.testing.assert_allclose(back.mean(axis=0), X.mean(axis=0))
    here, there = (KernelFisherDiscriminant(0.1, kernel=kernel).fit(P, y) for P in (X, A))
    np.testing.assert_array_equal(here.predict(X), there.predict(A))
    here, there = (KernelCCA(1, kernel=kernel, kernel_y="linear").fit(P, B) for P in (X, A))
    np.testing.assert_allclose(here.score(X, B), there.score(A, B), rtol=1e-6)
    here, there = (MetricMDS(2, kernel=kernel).fit(P) for P in (X, A))
    np.testing.assert_allclose(here.stress_, there.stress_, rtol=1e-6)
    np.testing.assert_allclose(mmd(X[:30], X[30:], kernel), mmd(A[:30], A[30:], kernel), rtol=1e-9)
    np.testing.assert_allclose(hsic(X, B, kernel), hsic(A, B, kernel), rtol=1e-9)


def cancelled(X, Z):
    """<x, z>, which is defined only for positive vectors below 2e9."""
    if min(X.min(), Z.min()) < 0 or max(X.max(), Z.max()) > 2e9:
        raise ValueError("outside of the domain")
    return X @ Z.T


def direction(X):
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def test_the_domain_of_a_function_may_end_near_the_points():
    X = 1e9 + np.random.default_rng(0).normal(size=(20, 1))
    with pytest.warns(UserWarning, match="results depend on rounding: squared distances"):
        warn_if_cancelled(Callable(cancelled, "matrix"), X)


def test_points_that_are_equal_in_feature_space_are_not_cancelled():
    X = np.outer([1.0, 2.3, 3.7, 5.1, 7.7], [0.1, 0.2, 0.7])  # all have the same direction
    assert np.ptp(Features(direction).diag(X)) > 0  # because of rounding
    warn_if_cancelled(Features(direction), X)


def test_neighbours_of_overflowing_values_are_refused():
    X = np.array([[1e200], [2e200]])
    with pytest.raises(ValueError, match=r"Polynomial.* overflows on these points"):
        nearest_neighbors(Polynomial(3), X, X, 1, np.zeros(2))
    with pytest.raises(ValueError, match=r"Polynomial.* overflows on these points"):
        radius_neighbors(Polynomial(3), X, X, 1.0, np.zeros(2), np.zeros(2))


def test_neighbours_in_a_radius_that_are_lost_to_rounding():
    X = np.array([[1e8], [1e8 + 1], [1e8 + 5]])
    kernel = Callable(lambda X, Z: X @ Z.T, "matrix")  # has no equivalent on differences
    with pytest.warns(UserWarning, match="neighbours of 3 of 3 points are determined by rounding"):
        radius_neighbors(kernel, X, X, 2.0, kernel.diag(X), kernel.diag(X))
