// Undo and redo. Each part of the view registers the values that it owns; a snapshot contains all of them.

const MAX_SNAPSHOTS = 100;
const MERGE_MS = 1500; // actions of one group, such as the steps of dragging a slider, are one entry if at most this long apart

class History {
  /** `onChange` is called when the possibility of undo or redo may have changed. */
  constructor(onChange = () => {}) {
    Object.assign(this, {values: new Map(), past: [], future: [], current: null, onChange, restoring: false});
  }

  /**
   * Register a value: get() returns it and set(value) shows it. A value is replaced and never changed in place, so
   * that a snapshot stores a reference, and two values are equal if they are identical.
   */
  register(name, get, set) { this.values.set(name, {get, set}); }

  snapshot() { return new Map([...this.values].map(([name, {get}]) => [name, get()])); }

  /** Start again from the present state, which cannot be undone. */
  reset() {
    Object.assign(this, {past: [], future: [], current: {label: "", state: this.snapshot()}});
    this.onChange();
  }

  /**
   * Record the state after an action of the user; `label` names the action. Nothing is recorded if nothing has changed.
   * Actions with the same `group` that follow each other quickly are recorded as one.
   */
  commit(label, group = "") {
    if (!this.current || this.restoring) return;
    const state = this.snapshot(), time = performance.now();
    if ([...state].every(([name, value]) => value === this.current.state.get(name))) return;
    if (!group || this.current.group !== group || time - this.current.time > MERGE_MS) this.past.push(this.current);
    if (this.past.length > MAX_SNAPSHOTS) this.past.shift();
    Object.assign(this, {current: {label, state, group, time}, future: []});
    this.onChange();
  }

  /** Return to the state before the last action; returns the label of that action, or null if there is no earlier action. */
  undo() {
    if (!this.past.length) return null;
    const undone = this.current;
    this.future.push(undone);
    this.restore(this.past.pop());
    return undone.label;
  }

  redo() {
    if (!this.future.length) return null;
    this.past.push(this.current);
    this.restore(this.future.pop());
    return this.current.label;
  }

  restore(entry) {
    const old = this.current.state;
    this.current = entry;
    this.restoring = true;
    try {
      for (const [name, {set}] of this.values) if (entry.state.get(name) !== old.get(name)) set(entry.state.get(name));
    } finally { this.restoring = false; }
    this.onChange();
  }
}

/** Whether an event happens in a text field, which has its own undo. */
function isInTextField(event) {
  const target = event.composedPath()[0];
  return target.matches?.("input:not([type=range], [type=checkbox], [type=radio], [type=button]), textarea, [contenteditable]") || false;
}

/** Return "undo" or "redo" if a key event requests it outside of text fields: Ctrl+Z, Ctrl+Shift+Z or Ctrl+Y; otherwise null. */
function historyKey(event) {
  if (!(event.ctrlKey || event.metaKey) || event.altKey || isInTextField(event)) return null;
  const key = event.key.toLowerCase();
  return key === "y" && !event.shiftKey ? "redo" : key === "z" ? event.shiftKey ? "redo" : "undo" : null;
}
