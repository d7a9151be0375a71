"""Properties of kernel PCA for every solver: PCA in feature space, for all forms of input."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.linalg import subspace_angles
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError

from mercer import KernelPCA, MemoryBudgetError
from mercer.kernels import (
    RBF,
    AdditiveChi2,
    Callable,
    Distance,
    Linear,
    Multiquadric,
    Polynomial,
    QuadraticMap,
)
from mercer.solvers import BlockKrylov, DenseEigen, LowRankEigen

rng = np.random.default_rng(11)
X = rng.normal(size=(120, 4)) * [2.0, 1.4, 1.0, 0.6]
Z = rng.normal(size=(37, 4)) * [2.0, 1.4, 1.0, 0.6]
W = rng.integers(1, 4, size=120).astype(float)

# With options that make them accurate enough for comparisons: by default, the power method stops
# at 1e-8, and the randomized solver after a few iterations.
SOLVERS = {
    "dense": {},
    "krylov": {"tol": 1e-13},
    "power": {"tol": 1e-12, "max_iter": 5000},
    "arpack": {},
    "randomized": {"iterated_power": 60},
    "nystroem": {},
    "features": {"rank": 60},
}
EXACT = [name for name in SOLVERS if name not in ("nystroem", "features")]
every_solver = pytest.mark.parametrize("solver", list(SOLVERS))
every_exact_solver = pytest.mark.parametrize("solver", EXACT)


def make(solver, n_components=3, **options):
    named = isinstance(options.get("kernel", "rbf"), str)
    given = {"kernel": "rbf", "gamma": 0.2} if named else {}
    given |= {"random_state": 0} | SOLVERS[solver] | options
    return KernelPCA(n_components, eigen_solver=solver, **given)


def aligned(A, B):
    """Return A with the signs of its columns as in B."""
    return A * np.where(np.sum(A * B, axis=0) < 0, -1.0, 1.0)


def centred(K, w=None):
    w = np.full(len(K), 1.0 / len(K)) if w is None else w / w.sum()
    M = np.eye(len(K)) - np.outer(np.ones(len(K)), w)
    return M @ K @ M.T


def letters(s, t):
    return sum(s.count(c) * t.count(c) for c in set(s))


WORDS = ["".join(rng.choice(list("abcdef"), size=6)) for _ in range(40)]

# ---------------------------------------------------------------------- equivalent computations

DOORS = {
    "plain": {},
    "whiten": {"whiten": True},
    "all": {"n_components": None, "gamma": 0.01, "kernel": "poly", "degree": 2},
    "fraction": {"n_components": 0.7},
    "poly": {"kernel": "poly", "gamma": 0.3},
    "linear": {"kernel": "linear"},
    "tiled": {"storage": "tiled"},
}


@every_solver
@pytest.mark.parametrize("door", list(DOORS))
@pytest.mark.parametrize("weighted", ["no weights", "weights", "zero weights"])
def test_fit_then_transform_is_fit_transform(solver, door, weighted):
    options = dict(DOORS[door])
    if solver == "features" and options.get("kernel") in ("poly", "linear"):
        pytest.skip("poly and linear have no random Fourier features")
    if solver == "dense" and door == "tiled":
        pytest.skip("a direct solver on tiles warns: there is a test of that")
    if door == "all" and solver in ("power", "arpack", "randomized", "krylov"):
        pytest.skip("solvers of the leading part")
    w = {"no weights": None, "weights": W, "zero weights": np.where(np.arange(120) % 3, W, 0.0)}
    model = make(solver, **options)
    scores = model.fit_transform(X, sample_weight=w[weighted])
    assert scores.shape == (120, model.n_components_) and np.abs(scores).max() > 0.1
    np.testing.assert_allclose(model.transform(X), scores, atol=2e-9, rtol=0)
    kept = slice(None) if weighted != "zero weights" else np.arange(120) % 3 > 0
    np.testing.assert_allclose(model.training_scores_, scores[kept], atol=2e-9, rtol=0)
    np.testing.assert_array_equal(
        model.fit(X, sample_weight=w[weighted]).transform(X),
        make(solver, **options).fit(X, sample_weight=w[weighted]).transform(X),
    )


@every_solver
def test_float32_points(solver):
    model = make(solver)
    scores = model.fit_transform(X.astype(np.float32))
    assert scores.dtype == np.float32
    other = model.transform(X.astype(np.float32))
    assert other.dtype == np.float32
    np.testing.assert_allclose(other, scores, atol=5e-6)
    exact = make(solver).fit(X)
    np.testing.assert_allclose(aligned(scores, exact.transform(X)), exact.transform(X), atol=2e-5)
    assert model.transform(X).dtype == np.float64


@every_solver
def test_sparse_points(solver):
    A = sp.random_array((80, 12), density=0.4, rng=3, format="csr")
    model = make(solver, gamma=1.0)
    scores = model.fit_transform(A)
    np.testing.assert_allclose(model.transform(A), scores, atol=1e-9)
    dense = make(solver, gamma=1.0).fit(A.toarray())
    np.testing.assert_allclose(model.eigenvalues_, dense.eigenvalues_, rtol=1e-9)
    reference = dense.transform(A.toarray())
    np.testing.assert_allclose(aligned(scores, reference), reference, atol=1e-7)
    np.testing.assert_allclose(
        model.reconstruction_error(A[:9]), dense.reconstruction_error(A[:9].toarray()), atol=1e-9
    )


@every_solver
def test_sparse_and_dense_points_mix(solver):
    model = make(solver, rank=60 if solver in ("nystroem", "features") else None)
    model.fit(X)
    np.testing.assert_allclose(model.transform(sp.csr_array(Z)), model.transform(Z), atol=1e-13)
    np.testing.assert_allclose(
        model.reconstruction_error(sp.csr_array(Z)), model.reconstruction_error(Z), atol=1e-13
    )
    model.fit(sp.csr_array(X))
    np.testing.assert_allclose(model.transform(sp.csr_array(Z)), model.transform(Z), atol=1e-13)


@every_solver
def test_copies_and_sources_of_random_numbers(solver):
    model = make(solver, rank=60 if solver in ("nystroem", "features") else None).fit(X)
    twin = pickle.loads(pickle.dumps(model))
    assert np.array_equal(twin.transform(Z), model.transform(Z))
    assert np.array_equal(twin.score_samples(Z), model.score_samples(Z))
    assert twin.summary() == model.summary()
    model.set_params(random_state=np.random.RandomState(3))
    first = model.fit(X).transform(Z)
    again = model.set_params(random_state=np.random.RandomState(3)).fit(X).transform(Z)
    assert np.array_equal(first, again)
    nothing, zero = make(solver, random_state=None).fit(X), make(solver, random_state=0).fit(X)
    assert np.array_equal(nothing.transform(Z), zero.transform(Z))


@every_solver
def test_points_that_coincide(solver):
    few = np.repeat(X[:10], 9, axis=0)
    model = make(solver, 9, rank=60 if solver in ("nystroem", "features") else None)
    scores = model.fit_transform(few)
    assert model.n_components_ == 9 and np.all(model.eigenvalues_ > 1e-3)
    np.testing.assert_allclose(model.transform(few), scores, atol=1e-11)
    np.testing.assert_allclose(scores[::9], scores[8::9], atol=1e-11)
    once = make(solver, 9, rank=None if solver != "features" else 60).fit(X[:10])
    np.testing.assert_allclose(model.eigenvalues_, 9 * once.eigenvalues_, rtol=1e-9)


@pytest.mark.parametrize("solver", [*EXACT, "nystroem"])
@pytest.mark.parametrize("zeros", [False, True])
def test_precomputed_values(solver, zeros):
    w = np.where(np.arange(120) % 4, W, 0.0) if zeros else W
    kernel = RBF.from_gamma(0.2)
    model = make(solver, kernel="precomputed")
    scores = model.fit_transform(kernel(X), sample_weight=w)
    np.testing.assert_allclose(model.transform(kernel(X)), scores, atol=1e-9)
    direct = make(solver).fit(X, sample_weight=w)
    np.testing.assert_allclose(model.eigenvalues_, direct.eigenvalues_, rtol=1e-10)
    np.testing.assert_allclose(
        aligned(model.transform(kernel(Z, X)), direct.transform(Z)), direct.transform(Z), atol=1e-8
    )
    with pytest.raises(ValueError, match="the reconstruction error needs k"):
        model.reconstruction_error(kernel(Z, X))


@pytest.mark.parametrize("solver", [*EXACT, "nystroem"])
def test_words(solver):
    model = make(solver, kernel=Callable(letters))
    scores = model.fit_transform(WORDS)
    np.testing.assert_allclose(model.transform(WORDS), scores, atol=1e-9)
    K = Callable(letters)(WORDS)
    np.testing.assert_allclose(
        model.eigenvalues_, np.linalg.eigvalsh(centred(K))[::-1][:3], rtol=1e-10
    )
    weighted = make(solver, kernel=Callable(letters))
    w = np.arange(40.0) % 3
    scores = weighted.fit_transform(WORDS, sample_weight=w)
    np.testing.assert_allclose(weighted.transform(WORDS), scores, atol=1e-9)
    if solver != "nystroem":
        assert len(weighted.X_fit_) == np.count_nonzero(w)


# ---------------------------------------------------------------------- determinism


@pytest.mark.parametrize(
    ("solver", "storage", "n"),
    [
        ("krylov", "tiled", 2100),
        ("krylov", "dense", 2100),
        ("dense", "dense", 500),
        ("power", "tiled", 500),
        ("power", "dense", 2100),
        ("arpack", "tiled", 2100),
        ("arpack", "dense", 2100),
        ("randomized", "tiled", 2100),
        ("randomized", "dense", 2060),
        ("nystroem", "auto", 5000),
        ("features", "auto", 5000),
    ],
)
def test_the_bits_do_not_depend_on_the_threads(solver, storage, n):
    A = np.random.default_rng(5).normal(size=(n, 5))
    options = {"rank": 200} if solver in ("nystroem", "features") else {}
    options |= {"tol": 1e-2} if solver in ("power", "arpack") else {}
    models = [
        KernelPCA(
            3,
            kernel="rbf",
            eigen_solver=solver,
            storage=storage,
            n_jobs=n_jobs,
            random_state=3,
            **options,
        ).fit(A)
        for n_jobs in (1, 2, None)
    ]
    first = models[0]
    for other in models[1:]:
        assert np.array_equal(first.eigenvalues_, other.eigenvalues_)
        assert np.array_equal(first.eigenvectors_, other.eigenvectors_)
        assert np.array_equal(first.transform(A[:500]), other.transform(A[:500]))
        assert np.array_equal(first.score_samples(A[:500]), other.score_samples(A[:500]))
        assert first.offset_ == other.offset_


# ---------------------------------------------------------------------- PCA


@every_exact_solver
def test_the_linear_kernel_is_pca(solver):
    far = np.array([50.0, -20.0, 0.0, 5.0])
    A, B = X + far, Z + far
    model = make(solver, kernel="linear").fit(A)
    pca = PCA(3, svd_solver="full").fit(A)
    expected = pca.transform(B)
    np.testing.assert_allclose(aligned(model.transform(B), expected), expected, atol=1e-9)
    np.testing.assert_allclose(model.explained_variance_, pca.explained_variance_, rtol=1e-11)
    np.testing.assert_allclose(
        model.explained_variance_ratio_, pca.explained_variance_ratio_, rtol=1e-11
    )
    assert model.total_variance_ == pytest.approx(A.var(axis=0, ddof=1).sum(), rel=1e-12)
    residual = B - pca.inverse_transform(expected)
    np.testing.assert_allclose(
        model.reconstruction_error(B), np.square(residual).sum(axis=1), atol=1e-9
    )
    np.testing.assert_allclose(np.ravel(model.mean_(B)), B @ A.mean(axis=0), rtol=1e-12)
    white = make(solver, kernel="linear", whiten=True).fit(A)
    expected = PCA(3, svd_solver="full", whiten=True).fit(A).transform(B)
    np.testing.assert_allclose(aligned(white.transform(B), expected), expected, atol=1e-9)
    np.testing.assert_allclose(white.fit_transform(A).std(axis=0, ddof=1), 1.0, rtol=1e-10)


@pytest.mark.parametrize("solver", ["dense", "krylov", "arpack", "randomized", "nystroem"])
@pytest.mark.parametrize("share", [0.3, 0.55, 0.8, 0.95, 0.999])
def test_a_share_of_the_variance_is_as_many_components_as_pca_takes(solver, share):
    A = np.random.default_rng(2).normal(size=(200, 30)) * 0.9 ** np.arange(30)
    model = make(solver, share, kernel="linear", gamma=None).fit(A)
    pca = PCA(share, svd_solver="full").fit(A)
    assert model.n_components_ == pca.n_components_
    np.testing.assert_allclose(model.explained_variance_, pca.explained_variance_, rtol=1e-8)
    reached = np.cumsum(model.explained_variance_ratio_)
    assert reached[-1] >= share > (reached[-2] if len(reached) > 1 else 0.0)


def test_nystroem_on_all_points_is_exact_and_so_are_its_whitened_scores():
    for options in ({}, {"whiten": True}, {"n_components": 0.8}):
        exact, low = make("dense", **options).fit(X), make("nystroem", **options).fit(X)
        np.testing.assert_allclose(low.eigenvalues_, exact.eigenvalues_, rtol=1e-9)
        expected = exact.transform(Z)
        np.testing.assert_allclose(aligned(low.transform(Z), expected), expected, atol=1e-7)
        np.testing.assert_allclose(
            low.reconstruction_error(Z), exact.reconstruction_error(Z), atol=1e-9
        )
        assert low.offset_ == pytest.approx(exact.offset_, abs=1e-9)
        assert low.total_variance_ == pytest.approx(exact.total_variance_, rel=1e-9)


@pytest.mark.parametrize("weights", [None, W], ids=["no weights", "weights"])
def test_the_signs_depend_on_the_points_alone(weights):
    """Not on the solver, nor on the order of points or landmarks."""
    order = np.random.default_rng(9).permutation(120)
    expected = make("dense", 6).fit(X, sample_weight=weights).transform(Z)
    shuffled = None if weights is None else weights[order]
    for solver in ("dense", "krylov", "arpack", "nystroem"):
        model = make(solver, 6).fit(X[order], sample_weight=shuffled)
        np.testing.assert_allclose(model.transform(Z), expected, atol=1e-7)
    for landmarks in (X, X[::-1], X[order]):
        model = make("nystroem", 6, landmarks=landmarks).fit(X, sample_weight=weights)
        np.testing.assert_allclose(model.transform(Z), expected, atol=1e-7)
        model = make("nystroem", 6, landmarks=landmarks).partial_fit(X[order], None, shuffled)
        np.testing.assert_allclose(model.transform(Z), expected, atol=1e-7)


@every_exact_solver
@pytest.mark.parametrize("weights", [None, W], ids=["no weights", "weights"])
def test_reconstruction_error_in_an_explicit_feature_space(solver, weights):
    phi = QuadraticMap(coef0=0.5)
    F, G = phi(X), phi(Z)
    w = np.full(120, 1 / 120) if weights is None else weights / weights.sum()
    mean = w @ F
    axes = np.linalg.svd(np.sqrt(w)[:, None] * (F - mean), full_matrices=False)[2][:3]
    left = (G - mean) - (G - mean) @ axes.T @ axes
    model = make(solver, kernel=Polynomial(degree=2, coef0=0.5)).fit(X, sample_weight=weights)
    expected = np.square(left).sum(axis=1)
    np.testing.assert_allclose(model.reconstruction_error(Z), expected, rtol=1e-8)
    np.testing.assert_allclose(model.score_samples(Z), -expected, rtol=1e-8)
    assert model.score(Z) == pytest.approx(-expected.mean(), rel=1e-8)
    assert model.score(Z, y=np.zeros(37)) == model.score(Z)
    np.testing.assert_array_equal(
        model.decision_function(Z), model.score_samples(Z) - model.offset_
    )
    np.testing.assert_array_equal(model.is_outlier(Z), model.decision_function(Z) < 0)


def test_the_error_of_all_components_is_nothing_on_the_training_points():
    model = KernelPCA(kernel="rbf", gamma=0.3).fit(X)
    assert model.n_components_ == 119
    assert model.reconstruction_error(X).max() < 1e-12
    assert model.reconstruction_error(Z).min() > 1e-4
    assert make("dense", 3).fit(X).reconstruction_error(X).mean() == pytest.approx(
        make("dense", 3).fit(X).total_variance_
        * (1 - make("dense", 3).fit(X).explained_variance_ratio_.sum())
        * 119
        / 120,
        rel=1e-10,
    )


@every_solver
@pytest.mark.parametrize("contamination", [0.05, 0.2, 0.5])
def test_the_share_of_training_points_beyond_the_threshold(solver, contamination):
    model = make(solver, contamination=contamination).fit(X)
    outliers = np.count_nonzero(model.is_outlier(X))
    # The point at the threshold may be on either side of it, because of rounding.
    assert abs(outliers - 120 * contamination) <= 1


def test_the_threshold_respects_weights():
    w = np.where(np.arange(120) < 12, 27.0, 1.0)  # 324 of 432, three quarters, on twelve points
    model = make("dense", 1, contamination=0.3).fit(X, sample_weight=w)
    repeated = make("dense", 1, contamination=0.3).fit(np.repeat(X, w.astype(int), axis=0))
    assert model.offset_ == pytest.approx(repeated.offset_, rel=1e-9)


@pytest.mark.parametrize("solver", [*EXACT, "nystroem", "features"])
def test_planted_outliers_are_found(solver):
    t = np.random.default_rng(0).uniform(0, 2 * np.pi, size=200)
    ring = np.column_stack([np.cos(t), np.sin(t)]) * 3.0
    ring += np.random.default_rng(1).normal(size=ring.shape) * 0.05
    planted = np.array([[0.0, 0.0], [6.0, 6.0], [-1.0, 0.5], [0.0, 5.0]])
    model = make(solver, 12, gamma=0.3, contamination=0.02, n_jobs=1).fit(
        np.concatenate([ring, planted])
    )
    assert model.is_outlier(planted).sum() >= 3
    clean = make(solver, 12, gamma=0.3, contamination=0.02).fit(ring)
    assert clean.is_outlier(planted).all()
    assert clean.is_outlier(ring).sum() <= 5
    assert clean.score(ring) > clean.score(planted) + 0.1


@pytest.mark.parametrize("solver", [*EXACT, "nystroem"])
@pytest.mark.parametrize("weights", [None, W], ids=["no weights", "weights"])
def test_components_are_an_orthonormal_set_of_functions(solver, weights):
    model = make(solver, 4).fit(X, sample_weight=weights)
    parts = model.components_
    assert parts is model.expansion_ and len(parts) == 4
    np.testing.assert_allclose(parts.inner(parts), np.eye(4), atol=1e-9)
    np.testing.assert_allclose(parts.norm(), 1.0, rtol=1e-9)
    if solver != "nystroem":
        if weights is None:  # a_j = u_j / sqrt(l_j), and u_j is orthogonal to the constant
            np.testing.assert_allclose(
                np.linalg.norm(parts.coefficients, axis=0),
                1.0 / np.sqrt(model.eigenvalues_),
                rtol=1e-9,
            )
        np.testing.assert_allclose(parts.coefficients.sum(axis=0), 0.0, atol=1e-10)
    # The score is <w_j, phi(x) - mu>.
    np.testing.assert_allclose(
        parts(Z) - parts.inner(model.mean_).T, model.transform(Z), atol=1e-10
    )


@pytest.mark.parametrize("weights", [None, W], ids=["no weights", "weights"])
def test_the_mean_is_the_mean(weights):
    kernel = RBF.from_gamma(0.2)
    w = np.ones(120) if weights is None else weights
    expected = kernel(Z, X) @ w / w.sum()
    for solver in ("dense", "krylov", "nystroem"):  # Nystroem with all points as landmarks
        model = make(solver).fit(X, sample_weight=weights)
        np.testing.assert_allclose(np.ravel(model.mean_(Z)), expected, rtol=1e-8)
        norm = np.sqrt(w @ kernel(X) @ w) / w.sum()
        assert model.mean_.norm() == pytest.approx([norm], rel=1e-9)


@every_exact_solver
def test_ratios_divide_by_the_trace(solver):
    K = centred(RBF.from_gamma(0.2)(X))
    model = make(solver).fit(X)
    values = np.linalg.eigvalsh(K)[::-1]
    np.testing.assert_allclose(model.eigenvalues_, values[:3], rtol=1e-11)
    np.testing.assert_allclose(
        model.explained_variance_ratio_, values[:3] / np.trace(K), rtol=1e-11
    )
    np.testing.assert_allclose(model.explained_variance_, values[:3] / 119, rtol=1e-11)
    assert model.total_variance_ == pytest.approx(np.trace(K) / 119, rel=1e-12)


# ---------------------------------------------------------------------- number of components


@pytest.mark.parametrize("solver", ["dense", "krylov", "power", "randomized"])
def test_more_components_than_the_rank(solver):
    # The kernel matrix has rank 4: its other eigenvalues and their scores are 0.
    model = make(solver, 9, kernel="linear").fit(X)
    assert model.n_components_ == 9
    assert np.array_equal(model.eigenvalues_[4:], np.zeros(5))
    assert np.array_equal(model.transform(Z)[:, 4:], np.zeros((37, 5)))
    assert np.array_equal(model.fit_transform(X)[:, 4:], np.zeros((120, 5)))
    np.testing.assert_allclose(
        np.abs(model.transform(Z)[:, :4]), np.abs(PCA(4).fit(X).transform(Z)), atol=1e-8
    )
    white = make(solver, 9, kernel="linear", whiten=True).fit(X)
    assert np.array_equal(white.transform(Z)[:, 4:], np.zeros((37, 5)))
    dropped = make(solver, 9, kernel="linear", remove_zero_eig=True).fit(X)
    assert dropped.n_components_ == 4 and dropped.transform(Z).shape == (37, 4)
    assert dropped.eigenvectors_.shape == (120, 4)
    assert dropped.residuals_.shape == (4,) and dropped.eigenvalue_bounds_.shape == (4, 2)


@pytest.mark.parametrize("solver", ["dense", "krylov", "randomized", "auto"])
def test_more_components_than_points(solver):
    options = {} if solver == "auto" else SOLVERS[solver]
    model = KernelPCA(500, kernel="rbf", gamma=0.2, eigen_solver=solver, **options).fit(X[:30])
    assert model.n_components_ == 30 and model.transform(Z).shape == (37, 30)
    values = np.linalg.eigvalsh(centred(RBF.from_gamma(0.2)(X[:30])))[::-1]
    np.testing.assert_allclose(model.eigenvalues_, np.maximum(values, 0), atol=1e-12 * 30)
    assert np.array_equal(model.transform(Z)[:, 29], np.zeros(37))
    all_ = KernelPCA(None, kernel="rbf", gamma=0.2, eigen_solver=solver, **options).fit(X[:30])
    assert all_.n_components_ == 29


def test_more_components_than_landmarks():
    for solver in ("nystroem", "features"):
        with pytest.raises(
            ValueError, match="12 components are requested, but there are only 10 land"
        ):
            make(solver, 12, rank=10).fit(X)
        with pytest.raises(
            ValueError, match="12 components are requested, but there are only 10 land"
        ):
            make(solver, 12, rank=10).partial_fit(X)
        assert make(solver, None, rank=10).fit(X).n_components_ == 10
    with pytest.raises(ValueError, match="12 components are requested, but there are only 7 land"):
        make("nystroem", 12, landmarks=X[:7]).fit(X)
    assert make("nystroem", 12).fit(X[:8]).n_components_ <= 8


@pytest.mark.parametrize("solver", ["dense", "krylov", "nystroem", "features"])
@pytest.mark.parametrize("whiten", [False, True])
def test_components_without_variance_have_no_scores_on_new_points_either(solver, whiten):
    # Twelve points have eleven directions; there are sixty random features.
    model = make(solver, 12, whiten=whiten).fit(X[:12])
    assert model.n_components_ == 12 and model.eigenvalues_[10] > 1e-3
    assert model.eigenvalues_[11] == 0 and np.all(model.explained_variance_ratio_ >= 0)
    assert np.array_equal(model.transform(Z)[:, 11], np.zeros(37))
    assert np.array_equal(model.fit_transform(X[:12])[:, 11], np.zeros(12))
    assert np.abs(model.transform(Z)[:, 10]).max() > 1e-2
    dropped = make(solver, 12, remove_zero_eig=True).fit(X[:12])
    assert dropped.n_components_ == 11 and dropped.transform(Z).shape == (37, 11)
    assert make(solver, None).fit(X[:12]).n_components_ == 11
    single = make(solver, 12, whiten=whiten).fit(X[:12].astype(np.float32))
    assert np.array_equal(single.transform(Z)[:, 11], np.zeros(37))


def test_arpack_and_all_components():
    with pytest.warns(
        UserWarning, match="ARPACK can compute at most n - 1 eigenpairs, but 120 of n = 12"
    ):
        model = make("arpack", 120).fit(X)
    assert isinstance(model.solver_, DenseEigen)


def test_names_of_the_output():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("abcd"), index=np.arange(120) + 7)
    for solver in SOLVERS:
        model = make(solver).set_output(transform="pandas").fit(frame)
        assert list(model.get_feature_names_out()) == ["kernelpca0", "kernelpca1", "kernelpca2"]
        out = model.transform(frame)
        assert list(out.columns) == list(model.get_feature_names_out())
        assert list(out.index) == list(frame.index)
        np.testing.assert_array_equal(out.to_numpy(), make(solver).fit(X).transform(X))
        assert list(model.fit_transform(frame).columns) == list(out.columns)


# ---------------------------------------------------------------------- weights


@every_solver
def test_weights_are_repetitions(solver):
    some = np.where(np.arange(120) % 5, W, 0.0)
    repeated = np.repeat(X, some.astype(int), axis=0)
    options = {"gamma": 0.02} if solver == "nystroem" else {}
    weighted = make(solver, **options).fit(X, sample_weight=some)
    whole = make(solver, **options).fit(repeated)
    expected = whole.transform(Z)
    np.testing.assert_allclose(aligned(weighted.transform(Z), expected), expected, atol=1e-8)
    np.testing.assert_allclose(
        weighted.reconstruction_error(Z), whole.reconstruction_error(Z), atol=1e-8
    )
    np.testing.assert_allclose(
        weighted.explained_variance_ratio_, whole.explained_variance_ratio_, rtol=1e-9
    )
    # Eigenvectors of the n weighted points, distributed over the repetitions.
    times = some[some > 0]
    spread = np.repeat(weighted.eigenvectors_ / np.sqrt(times)[:, None], times.astype(int), axis=0)
    assert subspace_angles(spread, whole.eigenvectors_).max() < 1e-6
    assert weighted.offset_ == pytest.approx(whole.offset_, abs=1e-8)


@every_solver
def test_the_signs_of_weighted_points_are_those_of_repeated_ones(solver):
    repeated = np.repeat(X, W.astype(int), axis=0)
    expected = make(solver, gamma=0.02).fit(repeated).transform(Z)
    weighted = make(solver, gamma=0.02).fit(X, sample_weight=W).transform(Z)
    np.testing.assert_allclose(weighted, expected, atol=1e-7)


@pytest.mark.parametrize("rule", ["scale", "median"])
@pytest.mark.parametrize("solver", ["dense", "nystroem", "features"])
def test_a_gamma_from_the_data_respects_weights(rule, solver):
    w = np.where(np.arange(120) < 20, 9.0, 1.0)
    whole = make(solver, gamma=rule).fit(np.repeat(X, w.astype(int), axis=0))
    weighted = make(solver, gamma=rule).fit(X, sample_weight=w)
    assert weighted.gamma_ == pytest.approx(whole.gamma_, rel=1e-10)
    assert abs(weighted.gamma_ / make(solver, gamma=rule).fit(X).gamma_ - 1.0) > 1e-3
    if solver != "dense":
        first = make(solver, gamma=rule).partial_fit(X, sample_weight=w)
        assert first.gamma_ == weighted.gamma_


@every_solver
def test_a_common_factor_of_the_weights_changes_nothing(solver):
    first = make(solver, whiten=True).fit(X, sample_weight=W)
    second = make(solver, whiten=True).fit(X, sample_weight=W / 7.3)
    np.testing.assert_allclose(second.eigenvalues_, first.eigenvalues_, rtol=1e-10)
    np.testing.assert_allclose(second.reconstruction_error(Z), first.reconstruction_error(Z))
    np.testing.assert_allclose(
        aligned(second.transform(Z), first.transform(Z)), first.transform(Z), rtol=2e-2
    )


@every_solver
def test_a_point_of_weight_zero_is_absent(solver):
    here = np.arange(120) % 3 > 0
    weighted = make(solver).fit(X, sample_weight=here.astype(float))
    absent = make(solver).fit(X[here])
    np.testing.assert_allclose(weighted.eigenvalues_, absent.eigenvalues_, rtol=1e-12)
    np.testing.assert_allclose(weighted.transform(Z), absent.transform(Z), atol=1e-11)
    np.testing.assert_allclose(weighted.explained_variance_, absent.explained_variance_, rtol=1e-12)
    assert weighted.offset_ == pytest.approx(absent.offset_, abs=1e-12)
    scaled = make(solver, kernel=RBF("median"), gamma=None).fit(X, sample_weight=here.astype(float))
    assert scaled.kernel_ == make(solver, kernel=RBF("median"), gamma=None).fit(X[here]).kernel_


# ---------------------------------------------------------------------- contributions


@pytest.mark.parametrize("solver", ["dense", "krylov", "nystroem"])
def test_contributions_find_the_only_feature_that_matters(solver):
    A = np.zeros((150, 3))
    A[:, 1] = np.random.default_rng(0).uniform(-2, 2, size=150)
    A[:, [0, 2]] = 1e-3 * np.random.default_rng(1).normal(size=(150, 2))
    model = make(solver, 4, gamma=0.3).fit(A)
    shares = model.contributions(A) if solver == "nystroem" else model.contributions()
    assert shares.shape == (4, 3)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, rtol=1e-12)
    assert shares[:, 1].min() > 0.999
    np.testing.assert_allclose(model.contributions(A), shares, rtol=1e-12)


def test_contributions_of_a_linear_model_are_those_of_its_axes():
    pca = PCA(3).fit(X)
    expected = (pca.components_ * X.std(axis=0)) ** 2
    expected /= expected.sum(axis=1, keepdims=True)
    model = make("dense", kernel="linear").fit(X)
    np.testing.assert_allclose(model.contributions(), expected, rtol=1e-9)
    sparse = make("dense", kernel="linear").fit(sp.csr_array(X))
    np.testing.assert_allclose(sparse.contributions(), expected, rtol=1e-9)


def test_contributions_that_cannot_be_had():
    with pytest.raises(ValueError, match="gradients of random features are not available"):
        make("features").fit(X).contributions(X)
    with pytest.raises(ValueError, match="does not store its training points; pass the points X"):
        make("nystroem").fit(X).contributions()
    with pytest.raises(ValueError, match="does not store its training points"):
        KernelPCA(2, kernel="precomputed").fit(RBF()(X)).contributions()
    flat = KernelPCA(1).fit(np.ones((5, 2)))
    assert np.array_equal(flat.contributions(), np.zeros((1, 2)))


# ---------------------------------------------------------------------- conditionally PSD kernels

CPD = {
    "Distance": Distance(length_scale=1.4),
    "Distance 0.5": Distance(exponent=0.5),
    "Multiquadric": Multiquadric(length_scale=0.8),
    "AdditiveChi2": AdditiveChi2(),
}


@every_exact_solver
@pytest.mark.parametrize("name", list(CPD))
def test_conditionally_positive_definite_kernels(solver, name):
    kernel = CPD[name]
    A, B = X, Z
    if name == "AdditiveChi2":
        A, B = np.abs(X) / np.abs(X).sum(axis=1, keepdims=True), np.abs(Z)
    K = kernel(A)
    assert np.linalg.eigvalsh(K)[0] < -0.1  # not positive semidefinite itself
    values = np.linalg.eigvalsh(centred(K))[::-1]
    model = make(solver, kernel=kernel).fit(A)
    np.testing.assert_allclose(model.eigenvalues_, values[:3], rtol=1e-9)
    assert model.total_variance_ == pytest.approx(values.sum() / 119, rel=1e-10)
    np.testing.assert_allclose(model.transform(A), model.fit_transform(A), atol=1e-8)
    # k_c(x, x) minus the squared scores, computed directly.
    mean = K.mean(axis=0)
    distance = kernel.diag(B) - 2 * kernel(B, A).mean(axis=1) + mean.mean()
    expected = distance - np.square(model.transform(B)).sum(axis=1)
    np.testing.assert_allclose(model.reconstruction_error(B), expected, atol=1e-9)


@pytest.mark.parametrize("exponent", [0.5, 1.0, 1.7, 2.0])
@pytest.mark.parametrize("solver", ["dense", "krylov", "auto"])
def test_distances_make_classical_scaling(exponent, solver):
    kernel = Distance(exponent=exponent)
    options = SOLVERS.get(solver, {})
    model = KernelPCA(kernel=kernel, eigen_solver=solver, random_state=0, **options)
    scores = model.fit_transform(X[:60])
    difference = scores[:, None] - scores[None]
    np.testing.assert_allclose(np.square(difference).sum(axis=2), -2.0 * kernel(X[:60]), atol=1e-9)
    if exponent == 2.0:
        assert model.n_components_ == 4
        expected = np.sqrt(2.0) * PCA(4).fit_transform(X[:60])
        np.testing.assert_allclose(aligned(scores, expected), expected, atol=1e-9)


# ---------------------------------------------------------------------- certificates and summary


@every_exact_solver
@pytest.mark.parametrize("storage", ["dense", "tiled"])
def test_the_bounds_bracket_the_eigenvalues(solver, storage):
    if solver == "dense" and storage == "tiled":
        pytest.skip("a direct solver on tiles warns")
    A = np.random.default_rng(8).normal(size=(400, 2)) * [1.0, 0.6]
    values = np.linalg.eigvalsh(centred(RBF.from_gamma(0.3)(A)))[::-1]
    loose = {"power": {"tol": 1e-4}, "randomized": {"iterated_power": 3}, "krylov": {"tol": 1e-3}}
    for options in ({"tol": 1e-8} if solver == "power" else {}, loose.get(solver, {})):
        model = make(solver, 6, gamma=0.3, storage=storage, **options).fit(A)
        lower, upper = model.eigenvalue_bounds_.T
        assert np.all(lower <= values[:6]) and np.all(values[:6] <= upper)
        assert np.all(np.abs(model.eigenvalues_ - values[:6]) <= model.residuals_)
    assert model.certificate_.nothing_missed
    assert model.certificate_.outside >= values[6]


def test_the_sandwich_of_landmarks_brackets_the_eigenvalues():
    A = np.random.default_rng(8).normal(size=(400, 6))
    K = centred(RBF.from_gamma(0.05)(A))
    values = np.linalg.eigvalsh(K)[::-1]
    width = []
    for rank in (20, 60, 150):
        model = make("nystroem", 6, gamma=0.05, rank=rank).fit(A)
        lower, upper = model.eigenvalue_bounds_.T
        assert np.all(lower <= values[:6]) and np.all(values[:6] <= upper)
        assert model.total_variance_ * 399 >= np.trace(K)
        width.append(np.max(upper - lower))
    assert width[2] < width[1] / 5 < width[0] / 10
    free = make("features", 6, gamma=0.05, rank=100).fit(A)
    assert np.all(np.isinf(free.eigenvalue_bounds_)) and not free.certificate_.nothing_missed


def test_a_summary_of_an_exact_model():
    model = make("krylov", 4).fit(X)
    text = model.summary()
    assert text.startswith("Kernel PCA of 120 points, 4 components")
    assert "solver     BlockKrylov(" in text and "status     converged" in text
    assert f"{model.report_.n_iter} passes" in text
    assert "the exact total tr(HKH) / (n - 1)" in text
    assert f"{model.explained_variance_ratio_.sum():.2%} of {model.total_variance_:.6g}" in text
    assert "`explained` is the fraction of the variance" in text
    assert "Each exact eigenvalue is at least the printed one" in text
    assert "- No larger eigenvalue was overlooked: all others are at most" in text
    smallest = f"the smallest one returned is {model.certificate_.lower[-1]:.4g}."
    assert smallest in " ".join(text.split())
    rows = [line for line in text.splitlines() if line[2:11].strip().isdigit()]
    assert len(rows) == 4
    for j, row in enumerate(rows):
        number, value, ratio, total, _, _, angle = row.split()
        assert int(number) == j + 1
        assert float(value) == pytest.approx(model.eigenvalues_[j], rel=1e-5)
        assert ratio == f"{model.explained_variance_ratio_[j]:.2%}"
        assert total == f"{model.explained_variance_ratio_[: j + 1].sum():.2%}"
        assert float(angle.removesuffix("°")) < 1e-3
    with pytest.raises(NotFittedError):
        KernelPCA(2).summary()


def test_the_summary_marks_what_cannot_be_distinguished():
    corners = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    model = KernelPCA(3, kernel="rbf").fit(corners)
    assert model.eigenvalues_[0] == pytest.approx(model.eigenvalues_[1], rel=1e-14)
    text = model.summary()
    assert "* Not separated: components 1 to 2; the bound is for their common subspace." in text
    rows = [line for line in text.splitlines() if line[2:11].strip().isdigit()]
    assert [row.endswith("*") for row in rows] == [True, True, False]
    assert "Not separated" not in make("dense").fit(X).summary()


def test_a_summary_says_what_is_not_certain():
    text = " ".join(make("arpack", 2).fit(X).summary().split())
    assert "- A larger eigenvalue may have been overlooked: all others are at most" in text
    assert "The solvers 'dense' and 'krylov' can prove that nothing was missed." in text
    assert "of 120 points, 1 component kernel" in " ".join(
        make("dense", 1).fit(X).summary().split()
    )


def test_summaries_of_approximations():
    text = make("nystroem", rank=30).fit(X).summary()
    assert "NystroemMap on 30 landmarks" in text and "LowRankEigen(rank=30" in text
    assert "approximate" in text and "an upper bound on the total" in text
    assert "approximate" not in make("dense").fit(X).summary()
    assert "Guaranteed if the kernel is positive semidefinite" in text
    assert "the Nystroem sandwich" in text
    assert "30 landmarks leave" in text and "overlooked" not in text
    text = make("features", rank=30).fit(X).summary()
    assert "Random features: the approximate kernel is unbiased; there are no error bounds." in text
    assert "FourierMap to 30 features" in text and "no bound" in text
    assert "the total of the random features" in text
    assert "sandwich" not in text


# ---------------------------------------------------------------------- invalid input


@pytest.mark.parametrize("bad", [0, -1, 1.5, 0.0, 1.0, "all", np.nan])
def test_numbers_of_components_that_mean_nothing(bad):
    with pytest.raises(ValueError, match="The 'n_components' parameter of KernelPCA must be"):
        KernelPCA(bad).fit(X)
    with pytest.raises(ValueError, match="The 'n_components' parameter of KernelPCA must be"):
        KernelPCA(bad, eigen_solver="nystroem").partial_fit(X)


@every_solver
def test_all_points_equal(solver):
    A = np.full((30, 2), 3.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = make(solver, 2, kernel="rbf", rank=None).fit(A)
    if solver != "nystroem":
        assert model.n_components_ == 2
    assert np.abs(model.eigenvalues_).max() < 1e-10
    assert np.abs(model.transform(A)).max(initial=0.0) < 1e-6
    assert np.abs(model.fit_transform(A)).max(initial=0.0) < 1e-6
    assert np.all(model.explained_variance_ratio_ >= 0)
    assert np.isfinite(model.reconstruction_error([[3.0, 4.0]])).all()
    assert isinstance(model.summary(), str)


@pytest.mark.parametrize("solver", list(SOLVERS))
def test_one_point(solver):
    options = {"rank": None} if solver == "nystroem" else {}
    if solver == "arpack":
        with pytest.warns(UserWarning, match="ARPACK can compute at most n - 1"):
            model = make(solver, 1, **options).fit(X[:1])
    else:
        model = make(solver, 1, **options).fit(X[:1])
    assert np.abs(model.transform(Z)).max(initial=0.0) < 1e-7
    assert model.total_variance_ == pytest.approx(0.0, abs=1e-12)
    assert np.all(model.explained_variance_ratio_ == 0) and isinstance(model.summary(), str)


@every_solver
@pytest.mark.parametrize(
    ("weights", "text"),
    [
        (np.zeros(120), "Sample weights must contain at least one non-zero number"),
        (np.where(np.arange(120) == 3, -1.0, 1.0), "non-negative, got a minimum of -1"),
        (np.where(np.arange(120) == 3, np.nan, 1.0), "NaN"),
        (np.where(np.arange(120) == 3, np.inf, 1.0), "infinity"),
        (np.ones(119), r"sample_weight.shape == \(119,\), expected \(120,\)"),
        (np.ones((120, 2)), "Sample weights must be 1D array or scalar"),
    ],
)
def test_bad_weights(solver, weights, text):
    model = make(solver)
    with pytest.raises(ValueError, match=text):
        model.fit(X, sample_weight=weights)
    with pytest.raises(NotFittedError):
        model.transform(X)


@pytest.mark.parametrize(
    ("weights", "text"),
    [
        (np.zeros(40), "at least one non-zero"),
        (-np.ones(40), "non-negative"),
        (np.full(40, np.nan), "NaN"),
        (np.ones(39), r"sample_weight has shape \(39,\), but there are 40 points"),
        (np.where(np.arange(40) == 3, np.inf, 1.0), "NaN or infinity"),
    ],
)
def test_bad_weights_of_words(weights, text):
    with pytest.raises(ValueError, match=text):
        KernelPCA(2, kernel=Callable(letters)).fit(WORDS, sample_weight=weights)


def test_landmarks_that_cannot_be():
    with pytest.raises(ValueError, match="rank=130 landmarks cannot be chosen among 120 points"):
        make("nystroem", rank=130).fit(X)
    with pytest.raises(ValueError, match="'landmarks' parameter of KernelPCA must be a str among"):
        make("nystroem", landmarks="best").fit(X)
    with pytest.raises(ValueError, match="features"):
        make("nystroem", landmarks=np.ones((5, 3))).fit(X)
    for landmarks in ("uniform", "kmeans++", "leverage", X[:40], LowRankEigen):
        if landmarks is LowRankEigen:
            solver = LowRankEigen(rank=40, random_state=0)
            model = KernelPCA(3, kernel="rbf", gamma=0.2, eigen_solver=solver).fit(X)
        else:
            model = make("nystroem", rank=40, landmarks=landmarks).fit(X)
        assert len(model.X_fit_) == 40
        assert model.explained_variance_ratio_.sum() > 0.3


def test_use_before_fit():
    model = KernelPCA(2, kernel="rbf")
    for method in (
        model.transform,
        model.reconstruction_error,
        model.score_samples,
        model.score,
        model.decision_function,
        model.is_outlier,
        model.contributions,
    ):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            method(X)
    with pytest.raises(NotFittedError):
        model.merge(model)


@every_solver
def test_a_budget_that_nothing_fits(solver):
    model = make(solver, max_memory=1000)
    if solver in ("power", "arpack", "randomized", "krylov"):
        text = "the 120 x 120 matrix K"
    elif solver == "dense":
        text = "the 120 x 120 matrix K|a dense eigenproblem"
    else:
        text = "of 120 points needs .* but the budget is 1000 bytes"
    with pytest.raises(MemoryBudgetError, match=text):
        model.fit(X)
    with pytest.raises(NotFittedError):
        model.transform(X)


@pytest.mark.parametrize("solver", [*EXACT, "nystroem"])
def test_precomputed_shapes(solver):
    with pytest.raises(ValueError, match=r"not square|must be square|120 x 4|\(120, 4\)"):
        make(solver, kernel="precomputed").fit(X)
    model = make(solver, kernel="precomputed").fit(RBF()(X))
    with pytest.raises(ValueError, match="X has 4 features, but KernelPCA is expecting 120"):
        model.transform(X)


def test_features_need_a_spectrum():
    with pytest.raises(TypeError, match="Polynomial has no random Fourier features"):
        KernelPCA(2, kernel="poly", eigen_solver="features").fit(X)
    for kernel, points in (("precomputed", RBF()(X)), (Callable(letters), WORDS)):
        with pytest.raises(ValueError, match="random features require vectors"):
            KernelPCA(2, kernel=kernel, eigen_solver="features").fit(points)


def test_a_failed_fit_leaves_nothing_behind():
    model = make("dense").fit(X)
    with pytest.raises(ValueError, match="non-negative"):
        model.fit(X, sample_weight=-np.ones(120))
    with pytest.raises(NotFittedError):
        model.transform(X)
    assert not hasattr(model, "eigenvalues_") and not hasattr(model, "offset_")


def test_a_solver_object_is_taken_as_it_is():
    model = KernelPCA(3, kernel="rbf", eigen_solver=BlockKrylov(tol=1e-12, random_state=4)).fit(X)
    assert model.solver_ == BlockKrylov(tol=1e-12, random_state=4)
    with pytest.raises(ValueError, match="eigen_solver"):
        KernelPCA(3, eigen_solver="best").fit(X)
    assert isinstance(KernelPCA(3, kernel=Linear()).fit(X).solver_, DenseEigen)


def test_points_without_variance_have_no_components():
    X = np.ones((5, 2))
    model = KernelPCA(None, kernel="linear", remove_zero_eig=True).fit(X)
    assert model.summary().endswith("No components: the points have no variance.")
    assert model.contributions(X).shape == (0, 2)
    assert KernelPCA(0.9, kernel="linear").fit(X).eigenvalues_.tolist() == [0.0]
