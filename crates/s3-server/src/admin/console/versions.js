// The versions and delete markers of a bucket, with their locks: they are downloaded, restored and
// deleted.

import { bytes, h, table } from "/console/elements.js";
import { moment, sure } from "/serve/controls.js";
import { child, decode, path_of, s3, xml_of } from "/serve/s3.js";

const PAGE = 100;
// Requests for the locks of versions at the same time.
const LOCK_REQUESTS = 4;

const COLUMNS = [{ name: "key", className: "break" }, { name: "version", className: "fixed" }, { name: "bytes", number: true },
  { name: "modified", className: "fixed" }, { name: "lock" }, { name: "actions", className: "fixed" }];

const version_path = (bucket, { key, id }) => path_of(bucket, key) + "?versionId=" + encodeURIComponent(id);

function version_of(element) {
  return {
    key: decode(child(element, "Key")), id: child(element, "VersionId"),
    is_latest: child(element, "IsLatest") === "true", is_marker: element.tagName === "DeleteMarker",
    size: Number(child(element, "Size")), modified: Date.parse(child(element, "LastModified")),
  };
}

// Only a bucket with object lock has locks. A client that may not know reads no locks either.
const has_locks = (bucket) =>
  s3(path_of(bucket) + "?object-lock").then(() => true, () => false);

async function lock_of(bucket, version) {
  const { headers } = await s3(version_path(bucket, version), { method: "HEAD" });
  const mode = headers.get("x-amz-object-lock-mode");
  const until = Date.parse(headers.get("x-amz-object-lock-retain-until-date") ?? "");
  const texts = [];
  if (mode && until > Date.now()) texts.push(`${mode.toLowerCase()} until ${new Date(until).toLocaleString()}`);
  else if (mode) texts.push(`${mode.toLowerCase()}, ended ${new Date(until).toLocaleString()}`);
  if (headers.get("x-amz-object-lock-legal-hold") === "ON") texts.push("legal hold");
  return texts.join(", ") || "none";
}

// Writes the locks into their cells.
async function fill(bucket, cells) {
  const next = async () => {
    for (let one = cells.shift(); one; one = cells.shift()) {
      one.cell.textContent = await lock_of(bucket, one.version).catch(() => "not known");
    }
  };
  await Promise.all(Array.from({ length: LOCK_REQUESTS }, next));
}

// Shows the versions below a prefix whose keys begin with a filter there. `view` has `bucket`,
// `prefix`, `filter`, the element `content`, `is_current`, which is false once the user went on, `prefix_link`,
// and `attempt` and `say` for the outcome of actions.
export async function load_versions(view) {
  const { bucket, prefix, filter, content, is_current, prefix_link, attempt, say } = view;
  const is_locked = await has_locks(bucket);
  let rows = [];

  const act = (done, version, action) => attempt(async () => {
    await action();
    await load_versions(view);
    say(`${done} ${version.key}, version ${version.id}.`);
  });

  const actions = (version) => {
    const name = `version ${version.id} of ${version.key}`;
    const source = "/" + bucket + "/" + encodeURIComponent(version.key) + "?versionId=" + encodeURIComponent(version.id);
    const restore = h("button", { className: "small", "aria-label": "Restore " + name,
      onclick: () => act("Restored", version, () =>
        s3(path_of(bucket, version.key), { method: "PUT", headers: { "x-amz-copy-source": source } })),
    }, "Restore");
    const remove = sure("Delete", name, () => act("Deleted", version, () =>
      s3(version_path(bucket, version), { method: "DELETE" })));
    const is_restorable = !version.is_latest && !version.is_marker;
    return h("span", { className: "actions" }, ...(is_restorable ? [restore, " "] : []), remove);
  };

  const row = (version, cells) => {
    const name = version.key.slice(prefix.length) || "(empty)";
    const download = h("a", { href: version_path(bucket, version), download: version.key.split("/").pop() }, name);
    const lock = h("span", {}, "–");
    if (is_locked && !version.is_marker) cells.push({ version, cell: lock });
    const state = version.is_marker ? h("span", { className: "warn" }, "delete marker")
      : version.is_latest ? "current" : "older";
    return [version.is_marker ? h("span", {}, name) : download,
      h("span", { title: version.id }, state, h("br"), h("small", { className: "soft" }, version.id)),
      version.is_marker ? "" : bytes(version.size), moment(version.modified), lock, actions(version)];
  };

  const load = async (markers) => {
    const query = new URLSearchParams({ versions: "", delimiter: "/", prefix: prefix + filter, "max-keys": PAGE,
      "encoding-type": "url", ...markers });
    const xml = await xml_of(path_of(bucket) + "?" + query);
    if (!is_current()) return;
    const cells = [];
    const prefixes = [...xml.querySelectorAll("CommonPrefixes > Prefix")].map((one) =>
      [prefix_link(bucket, prefix, decode(one.textContent)), "", "", "", "", ""]);
    const versions = [...xml.querySelectorAll("Version, DeleteMarker")].map((one) => row(version_of(one), cells));
    rows = [...rows, ...prefixes, ...versions];
    const key = child(xml.documentElement, "NextKeyMarker");
    const id = child(xml.documentElement, "NextVersionIdMarker");
    const is_cut = child(xml.documentElement, "IsTruncated") === "true";
    const next = { "key-marker": decode(key), ...(id ? { "version-id-marker": id } : {}) };
    const more = is_cut ? h("button", { onclick: () => attempt(() => load(next)) }, "Show more") : null;
    content.replaceChildren(table(`Versions of ${bucket}/${prefix}`, COLUMNS, rows),
      h("p", { className: "soft" }, "Restoring stores a copy of a version as the current one. " +
        "Deleting a delete marker that is current brings the version before it back."),
      ...(more ? [h("p", {}, more)] : []));
    await fill(bucket, cells);
  };
  await load({});
}
