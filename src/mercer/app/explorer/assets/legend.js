// The legend: which colours stand for which values of the column that colours the points. Each entry can be selected, hidden or isolated.
//
// If a column has more classes than the palette has colours, the legend has pages, and the classes of the page that is shown have the colours.

const MAX_SHORT_LABEL = 8; // entries are shown in two columns if all names and counts together are at most this long

class Legend {
  constructor(view) {
    Object.assign(this, {view, entries: [], page: {name: "", start: 0, text: ""}});
    this.select = h("select", {"aria-label": "Colour by", onchange: () => view.colourBy(this.select.value).then(() => view.commit("colour"))});
    this.find = h("input", {type: "search", placeholder: "find a class", "aria-label": "Find a class", oninput: () => this.turn(0, this.find.value), onchange: () => view.commit("classes with colours")});
    this.pager = new Pager("classes", THEMES.light.classes.length, page => { this.turn(page, this.page.text); view.commit("classes with colours"); });
    this.tools = h("div", {class: "row", hidden: true}, this.find, this.pager.element);
    this.list = h("div", {class: "legend"});
    this.element = h("section", {}, h("h2", {}, "Colour"), this.select, this.tools, this.list);
    view.history.register("classes with colours", () => this.page, page => this.showPage(page));
  }

  update(change) {
    if (change === "scene" || change === "columns") this.fillSelect();
    if (change === "colours") this.draw();
    if (change === "colours" || change === "filters") this.showFilter();
  }

  fillSelect() {
    const {view} = this, option = column => h("option", {value: column.name}, column.name);
    const own = view.columns.filter((column, k) => !column.derived && !view.pixels.has(k)), made = view.columns.filter(column => column.derived);
    const group = (label, list) => list.length ? h("optgroup", {label}, ...list.map(option)) : null;
    this.select.replaceChildren(h("option", {value: ""}, "single colour"), ...[group("columns", own), group("computed from the models", made)].filter(Boolean));
    this.select.value = view.color;
  }

  // ---------------------------------------------------------------- pages of classes

  /** Return the classes of a column whose names contain the text of the search field. */
  found(column) {
    const text = this.page.name === column.name ? this.page.text.toLowerCase() : "", list = column.categories();
    return text ? list.filter(one => one.name.toLowerCase().includes(text)) : list;
  }

  /** Show a page of the classes that contain a text. */
  turn(page, text) { this.showPage({name: this.view.color, start: page * this.pager.perPage, text}); }

  /** Give the colours to the classes of a page; other columns start with their first page. */
  showPage(page) {
    const {view, pager} = this, old = view.column(this.page.name), column = view.column(page.name);
    this.page = page;
    if (old) old.coloured = null;
    if (column?.isLoaded && column.categories()) column.coloured = this.found(column).slice(page.start, page.start + pager.perPage);
    if ([old, column].includes(view.column(view.color))) view.colourBy(view.color, false);
  }

  // ---------------------------------------------------------------- entries

  draw() {
    const {view} = this, {colourScale, color: name} = view, column = view.column(name);
    this.select.value = name;
    this.entries = [];
    this.tools.hidden = true;
    this.list.classList.remove("short");
    if (colourScale.kind === "none") return this.list.replaceChildren();
    const missing = column.missingCount ? [new LegendEntry(this, column, "missing", colourScale.missingColour, [null], column.missingCount)] : [];
    if (colourScale.kind === "numbers") {
      this.entries = missing;
      return this.list.replaceChildren(...numberLegend(view, colourScale), ...missing.map(entry => entry.element));
    }
    const {classes, rest, other} = colourScale, total = column.categories().length;
    this.entries = classes.map(one => new LegendEntry(this, column, one.name === "" ? "(empty)" : one.name, one.colour, [one.name], one.count));
    if (rest.length) this.entries.push(new LegendEntry(this, column, `${rest.length} others`, other, rest.map(one => one.name), rest.reduce((sum, one) => sum + one.count, 0)));
    this.entries.push(...missing);
    this.tools.hidden = total <= this.pager.perPage;
    if (!this.tools.hidden) {
      const page = this.page.name === name ? this.page : {start: 0, text: ""};
      if (this.find.value !== page.text) this.find.value = page.text;
      this.pager.update(page.start / this.pager.perPage, this.found(column).length);
    }
    this.list.classList.toggle("short", this.entries.every(entry => entry.length <= MAX_SHORT_LABEL));
    this.list.replaceChildren(...this.entries.map(entry => entry.element));
    if (!classes.length) this.list.prepend(h("p", {class: "soft"}, "No class contains this text."));
  }

  showFilter() {
    const filter = this.view.filters.byName.get(this.view.color) || null;
    this.entries.forEach(entry => entry.showFilter(filter));
  }
}

/** An entry of the legend: a check box in the colour of the points that hides them, a button that selects them, and a button that hides all others. */
class LegendEntry {
  constructor(legend, column, label, colour, names, count) {
    const {view} = legend, wanted = new Set(names), title = `${column.name} ${label}`;
    Object.assign(this, {label, names, length: `${label}${count}`.length});
    const set = change => { view.setFilter(column, change(column, view.filters.byName.get(column.name) || null, names)); view.commit(`filter: ${title}`); };
    this.dot = h("i", {style: `color: ${colour}`});
    this.hideButton = h("button", {type: "button", class: "dot", role: "checkbox", "aria-label": `Show ${title}`, onclick: () => set(toggleEntries)}, this.dot);
    this.onlyButton = h("button", {type: "button", class: "only", "aria-label": `Only ${title}`, title: `Show only ${label}`, onclick: () => set(isolateEntries)}, "only");
    this.selectButton = h("button", {type: "button", class: "item", title: `Select ${label}`, "aria-label": `Select ${title}, ${count.toLocaleString("en")} points`, onclick: event => {
      const codes = wanted.has(null) ? null : new Set(column.categories().filter(one => wanted.has(one.name)).map(one => one.code)), {data, missing} = column;
      view.select(view.combineSelection(codes ? i => codes.has(data[i]) : i => data[i] === missing || data[i] !== data[i], mode(event)), title);
    }}, h("span", {}, label), " ", h("small", {}, count.toLocaleString("en")));
    this.element = h("div", {class: "legend-entry"}, this.hideButton, this.selectButton, this.onlyButton);
  }

  showFilter(filter) {
    const isShown = this.names.every(name => passesEntry(filter, name));
    this.hideButton.setAttribute("aria-checked", String(isShown));
    this.hideButton.title = `${isShown ? "Hide" : "Show"} ${this.label}`;
    this.element.classList.toggle("off", !isShown);
  }
}
