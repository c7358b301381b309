// The view of all metrics.

import { h, table } from "/console/elements.js";

// Parses the text format of Prometheus into samples `{ name, labels, value, help }`; of a histogram
// only the sum and the count.
export function parse(text) {
  const helps = {};
  const samples = [];
  for (const line of text.split("\n")) {
    const help = /^# HELP (\S+) (.*)$/.exec(line);
    if (help) helps[help[1]] = help[2];
    const sample = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/.exec(line);
    if (!sample || sample[1].endsWith("_bucket")) continue;
    const name = sample[1];
    const family = name in helps ? name : name.replace(/_(sum|count)$/, "");
    samples.push({ name, labels: sample[2] ?? "", value: sample[3], help: helps[family] ?? "" });
  }
  return samples;
}

export function metrics_view(fetch_text) {
  let samples = [];
  const rows = h("div");
  const filter = h("input", { type: "search", placeholder: "part of a name", oninput: () => draw() });
  const draw = () => {
    const wanted = filter.value.trim().toLowerCase();
    const found = samples.filter((one) =>
      [one.name, one.labels, one.help].some((text) => text.toLowerCase().includes(wanted)));
    const columns = [{ name: "metric", className: "break" }, { name: "labels" },
      { name: "value", number: true }, { name: "meaning", className: "break" }];
    rows.replaceChildren(table(`${found.length} metrics`, columns,
      found.map((one) => [one.name, one.labels, one.value, h("span", { className: "soft" }, one.help)])));
  };
  const element = h("div", {},
    h("div", { className: "bar" }, h("label", {}, "Filter ", filter)),
    h("div", { className: "card" }, rows));
  const refresh = async () => {
    samples = parse(await fetch_text("/metrics"));
    draw();
  };
  return { element, refresh, period_ms: 5000 };
}
