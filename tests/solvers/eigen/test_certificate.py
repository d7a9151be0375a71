"""Every printed bound holds: against NumPy's eigenpairs, on problems of all types.

`broken` compares a certificate with the exact values and returns the names of the violated bounds.
It allows for rounding errors of the reference, 1e-14 |S K S| (the matrix before centring).
"""

import dataclasses
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import zoo
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from mercer import DensifyWarning, NotPositiveDefiniteError
from mercer.gram import CentredGram, DenseGram
from mercer.kernels import RBF, Linear
from mercer.solvers import (
    Arpack,
    BlockKrylov,
    DenseEigen,
    LowRankEigen,
    PowerDeflation,
    RandomizedEigen,
    Status,
)
from mercer.solvers.eigen import certify, unknown_certificate, weyl_certificate
from mercer.solvers.eigen._certificate import largest_value_bound

ROUNDING = 1e-14


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """With thousands of small matrices, BLAS threads would only wait for each other."""
    with threadpool_limits(1):
        yield


class Truth:
    """The eigenpairs of A by NumPy, and a bound of their errors."""

    def __init__(self, A, size=None):
        values, vectors = np.linalg.eigh(A)
        self.values, self.vectors = values[::-1], vectors[:, ::-1]
        self.size = max(np.linalg.norm(A, 2) if size is None else size, 1e-300)
        self.error = ROUNDING * self.size


def broken(pairs, truth):
    """Return the names of the bounds that do not hold."""
    c, k, n = pairs.certificate, len(pairs.values), len(truth.values)
    exact, forgiven = truth.values, truth.error
    direct = pairs.report.status is Status.DIRECT
    nearest = np.abs(pairs.values[:, None] - exact).min(axis=1)
    beyond = exact[k] if k < n else -np.inf
    holds = {
        "lower": np.all(c.lower <= exact[:k] + forgiven),
        "upper": np.all(exact[:k] <= c.upper + forgiven),
        "residuals": np.all(nearest <= c.residuals + forgiven),
        "outside": beyond <= c.outside + forgiven,
        "rest": not c.found or np.sum(exact > c.rest + forgiven) <= c.found,
        # No larger eigenvalue was missed.  A direct method finds all, even if the next is equal.
        "nothing_missed": not c.nothing_missed
        or (
            beyond <= pairs.values[-1] + c.residuals[-1] + forgiven
            and (direct or c.rest < exact[k - 1] + forgiven)
        ),
    }
    return [name for name, ok in holds.items() if not ok] + wrong_angles(pairs, truth)


def wrong_angles(pairs, truth):
    """Return the violated bounds on angles, of single vectors and of subspaces of clusters."""
    c, k, exact, V = pairs.certificate, len(pairs.values), truth.values, truth.vectors
    covered = np.zeros(k, dtype=int)
    for a, b in c.clusters:
        covered[a:b] += 1
    wrong = ["clusters"] if covered.max() > 1 or any(not a < b <= k for a, b in c.clusters) else []
    wrong += [] if np.all((c.sines >= 0) & (c.sines <= 1)) else ["sines"]
    for a, b in [*c.clusters, *((i, i + 1) for i in np.flatnonzero(covered == 0))]:
        if c.sines[a] == 1:
            continue
        above = exact[a - 1] - exact[a] if a else np.inf
        gap = max(min(above, exact[b - 1] - exact[b] if b < len(V) else np.inf), 1e-300)
        U = pairs.vectors[:, a:b]
        sine = np.linalg.norm(U - V[:, a:b] @ (V[:, a:b].T @ U), 2)
        # NumPy's eigenvectors are exact for a matrix at this distance.
        if not sine <= c.sines[a] + truth.error / gap + ROUNDING or np.ptp(c.sines[a:b]):
            wrong.append("sines")
    return wrong


# ---------------------------------------------------------------------- the problems

DOMAINS = ("vectors", "nonnegative")
# without a slow one
ENTRIES = [e for e in zoo.KERNELS if e.domain in DOMAINS and e.id != "Callable pair"]
SHAPES = ("cloud", "clusters", "twice", "equal", "line", "rank one", "grid", "far")


def points(rng, shape, n, columns):
    X = rng.normal(size=(n, columns))
    if shape == "clusters":
        return 2.0 * rng.normal(size=(3, columns))[rng.integers(3, size=n)] + 0.05 * X
    if shape == "twice":
        return X[rng.integers(1 + n // 3, size=n)]
    if shape == "equal":
        return np.repeat(X[:1], n, axis=0)
    if shape == "line":
        return np.outer(np.linspace(-2.0, 2.0, n), X[0])
    if shape == "rank one":
        return X[:, :1] @ rng.normal(size=(1, columns))
    if shape == "grid":
        return rng.integers(3, size=(n, columns)).astype(float)
    return X + 50.0 if shape == "far" else X


def scales(entry, columns):
    """Return scale factors of the points for which K is accurate to 1e-14."""
    if columns > 8:  # distances are then computed from products
        return [1.0, 1e-3, 1e-8]
    periodic = "Periodic" in entry.id or "Sklearn" in entry.id
    return [1.0, 1.0, 1e-3, 1e-8, 30.0] + ([] if periodic else [1e4, 1e7])


def draw_points(rng, entry):
    n, columns = int(rng.integers(5, 81)), entry.columns or int(rng.choice([3, 3, zoo.WIDE]))
    X = points(rng, rng.choice(SHAPES), n, columns) * rng.choice(scales(entry, columns))
    X = np.abs(X) if entry.domain == "nonnegative" else X
    with np.errstate(all="ignore"):
        K = entry.kernel(X)
    overflows = not np.all(np.isfinite(K)) or np.abs(K).max() > 1e150
    return np.abs(rng.normal(size=(n, columns))) if overflows else X


def draw_weights(rng, n):
    kind = rng.choice(["none", "none", "some", "counts", "wild"])
    if kind == "none":
        return None
    if kind == "counts":
        return rng.integers(3, size=n) + np.eye(n)[0]
    return rng.exponential(size=n) if kind == "some" else 10.0 ** rng.uniform(-8, 0, size=n)


def draw_solvers(rng, n, k):
    seed = int(rng.integers(100))
    tol = float(rng.choice([1e-2, 1e-4, 1e-6, 1e-10, 0.0]))
    prove, rank = bool(rng.integers(2)), int(rng.integers(6))
    few = {"block": int(rng.integers(1, 6)), "rank": rank, "random_state": seed}
    methods = ["auto", "uniform", "rpcholesky", "kmeans++", "leverage"]
    landmarks = {"rank": int(rng.integers(k, n + 1)), "landmarks": str(rng.choice(methods))}
    solvers = [
        DenseEigen(),
        BlockKrylov(tol=tol, prove=prove, random_state=seed),
        BlockKrylov(tol=tol, prove=not prove, **few),
        BlockKrylov(max_iter=1 + seed % 2, **few),
        PowerDeflation(tol=0.1 * tol, max_iter=1 + 200 // k**2, random_state=seed),
        RandomizedEigen(n_iter=1, n_oversamples=int(rng.integers(4)), random_state=seed),
        LowRankEigen(random_state=seed, **landmarks),
    ]
    return solvers + ([Arpack(tol=tol, random_state=seed)] if k < n else [])


def solve(solver, gram, k):
    """Return eigenpairs, and whether a ConvergenceWarning was issued."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", DensifyWarning)
        warnings.simplefilter("always", ConvergenceWarning)
        return solver.eigenpairs(gram, k), bool(said)


def refuses(solver, entry, stopped):
    """Whether a solver may refuse: it needs a Mercer kernel, and enough landmarks."""
    few = isinstance(stopped, ValueError) and "components are requested, but" in str(stopped)
    return isinstance(solver, LowRankEigen) and (few or not entry.psd)


@pytest.mark.parametrize(
    "case", [*range(12), *(pytest.param(case, marks=pytest.mark.long) for case in range(12, 30))]
)
def test_every_printed_bound_holds(case):
    for problem in range(10):
        rng = np.random.default_rng([case, problem])
        entry = ENTRIES[rng.integers(len(ENTRIES))]
        X = draw_points(rng, entry)
        n, hold, weights = len(X), zoo.GRAMS[rng.integers(2)], draw_weights(rng, len(X))
        k = int(rng.choice([1, min(3, n), rng.integers(1, n + 1), n]))
        centred = CentredGram(hold(entry.kernel, X, n_threads=1), weights)
        K, S = centred.gram.to_array(), centred.scale
        truth = Truth(centred.to_array(), np.linalg.norm(S[:, None] * K * S, 2))
        definite = entry.psd and np.linalg.eigvalsh(K)[0] >= -ROUNDING * np.linalg.norm(K, 2)
        for solver in draw_solvers(rng, n, k):
            name = f"problem {problem}: {entry.id}, {X.shape}, {k=}, {hold.__name__}, {solver}"
            try:
                pairs, warned = solve(
                    solver, CentredGram(hold(entry.kernel, X, n_threads=1), weights), k
                )
            except (ValueError, NotPositiveDefiniteError) as stopped:
                assert refuses(solver, entry, stopped), f"{name}: {stopped}"
                continue
            assert warned == (pairs.report.status is Status.NOT_CONVERGED), name
            if isinstance(solver, LowRankEigen) and not definite:
                continue
            fewer = pairs.first(int(rng.integers(1, k + 1)))
            assert not broken(pairs, truth), f"{name}: {broken(pairs, truth)}"
            assert not broken(fewer, truth), f"{name}, first: {broken(fewer, truth)}"


@pytest.mark.parametrize("case", range(6))
def test_every_printed_bound_holds_in_single_precision(case):
    """float32 tiles of float64 points against the exact K; float32 points against their own K."""
    rng = np.random.default_rng(case)
    for n in (60, 500):  # one tile, and several
        columns = int(rng.choice([1, 3, zoo.WIDE]))
        X = points(rng, SHAPES[case], n, columns) * rng.choice([0.1, 1.0]) / np.sqrt(columns)
        kernel, weights = (RBF(), 2.5 * RBF(0.7))[case % 2], draw_weights(rng, n)
        Y, hold = X.astype(np.float32), zoo.GRAMS[case % 2]
        centred = CentredGram(hold(kernel, Y), weights)
        A, K, S = centred.to_array(), centred.gram.to_array(), centred.scale
        truth = Truth(A.astype(float), np.linalg.norm(S[:, None] * K * S, 2))
        power = PowerDeflation(tol=1e-3, max_iter=20, random_state=0)
        randomized = RandomizedEigen(n_iter=1, random_state=0)
        solvers = [DenseEigen(), BlockKrylov(random_state=0), power, randomized]
        for solver in [*solvers, Arpack(tol=1e-3, random_state=0)]:
            pairs, _ = solve(solver, CentredGram(hold(kernel, Y), weights), 3)
            faults = broken(pairs, truth)
            assert not faults, f"{SHAPES[case]}, {X.shape}, {hold.__name__}, {solver}: {faults}"


# ---------------------------------------------------------------------- the check can fail


def slanted(angle):
    """Return a Ritz pair of diag(2, 1) at this angle to the first axis, with sharp bounds."""
    A, u = np.diag([2.0, 1.0]), np.array([[np.cos(angle)], [np.sin(angle)]])
    value = (u.T @ A @ u)[0]
    residual = np.linalg.norm(A @ u - u * value, axis=0)
    return SimpleNamespace(
        values=value,
        vectors=u,
        certificate=certify(value, residual, 1, squared_norm=5.0),
        report=SimpleNamespace(status=Status.CONVERGED),
    )


PART = {
    "lower": lambda c: {"lower": 2.0 * c.lower},
    "upper": lambda c: {"upper": 0.5 * (c.lower + c.upper)},
    "residuals": lambda c: {"residuals": 0.25 * c.residuals},
    "sines": lambda c: {"sines": 0.5 * c.sines},
    "outside": lambda c: {"outside": 0.5 * c.outside},
    "rest": lambda c: {"rest": 0.5 * c.rest},
    "nothing_missed": lambda c: {"rest": 2.5, "nothing_missed": True},
    "clusters": lambda c: {"clusters": ((0, 2),)},
}


@pytest.mark.parametrize("name", PART)
def test_the_check_sees_a_bound_of_which_a_part_is_missing(name):
    pairs = slanted(0.3)
    assert broken(pairs, Truth(np.diag([2.0, 1.0]))) == []
    changed = dataclasses.replace(pairs.certificate, **PART[name](pairs.certificate))
    pairs.certificate = changed
    assert name in broken(pairs, Truth(np.diag([2.0, 1.0])))


@pytest.mark.parametrize("name", ["lower", "upper", "outside", "rest"])
def test_the_check_sees_an_error_of_a_few_roundings(name):
    K = CentredGram(DenseGram(RBF(), np.random.default_rng(0).normal(size=(30, 2))))
    truth = Truth(K.to_array(), np.linalg.norm(K.gram.to_array(), 2))
    pairs = DenseEigen().eigenpairs(K, 4)
    assert broken(pairs, truth) == []
    exact, move = truth.values, 3.0 * truth.error
    off = {"lower": exact[:4] + move, "upper": exact[:4] - move}
    off |= {"outside": exact[4] - move, "rest": exact[4] - move}
    wrong = dataclasses.replace(pairs.certificate, **{name: off[name]})
    assert broken(dataclasses.replace(pairs, certificate=wrong), truth) == [name]


# ---------------------------------------------------------------------- the bounds by themselves


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(2, 12),
    near=st.sampled_from([0.0, 1e-8, 1e-3, 0.1, 1.0]),
    data=st.data(),
)
def test_bounds_of_ritz_pairs_of_any_symmetric_matrix(seed, n, near, data):
    rng = np.random.default_rng(seed)
    exact = rng.choice([-2.0, 0.0, 1.0, 3.0], size=n) + rng.choice([0.0, 1e-9, 0.1]) * rng.normal(
        size=n
    )
    V = np.linalg.qr(rng.normal(size=(n, n)))[0]
    A = (V * exact) @ V.T
    A = (A + A.T) / 2
    j = data.draw(st.integers(1, n), label="Ritz vectors")
    k = data.draw(st.integers(1, j), label="of which certified")
    order = np.argsort(exact)[::-1] if data.draw(st.booleans(), label="leading") else np.arange(n)
    Q = np.linalg.qr(V[:, order[:j]] + near * rng.normal(size=(n, j)))[0]
    t, W = np.linalg.eigh(Q.T @ A @ Q)
    t, U = t[::-1], Q @ W[:, ::-1]
    residuals = np.linalg.norm(A @ U - U * t, axis=0)
    norm = np.linalg.norm(A)
    certificate = certify(
        t,
        residuals,
        k,
        squared_norm=norm**2,
        slack=3e-15 * norm,
        floor=4e-8 * norm,
        ritz=data.draw(st.booleans(), label="ritz"),
    )
    report = SimpleNamespace(status=Status.CONVERGED)
    pairs = SimpleNamespace(values=t[:k], vectors=U[:, :k], certificate=certificate, report=report)
    assert broken(pairs, Truth(A)) == []
    blind = SimpleNamespace(**vars(pairs))
    blind.certificate = certify(t, residuals, k, slack=3e-15 * norm)
    assert broken(blind, Truth(A)) == []
    assert not blind.certificate.nothing_missed and blind.certificate.found == 0


def test_a_second_vector_that_hides_a_larger_eigenvalue_proves_nothing():
    # The first pair is exact; the second is an inaccurate pair of an even larger eigenvalue.
    angle = 0.3
    u = np.array([0.0, np.cos(angle), np.sin(angle)])
    A = np.diag([1.0, 1.05, 0.2])
    t = np.array([1.0, u @ A @ u])
    r = np.array([0.0, np.linalg.norm(A @ u - t[1] * u)])
    c = certify(t, r, 1, squared_norm=np.sum(A**2))
    assert t[1] < t[0] and c.found == 2 and c.rest < 1.0 and c.upper[0] >= 1.05
    assert not c.nothing_missed


def test_what_is_left_of_the_norm_counts_its_own_rounding():
    # For d = 1e-9, |A|_F^2 = 1 + d^2 rounds to 1, so that the second eigenvalue is invisible.
    c = certify(np.array([1.0]), np.array([0.0]), 1, squared_norm=1.0 + 1e-18, floor=4e-8)
    assert c.rest >= 1e-9 and c.nothing_missed
    # If it is visible, a few of its digits are not.
    seen = 6e-8
    off = certify(
        np.array([1.0]), np.array([0.0]), 1, squared_norm=1.0 + seen**2 - 4e-16, floor=4e-8
    )
    assert off.rest >= seen


@settings(max_examples=80, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(2, 12), data=st.data())
def test_the_sandwich_of_an_approximation_from_below(seed, n, data):
    rng = np.random.default_rng(seed)
    m = data.draw(st.integers(1, n), label="rank of the approximation")
    k = data.draw(st.integers(1, m), label="certified")
    F = rng.normal(size=(n, m)) * rng.choice([1e-3, 1.0], size=m)
    E = rng.normal(size=(n, n)) * data.draw(st.sampled_from([0.0, 1e-6, 1e-2, 1.0]))
    below, error = F @ F.T, E @ E.T
    t, U = np.linalg.eigh(below)
    t, U = np.maximum(t[::-1], 0.0), U[:, ::-1]
    size = np.linalg.norm(below + error, 2)
    certificate = weyl_certificate(t[:m], float(np.trace(error)), k, slack=1e-14 * size)
    report = SimpleNamespace(status=Status.APPROXIMATE)
    pairs = SimpleNamespace(values=t[:k], vectors=U[:, :k], certificate=certificate, report=report)
    assert broken(pairs, Truth(below + error)) == []


def test_of_the_unknown_nothing_is_certain():
    c = unknown_certificate(np.array([3.0, 1.0]))
    pairs = SimpleNamespace(
        values=np.array([3.0, 1.0]),
        vectors=np.eye(4, 2),
        certificate=c,
        report=SimpleNamespace(status=Status.APPROXIMATE),
    )
    assert broken(pairs, Truth(np.diag([100.0, 50.0, 20.0, -7.0]))) == []
    assert str(c) == "no bound is known" and not c.nothing_missed and np.all(c.sines == 1)


def test_a_certificate_can_be_read():
    proved = certify(np.array([4.0, 2.0]), np.array([0.0, 0.0]), 1, squared_norm=21.0)
    assert str(proved) == (
        "no larger eigenvalue was overlooked: all others are at most 2, "
        "and the smallest one returned is 4"
    )
    open_ = certify(np.array([1.0]), np.array([0.0]), 1, squared_norm=10.0)
    assert str(open_) == (
        "a larger eigenvalue may have been overlooked: all others are at most 3, "
        "and the smallest one returned is 1"
    )


def test_the_first_of_a_cluster_alone_has_no_angle():
    square = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    pairs = DenseEigen().eigenpairs(CentredGram(DenseGram(Linear(), square)), 2)
    assert pairs.certificate.clusters == ((0, 2),) and pairs.certificate.sines.max() < 1e-10
    assert pairs.first(1).certificate.sines.tolist() == [1.0]
    assert pairs.first(2).certificate.sines.max() < 1e-10
    assert pairs.first(1).certificate.outside == pairs.certificate.upper[1]


# ---------------------------------------------------------------------- tightness of the bounds

X = np.random.default_rng(3).normal(size=(300, 2))


@pytest.mark.parametrize(
    "solver",
    [
        DenseEigen(),
        BlockKrylov(random_state=0),
        Arpack(random_state=0),
        PowerDeflation(tol=1e-10, max_iter=5000, random_state=0),
        LowRankEigen(rank=150, random_state=0),
    ],
    ids=repr,
)
def test_bounds_are_tight_where_the_eigenpairs_are_good(solver):
    K = CentredGram(DenseGram(RBF(), X))
    exact = np.linalg.eigvalsh(K.to_array())[::-1]
    pairs = solver.eigenpairs(K, 5)
    c = pairs.certificate
    assert c.nothing_missed and c.clusters == ()
    assert np.max(c.upper - c.lower) < 1e-9 * exact[0]
    assert c.sines.max() < 1e-6
    assert exact[5] <= c.outside < 3.0 * exact[5]
    assert c.slack < 1e-11 * exact[0]


def test_clusters_are_those_of_a_symmetric_design():
    angles = 2.0 * np.pi * np.arange(24) / 24
    polygon = np.column_stack([np.cos(angles), np.sin(angles)])  # eigenvalues in pairs
    for solver in (DenseEigen(), BlockKrylov(random_state=0)):
        c = solver.eigenpairs(CentredGram(DenseGram(RBF(), polygon)), 6).certificate
        assert c.clusters == ((0, 2), (2, 4), (4, 6))
        assert c.sines.max() < 1e-6


# ---------------------------------------------------------------------- sums and sums of squares


def test_the_largest_of_some_numbers_is_within_its_bound():
    rng = np.random.default_rng(0)
    for case in range(3000):
        numbers = rng.normal(3.0 * (case % 2), 10.0 ** rng.uniform(-2, 2), size=1 + case % 11)
        numbers = np.sort(np.abs(numbers) if case % 3 else numbers)[::-1]
        others = numbers[1 : 1 + rng.integers(12)]
        others = np.sort(others - rng.exponential(size=others.shape))[::-1]
        bound = largest_value_bound(len(numbers), numbers.sum(), np.sum(numbers**2), others)
        assert numbers[0] <= bound + 1e-13 * np.abs(numbers).max()
        assert bound <= np.linalg.norm(numbers) * (1.0 + 1e-15)


def test_the_bound_is_attained():
    assert largest_value_bound(4, 6.0, 14.0, np.array([2.0, 1.0])) == pytest.approx(3.0)
    assert largest_value_bound(100, 3.0 + 99 * 0.5, 9.0 + 99 * 0.25, np.zeros(0)) == pytest.approx(
        3.0
    )
