// The policies of users and groups: what they allow and who has them, and forms that change them.

import { h, table } from "/console/elements.js";
import { form_of, outcomes, sure } from "/serve/controls.js";
import { change_keys } from "/serve/new_key.js";
import { pretty, written } from "/serve/policy.js";

const TEMPLATE = written([
  { Effect: "Allow", Action: ["s3:ListBucket", "s3:GetObject"], Resource: ["arn:aws:s3:::BUCKET", "arn:aws:s3:::BUCKET/*"] },
]);

const columns = (...names) => [...names.map((name) => ({ name, className: "break" })), { name: "actions", className: "fixed" }];
const names_in = (text) => text.split(/[\s,]+/).filter((name) => name);
const field = (value, options = {}) =>
  h("input", { value, maxLength: 4096, spellcheck: false, autocomplete: "off", autocapitalize: "none", ...options });

// Returns the card of policies and groups, and a function that shows the current ones, which `refresh`
// reads again. A form that is open stays when the lists change.
export function policies_card(refresh) {
  const { message, say, attempt } = outcomes();
  const lists = h("div", { className: "stack" });
  const editor = h("div", { className: "stack" });
  const close = () => editor.replaceChildren();
  const change = (fields, text) => attempt(async () => {
    await change_keys(fields);
    close();
    await refresh();
    say(text);
  });
  // Shows a form in place of any other. `fields` are pairs of a label and an element.
  const show = (title, fields, more, save) => {
    say("");
    const cancel = h("button", { type: "button", onclick: close }, "Cancel");
    const form = form_of(save, h("h3", {}, title),
      h("p", { className: "fields" }, fields.map(([label, input]) => h("label", {}, label + " ", input))), more,
      h("p", {}, h("button", { className: "main" }, "Save"), " ", cancel));
    form.addEventListener("keydown", (event) => { if (event.key === "Escape") close(); });
    editor.replaceChildren(form);
    (form.querySelector("input:enabled") ?? form.querySelector("textarea")).focus();
  };

  const edit_policy = (policy, groups) => {
    const name = field(policy?.name ?? "", { required: true, disabled: Boolean(policy) });
    const users = field(policy?.users.join(", ") ?? "");
    const in_groups = field(groups.join(", "));
    const text = policy ? pretty(policy.text) : TEMPLATE;
    const area = h("textarea", { value: text, rows: Math.min(Math.max(text.split("\n").length, 8), 24), spellcheck: false,
      "aria-label": "Policy as JSON" });
    show(policy ? `Policy ${policy.name}` : "New policy", [["Name", name], ["Users", users], ["Groups", in_groups]], area,
      () => change({ change: "put-policy", policy: name.value.trim(), text: area.value, users: names_in(users.value),
        groups: names_in(in_groups.value), shown: policy && { text: policy.text, users: policy.users, groups } },
      `The policy ${name.value.trim()} is in force.`));
  };
  const edit_group = (group) => {
    const name = field(group?.name ?? "", { required: true, disabled: Boolean(group) });
    const users = field(group?.users.join(", ") ?? "", { size: 40 });
    show(group ? `Group ${group.name}` : "New group", [["Name", name], ["Users", users]], null,
      () => change({ change: "group", group: name.value.trim(), users: names_in(users.value), shown: group && { users: group.users } },
        `Changed the group ${name.value.trim()}.`));
  };

  const button = (text, name, onclick) => h("button", { className: "small", "aria-label": `${text} ${name}`, onclick }, text);
  const update = ({ policies, groups, read_only_reason }) => {
    const policy_row = (policy) => {
      const { name, users } = policy;
      const in_groups = groups.filter((group) => group.policies.includes(name)).map((group) => group.name);
      return [name, [...users, ...in_groups.map((group) => "group " + group)].join(", "),
        h("span", { className: "actions" }, button("Edit…", name, () => edit_policy(policy, in_groups)), " ",
          sure("Remove", name, () => change({ change: "remove-policy", policy: name }, `Removed the policy ${name}.`)))];
    };
    const group_row = (group) => [group.name, group.users.join(", "), group.policies.join(", "),
      button("Edit…", group.name, () => edit_group(group))];
    // Lists that cannot be changed have no column with buttons.
    const shown = (cells) => (read_only_reason ? cells.slice(0, -1) : cells);
    lists.replaceChildren(
      table("Policies of users", shown(columns("policy", "attached to")), policies.map((policy) => shown(policy_row(policy)))),
      table("Groups", shown(columns("group", "users", "policies")), groups.map((group) => shown(group_row(group)))),
      ...(read_only_reason ? [] : [h("p", { className: "fields" },
        h("button", { onclick: () => edit_policy(null, []) }, "Create a policy…"),
        h("button", { onclick: () => edit_group(null) }, "Create a group…"))]));
    element.hidden = Boolean(read_only_reason) && !policies.length && !groups.length;
  };
  const element = h("section", { className: "card policies", hidden: true, "aria-label": "Policies of users" }, lists, editor, message);
  return { element, update };
}
