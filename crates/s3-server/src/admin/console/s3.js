// S3 requests to `/s3/` of the admin address, which the server executes with the rights of the key
// that logged in, and buttons that ask before they act.

import { h } from "/console/elements.js";

// A web page of another origin cannot send this header without a permission that is never given.
export const OWN = { "X-Haul-Console": "1" };

// `encodeURIComponent` of the whole key also encodes its slashes, so that `..` in it stays.
export const path_of = (bucket, key) =>
  "/s3/" + bucket + (key === undefined ? "" : "/" + encodeURIComponent(key));

export async function failure_of(response) {
  const text = await response.text();
  const xml = new DOMParser().parseFromString(text, "application/xml");
  const part = (name) => xml.querySelector("Error > " + name)?.textContent;
  return new Error(part("Message") ? `${part("Code")}: ${part("Message")}` : text.trim() || response.statusText);
}

export async function s3(path, options = {}) {
  const response = await fetch(path, { ...options, headers: { ...OWN, ...options.headers } });
  if (!response.ok) throw await failure_of(response);
  return response;
}

export async function xml_of(path) {
  return new DOMParser().parseFromString(await (await s3(path)).text(), "application/xml");
}

export const decode = (text) => decodeURIComponent(text.replaceAll("+", " "));
export const child = (element, name) => element.querySelector(":scope > " + name)?.textContent ?? "";

// Returns a button whose second press acts; the first one only asks.
export function sure(text, name, action) {
  const label = () => button.setAttribute("aria-label",
    button.dataset.sure ? `Really ${text.toLowerCase()} ${name}?` : `${text} ${name}`);
  const ask = (is_asked) => {
    button.dataset.sure = is_asked ? "1" : "";
    button.textContent = is_asked ? "Really?" : text;
    label();
  };
  const button = h("button", { className: "small danger", onblur: () => ask(false),
    onclick: () => (button.dataset.sure ? action() : ask(true)) }, text);
  label();
  return button;
}

// Returns a line for the outcomes of actions, a function that writes it, and one that runs an action
// and shows its failure.
export function outcomes() {
  const message = h("p", { className: "message", role: "status" });
  const say = (text, is_bad = false) => {
    message.textContent = text;
    message.classList.toggle("bad", is_bad);
  };
  const attempt = async (action) => {
    try {
      say("");
      await action();
    } catch (error) {
      say(error.message, true);
    }
  };
  return { message, say, attempt };
}
