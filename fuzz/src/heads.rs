//! Properties of parsed HTTP heads that requests and responses share.

use std::ops::Range;

use haul_http1::{
    Fields, Framing, HeadLimits, HeadWriter, HttpError, RangeSelection, Request, Target,
    content_range, parse_request,
};

/// The most cuts of a head that are parsed.
const CUTS_MAX: usize = 64;

/// Limits that short inputs reach.
#[must_use]
pub(crate) const fn low_limits() -> HeadLimits {
    HeadLimits { head_bytes_max: 160, target_bytes_max: 24, fields_max: 6 }
}

/// Checks that the bytes parse alike however many of them were received: a rejected head stays
/// rejected, and an accepted one stays the same. `parse` returns a description of an accepted head,
/// and its length.
///
/// # Panics
/// If that is not so.
pub(crate) fn assert_monotonic(
    bytes: &[u8],
    parse: impl Fn(&[u8]) -> Result<Option<(String, usize)>, HttpError>,
) {
    let whole = parse(bytes);
    let step = bytes.len().div_ceil(CUTS_MAX).max(1);
    for cut in (0..bytes.len()).step_by(step) {
        match (parse(&bytes[..cut]), &whole) {
            (Ok(None), Ok(Some((_, head_bytes)))) => assert!(cut < *head_bytes, "{cut} bytes"),
            (Ok(None), _) | (Err(_), Err(_)) => {}
            (Ok(Some(some)), Ok(Some(whole))) => assert_eq!(some, *whole, "{cut} bytes"),
            (some, whole) => panic!("{cut} bytes: {some:?}, all: {whole:?}"),
        }
    }
}

/// Checks that the fields of an accepted head declare one framing, and no line end is hidden in
/// them. `framing` is what the fields declare.
///
/// # Panics
/// If that is not so.
pub(crate) fn assert_unambiguous(head: &[u8], fields: &Fields<'_>, framing: Framing) {
    let lengths: Vec<_> = fields.all("content-length").collect();
    let codings: Vec<_> = fields.all("transfer-encoding").collect();
    assert!(lengths.len() + codings.len() <= 1, "{lengths:?} {codings:?}");
    if let Some(length) = lengths.first() {
        assert!(length.iter().all(u8::is_ascii_digit), "{length:?}");
        let length = str::from_utf8(length).ok().and_then(|length| length.parse().ok());
        assert_eq!(length.map(Framing::Length), Some(framing));
    }
    assert_eq!(framing == Framing::Chunked, codings.len() == 1);
    let lines = head.split(|byte| *byte == b'\n').count() - 1;
    let crs = head.iter().filter(|byte| **byte == b'\r').count();
    let empty = usize::from(head.starts_with(b"\r\n"));
    // The first line and the empty one at the end.
    assert_eq!([lines, crs], [fields.count() + 2 + empty; 2]);
    assert!(!head.contains(&0));
}

/// Describes an accepted request, without the place of its head.
#[must_use]
pub(crate) fn describe(request: &Request<'_>) -> String {
    let fields: Vec<_> = request.fields.into_iter().map(|one| (one.name, one.value)).collect();
    format!(
        "{} {:?} {:?} {:?} {:?} {} {} {} {fields:?}",
        request.method,
        request.target,
        request.version,
        request.host,
        request.framing,
        request.keep_alive,
        request.expect_continue,
        request.is_upgrade
    )
}

/// Writes a request as a gateway does.
///
/// # Panics
/// If the head cannot be written.
#[must_use]
pub(crate) fn rewrite(request: &Request<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    let target: &[&str] = match request.target {
        Target::Absolute { is_https, authority, path } => {
            &[if is_https { "https://" } else { "http://" }, authority, path]
        }
        Target::Origin(target) | Target::Authority(target) => &[target],
        Target::Asterisk => &["*"],
    };
    let mut head = HeadWriter::request(&mut out, request.method, target);
    for field in request.fields {
        head.field(field.name, field.value);
    }
    head.end().expect("an accepted head can be written");
    out
}

/// Parses a complete request with the default limits.
///
/// # Panics
/// If it is not accepted.
#[must_use]
pub(crate) fn accepted(head: &[u8]) -> Request<'_> {
    parse_request(head, &HeadLimits::default()).expect("accepted").expect("complete")
}

/// Returns the ranges that a Range field selects; none if it is ignored or cannot be satisfied.
fn selected(value: &[u8], length: u64) -> Vec<Range<u64>> {
    match RangeSelection::of(value, length) {
        RangeSelection::Whole | RangeSelection::Unsatisfiable => Vec::new(),
        RangeSelection::Single(range) => vec![range],
        RangeSelection::Multiple(ranges) => ranges,
    }
}

/// Checks that a Range field selects ranges in the representation, which together are not longer
/// than it, and that what a response declares for them selects them again.
///
/// # Panics
/// If that is not so.
pub(crate) fn assert_ranges(value: &[u8], length: u64) {
    let ranges = selected(value, length);
    let lies = |range: &Range<u64>| range.start < range.end && range.end <= length;
    assert!(ranges.iter().all(lies), "{ranges:?} of {length}");
    let bytes: u64 = ranges.iter().map(|range| range.end - range.start).sum();
    assert!(bytes <= length, "{ranges:?} of {length}");
    let declared = |range| content_range(range, length).replace("bytes ", "");
    let list: Vec<_> = ranges.iter().map(declared).collect();
    let list = list.join(",").replace(&format!("/{length}"), "");
    assert_eq!(selected(format!("bytes={list}").as_bytes(), length), ranges, "{list}");
}
