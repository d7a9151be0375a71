// The controls of a page that is connected to a model: kernel, parameters, axes, second embedding and contours.

const MAX_UPLOAD_BYTES = 14e6; // larger files, encoded as base64, exceed the limit of 20 MB for a websocket message
const FIT_DELAY_MS = 120; // a fit is requested this long after the last change

View.prototype.updateControls = function (message, token) {
  this.model.hidden = !message;
  if (!message) return;
  this.form ||= this.buildForm();
  this.updateForm(message, token);
};

const formField = (label, input, ...more) => h("label", {class: "field"}, h("span", {}, label), input, ...more);
const formSelect = (label, action) => h("select", {"aria-label": label, onchange: action});

/** Build the form once. A fit updates its fields but never replaces them, so that the focus is not lost. */
View.prototype.buildForm = function () {
  const form = this.buildModelFields(0); // the fields of the first model; `other` has those of the second
  form.other = this.buildModelFields(1);
  form.second = formSelect("Second embedding", () => this.requestFit({second: form.second.value}, 0));
  form.secondField = formField("second embedding", form.second);
  form.overlays = [];
  form.overlayBox = h("div");
  form.status = h("p", {class: "soft"});
  form.run = h("button", {type: "button", hidden: true, class: "run", onclick: () => this.requestFit({run: true}, 0)}, "Run");
  form.file = h("input", {type: "file", "aria-label": "File with new data to project into the embeddings", onchange: async () => {
    const [file] = form.file.files;
    if (file && file.size > MAX_UPLOAD_BYTES) this.notice(`${file.name} is too large to upload; use mercer explore DATA --new FILE instead.`);
    else if (file) this.link.send({type: "project", name: file.name, bytes: toBase64(new Uint8Array(await file.arrayBuffer()))});
    form.file.value = "";
  }});
  form.fileField = h("label", {class: "file"}, "Project new data …", form.file);
  this.model.replaceChildren(h("h2", {}, "Model"), form.box, form.secondField, form.other.box, form.overlayBox, h("div", {class: "row"}, form.run), form.status,
    h("div", {class: "row"}, form.fileField));
  return form;
};

/** Build the fields of the model of a pane: kernel, parameters, number of components, and axes. */
View.prototype.buildModelFields = function (pane) {
  const fields = {edited: false, pane, prefix: pane ? "second_" : "", sliders: []}, errorId = this.id(pane ? "error-right" : "error");
  const label = text => pane ? `${text}, right` : text;
  const request = (changes, pause) => this.requestFit(Object.fromEntries(Object.entries(changes).map(([key, value]) => [fields.prefix + key, value])), pause);
  fields.request = request;
  fields.kernel = h("input", {type: "text", spellcheck: false, "aria-describedby": errorId, oninput: () => { fields.edited = true; request({kernel: fields.kernel.value}); }});
  fields.error = h("p", {class: "trouble", id: errorId, role: "alert"});
  fields.sliderBox = h("div");
  fields.count = h("input", {type: "number", min: 2, "aria-label": label("components"), oninput: () => { if (fields.count.checkValidity()) request({components: Number(fields.count.value)}); }});
  const axes = () => this.link.send({type: "axes", pane, axes: [Number(fields.across.value), Number(fields.up.value)]});
  fields.across = formSelect(pane ? "Right horizontal axis" : "Horizontal component", axes);
  fields.up = formSelect(pane ? "Right vertical axis" : "Vertical component", axes);
  fields.kernelField = h("label", {class: "field wide"}, h("span", {}, label("kernel")), fields.kernel);
  fields.countField = formField("components", fields.count);
  fields.axisFields = [formField("x axis", fields.across), formField("y axis", fields.up)];
  fields.box = h("div", {class: "block"}, fields.kernelField, fields.error, fields.sliderBox, h("div", {class: "three"}, fields.countField, ...fields.axisFields));
  return fields;
};

/** Show the values of a fit, without changing the field that the user is editing. */
View.prototype.updateForm = function (message, token) {
  const {form} = this;
  form.message = message;
  this.updateModelFields(form, message, token);
  this.updateModelFields(form.other, message.other, token);
  form.secondField.hidden = message.second_options.length < 2;
  fillOptions(form.second, message.second_options, message.second);
  this.updateOverlays();
  form.fileField.hidden = !message.can_project;
};

View.prototype.updateModelFields = function (fields, message, token) {
  const focus = this.root.getRootNode().activeElement, pane = this.panes[fields.pane], isKernelPCA = Boolean(message && message.kernel !== null);
  if (typeof token === "number" && token >= this.fitToken && !(this.pendingRequest && `${fields.prefix}kernel` in this.pendingRequest)) fields.edited = false; // the kernel in the text field was fitted
  fields.kernelField.hidden = fields.countField.hidden = !isKernelPCA;
  this.updateSliders(fields, isKernelPCA ? message.parameters : [], focus);
  const dimensions = pane ? pane.message.dimensions : [];
  fields.axisFields.forEach(one => { one.hidden = dimensions.length < 3; });
  if (pane) {
    const options = dimensions.map((name, k) => [String(k), /^(component|dimension) \d/.test(name) ? String(k + 1) : name]);
    [fields.across, fields.up].forEach((input, side) => fillOptions(input, options, String(pane.message.shown[side])));
  }
  if (!isKernelPCA) { fields.kernel.value = ""; fields.edited = false; return; }
  if (focus !== fields.kernel && !fields.edited) fields.kernel.value = message.kernel;
  fields.count.max = message.max_components;
  if (focus !== fields.count) fields.count.value = message.components;
};

View.prototype.updateSliders = function (fields, parameters, focus) {
  const names = JSON.stringify(parameters.map(one => one.name));
  fields.parameters = parameters;
  if (fields.sliderNames !== names) {
    fields.sliderNames = names;
    fields.sliders = parameters.map((one, k) => {
      const shown = h("output");
      const slider = h("input", {type: "range", min: -3, max: 3, step: 0.01, value: 0, "aria-label": fields.pane ? `${one.name}, right` : one.name, oninput: () => {
        const value = fields.parameters[k].centre * 10 ** (Number(slider.value) / 3);
        shown.textContent = formatNumber(value);
        fields.request({parameter: k, value});
      }});
      return {slider, shown};
    });
    fields.sliderBox.replaceChildren(...fields.sliders.map(({slider, shown}, k) => h("label", {class: "field"}, h("span", {}, parameters[k].name), slider, shown)));
  }
  parameters.forEach((one, k) => {
    const {slider, shown} = fields.sliders[k];
    if (focus === slider) { one.centre = one.value / 10 ** (Number(slider.value) / 3); return; }
    slider.value = 0;
    shown.textContent = formatNumber(one.value);
  });
};

/** Show two components of an embedding; a saved page contains the coordinates of the first components. */
View.prototype.showComponents = function (pane, across, up) {
  if (this.link) return this.link.send({type: "axes", pane: pane.index, axes: [across, up]});
  const {message} = pane, shown = [across, up], stored = message.stored || {shown: message.shown, preimages: message.preimages, clusters: message.clusters};
  const isStored = stored.shown.every((k, side) => k === shown[side]);
  pane.update({...message, stored, x: message.components[across], y: message.components[up], axes: shown.map(k => message.dimensions[k]), ...(isStored ? stored : {preimages: null, clusters: undefined}), shown});
  this.changed("embeddings");
};

View.prototype.updateOverlays = function () {
  const {form} = this, offered = this.panes.map(pane => [pane.message.title, pane.message.overlays || []]), key = JSON.stringify(offered);
  if (form.overlayKey !== key) {
    form.overlayKey = key;
    form.overlays = offered.map(([title], k) => h("select", {"aria-label": `Contours in ${title}`, onchange: event => this.requestContours(this.panes[k], event.target.value)}));
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

/** Request contours; the token identifies the reply, so that older replies can be ignored. */
View.prototype.requestContours = function (pane, name) {
  pane.fieldToken = (pane.fieldToken || 0) + 1;
  this.link.send({type: "field", pane: pane.index, name, token: pane.fieldToken});
};

/** Request a fit after a pause in typing; the token identifies the reply, so that older replies can be ignored. */
View.prototype.requestFit = function (changes, pause = FIT_DELAY_MS) {
  this.pendingRequest = {...this.pendingRequest, ...changes};
  clearTimeout(this.timer);
  this.timer = setTimeout(() => {
    this.requestTime = performance.now();
    const changed = Object.keys(this.pendingRequest);
    if (changed.some(key => key !== "run")) this.editedFields = changed.every(key => key.startsWith("second")) ? this.form.other : this.form;
    this.link.send({type: "fit", ...this.pendingRequest, token: ++this.fitToken});
    this.pendingRequest = {};
  }, pause);
};

/** Show the state of a fit, or why it failed; replies to older requests are ignored. */
View.prototype.showFitState = function ({text, error, busy, run, token}) {
  const {form} = this;
  if (error || run) this.models.reply(error || text, token);
  if (!form || (typeof token === "number" && token < this.fitToken)) return;
  for (const fields of [form, form.other]) {
    const isWrong = Boolean(error) && fields === (this.editedFields || form);
    fields.error.textContent = isWrong ? error : "";
    fields.kernel.setAttribute("aria-invalid", String(isWrong));
  }
  form.status.textContent = text || "";
  form.run.hidden = !run;
  if (!busy && (error || text)) this.announce(error || text);
};
