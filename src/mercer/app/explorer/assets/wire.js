// The binary format of messages (JSON followed by the bytes of all arrays), and the columns of the table.

const ARRAY_TYPES = {
  f4: Float32Array, f8: Float64Array, u1: Uint8Array, u2: Uint16Array, u4: Uint32Array,
  i1: Int8Array, i2: Int16Array, i4: Int32Array,
};

const MIN_DIGITS = 5, MAX_DIGITS = 15; // significant digits of numbers in texts; float64 represents all numbers with 15 digits

/** Decode a message; in its JSON, {"$": [type, offset, count]} stands for an array of numbers. */
export function unpack(bytes) {
  if (ArrayBuffer.isView(bytes)) bytes = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
  const size = new DataView(bytes).getUint32(0, true), body = 8 * Math.ceil((8 + size) / 8);
  const text = new TextDecoder().decode(new Uint8Array(bytes, 8, size));
  return JSON.parse(text, (_, value) => {
    if (value === null || typeof value !== "object" || !("$" in value)) return value;
    const [type, offset, count] = value.$;
    return new ARRAY_TYPES[type](bytes, body + offset, count);
  });
}

/** Encode bytes as base64. Requests are sent as JSON, because not every notebook supports binary messages. */
function toBase64(bytes) {
  let text = "";
  for (let i = 0; i < bytes.length; i += 32768) text += String.fromCharCode(...bytes.subarray(i, i + 32768));
  return btoa(text);
}

/** Return the values 0 and 1 of a mask as bits; the first value is the lowest bit of the first byte. */
function packBits(mask) {
  const bytes = new Uint8Array(Math.ceil(mask.length / 8));
  for (let i = 0; i < mask.length; i++) bytes[i >> 3] |= mask[i] << (i & 7);
  return bytes;
}

/** Decode the data of a saved page, which are compressed with gzip and encoded as base64. */
export async function decompress(text) {
  const binary = atob(text), packed = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) packed[i] = binary.charCodeAt(i); // Uint8Array.from is ten times slower
  const plain = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(plain).arrayBuffer();
}

/**
 * A column of the table, of type "numbers" (stored as scaled integers where that is exact), "text" (stored as codes of `values`),
 * or "dates" (stored as microseconds since 1970, UTC, in float64; NaN is a missing date).
 */
class Column {
  constructor(message) {
    Object.assign(this, {name: message.name, type: message.type, derived: message.derived, expensive: Boolean(message.expensive)});
    this.fill(message);
  }

  fill(message) {
    Object.assign(this, {data: message.data ?? null, divisor: message.divisor || 1, missing: message.missing ?? null, values: message.values || null});
    this.step = message.step || null; // of dates: all are multiples of this many microseconds
    if (this.step) {
      this.data = Float64Array.from(message.data, count => count === message.missing ? NaN : count * message.step);
      this.missing = null;
    }
    this.categoryCache = this.missingCache = this.digitsCache = null;
    this.coloured = null; // the categories that have a colour; null means the first ones
  }

  /** The number of missing values of a loaded column. */
  get missingCount() {
    if (this.missingCache === null) {
      this.missingCache = 0;
      for (const value of this.data) if (value === this.missing || value !== value) this.missingCache++;
    }
    return this.missingCache;
  }

  /** Whether the values of a loaded column are stored as floating-point numbers, not as integers with a divisor or as codes. */
  get isFloat() { return this.data instanceof Float32Array || this.data instanceof Float64Array; }

  /** Whether the column contains integers that are stored as such. */
  get isInteger() { return !this.values && !this.isDate && this.divisor === 1 && !this.isFloat; }

  get isDate() { return this.step !== null; }

  get isLoaded() { return this.data !== null; }

  /** Return the number or text of a row (of a date, its ISO text), or null if it is missing. */
  at(i) {
    const value = this.data[i];
    if (value === this.missing || value !== value) return null;
    if (this.isDate) return formatDate(value, this.step);
    return this.values ? this.values[value] : this.divisor === 1 ? value : value / this.divisor;
  }

  /** Return the value of a row as text. */
  format(i) {
    const value = this.at(i);
    return value === null ? "missing" : typeof value === "number" ? formatNumber(value, this.digits) : value;
  }

  /** Format a number in the units of `range`: as a date if the column contains dates. */
  formatValue(value) { return this.isDate ? formatDate(value, this.step) : formatNumber(value, this.digits); }

  /** The number of significant digits of the values in texts. */
  get digits() { return (this.digitsCache ??= this.isLoaded ? distinguishingDigits(...this.range()) : MIN_DIGITS); }

  /** Return the distinct values with their counts, for strings and for at most 12 distinct integers; null for other columns. */
  categories() {
    if (this.categoryCache) return this.categoryCache.list;
    const counts = new Map(), n = this.data.length;
    let isCategorical = !this.isDate;
    if (this.values) {
      const tally = new Uint32Array(this.values.length);
      for (let i = 0; i < n; i++) if (this.data[i] !== this.missing) tally[this.data[i]]++;
      tally.forEach((count, code) => count && counts.set(code, count));
    } else {
      for (let i = 0; i < n && isCategorical; i++) {
        const value = this.data[i];
        if (value === this.missing || value !== value) continue;
        counts.set(value, (counts.get(value) || 0) + 1);
        isCategorical = counts.size <= 12 && Number.isInteger(value / this.divisor);
      }
    }
    const list = isCategorical ? [...counts].map(([code, count]) => ({code, count, name: this.values ? this.values[code] : String(code / this.divisor)})) : null; // all digits, because filters contain the names
    if (list && list.length > 12) list.sort((a, b) => b.count - a.count || (a.name < b.name ? -1 : 1));
    else if (list) list.sort((a, b) => this.values ? (a.name < b.name ? -1 : 1) : a.code - b.code);
    this.categoryCache = {list};
    return list;
  }

  /** Return the smallest and the largest finite number. */
  range() {
    let low = Infinity, high = -Infinity;
    for (let i = 0; i < this.data.length; i++) {
      const value = this.data[i];
      if (value === this.missing || !Number.isFinite(value)) continue;
      if (value < low) low = value;
      if (value > high) high = value;
    }
    return low > high ? [0, 1] : [low / this.divisor, high / this.divisor];
  }
}

/** Format microseconds since 1970 as an ISO date, with a time unless `step` is a whole day; times are in UTC. */
function formatDate(instant, step) {
  const day = 864e8, micros = (Math.round(instant) % 1e6 + 1e6) % 1e6, date = new Date((Math.round(instant) - micros) / 1000);
  if (Number.isNaN(date.getTime())) return `${formatNumber(1970 + instant / 365.2425 / day)} (year)`; // beyond the range of Date
  const text = date.toISOString().replace(/\.\d+Z$/, "");
  if (step % 60e6 === 0) return text.slice(0, step % day === 0 ? -9 : -3);
  return step % 1e6 === 0 ? text : `${text}.${String(micros).padStart(6, "0").slice(0, step % 1e3 === 0 ? 3 : 6)}`;
}

/** Format a number: integers with all digits, and others with at most `digits` significant digits. */
function formatNumber(value, digits = MIN_DIGITS) {
  if (Number.isSafeInteger(value)) return String(value);
  return String(Number(value.toPrecision(digits)));
}

/** Return the number of significant digits that distinguish about 1000 values from low to high, for example 9 digits for 524.2641 to 524.2659. */
function distinguishingDigits(low, high) {
  const digits = Math.ceil(Math.log10(Math.max(Math.abs(low), Math.abs(high)) / (high - low))) + 3;
  return digits > MIN_DIGITS ? Math.min(digits, MAX_DIGITS) : MIN_DIGITS;
}
