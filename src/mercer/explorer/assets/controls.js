// What can be asked of a model behind a link: another kernel, other parameters, other axes, overlays.

const MOST = 14e6; // bytes of a file that is sent; as text it must stay below the 20 MB of a message
const PAUSE = 120; // milliseconds without a change after which a fit is asked for

View.prototype.controls = function (told) {
  this.model.hidden = !told;
  if (!told) return;
  if (this.form && this.form.shape === shapeOf(told)) return this.settle(told);
  const field = (label, input, ...more) => h("label", {class: "field"}, h("span", {}, label), input, ...more);
  const select = (options, value, label, act) => h("select", {"aria-label": label, onchange: act}, ...options.map(([key, text]) => h("option", {value: key, selected: key === value}, text)));
  const form = this.form = {shape: shapeOf(told), told};
  form.kernel = h("input", {type: "text", spellcheck: false, value: told.kernel || "", "aria-describedby": this.id("error"), oninput: () => this.change({kernel: form.kernel.value})});
  form.error = h("p", {class: "trouble", id: this.id("error"), role: "alert"});
  form.sliders = told.parameters.map((one, k) => {
    const shown = h("output", {}, brief(one.value));
    const slider = h("input", {type: "range", min: -3, max: 3, step: 0.01, value: 0, "aria-label": one.name, oninput: () => {
      const value = form.told.parameters[k].middle * 10 ** (Number(slider.value) / 3);
      shown.textContent = brief(value);
      this.change({parameter: k, value});
    }});
    return {slider, shown, field: field(one.name, slider, shown)};
  });
  form.count = h("input", {type: "number", min: 2, max: told.most, value: told.components, oninput: () => { if (form.count.checkValidity()) this.change({components: Number(form.count.value)}); }});
  const names = Array.from({length: told.components}, (_, k) => [String(k), String(k + 1)]);
  form.across = select(names, String(told.axes[0]), "Component across", () => this.link.send({ask: "axes", axes: [Number(form.across.value), Number(form.up.value)]}));
  form.up = select(names, String(told.axes[1]), "Component up", () => this.link.send({ask: "axes", axes: [Number(form.across.value), Number(form.up.value)]}));
  form.second = select(told.seconds, told.second, "Second map", () => this.change({second: form.second.value}, 0));
  form.overlays = this.panes.map((pane, k) => !(pane.told.overlays || []).length ? null : field(this.panes.length < 2 ? "lines" : k ? "lines, right" : "lines, left", select([["", "none"], ...(pane.told.overlays || [])], pane.field ? pane.field.name : "", `Lines in ${pane.told.title}`,
    event => this.link.send({ask: "field", pane: k, name: event.target.value}))));
  form.bar = h("progress", {hidden: true});
  form.words = h("p", {class: "soft"});
  form.run = h("button", {type: "button", hidden: true, class: "run", onclick: () => this.change({run: true}, 0)}, "Run");
  form.file = h("input", {type: "file", "aria-label": "New data for the same maps", onchange: async () => {
    const [file] = form.file.files;
    if (file && file.size > MOST) this.notice(`${file.name} is too large to be sent: mercer explore DATA --new FILE reads it from there.`);
    else if (file) this.link.send({ask: "project", name: file.name, bytes: written(new Uint8Array(await file.arrayBuffer()))});
    form.file.value = "";
  }});
  const kernel = told.kernel === null ? [] : [h("label", {class: "field wide"}, h("span", {}, "kernel"), form.kernel), form.error, ...form.sliders.map(one => one.field), h("div", {class: "three"}, field("components", form.count), field("across", form.across), field("up", form.up))];
  this.model.replaceChildren(h("h2", {}, "Model"), ...kernel, ...(told.seconds.length > 1 ? [field("second map", form.second)] : []), ...form.overlays.filter(Boolean), h("div", {class: "row"}, form.run, form.bar), form.words,
    h("div", {class: "row"}, ...(told.projects ? [h("label", {class: "file"}, "Project new data …", form.file)] : []), h("button", {type: "button", onclick: () => this.link.send({ask: "page"})}, "Save this page")));
};

const shapeOf = told => JSON.stringify([told.parameters.map(one => one.name), told.components, told.axes, told.second, told.seconds, told.titles, told.kernel === null, told.most]);

/** Take the numbers of a fit, without touching what the hand is on. */
View.prototype.settle = function (told) {
  const {form} = this;
  form.told = told;
  const focus = this.root.getRootNode().activeElement;
  if (focus !== form.kernel) form.kernel.value = told.kernel || "";
  told.parameters.forEach((one, k) => {
    const {slider, shown} = form.sliders[k];
    if (focus === slider) { one.middle = one.value / 10 ** (Number(slider.value) / 3); return; }
    slider.value = 0;
    shown.textContent = brief(one.value);
  });
  this.panes.forEach((pane, k) => { const box = form.overlays[k]?.querySelector("select"); if (box && !pane.field) box.value = ""; });
};

/** Ask for a fit when the hand rests; a question that is overtaken by another is dropped by whoever answers. */
View.prototype.change = function (what, pause = PAUSE) {
  this.wanted = {...this.wanted, ...what};
  clearTimeout(this.timer);
  this.timer = setTimeout(() => {
    this.asked = performance.now();
    this.link.send({ask: "fit", ...this.wanted});
    this.wanted = {};
  }, pause);
};

/** Show how far a fit is, or why there is none. */
View.prototype.show = function ({words, error, share, busy, run}) {
  const {form} = this;
  if (!form) return;
  form.error.textContent = error || "";
  form.kernel.setAttribute("aria-invalid", String(Boolean(error)));
  form.words.textContent = words || "";
  form.bar.hidden = !busy;
  if (share === null || share === undefined) form.bar.removeAttribute("value"); else form.bar.value = share;
  form.run.hidden = !run;
  if (!busy && (error || words)) this.say(error || words);
};
