//! Counts the replicas (independent copies) of a content, and decides by their number whether the
//! content is reported.

use std::collections::HashSet;

use crate::report::Replication;

/// The contents to report, and which files count as one replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ReplicaPolicy {
    pub(super) replication: Replication,
    pub(super) isolate: bool,
    pub(super) match_links: bool,
}

impl ReplicaPolicy {
    /// `true` if contents with few replicas are reported.
    pub(super) fn reports_few(&self) -> bool {
        matches!(self.replication, Replication::Under(_))
    }

    /// `true` if files with `count` replicas, which later reads may split into several groups, can
    /// still result in a reported group.
    pub(super) fn may_report(&self, count: usize) -> bool {
        match self.replication {
            Replication::Over(over) => count > over,
            Replication::Under(_) => true,
        }
    }

    /// `true` if a group of `count` replicas is reported.
    pub(super) fn reports(&self, count: usize) -> bool {
        match self.replication {
            Replication::Over(over) => count > over,
            Replication::Under(under) => count < under,
        }
    }

    pub(super) fn counter(&self) -> ReplicaCounter {
        ReplicaCounter { policy: *self, count: 0, roots: HashSet::new() }
    }
}

/// A counter of the replicas of a content.
#[derive(Debug)]
pub(super) struct ReplicaCounter {
    policy: ReplicaPolicy,
    count: usize,
    roots: HashSet<usize>,
}

impl ReplicaCounter {
    /// Adds a file below the given root. `is_link` marks a hard link to the file added before.
    /// Returns `true` if the file is a new replica.
    pub(super) fn add(&mut self, root: usize, is_link: bool) -> bool {
        let is_new = if self.policy.isolate {
            self.roots.insert(root)
        } else {
            !is_link || self.policy.match_links
        };
        self.count += usize::from(is_new);
        is_new
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replicas_are_counted_by_inode_name_or_root() {
        let files = [(0, false), (0, true), (1, false), (0, false)];
        for (isolate, match_links, expected) in
            [(false, false, 3), (false, true, 4), (true, false, 2), (true, true, 2)]
        {
            let replication = Replication::Over(1);
            let mut counter = ReplicaPolicy { replication, isolate, match_links }.counter();
            let new = files.iter().filter(|(root, is_link)| counter.add(*root, *is_link)).count();
            assert_eq!(new, expected, "{isolate} {match_links}");
            assert_eq!(counter.count(), expected, "{isolate} {match_links}");
        }
    }

    #[test]
    fn thresholds_select_the_reported_counts() {
        let policy =
            |replication| ReplicaPolicy { replication, isolate: false, match_links: false };
        let reported = |replication| (1..5).filter(|n| policy(replication).reports(*n)).count();
        assert_eq!(reported(Replication::Over(1)), 3);
        assert_eq!(reported(Replication::Over(3)), 1);
        assert_eq!(reported(Replication::Under(2)), 1);
        assert_eq!(reported(Replication::Under(4)), 3);
    }
}
