//! PUT requests as the clients of S3 sign and frame them. Performs no I/O.

use base64_simd::STANDARD as BASE64;
use haul_crc::crc32;

use super::presigned::{Signer, sha256};

/// The way in which a client signs and frames the body of a PUT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// The hash of the body is signed: most SDKs over plain HTTP.
    Hash,
    /// Each chunk is signed: minio-go, mc and warp over plain HTTP.
    Chunks,
    /// The same, with a checksum in a signed trailer.
    ChunksWithTrailer,
    /// Chunks without signatures, with a checksum in the trailer: the SDKs of AWS over TLS.
    UnsignedChunks,
}

impl Dialect {
    /// Returns the value of `x-amz-content-sha256`.
    fn content_sha256(self, body: &[u8]) -> String {
        match self {
            Self::Hash => sha256(body),
            Self::Chunks => "STREAMING-AWS4-HMAC-SHA256-PAYLOAD".to_owned(),
            Self::ChunksWithTrailer => "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER".to_owned(),
            Self::UnsignedChunks => "STREAMING-UNSIGNED-PAYLOAD-TRAILER".to_owned(),
        }
    }

    fn has_trailer(self) -> bool {
        matches!(self, Self::ChunksWithTrailer | Self::UnsignedChunks)
    }
}

impl Signer {
    /// Returns a request to store a body of one chunk under a path without bytes that need encoding.
    pub(crate) fn put(&self, dialect: Dialect, path: &str, body: &[u8]) -> Vec<u8> {
        let (host, time, sha) = (self.host(), self.time(), dialect.content_sha256(body));
        let mut fields =
            vec![("host", host), ("x-amz-content-sha256", &*sha), ("x-amz-date", time)];
        let length = body.len().to_string();
        if dialect != Dialect::Hash {
            fields.push(("x-amz-decoded-content-length", &length));
        }
        if dialect.has_trailer() {
            fields.push(("x-amz-trailer", "x-amz-checksum-crc32"));
        }
        let names: Vec<_> = fields.iter().map(|(name, _)| *name).collect();
        let names = names.join(";");
        let lines: String =
            fields.iter().map(|(name, value)| format!("{name}:{value}\n")).collect();
        let canonical = format!("PUT\n{path}\n\n{lines}\n{names}\n{sha}");
        let signature = self.sign("AWS4-HMAC-SHA256", &[&sha256(canonical.as_bytes())]);
        let body = self.framed(dialect, &signature, body);
        let head: String =
            fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let head = format!(
            "PUT {path} HTTP/1.1\r\n{head}Authorization: {}, SignedHeaders={names}, \
             Signature={signature}\r\nContent-Length: {}\r\n\r\n",
            self.credential(),
            body.len()
        );
        [head.as_bytes(), &body].concat()
    }

    /// Returns a body in its framing. `seed` is the signature of the head.
    fn framed(&self, dialect: Dialect, seed: &str, body: &[u8]) -> Vec<u8> {
        let crc = BASE64.encode_to_string(crc32(body).to_be_bytes());
        let trailer = format!("x-amz-checksum-crc32:{crc}");
        let size = body.len();
        let (start, end) = match dialect {
            Dialect::Hash => return body.to_vec(),
            Dialect::UnsignedChunks => {
                (format!("{size:x}\r\n"), format!("\r\n0\r\n{trailer}\r\n\r\n"))
            }
            Dialect::Chunks | Dialect::ChunksWithTrailer => {
                let empty = sha256(b"");
                let sign = |before: &str, chunk: &[u8]| {
                    self.sign("AWS4-HMAC-SHA256-PAYLOAD", &[before, &empty, &sha256(chunk)])
                };
                let first = sign(seed, body);
                let last = sign(&first, b"");
                let trailer_hash = sha256(format!("{trailer}\n").as_bytes());
                let signed = self.sign("AWS4-HMAC-SHA256-TRAILER", &[&last, &trailer_hash]);
                let trailer = match dialect {
                    Dialect::ChunksWithTrailer => {
                        format!("{trailer}\r\nx-amz-trailer-signature:{signed}\r\n")
                    }
                    _ => String::new(),
                };
                let start = format!("{size:x};chunk-signature={first}\r\n");
                (start, format!("\r\n0;chunk-signature={last}\r\n{trailer}\r\n"))
            }
        };
        [start.as_bytes(), body, end.as_bytes()].concat()
    }
}
