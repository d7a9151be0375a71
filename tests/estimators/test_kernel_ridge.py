"""KernelRidge against scikit-learn, against the primal problem, and with invalid input."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.kernel_ridge
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF as GPRBF
from sklearn.gaussian_process.kernels import ConstantKernel, WhiteKernel
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import Expansion, KernelRidge, MemoryBudgetError, NotPositiveDefiniteError, compress
from mercer.kernels import (
    RBF,
    Callable,
    Features,
    Linear,
    Polynomial,
    QuadraticMap,
    Select,
    Sigmoid,
    ThinPlate,
)
from mercer.solvers import Cholesky, LeastSquares, Status

rng = np.random.default_rng(3)
X = rng.uniform(0.0, 1.0, size=(80, 5))  # non-negative, so that chi2 is defined
Z = rng.uniform(0.0, 1.0, size=(33, 5))
y = np.sin(3 * X[:, 0]) + X[:, 1]
Y = np.stack([y, X[:, 2] ** 2], axis=1)

NAMES = [
    "linear",
    "poly",
    "polynomial",
    "rbf",
    "laplacian",
    "sigmoid",
    "cosine",
    "chi2",
    "additive_chi2",
]


@pytest.mark.filterwarnings("ignore::mercer.NotMercerWarning")  # intended
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("options", [{}, {"gamma": 0.7, "degree": 2, "coef0": 0.5}], ids=str)
def test_equals_scikit_learn_for_every_name(name, options):
    # additive_chi2 is not positive definite, but a large ridge makes the system definite.
    alpha = 500.0 if name == "additive_chi2" else 0.5
    ours = KernelRidge(alpha, kernel=name, **options).fit(X, Y)
    if name == "chi2" and not options:
        options = {"gamma": 1.0}  # the default of pairwise_kernels, where None is an error
    theirs = sklearn.kernel_ridge.KernelRidge(alpha, kernel=name, **options).fit(X, Y)
    np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(ours.predict(Z), theirs.predict(Z), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("weights", [None, "random", "zeros", 0.3])
@pytest.mark.parametrize("alpha", [0.4, [0.1, 2.0]], ids=str)
def test_weights_and_several_alphas(weights, alpha):
    w = {"random": rng.uniform(size=80), "zeros": (rng.uniform(size=80) > 0.3).astype(float)}
    w = w.get(weights, weights)
    ours = KernelRidge(alpha, kernel="rbf").fit(X, Y, sample_weight=w)
    theirs = sklearn.kernel_ridge.KernelRidge(alpha, kernel="rbf").fit(X, Y, sample_weight=w)
    np.testing.assert_allclose(ours.predict(Z), theirs.predict(Z), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, rtol=1e-8, atol=1e-9)


def test_quadratic_features_and_the_quadratic_kernel_are_one_model():
    """The same model in the primal (explicit features) and in the dual (kernel)."""
    phi = QuadraticMap(coef0=1.0)
    primal = Ridge(alpha=0.3, fit_intercept=False).fit(phi(X), y)
    kernel = Polynomial(degree=2, coef0=1.0)
    for dual in (
        KernelRidge(0.3, kernel=kernel),
        KernelRidge(0.3, kernel=Features(phi)),
        KernelRidge(0.3, kernel="poly", degree=2, coef0=1, gamma=1.0),
    ):
        dual.fit(X, y)
        np.testing.assert_allclose(dual.predict(Z), primal.predict(phi(Z)), rtol=1e-8)
        # w = Phi^T a, by the representer theorem.
        np.testing.assert_allclose(phi(X).T @ dual.dual_coef_, primal.coef_, rtol=1e-7, atol=1e-9)


def test_every_way_of_saying_rbf():
    reference = KernelRidge(0.1, kernel="rbf", gamma=0.5).fit(X, y).predict(Z)
    ways = [
        RBF(1.0),
        RBF.from_gamma(0.5),
        GPRBF(1.0),
        lambda A, B: np.exp(-0.5 * ((A[:, None] - B[None]) ** 2).sum(axis=-1)),
        lambda a, b: np.exp(-0.5 * ((a - b) ** 2).sum()),
        Callable(lambda a, b: np.exp(-0.5 * ((a - b) ** 2).sum()), contract="pair"),
    ]
    for kernel in ways:
        model = KernelRidge(0.1, kernel=kernel).fit(X, y)
        np.testing.assert_allclose(model.predict(Z), reference, rtol=1e-9)
    K = RBF(1.0)
    model = KernelRidge(0.1, kernel="precomputed").fit(K(X), y)
    np.testing.assert_allclose(model.predict(K(Z, X)), reference, rtol=1e-9)


def test_a_white_kernel_is_a_ridge():
    white = KernelRidge(0.0, kernel=GPRBF(1.0) + WhiteKernel(0.1)).fit(X, y)
    ridge = KernelRidge(0.1, kernel=RBF(1.0)).fit(X, y)
    np.testing.assert_allclose(white.predict(Z), ridge.predict(Z), rtol=1e-9)


@pytest.mark.parametrize(("rule", "gamma"), [("scale", 1 / (5 * X.var())), ("auto", 1 / 5)])
def test_rules_for_gamma(rule, gamma):
    ours = KernelRidge(0.1, kernel="rbf", gamma=rule).fit(X, y)
    assert ours.kernel_.length_scale == pytest.approx(np.sqrt(0.5 / gamma))
    theirs = sklearn.kernel_ridge.KernelRidge(0.1, kernel="rbf", gamma=gamma).fit(X, y)
    np.testing.assert_allclose(ours.predict(Z), theirs.predict(Z), rtol=1e-9)


def test_sparse_equals_dense():
    for name in ("linear", "rbf", "poly", "cosine", "laplacian", "chi2"):
        dense = KernelRidge(0.5, kernel=name).fit(X, y)
        sparse = KernelRidge(0.5, kernel=name).fit(sp.csr_array(X), y)
        np.testing.assert_allclose(sparse.predict(sp.csr_array(Z)), dense.predict(Z), rtol=1e-8)
        np.testing.assert_allclose(sparse.predict(Z), dense.predict(Z), rtol=1e-8)
        np.testing.assert_allclose(dense.predict(sp.csr_array(Z)), dense.predict(Z), rtol=1e-8)


def test_the_model_is_an_expansion():
    model = KernelRidge(0.1, kernel="rbf").fit(X, Y)
    assert isinstance(model.expansion_, Expansion)
    np.testing.assert_allclose(model.expansion_(Z), model.predict(Z), rtol=1e-13)
    # |f|^2 = a^T K a.
    a = model.dual_coef_
    norms = np.einsum("ic,ic->c", a, model.kernel_(X) @ a)
    np.testing.assert_allclose(model.expansion_.norm() ** 2, norms, rtol=1e-10)
    assert model.report_.residual < 1e-12
    assert model.solver_ == Cholesky()


def test_nested_parameters_and_model_selection():
    kernel = RBF(1.0) + 0.5 * Linear()
    model = KernelRidge(0.1, kernel=kernel)
    assert model.get_params()["kernel__terms__0__length_scale"] == 1.0
    model.set_params(kernel__terms__0__length_scale=2.0, kernel__terms__1__factor=0.25, alpha=1.0)
    assert model.kernel == RBF(2.0) + 0.25 * Linear()
    assert kernel == RBF(1.0) + 0.5 * Linear()  # the given kernel does not change
    assert clone(model).kernel == model.kernel
    with pytest.raises(ValueError, match="Invalid parameter 'terms__7__length_scale'"):
        model.set_params(kernel__terms__7__length_scale=1.0)
    search = GridSearchCV(
        make_pipeline(StandardScaler(), KernelRidge(0.01, kernel=RBF(1.0))),
        {"kernelridge__kernel__length_scale": [0.01, 2.0]},
    ).fit(X, y)
    assert search.best_params_ == {"kernelridge__kernel__length_scale": 2.0}


def test_cross_validation_slices_precomputed_rows_and_columns():
    search = GridSearchCV(KernelRidge(kernel="precomputed"), {"alpha": [1e-3, 10.0]})
    assert search.fit(RBF(0.5)(X), y).best_params_ == {"alpha": 1e-3}


def test_a_singular_system_falls_back_and_says_so():
    twice = np.concatenate([X, X])
    model = KernelRidge(0.0, kernel="rbf")
    with pytest.warns(UserWarning, match="Singular matrix in solving dual problem") as said:
        model.fit(twice, np.concatenate([y, y]))
    assert said[0].filename == __file__
    assert model.report_.status is Status.SINGULAR
    np.testing.assert_allclose(model.predict(X), y, atol=1e-4)
    with pytest.raises(NotPositiveDefiniteError, match="Try a larger alpha"):
        KernelRidge(0.0, kernel="rbf", solver="cholesky").fit(twice, np.concatenate([y, y]))
    quiet = KernelRidge(0.0, kernel="rbf", solver=LeastSquares()).fit(twice, np.append(y, y))
    np.testing.assert_allclose(quiet.predict(X), y, atol=1e-4)


@pytest.mark.filterwarnings("ignore::mercer.NotMercerWarning")  # intended
def test_an_indefinite_kernel_is_reported():
    K = np.diag([1.0, 1.0, -1.0])
    with pytest.warns(UserWarning, match="not positive semidefinite"):
        KernelRidge(0.1, kernel="precomputed").fit(K, [1.0, 2.0, 3.0])
    with pytest.raises(NotPositiveDefiniteError, match="pivot"):
        KernelRidge(0.0, kernel=Sigmoid(), solver="cholesky").fit(X, y)


def test_float32_stays_close():
    small = KernelRidge(1.0, kernel="rbf").fit(X.astype(np.float32), y.astype(np.float32))
    large = KernelRidge(1.0, kernel="rbf").fit(X, y)
    np.testing.assert_allclose(small.predict(Z.astype(np.float32)), large.predict(Z), atol=1e-4)


@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.float16, bool])
def test_other_numbers_are_read_as_float64(dtype):
    A = rng.integers(0, 2, size=(30, 4)).astype(dtype)
    ours = KernelRidge(0.5, kernel="rbf").fit(A, y[:30]).predict(A)
    np.testing.assert_allclose(
        ours, KernelRidge(0.5, kernel="rbf").fit(A.astype(float), y[:30]).predict(A), rtol=1e-12
    )


def test_one_point_and_constant_columns():
    one = KernelRidge(1.0, kernel="rbf").fit([[1.0, 2.0]], [3.0])
    assert one.predict([[1.0, 2.0]]) == pytest.approx([1.5])
    constant = np.ones((6, 2))
    for gamma in ("scale", "auto", "median"):
        model = KernelRidge(1.0, kernel="rbf", gamma=gamma).fit(constant, np.ones(6))
        assert model.predict(constant) == pytest.approx(np.full(6, 6 / 7))


def test_the_caller_may_change_x_afterwards():
    A = X.copy()
    model = KernelRidge(0.1, kernel="rbf").fit(A, y)
    before = model.predict(Z)
    A[:] = 0.0
    assert np.array_equal(model.predict(Z), before)


def test_numbers_that_overflow():
    with pytest.raises(ValueError, match="K has entries that are not finite"):
        KernelRidge(kernel="poly", degree=9).fit(1e150 * X, y)


def test_columns_of_a_table_by_name():
    pd = pytest.importorskip("pandas")
    words = np.array(["red", "green", "blue", "red"])[rng.integers(0, 4, size=80)]
    table = pd.DataFrame({"size": X[:, 0], "weight": X[:, 1], "colour": words})
    same = Callable(lambda s, t: float(s == t), contract="pair")
    kernel = Select(RBF(0.5), ["size", "weight"]) * Select(same, "colour")
    model = KernelRidge(0.01, kernel=kernel).fit(table, y)
    K = RBF(0.5)(X[:, :2]) * (words[:, None] == words)
    expected = K @ np.linalg.solve(K + 0.01 * np.eye(80), y)
    np.testing.assert_allclose(model.predict(table), expected, rtol=1e-8)


def test_points_of_any_kind():
    words = ["kernel", "mercer", "hilbert", "gram", "ridge", "points"]
    overlap = Callable(lambda s, t: len(set(s) & set(t)), contract="pair")
    model = KernelRidge(0.1, kernel=overlap).fit(words, np.arange(6.0))
    assert model.predict(["kern"]).shape == (1,)
    assert not hasattr(model, "n_features_in_")
    with pytest.raises(ValueError, match="6 points, but y has 5 targets"):
        KernelRidge(kernel=overlap).fit(words, np.arange(5.0))
    with pytest.raises(ValueError, match="at least one point"):
        KernelRidge(kernel=overlap).fit([], [])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"alpha": -1}, "alpha"),
        ({"alpha": [1.0, 2.0, 3.0]}, "got 3 values for 1 targets"),
        ({"alpha": [-1.0]}, "finite and non-negative"),
        ({"kernel": "gaussian"}, r"unknown name 'gaussian'; did you mean RBF\?"),
        ({"gamma": "wide", "kernel": "rbf"}, "The 'gamma' parameter of KernelRidge must be"),
        ({"gamma": -1.0, "kernel": "rbf"}, "The 'gamma' parameter of KernelRidge must be"),
        ({"solver": "magic"}, "The 'solver' parameter of KernelRidge must be"),
        ({"kernel": lambda A, B: np.ones(3)}, "returned shape"),
        ({"kernel": RBF((1.0, 2.0))}, "has 2 length scales, but the points have 5 columns"),
    ],
)
def test_parameters_that_make_no_sense(change, message):
    with pytest.raises(ValueError, match=message):
        KernelRidge(**change).fit(X, y)


def test_data_that_make_no_sense():
    with pytest.raises(ValueError, match="NaN"):
        KernelRidge().fit(np.where(X > 0.99, np.nan, X) * np.nan, y)
    with pytest.raises(ValueError, match="infinity"):
        KernelRidge().fit(np.where(X > 0.5, np.inf, X), y)
    with pytest.raises(ValueError, match="X has 3 features, but KernelRidge is expecting 5"):
        KernelRidge().fit(X, y).predict(X[:, :3])
    with pytest.raises(ValueError, match="0 sample"):
        KernelRidge().fit(X[:0], y[:0])
    with pytest.raises(ValueError, match="non-negative"):
        KernelRidge().fit(X, y, sample_weight=-np.ones(80))
    with pytest.raises(ValueError, match="at least one non-zero"):
        KernelRidge().fit(X, y, sample_weight=np.zeros(80))
    with pytest.raises(ValueError, match="not square"):
        KernelRidge(kernel="precomputed").fit(X, y)
    with pytest.raises(NotFittedError):
        KernelRidge().predict(X)
    with pytest.raises(MemoryBudgetError, match="does not fit the memory budget of 1000 bytes"):
        KernelRidge(max_memory=1000).fit(X, y)


def test_progress_is_printed_when_asked(capsys):
    KernelRidge(verbose=1).fit(X, y)
    out = capsys.readouterr().out
    assert "[KernelRidge] Cholesky() of <DenseGram 80x80" in out and "residual" in out
    KernelRidge().fit(X, y)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("smallest", [1e-20, 1e-12, 1e-3])
def test_weights_over_many_orders_of_magnitude(smallest):
    w = np.geomspace(smallest, 1.0, 80)
    ours = KernelRidge(0.5, kernel="rbf").fit(X, y, sample_weight=w)
    theirs = sklearn.kernel_ridge.KernelRidge(0.5, kernel="rbf").fit(X, y, sample_weight=w)
    np.testing.assert_allclose(ours.predict(Z), theirs.predict(Z), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.int8, bool])
def test_the_type_of_y_costs_no_digits(dtype):
    t = (y > 0.8).astype(dtype)
    model = KernelRidge(1e-9, kernel="rbf", gamma=5.0).fit(X, t)
    assert model.dual_coef_.dtype == np.float64
    expected = KernelRidge(1e-9, kernel="rbf", gamma=5.0).fit(X, t.astype(float))
    assert np.array_equal(model.dual_coef_, expected.dual_coef_)


def test_nothing_is_left_of_an_earlier_fit():
    words = ["kernel", "mercer", "hilbert"]
    overlap = Callable(lambda s, t: len(set(s) & set(t)), contract="pair")
    model = KernelRidge().fit(X, y).set_params(kernel=overlap).fit(words, [1.0, 2.0, 3.0])
    assert not hasattr(model, "n_features_in_")
    words[0] = "changed"
    assert model.X_fit_[0] == "kernel"


def test_parameters_of_a_name():
    with pytest.raises(
        ValueError, match="kernel='rbf' is a kernel given by name, whose parameters"
    ):
        KernelRidge(kernel="rbf").set_params(kernel__length_scale=2.0)
    with pytest.raises(ValueError, match="The 'gamma' parameter of KernelRidge must be"):
        KernelRidge(kernel="rbf", gamma=0).fit(X, y)


def test_sparse_precomputed_values():
    K = RBF(0.5)(X)
    ours = KernelRidge(0.1, kernel="precomputed").fit(sp.csr_array(K), y)
    expected = KernelRidge(0.1, kernel="precomputed").fit(K, y)
    np.testing.assert_allclose(ours.dual_coef_, expected.dual_coef_, rtol=1e-12)


def test_least_squares_counts_in_the_budget():
    for model in (
        KernelRidge(solver="lstsq"),
        KernelRidge(solver=LeastSquares()),
        KernelRidge([1.0, 2.0]),
    ):
        model.set_params(max_memory=int(1.5 * 8 * 80 * 80))
        with pytest.raises(MemoryBudgetError, match="kernel ridge regression of 80 points needs"):
            model.fit(X, Y)


# ---------------------------------------------------------------------- intercept, std, dual basis


@pytest.mark.parametrize("weights", [None, rng.uniform(0.1, 2.0, size=80)], ids=["equal", "some"])
def test_a_linear_kernel_with_intercept_is_ridge(weights):
    for solver in ("cholesky", "lstsq", "mixed", "cg", "nystroem", "krill"):
        ours = KernelRidge(0.3, fit_intercept=True, solver=solver).fit(X, Y + 5.0, weights)
        theirs = Ridge(0.3).fit(X, Y + 5.0, weights)
        np.testing.assert_allclose(ours.predict(Z), theirs.predict(Z), rtol=1e-7)
        np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-7)
        np.testing.assert_allclose(ours.expansion_(Z) + ours.intercept_, ours.predict(Z))


@pytest.mark.parametrize("solver", ["cholesky", "mixed", "cg", "nystroem", "krill"])
def test_every_solver_finds_the_same_function(solver):
    w = np.where(np.arange(80) % 5 == 0, 0.0, np.linspace(0.5, 2.0, 80))
    options = {"kernel": "rbf", "gamma": 2.0, "fit_intercept": True}
    reference = KernelRidge([0.1, 3.0], solver="lstsq", **options).fit(X, Y, w)
    model = KernelRidge([0.1, 3.0], solver=solver, rank=64, **options).fit(X, Y, w)
    np.testing.assert_allclose(model.predict(Z), reference.predict(Z), rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(model.intercept_, reference.intercept_, rtol=1e-7)
    assert model.report_.status in {Status.DIRECT, Status.CONVERGED, Status.APPROXIMATE}


def test_predictive_deviations_are_those_of_a_gaussian_process():
    """Those of scikit-learn, with the prior scaled by the maximum likelihood factor."""
    K = RBF(0.7)
    mean, std = KernelRidge(0.1, kernel=K).fit(X, Y).predict(Z, return_std=True)
    scale = np.einsum("ic,ic->c", Y, np.linalg.solve(K(X) + 0.1 * np.eye(80), Y)) / 80
    for c in range(2):
        theirs = GaussianProcessRegressor(
            ConstantKernel(scale[c]) * GPRBF(0.7), alpha=0.1 * scale[c], optimizer=None
        ).fit(X, Y[:, c])
        m, s = theirs.predict(Z, return_std=True)
        np.testing.assert_allclose(mean[:, c], m, rtol=1e-9)
        np.testing.assert_allclose(std[:, c], s, rtol=1e-7)
        # No other factor has a higher likelihood.
        for factor in (0.9, 1.1):
            theta = theirs.kernel_.theta + np.array([np.log(factor), 0.0])
            theirs.alpha = 0.1 * scale[c] * factor
            assert theirs.log_marginal_likelihood(theta) < theirs.log_marginal_likelihood_value_


@pytest.mark.parametrize("weights", [None, np.linspace(0.2, 3.0, 80)], ids=["equal", "some"])
def test_deviations_with_an_intercept_are_those_of_a_wide_prior(weights):
    wide = 1e6
    free = KernelRidge(0.1, kernel=RBF(0.7), fit_intercept=True).fit(X, y, weights)
    prior = KernelRidge(0.1, kernel=RBF(0.7) + wide).fit(X, y, weights)
    (m, s), (n, t) = (k.predict(Z, return_std=True) for k in (free, prior))
    np.testing.assert_allclose(m, n, rtol=1e-5)
    # the constant costs one degree of freedom
    np.testing.assert_allclose(s, t * np.sqrt(80 / 79), rtol=1e-4)
    small = KernelRidge(
        0.1, kernel=RBF(0.7), fit_intercept=True, solver="nystroem", landmarks=X
    ).fit(X, y, weights)
    np.testing.assert_allclose(small.predict(Z, return_std=True)[1], s, rtol=1e-5)


def test_deviations_do_not_depend_on_the_scale_of_the_kernel():
    _, one = KernelRidge(0.1, kernel=RBF(0.7)).fit(X, y).predict(Z, return_std=True)
    _, ten = KernelRidge(1.0, kernel=10.0 * RBF(0.7)).fit(X, y).predict(Z, return_std=True)
    np.testing.assert_allclose(one, ten, rtol=1e-9)


@pytest.mark.parametrize("intercept", [False, True])
def test_the_dual_basis(intercept):
    model = KernelRidge(0.2, kernel="rbf", fit_intercept=intercept).fit(X, Y)
    basis = model.dual_basis()
    assert len(basis) == 80
    np.testing.assert_allclose(basis(Z) @ Y, model.expansion_(Z), rtol=1e-9, atol=1e-10)
    some = model.dual_basis([0, 19, 47])
    np.testing.assert_allclose(some(Z), basis(Z)[:, [0, 19, 47]], rtol=1e-9, atol=1e-12)
    if not intercept:
        K = model.kernel_
        expected = np.linalg.solve(K(X) + 0.2 * np.eye(80), K(X, Z)).T
        np.testing.assert_allclose(basis(Z), expected, rtol=1e-9, atol=1e-11)


def test_points_without_weight_in_leave_one_out_and_dual_basis():
    w = np.where(np.arange(80) % 3 == 0, 0.0, 1.5)
    model = KernelRidge(0.2, kernel="rbf").fit(X, y, w)
    some = KernelRidge(0.2, kernel="rbf").fit(X[w > 0], y[w > 0], w[w > 0])
    left = model.leave_one_out()
    np.testing.assert_allclose(left[w > 0], some.leave_one_out(), rtol=1e-9)
    np.testing.assert_allclose(left[w == 0], model.predict(X[w == 0]), rtol=1e-12)
    functions = model.dual_basis([0, 1])
    np.testing.assert_allclose(functions(Z)[:, 0], 0.0)
    np.testing.assert_allclose(functions(Z)[:, 1], some.dual_basis([0])(Z)[:, 0], rtol=1e-9)


@pytest.mark.parametrize("solver", ["cholesky", "nystroem", "krill"])
def test_a_given_matrix_and_points_without_weight(solver):
    w, K = np.where(np.arange(80) < 6, 0.0, 1.0), RBF(1.0)(X)
    options = {"solver": solver, "rank": 20, "landmarks": "rpcholesky"}
    given = KernelRidge(0.1, kernel="precomputed", **options).fit(K, Y, w)
    direct = KernelRidge(0.1, kernel=RBF(1.0), **options).fit(X, Y, w)
    np.testing.assert_allclose(given.predict(K), direct.predict(X), rtol=1e-6, atol=1e-8)


def test_krill_has_one_set_of_landmarks_for_all_alphas():
    options = {"kernel": "rbf", "solver": "krill", "rank": 30}
    drawn = KernelRidge([0.1, 3.0], random_state=np.random.RandomState(0), **options).fit(X, Y)
    for c, alpha in enumerate((0.1, 3.0)):
        single = KernelRidge(alpha, landmarks=drawn.X_fit_, **options).fit(X, Y[:, c])
        np.testing.assert_allclose(drawn.predict(Z)[:, c], single.predict(Z), rtol=1e-6)


def test_what_a_singular_or_indefinite_system_does_not_have():
    flat = KernelRidge(0.0, kernel="linear", solver="lstsq").fit(X, y)
    with pytest.raises(NotPositiveDefiniteError, match=r"leave-one-out errors need .* singular"):
        flat.leave_one_out()
    with pytest.raises(NotPositiveDefiniteError, match=r"standard deviations need .* singular"):
        flat.predict(Z, return_std=True)
    signs = KernelRidge(0.5, kernel=ThinPlate(degree=4), solver="lstsq").fit(X, y)
    with pytest.raises(NotPositiveDefiniteError, match="cannot be the covariance of a Gaussian"):
        signs.predict(Z, return_std=True)
    with pytest.raises(ValueError, match="needs at least two points"):
        KernelRidge(0.1, fit_intercept=True).fit([[1.0]], [5.0]).leave_one_out()
    with pytest.raises(ValueError, match="alpha / weight overflows"):
        KernelRidge(0.1, solver="cg").fit(X, y, np.where(np.arange(80) < 2, 1e-310, 1.0))


def test_several_alphas_keep_no_factors():
    model = KernelRidge([0.1, 0.2], kernel="rbf").fit(X, Y)
    both = [model.predict(Z, return_std=True)[1] for _ in range(2)]
    assert np.array_equal(*both)
    assert not model._ridge._kept


def test_indices_of_the_dual_basis():
    model = KernelRidge(0.2, kernel="rbf").fit(X, y)
    assert len(model.dual_basis([])) == 0
    assert len(model.dual_basis(3)) == 1
    np.testing.assert_allclose(model.dual_basis(-1)(Z), model.dual_basis([79])(Z))


def test_what_cannot_be_had_is_reported():
    K = RBF(1.0)(X)
    given = KernelRidge(0.1, kernel="precomputed").fit(K, y)
    with pytest.raises(ValueError, match="standard deviations need the kernel matrix"):
        given.predict(K, return_std=True)
    with pytest.raises(ValueError, match="leave-one-out predictions need the kernel matrix"):
        given.leave_one_out()
    small = KernelRidge(0.1, kernel="rbf", solver="nystroem", rank=10).fit(X, y)
    with pytest.raises(ValueError, match="stores landmarks instead of the training points"):
        small.leave_one_out()
    with pytest.raises(ValueError, match="the dual basis needs an exact solver"):
        small.dual_basis()
    with pytest.raises(ValueError, match="one alpha for all targets"):
        KernelRidge([0.1, 0.2]).fit(X, Y).dual_basis()
    with pytest.raises(ValueError, match="not available for a compressed model"):
        compress(KernelRidge(0.1, kernel="rbf").fit(X, y), n_points=20).leave_one_out()
    with pytest.raises(ValueError, match="factorisation, which solver='krill' does not compute"):
        KernelRidge(0.1, solver="krill").fit(X, y).predict(Z, return_std=True)
    with pytest.raises(ValueError, match="a fit on landmarks needs alpha > 0, got 0"):
        KernelRidge(0.0, solver="nystroem").fit(X, y)
    with pytest.raises(ValueError, match="rank=90 landmarks cannot be chosen among 80 points"):
        KernelRidge(0.1, solver="nystroem", rank=90).fit(X, y)


def test_a_model_holds_no_more_than_it_needs():
    rows = np.random.default_rng(0).standard_normal((3000, 5))
    model = KernelRidge(0.1, kernel="rbf", solver="nystroem", rank=10, fit_intercept=True)
    model.fit(rows, rows[:, 0])
    calibration = 2000 * 8 * (5 + 1 + 1)  # at most 2000 rows, targets and weights, for intervals
    assert len(pickle.dumps(model)) < 20_000 + calibration
    assert model.predict(rows[:3], return_std=True)[1].shape == (3,)
    given = KernelRidge(0.1, kernel="precomputed").fit(RBF(1.0)(X), y)
    assert len(pickle.dumps(given)) < 8 * 80 * 80 / 2
    small = compress(KernelRidge(0.1, kernel="rbf").fit(rows[:500], rows[:500, 0]), n_points=10)
    assert len(pickle.dumps(small)) < 20_000


def test_a_pickle_does_not_hold_the_factor():
    model = KernelRidge(0.1, kernel="rbf").fit(X, y)
    before = len(pickle.dumps(model))
    _, std = model.predict(Z, return_std=True)
    after = pickle.dumps(model)
    assert len(after) < before + 100
    np.testing.assert_allclose(pickle.loads(after).predict(Z, return_std=True)[1], std, rtol=1e-12)


def test_no_landmark_that_says_anything():
    for solver in ("nystroem", "krill"):
        model = KernelRidge(0.1, solver=solver, fit_intercept=True)
        model.fit(np.zeros((10, 2)), np.arange(10.0))
        np.testing.assert_allclose(model.predict(np.zeros((3, 2))), 4.5)
