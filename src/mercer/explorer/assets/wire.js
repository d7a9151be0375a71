// One value on the wire: a line of JSON, and after it the numbers that it speaks of, as they lie in memory.

const NUMBERS = {
  f4: Float32Array, f8: Float64Array, u1: Uint8Array, u2: Uint16Array, u4: Uint32Array,
  i1: Int8Array, i2: Int16Array, i4: Int32Array,
};

/** Return the value in some bytes; {"$": [type, offset, count]} stands for an array of numbers. */
export function unpack(bytes) {
  if (ArrayBuffer.isView(bytes)) bytes = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
  const size = new DataView(bytes).getUint32(0, true), body = 8 * Math.ceil((8 + size) / 8);
  const text = new TextDecoder().decode(new Uint8Array(bytes, 8, size));
  return JSON.parse(text, (_, value) => {
    if (value === null || typeof value !== "object" || !("$" in value)) return value;
    const [type, offset, count] = value.$;
    return new NUMBERS[type](bytes, body + offset, count);
  });
}

/** Return bytes as text, base64: questions travel as JSON, for not every notebook takes more. */
function written(bytes) {
  let text = "";
  for (let i = 0; i < bytes.length; i += 32768) text += String.fromCharCode(...bytes.subarray(i, i + 32768));
  return btoa(text);
}

/** Return the bytes that a page holds as text: base64 of gzip. */
export async function unfold(text) {
  const packed = Uint8Array.from(atob(text), c => c.charCodeAt(0));
  const plain = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(plain).arrayBuffer();
}

/** A column of the table: numbers, kept as whole ones over a power of ten where that is exact, or texts by their codes. */
class Column {
  constructor(told) {
    Object.assign(this, {name: told.name, type: told.type, derived: told.derived});
    this.fill(told);
  }

  fill(told) {
    Object.assign(this, {data: told.data ?? null, over: told.over || 1, missing: told.missing ?? null, values: told.values || null});
    this.kinds = null;
  }

  get there() { return this.data !== null; }

  /** The number or text of a row; null where it is missing. */
  at(i) {
    const value = this.data[i];
    if (value === this.missing || value !== value) return null;
    return this.values ? this.values[value] : this.over === 1 ? value : value / this.over;
  }

  say(i) {
    const value = this.at(i);
    return value === null ? "missing" : typeof value === "number" ? brief(value) : value;
  }

  /** The different values, most frequent first, if they are few or texts; null for a measured quantity. */
  categories() {
    if (this.kinds) return this.kinds.list;
    const counts = new Map(), n = this.data.length;
    let few = true;
    if (this.values) {
      const tally = new Uint32Array(this.values.length);
      for (let i = 0; i < n; i++) if (this.data[i] !== this.missing) tally[this.data[i]]++;
      tally.forEach((count, code) => count && counts.set(code, count));
    } else {
      for (let i = 0; i < n && few; i++) {
        const value = this.data[i];
        if (value === this.missing || value !== value) continue;
        counts.set(value, (counts.get(value) || 0) + 1);
        few = counts.size <= 12 && Number.isInteger(value / this.over);
      }
    }
    const list = few ? [...counts].map(([code, count]) => ({code, count, name: this.values ? this.values[code] : brief(code / this.over)})) : null;
    if (list && list.length > 12) list.sort((a, b) => b.count - a.count || (a.name < b.name ? -1 : 1));
    else if (list) list.sort((a, b) => this.values ? (a.name < b.name ? -1 : 1) : a.code - b.code);
    this.kinds = {list};
    return list;
  }

  /** The smallest and the largest number. */
  range() {
    let low = Infinity, high = -Infinity;
    for (let i = 0; i < this.data.length; i++) {
      const value = this.data[i];
      if (value === this.missing || value !== value) continue;
      if (value < low) low = value;
      if (value > high) high = value;
    }
    return low > high ? [0, 1] : [low / this.over, high / this.over];
  }
}

/** A number in the digits that a person reads. */
function brief(value) {
  if (Number.isInteger(value) && Math.abs(value) < 1e9) return String(value);
  return String(Number(value.toPrecision(5)));
}
