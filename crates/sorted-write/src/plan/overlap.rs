//! Resolves overlapping writes: the newest write's bytes are kept.

use std::collections::BinaryHeap;

use super::entry::{Entry, Piece};

/// Calls `visit` for the parts that no newer entry overwrites, in ascending order and without
/// overlap. `entries` must be sorted by offset.
pub(super) fn for_each_newest(entries: &[Entry], visit: &mut impl FnMut(Piece)) {
    let mut rest = entries;
    while let Some((first, others)) = rest.split_first() {
        let mut end = first.end();
        let overlapping = 1 + others.iter().take_while(|entry| overlaps(entry, &mut end)).count();
        if overlapping == 1 {
            visit(part(first, first.offset, first.end()));
        } else {
            resolve(&rest[..overlapping], visit);
        }
        rest = &rest[overlapping..];
    }
}

/// `true` if the entry starts before `end`. Then raises `end` to the entry's end if that is
/// greater.
fn overlaps(entry: &Entry, end: &mut u64) -> bool {
    let is_within = entry.offset < *end;
    if is_within {
        *end = entry.end().max(*end);
    }
    is_within
}

fn part(entry: &Entry, offset: u64, end: u64) -> Piece {
    debug_assert!(entry.offset <= offset && offset < end && end <= entry.end());
    let within = |at: u64| u32::try_from(at - entry.offset).unwrap_or(entry.bytes);
    let from = within(offset);
    Piece { offset, bytes: within(end) - from, number: entry.number, from }
}

/// Resolves overlapping entries with a sweep line and a heap that returns the newest entry at each
/// offset. The time depends on the number of entries, not on the number of overlapping bytes.
fn resolve(entries: &[Entry], visit: &mut impl FnMut(Piece)) {
    let mut upcoming = entries.iter().peekable();
    let mut active: BinaryHeap<(u32, usize)> = BinaryHeap::new();
    let mut at = entries[0].offset;
    let mut last: Option<(usize, u64)> = None;
    let mut number = 0;
    loop {
        while upcoming.next_if(|entry| entry.offset <= at).is_some() {
            active.push((entries[number].number, number));
            number += 1;
        }
        while active.peek().is_some_and(|(_, top)| entries[*top].end() <= at) {
            active.pop();
        }
        let Some(top) = active.peek().map(|(_, top)| *top) else { break };
        // A piece ends at the offset at which another entry becomes the newest one.
        if last.is_none_or(|(current, _)| current != top) {
            if let Some((current, from)) = last {
                visit(part(&entries[current], from, at));
            }
            last = Some((top, at));
        }
        let next = upcoming.peek().map_or(u64::MAX, |entry| entry.offset);
        at = entries[top].end().min(next);
    }
    if let Some((current, from)) = last {
        visit(part(&entries[current], from, at));
    }
}
