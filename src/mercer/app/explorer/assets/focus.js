// Keeps the keyboard focus in the view. If an update removes, hides or disables the control that has the focus, the focus moves to the
// same control if it is shown again, to a control with the same name, or to the control that is now at its position.

const FOCUSABLE = "a[href], button, input, select, textarea, summary, [tabindex]";
const TRACKED_ATTRIBUTES = ["hidden", "disabled", "class", "open", "data-layout"]; // those that can make a control unusable

class FocusKeeper {
  constructor(view) {
    Object.assign(this, {view, root: view.root, last: null});
    this.observer = new MutationObserver(changes => this.check(changes));
    this.observer.observe(view.root, {childList: true, subtree: true, attributes: true, attributeFilter: TRACKED_ATTRIBUTES});
    view.root.addEventListener("focusin", event => this.remember(event.target));
    view.root.addEventListener("blur", event => {
      if (event.relatedTarget) this.last = null; // the focus moves to another control, for example when a dialog is closed
      else queueMicrotask(() => this.check(this.observer.takeRecords()));
    }, true);
  }

  isUsable(element) { return element.isConnected && !element.disabled && element.checkVisibility({visibilityProperty: true}); }

  /** Return the controls inside an element that the Tab key reaches. */
  controls(element) { return [...element.querySelectorAll(FOCUSABLE)].filter(one => one.tabIndex >= 0 && this.isUsable(one)); }

  /** Record the control with the focus, its name, and its position in each element that contains it. */
  remember(element) {
    const positions = [];
    for (let parent = element.parentElement; parent && parent !== this.root; parent = parent.parentElement) positions.push([parent, this.controls(parent).indexOf(element)]);
    this.last = {element, tag: element.tagName, name: controlName(element), positions};
  }

  /** After changes of the page, move the focus if its control has been lost. If the user has left the view, do nothing. */
  check(changes) {
    const {last} = this;
    if (!last) return;
    const {element} = last, root = this.root.getRootNode(), isInside = root.activeElement && this.root.contains(root.activeElement);
    if (isInside && (root.activeElement !== element || this.isUsable(element))) return;
    const isRemoved = changes.some(change => [...change.removedNodes].some(node => node.contains(element)));
    if (isRemoved || !this.isUsable(element)) this.replacement(last).focus({preventScroll: true});
    else this.last = null;
  }

  replacement({element, tag, name, positions}) {
    if (this.isUsable(element)) return element;
    const parents = positions.filter(([parent]) => parent.isConnected && parent.checkVisibility()), withoutNumbers = text => text.replace(/\d[\d,.]*/g, "#");
    for (const normalise of [text => text, withoutNumbers]) {
      for (const scope of [...parents.map(([parent]) => parent), this.root]) {
        const same = name && this.controls(scope).find(one => one.tagName === tag && normalise(controlName(one)) === normalise(name));
        if (same) return same;
      }
    }
    for (const [parent, index] of parents) {
      const near = this.controls(parent);
      if (near.length) return near[Math.max(0, Math.min(index, near.length - 1))];
    }
    return this.view.panes.find(pane => this.isUsable(pane.over))?.over || this.view.search;
  }
}

/** Return a text that identifies a control among others. */
function controlName(element) {
  return element.getAttribute("aria-label") || element.closest("label")?.textContent || element.id || element.textContent || element.title || "";
}
