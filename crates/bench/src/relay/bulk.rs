//! Bytes through a relay, as many as possible: sources and sinks, on one thread.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::OwnedFd;
use std::time::Instant;

use rustix::fs::{MemfdFlags, memfd_create, sendfile};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

use super::exchange::{Ends, drop_strays};
use crate::error::{Error, Result};
use crate::net::content::Content;
use crate::net::poller::{Poller, Want};
use crate::net::sample::Sample;
use crate::net::usage::Meter;
use crate::net::window::{Load, Turn, Window};

/// What is sent, again and again. Each flow begins at a place of its own, as far as there are some.
const RING_BYTES: u64 = 16 << 20;
const APART_BYTES: u64 = RING_BYTES / FLOWS_MAX as u64;
/// How many flows there may be.
pub(super) const FLOWS_MAX: usize = 64;
const CONTENT: Content = Content(1);
/// How much is sent or taken at a time.
const ROOM_BYTES: usize = 512 << 10;
/// Of so many pieces one is compared.
const COMPARE_EVERY: u64 = 64;
const LISTENER: u64 = u64::MAX;

struct Source {
    stream: TcpStream,
    sent: u64,
    over: bool,
}

struct Sink {
    stream: TcpStream,
    /// Which source it hears, as soon as it has heard something.
    flow: Option<usize>,
    got: u64,
    pieces: u64,
    over: bool,
}

/// Flows that are under way.
struct Flows<'a> {
    ends: Ends<'a>,
    ring: OwnedFd,
    poller: Poller,
    sources: Vec<Source>,
    sinks: Vec<Sink>,
    last: Instant,
    room: Vec<u8>,
    got: u64,
}

/// The bytes to send, in memory, so that sending costs the load next to nothing.
pub(super) fn ring() -> Result<OwnedFd> {
    let what = || "keep 16 MiB in memory".to_owned();
    let ring = memfd_create("haul-bench", MemfdFlags::CLOEXEC).map_err(Error::other(what()))?;
    let mut file = File::from(ring);
    let mut chunk = vec![0; ROOM_BYTES];
    let mut at = 0;
    while at < RING_BYTES {
        CONTENT.fill(at, &mut chunk);
        file.write_all(&chunk).map_err(Error::other(what()))?;
        at += chunk.len() as u64;
    }
    Ok(file.into())
}

/// Sends through `flows` connections for a while, and until all that was sent is there.
pub(super) fn bulk(
    ends: Ends<'_>,
    ring: &OwnedFd,
    flows: usize,
    load: Load,
    meter: Meter,
) -> Result<Sample> {
    let ring = ring.try_clone().map_err(Error::other("send what is in memory"))?;
    let mut all = Flows::new(ends, ring, flows)?;
    let mut window = Window::new(load, meter);
    loop {
        match window.turn(Instant::now()) {
            Turn::GoOn => {}
            Turn::Begin => all.got = 0,
            Turn::End => break,
        }
        all.step()?;
    }
    let bytes = all.got;
    let sample = window.finish();
    all.finish()?;
    Ok(Sample { bytes, done: flows as u64, ..sample })
}

fn wrong(why: String) -> Error {
    Error::other("trust what came through the relay")(io::Error::other(why))
}

impl<'a> Flows<'a> {
    fn new(ends: Ends<'a>, ring: OwnedFd, flows: usize) -> Result<Self> {
        drop_strays(ends.backend)?;
        let poller = Poller::new()?;
        poller.add(ends.backend, LISTENER, Want::Read)?;
        let mut sources = Vec::new();
        for at in 0..flows {
            let what = || format!("connect to the relay at {}", ends.relay);
            let stream = TcpStream::connect(ends.relay).map_err(Error::other(what()))?;
            stream.set_nonblocking(true).map_err(Error::other(what()))?;
            poller.add(&stream, 2 * at as u64, Want::Write)?;
            sources.push(Source { stream, sent: 0, over: false });
        }
        let (sinks, last, room) = (Vec::new(), Instant::now(), vec![0; ROOM_BYTES]);
        Ok(Self { ends, ring, poller, sources, sinks, last, room, got: 0 })
    }

    fn step(&mut self) -> Result<()> {
        for token in self.ends.ready(&mut self.poller, &mut self.last)? {
            let at = usize::try_from(token / 2).unwrap_or(usize::MAX);
            match token {
                LISTENER => self.accept()?,
                token if token.is_multiple_of(2) => self.send(at)?,
                _ => self.take(at)?,
            }
        }
        Ok(())
    }

    fn accept(&mut self) -> Result<()> {
        loop {
            let stream = match self.ends.backend.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(Error::other("accept a connection")(error)),
            };
            stream.set_nonblocking(true).map_err(Error::other("set up a connection"))?;
            self.poller.add(&stream, 2 * self.sinks.len() as u64 + 1, Want::Read)?;
            self.sinks.push(Sink { stream, flow: None, got: 0, pieces: 0, over: false });
        }
    }

    fn send(&mut self, at: usize) -> Result<()> {
        let Some(source) = self.sources.get_mut(at).filter(|source| !source.over) else {
            return Ok(());
        };
        let mut place = place(at, source.sent);
        match sendfile(&source.stream, &self.ring, Some(&mut place), ROOM_BYTES) {
            Ok(sent) => source.sent += sent as u64,
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(errno) => return Err(wrong(format!("nothing can be sent: {errno}"))),
        }
        Ok(())
    }

    fn take(&mut self, at: usize) -> Result<()> {
        let Some(sink) = self.sinks.get_mut(at).filter(|sink| !sink.over) else { return Ok(()) };
        let compares = sink.pieces.is_multiple_of(COMPARE_EVERY);
        let flags = if compares { RecvFlags::empty() } else { RecvFlags::TRUNC };
        let got = match recv(&sink.stream, &mut self.room[..], flags) {
            Ok((_, got)) => got,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(()),
            Err(errno) => return Err(wrong(format!("nothing can be received: {errno}"))),
        };
        sink.over = got == 0;
        let got = &self.room[..got.min(ROOM_BYTES)];
        if compares && !got.is_empty() {
            let heard: Vec<_> = self.sinks.iter().filter_map(|sink| sink.flow).collect();
            let flows = 0..self.sources.len();
            let sink = &mut self.sinks[at];
            sink.flow = match sink.flow {
                None => flows.into_iter().find(|flow| !heard.contains(flow) && is(*flow, 0, got)),
                flow => flow.filter(|flow| is(*flow, sink.got, got)),
            };
            if sink.flow.is_none() {
                return Err(wrong(format!("other bytes than were sent, at {}", sink.got)));
            }
        }
        let sink = &mut self.sinks[at];
        sink.got += got.len() as u64;
        sink.pieces += 1;
        self.got += got.len() as u64;
        Ok(())
    }

    /// Ends all flows, and compares what was sent with what has come.
    fn finish(mut self) -> Result<()> {
        for source in &mut self.sources {
            source.over = true;
            let ended = source.stream.shutdown(Shutdown::Write);
            ended.map_err(Error::other("end a connection"))?;
        }
        for (at, source) in self.sources.iter().enumerate() {
            self.poller.change(&source.stream, 2 * at as u64, Want::Nothing)?;
        }
        while self.sinks.iter().filter(|sink| sink.over).count() < self.sources.len() {
            for (at, sink) in self.sinks.iter().enumerate().filter(|(_, sink)| sink.over) {
                self.poller.change(&sink.stream, 2 * at as u64 + 1, Want::Nothing)?;
            }
            self.step()?;
        }
        for (at, source) in self.sources.iter().enumerate() {
            let sink = self.sinks.iter().find(|sink| sink.flow == Some(at));
            let got = sink.map_or(0, |sink| sink.got);
            if got != source.sent {
                return Err(wrong(format!("{} bytes were sent, and {got} came", source.sent)));
            }
        }
        Ok(())
    }
}

/// Where in the ring a flow is, after so many bytes.
fn place(flow: usize, sent: u64) -> u64 {
    (flow as u64 * APART_BYTES + sent) % RING_BYTES
}

/// Whether `bytes` are those of a flow at that place of it.
fn is(flow: usize, at: u64, bytes: &[u8]) -> bool {
    let place = place(flow, at);
    let until_end = usize::try_from(RING_BYTES - place).unwrap_or(usize::MAX).min(bytes.len());
    let (before, behind) = bytes.split_at(until_end);
    CONTENT.differs(place, before).is_none() && CONTENT.differs(0, behind).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_is_known_by_its_bytes_and_goes_round() {
        let mut bytes = vec![0; 3000];
        CONTENT.fill(5 * APART_BYTES, &mut bytes);
        assert!(is(5, 0, &bytes) && !is(4, 0, &bytes) && !is(5, 8, &bytes));
        assert!(is(4, APART_BYTES, &bytes) && is(5, RING_BYTES, &bytes));
        let (before, behind) = bytes.split_at_mut(1000);
        CONTENT.fill(RING_BYTES - 1000, before);
        CONTENT.fill(0, behind);
        assert!(is(0, RING_BYTES - 1000, &bytes) && is(1, RING_BYTES - APART_BYTES - 1000, &bytes));
        bytes[2999] ^= 1;
        assert!(!is(0, RING_BYTES - 1000, &bytes));
    }
}
