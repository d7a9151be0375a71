"""The plan of every estimator: it prints, and `fit` follows it."""

import re
import warnings

import block_models
import numpy as np
import pytest
from sklearn.base import clone
from zoo import ESTIMATORS

import mercer.estimators
from mercer import (
    SVC,
    SVR,
    ExplicitFeatures,
    GaussianProcessRegressor,
    KernelFisherDiscriminant,
    KernelKMeans,
    KernelLogisticRegression,
    KernelMachineRegressor,
    KernelPCA,
    KernelRidge,
    MemoryBudgetError,
    SparseKernelRegressor,
)
from mercer.blocks import Blocks
from mercer.kernels import Spectrum
from mercer.solvers import (
    BlockSMO,
    BoxInterior,
    Cholesky,
    ConjugateGradient,
    FallbackSolver,
    Plan,
    SMOThenInteriorPoint,
    _choose_solver,
)

rng = np.random.default_rng(0)
X = rng.random((120, 3)) + 0.01
LABELS = rng.integers(0, 3, 120)


def points(n, columns=3):
    return np.random.default_rng(1).random((n, columns))


def option(plan, solver):
    return next(option for option in plan.options if option.solver == solver)


# ---------------------------------------------------------------------- every estimator


def test_every_estimator_has_a_plan():
    for name in mercer.estimators.__all__:
        cls = getattr(mercer.estimators, name)
        if hasattr(cls, "fit"):
            assert "Examples" in cls.plan.__doc__, name


@pytest.mark.parametrize("y", [None, LABELS], ids=["alone", "with targets"])
@pytest.mark.parametrize("number", range(len(ESTIMATORS)))
def test_the_plan_prints(number, y):
    model = clone(ESTIMATORS[number])
    plan = model.plan(X, y)
    assert isinstance(plan, Plan) and plan.n == len(X) and plan.chosen in plan.options
    assert not hasattr(model, "n_features_in_") and not hasattr(model, "kernel_")
    assert plan.chosen.memory >= 0 and plan.chosen.fits and plan.chosen.reason
    head, names, *rows = str(plan).splitlines()
    assert re.search(rf"{len(X)} points.*, budget \d", head)
    assert names.split()[:2] == ["solver", "storage"]
    marked = [row for row in rows if row.startswith(">")]
    assert len(marked) == 1 and marked[0].split()[1].rstrip(",") in plan.chosen.solver
    assert all(option.reason for option in plan.options)
    assert plan.summary.startswith(plan.problem) and plan.chosen.solver in plan.summary
    # the columns are aligned
    start = names.index("storage")
    assert all(row[start - 1] == " " and row[start] != " " for row in rows[: len(plan.options)])


def test_invalid_points_are_rejected():
    with pytest.raises(ValueError, match="NaN"):
        SVC().plan([[np.nan]], [1])
    with pytest.raises(ValueError, match="at least 2 classes"):
        KernelFisherDiscriminant().plan(X, np.zeros(120))
    with pytest.raises(ValueError, match="alpha"):
        KernelRidge(alpha=-1.0).plan(X)


# ---------------------------------------------------------------------- fit follows the plan


@pytest.mark.parametrize(
    ("n", "budget", "kind", "solver", "storage"),
    [
        (300, None, Cholesky, "cholesky", "dense"),
        (300, "700 kB", FallbackSolver, "cg, mixed", "tiled"),
        (300, "300 kB", ConjugateGradient, "cg", "tiled"),
        (2100, None, FallbackSolver, "cg, mixed, cholesky", "tiled"),
        (2100, "45 MB", FallbackSolver, "cg, cholesky", "dense"),
    ],
)
def test_a_linear_system(n, budget, kind, solver, storage):
    A = points(n)
    model = KernelRidge(kernel="rbf", max_memory=budget, n_jobs=1)
    chosen = model.plan(A).chosen
    assert (chosen.solver, chosen.storage) == (solver, storage)
    found = model.fit(A, A[:, 0]).solver_
    assert isinstance(found, kind)
    if kind is FallbackSolver:
        names = {"Cholesky": "cholesky", "MixedCholesky": "mixed", "ConjugateGradient": "cg"}
        assert ", ".join(names[type(s).__name__] for s in found.solvers) == solver


def test_names_of_linear_solvers():
    for name in ("cholesky", "mixed", "cg", "lstsq", "nystroem", "krill"):
        plan = KernelRidge(kernel="rbf", solver=name, rank=20).plan(X)
        assert plan.chosen.solver == name and plan.chosen.reason == "requested"
        others = [o.reason for o in plan.options if o is not plan.chosen]
        assert set(others) == {f"solver is {name!r}"}
    assert KernelRidge(solver=ConjugateGradient()).plan(X).chosen.solver == "ConjugateGradient"


@pytest.mark.parametrize(
    ("model", "limit"),
    [
        (KernelLogisticRegression(rank=20), "newton"),
        (KernelMachineRegressor(rank=20), "exact"),
        (KernelMachineRegressor("quantile", quantile=[0.2, 0.8], rank=20), "ordered"),
        (KernelKMeans(2, rank=20), "clusters"),
        (GaussianProcessRegressor(optimizer=None, alpha=0.1, rank=20), "likelihood"),
    ],
)
def test_more_points_than_an_exact_solver_takes(monkeypatch, model, limit):
    y = LABELS if limit == "newton" else X[:, 0]
    exact = model.plan(X, y).chosen
    assert exact.exact and exact.storage == "dense"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clone(model).fit(X, y)
    monkeypatch.setitem(_choose_solver.MAX_EXACT_POINTS, limit, 100)
    plan = model.plan(X, y)
    assert plan.chosen.solver == "nystroem" and plan.chosen.rank == 20
    assert plan.options[0].reason == "more than 100 points"
    with pytest.warns(UserWarning, match=r"landmarks|inducing"):
        model = clone(model).fit(X, y)
    assert model.report_.status.value.startswith("approx")


def test_a_budget_that_forces_landmarks():
    A = points(400)
    y = A[:, 0] > 0.5
    free = KernelLogisticRegression(n_jobs=1)
    needed = free.plan(A, y).chosen.required
    assert free.set_params(max_memory=needed).plan(A, y).chosen.solver == "newton"
    tight = free.set_params(max_memory=needed - 1)
    chosen = tight.plan(A, y).chosen
    assert chosen.solver == "nystroem" and chosen.rank < 400
    with pytest.warns(UserWarning, match=f"Nyström on {chosen.rank} landmarks"):
        assert len(tight.fit(A, y).X_fit_) == chosen.rank


@pytest.mark.parametrize(
    ("options", "n", "columns", "kind", "solver"),
    [
        ({}, 100, 3, BlockSMO, "smo"),
        ({"kernel": "linear"}, 100, 3, BlockSMO, "smo"),
        ({"kernel": "linear"}, 700, 3, SMOThenInteriorPoint, "smo, primal"),
        ({"kernel": "linear", "solver": "primal"}, 100, 3, BoxInterior, "primal"),
        ({"solver": "nystroem", "rank": 20}, 100, 3, BoxInterior, "nystroem"),
        ({"solver": BlockSMO()}, 100, 3, BlockSMO, "smo"),
    ],
)
@pytest.mark.parametrize("cls", [SVC, SVR])
def test_a_support_vector_machine(cls, options, n, columns, kind, solver):
    A = points(n, columns)
    y = (A[:, 0] > 0.5).astype(float)
    model = cls(**options)
    assert model.plan(A, y).chosen.solver == solver
    assert isinstance(model.fit(A, y).solver_, kind)


def test_the_eigensolver_of_a_request():
    for options, expected in (
        ({"eigen_solver": "power"}, ("power", "dense")),
        ({"eigen_solver": "arpack", "storage": "tiled"}, ("arpack", "tiled")),
        ({"eigen_solver": "features", "rank": 10}, ("features", "features")),
        ({"indefinite": "flip"}, ("dense", "dense")),
    ):
        chosen = KernelPCA(2, kernel="rbf", **options).plan(X).chosen
        assert (chosen.solver, chosen.storage) == expected
        assert 0 < chosen.cost.seconds < np.inf


# ---------------------------------------------------------------------- errors and progress


def test_an_error_contains_the_plan():
    for model, y in (
        (KernelRidge(kernel="rbf", solver="cholesky", max_memory="50 kB"), X[:, 0]),
        (SVC(max_memory="50 kB"), LABELS),
        (KernelPCA(2, kernel="rbf", eigen_solver="dense", max_memory="50 kB"), None),
        (KernelLogisticRegression(solver="newton", max_memory="50 kB"), LABELS),
    ):
        plan = model.plan(X, y)
        assert plan.chosen is None and "no method fits the budget of" in plan.summary
        assert "increase max_memory" in str(plan)
        with pytest.raises(MemoryBudgetError) as raised:
            model.fit(X, y)
        assert str(plan) in str(raised.value)
        with pytest.raises(MemoryBudgetError, match="no exact method fits"):
            plan.require()


def test_verbose_prints_the_chosen_option(capfd):
    model = KernelRidge(kernel="rbf", verbose=1)
    model.fit(X, X[:, 0])
    printed = "".join(capfd.readouterr())
    assert printed.count("cholesky, dense, about") == 1
    assert "kernel ridge regression of 120 points, 1 target" in printed


# ---------------------------------------------------------------------- blocks


@pytest.mark.parametrize("name", block_models.MODELS)
def test_points_in_blocks(name, monkeypatch):
    model, y, _ = block_models.MODELS[name]
    blocks = Blocks.of(block_models.X, rows=block_models.ROWS)
    with monkeypatch.context() as patched:
        patched.setattr(Blocks, "to_array", None)  # the points are not loaded
        plan = clone(model).plan(blocks, y)
    assert plan.n == len(block_models.X) and plan.chosen is not None
    if "exact" in name:
        assert plan.chosen.storage in ("tiled", "distributed")


def test_blocks_that_fit_rejects_are_rejected():
    with pytest.raises(ValueError, match="set solver='nystroem'"):
        SVC().plan(Blocks.of(X), LABELS)
    with pytest.raises(TypeError, match="does not support data in blocks"):
        KernelPCA.plan(mercer.estimators.MetricMDS(), Blocks.of(X))


def test_plans_of_learned_vectors_need_vectors():
    for kernel, X, error in (
        ("precomputed", np.eye(4), ValueError),
        (Spectrum(2), ["ab", "bc", "cd", "de"], TypeError),
    ):
        model = SparseKernelRegressor(kernel=kernel)
        with pytest.raises(error) as planned:
            model.plan(X, np.arange(4.0))
        with pytest.raises(error) as fitted:
            model.fit(X, np.arange(4.0))
        assert str(planned.value) == str(fitted.value)


@pytest.mark.parametrize("cls", [KernelPCA, GaussianProcessRegressor])
def test_plans_of_a_matrix(cls):
    X = np.random.default_rng(0).normal(size=(30, 2))
    given = cls(kernel="precomputed").plan(X @ X.T, X[:, 0])
    assert "30 points" in str(given)
    assert given.chosen.storage == "dense"


def test_a_gaussian_process_with_fixed_parameters_needs_less_memory():
    X = np.random.default_rng(0).normal(size=(300, 2))
    fixed, searched = (
        GaussianProcessRegressor(solver="cholesky", optimizer=optimizer).plan(X, X[:, 0])
        for optimizer in (None, "fmin_l_bfgs_b")
    )
    assert fixed.chosen.memory < searched.chosen.memory


def test_plans_without_targets_or_vectors():
    X = np.random.default_rng(0).normal(size=(30, 2))
    assert "learned from 30 points" in str(SparseKernelRegressor().plan(X))
    assert "explicit features of 2 points" in str(
        ExplicitFeatures(kernel=Spectrum(2)).plan(["ab", "b"])
    )
