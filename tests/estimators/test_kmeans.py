"""Kernel k-means: against Lloyd's algorithm in R^d, brute force, and with invalid input."""

import re
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score, silhouette_samples

from mercer import Blocks, KernelKMeans, MemoryBudgetError
from mercer.datasets import circles
from mercer.gram import gram
from mercer.kernels import RBF, Callable, Distance, Linear, Precomputed, Radial, Spectrum, node
from mercer.solvers import Lloyd, Status, cluster, silhouette
from mercer.solvers.kmeans import _cluster_distances, _kmeans_solver

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 3))
Q = rng.normal(size=(40, 3))


def inertia(K, labels, w):
    """Return the objective by definition, as means over all pairs of a cluster."""
    total = w @ np.diag(K)
    for c in np.unique(labels):
        v = np.where(labels == c, w, 0.0)
        total -= v @ K @ v / v.sum()
    return total


# ---------------------------------------------------------------------- references


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("weighted", [False, True])
def test_linear_kernel_is_lloyd_from_the_same_start(seed, weighted):
    rng = np.random.default_rng(seed)
    w = rng.uniform(0.1, 2.0, size=300) if weighted else None
    start = X[rng.choice(300, 5, replace=False)]
    theirs = KMeans(5, init=start, n_init=1, tol=0.0).fit(X, sample_weight=w)
    ours = KernelKMeans(5, kernel="linear", init=start, tol=0.0).fit(X, sample_weight=w)
    np.testing.assert_array_equal(ours.labels_, theirs.labels_)
    np.testing.assert_allclose(ours.inertia_, theirs.inertia_, rtol=1e-12)
    np.testing.assert_allclose(ours.transform(Q), theirs.transform(Q), rtol=1e-9)
    np.testing.assert_array_equal(ours.predict(Q), theirs.predict(Q))
    np.testing.assert_allclose(ours.score(Q), theirs.score(Q), rtol=1e-10)
    centres = ours.dual_coef_.T @ X
    np.testing.assert_allclose(centres, theirs.cluster_centers_, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("seed", range(50))
def test_brute_force_on_tiny_problems(seed):
    rng = np.random.default_rng(seed)
    n, C = int(rng.integers(4, 8)), int(rng.integers(2, 4))
    points, w = rng.normal(size=(n, 2)), rng.uniform(0.2, 2.0, size=n)
    kernel = [RBF(0.7), Linear(), RBF(2.0) + Linear()][seed % 3]
    K = kernel(points)
    best = min(inertia(K, np.array(each), w) for each in product(range(C), repeat=n))
    model = KernelKMeans(C, kernel=kernel, n_init=50, tol=0.0, algorithm="hartigan")
    model.fit(points, sample_weight=w)
    np.testing.assert_allclose(model.inertia_, best, rtol=1e-10)
    np.testing.assert_allclose(inertia(K, model.labels_, w), best, rtol=1e-10)


@pytest.mark.parametrize("kernel", [RBF(0.5), Linear(), Distance()], ids=str)
@pytest.mark.parametrize("storage", ["dense", "tiled"])
@pytest.mark.parametrize("algorithm", ["lloyd", "hartigan"])
def test_inertia_never_rises(kernel, storage, algorithm):
    K, w = gram(kernel, X, storage=storage), rng.uniform(0.1, 3.0, size=300)
    for seed in range(10):
        start = np.random.default_rng(seed).integers(12, size=300)
        found = Lloyd(12, tol=0.0, algorithm=algorithm).partition(K, w, start)
        slack = 1e-12 * found.history[0]
        assert np.all(np.diff(found.history) <= slack)
        assert found.inertia <= found.history[-1] + slack
        np.testing.assert_allclose(found.inertia, inertia(kernel(X), found.labels, w), rtol=1e-9)


def test_normalised_cut_is_a_special_case():
    A = np.where(np.add.outer(np.arange(20) // 10, -(np.arange(20) // 10)) == 0, 1.0, 0.02)
    np.fill_diagonal(A, 0.0)
    w = A.sum(axis=1)
    K = A / np.outer(w, w) + np.diag(1.0 / w)
    model = KernelKMeans(2, kernel="precomputed", tol=0.0).fit(K, sample_weight=w)
    assert adjusted_rand_score(np.arange(20) // 10, model.labels_) == 1.0
    cut = 2.0 * A[:10, 10:].sum() / w[:10].sum()
    # For a cluster, the sum of w w^T K is that of its edges, m_c - cut_c, plus s m_c, with s = 1.
    np.testing.assert_allclose(model.inertia_, w @ np.diag(K) - 2 * (1 + 1) + cut)


def test_silhouette_is_that_of_the_distances():
    labels = np.arange(300) % 4
    K = RBF(0.8)(X)
    D = np.sqrt(np.maximum(2.0 - 2.0 * K, 0.0))
    np.fill_diagonal(D, 0.0)
    for storage in ("dense", "tiled"):
        ours = silhouette(gram(RBF(0.8), X, storage=storage), labels)
        np.testing.assert_allclose(ours, silhouette_samples(D, labels, metric="precomputed"))
    with pytest.raises(ValueError, match="all points have the same label"):
        silhouette(gram(RBF(), X), np.zeros(300))


# ---------------------------------------------------------------------- behaviour


def test_nested_rings():
    points, ring = circles(300, factor=0.3, random_state=0)
    ours = KernelKMeans(2, gamma=5.0).fit(points)
    assert adjusted_rand_score(ring, ours.labels_) == 1.0
    assert abs(adjusted_rand_score(ring, KMeans(2, n_init=5).fit_predict(points))) < 0.05


def test_distances_are_those_of_the_expansion():
    model = KernelKMeans(3, kernel=RBF(0.8)).fit(X)
    from mercer import Expansion

    for c in range(3):
        for i in range(3):
            far = Expansion.mean(RBF(0.8), Q[i : i + 1]).distance(model.expansion_[c])
            np.testing.assert_allclose(model.transform(Q)[i, c], far[0], rtol=1e-9)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    np.testing.assert_allclose(np.square(model.transform(X)).min(axis=1).sum(), model.inertia_)
    np.testing.assert_allclose(model.score(X), -model.inertia_)
    assert model.report_.status is Status.CONVERGED
    assert list(model.get_feature_names_out()) == [f"kernelkmeans{c}" for c in range(3)]


def test_heaviest_cluster_first():
    points = np.repeat([[0.0], [10.0], [20.0]], [5, 20, 10], axis=0) + 0.01 * rng.normal(
        size=(35, 1)
    )
    labels = KernelKMeans(3, kernel="linear").fit_predict(points)
    assert np.bincount(labels).tolist() == [20, 10, 5]


def test_empty_cluster_takes_the_farthest_point():
    points = np.array([[0.0], [0.1], [0.2], [9.0]])
    found = Lloyd(2, tol=0.0).partition(gram(Linear(), points), start=np.zeros(4, dtype=int))
    assert found.labels.tolist() == [0, 0, 0, 1]


def test_weight_0_has_no_part_but_a_label():
    w = np.where(np.arange(300) < 200, 1.0, 0.0)
    part = KernelKMeans(4, kernel=RBF()).fit(X[:200])
    model = KernelKMeans(4, kernel=RBF()).fit(X, sample_weight=w)
    np.testing.assert_array_equal(model.labels_[:200], part.labels_)
    np.testing.assert_array_equal(model.labels_[200:], part.predict(X[200:]))


def test_labels_to_start_from():
    start = np.arange(300) % 3
    w = np.where(np.arange(300) < 200, 1.0, 0.0)
    once = KernelKMeans(3, kernel=RBF(), init=start).fit(X, sample_weight=w)
    again = KernelKMeans(3, kernel=RBF(), init=start[:200]).fit(X[:200])
    np.testing.assert_array_equal(once.labels_[:200], again.labels_)


def test_precomputed_matrix():
    K = RBF()(X)
    plain = KernelKMeans(3, kernel=RBF(), init=X[:3]).fit(X)
    model = KernelKMeans(3, kernel="precomputed", init=[0, 1, 2]).fit(K)
    np.testing.assert_array_equal(model.labels_, plain.labels_)
    np.testing.assert_array_equal(model.predict(RBF()(Q, X)), plain.predict(Q))
    np.testing.assert_allclose(model.transform(K), plain.transform(X), atol=1e-7)
    for others in (RBF()(Q, X), RBF()(X + 1.0, X)):  # the second one is square
        with pytest.raises(ValueError, match=r"distances need k\(x, x\), .* the training points"):
            model.transform(others)
    indices = KernelKMeans(3, kernel=Precomputed(K), init=np.array([1, 2, 3])).fit(np.arange(300))
    same = KernelKMeans(3, kernel="precomputed", init=[1, 2, 3]).fit(K)
    points = KernelKMeans(3, kernel=RBF(), init=X[1:4]).fit(X)
    np.testing.assert_array_equal(indices.labels_, points.labels_)
    np.testing.assert_array_equal(same.labels_, points.labels_)


def test_float32_points_lose_nothing():
    far = (X + 1000.0).astype(np.float32)
    model = KernelKMeans(3, kernel="linear").fit(far)
    exact = KernelKMeans(3, kernel="linear").fit(far.astype(float) - 1000.0)
    np.testing.assert_array_equal(model.labels_, exact.labels_)
    np.testing.assert_allclose(model.inertia_, exact.inertia_, rtol=1e-6)
    np.testing.assert_array_equal(model.predict(far), model.labels_)


def test_sparse_rows():
    dense = np.abs(X) * (X > 0)
    plain = KernelKMeans(3, kernel="linear").fit(dense)
    model = KernelKMeans(3, kernel="linear").fit(sp.csr_array(dense))
    np.testing.assert_array_equal(model.labels_, plain.labels_)


def test_strings():
    words = ["ACACACAC", "ACACAC", "CACACACA", "GTGTGTGT", "TGTGTG", "GTGTGT"]
    model = KernelKMeans(2, kernel=Spectrum(2)).fit(words)
    assert adjusted_rand_score([0, 0, 0, 1, 1, 1], model.labels_) == 1.0
    assert model.predict(["ACAC", "GTGT"]).tolist() == [model.labels_[0], model.labels_[3]]
    assert model.transform(["ACAC"]).shape == (1, 2)
    given = KernelKMeans(2, kernel=Spectrum(2), init=["GTGT", "ACAC"]).fit(words)
    assert given.labels_.tolist() == [1, 1, 1, 0, 0, 0]
    low = KernelKMeans(2, kernel=Spectrum(2), solver="nystroem").fit(words)
    np.testing.assert_array_equal(low.labels_, model.labels_)


# ---------------------------------------------------------------------- large n


def test_tiles_and_arrays_agree_whatever_the_threads(monkeypatch):
    held = KernelKMeans(5, kernel=RBF(), tol=0.0).fit(X)
    monkeypatch.setattr(_kmeans_solver, "_MAX_STORED_POINTS", 10)
    one = KernelKMeans(5, kernel=RBF(), tol=0.0, n_jobs=1).fit(X)
    two = KernelKMeans(5, kernel=RBF(), tol=0.0, n_jobs=2).fit(X)
    np.testing.assert_array_equal(one.labels_, held.labels_)
    np.testing.assert_array_equal(one.labels_, two.labels_)
    assert one.inertia_ == two.inertia_
    np.testing.assert_array_equal(one.dual_coef_, two.dual_coef_)


def test_landmarks():
    exact = KernelKMeans(3, kernel=RBF(2.0), tol=0.0).fit(X)
    low = KernelKMeans(3, kernel=RBF(2.0), tol=0.0, solver="nystroem", rank=100).fit(X)
    assert len(low.X_fit_) <= 100
    assert low.report_.status is Status.APPROXIMATE
    np.testing.assert_allclose(low.inertia_, exact.inertia_, rtol=1e-3)
    # The inertia is that of the kernel itself, with these centroids.
    np.testing.assert_allclose(np.square(low.transform(X)).min(axis=1).sum(), low.inertia_)
    np.testing.assert_array_equal(low.predict(X), low.labels_)


def test_auto_says_when_it_takes_landmarks(monkeypatch):
    monkeypatch.setitem(_kmeans_solver.MAX_EXACT_POINTS, "clusters", 100)
    with pytest.warns(UserWarning, match=r"more than 100 points \(here 300\), .*landmarks"):
        model = KernelKMeans(2, kernel=RBF(), rank=20).fit(X)
    assert len(model.X_fit_) == 20
    assert len(KernelKMeans(2, kernel=RBF(), solver="exact").fit(X).X_fit_) == 300


def test_budget():
    with pytest.raises(MemoryBudgetError, match="k-means of 300 points"):
        KernelKMeans(8, max_memory=1000).fit(X)
    with pytest.raises(MemoryBudgetError, match="drawing 300 landmarks among 300 points"):
        KernelKMeans(2, kernel=RBF(), solver="nystroem", max_memory="1 MiB").fit(X)
    small = KernelKMeans(3, kernel=RBF(), max_memory="30 MiB").fit(X)
    np.testing.assert_array_equal(small.labels_, KernelKMeans(3, kernel=RBF()).fit(X).labels_)


# ---------------------------------------------------------------------- invalid input


def test_more_clusters_than_distinct_points():
    points = np.repeat([[0.0], [1.0]], 5, axis=0)
    with pytest.warns(ConvergenceWarning, match="2 clusters were found, fewer than n_clusters=3"):
        model = KernelKMeans(3, kernel=RBF()).fit(points)
    assert len(np.unique(model.labels_)) == 2
    assert model.inertia_ == 0.0
    assert np.isinf(model.transform(points)[:, 2]).all()


def test_more_clusters_than_points():
    with pytest.raises(ValueError, match="n_samples=3 should be >= n_clusters=4"):
        KernelKMeans(4).fit(X[:3])


def test_rounds_that_are_not_enough():
    start = np.arange(300) % 6
    with pytest.warns(ConvergenceWarning, match="points still moved after 2 iterations"):
        model = KernelKMeans(6, kernel="linear", init=start, max_iter=2, tol=0.0).fit(X)
    assert model.report_.status is Status.NOT_CONVERGED
    assert model.n_iter_ == 2


@pytest.mark.parametrize(
    ("init", "match"),
    [
        (np.zeros(7, dtype=int), "init must be 3 points, .* or 300 labels, .*got 7"),
        (np.full(300, 3), "labels from 3 to 3, but with n_clusters=3, labels must be 0 to 2"),
        (X[:2], "init must be 3 points"),
        (X[:3, :2], "init has 2 columns, but X has 3"),
    ],
)
def test_bad_starts(init, match):
    with pytest.raises(ValueError, match=match):
        KernelKMeans(3, kernel=RBF(), init=init).fit(X)


def test_solver_for_another_number_of_clusters():
    with pytest.raises(ValueError, match=r"n_clusters is 8, but the solver is Lloyd\(n_clusters=3"):
        KernelKMeans(solver=Lloyd(3)).fit(X)


def test_kernels_that_are_none():
    K = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]])
    with pytest.raises(np.linalg.LinAlgError, match="not positive semidefinite"):
        KernelKMeans(2, kernel="precomputed").fit(K)
    with pytest.raises(ValueError, match="not finite"):
        KernelKMeans(2, kernel="linear").fit(1e200 * X)


def test_says_what_it_does(capsys):
    KernelKMeans(2, verbose=1).fit(X)
    text = capsys.readouterr().out
    assert "[KernelKMeans] iteration 1: inertia" in text
    assert "converged" in text


def test_cluster_is_a_separate_function():
    found = cluster(Linear(), X, Lloyd(2))
    assert found.labels.shape == (300,)
    assert not found.approximate


@pytest.mark.parametrize("init", ["k-means++", "random"])
@pytest.mark.parametrize("seed", range(6))
def test_weights_are_repetitions_from_every_start(seed, init):
    """Also for one restart, clusters of one point, and any order of the points."""
    rng = np.random.default_rng(seed)
    X, w = rng.normal(size=(15, 4)), rng.integers(0, 5, 15)
    model = KernelKMeans(5, init=init, n_init=1)
    repeated = rng.permutation(np.repeat(np.arange(15), w))
    weighted = model.fit(X, sample_weight=w).predict(X)
    np.testing.assert_array_equal(model.fit(X[repeated]).predict(X), weighted)
    np.testing.assert_array_equal(model.fit(sp.csr_array(X[repeated])).predict(X), weighted)


@node
class InfiniteUnlessEqual(Radial):
    """1 for equal points and infinity for all others."""

    def profile(self, s):
        return np.where(s > 0, np.inf, 1.0)

    def slope(self, s):
        return np.zeros_like(s)


@pytest.mark.parametrize("start", [None, np.array([0, 1, 0, 1, 0])], ids=["points", "labels"])
def test_values_that_are_not_finite(start):
    with pytest.raises(ValueError, match=r"InfiniteUnlessEqual.* overflows on these points"):
        cluster(InfiniteUnlessEqual(), np.arange(5.0)[:, None], Lloyd(2), start=start)


def test_points_that_are_far_from_the_origin():
    points = 1e7 + np.random.default_rng(0).normal(size=(40, 2))
    with pytest.warns(UserWarning, match="the clusters are determined by rounding errors"):
        cluster(Callable(lambda X, Z: X @ Z.T, "matrix"), points, Lloyd(2))


def test_an_empty_cluster_does_not_take_the_only_point_of_another():
    # All points but one are alone in their clusters after three of them have moved.
    points = np.array([[0.0], [1.0], [1.001], [5.0]])
    found = cluster(Linear(), points, Lloyd(4), start=np.zeros(4, dtype=int))
    assert np.array_equal(np.sort(found.labels), np.arange(4))
    with pytest.warns(ConvergenceWarning, match="2 clusters were found, fewer than n_clusters=4"):
        cluster(Linear(), np.array([[0.0], [0.0], [1.0], [1.0]]), Lloyd(4, random_state=0))


def test_silhouettes_of_several_tiles(monkeypatch):
    monkeypatch.setattr(_cluster_distances, "_SILHOUETTE_TILE", 16)
    labels = rng.integers(0, 3, size=len(Q))
    expected = silhouette_samples(Q, labels, metric="euclidean")
    np.testing.assert_allclose(silhouette(gram(Linear(), Q), labels), expected, atol=1e-10)
    with pytest.raises(ValueError, match="got 2 labels for 40 points; pass one label per point"):
        silhouette(gram(Linear(), Q), [0, 1])


def test_iterations_over_blocks_that_are_not_enough(capsys):
    blocks = Blocks.of(X, 100)
    model = KernelKMeans(3, solver="nystroem", random_state=0, max_iter=1, verbose=1)
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(blocks)
    messages = [str(warning.message) for warning in caught]
    assert "points still moved after 1 iterations to an inertia of" in messages[0]
    assert (
        "points still change clusters after 1 iterations; increase max_iter or tol" in messages[1]
    )
    assert re.search(r"\[KernelKMeans\] iteration 1: inertia [\d.]+\n", capsys.readouterr().out)
    with pytest.raises(TypeError, match="k-means of Blocks needs points in memory"):
        cluster(RBF(), blocks, Lloyd(2), "nystroem")
