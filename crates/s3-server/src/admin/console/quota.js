// Quotas of buckets and of users: what counts against them, and forms that set them, as only the
// administrator may.

import { bytes, count, h, table } from "/console/elements.js";
import { form_of, outcomes } from "/serve/controls.js";
import { change_keys } from "/serve/new_key.js";
import { child, path_of, s3, xml_of } from "/serve/s3.js";

// Returns the use of a quota as the table of buckets shows it; `size` is an entry of /buckets.json.
export function quota_use(size) {
  const { quota_bytes, quota_objects, used_bytes, used_objects } = size ?? {};
  const limits = [used_of(used_bytes, quota_bytes, bytes), used_of(used_objects, quota_objects, count)];
  return limits.filter((limit) => limit).join(", ") || undefined;
}

// The use of a quota is not known before the server has applied it.
const used_of = (used, limit, text) => {
  if (typeof limit !== "number") return "";
  return typeof used === "number" ? `${text(used)} of ${text(limit)}` : `at most ${text(limit)}`;
};

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

const limit_field = (name, value = "") =>
  h("input", { name, value, placeholder: "no limit", size: 12, autocomplete: "off" });

// Returns the card with the quotas of users, each of which is for all buckets of a user. `users` are
// those that have keys, `done` is called after a change.
export function user_quotas(quotas, users, { attempt, done }) {
  const rows = quotas.map((quota) => [quota.user, quota_use(quota)]);
  const names = [...new Set([...users, ...quotas.map(({ user }) => user)])].sort();
  const user = h("select", { "aria-label": "User", onchange: () => show() }, names.map((name) => h("option", {}, name)));
  const [size, objects] = [limit_field("bytes"), limit_field("objects")];
  const show = () => {
    const found = quotas.find((quota) => quota.user === user.value);
    size.value = typeof found?.quota_bytes === "number" ? exact(found.quota_bytes) : "";
    objects.value = found?.quota_objects ?? "";
  };
  show();
  const set = () => attempt(async () => {
    const limit = (field, parse) => (field.value.trim() ? parse(field.value) : null);
    const limits = { bytes: limit(size, parse_bytes), objects: limit(objects, parse_count) };
    await change_keys({ change: "quota", user: user.value, ...limits });
    await done(`Set the quota of ${user.value}.`);
  });
  const empty = "No user has a quota, which limits all buckets of the user together.";
  return h("section", { className: "card stack quota", "aria-label": "Quotas of users" },
    table("Quotas of users", [{ name: "user", className: "break" }, { name: "used" }], rows, { empty }),
    form_of(set, h("p", { className: "fields" }, h("label", {}, "User ", user), h("label", {}, "Bytes ", size),
      h("label", {}, "Objects ", objects), h("button", {}, "Set quota"))));
}

// Returns the element for the quota of one bucket; `null` for a client that may not read it.
export async function quota_card(bucket) {
  const path = path_of(bucket) + "?quota";
  const read = async () => (await xml_of(path)).documentElement;
  const found = await read().catch(() => null);
  if (!found) return null;
  const { message, say, attempt } = outcomes();
  const use = h("p", {});
  const [size, objects] = [limit_field("bytes"), limit_field("objects")];
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
