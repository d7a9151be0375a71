// Plane geometry: points inside a lasso, the nearest point, contours and axis ticks.

const LASSO_BANDS = 256; // the edges of a lasso are sorted into this many horizontal bands

/** Return a mask of the points inside a closed polygon [[x, y], ...], by the even-odd rule. */
export function inside(x, y, polygon) {
  const n = x.length, found = new Uint8Array(n), m = polygon.length;
  if (m < 3) return found;
  const xs = Float64Array.from(polygon, p => p[0]), ys = Float64Array.from(polygon, p => p[1]);
  let left = Infinity, right = -Infinity, low = Infinity, high = -Infinity;
  for (let j = 0; j < m; j++) {
    left = Math.min(left, xs[j]); right = Math.max(right, xs[j]);
    low = Math.min(low, ys[j]); high = Math.max(high, ys[j]);
  }
  // A horizontal band contains the edges that a horizontal line in it can cross, so that a point is compared with few edges.
  const bands = Array.from({length: LASSO_BANDS}, () => []), perUnit = LASSO_BANDS / (high - low || 1), band = v => Math.floor((v - low) * perUnit);
  for (let j = 0, k = m - 1; j < m; k = j++) {
    const first = Math.max(0, band(Math.min(ys[j], ys[k])) - 1), last = Math.min(LASSO_BANDS - 1, band(Math.max(ys[j], ys[k])) + 1);
    for (let b = first; b <= last; b++) bands[b].push(j, k);
  }
  for (let i = 0; i < n; i++) {
    const px = x[i], py = y[i];
    if (!(px >= left && px <= right && py >= low && py <= high)) continue;
    const edges = bands[Math.min(LASSO_BANDS - 1, band(py))];
    let odd = 0;
    for (let e = 0; e < edges.length; e += 2) {
      const j = edges[e], k = edges[e + 1];
      if ((ys[j] > py) !== (ys[k] > py) && px < (xs[k] - xs[j]) * (py - ys[j]) / (ys[k] - ys[j]) + xs[j]) odd ^= 1;
    }
    found[i] = odd;
  }
  return found;
}

/** Return the smallest rectangle that contains all points; NaN is ignored. */
function boundsOf(x, y) {
  let left = Infinity, right = -Infinity, low = Infinity, high = -Infinity;
  for (let i = 0; i < x.length; i++) {
    if (x[i] < left) left = x[i];
    if (x[i] > right) right = x[i];
    if (y[i] < low) low = y[i];
    if (y[i] > high) high = y[i];
  }
  return left > right ? {left: -1, right: 1, low: -1, high: 1} : {left, right, low, high};
}

/** Return the index of the point of a mask (by default, of all points) nearest to (px, py), or -1 if none is within `reach` pixels; sx and sy are pixels per unit. */
function nearest(x, y, px, py, sx, sy, reach, mask = null) {
  let best = -1, least = reach * reach;
  for (let i = 0; i < x.length; i++) {
    if (mask && !mask[i]) continue;
    const dx = (x[i] - px) * sx, dy = (y[i] - py) * sy, d = dx * dx + dy * dy;
    if (d <= least) { least = d; best = i; }
  }
  return best;
}

/** Return the k points nearest to point i in the plane, with their distances, in ascending order; ties are in the order of the points. */
export function nearestOthers(x, y, i, k) {
  const found = [];
  for (let j = 0; j < x.length; j++) {
    const d = (x[j] - x[i]) ** 2 + (y[j] - y[i]) ** 2;
    if (j === i || (found.length === k && !(d < found[k - 1].d))) continue;
    let at = found.length;
    while (at > 0 && found[at - 1].d > d) at--;
    found.splice(at, 0, {j, d});
    if (found.length > k) found.pop();
  }
  return {rows: found.map(one => one.j), distances: found.map(one => Math.sqrt(one.d))};
}

/** Return the segments of a contour line of a function on a grid, by marching squares. */
export function contour(field, level) {
  const {values, columns, rows, left, right, low, high} = field, segments = [];
  const X = c => left + (right - left) * c / (columns - 1), Y = r => low + (high - low) * r / (rows - 1);
  for (let r = 0; r + 1 < rows; r++) {
    for (let c = 0; c + 1 < columns; c++) {
      const a = values[r * columns + c] - level, b = values[r * columns + c + 1] - level;
      const d = values[(r + 1) * columns + c] - level, e = values[(r + 1) * columns + c + 1] - level;
      if (!(a === a && b === b && d === d && e === e)) continue;
      const cuts = [];
      if ((a < 0) !== (b < 0)) cuts.push([X(c + a / (a - b)), Y(r)]);
      if ((b < 0) !== (e < 0)) cuts.push([X(c + 1), Y(r + b / (b - e))]);
      if ((d < 0) !== (e < 0)) cuts.push([X(c + d / (d - e)), Y(r + 1)]);
      if ((a < 0) !== (d < 0)) cuts.push([X(c), Y(r + a / (a - d))]);
      if (cuts.length === 2) segments.push(cuts);
      else if (cuts.length === 4) { // at a saddle, the mean of the corners decides which corners are connected
        const same = (a + b + d + e < 0) === (a < 0);
        segments.push(same ? [cuts[0], cuts[1]] : [cuts[0], cuts[3]], same ? [cuts[2], cuts[3]] : [cuts[1], cuts[2]]);
      }
    }
  }
  return segments;
}

/** Return about `count` round numbers between low and high; numbers that float64 cannot distinguish are one tick. */
function ticks(low, high, count) {
  const raw = (high - low) / count || 1, size = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map(m => m * size).find(s => s >= raw), first = Math.ceil(low / step) * step, out = [];
  for (let k = 0; k <= count; k++) { // adding the step repeatedly would never end if it is smaller than the precision of float64
    const v = Math.abs(first + k * step) < 1e-9 * step ? 0 : first + k * step;
    if (v <= high && v !== out.at(-1)) out.push(v);
  }
  return out;
}

/** Return about `count` round numbers between low and high, of which at least two are between first and last, if possible. */
function axisTicks(low, high, count, first, last) {
  for (const most = 4 * count; count < most; count++) {
    const found = ticks(low, high, count);
    if (found.filter(v => v >= first && v <= last).length > 1) return found;
  }
  return ticks(low, high, count);
}
