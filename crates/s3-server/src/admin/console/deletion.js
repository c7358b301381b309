// Deletes many objects: those that are named, and all below a prefix, page by page.

import { bytes, count, h, sum } from "/console/elements.js";
import { child, decode, node, path_of, s3, setting_of, xml_of, xml_text } from "/serve/s3.js";

const PAGE = 1000;

// XML has no character for most control characters, not even as a reference.
const NOT_XML = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/;

// Deletes up to a page of objects `{ key, version }`. Returns those that were not deleted, with a
// message.
async function delete_page(bucket, objects) {
  const failures = [];
  const single = objects.filter(({ key }) => NOT_XML.test(key));
  for (const { key, version } of single) {
    const query = version ? "?versionId=" + encodeURIComponent(version) : "";
    await s3(path_of(bucket, key) + query, { method: "DELETE" })
      .catch((error) => failures.push({ key, message: error.message }));
  }
  const others = objects.filter((one) => !single.includes(one));
  if (!others.length) return failures;
  const list = others.map(({ key, version }) => node("Object", node("Key", key), version ? node("VersionId", version) : null));
  const body = xml_text(node("Delete", node("Quiet", "true"), list));
  const response = await s3(path_of(bucket) + "?delete", { method: "POST", body });
  const xml = new DOMParser().parseFromString(await response.text(), "application/xml");
  const errors = [...xml.querySelectorAll("DeleteResult > Error")];
  return [...failures, ...errors.map((one) => ({ key: child(one, "Key"), message: `${child(one, "Code")}: ${child(one, "Message")}` }))];
}

export async function delete_objects(bucket, objects) {
  const failures = [];
  for (let at = 0; at < objects.length; at += PAGE) {
    failures.push(...await delete_page(bucket, objects.slice(at, at + PAGE)));
  }
  return failures;
}

// --- All below a prefix ----------------------------------------------------------------------

// Returns a page of objects below a prefix, or of versions, and the parameters of the next page;
// null after the last one.
async function page_of(bucket, prefix, is_versions, from) {
  const query = new URLSearchParams({ ...(is_versions ? { versions: "" } : { "list-type": 2 }), prefix,
    "max-keys": PAGE, "encoding-type": "url", ...from });
  const xml = (await xml_of(path_of(bucket) + "?" + query)).documentElement;
  const objects = [...xml.querySelectorAll(is_versions ? "Version, DeleteMarker" : "Contents")].map((one) =>
    ({ key: decode(child(one, "Key")), version: child(one, "VersionId"), size: Number(child(one, "Size")) }));
  if (child(xml, "IsTruncated") !== "true") return { objects, next: null };
  const version = child(xml, "NextVersionIdMarker");
  const next = is_versions ? { "key-marker": decode(child(xml, "NextKeyMarker")), ...(version ? { "version-id-marker": version } : {}) }
    : { "continuation-token": child(xml, "NextContinuationToken") };
  return { objects, next };
}

// Returns the part of the page that deletes all below a prefix: `element`, and `ask`, which counts
// and then asks. `done` is called after a deletion.
export function deletion({ attempt, done }) {
  const element = h("section", { className: "card stack", hidden: true, "aria-label": "Delete all below a prefix" });
  let job = null;
  const close = () => {
    element.hidden = true;
    element.replaceChildren();
  };
  const ask = async (bucket, prefix) => {
    // A deletion that runs is stopped by its button only, a count by the next one.
    if (job?.is_running) throw new Error("A deletion is running: stop it first.");
    if (job) job.is_stopped = true;
    const own = { bucket, prefix, is_versions: false, is_running: false, is_stopped: false };
    job = own;
    const versioning = await setting_of(bucket, "versioning").catch(() => null);
    const is_versioned = versioning !== null && child(versioning, "Status") !== "";
    await count_and_ask(own, { element, close, attempt, done, is_versioned, is_current: () => job === own });
  };
  return { element, ask };
}

const name_of = ({ bucket, prefix }) => (prefix ? `below ${bucket}/${prefix}` : `in the bucket ${bucket}`);

// Counts the objects of a job, and shows the question with their number.
async function count_and_ask(job, panel) {
  const { element, close, attempt, is_versioned, is_current } = panel;
  const counted = h("p", { role: "status" }, "Counting…");
  const stop = h("button", { type: "button", onclick: () => { job.is_stopped = true; } }, "Stop");
  element.replaceChildren(h("h3", {}, `Delete all ${name_of(job)}`), counted, h("p", {}, stop));
  element.hidden = false;
  stop.focus();
  job.is_stopped = false;
  let [number, size, from] = [0, 0, {}];
  try {
    while (from && !job.is_stopped) {
      const { objects, next } = await page_of(job.bucket, job.prefix, job.is_versions, from);
      number += objects.length;
      size += sum(objects.map((one) => one.size));
      counted.textContent = `${count(number)} counted…`;
      from = next;
    }
  } catch (error) {
    close();
    throw error;
  }
  if (!is_current()) return null;
  if (job.is_stopped) return close();
  Object.assign(job, { number });
  const what = job.is_versions ? "versions and delete markers" : number === 1 ? "object" : "objects";
  counted.textContent = `${number.toLocaleString()} ${what}, ${bytes(size)}.`;
  const go = h("button", { type: "button", className: "danger", disabled: number === 0,
    onclick: () => attempt(() => run(job, panel)) }, `Delete ${number.toLocaleString()} ${what}`);
  const versions = h("input", { type: "checkbox", checked: job.is_versions, onchange: () => attempt(() => {
    job.is_versions = versions.checked;
    return count_and_ask(job, panel);
  }) });
  element.lastChild.replaceChildren(go, " ", h("button", { type: "button", onclick: close }, "Cancel"));
  const note = is_versioned ? job.is_versions ? "Nothing of these objects remains." : "Each object gets a delete marker; its versions remain."
    : "This cannot be undone.";
  counted.after(h("p", { className: "warn" }, note),
    ...(is_versioned ? [h("p", {}, h("label", {}, versions, " also all versions and delete markers"))] : []));
  // A second press of Enter deletes nothing.
  element.lastChild.lastChild.focus();
  return null;
}

// Deletes page by page, and shows the progress.
async function run(job, { element, close, done }) {
  const bar = h("progress", { max: Math.max(job.number, 1), value: 0, "aria-label": "Deleted" });
  const state = h("p", { role: "status" });
  const stop = h("button", { type: "button", onclick: () => { job.is_stopped = true; } }, "Stop");
  element.replaceChildren(h("h3", {}, `Deleting all ${name_of(job)}`), bar, state, h("p", {}, stop));
  stop.focus();
  Object.assign(job, { is_running: true, is_stopped: false });
  let [deleted, failures, from, problem] = [0, [], {}, null];
  try {
    while (from && !job.is_stopped) {
      const { objects, next } = await page_of(job.bucket, job.prefix, job.is_versions, from);
      const failed = await delete_page(job.bucket, objects.map(({ key, version }) => ({ key, version: job.is_versions ? version : "" })));
      failures = [...failures, ...failed];
      deleted += objects.length - failed.length;
      bar.value = deleted;
      state.textContent = `${deleted.toLocaleString()} of ${job.number.toLocaleString()} deleted`;
      from = next;
    }
  } catch (error) {
    problem = error;
  }
  job.is_running = false;
  const outcome = [`${deleted.toLocaleString()} deleted.`, job.is_stopped ? "Stopped." : "",
    failures.length ? `${failures.length} were not deleted: ${failures[0].key}: ${failures[0].message}` : "", problem?.message ?? ""];
  state.textContent = outcome.filter(Boolean).join(" ");
  state.className = failures.length || problem ? "bad" : "";
  const ok = h("button", { type: "button", onclick: close }, "Close");
  element.lastChild.replaceChildren(ok);
  ok.focus();
  await done();
}
