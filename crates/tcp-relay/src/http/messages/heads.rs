//! Writes the heads of forwarded messages from the parsed heads that were received. Performs no
//! I/O.
//!
//! Lengths, hosts and hop-by-hop fields (which apply to one connection only) are written from the
//! parsed values and never copied, so a server behind the relay cannot interpret them differently
//! from the relay.

use std::time::SystemTime;

use haul_http1::{
    Date, Field, Fields, Framing, HeadWriter, HttpError, InvalidHead, MethodKind, Request,
    Response, Target, Version, list_members,
};

use super::forwarded::Forwarded;
use crate::http_options::HttpOptions;

/// Fields that are never copied: hop-by-hop fields, and fields the relay writes itself.
const NOT_FORWARDED: &[&str] = &[
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    // CGI programs get a `Proxy` field as the environment variable HTTP_PROXY, which selects the
    // proxy for their own requests.
    "proxy",
    "proxy-authenticate",
    "proxy-authentication-info",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Fields that identify the client, in addition to the fields that begin with [`FORWARDED_PREFIX`].
/// Applications trust these fields because proxies set them.
const FORWARDED: &[&str] = &["forwarded", "x-client-ip", "x-real-ip"];
const FORWARDED_PREFIX: &str = "x-forwarded-";

/// The host sent for HTTP/1.0 requests without a `Host` field, because HTTP/1.1 requires the field.
const NO_HOST: &str = "localhost";

/// The maximum number of field names in `Connection`, which bounds the comparisons for each field;
/// a message with more names is refused.
const OPTIONS_MAX: usize = 32;

/// Selects the fields of a message that are not forwarded.
struct FieldFilter<'a> {
    /// The fields that the sender named in `Connection`.
    named: Vec<&'a [u8]>,
    /// `true` to drop fields that identify the client.
    drops_forwarding: bool,
}

impl<'a> FieldFilter<'a> {
    fn new(fields: Fields<'a>, drops_forwarding: bool) -> Result<Self, HttpError> {
        let mut named = Vec::new();
        for option in fields.all("connection").flat_map(list_members) {
            let is_usual = [&b"close"[..], b"keep-alive", b"upgrade"]
                .iter()
                .any(|usual| usual.eq_ignore_ascii_case(option));
            if !is_usual {
                named.push(option);
            }
        }
        if named.len() > OPTIONS_MAX {
            return Err(HttpError::new(400, "Connection names too many fields"));
        }
        Ok(Self { named, drops_forwarding })
    }

    fn drops(&self, field: Field<'_>) -> bool {
        NOT_FORWARDED.iter().any(|name| is_equivalent(field.name, name))
            || self.drops_forwarding && is_forwarding_field(field.name)
            || self.named.iter().any(|name| name.eq_ignore_ascii_case(field.name))
    }
}

fn is_forwarding_field(name: &[u8]) -> bool {
    let prefix = name.get(..FORWARDED_PREFIX.len());
    FORWARDED.iter().any(|known| is_equivalent(name, known))
        || prefix.is_some_and(|prefix| is_equivalent(prefix, FORWARDED_PREFIX))
}

/// Returns `true` if a server may read the field name `received` as `name`: many servers treat an
/// underscore as a hyphen.
fn is_equivalent(received: &[u8], name: &str) -> bool {
    let is_equivalent = |(received, name): (&u8, &u8)| {
        received.eq_ignore_ascii_case(name) || *name == b'-' && *received == b'_'
    };
    received.len() == name.len() && received.iter().zip(name.as_bytes()).all(is_equivalent)
}

/// Returns `true` if the request asks for an upgrade to a websocket and has no body, and the
/// options allow upgrades.
pub(crate) fn wants_websocket(request: &Request<'_>, options: &HttpOptions) -> bool {
    let wanted = |value: &[u8]| value.eq_ignore_ascii_case(b"websocket");
    options.upgrade
        && request.is_upgrade
        && request.framing.is_empty()
        && request.fields.all("upgrade").count() == 1
        && request.fields.first("upgrade").is_some_and(wanted)
}

/// Returns `true` if the request uses a scheme that authenticates the whole connection.
pub(crate) fn authenticates_connection(request: &Request<'_>) -> bool {
    const SCHEMES: [&[u8]; 3] = [b"ntlm", b"nego", b"kerberos"];
    let is_one = |value: &[u8], scheme: &[u8]| {
        value.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    };
    let mut credentials = request.fields.all("authorization");
    credentials.any(|value| SCHEMES.iter().any(|scheme| is_one(value, scheme)))
}

/// Returns `true` if a 101 response upgrades to a websocket.
pub(crate) fn is_websocket(response: &Response<'_>) -> bool {
    let is_named = |value: &[u8]| value.eq_ignore_ascii_case(b"websocket");
    response.fields.first("upgrade").is_some_and(is_named)
}

/// Returns the value of Max-Forwards in an OPTIONS request: how often it may be forwarded. Other
/// methods ignore the field (RFC 9110, section 7.6.2).
///
/// # Errors
/// The value is not one number.
pub(crate) fn max_forwards(request: &Request<'_>) -> Result<Option<u64>, HttpError> {
    const INVALID: HttpError = HttpError::new(400, "Max-Forwards is not one number");
    let mut values = request.fields.all(MAX_FORWARDS).filter(|_| request.method == "OPTIONS");
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
            // A number beyond the range is as good as the largest one.
            Ok(Some(str::from_utf8(value).ok().and_then(|it| it.parse().ok()).unwrap_or(u64::MAX)))
        }
        _ => Err(INVALID),
    }
}

const MAX_FORWARDS: &str = "max-forwards";

/// Writes the head of a request for a target.
///
/// # Errors
/// Returns an error if the request must not be forwarded.
pub(crate) fn write_request(
    out: &mut Vec<u8>,
    request: &Request<'_>,
    forwarded: &Forwarded,
    options: &HttpOptions,
) -> Result<(), HttpError> {
    let filter = FieldFilter::new(request.fields, !options.trust_forwarded)?;
    let max_forwards = max_forwards(request)?;
    let mut head = HeadWriter::request(out, request.method, &target(request));
    head.field("Host", request.host.unwrap_or(NO_HOST).as_bytes());
    let is_copied = |field: &Field<'_>| {
        !filter.drops(*field) && (max_forwards.is_none() || !field.is(MAX_FORWARDS))
    };
    for field in request.fields.into_iter().filter(is_copied) {
        head.field(field.name, field.value);
    }
    if let Some(forwards) = max_forwards {
        head.number("Max-Forwards", forwards.saturating_sub(1));
    }
    let version = version(request.version);
    head.field_parts("Via", &[version, b" ", options.via.as_bytes()]);
    forwarded.write(&mut head, request.host);
    match request.framing {
        Framing::Chunked => _ = head.field("Transfer-Encoding", b"chunked"),
        Framing::Length(0) if !has_length(request) => {}
        Framing::Length(bytes) => _ = head.number("Content-Length", bytes),
        Framing::UntilClose => {}
    }
    if request.expect_continue && !request.framing.is_empty() {
        head.field("Expect", b"100-continue");
    }
    if wants_websocket(request, options) {
        head.field("Connection", b"upgrade").field("Upgrade", b"websocket");
    }
    head.end().map_err(|InvalidHead| HttpError::new(400, "the request head cannot be forwarded"))
}

/// Returns `true` if the request has a `Content-Length` field, which some servers require even if
/// the length is 0.
fn has_length(request: &Request<'_>) -> bool {
    request.fields.first("content-length").is_some()
}

/// Returns the request target in origin form or asterisk form (the authority of CONNECT is
/// unchanged), as two parts to be written one after the other.
fn target<'a>(request: &Request<'a>) -> [&'a str; 2] {
    match request.target {
        Target::Origin(path) => ["", path],
        Target::Absolute { path: "", .. } if request.method == "OPTIONS" => ["*", ""],
        Target::Absolute { path, .. } if path.starts_with('/') => ["", path],
        Target::Absolute { path, .. } => ["/", path],
        Target::Asterisk => ["*", ""],
        Target::Authority(authority) => ["", authority],
    }
}

fn version(version: Version) -> &'static [u8] {
    match version {
        Version::Http10 => b"1.0",
        Version::Http11 => b"1.1",
    }
}

/// The properties of a request on which the head of its response depends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ResponseContext {
    /// The client's HTTP version; HTTP/1.0 has no chunked bodies.
    pub(crate) version: Version,
    /// The kind of the request's method.
    pub(crate) request_kind: MethodKind,
    /// `true` if the client's connection persists after the response.
    pub(crate) keep_alive: bool,
}

/// Writes the head of a response for a client. A final response without `Date` gets the time
/// `received_at`, as RFC 9110, section 6.6.1, demands of a recipient with a clock.
///
/// # Errors
/// Returns an error if the response must not be forwarded.
pub(crate) fn write_response(
    out: &mut Vec<u8>,
    response: &Response<'_>,
    context: ResponseContext,
    options: &HttpOptions,
    received_at: SystemTime,
) -> Result<(), HttpError> {
    let filter = FieldFilter::new(response.fields, false)?;
    let mut head = HeadWriter::response_with_reason(out, response.status, response.reason);
    let mut has_date = false;
    for field in response.fields.into_iter().filter(|field| !filter.drops(*field)) {
        head.field(field.name, field.value);
        has_date |= field.is("date");
    }
    if !has_date && response.status >= 200 {
        head.field("Date", Date::of(received_at).as_bytes());
    }
    head.field_parts("Via", &[version(response.version), b" ", options.via.as_bytes()]);
    if response.status == 101 {
        head.field("Connection", b"upgrade").field("Upgrade", b"websocket");
    } else if response.status >= 200 {
        write_length(&mut head, response, context);
        write_connection(&mut head, context);
    }
    head.end().map_err(|InvalidHead| HttpError::new(502, "the response head cannot be forwarded"))
}

fn write_length(head: &mut HeadWriter<'_>, response: &Response<'_>, context: ResponseContext) {
    match (response.framing, response.content_length) {
        (Framing::Chunked, _) if context.version == Version::Http11 => {
            head.field("Transfer-Encoding", b"chunked");
        }
        (_, Some(bytes)) if response.status != 204 => _ = head.number("Content-Length", bytes),
        _ => {}
    }
}

fn write_connection(head: &mut HeadWriter<'_>, context: ResponseContext) {
    match (context.keep_alive, context.version) {
        (false, _) => _ = head.field("Connection", b"close"),
        (true, Version::Http10) => _ = head.field("Connection", b"keep-alive"),
        (true, Version::Http11) => {}
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use haul_http1::{HeadLimits, parse_request, parse_response};

    use super::*;

    /// The field of a response that was received at the Unix epoch.
    const EPOCH: &str = "Date: Thu, 01 Jan 1970 00:00:00 GMT";

    /// Returns the head that the relay forwards for a received head.
    fn forwarded_head(received: &str, options: &HttpOptions) -> Result<String, HttpError> {
        let request = parse_request(received.as_bytes(), &HeadLimits::default())?.unwrap();
        let mut out = Vec::new();
        write_request(&mut out, &request, &Forwarded::new(None, false), options)?;
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn underscores_and_case_make_no_difference_in_field_names() {
        for (received, name, expected) in [
            ("X-Real-IP", "x-real-ip", true),
            ("x_real-ip", "x-real-ip", true),
            ("xxreal-ip", "x-real-ip", false),
            ("x-real-ip2", "x-real-ip", false),
            ("te", "te", true),
        ] {
            assert_eq!(is_equivalent(received.as_bytes(), name), expected, "{received} {name}");
        }
    }

    #[test]
    fn max_forwards_of_options_is_decremented() {
        let options = HttpOptions::default();
        for (method, value, expected) in [
            ("OPTIONS", "5", Ok("4")),
            ("OPTIONS", "007", Ok("6")),
            ("OPTIONS", "99999999999999999999999", Ok("18446744073709551614")),
            ("OPTIONS", "-1", Err(400)),
            ("OPTIONS", "1, 2", Err(400)),
            ("OPTIONS", "", Err(400)),
            ("OPTIONS", "1\r\nMax-Forwards: 1", Err(400)),
            ("GET", "5", Ok("5")),
            ("GET", "x", Ok("x")),
        ] {
            let received =
                format!("{method} * HTTP/1.1\r\nHost: a\r\nmax-FORWARDS: {value}\r\n\r\n");
            let received = received.replace("GET *", "GET /");
            let head = forwarded_head(&received, &options);
            let values = head.as_ref().map_err(|error| error.status).map(|head| {
                let lines = head.lines().filter_map(|line| {
                    let (name, value) = line.split_once(": ")?;
                    name.eq_ignore_ascii_case("max-forwards").then_some(value)
                });
                lines.collect::<Vec<_>>().join("+")
            });
            assert_eq!(values.as_deref(), expected.as_ref().map(|it| *it), "{method} {value}");
        }
    }

    #[test]
    fn blanks_before_the_colon_of_a_response_are_removed() {
        let received =
            "HTTP/1.1 200 OK\r\nX-A : 1\r\nContent-Length \t: 5\r\nConnection : x-a\r\n\r\n";
        let response =
            parse_response(received.as_bytes(), &HeadLimits::default(), MethodKind::Other)
                .unwrap()
                .unwrap();
        assert_eq!(response.framing, Framing::Length(5));
        let mut out = Vec::new();
        let context = ResponseContext {
            version: Version::Http11,
            request_kind: MethodKind::Other,
            keep_alive: true,
        };
        let options = HttpOptions::default();
        write_response(&mut out, &response, context, &options, UNIX_EPOCH).unwrap();
        let head = String::from_utf8(out).unwrap();
        let expected =
            format!("HTTP/1.1 200 OK\r\n{EPOCH}\r\nVia: 1.1 haul\r\nContent-Length: 5\r\n\r\n");
        assert_eq!(head, expected);
    }

    #[test]
    fn lengths_are_written_as_parsed() {
        let options = HttpOptions::default();
        for (fields, expected) in [
            ("", None),
            ("content-length:  0 \r\n", Some("Content-Length: 0")),
            ("CONTENT-LENGTH: 7\r\n", Some("Content-Length: 7")),
            ("transfer-encoding: CHUNKED\r\n", Some("Transfer-Encoding: chunked")),
            ("Connection: content-length\r\nContent-Length: 7\r\n", Some("Content-Length: 7")),
            ("Connection: host\r\nContent-Length: 7\r\n", Some("Host: a")),
        ] {
            let head =
                forwarded_head(&format!("PUT / HTTP/1.1\r\nHost: a\r\n{fields}\r\n"), &options)
                    .unwrap();
            let lengths =
                head.lines().filter(|line| line.contains("Length") || line.contains("oding"));
            assert_eq!(lengths.count(), usize::from(expected.is_some()), "{head}");
            assert!(head.lines().any(|line| expected.is_none_or(|it| it == line)), "{head}");
        }
    }

    #[test]
    fn forwarded_head_is_parsed_with_the_same_framing() {
        for body in ["", "Content-Length: 7\r\n", "Transfer-Encoding: chunked\r\n"] {
            for upgrade in [true, false] {
                let options = HttpOptions { upgrade, ..HttpOptions::default() };
                let received = format!(
                    "POST http://b:1/c HTTP/1.1\r\nHost: a\r\nConnection: upgrade, x\r\nX: 1\r\n\
                     Upgrade: websocket\r\nExpect: 100-continue\r\n{body}\r\n"
                );
                let head = forwarded_head(&received, &options).unwrap();
                let [before, after] = [&received, &head].map(|head| {
                    parse_request(head.as_bytes(), &HeadLimits::default()).unwrap().unwrap()
                });
                assert_eq!((after.framing, after.host), (before.framing, Some("b:1")));
                assert_eq!(after.is_upgrade, upgrade && body.is_empty(), "{head}");
                assert_eq!(after.expect_continue, !body.is_empty(), "{head}");
                assert_eq!(after.fields.first("x"), None);
            }
        }
    }

    /// Returns the fields that the relay forwards for a received response.
    fn forwarded_fields(received: &str, version: Version, keep_alive: bool) -> Vec<String> {
        let request_kind = MethodKind::Other;
        let response = parse_response(received.as_bytes(), &HeadLimits::default(), request_kind);
        let mut out = Vec::new();
        let context = ResponseContext { version, request_kind, keep_alive };
        let options = HttpOptions::default();
        let response = response.unwrap().unwrap();
        write_response(&mut out, &response, context, &options, UNIX_EPOCH).unwrap();
        let head = String::from_utf8(out).unwrap();
        head.trim_end().lines().skip(1).map(str::to_owned).collect()
    }

    #[test]
    fn response_framing_matches_the_version_of_the_client() {
        let chunked = "Transfer-Encoding: chunked\r\n";
        let (old, new) = (Version::Http10, Version::Http11);
        for (status, fields, version, keep_alive, expected) in [
            (200, "Content-Length: 5\r\n", new, true, "Via: 1.1 haul, Content-Length: 5"),
            (
                200,
                "Content-Length: 5\r\n",
                new,
                false,
                "Via: 1.1 haul, Content-Length: 5, Connection: close",
            ),
            (
                200,
                "Content-Length: 5\r\n",
                old,
                true,
                "Via: 1.1 haul, Content-Length: 5, Connection: keep-alive",
            ),
            (200, chunked, new, true, "Via: 1.1 haul, Transfer-Encoding: chunked"),
            (200, chunked, old, false, "Via: 1.1 haul, Connection: close"),
            (204, "Content-Length: 5\r\n", new, true, "Via: 1.1 haul"),
            (304, "Content-Length: 5\r\n", new, true, "Via: 1.1 haul, Content-Length: 5"),
        ] {
            let received = format!("HTTP/1.1 {status} x\r\n{fields}\r\n");
            let found = forwarded_fields(&received, version, keep_alive);
            assert_eq!(found.join(", "), format!("{EPOCH}, {expected}"), "{received}");
        }
    }

    #[test]
    fn final_response_has_one_date() {
        for (status, fields, expected) in [
            (200, "", &[EPOCH][..]),
            (304, "", &[EPOCH]),
            (502, "", &[EPOCH]),
            (200, "Date: x\r\n", &["Date: x"]),
            (200, "Connection: date\r\nDate: x\r\n", &[EPOCH]),
            (103, "", &[]),
        ] {
            let received = format!("HTTP/1.1 {status} x\r\n{fields}\r\n");
            let found = forwarded_fields(&received, Version::Http11, true);
            let dates: Vec<_> = found
                .iter()
                .filter(|field| field.starts_with("Date"))
                .map(String::as_str)
                .collect();
            assert_eq!(dates, expected, "{received}");
        }
    }

    #[test]
    fn fields_for_one_connection_are_not_forwarded() {
        for name in NOT_FORWARDED.iter().filter(|name| !name.contains("length")) {
            let value = if *name == "transfer-encoding" { "chunked" } else { "x" };
            let received = format!("HTTP/1.1 304 x\r\n{name}: {value}\r\nDate: x\r\n\r\n");
            let found = forwarded_fields(&received, Version::Http10, true);
            assert_eq!(found, ["Date: x", "Via: 1.1 haul", "Connection: keep-alive"], "{name}");
        }
    }
}
