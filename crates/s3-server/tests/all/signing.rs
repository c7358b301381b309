//! Computes signatures of version 4.

use std::time::{Duration, SystemTime};

use base64_simd::STANDARD as BASE64;
use ring::{digest, hmac as rings};
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
        let (amz, more): (Vec<_>, Vec<_>) =
            more.into_iter().partition(|(name, _)| name.starts_with("x-amz-"));
        headers.extend(amz);
        headers.sort_unstable();
        let lines = headers.iter().map(|(name, value)| {
            let words: Vec<_> = value.split_whitespace().collect();
            format!("{name}:{}\n", words.join(" "))
        });
        let lines: String = lines.collect();
        let names: Vec<_> = headers.iter().map(|(name, _)| *name).collect();
        let names = names.join(";");
        let query = canonical_query(query);
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

    /// Returns a presigned target of version 4, in whose query the headers stand.
    pub(crate) fn presign_with(
        &self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
    ) -> String {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let date = timestamp(0);
        let credential = format!("{}/{}", self.access_key, scope(&date));
        let own = query.split('&').filter(|pair| !pair.is_empty());
        let own = own.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        let mut pairs: Vec<_> =
            own.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let signature = [
            ("X-Amz-Algorithm", "AWS4-HMAC-SHA256"),
            ("X-Amz-Credential", &credential),
            ("X-Amz-Date", &date),
            ("X-Amz-Expires", "60"),
            ("X-Amz-SignedHeaders", "host"),
        ];
        let headers = headers.iter().copied().chain(signature);
        pairs.extend(headers.map(|(name, value)| (name.to_owned(), encoded(value))));
        pairs.sort_unstable();
        let query: Vec<_> = pairs.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let query = query.join("&");
        let host = self.client.0.address.to_string();
        let canonical = format!("{method}\n{path}\n{query}\nhost:{host}\n\nhost\nUNSIGNED-PAYLOAD");
        format!("{path}?{query}&X-Amz-Signature={}", self.sign(&date, &canonical))
    }

    /// Returns a presigned target of version 2, in whose query the headers stand.
    pub(crate) fn presign_v2(
        &self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
    ) -> String {
        let expires = SystemTime::now() + Duration::from_secs(60);
        let expires = expires.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
        let find = |wanted: &str| headers.iter().find(|(name, _)| *name == wanted);
        let value = |name: &str| find(name).map_or("", |(_, value)| *value);
        let mut text =
            format!("{method}\n{}\n{}\n{expires}\n", value("content-md5"), value("content-type"));
        let mut amz: Vec<_> =
            headers.iter().filter(|(name, _)| name.starts_with("x-amz-")).collect();
        amz.sort_unstable();
        amz.iter().for_each(|(name, value)| text += &format!("{name}:{value}\n"));
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        // Listings have parameters that version 2 does not sign.
        let unsigned = ["list-type", "prefix", "delimiter", "max-keys", "encoding-type", "x-id"];
        let mut signed: Vec<_> = query
            .split('&')
            .filter(|pair| !pair.is_empty() && !unsigned.contains(&pair.split('=').next().unwrap()))
            .collect();
        signed.sort_unstable();
        text += path;
        if !signed.is_empty() {
            text += &format!("?{}", signed.join("&"));
        }
        let key = rings::Key::new(rings::HMAC_SHA1_FOR_LEGACY_USE_ONLY, self.secret_key.as_bytes());
        let signature = BASE64.encode_to_string(rings::sign(&key, text.as_bytes()));
        let mut pairs: Vec<_> = query.split('&').filter(|pair| !pair.is_empty()).collect();
        let headers: Vec<_> =
            headers.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect();
        pairs.extend(headers.iter().map(String::as_str));
        let (key, signature) = (self.access_key, encoded(&signature));
        let own = format!("AWSAccessKeyId={key}&Expires={expires}&Signature={signature}");
        pairs.push(&own);
        format!("{path}?{}", pairs.join("&"))
    }

    fn sign(&self, date: &str, canonical: &str) -> String {
        let hash = hash(canonical.as_bytes());
        let text = format!("AWS4-HMAC-SHA256\n{date}\n{}\n{hash}", scope(date));
        hex(&hmac(&self.key(date), &text))
    }

    fn key(&self, date: &str) -> Vec<u8> {
        let first = format!("AWS4{}", self.secret_key);
        let key = hmac(first.as_bytes(), &date[..8]);
        let key = hmac(&key, "us-east-1");
        hmac(&hmac(&key, "s3"), "aws4_request")
    }
}

/// The input of the signatures of chunks.
pub(crate) struct Seed {
    key: Vec<u8>,
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
                hash(b""),
                hash(chunk)
            );
            before = hex(&hmac(&self.key, &text));
            body.extend(format!("{:x};chunk-signature={before}\r\n", chunk.len()).bytes());
            body.extend_from_slice(chunk);
            body.extend_from_slice(b"\r\n");
        }
        body
    }
}

impl Seed {
    /// Returns a body of signed chunks with a signed trailer.
    pub(crate) fn chunks_with_trailer(&self, chunk: &[u8], field: &str) -> Vec<u8> {
        let mut body = self.chunks(&[chunk]);
        // The signature of the last chunk, which is empty.
        let last = body.windows(2).rposition(|pair| pair == b"0;").unwrap();
        let last = String::from_utf8(body[last..].to_vec()).unwrap();
        let before = last.trim().rsplit('=').next().unwrap();
        let date = &self.date;
        let text = format!(
            "AWS4-HMAC-SHA256-TRAILER\n{date}\n{}\n{before}\n{}",
            scope(date),
            hash(format!("{field}\n").as_bytes())
        );
        let signature = hex(&hmac(&self.key, &text));
        body.truncate(body.len() - 2);
        body.extend(format!("{field}\r\nx-amz-trailer-signature:{signature}\r\n\r\n").bytes());
        body
    }
}

/// Returns the parameters in order, each with a value.
fn canonical_query(query: &str) -> String {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    let mut pairs: Vec<_> = pairs
        .map(|pair| if pair.contains('=') { pair.into() } else { format!("{pair}=") })
        .collect();
    pairs.sort_unstable();
    pairs.join("&")
}

/// Returns the SHA-256 of a body as it is signed.
pub(crate) fn hash(body: &[u8]) -> String {
    hex(digest::digest(&digest::SHA256, body).as_ref())
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

fn hmac(key: &[u8], text: &str) -> Vec<u8> {
    let key = rings::Key::new(rings::HMAC_SHA256, key);
    rings::sign(&key, text.as_bytes()).as_ref().to_vec()
}

/// Encodes a value of a query.
fn encoded(value: &str) -> String {
    let byte = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
            char::from(byte).to_string()
        }
        _ => format!("%{byte:02X}"),
    };
    value.bytes().map(byte).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
