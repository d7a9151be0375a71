"""Laws for all kernels with all Gram operators, all solvers, and all expansions."""

import inspect
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import zoo

import mercer.gram
import mercer.solvers
from mercer import DensifyWarning, Expansion
from mercer.gram import DistributedGram, GramOperator, KernelRows, LowRankGram
from mercer.kernels import RBF, Linear, Matern, Polynomial, White
from mercer.solvers import (
    BoxInterior,
    CoreSet,
    CuttingPlanes,
    Dual,
    Hinge,
    LearnedVectors,
    NormPenaltySolver,
    OutOfCoreNewton,
    Penalty,
    PowerDeflation,
    ReducedExpansionRisk,
    RegularisedRisk,
    SMOThenInteriorPoint,
    Squared,
    Status,
    View,
)
from mercer.testing import check_expansion, check_gram, check_solver

each_kernel = pytest.mark.parametrize("entry", **zoo.every())
each_gram = pytest.mark.parametrize("hold", zoo.GRAMS, ids=lambda hold: hold.__name__)
each_square = pytest.mark.parametrize("hold", zoo.SQUARE_GRAMS, ids=lambda hold: hold.__name__)
VERBS = ("factorize", "eigenpairs", "minimize", "regress", "relate")


def public(module):
    """Return the concrete public classes of a package."""
    offered = [getattr(module, name) for name in module.__all__]
    return {c for c in offered if inspect.isclass(c) and not inspect.isabstract(c)}


def test_every_gram_and_solver_is_in_the_zoo():
    grams = {c for c in public(mercer.gram) if issubclass(c, GramOperator)}
    assert grams - {GramOperator} == {*zoo.GRAMS, DistributedGram, LowRankGram}
    solvers = {c for c in public(mercer.solvers) if any(hasattr(c, verb) for verb in VERBS)}
    # `Dual.regress` names a type of problem; solvers of data in blocks have separate tests
    assert solvers - {CoreSet, Dual, OutOfCoreNewton} == {type(solver) for solver in zoo.SOLVERS}


# ---------------------------------------------------------------------- Grams


@each_gram
@each_kernel
def test_grams(entry, hold):
    X, Z = entry.points(11), entry.points(5, seed=1)
    for second in (None, Z):
        check_gram(hold(entry.kernel, X, second), entry.kernel(X, second))


@each_gram
@pytest.mark.parametrize("rows", [255, 512, 1100], ids="{} rows".format)
def test_grams_of_several_tiles(hold, rows):
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(rows, 3)), rng.normal(size=(700, 3))
    kernel = (RBF() + White(0.1)) * Polynomial(degree=2)
    for second in (None, Z):
        K = hold(kernel, X, second)
        check_gram(K, kernel(X, second))
        V = rng.normal(size=(K.shape[1], 2))
        np.testing.assert_array_equal(K @ V, hold(kernel, X, second, n_threads=1) @ V)


@each_gram
@pytest.mark.parametrize("columns", [3, 12])
def test_grams_in_single_precision_and_of_sparse_points(hold, columns):
    X = np.random.default_rng(0).normal(size=(40, columns))
    X[np.abs(X) < 0.5] = 0.0
    kernel = RBF(3.0) + Linear()
    single = hold(kernel, X.astype(np.float32))
    assert single.dtype == np.float32
    check_gram(single, kernel(X), rtol=1e-5)
    check_gram(hold(kernel, sp.csr_array(X)), kernel(X))
    check_gram(hold(kernel, sp.csr_array(X), X[:7]), kernel(X, X[:7]))
    check_gram(hold(kernel, X, sp.csr_array(X[:7])), kernel(X, X[:7]))


@each_gram
def test_grams_of_one_point(hold):
    check_gram(hold(RBF(), np.ones((1, 2))), np.ones((1, 1)))
    check_gram(hold(RBF(), np.ones((1, 2)), np.ones((3, 2))), np.ones((1, 3)))


@pytest.mark.parametrize("kernel", [RBF(), Matern(nu=0.5), RBF(0.5) * Matern(nu=1.5)], ids=str)
def test_low_rank_grams(kernel):
    """With all points as landmarks, the approximation of K is exact; tests/gram has other cases."""
    X = np.random.default_rng(0).normal(size=(40, 5))
    check_gram(zoo.on_all_points(kernel, X), kernel(X), rtol=1e-8)


# ---------------------------------------------------------------------- solvers


@pytest.mark.parametrize("kernel", [RBF(), Matern(nu=0.5), 2 * RBF() + Linear() + 1], ids=str)
@pytest.mark.parametrize("solver", zoo.LINEAR_SOLVERS, ids=repr)
def test_linear_solvers(solver, kernel):
    rng = np.random.default_rng(0)
    for n in (1, 2, 40):
        K = zoo.DenseGram(kernel, rng.normal(size=(n, 3)))
        check_solver(solver, K)
        check_solver(solver, K, rng.normal(size=n), shift=rng.uniform(0.1, 2.0, size=n))
        check_solver(solver, K, rng.normal(size=(n, 5)), shift=1e3)


@each_square
@pytest.mark.parametrize("kernel", [RBF(), Matern(nu=0.5), 2 * RBF() + Linear() + 1], ids=str)
@pytest.mark.parametrize("solver", zoo.EIGEN_SOLVERS, ids=repr)
def test_eigen_solvers(solver, kernel, hold):
    K = hold(kernel, np.random.default_rng(0).normal(size=(60, 3)))
    with warnings.catch_warnings():
        # LAPACK needs the full array, with a warning
        warnings.simplefilter("ignore", DensifyWarning)
        # the power method needs many products for 20 components
        slow = isinstance(solver, PowerDeflation) and hold is not zoo.DenseGram
        for k in (1, 5) if slow else (1, 5, 20):
            check_solver(solver, K, k=k, rtol=1e-7)


@pytest.mark.parametrize("kernel", [RBF(), Matern(nu=0.5)], ids=str)
@pytest.mark.parametrize("solver", zoo.FEATURE_SOLVERS, ids=repr)
def test_feature_solvers(solver, kernel):
    """Their eigenpairs are those of Phi Phi^T, which approximates K."""
    K = zoo.DenseGram(kernel, np.random.default_rng(0).normal(size=(60, 3)))
    for k in (1, 5, 20):
        pairs = solver.eigenpairs(K, k)
        Phi = pairs.basis.map.features(K.X)
        np.testing.assert_allclose(Phi @ (Phi.T @ pairs.vectors), pairs.vectors * pairs.values)
        np.testing.assert_allclose(pairs.values, np.linalg.eigvalsh(Phi @ Phi.T)[::-1][:k])
        np.testing.assert_allclose(pairs.vectors.T @ pairs.vectors, np.eye(k), atol=1e-10)
        assert pairs.report.status is Status.APPROXIMATE and not pairs.certificate.nothing_missed
        np.testing.assert_array_equal(solver.eigenpairs(K, k).vectors, pairs.vectors)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(
    ("solver", "loss"),
    [(solver, loss) for solver, losses in zoo.RISK_SOLVERS for loss in losses],
    ids=repr,
)
def test_solvers_of_risks(solver, loss, intercept):
    """J is not lower by more than the gap at other points, and mu w = F^T dual."""
    rng = np.random.default_rng(0)
    F, weights, shift = rng.normal(size=(30, 4)), rng.uniform(0.5, 2.0, size=30), 0.3
    labels = rng.integers(0, 2, size=30)
    Y = np.eye(2)[labels] if repr(loss) == "Softmax()" else 2.0 * np.eye(2)[labels] - 1.0
    Y = np.abs(Y) if repr(loss) == "Poisson()" else Y
    risk = RegularisedRisk(F, Y, loss, weights, shift, intercept=intercept)

    def J(w, b):
        return risk.losses(w, b) + 0.5 * shift * np.sum(w * w)

    more = (Penalty.of("ridge", 0.5 * shift),) if isinstance(solver, NormPenaltySolver) else ()
    found, again = solver.minimize(risk, *more), solver.minimize(risk, *more)
    w, b = found.weights, found.intercept
    np.testing.assert_array_equal(again.weights, w)
    assert found.report.status is Status.CONVERGED
    assert found.value == pytest.approx(J(w, b), rel=1e-12)
    scale = 1.0 if more else shift  # NormPenaltySolver returns the coefficients themselves
    np.testing.assert_allclose(F.T @ found.dual, scale * w, atol=1e-4)
    assert intercept or not b.any()
    for size in (1e-6, 1e-3, 1.0):
        dw, db = size * rng.normal(size=w.shape), size * intercept * rng.normal(size=b.shape)
        assert J(w + dw, b + db) >= found.value - found.gap - 1e-12 * abs(found.value)


@pytest.mark.parametrize("solver", zoo.VECTOR_SOLVERS, ids=repr)
def test_solvers_of_vectors(solver):
    """J is not above its initial value, and the weights are optimal for the learned vectors."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    loss = Hinge() if isinstance(solver, CuttingPlanes) else Squared()
    Y = np.sign(X) if isinstance(solver, CuttingPlanes) else np.sin(X)
    risk = ReducedExpansionRisk(RBF(), X, Y, loss, np.full(40, 1 / 40), alpha=1e-3)
    with warnings.catch_warnings():
        # with so few iterations, the solver warns that J still decreases
        warnings.simplefilter("ignore", UserWarning)
        found, again = (solver.minimize(risk, X[:4]) for _ in range(2))
    np.testing.assert_array_equal(found.fit.vectors, again.fit.vectors)
    if isinstance(solver, LearnedVectors):
        assert found.fit.value <= risk.fit_weights(X[:4]).value
    else:
        np.testing.assert_array_equal(found.fit.vectors[:4], X[:4])
    assert np.all(np.diff(found.curve) <= 0) and found.curve[-1] == found.fit.value


@pytest.mark.parametrize("kind", ["classify", "nu_classify", "regress", "nu_regress", "one_class"])
@pytest.mark.parametrize("solver", zoo.DUAL_SOLVERS, ids=repr)
def test_solvers_of_duals(solver, kind):
    """V satisfies its box and sum constraints, and the optimality conditions to within tol."""
    rng = np.random.default_rng(0)
    F, C = rng.normal(size=(50, 3)), rng.uniform(0.5, 2.0, size=50)
    target = F[:, 0] + 0.5 * rng.normal(size=50)
    given = {"classify": (np.sign(target), C), "nu_classify": (np.sign(target), C, 0.3)}
    given |= {"regress": (target, C, 0.1), "nu_regress": (target, C, 0.3), "one_class": (C, 0.3)}
    dual = getattr(Dual, kind)(*given[kind])
    data = F if isinstance(solver, BoxInterior) else KernelRows(Linear(), F)
    # this solver needs K in both storage formats
    data = (data, F) if isinstance(solver, SMOThenInteriorPoint) else data
    found, again = (solver.minimize(data, dual) for _ in range(2))
    v = found.variables
    np.testing.assert_array_equal(again.variables, v)
    assert found.report.status is Status.CONVERGED
    assert np.all(dual.lower <= v) and np.all(v <= dual.upper)
    for k in range(dual.n_groups):
        assert v[dual.groups == k].sum() == pytest.approx(dual.start[dual.groups == k].sum())
    f = F @ (F.T @ dual.coefficients(v))
    np.testing.assert_allclose(found.values, f, atol=1e-6)
    assert dual.violation(v, dual.gradient(f)) <= 1.01 * solver.tol
    assert -1e-9 <= dual.gap(v, f) <= dual.bound(solver.tol) + 1e-9


@pytest.mark.parametrize("solver", zoo.RIDGE_SOLVERS, ids=repr)
def test_solvers_of_ridges(solver):
    """w minimises sum_i u_i (y_i - k_S(x_i)^T w)^2 + shift w^T K_SS w, S being the landmarks."""
    rng = np.random.default_rng(0)
    X, Y, u = rng.normal(size=(60, 2)), rng.normal(size=(60, 2)), rng.uniform(0.5, 2.0, size=60)
    kernel = Matern(nu=0.5)
    S, w, report = solver.regress(kernel, X, Y, 0.1, u)
    K = kernel(X, S)
    A, right = K.T @ (u[:, None] * K) + 0.1 * kernel(S), K.T @ (u[:, None] * Y)
    np.testing.assert_allclose(A @ w, right, atol=1e-8 * np.abs(right).max())
    assert report.status is Status.CONVERGED
    np.testing.assert_array_equal(solver.regress(kernel, X, Y, 0.1, u)[1], w)


@pytest.mark.parametrize("solver", zoo.VIEW_SOLVERS, ids=repr)
def test_solvers_of_two_views(solver):
    """The reported values are the covariances or correlations of the scores, which have mean 0."""
    rng = np.random.default_rng(0)
    F, w = rng.normal(size=(50, 5)) + 1.0, rng.uniform(0.5, 2.0, size=50)
    G = F @ rng.normal(size=(5, 4)) + rng.normal(size=(50, 4))
    x, y, c = View.of(F, w), View.of(G, w), (w / w.sum())[:, None]
    found = solver.relate(x, y)
    S, T = F @ found.x - found.offset, G @ found.y - found.offset_y
    np.testing.assert_allclose(np.diag(S.T @ (c * T)), found.values, atol=1e-12)
    np.testing.assert_allclose(np.sum(c * S, axis=0), 0.0, atol=1e-12)
    assert len(found.values) == solver.n_components
    assert found.report.status is Status.DIRECT and found.report.residual < 1e-12
    np.testing.assert_array_equal(solver.relate(x, y).x, found.x)


# ---------------------------------------------------------------------- expansions


@pytest.mark.parametrize("entry", **zoo.every(psd=True))
def test_expansions(entry):
    points, X = entry.points(8), entry.points(6, seed=1)
    for columns in ((), (3,)):
        a = np.random.default_rng(2).normal(size=(8, *columns))
        check_expansion(Expansion(entry.kernel, points, a), X, differentiable=entry.differentiable)
