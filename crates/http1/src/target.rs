//! What a request is about: its target and the host it names.

use crate::refused::Refused;

/// The target of a request. It is visible ASCII without `#`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target<'a> {
    /// `/path?query`, the usual form.
    Origin(&'a str),
    /// `http://host:port/path?query`, the form proxies are asked with.
    Absolute {
        /// Whether it is `https`.
        is_https: bool,
        /// `host` or `host:port`, never empty.
        authority: &'a str,
        /// `/path?query`; it may be empty, or begin with `?`.
        path: &'a str,
    },
    /// `host:port`, of CONNECT.
    Authority(&'a str),
    /// `*`, of OPTIONS.
    Asterisk,
}

impl<'a> Target<'a> {
    /// `/path?query`. An absolute target's may be empty or lack its `/`; the others have none.
    pub const fn path(&self) -> &'a str {
        match self {
            Self::Origin(path) | Self::Absolute { path, .. } => path,
            Self::Authority(_) | Self::Asterisk => "",
        }
    }
}

/// The target of a request with this method.
pub(crate) fn target<'a>(method: &str, target: &'a str) -> Result<Target<'a>, Refused> {
    if !target.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#') {
        return Err(Refused::bad("the target has bytes that must be percent-encoded"));
    }
    if method == "CONNECT" {
        let has_port = |at: &str| at.rsplit_once(':').is_some_and(|(_, port)| is_port(port));
        return (is_authority(target.as_bytes()) && has_port(target))
            .then_some(Target::Authority(target))
            .ok_or(Refused::bad("CONNECT wants host:port"));
    }
    if target.starts_with('/') {
        return Ok(Target::Origin(target));
    }
    if target == "*" {
        let is_right = method == "OPTIONS";
        return is_right.then_some(Target::Asterisk).ok_or(Refused::bad("* is for OPTIONS"));
    }
    absolute(target).ok_or(Refused::bad("the target is neither a path nor an http address"))
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

/// Whether this is `host` or `host:port`, and nothing more: no user, no list, no path.
pub(crate) fn is_authority(authority: &[u8]) -> bool {
    let Ok(authority) = str::from_utf8(authority) else { return false };
    if let Some(rest) = authority.strip_prefix('[') {
        let Some((address, port)) = rest.split_once(']') else { return false };
        let is_address = address.bytes().all(|byte| is_name_byte(byte) || byte == b':');
        let is_port = port.is_empty() || port.strip_prefix(':').is_some_and(is_port);
        return !address.is_empty() && is_address && is_port;
    }
    let (name, port) = authority.split_once(':').unwrap_or((authority, "0"));
    !name.is_empty() && name.bytes().all(is_name_byte) && is_port(port)
}

/// Bytes of a registered name; a comma could be, but then two hosts could look like one.
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
