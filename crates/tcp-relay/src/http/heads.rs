//! Heads as they go out, made of what was understood of those that came in. Pure.
//!
//! Lengths, hosts and what concerns one connection only are written anew, and are not taken from
//! the fields that were received: nobody behind the relay can read them in another way.

use haul_http1::{
    Asked, Field, Fields, Framing, HeadWriter, Refused, Request, Response, Target, Unwritable,
    Version, members,
};

use super::options::HttpOptions;
use super::peer::Peer;

/// What concerns one connection only, or is written anew: the relay passes none of it on.
const OWN: &[&str] = &[
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    // None of HTTP's: programs started by CGI take it for their own proxy.
    "proxy",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// What clients say of where they come from and who they are, besides all that begins with
/// [`FORWARDED_PREFIX`]: proxies in front of a program write it, and the program believes it.
const FORWARDED: &[&str] = &["forwarded", "x-client-ip", "x-real-ip"];
const FORWARDED_PREFIX: &str = "x-forwarded-";

/// What an old client that names no host is taken to have asked for: version 1.1 must name one.
const NO_HOST: &str = "localhost";

/// More options than this in `Connection` are an attack.
const OPTIONS_MAX: usize = 32;

/// Which fields are not passed on.
struct Dropped<'a> {
    /// Those that the sender named in `Connection`.
    named: Vec<&'a [u8]>,
    forwarded: bool,
}

impl<'a> Dropped<'a> {
    fn new(fields: Fields<'a>, forwarded: bool) -> Result<Self, Refused> {
        let mut named = Vec::new();
        for option in fields.all("connection").flat_map(members) {
            let is_usual = [&b"close"[..], b"keep-alive", b"upgrade"]
                .iter()
                .any(|usual| usual.eq_ignore_ascii_case(option));
            if !is_usual {
                named.push(option);
            }
        }
        if named.len() > OPTIONS_MAX {
            return Err(Refused::new(400, "Connection names too many fields"));
        }
        Ok(Self { named, forwarded })
    }

    fn has(&self, field: Field<'_>) -> bool {
        OWN.iter().any(|name| is_alike(field.name, name))
            || self.forwarded && says_who(field.name)
            || self.named.iter().any(|name| name.eq_ignore_ascii_case(field.name))
    }
}

fn says_who(name: &[u8]) -> bool {
    let prefix = name.get(..FORWARDED_PREFIX.len());
    FORWARDED.iter().any(|said| is_alike(name, said))
        || prefix.is_some_and(|prefix| is_alike(prefix, FORWARDED_PREFIX))
}

/// Whether a program behind the relay may take `received` for `name`: many read an underline as a
/// hyphen.
fn is_alike(received: &[u8], name: &str) -> bool {
    let alike = |(received, name): (&u8, &u8)| {
        received.eq_ignore_ascii_case(name) || *name == b'-' && *received == b'_'
    };
    received.len() == name.len() && received.iter().zip(name.as_bytes()).all(alike)
}

/// Whether this request may become a websocket.
pub(crate) fn wants_websocket(request: &Request<'_>, options: &HttpOptions) -> bool {
    let wanted = |value: &[u8]| value.eq_ignore_ascii_case(b"websocket");
    options.upgrade
        && request.is_upgrade
        && request.framing.is_empty()
        && request.fields.all("upgrade").count() == 1
        && request.fields.first("upgrade").is_some_and(wanted)
}

/// Whether a request proves who its sender is in a way that holds for the whole connection.
pub(crate) fn authenticates_connection(request: &Request<'_>) -> bool {
    const SCHEMES: [&[u8]; 3] = [b"ntlm", b"nego", b"kerberos"];
    let is_one = |value: &[u8], scheme: &[u8]| {
        value.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    };
    let mut proofs = request.fields.all("authorization");
    proofs.any(|value| SCHEMES.iter().any(|scheme| is_one(value, scheme)))
}

/// Whether a target's 101 begins what was asked for.
pub(crate) fn is_websocket(response: &Response<'_>) -> bool {
    let is_named = |value: &[u8]| value.eq_ignore_ascii_case(b"websocket");
    response.fields.first("upgrade").is_some_and(is_named)
}

/// Writes the head of a request to a target.
///
/// # Errors
/// It is not passed on.
pub(crate) fn write_request(
    out: &mut Vec<u8>,
    request: &Request<'_>,
    peer: &Peer,
    options: &HttpOptions,
) -> Result<(), Refused> {
    let dropped = Dropped::new(request.fields, !options.trust_forwarded)?;
    let mut head = HeadWriter::request(out, request.method, &target(request));
    head.field("Host", request.host.unwrap_or(NO_HOST).as_bytes());
    write_fields(&mut head, request.fields, &dropped);
    let version = version(request.version);
    head.field_of("Via", &[version, b" ", options.via.as_bytes()]);
    peer.write(&mut head, request.host);
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
    head.end().map_err(|Unwritable| Refused::new(400, "the head cannot be written anew"))
}

/// Whether the sender said that there is no body, which some targets want to hear.
fn has_length(request: &Request<'_>) -> bool {
    request.fields.first("content-length").is_some()
}

/// The target as an origin is asked for it, in parts.
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

fn write_fields(head: &mut HeadWriter<'_>, fields: Fields<'_>, dropped: &Dropped<'_>) {
    for field in fields.into_iter().filter(|field| !dropped.has(*field)) {
        head.field(field.name, field.value);
    }
}

fn version(version: Version) -> &'static [u8] {
    match version {
        Version::Http10 => b"1.0",
        Version::Http11 => b"1.1",
    }
}

/// How a response goes out to the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Going {
    /// The version of the client: 1.0 knows no chunks.
    pub(crate) version: Version,
    /// What was asked.
    pub(crate) asked: Asked,
    /// Whether the client's connection is kept afterwards.
    pub(crate) keep_alive: bool,
}

/// Writes the head of a response to a client.
///
/// # Errors
/// It is not passed on.
pub(crate) fn write_response(
    out: &mut Vec<u8>,
    response: &Response<'_>,
    going: Going,
    options: &HttpOptions,
) -> Result<(), Refused> {
    let dropped = Dropped::new(response.fields, false)?;
    let mut head = HeadWriter::response_saying(out, response.status, response.reason);
    write_fields(&mut head, response.fields, &dropped);
    head.field_of("Via", &[version(response.version), b" ", options.via.as_bytes()]);
    if response.status == 101 {
        head.field("Connection", b"upgrade").field("Upgrade", b"websocket");
    } else if response.status >= 200 {
        write_length(&mut head, response, going);
        write_connection(&mut head, going);
    }
    head.end().map_err(|Unwritable| Refused::new(502, "the head cannot be written anew"))
}

fn write_length(head: &mut HeadWriter<'_>, response: &Response<'_>, going: Going) {
    match (response.framing, response.content_length) {
        (Framing::Chunked, _) if going.version == Version::Http11 => {
            head.field("Transfer-Encoding", b"chunked");
        }
        (_, Some(bytes)) if response.status != 204 => _ = head.number("Content-Length", bytes),
        _ => {}
    }
}

fn write_connection(head: &mut HeadWriter<'_>, going: Going) {
    match (going.keep_alive, going.version) {
        (false, _) => _ = head.field("Connection", b"close"),
        (true, Version::Http10) => _ = head.field("Connection", b"keep-alive"),
        (true, Version::Http11) => {}
    }
}

#[cfg(test)]
mod tests {
    use haul_http1::{HeadLimits, parse_request, parse_response};

    use super::*;

    /// The head that goes out for one that came in.
    fn anew(received: &str, options: &HttpOptions) -> Result<String, Refused> {
        let request = parse_request(received.as_bytes(), &HeadLimits::default())?.unwrap();
        let mut out = Vec::new();
        write_request(&mut out, &request, &Peer::new(None), options)?;
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn fields_are_alike_with_underlines_and_in_any_case() {
        for (received, name, alike) in [
            ("X-Real-IP", "x-real-ip", true),
            ("x_real-ip", "x-real-ip", true),
            ("xxreal-ip", "x-real-ip", false),
            ("x-real-ip2", "x-real-ip", false),
            ("te", "te", true),
        ] {
            assert_eq!(is_alike(received.as_bytes(), name), alike, "{received} {name}");
        }
    }

    #[test]
    fn lengths_are_written_as_they_were_understood() {
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
                anew(&format!("PUT / HTTP/1.1\r\nHost: a\r\n{fields}\r\n"), &options).unwrap();
            let lengths =
                head.lines().filter(|line| line.contains("Length") || line.contains("oding"));
            assert_eq!(lengths.count(), usize::from(expected.is_some()), "{head}");
            assert!(head.lines().any(|line| expected.is_none_or(|it| it == line)), "{head}");
        }
    }

    #[test]
    fn what_is_written_is_read_with_the_same_length_and_nothing_to_drop() {
        for body in ["", "Content-Length: 7\r\n", "Transfer-Encoding: chunked\r\n"] {
            for upgrade in [true, false] {
                let options = HttpOptions { upgrade, ..HttpOptions::default() };
                let received = format!(
                    "POST http://b:1/c HTTP/1.1\r\nHost: a\r\nConnection: upgrade, x\r\nX: 1\r\n\
                     Upgrade: websocket\r\nExpect: 100-continue\r\n{body}\r\n"
                );
                let head = anew(&received, &options).unwrap();
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

    #[test]
    fn a_response_says_its_length_as_its_client_can_read_it() {
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
            (103, "Content-Length: 5\r\n", new, true, "Via: 1.1 haul"),
        ] {
            let received = format!("HTTP/1.1 {status} x\r\n{fields}\r\n");
            let asked = Asked::Other;
            let response = parse_response(received.as_bytes(), &HeadLimits::default(), asked)
                .unwrap()
                .unwrap();
            let mut out = Vec::new();
            let going = Going { version, asked, keep_alive };
            write_response(&mut out, &response, going, &HttpOptions::default()).unwrap();
            let head = String::from_utf8(out).unwrap();
            let lines: Vec<_> = head.trim_end().lines().skip(1).collect();
            assert_eq!(lines.join(", "), expected, "{received}");
        }
    }
}
