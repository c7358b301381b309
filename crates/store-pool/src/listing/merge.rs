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

/// A member's listing.
#[derive(Debug)]
struct Source<E> {
    member: usize,
    /// `true` if each range of names is read before the sources that are not early.
    is_early: bool,
    entries: VecDeque<E>,
    /// The last entry that was read.
    last: Option<E>,
    more: bool,
}

/// Returns what is merged. The newest states come first: of equal entries, the first one is taken.
fn sources<E>(donors: &[bool]) -> Vec<Source<E>> {
    // A single donor receives no keys.
    let may_receive = donors.iter().filter(|is_donor| **is_donor).count() > 1;
    let source = |member, is_early| Source {
        member,
        is_early,
        entries: VecDeque::new(),
        last: None,
        more: true,
    };
    let members = || 0..donors.len();
    let late = members().filter(|member| may_receive || !donors[*member]);
    let early = members().filter(|member| donors[*member]);
    late.map(|member| source(member, false))
        .chain(early.map(|member| source(member, true)))
        .collect()
}

/// Merges the listings of members, which are in the order of `compare`, to a page of at most
/// `limit` entries. Of equal entries in several members, such as common prefixes, the page has one.
/// `donors` has a member's position if keys are being moved from it.
///
/// `read` returns a member's page of at most the given number of entries after an entry, or from
/// the start of the listing.
///
/// A key that is moved meanwhile is listed: for each range of names, each donor is read before all
/// members that may receive keys, so that a key which the donor no longer has is in a receiver.
/// Several donors may move keys to one another, as in a restored pool, and are read a second time.
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
    let mut sources = sources::<E>(donors);
    let mut equal = Vec::new();
    loop {
        let left = limit - merged.entries.len();
        let share = (left.div_ceil(donors.len()) + SPARE_ENTRIES).min(left.max(1));
        let mut has_read_early = false;
        for source in sources.iter_mut().filter(|it| it.is_early) {
            let member = source.member;
            has_read_early |= source.refill(|last| read(member, last, share))?;
        }
        for source in sources.iter_mut().filter(|it| !it.is_early) {
            if has_read_early {
                source.restart_after(merged.entries.last());
            }
            let member = source.member;
            source.refill(|last| read(member, last, share))?;
        }
        let Some(next) = first(&sources, &mut equal, &compare) else { break };
        if left == 0 {
            merged.more = true;
            break;
        }
        merged.entries.extend(sources[next].entries.pop_front());
        for source in equal.drain(..) {
            sources[source].entries.pop_front();
        }
    }
    Ok(merged)
}

/// Returns the source with the first entry. `equal` gets the later sources with an equal entry.
fn first<E>(
    sources: &[Source<E>],
    equal: &mut Vec<usize>,
    compare: impl Fn(&E, &E) -> Ordering,
) -> Option<usize> {
    let mut first: Option<(usize, &E)> = None;
    for (number, source) in sources.iter().enumerate() {
        let Some(head) = source.entries.front() else { continue };
        match first.map_or(Ordering::Less, |(_, entry)| compare(head, entry)) {
            Ordering::Less => {
                first = Some((number, head));
                equal.clear();
            }
            Ordering::Equal => equal.push(number),
            Ordering::Greater => {}
        }
    }
    first.map(|(number, _)| number)
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

        /// Between any two reads, keys move between two donors, each in one direction.
        #[test]
        fn key_that_moves_between_donors_is_listed_once(
            keys in prop::collection::btree_set(0_u32..200, 0..80),
            moves in prop::collection::vec(0_u32..200, 0..200),
            batch in 1_usize..30,
            limit in 1_usize..60,
        ) {
            let (from, to) = (|key: u32| key as usize % 2, |key: u32| 1 - key as usize % 2);
            let held = |member| -> BTreeSet<u32> {
                keys.iter().copied().filter(|key| from(*key) == member).collect()
            };
            let members = RefCell::new([0, 1].map(held));
            let moves = RefCell::new(moves.into_iter());
            let move_some = || {
                let mut members = members.borrow_mut();
                for key in moves.borrow_mut().by_ref().take(batch) {
                    if members[from(key)].remove(&key) {
                        members[to(key)].insert(key);
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
                let merged = merge(&[true, true], limit, u32::cmp, read).unwrap();
                listed.extend(merged.entries);
                if !merged.more {
                    break;
                }
            }
            prop_assert_eq!(listed, keys.into_iter().collect::<Vec<_>>());
        }
    }
}
