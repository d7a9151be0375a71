"""Accelerated models: identical classes, bounds on rounding errors, interface of the model."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from data_folder import DATA
from sklearn.base import clone, is_classifier

import mercer
from mercer import SVC, SVR, KernelRidge, NuSVC, OneClassSVM, accelerate
from mercer.estimators._accelerate import certain_predictions, distance_from_points
from mercer.expansion import (
    Expansion,
    GreedyProjection,
    add_products,
    is_binary,
    make_evaluators,
    value_errors,
)
from mercer.kernels import RBF, Distance, Laplacian, Linear, Spectrum, White

rng = np.random.default_rng(0)


def clusters(n, d, q, spread=1.0, seed=0):
    """Return overlapping clusters with labels."""
    r = np.random.default_rng(seed)
    y = r.integers(q, size=n)
    centres = np.random.default_rng(7).standard_normal((q, d))
    return spread * centres[y] + r.standard_normal((n, d)), y


def boundary(model, A, B, steps=60):
    """Return pairs of points on both sides of decision boundaries, as close as floats allow."""
    a, b = A.copy(), B.copy()
    label = model.predict(a)
    use = label != model.predict(b)
    a, b, label = a[use], b[use], label[use]
    for _ in range(steps):
        middle = 0.5 * (a + b)
        same = model.predict(middle) == label
        a[same], b[~same] = middle[same], middle[~same]
    return np.concatenate([a, b])


MODELS = {
    "SVC, 2 classes": (SVC(C=10.0), 6, 2),
    "SVC, 5 classes": (SVC(C=10.0), 6, 5),
    "SVC, break_ties": (SVC(C=10.0, break_ties=True), 12, 4),
    "SVC, Laplacian": (SVC(C=10.0, kernel=Laplacian(3.0)), 4, 4),
    "SVC, scaled": (SVC(C=1.0, kernel=2.5 * RBF(np.arange(1.0, 5.0))), 4, 3),
    "SVC, poly": (SVC(C=10.0, kernel="poly", degree=2), 6, 3),
    "NuSVC": (NuSVC(nu=0.3), 6, 3),
    "logistic": (mercer.KernelLogisticRegression(C=10.0, kernel="rbf"), 6, 3),
    "logistic, 2 classes": (mercer.KernelLogisticRegression(C=10.0, kernel="rbf"), 6, 2),
    "OneClassSVM": (OneClassSVM(nu=0.3), 3, 2),
}


@pytest.mark.parametrize("name", MODELS)
def test_identical_classes(name):
    model, d, q = MODELS[name]
    X, y = clusters(600, d, q)
    model = clone(model).fit(X, y)
    fast = accelerate(model, X)
    Q = np.concatenate([clusters(2000, d, q, seed=1)[0], 1e3 * X[:20], X[:20]])
    wanted = model.predict(Q)
    result = fast.predict(Q)
    assert result.dtype == wanted.dtype
    np.testing.assert_array_equal(result, wanted)
    assert sum(fast.statistics_.values()) == len(Q)
    near = boundary(model, Q[:200], Q[200:400])
    assert len(near) > 20
    np.testing.assert_array_equal(fast.predict(near), model.predict(near))
    for rows in (Q[:1], Q[:3]):
        np.testing.assert_array_equal(fast.predict(rows), model.predict(rows))


def test_most_predictions_do_not_need_the_model():
    X, y = clusters(2000, 8, 6, spread=1.5)
    fast = accelerate(SVC(C=10.0).fit(X, y), X)
    fast.predict(clusters(3000, 8, 6, spread=1.5, seed=1)[0])
    assert fast.statistics_["candidate 1"] > 0.7 * 3000
    assert fast.statistics_["model"] < 0.1 * 3000
    assert "observed" in fast.plan()
    one = accelerate(OneClassSVM(nu=0.2).fit(X), X)
    one.predict(clusters(3000, 8, 6, spread=1.5, seed=1)[0])
    assert len(one.ends) > 1
    assert one.statistics_["model"] < 0.01 * 3000


@pytest.mark.parametrize("labels", [np.array(["a", "bb", "ccc"]), np.array([-3, 7, 100])])
def test_labels_of_any_type(labels):
    X, y = clusters(300, 3, 3)
    model = SVC().fit(X, labels[y])
    wanted = model.predict(X)
    result = accelerate(model).predict(X)
    assert result.dtype == wanted.dtype
    np.testing.assert_array_equal(result, wanted)


def test_points_that_are_not_dense_arrays():
    X, y = clusters(400, 12, 3)
    Q = clusters(500, 12, 3, seed=1)[0]
    sparse = SVC(C=5.0).fit(sp.csr_array(np.maximum(X, 0)), y)
    Qs = sp.csr_array(np.maximum(Q, 0))
    np.testing.assert_array_equal(accelerate(sparse).predict(Qs), sparse.predict(Qs))
    names = [f"c{i}" for i in range(12)]
    frame = SVC(C=5.0).fit(pd.DataFrame(X, columns=names), y)
    Qf = pd.DataFrame(Q, columns=names)
    np.testing.assert_array_equal(accelerate(frame).predict(Qf), frame.predict(Qf))
    words = ["".join(rng.choice(list("ACGT"), size=12)) for _ in range(150)]
    y = np.array([w.count("A") % 3 for w in words])
    strings = SVC(C=10.0, kernel=Spectrum(2)).fit(words, y)
    np.testing.assert_array_equal(accelerate(strings).predict(words), strings.predict(words))


def test_binary_columns():
    X = (rng.random((800, 130)) < 0.2).astype(float)
    y = (X[:, :5].sum(axis=1) + X[:, 10] * 2 > 1).astype(int)
    model = SVC(C=1.0, gamma=0.02).fit(X, y)
    fast = accelerate(model)
    assert len(fast._evaluators) == 2
    Q = (rng.random((2000, 130)) < 0.2).astype(float)
    np.testing.assert_array_equal(fast.predict(Q), model.predict(Q))
    Q[0, 0] = 0.5  # the other evaluator
    np.testing.assert_array_equal(fast.predict(Q), model.predict(Q))
    bits, single = fast._evaluators
    for evaluator, atol in ((bits, 1e-14), (single, 1e-5)):
        rows = evaluator.rows(Q[1:])
        scratch = np.empty(63, np.float64 if evaluator is bits else np.float32)
        tile = evaluator.tile(rows.values[:9], evaluator.columns(np.arange(7)), scratch)
        Z = model.support_vectors_[:7]
        np.testing.assert_allclose(tile, model.kernel_(Q[1:10], Z), rtol=atol)
    assert is_binary(sp.csr_array(X)) and not is_binary(Q)


@pytest.mark.parametrize("d", [1, 3, 16, 200])
@pytest.mark.parametrize("in_double", [True, False])
def test_bounds_on_rounding_errors(d, in_double):
    n_functions = 5
    Z, X = rng.standard_normal((700, d)), 3.0 * rng.standard_normal((300, d))
    Z[:5] *= 30.0  # outliers
    X[:100] = Z[rng.integers(700, size=100)] + 1e-3 * rng.standard_normal((100, d))
    kernel = 3.0 * RBF(0.7 * np.sqrt(d))
    V = rng.standard_normal((700, n_functions))
    (evaluator,) = make_evaluators(kernel, Z)
    rows, out = evaluator.rows(X), np.zeros((300, n_functions))
    for _ in add_products(evaluator, rows, np.arange(700), 3.0 * V, out, in_double):
        pass
    differences = np.abs(out - kernel(X, Z) @ V)
    sums = 3.0 * np.abs(V).sum(axis=0)
    bound = value_errors(evaluator, rows, in_double, sums)
    assert np.all(differences <= bound)
    weighted = 3.0 * kernel(X, Z) @ (np.abs(V) * evaluator.weights[:, None]) / 3.0
    tighter = value_errors(evaluator, rows, in_double, sums, weighted)
    assert np.all(differences <= tighter)
    assert np.all(tighter <= bound)
    assert np.median(bound / sums) < 1e-3


def test_projection():
    Z, X = rng.standard_normal((200, 3)), rng.standard_normal((50, 3))
    f = Expansion(1.7 * RBF(1.0) + White(0.1), Z, rng.standard_normal((200, 2)))
    f = Expansion(1.7 * RBF(1.0), Z, f.coefficients)
    steps = GreedyProjection(f, X)
    previous = f.norm()
    for m in (10, 40, 80):
        assert steps.extend(m)
        B, residual = steps.projection()
        g = Expansion(f.kernel, Z[steps.pivots], B)
        np.testing.assert_allclose(residual, (f - g).norm(), rtol=1e-5)
        np.testing.assert_allclose(
            (f - g).inner(Expansion.sections(f.kernel, g.points)), 0, atol=1e-8
        )
        assert np.all(residual < previous)
        previous = residual
        np.testing.assert_allclose(steps.columns @ B, g(X))
        bound = residual * distance_from_points(
            np.full(50, 1.7), steps.columns.max(axis=1), np.full(200, np.sqrt(1.7))
        )
        assert np.all(np.abs(f(X) - g(X)) <= bound)
        assert np.all(bound <= np.sqrt(1.7) * residual)


def test_projection_of_few_different_points():
    Z = np.repeat(rng.standard_normal((5, 2)), 40, axis=0)
    steps = GreedyProjection(Expansion(RBF(), Z, rng.standard_normal(200)), Z)
    assert not steps.extend(6)


def test_certain_predictions():
    values, error = np.array([[1.0], [-0.1], [0.0]]), np.array([[0.5], [0.05], [0.0]])
    certain, best = certain_predictions(values, error, "sign", None)
    assert certain.tolist() == [True, True, False]
    assert best.tolist() == [1, 0, 0]
    values = np.array([[1.0, 2.0, 0.0], [1.0, 1.2, 0.0]])
    certain, best = certain_predictions(values, np.full((2, 3), 0.2), "largest", None)
    assert certain.tolist() == [True, False]
    assert best.tolist() == [1, 1]
    assert certain_predictions(values, np.full((2, 3), 0.2), "value", 0.2)[0].tolist() == [
        True,
        True,
    ]


REGRESSORS = {
    "SVR": SVR(C=1.0, gamma=0.3),
    "ridge": KernelRidge(alpha=1.0, kernel="rbf", gamma=0.3),
    "ridge, 2 targets": KernelRidge(alpha=1.0, kernel="rbf", gamma=0.3),
    "GP": mercer.GaussianProcessRegressor(
        1.0 * RBF(1.0) + White(0.1), optimizer=None, normalize_y=True
    ),
}


@pytest.mark.parametrize("name", REGRESSORS)
@pytest.mark.parametrize("tolerance", [None, 0.1])
def test_regression(name, tolerance):
    X = rng.standard_normal((900, 2))
    y = np.sin(X[:, 0]) + 5.0 + 0.3 * rng.standard_normal(900)
    y = np.column_stack([y, X[:, 1]]) if "targets" in name else y
    model = clone(REGRESSORS[name]).fit(X, y)
    fast = accelerate(model, X, tolerance=tolerance)
    Q = rng.standard_normal((500, 2))
    result, wanted = fast.predict(Q), model.predict(Q)
    assert result.shape == wanted.shape
    assert np.abs(result - wanted).max() <= fast.tolerance
    assert fast.tolerance == pytest.approx(tolerance or 0.01 * wanted.std(axis=0).min(), rel=0.5)
    assert fast.statistics_.get("model", 0) < 500
    if name == "GP":
        mean, std = fast.predict(Q, return_std=True)
        np.testing.assert_array_equal(mean, wanted)
        assert std.shape == (500,)
    assert fast.score(Q, wanted) > 0.98


def test_interface():
    X, y = clusters(500, 4, 3)
    model = SVC(C=3.0).fit(X, y)
    fast = accelerate(model, X)
    assert is_classifier(fast)
    assert clone(fast) is fast
    np.testing.assert_array_equal(fast.classes_, model.classes_)
    np.testing.assert_array_equal(fast.decision_function(X), model.decision_function(X))
    assert fast.score(X, y) == model.score(X, y)
    assert fast.model.dual_coef_ is model.dual_coef_  # a shallow copy
    with pytest.raises(AttributeError):
        fast.predict_proba(X)
    with pytest.raises(TypeError, match=r"cannot be fitted.*call accelerate"):
        fast.fit(X, y)
    with pytest.raises(ValueError, match="4 features"):
        fast.predict(X[:, :2])
    assert fast.predict(X[:1]).shape == (1,)


def test_deterministic(tmp_path):
    X, y = clusters(600, 4, 4)
    model = SVC(C=3.0).fit(X, y)
    first, second = (accelerate(model, random_state=s) for s in (None, 0))
    np.testing.assert_array_equal(first.order, second.order)
    np.testing.assert_array_equal(first.coefficients[0], second.coefficients[0])
    first.predict(X)
    model.n_jobs = 1
    second.predict(X)
    assert first.statistics_ == second.statistics_


@pytest.mark.parametrize("model", [SVC(C=3.0), OneClassSVM(nu=0.3), SVR(gamma=0.3)], ids=str)
def test_pickle_and_file(model, tmp_path):
    X, y = clusters(500, 4, 4)
    fast = accelerate(clone(model).fit(X, y), X)
    wanted = fast.predict(X)
    mercer.save(fast, tmp_path / "fast.mercer")
    for again in (pickle.loads(pickle.dumps(fast)), mercer.load(tmp_path / "fast.mercer")):
        assert again.statistics_ == fast.statistics_
        np.testing.assert_array_equal(again.predict(X), wanted)
        assert (
            again.plan().splitlines()[1].split(",")[0] == fast.plan().splitlines()[1].split(",")[0]
        )
        np.testing.assert_array_equal(again.ends, fast.ends)


def test_small_memory_budget():
    X, y = clusters(500, 4, 3)
    model = SVC().fit(X, y)
    fast = accelerate(model, X, max_memory="20 MiB")
    assert fast._chunk_rows(X) < 2**15
    np.testing.assert_array_equal(fast.predict(np.tile(X, (60, 1))), np.tile(model.predict(X), 60))
    with pytest.raises(mercer.MemoryBudgetError, match="calibration"):
        accelerate(model, X, max_memory="1 MiB")


def test_verbose(capsys):
    X, y = clusters(300, 2, 3)
    accelerate(SVC().fit(X, y), verbose=1)
    out = capsys.readouterr().out
    assert "[accelerate] SVC, " in out and "model: expected " in out


def test_no_gain():
    """A level is only used if it is cheaper than the model."""
    X = rng.standard_normal((40, 2))
    model = KernelRidge(kernel=Laplacian(1.0)).fit(X, X[:, 0])
    fast = accelerate(model, tolerance=1e-9)
    assert fast.level_names == ["model"]
    np.testing.assert_array_equal(fast.predict(X), model.predict(X))


X, Y = clusters(60, 3, 2)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (mercer.KernelPCA(2).fit(X), "supports support vector machines"),
        (SVC(kernel="precomputed").fit(X @ X.T, Y), "kernel is precomputed"),
        (mercer.to_primal(KernelRidge(kernel="linear").fit(X, Y)), "already a linear model"),
        (SVC(kernel=Distance()).fit(X, Y), "known to be a Mercer kernel"),
        (42, "got int"),
    ],
    ids=["KernelPCA", "precomputed", "primal", "distance", "int"],
)
def test_models_that_are_not_supported(model, message):
    with pytest.raises(TypeError, match=message):
        accelerate(model)


def test_errors():
    with pytest.raises(ValueError, match="not fitted"):
        accelerate(SVC())
    model = KernelRidge(kernel=Linear()).fit(X, Y)
    for tolerance in (0.0, -1.0, np.nan, [1.0]):
        with pytest.raises(ValueError, match="tolerance must be a positive number"):
            accelerate(model, tolerance=tolerance)


@pytest.mark.data
def test_digits():
    if not DATA.exists():
        pytest.skip("no external data")
    data = np.load(DATA / "usps" / "usps.npz", allow_pickle=False)
    X, Q = data["X_train"][:3000] / 1000.0, data["X_test"] / 1000.0
    model = SVC(C=10.0).fit(X, data["y_train"][:3000])
    fast = accelerate(model, X)
    np.testing.assert_array_equal(fast.predict(Q), model.predict(Q))
    assert fast.statistics_["model"] < 0.03 * len(Q)


def test_accelerated_model_is_unaffected_by_a_second_fit_of_the_model() -> None:
    X = np.random.default_rng(0).standard_normal((300, 2))
    model = OneClassSVM(nu=0.5, gamma=1.0).fit(X)
    fast, expected = accelerate(model, X), model.predict(X)
    model.fit(X + 5.0)
    assert np.array_equal(fast.predict(X), expected)
    assert not hasattr(fast, "fit_predict")


@pytest.mark.parametrize("target", [0.0, 3.0])
def test_constant_regression_has_a_default_tolerance(target: float) -> None:
    X = np.random.default_rng(0).standard_normal((50, 2))
    model = SVR().fit(X, np.full(50, target))
    fast = accelerate(model, X)
    assert fast.tolerance == pytest.approx(0.01 * (target or 1.0))
    assert fast.level_names == ["model"]
    np.testing.assert_allclose(fast.predict(X), model.predict(X), atol=fast.tolerance)


def test_small_model_of_several_classes_is_not_accelerated() -> None:
    X = np.random.default_rng(0).standard_normal((20, 3))
    model = SVC().fit(X, np.arange(20) % 5)
    assert accelerate(model).level_names == ["model"]
