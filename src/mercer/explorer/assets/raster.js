// The rasteriser: points become pixels of an ImageData, a million of them within a frame.

/** A disc of a radius in pixels, as offsets and coverages from 0 to 256. */
function disc(radius, width, opacity) {
  const reach = Math.ceil(radius), offsets = [], cover = [];
  for (let dy = -reach; dy <= reach; dy++) {
    for (let dx = -reach; dx <= reach; dx++) {
      const share = Math.max(0, Math.min(1, radius + 0.5 - Math.hypot(dx, dy)));
      const amount = Math.round(256 * opacity * share);
      if (amount > 0) { offsets.push(dy * width + dx); cover.push(amount); }
    }
  }
  return {offsets: Int32Array.from(offsets), cover: Int32Array.from(cover)};
}

/** An order of 0 ... n - 1 that steps far each time, so that no class lies on top because it comes last. */
function stride(n) {
  if (n < 3 || n > 200000) return 1; // beyond, memory in its order is what makes a frame quick
  const gcd = (a, b) => b ? gcd(b, a % b) : a;
  let step = Math.round(n * 0.6180339887);
  while (gcd(step, n) !== 1) step++;
  return step % n;
}

/**
 * Draw points of one kind (mask[i] === wanted, or all without a mask) into pixels.
 * A place (x, y) is the pixel (x * sx + tx, y * sy + ty).
 */
function paint(pixels, width, height, margin, see, x, y, colours, one, mask, wanted, radius, opacity) {
  const n = x.length, step = stride(n), {sx, sy, tx, ty} = see;
  const left = margin + tx, top = margin + ty;
  const all = mask === null, alike = one !== null;
  if (radius < 1.3) { // so small that a disc is a pixel, or four
    const four = radius >= 0.9, right = width - 1, bottom = height - 1;
    for (let k = 0, i = 0; k < n; k++) {
      if (all || mask[i] === wanted) {
        const px = x[i] * sx + left, py = y[i] * sy + top;
        if (px >= 0 && py >= 0 && px < right && py < bottom) {
          const at = (py | 0) * width + (px | 0), c = alike ? one : colours[i];
          // the mean of what is there and the colour, for all channels at once
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
    if (all || mask[i] === wanted) {
      const px = Math.round(x[i] * sx + left), py = Math.round(y[i] * sy + top);
      if (px >= reach && py >= reach && px <= right && py <= bottom) {
        const at = py * width + px, c = alike ? one : colours[i];
        const rb = c & 0xff00ff, g = c & 0xff00;
        for (let j = 0; j < size; j++) {
          const there = at + offsets[j], a = cover[j], b = 256 - a, old = pixels[there];
          pixels[there] = 0xff000000 | (((rb * a + (old & 0xff00ff) * b) >>> 8) & 0xff00ff) | (((g * a + (old & 0xff00) * b) >>> 8) & 0xff00);
        }
      }
    }
    i += step;
    if (i >= n) i -= n;
  }
}
