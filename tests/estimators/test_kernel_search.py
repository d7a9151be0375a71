"""search_kernels(): results on synthetic data, and errors."""

import numpy as np
import pytest
from data_folder import DATA

from mercer import search_kernels
from mercer.estimators import FoundKernel
from mercer.kernels import RBF, Linear, Periodic, Select, Spectrum, White
from mercer.models.gp import MarginalLikelihood
from mercer.models.kernel_learning._structure_search import _periodogram_peaks

X = np.linspace(1950, 1960, 60)[:, None]  # far from 0, like years
NOISE = 0.1 * np.random.default_rng(0).normal(size=60)
SEASONS = X[:, 0] - 1950 + 2 * np.sin(2 * np.pi * X[:, 0] / 1.7) + NOISE


@pytest.fixture(scope="module")
def found():
    return search_kernels(X, SEASONS, [RBF(), Linear(), Periodic()], max_levels=3)


def test_a_trend_and_seasons(found):
    assert isinstance(found, FoundKernel)
    assert found.story.best.words == "Linear + Periodic"
    periodic = next(t.kernel for t in found.kernel.terms[:-1] if isinstance(t.kernel, Periodic))
    assert periodic.period == pytest.approx(1.7, rel=0.01)
    assert isinstance(found.kernel.terms[-1], White)
    model = found.estimator.fit(X[:45], SEASONS[:45])
    error = model.predict(X[45:]) - SEASONS[45:]
    assert np.sqrt(np.mean(error**2)) < 0.5  # a forecast of seasons and trend


def test_the_story_is_true(found):
    best = found.story.best
    y = (SEASONS - SEASONS.mean()) / SEASONS.std()
    value = MarginalLikelihood(found.kernel, X - X.mean(axis=0), y).value()
    assert value == pytest.approx(best.log_likelihood, rel=1e-9)
    assert best.bic == pytest.approx(value - 0.5 * best.parameters * np.log(60))
    assert len({one.words for one in found.story.tried}) == len(found.story.tried)
    text = str(found)
    assert "level 0: 3 expressions" in text
    assert "best: Linear + Periodic" in text


def test_columns_and_no_structure():
    points = np.random.default_rng(0).normal(size=(60, 2))
    y = 2 * points[:, 1] + 0.1 * np.random.default_rng(1).normal(size=60)
    base = [Select(k, [j]) for j in (0, 1) for k in (RBF(), Linear())]
    assert search_kernels(points, y, base).story.best.words == "Linear[1]"


def test_budget_and_progress(capsys):
    some = search_kernels(X, SEASONS, [RBF(), Linear()], max_evaluations=30, verbose=1)
    assert "the search ended after max_evaluations=30 evaluations" in str(some)
    assert "[search_kernels] level 0: BIC" in capsys.readouterr().out
    once = search_kernels(X, SEASONS, [RBF(), Linear()], max_levels=1, subsample=40)
    again = search_kernels(X, SEASONS, [RBF(), Linear()], max_levels=1, subsample=40)
    assert once.kernel == again.kernel
    assert "after max_levels=1 levels" in str(once)


def test_points_that_are_no_vectors():
    words = ["ab" * i + "c" * j for i in range(1, 5) for j in range(4)]
    y = np.array([float(w.count("c")) for w in words])
    found = search_kernels(words, y, [Spectrum(1), Spectrum(2)], max_levels=1)
    assert found.estimator.fit(words, y).score(words, y) > 0.7


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ((X, SEASONS[:5]), {}, ValueError, "y must be 60 finite numbers"),
        ((X, np.ones(60)), {}, ValueError, "nothing to explain"),
        ((X, SEASONS, []), {}, TypeError, "at least one kernel"),
        ((X, SEASONS, "rbf"), {}, TypeError, "at least one kernel"),
        ((X, SEASONS, ["gauss"]), {}, ValueError, "did you mean RBF"),
        ((X[:2], SEASONS[:2]), {}, ValueError, "at least 3 points, got 2"),
        ((X, SEASONS.astype(str)), {}, ValueError, "y must be numeric"),
        ((X, SEASONS), {"max_levels": 0}, ValueError, "max_levels"),
        ((X, SEASONS), {"subsample": 0}, ValueError, "subsample"),
        ((np.ones((60, 1)), SEASONS), {}, ValueError, "all points are equal"),
        ((X, SEASONS), {"max_memory": "1 kB"}, MemoryError, "budget"),
    ],
)
def test_bad_input(arguments, options, error, message):
    with pytest.raises(error, match=message):
        search_kernels(*arguments, **options)


@pytest.mark.data
def test_carbon_dioxide():
    folder = DATA
    file = folder / "regression" / "co2" / "mauna_loa_weekly_statsmodels.csv"
    if not file.exists():
        pytest.skip("no data")
    table = np.genfromtxt(file, delimiter=",", skip_header=1)
    table = table[np.isfinite(table[:, 1])]
    month = table[:, 0] // 10000 * 12 + table[:, 0] // 100 % 100 - 1
    months, which = np.unique(month, return_inverse=True)
    level = np.bincount(which, table[:, 1]) / np.bincount(which)
    found = search_kernels(months[:, None] / 12, level, max_levels=2, subsample=100)
    assert found.story.best.words == "Periodic + RBF"
    periodic = found.kernel.terms[1].kernel.kernel
    assert periodic.period == pytest.approx(1.0, rel=2e-3)
    assert found.kernel.terms[0].kernel.length_scale > 10  # the trend, in years


def test_a_search_that_ends_at_once():
    X = np.random.default_rng(0).normal(size=(30, 1))
    found = search_kernels(X, X[:, 0], max_evaluations=1)
    assert "the search ended after max_evaluations=1 evaluations" in str(found)


@pytest.mark.parametrize(
    ("x", "y"), [(np.arange(4.0), np.arange(4.0)), (np.arange(12.0), np.zeros(12))]
)
def test_few_or_constant_values_have_no_periods(x, y):
    assert _periodogram_peaks(x, y) == []


def test_the_highest_peak_is_the_period():
    x = np.arange(60.0)
    assert _periodogram_peaks(x, np.sin(2 * np.pi * x / 7.5))[0] == pytest.approx(7.5, rel=0.02)
