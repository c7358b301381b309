//! Limits the number of open connections: of all threads of a server together, and of each peer.

pub(crate) mod peer;
pub(crate) mod peer_table;

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use crate::admission::peer::Peer;
use crate::admission::peer_table::{Admission, EvictionQueue, PeerConnection, PeerTable};
use crate::key::Key;

/// A limit on open connections. All clones share their counters.
#[derive(Debug, Clone)]
pub struct AdmissionLimit(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    open: AtomicUsize,
    max: usize,
    /// `None` without a limit per peer.
    peers: Option<PeerTable>,
    refused: AtomicU64,
    evicted: AtomicU64,
}

/// Counters of an [`AdmissionLimit`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AdmissionStats {
    /// Connections refused because their peer was at its limit and none of its connections waited.
    pub refused: u64,
    /// Waiting connections closed in favor of a new connection.
    pub evicted: u64,
}

impl AdmissionLimit {
    /// Creates a limit of `connections_max` open connections; further connections wait in the
    /// kernel's accept queue.
    pub fn new(connections_max: usize) -> Self {
        Self::create(connections_max, None)
    }

    /// Creates a limit of `connections_max` open connections in total, and of
    /// `peer_connections_max` of one peer, which is an IPv4 address or an IPv6 prefix of 64 bits.
    /// Connections over unix sockets have no peer.
    ///
    /// If a peer that is at its limit opens another connection, its oldest connection that has
    /// waited ([`Service::is_waiting`](crate::Service::is_waiting)) for 250 ms is closed. If there
    /// is none, the new connection is refused
    /// ([`Service::on_refuse`](crate::Service::on_refuse)).
    ///
    /// If the limit in total is reached, the oldest connection that has waited for 250 ms is closed,
    /// of the peer that has the most connections. If there is none, the new connection waits in the
    /// kernel's accept queue. Threads that accept at the same time may exceed this limit by one
    /// connection each until the evicted connections are closed.
    pub fn with_peer_limit(connections_max: usize, peer_connections_max: usize) -> Self {
        Self::create(connections_max, Some(PeerTable::new(peer_connections_max)))
    }

    fn create(max: usize, peers: Option<PeerTable>) -> Self {
        let (refused, evicted) = (AtomicU64::new(0), AtomicU64::new(0));
        Self(Arc::new(Inner { open: AtomicUsize::new(0), max, peers, refused, evicted }))
    }

    /// Returns the number of open connections.
    pub fn open(&self) -> usize {
        self.0.open.load(Relaxed)
    }

    /// Returns the counters.
    pub fn stats(&self) -> AdmissionStats {
        AdmissionStats {
            refused: self.0.refused.load(Relaxed),
            evicted: self.0.evicted.load(Relaxed),
        }
    }

    /// Acquires a permit for one connection, or returns `None` at the limit.
    pub(crate) fn try_acquire(&self) -> Option<Permit> {
        let one_more = |open| (open < self.0.max).then_some(open + 1);
        self.0.open.fetch_update(Relaxed, Relaxed, one_more).ok()?;
        Some(Permit { limit: self.clone(), connection: None })
    }

    /// Returns `true` if a waiting connection can give way to a new one at the limit.
    pub(crate) fn can_evict(&self, now: Instant) -> bool {
        self.0.peers.as_ref().is_some_and(|peers| peers.can_evict_any(peers.ms(now)))
    }

    /// Acquires a permit for a connection that was accepted at the limit because [`Self::can_evict`]
    /// returned `true`, and evicts a waiting connection. If another thread was faster, the limit is
    /// exceeded.
    pub(crate) fn acquire_and_evict(&self, now: Instant, owner: &Arc<EvictionQueue>) -> Permit {
        if let Some(peers) = &self.0.peers {
            let has_evicted = peers.evict_any(peers.ms(now), owner);
            self.0.evicted.fetch_add(u64::from(has_evicted), Relaxed);
        }
        self.0.open.fetch_add(1, Relaxed);
        Permit { limit: self.clone(), connection: None }
    }
}

/// One open connection, counted until this permit is dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    limit: AdmissionLimit,
    /// The connection in the table of its peer; `None` without a limit per peer.
    connection: Option<Arc<PeerConnection>>,
}

impl Permit {
    /// Counts the connection for its peer; returns `None` if it must be refused. `key` is the key
    /// of the connection in the thread of `owner`.
    pub(crate) fn admit(
        mut self,
        peer: Option<IpAddr>,
        key: Key,
        now: Instant,
        owner: &Arc<EvictionQueue>,
    ) -> Option<Self> {
        let inner = &self.limit.0;
        let (Some(peers), Some(peer)) = (&inner.peers, peer) else { return Some(self) };
        match peers.admit(Peer::of(peer), key, peers.ms(now), owner) {
            Admission::Admitted { connection, has_evicted } => {
                inner.evicted.fetch_add(u64::from(has_evicted), Relaxed);
                self.connection = Some(connection);
                Some(self)
            }
            Admission::Refused => {
                inner.refused.fetch_add(1, Relaxed);
                None
            }
        }
    }

    /// Returns `true` if a waiting connection may be evicted, so that its state must be recorded.
    pub(crate) fn is_evictable(&self) -> bool {
        self.connection.is_some()
    }

    /// Marks the connection as busy; returns `false` if it was evicted before.
    pub(crate) fn set_busy(&self) -> bool {
        self.connection.as_ref().is_none_or(|connection| connection.set_busy())
    }

    /// Marks the connection as waiting.
    pub(crate) fn set_waiting(&self, now: Instant) {
        if let (Some(peers), Some(connection)) = (&self.limit.0.peers, &self.connection) {
            connection.set_waiting(peers.ms(now));
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let inner = &self.limit.0;
        if let (Some(peers), Some(connection)) = (&inner.peers, &self.connection) {
            peers.remove(connection);
        }
        inner.open.fetch_sub(1, Relaxed);
    }
}
