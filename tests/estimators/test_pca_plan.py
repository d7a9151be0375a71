"""KernelPCA.plan: the predicted cost of each solver, compared with the actual cost."""

import re
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from mercer import KernelPCA, MemoryBudgetError
from mercer._core import budget_in_bytes
from mercer.kernels import RBF, Callable, Sum
from mercer.solvers import BlockKrylov, DenseEigen, LowRankEigen


def zeros(n, columns=8):
    """Return n points that use no memory."""
    return np.broadcast_to(0.0, (n, columns))


def points(n, columns=5, seed=0):
    return np.random.default_rng(seed).normal(size=(n, columns))


def plan(n, k, columns=8, **options):
    return KernelPCA(k, **{"kernel": "rbf"} | options).plan(zeros(n, columns))


def option(plan, solver, storage):
    (found,) = [o for o in plan.options if (o.eigen_solver, o.storage) == (solver, storage)]
    return found


def traced(function):
    """Return the result of a function, and its peak of allocated memory."""
    tracemalloc.start()
    try:
        result = function()
        return result, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


# ---------------------------------------------------------------------- the table


def test_the_table():
    text = str(plan(50_000, 10, max_memory="4 GiB"))
    head, names, *rows = text.splitlines()
    assert head == "Kernel PCA of 50000 points, 10 components, budget 4.0 GiB"
    assert re.split(r"  +", names.strip()) == [
        *("solver", "storage", "rank", "memory", "passes over K", "entries of K"),
        *("time", "result", "reason"),
    ]
    assert [row.split()[-1] for row in rows] == ["budget", "budget", "fastest", "approximate"]
    assert [row[0] for row in rows] == [" ", " ", ">", " "]
    assert re.match(
        r"  dense +dense +18\.\d GiB +1 +1\.2e\+09 +\d+x +exact +does not fit the budget", rows[0]
    )
    assert re.match(
        r"  krylov +dense +19\.\d GiB +3-6, stored +1\.2e\+09 +\d\.\dx +exact +does not", rows[1]
    )
    assert re.match(r"> krylov +tiled +\d+\.\d MiB +3-6 +6\.2e\+09 +1\.0x +exact", rows[2])
    assert re.match(
        r"  nystroem +low rank +1000 +\d+\.\d MiB +- +1\.0e\+08 +\d.\dx +approximate", rows[3]
    )
    assert str(plan(100, 0.9)).startswith("Kernel PCA of 100 points, 0.9 components, budget")
    assert str(plan(100, None)).startswith("Kernel PCA of 100 points, all components, budget")


def test_a_plan_that_finds_nothing_says_what_to_do():
    nothing = plan(50_000, 10, max_memory="1 MiB")
    assert nothing.chosen is None
    assert str(nothing).endswith(
        "  no exact method fits: increase max_memory, request fewer components, or use\n"
        "  eigen_solver='nystroem', whose error is certified"
    )
    with pytest.raises(MemoryBudgetError, match="no exact method fits the memory budget"):
        nothing.require()
    with pytest.raises(MemoryBudgetError) as raised:
        KernelPCA(10, kernel="rbf", max_memory="1 MiB").fit(points(2000))
    text = str(raised.value)
    assert "Kernel PCA of 2000 points, 10 components, budget 1.0 MiB" in text
    for name in ("dense", "krylov", "nystroem"):
        assert re.search(rf"^  {name} .* does not fit the budget$", text, re.MULTILINE)
    assert "eigen_solver='nystroem', whose error is certified" in text
    assert len(re.findall(r"does not fit the budget", text)) == 4


def test_the_budget_is_half_of_the_memory():
    assert plan(10, 1).budget == budget_in_bytes(None)
    assert plan(10, 1, max_memory=12345).budget == 12345
    assert plan(10, 1, max_memory="3 MiB").budget == 3 * 2**20


# ---------------------------------------------------------------------- nothing is allocated


@pytest.mark.parametrize("k", [1, 10, 100, 0.9, None])
def test_a_plan_allocates_nothing(k, tmp_path):
    on_disk = np.memmap(tmp_path / "zeros", dtype=float, mode="w+", shape=(1_000_000, 2))
    model = KernelPCA(k, kernel="rbf", max_memory="2 GiB")
    for X in (zeros(1_000_000, 20), on_disk, sp.csr_array((1_000_000, 30))):
        made, peak = traced(lambda X=X: model.plan(X))
        assert peak < 20 * 1_000_000, peak  # a few vectors, but not a copy of the points
        assert made.n == 1_000_000
        assert len(str(made).splitlines()) >= 6
    assert not hasattr(model, "n_features_in_")


def test_a_million_points():
    roomy = plan(1_000_000, 10, columns=20, max_memory="32 GiB")
    assert (roomy.chosen.eigen_solver, roomy.chosen.storage) == ("krylov", "tiled")
    assert not roomy.chosen.low_memory and roomy.chosen.exact
    assert option(roomy, "dense", "dense").memory > 8 * 10**12
    tight = plan(1_000_000, 10, columns=20, max_memory=roomy.chosen.required // 2)
    assert (
        tight.chosen.low_memory
        and tight.chosen.storage == "tiled"
        and tight.chosen.passes == "5-20"
    )
    assert tight.chosen.required < roomy.chosen.required / 2
    least = tight.chosen.required
    assert plan(1_000_000, 10, columns=20, max_memory=least).chosen.low_memory
    assert plan(1_000_000, 10, columns=20, max_memory=least - 1).chosen is None
    assert plan(1_000_000, 10, columns=20, max_memory="1 GiB").chosen is None
    assert option(plan(1_000_000, 10, max_memory="1 GiB"), "nystroem", "low rank").fits


# ---------------------------------------------------------------------- the choice


@pytest.mark.parametrize(
    ("n", "k", "options", "expected"),
    [
        (10, 3, {}, ("dense", "dense")),
        (400, 5, {}, ("dense", "dense")),
        (1500, 5, {}, ("krylov", "tiled")),
        (1500, 100, {}, ("dense", "dense")),  # tall arrays with many columns cost more than K
        (1501, None, {}, ("dense", "dense")),
        (3000, 50, {"columns": 256}, ("krylov", "dense")),
        (3000, 100, {"columns": 256}, ("dense", "dense")),
        (3000, 512, {"columns": 256}, ("dense", "dense")),
        (6000, 100, {}, ("krylov", "tiled")),
        (5793, 5, {}, ("krylov", "tiled")),
        # K is more expensive to evaluate than to read
        (5793, 5, {"columns": 129}, ("krylov", "dense")),
        (5000, 5, {"max_memory": "150 MiB"}, ("krylov", "tiled")),
        (1000, 5, {"storage": "tiled"}, ("krylov", "tiled")),
        (20_000, 5, {"storage": "dense", "max_memory": "8 GiB"}, ("krylov", "dense")),
        (3000, 0.9, {}, ("krylov", "tiled")),
        (400, 0.9, {}, ("dense", "dense")),
        (2000, 5, {"max_memory": "28 MiB"}, ("krylov", "tiled")),
        (100_000, 20, {"max_memory": "8 GiB"}, ("krylov", "tiled")),
        (10_000, 10, {"columns": 123}, ("krylov", "dense")),
        (20_000, 10, {"columns": 123}, ("krylov", "tiled")),  # takes 10 % longer, but saves 3 GiB
        (20_000, 10, {"columns": 784}, ("krylov", "dense")),
    ],
)
def test_what_is_chosen(n, k, options, expected):
    chosen = plan(n, k, **{"n_jobs": 2, "max_memory": "16 GiB"} | options).chosen
    assert (chosen.eigen_solver, chosen.storage) == expected
    assert chosen.fits and chosen.exact


def test_the_choice_is_what_fit_does():
    for n, k, options, solver, held in (
        (300, 3, {}, DenseEigen, "DenseGram"),
        (1600, 3, {}, BlockKrylov, "TiledGram"),
        (1600, 3, {"storage": "dense"}, BlockKrylov, "DenseGram"),
        (2000, 3, {"max_memory": "28 MiB"}, BlockKrylov, "TiledGram"),
        (1600, 3, {"storage": "tiled"}, BlockKrylov, "TiledGram"),
    ):
        A = points(n)
        model = KernelPCA(k, kernel="rbf", n_jobs=2, **options)
        chosen = model.plan(A).chosen
        model.fit(A)
        assert isinstance(model.solver_, solver) and held in model.summary()
        assert chosen.eigen_solver == {DenseEigen: "dense", BlockKrylov: "krylov"}[solver]
        assert chosen.storage == {"DenseGram": "dense", "TiledGram": "tiled"}[held]


def test_other_points():
    K = np.eye(40)
    given = KernelPCA(2, kernel="precomputed").plan(K)
    assert [o.storage for o in given.options] == ["dense", "dense", "low rank"]
    assert given.chosen.eigen_solver == "dense"
    words = ["a", "b", "c"] * 700
    made = KernelPCA(2, kernel=Callable(lambda s, t: float(s == t), "pair")).plan(words)
    assert made.n == 2100 and (made.chosen.eigen_solver, made.chosen.storage) == ("krylov", "dense")
    one, many = (
        KernelPCA(2, kernel=kernel).plan(zeros(10_000, 50))
        for kernel in (RBF(), Sum((RBF(), RBF(2.0), RBF(3.0))))
    )  # each term of a sum prepares its own points
    more = option(many, "krylov", "tiled").memory - option(one, "krylov", "tiled").memory
    assert more == 2 * 10_000 * 53 * 8


def test_a_storage_that_was_asked_for_says_so():
    made = plan(1000, 5, storage="tiled")
    assert option(made, "dense", "dense").rejection == "storage is 'tiled'"
    assert option(made, "krylov", "dense").rejection == "storage is 'tiled'"
    assert option(made, "nystroem", "low rank").fits
    assert str(made).count("storage is 'tiled'") == 2


def test_costs_grow_with_what_is_asked_for():
    for solver, storage in (
        ("dense", "dense"),
        ("krylov", "dense"),
        ("krylov", "tiled"),
        ("nystroem", "low rank"),
    ):
        few, many = (option(plan(20_000, k), solver, storage).memory for k in (5, 200))
        more = option(plan(40_000, 5), solver, storage).memory
        assert few < many and few < more
    ranks = [option(plan(20_000, 5, rank=r), "nystroem", "low rank") for r in (50, 1000)]
    assert ranks[0].memory < ranks[1].memory and ranks[1].entries == 20 * ranks[0].entries


# ---------------------------------------------------------------------- little memory, exact


def test_the_lean_option_is_exact_too():
    A = points(2600, 4)
    options = {"kernel": "rbf", "n_jobs": 2}
    roomy = KernelPCA(4, eigen_solver="krylov", storage="tiled", **options).fit(A)
    enough = option(roomy.plan(A), "krylov", "tiled").required
    options["max_memory"] = (2 * enough) // 3
    assert options["max_memory"] < 8 * 2600**2  # K does not fit, either
    tight = KernelPCA(4, **options)
    chosen = tight.plan(A).chosen
    assert (
        chosen.low_memory and chosen.storage == "tiled" and chosen.memory <= options["max_memory"]
    )
    model, peak = traced(lambda: tight.fit(A))
    assert model.solver_.rank == 0 and not model.solver_.prove
    assert peak < chosen.memory
    assert model.report_.status.value == "converged"
    np.testing.assert_allclose(model.eigenvalues_, roomy.eigenvalues_, rtol=1e-12)
    np.testing.assert_allclose(model.transform(A[:50]), roomy.transform(A[:50]), atol=1e-6)
    lower, upper = model.eigenvalue_bounds_.T
    assert np.all(lower <= roomy.eigenvalues_) and np.all(roomy.eigenvalues_ <= upper)
    # The parameters reach the solver.
    loose = KernelPCA(4, tol=1e-2, random_state=5, **options)
    assert (loose.fit(A).solver_.tol, loose.solver_.random_state) == (1e-2, 5)
    assert loose.report_.n_iter < model.report_.n_iter


def test_a_solver_by_name_stays_within_the_budget():
    A = points(2600, 4)
    model = KernelPCA(4, kernel="rbf", eigen_solver="krylov", storage="tiled", n_jobs=2)
    enough = option(model.plan(A), "krylov", "tiled").required
    assert "rank=None" in model.fit(A).report_.solver
    tight, peak = traced(lambda: model.set_params(max_memory=(2 * enough) // 3).fit(A))
    assert "rank=0" in tight.report_.solver and peak < (2 * enough) // 3
    with pytest.raises(MemoryBudgetError, match=r"of 2600 points, 4 components, needs \d+"):
        model.set_params(max_memory=enough // 3).fit(A)


def test_a_share_of_the_variance_ends_where_the_budget_does():
    A = np.random.default_rng(0).normal(size=(1200, 10))
    model = KernelPCA(0.9, kernel="rbf", eigen_solver="krylov", storage="tiled", n_jobs=2)
    model.set_params(max_memory="30 MiB")
    with pytest.raises(MemoryBudgetError, match=r"of 1200 points, \d+ components, needs"):
        model.fit(A)


# ---------------------------------------------------------------------- actual costs


@pytest.mark.parametrize(
    ("solver", "storage", "n", "k", "columns"),
    [
        ("dense", "dense", 1100, 5, 8),
        ("dense", "dense", 1000, 200, 8),
        ("dense", "dense", 800, None, 8),
        ("dense", "dense", 800, 0.9, 8),
        ("krylov", "dense", 3000, 5, 8),
        ("krylov", "dense", 3000, 30, 8),
        ("krylov", "tiled", 3000, 5, 8),
        ("krylov", "tiled", 3000, 30, 8),
        ("krylov", "tiled", 3000, 5, 300),
        ("nystroem", "low rank", 3000, 5, 8),
        ("nystroem", "low rank", 3000, 30, 8),
        ("nystroem", "low rank", 3000, 0.9, 8),
        ("nystroem", "low rank", 3000, 5, 300),
        ("nystroem", "low rank", 40_000, 5, 60),
    ],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_a_fit_stays_below_the_estimate(solver, storage, n, k, columns, weighted):
    A = points(n, columns)
    options = {} if solver == "nystroem" else {"storage": storage}
    if (n, columns) in ((3000, 300), (40_000, 60)) and solver == "nystroem":
        options["rank"] = 100
    if weighted and (k, columns) != (5, 8):
        pytest.skip("once per solver")
    w = 1.0 + np.arange(n) % 3 if weighted else None
    model = KernelPCA(k, kernel="rbf", gamma=0.05, eigen_solver=solver, n_jobs=2, **options)
    expected = option(model.plan(A), solver, storage).required
    model, peak = traced(lambda: model.fit(A, sample_weight=w))
    assert peak < expected, (peak, expected)
    assert peak > 0.1 * expected  # the estimate is not too pessimistic


@pytest.mark.parametrize("kind", ["dense", "krylov", "nystroem"])
def test_precomputed_values_stay_below_the_estimate(kind):
    K = RBF(2.0)(points(1200, 4))
    options = {"rank": 50} if kind == "nystroem" else {}
    model = KernelPCA(4, kernel="precomputed", eigen_solver=kind, n_jobs=2, **options)
    expected = option(model.plan(K), kind, "low rank" if kind == "nystroem" else "dense").required
    model, peak = traced(lambda: model.fit(K))
    assert peak < expected, (peak, expected)


def test_a_budget_of_the_estimate_is_enough():
    A = points(1200, 4)
    for solver in ("dense", "krylov", "nystroem"):
        storage = {"nystroem": "low rank", "krylov": "tiled"}.get(solver, "dense")
        model = KernelPCA(3, kernel="rbf", eigen_solver=solver, rank=60, n_jobs=2)
        model.set_params(**({} if solver == "nystroem" else {"storage": storage}))
        needed = option(model.plan(A), solver, storage).required
        model.set_params(max_memory=needed).fit(A)
        assert model.n_components_ == 3
    with pytest.raises(MemoryBudgetError, match=r"LowRankEigen.* of 1200 points needs \d+\.\d MiB"):
        KernelPCA(3, kernel="rbf", eigen_solver="nystroem", max_memory="10 MiB").fit(A)
    with pytest.raises(
        MemoryBudgetError, match="a dense eigenproblem of 1200 points, 3 components"
    ):
        KernelPCA(3, kernel="rbf", eigen_solver="dense", max_memory=8 * 1200**2).fit(A)
    assert isinstance(
        KernelPCA(3, kernel="rbf", eigen_solver="nystroem", rank=60).fit(A).solver_, LowRankEigen
    )
