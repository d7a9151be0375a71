// Histograms of numbers and dates, with a brush that filters a range of values.

const MAX_BINS = 40;
const SECOND = 1e6, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE, DAY = 24 * HOUR; // dates are numbers of microseconds
const TIME_STEPS = [1, 5, 15, 30].flatMap(k => [k * SECOND, k * MINUTE]).concat([1, 3, 6, 12].map(k => k * HOUR), [1, 2, 7, 14].map(k => k * DAY)).sort((a, b) => a - b);
const BRUSH_STEPS = 250; // a bound set with the mouse is rounded to a round number of about 1/250 of the axis
const MAX_TICKS = 6;
const MAX_INTEGER_BINS = 60; // integers have one bin each if there are at most this many
const LABEL_WIDTH = 0.027; // width of a character of a tick label as a fraction of the axis of the narrowest card

/** Remove the rounding errors of the last digits; integers, such as long identifiers, are not changed. */
const rounded = value => Number.isInteger(value) ? value : Number(value.toPrecision(15));

/** Return the bins of a loaded column of numbers or dates: `start`, `step`, `count`, and the index of the bin of each row (`count` if missing). */
function histogramBins(column) {
  const [low, high] = column.range(), raw = (high - low) / MAX_BINS, {isInteger} = column;
  let step = TIME_STEPS.find(size => size >= raw) || raw;
  if (!column.isDate || raw < SECOND) step = raw > 0 ? [1, 2, 5, 10].map(m => m * 10 ** Math.floor(Math.log10(raw))).find(size => size >= raw) : 1;
  if (isInteger) step = high - low < MAX_INTEGER_BINS ? 1 : Math.max(1, step);
  if (column.isDate) step = Math.max(column.step, step);
  const half = isInteger ? 0.5 : 0, grid = column.isDate ? Math.min(step, DAY) : step; // weeks start on the day of the first date
  const start = low === high && !isInteger && !column.isDate ? low - 0.5 : Math.floor(low / grid) * grid - half;
  const count = Math.max(1, Math.floor((high - start) / step * (1 + 1e-12)) + 1);
  const {data, missing, divisor} = column, bins = new Uint8Array(data.length);
  // Decimals are stored as integers; exact edges in these units keep a value such as 1.7 out of the bin from 1.6 to 1.7.
  const first = rounded(start * divisor), width = rounded(step * divisor);
  for (let i = 0; i < data.length; i++) {
    const value = data[i];
    bins[i] = value === missing || value !== value ? count : Math.max(0, Math.min(count - 1, Math.floor((value - first) / width)));
  }
  return {bins, start: rounded(start), step, count, half, low, high};
}

/** Count the points of each bin: 3 numbers per bin, for points that fail the filters of other columns, that satisfy them, and that are selected as well. */
function countBins(bins, size, view, name) {
  const counts = new Uint32Array(3 * size), {states, selected} = view, {failures, masks} = view.filters, own = masks.get(name), n = bins.length;
  if (!own) for (let i = 0; i < n; i++) counts[3 * bins[i] + states[i]]++;
  else for (let i = 0; i < n; i++) counts[3 * bins[i] + (failures[i] + own[i] === 1 ? 1 + selected[i] : 0)]++;
  return counts;
}

/** Return the number of all points, of those that satisfy the filters of other columns, and of those that are selected as well, in bin k. */
const binTotals = (counts, k) => [counts[3 * k] + counts[3 * k + 1] + counts[3 * k + 2], counts[3 * k + 1] + counts[3 * k + 2], counts[3 * k + 2]];

/** Return ticks for an axis of numbers, without those that differ by rounding errors only. */
const numberTicks = (low, high, count) => [...new Set(ticks(low, high, count).map(rounded))];

/** Return ticks {at, label} for an axis of dates. */
function dateTicks(low, high, count) {
  const raw = (high - low) / count, out = [], at = (...parts) => Date.UTC(...parts) * 1000, first = new Date(low / 1000);
  const month = date => date.toLocaleString("en", {month: "short", timeZone: "UTC"});
  if (Number.isNaN(first.getTime()) || raw < SECOND) return ticks(low, high, count).map(value => ({at: value, label: formatDate(value, 1)}));
  const size = TIME_STEPS.find(step => step >= raw && step !== 14 * DAY), months = [1, 3, 6].find(k => k * 30.4 * DAY >= raw), years = Math.max(1, ...ticks(0, raw / (365 * DAY), 1));
  if (size) for (let value = Math.ceil(low / size) * size; value <= high; value += size) out.push(value);
  else if (months) for (let k = 0, value; (value = at(first.getUTCFullYear(), Math.ceil((first.getUTCMonth() + 1) / months) * months + k)) <= high; k += months) out.push(value);
  else for (let year = Math.ceil((first.getUTCFullYear() + 1) / years) * years; at(year, 0) <= high; year += years) out.push(at(year, 0));
  return out.map((value, k) => {
    const date = new Date(value / 1000), iso = date.toISOString();
    if (!size) return {at: value, label: months ? `${month(date)}${k === 0 || date.getUTCMonth() === 0 ? ` ${date.getUTCFullYear()}` : ""}` : String(date.getUTCFullYear())};
    const day = `${date.getUTCDate()} ${month(date)}${k === 0 && value % DAY === 0 ? ` ${date.getUTCFullYear()}` : ""}`;
    return {at: value, label: value % DAY === 0 ? day : iso.slice(11, size < MINUTE ? 19 : 16)};
  });
}

/** An element of an SVG drawing. */
function svgElement(tag, attributes = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

class Histogram {
  /** `onFilter(filter, isFinal)` is called when the user changes the range; it is final when the gesture ends. */
  constructor(column, onFilter) {
    Object.assign(this, {column, onFilter, filter: null, drag: null}, histogramBins(column));
    this.size = this.count + 1;
    this.end = this.start + this.count * this.step;
    this.paths = ["all", "passing", "chosen"].map(name => svgElement("path", {class: name}));
    this.picture = svgElement("svg", {viewBox: `0 0 ${this.count} 100`, preserveAspectRatio: "none", role: "img"}, ...this.paths);
    const handle = (side, label) => h("div", {class: `handle ${side}`, role: "slider", tabIndex: 0, "aria-label": `${label} of ${column.name}`,
      "aria-valuemin": this.low, "aria-valuemax": this.high, onkeydown: event => this.onKeyDown(event, side), onkeyup: () => this.finish()});
    this.handles = {low: handle("low", "Lower bound"), high: handle("high", "Upper bound")};
    this.range = h("div", {class: "range"});
    this.plot = h("div", {class: "plot", title: "Drag to filter a range; double-click to remove the filter", ondblclick: () => this.set(null, true)}, this.picture, this.range, this.handles.low, this.handles.high);
    this.plot.addEventListener("pointerdown", event => this.onPointerDown(event));
    this.plot.addEventListener("pointermove", event => this.onPointerMove(event));
    for (const type of ["pointerup", "pointercancel"]) this.plot.addEventListener(type, event => this.onPointerUp(event));
    this.element = h("div", {class: "histogram"}, this.plot, h("div", {class: "ticks", "aria-hidden": "true"}, ...this.tickLabels()));
    this.showFilter(null);
  }

  fraction(value) { return Math.max(0, Math.min(1, (value - this.start) / (this.end - this.start))); }

  /** Return about `count` ticks {at, label}, at least one. */
  ticks(count) {
    const {column, low, high} = this;
    const all = column.isDate ? dateTicks(low, high, count) : numberTicks(low, high, count).filter(at => !column.isInteger || Number.isInteger(at)).map(at => ({at, label: column.formatValue(at)}));
    return all.length ? all : [{at: low, label: column.formatValue(low)}];
  }

  /** Return labels of the axis that do not overlap: as many as possible at equal steps. */
  tickLabels() {
    const labels = [], place = ({at, label}) => {
      const width = label.length * LABEL_WIDTH, position = this.fraction(at), left = Math.max(0, Math.min(1 - width, position - width / 2));
      return {label, width, position, left, right: left + width + LABEL_WIDTH};
    };
    const overlap = places => places.some(({left}, k) => k && left < places[k - 1].right);
    let count = MAX_TICKS, places;
    do places = this.ticks(count).map(place); while (--count > 0 && overlap(places));
    if (overlap(places)) places.length = 1;
    for (const {label, width, position} of places) {
      const node = h("span", {}, label);
      if (position - width / 2 < 0) node.style.left = "0";
      else if (position + width / 2 > 1) node.style.right = "0";
      else { node.style.left = `${100 * position}%`; node.classList.add("centred"); }
      labels.push(node);
    }
    return labels;
  }

  /** Draw the bars for the result of `countBins`. */
  draw(counts) {
    let largest = 1, passing = 0;
    for (let k = 0; k < this.count; k++) { const totals = binTotals(counts, k); largest = Math.max(largest, totals[0]); passing += totals[1]; }
    const shapes = ["", "", ""], gap = 0.06;
    for (let k = 0; k < this.count; k++) {
      binTotals(counts, k).forEach((total, layer) => { if (total) shapes[layer] += `M${k + gap} 100V${100 - Math.max(3, 100 * total / largest)}H${k + 1 - gap}V100Z`; });
    }
    this.paths.forEach((path, layer) => path.setAttribute("d", shapes[layer]));
    this.picture.setAttribute("aria-label", `Histogram of ${this.column.name} from ${this.column.formatValue(this.low)} to ${this.column.formatValue(this.high)}; ${passing} values satisfy the other filters`);
  }

  // ---------------------------------------------------------------- the range

  /** The bounds of the filter; without a filter, the smallest and the largest value. */
  get bounds() { return this.filter?.onlyMissing ? [this.low, this.high] : [this.filter?.low ?? this.low, this.filter?.high ?? this.high]; }

  showFilter(filter) {
    this.filter = filter;
    const [low, high] = this.bounds, isOpen = {low: (filter?.low ?? null) === null, high: (filter?.high ?? null) === null};
    const left = 100 * (isOpen.low ? 0 : this.fraction(low - this.half)), right = 100 * (isOpen.high ? 1 : this.fraction(high + this.half));
    this.range.hidden = isOpen.low && isOpen.high;
    Object.assign(this.range.style, {left: `${left}%`, right: `${100 - right}%`});
    this.handles.low.style.left = `${left}%`;
    this.handles.high.style.left = `${right}%`;
    for (const [side, value] of [["low", low], ["high", high]]) {
      this.handles[side].setAttribute("aria-valuenow", value);
      this.handles[side].setAttribute("aria-valuetext", `${this.column.formatValue(value)}${isOpen[side] ? ", no limit" : ""}`);
      this.handles[side].classList.toggle("open", isOpen.low && isOpen.high);
    }
  }

  /** Return the range as text. */
  describe({low, high}) {
    const {column} = this;
    if (low === null) return `≤ ${column.formatValue(high)}`;
    return high === null ? `≥ ${column.formatValue(low)}` : low === high ? column.formatValue(low) : `${column.formatValue(low)} to ${column.formatValue(high)}`;
  }

  /** Set the range; bounds at or beyond the extreme values do not limit. */
  setRange(low, high, isFinal) {
    const old = this.filter?.onlyMissing ? null : this.filter, filter = {low: low <= this.low ? null : low, high: high >= this.high ? null : high, missing: old?.missing || false};
    const isOpen = filter.low === null && filter.high === null, onlyHidesMissing = old && !old.missing && old.low === null && old.high === null;
    this.set(isOpen && !onlyHidesMissing ? null : filter, isFinal);
  }

  set(filter, isFinal) {
    this.showFilter(filter);
    this.onFilter(filter, isFinal);
  }

  finish() { this.onFilter(this.filter, true); }

  /** Round a value to the precision of the brush. */
  snap(value) {
    const size = (this.end - this.start) / BRUSH_STEPS, {column} = this;
    let unit = 10 ** Math.floor(Math.log10(size));
    if (column.isInteger) unit = Math.max(1, unit);
    if (column.isDate) unit = Math.max(column.step, [DAY, HOUR, MINUTE, SECOND, 1000].find(one => one <= size) || 1);
    return rounded(Math.round(value / unit) * unit);
  }

  // ---------------------------------------------------------------- pointer and keyboard

  valueAt(event) {
    const box = this.plot.getBoundingClientRect(), x = (event.clientX - box.left) / (box.width || 1);
    return this.start + (this.end - this.start) * Math.max(0, Math.min(1, x));
  }

  onPointerDown(event) {
    if (event.button !== 0) return;
    const value = this.valueAt(event), side = Object.keys(this.handles).find(name => event.target === this.handles[name]), [low, high] = this.bounds;
    const isInside = !this.range.hidden && value >= low - this.half && value <= high + this.half;
    this.plot.setPointerCapture(event.pointerId);
    // The drag changes one end, moves both, or starts a new range.
    this.drag = {kind: side && !this.range.hidden ? side : isInside ? "move" : "new", from: value, x: event.clientX, low, high, moved: false};
  }

  onPointerMove(event) {
    const {drag} = this;
    if (!drag) return;
    if (!drag.moved && Math.abs(event.clientX - drag.x) < CLICK_TOLERANCE) return;
    drag.moved = true;
    const value = this.valueAt(event);
    if (drag.kind === "move") {
      const shift = Math.max(this.start - drag.low, Math.min(this.end - drag.high, value - drag.from)), low = this.snap(drag.low + shift);
      return this.setRange(low, rounded(low + drag.high - drag.low), false);
    }
    const fixed = drag.kind === "low" ? drag.high : drag.kind === "high" ? drag.low : drag.from;
    const ends = [fixed, value].sort((a, b) => a - b).map(end => this.snap(end));
    this.setRange(...ends, false);
  }

  onPointerUp(event) {
    const {drag} = this;
    this.drag = null;
    if (!drag?.moved) return;
    if (event.type === "pointercancel") this.setRange(drag.low, drag.high, true);
    else this.finish();
  }

  /** Arrow keys move a bound by one bin, Page Up and Page Down by five; Delete removes the filter. */
  onKeyDown(event, side) {
    const bins = {ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -5, PageUp: 5}[event.key], {start, step} = this;
    if (event.key === "Delete" || event.key === "Backspace") this.set(null, true);
    else {
      let [low, high] = this.bounds, value = side === "low" ? low : high;
      if (event.key === "Home" || event.key === "End") value = event.key === "Home" ? this.low : this.high;
      else if (!bins) return;
      else if (this.column.isInteger) value += bins * step;
      else { // the next edge of a bin in this direction
        const position = (value - start) / step, edge = bins < 0 ? Math.ceil(position - 1e-9) : Math.floor(position + 1e-9);
        value = rounded(start + (edge + bins) * step);
      }
      if (side === "low") low = Math.min(value, high); else high = Math.max(value, low);
      this.setRange(low, high, false);
    }
    event.preventDefault();
    event.stopPropagation();
  }
}
