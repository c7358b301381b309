//! Parses request targets and authorities (`host` or `host:port`).

use crate::error::HttpError;

/// A request target, which consists of visible ASCII without `#`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target<'a> {
    /// Origin form: `/path?query`.
    Origin(&'a str),
    /// Absolute form, sent to proxies: `http://host:port/path?query`.
    Absolute {
        /// `true` if the scheme is `https`.
        is_https: bool,
        /// `host` or `host:port`, never empty.
        authority: &'a str,
        /// `/path?query`; it may be empty or begin with `?`.
        path: &'a str,
    },
    /// Authority form of CONNECT: `host:port`.
    Authority(&'a str),
    /// Asterisk form of OPTIONS: `*`.
    Asterisk,
}

impl<'a> Target<'a> {
    /// Returns `/path?query`. In absolute form, this part may be empty or lack the `/`; in
    /// authority and asterisk form it is empty.
    pub const fn path(&self) -> &'a str {
        match self {
            Self::Origin(path) | Self::Absolute { path, .. } => path,
            Self::Authority(_) | Self::Asterisk => "",
        }
    }
}

/// Parses the target of a request with this method.
pub(crate) fn target<'a>(method: &str, target: &'a str) -> Result<Target<'a>, HttpError> {
    if !target.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#') {
        return Err(HttpError::bad_request(
            "the target contains a byte that must be percent-encoded",
        ));
    }
    if method == "CONNECT" {
        let has_port = |at: &str| at.rsplit_once(':').is_some_and(|(_, port)| is_port(port));
        return (is_authority(target.as_bytes()) && has_port(target))
            .then_some(Target::Authority(target))
            .ok_or(HttpError::bad_request("the target of CONNECT is not HOST:PORT"));
    }
    if target.starts_with('/') {
        return Ok(Target::Origin(target));
    }
    if target == "*" {
        let is_valid = method == "OPTIONS";
        return is_valid
            .then_some(Target::Asterisk)
            .ok_or(HttpError::bad_request("the target * is valid only for OPTIONS"));
    }
    absolute(target)
        .ok_or(HttpError::bad_request("the target is neither a path nor an http or https URL"))
}

fn absolute(target: &str) -> Option<Target<'_>> {
    let (scheme, rest) = target.split_once("://")?;
    let is_https = scheme.eq_ignore_ascii_case("https");
    if !is_https && !scheme.eq_ignore_ascii_case("http") {
        return None;
    }
    let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    is_authority(authority.as_bytes()).then_some(Target::Absolute { is_https, authority, path })
}

/// Returns `true` for `host` or `host:port`, also with an empty port (RFC 3986, section 3.2.3);
/// rejects user information, lists and paths.
pub(crate) fn is_authority(authority: &[u8]) -> bool {
    let Ok(authority) = str::from_utf8(authority) else { return false };
    if let Some(rest) = authority.strip_prefix('[') {
        let Some((address, port)) = rest.split_once(']') else { return false };
        let is_address = address.bytes().all(|byte| is_name_byte(byte) || byte == b':');
        let is_port = port.is_empty() || port == ":" || port.strip_prefix(':').is_some_and(is_port);
        return !address.is_empty() && is_address && is_port;
    }
    let (name, port) = authority.split_once(':').unwrap_or((authority, ""));
    !name.is_empty() && name.bytes().all(is_name_byte) && (port.is_empty() || is_port(port))
}

/// Returns `true` for a byte of a host name. RFC 3986 allows a comma, but it is rejected, because a
/// list of two hosts could be read as one host.
const fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'-' | b'.' | b'_' | b'~' | b'%' | b'!' | b'$' | b'&' | b'\'')
        || matches!(byte, b'(' | b')' | b'*' | b'+' | b';' | b'=')
}

fn is_port(port: &str) -> bool {
    !port.is_empty()
        && port.bytes().all(|byte| byte.is_ascii_digit())
        && port.parse::<u16>().is_ok()
}
