//! A client that sends given bytes, and parses responses.

use std::io::Read;
use std::net::TcpStream;

pub(crate) use haul_testing::http::Message as Answer;
use haul_testing::http::Peer;
use haul_testing::{ClientStream, Endpoint};

/// A connection.
pub(crate) struct Client(Peer<ClientStream>);

impl Client {
    pub(crate) fn new(server: Endpoint) -> Self {
        Self(Peer::over(server.connect().unwrap()))
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        self.0.stream()
    }

    pub(crate) fn say(&mut self, text: impl AsRef<[u8]>) {
        self.0.send(text);
    }

    /// Sends bytes that the server may refuse by closing the connection; returns `true` if it has
    /// not.
    pub(crate) fn try_say(&mut self, text: impl AsRef<[u8]>) -> bool {
        self.0.try_send(text).is_ok()
    }

    /// Sends a request on this connection; returns the response.
    pub(crate) fn ask(&mut self, method: &str, target: &str, fields: &str) -> Answer {
        self.say(format!("{method} {target} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n"));
        self.answer(method)
    }

    pub(crate) fn get(&mut self, target: &str, fields: &str) -> Answer {
        self.ask("GET", target, fields)
    }

    /// Returns the head of the next response.
    pub(crate) fn head(&mut self) -> Answer {
        let head = self.0.head().unwrap();
        assert_ne!(head.status, 0, "no response: {:?}", head.line);
        head
    }

    /// Returns the next response, to a request with this method.
    pub(crate) fn answer(&mut self, method: &str) -> Answer {
        self.0.response_to(method).unwrap()
    }

    pub(crate) fn read_exact(&mut self, bytes: usize) -> Vec<u8> {
        self.0.body(bytes).unwrap()
    }

    /// Returns the bytes until the server closes, and `true` if it closed cleanly.
    pub(crate) fn rest(&mut self) -> (Vec<u8>, bool) {
        let mut rest = Vec::new();
        let is_clean = self.0.reader().read_to_end(&mut rest).is_ok();
        (rest, is_clean)
    }
}

/// Sends a GET request on a new connection; returns the response.
pub(crate) fn get(server: Endpoint, target: &str, fields: &str) -> Answer {
    Client::new(server).get(target, fields)
}
