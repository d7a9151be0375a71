// The table below the embeddings: the selected points, or all points that satisfy the filters, as rows or as pictures.

const TABLE_PAGE = 50; // rows on a page of the table
const PICTURE_PAGE = 100; // pictures on a page
const MAX_TABLE_COLUMNS = 60; // the table shows at most this many columns
const MAX_COLLATED_TEXTS = 50000; // more distinct texts are sorted by code points, which takes less time
const DRAWER_HEIGHTS = {low: 120, high: 900, start: 260, step: 24}; // in CSS pixels
const collator = new Intl.Collator("en", {numeric: true});

/** Return the positions 0, 1, ... sorted by keys, arrays of 32-bit words of which the first is the least significant; equal keys keep their order. */
function radixSort(words, count) {
  let from = Uint32Array.from({length: count}, (_, k) => k), to = new Uint32Array(count);
  for (const word of words) {
    for (const shift of [0, 16]) {
      const starts = new Uint32Array(65537);
      for (let k = 0; k < count; k++) starts[((word[k] >>> shift) & 65535) + 1]++;
      if (count && starts[((word[0] >>> shift) & 65535) + 1] === count) continue; // all keys have the same digit
      for (let d = 0; d < 65536; d++) starts[d + 1] += starts[d];
      for (let k = 0; k < count; k++) { const i = from[k]; to[starts[(word[i] >>> shift) & 65535]++] = i; }
      [from, to] = [to, from];
    }
  }
  return from;
}

/** Return the rank of each text of a column in natural order ("item 9" precedes "item 10"). */
function textRanks(column) {
  const {values} = column, ranks = new Uint32Array(values.length);
  if (values.length > MAX_COLLATED_TEXTS) return ranks.map((_, code) => code); // the texts are stored in the order of their code points
  const order = Array.from(values.keys()).sort((a, b) => collator.compare(values[a], values[b]));
  order.forEach((code, k) => { ranks[code] = k && !collator.compare(values[code], values[order[k - 1]]) ? ranks[order[k - 1]] : k; });
  return ranks;
}

/** Return rows sorted by a loaded column. The sort is stable, and missing values are last in both directions. */
function sortRows(rows, column, isDescending) {
  const {data, missing} = column, known = new Uint32Array(rows.length), absent = new Uint32Array(rows.length), flip = isDescending ? -1 : 0;
  let count = 0, lost = 0;
  for (let k = 0; k < rows.length; k++) {
    const value = data[rows[k]];
    if (value === missing || value !== value) absent[lost++] = rows[k]; else known[count++] = rows[k];
  }
  const low = new Uint32Array(count), high = new Uint32Array(count);
  if (data instanceof Float32Array || data instanceof Float64Array) {
    const number = new Float64Array(1), [lowHalf, highHalf] = [0, 1], halves = new Uint32Array(number.buffer);
    for (let k = 0; k < count; k++) { // the bits of floating-point numbers, changed so that they are in the order of the numbers
      number[0] = data[known[k]] + 0; // -0 becomes 0
      const sign = halves[highHalf] >>> 31 ? -1 : 0;
      high[k] = halves[highHalf] ^ (sign | 0x80000000) ^ flip;
      low[k] = halves[lowHalf] ^ sign ^ flip;
    }
  } else {
    const ranks = column.values ? textRanks(column) : null;
    for (let k = 0; k < count; k++) low[k] = (ranks ? ranks[data[known[k]]] : data[known[k]] + 2 ** 31) ^ flip;
  }
  const sorted = new Uint32Array(rows.length);
  radixSort([low, high], count).forEach((position, k) => { sorted[k] = known[position]; });
  sorted.set(absent.subarray(0, lost), count);
  return sorted;
}

class RowTable {
  constructor(view) {
    Object.assign(this, {view, open: false, mode: "table", page: 0, sort: {name: "", isDescending: false}, order: null, focusRow: -1, cells: new Map()});
    const button = (text, action, more = {}) => h("button", {type: "button", onclick: action, ...more}, text);
    this.toggleButton = button("Table", () => this.setOpen(!this.open), {"aria-expanded": "false", "aria-controls": view.id("table"), class: "drawer-toggle"});
    this.summary = h("span", {class: "soft"});
    this.modeButtons = {table: button("Rows", () => this.setMode("table"), {"aria-pressed": "true"}), pictures: button("Pictures", () => this.setMode("pictures"), {"aria-pressed": "false"})};
    this.modes = h("div", {class: "tools", role: "group", "aria-label": "Show as"}, ...Object.values(this.modeButtons));
    this.range = h("span", {class: "page-range", "aria-live": "polite"});
    this.previousButton = button("‹", () => this.turn(-1), {"aria-label": "Previous page"});
    this.nextButton = button("›", () => this.turn(1), {"aria-label": "Next page"});
    this.pager = h("div", {class: "page-buttons", role: "group", "aria-label": "Pages"}, this.previousButton, this.range, this.nextButton);
    this.body = h("div", {class: "rows", id: view.id("table"), role: "region", "aria-label": "Rows", onkeydown: event => this.onKeyDown(event)});
    this.handle = h("div", {class: "resize", role: "separator", tabIndex: 0, "aria-orientation": "horizontal", "aria-label": "Height of the table", onkeydown: event => this.onHandleKey(event), onpointerdown: event => this.drag(event)});
    this.element = h("section", {class: "drawer", "aria-label": "Table"}, this.handle, h("div", {class: "bar"}, this.toggleButton, this.summary, this.modes, this.pager), this.body);
    view.on("cells", message => this.fillCells(message));
    this.setHeight(DRAWER_HEIGHTS.start);
    this.setOpen(false);
  }

  update(change) {
    if (change === "scene") Object.assign(this, {cells: new Map(), sort: {name: "", isDescending: false}, focusRow: -1, mode: "table"});
    if (["scene", "columns", "embeddings"].includes(change) && !this.view.column(this.sort.name)) this.sort = {name: "", isDescending: false};
    if (["scene", "selection", "filters"].includes(change)) Object.assign(this, {order: null, page: 0});
    if (["scene", "selection", "filters", "columns", "values", "colours", "drawings", "point", "theme"].includes(change)) this.draw();
  }

  // ---------------------------------------------------------------- the drawer

  setOpen(isOpen) {
    this.open = isOpen;
    this.toggleButton.setAttribute("aria-expanded", String(isOpen));
    for (const part of [this.body, this.handle, this.pager]) part.hidden = !isOpen;
    this.draw();
  }

  setHeight(height) {
    this.height = Math.max(DRAWER_HEIGHTS.low, Math.min(DRAWER_HEIGHTS.high, height));
    this.body.style.height = `${this.height}px`;
    for (const [name, value] of [["valuemin", DRAWER_HEIGHTS.low], ["valuemax", DRAWER_HEIGHTS.high], ["valuenow", this.height]]) this.handle.setAttribute(`aria-${name}`, String(Math.round(value)));
  }

  onHandleKey(event) {
    const step = {ArrowUp: DRAWER_HEIGHTS.step, ArrowDown: -DRAWER_HEIGHTS.step, Home: -1e4, End: 1e4}[event.key];
    if (!step) return;
    event.preventDefault();
    this.setHeight(this.height + step);
  }

  drag(event) {
    const start = event.clientY, before = this.height, {handle} = this;
    handle.setPointerCapture(event.pointerId);
    handle.onpointermove = move => this.setHeight(before + start - move.clientY);
    handle.onpointerup = handle.onpointercancel = () => { handle.onpointermove = null; };
  }

  // ---------------------------------------------------------------- rows

  /** Return the rows of the table in their sort order. */
  rows() {
    if (this.order) return this.order;
    const {view} = this, wanted = view.count ? 2 : 1, rows = new Uint32Array(view.n), column = view.column(this.sort.name);
    let count = 0;
    for (let i = 0; i < view.n; i++) if (view.states[i] === wanted) rows[count++] = i;
    this.order = column?.isLoaded ? sortRows(rows.subarray(0, count), column, this.sort.isDescending) : rows.slice(0, count);
    return this.order;
  }

  get pageSize() { return this.mode === "pictures" ? PICTURE_PAGE : TABLE_PAGE; }

  turn(step) {
    const pages = Math.ceil(this.rows().length / this.pageSize);
    if (this.page + step < 0 || this.page + step >= pages) return;
    this.page += step;
    this.focusRow = -1;
    this.draw();
    this.body.scrollTop = 0;
  }

  setMode(mode) {
    Object.assign(this, {mode, page: 0, focusRow: -1});
    this.draw();
  }

  /** Sort by a column: first ascending, then descending, then in the order of the rows. */
  async sortBy(name) {
    const {view} = this, column = view.column(name), {sort} = this;
    if (sort.name !== name) this.sort = {name, isDescending: false};
    else this.sort = sort.isDescending ? {name: "", isDescending: false} : {name, isDescending: true};
    Object.assign(this, {order: null, page: 0, focusRow: -1});
    if (!column.isLoaded) {
      view.announce(`Loading ${name} …`);
      if (!(await view.loadColumn(column))) return;
      this.order = null;
    }
    this.draw();
    view.announce(this.sort.name ? `Sorted by ${name}, ${this.sort.isDescending ? "descending" : "ascending"}.` : "Sorted by row number.");
  }

  /** The columns of the table: the one that colours the points first, without the pixels of images. */
  columns() {
    const {view} = this, all = view.columns.filter((column, k) => (column.isLoaded || (view.link && !column.derived)) && !view.pixels.has(k));
    return [...all.filter(column => column.name === view.color), ...all.filter(column => column.name !== view.color)];
  }

  draw() {
    const {view} = this;
    if (!view.states) return; // no scene yet
    const total = view.count ? this.rows().length : view.filters.count, hasPictures = canDraw(view);
    this.summary.textContent = `${total.toLocaleString("en")} ${view.count ? "selected" : view.filters.count < view.n ? "filtered" : ""} ${total === 1 ? "row" : "rows"}`.replace("  ", " ");
    this.modes.hidden = !hasPictures || !this.open;
    if (!hasPictures) this.mode = "table";
    if (!this.open) return;
    const rows = this.rows(), first = this.page * this.pageSize, shown = rows.subarray(first, first + this.pageSize);
    this.range.textContent = rows.length ? `${(first + 1).toLocaleString("en")}–${(first + shown.length).toLocaleString("en")} of ${rows.length.toLocaleString("en")}` : "no rows";
    this.previousButton.setAttribute("aria-disabled", String(this.page === 0));
    this.nextButton.setAttribute("aria-disabled", String(first + shown.length >= rows.length));
    for (const [mode, button] of Object.entries(this.modeButtons)) button.setAttribute("aria-pressed", String(mode === this.mode));
    const focused = this.body.contains(document.activeElement) || this.body.contains(this.body.getRootNode().activeElement) ? this.body.getRootNode().activeElement : null;
    const key = focused && (focused.dataset.row ?? focused.dataset.name), kind = focused?.dataset.row === undefined ? "name" : "row";
    if (this.mode === "pictures") this.drawPictures(shown); else this.drawRows(shown);
    if (focused) [...this.body.querySelectorAll(`[data-${kind}]`)].find(node => node.dataset[kind] === key)?.focus();
  }

  drawRows(rows) {
    const {view} = this, all = this.columns(), columns = all.slice(0, MAX_TABLE_COLUMNS), {sort} = this;
    const header = column => {
      const isSorted = sort.name === column.name, direction = isSorted ? sort.isDescending ? "descending" : "ascending" : "none";
      return h("th", {scope: "col", "aria-sort": direction}, h("button", {type: "button", class: "sort", "data-name": column.name, onclick: () => this.sortBy(column.name)},
        column.name, h("span", {"aria-hidden": "true"}, isSorted ? sort.isDescending ? " ▼" : " ▲" : "")));
    };
    const cell = (column, i, k) => column.isLoaded ? column.format(i) : this.cells.get(column.name)?.get(i) ?? "…";
    const lines = [...rows].map((i, k) => this.interactive(h("tr", {}, h("td", {}, view.rowNumber(i)), ...columns.map(column => h("td", {}, cell(column, i, k)))), i, k));
    this.body.replaceChildren(h("table", {}, h("thead", {}, h("tr", {}, h("th", {scope: "col"}, "row"), ...columns.map(header))), h("tbody", {}, ...lines)),
      ...(all.length > columns.length ? [h("p", {class: "soft"}, `${all.length - columns.length} more columns are not shown; a CSV file contains all.`)] : []));
    this.requestCells(rows, columns.filter(column => !column.isLoaded));
  }

  drawPictures(rows) {
    const {view} = this;
    requestDrawings(view, rows);
    this.body.replaceChildren(h("div", {class: "pictures"}, ...[...rows].map((i, k) =>
      this.interactive(h("button", {type: "button", class: "thumbnail", "aria-label": view.describe(i)}, ...drawing(view, i), h("small", {}, view.rowNumber(i))), i, k))));
  }

  /** Let a click or Enter on an element show the point i; only one element of the page is in the Tab order. */
  interactive(element, i, k) {
    const {view} = this;
    element.dataset.row = i;
    element.tabIndex = (this.focusRow < 0 ? k === 0 : this.focusRow === i) ? 0 : -1;
    if (view.point.current === i) element.setAttribute("aria-current", "true");
    element.addEventListener("pointerenter", () => view.highlight(i));
    element.addEventListener("pointerleave", () => view.highlight(-1));
    element.addEventListener("click", () => { this.focusRow = i; view.point.show(i); });
    return element;
  }

  onKeyDown(event) {
    const items = [...this.body.querySelectorAll("[data-row]")], at = items.indexOf(event.target);
    if (at < 0) return;
    if (event.key === "Enter") { event.preventDefault(); items[at].click(); return; }
    const across = this.mode === "pictures" ? Math.max(1, items.filter(item => item.offsetTop === items[0].offsetTop).length) : 1;
    const next = {ArrowDown: at + across, ArrowUp: at - across, ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: items.length - 1}[event.key];
    if (next === undefined || !items[next]) return;
    event.preventDefault();
    items[at].tabIndex = -1;
    items[next].tabIndex = 0;
    items[next].focus();
    this.focusRow = Number(items[next].dataset.row);
    this.view.highlight(this.focusRow);
  }

  /** Request the values of columns that are not loaded, for the rows of this page only. */
  requestCells(rows, columns) {
    const names = columns.map(column => column.name).filter(name => !this.cells.has(name) || [...rows].some(i => !this.cells.get(name).has(i)));
    if (!names.length || !this.view.link) return;
    this.view.link.send({type: "cells", rows: [...rows], names});
  }

  fillCells({rows, columns, error}) {
    if (error) return this.view.announce(error);
    for (const message of columns) {
      const column = new Column(message);
      this.cells.set(column.name, new Map(Array.from(rows, (i, k) => [i, column.format(k)])));
    }
    this.draw();
  }
}
