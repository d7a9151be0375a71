// The search box: conditions on columns, joined by "and", "or", "not" and parentheses.
//
//   query  := term ("or" term)*
//   term   := factor ("and" factor)*
//   factor := "not" factor | "(" query ")" | condition | text
//   condition := column sign value | value sign column [sign value]
//              | column "is" ["not"] "missing"
//              | column ["not"] "in" ("(" value ("," value)* ")" | low-high)
//              | column ["not"] "between" value "and" value
//              | column of booleans
//   sign   := = | != | < | <= | > | >= | :
//
// A column is the name of a column, with or without double quotes or backquotes; "row" is the row number. Values and plain
// text end at "and", "or" or a closing parenthesis; in double quotes they may contain anything, and "" stands for one quote.
// ":" means "contains". A missing value satisfies no condition except "is missing"; "not" selects all other rows.

const SIGN = /^(<=|>=|!=|==|<>|=|<|>|:|≤|≥|≠)/, SAME_SIGN = {"==": "=", "<>": "!=", "≠": "!=", "≤": "<=", "≥": ">="};
const MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "=": "=", "!=": "!="};
const WORD_OPERATOR = /^(is|in|between|not\s+in|not\s+between)(?=[\s("]|$)/i, UNKNOWN_OPERATOR = /^(like|contains|contain|has|equals|starts|startswith|ends|endswith|matches|isin)(?=[\s("]|$)/i;
const JOINT = /^(and|or)(?=[\s(]|$)/i, MISSING_WORD = /^(missing|null|nan|na|none)$/i;
const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i, INTEGER = /^[+-]?\d+$/, RANGE = /^([+-]?\d+\.?\d*|[+-]?\.\d+)\s*-\s*([+-]?\d+\.?\d*|[+-]?\.\d+)$/;
const DATE = /^(\d{4})(?:-(\d\d)(?:-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?\s*(Z|[+-]\d\d:?\d\d)?)?)?)?$/i;
/** What may precede a sign: a text in quotes, a date, or text without signs. */
const LITERAL = /^(?:"(?:[^"]|"")*"|\d{4}-\d\d-\d\d(?:[T ][\d:.,]+\s*(?:Z|[+-]\d\d:?\d\d)?)?|[^"<>=!:≤≥≠()]+?)(?=\s*(?:<=|>=|!=|==|<>|=|<|>|≤|≥|≠))/i;
/** Text that is a condition if it begins with the name of a column. */
const LIKE_CONDITION = /^(.+?)\s+(?:is\s+(?:not\s+)?(?:missing|null|nan|na|none)|(?:not\s+)?in\s*\(.*|(?:not\s+)?in\s+[\d.+-]+|(?:not\s+)?between\s+["\d.+-].*)$/i;
const ROW = {name: "row", isRow: true, isLoaded: true};
const SEARCH_HELP = [
  ["word", "rows that contain this text or number in any column"],
  ["age >= 40, 10 <= age < 20", "compare numbers: =  !=  <  <=  >  >="],
  ["date < 2024-01-31", "compare ISO dates, with the same operators"],
  ["city = Bonn, city : bo", "compare text: = means equals, : means contains"],
  ["city in (Bonn, \"New York\"), city not in (Bonn)", "one of several values"],
  ["age between 10 and 20", "a range, with both ends"],
  ["age is missing, age is not missing", "missing values"],
  ["row = 12, row in 3-10", "row numbers"],
  ["and, or, not, ( )", "combine conditions: (age < 18 or age > 65) and not city = Bonn"],
  ["\"bread and butter\"", "quote text that contains keywords or operators"],
];

/** Raised for an invalid query; the message, which begins with the position if it is known, is shown to the user. */
class QueryError extends Error {
  constructor(message, position = null) {
    super(position === null ? message : `At character ${position + 1}: ${message}`);
    this.position = position;
  }
}

/**
 * Parse a query to a tree of {and: […]}, {or: […]}, {not: …}, {text} and conditions {column, sign, values, at}.
 *
 * The sign of a condition is one of = != < <= > >= : in between missing true. `expect(what, at, column)` is called before a
 * factor, an operator or a value is read at the position `at`, see suggest.js.
 */
function parseQuery(query, columns, expect = () => {}) {
  const names = [...columns, ...(columns.some(one => one.name.toLowerCase() === "row") ? [] : [ROW])].sort((a, b) => b.name.length - a.name.length);
  let at = 0, rest = query, depth = 0;
  const skip = count => {
    rest = rest.slice(count).trimStart();
    at = query.length - rest.length;
  };
  skip(0);
  const fail = (message, position = at) => { throw new QueryError(message, position); };
  const take = pattern => { const found = pattern.exec(rest); if (found) skip(found[0].length); return found; };
  const found = () => rest ? `, but found "${rest.slice(0, 20)}"` : "";
  const quoted = () => {
    const text = /^"((?:[^"]|"")*)"/.exec(rest) || /^'([^']*)'(?=[\s),]|$)/.exec(rest);
    if (!text) return null;
    skip(text[0].length);
    return text[0][0] === "'" ? text[1] : text[1].replaceAll('""', '"');
  };
  const checkQuote = () => { if (rest.startsWith('"') && !/^"(?:[^"]|"")*"/.test(rest)) fail(`The quote at ${rest.slice(0, 20)} is not closed.`); };
  /** Read the text up to a keyword, a closing parenthesis of an enclosing pair, or the end. */
  const plain = () => {
    let inner = 0, end = 0;
    for (; end < rest.length; end++) {
      if (rest[end] === "(") inner++;
      else if (rest[end] === ")" && --inner < 0 && depth) break;
      else if (/\s/.test(rest[end]) && JOINT.test(rest.slice(end).trimStart())) break;
    }
    const text = rest.slice(0, end).trim();
    skip(end);
    return text;
  };
  /** Read a value of a condition; `read` reads it if it is not in quotes. */
  const value = (column, after, read = plain) => {
    expect("value", at, column);
    checkQuote();
    const inQuotes = quoted(), start = at;
    if (inQuotes !== null) return inQuotes;
    const text = JOINT.test(rest) ? "" : read(), sign = /<=|>=|!=|==|<>|[=<>≤≥≠]|&&|\|\|/.exec(text);
    if (!text) fail(`A value is missing after "${after}".`, start);
    if (sign) fail(`"${sign[0]}" is not expected in the value "${text}". Join conditions by "and" or "or", or put the value in quotes.`, start + sign.index);
    return text;
  };
  /** Return {one, length} for the column whose name is at this position and is followed by what `isEnd` accepts, or null. */
  const column = isEnd => {
    const low = rest.toLowerCase(), named = /^(?:"((?:[^"]|"")*)"|`([^`]*)`)/.exec(rest);
    const matches = (one, length) => one && isEnd(rest.slice(length), length) ? {one, length} : null;
    const exact = names.filter(one => rest.startsWith(one.name)), loose = names.filter(one => low.startsWith(one.name.toLowerCase()));
    for (const one of [...exact, ...loose]) { const match = one.name && matches(one, one.name.length); if (match) return match; }
    const inside = named && (named[2] ?? named[1].replaceAll('""', '"'));
    return named && matches(names.find(one => one.name === inside) || names.find(one => one.name.toLowerCase() === inside.toLowerCase()), named[0].length);
  };
  const isBeforeOperator = after => SIGN.test(after.trimStart()) || (/^\s|^$/.test(after) && (WORD_OPERATOR.test(after.trimStart()) || UNKNOWN_OPERATOR.test(after.trimStart())));
  /** Read what follows the name of a column. */
  const condition = (one, start) => {
    expect("operator", at, one);
    const node = (sign, values, more) => ({column: one, sign, values, at: start, ...more}), name = one.name, sign = take(SIGN);
    if (sign) return node(SAME_SIGN[sign[1]] || sign[1], [value(one, `${name} ${sign[1]}`)]);
    const unknown = UNKNOWN_OPERATOR.exec(rest);
    if (unknown) fail(`"${unknown[1]}" is not an operator. Operators are = != < <= > >= : (contains), in, between and is missing. To search for the text itself, put it in quotes.`);
    const operator = take(WORD_OPERATOR)[1].toLowerCase().replace(/\s+/, " "), negated = operator.startsWith("not ");
    if (operator === "is") {
      const isNot = take(/^not(?=\s|$)/i), word = /^[^\s()]*/.exec(rest)[0];
      if (!MISSING_WORD.test(word)) fail(`"missing" or "not missing" is expected after "${name} is"${found()}. To compare values use =, and to search for the text itself, put it in quotes.`);
      skip(word.length);
      return node("missing", [], {negated: Boolean(isNot)});
    }
    if (operator.endsWith("between")) {
      const low = value(one, `${name} ${operator}`);
      if (!take(/^and(?=[\s("]|$)/i)) fail(`"and" is expected in "${name} ${operator} … and …"${found()}.`);
      return node("between", [low, value(one, `${name} ${operator} ${low} and`)], {negated});
    }
    const range = /^([+-]?[\d.]+)\s*-\s*([+-]?[\d.]+)/.exec(rest);
    if (range && !(one.isLoaded && one.values)) return node("in", [plain()], {negated});
    if (!take(/^\(/)) fail(`A list of values in parentheses is expected after "${name} ${operator}", such as (a, b)${found()}. To search for the text itself, put it in quotes.`);
    const values = [];
    do values.push(value(one, values.length ? "," : `${name} ${operator} (`, () => take(/^[^,()"]*/)[0].trim())); while (take(/^,/));
    if (!take(/^\)/)) fail(`"," or ")" is expected in the list of values${found()}.`);
    return node("in", values, {negated});
  };
  /** Read a condition that begins with a value, such as 10 <= age < 20; return null if there is none. */
  const mirrored = () => {
    const literal = LITERAL.exec(rest), begin = [at, rest], start = at;
    if (!literal || /\s(and|or)[\s(]/i.test(literal[0])) return null;
    const low = quoted() ?? literal[0].trim();
    if (at === start) skip(literal[0].length);
    const sign = take(SIGN)[1], first = SAME_SIGN[sign] || sign, match = column(after => /^\s*($|\)|<|>|=|!=|≤|≥|≠)|^\s+(and|or)[\s(]/i.test(after));
    if (!match) {
      const isValue = NUMBER.test(low) || DATE.test(low);
      if (isValue && rest) throw unknownColumnError(/^"?([^"<>=!≤≥≠]*)/.exec(rest)[1].trim(), names, at);
      [at, rest] = begin;
      return null;
    }
    skip(match.length);
    const one = {column: match.one, sign: MIRRORED[first], values: [low], at: start}, next = take(SIGN);
    if (!next) return one;
    const second = SAME_SIGN[next[1]] || next[1];
    if (first[0] !== second[0] || !"<>".includes(first[0])) fail(`A range needs two signs of the same direction, such as 10 <= ${match.one.name} < 20.`, start);
    return {and: [one, {column: match.one, sign: second, values: [value(match.one, `${match.one.name} ${next[1]}`)], at: start}]};
  };
  const factor = () => {
    expect("factor", at);
    const start = at, known = column(isBeforeOperator);
    if (known) {
      skip(known.length);
      return condition(known.one, start);
    }
    if (take(/^not(?=[\s("]|$)/i)) return {not: factor()};
    if (rest.startsWith("(")) {
      depth++;
      skip(1);
      const inner = either();
      if (!rest.startsWith(")")) fail('A parenthesis is not closed: ")" is missing.');
      depth--;
      skip(1);
      return inner;
    }
    checkQuote();
    const between = mirrored();
    if (between) return between;
    if (rest.startsWith('"')) {
      const text = quoted();
      if (SIGN.test(rest) || WORD_OPERATOR.test(rest)) throw unknownColumnError(text, names, start);
      return {text};
    }
    if (!rest || JOINT.test(rest) || rest.startsWith(")")) fail(`A condition is missing ${rest ? `before "${rest.slice(0, 20)}"` : "at the end"}.`);
    const text = plain(), sign = /^(.*?)\s*(<=|>=|!=|==|<>|[=<>:≤≥≠])/.exec(text) || LIKE_CONDITION.exec(text);
    if (sign) throw unknownColumnError(sign[1], names, start);
    const named = columns.find(one => one.name.toLowerCase() === text.toLowerCase());
    return named ? {text, column: named, sign: "true", values: [], at: start} : {text};
  };
  const joined = (name, part) => {
    const parts = [part()], word = new RegExp(`^${name}(?=[\\s("]|$)`, "i");
    while (take(word)) parts.push(part());
    return parts.length === 1 ? parts[0] : {[name]: parts};
  };
  const both = () => joined("and", factor), either = () => joined("or", both);
  const parsed = either();
  if (rest) fail(`"${rest.slice(0, 20)}" is not expected here; put text that contains operators in quotes.`);
  return parsed;
}

function unknownColumnError(name, columns, at) {
  const named = isDerived => columns.filter(one => !one.isRow && Boolean(one.derived) === isDerived).map(one => one.name).sort();
  const some = [...named(false), ...named(true)], listed = some.slice(0, 8).join(", "), near = mostSimilar(name, some);
  const known = near === null ? `. Columns are ${listed}${some.length > 8 ? ", …" : ""}.` : `; did you mean "${near}"?`;
  return new QueryError(`There is no column "${name}"${known} To search for the text itself, put it in quotes.`, at);
}

/** Return the text that needs the fewest changed letters to become `word`, at most a third of them; null if there is none. */
function mostSimilar(word, texts) {
  const low = word.toLowerCase(), limit = Math.floor(low.length / 3);
  let best = null, least = limit + 1;
  for (const text of texts.slice(0, 20000)) {
    const other = text.toLowerCase();
    if (Math.abs(other.length - low.length) >= least) continue;
    let row = Array.from({length: other.length + 1}, (_, k) => k);
    for (let i = 1; i <= low.length; i++) {
      const next = [i];
      for (let k = 1; k <= other.length; k++) next.push(Math.min(next[k - 1] + 1, row[k] + 1, row[k - 1] + (low[i - 1] !== other[k - 1])));
      row = next;
    }
    if (row[other.length] < least) { least = row[other.length]; best = text; }
  }
  return best;
}

/** Return the columns that a query needs; plain text is searched in the columns of `searched` that can contain it. */
function queryColumns(query, searched) {
  if (query.text !== undefined) return searched.filter(one => one.type !== "numbers" || NUMBER.test(query.text));
  if (query.column) return [query.column];
  return (query.and || query.or || [query.not]).flatMap(one => queryColumns(one, searched));
}

/**
 * Return a function that tests whether row i matches a query.
 *
 * Plain text is searched in `columns`; `rowNumber(i)` is the number of row i in its file.
 */
function matcher(query, columns, rowNumber = i => i + 1) {
  const inner = one => matcher(one, columns, rowNumber);
  if (query.sign && !(query.sign === "true" && !isBoolean(query.column))) return withPosition(query.at, () => condition(query, rowNumber));
  if (query.not) { const test = inner(query.not); return i => !test(i); }
  const tests = query.text !== undefined ? columns.map(one => contains(one, query.text)) : (query.and || query.or).map(inner);
  return query.and ? i => tests.every(test => test(i)) : i => tests.some(test => test(i));
}

function withPosition(at, work) {
  try { return work(); } catch (error) { throw error instanceof QueryError && error.position === null ? new QueryError(error.message, at) : error; }
}

const isBoolean = column => Boolean(column.values?.some(Boolean)) && column.values.every(value => ["true", "false", ""].includes(value));

/** Return a test for text in a column of text or dates, or for a number in a numeric column. */
function contains(column, text) {
  if (column.values || column.isDate) return comparison(column, ":", text).matches;
  return NUMBER.test(text) ? comparison(column, "=", text).matches : () => false;
}

/** Return a function that tests whether row i satisfies a condition. */
function condition({column, sign, values, negated = false}, rowNumber) {
  const one = column.isRow ? rowColumn(rowNumber) : column, {isPresent} = reader(one);
  if (sign === "missing") return negated ? isPresent : i => !isPresent(i);
  if (sign === "true") return comparison(one, "=", "true").matches;
  if (sign === "between") {
    const [low, high] = [comparison(one, ">=", values[0]).matches, comparison(one, "<=", values[1]).matches];
    return i => isPresent(i) && (low(i) && high(i)) !== negated;
  }
  if (sign !== "in") return comparison(one, sign, values[0]).matches;
  const tests = values.map(text => {
    const range = one.values || one.isDate ? null : RANGE.exec(text);
    if (!range) return comparison(one, "=", text).matches;
    const [low, high] = [comparison(one, ">=", range[1]).matches, comparison(one, "<=", range[2]).matches];
    return i => low(i) && high(i);
  });
  return i => isPresent(i) && tests.some(test => test(i)) !== negated;
}

/** Return the row numbers as a column. */
function rowColumn(rowNumber) { return {name: "row", rowNumber}; }

/** Return functions that test whether row i has a value, and that return its number or code. */
function reader({data, missing, divisor, rowNumber}) {
  if (rowNumber) return {isPresent: () => true, number: rowNumber};
  return {isPresent: i => data[i] !== missing && data[i] === data[i], number: i => data[i] / divisor};
}

/** Return {matches}, a function that compares the value of row i with a text. */
function comparison(column, sign, text) {
  const {data, values, name} = column, {isPresent, number} = reader(column);
  if (values) {
    const hit = textTest(column, sign, text), known = values.map(value => hit(value));
    return {matches: i => isPresent(i) && known[data[i]]};
  }
  if (column.isDate) return {matches: dateTest(column, sign, text)};
  const infinite = /^([+-]?)inf(inity)?$/i.exec(text);
  if (sign === ":") throw new QueryError(`"${name}" contains numbers; ":" searches in text. Use = or another comparison.`);
  if (!infinite && !NUMBER.test(text)) throw new QueryError(`"${name}" contains numbers, but "${text}" is not a number.${missingHint(name, text)}`);
  const test = compare(sign, infinite ? (infinite[1] === "-" ? -Infinity : Infinity) : exactNumber(text));
  return {matches: i => isPresent(i) && test(number(i))};
}

/** Return a number; an integer that float64 cannot represent is a BigInt, which JavaScript compares exactly with numbers. */
function exactNumber(text) {
  const number = Number(text);
  return INTEGER.test(text) && !Number.isSafeInteger(number) ? BigInt(text.replace("+", "")) : number;
}

function missingHint(name, text) { return MISSING_WORD.test(text) ? ` Use "${name} is missing" to find missing values.` : ""; }

/** Return a function that tests whether row i of a column of dates satisfies a condition; ":" searches in the ISO text. */
function dateTest(column, sign, text) {
  const {data, name, step} = column, low = text.toLowerCase(), limit = instant(text);
  if (sign === ":") return i => data[i] === data[i] && column.format(i).toLowerCase().includes(low);
  if (limit === null) throw new QueryError(`"${name}" contains dates, but "${text}" is not an ISO date such as 2024-01-31.${missingHint(name, text)}`);
  const isCoarse = !/^\d{4}-\d\d-\d\d/.test(text) || (step % 864e8 !== 0 && !/^\d{4}-\d\d-\d\d[T ]/i.test(text));
  if (isCoarse && "!=".includes(sign)) {
    throw new QueryError(`"${text}" is not a single ${step % 864e8 ? "time" : "day"}. To find all of ${text}, use ${name} : ${text}, or compare with < and >=.`);
  }
  const test = compare(sign, Number(limit / 1000n) + (limit % 1000n ? 0.5 : 0)); // dates have no digits after the microsecond
  return i => data[i] === data[i] && test(data[i]);
}

/** Return a function that compares a number, or two values of the same type; the limit may be a BigInt. */
function compare(sign, limit) {
  return {"<": v => v < limit, ">": v => v > limit, "<=": v => v <= limit, ">=": v => v >= limit, "!=": v => v != limit}[sign] || (v => v == limit);
}

/** Return a function that tests one value of a text column; integers and ISO dates are compared by value. */
function textTest({name, values}, sign, text) {
  const low = text.toLowerCase();
  if (sign === ":") return value => value.toLowerCase().includes(low);
  const filled = values.filter(value => value !== ""), kinds = [[INTEGER, BigInt, "an integer"], [DATE, instant, "an ISO date such as 2024-01-31"]];
  for (const [, read, what] of kinds.filter(([shape]) => filled.length && filled.every(value => shape.test(value)))) {
    const keys = new Map(filled.map(value => [value, readValue(read, value)])), wrong = filled.find(value => keys.get(value) === null), limit = readValue(read, text);
    if (wrong !== undefined) break; // not a valid date, such as 2024-02-31
    if (limit !== null) { const test = compare(sign, limit); return value => value !== "" && test(keys.get(value)); }
    if (sign !== "=" && sign !== "!=") throw new QueryError(`"${name}" contains values such as ${filled[0]}, but "${text}" is not ${what}.${missingHint(name, text)}`);
  }
  if (sign === "=" || sign === "!=") {
    const wanted = values.includes(text) ? value => value === text : value => value.toLowerCase() === low;
    if (!values.some(wanted)) throw unknownValueError(name, filled, text);
    return sign === "=" ? wanted : value => !wanted(value);
  }
  const other = filled.find(value => instant(value) === null);
  throw new QueryError(`"${name}" contains text${other === undefined ? "" : `, for example "${other.slice(0, 40)}"`}, which ${sign} cannot compare. < and > compare numbers and ISO dates such as 2024-01-31; for text use = (equals) or : (contains).`);
}

function unknownValueError(name, values, text) {
  const near = mostSimilar(text, values) ?? values.find(value => value.toLowerCase().includes(text.toLowerCase())) ?? null;
  const known = near !== null ? `; did you mean "${near.slice(0, 60)}"?` : values.length <= 6 ? `. Its values are ${values.join(", ").slice(0, 200)}.` : ".";
  return new QueryError(`"${name}" has no value "${text}"${known}${missingHint(name, text)} To search in the text, use ${name} : ${text}.`);
}

/** Convert text with `read`, or return null if that fails. */
function readValue(read, text) {
  try { return read(text.replace(/^\+(?=\d)/, "")); } catch { return null; }
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
