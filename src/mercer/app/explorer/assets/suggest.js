// Suggestions while a query is typed: columns, operators and values, in a list below the search box.

const MAX_SUGGESTIONS = 10;

/** Return {start, options: [{text, note}]}: the texts that can replace the end of the query from `start`. */
function completions(query, columns) {
  let expected = null;
  try { parseQuery(query, columns, (what, at, column) => { expected = {what, at, column}; }); } catch (error) { if (!(error instanceof QueryError)) throw error; }
  const none = {start: query.length, options: []};
  if (!expected || expected.what === "operator") return none;
  const {at: start, column} = expected, typed = query.slice(start), partial = typed.trim().replace(/^["'`]/, "").toLowerCase();
  if (expected.what === "value") {
    if (!column.isLoaded || !column.values) return none;
    const values = column.categories().map(one => ({text: quoteIfNeeded(one.name), name: one.name, note: `${one.count.toLocaleString("en")} rows`}));
    return {start, options: best(values, partial)};
  }
  const named = columns.find(one => partial && one.name.toLowerCase() === partial);
  if (named && /\s$/.test(typed)) return {start: query.length, options: operatorsOf(named).map(text => ({text, note: ""}))};
  const names = partial ? columns.map(one => ({text: quoteIfNeeded(one.name), name: one.name, note: one.type})) : [];
  return {start, options: best(names, partial)};
}

/** Return the options whose names contain a text; those that begin with it come first, and complete ones are left out. */
function best(options, partial) {
  const place = one => one.name.toLowerCase().indexOf(partial), found = options.filter(one => place(one) >= 0);
  if (found.some(one => one.name.toLowerCase() === partial)) return [];
  return [...found.filter(one => place(one) === 0), ...found.filter(one => place(one) > 0)].slice(0, MAX_SUGGESTIONS);
}

function operatorsOf(column) {
  const isText = column.values || column.type === "text";
  return isText ? ["=", "!=", ":", "in (", "is missing"] : ["=", "<", "<=", ">", ">=", "between", "is missing"];
}

/** Return a column name or value in quotes, if it would be cut off or misunderstood without them. */
function quoteIfNeeded(text) {
  const isPlain = /^[\p{L}\p{N}_.-]+( [\p{L}\p{N}_.-]+)*$/u.test(text) && !/(^|\s)(and|or|not|in|is|between)(\s|$)/i.test(text);
  return isPlain ? text : `"${text.replaceAll('"', '""')}"`;
}

/** A list of suggestions for the search box: arrow keys choose, Enter or a click accepts, Escape closes. */
class Suggestions {
  constructor(view, input) {
    Object.assign(this, {view, input, options: [], start: 0, active: -1});
    this.list = h("ul", {class: "suggestions", role: "listbox", id: view.id("suggestions"), "aria-label": "Suggestions", hidden: true});
    for (const [name, value] of [["role", "combobox"], ["aria-autocomplete", "list"], ["aria-controls", this.list.id], ["aria-expanded", "false"], ["autocomplete", "off"]]) input.setAttribute(name, value);
    input.addEventListener("input", () => this.show());
    input.addEventListener("blur", () => this.close());
  }

  show() {
    const {input} = this, atEnd = input.selectionStart === input.value.length, columns = this.view.columns.filter((one, k) => !this.view.pixels.has(k));
    Object.assign(this, atEnd ? completions(input.value, columns) : {options: []}, {active: -1});
    this.list.replaceChildren(...this.options.map((one, k) => h("li", {role: "option", id: `${this.list.id}-${k}`, "aria-selected": "false",
      onmousedown: event => { event.preventDefault(); this.accept(k); }}, h("span", {}, one.text), h("small", {}, one.note))));
    this.list.hidden = !this.options.length;
    input.setAttribute("aria-expanded", String(!this.list.hidden));
    input.removeAttribute("aria-activedescendant");
    if (this.list.hidden) return;
    const around = this.view.root.getBoundingClientRect(), box = input.getBoundingClientRect();
    this.list.style.left = `${Math.max(4, Math.min(box.left - around.left, around.width - this.list.offsetWidth - 4))}px`;
    this.list.style.top = `${box.bottom - around.top + 2}px`;
  }

  close() {
    Object.assign(this, {options: [], active: -1});
    this.list.hidden = true;
    this.input.setAttribute("aria-expanded", "false");
    this.input.removeAttribute("aria-activedescendant");
  }

  move(step) {
    const n = this.options.length;
    this.active = this.active < 0 ? (step > 0 ? 0 : n - 1) : (this.active + step + n) % n;
    [...this.list.children].forEach((one, k) => one.setAttribute("aria-selected", String(k === this.active)));
    this.list.children[this.active].scrollIntoView({block: "nearest"});
    this.input.setAttribute("aria-activedescendant", this.list.children[this.active].id);
  }

  accept(k) {
    const {input} = this, before = input.value.slice(0, this.start), {text} = this.options[k];
    input.value = `${before}${/[\s(]$|^$/.test(before) ? "" : " "}${text}${text.endsWith("(") ? "" : " "}`;
    input.setSelectionRange(input.value.length, input.value.length);
    this.show();
  }

  /** Handle a key of the search box; return true if the key belongs to the list. Enter belongs to it only if an option is chosen. */
  onKeyDown(event) {
    if (this.list.hidden) return false;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") this.move(event.key === "ArrowDown" ? 1 : -1);
    else if (event.key === "Enter" && this.active >= 0) this.accept(this.active);
    else if (event.key === "Escape") this.close();
    else return false;
    event.preventDefault();
    event.stopPropagation();
    return true;
  }
}
