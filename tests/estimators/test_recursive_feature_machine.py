"""Recursive feature machines: planted structure, leave-one-out by refits, tables, bad input."""

import numpy as np
import pandas as pd
import pytest
from data_folder import DATA
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.metrics import log_loss
from sklearn.svm import SVC

from mercer import Expansion, KernelRidge, MemoryBudgetError, RFMClassifier, RFMRegressor
from mercer.blocks import Blocks
from mercer.gram import gram
from mercer.kernels import RBF, Laplacian, LinearMap, Matern
from mercer.models.kernel_learning import (
    ColumnScaling,
    MetricFamily,
    average_gradient_outer_product,
    best_ridge,
    calibrate,
)
from mercer.solvers import ExactPath, Status

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 4))
Y = np.sin(2.0 * X[:, 0]) + 0.1 * rng.normal(size=60)
# One kernel and few rounds, where the search does not matter.
QUICK = {"kernel": Matern(nu=1.5), "metric": "diagonal", "max_rounds": 1, "widths": [1.0]}
TABLE = pd.DataFrame(X, columns=list("abcd")).assign(
    city=np.array(["Rome", "Oslo", "Bern"])[np.arange(60) % 3], flag=pd.Categorical(X[:, 1] > 0)
)
Y_TABLE = Y + 2.0 * (TABLE.city == "Rome")


def squared_error(model, X, y):
    return np.mean(np.square(model.predict(X) - y))


# ---------------------------------------------------------------------- planted structure


def planted_columns(X):
    return 2.0 * np.sin(2.0 * X[:, 3]) + X[:, 17] ** 2


def test_two_of_fifty_columns():
    train, test = rng.normal(size=(300, 50)), rng.normal(size=(500, 50))
    y = planted_columns(train)
    model = RFMRegressor().fit(train, y)
    isotropic = RFMRegressor(max_rounds=0).fit(train, y)
    truth = planted_columns(test)
    assert 5.0 * squared_error(model, test, truth) < squared_error(isotropic, test, truth)
    importances = model.feature_importances_
    assert importances.sum() == pytest.approx(1.0)
    assert set(np.argsort(-importances)[:2]) == {3, 17}
    assert importances[[3, 17]].sum() > 0.98


@pytest.mark.long
def test_one_direction_of_thirty():
    direction = rng.normal(size=30)
    train, test = rng.normal(size=(300, 30)), rng.normal(size=(500, 30))
    train[:, 0] *= 100.0  # the columns are standardised
    test[:, 0] *= 100.0
    direction[0] /= 100.0

    def truth(X):
        t = X @ direction / 5.0
        return np.tanh(2.0 * t) + 0.5 * t**2

    model = RFMRegressor().fit(train, truth(train))
    isotropic = RFMRegressor(max_rounds=0).fit(train, truth(train))
    ratio = squared_error(isotropic, test, truth(test)) / squared_error(model, test, truth(test))
    assert ratio > 5.0
    found = model.directions_[0] / model.scale_
    cosine = abs(found @ direction) / np.linalg.norm(found) / np.linalg.norm(direction)
    assert np.degrees(np.arccos(min(cosine, 1.0))) < 5.0


def test_classes_that_depend_on_two_of_twelve_columns():
    train, test = rng.normal(size=(250, 12)), rng.normal(size=(500, 12))
    y, truth = (np.where(Z[:, 4] * Z[:, 9] > 0, "same", "different") for Z in (train, test))
    model = RFMClassifier().fit(train, y)
    assert set(np.argsort(-model.feature_importances_)[:2]) == {4, 9}
    assert model.score(test, truth) > SVC().fit(train, y).score(test, truth) + 0.1
    assert model.score(test, truth) > 0.87
    assert log_loss(truth, model.predict_proba(test)) < 0.35


# ---------------------------------------------------------------------- parts


@pytest.mark.parametrize("kernel", [RBF(1.5), Laplacian(2.0), Matern(1.3, nu=0.5)], ids=str)
def test_the_outer_product_is_that_of_differences(kernel):
    f = Expansion(kernel, X[:20], rng.normal(size=(20, 2)))
    new, weights, h = X[20:30], rng.uniform(0.5, 2.0, 10), 1e-6
    steps = h * np.eye(4)
    G = np.stack([(f(new + e) - f(new - e)) / (2 * h) for e in steps], axis=2)  # (n, 2, 4)
    want = np.einsum("i,iqc,iqd->cd", weights / weights.sum(), G, G)
    got = average_gradient_outer_product(f, new, weights)
    np.testing.assert_allclose(got, want, atol=1e-6 * np.abs(want).max())


def test_the_gradient_of_a_kink_is_zero_at_coincident_points():
    f = Expansion(Matern(nu=0.5), X[:1], np.ones((1, 1)))
    assert not average_gradient_outer_product(f, X[:1]).any()


def test_transform_of_a_metric():
    A = rng.normal(size=(4, 4))
    M = A @ A.T
    T = MetricFamily(RBF(), diagonal=False).transform(M, 1.0)
    np.testing.assert_allclose(T @ T.T, M / np.linalg.eigvalsh(M)[-1], atol=1e-12)
    low = MetricFamily(RBF(), diagonal=False, rank=2).transform(M, 0.5)
    assert low.shape == (4, 2)
    np.testing.assert_allclose(low.T @ low, np.diag(np.diag(low.T @ low)), atol=1e-12)
    D = MetricFamily(RBF(), diagonal=True).transform(np.diag([4.0, 0.0, 1.0]), 0.5)
    np.testing.assert_allclose(D, [[1.0, 0.0], [0.0, 0.0], [0.0, np.sqrt(0.5)]])


def test_columns_of_a_group_share_a_scale():
    Z = np.array([[1.0, 0.0, 3.0], [0.0, 1.0, 5.0], [0.0, 1.0, 7.0], [0.0, 1.0, 9.0]])
    scaling = ColumnScaling.of(Z, groups=np.array([0, 0, 1]))
    np.testing.assert_allclose(scaling.scale, [np.sqrt(6 / 16)] * 2 + [np.sqrt(5.0)])


def test_a_weight_counts_as_copies_in_leave_one_out_errors():
    weights = np.array([1.0, 3.0, 2.0, 1.0, 1.0, 4.0] * 3)
    copies = np.repeat(np.arange(18), weights.astype(int))
    Z, y = X[:18], Y[:18, None]

    def fit(rows, w):
        path = ExactPath(gram(RBF(), Z[rows]), y[rows], w, intercept=True)
        return best_ridge(path, y[rows], w, copies=w)

    weighted, repeated = fit(np.arange(18), weights), fit(copies, None)
    assert weighted.alpha == repeated.alpha
    assert weighted.score == pytest.approx(repeated.score, rel=1e-6)
    np.testing.assert_allclose(weighted.errors[copies], repeated.errors, rtol=1e-5)


def test_leave_one_out_predictions_are_those_of_refits():
    model = RFMRegressor(**QUICK).fit(X, Y)
    alpha = model.alpha_
    for i in range(0, 60, 7):
        rest = np.delete(np.arange(60), i)
        refit = KernelRidge(alpha, kernel=model.kernel_, fit_intercept=True).fit(X[rest], Y[rest])
        assert model.leave_one_out_[i] == pytest.approx(refit.predict(X[[i]])[0], rel=1e-8)


def test_calibration_is_the_maximum_likelihood():
    values, labels = rng.normal(size=(500, 1)), rng.integers(2, size=500)
    values += labels[:, None]
    a, b = calibrate(values, labels, np.ones(500))
    z = a * values[:, 0] + b
    p = 1.0 / (1.0 + np.exp(-z))
    counts = np.bincount(labels)
    targets = np.where(labels == 1, (counts[1] + 1) / (counts[1] + 2), 1 / (counts[0] + 2))
    assert abs(np.sum(p - targets)) < 0.01
    assert abs(np.sum((p - targets) * values[:, 0])) < 0.01


# ---------------------------------------------------------------------- the estimators


def test_the_kernel_contains_the_metric():
    model = RFMRegressor(kernel="Matern(nu=0.5)", metric=2, combine=False, max_rounds=2).fit(X, Y)
    assert isinstance(model.kernel_.kernel, LinearMap)
    assert model.kernel_.kernel.A.shape == (4, 2)
    assert model.kernel_.properties.proves(0, 4)
    np.testing.assert_allclose(model.predict(X), model.expansion_(X)[:, 0] + model.intercept_)
    rounds = {(entry["kernel"], entry["round"]) for entry in model.path_}
    assert ("Matern(nu=0.5), rank 2", 1) in rounds
    assert model.report_.status is Status.DIRECT
    assert "leave-one-out error" in model.report_.certificate


def test_outputs_of_different_scales_have_the_same_influence():
    both = RFMRegressor(**QUICK).fit(X, np.column_stack([Y, 1e6 * X[:, 1] ** 2]))
    assert both.predict(X).shape == both.leave_one_out_.shape == (60, 2)
    assert min(both.feature_importances_[:2]) > 0.2
    scaled = RFMRegressor(**QUICK).fit(X, np.column_stack([Y, X[:, 1] ** 2]))
    np.testing.assert_allclose(both.metric_, scaled.metric_, rtol=1e-6, atol=1e-9)


def test_columns_in_other_units_give_the_same_predictions():
    model = RFMRegressor(**QUICK).fit(X, Y)
    other = RFMRegressor(**QUICK).fit(X * [1e3, 1e-3, 1.0, 7.0] + 1e5, 10.0 * Y)
    moved = other.predict(X * [1e3, 1e-3, 1.0, 7.0] + 1e5)
    np.testing.assert_allclose(moved, 10.0 * model.predict(X), atol=1e-4)


@pytest.mark.long
def test_search_on_a_sample_and_landmarks():
    Z = rng.normal(size=(900, 8))
    y = np.sin(2.0 * Z[:, 2]) + Z[:, 5]
    exact = RFMRegressor(search_points=200, kernel=Matern(nu=1.5)).fit(Z, y)
    landmarks = RFMRegressor(
        search_points=200, kernel=Matern(nu=1.5), solver="nystroem", rank=150
    ).fit(Z, y)
    for model in (exact, landmarks):
        assert model.feature_importances_[[2, 5]].sum() > 0.98
        assert model.score(Z, y) > 0.98
    assert len(landmarks.X_fit_) == 150
    assert landmarks.report_.status is Status.APPROXIMATE
    blocks = RFMRegressor(
        search_points=200, kernel=Matern(nu=1.5), solver="nystroem", rank=150
    ).fit(Blocks.of(Z, rows=250), y)
    assert blocks.score(Z, y) > 0.98
    assert np.std(blocks.leave_one_out_ - y) < 0.2


def test_three_classes():
    data, target = load_wine(return_X_y=True)
    model = RFMClassifier(**QUICK, class_weight="balanced").fit(data[::2], target[::2])
    P = model.predict_proba(data[1::2])
    assert model.score(data[1::2], target[1::2]) > 0.94
    assert model.leave_one_out_.shape == (89, 3)
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    assert log_loss(target[1::2], P) < 0.3


# ---------------------------------------------------------------------- tables


def test_columns_of_categories():
    model = RFMRegressor().fit(TABLE, Y_TABLE)
    assert model.categories_ == [None, None, None, None, ["Bern", "Oslo", "Rome"], [False, True]]
    assert list(model.feature_names_in_) == list(TABLE.columns)
    assert model.n_features_in_ == len(model.feature_importances_) == 6
    assert set(np.argsort(-model.feature_importances_)[:2]) == {0, 4}
    assert model.metric_.shape == (9, 9)
    assert model.score(TABLE, Y_TABLE) > 0.95


def test_unseen_and_missing_categories():
    model = RFMRegressor(**QUICK).fit(TABLE, Y_TABLE)
    new = TABLE[:2].copy()
    new["city"] = ["Paris", None]
    zeros = np.hstack([new[list("abcd")], np.zeros((2, 3)), [[not f, f] for f in new["flag"]]])
    np.testing.assert_allclose(
        model.predict(new), model.expansion_(zeros)[:, 0] + model.intercept_, rtol=1e-12
    )
    with_missing = TABLE.copy()
    with_missing.loc[::4, "city"] = None
    learned = RFMRegressor(**QUICK).fit(with_missing, Y_TABLE)
    assert None in learned.categories_[4]


def test_errors_of_tables():
    model = RFMRegressor(**QUICK).fit(TABLE, Y_TABLE)
    missing = TABLE.copy()
    missing.loc[:2, "b"] = np.nan
    with pytest.raises(ValueError, match=r"NaN.*column 'b' \(3\) of the 60 rows.*SimpleImputer"):
        RFMRegressor().fit(missing, Y_TABLE)
    with pytest.raises(ValueError, match=r"column 'b' \(3\)"):
        model.predict(missing)
    with pytest.raises(TypeError, match="fitted to a data frame with columns of categories"):
        model.predict(X)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(TABLE.rename(columns={"city": "town"}))
    with pytest.raises(ValueError, match="X has 60 points, but y has 59"):
        RFMRegressor().fit(TABLE, Y_TABLE[:59])
    with pytest.raises(ValueError, match="infinity"):
        model.predict(TABLE.assign(a=np.inf))


# ---------------------------------------------------------------------- bad input


def test_a_constant_target():
    model = RFMRegressor().fit(X, np.full(60, 3.0))
    np.testing.assert_allclose(model.predict(X), 3.0)
    assert not model.feature_importances_.any()
    assert "the fitted function is constant" in model.report_.message


def test_one_row():
    with pytest.raises(ValueError, match=r"at least two points.*n_samples = 1"):
        RFMRegressor().fit(X[:1], Y[:1])


def test_more_columns_than_rows():
    Z = rng.normal(size=(30, 80))
    model = RFMRegressor(kernel=Matern(nu=1.5), max_rounds=2).fit(Z, Z[:, 0])
    assert model.feature_importances_.sum() == pytest.approx(1.0)
    assert model.feature_importances_.argmax() == 0


def test_identical_columns_share_their_importance():
    model = RFMRegressor().fit(np.column_stack([X, X[:, 0]]), Y)
    first, last = model.feature_importances_[[0, 4]]
    assert first == pytest.approx(last)
    assert first + last > 0.9


def test_identical_rows():
    model = RFMRegressor(**QUICK).fit(np.ones((20, 2)), np.arange(20.0))
    np.testing.assert_allclose(model.predict(np.ones((1, 2))), 9.5)


def test_missing_values():
    Z = X.copy()
    Z[:3, 1] = np.nan
    with pytest.raises(ValueError, match=r"NaN.*column 1 \(3\) of the 60 rows.*SimpleImputer"):
        RFMRegressor().fit(Z, Y)


@pytest.mark.parametrize("kernel", ["poly", "Linear()"])
def test_kernels_without_a_metric(kernel):
    with pytest.raises((TypeError, ValueError), match="needs a radial kernel"):
        RFMRegressor(kernel=kernel).fit(X, Y)


def test_the_laplacian_has_no_full_metric():
    with pytest.raises(ValueError, match="only a diagonal metric"):
        RFMRegressor(kernel=Laplacian(), metric="full").fit(X, Y)


def test_the_memory_budget():
    with pytest.raises(MemoryBudgetError, match="recursive feature machine of 60 points"):
        RFMRegressor(solver="exact", max_memory=50_000).fit(X, Y)
    Z = rng.normal(size=(5001, 1))
    with pytest.warns(UserWarning, match="50 landmarks, because n = 5001 points exceed"):
        RFMRegressor(**QUICK, search_points=100, rank=50).fit(Z, Z[:, 0])


# ---------------------------------------------------------------------- real data


def test_breast_cancer():
    data, target = load_breast_cancer(return_X_y=True)
    model = RFMClassifier(search_points=200).fit(data[::2], target[::2])
    assert model.score(data[1::2], target[1::2]) > 0.95


@pytest.mark.data
@pytest.mark.long
@pytest.mark.parametrize(("name", "limit"), [("concrete", 0.33), ("yacht", 0.18)])
def test_regression_tables(name, limit):
    table = np.loadtxt(DATA / f"regression/uci_datasets/{name}.csv.gz", delimiter=",")
    fold = np.load(DATA / f"regression/uci_datasets/{name}_fold.npz")["fold"] == 0
    train, test = table[~fold], table[fold]
    model = RFMRegressor().fit(train[:, :-1], train[:, -1])
    error = np.sqrt(squared_error(model, test[:, :-1], test[:, -1]))
    assert error < limit * test[:, -1].std()
