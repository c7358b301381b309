//! The open connections of a listener: how many there may be, for each peer and together, and which
//! one is closed to make room for a new client.
//!
//! One peer alone never reaches the limit of all, so it cannot keep others out. Where several
//! peers do, connections that wait for a request give way: the oldest one of the peer that has the
//! most. A request that is being answered is never aborted for another client.

mod connection;
mod rate;

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::Arc;

use haul_reactor::{Clock, Peer};
use parking_lot::Mutex;

pub(crate) use connection::{Busy, Connection};
pub use rate::PeerRate;

use connection::Stopwatch;

/// A connection that waits for a shorter time gives way to no other: its request may be on its way.
const GRACE_MS: u64 = 250;

/// Counters of a listener.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ConnectionStats {
    /// Connections admitted so far.
    pub accepted: u64,
    /// Connections open now.
    pub open: u64,
    /// Connections refused because their peer had as many as it may have.
    pub refused: u64,
    /// Connections closed while they waited for a request, to make room for another client.
    pub evicted: u64,
    /// Connections closed because a head, or the next request, took too long.
    pub timed_out: u64,
    /// Connections closed because a client was too slow: a head was incomplete after its time, or a
    /// response was taken at less than the minimum rate.
    pub slow: u64,
}

/// All connections of a listener, whichever threads serve them. `P` is the state that the
/// connections of a peer share, such as its part of a memory budget.
pub struct Connections<P> {
    connections_max: usize,
    peer_connections_max: usize,
    stopwatch: Stopwatch,
    table: Mutex<Table<P>>,
    new_peer: Box<dyn Fn() -> P + Send + Sync>,
}

struct Table<P> {
    open: HashMap<u64, Entry<P>>,
    peers: HashMap<Peer, Account<P>>,
    next_id: u64,
    stats: ConnectionStats,
}

struct Entry<P> {
    connection: Arc<Connection<P>>,
    /// Its place in the queue of its peer.
    queued_ms: u64,
}

/// A peer that has connections.
struct Account<P> {
    /// Its connections by the time since which they wait, and by number. That time is a lower bound:
    /// requests do not take the lock of the table, so it is corrected when it is looked at.
    queue: BTreeSet<(u64, u64)>,
    peer_state: P,
}

impl<P: Clone> Connections<P> {
    /// Creates an empty table. A peer is an IPv4 address or an IPv6 /64 network; `new_peer` creates
    /// the state of one.
    pub fn new(
        connections_max: usize,
        peer_connections_max: usize,
        new_peer: impl Fn() -> P + Send + Sync + 'static,
    ) -> Arc<Self> {
        Self::with_clock(connections_max, peer_connections_max, Clock::System, new_peer)
    }

    /// Creates an empty table like [`Self::new`]; `clock` must be that of the reactors.
    pub fn with_clock(
        connections_max: usize,
        peer_connections_max: usize,
        clock: Clock,
        new_peer: impl Fn() -> P + Send + Sync + 'static,
    ) -> Arc<Self> {
        let table = Table {
            open: HashMap::new(),
            peers: HashMap::new(),
            next_id: 0,
            stats: ConnectionStats::default(),
        };
        Arc::new(Self {
            connections_max,
            peer_connections_max,
            stopwatch: Stopwatch::start(clock),
            table: Mutex::new(table),
            new_peer: Box::new(new_peer),
        })
    }

    /// Returns `true` if a connection can be admitted, perhaps in the place of another one.
    pub(crate) fn has_room(&self) -> bool {
        let mut table = self.table.lock();
        table.open.len() < self.connections_max
            || table.waiting(self.stopwatch.elapsed_ms()).is_some()
    }

    /// Admits a connection from `address`, in the place of another one where that is necessary.
    /// Returns `None` if the peer has as many as it may have, and uses all of them. Threads that
    /// saw room at the same time may exceed the limit of all by one connection each. `close` must
    /// wake the thread of the connection.
    pub(crate) fn admit(
        self: &Arc<Self>,
        address: IpAddr,
        close: Box<dyn Fn() + Send + Sync>,
    ) -> Option<Slot<P>> {
        let peer = Peer::of(address);
        let now_ms = self.stopwatch.elapsed_ms();
        let mut table = self.table.lock();
        let connections = table.peers.get(&peer).map_or(0, |account| account.queue.len());
        if connections >= self.peer_connections_max && !table.evict_of(peer, now_ms) {
            table.stats.refused += 1;
            return None;
        }
        if table.open.len() >= self.connections_max {
            table.evict(now_ms);
        }
        let id = table.next_id;
        table.next_id += 1;
        let account = table
            .peers
            .entry(peer)
            .or_insert_with(|| Account { queue: BTreeSet::new(), peer_state: (self.new_peer)() });
        account.queue.insert((now_ms, id));
        let peer_state = account.peer_state.clone();
        let connection =
            Arc::new(Connection::new(id, peer, peer_state, self.stopwatch.clone(), close));
        let entry = Entry { connection: Arc::clone(&connection), queued_ms: now_ms };
        table.open.insert(id, entry);
        Some(Slot { connection, of: Arc::clone(self) })
    }

    /// Returns the counters so far.
    pub fn stats(&self) -> ConnectionStats {
        let table = self.table.lock();
        ConnectionStats { accepted: table.next_id, open: table.open.len() as u64, ..table.stats }
    }
}

impl<P> Table<P> {
    /// Closes the connection that gives way to one of another peer; `false` if there is none.
    fn evict(&mut self, now_ms: u64) -> bool {
        self.waiting(now_ms).is_some_and(|connection| self.close(&connection))
    }

    /// Closes the connection of `peer` that waits longest for a request; `false` if none waits
    /// longer than the grace time.
    fn evict_of(&mut self, peer: Peer, now_ms: u64) -> bool {
        self.waiting_of(peer, now_ms).is_some_and(|connection| self.close(&connection))
    }

    fn close(&mut self, connection: &Connection<P>) -> bool {
        let is_closed = connection.close();
        if is_closed {
            self.remove(connection);
            self.stats.evicted += 1;
        }
        is_closed
    }

    /// Returns the connection that gives way to one of another peer.
    fn waiting(&mut self, now_ms: u64) -> Option<Arc<Connection<P>>> {
        let sizes = self.peers.iter().map(|(peer, account)| (account.queue.len(), *peer));
        let mut peers: Vec<_> = sizes.collect();
        peers.sort_unstable_by_key(|(connections, _)| Reverse(*connections));
        peers.into_iter().find_map(|(_, peer)| self.waiting_of(peer, now_ms))
    }

    /// Returns the connection of `peer` that waits longest for a request, and longer than the grace
    /// time.
    fn waiting_of(&mut self, peer: Peer, now_ms: u64) -> Option<Arc<Connection<P>>> {
        let account = self.peers.get_mut(&peer)?;
        while let Some((queued_ms, id)) = account.queue.first().copied()
            && queued_ms + GRACE_MS <= now_ms
            && let Some(entry) = self.open.get_mut(&id)
        {
            let since_ms = entry.connection.waiting_since_ms().unwrap_or(now_ms);
            if since_ms <= queued_ms {
                return Some(Arc::clone(&entry.connection));
            }
            // Requests were answered, or one is. Each connection moves back at most once in the
            // grace time.
            account.queue.remove(&(queued_ms, id));
            account.queue.insert((since_ms, id));
            entry.queued_ms = since_ms;
        }
        None
    }

    fn remove(&mut self, connection: &Connection<P>) {
        let Some(Entry { queued_ms, .. }) = self.open.remove(&connection.id) else { return };
        if let Some(account) = self.peers.get_mut(&connection.peer) {
            account.queue.remove(&(queued_ms, connection.id));
            if account.queue.is_empty() {
                self.peers.remove(&connection.peer);
            }
        }
    }
}

/// The place of a connection in its table, free again when this is dropped.
pub(crate) struct Slot<P: Clone> {
    connection: Arc<Connection<P>>,
    of: Arc<Connections<P>>,
}

impl<P: Clone> Slot<P> {
    pub(crate) fn connection(&self) -> &Arc<Connection<P>> {
        &self.connection
    }

    /// Returns the state that the connections of this peer share.
    pub(crate) fn peer_state(&self) -> &P {
        &self.connection.peer_state
    }

    /// Counts the connection as closed because a head, or the next request, took too long.
    pub(crate) fn time_out(&self) {
        self.of.table.lock().stats.timed_out += 1;
    }

    /// Counts the connection as closed because its client was too slow.
    pub(crate) fn count_slow(&self) {
        self.of.table.lock().stats.slow += 1;
    }
}

impl<P: Clone> Drop for Slot<P> {
    fn drop(&mut self) {
        self.of.table.lock().remove(&self.connection);
    }
}

#[cfg(test)]
mod tests;
