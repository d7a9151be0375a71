"""Support vector machines: the same minimum as scikit-learn, for all points and weights."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_digits, make_moons
from sklearn.exceptions import ConvergenceWarning
from svm_cases import SHARP, each_svm, fitted, output, points_of_iris, theirs

from mercer import SVC, SVR, KernelMachineRegressor, NuSVC, NuSVR, OneClassSVM
from mercer.estimators.support_vector._svm_training import values_of_pairs
from mercer.kernels import RBF, Callable, Precomputed

# Relative tolerances.  mercer satisfies the optimality conditions to 1e-11 here.  LIBSVM stores K
# in float32, and loses more digits of f the larger k(x, z) is.
AGREE = {"rbf": 3e-6, "linear": 5e-5, "poly": 5e-4}


@pytest.fixture(scope="module")
def iris():
    return points_of_iris()


@pytest.fixture(scope="module")
def moons():
    return make_moons(120, noise=0.3, random_state=0)


@pytest.fixture(scope="module")
def diabetes():
    X, y = load_diabetes(return_X_y=True)
    return X[:150] * 20.0, y[:150]


KERNELS = [
    {"kernel": "rbf"},
    {"kernel": "rbf", "gamma": 0.7},
    {"kernel": "linear"},
    {"kernel": "poly", "degree": 2, "coef0": 1.0, "gamma": "auto"},
]

# ---------------------------------------------------------------------- the same minimum


@each_svm
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: "-".join(map(str, k.values())))
def test_the_same_functions_as_scikit_learn(model, kernel, iris):
    X, y = iris
    ours = fitted(clone(model).set_params(**kernel), X, y)
    other = fitted(theirs(ours), X, y)
    scale = np.abs(output(other, X)).max()
    agree = AGREE[kernel["kernel"]] * scale
    np.testing.assert_allclose(output(ours, X), output(other, X), atol=agree)
    if isinstance(model, SVC):
        np.testing.assert_array_equal(ours.predict(X), other.predict(X))
    assert ours.dual_coef_.shape[0] == other.dual_coef_.shape[0]
    assert ours.intercept_.shape == other.intercept_.shape
    assert ours.n_support_.shape == other.n_support_.shape
    assert ours.shape_fit_ == other.shape_fit_
    if kernel["kernel"] != "linear":
        assert ours.gamma_ == ours._gamma == pytest.approx(other._gamma)
    for name in ("support_", "n_support_"):
        assert getattr(ours, name).dtype == getattr(other, name).dtype
    if kernel["kernel"] == "linear":
        np.testing.assert_allclose(ours.coef_, other.coef_, atol=agree)


@each_svm
def test_the_same_support_vectors_as_scikit_learn(model, iris):
    X, y = iris
    ours, other = fitted(clone(model), X, y), fitted(theirs(model), X, y)
    np.testing.assert_array_equal(ours.support_, other.support_)
    np.testing.assert_array_equal(ours.n_support_, other.n_support_)
    np.testing.assert_array_equal(ours.support_vectors_, other.support_vectors_)
    np.testing.assert_allclose(ours.dual_coef_, other.dual_coef_, atol=2e-3)
    np.testing.assert_allclose(ours._dual_coef_, other._dual_coef_, atol=2e-3)
    np.testing.assert_allclose(ours._intercept_, other._intercept_, atol=2e-3)


@pytest.mark.parametrize("C", [0.1, 10.0, 1000.0])
def test_the_dual_objective_is_as_good(C, moons):
    X, y = moons
    K = RBF.from_gamma(1.0)(X)

    def objective(model):
        v = np.zeros(len(y))
        v[model.support_] = model.dual_coef_[0]
        return np.abs(v).sum() - 0.5 * v @ K @ v

    ours, other = (cls(C=C, gamma=1.0).fit(X, y) for cls in (SVC, sklearn.svm.SVC))
    assert objective(ours) >= objective(other) - 1e-3 * objective(other)
    assert objective(ours) == pytest.approx(ours.report_.certificate["dual"], rel=1e-9)
    assert ours.report_.certificate["primal"] >= objective(ours) * (1.0 - 1e-12)


@each_svm
def test_the_certificate(model, iris):
    X, y = iris
    ours = fitted(clone(model), X, y)
    c = ours.report_.certificate
    assert -1e-9 <= c["gap"] <= c["bound"] + 1e-9
    assert c["primal"] == pytest.approx(c["dual"] + c["gap"])
    assert c["violation"] <= model.tol and ours.fit_status_ == 0
    assert c["entries"] > 0 and not (c["cache_hits"] < 0 or c["cache_hits"] > 1)
    assert len(ours.reports_) == len(np.atleast_1d(ours.n_iter_))
    assert np.sum(ours.n_iter_) == ours.report_.n_iter


def test_a_support_vector_machine_is_a_kernel_machine(diabetes):
    X, y = diabetes
    ours = SVR(C=10.0, epsilon=2.0, **SHARP).fit(X, y)
    machine = KernelMachineRegressor("epsilon_insensitive", alpha=0.05, epsilon=2.0).fit(X, y)
    np.testing.assert_allclose(ours.predict(X), machine.predict(X), atol=1e-3)


def test_the_shares_of_nu(diabetes):
    X, y = diabetes
    model = NuSVR(nu=0.3, C=100.0, **SHARP).fit(X, y)
    outside = np.abs(y - model.predict(X)) > model.epsilon_ * (1 + 1e-6)
    assert outside.mean() <= 0.3 <= len(model.support_) / len(y)
    region = OneClassSVM(nu=0.3, **SHARP).fit(X)
    assert np.mean(region.decision_function(X) < -1e-6) <= 0.3 <= len(region.support_) / len(y)
    np.testing.assert_array_equal(
        region.score_samples(X), region.decision_function(X) + region.offset_
    )


# ---------------------------------------------------------------------- weights


@each_svm
def test_weights_are_repetitions(model, iris):
    X, y = iris[0][:60], iris[1][:60]
    w = np.random.default_rng(1).integers(0, 4, size=len(y))
    weighted = fitted(clone(model), X, y, sample_weight=w)
    repeated = fitted(clone(model), np.repeat(X, w, axis=0), np.repeat(y, w))
    np.testing.assert_allclose(output(weighted, X), output(repeated, X), atol=1e-5)
    assert np.all(w[weighted.support_] > 0)


@each_svm
def test_a_weight_that_is_not_positive_leaves_a_point_out(model, iris):
    X, y = iris[0][:60], iris[1][:60]
    w = np.where(np.arange(60) % 3 == 0, -1.0, 2.0)
    weighted = fitted(clone(model), X, y, sample_weight=w)
    if isinstance(model, (SVC, SVR, NuSVR)):
        model = clone(model).set_params(C=2.0 * model.C)
    few = fitted(clone(model), X[w > 0], y[w > 0])
    factor = 2.0 if isinstance(model, OneClassSVM) else 1.0
    np.testing.assert_allclose(output(weighted, X), factor * output(few, X), atol=1e-5)


@pytest.mark.parametrize("class_weight", [{0: 5.0}, {1: 0.1, 2: 3.0}, "balanced"])
def test_class_weights(class_weight, iris):
    X, y = iris[0][:110], iris[1][:110]
    model = SVC(gamma=0.5, class_weight=class_weight, **SHARP).fit(X, y)
    other = theirs(model).fit(X, y)
    np.testing.assert_allclose(output(model, X), output(other, X), atol=1e-4)
    np.testing.assert_allclose(model.class_weight_, other.class_weight_)


def test_balanced_classes_see_the_weights(iris):
    X, y = iris[0][:70], iris[1][:70]
    w = np.random.default_rng(1).integers(0, 4, size=len(y))
    model = SVC(class_weight="balanced", **SHARP)
    weighted = clone(model).fit(X, y, sample_weight=w)
    repeated = clone(model).fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    np.testing.assert_allclose(output(weighted, X), output(repeated, X), atol=1e-5)


def test_class_weights_of_nu(moons):
    X, y = moons
    plain = NuSVC(nu=0.4, **SHARP).fit(X, y)
    equal = NuSVC(nu=0.4, class_weight={0: 3.0, 1: 3.0}, **SHARP).fit(X, y)
    np.testing.assert_allclose(equal.decision_function(X), plain.decision_function(X), atol=1e-5)
    np.testing.assert_array_equal(plain.nu_, [0.4])
    heavy = NuSVC(nu=0.4, class_weight={0: 9.0, 1: 1.0}, **SHARP).fit(X, y)
    np.testing.assert_allclose(heavy.nu_, [0.2])
    assert np.mean(heavy.predict(X) == 0) > np.mean(plain.predict(X) == 0)
    assert "class_weight lowers nu to 0.2" in heavy.report_.message
    few = np.concatenate([np.flatnonzero(y == 0), np.flatnonzero(y == 1)[:10]])
    assert NuSVC(nu=0.9, class_weight="balanced").fit(X[few], y[few]).nu_ == 0.9


# ---------------------------------------------------------------------- classes


def test_many_classes_vote_as_in_scikit_learn():
    X, y = load_digits(return_X_y=True)
    X, y = X[:400], y[:400]
    ours, other = SVC(gamma=0.001, **SHARP), sklearn.svm.SVC(gamma=0.001, **SHARP)
    ours.fit(X, y)
    other.fit(X, y)
    np.testing.assert_array_equal(ours.support_, other.support_)
    np.testing.assert_array_equal(ours.predict(X), other.predict(X))
    for shape, ties in [("ovr", False), ("ovo", False), ("ovr", True)]:
        for model in (ours, other):
            model.set_params(decision_function_shape=shape, break_ties=ties)
        values = ours.decision_function(X), other.decision_function(X)
        np.testing.assert_allclose(*values, atol=1e-4)
        np.testing.assert_array_equal(ours.predict(X), other.predict(X))
    assert len(ours.expansion_) == 45
    ours.set_params(decision_function_shape="ovo", break_ties=False)
    values = ours.expansion_(X[:9]) + ours.intercept_
    np.testing.assert_allclose(values, ours.decision_function(X[:9]), atol=1e-10)


def test_classes_may_have_any_names(iris):
    X, y = iris
    names = np.array(["c", "a", "b"])[y]
    model = SVC().fit(X, names)
    assert model.classes_.tolist() == ["a", "b", "c"]
    assert model.score(X, names) > 0.9


def test_a_class_without_weight_is_none(iris):
    X, y = iris
    model = SVC(**SHARP).fit(X, y, sample_weight=(y != 1).astype(float))
    assert model.classes_.tolist() == [0, 2]
    two = SVC(**SHARP).fit(X[y != 1], y[y != 1])
    np.testing.assert_allclose(model.decision_function(X), two.decision_function(X), atol=1e-6)


# ---------------------------------------------------------------------- kernels and points


@each_svm
def test_a_precomputed_kernel(model, iris):
    X, y = iris
    kernel = RBF.from_gamma(0.5)
    K, rows = kernel(X), kernel(X[:30], X)
    direct = fitted(clone(model).set_params(gamma=0.5), X, y)
    for given in ("precomputed", Precomputed()):
        ours = fitted(clone(model).set_params(kernel=given), K, y)
        np.testing.assert_allclose(output(ours, rows), output(direct, X[:30]), atol=1e-6)
        np.testing.assert_array_equal(ours.support_, direct.support_)
        assert ours.support_vectors_.shape == (0, 0)
        without = rows.copy()
        without[:, np.setdiff1d(np.arange(len(y)), ours.support_)] = 1e300  # never read
        np.testing.assert_array_equal(output(ours, without), output(ours, rows))
    indices = fitted(clone(model).set_params(kernel=Precomputed(K)), np.arange(len(y)), y)
    np.testing.assert_allclose(output(indices, np.arange(30)), output(direct, X[:30]), atol=1e-6)


@each_svm
def test_weights_of_given_values(model, iris):
    X, y = iris
    w = np.random.default_rng(2).integers(0, 3, size=len(y))
    K = RBF.from_gamma(0.5)(X)
    direct = fitted(clone(model).set_params(gamma=0.5), X, y, sample_weight=w)
    ours = fitted(clone(model).set_params(kernel="precomputed"), K, y, sample_weight=w)
    np.testing.assert_array_equal(ours.support_, direct.support_)
    np.testing.assert_allclose(output(ours, K), output(direct, X), atol=1e-6)


@each_svm
def test_functions_and_expressions_as_kernels(model, iris):
    X, y = iris

    def k(X, Z):
        return np.exp(-0.5 * np.square(X[:, None] - Z[None]).sum(axis=2))

    def pair(x, z, rate=0.5):
        return np.exp(-rate * np.square(x - z).sum())

    direct = output(fitted(clone(model).set_params(gamma=0.5), X[:40], y[:40]), X)
    for kernel in (k, Callable(pair), RBF.from_gamma(0.5)):
        ours = fitted(clone(model).set_params(kernel=kernel), X[:40], y[:40])
        np.testing.assert_allclose(output(ours, X), direct, atol=1e-6)
    ours = fitted(clone(model).set_params(kernel=pair, kernel_params={"rate": 0.5}), X[:40], y[:40])
    np.testing.assert_allclose(output(ours, X), direct, atol=1e-6)


def test_only_support_vectors_are_evaluated(moons):
    X, y = moons
    seen = []

    def k(X, Z):
        seen.append(len(Z))
        return X @ Z.T + np.exp(-np.square(X[:, None] - Z[None]).sum(axis=2))

    model = SVC(kernel=k, C=10.0).fit(X, y)
    seen.clear()
    model.decision_function(X[:5])
    assert sum(n for n in seen if n > 3) == len(model.support_) < len(X)


def test_words_as_points():
    words = ["cat", "cart", "chart", "trace", "dog", "good", "gold", "doll"]
    y = [0, 0, 0, 0, 1, 1, 1, 1]

    def common(s, t):
        return float(len(set(s) & set(t)))

    for model in (SVC(kernel=Callable(common)), SVR(kernel=common), NuSVC(kernel=common)):
        model.fit(words, y)
        np.testing.assert_array_equal(model.predict(words) > 0.5, y)
        assert set(model.support_vectors_) <= set(words)
        assert not hasattr(model, "n_features_in_")
    assert OneClassSVM(kernel=common, nu=0.5).fit(words).predict(["cat"]) in (1, -1)


@each_svm
def test_sparse_points(model, iris):
    X, y = iris
    dense = fitted(clone(model), X, y)
    sparse = fitted(clone(model), sp.csr_array(X), y)
    np.testing.assert_allclose(output(sparse, sp.csr_array(X)), output(dense, X), atol=1e-6)
    np.testing.assert_allclose(output(sparse, X), output(dense, X), atol=1e-6)
    assert sp.issparse(sparse.support_vectors_)


def test_points_are_in_double_precision(iris):
    X, y = iris
    assert SVC().fit(X.astype(np.float32), y).support_vectors_.dtype == np.float64


@pytest.mark.parametrize("sizes", [(9, 1, 12, 8), (9, 0, 12, 8)])
def test_a_row_alone_is_summed_as_many_are(sizes):
    """f of a pair is the sum over both classes, one of which may have no support vector."""
    rng, m = np.random.default_rng(0), sum(sizes)
    K, dual, own = rng.random((40, m)), rng.normal(size=(3, m)), np.repeat(np.arange(4), sizes)
    many = values_of_pairs(K, dual, np.array(sizes))
    alone = [values_of_pairs(K[i : i + 1], dual, np.array(sizes)) for i in range(40)]
    np.testing.assert_allclose(np.concatenate(alone), many, atol=1e-13)
    f = K[:, own == 1] @ dual[2, own == 1] + K[:, own == 3] @ dual[1, own == 3]
    np.testing.assert_allclose(many[:, 4], f, atol=1e-13)  # classes 1 and 3


@pytest.mark.parametrize("classes", [2, 3])
def test_copies_of_the_functions(classes):
    X = np.random.default_rng(0).normal(size=(40, 2))
    f = SVC().fit(X, np.digitize(X[:, 0], [-0.5, 0.5][: classes - 1])).expansion_
    copied = pickle.loads(pickle.dumps(f))
    assert np.array_equal(copied.n_support, f.n_support)
    assert np.array_equal(copied(X), f(X))


def test_other_types_of_numbers():
    X = np.random.default_rng(0).integers(-9, 9, size=(40, 2))
    y = X[:, 0] > 0
    expected = SVC().fit(X.astype(float), y).decision_function(X)
    for points in (X, X.astype(object)):
        assert np.array_equal(SVC().fit(points, y).decision_function(X), expected)


def test_an_infinite_penalty_of_classes_that_overlap():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), rng.integers(0, 2, 40)
    with pytest.warns(ConvergenceWarning, match="C is infinite, so there is no solution if"):
        SVC(kernel="linear", C=np.inf, max_iter=5).fit(X, y)


def test_weights_of_a_primal_solution():
    X = np.random.default_rng(0).normal(size=(40, 2))
    y = X[:, 0] + 0.1 * X[:, 1] > 0
    primal, dual = (SVC(kernel="linear", solver=s).fit(X, y) for s in ("primal", "smo"))
    np.testing.assert_allclose(primal.coef_, dual.coef_, rtol=0.05, atol=0.05)


def test_a_path_of_a_function_with_negative_curvature():
    X = np.random.default_rng(0).normal(size=(40, 2))
    with pytest.warns(UserWarning, match="the kernel is not positive semidefinite"):
        models = SVC(kernel=lambda A, B: -A @ B.T).path(X, X[:, 0] > 0, [0.1, 1.0])
    assert models[1].report_.message.startswith("started from the solution for C=0.1, times 10")
