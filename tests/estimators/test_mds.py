"""Metric MDS: gradients against differences, scikit-learn's stress, Sammon mapping, new points."""

import warnings

import numpy as np
import pytest
from data_folder import DATA
from scipy.optimize import minimize
from scipy.spatial.distance import cdist, pdist, squareform
from sklearn.datasets import load_iris, load_wine, make_swiss_roll
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.manifold import smacof

from mercer import KernelPCA, MemoryBudgetError, MetricMDS, compress
from mercer._core import resource_scope
from mercer.kernels import RBF, Linear, Spectrum
from mercer.models.embedding import (
    Stress,
    classical_mds,
    embed_new_points,
    feature_space_pdist,
    metric_mds,
    stress_of_points,
)

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 5)) * [3.0, 2.0, 1.0, 0.5, 0.2]
NEW = rng.normal(size=(9, 5))
WORDS = ["GATTACA", "GATTTACA", "CCGGCG", "CCGCGG", "ATTACC", "TTACCA", "GGGCCG"]


@pytest.fixture(scope="module")
def model():
    return MetricMDS(2).fit(X)


def standardised(A):
    return (A - A.mean(axis=0)) / A.std(axis=0)


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("q", [1, 2, 3])
def test_slopes_are_those_of_differences(q, weighted):
    delta = pdist(X[:12])
    S = Stress(delta, rng.random(66) if weighted else None)
    Z, h = rng.normal(size=(12, q)), 1e-6
    value, slope = S(Z)
    w = np.ones(66) if S.weights is None else S.weights
    assert value == pytest.approx(np.sum(w * (pdist(Z) - delta) ** 2) / np.sum(w * delta**2))
    np.testing.assert_allclose(S.mass, squareform(w).sum(axis=1))
    for at in np.ndindex(Z.shape):
        step = np.zeros_like(Z)
        step[at] = h
        difference = (S(Z + step)[0] - S(Z - step)[0]) / (2 * h)
        assert slope[at] == pytest.approx(difference, abs=1e-6 * np.abs(slope).max())


def test_parts_and_threads(monkeypatch):
    A = rng.normal(size=(700, 3))
    Z = rng.normal(size=(700, 2))
    S = Stress(pdist(A))
    value, slope = S(Z)
    assert len(S._rows) == 1
    monkeypatch.setattr("mercer.models.embedding._mds_training._PAIRS_PER_TASK", 10_000)
    small = Stress(pdist(A))
    assert len(small._rows) > 10 and small._rows[0][0] == 0 and small._rows[-1][1] == 700
    found = []
    for count in (1, 2):
        with resource_scope(n_threads=count):
            found.append(small(Z))
    assert found[0][0] == found[1][0] and found[0][1].tobytes() == found[1][1].tobytes()
    assert found[0][0] == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(found[0][1], slope, atol=1e-15)


def test_classical_scaling_is_kernel_pca():
    for n in (60, 400):  # all eigenvectors, or few
        A = rng.normal(size=(n, 5)) * [3.0, 2.0, 1.0, 0.5, 0.2]
        theirs = KernelPCA(2, kernel="linear").fit_transform(A)
        ours = classical_mds(pdist(A), 2)
        np.testing.assert_allclose(np.abs(ours), np.abs(theirs), atol=1e-3)


SETS = {
    "iris": load_iris().data,
    "wine": standardised(load_wine().data),
    "normal": rng.normal(size=(120, 10)),
    "roll": make_swiss_roll(200, random_state=0)[0],
    "lines": np.abs(rng.normal(size=(80, 1))) * np.eye(4)[np.arange(80) % 4],
}


@pytest.mark.parametrize("name", SETS)
def test_stress_is_not_above_that_of_scikit_learn(name):
    A = SETS[name]
    ours = MetricMDS(2).fit(A)
    start = PCA(2).fit_transform(A)  # classical scaling
    options = {"n_init": 1, "eps": 1e-9, "max_iter": 600, "normalized_stress": False}
    _, theirs = smacof(squareform(pdist(A)), init=start, **options)
    total = np.sum(pdist(A) ** 2)
    assert ours.stress_ * total <= theirs * (1 + 1e-4)
    assert ours.report_.status.name == "CONVERGED" and ours.report_.residual <= 1e-5
    Z = ours.embedding_
    assert ours.stress_ * total == pytest.approx(np.sum((pdist(Z) - pdist(A)) ** 2), rel=1e-9)


def test_a_step_of_majorisation_leaves_a_minimum_where_it_is(model):
    """The certificate by definition: a Guttman transform changes the embedding by `residual`."""
    Z, delta, n = model.embedding_, squareform(pdist(X)), len(X)
    ratio = delta / np.where(d := cdist(Z, Z), d, 1.0)
    B = np.diag(ratio.sum(axis=1)) - ratio
    moved = B @ Z / n
    # In units of the embedding, with v = n - 1 instead of n.
    left = np.linalg.norm(Z - moved) / np.linalg.norm(Z)
    assert left == pytest.approx(model.report_.residual * (n - 1) / n, rel=0.05, abs=1e-7)
    assert left < 1e-5


def test_axes_are_principal_and_centred(model):
    Z = model.embedding_
    np.testing.assert_allclose(Z.mean(axis=0), 0.0, atol=1e-12)
    C = Z.T @ Z
    assert abs(C[0, 1]) < 1e-9 * C[0, 0] and C[0, 0] > C[1, 1]


def test_sammon_is_its_formula():
    model = MetricMDS(2, stress="sammon").fit(X)
    delta, d = pdist(X), pdist(model.embedding_)
    assert model.stress_ == pytest.approx(np.sum((delta - d) ** 2 / delta) / delta.sum(), rel=1e-9)
    raw = MetricMDS(2).fit(X)
    assert np.sum((delta - pdist(raw.embedding_)) ** 2 / delta) / delta.sum() > model.stress_
    near = delta < np.quantile(delta, 0.1)  # small distances are preserved better
    errors = [np.abs(delta - pdist(m.embedding_))[near].mean() for m in (model, raw)]
    assert errors[0] < errors[1]


def test_duplicates_have_one_place():
    twice = np.r_[X[:20], X[:20]]
    for stress in ("raw", "sammon"):
        Z = MetricMDS(2, stress=stress, tol=1e-6).fit_transform(twice)
        np.testing.assert_allclose(Z[:20], Z[20:], atol=0.05)


def test_restarts_are_reported():
    model = MetricMDS(1, n_init=4, random_state=1, max_iter=3000).fit(X)
    assert model.stresses_.shape == (4,) and model.stress_ == model.stresses_.min()
    assert model.report_.certificate["spread"] == np.ptp(model.stresses_) > 0
    again = MetricMDS(1, n_init=4, random_state=1, max_iter=3000).fit(X)
    assert again.embedding_.tobytes() == model.embedding_.tobytes()
    text = model.summary()
    assert text.startswith("Metric scaling (raw) of 60 points in 1 dimensions, by the distance of")
    assert "converged" in text and "restarts   4" in text


@pytest.mark.parametrize("stress", ["raw", "sammon"])
def test_training_points_return_to_their_places(stress):
    model = MetricMDS(2, stress=stress).fit(X)
    np.testing.assert_array_equal(model.transform(X), model.embedding_)
    near = model.transform(X + 1e-7)  # different from the training points
    assert np.abs(near - model.embedding_).max() < 1e-2
    assert model.score(X) == pytest.approx(-model.stress_, rel=1e-9)


def test_new_points_have_the_least_stress(model):
    Z, delta = model.transform(NEW), cdist(NEW, X)
    w = np.ones_like(delta)
    found = stress_of_points(Z, delta, model.embedding_, w)
    assert model.score(NEW) == pytest.approx(-found.sum() / np.sum(delta**2))
    for _ in range(300):
        other = Z + rng.normal(size=Z.shape) * 10.0 ** rng.uniform(-5, 1)
        assert np.all(stress_of_points(other, delta, model.embedding_, w) > found - 1e-9)


def test_new_points_where_the_map_is_exact():
    plane = rng.normal(size=(40, 2))
    for kernel in ("linear", Linear() + Linear()):  # the second has no special case
        Z = MetricMDS(2, kernel=kernel).fit(plane[:30]).transform(plane)
        times = 1.0 if kernel == "linear" else np.sqrt(2.0)
        np.testing.assert_allclose(pdist(Z), times * pdist(plane), atol=1e-3)


def test_blocks_do_not_matter(model, monkeypatch):
    before = model.transform(NEW)
    monkeypatch.setattr("mercer.estimators.embedding._metric_mds._MAX_BLOCK_ENTRIES", 100)
    np.testing.assert_allclose(model.transform(NEW), before, atol=1e-12)


def test_weights_of_pairs():
    W = rng.uniform(0.5, 2.0, size=(60, 60))
    W = W + W.T
    model = MetricMDS(2).fit(X, weights=W)
    d, delta, w = pdist(model.embedding_), pdist(X), squareform(W, checks=False)
    assert model.stress_ == pytest.approx(np.sum(w * (d - delta) ** 2) / np.sum(w * delta**2))
    plain = pdist(MetricMDS(2).fit(X).embedding_)
    assert np.sum(w * (plain - delta) ** 2) > np.sum(w * (d - delta) ** 2)
    ones = MetricMDS(2).fit(X, weights=np.ones((60, 60)))
    np.testing.assert_allclose(ones.embedding_, MetricMDS(2).fit(X).embedding_, atol=1e-3)
    hidden = np.where(np.arange(60) == 7, 1e3, X.T).T  # a point whose pairs have zero weight
    seen = np.ones((60, 60))
    seen[7] = seen[:, 7] = 1e-9
    rest = np.arange(60) != 7
    kept = MetricMDS(2, max_iter=3000).fit(hidden, weights=seen).embedding_[rest]
    alone = MetricMDS(2).fit(X[rest]).embedding_
    np.testing.assert_allclose(pdist(kept), pdist(alone), atol=0.05)
    new = model.transform(NEW, weights=np.ones((9, 60)))
    np.testing.assert_allclose(new, model.transform(NEW))


def test_kernels_and_matrices_agree():
    kernel = RBF(3.0)
    K, K_new = kernel(X), kernel(NEW, X)
    D = squareform(feature_space_pdist(kernel, X))
    np.testing.assert_allclose(D, np.sqrt(np.maximum(2.0 - 2.0 * K, 0.0)), atol=1e-7)
    by_kernel = MetricMDS(2, kernel=kernel).fit(X)
    by_values = MetricMDS(2, kernel="precomputed").fit(K)
    by_matrix = MetricMDS(2, dissimilarity="precomputed").fit(D)
    for other in (by_values, by_matrix):
        np.testing.assert_allclose(other.embedding_, by_kernel.embedding_, atol=1e-4)
    new = by_matrix.transform(np.sqrt(2.0 - 2.0 * K_new))
    np.testing.assert_allclose(new, by_kernel.transform(NEW), atol=1e-3)
    np.testing.assert_allclose(by_values.transform(K), by_values.embedding_, atol=1e-6)
    with pytest.raises(ValueError, match=r"coordinates need k\(x, x\)"):
        by_values.transform(K_new)
    assert "a matrix of dissimilarities" in by_matrix.summary()


def test_words_have_places():
    model = MetricMDS(2, kernel=Spectrum(2)).fit(WORDS)
    delta = feature_space_pdist(Spectrum(2), WORDS)
    lost = np.sum((pdist(model.embedding_) - delta) ** 2) / np.sum(delta**2)
    assert model.stress_ == pytest.approx(lost)
    np.testing.assert_allclose(model.transform(WORDS[:3]), model.embedding_[:3])
    assert model.transform(["GATTTTACA"]).shape == (1, 2)


def test_an_axis_without_variance_is_not_a_trap():
    """Points on a star: classical scaling has one axis, on which some points coincide."""
    D = np.array([[0, 1, 1, 2], [1, 0, 2, 1], [1, 2, 0, 1], [2, 1, 1, 0]], dtype=float)
    assert MetricMDS(2, dissimilarity="precomputed").fit(D).stress_ < 0.06
    line = np.c_[np.arange(10.0), np.zeros(10)]
    assert MetricMDS(2).fit(line).stress_ < 1e-6


def test_units():
    plain = MetricMDS(2).fit(X)
    for unit in (2.0**-300, 2.0**300):
        scaled = MetricMDS(2).fit(unit * X)
        np.testing.assert_allclose(scaled.embedding_, unit * plain.embedding_, rtol=1e-6)


def test_an_end_before_convergence_is_said():
    with pytest.warns(ConvergenceWarning, match=r"2 steps \(max_iter=2\) without convergence"):
        model = MetricMDS(2, max_iter=2).fit(X)
    assert model.report_.status.name == "NOT_CONVERGED"


def test_the_budget():
    with pytest.raises(MemoryBudgetError, match=r"all pairs of 60 points needs 42\.2 KiB"):
        MetricMDS(2, max_memory="40 KiB").fit(X)


def test_verbose(capsys):
    MetricMDS(2, verbose=1, n_init=2).fit(X)
    out = capsys.readouterr().out
    assert "[MetricMDS] run 1 of 2, step 1: stress " in out and "in 2 dimensions" in out


D = squareform(pdist(X))
ALONE = np.where((np.arange(60) == 3) | (np.arange(60)[:, None] == 3), 0.0, 1.0)


@pytest.mark.parametrize(
    ("data", "options", "weights", "message"),
    [
        (X, {"n_components": 6}, None, "n_components=6 is too large for n_features=5"),
        (X[:1], {}, None, "at least 2 points, got n_samples=1"),
        (np.ones((5, 3)), {}, None, "all 5 rows of X are equal.*constant columns"),
        (np.where(X > 3, np.nan, X), {}, None, "NaN"),
        (WORDS, {}, None, "requires vectors, but X contains strings"),
        (WORDS, {"kernel": Spectrum(2), "n_components": 7}, None, "7 points span 6 dimensions"),
        (X, {"dissimilarity": "precomputed"}, None, r"square matrix, got shape \(60, 5\)"),
        (-D, {"dissimilarity": "precomputed"}, None, "not be negative, but the smallest is -"),
        (D + 1.0, {"dissimilarity": "precomputed"}, None, "up to 1 on its diagonal"),
        (np.triu(D), {"dissimilarity": "precomputed"}, None, "is not symmetric: it differs"),
        (X, {}, np.ones((3, 3)), r"weights of pairs must have the shape \(60, 60\), got \(3, 3\)"),
        (X, {}, -np.ones((60, 60)), "weights must not be negative, but the smallest is -1"),
        (X, {}, ALONE, "all pairs with point 3 have weight 0"),
    ],
)
def test_what_cannot_be_fitted_is_reported(data, options, weights, message):
    with pytest.raises(ValueError, match=message):
        MetricMDS(**options).fit(data, weights=weights)


def test_what_cannot_be_asked_is_reported(model):
    with pytest.raises(NotFittedError):
        MetricMDS().transform(X)
    with pytest.raises(TypeError, match="MetricMDS has no expansion_, so it cannot be compressed"):
        compress(model, 5)
    with pytest.raises(ValueError, match="all pairs of point 2 with training points have weight 0"):
        model.transform(NEW, weights=(np.arange(9) != 2)[:, None] * np.ones((9, 60)))
    by_matrix = MetricMDS(2, dissimilarity="precomputed").fit(D)
    with pytest.raises(ValueError, match="not be negative, but the smallest is -1"):
        by_matrix.transform(D - 1.0)


def test_a_constant_column_changes_nothing(model):
    wide = np.c_[X, np.full(60, 3.0)]
    np.testing.assert_allclose(MetricMDS(2).fit(wide).embedding_, model.embedding_, atol=1e-6)


def test_the_function_is_the_estimator(model):
    found = metric_mds(Stress(pdist(X)), 2)
    np.testing.assert_allclose(found.Z, model.embedding_, atol=1e-3)
    np.testing.assert_allclose(
        embed_new_points(cdist(NEW, X), model.embedding_), model.transform(NEW), atol=1e-9
    )


@pytest.mark.data
def test_oil_flow():
    """Published for the first 100 points: Sammon mapping has 6 nearest-neighbour errors."""
    path = DATA / "oil_flow" / "oil_flow.npz"
    if not path.exists():
        pytest.skip(f"no {path.name}: set MERCER_DATA")
    with np.load(path, allow_pickle=False) as data:
        A, y = data["X_train"][:100], data["y_train"][:100]
    apart = squareform(pdist(MetricMDS(2, stress="sammon").fit(A).embedding_))
    np.fill_diagonal(apart, np.inf)
    assert np.sum(y[apart.argmin(axis=1)] != y) <= 8


def test_new_points_leave_the_local_minimum_of_their_nearest_neighbour():
    rng = np.random.default_rng(0)
    local = 0
    for _ in range(60):
        Z = rng.normal(size=(40, 2))
        delta = np.linalg.norm(rng.normal(size=(1, 2)) - Z, axis=1) * rng.uniform(0.3, 1.5)
        delta = (delta + np.abs(rng.normal(size=40)))[None]
        found = float(
            stress_of_points(embed_new_points(delta, Z), delta, Z, np.ones_like(delta))[0]
        )

        def cost(z, delta=delta, Z=Z):
            return float(stress_of_points(z[None], delta, Z, np.ones_like(delta))[0])

        best = min(
            minimize(cost, start, method="BFGS").fun for start in 2 * rng.normal(size=(6, 2))
        )
        local += found > best * (1.0 + 1e-6)
    assert local <= 2  # 5 errors if only the nearest neighbour is used


def test_names_of_the_coordinates_and_few_iterations():
    X = np.random.default_rng(0).normal(size=(30, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = MetricMDS(2, random_state=0, max_iter=1).fit(X)
    assert list(model.get_feature_names_out()) == ["metricmds0", "metricmds1"]
    assert np.isfinite(model.transform(X[:3] + 0.1)).all()
