// The list of buckets, which are created and deleted.

import { get } from "/console.js";
import { bytes, count, h, table } from "/console/elements.js";
import { form_of, moment, sure } from "/serve/controls.js";
import { hash_of, settings_hash_of } from "/serve/places.js";
import { quota_use } from "/serve/quota.js";
import { child, node, path_of, put_setting, s3, xml_of } from "/serve/s3.js";

const COLUMNS = [{ name: "bucket", className: "break" }, { name: "objects", number: true },
  { name: "bytes", number: true }, { name: "quota" }, { name: "versioning" },
  { name: "created", className: "fixed" }, { name: "actions", className: "fixed" }];

// Returns why a bucket cannot have this name; null if it can.
export function name_fault(name, known) {
  if (name.length < 3 || name.length > 63) return "A name has 3 to 63 characters.";
  if (/[A-Z]/.test(name)) return "A name has no upper-case letters.";
  const other = /[^a-z0-9.-]/.exec(name);
  if (other) return `A name has only letters, digits, dots and hyphens, not "${other[0]}".`;
  if (!/^[a-z0-9].*[a-z0-9]$/.test(name)) return "A name begins and ends with a letter or a digit.";
  if (/\.\.|\.-|-\./.test(name)) return "A dot in a name is between letters or digits.";
  if (/^\d+\.\d+\.\d+\.\d+$/.test(name)) return "A name is not an IP address.";
  if (name.startsWith("xn--")) return "A name does not begin with xn--.";
  return known.includes(name) ? "You have a bucket with this name." : null;
}

export async function create_bucket(name, { is_versioned, is_locked }) {
  const headers = is_locked ? { "x-amz-bucket-object-lock-enabled": "true" } : {};
  await s3(path_of(name), { method: "PUT", headers });
  // Object lock enables versioning.
  if (is_versioned && !is_locked) {
    const status = node("VersioningConfiguration", node("Status", "Enabled"));
    await put_setting(name, "versioning", status);
  }
}

// Returns the form for a new bucket. `known` are the names of the buckets that exist.
function creation(known, { attempt }) {
  const name = h("input", { required: true, maxLength: 63, spellcheck: false, autocomplete: "off",
    autocapitalize: "none", "aria-describedby": "bucket-name-fault", id: "bucket-name",
    oninput: () => show_fault(name.value.length > 2 || fault.textContent !== "") });
  const fault = h("p", { id: "bucket-name-fault", className: "bad", role: "status" });
  const versioned = h("input", { type: "checkbox" });
  const locked = h("input", { type: "checkbox", onchange: () => {
    versioned.checked ||= locked.checked;
    versioned.disabled = locked.checked;
  } });
  const show_fault = (is_shown) => {
    const reason = is_shown ? name_fault(name.value, known) : null;
    fault.textContent = reason ?? "";
    name.setAttribute("aria-invalid", reason ? "true" : "false");
    return reason;
  };
  const create = () => {
    if (show_fault(true)) return name.focus();
    return attempt(async () => {
      await create_bucket(name.value, { is_versioned: versioned.checked, is_locked: locked.checked });
      location.hash = hash_of(name.value);
    });
  };
  return form_of(create, h("h3", {}, "New bucket"),
    h("p", { className: "fields" }, h("label", {}, "Name ", name), h("label", {}, versioned, " versioning"),
      h("label", {}, locked, " object lock")), fault,
    h("p", { className: "soft" }, "With versioning, replaced and deleted objects remain as versions. " +
      "Object lock can protect versions from deletion for a time; it needs versioning, and remains for ever."),
    h("p", {}, h("button", { className: "main" }, "Create")));
}

// Says what to do on a server without buckets.
async function first_steps() {
  const stats = await get("/stats.json").then((response) => response.json(), () => null);
  const address = stats?.address ?? "HOST:PORT";
  return h("div", { className: "empty" }, h("h2", {}, "No buckets yet"),
    h("p", {}, "Objects are in buckets. Create the first one above, then open it and drop files on it."),
    h("p", {}, "S3 clients use the address of the server:"),
    h("pre", {}, `aws --endpoint-url ${location.protocol}//${address} s3 cp FILE s3://BUCKET/`),
    h("p", { className: "soft" }, "On a server with keys, a key sees only the buckets to which it has rights. " +
      "The settings of a bucket create a key for it in one step."));
}

// Shows the buckets in `view.content`.
export async function show_buckets(view) {
  const { content, attempt, say } = view;
  const xml = await xml_of("/s3/");
  // Only the administrator may read the sizes.
  const sizes = await get("/buckets.json").then((response) => response.json(), () => []);
  const buckets = [...xml.querySelectorAll("Bucket")].map((bucket) =>
    ({ name: child(bucket, "Name"), created: Date.parse(child(bucket, "CreationDate")) }));
  const remove = (name) => attempt(async () => {
    try {
      await s3(path_of(name), { method: "DELETE" });
    } catch (error) {
      if (error.code !== "BucketNotEmpty") throw error;
      throw new Error(`${name} is not empty: open it and delete all its objects and versions first.`);
    }
    await show_buckets(view);
    say(`Deleted the bucket ${name}.`);
  });
  const rows = buckets.map(({ name, created }) => {
    const size = sizes.find((one) => one.name === name);
    const actions = h("span", { className: "actions" },
      h("a", { href: settings_hash_of(name), "aria-label": "Settings of " + name }, "Settings"), " ",
      sure("Delete", name, () => remove(name)));
    return [h("a", { href: hash_of(name) }, name), size && count(size.objects),
      size && bytes(size.bytes), quota_use(size), size?.versioning ?? "–", moment(created), actions];
  });
  const form = h("div", { className: "card" }, creation(buckets.map(({ name }) => name), view));
  const list = rows.length ? [table("Buckets", COLUMNS, rows), h("p", { className: "soft" },
    "Buckets share volumes, so dead bytes are known for the whole store only: see Storage.")]
    : [await first_steps()];
  content.replaceChildren(form, h("div", { className: "card" }, list));
}
