//! Determines the segments that belong to the log, and the ends of segments without a seal, the
//! record that ends a segment. Performs no I/O.
//!
//! A segment's header may declare, in its field `follows`, the LSN at which the log before this
//! segment ends. Records from that LSN up to the declaring segment are no longer part of the log:
//! they were truncated, or were written but not acknowledged before a write or sync failed.

use std::collections::BTreeMap;

use crate::lsn::Lsn;

/// The implications of all segments' `follows` fields.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Chain {
    /// The segments that are no longer part of the log, by number.
    pub(crate) detached: Vec<u32>,
    /// The end offset of each segment whose end a later header declares, by segment number. Records
    /// may lie after this offset in the file, but are ignored.
    pub(crate) ends: BTreeMap<u32, u32>,
}

/// Evaluates all segments' headers, given as numbers with their `follows` fields, in ascending
/// order.
pub(crate) fn chain(links: &[(u32, Lsn)]) -> Chain {
    let mut chain = Chain::default();
    // The newest header is evaluated first, because a detached segment, which is no longer part of
    // the log, must be ignored.
    let mut detached_from = u32::MAX;
    for (number, follows) in links.iter().rev() {
        if *number > detached_from {
            chain.detached.insert(0, *number);
            continue;
        }
        if *follows != Lsn(0) && follows.segment() < *number {
            chain.ends.insert(follows.segment(), follows.offset());
            detached_from = follows.segment();
        }
    }
    chain
}

/// The maximum number of lost segments reported between two others.
const LOST_MAX: u32 = 100;

/// A segment whose file is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lost {
    pub(crate) number: u32,
    /// `true` if a later header declares the segment. `false` if only the number is missing, before
    /// a lost segment: only that lost segment's header would declare whether this one existed.
    pub(crate) is_declared: bool,
}

/// Returns the lost segments. A segment is lost if a later header declares it as its predecessor,
/// while an older segment exists; so are the numbers between it and the older segment. Segments are
/// given as numbers with their `follows` and `previous` fields, in ascending order, without the
/// detached ones.
///
/// A lost oldest segment cannot be distinguished from a removed one, and a lost newest segment from
/// one that was never created.
pub(crate) fn lost(links: &[(u32, Lsn, Option<u32>)]) -> Vec<Lost> {
    let lost_between = |pair: &[(u32, Lsn, Option<u32>)]| {
        let ((before, ..), (_, follows, previous)) = (pair[0], pair[1]);
        let declared = if follows == Lsn(0) { previous } else { None };
        let declared = declared.unwrap_or(before);
        let first = declared.saturating_sub(LOST_MAX).max(before) + 1;
        (first..=declared).map(move |number| Lost { number, is_declared: number == declared })
    };
    links.windows(2).flat_map(lost_between).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_declared_segment_is_lost_if_an_older_one_exists() {
        let none = Lsn(0);
        for (links, expected) in [
            (vec![], vec![]),
            (vec![(1, none, None), (2, none, Some(1)), (5, none, Some(2))], vec![]),
            (vec![(1, none, None), (5, none, Some(2))], vec![(2, true)]),
            (
                vec![(1, none, None), (3, none, Some(2)), (5, none, Some(4))],
                vec![(2, true), (4, true)],
            ),
            // Segment 3 declares whether segment 2 existed, but is lost.
            (
                vec![(1, none, None), (4, none, Some(3)), (6, none, Some(5))],
                vec![(2, false), (3, true), (5, true)],
            ),
            // The oldest segments were removed.
            (vec![(5, none, Some(2)), (6, none, Some(5))], vec![]),
            // The caller may remove any segment.
            (vec![(1, none, None), (5, none, None)], vec![]),
            // A truncation has detached the declared segment.
            (vec![(1, none, None), (5, Lsn::new(1, 5000), Some(4))], vec![]),
        ] {
            let lost: Vec<_> = lost(&links).iter().map(|it| (it.number, it.is_declared)).collect();
            assert_eq!(lost, expected, "{links:?}");
        }
    }

    #[test]
    fn number_of_reported_segments_is_limited() {
        let lost = lost(&[(1, Lsn(0), None), (1_000_000, Lsn(0), Some(999_999))]);
        assert_eq!(lost.len(), LOST_MAX as usize);
        assert_eq!(lost.last(), Some(&Lost { number: 999_999, is_declared: true }));
    }

    #[test]
    fn segments_not_followed_by_a_later_one_are_detached() {
        let none = Lsn(0);
        for (links, detached, ends) in [
            (vec![], vec![], vec![]),
            (vec![(1, none), (2, none)], vec![], vec![]),
            (vec![(1, none), (2, Lsn::new(1, 4096))], vec![], vec![(1, 4096)]),
            (
                vec![(1, none), (2, none), (3, none), (5, Lsn::new(1, 8192))],
                vec![2, 3],
                vec![(1, 8192)],
            ),
            // A second truncation at an earlier LSN than the first.
            (
                vec![(1, none), (2, none), (4, Lsn::new(2, 5000)), (5, Lsn::new(1, 8192))],
                vec![2, 4],
                vec![(1, 8192)],
            ),
            // Two truncations at increasing LSNs. The segment at which the first one ended the log
            // was removed.
            (
                vec![(4, Lsn::new(2, 5000)), (5, none), (7, Lsn::new(5, 4096))],
                vec![],
                vec![(2, 5000), (5, 4096)],
            ),
            // An invalid `follows` field that refers to its own segment is ignored.
            (vec![(1, none), (2, Lsn::new(2, 4096))], vec![], vec![]),
        ] {
            let expected = Chain { detached, ends: ends.into_iter().collect() };
            assert_eq!(chain(&links), expected, "{links:?}");
        }
    }
}
