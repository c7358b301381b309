// The view of the recent requests of a server whose clients need no keys.

import { add_view, get } from "/console.js";
import { h } from "/console/elements.js";
import { recent_cards } from "/console/recent.js";

const element = h("div", { className: "stack" });

async function refresh() {
  element.replaceChildren(...recent_cards(await (await get("/requests.json")).json()));
}

add_view("requests", "Requests", { element, refresh, period_ms: 2000 });
