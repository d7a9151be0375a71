// The point panel: the record of the current point and its neighbours, and the pre-image of the position that was clicked.

const HIT_RADIUS = 9; // a click within this many CSS pixels of a point shows the point
const N_NEIGHBOURS = 10; // the panel lists this many neighbours

class PointPanel {
  constructor(view) {
    Object.assign(this, {view, token: 0, neighbourToken: 0, current: -1, neighbours: []});
    this.record = h("div", {class: "record"});
    this.near = h("div", {class: "neighbours", tabIndex: -1});
    this.recordSection = h("section", {hidden: true}, this.record, this.near);
    this.card = h("div", {class: "preimage"});
    this.element = h("div", {}, this.recordSection, h("section", {}, h("h2", {}, "Pre-image"), this.card));
    view.on("preimage", message => { if (message.token === this.token) this.showPreimage(message); });
    view.on("neighbours", message => { if (message.token === this.neighbourToken) this.showNeighbours(message); });
    view.on("drawings", message => receiveDrawings(view, message));
  }

  update(change) {
    const {view} = this;
    if (change === "scene") {
      this.select(-1);
      this.card.replaceChildren(h("p", {class: "soft"}, view.link || view.scene.panes.some(message => message.preimages) ? "Click a point to see its record and its neighbours, or any other position to see the point that would be there."
        : "Click a position to see the nearest point. A saved page contains no model, so it cannot compute pre-images."));
    }
    if (this.current < 0) return;
    if (["columns", "values", "colours", "drawings", "theme"].includes(change)) this.drawRecord();
    if (change === "embeddings") this.requestNeighbours(view.active);
  }

  // ---------------------------------------------------------------- the current point

  /** Show a point as the current point: its record and its neighbours. */
  show(i, pane = this.view.active) {
    this.select(i);
    if (i < 0) return;
    this.view.tabs.show("Point");
    this.drawRecord();
    this.requestNeighbours(pane);
    requestDrawings(this.view, [i]);
    this.view.announce(this.view.describe(i));
    this.view.changed("point");
  }

  select(i) {
    Object.assign(this, {current: i, neighbours: []});
    this.recordSection.hidden = i < 0;
    this.near.replaceChildren();
    this.redrawMarks();
  }

  redrawMarks() { this.view.panes.forEach(pane => pane.gridLines && pane.drawOverlay()); }

  drawRecord() {
    const {view, current} = this;
    this.record.replaceChildren(h("h2", {}, `Row ${view.rowNumber(current)}`), ...drawing(view, current, true), ...drawingLegend(view),
      h("div", {class: "scroll"}, pairs(view.shownColumns().map(column => [column.name, column.format(current)]))));
  }

  requestNeighbours(pane) {
    const {view} = this, token = ++this.neighbourToken, i = this.current;
    if (view.link) {
      this.near.replaceChildren(h("p", {class: "soft"}, "Neighbours: computing …"));
      view.link.send({type: "neighbours", row: i, count: N_NEIGHBOURS, token});
    } else {
      const {x, y, message} = pane, found = nearestOthers(x, y, i, N_NEIGHBOURS), same = found.distances.filter(d => d === 0).length;
      this.showNeighbours({...found, same, text: `Distances in the embedding ${message.title}, because a saved page contains no model.`});
    }
  }

  showNeighbours({rows, distances, same, text, error}) {
    const {view} = this;
    if (error) return this.near.replaceChildren(h("p", {class: "trouble"}, error));
    this.neighbours = [...rows];
    const column = view.column(view.color), more = same === N_NEIGHBOURS && !view.link ? "At least " : "";
    const item = (i, k) => h("li", {}, h("button", {type: "button", class: "link", onclick: () => this.walk(i), onpointerenter: () => view.highlight(i), onpointerleave: () => view.highlight(-1), onfocus: () => view.highlight(i), onblur: () => view.highlight(-1)},
      `row ${view.rowNumber(i)}`), h("span", {}, distances[k].toPrecision(3)), h("span", {class: "soft"}, column?.isLoaded ? column.format(i) : ""));
    this.near.replaceChildren(h("h2", {}, "Neighbours"), ...(same ? [h("p", {class: "same"}, `${more}${same} other ${same === 1 ? "point is" : "points are"} identical (distance 0).`)] : []),
      h("ol", {class: "near"}, ...this.neighbours.map(item)), h("p", {class: "soft"}, text),
      h("button", {type: "button", onclick: () => this.selectNeighbours()}, "Select these points"));
    if (this.movesFocus) this.near.querySelector("ol button")?.focus();
    this.movesFocus = false;
    this.redrawMarks();
  }

  /** Move to a neighbour; if the focus is in the list, it moves to the first neighbour of the new point. */
  walk(i) {
    this.movesFocus = this.near.contains(this.near.getRootNode().activeElement);
    if (this.movesFocus) this.near.focus(); // until the neighbours have arrived
    this.show(i);
  }

  selectNeighbours() {
    const wanted = new Set([this.current, ...this.neighbours]);
    this.view.select(this.view.combineSelection(i => wanted.has(i), "set"), `row ${this.view.rowNumber(this.current)} and its neighbours`);
  }

  /** Mark the current point and its neighbours in a pane. */
  drawMarks(pane, pen, theme) {
    if (this.current < 0 || !(this.current < pane.x.length)) return;
    const ring = (i, radius, width) => {
      const [px, py] = pane.toPixels(pane.x[i], pane.y[i]);
      for (const [extra, colour] of [[2, theme.paper], [0, theme.mark]]) {
        pen.beginPath();
        pen.arc(px, py, radius * pane.pixelRatio, 0, 2 * Math.PI);
        pen.lineWidth = (width + extra) * pane.pixelRatio;
        pen.strokeStyle = colour;
        pen.stroke();
      }
    };
    this.neighbours.forEach(i => ring(i, 6, 1.3));
    ring(this.current, 9, 2.6);
  }

  // ---------------------------------------------------------------- pre-images

  /** Show the point at a position, if there is one, and the point that corresponds to the position; without a model, the nearest point. */
  request(pane, x, y) {
    const {view} = this;
    const hit = view.nearestPoint(pane, x, y, HIT_RADIUS);
    view.panes.forEach(one => { one.marker = one === pane ? [x, y] : null; });
    view.redraw();
    view.tabs.show("Point");
    this.show(hit, pane);
    const where = `${pane.message.title}, at ${this.format(x)}, ${this.format(y)}`;
    if (view.link && pane.message.has_inverse) {
      this.card.replaceChildren(h("p", {class: "soft"}, `${where}: computing …`));
      view.link.send({type: "preimage", pane: pane.index, x, y, token: ++this.token});
      return;
    }
    if (pane.message.preimages) return this.showStored(pane.message, x, y);
    const why = view.link ? `${pane.message.title} has no inverse transform.` : "A saved page contains no model.";
    if (hit < 0) this.show(nearest(pane.x, pane.y, x, y, 1, 1, Infinity, view.visible), pane);
    this.card.replaceChildren(h("p", {class: "soft"}, `${where}. ${why} ${hit < 0 ? "The nearest point is shown above." : ""}`));
    view.announce(`${why} Nearest point: ${this.current < 0 ? "none" : view.describe(this.current)}`);
  }

  /** Show the pre-image at the nearest position of the grid that was stored in the page. */
  showStored({title, preimages: {count, left, right, low, high, names, values, records, texts}}, x, y) {
    const at = (value, from, to) => Math.max(0, Math.min(count - 1, Math.round((value - from) / (to - from || 1) * (count - 1))));
    const c = at(x, left, right), r = at(y, low, high), k = r * count + c, d = names?.length, point = values?.subarray(k * d, (k + 1) * d);
    const position = [left + (right - left) * c / (count - 1 || 1), low + (high - low) * r / (count - 1 || 1)];
    const image = this.view.scene.image ? point : null, record = image ? [] : records ? records[k] : names.map((name, j) => [name, formatNumber(point[j])]);
    this.showPreimage({title, position, image, record, text: `Nearest of the ${count} × ${count} stored positions. ${texts[k]}`});
  }

  showPreimage({record, image, text, title, position, drawing: item}) {
    const {view} = this, [x, y] = position, {drawings} = view.scene, values = new Map(record);
    const picture = image ? view.imageCanvas(k => image[k]) : item ? itemDrawing(view, item, true)
      : drawings?.kind === "series" && record.length ? [seriesDrawing(drawings.columns.map(k => Number(values.get(view.columns[k].name))))] : [];
    this.card.replaceChildren(h("p", {}, `${title}, at ${this.format(x)}, ${this.format(y)}`), ...picture, pairs(record), h("p", {class: "soft"}, text));
    const what = image ? "an image" : record.slice(0, 6).map(pair => pair.join(" ")).join(", ");
    view.announce(record.length || image ? `Pre-image: ${what}. ${text}` : text);
  }

  /** Format a coordinate of the marked position with the precision of a pixel. */
  format(value) {
    const scale = this.view.panes.find(pane => pane.marker)?.scale || 1;
    return String(Number(value.toFixed(Math.max(0, Math.min(12, Math.ceil(Math.log10(scale)))))));
  }
}
