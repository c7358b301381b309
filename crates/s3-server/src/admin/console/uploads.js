// Uploads of files and folders, several at a time, with their progress.

import { bytes, h } from "/console/elements.js";
import { place } from "/serve/places.js";
import { failure_of, own_headers, path_of } from "/serve/s3.js";

// Uploads at the same time: small objects then share syncs.
const PARALLEL = 4;
// The time for which an upload that succeeded stays in the list, in milliseconds.
const SHOWN_MS = 10000;
// The maximum number of uploads in the list that succeeded or failed.
const LINES_MAX = 50;

// Sends a file by XMLHttpRequest, which reports the progress of the body. Returns `true` if it was
// stored.
function send({ bucket, key, file }, lines, running) {
  const bar = h("progress", { max: 1, value: 0, "aria-label": key });
  const state = h("span", { className: "soft" });
  const line = h("li", {}, key + " ", bar, " ", state);
  lines.prepend(line);
  while (lines.children.length > LINES_MAX) lines.lastChild.remove();
  return new Promise((done) => {
    const request = new XMLHttpRequest();
    running.add(request);
    request.open("PUT", path_of(bucket, key));
    for (const [name, value] of Object.entries(own_headers())) request.setRequestHeader(name, value);
    if (file.type) request.setRequestHeader("Content-Type", file.type);
    request.upload.onprogress = (event) => {
      bar.value = event.total ? event.loaded / event.total : 1;
      state.textContent = `${bytes(event.loaded)} of ${bytes(event.total)}`;
    };
    request.onloadend = async () => {
      running.delete(request);
      if (request.status === 200) {
        bar.value = 1;
        state.textContent = `uploaded, ${bytes(file.size)}`;
        setTimeout(() => line.remove(), SHOWN_MS);
      } else {
        const response = request.status ? new Response(request.responseText, { status: request.status }) : null;
        state.textContent = response ? (await failure_of(response)).message : "not sent, or the connection was lost";
        state.className = "bad";
      }
      done(request.status === 200);
    };
    request.send(file);
  });
}

// Uploads all `{ bucket, key, file }`, and shows how many are done.
async function send_all(uploads, { lines, summary }) {
  const [waiting, running] = [[...uploads], new Set()];
  let [stored, failed] = [0, 0];
  const stop = h("button", { type: "button", className: "small", onclick: () => {
    waiting.length = 0;
    for (const request of running) request.abort();
  } }, "Stop");
  const text = h("span", { role: "status" });
  const update = () => {
    text.textContent = `${stored} of ${uploads.length} uploaded` + (failed ? `, ${failed} failed` : "");
  };
  summary.replaceChildren(text, " ", stop);
  const next = async () => {
    for (let one = waiting.shift(); one; one = waiting.shift()) {
      if (await send(one, lines, running)) stored++;
      else failed++;
      update();
    }
  };
  update();
  await Promise.all(Array.from({ length: PARALLEL }, next));
  stop.remove();
  text.className = failed || stored < uploads.length ? "bad" : "";
}

// Returns the files of dropped items as `{ file, path }`. Folders are read completely.
async function dropped_files(transfer) {
  // The items exist only until the event ends: their entries are taken before the first wait.
  const items = [...transfer.items].filter((item) => item.kind === "file")
    .map((item) => ({ entry: item.webkitGetAsEntry?.(), file: item.getAsFile() }));
  const found = [];
  const read = async (entry) => {
    if (entry.isFile) {
      const file = await new Promise((done, fail) => { entry.file(done, fail); });
      found.push({ file, path: entry.fullPath.replace(/^\//, "") });
      return;
    }
    const reader = entry.createReader();
    // Each call returns some of the entries, and none after the last.
    for (;;) {
      const entries = await new Promise((done, fail) => { reader.readEntries(done, fail); });
      if (!entries.length) return;
      for (const one of entries) await read(one);
    }
  };
  for (const { entry, file } of items) {
    if (entry?.isDirectory) await read(entry);
    else if (file) found.push({ file, path: file.name });
  }
  return found;
}

// Returns the part of the page for uploads below the place that is shown: `element`, and the
// handlers `drag` and `drop`. `done` is called after uploads.
export function uploader({ attempt, done }) {
  const lines = h("ul", { className: "uploads", "aria-label": "Uploads" });
  const summary = h("p", { className: "soft" });
  const upload = async (files, { bucket, prefix }) => {
    const uploads = files.map(({ file, path }) => ({ bucket, key: prefix + path, file }));
    if (!uploads.length) throw new Error("There are no files in it.");
    await send_all(uploads, { lines, summary });
    await done();
  };
  const field = (id, is_folder) => {
    const input = h("input", { type: "file", id, multiple: true, webkitdirectory: is_folder, onchange: async () => {
      const files = [...input.files].map((file) => ({ file, path: file.webkitRelativePath || file.name }));
      await attempt(() => upload(files, place()));
      input.value = "";
    } });
    return input;
  };
  const element = h("div", { className: "card drop" },
    h("p", { className: "fields" },
      h("label", { htmlFor: "upload-files" }, "Upload files, or drop them here: "), field("upload-files", false),
      h("label", { htmlFor: "upload-folder" }, "Upload a folder: "), field("upload-folder", true)),
    summary, lines);
  const accepts = (event) => {
    if (!element.isConnected || !event.dataTransfer?.types.includes("Files")) return false;
    event.preventDefault();
    return true;
  };
  return {
    element,
    drag: (event, is_over) => { element.classList.toggle("over", is_over && accepts(event)); },
    drop: (event) => {
      element.classList.remove("over");
      if (!accepts(event)) return;
      // The files are taken in the event, before `attempt` waits.
      const [files, target] = [dropped_files(event.dataTransfer), place()];
      attempt(async () => upload(await files, target));
    },
  };
}
