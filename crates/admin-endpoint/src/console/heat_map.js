// A heat map of latencies: time from left to right, latency from bottom to top, and the number of
// requests as the color.

import { Figure, merged } from "/console/chart.js";
import { count, h, percentile, sum, time } from "/console/elements.js";

const CELLS = 120;
const SHARES = [["p50", .5], ["p90", .9], ["p99", .99]];

export class HeatMap extends Figure {
  // `which` is the index of the histogram.
  constructor(title, which) {
    super(title, []);
    this.which = which;
    this.canvas = h("canvas", { "aria-hidden": true });
    this.marks = [h("i"), h("i"), h("i")];
    this.marks.forEach((mark, at) => { mark.style.top = 50 * at + "%"; });
    this.plot.prepend(this.canvas, ...this.marks);
    this.values = ["number", ...SHARES.map(([name]) => name)].map((name) => {
      const value = h("b");
      this.legend.append(h("span", {}, name, value));
      return value;
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    new ResizeObserver(() => this.rows && this.draw()).observe(this.plot);
  }

  describe(row) {
    const buckets = row.latencies[this.which];
    return [["number", count(sum(buckets))],
      ...SHARES.map(([name, share]) => [name, time(percentile(buckets, share))])];
  }

  draw() {
    if (!this.rows) return;
    const size = Math.max(Math.ceil(this.rows.length / CELLS), 1);
    const cells = [];
    for (let at = 0; at < this.rows.length; at += size) {
      cells.push(merged(this.rows.slice(at, at + size)));
    }
    const used = cells.flatMap((row) => row.latencies[this.which].flatMap((n, at) => n ? [at] : []));
    const low = Math.min(4, ...used), high = Math.max(14, ...used);
    const highest = Math.max(1, ...cells.flatMap((row) => row.latencies[this.which]));
    this.marks.forEach((mark, at) => {
      mark.textContent = time(2 ** (high - Math.round((high - low + 1) * at / 2)));
    });
    this.paint(cells, { low, high, highest });
  }

  paint(cells, { low, high, highest }) {
    const box = this.plot.getBoundingClientRect();
    const scale = devicePixelRatio || 1;
    this.canvas.width = Math.max(Math.round(box.width * scale), 1);
    this.canvas.height = Math.max(Math.round(box.height * scale), 1);
    const context = this.canvas.getContext("2d");
    const style = getComputedStyle(document.documentElement);
    const height = this.canvas.height / (high - low + 1);
    context.fillStyle = style.getPropertyValue("--grid");
    context.fillRect(0, 0, this.canvas.width, this.canvas.height);
    context.fillStyle = style.getPropertyValue("--heat");
    for (const row of cells) {
      const end = Math.round(this.x(row) * this.canvas.width);
      const start = Math.floor(end - row.duration / this.frame.length * this.canvas.width);
      row.latencies[this.which].forEach((n, at) => {
        if (!n) return;
        // Logarithmic, because a single slow request must be visible beside many fast ones.
        context.globalAlpha = .2 + .8 * Math.log(n + 1) / Math.log(highest + 1);
        context.fillRect(start, Math.floor((high - at) * height), Math.max(end - start, 1),
          Math.ceil(height));
      });
    }
  }
}
