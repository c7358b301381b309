// The policy of a bucket: its templates, an editor, and a switch for reading without a key.

import { h } from "/console/elements.js";
import { editor, sure } from "/serve/controls.js";
import { delete_setting, put_setting, setting_of, setting_text_of } from "/serve/s3.js";

export const written = (statements) => JSON.stringify({ Version: "2012-10-17", Statement: statements }, null, 2);

const allowed = (sid, actions, resource) =>
  ({ Sid: sid, Effect: "Allow", Principal: "*", Action: actions, Resource: resource });

export const read_statement = (bucket, prefix = "") =>
  allowed("PublicRead", ["s3:GetObject"], [`arn:aws:s3:::${bucket}/${prefix}*`]);

// Returns the templates for a bucket's policy.
function templates(bucket) {
  const list = allowed("PublicList", ["s3:ListBucket"], [`arn:aws:s3:::${bucket}`]);
  const upload = allowed("PublicUpload", ["s3:PutObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts"],
    [`arn:aws:s3:::${bucket}/*`]);
  return [
    { name: "public read: everyone may read objects", text: () => written([read_statement(bucket)]) },
    { name: "public read and list", text: () => written([read_statement(bucket), list]) },
    { name: "public read of a prefix", text: () => written([read_statement(bucket, "PREFIX/")]) },
    { name: "upload only: everyone may upload", text: () => written([upload]) },
  ];
}

const listed = (value) => (Array.isArray(value) ? value : [value]);

// Returns `true` for a statement that only allows everyone to read all objects of a bucket.
function is_public_read(statement, bucket) {
  const { Effect, Principal, Action, Resource, Condition } = statement;
  const is_everyone = Principal === "*" || listed(Principal?.AWS).includes("*");
  return Effect === "Allow" && is_everyone && !Condition && listed(Action).every((one) => one === "s3:GetObject") &&
    listed(Resource).includes(`arn:aws:s3:::${bucket}/*`);
}

// Returns a policy that allows everyone to read, or no longer does; null if no statement is left.
export function with_public_read(text, bucket, is_public) {
  const policy = text ? JSON.parse(text) : { Version: "2012-10-17", Statement: [] };
  const others = listed(policy.Statement).filter((one) => !is_public_read(one, bucket));
  const own = read_statement(bucket);
  if (others.some((one) => one.Sid === own.Sid)) delete own.Sid;
  const statements = is_public ? [...others, own] : others;
  return statements.length ? JSON.stringify({ ...policy, Statement: statements }, null, 2) : null;
}

// Returns a JSON text with indentation; another text as it is.
export function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

// Returns the content of the card of the policy.
export async function access({ bucket, change }) {
  const text = await setting_text_of(bucket, "policy");
  const status = await setting_of(bucket, "policyStatus").catch(() => null);
  const is_public = status?.querySelector("IsPublic")?.textContent === "true";
  const statements = text ? listed(JSON.parse(text).Statement) : [];
  const reads = statements.some((one) => is_public_read(one, bucket));
  const put = (done, value) => change(done, () =>
    (value === null ? delete_setting(bucket, "policy") : put_setting(bucket, "policy", value)));
  const box = h("input", { type: "checkbox", role: "switch", checked: reads, onchange: async () => {
    await put(reads ? "Reading needs a key." : "Everyone may read all objects.", with_public_read(text, bucket, !reads));
    // After a change, the card has another switch. This one is still shown after a failure.
    box.checked = reads;
  } });
  return [
    h("p", {}, is_public ? h("b", { className: "warn" }, "public: everyone is allowed something") : h("b", {}, "private")),
    h("p", {}, h("label", {}, box, " everyone may read all objects, without a key")),
    h("p", {}, "Policy: ", text ? h("b", {}, `${statements.length} ${statements.length === 1 ? "statement" : "statements"}`)
      : h("span", { className: "soft" }, "not set"),
    " ", text ? sure("Make private", "the policy: remove it", () => put("The policy was removed.", null)) : null),
    h("details", {}, h("summary", {}, "Edit the policy"), editor("Policy as JSON", text ? pretty(text) : "", {
      save: (value) => put("Saved.", value),
      remove: text && (() => put("Removed.", null)),
      templates: templates(bucket),
    })),
    h("p", { className: "soft" }, "The keys of the server, and access lists, allow more. A server without keys allows " +
      "every client of its machine everything, whatever the policy is."),
  ];
}
