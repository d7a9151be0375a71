"""Without an optional package, Python raises an ImportError and the shell prints one line."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mercer

# All packages that mercer can use, but does not require.
OPTIONAL = (
    *("pyarrow", "pandas", "polars", "matplotlib", "panel", "bokeh", "tornado", "dask"),
    *("distributed", "zarr", "skops", "networkx", "xarray", "openpyxl"),
)
BLOCK = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {blocked!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Block())
"""
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(mercer.__file__).parents[1])}

# Expressions in Python, and the texts that their errors contain.
ENTRY_POINTS = {
    "mercer.plotting.spectrum(pca)": ["matplotlib", "pip install 'mercer[plot]'"],
    "mercer.plotting.maps({'a': X})": ["matplotlib", "pip install 'mercer[plot]'"],
    "mercer.compare(X, models={'a': pca}).plot()": ["matplotlib", "pip install 'mercer[plot]'"],
    "mercer.Graphs.from_graphml('g.graphml')": ["networkx", "pip install 'mercer[graphs]'"],
    "mercer.open_blocks('x.parquet')": ["pyarrow", "pip install 'mercer[cli]'"],
    "mercer.tables.read_table('x.parquet')": ["pyarrow", "pip install 'mercer[cli]'"],
    "mercer.tables.read_table('x.arrow')": ["pyarrow", "pip install 'mercer[cli]'"],
    "mercer.open_blocks('x.zarr')": ["zarr", "pip install zarr"],
    "mercer.explore(pca, X).show(open_browser=False)": ["tornado", "pip install 'mercer[explore]'"],
    "mercer.explore(pca, X).panel()": ["panel", "pip install 'mercer[explore]'"],
    "mercer.KernelPCA(2).set_output(transform='pandas').fit_transform(X)": ["pandas"],
}
# What does not need any of these packages.
INDEPENDENT = [
    "mercer.SVC().fit(X, X[:, 0] > 0).predict(X)",
    "mercer.save(pca, 'model.safetensors')",
    "mercer.load('model.safetensors').transform(X)",
    "mercer.tables.read_table('x.csv')",
    "mercer.explore(pca, X).save('page.html')",
    "mercer.explore(pca, X)._repr_mimebundle_()",
    "pca.report_._repr_html_()",
    "pca.plan(X)",
]


def run(code, folder, *args):
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, args)],
        cwd=folder,
        env=ENVIRONMENT,
        text=True,
        capture_output=True,
        check=False,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("missing")
    (folder / "x.parquet").write_bytes(b"PAR1....PAR1")
    (folder / "x.arrow").write_bytes(b"ARROW1..")
    (folder / "x.zarr").mkdir()
    (folder / "g.graphml").write_text("<graphml/>")
    rows = "\n".join(f"{i},{i * i % 7},{'ab'[i % 2]}" for i in range(20))
    (folder / "x.csv").write_text(f"a,b,y\n{rows}\n")
    return folder


def test_python_names_the_package_and_the_command(folder):
    code = BLOCK.format(blocked=OPTIONAL) + (
        "import numpy as np, mercer\n"
        "X = np.random.default_rng(0).normal(size=(20, 2))\n"
        "pca = mercer.KernelPCA(2).fit(X)\n"
        f"for text in {list(ENTRY_POINTS)!r}:\n"
        "    try:\n"
        "        eval(text)\n"
        "        print('no error')\n"
        "    except ImportError as error:\n"
        "        print(str(error).replace('\\n', ' '))\n"
        "    except Exception as error:\n"
        "        print(f'{type(error).__name__} {error}'.replace('\\n', ' '))\n"
        f"for text in {INDEPENDENT!r}:\n"
        "    eval(text)\n"
    )
    done = run(code, folder)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == len(ENTRY_POINTS)
    for (entry, texts), line in zip(ENTRY_POINTS.items(), lines, strict=True):
        assert all(text in line for text in texts), (entry, line)
        assert "Error " not in line, (entry, line)


SHELL = [
    (("pyarrow",), ("pca", "x.parquet"), "pip install 'mercer[cli]'"),
    (("matplotlib",), ("pca", "x.csv", "--ignore", "y", "-o", "out"), "mercer[cli]"),
    (("tornado", "panel"), ("explore", "x.csv", "--ignore", "y"), "pip install 'mercer[explore]'"),
    (("zarr",), ("pca", "x.zarr"), "zarr"),
    (("click", "rich"), ("--help",), "pip install 'mercer[cli]'"),
]


@pytest.mark.parametrize(("blocked", "args", "text"), SHELL, ids=lambda v: str(v)[:30])
def test_the_shell_prints_a_message_without_a_traceback(folder, blocked, args, text):
    code = BLOCK.format(blocked=blocked) + "from mercer.app.cli import main; main()\n"
    done = run(code, folder, *args)
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    assert text in done.stderr, done.stderr


def test_commands_without_optional_packages(folder):
    code = BLOCK.format(blocked=OPTIONAL) + "from mercer.app.cli import main; main()\n"
    done = run(code, folder, "fit", "svc", "x.csv", "--target", "y", "-o", "svc.safetensors")
    assert done.returncode == 0, done.stderr
    assert (folder / "svc.safetensors").exists()


def test_the_error_is_an_error_of_tables_too():
    from mercer.tables._table import MissingPackageError, TableError

    assert issubclass(MissingPackageError, TableError)
    assert issubclass(MissingPackageError, ImportError)
    assert np.isscalar(str(MissingPackageError("text")))
