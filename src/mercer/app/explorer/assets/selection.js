// The selection panel: what is selected, how it differs from the rest, and the selected rows as a file.

class SelectionPanel {
  constructor(view) {
    this.view = view;
    this.text = h("p", {class: "soft"});
    this.saveButton = h("button", {type: "button", disabled: true, onclick: () => this.save()}, "Save as CSV");
    this.clearButton = h("button", {type: "button", disabled: true, onclick: () => view.clear()}, "Clear");
    this.contrast = new ContrastPanel(view);
    this.tableButton = h("button", {type: "button", onclick: () => view.table.setOpen(true)}, "Show rows");
    this.element = h("section", {}, this.text, h("div", {class: "row"}, this.tableButton, this.saveButton, this.clearButton), this.contrast.element);
  }

  update(change) {
    this.contrast.update(change);
    if (!["selection", "colours", "filters"].includes(change)) return;
    const {view} = this;
    this.saveButton.disabled = this.clearButton.disabled = !view.count;
    this.text.textContent = view.selectionText;
  }

  /** Return the selected rows as CSV: the row numbers and all columns. */
  async csv() {
    const {view} = this, own = view.columns.filter(column => !column.derived);
    await Promise.all(own.map(column => view.loadColumn(column)));
    const shown = view.columns.filter(column => column.isLoaded);
    const cell = value => value === null ? "" : typeof value === "number" ? String(value) : /[",\r\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value;
    const lines = [["row", ...shown.map(column => column.name)].map(cell).join(",")];
    for (const i of view.selectedRows()) lines.push([view.rowNumber(i), ...shown.map(column => column.at(i))].map(cell).join(","));
    return lines.join("\n") + "\n";
  }

  async save() {
    download("selection.csv", "text/csv", await this.csv());
    this.view.announce(`Saved ${this.view.count} rows as selection.csv.`);
  }
}
