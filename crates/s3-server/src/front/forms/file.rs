//! The content of a form's file, as a request body.

use std::ops::RangeInclusive;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame};
use memchr::memmem;

use crate::body::error::BodyError;
use crate::errors::{S3Error, S3ErrorCode, refuse};

/// The maximum length of the fields after the file, in bytes; they are ignored.
const REST_BYTES_MAX: usize = 64 * 1024;

/// A file's content: the form's body up to the next delimiter. The rest is received and ignored.
pub(super) struct FileBody<B> {
    body: B,
    /// CR LF and the delimiter.
    end: Vec<u8>,
    /// Received bytes that are not returned yet.
    pending: Bytes,
    /// The lengths that the policy allows.
    lengths: RangeInclusive<u64>,
    returned: u64,
    /// The number of bytes after the delimiter, once it is found.
    rest: Option<usize>,
}

impl<B> FileBody<B> {
    /// Returns the content of a file that begins with `pending` and continues in `body`.
    pub(super) fn new(body: B, delimiter: &str, pending: Bytes) -> Self {
        let end = format!("\r\n{delimiter}").into_bytes();
        Self { body, end, pending, lengths: 0..=u64::MAX, returned: 0, rest: None }
    }

    /// Rejects files with another length.
    pub(super) fn with_lengths(self, lengths: RangeInclusive<u64>) -> Self {
        Self { lengths, ..self }
    }

    /// Returns the next content among the pending bytes; `None` if more bytes are needed. Keeps
    /// bytes that may begin the delimiter.
    fn next(&mut self) -> Option<Bytes> {
        if let Some(at) = memmem::find(&self.pending, &self.end) {
            let content = self.pending.split_to(at);
            self.rest = Some(self.pending.len());
            self.pending = Bytes::new();
            return Some(content);
        }
        let longest = self.pending.len().min(self.end.len() - 1);
        let begins_end = |bytes: &usize| self.pending.ends_with(&self.end[..*bytes]);
        let held = (1..=longest).rev().find(begins_end).unwrap_or(0);
        let content = self.pending.split_to(self.pending.len() - held);
        (!content.is_empty()).then_some(content)
    }

    fn push(&mut self, chunk: Bytes) {
        if self.pending.is_empty() {
            self.pending = chunk;
        } else {
            let mut joined = BytesMut::from(self.pending.as_ref());
            joined.extend_from_slice(&chunk);
            self.pending = joined.freeze();
        }
    }

    /// Rejects a file as soon as the policy certainly does not allow its length.
    fn check_length(&self) -> Result<(), S3Error> {
        let (is_whole, bytes) = (self.rest.is_some(), self.returned);
        if bytes > *self.lengths.end() {
            let message = "Your proposed upload exceeds the maximum allowed size";
            let mut error = refuse(S3ErrorCode::EntityTooLarge, message);
            if is_whole {
                error = error.with_field("ProposedSize", bytes.to_string());
            }
            return Err(error.with_field("MaxSizeAllowed", self.lengths.end().to_string()));
        }
        if is_whole && bytes < *self.lengths.start() {
            let message = "Your proposed upload is smaller than the minimum allowed size";
            return Err(refuse(S3ErrorCode::EntityTooSmall, message)
                .with_field("ProposedSize", bytes.to_string())
                .with_field("MinSizeAllowed", self.lengths.start().to_string()));
        }
        Ok(())
    }

    /// Counts a chunk after the delimiter. Fails if there are too many bytes.
    fn skip(&mut self, skipped: usize, chunk: &Bytes) -> Result<(), S3Error> {
        let bytes = skipped + chunk.len();
        if bytes > REST_BYTES_MAX {
            let message = "The form has too many bytes after its file";
            return Err(refuse(S3ErrorCode::MalformedPOSTRequest, message));
        }
        self.rest = Some(bytes);
        Ok(())
    }
}

impl<B> Body for FileBody<B>
where
    B: Body<Data = Bytes> + Unpin,
{
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let fail = |error| Poll::Ready(Some(Err(BodyError::Refused(error))));
        loop {
            if self.rest.is_none()
                && let Some(content) = self.next()
            {
                self.returned += content.len() as u64;
                if let Err(error) = self.check_length() {
                    return fail(error);
                }
                if !content.is_empty() {
                    return Poll::Ready(Some(Ok(Frame::data(content))));
                }
            }
            let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
            let chunk = match (frame, self.rest) {
                (None, Some(_)) => return Poll::Ready(None),
                (None | Some(Err(_)), _) => {
                    let message = "The body of the form ends before its last delimiter";
                    return fail(refuse(S3ErrorCode::IncompleteBody, message));
                }
                (Some(Ok(frame)), _) => frame.into_data().unwrap_or_default(),
            };
            match self.rest {
                None => self.push(chunk),
                Some(skipped) => {
                    if let Err(error) = self.skip(skipped, &chunk) {
                        return fail(error);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::convert::Infallible;

    use http_body_util::BodyExt;

    use super::*;

    /// A body that arrives in these pieces.
    struct Pieces(VecDeque<Bytes>);

    impl Body for Pieces {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            Poll::Ready(self.0.pop_front().map(|bytes| Ok(Frame::data(bytes))))
        }
    }

    /// Reads a file from a form that arrives in pieces with this length.
    fn read(form: &[u8], piece: usize, lengths: RangeInclusive<u64>) -> Result<Vec<u8>, S3Error> {
        let pieces = Pieces(form.chunks(piece).map(Bytes::copy_from_slice).collect());
        let mut body = FileBody::new(pieces, "--x", Bytes::new()).with_lengths(lengths);
        let mut content = Vec::new();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        while let Some(frame) = runtime.block_on(body.frame()) {
            match frame {
                Ok(frame) => content.extend_from_slice(&frame.into_data().unwrap()),
                Err(BodyError::Refused(error)) => return Err(error),
                Err(other) => panic!("{other}"),
            }
        }
        Ok(content)
    }

    #[test]
    fn content_ends_before_the_delimiter_at_any_piece_length() {
        let any = 0..=u64::MAX;
        for content in ["", "content", "a\r\n-", "\r\n--", "\r\n--y\r\n", "\r\r\n\r\n--\r"] {
            let form = format!("{content}\r\n--x\r\nignored: field\r\n--x--\r\n");
            for piece in 1..=form.len() {
                let found = read(form.as_bytes(), piece, any.clone()).unwrap();
                assert_eq!(found, content.as_bytes(), "{content:?} {piece}");
            }
            let bytes = content.len() as u64;
            let found = read(form.as_bytes(), 3, bytes..=bytes).unwrap();
            assert_eq!(found, content.as_bytes(), "{content:?}");
        }
    }

    #[test]
    fn other_lengths_and_incomplete_forms_are_refused() {
        for piece in 1..20 {
            let refused = |form: &str, lengths| read(form.as_bytes(), piece, lengths).unwrap_err();
            let code = |form: &str, lengths| refused(form, lengths).code().as_str();
            assert_eq!(code("abc\r\n--x--\r\n", 0..=2), "EntityTooLarge");
            assert_eq!(code("abc\r\n--x--\r\n", 4..=9), "EntityTooSmall");
            assert_eq!(code("abc\r\n--", 0..=9), "IncompleteBody");
        }
        for (lengths, limit, value) in
            [(4..=9, "MinSizeAllowed", "4"), (0..=2, "MaxSizeAllowed", "2")]
        {
            let error = read(b"abc\r\n--x--\r\n", 20, lengths).unwrap_err();
            assert_eq!([error.field("ProposedSize"), error.field(limit)], [Some("3"), Some(value)]);
        }
        let long = format!("\r\n--x{}", "a".repeat(REST_BYTES_MAX + 1));
        assert!(read(long.as_bytes(), 1000, 0..=9).is_err());
    }
}
