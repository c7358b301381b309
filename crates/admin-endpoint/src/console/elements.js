// Makes elements, and writes numbers, sizes and times.

// Returns an element with these properties, attributes (names with a hyphen, and `role`), listeners
// (functions named `on…`) and children. Text is never parsed as HTML.
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (name.includes("-") || name === "role") element.setAttribute(name, value);
    else element[name] = value;
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

// Returns a table. A column is `{ name, number }`; a row has the text or the element of each cell.
// The first cell of a row is its header.
export function table(caption, columns, rows, { empty = "none" } = {}) {
  const kind = (at) => columns[at].className ?? (columns[at].number ? "number" : "");
  const cell = (content, at) => h(at ? "td" : "th", {
    className: kind(at), scope: at ? undefined : "row",
  }, content ?? "–");
  const none = () => h("tr", {}, h("td", { className: "soft", colSpan: columns.length }, empty));
  return h("div", { className: "scroll", tabIndex: 0, role: "region", "aria-label": caption },
    h("table", {}, h("caption", {}, caption),
      h("thead", {}, h("tr", {}, columns.map((column, at) =>
        h("th", { scope: "col", className: kind(at) }, column.name)))),
      h("tbody", {}, rows.length ? rows.map((row) => h("tr", {}, row.map(cell))) : none())));
}

export const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);

const digits = (value) => value >= 100 ? 0 : value >= 10 ? 1 : 2;

export function count(value) {
  if (value < 10000) return Number.isInteger(value) ? String(value) : value.toFixed(digits(value));
  const units = ["k", "M", "G", "T"];
  let unit = -1;
  while (value >= 1000 && unit < units.length - 1) { value /= 1000; unit++; }
  return value.toFixed(digits(value)) + " " + units[unit];
}

export function bytes(value) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) { value /= 1024; unit++; }
  return (unit ? value.toFixed(digits(value)) : Math.round(value)) + " " + units[unit];
}

// Writes a duration in microseconds.
export function time(us) {
  if (us === null) return "–";
  if (us < 1000) return Math.round(us) + " µs";
  if (us < 1e6) return (us / 1e3).toFixed(digits(us / 1e3)) + " ms";
  return (us / 1e6).toFixed(digits(us / 1e6)) + " s";
}

// Writes a duration in seconds, in its two largest units.
export function span(seconds) {
  const units = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const first = Math.max(units.findIndex(([length]) => seconds >= length), 0);
  const at = seconds < 1 ? units.length - 1 : first;
  const whole = (value, unit) => Math.floor(value / unit[0]) + " " + unit[1];
  const rest = seconds % units[at][0];
  const next = units[at + 1];
  return whole(seconds, units[at]) + (next && rest >= next[0] ? " " + whole(rest, next) : "");
}

// Writes a time of the day, with the date if it is not of today.
export function clock(unix_ms) {
  const date = new Date(unix_ms);
  const is_today = date.toDateString() === new Date().toDateString();
  return is_today ? date.toLocaleTimeString() : date.toLocaleString();
}

// Returns a percentile in microseconds of a histogram whose bucket i counts durations below 2^i µs;
// null if it is empty.
export function percentile(buckets, share) {
  const wanted = sum(buckets) * share;
  if (!wanted) return null;
  let below = 0;
  for (let at = 0; at < buckets.length; at++) {
    if (below + buckets[at] >= wanted) {
      const low = at ? 2 ** (at - 1) : 0;
      return low + (2 ** at - low) * (wanted - below) / buckets[at];
    }
    below += buckets[at];
  }
  return 2 ** buckets.length;
}
