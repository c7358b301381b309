//! The order in which ways are measured. Pure.

/// One measurement of one way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// The round, from 0.
    pub round: usize,
    /// Which of the ways.
    pub which: usize,
    /// How many turns went before.
    pub done: usize,
    /// How many there are altogether.
    pub of: usize,
}

/// `rounds` times each of `ways` in turn: A B C, then B C A, then C A B. A disk that grows slower
/// while it is measured so hurts all alike, and none always comes after the same other.
pub fn turns(rounds: usize, ways: usize) -> impl Iterator<Item = Turn> {
    let of = rounds * ways;
    (0..of).map(move |done| {
        let round = done / ways;
        Turn { round, which: (done + round) % ways, done, of }
    })
}

/// As [`turns`], with the ways of each round in an order of its own: for what leaves the machine in
/// another state (memory in small pieces, say) than the next one likes, and would else always come
/// before the same one.
pub(crate) fn mixed_turns(rounds: usize, ways: usize) -> impl Iterator<Item = Turn> {
    let of = rounds * ways;
    (0..rounds).flat_map(move |round| {
        // A number for each way, by SplitMix64 [Steele14]; sorted by it, they are mixed.
        let number = |which: usize| {
            let seed = (round * ways + which) as u64;
            let mixed = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed ^ (mixed >> 27)
        };
        let mut order: Vec<_> = (0..ways).collect();
        order.sort_by_key(|which| number(*which));
        let turn = move |(at, which)| Turn { round, which, done: round * ways + at, of };
        order.into_iter().enumerate().map(turn)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_round_has_each_way_once_and_starts_with_another() {
        let order: Vec<_> = turns(3, 3).map(|turn| (turn.round, turn.which)).collect();
        let expected = [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (1, 0), (2, 2), (2, 0), (2, 1)];
        assert_eq!(order, expected);
        assert_eq!(turns(5, 0).count() + turns(0, 5).count(), 0);
    }

    #[test]
    fn mixed_rounds_have_each_way_once_and_no_way_always_comes_before_the_same_other() {
        let all: Vec<_> = mixed_turns(5, 20).collect();
        assert!(all.iter().map(|turn| turn.done).eq(0..100) && all.iter().all(|t| t.of == 100));
        for round in all.chunks(20) {
            let ways: BTreeSet<_> = round.iter().map(|turn| turn.which).collect();
            assert_eq!(ways, (0..20).collect());
        }
        let pairs: BTreeSet<_> =
            all.windows(2).map(|pair| (pair[0].which, pair[1].which)).collect();
        assert!(pairs.len() > 80, "{} of 99", pairs.len());
        assert_eq!(mixed_turns(0, 5).count() + mixed_turns(5, 0).count(), 0);
    }
}
