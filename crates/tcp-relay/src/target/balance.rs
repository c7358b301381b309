//! In which order the targets are tried for a connection. Pure.

use std::net::IpAddr;

/// Who gets a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Balance {
    /// One after the other.
    #[default]
    RoundRobin,
    /// Who has the fewest.
    LeastConnections,
    /// The same for the same client, while it is up. When one goes, only its clients move
    /// \[Thaler98\].
    Source,
}

/// What is known of a target when a connection comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) is_up: bool,
    pub(super) connections: u64,
}

/// All targets, in the order in which they are tried: those that are up first. `turn` rises with
/// each connection. When none is up they are tried all the same: a guess is better than a refusal.
pub(super) fn order(
    balance: Balance,
    known: &[Known],
    turn: u64,
    client: Option<IpAddr>,
) -> Vec<usize> {
    let count = known.len().max(1) as u64;
    let begin = turn % count;
    let mut order: Vec<usize> = (0..known.len()).collect();
    // How far a target is from the one whose turn it is.
    let distance = |index: usize| (index as u64 + count - begin) % count;
    order.sort_by_cached_key(|&index| {
        let (first, second) = match (balance, client) {
            (Balance::RoundRobin, _) => (0, distance(index)),
            (Balance::LeastConnections, _) => (known[index].connections, distance(index)),
            (Balance::Source, Some(client)) => (u64::MAX - weight(client, index), 0),
            // Without an address there is one client for all.
            (Balance::Source, None) => (index as u64, 0),
        };
        (!known[index].is_up, first, second)
    });
    order
}

/// How much a client likes a target: the greatest wins, and each target is as often the greatest.
fn weight(client: IpAddr, index: usize) -> u64 {
    let client = match client {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    };
    let parts = client.segments().map(u64::from);
    parts.iter().fold(mix(index as u64), |mixed, part| mix(mixed ^ part))
}

/// Spreads every bit of a number over all \[Steele14\].
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

    fn known(states: &[(bool, u64)]) -> Vec<Known> {
        states.iter().map(|&(is_up, connections)| Known { is_up, connections }).collect()
    }

    #[test]
    fn turns_go_round_over_those_that_are_up() {
        let all = known(&[(true, 9), (false, 0), (true, 0)]);
        let first = |turn| order(Balance::RoundRobin, &all, turn, None);
        assert_eq!(
            (0..4).map(first).collect::<Vec<_>>(),
            [[0, 2, 1], [2, 0, 1], [2, 0, 1], [0, 2, 1],]
        );
        assert_eq!(order(Balance::RoundRobin, &[], 7, None), [0; 0]);
    }

    #[test]
    fn who_has_the_fewest_is_first_and_equals_take_turns() {
        let all = known(&[(true, 3), (true, 1), (true, 1), (false, 0)]);
        assert_eq!(order(Balance::LeastConnections, &all, 0, None), [1, 2, 0, 3]);
        assert_eq!(order(Balance::LeastConnections, &all, 2, None), [2, 1, 0, 3]);
    }

    #[test]
    fn when_none_is_up_all_are_tried() {
        let all = known(&[(false, 0), (false, 0)]);
        assert_eq!(order(Balance::RoundRobin, &all, 1, None), [1, 0]);
    }

    fn clients() -> impl Iterator<Item = Option<IpAddr>> {
        (0..4000_u32).map(|number| Some(Ipv4Addr::from_bits(0x0a00_0000 + number).into()))
    }

    #[test]
    fn a_client_keeps_its_target_and_only_those_of_a_lost_one_move() {
        let all = known(&[(true, 0); 4]);
        let fewer = known(&[(true, 0), (true, 0), (false, 0), (true, 0)]);
        for client in clients() {
            let before = order(Balance::Source, &all, 1, client)[0];
            assert_eq!(order(Balance::Source, &all, 2, client)[0], before, "whatever the turn");
            let after = order(Balance::Source, &fewer, 3, client)[0];
            assert!(after == before || before == 2, "{client:?} moved from {before} to {after}");
        }
    }

    #[test]
    fn clients_are_spread_evenly() {
        let all = known(&[(true, 0); 4]);
        let mut counts = [0; 4];
        clients().for_each(|client| counts[order(Balance::Source, &all, 0, client)[0]] += 1);
        assert!(counts.iter().all(|count| (850..1150).contains(count)), "{counts:?}");
    }
}
