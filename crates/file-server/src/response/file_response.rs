//! Responses to requests for files.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use haul_http_engine::{Inline, PreparedHead, PreparedResponse, ResponseHead};
use haul_http1::{RangeSelection, Verdict, content_range, unsatisfied_content_range};

use crate::context::ThreadContext;
use crate::file::description::Meta;
use crate::file::source::FileSource;
use crate::file::tier::{ResponseSource, Tier};
use crate::page::Page;
use crate::request::file_request::FileRequest;
use crate::send::body::{FileBody, Part};
use crate::send::request_count::LastCounted;

/// A response whose head is not written yet.
pub(crate) struct Response<'a> {
    status: u16,
    fields: Cow<'a, PreparedHead>,
    content: Content,
}

/// The bytes of a body.
enum Content {
    Memory(Bytes, Tier),
    Parts(FileSource, VecDeque<Part>),
}

impl<'a> Response<'a> {
    /// Returns a page, or only its head.
    pub(crate) fn page(page: &Page, is_head: bool) -> Self {
        Self::new(page.status, Cow::Owned(page.head()), page.body(is_head), Tier::None)
    }

    /// Returns a file, or the parts of it that the request selects.
    pub(crate) fn file(
        request: &FileRequest<'_>,
        source: &'a FileSource,
        boundary: impl FnOnce() -> String,
    ) -> Self {
        let (meta, fields, is_head) = (source.meta(), &request.fields, request.is_head);
        let mut range = fields.range;
        if fields.is_conditional {
            match fields.conditions.evaluate(&meta.validators(&meta.tag())) {
                Verdict::NotModified => return not_modified(meta),
                Verdict::Failed => return failed(meta, 412, None, is_head),
                Verdict::Proceed { with_ranges } => range = range.filter(|_| with_ranges),
            }
        }
        let file_bytes = meta.version.bytes;
        // Ranges apply to GET only.
        match range.filter(|_| !is_head).map(|range| RangeSelection::of(range, file_bytes)) {
            None | Some(RangeSelection::Whole) => {
                let range = if is_head { 0..0 } else { 0..file_bytes };
                let content = single(source, range, is_head);
                Self { status: 200, fields: Cow::Borrowed(&meta.whole), content }
            }
            Some(RangeSelection::Single(range)) => {
                let value = content_range(&range, file_bytes);
                let bytes = range.end - range.start;
                let fields = partial_head(meta, &meta.content_type, bytes, Some(&value));
                Self { status: 206, fields, content: single(source, range, false) }
            }
            Some(RangeSelection::Multiple(ranges)) => {
                let boundary = boundary();
                let parts = multipart(meta, &ranges, &boundary);
                let length =
                    |part: &Part| part.before.len() as u64 + part.range.end - part.range.start;
                let bytes = parts.iter().map(length).sum();
                let content_type = format!("multipart/byteranges; boundary={boundary}");
                let fields = partial_head(meta, &content_type, bytes, None);
                Self { status: 206, fields, content: Content::Parts(source.clone(), parts) }
            }
            Some(RangeSelection::Unsatisfiable) => {
                failed(meta, 416, Some(unsatisfied_content_range(file_bytes)), is_head)
            }
        }
    }

    fn new(status: u16, fields: Cow<'a, PreparedHead>, body: Bytes, tier: Tier) -> Self {
        Self { status, fields, content: Content::Memory(body, tier) }
    }

    /// Writes the head to a connection, and returns the body.
    pub(crate) fn write(
        self,
        head: &mut ResponseHead<'_>,
        thread: &Arc<ThreadContext>,
        last_counted: impl FnOnce() -> Arc<LastCounted>,
    ) -> Inline<FileBody> {
        // The fields were validated when they were written first.
        head.write_prepared(self.status, [], &self.fields).unwrap_or_default();
        match self.content {
            Content::Memory(bytes, tier) => Inline::Bytes(bytes, ResponseSource::memory(tier)),
            Content::Parts(source, parts) => {
                Inline::Body(FileBody::parts(thread, source, parts, last_counted()))
            }
        }
    }

    /// Returns a response that is ready later.
    pub(crate) fn prepare(
        self,
        thread: &Arc<ThreadContext>,
        last_counted: &Arc<LastCounted>,
    ) -> PreparedResponse<FileBody> {
        let body = match self.content {
            Content::Memory(bytes, tier) => FileBody::memory(thread, bytes, tier),
            Content::Parts(source, parts) => {
                FileBody::parts(thread, source, parts, Arc::clone(last_counted))
            }
        };
        PreparedResponse { status: self.status, fields: self.fields.into_owned(), body }
    }
}

/// Returns one range of a file as a body.
fn single(source: &FileSource, range: Range<u64>, is_head: bool) -> Content {
    match source {
        _ if is_head => Content::Memory(Bytes::new(), Tier::None),
        FileSource::Memory(file, tier) => {
            let at = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX);
            Content::Memory(file.body.slice(at(range.start)..at(range.end)), *tier)
        }
        FileSource::Open(_) => {
            Content::Parts(source.clone(), [Part { before: Bytes::new(), range }].into())
        }
    }
}

fn partial_head<'a>(
    meta: &Meta,
    content_type: &str,
    bytes: u64,
    content_range: Option<&str>,
) -> Cow<'a, PreparedHead> {
    let head = PreparedHead::new(|head| {
        meta.write_fields(head);
        head.field("content-type", content_type.as_bytes());
        if let Some(range) = content_range {
            head.field("content-range", range.as_bytes());
        }
        head.number("content-length", bytes);
    });
    // The fields of the file were validated when it was found.
    Cow::Owned(head.unwrap_or_default())
}

fn not_modified<'a>(meta: &Meta) -> Response<'a> {
    let head = PreparedHead::new(|head| meta.write_common_fields(head));
    Response::new(304, Cow::Owned(head.unwrap_or_default()), Bytes::new(), Tier::None)
}

fn failed<'a>(meta: &Meta, status: u16, range: Option<String>, is_head: bool) -> Response<'a> {
    let mut page = Page::for_status(status);
    // Without `Cache-Control`: caches would keep the error for as long as the file.
    page.fields.push(("etag", meta.tag()));
    page.fields.extend(meta.vary().map(|(name, value)| (name, value.to_owned())));
    if let Some(range) = range {
        page = page.with("content-range", range);
    }
    Response::page(&page, is_head)
}

/// Returns the parts of a `multipart/byteranges` body.
fn multipart(meta: &Meta, ranges: &[Range<u64>], boundary: &str) -> VecDeque<Part> {
    let part = |range: &Range<u64>| Part {
        before: Bytes::from(format!(
            "\r\n--{boundary}\r\nContent-Type: {}\r\nContent-Range: {}\r\n\r\n",
            meta.content_type,
            content_range(range, meta.version.bytes)
        )),
        range: range.clone(),
    };
    let last = Part { before: Bytes::from(format!("\r\n--{boundary}--\r\n")), range: 0..0 };
    ranges.iter().map(part).chain([last]).collect()
}
