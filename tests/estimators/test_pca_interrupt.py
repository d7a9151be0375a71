"""Ctrl-C during a fit, and the progress output of a fit."""

import itertools
import json
import re
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from mercer import KernelPCA

# Run in a separate process, so that a late interrupt does not hit other tests.
SCRIPT = """
import _thread, json, signal, sys, threading, time
import numpy as np
from sklearn.exceptions import NotFittedError
from threadpoolctl import threadpool_info, threadpool_limits
from mercer import KernelPCA

# a shell that runs a job in the background has its children ignore Ctrl-C
signal.signal(signal.SIGINT, signal.default_int_handler)
threadpool_limits(2, user_api="blas")  # something to be given back
n, after, options = int(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])
X = np.random.default_rng(0).normal(size=(n, 6))


def blas_threads():
    return sorted(p["num_threads"] for p in threadpool_info() if p["user_api"] == "blas")


class Listener:
    # standard output, which presses Ctrl-C a moment after the first message that matters
    captured = []
    pressed = None

    def write(self, text):
        self.captured.append(text)
        if after in text and self.pressed is None:
            self.pressed = 0.0
            threading.Timer(0.03, self.press).start()

    def press(self):
        self.pressed = time.perf_counter()
        _thread.interrupt_main()

    def flush(self):
        pass


# the compiled parts are compiled, and the threads that wait for work are there
KernelPCA(2, kernel="rbf", eigen_solver="krylov", storage="tiled").fit(X[:2000])
threads, blas = threading.active_count(), blas_threads()
model = KernelPCA(4, kernel="rbf", verbose=1, random_state=0, **options)
said, sys.stdout = sys.stdout, Listener()
try:
    model.fit(X)
    outcome = "finished"
except KeyboardInterrupt:
    outcome = "interrupted"
seconds = time.perf_counter() - sys.stdout.pressed
captured, sys.stdout = sys.stdout.captured, said
time.sleep(0.05)
left = threading.active_count() - threads
restored = blas_threads() == blas
try:
    model.transform(X[:3])
    fitted = True
except NotFittedError:
    fitted = False
learned = [name for name in vars(model) if name.endswith("_") and name != "n_features_in_"]
model.set_params(verbose=0).fit(X[:300])
again = KernelPCA(4, kernel="rbf", random_state=0, **options).fit(X[:300])
print(json.dumps({
    "outcome": outcome,
    "seconds": seconds,
    "threads left": left,
    "blas restored": restored,
    "fitted": fitted,
    "learned": learned,
    "said": len(captured),
    "same again": bool(np.array_equal(model.transform(X[:9]), again.transform(X[:9]))),
}))
"""

CASES = {
    "krylov, tiled": (8000, "pass 1", {"eigen_solver": "krylov", "storage": "tiled"}),
    "krylov, dense": (4000, "components of", {"eigen_solver": "krylov", "storage": "dense"}),
    "nystroem": (
        60_000,
        " of 60000 points",
        {"eigen_solver": "nystroem", "rank": 300, "landmarks": "uniform"},
    ),
}


# The processes need most of the time to import the library.
@pytest.mark.parametrize(
    "case", ["krylov, tiled", "nystroem", pytest.param("krylov, dense", marks=pytest.mark.long)]
)
def test_an_interrupted_fit_leaves_nothing_behind(case):
    n, after, options = CASES[case]
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(SCRIPT), str(n), after, json.dumps(options)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["outcome"] == "interrupted"
    # stopped at the next tile; the remaining computation takes longer
    assert result["seconds"] < 3.0
    assert result["threads left"] == 0
    assert result["blas restored"]
    assert not result["fitted"] and result["learned"] == []
    assert result["same again"]


@pytest.mark.parametrize("solver", ["krylov", "nystroem", "features", "dense", "power", "arpack"])
def test_an_exception_inside_a_fit_leaves_nothing_behind(solver, monkeypatch):
    """The same with an exception raised by the first message of a second fit."""
    A = np.random.default_rng(1).normal(size=(300, 4))
    options = {"rank": 50} if solver in ("nystroem", "features") else {}
    model = KernelPCA(2, kernel="rbf", eigen_solver=solver, verbose=1, **options)
    monkeypatch.setattr(KernelPCA, "_log_progress", lambda self, text: None)
    before = model.fit(A).transform(A)

    def interrupt(self, text):
        raise KeyboardInterrupt

    monkeypatch.setattr(KernelPCA, "_log_progress", interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(A[:200])
    assert not any(
        hasattr(model, name) for name in ("eigenvalues_", "components_", "offset_", "kernel_")
    )
    monkeypatch.setattr(KernelPCA, "_log_progress", lambda self, text: None)
    assert np.array_equal(model.fit(A).transform(A), before)


def test_an_interrupted_inverse_leaves_nothing_behind(monkeypatch):
    A = np.random.default_rng(1).normal(size=(100, 4))
    model = KernelPCA(2, kernel="rbf", fit_inverse_transform=True)
    import mercer.models.kpca._components as inverse

    class Interrupted:
        def factorize(self, *args, **options):
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(inverse, "Cholesky", Interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.fit(A)
    with pytest.raises(NotFittedError):
        model.transform(A)
    with pytest.raises(NotImplementedError):
        model.fit(sp.csr_array(A))
    with pytest.raises(NotFittedError):
        model.transform(A)
    assert model.fit(A).inverse_transform(model.transform(A)).shape == (100, 4)


def test_an_interrupted_block_leaves_the_stream_as_it_was(monkeypatch):
    A = np.random.default_rng(1).normal(size=(600, 4))
    model = KernelPCA(
        2, kernel="rbf", eigen_solver="nystroem", landmarks=A[:50], gamma=0.2, verbose=1
    )
    monkeypatch.setattr(KernelPCA, "_log_progress", lambda self, text: None)
    before = model.partial_fit(A[:300]).transform(A)
    import mercer.models.kpca._component_search as streams

    def interrupt(*args, **options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(streams, "eigenpairs_of_moments", interrupt)
        with pytest.raises(KeyboardInterrupt):
            model.partial_fit(A[300:])
    assert np.array_equal(model.transform(A), before)
    whole = KernelPCA(2, kernel="rbf", eigen_solver="nystroem", landmarks=A[:50], gamma=0.2).fit(A)
    np.testing.assert_allclose(
        model.partial_fit(A[300:]).eigenvalues_, whole.eigenvalues_, rtol=1e-12
    )


# ---------------------------------------------------------------------- progress output


def test_passes_are_reported_with_falling_residuals(capsys):
    A = np.random.default_rng(0).normal(size=(1200, 6))
    model = KernelPCA(
        5, kernel="rbf", eigen_solver="krylov", storage="tiled", verbose=1, tol=1e-10
    ).fit(A)
    out = capsys.readouterr().out
    assert all(line.startswith("[KernelPCA] ") for line in out.splitlines())
    assert re.search(r"5 components of <TiledGram 1200x1200, float64, RBF\(.*> by BlockKrylov", out)
    found = re.findall(r"pass (\d+): (\d) of 5 components converged, .* residual (\S+)", out)
    passes, done = [int(p) for p, _, _ in found], [int(d) for _, d, _ in found]
    residuals = [float(r) for _, _, r in found]
    assert passes == sorted(set(passes)) and passes[0] == 1 and len(found) >= 3
    assert done == sorted(done) and done[-1] == 5
    assert all(b < a for a, b in itertools.pairwise(residuals))
    assert residuals[-1] <= 1e-10 < residuals[0]
    # one more pass if the certificate needed one
    assert model.report_.n_iter - passes[-1] in (0, 1)
    assert "largest residual" in out.splitlines()[-1]


def test_a_fraction_of_the_variance_is_reported(capsys):
    A = np.random.default_rng(0).normal(size=(300, 12))
    KernelPCA(0.9, kernel="rbf", gamma=0.1, eigen_solver="krylov", verbose=1).fit(A)
    out = capsys.readouterr().out
    shares = [float(s) for s in re.findall(r"components explain ([\d.]+)%", out)]
    counts = [int(k) for k in re.findall(r"(\d+) components explain", out)]
    assert len(shares) >= 2 and shares == sorted(shares) and shares[-1] >= 90.0 > shares[-2]
    assert counts == [16 * 2**i for i in range(len(counts))]


def test_landmarks_and_features_are_reported(capsys):
    A = np.random.default_rng(0).normal(size=(60_000, 2))
    KernelPCA(2, kernel="rbf", eigen_solver="nystroem", landmarks=A[:100], verbose=1, n_jobs=1).fit(
        A
    )
    out = capsys.readouterr().out
    assert "[KernelPCA] features by <NystroemMap on " in out
    seen = [int(k) for k in re.findall(r"(\d+) of 60000 points", out)]
    assert seen and seen == sorted(seen) and seen[-1] < 60_000
    KernelPCA(2, kernel="rbf", eigen_solver="features", rank=20, verbose=1).fit(A[:500])
    assert "features by <FourierMap to 20 features" in capsys.readouterr().out


@pytest.mark.parametrize("solver", ["auto", "dense", "krylov", "power", "nystroem", "features"])
def test_silence_is_the_default(solver, capsys):
    options = {"rank": 40} if solver in ("nystroem", "features") else {}
    A = np.random.default_rng(0).normal(size=(200, 3))
    model = KernelPCA(1, kernel="rbf", eigen_solver=solver, **options).fit(A)
    model.transform(A)
    if solver in ("nystroem", "features", "auto"):
        model.partial_fit(A)
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err == ""


def test_power_tells_each_component(capsys):
    A = np.random.default_rng(0).normal(size=(200, 3)) * [3.0, 1.5, 0.5]
    KernelPCA(3, eigen_solver="power", verbose=1).fit(A)
    out = capsys.readouterr().out
    values = [float(v) for v in re.findall(r"component \d: (\S+) after \d+ products", out)]
    assert len(values) == 3 and values == sorted(values, reverse=True)
