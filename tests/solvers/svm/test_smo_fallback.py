"""Fallback from SMO, as long as it is cheap, to the interior point method."""

import numpy as np
import pytest

from mercer import SVC, SVR
from mercer.gram import KernelRows
from mercer.kernels import Linear
from mercer.solvers import (
    BlockSMO,
    BoxInterior,
    Cost,
    Dual,
    SMOThenInteriorPoint,
    Status,
    choose_linear_svm_solver,
)


def problem(n, m, shift):
    numbers = np.random.default_rng(0)
    y = np.where(np.arange(n) % 2, 1.0, -1.0)
    X = numbers.standard_normal((n, m))
    X[:, 0] += shift * y
    return X, y


def solved(X, y, C=1.0, **options):
    dual, relay = (
        Dual.classify(y, np.full(len(y), C)),
        SMOThenInteriorPoint(BlockSMO(**options), BoxInterior()),
    )
    return relay.minimize((KernelRows(Linear(), X), X), dual)


def test_a_search_that_ends_early_is_kept():
    X, y = problem(2000, 300, 8.0)
    found = solved(X, y)
    alone = BlockSMO().minimize(KernelRows(Linear(), X), Dual.classify(y, np.ones(2000)))
    assert found.report.solver.startswith("BlockSMO") and found.report.status is Status.CONVERGED
    assert np.array_equal(found.variables, alone.variables)


def test_a_search_that_does_not_is_given_up_at_the_same_count():
    X, y = problem(2000, 300, 0.1)
    found, again = solved(X, y, 10.0), solved(X, y, 10.0)
    assert found.report.solver.startswith("BoxInterior") and found.report.status is Status.CONVERGED
    assert "SMO steps were given up" in found.report.message
    assert found.report.message == again.report.message
    assert np.array_equal(found.variables, again.variables)
    spent = int(found.report.message.split()[0]) * Cost(moves=1).seconds
    assert spent <= 0.2 * BoxInterior.cost(2000, 300).seconds


def test_a_limit_on_steps_is_one_for_both():
    X, y = problem(2000, 300, 8.0)
    found = solved(X, y, max_iter=3)
    assert (
        found.report.message.startswith("3 SMO steps") and found.report.status is Status.CONVERGED
    )


@pytest.mark.parametrize(
    ("n", "m", "largest", "name"),
    [
        (500, 4, None, "smo"),
        (800, 900, None, "smo"),
        (8000, 20, None, "primal"),  # cheaper than the first block of rows
        (3000, 256, None, "either"),
        (3000, 20, 1200, "either"),
        (3000, 20, 120, "smo"),  # all pairs of classes are small
    ],
)
def test_what_auto_takes(n, m, largest, name):
    assert choose_linear_svm_solver(n, m, largest) == name
    assert choose_linear_svm_solver(n, m, largest, max_memory="1 MiB") == "smo"


def test_machines_agree_whoever_solved_them():
    X, y = problem(1200, 250, 0.5)
    auto, inside = (SVC(kernel="linear", solver=name).fit(X, y) for name in ("auto", "primal"))
    assert isinstance(auto.solver_, SMOThenInteriorPoint)
    assert np.abs(auto.decision_function(X) - inside.decision_function(X)).max() < 0.02
    labels = np.arange(1200) % 3
    model = SVC(kernel="linear", C=0.01).fit(X, labels)
    assert isinstance(model.solver_, SMOThenInteriorPoint) and len(model.reports_) == 3
    target = X[:, 1] + 0.01 * y
    line = SVR(kernel="linear").fit(X, target)
    assert np.abs(line.predict(X) - target).max() < 0.2


def test_problems_for_which_smo_costs_too_much():
    assert not SMOThenInteriorPoint.can_afford_smo(2500, 1)
    found = solved(*problem(2500, 1, 0.5))
    assert found.report.solver.startswith("BoxInterior") and "given up" not in found.report.message


def test_both_solvers_report_progress_and_limit_their_steps():
    X, y = problem(40, 2, 0.5)
    relay, seen = SMOThenInteriorPoint(BlockSMO(max_iter=1), BoxInterior(max_iter=50)), []
    assert relay.max_iter == 50
    found = relay.minimize((KernelRows(Linear(), X), X), Dual.classify(y, np.ones(40)), seen.append)
    assert found.report.message.startswith("1 SMO steps were given up")
    assert len(seen) > 1 and seen[-1].violation <= relay.tol
