"""The explorer in JupyterLab, in the light and the dark theme.

The environment variable MERCER_JUPYTERLAB is the path of `jupyter-lab`, in an environment that also
contains the dependencies of mercer and of its extra `explore`.
"""

import json
import os
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

import mercer

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif("MERCER_JUPYTERLAB" not in os.environ, reason="no path of jupyter-lab"),
]

CELLS = [
    """from mercer import KernelPCA
from mercer.datasets import circles
X, y = circles(200, random_state=0)
explorer = KernelPCA(3, kernel="rbf", gamma=2.0).fit(X).explore(color=y)
explorer""",
    "print(explorer.selection, explorer.scene.embeddings[0].model.kernel_)",
]


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """A JupyterLab server without the settings of the user; yields its address and its folder."""
    folder = tmp_path_factory.mktemp("lab")
    cells = [
        {
            "cell_type": "code",
            "id": f"cell{k}",
            "execution_count": None,
            "metadata": {},
            "outputs": [],
            "source": source,
        }
        for k, source in enumerate(CELLS)
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = {
        "cells": cells,
        "metadata": {"kernelspec": kernel},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    for theme in ("light", "dark"):
        (folder / f"{theme}.ipynb").write_text(json.dumps(notebook))
    names = ["JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"]
    names += ["JUPYTERLAB_SETTINGS_DIR", "JUPYTERLAB_WORKSPACES_DIR"]
    environment = os.environ | {name: str(folder / name) for name in names}
    environment["PYTHONPATH"] = str(Path(mercer.__file__).parents[1])
    options = ["--no-browser", "--allow-root", "--port=0", "--IdentityProvider.token=t"]
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(
            [os.environ["MERCER_JUPYTERLAB"], *options, f"--ServerApp.root_dir={folder}"],
            env=environment,
            stdout=log,
            stderr=log,
        )
    try:
        yield address_of(folder / "JUPYTER_RUNTIME_DIR", server), folder
    finally:
        server.terminate()
        server.wait()


def address_of(folder, server):
    """Return the address of a server, when it answers."""
    deadline = time.monotonic() + 60
    while True:
        assert time.monotonic() < deadline and server.poll() is None
        for path in folder.glob("jpserver-*.json"):
            try:
                address = json.loads(path.read_text())["url"]
                urllib.request.urlopen(f"{address}api?token=t", timeout=10).close()
                return address
            except (ValueError, urllib.error.URLError):
                break
        time.sleep(0.1)


def run_cell(view, k):
    """Run a cell; JupyterLab ignores the keys if its kernel is not connected yet."""
    cell = view.locator(".jp-Notebook .jp-CodeCell").nth(k)
    for _ in range(30):
        cell.locator(".cm-content").first.click()
        view.keyboard.press("Shift+Enter")
        for _ in range(20):
            if cell.locator(".jp-InputPrompt").first.inner_text().strip(" []:"):
                return  # it is running, [*]:, or has run, [1]:
            view.wait_for_timeout(100)
    raise AssertionError(f"cell {k} does not run")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_explorer_in_jupyterlab(lab, opened, theme):
    address, folder = lab
    settings = folder / "JUPYTERLAB_SETTINGS_DIR" / "@jupyterlab" / "apputils-extension"
    settings.mkdir(parents=True, exist_ok=True)
    value = {"theme": f"JupyterLab {theme.title()}"}
    (settings / "themes.jupyterlab-settings").write_text(json.dumps(value))
    view = opened.page
    view.goto(f"{address}lab/tree/{theme}.ipynb?token=t&reset")
    view.wait_for_selector('.jp-Notebook-ExecutionIndicator[data-status="idle"]')
    run_cell(view, 0)
    opened.until(f"() => {{ ({opened.find})(); return !!window.ex?.root.dataset.drawn; }}")
    assert opened("ex.theme") == theme and opened("ex.n") == 200
    opened("ex.setSelection(ex.combineSelection(i => i < 3, 'set'), 'three')")
    x, y, width, height = opened(
        "(({x, y, width, height}) => [x, y, width, height])"
        "(ex.panes[0].over.getBoundingClientRect())"
    )
    view.mouse.click(x + width / 2, y + height / 2)
    opened.until("ex.point.card.querySelector('dl') !== null")
    opened("(ex.tabs.show('Model'), ex.form.kernel.select())")
    view.keyboard.type("RBF(length_scale=1.0)", delay=80)
    opened.until("ex.form.message.kernel === 'RBF(length_scale=1.0)'")
    assert opened("ex.form.kernel.value") == "RBF(length_scale=1.0)"
    run_cell(view, 1)
    printed = view.locator(".jp-OutputArea-output pre")
    printed.get_by_text("[0 1 2] RBF(length_scale=1.0)").wait_for()
