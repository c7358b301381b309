//! Implements an HTTP client for tests: one connection, one request at a time, no retries.

use std::io::Result;

pub(crate) use haul_testing::http::Message as Response;
use haul_testing::http::Peer;

/// A client with an open connection.
pub(crate) struct Client {
    host: String,
    peer: Peer,
}

impl Client {
    pub(crate) fn connect(host: &str) -> Result<Self> {
        Ok(Self { host: host.to_owned(), peer: Peer::connect(host)? })
    }

    /// Sends a request and reads the complete response.
    pub(crate) fn request(&mut self, method: &str, target: &str, body: &[u8]) -> Result<Response> {
        let head = format!(
            "{method} {target} HTTP/1.1\r\nhost: {}\r\ncontent-length: {}\r\n\r\n",
            self.host,
            body.len()
        );
        self.peer.try_send([head.as_bytes(), body].concat())?;
        self.peer.response_to(method)
    }
}
