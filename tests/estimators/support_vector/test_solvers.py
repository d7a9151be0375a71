"""Support vector machines: solvers, paths of C, and methods of fitted models."""

import itertools
import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_iris, make_friedman1, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.preprocessing import StandardScaler
from svm_cases import SHARP, each_svm, fitted, output, points_of_iris

import mercer
from mercer import SVC, SVR, Expansion, NuSVC, compress
from mercer.kernels import RBF, Linear, Matern, Polynomial
from mercer.solvers import Status


@pytest.fixture(scope="module")
def iris():
    return points_of_iris()


@pytest.fixture(scope="module")
def moons():
    return make_moons(120, noise=0.3, random_state=0)


# ---------------------------------------------------------------------- solvers


@each_svm
@pytest.mark.parametrize("solver", ["primal", "nystroem"])
def test_solvers_agree(model, solver, iris):
    X, y = iris
    model = clone(model).set_params(kernel="linear")
    smo = fitted(clone(model).set_params(solver="smo"), X, y)
    other = fitted(clone(model).set_params(solver=solver), X, y)
    assert type(smo.solver_).__name__ == "BlockSMO"
    assert type(other.solver_).__name__ == "BoxInterior"
    scale = np.abs(output(smo, X)).max()
    np.testing.assert_allclose(output(other, X), output(smo, X), atol=1e-5 * scale)
    np.testing.assert_allclose(other.coef_, smo.coef_, atol=1e-5 * scale)
    assert set(other.report_.certificate) == set(smo.report_.certificate)


def test_landmarks(moons):
    X, y = moons
    exact = SVC(**SHARP).fit(X, y)
    model = SVC(solver="nystroem", rank=40, **SHARP).fit(X, y)
    assert len(model.expansion_.points) <= 40
    assert model.report_.status is mercer.solvers.Status.APPROXIMATE
    assert "40 landmarks" in model.report_.message
    assert np.mean(model.predict(X) == exact.predict(X)) > 0.97
    # the support vectors of the problem
    assert len(model.support_) == model.dual_coef_.shape[1] > 40
    given = SVC(solver="nystroem", landmarks=X[:30], **SHARP).fit(X, y)
    np.testing.assert_array_equal(given.expansion_.points, X[:30])
    K = RBF.from_gamma(1.0)(X)
    known = SVC(solver="nystroem", rank=30, kernel="precomputed").fit(K, y)
    assert known.score(K, y) > 0.8


def test_auto_takes_the_primal_for_many_rows_of_few_columns():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1700, 3))
    y = (X @ [1.0, -2.0, 0.5] + rng.normal(size=1700) > 0).astype(int)
    model = SVC(kernel="linear").fit(X, y)
    assert type(model.solver_).__name__ == "BoxInterior"
    assert type(SVC(kernel="linear").fit(X[:500], y[:500]).solver_).__name__ == "BlockSMO"
    assert type(SVC(kernel=Linear()).fit(sp.csr_array(X), y).solver_).__name__ == "BlockSMO"
    sparse = SVC(kernel="linear", solver="primal").fit(sp.csr_array(X), y)
    np.testing.assert_allclose(sparse.coef_, model.coef_, atol=1e-6)
    smo = SVC(kernel="linear", solver="smo").fit(X, y)
    np.testing.assert_allclose(model.coef_, smo.coef_, atol=0.01)
    assert len(model.support_) == pytest.approx(len(smo.support_), abs=5)


def test_a_small_cache_gives_the_same(moons):
    X, y = moons
    whole, small = SVC(C=10.0).fit(X, y), SVC(C=10.0, cache_size=0.01).fit(X, y)
    np.testing.assert_allclose(small.decision_function(X), whole.decision_function(X), atol=0.01)


@pytest.mark.parametrize("classes", [2, 3])
def test_a_small_budget_gives_the_same(classes):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(2500, 3))
    y = np.digitize(
        np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=2500), [0, 1][: classes - 1]
    )
    options = {"C": 10.0, "tol": 1e-4}
    whole, small = SVC(**options).fit(X, y), SVC(**options, max_memory="10 MiB").fit(X, y)
    # With rows on demand, other entries of K are evaluated than if K is stored.
    assert small.report_.certificate["entries"] != whole.report_.certificate["entries"]
    assert small.report_.certificate["primal"] == pytest.approx(
        whole.report_.certificate["primal"], rel=1e-5
    )
    np.testing.assert_allclose(small.decision_function(X), whole.decision_function(X), atol=0.01)


@pytest.mark.parametrize(
    "options",
    [
        {"kernel": Polynomial(degree=2)},
        {"kernel": Matern(nu=2.5) + 0.1 * Linear()},
        {"kernel": "linear", "solver": "primal"},
    ],
    ids=["poly", "sum", "primal"],
)
def test_infinite_C(options, iris):
    X, y = iris[0][iris[1] < 2], iris[1][iris[1] < 2]
    model = SVC(C=np.inf, **options, **SHARP).fit(X, y)
    margins = (2 * y - 1) * model.decision_function(X)
    assert margins.min() == pytest.approx(1.0, abs=1e-5)
    np.testing.assert_allclose(margins[model.support_], 1.0, atol=1e-5)


# ---------------------------------------------------------------------- paths


@pytest.mark.parametrize("Cs", [[0.1, 1.0, 10.0, 100.0], [10.0, 0.5, 3.0], [1.0, np.inf, 1.0]])
def test_a_path_is_what_cold_fits_are(Cs, iris):
    X, y = iris
    base = SVC(kernel=RBF(2.0), **SHARP)
    models = base.path(X, y, Cs)
    assert [model.C for model in models] == Cs
    assert not hasattr(base, "n_features_in_")
    for C, model in zip(Cs, models, strict=True):
        cold = clone(base).set_params(C=C).fit(X, y)
        np.testing.assert_allclose(output(model, X), output(cold, X), atol=1e-5)
        np.testing.assert_array_equal(model.support_, cold.support_)
        assert model.n_features_in_ == 4
    assert "started" not in models[0].report_.message
    assert f"started from the solution for C={Cs[0]:g}, times" in models[1].report_.message


def test_a_path_shares_its_rows(moons):
    X, y = moons
    models = SVC().path(X, y, [1.0, 10.0], sample_weight=np.ones(len(y)))
    cold = SVC(C=10.0).fit(X, y)
    assert models[1].report_.certificate["entries"] < cold.report_.certificate["entries"]
    assert SVC().path(X, y, []) == []


# ---------------------------------------------------------------------- fitted models


@each_svm
def test_compressed(model, iris):
    X, y = iris
    whole = fitted(clone(model), X, y)
    small = compress(whole, 12)
    assert len(small.expansion_.points) == 12
    assert not hasattr(small, "support_") and not hasattr(small, "dual_coef_")
    bound = small.reduction_.bound(X)
    gap = np.abs(output(small, X) - output(whole, X))
    assert np.all(gap.reshape(len(X), -1) <= np.asarray(bound).reshape(len(X), -1) + 1e-8)
    np.testing.assert_array_equal(output(whole, X), output(fitted(clone(model), X, y), X))
    assert len(pickle.loads(pickle.dumps(small)).predict(X)) == len(X)


def test_compressed_of_given_values(moons):
    X, y = moons
    K = RBF(0.5)(X)
    model = SVC(kernel="precomputed", C=10.0).fit(K, y)
    small = compress(model, 15, K=K)
    assert np.mean(small.predict(K) == model.predict(K)) > 0.9


def test_predictions_follow_the_coefficients(iris):
    X, y = iris
    model = SVC(decision_function_shape="ovo").fit(X, y)
    before = model.decision_function(X) - model.intercept_
    model.dual_coef_ = 2.0 * model.dual_coef_
    after = model.decision_function(X) - model.intercept_
    np.testing.assert_allclose(after, 2 * before, atol=1e-12)
    np.testing.assert_allclose(model.expansion_(X), 2 * before, atol=1e-12)
    model.n_support_[0] += 1
    with pytest.raises(ValueError, match="The internal representation of SVC was altered"):
        model.predict(X)


@pytest.mark.parametrize("n", [20, 3000])
def test_functions_of_pairs_are_one_expansion(n, iris):
    X, y = iris
    new = np.random.default_rng(0).normal(2.0, 2.0, size=(n, 4))
    f = SVC(C=0.1).fit(X, y).expansion_
    assert (n * len(f.points) > 2**18) == (n == 3000)  # by class, or all at once
    plain = Expansion(f.kernel, f.points, f.coefficients)
    np.testing.assert_allclose(f(new), plain(new), rtol=0, atol=1e-12)
    np.testing.assert_array_equal(f[1].coefficients, plain[1].coefficients)


def test_searches_pipelines_and_probabilities(iris):
    X, y = iris
    search = GridSearchCV(SVC(kernel=RBF()), {"kernel__length_scale": [0.5, 2.0], "C": [1, 10]})
    assert search.fit(X, y).best_score_ > 0.95
    K = RBF()(X)
    assert cross_val_score(SVC(kernel="precomputed"), K, y, cv=3).mean() > 0.9
    calibrated = CalibratedClassifierCV(SVC(), ensemble=False, cv=3).fit(X, y)
    assert calibrated.predict_proba(X).shape == (150, 3)
    assert not hasattr(SVC().fit(X, y), "predict_proba")


@each_svm
def test_the_same_bits_every_time(model, iris):
    X, y = iris
    first, second = (fitted(clone(model), X, y) for _ in range(2))
    for name in ("support_", "dual_coef_", "intercept_"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))


def test_no_support_vectors():
    X = np.arange(10.0)[:, None]
    model = SVR().fit(X, np.ones(10))
    assert len(model.support_) == 0
    np.testing.assert_allclose(model.predict(X), 1.0, atol=0.1)
    linear = SVR(kernel="linear").fit(X, np.ones(10))
    np.testing.assert_array_equal(linear.coef_, [[0.0]])
    np.testing.assert_allclose(linear.predict(X), 1.0, atol=0.1)


def test_pairs_are_in_libsvms_layout(iris):
    X, y = iris
    model = SVC(decision_function_shape="ovo", gamma=0.5).fit(X, y)
    ends = np.concatenate([[0], np.cumsum(model.n_support_)])
    K = RBF.from_gamma(0.5)(X, model.support_vectors_)
    for p, (a, b) in enumerate(itertools.combinations(range(3), 2)):
        first, second = slice(ends[a], ends[a + 1]), slice(ends[b], ends[b + 1])
        f = (
            K[:, first] @ model.dual_coef_[b - 1, first]
            + K[:, second] @ model.dual_coef_[a, second]
        )
        np.testing.assert_allclose(
            f + model.intercept_[p], model.decision_function(X)[:, p], atol=1e-10
        )
        assert np.all(model.dual_coef_[b - 1, first] >= 0)
        assert np.all(model.dual_coef_[a, second] <= 0)


def test_compressed_twice(moons):
    X, y = moons
    once = compress(SVC().fit(X, y), 12)
    twice = compress(once, 6)
    assert len(twice.expansion_.points) <= 6
    assert np.mean(twice.predict(X) == once.predict(X)) > 0.9


def test_a_path_of_any_iterable_and_any_solver(moons):
    X, y = moons
    models = SVC().path(X, y, (C for C in (0.1, 1.0)))
    assert "started from the solution for C=0.1" in models[1].report_.message
    exact = SVC(C=1.0, solver="nystroem", rank=20).fit(X, y)
    path = SVC(solver="nystroem", rank=20).path(X, y, [0.1, 1.0])
    # the interior point method does not use a warm start
    assert "started" not in path[1].report_.message
    np.testing.assert_allclose(path[1].decision_function(X), exact.decision_function(X))


def test_a_tie_goes_where_libsvm_lets_it_go():
    for machine in (SVC, sklearn.svm.SVC):
        assert machine(kernel="linear").fit([[-1.0], [1.0]], [0, 1]).predict([[0.0]]) == 1


def test_classes_that_overlap_too_much_for_nu():
    rng = np.random.default_rng(0)
    y = np.where(rng.random(900) < 0.5, -1, 1)
    X = rng.normal(size=(900, 3))
    X[:, 0] += 0.8 * y
    with pytest.warns(UserWarning, match=r"nu=0.5 leaves no margin: rho is .* Increase nu"):
        NuSVC(kernel="linear").fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert NuSVC(kernel="linear", nu=0.6).fit(X, y).score(X, y) > 0.75


def test_targets_of_words_are_checked():
    with pytest.raises(ValueError, match="Input y contains NaN"):
        SVR(kernel=lambda a, b: float(a == b)).fit(["a", "b", "c"], [1.0, np.nan, 2.0])


def test_a_column_far_from_zero_is_named():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3))
    X[:, 1] += 1e8
    with pytest.warns(ConvergenceWarning, match="column 1 has a mean of 1e\\+08"):
        SVC(kernel="linear", solver="smo", max_iter=5).fit(X, np.arange(50) % 2)


def test_no_scaling_is_suggested_for_words():
    words = np.array([["ab"], ["b"], ["ca"], ["d"], ["ea"], ["f"]], dtype=object)
    with pytest.warns(ConvergenceWarning, match="After 1 steps"):
        SVC(
            kernel=lambda a, b: float(a[0][0] == b[0][0]) + 1.0 * (a[0][-1] == b[0][-1]), max_iter=1
        ).fit(words, [0, 1, 0, 1, 1, 0])


@pytest.mark.filterwarnings("ignore:nu=0.5 leaves no margin")
def test_advice_is_about_parameters_that_there_are():
    same = np.array([[0.0], [0.0], [1.0], [1.0]])
    with pytest.raises(ValueError, match=r"so f / rho is not finite.* Increase nu") as said:
        NuSVC(nu=0.5).fit(same, [0, 1, 0, 1])
    assert "C" not in str(said.value).replace("NuSVC", "")
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), np.arange(60) % 2
    for model, has_C in ((NuSVC(max_iter=1), False), (SVC(max_iter=1), True)):
        with pytest.warns(ConvergenceWarning, match="the columns of X have similar scales") as said:
            model.fit(X, y)
        assert ("a smaller C" in str(said[0].message)) == has_C


def test_a_search_that_gets_nowhere_is_given_up_early():
    """For kernel values of 1e11 and targets of 10, ten million steps would hardly help."""
    X, y = make_friedman1(300, random_state=0)
    model = SVR(kernel="poly", gamma=1.0)
    said = r"Solver terminated early \(max_iter=-1\).*up to the limit of 10000000 \(max_iter=-1\)"
    with pytest.warns(ConvergenceWarning, match=said):
        model.fit(100.0 * X, y)
    assert model.report_.status is Status.NOT_CONVERGED and model.report_.n_iter <= 2_000_000
    # An explicit max_iter is respected.
    with pytest.warns(ConvergenceWarning, match=r"terminated early \(max_iter=1500000\)"):
        model.set_params(max_iter=1_500_000).fit(100.0 * X, y)
    assert model.report_.n_iter == 1_500_000


def test_a_slow_search_is_not_given_up():
    """Columns of very different size need about a million steps, all of which help."""
    X, y = load_breast_cancer(return_X_y=True)
    model = SVC(C=10.0, kernel="linear", solver="smo").fit(X, y)
    assert model.report_.status is Status.CONVERGED and model.report_.n_iter > 500_000


@pytest.mark.parametrize(("C", "gamma", "steps"), [(1e8, 1e-2, 30_000), (1e9, 1e-4, 100_000)])
def test_a_narrow_valley_is_left_in_few_steps(C, gamma, steps):
    """Steps in pairs of variables hardly reach the minimum over all free variables."""
    X, y = load_iris(return_X_y=True)
    X, y = StandardScaler().fit_transform(X[50:]), y[50:]
    model = SVC(C=C, gamma=gamma, max_iter=steps).fit(X, y)
    assert model.report_.status is Status.CONVERGED and model.report_.residual <= 1e-3
