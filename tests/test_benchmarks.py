"""Tests of the benchmark harness: problems, medians, worst ratios, and the regression guard."""

import inspect
from collections import Counter

import numpy as np
import pytest

import mercer
from benchmarks import README_SUITES, SUITES, first, guard
from benchmarks.__main__ import BENCHMARKS_DIR, RESULTS_DIR, is_valid_run
from benchmarks._problems import (
    DATA,
    LABELS,
    POINTS,
    VALUES,
    default_gamma,
    describe,
    is_available,
    load_problem,
)
from benchmarks._report import TABLE_MARKERS, replace_table, speed_table, summarise_families

# ------------------------------------------------------------------------------------ problems


@pytest.mark.parametrize("inputs", [*POINTS, *VALUES, *LABELS], ids=describe)
def test_a_problem_is_drawn_by_its_seed(inputs):
    if not is_available(inputs["name"]):
        pytest.skip("needs MERCER_DATA")
    load_problem.cache_clear()
    X, y, Q, truth = load_problem(**inputs, n=60, queries=7)
    load_problem.cache_clear()
    again = load_problem(**inputs, n=60, queries=7)
    np.testing.assert_array_equal(X, again.X)
    np.testing.assert_array_equal(y, again.y)
    assert X.shape == (60, X.shape[1]) and Q.shape == (7, X.shape[1]) and len(truth) == 7
    assert np.isfinite(X).all() and 0 < default_gamma(X) < np.inf
    assert not np.array_equal(X, load_problem(**inputs, n=60, queries=7, seed=1).X)


def test_targets_are_standardised_or_cut_into_classes():
    assert load_problem("waves", 200, 3).y.std() == pytest.approx(1.0)
    assert Counter(load_problem("shells", 200, 2, classes=4).y.tolist()) == dict.fromkeys(
        range(4), 50
    )
    assert set(load_problem("iris", classes=2).y.tolist()) == {0, 1}
    assert set(load_problem("diabetes", 100, classes=2).y.tolist()) == {0, 1}
    with pytest.raises(ValueError, match="there is no problem named 'nothing'"):
        load_problem("nothing", 10)


def test_a_columns_scale_is_that_of_the_points_alone():
    X, _, Q, _ = load_problem("iris")
    np.testing.assert_allclose(X.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(X.std(axis=0), 1.0)
    assert len(X) + len(Q) == 150 and abs(Q.mean()) > 1e-6


@pytest.mark.data
@pytest.mark.parametrize("name", [name for name in README_SUITES if name != "gp-family"])
def test_quoted_suites_have_families_of_five_or_more(name):
    if not DATA.exists():
        pytest.skip("needs MERCER_DATA")
    shown = README_SUITES[name]
    families = Counter(case.family for case in SUITES[name].cases(False) if case.family)
    counts = [count for family, count in families.items() if not shown or family in shown]
    assert counts and min(counts) >= 5


# ------------------------------------------------------------------- the median and the worst


def record(ratio, status="ok", **more):
    ratio = None if ratio is None else [ratio, ratio, ratio]
    return {"status": status, "ratio": ratio, "scratch": [2**20], "seconds": [1.0], **more}


def run(*cases):
    return {"title": "all", "cases": [{"name": n, "contenders": c, **more} for n, c, more in cases]}


def test_a_family_is_summed_up_by_its_median_and_its_worst():
    peers = [("a", 3.0), ("b", 0.5), ("c", 7.0), ("d", None)]
    made = [(n, {"mercer": record(1.0), "peer": record(r)}, {"family": "f"}) for n, r in peers]
    (found,) = summarise_families("suite", run(*made))
    assert (found.family, found.peer, found.worst_case) == ("f", "peer", "b")
    assert found.row() == "| f | peer | 3 | 3× | 0.5× (b) | 1 MiB, peer 1 MiB |\n"


def test_the_fastest_candidate_stands_for_a_peer():
    records = {
        "mercer": record(1.0),
        "peer, slow": record(9.0, candidate=True),
        "peer, fast": record(2.0, candidate=True),
        "peer, wrong": record(None, "rejected", candidate=True),
    }
    (found,) = summarise_families("suite", run(("a", records, {})))
    assert (found.family, found.peer, found.ratios) == ("all", "peer", [2.0])


def test_a_refused_contender_makes_a_run_unsound():
    good = {"mercer": record(1.0), "scikit-learn": record(2.0)}
    bad = good | {"scikit-learn": record(None, "rejected")}
    absent = good | {"scikit-learn": record(None, "not installed")}
    assert is_valid_run("fit", run(("a", good, {}), ("b", absent, {})))
    assert not is_valid_run("fit", run(("a", good, {}), ("b", bad, {})))


def test_tables_are_written_between_their_marks(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("before\n" + "old\n".join(TABLE_MARKERS) + "after\n")
    replace_table(page, "| new |\n")
    assert page.read_text() == "before\n" + "| new |\n".join(TABLE_MARKERS) + "after\n"
    page.write_text("nothing")
    with pytest.raises(
        ValueError, match=r"page\.md has 0 pairs of table markers, expected exactly one"
    ):
        replace_table(page, "")


@pytest.mark.parametrize(
    ("page", "table"),
    [("README.md", {"suites": README_SUITES, "peers_only": True}), ("benchmarks/SUMMARY.md", {})],
)
def test_the_tables_on_the_pages_are_those_of_the_recorded_results(page, table):
    text = (BENCHMARKS_DIR.parent / page).read_text("utf-8")
    assert text.partition(TABLE_MARKERS[0])[2].partition(TABLE_MARKERS[1])[0] == speed_table(
        RESULTS_DIR, **table
    )


def test_every_recorded_result_is_that_of_a_suite():
    assert {path.stem for path in RESULTS_DIR.glob("*.json")} <= set(SUITES)


# -------------------------------------------------------------------------- slower than before


def rounds(factor, noise, seed, count=15):
    """Return times of two source trees, with a common drift and independent noise."""
    rng = np.random.default_rng(seed)
    drift = np.exp(0.3 * rng.standard_normal(count))
    before, now = drift * np.exp(noise * rng.standard_normal((2, count)))
    return before.tolist(), (factor * now).tolist()


@pytest.mark.parametrize(
    ("factor", "noise", "least", "most"),
    [(1.0, 0.1, 0.0, 0.01), (1.0, 0.5, 0.0, 0.06), (1.05, 0.02, 0.0, 0.01), (1.3, 0.05, 0.99, 1.0)],
)
def test_a_slowdown_is_distinguished_from_noise(factor, noise, least, most):
    limits = [guard.median_lower_bound(*rounds(factor, noise, seed)) for seed in range(400)]
    assert least <= np.mean(np.array(limits) > 1 + guard.SLOWDOWN_MARGIN) <= most


def test_few_rounds_say_nothing():
    assert guard.median_lower_bound([1.0] * 4, [9.0] * 4) == -np.inf
    assert guard.median_lower_bound([1.0] * 5, [9.0, 8.0, 7.0, 9.0, 9.0]) == 7.0


def test_what_is_not_comparable_is_not_slower():
    before, now = record(1.0) | {"seconds": [1.0] * 5}, record(1.0) | {"seconds": [2.0] * 5}
    case = {"name": "call", "contenders": {"before": before, "mercer": now}}
    assert guard.is_slower(case)
    assert guard.format_results([case]).endswith("| call | 2.00 (2.00–2.00) | slower |")
    before.update(status="failed", note="failed: ImportError")
    assert not guard.is_slower(case)
    assert "not compared: failed: ImportError" in guard.format_results([case])
    assert not guard.has_different_result(case)  # the older tree has no such call


def test_another_result_fails_the_guard():
    case = {"name": "call", "contenders": {"before": record(1.0), "mercer": record(1.0)}}
    assert not guard.has_different_result(case)
    case["contenders"]["before"]["status"] = "rejected"  # its result differs from this tree's
    assert guard.has_different_result(case)
    case["contenders"] = {"before": record(1.0), "mercer": record(1.0) | {"status": "failed"}}
    assert guard.has_different_result(case)


def test_who_is_too_slow_for_a_second_round_is_slower():
    before, now = record(1.0) | {"seconds": [1.0] * 5}, record(1.0) | {"seconds": [70.0]}
    case = {"name": "call", "contenders": {"before": before, "mercer": now}}
    assert guard.is_slower(case)
    assert guard.format_results([case]).endswith("| call | 70.00 (70.00–70.00) | slower |")


def test_no_sources_of_an_unknown_commit():
    with (
        pytest.raises(SystemExit, match="git has no sources of nowhere"),
        guard.older_sources("nowhere"),
    ):
        pass


def test_the_sources_of_a_commit_are_there_for_a_while(monkeypatch):
    monkeypatch.delenv(guard.OLD_SOURCES_VARIABLE, raising=False)
    try:
        with guard.older_sources("HEAD"):
            folder = guard.Path(guard.os.environ[guard.OLD_SOURCES_VARIABLE])
            assert (folder / "mercer" / "__init__.py").exists()
    except (OSError, SystemExit):
        pytest.skip("not a git repository")
    assert not folder.exists() and guard.OLD_SOURCES_VARIABLE not in guard.os.environ


def test_the_first_fits_are_those_of_every_estimator():
    public = {name: getattr(mercer, name) for name in mercer.__all__}
    estimators = {n for n, c in public.items() if inspect.isclass(c) and hasattr(c, "get_params")}
    assert estimators - {"MultipleKernel"} == set(first.ESTIMATORS)
