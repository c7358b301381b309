// The view of requests: their numbers and latencies by kind, and the recent ones that failed, were
// refused or were slow.

import { add_view, get } from "/console.js";
import { clock, count, h, percentile, sum, table, time } from "/console/elements.js";

const WINDOW_S = 60;

const COLUMNS = [
  { name: "kind" }, { name: "per second", number: true }, { name: "p50", number: true },
  { name: "p99", number: true }, { name: "refused (4xx)", number: true },
  { name: "failed (5xx)", number: true }, { name: "since start", number: true },
];

const samples = [];
const kinds = h("div", { className: "card" });
const recent = h("div", { className: "stack" });

const rises = (from, to) => to.map((value, at) => Math.max(value - from[at], 0));

function draw() {
  const [from, to] = [samples[0], samples[samples.length - 1]];
  const seconds = Math.max(to.uptime_s - from.uptime_s, 1);
  const rows = to.requests.map((now) => {
    const before = from.requests.find((one) => one.kind === now.kind);
    const status = rises(before.by_status, now.by_status);
    const latency = rises(before.latency_us, now.latency_us);
    return [now.kind, count(sum(status) / seconds), time(percentile(latency, .5)),
      time(percentile(latency, .99)), count(status[3]),
      h("span", { className: status[4] ? "bad" : "" }, count(status[4])), count(sum(now.by_status))];
  });
  const caption = samples.length > 1
    ? `Requests by kind, last ${Math.round(seconds)} s` : "Requests by kind";
  kinds.replaceChildren(table(caption, COLUMNS, rows));
}

async function refresh() {
  const sample = await (await get("/stats.json")).json();
  const last = samples[samples.length - 1];
  if (last && sample.uptime_s < last.uptime_s) samples.length = 0;
  samples.push(sample);
  while (samples[0].uptime_s < sample.uptime_s - WINDOW_S) samples.shift();
  draw();
  await refresh_recent();
}

// --- Recent errors and slow requests ---------------------------------------------------------

const RECENT_COLUMNS = [
  { name: "time", className: "fixed" }, { name: "request", className: "break" },
  { name: "status", className: "fixed" }, { name: "took", number: true },
  { name: "access key" }, { name: "request ID" },
];

function readable(path) {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

function recent_table(caption, requests) {
  const rows = requests.map((one) => [
    clock(one.unix_ms), `${one.kind} ${readable(one.path)}`, `${one.status} ${one.code}`,
    time(one.duration_ms * 1e3), one.access_key, one.id,
  ]);
  return table(caption, RECENT_COLUMNS, rows);
}

let is_refused = false;

// The recent requests need a login. The browser asks for it once: the view repeats a refused request
// only after the user has pressed a button.
async function refresh_recent() {
  if (is_refused) return;
  const response = await fetch("/requests.json", { headers: { "X-Haul-Console": "1" } });
  if (response.status === 401 || response.status === 403) {
    is_refused = true;
    const text = (await response.text()).trim();
    const again = () => { is_refused = false; refresh_recent(); };
    recent.replaceChildren(h("div", { className: "card" },
      h("p", {}, "Recent failed, slow and refused requests: " + text),
      h("button", { onclick: again }, "Log in")));
    return;
  }
  if (!response.ok) throw new Error((await response.text()).trim() || response.statusText);
  const found = await response.json();
  const slow = found.slow_request_ms === null ? "Slow requests (not recorded: --slow-request 0)"
    : `Slow requests: the server needed at least ${time(found.slow_request_ms * 1e3)}`;
  recent.replaceChildren(...[
    recent_table("Failed requests (5xx)", found.failed), recent_table(slow, found.slow),
    recent_table("Refused requests (4xx)", found.refused),
  ].map((one) => h("div", { className: "card" }, one)));
}

add_view("requests", "Requests",
  { element: h("div", { className: "stack" }, kinds, recent), refresh, period_ms: 2000 });
