"""KernelRidgeCV against single fits, n refits, GridSearchCV and scikit-learn's RidgeCV."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import GridSearchCV, KFold, LeaveOneOut, cross_val_predict

from mercer import KernelRidge, KernelRidgeCV, MemoryBudgetError, NotPositiveDefiniteError, compress
from mercer.gram._dense import can_share_distances, iter_grams
from mercer.kernels import RBF, Laplacian, Linear, Matern, Precomputed
from mercer.solvers import Status

rng = np.random.default_rng(8)
X = rng.standard_normal((60, 3))
y = np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + 0.2 * rng.standard_normal(60) + 3.0
Y = np.c_[y, X[:, 2] ** 2 + rng.standard_normal(60)]
W = rng.uniform(0.3, 2.0, size=60)
ALPHAS = np.geomspace(1e-3, 10.0, 6)


@pytest.mark.parametrize("intercept", [False, True])
def test_leave_one_out_equals_n_refits(intercept):
    model = KernelRidgeCV(ALPHAS, kernel="rbf", fit_intercept=intercept, store_cv_results=True)
    model.fit(X, y)
    for j, alpha in enumerate(ALPHAS):
        single = KernelRidge(alpha, kernel="rbf", gamma=1 / 3, fit_intercept=intercept)
        predictions = cross_val_predict(single, X, y, cv=LeaveOneOut())
        np.testing.assert_allclose(model.cv_results_[:, j], (y - predictions) ** 2, atol=1e-8)
        closed = single.fit(X, y).leave_one_out()
        np.testing.assert_allclose(closed, predictions, rtol=1e-8, atol=1e-8)
        if alpha == model.alpha_:
            np.testing.assert_allclose(model.leave_one_out_, predictions, rtol=1e-8)
            np.testing.assert_allclose(model.predict(X), single.predict(X), rtol=1e-9)
            assert model.intercept_ == pytest.approx(single.intercept_)
    errors = model.cv_results_.mean(axis=0)
    assert model.alpha_ == ALPHAS[np.argmin(errors)]
    assert model.best_score_ == pytest.approx(-errors.min())
    np.testing.assert_allclose(model.scores_, -errors[None])


def test_a_linear_kernel_is_ridge_cv():
    for weights in (None, W):
        ours = KernelRidgeCV(ALPHAS, kernel="linear", fit_intercept=True).fit(X, Y, weights)
        theirs = RidgeCV(ALPHAS).fit(X, Y, weights)
        assert ours.alpha_ == theirs.alpha_
        np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-9)
        np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-9)
    each = KernelRidgeCV(ALPHAS, fit_intercept=True, alpha_per_target=True).fit(X, Y)
    theirs = RidgeCV(ALPHAS, alpha_per_target=True).fit(X, Y)
    np.testing.assert_array_equal(each.alpha_, theirs.alpha_)
    np.testing.assert_allclose(each.best_score_, theirs.best_score_, rtol=1e-9)
    scored = KernelRidgeCV(ALPHAS, fit_intercept=True, scoring="neg_mean_absolute_error")
    scored.set_params(store_cv_results=True).fit(X, y)
    theirs = RidgeCV(ALPHAS, scoring="neg_mean_absolute_error", store_cv_results=True).fit(X, y)
    assert scored.alpha_ == theirs.alpha_
    assert scored.best_score_ == pytest.approx(theirs.best_score_)


@pytest.mark.parametrize("solver", ["exact", "nystroem"])
@pytest.mark.parametrize("cv", [None, "gcv", 5], ids=str)
def test_gammas_and_alphas_together(solver, cv):
    gammas = [0.01, 0.3, 5.0]
    model = KernelRidgeCV(ALPHAS, kernel="rbf", gammas=gammas, solver=solver, cv=cv)
    model.fit(X, Y, W)
    assert model.scores_.shape == (3, 6)
    best = np.unravel_index(np.argmax(model.scores_), (3, 6))
    assert model.gamma_ == gammas[best[0]]
    assert model.alpha_ == ALPHAS[best[1]]
    single = KernelRidge(model.alpha_, kernel="rbf", gamma=model.gamma_).fit(X, Y, W)
    np.testing.assert_allclose(model.predict(X), single.predict(X), rtol=1e-6, atol=1e-8)


def test_folds_equal_a_grid_search():
    cv = KFold(4)
    for extra in ({}, {"scoring": "r2"}):
        ours = KernelRidgeCV(ALPHAS, kernel="rbf", gammas=[0.1, 1.0], cv=cv, **extra).fit(X, y)
        grid = {"gamma": [0.1, 1.0], "alpha": ALPHAS}
        extra = extra or {"scoring": "neg_mean_squared_error"}
        theirs = GridSearchCV(KernelRidge(kernel="rbf"), grid, cv=cv, **extra).fit(X, y)
        assert ours.best_score_ == pytest.approx(theirs.best_score_)
        assert {"gamma": ours.gamma_, "alpha": ours.alpha_} == theirs.best_params_
        np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-9)
    K = RBF.from_gamma(0.1)(X)
    given = KernelRidgeCV(ALPHAS, kernel="precomputed", cv=cv).fit(K, y)
    direct = KernelRidgeCV(ALPHAS, kernel="rbf", gamma=0.1, cv=cv).fit(X, y)
    assert given.best_score_ == pytest.approx(direct.best_score_)
    np.testing.assert_allclose(given.predict(K), direct.predict(X), rtol=1e-9)


@pytest.mark.parametrize("weights", [None, np.where(np.arange(60) < 7, 0.0, W)], ids=["equal", "0"])
def test_folds_on_landmarks_score_what_single_fits_reach(weights):
    """Also for a precomputed matrix, whose landmarks are indices of all points."""
    cv, w = KFold(3), np.ones(60) if weights is None else weights
    options = {"solver": "nystroem", "landmarks": "rpcholesky", "rank": 12}
    K = RBF(1.0)(X)
    expected = np.zeros(6)
    for train, test in cv.split(X):
        train, test = (rows[w[rows] > 0] for rows in (train, test))
        for j, alpha in enumerate(ALPHAS):
            fit = KernelRidge(alpha, kernel=RBF(1.0), **options).fit(X[train], y[train], w[train])
            expected[j] -= np.average((fit.predict(X[test]) - y[test]) ** 2, weights=w[test]) / 3
    for kernel, points in ((RBF(1.0), X), ("precomputed", K), (Precomputed(K), np.arange(60))):
        model = KernelRidgeCV(ALPHAS, kernel=kernel, cv=cv, **options).fit(points, y, weights)
        np.testing.assert_allclose(model.scores_[0], expected, rtol=1e-6)
        whole = KernelRidge(model.alpha_, kernel=RBF(1.0), **options).fit(X, y, weights)
        np.testing.assert_allclose(model.predict(points), whole.predict(X), rtol=1e-6)


@pytest.mark.parametrize("tiny", [1e-8, 1e-16, 1e-30, 1e-300])
def test_weights_over_many_orders_of_magnitude(tiny):
    w = np.where(np.arange(60) < 5, tiny, 1.0)
    for solver in ("exact", "nystroem"):
        model = KernelRidgeCV([0.1], kernel=RBF(1.0), fit_intercept=True, solver=solver)
        model.set_params(landmarks=X).fit(X, y, w)
        refits = np.empty(60)
        for i in range(60):
            others = np.arange(60) != i
            single = KernelRidge(0.1, kernel=RBF(1.0), fit_intercept=True)
            refits[i] = single.fit(X[others], y[others], w[others]).predict(X[[i]])[0]
        np.testing.assert_allclose(model.leave_one_out_, refits, rtol=1e-7)


def test_gcv_of_targets_without_noise():
    """The subtraction cancels most digits, but the scores agree with those of the exact path."""
    alphas = np.geomspace(1e-9, 1.0, 10)
    exact, small = (
        KernelRidgeCV(alphas, kernel=RBF(0.3), cv="gcv", solver=solver, landmarks=X)
        .fit(X, np.sin(X[:, 0]))
        .scores_
        for solver in ("exact", "nystroem")
    )
    np.testing.assert_allclose(small, exact, rtol=1e-5)


def test_a_large_mean_costs_no_digits():
    plain, shifted = (
        KernelRidgeCV([1e-4], kernel="rbf", fit_intercept=True).fit(X, y + c) for c in (0.0, 1e8)
    )
    np.testing.assert_allclose(shifted.predict(X) - 1e8, plain.predict(X), atol=1e-6)
    _, one = KernelRidge(1e-4, kernel="rbf", fit_intercept=True).fit(X, y).predict(X, True)
    _, two = KernelRidge(1e-4, kernel="rbf", fit_intercept=True).fit(X, y + 1e8).predict(X, True)
    np.testing.assert_allclose(one, two, rtol=1e-6)


@pytest.mark.filterwarnings("ignore::mercer.NotMercerWarning")  # intended
@pytest.mark.filterwarnings("ignore:KernelRidgeCV predicts worse than the mean")  # intended
def test_alphas_below_rounding_are_left_out():
    with pytest.warns(ConvergenceWarning, match="1 of 2 alphas, up to 1e-20, are skipped") as said:
        model = KernelRidgeCV([1e-20, 0.1], kernel="linear").fit(X, y)
    assert said[0].filename == __file__
    assert model.alpha_ == 0.1
    assert model.scores_[0, 0] == -np.inf
    with pytest.warns(ConvergenceWarning, match="are skipped"):
        assert KernelRidgeCV(kernel="sigmoid").fit(X, y).alpha_ > 0.1
    with pytest.raises(NotPositiveDefiniteError, match="is not positive definite"):
        KernelRidgeCV([1e-3], kernel="sigmoid").fit(X, y)


def test_float32_is_searched_and_fitted_in_float64():
    A = X.astype(np.float32)
    small = KernelRidgeCV([1e-7], kernel="rbf", gamma=0.05, cv=3).fit(A, y)
    assert small.report_.status is Status.DIRECT
    large = KernelRidgeCV([1e-7], kernel="rbf", gamma=0.05, cv=3).fit(A.astype(float), y)
    np.testing.assert_allclose(small.dual_coef_, large.dual_coef_, rtol=1e-6)


def test_the_grid_does_not_depend_on_order_or_repetition():
    one = KernelRidgeCV(kernel="poly", gammas=[1e-3, 10.0]).fit(X, y)
    other = KernelRidgeCV(kernel="poly", gammas=[10.0, 1e-3]).fit(X, y)
    np.testing.assert_allclose(one.alphas_, other.alphas_)
    twice = KernelRidgeCV(kernel="poly").fit(np.r_[X, X[:10]], np.r_[y, y[:10]])
    weighted = KernelRidgeCV(kernel="poly").fit(X, y, 1.0 + (np.arange(60) < 10))
    np.testing.assert_allclose(twice.alphas_, weighted.alphas_)


def test_scores_that_cannot_be_had():
    with pytest.raises(ValueError, match="no alpha has a finite score"):
        KernelRidgeCV([1.0], kernel="rbf", cv=LeaveOneOut(), scoring=nothing).fit(X[:10], y[:10])
    with pytest.raises(ValueError, match="needs at least two points, got n_samples = 1"):
        KernelRidgeCV(kernel="rbf", fit_intercept=True).fit(X[:1], y[:1])
    with pytest.raises(TypeError, match="scoring='neg_max_error' does not accept sample_weight"):
        KernelRidgeCV(kernel="rbf", scoring="neg_max_error").fit(X, y, W)
    with pytest.raises(ValueError, match="training and"):
        KernelRidgeCV(kernel="rbf", cv=KFold(3)).fit(X[:9], y[:9], [0, 0, 0, 1, 1, 1, 1, 1, 1])


def nothing(model, A, b):
    return np.nan


def test_no_landmark_that_says_anything():
    model = KernelRidgeCV([0.1], kernel="linear", solver="nystroem", fit_intercept=True)
    model.fit(np.zeros((10, 2)), np.arange(10.0))
    np.testing.assert_allclose(model.predict(np.zeros((3, 2))), 4.5)


def test_points_without_weight_are_left_out():
    w = np.where(np.arange(60) % 4 == 0, 0.0, W)
    model = KernelRidgeCV(ALPHAS, kernel="rbf", fit_intercept=True).fit(X, y, w)
    some = KernelRidgeCV(ALPHAS, kernel="rbf", fit_intercept=True).fit(X[w > 0], y[w > 0], w[w > 0])
    assert model.alpha_ == some.alpha_
    np.testing.assert_allclose(model.predict(X), some.predict(X), rtol=1e-10)
    np.testing.assert_allclose(model.leave_one_out_[w > 0], some.leave_one_out_, rtol=1e-10)
    np.testing.assert_allclose(model.leave_one_out_[w == 0], some.predict(X[w == 0]), rtol=1e-10)
    assert np.all(model.dual_coef_[w == 0] == 0)


def test_landmarks_and_leave_one_out():
    """With fixed landmarks, the closed form equals refits on the same landmarks."""
    S = X[:15]
    model = KernelRidgeCV(
        [0.1], kernel="rbf", solver="nystroem", landmarks=S, fit_intercept=True
    ).fit(X, y)
    single = KernelRidge(
        0.1, kernel="rbf", gamma=1 / 3, solver="nystroem", landmarks=S, fit_intercept=True
    )
    refits = cross_val_predict(single, X, y, cv=LeaveOneOut())
    np.testing.assert_allclose(model.leave_one_out_, refits, rtol=1e-8)
    assert len(model.X_fit_) == 15


def test_points_of_any_kind_and_compression():
    values = RBF(1.0)(X)
    model = KernelRidgeCV(kernel=Precomputed(values)).fit(np.arange(60), y)
    direct = KernelRidgeCV(kernel=RBF(1.0)).fit(X, y)
    assert model.alpha_ == direct.alpha_
    small = compress(direct, n_points=30)
    assert np.abs(small.predict(X) - direct.predict(X)).max() < 0.2
    assert not hasattr(small, "leave_one_out_")


def test_the_default_grid_follows_the_size_of_the_kernel():
    one = KernelRidgeCV(kernel=RBF(1.0)).fit(X, y)
    large = KernelRidgeCV(kernel=100.0 * RBF(1.0)).fit(X, y)
    assert large.alpha_ == pytest.approx(100.0 * one.alpha_)
    np.testing.assert_allclose(large.predict(X), one.predict(X), rtol=1e-7)


@pytest.mark.parametrize("kernel", [RBF, Matern], ids=lambda k: k.__name__)
def test_distances_are_shared(kernel):
    kernels = [kernel(0.5), kernel(1.0), kernel(4.0)]
    assert can_share_distances(kernels)
    for k, K in zip(kernels, iter_grams(kernels, X), strict=True):
        np.testing.assert_allclose(K.array, k(X), rtol=1e-12, atol=1e-14)
    assert not can_share_distances([Laplacian(1.0), Laplacian(2.0)])
    assert not can_share_distances([RBF(1.0), Linear()])
    assert not can_share_distances([RBF(1.0)])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"alphas": [1.0, -1.0]}, "alphas must be positive and finite numbers"),
        ({"alphas": []}, "alphas must be positive and finite numbers"),
        ({"gammas": [0.0], "kernel": "rbf"}, "gammas must be positive and finite numbers"),
        ({"gammas": [1.0], "kernel": RBF()}, "gammas requires a kernel given by name"),
        ({"cv": "gcv", "scoring": "r2"}, "cv='gcv' cannot be combined with scoring"),
        ({"cv": 3, "store_cv_results": True}, "store_cv_results=True needs leave-one-out"),
        ({"cv": 3, "alpha_per_target": True}, "alpha_per_target=True needs separate errors"),
        ({"solver": "magic"}, "The 'solver' parameter of KernelRidgeCV must be"),
        ({"landmarks": "magic"}, "The 'landmarks' parameter of KernelRidgeCV must be"),
        ({"alphas": ["a"]}, "alphas must be positive and finite numbers"),
        ({"gammas": [1.0, 2.0], "kernel": "linear"}, "but the kernel is 'linear'"),
        ({"gammas": [1.0, 2.0], "kernel": "precomputed"}, "but the kernel is 'precomputed'"),
        ({"solver": "nystroem", "rank": 100}, "rank=100 landmarks cannot be chosen among 60"),
    ],
)
def test_bad_input(change, message):
    with pytest.raises(ValueError, match=message):
        KernelRidgeCV(**change).fit(X, y)


def test_memory_and_progress(capsys):
    with pytest.raises(
        MemoryBudgetError, match="a search over 2 kernels and 30 alphas on 60 points"
    ):
        KernelRidgeCV(kernel="rbf", gammas=[1.0, 2.0], max_memory=2 * 8 * 60 * 60).fit(X, y)
    KernelRidgeCV(kernel="rbf", gammas=[1.0, 2.0], verbose=1).fit(X, y)
    assert capsys.readouterr().out.count("best score") == 2


def test_only_alphas_below_the_rounding_errors():
    X = np.random.default_rng(0).normal(size=(40, 2))
    model = KernelRidgeCV(alphas=[1e-15, 1e-14], kernel="linear", solver="nystroem")
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(X, X[:, 0])
    assert model.alpha_ == 1e-14
    assert any("1 of 2 alphas, up to 1e-15, are skipped" in str(w.message) for w in caught)
