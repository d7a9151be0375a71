// The legend of a numeric column: the colour scale with its ends, and switches for clipping and the logarithm.

/** Return the elements of the legend; `scale` is the result of `colouring`. */
function numberLegend(view, scale) {
  const column = view.column(view.color), set = changes => {
    column.colourOptions = {...column.colourOptions, ...changes};
    return view.colourBy(view.color, false).then(() => view.commit("colour scale"));
  };
  const option = (text, title, checked, changes) => h("label", {class: "toggle", title}, h("input", {type: "checkbox", checked, onchange: event => {
    const label = event.target.getAttribute("aria-label");
    set(changes(event.target.checked)).then(() => view.root.querySelector(`.scale [aria-label="${label}"]`)?.focus()); // the legend was drawn again
  }, "aria-label": `${text} colours`}), text);
  return [
    h("div", {class: "ramp", style: `background: linear-gradient(90deg, ${scale.stops.join(", ")})`}),
    h("div", {class: "ends"}, ...scale.ends.map(text => h("span", {}, text))),
    h("div", {class: "row scale"},
      scale.canClip ? option("clip", "Use all colours between the 2 % and 98 % quantiles", scale.isClipped, clip => ({clip})) : null,
      scale.canLog ? option("log", "Logarithmic colours", scale.isLog, log => ({log})) : null),
  ];
}
