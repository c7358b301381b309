// Tables of the recent requests that failed, were slow or were refused.

import { clock, h, table, time } from "/console/elements.js";

const COLUMNS = [
  { name: "time", className: "fixed" }, { name: "request", className: "break" },
  { name: "status", className: "fixed" }, { name: "took", number: true },
];

// The members that some servers add, with the titles of their columns.
const DETAILS = {
  client: "client", upstream: "upstream", access_key: "access key", id: "request ID",
};

function readable(path) {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

function recent_table(caption, requests) {
  const details = Object.keys(DETAILS).filter((name) => requests.some((one) => name in one));
  const columns = [...COLUMNS, ...details.map((name) => ({ name: DETAILS[name] }))];
  const rows = requests.map((one) => [
    clock(one.unix_ms), `${one.kind} ${readable(one.path)}`, `${one.status} ${one.code ?? ""}`,
    time(one.duration_ms * 1e3), ...details.map((name) => one[name]),
  ]);
  return table(caption, columns, rows);
}

// Returns a card for each list of the server's answer.
export function recent_cards(found) {
  const slow = found.slow_request_ms === null ? "Slow requests (not recorded: --slow-request 0)"
    : `Slow requests: the server needed at least ${time(found.slow_request_ms * 1e3)}`;
  return [
    recent_table("Failed requests (5xx)", found.failed), recent_table(slow, found.slow),
    recent_table("Refused requests (4xx)", found.refused),
  ].map((one) => h("div", { className: "card" }, one));
}
