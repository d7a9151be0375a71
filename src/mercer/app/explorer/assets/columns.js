// The columns panel: a histogram or a list of bars for every column. Each card filters its column, and shows the points that satisfy the
// filters of the other columns.

const BARS_PER_PAGE = 8, MAX_BARS_WITHOUT_SEARCH = 10;
const MAX_CARDS_WITHOUT_SEARCH = 8;
const FREE_TEXT_FRACTION = 0.5, MIN_FREE_TEXT_VALUES = 20; // text with more distinct values than this is searched, not listed

/** A list of bars, one for each category and one for missing values, with paging and search. */
class BarList {
  constructor(card, categories) {
    const {column} = card;
    Object.assign(this, {card, column, page: 0, counts: null});
    this.categories = column.values ? [...categories].sort((a, b) => b.count - a.count) : categories;
    this.size = this.categories.length + 1;
    const slots = new Map(this.categories.map((one, k) => [one.code, k])), missing = this.categories.length, {data} = column;
    this.bins = new (this.size < 256 ? Uint8Array : Uint32Array)(data.length);
    if (column.values) {
      const table = Uint32Array.from(column.values, (_, code) => slots.get(code) ?? missing);
      for (let i = 0; i < data.length; i++) this.bins[i] = data[i] === column.missing ? missing : table[data[i]];
    } else for (let i = 0; i < data.length; i++) this.bins[i] = slots.get(data[i]) ?? missing;
    this.indexOf = new Map(this.categories.map((one, k) => [one.name, k]));
    this.rows = h("div", {class: "bars"});
    this.find = h("input", {type: "search", placeholder: "find a value", "aria-label": `Find a value of ${column.name}`, oninput: () => { this.page = 0; this.fill(); }});
    this.pager = new Pager(`values of ${column.name}`, BARS_PER_PAGE, page => { this.page = page; this.fill(); });
    const tools = categories.length > BARS_PER_PAGE ? h("div", {class: "row"}, categories.length > MAX_BARS_WITHOUT_SEARCH ? this.find : null, this.pager.element) : null;
    this.element = h("div", {}, ...[this.rows, tools].filter(Boolean));
    this.fill();
  }

  /** Create the rows of the current page. */
  fill() {
    const text = this.find.value.toLowerCase(), found = text ? this.categories.filter(one => one.name.toLowerCase().includes(text)) : this.categories;
    this.shown = found.slice(this.page * BARS_PER_PAGE, (this.page + 1) * BARS_PER_PAGE).map(one => new EntryBar(this.card, one.name));
    this.rows.replaceChildren(...this.shown.map(bar => bar.element));
    if (!found.length) this.rows.replaceChildren(h("p", {class: "soft"}, "No value contains this text."));
    this.pager.update(this.page, found.length);
    if (this.counts) this.draw(this.counts);
    this.showFilter(this.card.filter);
  }

  draw(counts) {
    this.counts = counts;
    let largest = 1;
    for (let k = 0; k < this.size - 1; k++) largest = Math.max(largest, binTotals(counts, k)[0]);
    this.shown.forEach(bar => bar.draw(binTotals(counts, this.indexOf.get(bar.entry)), largest));
  }

  showFilter(filter) { this.shown.forEach(bar => bar.showFilter(filter)); }

  describe(filter) {
    const names = filter.included || filter.excluded;
    return filter.onlyMissing ? "missing" : filter.contains !== undefined ? `contains "${filter.contains}"`
      : `${filter.included ? "only" : "without"} ${names.slice(0, 2).join(", ")}${names.length > 2 ? ` and ${names.length - 2} more` : ""}`;
  }
}

/** One bar: a check box that shows or hides the values of a category (null: missing values), and a button that shows only them. */
class EntryBar {
  constructor(card, entry) {
    const {column} = card, label = entry === null ? "missing" : entry === "" ? "(empty)" : entry;
    Object.assign(this, {entry, label, name: column.name});
    this.check = h("input", {type: "checkbox", checked: true, "aria-label": `Show ${column.name} ${label}`,
      onchange: () => card.setFilter(toggleEntries(column, card.filter, [entry]), true)});
    this.layers = ["all", "passing", "chosen"].map(name => h("i", {class: name}));
    this.count = h("small");
    this.button = h("button", {type: "button", title: `Show only ${label}`, onclick: event => {
      card.setFilter((event.ctrlKey || event.metaKey ? toggleEntries : isolateEntries)(column, card.filter, [entry]), true);
    }}, h("span", {}, label), h("b", {}, ...this.layers), " ", this.count);
    this.element = h("div", {class: entry === null ? "entry absent" : "entry"}, h("label", {class: "check"}, this.check), this.button);
  }

  draw([all, passing, chosen], largest) {
    [all, passing, chosen].forEach((count, k) => { this.layers[k].style.width = `${100 * count / largest}%`; });
    this.count.textContent = passing.toLocaleString("en");
    this.button.setAttribute("aria-label", `Only ${this.name} ${this.label}: ${passing.toLocaleString("en")} of ${all.toLocaleString("en")} points`);
  }

  showFilter(filter) {
    this.check.checked = passesEntry(filter, this.entry);
    this.element.classList.toggle("off", !this.check.checked);
  }
}

/** Buttons for the pages of a list, with a text such as "11–20 of 143". */
class Pager {
  constructor(label, perPage, onPage) {
    Object.assign(this, {perPage, page: 0});
    const button = (text, title, step) => h("button", {type: "button", class: "icon", "aria-label": `${title} ${label}`, title, onclick: () => onPage(this.page + step)}, text);
    this.previous = button("‹", "Previous", -1);
    this.next = button("›", "Next", 1);
    this.text = h("span", {class: "soft", "aria-live": "polite"});
    this.element = h("div", {class: "pager"}, this.previous, this.text, this.next);
  }

  update(page, total) {
    this.page = page;
    const first = page * this.perPage, last = Math.min(total, first + this.perPage);
    this.element.hidden = total <= this.perPage;
    this.text.textContent = `${(first + 1).toLocaleString("en")}–${last.toLocaleString("en")} of ${total.toLocaleString("en")}`;
    this.previous.disabled = first === 0;
    this.next.disabled = last === total;
  }
}

/** A search field for text in which most values are different. */
class TextFilter {
  constructor(card, categories) {
    const {column} = card;
    Object.assign(this, {card, size: 0});
    const apply = isFinal => card.setFilter(this.input.value ? {contains: this.input.value, missing: false} : null, isFinal);
    this.input = h("input", {type: "search", placeholder: "contains …", "aria-label": `Text in ${column.name}`, oninput: () => apply(false), onchange: () => apply(true)});
    this.element = h("div", {}, h("p", {class: "soft"}, `${categories.length.toLocaleString("en")} different values`), this.input);
  }

  showFilter(filter) {
    const text = filter?.contains ?? "";
    if (this.input.value !== text) this.input.value = text;
  }
}
TextFilter.prototype.describe = BarList.prototype.describe;

class ColumnCard {
  constructor(panel, column) {
    Object.assign(this, {panel, view: panel.view, column, isVisible: false, plot: null, frame: 0, pending: null, message: ""});
    const {name} = column;
    this.info = h("span", {class: "info soft"});
    this.clearButton = h("button", {type: "button", class: "icon", title: "Remove this filter", "aria-label": `Remove the filter on ${name}`, hidden: true, onclick: () => {
      this.setFilter(null, true);
      this.colourButton.focus(); // the pressed button disappears
    }}, "×");
    this.colourButton = h("button", {type: "button", class: "icon", title: "Use this column for the colours", "aria-label": `Colour points by ${name}`, "aria-pressed": "false",
      onclick: () => this.view.colourBy(name).then(() => this.view.commit("colour"))}, "◑");
    this.body = h("div", {class: "card-body"});
    this.element = h("article", {class: "card", "aria-label": name}, h("header", {}, h("h3", {title: name}, name), this.info, this.clearButton, this.colourButton), this.body);
    this.element.card = this;
  }

  get filter() { return this.pending ? this.pending.filter : this.view.filters.byName.get(this.column.name) || null; }

  /** Set the filter after an action of the user. While a gesture continues, the view is updated once per frame. */
  setFilter(filter, isFinal) {
    this.pending = {filter};
    if (isFinal) {
      this.apply();
      this.view.commit(`filter: ${this.column.name}`);
    } else this.frame ||= requestAnimationFrame(() => this.apply());
  }

  apply() {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    if (!this.pending) return;
    const {filter} = this.pending, {view, column} = this;
    this.pending = null;
    if (JSON.stringify(filter) === JSON.stringify(view.filters.byName.get(column.name) || null)) return;
    view.setFilter(column, filter);
    view.announce(this.panel.text.textContent);
  }

  /** Create the content for the values of the column, or load the values if this is not expensive. */
  fill() {
    const {column, view} = this;
    if (this.plot && this.data === column.data) return;
    this.plot = null;
    this.missingBar = null;
    this.data = column.data;
    if (!column.isLoaded) {
      const wait = column.expensive && !view.pendingColumns.has(column.name);
      const compute = h("button", {type: "button", "aria-label": `Compute ${column.name}`, onclick: () => this.load()}, column.derived ? "Compute" : "Load");
      this.body.replaceChildren(this.message ? h("p", {class: "soft"}, this.message) : "", wait || this.message ? compute : h("p", {class: "soft"}, "Loading …"));
      if (!wait && !this.message) this.load();
      return;
    }
    const categories = column.categories(), known = view.n - column.missingCount;
    this.message = "";
    if (!known) return this.body.replaceChildren(h("p", {class: "soft"}, "All values are missing."));
    const isFreeText = column.values && categories.length > Math.max(MIN_FREE_TEXT_VALUES, FREE_TEXT_FRACTION * known);
    this.plot = isFreeText ? new TextFilter(this, categories) : categories ? new BarList(this, categories) : new Histogram(column, (filter, isFinal) => this.setFilter(filter, isFinal));
    if (column.missingCount) this.missingBar = new EntryBar(this, null);
    this.body.replaceChildren(this.plot.element, ...(this.missingBar ? [h("div", {class: "bars"}, this.missingBar.element)] : []));
    this.showFilter();
  }

  async load() {
    const {column, view} = this;
    this.message = "";
    if (!view.link) this.message = "The values are not part of this page.";
    else {
      const loading = view.loadColumn(column);
      this.body.replaceChildren(h("p", {class: "soft"}, column.expensive ? "Computing …" : "Loading …"));
      if (!(await loading) && !column.isLoaded) this.message = "The values are not available.";
    }
    if (this.message) this.fill();
  }

  /** Count and draw the points. */
  draw() {
    if (!this.plot) return;
    if (!this.plot.size) return this.missingBar?.draw(this.missingTotals(), this.view.n);
    const counts = countBins(this.plot.bins, this.plot.size, this.view, this.column.name);
    this.plot.draw(counts);
    this.missingBar?.draw(binTotals(counts, this.plot.size - 1), this.view.n);
  }

  /** Count the missing values of a column without bins. */
  missingTotals() {
    const {column, view} = this, passes = view.filters.passesOthers(column.name), totals = [0, 0, 0];
    for (let i = 0; i < view.n; i++) {
      if (column.data[i] !== column.missing) continue;
      totals[0]++;
      if (passes(i)) { totals[1]++; totals[2] += view.selected[i]; }
    }
    return totals;
  }

  showFilter() {
    const {filter, plot, column} = this;
    this.element.classList.toggle("filtered", Boolean(filter));
    this.clearButton.hidden = !filter;
    const text = !filter || !plot ? "" : filter.onlyMissing ? "missing" : filter.low === null && filter.high === null ? "without missing" : plot.describe(filter);
    this.info.textContent = text || (column.isLoaded && column.missingCount ? `${column.missingCount.toLocaleString("en")} missing` : "");
    this.info.title = this.info.textContent;
    if (!plot?.drag) plot?.showFilter(filter);
    this.missingBar?.showFilter(filter);
  }
}

class ColumnsPanel {
  constructor(view) {
    Object.assign(this, {view, cards: new Map(), frame: 0, drawTime: 0});
    this.text = h("span", {class: "passing"});
    const button = (label, title, action) => h("button", {type: "button", title, "aria-label": title, onclick: action}, label);
    this.clearButton = button("Clear", "Clear filters", () => { view.setFilters(new Map()); view.commit("clear filters"); });
    this.selectButton = button("Select these", "Select these points", () => view.select(view.filters.active.slice(), "points that pass the filters"));
    this.hide = h("input", {type: "checkbox", onchange: () => { view.setHideFiltered(this.hide.checked); view.commit("hide filtered points"); }});
    this.find = h("input", {type: "search", placeholder: "find a column", "aria-label": "Find a column", oninput: () => this.arrange()});
    this.grid = h("div", {class: "cards"});
    this.element = h("section", {class: "columns"}, h("div", {class: "filterbar"}, this.text, this.clearButton, this.selectButton, h("label", {class: "toggle"}, this.hide, "hide others")), this.find, this.grid);
    this.observer = new IntersectionObserver(entries => {
      for (const {target, isIntersecting} of entries) target.card.isVisible = isIntersecting;
      this.schedule();
    }, {rootMargin: "150px"});
    view.history.register("hidden points", () => view.hideFiltered, isHidden => view.setHideFiltered(isHidden));
  }

  update(change) {
    const {view} = this;
    if (change === "scene") this.cards.clear();
    if (change === "columns") this.arrange();
    if (change === "filters" || change === "columns") {
      const {count, byName} = view.filters;
      this.text.textContent = byName.size ? `${count.toLocaleString("en")} of ${view.n.toLocaleString("en")} points pass ${byName.size} filter${byName.size > 1 ? "s" : ""}` : "Drag in a histogram to filter";
      this.clearButton.disabled = this.selectButton.disabled = !byName.size;
      this.hide.checked = view.hideFiltered;
    }
    if (change === "colours" || change === "columns") this.cards.forEach(card => card.colourButton.setAttribute("aria-pressed", String(card.column.name === view.color)));
    if (["columns", "values", "filters", "selection"].includes(change)) this.schedule();
  }

  /** Create the cards of all columns: the columns of the table, without the pixels of images, and then the derived columns. */
  arrange() {
    const {view} = this, columns = view.columns.filter((column, k) => !view.pixels.has(k)), old = this.cards, text = this.find.value.toLowerCase();
    this.cards = new Map(columns.map(column => [column.name, old.get(column.name)?.column === column ? old.get(column.name) : new ColumnCard(this, column)]));
    this.find.hidden = columns.length <= MAX_CARDS_WITHOUT_SEARCH;
    for (const card of old.values()) this.observer.unobserve(card.element);
    this.cards.forEach((card, name) => { card.element.hidden = !name.toLowerCase().includes(text); });
    this.grid.replaceChildren(...[...this.cards.values()].map(card => card.element));
    this.cards.forEach(card => this.observer.observe(card.element));
  }

  /** Draw the visible cards in the next frame. */
  schedule() {
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      const start = performance.now();
      for (const card of this.cards.values()) {
        if (!card.isVisible) continue;
        card.fill();
        card.showFilter();
        if (!card.plot?.drag?.moved) card.draw(); // a filter does not change the counts of its own column
      }
      this.drawTime = performance.now() - start;
    });
  }
}
