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
  if (n < 3 || n > 200000) return 1; // for more points, sequential memory access is more important than the order
  const gcd = (a, b) => b ? gcd(b, a % b) : a;
  let step = Math.round(n * 0.6180339887);
  while (gcd(step, n) !== 1) step++;
  return step % n;
}

/**
 * Draw the points with mask[i] === maskValue, or all points if mask is null, into pixels.
 * The point (x, y) is drawn at the pixel (x * sx + tx, y * sy + ty). If singleColour is null, point i has colours[i].
 */
function paint(pixels, width, height, margin, transform, x, y, colours, singleColour, mask, maskValue, radius, opacity) {
  const n = x.length, step = stride(n), {sx, sy, tx, ty} = transform;
  const left = margin + tx, top = margin + ty;
  const all = mask === null, isSingleColour = singleColour !== null;
  if (radius < 1.3) { // small points are drawn as one or four pixels
    const four = radius >= 0.9, right = width - 1, bottom = height - 1;
    for (let k = 0, i = 0; k < n; k++) {
      if (all || mask[i] === maskValue) {
        const px = x[i] * sx + left, py = y[i] * sy + top;
        if (px >= 0 && py >= 0 && px < right && py < bottom) {
          const at = (py | 0) * width + (px | 0), c = isSingleColour ? singleColour : colours[i];
          // The mean of the old pixel and the colour, for all channels at once.
          pixels[at] = (pixels[at] & c) + (((pixels[at] ^ c) & 0xfefefefe) >>> 1);
          if (four) {
            pixels[at + 1] = (pixels[at + 1] & c) + (((pixels[at + 1] ^ c) & 0xfefefefe) >>> 1);
            pixels[at + width] = (pixels[at + width] & c) + (((pixels[at + width] ^ c) & 0xfefefefe) >>> 1);
            pixels[at + width + 1] = (pixels[at + width + 1] & c) + (((pixels[at + width + 1] ^ c) & 0xfefefefe) >>> 1);
          }
        }
      }
      i += step;
      if (i >= n) i -= n;
    }
    return;
  }
  const {offsets, cover} = disc(radius, width, opacity), reach = Math.ceil(radius), size = offsets.length;
  const right = width - reach - 1, bottom = height - reach - 1;
  for (let k = 0, i = 0; k < n; k++) {
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
    i += step;
    if (i >= n) i -= n;
  }
}
