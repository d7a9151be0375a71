// Sessions: the state of the view as a JSON document, in a file, in the address of the page, or in a saved page.
//
// Each part of the view registers how its state is saved and loaded. A session may come from anyone, so `load` checks all
// values: it throws a SessionError for a value that it cannot use, and reports what it ignores.

const SESSION_KIND = "explorer session", SESSION_VERSION = 1;
const MAX_SESSION_BYTES = 50e6; // larger files are not read
const MAX_BITMAP_SIZE = 2 ** 28; // the largest number of rows of a stored set of rows
const MAX_ADDRESS_LENGTH = 8000; // some programs do not accept longer addresses
const ADDRESS_DELAY_MS = 300; // the address is updated this long after the last change
const MAX_PROBLEMS = 12; // a notice lists at most this many problems
const OMITTED_FROM_ADDRESS = [["selections", "named selections"], ["selection", "the selection"], ["filters", "filters"]]; // in this order, if the address is too long

/** A problem with a session, as a sentence for the user. */
class SessionError extends Error {}

const shorten = text => text.length > 60 ? `${text.slice(0, 57)}…` : text;
const quoted = value => `"${shorten(typeof value === "string" ? value : JSON.stringify(value) ?? "nothing")}"`;

/** Return a value if it is an object, and report the keys that are not known. */
function expectObject(value, keys, report) {
  if (value === null || typeof value !== "object" || Array.isArray(value)) throw new SessionError("an object was expected.");
  for (const key of Object.keys(value)) if (!keys.includes(key)) report(`the unknown entry ${quoted(key)} was ignored.`);
  return value;
}

function expectArray(value, maxLength) {
  if (!Array.isArray(value) || value.length > maxLength) throw new SessionError(`a list of at most ${maxLength} entries was expected.`);
  return value;
}

function expectText(value, maxLength = 10000) {
  if (typeof value !== "string" || value.length > maxLength) throw new SessionError(`a text of at most ${maxLength} characters was expected.`);
  return value;
}

const expectTexts = value => expectArray(value, 1e6).map(text => expectText(text, 1e6));

function expectNumber(value, low = -Infinity, high = Infinity) {
  if (typeof value !== "number" || !(value >= low && value <= high)) throw new SessionError(`a number from ${low} to ${high} was expected.`);
  return value;
}

function expectOneOf(value, choices) {
  if (!choices.includes(value)) throw new SessionError(`one of ${choices.join(", ")} was expected.`);
  return value;
}

// ------------------------------------------------------------------ compression

async function deflate(bytes) {
  return new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(new CompressionStream("deflate-raw"))).arrayBuffer());
}

/** Decompress bytes; more than `limit` bytes are an error, so that a small text cannot fill the memory. */
async function inflate(bytes, limit) {
  const reader = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw")).getReader(), chunks = [];
  let size = 0;
  try {
    for (let step = await reader.read(); !step.done; step = await reader.read()) {
      size += step.value.length;
      if (size > limit) { reader.cancel().catch(() => {}); throw new SessionError("the compressed data are too long."); }
      chunks.push(step.value);
    }
  } catch (error) { throw error instanceof SessionError ? error : new SessionError("the compressed data are damaged."); }
  return new Uint8Array(await new Blob(chunks).arrayBuffer());
}

function fromBase64(text) {
  try { return Uint8Array.from(atob(text), c => c.charCodeAt(0)); } catch { throw new SessionError("the compressed data are damaged."); }
}

/**
 * Sets of rows as compressed bitmaps. The bits stand for row numbers of the file, so that a set stays correct if other
 * rows are left out. If row numbers repeat, because new rows were projected, the bits stand for positions.
 */
class RowSets {
  constructor(scene) {
    const {ids, rows: n} = scene;
    this.by = ids && ids.some((id, i) => i && id <= ids[i - 1]) ? "position" : "row number";
    Object.assign(this, {n, ids: this.by === "position" ? null : ids, cache: new WeakMap()});
  }

  /** Return a mask as JSON; a mask is never changed in place, so the result is stored. */
  encode(mask) {
    if (!this.cache.has(mask)) this.cache.set(mask, this.compress(mask));
    return this.cache.get(mask);
  }

  async compress(mask) {
    const rows = maskRows(mask), {ids, by} = this, number = i => ids ? ids[i] - 1 : i, size = rows.length ? number(rows.at(-1)) + 1 : 0;
    const bits = new Uint8Array(Math.ceil(size / 8));
    for (const i of rows) bits[number(i) >> 3] |= 1 << (number(i) & 7);
    return {by, size, count: rows.length, bits: toBase64(await deflate(bits))};
  }

  async decode(value, report) {
    const {by, size, bits} = expectObject(value, ["by", "size", "count", "bits"], report), {n, ids} = this;
    expectOneOf(by, ["row number", "position"]);
    if (by !== this.by) throw new SessionError(`its rows are identified by ${by}, but those of this page by ${this.by}, because other rows were projected.`);
    const packed = fromBase64(expectText(bits, MAX_SESSION_BYTES)), bitmap = await inflate(packed, Math.ceil(expectNumber(size, 0, MAX_BITMAP_SIZE) / 8));
    const mask = new Uint8Array(n);
    let count = 0, stored = 0;
    for (const byte of bitmap) for (let b = byte; b; b &= b - 1) stored++;
    for (let i = 0; i < n; i++) {
      const k = ids ? ids[i] - 1 : i;
      mask[i] = bitmap[k >> 3] >> (k & 7) & 1;
      count += mask[i];
    }
    if (stored > count) report(`${stored - count} of ${stored} rows are not among the points.`);
    return {mask, count};
  }
}

// ------------------------------------------------------------------ the session

class Session {
  constructor(view) {
    Object.assign(this, {view, parts: new Map(), newest: 0, isApplying: false, isTracked: false, written: "", rows: null});
    this.note = h("p", {class: "soft", hidden: true});
    this.file = h("input", {type: "file", accept: ".json,application/json", hidden: true, onchange: async () => {
      const [file] = this.file.files;
      this.file.value = "";
      if (file) await this.open(file);
    }});
    const action = (text, run) => h("button", {type: "button", onclick: run}, text);
    this.pageButton = action("Save this page", () => this.savePage());
    this.menu = new Menu("Session", "Save or open the session", [action("Save session …", () => this.save()), action("Open session …", () => this.file.click()), this.pageButton, this.note],
      () => { this.pageButton.hidden = !view.link; });
    this.menu.element.append(this.file);
    const {root} = view, hasFiles = event => [...event.dataTransfer?.types || []].includes("Files");
    root.addEventListener("dragover", event => { if (hasFiles(event)) event.preventDefault(); });
    root.addEventListener("drop", event => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      this.open(event.dataTransfer.files[0]);
    });
    for (const kind of ["click", "change", "keyup"]) root.addEventListener(kind, () => this.touch());
    view.on("session", ({text}) => this.applyText(text));
    this.registerBasics();
  }

  /**
   * Register a part: save() returns a JSON value or a promise of it, and load(value, report) shows it. Parts are loaded
   * in the order of registration; those after "model" are loaded when the models of the session have been fitted.
   */
  register(name, save, load) { this.parts.set(name, {save, load}); }

  update(change) {
    if (change === "scene") this.rows = new RowSets(this.view.scene);
    this.touch();
  }

  registerBasics() {
    const {view} = this;
    this.register("theme", () => view.theme, value => { view.theme = expectOneOf(value, Object.keys(THEMES)); view.applyTheme(); });
    this.register("size", () => view.size, value => {
      view.size = expectNumber(value, 0.25, 4);
      view.sizeSlider.value = Math.log2(view.size);
      view.redraw();
    });
    this.register("filters", () => [...view.filters.byName].map(([column, filter]) => ({column, ...filter})), (value, report) => this.loadFilters(value, report));
    this.register("selection", () => this.rows.encode(view.selected), async (value, report) => view.setSelection((await this.rows.decode(value, report)).mask, ""));
    this.register("search", () => view.search.value, value => { view.search.value = expectText(value); });
    this.register("tab", () => view.tabs.current, value => view.tabs.show(expectOneOf(value, [...view.tabs.buttons.keys()])));
  }

  /** Register the parts that depend on the models, after all others. */
  registerModels() {
    const {view} = this;
    this.register("model", () => view.models.text ? JSON.parse(view.models.text) : this.savedModel ?? null, (value, report) => this.loadModel(value, report));
    this.register("panes", () => view.panes.map(pane => pane.position()), (value, report) => this.loadPanes(value, report));
    this.register("colour", () => this.saveColour(), (value, report) => this.loadColour(value, report));
    this.register("hidden points", () => view.hideFiltered, value => view.setHideFiltered(value === true));
  }

  saveColour() {
    const {view} = this, {clip = null, log = false} = view.column(view.color)?.colourOptions ?? {}, {name, start, text} = view.legend.page;
    return {column: view.color, clip, log, page: name === view.color ? {start, text} : null};
  }

  async loadColour(value, report) {
    const {view} = this, {column: name, clip, log, page} = expectObject(value, ["column", "clip", "log", "page"], report), column = view.column(expectText(name));
    if (name && !column) throw new SessionError(`there is no column ${quoted(name)}.`);
    if (column && !(await view.loadColumn(column))) throw new SessionError(`the values of ${quoted(name)} are not available.`);
    if (column) column.colourOptions = {clip: typeof clip === "boolean" ? clip : null, log: log === true};
    await view.colourBy(name, false);
    if (!page || !column?.categories()) return;
    const {start, text} = expectObject(page, ["start", "text"], report);
    view.legend.showPage({name, start: Math.floor(expectNumber(start, 0, 1e9)), text: expectText(text)});
  }

  async loadFilters(value, report) {
    const {view} = this, filters = new Map();
    for (const entry of expectArray(value, 10000)) {
      const {column: name, missing, ...rest} = expectObject(entry, ["column", "low", "high", "included", "excluded", "contains", "onlyMissing", "missing"], report), column = view.column(expectText(name));
      if (!column) { report(`there is no column ${quoted(name)}.`); continue; }
      if (!(await view.loadColumn(column))) { report(`the values of ${quoted(name)} are not available.`); continue; }
      const kind = ["included", "excluded", "contains", "onlyMissing"].find(key => rest[key] !== undefined) || "low", limit = value => value === null ? null : expectNumber(value);
      if (kind !== "onlyMissing" && (kind === "low" ? column.values : !column.categories())) { report(`${quoted(name)} has another type.`); continue; }
      const values = {
        low: () => ({low: limit(rest.low), high: limit(rest.high)}), contains: () => ({contains: expectText(rest.contains)}), onlyMissing: () => ({onlyMissing: true}),
        included: () => ({included: expectTexts(rest.included)}), excluded: () => ({excluded: expectTexts(rest.excluded)}),
      };
      filters.set(name, {...values[kind](), missing: missing !== false});
    }
    view.setFilters(filters);
  }

  async loadModel(value, report) {
    const {view} = this;
    if (value === null) return;
    const {text} = view.models;
    if (!text) { // a saved page has the models of the session that it contains
      this.savedModel ??= expectObject(value, Object.keys(value), report);
      if (JSON.stringify(this.savedModel) !== JSON.stringify(value)) throw new SessionError(`this page contains no model, so it cannot show the kernel ${quoted(value.kernel)}.`);
      return;
    }
    const shown = JSON.parse(text), wanted = expectObject(value, Object.keys(shown), report);
    const error = await view.models.show(Object.fromEntries(Object.entries(shown).map(([key, old]) => [key, Object.hasOwn(wanted, key) ? wanted[key] : old])));
    if (error) throw new SessionError(error);
  }

  loadPanes(value, report) {
    const {panes} = this.view;
    expectArray(value, 100).slice(0, panes.length).forEach((entry, k) => {
      const {centre, zoom, userMoved} = expectObject(entry, ["centre", "zoom", "userMoved"], report);
      if (expectArray(centre, 2).length !== 2) throw new SessionError("a position has two coordinates.");
      panes[k].moveTo({centre: centre.map(v => expectNumber(v)), zoom: expectNumber(zoom, 1e-6, 1e9), userMoved: userMoved === true});
    });
  }

  // ---------------------------------------------------------------- the document

  /** Return the state of the view as a JSON document. */
  async document() {
    const {scene, columns} = this.view, own = columns.filter(column => !column.derived).map(column => column.name);
    const document = {mercer: SESSION_KIND, version: SESSION_VERSION, data: {title: scene.title, rows: scene.rows, columns: own, fingerprint: scene.fingerprint ?? null}};
    for (const [name, {save}] of this.parts) document[name] = await save();
    return document;
  }

  /** Show a session as far as possible, and return the problems as sentences; null if a newer session replaced it. */
  async apply(document) {
    const number = ++this.newest, problems = [], {view} = this;
    const note = name => text => problems.push(`${name}: ${text}`);
    this.isApplying = true;
    try {
      this.check(document, note("data"));
      for (const key of Object.keys(document)) if (!["mercer", "version", "data"].includes(key) && !this.parts.has(key)) problems.push(`The unknown entry ${quoted(key)} was ignored.`);
      for (const [name, {load}] of this.parts) {
        if (!Object.hasOwn(document, name)) continue;
        try { await load(document[name], note(name)); } catch (error) {
          if (!(error instanceof SessionError)) throw error;
          note(name)(error.message);
        }
        if (number !== this.newest) return null;
      }
    } finally { if (number === this.newest) this.isApplying = false; }
    this.touch();
    view.announce(problems.length ? "The session was opened, with exceptions." : "The session was opened.");
    return problems;
  }

  /** Check that a document is a session, and report how its data differ from those of the page. */
  check(document, report) {
    const {scene, columns} = this.view;
    if (document === null || typeof document !== "object" || document.mercer !== SESSION_KIND) throw new SessionError("This is not a session of the explorer.");
    if (document.version !== SESSION_VERSION) throw new SessionError(`The session has version ${quoted(document.version)}, but this page reads version ${SESSION_VERSION}; use the version of mercer that wrote it.`);
    const {title, rows, columns: names, fingerprint} = expectObject(document.data ?? {}, ["title", "rows", "columns", "fingerprint"], report);
    if (fingerprint === scene.fingerprint) return;
    if (rows !== undefined && rows !== scene.rows) report(`the session is about ${typeof rows === "number" ? rows : quoted(rows)} rows${title ? ` of ${quoted(title)}` : ""}, but this page shows ${scene.rows}.`);
    const absent = Array.isArray(names) ? names.filter(name => !columns.some(column => column.name === name)) : [];
    if (absent.length) report(`this page has no column ${absent.slice(0, 5).map(quoted).join(", ")}${absent.length > 5 ? ` and ${absent.length - 5} more` : ""}.`);
    if (rows === scene.rows && !absent.length) report("the values differ from those for which the session was saved.");
  }

  /** Show a session that is given as text, and what could not be shown; `isInitial` is true while the page opens. */
  async applyText(text, isInitial = false) {
    const {view} = this;
    try {
      let document;
      try { document = JSON.parse(text); } catch { throw new SessionError("This is not a session of the explorer, because it is not JSON."); }
      const problems = await this.apply(document);
      if (problems === null) return;
      if (isInitial) view.history.reset(); else view.commit("open session");
      const more = problems.length > MAX_PROBLEMS ? [`${problems.length - MAX_PROBLEMS} more problems.`] : [];
      if (problems.length) view.notice(`The session was opened, except: ${[...problems.slice(0, MAX_PROBLEMS), ...more].join(" ")}`);
    } catch (error) {
      if (!(error instanceof SessionError)) throw error;
      view.notice(error.message);
    }
  }

  async open(file) {
    if (file.size > MAX_SESSION_BYTES) return this.view.notice(`${file.name} is too large to be a session.`);
    await this.applyText(await file.text());
  }

  async save() {
    const name = `${fileStem(this.view.scene.title)}-session.json`;
    download(name, "application/json", JSON.stringify(await this.document(), null, 1));
    this.view.announce(`Saved the session as ${name}.`);
  }

  async savePage() {
    this.view.link.send({type: "page", session: JSON.stringify(await this.document())});
  }

  // ---------------------------------------------------------------- the address

  /** Show the session of the address, or the one that the page contains, and write later changes to the address, unless it belongs to a notebook. */
  async start() {
    const {hash} = window.location, {scene, link} = this.view;
    this.isTracked = !link?.isEmbedded;
    if (!this.isTracked) return scene.session ? this.applyText(scene.session, true) : undefined;
    window.addEventListener("hashchange", () => { if (window.location.hash !== this.written) this.applyAddress(false); });
    if (hash.startsWith("#state=")) await this.applyAddress(true);
    else if (scene.session) await this.applyText(scene.session, true);
  }

  async applyAddress(isInitial) {
    const {hash} = window.location;
    if (!hash.startsWith("#state=")) return;
    this.written = hash;
    try {
      const bytes = fromBase64(hash.slice(7).replaceAll("-", "+").replaceAll("_", "/"));
      await this.applyText(new TextDecoder().decode(await inflate(bytes, MAX_SESSION_BYTES)), isInitial);
    } catch (error) {
      if (!(error instanceof SessionError)) throw error;
      this.view.notice(`The state in the address cannot be read: ${error.message}`);
    }
  }

  /** Update the address soon, because something may have changed. */
  touch() {
    if (!this.isTracked || this.timer) return;
    this.timer = setTimeout(async () => {
      this.timer = null;
      if (!this.isApplying) await this.writeAddress();
    }, ADDRESS_DELAY_MS);
  }

  async writeAddress() {
    const document = await this.document(), omitted = [];
    delete document.data.columns; // the fingerprint is sufficient
    const encode = async () => toBase64(await deflate(new TextEncoder().encode(JSON.stringify(document)))).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
    let code = await encode();
    for (const [key, words] of OMITTED_FROM_ADDRESS) {
      if (code.length <= MAX_ADDRESS_LENGTH) break;
      delete document[key];
      omitted.push(words);
      code = await encode();
    }
    this.note.hidden = !omitted.length;
    this.note.textContent = `The address of this page does not contain ${omitted.join(" and ")}, because it would be too long. If the page is reloaded, they are lost; save the session to keep them.`;
    if (this.isApplying || `#state=${code}` === this.written) return;
    this.written = `#state=${code}`;
    window.history.replaceState(window.history.state, "", this.written);
  }
}
