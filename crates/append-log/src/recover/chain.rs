//! Which segments belong to the log, and where those end that have no seal: pure.
//!
//! A segment may say in its header that the log before it ends at some LSN, `follows`. What is
//! behind that, in the segment it names and in all up to the one that says so, is no longer part
//! of the log: it was truncated, or written when the medium had begun to fail.

use std::collections::BTreeMap;

use crate::lsn::Lsn;

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Chain {
    /// Segments that are no longer part of the log.
    pub(crate) cut_off: Vec<u32>,
    /// Where segments end, whatever is behind.
    pub(crate) ends: BTreeMap<u32, u32>,
}

/// The chain of segments given by number and what they follow, in order.
pub(crate) fn chain(links: &[(u32, Lsn)]) -> Chain {
    let mut chain = Chain::default();
    // From the newest: what a segment that is itself cut off says counts for nothing.
    let mut cut_from = u32::MAX;
    for (number, follows) in links.iter().rev() {
        if *number > cut_from {
            chain.cut_off.insert(0, *number);
            continue;
        }
        if *follows != Lsn(0) && follows.segment() < *number {
            chain.ends.insert(follows.segment(), follows.offset());
            cut_from = follows.segment();
        }
    }
    chain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_later_segment_does_not_follow_is_cut_off() {
        let none = Lsn(0);
        for (links, cut_off, ends) in [
            (vec![], vec![], vec![]),
            (vec![(1, none), (2, none)], vec![], vec![]),
            (vec![(1, none), (2, Lsn::new(1, 4096))], vec![], vec![(1, 4096)]),
            (
                vec![(1, none), (2, none), (3, none), (5, Lsn::new(1, 8192))],
                vec![2, 3],
                vec![(1, 8192)],
            ),
            // A truncation of a truncation.
            (
                vec![(1, none), (2, none), (4, Lsn::new(2, 5000)), (5, Lsn::new(1, 8192))],
                vec![2, 4],
                vec![(1, 8192)],
            ),
            // Two, one behind the other; the segment that was followed is gone.
            (
                vec![(4, Lsn::new(2, 5000)), (5, none), (7, Lsn::new(5, 4096))],
                vec![],
                vec![(2, 5000), (5, 4096)],
            ),
            // What cannot be is not believed.
            (vec![(1, none), (2, Lsn::new(2, 4096))], vec![], vec![]),
        ] {
            let expected = Chain { cut_off, ends: ends.into_iter().collect() };
            assert_eq!(chain(&links), expected, "{links:?}");
        }
    }
}
