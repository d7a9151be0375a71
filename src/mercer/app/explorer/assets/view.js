// The view: panes that share one selection, and the panels of the sidebar.
//
// A part of the view is an object with an `element` and a method update(change), which is called after each change:
//   "scene"       another scene was loaded; calls for all other changes follow
//   "columns"     columns were added or removed
//   "values"      the values of a column have arrived
//   "colours"     the colours of the points have changed; "selection", "filters", "embeddings" and "theme" have the same meaning
//   "point"       another point is the current point
//   "drawings"    drawings of points have arrived

let viewCount = 0;
const FILTER_DELAY_MS = 250; // the server receives the filters when they have not changed for this time
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
  ["← → in a histogram", "move a bound of the filter by one bin; Page Up and Page Down by five, Delete removes the filter"],
  ["↑ ↓ in the table", "move to another row; Enter shows it; Enter in a column name sorts by this column"],
  ["← → in the tabs", "show another tab; Home and End: the first and the last"],
  ["Enter in the search box", "select the rows that match; ↑ ↓ choose a suggestion"],
  ["Escape in a menu or dialog", "close it"],
  ["Ctrl+Z", "undo; Ctrl+Shift+Z or Ctrl+Y: redo"],
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
    Object.assign(this, {root, link, number: ++viewCount, tool: "move", size: 1, hovered: -1, drawing: false, fitToken: 0, panes: [], parts: [], handlers: new Map(), color: "", selectionReason: "", reasons: new WeakMap(), query: "", transitions: TRANSITION_MS, hideFiltered: false});
    this.theme = scene.theme || pageTheme();
    root.classList.add("mercer");
    root.explorer = this; // gives tests and other scripts access to the view
    this.build();
    this.load(scene);
  }

  id(name) { return `mercer-${this.number}-${name}`; }

  /** Call a handler for messages of this kind from the server. */
  on(kind, handler) { this.handlers.set(kind, handler); }

  /** Inform all parts of a change. */
  changed(change) { this.parts.forEach(part => part.update(change)); }

  /** Record the state after an action of the user, for undo; quick actions of one group are recorded as one. */
  commit(label, group) { if (!this.session.isApplying) this.history.commit(label, group); }

  // ---------------------------------------------------------------- layout

  build() {
    const button = (label, action, more = {}) => h("button", {type: "button", onclick: action, ...more}, label);
    const tool = (name, label, title) => button(label, () => this.setTool(name), {title, "aria-pressed": String(name === this.tool)});
    this.tools = {move: tool("move", "✥ Move", "Drag to pan"), lasso: tool("lasso", "◌ Lasso", "Drag to select points")};
    this.title = h("h1");
    this.total = h("span", {class: "soft"});
    this.search = h("input", {type: "search", placeholder: "Search, for example: text, or column > 3", "aria-label": "Search", "aria-describedby": this.id("mistake"),
      title: SEARCH_HELP.map(pair => pair.join(": ")).join("\n"), oninput: () => this.showSearchError(""), onkeydown: event => {
      if (this.suggestions.onKeyDown(event) || event.key !== "Enter") return;
      this.suggestions.close();
      this.runSearch(this.search.value);
    }});
    this.suggestions = new Suggestions(this, this.search);
    this.searchError = h("p", {class: "trouble mistake", id: this.id("mistake"), role: "alert", title: "Click to hide", onclick: () => this.showSearchError("")});
    this.sizeSlider = h("input", {type: "range", min: -2, max: 2, step: 0.25, value: 0, "aria-label": "Point size", oninput: () => {
      this.size = 2 ** Number(this.sizeSlider.value);
      this.redraw();
    }});
    this.themeButton = button("", () => { this.hasOwnTheme = true; this.setTheme(this.theme === "dark" ? "light" : "dark"); });
    this.help = h("dialog", {"aria-label": "Keyboard and mouse"}, h("h2", {}, "Keyboard"), pairs(KEYBOARD_HELP), h("h2", {}, "Mouse"), pairs(MOUSE_HELP), h("h2", {}, "Search"), pairs(SEARCH_HELP),
      button("Close", () => this.help.close()));
    this.tip = h("div", {class: "tip", "aria-hidden": "true"});
    this.status = h("p", {class: "status", role: "status", "aria-live": "polite"});
    this.notices = h("div", {class: "notices", role: "alert"});
    this.paneArea = h("main", {class: "maps"});
    this.history = new History(() => this.updateHistoryButtons());
    this.history.register("selection", () => this.selected, mask => this.setSelection(mask, ""));
    this.history.register("filters", () => this.filters.byName, filters => this.setFilters(filters));
    this.history.register("search", () => this.query, query => { this.query = this.search.value = query; });
    this.history.register("colour", () => this.color, name => this.colourBy(name));
    this.history.register("colour options", () => this.column(this.color)?.colourOptions ?? null, options => {
      const column = this.column(this.color);
      if (column) column.colourOptions = options || undefined;
      this.colourBy(this.color, false);
    });
    this.models = new ModelState(this);
    this.session = new Session(this);
    this.named = new NamedSelections(this);
    this.session.registerModels();
    const undo = (label, title, action) => button(label, () => action(), {title, "aria-label": title, disabled: true});
    this.undoButton = undo("↶", "Undo", () => this.undo());
    this.redoButton = undo("↷", "Redo", () => this.redo());
    this.model = h("section", {class: "model", hidden: true});
    this.notes = h("section", {class: "notes"});
    this.legend = new Legend(this);
    this.point = new PointPanel(this);
    this.selection = new SelectionPanel(this);
    this.spectra = new SpectrumPanel(this);
    this.components = new ComponentsPanel(this);
    this.columnsPanel = new ColumnsPanel(this);
    this.layout = new Layout(this);
    this.python = new PythonPanel(this);
    this.jobs = new JobList(this);
    this.focus = new FocusKeeper(this);
    this.table = new RowTable(this);
    this.parts = [this.layout, this.session, this.named, this.legend, this.columnsPanel, this.point, this.selection, this.spectra, this.components, this.python, this.table];
    this.tabs = new Tabs(this, "Details", {Columns: [this.columnsPanel.element], Selection: [this.selection.element, this.named.element], Point: [this.point.element], Model: [this.model, this.spectra.element, this.python.element], Notes: [this.notes]});
    this.sidebar = h("aside", {"aria-label": "Details"}, this.legend.element, this.tabs.element);
    this.root.replaceChildren(
      h("header", {class: "top"}, h("div", {class: "name"}, this.title, this.total),
        h("div", {class: "tools", role: "group", "aria-label": "Tools"}, this.tools.move, this.tools.lasso), h("div", {class: "tools"}, this.undoButton, this.redoButton), this.session.menu.element,
        this.layout.switch, this.search, h("label", {class: "size"}, h("span", {}, "size"), this.sizeSlider), this.themeButton, button("?", () => { this.help.showModal(); this.help.scrollTop = 0; }, {title: "Keyboard and mouse", "aria-label": "Keyboard and mouse"})),
      h("div", {class: "below"}, this.searchError), this.notices, h("div", {class: "body"}, this.layout.pinned, h("div", {class: "stack"}, this.paneArea, this.table.element), this.sidebar), h("footer", {}, this.jobs.element, this.status), this.tip, this.suggestions.list, this.help,
      h("p", {id: this.id("keys"), hidden: true}, KEYBOARD_HELP.map(pair => pair.join(": ")).join("; ")));
    const page = this.link?.isEmbedded ? this.root : document; // a notebook has its own undo
    page.addEventListener("keydown", event => {
      const action = historyKey(event);
      if (!action) return;
      event.preventDefault();
      this[action]();
    });
  }

  setTool(tool) {
    this.tool = tool;
    for (const [name, button] of Object.entries(this.tools)) button.setAttribute("aria-pressed", String(name === tool));
    this.root.dataset.tool = tool;
  }

  setTheme(theme) {
    this.theme = theme;
    this.applyTheme();
  }

  applyTheme() {
    this.root.dataset.theme = this.theme;
    this.themeButton.textContent = this.theme === "dark" ? "☀" : "☾";
    const label = this.theme === "dark" ? "Light" : "Dark";
    this.themeButton.title = label;
    this.themeButton.setAttribute("aria-label", label);
    this.colourBy(this.color, false);
    this.changed("theme");
  }

  // ---------------------------------------------------------------- the scene

  load(scene) {
    this.scene = scene;
    this.n = scene.rows;
    this.columns = scene.columns.map(message => new Column(message));
    this.pendingColumns?.forEach(pending => pending.done(null)); // they belong to other points
    this.pendingColumns = new Map();
    this.hovered = -1;
    this.colours = new Uint32Array(this.n);
    this.selected = new Uint8Array(this.n);
    this.count = 0;
    this.filters = new Filters(this.n);
    this.states = new Uint8Array(this.n).fill(1);
    this.title.textContent = this.title.title = scene.title;
    this.total.textContent = `${this.n.toLocaleString("en")} points`;
    this.pixels = new Set(scene.image ? scene.image.columns : []);
    this.models.receive(scene);
    this.color = this.column(scene.color) ? scene.color : "";
    this.setPanes(scene.panes);
    this.setTool(this.tool);
    this.changed("scene");
    this.changed("columns");
    this.changed("filters");
    this.applyTheme();
    this.setSelection(this.selected, null);
    if (this.form) this.form.edited = this.form.other.edited = false;
    this.showFitState({token: this.fitToken});
    this.updateControls(scene.controls);
    this.tabs.setAvailable("Model", scene.controls || scene.code || scene.panes.some(message => message.spectrum));
    this.tabs.setAvailable("Notes", scene.notes.length);
    this.tabs.setCount("Notes", scene.notes.length);
    this.notes.replaceChildren(h("ul", {}, ...scene.notes.map(text => h("li", {}, ...text.split(/(\B--\w[\w-]*)/).map((part, k) => k % 2 ? h("span", {class: "option"}, part) : part)))));
    this.history.reset();
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
    this.changed("embeddings");
  }

  /** Return the row number of a point in its file. */
  rowNumber(i) { return String(this.scene.ids ? this.scene.ids[i] : i + 1); }

  column(name) { return this.columns.find(column => column.name === name) || null; }

  /** Load the values of a column from the server if necessary; resolves to true if they are available, and to null if another scene was loaded. */
  async loadColumn(column) {
    if (column.isLoaded || !this.link) return column.isLoaded;
    if (!this.pendingColumns.has(column.name)) {
      const pending = {};
      pending.promise = new Promise(done => { pending.done = done; });
      this.pendingColumns.set(column.name, pending);
      this.link.send({type: "column", name: column.name});
    }
    return this.pendingColumns.get(column.name).promise;
  }

  /** Store the values of a column that the server has sent, or show why it did not. */
  receiveColumn(message) {
    const column = this.column(message.name), pending = this.pendingColumns.get(message.name);
    if (message.error) this.announce(message.error);
    else column?.fill(message);
    this.pendingColumns.delete(message.name);
    pending?.done(!message.error);
    this.changed("values");
    const filter = column?.isLoaded && this.filters.byName.get(column.name);
    if (filter && !this.filters.masks.has(column.name)) this.setFilter(column, filter);
  }

  /** The columns whose values are known, without the pixels of images. */
  shownColumns() { return this.columns.filter((column, k) => column.isLoaded && !this.pixels.has(k)); }

  async colourBy(name, announceChange = true) {
    const before = this.color;
    this.color = name;
    if (this.column(name)?.isLoaded === false) {
      this.announce(`Loading ${name} …`);
      const isLoaded = await this.loadColumn(this.column(name));
      if (this.color !== name || isLoaded === null) return;
      if (!isLoaded) return this.colourBy(this.column(before)?.isLoaded ? before : "", false); // it failed or was cancelled
    }
    const column = name ? this.column(name) : null;
    this.colourScale = colouring(column, this.theme, this.colours);
    this.order = null;
    this.changed("colours");
    this.redraw();
    if (announceChange) this.announce(column ? `Points are coloured by ${name}.` : "All points have the same colour.");
  }

  // ---------------------------------------------------------------- drawing

  redraw() { this.panes.forEach(pane => pane.draw()); }

  schedule() {
    this.session.touch();
    if (this.scheduled) return;
    this.scheduled = true;
    requestAnimationFrame(() => {
      this.scheduled = false;
      this.panes.forEach(pane => pane.render());
      if (this.panes.length && this.panes.every(pane => pane.renderTime > 0 || pane.element.hidden)) this.root.dataset.drawn = String(Number(this.root.dataset.drawn || 0) + 1);
    });
  }

  // ---------------------------------------------------------------- points

  /** The loaded columns, the one that colours the points first, without the texts of points that are drawn, which repeat other columns. */
  describingColumns() {
    const all = this.shownColumns().filter(column => column.name !== "point" || this.scene.drawings?.kind !== "items");
    return [...all.filter(column => column.name === this.color), ...all.filter(column => column.name !== this.color)];
  }

  /** Describe a point in one line. */
  describe(i) {
    const known = this.describingColumns().slice(0, 6);
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

  /** The content of a tooltip; the drawing of a series replaces its values. */
  record(i) {
    const {drawings} = this.scene, drawn = new Set(drawings?.kind === "series" ? drawings.columns.map(k => this.columns[k]) : []);
    const known = this.shownColumns().filter(column => !drawn.has(column));
    const first = known.filter(column => column.name === this.color), rest = known.filter(column => column.name !== this.color);
    const rows = [["row", this.rowNumber(i)], ...[...first, ...rest].slice(0, MAX_TOOLTIP_FIELDS).map(column => [column.name, column.format(i)])];
    const more = known.length > MAX_TOOLTIP_FIELDS ? [h("p", {class: "soft"}, `and ${known.length - MAX_TOOLTIP_FIELDS} more columns`)] : [];
    return [...drawing(this, i), pairs(rows), ...more];
  }

  /** Mark a point in all panes while the pointer is over its entry in a list; -1 removes the mark. */
  highlight(i) {
    this.hovered = i;
    this.panes.forEach(pane => pane.gridLines && pane.drawOverlay());
  }

  /** Return the canvas with the image of a point if the points are images; `value(k)` is the value of pixel k. */
  imageCanvas(value, label = "The point as an image") {
    const {image} = this.scene;
    if (!image || !image.columns.every(k => this.columns[k].isLoaded)) return [];
    const [rows, columns, depth = 1] = image.shape, canvas = h("canvas", {class: "picture", width: columns, height: rows, role: "img", "aria-label": label});
    const pen = canvas.getContext("2d"), data = pen.createImageData(columns, rows), scale = 255 / (image.high - image.low || 1);
    for (let p = 0; p < rows * columns; p++) {
      for (let c = 0; c < 3; c++) data.data[4 * p + c] = (value(depth === 3 ? 3 * p + c : p) - image.low) * scale;
      data.data[4 * p + 3] = 255;
    }
    pen.putImageData(data, 0, 0);
    return [canvas];
  }

  // ---------------------------------------------------------------- the selection and the filters

  /** Return a mask of the active points that satisfy a condition, combined with the selection: "set", "add" or "remove". */
  combineSelection(condition, how) {
    const mask = new Uint8Array(this.n), {active} = this.filters;
    for (let i = 0; i < this.n; i++) {
      const now = active[i] && condition(i) ? 1 : 0;
      mask[i] = how === "add" ? now | this.selected[i] : how === "remove" ? this.selected[i] & ~now : now;
    }
    return mask;
  }

  selectInside(pane, polygon, how) {
    const start = performance.now(), found = inside(pane.x, pane.y, polygon);
    this.polygon = polygon;
    this.select(this.combineSelection(i => found[i], how), "inside the lasso");
    this.lassoTime = performance.now() - start;
  }

  toggle(i) {
    const mask = this.selected.slice();
    mask[i] ^= 1;
    this.select(mask, "");
  }

  /** The number of selected points that do not satisfy the filters, because the filters were changed after the selection. */
  get hiddenCount() {
    let hidden = 0;
    for (let i = 0; i < this.n; i++) hidden += this.selected[i] & ~this.filters.active[i];
    return hidden;
  }

  /** Describe the selection: how many points, why, how many of each class of the colours, and how many do not satisfy the filters. */
  get selectionText() {
    if (!this.count) return "No points selected.";
    const why = this.selectionReason ? `: ${this.selectionReason}` : "", hidden = this.hiddenCount;
    const also = hidden ? ` ${hidden.toLocaleString("en")} of them ${hidden === 1 ? "does" : "do"} not pass the filters.` : "";
    return `${this.count.toLocaleString("en")} of ${this.n.toLocaleString("en")} points selected${why}.${this.classCounts()}${also}`;
  }

  /** Return the order in which the points are drawn, see raster.js. */
  paintOrder() { return (this.order ??= rareLast(this.colours, this.count ? this.selected : null)); }

  clear() { this.select(new Uint8Array(this.n), ""); }

  /** Select the points of a mask after an action of the user, which can be undone; `why` is shown. */
  select(mask, why) {
    this.setSelection(mask, why);
    this.commit(why ? `selection: ${why}` : "selection");
  }

  /** Show the points of a mask as selected; `why` is shown to the user, and null means that the server is not informed. */
  setSelection(mask, why) {
    this.selected = mask;
    let count = 0;
    for (let i = 0; i < mask.length; i++) count += mask[i];
    this.count = count;
    if (why) this.reasons.set(mask, why); // undo shows the reason again
    this.selectionReason = this.reasons.get(mask) || "";
    this.tabs.setCount("Selection", count);
    this.order = null;
    this.announce(this.selectionText);
    this.updateStates();
    this.changed("selection");
    if (this.link && why !== null) this.link.send({type: "select", rows: toBase64(new Uint8Array(this.selectedRows().buffer))});
  }

  /** A mask of the points that are drawn, or null if all are. */
  get visible() { return this.hideFiltered ? this.filters.active : null; }

  /** Return the point within `reach` CSS pixels that is nearest to a position, or -1; points that satisfy the filters are preferred to those drawn faintly. */
  nearestPoint(pane, x, y, reach) {
    const isFiltered = this.filters.count < this.n, {scale} = pane;
    const find = mask => nearest(pane.x, pane.y, x, y, scale, scale, reach * pane.pixelRatio, mask), found = find(isFiltered ? this.filters.active : null);
    return found < 0 && isFiltered && !this.hideFiltered ? find(null) : found;
  }

  /** Whether points are drawn in different ways, because some are selected or filtered out. */
  get hasStates() { return this.count > 0 || this.filters.count < this.n; }

  /** Compute the state of each point: 0 does not satisfy the filters, 1 does, and 2 is selected as well. */
  updateStates() {
    const {states, selected} = this, {active} = this.filters;
    this.statesVersion = (this.statesVersion || 0) + 1;
    for (let i = 0; i < this.n; i++) states[i] = active[i] + (active[i] & selected[i]);
    this.redraw();
  }

  /** Set the filter of a column (null removes it), see filters.js. If the column is not loaded, the filter is applied when its values arrive. */
  setFilter(column, filter) {
    this.filters.set(column, filter);
    if (filter && !column.isLoaded) this.loadColumn(column);
    this.filtersChanged();
  }

  /** Replace all filters by those of a Map from column names to filters; unknown columns are skipped. */
  setFilters(filters) {
    if ([...filters.keys()].some(name => !this.column(name))) filters = new Map([...filters].filter(([name]) => this.column(name)));
    const old = this.filters.byName;
    for (const name of new Set([...old.keys(), ...filters.keys()])) {
      const column = this.column(name), filter = filters.get(name) || null;
      if (old.get(name) !== (filter || undefined)) this.filters.set(column, filter);
      if (filter && !column.isLoaded) this.loadColumn(column);
    }
    this.filters.byName = filters;
    this.filtersChanged();
  }

  filtersChanged() {
    this.updateStates();
    this.changed("filters");
    const {count} = this.filters, isFiltered = this.filters.byName.size > 0, n = this.n.toLocaleString("en");
    this.total.textContent = isFiltered ? `${count.toLocaleString("en")} of ${n} points` : `${n} points`;
    if (!this.link) return;
    clearTimeout(this.filterTimer); // the server is informed when the gesture has ended
    this.filterTimer = setTimeout(() => this.link.send({type: "filter", mask: isFiltered ? toBase64(packBits(this.filters.active)) : null}), FILTER_DELAY_MS);
  }

  /** Hide the points that do not satisfy the filters, or draw them faintly. */
  setHideFiltered(isHidden) {
    this.hideFiltered = isHidden;
    this.changed("filters");
    this.redraw();
  }

  undo() {
    const label = this.history.undo();
    this.announce(label === null ? "There is nothing to undo." : `Undone: ${label}.`);
  }

  redo() {
    const label = this.history.redo();
    this.announce(label === null ? "There is nothing to redo." : `Redone: ${label}.`);
  }

  updateHistoryButtons() {
    this.undoButton.disabled = !this.history.past.length;
    this.redoButton.disabled = !this.history.future.length;
  }

  /** Return the number of selected points in each class as text, largest first. */
  classCounts() {
    const column = this.color ? this.column(this.color) : null;
    if (!column || !column.isLoaded || !column.categories()) return "";
    const tally = new Map();
    for (let i = 0; i < this.n; i++) if (this.selected[i]) tally.set(column.data[i], (tally.get(column.data[i]) || 0) + 1);
    const named = column.categories().filter(one => tally.has(one.code)).map(one => [one.name, tally.get(one.code)]).sort((a, b) => b[1] - a[1]);
    if (["=", ""].some(sign => this.selectionReason === [column.name, sign, named[0]?.[0]].filter(Boolean).join(" "))) return ""; // the reason says it
    return ` ${column.name}: ${named.slice(0, 4).map(([name, count]) => `${name} (${count})`).join(", ")}${named.length > 4 ? ", …" : "."}`;
  }

  /** Return the indices of the selected points, counted from 0. */
  selectedRows() {
    const found = new Uint32Array(this.count);
    for (let i = 0, k = 0; i < this.n; i++) if (this.selected[i]) found[k++] = i;
    return found;
  }

  /** Select the rows that match a query, see query.js; an invalid query only shows an error. */
  async runSearch(text) {
    const number = this.searchNumber = (this.searchNumber || 0) + 1, own = this.columns.filter(one => !one.derived);
    this.showSearchError("");
    if (!text.trim()) return this.clear();
    try {
      const query = parseQuery(text, this.columns);
      for (const column of queryColumns(query, own)) {
        if (!column.isLoaded) this.announce(`Loading ${column.name} …`);
        if (!(await this.loadColumn(column)) && !column.isLoaded) throw new QueryError(`The values of ${column.name} are not available.`);
        if (number !== this.searchNumber) return; // a newer search was started
      }
      const matches = matcher(query, own, this.scene.ids ? i => this.scene.ids[i] : i => i + 1);
      this.query = text;
      this.select(this.combineSelection(matches, "set"), query.text === undefined ? text.trim() : `"${query.text}"`);
      let hidden = 0;
      if (this.filters.count < this.n) for (let i = 0; i < this.n; i++) if (!this.filters.active[i] && matches(i)) hidden++;
      const also = hidden ? ` ${hidden.toLocaleString("en")} more match, but do not pass the filters.` : "";
      if (also || !this.count) this.announce(`${this.count ? this.selectionText : `Nothing found for "${text}".`}${also}`);
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

  /** Handle a message from the server. */
  receive(message) {
    const {kind} = message;
    if (kind === "scene") this.load(message);
    else if (kind === "embeddings") this.updateEmbeddings(message);
    else if (kind === "column") this.receiveColumn(message);
    else if (kind === "field") {
      const pane = this.panes[message.pane];
      if (!pane || (message.token && message.token !== pane.fieldToken)) return;
      pane.field = message.values ? message : null;
      pane.draw();
      if (message.text) this.announce(message.text);
    } else if (kind === "clusters") {
      const pane = this.panes[message.pane];
      pane.clusters = message;
      pane.draw();
      this.announce(message.text);
    } else if (kind === "state") this.showFitState(message);
    else if (kind === "page") download(`${fileStem(this.scene.title)}.html`, "text/html", message.bytes);
    else if (kind === "notice") {
      this.models.reply(message.text, null);
      this.notice(message.text, message.action);
    }
    else this.handlers.get(kind)?.(message);
  }

  /** Show new embeddings of the same points. */
  updateEmbeddings(message) {
    const news = "token" in message ? ["The embeddings were updated."] : []; // after a fit; it replaces "Fitting …" or an error
    for (const column of this.columns.filter(one => one.derived)) {
      column.fill({});
      if (!this.filters.byName.has(column.name)) continue;
      this.setFilter(column, null);
      news.push(`The filter on ${column.name} was removed, because its values have changed.`);
    }
    this.columns = [...this.columns.filter(one => !one.derived), ...message.columns.map(message => new Column(message))];
    const color = this.color;
    this.scene.version = message.version;
    this.setPanes(message.panes);
    this.changed("columns");
    for (const [name, pending] of this.pendingColumns) { // values for the old embeddings will not arrive
      if (this.column(name)?.derived) this.link.send({type: "column", name});
      else if (!this.column(name)) { this.pendingColumns.delete(name); pending.done(false); }
    }
    if (!this.column(color)?.isLoaded) this.colourBy(this.column(color) ? color : "", false);
    this.updateControls(message.controls, message.token);
    this.models.receive(message);
    this.redraw();
    if (news.length) this.announce(news.join(" "));
    this.commit("model", "model");
  }

  notice(text, action) {
    const line = h("p", {}, text, action ? h("button", {type: "button", onclick: () => { line.remove(); this.link.send({type: action}); }}, "Reload") : null,
      h("button", {type: "button", "aria-label": "Dismiss", onclick: () => line.remove()}, "×"));
    this.notices.replaceChildren(line);
  }

  announce(text) { this.status.textContent = text; }
}

/** Show a scene in an element. */
export function mount(root, scene, link = null) {
  const view = new View(root, scene, link);
  view.session.start();
  return view;
}

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
    return message;
  }
}
