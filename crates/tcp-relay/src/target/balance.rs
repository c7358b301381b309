//! Computes the order in which the relay tries the targets for a connection. Performs no I/O.

use std::net::IpAddr;

/// The algorithm that selects the target of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Balance {
    /// Each target in turn.
    #[default]
    RoundRobin,
    /// The target with the fewest open connections.
    LeastConnections,
    /// The same target for the same client IP address while the target is up (rendezvous hashing).
    /// When a target goes down, only the clients of that target move \[Thaler98\].
    Source,
}

/// The state of a target when a connection arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) is_up: bool,
    pub(super) connections: u64,
}

/// Returns the indexes of all targets in the order in which to try them; `sequence` is the number
/// of the connection since the relay started. Targets that are down come last. They are not left
/// out, because they may have recovered.
pub(super) fn order(
    balance: Balance,
    candidates: &[Candidate],
    sequence: u64,
    client: Option<IpAddr>,
) -> Vec<usize> {
    let count = candidates.len().max(1) as u64;
    let start = sequence % count;
    let mut order: Vec<usize> = (0..candidates.len()).collect();
    // The distance of a target from the one that is next in round-robin order.
    let distance = |index: usize| (index as u64 + count - start) % count;
    order.sort_by_cached_key(|&index| {
        let (first, second) = match (balance, client) {
            (Balance::RoundRobin, _) => (0, distance(index)),
            (Balance::LeastConnections, _) => (candidates[index].connections, distance(index)),
            (Balance::Source, Some(client)) => (u64::MAX - weight(client, index), 0),
            // All clients without an IP address get the same order.
            (Balance::Source, None) => (index as u64, 0),
        };
        (!candidates[index].is_up, first, second)
    });
    order
}

/// Returns the rendezvous weight of a target for a client; the highest weight wins.
fn weight(client: IpAddr, index: usize) -> u64 {
    let client = match client {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    };
    let parts = client.segments().map(u64::from);
    parts.iter().fold(mix(index as u64), |mixed, part| mix(mixed ^ part))
}

/// Mixes the bits of a number with SplitMix64 \[Steele14\].
fn mix(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn candidates(states: &[(bool, u64)]) -> Vec<Candidate> {
        states.iter().map(|&(is_up, connections)| Candidate { is_up, connections }).collect()
    }

    #[test]
    fn round_robin_cycles_over_targets_that_are_up() {
        let all = candidates(&[(true, 9), (false, 0), (true, 0)]);
        let first = |sequence| order(Balance::RoundRobin, &all, sequence, None);
        assert_eq!(
            (0..4).map(first).collect::<Vec<_>>(),
            [[0, 2, 1], [2, 0, 1], [2, 0, 1], [0, 2, 1],]
        );
        assert_eq!(order(Balance::RoundRobin, &[], 7, None), [0; 0]);
    }

    #[test]
    fn least_connections_is_first_and_ties_alternate() {
        let all = candidates(&[(true, 3), (true, 1), (true, 1), (false, 0)]);
        assert_eq!(order(Balance::LeastConnections, &all, 0, None), [1, 2, 0, 3]);
        assert_eq!(order(Balance::LeastConnections, &all, 2, None), [2, 1, 0, 3]);
    }

    #[test]
    fn all_targets_are_tried_if_none_is_up() {
        let all = candidates(&[(false, 0), (false, 0)]);
        assert_eq!(order(Balance::RoundRobin, &all, 1, None), [1, 0]);
    }

    fn clients() -> impl Iterator<Item = Option<IpAddr>> {
        (0..4000_u32).map(|number| Some(Ipv4Addr::from_bits(0x0a00_0000 + number).into()))
    }

    #[test]
    fn source_moves_only_clients_of_a_target_that_is_down() {
        let all = candidates(&[(true, 0); 4]);
        let fewer = candidates(&[(true, 0), (true, 0), (false, 0), (true, 0)]);
        for client in clients() {
            let before = order(Balance::Source, &all, 1, client)[0];
            assert_eq!(order(Balance::Source, &all, 2, client)[0], before, "in any turn");
            let after = order(Balance::Source, &fewer, 3, client)[0];
            assert!(after == before || before == 2, "{client:?} moved from {before} to {after}");
        }
    }

    #[test]
    fn source_spreads_clients_evenly() {
        let all = candidates(&[(true, 0); 4]);
        let mut counts = [0; 4];
        clients().for_each(|client| counts[order(Balance::Source, &all, 0, client)[0]] += 1);
        assert!(counts.iter().all(|count| (850..1150).contains(count)), "{counts:?}");
    }
}
