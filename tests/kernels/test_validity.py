"""Validity of kernels: proofs against eigenvalues, counterexamples against extended precision."""

import itertools
import time

import formulas
import mpmath
import numpy as np
import pytest
import scipy.sparse as sp
import zoo
from scipy.spatial.distance import cdist
from sklearn.gaussian_process.kernels import DotProduct as GPDotProduct
from sklearn.gaussian_process.kernels import ExpSineSquared
from sklearn.metrics.pairwise import cosine_similarity, rbf_kernel

import mercer
from mercer import (
    SVC,
    GaussianProcessRegressor,
    Graphs,
    KernelKMeans,
    KernelPCA,
    KernelRidge,
    KernelRidgeCV,
    NotMercerWarning,
    check_gram,
    validity,
)
from mercer.kernels import (
    RBF,
    AdditiveChi2,
    BagOfWords,
    Callable,
    Cauchy,
    Chi2,
    Constant,
    Cosine,
    Distance,
    Equal,
    Exp,
    Fixed,
    HistogramIntersection,
    Jaccard,
    Kendall,
    Kernel,
    Laplacian,
    Linear,
    Map,
    Matern,
    MeanOf,
    Multiquadric,
    Normalized,
    Periodic,
    Polynomial,
    Precomputed,
    Properties,
    Radial,
    RationalQuadratic,
    Select,
    Sigmoid,
    SklearnKernel,
    Spectrum,
    Stretch,
    Sum,
    ThinPlate,
    VertexHistogram,
    White,
    node,
)
from mercer.kernels.algebra._wrappers import Wrapper
from mercer.kernels.validity import _test_points, known_counterexample
from mercer.kernels.validity._counterexample import certify_counterexample, counterexample_at
from mercer.kernels.validity._counterexample_search import _CounterexampleSearch

mpmath.mp.dps = 50


def smallest(K):
    """Return the smallest eigenvalue, relative to the largest entry."""
    return np.linalg.eigvalsh((K + K.T) / 2)[0] / max(np.abs(K).max(), 1e-300)


# ---------------------------------------------------------------------- proofs


@pytest.mark.parametrize("entry", **zoo.every())
def test_the_zoo(entry):
    properties = entry.kernel.properties
    if properties.order is not None:  # the known properties agree with the zoo
        assert properties.order == (0 if entry.psd else entry.cpd_order)
    X = entry.points(12)
    if properties.order is None and entry.psd:  # functions and matrices of the user
        opaque = ("Callable", "Precomputed", "Conditioned")
        assert any(word in repr(entry.kernel) for word in opaque)
        assert entry.kernel.validity(X, n_grams=4).status == "unknown"
    K = entry.kernel(X)
    assert not properties.nonnegative or K.min() >= 0
    assert not properties.unit_diagonal or np.allclose(K.diagonal(), 1)
    if (
        properties.strict
        and properties.order == 0
        and not entry.kernel.domain.distinguishes_observations
    ):
        assert smallest(K) > 0
    if properties.stationary and entry.domain == "vectors" and properties.order is not None:
        np.testing.assert_allclose(entry.kernel(X + 0.5), K, atol=1e-9)
    if properties.infinitely_divisible:
        assert smallest(K**0.3) > -1e-12


@pytest.mark.parametrize("entry", **zoo.every(psd=False))
def test_what_is_not_a_kernel_in_the_zoo_is_refuted(entry):
    verdict = entry.kernel.validity()
    assert verdict.status == "refuted"
    check_again(verdict.counterexample)
    if entry.cpd_order:
        assert entry.kernel.validity(order=entry.cpd_order).status == "proved"
        assert f"conditionally positive definite of order {entry.cpd_order}" in str(verdict)
        below = entry.kernel.validity(order=entry.cpd_order - 1)
        assert below.status == "refuted"
        if entry.cpd_order == 2:
            assert abs(below.counterexample.coefficients.sum()) < 1e-12


def random_kernel(rng, depth=3):
    """Return an expression that is a kernel by construction, for points with three columns."""
    leaves = [
        lambda: RBF(rng.uniform(0.3, 3.0)),
        lambda: RBF(tuple(rng.uniform(0.3, 3.0, 3))),
        lambda: Matern(rng.uniform(0.5, 2.0), nu=float(rng.choice([0.5, 1.5, 2.5]))),
        lambda: RationalQuadratic(alpha=rng.uniform(0.3, 3.0)),
        Cauchy,
        Laplacian,
        lambda: Periodic(rng.uniform(1.0, 3.0)),
        Linear,
        Cosine,
        lambda: Polynomial(int(rng.integers(1, 4)), coef0=rng.uniform(0.0, 1.0), gamma=0.3),
        lambda: Constant(rng.uniform(0.1, 2.0)),
    ]
    if depth == 0 or rng.random() < 0.15:
        return leaves[rng.integers(len(leaves))]()
    one = random_kernel(rng, depth - 1)
    rules = [
        lambda: one + random_kernel(rng, depth - 1),
        lambda: one * random_kernel(rng, depth - 1),
        lambda: rng.uniform(0.1, 3.0) * one,
        lambda: one ** int(rng.integers(1, 3)),
        lambda: one ** rng.uniform(0.2, 2.0) if one.infinitely_divisible else Fixed(one),
        lambda: Exp(0.3 * Normalized(one)),
        lambda: Exp(rng.uniform(0.1, 1.0) * (Distance(exponent=rng.uniform(0.5, 2.0)) + Cosine())),
        lambda: Normalized(one),
        lambda: Stretch(one, rng.uniform(0.5, 2.0)),
        lambda: Map(one, np.tanh),
        lambda: Select(one, [2, 0, 1]),
    ]
    return rules[rng.integers(len(rules))]()


def test_500_random_expressions_are_proved():
    rng = np.random.default_rng(0)
    kernels = [random_kernel(rng) for _ in range(500)]
    proved = [k.properties.order == 0 for k in kernels]
    assert np.mean(proved) >= 0.95
    for k in kernels:
        K = k(rng.normal(size=(10, 3)))
        assert smallest(K) > -1e-11, k
        assert not k.properties.unit_diagonal or np.allclose(K.diagonal(), 1)
        assert not k.properties.nonnegative or K.min() >= -1e-15 * np.abs(K).max()


def test_random_expressions_with_something_else_inside_are_not_proved():
    rng = np.random.default_rng(1)
    linear = formulas.with_formula(lambda X, Z: X @ Z.T, dot)
    wrong = [Sigmoid(), Callable(linear), Distance(), ThinPlate()]
    for _ in range(25):
        k, bad = random_kernel(rng, 2), wrong[rng.integers(len(wrong))]
        for inside in (k + bad, k * bad, Normalized(bad), Stretch(bad), 2.0 * bad, bad**2):
            assert inside.properties.order != 0
        verdict = (0.01 * k + bad).validity(n_grams=12)
        if verdict.status == "refuted":
            check_again(verdict.counterexample)


def test_the_tree_names_every_rule():
    k = 2.0 * RBF() * Linear() + Exp(Distance()) + Normalized(Polynomial(2)) ** 3
    text = str(k.validity())
    for words in (
        "proved: ",
        "a Mercer kernel",
        "sum of kernels",
        "product of kernels (Schur)",
        "positive multiple",
        "Schoenberg: exp of",
        "integer power",
        "k(x, x)^(-1/2)",
        "x^T A z",
        "power series with coefficients >= 0",
        "mixture of Gaussians",
        "├─ ",
        "└─ ",
    ):
        assert words in text
    depths = [depth for depth, _, _ in k.validity().rules()]
    assert depths[0] == 0 and max(depths) == 3
    assert "tensor product" in str((Select(RBF(), 0) * Select(Linear(), [1, 2])).validity())


def test_what_follows_and_what_does_not():
    assert (RBF() + Linear()).properties.strict
    assert not (RBF() * Linear()).properties.strict  # k(0, 0) = 0
    assert (RBF() * Periodic()).properties.strict  # by Oppenheim's inequality
    assert not (RBF() + RBF()).infinitely_divisible
    assert (RBF() * Matern()).infinitely_divisible and Exp(Linear()).infinitely_divisible
    assert Exp(Distance()).properties.order == 0 and Exp(ThinPlate()).properties.order is None
    assert Map(Distance(), np.tanh).properties.order == 1
    # polynomials of tanh x are different functions
    assert Map(ThinPlate(), np.tanh).properties.order is None
    assert Stretch(ThinPlate(), 2.0).properties.order == 2
    assert not Select(RBF(), [0]).properties.strict
    assert (0.0 * Sigmoid()).properties.order == 0
    assert RBF("median").validity().status == "proved"
    assert Callable(np.dot, order=0).validity().status == "proved"
    assert "declared by the user" in str(Callable(np.dot, order=0).validity())
    with pytest.raises(ValueError, match="order must be a non-negative integer"):
        Callable(np.dot, order=-1)


def test_claims_that_hold_for_one_column():
    theirs = SklearnKernel(ExpSineSquared(periodicity=2.0))
    line, plane = np.zeros((3, 1)), np.random.default_rng(0).normal(size=(5, 2))
    assert theirs.validity(line).status == "proved"
    assert "at most 1 column" in str(theirs.validity())
    refuted = theirs.validity(plane)
    assert refuted.status == "refuted" and len(refuted.counterexample) == 3
    assert Select(theirs, [1]).validity(plane).status == "proved"
    assert Select(theirs, [0, 1]).properties.order is None
    assert MeanOf(theirs).properties.order is None
    assert Map(theirs, np.tanh).properties.order is None
    assert SklearnKernel(GPDotProduct() ** 2).properties.order == 0


def test_a_kernel_of_ones_own_is_unknown_until_it_says_more():
    @node
    class Bump(Radial):
        """max(0, 1 - r)^2, a kernel in up to three dimensions."""

        def profile(self, s):
            return np.maximum(0.0, 1.0 - np.sqrt(s)) ** 2

        def slope(self, s):
            return -np.maximum(0.0, 1.0 - np.sqrt(s)) / np.sqrt(s)

    assert Bump().validity(n_grams=20).status == "unknown"

    @node
    class Known(Bump):
        def _properties(self, *inner):
            return Properties("Askey (1973)", 0, columns=3)

    assert Known().validity().status == "proved"
    assert "Askey" in str(Known().validity())

    @node
    class Waves(Radial):
        """cos(r), which is a kernel only on a line; its own class adds nothing to `Radial`."""

        def profile(self, s):
            return np.cos(np.sqrt(s))

        def slope(self, s):
            return -0.5 * np.sinc(np.sqrt(s) / np.pi)

        def _properties(self, *inner):
            return super()._properties(*inner)

    assert Waves().properties == Properties(stationary=True, diagonal_bound=1.0)
    assert Waves().validity().status == "refuted"

    @node
    class Negated(Wrapper):
        """-k, of which only the bound of k is known."""

        def _properties(self, *inner):
            return super()._properties(*inner)

        def _tile(self, P, Q, out):
            super()._tile(P, Q, out)
            np.negative(out, out=out)

    assert Negated(RBF()).properties == Properties(diagonal_bound=1.0)

    @node
    class Unknown(Known):
        def _properties(self, *inner):
            return Kernel._properties(self, *inner)

    assert Unknown().properties == Properties()


@pytest.mark.parametrize("seed", range(4))
def test_no_proved_kernel_has_a_negative_eigenvalue(seed):
    assert lowest_of_random_grams(100, seed) > -1e-11


def lowest_of_random_grams(count, seed):
    """Return the smallest relative eigenvalue over random Gram matrices of proved kernels."""
    rng = np.random.default_rng(seed)
    entries = [e for e in zoo.KERNELS if e.kernel.properties.order == 0]
    worst = 0.0
    for i in range(count):
        if i % 2:
            X = rng.normal(size=(16, 3)) * 10.0 ** rng.uniform(-2, 1)
            K = random_kernel(rng)(X)
        else:
            entry = entries[rng.integers(len(entries))]
            n = 12 if entry.domain == "indices" else 16
            K = entry.kernel(entry.points(n, seed=int(rng.integers(1 << 30))))
        worst = min(worst, smallest(K) / len(K))
    return worst


# ---------------------------------------------------------------------- counterexamples


def check_again(witness):
    """Evaluate c^T K c with 50 digits, from the formula of the kernel."""
    c = [mpmath.mpf(float(weight)) for weight in witness.coefficients]
    points = witness.points
    total = mpmath.fsum(
        c[i] * c[j] * formulas.value(witness.kernel, points[i], points[j])
        for i, j in itertools.product(range(len(c)), repeat=2)
    )
    assert total < 0
    assert abs(total - witness.value) <= witness.margin
    assert witness.value < -witness.margin


def edits(s, t):
    """Return the Levenshtein distance."""
    row = list(range(len(t) + 1))
    for i, a in enumerate(s, 1):
        above, row = row, [i]
        for j, b in enumerate(t, 1):
            row.append(min(above[j] + 1, row[-1] + 1, above[j - 1] + (a != b)))
    return row[-1]


def overlap(a, b):
    return len(a & b) / min(len(a), len(b))


def inverse(X, Z):
    """Return 1 / (d / max d) with a unit diagonal, as found in tutorials."""
    D = cdist(X, Z)
    with np.errstate(divide="ignore"):
        S = 1.0 / (D / D.max())
    S[D == 0] = 1.0
    return S


def bare_inverse(X, Z):
    with np.errstate(divide="ignore", invalid="ignore"):
        return 1.0 / (cdist(X, Z) / 7.0)


def mp_power(p):
    return lambda x, z: (1 + dot(x, z)) ** mpmath.mpf(p)


def mp_rbf(x, z, scale):
    return mpmath.exp(-squared(x, z) / (2 * mpmath.mpf(scale) ** 2))


def numbers(x):
    return [mpmath.mpf(float(t)) for t in x]


def dot(x, z):
    return formulas.dot(numbers(x), numbers(z))


def squared(x, z):
    return mpmath.fsum((a - b) ** 2 for a, b in zip(numbers(x), numbers(z), strict=True))


CLASSICS = {
    "tanh": (lambda x, z: np.tanh(x @ z), lambda x, z: mpmath.tanh(dot(x, z))),
    "tanh + 1": (lambda x, z: np.tanh(x @ z + 1), lambda x, z: mpmath.tanh(dot(x, z) + 1)),
    "exp(+d^2)": (
        lambda x, z: np.exp(0.3 * np.square(x - z).sum()),
        lambda x, z: mpmath.exp(mpmath.mpf(0.3) * squared(x, z)),
    ),
    "power 1/2": (lambda x, z: (1 + x @ z) ** 0.5, mp_power(0.5)),
    "power 3/2": (lambda x, z: (1 + x @ z) ** 1.5, mp_power(1.5)),
    "power 5/2": (lambda x, z: (1 + x @ z) ** 2.5, mp_power(2.5)),
    "power 7/2": (lambda x, z: (1 + x @ z) ** 3.5, mp_power(3.5)),
    "edit distance": (
        lambda s, t: np.exp(-0.1 * edits(s, t)),
        lambda s, t: mpmath.exp(-mpmath.mpf(0.1) * edits(s, t)),
    ),
    "overlap": (overlap, lambda a, b: mpmath.mpf(len(a & b)) / min(len(a), len(b))),
    "difference": (
        lambda X, Z: RBF(1.0)(X, Z) - 0.5 * RBF(2.0)(X, Z),
        lambda x, z: mp_rbf(x, z, 1) - mp_rbf(x, z, 2) / 2,
    ),
    "maximum": (
        lambda X, Z: np.maximum(RBF(0.5)(X, Z), 0.5 * RBF(3.0)(X, Z)),
        lambda x, z: max(mp_rbf(x, z, 0.5), mp_rbf(x, z, 3) / 2),
    ),
    "cosine of d": (
        lambda X, Z: np.cos(cdist(X, Z)),
        lambda x, z: mpmath.cos(mpmath.sqrt(squared(x, z))),
    ),
    "exp(-d^3)": (
        lambda X, Z: np.exp(-(cdist(X, Z) ** 3)),
        lambda x, z: mpmath.exp(-(mpmath.sqrt(squared(x, z)) ** 3)),
    ),
}
CLASSICS = {name: formulas.with_formula(*pair) for name, pair in CLASSICS.items()}


@pytest.mark.parametrize("name", CLASSICS)
def test_classical_mistakes(name):
    function = CLASSICS[name]
    verdict = validity(function)
    assert verdict.status == "refuted"
    assert len(verdict.counterexample) <= 6
    check_again(verdict.counterexample)
    start = time.process_time()
    again = validity(function)  # everything is compiled by now
    assert time.process_time() - start < 1.0
    assert np.array_equal(again.counterexample.coefficients, verdict.counterexample.coefficients)


@pytest.mark.parametrize("coef0", [-0.5, 0.0, 0.5, 1.0, 2.0, 30.0])
def test_the_sigmoid(coef0):
    witness = Sigmoid(gamma=0.7, coef0=coef0).validity().counterexample
    assert len(witness) <= 3
    check_again(witness)


def test_inverse_distances():
    assert "k is not a function of two points" in str(validity(inverse))
    undefined = validity(bare_inverse)
    assert undefined.status == "refuted" and "k(x, x) = inf is not finite" in str(undefined)
    X = np.random.default_rng(0).normal(size=(9, 2))
    check = check_gram(inverse(X, X))
    assert not check.semidefinite


def test_reference_values():
    """The smallest eigenvalues of known counterexamples."""
    K = np.array([[overlap(a, b) for b in ({1}, {2}, {1, 2})] for a in ({1}, {2}, {1, 2})])
    assert check_gram(K).eigenvalues == pytest.approx([-0.4142, 1.0, 2.4142], abs=1e-4)
    for b, value in ((0.5, -0.243), (1.0, -0.0994), (2.0, -0.0142)):
        K = Sigmoid(coef0=b)([[0.3], [6.0]])
        assert check_gram(K).eigenvalues[0] == pytest.approx(value, rel=5e-3)


def test_witness_on_given_points_comes_first():
    X = [{"a", "b"}, {"b", "c"}, {"c"}, {"a"}, {"a", "c", "d"}]
    witness = validity(overlap, X).counterexample
    assert all(point in X for point in witness.points)
    permutations = np.array(list(itertools.permutations([1.0, 2.0, 3.0, 4.0])))

    def moved(x, z):
        """Return exp(-0.01 * number of items that must be moved)."""
        order = [list(z).index(item) for item in x]
        longest = [1] * 4
        for i, j in itertools.combinations(range(4), 2):
            if order[i] < order[j]:
                longest[j] = max(longest[j], longest[i] + 1)
        return np.exp(-0.01 * (4 - max(longest)))

    assert len(validity(moved, permutations[:16]).counterexample) <= 6


def test_kinds_of_points():
    rows = np.random.default_rng(0).integers(0, 2, size=(30, 6))
    verdict = validity(
        lambda x, z: overlap(set(np.flatnonzero(x)) | {9}, set(np.flatnonzero(z))), rows
    )
    assert verdict.status in ("refuted", "unknown")
    wrong = Jaccard() + Callable(lambda a, b: -2.0 * len(a & b))
    assert wrong.validity().counterexample.points[0] <= set(range(1, 7))
    words = Spectrum(1) + Callable(lambda s, t: -2.0 * len(s) * len(t))
    assert words.validity(["abc", "cab", "bb"]).status == "refuted"
    assert (
        Chi2() * Callable(lambda X, Z: 1 - cdist(X, Z))
    ).validity().counterexample.points.min() >= 0
    bags = HistogramIntersection() + Callable(lambda X, Z: -2.0 * X @ Z.T)
    assert bags.validity().status == "refuted"
    parcels = [{"weight": float(i), "size": 10.0 - i} for i in range(40)]
    parcel = Callable(lambda a, b: a["weight"] * b["size"] + b["weight"] * a["size"])
    assert parcel.validity(parcels).status == "refuted"
    values = -np.eye(3)
    assert Precomputed(values).validity().counterexample.value == -1.0
    assert validity("precomputed", values).status == "refuted"
    with pytest.raises(ValueError, match="requires the matrix"):
        validity("precomputed")
    assert Precomputed(zoo.VALUES).validity().status == "unknown"


def test_waves_in_the_plane():
    """max(0, 1 - r) is a kernel on the line; in the plane, its spectrum is partly negative."""
    hat = formulas.with_formula(
        lambda X, Z: np.maximum(0.0, 1.0 - cdist(X, Z)),
        lambda x, z: max(mpmath.mpf(0), 1 - mpmath.sqrt(squared(x, z))),
    )
    verdict = validity(hat)
    assert verdict.status == "refuted"
    assert verdict.counterexample.points.shape[1] > 1
    check_again(verdict.counterexample)
    line = validity(hat, np.zeros((5, 1)), n_grams=30)
    assert line.status == "unknown"


def test_rounding_and_noise_are_no_witness():
    rng = np.random.default_rng(0)

    def noisy(X, Z):
        return RBF()(X, Z) + 1e-6 * rng.normal(size=(len(X), len(Z)))

    def single(X, Z):
        return RBF(3.0)(X.astype(np.float32), Z.astype(np.float32))

    for function in (noisy, single, RBF(5.0).__call__):
        verdict = validity(Callable(function, "matrix"), n_grams=20)
        assert verdict.status == "unknown"
        assert verdict.evidence.n_grams >= 20
        assert "Gram matrices" in str(verdict)
    verdict = validity(lambda X, Z: single(X, Z) - 0.8 * RBF()(X, Z).astype(np.float32), n_grams=20)
    assert verdict.counterexample.margin > 1e-6


def test_asymmetry():
    verdict = validity(lambda x, z: float(x[0] > z[0]))
    assert "k is not symmetric" in str(verdict)
    rng = np.random.default_rng(0)
    assert "but a second evaluation gives" in str(validity(lambda x, z: rng.random()))
    with pytest.raises(ValueError, match="no coefficients"):
        verdict.counterexample(np.zeros((1, 1)))


def test_functions_that_take_nothing_we_know():
    def graphs_only(a, b):
        return a.n_nodes * b.n_nodes

    verdict = validity(graphs_only)
    assert verdict.status == "unknown"
    assert "pass some points" in str(verdict)
    with pytest.raises(ValueError, match="order must be"):
        validity(RBF(), order=-1)
    with pytest.raises(ValueError, match="n_grams must be"):
        validity(RBF(), n_grams=0)


def test_a_witness_is_a_function():
    witness = validity(CLASSICS["difference"]).counterexample
    values = witness(witness.points)
    assert values @ witness.coefficients == pytest.approx(witness.value)
    assert len(witness) == len(str(witness).splitlines()) - 1


def test_functions_that_round_are_not_refuted():
    """Valid kernels whose rounding errors are far larger than those of their values."""

    def arccosine(X, Z):  # of order 0 (Cho and Saul, 2009); the slope of arccos at 1 is infinite
        return 1.0 - np.arccos(np.clip(cosine_similarity(X, Z), -1.0, 1.0)) / np.pi

    def single(X, Z):
        return rbf_kernel(X.astype(np.float32), Z.astype(np.float32), gamma=0.1)

    def times(X, Z):  # seconds since 1970: |x|^2 + |z|^2 - 2 x z cancels
        return rbf_kernel(X, Z, gamma=1e-9)

    inside = Callable(single, "matrix")
    for kernel in (arccosine, 0.3 * inside, inside + Linear(), Exp(inside)):
        assert validity(kernel, n_grams=40).status == "unknown"
    assert validity(times, 1.6e9 + 3600.0 * np.arange(100)[:, None]).status == "unknown"


def test_points_that_are_given_tell_the_domain():
    histograms = np.random.default_rng(0).dirichlet(np.ones(5), 30)
    assert validity(lambda x, z: np.minimum(x, z).sum(), histograms).status == "unknown"
    brownian = np.linspace(0.1, 3.0, 20)[:, None]
    assert validity(lambda x, z: min(x[0], z[0]), brownian).status == "unknown"
    far = validity(
        lambda x, z: np.exp(-((x[0] - z[0]) ** 2)) - 0.9 * (min(abs(x[0]), abs(z[0])) > 8.0),
        brownian - 1.0,
    )
    assert "outside the range of X" in str(far)


def test_all_points_of_a_matrix():
    K = np.full((300, 300), -1 / 250.0)
    np.fill_diagonal(K, 1.0)  # negative only if more than 251 points are considered together
    assert validity(Precomputed(K)).status == validity("precomputed", K).status == "refuted"
    assert "on 3 of the 3 points of the matrix" in str(Precomputed(np.eye(3)).validity())


def test_a_class_that_changes_methods_is_not_proved_by_the_other():
    class Waves(RBF):
        def profile(self, s):
            return np.cos(np.sqrt(s))

    class Named(RBF):
        """An object with only a name."""

    assert Waves().properties == Properties() and Waves().validity().status == "refuted"
    assert Named().validity().status == "proved"


def test_several_kernels_are_judged_as_their_average():
    wrong = mercer.MultipleKernel([RBF(), Sigmoid()])
    assert wrong.validity().status == wrong.validity(X).status == "refuted"
    assert mercer.MultipleKernel([RBF(), Linear()]).validity().status == "proved"
    some = mercer.MultipleKernel([Spectrum(1), Callable(lambda s, t: 1.0)])
    assert some.validity(n_grams=4).status == "unknown"


def test_restrictions_are_in_the_headline():
    assert Chi2().validity().headline.endswith("for points without negative entries")
    theirs = SklearnKernel(ExpSineSquared())
    assert theirs.validity().headline.endswith("for points with at most 1 column")


# ---------------------------------------------------------------------- matrices


def test_check_gram():
    A = np.random.default_rng(0).normal(size=(6, 4))
    good = check_gram(A @ A.T)
    assert good.semidefinite and good.distance == 0 and "positive semidefinite" in str(good)
    K = A @ A.T - 2.0 * np.eye(6)
    bad = check_gram(K)
    assert not bad.semidefinite and bad.symmetric
    assert bad.direction @ K @ bad.direction == pytest.approx(-2.0)
    assert np.linalg.eigvalsh(bad.nearest)[0] > -1e-12
    assert np.linalg.norm(K - bad.nearest) == pytest.approx(bad.distance)
    rng = np.random.default_rng(1)
    for _ in range(50):  # no other matrix is closer
        B = rng.normal(size=(6, 6))
        other = bad.nearest + 0.1 * (B @ B.T - 0.2 * bad.nearest)
        assert np.linalg.eigvalsh(other)[0] < -1e-12 or np.linalg.norm(K - other) >= bad.distance
    skew = K.copy()
    skew[0, 1] += 1.0
    lopsided = check_gram(skew)
    assert not lopsided.symmetric and "not symmetric" in str(lopsided)
    assert np.linalg.norm(skew - lopsided.nearest) == pytest.approx(lopsided.distance)
    K[0, 0] = np.nan
    assert "not finite" in str(check_gram(K))
    assert check_gram(RBF()(A.astype(np.float32))).semidefinite
    large = check_gram(1e308 * np.eye(2))
    assert large.semidefinite and large.eigenvalues == pytest.approx([1e308, 1e308])
    with pytest.raises(ValueError, match="square matrix"):
        check_gram(A)
    with pytest.raises(mercer.MemoryBudgetError, match="check_gram of 6 points"):
        check_gram(A @ A.T, max_memory=100)


# ---------------------------------------------------------------------- estimators


X = np.random.default_rng(0).normal(size=(30, 2))
Y = (X[:, 0] > 0).astype(int)
REFUTED = [Sigmoid(), ThinPlate(), 2.0 * Sigmoid() + RBF(9.0), Sum((Distance(), Sigmoid()))]


@pytest.mark.parametrize("kernel", REFUTED, ids=str)
@pytest.mark.parametrize("model", [KernelRidge(1e3), SVC(), KernelPCA(1)], ids=str)
def test_estimators_warn_once_with_the_witness(kernel, model):
    model = model.set_params(kernel=kernel)
    if known_counterexample(kernel, model._required_cpd_order) is None:
        pytest.skip("the kernel is valid for this model")
    with pytest.warns(NotMercerWarning, match="is not a Mercer kernel") as record:
        try:
            model.fit(X, Y)
        except (ValueError, np.linalg.LinAlgError):
            assert isinstance(model, (KernelPCA, KernelRidge))  # these raise an error
    assert len([r for r in record if r.category is NotMercerWarning]) == 1
    assert "c^T K c" in str(record[0].message) or "k(x, x)" in str(record[0].message)
    assert record[0].filename == __file__


def test_declared_points_have_the_columns_of_the_data():
    for kernel in (Sigmoid(), Distance(), AdditiveChi2()):
        witness = kernel.validity(np.abs(X)).counterexample
        assert witness.points.shape[1] == X.shape[1]
        check_again(witness)


def test_a_grid_of_gammas_warns_once():
    with pytest.warns(NotMercerWarning) as record:
        KernelRidgeCV([100.0], gammas=[0.1, 0.2, 0.3], kernel="sigmoid").fit(X, Y)
    assert len(record) == 1


def test_scikit_learn_kernels_that_are_none():
    positive = np.abs(X)
    with pytest.warns(NotMercerWarning, match="is not a Mercer kernel"):
        GaussianProcessRegressor(GPDotProduct() ** 0.5, alpha=1.0, optimizer=None).fit(positive, Y)
    with pytest.warns(NotMercerWarning, match="on 3 points"):
        GaussianProcessRegressor(ExpSineSquared(), alpha=3.0, optimizer=None).fit(X, Y)
    GaussianProcessRegressor(ExpSineSquared(), alpha=3.0, optimizer=None).fit(X[:, :1], Y)


def test_who_asks_for_less_does_not_warn():
    for kernel in (Distance(), Multiquadric(), AdditiveChi2()):
        points = np.abs(X)
        KernelPCA(1, kernel=kernel).fit(points)
        KernelKMeans(2, kernel=kernel).fit(points)
        SVC(kernel=kernel).fit(points, Y)
        mercer.mmd(points[:9], points[9:], kernel)
        with pytest.warns(NotMercerWarning):
            KernelRidge(100.0, kernel=kernel).fit(points, Y)
    KernelRidge(1.0, kernel=ThinPlate(), solver="lstsq").fit(X, Y)
    KernelPCA(1, kernel=Sigmoid(), indefinite="clip").fit(X)


def test_nothing_is_searched_for_in_a_fit(monkeypatch):
    calls = []

    def function(a, b):
        calls.append(len(a))
        return a @ b.T

    KernelRidge(1.0, kernel=Callable(function, "matrix") + White(0.1)).fit(X, Y)
    assert all(n in (1, 2, 30) for n in calls)
    monkeypatch.setattr(
        "mercer.kernels.validity._counterexample_search.counterexample_at", None
    )  # it is not called
    KernelRidge(1.0, kernel=RBF() + 2.0 * Matern()).fit(X, Y)


# ---------------------------------------------------------------------- local search


def test_downhill_along_the_gradient():
    """Start from six points that are not a counterexample; use gradients or differences."""
    wide = formulas.with_formula(
        lambda X, Z: -0.5 * RBF(2.0)(X, Z), lambda x, z: -mp_rbf(x, z, 2) / 2
    )
    wrong = RBF(1.0) + Callable(wide, "matrix")
    start = np.random.default_rng(3).normal(size=(6, 2))
    assert counterexample_at(wrong, start) is None
    for kernel in (wrong, Stretch(Sigmoid(coef0=0.1), 1.0)):
        search = _CounterexampleSearch(kernel, None, 0, np.random.default_rng(0))
        found = search.descend("vectors", 0.3 * start if kernel is not wrong else start)
        assert found is not None and len(found) <= 6
        check_again(found)


@pytest.mark.parametrize(
    ("kind", "start", "function"),
    [
        (
            "strings",
            ["abba", "bab", "a", "bb", "aab", "abab"],
            CLASSICS["edit distance"],
        ),
        ("sets", [{1}, {2}, {3}, {4}, {5}], CLASSICS["overlap"]),
    ],
    ids=["strings", "sets"],
)
def test_downhill_by_small_changes(kind, start, function):
    kernel = Callable(function, "pair")
    assert counterexample_at(kernel, start) is None
    searches = (
        _CounterexampleSearch(kernel, start, 0, np.random.default_rng(seed), 0.0)
        for seed in range(6)
    )
    found = next(filter(None, (search.run(1) for search in searches)), None)
    assert found is not None
    check_again(found)


# ---------------------------------------------------------------------- test points


def rng():
    return np.random.default_rng(0)


@pytest.mark.parametrize(
    ("kind", "kernel"),
    [
        ("strings", Spectrum(2)),
        ("texts", BagOfWords(tfidf=False)),
        ("sets", Jaccard()),
        ("rankings", Kendall()),
        ("categories", Equal()),
        ("graphs", VertexHistogram()),
        ("collections", MeanOf(RBF())),
    ],
)
def test_random_points_of_every_kind(kind, kernel):
    batches = list(itertools.islice(_test_points.sample_points(kind, kernel, None, (), rng()), 8))
    assert len(batches) == 8
    for points in batches:
        assert smallest(kernel(points)) > -1e-10
    assert any(np.ptp(kernel(points)) > 0 for points in batches)


def test_random_points_are_like_those_that_are_given():
    X = np.array([[1.0, 2.0, 3.0, 4.0, 5.0]])
    samples = _test_points.sample_points("rankings", Kendall(), X, (), rng())
    first, second = itertools.islice(samples, 2)
    assert np.array_equal(first, X) and np.array_equal(np.sort(second), np.tile(X, (24, 1)))
    table = np.array([["a", "b"]], dtype=object)
    samples = _test_points.sample_points("categories", Equal(), table, (), rng())
    assert [points.shape for points in itertools.islice(samples, 3)] == [(1, 2), (24, 2), (24, 2)]
    assert list(_test_points.sample_points("indices", Precomputed(), None, (), rng())) == []
    parcels = [{"weight": float(i)} for i in range(40)]
    result = Callable(lambda a, b: a["weight"] * b["weight"]).validity(parcels)
    assert (result.status, result.evidence.n_grams) == ("unknown", 120)
    sparse = sp.csr_array(np.random.default_rng(0).normal(size=(9, 3)))
    assert Callable(lambda X, Z: -(X @ Z.T), "matrix").validity(sparse).status == "refuted"


def test_small_changes_follow_the_neighbours_of_a_kernel():
    change = _test_points.perturbation("rankings", Kendall(), np.array([[1.0, 2.0, 3.0]]))
    moved = change(np.array([1.0, 2.0, 3.0]), rng())
    assert moved.tolist() in ([2.0, 1.0, 3.0], [1.0, 3.0, 2.0])
    alone = Graphs.from_edges([[]], sizes=[1])
    change = _test_points.perturbation("graphs", VertexHistogram(), alone)
    assert change(alone[0], rng()) == alone[0]  # it has no neighbours


def exponential(X, Z, limit=np.inf):
    """exp(-|x - z|_1), which is not finite at distances beyond the limit."""
    distances = np.abs(X[:, None] - Z).sum(axis=2)
    return np.where(distances > limit, np.inf, np.exp(-distances))


def exponential_nearby(X, Z):
    if np.abs(X[:, None] - Z).max() > 50:
        raise ValueError("the points are too far apart")
    return exponential(X, Z)


def without_values(X, Z):
    raise ValueError("there are no values")


@pytest.mark.parametrize(
    ("kernel", "X"),
    [
        (Callable(exponential_nearby, "matrix"), None),
        (Callable(exponential, "matrix", params={"limit": 50.0}), None),
        (Callable(exponential, "matrix"), np.random.default_rng(0).normal(size=(9, 5))),
        (RBF() + Callable(without_values, "matrix"), None),
        (Callable(exponential, "matrix", params={"limit": 0.0}), None),
    ],
    ids=["error far away", "infinite far away", "five columns", "never defined", "infinite"],
)
def test_functions_that_are_not_defined_everywhere_are_not_refuted(kernel, X):
    assert kernel.validity(X).status == "unknown"


def test_a_slope_is_zero_where_a_moved_point_is_outside_of_the_domain():
    def nonnegative(X, Z):
        if X.min() < 0:
            raise ValueError("negative")
        return X @ Z.T

    search = _CounterexampleSearch(Callable(nonnegative, "matrix"), None, 0, rng())
    X, c = np.array([[0.0, 1.0], [2.0, 3.0]]), np.array([1.0, 2.0])
    np.testing.assert_allclose(search._slopes(X, c), [[0.0, 7.0], [0.0, 7.0]], rtol=1e-6)


@node
class InverseDistance(Radial):
    """1 / r, which is infinite for equal points."""

    def profile(self, s):
        with np.errstate(divide="ignore"):
            return 1.0 / np.sqrt(s)

    def slope(self, s):
        return -0.5 * s**-1.5

    def _properties(self, *inner):
        return super()._properties(*inner)


@node
class OnLattice(Radial):
    """-exp(-r^2) for integer distances, otherwise infinite."""

    def profile(self, s):
        return np.where(s == np.round(s), -np.exp(-s), np.inf)

    def slope(self, s):
        return np.exp(-s)


def on_integers(X, Z):
    if np.any(np.round(X) != X):
        raise ValueError("not integers")
    return -(X @ Z.T)


@pytest.mark.parametrize(
    ("kernel", "points"),
    [
        (InverseDistance(), [[0.0], [1.0]]),
        (Callable(lambda X, Z: 0.0 * (X @ Z.T), "matrix"), [[1.0], [2.0]]),
        (RBF(), [[1.0]]),
        (RBF(), np.zeros((0, 1))),
    ],
    ids=["infinite", "zero", "one point", "no points"],
)
def test_no_counterexample_on_these_points(kernel, points):
    points = np.asarray(points)
    assert counterexample_at(kernel, points) is None
    if len(points):
        assert certify_counterexample(kernel, points) is None


def test_counterexamples_of_inexact_or_partly_defined_functions():
    points = np.array([[0.0], [1.0]], dtype=np.float32)
    exact, rounded = (
        certify_counterexample(Sigmoid(coef0=-1.0), x) for x in (points.astype(float), points)
    )
    assert rounded.margin > 100 * exact.margin
    assert certify_counterexample(Callable(on_integers, "matrix"), np.array([[1.0]])).value == -1.0
    example = certify_counterexample(OnLattice(), np.array([[1.0], [3.0]]))
    assert example.value == pytest.approx(-2.0 - 2.0 * np.exp(-4.0))


def test_the_spectrum_of_an_infinite_function_is_not_computed():
    assert _test_points.is_stationary(InverseDistance(), 1)
    assert list(_test_points.points_of_negative_spectrum(InverseDistance(), 1)) == []


def test_results_of_other_orders_and_sparse_matrices():
    result = Distance().validity(order=1)
    assert result.headline == "proved: conditionally positive definite of order 1"
    assert not check_gram(sp.csr_array([[1.0, 2.0], [2.0, 1.0]])).semidefinite
