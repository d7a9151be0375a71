// Helpers for elements of the page and for files.

/** Create an element with properties, and with children that are elements or strings (which are never parsed as HTML). */
function h(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(properties)) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key === "class") node.className = value;
    else if (key in node && key !== "list") node[key] = value;
    else node.setAttribute(key, value);
  }
  node.append(...children.filter(child => child !== null && child !== undefined));
  return node;
}

/** Return a list of names and values, one pair per line. */
function pairs(rows) {
  return h("dl", {}, ...rows.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}

function download(name, type, content) {
  const link = h("a", {href: URL.createObjectURL(new Blob([content], {type})), download: name});
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

/** Return a name for a file from the title of the explorer, without ending: "plant.csv" gives "plant". */
function fileStem(title) {
  return title.replace(/\.(csv|tsv|txt|parquet|npz|npy|json)$/i, "").toLowerCase().replace(/[^\p{L}\p{N}_]+/gu, "-").replace(/^-|-$/g, "").slice(0, 60) || "explorer";
}

/** Return how a selection made with this event changes the old one: "set", "add" (Ctrl) or "remove" (Alt). */
const mode = event => event.altKey ? "remove" : event.ctrlKey || event.metaKey ? "add" : "set";
