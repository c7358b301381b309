//! Signs requests of any kind by AWS Signature Version 4.

use std::net::SocketAddr;

use super::RequestParts;
use super::s3::ACCESS_KEY;
use super::signing::{Signed, encoded, now, sha256, signature};

/// A request to sign.
#[derive(Debug)]
pub(crate) struct SignedRequest<'a> {
    method: &'a str,
    /// The decoded path.
    path: String,
    /// The decoded names and values of the query.
    query: Vec<(String, String)>,
    /// Fields with lower-case names, each only once.
    fields: Vec<(String, String)>,
    /// The body.
    pub(crate) body: &'a [u8],
}

/// Fields that are part of the framing of the request or of its signature.
const EXCLUDED: [&str; 11] = [
    "authorization",
    "connection",
    "content-length",
    "date",
    "expect",
    "host",
    "te",
    "transfer-encoding",
    "upgrade",
    "x-amz-content-sha256",
    "x-amz-date",
];

impl<'a> SignedRequest<'a> {
    /// Reads a request; `None` if its line has no method and path, or is not UTF-8.
    pub(crate) fn of(parts: &RequestParts<'a>) -> Option<Self> {
        let (method, target) = str::from_utf8(parts.line).ok()?.split_once(' ')?;
        let is_method = !method.is_empty() && method.bytes().all(|it| it.is_ascii_uppercase());
        if !is_method || method == "CONNECT" || !target.starts_with('/') {
            return None;
        }
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let pairs = query.split('&').filter(|pair| !pair.is_empty());
        let pairs = pairs.map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((decoded(name)?, decoded(value)?))
        });
        let query: Vec<_> = pairs.collect::<Option<_>>()?;
        // Such a parameter would be another signature.
        let is_signature = |name: &str| name.to_ascii_lowercase().starts_with("x-amz-");
        if query.iter().any(|(name, _)| is_signature(name)) {
            return None;
        }
        let fields = fields(parts.fields);
        Some(Self { method, path: decoded(path)?, query, fields, body: parts.body })
    }

    /// Signs the request for a server at this address.
    pub(crate) fn sign(&self, address: SocketAddr) -> Signed {
        let (day, time) = now();
        let path = encoded(&self.path, '/');
        let mut query: Vec<String> = self
            .query
            .iter()
            .map(|(name, value)| format!("{}={}", encoded(name, '-'), encoded(value, '-')))
            .collect();
        let sent = query.join("&");
        query.sort_by(|one, other| one.split('=').cmp(other.split('=')));
        let (hash, host) = (sha256(self.body), address.to_string());
        let mut all = vec![
            ("host", host.as_str()),
            ("x-amz-content-sha256", hash.as_str()),
            ("x-amz-date", time.as_str()),
        ];
        all.extend(self.fields.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        all.sort_unstable();
        let mut lines = String::new();
        for (name, value) in &all {
            let words: Vec<_> = value.split(' ').filter(|word| !word.is_empty()).collect();
            lines += &format!("{name}:{}\n", words.join(" "));
        }
        let names: Vec<_> = all.iter().map(|(name, _)| *name).collect();
        let (method, names) = (self.method, names.join(";"));
        let canonical = format!("{method}\n{path}\n{}\n{lines}\n{names}\n{hash}", query.join("&"));
        let signature = signature(&day, &time, &canonical);
        let others = all.iter().filter(|(name, _)| *name != "host");
        let mut fields: String =
            others.map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        fields += &format!(
            "authorization: AWS4-HMAC-SHA256 Credential={ACCESS_KEY}/{day}/us-east-1/s3/\
             aws4_request, SignedHeaders={names}, Signature={signature}\r\n"
        );
        let mark = if sent.is_empty() { "" } else { "?" };
        Signed { line: format!("{method} {path}{mark}{sent}"), fields }
    }
}

/// Returns the fields that can be signed.
fn fields(bytes: &[u8]) -> Vec<(String, String)> {
    let mut fields: Vec<(String, String)> = Vec::new();
    for line in String::from_utf8_lossy(bytes).split("\r\n") {
        let Some((name, value)) = line.split_once(':') else { continue };
        let (name, value) = (name.to_ascii_lowercase(), value.trim());
        let is_name = !name.is_empty()
            && name.bytes().all(|it| it.is_ascii_alphanumeric() || b"-_".contains(&it));
        let is_value = value.chars().all(|it| matches!(it, ' '..='~'));
        let is_new = fields.iter().all(|(other, _)| *other != name);
        if is_name && is_value && is_new && !EXCLUDED.contains(&&*name) {
            fields.push((name, value.to_owned()));
        }
    }
    fields
}

/// Decodes percent-encoded bytes. A `%` without two digits stands for itself.
fn decoded(text: &str) -> Option<String> {
    let (mut decoded, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..2).filter(|_| *first == b'%');
        let byte = digits.and_then(|two| u8::from_str_radix(str::from_utf8(two).ok()?, 16).ok());
        decoded.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    String::from_utf8(decoded).ok()
}
