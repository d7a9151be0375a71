// A menu: a button that shows a list of actions.

class Menu {
  /** `items` are elements; a click on a button among them closes the menu. `onOpen` is called before it is shown. */
  constructor(label, title, items, onOpen = () => {}) {
    this.list = h("div", {class: "menu-items", hidden: true, onclick: event => { if (event.target.tagName === "BUTTON") this.close(true); }}, ...items);
    this.button = h("button", {type: "button", title, "aria-label": title, "aria-expanded": "false", onclick: () => {
      if (!this.list.hidden) return this.close();
      onOpen();
      this.list.hidden = false;
      this.button.setAttribute("aria-expanded", "true");
      this.list.querySelector("button")?.focus();
    }}, label);
    this.element = h("div", {class: "menu", onkeydown: event => this.onKeyDown(event)}, this.button, this.list);
    this.element.addEventListener("focusout", event => { if (!this.element.contains(event.relatedTarget)) this.close(); });
  }

  close(returnFocus = false) {
    this.list.hidden = true;
    this.button.setAttribute("aria-expanded", "false");
    if (returnFocus) this.button.focus();
  }

  onKeyDown(event) {
    const buttons = [...this.list.querySelectorAll("button:not([hidden], :disabled)")], step = {ArrowDown: 1, ArrowUp: -1}[event.key];
    if (event.key === "Escape" && !this.list.hidden) this.close(true);
    else if (step && !this.list.hidden) buttons[(buttons.indexOf(event.target) + step + buttons.length) % buttons.length].focus();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}
