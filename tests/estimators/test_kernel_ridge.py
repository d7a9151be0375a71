"""KernelRidge against scikit-learn, against the primal problem, and with bad input."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.kernel_ridge
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import RBF as GPRBF
from sklearn.gaussian_process.kernels import WhiteKernel
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import Expansion, KernelRidge, MemoryBudgetError, NotPositiveDefiniteError
from mercer.kernels import (
    RBF,
    Callable,
    Features,
    Linear,
    Polynomial,
    QuadraticMap,
    Select,
    Sigmoid,
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


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("options", [{}, {"gamma": 0.7, "degree": 2, "coef0": 0.5}], ids=str)
def test_equals_scikit_learn_for_every_name(name, options):
    # additive_chi2 is not positive definite: a ridge large enough makes the system so
    alpha = 500.0 if name == "additive_chi2" else 0.5
    ours = KernelRidge(alpha, kernel=name, **options).fit(X, Y)
    if name == "chi2" and not options:
        options = {"gamma": 1.0}  # its default in pairwise_kernels; there None is an error
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
        # w = Phi^T a, the identity of the representer theorem
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
    # |f|^2 = a^T K a
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
    assert kernel == RBF(1.0) + 0.5 * Linear()  # nobody else's kernel changed
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
    with pytest.warns(UserWarning, match="Singular matrix in solving dual problem"):
        model.fit(twice, np.concatenate([y, y]))
    assert model.report_.status is Status.SINGULAR
    np.testing.assert_allclose(model.predict(X), y, atol=1e-4)
    with pytest.raises(NotPositiveDefiniteError, match="Try a larger alpha"):
        KernelRidge(0.0, kernel="rbf", solver="cholesky").fit(twice, np.concatenate([y, y]))
    quiet = KernelRidge(0.0, kernel="rbf", solver=LeastSquares()).fit(twice, np.append(y, y))
    np.testing.assert_allclose(quiet.predict(X), y, atol=1e-4)


def test_an_indefinite_kernel_is_said():
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
    with pytest.raises(ValueError, match="6 points, but 5 targets"):
        KernelRidge(kernel=overlap).fit(words, np.arange(5.0))
    with pytest.raises(ValueError, match="at least one point"):
        KernelRidge(kernel=overlap).fit([], [])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"alpha": -1}, "alpha"),
        ({"alpha": [1.0, 2.0, 3.0]}, "got 3 values for 1 targets"),
        ({"alpha": [-1.0]}, "finite and non-negative"),
        ({"kernel": "gaussian"}, "The 'kernel' parameter of KernelRidge must be"),
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
    with pytest.raises(MemoryBudgetError, match="but the budget is 1000 bytes"):
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
    with pytest.raises(ValueError, match="the kernel is the name 'rbf', whose parameters are"):
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
