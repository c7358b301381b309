//! The rate at which delayed writers are admitted: pure, but for the clock its callers read.
//!
//! Compaction frees space in steps: nothing while it moves a volume, then all of it. Writers that
//! had to wait for each step would wait long and then all together, so they are admitted at the
//! rate at which steps come, one after the other.

use std::time::{Duration, Instant};

/// What compaction freed counts less the longer ago it was: after this time, a third.
const MEMORY: Duration = Duration::from_secs(1);

/// Writers go together, so often: one sync makes all of them durable, and many syncs of one writer
/// each would take the time that compaction needs.
const TURN: Duration = Duration::from_millis(2);

/// Measures how fast space is freed, and spreads writers over time accordingly.
#[derive(Debug, Default)]
pub(crate) struct Pacer {
    freed_bytes: f64,
    /// How long that took.
    seconds: f64,
    /// Until when compaction was accounted for; `None` while it rests.
    accounted: Option<Instant>,
    /// Until when writers have used up the rate.
    used: Option<Instant>,
    /// The last turn given.
    turn: Option<Instant>,
}

impl Pacer {
    /// Compaction goes on, or begins: the time from now on counts.
    pub(crate) fn resume(&mut self, now: Instant) {
        self.accounted.get_or_insert(now);
    }

    /// Compaction has nothing to do: the time from now on does not count.
    pub(crate) fn rest(&mut self) {
        self.accounted = None;
    }

    /// Compaction earned so many bytes since it was accounted for last.
    pub(crate) fn freed(&mut self, bytes: f64, now: Instant) {
        let since = self.accounted.replace(now).map_or(Duration::ZERO, |last| now - last);
        let keep = (-since.as_secs_f64() / MEMORY.as_secs_f64()).exp();
        self.freed_bytes = self.freed_bytes * keep + bytes;
        self.seconds = self.seconds * keep + since.as_secs_f64();
    }

    /// Bytes freed a second, once that is known.
    fn rate(&self) -> Option<f64> {
        (self.seconds > 0.0 && self.freed_bytes > 0.0).then(|| self.freed_bytes / self.seconds)
    }

    /// When a writer of so many bytes may go, if all writers together may store `share` bytes for
    /// each byte freed: `longest` from now at the latest. Each call moves the time of the next on.
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
        let turn = match self.turn {
            Some(turn) if start <= turn => turn,
            Some(turn) if start <= turn + TURN => turn + TURN,
            _ => start,
        };
        self.turn = Some(turn);
        turn.min(latest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DELAY_MAX: Duration = Duration::from_secs(1);
    const BATCH: Duration = Duration::from_millis(10);

    /// Compaction freed 1000 bytes every ten milliseconds, for so many of them.
    fn pacer(batches: u32, now: &mut Instant) -> Pacer {
        let mut pacer = Pacer::default();
        pacer.resume(*now);
        for _ in 0..batches {
            *now += BATCH;
            pacer.freed(1000.0, *now);
        }
        pacer
    }

    #[test]
    fn writers_go_in_turns_at_the_rate_space_is_freed() {
        let mut now = Instant::now();
        let mut pacer = pacer(500, &mut now);
        let mut starts = |share, now| -> Vec<u128> {
            let start = |_| pacer.start(100, share, now, DELAY_MAX);
            (0..40).map(start).map(|start| (start - now).as_micros()).collect()
        };
        // 100 bytes of 100,000 a second: one a millisecond, and two of them together.
        let all = starts(1.0, now);
        assert_eq!(all[..7], [0, 2000, 2000, 4000, 4000, 6000, 6000]);
        assert_eq!(all[39], 40_000);
        let later = now + Duration::from_secs(9);
        assert_eq!(starts(0.5, later)[..4], [0, 2000, 4000, 6000], "half as fast");
        assert_eq!(starts(0.0001, later)[1..], [DELAY_MAX.as_micros(); 39], "the longest delay");
    }

    #[test]
    fn time_without_compaction_does_not_count_and_old_rates_are_forgotten() {
        let mut now = Instant::now();
        assert_eq!(Pacer::default().start(100, 1.0, now, DELAY_MAX), now, "nothing is known yet");
        let mut pacer = pacer(500, &mut now);
        let rate = |pacer: &Pacer| pacer.rate().unwrap().round();
        assert_eq!(rate(&pacer), 100_000.0);
        pacer.rest();
        now += Duration::from_secs(60);
        pacer.resume(now);
        now += BATCH;
        pacer.freed(1000.0, now);
        assert_eq!(rate(&pacer), 100_000.0);
        for _ in 0..500 {
            now += BATCH;
            pacer.freed(3000.0, now);
        }
        assert!((290_000.0..300_001.0).contains(&rate(&pacer)), "{pacer:?}");
    }
}
