//! Answers, as bytes: heads for what was found, and short texts for what was not.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use haul_http1::{
    Date, HeadWriter, RangeSelection, Verdict, content_range, reason_phrase,
    unsatisfied_content_range,
};

use crate::asking::Asking;
use crate::listing::Listed;
use crate::meta::{Lines, Meta};
use crate::sending::{Part, Sending, Source};

/// What every head says besides.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Manner<'a> {
    pub(crate) date: &'a Date,
    /// The client hears nothing more on this connection.
    pub(crate) closes: bool,
    /// An old client must be told that it does.
    pub(crate) tells_keep_alive: bool,
    /// Only the head is wanted.
    pub(crate) is_head: bool,
}

impl Manner<'_> {
    /// A line that goes into each head, or nothing.
    pub(crate) fn connection(&self) -> &'static [u8] {
        match (self.closes, self.tells_keep_alive) {
            (true, _) => b"Connection: close\r\n",
            (false, true) => b"Connection: keep-alive\r\n",
            (false, false) => b"",
        }
    }

    fn begin<'out>(&self, out: &'out mut Vec<u8>, status: u16) -> HeadWriter<'out> {
        let mut head = HeadWriter::response(out, status);
        head.date("Date", self.date);
        if self.closes {
            head.field("Connection", b"close");
        } else if self.tells_keep_alive {
            head.field("Connection", b"keep-alive");
        }
        head
    }
}

/// A page the server made.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) status: u16,
    pub(crate) content_type: &'static str,
    pub(crate) fields: Lines,
    pub(crate) text: String,
}

impl Page {
    /// The status in words, for people.
    pub(crate) fn of_status(status: u16) -> Self {
        let page = Self::plain(status, format!("{status} {}\n", reason_phrase(status)));
        // There is too much to do, or too little to do it with: soon that may be otherwise.
        if status == 503 { page.with("Retry-After", "1") } else { page }
    }

    pub(crate) fn plain(status: u16, text: String) -> Self {
        Self { status, content_type: "text/plain; charset=utf-8", fields: Vec::new(), text }
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.fields.push((name, value.into()));
        self
    }
}

/// A page, or only the head of it.
pub(crate) fn page(manner: &Manner<'_>, page: &Page) -> Sending {
    let mut out = page_head(manner, page);
    let head_bytes = out.len();
    if !manner.is_head && page.status != 204 {
        out.extend_from_slice(page.text.as_bytes());
    }
    Sending::new(page.status, out, head_bytes)
}

/// A listing, whose bytes all who asked for it have in common, or only the head of it.
pub(crate) fn listing(manner: &Manner<'_>, listed: &Arc<Listed>) -> Sending {
    let out = page_head(manner, &listed.page);
    let head_bytes = out.len();
    let sending = Sending::new(listed.page.status, out, head_bytes);
    if manner.is_head { sending } else { sending.with_listing(Arc::clone(listed)) }
}

fn page_head(manner: &Manner<'_>, page: &Page) -> Vec<u8> {
    let mut out = Vec::with_capacity(256 + page.text.len().min(1024));
    let mut head = manner.begin(&mut out, page.status);
    says(&mut head, &page.fields);
    if page.status != 204 {
        head.field("Content-Type", page.content_type.as_bytes());
        head.field("X-Content-Type-Options", b"nosniff");
        head.number("Content-Length", page.text.len() as u64);
    }
    // Nothing from outside is said without being escaped.
    head.end().unwrap_or_default();
    out
}

/// A file, or what of it the request asks for.
pub(crate) fn file(
    manner: &Manner<'_>,
    asking: &Asking<'_>,
    source: &Source,
    boundary: impl FnOnce() -> String,
) -> Sending {
    let meta = source.meta();
    let with_ranges = match asking.conditions.evaluate(&meta.validators()) {
        Verdict::NotModified => return not_modified(manner, meta),
        Verdict::Failed => return failed(manner, meta, 412, None),
        // Ranges are for GET alone.
        Verdict::Proceed { with_ranges } => with_ranges && !manner.is_head,
    };
    let file_bytes = meta.version.bytes;
    match asking.range.filter(|_| with_ranges).map(|range| RangeSelection::of(range, file_bytes)) {
        None | Some(RangeSelection::Whole) => {
            let all = head(manner, 200, meta, meta.content_type.as_bytes(), file_bytes, None);
            all.with_range(source, if manner.is_head { 0..0 } else { 0..file_bytes })
        }
        Some(RangeSelection::Single(range)) => {
            let told = content_range(&range, file_bytes);
            let bytes = range.end - range.start;
            let content_type = meta.content_type.as_bytes();
            head(manner, 206, meta, content_type, bytes, Some(&told)).with_range(source, range)
        }
        Some(RangeSelection::Multiple(ranges)) => {
            let boundary = boundary();
            let parts = parts(meta, &ranges, &boundary);
            let length = |part: &Part| part.before.len() as u64 + part.range.end - part.range.start;
            let bytes = parts.iter().map(length).sum();
            let content_type = format!("multipart/byteranges; boundary={boundary}");
            let head = head(manner, 206, meta, content_type.as_bytes(), bytes, None);
            head.with_parts(source, parts)
        }
        Some(RangeSelection::Unsatisfiable) => {
            failed(manner, meta, 416, Some(unsatisfied_content_range(file_bytes)))
        }
    }
}

fn head(
    manner: &Manner<'_>,
    status: u16,
    meta: &Meta,
    content_type: &[u8],
    bytes: u64,
    content_range: Option<&str>,
) -> Sending {
    let mut out = Vec::with_capacity(512);
    let mut head = manner.begin(&mut out, status);
    says(&mut head, &meta.always);
    says(&mut head, &meta.with_body);
    head.field("Content-Type", content_type);
    if let Some(range) = content_range {
        head.field("Content-Range", range.as_bytes());
    }
    head.number("Content-Length", bytes);
    // The fields of a file were written once already, when it was found.
    head.end().unwrap_or_default();
    let head_bytes = out.len();
    Sending::new(status, out, head_bytes)
}

fn not_modified(manner: &Manner<'_>, meta: &Meta) -> Sending {
    let mut out = Vec::with_capacity(256);
    let mut head = manner.begin(&mut out, 304);
    says(&mut head, &meta.always);
    head.end().unwrap_or_default();
    let head_bytes = out.len();
    Sending::new(304, out, head_bytes)
}

fn failed(manner: &Manner<'_>, meta: &Meta, status: u16, range: Option<String>) -> Sending {
    let mut answer = Page::of_status(status);
    // How long the file stays right says nothing about a failure: others could be told it by a
    // cache for as long.
    let lines = meta.always.iter().filter(|line| line.0 != "Cache-Control");
    answer.fields.extend(lines.cloned());
    if let Some(range) = range {
        answer = answer.with("Content-Range", range);
    }
    page(manner, &answer)
}

fn says(head: &mut HeadWriter<'_>, lines: &Lines) {
    for (name, value) in lines {
        head.field(name, value.as_bytes());
    }
}

/// The parts of a `multipart/byteranges`, with what stands before each and after the last.
fn parts(meta: &Meta, ranges: &[Range<u64>], boundary: &str) -> VecDeque<Part> {
    let part = |range: &Range<u64>| Part {
        before: format!(
            "\r\n--{boundary}\r\nContent-Type: {}\r\nContent-Range: {}\r\n\r\n",
            meta.content_type,
            content_range(range, meta.version.bytes)
        )
        .into_bytes(),
        range: range.clone(),
    };
    let last = Part { before: format!("\r\n--{boundary}--\r\n").into_bytes(), range: 0..0 };
    ranges.iter().map(part).chain([last]).collect()
}
