// Buttons that ask before they act, lines for the outcomes of actions, and editors of documents.

import { clock, h } from "/console/elements.js";

// Returns a button whose second press acts; the first one only asks.
export function sure(text, name, action) {
  const label = () => button.setAttribute("aria-label",
    button.dataset.sure ? `Really ${text.toLowerCase()} ${name}?` : `${text} ${name}`);
  const ask = (is_asked) => {
    button.dataset.sure = is_asked ? "1" : "";
    button.textContent = is_asked ? "Really?" : text;
    label();
  };
  const button = h("button", { type: "button", className: "small danger", onblur: () => ask(false),
    onclick: () => {
      if (!button.dataset.sure) return ask(true);
      ask(false);
      action();
    } }, text);
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

// Returns a local time, whose tooltip has the exact one.
export function moment(unix_ms) {
  const exact = new Date(unix_ms).toISOString();
  return h("time", { dateTime: exact, title: exact }, clock(unix_ms));
}

// Returns a choice with `[value, name]` pairs.
export const choice_of = (label, options, value, onchange) =>
  h("select", { "aria-label": label, onchange }, options.map(([one, name]) =>
    h("option", { value: one, selected: one === value }, name)));

// Returns a form, whose `onsubmit` is an action of the page.
export const form_of = (onsubmit, ...children) =>
  h("form", { className: "stack", onsubmit: (event) => { event.preventDefault(); onsubmit(); } }, ...children);

// Returns the editor of a document. `save` is called with its text, `remove` deletes the setting.
export function editor(label, text, { save, remove, templates = [] }) {
  const area = h("textarea", { value: text, rows: Math.min(Math.max(text.split("\n").length, 6), 24), spellcheck: false, "aria-label": label });
  const template = templates.length ? choice_of("Template: " + label, [["", "Template…"],
    ...templates.map(({ name }, at) => [String(at), name])], "", () => {
    if (template.value === "") return;
    area.value = templates[Number(template.value)].text();
    template.value = "";
    area.focus();
  }) : null;
  return form_of(() => save(area.value), area, h("p", { className: "fields" },
    h("button", { className: "main" }, "Save"), template,
    remove ? sure("Remove", label, remove) : null));
}
