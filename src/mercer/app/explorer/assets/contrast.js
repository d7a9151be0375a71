// What makes the selection different: for each column, the difference between the selected points and the rest.
//
// The difference is between 0 and 1. It is the largest difference, over sets of values, between the fraction of the selected points and
// the fraction of the rest whose value is in the set:
//   categories          all sets of categories: half the sum of |p_c - q_c| (the total variation distance)
//   numbers and dates   all intervals and their complements: max(F - G) + max(G - F) (the statistic of Kuiper)
//   missing values      the set of missing values: |p - q|
// The first two compare only known values. A random selection also differs from the rest: `chance` is its expected difference.

const MAX_CONTRAST_ROWS = 2 ** 15; // of larger groups, a random sample of this many points is compared
const CONTRAST_SLICE_MS = 12; // the comparison of many columns is interrupted after this time, so that the page stays responsive
const MAX_FIRST_DIFFERENCES = 12; // the panel shows at most this many differences at first
const DESCRIBES_SELECTIONS = /^(named selections|cluster in .*)$/; // derived columns that would only repeat the selection
const TEST_SAMPLE = 300; // the kernel two-sample test compares at most this many points of each group
const HISTOGRAM_BINS = 20;
const MAX_BARS = 8; // a bar chart of categories shows at most this many

/** Return the rows whose state is `state`. If there are more than `limit`, return one random row (fixed seed) from each of `limit` consecutive parts. */
function sampleRows(states, state, limit) {
  let count = 0, seed = 1;
  for (let i = 0; i < states.length; i++) if (states[i] === state) count++;
  const rows = new Uint32Array(Math.min(count, limit)), step = count / rows.length;
  const random = () => (seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0) / 2 ** 32;
  const pick = k => Math.floor(k * step) + Math.floor(random() * (Math.floor((k + 1) * step) - Math.floor(k * step)));
  for (let i = 0, seen = 0, k = 0, next = pick(0); k < rows.length; i++) {
    if (states[i] === state && seen++ === next) { rows[k] = i; next = pick(++k); }
  }
  return {rows, count};
}

/** Return the known values of rows of a column, sorted, as stored in the column (not yet divided by `divisor`). */
function sortedValues({data, missing}, rows) {
  const values = new Float64Array(rows.length);
  let count = 0;
  for (let k = 0; k < rows.length; k++) {
    const value = data[rows[k]];
    if (value !== missing && value === value) values[count++] = value;
  }
  return values.subarray(0, count).sort();
}

/** Return the mean of the known values of rows of a column. */
function meanValue({data, missing, divisor}, rows) {
  let sum = 0, count = 0;
  for (let k = 0; k < rows.length; k++) {
    const value = data[rows[k]];
    if (value !== missing && value === value) { sum += value; count++; }
  }
  return sum / count / divisor;
}

const medianOf = sorted => (sorted[(sorted.length - 1) >> 1] + sorted[sorted.length >> 1]) / 2;

/** Return the number of sorted values that are at most `value`. */
function countUpTo(sorted, value) {
  let low = 0, high = sorted.length;
  while (low < high) { const mid = (low + high) >> 1; if (sorted[mid] <= value) low = mid + 1; else high = mid; }
  return low;
}

/** Compare sorted numbers a and b: the difference, and the interval of values that contributes to it. */
function compareNumbers(a, b) {
  const m = a.length, n = b.length;
  let i = 0, j = 0, up = 0, down = 0, upAt = Infinity, downAt = -Infinity;
  while (i < m && j < n) {
    const value = a[i] <= b[j] ? a[i] : b[j];
    while (i < m && a[i] === value) i++;
    while (j < n && b[j] === value) j++;
    const d = i / m - j / n;
    if (d > up) { up = d; upAt = value; }
    if (-d > down) { down = -d; downAt = value; }
  }
  // The selection is more frequent in (downAt, upAt] if this is an interval; otherwise the rest is more frequent in (upAt, downAt].
  const isInside = downAt < upAt, [after, last] = isInside ? [downAt, upAt] : [upAt, downAt], more = isInside ? a : b;
  const count = sorted => countUpTo(sorted, last) - countUpTo(sorted, after);
  return {effect: up + down, low: more[countUpTo(more, after)], high: more[countUpTo(more, last) - 1], inside: [count(a), count(b)]};
}

/** Return the mean absolute deviation of a binomial distribution with c trials of probability p (exact up to c = 60). */
function binomialDeviation(c, p) {
  if (c > 60) return Math.sqrt(2 * c * p * (1 - p) / Math.PI);
  const k = Math.floor(c * p) + 1;
  let value = 2 * k * (1 - p);
  for (let j = 1; j <= k; j++) value *= (c - k + j) / j * p;
  return value * (1 - p) ** (c - k);
}

/** Return the expected difference of the fractions in a category with c points, if m of m + n points are selected at random. */
const chanceOf = (c, m, n) => (m + n) / (m * n) * binomialDeviation(c, m / (m + n)) * Math.sqrt(Math.max(0, m + n - c) / Math.max(1, m + n - 1));

/** Return the number of rows in each category; `indices` is a Map from codes to categories, or null if the codes are 0, 1, ... */
function countCategories({data, missing}, rows, indices, size) {
  const counts = new Uint32Array(size);
  let known = 0;
  for (let k = 0; k < rows.length; k++) {
    const code = data[rows[k]];
    if (code !== missing && code === code) { counts[indices ? indices.get(code) : code]++; known++; }
  }
  return {counts, known};
}

/** Compare the categories of two groups: the difference, and the categories by their differences, of which `top` differs most. */
function compareCategories(column, selected, rest) {
  const codes = column.values ? null : column.categories().map(one => one.code), indices = codes && new Map(codes.map((code, k) => [code, k]));
  const size = (codes ?? column.values).length; // not the range of the codes, which may contain a number such as 999999999
  const a = countCategories(column, selected, indices, size), b = countCategories(column, rest, indices, size), m = a.known, n = b.known;
  if (!m || !n) return null;
  let effect = 0, chance = 0;
  const chances = new Float64Array(256).fill(-1), list = [];
  for (let k = 0; k < size; k++) {
    const c = a.counts[k] + b.counts[k];
    if (!c) continue;
    const d = a.counts[k] / m - b.counts[k] / n;
    effect += Math.abs(d) / 2;
    if (c < 256 && chances[c] < 0) chances[c] = chanceOf(c, m, n);
    chance += (c < 256 ? chances[c] : chanceOf(c, m, n)) / 2;
    if (list.length < MAX_BARS || Math.abs(d) > Math.abs(list[list.length - 1].d)) {
      list.push({code: codes ? codes[k] : k, counts: [a.counts[k], b.counts[k]], d});
      list.sort((one, two) => Math.abs(two.d) - Math.abs(one.d));
      list.length = Math.min(list.length, MAX_BARS);
    }
  }
  return {effect, chance, sizes: [m, n], list};
}

/** Return "48 of 50", or a percentage for large groups. */
const countText = (count, total) => total <= 1000 ? `${count} of ${total}` : `${formatPercent(count / total)}`;
const formatPercent = fraction => `${Number((100 * fraction).toPrecision(fraction >= 0.1 ? 2 : 1))}\u00a0%`; // the space does not break

/**
 * Return the differences of a column between selected rows and the rest, as a list: one of the values, one of the missing values.
 * Each has `kind`, `effect`, `chance`, `text`, and `bars`, the fractions of both groups in each bin or category.
 */
function columnContrast(column, selected, rest) {
  const found = [], isCategorical = Boolean(column.values) || (!column.isDate && column.categories() !== null), sizes = [selected.length, rest.length];
  let known = [0, 0];
  if (isCategorical) {
    const result = compareCategories(column, selected, rest);
    if (result) {
      known = result.sizes;
      const {list} = result, top = list.find(one => one.d > 0) || list[0];
      const name = code => column.values ? column.values[code] : formatNumber(code / column.divisor);
      const text = `${countText(top.counts[0], known[0])} are ${name(top.code)} (rest: ${countText(top.counts[1], known[1])})`;
      found.push({kind: "categories", ...result, text, bars: list.map(one => ({label: name(one.code), fractions: one.counts.map((c, k) => c / known[k])}))});
    } else known = [selected, rest].map(rows => rows.reduce((sum, i) => sum + (column.at(i) !== null), 0));
  } else {
    const [a, b] = [selected, rest].map(rows => sortedValues(column, rows)), format = value => column.formatValue(value / column.divisor);
    known = [a.length, b.length];
    if (a.length && b.length) {
      const result = compareNumbers(a, b), spread = Math.sqrt(1 / a.length + 1 / b.length);
      const range = result.low === result.high ? `equal ${format(result.low)}` : `from ${format(result.low)} to ${format(result.high)}`;
      const where = result.effect > 0 ? `; ${formatPercent(result.inside[0] / a.length)} ${range} (rest: ${formatPercent(result.inside[1] / b.length)})` : "";
      found.push({kind: "numbers", effect: result.effect, chance: Math.min(1, Math.sqrt(Math.PI / 2) * spread), sizes: known,
        text: `median ${format(medianOf(a))}, rest ${format(medianOf(b))}${where}`, bars: numberBars(a, b, format, column.isFloat ? 0 : 1)});
    }
  }
  const absent = known.map((count, k) => sizes[k] - count), total = absent[0] + absent[1];
  if (total) {
    const fractions = absent.map((count, k) => count / sizes[k]);
    found.push({kind: "missing", effect: Math.abs(fractions[0] - fractions[1]), chance: chanceOf(total, ...sizes), sizes,
      text: `${countText(absent[0], sizes[0])} missing (rest: ${formatPercent(fractions[1])})`, bars: [{label: "missing", fractions}]});
  }
  return found.map(one => ({...one, name: column.name}));
}

/**
 * Return a histogram of two sorted groups with common bins; values beyond the first and last percent are in the first and last bin.
 * If the values are multiples of `unit` > 0, all bins contain the same number of multiples, because the histogram would be jagged otherwise.
 */
function numberBars(a, b, format, unit) {
  const at = (sorted, fraction) => sorted[Math.round((sorted.length - 1) * fraction)];
  const low = Math.min(at(a, 0.01), at(b, 0.01)), high = Math.max(at(a, 0.99), at(b, 0.99)), range = high - low + unit;
  const width = unit ? Math.ceil(range / unit / HISTOGRAM_BINS) * unit : range / HISTOGRAM_BINS, size = unit ? Math.ceil(range / width) : HISTOGRAM_BINS;
  const edges = Array.from({length: size + 1}, (_, k) => k === 0 ? -Infinity : k === size ? Infinity : low - unit / 2 + k * width);
  const counts = [a, b].map(sorted => edges.map(edge => countUpTo(sorted, edge) / sorted.length));
  const label = k => width === unit ? format(low + k * width) : `${format(low + k * width)} to ${format(low + (k + 1) * width - unit)}`;
  return edges.slice(1).map((_, k) => ({label: label(k), fractions: counts.map(c => c[k + 1] - c[k])}));
}

/** Whether a difference is clearly larger than that of a random selection. */
const isClear = ({effect, chance, sizes: [m, n]}) => effect > chance + Math.sqrt(1 / m + 1 / n);

class ContrastPanel {
  static chanceOf = chanceOf;

  constructor(view) {
    Object.assign(this, {view, token: 0, testToken: 0, differences: [], shown: MAX_FIRST_DIFFERENCES, state: "idle"});
    this.summary = h("p", {class: "soft"});
    this.means = h("div", {class: "means"});
    this.list = h("ol", {class: "differences"});
    this.moreButton = h("button", {type: "button", hidden: true, onclick: () => { this.shown = Infinity; this.draw(); }});
    this.loadButton = h("button", {type: "button", hidden: true, onclick: () => this.loadAll()});
    this.testButton = h("button", {type: "button", onclick: () => this.requestTest(), title: "Compare the selection with the rest by the maximum mean discrepancy of the kernel"}, "Kernel two-sample test");
    this.testResult = h("p", {class: "soft", role: "status"});
    this.test = h("div", {}, this.testButton, this.testResult);
    this.clearFiltersButton = h("button", {type: "button", hidden: true, onclick: () => { view.setFilters(new Map()); view.commit("clear filters"); }}, "Clear filters and compare");
    this.element = h("div", {class: "contrast", hidden: true}, h("h2", {}, "Differences from the rest"), this.summary, this.clearFiltersButton, this.means, this.list, h("div", {class: "row"}, this.moreButton, this.loadButton), this.test);
    view.on("contrast", message => { if (message.token === this.testToken) this.showTest(message); });
  }

  update(change) {
    if (change === "scene") this.test.hidden = !this.view.link;
    if (["selection", "filters", "columns", "values"].includes(change)) this.schedule();
    if (["scene", "selection", "filters", "embeddings"].includes(change)) { this.testToken++; this.testResult.textContent = ""; this.testButton.disabled = false; }
  }

  /** Compare all columns soon, after a sequence of quick changes has ended. */
  schedule() {
    this.element.hidden = !this.view.count;
    this.token++;
    clearTimeout(this.timer);
    this.state = this.view.count ? "waiting" : "idle";
    if (this.view.count) this.timer = setTimeout(() => this.run(), 60);
  }

  /** Compare the loaded columns, with interruptions; a newer change discards the result. */
  async run() {
    const {view} = this, token = this.token, {image} = view.scene, pixels = image ? image.columns.map(k => view.columns[k]) : [];
    let start = performance.now();
    const selected = sampleRows(view.states, 2, MAX_CONTRAST_ROWS), rest = sampleRows(view.states, 1, MAX_CONTRAST_ROWS);
    const found = [], means = [[], []], canCompare = selected.count && rest.count;
    const isCurrent = async () => {
      if (performance.now() - start > CONTRAST_SLICE_MS) {
        await new Promise(done => setTimeout(done));
        start = performance.now();
      }
      return token === this.token;
    };
    for (const column of canCompare ? view.describingColumns().filter(column => !column.derived || !DESCRIBES_SELECTIONS.test(column.name)) : []) {
      if (!(await isCurrent())) return;
      found.push(...columnContrast(column, selected.rows, rest.rows));
    }
    for (const column of canCompare && pixels.every(one => one.isLoaded) ? pixels : []) {
      if (!(await isCurrent())) return;
      [selected, rest].forEach(({rows}, g) => means[g].push(meanValue(column, rows)));
    }
    this.showMeans(means);
    this.differences = found.sort((a, b) => Number(isClear(b)) - Number(isClear(a)) || b.effect - a.effect);
    this.shown = MAX_FIRST_DIFFERENCES;
    const group = ({rows, count}, name) => `${count.toLocaleString("en")} ${name} points${rows.length < count ? ` (a sample of ${rows.length.toLocaleString("en")})` : ""}`;
    this.summary.textContent = !rest.count ? "All points that satisfy the filters are selected, so there are no others to compare with."
      : !selected.count ? "No selected point satisfies the filters." : `${group(selected, "selected")} (bars), compared with ${group(rest, "other")} (line). The difference in each column is between 0 (equal) and 1 (disjoint).`;
    this.clearFiltersButton.hidden = Boolean(rest.count && selected.count) || !view.filters.byName.size;
    this.testButton.hidden = selected.count < 2 || rest.count < 2;
    this.draw();
    this.state = "done";
  }

  /** Show the mean image of the selected points and that of the rest, if points are images. */
  /** Show the mean images of both groups, and their difference: 0 is grey, and the largest difference is white or black. */
  showMeans(means) {
    const {image} = this.view.scene, [selected, rest] = means, shown = selected.length ? [[selected, "mean of the selection"], [rest, "mean of the rest"]] : [];
    const largest = Math.max(...selected.map((mean, k) => Math.abs(mean - rest[k])));
    if (largest > 0) {
      const middle = (image.low + image.high) / 2, scale = (image.high - image.low) / 2 / largest;
      shown.push([selected.map((mean, k) => middle + scale * (mean - rest[k])), `difference, up to ${formatNumber(largest)}`]);
    }
    this.means.replaceChildren(...shown.map(([values, text]) => h("figure", {}, ...this.view.imageCanvas(k => values[k], text), h("figcaption", {}, text))));
  }

  draw() {
    const {view} = this, clear = this.differences.filter(isClear), shown = this.shown === Infinity ? this.differences : clear.slice(0, this.shown);
    const hidden = this.differences.length - shown.length, absent = this.unloaded().length;
    this.list.replaceChildren(...shown.map(one => this.item(one)));
    if (this.differences.length && !clear.length) this.summary.textContent += " No column differs more than by chance.";
    this.moreButton.hidden = !hidden;
    this.moreButton.textContent = `Show ${hidden} more ${hidden === 1 ? "column" : "columns"}`;
    this.loadButton.hidden = !absent || !view.link;
    this.loadButton.textContent = `Load ${absent} more ${absent === 1 ? "column" : "columns"}`;
  }

  item(one) {
    const {view} = this, value = one.effect.toFixed(2);
    const bar = h("i", {class: "effect"});
    bar.style.width = `${(100 * one.effect).toFixed(1)}%`;
    const name = h("button", {type: "button", class: "link", title: `Colour the points by ${one.name}`, onclick: () => view.colourBy(one.name).then(() => view.commit("colour"))}, one.name);
    return h("li", {class: isClear(one) ? "" : "chance", title: isClear(one) ? "" : "A random selection may differ as much."},
      h("div", {class: "line"}, name, h("span", {class: "meter", "aria-hidden": "true"}, bar), h("span", {class: "value", title: `Difference ${value}; expected for a random selection: ${one.chance.toFixed(2)}`}, value)),
      h("p", {}, one.text), ...pairedBars(one.bars));
  }

  /** The columns of the table that are not loaded yet, without the pixels of images. */
  unloaded() { return this.view.columns.filter((column, k) => !column.isLoaded && !column.derived && !this.view.pixels.has(k)); }

  async loadAll() {
    this.loadButton.disabled = true;
    await Promise.all(this.unloaded().map(column => this.view.loadColumn(column)));
    this.loadButton.disabled = false;
  }

  requestTest() {
    const {view} = this, rows = state => toBase64(new Uint8Array(sampleRows(view.states, state, TEST_SAMPLE).rows.buffer));
    this.testButton.disabled = true;
    this.testResult.textContent = "Testing …";
    view.link.send({type: "contrast", selected: rows(2), rest: rows(1), token: ++this.testToken});
  }

  showTest({text, error}) {
    this.testButton.disabled = false;
    this.testResult.textContent = error || text;
  }
}

/** Draw the fractions of two groups as bars: the selection filled, the rest as an outline. */
function pairedBars(bars) {
  if (bars.length < 2) return [];
  const width = 200, height = 26, step = width / bars.length, top = Math.max(...bars.flatMap(one => one.fractions)) || 1;
  const line = bars.flatMap(({fractions}, k) => [`${k ? "L" : "M"}${(k * step).toFixed(1)},${(height - height * fractions[1] / top).toFixed(1)}`, `H${((k + 1) * step).toFixed(1)}`]).join("");
  return [svgElement("svg", {viewBox: `0 -1 ${width} ${height + 2}`, class: "paired", "aria-hidden": "true"},
    ...bars.map(({label, fractions}, k) => svgElement("rect", {class: "bar", x: k * step + 0.5, y: height - height * fractions[0] / top, width: step - 1, height: height * fractions[0] / top},
      svgElement("title", {}, `${label}: ${formatPercent(fractions[0])}, rest ${formatPercent(fractions[1])}`))),
    svgElement("path", {class: "bound", d: line}))];
}
