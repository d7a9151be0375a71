"""Expansions in primal and dual form: one function, two representations."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.datasets import load_iris
from sklearn.linear_model import (
    Lasso,
    LinearRegression,
    LogisticRegression,
    Perceptron,
    Ridge,
)
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.svm import LinearSVC
from zoo import COLUMNS, every

import mercer
from mercer import (
    SVC,
    SVR,
    Expansion,
    ExplicitFeatures,
    GaussianProcessRegressor,
    KernelFisherDiscriminant,
    KernelKMeans,
    KernelKNeighborsRegressor,
    KernelLogisticRegression,
    KernelMachineRegressor,
    KernelMismatchError,
    KernelPCA,
    KernelPerceptron,
    KernelRidge,
    KernelRidgeCV,
    MemoryBudgetError,
    NuSVC,
    Nystroem,
    OneClassSVM,
    OnlineKernelRegressor,
    Primal,
    RandomFeatures,
    SparseKernelRegressor,
    primal_or_dual,
    to_dual,
    to_primal,
)
from mercer.expansion import PrimalDualSizes
from mercer.kernels import (
    RBF,
    Features,
    GaussianBasis,
    Linear,
    Mallows,
    Normalized,
    Polynomial,
    Spectrum,
    White,
    finite_features,
)
from mercer.solvers import minimum_norm_solution
from mercer.testing import check_primal

rng = np.random.default_rng(0)
X, NEW = rng.normal(size=(60, 3)), rng.normal(size=(25, 3))
y = X[:, 0] * X[:, 1] - X[:, 2] + 0.1 * rng.normal(size=60)
WORDS = ["".join(rng.choice(list("abc"), size=6)) for _ in range(40)]
COUNTS = np.array([word.count("ab") for word in WORDS], dtype=float)
QUADRATIC = Polynomial(2, coef0=1.0)


# ---------------------------------------------------------------------- the laws, over the zoo

FINITE = {  # entries of the zoo that have finitely many features
    *("Linear", "Polynomial 3", "Polynomial 2", "Polynomial 1", "Cosine", "Bilinear", "Constant"),
    *("RankOne", "RankOne rough", "Features", "Features bumps", "Features steps"),
    *("Features quadratic", "Features series", "Features waves", "Features rough"),
    *("Select one", "Select slice", "Stretch ARD", "Map", "Power", "Power 1", "Normalized"),
    *("Shift", "Shift of Linear"),
    *("Normalized Linear", "Spectrum", "Spectrum blended", "WeightedDegree", "Gapped"),
    *("Gapped pairs", "Mismatch", "Mismatch pairs", "Intersection", "Ochiai", "Equal", "Kendall"),
    *("Kendall partial", "BagOfWords", "BagOfNgrams", "VertexHistogram(base=None)"),
    *("EdgeHistogram(ends=False)", "EdgeHistogram(ends=True)", "ShortestPath()"),
    *("WeisfeilerLehman(h=2, edges=False, exact=False)", "Graphlet(size=3, connected=False)"),
    *("WeisfeilerLehman(h=1, edges=True, exact=True)", "Graphlet(size=4, connected=True)"),
}


@pytest.mark.parametrize("entry", **every())
def test_laws_of_every_kernel(entry):
    points, new = entry.points(8), entry.points(6, seed=1)
    f = Expansion(entry.kernel, points, np.random.default_rng(2).normal(size=(8, 2)))
    if entry.id in FINITE:
        check_primal(f, new)
    else:
        with pytest.raises((TypeError, ValueError), match="features"):
            f.to_primal()


# The third eigenvalue of F F^T is a rounding error here, a little above eps times the largest.
@example(n=3, d=2, degree=1, coef0=0.0, m=3, sparse=True, seed=27)
@settings(max_examples=30, deadline=None)
@given(
    n=st.integers(1, 12),
    d=st.integers(1, 3),
    degree=st.integers(1, 3),
    coef0=st.sampled_from([0.0, 0.5, 2.0]),
    m=st.integers(1, 3),
    sparse=st.booleans(),
    seed=st.integers(0, 99),
)
def test_laws_of_any_size(n, d, degree, coef0, m, sparse, seed):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, d)).round(1)
    Z = sp.csr_array(Z) if sparse else Z
    kernel = Polynomial(degree, coef0) + 0.5 * Linear()
    check_primal(Expansion(kernel, Z, rng.normal(size=(n, m))), rng.normal(size=(4, d)))


def test_a_law_that_fails_is_named():
    class Wrong(Expansion):
        def to_primal(self, **options):
            return super().to_primal()[::-1]

    f = Wrong(QUADRATIC, X, rng.normal(size=(60, 2)))
    with pytest.raises(AssertionError, match=r"law 'values' fails.*<w, phi"):
        check_primal(f, NEW)


# ---------------------------------------------------------------------- values


def test_blocks_of_rows(monkeypatch):
    f = Expansion(QUADRATIC, X, y)
    whole = f.to_primal()
    monkeypatch.setattr(
        "mercer.expansion._primal_form._FEATURE_BLOCK_BYTES", 8 * 10 * 7
    )  # seven rows
    assert_allclose(f.to_primal().weights, whole.weights, rtol=1e-12)
    assert_allclose(whole(NEW), f(NEW), atol=1e-10)
    assert whole(NEW[:0]).shape == (0, 1)


def test_single_precision_is_exact():
    f = Expansion(QUADRATIC, X.astype(np.float32), y)
    g = Expansion(QUADRATIC, X.astype(np.float32).astype(float), y)
    assert_allclose(f.to_primal()(NEW), g(NEW), atol=1e-10)


def test_inner_products_of_two():
    f, g = Expansion(QUADRATIC, X, y), Expansion(QUADRATIC, NEW, NEW)
    assert_allclose(f.to_primal().inner(g.to_primal()), f.inner(g))
    with pytest.raises(
        KernelMismatchError, match=r"one has 10 .* the other has 3 different features of Linear"
    ):
        f.to_primal().inner(Expansion(Linear(), X, y).to_primal())
    one = Expansion(Spectrum(1), ["ab"], [1.0]).to_primal()
    with pytest.raises(KernelMismatchError, match=r"2 features .* 2 different features"):
        one.inner(Expansion(Spectrum(1), ["bc"], [1.0]).to_primal())


def test_refusals_of_a_primal():
    with pytest.raises(TypeError, match="needs a Kernel"):
        Primal("linear", [1.0])
    with pytest.raises(
        ValueError, match=r"weights must have one row per feature, got shape \(1, 1, 1\)"
    ):
        Primal(Linear(), [[[1.0]]])
    with pytest.raises(ValueError, match="3 features for these points, but there are 2 weights"):
        Primal(Linear(), [1.0, 2.0])(X)
    with pytest.raises(TypeError, match=r"RBF has no finite features: .*Nystroem.*RandomFeatures"):
        Expansion(RBF() + Linear(), X, y).to_primal()
    with pytest.raises(TypeError, match="White has no finite features"):
        Expansion(Linear() + White(), X, y).to_primal()
    with pytest.raises(TypeError, match="Mallows has no finite features"):
        finite_features(Mallows(), [[1, 2, 3]])
    with pytest.raises(MemoryBudgetError, match="10 monomials"):
        Expansion(QUADRATIC, X, y).to_primal(max_memory=10)


def test_repr():
    f = Expansion(QUADRATIC, X, np.column_stack([y, y]))
    assert repr(f.to_primal()) == f"<Primal: 2 functions of 10 features, {QUADRATIC}>"


# ---------------------------------------------------------------------- conversion to the dual


def test_the_dual_of_what_was_not_trained_on_these_points():
    p = Primal(QUADRATIC, np.arange(10.0))
    assert_allclose(p.to_dual(X)(NEW), p(NEW), atol=1e-9)  # ten features, sixty points
    with pytest.raises(ValueError, match=r"these 4 points: .* with .w. = 16.88, .* tol=1e-06"):
        p.to_dual(X[:4])
    g = p.to_dual(X[:4], tol=1.0)  # with few points, the projection agrees at these points
    assert_allclose(g(X[:4]), p(X[:4]), atol=1e-9)
    assert g.norm()[0] < p.norm()[0]


def test_a_dual_of_zero():
    assert_allclose(Primal(QUADRATIC, np.zeros((10, 2))).to_dual(X).coefficients, 0.0)


@pytest.mark.parametrize("shape", [(9, 4), (4, 9), (6, 6)])
def test_minimum_norm(shape):
    F = np.random.default_rng(1).normal(size=shape)
    F[:, 1] = 2.0 * F[:, 0]  # not of full rank
    W = F.T @ np.random.default_rng(2).normal(size=(shape[0], 2))
    want = np.linalg.pinv(F.T) @ W
    for rows in (F, sp.csr_array(F)):
        A, left = minimum_norm_solution(rows, W)
        assert_allclose(A, want, atol=1e-9)
        assert_allclose(left, 0.0, atol=1e-9)
    for rows in (F, sp.csr_array(F)):
        with pytest.raises(MemoryBudgetError, match=r"rows of|products of features"):
            minimum_norm_solution(rows, W, max_memory=100)


def test_minimum_norm_of_ill_conditioned_counts():
    rng = np.random.default_rng(0)
    F = rng.normal(size=(30, 8)) * 10.0 ** -np.arange(0, 5.6, 0.7)
    W = F.T @ rng.normal(size=(30, 1))
    assert minimum_norm_solution(sp.csr_array(F), W)[1][0] < 1e-12 * np.linalg.norm(W)


# ---------------------------------------------------------------------- estimators

MODELS = [
    KernelRidge(kernel="poly", degree=2, fit_intercept=True),
    KernelRidge(kernel=QUADRATIC + Linear(), solver="nystroem", rank=30),
    KernelRidgeCV(kernel="poly"),
    KernelMachineRegressor("huber", kernel="poly"),
    KernelMachineRegressor("quantile", quantile=[0.2, 0.8], kernel="linear"),
    SVR(kernel="poly"),
    SVR(kernel="linear"),
    OnlineKernelRegressor(kernel="poly", eta0=0.01),
    SparseKernelRegressor(5, kernel=Polynomial(2)),
    KernelRidge(kernel=Features(GaussianBasis(X[:7], 2.0))),
]
CLASSIFIERS = [
    KernelLogisticRegression(kernel="poly"),
    SVC(kernel="poly"),
    SVC(kernel="linear"),
    NuSVC(kernel="poly", nu=0.2),
    KernelPerceptron(kernel="poly"),
    KernelFisherDiscriminant(kernel="poly"),
]


@pytest.mark.parametrize("model", MODELS, ids=str)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_regressors(model):
    model.fit(X, y)
    small = to_primal(model)
    want = model.predict(NEW)
    assert_allclose(small.predict(NEW), want, atol=1e-8 * np.abs(want).max())
    assert type(small) is type(model) and isinstance(small.expansion_, Primal)
    assert not hasattr(small, "X_fit_") and not hasattr(small, "dual_coef_")
    assert isinstance(model.expansion_, Expansion)  # unchanged
    assert small.reduction_ is None and to_primal(small) is small
    assert_allclose(small.fit(X, y).predict(NEW), want, atol=1e-8 * np.abs(want).max())


@pytest.mark.parametrize("two", [True, False], ids=["two classes", "three"])
@pytest.mark.parametrize("model", CLASSIFIERS, ids=str)
def test_classifiers(model, two):
    P, labels = load_iris(return_X_y=True)
    P, labels = (P[50:], labels[50:]) if two else (P, labels)
    model.fit(P, labels)
    small = to_primal(model)
    for name in ("decision_function", "predict_proba", "transform"):
        if hasattr(model, name):
            want = getattr(model, name)(P)
            assert_allclose(getattr(small, name)(P), want, atol=1e-8 * np.abs(want).max())
    assert np.array_equal(small.predict(P), model.predict(P))


def test_several_targets_and_other_machines():
    model = KernelRidge(kernel="poly").fit(X, np.column_stack([y, X]))
    assert to_primal(model).expansion_.weights.shape == (20, 4)
    assert_allclose(to_primal(model).predict(NEW), model.predict(NEW), atol=1e-9)
    clusters = KernelKMeans(3, kernel="poly").fit(X)
    assert_allclose(to_primal(clusters).transform(NEW), clusters.transform(NEW), atol=1e-6)
    one = OneClassSVM(kernel="poly", nu=0.3).fit(X)
    assert_allclose(to_primal(one).decision_function(NEW), one.decision_function(NEW), atol=1e-9)


@pytest.mark.parametrize("solver", ["dense", "nystroem"])
def test_kernel_pca(solver):
    pca = KernelPCA(3, kernel="poly", eigen_solver=solver, whiten=True).fit(X)
    small = to_primal(pca)
    assert_allclose(small.transform(NEW), pca.transform(NEW), atol=1e-8)
    assert_allclose(small.decision_function(NEW), pca.decision_function(NEW), atol=1e-6)
    assert_allclose(small.components_.inner(small.components_), np.eye(3), atol=1e-9)
    assert small.summary().startswith("Kernel PCA of 60 points")
    assert not hasattr(small, "X_fit_") and not hasattr(small, "eigenvectors_")
    with pytest.raises(ValueError, match="not available after to_primal"):
        small.decode(small.transform(NEW))
    with pytest.raises(ValueError, match="contributions are not available after to_primal"):
        small.contributions(NEW)
    with pytest.raises(ValueError, match="random features is already in primal form"):
        to_primal(KernelPCA(2, kernel="rbf", eigen_solver="features", rank=20).fit(X))


@pytest.mark.parametrize("kernel", [Spectrum(2), Normalized(Spectrum(3)), Spectrum(1) ** 2])
def test_strings(kernel):
    model = KernelRidge(0.1, kernel=kernel, fit_intercept=True).fit(WORDS[:30], COUNTS[:30])
    small = to_primal(model)
    new = [*WORDS[30:], "zzz", "abz"]  # with features that do not occur in the training points
    assert_allclose(small.predict(new), model.predict(new), atol=1e-9)
    back = to_dual(small, WORDS[:30])
    assert_allclose(back(new)[:, 0] + model.intercept_, model.predict(new), atol=1e-7)


def test_what_has_no_primal():
    ridge = to_primal(KernelRidge(kernel="poly").fit(X, y))
    with pytest.raises(ValueError, match=r"standard deviations are not available .* no points"):
        ridge.predict(NEW, return_std=True)
    with pytest.raises(ValueError, match=r"leave-one-out .* no points"):
        ridge.leave_one_out()
    with pytest.raises(TypeError, match="RBF has no finite features"):
        to_primal(KernelRidge(kernel="rbf").fit(X, y))
    with pytest.raises(TypeError, match="needs a kernel estimator of mercer"):
        to_primal(Ridge().fit(X, y))
    with pytest.raises(TypeError, match=r"standard deviations .* need its training points"):
        to_primal(GaussianProcessRegressor(Linear() + 1.0, alpha=0.1, optimizer=None).fit(X, y))
    with pytest.raises(TypeError, match="predictions need the training points"):
        to_primal(KernelKNeighborsRegressor(kernel="linear").fit(X, y))
    with pytest.raises(TypeError, match="RandomFeatures has no expansion_"):
        to_primal(RandomFeatures().fit(X))
    for turn in (to_primal, lambda model: mercer.compress(model, 3)):
        with pytest.raises(TypeError, match="Nystroem cannot be compressed"):
            turn(Nystroem("linear", n_components=3).fit(X))


# ---------------------------------------------------------------------- linear models

LINEAR = [
    make_pipeline(ExplicitFeatures(kernel=QUADRATIC), Ridge(0.1)),
    make_pipeline(PolynomialFeatures(3), Ridge(1.0, fit_intercept=False)),
    make_pipeline(StandardScaler(), PolynomialFeatures(4, include_bias=False), Ridge(1.0)),
    make_pipeline(Nystroem("rbf", n_components=20), Ridge(0.1)),
    make_pipeline(RandomFeatures(31), Ridge(0.1)),
    make_pipeline(StandardScaler(), LinearRegression()),
    Ridge(1.0),
]


@pytest.mark.parametrize("model", LINEAR, ids=str)
def test_the_dual_of_a_linear_regression(model):
    model.fit(X, y)
    b = (model[-1] if hasattr(model, "steps") else model).intercept_
    assert_allclose(to_dual(model, X)(NEW)[:, 0] + b, model.predict(NEW), atol=1e-7)


@pytest.mark.parametrize("last", [LogisticRegression(), LinearSVC(), Perceptron()], ids=str)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_dual_of_a_linear_classifier(last):
    P, labels = load_iris(return_X_y=True)
    model = make_pipeline(ExplicitFeatures(kernel="poly"), last).fit(P[::3], labels[::3])
    f = to_dual(model, P[::3])
    want = model.decision_function(P)
    assert_allclose(f(P) + model[-1].intercept_, want, atol=1e-6 * np.abs(want).max())


def test_the_dual_of_explicit_features_is_the_kernel_machine():
    model = make_pipeline(ExplicitFeatures(kernel=QUADRATIC), Ridge(0.1, fit_intercept=False))
    dual = KernelRidge(0.1, kernel=QUADRATIC).fit(X[:8], y[:8])  # fewer points than features
    f = to_dual(model.fit(X[:8], y[:8]), X[:8])
    assert f.kernel == QUADRATIC
    assert_allclose(f.coefficients[:, 0], dual.dual_coef_, atol=1e-9)
    assert_allclose(to_primal(dual).expansion_.weights[:, 0], model[-1].coef_, atol=1e-9)


def test_what_has_no_dual():
    with pytest.raises(TypeError, match=r"KNeighborsRegressor\(\) has no attribute coef_"):
        to_dual(KNeighborsRegressor().fit(X, y), X)
    lasso = make_pipeline(PolynomialFeatures(6), Lasso(0.01, max_iter=100_000)).fit(X, y)
    with pytest.raises(
        ValueError, match=r"not a linear combination of the features of these 60 .* lasso"
    ):
        to_dual(lasso, X)


# ---------------------------------------------------------------------- sizes


def test_sizes_are_those_of_the_model():
    sizes = primal_or_dual(QUADRATIC, X, 2)
    assert sizes == PrimalDualSizes(60, 10, 2, 10.0, 3.0)
    f = Expansion(QUADRATIC, X, np.column_stack([y, y]))
    assert sizes.stored.dual == f.points.size + f.coefficients.size
    assert sizes.stored.primal == f.to_primal().weights.size
    words = primal_or_dual(Spectrum(2), ["abba", "cab"])  # ab, ba, bb; ab, ca
    assert words == PrimalDualSizes(2, 4, 1, 2.5, 2.5)
    assert primal_or_dual(QUADRATIC + Linear(), X).numbers == 2 * COLUMNS
    assert primal_or_dual(Features(GaussianBasis(X[:7])), X).numbers == 7
    assert primal_or_dual(Linear(), sp.csr_array([[1.0, 0, 0], [0, 0, 0]])).entries == 0.5
    with pytest.raises(TypeError, match="RBF has no finite features"):
        primal_or_dual(RBF(), X)


@given(
    M=st.integers(1, 5000), s=st.integers(1, 5000), m=st.integers(1, 20), share=st.floats(0.01, 1)
)
def test_costs_are_equal_at_the_crossover(M, s, m, share):
    for name in ("stored", "prediction", "training"):
        n = getattr(PrimalDualSizes(1, M, m, share * M, s), name).crossover
        at = getattr(PrimalDualSizes(n, M, m, share * M, s), name)
        assert at.dual == pytest.approx(at.primal, rel=1e-6)
        more = getattr(PrimalDualSizes(1.1 * n, M, m, share * M, s), name)
        less = getattr(PrimalDualSizes(0.9 * n, M, m, share * M, s), name)
        assert (more.cheaper, less.cheaper) == ("primal", "dual")
    dense = PrimalDualSizes(1, M, m, M, min(s, M)).training.crossover
    assert 0.999 < dense / M < 1.88  # between s = M and s = 0: t^3 = 3 t + 1


def test_sizes_as_text():
    lines = str(primal_or_dual(Polynomial(3), np.zeros((200, 10)))).splitlines()
    assert lines[0].startswith("200 points, 286 features, 1 function ")
    assert lines[3].split()[-5:] == ["1.53e+06", "1.21e+07", "dual", "524", "points"]
