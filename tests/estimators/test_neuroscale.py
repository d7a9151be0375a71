"""NeuroScale: gradients against differences, stress near that of metric MDS, supervision."""

import numpy as np
import pytest
from data_folder import DATA
from scipy.spatial.distance import cdist, pdist, squareform
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning

from mercer import KernelPCA, MemoryBudgetError, MetricMDS, NeuroScale, compress, load, save
from mercer.datasets import swiss_roll
from mercer.kernels import RBF, Distance, Spectrum
from mercer.models.embedding import Stress, embedding_quality, feature_space_pdist
from mercer.models.embedding._neuroscale_training import kernel_stress

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 5)) * [3.0, 2.0, 1.0, 0.5, 0.2]
NEW = rng.normal(size=(9, 5)) * [3.0, 2.0, 1.0, 0.5, 0.2]
WORDS = ["GATTACA", "GATTTACA", "CCGGCG", "CCGCGG", "ATTACC", "TTACCA", "GGGCCG"]
D = squareform(pdist(X))


@pytest.fixture(scope="module")
def model():
    return NeuroScale(2).fit(X)


def nearest_neighbour_errors(Z, y):
    apart = squareform(pdist(Z))
    np.fill_diagonal(apart, np.inf)
    return int(np.sum(y[apart.argmin(axis=1)] != y))


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_the_gradient_is_that_of_differences(weighted):
    A = X[:12]
    S = Stress(pdist(A), rng.random(66) if weighted else None)
    problem, e = kernel_stress(S, RBF(2.0)(A), 0.1)
    C, h = rng.normal(size=(len(e), 2)), 1e-6
    gradient = problem(C)[1]
    for at in np.ndindex(C.shape):
        step = np.zeros_like(C)
        step[at] = h
        difference = (problem(C + step)[0] - problem(C - step)[0]) / (2 * h)
        assert gradient[at] == pytest.approx(difference, abs=1e-6 * np.abs(gradient).max())


@pytest.mark.parametrize("alpha", [0.01, 1.0])
def test_a_step_is_one_iteration_of_shadow_targets(alpha):
    """Half the gradient step equals ridge regression, in its textbook form, on shadow targets."""
    A, q, n = X[:20], 2, 20
    delta = pdist(A)
    S, K = Stress(delta), RBF(2.0)(A)
    H = np.eye(n) - 1.0 / n
    centred = H @ K @ H
    problem, e = kernel_stress(S, K, alpha)
    C = rng.normal(size=(len(e), q))
    Z = problem.coordinates(C)
    apart = squareform(pdist(Z)) + np.eye(n)
    B = -squareform(delta) / apart
    np.fill_diagonal(B, 0.0)
    np.fill_diagonal(B, -B.sum(axis=1))
    # The Guttman transform of SMACOF, except that n - 1 replaces n as the curvature.
    targets = Z - (n * Z - B @ Z) / (n - 1)
    ridge = alpha * np.trace(centred) / n
    expected = centred @ np.linalg.solve(centred + ridge * np.eye(n), targets)
    found = problem.coordinates(C - 0.5 * problem(C)[1])
    np.testing.assert_allclose(found, expected, atol=1e-8 * np.abs(expected).max())


@pytest.mark.parametrize("stress", ["raw", "sammon"])
@pytest.mark.parametrize("name", ["digits", "swiss roll", "iris"])
def test_the_stress_is_close_to_that_of_mds(name, stress):
    rows = np.random.default_rng(1).permutation(150)
    A = {
        "digits": lambda: load_digits().data[:300],
        "swiss roll": lambda: swiss_roll(300, random_state=0)[0],
        "iris": lambda: load_iris().data[rows],
    }[name]()
    A, held_out = A[: 2 * len(A) // 3], A[2 * len(A) // 3 :]
    ours, mds = NeuroScale(2, stress=stress).fit(A), MetricMDS(2, stress=stress).fit(A)
    assert 0.98 * mds.stress_ < ours.stress_ < 1.1 * mds.stress_
    apart, d = cdist(ours.transform(held_out), ours.embedding_), cdist(held_out, A)
    smallest = pdist(A)[pdist(A) > 0].min()
    w = 1.0 if stress == "raw" else 1.0 / np.maximum(d, smallest)
    ours_new = np.sum(w * (apart - d) ** 2) / np.sum(w * d * d)
    assert ours_new < 1.3 * -mds.score(held_out)


def test_coordinates_are_values_of_the_expansion(model, tmp_path):
    Z = model.embedding_
    values = model.expansion_(X) + model.intercept_
    np.testing.assert_allclose(values, Z, atol=1e-9)
    np.testing.assert_allclose(model.transform(X), Z, atol=1e-9)
    by_hand = model.kernel_(NEW, X) @ model.dual_coef_ + model.intercept_
    np.testing.assert_allclose(model.transform(NEW), by_hand, atol=1e-9)
    np.testing.assert_allclose(Z.mean(axis=0), 0.0, atol=1e-9)
    covariance = Z.T @ Z
    assert abs(covariance[0, 1]) < 1e-9 * covariance[0, 0] and covariance[0, 0] > covariance[1, 1]
    d = pdist(X)
    assert model.stress_ == pytest.approx(np.sum((pdist(Z) - d) ** 2) / np.sum(d * d))
    assert model.score(X) == pytest.approx(-model.stress_)
    report = model.report_
    assert report.status.name == "CONVERGED" and report.residual <= model.tol
    assert report.certificate["stress"] == model.stress_ < report.certificate["penalised_stress"]
    assert 0.0 < report.certificate["gradient_norm"] < 1e-3
    save(model, tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").transform(NEW), model.transform(NEW))


def test_alpha_between_mds_and_smooth_functions():
    stresses = [NeuroScale(2, alpha=a).fit(X).stress_ for a in (0.0, 0.01, 1.0)]
    assert stresses == sorted(stresses)
    assert stresses[0] == pytest.approx(MetricMDS(2).fit(X).stress_, rel=1e-3)


def test_the_linear_kernel_gives_a_linear_map():
    linear = NeuroScale(2, kernel="linear").fit(X)
    a, b, c = linear.transform(np.stack([X[0], X[1], 0.5 * (X[0] + X[1])]))
    np.testing.assert_allclose(c, 0.5 * (a + b), atol=1e-9)
    assert linear.stress_ > NeuroScale(2).fit(X).stress_


def test_conditionally_positive_definite_kernels():
    model = NeuroScale(2, kernel=Distance()).fit(X)
    assert model.stress_ < 1.1 * MetricMDS(2).fit(X).stress_


def test_distances_of_a_kernel_or_a_matrix():
    model = NeuroScale(2, kernel=Spectrum(2)).fit(WORDS)
    d = feature_space_pdist(Spectrum(2), WORDS)
    assert model.stress_ == pytest.approx(
        np.sum((pdist(model.embedding_) - d) ** 2) / np.sum(d * d)
    )
    given = NeuroScale(2, kernel=Spectrum(2)).fit(WORDS, dissimilarities=squareform(d))
    np.testing.assert_allclose(given.embedding_, model.embedding_, atol=1e-6)
    K = RBF(3.0)(X)
    by_kernel = NeuroScale(2, kernel=RBF(3.0), dissimilarity="kernel").fit(X)
    by_values = NeuroScale(2, kernel="precomputed").fit(K)
    np.testing.assert_allclose(by_values.embedding_, by_kernel.embedding_, atol=1e-5)
    assert by_values.score(K, dissimilarities=squareform(feature_space_pdist(RBF(3.0), X))) == (
        pytest.approx(-by_values.stress_)
    )
    with pytest.raises(ValueError, match="does not contain the distances between new points"):
        by_values.score(K)


def test_weights():
    W = np.ones((60, 60))
    W[0, 1:30] = W[1:30, 0] = 100.0
    heavy = NeuroScale(2).fit(X, weights=W).embedding_
    plain = NeuroScale(2).fit(X).embedding_

    def error(Z):
        return np.sum((cdist(Z[:1], Z[1:30]) - cdist(X[:1], X[1:30])) ** 2)

    assert error(heavy) < 0.5 * error(plain)


def test_supervision_by_labels_and_values():
    A, y = load_iris(return_X_y=True)
    names, train = np.array(["a", "b", "c"])[y], np.arange(150) % 2 == 0
    plain = NeuroScale(2).fit(A[train], names[train])
    half = NeuroScale(2, supervision=0.5).fit(A[train], names[train])
    np.testing.assert_array_equal(plain.embedding_, NeuroScale(2).fit(A[train]).embedding_)
    before, after = (nearest_neighbour_errors(m.embedding_, y[train]) for m in (plain, half))
    assert after < before
    # d = (1 - 0.5) * distance + 0.5 * indicator * root mean square of the distances
    d = pdist(A[train])
    s = (y[train][:, None] != y[train]).astype(float)[np.triu_indices(75, 1)]
    d = 0.5 * d + 0.5 * s * np.sqrt(np.mean(d * d) / np.mean(s))
    apart = pdist(half.embedding_)
    assert half.stress_ == pytest.approx(np.sum((apart - d) ** 2) / np.sum(d * d))
    assert half.score(A[train], names[train]) == pytest.approx(-half.stress_)
    by_value = NeuroScale(1, supervision=1.0).fit(A[train], A[train, 2] + 0.05)
    line = by_value.transform(A[~train])[:, 0]
    assert abs(np.corrcoef(line, A[~train, 2])[0, 1]) > 0.99


def test_random_starts_and_reproducibility(model):
    several = NeuroScale(2, n_init=3, random_state=1).fit(X)
    again = NeuroScale(2, n_init=3, random_state=1).fit(X)
    np.testing.assert_array_equal(several.embedding_, again.embedding_)
    best = [m.report_.certificate["penalised_stress"] for m in (several, model)]
    assert best[0] <= best[1] and several.report_.certificate["restarts"] == 3


def test_units(model):
    for unit in (2.0**-100, 2.0**100):
        scaled = NeuroScale(2).fit(unit * X)
        np.testing.assert_allclose(scaled.embedding_, unit * model.embedding_, rtol=1e-6)


def test_compress_reduces_the_centres(model):
    small = compress(model, 20)
    assert len(small.X_fit_) == 20 and not hasattr(small, "embedding_")
    error = np.linalg.norm(small.transform(X) - model.embedding_)
    assert error < 0.05 * np.linalg.norm(model.embedding_)
    assert small.score(X) == pytest.approx(-model.stress_, abs=0.01)


def test_an_end_before_convergence_is_reported():
    with pytest.warns(ConvergenceWarning, match=r"2 steps \(max_iter=2\) without convergence"):
        model = NeuroScale(2, max_iter=2).fit(X)
    assert model.report_.status.name == "NOT_CONVERGED" and model.n_iter_ == 2


def test_the_budget(model):
    with pytest.raises(MemoryBudgetError, match=r"all pairs of 60 points needs 140\.6 KiB"):
        NeuroScale(2, max_memory="100 KiB").fit(X)
    with pytest.raises(MemoryBudgetError, match=r"all pairs of 90 points needs"):
        NeuroScale(2, max_memory="150 KiB").fit(X).score(np.tile(NEW, (10, 1)))


def test_verbose(capsys):
    NeuroScale(2, verbose=1).fit(X)
    out = capsys.readouterr().out
    assert "[NeuroScale] run 1 of 1, step 1: stress " in out and "in 2 dimensions" in out


@pytest.mark.parametrize(
    ("data", "options", "given", "message"),
    [
        (X, {"n_components": 6}, {}, "n_components=6 is too large for n_features=5"),
        (X[:1], {}, {}, "at least 2 points, got n_samples=1"),
        (np.ones((5, 3)), {}, {}, "all 5 rows of X are equal.*constant columns"),
        (X, {"kernel": RBF(1e9)}, {}, "the kernel is constant on the points"),
        (WORDS, {"kernel": Spectrum(2), "dissimilarity": "euclidean"}, {}, "needs vectors"),
        (X, {}, {"dissimilarities": D[:3, :3]}, r"shape \(60, 60\), got \(3, 3\)"),
        (X, {}, {"dissimilarities": -D}, "dissimilarities must not be negative"),
        (X, {}, {"dissimilarities": np.triu(D)}, "is not symmetric"),
        (X, {}, {"dissimilarities": np.where(D > 3, np.nan, D)}, "contains NaN"),
        (X, {}, {"weights": -np.ones((60, 60))}, "weights must not be negative"),
        (X, {"supervision": 0.5}, {}, "supervision=0.5 requires y to be passed"),
        (X, {"supervision": 0.5}, {"y": np.ones(60)}, "all 60 values of y are equal"),
        (X, {"supervision": 0.5}, {"y": np.arange(3)}, "y has 3 values, but there are 60 points"),
        (X, {"supervision": 1.5}, {}, "'supervision' parameter of NeuroScale must be a float"),
    ],
)
def test_what_cannot_be_fitted_is_reported(data, options, given, message):
    with pytest.raises(ValueError, match=message):
        NeuroScale(**options).fit(data, **given)


@pytest.mark.data
def test_oil_flow():
    path = DATA / "oil_flow" / "oil_flow.npz"
    if not path.exists():
        pytest.skip(f"no {path.name}: set MERCER_DATA")
    with np.load(path, allow_pickle=False) as data:
        A, y, B, labels = (data[k] for k in ("X_train", "y_train", "X_test", "y_test"))
    mds, ours = MetricMDS(2).fit(A), NeuroScale(2).fit(A)
    assert ours.stress_ < 1.01 * mds.stress_ and ours.score(B) > 1.05 * mds.score(B)
    pca = KernelPCA(2, kernel="rbf", gamma="median").fit_transform(A)
    qualities = [embedding_quality(A, Z).trustworthiness[9] for Z in (ours.embedding_, pca)]
    assert qualities[0] > 0.94 > qualities[1]
    supervised = NeuroScale(2, supervision=0.5).fit(A, y)
    nearest = cdist(supervised.transform(B), supervised.embedding_).argmin(axis=1)
    assert np.sum(y[nearest] != labels) <= 10  # of 1000 points that were not used in the fit
