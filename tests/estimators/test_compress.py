"""Compression of fitted estimators: what is preserved, what is recomputed, and errors."""

import copy
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_digits
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge

from mercer import KernelPCA, KernelRidge, NotPositiveDefiniteError, ParzenDensity, compress
from mercer.datasets import circles
from mercer.kernels import RBF, Callable, Distance, Linear, Precomputed


def waves(n=200, d=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.sin(X.sum(axis=1)) + 0.1 * rng.normal(size=n)


def letters(s, t):
    return float(sum(s.count(c) * t.count(c) for c in set(s)))


# ---------------------------------------------------------------------- ridge


@pytest.mark.parametrize("method", ["auto", "select", "kmeans"])
def test_ridge(method):
    X, y = waves()
    model = KernelRidge(alpha=0.1, kernel=RBF(1.0)).fit(X, y)
    before = copy.deepcopy(vars(model))
    small = compress(model, 25, method=method)
    assert type(small) is KernelRidge and small is not model
    assert small.get_params() == model.get_params()
    assert len(small.X_fit_) == len(small.dual_coef_) == 25 and small.dual_coef_.ndim == 1
    new, _ = waves(seed=1)
    apart = np.abs(small.predict(new) - model.predict(new))
    assert np.all(apart <= small.reduction_.sup_bound + 1e-9)
    truth = (model.expansion_ - small.expansion_).norm()
    np.testing.assert_allclose(small.reduction_.error, truth, rtol=1e-6)
    assert model.reduction_ is None and len(model.X_fit_) == 200  # unchanged
    for name, value in before.items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(getattr(model, name), value)


def test_ridge_keeps_its_score():
    X, y = load_diabetes(return_X_y=True)
    X, y = X / X.std(axis=0), (y - y.mean()) / y.std()
    model = KernelRidge(alpha=3.0, kernel=RBF(6.0)).fit(X[:350], y[:350])
    small = compress(model, 35)
    assert small.score(X[350:], y[350:]) > 0.99 * model.score(X[350:], y[350:]) > 0.4


def test_ridge_of_several_targets():
    X, y = waves()
    Y = np.column_stack([y, X[:, 0], y * 3.0])
    model = KernelRidge(alpha=0.1, kernel="rbf", gamma=0.5).fit(X, Y)
    small = compress(model, max_error=0.1 * model.expansion_.norm().min(), method="select")
    assert small.predict(X).shape == (200, 3) and small.dual_coef_.shape[1] == 3
    assert small.reduction_.error.max() <= 0.1 * model.expansion_.norm().min()


def test_ridge_of_words():
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("abcd"), size=6)) for _ in range(60)]
    y = np.array([w.count("a") for w in words], dtype=float)
    model = KernelRidge(kernel=Callable(letters)).fit(words, y)
    small = compress(model, 4)  # the number of letters
    assert small.reduction_.method == "select" and set(small.X_fit_) <= set(words)
    np.testing.assert_allclose(small.predict(words), model.predict(words), atol=1e-6)


def test_a_compressed_model_can_be_fitted_again_and_compressed_again():
    X, y = waves()
    small = compress(KernelRidge(alpha=0.1, kernel=RBF()).fit(X, y), 40, method="select")
    smaller = compress(small, 10, method="select")
    assert (smaller.reduction_.n_points_before, smaller.reduction_.n_points) == (40, 10)
    again = clone(small).fit(X, y)
    assert again.reduction_ is None and len(again.X_fit_) == 200
    assert small.fit(X, y).reduction_ is None


# ---------------------------------------------------------------------- precomputed values


def test_precomputed_ridge():
    X, y = waves(80)
    kernel = RBF(1.0)
    K, new = kernel(X), waves(20, seed=1)[0]
    model = KernelRidge(alpha=0.1, kernel="precomputed").fit(K, y)
    with pytest.raises(ValueError, match=r"the matrix that was passed to fit: compress\(.*K=K\)"):
        compress(model, 15)
    with pytest.raises(ValueError, match=r"K has shape \(5, 5\), but the estimator was fitted"):
        compress(model, 15, K=np.eye(5))
    small = compress(model, 15, K=K)
    assert small.X_fit_.shape == (15,) and small.kernel_ == Precomputed()
    direct = compress(KernelRidge(alpha=0.1, kernel=kernel).fit(X, y), 15, method="select")
    np.testing.assert_allclose(small.predict(kernel(new, X)), direct.predict(new), atol=1e-8)
    V = np.full((20, 80), np.inf)
    V[:, small.X_fit_] = kernel(new, X[small.X_fit_])
    V[np.isinf(V)] = -7.0  # columns that are not read
    np.testing.assert_allclose(small.predict(V), direct.predict(new), atol=1e-8)
    with pytest.raises(ValueError, match="K is only needed for kernel='precomputed'"):
        compress(direct, 5, K=K)


def test_precomputed_pca():
    X, _ = waves(80)
    K, new = RBF(1.0)(X), RBF(1.0)(waves(20, seed=1)[0], X)
    small = compress(KernelPCA(3, kernel="precomputed").fit(K), 20, K=K)
    direct = compress(KernelPCA(3, kernel=RBF(1.0)).fit(X), 20, method="select")
    np.testing.assert_allclose(
        small.transform(new), direct.transform(waves(20, seed=1)[0]), atol=1e-7
    )
    np.testing.assert_allclose(small.eigenvalues_, direct.eigenvalues_, rtol=1e-7)


# ---------------------------------------------------------------------- kernel PCA


@pytest.fixture(scope="module")
def digits():
    return load_digits(return_X_y=True)[0][:600] / 16.0


def consistent(small, X, weights=None):
    """The outputs of a kernel PCA for its training points agree with its fitted attributes."""
    k = small.n_components_
    W = small.components_
    real = small.eigenvalues_ > 0
    np.testing.assert_allclose(W.inner(W), np.diag(real.astype(float)), atol=1e-7)
    np.testing.assert_allclose(W.inner(small.mean_)[:, 0], small._components.offset, atol=1e-9)
    w = np.full(len(X), 1.0 / len(X)) if weights is None else weights / weights.sum()
    scores = small.transform(X)
    assert scores.shape == (len(X), k)
    np.testing.assert_allclose(w @ scores, np.zeros(k), atol=1e-9)
    C = len(X) * (w[:, None] * scores).T @ scores
    np.testing.assert_allclose(C, np.diag(small.eigenvalues_), atol=1e-7 * small.eigenvalues_[0])
    np.testing.assert_allclose(
        small.explained_variance_ratio_ * small.total_variance_, small.explained_variance_
    )
    # |phi(x) - mu - P(phi(x) - mu)|^2 from the kernel block of x, the mean and the components.
    kernel, Z = small.kernel_, small.X_fit_
    K, V = kernel(X[:9], Z), small._components.expansion.coefficients
    G = V.T @ kernel(Z) @ V
    along = K @ V - G[-1]
    want = kernel.diag(X[:9]) - 2 * (K @ V)[:, -1] + G[-1, -1] - (along[:, :-1] ** 2).sum(axis=1)
    np.testing.assert_allclose(small.reconstruction_error(X[:9]), want, atol=1e-8)


@pytest.mark.parametrize("method", ["select", "construct"])
def test_pca(digits, method):
    model = KernelPCA(10, kernel=RBF(2.0)).fit(digits)
    before = model.transform(digits[:20])
    small = compress(model, 60, method=method, max_iter=20)
    consistent(small, digits)
    assert small.X_fit_.shape == (60, 64) and small.n_components_ == 10
    kept = small.explained_variance_.sum() / model.explained_variance_.sum()
    assert kept > (0.95 if method == "select" else 0.99)
    assert np.all(small.eigenvalues_ <= model.eigenvalues_ * (1 + 1e-9))
    lower, upper = small.eigenvalue_bounds_.T
    for values in (small.eigenvalues_, model.eigenvalues_):
        assert np.all((lower * (1 - 1e-9) <= values) & (values <= upper * (1 + 1e-9)))
    assert "exact up to rounding, before compression" in small.summary()
    assert "before compression" not in model.summary()
    assert np.all(np.abs(model.eigenvalues_ - small.eigenvalues_) <= small.residuals_ * (1 + 1e-9))
    assert small.total_variance_ == model.total_variance_
    np.testing.assert_array_equal(model.transform(digits[:20]), before)  # unchanged
    assert hasattr(model, "eigenvectors_") and model.reduction_ is None
    share = np.mean(small.is_outlier(digits))
    assert share == pytest.approx(model.contamination, abs=0.005)
    assert (
        "reduced    Reduction by" in small.summary() and "Compressed: each var" in small.summary()
    )
    assert small.contributions(digits[:30]).shape == (10, 64)
    signs = np.sum(small.transform(digits) * model.transform(digits), axis=0)
    assert np.all(signs[:5] > 0)


def test_pca_certificate_is_of_what_was_compressed(digits):
    model = KernelPCA(5, kernel=RBF(2.0)).fit(digits)
    small = compress(model, 50, method="select")
    f = model._components.expansion * np.append(np.sqrt(model.eigenvalues_ / len(digits)), 1.0)
    assert len(small.reduction_.error) == 6
    np.testing.assert_allclose(small.reduction_.norm, f.norm(), rtol=1e-9)
    # The mean is projected, but not rotated with the components.
    np.testing.assert_allclose(
        small.reduction_.error[-1], (model.mean_ - small.mean_).norm()[0], rtol=1e-6
    )


def test_pca_loses_what_the_certificate_says(digits):
    model = KernelPCA(5, kernel=RBF(2.0)).fit(digits)
    for n_points in (30, 120):
        small = compress(model, n_points, method="select")
        lost = (model.eigenvalues_.sum() - small.eigenvalues_.sum()) / len(digits)
        squared = np.sum(small.reduction_.error[:-1] ** 2)
        assert 0.0 < lost <= 1.1 * squared


def test_pca_with_weights_and_whitening(digits):
    w = np.random.default_rng(0).integers(0, 3, size=len(digits)).astype(float)
    model = KernelPCA(4, kernel=RBF(2.0)).fit(digits, sample_weight=w)
    consistent(compress(model, 60, method="select"), digits[w > 0], w[w > 0])
    white = KernelPCA(4, kernel=RBF(2.0), whiten=True).fit(digits)
    small = compress(white, 60, method="select")
    np.testing.assert_allclose(small.transform(digits).std(axis=0, ddof=1), np.ones(4), rtol=1e-9)


def test_pca_on_landmarks(digits):
    model = KernelPCA(6, kernel=RBF(2.0), eigen_solver="nystroem", rank=200).fit(digits)
    for method in ("select", "construct"):
        small = compress(model, 50, method=method, max_iter=10)
        assert small.reduction_.n_points_before == 200
        measured = small.transform(digits).var(axis=0, ddof=1)
        np.testing.assert_allclose(small.explained_variance_, measured, rtol=1e-2)
        W = small.components_
        np.testing.assert_allclose(W.inner(W), np.eye(6), atol=1e-7)
        assert small.explained_variance_.sum() > 0.95 * model.explained_variance_.sum()
        assert np.all(small.score_samples(digits[:9]) <= 0)
        with pytest.raises(NotFittedError, match="because the reconstruction errors"):
            small.decision_function(digits)
    stream = KernelPCA(6, kernel=RBF(2.0), eigen_solver="nystroem", rank=100)
    for part in (digits[:300], digits[300:]):
        stream.partial_fit(part)
    assert len(compress(stream, 40, method="select").X_fit_) == 40


def test_pca_of_fewer_points_than_components():
    X, _ = circles(100, random_state=0)
    model = KernelPCA(8, kernel=RBF(0.7)).fit(X)
    small = compress(model, 5, method="select")
    assert small.n_components_ == 8 and np.count_nonzero(small.eigenvalues_) == 5
    consistent(small, X)


def test_pca_in_single_precision(digits):
    model = KernelPCA(4, kernel=RBF(2.0)).fit(digits.astype(np.float32))
    small = compress(model, 60, method="select")
    assert small.transform(digits[:5].astype(np.float32)).dtype == np.float32
    np.testing.assert_allclose(
        small.explained_variance_ratio_.sum(), model.explained_variance_ratio_.sum(), rtol=0.02
    )


def test_pca_lost_outputs_are_reported(digits):
    model = KernelPCA(4, kernel=RBF(2.0), fit_inverse_transform=True).fit(digits[:150])
    small = compress(model, 40, method="select")
    with pytest.raises(NotFittedError, match="not available after partial_fit or compress"):
        small.inverse_transform(np.zeros((1, 4)))
    assert not hasattr(small, "eigenvectors_") and not hasattr(small, "dual_coef_")
    back = small.inverse_transform(small.transform(digits[:2]), method="nearest")
    assert back.shape == (2, 64)  # which needs no map
    with pytest.raises(AttributeError, match="training scores are not stored after partial_fit"):
        small.training_scores_  # noqa: B018
    with pytest.raises(ValueError, match="does not store its training points"):
        small.contributions()
    assert model.inverse_transform(np.zeros((1, 4))).shape == (1, 64)  # as it was
    with pytest.raises(ValueError, match="a compressed model cannot be updated or merged"):
        small.merge(model)


def test_pca_is_not_compressed_twice(digits):
    for options in ({}, {"eigen_solver": "nystroem", "rank": 100}):
        model = KernelPCA(4, kernel=RBF(2.0), **options).fit(digits[:150])
        small = compress(model, 40, method="select")
        with pytest.raises(ValueError, match=r"from 1\d0 to 40 points.*the original model to"):
            compress(small, 20, method="select")


def test_pca_that_was_compressed_does_not_go_on(digits):
    options = {"kernel": RBF(2.0), "eigen_solver": "nystroem", "landmarks": digits[:80]}
    one, two = (KernelPCA(4, **options).fit(part) for part in (digits[:300], digits[300:]))
    small = compress(one, 40, method="select")
    text = "a compressed model cannot be updated or merged.*original model, and compress it again"
    with pytest.raises(ValueError, match=text):
        small.partial_fit(digits[300:])
    for a, b in ((small, two), (two, small)):
        with pytest.raises(ValueError, match=text):
            a.merge(b)
    assert small._components.rows == 300 and small.n_components_ == 4  # unchanged
    assert small.fit(digits).reduction_ is None


def test_pca_of_centred_points():
    X = np.random.default_rng(0).normal(size=(200, 5))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    model = KernelPCA(3, kernel="linear").fit(X)
    small = compress(model, 20)
    np.testing.assert_allclose(small.eigenvalues_, model.eigenvalues_, rtol=1e-9)
    np.testing.assert_allclose(small.transform(X), model.transform(X), atol=1e-5)


def test_pca_of_random_features_is_refused(digits):
    model = KernelPCA(4, kernel=RBF(2.0), eigen_solver="features", rank=50).fit(digits)
    with pytest.raises(ValueError, match="random features stores no points"):
        compress(model, 20)


def test_pca_of_a_conditional_kernel_is_refused(digits):
    mended = KernelPCA(2, kernel=RBF(2.0), indefinite="clip").fit(digits[:60])
    with pytest.raises(ValueError, match="indefinite='clip' the components are not elements"):
        compress(mended, 10)
    model = KernelPCA(2, kernel=Distance()).fit(digits[:60])
    with pytest.raises(NotPositiveDefiniteError, match="is not positive semidefinite"):
        compress(model, 10)


# ---------------------------------------------------------------------- errors


def test_what_cannot_be_compressed():
    X, y = waves(30)
    with pytest.raises(TypeError, match=r"a fitted kernel estimator of mercer, got Ridge\(\)"):
        compress(Ridge().fit(X, y), 5)
    with pytest.raises(NotFittedError):
        compress(KernelRidge(), 5)
    with pytest.raises(TypeError, match=r"thin\(X, m\).*expansion_\.compress\(m\).*negative"):
        compress(ParzenDensity().fit(X), 5)
    model = KernelRidge(kernel=Linear()).fit(X, y)
    with pytest.raises(
        ValueError, match="n_points=30 must be smaller than the present number of points, 30"
    ):
        compress(model, 30)
    model = KernelRidge(kernel=Linear()).fit(X, y)
    del model.expansion_
    with pytest.raises(TypeError, match="KernelRidge has no expansion_"):
        compress(model, 5)


def test_no_warning_is_lost():
    X, y = waves(60)
    model = KernelRidge(alpha=0.1, kernel=RBF()).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compress(model, 10)
