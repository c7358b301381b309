//! The open connections of a listener: how many there may be, for each peer and together, which
//! one is closed to make room for a new client, and which takes too long.
//!
//! One peer alone never reaches the limit of all, so it cannot keep others out. Where several
//! peers do, connections that wait for a request give way: the oldest one of the peer that has the
//! most. A request that is being answered is never broken off for another client.

mod connection;
mod listener;
mod peer;
mod tracked;

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::Notify;

pub(crate) use connection::{Connection, Exchange};
pub(crate) use listener::{Bound, Listener};
pub(crate) use tracked::Tracked;

use crate::config::Limits;
use crate::memory::PeerMemory;
use connection::{Phase, elapsed_ms};
use peer::Peer;

/// A connection that waits for a shorter time gives way to no other: its request may be on its way.
const GRACE_MS: u64 = 250;

/// Counters of a listener.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ConnectionStats {
    /// Connections open now.
    pub(crate) open: u64,
    /// Connections refused because their peer had as many as it may have.
    pub(crate) refused: u64,
    /// Connections closed while they waited for a request, to make room for another client.
    pub(crate) evicted: u64,
    /// Connections closed because a head, or the next request, took too long.
    pub(crate) timed_out: u64,
}

/// All connections of a listener.
pub(crate) struct Connections {
    limits: Limits,
    epoch: Instant,
    table: Mutex<Table>,
    /// A connection has ended.
    released: Notify,
}

#[derive(Default)]
struct Table {
    open: HashMap<u64, Entry>,
    peers: HashMap<Peer, Account>,
    next_id: u64,
    stats: ConnectionStats,
}

struct Entry {
    connection: Arc<Connection>,
    /// Its place in the queue of its peer.
    queued_ms: u64,
}

/// A peer that has connections.
struct Account {
    /// Its connections by the time since which they wait, and by number. That time is a lower bound:
    /// requests do not take the lock of the table, so it is corrected when it is looked at.
    queue: BTreeSet<(u64, u64)>,
    memory: PeerMemory,
}

/// The outcome of a new connection.
pub(crate) enum Admission {
    /// It is served.
    Admitted(Slot),
    /// The peer has as many as it may have, and all of them are in use.
    PeerFull,
    /// There are as many as there may be, and all of them are in use.
    Full,
}

impl Connections {
    pub(crate) fn new(limits: &Limits) -> Arc<Self> {
        let (table, released) = (Mutex::default(), Notify::new());
        Arc::new(Self { limits: limits.clone(), epoch: Instant::now(), table, released })
    }

    /// Admits a connection from `address`, in the place of another one where that is necessary.
    pub(crate) fn admit(self: &Arc<Self>, address: IpAddr) -> Admission {
        let peer = Peer::of(address);
        let now_ms = elapsed_ms(self.epoch);
        let mut table = self.table.lock();
        let of_peer = table.peers.get(&peer).map_or(0, |account| account.queue.len());
        if of_peer >= self.limits.peer_connections_max && !table.evict_of(peer, now_ms) {
            table.stats.refused += 1;
            return Admission::PeerFull;
        }
        if table.open.len() >= self.limits.connections_max && !table.evict(now_ms) {
            return Admission::Full;
        }
        let id = table.next_id;
        table.next_id += 1;
        let account = table.peers.entry(peer).or_insert_with(|| Account {
            queue: BTreeSet::new(),
            memory: PeerMemory::new(self.limits.peer_body_memory_bytes_max),
        });
        account.queue.insert((now_ms, id));
        let memory = account.memory.clone();
        let connection = Arc::new(Connection::new(id, peer, memory, self.epoch));
        let entry = Entry { connection: Arc::clone(&connection), queued_ms: now_ms };
        table.open.insert(id, entry);
        Admission::Admitted(Slot { connection, of: Arc::clone(self) })
    }

    /// Closes the connections whose head, or next request, takes too long.
    pub(crate) fn close_overdue(&self) {
        let now_ms = elapsed_ms(self.epoch);
        let is_overdue = |connection: &Connection| {
            let Some((phase, since_ms)) = connection.waiting() else { return false };
            let waited = Duration::from_millis(now_ms.saturating_sub(since_ms));
            let is_head = phase == Phase::Head;
            waited >= if is_head { self.limits.head_time_max } else { self.limits.idle_time_max }
        };
        let mut table = self.table.lock();
        let connections = table.open.values().map(|entry| &entry.connection);
        let overdue: Vec<_> = connections.filter(|one| is_overdue(one)).cloned().collect();
        for connection in overdue {
            table.stats.timed_out += u64::from(table.close(&connection));
        }
    }

    /// The time between two calls of [`Self::close_overdue`]: an eighth of the shortest limit.
    pub(crate) fn check_interval(&self) -> Duration {
        let shortest = self.limits.head_time_max.min(self.limits.idle_time_max);
        (shortest / 8).clamp(Duration::from_millis(10), Duration::from_secs(1))
    }

    /// Waits until a connection ends.
    pub(crate) async fn released(&self) {
        self.released.notified().await;
    }

    /// The counters so far.
    pub(crate) fn stats(&self) -> ConnectionStats {
        let table = self.table.lock();
        ConnectionStats { open: table.open.len() as u64, ..table.stats }
    }
}

impl Table {
    /// Closes the connection that gives way to one of another peer; `false` if there is none.
    fn evict(&mut self, now_ms: u64) -> bool {
        let sizes = self.peers.iter().map(|(peer, account)| (account.queue.len(), *peer));
        let mut peers: Vec<_> = sizes.collect();
        peers.sort_unstable_by_key(|(connections, _)| Reverse(*connections));
        peers.into_iter().any(|(_, peer)| self.evict_of(peer, now_ms))
    }

    /// Closes the connection of `peer` that waits longest for a request; `false` if none waits
    /// longer than the grace time.
    fn evict_of(&mut self, peer: Peer, now_ms: u64) -> bool {
        while let Some(account) = self.peers.get_mut(&peer)
            && let Some((queued_ms, id)) = account.queue.first().copied()
            && queued_ms + GRACE_MS <= now_ms
            && let Some(entry) = self.open.get_mut(&id)
        {
            let since_ms = entry.connection.waiting().map_or(now_ms, |(_, since_ms)| since_ms);
            if since_ms > queued_ms {
                // Requests were answered, or one is. Each connection moves back at most once in the
                // grace time.
                account.queue.remove(&(queued_ms, id));
                account.queue.insert((since_ms, id));
                entry.queued_ms = since_ms;
                continue;
            }
            let connection = Arc::clone(&entry.connection);
            if self.close(&connection) {
                self.stats.evicted += 1;
                return true;
            }
        }
        false
    }

    /// Closes a connection that waits for a request; `false` if it no longer does. Its place is
    /// free when this returns, before its task has ended.
    fn close(&mut self, connection: &Connection) -> bool {
        let is_closed = connection.close();
        if is_closed {
            self.remove(connection);
        }
        is_closed
    }

    fn remove(&mut self, connection: &Connection) {
        let Some(Entry { queued_ms, .. }) = self.open.remove(&connection.id) else { return };
        if let Some(account) = self.peers.get_mut(&connection.peer) {
            account.queue.remove(&(queued_ms, connection.id));
            if account.queue.is_empty() {
                self.peers.remove(&connection.peer);
            }
        }
    }
}

/// The place of a connection, free again when this is dropped.
pub(crate) struct Slot {
    connection: Arc<Connection>,
    of: Arc<Connections>,
}

impl Slot {
    pub(crate) fn connection(&self) -> &Arc<Connection> {
        &self.connection
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.of.table.lock().remove(&self.connection);
        self.of.released.notify_one();
    }
}

#[cfg(test)]
mod tests;
