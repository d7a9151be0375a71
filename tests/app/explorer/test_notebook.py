"""The explorer in a notebook: a Jupyter kernel, and a page that simulates the notebook."""

import base64
import json
import queue
import time

import pytest

pytestmark = pytest.mark.long

CODE = """
from mercer import KernelPCA
from mercer.datasets import circles
X, y = circles(60, random_state=0)
explorer = KernelPCA(2, kernel="rbf", gamma=2.0).fit(X).explore(color=y)
explorer
"""
FRONT = """
const comms = {}, targets = {};
class Comm {
  constructor(id) { this.comm_id = id; comms[id] = this; }
  on_msg(handler) { this.handler = handler; }
  send(data) { toKernel(JSON.stringify({kind: "comm_msg", comm_id: this.comm_id, data})); }
}
window.comm_manager = {
  register_target(name, opened) { targets[name] = opened; },
  new_comm(target_name, data, callbacks, metadata, id) {
    toKernel(JSON.stringify({kind: "comm_open", comm_id: id, target_name, data}));
    return new Comm(id);
  },
};
const bytes = text => new DataView(Uint8Array.from(atob(text), c => c.charCodeAt(0)).buffer);
window.fromKernel = (kind, {comm_id, target_name, data}, metadata, buffers) => {
  if (kind === "comm_open") targets[target_name]?.(new Comm(comm_id));
  else comms[comm_id]?.handler?.({content: {data, comm_id}, metadata, buffers: buffers.map(bytes)});
};
"""
PLACE = """html => {
  const place = document.createElement("div");
  place.innerHTML = html;
  document.body.append(place);
  for (const old of [...place.querySelectorAll("script")]) {
    const fresh = document.createElement("script");
    fresh.textContent = old.textContent;
    old.replaceWith(fresh);
  }
}"""


class Notebook:
    """A page, a Jupyter kernel, and the messages between them."""

    def __init__(self, page, client):
        self.page, self.client, self.questions = page, client, []
        page.expose_function("toKernel", lambda text: self.questions.append(json.loads(text)))

    def run(self, code):
        """Run code, and return its displayed and printed output."""
        self.client.execute(code)
        shown, said = [], ""
        while True:
            message = self.client.get_iopub_msg(timeout=60)
            kind, content = message["header"]["msg_type"], message["content"]
            assert kind != "error", content
            if kind in ("display_data", "execute_result"):
                shown.append(content["data"])
            said += content["text"] if kind == "stream" else ""
            asked = message["parent_header"].get("msg_type") == "execute_request"
            if kind == "status" and content["execution_state"] == "idle" and asked:
                return shown, said

    def until(self, condition):
        """Transport messages in both directions until a condition is true on the page."""
        deadline = time.monotonic() + 30
        while not self.page.evaluate(condition):
            assert time.monotonic() < deadline, condition
            while self.questions:
                content = self.questions.pop(0)
                message = self.client.session.msg(content.pop("kind"), content)
                self.client.session.send(self.client.shell_channel.socket, message)
            try:
                message = self.client.get_iopub_msg(timeout=0.05)
            except queue.Empty:
                self.page.wait_for_timeout(10)
                continue
            kind = message["header"]["msg_type"]
            if kind in ("comm_open", "comm_msg"):
                buffers = [base64.b64encode(bytes(one)).decode() for one in message["buffers"]]
                given = [kind, message["content"], message["metadata"], buffers]
                self.page.evaluate("given => fromKernel(...given)", given)


@pytest.fixture
def notebook(opened):
    pytest.importorskip("ipykernel")
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel(kernel_name="python3")
    opened.page.set_content("<!doctype html><body></body>")
    opened.page.add_script_tag(content=FRONT)
    yield Notebook(opened.page, client)
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def test_an_explorer_in_a_notebook(notebook, opened):
    shown, _ = notebook.run(CODE)
    assert shown[-1]["text/plain"] == "<Explorer: 60 points, kernel PCA and the data>"
    for output in shown:
        if "application/javascript" in output:
            opened.page.add_script_tag(content=output["application/javascript"])
    opened.page.evaluate(PLACE, shown[-1]["text/html"])
    notebook.until(f"() => {{ ({opened.find})(); return window.ex !== null; }}")
    assert all(url.startswith("blob:") for url in opened.asked)
    opened("ex.setSelection(ex.combineSelection(i => i < 3, 'set'), 'three')")
    opened("ex.point.request(ex.panes[0], 0.1, 0.1)")
    notebook.until("ex.point.card.querySelector('dl') !== null")
    opened("ex.requestFit({kernel: 'RBF(1.0)'}, 0)")
    notebook.until("ex.form.message.kernel === 'RBF(length_scale=1.0)'")
    _, said = notebook.run("print(explorer.selection, explorer.scene.embeddings[0].model.kernel_)")
    assert said == "[0 1 2] RBF(length_scale=1.0)\n"
