// The lifecycle rules of a bucket: a list, a form for the usual ones, and their XML for the others.

import { h, table } from "/console/elements.js";
import { editor, form_of, sure } from "/serve/controls.js";
import { child, delete_setting, node, plain, put_setting, setting_of, xml_text } from "/serve/s3.js";

const COLUMNS = [{ name: "rule", className: "break" }, { name: "objects", className: "break" }, { name: "effect" },
  { name: "actions", className: "fixed" }];

const days = (number) => `${number} ${Number(number) === 1 ? "day" : "days"}`;

function effects(rule) {
  const text = (path) => rule.querySelector(path)?.textContent ?? "";
  const list = [];
  if (text("Expiration > Days")) list.push(`expire after ${days(text("Expiration > Days"))}`);
  if (text("Expiration > Date")) list.push(`expire on ${text("Expiration > Date").slice(0, 10)}`);
  if (text("Expiration > ExpiredObjectDeleteMarker") === "true") list.push("delete markers without versions are removed");
  const newer = text("NewerNoncurrentVersions");
  if (text("NoncurrentDays")) {
    list.push(`earlier versions are removed after ${days(text("NoncurrentDays"))}${newer ? `, except the newest ${newer}` : ""}`);
  }
  if (text("DaysAfterInitiation")) list.push(`incomplete uploads are aborted after ${days(text("DaysAfterInitiation"))}`);
  return list.join("; ");
}

function scope(rule) {
  const prefix = rule.querySelector("Prefix")?.textContent;
  const has_more = rule.querySelector("Tag, ObjectSizeGreaterThan, ObjectSizeLessThan");
  return (prefix ? `keys that begin with ${prefix}` : "all") + (has_more ? ", with further conditions" : "");
}

// Returns the element of a rule with these days; null ones are left out.
export function rule_of({ prefix, expire, noncurrent, abort }) {
  return node("Rule", node("Filter", node("Prefix", prefix)), node("Status", "Enabled"),
    expire ? node("Expiration", node("Days", expire)) : null,
    noncurrent ? node("NoncurrentVersionExpiration", node("NoncurrentDays", noncurrent)) : null,
    abort ? node("AbortIncompleteMultipartUpload", node("DaysAfterInitiation", abort)) : null);
}

function addition(add) {
  const number = () => h("input", { type: "number", min: 1, max: 2147483647, className: "short" });
  const prefix = h("input", { spellcheck: false, autocomplete: "off", placeholder: "all objects" });
  const [expire, noncurrent, abort] = [number(), number(), number()];
  const missing = h("p", { className: "bad", role: "status" });
  const submit = () => {
    const values = { prefix: prefix.value, expire: expire.value, noncurrent: noncurrent.value, abort: abort.value };
    if (!values.expire && !values.noncurrent && !values.abort) {
      missing.textContent = "A rule needs at least one number of days.";
      return expire.focus();
    }
    return add(rule_of(values));
  };
  return form_of(submit, h("p", { className: "fields" },
    h("label", {}, "Keys that begin with ", prefix),
    h("label", {}, "Expire after ", expire, " days"),
    h("label", {}, "Remove earlier versions after ", noncurrent, " days"),
    h("label", {}, "Abort incomplete uploads after ", abort, " days")),
  missing, h("p", {}, h("button", { className: "main" }, "Add the rule")));
}

// Returns the content of the card of lifecycle rules.
export async function lifecycle({ bucket, change }) {
  const document = await setting_of(bucket, "lifecycle");
  const rules = document ? [...document.querySelectorAll("Rule")].map(plain) : [];
  const put = (done, list) => change(done, () => (list.length
    ? put_setting(bucket, "lifecycle", node("LifecycleConfiguration", list))
    : delete_setting(bucket, "lifecycle")));
  const name_of = (rule) => (child(rule, "Status") === "Enabled" ? child(rule, "ID")
    : h("span", {}, child(rule, "ID"), h("br"), h("small", { className: "warn" }, "disabled")));
  const rows = rules.map((rule, at) => [name_of(rule), scope(rule), effects(rule),
    sure("Delete", "rule " + child(rule, "ID"), () => put("The rule was deleted.", rules.filter((_, other) => other !== at)))]);
  return [
    rows.length ? table("Rules", COLUMNS, rows) : h("p", { className: "soft" }, "not set"),
    h("details", { open: !rows.length }, h("summary", {}, "Add a rule"),
      addition((rule) => put("The rule was added.", [...rules, rule]))),
    h("details", {}, h("summary", {}, "All rules as XML"),
      editor("Lifecycle rules as XML", document ? xml_text(plain(document)) : "", {
        save: (text) => change("Saved.", () => put_setting(bucket, "lifecycle", text)),
        remove: document && (() => put("Removed.", [])),
        templates: [{ name: "a rule", text: () => xml_text(node("LifecycleConfiguration",
          rule_of({ prefix: "logs/", expire: 30, noncurrent: 7, abort: 3 }))) }],
      })),
  ];
}
