//! Decides how long a batch waits for more records. Performs no I/O and does not read the clock.
//!
//! Many writers append a record, wait for its sync, and append the next record shortly after the
//! sync. If the next batch were written immediately, it would miss these records, and half of the
//! writers would always wait for two syncs. The thread that commits the next batch therefore first
//! waits for the previous batch's writers. The wait ends after half a sync's duration, or earlier
//! if no record arrives for a quarter of it. For a long batch, only the time that a short batch
//! would take counts. A lone writer never waits.

use std::time::{Duration, Instant};

/// A wait takes at most a sync's duration divided by [`PART_OF_SYNC`]. It ends early after this
/// duration divided by [`PART_OF_SYNC_IDLE`] without a new record.
const PART_OF_SYNC: u32 = 2;
const PART_OF_SYNC_IDLE: u32 = 4;

/// The length in bytes above which a batch's duration grows with its length. The part that grows
/// cannot be saved by writing two batches as one, so it does not extend a wait.
const FIXED_COST_BYTES: u64 = 256 << 10;

/// The maximum number of consecutive batches that skip the wait because earlier waits brought few
/// records.
const SKIPS_MAX: u32 = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wait {
    /// The number of records at which the wait ends.
    pub(crate) expected: u32,
    /// The time without a new record after which the wait ends.
    pub(crate) idle_max: Duration,
    /// The time at which the wait ends at the latest.
    pub(crate) until: Instant,
}

impl Wait {
    /// Returns the time at which the wait ends if no further record is appended after `last`.
    pub(crate) fn deadline(&self, last: Instant) -> Instant {
        self.until.min(last + self.idle_max)
    }

    /// `true` if the wait continues, given the number of records in the batch and the time `last`
    /// at which the last record was appended.
    pub(crate) fn continues(&self, now: Instant, records: u32, last: Instant) -> bool {
        records < self.expected && now < self.until && now < last + self.idle_max
    }
}

/// Statistics of earlier batches, from which the next batch's wait is computed.
#[derive(Debug, Default)]
pub(crate) struct Gather {
    /// The moving average of a batch's time to write and sync, scaled down to [`FIXED_COST_BYTES`]
    /// if the batch is longer.
    sync: Duration,
    /// The number of records expected in the next batch, and the time until which it may wait for
    /// them.
    expected: u32,
    until: Option<Instant>,
    /// `skip` counts the following batches that do not wait. `skip_next` is the value last assigned
    /// to `skip`; it doubles with each wait that brings few records.
    skip: u32,
    skip_next: u32,
}

impl Gather {
    /// Updates the statistics after a batch of `bytes` bytes and `records` records. It took `took`
    /// to write and sync, while `pending` records were appended to the next batch.
    pub(crate) fn batch_done(
        &mut self,
        now: Instant,
        took: Duration,
        bytes: u64,
        (records, pending): (u32, u32),
    ) {
        let sync = took.mul_f64((FIXED_COST_BYTES as f64 / bytes as f64).min(1.0));
        self.sync = if self.sync.is_zero() { sync } else { (self.sync * 7 + sync) / 8 };
        self.expected = records.saturating_add(pending);
        self.until = Some(now + self.sync / PART_OF_SYNC);
    }

    /// `true` if the next batch is expected to have several records.
    pub(crate) fn expects_several(&self) -> bool {
        self.expected > 1
    }

    /// Returns the wait limits for a batch that has `records` records; `None` if it should not
    /// wait.
    pub(crate) fn wait_for(&mut self, now: Instant, records: u32) -> Option<Wait> {
        let until = self.until.filter(|until| now < *until && records < self.expected)?;
        if self.skip > 0 {
            self.skip -= 1;
            return None;
        }
        Some(Wait { expected: self.expected, idle_max: self.sync / PART_OF_SYNC_IDLE, until })
    }

    /// Updates the statistics after a wait during which the batch grew from `from` to `to` records.
    pub(crate) fn waited(&mut self, from: u32, to: u32) {
        self.until = None;
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
        gather.batch_done(now, SYNC, FIXED_COST_BYTES, (records, pending));
        (gather, now)
    }

    #[test]
    fn a_batch_waits_half_a_sync_for_the_writers_of_the_last() {
        let (mut gather, now) = after_a_batch(8, 3);
        let (until, idle_max) = (now + SYNC / 2, SYNC / 4);
        let wait = Wait { expected: 11, idle_max, until };
        assert_eq!(gather.wait_for(now, 3), Some(wait));
        assert!(wait.continues(until - idle_max, 10, now + idle_max * 3 / 4));
        assert!(!wait.continues(until, 10, until), "time is up");
        assert!(!wait.continues(now + idle_max, 10, now), "none came");
        assert!(!wait.continues(now, 11, now), "all came");
        assert_eq!(gather.wait_for(now, 11), None, "all are there");
        assert_eq!(gather.wait_for(until, 3), None, "too late");
    }

    #[test]
    fn transfer_time_of_a_long_batch_does_not_extend_the_wait() {
        let (mut gather, now) = (Gather::default(), Instant::now());
        gather.batch_done(now, SYNC, 8 * FIXED_COST_BYTES, (8, 3));
        let wait = Wait { expected: 11, idle_max: SYNC / 32, until: now + SYNC / 16 };
        assert_eq!(gather.wait_for(now, 3), Some(wait));
    }

    #[test]
    fn a_lone_writer_never_waits() {
        let (mut gather, now) = after_a_batch(1, 0);
        assert_eq!(gather.wait_for(now, 1), None);
        assert_eq!(Gather::default().wait_for(now, 1), None, "nor does the first batch");
    }

    #[test]
    fn useless_waits_become_rare() {
        let (mut gather, now) = after_a_batch(8, 0);
        let mut waits = 0;
        for _ in 0..1000 {
            gather.batch_done(now, SYNC, 4096, (8, 0));
            if gather.wait_for(now, 1).is_some() {
                waits += 1;
                gather.waited(1, 2);
            }
        }
        assert!((10..40).contains(&waits), "{waits}");
        while gather.wait_for(now, 1).is_none() {
            gather.batch_done(now, SYNC, 4096, (8, 0));
        }
        gather.waited(1, 8);
        assert_eq!(gather.wait_for(now, 1), None, "a batch waits once");
        gather.batch_done(now, SYNC, 4096, (8, 0));
        assert!(gather.wait_for(now, 1).is_some(), "the wait was of use");
    }
}
