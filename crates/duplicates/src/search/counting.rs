//! How many equal files are too many, or too few. Pure.

use std::collections::HashSet;

/// What is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replication {
    /// Contents with more replicas than this: 1 finds duplicates.
    Over(usize),
    /// Contents with fewer replicas than this: 2 finds what is unique.
    Under(usize),
}

/// What is looked for, and what counts as a replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counting {
    pub(super) replication: Replication,
    pub(super) isolate: bool,
    pub(super) match_links: bool,
}

impl Counting {
    pub(super) fn wants_few(&self) -> bool {
        matches!(self.replication, Replication::Under(_))
    }

    /// Whether more than `count` replicas are not needed to go on with: they can be reported, or
    /// be split into what can.
    pub(super) fn is_more(&self, count: usize) -> bool {
        match self.replication {
            Replication::Over(over) => count > over,
            Replication::Under(_) => true,
        }
    }

    /// Whether a whole group of so many replicas is reported.
    pub(super) fn reports(&self, count: usize) -> bool {
        match self.replication {
            Replication::Over(over) => count > over,
            Replication::Under(under) => count < under,
        }
    }

    pub(super) fn replicas(&self) -> Replicas {
        Replicas { counting: *self, count: 0, roots: HashSet::new() }
    }
}

/// Counts replicas of one content.
#[derive(Debug)]
pub(super) struct Replicas {
    counting: Counting,
    count: usize,
    roots: HashSet<usize>,
}

impl Replicas {
    /// One more file, below this root; `is_link` when the one before is the same by another name.
    /// Gives whether it is a replica of its own.
    pub(super) fn add(&mut self, root: usize, is_link: bool) -> bool {
        let is_new = if self.counting.isolate {
            self.roots.insert(root)
        } else {
            !is_link || self.counting.match_links
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
    fn replicas_are_counted_by_file_by_name_or_by_root() {
        let files = [(0, false), (0, true), (1, false), (0, false)];
        for (isolate, match_links, expected) in
            [(false, false, 3), (false, true, 4), (true, false, 2), (true, true, 2)]
        {
            let replication = Replication::Over(1);
            let mut replicas = Counting { replication, isolate, match_links }.replicas();
            let own = files.iter().filter(|(root, is_link)| replicas.add(*root, *is_link)).count();
            assert_eq!(own, expected, "{isolate} {match_links}");
            assert_eq!(replicas.count(), expected, "{isolate} {match_links}");
        }
    }

    #[test]
    fn what_is_reported_depends_on_the_count() {
        let counting = |replication| Counting { replication, isolate: false, match_links: false };
        let reported = |replication| (1..5).filter(|n| counting(replication).reports(*n)).count();
        assert_eq!(reported(Replication::Over(1)), 3);
        assert_eq!(reported(Replication::Over(3)), 1);
        assert_eq!(reported(Replication::Under(2)), 1);
        assert_eq!(reported(Replication::Under(4)), 3);
    }
}
