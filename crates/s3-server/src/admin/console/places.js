// The places in the view of buckets, which are in the hash of the URL: `#objects`,
// `#objects/BUCKET/PREFIX`, and `#objects/BUCKET?settings`.

import { h } from "/console/elements.js";

export function place() {
  const [, name = "", ...prefix] = location.hash.slice(1).split("/");
  const [bucket, page = ""] = name.split("?");
  return { bucket, page, prefix: decodeURIComponent(prefix.join("/")) };
}

export const hash_of = (bucket, prefix) =>
  "#objects/" + bucket + (prefix ? "/" + encodeURIComponent(prefix) : "");

export const settings_hash_of = (bucket) => `#objects/${bucket}?settings`;

// Returns the part of a key below a prefix, as text for a link.
export const name_below = (prefix, key) => key.slice(prefix.length) || "(empty)";

export const prefix_link = (bucket, prefix, key) =>
  h("a", { href: hash_of(bucket, key) }, name_below(prefix, key));

// Returns links to the buckets, the bucket and each prefix above a prefix.
export function crumbs({ bucket, page, prefix }) {
  if (!bucket) return [h("b", {}, "Buckets")];
  const parts = prefix.split("/").slice(0, -1);
  const links = parts.map((part, at) => [" / ",
    h("a", { href: hash_of(bucket, parts.slice(0, at + 1).join("/") + "/") }, part || "(empty)")]);
  const other = page ? h("a", { className: "aside", href: hash_of(bucket) }, "Objects")
    : h("a", { className: "aside", href: settings_hash_of(bucket) }, "Settings");
  return [h("a", { href: "#objects" }, "Buckets"), " / ", h("a", { href: hash_of(bucket) }, bucket),
    ...links.flat(), ...(page ? [" / ", h("b", {}, "Settings")] : []), " ", other];
}
