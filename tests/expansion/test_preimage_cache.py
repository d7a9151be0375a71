"""Regressions for pre-images are computed once for several clicks in the explorer."""

import numpy as np
import pytest

from mercer import Expansion, KernelPCA
from mercer.expansion.preimage import _closed_form_preimage
from mercer.expansion.preimage import _closed_form_preimage as closed_form
from mercer.kernels import RBF


def test_a_regression_is_computed_once_per_kernel_and_points(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    fits = []
    fit = closed_form._fit_regression
    monkeypatch.setattr(closed_form, "_fit_regression", lambda *a: fits.append(a) or fit(*a))
    monkeypatch.setattr(closed_form, "_regressions", type(closed_form._regressions)())
    model = KernelPCA(2, kernel="RBF(1.5)").fit(X)
    first = model.preimage([[0.1, 0.2]], method="learned").points
    model.preimage([[0.3, 0.1]], method="learned")
    assert len(fits) == 1
    np.testing.assert_array_equal(first, model.preimage([[0.1, 0.2]], method="learned").points)
    other = X.copy()
    other[0] += 1.0  # other points of the same shape
    KernelPCA(2, kernel="RBF(1.5)").fit(other).preimage([[0.1, 0.2]], method="learned")
    KernelPCA(2, kernel="RBF(2.5)").fit(X).preimage([[0.1, 0.2]], method="learned")
    assert len(fits) == 3
    for width in np.linspace(1, 2, 7):
        KernelPCA(2, kernel=f"RBF({width})").fit(X).preimage([[0.1, 0.2]], method="learned")
    assert len(closed_form._regressions) == closed_form._MAX_CACHED_REGRESSIONS


def test_a_cached_regression_needs_the_memory_budget_as_well():
    X = np.random.default_rng(1).normal(size=(90, 3))
    model = KernelPCA(2, kernel="RBF(1.5)").fit(X)
    model.preimage([[0.1, 0.2]], method="learned")
    with pytest.raises(MemoryError, match="a regression on 90 points"):
        model.preimage([[0.1, 0.2]], method="learned", max_memory=1000)


def test_regressions_on_many_points_are_not_cached(monkeypatch):
    monkeypatch.setattr(_closed_form_preimage, "_MAX_CACHED_POINTS", 20)
    before = list(_closed_form_preimage._regressions)
    X = np.random.default_rng(0).normal(size=(30, 2))
    first, again = (
        Expansion(RBF(), X, np.full(30, 1 / 30)).preimage(method="learned").points for _ in range(2)
    )
    assert np.array_equal(first, again)
    assert list(_closed_form_preimage._regressions) == before


def test_errors_of_an_indefinite_system_are_not_computed():
    X = np.ones((3, 2))
    assert _closed_form_preimage._leave_one_out_errors(-np.eye(3), 0.1, X) is None
