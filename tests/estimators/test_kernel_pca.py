"""KernelPCA against scikit-learn, against PCA, and with invalid input."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.decomposition
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Perceptron
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from mercer import KernelPCA, MemoryBudgetError
from mercer.datasets import circles
from mercer.kernels import RBF, Callable, Distance, Features, Linear, Polynomial, QuadraticMap
from mercer.solvers import BlockKrylov, DenseEigen

rng = np.random.default_rng(4)
X = rng.uniform(0.0, 1.0, size=(90, 6))
Z = rng.uniform(0.0, 1.0, size=(31, 6))


def same_up_to_sign(A, B, atol):
    signs = np.sign(np.sum(A * B, axis=0))
    np.testing.assert_allclose(A * signs, B, atol=atol)


@pytest.mark.filterwarnings("ignore::mercer.NotMercerWarning")  # intended
@pytest.mark.parametrize("name", ["linear", "poly", "rbf", "sigmoid", "cosine"])
@pytest.mark.parametrize("solver", ["dense", "arpack", "randomized", "auto"])
def test_equals_scikit_learn(name, solver):
    options = {"kernel": name, "gamma": 0.2, "eigen_solver": solver, "random_state": 0}
    options |= {"iterated_power": 40} if solver == "randomized" else {}
    ours, theirs = KernelPCA(3, **options), sklearn.decomposition.KernelPCA(3, **options)
    scores, expected = ours.fit_transform(X), theirs.fit_transform(X)
    np.testing.assert_allclose(ours.eigenvalues_, theirs.eigenvalues_, rtol=1e-8)
    same_up_to_sign(scores, expected, 1e-7)
    same_up_to_sign(ours.transform(Z), theirs.transform(Z), 1e-7)
    np.testing.assert_allclose(ours.transform(X), scores, atol=1e-8)
    assert ours.gamma_ == theirs.gamma_


@pytest.mark.parametrize("solver", ["dense", "arpack", "randomized"])
def test_the_linear_kernel_gives_pca(solver):
    A = np.concatenate([X, 5 + 2 * Z]) + 100.0  # far from the origin, so that centring matters
    ours = KernelPCA(4, eigen_solver=solver, iterated_power=60, random_state=0).fit(A)
    pca = PCA(4).fit(A)
    same_up_to_sign(ours.transform(A), pca.transform(A), 1e-7)
    np.testing.assert_allclose(ours.explained_variance_, pca.explained_variance_, rtol=1e-7)
    np.testing.assert_allclose(
        ours.explained_variance_ratio_, pca.explained_variance_ratio_, rtol=1e-7
    )


def test_quadratic_features_and_the_quadratic_kernel_are_one_model():
    phi = QuadraticMap(coef0=0.5)
    pca = PCA(3).fit(phi(X))
    for kernel in (Polynomial(degree=2, coef0=0.5), Features(phi)):
        model = KernelPCA(3, kernel=kernel).fit(X)
        same_up_to_sign(model.transform(Z), pca.transform(phi(Z)), 1e-9)
        np.testing.assert_allclose(
            model.explained_variance_ratio_, pca.explained_variance_ratio_, rtol=1e-9
        )


def test_ratios_have_the_exact_denominator():
    few, all_ = KernelPCA(2, kernel="rbf").fit(X), KernelPCA(kernel="rbf").fit(X)
    np.testing.assert_allclose(
        few.explained_variance_ratio_, all_.explained_variance_ratio_[:2], rtol=1e-10
    )
    assert all_.explained_variance_ratio_.sum() == pytest.approx(1.0, abs=1e-10)
    K = RBF.from_gamma(1 / 6)(X)
    trace = np.trace(K) - K.sum() / 90
    assert few.total_variance_ == pytest.approx(trace / 89, rel=1e-12)


def test_components_are_orthonormal_expansions():
    model = KernelPCA(4, kernel="rbf", gamma=2.0).fit(X)
    np.testing.assert_allclose(model.expansion_.inner(model.expansion_), np.eye(4), atol=1e-9)
    assert np.all(model.residuals_ < 1e-10 * model.eigenvalues_[0])


@pytest.mark.parametrize("storage", ["dense", "tiled"])
def test_storage_does_not_matter(storage):
    reference = KernelPCA(3, kernel="rbf", eigen_solver="dense").fit(X)
    model = KernelPCA(3, kernel="rbf", storage=storage, eigen_solver="arpack").fit(X)
    np.testing.assert_allclose(model.eigenvalues_, reference.eigenvalues_, rtol=1e-10)
    same_up_to_sign(model.transform(Z), reference.transform(Z), 1e-8)


def test_a_matrix_beyond_the_budget_is_never_held():
    model = KernelPCA(2, kernel="rbf", max_memory="12 MiB").fit(np.tile(X, (13, 1)))
    assert isinstance(model.solver_, BlockKrylov)
    assert "TiledGram" in model.summary()
    for budget in ("9 MiB", "16 MiB"):  # K does not fit; K fits, but not its eigenvectors
        with pytest.raises(MemoryBudgetError, match="no exact method fits"):
            KernelPCA(kernel="rbf", max_memory=budget).fit(np.tile(X, (13, 1)))
        with pytest.raises(MemoryBudgetError, match="a dense eigenproblem of 1170 points, 1170 c"):
            KernelPCA(kernel="rbf", max_memory=budget, eigen_solver="dense", storage="tiled").fit(
                np.tile(X, (13, 1))
            )
    with pytest.raises(MemoryBudgetError, match="no exact method fits"):
        KernelPCA(2, kernel="rbf", max_memory=10_000).fit(X)


def test_nested_circles_become_separable():
    A, label = circles(400, factor=0.3, noise=0.05, random_state=0)
    scores = KernelPCA(2, kernel="rbf", gamma=2.0).fit_transform(A)
    assert Perceptron(max_iter=50, tol=None).fit(scores, label).score(scores, label) == 1.0
    search = GridSearchCV(
        make_pipeline(KernelPCA(2, kernel=RBF(0.5)), Perceptron(max_iter=20, tol=None)),
        {"kernelpca__kernel__length_scale": [50.0, 0.5]},
        cv=3,
    ).fit(A, label)
    assert search.best_params_ == {"kernelpca__kernel__length_scale": 0.5}


def test_precomputed():
    kernel = RBF(0.8)
    direct = KernelPCA(3, kernel=kernel).fit(X)
    K = kernel(X)
    before = K.copy()
    given = KernelPCA(3, kernel="precomputed").fit(K)
    np.testing.assert_allclose(given.transform(kernel(Z, X)), direct.transform(Z), atol=1e-9)
    assert np.array_equal(K, before)
    with pytest.warns(UserWarning, match="not symmetric"):
        KernelPCA(1, kernel="precomputed").fit([[1.0, 2.0], [3.0, 40.0]])
    with pytest.raises(ValueError, match="not square"):
        KernelPCA(1, kernel="precomputed").fit(X)


def test_null_components():
    flat = np.ones((5, 3))
    kept = KernelPCA(2).fit(flat)
    assert np.array_equal(kept.transform(flat), np.zeros((5, 2)))
    assert KernelPCA(2, remove_zero_eig=True).fit(flat).n_components_ == 0
    assert KernelPCA().fit(flat).eigenvalues_.shape == (0,)
    assert np.array_equal(kept.explained_variance_ratio_, [0.0, 0.0])
    rank = KernelPCA().fit(X)
    assert rank.n_components_ == 6


@pytest.mark.filterwarnings("ignore::mercer.NotMercerWarning")  # intended
def test_an_indefinite_kernel_raises_with_numbers():
    with pytest.raises(ValueError, match="There are significant negative eigenvalues"):
        KernelPCA(kernel="sigmoid", gamma=4.0, coef0=-2.0).fit(X)
    with pytest.raises(ValueError, match="All eigenvalues are negative"):
        KernelPCA(kernel="precomputed").fit(-np.eye(4))


def test_centring_makes_a_conditionally_positive_definite_kernel_legitimate():
    # The centred -|x - z|^2 / 2 is the centred linear kernel.
    model = KernelPCA(3, kernel=0.5 * Distance(exponent=2)).fit(X)
    linear = KernelPCA(3).fit(X)
    np.testing.assert_allclose(model.eigenvalues_, linear.eigenvalues_, rtol=1e-9)
    same_up_to_sign(model.transform(Z), linear.transform(Z), 1e-9)


def test_sparse_and_float32():
    dense = KernelPCA(3, kernel="rbf").fit(X)
    sparse = KernelPCA(3, kernel="rbf").fit(sp.csr_array(X))
    same_up_to_sign(sparse.transform(sp.csr_array(Z)), dense.transform(Z), 1e-8)
    single = KernelPCA(3, kernel="rbf").fit(X.astype(np.float32))
    scores = single.transform(Z.astype(np.float32))
    assert scores.dtype == np.float32
    same_up_to_sign(scores, dense.transform(Z), 1e-4)


@pytest.mark.parametrize("name", ["rbf", "laplacian", "poly", "chi2"])
@pytest.mark.parametrize("rule", ["scale", "auto", "median"])
def test_gamma_is_resolved_to_a_number(name, rule):
    model = KernelPCA(2, kernel=name, gamma=rule).fit(X)
    assert isinstance(model.gamma_, float)
    again = KernelPCA(2, kernel=name, gamma=model.gamma_).fit(X)
    np.testing.assert_allclose(again.eigenvalues_, model.eigenvalues_, rtol=1e-12)


def test_names_and_pandas_output():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("abcdef"))
    model = KernelPCA(2).set_output(transform="pandas").fit(frame)
    assert list(model.transform(frame).columns) == ["kernelpca0", "kernelpca1"]
    assert list(model.feature_names_in_) == list("abcdef")


def test_points_of_any_kind():
    words = ["kernel", "mercer", "hilbert", "gram", "ridge"]
    overlap = Callable(lambda s, t: len(set(s) & set(t)), contract="pair")
    scores = KernelPCA(2, kernel=overlap).fit_transform(words)
    np.testing.assert_allclose(scores.sum(axis=0), 0.0, atol=1e-12)


def test_repeatable_and_printable():
    A = rng.normal(size=(300, 3))
    first, second = (KernelPCA(3, kernel="rbf").fit(A) for _ in range(2))
    assert isinstance(first.solver_, DenseEigen)
    assert np.array_equal(first.eigenvectors_, second.eigenvectors_)
    text = first.summary()
    assert "the exact total tr(HKH)" in text and "residual" in text and "DenseGram" in text
    assert isinstance(KernelPCA(3, eigen_solver=DenseEigen()).fit(X).solver_, DenseEigen)
    assert "... and 2 more" in KernelPCA(12, kernel="rbf").fit(X).summary()


def test_one_point_bad_numbers_bad_shapes():
    assert KernelPCA(1).fit([[1.0, 2.0]]).transform([[1.0, 2.0]]) == pytest.approx(np.zeros((1, 1)))
    with pytest.raises(ValueError, match="infinity"):
        KernelPCA(1).fit([[np.inf], [1.0]])
    with pytest.raises(ValueError, match="X has 2 features, but KernelPCA is expecting 6"):
        KernelPCA(1).fit(X).transform(X[:, :2])
    with pytest.raises(ValueError, match="n_components"):
        KernelPCA(0).fit(X)
    with pytest.raises(NotFittedError):
        KernelPCA(1).transform(X)
    with pytest.warns(
        UserWarning, match="ARPACK can compute at most n - 1 eigenpairs, but 90 of n = 90"
    ):
        model = KernelPCA(eigen_solver="arpack", kernel=Linear()).fit(X)
    assert isinstance(model.solver_, DenseEigen)
    for n in (3, 300):  # identical points without variance
        assert np.array_equal(KernelPCA(2).fit_transform(np.ones((n, 2))), np.zeros((n, 2)))


def test_progress_is_printed_when_asked(capsys):
    KernelPCA(2, verbose=1).fit(X)
    assert "[KernelPCA] 2 components of <DenseGram 90x90" in capsys.readouterr().out


@pytest.mark.parametrize(("n", "k"), [(50, 1), (80, 5), (100, 9), (150, 5), (200, 12)])
def test_a_degenerate_spectrum_loses_no_component(n, k):
    # Distances of many length scales: K is the identity, and all eigenvalues are equal.
    A = np.random.default_rng(0).uniform(size=(n, 4))
    model = KernelPCA(k, kernel="rbf", gamma=1e6, eigen_solver="dense").fit(A)
    np.testing.assert_allclose(model.eigenvalues_, np.ones(k), rtol=1e-12)
    np.testing.assert_allclose(model.eigenvectors_.T @ model.eigenvectors_, np.eye(k), atol=1e-12)


def test_options_reach_the_solver():
    A = rng.normal(size=(300, 10))
    options = {"n_components": 3, "kernel": "rbf", "gamma": 0.3, "eigen_solver": "arpack"}
    loose = KernelPCA(tol=0.5, **options).fit(A)
    tight = KernelPCA(tol=1e-12, **options).fit(A)
    assert loose.report_.n_iter < tight.report_.n_iter
    starts = [KernelPCA(random_state=s, **options).fit(A).eigenvectors_ for s in (1, 1, 2)]
    assert np.array_equal(starts[0], starts[1]) and not np.array_equal(starts[0], starts[2])
    options |= {"eigen_solver": "randomized", "random_state": 0}
    few, many = (KernelPCA(iterated_power=p, **options).fit(A) for p in (0, 9))
    assert few.residuals_.max() > 10 * many.residuals_.max()


def test_copy_x():
    A = X.copy()
    kept, shared = KernelPCA(2).fit(A), KernelPCA(2, copy_X=False).fit(A)
    assert kept.X_fit_ is not A and not np.shares_memory(kept.X_fit_, A)
    assert np.shares_memory(shared.X_fit_, A)


def test_n_jobs_reaches_fit_and_transform(monkeypatch):
    from mercer._core import _threads

    pools = []
    real = _threads._pool
    monkeypatch.setattr(_threads, "_pool", lambda n: pools.append(n) or real(n))
    A = rng.normal(size=(2100, 3))
    KernelPCA(2, kernel="rbf", n_jobs=1).fit(A).transform(A)
    assert pools == []
    KernelPCA(2, kernel="rbf", n_jobs=2).fit(A).transform(A)
    assert set(pools) == {1}  # in addition to the caller
    with pytest.raises(ValueError, match="n_jobs"):
        KernelPCA(2, n_jobs=0).fit(A)


def test_the_inverse_uses_the_resolved_kernel():
    for options in ({"kernel": RBF("median")}, {"kernel": "rbf", "gamma": "median"}):
        model = KernelPCA(3, fit_inverse_transform=True, **options).fit(X)
        assert model.inverse_transform(model.transform(Z)).shape == Z.shape
    named = KernelPCA(3, kernel="rbf", gamma="scale", fit_inverse_transform=True).fit(X)
    number = KernelPCA(3, kernel="rbf", gamma=named.gamma_, fit_inverse_transform=True).fit(X)
    np.testing.assert_allclose(named.dual_coef_, number.dual_coef_, rtol=1e-10)
    with pytest.raises(NotFittedError):
        KernelPCA(2).fit(X).set_params(fit_inverse_transform=True).inverse_transform(X[:, :2])
    refit = named.set_params(fit_inverse_transform=False).fit(X)
    assert not hasattr(refit, "dual_coef_")


def test_points_of_norm_zero_have_no_landmark():
    model = KernelPCA(2, kernel="linear", eigen_solver="nystroem")
    with pytest.raises(ValueError, match=r"k\(x, x\) = 0 for every point.*eigen_solver='dense'"):
        model.fit(np.zeros((50, 3)))
