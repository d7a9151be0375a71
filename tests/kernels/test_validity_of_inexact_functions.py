"""Functions with low precision or a tolerance: valid kernels are not refuted because of that."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.spatial.distance import cdist

from mercer import validity

F16, F32 = np.float16, np.float32


def _rbf(gamma):
    return lambda X, Z: np.exp(-gamma * np.square(X[:, None] - Z[None]).sum(axis=2))


def _rbf_by_products(gamma):
    def function(X, Z):
        squares = np.square(X).sum(axis=1)[:, None] + np.square(Z).sum(axis=1)
        return np.exp(-gamma * (squares - X.dtype.type(2) * (X @ Z.T)))

    return function


def _families(rng):
    """Return Mercer kernels as functions of two matrices, in the precision of their arguments."""
    a, b, p = rng.uniform(0.1, 2.0), rng.uniform(0.1, 2.0), int(rng.integers(1, 4))
    a, b = F16(a), F16(b)  # exact in each precision
    return [
        lambda X, Z: a * (X @ Z.T),
        lambda X, Z: (a * (X @ Z.T) + b) ** p,
        _rbf(a),
        _rbf_by_products(a),
        lambda X, Z: np.exp(-a * np.abs(X[:, None] - Z[None]).sum(axis=2)),
        lambda X, Z: 1 / (1 + a * np.square(X[:, None] - Z[None]).sum(axis=2)),
        lambda X, Z: np.cos(a * (X[:, None] - Z[None])).sum(axis=2),
        lambda X, Z: np.tanh(X.sum(axis=1))[:, None] * np.tanh(Z.sum(axis=1)) + b,
        lambda X, Z: np.minimum(np.abs(X)[:, None], np.abs(Z)[None]).sum(axis=2),
        lambda X, Z: _rbf(a)(X, Z) * (X @ Z.T + b) + _rbf(b)(X, Z),
    ]


def _in_precision(function, dtype, way):
    """Return the function with its arithmetic, input or output in another precision."""
    if way == "arithmetic":
        return lambda X, Z: function(X.astype(dtype), Z.astype(dtype)).astype(float)
    if way == "scaled":
        return lambda X, Z: 0.3 * function(X.astype(dtype), Z.astype(dtype)).astype(float)
    if way == "output":
        return lambda X, Z: function(X, Z).astype(dtype)
    return lambda X, Z: function(X, Z) + 0.1 * function(X.astype(dtype), Z.astype(dtype))


def _cases():
    """Return 240 functions, by name: three rounds of 80, which differ in their parameters."""
    rng = np.random.default_rng(0)
    return {
        f"{round} {place} {dtype.__name__} {way}": _in_precision(function, dtype, way)
        for round in range(3)
        for place, function in enumerate(_families(rng))
        for dtype in (F32, F16)
        for way in ("arithmetic", "scaled", "output", "part")
    }


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # float16 overflows at the largest scale
@pytest.mark.parametrize("rounds", [(0,), pytest.param((1, 2), marks=pytest.mark.long)])
@pytest.mark.parametrize("part", range(4))
def test_no_kernel_in_low_precision_is_refuted(part, rounds):
    points = np.random.default_rng(part).normal(size=(24, 1 + part % 3))
    cases = [case for case in list(_cases().items())[part::4] if int(case[0][0]) in rounds]
    assert len(cases) == 20 * len(rounds)
    verdicts = {name: validity(function, points, n_grams=2) for name, function in cases}
    assert {name: str(v) for name, v in verdicts.items() if v.status != "unknown"} == {}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("place", range(10))
def test_a_full_search_does_not_refute_them_either(place):
    cases = list(_cases().values())[8 * place : 8 * place + 8]
    assert validity(cases[place % 8], n_grams=12).status == "unknown"


def _integrated(tol, scale):
    """Return k(x, z) = int exp(-(x - t)^2 - (z - t)^2) / (1 + t^2) dt, by adaptive quadrature."""

    def function(x, z):
        def integrand(t):
            return np.exp(-scale * ((x[0] - t) ** 2 + (z[0] - t) ** 2)) / (1.0 + t * t)

        return quad(integrand, -6.0, 6.0, epsabs=tol, epsrel=tol, limit=20)[0]

    return function


@pytest.mark.filterwarnings("ignore::scipy.integrate.IntegrationWarning")
@pytest.mark.parametrize("tol", [1e-2, 1e-4, 1e-6, 1e-8])
def test_no_kernel_by_quadrature_is_refuted(tol):
    points = np.random.default_rng(0).normal(size=(8, 1))
    for scale in (0.3, 2.0):
        found = validity(_integrated(tol, scale), points, n_grams=1, tol=tol)
        assert found.status == "unknown"


@pytest.mark.parametrize("dtype", [F32, F16])
def test_no_kernel_by_random_nodes_is_refuted(dtype):
    nodes = np.random.default_rng(0).normal(size=(300, 2))

    def function(X, Z):
        a, b = (np.cos((Y @ nodes.T).astype(dtype)) for Y in (X, Z))
        return (a @ b.T / dtype(300)).astype(float)

    assert validity(function, np.random.default_rng(1).normal(size=(24, 2))).status == "unknown"


def _jaro(s, t):
    if not s or not t:
        return float(s == t)
    reach, used, matched = max(len(s), len(t)) // 2 - 1, set(), []
    for i, letter in enumerate(s):
        for j in range(max(0, i - reach), min(len(t), i + reach + 1)):
            if j not in used and t[j] == letter:
                used.add(j)
                matched.append((letter, j))
                break
    m = len(matched)
    if not m:
        return 0.0
    other = [t[j] for j in sorted(used)]
    swaps = sum(a != b for (a, _), b in zip(matched, other, strict=True)) / 2
    return (m / len(s) + m / len(t) + (m - swaps) / m) / 3


NOT_KERNELS = {
    "tanh": lambda X, Z: np.tanh(X @ Z.T),
    "negative squared distance": lambda X, Z: -np.square(X[:, None] - Z[None]).sum(axis=2),
    "distance": lambda X, Z: np.abs(X[:, None] - Z[None]).sum(axis=2),
    "multiquadric": lambda X, Z: np.sqrt(1 + np.square(X[:, None] - Z[None]).sum(axis=2)),
    "Epanechnikov": lambda X, Z: np.maximum(1 - np.square(X[:, None] - Z[None]).sum(axis=2), 0),
    "exp(-d^4)": lambda X, Z: np.exp(-(np.square(X[:, None] - Z[None]).sum(axis=2) ** 2)),
    "maximum": lambda X, Z: np.maximum(X[:, None], Z[None]).sum(axis=2),
    "power 3/2": lambda X, Z: np.abs(1 + np.abs(X) @ np.abs(Z).T) ** X.dtype.type(1.5),
    "difference": lambda X, Z: _rbf(X.dtype.type(1))(X, Z) - _rbf(X.dtype.type(0.2))(X, Z) / 2,
}


@pytest.mark.parametrize("dtype", [float, F32])
@pytest.mark.parametrize("name", NOT_KERNELS)
def test_classical_non_kernels_are_refuted_in_both_precisions(name, dtype):
    function = NOT_KERNELS[name]
    verdict = validity(lambda X, Z: function(X.astype(dtype), Z.astype(dtype)).astype(float))
    assert verdict.status == "refuted"
    assert verdict.counterexample.value < -verdict.counterexample.margin
    assert verdict.counterexample.noise >= (1e-8 if dtype is float else 1e-7)
    assert "for values with a relative error of" in str(verdict)


def test_similarities_of_strings_are_refuted():
    assert validity(_jaro).status == "refuted"
    assert validity(lambda s, t: F32(_jaro(s, t))).status == "refuted"


def test_a_product_in_float32():
    def product(X, Z):
        return 0.3 * (X.astype(F32) @ Z.astype(F32).T)

    points = np.random.default_rng(0).normal(size=(40, 3))
    assert validity(product).status == "unknown"
    assert validity(product, points).status == "unknown"


def test_the_error_of_values_can_be_given():
    def nearly(X, Z):  # about I - 0.1 for points that are far apart
        return np.exp(-np.square(cdist(X, Z))) - 0.1

    X = 30.0 * np.random.default_rng(0).normal(size=(24, 2))
    assert validity(nearly, X).status == "refuted"
    assert validity(nearly, X, tol=0.1).status == "unknown"
    with pytest.raises(ValueError, match=r"must satisfy 0 <= tol < 1, got -1"):
        validity(nearly, tol=-1)
