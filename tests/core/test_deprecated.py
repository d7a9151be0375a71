"""Former import paths and names work for one release, with a warning that names the new one."""

import importlib
import subprocess
import sys

import pytest

import mercer
from mercer._core import FORMER_MODULES, FORMER_NAMES
from mercer.kernels import RBF, Sigmoid

NAMES = [(package, name) for package, table in FORMER_NAMES.items() for name in table]


@pytest.mark.parametrize("former", FORMER_MODULES)
def test_former_modules(former, monkeypatch):
    monkeypatch.delitem(sys.modules, former, raising=False)
    present = FORMER_MODULES[former]
    with pytest.warns(DeprecationWarning, match=f"{former} is deprecated .* use {present} instead"):
        module = importlib.import_module(former)
    assert module is importlib.import_module(present)
    assert module.__name__ == module.__spec__.name == present


def test_a_former_module_is_an_attribute(monkeypatch):
    monkeypatch.delitem(sys.modules, "mercer.gp", raising=False)
    monkeypatch.delattr(mercer, "gp", raising=False)
    with pytest.warns(DeprecationWarning, match=r"mercer\.gp is deprecated"):
        module = mercer.gp
    assert module is mercer.models.gp


@pytest.mark.parametrize(("package", "name"), NAMES)
def test_former_names(package, name):
    module = importlib.import_module(package)
    home, _, present = FORMER_NAMES[package][name].rpartition(".")
    expected = getattr(importlib.import_module(home or package), present)
    with pytest.warns(DeprecationWarning, match=rf"{package}\.{name} is deprecated.*{present}"):
        assert getattr(module, name) is expected
    assert name not in module.__all__


def test_the_warning_points_at_the_caller():
    with pytest.warns(DeprecationWarning) as caught:
        mercer.solvers.Cascade  # noqa: B018
    assert caught[0].filename == __file__


def test_names_that_never_existed():
    for module in (mercer, mercer.kernels, mercer.gram, mercer.solvers):
        with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
            module.nothing  # noqa: B018


def test_former_attributes():
    kernel, result = RBF(), Sigmoid().validity()
    with pytest.warns(DeprecationWarning, match=r"RBF\.claims is deprecated.*RBF\.properties"):
        assert kernel.claims == kernel.properties
    with pytest.warns(DeprecationWarning, match="reads_matrix"):
        assert kernel.reads_matrix == kernel.domain.accepts_matrix
    with pytest.warns(DeprecationWarning, match="tells_observations_apart"):
        assert kernel.tells_observations_apart == kernel.domain.distinguishes_observations
    with pytest.warns(DeprecationWarning, match=r"RBF\.domain\.on_vectors"):
        assert kernel.on_vectors
    with pytest.warns(DeprecationWarning, match="use Validity.counterexample"):
        assert result.witness is result.counterexample


def test_the_public_names_cause_no_warning():
    code = (
        "import importlib, mercer\n"
        "for name in ('', '.kernels', '.gram', '.solvers', '.models.gp', '.plotting'):\n"
        "    module = importlib.import_module('mercer' + name)\n"
        "    [getattr(module, part) for part in module.__all__]\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)
