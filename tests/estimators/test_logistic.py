"""Kernel logistic regression against scikit-learn, brute force and known probabilities."""

import pickle
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from data_folder import DATA
from scipy.special import logit
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV, KFold, LeaveOneGroupOut, StratifiedKFold

from mercer import KernelLogisticRegression, KernelLogisticRegressionCV, MemoryBudgetError, compress
from mercer.kernels import RBF, Callable, Features, Linear, PolynomialBasis, Precomputed
from mercer.solvers import MAX_EXACT_POINTS, Status

RNG = np.random.default_rng(0)
X = RNG.standard_normal((120, 3))
SCORE = X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * RNG.standard_normal(120)
LABELS = {2: np.where(SCORE > 0, "yes", "no"), 4: np.digitize(SCORE, [-0.8, 0.0, 0.8])}
WEIGHTS = RNG.integers(0, 4, 120).astype(float)


def log_loss(model, X, y, w=None):
    """Return the objective C sum_i v_i log-loss_i + |f|^2 / 2, from public attributes."""
    p = model.predict_log_proba(X)[np.arange(len(y)), np.searchsorted(model.classes_, y)]
    w = np.ones(len(y)) if w is None else w
    norms = np.square(model.expansion_.norm()).sum()
    return -model.C * w @ p + 0.5 * norms


# ---------------------------------------------------------------------- against scikit-learn


@pytest.mark.parametrize("q", [2, 4])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("basis", [None, PolynomialBasis(degree=2)], ids=["linear", "features"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_logistic_regression_on_features(q, weighted, basis, fit_intercept):
    y, w = LABELS[q], WEIGHTS if weighted else None
    phi = (lambda Z: Z) if basis is None else (lambda Z: np.asarray(basis(Z)))
    kernel = Linear() if basis is None else Features(basis)
    options = {"C": 0.7, "fit_intercept": fit_intercept}
    # For two classes, scikit-learn has one w, for more a sum over classes: the same as here.
    theirs = LogisticRegression(**options, tol=1e-12, max_iter=10_000, solver="newton-cholesky")
    theirs.fit(phi(X), y, w)
    ours = KernelLogisticRegression(**options, kernel=kernel).fit(X, y, w)
    Z = RNG.standard_normal((50, 3))
    assert np.allclose(ours.predict_proba(Z), theirs.predict_proba(phi(Z)), atol=1e-6)
    assert np.allclose(ours.decision_function(Z), theirs.decision_function(phi(Z)), atol=1e-6)
    assert np.allclose(ours.intercept_, theirs.intercept_, atol=1e-6)
    assert np.array_equal(ours.predict(Z), theirs.predict(phi(Z)))
    assert ours.expansion_.norm() == pytest.approx(np.linalg.norm(theirs.coef_, axis=1), abs=1e-6)


@pytest.mark.parametrize("q", [2, 4])
def test_class_weight(q):
    y = LABELS[q]
    theirs = LogisticRegression(
        class_weight="balanced", tol=1e-12, max_iter=10_000, solver="newton-cholesky"
    )
    theirs.fit(X, y, WEIGHTS)
    ours = KernelLogisticRegression(kernel="linear", class_weight="balanced").fit(X, y, WEIGHTS)
    assert np.allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-6)
    given = dict(zip(np.unique(y), [1.0, 3.0, 0.5, 2.0], strict=False))
    by_class = KernelLogisticRegression(class_weight=given).fit(X, y)
    by_point = KernelLogisticRegression().fit(X, y, [given[label] for label in y])
    assert np.allclose(by_class.predict_proba(X), by_point.predict_proba(X), atol=1e-9)


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3, 1e6])
@pytest.mark.parametrize("q", [2, 4])
def test_stationary(q, C):
    """By the representer theorem, alpha_i = C v_i (y_i - p_i) are coefficients of the same f."""
    y, gamma = LABELS[q], 0.3
    model = KernelLogisticRegression(C, gamma=gamma).fit(X, y, WEIGHTS)
    P = model.predict_proba(X)
    gap = (y[:, None] == model.classes_) - P
    gap = gap[:, 1:] if q == 2 else gap
    f = RBF.from_gamma(gamma)(X) @ (C * WEIGHTS[:, None] * gap) + model.intercept_
    values = model.decision_function(X).reshape(len(X), -1)
    assert np.allclose(f, values, rtol=1e-4, atol=1e-4)
    assert np.abs(WEIGHTS @ gap).max() < 1e-8 * WEIGHTS.sum()  # the intercept is optimal
    assert model.n_iter_ <= 15
    certificate = model.report_.certificate
    assert certificate["objective"] == pytest.approx(log_loss(model, X, y, WEIGHTS), rel=1e-6)
    assert 0 <= certificate["gap"] <= 1e-8 * certificate["objective"]
    assert certificate["decrement"] ** 2 / 2 <= 1e-10 * certificate["objective"]


# ---------------------------------------------------------------------- solvers


@pytest.mark.parametrize("q", [2, 4])
def test_solvers_agree(q):
    y = LABELS[q]
    exact = KernelLogisticRegression(2.0, solver="newton").fit(X, y)
    auto = KernelLogisticRegression(2.0).fit(X, y)
    assert np.array_equal(auto.dual_coef_, exact.dual_coef_)
    assert exact.report_.status is Status.CONVERGED
    slow = KernelLogisticRegression(2.0, solver="gradient", tol=1e-11, max_iter=5000).fit(X, y)
    assert np.allclose(slow.decision_function(X), exact.decision_function(X), atol=1e-4)
    whole = KernelLogisticRegression(2.0, solver="nystroem", rank=120).fit(X, y)
    assert np.allclose(whole.decision_function(X), exact.decision_function(X), atol=1e-7)
    assert whole.report_.status is Status.APPROXIMATE
    some = KernelLogisticRegression(2.0, solver="nystroem", rank=40).fit(X, y)
    assert len(some.X_fit_) == 40
    # The best function on fewer points cannot be better.
    assert some.report_.certificate["objective"] >= exact.report_.certificate["objective"]
    assert some.report_.certificate["trace left"] > 0
    assert "Nyström on 40 landmarks" in some.report_.message
    again = clone(some).fit(X, y)
    assert np.array_equal(again.dual_coef_, some.dual_coef_)


def test_landmarks_given():
    y = LABELS[2]
    model = KernelLogisticRegression(solver="nystroem", landmarks=X[:30]).fit(X, y)
    assert {tuple(z) for z in model.X_fit_} == {tuple(z) for z in X[:30]}
    with pytest.raises(ValueError, match="landmarks have 2 columns, but X has 3"):
        KernelLogisticRegression(solver="nystroem", landmarks=X[:30, :2]).fit(X, y)
    with pytest.raises(ValueError, match=r"The 'landmarks' parameter .* Got 'nearest'"):
        KernelLogisticRegression(solver="nystroem", rank=9, landmarks="nearest").fit(X, y)


def test_auto_says_that_it_approximates(monkeypatch):
    said = r"120 points are too many for solver='auto' .*Nyström on \d+ landmarks, relative trace"
    with pytest.warns(UserWarning, match=said) as seen:
        small = KernelLogisticRegression(max_memory="300 kB").fit(X, LABELS[2])
    assert seen[0].filename == __file__
    assert small.report_.status is Status.APPROXIMATE and 20 < len(small.X_fit_) < 110
    assert "120 points are too many for solver='auto' to be exact" in small.report_.message
    monkeypatch.setitem(MAX_EXACT_POINTS, "newton", 100)
    with pytest.warns(UserWarning, match=said):
        many = KernelLogisticRegression(rank=50).fit(X, LABELS[2])
    assert many.report_.status is Status.APPROXIMATE and len(many.X_fit_) == 50
    with pytest.warns(UserWarning, match=said) as seen:
        KernelLogisticRegressionCV([1.0, 2.0], cv=2, rank=50).fit(X, LABELS[2])
    assert len(seen) == 1


def test_memory_is_refused_before_it_is_taken():
    y = LABELS[2]
    with pytest.raises(MemoryBudgetError, match=r"solver='newton' for 120 points \(solver='nys"):
        KernelLogisticRegression(solver="newton", max_memory="500 kB").fit(X, y)
    with pytest.raises(MemoryBudgetError, match="solver='gradient' for 120 points"):
        KernelLogisticRegression(solver="gradient", max_memory="300 kB").fit(X, y)
    with pytest.raises(MemoryBudgetError, match="for 120 points on rank=90 landmarks"):
        KernelLogisticRegression(solver="nystroem", rank=90, max_memory="200 kB").fit(X, y)
    KernelLogisticRegression(solver="newton", max_memory="620 kB").fit(X, y)
    with pytest.raises(MemoryBudgetError, match="solver='newton'"):  # the rows of a fold
        KernelLogisticRegressionCV(solver="newton", max_memory="620 kB").fit(X, y)


@pytest.mark.parametrize(
    ("options", "q"),
    [
        ({"solver": "newton"}, 2),
        ({"solver": "newton"}, 4),
        ({"solver": "gradient"}, 4),
        ({"solver": "nystroem", "rank": 150, "landmarks": "rpcholesky"}, 4),
    ],
    ids=str,
)
@pytest.mark.parametrize("cv", [False, True])
def test_memory_taken(options, q, cv):
    """NumPy does not allocate more bytes than declared."""
    n, rng = 500, np.random.default_rng(3)
    Z = rng.standard_normal((n, 3))
    y = np.digitize(Z[:, 0] + rng.standard_normal(n), [-0.8, 0.0, 0.8][:: 1 if q == 4 else 3])
    y = np.minimum(y, q - 1)
    options = {"gamma": 5.0, "tol": 1e-4, **options}
    model = KernelLogisticRegression(0.01, **options)
    if cv:
        model = KernelLogisticRegressionCV([0.01], cv=2, **options)
    declared = model._bytes(options["solver"], n, options.get("rank", n), q)
    tracemalloc.start()
    model.fit(Z, y)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert 0.4 * declared < peak < 1.05 * declared + 2**20


@pytest.mark.parametrize("q", [2, 4])
def test_warm_start(q):
    y = LABELS[q]
    model = KernelLogisticRegression(1e3, warm_start=True).fit(X, y)
    cold = model.decision_function(X)
    model.fit(X, y)
    assert model.n_iter_ == 1
    assert np.allclose(model.decision_function(X), cold, atol=1e-7)
    model.set_params(C=1.0).fit(X[:80], y[:80])
    direct = KernelLogisticRegression(1.0).fit(X[:80], y[:80])
    assert np.allclose(model.decision_function(X), direct.decision_function(X), atol=1e-7)
    other = np.where(y == y[0], "a", "b")
    model.fit(X[:, :2], other)  # the previous fit cannot be used as a start
    direct.fit(X[:, :2], other)
    assert np.allclose(model.predict_proba(X[:, :2]), direct.predict_proba(X[:, :2]), atol=1e-7)
    K = RBF()(X)
    given = KernelLogisticRegression(kernel="precomputed", warm_start=True).fit(K, y).fit(K, y)
    assert given.n_iter_ == 1


def test_path():
    y = LABELS[4]
    straight = KernelLogisticRegression(1e4).fit(X, y)
    path = KernelLogisticRegression(1e4, solver="path").fit(X, y)
    assert "a path of 6 shifts from 1.0e+01" in path.report_.message
    assert path.n_iter_ >= 6 and path.report_.status is Status.CONVERGED
    assert np.allclose(path.predict_proba(X), straight.predict_proba(X), atol=1e-5)


def test_no_wrong_minimum_is_called_exact():
    """For features of very different or large size, the result is right or there is a warning."""
    y = LABELS[2]
    model = KernelLogisticRegression(kernel=Linear()).fit(1e5 * X * [1.0, 1e-4, 1e-8], y)
    theirs = LogisticRegression(tol=1e-10, solver="newton-cholesky", max_iter=1000)
    Z = X * [1e5, 10.0, 1e-3]
    assert np.allclose(model.predict_proba(Z), theirs.fit(Z, y).predict_proba(Z), atol=1e-5)
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(90, 3))
    cubic = KernelLogisticRegression(kernel="poly", gamma=1.0)
    with pytest.warns(ConvergenceWarning, match="components of f lost to rounding errors of K"):
        cubic.fit(1e3 * Z, Z[:, 0] + 0.5 * rng.normal(size=90) > 0)
    assert len(cubic.X_fit_) == 19  # all polynomials except the constant, which is the intercept
    assert cubic.report_.certificate["objective"] == pytest.approx(0.003358, rel=1e-2)
    for kernel, Z, C in (("poly", 1e4 * X, 1.0), ("linear", X[:, :2] * [1.0, 1e9], 10.0)):
        model = KernelLogisticRegression(C, kernel=kernel, gamma=1.0)
        with pytest.warns(ConvergenceWarning) as said:
            model.fit(Z, y)
        assert any("components of f lost to rounding errors of K" in str(w.message) for w in said)
        assert all(w.filename == __file__ for w in said)
        assert model.report_.status is not Status.CONVERGED
        assert model.report_.certificate["left out"] > 1e-3 * log_loss(model, Z, y)


def test_what_landmarks_leave_out_is_bounded():
    y = LABELS[4]
    exact = KernelLogisticRegression().fit(X, y).report_.certificate
    some = KernelLogisticRegression(solver="nystroem", rank=40).fit(X, y).report_.certificate
    assert 0 < some["objective"] - exact["objective"] <= some["left out"] + some["gap"]
    assert exact["left out"] < 1e-9 * exact["objective"]


# ---------------------------------------------------------------------- probabilities


def test_calibrated():
    """With more points, the probabilities converge to the true ones, and frequencies agree."""
    rng = np.random.default_rng(7)
    Z = rng.uniform(-3, 3, (5000, 2))
    truth = 1 / (1 + np.exp(-2 * np.sin(Z[:, 0]) - Z[:, 1]))
    y, errors = rng.random(5000) < truth, []
    for n in (100, 400, 1600):
        model = KernelLogisticRegression(gamma=0.2).fit(Z[:n], y[:n])
        assert model.predict_proba(Z[:n])[:, 1].sum() == pytest.approx(y[:n].sum())
        p = model.predict_proba(Z[2000:])[:, 1]
        errors.append(np.abs(p - truth[2000:]).mean())
    assert errors[2] < 0.7 * errors[1] < 0.5 * errors[0] and errors[2] < 0.04
    slope = LogisticRegression(C=1e6).fit(logit(p)[:, None], y[2000:]).coef_[0, 0]
    assert 0.8 <= slope <= 1.25
    bins = np.digitize(p, np.linspace(0, 1, 11)[1:-1])
    for b in range(10):
        inside = bins == b
        mean = p[inside].mean()
        chance = np.sqrt(mean * (1 - mean) / inside.sum())
        assert abs(y[2000:][inside].mean() - mean) < 3 * chance + 0.03


@pytest.mark.parametrize("q", [2, 4])
def test_probabilities(q):
    model = KernelLogisticRegression(1e6).fit(X, LABELS[q])
    Z = np.concatenate([X, 100 * X])
    P = model.predict_proba(Z)
    assert P.shape == (240, q) and np.allclose(P.sum(axis=1), 1.0)
    assert np.allclose(np.exp(model.predict_log_proba(Z)), P)
    assert np.isfinite(model.predict_log_proba(Z)).all()
    assert np.array_equal(model.classes_[P.argmax(axis=1)], model.predict(Z))
    values = model.decision_function(Z)
    assert values.shape == ((240,) if q == 2 else (240, q))
    if q > 2:
        assert np.abs(values.sum(axis=1)).max() < 1e-6 * np.abs(values).max()


# ---------------------------------------------------------------------- points of any type


def test_precomputed_sparse_and_float32():
    y = LABELS[4]
    model = KernelLogisticRegression(gamma=0.5).fit(X, y, WEIGHTS)
    K = RBF.from_gamma(0.5)(X)
    kept = K.copy()
    for kernel in ("precomputed", Precomputed()):
        given = KernelLogisticRegression(kernel=kernel).fit(K, y, WEIGHTS)
        assert np.array_equal(K, kept)
        assert np.allclose(given.predict_proba(K[:9]), model.predict_proba(X[:9]), atol=1e-8)
    low = KernelLogisticRegression(kernel="precomputed", solver="nystroem", rank=120).fit(K, y)
    full = KernelLogisticRegression(gamma=0.5).fit(X, y)
    assert np.allclose(low.predict_proba(K), full.predict_proba(X), atol=1e-7)
    thin = KernelLogisticRegression(gamma=0.5).fit(sp.csr_array(X), y, WEIGHTS)
    assert np.allclose(thin.predict_proba(X), model.predict_proba(X), atol=1e-8)
    single = KernelLogisticRegression(gamma=0.5).fit(X.astype(np.float32), y, WEIGHTS)
    assert np.allclose(single.predict_proba(X), model.predict_proba(X), atol=1e-5)


@pytest.mark.parametrize("solver", ["newton", "nystroem"])
def test_precomputed_points_without_weight(solver):
    """They are excluded everywhere: as landmarks, and from the check of invalid values."""
    y, w = LABELS[4], WEIGHTS
    without = np.flatnonzero(w == 0)
    K = RBF.from_gamma(0.5)(X)
    strange = K.copy()
    strange[np.ix_(without[:2], without[:2])] = [[1.0, 50.0], [50.0, 1.0]]
    options = {"solver": solver, "rank": len(X) - len(without), "landmarks": "uniform"}
    given = KernelLogisticRegression(kernel="precomputed", **options).fit(strange, y, w)
    assert not np.intersect1d(given.X_fit_, without).size
    model = KernelLogisticRegression(gamma=0.5).fit(X, y, w)
    assert np.allclose(given.predict_proba(K), model.predict_proba(X), atol=1e-7)


def test_words():
    words = ["ab", "abb", "ba", "cd", "dc", "ccd", "abc", "cda"]
    y = ["ab", "ab", "ab", "cd", "cd", "cd", "ab", "cd"]
    count = Callable(lambda s, t: float(sum(s.count(c) * t.count(c) for c in set(s))), "pair")
    model = KernelLogisticRegression(kernel=count).fit(words, y)
    assert model.score(words, y) == 1.0
    assert list(model.predict(["aaa", "ddd"])) == ["ab", "cd"]
    half = KernelLogisticRegression(kernel=count).fit(words, y, [1, 1, 1, 1, 1, 1, 0, 0])
    assert np.allclose(
        half.decision_function(words),
        KernelLogisticRegression(kernel=count).fit(words[:6], y[:6]).decision_function(words),
    )
    with pytest.raises(ValueError, match="8 points, but y has 3 labels"):
        KernelLogisticRegression(kernel=count).fit(words, y[:3])
    best = KernelLogisticRegressionCV([0.1, 1.0], kernel=count, cv=2).fit(words, y)
    assert best.score(words, y) == 1.0


def test_singular_gram():
    """Duplicates with different labels, and a kernel of low rank."""
    Z, y = np.repeat(X[:20], 3, axis=0), np.tile(["a", "b", "a"], 20)
    model = KernelLogisticRegression(1e4).fit(Z, y)
    assert len(model.X_fit_) <= 20
    # If the features are uninformative, the probability is two thirds.
    assert np.allclose(model.predict_proba(Z)[:, 0], 2 / 3, atol=1e-6)
    assert len(KernelLogisticRegression(kernel="linear").fit(X, LABELS[2]).X_fit_) == 3


def test_compress():
    model = KernelLogisticRegression(solver="newton", gamma=0.05).fit(X, LABELS[4])
    small = compress(model, 30)
    assert len(small.X_fit_) == len(small.dual_coef_) == 30
    assert np.allclose(small.predict_proba(X), model.predict_proba(X), atol=1e-3)
    assert np.all(small.reduction_.bound(X) >= 0)


# ---------------------------------------------------------------------- bad input


def test_what_is_refused():
    y = LABELS[2]
    with pytest.raises(ValueError, match=r"at least 2 classes.* one class: \['yes'\]"):
        KernelLogisticRegression().fit(X, np.full(120, "yes"))
    with pytest.raises(ValueError, match="needs points of at least 2 classes, but all points of"):
        KernelLogisticRegression().fit(X, y, (y == "yes").astype(float))
    for C in (0.0, -1.0, np.inf, "1"):
        with pytest.raises(ValueError, match="The 'C' parameter"):
            KernelLogisticRegression(C).fit(X, y)
    for bad in (np.nan, np.inf):
        with pytest.raises(ValueError, match="Input X contains"):
            KernelLogisticRegression().fit(np.where(X[3, 1] == X, bad, X), y)
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        KernelLogisticRegression().fit(X, SCORE)
    with pytest.raises(ValueError, match="class_weight must be positive"):
        KernelLogisticRegression(class_weight={"yes": -1.0, "no": 1.0}).fit(X, y)
    with pytest.raises(ValueError, match="sample_weight must be non-negative"):
        KernelLogisticRegression().fit(X, y, -np.ones(120))
    with pytest.warns(ConvergenceWarning, match="Newton's method stopped after 1 steps"):
        KernelLogisticRegression(1e6, max_iter=1, tol=1e-15).fit(X, y)


def test_a_fit_that_fails_changes_nothing():
    model = KernelLogisticRegression().fit(X, LABELS[4])
    before = model.predict_proba(X)
    with pytest.raises(ValueError, match="class_weight must be positive"):
        model.set_params(class_weight={"yes": -1.0, "no": 1.0}).fit(X, LABELS[2])
    with pytest.raises(ValueError, match=r"C=1e-320 is too small, because 1 / C overflows"):
        model.set_params(class_weight=None, C=1e-320, solver="gradient").fit(X, LABELS[2])
    assert np.array_equal(model.predict_proba(X), before)
    search = KernelLogisticRegressionCV([1.0], cv=3).fit(X, LABELS[4])
    before = search.predict_proba(X)
    with pytest.raises(ValueError, match="Cs must be positive and finite"):
        search.set_params(Cs=[-1.0]).fit(X, LABELS[2])
    assert np.array_equal(search.predict_proba(X), before)


def test_class_weight_names():
    with pytest.raises(ValueError, match=r"class_weight has the keys \['yea', 'no'\], but no w"):
        KernelLogisticRegression(class_weight={"yea": 2.0, "no": 1.0}).fit(X, LABELS[2])
    some = KernelLogisticRegression(class_weight={"yes": 2.0}).fit(X, LABELS[2])
    by_point = KernelLogisticRegression().fit(X, LABELS[2], 1.0 + (LABELS[2] == "yes"))
    assert np.allclose(some.predict_proba(X), by_point.predict_proba(X), atol=1e-9)


def test_warm_start_with_other_points():
    words = ["ab", "abb", "ba", "cd", "dc", "ccd"]
    count = Callable(lambda s, t: float(sum(s.count(c) * t.count(c) for c in set(s))), "pair")
    y = ["a", "a", "a", "c", "c", "c"]
    model = KernelLogisticRegression(kernel=count, warm_start=True).fit(words, y)
    K, before = count(words), model.predict_proba(words)
    model.set_params(kernel="precomputed").fit(K, y)
    assert np.allclose(model.predict_proba(K), before, atol=1e-8)
    model.set_params(kernel=count).fit(words, y)
    assert np.allclose(model.predict_proba(words), before, atol=1e-8)


def test_labels_that_were_not_seen():
    model = KernelLogisticRegression().fit(X, LABELS[2])
    other = LABELS[2].astype(object)
    other[:30] = "maybe"
    assert model.score(X, other.astype(str)) == pytest.approx(
        np.mean(model.predict(X)[30:] == LABELS[2][30:]) * 0.75
    )
    strange = LABELS[4] + 10
    assert KernelLogisticRegression().fit(X, LABELS[4]).score(X, strange) == 0.0


def test_verbose(capsys):
    KernelLogisticRegression(verbose=1).fit(X, LABELS[2])
    said = capsys.readouterr().out
    assert "[KernelLogisticRegression] exact: " in said and "step 1.0: objective" in said


# ---------------------------------------------------------------------- selection of C


@pytest.mark.parametrize("scoring", ["neg_log_loss", "roc_auc_ovr", None])
def test_cv_is_a_grid_search(scoring):
    Xi, y = load_iris(return_X_y=True)
    Cs, cv = [10.0, 0.01, 1000.0], StratifiedKFold(3, shuffle=True, random_state=0)
    ours = KernelLogisticRegressionCV(Cs, gamma=0.3, cv=cv, scoring=scoring).fit(Xi, y)
    grid = GridSearchCV(KernelLogisticRegression(gamma=0.3), {"C": Cs}, cv=cv, scoring=scoring).fit(
        Xi, y
    )
    theirs = [grid.cv_results_[f"split{k}_test_score"] for k in range(3)]
    assert np.allclose(ours.scores_, theirs, atol=1e-6)
    assert ours.best_score_ == pytest.approx(grid.best_score_, abs=1e-6)
    means = ours.scores_.mean(axis=0)
    assert min(C for C, s in zip(Cs, means, strict=True) if s == means.max()) == ours.C_
    single = KernelLogisticRegression(ours.C_, gamma=0.3).fit(Xi, y)
    assert np.allclose(ours.predict_proba(Xi), single.predict_proba(Xi), atol=1e-7)
    assert np.array_equal(ours.Cs_, Cs)


def test_cv_variants():
    y = LABELS[2]
    model = KernelLogisticRegressionCV(4, cv=3).fit(X, y)
    assert np.allclose(model.Cs_, [1e-4, 10 ** (-4 / 3), 10 ** (4 / 3), 1e4])
    folds = list(StratifiedKFold(3).split(X, y))
    mean = KernelLogisticRegressionCV([1.0], cv=folds, refit=False, gamma=0.3).fit(X, y)
    each = [KernelLogisticRegression(gamma=0.3).fit(X[a], y[a]) for a, _ in folds]
    values = np.mean([m.decision_function(X) for m in each], axis=0)
    assert np.allclose(mean.decision_function(X), values, atol=1e-7)
    low = KernelLogisticRegressionCV([1.0, 9.0], solver="nystroem", rank=40, cv=3).fit(X, y)
    assert low.report_.status is Status.APPROXIMATE and len(low.X_fit_) == 40
    K = RBF.from_gamma(0.3)(X)
    given = KernelLogisticRegressionCV([1.0, 9.0], kernel="precomputed", cv=folds).fit(K, y)
    same = KernelLogisticRegressionCV([1.0, 9.0], gamma=0.3, cv=folds).fit(X, y)
    assert np.allclose(given.scores_, same.scores_, atol=1e-8)
    assert np.allclose(given.predict_proba(K), same.predict_proba(X), atol=1e-8)

    def hits(model, X, y):
        return np.mean(model.predict(X) == y)

    by_hand = KernelLogisticRegressionCV([1.0, 9.0], gamma=0.3, cv=folds, scoring=hits).fit(X, y)
    named = KernelLogisticRegressionCV([1.0, 9.0], gamma=0.3, cv=folds, scoring="accuracy")
    assert np.array_equal(by_hand.scores_, named.fit(X, y).scores_)
    weighted = named.fit(X, y, WEIGHTS)
    k, (train, test) = 1, folds[1]
    part = KernelLogisticRegression(9.0, gamma=0.3).fit(X[train], y[train], WEIGHTS[train])
    assert weighted.scores_[k, 1] == pytest.approx(part.score(X[test], y[test], WEIGHTS[test]))


def test_cv_with_a_class_that_a_fold_lacks():
    Z, groups = X[:30], np.repeat([0, 1, 2], 10)
    y = np.where(groups == 2, "c", np.where(SCORE[:30] > 0, "a", "b"))
    folds = list(LeaveOneGroupOut().split(Z, y, groups))
    model = KernelLogisticRegressionCV([1.0], cv=folds, scoring="accuracy").fit(Z, y)
    assert model.scores_[2, 0] == 0.0  # a class not in the training fold is never predicted
    assert list(model.classes_) == ["a", "b", "c"]
    two = np.where(groups == 0, "a", "b")
    with pytest.raises(ValueError, match="the training points of a fold have only 1 class"):
        KernelLogisticRegressionCV([1.0], cv=list(LeaveOneGroupOut().split(Z, two, groups))).fit(
            Z, two
        )


def test_cv_refuses():
    y = LABELS[2]
    for Cs in ([1.0, 0.0], [-1.0], [np.inf]):
        with pytest.raises(ValueError, match="Cs must be positive and finite numbers"):
            KernelLogisticRegressionCV(Cs).fit(X, y)
    with pytest.raises(ValueError, match="Cs must be positive and finite numbers"):
        KernelLogisticRegressionCV([]).fit(X, y)


def test_scorers_see_a_fitted_model():
    y, C = LABELS[2], [1.0, 9.0]
    folds = StratifiedKFold(3)

    def scores(scoring, **options):
        model = KernelLogisticRegressionCV(C, gamma=0.3, cv=folds, scoring=scoring, **options)
        return model.fit(X, y).scores_

    plain = scores("accuracy")
    assert np.array_equal(scores(lambda model, X, y: model.score(X, y)), plain)
    backwards = scores(lambda model, X, y: np.mean(model.predict(X[::-1]) == y[::-1]))
    assert np.array_equal(backwards, plain)
    assert np.array_equal(scores(lambda model, *_: model.get_params()["C"]), [C] * 3)
    assert np.array_equal(
        scores(lambda model, *_: len(pickle.loads(pickle.dumps(model)).X_fit_)),
        scores(lambda model, *_: len(model.X_fit_)),
    )


def test_nan_is_the_worst_score():
    y = LABELS[2]

    def scoring(model, X, y):
        return np.nan if model.C == 2.0 else -model.C

    for refit in (True, False):
        model = KernelLogisticRegressionCV([2.0, 3.0, 1.0], cv=3, scoring=scoring, refit=refit)
        assert model.fit(X, y).C_ == 1.0 and model.best_score_ == -1.0
    model.set_params(Cs=[2.0])
    with pytest.raises(ValueError, match="all scores are nan; the usual cause"):
        model.fit(X, y)


def test_a_mean_of_folds_has_no_certificate():
    model = KernelLogisticRegressionCV([0.1, 1.0], cv=3, refit=False).fit(X, LABELS[2])
    assert model.report_.certificate == {} and model.report_.status is Status.CONVERGED
    assert model.report_.message.endswith("average of the 3 models of the folds")
    assert model.n_iter_ == model.report_.n_iter >= 3


def test_cv_weights_and_folds():
    y, C = LABELS[2], [1.0, 9.0]
    model = KernelLogisticRegressionCV(C, cv=3).fit(X, y)
    assert np.allclose(clone(model).fit(X, y, 1.0).scores_, model.scores_, atol=1e-9)
    hits = make_scorer(lambda truth, said: np.mean(truth == said))  # accepts no weights
    assert clone(model).set_params(scoring=hits).fit(X, y, WEIGHTS).scores_.shape == (3, 2)
    splits = StratifiedKFold(3).split(X, y)
    model.set_params(cv=splits).fit(X, y)
    with pytest.raises(ValueError, match=r"yields no folds; .* an exhausted generator"):
        model.fit(X, y)
    half = np.arange(120) < 60
    for cv in ([(np.arange(120), [])], [(half, ~half)]):
        with pytest.raises(ValueError, match=r"fold 1 has \d+ training and 0 test points"):
            model.set_params(cv=cv).fit(X, y, half.astype(float))


def test_cv_warns_once():
    model = KernelLogisticRegressionCV([1.0, 1e6], cv=3, max_iter=1, tol=1e-15)
    with pytest.warns(ConvergenceWarning, match=r"3 of 7 fits did not .* C=1e\+06: New") as seen:
        model.fit(X, LABELS[2])
    assert len(seen) == 1 and seen[0].filename == __file__


# ---------------------------------------------------------------------- real data


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "n", "worst"), [("banana", 400, 0.125), ("thyroid", 140, 0.09), ("titanic", 150, 0.26)]
)
def test_raetsch(name, n, worst):
    """Test errors over three splits, well below the error of a constant prediction."""
    path = DATA / "raetsch" / f"{name}.npz"
    if not path.exists():
        pytest.skip(f"no {path.name}: set MERCER_DATA")
    with np.load(path, allow_pickle=False) as file:
        Z, y = file["X"].astype(float), file["y"].ravel()
    errors = []
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(len(Z))
        train, test = order[:n], order[n:]
        model = KernelLogisticRegressionCV(np.logspace(-1, 3, 5)).fit(Z[train], y[train])
        errors.append(1 - model.score(Z[test], y[test]))
    assert np.mean(errors) < worst


def test_another_type_of_input_does_not_start_from_the_last_fit():
    X = np.random.default_rng(0).normal(size=(40, 2))
    y, K = X[:, 0] > 0, RBF()(X)
    model = KernelLogisticRegression(kernel=RBF(), warm_start=True).fit(X, y)
    model.set_params(kernel="precomputed").fit(K, y)
    fresh = KernelLogisticRegression(kernel="precomputed").fit(K, y)
    np.testing.assert_allclose(model.decision_function(K), fresh.decision_function(K), rtol=1e-6)


def test_averages_of_fits_without_convergence_or_all_classes():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), np.repeat(np.arange(4), 10)
    options = {"Cs": [1e6], "refit": False}
    with pytest.warns(ConvergenceWarning, match="3 of 3 fits did not converge"):
        model = KernelLogisticRegressionCV(cv=3, max_iter=1, tol=1e-14, **options)
        model.fit(X, rng.integers(0, 2, 40))
    assert model.report_.status is Status.NOT_CONVERGED
    options["Cs"] = [1.0]
    folds = KernelLogisticRegressionCV(cv=KFold(4), **options).fit(X, y)  # each lacks one class
    np.testing.assert_allclose(folds.predict_proba(X).sum(axis=1), 1.0)
