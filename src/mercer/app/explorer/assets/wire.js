// The binary format of messages (JSON followed by the bytes of all arrays), and the columns of the table.

const ARRAY_TYPES = {
  f4: Float32Array, f8: Float64Array, u1: Uint8Array, u2: Uint16Array, u4: Uint32Array,
  i1: Int8Array, i2: Int16Array, i4: Int32Array,
};

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

/** Decode the data of a saved page, which are compressed with gzip and encoded as base64. */
export async function decompress(text) {
  const packed = Uint8Array.from(atob(text), c => c.charCodeAt(0));
  const plain = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(plain).arrayBuffer();
}

/** A column of the table: numbers, stored as scaled integers where that is exact, or strings, stored as integer codes. */
class Column {
  constructor(message) {
    Object.assign(this, {name: message.name, type: message.type, derived: message.derived});
    this.fill(message);
  }

  fill(message) {
    Object.assign(this, {data: message.data ?? null, divisor: message.divisor || 1, missing: message.missing ?? null, values: message.values || null});
    this.categoryCache = null;
  }

  get isLoaded() { return this.data !== null; }

  /** Return the number or text of a row, or null if it is missing. */
  at(i) {
    const value = this.data[i];
    if (value === this.missing || value !== value) return null;
    return this.values ? this.values[value] : this.divisor === 1 ? value : value / this.divisor;
  }

  /** Return the value of a row as text. */
  format(i) {
    const value = this.at(i);
    return value === null ? "missing" : typeof value === "number" ? formatNumber(value) : value;
  }

  /** Return the distinct values with their counts, for strings and for at most 12 distinct integers; null for other columns. */
  categories() {
    if (this.categoryCache) return this.categoryCache.list;
    const counts = new Map(), n = this.data.length;
    let isCategorical = true;
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
    const list = isCategorical ? [...counts].map(([code, count]) => ({code, count, name: this.values ? this.values[code] : formatNumber(code / this.divisor)})) : null;
    if (list && list.length > 12) list.sort((a, b) => b.count - a.count || (a.name < b.name ? -1 : 1));
    else if (list) list.sort((a, b) => this.values ? (a.name < b.name ? -1 : 1) : a.code - b.code);
    this.categoryCache = {list};
    return list;
  }

  /** Return the smallest and the largest number. */
  range() {
    let low = Infinity, high = -Infinity;
    for (let i = 0; i < this.data.length; i++) {
      const value = this.data[i];
      if (value === this.missing || value !== value) continue;
      if (value < low) low = value;
      if (value > high) high = value;
    }
    return low > high ? [0, 1] : [low / this.divisor, high / this.divisor];
  }
}

/** Format a number with at most 5 significant digits. */
function formatNumber(value) {
  if (Number.isInteger(value) && Math.abs(value) < 1e9) return String(value);
  return String(Number(value.toPrecision(5)));
}
