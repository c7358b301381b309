use haul_reactor::ManualClock;

use super::*;

const HOSTILE: &str = "192.0.2.1";

/// Returns a table whose clock stands still.
fn connections(all_max: usize, peer_max: usize) -> Arc<Connections<()>> {
    Connections::with_clock(all_max, peer_max, (&ManualClock::new()).into(), || ())
}

fn admitted(connections: &Arc<Connections<()>>, address: &str) -> Option<Slot<()>> {
    let has_room = connections.has_room();
    has_room.then(|| connections.admit(address.parse().unwrap(), Box::new(|| ()))).flatten()
}

/// Evicts a connection some hours later, when all have waited long enough to give way.
fn evict(connections: &Connections<()>, address: Option<&str>, hours: u64) -> bool {
    let later_ms = hours * 3_600_000;
    let mut table = connections.table.lock();
    match address {
        Some(address) => table.evict_of(Peer::of(address.parse().unwrap()), later_ms),
        None => table.evict(later_ms),
    }
}

#[test]
fn peer_limit_leaves_room_for_other_peers() {
    let connections = connections(4, 2);
    let hostile: Vec<_> = (0..100).filter_map(|_| admitted(&connections, HOSTILE)).collect();
    assert_eq!(hostile.len(), 2);
    let others: Vec<_> =
        ["192.0.2.2", "192.0.2.3"].into_iter().filter_map(|a| admitted(&connections, a)).collect();
    assert_eq!(others.len(), 2);
    assert!(!connections.has_room());
    assert_eq!(
        connections.stats(),
        ConnectionStats { accepted: 4, open: 4, refused: 98, ..ConnectionStats::default() }
    );
    drop((hostile, others));
    assert_eq!(connections.stats().open, 0);
    assert!(connections.table.lock().peers.is_empty());
}

#[test]
fn waiting_connection_of_the_largest_peer_is_evicted_and_requests_never() {
    let connections = connections(9, 9);
    let other = admitted(&connections, "192.0.2.2").unwrap();
    let hostile: Vec<_> = (0..3).map(|_| admitted(&connections, HOSTILE).unwrap()).collect();
    let request = hostile[0].connection().begin().unwrap();
    assert!(evict(&connections, None, 1) && evict(&connections, None, 1));
    assert!(!other.connection().is_closing(), "two of the others were closed");
    assert!(hostile[1..].iter().all(|slot| slot.connection().begin().is_none()));
    assert!(!evict(&connections, Some(HOSTILE), 1), "what is left answers a request");
    assert!(evict(&connections, None, 1), "now the other one is all that waits");
    assert!(!evict(&connections, None, 1));
    drop(request);
    assert!(!evict(&connections, Some(HOSTILE), 1), "it was busy just now");
    assert!(evict(&connections, Some(HOSTILE), 2));
    assert_eq!(
        connections.stats(),
        ConnectionStats { accepted: 4, evicted: 4, ..ConnectionStats::default() }
    );
}

#[test]
fn new_connection_is_not_evicted() {
    let connections = connections(1, 1);
    let first = admitted(&connections, HOSTILE).unwrap();
    assert!(admitted(&connections, HOSTILE).is_none());
    assert!(first.connection().begin().is_some());
}
