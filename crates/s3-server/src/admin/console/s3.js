// S3 requests to `/s3/` of the admin address, which the server executes with the rights of the key
// that logged in, and what their documents consist of.

import { show_login } from "/console.js";

// Returns the headers of requests of the console. A web page of another origin cannot send this one
// without a permission that is never given, and one at another port of the host does not know the
// token, which the login page has stored.
export const own_headers = () => ({ "X-Haul-Console": localStorage.getItem("haul-page-token") ?? "1" });

// `encodeURIComponent` of the whole key also encodes its slashes, so that `..` in it stays.
export const path_of = (bucket, key) =>
  "/s3/" + bucket + (key === undefined ? "" : "/" + encodeURIComponent(key));

// Returns the error in a response; its `code` is that of S3.
export async function failure_of(response) {
  const text = await response.text();
  if (response.status === 401) show_login();
  const xml = new DOMParser().parseFromString(text, "application/xml");
  const part = (name) => xml.querySelector("Error > " + name)?.textContent;
  const message = part("Message") ? `${part("Code")}: ${part("Message")}` : text.trim() || response.statusText;
  return Object.assign(new Error(message), { code: part("Code") ?? "", status: response.status });
}

export async function s3(path, options = {}) {
  const response = await fetch(path, { ...options, headers: { ...own_headers(), ...options.headers } });
  if (!response.ok) throw await failure_of(response);
  return response;
}

const parsed = async (response) => new DOMParser().parseFromString(await response.text(), "application/xml");

export const xml_of = async (path) => parsed(await s3(path));

export const decode = (text) => decodeURIComponent(text.replaceAll("+", " "));
export const child = (element, name) => element.querySelector(":scope > " + name)?.textContent ?? "";

// --- Settings of buckets ---------------------------------------------------------------------

// Returns the response with a bucket's setting; null if it is not set.
async function setting_response(bucket, name) {
  try {
    return await s3(`${path_of(bucket)}?${name}`);
  } catch (error) {
    if (error.status === 404 && error.code !== "NoSuchBucket") return null;
    throw error;
  }
}

// Returns the root element of a bucket's setting; null if it is not set.
export async function setting_of(bucket, name) {
  const response = await setting_response(bucket, name);
  return response && (await parsed(response)).documentElement;
}

export async function setting_text_of(bucket, name) {
  const response = await setting_response(bucket, name);
  return response && response.text();
}

// Stores a setting: a text, or an element of XML.
export function put_setting(bucket, name, setting) {
  const is_text = typeof setting === "string";
  return s3(`${path_of(bucket)}?${name}`, { method: "PUT", body: is_text ? setting : xml_text(setting) });
}

export const delete_setting = (bucket, name) => s3(`${path_of(bucket)}?${name}`, { method: "DELETE" });

// --- XML -------------------------------------------------------------------------------------

const XML = document.implementation.createDocument(null, null);

// Returns an element without a namespace. Children are elements and texts; null ones are left out.
export function node(name, ...children) {
  const element = XML.createElement(name);
  element.append(...children.flat().filter((one) => one !== null).map((one) => (one instanceof Node ? one : String(one))));
  return element;
}

// Returns a copy of an element without namespaces.
export const plain = (element) => node(element.localName,
  ...(element.children.length ? [...element.children].map(plain) : [element.textContent]));

// An XML parser would read a bare carriage return as a line feed.
const escaped = (text) => text.replace(/[&<>\r]/g, (found) => `&#${found.charCodeAt(0)};`);

// Writes an element, with each child on a line of its own.
export function xml_text(element, indent = "") {
  const { localName: name, children } = element;
  if (!children.length) return `${indent}<${name}>${escaped(element.textContent)}</${name}>\n`;
  const lines = [...children].map((one) => xml_text(one, indent + "  "));
  return `${indent}<${name}>\n${lines.join("")}${indent}</${name}>\n`;
}
