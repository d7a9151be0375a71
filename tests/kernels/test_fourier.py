"""Random Fourier features: frequencies, compared with their kernels."""

import pickle
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp

from mercer.kernels import (
    RBF,
    Bounded,
    Callable,
    Cauchy,
    Constant,
    Cosine,
    Exp,
    Features,
    Fixed,
    FourierBasis,
    InverseMultiquadric,
    Laplacian,
    Linear,
    Map,
    Matern,
    Multiquadric,
    Normalized,
    Periodic,
    Polynomial,
    RationalQuadratic,
    Scale,
    Select,
    Shift,
    Stretch,
    Sum,
    White,
    random_features,
    skewed_features,
)
from mercer.kernels.features import _spectral_density as spectra
from mercer.kernels.features._fourier_features import _sobol
from mercer.testing import check_input_gradient, check_kernel

D = 2**13
rng = np.random.default_rng(0)
X, Z = rng.normal(size=(40, 3)), rng.normal(size=(30, 3))
ARD = (0.7, 1.5, 3.0)

# Kernels with the root mean square error, relative to k(0), of "auto" with 2^13 features.  With
# independent draws it is at most 1 / sqrt(2^13) = 0.011; Sobol points gain less for rough kernels.
KERNELS = [
    (RBF(1.3), 0.001),
    (RBF(ARD), 0.001),
    (Matern(1.2, nu=0.5), 0.008),
    (Matern(1.2, nu=0.8), 0.008),
    (Matern(1.2, nu=1.5), 0.006),
    (Matern(ARD, nu=3.7), 0.004),
    (Matern(1.2, nu=100.0), 0.002),
    (Matern(1.2, nu=np.inf), 0.0015),
    (RationalQuadratic(0.8, alpha=0.6), 0.006),
    (RationalQuadratic(ARD, alpha=2.0), 0.004),
    (Cauchy(1.1), 0.006),
    (InverseMultiquadric(0.9), 0.006),
    (Laplacian(1.6), 0.006),
    (Laplacian(ARD), 0.006),
    (Periodic(1.7, 0.9), 0.005),
    (2.5 * Matern(nu=2.5), 0.006),
    (RBF(0.5) + Matern() + 0.2, 0.006),
    (RBF() + Scale(Cauchy(), 1e-6), 0.002),
    (RBF(2.0) * RBF(ARD), 0.0015),
    (RBF() * Matern(), 0.007),
    (Laplacian(2.0) * Periodic() * RationalQuadratic(), 0.013),
    ((RBF() + 1) * (Laplacian() + 0.5), 0.009),
    (Cauchy() ** 2, 0.008),
    ((RBF(2.0) + 0.5) ** 2, 0.002),
    (Fixed(RBF()), 0.0015),
    (Bounded(2 * RBF(), (0.1, 10.0)), 0.0015),
    (Select(RBF(0.8), [0, 2]), 0.001),
    (Select(Matern(), (1, 1, 0)), 0.005),
    (Select(Laplacian(), -1), 0.002),
    (Select(RBF(0.5), 0) * Select(Matern(), slice(1, 3)) + Select(Periodic(), 1), 0.005),
    (Stretch(Matern(nu=2.5), ARD), 0.004),
    (Stretch(Laplacian() + RBF(), 1.5), 0.005),
    (Shift(RBF(1.3), (1.0, -2.0, 0.5)), 0.001),
    (Normalized(3 * RBF() + Periodic()), 0.004),
]
every_kernel = pytest.mark.parametrize(("k", "bound"), KERNELS, ids=[str(k) for k, _ in KERNELS])


def error(k, n_features, method="auto", seeds=(0, 1), A=X, B=Z):
    """Return the root mean square error of the features, relative to k(0)."""
    K, d = k(A, B), A.shape[1]
    bases = [random_features(k, d, n_features, method=method, random_state=s) for s in seeds]
    squares = [np.mean((basis(A) @ basis(B).T - K) ** 2) for basis in bases]
    return np.sqrt(np.mean(squares)) / k.diag(A[:1])[0]


# ---------------------------------------------------------------------- the approximation


def test_every_kernel_with_a_rule_is_tested():
    def parts(k):
        return {type(k)}.union(*(parts(child) for _, child in k._children()))

    tested = set().union(*(parts(k) for k, _ in KERNELS))
    assert set(spectra._rule.registry) - {object} == tested


@every_kernel
def test_the_error_falls(k, bound):
    fine, coarse = error(k, D), error(k, D // 16)
    assert fine < bound
    assert fine < coarse / 2.5  # with 16 times the features, the error is a quarter or less


@every_kernel
def test_the_diagonal_is_exact(k, bound):
    phi = random_features(k, 3, 64, random_state=0)(X)
    assert phi.shape == (40, 64)
    np.testing.assert_allclose(np.square(phi).sum(axis=1), k.diag(X), rtol=1e-14)


@every_kernel
@pytest.mark.parametrize("method", ["iid", "orthogonal"])
def test_no_bias(k, bound, method):
    A, K, n = X[:6], k(X[:6]), 30
    values = []
    for seed in range(n):
        phi = random_features(k, 3, 512, method=method, random_state=seed)(A)
        values.append(phi @ phi.T)
    off = np.triu_indices(6, 1)
    mean, spread = np.mean(values, axis=0)[off], np.std(values, axis=0, ddof=1)[off]
    scores = (mean - K[off]) / (spread / np.sqrt(n))
    assert np.abs(scores).max() < 4.0  # 15 scores, almost independent
    assert np.sqrt(np.mean(scores**2)) < 2.0


@pytest.mark.parametrize(
    ("k", "ratio"), [(RBF(), 5.0), (Matern(nu=2.5), 2.0), (Laplacian(), 1.8), (Periodic(), 2.0)]
)
def test_sobol_points_beat_independent_ones_in_few_columns(k, ratio):
    assert error(k, D, "qmc") < error(k, D, "iid") / ratio


@pytest.mark.parametrize("d", [8, 40])
def test_orthogonal_frequencies_beat_independent_ones(d):
    A = rng.normal(size=(60, d)) * 1.2 / np.sqrt(d)
    seeds = range(12)
    orthogonal, independent = (
        error(RBF(), 2 * 4 * d, method, seeds, A, A) for method in ("orthogonal", "iid")
    )
    assert orthogonal < 0.8 * independent


@pytest.mark.parametrize(("d", "m"), [(5, 100), (10, 50), (16, 64)])
def test_auto_leaves_no_more_than_the_other(d, m):
    A = rng.normal(size=(60, d)) / np.sqrt(d)
    auto, *others = (error(RBF(), 2 * m, q, range(12), A, A) for q in ("auto", "qmc", "orthogonal"))
    assert auto == min(others)


def test_a_shift_keeps_the_net():
    cells = np.floor(8.0 * _sobol(64, 2, np.random.default_rng(1))).astype(int)
    assert (np.bincount(8 * cells[:, 0] + cells[:, 1], minlength=64) == 1).all()
    means = [_sobol(4, 3, np.random.default_rng(seed)).mean(axis=0) for seed in range(400)]
    # each point is uniform, including the first one
    assert np.abs(np.mean(means, axis=0) - 0.5).max() < 0.01
    large = _sobol(2**13, 9, np.random.default_rng(1))  # too large for the cache
    np.testing.assert_array_equal(large[:64, :2], _sobol(64, 9, np.random.default_rng(1))[:, :2])


def test_blocks_are_orthogonal():
    W = random_features(RBF(), 30, 2 * 70, method="orthogonal", random_state=0).frequencies
    for block in (W[:30], W[30:60], W[60:]):
        lengths = np.linalg.norm(block, axis=1)
        cosines = block @ block.T / np.outer(lengths, lengths)
        np.testing.assert_allclose(cosines, np.eye(len(block)), atol=1e-13)
        assert np.ptp(lengths) > 0.5  # chi distributed: 30^(1/2) ± 0.7
    fewer = random_features(RBF(), 30, 2 * 5, method="orthogonal", random_state=0).frequencies
    np.testing.assert_allclose((fewer @ fewer.T)[np.triu_indices(5, 1)], 0.0, atol=1e-12)


def test_auto():
    def same(k, d, method):
        auto = random_features(k, d, 64, random_state=0)
        return auto == random_features(k, d, 64, method=method, random_state=0)

    assert same(RBF(), 5, "qmc")  # 32 frequencies, and 5^2 <= 32
    assert same(RBF(), 6, "orthogonal")
    assert same(Matern(), 25, "qmc")
    assert same(Matern(), 26, "orthogonal")
    assert same(Select(RBF(), [3, 30]), 40, "qmc")  # only the dimension of the frequencies counts
    assert same(Select(RBF(), [3, 30]) * Select(Matern(), [30, 31]), 40, "qmc")
    assert same(Laplacian(), 40, "qmc")
    # Sobol sequences have at most 21201 dimensions
    assert random_features(Laplacian(), 22_000, 4, random_state=0)


# ---------------------------------------------------------------------- features per term of a sum


def test_terms_share_the_features():
    k = 3 * Select(RBF(), 0) + Select(RBF(), 1) + 0.5 + Constant(1.5)
    basis = random_features(k, 2, 2 * 81, random_state=0)
    first, second = basis.frequencies.T != 0
    assert (first.sum(), second.sum()) == (60, 20)
    assert (~first & ~second).sum() == 1  # one feature for all constants
    assert basis.weights[~first & ~second] == pytest.approx(np.sqrt(2.0))
    np.testing.assert_allclose(basis.weights[first], np.sqrt(3 / 60))


def test_each_term_has_a_pair():
    k = Select(RBF(), 0) + 1e-9 * Select(RBF(), 1) + 0 * Select(RBF(), 2)
    assert ((random_features(k, 3, 6, random_state=0).frequencies != 0).sum(axis=0) == 1).all()


@pytest.mark.parametrize(
    "k", [Constant(0.7), 2 * Constant(0.7) + 1, 0 * RBF(), Normalized(0 * RBF())]
)
@pytest.mark.parametrize("method", ["auto", "iid"])
def test_constants(k, method):
    basis = random_features(k, 3, 8, method=method, random_state=0)
    np.testing.assert_allclose(Features(basis)(X, Z), k(X, Z), rtol=1e-14)


@pytest.mark.parametrize("n_features", [2, 4, 6, 50, 1000])
def test_any_even_number_of_features(n_features):
    for method in ("qmc", "orthogonal", "iid"):
        basis = random_features(Matern(), 3, n_features, method=method, random_state=0)
        assert basis(X).shape == (40, n_features)


@pytest.mark.parametrize(
    "k",
    [
        Matern(nu=0.01),
        RationalQuadratic(alpha=1e-5),
        RationalQuadratic(alpha=1e5),
        Periodic(length_scale=1e-5),
        Periodic(length_scale=1e5),
        RBF(1e-5) * Laplacian(1e-5),
    ],
    ids=str,
)
def test_hard_numbers(k):
    assert error(k, 512) < 0.06


# ---------------------------------------------------------------------- a basis is a value


@pytest.mark.parametrize("method", ["auto", "qmc", "orthogonal", "iid"])
def test_the_same_seed_gives_the_same_bits(method):
    k = RBF() * Laplacian() + 2 * Matern()
    first, again, other = (
        random_features(k, 3, 128, method=method, random_state=seed) for seed in (7, 7, 8)
    )
    np.testing.assert_array_equal(first(X), again(X))
    assert first == again
    assert first != other
    generator = np.random.default_rng(7)
    assert random_features(k, 3, 128, method=method, random_state=generator) == first
    assert random_features(k, 3, 128, method=method, random_state=generator) != first


BASES = [
    FourierBasis([0.5, 2.0, 0.0]),
    FourierBasis([[0.5, 1.0, -1.0], [2.0, 0.0, 0.3]], weights=(0.5, 2.0)),
    random_features(Matern(), 3, 16, random_state=0),
    random_features(RBF() + Periodic(3.0) + 1, 3, 300, random_state=0),
]
each_basis = pytest.mark.parametrize("basis", BASES, ids=str)


@each_basis
def test_values(basis):
    again = eval(repr(basis))
    assert again == basis
    assert hash(again) == hash(basis)
    assert pickle.loads(pickle.dumps(basis)) == basis
    with pytest.raises(ValueError, match="read-only"):
        basis.frequencies[0] = 1.0
    with pytest.raises(AttributeError):
        basis.weights = None
    assert len(str(basis)) < 120


def test_the_caller_keeps_the_arrays():
    W, a = np.ones((2, 3)), np.ones(2)
    basis = FourierBasis(W, a)
    W[:], a[:] = 0.0, 0.0
    assert basis == FourierBasis(np.ones((2, 3)), np.ones(2))


def test_formula():
    W, a = rng.normal(size=(5, 3)), rng.uniform(size=5)
    want = np.concatenate([a * np.cos(X @ W.T), a * np.sin(X @ W.T)], axis=1)
    np.testing.assert_allclose(FourierBasis(W, a)(X), want, rtol=1e-13)
    differences = np.einsum("ijc,mc->ijm", X[:, None] - Z, W)
    np.testing.assert_allclose(Features(FourierBasis(W, a))(X, Z), np.cos(differences) @ a**2)


@each_basis
@pytest.mark.parametrize("points", [np.asarray, sp.csr_array, sp.csr_matrix])
def test_laws(basis, points):
    d = basis.frequencies.shape[1]
    A, B = points(X[:9, :d]), points(Z[:5, :d])
    check_kernel(Features(basis), A, B)
    check_input_gradient(Features(basis) * RBF() + 2 * Features(basis), A, B)


@each_basis
def test_pullback(basis):
    A = X[:, : basis.frequencies.shape[1]]
    G = rng.normal(size=(40, 2 * len(basis.frequencies)))
    got, h = basis.pullback(A, G), 1e-5
    for c, e in enumerate(h * np.eye(A.shape[1])):
        want = np.sum(G * (basis(A + e) - basis(A - e)), axis=1) / (2 * h)
        size = np.abs(basis.frequencies).max() * np.abs(G).sum(axis=1).max()
        np.testing.assert_allclose(got[:, c], want, atol=1e-7 * size)


@pytest.mark.parametrize("points", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("shift", [0.0, 1e5])
def test_float32(points, shift):
    # Far from 0, phases in float32 would have larger errors than the features themselves.
    A = (X + shift).astype(np.float32)
    basis = random_features(RBF(), 3, 512, random_state=0)
    phi = basis(points(A))
    assert phi.dtype == np.float32
    np.testing.assert_allclose(phi, basis(A.astype(float)), atol=1e-6)


def test_many_rows_and_none():
    A = rng.normal(size=(600, 3))  # more than one block of rows
    basis = random_features(RBF(), 3, 64, random_state=0)
    np.testing.assert_allclose(basis(A)[500:], basis(A[500:]), atol=1e-14)
    np.testing.assert_array_equal(basis(sp.csr_array(A)) - basis(A) < 1e-14, True)
    assert basis(A[:0]).shape == (0, 64)


# ---------------------------------------------------------------------- errors


class Cut(RBF):
    def profile(self, s):
        return np.exp(-s)


@pytest.mark.parametrize(
    ("k", "name"),
    [
        (Linear(), "Linear"),
        (RBF() + 2 * Linear(), "Linear"),
        (RBF() * Polynomial(), "Polynomial"),
        (Cosine(), "Cosine"),
        (White(), "White"),
        (Exp(RBF()), "Exp"),
        (Multiquadric(), "Multiquadric"),
        (RBF() ** 0.5, "Power with the exponent 0.5"),
        (Map(RBF(), np.tanh), "Map"),
        (Callable(np.dot), "Callable"),
        (Normalized(Select(Linear(), 0)), "Linear"),
        (Features(FourierBasis([1.0])), "Features"),
        (Cut(), "Cut"),  # a subclass is another kernel
    ],
)
def test_kernels_without_random_features(k, name):
    with pytest.raises(TypeError, match=f"{name} has no random Fourier features.*Nystroem"):
        random_features(k, 3, 64)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: random_features(RBF(), 3, 7), "n_features must be an even number .* got 7"),
        (lambda: random_features(RBF(), 3, 0), "n_features must be .* got 0"),
        (lambda: random_features(RBF(), 3, -2), "n_features must be .* got -2"),
        (lambda: random_features(RBF(), 3, 8.0), "n_features must be .* got 8.0"),
        (lambda: random_features(RBF(), 0, 8), "n_columns must be a positive integer, got 0"),
        (lambda: random_features(RBF(), 3, 8, method="sobol"), "method must be one of .*'qmc'"),
        (
            lambda: random_features("rbf", 3, 8),
            "needs a kernel, got 'rbf'; convert it by as_kernel",
        ),
        (lambda: random_features(RBF("median"), 3, 8), "length_scale='median'.*resolve"),
        (lambda: random_features(RBF(ARD), 2, 8), "RBF has 3 length scales, .* 2 columns"),
        (lambda: random_features(Stretch(RBF(), ARD), 2, 8), "Stretch has 3 length scales"),
        (lambda: random_features(Select(RBF(), 5), 3, 8), "no column 5"),
        (lambda: random_features(Select(RBF(), slice(5, 9)), 3, 8), "none of the 3 columns"),
        (lambda: random_features(Select(RBF(), "a"), 3, 8), "select columns by index"),
        (
            lambda: random_features(Sum((RBF(),) * 9), 3, 16),
            "9 terms.* only 8 pairs; use at least 18",
        ),
        (lambda: random_features((RBF() + 1) ** 20, 3, 16), "1048576 terms .* Nystroem"),
        (lambda: random_features(RBF(), 22_000, 2, method="qmc"), "22000 numbers, .* 21201"),
        (lambda: FourierBasis(1.0), r"shape \(m, d\) or \(m,\), got shape \(\)"),
        (lambda: FourierBasis([]), "got shape"),
        (lambda: FourierBasis([[np.nan]]), "finite"),
        (lambda: FourierBasis([1.0, 2.0], [1.0]), r"weights must be 2 .* got shape \(1,\)"),
        (lambda: FourierBasis([1.0], [-1.0]), "weights must be 1 finite numbers >= 0"),
        (lambda: FourierBasis([1.0])(X), "the frequencies have 1 columns, but the points have 3"),
    ],
)
def test_refusals(make, text):
    with pytest.raises((TypeError, ValueError), match=text):
        make()


def test_a_random_state_of_numpy_is_a_seed():
    for draw in (partial(random_features, RBF()), skewed_features):
        a, b = (draw(2, 8, random_state=np.random.RandomState(3))(np.abs(X[:, :2])) for _ in "ab")
        np.testing.assert_array_equal(a, b)
        assert not np.allclose(a, draw(2, 8, random_state=3)(np.abs(X[:, :2])))
