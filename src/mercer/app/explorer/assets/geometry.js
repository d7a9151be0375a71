// Plane geometry: points inside a lasso, the nearest point, contours and axis ticks.

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
  for (let i = 0; i < n; i++) {
    const px = x[i], py = y[i];
    if (!(px >= left && px <= right && py >= low && py <= high)) continue;
    let odd = 0;
    for (let j = 0, k = m - 1; j < m; k = j++) {
      if ((ys[j] > py) !== (ys[k] > py) && px < (xs[k] - xs[j]) * (py - ys[j]) / (ys[k] - ys[j]) + xs[j]) odd ^= 1;
    }
    found[i] = odd;
  }
  return found;
}

/** Return the index of the point nearest to (px, py), or -1 if none is within `reach` pixels; sx and sy are pixels per unit. */
function nearest(x, y, px, py, sx, sy, reach) {
  let best = -1, least = reach * reach;
  for (let i = 0; i < x.length; i++) {
    const dx = (x[i] - px) * sx, dy = (y[i] - py) * sy, d = dx * dx + dy * dy;
    if (d <= least) { least = d; best = i; }
  }
  return best;
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

/** Return about `count` round numbers between low and high. */
function ticks(low, high, count) {
  const raw = (high - low) / count || 1, size = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map(m => m * size).find(s => s >= raw), out = [];
  for (let v = Math.ceil(low / step) * step; v <= high; v += step) out.push(Math.abs(v) < 1e-9 * step ? 0 : v);
  return out;
}
