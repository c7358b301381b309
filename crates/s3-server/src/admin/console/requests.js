// The view of requests: their numbers and latencies by kind, and the recent ones that failed, were
// refused or were slow.

import { add_view, get } from "/console.js";
import { count, h, percentile, sum, table, time } from "/console/elements.js";
import { recent_cards } from "/console/recent.js";
import { own_headers } from "/serve/s3.js";

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

let is_refused = false;

// The recent requests need a login, which loads the page again. A refused request is not repeated.
async function refresh_recent() {
  if (is_refused) return;
  const response = await fetch("/requests.json", { headers: own_headers() });
  if (response.status === 401 || response.status === 403) {
    is_refused = true;
    const text = (await response.text()).trim();
    recent.replaceChildren(h("div", { className: "card" },
      h("p", {}, "Recent failed, slow and refused requests: " + text),
      h("a", { href: "/login#requests" }, response.status === 401 ? "Log in" : "Log in with another key")));
    return;
  }
  if (!response.ok) throw new Error((await response.text()).trim() || response.statusText);
  recent.replaceChildren(...recent_cards(await response.json()));
}

add_view("requests", "Requests",
  { element: h("div", { className: "stack" }, kinds, recent), refresh, period_ms: 2000 });
