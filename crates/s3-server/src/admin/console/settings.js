// The settings of a bucket. Each one is in a card, with its state and the form that changes it.

import { get } from "/console.js";
import { h } from "/console/elements.js";
import { choice_of, editor, form_of, outcomes, sure } from "/serve/controls.js";
import { lifecycle } from "/serve/lifecycle.js";
import { bucket_key } from "/serve/new_key.js";
import { access } from "/serve/policy.js";
import { quota_card } from "/serve/quota.js";
import { child, delete_setting, node, plain, put_setting, s3, path_of, setting_of, xml_text } from "/serve/s3.js";

const SEE = (text) => h("p", { className: "soft" }, text);

export const state_of = (text) => h("p", {}, text === null ? h("span", { className: "soft" }, "not set") : h("b", {}, text));

// Returns a card that loads itself. `load` returns its content; it gets `{ bucket, change }`, with
// which a control changes the setting and shows it again.
function card(title, bucket, load) {
  const { message, say, attempt } = outcomes();
  const body = h("div", { className: "stack" });
  const element = h("section", { className: "card stack", "aria-label": title }, h("h3", {}, title), message, body);
  const show = async () => body.replaceChildren(...[await load({ bucket, change, say, attempt })].flat().filter(Boolean));
  const change = (done, action) => attempt(async () => {
    // After a failure, the form keeps what the user has written.
    await action();
    await show();
    say(done);
  });
  show().catch((error) => body.replaceChildren(h("p", { className: "warn" }, error.message)));
  return element;
}

// --- Versioning and object lock --------------------------------------------------------------

async function versioning({ bucket, change }) {
  const status = child(await setting_of(bucket, "versioning"), "Status") || null;
  const set = (value, done) => change(done, () =>
    put_setting(bucket, "versioning", node("VersioningConfiguration", node("Status", value))));
  const button = status === "Enabled"
    ? sure("Suspend", "versioning", () => set("Suspended", "Versioning is suspended."))
    : h("button", { className: "small", onclick: () => set("Enabled", "Versioning is enabled.") }, "Enable");
  return [state_of(status && status.toLowerCase()), h("p", {}, button),
    SEE("Enabled: objects that are replaced or deleted remain as versions. Suspended: those that exist " +
      "remain, and new ones are replaced.")];
}

function lock_form(retention, save) {
  const mode = choice_of("Mode", [["", "none"], ["GOVERNANCE", "governance"], ["COMPLIANCE", "compliance"]],
    retention ? child(retention, "Mode") : "");
  const years = retention ? child(retention, "Years") : "";
  const number = h("input", { type: "number", min: 1, max: 36500, className: "short", "aria-label": "Duration",
    value: years || (retention ? child(retention, "Days") : "") });
  const unit = choice_of("Unit", [["Days", "days"], ["Years", "years"]], years ? "Years" : "Days");
  const document = () => node("ObjectLockConfiguration", node("ObjectLockEnabled", "Enabled"),
    mode.value ? node("Rule", node("DefaultRetention", node("Mode", mode.value), node(unit.value, number.value))) : null);
  return form_of(() => save(document()), h("p", { className: "fields" },
    h("label", {}, "Default retention ", mode), h("span", {}, number, " ", unit),
    h("button", { className: "main" }, "Save")));
}

async function object_lock({ bucket, change }) {
  const lock = await setting_of(bucket, "object-lock");
  const put = (done, document) => change(done, () => put_setting(bucket, "object-lock", document));
  if (!lock) {
    const enabled = node("ObjectLockConfiguration", node("ObjectLockEnabled", "Enabled"));
    return [state_of(null), h("p", {}, sure("Enable for ever", "object lock", () => put("Object lock is enabled.", enabled))),
      SEE("Needs versioning. Versions can then be locked against deletion. It can never be disabled.")];
  }
  return [state_of("enabled"), lock_form(lock.querySelector("DefaultRetention"), (document) => put("Saved.", document)),
    SEE("New objects get this retention. Governance: clients with the right admin can shorten it. " +
      "Compliance: nobody can.")];
}

// --- Documents -------------------------------------------------------------------------------

const CORS_READ = () => xml_text(node("CORSConfiguration", node("CORSRule",
  node("AllowedHeader", "*"), node("AllowedMethod", "GET"), node("AllowedMethod", "HEAD"),
  node("AllowedOrigin", "https://www.example.com"), node("ExposeHeader", "ETag"), node("MaxAgeSeconds", 3600))));
const CORS_WRITE = () => xml_text(node("CORSConfiguration", node("CORSRule",
  node("AllowedHeader", "*"), ["GET", "HEAD", "PUT", "POST", "DELETE"].map((one) => node("AllowedMethod", one)),
  node("AllowedOrigin", "https://www.example.com"), node("ExposeHeader", "ETag"), node("MaxAgeSeconds", 3600))));

// Returns the XML of CORS rules in the JSON of the AWS command line: each list becomes elements with
// the singular of its name.
export function cors_xml(text) {
  if (!text.trim().startsWith("{") && !text.trim().startsWith("[")) return text;
  const json = JSON.parse(text);
  const rules = Array.isArray(json) ? json : json.CORSRules ?? [];
  const elements = ([name, value]) => (Array.isArray(value)
    ? value.map((one) => node(name.replace(/s$/, ""), one)) : [node(name, value)]);
  return xml_text(node("CORSConfiguration",
    rules.map((rule) => node("CORSRule", Object.entries(rule).flatMap(elements)))));
}

async function cors({ bucket, change }) {
  const document = await setting_of(bucket, "cors");
  const text = document ? xml_text(plain(document)) : "";
  const rules = document ? document.querySelectorAll("CORSRule").length : 0;
  const editing = editor("CORS rules, as XML or as JSON", text, {
    save: (value) => change("Saved.", async () => put_setting(bucket, "cors", cors_xml(value))),
    remove: document && (() => change("Removed.", () => delete_setting(bucket, "cors"))),
    templates: [{ name: "reading by one origin", text: CORS_READ }, { name: "all methods by one origin", text: CORS_WRITE }],
  });
  return [state_of(document && `${rules} ${rules === 1 ? "rule" : "rules"}`),
    h("details", { open: Boolean(document) }, h("summary", {}, "Edit"), editing),
    SEE("Allows web pages of other origins to use the bucket from a browser.")];
}

// Returns the XML of a rule that sends the events of new and deleted objects to a target.
function notify(target) {
  return xml_text(node("NotificationConfiguration", node("QueueConfiguration",
    node("Id", "all changes"), node("Queue", `arn:haul:sqs:::${target}`),
    node("Event", "s3:ObjectCreated:*"), node("Event", "s3:ObjectRemoved:*"))));
}

async function notifications({ bucket, change }) {
  const [document, targets] = await Promise.all([setting_of(bucket, "notification"),
    get("/events.json").then(async (response) => (await response.json())
      .filter(({ configured }) => configured))]);
  const rules = document ? document.children.length : 0;
  const put = (text) => put_setting(bucket, "notification", text);
  const editing = editor("Notification rules, as XML", rules ? xml_text(plain(document)) : "", {
    save: (value) => change("Saved.", () => put(value)),
    remove: rules && (() => change("Removed.", () => put(xml_text(node("NotificationConfiguration"))))),
    templates: targets.map(({ name }) => ({ name: `changes to ${name}`, text: () => notify(name) })),
  });
  return [state_of(rules ? `${rules} ${rules === 1 ? "rule" : "rules"}` : null),
    h("details", { open: Boolean(rules) }, h("summary", {}, "Edit"), editing),
    SEE(targets.length ? "Sends events about changes of objects to the event targets of the server."
      : "The server has no event targets: start it with --event-targets.")];
}

async function encryption({ bucket, change }) {
  const document = await setting_of(bucket, "encryption");
  const part = (name) => document?.querySelector(name)?.textContent ?? "";
  const algorithm = part("SSEAlgorithm");
  const kind = choice_of("Algorithm", [["", "none"], ["AES256", "AES256, key of the server"], ["aws:kms", "aws:kms, named key"]], algorithm,
    () => { key_label.hidden = kind.value !== "aws:kms"; });
  const key = h("input", { value: part("KMSMasterKeyID"), spellcheck: false });
  const key_label = h("label", { hidden: algorithm !== "aws:kms" }, "Key ", key);
  const save = () => change("Saved.", () => (kind.value === "" ? delete_setting(bucket, "encryption")
    : put_setting(bucket, "encryption", node("ServerSideEncryptionConfiguration", node("Rule",
      node("ApplyServerSideEncryptionByDefault", node("SSEAlgorithm", kind.value),
        kind.value === "aws:kms" ? node("KMSMasterKeyID", key.value.trim()) : null))))));
  return [state_of(algorithm ? [algorithm, part("KMSMasterKeyID")].filter(Boolean).join(", ") : null),
    form_of(save, h("p", { className: "fields" }, h("label", {}, "Default ", kind), key_label,
      h("button", { className: "main" }, "Save"))),
    SEE("Applies to new objects. The server needs --encryption-key.")];
}

function deletion(bucket) {
  return ({ attempt }) => [h("p", {}, sure("Delete the bucket", bucket, () => attempt(async () => {
    await s3(path_of(bucket), { method: "DELETE" });
    location.hash = "#objects";
  }))), SEE("Only a bucket without objects and versions can be deleted. Its settings are deleted with it.")];
}

// Shows the settings of the bucket of a view.
export async function show_settings({ bucket, content }) {
  await s3(path_of(bucket), { method: "HEAD" }).catch((error) => {
    throw error.status === 404 ? new Error(`There is no bucket ${bucket}.`) : error;
  });
  const quota = await quota_card(bucket);
  content.replaceChildren(h("div", { className: "settings" },
    card("A key for this bucket", bucket, bucket_key),
    card("Access without a key, and the policy", bucket, access),
    card("Versioning", bucket, versioning),
    card("Object lock", bucket, object_lock),
    card("Lifecycle", bucket, lifecycle),
    ...(quota ? [quota] : []),
    card("Default encryption", bucket, encryption),
    card("CORS", bucket, cors),
    card("Notifications", bucket, notifications),
    card("Deletion", bucket, deletion(bucket))));
}
