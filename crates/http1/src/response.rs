//! The head of a response.

use crate::fields::Fields;
use crate::framing::{Framing, Said, Version};
use crate::head;
use crate::limits::HeadLimits;
use crate::refused::Refused;
use crate::request::Asked;

/// The head of a response that can be read in one way only.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Response<'a> {
    /// 100 to 599.
    pub status: u16,
    /// The words after it; they may be empty.
    pub reason: &'a str,
    /// The version of its sender.
    pub version: Version,
    /// How long its body is; what the request was decides, too.
    pub framing: Framing,
    /// Its Content-Length. A response without a body may have one: it says how long the body would
    /// be.
    pub content_length: Option<u64>,
    /// Whether its sender keeps the connection when it was received whole.
    pub keep_alive: bool,
    /// All fields.
    pub fields: Fields<'a>,
    /// How long the head is, with its last empty line: the body begins here.
    pub head_bytes: usize,
}

impl Response<'_> {
    /// Whether another response follows to the same request: 100, 102, 103, but not 101.
    pub const fn is_interim(&self) -> bool {
        matches!(self.status, 100 | 102..=199)
    }

    /// Whether what follows the head is another protocol.
    pub const fn is_switch(&self, asked: Asked) -> bool {
        self.status == 101 || matches!(asked, Asked::Connect) && matches!(self.status, 200..=299)
    }
}

/// The head of the response that `bytes` begin with; `None` if it does not end in them.
///
/// Call it again with all bytes when there are more.
///
/// # Errors
/// The head is not one of HTTP/1.0 or 1.1, may be read in more than one way, or is beyond a limit.
/// The status of the refusal is what is wrong with the head; a gateway answers with 502.
pub fn parse_response<'a>(
    bytes: &'a [u8],
    limits: &HeadLimits,
    asked: Asked,
) -> Result<Option<Response<'a>>, Refused> {
    if matches!(bytes.first(), Some(b'\r' | b'\n')) {
        return Err(Refused::bad("an empty line before the response"));
    }
    let mut fields = head::NO_FIELDS;
    let mut parsed = httparse::Response::new(&mut []);
    let status = httparse::ParserConfig::default()
        .parse_response_with_uninit_headers(&mut parsed, bytes, &mut fields)
        .map_err(head::refusal)?;
    let (httparse::Status::Complete(head_bytes), Some(status), Some(version)) =
        (status, parsed.code, parsed.version)
    else {
        return head::check_unfinished(bytes, limits).map(|()| None);
    };
    if !matches!(status, 100..=599) {
        return Err(Refused::bad("the status is not from 100 to 599"));
    }
    let fields = head::fields(&bytes[..head_bytes], parsed.headers.len(), limits)?;
    let version = if version == 0 { Version::Http10 } else { Version::Http11 };
    let mut said = Said::default();
    for header in parsed.headers.iter() {
        said.take(header.name, header.value)?;
    }
    let framing = said.framing(version)?.unwrap_or(Framing::UntilClose);
    let has_body = asked != Asked::Head && !matches!(status, 100..=199 | 204 | 304);
    let framing = if has_body { framing } else { Framing::Length(0) };
    Ok(Some(Response {
        status,
        reason: parsed.reason.unwrap_or_default(),
        version,
        framing,
        content_length: said.content_length,
        keep_alive: said.keeps_alive(version) && framing != Framing::UntilClose,
        fields,
        head_bytes,
    }))
}
