//! Writer admission: delays writers while compaction falls behind, and makes them wait for it on a
//! full disk.
//!
//! No writer waits while it holds a lock: it is admitted before it locks its key, and a writer that
//! finds the disk full releases all locks before it waits.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use haul_sync::{Condvar, Mutex, now};

use crate::maintenance::pacer::Pacer;
use crate::maintenance::plan::{Candidate, SpaceThresholds};
use crate::signal::Signal;

/// A writer's maximum delay. After it, the writer may use the remaining space.
const DELAY_MAX: Duration = Duration::from_secs(1);

/// The background thread is woken after writers have stored a volume divided by this number.
const RECHECK_PART: u64 = 64;

#[derive(Debug)]
pub(crate) struct Admission {
    volume_bytes: u64,
    /// Free bytes for ordinary needles: the measured number, plus the credit for the part of a
    /// volume that compaction has moved, minus the bytes admitted since the measurement.
    free_bytes: AtomicI64,
    slow_bytes: AtomicU64,
    /// `true` if there are no dead bytes to reclaim: waiting would not help, so writers are not
    /// delayed.
    is_exhausted: AtomicBool,
    /// Bytes admitted since the background thread was last woken.
    unreported_bytes: AtomicU64,
    state: Mutex<State>,
    changed: Condvar,
    /// Wakes the background thread.
    pub(crate) background: Signal,
}

#[derive(Debug, Default)]
struct State {
    thresholds: Option<SpaceThresholds>,
    pacer: Pacer,
    /// The volume that is being compacted, and the number of its bytes that were moved.
    moving: Option<(Candidate, u64)>,
    /// The number of volumes freed.
    freed: u64,
    /// The number of requested passes of the background thread, and the last pass that found
    /// nothing.
    requested: u64,
    answered: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpaceWait {
    /// Compaction freed a volume.
    Freed,
    /// No dead bytes are left to reclaim.
    Exhausted,
    /// The time is over, and compaction is still running.
    TimedOut,
}

impl Admission {
    pub(crate) fn new(volume_bytes: u64) -> Self {
        Self {
            volume_bytes,
            free_bytes: AtomicI64::new(i64::MAX / 2),
            slow_bytes: AtomicU64::new(0),
            is_exhausted: AtomicBool::new(false),
            unreported_bytes: AtomicU64::new(0),
            state: Mutex::default(),
            changed: Condvar::new(),
            background: Signal::default(),
        }
    }

    /// Returns the free bytes for ordinary needles.
    pub(crate) fn free_bytes(&self) -> u64 {
        u64::try_from(self.free_bytes.load(Ordering::Relaxed)).unwrap_or(0)
    }

    /// Returns `true` while writers are delayed.
    pub(crate) fn is_slow(&self) -> bool {
        self.free_bytes() < self.slow_bytes.load(Ordering::Relaxed)
    }

    /// Sets the measured free bytes and the capacity; `None` for a disk without a limit.
    pub(crate) fn measured(&self, free_and_capacity: Option<(u64, u64)>) -> SpaceThresholds {
        let (free, capacity) = free_and_capacity.unwrap_or((u64::MAX / 4, 0));
        let thresholds = SpaceThresholds::new(self.volume_bytes, capacity);
        let mut state = self.state.lock();
        let earned = state.moving.map_or(0, |(volume, moved)| volume.earned(volume.bytes, moved));
        let free = free.saturating_add(earned);
        self.free_bytes.store(i64::try_from(free).unwrap_or(i64::MAX / 2), Ordering::Relaxed);
        self.slow_bytes.store(thresholds.slow, Ordering::Relaxed);
        state.thresholds = Some(thresholds);
        if free >= thresholds.slow {
            self.changed.notify_all();
        }
        thresholds
    }

    /// Admits a writer of `bytes`, after a delay if compaction falls behind.
    pub(crate) fn admit(&self, bytes: u64) {
        self.admit_now(bytes);
        if !self.must_wait() {
            return;
        }
        let mut state = self.state.lock();
        self.background.set();
        let now = now();
        let share = state
            .thresholds
            .map_or(1.0, |thresholds| thresholds.writes_per_freed_byte(self.free_bytes()));
        let until = state.pacer.start(bytes, share, now, DELAY_MAX);
        while self.must_wait() && !self.changed.wait_until(&mut state, until).timed_out() {}
    }

    /// Counts bytes for a writer that is not delayed.
    pub(crate) fn admit_now(&self, bytes: u64) {
        let bytes_signed = i64::try_from(bytes).unwrap_or(i64::MAX / 4);
        self.free_bytes.fetch_sub(bytes_signed, Ordering::Relaxed);
        let part = self.volume_bytes / RECHECK_PART;
        if self.unreported_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes >= part {
            self.unreported_bytes.store(0, Ordering::Relaxed);
            self.background.set();
        }
    }

    /// Returns `true` if [`Self::admit`] would delay a writer.
    pub(crate) fn must_wait(&self) -> bool {
        self.is_slow() && !self.is_exhausted.load(Ordering::Relaxed)
    }

    /// Records that compaction starts to move a volume.
    pub(crate) fn begin_volume(&self, volume: Candidate) {
        let mut state = self.state.lock();
        state.moving = Some((volume, 0));
        state.pacer.resume(now());
    }

    /// Records that compaction moved `bytes` of the volume. This earns credit for a part of the
    /// bytes that the volume's removal frees.
    pub(crate) fn note_moved(&self, bytes: u64) {
        let mut state = self.state.lock();
        let Some((volume, moved)) = &mut state.moving else { return };
        *moved += bytes;
        debug_assert!(*moved <= 2 * volume.bytes, "{volume:?}: {moved} bytes were moved");
        let earned = volume.earned(volume.dead_bytes, bytes);
        state.pacer.note_freed(earned as f64, now());
    }

    /// Records that the volume was removed.
    pub(crate) fn note_freed(&self) {
        let mut state = self.state.lock();
        state.freed += 1;
        if let Some((volume, 0)) = state.moving.take() {
            state.pacer.note_freed(volume.dead_bytes as f64, now());
        }
        drop(state);
        self.is_exhausted.store(false, Ordering::Relaxed);
        self.changed.notify_all();
    }

    /// Returns the number of volumes that compaction has freed.
    pub(crate) fn freed_volumes(&self) -> u64 {
        self.state.lock().freed
    }

    /// Waits until compaction has freed more than `freed` volumes, after the log had no space for a
    /// needle. `freed` is the result of [`Self::freed_volumes`] before that attempt.
    pub(crate) fn wait_for_space(&self, freed: u64, until: Instant) -> SpaceWait {
        let mut state = self.state.lock();
        state.requested += 1;
        let requested = state.requested;
        self.background.set();
        loop {
            if state.freed != freed {
                return SpaceWait::Freed;
            }
            if state.answered >= requested {
                return SpaceWait::Exhausted;
            }
            if self.changed.wait_until(&mut state, until).timed_out() {
                return SpaceWait::TimedOut;
            }
        }
    }

    /// Records that the background thread starts to look for volumes to compact.
    pub(crate) fn begin_pass(&self) -> u64 {
        self.state.lock().requested
    }

    /// Records that the thread found no more volumes to compact, or failed; `pass` is the result of
    /// [`Self::begin_pass`].
    pub(crate) fn end_pass(&self, pass: u64) {
        let mut state = self.state.lock();
        debug_assert!(pass <= state.requested, "no such pass");
        state.answered = pass.max(state.answered);
        state.moving = None;
        state.pacer.suspend();
        drop(state);
        self.is_exhausted.store(true, Ordering::Relaxed);
        self.changed.notify_all();
    }

    /// Records that there are dead bytes to reclaim, for which writers wait while little space is
    /// free.
    pub(crate) fn note_dead_bytes(&self) {
        self.is_exhausted.store(false, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    const VOLUME: u64 = 1 << 20;
    const HALF_DEAD: Candidate =
        Candidate { number: 1, bytes: VOLUME, dead_bytes: VOLUME / 2, move_bytes: VOLUME / 2 };

    fn admission(free: u64) -> Admission {
        let admission = Admission::new(VOLUME);
        admission.measured(Some((free, 100 * VOLUME)));
        admission
    }

    fn in_an_hour() -> Instant {
        Instant::now() + Duration::from_secs(3600)
    }

    #[test]
    fn writers_below_the_low_mark_are_delayed_until_compaction_progresses() {
        let admission = admission(VOLUME);
        assert!(admission.is_slow());
        let admit = |bytes| {
            let began = Instant::now();
            admission.admit(bytes);
            began.elapsed()
        };
        assert!(admit(VOLUME / 4) < DELAY_MAX, "the speed of compaction is unknown");
        admission.begin_volume(HALF_DEAD);
        thread::sleep(Duration::from_millis(20));
        // A quarter of a volume in at least 20 ms; writers get a share of that.
        admission.note_moved(VOLUME / 4);
        admit(VOLUME / 4);
        assert!(admit(1) >= Duration::from_millis(18), "the previous writer used at least 20 ms");
        admission.end_pass(0);
        assert!(admit(VOLUME) < DELAY_MAX);
        assert!(admit(1) < DELAY_MAX, "there is nothing to wait for");
    }

    #[test]
    fn credit_for_a_moved_volume_counts_as_free_bytes() {
        let admission = admission(VOLUME / 2);
        let free_bytes = || {
            admission.measured(Some((VOLUME / 2, 100 * VOLUME)));
            admission.free_bytes()
        };
        admission.begin_volume(HALF_DEAD);
        assert_eq!(free_bytes(), VOLUME / 2);
        admission.note_moved(VOLUME / 8);
        assert_eq!(free_bytes(), VOLUME / 2 + VOLUME / 4);
        admission.note_freed();
        assert_eq!(free_bytes(), VOLUME / 2, "measured now");
    }

    #[test]
    fn writers_are_not_delayed_with_free_space_or_without_dead_bytes() {
        let (free, exhausted, short) = (admission(50 * VOLUME), admission(0), admission(0));
        exhausted.end_pass(0);
        let is_delayed = |admission: &Admission| {
            admission.begin_volume(HALF_DEAD);
            thread::sleep(Duration::from_millis(1));
            admission.note_moved(1);
            let began = Instant::now();
            admission.admit(1000);
            admission.admit(1000);
            began.elapsed() >= DELAY_MAX
        };
        assert_eq!([&free, &exhausted, &short].map(is_delayed), [false, false, true]);
    }

    #[test]
    fn writer_on_a_full_disk_receives_the_outcome_of_its_wait() {
        let admission = admission(0);
        let wait = |freed| admission.wait_for_space(freed, in_an_hour());
        assert_eq!(admission.wait_for_space(0, Instant::now()), SpaceWait::TimedOut);
        thread::scope(|scope| {
            let writer = scope.spawn(|| wait(admission.freed_volumes()));
            while !writer.is_finished() {
                admission.note_freed();
                thread::yield_now();
            }
            assert_eq!(writer.join().unwrap(), SpaceWait::Freed);
            let writer = scope.spawn(|| wait(admission.freed_volumes()));
            while !writer.is_finished() {
                admission.end_pass(admission.begin_pass());
                thread::yield_now();
            }
            assert_eq!(writer.join().unwrap(), SpaceWait::Exhausted);
        });
        let before = admission.freed_volumes();
        admission.note_freed();
        assert_eq!(wait(before), SpaceWait::Freed, "freed between the attempt and the wait");
    }
}
