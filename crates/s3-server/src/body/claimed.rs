//! The body of a request that the S3 service reads, compared with the claims of the client.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use hyper::header::{HeaderMap, HeaderValue};
use parking_lot::Mutex;
use s3s::{Body, S3Error, S3Result, StdError};

use crate::body::digests::{Claims, Digests};
use crate::subresources::Document;

/// The error of a body that does not match. The service, which reads the body, has no message for
/// it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Mismatch(Arc<Mutex<Option<S3Error>>>);

/// A body that fails at its end if it does not match.
struct ClaimedBody {
    body: Body,
    claims: Claims,
    /// `None` once the body has ended.
    digests: Option<Digests>,
    mismatch: Mismatch,
}

impl Mismatch {
    /// Returns the error, if the body was read and did not match.
    pub(crate) fn take(&self) -> Option<S3Error> {
        self.0.lock().take()
    }
}

/// Returns the body of a request with a document. It fails if it does not match the `Content-MD5` or
/// the checksum in the headers.
///
/// # Errors
/// A claim is malformed.
pub(crate) fn claimed(
    document: Document,
    headers: &HeaderMap,
    body: Body,
) -> S3Result<(Body, Mismatch)> {
    let mismatch = Mismatch::default();
    // The service decodes the chunks of such a body.
    let is_chunked = |kind: &HeaderValue| kind.as_bytes().starts_with(b"STREAMING-");
    if headers.get("x-amz-content-sha256").is_some_and(is_chunked) {
        return Ok((body, mismatch));
    }
    let text = |name: &str| {
        // Checksums in trailers are those of objects.
        let is_claim = match document {
            Document::None => false,
            Document::WithMd5 => name == "content-md5",
            Document::WithChecksum => name == "content-md5" || name.starts_with("x-amz-checksum-"),
        };
        headers.get(name).filter(|_| is_claim)?.to_str().ok()
    };
    let claims = Claims::of_fields(text, None)?;
    if claims.is_empty() {
        return Ok((body, mismatch));
    }
    let digests = Some(claims.digests(true));
    let body = ClaimedBody { body, claims, digests, mismatch: mismatch.clone() };
    Ok((Body::http_body(body), mismatch))
}

impl HttpBody for ClaimedBody {
    type Data = Bytes;
    type Error = StdError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StdError>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        match (&frame, &mut self.digests) {
            (Some(Ok(frame)), Some(digests)) => {
                if let Some(bytes) = frame.data_ref() {
                    digests.update(bytes);
                }
            }
            (None, digests) => {
                if let Some(digests) = digests.take()
                    && let Err(error) = self.claims.verify(digests, None)
                {
                    *self.mismatch.0.lock() = Some(error);
                    return Poll::Ready(Some(Err("the body does not match".into())));
                }
            }
            _ => {}
        }
        Poll::Ready(frame)
    }

    fn size_hint(&self) -> SizeHint {
        HttpBody::size_hint(&self.body)
    }
}
