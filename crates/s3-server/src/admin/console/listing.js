// The objects below a prefix: pages, a filter, a selection, and the actions of each object.

import { bytes, count, h, sum, table } from "/console/elements.js";
import { moment, sure } from "/serve/controls.js";
import { delete_objects } from "/serve/deletion.js";
import { name_below, prefix_link } from "/serve/places.js";
import { show_preview } from "/serve/preview.js";
import { child, decode, path_of, s3, xml_of } from "/serve/s3.js";
import { load_versions } from "/serve/versions.js";

const PAGE = 200;
const LINK_TIMES = [[3600, "1 hour"], [86400, "1 day"], [604800, "7 days"]];
// The time after the last key press before the filter is applied, in milliseconds.
const TYPING_MS = 250;

const COLUMNS = [{ name: "key", className: "break" }, { name: "bytes", number: true },
  { name: "modified", className: "fixed" }, { name: "actions", className: "fixed" }];

const EMPTY = h("span", {}, "No objects. Drop files or folders here, or choose them above, to upload them.");

// Returns the listing: `element` and `load`. `view` has `message`, `attempt` and `say` for
// the outcome of actions, and the `remover` of all objects below a prefix.
export function listing(view) {
  const state = { bucket: "", prefix: "", rows: [], selected: new Map(), boxes: [], generation: 0 };
  const content = h("div", { className: "card" });
  const parts = toolbar(state, view, () => refresh());
  const refresh = () => load(state, view, content, parts);
  return {
    element: h("div", { className: "stack" }, parts.element, content),
    load: (bucket, prefix) => {
      if (bucket !== state.bucket || prefix !== state.prefix) {
        parts.filter.value = "";
        // The buttons of the objects of another place would act on this one.
        content.replaceChildren();
      }
      Object.assign(state, { bucket, prefix });
      return refresh();
    },
  };
}

// --- Filter and selection --------------------------------------------------------------------

function toolbar(state, view, refresh) {
  const { attempt, say, remover } = view;
  let timer = null;
  const filter = h("input", { type: "search", placeholder: "Filter: keys that begin with…", spellcheck: false,
    "aria-label": "Show keys that begin with", oninput: () => {
      clearTimeout(timer);
      timer = setTimeout(() => attempt(refresh), TYPING_MS);
    } });
  const with_versions = h("input", { type: "checkbox", id: "with-versions", onchange: () => attempt(refresh) });
  const all = h("input", { type: "checkbox", onchange: () => {
    // Each box also changes the state of this one.
    const is_checked = all.checked;
    for (const { box } of state.boxes) {
      if (box.checked !== is_checked) box.click();
    }
  } });
  const selected = h("span", { className: "soft", role: "status" });
  const remove = h("span", { className: "actions" });
  const delete_selected = () => attempt(async () => {
    const objects = [...state.selected.keys()].map((key) => ({ key }));
    const failures = await delete_objects(state.bucket, objects);
    await refresh();
    const done = `Deleted ${count(objects.length - failures.length)} objects.`;
    if (!failures.length) return say(done);
    throw new Error(`${done} ${failures.length} were not deleted: ${failures[0].key}: ${failures[0].message}`);
  });
  const update = () => {
    const number = state.selected.size;
    all.checked = number > 0 && number === state.boxes.length;
    all.indeterminate = number > 0 && !all.checked;
    selected.textContent = number ? `${count(number)} selected, ${bytes(sum([...state.selected.values()]))}` : "";
    remove.replaceChildren(...(number ? [sure("Delete selected", `${number} objects`, delete_selected)] : []));
  };
  const below = h("button", { type: "button", className: "small danger", onclick: () =>
    attempt(() => remover.ask(state.bucket, state.prefix + filter.value)) }, "Delete all shown…");
  const selection = h("span", { className: "fields" }, h("label", {}, all, " Select all on the page"), selected, remove);
  const element = h("div", { className: "toolbar" }, filter, selection, below,
    h("label", {}, with_versions, " Show versions and deleted objects"));
  return { element, filter, with_versions, selection, update };
}

// --- Actions ---------------------------------------------------------------------------------

// Shows a link, which is no longer valid than the key of the login.
async function show_link(bucket, key, seconds, { message, say, attempt }) {
  const query = new URLSearchParams({ bucket, key, seconds });
  const url = await (await s3("/presign?" + query)).text();
  const valid_s = Number(new URL(url).searchParams.get("X-Amz-Expires"));
  const end = new Date(Date.now() + 1000 * valid_s).toLocaleString();
  const field = h("input", { value: url, readOnly: true, "aria-label": "Presigned link" });
  const copy = h("button", { className: "small", onclick: () => attempt(async () => {
    await navigator.clipboard.writeText(url);
    say("The link was copied.");
  }) }, "Copy");
  say("");
  message.replaceChildren(field, " ", copy, valid_s ? ` Valid until ${end}.` : "");
  field.focus();
  field.select();
}

function actions(object, bucket, view, refresh) {
  const { key } = object;
  const { attempt, say } = view;
  const times = h("select", { "aria-label": "Link for " + key, onchange: () => {
    const seconds = times.value;
    times.value = "";
    if (seconds) attempt(() => show_link(bucket, key, seconds, view));
  } }, h("option", { value: "" }, "Link…"),
    LINK_TIMES.map(([seconds, name]) => h("option", { value: seconds }, name)));
  const remove = sure("Delete", key, () => attempt(async () => {
    await s3(path_of(bucket, key), { method: "DELETE" });
    await refresh();
    say(`Deleted ${key}.`);
  }));
  const preview = h("button", { className: "small", "aria-label": "Preview " + key,
    onclick: () => attempt(() => show_preview(bucket, object)) }, "Preview");
  return h("span", { className: "actions" }, preview, " ", times, " ", remove);
}

// --- Pages -----------------------------------------------------------------------------------

function object_row(element, { state, view, parts, refresh }) {
  const object = { key: decode(child(element, "Key")), size: Number(child(element, "Size")) };
  const { key, size } = object;
  const box = h("input", { type: "checkbox", "aria-label": "Select " + key, onchange: () => {
    if (box.checked) state.selected.set(key, size);
    else state.selected.delete(key);
    parts.update();
  } });
  state.boxes.push({ box, key });
  const download = h("a", { href: path_of(state.bucket, key), download: key.split("/").pop() }, name_below(state.prefix, key));
  return [h("span", {}, box, " ", download), bytes(size), moment(Date.parse(child(element, "LastModified"))),
    actions(object, state.bucket, view, refresh)];
}

function prefix_row(prefix, { state, view }) {
  const { attempt, remover } = view;
  return [h("span", { className: "folder" }, prefix_link(state.bucket, state.prefix, prefix)), "", "",
    h("button", { className: "small danger", "aria-label": "Delete all below " + prefix,
      onclick: () => attempt(() => remover.ask(state.bucket, prefix)) }, "Delete all…")];
}

async function load(state, view, content, parts) {
  const { bucket, prefix } = state;
  const { attempt, say } = view;
  // An answer that arrives after the user went on is not shown.
  const generation = ++state.generation;
  Object.assign(state, { rows: [], boxes: [] });
  state.selected.clear();
  parts.update();
  parts.selection.hidden = parts.with_versions.checked;
  const filter = parts.filter.value;
  if (parts.with_versions.checked) {
    const is_current = () => generation === state.generation;
    return load_versions({ bucket, prefix, filter, content, is_current, prefix_link, attempt, say });
  }
  const refresh = () => load(state, view, content, parts);
  const context = { state, view, parts, refresh };
  const next_page = async (token) => {
    const query = new URLSearchParams({ "list-type": 2, delimiter: "/", prefix: prefix + filter, "max-keys": PAGE,
      "encoding-type": "url", ...(token ? { "continuation-token": token } : {}) });
    const xml = await xml_of(path_of(bucket) + "?" + query);
    if (generation !== state.generation) return;
    const prefixes = [...xml.querySelectorAll("CommonPrefixes > Prefix")].map((one) => prefix_row(decode(one.textContent), context));
    const objects = [...xml.querySelectorAll("Contents")].map((one) => object_row(one, context));
    state.rows = [...state.rows, ...prefixes, ...objects];
    const next = child(xml.documentElement, "NextContinuationToken");
    const more = next ? h("button", { onclick: () => attempt(() => next_page(next)) }, "Show more") : null;
    const empty = filter ? `No keys begin with ${prefix}${filter}.` : EMPTY;
    content.replaceChildren(table(`Objects of ${bucket}/${prefix}`, COLUMNS, state.rows, { empty }),
      ...(more ? [h("p", {}, more)] : []));
    parts.update();
  };
  await next_page(null);
}
