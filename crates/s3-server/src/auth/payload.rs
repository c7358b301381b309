//! The framing of a body, and the part that its signature covers.

use crate::auth::canonical::from_hex;
use crate::auth::chunks::ChunkVerifier;
use crate::errors::{S3ErrorCode, S3Result, refuse};
use crate::request::head::Head;

/// The header with the body's hash, or with a keyword instead.
pub(crate) const CONTENT_SHA256: &str = "x-amz-content-sha256";

/// The SHA-256 of an empty body.
pub(crate) const EMPTY_SHA256: [u8; 32] = [
    0xe3, 0xb0, 0xc4, 0x42, 0x98, 0xfc, 0x1c, 0x14, 0x9a, 0xfb, 0xf4, 0xc8, 0x99, 0x6f, 0xb9, 0x24,
    0x27, 0xae, 0x41, 0xe4, 0x64, 0x9b, 0x93, 0x4c, 0xa4, 0x95, 0x99, 0x1b, 0x78, 0x52, 0xb8, 0x55,
];

/// The framing of a body, and the signatures that are verified as it arrives.
#[derive(Debug)]
pub(crate) enum Payload {
    /// The body's bytes, with their hash if the client sends it.
    Plain { sha256: Option<[u8; 32]> },
    /// Chunks without signatures, and a trailer.
    Chunks,
    /// Chunks with signatures, and possibly a signed trailer.
    SignedChunks {
        has_trailer: bool,
        /// `None` on a server without keys, which ignores signatures.
        verifier: Option<Box<ChunkVerifier>>,
    },
}

impl Payload {
    /// The keyword for an unsigned body.
    pub(crate) const UNSIGNED: &str = "UNSIGNED-PAYLOAD";

    /// Returns the payload for an `x-amz-content-sha256` value.
    pub(super) fn from_text(text: &str) -> S3Result<Self> {
        Ok(match text {
            Self::UNSIGNED => Self::Plain { sha256: None },
            "STREAMING-UNSIGNED-PAYLOAD-TRAILER" => Self::Chunks,
            "STREAMING-AWS4-HMAC-SHA256-PAYLOAD" => {
                Self::SignedChunks { has_trailer: false, verifier: None }
            }
            "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER" => {
                Self::SignedChunks { has_trailer: true, verifier: None }
            }
            _ if text.starts_with("STREAMING-AWS4-ECDSA-") => {
                let message = "Signatures of version 4A are not supported: use AWS4-HMAC-SHA256";
                return Err(refuse(S3ErrorCode::NotImplemented, message));
            }
            _ => match from_hex(&text.to_ascii_lowercase()) {
                Some(sha256) => Self::Plain { sha256: Some(sha256) },
                None => {
                    let message = format!(
                        "{CONTENT_SHA256} must be UNSIGNED-PAYLOAD, \
                         STREAMING-UNSIGNED-PAYLOAD-TRAILER, STREAMING-AWS4-HMAC-SHA256-PAYLOAD, \
                         STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER or a valid sha256 value"
                    );
                    return Err(refuse(S3ErrorCode::InvalidArgument, message)
                        .with_field("ArgumentName", CONTENT_SHA256)
                        .with_field("ArgumentValue", text));
                }
            },
        })
    }

    /// Returns `true` if the hash of an empty body was signed, or no hash of the body.
    pub(crate) fn is_empty_or_unsigned(&self) -> bool {
        match self {
            Self::Plain { sha256 } => sha256.is_none_or(|hash| hash == EMPTY_SHA256),
            Self::Chunks | Self::SignedChunks { .. } => true,
        }
    }

    /// Returns the payload of a request whose signature is not verified.
    pub(super) fn unverified(head: &Head) -> S3Result<Self> {
        let text = head.fields.given(CONTENT_SHA256);
        text.map_or(Ok(Self::Plain { sha256: None }), Self::from_text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn form_of_a_body_is_that_of_its_hash() {
        let form = |text: &str| Payload::from_text(text).map_err(|e| e.code().as_str().to_owned());
        let hash = "0F".repeat(32);
        assert!(matches!(form(&hash), Ok(Payload::Plain { sha256: Some(_) })));
        assert!(matches!(form(Payload::UNSIGNED), Ok(Payload::Plain { sha256: None })));
        assert!(matches!(form("STREAMING-UNSIGNED-PAYLOAD-TRAILER"), Ok(Payload::Chunks)));
        let signed = form("STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER");
        assert!(matches!(signed, Ok(Payload::SignedChunks { has_trailer: true, verifier: None })));
        for text in ["", "hello", "STREAMING", "STREAMING-UNSIGNED-PAYLOAD", &hash[1..]] {
            assert_eq!(form(text).unwrap_err(), "InvalidArgument", "{text}");
        }
        assert_eq!(form("STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD").unwrap_err(), "NotImplemented");
    }
}
