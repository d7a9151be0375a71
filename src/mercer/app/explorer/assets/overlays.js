// Overlays that describe many points: contours of their density, and labels of their clusters.

const DENSITY_GRID = 128; // the density is computed on a grid with this many cells per axis
const DENSITY_FRACTIONS = [0.1, 0.3, 0.5, 0.7, 0.9]; // a contour encloses this fraction of the points
const MAX_SMOOTHING_PASSES = 100; // at most this many passes of the filter
const CLUSTER_COUNT = 8;

/**
 * Return a smoothed histogram of the points with mask[i] > 0 (of all points if the mask is null), and the levels of contours such that each
 * encloses one of DENSITY_FRACTIONS of the points. The smoothing has half the width of Scott's rule, because there may be several clusters.
 */
export function densityField(x, y, mask, {left, right, low, high}) {
  const size = DENSITY_GRID, pad = 0.15, width = (right - left) || 1, height = (high - low) || 1;
  const box = {left: left - pad * width, right: right + pad * width, low: low - pad * height, high: high + pad * height};
  const sx = (size - 1) / (box.right - box.left), sy = (size - 1) / (box.high - box.low), sums = [0, 0, 0, 0];
  const counts = new Float32Array(size * size);
  let values = counts, count = 0;
  for (let i = 0; i < x.length; i++) {
    if (mask && !mask[i]) continue;
    const u = (x[i] - box.left) * sx, v = (y[i] - box.low) * sy;
    if (!(u === u && v === v)) continue;
    counts[Math.round(v) * size + Math.round(u)]++;
    count++;
    sums[0] += u; sums[1] += u * u; sums[2] += v; sums[3] += v * v;
  }
  const spread = (sum, squares) => Math.max(0, squares / count - (sum / count) ** 2);
  const variance = count ? (spread(sums[0], sums[1]) + spread(sums[2], sums[3])) / 2 * count ** (-1 / 3) : 0;
  // The filter (1, 4, 6, 4, 1) / 16 has variance 1, so that the number of passes is the variance of the smoothing, in cells.
  for (let pass = Math.max(2, Math.min(MAX_SMOOTHING_PASSES, Math.round(variance / 4))); pass > 0; pass--) values = smooth(smooth(values, size, 1), size, size);
  const dense = [...counts.keys()].filter(cell => counts[cell]).sort((a, b) => values[b] - values[a]), levels = [], labels = [];
  let inside = 0;
  for (const cell of dense) {
    inside += counts[cell];
    for (let fraction; (fraction = DENSITY_FRACTIONS[levels.length]) && inside >= fraction * count;) { levels.push(values[cell]); labels.push(`${100 * fraction} %`); }
  }
  return {values, columns: size, rows: size, ...box, levels, labels};
}

/** Apply the filter (1, 4, 6, 4, 1) / 16 along one axis of a square grid; `step` is the distance of neighbours. */
function smooth(values, size, step) {
  const out = new Float32Array(values.length), other = step === 1 ? size : 1;
  for (let line = 0; line < size; line++) {
    const start = line * other, at = k => k < 0 || k >= size ? 0 : values[start + k * step];
    for (let k = 0; k < size; k++) out[start + k * step] = (at(k - 2) + at(k + 2) + 4 * (at(k - 1) + at(k + 1)) + 6 * at(k)) / 16;
  }
  return out;
}

/** Return the labels that do not collide with the label of a larger cluster; each has the box {left, right, top, bottom} in pixels. */
export function placeLabels(labels, frame) {
  const placed = [];
  for (const label of [...labels].sort((a, b) => b.size - a.size)) {
    const {left, right, top, bottom} = label;
    const isVisible = left >= 0 && right <= frame.width && top >= 0 && bottom <= frame.height;
    if (isVisible && placed.every(one => right < one.left || left > one.right || bottom < one.top || top > one.bottom)) placed.push(label);
  }
  return placed;
}

Object.assign(Pane.prototype, {
  /** Return the buttons that show and hide the overlays; a saved page has cluster labels only if they were computed before. */
  overlayButtons() {
    const toggle = (text, label, key, action) => {
      const button = h("button", {type: "button", title: label, "aria-label": label, "aria-pressed": "false", onclick: () => {
        this[key] = !this[key];
        button.setAttribute("aria-pressed", String(this[key]));
        action?.();
        this.draw();
      }}, text);
      return button;
    };
    this.clusterButton = toggle("Aa", "Labels of clusters", "showsClusters", () => this.requestClusters());
    return [toggle("≋", "Contours of the density", "showsDensity"), this.clusterButton];
  },

  updateClusters(clusters) {
    this.clusters = clusters || null;
    this.clusterButton.hidden = !this.view.link && !this.clusters;
    this.requestClusters();
  },

  requestClusters() {
    if (this.showsClusters && !this.clusters && this.view.link) this.view.link.send({type: "clusters", pane: this.index, count: CLUSTER_COUNT});
  },

  /** Return the density of the points that satisfy the filters; it is computed again after a change. */
  density() {
    const {view, x, y} = this, version = view.statesVersion;
    if (this.densityCache?.x !== x || this.densityCache.y !== y || this.densityCache.version !== version) {
      const field = densityField(x, y, view.filters.count < x.length ? view.filters.active : null, this.bounds);
      this.densityCache = {x, y, version, field};
    }
    return this.densityCache.field;
  },

  drawClusters(pen, theme) {
    const {clusters, pixelRatio} = this, height = 16 * pixelRatio;
    pen.font = `600 ${12 * pixelRatio}px system-ui, sans-serif`;
    const labels = clusters.texts.map((text, k) => {
      const short = text.length > 28 ? `${text.slice(0, 27)}…` : text, [x, y] = this.toPixels(clusters.x[k], clusters.y[k]);
      const half = pen.measureText(short).width / 2 + 3 * pixelRatio;
      return {text: short, size: clusters.sizes[k], x, y, left: x - half, right: x + half, top: y - height / 2, bottom: y + height / 2};
    });
    this.placedLabels = placeLabels(labels, this);
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    pen.lineJoin = "round";
    for (const {text, x, y} of this.placedLabels) {
      pen.lineWidth = 4 * pixelRatio;
      pen.strokeStyle = theme.paper;
      pen.strokeText(text, x, y);
      pen.fillStyle = theme.ink;
      pen.fillText(text, x, y);
    }
    pen.textBaseline = "alphabetic";
  },
});
