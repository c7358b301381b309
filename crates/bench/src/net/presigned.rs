//! Signs URLs with AWS Signature Version 4. Performs no I/O.

use std::net::SocketAddr;
use std::time::SystemTime;

use ring::{digest, hmac};
use time::UtcDateTime;
use time::macros::format_description;

pub(crate) const ACCESS_KEY: &str = "haul-bench";
pub(crate) const SECRET_KEY: &str = "haul-bench-secret-key";
pub(crate) const REGION: &str = "us-east-1";
/// The time for which a URL is valid, in seconds.
const EXPIRES_S: u32 = 86_400;

/// The host, the time and the key of presigned URLs.
#[derive(Debug)]
pub(crate) struct Signer {
    host: String,
    access_key: &'static str,
    /// The time of the signatures, such as `20260102T030405Z`.
    time: String,
    key: hmac::Key,
}

impl Signer {
    /// Returns a signer of URLs of the server at `address` with the key pair of the benchmarks.
    pub(crate) fn new(address: SocketAddr) -> Self {
        let host = address.to_string();
        Self::with(host, ACCESS_KEY, SECRET_KEY, SystemTime::now())
    }

    fn with(host: String, access_key: &'static str, secret: &str, now: SystemTime) -> Self {
        let format = format_description!("[year][month][day]T[hour][minute][second]Z");
        // A year of four digits can always be formatted.
        let time = UtcDateTime::from(now).format(format).unwrap_or_default();
        let secret = format!("AWS4{secret}").into_bytes();
        let parts = [time.get(..8).unwrap_or_default(), REGION, "s3", "aws4_request"];
        let key = parts.into_iter().fold(secret, |key, part| {
            let key = hmac::Key::new(hmac::HMAC_SHA256, &key);
            hmac::sign(&key, part.as_bytes()).as_ref().to_vec()
        });
        Self { host, access_key, time, key: hmac::Key::new(hmac::HMAC_SHA256, &key) }
    }

    /// Returns the signed target of a request. The path has only bytes that need no encoding. The
    /// query is in the order of its encoded names, which begin with lowercase letters.
    pub(crate) fn target(&self, method: &str, path: &str, query: &str) -> String {
        let Self { host, access_key, time, .. } = self;
        let scope = self.scope();
        let credential = format!("{access_key}/{scope}").replace('/', "%2F");
        let and = if query.is_empty() { "" } else { "&" };
        // Lowercase letters sort after `X`.
        let query = format!(
            "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential={credential}&X-Amz-Date={time}\
             &X-Amz-Expires={EXPIRES_S}&X-Amz-SignedHeaders=host{and}{query}"
        );
        let canonical = format!("{method}\n{path}\n{query}\nhost:{host}\n\nhost\nUNSIGNED-PAYLOAD");
        let signature = self.sign("AWS4-HMAC-SHA256", &[&sha256(canonical.as_bytes())]);
        format!("{path}?{query}&X-Amz-Signature={signature}")
    }

    pub(super) fn host(&self) -> &str {
        &self.host
    }

    pub(super) fn time(&self) -> &str {
        &self.time
    }

    /// Returns the value of the field `Authorization` but for its last two parts.
    pub(super) fn credential(&self) -> String {
        format!("AWS4-HMAC-SHA256 Credential={}/{}", self.access_key, self.scope())
    }

    fn scope(&self) -> String {
        format!("{}/{REGION}/s3/aws4_request", self.time.get(..8).unwrap_or_default())
    }

    /// Returns the signature of these lines, which follow those of the algorithm, the time and the
    /// scope.
    pub(super) fn sign(&self, algorithm: &str, lines: &[&str]) -> String {
        let (time, scope) = (&self.time, self.scope());
        let text = format!("{algorithm}\n{time}\n{scope}\n{}", lines.join("\n"));
        hex(hmac::sign(&self.key, text.as_bytes()).as_ref())
    }
}

/// Returns the SHA-256 of bytes in hexadecimal digits.
pub(super) fn sha256(bytes: &[u8]) -> String {
    hex(digest::digest(&digest::SHA256, bytes).as_ref())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    /// The example of the S3 reference, "Authenticating requests: using query parameters".
    #[test]
    fn presigned_url_of_the_s3_reference_is_reproduced() {
        let (access, secret) = ("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY");
        let now = UNIX_EPOCH + Duration::from_secs(1_369_353_600);
        let signer = Signer::with("examplebucket.s3.amazonaws.com".to_owned(), access, secret, now);
        let expected = "/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256\
             &X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request\
             &X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host\
             &X-Amz-Signature=\
             aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404";
        assert_eq!(signer.target("GET", "/test.txt", ""), expected);
    }
}
