//! Computes which file ranges a pacer writes back, and in which order: one range per window (see
//! [`super::Pace::window_bytes`]). The module makes no system calls.

use std::ops::Range;
use std::time::Duration;

use crate::units::{align_down, align_up};

/// The ranges on which the pacer acts when a window is full.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Step {
    /// The range whose writeback is started, without waiting.
    pub(super) start: Range<u64>,
    /// The previous window's range, for whose writeback the pacer waits after starting `start`.
    pub(super) finish: Option<Range<u64>>,
}

/// The wait for a window's writeback above which windows become shorter. Two windows then delay
/// other writers by about twice this time.
const WAIT_MAX: Duration = Duration::from_millis(5);

/// The wait below which windows become longer again.
const WAIT_MIN: Duration = Duration::from_millis(1);

/// Returns the next window's length, after a wait for the writeback of a window of `bytes` bytes.
/// It follows the device's rate: halved after long waits, doubled after short ones.
pub(super) fn next_window_bytes(bytes: u64, waited: Duration, limits: &Range<u64>) -> u64 {
    let next = match waited {
        waited if waited > WAIT_MAX => bytes / 2,
        waited if waited < WAIT_MIN => bytes.saturating_mul(2),
        _ => bytes,
    };
    next.min(limits.end).max(limits.start)
}

/// Two windows: one being filled, and the previous one, which is under writeback.
#[derive(Debug)]
pub(super) struct Windows {
    page_bytes: u64,
    /// The range from the lowest to the highest byte written since the last step; empty at first.
    filling: Range<u64>,
    /// The dirty bytes in `filling`, counted in whole pages.
    dirty_bytes: u64,
    /// Where the last page counted in `dirty_bytes` ends: a write that continues in this page does
    /// not count it again.
    counted_to: u64,
    in_writeback: Option<Range<u64>>,
}

impl Windows {
    pub(super) fn new(page_bytes: u64) -> Self {
        let (filling, dirty_bytes, counted_to, in_writeback) = (0..0, 0, 0, None);
        Self { page_bytes, filling, dirty_bytes, counted_to, in_writeback }
    }

    /// Records a write of `bytes` at `offset`; returns a step if the window has `window_bytes`
    /// dirty bytes.
    pub(super) fn wrote(&mut self, offset: u64, bytes: u64, window_bytes: u64) -> Option<Step> {
        // File offsets are signed in the kernel, so no range may end beyond `i64::MAX`.
        let longest = align_down(i64::MAX.cast_unsigned(), self.page_bytes);
        let end = offset.saturating_add(bytes).min(longest);
        if end <= offset {
            return None;
        }
        let (first, last) = (align_down(offset, self.page_bytes), align_up(end, self.page_bytes));
        let is_adjacent = first + self.page_bytes == self.counted_to && self.dirty_bytes > 0;
        let counted_from = if is_adjacent { self.counted_to } else { first };
        self.dirty_bytes += last.saturating_sub(counted_from);
        self.counted_to = last;
        self.filling = if self.filling.is_empty() {
            offset..end
        } else {
            self.filling.start.min(offset)..self.filling.end.max(end)
        };
        (self.dirty_bytes >= window_bytes).then(|| self.advance())
    }

    /// Returns the step for the full window. A partial last page is left to the next window: if it
    /// were written back now, a writer that continues in this page would wait for the writeback,
    /// and the page would be written twice.
    fn advance(&mut self) -> Step {
        let cut = align_down(self.filling.end, self.page_bytes).max(self.filling.start);
        let start = align_down(self.filling.start, self.page_bytes)..cut;
        self.filling.start = cut;
        self.dirty_bytes = align_up(self.filling.end, self.page_bytes) - cut;
        Step { finish: self.in_writeback.replace(start.clone()), start }
    }

    /// Removes and returns the unfinished ranges: first the range under writeback, then the range
    /// whose writeback has not started.
    pub(super) fn rest(&mut self) -> [Option<Range<u64>>; 2] {
        let filling = std::mem::take(&mut self.filling);
        self.dirty_bytes = 0;
        let start = align_down(filling.start, self.page_bytes);
        [self.in_writeback.take(), (!filling.is_empty()).then_some(start..filling.end)]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PAGE: u64 = 4096;

    fn steps(window_pages: u64, writes: &[(u64, u64)]) -> (Vec<Step>, [Option<Range<u64>>; 2]) {
        let mut windows = Windows::new(PAGE);
        let wrote = |(at, bytes): &(u64, u64)| windows.wrote(*at, *bytes, window_pages * PAGE);
        let steps = writes.iter().filter_map(wrote).collect();
        (steps, windows.rest())
    }

    fn step(start: Range<u64>, finish: Option<Range<u64>>) -> Step {
        let bytes = |pages: Range<u64>| pages.start * PAGE..pages.end * PAGE;
        Step { start: bytes(start), finish: finish.map(bytes) }
    }

    #[test]
    fn full_window_is_started_and_previous_one_finished() {
        let writes: Vec<_> = (0..7).map(|page| (page * PAGE, PAGE)).collect();
        let (steps, rest) = steps(2, &writes);
        let expected = [step(0..2, None), step(2..4, Some(0..2)), step(4..6, Some(2..4))];
        assert_eq!(steps, expected);
        assert_eq!(rest, [Some(4 * PAGE..6 * PAGE), Some(6 * PAGE..7 * PAGE)]);
    }

    #[test]
    fn partial_last_page_is_left_to_the_next_window() {
        let (started, rest) = steps(2, &[(0, 100), (100, 2 * PAGE), (100 + 2 * PAGE, 10)]);
        assert_eq!(started, [step(0..2, None)]);
        assert_eq!(rest, [Some(0..2 * PAGE), Some(2 * PAGE..2 * PAGE + 110)]);
    }

    #[test]
    fn adjacent_short_writes_count_each_page_once() {
        let small = |count| (0..count).map(|number| (number * 64, 64)).collect::<Vec<_>>();
        // A page counts as dirty from its first dirty byte.
        assert_eq!(steps(2, &small(PAGE / 64)).0, []);
        assert_eq!(steps(2, &small(PAGE / 64 + 1)).0, [step(0..1, None)]);
        let far = [(0, 1), (10 * PAGE, 1), (20 * PAGE, PAGE)];
        assert_eq!(steps(3, &far).0, [step(0..21, None)]);
        // In descending writes the range spans the lowest to the highest byte.
        let down = [(20 * PAGE, PAGE), (10 * PAGE, PAGE), (5 * PAGE, PAGE)];
        assert_eq!(steps(3, &down).0, [step(5..21, None)]);
    }

    #[test]
    fn windows_follow_the_rate_of_the_device() {
        let limits = 16..256;
        for (bytes, waited_us, expected) in [
            (64, 0, 128),
            (64, 2000, 64),
            (64, 5001, 32),
            (200, 0, 256),
            (256, 0, 256),
            (20, 90_000, 16),
            (16, 90_000, 16),
        ] {
            let waited = Duration::from_micros(waited_us);
            assert_eq!(next_window_bytes(bytes, waited, &limits), expected, "{bytes} {waited_us}");
        }
    }

    #[test]
    fn empty_writes_yield_no_steps() {
        assert_eq!(steps(1, &[(5, 0), (0, 0)]), (vec![], [None, None]));
        assert_eq!(steps(1, &[(u64::MAX - 5, 20)]), (vec![], [None, None]), "beyond any file");
    }

    proptest! {
        #[test]
        fn all_pages_are_finished_and_at_most_two_windows_are_dirty(
            writes in prop::collection::vec((0..200 * PAGE, 1..3 * PAGE), 1..200),
            window_pages in 1..20_u64,
        ) {
            let mut windows = Windows::new(PAGE);
            // One element per file page.
            let mut dirty = vec![false; 210];
            let mut in_writeback = vec![false; 210];
            let pages = |range: &Range<u64>| {
                let page = |at: u64| usize::try_from(at / PAGE).unwrap();
                page(range.start)..page(range.end.next_multiple_of(PAGE))
            };
            for (at, bytes) in writes {
                dirty[pages(&(at..at + bytes))].fill(true);
                if let Some(step) = windows.wrote(at, bytes, window_pages * PAGE) {
                    for page in pages(&step.start) {
                        in_writeback[page] |= std::mem::take(&mut dirty[page]);
                    }
                    if let Some(finish) = step.finish {
                        // The wait covers all pages between the ends of the range, including pages
                        // whose writeback another step started.
                        in_writeback[pages(&finish)].fill(false);
                    }
                }
                let waiting = dirty.iter().zip(&in_writeback).filter(|(d, u)| **d || **u).count();
                prop_assert!(waiting as u64 <= 2 * window_pages + 4, "{waiting}");
            }
            for range in windows.rest().into_iter().flatten() {
                dirty[pages(&range)].fill(false);
                in_writeback[pages(&range)].fill(false);
            }
            prop_assert!(!dirty.contains(&true) && !in_writeback.contains(&true));
        }
    }
}
