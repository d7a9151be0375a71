"""Former names, parameters and values work until their end, with a warning that says what to do."""

import ast
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator, clone

import mercer
from mercer._core import (
    DEPRECATIONS,
    Deprecation,
    FormerAttribute,
    closest_name,
    renamed_parameter,
    renamed_value,
)
from mercer._core._deprecated import RENAMES, install_former_modules
from mercer.estimators._parameters import estimator, parameter
from mercer.kernels import RBF, Sigmoid

FORMER_MODULES = {former: new for group in RENAMES for former, new in group.modules.items()}
NAMES = [
    (package, name, present)
    for group in RENAMES
    for package, table in group.names.items()
    for name, present in table.items()
]
NEXT = {"since": "0.1.0", "removed_in": "0.2.0"}


@pytest.fixture(autouse=True)
def keep_the_list():
    """Remove the deprecations that a test adds."""
    before = dict(DEPRECATIONS)
    yield
    DEPRECATIONS.clear()
    DEPRECATIONS.update(before)


# --- the schedule ------------------------------------------------------------------------------


def release(version):
    """Return (0, 2, 0) for "0.2.0" and for its development versions."""
    return tuple(map(int, re.fullmatch(r"(\d+)\.(\d+)\.(\d+)\S*", version).groups()))


def overdue(deprecations, version):
    """Return the deprecations that a version must not contain any more."""
    now = release(version)
    return sorted(d.former for d in deprecations if release(d.removed_in) <= now)


def all_deprecations():
    """Return the deprecations of the package, after importing all its modules."""
    for module in pkgutil.walk_packages(mercer.__path__, "mercer."):
        importlib.import_module(module.name)
    return DEPRECATIONS


def test_no_deprecation_is_overdue():
    found = all_deprecations()
    assert {"mercer.gp", "mercer.solvers.Cascade", "Kernel.claims"} <= found.keys()
    late = overdue(found.values(), mercer.__version__)
    assert late == [], (
        f"mercer {mercer.__version__} must not contain {', '.join(late)}: remove them"
    )


def test_overdue_deprecations_are_found():
    old, new = Deprecation("old", "a", "0.1.0", "0.2.0"), Deprecation("new", "b", "0.2.0", "0.3.0")
    assert overdue([old, new], "0.1.9") == []
    assert overdue([old, new], "0.2.0.dev0") == overdue([old, new], "0.2.1") == ["old"]
    assert overdue([old, new], "1.0.0") == ["new", "old"]


def test_every_deprecation_warns_for_one_minor_release():
    for deprecation in all_deprecations().values():
        since, removed = release(deprecation.since), release(deprecation.removed_in)
        assert since <= release(mercer.__version__), deprecation
        assert removed[2] == 0 and removed > (*since[:2], since[2] + 1), deprecation
        assert removed[:2] > since[:2], deprecation


def test_deprecation_warnings_are_issued_in_one_place():
    package, found = Path(mercer.__file__).parent, set()
    for path in package.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            match node:
                case ast.Call(
                    func=ast.Attribute(attr="warn" | "warn_explicit") | ast.Name(id="warn_caller")
                ):
                    if re.search("DeprecationWarning|FutureWarning", ast.unparse(node)):
                        found.add(path.name)
    assert found == {"_deprecated.py"}


# --- modules and names -------------------------------------------------------------------------


@pytest.mark.parametrize("former", FORMER_MODULES)
def test_former_modules(former, monkeypatch):
    monkeypatch.delitem(sys.modules, former, raising=False)
    present = FORMER_MODULES[former]
    text = f"{former} is deprecated since mercer .* will be removed in .* use {present} instead"
    with pytest.warns(DeprecationWarning, match=text):
        module = importlib.import_module(former)
    assert module is importlib.import_module(present)
    assert module.__name__ == module.__spec__.name == present


def test_a_former_module_is_an_attribute(monkeypatch):
    monkeypatch.delitem(sys.modules, "mercer.gp", raising=False)
    monkeypatch.delattr(mercer, "gp", raising=False)
    with pytest.warns(DeprecationWarning, match=r"mercer\.gp is deprecated"):
        module = mercer.gp
    assert module is mercer.models.gp


@pytest.mark.parametrize(("package", "name", "present"), NAMES)
def test_former_names(package, name, present):
    module = importlib.import_module(package)
    home, _, present = present.rpartition(".")
    expected = getattr(importlib.import_module(home or package), present)
    with pytest.warns(DeprecationWarning, match=rf"{package}\.{name} is deprecated.*{present}"):
        assert getattr(module, name) is expected
    assert name not in module.__all__


def test_the_warning_of_a_name():
    with pytest.warns(DeprecationWarning) as caught:
        mercer.solvers.Cascade  # noqa: B018
    assert caught[0].filename == __file__
    assert str(caught[0].message) == (
        "mercer.solvers.Cascade is deprecated since mercer 0.1.0 and will be removed in 0.2.0; use "
        "mercer.solvers.FallbackSolver instead"
    )


def test_names_that_never_existed():
    for module in (mercer, mercer.kernels, mercer.gram, mercer.solvers):
        with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
            module.nothing  # noqa: B018


def test_the_public_names_cause_no_warning():
    code = (
        "import importlib, mercer\n"
        "for name in ('', '.kernels', '.gram', '.solvers', '.models.gp', '.plotting'):\n"
        "    module = importlib.import_module('mercer' + name)\n"
        "    [getattr(module, part) for part in module.__all__]\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


# --- attributes --------------------------------------------------------------------------------


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


def test_a_former_attribute_of_a_new_class():
    class Result:
        value = 3
        number = FormerAttribute("value", **NEXT)

    assert DEPRECATIONS["Result.number"] == Deprecation(
        "Result.number", "Result.value", "0.1.0", "0.2.0"
    )
    with pytest.warns(DeprecationWarning, match="use Result.value instead") as caught:
        assert Result().number == 3
    assert caught[0].filename == __file__
    assert isinstance(Result.number, FormerAttribute)


def test_a_class_without_set_params_may_have_renamed_parameters():
    @renamed_parameter("n", "count", **NEXT)
    class Counter:
        def __init__(self, count=1):
            self.count = count

    with pytest.warns(DeprecationWarning, match=r"Counter\(n=\.\.\.\)"):
        assert Counter(n=2).count == 2


def test_former_modules_are_installed_once():
    before = list(sys.meta_path)
    install_former_modules()
    assert sys.meta_path == before


# --- parameters and values ---------------------------------------------------------------------


@renamed_parameter("n", "count", **NEXT)
@renamed_parameter("fast", "", **NEXT)
@renamed_value("how", "peel", "deflate", **NEXT)
def search(X, count=1, how="all"):
    """A function with a renamed parameter, a removed parameter and a renamed value."""
    return X, count, how


@renamed_value("solver", "peeling", "deflation", **NEXT)
@renamed_parameter("lam", "alpha", **NEXT)
@estimator()
class Model(BaseEstimator):
    """An estimator with the same changes.

    Parameters
    ----------
    alpha : float
        Regularisation.
    solver : str
        Name of a solver.
    """

    alpha: float = parameter("positive", default=1.0)
    solver: str = parameter({"auto", "deflation"}, default="auto")


@pytest.mark.parametrize(
    ("call", "result", "message"),
    [
        (lambda: search(0, n=2), (0, 2, "all"), r"search\(n=\.\.\.\).*use count=\.\.\. instead"),
        (lambda: search(0, fast=True), (0, 1, "all"), r"search\(fast=\.\.\.\).*; remove it"),
        (lambda: search(0, how="peel"), (0, 1, "deflate"), r"how='peel'.*use how='deflate'"),
        (lambda: search(0, 2, "peel"), (0, 2, "deflate"), r"since mercer 0\.1\.0.*in 0\.2\.0"),
    ],
)
def test_former_parameters_and_values_of_a_function(call, result, message):
    with pytest.warns(DeprecationWarning, match=message) as caught:
        assert call() == result
    assert len(caught) == 1 and caught[0].filename == __file__


@pytest.mark.parametrize(
    ("make", "parameters", "message"),
    [
        (lambda: Model(lam=2.0), (2.0, "auto"), r"Model\(lam=\.\.\.\).*use alpha=\.\.\. instead"),
        (lambda: Model().set_params(lam=3.0), (3.0, "auto"), r"use alpha=\.\.\. instead"),
        (lambda: Model(solver="peeling"), (1.0, "deflation"), r"Model\(solver='peeling'\)"),
        (lambda: Model(2.0, "peeling"), (2.0, "deflation"), "use solver='deflation' instead"),
        (lambda: Model().set_params(solver="peeling"), (1.0, "deflation"), "'peeling'"),
    ],
)
def test_former_parameters_and_values_of_an_estimator(make, parameters, message):
    with pytest.warns(DeprecationWarning, match=message) as caught:
        model = make()
    assert len(caught) == 1 and caught[0].filename == __file__
    assert (model.alpha, model.solver) == parameters
    model._validate_params()
    assert clone(model).get_params() == model.get_params()


def test_present_parameters_and_values_cause_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert search([1], count=2, how="deflate") == ([1], 2, "deflate")
        assert Model(2.0, solver="deflation").set_params(alpha=3.0).alpha == 3.0
    assert list(inspect.signature(search).parameters) == ["X", "count", "how"]
    assert list(inspect.signature(Model).parameters) == ["alpha", "solver"]
    assert list(Model().get_params()) == ["alpha", "solver"]


def test_wrong_arguments_are_still_errors():
    with pytest.raises(TypeError, match=r"both 'count' and its former name 'n'. Remove n="):
        search(0, n=1, count=2)
    with pytest.raises(TypeError, match="unexpected keyword argument 'm'"):
        search(0, m=1)
    with pytest.raises(TypeError, match=r"'alpa'\. Did you mean alpha\?"):
        Model(alpa=1.0)
    assert closest_name("lam", inspect.signature(Model).parameters) is None


def test_parameters_and_values_are_in_the_list():
    def function(a=0):
        return a

    assert renamed_value("a", 1, 2, **NEXT)(function)(True) is True  # True == 1 in Python
    assert DEPRECATIONS["function(a=1)"] == ("function(a=1)", "a=2", "0.1.0", "0.2.0")
