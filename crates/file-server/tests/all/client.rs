//! A client that says just what it is told to, and takes answers apart.

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

    /// A request on this connection, and its answer.
    pub(crate) fn ask(&mut self, method: &str, target: &str, fields: &str) -> Answer {
        self.say(format!("{method} {target} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n"));
        self.answer(method)
    }

    pub(crate) fn get(&mut self, target: &str, fields: &str) -> Answer {
        self.ask("GET", target, fields)
    }

    /// The head of the next answer.
    pub(crate) fn head(&mut self) -> Answer {
        let head = self.0.head().unwrap();
        assert_ne!(head.status, 0, "no answer: {:?}", head.line);
        head
    }

    /// The next answer, to a request with this method.
    pub(crate) fn answer(&mut self, method: &str) -> Answer {
        self.0.response_to(method).unwrap()
    }

    pub(crate) fn read_exact(&mut self, bytes: usize) -> Vec<u8> {
        self.0.body(bytes).unwrap()
    }

    /// What still comes until the server closes, and whether it closed cleanly.
    pub(crate) fn rest(&mut self) -> (Vec<u8>, bool) {
        let mut rest = Vec::new();
        let is_clean = self.0.reader().read_to_end(&mut rest).is_ok();
        (rest, is_clean)
    }
}

/// One request on a connection of its own.
pub(crate) fn get(server: Endpoint, target: &str, fields: &str) -> Answer {
    Client::new(server).get(target, fields)
}
