// Drawings of points: images, graphs and series.
//
// `scene.drawings` describes how points are drawn:
//   {kind: "items", labels: [...], items: {row: item, ...}, note}   an item is a graph with positions of its nodes, or {values} of a series;
//                                                                   the items of all points, or {} if the server sends them on request
//   {kind: "series", columns: [...]}                                the values of these columns, in this order, as a line

const MAX_TEXT_NODES = 40; // the nodes of larger graphs are drawn without their labels
const MIN_TEXT_RADIUS = 2; // smaller nodes, in percent of the drawing, have no labels either
const REQUESTED_DRAWINGS = 20; // number of drawings in one request, so that the first ones are shown soon

/** Whether points are shown as drawings or images. */
const canDraw = view => Boolean(view.scene.image || view.scene.drawings);

/** Return the drawing of point i as a list of elements; an empty list if the point has no drawing, or if it has not arrived yet. Thumbnails have no labels of nodes. */
function drawing(view, i, hasLabels = false) {
  const {drawings} = view.scene;
  if (view.scene.image) return view.imageCanvas(k => view.columns[view.scene.image.columns[k]].at(i));
  if (!drawings) return [];
  if (drawings.kind === "series") {
    const columns = drawings.columns.map(k => view.columns[k]);
    return columns.every(column => column.isLoaded) ? [seriesDrawing(columns.map(column => column.at(i)))] : [];
  }
  return drawings.items[i] ? itemDrawing(view, drawings.items[i], hasLabels) : [];
}

/** Return the elements of an item that the server has sent. */
const itemDrawing = (view, item, hasLabels) => item.values ? [seriesDrawing([...item.values].map(value => value === value ? value : null))] : graphDrawing(view, item, hasLabels);

/** Request the drawings of rows from the server, unless they are known or have been requested. */
function requestDrawings(view, rows) {
  const {drawings} = view.scene;
  if (!view.link || drawings?.kind !== "items") return;
  drawings.requested ??= new Set();
  const wanted = [...rows].filter(i => !(i in drawings.items) && !drawings.requested.has(i));
  for (let k = 0; k < wanted.length; k += REQUESTED_DRAWINGS) view.link.send({type: "drawings", rows: wanted.slice(k, k + REQUESTED_DRAWINGS)});
  wanted.forEach(i => drawings.requested.add(i));
}

/** Show drawings that have arrived from the server. */
function receiveDrawings(view, {items, error}) {
  const {drawings} = view.scene;
  if (!drawings) return;
  if (error) { drawings.requested = new Set(); return view.announce(error); }
  Object.assign(drawings.items, items);
  view.changed("drawings");
}

/** Return the elements of a graph: a picture, or a description of a large graph. */
function graphDrawing(view, {x, y, edges, codes, directed, text}, hasLabels) {
  if (!x) return [h("p", {class: "summary"}, text)];
  const {labels} = view.scene.drawings, palette = THEMES[view.theme].classes, size = 100, n = x.length;
  const X = i => 7 + (size - 14) * x[i] / 255, Y = i => 7 + (size - 14) * y[i] / 255, lines = [], heads = [], lengths = [];
  for (let e = 0; e < edges.length; e += 2) lengths.push(Math.hypot(X(edges[e]) - X(edges[e + 1]), Y(edges[e]) - Y(edges[e + 1])));
  const edgeLength = lengths.sort((a, b) => a - b)[lengths.length >> 1] || 20, radius = Math.max(1, Math.min(4.5, 0.28 * edgeLength));
  for (let e = 0; e < edges.length; e += 2) {
    const [a, b] = [edges[e], edges[e + 1]], dx = X(b) - X(a), dy = Y(b) - Y(a), d = Math.hypot(dx, dy);
    if (a === b) lines.push(`M${X(a)},${Y(a)}m-${radius},0a${radius},${radius} 0 1 1 ${radius},-${radius}`);
    else lines.push(`M${X(a).toFixed(2)},${Y(a).toFixed(2)}L${X(b).toFixed(2)},${Y(b).toFixed(2)}`);
    if (directed && d > 0) {
      const ux = dx / d, uy = dy / d, px = X(b) - ux * radius, py = Y(b) - uy * radius, w = radius * 0.6;
      heads.push(`M${px},${py}L${px - 2 * w * ux - w * uy},${py - 2 * w * uy + w * ux}L${px - 2 * w * ux + w * uy},${py - 2 * w * uy - w * ux}Z`);
    }
  }
  const colour = code => code < palette.length ? palette[code] : OTHER_COLOUR[view.theme];
  const nodes = Array.from({length: n}, (_, i) => svgElement("circle", {cx: X(i).toFixed(2), cy: Y(i).toFixed(2), r: radius, fill: codes ? colour(codes[i]) : palette[0]}, svgElement("title", {}, codes ? `node ${i}: ${labels[codes[i]]}` : `node ${i}`)));
  const isLabelled = hasLabels && codes && n <= MAX_TEXT_NODES && radius >= MIN_TEXT_RADIUS && labels.every(label => label.length <= 2);
  const texts = isLabelled ? Array.from({length: n}, (_, i) => svgElement("text", {x: X(i).toFixed(2), y: Y(i).toFixed(2), "text-anchor": "middle", "dominant-baseline": "central", class: "node", "font-size": radius * 1.3}, labels[codes[i]])) : [];
  return [svgElement("svg", {viewBox: `0 0 ${size} ${size}`, class: "graph", role: "img", "aria-label": text}, svgElement("path", {d: lines.join(""), class: "edge"}), svgElement("path", {d: heads.join(""), class: "head"}), ...nodes, ...texts)];
}

/** Return the legend of the node labels as a list of elements. */
function drawingLegend(view) {
  const labels = view.scene.drawings?.labels || [], palette = THEMES[view.theme].classes;
  const entry = (text, colour) => { const dot = h("i"); dot.style.background = colour; return h("span", {class: "item"}, dot, h("span", {}, text)); };
  const coloured = labels.slice(0, palette.length).map((label, code) => ({label, colour: palette[code]}));
  const shown = coloured.sort((a, b) => a.label.localeCompare(b.label, "en", {numeric: true})).map(({label, colour}) => entry(label, colour));
  if (labels.length > palette.length) shown.push(entry(`${labels.length - palette.length} other labels`, OTHER_COLOUR[view.theme]));
  return shown.length ? [h("div", {class: "legend nodes", "aria-label": "Node labels"}, ...shown)] : [];
}

/** Draw values in their order as a line; missing values interrupt it. */
function seriesDrawing(values) {
  const known = values.filter(value => value !== null), low = Math.min(...known), high = Math.max(...known), width = 100, height = 40;
  const X = k => (2 + (width - 4) * k / (values.length - 1 || 1)).toFixed(2), Y = value => (height - 2 - (height - 4) * (value - low) / (high - low || 1)).toFixed(2);
  let path = "", isDrawing = false;
  values.forEach((value, k) => { path += value === null ? "" : `${isDrawing ? "L" : "M"}${X(k)},${Y(value)}`; isDrawing = value !== null; });
  return svgElement("svg", {viewBox: `0 0 ${width} ${height}`, class: "series", role: "img", "aria-label": `Series of ${values.length} values from ${formatNumber(low)} to ${formatNumber(high)}`}, svgElement("path", {d: path, class: "line"}));
}
