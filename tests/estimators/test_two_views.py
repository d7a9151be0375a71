"""Kernel CCA and kernel PLS: against scikit-learn, explicit Gram matrices, and on any points."""

import numpy as np
import pytest
import scipy.linalg
from sklearn.cross_decomposition import CCA, PLSCanonical, PLSRegression
from sklearn.datasets import load_diabetes, load_iris, load_linnerud, load_wine
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale
from sklearn.utils._param_validation import InvalidParameterError

from mercer import Expansion, Graphs, KernelCCA, KernelPLS, MemoryBudgetError, compress
from mercer.kernels import (
    RBF,
    Intersection,
    Jaccard,
    Linear,
    Normalized,
    Precomputed,
    Spectrum,
    WeisfeilerLehman,
)
from mercer.solvers import Status

BOTH = [KernelCCA, KernelPLS]


def halves(load, columns):
    X = load(return_X_y=True)[0]
    return X[:, :columns], X[:, columns:]


def latent():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(200, 3))
    return [Z @ rng.normal(size=(3, d)) + 0.5 * rng.normal(size=(200, d)) + 3.0 for d in (8, 5)]


SETS = {
    "linnerud": lambda: load_linnerud(return_X_y=True),
    "wine": lambda: halves(load_wine, 6),
    "diabetes": lambda: halves(load_diabetes, 5),
    "iris": lambda: halves(load_iris, 2),
    "latent": latent,
}
LINEAR = {"kernel": "linear", "kernel_y": "linear"}
CLOSELY = {"scale": False, "max_iter": 100_000, "tol": 1e-20}  # scikit-learn iterates


@pytest.fixture(params=SETS)
def views(request):
    return [scale(A) for A in SETS[request.param]()]


@pytest.fixture
def curve():
    """Return points of a curve in two views."""
    rng = np.random.default_rng(0)
    t = rng.uniform(0, 6, size=120)
    X = np.column_stack([np.cos(t), np.sin(t)]) + 0.05 * rng.normal(size=(120, 2))
    return X, np.column_stack([t, np.sin(3 * t)]) + 0.05 * rng.normal(size=(120, 2))


def aligned(A, like):
    return A * np.sign(np.sum(A * like, axis=0))


def standard(A):
    return A / A.std(axis=0)


@pytest.mark.filterwarnings("ignore:Maximum number of iterations")  # tol is below rounding
@pytest.mark.parametrize("solver", ["exact", "nystroem"])
def test_linear_kernels_lead_back_to_cca(views, solver):
    theirs = CCA(2, **CLOSELY | {"max_iter": 3000}).fit(*views)
    ours = KernelCCA(2, alpha=1e-10, solver=solver, **LINEAR).fit(*views)
    pairs = list(zip(ours.transform(*views), theirs.transform(*views), strict=True))
    for A, B in pairs:
        np.testing.assert_allclose(A.var(axis=0), 1.0, rtol=1e-7)
        np.testing.assert_allclose(aligned(standard(A), B), standard(B), rtol=0, atol=1e-7)
    S, T = (B for _, B in pairs)
    rho = [np.corrcoef(s, t)[0, 1] for s, t in zip(S.T, T.T, strict=True)]
    np.testing.assert_allclose(ours.canonical_correlations_, rho, atol=1e-9)
    np.testing.assert_allclose(ours.correlations(*views), rho, atol=1e-9)
    assert ours.score(*views) == pytest.approx(np.mean(rho))


@pytest.mark.filterwarnings("ignore:Maximum number of iterations")
@pytest.mark.parametrize("solver", ["exact", "nystroem"])
def test_linear_kernels_lead_back_to_pls(views, solver):
    X, Y = views
    theirs = PLSRegression(2, **CLOSELY | {"max_iter": 3000}).fit(X, Y)
    ours = KernelPLS(2, kernel="linear", solver=solver).fit(X, Y)
    T = theirs.transform(X)
    np.testing.assert_allclose(aligned(ours.transform(X), T), T, rtol=0, atol=1e-8)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=0, atol=1e-8)
    assert ours.score(X, Y) == pytest.approx(theirs.score(X, Y))
    theirs = PLSCanonical(2, **CLOSELY | {"max_iter": 3000}).fit(X, Y)
    ours = KernelPLS(2, mode="canonical", kernel="linear", solver=solver).fit(X, Y)
    for A, B in zip(ours.transform(X, Y), theirs.transform(X, Y), strict=True):
        np.testing.assert_allclose(aligned(A, B), B, rtol=0, atol=1e-8)


def test_their_scaled_columns_are_standardised_ones():
    X, y = load_diabetes(return_X_y=True)
    theirs = PLSRegression(3).fit(X, y)
    ours = make_pipeline(StandardScaler(), KernelPLS(3, kernel="linear")).fit(X, y)
    assert ours.predict(X).shape == y.shape
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-8)


def test_cca_by_its_gram_matrices(curve):
    """In coefficients: a^T K L b relative to a^T (K^2 / n + alpha K) a, with centred matrices."""
    X, Y = (A[:40] for A in curve)
    model = KernelCCA(3, alpha=0.01, alpha_y=0.02, gamma=0.5).fit(X, Y)
    n, H = 40, np.eye(40) - 1 / 40
    K, L = H @ model.kernel_(X) @ H, H @ model.kernel_y_(Y) @ H
    zero, small = np.zeros((n, n)), 1e-13 * np.eye(n)
    left = np.block([[zero, K @ L / n], [L @ K / n, zero]])
    right = np.block([[K @ K / n + 0.01 * K + small, zero], [zero, L @ L / n + 0.02 * L + small]])
    values, W = scipy.linalg.eigh(left, right)
    np.testing.assert_allclose(model.canonical_correlations_, values[::-1][:3], atol=1e-6)
    scores = K @ W[:n, ::-1][:, :3]
    np.testing.assert_allclose(
        aligned(standard(model.transform(X)), scores), standard(scores), atol=1e-5
    )


def test_pls_by_its_gram_matrices(curve):
    """The algorithm of Rosipal and Trejo: K and L are deflated by scores t of norm 1."""
    X, Y = curve
    model = KernelPLS(4, gamma=0.5).fit(X, Y)
    n, H = len(X), np.eye(len(X)) - 1 / len(X)
    K, L, T, U = H @ RBF(1.0)(X) @ H, H @ Y @ Y.T @ H, [], []
    for _ in range(4):
        values, vectors = np.linalg.eig(K @ L)  # the limit of the power method
        t = vectors[:, values.real.argmax()].real
        t /= np.linalg.norm(t)
        u = L @ t
        P = np.eye(n) - np.outer(t, t)
        K, L = P @ K @ P, P @ L @ P
        T.append(t), U.append(u)
    T, U = np.column_stack(T), np.column_stack(U)
    scores = model.transform(X)
    np.testing.assert_allclose(
        aligned(scores / np.linalg.norm(scores, axis=0), T), T, rtol=0, atol=1e-7
    )
    K = H @ RBF(1.0)(X) @ H
    predicted = K @ U @ np.linalg.solve(T.T @ K @ U, T.T @ (H @ Y)) + Y.mean(axis=0)
    np.testing.assert_allclose(model.predict(X), predicted, atol=1e-7)


@pytest.mark.parametrize("Model", BOTH)
def test_a_weight_of_two_is_two_points(Model, curve):
    X, Y = curve
    w = np.random.default_rng(1).integers(0, 3, size=len(X))
    rows = np.repeat(np.arange(len(X)), w)
    one = Model(3).fit(X, Y, sample_weight=2.5 * w)  # a common factor has no effect
    two = Model(3).fit(X[rows], Y[rows])
    for A, B in zip(one.transform(X, Y), two.transform(X, Y), strict=True):
        np.testing.assert_allclose(A, B, atol=1e-6)
    assert one.score(X, Y, sample_weight=w) == pytest.approx(two.score(X[rows], Y[rows]))


@pytest.mark.parametrize("Model", BOTH)
def test_all_points_as_landmarks_are_exact(Model, curve):
    X, Y = curve
    exact = Model(2).fit(X, Y)
    same = Model(2, solver="nystroem", landmarks=X, landmarks_y=Y).fit(X, Y)
    few = Model(2, solver="nystroem", rank=25).fit(X, Y)
    for near, atol in ((same, 1e-5), (few, 0.05)):
        assert near.report_.status is Status.APPROXIMATE
        for A, B in zip(near.transform(X, Y), exact.transform(X, Y), strict=True):
            np.testing.assert_allclose(A, B, atol=atol * np.abs(B).max())
    assert exact.report_.status is Status.DIRECT and exact.report_.residual < 1e-9
    assert len(few.X_fit_) == 25


@pytest.mark.parametrize("Model", BOTH)
def test_the_fitted_state_is_an_expansion_of_each_view(Model, curve):
    X, Y = curve
    model = Model(2, kernel_y=RBF("median")).fit(X, Y)
    for f, b, Z, scores in zip(
        (model.expansion_, model.expansion_y_),
        (model.intercept_, model.intercept_y_),
        (X, Y),
        model.transform(X, Y),
        strict=True,
    ):
        assert isinstance(f, Expansion)
        np.testing.assert_allclose(f(Z) + b, scores)
        np.testing.assert_allclose(scores.mean(axis=0), 0.0, atol=1e-9)
    again = Model(2, kernel_y=RBF("median")).fit_transform(X, Y)
    np.testing.assert_array_equal(again, model.transform(X))
    small = compress(model, 15)
    assert len(small.X_fit_) == 15
    np.testing.assert_allclose(small.transform(X), model.transform(X), atol=0.2)


@pytest.mark.parametrize("Model", BOTH)
@pytest.mark.parametrize("solver", ["exact", "nystroem"])
def test_precomputed_matrices_on_either_side(Model, solver, curve):
    X, Y = curve
    train, new = slice(0, 90), slice(90, None)
    k, l = RBF(0.7), RBF(0.9)  # noqa: E741
    options = {"solver": solver, "landmarks": "rpcholesky", "landmarks_y": "rpcholesky"}
    options |= {"rank": 60} if solver == "nystroem" else {}
    plain = Model(2, kernel=k, kernel_y=l, **options).fit(X[train], Y[train])
    given = Model(2, kernel="precomputed", kernel_y="precomputed", **options)
    given.fit(k(X[train]), l(Y[train]))
    S, T = plain.transform(X[new], Y[new])
    A, B = given.transform(k(X[new], X[train]), l(Y[new], Y[train]))
    np.testing.assert_allclose(A, S, atol=1e-6)
    np.testing.assert_allclose(B, T, atol=1e-6)
    mixed = Model(2, kernel=k, kernel_y=Precomputed(l(Y[train])), **options)
    np.testing.assert_allclose(mixed.fit(X[train], np.arange(90)).transform(X[new]), S, atol=1e-6)


def test_it_finds_what_lines_miss():
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 2 * np.pi, size=300)
    x, y = np.cos(angle), np.sin(angle) + 0.1 * rng.normal(size=300)
    X = x[:, None]
    linear = KernelCCA(1, alpha=1e-6, **LINEAR).fit(X[:200], y[:200])
    model = KernelCCA(1).fit(X[:200], y[:200])
    assert abs(linear.score(X[200:], y[200:])) < 0.2 < 0.9 < model.score(X[200:], y[200:])
    f = model.transform(X)[:, 0]
    assert abs(np.corrcoef(f, x**2)[0, 1]) > 0.95


@pytest.mark.parametrize("Model", BOTH)
def test_strings_and_vectors(Model):
    rng = np.random.default_rng(0)
    share = rng.uniform(0.1, 0.9, size=80)
    X = ["".join(rng.choice(list("AG"), p=[1 - p, p], size=60)) for p in share]
    Y = np.column_stack([share, 0.1 * rng.normal(size=80)])
    model = Model(1, kernel=Normalized(Spectrum(2)), kernel_y=RBF("median")).fit(X[:60], Y[:60])
    S, T = model.transform(X[60:], Y[60:])
    assert abs(np.corrcoef(S[:, 0], T[:, 0])[0, 1]) > 0.9
    assert abs(np.corrcoef(S[:, 0], share[60:])[0, 1]) > 0.9
    # In the other direction, too.
    turned = Model(1, kernel=RBF("median"), kernel_y=Normalized(Spectrum(2))).fit(Y[:60], X[:60])
    S, T = turned.transform(Y[60:], X[60:])
    assert abs(np.corrcoef(S[:, 0], T[:, 0])[0, 1]) > 0.9
    if Model is KernelPLS:
        with pytest.raises(ValueError, match="fitted to a dense numeric array y"):
            turned.predict(Y)
        assert model.predict(X).shape == (80, 2)


@pytest.mark.parametrize("Model", BOTH)
def test_graphs_and_sets(Model):
    rng = np.random.default_rng(0)
    rings = rng.integers(0, 4, size=40)  # numbers of triangles and of tags

    def graph(r):
        return [(i, i + 1) for i in range(11)] + [(3 * i, 3 * i + 2) for i in range(r)]

    X = Graphs.from_edges([graph(r) for r in rings], labels=["C" * 12] * 40)
    Y = [set("abcdef"[: r + 1]) | {rng.choice(["x", "y"])} for r in rings]
    model = Model(1, kernel=Normalized(WeisfeilerLehman(2)), kernel_y=Jaccard())
    S, T = model.fit(X[:30], Y[:30]).transform(X[30:], Y[30:])
    assert abs(np.corrcoef(S[:, 0], T[:, 0])[0, 1]) > 0.9


def test_pipelines_and_searches(curve):
    X, Y = curve
    search = GridSearchCV(KernelCCA(2), {"alpha": [1e-12, 1e-3, 10.0]}, cv=3).fit(X, Y)
    assert search.best_params_["alpha"] == 1e-3
    line = make_pipeline(KernelPLS(6), LinearRegression()).fit(X, Y)
    assert line.score(X, Y) > 0.9
    model = KernelCCA(kernel_y=RBF(2.0)).set_params(kernel_y__length_scale=0.5)
    assert model.kernel_y == RBF(0.5)
    with pytest.raises(ValueError, match=r"kernel_y='rbf' is a kernel given by name.*length_scale"):
        KernelCCA().set_params(kernel_y__length_scale=0.5)
    names = KernelCCA(2).fit(X, Y).get_feature_names_out()
    assert names.tolist() == ["kernelcca0", "kernelcca1"]


def test_predictions_have_the_shape_of_the_targets(curve):
    X, Y = curve
    flat, column = (KernelPLS(3).fit(X, y).predict(X) for y in (Y[:, 0], Y[:, :1]))
    assert flat.shape == (120,) and column.shape == (120, 1)
    np.testing.assert_allclose(flat, column[:, 0])
    assert KernelPLS(3).fit(X, Y).predict(X[:5]).shape == (5, 2)
    other = KernelPLS(3, kernel_y="rbf").fit(X, Y)  # numerical targets, whatever their kernel
    assert other.score(X, Y) > 0.5
    assert not hasattr(KernelPLS(mode="canonical"), "predict")
    assert KernelPLS(2, mode="canonical", kernel_y="rbf").fit(X, Y).score(X, Y) > 0.9


def test_auto_takes_landmarks_where_memory_is_short(curve):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 3))
    Y = X[:, :2] ** 2
    with pytest.warns(UserWarning, match="1500 points are too many for solver='auto'"):
        model = KernelCCA(1, max_memory="12 MiB").fit(X, Y)
    assert model.report_.status is Status.APPROXIMATE and model.score(X, Y) > 0.9
    with pytest.raises(
        MemoryBudgetError, match=r"two views of 1500 points .*'nystroem' needs less"
    ):
        KernelCCA(1, max_memory="12 MiB", solver="exact").fit(X, Y)


def test_it_says_what_it_does(curve, capsys):
    KernelCCA(1, verbose=1).fit(*curve)
    said = capsys.readouterr().out
    assert "[KernelCCA] X: exact:" in said and "[KernelCCA] y: exact:" in said
    assert "direct method" in said


@pytest.mark.parametrize("Model", BOTH)
def test_bad_input_is_named(Model, curve):
    X, Y = curve
    bad = Y.copy()
    bad[3, 1] = np.nan
    for y, text in (
        (None, "requires y to be passed, but the target y is None; pass the second view as y"),
        (Y[:-1], "X has 120 points, but y, the second view, has 119"),
        (bad, "y, the second view .*contains NaN"),
        (["AC"] * 120, "y, the second view .*contains strings.*Spectrum"),
        (np.ones(120), "y is constant: its 120 points"),
    ):
        with pytest.raises(ValueError, match=text):
            Model().fit(X, y)
    with pytest.raises(ValueError, match="X is constant"):
        Model().fit(np.ones((120, 2)), Y)
    with pytest.raises(ValueError, match="n_components=4, but"):
        Model(4).fit(X[:3], Y[:3])
    with pytest.raises(ValueError, match=r"n_components=3, but in feature space X has 2|at most 2"):
        Model(3, **LINEAR).fit(X, Y)
    with pytest.raises(ValueError, match="n_samples = 1"):
        Model().fit(X[:1], Y[:1])
    with pytest.raises(NotFittedError):
        Model().transform(X, Y)
    model = Model().fit(X, Y)
    with pytest.raises(ValueError, match=r"y, the second view .*has 1 features, but.*expecting 2"):
        model.transform(X, Y[:, :1])
    canonical = model if Model is KernelCCA else Model(mode="canonical").fit(X, Y)
    with pytest.raises(ValueError, match="X has 120 points, but y, the second view, has 100"):
        canonical.score(X, Y[:100])


def test_alpha_must_be_positive(curve):
    for option in ({"alpha": 0}, {"alpha_y": 0}, {"alpha": -1.0}):
        with pytest.raises(InvalidParameterError, match=r"'alpha(_y)?' parameter .*\(0"):
            KernelCCA(**option).fit(*curve)


def test_one_alpha_is_for_both(curve):
    one, two = (KernelCCA(2, alpha=0.1, alpha_y=b).fit(*curve) for b in (None, 0.1))
    np.testing.assert_array_equal(one.transform(curve[0]), two.transform(curve[0]))
    other = KernelCCA(2, alpha=0.1, alpha_y=1e-3).fit(*curve)
    assert np.all(other.canonical_correlations_ > one.canonical_correlations_)


def test_gamma_is_a_rule_for_each_view(curve):
    X, Y = curve
    model = KernelCCA(1).fit(X, 100 * Y)
    assert model.kernel_y_ == RBF("scale").resolve(100 * Y)
    assert KernelCCA(1, kernel_y=Linear()).fit(X, Y).kernel_y_ == Linear()


def test_a_second_view_of_objects():
    X = np.random.default_rng(0).normal(size=(6, 2))
    y = [{1}, {2}, {1, 2}, {3}, {1}, {2, 3}]
    by_function = KernelCCA(kernel_y=lambda a, b: float(len(a & b))).fit(X, y)
    by_kernel = KernelCCA(kernel_y=Intersection()).fit(X, y)
    np.testing.assert_allclose(
        by_function.canonical_correlations_, by_kernel.canonical_correlations_, atol=1e-8
    )
