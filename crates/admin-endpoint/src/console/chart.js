// Charts of series over time, and what they share with heat maps: a cursor that the pointer and the
// arrow keys move, and a table of the values.

import { bytes, clock, count, h, span, sum, table } from "/console/elements.js";

const TABLE_ROWS_MAX = 24;

function svg(name, attributes) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const key in attributes) element.setAttribute(key, attributes[key]);
  return element;
}

// Returns the colors of series: those of errors and dead bytes do not depend on their position.
function colours(names) {
  const fixed = names.map((name) => /5xx|failed/.test(name) ? "--c4" : /4xx|dead/.test(name) ? "--c3" : null);
  const others = [0, 1, 2, 3, 4, 5, 6, 7].map((at) => "--c" + at).filter((name) => !fixed.includes(name));
  let next = 0;
  return fixed.map((name) => `var(${name ?? others[next++ % others.length]})`);
}

// A figure over time. A subclass draws it, and describes its row `at`.
export class Figure {
  constructor(title, names) {
    this.title = title;
    this.cursor = h("div", { className: "cursor", hidden: true });
    // A slider is what screen readers and keyboards know for "choose one of many moments".
    this.plot = h("div", {
      className: "plot", tabIndex: 0, role: "slider", "aria-label": title,
      onpointermove: (event) => {
        const box = this.plot.getBoundingClientRect();
        this.point(this.nearest((event.clientX - box.left) / box.width));
      },
      onpointerleave: () => this.point(null),
      onblur: () => this.point(null),
      onkeydown: (event) => this.key(event),
    }, this.cursor);
    this.moment = h("span");
    this.legend = h("div", { className: "legend" });
    this.colours = colours(names);
    this.values = names.map((name, at) => {
      const value = h("b");
      const label = h("span", { className: "swatch" }, name, value);
      label.style.setProperty("--colour", this.colours[at]);
      this.legend.append(label);
      return value;
    });
    this.table = h("details", { ontoggle: () => this.fill() }, h("summary", {}, "Values"));
    this.element = h("section", { className: "card", "aria-label": title },
      h("h3", {}, title), this.plot,
      h("div", { className: "axis" }, this.moment, h("span", {}, "now")), this.legend, this.table);
    this.at = null;
  }

  // Shows rows of the last `length_ms` before `now` (both in ms of uptime).
  show(rows, frame) {
    this.frame = frame;
    this.rows = rows.filter((row) => row.end > frame.now - frame.length);
    this.x = (row) => 1 - (frame.now - row.end) / frame.length;
    this.at = this.at === null ? null : Math.min(this.at, this.rows.length - 1);
    this.draw();
    this.label();
    this.fill();
  }

  nearest(share) {
    let best = null;
    this.rows?.forEach((row, at) => {
      const distance = Math.abs(this.x(row) - share);
      if (best === null || distance < best.distance) best = { at, distance };
    });
    return best ? best.at : null;
  }

  key(event) {
    const last = (this.rows?.length ?? 0) - 1;
    if (last < 0) return;
    const at = this.at ?? last;
    const steps = { ArrowLeft: at - 1, ArrowRight: at + 1, PageUp: at + 10, PageDown: at - 10,
      Home: 0, End: last, ArrowDown: at - 1, ArrowUp: at + 1 };
    if (event.key === "Escape") this.point(null);
    if (!(event.key in steps)) return;
    event.preventDefault();
    this.point(Math.min(Math.max(steps[event.key], 0), last));
  }

  point(at) {
    this.at = at;
    if (this.rows) this.label();
  }

  label() {
    const last = this.rows.length - 1;
    const row = this.rows[this.at ?? last];
    this.cursor.hidden = this.at === null || !row;
    if (row) this.cursor.style.left = 100 * this.x(row) + "%";
    this.moment.textContent = this.at === null ? span(this.frame.length / 1000) + " ago" : this.moment_of(row);
    const described = row ? this.describe(row) : [];
    this.values.forEach((value, at) => { value.textContent = described[at]?.[1] ?? "–"; });
    this.plot.setAttribute("aria-valuemin", 0);
    this.plot.setAttribute("aria-valuemax", Math.max(last, 0));
    this.plot.setAttribute("aria-valuenow", this.at ?? Math.max(last, 0));
    const text = described.map(([name, value]) => `${name} ${value}`).join(", ");
    this.plot.setAttribute("aria-valuetext", row ? `${this.moment_of(row)}: ${text}` : "no values");
  }

  moment_of(row) { return clock(this.frame.unix - (this.frame.now - row.end)); }

  // Fills the table, in which each row has the mean over adjacent rows, if it is open.
  fill() {
    if (!this.table.open || !this.rows) return;
    const size = Math.max(Math.ceil(this.rows.length / TABLE_ROWS_MAX), 1);
    const groups = [];
    for (let end = this.rows.length; end > 0; end -= size) {
      groups.push(merged(this.rows.slice(Math.max(end - size, 0), end)));
    }
    const rows = groups.map((row) => [
      this.moment_of(row), ...this.describe(row).map(([, value]) => value),
    ]);
    const names = groups.length ? this.describe(groups[0]).map(([name]) => name) : [];
    const columns = [{ name: "until" }, ...names.map((name) => ({ name, number: true }))];
    this.table.replaceChildren(this.table.firstChild, table(this.title, columns, rows));
  }
}

// Returns a row with the sums of the counters and the buckets of adjacent rows, and the last gauges.
export function merged(rows) {
  const last = rows[rows.length - 1];
  return {
    end: last.end,
    duration: sum(rows.map((row) => row.duration)),
    counters: last.counters.map((_, at) => sum(rows.map((row) => row.counters[at]))),
    gauges: last.gauges,
    latencies: last.latencies.map((buckets, which) =>
      buckets.map((_, at) => sum(rows.map((row) => row.latencies[which][at])))),
  };
}

// Rounds up to a round number.
function nice(value, base) {
  let unit = 1;
  while (value / unit >= base) unit *= base;
  const steps = base === 1024 ? [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]
    : [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000];
  return unit * (steps.find((step) => step * unit >= value) ?? base);
}

// A chart of stacked series. A series is `{ name, at, kind, unit }`, with its index `at`.
export class Chart extends Figure {
  constructor(title, series) {
    super(title + (series[0].kind === "counter" ? " per second" : ""), series.map((one) => one.name));
    this.series = series;
    this.format = series[0].unit === "bytes" ? bytes : count;
    this.svg = svg("svg", { viewBox: "0 0 1000 100", preserveAspectRatio: "none", "aria-hidden": true });
    for (const y of [0, 50, 100]) {
      this.svg.append(svg("line", { x1: 0, x2: 1000, y1: y, y2: y, stroke: "var(--grid)",
        "vector-effect": "non-scaling-stroke" }));
    }
    this.areas = series.map((_, at) => this.svg.appendChild(svg("path", {
      fill: this.colours[at], "fill-opacity": .7, stroke: this.colours[at],
      "vector-effect": "non-scaling-stroke",
    })));
    this.marks = [0, 50].map((y) => {
      const mark = h("i");
      mark.style.top = y + "%";
      return mark;
    });
    this.plot.prepend(this.svg, ...this.marks);
  }

  value(row, one) {
    return one.kind === "counter" ? 1000 * row.counters[one.at] / row.duration : row.gauges[one.at];
  }

  describe(row) {
    return this.series.map((one) => {
      const value = this.value(row, one);
      return [one.name, this.format(value < 100 || this.format === bytes ? value : Math.round(value))];
    });
  }

  draw() {
    const stacks = this.rows.map((row) => {
      let height = 0;
      return this.series.map((one) => height += this.value(row, one));
    });
    const highest = Math.max(2, ...stacks.map((stack) => stack[stack.length - 1]));
    const top = nice(highest, this.format === bytes ? 1024 : 1000);
    this.marks.forEach((mark, at) => { mark.textContent = this.format(top * (at ? .5 : 1)); });
    const point = (at, height) => {
      const x = 1000 * this.x(this.rows[at]);
      return x.toFixed(1) + " " + (100 - 100 * height / top).toFixed(2);
    };
    this.areas.forEach((area, which) => {
      const upper = stacks.map((stack, at) => point(at, stack[which]));
      const lower = stacks.map((stack, at) => point(at, which ? stack[which - 1] : 0)).reverse();
      const is_zero = this.rows.every((row) => this.value(row, this.series[which]) === 0);
      area.setAttribute("d", upper.length > 1 && !is_zero ? "M" + [...upper, ...lower].join("L") + "Z" : "");
    });
  }
}
