// Named selections: subsets of the points that are stored under a name.

const MAX_NAMED_SELECTIONS = 200; // at most this many selections are stored
const MAX_NAME_LENGTH = 100;
const NAMED_COLUMN = "named selections"; // the column that colours the points by named selections

class NamedSelections {
  constructor(view) {
    Object.assign(this, {view, list: [], sent: null}); // list: [{name, mask, count}, ...], replaced and never changed in place
    this.field = h("input", {type: "text", maxLength: MAX_NAME_LENGTH, placeholder: "name", "aria-label": "Name for the selection", onkeydown: event => { if (event.key === "Enter") this.add(); }});
    this.addButton = h("button", {type: "button", onclick: () => this.add()}, "Store selection");
    this.colourButton = h("button", {type: "button", onclick: () => view.colourBy(NAMED_COLUMN).then(() => view.commit("colour"))}, "Colour by named selections");
    this.items = h("ul", {class: "named"});
    this.element = h("section", {}, h("h2", {}, "Named selections"), h("div", {class: "row"}, this.field, this.addButton), this.items, this.colourButton);
    view.history.register("selections", () => this.list, list => this.set(list));
    view.session.register("selections", () => this.save(), (value, report) => this.load(value, report));
  }

  update(change) {
    if (change === "scene") this.set([]);
    if (change === "columns") this.addColumn();
    if (change === "selection") this.addButton.disabled = !this.view.count;
  }

  /** Store the current selection; without a name, it is numbered. */
  add() {
    const {view} = this;
    if (!view.count) return view.announce("Nothing is selected.");
    if (this.list.length >= MAX_NAMED_SELECTIONS) return view.announce(`At most ${MAX_NAMED_SELECTIONS} selections can be stored.`);
    const name = this.freeName(this.field.value.trim());
    this.field.value = "";
    this.change([...this.list, {name, mask: view.selected, count: view.count}], `store selection ${name}`);
    view.announce(`Stored ${view.count} points as ${name}.`);
  }

  /** Return the name, or the name with a number if it is used already. */
  freeName(name, others = this.list) {
    const isUsed = text => others.some(one => one.name === text);
    if (name && !isUsed(name)) return name;
    for (let k = name ? 2 : 1; ; k++) if (!isUsed(`${name || "selection"} ${k}`)) return `${name || "selection"} ${k}`;
  }

  /** Change the list by an action of the user, which can be undone. */
  change(list, label) {
    this.set(list);
    this.view.commit(label);
  }

  set(list) {
    const {view} = this, hadColumn = this.list.length > 0;
    this.list = list;
    this.addColumn();
    if (hadColumn !== list.length > 0) view.changed("columns"); else if (list.length) view.changed("values");
    if (view.color === NAMED_COLUMN) view.colourBy(list.length ? NAMED_COLUMN : "", false);
    this.draw();
    const message = list.map(({name, mask}) => ({name, rows: toBase64(new Uint8Array(maskRows(mask).buffer))}));
    if (view.link && (list.length || this.sent?.length)) view.link.send({type: "selections", selections: message});
    this.sent = message;
  }

  /** Combine a stored selection with the current one: "recall", "union", "intersection" or "minus". */
  combine({name, mask}, how) {
    const {view} = this, old = view.selected;
    const rules = {recall: i => mask[i], union: i => old[i] | mask[i], intersection: i => old[i] & mask[i], minus: i => old[i] & ~mask[i]};
    const word = {recall: "", union: "with ", intersection: "also in ", minus: "without "}[how];
    view.select(how === "recall" ? mask : old.map((_, i) => rules[how](i)), `${word}${name}`);
  }

  rename(one, text) {
    const others = this.list.filter(other => other !== one), name = this.freeName(text.trim().slice(0, MAX_NAME_LENGTH) || one.name, others);
    this.change(this.list.map(other => other === one ? {...one, name} : other), `rename selection ${one.name}`);
  }

  draw() {
    const {view} = this;
    this.colourButton.hidden = !this.list.length;
    this.items.replaceChildren(...this.list.map(one => {
      const button = (text, title, action) => h("button", {type: "button", title, "aria-label": title, onclick: action}, text), points = `${one.count.toLocaleString("en")} point${one.count === 1 ? "" : "s"}`;
      return h("li", {},
        h("input", {type: "text", value: one.name, maxLength: MAX_NAME_LENGTH, "aria-label": `Name of the selection ${one.name}`, onchange: event => this.rename(one, event.target.value)}),
        button(points, `Select ${one.name}, ${points}`, () => this.combine(one, "recall")),
        button("∪", `Add ${one.name} to the selection`, () => this.combine(one, "union")),
        button("∩", `Keep only selected points that are in ${one.name}`, () => this.combine(one, "intersection")),
        button("−", `Remove ${one.name} from the selection`, () => this.combine(one, "minus")),
        button("×", `Delete ${one.name}`, () => {
          this.change(this.list.filter(other => other !== one), `delete selection ${one.name}`);
          view.announce(`Deleted the named selection ${one.name}.`);
          this.field.focus();
        }));
    }));
  }

  /** Add the column whose categories are the named selections, or remove it if there are none. */
  addColumn() {
    const {view, list} = this;
    if (view.columns.some(column => column.name === NAMED_COLUMN && !column.isNamed)) { this.colourButton.hidden = true; return; } // a column of the data
    view.columns = view.columns.filter(column => !column.isNamed);
    if (!list.length) return;
    const values = [...list.map(one => one.name), "several", "none"], data = new Uint16Array(view.n).fill(list.length + 1);
    list.forEach(({mask}, k) => { for (let i = 0; i < view.n; i++) if (mask[i]) data[i] = data[i] === list.length + 1 ? k : list.length; });
    view.columns.push(Object.assign(new Column({name: NAMED_COLUMN, type: "text", derived: true, data, values}), {isNamed: true}));
  }

  async save() {
    return Promise.all(this.list.map(async ({name, mask}) => ({name, rows: await this.view.session.rows.encode(mask)})));
  }

  async load(value, report) {
    const list = [];
    for (const entry of expectArray(value, MAX_NAMED_SELECTIONS)) {
      const {name, rows} = expectObject(entry, ["name", "rows"], report), text = expectText(name, MAX_NAME_LENGTH), {mask, count} = await this.view.session.rows.decode(rows, report);
      list.push({name: this.freeName(text, list), mask, count});
    }
    this.set(list);
  }
}

/** Return the indices of the points in a mask. */
function maskRows(mask) {
  const rows = new Uint32Array(mask.reduce((sum, one) => sum + one, 0));
  for (let i = 0, k = 0; i < mask.length; i++) if (mask[i]) rows[k++] = i;
  return rows;
}
