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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_round_has_each_way_once_and_starts_with_another() {
        let order: Vec<_> = turns(3, 3).map(|turn| (turn.round, turn.which)).collect();
        let expected = [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (1, 0), (2, 2), (2, 0), (2, 1)];
        assert_eq!(order, expected);
        assert_eq!(turns(5, 0).count() + turns(0, 5).count(), 0);
    }
}
