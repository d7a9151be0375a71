// The Python code that computes the embeddings of the page.

class PythonPanel {
  constructor(view) {
    this.view = view;
    this.code = h("pre", {tabIndex: 0, "aria-label": "Python code"});
    this.details = h("details", {ontoggle: () => this.request()}, h("summary", {}, "Python"), h("p", {class: "soft"}, "This code computes the embeddings again."), this.code,
      h("button", {type: "button", onclick: () => this.copy()}, "Copy"));
    this.element = h("section", {class: "python", hidden: true}, this.details);
    view.on("code", ({text}) => { this.code.textContent = text; });
  }

  update(change) {
    if (change === "scene") {
      this.code.textContent = this.view.scene.code || "";
      this.element.hidden = !this.view.link && !this.view.scene.code;
    }
    if (["scene", "embeddings", "selection"].includes(change)) this.request();
  }

  /** Request the code for the present embeddings and selection, if it is visible. */
  request() {
    if (this.details.open && this.view.link) this.view.link.send({type: "code"});
  }

  async copy() {
    try {
      await navigator.clipboard.writeText(this.code.textContent);
      this.view.announce("The code was copied.");
    } catch { // the browser does not permit it; the user can copy the marked text
      getSelection().selectAllChildren(this.code);
      this.view.announce("The code is marked; press Ctrl+C to copy it.");
    }
  }
}
