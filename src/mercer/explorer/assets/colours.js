// Colours: Okabe and Ito's for classes, which colour-blind people tell apart, and viridis for numbers.

const THEMES = {
  light: {
    paper: "#ffffff", grid: "#eef1f5", grey: "#c9d0d9", ink: "#1d2430", soft: "#5b6676", mark: "#2f6db5",
    classes: ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8c2d6a", "#8a8d2b", "#3b3aa0", "#7a4b2a"],
    ramp: [0, 0.92],
  },
  dark: {
    paper: "#14181f", grid: "#1e242d", grey: "#3d4652", ink: "#e4e8ee", soft: "#98a3b3", mark: "#74aee8",
    classes: ["#4aa3df", "#f0b13c", "#2dbd8f", "#e59bc4", "#9ad4f7", "#f27f45", "#c56aa5", "#c3c65c", "#8f8df0", "#c09070"],
    ramp: [0.18, 1],
  },
};
const OTHER = {light: "#8b95a3", dark: "#7c8796"};
const VIRIDIS = [
  [68, 1, 84], [72, 40, 120], [62, 74, 137], [49, 104, 142], [38, 130, 142], [31, 158, 137], [53, 183, 121], [110, 206, 88], [181, 222, 43], [253, 231, 37],
];

const channels = hex => [1, 3, 5].map(k => parseInt(hex.slice(k, k + 2), 16));
/** A colour as it lies in an ImageData: alpha, blue, green, red. */
const packed = ([r, g, b]) => ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
const pixel = hex => packed(channels(hex));

/** The colour of a share from 0 to 1. */
function ramp(share, theme) {
  const [low, high] = THEMES[theme].ramp;
  const at = (low + (high - low) * Math.max(0, Math.min(1, share))) * (VIRIDIS.length - 1);
  const i = Math.min(VIRIDIS.length - 2, Math.floor(at)), f = at - i;
  return VIRIDIS[i].map((c, k) => Math.round(c + f * (VIRIDIS[i + 1][k] - c)));
}

/** Give each point its colour, and say what the colours mean. */
function colouring(column, theme, out) {
  const look = THEMES[theme];
  if (!column) {
    out.fill(pixel(look.classes[0]));
    return {kind: "none"};
  }
  const {data, missing, over} = column, unknown = pixel(OTHER[theme]), list = column.categories();
  if (list) {
    const shown = list.length <= look.classes.length ? list.length : look.classes.length - 1;
    const of = new Map(list.map((one, k) => [one.code, pixel(k < shown ? look.classes[k] : OTHER[theme])]));
    for (let i = 0; i < data.length; i++) out[i] = of.get(data[i]) ?? unknown;
    const classes = list.slice(0, shown).map((one, k) => ({...one, colour: look.classes[k]}));
    const rest = list.slice(shown);
    return {kind: "classes", classes, rest, other: OTHER[theme]};
  }
  const [low, high] = column.range(), table = new Uint32Array(256);
  for (let k = 0; k < 256; k++) table[k] = packed(ramp(k / 255, theme));
  const scale = 255 / ((high - low) * over || 1), start = low * over;
  for (let i = 0; i < data.length; i++) {
    const value = data[i];
    out[i] = value === missing || value !== value ? unknown : table[((value - start) * scale) | 0];
  }
  return {kind: "numbers", low, high, stops: [0, 0.25, 0.5, 0.75, 1].map(t => `rgb(${ramp(t, theme)})`)};
}
