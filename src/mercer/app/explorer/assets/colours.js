// Colours: classes use the colour-blind safe palette of Okabe and Ito, numbers use viridis.

const THEMES = {
  light: {
    paper: "#ffffff", grid: "#eef1f5", grey: "#c9d0d9", ink: "#1d2430", soft: "#5b6676", mark: "#2f6db5",
    classes: ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8c2d6a", "#8a8d2b", "#3b3aa0", "#7a4b2a"],
    rampRange: [0, 0.92],
  },
  dark: {
    paper: "#14181f", grid: "#1e242d", grey: "#3d4652", ink: "#e4e8ee", soft: "#98a3b3", mark: "#74aee8",
    classes: ["#4aa3df", "#f0b13c", "#2dbd8f", "#e59bc4", "#9ad4f7", "#f27f45", "#c56aa5", "#c3c65c", "#8f8df0", "#c09070"],
    rampRange: [0.18, 1],
  },
};
const OTHER_COLOUR = {light: "#8b95a3", dark: "#7c8796"};
const VIRIDIS = [
  [68, 1, 84], [72, 40, 120], [62, 74, 137], [49, 104, 142], [38, 130, 142], [31, 158, 137], [53, 183, 121], [110, 206, 88], [181, 222, 43], [253, 231, 37],
];

const channels = hex => [1, 3, 5].map(k => parseInt(hex.slice(k, k + 2), 16));
/** Return a colour as a pixel of an ImageData: a 32-bit number with the bytes alpha, blue, green, red. */
const packColour = ([r, g, b]) => ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
const hexToPixel = hex => packColour(channels(hex));

/** Return the viridis colour of a number from 0 to 1, restricted to the range that is visible in the theme. */
function rampColour(fraction, theme) {
  const [low, high] = THEMES[theme].rampRange;
  const at = (low + (high - low) * Math.max(0, Math.min(1, fraction))) * (VIRIDIS.length - 1);
  const i = Math.min(VIRIDIS.length - 2, Math.floor(at)), f = at - i;
  return VIRIDIS[i].map((c, k) => Math.round(c + f * (VIRIDIS[i + 1][k] - c)));
}

/** Write the colour of each point to `out`, and return a description for the legend. */
function colouring(column, theme, out) {
  const palette = THEMES[theme];
  if (!column) {
    out.fill(hexToPixel(palette.classes[0]));
    return {kind: "none"};
  }
  const {data, missing, divisor} = column, unknown = hexToPixel(OTHER_COLOUR[theme]), list = column.categories();
  if (list) {
    const shown = list.length <= palette.classes.length ? list.length : palette.classes.length - 1;
    const pixelOf = new Map(list.map((one, k) => [one.code, hexToPixel(k < shown ? palette.classes[k] : OTHER_COLOUR[theme])]));
    for (let i = 0; i < data.length; i++) out[i] = pixelOf.get(data[i]) ?? unknown;
    const classes = list.slice(0, shown).map((one, k) => ({...one, colour: palette.classes[k]}));
    const rest = list.slice(shown);
    return {kind: "classes", classes, rest, other: OTHER_COLOUR[theme]};
  }
  const [low, high] = column.range(), table = new Uint32Array(256);
  for (let k = 0; k < 256; k++) table[k] = packColour(rampColour(k / 255, theme));
  const scale = 255 / ((high - low) * divisor || 1), start = low * divisor;
  for (let i = 0; i < data.length; i++) {
    const value = data[i];
    out[i] = value === missing || value !== value ? unknown : table[((value - start) * scale) | 0];
  }
  return {kind: "numbers", low, high, stops: [0, 0.25, 0.5, 0.75, 1].map(t => `rgb(${rampColour(t, theme)})`)};
}
