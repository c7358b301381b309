//! Sends and receives messages at one end of a connection through a relay, and checks them.

use std::io::{ErrorKind, Write};
use std::net::TcpStream;

use rustix::event::epoll::EventFlags;

use super::workload::{Exchange, READ_MAX};
use crate::net::content::Content;
use crate::net::poller::READ;
use crate::net::socket::{Received, invalid, receive};
use haul_measure::{Error, Result};

/// One message in this many is compared byte by byte.
const COMPARE_EVERY: u64 = 64;
/// The maximum number of bytes sent or received at a time.
const BUFFER_BYTES: usize = 256 << 10;
/// The length in bytes of the header of a message. The header is the number of the connection, with
/// the bit [`COMPARED`] set if the message is compared.
const HEADER_BYTES: usize = 8;
const COMPARED: u64 = 1 << 63;

/// Returns a buffer, which all peers of a thread can share.
pub(super) fn buffer() -> Vec<u8> {
    vec![0; BUFFER_BYTES]
}

/// One of the two ends of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Client,
    Backend,
}

/// The state of a message after an attempt to send or receive it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// The socket is full, or has no more bytes to read.
    Blocked,
    /// The message is complete.
    Done,
    /// The other end has closed the connection.
    Closed,
}

/// One end of a connection, with its current exchange: a request and the answer. Of messages that
/// are not compared, only the bytes are counted.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) stream: TcpStream,
    role: Role,
    exchange: Exchange,
    /// The number of the connection; a backend reads it from the first message.
    number: Option<u64>,
    /// The number of exchanges that were completed on this connection.
    turn: u64,
    sent: u64,
    received: u64,
    compared: bool,
    header: [u8; HEADER_BYTES],
    ready: EventFlags,
}

/// Returns the content of a message after its header.
fn content(number: u64, turn: u64, sender: Role) -> Content {
    let sender = u64::from(sender == Role::Client);
    Content((number << 33) ^ (turn << 1) ^ sender)
}

/// Returns the number of bytes left of a message, but at most the length of `buffer`.
fn left(length: u64, done: u64, buffer: &[u8]) -> usize {
    usize::try_from(length - done).unwrap_or(usize::MAX).min(buffer.len())
}

impl Peer {
    pub(super) fn new(
        stream: TcpStream,
        role: Role,
        exchange: Exchange,
        number: Option<u64>,
    ) -> Result<Self> {
        stream.set_nodelay(true).map_err(Error::other("set up a connection"))?;
        let (turn, sent, received, compared) = (0, 0, 0, false);
        let (header, ready) = ([0; HEADER_BYTES], READ);
        Ok(Self { stream, role, exchange, number, turn, sent, received, compared, header, ready })
    }

    /// Begins the next exchange. A client decides whether its messages are compared; the backend
    /// reads the decision from the header of the request.
    pub(super) fn begin(&mut self) {
        let count = if self.exchange.persistent { self.turn } else { self.number() };
        self.compared = self.role == Role::Client && count.is_multiple_of(COMPARE_EVERY);
        (self.sent, self.received) = (0, 0);
    }

    /// Ends the current exchange.
    pub(super) fn end(&mut self) {
        self.turn += 1;
    }

    pub(super) fn has_received_nothing(&self) -> bool {
        self.received == 0
    }

    pub(super) fn is_sending(&self) -> bool {
        self.sent < self.lengths().0
    }

    /// Sets the readiness to wait for; returns `true` if it has changed.
    pub(super) fn waits_for(&mut self, ready: EventFlags) -> bool {
        std::mem::replace(&mut self.ready, ready) != ready
    }

    /// Returns `true` if the other end has closed the connection.
    ///
    /// # Errors
    /// Returns an error if there are bytes to receive.
    pub(super) fn is_closed(&self) -> Result<bool> {
        match receive(&self.stream, &mut [0; 1], false)? {
            Received::Closed => Ok(true),
            Received::Pending => Ok(false),
            Received::Bytes(_) => Err(invalid("more bytes were received than sent")),
        }
    }

    fn number(&self) -> u64 {
        self.number.unwrap_or_default()
    }

    /// Returns the lengths in bytes of the message to send and of the message to receive.
    fn lengths(&self) -> (u64, u64) {
        let Exchange { request_bytes, answer_bytes, .. } = self.exchange;
        match self.role {
            Role::Client => (request_bytes, answer_bytes),
            Role::Backend => (answer_bytes, request_bytes),
        }
    }

    /// Sends the unsent bytes of the message until all are sent or the socket is full.
    pub(super) fn send(&mut self, buffer: &mut [u8]) -> Result<Progress> {
        let (length, _) = self.lengths();
        while self.sent < length {
            let left = left(length, self.sent, buffer);
            self.fill(&mut buffer[..left]);
            match self.stream.write(&buffer[..left]) {
                Ok(sent) => self.sent += sent as u64,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    return Ok(Progress::Blocked);
                }
                Err(error) => return Err(invalid(format!("nothing can be sent: {error}"))),
            }
        }
        Ok(Progress::Done)
    }

    /// Fills the buffer for the next write. The content of a message that is not compared is
    /// arbitrary after the header.
    fn fill(&self, buffer: &mut [u8]) {
        if self.compared {
            content(self.number(), self.turn, self.role).fill(self.sent, buffer);
        }
        if let Some(header) = buffer.first_chunk_mut().filter(|_| self.sent == 0) {
            *header = (self.number() | if self.compared { COMPARED } else { 0 }).to_le_bytes();
        }
    }

    /// Receives the available bytes of the message, and adds their number to `bytes`.
    pub(super) fn receive(&mut self, buffer: &mut [u8], bytes: &mut u64) -> Result<Progress> {
        let (_, length) = self.lengths();
        while self.received < length {
            let left = left(length, self.received, buffer);
            let reads = self.compared || self.reads_header();
            let got = match receive(&self.stream, &mut buffer[..left], !reads)? {
                Received::Bytes(got) => got,
                Received::Pending => return Ok(Progress::Blocked),
                Received::Closed => return Ok(Progress::Closed),
            };
            if reads {
                self.compare(&buffer[..got])?;
            }
            self.received += got as u64;
            *bytes += got as u64;
        }
        Ok(Progress::Done)
    }

    /// Returns `true` if a backend reads the header of the current message, which says whether the
    /// message is compared: of each short message, and of each long message that may be compared.
    fn reads_header(&self) -> bool {
        let (_, length) = self.lengths();
        let may_be_compared = !self.exchange.persistent || self.turn.is_multiple_of(COMPARE_EVERY);
        self.role == Role::Backend && (length <= READ_MAX || may_be_compared)
    }

    fn compare(&mut self, got: &[u8]) -> Result<()> {
        let from = usize::try_from(self.received).unwrap_or(HEADER_BYTES).min(HEADER_BYTES);
        let skip = (HEADER_BYTES - from).min(got.len());
        self.header[from..from + skip].copy_from_slice(&got[..skip]);
        if skip > 0 && from + skip == HEADER_BYTES {
            self.accept_header(u64::from_le_bytes(self.header))?;
        }
        if !self.compared {
            return Ok(());
        }
        let sender = if self.role == Role::Client { Role::Backend } else { Role::Client };
        let offset = self.received + skip as u64;
        match content(self.number(), self.turn, sender).mismatch(offset, &got[skip..]) {
            None => Ok(()),
            Some(at) => {
                let at = offset + at as u64;
                Err(invalid(format!("byte {at} of message {} is wrong", self.turn)))
            }
        }
    }

    fn accept_header(&mut self, header: u64) -> Result<()> {
        let number = header & !COMPARED;
        if let Some(own) = self.number.filter(|own| *own != number) {
            return Err(invalid(format!("connection {own} got bytes of connection {number}")));
        }
        self.number = Some(number);
        if self.role == Role::Backend {
            self.compared = header & COMPARED != 0;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener};

    use super::*;
    use crate::net::socket::{accept, connect};

    fn pair(exchange: Exchange, number: u64) -> (Peer, Peer) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let client = connect(listener.local_addr().unwrap()).unwrap();
        let backend = accept(&listener).unwrap().unwrap();
        let client = Peer::new(client, Role::Client, exchange, Some(number)).unwrap();
        (client, Peer::new(backend, Role::Backend, exchange, None).unwrap())
    }

    fn until_done(mut step: impl FnMut() -> Result<Progress>) -> Result<()> {
        loop {
            match step()? {
                Progress::Done => return Ok(()),
                Progress::Blocked => std::thread::yield_now(),
                Progress::Closed => return Err(invalid("closed")),
            }
        }
    }

    #[test]
    fn messages_arrive_and_foreign_or_changed_bytes_are_detected() {
        let exchange =
            Exchange { connections: 1, request_bytes: 100, answer_bytes: 70_000, persistent: true };
        let (mut client, mut backend) = pair(exchange, 7);
        let mut buffer = buffer();
        for turn in 0..COMPARE_EVERY + 2 {
            client.begin();
            backend.begin();
            assert_eq!(client.compared, turn % COMPARE_EVERY == 0);
            until_done(|| client.send(&mut buffer)).unwrap();
            until_done(|| backend.receive(&mut buffer, &mut 0)).unwrap();
            assert_eq!((backend.number, backend.compared), (Some(7), client.compared));
            until_done(|| backend.send(&mut buffer)).unwrap();
            until_done(|| client.receive(&mut buffer, &mut 0)).unwrap();
            client.end();
            backend.end();
        }
        drop(backend);
        client.begin();
        let closed = until_done(|| client.receive(&mut buffer, &mut 0)).unwrap_err();
        assert!(haul_disk::error_chain(&closed).ends_with("closed"), "{closed:?}");

        for (number, expected) in [(8, "connection 7 got bytes of connection 8"), (7, "wrong")] {
            let (mut client, mut backend) = pair(exchange, 7);
            (client.compared, backend.compared, backend.number) = (true, true, Some(number));
            backend.turn = 5;
            until_done(|| backend.send(&mut buffer)).unwrap();
            let error = until_done(|| client.receive(&mut buffer, &mut 0)).unwrap_err();
            assert!(haul_disk::error_chain(&error).contains(expected), "{error:?}");
        }
    }
}
