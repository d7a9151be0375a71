// A pane: one embedding of the points, with an overlay of axes, contours, lasso and markers.

// [maximum number of points, radius in pixels]: the more points there are, the smaller they are drawn.
const POINT_RADII = [[500, 4.5], [3000, 3.6], [20000, 2.6], [60000, 1.9], [150000, 1.4], [400000, 1], [Infinity, 0.7]];
const INSETS = [60, 50, 22, 48]; // space around the points (left, right, top, bottom) for the labels of the axes, in CSS pixels
const LABEL_MARGINS = {left: 56, right: 48, top: 14, bottom: 34}; // space around the labels of the axes, for the titles and the buttons, in CSS pixels
const HALF_LABEL = 12; // half of the width of a usual label, in CSS pixels
const DENSITY_POINTS = 5e4; // from this number of points, the opacity of a pixel depends on the number of its points
const CLICK_TOLERANCE = 4; // a pointer that moves by more pixels is dragging, not clicking

class Pane {
  constructor(view, index, message) {
    Object.assign(this, {view, index, lasso: null, cursor: null, marker: null, field: null, renderTime: 0, pointers: new Map()});
    this.base = h("canvas", {"aria-hidden": "true"});
    this.over = h("canvas", {
      class: "over", tabIndex: 0, role: "application",
      "aria-roledescription": "scatter plot", "aria-describedby": view.id("keys"),
    });
    const button = (text, label, action) => h("button", {type: "button", title: label, "aria-label": label, onclick: action}, text);
    this.heading = h("h2");
    this.componentsButton = h("button", {type: "button", class: "small", title: "Show all pairs of components", onclick: () => view.components.open(this)}, "Components");
    this.axes = [h("p", {class: "axis across"}), h("p", {class: "axis up"})];
    this.stage = h("div", {class: "stage"}, this.base, this.over, ...this.axes);
    const tools = h("div", {class: "zoom"}, // in small panes they are in the header, see view.css
      button("+", "Zoom in", () => this.zoom(1.5)),
      button("−", "Zoom out", () => this.zoom(1 / 1.5)),
      button("⤢", "Show all points", () => this.fit()), ...this.overlayButtons(), pictureMenu(this));
    this.element = h("section", {class: "pane"}, h("header", {}, this.heading, this.componentsButton, tools), this.stage);
    this.update(message);
    this.addListeners();
    this.resizeObserver = new ResizeObserver(() => this.resize());
    this.resizeObserver.observe(this.stage);
  }

  /** Show an embedding; points move to their new positions. The zoom is preserved if the number of points is the same and the user has zoomed. */
  update(message) {
    const fresh = !this.message || this.message.x.length !== message.x.length || this.message.title !== message.title, start = Transition.startOf(this, message);
    this.transition?.stop();
    Object.assign(this, {message, x: message.x, y: message.y, marker: null, field: message.field || null});
    this.componentsButton.hidden = message.dimensions.length < 3;
    this.heading.textContent = this.heading.title = message.title;
    this.showAxisTitles();
    this.over.setAttribute("aria-label", `${message.title}: ${message.x.length} points. Horizontal axis: ${message.axes[0]}. Vertical axis: ${message.axes[1]}.`);
    this.updateClusters(message.clusters);
    this.bounds = boundsOf(this.x, this.y);
    if (fresh || !this.userMoved) this.fit(); else this.draw();
    if (start) this.transition = new Transition(this, start);
  }

  /** Show the titles of the axes, shortened if they do not fit: "component 1 (23 % of the variance)", "component 1 (23 %)", "component 1". */
  showAxisTitles() {
    this.axes.forEach((label, side) => {
      const title = this.message.axes[side];
      for (const text of [title, title.replace(" of the variance)", ")"), title.replace(/ \(.*\)$/, "")]) {
        label.textContent = text;
        if (label.scrollWidth <= label.clientWidth && label.scrollHeight <= label.clientHeight) break;
      }
    });
  }

  // ---------------------------------------------------------------- pan and zoom

  get width() { return this.base.width; }
  get height() { return this.base.height; }

  resize() {
    const pixelRatio = window.devicePixelRatio || 1;
    const w = Math.round(this.stage.clientWidth * pixelRatio), t = Math.round(this.stage.clientHeight * pixelRatio);
    if (!w || !t || (w === this.width && t === this.height)) return;
    for (const canvas of [this.base, this.over]) { canvas.width = w; canvas.height = t; }
    this.pixelRatio = pixelRatio;
    this.image = null;
    this.showAxisTitles();
    if (this.wanted) this.moveTo(this.wanted);
    else if (!this.userMoved) this.fit(); else this.draw();
  }

  get insets() { return INSETS.map(inset => Math.min(inset * (this.pixelRatio || 1), this.width / 5)); }

  /** The scale, in pixels per unit, at which all points are visible. */
  get fitScale() {
    const {left, right, low, high} = this.bounds, w = right - left, t = high - low, [inLeft, inRight, inTop, inBottom] = this.insets;
    return w || t ? Math.min((this.width - inLeft - inRight) / (w || 1e-300), (this.height - inTop - inBottom) / (t || 1e-300)) : 1;
  }

  /** Return the part of the embedding that the pane shows, for a session; the zoom does not depend on the size of the pane. */
  position() { return this.wanted || {centre: this.centre, zoom: this.scale / this.fitScale, userMoved: this.userMoved}; }

  /** Show a position, as soon as the size of the pane is known. */
  moveTo(position) {
    if (!this.pixelRatio) { this.wanted = position; return; }
    this.wanted = null;
    if (!position.userMoved) return this.fit();
    Object.assign(this, {centre: position.centre, scale: position.zoom * this.fitScale, userMoved: true});
    this.draw();
  }

  /** Show all points, with the same scale on both axes. */
  fit() {
    const {left, right, low, high} = this.bounds;
    const [inLeft, inRight, inTop, inBottom] = this.insets;
    this.scale = this.fitScale;
    this.centre = [(left + right + (inRight - inLeft) / this.scale) / 2, (low + high + (inTop - inBottom) / this.scale) / 2];
    this.userMoved = false;
    if (this.transition) this.transition.movesArea = false;
    this.draw();
  }

  /** The transform from coordinates to pixels. */
  get transform() {
    const [cx, cy] = this.centre, s = this.scale;
    return {sx: s, sy: -s, tx: this.width / 2 - cx * s, ty: this.height / 2 + cy * s};
  }

  toData(px, py) {
    const {sx, sy, tx, ty} = this.transform;
    return [(px - tx) / sx, (py - ty) / sy];
  }

  toPixels(x, y) {
    const {sx, sy, tx, ty} = this.transform;
    return [x * sx + tx, y * sy + ty];
  }

  zoom(factor, px = this.width / 2, py = this.height / 2) {
    const next = Math.max(this.fitScale / 20, Math.min(this.fitScale * 1e5, this.scale * factor));
    const [x, y] = this.toData(px, py);
    this.scale = next;
    this.centre = [x - (px - this.width / 2) / next, y + (py - this.height / 2) / next];
    this.userMoved = true;
    this.draw();
  }

  pan(dx, dy) {
    this.centre = [this.centre[0] - dx / this.scale, this.centre[1] + dy / this.scale];
    this.userMoved = true;
    this.draw();
  }

  // ---------------------------------------------------------------- drawing

  draw() { this.stale = true; this.view.schedule(); }

  /** Draw the points if anything has changed. */
  render() {
    if (!this.stale || !this.pixelRatio) return; // the size of the pane is not known yet
    this.stale = false;
    const start = performance.now(), {view, width, height} = this, theme = THEMES[view.theme];
    const {radius} = this, n = this.x.length;
    const margin = 2 * Math.ceil(radius) + 2, w = width + 2 * margin, t = height + 2 * margin;
    if (!this.image || this.image.width !== w || this.image.height !== t) {
      this.image = new ImageData(w, t);
      this.pixels = new Uint32Array(this.image.data.buffer);
    }
    const {pixels, transform} = this, brush = this.base.getContext("2d");
    pixels.fill(hexToPixel(theme.paper));
    this.grid(pixels, w, t, margin, hexToPixel(theme.grid));
    const draw = n >= DENSITY_POINTS ? this.densityLayers(w, t, margin, radius) : (...layer) => paint(pixels, w, t, margin, transform, this.x, this.y, ...layer, view.paintOrder());
    for (const layer of this.layers(radius)) draw(...layer);
    brush.putImageData(this.image, -margin, -margin);
    this.drawOverlay();
    this.renderTime = performance.now() - start;
  }

  /** Return a function that draws a layer of points, such that their order does not matter. The opacities do not change while the user pans. */
  densityLayers(w, t, margin, radius) {
    const {view, pixels, transform, message} = this, key = [w, t, this.scale, radius, view.count, view.filters.count].join();
    if (this.sums?.length !== 4 * w * t) this.sums = new Uint32Array(4 * w * t);
    if (this.references?.key !== key || this.references.message !== message) this.references = {key, message};
    const order = this.x.length > MAX_MOVING_POINTS ? this.spatialOrder() : null, source = order || this;
    const [left, high] = this.toData(-margin, -margin), [right, low] = this.toData(w, t), ranges = order ? order.ranges(left, right, low, high) : undefined;
    return (colours, single, states, state, size, opacity) => {
      this.references[state] = paintDensity(pixels, this.sums, w, t, margin, transform, source.x, source.y, order && colours ? order.colours : colours, single,
        order && states ? order.states : states, state, size, opacity, this.references[state], ranges);
    };
  }

  /** Return the order in which many points are drawn, with their current colours and states. Their positions do not change in place. */
  spatialOrder() {
    const {view} = this;
    if (this.order?.source !== this.x || this.order.sourceY !== this.y) this.order = new SpatialOrder(this.x, this.y, this.bounds);
    const {order} = this;
    if (order.colourScale !== view.colourScale || order.colourSource !== view.colours) {
      Object.assign(order, {colourScale: view.colourScale, colourSource: view.colours, colours: order.gather(view.colours)});
    }
    if (view.hasStates && (order.version !== view.statesVersion || order.stateSource !== view.states)) {
      Object.assign(order, {version: view.statesVersion, stateSource: view.states, states: order.gather(view.states)});
    }
    return order;
  }

  /** The radius of the points, in pixels. */
  get radius() {
    const n = this.x.length, grown = Math.min(3, Math.max(1, (this.scale / this.fitScale) ** 0.35));
    return POINT_RADII.find(([maxPoints]) => n <= maxPoints)[1] * this.view.size * grown * this.pixelRatio;
  }

  /** Return the layers of points from the lowest to the highest: the arguments of `paint` from the colours on. */
  layers(radius) {
    const {view} = this, {states, colours} = view, isDense = this.x.length > 20000, fine = isDense ? 1 : 0.82, grey = hexToPixel(THEMES[view.theme].grey);
    if (!view.hasStates) return [[colours, null, null, 0, radius, fine]];
    const isVisible = view.filters.count < this.x.length && !view.hideFiltered; // points that are filtered out are drawn first and most faintly, and selected points last
    const hidden = isVisible ? [[null, grey, states, 0, radius * 0.8, fine * 0.3]] : [];
    if (!view.count) return [...hidden, [colours, null, states, 1, radius, fine]];
    return [...hidden, [null, grey, states, 1, radius * 0.9, fine * 0.75], [colours, null, states, 2, radius * (isDense ? 1 : 1.12), 0.95]];
  }

  grid(pixels, w, t, margin, colour) {
    const [left, high] = this.toData(0, 0), [right, low] = this.toData(this.width, this.height);
    const p = this.pixelRatio, count = length => Math.max(2, Math.round(length / p));
    const [first, lowest] = this.toData((LABEL_MARGINS.left + HALF_LABEL) * p, this.height - LABEL_MARGINS.bottom * p), [last, highest] = this.toData(this.width - (LABEL_MARGINS.right + HALF_LABEL) * p, LABEL_MARGINS.top * p);
    this.gridLines = [axisTicks(left, right, count(this.width / 130), first, last), axisTicks(low, high, count(this.height / 110), lowest, highest)];
    for (const x of this.gridLines[0]) {
      const c = Math.round(this.toPixels(x, 0)[0]) + margin;
      for (let r = 0; r < t; r++) pixels[r * w + c] = colour;
    }
    for (const y of this.gridLines[1]) {
      const r = Math.round(this.toPixels(0, y)[1]) + margin;
      pixels.fill(colour, r * w, (r + 1) * w);
    }
  }

  /** Draw the overlay: axis labels, contours, the lasso and markers. */
  drawOverlay() {
    const {view, pixelRatio} = this, theme = THEMES[view.theme], pen = this.over.getContext("2d");
    pen.clearRect(0, 0, this.width, this.height);
    pen.font = `${11 * pixelRatio}px system-ui, sans-serif`;
    pen.lineWidth = pixelRatio;
    pen.fillStyle = theme.soft;
    this.tickLabels(pen, theme);
    if (this.showsDensity) this.contours(pen, theme, this.density());
    if (this.field) this.contours(pen, theme, this.field);
    if (this.showsClusters && this.clusters) this.drawClusters(pen, theme);
    if (this.lasso && this.lasso.length) {
      pen.beginPath();
      this.lasso.forEach(([x, y]) => pen.lineTo(...this.toPixels(x, y)));
      if (this.cursor && this.view.drawing) pen.lineTo(...this.toPixels(...this.cursor));
      pen.setLineDash([5 * pixelRatio, 4 * pixelRatio]);
      pen.strokeStyle = theme.mark;
      pen.lineWidth = 1.6 * pixelRatio;
      pen.stroke();
      pen.setLineDash([]);
      pen.globalAlpha = 0.08;
      pen.fillStyle = theme.mark;
      pen.fill();
      pen.globalAlpha = 1;
    }
    if (this.marker) {
      const [px, py] = this.toPixels(...this.marker), r = 7 * pixelRatio;
      for (const [wide, colour] of [[4.5, theme.paper], [2, theme.mark]]) {
        pen.beginPath();
        pen.moveTo(px - r, py); pen.lineTo(px + r, py); pen.moveTo(px, py - r); pen.lineTo(px, py + r);
        pen.lineWidth = wide * pixelRatio;
        pen.strokeStyle = colour;
        pen.stroke();
      }
    }
    view.point.drawMarks(this, pen, theme);
    if (view.hovered >= 0) {
      const [px, py] = this.toPixels(this.x[view.hovered], this.y[view.hovered]);
      for (const [wide, colour] of [[4, theme.paper], [1.8, theme.ink]]) {
        pen.beginPath();
        pen.arc(px, py, 7.5 * pixelRatio, 0, 2 * Math.PI);
        pen.lineWidth = wide * pixelRatio;
        pen.strokeStyle = colour;
        pen.stroke();
      }
    }
    if (this.cursor) {
      const [px, py] = this.toPixels(...this.cursor);
      pen.beginPath();
      pen.moveTo(px, 0); pen.lineTo(px, this.height); pen.moveTo(0, py); pen.lineTo(this.width, py);
      pen.lineWidth = pixelRatio;
      pen.globalAlpha = 0.55;
      pen.strokeStyle = theme.mark;
      pen.stroke();
      pen.globalAlpha = 1;
    }
  }

  /** Draw the labels of the axes, except those that would collide with others, with the zoom buttons or with the axis titles. */
  tickLabels(pen, theme) {
    const p = this.pixelRatio;
    pen.strokeStyle = theme.paper;
    const put = (text, x, y) => { pen.lineWidth = 3 * p; pen.strokeText(text, x, y); pen.fillText(text, x, y); };
    pen.textAlign = "center";
    let end = LABEL_MARGINS.left * p; // the labels of the vertical axis are to the left of it
    const digits = this.gridLines.map(at => distinguishingDigits(at[0], at.at(-1)));
    for (const x of this.gridLines[0]) {
      const text = formatNumber(x, digits[0]), at = this.toPixels(x, 0)[0], half = pen.measureText(text).width / 2;
      if (at - half < end || at + half > this.width - LABEL_MARGINS.right * p) continue;
      put(text, at, this.height - 21 * p);
      end = at + half + 8 * p;
    }
    pen.textAlign = "left";
    for (const y of this.gridLines[1]) {
      const at = this.toPixels(0, y)[1];
      if (at > LABEL_MARGINS.top * p && at < this.height - LABEL_MARGINS.bottom * p) put(formatNumber(y, digits[1]), 21 * p, at - 3 * p);
    }
  }

  contours(pen, theme, field) {
    const {pixelRatio} = this;
    if (!field.lines) field.lines = field.levels.map((level, k) => ({level, text: field.labels ? field.labels[k] : formatNumber(level), segments: contour(field, level)}));
    pen.strokeStyle = theme.ink;
    for (const {level, text, segments} of field.lines) {
      pen.lineWidth = (level === 0 ? 1.8 : 1) * pixelRatio;
      pen.globalAlpha = level === 0 ? 0.8 : 0.45;
      pen.setLineDash(level < 0 ? [4 * pixelRatio, 3 * pixelRatio] : []);
      pen.beginPath();
      let widest = null, reach = 0;
      for (const [a, b] of segments) {
        const [ax, ay] = this.toPixels(...a), [bx, by] = this.toPixels(...b);
        pen.moveTo(ax, ay); pen.lineTo(bx, by);
        const d = -Math.abs(ax - this.width / 2) - Math.abs(ay - this.height / 3);
        if (ax > 0 && ay > 20 * pixelRatio && ax < this.width && ay < this.height && (widest === null || d > reach)) { widest = [ax, ay]; reach = d; }
      }
      pen.stroke();
      if (widest && !(field.labels && this.showsClusters)) { // the labels of clusters would cover those of the contours
        pen.globalAlpha = 1;
        pen.textAlign = "center";
        pen.lineWidth = 3 * pixelRatio;
        pen.setLineDash([]);
        pen.strokeStyle = theme.paper;
        pen.strokeText(text, ...widest);
        pen.fillStyle = theme.ink;
        pen.fillText(text, ...widest);
        pen.strokeStyle = theme.ink;
      }
    }
    pen.setLineDash([]);
    pen.globalAlpha = 1;
  }

  // ---------------------------------------------------------------- pointer and keyboard

  eventPixels(event) {
    const frame = this.over.getBoundingClientRect();
    return [(event.clientX - frame.left) * this.width / frame.width, (event.clientY - frame.top) * this.height / frame.height];
  }

  addListeners() {
    const {over, view} = this;
    let last = null, begun = null, dragging = false;
    over.addEventListener("pointerdown", event => {
      if (event.button !== 0) return;
      over.setPointerCapture(event.pointerId);
      this.pointers.set(event.pointerId, this.eventPixels(event));
      begun = last = this.eventPixels(event);
      dragging = false;
      this.cursor = null;
      this.lasso = (view.tool === "lasso") !== event.shiftKey && this.pointers.size === 1 ? [this.toData(...begun)] : null;
    });
    over.addEventListener("pointermove", event => {
      const now = this.eventPixels(event);
      if (!this.pointers.has(event.pointerId)) return this.hoverNearest(event, now);
      if (this.pointers.size === 2) return this.pinch(event, now);
      dragging = dragging || Math.hypot(now[0] - begun[0], now[1] - begun[1]) > CLICK_TOLERANCE * this.pixelRatio;
      if (this.lasso) {
        this.lasso.push(this.toData(...now));
        this.drawOverlay();
      } else if (dragging) this.pan(now[0] - last[0], now[1] - last[1]);
      last = now;
      this.pointers.set(event.pointerId, now);
    });
    const end = event => {
      if (!this.pointers.delete(event.pointerId)) return;
      const drawn = this.lasso;
      this.lasso = null;
      if (event.type === "pointercancel") return this.draw();
      if (!dragging) view.point.request(this, ...this.toData(...this.eventPixels(event)));
      else if (drawn) view.selectInside(this, drawn, mode(event));
    };
    over.addEventListener("pointerup", end);
    over.addEventListener("pointercancel", end);
    over.addEventListener("pointerleave", () => { if (!this.cursor) view.hover(this, -1); });
    over.addEventListener("wheel", event => {
      if (view.link?.isEmbedded && !event.ctrlKey && over.getRootNode().activeElement !== over) return; // scroll the notebook
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0015)), ...this.eventPixels(event));
    }, {passive: false});
    over.addEventListener("keydown", event => this.onKeyDown(event));
    over.addEventListener("focus", () => { view.active = this; });
    over.addEventListener("blur", () => { this.cursor = null; this.draw(); });
  }

  hoverNearest(event, now) {
    if (this.hoverPending) return;
    this.hoverPending = true;
    requestAnimationFrame(() => {
      this.hoverPending = false;
      const [x, y] = this.toData(...now);
      this.view.hover(this, this.view.nearestPoint(this, x, y, 9), event);
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

  /** Keyboard equivalents of all pointer actions; the help dialog ("?") lists them. */
  onKeyDown(event) {
    const {view} = this, far = 24 * this.pixelRatio;
    const arrows = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]};
    if (event.ctrlKey || event.metaKey) return;
    if (event.key in arrows) {
      const [dx, dy] = arrows[event.key].map(d => d * (event.altKey ? far / 6 : far));
      if (event.shiftKey) this.pan(-2 * dx, -2 * dy);
      else {
        const [px, py] = this.cursor ? this.toPixels(...this.cursor) : [this.width / 2, this.height / 2];
        this.cursor = this.toData(Math.max(0, Math.min(this.width, px + dx)), Math.max(0, Math.min(this.height, py + dy)));
        this.announceNearest();
      }
    } else if (event.key === "+" || event.key === "=") this.zoom(1.25, ...this.zoomCentre());
    else if (event.key === "-" || event.key === "_") this.zoom(0.8, ...this.zoomCentre());
    else if (event.key === "0") this.fit();
    else if (event.key === "Enter") {
      const at = this.cursor || this.centre;
      if (view.drawing) { this.lasso.push(at); view.announce(`Corner ${this.lasso.length} of the lasso.`); } else view.point.request(this, ...at);
    } else if (event.key === "l" || event.key === "L") {
      if (!view.drawing) {
        this.lasso = [];
        view.drawing = true;
        view.announce("Lasso: arrow keys move the cursor, Enter sets a corner, L closes the lasso, Escape cancels it.");
      } else {
        const drawn = this.lasso;
        view.drawing = false;
        this.lasso = null;
        view.selectInside(this, drawn, event.shiftKey ? "add" : "set");
      }
    } else if (event.key === " ") {
      if (view.hovered >= 0) view.toggle(view.hovered);
    } else if (event.key === "Escape") {
      if (view.drawing) { view.drawing = false; this.lasso = null; this.draw(); } else view.clear();
    } else return;
    event.preventDefault();
    this.drawOverlay();
  }

  zoomCentre() { return this.cursor ? this.toPixels(...this.cursor) : [this.width / 2, this.height / 2]; }

  /** Highlight and announce the point nearest to the keyboard cursor. */
  announceNearest() {
    const i = this.view.nearestPoint(this, ...this.cursor, 40);
    this.view.hover(this, i);
    this.view.announce(i < 0 ? `No point near ${this.cursor.map(value => formatNumber(value)).join(", ")}.` : this.view.describe(i));
  }
}
