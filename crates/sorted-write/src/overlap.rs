//! Of writes at the same place the last one stands. Pure.

use std::collections::BinaryHeap;

use crate::plan::{Entry, Piece};

/// Gives what of each entry is the newest at its place, in ascending order and without overlap.
/// `entries` are sorted by offset.
pub(crate) fn each_newest(entries: &[Entry], each: &mut impl FnMut(Piece)) {
    let mut rest = entries;
    while let Some((first, behind)) = rest.split_first() {
        let mut end = first.end();
        let together = 1 + behind.iter().take_while(|entry| reaches(entry, &mut end)).count();
        if together == 1 {
            each(part(first, first.offset, first.end()));
        } else {
            resolve(&rest[..together], each);
        }
        rest = &rest[together..];
    }
}

/// Whether the entry begins in front of `end`, which moves on with it.
fn reaches(entry: &Entry, end: &mut u64) -> bool {
    let is_within = entry.offset < *end;
    if is_within {
        *end = entry.end().max(*end);
    }
    is_within
}

fn part(entry: &Entry, offset: u64, end: u64) -> Piece {
    let within = |at: u64| u32::try_from(at - entry.offset).unwrap_or(entry.bytes);
    let from = within(offset);
    Piece { offset, bytes: within(end) - from, number: entry.number, from }
}

/// A sweep over entries that overlap: at each place the greatest number of those that reach over
/// it, from a heap. Its time grows with the entries, not with how much they overlap.
fn resolve(entries: &[Entry], each: &mut impl FnMut(Piece)) {
    let mut waiting = entries.iter().peekable();
    let mut over: BinaryHeap<(u32, usize)> = BinaryHeap::new();
    let mut at = entries[0].offset;
    let mut last: Option<(usize, u64)> = None;
    let mut number = 0;
    loop {
        while waiting.next_if(|entry| entry.offset <= at).is_some() {
            over.push((entries[number].number, number));
            number += 1;
        }
        while over.peek().is_some_and(|(_, top)| entries[*top].end() <= at) {
            over.pop();
        }
        let Some(top) = over.peek().map(|(_, top)| *top) else { break };
        // The piece before ends where another one is on top.
        if last.is_none_or(|(before, _)| before != top) {
            if let Some((before, from)) = last {
                each(part(&entries[before], from, at));
            }
            last = Some((top, at));
        }
        let next = waiting.peek().map_or(u64::MAX, |entry| entry.offset);
        at = entries[top].end().min(next);
    }
    if let Some((before, from)) = last {
        each(part(&entries[before], from, at));
    }
}
