"""No pair of points is evaluated twice within a fit, whatever asks for it."""

import copy
import pickle
from collections import Counter

import numpy as np
import pytest

from mercer import (
    SVC,
    SVR,
    GaussianProcessRegressor,
    KernelLogisticRegression,
    KernelMachineRegressor,
    KernelPCA,
    KernelRidge,
    NuSVC,
    OneClassSVM,
    hsic,
    independence_test,
    mmd,
    two_sample_test,
)
from mercer._runtime import budget_in_bytes, reserve, reserving
from mercer.gram import memoise_if_affordable
from mercer.kernels import RBF, Callable, Normalized, Precomputed, Select, memoise, unwrap

N = 60
rng = np.random.default_rng(0)
WORDS = ["".join(rng.choice(list("abcdef"), size=rng.integers(3, 9))) for _ in range(N)]
WORDS = [f"{word}{i}" for i, word in enumerate(WORDS)]  # all different
LABELS = np.array([word.count("a") > word.count("b") for word in WORDS]).astype(int)


class Counted:
    """A function of two points that counts its calls for each pair."""

    def __init__(self):
        self.calls = Counter()

    def __call__(self, s, t):
        self.calls[tuple(sorted((s, t)))] += 1
        return float(sum(s.count(c) * t.count(c) for c in "abcdef") + (s == t))


def shared_letters(s, t):
    return float(len(set(s) & set(t)))


FITS = {
    "pca": lambda k: KernelPCA(3, kernel=k).fit(WORDS),
    "pca krylov": lambda k: KernelPCA(3, kernel=k, eigen_solver="krylov").fit(WORDS),
    "pca nystroem": lambda k: KernelPCA(3, kernel=k, eigen_solver="nystroem", rank=9).fit(WORDS),
    "ridge": lambda k: KernelRidge(kernel=k).fit(WORDS, LABELS),
    "ridge cg": lambda k: KernelRidge(kernel=k, solver="cg").fit(WORDS, LABELS),
    "gp": lambda k: GaussianProcessRegressor(2.0 * k, alpha=1.0).fit(WORDS, LABELS),
    "logistic": lambda k: KernelLogisticRegression(kernel=k).fit(WORDS, LABELS),
    "machine": lambda k: KernelMachineRegressor("huber", kernel=k).fit(WORDS, LABELS),
    "svc": lambda k: SVC(kernel=k).fit(WORDS, LABELS),
    "svc classes": lambda k: SVC(kernel=k).fit(WORDS, np.arange(N) % 3),
    "nusvc": lambda k: NuSVC(nu=0.1, kernel=k).fit(WORDS, LABELS),
    "svr": lambda k: SVR(kernel=k).fit(WORDS, LABELS),
    "one class": lambda k: OneClassSVM(kernel=k, nu=0.2).fit(WORDS),
    "two samples": lambda k: two_sample_test(WORDS[:25], WORDS[25:], k),
    "mmd": lambda k: mmd(WORDS[:25], WORDS[25:], k),
    "independence": lambda k: independence_test(WORDS, LABELS[:, None], k, RBF()),
    "hsic": lambda k: hsic(WORDS, LABELS[:, None], k, RBF()),
}


@pytest.mark.parametrize("wrap", [lambda k: k, Normalized], ids=["plain", "normalised"])
@pytest.mark.parametrize("name", FITS)
def test_no_pair_is_evaluated_twice(name, wrap):
    function = Counted()
    FITS[name](wrap(Callable(function, contract="pair")))
    assert function.calls
    assert max(function.calls.values()) == 1
    if name == "pca nystroem":
        assert len(function.calls) < 0.5 * N * (N + 1) / 2  # and only those that are needed


def test_what_is_fitted_does_not_hold_the_table():
    kernel = 2.0 * Callable(Counted(), contract="pair")
    model = GaussianProcessRegressor(kernel, alpha=1.0, optimizer=None).fit(WORDS, LABELS)
    assert model.expansion_.kernel == kernel
    assert KernelRidge(kernel=kernel).fit(WORDS, LABELS).expansion_.kernel == kernel
    kernel = 2.0 * Callable(shared_letters, contract="pair")
    held = memoise(kernel, 5)
    assert unwrap(held) == kernel
    assert pickle.loads(pickle.dumps(held)) == copy.deepcopy(held) == kernel
    assert str(held) == str(kernel)


def test_values_are_those_of_the_kernel_for_points_without_room_too():
    kernel = Normalized(Callable(Counted(), contract="pair"))
    held = memoise(kernel, 10)
    for X, Z in ((WORDS[:7], None), (WORDS, None), (WORDS[5:15], WORDS), (WORDS[:3], WORDS[40:])):
        np.testing.assert_array_equal(held(X, Z), kernel(X, Z))
    np.testing.assert_array_equal(held.diag(WORDS), kernel.diag(WORDS))


@pytest.mark.parametrize("points", [rng.normal(size=(20, 3)), [[1], [2, 3], [4]], [{1}, {2}]])
def test_points_of_any_kind_are_known_again(points):
    calls = Counter()

    def function(x, z):
        calls[str(sorted((str(x), str(z))))] += 1
        return float(len(x) * len(z))

    held = memoise(Callable(function, contract="pair"), len(points))
    np.testing.assert_array_equal(held(points), held(points))
    assert max(calls.values()) == 1


def test_an_error_is_the_functions_own_and_leaves_nothing_waiting():
    def function(s, t):
        if fail:
            raise RuntimeError("no value")
        return 1.0

    held, fail = memoise(Callable(function, contract="pair"), N), True
    for _ in range(2):
        with pytest.raises(RuntimeError, match="no value"):
            held(WORDS)
    fail = False
    np.testing.assert_array_equal(held(WORDS), np.ones((N, N)))


def test_functions_of_blocks_and_cheap_kernels_are_left_alone():
    X, calls = rng.normal(size=(N, 3)), []

    def blocks(A, B):
        calls.append(len(A))
        return A @ B.T

    held = memoise(Callable(blocks), N)
    np.testing.assert_allclose(held(X), X @ X.T)
    assert "values" not in held.table.__dict__  # nothing of size n x n was made
    for kernel in (RBF(), Precomputed(np.eye(3)), Select(RBF(), [0]), Callable(blocks, "matrix")):
        assert memoise(kernel, N) is kernel


def test_the_table_takes_at_most_a_part_of_the_budget():
    kernel = Callable(shared_letters, contract="pair")
    assert memoise_if_affordable(kernel, N, 4 * 8 * N * N - 1) is kernel
    with reserving():
        assert memoise_if_affordable(kernel, N, 4 * 8 * N * N) != kernel
        assert budget_in_bytes(10**6) == 10**6 - 8 * N * N  # nobody else counts on it
    assert budget_in_bytes(10**6) == 10**6
    reserve(500)  # outside, nobody would give it back
    assert budget_in_bytes(10**6) == 10**6
    small = KernelRidge(kernel=kernel, alpha=1.0, max_memory=80_000).fit(WORDS, LABELS)
    large = KernelRidge(kernel=kernel, alpha=1.0).fit(WORDS, LABELS)
    np.testing.assert_allclose(small.predict(WORDS), large.predict(WORDS))
