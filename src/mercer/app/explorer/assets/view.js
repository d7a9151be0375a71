// The view: panes that share one selection, a table of the selected rows, and the controls of a connected model.

let viewCount = 0;
const MAX_TABLE_ROWS = 100; // the table shows at most this many selected rows
const MAX_TOOLTIP_FIELDS = 14; // a tooltip shows at most this many columns
const KEYBOARD_HELP = [
  ["Tab", "move between tools, embeddings and controls"],
  ["← ↑ → ↓", "move the cursor; the nearest point is announced"],
  ["Alt + arrows", "move the cursor in small steps"],
  ["Shift + arrows", "pan"],
  ["+  −  0", "zoom in, zoom out, show all points"],
  ["Enter", "show the pre-image at the cursor"],
  ["Space", "add the announced point to the selection, or remove it"],
  ["L, Enter …, L", "lasso: start, set corners, close"],
  ["Escape", "cancel the lasso, or clear the selection"],
];
const MOUSE_HELP = [
  ["drag", "pan, or draw a lasso, depending on the tool; Shift switches to the other tool"],
  ["Ctrl or Alt + lasso", "add to the selection, or remove from it"],
  ["wheel, pinch", "zoom"],
  ["click", "show the pre-image of the position"],
];

class View {
  /** Show a scene in an element; `link` = {send(request)} connects to a model, or is null in a saved page. */
  constructor(root, scene, link = null) {
    Object.assign(this, {root, link, number: ++viewCount, tool: "move", size: 1, hovered: -1, drawing: false, token: 0, fitToken: 0, panes: []});
    this.theme = scene.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
    root.classList.add("mercer");
    root.explorer = this; // gives tests and other scripts access to the view
    this.build();
    this.load(scene);
  }

  id(name) { return `mercer-${this.number}-${name}`; }

  // ---------------------------------------------------------------- layout

  build() {
    const button = (label, action, more = {}) => h("button", {type: "button", onclick: action, ...more}, label);
    const tool = (name, label, title) => button(label, () => this.setTool(name), {title, "aria-pressed": String(name === this.tool)});
    this.tools = {move: tool("move", "✥ Move", "Drag to pan"), lasso: tool("lasso", "◌ Lasso", "Drag to select points")};
    this.title = h("h1");
    this.total = h("span", {class: "soft"});
    this.search = h("input", {type: "search", placeholder: "Search, for example: text, or column > 3", "aria-label": "Search", "aria-describedby": this.id("mistake"),
      title: SEARCH_HELP.map(pair => pair.join(": ")).join("\n"), onkeydown: event => {
      if (event.key === "Enter") this.runSearch(this.search.value);
    }});
    this.searchError = h("p", {class: "trouble mistake", id: this.id("mistake"), role: "alert"});
    this.colourSelect = h("select", {"aria-label": "Colour by", onchange: () => this.colourBy(this.colourSelect.value)});
    this.sizeSlider = h("input", {type: "range", min: -2, max: 2, step: 0.25, value: 0, "aria-label": "Point size", oninput: () => {
      this.size = 2 ** Number(this.sizeSlider.value);
      this.redraw();
    }});
    this.themeButton = button("", () => { this.theme = this.theme === "dark" ? "light" : "dark"; this.applyTheme(); });
    this.help = h("dialog", {"aria-label": "Keyboard and mouse"}, h("h2", {}, "Keyboard"), pairs(KEYBOARD_HELP), h("h2", {}, "Mouse"), pairs(MOUSE_HELP), h("h2", {}, "Search"), pairs(SEARCH_HELP),
      button("Close", () => this.help.close()));
    this.tip = h("div", {class: "tip", "aria-hidden": "true"});
    this.status = h("p", {class: "status", role: "status", "aria-live": "polite"});
    this.notices = h("div", {class: "notices", role: "alert"});
    this.paneArea = h("main", {class: "maps"});
    this.legend = h("div", {class: "legend"});
    this.preimageCard = h("div", {class: "preimage"});
    this.selectionText = h("p", {class: "soft"});
    this.saveButton = button("Save as CSV", () => this.saveSelection(), {disabled: true});
    this.clearButton = button("Clear", () => this.clear(), {disabled: true});
    this.table = h("div", {class: "scroll", tabIndex: 0, role: "region", "aria-label": "Selected rows"});
    this.model = h("section", {class: "model", hidden: true});
    this.spectra = h("section", {class: "spectra", hidden: true});
    this.notes = h("section", {class: "notes", hidden: true});
    const section = (title, ...inner) => h("section", {}, h("h2", {}, title), ...inner);
    this.sidebar = h("aside", {"aria-label": "Details"},
      section("Colour", this.colourSelect, this.legend),
      section("Pre-image", this.preimageCard),
      this.model,
      section("Selection", this.selectionText, h("div", {class: "row"}, this.saveButton, this.clearButton), this.table),
      this.spectra, this.notes);
    this.root.replaceChildren(
      h("header", {class: "top"}, h("div", {class: "name"}, this.title, this.total),
        h("div", {class: "tools", role: "group", "aria-label": "Tools"}, this.tools.move, this.tools.lasso), this.search,
        h("label", {class: "size"}, "size", this.sizeSlider), this.themeButton, button("?", () => this.help.showModal(), {title: "Keyboard and mouse", "aria-label": "Keyboard and mouse"})),
      this.searchError, this.notices, h("div", {class: "body"}, this.paneArea, this.sidebar), this.status, this.tip, this.help,
      h("p", {id: this.id("keys"), class: "unseen"}, KEYBOARD_HELP.map(pair => pair.join(": ")).join("; ")));
  }

  setTool(tool) {
    this.tool = tool;
    for (const [name, button] of Object.entries(this.tools)) button.setAttribute("aria-pressed", String(name === tool));
    this.root.dataset.tool = tool;
  }

  applyTheme() {
    this.root.dataset.theme = this.theme;
    this.themeButton.textContent = this.theme === "dark" ? "☀" : "☾";
    const label = this.theme === "dark" ? "Light" : "Dark";
    this.themeButton.title = label;
    this.themeButton.setAttribute("aria-label", label);
    this.colourBy(this.color, false);
    this.drawSpectra();
  }

  // ---------------------------------------------------------------- the scene

  load(scene) {
    this.scene = scene;
    this.n = scene.rows;
    this.columns = scene.columns.map(message => new Column(message));
    this.pendingColumns = new Map();
    this.hovered = -1;
    this.colours = new Uint32Array(this.n);
    this.selected = new Uint8Array(this.n);
    this.count = 0;
    this.title.textContent = scene.title;
    this.total.textContent = `${this.n.toLocaleString("en")} points`;
    this.pixels = new Set(scene.image ? scene.image.columns : []);
    this.setPanes(scene.panes);
    this.fillColourSelect(scene.color);
    this.setTool(this.tool);
    this.applyTheme();
    this.preimageCard.replaceChildren(h("p", {class: "soft"}, this.link || scene.panes.some(message => message.preimages) ? "Click a position in an embedding to see the corresponding point." : "Click a position to see the nearest point. A saved page contains no model, so it cannot compute pre-images."));
    this.setSelection(this.selected, null);
    if (this.form) this.form.edited = false;
    this.showFitState({token: this.fitToken});
    this.updateControls(scene.controls);
    this.notes.hidden = !scene.notes.length;
    this.notes.replaceChildren(h("h2", {}, "Notes"), h("ul", {}, ...scene.notes.map(text => h("li", {}, text))));
    this.announce(`${scene.title}: ${this.n} points.`);
  }

  setPanes(panes) {
    if (this.panes.length !== panes.length) {
      this.panes.forEach(pane => pane.resizeObserver.disconnect());
      this.panes = panes.map((message, index) => new Pane(this, index, message));
      this.paneArea.replaceChildren(...this.panes.map(pane => pane.element));
      this.active = this.panes[0];
    } else panes.forEach((message, k) => this.panes[k].update(message));
    this.paneArea.dataset.panes = panes.length;
    this.drawSpectra();
  }

  fillColourSelect(color) {
    const option = column => h("option", {value: column.name}, column.name);
    const own = this.columns.filter((column, k) => !column.derived && !this.pixels.has(k)), made = this.columns.filter(column => column.derived);
    const group = (label, list) => list.length ? h("optgroup", {label}, ...list.map(option)) : null;
    this.colourSelect.replaceChildren(h("option", {value: ""}, "single colour"), ...[group("columns", own), group("computed from the models", made)].filter(Boolean));
    this.color = color && this.columns.some(column => column.name === color) ? color : "";
    this.colourSelect.value = this.color;
  }

  /** Return the row number of a point in its file. */
  rowNumber(i) { return String(this.scene.ids ? this.scene.ids[i] : i + 1); }

  column(name) { return this.columns.find(column => column.name === name) || null; }

  /** Load the values of a column from the server if necessary; resolves to true if they are available. */
  async loadColumn(column) {
    if (column.isLoaded || !this.link) return column.isLoaded;
    if (!this.pendingColumns.has(column.name)) {
      this.pendingColumns.set(column.name, new Promise(done => { column.resolveLoaded = done; }));
      this.link.send({type: "column", name: column.name});
    }
    return this.pendingColumns.get(column.name);
  }

  async colourBy(name, announceChange = true) {
    this.color = name;
    this.colourSelect.value = name;
    const column = name ? this.column(name) : null;
    if (column && !column.isLoaded) {
      this.announce(`Loading ${name} …`);
      if (!(await this.loadColumn(column)) || this.color !== name) return;
    }
    this.colourScale = colouring(column, this.theme, this.colours);
    this.drawLegend();
    this.redraw();
    if (announceChange) this.announce(column ? `Points are coloured by ${name}.` : "All points have the same colour.");
  }

  drawLegend() {
    const {colourScale} = this, name = this.color;
    if (colourScale.kind === "none") return this.legend.replaceChildren();
    if (colourScale.kind === "numbers") {
      return this.legend.replaceChildren(h("div", {class: "ramp", style: `background: linear-gradient(90deg, ${colourScale.stops.join(", ")})`}),
        h("div", {class: "ends"}, h("span", {}, formatNumber(colourScale.low)), h("span", {}, formatNumber(colourScale.high))));
    }
    const column = this.column(name), codes = list => new Set(list.map(one => one.code));
    const item = (label, colour, wanted, count) => h("button", {type: "button", class: "item", title: `Select ${label}`, "aria-label": `Select ${name} ${label}, ${count} points`, onclick: event => {
      this.setSelection(this.combineSelection(i => wanted.has(column.data[i]), mode(event)), `${name} ${label}`);
    }}, h("i", {style: `background: ${colour}`}), h("span", {}, label), h("small", {}, count.toLocaleString("en")));
    const items = colourScale.classes.map(one => item(one.name, one.colour, codes([one]), one.count));
    if (colourScale.rest.length) items.push(item(`${colourScale.rest.length} others`, colourScale.other, codes(colourScale.rest), colourScale.rest.reduce((sum, one) => sum + one.count, 0)));
    this.legend.replaceChildren(...items);
  }

  // ---------------------------------------------------------------- drawing

  redraw() { this.panes.forEach(pane => pane.draw()); }

  schedule() {
    if (this.scheduled) return;
    this.scheduled = true;
    requestAnimationFrame(() => {
      this.scheduled = false;
      this.panes.forEach(pane => pane.render());
      if (this.panes.length && this.panes.every(pane => pane.renderTime > 0)) this.root.dataset.drawn = String(Number(this.root.dataset.drawn || 0) + 1);
    });
  }

  drawSpectra() {
    const shown = this.panes.map(pane => pane.message).filter(message => message.spectrum);
    this.spectra.hidden = !shown.length;
    this.spectra.replaceChildren(...shown.flatMap(message => [h("h2", {}, `Eigenvalues of ${message.title}`), spectrum(message.spectrum), h("p", {class: "soft"}, message.spectrum.text)]));
  }

  // ---------------------------------------------------------------- points

  /** Describe a point in one line. */
  describe(i) {
    const known = this.columns.filter((column, k) => column.isLoaded && !this.pixels.has(k)).slice(0, 6);
    return `Row ${this.rowNumber(i)}: ${known.map(column => `${column.name} ${column.format(i)}`).join(", ")}.`;
  }

  hover(pane, i, event = null) {
    if (i !== this.hovered) {
      this.hovered = i;
      this.panes.forEach(one => one.gridLines && one.drawOverlay());
      if (i >= 0) this.tip.replaceChildren(...this.record(i));
    }
    this.tip.classList.toggle("on", i >= 0);
    if (i < 0) return;
    const frame = pane.over.getBoundingClientRect(), around = this.root.getBoundingClientRect();
    const [px, py] = pane.toPixels(pane.x[i], pane.y[i]).map(p => p / pane.pixelRatio);
    const left = (event ? event.clientX : frame.left + px) - around.left + 16, top = (event ? event.clientY : frame.top + py) - around.top + 12;
    this.tip.style.left = `${Math.max(4, Math.min(left, around.width - this.tip.offsetWidth - 8))}px`;
    this.tip.style.top = `${top + this.tip.offsetHeight + 8 > around.height ? Math.max(4, top - this.tip.offsetHeight - 28) : top}px`;
  }

  record(i) {
    const known = this.columns.filter((column, k) => column.isLoaded && !this.pixels.has(k));
    const first = known.filter(column => column.name === this.color), rest = known.filter(column => column.name !== this.color);
    const rows = [["row", this.rowNumber(i)], ...[...first, ...rest].slice(0, MAX_TOOLTIP_FIELDS).map(column => [column.name, column.format(i)])];
    const more = known.length > MAX_TOOLTIP_FIELDS ? [h("p", {class: "soft"}, `and ${known.length - MAX_TOOLTIP_FIELDS} more columns`)] : [];
    return [...this.imageCanvas(k => this.columns[this.scene.image.columns[k]].at(i)), pairs(rows), ...more];
  }

  /** Return the canvas with the image of a point if the points are images; `value(k)` is the value of pixel k. */
  imageCanvas(value) {
    const {image} = this.scene;
    if (!image || !image.columns.every(k => this.columns[k].isLoaded)) return [];
    const [rows, columns, depth = 1] = image.shape, canvas = h("canvas", {class: "picture", width: columns, height: rows, role: "img", "aria-label": "The point as an image"});
    const pen = canvas.getContext("2d"), data = pen.createImageData(columns, rows), scale = 255 / (image.high - image.low || 1);
    for (let p = 0; p < rows * columns; p++) {
      for (let c = 0; c < 3; c++) data.data[4 * p + c] = (value(depth === 3 ? 3 * p + c : p) - image.low) * scale;
      data.data[4 * p + 3] = 255;
    }
    pen.putImageData(data, 0, 0);
    return [canvas];
  }

  // ---------------------------------------------------------------- the selection

  /** Return a mask of the points that satisfy a condition, combined with the selection: "set", "add" or "remove". */
  combineSelection(condition, how) {
    const mask = new Uint8Array(this.n);
    for (let i = 0; i < this.n; i++) {
      const now = condition(i) ? 1 : 0;
      mask[i] = how === "add" ? now | this.selected[i] : how === "remove" ? this.selected[i] & ~now : now;
    }
    return mask;
  }

  selectInside(pane, polygon, how) {
    const start = performance.now(), found = inside(pane.x, pane.y, polygon);
    this.polygon = polygon;
    this.setSelection(how === "set" ? found : this.combineSelection(i => found[i], how), "inside the lasso");
    this.lassoTime = performance.now() - start;
  }

  toggle(i) {
    const mask = this.selected.slice();
    mask[i] ^= 1;
    this.setSelection(mask, "");
  }

  clear() { this.setSelection(new Uint8Array(this.n), ""); }

  /** Select the points of a mask; `why` is shown to the user, and null means that the server is not informed. */
  setSelection(mask, why) {
    this.selected = mask;
    let count = 0;
    for (let i = 0; i < mask.length; i++) count += mask[i];
    this.count = count;
    this.saveButton.disabled = this.clearButton.disabled = !count;
    const text = count ? `${count.toLocaleString("en")} of ${this.n.toLocaleString("en")} points selected${why ? `: ${why}` : ""}.${this.classCounts()}` : "No points selected.";
    this.selectionText.textContent = text;
    this.announce(text);
    this.drawTable();
    this.redraw();
    if (this.link && why !== null) this.link.send({type: "select", rows: toBase64(new Uint8Array(this.selectedRows().buffer))});
  }

  /** Return the number of selected points in each class as text, largest first. */
  classCounts() {
    const column = this.color ? this.column(this.color) : null;
    if (!column || !column.isLoaded || !column.categories()) return "";
    const tally = new Map();
    for (let i = 0; i < this.n; i++) if (this.selected[i]) tally.set(column.data[i], (tally.get(column.data[i]) || 0) + 1);
    const named = column.categories().filter(one => tally.has(one.code)).map(one => [one.name, tally.get(one.code)]).sort((a, b) => b[1] - a[1]);
    return ` ${column.name}: ${named.slice(0, 4).map(([name, count]) => `${name} (${count})`).join(", ")}${named.length > 4 ? ", …" : ""}.`;
  }

  /** Return the indices of the selected points, counted from 0. */
  selectedRows() {
    const found = new Uint32Array(this.count);
    for (let i = 0, k = 0; i < this.n; i++) if (this.selected[i]) found[k++] = i;
    return found;
  }

  drawTable() {
    if (!this.count) return this.table.replaceChildren();
    const shown = this.columns.filter((column, k) => column.isLoaded && !this.pixels.has(k)), rows = this.selectedRows().slice(0, MAX_TABLE_ROWS);
    const line = (tag, cells) => h("tr", {}, ...cells.map(cell => h(tag, {}, cell)));
    const lines = [...rows].map(i => {
      const row = line("td", [this.rowNumber(i), ...shown.map(column => column.format(i))]);
      row.addEventListener("pointerenter", () => this.hover(this.panes[0], i));
      return row;
    });
    const table = h("table", {}, h("thead", {}, line("th", ["row", ...shown.map(column => column.name)])), h("tbody", {}, ...lines));
    this.table.replaceChildren(table, ...(this.count > MAX_TABLE_ROWS ? [h("p", {class: "soft"}, `Only the first ${MAX_TABLE_ROWS} rows are shown; the CSV file contains all ${this.count.toLocaleString("en")}.`)] : []));
  }

  /** Return the selected rows as CSV: the row numbers and all columns. */
  async csv() {
    const own = this.columns.filter(column => !column.derived);
    await Promise.all(own.map(column => this.loadColumn(column)));
    const shown = this.columns.filter(column => column.isLoaded);
    const cell = value => value === null ? "" : typeof value === "number" ? String(value) : /[",\r\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value;
    const lines = [["row", ...shown.map(column => column.name)].map(cell).join(",")];
    for (const i of this.selectedRows()) lines.push([this.rowNumber(i), ...shown.map(column => column.at(i))].map(cell).join(","));
    return lines.join("\n") + "\n";
  }

  async saveSelection() {
    download("selection.csv", "text/csv", await this.csv());
    this.announce(`Saved ${this.count} rows as selection.csv.`);
  }

  /** Select the rows that match a query, see query.js; an invalid query only shows an error. */
  async runSearch(text) {
    text = text.trim();
    this.showSearchError("");
    if (!text) return this.clear();
    const own = this.columns.filter(one => one.isLoaded && !one.derived);
    try {
      const query = parseQuery(text, this.columns);
      for (const column of queryColumns(query)) {
        if (!column.isLoaded) this.announce(`Loading ${column.name} …`);
        if (!(await this.loadColumn(column)) && !column.isLoaded) throw new QueryError(`The values of ${column.name} are not available.`);
      }
      this.setSelection(this.combineSelection(matcher(query, own), "set"), query.text === undefined ? text : `"${query.text}"`);
      if (!this.count) this.announce(`Nothing found for "${text}".`);
    } catch (error) {
      if (!(error instanceof QueryError)) throw error;
      this.showSearchError(error.message);
    }
  }

  /** Show an error of the search box, or clear it if the text is empty. */
  showSearchError(text) {
    this.search.setAttribute("aria-invalid", String(Boolean(text)));
    this.searchError.textContent = text;
    if (text) this.announce(text);
  }

  // ---------------------------------------------------------------- messages to and from the model

  /** Show the point that corresponds to a position; without a model, the nearest point. */
  requestPreimage(pane, x, y) {
    this.panes.forEach(one => { one.marker = one === pane ? [x, y] : null; });
    this.redraw();
    const where = `${pane.message.title}, at ${this.formatCoordinate(x)}, ${this.formatCoordinate(y)}`;
    if (this.link && pane.message.has_inverse) {
      this.preimageCard.replaceChildren(h("p", {class: "soft"}, `${where}: computing …`));
      this.link.send({type: "preimage", pane: pane.index, x, y, token: ++this.token});
      return;
    }
    if (pane.message.preimages) return this.showStoredPreimage(pane.message, x, y);
    const near = nearest(pane.x, pane.y, x, y, 1, 1, Infinity), why = this.link ? `${pane.message.title} has no inverse transform.` : "A saved page contains no model.";
    this.preimageCard.replaceChildren(h("p", {class: "soft"}, `${where}. ${why} Nearest point:`), ...(near < 0 ? [] : this.record(near)));
    this.announce(`${why} Nearest point: ${near < 0 ? "none" : this.describe(near)}`);
  }

  /** Show the pre-image at the nearest position of the grid that was stored in the page. */
  showStoredPreimage({title, preimages: {count, left, right, low, high, names, values, texts}}, x, y) {
    const at = (value, from, to) => Math.max(0, Math.min(count - 1, Math.round((value - from) / (to - from || 1) * (count - 1))));
    const c = at(x, left, right), r = at(y, low, high), k = r * count + c, d = names.length, point = values.subarray(k * d, (k + 1) * d);
    const position = [left + (right - left) * c / (count - 1 || 1), low + (high - low) * r / (count - 1 || 1)];
    const image = this.scene.image ? point : null, record = image ? [] : names.map((name, j) => [name, formatNumber(point[j])]);
    this.showPreimage({title, position, image, record, text: `Nearest of the ${count} × ${count} stored positions. ${texts[k]}`});
  }

  /** Format a coordinate of the marked position with the precision of a pixel. */
  formatCoordinate(value) {
    const scale = this.panes.find(pane => pane.marker)?.scale || 1;
    return String(Number(value.toFixed(Math.max(0, Math.min(12, Math.ceil(Math.log10(scale)))))));
  }

  /** Handle a message from the server. */
  receive(message) {
    const {kind} = message;
    if (kind === "scene") this.load(message);
    else if (kind === "embeddings") this.updateEmbeddings(message);
    else if (kind === "column") {
      const column = this.column(message.name);
      if (message.error) this.announce(message.error);
      else column.fill(message);
      this.pendingColumns.delete(message.name);
      column.resolveLoaded?.(!message.error);
      if (this.count) this.drawTable();
    } else if (kind === "preimage" && message.token === this.token) this.showPreimage(message);
    else if (kind === "field") {
      const pane = this.panes[message.pane];
      pane.field = message.values ? message : null;
      pane.draw();
      if (message.text) this.announce(message.text);
    } else if (kind === "state") this.showFitState(message);
    else if (kind === "page") download(message.name, "text/html", message.bytes);
    else if (kind === "notice") this.notice(message.text, message.action);
  }

  /** Show new embeddings of the same points. */
  updateEmbeddings(message) {
    for (const column of this.columns.filter(one => one.derived)) column.fill({});
    this.columns = [...this.columns.filter(one => !one.derived), ...message.columns.map(message => new Column(message))];
    const color = this.color;
    this.setPanes(message.panes);
    this.fillColourSelect(color);
    if (this.color !== color || !this.column(color)?.isLoaded) this.colourBy(this.color, false);
    this.updateControls(message.controls, message.token);
    this.redraw();
  }

  showPreimage({record, image, text, title, position, pane}) {
    const [x, y] = position, picture = image ? this.imageCanvas(k => image[k]) : [];
    this.preimageCard.replaceChildren(h("p", {}, `${title}, at ${this.formatCoordinate(x)}, ${this.formatCoordinate(y)}`), ...picture, pairs(record), h("p", {class: "soft"}, text));
    this.preimageCard.scrollIntoView({block: "nearest"});
    const what = image ? "an image" : record.slice(0, 6).map(pair => pair.join(" ")).join(", ");
    this.announce(record.length || image ? `Pre-image: ${what}. ${text}` : text);
  }

  notice(text, action) {
    const line = h("p", {}, text, action ? h("button", {type: "button", onclick: () => { line.remove(); this.link.send({type: action}); }}, "Reload") : null,
      h("button", {type: "button", "aria-label": "Dismiss", onclick: () => line.remove()}, "×"));
    this.notices.replaceChildren(line);
  }

  announce(text) { this.status.textContent = text; }
}

// ------------------------------------------------------------------ parts

/** Return a list of names and values, one pair per line. */
function pairs(rows) {
  return h("dl", {}, ...rows.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}

function download(name, type, content) {
  const link = h("a", {href: URL.createObjectURL(new Blob([content], {type})), download: name});
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

/** Draw the eigenvalues as bars with rigorous bounds on the exact values. */
function spectrum({values, lower, upper, ratios}) {
  const NS = "http://www.w3.org/2000/svg", n = values.length, w = 300, t = 110, wide = Math.min(36, (w - 20) / n);
  const put = (parent, tag, attributes, text) => {
    const node = document.createElementNS(NS, tag);
    for (const key in attributes) node.setAttribute(key, attributes[key]);
    if (text !== undefined) node.textContent = text;
    parent.append(node);
    return node;
  };
  const largest = Math.max(...values, ...upper.filter(v => v !== null)) || 1, Y = v => t - 16 - (t - 30) * Math.max(0, v) / largest;
  const svg = document.createElementNS(NS, "svg");
  svg.setAttribute("viewBox", `0 0 ${w} ${t}`);
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", `Eigenvalues ${values.slice(0, 8).map(formatNumber).join(", ")}`);
  values.forEach((value, k) => {
    const x = 10 + k * wide, bar = put(svg, "rect", {x: x + 2, y: Y(value), width: Math.max(1, wide - 4), height: Math.max(0.5, t - 16 - Y(value)), class: "bar"});
    const between = upper[k] === null ? "no bound" : `exact value between ${lower[k].toPrecision(8)} and ${upper[k].toPrecision(8)}`;
    put(bar, "title", {}, `component ${k + 1}: ${value.toPrecision(8)}, ${between}`);
    if (upper[k] !== null) put(svg, "path", {d: `M${x + wide / 2} ${Y(lower[k])}V${Y(upper[k])}M${x + 2} ${Y(upper[k])}h${Math.max(1, wide - 4)}M${x + 2} ${Y(lower[k])}h${Math.max(1, wide - 4)}`, class: "bound"});
    if (n <= 10) {
      put(svg, "text", {x: x + wide / 2, y: t - 3, "text-anchor": "middle"}, String(k + 1));
      if (ratios) put(svg, "text", {x: x + wide / 2, y: Y(value) - 4, "text-anchor": "middle"}, `${(100 * ratios[k]).toFixed(0)}%`);
    }
  });
  return svg;
}

/** Show a scene in an element. */
export function mount(root, scene, link = null) { return new View(root, scene, link); }

/** A view in an element that is created when the first scene arrives over a link. */
class LinkedView {
  constructor(root, link) {
    this.root = root;
    this.link = link;
    this.view = null;
  }

  receive(bytes) {
    const message = unpack(bytes);
    if (this.view) this.view.receive(message);
    else if (message.kind === "scene") this.view = mount(this.root, message, this.link);
  }
}
