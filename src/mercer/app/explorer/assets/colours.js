// Colours of the themes and of the points. PALETTE is the palette of the Python package, which _serialize.py writes in front of this code.

const THEMES = {
  light: {grid: "#eef1f5", grey: "#c9d0d9", ink: "#1d2430", soft: "#5b6676", mark: "#2f6db5"},
  dark: {grid: "#1e242d", grey: "#3d4652", ink: "#e4e8ee", soft: "#98a3b3", mark: "#74aee8"},
};
for (const [name, theme] of Object.entries(THEMES)) Object.assign(theme, {paper: PALETTE.paper[name], classes: PALETTE.classes[name], other: PALETTE.other[name]});
const CLIP_QUANTILE = 0.02; // numeric colours can be limited to the range between this quantile and its complement
const CLIP_FACTOR = 3; // colours are limited by default if the extreme values make the range wider than this factor

const channels = hex => [1, 3, 5].map(k => parseInt(hex.slice(k, k + 2), 16));
/** Return a colour as a pixel of an ImageData: a 32-bit number with the bytes alpha, blue, green, red. */
const packColour = ([r, g, b]) => ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
const hexToPixel = hex => packColour(channels(hex));

/** Return the viridis colour of a number from 0 to 1, restricted to the range that is visible in the theme. */
function rampColour(fraction, theme) {
  const [low, high] = PALETTE.sequentialRange[theme], stops = PALETTE.sequential;
  const at = (low + (high - low) * Math.max(0, Math.min(1, fraction))) * (stops.length - 1);
  const i = Math.min(stops.length - 2, Math.floor(at)), f = at - i;
  return stops[i].map((c, k) => Math.round(c + f * (stops[i + 1][k] - c)));
}

/**
 * Write the colour of each point to `out`, and return a description for the legend:
 *
 * - {kind: "none"}: all points have the same colour.
 * - {kind: "classes", classes, rest, other}: `classes` (`column.coloured`, by default the first ones) have their own colours, and `rest` have the colour `other`.
 * - {kind: "numbers", low, high, ends, clipped, isClipped, isLog, canLog, canClip, stops}: the colours of `stops` range from `low` to
 *   `high`; `ends` are the labels of both ends, and `clipped` whether there are values below `low` and above `high`.
 *
 * The last two also contain `missing`, the number of missing values, and `missingColour`.
 *
 * @param options {clip, log} for numbers: `clip` limits the colours to the 2 % and 98 % quantiles (by default, if the extremes stretch
 *   the range by more than a factor of 3); `log` is ignored unless all values are positive. By default, `column.colourOptions`.
 */
export function colouring(column, theme, out, options = column?.colourOptions) {
  const palette = THEMES[theme];
  if (!column) {
    out.fill(hexToPixel(palette.classes[0]));
    return {kind: "none"};
  }
  const {data, missing, divisor} = column, unknown = hexToPixel(palette.other), list = column.categories();
  if (list) {
    const shown = column.coloured ?? list.slice(0, palette.classes.length), pixelOf = new Map(shown.map((one, k) => [one.code, hexToPixel(palette.classes[k])]));
    for (let i = 0; i < data.length; i++) out[i] = pixelOf.get(data[i]) ?? unknown;
    const classes = shown.map((one, k) => ({...one, colour: palette.classes[k]})), isShown = new Set(shown.map(one => one.code)), known = list.reduce((sum, one) => sum + one.count, 0);
    return {kind: "classes", classes, rest: list.filter(one => !isShown.has(one.code)), other: palette.other, missing: data.length - known, missingColour: palette.other};
  }
  const scale = numberScale(column, options), table = new Uint32Array(256), {low, high, isLog} = scale;
  for (let k = 0; k < 256; k++) table[k] = packColour(rampColour(k / 255, theme));
  const start = isLog ? Math.log(low) : low, factor = 255 / ((isLog ? Math.log(high) : high) - start || 1);
  for (let i = 0; i < data.length; i++) {
    const stored = data[i], value = stored / divisor;
    if (stored === missing || value !== value) out[i] = unknown;
    else out[i] = table[Math.max(0, Math.min(255, ((isLog ? Math.log(value) : value) - start) * factor)) | 0];
  }
  return {kind: "numbers", ...scale, missingColour: palette.other, stops: [0, 0.25, 0.5, 0.75, 1].map(t => `rgb(${rampColour(t, theme)})`)};
}

/** Return the range of the colours of a numeric column; the fields are documented in `colouring`. */
function numberScale(column, {clip = null, log = false} = {}) {
  const {smallest, largest, lower, upper, missing} = extremes(column), canLog = !column.isDate && smallest > 0, isLog = log && canLog;
  const width = (a, b) => isLog ? Math.log(b / a) : b - a, canClip = lower < upper && (smallest < lower || upper < largest);
  const isClipped = canClip && (clip ?? width(smallest, largest) > CLIP_FACTOR * width(lower, upper));
  const [low, high] = isClipped ? [lower, upper] : [smallest, largest], clipped = [smallest < low, high < largest];
  const ends = [`${clipped[0] ? "≤ " : ""}${column.formatValue(low)}`, `${clipped[1] ? "≥ " : ""}${column.formatValue(high)}`];
  return {low, high, ends, clipped, isClipped, isLog, canLog, canClip, missing};
}

const extremesCache = new WeakMap(); // by the array of values

/** Return the smallest and the largest value of a numeric column, its 2 % and 98 % quantiles, and the number of missing values. */
function extremes(column) {
  const {data, missing, divisor} = column;
  if (!extremesCache.has(data)) {
    const sorted = data.filter(value => value !== missing && value === value).sort(), n = sorted.length;
    const at = fraction => n ? sorted[Math.round(fraction * (n - 1))] / divisor : 0;
    const found = {smallest: at(0), largest: n ? at(1) : 1, lower: at(CLIP_QUANTILE), upper: at(1 - CLIP_QUANTILE), missing: data.length - n};
    extremesCache.set(data, found);
  }
  return extremesCache.get(data);
}
