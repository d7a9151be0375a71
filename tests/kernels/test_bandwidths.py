"""Bandwidth rules against their formulas, and local scaling."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist

from mercer import SVC, KernelKMeans, ParzenDensity
from mercer.kernels import RBF, Distance, LocalRBF, Mismatch, Properties, Radial, Sigmoid, node
from mercer.kernels._parameter_tree import data_dependent

X = np.random.default_rng(0).normal(size=(50, 3)) * [1.0, 2.0, 3.0] + 5.0


@pytest.mark.parametrize(
    ("rule", "factor"), [("scott", 50 ** (-1 / 7)), ("silverman", (50 * 5 / 4) ** (-1 / 7))]
)
def test_rules_of_densities(rule, factor):
    width = factor * np.sqrt(X.var(axis=0).mean())
    assert RBF(rule).resolve(X).length_scale == pytest.approx(width)
    assert RBF(rule).resolve(sp.csr_array(X)).length_scale == pytest.approx(width)
    assert SVC(gamma=rule).fit(X, np.arange(50) % 2).kernel_.length_scale == pytest.approx(width)
    Z = (X - X.mean()) / np.sqrt(X.var(axis=0).mean())  # standardised, as Parzen's rule assumes
    assert ParzenDensity(bandwidth=rule).fit(Z).bandwidth_ == pytest.approx(factor)


@pytest.mark.parametrize("rule", ["scott", "silverman"])
def test_a_weight_of_two_is_two_points(rule):
    times = np.random.default_rng(1).integers(1, 4, 50)
    weighted = RBF(rule).resolve(X, times.astype(float))
    repeated = RBF(rule).resolve(np.repeat(X, times, axis=0))
    assert weighted.length_scale == pytest.approx(repeated.length_scale)
    assert RBF(rule).resolve(np.ones((4, 2))).length_scale == pytest.approx(np.sqrt(0.5))


def self_tuning(points, k):
    D = cdist(points, points)
    width = np.sort(D, axis=1)[:, k - 1]
    return np.exp(-(D**2) / np.outer(width, width))


def test_the_self_tuning_affinity_is_not_a_kernel_and_this_one_is():
    E = np.eye(20)  # an isolated point between pairs of close points
    points = np.concatenate([0 * E[:1], E, -E, 1.7 * E, -1.7 * E])
    assert np.linalg.eigvalsh(self_tuning(points, 2))[0] < -0.2
    assert np.linalg.eigvalsh(LocalRBF(2).resolve(points)(points))[0] > -1e-12
    for seed in range(20):
        rng = np.random.default_rng(seed)
        points = rng.normal(size=(20, 2)) * np.exp(1.5 * rng.normal(size=(20, 1)))
        assert np.linalg.eigvalsh(LocalRBF(4).resolve(points)(points))[0] > -1e-12


def test_it_is_the_inner_product_of_gaussians():
    kernel = LocalRBF(2, [[0.0], [0.3], [2.0]])
    x, z = 0.1, 1.4
    a, b = (np.sort(np.abs(np.array([0.0, 0.3, 2.0]) - p))[1] for p in (x, z))
    t = np.linspace(-30, 30, 200_001)
    f, g = (np.exp(-((t - p) ** 2) / w**2) for p, w in ((x, a), (z, b)))
    expected = np.sum(f * g) / np.sqrt(np.sum(f * f) * np.sum(g * g))
    assert kernel([[x]], [[z]])[0, 0] == pytest.approx(expected, rel=1e-8)


def test_a_dense_and_a_wide_cluster():
    rng = np.random.default_rng(0)
    ring = rng.normal(size=(60, 2))
    points = np.concatenate([0.05 * rng.normal(size=(60, 2)), [[6.0, 0.0]] + 1.5 * ring])
    labels = KernelKMeans(2, kernel=LocalRBF(), random_state=0).fit(points).labels_
    assert len(set(labels[:60])) == len(set(labels[60:])) == 1


def test_copies_new_points_and_bad_input():
    copies = np.array([[0.0]] * 5 + [[1.0]])
    K = LocalRBF(3).resolve(copies)(copies)
    assert np.allclose(K[:5, :5], 1.0)
    assert np.all(np.isfinite(LocalRBF(3).resolve(np.zeros((5, 1)))(np.zeros((5, 1)))))
    model = SVC(kernel=LocalRBF()).fit(X, X[:, 0] > 5)
    assert model.score(X, X[:, 0] > 5) > 0.9
    assert len(LocalRBF().resolve(np.random.default_rng(0).normal(size=(5000, 1))).points) == 1000
    with pytest.raises(ValueError, match="n_neighbors must be a positive integer"):
        LocalRBF(0)
    with pytest.raises(ValueError, match="must be computed from data"):
        LocalRBF()(X)
    with pytest.raises(ValueError, match="same features"):
        LocalRBF(2, X)(X[:, :2])


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("offset", [0.0, 1e3, 1e6])
def test_the_weighted_variance_does_not_cancel(sparse, offset):
    Z = np.random.default_rng(3).normal(size=(50, 2)) + offset
    Z[:10] = 0.0 if sparse else offset
    times = np.random.default_rng(4).integers(0, 4, size=50)
    repeated = RBF("scale").resolve(np.repeat(Z, times, axis=0))
    given = sp.csr_array(Z) if sparse else Z
    weighted = RBF("scale").resolve(given, times.astype(float))
    assert weighted.length_scale == pytest.approx(repeated.length_scale, rel=1e-9)


@pytest.mark.parametrize("weight", [1, 3])
def test_the_median_of_many_rows_counts_repetitions(weight):
    Z = np.random.default_rng(6).normal(size=(900, 2))
    times = np.random.default_rng(7).integers(0, 1 + weight, size=900)
    times[:3] = weight
    repeated = RBF("median").resolve(np.repeat(Z, times, axis=0))
    weighted = RBF("median").resolve(Z, times.astype(float))
    assert weighted.length_scale == pytest.approx(repeated.length_scale)


def test_points_of_weight_0_have_no_letters():
    words, weights = ["abba", "baab", "zzz"], np.array([1.0, 2.0, 0.0])
    assert Mismatch(2, 1).resolve(words, weights) == Mismatch(2, 1).resolve(words[:2])


@node
class Tapered(Radial):
    """RBF(l) whose profile is raised to a power that may be a rule, too."""

    power: float = data_dependent("columns", is_rule=lambda power: isinstance(power, str))

    def profile(self, s):
        return np.exp(-0.5 * self.power * s)

    def slope(self, s):
        return -0.5 * self.power * self.profile(s)

    def _resolve(self, X, weights, targets):
        return replace(super()._resolve(X, weights, targets), power=float(np.shape(X)[1]))


def test_a_kernel_may_have_several_rules():
    X = np.arange(6.0).reshape(3, 2)
    assert Tapered(3.0).resolve(X) == Tapered(3.0, power=2.0)
    scale = RBF("median").resolve(X).length_scale
    assert Tapered("median").resolve(X) == Tapered(scale, power=2.0)
    np.testing.assert_allclose(Tapered(3.0).resolve(X)(X), RBF(3.0)(X) ** 2)


def test_properties_of_kernels_with_a_rule_have_no_points():
    assert Sigmoid(gamma="scale").properties == Properties(
        "tanh has a power series with negative coefficients", diagonal_bound=1.0
    )
    unresolved, resolved = (Distance(scale).properties for scale in ("median", 1.0))
    assert unresolved.order == resolved.order == 1
    assert unresolved.against is None and resolved.against is not None
