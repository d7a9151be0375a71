"""Submodules of the library are imported when they are first used."""

import ast
import importlib
import pickle
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

import mercer
from mercer._core import optional_type

PACKAGE = Path(mercer.__file__).parent
STUBS = sorted(PACKAGE.rglob("__init__.pyi"))
NAMES = [".".join(stub.relative_to(PACKAGE.parent).parent.parts) for stub in STUBS]


def test_importing_mercer_imports_no_other_package():
    code = "import mercer, sys; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"numba", "numpy", "pandas", "scipy", "sklearn"} & set(done.stdout.split())


def test_a_fit_imports_only_what_it_needs():
    code = "from mercer import SVC; import sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert (
        not {
            "numba",
            "matplotlib",
            "scipy.signal",
            "mercer.models.gp",
            "mercer.models.mean_embedding",
        }
        & loaded
    )
    rooms = ("cluster", "feature_extraction", "gaussian_process", "metrics", "pipeline")
    assert not {f"sklearn.{room}" for room in rooms} & loaded


def test_optional_type_of_a_module_not_imported():
    assert not isinstance(1, optional_type("a_module_that_is_not_there", "Number"))
    number = optional_type("fractions", "Fraction")
    assert isinstance(Fraction(1, 2), number)
    assert not isinstance(0.5, number)


@pytest.mark.parametrize("name", NAMES)
def test_the_stub_is_the_package(name):
    package = importlib.import_module(name)
    tree = ast.parse(Path(package.__file__).with_suffix(".pyi").read_text("utf-8"))
    listed = next(ast.literal_eval(n.value) for n in tree.body if isinstance(n, ast.Assign))
    assert sorted(package.__all__) == sorted(listed)
    assert set(listed) <= set(dir(package))
    assert all(hasattr(package, part) for part in listed)


def test_every_folder_of_solvers_is_in_the_stub():
    parts = [p for p in (PACKAGE / "solvers").iterdir() if (p / "__init__.py").exists()]
    assert parts
    for part in parts:
        folder = importlib.import_module(f"mercer.solvers.{part.name}")
        assert set(folder.__all__) <= set(mercer.solvers.__all__)


def test_what_is_not_there():
    with pytest.raises(AttributeError, match="module 'mercer' has no attribute 'SVM'"):
        mercer.SVM  # noqa: B018
    with pytest.raises(ImportError, match="SVM"):
        from mercer import SVM  # noqa: F401


def test_pickles():
    model = pickle.loads(pickle.dumps(mercer.SVC(C=3.0)))
    assert type(model) is mercer.SVC
    assert model.C == 3.0
