// The controls of a page that is connected to a model: kernel, parameters, axes, second embedding and contours.

const MAX_UPLOAD_BYTES = 14e6; // larger files, encoded as base64, exceed the limit of 20 MB for a websocket message
const FIT_DELAY_MS = 120; // a fit is requested this long after the last change

View.prototype.updateControls = function (message, token) {
  this.model.hidden = !message;
  if (!message) return;
  this.form ||= this.buildForm();
  this.updateForm(message, token);
};

/** Build the form once. A fit updates its fields but never replaces them, so that the focus is not lost. */
View.prototype.buildForm = function () {
  const field = (label, input, ...more) => h("label", {class: "field"}, h("span", {}, label), input, ...more);
  const select = (label, action) => h("select", {"aria-label": label, onchange: action});
  const form = {edited: false};
  form.kernel = h("input", {type: "text", spellcheck: false, "aria-describedby": this.id("error"), oninput: () => { form.edited = true; this.requestFit({kernel: form.kernel.value}); }});
  form.error = h("p", {class: "trouble", id: this.id("error"), role: "alert"});
  form.sliders = [];
  form.sliderBox = h("div");
  form.count = h("input", {type: "number", min: 2, oninput: () => { if (form.count.checkValidity()) this.requestFit({components: Number(form.count.value)}); }});
  const axes = () => this.link.send({type: "axes", axes: [Number(form.across.value), Number(form.up.value)]});
  form.across = select("Horizontal component", axes);
  form.up = select("Vertical component", axes);
  form.second = select("Second embedding", () => this.requestFit({second: form.second.value}, 0));
  form.secondField = field("second embedding", form.second);
  form.overlays = [];
  form.overlayBox = h("div");
  form.bar = h("progress", {hidden: true});
  form.status = h("p", {class: "soft"});
  form.run = h("button", {type: "button", hidden: true, class: "run", onclick: () => this.requestFit({run: true}, 0)}, "Run");
  form.file = h("input", {type: "file", "aria-label": "File with new data to project into the embeddings", onchange: async () => {
    const [file] = form.file.files;
    if (file && file.size > MAX_UPLOAD_BYTES) this.notice(`${file.name} is too large to upload; use mercer explore DATA --new FILE instead.`);
    else if (file) this.link.send({type: "project", name: file.name, bytes: toBase64(new Uint8Array(await file.arrayBuffer()))});
    form.file.value = "";
  }});
  form.fileField = h("label", {class: "file"}, "Project new data …", form.file);
  form.kernelBox = h("div", {}, h("label", {class: "field wide"}, h("span", {}, "kernel"), form.kernel), form.error, form.sliderBox,
    h("div", {class: "three"}, field("components", form.count), field("x axis", form.across), field("y axis", form.up)));
  this.model.replaceChildren(h("h2", {}, "Model"), form.kernelBox, form.secondField, form.overlayBox, h("div", {class: "row"}, form.run, form.bar), form.status,
    h("div", {class: "row"}, form.fileField, h("button", {type: "button", onclick: () => this.link.send({type: "page"})}, "Save this page")));
  return form;
};

/** Show the values of a fit, without changing the field that the user is editing. */
View.prototype.updateForm = function (message, token) {
  const {form} = this, focus = this.root.getRootNode().activeElement;
  form.message = message;
  if (typeof token === "number" && token >= this.fitToken && !(this.pendingRequest && "kernel" in this.pendingRequest)) form.edited = false; // the kernel in the text field was fitted
  form.kernelBox.hidden = message.kernel === null;
  if (focus !== form.kernel && !form.edited) form.kernel.value = message.kernel || "";
  this.updateSliders(message, focus);
  form.count.max = message.max_components;
  if (focus !== form.count) form.count.value = message.components;
  const names = Array.from({length: message.components}, (_, k) => [String(k), String(k + 1)]);
  fillOptions(form.across, names, String(message.axes[0]));
  fillOptions(form.up, names, String(message.axes[1]));
  form.secondField.hidden = message.second_options.length < 2;
  fillOptions(form.second, message.second_options, message.second);
  this.updateOverlays();
  form.fileField.hidden = !message.can_project;
};

View.prototype.updateSliders = function (message, focus) {
  const {form} = this, names = JSON.stringify(message.parameters.map(one => one.name));
  if (form.sliderNames !== names) {
    form.sliderNames = names;
    form.sliders = message.parameters.map((one, k) => {
      const shown = h("output");
      const slider = h("input", {type: "range", min: -3, max: 3, step: 0.01, value: 0, "aria-label": one.name, oninput: () => {
        const value = form.message.parameters[k].centre * 10 ** (Number(slider.value) / 3);
        shown.textContent = formatNumber(value);
        this.requestFit({parameter: k, value});
      }});
      return {slider, shown};
    });
    form.sliderBox.replaceChildren(...form.sliders.map(({slider, shown}, k) => h("label", {class: "field"}, h("span", {}, message.parameters[k].name), slider, shown)));
  }
  message.parameters.forEach((one, k) => {
    const {slider, shown} = form.sliders[k];
    if (focus === slider) { one.centre = one.value / 10 ** (Number(slider.value) / 3); return; }
    slider.value = 0;
    shown.textContent = formatNumber(one.value);
  });
};

View.prototype.updateOverlays = function () {
  const {form} = this, offered = this.panes.map(pane => [pane.message.title, pane.message.overlays || []]), key = JSON.stringify(offered);
  if (form.overlayKey !== key) {
    form.overlayKey = key;
    form.overlays = offered.map(([title], k) => h("select", {"aria-label": `Contours in ${title}`, onchange: event => this.link.send({type: "field", pane: k, name: event.target.value})}));
    form.overlayBox.replaceChildren(...offered.map(([, overlays], k) => overlays.length
      ? h("label", {class: "field"}, h("span", {}, this.panes.length < 2 ? "contours" : k ? "contours, right" : "contours, left"), form.overlays[k]) : null).filter(Boolean));
  }
  offered.forEach(([, overlays], k) => fillOptions(form.overlays[k], [["", "none"], ...overlays], this.panes[k].field ? this.panes[k].field.name : ""));
};

/** Set the options of a select element; if they have not changed, do nothing. */
function fillOptions(select, options, value) {
  const key = JSON.stringify(options);
  if (select.dataset.options !== key) {
    select.dataset.options = key;
    select.replaceChildren(...options.map(([name, text]) => h("option", {value: name}, text)));
  }
  select.value = value;
}

/** Request a fit after a pause in typing; the token identifies the reply, so that older replies can be ignored. */
View.prototype.requestFit = function (changes, pause = FIT_DELAY_MS) {
  this.pendingRequest = {...this.pendingRequest, ...changes};
  clearTimeout(this.timer);
  this.timer = setTimeout(() => {
    this.requestTime = performance.now();
    this.link.send({type: "fit", ...this.pendingRequest, token: ++this.fitToken});
    this.pendingRequest = {};
  }, pause);
};

/** Show the progress of a fit, or why it failed; replies to older requests are ignored. */
View.prototype.showFitState = function ({text, error, fraction, busy, run, token}) {
  const {form} = this;
  if (!form || (typeof token === "number" && token < this.fitToken)) return;
  form.error.textContent = error || "";
  form.kernel.setAttribute("aria-invalid", String(Boolean(error)));
  form.status.textContent = text || "";
  form.bar.hidden = !busy;
  if (fraction === null || fraction === undefined) form.bar.removeAttribute("value"); else form.bar.value = fraction;
  form.run.hidden = !run;
  if (!busy && (error || text)) this.announce(error || text);
};
