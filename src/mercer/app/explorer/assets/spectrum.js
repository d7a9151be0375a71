// The eigenvalues of kernel PCA as a bar chart.

class SpectrumPanel {
  constructor(view) {
    Object.assign(this, {view, element: h("section", {class: "spectra", hidden: true})});
  }

  update(change) {
    if (change !== "embeddings" && change !== "scene" && change !== "theme") return;
    const shown = this.view.panes.map(pane => pane.message).filter(message => message.spectrum);
    this.element.hidden = !shown.length;
    this.element.replaceChildren(...shown.flatMap(message => [h("h2", {}, `Eigenvalues of ${message.title}`), spectrum(message.spectrum), h("p", {class: "soft"}, message.spectrum.text)]));
  }
}

/** Draw the eigenvalues as bars with rigorous bounds on the exact values. */
function spectrum({values, lower, upper, ratios}) {
  const NS = "http://www.w3.org/2000/svg", n = values.length, w = 300, t = 110, wide = Math.min(36, (w - 20) / n);
  const put = (parent, tag, attributes, text) => {
    const node = document.createElementNS(NS, tag);
    for (const key in attributes) node.setAttribute(key, attributes[key]);
    if (text !== undefined) node.textContent = text;
    parent.append(node);
    return node;
  };
  const largest = Math.max(...values, ...upper.filter(v => v !== null)) || 1, Y = v => t - 16 - (t - 30) * Math.max(0, v) / largest;
  const svg = document.createElementNS(NS, "svg");
  svg.setAttribute("viewBox", `0 0 ${w} ${t}`);
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", `Eigenvalues ${values.slice(0, 8).map(value => formatNumber(value)).join(", ")}`);
  values.forEach((value, k) => {
    const x = 10 + k * wide, bar = put(svg, "rect", {x: x + 2, y: Y(value), width: Math.max(1, wide - 4), height: Math.max(0.5, t - 16 - Y(value)), class: "bar"});
    const between = upper[k] === null ? "no bound" : `exact value between ${lower[k].toPrecision(8)} and ${upper[k].toPrecision(8)}`;
    put(bar, "title", {}, `component ${k + 1}: ${value.toPrecision(8)}, ${between}`);
    if (upper[k] !== null) put(svg, "path", {d: `M${x + wide / 2} ${Y(lower[k])}V${Y(upper[k])}M${x + 2} ${Y(upper[k])}h${Math.max(1, wide - 4)}M${x + 2} ${Y(lower[k])}h${Math.max(1, wide - 4)}`, class: "bound"});
    if (n <= 10) {
      put(svg, "text", {x: x + wide / 2, y: t - 3, "text-anchor": "middle"}, String(k + 1));
      if (ratios) put(svg, "text", {x: x + wide / 2, y: Y(value) - 4, "text-anchor": "middle"}, `${(100 * ratios[k]).toFixed(0)}%`);
    }
  });
  return svg;
}
