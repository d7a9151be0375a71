"""Within a fit, no pair of points is evaluated twice."""

import copy
import pickle
import threading
import time
import types
import warnings
from collections import Counter
from contextlib import suppress

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import zoo
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from mercer import (
    SVC,
    SVR,
    GaussianProcessClassifier,
    GaussianProcessRegressor,
    Graphs,
    KernelLogisticRegression,
    KernelMachineRegressor,
    KernelPCA,
    KernelRidge,
    NuSVC,
    OneClassSVM,
    hsic,
    independence_test,
    mmd,
    tune,
    two_sample_test,
)
from mercer._core import budget_in_bytes, reserve, resource_scope
from mercer.gram import memoise_if_affordable
from mercer.kernels import (
    RBF,
    Callable,
    Domain,
    Kernel,
    Normalized,
    Precomputed,
    Prepared,
    RandomWalk,
    Select,
    _memoised_kernel,
    memoise,
    node,
    unwrap,
)
from mercer.kernels._memoised_kernel import Memoised, ValueTable, ValueTables
from mercer.testing import check_kernel

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
        assert len(function.calls) < 0.5 * N * (N + 1) / 2  # only the required pairs are evaluated


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
    assert "values" not in held.tables.of(held.kernel).__dict__  # nothing of size n x n is stored
    for kernel in (RBF(), Precomputed(np.eye(3)), Select(RBF(), [0]), Callable(blocks, "matrix")):
        assert memoise(kernel, N) is kernel


def test_the_table_takes_at_most_a_part_of_the_budget():
    kernel = Callable(shared_letters, contract="pair")
    assert memoise_if_affordable(kernel, N, 4 * 8 * N * N - 1) is kernel
    with resource_scope():
        assert memoise_if_affordable(kernel, N, 4 * 8 * N * N) is not kernel
        assert budget_in_bytes(10**6) == 10**6 - 8 * N * N  # other budgets exclude it
    assert budget_in_bytes(10**6) == 10**6
    reserve(500)  # outside of a scope, nothing is reserved
    assert budget_in_bytes(10**6) == 10**6
    small = KernelRidge(kernel=kernel, alpha=1.0, max_memory=80_000).fit(WORDS, LABELS)
    large = KernelRidge(kernel=kernel, alpha=1.0).fit(WORDS, LABELS)
    np.testing.assert_allclose(small.predict(WORDS), large.predict(WORDS))


# ---------------------------------------------------------------------- parameters


COSTLY = [entry for entry in zoo.KERNELS if entry.kernel.domain.costly]


@pytest.mark.parametrize("entry", COSTLY, ids=[entry.id for entry in COSTLY])
def test_laws_of_memoised_kernels(entry):
    X, Z = entry.points(11), entry.points(5, seed=1)
    check_kernel(memoise(entry.kernel, 13), X, Z, psd=entry.psd, differentiable=False)


@pytest.mark.parametrize("entry", COSTLY, ids=[entry.id for entry in COSTLY])
def test_changed_parameters_never_read_values_of_others(entry):
    X, kernel = entry.points(11), entry.kernel
    memoised = memoise(kernel, 11)
    for step in (0.0, 0.25, -0.25, 0.25):
        theta = kernel.theta + step
        there = memoised.with_theta(theta)
        np.testing.assert_array_equal(there(X), kernel.with_theta(theta)(X))
        np.testing.assert_array_equal(there.diag(X), kernel.with_theta(theta).diag(X))
        assert unwrap(there) == kernel.with_theta(theta) == there


def test_nested_parameters_have_the_names_of_the_plain_kernel():
    kernel = Normalized(RandomWalk(0.1)) + 2.0 * RandomWalk(0.2)
    memoised = memoise(kernel, 5)
    assert memoised.theta_names == kernel.theta_names
    assert memoised.get_params().keys() == kernel.get_params().keys()
    changed = memoised.set_params(terms__0__kernel__decay=0.3)
    assert changed == kernel.set_params(terms__0__kernel__decay=0.3) != kernel
    np.testing.assert_array_equal(changed(GRAPHS), unwrap(changed)(GRAPHS))


def test_tables_of_earlier_parameters_are_dropped():
    memoised = memoise(Normalized(RandomWalk(0.1)) * RandomWalk(0.2), 25)
    for step in range(5):
        memoised.with_theta(memoised.theta + step / 10)(GRAPHS)
    (tables,) = {k.tables for k in nodes(memoised) if isinstance(k, Memoised)}
    assert len(tables.entries) == 2


GRAPHS = [nx.gnp_random_graph(int(rng.integers(4, 9)), 0.5, seed=i) for i in range(25)]
DENSITY = np.array([g.number_of_edges() / g.number_of_nodes() for g in GRAPHS])
WALK = Normalized(RandomWalk(0.1))
COLLECTIONS = {"networkx": GRAPHS, "Graphs": Graphs.from_networkx(GRAPHS)}
each_collection = pytest.mark.parametrize("X", COLLECTIONS.values(), ids=COLLECTIONS)


def nodes(kernel):
    yield kernel
    for _, child in kernel._children():
        yield from nodes(child)


@each_collection
def test_a_gaussian_process_finds_the_likelihood_of_its_kernel(X):
    model = GaussianProcessRegressor(WALK, alpha=0.1).fit(X, DENSITY)
    assert model.kernel_ != WALK
    for theta in (model.kernel_.theta, np.log([0.01]), np.log([0.5])):
        fixed = GaussianProcessRegressor(WALK.with_theta(theta), alpha=0.1, optimizer=None)
        value = fixed.fit(list(X), DENSITY).log_marginal_likelihood_value_
        assert model.log_marginal_likelihood(theta) == pytest.approx(value, rel=1e-12)
    found = model.log_marginal_likelihood_value_
    assert found == pytest.approx(model.log_marginal_likelihood(model.kernel_.theta), rel=1e-12)
    grid = [model.log_marginal_likelihood([t]) for t in np.linspace(-4.5, 0.5, 20)]
    assert found >= max(grid)


@each_collection
@pytest.mark.parametrize("form", ["one_vs_rest", "multinomial"])
def test_a_gaussian_process_classifier_finds_the_likelihood_of_its_kernel(X, form):
    labels, kernel = np.median(DENSITY) < DENSITY, 4.0 * WALK
    model = GaussianProcessClassifier(kernel, multi_class=form).fit(X, labels)
    values = []
    for theta in (model.kernel_.theta, np.log([0.01, 4.0]), np.log([0.5, 4.0])):
        fixed = GaussianProcessClassifier(
            kernel.with_theta(theta), multi_class=form, optimizer=None
        ).fit(list(X), labels)
        values.append(model.log_marginal_likelihood(theta))
        assert values[-1] == pytest.approx(fixed.log_marginal_likelihood_value_, rel=1e-8)
    assert values[0] == max(values) > min(values)


@pytest.mark.parametrize("objective", ["loo", "gcv", "alignment"])
def test_tune_reads_the_values_of_each_parameter(objective, monkeypatch):
    X = COLLECTIONS["Graphs"]
    noisy = DENSITY + 0.1 * np.random.default_rng(1).normal(size=len(DENSITY))
    model = KernelRidge(kernel=WALK, alpha=0.1)
    found = tune(model, X, noisy, objective=objective)
    monkeypatch.setattr("mercer.estimators._tune.memoise_if_affordable", lambda k, *_: k)
    plain = tune(model, X, noisy, objective=objective)
    assert found.names == plain.names
    np.testing.assert_allclose(found.value, plain.value, rtol=1e-9)


@pytest.mark.parametrize(
    "X",
    [
        Graphs.from_networkx(GRAPHS),
        pd.DataFrame({"a": WORDS[:25], "b": np.arange(25.0)}),
        pl.DataFrame({"a": WORDS[:25], "b": np.arange(25.0)}),
        np.array([[w, w[::-1]] for w in WORDS[:25]], dtype=object),
        [sp.coo_array(np.diag(np.arange(3.0) + i)) for i in range(25)],
        [[w, 1.0] for w in WORDS[:25]],
    ],
    ids=["Graphs", "pandas", "polars", "objects", "sparse", "lists"],
)
def test_points_of_any_collection_are_found_again(X):
    calls = []
    kernel = Normalized(Callable(lambda x, z: calls.append(1) or 1.0, contract="pair"))
    KernelPCA(1, kernel=kernel).fit(X)
    assert len(calls) == 25 * 26 // 2


def test_the_key_of_a_row_does_not_depend_on_the_type_of_its_number():
    frame = pd.DataFrame({"a": ["x", "x"]}, index=[1, 2])
    rows = [frame.iloc[0].rename(1), frame.iloc[0].rename(np.int64(1)), frame.iloc[1]]
    keys = list(map(_memoised_kernel._key, rows))
    assert keys[0] == keys[1] != keys[2]


@pytest.mark.parametrize(
    ("x", "z"),
    [(1, True), (1, 1.0), (0.0, -0.0), ((1,), (1.0,)), ([1], [True]), ("a", np.str_("a"))],
    ids=str,
)
def test_equal_points_that_a_function_tells_apart_are_not_confused(x, z):
    kernel = Callable(lambda a, b: float(repr(a) == repr(b)), contract="pair")
    points = [x, z]
    np.testing.assert_array_equal(memoise(kernel, 2)(points), np.eye(2))


def test_sparse_points_with_the_same_entries_in_other_rows_are_not_confused():
    A, B = np.zeros((2, 3, 3))
    A[0, 1] = A[0, 2] = 1.0
    B[0, 1] = B[1, 2] = 1.0
    points = [sp.csr_array(A), sp.csr_array(B)]
    kernel = Callable(lambda x, z: float(abs(x - z).sum() == 0), contract="pair")
    np.testing.assert_array_equal(memoise(kernel, 2)(points), np.eye(2))


# ---------------------------------------------------------------------- after a fit


_NOT_FOLLOWED = (str, bytes, int, float, type, types.ModuleType)


def reachable(root):
    """Yield every object that is reachable through attributes and containers, but not modules.

    From a module, every array of every imported module can be reached, also those of other tests.
    """
    seen, stack = {}, [root]
    while stack:
        value = stack.pop()
        if id(value) in seen or isinstance(value, _NOT_FOLLOWED):
            continue
        seen[id(value)] = value
        yield value
        attributes = getattr(value, "__dict__", {})
        if isinstance(attributes, dict):  # libraries of llvmlite return a function for every name
            stack += list(attributes.values())
        slots = [name for c in type(value).__mro__ for name in getattr(c, "__slots__", ())]
        stack += [getattr(value, name) for name in slots if hasattr(value, name)]
        if isinstance(value, dict):
            stack += list(value.values())
        elif isinstance(value, (list, tuple, set, frozenset)):
            stack += list(value)


def fitted_on_words(model, kernel):
    """Return the model fitted to words with this kernel, or None if it does not accept strings."""
    model = clone(model).set_params(kernel=kernel)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        # The zoo has models with gamma, which other kernels do not use.
        warnings.filterwarnings("ignore", "(?s).*gamma applies only to kernels given by name")
        try:
            return model.fit(WORDS, LABELS)
        except (TypeError, ValueError) as error:
            assert any(text in str(error) for text in NOT_FOR_WORDS), error
            return None


NOT_FOR_WORDS = ("vectors", "given by name", "finite features", "random features", "linear kernel")
WITH_KERNELS = [m for m in zoo.ESTIMATORS if "kernel" in m.get_params()]
WITH_KERNELS += [
    GaussianProcessRegressor(solver=solver, rank=20, alpha=0.1, optimizer=None)
    for solver in ("nystroem", "cg")
]


@pytest.mark.parametrize("model", WITH_KERNELS, ids=str)
def test_a_fitted_model_holds_no_table(model):
    kernel = Normalized(Callable(shared_letters, contract="pair")) + 0.1
    model = fitted_on_words(model, kernel)
    if model is None:
        pytest.skip("the model does not accept strings")
    for value in reachable(model):
        assert not (isinstance(value, ValueTable | ValueTables) and value.size)
        if isinstance(value, np.ndarray) and value.shape == (N, N):
            assert not np.isnan(value).any()
            assert not np.allclose(value, kernel(WORDS))
    for name in ("kernel_", "expansion_"):
        found = getattr(model, name, kernel)
        assert not any(isinstance(part, Memoised) for part in reachable(found))


def test_models_of_equal_kernels_can_be_added():
    kernel = Callable(shared_letters, contract="pair")
    pca, ridge = KernelPCA(2, kernel=kernel).fit(WORDS), KernelRidge(kernel=kernel)
    both = pca.expansion_[[0]] + ridge.fit(WORDS, LABELS).expansion_
    np.testing.assert_allclose(
        both(WORDS), pca.expansion_[[0]](WORDS) + ridge.expansion_(WORDS), atol=1e-10
    )


def test_scores_follow_points_that_are_changed_in_place():
    kernel = Callable(lambda x, z: float(len(set(x) & set(z))), contract="pair")
    model = KernelPCA(2, kernel=kernel).fit([list(word) for word in WORDS])
    new = [list(word) for word in WORDS[:3]]
    model.transform(new)
    new[0][:] = list(WORDS[7])
    np.testing.assert_allclose(model.transform(new)[0], model.transform([list(WORDS[7])])[0])


def test_tables_are_emptied_at_the_end_of_the_memory_scope():
    function = Counted()
    with resource_scope():
        kernel = memoise(Callable(function, contract="pair"), N)
        K = kernel(WORDS)
        kernel(WORDS)
        assert max(function.calls.values()) == 1
        table = kernel.tables.of(kernel.kernel)
    assert not table.positions and "values" not in table.__dict__
    np.testing.assert_array_equal(kernel(WORDS), K)
    np.testing.assert_array_equal(kernel.diag(WORDS), K.diagonal())
    assert not table.positions and "values" not in table.__dict__
    assert max(function.calls.values()) > 1


@node
class SlowOverlap(Kernel):
    """A costly kernel whose values are computed in tiles, not in pairs."""

    def _domain(self, *inner):
        return Domain("strings", costly=True)

    def _prepare(self, X, like):
        words = np.empty(len(X), dtype=object)
        words[:] = list(X)
        return Prepared((words,))

    def _tile(self, P, Q, out):
        out[...] = [[shared_letters(s, t) for t in Q.arrays[0]] for s in P.arrays[0]]


def test_a_costly_kernel_may_compute_its_values_in_tiles():
    X = ["abc", "bcd", "", "xyz", "abx"]
    k = memoise(SlowOverlap(), 4)
    np.testing.assert_array_equal(k(X), SlowOverlap()(X))
    np.testing.assert_array_equal(k(X, X[:2]), SlowOverlap()(X, X[:2]))


def test_a_thread_that_waits_for_a_value_evaluates_it_if_the_other_thread_fails():
    begun, waiting, values = threading.Event(), threading.Event(), []

    def function(s, t):
        if not begun.is_set():
            begun.set()
            waiting.wait(10)
            time.sleep(0.05)  # the other thread waits for this value
            raise ZeroDivisionError
        return shared_letters(s, t)

    k = memoise(Callable(function, "pair"), 2)
    P = k.prepare(["ab", "bc"])

    def evaluate(job):
        with suppress(ZeroDivisionError):
            values.append(k.tile(P[[0]], P[[1]], np.empty((1, 1))).item())

    threads = [threading.Thread(target=evaluate, args=(job,)) for job in range(2)]
    threads[0].start()
    begun.wait(10)
    threads[1].start()
    waiting.set()
    for thread in threads:
        thread.join(10)
    assert values == [1.0]
