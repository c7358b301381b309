//! Servers in this process, and connections to them.

pub(crate) mod files;
pub(crate) mod relay;
pub(crate) mod s3;
pub(crate) mod signed_request;
pub(crate) mod signing;

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use haul_http1::{Framing, HeadLimits, MethodKind, parse_response};

/// The address at which a server listens: the kernel assigns the port.
pub(crate) const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// The time after which a request without a response is ended.
const PATIENCE: Duration = Duration::from_millis(300);

/// The time after which a connection that the client has ended must have ended.
const END_TIME_MAX: Duration = Duration::from_secs(10);

/// A response of a server.
#[derive(Debug)]
pub(crate) struct Reply {
    /// The status.
    pub(crate) status: u16,
    /// The fields of the head, with lower-case names.
    pub(crate) fields: Vec<(String, Vec<u8>)>,
    /// The body.
    pub(crate) body: Vec<u8>,
}

impl Reply {
    /// Returns the value of the first field with this name.
    pub(crate) fn field(&self, name: &str) -> Option<&[u8]> {
        self.fields.iter().find(|field| field.0 == name).map(|field| &field.1[..])
    }
}

/// A request as an input describes it: a method and a target, a line end, fields, an empty line and
/// a body.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestParts<'a> {
    /// The method, a space and the target.
    pub(crate) line: &'a [u8],
    /// The fields, each with its line end.
    pub(crate) fields: &'a [u8],
    /// The body.
    pub(crate) body: &'a [u8],
}

impl<'a> RequestParts<'a> {
    /// Splits an input. Missing parts are empty.
    pub(crate) fn of(data: &'a [u8]) -> Self {
        let line_end = data.iter().position(|byte| matches!(byte, b'\r' | b'\n'));
        let (line, rest) = data.split_at(line_end.unwrap_or(data.len()));
        let rest = rest.strip_prefix(b"\r\n").unwrap_or(rest);
        let (fields, body) = match rest.windows(4).position(|four| four == b"\r\n\r\n") {
            _ if rest.starts_with(b"\r\n") => (&rest[..0], &rest[2..]),
            Some(at) => (&rest[..at + 2], &rest[at + 4..]),
            None => (&rest[..0], rest),
        };
        Self { line, fields, body }
    }

    /// Sends the request to a server with the fields that each request needs, and returns the
    /// response; `None` if the connection ended without one.
    ///
    /// # Panics
    /// If the response is malformed, or is an internal error, or the server does not end the
    /// connection.
    pub(crate) fn send(&self, address: SocketAddr) -> Option<Reply> {
        let general = format!(
            " HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-length: {}\r\n",
            self.body.len()
        );
        let request = [self.line, general.as_bytes(), self.fields, b"\r\n", self.body].concat();
        reply_to(self.line, &exchange(address, &request))
    }
}

/// Sends bytes, and returns what the server sends until it ends the connection.
pub(crate) fn exchange(address: SocketAddr, request: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).expect("the server accepts connections");
    let mut received = Vec::new();
    // The server may respond before it has received all bytes.
    drop(stream.write_all(request));
    if !ends_within(PATIENCE, &mut stream, &mut received) {
        // The request is incomplete: the server waits for more.
        drop(stream.shutdown(Shutdown::Write));
        assert!(ends_within(END_TIME_MAX, &mut stream, &mut received), "the connection stays open");
    }
    received
}

/// Reads until the connection ends. Returns `false` if the server sends nothing for this time.
fn ends_within(time_max: Duration, stream: &mut TcpStream, received: &mut Vec<u8>) -> bool {
    stream.set_read_timeout(Some(time_max)).unwrap();
    let result = stream.read_to_end(received);
    // A reset ends a connection, too.
    !result.is_err_and(|e| matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut))
}

/// Parses the final response to a request that begins with `line`; `None` if nothing was received.
///
/// # Panics
/// If the response is malformed, or is an internal error.
pub(crate) fn reply_to(line: &[u8], mut received: &[u8]) -> Option<Reply> {
    let is_head = line.starts_with(b"HEAD ");
    let method = if is_head { MethodKind::Head } else { MethodKind::Other };
    loop {
        if received.is_empty() {
            return None;
        }
        let parsed = parse_response(received, &HeadLimits::default(), method);
        let response = parsed.expect("the head is valid").expect("the head is complete");
        let body = &received[response.head_bytes..];
        if response.is_interim() {
            received = body;
            continue;
        }
        let text = String::from_utf8_lossy(received);
        assert!(response.status != 500, "an internal error: {text}");
        // The method of a malformed head is unknown: the response may have a body, even to HEAD.
        let is_unknown = is_head && response.status >= 400;
        if let Framing::Length(bytes) = response.framing {
            assert!(is_unknown || body.len() as u64 == bytes, "the length is wrong: {text}");
        }
        let name = |name: &[u8]| String::from_utf8_lossy(name).to_ascii_lowercase();
        let fields = response.fields.into_iter();
        let fields = fields.map(|field| (name(field.name), field.value.to_vec()));
        return Some(Reply {
            status: response.status,
            fields: fields.collect(),
            body: body.to_vec(),
        });
    }
}
