//! Writes S3 requests, anonymous or with AWS Signature Version 4 in a header or in a presigned URL.
//! Performs no I/O.

use std::net::SocketAddr;
use std::time::SystemTime;

use ring::{digest, hmac};
use time::UtcDateTime;
use time::macros::format_description;

use crate::named::named;

pub(crate) const ACCESS_KEY: &str = "haul-bench";
pub(crate) const SECRET_KEY: &str = "haul-bench-secret-key";
pub(crate) const REGION: &str = "us-east-1";
const SIGNED_HEADERS: &str = "host;x-amz-content-sha256;x-amz-date";
/// The time for which a presigned URL is valid, in seconds.
const EXPIRES_S: u32 = 86_400;

named! {
    /// The place of the signature in a request.
    pub enum SignatureKind {
        /// The header `Authorization`. The signature covers the checksum of the body.
        Header = "header",
        /// The query of a presigned URL. The signature does not cover the body.
        Presigned = "presigned",
    }
}

/// The host and, for signed requests, the time and the key of all signatures.
pub(crate) struct Requests {
    host: String,
    signer: Option<Signer>,
}

struct Signer {
    kind: SignatureKind,
    access_key: &'static str,
    /// The time of the signatures, such as `20260102T030405Z`.
    time: String,
    key: hmac::Key,
}

impl Requests {
    /// Returns anonymous requests to the server at `address`.
    pub(crate) fn anonymous(address: SocketAddr) -> Self {
        Self { host: address.to_string(), signer: None }
    }

    /// Returns requests with signatures of the time `now`, which the server accepts for 15 minutes
    /// in headers, and for a day in presigned URLs.
    pub(crate) fn signed(address: SocketAddr, kind: SignatureKind, now: SystemTime) -> Self {
        let signer = Signer::new(kind, (ACCESS_KEY, SECRET_KEY), now);
        Self { host: address.to_string(), signer: Some(signer) }
    }

    /// Returns a GET request. The path has only bytes that need no encoding.
    pub(crate) fn get(&self, path: &str) -> Vec<u8> {
        self.request("GET", (path, ""), None, "HTTP/1.1")
    }

    /// Returns a PUT request with its body.
    pub(crate) fn put(&self, path: &str, body: &[u8]) -> Vec<u8> {
        self.request("PUT", (path, ""), Some(body), "HTTP/1.1")
    }

    /// Returns a GET request for a response of any length, after which the server closes the
    /// connection: in HTTP/1.0, no body has chunks. The query is in the order of its encoded names,
    /// each followed by `=`.
    pub(crate) fn get_once(&self, path: &str, query: &str) -> Vec<u8> {
        self.request("GET", (path, query), None, "HTTP/1.0")
    }

    /// Returns a PUT request after which the server closes the connection.
    pub(crate) fn put_once(&self, path: &str, body: &[u8]) -> Vec<u8> {
        self.request("PUT", (path, ""), Some(body), "HTTP/1.0")
    }

    fn request(
        &self,
        method: &str,
        (path, query): (&str, &str),
        body: Option<&[u8]>,
        version: &str,
    ) -> Vec<u8> {
        let host = &self.host;
        let length = body.map(|body| format!("Content-Length: {}\r\n", body.len()));
        let body = body.unwrap_or_default();
        let (query, fields) = match &self.signer {
            Some(signer) => signer.sign(method, (path, query), host, body),
            None => (query.to_owned(), String::new()),
        };
        let mark = if query.is_empty() { "" } else { "?" };
        let head = format!(
            "{method} {path}{mark}{query} {version}\r\nHost: {host}\r\n{}{fields}\r\n",
            length.unwrap_or_default()
        );
        [head.as_bytes(), body].concat()
    }
}

impl Signer {
    fn new(
        kind: SignatureKind,
        (access_key, secret_key): (&'static str, &str),
        now: SystemTime,
    ) -> Self {
        let format = format_description!("[year][month][day]T[hour][minute][second]Z");
        // A year of four digits can always be formatted.
        let time = UtcDateTime::from(now).format(format).unwrap_or_default();
        let key = key(secret_key, time.get(..8).unwrap_or_default());
        Self { kind, access_key, time, key }
    }

    /// Returns the query and the header fields of a signed request.
    fn sign(
        &self,
        method: &str,
        (path, query): (&str, &str),
        host: &str,
        body: &[u8],
    ) -> (String, String) {
        let time = &self.time;
        let credential = format!("{}/{}", self.access_key, self.scope());
        match self.kind {
            SignatureKind::Header => {
                let body_hash = sha256(body);
                let signature = self.signature(&format!(
                    "{method}\n{path}\n{query}\nhost:{host}\nx-amz-content-sha256:{body_hash}\n\
                     x-amz-date:{time}\n\n{SIGNED_HEADERS}\n{body_hash}"
                ));
                let fields = format!(
                    "x-amz-content-sha256: {body_hash}\r\nx-amz-date: {time}\r\n\
                     Authorization: AWS4-HMAC-SHA256 Credential={credential}, \
                     SignedHeaders={SIGNED_HEADERS}, Signature={signature}\r\n"
                );
                (query.to_owned(), fields)
            }
            SignatureKind::Presigned => {
                let credential = credential.replace('/', "%2F");
                let and = if query.is_empty() { "" } else { "&" };
                // The names in `query` begin with lowercase letters, which sort after `X`.
                let query = format!(
                    "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential={credential}\
                     &X-Amz-Date={time}&X-Amz-Expires={EXPIRES_S}&X-Amz-SignedHeaders=host\
                     {and}{query}"
                );
                let signature = self.signature(&format!(
                    "{method}\n{path}\n{query}\nhost:{host}\n\nhost\nUNSIGNED-PAYLOAD"
                ));
                (format!("{query}&X-Amz-Signature={signature}"), String::new())
            }
        }
    }

    fn scope(&self) -> String {
        format!("{}/{REGION}/s3/aws4_request", self.time.get(..8).unwrap_or_default())
    }

    /// Returns the signature of a canonical request.
    fn signature(&self, canonical: &str) -> String {
        let (time, scope, hash) = (&self.time, self.scope(), sha256(canonical.as_bytes()));
        let text = format!("AWS4-HMAC-SHA256\n{time}\n{scope}\n{hash}");
        hex(hmac::sign(&self.key, text.as_bytes()).as_ref())
    }
}

/// Derives the key of the signatures of one day.
fn key(secret: &str, day: &str) -> hmac::Key {
    let secret = format!("AWS4{secret}").into_bytes();
    let derived = [day, REGION, "s3", "aws4_request"].into_iter().fold(secret, |key, part| {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &key);
        hmac::sign(&key, part.as_bytes()).as_ref().to_vec()
    });
    hmac::Key::new(hmac::HMAC_SHA256, &derived)
}

fn sha256(bytes: &[u8]) -> String {
    hex(digest::digest(&digest::SHA256, bytes).as_ref())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    #[test]
    fn anonymous_requests_have_the_fields_of_their_method() {
        let requests = Requests::anonymous("127.0.0.1:9000".parse().unwrap());
        assert_eq!(requests.get("/b/k"), b"GET /b/k HTTP/1.1\r\nHost: 127.0.0.1:9000\r\n\r\n");
        let put = b"PUT /b/k HTTP/1.1\r\nHost: 127.0.0.1:9000\r\nContent-Length: 2\r\n\r\nxy";
        assert_eq!(requests.put("/b/k", b"xy"), put);
    }

    /// The values are those of the example "GET object" in the S3 reference, "Signature
    /// calculations for the Authorization header".
    #[test]
    fn signature_of_the_s3_reference_is_reproduced() {
        let text = "AWS4-HMAC-SHA256\n20130524T000000Z\n20130524/us-east-1/s3/aws4_request\n\
                    7344ae5b7ee6c3e7e6b0fe0640412a37625d1fbfff95c48bbb2dc43964946972";
        let key = key("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "20130524");
        let signature = hex(hmac::sign(&key, text.as_bytes()).as_ref());
        let expected = "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41";
        assert_eq!(signature, expected);
    }

    /// The example of the S3 reference, "Authenticating requests: using query parameters".
    #[test]
    fn presigned_url_of_the_s3_reference_is_reproduced() {
        let keys = ("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY");
        let now = UNIX_EPOCH + Duration::from_secs(1_369_353_600);
        let signer = Some(Signer::new(SignatureKind::Presigned, keys, now));
        let requests = Requests { host: "examplebucket.s3.amazonaws.com".to_owned(), signer };
        let expected = "GET /test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256\
             &X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request\
             &X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host\
             &X-Amz-Signature=\
             aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404 HTTP/1.1\r\n\
             Host: examplebucket.s3.amazonaws.com\r\n\r\n";
        assert_eq!(String::from_utf8(requests.get("/test.txt")).unwrap(), expected);
    }

    #[test]
    fn presigned_put_has_no_header_fields_of_a_signature() {
        let address = "127.0.0.1:9000".parse().unwrap();
        let requests = Requests::signed(address, SignatureKind::Presigned, UNIX_EPOCH);
        let text = String::from_utf8(requests.put("/b/k", b"xy")).unwrap();
        let (line, rest) = text.split_once("\r\n").unwrap();
        assert!(line.starts_with("PUT /b/k?X-Amz-Algorithm="), "{line}");
        assert_eq!(rest, "Host: 127.0.0.1:9000\r\nContent-Length: 2\r\n\r\nxy");
    }

    #[test]
    fn signed_request_has_the_time_and_the_hash_of_its_body() {
        let now = UNIX_EPOCH + Duration::from_secs(1_767_323_045);
        let address = "127.0.0.1:9000".parse().unwrap();
        let requests = Requests::signed(address, SignatureKind::Header, now);
        let text = String::from_utf8(requests.put("/b/k", b"")).unwrap();
        for expected in [
            "\r\nx-amz-date: 20260102T030405Z\r\n",
            "\r\nx-amz-content-sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\r\n",
            "Credential=haul-bench/20260102/us-east-1/s3/aws4_request, ",
        ] {
            assert!(text.contains(expected), "{text}");
        }
    }
}
