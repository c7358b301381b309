// The view of buckets: their list, their settings, and their objects. The other files have the parts.

import { add_view } from "/console.js";
import { h } from "/console/elements.js";
import { show_buckets } from "/serve/buckets.js";
import { outcomes } from "/serve/controls.js";
import { deletion } from "/serve/deletion.js";
import { listing } from "/serve/listing.js";
import { crumbs, place } from "/serve/places.js";
import { show_settings } from "/serve/settings.js";
import { uploader } from "/serve/uploads.js";

const title = h("nav", { "aria-label": "Bucket and prefix", className: "crumbs" });
const { message, say, attempt } = outcomes();

const uploads = uploader({ attempt, done: () => refresh() });
const remover = deletion({ attempt, done: () => refresh() });
const list = listing({ message, say, attempt, remover });

// The part of the page below the messages: the uploads and the list, or the content.
const body = h("div", { className: "stack" });

function show_parts(...parts) {
  if (body.firstChild !== parts[0]) body.replaceChildren(...parts);
}

async function refresh() {
  const { bucket, page, prefix } = place();
  const hash = location.hash;
  // Each place has an element of its own: nothing of the place before can be seen or filled in while
  // this one is loaded, and an answer that arrives after the user has gone on changes nothing.
  const content = h("div", { className: "stack" });
  title.replaceChildren(...crumbs({ bucket, page, prefix }));
  const is_list = bucket !== "" && page === "";
  if (is_list) show_parts(uploads.element, list.element);
  else show_parts(content);
  const view = { bucket, prefix, content, say, attempt };
  try {
    if (is_list) await list.load(bucket, prefix);
    else if (bucket) await show_settings(view);
    else await show_buckets(view);
  } catch (error) {
    // Nothing of the list stays beside the message.
    if (location.hash === hash) show_parts(h("div"));
    throw error;
  }
}

const element = h("div", { className: "stack",
  ondragover: (event) => uploads.drag(event, true),
  ondragleave: (event) => uploads.drag(event, false),
  ondrop: (event) => uploads.drop(event) },
title, message, remover.element, body);

// The place that is shown; null if it must be loaded.
let shown = null;
addEventListener("hashchange", () => { if (location.hash !== shown) shown = null; });

add_view("objects", "Buckets", {
  element,
  is_for_all_keys: true,
  // A view is not loaded again when the page becomes visible, so that forms, pages that were added
  // and the focus stay.
  refresh: () => {
    if (location.hash === shown) return null;
    shown = location.hash;
    return attempt(() => refresh().catch((error) => {
      shown = null;
      throw error;
    }));
  },
});
