//! Verifies a body's chunk signatures, each of which covers the signature before it.

use std::sync::Arc;

use ring::{digest, hmac};

use crate::auth::canonical::{from_hex, push_hex};

/// The SHA-256 of the empty string.
const NO_BYTES: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// Verifies the chunks of one body, in their order.
#[derive(Clone)]
pub(crate) struct ChunkVerifier {
    key: Arc<hmac::Key>,
    /// The time and the scope, as two lines in the signed text.
    scope: String,
    /// The signature before the next one: the request's, or the previous chunk's.
    previous: String,
    /// The hash of the present chunk so far.
    hash: digest::Context,
}

impl std::fmt::Debug for ChunkVerifier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChunkVerifier").finish_non_exhaustive()
    }
}

impl ChunkVerifier {
    /// Creates the verifier for a body whose request has this signature.
    pub(super) fn new(key: Arc<hmac::Key>, date: &str, scope: &str, signature: &str) -> Self {
        let scope = format!("{date}\n{scope}");
        let hash = digest::Context::new(&digest::SHA256);
        Self { key, scope, previous: signature.to_owned(), hash }
    }

    /// Hashes the present chunk's next bytes.
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.hash.update(bytes);
    }

    /// Returns `true` if this is the present chunk's signature, and begins the next chunk.
    pub(crate) fn ends_chunk(&mut self, signature: &[u8]) -> bool {
        let hash = std::mem::replace(&mut self.hash, digest::Context::new(&digest::SHA256));
        let hash = hash.finish();
        let mut text =
            format!("AWS4-HMAC-SHA256-PAYLOAD\n{}\n{}\n{NO_BYTES}\n", self.scope, self.previous);
        push_hex(&mut text, hash.as_ref());
        self.is_right(&text, signature)
    }

    /// Returns `true` if this is the trailer's signature. `fields` has a line `name:value` for each
    /// field; each line ends with a line feed.
    pub(crate) fn ends_trailer(&mut self, fields: &str, signature: &[u8]) -> bool {
        let mut text = format!("AWS4-HMAC-SHA256-TRAILER\n{}\n{}\n", self.scope, self.previous);
        push_hex(&mut text, digest::digest(&digest::SHA256, fields.as_bytes()).as_ref());
        self.is_right(&text, signature)
    }

    fn is_right(&mut self, text: &str, signature: &[u8]) -> bool {
        let Ok(signature) = str::from_utf8(signature) else { return false };
        signature.clone_into(&mut self.previous);
        let claimed = from_hex(signature);
        claimed.is_some_and(|claimed| hmac::verify(&self.key, text.as_bytes(), &claimed).is_ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::keys::credentials::Credentials;
    use crate::access::keys::key_ring::ActiveKey;

    /// Returns the verifier for the AWS documentation's example in "Signature Calculations for the
    /// Authorization Header: Transferring Payload in Multiple Chunks".
    fn example() -> ChunkVerifier {
        let credentials = Credentials {
            access_key: "AKIAIOSFODNN7EXAMPLE".into(),
            secret_key: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".into(),
        };
        let scope = "20130524/us-east-1/s3/aws4_request";
        let key = ActiveKey::administrator(credentials).signing_key(scope).unwrap();
        let seed = "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9";
        ChunkVerifier::new(key, "20130524T000000Z", scope, seed)
    }

    #[test]
    fn chunks_of_the_documentation_are_valid() {
        let signatures: [&[u8]; 3] = [
            b"ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648",
            b"0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497",
            b"b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9",
        ];
        let mut verifier = example();
        for (bytes, signature) in [65_536, 1024, 0].into_iter().zip(signatures) {
            verifier.update(&vec![b'a'; bytes]);
            assert!(verifier.ends_chunk(signature), "{bytes}");
        }
        let mut verifier = example();
        verifier.update(&vec![b'a'; 65_535]);
        assert!(!verifier.ends_chunk(signatures[0]));
        let mut verifier = example();
        assert!(!verifier.ends_chunk(signatures[2]), "the chunks before it are missing");
        assert!(!verifier.ends_chunk(b"") && !verifier.ends_chunk(b"\xff"));
    }
}
