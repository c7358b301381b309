//! Counts the open connections of each peer, and selects a waiting connection of a peer that gives
//! way to a new one.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Instant;

use haul_sync::{AtomicU8, AtomicU64, Mutex, now};

use crate::admission::peer::Peer;
use crate::key::Key;
use crate::poller::Waker;

/// The maximum number of connections examined to find a waiting one. Connections found busy move to
/// the end, so that the next search begins behind them.
const EXAMINED_MAX: usize = 64;

/// The maximum number of peers examined to find a waiting connection.
const PEERS_EXAMINED_MAX: usize = 64;

/// The time in milliseconds for which a connection must have waited before it can be evicted. A
/// client that has just received a response or connected may have sent a request already.
const WAIT_MS_MIN: u64 = 250;

/// The connection must not be evicted: a request is being answered, or bytes are being relayed.
const BUSY: u8 = 0;
/// The connection waits for a request, or for the rest of a request head.
const WAITING: u8 = 1;
/// The connection has given way to a new one, and its thread will close it.
const EVICTED: u8 = 2;

/// The open connections of all peers, shared by the threads of a server.
#[derive(Debug)]
pub(crate) struct PeerTable {
    /// The maximum number of open connections of one peer.
    max: usize,
    started: Instant,
    connections: Mutex<Connections>,
}

#[derive(Debug, Default)]
struct Connections {
    /// The sequence number of the next connection.
    next: u64,
    /// The connections of each peer, by sequence number: the oldest first.
    by_peer: HashMap<Peer, BTreeMap<u64, Arc<PeerConnection>>>,
}

/// An open connection of a peer.
#[derive(Debug)]
pub(crate) struct PeerConnection {
    peer: Peer,
    state: AtomicU8,
    /// The time of the table at which the connection began to wait.
    waiting_since_ms: AtomicU64,
    sequence: AtomicU64,
    key: Key,
    owner: Arc<EvictionQueue>,
}

/// The connections of one thread that were evicted and must be closed by this thread.
#[derive(Debug)]
pub(crate) struct EvictionQueue {
    keys: Mutex<Vec<Key>>,
    waker: Arc<Waker>,
}

impl EvictionQueue {
    pub(crate) fn new(waker: Arc<Waker>) -> Arc<Self> {
        Arc::new(Self { keys: Mutex::default(), waker })
    }

    /// Removes and returns the keys of the evicted connections.
    pub(crate) fn take(&self) -> Vec<Key> {
        std::mem::take(&mut *self.keys.lock())
    }
}

impl PeerConnection {
    /// Marks the connection as busy; returns `false` if it was evicted before.
    pub(crate) fn set_busy(&self) -> bool {
        let state = self.state.load(Relaxed);
        let changed = |state| self.state.compare_exchange(state, BUSY, Relaxed, Relaxed).is_ok();
        state == BUSY || (state == WAITING && changed(WAITING))
    }

    /// Marks a busy connection as waiting since this time of the table.
    pub(crate) fn set_waiting(&self, now_ms: u64) {
        // Only the thread of the connection changes its state from `BUSY`.
        if self.state.load(Relaxed) == BUSY {
            self.waiting_since_ms.store(now_ms, Relaxed);
            self.state.store(WAITING, Release);
        }
    }

    /// Returns `true` if the connection has waited long enough to be evicted.
    fn has_waited(&self, now_ms: u64) -> bool {
        let is_waiting = self.state.load(Acquire) == WAITING;
        let since_ms = self.waiting_since_ms.load(Relaxed);
        is_waiting && now_ms >= since_ms.saturating_add(WAIT_MS_MIN)
    }

    /// Evicts the connection if it has waited long enough: its thread closes it.
    fn evict(&self, now_ms: u64, by: &Arc<EvictionQueue>) -> bool {
        if !self.has_waited(now_ms) {
            return false;
        }
        if self.state.compare_exchange(WAITING, EVICTED, Relaxed, Relaxed).is_err() {
            return false;
        }
        self.owner.keys.lock().push(self.key);
        if !Arc::ptr_eq(&self.owner, by) {
            // If waking fails, the thread reads its queue in its next iteration.
            self.owner.waker.wake().ok();
        }
        true
    }
}

/// The result of [`PeerTable::admit`].
#[derive(Debug)]
pub(crate) enum Admission {
    /// The connection is admitted. If `has_evicted` is `true`, another connection gave way to it.
    Admitted { connection: Arc<PeerConnection>, has_evicted: bool },
    /// The peer is at its limit, and none of its connections waits.
    Refused,
}

impl PeerTable {
    pub(crate) fn new(max: usize) -> Self {
        Self { max, started: now(), connections: Mutex::default() }
    }

    /// Returns the time of the table.
    pub(crate) fn ms(&self, now: Instant) -> u64 {
        let since = now.saturating_duration_since(self.started);
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }

    /// Adds a connection, which the thread of `owner` will store under `key`. At the limit of the
    /// peer, its oldest waiting connection is evicted. The caller must close the connections in the
    /// queue of its own thread afterwards; other threads are woken.
    pub(crate) fn admit(
        &self,
        peer: Peer,
        key: Key,
        now_ms: u64,
        owner: &Arc<EvictionQueue>,
    ) -> Admission {
        let mut connections = self.connections.lock();
        let Connections { next, by_peer } = &mut *connections;
        let own = by_peer.entry(peer).or_default();
        let has_evicted = own.len() >= self.max;
        if has_evicted && !evict_oldest(own, next, now_ms, owner) {
            return Admission::Refused;
        }
        let sequence = take_number(next);
        let connection = Arc::new(PeerConnection {
            peer,
            state: AtomicU8::new(BUSY),
            waiting_since_ms: AtomicU64::new(0),
            sequence: AtomicU64::new(sequence),
            key,
            owner: Arc::clone(owner),
        });
        own.insert(sequence, Arc::clone(&connection));
        Admission::Admitted { connection, has_evicted }
    }

    /// Returns `true` if [`Self::evict_any`] finds a connection.
    pub(crate) fn can_evict_any(&self, now_ms: u64) -> bool {
        let connections = self.connections.lock();
        let largest = largest_peers(&connections.by_peer);
        let mut own = largest.iter().filter_map(|peer| connections.by_peer.get(peer));
        own.any(|own| own.values().take(EXAMINED_MAX).any(|one| one.has_waited(now_ms)))
    }

    /// Evicts the oldest waiting connection of the peer that has the most connections or, if none of
    /// them waits, of the peer with the next most. Returns `false` if there is none. The caller must
    /// close the connections in the queue of its own thread afterwards.
    pub(crate) fn evict_any(&self, now_ms: u64, by: &Arc<EvictionQueue>) -> bool {
        let mut connections = self.connections.lock();
        let Connections { next, by_peer } = &mut *connections;
        for peer in largest_peers(by_peer) {
            let Some(own) = by_peer.get_mut(&peer) else { continue };
            if evict_oldest(own, next, now_ms, by) {
                if own.is_empty() {
                    by_peer.remove(&peer);
                }
                return true;
            }
        }
        false
    }

    /// Removes a closed connection.
    pub(crate) fn remove(&self, connection: &PeerConnection) {
        let mut connections = self.connections.lock();
        if connection.state.load(Relaxed) == EVICTED {
            return; // `admit` removed it.
        }
        let Some(own) = connections.by_peer.get_mut(&connection.peer) else { return };
        own.remove(&connection.sequence.load(Relaxed));
        if own.is_empty() {
            connections.by_peer.remove(&connection.peer);
        }
    }
}

/// Returns the peers with the most connections, in descending order of their number.
fn largest_peers(by_peer: &HashMap<Peer, BTreeMap<u64, Arc<PeerConnection>>>) -> Vec<Peer> {
    let mut peers: Vec<_> = by_peer.iter().map(|(peer, own)| (Reverse(own.len()), *peer)).collect();
    if peers.len() > PEERS_EXAMINED_MAX {
        peers.select_nth_unstable_by_key(PEERS_EXAMINED_MAX, |(count, _)| *count);
        peers.truncate(PEERS_EXAMINED_MAX);
    }
    peers.sort_unstable_by_key(|(count, _)| *count);
    peers.into_iter().map(|(_, peer)| peer).collect()
}

fn take_number(next: &mut u64) -> u64 {
    *next += 1;
    *next
}

/// Evicts the oldest of `own` that has waited long enough; returns `false` if none of the first
/// [`EXAMINED_MAX`] has.
fn evict_oldest(
    own: &mut BTreeMap<u64, Arc<PeerConnection>>,
    next: &mut u64,
    now_ms: u64,
    by: &Arc<EvictionQueue>,
) -> bool {
    for _ in 0..EXAMINED_MAX.min(own.len()) {
        let Some((_, oldest)) = own.pop_first() else { return false };
        if oldest.evict(now_ms, by) {
            return true;
        }
        let sequence = take_number(next);
        oldest.sequence.store(sequence, Relaxed);
        own.insert(sequence, oldest);
    }
    false
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::poller::{Poll, waker};

    fn peer(last: u8) -> Peer {
        Peer::of([127, 0, 0, last].into())
    }

    fn key(index: u32) -> Key {
        Key { index, generation: 0 }
    }

    fn queue(poll: &Poll) -> Arc<EvictionQueue> {
        EvictionQueue::new(Arc::new(waker(poll).unwrap()))
    }

    fn admitted(admission: Admission) -> Option<(Arc<PeerConnection>, bool)> {
        match admission {
            Admission::Admitted { connection, has_evicted } => Some((connection, has_evicted)),
            Admission::Refused => None,
        }
    }

    #[test]
    fn oldest_waiting_connection_of_the_same_peer_gives_way() {
        let poll = Poll::new().unwrap();
        let (table, queue) = (PeerTable::new(3), queue(&poll));
        let now_ms = Cell::new(0);
        let admit = |peer, index| admitted(table.admit(peer, key(index), now_ms.get(), &queue));
        let mut own: Vec<_> = (0..3).map(|index| admit(peer(1), index).unwrap().0).collect();
        let other = admit(peer(2), 3).unwrap().0;
        other.set_waiting(0);
        assert!(admit(peer(1), 4).is_none(), "all connections of the peer are busy");
        own[1].set_waiting(0);
        own[2].set_waiting(0);
        now_ms.set(WAIT_MS_MIN - 1);
        assert!(admit(peer(1), 4).is_none(), "requests may be on their way");
        now_ms.set(WAIT_MS_MIN);
        let (fifth, has_evicted) = admit(peer(1), 5).unwrap();
        assert!(has_evicted && queue.take() == [key(1)] && queue.take().is_empty());
        assert!(!own[1].set_busy() && own[2].set_busy() && other.set_busy());
        own[1].set_waiting(0);
        assert!(!own[1].set_busy(), "an evicted connection stays evicted");
        // The evicted connection was replaced, so closing it frees no place.
        table.remove(&own[1]);
        assert!(admit(peer(1), 6).is_none());
        table.remove(&fifth);
        assert!(!admit(peer(1), 7).unwrap().1);
        own.clear();
    }

    #[test]
    fn peer_with_the_most_connections_gives_way_to_another_one() {
        let poll = Poll::new().unwrap();
        let (table, queue) = (PeerTable::new(10), queue(&poll));
        let peers = [(1, 3), (2, 2), (3, 1)];
        let keys = peers.iter().flat_map(|(last, count)| std::iter::repeat_n(*last, *count));
        let all: Vec<_> = (0..)
            .zip(keys)
            .map(|(index, last)| admitted(table.admit(peer(last), key(index), 0, &queue)).unwrap())
            .collect();
        assert!(!table.can_evict_any(WAIT_MS_MIN) && !table.evict_any(WAIT_MS_MIN, &queue));
        for index in [1, 3, 4, 5] {
            all[index].0.set_waiting(0);
        }
        assert!(!table.can_evict_any(WAIT_MS_MIN - 1));
        let mut evicted = Vec::new();
        while table.can_evict_any(WAIT_MS_MIN) && table.evict_any(WAIT_MS_MIN, &queue) {
            evicted.extend(queue.take());
        }
        assert_eq!(evicted[..2], [key(1), key(3)], "of the peers with three and two connections");
        assert_eq!((evicted.len(), table.connections.lock().by_peer.len()), (4, 1));
    }

    #[test]
    fn peers_without_connections_take_no_memory() {
        let poll = Poll::new().unwrap();
        let (table, queue) = (PeerTable::new(1), queue(&poll));
        for index in 0..10 {
            let (connection, _) = admitted(table.admit(peer(1), key(index), 0, &queue)).unwrap();
            table.remove(&connection);
        }
        assert!(table.connections.lock().by_peer.is_empty());
    }

    #[test]
    fn busy_connections_do_not_hide_a_waiting_one_for_long() {
        let poll = Poll::new().unwrap();
        let (table, queue) = (PeerTable::new(500), queue(&poll));
        let all: Vec<_> = (0..500)
            .map(|index| admitted(table.admit(peer(1), key(index), 0, &queue)).unwrap().0)
            .collect();
        all[499].set_waiting(0);
        let refusals = (0..).take_while(|_| {
            admitted(table.admit(peer(1), key(500), WAIT_MS_MIN, &queue)).is_none()
        });
        assert_eq!(refusals.count(), 500 / EXAMINED_MAX);
        assert_eq!(queue.take(), [key(499)]);
    }
}
