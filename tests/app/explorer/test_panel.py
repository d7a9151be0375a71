"""The Panel component of an explorer, in Python, without a browser."""

import base64
import json
import warnings

import numpy as np
import pytest
from wire import unpack

from mercer import KernelPCA
from mercer.datasets import circles

with warnings.catch_warnings(action="ignore"):  # of panel's dependencies
    pytest.importorskip("panel")

X, y = circles(60, random_state=0)


def encoded(data):
    return base64.b64encode(data).decode()


@pytest.fixture
def explorer():
    return KernelPCA(2, kernel="rbf", gamma=2.0).fit(X).explore(color=y)


def test_the_component_changes_the_explorer(explorer, tmp_path):
    component = explorer.panel("500px")
    assert explorer.panel() is component and component.css_height == "500px"
    assert explorer.selection.tolist() == [] and explorer.selections == {}
    rows = encoded(np.array([3, 5], dtype="<u4").tobytes())
    component._handle_msg({"type": "select", "rows": rows})
    assert explorer.selection.tolist() == [3, 5]
    mask = np.packbits(np.arange(60) < 4, bitorder="little").tobytes()
    component._handle_msg({"type": "filter", "mask": encoded(mask)})
    assert explorer.filtered.tolist() == [0, 1, 2, 3]
    path = tmp_path / "session.json"
    path.write_text(json.dumps({"mercer": "explorer session", "version": 1}))
    sent = []
    component.controller.connect(sent.append)
    assert explorer.load_session(path) is explorer
    message = unpack(sent[-1])
    assert message["kind"] == "session" and json.loads(message["text"])["version"] == 1


def test_the_last_page_that_is_closed_ends_the_computations(explorer, monkeypatch):
    component, closed = explorer.panel(), []
    monkeypatch.setattr(component.controller, "close", lambda: closed.append(True))
    component._models = {"page": None}
    component._cleanup()
    assert closed == []
    component._models = {}
    component._cleanup()
    assert closed == [True]


def test_the_output_of_a_cell(explorer, monkeypatch):
    """The scripts of Panel are loaded with each display; IPython is not needed here."""
    component, loaded = explorer.panel(), []
    monkeypatch.setattr("panel.extension", lambda **options: loaded.append(options))
    bundle = lambda include, exclude: {"text/html": "<div>"}  # noqa: E731
    monkeypatch.setattr(type(component), "_repr_mimebundle_", staticmethod(bundle))
    assert explorer._repr_mimebundle_() == {"text/html": "<div>"}
    assert loaded == [{"inline": True}]
