// The search box: conditions on columns, joined by "and", "or", "not" and parentheses.
//
//   query  := term ("or" term)*
//   term   := factor ("and" factor)*
//   factor := "not" factor | "(" query ")" | column sign value | text
//   sign   := = | != | < | <= | > | >= | :
//
// A column is the name of a column, with or without double quotes. Values and plain text end at "and", "or" or a
// closing parenthesis; in double quotes they may contain anything, and "" stands for one quote. "<" and ">" compare
// numbers and ISO dates; ":" means "contains". A missing value satisfies no condition.

const SIGN = /^(<=|>=|!=|=|<|>|:)/, NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i, INTEGER = /^[+-]?\d+$/;
const DATE = /^(\d{4})(?:-(\d\d)(?:-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?\s*(Z|[+-]\d\d:?\d\d)?)?)?)?$/i;
const SEARCH_HELP = [
  ["word", "rows that contain this text or number in any column"],
  ["age >= 40", "compare numbers: =  !=  <  <=  >  >="],
  ["date < 2024-01-31", "compare ISO dates, with the same operators"],
  ["city = Bonn, city : bo", "compare text: = means equals, : means contains"],
  ["and, or, not, ( )", "combine conditions: (age < 18 or age > 65) and not city = Bonn"],
  ["\"bread and butter\"", "quote text that contains keywords or operators"],
];

/** Raised for an invalid query; the message is shown to the user. */
class QueryError extends Error {}

/** Parse a query to a tree of {and: […]}, {or: […]}, {not: …}, {column, sign, value} and {text}. */
function parseQuery(query, columns) {
  const names = [...columns].sort((a, b) => b.name.length - a.name.length);
  let rest = query.trim(), depth = 0;
  const skip = count => { rest = rest.slice(count).trimStart(); };
  const word = name => { const found = new RegExp(`^${name}(?=[\\s(]|$)`, "i").exec(rest); if (found) skip(name.length); return found !== null; };
  const quoted = () => {
    const found = /^"((?:[^"]|"")*)"/.exec(rest);
    if (!found) throw new QueryError(`The quote at ${rest.slice(0, 20)} is not closed.`);
    skip(found[0].length);
    return found[1].replaceAll('""', '"');
  };
  /** Read the text up to a keyword, a closing parenthesis of an enclosing pair, or the end. */
  const plain = () => {
    let inner = 0, end = 0;
    for (; end < rest.length; end++) {
      if (rest[end] === "(") inner++;
      else if (rest[end] === ")" && --inner < 0 && depth) break;
      else if (/\s/.test(rest[end]) && /^\s+(and|or)(?=[\s(]|$)/i.test(rest.slice(end))) break;
    }
    const found = rest.slice(0, end).trim();
    skip(end);
    return found;
  };
  /** Return the column at this position, if an operator follows its name, else null. */
  const column = () => {
    const low = rest.toLowerCase(), named = /^"((?:[^"]|"")*)"\s*/.exec(rest);
    const matches = (one, length) => SIGN.test(rest.slice(length).trimStart()) ? {one, length} : null;
    const exact = names.filter(one => rest.startsWith(one.name)), loose = names.filter(one => low.startsWith(one.name.toLowerCase()));
    for (const one of [...exact, ...loose]) { const found = one.name && matches(one, one.name.length); if (found) return found; }
    const inside = named && named[1].replaceAll('""', '"'), one = inside && (names.find(each => each.name === inside) || names.find(each => each.name.toLowerCase() === inside.toLowerCase()));
    return one ? matches(one, named[0].length) : null;
  };
  const factor = () => {
    const known = column();
    if (known) {
      skip(known.length);
      const sign = SIGN.exec(rest)[1];
      skip(sign.length);
      const value = rest.startsWith('"') ? quoted() : /^(and|or)(?=[\s(]|$)/i.test(rest) ? "" : plain();
      if (!value) throw new QueryError(`A value is missing after "${known.one.name} ${sign}".`);
      return {column: known.one, sign, value};
    }
    if (word("not")) return {not: factor()};
    if (rest.startsWith("(")) {
      depth++;
      skip(1);
      const inner = either();
      if (!rest.startsWith(")")) throw new QueryError('A parenthesis is not closed: ")" is missing.');
      depth--;
      skip(1);
      return inner;
    }
    if (rest.startsWith('"')) {
      const text = quoted(), sign = SIGN.exec(rest);
      if (sign) throw unknownColumnError(text, names);
      return {text};
    }
    if (!rest || /^(and|or)(?=[\s(]|$)/i.test(rest) || rest.startsWith(")")) throw new QueryError(`A condition is missing ${rest ? `before "${rest.slice(0, 20)}"` : "at the end"}.`);
    const text = plain(), sign = /^(.*?)\s*(<=|>=|!=|=|<|>|:)/.exec(text);
    if (sign) throw unknownColumnError(sign[1], names);
    return {text};
  };
  const joined = (name, part) => {
    const parts = [part()];
    while (word(name)) parts.push(part());
    return parts.length === 1 ? parts[0] : {[name]: parts};
  };
  const both = () => joined("and", factor), either = () => joined("or", both);
  const found = either();
  if (rest) throw new QueryError(`"${rest.slice(0, 20)}" is not expected here; put text that contains operators in quotes.`);
  return found;
}

function unknownColumnError(name, columns) {
  const some = columns.map(one => one.name).sort(), listed = some.slice(0, 8).join(", ");
  return new QueryError(`There is no column "${name}". Columns are ${listed}${some.length > 8 ? ", …" : ""}. To search for the text itself, put it in quotes.`);
}

/** Return the columns that a query refers to. */
function queryColumns(query) {
  if (query.column) return [query.column];
  return (query.and || query.or || (query.not ? [query.not] : [])).flatMap(queryColumns);
}

/** Return a function that tests whether row i matches a query; plain text is searched in `columns`. */
function matcher(query, columns) {
  if (query.column) return condition(query.column, query.sign, query.value);
  if (query.not) { const test = matcher(query.not, columns); return i => !test(i); }
  const tests = query.text !== undefined ? columns.map(one => contains(one, query.text)) : (query.and || query.or).map(one => matcher(one, columns));
  return query.and ? i => tests.every(test => test(i)) : i => tests.some(test => test(i));
}

/** Return a test for text in a text column, or for a number in a numeric column. */
function contains(column, text) {
  if (column.values) return condition(column, ":", text);
  return NUMBER.test(text) ? condition(column, "=", text) : () => false;
}

/** Return a function that tests whether row i satisfies a condition on a column. */
function condition(column, sign, text) {
  const {data, missing, values, divisor, name} = column;
  if (values) {
    const hit = textTest(column, sign, text), known = values.map(value => hit(value));
    return i => data[i] !== missing && known[data[i]];
  }
  const infinite = /^([+-]?)inf(inity)?$/i.exec(text), number = infinite ? (infinite[1] === "-" ? -Infinity : Infinity) : Number(text);
  if (!infinite && !NUMBER.test(text)) throw new QueryError(`"${name}" contains numbers, but "${text}" is not a number.`);
  const test = compare(sign, number);
  return i => data[i] !== missing && data[i] === data[i] && test(data[i] / divisor);
}

function compare(sign, limit) {
  return {"<": v => v < limit, ">": v => v > limit, "<=": v => v <= limit, ">=": v => v >= limit, "!=": v => v !== limit}[sign] || (v => v === limit);
}

/** Return a function that tests one value of a text column; integers and ISO dates are compared by value. */
function textTest({name, values}, sign, text) {
  const low = text.toLowerCase();
  if (sign === ":") return value => value.toLowerCase().includes(low);
  const filled = values.filter(value => value !== ""), kinds = [[INTEGER, BigInt, "an integer"], [DATE, instant, "an ISO date such as 2024-01-31"]];
  for (const [, read, what] of kinds.filter(([shape]) => filled.length && filled.every(value => shape.test(value)))) {
    const keys = new Map(filled.map(value => [value, read(value)])), wrong = filled.find(value => keys.get(value) === null), limit = readValue(read, text);
    if (wrong !== undefined) break; // not a valid date, such as 2024-02-31
    if (limit !== null) { const test = compare(sign, limit); return value => value !== "" && test(keys.get(value)); }
    if (sign !== "=" && sign !== "!=") throw new QueryError(`"${name}" contains values such as ${filled[0]}, but "${text}" is not ${what}.`);
  }
  if (sign === "=") return value => value.toLowerCase() === low;
  if (sign === "!=") return value => value.toLowerCase() !== low;
  const other = filled.find(value => instant(value) === null);
  throw new QueryError(`"${name}" contains text${other === undefined ? "" : `, for example "${other.slice(0, 40)}"`}, which ${sign} cannot compare. < and > compare numbers and ISO dates such as 2024-01-31; for text use = (equals) or : (contains).`);
}

/** Convert text with `read`, or return null if that fails. */
function readValue(read, text) {
  try { return read(text); } catch { return null; }
}

/** Return an ISO date as nanoseconds since 1970 (UTC if it has no time zone), or null if the text is not a date. */
function instant(text) {
  const found = DATE.exec(text);
  if (!found) return null;
  const [year, month, day, hour, minute, second] = found.slice(1, 7).map((part, k) => part === undefined ? Number(k === 1 || k === 2) : Number(part));
  if (month < 1 || month > 12 || day < 1 || day > new Date(Date.UTC(2000 + year % 400, month, 0)).getUTCDate() || hour > 23 || minute > 59 || second > 59) return null;
  const when = new Date(0);
  when.setUTCFullYear(year, month - 1, day);
  when.setUTCHours(hour, minute, second);
  const zone = /^([+-])(\d\d):?(\d\d)$/.exec(found[8] || ""), shift = zone ? Number(zone[1] + "1") * (Number(zone[2]) * 60 + Number(zone[3])) * 60000 : 0;
  return BigInt(when.getTime() - shift) * 1000000n + BigInt((found[7] || "").padEnd(9, "0"));
}
