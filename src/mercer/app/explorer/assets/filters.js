// Filters on columns. A point is active if it satisfies the filters of all columns.
//
// A filter is a plain object, so that it can be stored in a session. All filters have the field `missing`, which states whether missing values pass:
//   {low, high, missing}     numbers or dates from low to high, both included; null means no limit
//   {excluded: [names]}      categories: all names that are not excluded pass
//   {included: [names]}      categories: only these names pass (used instead of `excluded` if the list is shorter)
//   {contains: text}         values with this text, in upper or lower case
//   {onlyMissing: true}      only missing values pass

/** Return a mask of the rows of a loaded column that satisfy a filter. */
function filterMask(column, filter) {
  const {data, missing, divisor} = column, n = data.length, mask = new Uint8Array(n), absent = filter.missing ? 1 : 0;
  if (filter.low === undefined) { // a set of stored values
    const passing = passingCodes(column, filter), table = column.values ? Uint8Array.from(column.values, (_, code) => passing.has(code)) : null;
    for (let i = 0; i < n; i++) {
      const value = data[i];
      mask[i] = value === missing || value !== value ? absent : table ? table[value] : passing.has(value) ? 1 : 0;
    }
    return mask;
  }
  const [low, high] = storedRange(filter, divisor);
  for (let i = 0; i < n; i++) {
    const value = data[i];
    mask[i] = value === missing || value !== value ? absent : value >= low && value <= high ? 1 : 0;
  }
  return mask;
}

/** Return the stored values that satisfy a filter without limits. */
function passingCodes(column, filter) {
  const categories = column.categories() || [];
  if (filter.onlyMissing) return new Set();
  const listed = new Set(filter.included || filter.excluded), text = filter.contains?.toLowerCase();
  const passes = name => text !== undefined ? name.toLowerCase().includes(text) : listed.has(name) === Boolean(filter.included);
  return new Set(categories.filter(one => passes(one.name)).map(one => one.code));
}

/** Return the range of stored values that is equivalent to a range of values, which are the stored values divided by `divisor`. */
function storedRange({low, high}, divisor) {
  let [first, last] = [low ?? -Infinity, high ?? Infinity];
  if (divisor === 1) return [first, last];
  if (low !== null) for (first = Math.round(low * divisor) - 1; first / divisor < low;) first++; // the stored values are integers
  if (high !== null) for (last = Math.round(high * divisor) + 1; last / divisor > high;) last--;
  return [first, last];
}

/** Return whether the values of an entry pass a filter; an entry is the name of a category, or null for missing values. */
function passesEntry(filter, entry) {
  if (!filter) return true;
  if (entry === null) return filter.missing;
  if (filter.onlyMissing) return false;
  return filter.included ? filter.included.includes(entry) : !(filter.excluded || []).includes(entry);
}

/** Return the filter that lets only these entries of a column pass, or null if all or none of them are given. */
function entriesFilter(column, entries) {
  const names = (column.categories() || []).map(one => one.name), wanted = new Set(entries), missing = wanted.has(null);
  const included = names.filter(name => wanted.has(name)), excluded = names.filter(name => !wanted.has(name));
  if (!included.length) return missing ? {onlyMissing: true, missing: true} : null;
  if (!excluded.length && (missing || !column.missingCount)) return null;
  return included.length < excluded.length ? {included, missing} : {excluded, missing};
}

/** Return a filter of a column after some of its entries were shown or, if all of them are shown, hidden. */
function toggleEntries(column, filter, entries) {
  const categories = column.categories(), areShown = entries.every(entry => passesEntry(filter, entry));
  if (!categories) { // numbers and dates have only the entry of the missing values
    if (filter?.onlyMissing || (filter && !areShown && filter.low === null && filter.high === null)) return null;
    return {low: null, high: null, ...filter, missing: !areShown};
  }
  const changed = new Set(entries), others = [...categories.map(one => one.name), null].filter(other => !changed.has(other) && passesEntry(filter, other));
  return entriesFilter(column, areShown ? others : [...others, ...entries]);
}

/** Return the filter that lets only some entries of a column pass, or null if this is the filter already. */
function isolateEntries(column, filter, entries) {
  const next = column.categories() ? entriesFilter(column, entries) : {onlyMissing: true, missing: true};
  return JSON.stringify(next) === JSON.stringify(filter) ? null : next;
}

class Filters {
  constructor(n) {
    Object.assign(this, {n, byName: new Map(), masks: new Map(), failures: new Uint16Array(n), active: new Uint8Array(n).fill(1), count: n});
  }

  /** Set the filter of a loaded column; null removes it. A filter of a column that is not loaded is stored, and applied when it is set again. */
  set(column, filter) {
    this.byName = new Map(this.byName); // snapshots of the history refer to the old map
    if (filter) this.byName.set(column.name, filter); else this.byName.delete(column.name);
    this.setMask(column.name, filter && column.isLoaded ? filterMask(column, filter) : null);
  }

  setMask(name, mask) {
    const {failures, active, n} = this, old = this.masks.get(name);
    if (!old && !mask) return;
    let count = 0;
    for (let i = 0; i < n; i++) {
      const failed = failures[i] + (old ? old[i] : 1) - (mask ? mask[i] : 1);
      failures[i] = failed;
      const passes = failed === 0 ? 1 : 0;
      active[i] = passes;
      count += passes;
    }
    this.count = count;
    if (mask) this.masks.set(name, mask); else this.masks.delete(name);
  }

  /** Return a function that tests whether row i satisfies the filters of all columns other than `name`. */
  passesOthers(name) {
    const {failures} = this, own = this.masks.get(name);
    return own ? i => failures[i] + own[i] === 1 : i => failures[i] === 0;
  }
}
