"""Platforms: byte order, 32 bits, no threads, and routines that other platforms do not have."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mercer
from mercer._core import (
    _without_gil,
    check_platform,
    has_threads,
    routine_without_gil,
    run_in_threads,
    thread_count,
)
from mercer._core._without_gil import _ARGUMENT_KINDS as KINDS
from mercer.gram._triangular_solve import multiply_triangular_rows, solve_triangular_rows

rng = np.random.default_rng(0)
X = rng.random((30, 3))
y = np.sin(X[:, 0])
MODELS = [
    mercer.KernelRidge(kernel="rbf"),
    mercer.KernelRidge(kernel="laplacian"),
    mercer.KernelPCA(2, kernel="rbf"),
    mercer.SVR(),
    mercer.OneClassSVM(),
    mercer.GaussianProcessRegressor(),
    mercer.KernelKMeans(2, random_state=0),
    mercer.KernelKNeighborsRegressor(),
    mercer.Nystroem(n_components=5, random_state=0),
    mercer.OnlineKernelRegressor(),
    mercer.MetricMDS(),
]


def test_big_endian_processors_are_refused(monkeypatch):
    monkeypatch.setattr(sys, "byteorder", "big")
    with pytest.raises(ImportError, match="big-endian byte order, such as s390x"):
        check_platform()


def test_32_bits_are_refused_except_in_a_browser(monkeypatch):
    monkeypatch.setattr(sys, "maxsize", 2**31 - 1)
    with pytest.raises(ImportError, match="32-bit builds of Python; install a 64-bit build"):
        check_platform()
    monkeypatch.setattr(sys, "platform", "emscripten")
    check_platform()


def test_the_import_checks_the_platform():
    code = "import sys; sys.byteorder = 'big'; import mercer"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stderr.splitlines()[-1].startswith("ImportError: mercer")


@pytest.mark.parametrize("model", MODELS, ids=str)
@pytest.mark.parametrize("dtype", [">f8", ">f4", ">i4"])
def test_big_endian_arrays(model, dtype):
    points = (X * 10).astype(dtype)
    native = points.astype(points.dtype.newbyteorder("="))
    a = model.fit(points, y.astype(">f8"))
    method = "predict" if hasattr(model, "predict") else "transform"
    found = getattr(a, method)(points)
    wanted = getattr(model.fit(native, y), method)(native)
    np.testing.assert_array_equal(found, wanted)
    assert found.dtype.isnative


def test_big_endian_files(tmp_path):
    path, copy = tmp_path / "big.npy", tmp_path / "native.npy"
    np.save(path, X.astype(">f8"))
    np.save(copy, X)
    results = [mercer.KernelPCA(2, kernel="rbf").fit(mercer.open_blocks(p)) for p in (path, copy)]
    np.testing.assert_array_equal(*(model.transform(X) for model in results))


def test_a_model_of_big_endian_arrays_has_the_same_file(tmp_path):
    paths = tmp_path / "a.safetensors", tmp_path / "b.safetensors"
    for path, points in zip(paths, (X, X.astype(">f8")), strict=True):
        model = mercer.KernelRidge(kernel="rbf").fit(points, y)
        mercer.save(model.expansion_, path)  # the model also contains the time of the fit
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_without_threads_the_caller_executes_all_jobs(monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("can't start new thread")

    assert has_threads()
    monkeypatch.setattr(sys, "platform", "emscripten")
    monkeypatch.setattr("threading.Thread.start", fail)
    assert not has_threads() and thread_count() == 1
    done = []
    run_in_threads(done.append, range(20), n_threads=4)
    assert done == list(range(20))


def test_blocks_are_read_without_threads(monkeypatch, tmp_path):
    np.save(tmp_path / "X.npy", X)
    blocks = mercer.open_blocks(tmp_path / "X.npy", rows=7)
    wanted = mercer.KernelPCA(2, kernel="linear").fit(blocks).transform(X)
    monkeypatch.setattr(sys, "platform", "emscripten")
    monkeypatch.setattr("threading.Thread.start", lambda thread: pytest.fail("a thread started"))
    found = mercer.KernelPCA(2, kernel="linear").fit(blocks).transform(X)
    np.testing.assert_array_equal(found, wanted)


def test_every_job_is_taken_once():
    counts = np.zeros(2000, dtype=int)

    def count(job):
        counts[job] += 1

    run_in_threads(count, range(2000), n_threads=8)
    assert (counts == 1).all()


@pytest.mark.parametrize("what", ["no ctypes", "no C interface", "no threads"])
def test_scipy_replaces_routines_that_do_not_exist(what, monkeypatch):
    rows = rng.random((4, 3))
    L = np.asfortranarray(np.tril(rng.random((3, 3))) + np.eye(3))
    wanted = rows @ np.linalg.inv(L).T
    with monkeypatch.context() as patch:
        if what == "no ctypes":
            patch.setattr(_without_gil, "ctypes", None)
        elif what == "no C interface":
            patch.setattr(_without_gil.ctypes, "pythonapi", object())
        else:
            patch.setattr(sys, "platform", "emscripten")
        routine_without_gil.cache_clear()
        assert routine_without_gil(_without_gil.cython_lapack, "dsyevr", KINDS["evr"]) is None
        B = rows.copy()
        solve_triangular_rows(L, B)
        np.testing.assert_allclose(B, wanted)
        multiply_triangular_rows(L, B)
        np.testing.assert_allclose(B, rows)
    routine_without_gil.cache_clear()
    assert routine_without_gil(_without_gil.cython_lapack, "dsyevr", KINDS["evr"]) is not None


def test_modules_import_without_ctypes():
    code = (
        "import sys\nimport mercer, scipy.linalg\nsys.modules['ctypes'] = None\n"
        "from mercer._core import _without_gil\nassert _without_gil.ctypes is None\n"
        "import numpy as np\nprint(_without_gil.eigh(np.eye(300))[0].sum())"
    )
    source = str(Path(mercer.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": source},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) == 300.0
