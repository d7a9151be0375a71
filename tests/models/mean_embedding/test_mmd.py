"""MMD against its definition, against closed forms, and on all types of points."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import energy_distance

from mercer import Expansion, MemoryBudgetError, mmd
from mercer.kernels import RBF, Distance, Linear, Precomputed, Select, ThinPlate, White

rng = np.random.default_rng(0)
X, Y = rng.normal(size=(17, 3)), rng.normal(size=(23, 3)) + 0.3


def by_definition(K, m, estimator):
    Kxx, Kyy, Kxy = K[:m, :m], K[m:, m:], K[:m, m:]
    n = len(K) - m
    if estimator == "biased":
        return Kxx.mean() + Kyy.mean() - 2 * Kxy.mean()
    off = Kxx.sum() - np.trace(Kxx), Kyy.sum() - np.trace(Kyy)
    return off[0] / (m * (m - 1)) + off[1] / (n * (n - 1)) - 2 * Kxy.mean()


@pytest.mark.parametrize("estimator", ["biased", "unbiased"])
@pytest.mark.parametrize("kernel", [RBF(1.3), Linear(), Distance(), RBF(0.7) + White(0.5)])
def test_is_what_it_is_defined_to_be(kernel, estimator):
    Z = np.concatenate([X, Y])
    expected = by_definition(kernel(Z), len(X), estimator)
    assert mmd(X, Y, kernel, estimator) == pytest.approx(expected, rel=1e-10, abs=1e-13)
    if estimator == "biased" and not isinstance(kernel, Distance):
        distance = Expansion.mean(kernel, X).distance(Expansion.mean(kernel, Y))[0]
        assert expected == pytest.approx(distance**2, rel=1e-8)


def test_many_tiles():
    A, B = rng.normal(size=(700, 12)), rng.normal(size=(450, 12))
    K = RBF(3.0)(np.concatenate([A, B]))
    for estimator in ("biased", "unbiased"):
        expected = by_definition(K, 700, estimator)
        assert mmd(A, B, RBF(3.0), estimator) == pytest.approx(expected, rel=1e-9, abs=1e-13)


@given(st.integers(2, 9), st.integers(2, 9), st.integers(0, 1000))
@settings(max_examples=30, deadline=None)
def test_the_unbiased_estimator_does_not_see_the_diagonal(m, n, seed):
    random = np.random.default_rng(seed)
    K = random.normal(size=(m + n, m + n))
    K = K @ K.T
    other = K + np.diag(random.uniform(0, 100, size=m + n))
    first, second = np.arange(m), np.arange(m, m + n)
    expected = mmd(first, second, Precomputed(K))
    assert mmd(first, second, Precomputed(other)) == pytest.approx(expected, abs=1e-10)
    assert expected == pytest.approx(by_definition(K, m, "unbiased"), abs=1e-10)


def test_energy_distance():
    a, b = rng.normal(size=40), rng.exponential(size=25)
    value = mmd(a[:, None], b[:, None], Distance(), "biased")
    assert value == pytest.approx(energy_distance(a, b) ** 2, rel=1e-10)


def test_identical_samples():
    shuffled = X[rng.permutation(len(X))]
    for kernel in (None, Linear(), Distance()):
        assert mmd(X, X, kernel, "biased") == pytest.approx(0.0, abs=1e-13)
        assert mmd(X, shuffled, kernel, "biased") >= 0.0
    assert mmd(X, shuffled) < 0.0  # the unbiased estimate may be negative


def test_gaussian_samples_have_a_closed_form():
    d, sigma = 2, 1.5
    S1, S2, shift = np.diag([1.0, 0.5]), np.diag([2.0, 1.0]), np.array([0.7, -0.2])

    def expected(A, B, delta):
        M = np.eye(d) + (A + B) / sigma**2
        quadratic = delta @ np.linalg.solve(sigma**2 * np.eye(d) + A + B, delta)
        return np.linalg.det(M) ** -0.5 * np.exp(-0.5 * quadratic)

    zero = np.zeros(d)
    exact = expected(S1, S1, zero) + expected(S2, S2, zero) - 2 * expected(S1, S2, shift)
    random = np.random.default_rng(1)
    runs = [
        (
            random.normal(size=(60, d)) * np.sqrt(np.diag(S1)),
            random.normal(size=(80, d)) * np.sqrt(np.diag(S2)) + shift,
        )
        for _ in range(300)
    ]
    for estimator in ("unbiased", "linear"):
        values = np.array([mmd(A, B, RBF(sigma), estimator) for A, B in runs])
        assert abs(values.mean() - exact) < 3.5 * values.std() / np.sqrt(len(values))
    biased = np.mean([mmd(A, B, RBF(sigma), "biased") for A, B in runs])
    bias = (1 - expected(S1, S1, zero)) / 60 + (1 - expected(S2, S2, zero)) / 80
    assert biased == pytest.approx(exact + bias, rel=0.05)


def test_linear_time_is_the_mean_over_disjoint_pairs():
    terms = [
        k(X[[i]], X[[i + 1]])
        + k(Y[[i]], Y[[i + 1]])
        - k(X[[i]], Y[[i + 1]])
        - k(X[[i + 1]], Y[[i]])
        for k in [RBF(1.2)]
        for i in range(0, 16, 2)  # the 17th point has no partner
    ]
    assert mmd(X, Y, RBF(1.2), "linear") == pytest.approx(np.mean(terms), rel=1e-12)


def test_weights_count_points():
    counts = np.arange(1, 18)
    repeated = np.repeat(X, counts, axis=0)
    value = mmd(X, Y, RBF(), "biased", x_weights=counts)
    assert value == pytest.approx(mmd(repeated, Y, RBF(), "biased"), rel=1e-10)
    value = mmd(Y, X, RBF(), "biased", y_weights=0.1 * counts)
    assert value == pytest.approx(mmd(repeated, Y, RBF(), "biased"), rel=1e-10)


def test_the_default_is_the_median_of_both_samples():
    from scipy.spatial.distance import pdist

    median = np.median(pdist(np.concatenate([X, Y])))
    assert mmd(X, Y) == pytest.approx(mmd(X, Y, RBF(median)), rel=1e-10)
    assert mmd(X, Y, "rbf") == pytest.approx(mmd(X, Y, RBF.from_gamma(1 / 3)), rel=1e-10)


def test_strings_sparse_rows_and_tables():
    words, others = ["kernel", "hilbert", "mercer"], ["sobolev", "banach"]

    def shared(s, t):
        return float(len(set(s) & set(t)))

    K = np.array([[shared(s, t) for t in words + others] for s in words + others])
    for estimator in ("biased", "unbiased"):
        assert mmd(words, others, shared, estimator) == pytest.approx(
            by_definition(K, 3, estimator)
        )
    assert mmd(sp.csr_array(X), sp.csr_array(Y)) == pytest.approx(mmd(X, Y), rel=1e-10)
    pd = pytest.importorskip("pandas")
    A, B = (pd.DataFrame(Z, columns=["a", "b", "c"]) for Z in (X, Y))
    assert mmd(A, B, Select(RBF(), ["a"])) == pytest.approx(mmd(X[:, :1], Y[:, :1], RBF()))
    assert mmd(X.astype(np.float32), Y.astype(np.float32)) == pytest.approx(mmd(X, Y), rel=1e-4)


def test_points_of_different_lengths():
    def shared(s, t):
        return float(len(set(s) & set(t)))

    A, B = [[1], [1, 2], [3]], [[2], [2, 3], [4, 5, 6]]
    K = np.array([[shared(s, t) for t in A + B] for s in A + B])
    assert mmd(A, B, shared) == pytest.approx(by_definition(K, 3, "unbiased"))


def test_columns_of_tables_are_found_by_their_names():
    pd = pytest.importorskip("pandas")
    A, B = (pd.DataFrame(Z, columns=["a", "b", "c"]) for Z in (X, Y * [1.0, 5.0, 9.0]))
    for kernel in (None, Select(RBF(), [0])):
        expected = mmd(A, B, kernel)
        assert mmd(A, B[["c", "a", "b"]], kernel) == pytest.approx(expected, rel=1e-12)
    with pytest.raises(ValueError, match=r"different columns: X has \['a', .* Y has \['a', 'x'"):
        mmd(A, B.rename(columns={"b": "x"}))


def test_what_the_points_have_in_common_costs_no_digits():
    for estimator in ("unbiased", "biased", "linear"):
        far = mmd(X + 1e8, Y + 1e8, Linear(), estimator)
        assert far == pytest.approx(mmd(X, Y, Linear(), estimator), rel=1e-6)
    shares = {"estimator": "biased", "x_weights": np.arange(1, 18)}
    near = mmd(X, Y, Linear(), **shares)
    assert mmd(X + 1e8, Y + 1e8, Linear(), **shares) == pytest.approx(near, rel=1e-6)
    assert mmd(X, Y, RBF(1e6)) == pytest.approx(mmd(X, Y, Linear()) * 1e-12, rel=1e-3)


def test_what_is_refused():
    with pytest.raises(ValueError, match="estimator must be 'unbiased', 'biased' or 'linear'"):
        mmd(X, Y, estimator="fast")
    with pytest.raises(ValueError, match="Y has 0 points, but at least 2 are needed"):
        mmd(X, Y[:0])
    with pytest.raises(ValueError, match="X has 1 point, but at least 2 are needed"):
        mmd(X[:1], Y)
    with pytest.raises(ValueError, match="X has 3 points, but at least 4 are needed"):
        mmd(X[:3], Y, estimator="linear")
    with pytest.raises(ValueError, match=r"X has 3 columns, Y has 2; .* use independence_test"):
        mmd(X, Y[:, :2])
    with pytest.raises(
        ValueError, match=r"X does not contain vectors, .* pass a kernel that accepts"
    ):
        mmd(["a", "b"], ["c", "d"])
    with pytest.raises(ValueError, match=r"matrix of all points as kernel=Precomputed\(K\)"):
        mmd(X, Y, "precomputed")
    with pytest.raises(ValueError, match="y_weights require estimator='biased', got 'unbiased'"):
        mmd(X, Y, x_weights=np.ones(17))
    with pytest.raises(ValueError, match=r"x_weights has shape \(3,\), but there are 17 points"):
        mmd(X, Y, estimator="biased", x_weights=np.ones(3))
    with pytest.raises(ValueError, match="y_weights must be finite, not negative, and not all 0"):
        mmd(X, Y, estimator="biased", y_weights=-np.ones(23))
    with pytest.raises(ValueError, match="not conditionally positive definite of order 1"):
        mmd([[0.0]], [[3.0]], ThinPlate(), "biased")
    with pytest.raises(ValueError, match=r"entries that are not finite; .* Scale the features"):
        mmd(1e200 * X, Y, Linear())
    with pytest.raises(MemoryBudgetError):
        mmd(X, Y, max_memory=1000)
