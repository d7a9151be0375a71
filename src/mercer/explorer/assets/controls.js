// What can be asked of a model behind a link: another kernel, other parameters, other axes, overlays.

const MOST = 14e6; // bytes of a file that is sent; as text it must stay below the 20 MB of a message
const PAUSE = 120; // milliseconds without a change after which a fit is requested

View.prototype.controls = function (told, token) {
  this.model.hidden = !told;
  if (!told) return;
  this.form ||= this.buildForm();
  this.settle(told, token);
};

/** Build the form once. A fit changes options and values of its fields, but never replaces a field that may have the focus. */
View.prototype.buildForm = function () {
  const field = (label, input, ...more) => h("label", {class: "field"}, h("span", {}, label), input, ...more);
  const select = (label, act) => h("select", {"aria-label": label, onchange: act});
  const form = {edited: false};
  form.kernel = h("input", {type: "text", spellcheck: false, "aria-describedby": this.id("error"), oninput: () => { form.edited = true; this.change({kernel: form.kernel.value}); }});
  form.error = h("p", {class: "trouble", id: this.id("error"), role: "alert"});
  form.sliders = [];
  form.sliderBox = h("div");
  form.count = h("input", {type: "number", min: 2, oninput: () => { if (form.count.checkValidity()) this.change({components: Number(form.count.value)}); }});
  const axes = () => this.link.send({ask: "axes", axes: [Number(form.across.value), Number(form.up.value)]});
  form.across = select("Component across", axes);
  form.up = select("Component up", axes);
  form.second = select("Second map", () => this.change({second: form.second.value}, 0));
  form.secondField = field("second map", form.second);
  form.overlays = [];
  form.overlayBox = h("div");
  form.bar = h("progress", {hidden: true});
  form.words = h("p", {class: "soft"});
  form.run = h("button", {type: "button", hidden: true, class: "run", onclick: () => this.change({run: true}, 0)}, "Run");
  form.file = h("input", {type: "file", "aria-label": "New data for the same maps", onchange: async () => {
    const [file] = form.file.files;
    if (file && file.size > MOST) this.notice(`${file.name} is too large to be sent: mercer explore DATA --new FILE reads it from there.`);
    else if (file) this.link.send({ask: "project", name: file.name, bytes: written(new Uint8Array(await file.arrayBuffer()))});
    form.file.value = "";
  }});
  form.fileField = h("label", {class: "file"}, "Project new data …", form.file);
  form.kernelBox = h("div", {}, h("label", {class: "field wide"}, h("span", {}, "kernel"), form.kernel), form.error, form.sliderBox,
    h("div", {class: "three"}, field("components", form.count), field("across", form.across), field("up", form.up)));
  this.model.replaceChildren(h("h2", {}, "Model"), form.kernelBox, form.secondField, form.overlayBox, h("div", {class: "row"}, form.run, form.bar), form.words,
    h("div", {class: "row"}, form.fileField, h("button", {type: "button", onclick: () => this.link.send({ask: "page"})}, "Save this page")));
  return form;
};

/** Show the numbers of a fit, without changing the field that the user is editing. */
View.prototype.settle = function (told, token) {
  const {form} = this, focus = this.root.getRootNode().activeElement;
  form.told = told;
  if (typeof token === "number" && token >= this.fitToken && !(this.wanted && "kernel" in this.wanted)) form.edited = false; // the text in the box was fitted
  form.kernelBox.hidden = told.kernel === null;
  if (focus !== form.kernel && !form.edited) form.kernel.value = told.kernel || "";
  this.placeSliders(told, focus);
  form.count.max = told.most;
  if (focus !== form.count) form.count.value = told.components;
  const names = Array.from({length: told.components}, (_, k) => [String(k), String(k + 1)]);
  fillOptions(form.across, names, String(told.axes[0]));
  fillOptions(form.up, names, String(told.axes[1]));
  form.secondField.hidden = told.seconds.length < 2;
  fillOptions(form.second, told.seconds, told.second);
  this.placeOverlays();
  form.fileField.hidden = !told.projects;
};

View.prototype.placeSliders = function (told, focus) {
  const {form} = this, names = JSON.stringify(told.parameters.map(one => one.name));
  if (form.sliderNames !== names) {
    form.sliderNames = names;
    form.sliders = told.parameters.map((one, k) => {
      const shown = h("output");
      const slider = h("input", {type: "range", min: -3, max: 3, step: 0.01, value: 0, "aria-label": one.name, oninput: () => {
        const value = form.told.parameters[k].middle * 10 ** (Number(slider.value) / 3);
        shown.textContent = brief(value);
        this.change({parameter: k, value});
      }});
      return {slider, shown};
    });
    form.sliderBox.replaceChildren(...form.sliders.map(({slider, shown}, k) => h("label", {class: "field"}, h("span", {}, told.parameters[k].name), slider, shown)));
  }
  told.parameters.forEach((one, k) => {
    const {slider, shown} = form.sliders[k];
    if (focus === slider) { one.middle = one.value / 10 ** (Number(slider.value) / 3); return; }
    slider.value = 0;
    shown.textContent = brief(one.value);
  });
};

View.prototype.placeOverlays = function () {
  const {form} = this, offered = this.panes.map(pane => [pane.told.title, pane.told.overlays || []]), key = JSON.stringify(offered);
  if (form.overlayKey !== key) {
    form.overlayKey = key;
    form.overlays = offered.map(([title], k) => h("select", {"aria-label": `Lines in ${title}`, onchange: event => this.link.send({ask: "field", pane: k, name: event.target.value})}));
    form.overlayBox.replaceChildren(...offered.map(([, overlays], k) => overlays.length
      ? h("label", {class: "field"}, h("span", {}, this.panes.length < 2 ? "lines" : k ? "lines, right" : "lines, left"), form.overlays[k]) : null).filter(Boolean));
  }
  offered.forEach(([, overlays], k) => fillOptions(form.overlays[k], [["", "none"], ...overlays], this.panes[k].field ? this.panes[k].field.name : ""));
};

/** Offer options in a select element; the options stay in place if they are the same as before. */
function fillOptions(select, options, value) {
  const key = JSON.stringify(options);
  if (select.dataset.options !== key) {
    select.dataset.options = key;
    select.replaceChildren(...options.map(([name, text]) => h("option", {value: name}, text)));
  }
  select.value = value;
}

/** Request a fit after a pause in typing; the token tells its answer from answers to older requests. */
View.prototype.change = function (what, pause = PAUSE) {
  this.wanted = {...this.wanted, ...what};
  clearTimeout(this.timer);
  this.timer = setTimeout(() => {
    this.asked = performance.now();
    this.link.send({ask: "fit", ...this.wanted, token: ++this.fitToken});
    this.wanted = {};
  }, pause);
};

/** Show how far a fit is, or why it failed; answers to older requests are ignored. */
View.prototype.show = function ({words, error, share, busy, run, token}) {
  const {form} = this;
  if (!form || (typeof token === "number" && token < this.fitToken)) return;
  form.error.textContent = error || "";
  form.kernel.setAttribute("aria-invalid", String(Boolean(error)));
  form.words.textContent = words || "";
  form.bar.hidden = !busy;
  if (share === null || share === undefined) form.bar.removeAttribute("value"); else form.bar.value = share;
  form.run.hidden = !run;
  if (!busy && (error || words)) this.say(error || words);
};
