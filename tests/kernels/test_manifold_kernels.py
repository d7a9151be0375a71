"""Kernels of neighbour graphs: agreement with scikit-learn's embeddings, new points, errors."""

import pickle

import numpy as np
import pytest
from sklearn.datasets import load_digits, make_s_curve, make_swiss_roll
from sklearn.manifold import (
    Isomap,
    LocallyLinearEmbedding,
    SpectralEmbedding,
    spectral_embedding,
)
from sklearn.neighbors import kneighbors_graph

from mercer import KernelPCA, load, save
from mercer._core import MemoryBudgetError, budget_in_bytes, resource_scope
from mercer.kernels import CommuteTime, Diffusion, Geodesic, LocallyLinear

K = 12  # neighbours, so that all graphs are connected
rng = np.random.default_rng(0)


def digits():
    X = load_digits(n_class=5).data[:400]
    return X + 1e-3 * rng.normal(size=X.shape)  # no equal distances, whose order is arbitrary


DATA = {
    "swiss roll": make_swiss_roll(400, random_state=0)[0],
    "S-curve": make_s_curve(400, random_state=0)[0],
    "digits": digits(),
}
FITS = {
    "Geodesic": lambda **options: KernelPCA(2, kernel=Geodesic(K), indefinite="clip", **options),
    "LocallyLinear": lambda **options: KernelPCA(2, kernel=LocallyLinear(K), **options),
    "CommuteTime": lambda **options: KernelPCA(2, kernel=CommuteTime(K), **options),
    "Diffusion": lambda **options: KernelPCA(2, kernel=Diffusion(K, steps=3), **options),
}
on_every_data_set = pytest.mark.parametrize("name", DATA)
every_kernel = pytest.mark.parametrize("kind", FITS)


def split(name):
    return DATA[name][:320], DATA[name][320:]


def assert_equal_up_to_scale(Z, reference, rtol, weights=None):
    """Compare centred columns up to sign and scale; return the centres and the scales."""
    z, r = (np.average(A, axis=0, weights=weights) for A in (Z, reference))
    scale = np.sum((Z - z) * (reference - r), axis=0) / np.sum((Z - z) ** 2, axis=0)
    error = np.linalg.norm((Z - z) * scale - (reference - r), axis=0)
    assert np.all(error <= rtol * np.linalg.norm(reference - r, axis=0))
    return z, r, scale


@on_every_data_set
@pytest.mark.parametrize("solver", ["auto", "dense"])
def test_kernel_pca_with_geodesic_is_isomap(name, solver):
    X, new = split(name)
    model = FITS["Geodesic"](eigen_solver=solver).fit(X)
    reference = Isomap(n_neighbors=K).fit(X)
    _, _, scale = assert_equal_up_to_scale(model.training_scores_, reference.embedding_, 1e-10)
    np.testing.assert_allclose(np.abs(scale), 1.0, rtol=1e-10)
    np.testing.assert_allclose(model.eigenvalues_, reference.kernel_pca_.eigenvalues_, rtol=1e-10)
    size = np.abs(reference.embedding_).max()
    Z = model.transform(new) * scale
    np.testing.assert_allclose(Z, reference.transform(new), rtol=0, atol=1e-10 * size)


@on_every_data_set
@pytest.mark.parametrize("solver", ["dense", "krylov"])
def test_kernel_pca_with_locally_linear_is_lle(name, solver):
    X, new = split(name)
    model = FITS["LocallyLinear"](eigen_solver=solver).fit(X)
    reference = LocallyLinearEmbedding(n_neighbors=K, eigen_solver="dense").fit(X)
    # The smallest eigenvalues are 1e-9 of the largest one, which limits the accuracy of both.
    z, r, scale = assert_equal_up_to_scale(model.training_scores_, reference.embedding_, 1e-6)
    size = np.abs(reference.embedding_).max()
    Z = (model.transform(new) - z) * scale + r
    np.testing.assert_allclose(Z, reference.transform(new), rtol=0, atol=1e-6 * size)


@on_every_data_set
def test_kernel_pca_with_commute_time_is_spectral_embedding(name):
    X, _ = split(name)
    kernel = CommuteTime(K).resolve(X)
    A = kneighbors_graph(X, K)
    options = {"n_components": 2, "eigen_solver": "arpack", "random_state": 0, "eigen_tol": 1e-14}
    plain = spectral_embedding(0.5 * (A + A.T), norm_laplacian=False, **options)
    assert_equal_up_to_scale(KernelPCA(2, kernel=kernel).fit_transform(X), plain, 1e-8)

    degrees = kernel.degrees()
    np.testing.assert_allclose(degrees, np.ravel(0.5 * (A + A.T).sum(axis=1)))
    model = KernelPCA(2, kernel=kernel).fit(X, sample_weight=degrees)
    # scikit-learn counts the point itself as one of its neighbours
    normalised = SpectralEmbedding(affinity="nearest_neighbors", n_neighbors=K + 1, **options)
    expected = normalised.fit_transform(X)
    assert_equal_up_to_scale(model.training_scores_, expected, 1e-8, degrees)


def squared_distances(kernel, X):
    values = kernel(X)
    return np.diag(values)[:, None] + np.diag(values) - 2 * values


def transitions(X, width, self_affinity):
    """Return the transition matrix of the walk and its stationary distribution, from scratch."""
    D = np.linalg.norm(X[:, None] - X[None], axis=-1)
    near = np.sort(D, axis=1)[:, [4]] >= D  # the point itself and 4 neighbours
    A = np.where(near, np.exp(-(D**2) / (2 * width**2)), 0.0)
    A = (A + A.T) / 2
    np.fill_diagonal(A, self_affinity)
    return A / A.sum(axis=1, keepdims=True), A.sum(axis=1) / A.sum()


def test_distances_of_commute_time_are_commute_times():
    X = rng.normal(size=(25, 2))
    P, _ = transitions(X, 0.8, 0.0)
    hitting = np.zeros((25, 25))
    for end in range(25):  # h = 1 + P h at all other vertices
        others = np.delete(np.arange(25), end)
        steps = np.linalg.solve(np.eye(24) - P[np.ix_(others, others)], np.ones(24))
        hitting[others, end] = steps
    found = squared_distances(CommuteTime(4, 0.8).resolve(X), X)
    np.testing.assert_allclose(found, hitting + hitting.T, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("steps", [1, 2, 7])
def test_distances_of_diffusion_are_diffusion_distances(steps):
    X = rng.normal(size=(25, 2))
    P, pi = transitions(X, 0.8, 1.0)
    power = np.linalg.matrix_power(P, steps)
    expected = np.sum((power[:, None] - power[None]) ** 2 / pi, axis=-1)
    kernel = Diffusion(4, 0.8, steps).resolve(X)
    np.testing.assert_allclose(squared_distances(kernel, X), expected, atol=1e-10)
    np.testing.assert_allclose(kernel.degrees() / kernel.degrees().sum(), pi)

    model = KernelPCA(2, kernel=kernel).fit(X, sample_weight=kernel.degrees())
    values, vectors = np.linalg.eig(P)
    order = np.argsort(-np.abs(values.real))[1:3]
    coordinates = vectors.real[:, order] * values.real[order] ** steps
    assert_equal_up_to_scale(model.training_scores_, coordinates, 1e-8, pi)


@every_kernel
@on_every_data_set
def test_transform_reproduces_the_coordinates_of_training_points(kind, name):
    X, _ = split(name)
    model = FITS[kind]().fit(X)
    Z = model.training_scores_
    np.testing.assert_allclose(model.transform(X), Z, rtol=0, atol=1e-10 * np.abs(Z).max())
    np.testing.assert_allclose(FITS[kind]().fit_transform(X), Z, rtol=0, atol=0)


@pytest.mark.parametrize("width", [None, 0.3, 0.7])
def test_a_new_point_is_the_weighted_mean_of_its_neighbours(width):
    X, new = split("S-curve")
    kernel = CommuteTime(K, width).resolve(X)
    model = KernelPCA(2, kernel=kernel).fit(X)
    distances = np.linalg.norm(new[:, None] - X, axis=-1)
    A = np.ones_like(distances) if width is None else np.exp(-0.5 * (distances / kernel.width) ** 2)
    A[distances > np.sort(distances, axis=1)[:, [K - 1]]] = 0.0
    expected = (A / A.sum(axis=1, keepdims=True)) @ model.training_scores_
    np.testing.assert_allclose(model.transform(new), expected, atol=1e-10)


def test_weights_of_a_distant_point_do_not_underflow():
    kernel = CommuteTime(3, width=0.5).resolve(np.arange(8.0)[:, None])
    assert np.isfinite(kernel([[1e6]])).all()
    np.testing.assert_allclose(kernel([[1e6]], [[0.0]]), kernel([[7.0]], [[0.0]]))


def test_paths_between_new_points():
    kernel = Geodesic(1).resolve([[0.0, 0.0], [1.0, 0.0], [1.0, 1.5]])
    assert kernel([[0.0, 0.0]], [[1.0, 1.5]])[0, 0] == -(2.5**2) / 2  # along the two edges
    assert kernel([[-2.0, 0.0]], [[1.0, 2.0]])[0, 0] == -(5.0**2) / 2  # new edges of 2 and 0.5
    far = np.array([[9.0, 0.0], [9.0, 0.5]])  # connected directly
    assert np.array_equal(kernel(far), [[0.0, -0.125], [-0.125, 0.0]])
    assert np.array_equal(kernel.diag(far), [0.0, 0.0])


def test_a_graph_that_is_not_connected_is_an_error():
    X = np.concatenate([rng.normal(size=(30, 2)), rng.normal(size=(20, 2)) + 50, [[0.0, 99.0]]])
    for make in FITS.values():
        model = make().set_params(kernel=make().kernel.set_params(n_neighbors=5))
        with pytest.raises(ValueError, match=r"2 components, of 30, 21 points.*larger n_neighbors"):
            model.fit(X)
    assert KernelPCA(2, kernel=LocallyLinear(31)).fit(X).training_scores_.shape == (51, 2)
    unresolved = Geodesic(5, points=X)  # checked when it is evaluated
    with pytest.raises(ValueError, match="not connected"):
        unresolved(X)
    narrow = CommuteTime(40, width=0.01)  # weights that underflow are not edges
    with pytest.raises(ValueError, match="not connected"):
        narrow.resolve(X)


def test_copies_are_one_vertex_and_count_as_weights():
    X = rng.normal(size=(40, 3))
    counts = rng.integers(0, 4, size=40)
    copies = np.repeat(X, counts, axis=0)
    for make in FITS.values():
        kernel = make().kernel.set_params(n_neighbors=8)
        assert kernel.resolve(copies) == kernel.resolve(X, counts.astype(float))
        weighted = make(whiten=True).set_params(kernel=kernel).fit(X, sample_weight=counts)
        repeated = make(whiten=True).set_params(kernel=kernel).fit(copies)
        np.testing.assert_allclose(weighted.transform(X), repeated.transform(X), atol=1e-6)
    zero = np.array([[0.0, 1.0], [-0.0, 1.0], [1.0, 0.0]])
    assert len(Geodesic(1).resolve(zero).points) == 2


@every_kernel
def test_errors(kind):
    kernel = FITS[kind]().kernel
    X = rng.normal(size=(40, 3))
    with pytest.raises(ValueError, match="needs more than 12 different training points, got 12 "):
        FITS[kind]().fit(np.concatenate([X[:12]] * 5))
    with pytest.raises(ValueError, match="use n_neighbors=1 or less, or pass more points"):
        kernel.resolve(X[:2])
    with pytest.raises(ValueError, match=r"got 1 \(copies of a point count once\); pass more"):
        kernel.resolve(X[:1])
    with pytest.raises(ValueError, match="must be computed from data"):
        kernel(X)
    with pytest.raises(ValueError, match="same features"):
        kernel.resolve(X)(X[:, :2])
    with pytest.raises(ValueError, match="n_neighbors must be a positive integer"):
        type(kernel)(0)
    with pytest.raises(MemoryBudgetError, match=r"all pairs of 400 points.* needs 4\.9 MiB"):
        FITS[kind](max_memory="4 MiB").fit(DATA["S-curve"])


@every_kernel
def test_float32_points_give_the_same_kernel(kind):
    X, new = (A.astype(np.float32) for A in split("S-curve"))
    kernel = FITS[kind]().kernel.resolve(X)
    values = kernel(new, X)
    assert values.dtype == np.float64
    assert np.array_equal(values, kernel(new.astype(float), X.astype(float)))


@every_kernel
def test_the_matrix_of_the_kernel_counts_towards_the_memory_budget(kind):
    with resource_scope("1 GiB"):
        FITS[kind]().kernel.resolve(DATA["S-curve"])
        assert budget_in_bytes(None) == 2**30 - 8 * 400**2


@pytest.mark.parametrize("kernel", [CommuteTime, Diffusion])
def test_the_width_is_positive(kernel):
    with pytest.raises(ValueError, match="width must be positive and finite, got 0"):
        kernel(5, 0)


def test_an_indefinite_matrix_is_reported():
    with pytest.warns(UserWarning, match="set indefinite='clip'"):
        KernelPCA(2, kernel=Geodesic(K)).fit(DATA["S-curve"])
    assert LocallyLinear(K).properties.order == 0 and Geodesic(K).properties.order is None


@every_kernel
def test_files_and_pickles_contain_the_points_only(kind, tmp_path):
    X, new = split("S-curve")
    model = FITS[kind]().fit(X)
    path = tmp_path / "model.safetensors"
    save(model, path)
    loaded = load(path)
    assert path.stat().st_size < 8 * len(X) ** 2
    assert loaded.kernel_ == model.kernel_
    assert np.array_equal(loaded.transform(new), model.transform(new))
    assert len(pickle.dumps(model.kernel_)) < 8 * len(X) ** 2
    assert np.array_equal(pickle.loads(pickle.dumps(model)).transform(new), model.transform(new))
