"""Cutting planes for the hinge loss: the certificate, agreement with SVC, weights, and errors."""

import re
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC
from sklearn.utils.class_weight import compute_sample_weight

from mercer import MemoryBudgetError, NotPositiveDefiniteError, SparseKernelClassifier
from mercer.datasets import moons
from mercer.kernels import RBF, Linear, Matern, Polynomial, Sigmoid
from mercer.solvers import CuttingPlanes, Hinge, ReducedExpansionRisk, Status
from mercer.solvers.risk._cutting_planes import _CutModel, _solve_simplex_qp

rng = np.random.default_rng(3)
X, y = moons(100, noise=0.25, random_state=0)
OPTIONS = {"loss": "hinge", "solver": "cutting-plane", "gamma": 2.0, "alpha": 1e-3}


def classifier(n_vectors=20, **options):
    return SparseKernelClassifier(n_vectors, **{**OPTIONS, **options})


def risk_of(X, Y, alpha=1e-3, kernel=None, intercept=True, weights=None):
    kernel = kernel or RBF(0.5)
    w = np.ones(len(Y)) if weights is None else weights
    return ReducedExpansionRisk(kernel, X, Y, Hinge(), w / w.sum(), alpha, intercept)


# ---------------------------------------------------------------------- agreement with an SVM


@pytest.mark.parametrize("weighted", [False, True])
def test_all_points_as_vectors_give_the_svm(weighted):
    """The minimum over the whole RKHS is that of LIBSVM with C = 1 / (2 n alpha)."""
    w = rng.uniform(0.2, 3.0, len(y)) if weighted else np.ones(len(y))
    ours = classifier(len(y), tol=1e-4).fit(X, y, sample_weight=w)
    C = 1.0 / (2.0 * w.sum() * OPTIONS["alpha"])
    svm = SVC(C=C, gamma=2.0, tol=1e-8).fit(X, y, sample_weight=w)
    values = svm.decision_function(X)
    norm = (svm.dual_coef_ @ RBF.from_gamma(2.0)(svm.support_vectors_) @ svm.dual_coef_.T).item()
    losses = np.maximum(1.0 - np.where(y == svm.classes_[1], 1, -1) * values, 0.0)
    optimum = OPTIONS["alpha"] * norm + w @ losses / w.sum()
    certificate = ours.report_.certificate
    assert certificate["objective"] == pytest.approx(optimum, rel=1.1e-4)
    assert certificate["lower bound"] <= optimum * (1 + 1e-9)
    assert certificate["residual of the cuts"] < 1e-4
    np.testing.assert_allclose(ours.decision_function(X), values, atol=0.03)


def test_the_objective_of_few_vectors_is_above_that_of_the_svm():
    all_points = classifier(len(y), tol=1e-4).fit(X, y)
    optimum = all_points.report_.certificate["objective"]
    last = np.inf
    for m in (2, 5, 10, 20):
        certificate = classifier(m).fit(X, y).report_.certificate
        assert certificate["lower bound for all vectors"] <= optimum
        assert certificate["objective"] >= optimum * (1 - 1e-4)
        assert certificate["objective"] <= last * (1 + 1e-3)
        last = certificate["objective"]
    assert last < 1.02 * optimum  # 20 pre-images nearly suffice


@pytest.mark.parametrize("intercept", [True, False])
def test_given_vectors_are_kept_and_their_weights_are_optimal(intercept):
    Z = X[:7]
    model = classifier(init=Z, tol=1e-4, fit_intercept=intercept).fit(X, y)
    np.testing.assert_array_equal(model.vectors_, Z)
    signs = np.where(y == model.classes_[1], 1.0, -1.0)[:, None]
    risk = risk_of(X, signs, kernel=model.kernel_, intercept=intercept)
    B = np.vstack([model.dual_coef_, model.intercept_[: int(intercept), None]])
    value = risk.value(Z, B)
    assert value == pytest.approx(model.report_.certificate["objective"], rel=1e-10)
    for scale in (1e-3, 1e-1):
        for _ in range(20):
            worse = risk.value(Z, B + scale * rng.normal(size=B.shape) * np.abs(B).max())
            assert worse > value * (1 - 1e-4)


def test_several_classes_are_trained_one_versus_rest():
    X, y = load_iris(return_X_y=True)
    Z = X[::20]
    options = {"init": Z, "tol": 1e-4, "gamma": 0.3}
    whole = classifier(**options).fit(X, y)
    for c in range(3):
        single = classifier(**options).fit(X, y == c)
        difference = whole.decision_function(X)[:, c] - single.decision_function(X)
        assert np.abs(difference).max() < 0.05


def test_digits():
    X, y = load_digits(return_X_y=True)
    X, y = X[:300] / 16.0, y[:300]
    model = classifier(25, gamma=0.05, tol=0.05).fit(X, y)
    assert model.score(X, y) > 0.95
    assert model.vectors_.shape == (25, 64)
    assert model.dual_coef_.shape == (25, 10)


# ---------------------------------------------------------------------- the parts


def test_the_fractions_at_the_optimal_intercept_cancel():
    for seed in range(20):
        draw = np.random.default_rng(seed)
        n = draw.integers(2, 30)
        signs = np.where(np.arange(n) % 3 == 0, 1.0, -1.0)
        risk = risk_of(np.zeros((n, 1)), signs[:, None], weights=draw.uniform(0.1, 1.0, n))
        f = draw.normal(size=n).round(draw.integers(0, 3))  # with ties
        model = _CutModel(risk, signs, 0)
        c, fractions = model._violations(f)
        assert np.all((fractions >= 0) & (fractions <= 1))
        assert abs(risk.weights @ (fractions * signs)) < 1e-12
        loss = np.maximum(1 - signs * (f + c), 0)
        assert risk.weights @ loss == pytest.approx(
            risk.weights @ (fractions * (1 - signs * f)), abs=1e-12
        )
        grid = np.linspace(-5, 5, 401)[:, None]
        assert risk.weights @ loss <= 1e-12 + np.min(
            np.maximum(1 - signs * (f + grid), 0) @ risk.weights
        )


def test_the_line_search_finds_the_minimum():
    signs = np.where(y == np.unique(y)[1], 1.0, -1.0)
    for seed in range(20):
        draw = np.random.default_rng(seed)
        model = _CutModel(risk_of(X, signs[:, None], alpha=10.0 ** -(seed % 4)), signs, 3)
        model.u, model.f = draw.normal(size=3), draw.normal(size=len(y))
        step, change = draw.normal(size=3), 2 * signs + draw.normal(size=len(y))
        t = model._line_search(step, change)

        def value(t, model=model, step=step, change=change):
            return model._objective(model.u + t * step, model.f + t * change, model.intercept)

        assert value(t) <= min(value(s) for s in np.linspace(0, max(3.0, 2 * t), 500)) + 1e-12


@pytest.mark.parametrize("shape", [(1, 3), (4, 9), (40, 3), (6, 0)])
def test_the_quadratic_program(shape):
    A, offsets = rng.normal(size=shape), rng.normal(size=shape[0])
    v = _solve_simplex_qp(A, offsets, 1e-6)
    assert np.all(v >= 0) and v.sum() == pytest.approx(1.0)
    slopes = A @ (A.T @ v) - offsets  # at the minimum, slopes are equal where v > 0
    assert v @ (slopes - slopes.min()) <= 1e-5 * max(1.0, np.abs(slopes).max())


@pytest.mark.parametrize(
    "kernel", [RBF(0.7), Matern(nu=2.5), Polynomial(degree=3), 2.0 * RBF(0.5) + Linear()], ids=str
)
def test_vectors_are_found_for_other_kernels(kernel):
    model = classifier(12, kernel=kernel, gamma="scale").fit(X, y)
    assert model.score(X, y) > 0.85
    assert model.report_.status is Status.CONVERGED


def test_a_kernel_of_low_rank_needs_few_vectors():
    model = classifier(20, kernel="linear", fit_intercept=False).fit(X, y)
    assert len(model.vectors_) == 2
    assert model.report_.certificate["residual of the cuts"] < 1e-5


# ---------------------------------------------------------------------- points and weights


def test_weights_are_multiplicities():
    counts = rng.integers(0, 3, len(y))
    options = {"init": X[:6], "tol": 1e-4}
    one = classifier(**options).fit(X, y, sample_weight=counts)
    other = classifier(**options).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    assert one.report_.certificate["objective"] == pytest.approx(
        other.report_.certificate["objective"], rel=2e-4
    )
    np.testing.assert_allclose(one.decision_function(X), other.decision_function(X), atol=0.05)


def test_class_weights_are_sample_weights():
    one = classifier(5, class_weight="balanced").fit(X[:80], y[:80])
    w = compute_sample_weight("balanced", y[:80])
    other = classifier(5).fit(X[:80], y[:80], sample_weight=w)
    np.testing.assert_array_equal(one.dual_coef_, other.dual_coef_)


def test_results_are_reproducible_and_sparse_rows_are_dense_rows():
    rows = np.where(np.abs(X) > 0.4, X, 0.0)
    one, two = (classifier(6, random_state=5).fit(rows, y) for _ in range(2))
    np.testing.assert_array_equal(one.vectors_, two.vectors_)
    np.testing.assert_array_equal(one.dual_coef_, two.dual_coef_)
    sparse = classifier(6, random_state=5).fit(sp.csr_array(rows), y)
    np.testing.assert_allclose(sparse.vectors_, one.vectors_, atol=1e-4)


def test_kernel_values_that_are_not_stored(monkeypatch):
    stored = classifier(8, tol=1e-4).fit(X, y)
    monkeypatch.setattr("mercer.solvers.risk._reduced_expansion.budget_in_bytes", lambda _: 0)
    again = classifier(8, tol=1e-4).fit(X, y)
    assert again.report_.certificate["objective"] == pytest.approx(
        stored.report_.certificate["objective"], rel=3e-4
    )


def test_memory_is_within_the_budget():
    points = np.random.default_rng(0).normal(size=(20_000, 2))
    labels = np.square(points).sum(axis=1) > 1.4
    model = classifier(5, alpha=1e-2, tol=0.05, max_memory="40 MB")
    tracemalloc.start()
    model.fit(points, labels)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40e6
    with pytest.raises(MemoryBudgetError, match="learning 5 vectors from 20000 points needs"):
        classifier(5, max_memory="1 MB").fit(points, labels)


def test_progress_is_printed(capsys):
    classifier(5, verbose=1).fit(X, y)
    assert re.search(r"iteration 20: 5 vectors, objective 0\.\d+, gap", capsys.readouterr().out)


# ---------------------------------------------------------------------- errors


def test_too_few_cutting_planes():
    with pytest.warns(ConvergenceWarning, match=r"after 4 cutting planes with . of 20 vectors"):
        model = classifier(20, max_iter=4).fit(X, y)
    assert model.report_.status is Status.NOT_CONVERGED
    assert model.n_iter_ == 4
    assert np.all(np.diff(model.objective_curve_) <= 0)


@pytest.mark.parametrize(
    "options", [{"loss": "logistic"}, {"solver": "lbfgs"}, {"loss": "squared_hinge"}]
)
def test_solver_and_loss_have_to_fit(options):
    with pytest.raises(ValueError, match=r"does not minimise loss=.*Pass solver='cutting-plane'"):
        classifier(**options).fit(X, y)


def test_parameters_of_the_kernel_are_not_learned():
    with pytest.raises(ValueError, match="does not learn the parameters of the kernel"):
        classifier(learn_kernel=True).fit(X, y)


def test_no_probabilities():
    with pytest.raises(AttributeError, match="predict_proba"):
        classifier(3).fit(X, y).predict_proba(X)


def test_the_solver_needs_the_hinge_loss():
    from mercer.solvers import Logistic

    risk = ReducedExpansionRisk(RBF(), X, np.ones((100, 1)), Logistic(), np.full(100, 1e-2), 1e-3)
    with pytest.raises(TypeError, match="CuttingPlanes minimises the loss Hinge"):
        CuttingPlanes().minimize(risk, X[:2])


@pytest.mark.filterwarnings("ignore::mercer.NotMercerWarning")  # intended
def test_kernels_that_cannot_be_used():
    with pytest.raises(NotPositiveDefiniteError, match="is not positive semidefinite"):
        classifier(init=X[:20], kernel=Sigmoid(gamma=2.0, coef0=-1.0), gamma="scale").fit(X, y)
    with pytest.raises(ValueError, match=r"k\(x, z\) is not finite.*Scale the features"):
        classifier(init=1e200 * X[:3], kernel=Polynomial(degree=3), gamma="scale").fit(X, y)


def test_initial_vectors_that_are_equal():
    model = classifier(init=np.repeat(X[:3], 2, axis=0)).fit(X, y)
    np.testing.assert_array_equal(model.vectors_, X[:3])


def test_a_function_without_vectors():
    with pytest.warns(ConvergenceWarning, match="after 0 cutting planes with 0 of 5 vectors"):
        model = classifier(5, max_iter=0).fit(X, y)
    np.testing.assert_array_equal(model.dual_coef_, np.zeros((1, 1)))
    zero = classifier(5, kernel="linear", gamma="scale").fit(np.zeros((6, 2)), [0, 1, 1] * 2)
    assert zero.report_.certificate["objective"] == pytest.approx(2 / 3)
