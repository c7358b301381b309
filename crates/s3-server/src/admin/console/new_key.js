// New keys: the card that shows a key pair once, and the creation of a key for one bucket.

import { get } from "/console.js";
import { h } from "/console/elements.js";
import { choice_of, form_of, outcomes } from "/serve/controls.js";
import { own_headers } from "/serve/s3.js";

const DAY_S = 86400;
export const LIFETIMES = [["", "never"], [String(DAY_S), "in 1 day"], [String(30 * DAY_S), "in 30 days"], [String(365 * DAY_S), "in 1 year"]];

// Requests a change of the keys, and returns its result.
export async function change_keys(fields) {
  const options = { method: "POST", headers: { ...own_headers(), "Content-Type": "application/json" },
    body: JSON.stringify(fields) };
  return (await get("/keys", options)).json();
}

// Returns the keys, and why they cannot be changed.
export const key_list = async () => (await get("/keys.json", { headers: own_headers() })).json();

// Returns a card for new key pairs: `show` shows one until it is closed. The server does not return
// the secret key again.
export function secret_card({ attempt, say }) {
  const element = h("div", { className: "card", hidden: true, role: "region", "aria-label": "New key" });
  const hide = () => {
    element.hidden = true;
    element.replaceChildren();
  };
  const field = (name, value) => {
    const input = h("input", { value, readOnly: true, "aria-label": name, spellcheck: false });
    const copy = h("button", { className: "small", "aria-label": "Copy the " + name, onclick: () => attempt(async () => {
      input.select();
      // Browsers give pages on public addresses without TLS no access to the clipboard.
      if (!navigator.clipboard) return say(`The ${name} is selected: press Ctrl+C.`);
      await navigator.clipboard.writeText(value);
      say(`The ${name} was copied.`);
    }) }, "Copy");
    return h("p", { className: "secret" }, h("span", {}, name), " ", input, " ", copy);
  };
  const show = ({ access_key, secret_key }) => {
    element.replaceChildren(h("h2", { tabIndex: -1 }, "New key"),
      field("access key", access_key), field("secret key", secret_key),
      h("p", { className: "warn" }, "The secret key is shown only now: copy it before you close this."),
      h("p", {}, h("button", { onclick: hide }, "Close")));
    element.hidden = false;
    element.querySelector("h2").focus();
  };
  return { element, show, hide };
}

// Returns the content of the card in a bucket's settings that creates a key for this bucket.
export async function bucket_key({ bucket }) {
  const { message, say, attempt } = outcomes();
  const { read_only_reason } = await key_list();
  if (read_only_reason) return h("p", { className: "soft" }, "Keys cannot be created here. " + read_only_reason);
  const secret = secret_card({ say, attempt });
  // A secret key does not stay in a view that is no longer shown.
  addEventListener("hashchange", secret.hide, { once: true });
  const user = h("input", { required: true, maxLength: 64, spellcheck: false, autocomplete: "off", value: bucket });
  const lifetime = choice_of("Expires", LIFETIMES, "");
  const boxes = ["read", "write", "list", "delete"].map((right) => h("input", { type: "checkbox", checked: true, value: right }));
  const create = () => attempt(async () => {
    const rights = boxes.filter((box) => box.checked).map((box) => box.value).join(",");
    if (!rights) throw new Error("Choose at least one right.");
    const expires_in_s = lifetime.value ? Number(lifetime.value) : null;
    secret.show(await change_keys({ change: "create", user: user.value.trim(), expires_in_s,
      grants: [{ scope: bucket, rights }], create_buckets: false, metrics: false }));
  });
  return [secret.element, message, form_of(create, h("p", { className: "fields" },
    h("label", {}, "User ", user), h("label", {}, "Expires ", lifetime)),
  h("p", { className: "fields" }, boxes.map((box) => h("label", {}, box, " " + box.value))),
  h("p", {}, h("button", { className: "main" }, "Create a key"))),
  h("p", { className: "soft" }, "An access key and a secret key for an application, with these rights to this bucket only.")];
}
