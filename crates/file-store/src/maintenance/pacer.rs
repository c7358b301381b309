//! The rate at which delayed writers are admitted. Pure: callers pass the time.
//!
//! Compaction frees space in steps: nothing while it moves a volume, then the whole volume. Writers
//! that wait for each step would wait long, and then continue all at once. Therefore they are
//! admitted one after the other, at the average rate of the steps.

use std::time::{Duration, Instant};

/// The time after which freed bytes count for a third: the rate is a decaying average.
const MEMORY: Duration = Duration::from_secs(1);

/// The interval at which waiting writers are admitted together, so that they share a sync. A sync
/// per writer would take disk time from compaction.
const GROUP_INTERVAL: Duration = Duration::from_millis(2);

/// Measures the rate at which space is freed, and spreads writers over time accordingly.
#[derive(Debug, Default)]
pub(crate) struct Pacer {
    freed_bytes: f64,
    /// The time in which the bytes were freed.
    seconds: f64,
    /// The time up to which compaction is accounted; `None` while it is idle.
    accounted: Option<Instant>,
    /// The time up to which admitted writers have used the rate.
    used: Option<Instant>,
    /// The last time at which writers were admitted.
    last_group: Option<Instant>,
}

impl Pacer {
    /// Records that compaction starts or resumes: the time from `now` on counts.
    pub(crate) fn resume(&mut self, now: Instant) {
        self.accounted.get_or_insert(now);
    }

    /// Records that compaction is idle: the time from now on does not count.
    pub(crate) fn suspend(&mut self) {
        self.accounted = None;
    }

    /// Records that compaction freed `bytes` since the last call.
    pub(crate) fn note_freed(&mut self, bytes: f64, now: Instant) {
        let since = self.accounted.replace(now).map_or(Duration::ZERO, |last| now - last);
        let keep = (-since.as_secs_f64() / MEMORY.as_secs_f64()).exp();
        self.freed_bytes = self.freed_bytes * keep + bytes;
        self.seconds = self.seconds * keep + since.as_secs_f64();
    }

    /// Returns the bytes freed per second, once this is known.
    fn rate(&self) -> Option<f64> {
        (self.seconds > 0.0 && self.freed_bytes > 0.0).then(|| self.freed_bytes / self.seconds)
    }

    /// Returns the time at which a writer of `bytes` is admitted, if all writers together may store
    /// `share` bytes per freed byte; at most `longest` after `now`. Each call uses up a part of the
    /// rate.
    pub(crate) fn start(
        &mut self,
        bytes: u64,
        share: f64,
        now: Instant,
        longest: Duration,
    ) -> Instant {
        let Some(rate) = self.rate() else { return now };
        let latest = now + longest;
        let start = self.used.map_or(now, |used| used.clamp(now, latest));
        let takes = bytes as f64 / (rate * share);
        self.used = Some(start + Duration::try_from_secs_f64(takes).unwrap_or(longest));
        let group = match self.last_group {
            Some(group) if start <= group => group,
            Some(group) if start <= group + GROUP_INTERVAL => group + GROUP_INTERVAL,
            _ => start,
        };
        self.last_group = Some(group);
        group.min(latest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DELAY_MAX: Duration = Duration::from_secs(1);
    const BATCH: Duration = Duration::from_millis(10);

    /// Returns the pacer after compaction freed 1000 bytes every ten milliseconds, `batches` times.
    fn pacer(batches: u32, now: &mut Instant) -> Pacer {
        let mut pacer = Pacer::default();
        pacer.resume(*now);
        for _ in 0..batches {
            *now += BATCH;
            pacer.note_freed(1000.0, *now);
        }
        pacer
    }

    #[test]
    fn writers_are_admitted_in_groups_at_the_rate_of_freed_space() {
        let mut now = Instant::now();
        let mut pacer = pacer(500, &mut now);
        let mut starts = |share, now| -> Vec<u128> {
            let start = |_| pacer.start(100, share, now, DELAY_MAX);
            (0..40).map(start).map(|start| (start - now).as_micros()).collect()
        };
        // 100 of 100,000 bytes per second: one writer per millisecond, admitted in pairs.
        let all = starts(1.0, now);
        assert_eq!(all[..7], [0, 2000, 2000, 4000, 4000, 6000, 6000]);
        assert_eq!(all[39], 40_000);
        let later = now + Duration::from_secs(9);
        assert_eq!(starts(0.5, later)[..4], [0, 2000, 4000, 6000], "half of the rate");
        assert_eq!(starts(0.0001, later)[1..], [DELAY_MAX.as_micros(); 39], "the longest delay");
    }

    #[test]
    fn idle_time_does_not_count_and_old_rates_decay() {
        let mut now = Instant::now();
        assert_eq!(Pacer::default().start(100, 1.0, now, DELAY_MAX), now, "the rate is unknown");
        let mut pacer = pacer(500, &mut now);
        let rate = |pacer: &Pacer| pacer.rate().unwrap().round();
        assert_eq!(rate(&pacer), 100_000.0);
        pacer.suspend();
        now += Duration::from_secs(60);
        pacer.resume(now);
        now += BATCH;
        pacer.note_freed(1000.0, now);
        assert_eq!(rate(&pacer), 100_000.0);
        for _ in 0..500 {
            now += BATCH;
            pacer.note_freed(3000.0, now);
        }
        assert!((290_000.0..300_001.0).contains(&rate(&pacer)), "{pacer:?}");
    }
}
