//! Merges the sorted pages of several members to one. Pure.

use std::cmp::Ordering;
use std::collections::VecDeque;

use haul_file_store::Result;

/// A part of a member's listing.
#[derive(Debug)]
pub(crate) struct Page<E> {
    pub(crate) entries: Vec<E>,
    /// `true` if the member's listing continues after the last entry.
    pub(crate) more: bool,
}

/// The entries that are read from a member in addition to its share of a page, because the keys are
/// not spread exactly.
const SPARE_ENTRIES: usize = 8;

/// One member's listing.
#[derive(Debug)]
struct Source<E> {
    entries: VecDeque<E>,
    /// The last entry that was read.
    last: Option<E>,
    more: bool,
    /// `true` for a member from which keys are being moved to others.
    is_donor: bool,
}

/// Merges the listings of members, which are in the order of `compare`, to a page of at most
/// `limit` entries. Of equal entries in several members, such as common prefixes, the page has that
/// of the first member. `donors` has a member's position if keys are being moved from it.
///
/// `read` returns a member's page of at most the given number of entries after an entry, or from
/// the start of the listing.
///
/// A key that is moved meanwhile is listed: for each range of names, a donor is read before the
/// members that receive keys, so that a key which the donor no longer has is in a receiver.
///
/// # Errors
/// The first error of `read`.
pub(crate) fn merge<E: Clone>(
    donors: &[bool],
    limit: usize,
    compare: impl Fn(&E, &E) -> Ordering,
    read: impl Fn(usize, Option<&E>, usize) -> Result<Page<E>>,
) -> Result<Page<E>> {
    let mut merged = Page { entries: Vec::new(), more: false };
    if limit == 0 {
        return Ok(merged);
    }
    let start = |is_donor: &bool| Source {
        entries: VecDeque::new(),
        last: None,
        more: true,
        is_donor: *is_donor,
    };
    let mut sources: Vec<Source<E>> = donors.iter().map(start).collect();
    let mut equal = Vec::new();
    loop {
        let left = limit - merged.entries.len();
        let share = (left.div_ceil(sources.len()) + SPARE_ENTRIES).min(left.max(1));
        let mut has_read_donor = false;
        for (member, source) in sources.iter_mut().enumerate().filter(|(_, it)| it.is_donor) {
            has_read_donor |= source.refill(|last| read(member, last, share))?;
        }
        for (member, source) in sources.iter_mut().enumerate().filter(|(_, it)| !it.is_donor) {
            if has_read_donor {
                source.restart_after(merged.entries.last());
            }
            source.refill(|last| read(member, last, share))?;
        }
        let Some(next) = first(&sources, &mut equal, &compare) else { break };
        if left == 0 {
            merged.more = true;
            break;
        }
        merged.entries.extend(sources[next].entries.pop_front());
        for member in equal.drain(..) {
            sources[member].entries.pop_front();
        }
    }
    Ok(merged)
}

/// Returns the member with the first entry. `equal` gets the later members with an equal entry.
fn first<E>(
    sources: &[Source<E>],
    equal: &mut Vec<usize>,
    compare: impl Fn(&E, &E) -> Ordering,
) -> Option<usize> {
    let mut first: Option<(usize, &E)> = None;
    for (member, source) in sources.iter().enumerate() {
        let Some(head) = source.entries.front() else { continue };
        match first.map_or(Ordering::Less, |(_, entry)| compare(head, entry)) {
            Ordering::Less => {
                first = Some((member, head));
                equal.clear();
            }
            Ordering::Equal => equal.push(member),
            Ordering::Greater => {}
        }
    }
    first.map(|(member, _)| member)
}

impl<E: Clone> Source<E> {
    /// Reads on if no entry is left. Returns `true` if it has read.
    fn refill(&mut self, read: impl FnOnce(Option<&E>) -> Result<Page<E>>) -> Result<bool> {
        if !self.entries.is_empty() || !self.more {
            return Ok(false);
        }
        let page = read(self.last.as_ref())?;
        self.more = page.more && !page.entries.is_empty();
        self.last = page.entries.last().cloned().or_else(|| self.last.take());
        self.entries = page.entries.into();
        Ok(true)
    }

    /// Discards what was read after the last entry of the merged page.
    fn restart_after(&mut self, last: Option<&E>) {
        (self.last, self.more) = (last.cloned(), true);
        self.entries.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::collections::BTreeSet;

    use haul_file_store::Error;
    use proptest::prelude::*;

    use super::*;

    /// Returns a page of a sorted list.
    fn page(list: &[u32], after: Option<&u32>, limit: usize) -> Page<u32> {
        let rest: Vec<u32> =
            list.iter().filter(|entry| after.is_none_or(|after| *entry > after)).copied().collect();
        let more = rest.len() > limit;
        Page { entries: rest.into_iter().take(limit).collect(), more }
    }

    #[test]
    fn page_costs_one_read_of_each_member_if_keys_are_spread_evenly() {
        let members: Vec<Vec<u32>> =
            (0..8).map(|member| (0..1000).map(|number| number * 8 + member).collect()).collect();
        let (reads, entries) = (Cell::new(0), Cell::new(0));
        let read = |member: usize, after: Option<&u32>, limit| {
            let page = page(&members[member], after, limit);
            reads.set(reads.get() + 1);
            entries.set(entries.get() + page.entries.len());
            Ok(page)
        };
        let merged = merge(&[false; 8], 1000, u32::cmp, read).unwrap();
        assert_eq!(merged.entries, (0..1000).collect::<Vec<_>>());
        assert!(merged.more);
        assert_eq!((reads.get(), entries.get()), (8, 8 * 133));
    }

    #[test]
    fn error_of_a_member_is_the_result() {
        let read = |member, _: Option<&u32>, _| match member {
            0 => Ok(Page { entries: vec![1], more: false }),
            _ => Err(Error::ReadOnly),
        };
        assert!(matches!(merge(&[false; 2], 10, u32::cmp, read), Err(Error::ReadOnly)));
    }

    proptest! {
        #[test]
        fn pages_are_those_of_the_sorted_union(
            members in prop::collection::vec(prop::collection::btree_set(0_u32..60, 0..40), 1..5),
            donors in prop::collection::vec(any::<bool>(), 5),
            limit in 1_usize..20,
        ) {
            let lists: Vec<Vec<u32>> =
                members.iter().map(|set| set.iter().copied().collect()).collect();
            let mut union: Vec<u32> = lists.concat();
            union.sort_unstable();
            union.dedup();
            let mut after = None;
            loop {
                let read = |member: usize, last: Option<&u32>, limit| {
                    Ok(page(&lists[member], last.or(after.as_ref()), limit))
                };
                let merged = merge(&donors[..lists.len()], limit, u32::cmp, read).unwrap();
                let expected = page(&union, after.as_ref(), limit);
                prop_assert_eq!(&merged.entries, &expected.entries);
                prop_assert_eq!(merged.more, expected.more);
                after = merged.entries.last().copied();
                if !merged.more {
                    break;
                }
            }
        }

        /// Between any two reads, keys move from the donor to the others.
        #[test]
        fn key_that_moves_is_listed_once(
            keys in prop::collection::btree_set(0_u32..200, 0..80),
            moves in prop::collection::vec((0_u32..200, 1_usize..3), 0..200),
            batch in 1_usize..30,
            limit in 1_usize..60,
        ) {
            let members = RefCell::new([keys.clone(), BTreeSet::new(), BTreeSet::new()]);
            let moves = RefCell::new(moves.into_iter());
            let move_some = || {
                let mut members = members.borrow_mut();
                for (key, to) in moves.borrow_mut().by_ref().take(batch) {
                    if members[0].remove(&key) {
                        members[to].insert(key);
                    }
                }
            };
            let mut listed = Vec::new();
            loop {
                let start: Option<u32> = listed.last().copied();
                let read = |member: usize, last: Option<&u32>, limit| {
                    move_some();
                    let list: Vec<u32> = members.borrow()[member].iter().copied().collect();
                    Ok(page(&list, last.or(start.as_ref()), limit))
                };
                let merged = merge(&[true, false, false], limit, u32::cmp, read).unwrap();
                listed.extend(merged.entries);
                if !merged.more {
                    break;
                }
            }
            prop_assert_eq!(listed, keys.into_iter().collect::<Vec<_>>());
        }
    }
}
