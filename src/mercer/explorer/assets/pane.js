// A pane: one map of the points, with what is drawn over it.

const SIZES = [[500, 4.5], [3000, 3.6], [20000, 2.6], [60000, 1.9], [150000, 1.4], [400000, 1], [Infinity, 0.7]];
const CLICK = 4; // pixels that a hand moves during a click

/** An element: properties, and children that are elements or texts (never markup). */
function h(tag, given = {}, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(given)) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key === "class") node.className = value;
    else if (key in node && key !== "list") node[key] = value;
    else node.setAttribute(key, value);
  }
  node.append(...children.filter(child => child !== null && child !== undefined));
  return node;
}

class Pane {
  constructor(host, index, told) {
    Object.assign(this, {host, index, lasso: null, cursor: null, place: null, field: null, frame: 0, pointers: new Map()});
    this.base = h("canvas", {"aria-hidden": "true"});
    this.over = h("canvas", {
      class: "over", tabIndex: 0, role: "application",
      "aria-roledescription": "map of points", "aria-describedby": host.id("keys"),
    });
    const button = (text, label, act) => h("button", {type: "button", title: label, "aria-label": label, onclick: act}, text);
    this.heading = h("h2");
    this.axes = h("span", {class: "axes"});
    this.stage = h("div", {class: "stage"}, this.base, this.over, h("div", {class: "zoom"},
      button("+", "Zoom in", () => this.zoom(1.5)),
      button("−", "Zoom out", () => this.zoom(1 / 1.5)),
      button("⤢", "Show all points", () => this.fit())));
    this.element = h("section", {class: "pane"}, h("header", {}, this.heading, this.axes), this.stage);
    this.tell(told);
    this.listen();
    this.watch = new ResizeObserver(() => this.resize());
    this.watch.observe(this.stage);
  }

  /** Take places, which a new fit may have changed. */
  tell(told) {
    const fresh = !this.told || this.told.x.length !== told.x.length;
    Object.assign(this, {told, x: told.x, y: told.y, place: null, field: told.field || null});
    this.heading.textContent = told.title;
    this.axes.textContent = `→ ${told.axes[0]}   ↑ ${told.axes[1]}`;
    this.over.setAttribute("aria-label", `${told.title}: ${told.x.length} points. Across: ${told.axes[0]}. Up: ${told.axes[1]}.`);
    this.measure();
    if (fresh || !this.moved) this.fit(); else this.draw();
  }

  measure() {
    let left = Infinity, right = -Infinity, low = Infinity, high = -Infinity;
    for (let i = 0; i < this.x.length; i++) {
      const x = this.x[i], y = this.y[i];
      if (x < left) left = x;
      if (x > right) right = x;
      if (y < low) low = y;
      if (y > high) high = y;
    }
    if (left > right) [left, right, low, high] = [-1, 1, -1, 1];
    this.box = {left, right, low, high};
  }

  // ---------------------------------------------------------------- where we look

  get width() { return this.base.width; }
  get height() { return this.base.height; }

  resize() {
    const dense = window.devicePixelRatio || 1;
    const w = Math.round(this.stage.clientWidth * dense), t = Math.round(this.stage.clientHeight * dense);
    if (!w || !t || (w === this.width && t === this.height)) return;
    for (const canvas of [this.base, this.over]) { canvas.width = w; canvas.height = t; }
    this.dense = dense;
    this.image = null;
    if (!this.moved) this.fit(); else this.draw();
  }

  /** Show all points; lengths are the same across and up. */
  fit() {
    const {left, right, low, high} = this.box;
    this.middle = [(left + right) / 2, (low + high) / 2];
    const w = right - left, t = high - low;
    this.scale = w || t ? 0.9 * Math.min(this.width / (w || 1e-300), this.height / (t || 1e-300)) : 1;
    this.whole = this.scale;
    this.moved = false;
    this.draw();
  }

  /** From places to pixels. */
  get see() {
    const [cx, cy] = this.middle, s = this.scale;
    return {sx: s, sy: -s, tx: this.width / 2 - cx * s, ty: this.height / 2 + cy * s};
  }

  at(px, py) {
    const {sx, sy, tx, ty} = this.see;
    return [(px - tx) / sx, (py - ty) / sy];
  }

  to(x, y) {
    const {sx, sy, tx, ty} = this.see;
    return [x * sx + tx, y * sy + ty];
  }

  zoom(factor, px = this.width / 2, py = this.height / 2) {
    const next = Math.max(this.whole / 20, Math.min(this.whole * 1e5, this.scale * factor));
    const [x, y] = this.at(px, py);
    this.scale = next;
    this.middle = [x - (px - this.width / 2) / next, y + (py - this.height / 2) / next];
    this.moved = true;
    this.draw();
  }

  pan(dx, dy) {
    this.middle = [this.middle[0] - dx / this.scale, this.middle[1] + dy / this.scale];
    this.moved = true;
    this.draw();
  }

  // ---------------------------------------------------------------- drawing

  draw() { this.stale = true; this.host.schedule(); }

  /** Draw the points now, if anything has changed. */
  render() {
    if (!this.stale || !this.dense) return; // its size is not known yet
    this.stale = false;
    const start = performance.now(), {host, width, height} = this, look = THEMES[host.theme];
    const n = this.x.length, grown = Math.min(3, Math.max(1, (this.scale / this.whole) ** 0.35));
    const radius = SIZES.find(([most]) => n <= most)[1] * host.size * grown * this.dense;
    const margin = 2 * Math.ceil(radius) + 2, w = width + 2 * margin, t = height + 2 * margin;
    if (!this.image || this.image.width !== w || this.image.height !== t) {
      this.image = new ImageData(w, t);
      this.pixels = new Uint32Array(this.image.data.buffer);
    }
    const {pixels, see} = this, brush = this.base.getContext("2d");
    pixels.fill(pixel(look.paper));
    this.grid(pixels, w, t, margin, pixel(look.grid));
    const chosen = host.count > 0 ? host.chosen : null, fine = n > 20000 ? 1 : 0.82;
    if (chosen) {
      paint(pixels, w, t, margin, see, this.x, this.y, null, pixel(look.grey), chosen, 0, radius * 0.9, fine * 0.75);
      paint(pixels, w, t, margin, see, this.x, this.y, host.colours, null, chosen, 1, radius * (n > 20000 ? 1 : 1.12), 0.95);
    } else paint(pixels, w, t, margin, see, this.x, this.y, host.colours, null, null, 0, radius, fine);
    brush.putImageData(this.image, -margin, -margin);
    this.decorate();
    this.frame = performance.now() - start;
  }

  grid(pixels, w, t, margin, colour) {
    const [left, high] = this.at(0, 0), [right, low] = this.at(this.width, this.height);
    const count = Math.max(2, Math.round(this.width / 130 / this.dense));
    this.marks = [ticks(left, right, count), ticks(low, high, Math.max(2, Math.round(this.height / 110 / this.dense)))];
    for (const x of this.marks[0]) {
      const c = Math.round(this.to(x, 0)[0]) + margin;
      for (let r = 0; r < t; r++) pixels[r * w + c] = colour;
    }
    for (const y of this.marks[1]) {
      const r = Math.round(this.to(0, y)[1]) + margin;
      pixels.fill(colour, r * w, (r + 1) * w);
    }
  }

  /** Draw what lies over the points: numbers of the axes, contours, the lasso, marks. */
  decorate() {
    const {host, dense} = this, look = THEMES[host.theme], pen = this.over.getContext("2d");
    pen.clearRect(0, 0, this.width, this.height);
    pen.font = `${11 * dense}px system-ui, sans-serif`;
    pen.lineWidth = dense;
    pen.fillStyle = look.soft;
    for (const x of this.marks[0]) {
      const at = this.to(x, 0)[0];
      if (at > 30 * dense && at < this.width - 70 * dense) { pen.textAlign = "center"; pen.fillText(brief(x), at, this.height - 6 * dense); }
    }
    pen.textAlign = "left";
    for (const y of this.marks[1]) {
      const at = this.to(0, y)[1];
      if (at > 14 * dense && at < this.height - 22 * dense) pen.fillText(brief(y), 6 * dense, at - 3 * dense);
    }
    if (this.field) this.contours(pen, look);
    if (this.lasso && this.lasso.length) {
      pen.beginPath();
      this.lasso.forEach(([x, y]) => pen.lineTo(...this.to(x, y)));
      if (this.cursor && this.host.drawing) pen.lineTo(...this.to(...this.cursor));
      pen.setLineDash([5 * dense, 4 * dense]);
      pen.strokeStyle = look.mark;
      pen.lineWidth = 1.6 * dense;
      pen.stroke();
      pen.setLineDash([]);
      pen.globalAlpha = 0.08;
      pen.fillStyle = look.mark;
      pen.fill();
      pen.globalAlpha = 1;
    }
    if (this.place) {
      const [px, py] = this.to(...this.place), r = 7 * dense;
      for (const [wide, colour] of [[4.5, look.paper], [2, look.mark]]) {
        pen.beginPath();
        pen.moveTo(px - r, py); pen.lineTo(px + r, py); pen.moveTo(px, py - r); pen.lineTo(px, py + r);
        pen.lineWidth = wide * dense;
        pen.strokeStyle = colour;
        pen.stroke();
      }
    }
    if (host.hovered >= 0) {
      const [px, py] = this.to(this.x[host.hovered], this.y[host.hovered]);
      for (const [wide, colour] of [[4, look.paper], [1.8, look.ink]]) {
        pen.beginPath();
        pen.arc(px, py, 7.5 * dense, 0, 2 * Math.PI);
        pen.lineWidth = wide * dense;
        pen.strokeStyle = colour;
        pen.stroke();
      }
    }
    if (this.cursor) {
      const [px, py] = this.to(...this.cursor);
      pen.beginPath();
      pen.moveTo(px, 0); pen.lineTo(px, this.height); pen.moveTo(0, py); pen.lineTo(this.width, py);
      pen.lineWidth = dense;
      pen.globalAlpha = 0.55;
      pen.strokeStyle = look.mark;
      pen.stroke();
      pen.globalAlpha = 1;
    }
  }

  contours(pen, look) {
    const {field, dense} = this;
    if (!field.lines) field.lines = field.levels.map(level => ({level, segments: contour(field, level)}));
    pen.strokeStyle = look.ink;
    for (const {level, segments} of field.lines) {
      pen.lineWidth = (level === 0 ? 1.8 : 1) * dense;
      pen.globalAlpha = level === 0 ? 0.8 : 0.45;
      pen.setLineDash(level < 0 ? [4 * dense, 3 * dense] : []);
      pen.beginPath();
      let widest = null, reach = 0;
      for (const [a, b] of segments) {
        const [ax, ay] = this.to(...a), [bx, by] = this.to(...b);
        pen.moveTo(ax, ay); pen.lineTo(bx, by);
        const d = -Math.abs(ax - this.width / 2) - Math.abs(ay - this.height / 3);
        if (ax > 0 && ay > 20 * dense && ax < this.width && ay < this.height && (widest === null || d > reach)) { widest = [ax, ay]; reach = d; }
      }
      pen.stroke();
      if (widest) {
        pen.globalAlpha = 1;
        pen.textAlign = "center";
        pen.lineWidth = 3 * dense;
        pen.setLineDash([]);
        pen.strokeStyle = look.paper;
        pen.strokeText(brief(level), ...widest);
        pen.fillStyle = look.ink;
        pen.fillText(brief(level), ...widest);
        pen.strokeStyle = look.ink;
      }
    }
    pen.setLineDash([]);
    pen.globalAlpha = 1;
  }

  // ---------------------------------------------------------------- the hand

  spot(event) {
    const frame = this.over.getBoundingClientRect();
    return [(event.clientX - frame.left) * this.width / frame.width, (event.clientY - frame.top) * this.height / frame.height];
  }

  listen() {
    const {over, host} = this;
    let last = null, begun = null, dragging = false;
    over.addEventListener("pointerdown", event => {
      if (event.button !== 0) return;
      over.setPointerCapture(event.pointerId);
      this.pointers.set(event.pointerId, this.spot(event));
      begun = last = this.spot(event);
      dragging = false;
      this.cursor = null;
      this.lasso = (host.tool === "lasso") !== event.shiftKey && this.pointers.size === 1 ? [this.at(...begun)] : null;
    });
    over.addEventListener("pointermove", event => {
      const now = this.spot(event);
      if (!this.pointers.has(event.pointerId)) return this.point(event, now);
      if (this.pointers.size === 2) return this.pinch(event, now);
      dragging = dragging || Math.hypot(now[0] - begun[0], now[1] - begun[1]) > CLICK * this.dense;
      if (this.lasso) {
        this.lasso.push(this.at(...now));
        this.decorate();
      } else if (dragging) this.pan(now[0] - last[0], now[1] - last[1]);
      last = now;
      this.pointers.set(event.pointerId, now);
    });
    const end = event => {
      if (!this.pointers.delete(event.pointerId)) return;
      const drawn = this.lasso;
      this.lasso = null;
      if (event.type === "pointercancel") return this.draw();
      if (!dragging) host.ask(this, ...this.at(...this.spot(event)));
      else if (drawn) host.surround(this, drawn, mode(event));
    };
    over.addEventListener("pointerup", end);
    over.addEventListener("pointercancel", end);
    over.addEventListener("pointerleave", () => { if (!this.cursor) host.hover(this, -1); });
    over.addEventListener("wheel", event => {
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0015)), ...this.spot(event));
    }, {passive: false});
    over.addEventListener("keydown", event => this.key(event));
    over.addEventListener("focus", () => { host.active = this; });
    over.addEventListener("blur", () => { this.cursor = null; this.draw(); });
  }

  point(event, now) {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      const [x, y] = this.at(...now);
      this.host.hover(this, nearest(this.x, this.y, x, y, this.scale, this.scale, 9 * this.dense), event);
    });
  }

  pinch(event, now) {
    const old = this.pointers.get(event.pointerId);
    const other = [...this.pointers].find(([id]) => id !== event.pointerId)[1];
    const before = Math.hypot(old[0] - other[0], old[1] - other[1]), after = Math.hypot(now[0] - other[0], now[1] - other[1]);
    this.lasso = null;
    this.pointers.set(event.pointerId, now);
    if (before > 0) this.zoom(after / before, (now[0] + other[0]) / 2, (now[1] + other[1]) / 2);
  }

  /** All that a hand can do, by keys: see the words behind "?". */
  key(event) {
    const {host} = this, far = 24 * this.dense;
    const arrows = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]};
    if (event.ctrlKey || event.metaKey) return;
    if (event.key in arrows) {
      const [dx, dy] = arrows[event.key].map(d => d * (event.altKey ? far / 6 : far));
      if (event.shiftKey) this.pan(-2 * dx, -2 * dy);
      else {
        const [px, py] = this.cursor ? this.to(...this.cursor) : [this.width / 2, this.height / 2];
        this.cursor = this.at(Math.max(0, Math.min(this.width, px + dx)), Math.max(0, Math.min(this.height, py + dy)));
        this.look();
      }
    } else if (event.key === "+" || event.key === "=") this.zoom(1.25, ...this.eye());
    else if (event.key === "-" || event.key === "_") this.zoom(0.8, ...this.eye());
    else if (event.key === "0") this.fit();
    else if (event.key === "Enter") {
      const at = this.cursor || this.middle;
      if (host.drawing) { this.lasso.push(at); host.say(`Corner ${this.lasso.length} of the lasso.`); } else host.ask(this, ...at);
    } else if (event.key === "l" || event.key === "L") {
      if (!host.drawing) {
        this.lasso = [];
        host.drawing = true;
        host.say("Lasso: arrows move, Enter sets a corner, L closes it, Escape leaves it.");
      } else {
        const drawn = this.lasso;
        host.drawing = false;
        this.lasso = null;
        host.surround(this, drawn, event.shiftKey ? "add" : "set");
      }
    } else if (event.key === " ") {
      if (host.hovered >= 0) host.toggle(host.hovered);
    } else if (event.key === "Escape") {
      if (host.drawing) { host.drawing = false; this.lasso = null; this.draw(); } else host.clear();
    } else return;
    event.preventDefault();
    this.decorate();
  }

  eye() { return this.cursor ? this.to(...this.cursor) : [this.width / 2, this.height / 2]; }

  /** Hover the point nearest to the cursor of the keyboard. */
  look() {
    const i = nearest(this.x, this.y, ...this.cursor, this.scale, this.scale, 40 * this.dense);
    this.host.hover(this, i);
    this.host.say(i < 0 ? `No point near ${this.cursor.map(brief).join(", ")}.` : this.host.describe(i));
  }
}

const mode = event => event.altKey ? "remove" : event.ctrlKey || event.metaKey ? "add" : "set";
