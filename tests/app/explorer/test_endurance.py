"""Typing while fits run, and what remains in memory after many fits and many pages."""

import gc
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from wire import Talk

pytest.importorskip("tornado")
from mercer import KernelPCA, explore
from mercer.app.explorer import serve

KERNELS = [
    "1.0 * RBF(2.0) + Matern(1.5, nu=1.5)",
    "RationalQuadratic(1.0, 2.0) * Linear() + 0.5",
    "Polynomial(degree=3) + 2 * Laplacian(0.7)",
]


@pytest.fixture(scope="module")
def scene():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 4)) * 0.4 + 2.0 * np.eye(4)[np.arange(600) % 3]
    return explore(KernelPCA(3, kernel="RBF(1.5)").fit(X), X, title="blobs").scene


@pytest.mark.parametrize(
    ("kernel", "delay"),
    [
        (KERNELS[0], 80),
        *[
            pytest.param(kernel, delay, marks=pytest.mark.long)
            for kernel in KERNELS
            for delay in (80, 200, 400)
        ],
    ],
)
def test_a_kernel_typed_while_fits_run_keeps_each_character(opened, scene, kernel, delay):
    serving = serve(lambda: scene).start()
    try:
        page = opened.go(serving.url)
        page.page.get_by_role("tab", name="Model").click()
        page(
            """() => { const receive = ex.receive.bind(ex); window.replies = 0; window.lost = [];
              ex.receive = message => {
                const before = ex.form.kernel.value;
                receive(message);
                if (message.kind === "embeddings" || message.kind === "state") window.replies++;
                if (ex.form.kernel.value !== before) window.lost.push([before, message.kind]);
              }; }"""
        )
        box = page.page.get_by_label("kernel", exact=True)
        for _ in range(5):  # until fits ended and errors were shown while typing
            box.fill("")
            for k, character in enumerate(kernel):
                page.page.keyboard.type(character)
                page.page.wait_for_timeout(400 if k % 6 == 5 else delay)  # a pause starts a fit
                assert box.input_value() == kernel[: k + 1]
            if page("window.replies") > 3:
                break
        assert page("window.replies") > 3
        page.until("!ex.form.error.textContent && ex.form.status.textContent === ''")
        assert box.input_value() == kernel
        assert page("window.lost") == []
    finally:
        serving.stop()


FIT = "document.getElementById('explorer').explorer.requestFit({components: 4}, 0)"

# --- leaks ----------------------------------------------------------------------------------------


def resident_mb():
    """Return the resident memory of this process in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6


def own_threads():
    return [one for one in threading.enumerate() if one.name.startswith(("mercer-", "Thread-"))]


def refit(talk, count):
    """Fit `count` times, and compute a column after each fit."""
    for k in range(count):
        talk.ask(type="fit", kernel=f"RBF({1.0 + 0.01 * (k % 40)})", token=k)
        talk.next("embeddings")
        talk.ask(type="column", name="reconstruction error")
        talk.next("column")
    while talk.controller.is_busy:
        time.sleep(0.01)
    talk.said.clear()
    gc.collect()


@pytest.mark.parametrize("count", [20, pytest.param(200, marks=pytest.mark.long)])
def test_fits_leave_nothing_behind(scene, count):
    talk = Talk(scene)
    refit(talk, 10)
    memory, threads = resident_mb(), len(own_threads())
    kept = sum(isinstance(one, KernelPCA) for one in gc.get_objects())
    refit(talk, count)
    grown = resident_mb() - memory
    print(f"{count} fits: {grown:+.1f} MB")
    talk.controller.close()
    assert sum(isinstance(one, KernelPCA) for one in gc.get_objects()) <= kept
    assert len(own_threads()) <= threads
    assert grown < 40.0  # one model of 600 points needs 3 MB


@pytest.mark.parametrize("count", [4, pytest.param(100, marks=pytest.mark.long)])
def test_closed_pages_leave_nothing_behind(chromium, scene, count):
    serving = serve(lambda: scene).start()
    try:
        memory = None
        for k in range(count):
            page = chromium.new_page()
            page.goto(serving.url)
            page.wait_for_selector("[data-drawn]")
            page.evaluate(
                "document.getElementById('explorer').explorer.requestFit({components: 4}, 0)"
            )
            page.wait_for_timeout(200)
            page.close()
            memory = resident_mb() if k == 2 else memory
        deadline = time.monotonic() + 60
        while serving._application.controllers:
            assert time.monotonic() < deadline
            time.sleep(0.05)
            gc.collect()
        print(f"{count} pages: {resident_mb() - memory:+.1f} MB")
        assert serving._application._kept == {}
        names = [one.name for one in own_threads() if one.name.startswith("mercer-")]
        assert not set(names) & {"mercer-fits", "mercer-columns", "mercer-queries", "mercer-files"}
        assert resident_mb() - memory < 60.0
    finally:
        serving.stop()
