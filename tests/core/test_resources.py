"""The resources of a fit: nested scopes, threads, reservations, and a single context variable."""

import os
import pickle
import re
import threading
from pathlib import Path

import pytest

import mercer
from mercer import MemoryBudgetError
from mercer._core import (
    Resources,
    _resources,
    budget_in_bytes,
    capture_progress,
    check_threads,
    progress,
    reserve,
    resource_scope,
    run_in_threads,
    running_resources,
)


def test_there_is_one_context_variable():
    sources = Path(mercer.__file__).parent.rglob("*.py")
    found = [path.name for path in sources if re.search(r"= ContextVar\(", path.read_text("utf-8"))]
    assert found == ["_resources.py"]


def test_scopes_nest():
    outside = budget_in_bytes(None)
    with resource_scope(1000, n_threads=3):
        with resource_scope(n_threads=2) as inner:
            assert (inner.budget, check_threads(None)) == (1000, 2)
            assert Resources.of(500).threads == 2
        with resource_scope(2000):
            assert (budget_in_bytes(None), check_threads(None)) == (2000, 3)
        assert (budget_in_bytes(None), check_threads(None)) == (1000, 3)
    assert budget_in_bytes(None) == outside


def test_scopes_end_with_errors():
    with pytest.raises(KeyboardInterrupt), resource_scope(1000, n_threads=1):
        raise KeyboardInterrupt
    assert running_resources() == Resources()


def test_reserved_memory_is_released_by_the_scope_that_reserved_it():
    released = []
    with resource_scope(1000):
        reserve(100)
        with resource_scope():
            reserve(200, lambda: released.append("inner"))
            assert budget_in_bytes(None) == 700
            assert Resources.of("500 B").budget == 200
        assert released == ["inner"]
        assert budget_in_bytes(None) == 900
    reserve(100, lambda: released.append("never"))
    assert released == ["inner"]


def test_threads_of_mercer_inherit_the_scope_and_other_threads_do_not():
    seen = []
    with resource_scope(1000, n_threads=2):
        run_in_threads(lambda _: seen.append(budget_in_bytes(None)), range(8))
        other = threading.Thread(target=lambda: seen.append(running_resources()))
        other.start()
        other.join()
    assert seen == [1000] * 8 + [Resources()]


def test_the_budget_is_checked_with_numbers():
    with pytest.raises(MemoryBudgetError, match=r"a matrix needs 2\.0 KiB, but the budget is"):
        Resources.of(1024).check(2048, "a matrix")
    with pytest.raises(ValueError, match="n_threads must be a positive integer or None, got 0"):
        Resources.of(n_threads=0).threads  # noqa: B018


def test_progress_is_passed_and_not_inherited():
    lines = []
    with capture_progress(lines.append), progress("M"), resource_scope(1000):
        Resources.of().log("not verbose")
        Resources.of(progress=lines.append).log("verbose")
    assert lines == ["verbose"]


def test_copies_for_other_processes_have_no_output():
    with resource_scope(1000):
        reserve(100, lambda: None)
        sent = Resources.of(n_threads=2, progress=lambda text: None, random_state=3)
        found = pickle.loads(pickle.dumps(sent))
    assert found == Resources(1000, 2, None, 3)
    assert found.budget == 1000
    assert found.generator.integers(1000) == sent.generator.integers(1000)


def test_systems_without_these_functions_have_defaults(monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    assert _resources.thread_count() == 3
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert _resources.thread_count() == 1
    monkeypatch.delattr(os, "sysconf", raising=False)
    assert _resources._half_of_physical_memory.__wrapped__() == 4 * 1024**3
