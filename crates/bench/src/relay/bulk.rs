//! Sends as many bytes as possible through a relay, from sources (clients) to sinks (the backend's
//! connections), all on one thread.

use std::fs::File;
use std::io::Write;
use std::net::{Shutdown, TcpStream};
use std::os::fd::OwnedFd;

use rustix::fs::{MemfdFlags, memfd_create, sendfile};
use rustix::io::Errno;

use super::exchange::{Ends, LISTENER, index};
use crate::net::content::Content;
use crate::net::poller::{NOTHING, Poller, READ, WAIT_MAX, WRITE};
use crate::net::sample::{Extent, Sample, measure};
use crate::net::socket::{Received, accept, connect, invalid, receive};
use crate::net::usage::Meter;
use haul_measure::{Error, Result};

/// The maximum number of flows, each of which is one connection through the relay.
pub(super) const FLOWS_MAX: u64 = 64;
/// The length in bytes of the ring, the content that every flow sends over and over. Each flow
/// begins at a different offset, so the bytes of two flows differ.
const RING_BYTES: u64 = 16 << 20;
const FLOW_BYTES: u64 = RING_BYTES / FLOWS_MAX;
const CONTENT: Content = Content(1);
/// The maximum length in bytes of a piece, the bytes that one call sends or receives.
const PIECE_BYTES: usize = 512 << 10;
/// One received piece in this many is compared byte by byte.
const COMPARE_EVERY: u64 = 64;

struct Source {
    stream: TcpStream,
    sent: u64,
}

struct Sink {
    stream: TcpStream,
    /// The index of the source whose bytes this sink receives; `None` until the first piece was
    /// compared.
    flow: Option<usize>,
    received: u64,
    pieces: u64,
    ended: bool,
}

/// The connections from the sources to a relay, and from the relay to the sinks.
struct Flows<'a> {
    ends: Ends<'a>,
    ring: &'a OwnedFd,
    poller: Poller<'a>,
    sources: Vec<Source>,
    sinks: Vec<Sink>,
    buffer: Vec<u8>,
}

/// Creates the ring in a memory file, so that the load generator can send it with `sendfile`, which
/// costs almost no CPU time.
pub(super) fn ring() -> Result<OwnedFd> {
    let what = || "allocate 16 MiB of memory".to_owned();
    let ring = memfd_create("haul-bench", MemfdFlags::CLOEXEC).map_err(Error::other(what()))?;
    let mut file = File::from(ring);
    let mut piece = vec![0; PIECE_BYTES];
    for offset in (0..RING_BYTES).step_by(PIECE_BYTES) {
        CONTENT.fill(offset, &mut piece);
        file.write_all(&piece).map_err(Error::other(what()))?;
    }
    Ok(file.into())
}

/// Sends through `flows` connections until `extent` ends the measurement, then waits until all
/// bytes have arrived.
pub(super) fn bulk(
    ends: Ends<'_>,
    ring: &OwnedFd,
    flows: usize,
    extent: Extent,
    meter: Meter,
) -> Result<Sample> {
    let poller = ends.poller()?;
    let mut sources = Vec::new();
    for at in 0..flows {
        let stream = connect(ends.relay)?;
        poller.add(&stream, 2 * at as u64, WRITE)?;
        sources.push(Source { stream, sent: 0 });
    }
    let (sinks, buffer) = (Vec::new(), vec![0; PIECE_BYTES]);
    let mut flows = Flows { ends, ring, poller, sources, sinks, buffer };
    let sample = measure(extent, meter, |sample| {
        sample.requests = 1;
        sample.bytes += flows.step()?;
        Ok(())
    })?;
    flows.finish()?;
    Ok(Sample { requests: 0, ..sample })
}

impl Flows<'_> {
    /// Sends and receives on the ready sockets; returns the number of bytes received.
    fn step(&mut self) -> Result<u64> {
        let mut bytes = 0;
        for token in self.poller.wait(WAIT_MAX)? {
            match token {
                LISTENER => self.accept()?,
                token if token.is_multiple_of(2) => self.send(index(token))?,
                _ => bytes += self.receive(index(token))?,
            }
        }
        Ok(bytes)
    }

    fn accept(&mut self) -> Result<()> {
        while let Some(stream) = accept(self.ends.backend)? {
            self.poller.add(&stream, 2 * self.sinks.len() as u64 + 1, READ)?;
            self.sinks.push(Sink { stream, flow: None, received: 0, pieces: 0, ended: false });
        }
        Ok(())
    }

    fn send(&mut self, at: usize) -> Result<()> {
        let Some(source) = self.sources.get_mut(at) else { return Ok(()) };
        let mut offset = offset(at, source.sent);
        match sendfile(&source.stream, self.ring, Some(&mut offset), PIECE_BYTES) {
            Ok(sent) => source.sent += sent as u64,
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(errno) => return Err(invalid(format!("nothing can be sent: {errno}"))),
        }
        Ok(())
    }

    fn receive(&mut self, at: usize) -> Result<u64> {
        let flows: Vec<_> = self.sinks.iter().filter_map(|sink| sink.flow).collect();
        let Some(sink) = self.sinks.get_mut(at).filter(|sink| !sink.ended) else { return Ok(0) };
        let compares = sink.pieces.is_multiple_of(COMPARE_EVERY);
        let bytes = match receive(&sink.stream, &mut self.buffer, !compares)? {
            Received::Bytes(bytes) => bytes,
            Received::Pending => return Ok(0),
            Received::Closed => {
                sink.ended = true;
                self.poller.modify(&sink.stream, 2 * at as u64 + 1, NOTHING)?;
                return Ok(0);
            }
        };
        if compares {
            let piece = &self.buffer[..bytes];
            sink.flow = match sink.flow {
                Some(flow) => Some(flow).filter(|flow| is_of(*flow, sink.received, piece)),
                None => (0..self.sources.len())
                    .find(|flow| !flows.contains(flow) && is_of(*flow, 0, piece)),
            };
            if sink.flow.is_none() {
                return Err(invalid(format!("wrong bytes at offset {}", sink.received)));
            }
        }
        sink.received += bytes as u64;
        sink.pieces += 1;
        Ok(bytes as u64)
    }

    /// Ends all flows, and checks that as many bytes were received as were sent.
    fn finish(mut self) -> Result<()> {
        for (at, source) in self.sources.iter().enumerate() {
            let ended = source.stream.shutdown(Shutdown::Write);
            ended.map_err(Error::other("end a connection"))?;
            self.poller.modify(&source.stream, 2 * at as u64, NOTHING)?;
        }
        let sent: Vec<_> = self.sources.iter().map(|source| source.sent).collect();
        while self.sinks.iter().filter(|sink| sink.ended).count() < sent.len() {
            for token in self.poller.wait(WAIT_MAX)? {
                match token {
                    LISTENER => self.accept()?,
                    token if token.is_multiple_of(2) => {}
                    _ => drop(self.receive(index(token))?),
                }
            }
        }
        for (at, sent) in sent.into_iter().enumerate() {
            let sink = self.sinks.iter().find(|sink| sink.flow == Some(at));
            let received = sink.map_or(0, |sink| sink.received);
            if received != sent {
                return Err(invalid(format!("{sent} bytes were sent, {received} received")));
            }
        }
        Ok(())
    }
}

/// Returns the offset in the ring of the next byte of `flow`, after `sent` bytes.
fn offset(flow: usize, sent: u64) -> u64 {
    (flow as u64 * FLOW_BYTES + sent) % RING_BYTES
}

/// Returns `true` if `bytes` are the bytes of `flow` at the position `at`.
fn is_of(flow: usize, at: u64, bytes: &[u8]) -> bool {
    let offset = offset(flow, at);
    let until_end = usize::try_from(RING_BYTES - offset).unwrap_or(usize::MAX).min(bytes.len());
    let (before, after) = bytes.split_at(until_end);
    CONTENT.mismatch(offset, before).is_none() && CONTENT.mismatch(0, after).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flow_is_recognised_by_its_bytes_and_wraps_around() {
        let mut bytes = vec![0; 3000];
        CONTENT.fill(5 * FLOW_BYTES, &mut bytes);
        assert!(is_of(5, 0, &bytes) && !is_of(4, 0, &bytes) && !is_of(5, 8, &bytes));
        assert!(is_of(4, FLOW_BYTES, &bytes) && is_of(5, RING_BYTES, &bytes));
        let (before, after) = bytes.split_at_mut(1000);
        CONTENT.fill(RING_BYTES - 1000, before);
        CONTENT.fill(0, after);
        assert!(is_of(0, RING_BYTES - 1000, &bytes));
        assert!(is_of(1, RING_BYTES - FLOW_BYTES - 1000, &bytes));
        bytes[2999] ^= 1;
        assert!(!is_of(0, RING_BYTES - 1000, &bytes));
    }
}
