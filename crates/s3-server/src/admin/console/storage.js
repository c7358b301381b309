// The view of the store: how its disks are used, and the state of each disk, damage, scrubs,
// lifecycle rules and the copy.

import { add_view, get } from "/console.js";
import { bytes, count, h, span, sum, table, time } from "/console/elements.js";

const bar = h("div", { className: "usage", role: "img" });
const legend = h("div", { className: "legend" });
const where = h("p", { className: "soft" });
const facts = h("div", { className: "card" });
const damage = h("div", { className: "card" });
const disks = h("div", { className: "card stack", hidden: true });
const targets = h("div", { className: "card stack", hidden: true });

function draw_usage(sample) {
  const { store } = sample;
  const reserved = Math.max(store.volume_bytes - store.live_volume_bytes - store.dead_volume_bytes, 0);
  const own = store.volume_bytes + store.big_file_bytes;
  const used = Math.max((sample.file_system_bytes ?? own) - (sample.free_bytes ?? 0), own);
  const parts = [
    ["live in volumes", "--c1", store.live_volume_bytes],
    ["dead in volumes", "--c3", store.dead_volume_bytes],
    ["reserved in volumes", "--c7", reserved],
    ["big files", "--c0", store.big_file_bytes],
    ["other files", "--c6", used - own],
    ["free", "--grid", sample.free_bytes ?? 0],
  ];
  const whole = Math.max(sum(parts.map(([, , value]) => value)), 1);
  if (!bar.children.length) {
    for (const [name, colour] of parts) {
      const part = bar.appendChild(h("div", { className: "bar-part", title: name }));
      const label = legend.appendChild(h("span", { className: "swatch" }, name, h("b")));
      part.style.background = `var(${colour})`;
      label.style.setProperty("--colour", `var(${colour})`);
    }
  }
  parts.forEach(([, , value], at) => {
    // Small values stay visible.
    bar.children[at].style.width = (value ? Math.max(100 * value / whole, .3) : 0) + "%";
    legend.children[at].lastChild.textContent = bytes(value);
  });
  bar.setAttribute("aria-label", parts.map(([name, , value]) => `${name} ${bytes(value)}`).join(", "));
}

function facts_of({ store, lifecycle_error, replication }) {
  const rows = [
    ["Buckets", count(store.buckets)],
    ["Objects", `${count(store.objects)}, ${bytes(store.object_bytes)}`],
    ["Unfinished uploads", count(store.uploads)],
    ["Volumes", `${count(store.volumes)}, ${bytes(store.volume_bytes)}`],
    ["Big files", `${count(store.big_files)}, ${bytes(store.big_file_bytes)}`],
    ["Room for small objects", store.free_bytes === null ? "–" : bytes(store.free_bytes)],
    ["Index", `${bytes(store.index_run_bytes)} on disk, ${bytes(store.index_recent_bytes)} in memory`],
    ["Log", `${count(store.log_records)} records in ${count(store.log_batches)} batches, ` +
      `${count(store.log_syncs)} syncs`],
  ];
  const { lifecycle } = store;
  if (lifecycle.sweeps || lifecycle.errors || lifecycle.sweeping) {
    const ended = lifecycle.last_sweep_unix_s;
    const last = ended === null ? ""
      : `; last sweep ${span(Math.max(Date.now() / 1000 - ended, 0))} ago, in ` +
        time(lifecycle.last_sweep_s * 1e6);
    rows.push(["Lifecycle", `${count(lifecycle.expired_objects)} objects and ` +
      `${count(lifecycle.expired_versions)} versions ` +
      `(${bytes(lifecycle.expired_bytes)}) expired, ${count(lifecycle.aborted_uploads)} uploads ` +
      `aborted${last}${lifecycle.sweeping ? "; sweeping now" : ""}`]);
    if (lifecycle.errors) {
      rows.push(["Lifecycle errors", h("span", { className: "bad" },
        `${count(lifecycle.errors)}: ${lifecycle_error}`)]);
    }
  }
  if (replication) {
    const state = replication.stopped ?? replication.last_error;
    rows.push(["Copy", `${replication.behind_s.toFixed(1)} s behind, ${bytes(replication.sent_bytes)} sent`]);
    if (state) rows.push(["Copy failed", h("span", { className: "bad" }, state)]);
  }
  return rows;
}

function damage_of({ store }) {
  const flag = (is_bad, text) => h("span", { className: is_bad ? "bad" : "good" }, text);
  return [
    ["Writes", flag(store.latched, store.latched ? "refused after a failed sync; restart the server"
      : "accepted")],
    ["Damaged places", flag(store.damaged_places, count(store.damaged_places))],
    ["Damage that hides keys", flag(store.hidden_places, count(store.hidden_places))],
    ["Complete scrubs", count(store.scrubs)],
    ["Bytes read by scrubs", bytes(store.scrubbed_bytes)],
    ["What to do", store.damaged_places
      ? "haul store verify lists the objects; restore them from a copy" : "nothing"],
  ];
}

const DISK_COLUMNS = [{ name: "directory", className: "break" }, { name: "state", className: "break" },
  { name: "objects", number: true }, { name: "volumes", number: true }, { name: "free", number: true }];

// A disk that has kept a request waiting for this long is shown as not responding.
const LONG_WAIT_SECONDS = 5;

function state_of({ missing, latched, waiting_seconds }) {
  if (missing !== null) return h("span", { className: "bad" }, `missing: ${missing}`);
  if (latched) {
    return h("span", { className: "bad" }, "a sync failed: its writes are refused until a restart");
  }
  if (waiting_seconds >= LONG_WAIT_SECONDS) {
    return h("span", { className: "bad" }, `does not respond for ${span(waiting_seconds)}`);
  }
  return h("span", { className: "good" }, "works");
}

// Shows the disks of a store over several.
function draw_disks(pool) {
  disks.hidden = !pool;
  if (!pool) return;
  const rows = pool.members.map((disk) => [disk.directory, state_of(disk),
    disk.objects === null ? "–" : count(disk.objects),
    disk.volume_bytes === null ? "–" : bytes(disk.volume_bytes),
    disk.free_bytes === null ? "–" : `${bytes(disk.free_bytes)} of ${bytes(disk.file_system_bytes)}`]);
  const moves = !pool.moving_slots ? "No keys are being moved between disks."
    : `Keys of ${count(pool.moving_slots)} of 4096 slots are being moved between disks: ` +
      `${count(pool.moved_keys)} keys, ${bytes(pool.moved_bytes)} since the start.`;
  disks.replaceChildren(table("Disks", DISK_COLUMNS, rows), h("p", { className: "soft" }, moves));
  if (pool.moving_slots && pool.last_move_error) {
    disks.append(h("p", { className: "bad" }, `A key cannot be moved: ${pool.last_move_error}`));
  }
}

const TARGET_COLUMNS = [{ name: "target" }, { name: "state", className: "break" }, { name: "queued", number: true },
  { name: "delivered", number: true }, { name: "dropped", number: true }];

// Shows the targets of bucket notifications.
function draw_targets(found) {
  targets.hidden = !found.length;
  if (!found.length) return;
  const state = ({ error, failing_since_unix_s: since }) => (error === null
    ? h("span", { className: "good" }, "accepts events")
    : since === null ? h("span", { className: "bad" }, error)
    : h("span", { className: "bad" }, `has failed for ${span(Math.max(Date.now() / 1000 - since, 0))}: ${error}`));
  const rows = found.map((target) => [target.name, state(target),
    `${count(target.queued_events)} (${bytes(target.queued_bytes)})`,
    count(target.delivered_events), count(target.dropped_events)]);
  targets.replaceChildren(table("Event targets", TARGET_COLUMNS, rows));
}

async function refresh() {
  const sample = await (await get("/stats.json")).json();
  where.textContent = `S3 on ${sample.address}, data in ${sample.directory}`;
  draw_usage(sample);
  draw_disks(sample.disks);
  draw_targets(sample.events);
  const columns = [{ name: "name" }, { name: "value" }];
  facts.replaceChildren(table("Store", columns, facts_of(sample)));
  damage.replaceChildren(table("Damage and scrub, since start", columns, damage_of(sample)));
}

// --- The map of volumes ----------------------------------------------------------------------

const MAP_COLUMNS = [{ name: "volume" }, { name: "map" }, { name: "live", number: true },
  { name: "dead", number: true }, { name: "size", number: true }];

// Returns the cells of a volume: dead ones in one color, live ones in another, mixed ones between.
function cells_of(volume) {
  const text = `${bytes(volume.live_bytes)} live, ${bytes(volume.dead_bytes)} dead`;
  const row = h("div", { className: "cells", role: "img", "aria-label": text });
  for (const live of volume.cells) {
    const cell = row.appendChild(h("i"));
    if (live === null) continue;
    cell.style.background = `color-mix(in srgb, var(--c1) ${12.5 * live}%, var(--c3))`;
  }
  return row;
}

async function read_map() {
  read.disabled = true;
  read.textContent = "Reading…";
  try {
    const volumes = await (await get("/volumes.json", { signal: AbortSignal.timeout(120000) })).json();
    const rows = volumes.map((volume) => [volume.number, cells_of(volume), bytes(volume.live_bytes),
      bytes(volume.dead_bytes), bytes(volume.bytes)]);
    map.replaceChildren(table("Volumes, in the order of the log", MAP_COLUMNS, rows));
    read.textContent = "Read again";
  } catch (error) {
    map.replaceChildren(h("p", { className: "bad", role: "alert" }, error.message));
    read.textContent = "Try again";
  }
  read.disabled = false;
}

const map = h("div", {}, h("p", { className: "soft" },
  "Reads the index of each volume, and the volume that is being written as a whole."));
const read = h("button", { onclick: read_map }, "Read the map of volumes");

const element = h("div", { className: "stack" },
  where,
  h("div", { className: "card" }, h("h3", {}, "Use of the disks"), bar, legend),
  disks,
  targets,
  h("div", { className: "figures" }, facts, damage),
  h("div", { className: "card stack" }, read, map));

add_view("storage", "Storage", { element, refresh, period_ms: 5000 });
