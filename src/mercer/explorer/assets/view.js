// The view: panes with a common selection, a table of it, and whatever a model behind a link can say.

let views = 0;
const ROWS = 100; // of the selection that the table shows
const FIELDS = 14; // of a record that a tip shows
const KEYS = [
  ["Tab", "from the tools to the maps and on"],
  ["← ↑ → ↓", "move the cross; the nearest point is read out"],
  ["Alt + arrows", "move it by little"],
  ["Shift + arrows", "move the map"],
  ["+  −  0", "zoom in, zoom out, show all"],
  ["Enter", "what would be here?"],
  ["Space", "put the point read out into the selection, or take it out"],
  ["L, Enter …, L", "a lasso: begin, set corners, close"],
  ["Escape", "leave the lasso, or clear the selection"],
];
const HANDS = [
  ["drag", "move the map, or draw with the lasso; Shift does the other one"],
  ["Ctrl, Alt", "a lasso adds to the selection, or takes from it"],
  ["wheel, pinch", "zoom"],
  ["click", "what would be here?"],
];

class View {
  /** Draw a scene into an element; `link` = {send(question)} leads to a model, null where there is none. */
  constructor(root, scene, link = null) {
    Object.assign(this, {root, link, number: ++views, tool: "move", size: 1, hovered: -1, drawing: false, token: 0, fitToken: 0, panes: []});
    this.theme = scene.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
    root.classList.add("mercer");
    root.explorer = this; // for whoever drives the page from outside
    this.build();
    this.load(scene);
  }

  id(name) { return `mercer-${this.number}-${name}`; }

  // ---------------------------------------------------------------- the frame

  build() {
    const press = (label, act, more = {}) => h("button", {type: "button", onclick: act, ...more}, label);
    const tool = (name, label, title) => press(label, () => this.take(name), {title, "aria-pressed": String(name === this.tool)});
    this.tools = {move: tool("move", "✥ Move", "Drag moves the map"), lasso: tool("lasso", "◌ Lasso", "Drag draws around points")};
    this.title = h("h1");
    this.total = h("span", {class: "soft"});
    this.search = h("input", {type: "search", placeholder: "Search: text, or column > 3", "aria-label": "Search", "aria-describedby": this.id("mistake"),
      title: SEARCH.map(pair => pair.join(": ")).join("\n"), onkeydown: event => {
      if (event.key === "Enter") this.find(this.search.value);
    }});
    this.mistake = h("p", {class: "trouble mistake", id: this.id("mistake"), role: "alert"});
    this.palette = h("select", {"aria-label": "Colour by", onchange: () => this.colourBy(this.palette.value)});
    this.grow = h("input", {type: "range", min: -2, max: 2, step: 0.25, value: 0, "aria-label": "Size of the points", oninput: () => {
      this.size = 2 ** Number(this.grow.value);
      this.redraw();
    }});
    this.lamp = press("", () => { this.theme = this.theme === "dark" ? "light" : "dark"; this.light(); });
    this.help = h("dialog", {"aria-label": "Keys and hands"}, h("h2", {}, "Keys"), pairs(KEYS), h("h2", {}, "Hands"), pairs(HANDS), h("h2", {}, "Search"), pairs(SEARCH),
      press("Close", () => this.help.close()));
    this.tip = h("div", {class: "tip", "aria-hidden": "true"});
    this.status = h("p", {class: "status", role: "status", "aria-live": "polite"});
    this.notices = h("div", {class: "notices", role: "alert"});
    this.maps = h("main", {class: "maps"});
    this.legend = h("div", {class: "legend"});
    this.card = h("div", {class: "answer"});
    this.chosenWords = h("p", {class: "soft"});
    this.saving = press("Save as CSV", () => this.saveSelection(), {disabled: true});
    this.clearing = press("Clear", () => this.clear(), {disabled: true});
    this.table = h("div", {class: "scroll", tabIndex: 0, role: "region", "aria-label": "Table of the selection"});
    this.model = h("section", {class: "model", hidden: true});
    this.spectra = h("section", {class: "spectra", hidden: true});
    this.notes = h("section", {class: "notes", hidden: true});
    const part = (title, ...inner) => h("section", {}, h("h2", {}, title), ...inner);
    this.side = h("aside", {"aria-label": "About the points"},
      part("Colour", this.palette, this.legend),
      part("What would be here?", this.card),
      this.model,
      part("Selection", this.chosenWords, h("div", {class: "row"}, this.saving, this.clearing), this.table),
      this.spectra, this.notes);
    this.root.replaceChildren(
      h("header", {class: "top"}, h("div", {class: "name"}, this.title, this.total),
        h("div", {class: "tools", role: "group", "aria-label": "Tools"}, this.tools.move, this.tools.lasso), this.search,
        h("label", {class: "size"}, "size", this.grow), this.lamp, press("?", () => this.help.showModal(), {title: "Keys and hands", "aria-label": "Keys and hands"})),
      this.mistake, this.notices, h("div", {class: "body"}, this.maps, this.side), this.status, this.tip, this.help,
      h("p", {id: this.id("keys"), class: "unseen"}, KEYS.map(pair => pair.join(": ")).join("; ")));
  }

  take(tool) {
    this.tool = tool;
    for (const [name, button] of Object.entries(this.tools)) button.setAttribute("aria-pressed", String(name === tool));
    this.root.dataset.tool = tool;
  }

  light() {
    this.root.dataset.theme = this.theme;
    this.lamp.textContent = this.theme === "dark" ? "☀" : "☾";
    const label = this.theme === "dark" ? "Light" : "Dark";
    this.lamp.title = label;
    this.lamp.setAttribute("aria-label", label);
    this.colourBy(this.color, false);
    this.drawSpectra();
  }

  // ---------------------------------------------------------------- the scene

  load(scene) {
    this.scene = scene;
    this.n = scene.rows;
    this.columns = scene.columns.map(told => new Column(told));
    this.waiting = new Map();
    this.hovered = -1;
    this.colours = new Uint32Array(this.n);
    this.chosen = new Uint8Array(this.n);
    this.count = 0;
    this.title.textContent = scene.title;
    this.total.textContent = `${this.n.toLocaleString("en")} points`;
    this.pixels = new Set(scene.image ? scene.image.columns : []);
    this.arrange(scene.panes);
    this.offer(scene.color);
    this.take(this.tool);
    this.light();
    this.card.replaceChildren(h("p", {class: "soft"}, this.link || scene.panes.some(told => told.preimages) ? "Click anywhere in a map." : "Click anywhere: the nearest points are shown. A saved page holds no model, so it cannot say what would be between them."));
    this.choose(this.chosen, null);
    if (this.form) this.form.edited = false;
    this.show({token: this.fitToken});
    this.controls(scene.controls);
    this.notes.hidden = !scene.notes.length;
    this.notes.replaceChildren(h("h2", {}, "Notes"), h("ul", {}, ...scene.notes.map(text => h("li", {}, text))));
    this.say(`${scene.title}: ${this.n} points.`);
  }

  arrange(panes) {
    if (this.panes.length !== panes.length) {
      this.panes.forEach(pane => pane.watch.disconnect());
      this.panes = panes.map((told, index) => new Pane(this, index, told));
      this.maps.replaceChildren(...this.panes.map(pane => pane.element));
      this.active = this.panes[0];
    } else panes.forEach((told, k) => this.panes[k].tell(told));
    this.maps.dataset.panes = panes.length;
    this.drawSpectra();
  }

  offer(color) {
    const option = column => h("option", {value: column.name}, column.name);
    const own = this.columns.filter((column, k) => !column.derived && !this.pixels.has(k)), made = this.columns.filter(column => column.derived);
    const group = (label, list) => list.length ? h("optgroup", {label}, ...list.map(option)) : null;
    this.palette.replaceChildren(h("option", {value: ""}, "one colour"), ...[group("columns", own), group("what the models say", made)].filter(Boolean));
    this.color = color && this.columns.some(column => column.name === color) ? color : "";
    this.palette.value = this.color;
  }

  /** The number of a point where it came from. */
  row(i) { return String(this.scene.ids ? this.scene.ids[i] : i + 1); }

  column(name) { return this.columns.find(column => column.name === name) || null; }

  /** A column with its values, which the link may have to bring. */
  async bring(column) {
    if (column.there || !this.link) return column.there;
    if (!this.waiting.has(column.name)) {
      this.waiting.set(column.name, new Promise(done => { column.arrived = done; }));
      this.link.send({ask: "column", name: column.name});
    }
    return this.waiting.get(column.name);
  }

  async colourBy(name, tell = true) {
    this.color = name;
    this.palette.value = name;
    const column = name ? this.column(name) : null;
    if (column && !column.there) {
      this.say(`Looking for ${name} …`);
      if (!(await this.bring(column)) || this.color !== name) return;
    }
    this.meaning = colouring(column, this.theme, this.colours);
    this.drawLegend();
    this.redraw();
    if (tell) this.say(column ? `Colours show ${name}.` : "All points have one colour.");
  }

  drawLegend() {
    const {meaning} = this, name = this.color;
    if (meaning.kind === "none") return this.legend.replaceChildren();
    if (meaning.kind === "numbers") {
      return this.legend.replaceChildren(h("div", {class: "ramp", style: `background: linear-gradient(90deg, ${meaning.stops.join(", ")})`}),
        h("div", {class: "ends"}, h("span", {}, brief(meaning.low)), h("span", {}, brief(meaning.high))));
    }
    const column = this.column(name), codes = list => new Set(list.map(one => one.code));
    const item = (label, colour, wanted, count) => h("button", {type: "button", class: "item", title: `Select ${label}`, "aria-label": `Select ${name} ${label}, ${count} points`, onclick: event => {
      this.choose(this.mixed(i => wanted.has(column.data[i]), mode(event)), `${name} ${label}`);
    }}, h("i", {style: `background: ${colour}`}), h("span", {}, label), h("small", {}, count.toLocaleString("en")));
    const items = meaning.classes.map(one => item(one.name, one.colour, codes([one]), one.count));
    if (meaning.rest.length) items.push(item(`${meaning.rest.length} others`, meaning.other, codes(meaning.rest), meaning.rest.reduce((sum, one) => sum + one.count, 0)));
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
      if (this.panes.length && this.panes.every(pane => pane.frame > 0)) this.root.dataset.drawn = String(Number(this.root.dataset.drawn || 0) + 1);
    });
  }

  drawSpectra() {
    const shown = this.panes.map(pane => pane.told).filter(told => told.spectrum);
    this.spectra.hidden = !shown.length;
    this.spectra.replaceChildren(...shown.flatMap(told => [h("h2", {}, `Spectrum of ${told.title}`), spectrum(told.spectrum), h("p", {class: "soft"}, told.spectrum.words)]));
  }

  // ---------------------------------------------------------------- points

  /** One line about a point. */
  describe(i) {
    const known = this.columns.filter((column, k) => column.there && !this.pixels.has(k)).slice(0, 6);
    return `Row ${this.row(i)}: ${known.map(column => `${column.name} ${column.say(i)}`).join(", ")}.`;
  }

  hover(pane, i, event = null) {
    if (i !== this.hovered) {
      this.hovered = i;
      this.panes.forEach(one => one.marks && one.decorate());
      if (i >= 0) this.tip.replaceChildren(...this.record(i));
    }
    this.tip.classList.toggle("on", i >= 0);
    if (i < 0) return;
    const frame = pane.over.getBoundingClientRect(), around = this.root.getBoundingClientRect();
    const [px, py] = pane.to(pane.x[i], pane.y[i]).map(p => p / pane.dense);
    const left = (event ? event.clientX : frame.left + px) - around.left + 16, top = (event ? event.clientY : frame.top + py) - around.top + 12;
    this.tip.style.left = `${Math.max(4, Math.min(left, around.width - this.tip.offsetWidth - 8))}px`;
    this.tip.style.top = `${top + this.tip.offsetHeight + 8 > around.height ? Math.max(4, top - this.tip.offsetHeight - 28) : top}px`;
  }

  record(i) {
    const known = this.columns.filter((column, k) => column.there && !this.pixels.has(k));
    const first = known.filter(column => column.name === this.color), rest = known.filter(column => column.name !== this.color);
    const rows = [["row", this.row(i)], ...[...first, ...rest].slice(0, FIELDS).map(column => [column.name, column.say(i)])];
    const more = known.length > FIELDS ? [h("p", {class: "soft"}, `and ${known.length - FIELDS} more columns`)] : [];
    return [...this.picture(k => this.columns[this.scene.image.columns[k]].at(i)), pairs(rows), ...more];
  }

  /** The picture of a point, where points are pictures. */
  picture(value) {
    const {image} = this.scene;
    if (!image || !image.columns.every(k => this.columns[k].there)) return [];
    const [rows, columns, depth = 1] = image.shape, canvas = h("canvas", {class: "picture", width: columns, height: rows, role: "img", "aria-label": "The point as a picture"});
    const pen = canvas.getContext("2d"), data = pen.createImageData(columns, rows), scale = 255 / (image.high - image.low || 1);
    for (let p = 0; p < rows * columns; p++) {
      for (let c = 0; c < 3; c++) data.data[4 * p + c] = (value(depth === 3 ? 3 * p + c : p) - image.low) * scale;
      data.data[4 * p + 3] = 255;
    }
    pen.putImageData(data, 0, 0);
    return [canvas];
  }

  // ---------------------------------------------------------------- the selection

  /** A mask of the points that meet a condition, with those already chosen as the mode says. */
  mixed(condition, how) {
    const mask = new Uint8Array(this.n);
    for (let i = 0; i < this.n; i++) {
      const now = condition(i) ? 1 : 0;
      mask[i] = how === "add" ? now | this.chosen[i] : how === "remove" ? this.chosen[i] & ~now : now;
    }
    return mask;
  }

  surround(pane, polygon, how) {
    const start = performance.now(), found = inside(pane.x, pane.y, polygon);
    this.polygon = polygon;
    this.choose(how === "set" ? found : this.mixed(i => found[i], how), "inside of the lasso");
    this.lassoed = performance.now() - start;
  }

  toggle(i) {
    const mask = this.chosen.slice();
    mask[i] ^= 1;
    this.choose(mask, "");
  }

  clear() { this.choose(new Uint8Array(this.n), ""); }

  choose(mask, why) {
    this.chosen = mask;
    let count = 0;
    for (let i = 0; i < mask.length; i++) count += mask[i];
    this.count = count;
    this.saving.disabled = this.clearing.disabled = !count;
    const words = count ? `${count.toLocaleString("en")} of ${this.n.toLocaleString("en")} points selected${why ? `: ${why}` : ""}.${this.shares()}` : "No points selected.";
    this.chosenWords.textContent = words;
    this.say(words);
    this.drawTable();
    this.redraw();
    if (this.link && why !== null) this.link.send({ask: "select", rows: written(new Uint8Array(this.ids().buffer))});
  }

  /** How the selection is made up of classes, largest first. */
  shares() {
    const column = this.color ? this.column(this.color) : null;
    if (!column || !column.there || !column.categories()) return "";
    const tally = new Map();
    for (let i = 0; i < this.n; i++) if (this.chosen[i]) tally.set(column.data[i], (tally.get(column.data[i]) || 0) + 1);
    const named = column.categories().filter(one => tally.has(one.code)).map(one => [one.name, tally.get(one.code)]).sort((a, b) => b[1] - a[1]);
    return ` ${column.name}: ${named.slice(0, 4).map(([name, count]) => `${name} (${count})`).join(", ")}${named.length > 4 ? ", …" : ""}.`;
  }

  /** The rows that are chosen, counted from 0. */
  ids() {
    const found = new Uint32Array(this.count);
    for (let i = 0, k = 0; i < this.n; i++) if (this.chosen[i]) found[k++] = i;
    return found;
  }

  drawTable() {
    if (!this.count) return this.table.replaceChildren();
    const shown = this.columns.filter((column, k) => column.there && !this.pixels.has(k)), rows = this.ids().slice(0, ROWS);
    const line = (tag, cells) => h("tr", {}, ...cells.map(cell => h(tag, {}, cell)));
    const lines = [...rows].map(i => {
      const row = line("td", [this.row(i), ...shown.map(column => column.say(i))]);
      row.addEventListener("pointerenter", () => this.hover(this.panes[0], i));
      return row;
    });
    const table = h("table", {}, h("thead", {}, line("th", ["row", ...shown.map(column => column.name)])), h("tbody", {}, ...lines));
    this.table.replaceChildren(table, ...(this.count > ROWS ? [h("p", {class: "soft"}, `The first ${ROWS} rows; the file that is saved has all ${this.count.toLocaleString("en")}.`)] : []));
  }

  /** The selection as CSV: the number of each row, and all columns. */
  async csv() {
    const own = this.columns.filter(column => !column.derived);
    await Promise.all(own.map(column => this.bring(column)));
    const shown = this.columns.filter(column => column.there);
    const cell = value => value === null ? "" : typeof value === "number" ? String(value) : /[",\r\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value;
    const lines = [["row", ...shown.map(column => column.name)].map(cell).join(",")];
    for (const i of this.ids()) lines.push([this.row(i), ...shown.map(column => column.at(i))].map(cell).join(","));
    return lines.join("\n") + "\n";
  }

  async saveSelection() {
    download("selection.csv", "text/csv", await this.csv());
    this.say(`Saved ${this.count} rows as selection.csv.`);
  }

  /** Select the rows that a query finds, see query.js; a query with a mistake changes nothing but the message. */
  async find(text) {
    text = text.trim();
    this.fault("");
    if (!text) return this.clear();
    const own = this.columns.filter(one => one.there && !one.derived);
    try {
      const query = parseQuery(text, this.columns);
      for (const column of queryColumns(query)) {
        if (!column.there) this.say(`Looking for ${column.name} …`);
        if (!(await this.bring(column)) && !column.there) throw new QueryError(`The values of ${column.name} are not available.`);
      }
      this.choose(this.mixed(matcher(query, own), "set"), query.text === undefined ? text : `"${query.text}"`);
      if (!this.count) this.say(`Nothing found for "${text}".`);
    } catch (error) {
      if (!(error instanceof QueryError)) throw error;
      this.fault(error.message);
    }
  }

  /** Report a mistake in the search box, or none. */
  fault(text) {
    this.search.setAttribute("aria-invalid", String(Boolean(text)));
    this.mistake.textContent = text;
    if (text) this.say(text);
  }

  // ---------------------------------------------------------------- questions to the model

  /** What would be at a place of a map? */
  ask(pane, x, y) {
    this.panes.forEach(one => { one.place = one === pane ? [x, y] : null; });
    this.redraw();
    const where = `${pane.told.title}, at ${this.spot(x)}, ${this.spot(y)}`;
    if (this.link && pane.told.decodes) {
      this.card.replaceChildren(h("p", {class: "soft"}, `${where}: looking …`));
      this.link.send({ask: "place", pane: pane.index, x, y, token: ++this.token});
      return;
    }
    if (pane.told.preimages) return this.recall(pane.told, x, y);
    const near = nearest(pane.x, pane.y, x, y, 1, 1, Infinity), why = this.link ? `${pane.told.title} has no way back to points.` : "A saved page holds no model.";
    this.card.replaceChildren(h("p", {class: "soft"}, `${where}. ${why} The nearest point:`), ...(near < 0 ? [] : this.record(near)));
    this.say(`${why} The nearest: ${near < 0 ? "none" : this.describe(near)}`);
  }

  /** What would be at the nearest place of a grid, computed when the page was made. */
  recall({title, preimages: {count, left, right, low, high, names, values, words}}, x, y) {
    const at = (value, from, to) => Math.max(0, Math.min(count - 1, Math.round((value - from) / (to - from || 1) * (count - 1))));
    const c = at(x, left, right), r = at(y, low, high), k = r * count + c, d = names.length, point = values.subarray(k * d, (k + 1) * d);
    const place = [left + (right - left) * c / (count - 1 || 1), low + (high - low) * r / (count - 1 || 1)];
    const image = this.scene.image ? point : null, record = image ? [] : names.map((name, j) => [name, brief(point[j])]);
    this.answer({title, place, image, record, words: `The nearest of ${count} × ${count} places that were looked at. ${words[k]}`});
  }

  /** A coordinate of the place that was asked for, in the digits that a pixel is worth. */
  spot(value) {
    const scale = this.panes.find(pane => pane.place)?.scale || 1;
    return String(Number(value.toFixed(Math.max(0, Math.min(12, Math.ceil(Math.log10(scale)))))));
  }

  receive(message) {
    const {kind} = message;
    if (kind === "scene") this.load(message);
    else if (kind === "maps") this.renew(message);
    else if (kind === "column") {
      const column = this.column(message.name);
      if (message.error) this.say(message.error);
      else column.fill(message);
      this.waiting.delete(message.name);
      column.arrived?.(!message.error);
      if (this.count) this.drawTable();
    } else if (kind === "place" && message.token === this.token) this.answer(message);
    else if (kind === "field") {
      const pane = this.panes[message.pane];
      pane.field = message.values ? message : null;
      pane.draw();
      if (message.words) this.say(message.words);
    } else if (kind === "state") this.show(message);
    else if (kind === "page") download(message.name, "text/html", message.bytes);
    else if (kind === "notice") this.notice(message.text, message.act);
  }

  /** Take new places of the same points. */
  renew(message) {
    for (const column of this.columns.filter(one => one.derived)) column.fill({});
    this.columns = [...this.columns.filter(one => !one.derived), ...message.columns.map(told => new Column(told))];
    const color = this.color;
    this.arrange(message.panes);
    this.offer(color);
    if (this.color !== color || !this.column(color)?.there) this.colourBy(this.color, false);
    this.controls(message.controls, message.token);
    this.redraw();
  }

  answer({record, image, words, title, place, pane}) {
    const [x, y] = place, picture = image ? this.picture(k => image[k]) : [];
    this.card.replaceChildren(h("p", {}, `${title}, at ${this.spot(x)}, ${this.spot(y)}`), ...picture, pairs(record), h("p", {class: "soft"}, words));
    this.card.scrollIntoView({block: "nearest"});
    const what = image ? "a picture" : record.slice(0, 6).map(pair => pair.join(" ")).join(", ");
    this.say(record.length || image ? `What would be here: ${what}. ${words}` : words);
  }

  notice(text, act) {
    const line = h("p", {}, text, act ? h("button", {type: "button", onclick: () => { line.remove(); this.link.send({ask: act}); }}, "Read it again") : null,
      h("button", {type: "button", "aria-label": "Dismiss", onclick: () => line.remove()}, "×"));
    this.notices.replaceChildren(line);
  }

  say(text) { this.status.textContent = text; }
}

// ------------------------------------------------------------------ parts

/** Names and values, one pair a line. */
function pairs(rows) {
  return h("dl", {}, ...rows.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}

function download(name, type, content) {
  const link = h("a", {href: URL.createObjectURL(new Blob([content], {type})), download: name});
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

/** Bars of eigenvalues, each with the bounds between which the exact one is proved to lie. */
function spectrum({values, lower, upper, shares}) {
  const NS = "http://www.w3.org/2000/svg", n = values.length, w = 300, t = 110, wide = Math.min(36, (w - 20) / n);
  const put = (parent, tag, given, text) => {
    const node = document.createElementNS(NS, tag);
    for (const key in given) node.setAttribute(key, given[key]);
    if (text !== undefined) node.textContent = text;
    parent.append(node);
    return node;
  };
  const most = Math.max(...values, ...upper.filter(v => v !== null)) || 1, Y = v => t - 16 - (t - 30) * Math.max(0, v) / most;
  const svg = document.createElementNS(NS, "svg");
  svg.setAttribute("viewBox", `0 0 ${w} ${t}`);
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", `Eigenvalues ${values.slice(0, 8).map(brief).join(", ")}`);
  values.forEach((value, k) => {
    const x = 10 + k * wide, bar = put(svg, "rect", {x: x + 2, y: Y(value), width: Math.max(1, wide - 4), height: Math.max(0.5, t - 16 - Y(value)), class: "bar"});
    const between = upper[k] === null ? "no bound" : `proved to lie in ${lower[k].toPrecision(8)} … ${upper[k].toPrecision(8)}`;
    put(bar, "title", {}, `component ${k + 1}: ${value.toPrecision(8)}, ${between}`);
    if (upper[k] !== null) put(svg, "path", {d: `M${x + wide / 2} ${Y(lower[k])}V${Y(upper[k])}M${x + 2} ${Y(upper[k])}h${Math.max(1, wide - 4)}M${x + 2} ${Y(lower[k])}h${Math.max(1, wide - 4)}`, class: "bound"});
    if (n <= 10) {
      put(svg, "text", {x: x + wide / 2, y: t - 3, "text-anchor": "middle"}, String(k + 1));
      if (shares) put(svg, "text", {x: x + wide / 2, y: Y(value) - 4, "text-anchor": "middle"}, `${(100 * shares[k]).toFixed(0)}%`);
    }
  });
  return svg;
}

/** Draw a scene into an element. */
export function mount(root, scene, link = null) { return new View(root, scene, link); }
