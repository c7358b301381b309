//! Computes signatures of version 4.

use std::time::{Duration, SystemTime};

use s3s::crypto::{Checksum as _, Sha256};
use time::UtcDateTime;
use time::macros::format_description;

use crate::client::{Client, Reply};

/// Signs requests with a key pair.
pub(crate) struct Signer<'a> {
    pub(crate) client: Client,
    pub(crate) access_key: &'a str,
    pub(crate) secret_key: &'a str,
}

impl Signer<'_> {
    /// Sends a request with a signature in its headers over this hash of the body.
    pub(crate) fn send(&self, method: &str, target: &str, hash: &str, body: &[u8]) -> Reply {
        self.send_with(method, target, hash, &[], |_| body.to_vec())
    }

    /// Sends a request with more headers, which are signed if they are headers of AWS or `host`, and
    /// a body that may depend on the signature.
    pub(crate) fn send_with(
        &self,
        method: &str,
        target: &str,
        hash: &str,
        more: &[(&str, &str)],
        body: impl FnOnce(&Seed) -> Vec<u8>,
    ) -> Reply {
        self.client.raw(&self.request(method, target, hash, more, body))
    }

    /// Returns the bytes of a signed request.
    pub(crate) fn request(
        &self,
        method: &str,
        target: &str,
        hash: &str,
        more: &[(&str, &str)],
        body: impl FnOnce(&Seed) -> Vec<u8>,
    ) -> Vec<u8> {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let date = timestamp(0);
        let address = self.client.0.address.to_string();
        let (hosts, more): (Vec<_>, Vec<_>) =
            more.iter().copied().partition(|(name, _)| *name == "host");
        let host = hosts.first().map_or(address.as_str(), |(_, host)| host);
        let mut headers =
            vec![("host", host), ("x-amz-content-sha256", hash), ("x-amz-date", date.as_str())];
        let (of_aws, more): (Vec<_>, Vec<_>) =
            more.into_iter().partition(|(name, _)| name.starts_with("x-amz-"));
        headers.extend(of_aws);
        headers.sort_unstable();
        let lines: String = headers.iter().map(|(n, v)| format!("{n}:{v}\n")).collect();
        let names: Vec<_> = headers.iter().map(|(name, _)| *name).collect();
        let names = names.join(";");
        let canonical = format!("{method}\n{path}\n{query}\n{lines}\n{names}\n{hash}");
        let signature = self.sign(&date, &canonical);
        let authorization = format!(
            "AWS4-HMAC-SHA256 Credential={}/{}, SignedHeaders={names}, Signature={signature}",
            self.access_key,
            scope(&date)
        );
        let seed = Seed { key: self.key(&date), date: date.clone(), signature };
        let all = [&headers[..], &[("authorization", authorization.as_str())], &more].concat();
        self.client.request(method, target, &all, &body(&seed))
    }

    /// Returns a presigned URL path, signed `age_s` seconds ago and valid for `expires_s`.
    pub(crate) fn presign(&self, method: &str, path: &str, age_s: u64, expires_s: u64) -> String {
        let host = self.client.0.address.to_string();
        self.presign_for(&host, method, path, (age_s, expires_s))
    }

    /// Returns a presigned URL path for a host.
    pub(crate) fn presign_for(
        &self,
        host: &str,
        method: &str,
        path: &str,
        (age_s, expires_s): (u64, u64),
    ) -> String {
        let date = timestamp(age_s);
        let credential = format!("{}/{}", self.access_key, scope(&date)).replace('/', "%2F");
        let query = format!(
            "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential={credential}&X-Amz-Date={date}\
             &X-Amz-Expires={expires_s}&X-Amz-SignedHeaders=host"
        );
        let canonical = format!("{method}\n{path}\n{query}\nhost:{host}\n\nhost\nUNSIGNED-PAYLOAD");
        format!("{path}?{query}&X-Amz-Signature={}", self.sign(&date, &canonical))
    }

    fn sign(&self, date: &str, canonical: &str) -> String {
        let hash = hex(&Sha256::checksum(canonical.as_bytes()));
        let text = format!("AWS4-HMAC-SHA256\n{date}\n{}\n{hash}", scope(date));
        hex(&hmac(&self.key(date), &text))
    }

    fn key(&self, date: &str) -> [u8; 32] {
        let first = format!("AWS4{}", self.secret_key);
        let key = hmac(first.as_bytes(), &date[..8]);
        let key = hmac(&key, "us-east-1");
        hmac(&hmac(&key, "s3"), "aws4_request")
    }
}

/// The input of the signatures of chunks.
pub(crate) struct Seed {
    key: [u8; 32],
    date: String,
    signature: String,
}

impl Seed {
    /// Returns a body of signed chunks.
    pub(crate) fn chunks(&self, chunks: &[&[u8]]) -> Vec<u8> {
        let mut before = self.signature.clone();
        let mut body = Vec::new();
        for chunk in chunks.iter().chain([&&b""[..]]) {
            let text = format!(
                "AWS4-HMAC-SHA256-PAYLOAD\n{}\n{}\n{before}\n{}\n{}",
                self.date,
                scope(&self.date),
                hex(&Sha256::checksum(b"")),
                hex(&Sha256::checksum(chunk))
            );
            before = hex(&hmac(&self.key, &text));
            body.extend(format!("{:x};chunk-signature={before}\r\n", chunk.len()).bytes());
            body.extend_from_slice(chunk);
            body.extend_from_slice(b"\r\n");
        }
        body
    }
}

/// Returns the SHA-256 of a body as it is signed.
pub(crate) fn hash(body: &[u8]) -> String {
    hex(&Sha256::checksum(body))
}

fn scope(date: &str) -> String {
    format!("{}/us-east-1/s3/aws4_request", &date[..8])
}

/// Returns the time `age_s` seconds ago in a form like 20150830T123600Z.
fn timestamp(age_s: u64) -> String {
    let format = format_description!("[year][month][day]T[hour][minute][second]Z");
    let at = SystemTime::now() - Duration::from_secs(age_s);
    UtcDateTime::from(at).format(format).unwrap()
}

fn hmac(key: &[u8], text: &str) -> [u8; 32] {
    let mut block = [0; 64];
    block[..key.len()].copy_from_slice(key);
    let pad = |with: u8| block.map(|byte| byte ^ with);
    let inner = Sha256::checksum(&[&pad(0x36), text.as_bytes()].concat());
    Sha256::checksum(&[&pad(0x5c)[..], &inner].concat())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
