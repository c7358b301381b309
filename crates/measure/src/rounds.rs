//! Determines the order in which several candidates are measured: in interleaved rounds, each of
//! which measures every candidate once.

/// One measurement of one candidate, and its place in the order of all measurements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// The index of the round.
    pub round: usize,
    /// The index of the candidate.
    pub which: usize,
    /// The number of turns before this one.
    pub done: usize,
    /// The total number of turns in all rounds.
    pub of: usize,
}

/// Returns the turns of `rounds` rounds of all `candidates`, each round rotated by one: A B C, then
/// B C A, then C A B. Therefore a device that slows down during the run affects all candidates
/// alike, and each candidate is measured first in some round.
pub fn turns(rounds: usize, candidates: usize) -> impl Iterator<Item = Turn> {
    let of = rounds * candidates;
    (0..of).map(move |done| {
        let round = done / candidates;
        Turn { round, which: (done + round) % candidates, done, of }
    })
}

/// Returns turns as [`turns`] does, but with each round in a pseudo-random order. Use it for
/// candidates that change the state of the machine for the next candidate, such as by fragmenting
/// memory.
pub fn shuffled_turns(rounds: usize, candidates: usize) -> impl Iterator<Item = Turn> {
    let of = rounds * candidates;
    (0..rounds).flat_map(move |round| {
        // Sorting the candidates by a SplitMix64 number [Steele14] each shuffles them.
        let number = |which: usize| {
            let seed = (round * candidates + which) as u64;
            let mixed = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed ^ (mixed >> 27)
        };
        let mut order: Vec<_> = (0..candidates).collect();
        order.sort_by_key(|which| number(*which));
        let turn = move |(at, which)| Turn { round, which, done: round * candidates + at, of };
        order.into_iter().enumerate().map(turn)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_round_has_each_candidate_once_rotated() {
        let order: Vec<_> = turns(3, 3).map(|turn| (turn.round, turn.which)).collect();
        let expected = [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (1, 0), (2, 2), (2, 0), (2, 1)];
        assert_eq!(order, expected);
        assert_eq!(turns(5, 0).count() + turns(0, 5).count(), 0);
    }

    #[test]
    fn shuffled_rounds_have_each_candidate_once_in_varying_order() {
        let all: Vec<_> = shuffled_turns(5, 20).collect();
        assert!(all.iter().map(|turn| turn.done).eq(0..100) && all.iter().all(|t| t.of == 100));
        for round in all.chunks(20) {
            let candidates: BTreeSet<_> = round.iter().map(|turn| turn.which).collect();
            assert_eq!(candidates, (0..20).collect());
        }
        let pairs: BTreeSet<_> =
            all.windows(2).map(|pair| (pair[0].which, pair[1].which)).collect();
        assert!(pairs.len() > 80, "{} of 99", pairs.len());
        assert_eq!(shuffled_turns(0, 5).count() + shuffled_turns(5, 0).count(), 0);
    }
}
