//! The head of a request. Pure.

use crate::fields::Fields;
use crate::framing::{Framing, Said, Version};
use crate::head;
use crate::limits::{HeadLimits, METHOD_BYTES_MAX};
use crate::refused::Refused;
use crate::target::{Target, is_authority, target};

/// The head of a request that can be read in one way only.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Request<'a> {
    /// `GET` and the like: a token, case matters.
    pub method: &'a str,
    /// What it is about.
    pub target: Target<'a>,
    /// The version of its sender.
    pub version: Version,
    /// The host it names, `host` or `host:port`: the target's if it has one, else the field's.
    /// HTTP/1.0 may name none.
    pub host: Option<&'a str>,
    /// How long its body is.
    pub framing: Framing,
    /// Whether its sender wants to keep the connection.
    pub keep_alive: bool,
    /// Whether its sender waits for `100 Continue` before the body.
    pub expect_continue: bool,
    /// Whether its sender wants another protocol: it has an Upgrade field, and Connection says so.
    pub is_upgrade: bool,
    /// All fields.
    pub fields: Fields<'a>,
    /// How long the head is, with its last empty line: the body begins here.
    pub head_bytes: usize,
}

impl Request<'_> {
    /// What its response must know of it.
    pub fn asked(&self) -> Asked {
        match self.method {
            "HEAD" => Asked::Head,
            "CONNECT" => Asked::Connect,
            _ => Asked::Other,
        }
    }
}

/// What one must know of a request to find the end of its response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// HEAD: the response has no body, whatever it says.
    Head,
    /// CONNECT: what follows a 2xx is no HTTP.
    Connect,
    /// Any other method.
    Other,
}

/// The head of the request that `bytes` begin with; `None` if it does not end in them.
///
/// Call it again with all bytes when there are more. Whatever begins with the bytes of a refused
/// head is refused, too.
///
/// # Errors
/// The head is not one of HTTP/1.0 or 1.1, may be read in more than one way, or is beyond a limit.
pub fn parse_request<'a>(
    bytes: &'a [u8],
    limits: &HeadLimits,
) -> Result<Option<Request<'a>>, Refused> {
    let from_line = head::skip_empty_line(bytes)?;
    let mut fields = head::NO_FIELDS;
    let mut parsed = httparse::Request::new(&mut []);
    let status = parsed
        .parse_with_uninit_headers(from_line, &mut fields)
        .map_err(|error| refusal(error, from_line))?;
    check_first_line(from_line, &parsed, limits)?;
    let (httparse::Status::Complete(head_bytes), Some(method), Some(path), Some(version)) =
        (status, parsed.method, parsed.path, parsed.version)
    else {
        return head::check_unfinished(from_line, limits).map(|()| None);
    };
    let fields = head::fields(&from_line[..head_bytes], parsed.headers.len(), limits)?;
    let version = if version == 0 { Version::Http10 } else { Version::Http11 };
    let mut said = Said::default();
    for header in parsed.headers.iter() {
        said.take_of_request(header.name, header.value)?;
    }
    let target = target(method, path)?;
    Ok(Some(Request {
        method,
        target,
        version,
        host: host(&said, target, version)?,
        framing: said.framing(version)?.unwrap_or(Framing::Length(0)),
        keep_alive: said.keeps_alive(version),
        expect_continue: expects_continue(&said, version)?,
        is_upgrade: said.is_upgrade(version),
        fields,
        head_bytes: head_bytes + (bytes.len() - from_line.len()),
    }))
}

/// Whether method and target are within their limits, as far as they were received.
fn check_first_line(
    bytes: &[u8],
    parsed: &httparse::Request<'_, '_>,
    limits: &HeadLimits,
) -> Result<(), Refused> {
    let method_bytes = parsed.method.map_or(bytes.len(), str::len);
    if method_bytes > METHOD_BYTES_MAX {
        return Err(Refused::new(501, "no method is this long"));
    }
    let after_method = bytes.len().saturating_sub(method_bytes + 1);
    if parsed.path.map_or(after_method, str::len) > limits.target_bytes_max {
        return Err(Refused::new(414, "the target is too long"));
    }
    Ok(())
}

/// What the parser found wrong; a version of HTTP that is not spoken is told from what is none.
fn refusal(error: httparse::Error, bytes: &[u8]) -> Refused {
    let line = bytes.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let mut words = line.split(|byte| *byte == b' ').skip(2);
    match (error, words.next(), words.next()) {
        (
            httparse::Error::Version,
            Some([b'H', b'T', b'T', b'P', b'/', major, b'.', minor]),
            None,
        ) if major.is_ascii_digit() && minor.is_ascii_digit() => {
            Refused::new(505, "only HTTP/1.0 and HTTP/1.1 are spoken")
        }
        _ => head::refusal(error),
    }
}

fn host<'a>(
    said: &Said<'a>,
    target: Target<'a>,
    version: Version,
) -> Result<Option<&'a str>, Refused> {
    let host = match said.host {
        None if version == Version::Http11 => return Err(Refused::bad("no Host field")),
        None => None,
        Some(host) if is_authority(host) => str::from_utf8(host).ok(),
        Some(_) => return Err(Refused::bad("the Host field is not host or host:port")),
    };
    Ok(match target {
        Target::Absolute { authority, .. } | Target::Authority(authority) => Some(authority),
        Target::Origin(_) | Target::Asterisk => host,
    })
}

fn expects_continue(said: &Said<'_>, version: Version) -> Result<bool, Refused> {
    match said.expect {
        Some(expect) if expect.eq_ignore_ascii_case(b"100-continue") => {
            Ok(version == Version::Http11)
        }
        Some(_) => Err(Refused::new(417, "Expect is not 100-continue")),
        None => Ok(false),
    }
}
