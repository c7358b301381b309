// The view of keys: their users, rights and states. Secret keys are never shown.

import { add_view, get } from "/console.js";
import { clock, h, table } from "/console/elements.js";

const COLUMNS = [{ name: "access key", className: "break" }, { name: "user" }, { name: "rights", className: "break" },
  { name: "expires", className: "fixed" }];

const content = h("div", { className: "card" });
const element = h("div", { className: "stack" }, content, h("p", { className: "soft" },
  "haul keys changes the key file; the server applies changes within a second."));

function rights_of(key) {
  const grants = key.grants.map((grant) => `${grant.rights} = ${grant.scope}`);
  if (key.creates_buckets) grants.push("create-buckets");
  if (key.reads_metrics) grants.push("metrics");
  return h("ul", { className: "grants" }, grants.length ? grants.map((text) => h("li", {}, text))
    : h("li", { className: "soft" }, "none"));
}

async function refresh() {
  try {
    const keys = await (await get("/keys.json", { headers: { "X-Haul-Console": "1" } })).json();
    const rows = keys.map((key) => [key.access_key ?? "without a signature", key.user,
      key.is_administrator ? "all" : rights_of(key),
      key.expires_unix_s === null ? "never" : clock(key.expires_unix_s * 1000)]);
    content.replaceChildren(table("Keys that are not disabled", COLUMNS, rows,
      { empty: "The server has no keys: every client of this machine has all rights." }));
  } catch (error) {
    content.replaceChildren(h("p", { className: "bad", role: "alert" }, error.message));
  }
}

add_view("keys", "Keys", { element, refresh });
