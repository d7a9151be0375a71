"""The Fisher discriminant: against LDA, kernel ridge, and the quotient that it maximises."""

import numpy as np
import pytest
from scipy.linalg import eigh
from scipy.spatial.distance import cdist
from scipy.special import softmax
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics import log_loss
from sklearn.preprocessing import scale

from mercer import KernelFisherDiscriminant, KernelRidge, MemoryBudgetError, compress
from mercer.kernels import RBF, Precomputed, Sigmoid, Spectrum, WeisfeilerLehman


def three(n=90):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    return X, np.digitize(np.linalg.norm(X, axis=1), [1.2, 1.8])


def aligned(Z, like):
    return Z * np.sign(np.sum(Z * like, axis=0))


@pytest.mark.parametrize("load", [load_iris, load_wine])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("solver", ["exact", "nystroem"])
def test_the_linear_kernel_leads_back_to_lda(load, n_classes, solver):
    X, y = load(return_X_y=True)
    X, y = scale(X)[y < n_classes], y[y < n_classes]
    # The solver "svd" of scikit-learn before version 1.9 divides by n - n_classes instead of n.
    theirs = LinearDiscriminantAnalysis(solver="eigen").fit(X, y)
    ours = KernelFisherDiscriminant(1e-6, kernel="linear", within="fit", solver=solver).fit(X, y)
    T = theirs.transform(X)
    T -= T.mean(axis=0)  # this solver does not centre
    np.testing.assert_allclose(aligned(ours.transform(X), T), T, rtol=0, atol=1e-5)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), rtol=0, atol=1e-6)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    np.testing.assert_allclose(
        ours.explained_variance_ratio_, theirs.explained_variance_ratio_, rtol=1e-6
    )
    np.testing.assert_allclose(ours.priors_, theirs.priors_)
    priors = [0.7, 0.2, 0.1][:n_classes]
    priors = np.array(priors) / sum(priors)
    means = [T[y == c].mean(axis=0) for c in range(n_classes)]
    expected = softmax(np.log(priors) - 0.5 * cdist(T, means, "sqeuclidean"), axis=1)
    ours.set_params(priors=priors).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("alpha", [1e-3, 1.0, 100.0])
def test_two_classes_are_ridge_regression_on_their_sizes(alpha):
    X, y = three()
    y = (y > 0).astype(int)
    n, n1 = len(y), np.sum(y == 1)
    ridge = KernelRidge(alpha=alpha, kernel=RBF(), fit_intercept=True)
    ridge.fit(X, np.where(y == 1, n / n1, -n / (n - n1)))
    ours = KernelFisherDiscriminant(alpha, kernel=RBF()).fit(X, y)
    a, b = ours.dual_coef_[:, 0], ridge.dual_coef_
    np.testing.assert_allclose(a / np.linalg.norm(a), b / np.linalg.norm(b), rtol=0, atol=1e-9)


@pytest.mark.parametrize("alpha", [0.01, 1.0])
def test_the_quotient_is_largest(alpha):
    X, y = three()
    K, n = RBF()(X), len(y)
    B, N = np.zeros((n, n)), alpha * K
    for c in range(3):
        Kc = K[:, y == c]
        gap = Kc.mean(axis=1) - K.mean(axis=1)
        B += Kc.shape[1] * np.outer(gap, gap)
        Kc = Kc - Kc.mean(axis=1)[:, None]
        N += Kc @ Kc.T
    values, V = eigh(B, N + 1e-12 * np.eye(n))
    ours = KernelFisherDiscriminant(alpha, kernel=RBF(), within="fit").fit(X, y)
    np.testing.assert_allclose(ours.discriminant_ratios_, values[:-3:-1], rtol=1e-5)
    for a, v in zip(ours.dual_coef_.T, V[:, :-3:-1].T, strict=True):
        f, g = K @ a, K @ v
        f, g = f - f.mean(), g - g.mean()
        assert abs(f @ g) / np.linalg.norm(f) / np.linalg.norm(g) == pytest.approx(1, abs=1e-6)
        assert a @ N @ a / n == pytest.approx(1)  # the within-class variance
        assert np.mean(f) == pytest.approx(0, abs=1e-9)
    Z = ours.transform(X)
    np.testing.assert_allclose(Z.mean(axis=0), 0, atol=1e-8)
    means = np.array([Z[y == c].mean(axis=0) for c in range(3)])
    np.testing.assert_allclose(ours.means_, means, atol=1e-8)


@pytest.mark.parametrize("solver", ["exact", "nystroem"])
def test_errors_of_leaving_out_a_point(solver):
    X, y = three(40)
    ours = KernelFisherDiscriminant(0.3, kernel=RBF(), solver=solver).fit(X, y)
    Y = np.eye(3)[y]
    for i in range(40):
        rest = np.arange(40) != i
        ridge = KernelRidge(alpha=0.3, kernel=RBF(), fit_intercept=True).fit(X[rest], Y[rest])
        np.testing.assert_allclose(ours.leave_one_out_[i], ridge.predict(X[[i]])[0], atol=1e-7)


def test_the_best_alpha_is_taken():
    X, y = three(150)
    auto = KernelFisherDiscriminant(kernel=RBF()).fit(X, y)
    assert auto.alpha_ == auto.alphas_[np.argmin(auto.scores_)]
    given = KernelFisherDiscriminant(auto.alpha_, kernel=RBF()).fit(X, y)
    np.testing.assert_allclose(auto.transform(X), given.transform(X), rtol=1e-6, atol=1e-6)
    score = np.mean(np.sum((auto.leave_one_out_ - np.eye(3)[y]) ** 2, axis=1))
    assert score == pytest.approx(auto.scores_.min())


def test_digits_and_their_probabilities():
    X, y = load_digits(return_X_y=True)
    train, test = slice(None, None, 2), slice(1, None, 2)
    ours = KernelFisherDiscriminant().fit(X[train], y[train])
    certain = KernelFisherDiscriminant(ours.alpha_, within="fit").fit(X[train], y[train])
    assert ours.score(X[test], y[test]) > 0.985
    assert LinearDiscriminantAnalysis().fit(X[train], y[train]).score(X[test], y[test]) < 0.96
    p, q = (model.predict_proba(X[test]) for model in (ours, certain))
    assert log_loss(y[test], p) < min(0.2, log_loss(y[test], q))
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    few = KernelFisherDiscriminant(solver="nystroem", rank=200, n_components=2)
    few.fit(X[train], y[train])
    assert few.score(X[test], y[test]) > 0.97
    assert few.transform(X[test]).shape == (len(y[test]), 2)
    assert list(few.get_feature_names_out()) == [
        "kernelfisherdiscriminant0",
        "kernelfisherdiscriminant1",
    ]


def test_all_points_as_landmarks_are_exact():
    X, y = three()
    exact, small = (
        KernelFisherDiscriminant(0.1, solver=s).fit(X, y) for s in ("exact", "nystroem")
    )
    np.testing.assert_allclose(small.transform(X), exact.transform(X), rtol=0, atol=1e-6)
    np.testing.assert_allclose(small.predict_proba(X), exact.predict_proba(X), rtol=0, atol=1e-6)


@pytest.mark.parametrize("solver", ["exact", "nystroem"])
def test_strings(solver):
    rng = np.random.default_rng(1)
    letters = ["AC", "GT", "AG"]
    words = ["".join(rng.choice(list(letters[i % 3]), size=12)) for i in range(60)]
    model = KernelFisherDiscriminant(kernel=Spectrum(2), solver=solver)
    model.fit(words, np.arange(60) % 3)
    assert model.score(words, np.arange(60) % 3) == 1
    assert model.transform(words).shape == (60, 2)


def test_graphs():
    rng = np.random.default_rng(2)
    from zoo import graphs  # of up to six nodes

    X = graphs(40, rng)
    y = np.array([len(X[i].labels) > 3 for i in range(40)])
    model = KernelFisherDiscriminant(kernel=WeisfeilerLehman(h=1)).fit(X, y)
    assert model.score(X, y) > 0.8


@pytest.mark.parametrize("within", ["leave_one_out", "fit"])
def test_values_that_were_computed(within):
    X, y = three()
    K = RBF()(X)
    direct = KernelFisherDiscriminant(0.1, kernel=RBF(), within=within).fit(X, y)
    given = KernelFisherDiscriminant(0.1, kernel="precomputed", within=within).fit(K, y)
    np.testing.assert_allclose(given.transform(K), direct.transform(X), atol=1e-8)
    by_index = KernelFisherDiscriminant(0.1, kernel=Precomputed(K), within=within)
    by_index.fit(np.arange(90), y)
    np.testing.assert_allclose(by_index.transform(np.arange(90)), direct.transform(X), atol=1e-8)


def test_threads_do_not_matter():
    X, y = three(600)
    one, two = (KernelFisherDiscriminant(n_jobs=j).fit(X, y).transform(X) for j in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_a_compressed_model():
    X, y = three(200)
    model = KernelFisherDiscriminant(1.0).fit(X, y)
    small = compress(model, 60)
    assert np.mean(small.predict(X) == model.predict(X)) > 0.9
    assert len(small.X_fit_) <= 60


def test_bad_input():
    X, y = three()
    with pytest.raises(ValueError, match="n_components cannot be larger than n_classes - 1 = 2"):
        KernelFisherDiscriminant(n_components=3).fit(X, y)
    with pytest.raises(ValueError, match="number of samples must exceed the number of class"):
        KernelFisherDiscriminant().fit(X[:3], [0, 1, 2])
    with pytest.raises(ValueError, match=r"priors has shape \(2,\), but there are 3 classes"):
        KernelFisherDiscriminant(priors=[0.5, 0.5]).fit(X, y)
    with pytest.raises(ValueError, match="priors must be positive"):
        KernelFisherDiscriminant(priors=[0.5, 0.5, 0.0]).fit(X, y)
    with pytest.raises(ValueError, match="at least 2 classes"):
        KernelFisherDiscriminant().fit(X, np.zeros(90))
    with pytest.raises(MemoryBudgetError, match="solver='nystroem' needs less"):
        KernelFisherDiscriminant(max_memory="100 kB").fit(X, y)


def test_it_says_what_it_does(capsys):
    X, y = three()
    KernelFisherDiscriminant(verbose=1).fit(X, y)
    assert "alpha = " in capsys.readouterr().out


def test_no_alpha_is_usable_if_the_kernel_is_not_positive():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    model = KernelFisherDiscriminant(kernel=Sigmoid(coef0=-3.0))
    with (
        pytest.warns(UserWarning, match="is not a Mercer kernel"),
        pytest.raises(ValueError, match="all candidates for alpha are smaller than the rounding"),
    ):
        model.fit(X, X[:, 0] > 0)
