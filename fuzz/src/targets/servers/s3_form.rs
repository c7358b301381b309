//! Sends a form with a file to an S3 server that accepts signed forms only.
//!
//! The lowest bit of the first byte is 1 if the rest is the body of an unsigned form, with the
//! boundary `b`: it is refused. Otherwise there follow the conditions of a policy in JSON, lines such as
//! `name=value` for the fields, an empty line, and the content of the file. The target signs the
//! policy; the second bit changes the signature. A form is accepted only if its signature is right
//! and its fields and its file meet all conditions, and the object then has the content.

use serde_json::Value;

use crate::servers::s3::{ACCESS_KEY, SIGNED};
use crate::servers::signing::{Unsigned, now, signature_of};
use crate::servers::{Reply, RequestParts};

/// Stands for the name of the file in the key.
const FILE_NAME: &str = "name.txt";

/// The fields of the signature. The last one needs no condition.
const OF_SIGNATURE: [&str; 4] =
    ["x-amz-algorithm", "x-amz-credential", "x-amz-date", "x-amz-signature"];

/// A form, with the names of fields in lower case.
#[derive(Debug)]
struct Form<'a> {
    conditions: &'a str,
    fields: Vec<(String, String)>,
    content: &'a [u8],
}

/// Checks one input.
pub(crate) fn run(data: &[u8]) {
    let Some((flags, rest)) = data.split_first() else { return };
    if flags & 1 != 0 {
        let reply = send(rest);
        assert!(reply.is_none_or(|reply| reply.status >= 400), "an unsigned form is accepted");
        return;
    }
    let Some(form) = Form::of(rest) else { return };
    let is_changed = flags & 2 != 0;
    let Some(reply) = send(&form.body(is_changed)) else { return };
    if reply.status >= 400 {
        return;
    }
    assert!(!is_changed, "a wrong signature is accepted: {form:?}");
    assert_eq!(form.violated(), None, "{form:?}");
    let key = form.value("key").expect("each object has a key");
    let read = Unsigned { method: "GET", key: &key, query: ("fuzz", ""), meta: "", body: b"" };
    let signed = read.by_field(SIGNED.address());
    let (line, fields) = (signed.line.as_bytes(), signed.fields.as_bytes());
    let found = RequestParts { line, fields, body: b"" }.send(SIGNED.address());
    let found = found.expect("the server responds");
    assert_eq!((found.status, &*found.body), (200, form.content), "{form:?}");
}

fn send(body: &[u8]) -> Option<Reply> {
    let fields = b"content-type: multipart/form-data; boundary=b\r\n";
    RequestParts { line: b"POST /bucket", fields, body }.send(SIGNED.address())
}

impl<'a> Form<'a> {
    /// Reads a form from an input; `None` if a field or the file would contain the delimiter.
    fn of(input: &'a [u8]) -> Option<Self> {
        let (conditions, rest) = line(input);
        let conditions = str::from_utf8(conditions).ok()?;
        let (mut fields, mut rest) = (Vec::new(), rest);
        loop {
            let (field, after) = line(rest);
            rest = after;
            if field.is_empty() {
                break;
            }
            let (name, value) = str::from_utf8(field).ok()?.split_once('=')?;
            let name = name.to_ascii_lowercase();
            let is_name = |c: char| c.is_ascii_graphic() && !"\";=\\".contains(c);
            // The policy, the signature and the file are those of the target.
            let is_own = name.starts_with("x-amz-") && !name.starts_with("x-amz-meta-");
            if is_own || ["policy", "file", "signature", "awsaccesskeyid"].contains(&&*name) {
                return None;
            }
            let is_new = fields.iter().all(|(other, _)| *other != name);
            if !is_new || name.is_empty() || !name.chars().all(is_name) {
                return None;
            }
            fields.push((name, value.to_owned()));
        }
        let has_delimiter = |bytes: &[u8]| bytes.windows(5).any(|window| window == b"\r\n--b");
        let is_whole = !has_delimiter(rest)
            && fields.iter().all(|(_, value)| !has_delimiter(value.as_bytes()));
        is_whole.then_some(Self { conditions, fields, content: rest })
    }

    /// Returns the body of a signed form.
    fn body(&self, changes_signature: bool) -> Vec<u8> {
        let (day, time) = now();
        let policy = format!(
            "{{\"expiration\": \"2099-01-01T00:00:00Z\", \"conditions\": {}}}",
            self.conditions
        );
        let policy = base64(policy.as_bytes());
        let mut signature = signature_of(&day, &policy);
        if changes_signature {
            let other = if signature.ends_with('0') { "1" } else { "0" };
            signature.replace_range(signature.len() - 1.., other);
        }
        let credential = format!("{ACCESS_KEY}/{day}/us-east-1/s3/aws4_request");
        let mut body = Vec::new();
        let mut add = |name: &str, value: &str| {
            let head = format!("--b\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n");
            body.extend([head.as_bytes(), value.as_bytes(), b"\r\n"].concat());
        };
        self.fields.iter().for_each(|(name, value)| add(name, value));
        for (name, value) in [
            ("policy", &*policy),
            ("X-Amz-Algorithm", "AWS4-HMAC-SHA256"),
            ("X-Amz-Credential", &credential),
            ("X-Amz-Date", &time),
            ("X-Amz-Signature", &signature),
        ] {
            add(name, value);
        }
        let head = format!(
            "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{FILE_NAME}\"\r\n\r\n"
        );
        body.extend([head.as_bytes(), self.content, b"\r\n--b--\r\n"].concat());
        body
    }

    /// Returns the value of a field, which may contain the name of the file.
    fn value(&self, name: &str) -> Option<String> {
        let (_, value) = self.fields.iter().find(|(field, _)| field == name)?;
        Some(value.replace("${filename}", FILE_NAME))
    }

    /// Returns the first rule of policies that the form violates.
    fn violated(&self) -> Option<String> {
        let Ok(Value::Array(conditions)) = serde_json::from_str(&to_json(self.conditions)) else {
            return Some("the conditions are no array".to_owned());
        };
        let mut named = Vec::new();
        for condition in &conditions {
            let (kind, field, expected) = match condition {
                Value::Object(members) if members.len() == 1 => {
                    let (field, value) = members.iter().next()?;
                    ("eq".to_owned(), field.to_ascii_lowercase(), value.clone())
                }
                Value::Array(items) if items.len() == 3 => {
                    let kind = items[0].as_str().unwrap_or_default().to_ascii_lowercase();
                    if kind == "content-length-range" {
                        let limit = |at: usize| number(&items[at]);
                        let bytes = self.content.len() as u64;
                        if limit(1).is_none_or(|least| bytes < least)
                            || limit(2).is_none_or(|most| bytes > most)
                        {
                            return Some(format!("{condition}"));
                        }
                        continue;
                    }
                    let field = items[1].as_str().unwrap_or_default();
                    let field = field.strip_prefix('$').unwrap_or_default().to_ascii_lowercase();
                    (kind, field, items[2].clone())
                }
                other => return Some(format!("{other} is malformed")),
            };
            let found = match &*field {
                "bucket" => "bucket".to_owned(),
                // The values are those of the target.
                field if OF_SIGNATURE.contains(&field) => {
                    named.push(field.to_owned());
                    continue;
                }
                field => self.value(field).unwrap_or_default(),
            };
            let is_met = expected.as_str().is_some_and(|expected| match &*kind {
                "eq" => found == expected,
                "starts-with" if field == "content-type" && found.contains(',') => {
                    found.split(',').all(|one| one.trim_start().starts_with(expected))
                }
                "starts-with" => found.starts_with(expected),
                _ => false,
            });
            if !is_met {
                return Some(format!("{condition}"));
            }
            named.push(field);
        }
        let is_named = |name: &String| {
            name.starts_with("x-ignore-")
                || name.starts_with("x-amz-checksum-")
                || named.contains(name)
        };
        let names = self.fields.iter().map(|(name, _)| name.clone()).chain(["bucket".to_owned()]);
        let names = names.chain(OF_SIGNATURE[..3].iter().map(|name| (*name).to_owned()));
        let unnamed = names.into_iter().find(|name| !is_named(name));
        unnamed.map(|name| format!("no condition names {name}"))
    }
}

/// Returns conditions as JSON: without what policies may have beyond it, which are the escapes `\$`
/// and `\v`, and a comma after the last item.
fn to_json(conditions: &str) -> String {
    let mut json = String::new();
    let mut rest = conditions;
    let mut is_text = false;
    while let Some(first) = rest.chars().next() {
        let after = &rest[first.len_utf8()..];
        let (written, left) = match (is_text, first) {
            (true, '\\') if after.starts_with('$') => ("$", &after[1..]),
            (true, '\\') if after.starts_with('v') => ("\\u000b", &after[1..]),
            (true, '\\') => rest.split_at(1 + after.chars().next().map_or(0, char::len_utf8)),
            (false, ',') if after.trim_ascii_start().starts_with([']', '}']) => ("", after),
            _ => rest.split_at(first.len_utf8()),
        };
        is_text ^= first == '"';
        json.push_str(written);
        rest = left;
    }
    json
}

/// Returns the first line without its end, and the bytes after it.
fn line(bytes: &[u8]) -> (&[u8], &[u8]) {
    let end = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
    (&bytes[..end], bytes.get(end + 1..).unwrap_or_default())
}

fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            let index = usize::try_from(bits >> (18 - 6 * digit) & 63).expect("it is below 64");
            text.push(if digit <= group.len() { char::from(DIGITS[index]) } else { '=' });
        }
    }
    text
}
