// The view of buckets and their objects: listings, uploads, downloads, deletions and presigned
// links.

import { add_view, get } from "/console.js";
import { bytes, clock, count, h, table } from "/console/elements.js";
import { OWN, child, decode, failure_of, outcomes, path_of, s3, sure, xml_of } from "/serve/s3.js";
import { load_versions } from "/serve/versions.js";

const PAGE = 200;
const LINK_TIMES = [[3600, "1 hour"], [86400, "1 day"], [604800, "7 days"]];

// The state is in the hash: `#objects`, or `#objects/BUCKET/PREFIX`.
function place() {
  const [, bucket, ...prefix] = location.hash.slice(1).split("/");
  return { bucket: bucket ?? "", prefix: decodeURIComponent(prefix.join("/")) };
}

const hash_of = (bucket, prefix) =>
  "#objects/" + bucket + (prefix ? "/" + encodeURIComponent(prefix) : "");

const title = h("nav", { "aria-label": "Bucket and prefix", className: "crumbs" });
const { message, say, attempt } = outcomes();
const content = h("div", { className: "card" });
const uploads = h("ul", { className: "uploads", "aria-label": "Uploads" });

// --- Buckets ---------------------------------------------------------------------------------

const BUCKET_COLUMNS = [{ name: "bucket", className: "break" }, { name: "objects", number: true },
  { name: "bytes", number: true }, { name: "versioning" }, { name: "created", className: "fixed" }];

async function show_buckets() {
  title.replaceChildren(h("b", {}, "Buckets"));
  uploader.hidden = choice.hidden = true;
  const xml = await xml_of("/s3/");
  // Only the administrator may read the sizes.
  const sizes = await get("/buckets.json").then((response) => response.json(), () => []);
  const rows = [...xml.querySelectorAll("Bucket")].map((bucket) => {
    const name = child(bucket, "Name");
    const size = sizes.find((one) => one.name === name);
    return [h("a", { href: hash_of(name) }, name), size && count(size.objects),
      size && bytes(size.bytes), size?.versioning ?? "–", clock(Date.parse(child(bucket, "CreationDate")))];
  });
  content.replaceChildren(table("Buckets", BUCKET_COLUMNS, rows),
    h("p", { className: "soft" }, "Buckets share volumes, so dead bytes are known for the whole store " +
      "only: see Storage."));
}

// --- Objects ---------------------------------------------------------------------------------

const OBJECT_COLUMNS = [{ name: "key", className: "break" }, { name: "bytes", number: true },
  { name: "modified", className: "fixed" }, { name: "actions", className: "fixed" }];

function crumbs(bucket, prefix) {
  const parts = prefix.split("/").slice(0, -1);
  const links = parts.map((part, at) => [" / ",
    h("a", { href: hash_of(bucket, parts.slice(0, at + 1).join("/") + "/") }, part || "(empty)")]);
  title.replaceChildren(h("a", { href: "#objects" }, "Buckets"), " / ",
    h("a", { href: hash_of(bucket) }, bucket), ...links.flat());
}

async function link(bucket, key, seconds) {
  const query = new URLSearchParams({ bucket, key, seconds });
  const url = await (await s3("/presign?" + query)).text();
  const field = h("input", { value: url, readOnly: true, "aria-label": "Presigned link" });
  const copy = h("button", { className: "small", onclick: () => attempt(async () => {
    await navigator.clipboard.writeText(url);
    say("The link was copied.");
  }) }, "Copy");
  say("");
  message.replaceChildren(field, " ", copy);
  field.focus();
  field.select();
}

function actions(bucket, key) {
  const times = h("select", { "aria-label": "Link for " + key, onchange: () => {
    const seconds = times.value;
    times.value = "";
    if (seconds) attempt(() => link(bucket, key, seconds));
  } }, h("option", { value: "" }, "Link…"),
    LINK_TIMES.map(([seconds, name]) => h("option", { value: seconds }, name)));
  const remove = sure("Delete", key, () => attempt(async () => {
    await s3(path_of(bucket, key), { method: "DELETE" });
    await refresh();
    say(`Deleted ${key}.`);
  }));
  return h("span", { className: "actions" }, times, " ", remove);
}

const name_below = (prefix, key) => key.slice(prefix.length) || "(empty)";

const prefix_link = (bucket, prefix, key) =>
  h("a", { href: hash_of(bucket, key) }, name_below(prefix, key));

function object_rows(bucket, prefix, xml) {
  const name = (key) => name_below(prefix, key);
  const prefixes = [...xml.querySelectorAll("CommonPrefixes > Prefix")].map((one) =>
    [prefix_link(bucket, prefix, decode(one.textContent)), "", "", ""]);
  const objects = [...xml.querySelectorAll("Contents")].map((one) => {
    const key = decode(child(one, "Key"));
    const download = h("a", { href: path_of(bucket, key), download: key.split("/").pop() }, name(key));
    return [download, bytes(Number(child(one, "Size"))), clock(Date.parse(child(one, "LastModified"))),
      actions(bucket, key)];
  });
  return [...prefixes, ...objects];
}

async function show_objects(bucket, prefix) {
  crumbs(bucket, prefix);
  uploader.hidden = choice.hidden = false;
  if (with_versions.checked) {
    return load_versions({ bucket, prefix, content, prefix_link, attempt, say });
  }
  let rows = [];
  const load = async (token) => {
    const query = new URLSearchParams({ "list-type": 2, delimiter: "/", prefix, "max-keys": PAGE,
      "encoding-type": "url", ...(token ? { "continuation-token": token } : {}) });
    const xml = await xml_of(path_of(bucket) + "?" + query);
    rows = [...rows, ...object_rows(bucket, prefix, xml)];
    const next = child(xml.documentElement, "NextContinuationToken");
    const more = next ? h("button", { onclick: () => attempt(() => load(next)) }, "Show more") : null;
    content.replaceChildren(table(`Objects of ${bucket}/${prefix}`, OBJECT_COLUMNS, rows),
      ...(more ? [h("p", {}, more)] : []));
  };
  await load();
}

// --- Uploads ---------------------------------------------------------------------------------

// Sends a file by XMLHttpRequest, which reports the progress of the body.
function send(bucket, key, file) {
  const bar = h("progress", { max: 1, value: 0, "aria-label": key });
  const state = h("span", { className: "soft" });
  const line = uploads.appendChild(h("li", {}, key + " ", bar, " ", state));
  return new Promise((done) => {
    const request = new XMLHttpRequest();
    request.open("PUT", path_of(bucket, key));
    for (const [name, value] of Object.entries(OWN)) request.setRequestHeader(name, value);
    if (file.type) request.setRequestHeader("Content-Type", file.type);
    request.upload.onprogress = (event) => {
      bar.value = event.total ? event.loaded / event.total : 1;
      state.textContent = `${bytes(event.loaded)} of ${bytes(event.total)}`;
    };
    request.onloadend = async () => {
      if (request.status === 200) {
        bar.value = 1;
        state.textContent = `uploaded, ${bytes(file.size)}`;
        setTimeout(() => line.remove(), 10000);
      } else {
        const text = request.status ? await failure_of(new Response(request.responseText)) : null;
        state.textContent = text ? text.message : "the connection was lost";
        state.className = "bad";
      }
      done(request.status === 200);
    };
    request.send(file);
  });
}

async function upload(files) {
  const { bucket, prefix } = place();
  // One after the other: the disk and the connection are shared anyway.
  for (const file of files) await send(bucket, prefix + file.name, file);
  await refresh();
}

const chosen = h("input", { type: "file", multiple: true, id: "upload-files", onchange: async () => {
  await attempt(() => upload([...chosen.files]));
  chosen.value = "";
} });
const uploader = h("div", { className: "card drop", hidden: true },
  h("label", { htmlFor: "upload-files" }, "Upload files, or drop them here: "), chosen, uploads);

const with_versions = h("input", { type: "checkbox", onchange: () => attempt(refresh) });
const choice = h("p", { hidden: true },
  h("label", {}, with_versions, " Show versions and deleted objects"));

function dragging(event) {
  if (uploader.hidden || !event.dataTransfer?.types.includes("Files")) return false;
  event.preventDefault();
  return true;
}

const element = h("div", { className: "stack",
  ondragover: (event) => uploader.classList.toggle("over", dragging(event)),
  ondragleave: () => uploader.classList.remove("over"),
  ondrop: (event) => {
    uploader.classList.remove("over");
    if (dragging(event)) attempt(() => upload([...event.dataTransfer.files]));
  } }, title, message, uploader, choice, content);

async function refresh() {
  const { bucket, prefix } = place();
  if (bucket) await show_objects(bucket, prefix);
  else await show_buckets();
}

let shown = "";
add_view("objects", "Objects", {
  element,
  is_for_all_keys: true,
  // Listings are not repeated, so that pages that were added and the focus stay.
  refresh: () => {
    if (location.hash !== shown) say("");
    shown = location.hash;
    return attempt(refresh);
  },
});
