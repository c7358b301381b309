//! The fields of a line.

use std::borrow::Cow;
use std::io::Write as _;
use std::net::IpAddr;
use std::time::Duration;

use haul_http1::{Request, Version};

use super::redact::without_secrets;

/// The status of a request whose connection ended before its response began, as in the logs of
/// other servers. It is never sent.
pub const NO_RESPONSE: u16 = 499;

/// The format of a line. The fields after the bytes depend on the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogFormat {
    /// The common log format, and the fields of the server.
    #[default]
    Common,
    /// The combined log format (with referer and user agent), and the fields of the server.
    Combined,
    /// A JSON object with the fields `time`, `client`, `user`, `method`, `target`, `protocol`,
    /// `referer`, `user_agent`, `status`, `bytes`, `duration_us`, and those of the server. A field
    /// without a value is `null`.
    Json,
}

/// The parts of a request that a line contains.
#[derive(Debug)]
pub(crate) struct LoggedRequest<'a> {
    pub(crate) method: &'a [u8],
    /// The target, without what a reader could repeat the request with.
    pub(crate) target: Cow<'a, [u8]>,
    /// `HTTP/1.0` or `HTTP/1.1`.
    pub(crate) protocol: &'a [u8],
    /// The page with a link to the target; a presigned URL without its signature.
    pub(crate) referer: Option<Cow<'a, [u8]>>,
    pub(crate) user_agent: Option<&'a [u8]>,
}

impl<'a> LoggedRequest<'a> {
    /// Returns the parts of a request, without referer and user agent.
    pub(crate) fn of(request: &Request<'a>) -> Self {
        Self {
            method: request.method.as_bytes(),
            target: without_secrets(request.target.path().as_bytes()),
            protocol: match request.version {
                Version::Http10 => b"HTTP/1.0",
                Version::Http11 => b"HTTP/1.1",
            },
            referer: None,
            user_agent: None,
        }
    }
}

/// The parts of a line that are known when the response has ended.
#[derive(Debug)]
pub(crate) struct LoggedResponse<'a> {
    /// `None` for a client of a unix socket.
    pub(crate) peer: Option<IpAddr>,
    /// The name by which the client authenticates.
    pub(crate) user: Option<&'a [u8]>,
    /// The date, as in [`LogDates`](super::LogDates).
    pub(crate) date: &'a [u8],
    /// The status that was sent.
    pub(crate) status: u16,
    /// The bytes of the body that the kernel took.
    pub(crate) bytes: u64,
    /// The time from the head of the request to the end of the response.
    pub(crate) duration: Duration,
    /// The fields of this server, with their names in JSON.
    pub(crate) fields: &'a [(&'a str, Option<&'a [u8]>)],
}

/// Appends a number in decimal digits.
pub(super) fn push_number(text: &mut Vec<u8>, number: u64) {
    let mut digits = [0; 20];
    let (mut at, mut rest) = (digits.len(), number);
    loop {
        at -= 1;
        digits[at] = b'0' + u8::try_from(rest % 10).unwrap_or(0);
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    text.extend_from_slice(&digits[at..]);
}

/// Appends an address. Formatting of an IPv4 address by the standard library takes longer than the
/// rest of a line.
pub(super) fn push_address(text: &mut Vec<u8>, address: IpAddr) {
    let IpAddr::V4(address) = address else {
        // Writing to memory does not fail.
        return write!(text, "{address}").unwrap_or_default();
    };
    for (number, octet) in address.octets().into_iter().enumerate() {
        if number > 0 {
            text.push(b'.');
        }
        push_number(text, u64::from(octet));
    }
}
