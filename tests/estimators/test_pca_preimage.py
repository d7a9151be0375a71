"""From scores back to points: decode, denoise, and both types of inverse transform."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.decomposition
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import ExpSineSquared

from mercer import KernelPCA, compress
from mercer.kernels import RBF, Callable, Distance, Linear, Matern, Multiquadric

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 3)) @ rng.normal(size=(3, 5)) + 0.1 * rng.normal(size=(40, 5)) + 3.0
Z = X[:6] + 0.05 * rng.normal(size=(6, 5))


# ---------------------------------------------------------------------- decode


@pytest.mark.parametrize("kernel", [RBF(3.0), 2.0 * RBF(3.0) + 1, Linear(), RBF(3.0) + Linear()])
@pytest.mark.parametrize("solver", ["dense", "krylov", "nystroem"])
@pytest.mark.parametrize("whiten", [False, True])
def test_decoding_is_at_the_distance_of_the_reconstruction_error(kernel, solver, whiten):
    model = KernelPCA(4, kernel=kernel, eigen_solver=solver, whiten=whiten).fit(X)
    decoded = model.decode(model.transform(Z))
    apart = [
        float((decoded[i] - type(decoded).sections(kernel, Z[[i]])).norm()[0]) ** 2
        for i in range(6)
    ]
    np.testing.assert_allclose(apart, model.reconstruction_error(Z), atol=1e-7)


def test_all_components_give_back_every_training_point():
    model = KernelPCA(kernel="rbf", gamma=0.05).fit(X)
    found = model.preimage(model.transform(X))
    np.testing.assert_allclose(found.points, X, atol=1e-3)
    assert np.all(found.residuals < 1e-8)


@pytest.mark.parametrize("q", [1, 3, 5])
@pytest.mark.parametrize("kernel", ["linear", Linear(), 2.0 * Linear() + 1])
def test_linear_kernels_give_the_reconstruction_of_pca(kernel, q):
    theirs = PCA(q).fit(X)
    expected = theirs.inverse_transform(theirs.transform(Z))
    model = KernelPCA(q, kernel=kernel).fit(X)
    np.testing.assert_allclose(model.denoise(Z), expected, atol=1e-8)
    back = model.inverse_transform(model.transform(Z), method="auto")
    np.testing.assert_allclose(back, expected, atol=1e-8)


@pytest.mark.parametrize("kernel", [Distance(), Multiquadric()])
def test_conditionally_positive_kernels_come_back_too(kernel):
    model = KernelPCA(10, kernel=kernel).fit(X)
    scores = model.transform(X)
    found = model.preimage(scores)
    assert np.all(found.residuals <= model.reconstruction_error(X) + 1e-9)  # z = x is feasible
    assert np.mean((found.points - X) ** 2) < 0.1 * X.var()


# ---------------------------------------------------------------------- denoise


def test_denoising_digits_beats_pca_and_the_nearest_digit():
    images = load_digits().data / 8.0 - 1.0
    train, clean = images[:600], images[600:680]
    noisy = clean + 0.5 * np.random.default_rng(1).normal(size=clean.shape)

    def error(A):
        return float(np.mean((A - clean) ** 2))

    linear = []
    for q in (8, 16, 24, 32):
        pca = PCA(q).fit(train)
        linear.append(error(pca.inverse_transform(pca.transform(noisy))))
    model = KernelPCA(120, kernel="rbf", gamma=0.5 / 32).fit(train)
    auto, nearest = model.denoise(noisy), model.denoise(noisy, "nearest")
    assert error(auto) < min(linear)
    assert error(auto) < error(nearest)
    theirs = sklearn.decomposition.KernelPCA(
        120, kernel="rbf", gamma=0.5 / 32, fit_inverse_transform=True, alpha=0.05
    ).fit(train)
    assert error(auto) < error(theirs.inverse_transform(theirs.transform(noisy)))
    # Projecting twice equals projecting once in feature space, and nearly so for points.
    again = model.denoise(auto)
    assert error(again) < 1.5 * error(auto)


def test_many_points_come_in_blocks(monkeypatch):
    import mercer.models.kpca._components as components

    model = KernelPCA(3, kernel="rbf", gamma=0.05).fit(X)
    scores = model.transform(Z)
    whole = model.preimage(scores, start=Z)
    monkeypatch.setattr(components, "_MAX_DECODE_ENTRIES", 2 * 40)
    parts = model.preimage(scores, start=Z)
    np.testing.assert_allclose(parts.points, whole.points, atol=1e-6)
    assert parts.methods == whole.methods and len(parts) == 6
    assert parts.report.seconds > 0 and parts.report.residual == parts.residuals.max()


def test_precision_tables_and_sparse_points():
    model = KernelPCA(3, kernel="rbf", gamma=0.05).fit(X)
    single = KernelPCA(3, kernel="rbf", gamma=0.05).fit(X.astype(np.float32))
    expected = model.denoise(Z)
    cleaned = single.denoise(Z.astype(np.float32))
    assert cleaned.dtype == np.float32
    np.testing.assert_allclose(cleaned, expected, atol=1e-2)
    sparse = KernelPCA(3, kernel="rbf", gamma=0.05).fit(sp.csr_array(X))
    np.testing.assert_allclose(sparse.denoise(sp.csr_array(Z)), expected, atol=1e-4)
    pytest.importorskip("pandas")
    model.set_output(transform="pandas")
    np.testing.assert_allclose(model.denoise(Z), expected, atol=1e-6)
    np.testing.assert_allclose(
        model.inverse_transform(model.transform(Z), "nearest"), model.denoise(Z, "nearest")
    )


def test_denoising_stays_with_the_point_it_began_with():
    """The protocol of Mika et al. (1999): clusters that one component cannot distinguish."""
    rng = np.random.default_rng(3)
    centres = rng.uniform(-1, 1, size=(11, 10))
    train = np.repeat(centres, 60, axis=0) + 0.1 * rng.normal(size=(660, 10))
    clean = np.repeat(centres, 5, axis=0)
    noisy = clean + 0.1 * rng.normal(size=clean.shape)
    model = KernelPCA(9, kernel="rbf", gamma=1 / (20 * 0.1**2)).fit(train)
    pca = PCA(9).fit(train)
    scores, linear = model.transform(noisy), pca.transform(noisy)
    for q in (1, 5, 9):
        kept = np.where(np.arange(9) < q, scores, 0.0)
        back = model.inverse_transform(kept, "fixed_point", start=noisy)
        flat = linear[:, :q] @ pca.components_[:q] + pca.mean_
        assert 20 * np.mean((back - clean) ** 2) < np.mean((flat - clean) ** 2)
    np.testing.assert_allclose(model.denoise(noisy), back, atol=1e-4)


def test_kernels_without_a_gradient_denoise_by_the_best_there_is():
    A = np.linspace(0.0, 1.0, 20)[:, None]
    model = KernelPCA(3, kernel=ExpSineSquared(1.0, 3.0)).fit(A)
    np.testing.assert_allclose(model.denoise(A), A, atol=0.2)


def test_words_come_back_as_words():
    words = ["abba", "abab", "cddc", "cdcd", "abcd"]

    def letters(s, t):
        return float(sum(a == b for a, b in zip(s, t, strict=True)))

    model = KernelPCA(2, kernel=Callable(letters, "pair")).fit(words)
    assert model.denoise(["abbd"])[0] in words


# ---------------------------------------------------------------------- the learned inverse


def test_the_learned_inverse_beats_the_kernel_of_the_pca():
    options = {"kernel": "rbf", "gamma": 0.3, "fit_inverse_transform": True}
    for alpha in (1.0, 0.05, 1e-3):
        ours = KernelPCA(4, alpha=alpha, **options).fit(X)
        theirs = sklearn.decomposition.KernelPCA(4, alpha=alpha, **options).fit(X)
        mine = np.mean((ours.inverse_transform(ours.transform(Z)) - Z) ** 2)
        assert mine < np.mean((theirs.inverse_transform(theirs.transform(Z)) - Z) ** 2)
        assert ours.inverse_alpha_ == alpha
    chosen = KernelPCA(4, alpha="auto", **options).fit(X)
    assert np.mean((chosen.inverse_transform(chosen.transform(Z)) - Z) ** 2) <= 1.05 * mine


def test_the_learned_inverse_is_a_ridge_regression():
    model = KernelPCA(3, kernel="rbf", gamma=0.05, fit_inverse_transform=True, alpha=0.1).fit(X)
    T, mean = model.X_transformed_fit_, X.mean(axis=0)
    K = model.inverse_kernel_(T)
    expected = np.linalg.solve(K + 0.1 * np.eye(40), X - mean)
    np.testing.assert_allclose(model.dual_coef_, expected, atol=1e-8)
    scores = model.transform(Z)
    back = mean + model.inverse_kernel_(scores, T) @ expected
    np.testing.assert_allclose(model.inverse_transform(scores), back, atol=1e-8)


def test_weights_count_in_the_learned_inverse():
    weights = np.r_[np.full(20, 2.0), np.ones(20)]
    options = {"fit_inverse_transform": True, "alpha": 0.1, "kernel": "linear"}
    weighted = KernelPCA(5, **options).fit(X, sample_weight=weights)
    repeated = KernelPCA(5, **options).fit(np.concatenate([X[:20], X]))
    one = weighted.inverse_transform(weighted.transform(Z))
    two = repeated.inverse_transform(repeated.transform(Z))
    np.testing.assert_allclose(one, two, atol=1e-6)


def test_a_linear_map_keeps_the_mean():
    model = KernelPCA(5, fit_inverse_transform=True, alpha=1e-8).fit(X)
    assert model.inverse_kernel_ == Linear()
    np.testing.assert_allclose(model.inverse_transform(model.transform(Z)), Z, atol=1e-5)


# ---------------------------------------------------------------------- bad input


def test_what_cannot_come_back_says_why():
    with pytest.raises(NotFittedError, match="fit_inverse_transform parameter was not set to True"):
        KernelPCA(2).fit(X).inverse_transform(X[:, :2])
    with pytest.raises(NotFittedError, match=r"inverse_transform\(X, method='auto'\)"):
        KernelPCA(2).fit(X).inverse_transform(X[:, :2])
    with pytest.raises(NotFittedError):
        KernelPCA(2).denoise(X)
    with pytest.raises(ValueError, match="Cannot fit_inverse_transform with a precomputed kernel"):
        KernelPCA(2, kernel="precomputed", fit_inverse_transform=True).fit(np.eye(4))
    with pytest.raises(NotImplementedError, match="sparse matrices"):
        KernelPCA(2, fit_inverse_transform=True).fit(sp.csr_array(X))
    K = RBF(3.0)(X)
    with pytest.raises(ValueError, match="pre-images need points, which a precomputed"):
        KernelPCA(2, kernel="precomputed").fit(K).denoise(K)
    features = KernelPCA(2, kernel="rbf", eigen_solver="features", rank=20).fit(X)
    with pytest.raises(ValueError, match="with random features the components are not elements"):
        features.denoise(X)
    clipped = KernelPCA(2, kernel="rbf", indefinite="clip").fit(X)
    with pytest.raises(ValueError, match="with indefinite='clip' the components are not"):
        clipped.denoise(X)
    model = KernelPCA(2, kernel="rbf").fit(X)
    with pytest.raises(ValueError, match=r"each of the 2 components, got shape \(40, 5\)"):
        model.inverse_transform(X, "auto")
    with pytest.raises(ValueError, match="scores contain values that are not finite"):
        model.inverse_transform(np.full((1, 2), np.nan), "auto")
    with pytest.raises(ValueError, match="scores is empty: pre-images need"):
        model.preimage(np.zeros((0, 2)))
    with pytest.raises(ValueError, match="method must be one of"):
        model.denoise(X, "magic")
    learned = KernelPCA(2, kernel="rbf", fit_inverse_transform=True).fit(X)
    with pytest.raises(TypeError, match="inverse transform takes no options, got start"):
        learned.inverse_transform(X[:, :2], start=X)
    words = Callable(lambda s, t: float(s[0] == t[0]) + float(s == t), "pair")
    with pytest.raises(TypeError, match="requires points that are vectors, got a list"):
        KernelPCA(1, kernel=words, fit_inverse_transform=True).fit(["ab", "cd", "ax"])


def test_constant_points_have_an_inverse():
    model = KernelPCA(1, kernel="rbf", fit_inverse_transform=True, alpha="auto").fit(
        np.ones((5, 2))
    )
    np.testing.assert_allclose(model.inverse_transform(model.transform(np.ones((1, 2)))), 1.0)


def test_outliers_come_back_under_every_kernel():
    for kernel in (RBF(2.0), Matern(2.0)):
        model = KernelPCA(5, kernel=kernel).fit(X)
        back = model.denoise(np.full((1, 5), 1e4))
        assert np.abs(back).max() < 100


def test_random_features_come_back_by_the_learned_map():
    model = KernelPCA(
        4, kernel="rbf", eigen_solver="features", rank=200, fit_inverse_transform=True, alpha="auto"
    ).fit(X)
    back = model.inverse_transform(model.transform(Z))
    assert np.mean((back - Z) ** 2) < 0.5 * X.var(axis=0).mean()


def test_a_compressed_model_still_denoises():
    model = KernelPCA(3, kernel="rbf", gamma=0.05).fit(X)
    small = compress(model, 25)
    np.testing.assert_allclose(small.denoise(Z), model.denoise(Z), atol=0.1)
