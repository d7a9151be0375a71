// Pictures of an embedding as PNG and SVG files, with its title, axes, contours and the legend.

const PNG_SCALE = 2; // pixels of a PNG file per CSS pixel
const MAX_VECTOR_POINTS = 20000; // an SVG file contains at most this many points as circles, and otherwise an image
const PICTURE_TITLE_HEIGHT = 30, LEGEND_WIDTH = 180, LEGEND_ROW = 20; // in CSS pixels
const MAX_LEGEND_LABEL = 20; // characters

/** Return a copy of a pane that draws to other canvases, `factor` times as large, without cursor, lasso and markers. */
function copyOfPane(pane, factor) {
  const canvas = () => h("canvas", {width: Math.round(pane.width * factor), height: Math.round(pane.height * factor)}), copy = Object.create(pane);
  return Object.assign(copy, {
    base: canvas(), over: canvas(), image: null, stale: true, lasso: null, cursor: null, marker: null,
    scale: pane.scale * factor, pixelRatio: pane.pixelRatio * factor, view: Object.create(pane.view, {hovered: {value: -1}}),
  });
}

/** Return text without the characters that XML forbids. */
const xmlText = text => String(text).replace(/[^\t\n\r\x20-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, "\ufffd");

/** Return an SVG element whose attributes and text are valid in XML. */
function pictureElement(tag, attributes = {}, ...text) {
  return svgElement(tag, Object.fromEntries(Object.entries(attributes).map(([name, value]) => [name, xmlText(value)])), ...text.map(xmlText));
}

/** The part of the interface of a canvas context that the view uses, which writes SVG elements to `parent`. */
class SvgPen {
  constructor(parent) {
    Object.assign(this, {parent, stack: [], font: "11px sans-serif", lineWidth: 1, fillStyle: "#000", strokeStyle: "#000", textAlign: "left", textBaseline: "alphabetic", globalAlpha: 1, dash: [], path: ""});
    this.ruler = document.createElement("canvas").getContext("2d");
  }

  clearRect() {}
  save() { this.stack.push(this.parent); }
  restore() { this.parent = this.stack.pop(); }
  group(transform) { const node = pictureElement("g", {transform}); this.parent.append(node); this.parent = node; }
  translate(x, y) { this.group(`translate(${round(x)} ${round(y)})`); }
  rotate(angle) { this.group(`rotate(${round(angle * 180 / Math.PI)})`); }
  beginPath() { this.path = ""; }
  closePath() { this.path += "Z"; }
  moveTo(x, y) { this.path += `M${round(x)} ${round(y)}`; }
  lineTo(x, y) { this.path += `${this.path ? "L" : "M"}${round(x)} ${round(y)}`; }
  arc(x, y, r) { this.path += `M${round(x - r)} ${round(y)}a${round(r)} ${round(r)} 0 1 0 ${round(2 * r)} 0a${round(r)} ${round(r)} 0 1 0 ${round(-2 * r)} 0Z`; }
  setLineDash(dash) { this.dash = dash; }
  get strokes() { return {fill: "none", stroke: this.strokeStyle, "stroke-width": round(this.lineWidth), "stroke-linejoin": "round", ...(this.globalAlpha < 1 && {opacity: this.globalAlpha}), ...(this.dash.length && {"stroke-dasharray": this.dash.map(round).join(" ")})}; }
  get fills() { return {fill: this.fillStyle, ...(this.globalAlpha < 1 && {opacity: this.globalAlpha})}; }
  put(tag, attributes, ...text) { this.parent.append(pictureElement(tag, attributes, ...text)); }
  stroke() { if (this.path) this.put("path", {d: this.path, ...this.strokes}); }
  fill() { if (this.path) this.put("path", {d: this.path, ...this.fills}); }
  fillRect(x, y, width, height) { this.put("rect", {x: round(x), y: round(y), width: round(width), height: round(height), ...this.fills}); }
  strokeRect(x, y, width, height) { this.put("rect", {x: round(x), y: round(y), width: round(width), height: round(height), ...this.strokes}); }
  text(text, x, y, style) {
    const [, weight, size, family] = /^(.*?)([\d.]+)px (.*)$/.exec(this.font) || ["", "", "11", "sans-serif"];
    this.put("text", {x: round(x), y: round(y), "text-anchor": {center: "middle", right: "end"}[this.textAlign] || "start", "font-size": round(Number(size)), "font-family": family, ...(weight.trim() && {"font-weight": weight.trim()}),
      ...(this.textBaseline === "middle" && {"dominant-baseline": "central"}), ...style}, text);
  }
  fillText(text, x, y) { this.text(text, x, y, this.fills); }
  strokeText(text, x, y) { this.text(text, x, y, this.strokes); }
  measureText(text) { this.ruler.font = this.font; return this.ruler.measureText(text); }
}

const round = value => Math.round(value * 100) / 100;

/** Draw the title, the axis titles and the legend around an embedding of width x height; all lengths are in CSS pixels. */
function drawFrame(pen, pane, width, height) {
  const {view} = pane, theme = THEMES[view.theme], {colourScale: scale} = view, font = (size, weight = "") => `${weight}${size}px system-ui, sans-serif`;
  const shorten = text => text.length > MAX_LEGEND_LABEL ? `${text.slice(0, MAX_LEGEND_LABEL - 1)}…` : text;
  const write = (text, x, y, colour = theme.ink, size = 12, weight = "") => { pen.font = font(size, weight); pen.fillStyle = colour; pen.fillText(text, x, y); };
  pen.textAlign = "left";
  write(`${view.scene.title}: ${pane.message.title}`.slice(0, Math.floor(width / 7)), 12, 20, theme.ink, 13, "bold ");
  pen.textAlign = "center";
  write(pane.message.axes[0], width / 2, PICTURE_TITLE_HEIGHT + height - 5, theme.soft, 11);
  pen.save();
  pen.translate(13, PICTURE_TITLE_HEIGHT + height / 2);
  pen.rotate(-Math.PI / 2);
  write(pane.message.axes[1], 0, 0, theme.soft, 11);
  pen.restore();
  if (scale.kind === "none") return;
  pen.textAlign = "left";
  let y = PICTURE_TITLE_HEIGHT + 14;
  const x = width + 14;
  write(shorten(view.color), x, y, theme.ink, 12, "bold ");
  const entry = (colour, label) => {
    y += LEGEND_ROW;
    pen.beginPath();
    pen.arc(x + 5, y - 4, 5, 0, 2 * Math.PI);
    pen.fillStyle = colour;
    pen.fill();
    write(shorten(label), x + 17, y);
  };
  if (scale.kind === "numbers") {
    const steps = 50, wide = LEGEND_WIDTH - 30, column = view.column(view.color), format = value => column.formatValue ? column.formatValue(value) : formatNumber(value);
    for (let k = 0; k < steps; k++) { pen.fillStyle = `rgb(${rampColour(k / (steps - 1), view.theme)})`; pen.fillRect(x + k * wide / steps, y + 10, wide / steps + 0.5, 10); }
    const [low, high] = scale.ends || [format(scale.low), format(scale.high)];
    y += 34;
    write(low, x, y, theme.soft, 11);
    pen.textAlign = "right";
    write(high, x + wide, y, theme.soft, 11);
    pen.textAlign = "left";
  } else {
    for (const {name, count, colour} of scale.classes) entry(colour, `${name || "(empty)"} (${count.toLocaleString("en")})`);
    if (scale.rest.length) entry(scale.other, `${scale.rest.length} others`);
  }
  if (scale.missing) entry(scale.missingColour, `missing (${scale.missing.toLocaleString("en")})`);
}

/** Return the size of a picture in CSS pixels: of the embedding, and of the whole picture. */
function pictureSize(pane) {
  const width = pane.width / pane.pixelRatio, height = pane.height / pane.pixelRatio, {colourScale} = pane.view;
  const rows = colourScale.kind === "classes" ? colourScale.classes.length + 3 : 5;
  return {width, height, fullWidth: width + (colourScale.kind === "none" ? 0 : LEGEND_WIDTH), fullHeight: PICTURE_TITLE_HEIGHT + Math.max(height, colourScale.kind === "none" ? 0 : rows * LEGEND_ROW)};
}

/** Return a canvas with a picture of a pane. */
function pictureCanvas(pane) {
  const {width, height, fullWidth, fullHeight} = pictureSize(pane), copy = copyOfPane(pane, PNG_SCALE / pane.pixelRatio);
  const canvas = h("canvas", {width: Math.round(fullWidth * PNG_SCALE), height: Math.round(fullHeight * PNG_SCALE)}), pen = canvas.getContext("2d");
  copy.render();
  pen.fillStyle = THEMES[pane.view.theme].paper;
  pen.fillRect(0, 0, canvas.width, canvas.height);
  for (const layer of [copy.base, copy.over]) pen.drawImage(layer, 0, PICTURE_TITLE_HEIGHT * PNG_SCALE);
  pen.scale(PNG_SCALE, PNG_SCALE);
  drawFrame(pen, pane, width, height);
  return canvas;
}

/** Return a picture of a pane as an SVG document. */
function pictureSvg(pane) {
  const {width, height, fullWidth, fullHeight} = pictureSize(pane), theme = THEMES[pane.view.theme], isVector = pane.x.length <= MAX_VECTOR_POINTS;
  const svg = pictureElement("svg", {width: fullWidth, height: fullHeight, viewBox: `0 0 ${fullWidth} ${fullHeight}`}), clip = pictureElement("clipPath", {id: "frame"});
  const stage = pictureElement("g", {transform: `translate(0 ${PICTURE_TITLE_HEIGHT})`, "clip-path": "url(#frame)"}), pen = new SvgPen(stage);
  clip.append(pictureElement("rect", {width, height}));
  svg.append(pictureElement("title", {}, `${pane.view.scene.title}: ${pane.message.title}`), clip, pictureElement("rect", {width: fullWidth, height: fullHeight, fill: theme.paper}), stage);
  const copy = copyOfPane(pane, 1 / pane.pixelRatio);
  copy.render(); // computes the positions of the grid lines
  if (isVector) {
    pen.strokeStyle = theme.grid;
    pen.beginPath();
    for (const x of copy.gridLines[0]) { const [px] = copy.toPixels(x, 0); pen.moveTo(px, 0); pen.lineTo(px, height); }
    for (const y of copy.gridLines[1]) { const [, py] = copy.toPixels(0, y); pen.moveTo(0, py); pen.lineTo(width, py); }
    pen.stroke();
    for (const layer of copy.layers(copy.radius)) stage.append(vectorPoints(copy, ...layer));
  } else {
    const large = copyOfPane(pane, PNG_SCALE / pane.pixelRatio);
    large.render();
    stage.append(pictureElement("image", {width, height, href: large.base.toDataURL()}));
  }
  copy.over = {getContext: () => pen};
  copy.drawOverlay();
  drawFrame(new SvgPen(svg), pane, width, height);
  return `<?xml version="1.0" encoding="UTF-8"?>\n${new XMLSerializer().serializeToString(svg)}\n`;
}

/** Return a group of circles, in the order in which `paint` draws the points; the parameters are those of `paint`. */
function vectorPoints(pane, colours, singleColour, mask, maskValue, radius, opacity) {
  const {x, y, width, height} = pane, n = x.length, step = stride(n), group = pictureElement("g", {"fill-opacity": opacity}), hex = pixel => `#${[0, 8, 16].map(shift => (pixel >> shift & 255).toString(16).padStart(2, "0")).join("")}`;
  for (let k = 0, i = 0; k < n; k++, i = (i + step) % n) {
    if (mask !== null && mask[i] !== maskValue) continue;
    const [px, py] = pane.toPixels(x[i], y[i]);
    if (px > -radius && py > -radius && px < width + radius && py < height + radius) group.append(pictureElement("circle", {cx: round(px), cy: round(py), r: round(radius), fill: hex(singleColour ?? colours[i])}));
  }
  return group;
}

/** Return the menu of a pane that saves pictures. */
function pictureMenu(pane) {
  const name = () => [pane.view.scene.title, pane.message.title].join(" ").replace(/[^\p{L}\p{N}._-]+/gu, "-").slice(0, 80);
  const item = (text, save) => h("button", {type: "button", onclick: save}, text);
  return new Menu("⤓", "Save a picture", [
    item("PNG", () => pictureCanvas(pane).toBlob(blob => download(`${name()}.png`, "image/png", blob))),
    item("SVG", () => download(`${name()}.svg`, "image/svg+xml", pictureSvg(pane))),
  ]).element;
}
