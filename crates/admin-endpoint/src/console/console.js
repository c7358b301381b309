// The frame of the console: the header, the views and the navigation between them, and the overview
// with the charts of the history. Scripts of a server add views with `add_view`.

import { Chart, merged } from "/console/chart.js";
import { bytes, count, h, percentile, span, sum, time } from "/console/elements.js";
import { HeatMap } from "/console/heat_map.js";
import { metrics_view } from "/console/metrics.js";

const SPANS = {
  live: { name: "2 min", length: 120e3 },
  hour: { name: "1 h", length: 3600e3, fresh: 10e3 },
  day: { name: "24 h", length: 86400e3, fresh: 60e3 },
};
const LIVE_MS = 2000;
const BUCKETS = 28;
const TILE_MS = 60e3;

const id = (name) => document.getElementById(name);
const views = [];

// Adds a view. `refresh` is called when the view is shown, and then each `period_ms`, if any. A key
// that may not read the values of the server sees only views that are for all keys.
export function add_view(name, title, view) {
  const { element, refresh = () => {}, period_ms = null, is_for_all_keys = false } = view;
  const section = h("section", { id: "view-" + name, hidden: true, "aria-labelledby": "tab-" + name },
    element);
  const link = h("a", { id: "tab-" + name, href: "#" + name }, title);
  views.push({ name, title, section, link, refresh, period_ms, is_for_all_keys });
}

// Fetches a path of this server. A failure is an error with the text of the server.
export async function get(path, options = {}) {
  const response = await fetch(path, { signal: AbortSignal.timeout(10000), ...options });
  if (response.status === 401) show_login();
  if (!response.ok) throw new Error((await response.text()).trim() || response.statusText);
  return response;
}

// Shows the link to the login page, for a request that needs a login. A form that the user is
// filling in stays.
export function show_login() {
  id("account").replaceChildren(h("a", { href: "/login" + location.hash, className: "main" }, "Log in"));
}

const text_of = async (path) => (await get(path)).text();

// --- The history -----------------------------------------------------------------------------

function buckets_of(sparse) {
  const all = new Array(BUCKETS).fill(0);
  sparse.slice(1).forEach((n, at) => { all[sparse[0] + at] = n; });
  return all;
}

const row_of = ([end, duration, values, latencies]) =>
  ({ end, duration, counters: values, gauges: values, latencies: latencies.map(buckets_of) });

// Returns the row between two answers with current values.
function row_between(from, to) {
  const rises = (a, b) => b.map((value, at) => Math.max(value - a[at], 0));
  return {
    end: to.uptime_ms, duration: Math.max(to.uptime_ms - from.uptime_ms, 1),
    counters: rises(from.totals, to.totals), gauges: to.totals,
    latencies: to.latency_totals.map((now, at) =>
      rises(buckets_of(from.latency_totals[at]), buckets_of(now))),
  };
}

// The overview. It shows the server's history, and the rows between its own requests as live ones.
class Overview {
  constructor() {
    this.live = [];
    this.kept = { hour: { rows: [], at: -Infinity }, day: { rows: [], at: -Infinity } };
    this.span = "hour";
    this.figures = null;
    this.tiles = h("div", { className: "tiles" });
    this.grid = h("div", { className: "figures" });
    const choice = h("fieldset", { className: "choice" }, h("legend", {}, "Time span"),
      Object.entries(SPANS).map(([name, { name: text }]) => h("label", {},
        h("input", { type: "radio", name: "span", value: name, checked: name === this.span,
          onchange: () => { this.span = name; this.refresh(); } }), h("span", {}, text))));
    this.element = h("div", {}, h("div", { className: "bar" }, choice), this.tiles, this.grid);
  }

  async refresh() {
    const now = await (await get("/history.json?span=now")).json();
    const before = this.now;
    if (before && before.uptime_ms > now.uptime_ms) {
      // The server was restarted.
      this.live = [];
      this.kept.hour.at = this.kept.day.at = -Infinity;
    } else if (before) {
      this.live.push(row_between(before, now));
      this.live = this.live.filter((row) => row.end > now.uptime_ms - SPANS.live.length);
    }
    this.now = now;
    for (const name of new Set(["hour", this.span])) {
      const kept = this.kept[name];
      if (!kept || now.uptime_ms - kept.at < SPANS[name].fresh) continue;
      kept.rows = (await (await get("/history.json?span=" + name)).json()).rows.map(row_of);
      kept.at = now.uptime_ms;
    }
    this.draw();
  }

  draw() {
    this.figures ??= this.make_figures();
    const { uptime_ms, unix_ms } = this.now;
    // The time before the start has no rows.
    const length = Math.min(SPANS[this.span].length, Math.max(uptime_ms, SPANS.live.length));
    const frame = { now: uptime_ms, unix: unix_ms, length };
    const rows = this.span === "live" ? this.live_rows() : this.kept[this.span].rows;
    for (const figure of this.figures) figure.show(rows, frame);
    this.draw_tiles();
  }

  // Returns the live rows, after those of the history from before the page was opened.
  live_rows() {
    const first = this.live[0];
    const start = first ? first.end - first.duration : this.now.uptime_ms;
    return [...this.kept.hour.rows.filter((row) => row.end <= start), ...this.live];
  }

  make_figures() {
    const charts = new Map();
    this.now.series.forEach((one, at) => {
      charts.set(one.chart, [...(charts.get(one.chart) ?? []), { ...one, at }]);
    });
    this.charts = [...charts];
    const figures = this.charts.map(([title, series]) => new Chart(title, series));
    this.now.latencies.forEach((title, at) => {
      figures.push(new HeatMap(title, at));
      figures[figures.length - 1].element.classList.add("wide");
    });
    this.grid.replaceChildren(...figures.map((figure) => figure.element));
    return figures;
  }

  // The tiles show the last minute, from the history until there is a minute of live rows.
  draw_tiles() {
    const since = this.now.uptime_ms - TILE_MS;
    const live = this.live.filter((row) => row.end > since);
    const hour = this.kept.hour.rows.filter((row) => row.end > since);
    const rows = sum(live.map((row) => row.duration)) > TILE_MS / 2 || !hour.length ? live : hour;
    const minute = rows.length ? merged(rows) : null;
    const tile = (title, value, more) => h("div", { className: "card tile" },
      h("h3", {}, title), h("b", {}, value), h("small", {}, more));
    const charts = this.charts.map(([title, series]) => {
      const format = series[0].unit === "bytes" ? bytes : count;
      const total = sum(series.map((one) => this.now.totals[one.at]));
      if (series[0].kind === "gauge") {
        const parts = series.filter((one) => this.now.totals[one.at])
          .map((one) => `${format(this.now.totals[one.at])} ${one.name}`);
        return tile(title, format(total), series.length > 1 ? parts.join(", ") : "now");
      }
      const rise = minute ? sum(series.map((one) => minute.counters[one.at])) : 0;
      const rate = minute ? 1000 * rise / minute.duration : 0;
      return tile(title, format(rate) + " /s", format(total) + " since start");
    });
    const latencies = this.now.latencies.map((title, at) => {
      const buckets = minute ? minute.latencies[at] : [];
      return tile(title, time(percentile(buckets, .5)), `p99 ${time(percentile(buckets, .99))}`);
    });
    this.tiles.replaceChildren(...charts, ...latencies);
  }
}

// --- The frame -------------------------------------------------------------------------------

function head(now) {
  id("uptime").textContent = "up " + span(now.uptime_ms / 1000);
}

function health(text, is_good) {
  const element = id("health");
  // An unchanged text is not announced again.
  if (element.textContent !== text) element.textContent = text;
  element.className = is_good ? "good" : "bad";
}

async function check_health() {
  try {
    const response = await fetch("/ready", { signal: AbortSignal.timeout(5000) });
    const [ready, alive] = [(await response.text()).trim(), (await text_of("/health")).trim()];
    if (reads_values) head(await (await get("/history.json?span=now")).json());
    const text = response.ok ? alive : ready;
    health(text === "ok" ? "healthy" : text, text === "ok");
  } catch (error) {
    health(error instanceof TypeError ? "not reachable" : error.message, false);
  }
}

let current = null;
let timer = null;

async function refresh(view) {
  clearTimeout(timer);
  try {
    if (!document.hidden) await view.refresh();
  } catch (error) {
    health(error instanceof TypeError ? "not reachable" : error.message, false);
  }
  clearTimeout(timer);
  if (view === current && view.period_ms) timer = setTimeout(() => refresh(view), view.period_ms);
}

function route() {
  const name = location.hash.slice(1).split("/")[0];
  // The link that skips the navigation is no view.
  const view = views.find((one) => one.name === name) ?? current ?? views[0];
  for (const one of views) {
    one.section.hidden = one !== view;
    if (one === view) one.link.setAttribute("aria-current", "page");
    else one.link.removeAttribute("aria-current");
  }
  current = view;
  refresh(view);
}

let reads_values = true;

async function start() {
  add_view("metrics", "Metrics", metrics_view(text_of));
  const response = await fetch("/history.json?span=now").catch(() => null);
  reads_values = response?.status !== 403;
  if (!reads_values) views.splice(0, Infinity, ...views.filter((view) => view.is_for_all_keys));
  id("views").firstChild.append(...views.map((view) => h("li", {}, view.link)));
  id("main").append(...views.map((view) => view.section));
  addEventListener("hashchange", route);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) refresh(current); });
  route();
  check_health();
  setInterval(() => { if (!document.hidden) check_health(); }, 5000);
}

const overview = new Overview();
add_view("overview", "Overview",
  { element: overview.element, refresh: () => overview.refresh(), period_ms: LIVE_MS });
// Module scripts, which add their views, run before this event.
addEventListener("DOMContentLoaded", start);
