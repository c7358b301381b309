//! A client that says just what it is told to, and takes answers apart.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// One answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// A field, by its name in lower case.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let mut all = self.fields.iter().filter(|field| field.0 == name);
        let first = all.next().map(|field| field.1.as_str());
        assert!(all.next().is_none(), "{name} came twice: {:?}", self.fields);
        first
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}

/// A connection.
pub(crate) struct Client(BufReader<TcpStream>);

impl Client {
    pub(crate) fn new(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        Self(BufReader::new(stream))
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        self.0.get_ref()
    }

    pub(crate) fn say(&mut self, text: impl AsRef<[u8]>) {
        self.0.get_mut().write_all(text.as_ref()).unwrap();
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
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        let status = line.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3));
        let status = status.unwrap_or_else(|| panic!("no answer: {line:?}")).parse().unwrap();
        let mut fields = Vec::new();
        loop {
            let mut line = String::new();
            assert_ne!(self.0.read_line(&mut line).unwrap(), 0, "the head is not whole");
            let line = line.strip_suffix("\r\n").unwrap();
            if line.is_empty() {
                return Answer { status, fields, body: Vec::new() };
            }
            let (name, value) = line.split_once(": ").unwrap();
            fields.push((name.to_lowercase(), value.to_owned()));
        }
    }

    /// The next answer, to a request with this method.
    pub(crate) fn answer(&mut self, method: &str) -> Answer {
        let mut answer = self.head();
        if method != "HEAD" && !matches!(answer.status, 204 | 304) {
            let bytes = answer.field("content-length").unwrap().parse().unwrap();
            answer.body = vec![0; bytes];
            self.0.read_exact(&mut answer.body).unwrap();
        }
        answer
    }

    pub(crate) fn read_exact(&mut self, bytes: usize) -> Vec<u8> {
        let mut taken = vec![0; bytes];
        self.0.read_exact(&mut taken).unwrap();
        taken
    }

    /// What still comes until the server closes, and whether it closed cleanly.
    pub(crate) fn rest(&mut self) -> (Vec<u8>, bool) {
        let mut rest = Vec::new();
        let is_clean = self.0.read_to_end(&mut rest).is_ok();
        (rest, is_clean)
    }
}

/// One request on a connection of its own.
pub(crate) fn get(address: SocketAddr, target: &str, fields: &str) -> Answer {
    Client::new(address).get(target, fields)
}
