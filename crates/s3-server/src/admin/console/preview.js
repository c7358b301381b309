// Previews of images, PDF documents and text. Nothing of an object runs in the console: an image is
// drawn into a canvas, text is text, and a document is loaded as PDF, whatever its content type is.

import { bytes, h } from "/console/elements.js";
import { path_of, s3 } from "/serve/s3.js";

// The largest image and document that are previewed, and the length of text that is, in bytes.
const IMAGE_BYTES_MAX = 32 << 20;
const PDF_BYTES_MAX = 64 << 20;
const TEXT_BYTES_MAX = 256 << 10;

const starts = (data, text, at = 0) => [...text].every((one, index) => data[at + index] === one.charCodeAt(0));

// Returns the type in the first bytes of a file; null for one without a preview of its own. SVG, which
// may contain scripts, is text.
function type_of(data) {
  if (starts(data, "\x89PNG\r\n")) return "image/png";
  if (starts(data, "\xff\xd8\xff")) return "image/jpeg";
  if (starts(data, "GIF8")) return "image/gif";
  if (starts(data, "RIFF") && starts(data, "WEBP", 8)) return "image/webp";
  if (starts(data, "ftypavif", 4)) return "image/avif";
  if (starts(data, "%PDF-")) return "application/pdf";
  return null;
}

// Returns the first bytes of an object.
async function head_of(bucket, key, size) {
  if (!size) return new Uint8Array();
  const response = await s3(path_of(bucket, key), { headers: { Range: `bytes=0-${TEXT_BYTES_MAX - 1}` } });
  return new Uint8Array(await response.arrayBuffer());
}

async function all_of(bucket, { key, size }, size_max) {
  if (size > size_max) throw new Error(`It has ${bytes(size)}; previews have at most ${bytes(size_max)}. Download it.`);
  return (await s3(path_of(bucket, key))).arrayBuffer();
}

async function image(bucket, object, type) {
  const data = await all_of(bucket, object, IMAGE_BYTES_MAX);
  const bitmap = await createImageBitmap(new Blob([data], { type }))
    .catch(() => { throw new Error("The browser cannot show the image."); });
  const canvas = h("canvas", { width: bitmap.width, height: bitmap.height, role: "img", "aria-label": object.key });
  canvas.getContext("2d").drawImage(bitmap, 0, 0);
  bitmap.close();
  return { element: canvas, note: `${canvas.width} × ${canvas.height} pixels` };
}

async function pdf(bucket, object) {
  const data = await all_of(bucket, object, PDF_BYTES_MAX);
  // The type of the blob is fixed, so the browser never reads the bytes as HTML.
  const url = URL.createObjectURL(new Blob([data], { type: "application/pdf" }));
  return { element: h("iframe", { src: url, title: object.key }), close: () => URL.revokeObjectURL(url) };
}

function text(data, size) {
  if (data.includes(0)) throw new Error("It is neither an image, nor a PDF document, nor text. Download it.");
  const note = size > data.length ? `the first ${bytes(data.length)} of ${bytes(size)}` : bytes(size);
  return { element: h("pre", { tabIndex: 0 }, new TextDecoder().decode(data)), note };
}

async function content_of(bucket, object) {
  const data = await head_of(bucket, object.key, object.size);
  const type = type_of(data);
  if (type === "application/pdf") return pdf(bucket, object);
  return type ? image(bucket, object, type) : text(data, object.size);
}

// Shows an object in a dialog, until it is closed.
export async function show_preview(bucket, object) {
  const body = h("div", { className: "preview" }, "Loading…");
  const note = h("span", { className: "soft" });
  let close = () => {};
  const button = h("button", { type: "button", onclick: () => dialog.close() }, "Close");
  const dialog = h("dialog", { "aria-label": "Preview of " + object.key, onclose: () => {
    close();
    dialog.remove();
  } }, h("p", { className: "fields" }, h("b", {}, object.key), note,
    button), body);
  document.body.append(dialog);
  dialog.showModal();
  try {
    const content = await content_of(bucket, object);
    close = content.close ?? close;
    // It was closed before it was loaded.
    if (!dialog.open) return close();
    note.textContent = content.note ?? bytes(object.size);
    body.replaceChildren(content.element);
    // The viewer of a document takes the focus when it is loaded, and with it the Escape key.
    if (content.close) addEventListener("blur", () => setTimeout(() => button.focus()), { once: true });
  } catch (error) {
    body.replaceChildren(h("p", { className: "warn", role: "alert" }, error.message));
  }
  return null;
}
