// The layout follows the width of the root element, which may be a whole page, a cell of a notebook or a phone.

const LAYOUTS = [["phone", 560], ["narrow", 900], ["normal", 1700], ["wide", Infinity]]; // name, and width in pixels below which it is used
const PINNED = "Columns"; // in the wide layout, this panel is always visible

class Layout {
  constructor(view) {
    Object.assign(this, {view, name: "", shown: 0});
    this.pinned = h("aside", {class: "pinned", "aria-label": PINNED, hidden: true});
    this.switch = h("div", {class: "switch tools", role: "group", "aria-label": "Embedding"});
    new ResizeObserver(() => this.measure()).observe(view.root);
  }

  measure() {
    const width = this.view.root.clientWidth, name = LAYOUTS.find(([, limit]) => width < limit)[0];
    if (!width || name === this.name) return;
    this.name = name;
    this.view.root.dataset.layout = name;
    this.pinned.hidden = name !== "wide" || !this.view.tabs.has(PINNED);
    this.view.tabs.pin(PINNED, this.pinned.hidden ? null : this.pinned);
    this.showPane(this.shown);
  }

  update(change) {
    if (change !== "embeddings") return;
    const {panes} = this.view;
    this.switch.replaceChildren(...panes.map((pane, k) => h("button", {type: "button", onclick: () => this.showPane(k)}, pane.message.title)));
    this.switch.hidden = panes.length < 2;
    this.showPane(Math.min(this.shown, panes.length - 1));
  }

  /** In the phone layout, show only one embedding. */
  showPane(index) {
    const isPhone = this.name === "phone";
    this.shown = index;
    this.view.panes.forEach((pane, k) => { pane.element.hidden = isPhone && k !== index; });
    [...this.switch.children].forEach((button, k) => button.setAttribute("aria-pressed", String(k === index)));
  }
}

/** Return the theme of the page that contains an element: of JupyterLab, of VS Code, or what the browser prefers. */
function pageTheme() {
  const {dataset = {}, classList} = document.body || {};
  if (dataset.jpThemeLight) return dataset.jpThemeLight === "false" ? "dark" : "light";
  if (classList && /vscode-(light|dark|high-contrast)/.test(document.body.className)) return classList.contains("vscode-light") || classList.contains("vscode-high-contrast-light") ? "light" : "dark";
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}
