//! Exchanges requests and answers through a relay, with clients and backend on one thread.

use std::net::{SocketAddr, TcpListener};
use std::time::Instant;

use super::peer::{Peer, Progress, Role, buffer};
use super::workload::Exchange;
use crate::net::poller::{Poller, READ, WAIT_MAX, WRITE};
use crate::net::sample::{Extent, Sample, measure};
use crate::net::socket::{accept, connect, invalid};
use crate::net::usage::Meter;
use haul_measure::{Result, Watcher};

/// The token of the backend's listener in the poller.
pub(super) const LISTENER: u64 = u64::MAX;

/// The two ends of a relay: the address to which clients connect, and the listener to which the
/// relay connects.
#[derive(Clone, Copy)]
pub(super) struct Ends<'a> {
    pub(super) relay: SocketAddr,
    pub(super) backend: &'a TcpListener,
    pub(super) watcher: &'a dyn Watcher,
}

impl<'a> Ends<'a> {
    /// Returns a poller with the backend's listener, after closing connections left by earlier
    /// measurements.
    pub(super) fn poller(&self) -> Result<Poller<'a>> {
        while accept(self.backend)?.is_some() {}
        let poller = Poller::new(self.watcher)?;
        poller.add(self.backend, LISTENER, READ)?;
        Ok(poller)
    }
}

/// Returns the index of a connection from its token: tokens of clients are even, tokens of the
/// backend are odd.
pub(super) fn index(token: u64) -> usize {
    usize::try_from(token / 2).unwrap_or(usize::MAX)
}

struct Client {
    peer: Peer,
    began: Instant,
    /// `true` if the answer to the most recent request is complete. A connection that is not
    /// persistent then waits until the relay closes it.
    answered: bool,
}

/// The connections of the clients and of the backend through one relay.
pub(super) struct Exchanges<'a> {
    ends: Ends<'a>,
    exchange: Exchange,
    poller: Poller<'a>,
    clients: Vec<Option<Client>>,
    backends: Vec<Option<Peer>>,
    /// The number of connections made so far.
    pub(super) connections: u64,
    stopping: bool,
    buffer: Vec<u8>,
}

impl<'a> Exchanges<'a> {
    pub(super) fn new(ends: Ends<'a>, exchange: Exchange) -> Result<Self> {
        let poller = ends.poller()?;
        let (clients, backends, buffer) = (Vec::new(), Vec::new(), buffer());
        let (connections, stopping) = (0, false);
        Ok(Self { ends, exchange, poller, clients, backends, connections, stopping, buffer })
    }

    /// Exchanges messages until `extent` ends the measurement, then waits until every request has
    /// its answer.
    pub(super) fn run(&mut self, extent: Extent, meter: Meter) -> Result<Sample> {
        self.stopping = false;
        let mut first = 0..self.exchange.connections;
        let sample = measure(extent, meter, |sample| {
            first.try_for_each(|at| self.request(at, sample))?;
            self.step(sample)
        })?;
        self.stopping = true;
        while self.clients.iter().flatten().any(|client| !client.answered) {
            self.step(&mut Sample::default())?;
        }
        Ok(sample)
    }

    fn step(&mut self, sample: &mut Sample) -> Result<()> {
        for token in self.poller.wait(WAIT_MAX)? {
            match token {
                LISTENER => self.accept()?,
                token if token.is_multiple_of(2) => self.drive_client(index(token), sample)?,
                _ => self.drive_backend(index(token), sample)?,
            }
        }
        Ok(())
    }

    /// Sends the next request of a client, on a new connection if the client has no connection.
    fn request(&mut self, at: usize, sample: &mut Sample) -> Result<()> {
        let began = Instant::now();
        if self.clients.get(at).is_none_or(Option::is_none) {
            let stream = connect(self.ends.relay)?;
            let peer = Peer::new(stream, Role::Client, self.exchange, Some(self.connections))?;
            self.connections += 1;
            self.poller.add(&peer.stream, 2 * at as u64, READ)?;
            put(&mut self.clients, at, Client { peer, began, answered: false });
        }
        let Some(client) = &mut self.clients[at] else { return Ok(()) };
        client.peer.begin();
        (client.began, client.answered) = (began, false);
        self.drive_client(at, sample)
    }

    fn drive_client(&mut self, at: usize, sample: &mut Sample) -> Result<()> {
        let Some(Some(client)) = self.clients.get_mut(at) else { return Ok(()) };
        if client.peer.is_sending() {
            return send(&mut client.peer, &mut self.buffer, &self.poller, 2 * at as u64).map(drop);
        }
        let persistent = self.exchange.persistent;
        if !client.answered {
            match client.peer.receive(&mut self.buffer, &mut sample.bytes)? {
                Progress::Blocked => return Ok(()),
                Progress::Done => client.answered = true,
                Progress::Closed => return Err(truncated("answer")),
            }
        } else if persistent {
            // If no request is pending, an event can only be the close of the connection.
            let closed = client.peer.is_closed()?;
            return if closed { Err(truncated("connection")) } else { Ok(()) };
        }
        if !persistent && !client.peer.is_closed()? {
            return Ok(());
        }
        client.peer.end();
        sample.latencies.record(client.began.elapsed());
        sample.requests += 1;
        if !persistent {
            self.clients[at] = None;
        }
        if self.stopping { Ok(()) } else { self.request(at, sample) }
    }

    fn accept(&mut self) -> Result<()> {
        while let Some(stream) = accept(self.ends.backend)? {
            if self.exchange.request_bytes == 0 {
                continue;
            }
            let mut peer = Peer::new(stream, Role::Backend, self.exchange, None)?;
            peer.begin();
            let free = self.backends.iter().position(Option::is_none);
            let at = free.unwrap_or(self.backends.len());
            self.poller.add(&peer.stream, 2 * at as u64 + 1, READ)?;
            put(&mut self.backends, at, peer);
        }
        Ok(())
    }

    fn drive_backend(&mut self, at: usize, sample: &mut Sample) -> Result<()> {
        let Some(Some(peer)) = self.backends.get_mut(at) else { return Ok(()) };
        match peer.receive(&mut self.buffer, &mut sample.bytes)? {
            Progress::Blocked => return Ok(()),
            Progress::Done => {}
            Progress::Closed if peer.has_received_nothing() => {
                self.backends[at] = None;
                return Ok(());
            }
            Progress::Closed => return Err(truncated("request")),
        }
        if send(peer, &mut self.buffer, &self.poller, 2 * at as u64 + 1)? == Progress::Blocked {
            return Ok(());
        }
        if self.exchange.persistent {
            peer.end();
            peer.begin();
        } else {
            self.backends[at] = None;
        }
        Ok(())
    }
}

fn put<T>(slots: &mut Vec<Option<T>>, at: usize, value: T) {
    match slots.get_mut(at) {
        Some(slot) => *slot = Some(value),
        None => slots.push(Some(value)),
    }
}

/// Sends the unsent bytes of a message. If they do not fit into the socket, `poller` then reports
/// when the socket is writable.
fn send(peer: &mut Peer, buffer: &mut [u8], poller: &Poller<'_>, token: u64) -> Result<Progress> {
    let progress = peer.send(buffer)?;
    let ready = if progress == Progress::Blocked { WRITE } else { READ };
    if peer.waits_for(ready) {
        poller.modify(&peer.stream, token, ready)?;
    }
    Ok(progress)
}

fn truncated(what: &str) -> haul_measure::Error {
    invalid(format!("a {what} was truncated"))
}
