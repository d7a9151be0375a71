"""Prediction intervals and sets: equality with explicit refits, coverage, and invalid input."""

import math

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import KFold, TimeSeriesSplit

import mercer
from mercer import (
    SVC,
    SVR,
    GaussianProcessClassifier,
    GaussianProcessRegressor,
    KernelFisherDiscriminant,
    KernelLogisticRegression,
    KernelMachineClassifier,
    KernelMachineRegressor,
    KernelRidge,
    KernelRidgeCV,
    MemoryBudgetError,
    NotPositiveDefiniteError,
    NuSVR,
    compress,
    to_primal,
)
from mercer.blocks import Blocks
from mercer.kernels import RBF, Linear, Precomputed, White
from mercer.solvers import interval_bounds, interval_rank

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 2))
y = np.sin(2 * X[:, 0]) + 0.2 * rng.normal(size=40) + 0.3
Y = np.stack([y, 100.0 * y**2], axis=1)
Z = rng.normal(size=(7, 2))
weights = rng.uniform(0.2, 3.0, size=40)
labels = np.digitize(y, [0.0, 0.7])


def refitted(model, y, coverage, sample_weight=None):
    """Return the jackknife+ intervals by their definition, from n explicit fits."""
    n, lower, upper = len(y), [], []
    for i in range(n):
        others = np.arange(n) != i
        options = {} if sample_weight is None else {"sample_weight": sample_weight[others]}
        fit = clone(model).fit(X[others], y[others], **options)
        radius = np.abs(y[i] - fit.predict(X[i : i + 1])[0])
        lower.append(fit.predict(Z) - radius)
        upper.append(fit.predict(Z) + radius)
    k = math.ceil(round(coverage * (n + 1), 9))
    return np.stack([np.sort(lower, axis=0)[n - k], np.sort(upper, axis=0)[k - 1]], axis=-1)


# ------------------------------------------------------------------------- jackknife+


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("w", [None, weights], ids=["", "weights"])
@pytest.mark.parametrize("landmarks", [None, X[:8]], ids=["exact", "landmarks"])
@pytest.mark.parametrize(
    ("targets", "alpha"), [(y, 0.1), (Y, 0.1), (Y, [0.1, 0.7])], ids=["1", "2", "2 alphas"]
)
def test_ridge_equals_refits(intercept, w, landmarks, targets, alpha):
    solver = {} if landmarks is None else {"solver": "nystroem", "landmarks": landmarks}
    model = KernelRidge(alpha, kernel=RBF(1.0), fit_intercept=intercept, **solver)
    fitted = model.fit(X, targets, w)
    intervals = fitted.predict_interval(Z, 0.8)
    expected = refitted(model, targets, 0.8, w)
    assert intervals.shape == (7, *targets.shape[1:], 2)
    scale = np.abs(targets).max()
    np.testing.assert_allclose(intervals, expected, rtol=0, atol=1e-10 * scale)
    np.testing.assert_array_equal(fitted.predict_interval(Z, 0.8), intervals)  # stored factor
    if np.ndim(alpha) == 0:
        search = KernelRidgeCV([alpha], kernel=RBF(1.0), fit_intercept=intercept, **solver)
        by_search = search.fit(X, targets, w).predict_interval(Z, 0.8)
        np.testing.assert_allclose(by_search, expected, rtol=0, atol=1e-10 * scale)


@pytest.mark.parametrize("targets", [y, Y], ids=["1", "2"])
@pytest.mark.parametrize("solver", ["cholesky", "nystroem"])
def test_gaussian_process_equals_refits(targets, solver):
    kernel = 2.0 * RBF(1.0) + White(0.1)
    model = GaussianProcessRegressor(
        kernel, alpha=0.01, optimizer=None, solver=solver, landmarks=X[:8]
    )
    intervals = model.fit(X, targets).predict_interval(Z, 0.9)
    scale = np.abs(targets).max()
    np.testing.assert_allclose(intervals, refitted(model, targets, 0.9), atol=1e-10 * scale)


def test_gaussian_process_with_scaled_targets_is_equivariant():
    model = GaussianProcessRegressor(1.0 * RBF(1.0) + White(0.1), normalize_y=True)
    intervals = clone(model).fit(X, y).predict_interval(Z)
    scaled = clone(model).fit(X, 1e3 * y + 7.0).predict_interval(Z)
    np.testing.assert_allclose(scaled, 1e3 * intervals + 7.0, rtol=1e-4)


def test_precomputed_kernel_with_indices_equals_refits():
    K = RBF(1.0)(np.concatenate([X, Z]))
    model = KernelRidge(0.1, kernel=Precomputed(K)).fit(np.arange(40), y)
    expected = KernelRidge(0.1, kernel=RBF(1.0)).fit(X, y).predict_interval(Z)
    np.testing.assert_allclose(model.predict_interval(np.arange(40, 47)), expected, atol=1e-10)
    rows = KernelRidge(0.1, kernel="precomputed").fit(K[:40, :40], y)
    with pytest.raises(ValueError, match="kernel=Precomputed"):
        rows.predict_interval(K[40:, :40])
    scored = rows.conformalize(K[20:40, :40], y[20:]).predict_interval(K[40:, :40])
    assert np.all(scored[:, 0] < scored[:, 1])
    with pytest.raises(ValueError, match="cv cannot be used with kernel='precomputed'"):
        rows.conformalize(K[:40, :40], y, cv=5)


def test_points_of_weight_zero_are_ignored():
    w = np.where(np.arange(40) < 10, 0.0, 1.0)
    model = KernelRidge(0.1, kernel=RBF(1.0), fit_intercept=True)
    with_zeros = clone(model).fit(X, y, w).predict_interval(Z)
    np.testing.assert_allclose(
        with_zeros, clone(model).fit(X[10:], y[10:]).predict_interval(Z), atol=1e-10
    )


def test_blocks_of_queries_and_a_large_mean():
    model = KernelRidge(0.1, kernel=RBF(1.0), fit_intercept=True, max_memory="64 KiB")
    shifted = clone(model).fit(X, y + 1e6).predict_interval(np.repeat(Z, 50, axis=0))
    expected = np.repeat(clone(model).fit(X, y).predict_interval(Z), 50, axis=0)
    np.testing.assert_allclose(shifted - 1e6, expected, atol=1e-8)


def test_data_in_blocks():
    points = rng.normal(size=(4000, 2))
    t = np.sin(2 * points[:, 0]) + 0.2 * rng.normal(size=4000)
    blocks = Blocks.of(points, rows=1000)
    model = KernelRidge(0.1, kernel=RBF(1.0), solver="nystroem", rank=30).fit(blocks, t)
    lazy = model.predict_interval(Blocks.of(points[:100], rows=30))
    intervals = model.predict_interval(points[:100])
    np.testing.assert_allclose(lazy.to_array(), intervals)
    inside = (intervals[:, 0] <= t[:100]) & (t[:100] <= intervals[:, 1])
    assert 0.8 < inside.mean() < 0.98
    assert len(model._ridge.calibration.Y) == 2000  # limits the size of the model


def test_intervals_of_a_saved_model(tmp_path):
    models = [
        KernelRidge(0.1, kernel=RBF(1.0)).fit(X, y),
        KernelRidge(0.1, kernel=RBF(1.0), solver="nystroem", rank=8).fit(X, y),
        KernelRidgeCV(kernel="rbf", solver="nystroem", rank=8).fit(X, y),
        KernelRidgeCV(kernel="rbf").fit(X, Y),
        GaussianProcessRegressor(1.0 * RBF() + White(0.1), optimizer=None).fit(X, y),
        SVR().fit(X[:20], y[:20]).conformalize(X[20:], y[20:]),
        SVR().fit(X, y).conformalize(X, y, cv=4),
    ]
    for i, model in enumerate(models):
        mercer.save(model, tmp_path / f"{i}.mercer")
        again = mercer.load(tmp_path / f"{i}.mercer")
        np.testing.assert_allclose(again.predict_interval(Z), model.predict_interval(Z), atol=1e-12)
    classifier = SVC().fit(X, labels).conformalize(X, labels, cv=4)
    mercer.save(classifier, tmp_path / "svc.mercer")
    again = mercer.load(tmp_path / "svc.mercer")
    np.testing.assert_array_equal(again.predict_set(Z), classifier.predict_set(Z))


def test_too_few_points_give_infinite_intervals():
    model = KernelRidge(0.1, kernel=RBF(1.0))
    nine = clone(model).fit(X[:9], y[:9])
    assert np.all(np.isfinite(nine.predict_interval(Z, 0.9)))  # (n + 1) 0.9 = 9 exactly
    with pytest.warns(UserWarning, match=r"coverage=0.95 needs at least 19 .* there are 9"):
        intervals = nine.predict_interval(Z, 0.95)
    assert np.all(np.isinf(intervals)) and np.all(intervals[:, 0] < 0)
    with pytest.warns(UserWarning, match="needs at least 9"):
        eight = clone(model).fit(X[:8], y[:8]).predict_interval(Z, 0.9)
    assert np.all(np.isinf(eight))
    one = KernelRidge(0.1, kernel=RBF(1.0), fit_intercept=True).fit(X[:1], y[:1])
    with (
        pytest.warns(UserWarning, match="there are 1"),
        pytest.raises(ValueError, match="at least two"),
    ):
        one.predict_interval(Z)


def test_constant_targets_have_intervals_of_width_zero():
    model = KernelRidge(0.1, kernel=RBF(1.0), fit_intercept=True).fit(X, np.full(40, 3.0))
    np.testing.assert_allclose(model.predict_interval(Z), 3.0, atol=1e-12)


def test_small_coverage_gives_ordered_bounds():
    intervals = KernelRidge(1e-3, kernel=RBF(1.0)).fit(X, y).predict_interval(Z, 0.01)
    assert np.all(intervals[:, 0] <= intervals[:, 1])


# ------------------------------------------------------------------------- order statistics


@pytest.mark.parametrize("n", [1, 9, 10, 19, 100, 999])
@pytest.mark.parametrize("percent", [1, 50, 70, 80, 90, 95, 99])
def test_rank_is_exact(n, percent):
    assert interval_rank(n, percent / 100) == -(-percent * (n + 1) // 100)


def test_interval_bounds_are_order_statistics():
    values = rng.normal(size=(200, 39))
    bounds = interval_bounds(values - 1.0, values + 1.0, 0.9)
    ordered = np.sort(values, axis=1)
    np.testing.assert_array_equal(bounds, np.stack([ordered[:, 3] - 1, ordered[:, 35] + 1], axis=1))


# ------------------------------------------------------------------------- coverage


def friedman(n, rng):
    X = rng.uniform(size=(n, 5))
    f = np.sin(3 * X[:, 0] * X[:, 1]) + 2 * (X[:, 2] - 0.5) ** 2
    return X, f + 0.2 * rng.standard_t(4, size=n)


@pytest.mark.parametrize("method", ["jackknife+", "split", "folds"])
def test_coverage(method):
    generator, coverages = np.random.default_rng(1), []
    for _ in range(40):
        P, t = friedman(100, generator)
        Q, s = friedman(200, generator)
        if method == "jackknife+":
            model = KernelRidge(0.1, kernel="rbf", fit_intercept=True).fit(P, t)
        elif method == "split":
            model = SVR().fit(P[:60], t[:60]).conformalize(P[60:], t[60:])
        else:
            model = SVR().fit(P, t).conformalize(P, t, cv=5)
        intervals = model.predict_interval(Q, 0.8)
        coverages.append(np.mean((intervals[:, 0] <= s) & (s <= intervals[:, 1])))
    error = np.std(coverages) / np.sqrt(40)
    assert 0.8 - 2.5 * error < np.mean(coverages) < 0.8 + 0.06


# ------------------------------------------------------------------------- conformalize


def test_split_intervals_by_definition():
    for model in (SVR(), NuSVR(), KernelMachineRegressor("huber", kernel="rbf")):
        fitted = model.fit(X[:20], y[:20]).conformalize(X[20:], y[20:])
        radius = np.sort(np.abs(y[20:] - fitted.predict(X[20:])))[math.ceil(0.9 * 21) - 1]
        expected = fitted.predict(Z)[:, None] + [-radius, radius]
        np.testing.assert_allclose(fitted.predict_interval(Z), expected)
        fitted.fit(X, y)
        with pytest.raises(ValueError, match="no leave-one-out predictions in closed form"):
            fitted.predict_interval(Z)


def test_leave_one_out_folds_equal_the_closed_form():
    model = KernelRidge(0.1, kernel=RBF(1.0), fit_intercept=True).fit(X, Y)
    closed = model.predict_interval(Z, 0.8)
    folds = model.conformalize(X, Y, cv=KFold(40)).predict_interval(Z, 0.8)
    np.testing.assert_allclose(folds, closed, atol=1e-9)
    assert len(model.fold_models_) == 40 and model.calibration_scores_.shape == (40, 2)


def test_sample_weights_are_used_in_folds():
    model = KernelRidge(0.1, kernel=RBF(1.0)).fit(X, y, weights)
    closed = model.predict_interval(Z, 0.8)
    model.conformalize(X, y, cv=KFold(40), sample_weight=weights)
    np.testing.assert_allclose(model.predict_interval(Z, 0.8), closed, atol=1e-9)
    with pytest.raises(ValueError, match="only used for the fits on folds"):
        model.conformalize(X, y, sample_weight=weights)


def test_quantiles_are_corrected():
    model = KernelMachineRegressor("quantile", quantile=[0.9, 0.5, 0.1], kernel="rbf", alpha=0.1)
    model.fit(X[:20], y[:20]).conformalize(X[20:], y[20:])
    low, high = np.sort(model.predict(X[20:]), axis=1)[:, [0, 2]].T
    scores = np.maximum(low - y[20:], y[20:] - high)
    np.testing.assert_allclose(model.calibration_scores_, scores)
    radius = np.sort(scores)[math.ceil(0.9 * 21) - 1]
    quantiles = np.sort(model.predict(Z), axis=1)[:, [0, 2]]
    np.testing.assert_allclose(model.predict_interval(Z), quantiles + np.array([-radius, radius]))
    wide = KernelMachineRegressor("quantile", quantile=[0.01, 0.99], kernel="rbf").fit(X, y)
    assert np.all(np.diff(wide.conformalize(X, y).predict_interval(Z, 0.1)) >= 0)


# ------------------------------------------------------------------------- prediction sets

CLASSIFIERS = [
    SVC(),
    SVC(decision_function_shape="ovo"),
    KernelLogisticRegression(kernel="rbf"),
    KernelMachineClassifier("squared_hinge", kernel="rbf"),
    KernelFisherDiscriminant(kernel="rbf"),
    GaussianProcessClassifier(optimizer=None),
]


@pytest.mark.parametrize("model", CLASSIFIERS, ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("classes", [labels, labels > 0], ids=["3", "2"])
def test_prediction_sets(model, classes):
    model = clone(model).fit(X[:25], classes[:25])
    with pytest.raises(ValueError, match="prediction sets need scores"):
        model.predict_set(Z)
    model.conformalize(X[25:], classes[25:])
    small, large = model.predict_set(Z, 0.5), model.predict_set(Z, 0.9)
    assert small.dtype == bool and small.shape == (7, len(np.unique(classes)))
    assert np.all(small <= large)  # sets grow with the coverage
    if hasattr(model, "predict_proba"):
        p = model.predict_proba(X[25:])[
            np.arange(15), np.searchsorted(model.classes_, classes[25:])
        ]
        threshold = np.sort(1.0 - p)[math.ceil(0.5 * 16) - 1]
        np.testing.assert_array_equal(small, 1.0 - model.predict_proba(Z) <= threshold)
    assert model.conformalize(X, classes, cv=4).predict_set(Z).shape == small.shape


@pytest.mark.parametrize("cv", [None, 5])
def test_coverage_of_sets(cv):
    generator, coverages = np.random.default_rng(2), []
    for _ in range(30):
        P = generator.normal(size=(300, 2))
        t = np.digitize(P[:, 0] + 0.7 * generator.normal(size=300), [-0.5, 0.5])
        model = KernelFisherDiscriminant(kernel="rbf", alpha=1.0)
        if cv is None:
            model.fit(P[:60], t[:60]).conformalize(P[60:120], t[60:120])
        else:
            model.fit(P[:120], t[:120]).conformalize(P[:120], t[:120], cv=cv)
        sets = model.predict_set(P[120:], 0.8)
        coverages.append(sets[np.arange(180), t[120:]].mean())
    error = np.std(coverages) / np.sqrt(30)
    assert 0.8 - 2.5 * error < np.mean(coverages) < 0.86


def test_too_few_points_give_all_classes():
    model = SVC().fit(X, labels).conformalize(X[:8], labels[:8])
    with pytest.warns(UserWarning, match="needs at least 9"):
        assert model.predict_set(Z).all()


def test_a_class_that_a_fold_lacks():
    rare = np.where(np.arange(40) == 0, "b", np.where(y > 0.3, "c", "a"))
    model = KernelFisherDiscriminant(kernel="rbf", alpha=1.0).fit(X, rare)
    sets = model.conformalize(X, rare, cv=KFold(4)).predict_set(Z, 0.8)
    assert sets.shape == (7, 3)
    assert np.isinf(model.calibration_scores_[0])


# ------------------------------------------------------------------------- errors


@pytest.mark.parametrize("coverage", [0, 1, 90, -0.1, np.nan])
def test_coverage_is_a_probability(coverage):
    model = KernelRidge(0.1, kernel=RBF(1.0)).fit(X, y)
    with pytest.raises(ValueError, match="coverage must be between 0 and 1"):
        model.predict_interval(Z, coverage)
    with pytest.raises(ValueError, match="coverage must be between 0 and 1"):
        SVC().fit(X, labels).conformalize(X, labels).predict_set(Z, coverage)


@pytest.mark.parametrize("coverage", ["0.9", None, True, [0.9]])
def test_coverage_is_a_number(coverage):
    with pytest.raises(TypeError, match="coverage must be a number"):
        KernelRidge(0.1, kernel=RBF(1.0)).fit(X, y).predict_interval(Z, coverage)


def test_errors():
    model = KernelRidge(0.1, kernel=RBF(1.0))
    with pytest.raises(NotFittedError):
        model.predict_interval(Z)
    with pytest.raises(NotFittedError):
        GaussianProcessRegressor().predict_interval(Z)
    with pytest.raises(NotFittedError):
        SVC().conformalize(X, labels)
    model.fit(X, y)
    with pytest.raises(ValueError, match="NaN"):
        model.predict_interval(np.where(np.arange(2) > 0, Z, np.nan))
    with pytest.raises(ValueError, match="y contains NaN"):
        model.conformalize(X, np.where(np.arange(40) > 0, y, np.nan))
    with pytest.raises(ValueError, match="X has 40 points, but y has 39"):
        model.conformalize(X, y[1:])
    with pytest.raises(ValueError, match="y has shape"):
        model.conformalize(X, Y)
    with pytest.raises(ValueError, match=r"labels from .* but contains"):
        SVC().fit(X, labels).conformalize(X, labels + 1)
    with pytest.raises(ValueError, match="in no test fold"):
        model.conformalize(X, y, cv=TimeSeriesSplit(3))
    for smaller in (compress(model, 5), to_primal(KernelRidge(0.1).fit(X, y))):
        with pytest.raises(ValueError, match="not available"):
            smaller.predict_interval(Z)
    assert not hasattr(compress(model.conformalize(X, y), 5), "calibration_scores_")


def test_solvers_without_a_factorisation():
    krill = KernelRidge(0.1, kernel=RBF(1.0), solver="krill", rank=8).fit(X, y)
    with pytest.raises(ValueError, match="solver='krill' does not compute"):
        krill.predict_interval(Z)
    process = GaussianProcessRegressor(
        1.0 * RBF() + White(0.1), optimizer=None, solver="cg", rank=8
    ).fit(X, y)
    with pytest.raises(ValueError, match="solver='cg' does not compute"):
        process.predict_interval(Z)
    iterative = KernelRidge(0.1, kernel=RBF(1.0), solver="cg").fit(X, y)
    direct = KernelRidge(0.1, kernel=RBF(1.0)).fit(X, y)
    np.testing.assert_allclose(
        iterative.predict_interval(Z), direct.predict_interval(Z), atol=1e-10
    )


def test_a_singular_system():
    model = KernelRidge(0.0, kernel=Linear(), solver="lstsq").fit(X, y)
    with pytest.raises(NotPositiveDefiniteError, match="closed form need a positive definite"):
        model.predict_interval(Z)


def test_memory_budget():
    model = KernelRidge(0.1, kernel=RBF(1.0), solver="cg").fit(X, y)
    model.set_params(max_memory=100)
    model._ridge.max_memory = 100
    with pytest.raises(MemoryBudgetError, match="solver='nystroem', or `conformalize`"):
        model.predict_interval(Z)
