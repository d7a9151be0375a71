// The panel of components: small scatter plots of all pairs of the first components of an embedding.

const SMALL_PLOT_PIXELS = 120; // the radii of points are those for a plot of this width in CSS pixels

/** Add the coordinates of components to a saved scene; those on the axes are stored only once and are null here. */
function addComponents(scene, {panes}) {
  scene.panes.forEach((pane, k) => {
    if (panes[k].length) pane.components = panes[k].map((values, j) => values || (j === pane.shown[0] ? pane.x : pane.y));
  });
}

class ComponentsPanel {
  constructor(view) {
    Object.assign(this, {view, pane: null, coordinates: null, plots: []});
    this.heading = h("h2");
    this.text = h("p", {class: "soft"});
    this.grid = h("div", {class: "matrix"});
    this.element = h("dialog", {class: "components", "aria-label": "Components", onclose: () => { this.pane = null; this.element.remove(); }},
      this.heading, this.text, this.grid, h("button", {type: "button", onclick: () => this.element.close()}, "Close"));
    view.on("components", ({pane, coordinates}) => { if (this.pane && pane === this.pane.index) this.show(coordinates); });
  }

  /** Show the pairs of components of a pane; a click on one shows it in the pane. */
  open(pane) {
    this.pane = pane;
    this.plots = [];
    this.grid.replaceChildren();
    this.heading.textContent = `Components of ${pane.message.title}`;
    this.view.root.append(this.element);
    this.element.showModal();
    this.load();
  }

  load() {
    const {message} = this.pane;
    if (message.components) this.show(message.components);
    else if (this.view.link) {
      this.text.textContent = "Loading …";
      this.view.link.send({type: "components", pane: this.pane.index});
    } else this.text.textContent = "This page does not contain the other components, because they would make it more than 20 % larger. They are available in mercer explore.";
  }

  show(coordinates) {
    const k = coordinates.length, {message} = this.pane, isFocused = this.grid.contains(this.grid.getRootNode().activeElement);
    this.coordinates = coordinates;
    this.text.textContent = message.dimensions.length > k ? `All pairs of the first ${k} of ${message.dimensions.length} components.` : "All pairs of components.";
    if (this.plots.length !== k * (k - 1) / 2) {
      this.plots = [];
      for (let j = 1; j < k; j++) {
        for (let i = 0; i < j; i++) {
          const canvas = h("canvas", {"aria-hidden": "true"});
          const button = h("button", {type: "button", "aria-label": `components ${i + 1} and ${j + 1}`, onclick: () => this.choose(i, j)}, canvas, h("span", {}, `${i + 1}, ${j + 1}`));
          button.style.gridArea = `${j} / ${i + 1}`;
          this.plots.push({i, j, canvas, button});
        }
      }
      this.grid.style.gridTemplateColumns = `repeat(${k - 1}, minmax(0, 1fr))`;
      this.grid.replaceChildren(...this.plots.map(plot => plot.button));
    }
    this.draw();
    if (!isFocused) (this.plots.find(plot => this.isShown(plot)) || this.plots[0]).button.focus();
  }

  isShown({i, j}) {
    const {shown} = this.pane.message;
    return Math.min(...shown) === i && Math.max(...shown) === j;
  }

  draw() {
    for (const plot of this.plots) {
      plot.button.setAttribute("aria-pressed", String(this.isShown(plot)));
      this.drawPlot(plot.canvas, this.coordinates[plot.i], this.coordinates[plot.j]);
    }
  }

  drawPlot(canvas, x, y) {
    const {view} = this, theme = THEMES[view.theme], pixelRatio = window.devicePixelRatio || 1, width = canvas.clientWidth || SMALL_PLOT_PIXELS;
    const size = Math.round(width * pixelRatio), n = x.length, grown = Math.min(2, Math.max(1, width / SMALL_PLOT_PIXELS));
    const image = new ImageData(size, size), pixels = new Uint32Array(image.data.buffer), {left, right, low, high} = boundsOf(x, y);
    const scale = 0.88 * size / (Math.max(right - left, high - low) || 1);
    const transform = {sx: scale, sy: -scale, tx: size / 2 - scale * (left + right) / 2, ty: size / 2 + scale * (low + high) / 2};
    const radius = (n > 20000 ? 0.7 : n > 1000 ? 1 : 1.6) * grown * pixelRatio;
    pixels.fill(hexToPixel(theme.paper));
    const all = (colours, single, states, state) => paint(pixels, size, size, 0, transform, x, y, colours, single, states, state, radius, 0.9);
    if (view.count) {
      all(null, hexToPixel(theme.grey), view.states, 1);
      all(view.colours, null, view.states, 2);
    } else all(view.colours, null, view.hasStates ? view.states : null, 1);
    canvas.width = canvas.height = size;
    canvas.getContext("2d").putImageData(image, 0, 0);
  }

  choose(i, j) {
    const {pane} = this;
    this.element.close();
    pane.componentsButton.focus();
    this.view.showComponents(pane, i, j);
    this.view.announce(`${pane.message.title} shows components ${i + 1} and ${j + 1}.`);
  }

  update(change) {
    if (change === "scene" && this.pane) this.element.close();
    if (!this.pane || !this.plots.length) return;
    if (change === "embeddings") this.load();
    else if (change !== "values") this.draw();
  }
}
