//! A relay for HTTP in this process, and the target to which it passes requests.
//!
//! The target reads requests leniently, as old servers do: the relay must not send it anything that
//! such a server reads as another request.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{LazyLock, Mutex, PoisonError};

use haul_http1::ChunkLimits;
use haul_tcp_relay::{Address, Config, HttpOptions, Server};

use super::ANY;
use crate::chunked::decode;

/// The field that each request of a client has. Its value is a number.
pub(crate) const ROUND_FIELD: &str = "x-round";

/// A request that the target received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    /// The value of [`ROUND_FIELD`].
    pub(crate) round: Option<u64>,
    /// The head.
    pub(crate) head: String,
    /// The body, without its framing.
    pub(crate) body: Vec<u8>,
}

static SEEN: Mutex<Vec<Seen>> = Mutex::new(Vec::new());

/// The address of the relay, which is started by its first use and never stopped.
pub(crate) static RELAY: LazyLock<SocketAddr> = LazyLock::new(|| {
    let listener = TcpListener::bind(ANY).unwrap();
    let target = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            std::thread::spawn(move || serve(stream));
        }
    });
    let mut config = Config::new(vec![Address::Tcp(ANY)], vec![Address::Tcp(target)]);
    config.http = Some(HttpOptions::default());
    config.threads = 1;
    config.checks.interval = None;
    let server = Server::bind(config).unwrap();
    let Address::Tcp(address) = server.addresses().listen[0] else { unreachable!("it is TCP") };
    std::thread::spawn(move || server.run().unwrap());
    address
});

/// Returns the requests that the target has received since the last call.
pub(crate) fn take_seen() -> Vec<Seen> {
    std::mem::take(&mut SEEN.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Responds to all requests of a connection.
fn serve(mut stream: TcpStream) {
    let mut received = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        while let Some((seen, bytes)) = parse(&received) {
            received.drain(..bytes);
            SEEN.lock().unwrap_or_else(PoisonError::into_inner).push(seen);
            if stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").is_err() {
                return;
            }
        }
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return,
            Ok(read) => received.extend_from_slice(&buffer[..read]),
        }
    }
}

/// Parses a complete request; returns it and its length. Lines may end with a bare LF, spaces may
/// surround names, the last of several lengths counts, and a coding that contains `chunked` is
/// that.
fn parse(bytes: &[u8]) -> Option<(Seen, usize)> {
    let (mut length, mut is_chunked, mut round) = (0, false, None);
    let mut at = 0;
    loop {
        let line_bytes = bytes[at..].iter().position(|byte| *byte == b'\n')?;
        let line = String::from_utf8_lossy(&bytes[at..at + line_bytes]).into_owned();
        at += line_bytes + 1;
        if line.trim_end_matches('\r').is_empty() {
            break;
        }
        let Some((name, value)) = line.split_once(':') else { continue };
        let value = value.trim();
        match &*name.trim().to_ascii_lowercase() {
            "content-length" => length = value.parse().unwrap_or(length),
            "transfer-encoding" => is_chunked |= value.to_ascii_lowercase().contains("chunked"),
            ROUND_FIELD => round = round.or(value.parse().ok()),
            _ => {}
        }
    }
    let head = String::from_utf8_lossy(&bytes[..at]).into_owned();
    if is_chunked {
        let decoded = decode(&bytes[at..], usize::MAX >> 1, ChunkLimits::default());
        let (body, body_bytes) = decoded.expect("the relay sends valid chunks")?;
        return Some((Seen { round, head, body }, at + body_bytes));
    }
    let body = bytes.get(at..at.checked_add(length)?)?.to_vec();
    Some((Seen { round, head, body }, at + length))
}
