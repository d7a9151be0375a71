// Tabs: several panels, of which one is visible.

class Tabs {
  /** `panels` maps the label of each tab to an array of elements. */
  constructor(view, label, panels) {
    this.buttons = new Map();
    this.panels = new Map();
    this.pinnedName = null; // the panel that is shown elsewhere
    this.list = h("div", {class: "tabs", role: "tablist", "aria-label": label, onkeydown: event => this.onKeyDown(event)});
    this.element = h("div", {class: "tabbed"}, this.list);
    for (const [name, elements] of Object.entries(panels)) {
      const id = view.id(`panel-${name.toLowerCase()}`);
      const button = h("button", {type: "button", role: "tab", id: `${id}-tab`, "aria-controls": id, onclick: () => this.show(name)}, name);
      const panel = h("div", {class: "panel", role: "tabpanel", id, "aria-labelledby": `${id}-tab`, tabIndex: 0}, ...elements);
      this.buttons.set(name, button);
      this.panels.set(name, panel);
      this.list.append(button);
      this.element.append(panel);
    }
    this.show(Object.keys(panels)[0]);
    // The tabs may need several lines; a bar that sticks below them must know their height.
    new ResizeObserver(() => this.element.style.setProperty("--tabs", `${this.list.offsetHeight}px`)).observe(this.list);
  }

  /** Show a panel; the focus does not move. A pinned panel is visible anyway. */
  show(name) {
    if (name === this.pinnedName) return;
    this.current = name;
    for (const [each, button] of this.buttons) {
      const isShown = each === name;
      button.setAttribute("aria-selected", String(isShown));
      button.tabIndex = isShown ? 0 : -1;
      this.panels.get(each).hidden = !isShown && each !== this.pinnedName;
    }
  }

  has(name) { return this.panels.has(name); }

  /** Move a panel to another element, where it is always visible, or back to the tabs if `host` is null. */
  pin(name, host) {
    const panel = this.panels.get(name);
    if (!panel) return;
    this.pinnedName = host ? name : null;
    (host || this.element).append(panel);
    this.setAvailable(name, !host);
    this.show(this.current);
  }

  /** Show a number next to the name of a tab, in a short form such as 1.2K; 0 is not shown. */
  setCount(name, count) {
    const badge = count ? h("small", {}, count.toLocaleString("en", {notation: "compact"})) : null;
    this.buttons.get(name).replaceChildren(...[name, badge && " ", badge].filter(Boolean));
  }

  /** Show or hide a tab. */
  setAvailable(name, isAvailable) {
    this.buttons.get(name).hidden = !isAvailable;
    if (!isAvailable && this.current === name) this.show([...this.buttons].find(([, button]) => !button.hidden)[0]);
  }

  onKeyDown(event) {
    const names = [...this.buttons].filter(([, button]) => !button.hidden).map(([name]) => name), at = names.indexOf(this.current);
    const next = {ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: names.length - 1}[event.key];
    if (next === undefined) return;
    event.preventDefault();
    this.show(names[(next + names.length) % names.length]);
    this.buttons.get(this.current).focus();
  }
}
