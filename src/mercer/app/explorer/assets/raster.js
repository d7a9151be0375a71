// The rasteriser: draws points into the pixels of an ImageData, fast enough for a million points per frame.

/** Return the pixels of a disc as offsets from its centre, with coverages from 0 to 256. */
function disc(radius, width, opacity) {
  const reach = Math.ceil(radius), offsets = [], cover = [];
  for (let dy = -reach; dy <= reach; dy++) {
    for (let dx = -reach; dx <= reach; dx++) {
      const coverage = Math.max(0, Math.min(1, radius + 0.5 - Math.hypot(dx, dy)));
      const amount = Math.round(256 * opacity * coverage);
      if (amount > 0) { offsets.push(dy * width + dx); cover.push(amount); }
    }
  }
  return {offsets: Int32Array.from(offsets), cover: Int32Array.from(cover)};
}

/**
 * Return a step coprime to n, so that i += step (mod n) visits all points in a scattered order.
 * Otherwise the class that comes last in the file would cover the others.
 */
function stride(n) {
  if (n < 3) return 1;
  const gcd = (a, b) => b ? gcd(b, a % b) : a;
  let step = Math.round(n * 0.6180339887);
  while (gcd(step, n) !== 1) step++;
  return step % n;
}

/** Return the indices of n points in a scattered order. */
function scattered(n) {
  const order = new Uint32Array(n), step = stride(n);
  for (let k = 0, i = 0; k < n; k++) {
    order[k] = i;
    i += step;
    if (i >= n) i -= n;
  }
  return order;
}

const MAX_RANKED_COLOURS = 64; // with more colours, for example of numbers, the order does not depend on them

/**
 * Return the indices of the points in a scattered order, with rare colours last, so that common ones do not hide them. If there
 * is a mask, only its points are counted. Colours whose numbers of points differ by less than a factor of about two are mixed.
 */
function rareLast(colours, mask) {
  const n = colours.length, order = scattered(n), counts = new Map();
  for (let i = 0; i < n && counts.size <= MAX_RANKED_COLOURS; i++) counts.set(colours[i], (counts.get(colours[i]) || 0) + (mask === null || mask[i] ? 1 : 0));
  if (counts.size > MAX_RANKED_COLOURS) return order;
  const rank = new Map([...counts].map(([colour, count]) => [colour, -Math.round(Math.log2(count + 1))])), rankOf = Int8Array.from(colours, colour => rank.get(colour));
  return order.sort((i, j) => rankOf[i] - rankOf[j]);
}

/**
 * Draw the points with mask[i] === maskValue, or all points if mask is null, into pixels.
 * The point (x, y) is drawn at the pixel (x * sx + tx, y * sy + ty). If singleColour is null, point i has colours[i].
 */
function paint(pixels, width, height, margin, transform, x, y, colours, singleColour, mask, maskValue, radius, opacity, order = scattered(x.length)) {
  const n = x.length, {sx, sy, tx, ty} = transform;
  const left = margin + tx, top = margin + ty;
  const all = mask === null, isSingleColour = singleColour !== null;
  const {offsets, cover} = disc(radius, width, opacity), reach = Math.ceil(radius), size = offsets.length;
  const right = width - reach - 1, bottom = height - reach - 1;
  for (let k = 0; k < n; k++) {
    const i = order[k];
    if (all || mask[i] === maskValue) {
      const px = Math.round(x[i] * sx + left), py = Math.round(y[i] * sy + top);
      if (px >= reach && py >= reach && px <= right && py <= bottom) {
        const at = py * width + px, c = isSingleColour ? singleColour : colours[i];
        const rb = c & 0xff00ff, g = c & 0xff00;
        for (let j = 0; j < size; j++) {
          const index = at + offsets[j], a = cover[j], b = 256 - a, old = pixels[index];
          pixels[index] = 0xff000000 | (((rb * a + (old & 0xff00ff) * b) >>> 8) & 0xff00ff) | (((g * a + (old & 0xff00) * b) >>> 8) & 0xff00);
        }
      }
    }
  }
}

// ------------------------------------------------------------------ many points

const MAX_COVER_LEVELS = 16; // the coverage of a pixel by a point is an integer up to this number
const MIN_OPACITY = 0.4; // of a single point where the points are dense, so that it stays visible
const REFERENCE_QUANTILE = 0.98; // pixels with at least this quantile of the counts (of pixels with points) are opaque

const ORDER_CELLS = 64; // of `SpatialOrder`, per axis

/**
 * An order of many points by the cells of a grid. Neighbours in the order are drawn close together, which is faster because of the caches of the
 * processor, and cells outside the visible area can be skipped. Points with NaN coordinates are left out.
 */
export class SpatialOrder {
  constructor(x, y, {left, right, low, high}) {
    const n = x.length, size = ORDER_CELLS, sx = (size - 1e-3) / (right - left || 1), sy = (size - 1e-3) / (high - low || 1);
    Object.assign(this, {left, low, sx, sy, source: x, sourceY: y, starts: new Uint32Array(size * size + 1)});
    const cells = new Int16Array(n);
    for (let i = 0; i < n; i++) {
      cells[i] = x[i] === x[i] && y[i] === y[i] ? Math.floor((y[i] - low) * sy) * size + Math.floor((x[i] - left) * sx) : -1;
      if (cells[i] >= 0) this.starts[cells[i] + 1]++;
    }
    for (let c = 0; c < size * size; c++) this.starts[c + 1] += this.starts[c];
    const next = this.starts.slice(), rows = new Uint32Array(this.starts[size * size]);
    for (let i = 0; i < n; i++) if (cells[i] >= 0) rows[next[cells[i]]++] = i;
    this.rows = rows;
    this.x = this.gather(x);
    this.y = this.gather(y);
  }

  /** Return the values of the points in this order. */
  gather(values) {
    const {rows} = this, out = new values.constructor(rows.length);
    for (let k = 0; k < rows.length; k++) out[k] = values[rows[k]];
    return out;
  }

  /** Return the ranges of the order that contain all points of a rectangle, as a list of [start, end]. */
  ranges(left, right, low, high) {
    const size = ORDER_CELLS, cell = (value, start, scale) => Math.max(0, Math.min(size - 1, Math.floor((value - start) * scale)));
    const first = cell(left, this.left, this.sx), last = cell(right, this.left, this.sx), found = [];
    for (let r = cell(low, this.low, this.sy); r <= cell(high, this.low, this.sy); r++) found.push([this.starts[r * size + first], this.starts[r * size + last + 1]]);
    return found;
  }
}

/** Return a disc, or the one or four pixels of a small point, as offsets into the sums of `accumulate`, with integer weights. */
function splat(radius, width, n) {
  const levels = Math.max(1, Math.min(MAX_COVER_LEVELS, Math.floor(2 ** 32 / (256 * n)))); // so that no sum exceeds 32 bits
  if (radius < 0.9) return {offsets: Int32Array.of(0), cover: Int32Array.of(1), reach: 0, levels: 1};
  if (radius < 1.3) return {offsets: Int32Array.of(0, 4, 4 * width, 4 * width + 4), cover: Int32Array.of(1, 1, 1, 1), reach: 1, levels: 1};
  const {offsets, cover} = disc(radius, width, 1);
  return {offsets: offsets.map(offset => 4 * offset), cover: cover.map(c => Math.round(c * levels / 256)), reach: Math.ceil(radius), levels};
}

/** Add the points from `start` to `end` with mask[i] === maskValue to `sums`, which has four numbers per pixel: the sums of red, green, blue, and the count. */
function accumulate(sums, width, height, margin, {sx, sy, tx, ty}, x, y, colours, mask, maskValue, {offsets, cover, reach}, start, end) {
  const size = offsets.length, all = mask === null, left = margin + tx, top = margin + ty;
  const right = width - reach, bottom = height - reach;
  for (let i = start; i < end; i++) {
    if (!all && mask[i] !== maskValue) continue;
    const px = x[i] * sx + left, py = y[i] * sy + top;
    if (!(px >= reach && py >= reach && px < right && py < bottom)) continue;
    const at = 4 * ((py | 0) * width + (px | 0)), c = colours === null ? 0 : colours[i];
    const red = c & 0xff, green = c >>> 8 & 0xff, blue = c >>> 16 & 0xff;
    for (let j = 0; j < size; j++) {
      const k = at + offsets[j], a = cover[j];
      sums[k] += red * a; sums[k + 1] += green * a; sums[k + 2] += blue * a; sums[k + 3] += a;
    }
  }
}

/** Return the count from which pixels are opaque: a quantile of the counts of all pixels that contain points. */
function referenceCount(sums, levels) {
  const size = 4096, tally = new Uint32Array(size);
  let pixels = 0;
  for (let k = 3; k < sums.length; k += 4) {
    if (sums[k]) { tally[Math.min(size - 1, Math.ceil(sums[k] / levels))]++; pixels++; }
  }
  let count = 1;
  for (let below = tally[1]; count < size - 1 && below < REFERENCE_QUANTILE * pixels;) below += tally[++count];
  return count;
}

/** Return the opacity of a pixel (from 0 to 256) for each sum of weights below the one from which pixels are opaque. */
function opacities(reference, levels, opacity) {
  const single = Math.max(MIN_OPACITY, 0.9 - 0.2 * Math.log2(reference)), table = new Uint16Array(Math.ceil(reference * levels) + 1);
  for (let k = 0; k < table.length; k++) {
    const count = k / levels, share = reference > 1 ? Math.log(Math.max(count, 1)) / Math.log(reference) : 0;
    table[k] = Math.round(256 * opacity * Math.min(count, 1) * (single + (1 - single) * Math.min(1, share)));
  }
  return table;
}

/**
 * Draw many points like `paint`, but such that the result does not depend on their order: a pixel has the mean colour of its points,
 * and an opacity that increases with the logarithm of their number. `sums` is an array of four numbers per pixel for intermediate results.
 * `reference` is the count from which pixels are opaque; if it is null, it is computed. It is returned, so that panning can preserve it.
 * Only the points in `ranges`, a list of [start, end], are drawn.
 */
export function paintDensity(pixels, sums, width, height, margin, transform, x, y, colours, singleColour, mask, maskValue, radius, opacity, reference = null, ranges = [[0, x.length]]) {
  const stamp = splat(radius, width, x.length);
  sums.fill(0);
  for (const [start, end] of ranges) accumulate(sums, width, height, margin, transform, x, y, singleColour === null ? colours : null, mask, maskValue, stamp, start, end);
  reference ??= referenceCount(sums, stamp.levels);
  const table = opacities(reference, stamp.levels, opacity), last = table.length - 1;
  for (let p = 0, k = 0; p < pixels.length; p++, k += 4) {
    const weight = sums[k + 3];
    if (weight === 0) continue;
    const a = table[weight < last ? weight : last], b = 256 - a, old = pixels[p];
    let red, green, blue;
    if (singleColour === null) {
      const share = 1 / weight;
      red = sums[k] * share; green = sums[k + 1] * share; blue = sums[k + 2] * share;
    } else { red = singleColour & 0xff; green = singleColour >>> 8 & 0xff; blue = singleColour >>> 16 & 0xff; }
    pixels[p] = 0xff000000 | ((blue * a + (old >>> 16 & 0xff) * b) >>> 8) << 16 | ((green * a + (old >>> 8 & 0xff) * b) >>> 8) << 8
      | (red * a + (old & 0xff) * b) >>> 8;
  }
  return reference;
}
