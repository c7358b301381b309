//! One end of a connection through a relay: it says a message and hears one.

use std::io::{self, ErrorKind, Write};
use std::net::TcpStream;

use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

use super::traffic::{Exchange, READ_MAX};
use crate::error::{Error, Result};
use crate::net::content::Content;
use crate::net::poller::Want;

/// One message of so many is compared byte by byte.
const COMPARE_EVERY: u64 = 64;
/// How much is written or read at a time.
pub(super) const ROOM_BYTES: usize = 256 << 10;
/// A message begins with the number of its connection, and whether it is compared.
const MARK_BYTES: usize = 8;
const COMPARED: u64 = 1 << 63;

/// Which end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Client,
    Backend,
}

/// What a peer does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// It waits until it can write.
    Full,
    /// It waits for what comes.
    Empty,
    /// All of the message is said, or heard.
    Done,
    /// The other end has closed.
    Closed,
}

/// A connection and where it is in its message. What is not compared is counted.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) stream: TcpStream,
    side: Side,
    exchange: Exchange,
    /// Of a backend: as heard in the first message.
    number: Option<u64>,
    /// How many messages went before on this connection.
    turn: u64,
    said: u64,
    heard: u64,
    compared: bool,
    mark: [u8; MARK_BYTES],
    want: Want,
}

/// The bytes of a message behind its mark.
fn content(number: u64, turn: u64, side: Side) -> Content {
    let side = u64::from(side == Side::Client);
    Content((number << 33) ^ (turn << 1) ^ side)
}

fn wrong(why: String) -> Error {
    Error::other("trust what came through the relay")(io::Error::other(why))
}

impl Peer {
    pub(super) fn new(
        stream: TcpStream,
        side: Side,
        exchange: Exchange,
        number: Option<u64>,
    ) -> Result<Self> {
        stream.set_nodelay(true).map_err(Error::other("set up a connection"))?;
        stream.set_nonblocking(true).map_err(Error::other("set up a connection"))?;
        let (turn, said, heard, compared) = (0, 0, 0, false);
        let (mark, want) = ([0; MARK_BYTES], Want::Read);
        Ok(Self { stream, side, exchange, number, turn, said, heard, compared, mark, want })
    }

    /// Begins the next message. A client chooses which are compared.
    pub(super) fn begin(&mut self) {
        let number = self.number.unwrap_or_default();
        let count = if self.exchange.kept { self.turn } else { number };
        self.compared = self.side == Side::Client && count.is_multiple_of(COMPARE_EVERY);
        (self.said, self.heard) = (0, 0);
    }

    /// The message is over.
    pub(super) fn end(&mut self) {
        self.turn += 1;
    }

    pub(super) fn has_heard_nothing(&self) -> bool {
        self.heard == 0
    }

    pub(super) fn has_more_to_say(&self) -> bool {
        self.said < self.lengths().0
    }

    /// Whether something else has to be waited for from now on.
    pub(super) fn wants(&mut self, want: Want) -> bool {
        std::mem::replace(&mut self.want, want) != want
    }

    /// Whether the other end has closed; there is nothing else that may come now.
    pub(super) fn is_closed(&self) -> Result<bool> {
        match recv(&self.stream, &mut [0; 1], RecvFlags::empty()) {
            Ok((_, 0)) | Err(Errno::CONNRESET) => Ok(true),
            Ok(_) => Err(wrong("more came than was sent".to_owned())),
            Err(Errno::AGAIN | Errno::INTR) => Ok(false),
            Err(errno) => Err(wrong(format!("nothing can be received: {errno}"))),
        }
    }

    fn lengths(&self) -> (u64, u64) {
        let Exchange { ask_bytes, answer_bytes, .. } = self.exchange;
        match self.side {
            Side::Client => (ask_bytes, answer_bytes),
            Side::Backend => (answer_bytes, ask_bytes),
        }
    }

    /// Says the rest of its message, as much as goes.
    pub(super) fn say(&mut self, room: &mut [u8]) -> Result<Step> {
        let (length, _) = self.lengths();
        while self.said < length {
            let left = usize::try_from(length - self.said).unwrap_or(usize::MAX).min(room.len());
            self.fill(&mut room[..left]);
            match self.stream.write(&room[..left]) {
                Ok(said) => self.said += said as u64,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Step::Full),
                Err(error) => return Err(wrong(format!("nothing can be sent: {error}"))),
            }
        }
        Ok(Step::Done)
    }

    /// What is said now. What is not compared may be anything behind its mark.
    fn fill(&self, room: &mut [u8]) {
        let number = self.number.unwrap_or_default();
        if self.compared {
            content(number, self.turn, self.side).fill(self.said, room);
        }
        if let Some(mark) = room.first_chunk_mut::<MARK_BYTES>().filter(|_| self.said == 0) {
            *mark = (number | if self.compared { COMPARED } else { 0 }).to_le_bytes();
        }
    }

    /// Hears what has come of the message from the other end, and counts it in `bytes`.
    pub(super) fn hear(&mut self, room: &mut [u8], bytes: &mut u64) -> Result<Step> {
        let (_, length) = self.lengths();
        while self.heard < length {
            let left = usize::try_from(length - self.heard).unwrap_or(usize::MAX).min(room.len());
            let reads = self.compared || self.is_read();
            let flags = if reads { RecvFlags::empty() } else { RecvFlags::TRUNC };
            let got = match recv(&self.stream, &mut room[..left], flags) {
                Ok((_, 0)) => return Ok(Step::Closed),
                Ok((_, got)) => got,
                Err(Errno::AGAIN | Errno::INTR) => return Ok(Step::Empty),
                Err(Errno::CONNRESET) => return Ok(Step::Closed),
                Err(errno) => return Err(wrong(format!("nothing can be received: {errno}"))),
            };
            if reads {
                self.compare(&room[..got.min(left)])?;
            }
            self.heard += got as u64;
            *bytes += got as u64;
        }
        Ok(Step::Done)
    }

    /// Whether a backend has to look into a message to know whether it is compared.
    fn is_read(&self) -> bool {
        let (_, length) = self.lengths();
        let is_one = !self.exchange.kept || self.turn.is_multiple_of(COMPARE_EVERY);
        self.side == Side::Backend && (length <= READ_MAX || is_one)
    }

    fn compare(&mut self, got: &[u8]) -> Result<()> {
        let from = usize::try_from(self.heard).unwrap_or(MARK_BYTES).min(MARK_BYTES);
        let skip = (MARK_BYTES - from).min(got.len());
        self.mark[from..from + skip].copy_from_slice(&got[..skip]);
        if skip > 0 && from + skip == MARK_BYTES {
            self.take_mark(u64::from_le_bytes(self.mark))?;
        }
        if !self.compared {
            return Ok(());
        }
        let other = if self.side == Side::Client { Side::Backend } else { Side::Client };
        let content = content(self.number.unwrap_or_default(), self.turn, other);
        match content.differs(self.heard + skip as u64, &got[skip..]) {
            None => Ok(()),
            Some(at) => {
                let at = self.heard + (skip + at) as u64;
                Err(wrong(format!("byte {at} of message {} is wrong", self.turn)))
            }
        }
    }

    fn take_mark(&mut self, mark: u64) -> Result<()> {
        let number = mark & !COMPARED;
        match self.number {
            Some(own) if own != number => {
                return Err(wrong(format!("connection {own} got bytes of connection {number}")));
            }
            _ => self.number = Some(number),
        }
        if self.side == Side::Backend {
            self.compared = mark & COMPARED != 0;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener};

    use super::*;

    fn pair(exchange: Exchange, number: u64) -> (Peer, Peer) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let far = listener.accept().unwrap().0;
        let client = Peer::new(near, Side::Client, exchange, Some(number)).unwrap();
        (client, Peer::new(far, Side::Backend, exchange, None).unwrap())
    }

    /// Until it has said or heard all.
    fn until_done(mut step: impl FnMut() -> Result<Step>) -> Result<()> {
        loop {
            match step()? {
                Step::Done => return Ok(()),
                Step::Full | Step::Empty => std::thread::yield_now(),
                Step::Closed => return Err(wrong("closed".to_owned())),
            }
        }
    }

    #[test]
    fn messages_are_understood_and_foreign_or_changed_bytes_are_noticed() {
        let exchange =
            Exchange { connections: 1, ask_bytes: 100, answer_bytes: 70_000, kept: true };
        let (mut client, mut backend) = pair(exchange, 7);
        let mut room = vec![0; ROOM_BYTES];
        for turn in 0..COMPARE_EVERY + 2 {
            client.begin();
            backend.begin();
            assert_eq!(client.compared, turn % COMPARE_EVERY == 0);
            until_done(|| client.say(&mut room)).unwrap();
            until_done(|| backend.hear(&mut room, &mut 0)).unwrap();
            assert_eq!((backend.number, backend.compared), (Some(7), client.compared));
            until_done(|| backend.say(&mut room)).unwrap();
            until_done(|| client.hear(&mut room, &mut 0)).unwrap();
            client.end();
            backend.end();
        }
        drop(backend);
        client.begin();
        assert_eq!(client.hear(&mut room, &mut 0).unwrap(), Step::Closed);

        for (answer, expected) in [(8, "connection 7 got bytes of connection 8"), (7, "wrong")] {
            let (mut client, mut backend) = pair(exchange, 7);
            (client.compared, backend.compared, backend.number) = (true, true, Some(answer));
            backend.turn = 5;
            until_done(|| backend.say(&mut room)).unwrap();
            let error = until_done(|| client.hear(&mut room, &mut 0)).unwrap_err();
            assert!(crate::error::chain(&error).contains(expected), "{error:?}");
        }
    }
}
