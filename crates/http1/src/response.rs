//! Parses response heads.

use crate::error::HttpError;
use crate::fields::Fields;
use crate::framing::{ControlFields, Framing, Version};
use crate::head;
use crate::limits::HeadLimits;
use crate::request::MethodKind;

/// The head of a response, which the parser found to be unambiguous.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Response<'a> {
    /// The status code, 100 to 599.
    pub status: u16,
    /// The reason phrase; it may be empty.
    pub reason: &'a str,
    /// The protocol version.
    pub version: Version,
    /// The framing of the body, which also depends on the request method.
    pub framing: Framing,
    /// The value of Content-Length. A response without a body (HEAD, 304) may declare the length
    /// its body would have.
    pub content_length: Option<u64>,
    /// `true` if the server keeps the connection open after the complete message.
    pub keep_alive: bool,
    /// All fields of the head.
    pub fields: Fields<'a>,
    /// The length of the head in bytes, including its final empty line: the offset of the body.
    pub head_bytes: usize,
}

impl Response<'_> {
    /// Returns `true` if another response to the same request follows: 1xx except 101.
    pub const fn is_interim(&self) -> bool {
        matches!(self.status, 100 | 102..=199)
    }

    /// Returns `true` if another protocol follows the head: 101, or 2xx in response to CONNECT.
    pub const fn is_protocol_switch(&self, method: MethodKind) -> bool {
        self.status == 101
            || matches!(method, MethodKind::Connect) && matches!(self.status, 200..=299)
    }
}

/// Parses the head of the response at the start of `bytes`; returns `None` if it is incomplete.
///
/// After `None`, call the function again with all bytes received, when more have arrived. Blanks
/// between a field name and its colon, which a proxy must remove from responses (RFC 9112,
/// section 5.1), are not part of the name.
///
/// # Errors
/// Fails if the head is not valid HTTP/1.0 or 1.1, is ambiguous, or exceeds a limit. A gateway
/// responds with 502 instead of the status of the error.
pub fn parse_response<'a>(
    bytes: &'a [u8],
    limits: &HeadLimits,
    method: MethodKind,
) -> Result<Option<Response<'a>>, HttpError> {
    if matches!(bytes.first(), Some(b'\r' | b'\n')) {
        return Err(HttpError::bad_request("empty line before the status line"));
    }
    let mut fields = head::no_fields();
    let mut parsed = httparse::Response::new(&mut []);
    let status = httparse::ParserConfig::default()
        .allow_spaces_after_header_name_in_responses(true)
        .parse_response_with_uninit_headers(&mut parsed, bytes, &mut fields)
        .map_err(head::parse_error)?;
    let (httparse::Status::Complete(head_bytes), Some(status), Some(version)) =
        (status, parsed.code, parsed.version)
    else {
        return head::check_incomplete(bytes, limits).map(|()| None);
    };
    if !matches!(status, 100..=599) {
        return Err(HttpError::bad_request("the status is not from 100 to 599"));
    }
    let fields = head::fields(&bytes[..head_bytes], parsed.headers.len(), limits)?;
    let version = if version == 0 { Version::Http10 } else { Version::Http11 };
    let mut control = ControlFields::default();
    for header in parsed.headers.iter() {
        control.apply_field(header.name, header.value)?;
    }
    let framing = control.framing(version)?.unwrap_or(Framing::UntilClose);
    let has_body = method != MethodKind::Head && !matches!(status, 100..=199 | 204 | 304);
    let framing = if has_body { framing } else { Framing::Length(0) };
    Ok(Some(Response {
        status,
        reason: parsed.reason.unwrap_or_default(),
        version,
        framing,
        content_length: control.content_length,
        keep_alive: control.keeps_alive(version) && framing != Framing::UntilClose,
        fields,
        head_bytes,
    }))
}
