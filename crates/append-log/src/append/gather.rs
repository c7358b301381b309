//! How long a batch waits for more: pure.
//!
//! Writers that append, wait, and append again come back a moment after their sync. A batch
//! taken at once would miss them all, and half of them would always wait for two syncs. So whoever
//! carries out the next batch first lets those come back who just left: for half a sync at most,
//! and no longer when nobody came for a quarter. One writer alone has nobody to wait for.

use std::time::{Duration, Instant};

/// What part of a sync is waited at most, and what part without anybody coming.
const PART_OF_SYNC: u32 = 2;
const PART_OF_SYNC_IDLE: u32 = 4;

/// How often in a row at most nobody is waited for, after waiting was of no use.
const SKIPS_MAX: u32 = 64;

/// What a batch waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wait {
    /// How many records may well come.
    pub(crate) expected: u32,
    /// How long to wait for the next one.
    pub(crate) idle_max: Duration,
    /// Until when at most.
    pub(crate) until: Instant,
}

impl Wait {
    /// Whether to go on waiting, with so many records there, the last of which came at `last`.
    pub(crate) fn goes_on(&self, now: Instant, records: u32, last: Instant) -> bool {
        records < self.expected && now < self.until && now < last + self.idle_max
    }
}

/// What was seen of the batches before.
#[derive(Debug, Default)]
pub(crate) struct Gather {
    /// How long a sync takes: a moving average.
    sync: Duration,
    /// How many records the next batch may well have, and until when it is worth waiting.
    expected: u32,
    until: Option<Instant>,
    /// How many batches do not wait, and how many will not when that was of no use again.
    skip: u32,
    skip_next: u32,
}

impl Gather {
    /// A batch of `records` is on the medium, which took `sync`, and `pending` ones came since.
    pub(crate) fn batch_done(&mut self, now: Instant, sync: Duration, records: u32, pending: u32) {
        self.sync = if self.sync.is_zero() { sync } else { (self.sync * 7 + sync) / 8 };
        self.expected = records.saturating_add(pending);
        self.until = Some(now + self.sync / PART_OF_SYNC);
    }

    /// How many records the batch about to be taken should wait for, and until when at most.
    pub(crate) fn wait_for(&mut self, now: Instant, records: u32) -> Option<Wait> {
        let until = self.until.filter(|until| now < *until && records < self.expected)?;
        if self.skip > 0 {
            self.skip -= 1;
            return None;
        }
        Some(Wait { expected: self.expected, idle_max: self.sync / PART_OF_SYNC_IDLE, until })
    }

    /// The wait is over: of `from` records there are now `to`.
    pub(crate) fn waited(&mut self, from: u32, to: u32) {
        if (to - from) * 2 >= self.expected - from {
            self.skip_next = 0;
        } else {
            self.skip_next = (self.skip_next * 2).clamp(1, SKIPS_MAX);
            self.skip = self.skip_next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYNC: Duration = Duration::from_micros(800);

    fn after_a_batch(records: u32, pending: u32) -> (Gather, Instant) {
        let (mut gather, now) = (Gather::default(), Instant::now());
        gather.batch_done(now, SYNC, records, pending);
        (gather, now)
    }

    #[test]
    fn those_who_just_left_are_waited_for_half_a_sync() {
        let (mut gather, now) = after_a_batch(8, 3);
        let (until, idle_max) = (now + SYNC / 2, SYNC / 4);
        let wait = Wait { expected: 11, idle_max, until };
        assert_eq!(gather.wait_for(now, 3), Some(wait));
        assert!(wait.goes_on(until - idle_max, 10, now + idle_max * 3 / 4));
        assert!(!wait.goes_on(until, 10, until), "time is up");
        assert!(!wait.goes_on(now + idle_max, 10, now), "nobody came");
        assert!(!wait.goes_on(now, 11, now), "all came");
        assert_eq!(gather.wait_for(now, 11), None, "they are all there");
        assert_eq!(gather.wait_for(until, 3), None, "too late");
    }

    #[test]
    fn one_writer_alone_never_waits() {
        let (mut gather, now) = after_a_batch(1, 0);
        assert_eq!(gather.wait_for(now, 1), None);
        assert_eq!(Gather::default().wait_for(now, 1), None, "nor does the first batch");
    }

    #[test]
    fn waiting_in_vain_becomes_rare() {
        let (mut gather, now) = after_a_batch(8, 0);
        let mut waits = 0;
        for _ in 0..1000 {
            gather.batch_done(now, SYNC, 8, 0);
            if gather.wait_for(now, 1).is_some() {
                waits += 1;
                gather.waited(1, 2);
            }
        }
        assert!((10..40).contains(&waits), "{waits}");
        while gather.wait_for(now, 1).is_none() {}
        gather.waited(1, 8);
        assert!(gather.wait_for(now, 1).is_some(), "it was of use");
    }
}
