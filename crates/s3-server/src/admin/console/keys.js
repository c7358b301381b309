// The view of keys: their users, rights and states. An administrator creates, changes, disables and
// revokes them. A secret key is shown once, after it was created.

import { add_view } from "/console.js";
import { clock, h, table } from "/console/elements.js";
import { choice_of, outcomes, sure } from "/serve/controls.js";
import { LIFETIMES, change_keys, key_list, secret_card } from "/serve/new_key.js";
import { policies_card } from "/serve/policies.js";
import { user_quotas } from "/serve/quota.js";

const COLUMNS = [{ name: "access key", className: "break" }, { name: "user", className: "break" },
  { name: "rights", className: "break" }, { name: "expires", className: "fixed" },
  { name: "actions", className: "fixed" }];
const RIGHTS = ["read", "write", "list", "delete", "admin"];
const { message, say, attempt } = outcomes();
const secret = secret_card({ say, attempt });
const content = h("div", { className: "card" });
const editor = h("div", { className: "card", hidden: true });
const quota = h("div", {});
const policies_of_users = policies_card(() => refresh());

// --- The list --------------------------------------------------------------------------------

function rights_of(key) {
  const grants = key.grants.map((grant) => `${grant.rights} = ${grant.scope}`);
  if (key.creates_buckets) grants.push("create-buckets");
  if (key.reads_metrics) grants.push("metrics");
  return h("ul", { className: "grants" }, grants.length ? grants.map((text) => h("li", {}, text))
    : h("li", { className: "soft" }, "none"));
}

function actions(key) {
  const { access_key, is_disabled } = key;
  const send = (name, done) => async () => {
    await change_keys({ change: name, access_key });
    hide(editor);
    await refresh();
    say(`${done} ${access_key}.`);
  };
  const toggle = is_disabled
    ? h("button", { className: "small", "aria-label": "Enable " + access_key,
      onclick: () => attempt(send("enable", "Enabled")) }, "Enable")
    : sure("Disable", access_key, () => attempt(send("disable", "Disabled")));
  return h("span", { className: "actions" },
    h("button", { className: "small", "aria-label": "Rights of " + access_key,
      onclick: () => edit(key) }, "Rights…"), " ", toggle, " ",
    sure("Revoke", access_key, () => attempt(send("remove", "Revoked"))));
}

async function refresh() {
  const { keys, login, quotas, policies, groups, read_only_reason } = await key_list();
  const is_fixed = (key) => read_only_reason || key.is_administrator || key.access_key === null;
  const state = (key) => {
    if (key.access_key === login) return h("span", {}, key.access_key, h("small", { className: "soft" }, " (you)"));
    return key.access_key ?? "without a signature";
  };
  const expires = (key) => {
    if (key.is_disabled) return h("span", { className: "warn" }, "disabled");
    if (key.expires_unix_s === null) return "never";
    const is_over = key.expires_unix_s * 1000 <= Date.now();
    return h("span", { className: is_over ? "warn" : "" }, (is_over ? "expired " : "") + clock(key.expires_unix_s * 1000));
  };
  const rows = keys.map((key) => [state(key), key.user ?? (key.is_administrator ? "administrator" : null),
    key.is_administrator ? "all" : rights_of(key), expires(key),
    is_fixed(key) ? "" : actions(key)]);
  const columns = read_only_reason ? COLUMNS.slice(0, 4) : COLUMNS;
  const create = h("button", { className: "main", onclick: () => edit(null) }, "Create a key…");
  const users = keys.map(({ user }) => user).filter((user) => user);
  const done = async (text) => {
    await refresh();
    say(text);
  };
  quota.replaceChildren(...(read_only_reason || !users.length ? [] : [user_quotas(quotas, users, { attempt, done })]));
  policies_of_users.update({ policies, groups, read_only_reason });
  content.replaceChildren(
    table("Keys", columns, rows.map((row) => row.slice(0, columns.length))),
    read_only_reason ? h("p", { className: "soft" }, "The keys cannot be changed here. " + read_only_reason)
      : h("p", {}, create));
}

// --- Rights and new keys ---------------------------------------------------------------------

function hide(element) {
  element.hidden = true;
  element.replaceChildren();
}

// Returns the row of a grant; a new one has a field for its scope.
function grant_row(grant) {
  const scope = grant ? h("b", {}, grant.scope)
    : h("input", { placeholder: "BUCKET/PREFIX or *", "aria-label": "Bucket, or bucket/prefix", spellcheck: false });
  const had = grant ? grant.rights.split(",") : [];
  const boxes = RIGHTS.map((right) => h("input", { type: "checkbox", checked: had.includes(right), value: right }));
  const value = () => ({ scope: grant ? grant.scope : scope.value.trim(),
    rights: boxes.filter((box) => box.checked).map((box) => box.value).join(",") });
  const element = h("fieldset", { className: "grant" },
    h("legend", {}, grant ? "Rights to " + grant.scope : "Rights to a bucket or prefix"),
    grant ? null : scope,
    boxes.map((box) => h("label", {}, box, " " + box.value)));
  return { element, value, is_used: () => grant || scope.value.trim() || boxes.some((box) => box.checked) };
}

// Shows the form for the rights of a key, or for a new key.
function edit(key) {
  say("");
  const rows = key ? key.grants.map(grant_row) : [];
  const grants = h("div", { className: "stack" });
  const more = () => {
    rows.push(grant_row(null));
    grants.append(rows[rows.length - 1].element);
  };
  grants.append(...rows.map((row) => row.element));
  more();
  const box = (checked) => h("input", { type: "checkbox", checked });
  const [buckets, metrics] = [box(key?.creates_buckets ?? false), box(key?.reads_metrics ?? false)];
  const user = h("input", { required: true, maxLength: 64, spellcheck: false, autocomplete: "off" });
  const lifetime = choice_of("Expires", LIFETIMES, "");
  const save = async () => {
    const fields = { grants: rows.filter((row) => row.is_used()).map((row) => row.value()),
      create_buckets: buckets.checked, metrics: metrics.checked };
    if (key) {
      await change_keys({ change: "rights", access_key: key.access_key, ...fields });
    } else {
      const expires_in_s = lifetime.value ? Number(lifetime.value) : null;
      secret.show(await change_keys({ change: "create", user: user.value.trim(), expires_in_s, ...fields }));
    }
    hide(editor);
    await refresh();
    say(key ? `Changed the rights of ${key.access_key}.` : "The key was created.");
  };
  const title = h("h2", { tabIndex: -1 }, key ? `Rights of ${key.access_key} (${key.user})` : "New key");
  const cancel = () => { hide(editor); say(""); content.querySelector("button")?.focus(); };
  editor.replaceChildren(title, h("form", { className: "stack",
    onsubmit: (event) => { event.preventDefault(); attempt(save); },
    onkeydown: (event) => { if (event.key === "Escape") cancel(); } },
  key ? null : h("p", { className: "fields" }, h("label", {}, "User ", user), " ", h("label", {}, "Expires ", lifetime)),
  grants,
  h("p", {}, h("button", { type: "button", className: "small", onclick: () => {
    more();
    grants.lastChild.querySelector("input").focus();
  } }, "Add a bucket or prefix")),
  h("p", { className: "fields" }, h("label", {}, buckets, " create buckets of any name"), " ",
    h("label", {}, metrics, " read /metrics")),
  h("p", {}, h("button", { className: "main" }, key ? "Save" : "Create"), " ",
    h("button", { type: "button", onclick: cancel }, "Cancel"))));
  editor.hidden = false;
  if (key) title.focus();
  else user.focus();
}

const element = h("div", { className: "stack" }, message, secret.element, editor, content, policies_of_users.element, quota,
  h("p", { className: "soft" }, "Changes are in force at once and are in the audit log; haul keys changes the same file."));
// A secret key does not stay in a view that is no longer shown. The frame hides the view in a listener
// of the same event.
addEventListener("hashchange", () => setTimeout(() => {
  if (!element.parentElement.hidden) return;
  secret.hide();
  hide(editor);
}));

add_view("keys", "Keys", {
  element,
  is_for_all_keys: true,
  refresh: async () => {
    try {
      await refresh();
    } catch (error) {
      quota.replaceChildren();
      content.replaceChildren(h("p", { className: "bad", role: "alert" }, error.message));
    }
  },
});
