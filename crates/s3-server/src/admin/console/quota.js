// The quota of a bucket: what counts against it, and a form that sets it, as only the administrator
// may.

import { bytes, count, h } from "/console/elements.js";
import { outcomes } from "/serve/controls.js";
import { child, path_of, s3, xml_of } from "/serve/s3.js";

// Returns the use of a quota as the table of buckets shows it; `size` is an entry of /buckets.json.
export function quota_use(size) {
  const { quota_bytes, quota_objects, used_bytes, used_objects } = size ?? {};
  const limits = [used_of(used_bytes, quota_bytes, bytes), used_of(used_objects, quota_objects, count)];
  return limits.filter((limit) => limit).join(", ") || undefined;
}

const used_of = (used, limit, text) =>
  typeof limit === "number" ? `${text(used)} of ${text(limit)}` : "";

const UNITS = ["", "K", "M", "G", "T", "P"];

// The text of a size that `parse_bytes` reads back exactly.
function exact(size) {
  let unit = 0;
  while (size && size % 1024 === 0 && unit + 1 < UNITS.length) [size, unit] = [size / 1024, unit + 1];
  return `${size} ${UNITS[unit]}${unit ? "iB" : "B"}`;
}

function parse_bytes(text) {
  const [, digits, unit, binary] = /^\s*(\d+)\s*(?:([KMGTP])(i?))?B?\s*$/i.exec(text) ?? [];
  if (!digits) throw new Error(`"${text}" is no size: write for example 10 GiB`);
  return Number(digits) * (binary ? 1024 : 1000) ** UNITS.indexOf((unit ?? "").toUpperCase());
}

function parse_count(text) {
  if (!/^\s*\d+\s*$/.test(text)) throw new Error(`"${text}" is no number of objects`);
  return Number(text);
}

// Returns the element for the quota of one bucket; `null` for a client that may not read it.
export async function quota_card(bucket) {
  const path = path_of(bucket) + "?quota";
  const read = async () => (await xml_of(path)).documentElement;
  const found = await read().catch(() => null);
  if (!found) return null;
  const { message, say, attempt } = outcomes();
  const use = h("p", {});
  const field = (name, placeholder) => h("input", { name, placeholder, size: 12 });
  const [size, objects] = [field("bytes", "no limit"), field("objects", "no limit")];
  const show = (quota) => {
    const number = (name) => (child(quota, name) === "" ? null : Number(child(quota, name)));
    const [quota_bytes, quota_objects] = [number("Bytes"), number("Objects")];
    const [used_bytes, used_objects] = [number("UsedBytes"), number("UsedObjects")];
    const limited = quota_use({ quota_bytes, quota_objects, used_bytes, used_objects });
    use.textContent = "Used, with older versions and parts of uploads: " +
      (limited ?? `${bytes(used_bytes)}, ${count(used_objects)} objects; no quota`);
    size.value = quota_bytes === null ? "" : exact(quota_bytes);
    objects.value = quota_objects ?? "";
  };
  const set = async () => {
    const limits = [["Bytes", size.value.trim(), parse_bytes], ["Objects", objects.value.trim(), parse_count]];
    const elements = limits.filter(([, text]) => text)
      .map(([name, text, parse]) => `<${name}>${parse(text)}</${name}>`);
    const body = `<QuotaConfiguration>${elements.join("")}</QuotaConfiguration>`;
    await s3(path, elements.length ? { method: "PUT", body } : { method: "DELETE" });
    show(await read());
    say(elements.length ? "The quota was set." : "The quota was removed.");
  };
  show(found);
  const form = h("form", { onsubmit: (event) => {
    event.preventDefault();
    attempt(set);
  } }, h("label", {}, "Bytes ", size), " ", h("label", {}, "Objects ", objects), " ",
    h("button", {}, "Set quota"));
  return h("section", { className: "card stack quota", "aria-label": "Quota of " + bucket },
    h("h3", {}, "Quota"), use, form, message);
}
