//! Parses request heads. Performs no I/O.

use crate::error::HttpError;
use crate::fields::Fields;
use crate::framing::{ControlFields, Framing, Version};
use crate::head;
use crate::limits::{HeadLimits, METHOD_BYTES_MAX};
use crate::target::{Target, is_authority, target};

/// The head of a request, which the parser found to be unambiguous.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Request<'a> {
    /// The method, a case-sensitive token such as `GET`.
    pub method: &'a str,
    /// The request target.
    pub target: Target<'a>,
    /// The protocol version.
    pub version: Version,
    /// The host, as `host` or `host:port`, without an empty port: from the target if the target
    /// contains a host, otherwise from the Host field. `None` is possible only with HTTP/1.0.
    pub host: Option<&'a str>,
    /// The framing of the body.
    pub framing: Framing,
    /// `true` if the client keeps the connection open.
    pub keep_alive: bool,
    /// `true` if the client waits for `100 Continue` before it sends the body.
    pub expect_continue: bool,
    /// `true` if the client requests another protocol: the request has an Upgrade field, and its
    /// Connection field lists `upgrade`.
    pub is_upgrade: bool,
    /// All fields of the head.
    pub fields: Fields<'a>,
    /// The length of the head in bytes, including its final empty line: the offset of the body.
    pub head_bytes: usize,
}

impl Request<'_> {
    /// Returns the property of the method that affects the framing of the response.
    pub fn method_kind(&self) -> MethodKind {
        match self.method {
            "HEAD" => MethodKind::Head,
            "CONNECT" => MethodKind::Connect,
            _ => MethodKind::Other,
        }
    }
}

/// The property of a method that affects the framing of the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MethodKind {
    /// HEAD: the response has no body, even if its fields declare one.
    Head,
    /// CONNECT: a 2xx response switches to a tunnel.
    Connect,
    /// Any other method.
    Other,
}

/// Parses the head of the request at the start of `bytes`; returns `None` if it is incomplete.
///
/// After `None`, call the function again with all bytes received, when more have arrived. A
/// rejected head stays rejected if bytes are appended.
///
/// # Errors
/// Fails if the head is not valid HTTP/1.0 or 1.1, is ambiguous, or exceeds a limit.
pub fn parse_request<'a>(
    bytes: &'a [u8],
    limits: &HeadLimits,
) -> Result<Option<Request<'a>>, HttpError> {
    let from_line = head::skip_empty_line(bytes)?;
    let mut fields = head::no_fields();
    let mut parsed = httparse::Request::new(&mut []);
    let status = parsed
        .parse_with_uninit_headers(from_line, &mut fields)
        .map_err(|error| parse_error(error, from_line))?;
    check_first_line(from_line, &parsed, limits)?;
    let (httparse::Status::Complete(head_bytes), Some(method), Some(path), Some(version)) =
        (status, parsed.method, parsed.path, parsed.version)
    else {
        return head::check_incomplete(from_line, limits).map(|()| None);
    };
    let fields = head::fields(&from_line[..head_bytes], parsed.headers.len(), limits)?;
    let version = if version == 0 { Version::Http10 } else { Version::Http11 };
    let mut control = ControlFields::default();
    for header in parsed.headers.iter() {
        control.apply_request_field(header.name, header.value)?;
    }
    let target = target(method, path)?;
    Ok(Some(Request {
        method,
        target,
        version,
        host: host(&control, target, version)?,
        framing: control.framing(version)?.unwrap_or(Framing::Length(0)),
        keep_alive: control.keeps_alive(version),
        expect_continue: expects_continue(&control, version)?,
        is_upgrade: control.is_upgrade(version),
        fields,
        head_bytes: head_bytes + (bytes.len() - from_line.len()),
    }))
}

/// Returns an error if the part of the method or of the target received so far is too long.
fn check_first_line(
    bytes: &[u8],
    parsed: &httparse::Request<'_, '_>,
    limits: &HeadLimits,
) -> Result<(), HttpError> {
    let method_bytes = parsed.method.map_or(bytes.len(), str::len);
    if method_bytes > METHOD_BYTES_MAX {
        return Err(HttpError::new(501, "the method is too long"));
    }
    let after_method = bytes.len().saturating_sub(method_bytes + 1);
    if parsed.path.map_or(after_method, str::len) > limits.target_bytes_max {
        return Err(HttpError::new(414, "the target is too long"));
    }
    Ok(())
}

/// Converts an error of `httparse`: an unsupported HTTP version gives status 505, an invalid
/// version status 400.
fn parse_error(error: httparse::Error, bytes: &[u8]) -> HttpError {
    let line = bytes.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let mut words = line.split(|byte| *byte == b' ').skip(2);
    match (error, words.next(), words.next()) {
        (
            httparse::Error::Version,
            Some([b'H', b'T', b'T', b'P', b'/', major, b'.', minor]),
            None,
        ) if major.is_ascii_digit() && minor.is_ascii_digit() => {
            HttpError::new(505, "only HTTP/1.0 and HTTP/1.1 are supported")
        }
        _ => head::parse_error(error),
    }
}

fn host<'a>(
    control: &ControlFields<'a>,
    target: Target<'a>,
    version: Version,
) -> Result<Option<&'a str>, HttpError> {
    let host = match control.host {
        None if version == Version::Http11 => return Err(HttpError::bad_request("no Host field")),
        None => None,
        Some(host) if is_authority(host) => str::from_utf8(host).ok(),
        Some(_) => return Err(HttpError::bad_request("the Host field is not HOST or HOST:PORT")),
    };
    let host = match target {
        Target::Absolute { authority, .. } | Target::Authority(authority) => Some(authority),
        Target::Origin(_) | Target::Asterisk => host,
    };
    // An empty port is the default one.
    Ok(host.map(|host| host.strip_suffix(':').unwrap_or(host)))
}

fn expects_continue(control: &ControlFields<'_>, version: Version) -> Result<bool, HttpError> {
    match control.expect {
        Some(expect) if expect.eq_ignore_ascii_case(b"100-continue") => {
            Ok(version == Version::Http11)
        }
        Some(_) => Err(HttpError::new(417, "Expect is not 100-continue")),
        None => Ok(false),
    }
}
