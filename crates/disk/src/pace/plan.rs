//! Which pages of bulk data go to the device, and when. Pure.

use std::ops::Range;

use crate::units::{align_down, align_up};

/// What to do once a window is full.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Step {
    /// This goes to the device, and nobody waits for it.
    pub(super) start: Range<u64>,
    /// This, which was started one window before, must be there first.
    pub(super) finish: Option<Range<u64>>,
}

/// Two windows: one that is filled, and the one before, which is on its way to the device.
#[derive(Debug)]
pub(super) struct Windows {
    window_bytes: u64,
    page_bytes: u64,
    /// From the lowest to the highest byte written since the last step; empty at first.
    filling: Range<u64>,
    /// How much of it may be dirty, in whole pages.
    dirty_bytes: u64,
    /// The end of the last page that was counted: whoever goes on there has its page counted.
    counted_to: u64,
    under_way: Option<Range<u64>>,
}

impl Windows {
    pub(super) fn new(window_bytes: u64, page_bytes: u64) -> Self {
        let (filling, dirty_bytes, counted_to, under_way) = (0..0, 0, 0, None);
        Self { window_bytes, page_bytes, filling, dirty_bytes, counted_to, under_way }
    }

    /// `bytes` at `offset` are dirty now.
    pub(super) fn wrote(&mut self, offset: u64, bytes: u64) -> Option<Step> {
        // No file is longer than the kernel's signed numbers.
        let longest = align_down(i64::MAX.cast_unsigned(), self.page_bytes);
        let end = offset.saturating_add(bytes).min(longest);
        if end <= offset {
            return None;
        }
        let (first, last) = (align_down(offset, self.page_bytes), align_up(end, self.page_bytes));
        let goes_on = first + self.page_bytes == self.counted_to && self.dirty_bytes > 0;
        let counted_from = if goes_on { self.counted_to } else { first };
        self.dirty_bytes += last.saturating_sub(counted_from);
        self.counted_to = last;
        self.filling = if self.filling.is_empty() {
            offset..end
        } else {
            self.filling.start.min(offset)..self.filling.end.max(end)
        };
        (self.dirty_bytes >= self.window_bytes).then(|| self.turn())
    }

    /// The full window goes, but for a last page that is not full: whoever writes on would have to
    /// wait for it, and it would go twice.
    fn turn(&mut self) -> Step {
        let cut = align_down(self.filling.end, self.page_bytes).max(self.filling.start);
        let start = align_down(self.filling.start, self.page_bytes)..cut;
        self.filling.start = cut;
        self.dirty_bytes = align_up(self.filling.end, self.page_bytes) - cut;
        Step { finish: self.under_way.replace(start.clone()), start }
    }

    /// All that was not finished yet: first what is under way, then what was not started.
    pub(super) fn rest(&mut self) -> [Option<Range<u64>>; 2] {
        let filling = std::mem::take(&mut self.filling);
        self.dirty_bytes = 0;
        let start = align_down(filling.start, self.page_bytes);
        [self.under_way.take(), (!filling.is_empty()).then_some(start..filling.end)]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PAGE: u64 = 4096;

    fn steps(window_pages: u64, writes: &[(u64, u64)]) -> (Vec<Step>, [Option<Range<u64>>; 2]) {
        let mut windows = Windows::new(window_pages * PAGE, PAGE);
        let steps = writes.iter().filter_map(|(at, bytes)| windows.wrote(*at, *bytes)).collect();
        (steps, windows.rest())
    }

    fn step(start: Range<u64>, finish: Option<Range<u64>>) -> Step {
        let bytes = |pages: Range<u64>| pages.start * PAGE..pages.end * PAGE;
        Step { start: bytes(start), finish: finish.map(bytes) }
    }

    #[test]
    fn a_full_window_is_started_and_the_one_before_finished() {
        let writes: Vec<_> = (0..7).map(|page| (page * PAGE, PAGE)).collect();
        let (steps, rest) = steps(2, &writes);
        let expected = [step(0..2, None), step(2..4, Some(0..2)), step(4..6, Some(2..4))];
        assert_eq!(steps, expected);
        assert_eq!(rest, [Some(4 * PAGE..6 * PAGE), Some(6 * PAGE..7 * PAGE)]);
    }

    #[test]
    fn a_last_page_that_is_not_full_waits_for_its_rest() {
        let (started, rest) = steps(2, &[(0, 100), (100, 2 * PAGE), (100 + 2 * PAGE, 10)]);
        assert_eq!(started, [step(0..2, None)]);
        assert_eq!(rest, [Some(0..2 * PAGE), Some(2 * PAGE..2 * PAGE + 110)]);
    }

    #[test]
    fn short_writes_that_go_on_count_each_page_once_and_scattered_ones_count_theirs() {
        let small = |count| (0..count).map(|number| (number * 64, 64)).collect::<Vec<_>>();
        // The second page counts as soon as it is begun.
        assert_eq!(steps(2, &small(PAGE / 64)).0, []);
        assert_eq!(steps(2, &small(PAGE / 64 + 1)).0, [step(0..1, None)]);
        let far = [(0, 1), (10 * PAGE, 1), (20 * PAGE, PAGE)];
        assert_eq!(steps(3, &far).0, [step(0..21, None)]);
        // Downward works, too: the lowest to the highest.
        let down = [(20 * PAGE, PAGE), (10 * PAGE, PAGE), (5 * PAGE, PAGE)];
        assert_eq!(steps(3, &down).0, [step(5..21, None)]);
    }

    #[test]
    fn nothing_written_is_nothing_to_do() {
        assert_eq!(steps(1, &[(5, 0), (0, 0)]), (vec![], [None, None]));
        assert_eq!(steps(1, &[(u64::MAX - 5, 20)]), (vec![], [None, None]), "beyond any file");
    }

    proptest! {
        #[test]
        fn whatever_is_written_is_finished_in_the_end_and_never_more_than_two_windows_wait(
            writes in prop::collection::vec((0..200 * PAGE, 1..3 * PAGE), 1..200),
            window_pages in 1..20_u64,
        ) {
            let mut windows = Windows::new(window_pages * PAGE, PAGE);
            // Page by page: dirty, or on its way.
            let mut dirty = vec![false; 210];
            let mut under_way = vec![false; 210];
            let pages = |range: &Range<u64>| {
                let page = |at: u64| usize::try_from(at / PAGE).unwrap();
                page(range.start)..page(range.end.next_multiple_of(PAGE))
            };
            for (at, bytes) in writes {
                dirty[pages(&(at..at + bytes))].fill(true);
                if let Some(step) = windows.wrote(at, bytes) {
                    for page in pages(&step.start) {
                        under_way[page] |= std::mem::take(&mut dirty[page]);
                    }
                    if let Some(finish) = step.finish {
                        // Waiting waits for all of the range, whoever started it.
                        under_way[pages(&finish)].fill(false);
                    }
                }
                let waiting = dirty.iter().zip(&under_way).filter(|(d, u)| **d || **u).count();
                prop_assert!(waiting as u64 <= 2 * window_pages + 4, "{waiting}");
            }
            for range in windows.rest().into_iter().flatten() {
                dirty[pages(&range)].fill(false);
                under_way[pages(&range)].fill(false);
            }
            prop_assert!(!dirty.contains(&true) && !under_way.contains(&true));
        }
    }
}
